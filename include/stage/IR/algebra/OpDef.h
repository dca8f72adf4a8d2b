//===- OpDef.h - operators as index notation -------------------*- C++ -*-===//
//
// An operator is its index notation (law L2): which index stands in which operand
// and result, a formula for an element of each result, and the costs that cannot be
// derived. The graph IR holds operators expanded (no packs) and generic in sizes:
//
//   op linear(x: [b, s, m], w: [m, n]) -> [b, s, n] = sum[m](x[b, s, m] * w[m, n]);
//
// A dim may be several indices as one, the first of them outermost: a *compound* index,
// which is one of the operator's indices, too, and has no position of its own:
//
//   op split(x: [b, (k e)]) -> (result: [b, k, e] = x[b, (k e)]);      position of (k e): k * size(e) + e
//
// It is split as the outermost of its members is; the others are whole.
//
// An operator may *route*: integers say to which position of one index each token goes, and there it takes the next
// free position of another one, of which the formula may speak as if they stood in its operand:
//
//   op dispatch(t: [b, s, d], to: [b, s, j]) -> (result: [x, c, d] = t[b, s, d]) { routes b, s, j -> x, c by to; }
//   op combine(y: [x, c, d], to: [b, s, j], w: [b, s, j]) -> (result: [b, s, d] = sum[j](w[b, s, j] * y[x, c, d]))
//     { routes b, s, j -> x, c by to; }
//
// Ranks route each what they have: c has the axes of b, s and j, and a rank the slots of its own tokens.
//
// A compute op of the graph refers to one and gives each index an extent. Facts
// that follow from the formula (is it a plain product? a sum? in which operands is
// it linear? which values does its derivative need?) are found once by analyze().
//
// Declared costs are sizes over the index names as symbols, `area` (pairs that the
// mask keeps) and `volume` (product of the first result's indices). FLOPs that are not
// declared are counted in the formula (CountFlops.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_ALGEBRA_OPDEF_H
#define STAGE_IR_ALGEBRA_OPDEF_H

#include "stage/IR/algebra/Types.h"
#include "llvm/Support/Allocator.h"
#include <memory>

namespace stage {

/// A node of an element formula. Formulas are trees owned by a FormulaArena.
struct Formula {
  enum class Kind : uint8_t {
    Number,  ///< `number`
    SizeOf,  ///< `size`, over index names: `rsqrt(e)` has SizeOf(e) inside
    Index,   ///< the value of index `index`: the `t` of `t <= s`
    Element, ///< operand `operand` at subscripts `children`
    Let,     ///< the let binding `operand` of the op
    Reduce,  ///< `reduce` over `indices` of children[0]
    Call,    ///< function `function` of `children`
    Negate,
    Add,
    Sub,
    Mul,
    Div, ///< arithmetic of children
    Less,
    LessEqual,
    Equal,
    And,
    Or,
    Not,    ///< conditions
    Select, ///< children[0] ? children[1] : children[2]
    Random, ///< `random(p)`: 1/p with probability p, else 0; the same in forward and backward
  };
  /// Element functions a formula may call.
  enum class Function : uint8_t { Exp, Log, Sqrt, Rsqrt, Erf, Tanh, Sigmoid, Sin, Cos, Abs, Max, Min, Floor };

  Kind kind;
  Function function = Function::Exp;
  ReduceKind reduce = ReduceKind::Sum;
  bool isMean = false;                      ///< Reduce: divided by the number of elements
  unsigned operand = 0;                     ///< Element, Let
  unsigned index = 0;                       ///< Index
  double number = 0;                        ///< Number
  Size size;                                ///< SizeOf
  llvm::ArrayRef<unsigned> indices;         ///< Reduce
  llvm::ArrayRef<const Formula *> children; ///< in order
};
std::optional<Formula::Function> parseFunction(llvm::StringRef name);
llvm::StringRef getName(Formula::Function function);

/// One index of an operator.
struct IndexInfo {
  std::string name;
  bool whole = false; ///< `whole i`: an invocation needs all of it
  bool fold = false;  ///< `fold t`: all of it, though it may be visited in blocks
  /// `fold t by p`: an element at p of a result is made of every size(p)-th position of t, from p on. Where p is split,
  /// t is dealt out in turn over the same axis, and so each rank folds what it has.
  std::optional<unsigned> by = std::nullopt;
  /// Of a compound index its parts, outermost first, which stand before it; else empty.
  llvm::SmallVector<unsigned, 2> members;
  bool isCompound() const { return !members.empty(); }
};

struct OperandInfo {
  std::string name;
  llvm::SmallVector<unsigned, 4> indices; ///< Into OpDef::indices, one per dim.
};

struct ResultInfo {
  std::string name;
  llvm::SmallVector<unsigned, 4> indices;
  std::optional<DType> dtype;       ///< Absent: as the first float operand.
  const Formula *formula = nullptr; ///< Null: opaque, or a saved extra without a formula (mask, lse).
  bool extra = false;               ///< Not visible to the program: `saves lse: f32[b, s]` makes one.
};

/// Which pairs of a row index s and a column index t count.
struct Mask {
  enum class Kind : uint8_t {
    Full,   ///< `full(s, t)`: all
    Causal, ///< `causal(s, t, o)`: t <= s + o; o rows have been before
    Window, ///< `window(s, t, w)`: s - w < t <= s, the last w columns
    Blocks, ///< `blocks(s, t, n)`: t <= s, both in the same block of n
  };
  Kind kind = Kind::Causal;
  unsigned rows = 0, columns = 0; ///< Indices.
  Size amount;                    ///< o (null: 0), w or n, global.
};
/// `routes b, s, j -> x, c by to`: token (b, s, j) goes to position to[b, s, j] of x, and there, in the order of the
/// tokens, to the next free position of c.
struct Routing {
  llvm::SmallVector<unsigned, 4> tokens; ///< The indices of the operand that routes, in its order.
  unsigned target = 0, slot = 0;         ///< x, c
  unsigned operand = 0;                  ///< Of the op, not of its backward.
  /// Found by analyze(): the results stand at (x, c), else at tokens.
  bool toSlots = false;
  /// Choices without a slot are further choices of a target that has the token already, or of one elsewhere: none is
  /// dropped.
  bool isOnce = false;

  /// The indices that follow from the others wherever an element of a result is, and those others.
  llvm::SmallVector<unsigned, 4> getRouted() const;
  llvm::SmallVector<unsigned, 4> getRouting() const;
  bool isRouted(unsigned index) const {
    return toSlots ? llvm::is_contained(tokens, index) : index == target || index == slot;
  }
};

llvm::StringRef getName(Mask::Kind kind);
std::optional<Mask::Kind> parseMaskKind(llvm::StringRef name);
/// Whether a mask of this kind needs its third argument, or may have one.
bool needsAmount(Mask::Kind kind);
bool takesAmount(Mask::Kind kind);

/// What FLOPs are counted under (docs/Memory.md, M17).
enum class FlopClass : uint8_t { Contraction, Attention, Other };
std::optional<FlopClass> parseFlopClass(llvm::StringRef name);
llvm::StringRef getName(FlopClass flopClass);

/// One of several products that the program makes at once, as one kernel does: `part 1 of qkv`. Of the gradients of an
/// operand that the products have in common each is an addend: `addend 1 of qkv.dx`.
struct KernelPart {
  std::string kernel; ///< Empty: of none.
  unsigned number = 0;
  bool isAddend = false;
};

/// A product of operands, each once and at the indices of its declaration, that stands alone or as an addend in the
/// formula of a result.
struct ProductTerm {
  unsigned result;
  llvm::SmallVector<unsigned, 4> operands;
};

/// FLOPs that a formula costs: `count` per element of `indices`.
struct FlopTerm {
  FlopClass flopClass;
  llvm::SmallVector<unsigned, 4> indices; ///< Ascending.
  int64_t count;
};

/// FLOPs per class. Never null.
struct FlopCounts {
  Size contraction, attention, other;
  Size &operator[](FlopClass flopClass) {
    return flopClass == FlopClass::Contraction ? contraction : flopClass == FlopClass::Attention ? attention : other;
  }
  Size getTotal() const { return contraction + attention + other; }
};

struct OpDef {
  std::string name;
  std::vector<IndexInfo> indices;
  std::vector<OperandInfo> operands;
  std::vector<ResultInfo> results;
  std::vector<std::pair<std::string, const Formula *>> lets;
  bool opaque = false; ///< No formula; every result depends on all of every operand that shares its indices.
  SMLoc loc;

  // Declared costs. Null: derived.
  Size flops; ///< Of a forward invocation.
  /// `class = attention`: what all FLOPs of the op and of its backward count under. Absent: declared FLOPs are of
  /// `flopClass`, those of the formula of the class of their node.
  std::optional<FlopClass> declaredClass;
  Size bytes;             ///< Moved; derived: operands + results.
  Size backwardFlops;     ///< Model FLOPs of the backward invocation.
  Size backwardRecompute; ///< What a fused backward computes again, counted apart.
  /// `saves`: values kept for backward. Absent: derived from the formula.
  bool declaresSaves = false;
  llvm::SmallVector<unsigned, 4> savedOperands;
  llvm::SmallVector<unsigned, 2> savedResults; ///< Extras are always saved.
  std::optional<Mask> mask;                    ///< What `area` counts.
  std::optional<Routing> routing;
  bool stopGradient = false;
  KernelPart part;

  /// For the backward of another op: the op, and which of its operands get a
  /// gradient (one result each, in order). Operands of this op are the saved
  /// operands, the saved results and then the gradients of the results in
  /// `vjpGradients`. No formula of its own: it is the vector-Jacobian product of the op's.
  const OpDef *vjpOf = nullptr;
  llvm::SmallVector<unsigned, 4> vjpOperands;
  llvm::SmallVector<unsigned, 2> vjpGradients;

  // Found by analyze().
  bool isProduct = false; ///< [sum over] a product of operands, each once, at plain indices
  /// Of an op all of whose results are sums of such products, more than one altogether: these. Else empty.
  std::vector<ProductTerm> terms;
  bool isSum = false;         ///< x + y + ... of operands at plain indices
  bool isElementwise = false; ///< nothing is reduced, no data-dependent subscript, no whole index
  bool isLookup = false;      ///< some subscript depends on an operand
  bool isView = false;        ///< the operand's elements in their order, with dims split or merged: nothing is moved
  llvm::SmallVector<bool, 4> linearIn;         ///< homogeneous linear in this operand
  llvm::SmallVector<bool, 4> derivativeNeeds;  ///< the derivative needs this operand's values
  llvm::SmallVector<bool, 4> dataDependent;    ///< stands in a subscript or condition only: no gradient
  llvm::SmallVector<bool, 8> reduced;          ///< index is absent from every visible result
  llvm::SmallVector<ReduceKind, 8> reduceKind; ///< of a reduced index
  /// A sharding of this index is legal: not whole, not folded, and, if reduced, reduced outermost and linearly.
  llvm::SmallVector<bool, 8> shardable;
  /// That of declared FLOPs: contraction if the formula has a sum of products.
  FlopClass flopClass = FlopClass::Other;
  /// What the formula costs, or, of a backward, the gradients of the op's formula: one term per class and set of
  /// indices.
  std::vector<FlopTerm> flopTerms;

  /// How the op, or the op of which it is the backward, routes; null if it does not.
  const Routing *getRouting() const {
    const OpDef &def = vjpOf ? *vjpOf : *this;
    return def.routing ? &*def.routing : nullptr;
  }
  std::optional<unsigned> findIndex(llvm::StringRef name) const;
  /// The compound of these members, which is added if there is none. Its name is `(k e)`, and is set again by
  /// nameCompounds() where those of the members change.
  unsigned getCompound(llvm::ArrayRef<unsigned> members);
  void nameCompounds();
  /// The index whose axes are those of `index`: the outermost member of a compound one.
  unsigned getCarrier(unsigned index) const {
    return indices[index].isCompound() ? indices[index].members.front() : index;
  }
  /// The indices that a list of dims has positions of: compound ones are replaced by their members.
  llvm::SmallVector<unsigned, 4> expand(llvm::ArrayRef<unsigned> dims) const;
  /// Iterated indices of an operand or result position.
  unsigned getNumVisibleResults() const;
};

/// The indices over which a product of an op with several (OpDef::terms) ranges: those of its operands.
llvm::SmallVector<unsigned, 8> listIndices(const OpDef &def, const ProductTerm &term);

/// Fills the derived fields. Call once after building or parsing an OpDef.
void analyze(OpDef &def);

/// The operands and results whose values the backward of an analyzed op is given, in the order in which it takes them.
void listSaved(const OpDef &def, llvm::SmallVectorImpl<unsigned> &operands, llvm::SmallVectorImpl<unsigned> &results);
/// The backward of `def`: saved values and gradients of the results `gradients` in, gradients of `operands` out.
/// Its results have no element type yet.
OpDef makeBackward(const OpDef &def, llvm::ArrayRef<unsigned> gradients, llvm::ArrayRef<unsigned> operands);

/// What the formulas of an op cost, each node over the indices that it ranges over (law L2).
std::vector<FlopTerm> countFlops(const OpDef &def);
/// What the gradients of the operands `wanted` cost, given those of the results `given` and all values of forward.
std::vector<FlopTerm> countGradientFlops(const OpDef &def, llvm::ArrayRef<unsigned> given,
                                         llvm::ArrayRef<unsigned> wanted);

/// FLOPs of a term where the indices have the (local) `sizes`.
Size getFlops(SizeContext &ctx, const FlopTerm &term, llvm::ArrayRef<Size> sizes);
/// FLOPs of an invocation whose indices have the (local) `sizes`, with `area` pairs under
/// the mask (null: no mask).
FlopCounts getFlops(SizeContext &ctx, const OpDef &def, llvm::ArrayRef<Size> sizes, Size area);
/// What a fused backward computes again; null if nothing.
Size getRecomputeFlops(SizeContext &ctx, const OpDef &def, llvm::ArrayRef<Size> sizes, Size area);
/// Bytes moved as the op declares them; null if it does not, or is the backward of one that does.
Size getDeclaredBytes(SizeContext &ctx, const OpDef &def, llvm::ArrayRef<Size> sizes, Size area);

/// Owns formulas and operators of one graph. Equal operators (same printed text) are one.
class OpDefTable {
public:
  explicit OpDefTable(SizeContext &sizes) : sizes(sizes) {}
  /// Goes on from a table that must outlive this one and does not change any more: what it has is here as well.
  void goOnFrom(const OpDefTable &base);
  const Formula *create(Formula node, llvm::ArrayRef<unsigned> indices, llvm::ArrayRef<const Formula *> children);
  const Formula *number(double value);
  const Formula *element(unsigned operand, llvm::ArrayRef<unsigned> indices);
  /// A formula of another op with its indices and operands replaced: index i by `indices[i]`, operand i by
  /// `operands[i]`. It has no lets, and its sizes are of indices that keep their names.
  const Formula *translate(const Formula *formula, llvm::ArrayRef<unsigned> indices, llvm::ArrayRef<unsigned> operands);
  const Formula *call(Formula::Function function, llvm::ArrayRef<const Formula *> arguments);
  const Formula *binary(Formula::Kind kind, const Formula *a, const Formula *b);
  const Formula *sum(llvm::ArrayRef<unsigned> indices, const Formula *body);
  /// `a + b + ...`, at least one, as a tree whose depth is the logarithm of their number.
  const Formula *addUp(llvm::ArrayRef<const Formula *> addends);
  /// The n-ary sum of operands that all have `numDims` dims: `add(x0, x1, ...)`.
  const OpDef *getSum(unsigned numDims, unsigned numAddends);
  /// `cast(x)`: the same elements in another type.
  const OpDef *getCast(unsigned numDims, DType type);
  /// `quantize(x)`, or another name: the same elements in the same type, kept otherwise (TensorType::quantization).
  const OpDef *getCopy(unsigned numDims, llvm::StringRef name);
  /// Analyzes and interns; a clash of names with a different operator gets a number (`linear.1`).
  const OpDef *add(OpDef def);
  llvm::ArrayRef<const OpDef *> all() const { return defs; }
  const OpDef *find(llvm::StringRef name) const;
  SizeContext &getSizes() { return sizes; }

private:
  SizeContext &sizes;
  llvm::BumpPtrAllocator arena;
  /// The last number that was tried for a name.
  unsigned getLastNumber(llvm::StringRef name) const;
  const OpDef *findText(llvm::StringRef text) const;

  const OpDefTable *base = nullptr;
  std::vector<const OpDef *> defs; ///< Those of the base first.
  std::vector<std::unique_ptr<OpDef>> owned;
  llvm::StringMap<const OpDef *> byText; ///< printed text without the name's number
  llvm::StringMap<const OpDef *> byName;
  llvm::StringMap<unsigned> lastNumber;
};

/// Prints `op name(...) -> ... = ...;`, which the IR parser reads back.
void print(llvm::raw_ostream &os, const OpDef &def);

/// Whether an op, or the op of which it is the backward, has several results of which some have an index and others
/// lack it. Where it is split the latter are copies, and of their gradients each rank has an addend.
bool isOfSomeResults(const OpDef &def, unsigned index);

} // namespace stage

#endif // STAGE_IR_ALGEBRA_OPDEF_H
