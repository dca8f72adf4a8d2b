//===- Bounds.h - what a plan takes at least -------------------*- C++ -*-===//
//
// Problem: most candidates of a large space need too much memory. Which of them, without compiling them?
//
//   405e9 parameters over pp 4 and tp 8, Adam over dp 16 besides     2 bytes x 405e9 / 32 + 8 bytes x 405e9 / 512
//   = 31.6 GB
//
// Rule: the ranks of a group along the axes that may split a parameter hold it once at least, so that one of them holds
// the mean or more. An axis may split a parameter if a rule in effect names it for one of the parameter's dims, or for
// all parameters (`partition`, `pipeline`), or the type of a parameter names it. A gradient that several microbatches
// add to has a buffer of the gradients' type. An op of the model takes at least what its FLOPs take at the peak of the
// machine for the fastest type that the model or the runtime uses, and a microbatch goes through all stages, one after
// the other.
//
// Both are below the true values, whatever else a plan does: bounds exclude no plan that would have fitted.
//
// Limits: a plan that offloads has a bound of time alone, and a plan that quantizes has none. Activations are not in
// the bound of memory.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SEARCH_BOUNDS_H
#define STAGE_LIB_SEARCH_BOUNDS_H

#include "stage/Compiler/Session.h"

namespace stage {

/// What all plans of a model and a batch have in common.
struct ModelCosts {
  /// Parameters whose dims answer to the same names.
  struct Parameters {
    std::vector<std::string> dims;
    __int128 elements = 0;
  };
  std::vector<Parameters> parameters;
  bool areTrained = false;            ///< All of them.
  unsigned stateBits = 0;             ///< Of optimizer states of a parameter.
  double modelFlops = 0;              ///< Of a step, all ranks.
  double ticksPerFlop = 0;            ///< Of a rank at its peak; 0: not known.
  std::vector<std::string> namedAxes; ///< In the types of parameters.
};
/// Of a plan that was compiled.
ModelCosts findModelCosts(const Compilation &c, const Report &report);

/// Bytes of the rank that holds most; 0: nothing is known. The job must have been bound.
__int128 findLeastMemory(const Compilation &c, const ModelCosts &model);
/// Ticks of a step.
double findLeastTime(const Compilation &c, const ModelCosts &model);

} // namespace stage

#endif // STAGE_LIB_SEARCH_BOUNDS_H
