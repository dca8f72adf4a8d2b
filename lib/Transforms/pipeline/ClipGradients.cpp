//===- ClipGradients.cpp - the norm of all gradients before any update ----===//
//
// Problem: where a step clips (`train(..., clip = 1.0)`), how far a parameter moves depends
// on all gradients, whereas the step updates each as soon as its own is reduced. The norm
// reads every gradient once, in the parts in which it is by then, ranks that have the same
// part count once, and one reduction over all ranks comes before any update:
//
//                                          reduce {
//   step {                                   %g = all_reduce(%dw) over dp
//     repeat layers {                        ... and those of layers, and of each:
//       %g = all_reduce(%dw) over dp   ->    %n = add_norm(%g) : f32[] partial(pp, dp, tp)
//       update(%w, %g)                     }
//     }                                    step {
//   }                                        %m = all_reduce(%n) over (pp, dp, tp)
//                                            repeat layers { update(%w, %g, %m) clipped }
//                                          }
//
// Algorithm: what the step does before its updates goes to a phase of its own, `reduce`
// (SplitStep.h). An add_norm behind each gradient that
// an update takes adds to one sum per rank, whatever its iteration and stage. Of elements
// that several ranks have, along axes that do not split the gradient and on the stages that
// share a parameter, each adds its share.
//
// Limits: a pipeline with a stage that trains nothing is refused.
//
//===----------------------------------------------------------------------===//
#include "PipelineLayout.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Passes.h"
#include "training/SplitStep.h"

using namespace stage;

namespace {
class GradientClipper {
public:
  GradientClipper(Graph &graph, const PipelineLayout &layout, DiagnosticEngine &diags)
      : graph(graph), layout(layout), diags(diags) {}

  void run() {
    Block *step = graph.findPhase(PhaseKind::Step);
    if (!graph.clip || !step || !findStages(*step))
      return;
    splitStep(graph, *step, [&](Op &update, Block &reduce) { addNorm(update, reduce); });
    updateWith(*step, *appendReduction(*step));
  }

private:
  /// How many stages update each parameter, before anything moves. False if there is none to clip, or after an error.
  bool findStages(Block &step) {
    llvm::BitVector stages(layout.numStages);
    graph.walk([&](Op &op) {
      if (op.kind != OpKind::Update)
        return;
      llvm::BitVector own(layout.numStages);
      Op &top = *getTopLevelOp(&op);
      bool isCut = layout.isPipelined(top); // each stage updates iterations of its own
      llvm::BitVector virtualStages = isCut ? layout.getStagesOfLoop(op) : getStepStages(layout, top);
      for (unsigned v : virtualStages.set_bits())
        for (unsigned stage : layout.getStages(v))
          own.set(stage);
      stages |= own;
      copiesOf[&op] = isCut ? layout.numCopies : own.count();
    });
    if (!copiesOf.empty() && !stages.all()) {
      diags.report(graph.pipeline.loc, diag::ClippedStage);
      return false;
    }
    return !copiesOf.empty();
  }

  void addNorm(Op &update, Block &to) {
    Value *gradient = update.getOperand(1);
    auto owner = std::make_unique<Op>(OpKind::AddNorm, update.loc);
    owner->scope = update.scope;
    owner->virtualStage = update.virtualStage;
    owner->copies = copiesOf.lookup(&update) * countCopies(gradient->sharding);
    for (Value *addend : update.getOperands().drop_front())
      owner->addOperand(addend);
    TensorType type;
    type.dtype = DType::F32;
    norm = owner->addResult(type, gradient->path);
    norm->loc = gradient->loc;
    norm->sharding.partial = getAxes();
    to.append(std::move(owner));
  }

  /// Ranks of a stage that have the same elements.
  int64_t countCopies(const Sharding &sharding) const {
    AxisSet same = getAxes() & ~sharding.getSharded();
    if (graph.pipeline.axis)
      same &= ~(AxisSet(1) << *graph.pipeline.axis);
    return graph.mesh.getGroupSize(same);
  }

  AxisSet getAxes() const {
    AxisSet axes = 0;
    for (AxisId axis = 0; axis < graph.mesh.getAxes().size(); ++axis)
      if (graph.mesh[axis].size > 1)
        axes |= AxisSet(1) << axis;
    return axes;
  }

  Value *appendReduction(Block &step) {
    if (!getAxes())
      return norm;
    auto owner = std::make_unique<Op>(OpKind::AllReduce, norm->loc);
    owner->axes = toList(getAxes());
    owner->addOperand(norm);
    Value *sum = owner->addResult(norm->type, "norm");
    sum->loc = norm->loc;
    step.insertBefore(step.begin()->get(), std::move(owner));
    return sum;
  }

  static void updateWith(Block &block, Value &sum) {
    for (auto &op : block) {
      for (auto &body : op->bodies)
        updateWith(*body, sum);
      if (op->kind != OpKind::Update)
        continue;
      op->addOperand(&sum);
      op->clips = true;
    }
  }

  Graph &graph;
  const PipelineLayout &layout;
  DiagnosticEngine &diags;
  Value *norm = nullptr; ///< What any add_norm makes: they make one sum.
  llvm::DenseMap<const Op *, int64_t> copiesOf;
};
} // namespace

void stage::clipGradients(Graph &graph, DiagnosticEngine &diags) {
  if (!graph.clip)
    return;
  if (std::optional<PipelineLayout> layout = computePipelineLayout(graph, diags))
    GradientClipper(graph, *layout, diags).run();
}
