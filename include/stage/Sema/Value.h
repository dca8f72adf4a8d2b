//===- Value.h - compile-time values and environments ----------*- C++ -*-===//
//
// What expressions evaluate to before there are tensors.
//
//   32            size, an integer held directly
//   D / H         size, symbolic and exact
//   450GB/s       quantity, exact; its dimension is bytes per second
//   1.25          real; exact (5/4) besides, so that 1.25 * S is the size 5*S/4
//   sqrt(2)       real without an exact value
//   one_f_one_b   a declaration; `interleaved(v = 2)` one with arguments
//   none, bf16    a builtin word
//   (dp, cp)      axes, where a parameter wants them: their names, in order
//   0..L  (a, b)  [a, b]  true  "text"
//
// An environment maps names to values; the outermost one belongs to a file, and what
// it does not know is looked up among the declarations that the file sees.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SEMA_VALUE_H
#define STAGE_SEMA_VALUE_H

#include "stage/AST/AST.h"
#include "llvm/ADT/DenseMap.h"
#include <memory>

namespace stage::sema {

using llvm::ArrayRef;
using llvm::StringRef;

class CTValue;
/// An evaluated argument, or an evaluated entry of a config.
struct NamedValue;

class CTValue {
public:
  enum class Kind : uint8_t {
    None,
    Size,
    Real,
    Quantity,
    Bool,
    String,
    Word, ///< a builtin that is no function of its own: an element type, `blocked`, `inf`
    Decl,
    List,
    Tuple,
    Range,    ///< getElements() is begin and end
    Function, ///< a schedule's `fn`
    Axes,     ///< getElements() are their names, as words; none of them: `none`
    Foreign,  ///< something of the caller's, such as a tensor; only names carry it
  };

  CTValue() = default;
  static CTValue integer(int64_t value);
  /// Becomes an integer where it is one. Null is not allowed.
  static CTValue size(Size size);
  /// `exact`: a constant size of the same value, or null.
  static CTValue real(double value, Size exact = Size());
  /// In base units. Null is not allowed.
  static CTValue quantity(Size value, Dimension dimension);
  /// `margin`: a size that is positive just where the truth value is true, or null if no size decides it.
  static CTValue boolean(bool value, Size margin = Size());
  /// The text must outlive the value: text of the AST does.
  static CTValue string(StringRef text);
  static CTValue word(StringRef name);
  static CTValue decl(const ast::Decl *decl);
  static CTValue decl(const ast::Decl *decl, std::vector<NamedValue> arguments);
  static CTValue list(std::vector<CTValue> elements);
  static CTValue tuple(std::vector<CTValue> elements);
  static CTValue range(CTValue begin, CTValue end);
  /// `ranks`: the product of the sizes of the axes.
  static CTValue axes(std::vector<CTValue> names, int64_t ranks);
  static CTValue function(const ast::FnStmt *fn);
  static CTValue foreign(void *pointer);

  Kind getKind() const { return kind; }
  bool isNone() const { return kind == Kind::None; }
  bool isSize() const { return kind == Kind::Size; }
  bool isReal() const { return kind == Kind::Real; }
  bool isNumber() const { return isSize() || isReal(); }
  bool isQuantity() const { return kind == Kind::Quantity; }
  bool isBool() const { return kind == Kind::Bool; }
  bool isDecl() const { return kind == Kind::Decl; }
  bool isAxes() const { return kind == Kind::Axes; }
  bool isForeign() const { return kind == Kind::Foreign; }

  /// The value of a size that is an integer constant.
  std::optional<int64_t> getInteger() const;
  /// Of a quantity; none of any other value.
  Dimension getDimension() const { return dimension; }
  /// Of a size, of a quantity in base units, or of a real that is exact; else null.
  Size getSize(SizeContext &sizes) const;
  /// Of two sizes or exact reals: pointer equality, as sizes are interned.
  bool isSameNumber(const CTValue &other) const { return integer_ == other.integer_ && size_ == other.size_; }
  double getReal() const { return real_; }
  bool getBool() const { return integer_ != 0; }
  /// Of axes.
  int64_t getRanks() const { return integer_; }
  /// Of a truth value that sizes decide; else null.
  Size getMargin() const { return isBool() ? size_ : Size(); }
  /// Of a string or a word.
  StringRef getText() const { return text; }
  const ast::Decl *getDecl() const { return static_cast<const ast::Decl *>(pointer); }
  /// Of a declaration that was given arguments.
  ArrayRef<NamedValue> getArguments() const;
  const ast::FnStmt *getFunction() const { return static_cast<const ast::FnStmt *>(pointer); }
  /// Of a list, a tuple, a range or axes.
  ArrayRef<CTValue> getElements() const;
  void *getForeign() const { return const_cast<void *>(pointer); }

  /// What the caller knows this very value as (IRGen: the dim). Names carry it, arithmetic drops it.
  const void *getTag() const { return tag; }
  CTValue withTag(const void *newTag) const {
    CTValue copy = *this;
    copy.tag = newTag;
    return copy;
  }

  /// Where the program says this value, as `3` of `tp = 3`; invalid: it is computed. Names and parameters carry it,
  /// arithmetic drops it.
  SMRange getOrigin() const { return origin; }
  void setOrigin(SMRange newOrigin) { origin = newOrigin; }

  /// For messages: `a size`, `a list`.
  StringRef describeKind() const;

private:
  Kind kind = Kind::None;
  int64_t integer_ = 0; ///< Size without `size_`; Bool; the ranks of Axes
  Size size_;           ///< Size that is no integer constant; Quantity; the exact value of Real; the margin of Bool
  Dimension dimension;  ///< Quantity
  double real_ = 0;     ///< Real
  const void *pointer = nullptr; ///< Decl, Function, Foreign
  const void *tag = nullptr;
  SMRange origin;
  StringRef text; ///< String, Word
  std::shared_ptr<const std::vector<CTValue>> elements;
  std::shared_ptr<const std::vector<NamedValue>> arguments;
};

struct NamedValue {
  ast::Ident name; ///< Empty: positional.
  CTValue value;
  SMRange range;
};

/// A scope of names at compile time. An environment refers to the one it is nested in, which must outlive it.
class Environment {
public:
  /// The outermost one of a file: what no scope defines is looked up in `file`.
  explicit Environment(const ast::File &file) : file(&file) {}
  explicit Environment(const Environment &parent) : parent(&parent), file(parent.file) {}

  /// Defines a name in this scope, or gives it a new value.
  void define(StringRef name, CTValue value);
  /// The value in the innermost scope that defines the name; null if none does.
  const CTValue *find(StringRef name) const;
  /// The innermost scope that defines the name; null if none does.
  const Environment *findScope(StringRef name) const;
  const ast::File &getFile() const { return *file; }
  /// Names of this scope, in order of definition.
  ArrayRef<std::pair<StringRef, CTValue>> getOwn() const { return names; }
  const Environment *getParent() const { return parent; }

private:
  const Environment *parent = nullptr;
  const ast::File *file;
  /// The value that this very scope gives to a name; null if none.
  const CTValue *findOwn(StringRef name) const;

  /// Mostly few per scope, and searched in order; `positions` has them once they are many.
  llvm::SmallVector<std::pair<StringRef, CTValue>, 8> names;
  llvm::DenseMap<StringRef, unsigned> positions;
};

} // namespace stage::sema

#endif // STAGE_SEMA_VALUE_H
