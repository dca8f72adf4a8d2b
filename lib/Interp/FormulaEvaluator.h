//===- FormulaEvaluator.h - an operator's numbers --------------*- C++ -*-===//
//
// Computes one invocation of an operator from its formula, on the positions that a
// rank works on: its results, or the gradients of its operands from those of its
// results by reverse accumulation over the formula. Neither knows anything of the
// rules that `differentiate` and propagation derive, which are what is being proved.
//
//   result[s, d] = x[s, d] * rsqrt(mean[d](x * x) + eps) * g[d]
//
// Indices run over the rank's positions; sizes (`size(e)`, the divisor of a mean) and
// positions (`t <= s`) are global. So a sum over a split index is a partial sum, and a
// nonlinear function of one is wrong, as it would be on the machine.
//
// Of an op that routes the tokens that are worked on are routed, in their order; those of other ranks are theirs to
// route. What comes from a slot without a token, or from a target that another rank has, reads as 0.
//
// An opaque operator has no formula; `makeStandIn` gives it one that depends on all it
// may depend on. Integer results of one are dealt out: 0, 1, 2, ... over all positions of
// the result, round and round below the limit. So each is a valid position of what it
// leads into, all positions are met equally often, and a rank that holds some of the tokens
// has the numbers that these have in the whole. Those by which tokens are routed are dealt
// out to the tokens of each rank (Tiles.h), so that every target is met equally often there.
//
// Values of `let`s and of reductions are kept per assignment of their free indices, so
// that a softmax costs what it should.
//
// A gradient reads operands that were saved, and operands that follow from saved results (RecoverOperands.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_INTERP_FORMULAEVALUATOR_H
#define STAGE_LIB_INTERP_FORMULAEVALUATOR_H

#include "Places.h"
#include "Tiles.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallBitVector.h"
#include <string>

namespace stage::interp {

/// One invocation of an operator.
struct Invocation {
  const OpDef *def = nullptr;
  /// Per index: its global size and the positions that are worked on.
  llvm::SmallVector<int64_t, 8> sizes;
  llvm::SmallVector<Positions, 8> positions;
  /// Per index: what a formula calls its first position (Dim::origin). Empty: 0 of all.
  llvm::SmallVector<int64_t, 8> origins;
  int64_t getOrigin(unsigned index) const { return origins.empty() ? 0 : origins[index]; }
  /// Per operand; null where it was not saved for the gradient.
  llvm::SmallVector<const Tensor *, 6> operands;
  /// What `random` draws, per element of the first result; null: drawn from `identity`.
  const Tensor *draws = nullptr;
  /// Per result: integers that are dealt out stay below.
  llvm::SmallVector<int64_t, 2> limits;
  /// Per result: how its dims are cut where its integers route; null: they are dealt out to the whole. Empty: to none.
  llvm::SmallVector<const Tiles *, 2> tiles;
  /// A load says that slots may be full while others are empty (Tiles.h): what finds none in its target is dropped.
  bool drops = false;
  /// Sums run over their indices from the last position to the first, and are off by what one rounding of all their
  /// terms may be: the same numbers but for rounding.
  bool disturbsSums = false;
  /// Tells the invocation from all others of the step: op, iteration, microbatch.
  uint64_t identity = 0;
  /// Of a unit of inference: per result the places of its positions, and what tells the op and the iteration from
  /// others. Integers that have no tiles are dealt out by these. Empty: by `identity`.
  llvm::SmallVector<std::shared_ptr<const Places>, 2> places;
  uint64_t placeIdentity = 0;
  /// Additions that stand for their second addend, and pass the gradient on to the first: what a block adds to a sum
  /// that is known of all blocks (Fold.h). Null: none.
  const llvm::DenseSet<const Formula *> *merges = nullptr;
  /// Indices that tell draws from `identity` apart; empty: those of the first result.
  llvm::ArrayRef<unsigned> drawIndices;
};

/// A number in [0, 1) that depends on all of `words`.
double drawUniform(llvm::ArrayRef<uint64_t> words);
uint64_t hashWords(llvm::ArrayRef<uint64_t> words);

class FormulaEvaluator {
public:
  /// `binding` gives sizes that are no index of the operator their values.
  FormulaEvaluator(const Invocation &invocation, OpDefTable &defs, const SizeBinding &binding);

  /// The elements of a result. Check getFault() afterwards.
  Tensor evaluate(unsigned result);
  /// Gradients of the operands `wanted`, from those of the results (null: none).
  std::vector<Tensor> differentiate(llvm::ArrayRef<const Tensor *> resultGradients, llvm::ArrayRef<unsigned> wanted);
  /// Finds elements of the operands that are null in the elements of results (null: not saved). Call before
  /// differentiate().
  void recover(llvm::ArrayRef<const Tensor *> results);
  /// An operand that is null and was read where recover() has not found it.
  std::optional<unsigned> getMissingOperand() const { return missingOperand; }
  /// What went wrong: a subscript that leads to an element that the rank does not hold. Empty: nothing.
  const std::string &getFault() const { return fault; }

private:
  struct Node {
    const Formula *formula;
    llvm::SmallVector<unsigned, 3> children;
    double number = 0;   ///< Number, SizeOf
    bool isData = false; ///< Depends on an operand.
    bool atData = false; ///< Element: a subscript depends on an operand.
    /// Element whose subscripts are the operand's own indices: how far each of them moves.
    llvm::SmallVector<std::pair<unsigned, int64_t>, 4> strides;
    bool isPlain = false;
    int memo = -1;             ///< Reduce, and roots of lets
    llvm::SmallBitVector free; ///< The indices that the value depends on.
  };
  /// Values per assignment of the free indices; and, in reverse, the adjoints of a let.
  struct Memo {
    llvm::SmallVector<unsigned, 4> indices;
    std::vector<double> values, adjoints, terms; ///< `terms`: absolute values of what an adjoint is the sum of.
    std::vector<bool> known;
  };
  using IndexSet = llvm::SmallBitVector; ///< Any number: a concatenation has an index for each operand.
  /// Of an operand that is null: the elements that recover() has found.
  struct Recovered {
    std::vector<double> values;
    std::vector<bool> known;
  };
  /// A value that recover() has found while it tries one side of a `where`: in a memo, or (memo < 0) of an operand.
  struct Finding {
    int memo;
    unsigned operand;
    size_t place;
  };

  /// The position of an index among those that are worked on, and in the whole; a compound one has its members'.
  int64_t getLocal(unsigned index) const;
  /// The same of an index that follows from where tokens are routed; nothing if none is there.
  std::optional<int64_t> findLocal(unsigned index) const;
  void routeTokens();
  int64_t getPosition(unsigned index) const;
  /// Goes to a local position of an index.
  void setLocal(unsigned index, int64_t local);
  void addStrides(unsigned index, int64_t &stride, llvm::SmallVectorImpl<std::pair<unsigned, int64_t>> &strides) const;
  IndexSet toSet(llvm::ArrayRef<unsigned> indices) const;
  unsigned build(const Formula *formula, IndexSet &free);
  int addMemo(const IndexSet &free);
  size_t getSlot(const Memo &memo) const;
  double eval(unsigned node);
  double compute(const Node &node);
  double call(const Node &node);
  void push(unsigned node, double adjoint);
  // Recovery of operands (RecoverOperands.cpp).
  void findEqualNodes();
  bool areEqual(unsigned a, unsigned b) const;
  std::optional<double> tryEval(unsigned node);
  std::optional<int64_t> tryLocate(const Node &node);
  void remember(int memo, size_t slot, double value);
  void rollBack(size_t numFindings);
  bool solve(unsigned node, double value);
  bool solveBinary(const Node &node, double value);
  bool solveCall(const Node &node, double value);
  bool solveSelect(const Node &node, double value);
  bool trySide(const Node &select, bool isTrue, double value);
  bool steer(unsigned condition, bool isTrue);
  std::optional<double> choose(unsigned node, unsigned other);
  void pushCall(const Node &node, double adjoint);
  void pushReduce(const Node &node, double adjoint);
  /// The place of an Element in its operand; nothing if the rank does not hold it.
  std::optional<int64_t> locate(const Node &node);
  template <typename Function> void forEachIn(llvm::ArrayRef<unsigned> indices, Function f);
  bool isMerge(const Formula &f) const { return in.merges && in.merges->contains(&f); }
  void fail(const std::string &text) {
    if (fault.empty())
      fault = text;
  }

  const Invocation &in;
  const OpDef &def;
  const SizeBinding &binding;
  std::vector<Node> nodes;
  std::vector<Memo> memos;
  llvm::SmallVector<unsigned, 2> roots; ///< Per result with a formula; ~0u otherwise.
  llvm::SmallVector<unsigned, 2> letRoots;
  llvm::SmallVector<IndexSet, 2> letFree;
  llvm::SmallVector<int64_t, 8> at; ///< Current local index of every index of the operator.
  /// Of an op that routes: per token its place in (target, slot), and per such place its token; -1 if it has none.
  std::vector<int64_t> placeOfToken, tokenAtPlace;
  /// How far rounding may lead a sum off of terms whose absolute values have the sum `terms`.
  static double getDisturbance(double terms, uint64_t place) {
    return (hashWords(place) & 1 ? 0x1p-53 : -0x1p-53) * terms;
  }
  std::vector<std::optional<Tensor>> gradients;
  std::vector<std::vector<double>> termsOfGradients; ///< As Memo::terms, per operand.
  std::vector<bool> active;                          ///< Per node: a gradient is wanted of something in it.
  std::string fault;
  bool reversesSums;
  std::vector<std::optional<Recovered>> recovered; ///< Per operand.
  std::optional<unsigned> missingOperand;
  std::vector<unsigned> firstEqual; ///< Per node: the first that has the same formula.
  std::vector<Finding> findings;    ///< Of sides that are tried, in order.
  unsigned numTried = 0;            ///< Sides that are tried at the moment, one in the other.
  bool mayChoose = false;
  int signOfRoot = 0; ///< Of x in x * x; 0: not known.
  bool tookRoot = false;
};

/// A fixed smooth formula for a result of an opaque operator. Its value depends on every element of every operand
/// that has, at the indices it shares with the result, the result's position, and, along an index that an invocation
/// needs all of, on all of it; and on nothing else.
const Formula *makeStandIn(const OpDef &def, unsigned result, OpDefTable &defs);

/// True for an integer result without a formula.
bool isDealt(const ResultInfo &result);
/// True if the operator draws random numbers.
bool isRandom(const OpDef &def);

} // namespace stage::interp

#endif // STAGE_LIB_INTERP_FORMULAEVALUATOR_H
