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
// Algorithm: what the step does before its updates goes to a phase of its own, `reduce`; a
// repeat of the step becomes one in each of the two. An add_norm behind each gradient that
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
#include "llvm/ADT/DenseSet.h"

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
    Block &reduce = graph.getPhase(PhaseKind::Reduce);
    split(*step, reduce);
    for (auto &op : reduce)
      for (auto &body : op->bodies)
        if (!body->getTerminator())
          body->append(std::make_unique<Op>(OpKind::Yield, op->loc));
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

  /// Moves all that no update makes to the end of a block of the other phase.
  void split(Block &from, Block &to) {
    std::vector<Op *> ops;
    for (auto &op : from)
      ops.push_back(op.get());
    for (Op *op : ops) {
      if (op->kind == OpKind::Yield)
        continue;
      if (op->kind == OpKind::Repeat) {
        splitRepeat(*op, to);
        continue;
      }
      bool isBehind = op->kind == OpKind::Update || op->kind == OpKind::Write;
      for (const Value *operand : op->getOperands())
        isBehind |= operand->getOp() && behind.contains(operand->getOp());
      if (isBehind)
        behind.insert(op);
      else
        to.append(from.take(op));
      if (op->kind == OpKind::Update)
        addNorm(*op, to);
    }
  }

  void splitRepeat(Op &repeat, Block &to) {
    auto loop = std::make_unique<Op>(static_cast<const OpAttributes &>(repeat));
    for (auto &body : repeat.bodies) {
      Block &other = loop->addBody(graph);
      split(*body, other);
    }
    to.append(std::move(loop));
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
  llvm::DenseSet<const Op *> behind;
  llvm::DenseMap<const Op *, int64_t> copiesOf;
};
} // namespace

void stage::clipGradients(Graph &graph, DiagnosticEngine &diags) {
  if (!graph.clip)
    return;
  if (std::optional<PipelineLayout> layout = computePipelineLayout(graph, diags))
    GradientClipper(graph, *layout, diags).run();
}
