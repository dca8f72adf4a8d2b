//===- PipelineLayout.h - how layers are laid over stages ------*- C++ -*-===//
//
// p stages of v chunks each are V = p*v virtual stages. The iterations of the
// pipelined repeat are cut into V ranges in order; chunk c of stage r is virtual
// stage c*p + r. For 8 layers, p = 2, v = 2:
//
//   virtual stage   0       1       2       3
//   layers          [0, 2)  [2, 4)  [4, 6)  [6, 8)
//   stage           0       1       0       1
//
// What partition-pipeline checks and decides, build-program reads.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRANSFORMS_PIPELINELAYOUT_H
#define STAGE_LIB_TRANSFORMS_PIPELINELAYOUT_H

#include "stage/IR/Program.h"
#include "llvm/ADT/BitVector.h"

namespace stage {

struct PipelineLayout {
  unsigned numStages = 1, numChunks = 1;
  /// Per virtual stage the iterations [begin, end) of the pipelined repeat.
  std::vector<std::pair<int64_t, int64_t>> ranges;
  /// The pipelined repeat in each phase; null if there is none.
  std::array<Op *, numPhaseKinds> loops = {};
  GradientBuffers buffers;

  unsigned getNumVirtual() const { return numStages * numChunks; }
  unsigned getLast() const { return getNumVirtual() - 1; }
  unsigned getStage(unsigned virtualStage) const { return virtualStage % numStages; }
  /// The virtual stages that run an op of the pipelined repeat: those with iterations of its case.
  llvm::BitVector getStagesOfLoop(const Op &inner) const;
  bool isPipelined(const Op &op) const { return llvm::is_contained(loops, &op); }
  Op *getLoop(PhaseKind kind) const { return loops[unsigned(kind)]; }
  /// The virtual stages on which a phase enters and leaves the pipelined repeat: backward goes the other way.
  unsigned getEntry(PhaseKind kind) const { return isBackward(kind) ? getLast() : 0; }
  unsigned getExit(PhaseKind kind) const { return getLast() - getEntry(kind); }
};

/// Cuts the pipelined repeat as the strategy says. Nothing after an error: an unknown loop, fewer layers than virtual
/// stages, an uneven division without a `split`, a `split` that does not add up.
std::optional<PipelineLayout> computePipelineLayout(Graph &graph, DiagnosticEngine &diags);

/// True for what lives on every stage that uses it: params, buffers, inputs, constants.
bool isSource(const Op &op);

/// Virtual stages where a gradient of the step block accumulates, or what it is made of.
llvm::BitVector getGradientStages(const PipelineLayout &layout, const Value &gradient);

/// Virtual stages that run a top-level op of the step block: those where the gradients it works on accumulate.
llvm::BitVector getStepStages(const PipelineLayout &layout, Op &op);

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_PIPELINELAYOUT_H
