//===- BuildProgram.cpp - from graph IR to program IR (laws L8, L10) ------===//
//
// Problem: emission and memory accounting must know, per pipeline stage, which ops
// run in which order, without a graph per stage.
//
//   graph (p = 2)                 stage 0                    stage 1
//   %x = lookup(...)      stage 0 forward { lookup;          forward { recv %x from 0;
//   %y = repeat [8](%x)             loop [0, 4);               loop [4, 8);
//   %l = loss(%y)         stage 1   send %z to 1 }             loss }
//
// Algorithm: for each virtual stage one template per kind of unit: a recv unless the
// unit is the first on its way, the top-level ops of this stage and the stage's range
// of the pipelined repeat in the order of the graph, a send unless it is the last. Ops
// without a virtual stage (computed from inputs and constants only) go to each
// template of a stage that needs their results. Then the schedule's list of units.
//
//===----------------------------------------------------------------------===//
#include "stage/Transforms/BuildProgram.h"
#include "PipelineLayout.h"
#include "ProgramLimits.h"
#include "stage/IR/Costs.h"
#include "stage/Schedule/Schedule.h"
#include "stage/Transforms/Diagnostics.h"
#include "llvm/ADT/DenseSet.h"

using namespace stage;

namespace {
class ProgramBuilder {
public:
  ProgramBuilder(Graph &graph, const PipelineLayout &layout, DiagnosticEngine &diags)
      : graph(graph), layout(layout), diags(diags) {}

  std::unique_ptr<Program> run() {
    if (!checkNumUnits(graph, layout.getNumVirtual(), diags))
      return nullptr;
    auto program = std::make_unique<Program>();
    program->graph = &graph;
    program->buffers = layout.buffers;
    program->numStages = layout.numStages;
    program->numChunks = layout.numChunks;
    program->microbatches = graph.microbatches;
    for (unsigned v = 0; v < layout.getNumVirtual(); ++v)
      program->virtualStages.emplace_back(layout.getStage(v), v / layout.numStages);
    for (unsigned stage = 0; stage < layout.numStages; ++stage)
      program->stages.push_back(buildStage(stage));
    if (!checkNumOperations(*program, diags) || !listUnits(*program))
      return nullptr;
    return program;
  }

private:
  StageProgram buildStage(unsigned stage) {
    StageProgram result;
    result.stage = stage;
    for (unsigned chunk = 0; chunk < layout.numChunks; ++chunk) {
      unsigned v = chunk * layout.numStages + stage;
      llvm::DenseSet<Op *> needed = collectRematerialised(v);
      result.templates.push_back({PassKind::Forward, chunk, buildForward(v, needed)});
      if (graph.training)
        result.templates.push_back({PassKind::Backward, chunk, buildBackward(v, needed)});
    }
    for (auto &op : graph.step)
      for (unsigned i = 0; i < layout.numChunks; ++i) {
        unsigned chunk = op->reverse ? layout.numChunks - 1 - i : i;
        unsigned v = chunk * layout.numStages + stage;
        if (op.get() == layout.stepLoop)
          appendLoop(result.step, *op, layout.ranges[v]);
        else if (getStepStages(layout, *op).test(v)) {
          appendOp(result.step, *op);
          break; // two chunks of a rank share its parameters
        }
      }
    return result;
  }

  /// Ops without a virtual stage whose results the ops of `v` need.
  llvm::DenseSet<Op *> collectRematerialised(unsigned v) {
    llvm::DenseSet<Op *> needed;
    llvm::SmallVector<Op *, 16> worklist;
    auto require = [&](Op &user) {
      // What enters the pipelined repeat is needed where its first iteration runs.
      bool enters = &user == layout.forwardLoop ? v == 0 : &user != layout.backwardLoop || v == layout.getLast();
      auto visit = [&](Value *value, Op &inner) {
        Op *producer = value->getOp() && (enters || &inner != &user) ? getTopLevelOp(value->getOp()) : nullptr;
        if (producer && isRematerialised(*producer) && needed.insert(producer).second)
          worklist.push_back(producer);
      };
      if (layout.isPipelined(user))
        forEachOutsideValue(user, layout.ranges[v].first, layout.ranges[v].second, visit);
      else
        forEachOutsideValue(user, visit);
    };
    for (Block *block : {&graph.forward, &graph.backward})
      for (auto &op : *block)
        if (layout.isPipelined(*op) || op->virtualStage == v)
          require(*op);
    while (!worklist.empty())
      require(*worklist.pop_back_val());
    return needed;
  }

  bool isRematerialised(const Op &op) const {
    return !op.virtualStage && !isSource(op) && !layout.isPipelined(op) && op.getBlock() != &graph.step;
  }

  void appendOp(std::vector<ProgramItem> &items, Op &op) {
    if (isSource(op) || op.kind == OpKind::Return || op.kind == OpKind::Yield)
      return;
    if (op.kind != OpKind::Repeat) {
      ProgramItem item;
      item.op = &op;
      items.push_back(std::move(item));
      return;
    }
    SizeValue count = evaluateCount(op.count, graph.binding);
    if (!count)
      diags.report(op.loc, diag::RepeatCountUnknown) << op.name << op.count.str();
    else
      appendLoop(items, op, {0, int64_t(count.value.num)});
  }

  static void appendLoop(std::vector<ProgramItem> &items, Op &op, std::pair<int64_t, int64_t> range) {
    if (range.first == range.second)
      return;
    ProgramItem item;
    item.kind = ProgramItem::Kind::Loop;
    item.op = &op;
    std::tie(item.begin, item.end) = range;
    items.push_back(std::move(item));
  }

  void appendBlock(std::vector<ProgramItem> &items, Block &block, unsigned v, const llvm::DenseSet<Op *> &needed) {
    for (auto &op : block) {
      if (layout.isPipelined(*op))
        appendLoop(items, *op, layout.ranges[v]);
      else if (op->virtualStage == v || (isRematerialised(*op) && needed.contains(op.get())))
        appendOp(items, *op);
    }
  }

  std::vector<ProgramItem> buildForward(unsigned v, const llvm::DenseSet<Op *> &needed) {
    std::vector<ProgramItem> items;
    if (v > 0)
      items.push_back(makeRecv(*layout.forwardLoop, v, v - 1, v == layout.getLast()));
    appendBlock(items, graph.forward, v, needed);
    if (v < layout.getLast())
      items.push_back(makeSend(*layout.forwardLoop, v, v + 1, v == 0));
    return items;
  }

  std::vector<ProgramItem> buildBackward(unsigned v, const llvm::DenseSet<Op *> &needed) {
    std::vector<ProgramItem> items;
    if (v < layout.getLast() && layout.backwardLoop)
      items.push_back(makeRecv(*layout.backwardLoop, v, v + 1, v == 0));
    appendBlock(items, graph.backward, v, needed);
    if (v > 0 && layout.backwardLoop)
      items.push_back(makeSend(*layout.backwardLoop, v, v - 1, v == layout.getLast()));
    return items;
  }

  bool runsNothing(unsigned v) const { return layout.ranges[v].first == layout.ranges[v].second; }

  /// The bodies of the first and of the last iteration that `v` runs. Where it runs none a value passes through, under
  /// the name of an argument of any.
  Block &getEntered(const Op &loop, unsigned v) const {
    auto [begin, end] = layout.ranges[v];
    return runsNothing(v) ? *loop.bodies.front() : loop.getBody(loop.reverse ? end - 1 : begin);
  }
  Block &getLeft(const Op &loop, unsigned v) const {
    auto [begin, end] = layout.ranges[v];
    return loop.getBody(loop.reverse ? begin : end - 1);
  }

  /// What arrives for the iterations of `v`; after the last of them, if it has none, the repeat's results.
  ProgramItem makeRecv(Op &loop, unsigned v, unsigned peer, bool isEnd) {
    ProgramItem item;
    item.kind = ProgramItem::Kind::Recv;
    item.peer = peer;
    for (unsigned i = 0; i < loop.getNumResults(); ++i)
      item.values.push_back(runsNothing(v) && isEnd ? loop.getResult(i) : getEntered(loop, v).getArgument(i));
    return item;
  }

  /// What leaves after the iterations of `v`: without any, what would have entered them.
  ProgramItem makeSend(Op &loop, unsigned v, unsigned peer, bool isStart) {
    ProgramItem item;
    item.kind = ProgramItem::Kind::Send;
    item.peer = peer;
    for (unsigned i = 0; i < loop.getNumResults(); ++i)
      item.values.push_back(!runsNothing(v) ? getLeft(loop, v).getTerminator()->getOperand(i)
                            : isStart       ? loop.getOperand(i)
                                            : getEntered(loop, v).getArgument(i));
    return item;
  }

  /// Without a pipeline each microbatch goes forward and back by itself.
  bool listUnits(Program &program) {
    if (graph.pipeline.units.empty() && layout.numStages > 1) {
      diags.report(graph.pipeline.loc, diag::ScheduleMissing) << int64_t(layout.numStages);
      return false;
    }
    if (!graph.pipeline.units.empty())
      return readSchedule(program);
    for (unsigned i = 0; i < program.microbatches; ++i) {
      program.stages.front().units.push_back({PassKind::Forward, i, 0});
      if (graph.training)
        program.stages.front().units.push_back({PassKind::Backward, i, 0});
    }
    return true;
  }

  bool readSchedule(Program &program) {
    Schedule schedule;
    schedule.stages = program.numStages;
    schedule.microbatches = program.microbatches;
    schedule.chunks = program.numChunks;
    schedule.loc = graph.pipeline.loc;
    for (const std::string &text : graph.pipeline.units) {
      auto units = parseUnits(text);
      if (!units) {
        diags.report(graph.pipeline.loc, diag::ScheduleUnreadable) << int64_t(schedule.units.size()) << text;
        return false;
      }
      schedule.units.push_back(std::move(*units));
    }
    return checkSchedule(schedule, diags) && takeUnits(schedule, program) && checkMessages(std::move(schedule), program);
  }

  /// Traces are for simulators whose sends wait, too.
  bool checkMessages(Schedule schedule, const Program &program) {
    if (!graph.training)
      for (std::vector<Unit> &units : schedule.units)
        llvm::erase_if(units, [](const Unit &unit) { return unit.kind != UnitKind::Forward; });
    llvm::DenseMap<const UnitTemplate *, UnitWork> known;
    return checkSends(
        schedule,
        [&](unsigned stage, const Unit &unit) {
          PassKind kind = unit.kind == UnitKind::Forward ? PassKind::Forward : PassKind::Backward;
          const UnitTemplate *found = program.stages[stage].find(kind, unit.chunk);
          auto [work, isNew] = known.try_emplace(found, UnitWork::Nothing);
          if (isNew && found)
            work->second = getWork(*found);
          return work->second;
        },
        diags);
  }

  UnitWork getWork(const UnitTemplate &unit) const {
    UnitWork work = UnitWork::Nothing;
    auto visit = [&](const Op &op) {
      if (isCollective(op.kind))
        work = UnitWork::ComputesAndCommunicates;
      else if (work == UnitWork::Nothing && hasNode(graph, op))
        work = UnitWork::Computes;
    };
    for (const ProgramItem &item : unit.items)
      if (item.kind == ProgramItem::Kind::Op)
        visit(*item.op);
      else if (item.kind == ProgramItem::Kind::Loop)
        forEachBody(item, [&](Block &body, int64_t) {
          for (auto &op : body)
            visit(*op);
        });
    return work;
  }

  /// Inference runs the forward units of the schedule, in its order.
  bool takeUnits(const Schedule &schedule, Program &program) {
    for (unsigned stage = 0; stage < schedule.stages; ++stage)
      for (const Unit &unit : schedule.units[stage]) {
        if (unit.kind != UnitKind::Forward && unit.kind != UnitKind::Backward) {
          diags.report(graph.pipeline.loc, diag::ScheduleUnitUnsupported) << unit.str() << int64_t(stage);
          return false;
        }
        PassKind kind = unit.kind == UnitKind::Forward ? PassKind::Forward : PassKind::Backward;
        if (kind == PassKind::Forward || graph.training)
          program.stages[stage].units.push_back({kind, unit.microbatch, unit.chunk});
      }
    return true;
  }

  Graph &graph;
  const PipelineLayout &layout;
  DiagnosticEngine &diags;
};
} // namespace

std::unique_ptr<Program> stage::buildProgram(Graph &graph, DiagnosticEngine &diags) {
  std::optional<PipelineLayout> layout = computePipelineLayout(graph, diags);
  return layout ? ProgramBuilder(graph, *layout, diags).run() : nullptr;
}
