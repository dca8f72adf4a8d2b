//===- Reference.h - the program as it was written -------------*- C++ -*-===//
//
// The forward block before any pass, run on one device, and its derivative by reverse
// accumulation over the formulas of its operators. This is what the program means; it
// uses none of the rules by which `differentiate` makes backward ops. The derivative is
// itself checked against finite differences, a few parameters at a time, in a random
// direction:  (loss(p + h*d) - loss(p - h*d)) / 2h  =  sum of gradient * d.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_INTERP_REFERENCE_H
#define STAGE_LIB_INTERP_REFERENCE_H

#include "OpRunner.h"

namespace stage::interp {

class Reference {
public:
  Reference(Graph &graph, Sources &sources) : graph(graph), sources(sources) {}

  /// Whether the losses of all microbatches are finite, as far as forward can be run.
  bool isFinite();
  /// Goes on with what another part has left in caches.
  void setCaches(Caches filled) { caches = std::move(filled); }
  /// What the last microbatch has left.
  const Caches &getCaches() const { return caches; }
  /// Runs every microbatch. False after a fault or a derivative that finite differences deny, both reported.
  bool run(DiagnosticEngine &diags);

  /// The loss of every microbatch (of an inference program: nothing).
  const std::vector<double> &getLosses() const { return losses; }
  /// The gradient of the mean loss by a parameter (its ordinal) in an iteration; null: the loss does not depend on it.
  const Tensor *getGradient(unsigned param, uint64_t iteration) const;
  /// The gradient of a microbatch's loss by a value of the forward block; null if it does not depend on it.
  const Tensor *getAdjoint(const Instance &instance) const;
  /// What forward returns, per microbatch: operand `number` of `return`.
  TensorRef getOutput(unsigned number, unsigned microbatch) const { return outputs[microbatch][number]; }
  unsigned getNumGradients() const { return gradients.size(); }

private:
  using Frozen = std::map<Instance, TensorRef>;
  std::optional<Fault> runForward(llvm::ArrayRef<Step> steps, const Frozen *frozen, RankMemory &memory);
  std::optional<Fault> runBackward(llvm::ArrayRef<Step> steps, RankMemory &memory);
  std::optional<Fault> runBackwardJoin(const Step &step);
  std::optional<Fault> runBackwardOp(const Step &step, RankMemory &memory);
  double getDifference(llvm::ArrayRef<Step> steps, const RankMemory &base, llvm::ArrayRef<const Value *> moving,
                       double h);
  double getSlope(llvm::ArrayRef<const Value *> params) const;
  bool isConfirmed(llvm::ArrayRef<Step> steps, const RankMemory &base, llvm::ArrayRef<const Value *> params,
                   double &difference);
  /// In all iterations and microbatches.
  void forEachAdjoint(const Value *value, llvm::function_ref<void(const Instance &, const Tensor &)> f) const;
  double getDirection(const Value *param, uint64_t iteration, size_t element) const;
  bool checkDerivatives(llvm::ArrayRef<Step> steps, const RankMemory &base, DiagnosticEngine &diags);
  const Value *getLoss() const;
  void add(const Instance &instance, const Tensor &adjoint);

  Graph &graph;
  Sources &sources;
  std::vector<double> losses;
  std::vector<std::vector<TensorRef>> outputs;
  Caches caches; ///< What a microbatch leaves for the next ones.
  std::map<Instance, Tensor> adjoints;
  std::map<std::pair<unsigned, uint64_t>, Tensor> gradients;
};

} // namespace stage::interp

#endif // STAGE_LIB_INTERP_REFERENCE_H
