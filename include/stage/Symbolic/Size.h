//===- Size.h - exact symbolic sizes ---------------------------*- C++ -*-===//
//
// A size is an expression over symbols (dims, mesh axes, coordinates) that is
// interned in a SizeContext: two sizes are equal when, and only when, their
// canonical forms are, and that is a pointer comparison (law L1).
//
//   SizeContext ctx;
//   Size s = ctx.symbol("S"), t = ctx.symbol("tp");
//   Size local = s / t;                  // exact division; nothing is rounded
//   local * t == s                       // true, by pointer
//   s.mod(t), s.ceilDiv(t), s.floorDiv(t), min(s, t), max(s, t)
//   ctx.lookup("load", {i})            // entry i of a table that a binding has: `load[i]`
//   ctx.share("load", n, {{i, 4}})     // n dealt out as its entries are: what the i-th quarter of them gets
//
// Canonical form: a sum of monomials; a monomial is a rational coefficient times
// powers (negative ones for divisors) of atoms; an atom is a symbol, one of
// `% min max ceildiv div share` or a lookup over canonical arguments, or a sum that stands in a
// divisor. Monomials and atoms have a fixed order that depends on their printed
// form only, so that it is the same in every run (law L11).
//
// Cancelling loses obligations: `(KV/t)*(H/KV)*E` is `H*E/t`, although `KV % t == 0`
// is still owed. Whoever divides records the obligation before (see Obligations).
//
// Values: 128-bit rationals, every step checked for overflow. A coefficient that
// overflows while an expression is built makes the size `overflow()`, a division by
// zero makes it `undefined()`, more than 512 calls in each other make it `toodeep()`;
// all swallow whatever is done with them and fail when they are evaluated, so that the one place that binds values
// reports them.
//
// Limits. A sum of more than 64 terms that is multiplied stays a factor: it is not
// expanded. Cancelling assumes divisors that are not zero: `x/x` is 1. Two sizes that
// are equal for reasons outside this algebra (`min(x, max(x, y))` and `x`) differ.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SYMBOLIC_SIZE_H
#define STAGE_SYMBOLIC_SIZE_H

#include "stage/Support/Diagnostics.h"
#include "stage/Symbolic/Rational.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseMapInfo.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace stage {

class SizeContext;
struct SizeNode;

class Size;
class SizeQueries;
struct SizeCheck;

/// Numbers that sizes look up, row by row: in one dimension or in several, none of which is empty.
struct SizeTable {
  llvm::SmallVector<int64_t, 2> dims; ///< How many there are in each.
  std::vector<int64_t> entries;
  bool operator==(const SizeTable &other) const { return dims == other.dims && entries == other.entries; }

  /// The largest, or the sum, of rows that were asked for, by what was asked of each dim. Each class of ranks asks for
  /// the same. As sizes themselves it is of one thread; a copy, which may get other entries, begins anew.
  struct Combined {
    Combined() = default;
    Combined(const Combined &) {}
    Combined &operator=(const Combined &) {
      values.clear();
      shares.clear();
      return *this;
    }
    std::map<std::vector<int64_t>, std::optional<Rational>> values; ///< Nothing: no number holds it.
    std::map<int64_t, std::vector<int64_t>> shares;                 ///< By the total that is dealt out.
  };
  mutable Combined combined;
};

/// `total` dealt out in whole numbers that are in proportion to the weights as nearly as can be: each gets what comes
/// out, rounded down, and of those with the largest remainders, the first of equal ones first, each gets one more
/// (largest remainder method, A. Hamilton 1792). The weights are at least 0, and one of them is above.
std::vector<int64_t> apportion(llvm::ArrayRef<int64_t> weights, int64_t total);

/// What the values of symbols are. Absent symbols make an evaluation fail.
class SizeBinding {
public:
  void bind(llvm::StringRef symbol, int64_t value) { values[symbol] = value; }
  /// All symbols that `more` binds.
  void bind(const SizeBinding &more) {
    for (const auto &entry : more.values)
      values[entry.first()] = entry.second;
  }
  void unbind(llvm::StringRef symbol) { values.erase(symbol); }
  std::optional<int64_t> lookup(llvm::StringRef symbol) const {
    auto it = values.find(symbol);
    std::optional<int64_t> value = it == values.end() ? std::nullopt : std::optional<int64_t>(it->second);
    if (queries)
      note(symbol, value);
    return value;
  }
  /// Names and values, sorted by name.
  std::vector<std::pair<std::string, int64_t>> sorted() const;
  void bindTable(llvm::StringRef name, SizeTable table) {
    tables[name] = std::make_shared<const SizeTable>(std::move(table));
  }
  /// Null if there is none.
  std::shared_ptr<const SizeTable> lookupTable(llvm::StringRef name) const;
  /// Names and tables, sorted by name.
  std::vector<std::pair<std::string, std::shared_ptr<const SizeTable>>> sortedTables() const;

private:
  friend class RecordQueries;
  friend SizeCheck checkValue(Size size, const SizeBinding &binding);
  void note(llvm::StringRef symbol, std::optional<int64_t> value) const;
  void note(llvm::StringRef name, std::shared_ptr<const SizeTable> table) const;

  llvm::StringMap<int64_t> values;
  llvm::StringMap<std::shared_ptr<const SizeTable>> tables;
  mutable SizeQueries *queries = nullptr; ///< That are told what is looked up: RecordQueries.
};

/// A size; a pointer to an interned node. Null is "no size" and may only be tested.
class Size {
public:
  Size() = default;
  explicit Size(const SizeNode *node) : node(node) {}
  explicit operator bool() const { return node != nullptr; }
  bool operator==(Size other) const { return node == other.node; }
  bool operator!=(Size other) const { return node != other.node; }
  const SizeNode *getNode() const { return node; }
  SizeContext &getContext() const;

  /// The value if the size is a constant.
  std::optional<Rational> getConstant() const;
  /// The value if the size is a constant integer that fits.
  std::optional<int64_t> getInteger() const;
  bool isConstant(int64_t value) const { return getInteger() == value; }
  /// The symbol's name if the size is one symbol, else empty.
  llvm::StringRef getSymbol() const;
  /// Whether every binding that has a value gives an integer, as far as the form shows it: no division is left.
  bool isIntegral() const;

  Size floorDiv(Size divisor) const;
  Size ceilDiv(Size divisor) const;
  Size mod(Size divisor) const;

  /// Infix text that SizeContext::parse reads back: `2*B*D*S/(cp*tp)`, `S^2`, `ceildiv(V, tp)`, `S % cp`, `S div 2`,
  /// `load[i]`, `hist[max, sum]`.
  /// Where that would be long because calls stand in it many times, they are named first: `with(@0, S div 2, @0^2)`.
  void print(llvm::raw_ostream &os) const;
  std::string str() const;

private:
  const SizeNode *node = nullptr;
};

Size operator+(Size a, Size b);
Size operator-(Size a, Size b);
Size operator*(Size a, Size b);
/// Exact division. Division by a size that is zero gives `undefined()`.
Size operator/(Size a, Size b);
Size operator+(Size a, int64_t b);
Size operator-(Size a, int64_t b);
Size operator*(Size a, int64_t b);
Size operator/(Size a, int64_t b);
Size min(Size a, Size b);
Size max(Size a, Size b);
inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, Size size) {
  size.print(os);
  return os;
}
inline llvm::hash_code hash_value(Size size) { return llvm::hash_value(size.getNode()); }

/// Owns and interns every size of a compilation. Not thread-safe.
class SizeContext {
public:
  SizeContext();
  ~SizeContext();
  SizeContext(const SizeContext &) = delete;

  Size constant(int64_t value);
  Size constant(Rational value);
  /// The symbol of this name (letters, digits, `_`, `.`, `@`, no digit or `.` first); always the same size for one
  /// name.
  Size symbol(llvm::StringRef name);
  /// The entry of a table at these indices.
  Size lookup(llvm::StringRef table, llvm::ArrayRef<Size> indices);
  /// What a block gets where `total` is dealt out in proportion to the entries of a table in one dimension
  /// (apportion()). Of each pair the second says into how many equal blocks those of the one before are cut, and the
  /// first which one it is, or largestEntry(): that one which gets most. Without pairs it is the total. The table must
  /// come out even.
  Size share(llvm::StringRef table, Size total, llvm::ArrayRef<std::pair<Size, Size>> blocks);
  /// How many entries of such a block get anything.
  Size countShares(llvm::StringRef table, Size total, llvm::ArrayRef<std::pair<Size, Size>> blocks);
  /// In place of an index of a lookup: of all entries there the largest, or their sum.
  Size largestEntry();
  Size sumOfEntries();
  /// The sum of many sizes, without interning every sum on the way.
  Size sum(llvm::ArrayRef<Size> sizes);
  Size zero() { return constant(0); }
  Size one() { return constant(1); }
  /// Reads what Size::print writes. Nothing on a syntax error.
  std::optional<Size> parse(llvm::StringRef text);

  struct Impl;
  Impl &getImpl() { return *impl; }

private:
  std::unique_ptr<Impl> impl;
};

/// Why a size has no value under a binding.
enum class SizeError { None, UnboundSymbol, NoEntry, Overflow, TooDeep, DivisionByZero, NotAnInteger, Negative };

struct SizeValue {
  SizeError error = SizeError::None;
  /// The symbol or table that is not bound, or the lookup of an entry that there is not, where that is the error.
  std::string symbol;
  Rational value;
  explicit operator bool() const { return error == SizeError::None; }
};

/// Why a size has no value that fits 63 bits (above those: Overflow), if it has none.
struct SizeCheck {
  SizeError error = SizeError::None;
  std::string symbol; ///< Of UnboundSymbol and NoEntry.
  bool operator==(const SizeCheck &other) const { return error == other.error && symbol == other.symbol; }
};
/// For who does not need to know the value.
SizeCheck checkValue(Size size, const SizeBinding &binding);

/// Exact value of a size. Division is rational: `S*S/2` of an odd S is a fraction, not an error.
SizeValue evaluate(Size size, const SizeBinding &binding);
/// The same, which must be an integer >= 0 that fits 63 bits (a count of elements, bytes or FLOPs).
SizeValue evaluateCount(Size size, const SizeBinding &binding);
/// Replaces symbols for which `replacement` returns a size (a null size: keep).
Size substitute(Size size, llvm::function_ref<Size(llvm::StringRef symbol)> replacement);
/// The names of the symbols in a size, sorted, each once.
std::vector<std::string> collectSymbols(Size size);

/// A lookup in a size, or in the index of another.
struct SizeLookup {
  llvm::StringRef table;
  llvm::ArrayRef<Size> indices;
};
/// The lookups in a size, each once, in an order that depends on the size only.
std::vector<SizeLookup> collectLookups(Size size);

/// A call of `%`, `div`, `ceildiv`, `min` or `max` in a size, or in the argument of another call.
struct SizeCall {
  enum class Kind { Mod, FloorDiv, CeilDiv, Min, Max };
  Kind kind;
  llvm::ArrayRef<Size> args; ///< Of a division the dividend and the divisor; of `min` and `max` two or more.
};
/// The calls in a size, each once, in an order that depends on the size only.
std::vector<SizeCall> collectCalls(Size size);

/// What must hold for the sizes of a program to make sense, each recorded where it
/// arises and before anything cancels; checked once the symbols are bound.
class Obligations {
public:
  enum class Kind { Divides, Equal, Positive, AtMost };
  struct Obligation {
    Kind kind;
    Size left, right; ///< Divides: left % right == 0. AtMost: left <= right. Positive: left > 0.
    SMLoc loc;
    std::string reason; ///< What owes it, for the message: "dim KV sharded over tp".
  };
  void add(Kind kind, Size left, Size right, SMLoc loc, const llvm::Twine &reason);
  /// Reports every broken obligation with its expression, the values and the place. True if all hold.
  bool check(const SizeBinding &binding, DiagnosticEngine &diags) const;
  llvm::ArrayRef<Obligation> all() const { return obligations; }

  /// Beside what is owed, what a program would do differently at other sizes. Nothing checks it; a proof keeps it
  /// (lib/Interp/Relations.h).
  ///
  /// A condition of sizes is decided as it is where `margin` is positive.
  void noteDecision(Size margin, SMLoc loc, const llvm::Twine &condition);
  llvm::ArrayRef<Obligation> getDecisions() const { return decisions; }
  /// At a place, an `if` or a `min` or a loop, the program takes an alternative: a branch, a side, to run or not.
  void noteChoice(SMLoc loc, unsigned alternative) {
    choices[loc.getPointer()] |= uint64_t(1) << std::min(alternative, 63u);
  }
  /// By place, the alternatives that were taken there as bits.
  const std::map<const char *, uint64_t> &getChoices() const { return choices; }

private:
  using Key = std::tuple<Kind, const SizeNode *, const SizeNode *, const char *>;
  std::vector<Obligation> obligations; ///< Without repetition of (kind, left, right, loc), in order of arrival.
  std::set<Key> known;
  std::vector<Obligation> decisions; ///< All Positive, each margin once.
  std::set<const SizeNode *> knownMargins;
  std::map<const char *, uint64_t> choices;
};

} // namespace stage

namespace llvm {
template <> struct DenseMapInfo<stage::Size> {
  static stage::Size getEmptyKey() { return stage::Size(DenseMapInfo<const stage::SizeNode *>::getEmptyKey()); }
  static stage::Size getTombstoneKey() { return stage::Size(DenseMapInfo<const stage::SizeNode *>::getTombstoneKey()); }
  static unsigned getHashValue(stage::Size s) {
    return DenseMapInfo<const stage::SizeNode *>::getHashValue(s.getNode());
  }
  static bool isEqual(stage::Size a, stage::Size b) { return a == b; }
};
} // namespace llvm

#endif // STAGE_SYMBOLIC_SIZE_H
