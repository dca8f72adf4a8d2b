//===- TaskLayout.cpp - where each op's task is in a trace ----------------===//
#include "stage/Tasks/TaskLayout.h"
#include "stage/IR/graph/Channel.h"
#include "stage/IR/graph/Costs.h"
#include "stage/Tasks/Diagnostics.h"
#include "stage/Walk/Arrivals.h"

using namespace stage;

IterationSums::IterationSums(const ProgramItem &loop, std::vector<uint64_t> perCase)
    : loop(&loop), ofCase(std::move(perCase)) {
  for (const IterationCases::Run &run : loop.op->cases.getRuns()) {
    int64_t begin = std::max(run.begin, loop.begin), end = std::min(run.end, loop.end);
    total += std::max<int64_t>(0, end - begin) * ofCase[run.number];
    upTo.push_back(total);
  }
  if (upTo.empty())
    total = loop.getNumIterations() * ofCase.front();
}

uint64_t IterationSums::getBefore(int64_t iteration) const {
  bool isReverse = loop->op->reverse;
  if (upTo.empty())
    return (isReverse ? loop->end - 1 - iteration : iteration - loop->begin) * ofCase.front();
  const IterationCases &cases = loop->op->cases;
  const IterationCases::Run &run = cases.getRun(iteration);
  // Those of the iterations from the next one to the end of the run, as far as they are of the item.
  uint64_t perIteration = ofCase[run.number];
  uint64_t after = (std::min(run.end, loop->end) - iteration - 1) * perIteration;
  uint64_t all = upTo[&run - cases.getRuns().data()] - after;
  return isReverse ? total - all : all - perIteration;
}

int64_t IterationSums::find(uint64_t n) const {
  int64_t first = 0, last = loop->getNumIterations() - 1; // of those that may have it, in the order in which they run
  while (first < last) {
    int64_t middle = last - (last - first) / 2;
    if (getBefore(loop->getIteration(middle)) <= n)
      first = middle;
    else
      last = middle - 1;
  }
  return loop->getIteration(first);
}

/// Takes up an op of an item, or of a body of its loop, of which `nodes` and `slots` are those so far. A permute has
/// its recv, which makes the result, and then its send.
void TaskLayout::append(Segment &segment, std::vector<Op *> &nodes, const Graph &graph, Op &op, Ahead &ahead) {
  bool isSlot = isReleaseOfPrefetched(op);
  if (!isSlot && !stage::hasNode(graph, op))
    return;
  if (!isSlot)
    positions.try_emplace(&op, Position{unsigned(&segment - segments.data()), unsigned(nodes.size()),
                                        op.isPrefetched ? ahead.gathers : ahead.slots});
  if (op.isPrefetched) {
    if (op.kind == OpKind::AllGather) {
      anyPrefetched = &op;
      ++ahead.gathers;
    }
    return;
  }
  if (isSlot && op.getOperand(0)->getOp()->getOperand(0)->getOp()->kind == OpKind::Fetch)
    nodesPerSlot = 2; // of each: V14
  ahead.slots += isSlot;
  nodes.insert(nodes.end(), isSlot ? nodesPerSlot : op.kind == OpKind::Permute ? 2 : 1, &op);
}

TaskLayout::TaskLayout(const Graph &graph, llvm::ArrayRef<ProgramItem> items) : items(items) {
  for (const ProgramItem &item : items) {
    Segment &segment = segments.emplace_back();
    segment.item = &item;
    segment.start = numNodes;
    segment.firstSlot = numSlots;
    segment.firstGather = numGathers;
    unsigned number = segments.size() - 1;
    Ahead ahead;
    switch (item.kind) {
    case ProgramItem::Kind::Op:
      append(segment, segment.ops.emplace_back(), graph, *item.op, ahead);
      segment.numNodes = segment.ops.front().size();
      numSlots += ahead.slots;
      numGathers += ahead.gathers;
      break;
    case ProgramItem::Kind::Loop: {
      segment.ops.resize(item.op->bodies.size());
      std::vector<uint64_t> nodesOfCase(segment.ops.size()), slotsOfCase(segment.ops.size()),
          gathersOfCase(segment.ops.size());
      forEachBody(item, [&](Block &body, int64_t) {
        ahead = {};
        for (auto &op : body)
          append(segment, segment.ops[body.getNumber()], graph, *op, ahead);
        nodesOfCase[body.getNumber()] = segment.ops[body.getNumber()].size();
        slotsOfCase[body.getNumber()] = ahead.slots;
        gathersOfCase[body.getNumber()] = ahead.gathers;
      });
      segment.nodes = IterationSums(item, std::move(nodesOfCase));
      segment.slots = IterationSums(item, std::move(slotsOfCase));
      segment.gathers = IterationSums(item, std::move(gathersOfCase));
      segment.numNodes = segment.nodes.getTotal();
      numSlots += segment.slots.getTotal();
      numGathers += segment.gathers.getTotal();
      loops[item.op->loop].push_back(number);
      break;
    }
    case ProgramItem::Kind::Recv:
      if (item.isLocal)
        break;
      if (item.channel && item.channel->isOfCache())
        cacheRecvs[{item.values.front(), item.channel->iteration}] = number;
      for (unsigned i = 0; i < item.values.size() && !(item.channel && item.channel->isOfCache()); ++i)
        recvs.try_emplace(item.values[i], Position{number, i, 0});
      segment.numNodes = item.getNumMessageNodes();
      break;
    case ProgramItem::Kind::Send:
      segment.numNodes = item.getNumMessageNodes();
      break;
    }
    numNodes += segment.numNodes;
  }
  numAhead = std::min(numGathers, countRoomAhead(graph, items));
  numNodes -= (numSlots - numGathers) * nodesPerSlot;
  for (const Segment &segment : segments)
    if (auto first = firstWork ? std::nullopt : segment.findFirstWork())
      firstWork = {*findPosition(first->first, first->second), first->first};
  if (numAhead)
    firstWork = {nodesPerSlot - 1, anyPrefetched};
}

std::optional<std::pair<const Op *, int64_t>> Segment::findFirstWork() const {
  auto find = [](llvm::ArrayRef<Op *> nodes, int64_t iteration) -> std::optional<std::pair<const Op *, int64_t>> {
    for (const Op *op : nodes)
      if (op->kind != OpKind::Release && isLoader(op->kind))
        return std::pair(op, iteration);
    return std::nullopt;
  };
  if (!isLoop())
    return ops.empty() ? std::nullopt : find(ops.front(), -1);
  // The first iteration of each run.
  const Op &loop = *item->op;
  for (int64_t before = 0; before < item->getNumIterations();) {
    int64_t iteration = item->getIteration(before);
    if (auto first = find(getOps(iteration), iteration))
      return first;
    if (loop.cases.getRuns().empty())
      break;
    const IterationCases::Run &run = loop.cases.getRun(iteration);
    before += loop.reverse ? iteration - run.begin + 1 : run.end - iteration;
  }
  return std::nullopt;
}

bool stage::checkSteps(const Program &program, unsigned steps, DiagnosticEngine &diags) {
  constexpr uint64_t maxUnits = 10'000'000;
  for (const StageProgram &stage : program.stages)
    if (stage.units.size() > maxUnits / steps) {
      diags.report(program.graph->loc, diag::TracesOfTooManySteps)
          << stage.stage << int64_t(stage.units.size() * steps) << int64_t(steps) << int64_t(maxUnits);
      return false;
    }
  return true;
}

uint64_t stage::countNodes(const Program &program, const StageProgram &stage) {
  std::vector<uint64_t> perTemplate;
  for (const UnitTemplate &unit : stage.templates)
    perTemplate.push_back(TaskLayout(*program.graph, unit.items).getNumNodes());
  uint64_t nodes = 0;
  for (const Unit &unit : stage.units)
    if (const UnitTemplate *found = stage.find(unit.kind, unit.chunk))
      nodes += perTemplate[found - stage.templates.data()];
  return nodes;
}

const Segment *TaskLayout::findLoop(unsigned loop) const {
  auto it = loops.find(loop);
  return it == loops.end() ? nullptr : &segments[it->second.front()];
}

const Segment *TaskLayout::findLoop(unsigned loop, int64_t iteration) const {
  auto it = loops.find(loop);
  if (it != loops.end())
    for (unsigned segment : it->second)
      if (iteration >= segments[segment].item->begin && iteration < segments[segment].item->end)
        return &segments[segment];
  return nullptr;
}

/// Of a node that stands at a place of a segment (in a loop: of an iteration), behind so many slots there.
uint64_t TaskLayout::getPosition(const Segment &segment, int64_t iteration, unsigned place, unsigned slots) const {
  uint64_t nodes = segment.start + place, slotsBefore = segment.firstSlot + slots;
  if (segment.isLoop()) {
    nodes += segment.nodes.getBefore(iteration);
    slotsBefore += segment.slots.getBefore(iteration);
  }
  uint64_t filled = numGathers - numAhead;
  return numAhead * nodesPerSlot + nodes - (slotsBefore > filled ? (slotsBefore - filled) * nodesPerSlot : 0);
}

uint64_t TaskLayout::getPositionOfSlot(uint64_t number) const {
  const Segment &segment =
      *std::prev(llvm::partition_point(segments, [&](const Segment &other) { return other.firstSlot <= number; }));
  unsigned rest = number - segment.firstSlot;
  int64_t iteration = -1;
  if (segment.isLoop()) {
    iteration = segment.slots.find(rest);
    rest -= segment.slots.getBefore(iteration);
  }
  llvm::ArrayRef<Op *> ops = segment.isLoop() ? segment.getOps(iteration) : llvm::makeArrayRef(segment.ops.front());
  for (unsigned place = 0, slots = 0;; ++place)
    if (ops[place]->kind == OpKind::Release && slots++ == rest * nodesPerSlot)
      return getPosition(segment, iteration, place, rest);
}

std::optional<uint64_t> TaskLayout::findPosition(const Op *op, int64_t iteration) const {
  auto it = positions.find(op);
  if (it == positions.end())
    return std::nullopt;
  const Position &position = it->second;
  const Op *loop = op->getBlock()->getParent();
  const Segment *segment = loop ? findLoop(loop->loop, iteration) : &segments[position.segment];
  if (!segment)
    return std::nullopt;
  if (!op->isPrefetched)
    return getPosition(*segment, iteration, position.place, position.ahead);
  uint64_t number = segment->firstGather + position.ahead + (loop ? segment->gathers.getBefore(iteration) : 0);
  unsigned place = op->kind == OpKind::Fetch ? 0 : nodesPerSlot - 1;
  return place + (number < numAhead ? number * nodesPerSlot : getPositionOfSlot(number - numAhead));
}

std::optional<uint64_t> TaskLayout::findRecv(const Value *value) const {
  auto it = recvs.find(value);
  if (it == recvs.end())
    return std::nullopt;
  return getPosition(segments[it->second.segment], -1, it->second.place, 0);
}

int64_t TaskLayout::getSentIteration(const Value *value) const {
  const Op *loop = value->getBlock()->getParent();
  const Segment *segment = loop ? findLoop(loop->loop) : nullptr;
  if (!segment || segment->item->getNumIterations() == 0)
    return -1;
  return loop->reverse ? segment->item->begin : segment->item->end - 1;
}
