//===- PartitionPipeline.cpp - which stage runs what ----------------------===//
//
// Problem: a strategy pipelines repeats in a row over an axis of p ranks. Everything else
// of the step must find its stage, and what several stages need must be there.
//
//   forward                       virtual stage (p = 2)
//   %wte = param                  each that uses it
//   %x = lookup(%tokens, %wte)    0
//   repeat layers(%x)             iterations [0, L/2) on 0, [L/2, L) on 1
//   %loss = head(%y, %wte)        1; backward mirrored
//
//   step: update %wte, %g         %t = all_reduce %g over pp, stages 0, 1
//                                 update %wte, %t
//
// Algorithm: an op that depends on a repeat of the pipeline runs where the results of the
// last of those are, one that they depend on where the first of those that do is entered
// (PipelineChain.h); other ops run where their operands are, else where their users
// are. Parameters live on each stage that uses them; one from outside of the pipelined
// repeats that their iterations use lives on each stage that runs some. Inputs and
// buffers, what is computed from them and constants only, and the forms in which a
// parameter is used get no virtual stage: each stage makes them for itself. A gradient that accumulates on several
// stages is reduced over those once per step, after the reductions over the data axes, so that every copy of the
// parameter gets the same update (laws L6, L10). So is that of a layer which several copies of the model hold
// (bidirectional pipelines), over the stages that hold it.
//
// What is made on one stage and used on others passes those between (CrossingValues.h), and its gradient back.
//
// Limits: a phase moves values in one direction. Contributions to a tied parameter
// that are partial in different ways must all be there on each of its stages.
//
//===----------------------------------------------------------------------===//
#include "CrossingValues.h"
#include "stage/IR/graph/Program.h"
#include "stage/IR/graph/Rule.h"
#include "stage/Schedule/BalancedSplit.h"
#include "stage/Support/Origins.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/Suggestions.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace stage;

namespace {
class Partitioner {
public:
  Partitioner(Graph &graph, const PipelineLayout &layout, DiagnosticEngine &diags)
      : graph(graph), layout(layout), diags(diags) {}

  void run() {
    unsigned errorsBefore = diags.getNumErrors();
    checkAxis();
    assignAll();
    addUpOnTheWay(graph, layout);
    dropOrderBetweenStages();
    checkCrossings();
    checkIdle();
    if (Block *step = graph.findPhase(PhaseKind::Step); step && diags.getNumErrors() == errorsBefore)
      assignStep(*step);
  }

  /// Of each phase of a microbatch.
  void assignAll() {
    llvm::SmallVector<Block *, 4> phases = listPhases();
    for (Block *phase : phases)
      assign(*phase);
    for (Block *phase : llvm::reverse(phases))
      settlePure(*phase);
    gatherWhereNeeded();
  }

private:
  llvm::SmallVector<Block *, 4> listPhases() {
    llvm::SmallVector<Block *, 4> phases;
    for (Block &phase : graph.getPhases())
      if (phase.getPhase() != PhaseKind::Step)
        phases.push_back(&phase);
    return phases;
  }

  /// Where a rule shards a dim of a value over the axis of the pipeline, which is what to change; if none names the
  /// dim, where any rule shards over it.
  std::optional<SMLoc> findShardRule(const Value &value) const {
    std::optional<unsigned> place = value.sharding.getDimOf(*graph.pipeline.axis);
    const Dim *dim = place ? value.type.shape[*place].dim : nullptr;
    std::optional<SMLoc> found;
    for (const Rule &rule : graph.rules) {
      if (rule.kind != RuleKind::Shard || !rule.loc.isValid() ||
          !llvm::is_contained(rule.axes, AxisId(*graph.pipeline.axis)))
        continue;
      if (dim && llvm::is_contained(rule.dims, dim->name))
        return rule.loc;
      found = found ? found : rule.loc;
    }
    return found;
  }

  /// The ranks along the pipeline's axis run different layers: it cannot split a value too.
  void checkAxis() {
    if (layout.numStages == 1)
      return;
    AxisSet axis = AxisSet(1) << *graph.pipeline.axis;
    bool reported = false;
    graph.walk([&](Op &op) {
      for (auto &result : op.getResults()) {
        if (reported || !((result->sharding.getSharded() | result->sharding.partial) & axis))
          continue;
        SMLoc loc = findShardRule(*result).value_or(op.loc);
        DiagnosticBuilder error = diags.report(loc, diag::PipelineAxisShards)
                                  << graph.mesh[*graph.pipeline.axis].name << describe(*result);
        setOrigin(error, {graph.pipeline.loc, graph.pipeline.loc});
        if (graph.pipeline.loc.isValid())
          error.note(SMLoc(), diag::PipelineAxisOwn)
              << llvm::join(llvm::map_range(graph.mesh.getAxes(), [](const Axis &known) { return known.name; }), ", ");
        if (loc != op.loc)
          error.note(op.loc, diag::SplitsHere) << describe(*result);
        reported = true;
      }
    });
  }

  /// Gives the ops of a phase their virtual stages.
  void assign(Block &block) {
    llvm::SmallVector<Op *, 2> repeats = layout.listInOrder(block.getPhase());
    llvm::DenseMap<const Op *, unsigned> places; // in the order in which they run
    for (Op *repeat : repeats) {
      places[repeat] = places.size();
      if (repeat->getNumResults() && layout.getNumVirtual() > 1 && !hasMessages(block.getPhase()))
        diags.report(repeat->loc, diag::PipelineCarriesUnsent) << repeat->name << getName(block.getPhase());
    }
    llvm::DenseMap<Op *, Op *> firstUsers = findFirstUsers(repeats);
    llvm::DenseMap<const Op *, const Op *> following; // by op, the last of the repeats that it depends on
    for (auto &op : block) {
      op->virtualStage.reset();
      if (isSource(*op))
        continue;
      const Op *follows = nullptr;
      bool pure = !holdsParameters(*op), isForm = isFormOfParameter(*op);
      std::optional<unsigned> stageOfOperand, lastOfOperands;
      forEachOutsideValue(*op, [&](Value *value, Op &) {
        Op *producer = value->getOp() ? getTopLevelOp(value->getOp()) : nullptr;
        if (!producer)
          return; // an argument of the repeat of which this is the backward
        const Op *behind = places.count(producer) ? producer : following.lookup(producer);
        if (behind && (!follows || places.lookup(behind) > places.lookup(follows)))
          follows = behind;
        pure &= isForm || (isSource(*producer) && producer->kind != OpKind::Param && producer->kind != OpKind::Cache) ||
                (isPure.contains(producer) && !isFormOfParameter(*producer));
        if (auto stage = getStageOfResults(*producer)) {
          stageOfOperand = stage;
          lastOfOperands = std::max(lastOfOperands.value_or(0), *stage);
        }
      });
      if (places.count(op.get()))
        continue;
      if (pure && op->kind != OpKind::Return && !layout.placed.count(op.get()))
        isPure.insert(op.get());
      else if (std::optional<unsigned> stage = getStageOfOrigin(*op))
        op->virtualStage = stage;
      else if (auto placed = layout.placed.find(op.get()); placed != layout.placed.end())
        op->virtualStage = placed->second;
      else if (op->kind == OpKind::Return)
        op->virtualStage = layout.placed.empty() ? layout.getLast() : lastOfOperands.value_or(layout.getLast());
      else if (follows)
        op->virtualStage = layout.placed.empty() ? layout.getExit(*follows)
                                                 : std::max(layout.getExit(*follows), lastOfOperands.value_or(0));
      else if (const Op *user = firstUsers.lookup(op.get()))
        op->virtualStage = layout.getEntry(*user);
      else
        op->virtualStage = stageOfOperand;
      if (follows)
        following[op.get()] = follows;
    }
    placeWithUsers(block, layout.getExit(block.getPhase()));
    if (!layout.placed.empty() && block.getPhase() == PhaseKind::Forward)
      placeBeforeUsers(block, firstUsers, repeats);
  }

  /// What is not placed itself runs no later than what needs it, before the chain.
  void placeBeforeUsers(Block &block, const llvm::DenseMap<Op *, Op *> &firstUsers, llvm::ArrayRef<Op *> repeats) {
    for (auto &op : llvm::reverse(block)) {
      if (!op->virtualStage || layout.placed.count(op.get()) || firstUsers.lookup(op.get()) != repeats.front())
        continue;
      for (auto &result : op->getResults())
        for (auto [user, number] : result->getUses())
          if (Op *top = getTopLevelOp(user); top->virtualStage && top->getBlock() == &block)
            op->virtualStage = std::min(*op->virtualStage, *top->virtualStage);
    }
  }

  /// With placements every virtual stage is there for something.
  void checkIdle() {
    if (layout.placed.empty())
      return;
    llvm::BitVector works(layout.getNumVirtual());
    for (auto &op : graph.getForward()) {
      if (layout.isPipelined(*op))
        works |= layout.getStagesOfLoop(*op);
      else if (op->virtualStage && op->kind != OpKind::Return)
        works.set(*op->virtualStage);
    }
    works.flip();
    for (unsigned v : works.set_bits())
      diags.report(graph.pipeline.loc, diag::PlaceLeavesNothing) << int64_t(v);
  }

  /// Gradients are made where their op computed, and added up where the value was made; what is moved is moved where it
  /// is.
  std::optional<unsigned> getStageOfOrigin(const Op &op) const {
    const Op *origin = op.origin;
    if (!origin && op.kind == OpKind::Compute && op.def->isSum && op.getResult()->primal)
      origin = op.getResult()->primal->getOp();
    if (origin && !layout.isPipelined(*origin) && !origin->getBlock()->getParent())
      return origin->virtualStage;
    return std::nullopt;
  }

  /// What is gathered of a value that is used on several stages each of them gathers: the smaller form moves.
  void gatherWhereNeeded() {
    CrossingValues uses(graph, layout);
    for (Block *phase : listPhases())
      for (auto &op : llvm::reverse(*phase))
        if (op->kind == OpKind::AllGather && op->virtualStage) {
          llvm::BitVector stages(layout.getNumVirtual());
          for (auto &result : op->getResults())
            stages |= uses.getUseStages(*result);
          stages.reset(*op->virtualStage);
          if (stages.any())
            op->virtualStage.reset();
        }
  }

  /// A reshard or a copy of a parameter, which each stage that uses it makes for itself.
  static bool isFormOfParameter(const Op &op) {
    return isMove(op.kind) && llvm::all_of(op.getOperands(), [](const Value *value) {
             while (value->getOp() && isMove(value->getOp()->kind))
               value = getMoved(*value);
             return value->getOp() && value->getOp()->kind == OpKind::Param;
           });
  }

  /// Repeats declare parameters and buffers, and accumulate gradients; a top-level accumulation uses a parameter.
  static bool holdsParameters(Op &op) {
    bool holds = false;
    for (auto &body : op.bodies)
      Graph::walk(*body, [&](Op &inner) { holds |= isState(inner.kind) || inner.kind == OpKind::Accumulate; });
    return holds;
  }

  /// What depends on parameters only runs where it is used.
  void placeWithUsers(Block &block, unsigned otherwise) {
    for (auto it = block.end(); it != block.begin();) {
      Op *op = (--it)->get();
      if (op->virtualStage || isSource(*op) || isPure.contains(op) || layout.isPipelined(*op))
        continue;
      for (auto &result : op->getResults())
        for (auto [user, number] : result->getUses())
          if (auto stage = getTopLevelOp(user)->virtualStage)
            op->virtualStage = stage;
      if (!op->virtualStage)
        op->virtualStage = otherwise;
    }
  }

  /// What is computed from inputs and constants for one virtual stage only runs there.
  void settlePure(Block &block) {
    for (auto it = block.end(); it != block.begin();) {
      Op *op = (--it)->get();
      if (!isPure.contains(op))
        continue;
      llvm::SmallSetVector<int, 2> stages; // -1: several
      for (auto &result : op->getResults())
        for (auto [user, number] : result->getUses()) {
          Op *top = getTopLevelOp(user);
          bool enters = top == user && layout.isPipelined(*top);
          if (enters)
            stages.insert(layout.getEntry(*top));
          else
            stages.insert(top->virtualStage ? int(*top->virtualStage) : -1);
        }
      if (stages.size() == 1 && stages[0] >= 0)
        op->virtualStage = stages[0];
    }
  }

  /// Where the results of a top-level op are; nothing if wherever they are needed.
  std::optional<unsigned> getStageOfResults(const Op &op) const {
    return layout.isPipelined(op) ? layout.getExit(op) : op.virtualStage;
  }

  /// What a permute runs behind is an order of its rank (unroll-rings): on another stage there is none to keep.
  void dropOrderBetweenStages() {
    for (Block *phase : listPhases())
      for (auto &op : *phase)
        if (op->kind == OpKind::Permute && op->virtualStage)
          llvm::erase_if(op->after, [&](const OrderEdge &edge) {
            std::optional<unsigned> stage = getHome(layout, *edge.value);
            return stage && stage != op->virtualStage;
          });
  }

  /// What moves between stages must be used behind where it is made, in the direction of its phase.
  void checkCrossings() {
    CrossingValues crossings(graph, layout);
    for (const CrossingValues::Unreached &use : crossings.getUnreached()) {
      if (!reportedCrossings.insert(use.value).second)
        continue;
      diags.report(use.value->loc, diag::PipelineSkipsStages)
          .with(describe(*use.value), use.home, use.stage, getName(use.value->getBlock()->getPhase()))
          .note(use.user->loc, diag::ValueUsedHere);
    }
  }

  llvm::SmallSetVector<unsigned, 4> getStages(const llvm::BitVector &virtualStages) const {
    llvm::SmallSetVector<unsigned, 4> stages;
    for (unsigned v : virtualStages.set_bits())
      for (unsigned stage : layout.getStages(v))
        stages.insert(stage);
    return stages;
  }

  /// Makes one gradient of those that came in several forms: what is added first is reduced once.
  void addGradients(Op &update) {
    Value *param = update.getOperand(0), *like = update.getOperand(1);
    auto owner = std::make_unique<Op>(OpKind::Compute, update.loc);
    owner->def = graph.defs.getSum(like->type.getNumDims(), update.getNumOperands() - 1);
    owner->scope = update.scope;
    owner->extents.assign(like->type.shape.begin(), like->type.shape.end());
    owner->indexAxes.assign(like->sharding.dims.begin(), like->sharding.dims.end());
    for (Value *gradient : update.getOperands().drop_front())
      owner->addOperand(gradient);
    Value *sum = owner->addResult(like->type, like->path);
    sum->sharding = like->sharding;
    sum->loc = like->loc;
    update.getBlock()->insertBefore(&update, std::move(owner));
    update.clearOperands();
    update.addOperand(param);
    update.addOperand(sum);
  }

  /// If the gradient of an update of the top level accumulates on several stages, sums it over them.
  void reduceOverUsers(Op &update) {
    Value *param = update.getOperand(0);
    llvm::BitVector gradientStages = getStepStages(layout, update);
    llvm::BitVector useStages(layout.getNumVirtual());
    addUseStages(layout, *param, useStages);
    llvm::SmallSetVector<unsigned, 4> stages = getStages(gradientStages);
    bool everywhere = true;
    for (unsigned stage : getStages(useStages))
      everywhere &= stages.contains(stage);
    for (Value *gradient : update.getOperands().drop_front())
      everywhere &= getStages(getGradientStages(layout, *gradient)).size() == stages.size();
    if (!everywhere) {
      diags.report(param->loc, diag::PipelineTiedGradients) << describe(*param);
      return;
    }
    if (stages.size() < 2)
      return;
    std::vector<unsigned> group(stages.begin(), stages.end());
    llvm::sort(group);
    reduceOver({group}, update);
  }

  /// Of what repeats update, each copy of the model has seen microbatches of its own.
  void reduceOverCopies(Op &repeat) {
    llvm::SmallVector<Op *, 8> updates;
    for (auto &body : repeat.bodies)
      Graph::walk(*body, [&](Op &op) {
        if (op.kind == OpKind::Update)
          updates.push_back(&op);
      });
    std::set<std::vector<unsigned>> groups;
    llvm::BitVector stages =
        layout.isPipelined(repeat) ? layout.getStagesOfLoop(repeat) : getStepStages(layout, repeat);
    for (unsigned v : stages.set_bits()) {
      auto holders = layout.getStages(v);
      groups.emplace(holders.begin(), holders.end());
    }
    for (Op *update : updates)
      reduceOver({groups.begin(), groups.end()}, *update);
  }

  void reduceOver(const std::vector<std::vector<unsigned>> &groups, Op &update) {
    Value *param = update.getOperand(0);
    if (isOnHost(*param)) {
      diags.report(param->loc, diag::PipelineTiedOnHost) << describe(*param);
      return;
    }
    if (update.getNumOperands() > 2)
      addGradients(update);
    Value *gradient = update.getOperand(1);
    auto owner = std::make_unique<Op>(OpKind::AllReduce, update.loc);
    owner->scope = update.scope;
    owner->axes = {PlacedAxis(*graph.pipeline.axis)};
    for (const std::vector<unsigned> &group : groups)
      owner->stages.emplace_back(group.begin(), group.end());
    owner->addOperand(gradient);
    Value *sum = owner->addResult(gradient->type, gradient->path);
    sum->sharding = gradient->sharding;
    sum->loc = gradient->loc;
    update.getBlock()->insertBefore(&update, std::move(owner));
    update.setOperand(1, sum);
  }

  /// A step op of one stage is marked; one of several stages runs on each that accumulated its gradient.
  void assignStep(Block &step) {
    for (auto &op : step) {
      if (op->kind == OpKind::Update)
        reduceOverUsers(*op);
      else if (op->kind == OpKind::Repeat && layout.numCopies > 1)
        reduceOverCopies(*op);
    }
    for (auto &op : step) {
      op->virtualStage.reset();
      if (layout.isPipelined(*op))
        continue;
      llvm::BitVector stages = getStepStages(layout, *op);
      if (stages.count() == 1)
        op->virtualStage = stages.find_first();
    }
  }

  Graph &graph;
  const PipelineLayout &layout;
  DiagnosticEngine &diags;
  /// Top-level ops computed from inputs, buffers and constants only, and the forms of parameters.
  llvm::DenseSet<Op *> isPure;
  llvm::DenseSet<const Value *> reportedCrossings;
};
} // namespace

/// `split = balanced(...)` becomes a list.
static bool settleSplit(Graph &graph, DiagnosticEngine &diags) {
  std::optional<PipelineLayout> places = computePlaces(graph, diags);
  if (!places)
    return false;
  Partitioner(graph, *places, diags).assignAll();
  std::optional<std::vector<int64_t>> split = diags.hasErrors() ? std::nullopt : balanceStages(graph, *places, diags);
  if (!split)
    return false;
  graph.pipeline.split = std::move(*split);
  graph.pipeline.balance = Balance::None;
  return true;
}

void stage::partitionPipeline(Graph &graph, DiagnosticEngine &diags) {
  if (graph.pipeline.balance != Balance::None && !settleSplit(graph, diags))
    return;
  if (std::optional<PipelineLayout> layout = computePipelineLayout(graph, diags))
    Partitioner(graph, *layout, diags).run();
}
