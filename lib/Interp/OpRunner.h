//===- OpRunner.h - one op on one rank -------------------------*- C++ -*-===//
//
// Runs an op on what a rank holds. The same code serves the unsharded run (one device,
// every tensor whole, resharding does nothing) and each rank of the sharded one.
//
// Backward of a fused operator. The op is given the values that it saved, and reads no others. Where
// the formula of the derivative asks for an operand that was not saved (a softmax saves its
// result only), RecoverOperands.cpp finds operands that have the same results. On one device the
// gradient must be the same at the true operands: else it does not follow from what was saved. Saved
// results must equal those of the unsharded run. An opaque operator has no formula from which anything could follow:
// its stand-in takes operands that were not saved from the unsharded run.
//
// The optimizer is not in the IR; an update stands for any that depends smoothly on
// all of parameter and gradient: p - (g + tanh(g)/2) / 10.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_INTERP_OPRUNNER_H
#define STAGE_LIB_INTERP_OPRUNNER_H

#include "Sources.h"
#include "Steps.h"
#include "stage/IR/algebra/Fold.h"
#include <cmath>
#include <map>
#include <set>

namespace stage::interp {

struct Invocation;

/// A value in an iteration of a microbatch.
struct Instance {
  const Value *value = nullptr;
  uint64_t iteration = 0;
  unsigned microbatch = 0;
  bool operator<(const Instance &other) const {
    return std::tie(value, iteration, microbatch) < std::tie(other.value, other.iteration, other.microbatch);
  }
  bool operator==(const Instance &other) const { return !(*this < other) && !(other < *this); }
};
/// The instance that a step means. Values of the step block belong to no microbatch.
Instance getInstance(const Value *value, const Frame &frame, unsigned microbatch);
/// The same among what a rank holds: each of its chunks has values of the top level of its own.
Instance getHeldInstance(const Value *value, const Frame &frame, unsigned microbatch);

/// What caches hold, by cache, iteration and entry; the others what is drawn for them.
using Caches = std::map<std::tuple<const Value *, uint64_t, int64_t>, TensorRef>;

/// What one rank holds.
struct RankMemory {
  std::map<Instance, TensorRef> values;
  std::set<Instance> freed;
  /// Gradient buffers: by the first of the accumulations that share one, and the iteration.
  std::map<std::pair<const Op *, uint64_t>, Tensor> buffers;
  /// Parameters after the step, and the gradients that they were updated with; and as the step before has left them.
  std::map<std::pair<const Value *, uint64_t>, TensorRef> updated, gradients, stored;
  Caches caches, onHost;
  /// Parameters that were read.
  std::set<std::pair<const Value *, uint64_t>> params;
  /// Iterations of repeats that the rank's stage runs, by the repeat's number; others are run in full.
  std::map<unsigned, std::vector<std::pair<int64_t, int64_t>>> ranges;
};

/// Something that cannot be executed, with the words for the message.
struct Fault {
  const Op *op = nullptr;
  const Value *value = nullptr;
  std::string text;
  /// The op is a backward that needs this operand of its forward, which was not saved.
  std::optional<unsigned> unsaved = std::nullopt;
};

Fault makeFault(const Op *op, const Value *value, const llvm::Twine &text);
/// `[0..3, 8..11]`
/// Adds the elements of a piece to those of the whole in the same places.
void addInto(Tensor &whole, const Tensor &piece);
/// The positions of these indices.
llvm::SmallVector<Positions, 4> pick(llvm::ArrayRef<Positions> positions, llvm::ArrayRef<unsigned> indices);
std::string describePositions(const Positions &positions);

/// How far rounding alone may lead. Sums of many terms, or of large ones that cancel, round to more than `tolerance`.
/// How far is measured: the unsharded program runs once more, with every sum in reverse order and off by 2^-53 of the
/// absolute values of its terms. Numbers that cancel exactly on one device so count as what is left of them on others:
/// 0 and 1e-19 are the same where terms are 1e-3. Differences up to a multiple of the measure are accepted.
class Rounding {
public:
  using Key = std::pair<const Value *, uint64_t>;
  Rounding() = default;
  Rounding(const RankMemory &once, const RankMemory &again);

  /// Of any element of a value.
  double get(const Instance &instance) const { return lookup(values, instance); }
  /// Of the gradient that a parameter is updated with, and of the parameter afterwards.
  double getGradient(const Key &param) const { return lookup(gradients, param); }
  double getUpdated(const Key &param) const { return lookup(updated, param); }

private:
  template <typename Map> static double lookup(const Map &map, const typename Map::key_type &key) {
    auto it = map.find(key);
    return it == map.end() ? 0 : it->second;
  }
  std::map<Instance, double> values;
  std::map<Key, double> gradients, updated;
};

class OpRunner {
public:
  /// An unsharded run; one that `isDisturbed` rounds everything another way (see Rounding).
  OpRunner(Graph &graph, Sources &sources, bool isDisturbed = false)
      : graph(graph), sources(sources), pieces(graph), buffers(graph), isDisturbed(isDisturbed) {}
  /// A sharded one, which knows the values of the unsharded one and how they round.
  OpRunner(Graph &graph, Sources &sources, const std::map<Instance, TensorRef> &unsharded, const Rounding &rounding)
      : graph(graph), sources(sources), pieces(graph), buffers(graph), unsharded(&unsharded), rounding(&rounding) {}

  /// Runs an op other than a collective. A negative rank is the one device of the unsharded run.
  std::optional<Fault> run(const Step &step, int64_t rank, RankMemory &memory);
  /// What a rank reads as a value; a fault if it does not hold it.
  TensorRef read(const Value *value, const Step &step, int64_t rank, RankMemory &memory, std::optional<Fault> &fault);
  /// A value that the rank has neither computed nor received so far.
  bool isMissing(const Value *value, const Step &step, const RankMemory &memory) const;
  /// Checks that a tensor is the piece that the value's sharding says, and keeps it.
  std::optional<Fault> store(const Value *value, const Frame &frame, unsigned microbatch, TensorRef tensor,
                             int64_t rank, RankMemory &memory, const Op *op);
  /// Fills a cache with what has arrived for it.
  void setCache(const Step &step, int64_t rank, RankMemory &memory, TensorRef content) {
    getCache(step.value, step, rank, memory) = std::move(content);
  }
  const PieceMap &getPieces() const { return pieces; }
  /// Of an op that ranks do one after the other (see RunCompute.cpp), calls `f` with what each of them works on.
  std::optional<Fault> forEachShare(const Op &op, const Invocation &whole,
                                    llvm::function_ref<std::optional<Fault>(Invocation &)> f) const;
  /// The positions that a rank has of a piece that is joined, or on one device those of all ranks; a fault if `f` is
  /// false.
  std::optional<Fault> forEachPiece(const Op &join, unsigned operand, int64_t rank,
                                    llvm::function_ref<bool(llvm::ArrayRef<Positions>)> f) const;

private:
  std::optional<Fault> runCompute(const Step &step, int64_t rank, RankMemory &memory);
  bool setPositions(const Op &op, int64_t rank, AxisSet among, Invocation &in, std::optional<Fault> &fault) const;
  std::optional<Fault> compute(const Step &step, Invocation &in, llvm::ArrayRef<TensorRef> operands, RankMemory &memory,
                               std::vector<Tensor> &results);
  bool isFirstOfAlike(int64_t rank, AxisSet axes) const;
  std::optional<Fault> computeByRank(const Step &step, const Invocation &whole, llvm::ArrayRef<TensorRef> operands,
                                     RankMemory &memory, std::vector<Tensor> &results);
  std::optional<Fault> computeGradients(const Step &step, const Invocation &forward, llvm::ArrayRef<TensorRef> operands,
                                        RankMemory &memory, std::vector<Tensor> &results);
  std::optional<Fault> runJoin(const Step &step, int64_t rank, RankMemory &memory);
  const Fold *getFold(const Op &op);
  std::optional<Fault> runAccumulate(const Step &step, int64_t rank, RankMemory &memory);
  std::optional<Fault> addUp(llvm::ArrayRef<Value *> operands, const llvm::Twine &what, const Step &step, int64_t rank,
                             RankMemory &memory, Tensor &sum);
  std::optional<Fault> runAddNorm(const Step &step, int64_t rank, RankMemory &memory);
  std::optional<Fault> runUpdate(const Step &step, int64_t rank, RankMemory &memory);
  std::optional<Fault> runWrite(const Step &step, int64_t rank, RankMemory &memory);
  /// `sequence`: that of one of several sequences in a unit.
  TensorRef &getCache(const Value *cache, const Step &step, int64_t rank, RankMemory &memory,
                      std::optional<int64_t> sequence = std::nullopt);
  /// Puts positions, counted from 0, into a cache, where they begin with `first`, and gives `all` that the result has
  /// then; rolling, behind what is there, and gives as many of the last. Nothing if they are another piece than the
  /// cache.
  static std::optional<Tensor> appendTo(TensorRef &content, const Tensor &added, unsigned dim, int64_t first,
                                        const Positions &all, bool isRolling);
  // In units of several sequences (PackedRun.cpp).
  bool worksBySequence(const Op &op) const;
  std::optional<Fault> computeBySequence(const PackedUnit &unit, const Step &step, int64_t rank,
                                         const Invocation &whole, llvm::ArrayRef<TensorRef> operands,
                                         RankMemory &memory, std::vector<Tensor> &results);
  std::optional<Fault> appendBySequence(const PackedUnit &unit, const Step &step, int64_t rank, RankMemory &memory);
  std::optional<Fault> copyCache(const PackedUnit &unit, const Step &step, int64_t rank, RankMemory &memory);
  std::optional<Fault> runAppend(const Step &step, int64_t rank, RankMemory &memory);
  std::optional<Fault> runSlice(const Step &step, int64_t rank, RankMemory &memory);
  /// The op whose backward `op` is, if that can be told from what it saved.
  const Op *findForward(const Op &op) const;
  std::vector<TensorRef> addUnsaved(const Step &step, const Op *origin, Invocation &in, const RankMemory &memory);
  std::optional<Fault> compareWithTrue(const Step &step, const Op *origin, Invocation in,
                                       llvm::ArrayRef<const Tensor *> saves, llvm::ArrayRef<const Tensor *> gradients,
                                       const RankMemory &memory, llvm::ArrayRef<Tensor> results);
  TensorRef getSource(const Value *value, const Step &step, int64_t rank) const;

  Graph &graph;
  Sources &sources;
  PieceMap pieces;
  GradientBuffers buffers;
  std::map<std::pair<const OpDef *, unsigned>, std::unique_ptr<Fold>> folds; ///< By the op and the folded index.
  const std::map<Instance, TensorRef> *unsharded = nullptr;
  const Rounding *rounding = nullptr;
  const bool isDisturbed = false;
};

/// Proofs accept errors up to this part of what is expected: sums in another order, in double precision.
constexpr double tolerance = 1e-9;

/// How far a number is from what is expected and how far it may be, both as parts of `largest`, the largest element of
/// the expected tensor (so that where small differences remain of large numbers neither seems large).
struct Deviation {
  /// Rounding alone may lead as far as `rounding`.
  Deviation(double found, double expected, double rounding, double largest);

  double error; ///< Infinite if either is not a number.
  double accepted;
  /// The whole tensor is what rounding leaves of numbers that cancel, as the gradient of a bias before a softmax is.
  bool isOfRounding;
  bool isAccepted() const { return std::isfinite(error) && error <= accepted; }
};
double getLargest(const Tensor &tensor);
/// What proofs take for an optimizer's update: not linear in the gradient, so that a sum of two updates is none.
double getUpdated(double before, double gradient);
/// What proofs scale gradients by, so that it matters however small they are: falls with their norm.
double getClipped(double sumOfSquares);

} // namespace stage::interp

#endif // STAGE_LIB_INTERP_OPRUNNER_H
