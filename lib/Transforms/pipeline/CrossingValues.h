//===- CrossingValues.h - values that skip stages --------------*- C++ -*-===//
//
// Problem: a value of the top level may be made on one virtual stage and used on others: what an
// encoder makes and every layer reads, a mask that is computed once, what stands before a
// norm that has a stage of its own. What a repeat carries moves anyway (CarriedSlots.h).
//
//   virtual stage   0               1                   2                  3
//   forward         %e = encode     layers read %e      layers read %e     %l = loss
//   messages             x, %e            x, %e                 x
//
// Algorithm: what is made on h and last used on f passes all virtual stages between, with
// the messages of its phase: each receives it and, but for f, sends it on. What no stage
// makes (computed from inputs and constants only, forms of parameters, gathered forms of
// what crosses) each stage makes that needs it.
//
// Limits: a phase sends in one direction, and some send nothing. A gradient that is complete behind a repeat only, as
// one that is reduced beside it, does not go into what the repeat carries: the two are added up where the value was
// made.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRANSFORMS_CROSSINGVALUES_H
#define STAGE_LIB_TRANSFORMS_CROSSINGVALUES_H

#include "PipelineLayout.h"

namespace stage {

class CrossingValues {
public:
  /// All top-level ops have their virtual stages.
  CrossingValues(Graph &graph, const PipelineLayout &layout);

  /// What moves from a virtual stage to its neighbour, beside what is carried: a value and its number in the phase.
  llvm::SmallVector<std::pair<Value *, unsigned>, 2> list(PhaseKind kind, unsigned from, unsigned to) const;

  /// A use that no message reaches.
  struct Unreached {
    Value *value;
    unsigned home, stage; ///< Virtual stages.
    Op *user;
  };
  llvm::ArrayRef<Unreached> getUnreached() const { return unreached; }

  /// The virtual stages that need a value of the top level.
  llvm::BitVector getUseStages(const Value &value);

private:
  void visit(Value &value, unsigned home, PhaseKind kind);
  /// Those that run the use of a value by an op.
  llvm::BitVector getStagesOfUse(Op &user);

  struct Crossing {
    Value *value;
    unsigned home, furthest;
  };
  const PipelineLayout &layout;
  std::array<std::vector<Crossing>, numPhaseKinds> crossings;
  std::vector<Unreached> unreached;
  llvm::DenseMap<const Op *, llvm::BitVector> makers; ///< Of ops that each stage makes for itself.
};

/// Where a value of the top level is made; nothing if wherever it is needed.
std::optional<unsigned> getHome(const PipelineLayout &layout, const Value &value);

/// Gradients of one value that come from several stages are added up on their way to the one where it was made: what
/// one stage adds to what arrives there moves on in its place.
void addUpOnTheWay(Graph &graph, const PipelineLayout &layout);

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_CROSSINGVALUES_H
