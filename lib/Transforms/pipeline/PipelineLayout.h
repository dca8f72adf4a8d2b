//===- PipelineLayout.h - how layers are laid over stages ------*- C++ -*-===//
//
// p stages of v chunks each are V = p*v virtual stages. The iterations of the repeats
// that the pipeline cuts, one behind the other (PipelineChain.h), are cut into V ranges
// in order; chunk c of stage r is virtual stage c*p + r, unless the schedule places them otherwise. For 8 layers, p =
// 2, v = 2:
//
//   virtual stage   0       1       2       3
//   layers          [0, 2)  [2, 4)  [4, 6)  [6, 8)
//   stage           0       1       0       1
//
// A schedule may have several copies of the model (stage/Schedule/Schedule.h). Here and in the graph, virtual stages
// are those of one copy; each is on one stage per copy.
//
// What partition-pipeline checks and decides, build-program reads.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRANSFORMS_PIPELINELAYOUT_H
#define STAGE_LIB_TRANSFORMS_PIPELINELAYOUT_H

#include "stage/IR/graph/PipelineChain.h"
#include "stage/IR/graph/Program.h"
#include "llvm/ADT/BitVector.h"

namespace stage {

struct PipelineLayout {
  unsigned numStages = 1, numChunks = 1, numCopies = 1;
  /// The stage and the chunk of each virtual stage, copy by copy.
  std::vector<std::pair<unsigned, unsigned>> places = {{0, 0}};
  PipelineChain chain;
  /// Its repeats in each phase, in the order of the chain; null where a phase has none.
  std::array<std::vector<Op *>, numPhaseKinds> repeats;
  llvm::DenseMap<const Op *, unsigned> numbers; ///< Of each of them in the chain.
  GradientBuffers buffers;
  llvm::DenseMap<const Op *, unsigned> placed; ///< Ops of forward, by what the strategy places.

  unsigned getNumVirtual() const { return numStages * numChunks / numCopies; }
  unsigned getLast() const { return getNumVirtual() - 1; }
  unsigned getCopy(unsigned chunk) const { return chunk / (numChunks / numCopies); }
  /// The number of a virtual stage of a copy among those of all copies: its place.
  unsigned getNumber(unsigned copy, unsigned virtualStage) const { return copy * getNumVirtual() + virtualStage; }
  /// Those that run it, in any copy.
  llvm::SmallVector<unsigned, 2> getStages(unsigned virtualStage) const;
  /// Those of a stage, by their chunks.
  llvm::SmallVector<unsigned, 4> listVirtualStages(unsigned stage) const;
  bool isPipelined(const Op &op) const { return numbers.count(&op); }
  /// The iterations [begin, end) of a repeat of the chain that a virtual stage runs.
  std::pair<int64_t, int64_t> getRange(const Op &repeat, unsigned virtualStage) const {
    return chain.getRange(numbers.lookup(&repeat), virtualStage);
  }
  /// The virtual stages that run an op of a repeat of the chain: those with iterations of its case. Of the repeat
  /// itself, those with any.
  llvm::BitVector getStagesOfLoop(const Op &inner) const;
  /// The repeats of the chain in the order in which a phase runs them: backward goes the other way.
  llvm::SmallVector<Op *, 2> listInOrder(PhaseKind kind) const;
  /// The virtual stages on which a phase begins and ends.
  unsigned getEntry(PhaseKind kind) const { return isBackward(kind) ? getLast() : 0; }
  unsigned getExit(PhaseKind kind) const { return getLast() - getEntry(kind); }
  /// Those on which its phase enters and leaves a repeat of the chain.
  unsigned getEntry(const Op &repeat) const;
  unsigned getExit(const Op &repeat) const;
  /// The repeat of a phase that carries what moves between two neighbouring virtual stages; null if nothing does.
  Op *getCarrier(PhaseKind kind, unsigned virtualStage, unsigned neighbour) const;
};

/// Cuts the chain as the strategy says. Nothing after an error: an unknown repeat, one that is not behind the one
/// before it, fewer layers than virtual stages, an uneven division without a `split`, a `split` that does not add up.
std::optional<PipelineLayout> computePipelineLayout(Graph &graph, DiagnosticEngine &diags);

/// The same, but that each repeat of the chain is a virtual stage of its own, behind a first one for what stands before
/// it: the place in the chain of all that is in none of its iterations.
std::optional<PipelineLayout> computePlaces(Graph &graph, DiagnosticEngine &diags);

/// Iterations per virtual stage, so that the largest load is as small as can be, of what the strategy says: `places`
/// has given all ops of the top level a place in the chain. Nothing after an error.
std::optional<std::vector<int64_t>> balanceStages(Graph &graph, const PipelineLayout &places, DiagnosticEngine &diags);

/// The virtual stages that compute with a value, in whatever form.
void addUseStages(const PipelineLayout &layout, const Value &value, llvm::BitVector &stages);

/// What repeats of one block depend on, in that block, with the first of them that does. Those come in the order in
/// which they run.
llvm::DenseMap<Op *, Op *> findFirstUsers(llvm::ArrayRef<Op *> repeats);

/// True for what lives on every stage that uses it: params, buffers, inputs, constants.
bool isSource(const Op &op);

/// Virtual stages where a gradient of the step block accumulates, or what it is made of.
llvm::BitVector getGradientStages(const PipelineLayout &layout, const Value &gradient);

/// Virtual stages that run a top-level op of the step block: those where the gradients it works on accumulate.
llvm::BitVector getStepStages(const PipelineLayout &layout, Op &op);

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_PIPELINELAYOUT_H
