//===- Program.cpp - the program IR ---------------------------------------===//
#include "stage/IR/graph/Program.h"
#include "stage/IR/graph/Channel.h"
#include "stage/IR/graph/Costs.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace stage;

Schedule Program::getSchedule(bool withStep) const {
  Schedule schedule;
  schedule.stages = numStages;
  schedule.microbatches = microbatches;
  schedule.chunks = numChunks;
  schedule.copies = numCopies;
  schedule.training = graph->training;
  schedule.loc = graph->pipeline.axis ? graph->pipeline.loc : graph->loc;
  for (const StageProgram &stage : stages)
    llvm::copy_if(stage.units, std::back_inserter(schedule.units.emplace_back()),
                  [&](const Unit &unit) { return withStep || !isOncePerStep(unit.kind); });
  schedule.placement.resize(schedule.getNumVirtualStages());
  for (unsigned number = 0; number < virtualStages.size(); ++number) {
    auto [stage, chunk] = virtualStages[number];
    schedule.placement[chunk * numStages + stage] = number;
  }
  return schedule;
}

const UnitTemplate *StageProgram::find(PhaseKind kind, unsigned chunk) const {
  for (const UnitTemplate &unit : templates)
    if (unit.kind == kind && unit.chunk == chunk)
      return &unit;
  return nullptr;
}

UnitChains StageProgram::listChains() const {
  using Key = std::pair<unsigned, unsigned>; // the chunk, and a bit for each kind of phase
  unsigned chunks = 0, microbatches = 0;
  for (const Unit &unit : units) {
    chunks = std::max(chunks, unit.chunk + 1);
    microbatches = std::max(microbatches, unit.microbatch + 1);
  }
  // By chunk and microbatch: first a bit for each kind of phase that runs, then the number of the chain.
  std::vector<unsigned> places(size_t(chunks) * microbatches);
  auto getPlace = [&](const Unit &unit) -> unsigned & {
    return places[size_t(unit.chunk) * microbatches + unit.microbatch];
  };
  for (const Unit &unit : units)
    if (!isOncePerStep(unit.kind))
      getPlace(unit) |= 1u << unsigned(unit.kind);
  std::map<Key, unsigned> numbers;
  for (size_t place = 0; place < places.size(); ++place)
    if (places[place])
      numbers[{place / microbatches, places[place]}];
  UnitChains chains;
  for (auto &[key, number] : numbers) {
    number = chains.all.size();
    UnitChain &chain = chains.all.emplace_back();
    for (const UnitTemplate &unit : templates)
      if (!isOncePerStep(unit.kind) && unit.chunk == key.first && (key.second >> unsigned(unit.kind) & 1))
        chain.push_back(&unit);
  }
  for (size_t place = 0; place < places.size(); ++place)
    if (places[place])
      places[place] = numbers[{place / microbatches, places[place]}];
  UnitChain last;
  for (PhaseKind kind : {PhaseKind::Reduce, PhaseKind::Step})
    if (const UnitTemplate *once = find(kind, 0))
      last.push_back(once);
  if (!last.empty())
    chains.all.push_back(last);
  for (const Unit &unit : units)
    chains.ofUnit.push_back(isOncePerStep(unit.kind) ? chains.all.size() - 1 : getPlace(unit));
  return chains;
}

GradientBuffers::GradientBuffers(Graph &graph) {
  llvm::DenseMap<const Value *, llvm::SmallVector<unsigned, 1>> ofParam;
  graph.walk([&](Op &op) {
    if (!isAddition(op.kind))
      return;
    const Value *gradient = op.getResult();
    llvm::SmallVector<unsigned, 1> &known = ofParam[getTrainedParam(op)]; // null: the norm of all
    auto it = llvm::find_if(known, [&](unsigned number) {
      const Value *other = buffers[number].front()->getResult();
      return other->type.dtype == gradient->type.dtype && other->sharding == gradient->sharding;
    });
    if (it == known.end()) {
      it = known.insert(known.end(), buffers.size());
      buffers.emplace_back();
    }
    buffers[*it].push_back(&op);
    numbers[&op] = *it;
  });
}

void stage::forEachBody(const ProgramItem &loop, llvm::function_ref<void(Block &, int64_t)> f) {
  int64_t count = loop.getNumIterations();
  if (loop.op->bodies.size() == 1 && count > 0)
    return f(*loop.op->bodies.front(), count);
  for (auto &body : loop.op->bodies)
    if (int64_t iterations = loop.op->cases.count(body->getNumber(), loop.begin, loop.end); iterations > 0)
      f(*body, iterations);
}

void stage::forEachOp(llvm::ArrayRef<ProgramItem> items, llvm::function_ref<void(Op &, int64_t)> f) {
  for (const ProgramItem &item : items) {
    if (item.op)
      f(*item.op, 1);
    if (item.kind == ProgramItem::Kind::Loop)
      forEachBody(item, [&](Block &body, int64_t iterations) {
        for (auto &op : body) // in which no repeat stands
          f(*op, iterations);
      });
  }
}

const Value *ProgramItem::getSent(unsigned i, const ProgramItem *range) const {
  return range && slots[i] < skipping ? range->op->getResult(slots[i]) : values[i];
}

bool stage::receives(llvm::ArrayRef<ProgramItem> items, const Op &repeat) {
  return !items.empty() && items.front().kind == ProgramItem::Kind::Recv && items.front().carrier == &repeat;
}

const Op *stage::findGather(llvm::ArrayRef<ProgramItem> items, const Value *value) {
  for (const ProgramItem &item : items) {
    if (item.kind != ProgramItem::Kind::Recv && !item.getGathered())
      break; // gathers stand behind the recv
    if (item.getGathered() == value)
      return item.op;
  }
  return nullptr;
}

/// Messages stand at the ends of a unit, whatever is between.
template <typename Items> static const ProgramItem *findLocal(Items &&items, ProgramItem::Kind kind) {
  for (const ProgramItem &item : items) {
    if (item.kind != kind)
      break;
    if (item.isLocal)
      return &item;
  }
  return nullptr;
}

const ProgramItem *stage::findHandedOn(llvm::ArrayRef<ProgramItem> items) {
  return findLocal(llvm::reverse(items), ProgramItem::Kind::Send);
}

const ProgramItem *stage::findHandedIn(llvm::ArrayRef<ProgramItem> items) {
  return findLocal(items, ProgramItem::Kind::Recv);
}

std::optional<unsigned> stage::findHanded(const ProgramItem &taken, const Value *value, const ProgramItem &given) {
  auto here = llvm::find(taken.values, value);
  if (here == taken.values.end())
    return std::nullopt;
  return llvm::find(given.slots, taken.slots[here - taken.values.begin()]) - given.slots.begin();
}

const ProgramItem *stage::findRange(llvm::ArrayRef<ProgramItem> items, const Op &repeat) {
  auto range = llvm::find_if(
      items, [&](const ProgramItem &item) { return item.kind == ProgramItem::Kind::Loop && item.op == &repeat; });
  return range == items.end() ? nullptr : range;
}

void stage::forEachOutsideValue(const ProgramItem &item, llvm::function_ref<void(Value *, Op &)> f) {
  if (item.kind == ProgramItem::Kind::Loop)
    forEachOutsideValue(*item.op, item.begin, item.end, f);
  else
    forEachOutsideValue(*item.op, f);
}

void stage::forEachOp(const StageProgram &stage, llvm::function_ref<void(const Op &)> f) {
  for (const UnitTemplate &unit : stage.templates)
    forEachOp(unit.items, [&](const Op &op, int64_t) { f(op); });
}

std::vector<Size> stage::findBlockSizes(const Program &program, const StageProgram &stage) {
  const Mesh &mesh = program.graph->mesh;
  llvm::SetVector<Size> blocks;
  if (!mesh.isUneven())
    return {};
  auto add = [&](const Value &value) {
    if (llvm::any_of(value.type.shape, [&](const Extent &extent) { return mesh.findUnevenSlots(extent.dim); }))
      blocks.insert(getLocalElements(program.graph->sizes, mesh, value.type, value.sharding));
    for (const AxisList &list : value.sharding.dims)
      for (const PlacedAxis &axis : list)
        if (axis.isListed())
          blocks.insert(getLocalSize(mesh, program.graph->sizes.one(), axis));
  };
  forEachOp(stage, [&](const Op &op) {
    for (const Value *operand : op.getOperands())
      add(*operand);
    for (auto &result : op.getResults())
      add(*result);
  });
  for (const UnitTemplate &unit : stage.templates)
    for (const ProgramItem &item : unit.items)
      for (const Value *value : item.values)
        add(*value);
  return blocks.takeVector();
}

void stage::forEachCoordinates(const Graph &graph, AxisSet axes, SizeBinding &binding, llvm::function_ref<void()> f) {
  AxisList list = toList(axes);
  if (list.empty())
    return f();
  std::string symbol = getCoordinateSymbol(graph.sizes, graph.mesh[list.front()]).getSymbol().str();
  for (int64_t i = 0; i < graph.mesh[list.front()].size; ++i) {
    binding.bind(symbol, i);
    forEachCoordinates(graph, axes & ~toSet(list.front()), binding, f);
  }
  binding.unbind(symbol);
}

int64_t stage::countAlike(const Graph &graph, AxisSet axes) {
  if (graph.pipeline.axis)
    axes |= AxisSet(1) << *graph.pipeline.axis;
  return graph.mesh.getNumRanks() / graph.mesh.getGroupSize(axes);
}

std::optional<Rational> stage::sumOverRanks(const Graph &graph, Size size, SizeBinding &binding) {
  AxisSet named = getCoordinateAxes(graph.mesh, size);
  std::optional<Rational> sum = Rational();
  forEachCoordinates(graph, named, binding, [&] {
    SizeValue value = sum ? evaluate(size, binding) : SizeValue{SizeError::Overflow, "", {}};
    sum = value ? sum->add(value.value) : std::nullopt;
  });
  return sum ? sum->mul(Rational::integer(countAlike(graph, named))) : std::nullopt;
}

AxisSet stage::findVaryingAxes(const Program &program, const StageProgram &stage) {
  AxisSet axes = 0;
  const Graph &graph = *program.graph;
  for (Size block : findBlockSizes(program, stage))
    axes |= getCoordinateAxes(graph.mesh, block);
  forEachOp(stage, [&](const Op &op) {
    if (op.kind == OpKind::Append) // to a cache whose positions ranks share
      axes |= getCoordinateAxes(graph.mesh, getLocalCost(graph, op).bytes);
    if (op.kind != OpKind::Compute || (!op.def->mask && !(op.def->vjpOf && op.def->vjpOf->mask)))
      return; // else only what a table lists depends on where a rank is
    if (!getCoordinateAxes(graph.mesh, getLocalMaskArea(graph, op)))
      return;
    OpCost cost = getLocalCost(graph, op);
    for (Size size : {cost.getComputed(), cost.bytes})
      axes |= getCoordinateAxes(graph.mesh, size);
  });
  return graph.pipeline.axis ? axes & ~(AxisSet(1) << *graph.pipeline.axis) : axes;
}
