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
// unit is the first on its way, the top-level ops of this stage and the stage's ranges
// of the pipelined repeats in the order of the graph, a send unless it is the last; of
// what the repeat that is cut there (PipelineChain.h) carries moves what is read
// (CarriedSlots.h), beside what skips stages (CrossingValues.h), and between chunks of one stage it is handed on
// without a message. Messages may go in pieces (MessagePieces.h). Ops without a virtual stage (computed from inputs and
// constants only) go to each template of a stage that needs their results. What inference samples goes back to the
// stages whose next units begin with it. Then the schedule's list of units, which runs each phase of the graph, and no
// other, for every microbatch; of backward in one and its halves the one or the others. A stage has the templates that
// it runs.
//
//===----------------------------------------------------------------------===//
#include "stage/Transforms/pipeline/BuildProgram.h"
#include "CarriedSlots.h"
#include "CrossingValues.h"
#include "MessagePieces.h"
#include "PipelineLayout.h"
#include "ProgramLimits.h"
#include "stage/IR/graph/Costs.h"
#include "stage/IR/graph/Packing.h"
#include "stage/Schedule/KnownSchedules.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/sharding/CheckSizes.h"
#include "stage/Walk/Arrivals.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"
#include <set>

using namespace stage;

namespace {
class ProgramBuilder {
public:
  ProgramBuilder(Graph &graph, const PipelineLayout &layout, KnownSchedules &known, DiagnosticEngine &diags)
      : graph(graph), layout(layout), known(known), diags(diags), crossings(graph, layout), pieces(graph) {
    for (Block &phase : graph.getPhases())
      if (!isOncePerStep(phase.getPhase()))
        kinds.push_back(phase.getPhase());
    // Copies stand in front of the units that go forward.
    std::stable_partition(kinds.begin(), kinds.end(), movesCaches);
    // Before `differentiate` backward does nothing.
    if (graph.training && llvm::none_of(kinds, isBackward))
      kinds.push_back(PhaseKind::Backward);
  }

  std::unique_ptr<Program> run() {
    graph.walk([&](Op &op) {
      if (op.ring)
        diags.report(op.loc, diag::RingNotUnrolled) << op.def->name << op.def->indices[*op.ring].name;
      if (splitsSequences(op))
        diags.report(op.loc, diag::PackedRowsSplit) << op.def->name;
    });
    if (diags.hasErrors())
      return nullptr;
    if (!checkNumUnits(graph, layout.getNumVirtual(), kinds.size(), diags) || !findFedStages())
      return nullptr;
    auto program = std::make_unique<Program>();
    program->graph = &graph;
    program->buffers = layout.buffers;
    program->numStages = layout.numStages;
    program->numChunks = layout.numChunks;
    program->numCopies = layout.numCopies;
    program->microbatches = graph.microbatches;
    program->virtualStages = layout.places;
    for (unsigned stage = 0; stage < layout.numStages; ++stage)
      program->stages.push_back(buildStage(stage));
    if (!checkNumOperations(*program, diags) || !listUnits(*program))
      return nullptr;
    pieces.warnOfNone(diags);
    for (StageProgram &stage : program->stages) {
      for (PhaseKind kind : {PhaseKind::Reduce, PhaseKind::Step})
        if (stage.find(kind, 0))
          stage.units.push_back({kind, 0, 0});
      std::set<std::pair<PhaseKind, unsigned>> run;
      for (const Unit &unit : stage.units)
        run.insert({unit.kind, unit.chunk});
      // Forward has the parameters and caches of a stage, also where it only decodes.
      llvm::erase_if(stage.templates, [&](const UnitTemplate &unit) {
        return unit.kind != PhaseKind::Forward && !run.count({unit.kind, unit.chunk});
      });
    }
    return program;
  }

private:
  StageProgram buildStage(unsigned stage) {
    StageProgram result;
    result.stage = stage;
    llvm::SmallVector<unsigned, 4> ofStage = layout.listVirtualStages(stage);
    for (unsigned chunk = 0; chunk < ofStage.size(); ++chunk) {
      llvm::DenseSet<Op *> needed = collectRematerialised(ofStage[chunk]);
      copy = layout.getCopy(chunk);
      for (PhaseKind kind : kinds)
        result.templates.push_back({kind, chunk, buildUnit(kind, ofStage[chunk], needed)});
    }
    for (PhaseKind kind : {PhaseKind::Reduce, PhaseKind::Step})
      if (Block *step = graph.findPhase(kind))
        if (std::vector<ProgramItem> items = buildStep(*step, stage); !items.empty())
          result.templates.push_back({kind, 0, std::move(items)});
    return result;
  }

  std::vector<ProgramItem> buildStep(Block &step, unsigned stage) {
    std::vector<ProgramItem> items;
    llvm::SmallVector<unsigned, 4> ofStage = layout.listVirtualStages(stage);
    llvm::sort(ofStage); // in the order of the layers
    for (auto &op : step)
      for (unsigned i = 0; i < ofStage.size(); ++i) {
        unsigned v = ofStage[op->reverse ? ofStage.size() - 1 - i : i];
        if (layout.isPipelined(*op))
          appendLoop(items, *op, layout.getRange(*op, v));
        else if (getStepStages(layout, *op).test(v)) {
          appendOp(items, *op);
          break; // two chunks of a rank share its parameters
        }
      }
    return items;
  }

  /// Ops without a virtual stage whose results the ops of `v` need.
  llvm::DenseSet<Op *> collectRematerialised(unsigned v) {
    llvm::DenseSet<Op *> needed;
    llvm::SmallVector<Op *, 16> worklist;
    auto require = [&](Op &user) {
      // What enters a pipelined repeat is needed where that is entered.
      bool enters = !layout.isPipelined(user) || v == layout.getEntry(user);
      auto visit = [&](Value *value, Op &inner) {
        Op *producer = value->getOp() && (enters || &inner != &user) ? getTopLevelOp(value->getOp()) : nullptr;
        if (producer && isRematerialised(*producer) && needed.insert(producer).second)
          worklist.push_back(producer);
      };
      if (layout.isPipelined(user)) {
        auto [begin, end] = layout.getRange(user, v);
        forEachOutsideValue(user, begin, end, visit);
      } else {
        forEachOutsideValue(user, visit);
      }
    };
    for (Block &phase : graph.getPhases())
      for (auto &op : phase)
        if (!isOncePerStep(phase.getPhase()) && (layout.isPipelined(*op) || op->virtualStage == v))
          require(*op);
    while (!worklist.empty())
      require(*worklist.pop_back_val());
    return needed;
  }

  bool isRematerialised(const Op &op) const {
    return !op.virtualStage && !isSource(op) && !layout.isPipelined(op) && !isOncePerStep(op.getBlock()->getPhase());
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
        appendLoop(items, *op, layout.getRange(*op, v));
      else if (const Op &maker = op->kind == OpKind::Release ? *op->getOperand(0)->getOp() : *op;
               maker.virtualStage == v || (isRematerialised(maker) && needed.contains(&maker)))
        appendOp(items, *op);
    }
  }

  std::vector<ProgramItem> buildUnit(PhaseKind kind, unsigned v, const llvm::DenseSet<Op *> &needed) {
    std::vector<ProgramItem> items;
    unsigned entry = layout.getEntry(kind), exit = layout.getExit(kind);
    int step = entry <= exit ? 1 : -1; // to the next virtual stage on its way
    if (v != entry)
      appendMessage(items, ProgramItem::Kind::Recv, kind, v, v - step);
    if (Block *phase = graph.findPhase(kind))
      appendBlock(items, *phase, v, needed);
    if (v != exit)
      appendMessage(items, ProgramItem::Kind::Send, kind, v, v + step);
    if (fedStages.any() && isForward(kind))
      appendTokens(items, kind, v);
    return items;
  }

  /// The stages that begin with tokens that units before have sampled. False if these are elsewhere than they are
  /// needed.
  bool findFedStages() {
    fedStages.resize(layout.getNumVirtual());
    for (Block &phase : graph.getPhases())
      for (auto &op : phase) {
        if (op->kind != OpKind::Input || !op->isFed)
          continue;
        fedStages |= crossings.getUseStages(*op->getResult());
        for (Block &sampling : graph.getPhases())
          if (isForward(sampling.getPhase()))
            if (const Value &token = *sampling.getTerminator()->getOperands().back();
                !(token.sharding == op->getResult()->sharding)) {
              diags.report(op->loc, diag::TokensElsewhere)
                  << stage::describe(token) << stage::describe(*op->getResult());
              return false;
            }
      }
    return true;
  }

  /// What is sampled goes from the stage that makes it to those that begin with it. A unit has the recv of its own
  /// tokens: who begins with these is another one.
  void appendTokens(std::vector<ProgramItem> &items, PhaseKind kind, unsigned v) {
    Value *token = graph.findPhase(kind)->getTerminator()->getOperands().back();
    std::optional<unsigned> home = getHome(layout, *token);
    for (unsigned to : fedStages.set_bits()) {
      if (!home || to == *home || (v != to && v != *home))
        continue;
      ProgramItem item;
      item.kind = v == to ? ProgramItem::Kind::Recv : ProgramItem::Kind::Send;
      item.peer = v == to ? *home : to;
      item.isBlocking = v != to && graph.pipeline.send == MessageMode::Blocking;
      item.append(token, ProgramItem::skipping);
      items.push_back(std::move(item));
    }
  }

  /// What a repeat carries between two virtual stages, and what else moves there.
  void appendMessage(std::vector<ProgramItem> &items, ProgramItem::Kind message, PhaseKind kind, unsigned v,
                     unsigned peer) {
    bool isRecv = message == ProgramItem::Kind::Recv;
    Op *carrier = layout.getCarrier(kind, v, peer);
    auto skipping = isRecv ? crossings.list(kind, peer, v) : crossings.list(kind, v, peer);
    if (!carrier && skipping.empty())
      return;
    ProgramItem item;
    item.kind = message;
    item.peer = layout.getNumber(copy, peer);
    item.isLocal = layout.places[layout.getNumber(copy, v)].first == layout.places[item.peer].first;
    item.isBlocking = !isRecv && !item.isLocal && graph.pipeline.send == MessageMode::Blocking;
    item.carrier = carrier;
    if (carrier)
      isRecv ? addReceived(item, *carrier, v) : addSent(item, *carrier, v);
    for (auto [value, number] : skipping)
      item.append(value, ProgramItem::skipping + number);
    if (!pieces.areWanted() || (carrier && handsOnLocally(*carrier))) {
      items.push_back(std::move(item));
      return;
    }
    // What leaves after iterations of its repeat is known as the repeat's result.
    std::vector<Value *> wholes = item.values;
    for (unsigned i = 0; i < wholes.size(); ++i)
      if (item.slots[i] < ProgramItem::skipping && !runsNothing(*carrier, v))
        wholes[i] = carrier->getResult(item.slots[i]);
    pieces.append(items, std::move(item), kind, wholes, carrier && handsOn(*carrier, v));
  }

  /// A virtual stage between others of the repeat that runs none of its iterations.
  bool handsOn(const Op &loop, unsigned v) const {
    return runsNothing(loop, v) && v != layout.getEntry(loop) && v != layout.getExit(loop);
  }
  /// One of these is given what it hands on, or gives it, without a message: then all messages are whole.
  bool handsOnLocally(const Op &loop) const {
    auto getStage = [&](unsigned v) { return layout.places[layout.getNumber(copy, v)].first; };
    unsigned first = layout.getEntry(loop), last = layout.getExit(loop);
    for (unsigned v = std::min(first, last) + 1; v < std::max(first, last); ++v)
      if (handsOn(loop, v) && (getStage(v) == getStage(v - 1) || getStage(v) == getStage(v + 1)))
        return true;
    return false;
  }

  bool runsNothing(const Op &loop, unsigned v) const {
    auto [begin, end] = layout.getRange(loop, v);
    return begin == end;
  }

  /// The bodies of the first and of the last iteration that `v` runs. Where it runs none a value passes through, under
  /// the name of an argument of any.
  Block &getEntered(const Op &loop, unsigned v) const {
    auto [begin, end] = layout.getRange(loop, v);
    return begin == end ? *loop.bodies.front() : loop.getBody(loop.reverse ? end - 1 : begin);
  }
  Block &getLeft(const Op &loop, unsigned v) const {
    auto [begin, end] = layout.getRange(loop, v);
    return loop.getBody(loop.reverse ? begin : end - 1);
  }

  /// What arrives for the iterations of `v`; after the last of them, if it has none, the repeat's results.
  void addReceived(ProgramItem &item, Op &loop, unsigned v) {
    bool isEnd = v == layout.getExit(loop);
    auto [begin, end] = layout.getRange(loop, v);
    const CarriedSlots &slots = getSlots(loop, loop.reverse ? end : begin);
    for (unsigned i : slots.isRead.set_bits()) {
      Value *value = runsNothing(loop, v) && isEnd ? loop.getResult(i) : getEntered(loop, v).getArgument(i);
      if (slots.isMoved(i))
        item.append(value, i);
      else
        item.constants.push_back({slots.constants[i], value});
    }
  }

  /// What leaves after the iterations of `v`: without any, what would have entered them.
  void addSent(ProgramItem &item, Op &loop, unsigned v) {
    bool isStart = v == layout.getEntry(loop);
    auto [begin, end] = layout.getRange(loop, v);
    const CarriedSlots &slots = getSlots(loop, loop.reverse ? begin : end);
    for (unsigned i : slots.isRead.set_bits())
      if (slots.isMoved(i))
        item.append(!runsNothing(loop, v) ? getLeft(loop, v).getTerminator()->getOperand(i)
                    : isStart             ? loop.getOperand(i)
                                          : getEntered(loop, v).getArgument(i),
                    i);
  }

  /// What a repeat carries between two of its iterations, counted in the order of the model: behind `place` of them.
  const CarriedSlots &getSlots(Op &loop, int64_t place) {
    auto getRun = [&](const Op &repeat, int64_t behind) {
      return repeat.reverse ? layout.chain.getCount(layout.numbers.lookup(&repeat)) - behind : behind;
    };
    if (!carried.count(&loop)) {
      std::vector<CarryingRepeat> repeats;
      for (Op *repeat : layout.listInOrder(loop.getBlock()->getPhase())) {
        repeats.push_back({repeat, layout.chain.getCount(layout.numbers.lookup(repeat)), {getRun(*repeat, 0)}});
        for (unsigned v = 0; v < layout.getNumVirtual(); ++v)
          repeats.back().places.insert(getRun(*repeat, layout.getRange(*repeat, v).second));
      }
      findCarriedSlots(repeats);
      for (CarryingRepeat &repeat : repeats)
        carried[repeat.op] = std::move(repeat.slots);
    }
    return carried[&loop].find(getRun(loop, place))->second;
  }

  /// Without a pipeline each microbatch goes forward and back by itself.
  bool listUnits(Program &program) {
    if (graph.pipeline.units.empty() && graph.findPhase(PhaseKind::Decode)) {
      diags.report(graph.loc, diag::ScheduleOfDecode);
      return false;
    }
    if (graph.pipeline.units.empty() && layout.numStages > 1) {
      diags.report(graph.pipeline.loc, diag::ScheduleMissing) << int64_t(layout.numStages);
      return false;
    }
    if (!graph.pipeline.units.empty())
      return readSchedule(program);
    for (unsigned i = 0; i < program.microbatches; ++i)
      for (PhaseKind kind : kinds)
        program.stages.front().units.push_back({kind, i, 0});
    return true;
  }

  bool readSchedule(Program &program) {
    Schedule schedule;
    schedule.stages = program.numStages;
    schedule.microbatches = program.microbatches;
    schedule.chunks = program.numChunks;
    schedule.loc = graph.pipeline.loc;
    schedule.units = graph.pipeline.units;
    schedule.placement = graph.pipeline.placement;
    schedule.copies = graph.pipeline.copies;
    schedule.training = graph.training;
    return checkForwardPhases(schedule) && known.check(schedule, diags) && checkBindings(schedule) &&
           checkPairs(schedule) && takeUnits(schedule, program) && checkMessages(std::move(schedule), program);
  }

  /// A microbatch goes forward in one phase, on all stages.
  bool checkForwardPhases(const Schedule &schedule) {
    if (!graph.findPhase(PhaseKind::Decode))
      return true; // units of it are refused
    std::vector<PhaseKind> phases = graph.listForwardPhases();
    for (unsigned stage = 0; stage < schedule.stages && stage < schedule.units.size(); ++stage)
      for (const Unit &unit : schedule.units[stage])
        if (isForward(unit.kind) && unit.microbatch < phases.size() && unit.kind != phases[unit.microbatch]) {
          diags.report(graph.pipeline.loc, diag::ScheduleMixesForward)
              << unit.str() << int64_t(stage) << getName(phases[unit.microbatch]);
          return false;
        }
    return true;
  }

  /// A message that leaves while a pair runs would stand between exchanges of the other unit.
  bool checkPairs(const Schedule &schedule) {
    auto hasPairs = [](const std::vector<Unit> &units) { return stage::hasPairs(units); };
    if (!graph.training || graph.pipeline.send != MessageMode::Early || llvm::none_of(schedule.units, hasPairs))
      return true;
    diags.report(graph.pipeline.loc, diag::EarlyMessagesOverlap);
    return false;
  }

  /// What a unit keeps, sends and receives has the same size in all units of a microbatch; and what is there for all
  /// microbatches has one size. All that is required holds in each environment.
  bool checkBindings(const Schedule &schedule) {
    const Environments &environments = graph.pipeline.environments;
    if (environments.size() == 1)
      return true;
    std::vector<unsigned> ofMicrobatch = graph.listEnvironments();
    for (unsigned stage = 0; stage < schedule.stages; ++stage)
      for (const Unit &unit : schedule.units[stage])
        if (unsigned expected = ofMicrobatch[unit.microbatch]; unit.environment != expected) {
          diags.report(graph.pipeline.loc, diag::ScheduleBindings)
              << unit.str() << int64_t(stage) << describe(unit.environment) << describe(expected);
          return false;
        }
    llvm::StringSet<> bound;
    for (unsigned number = 0; number < environments.size(); ++number)
      for (auto &[symbol, value] : environments[number])
        bound.insert(symbol);
    unsigned errorsBefore = diags.getNumErrors();
    graph.walk([&](Op &op) { checkSameForAll(op, bound); });
    for (unsigned number = 1; number < environments.size() && diags.getNumErrors() == errorsBefore; ++number) {
      if (!environments.isFirstAlike(number))
        continue;
      SizeBinding own = std::exchange(graph.binding, graph.getBinding(number));
      graph.obligations.check(graph.binding, diags);
      checkSizes(graph, diags);
      graph.binding = std::move(own);
    }
    return diags.getNumErrors() == errorsBefore;
  }

  std::string describe(unsigned environment) const {
    return environment ? toString(graph.pipeline.environments[environment]) : "nothing";
  }

  /// Parameters, gradients, all of the step, and how often a repeat runs.
  void checkSameForAll(const Op &op, const llvm::StringSet<> &bound) {
    auto check = [&](Size size, const llvm::Twine &what) {
      for (const std::string &symbol : collectSymbols(size))
        if (bound.contains(symbol)) {
          diags.report(op.loc, diag::BoundPerUnit) << symbol << what;
          return;
        }
    };
    if (op.kind == OpKind::Repeat)
      check(op.count, "repeat '" + op.name + "'");
    if (op.entries)
      check(op.entries, "the list of '" + stage::describe(*op.getResult()) + "'");
    bool isStatic = isState(op.kind) || op.kind == OpKind::Accumulate || isOncePerStep(op.getBlock()->getPhase());
    for (auto &result : op.getResults())
      for (const Extent &extent : result->type.shape)
        if (isStatic)
          check(extent.size, "'" + stage::describe(*result) + "'");
  }

  /// Traces are for simulators whose sends wait, too.
  bool checkMessages(Schedule schedule, Program &program) {
    for (unsigned stage = 0; stage < schedule.stages; ++stage)
      schedule.units[stage] = program.stages[stage].units;
    // Which templates have work decides when recvs are posted; those with collectives wait for sends.
    std::vector<bool> work;
    llvm::DenseMap<const UnitTemplate *, bool> groups;
    for (const StageProgram &stage : program.stages)
      for (unsigned chunk = 0; chunk != program.numChunks; ++chunk)
        for (PhaseKind kind : kinds) {
          const UnitTemplate *found = stage.find(kind, chunk);
          bool communicates = groups[found] = found && communicatesInGroups(*found);
          work.push_back(communicates);
          work.push_back(found && hasWork(graph, found->items));
        }
    auto listPosts = [&] {
      RecvPosts oneAhead;
      for (const StageProgram &stage : program.stages)
        oneAhead.push_back(Arrivals(graph, stage).listPosts());
      return oneAhead;
    };
    auto communicates = [&](unsigned stage, const Unit &unit) {
      return groups.lookup(program.stages[stage].find(unit.kind, unit.chunk));
    };
    std::optional<RecvPosts> posts = known.post(schedule, work, listPosts, communicates, diags);
    for (unsigned stage = 0; posts && stage < schedule.stages; ++stage)
      program.stages[stage].posts = std::move((*posts)[stage]);
    return posts.has_value();
  }

  /// Inference runs the forward units of the schedule, in its order.
  bool takeUnits(const Schedule &schedule, Program &program) {
    for (unsigned stage = 0; stage < schedule.stages; ++stage)
      for (const Unit &unit : schedule.units[stage]) {
        if (!llvm::is_contained(kinds, unit.kind) && (graph.training || !isBackward(unit.kind))) {
          diags.report(graph.pipeline.loc, diag::ScheduleUnitOfNoPhase)
              << unit.str() << int64_t(stage) << getName(unit.kind);
          return false;
        }
        if (!llvm::is_contained(kinds, unit.kind))
          continue;
        program.stages[stage].units.push_back(unit);
        // Without backward no unit has another one beside it.
        program.stages[stage].units.back().overlapsNext &= graph.training;
      }
    return checkPhases(program);
  }

  /// What a phase makes is used by those behind it: none may be left out. None is there twice.
  bool checkPhases(const Program &program) {
    bool hasHalves = llvm::is_contained(kinds, PhaseKind::BackwardInput);
    int64_t decoding = 0, chunks = program.numChunks / program.numCopies; // that a microbatch passes on a stage
    std::array<int64_t, numPhaseKinds> ofKind = {};
    if (graph.findPhase(PhaseKind::Decode))
      for (PhaseKind kind : graph.listForwardPhases())
        if (isDecoding(kind)) {
          decoding += chunks;
          ofKind[unsigned(kind)] += chunks;
        }
    for (const StageProgram &stage : program.stages) {
      std::array<int64_t, numPhaseKinds> counts = {};
      for (const Unit &unit : stage.units)
        ++counts[unsigned(unit.kind)];
      int64_t all = program.microbatches * chunks, whole = counts[unsigned(PhaseKind::Backward)];
      for (PhaseKind kind : kinds) {
        if (movesCaches(kind)) // some units have them
          continue;
        int64_t count = counts[unsigned(kind)], expected = all;
        if (isDecoding(kind))
          expected = ofKind[unsigned(kind)];
        else if (kind == PhaseKind::Forward)
          expected -= decoding;
        else if (isBackward(kind) && hasHalves)
          expected -= whole;
        // Of two ways forward that of decode is gone. Forward itself has the parameters, and may be there for them
        // alone.
        bool isMissing = isDecoding(kind) && !expected;
        if ((count == expected && !isMissing) || (kind == PhaseKind::Backward && hasHalves))
          continue;
        diags.report(graph.pipeline.loc, diag::ScheduleOmitsPhase)
            << getName(kind) << int64_t(stage.stage) << count << (expected ? std::to_string(expected) : "at least 1");
        return false;
      }
    }
    return true;
  }

  Graph &graph;
  const PipelineLayout &layout;
  KnownSchedules &known;
  DiagnosticEngine &diags;
  CrossingValues crossings;
  MessagePieces pieces;
  llvm::BitVector fedStages; ///< That begin with what others have sampled.
  llvm::DenseMap<const Op *, llvm::DenseMap<int64_t, CarriedSlots>> carried; ///< By pipelined repeat.
  unsigned copy = 0;                                                         ///< Whose units are built.
  llvm::SmallVector<PhaseKind, 4> kinds; ///< The phases that run for each microbatch, in their order.
};
} // namespace

bool stage::communicatesInGroups(const UnitTemplate &unit) {
  bool found = false;
  forEachOp(unit.items, [&](const Op &op, int64_t) { found = found || isCommunication(op.kind); });
  return found;
}

std::unique_ptr<Program> stage::buildProgram(Graph &graph, DiagnosticEngine &diags, KnownSchedules *known) {
  std::optional<PipelineLayout> layout = computePipelineLayout(graph, diags);
  KnownSchedules none;
  return layout ? ProgramBuilder(graph, *layout, known ? *known : none, diags).run() : nullptr;
}
