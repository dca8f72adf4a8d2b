//===- Producers.cpp - the tasks that made what a task uses ---------------===//
#include "stage/Tasks/Producers.h"
#include "stage/IR/graph/Channel.h"
#include "stage/IR/graph/Costs.h"

using namespace stage;

Producers::Producers(const Graph &graph, const StageProgram &stage, Additions &additions)
    : graph(graph), additions(additions) {
  forEachOp(stage, [&](const Op &op) {
    if (op.kind == OpKind::Write || (op.kind == OpKind::Update && !op.getNumResults()))
      writers[op.getOperand(0)] = &op;
  });
}

/// `iteration` is -1 outside of loops.
void Producers::findWriter(const Value *param, const PlacedUnit &unit, int64_t iteration,
                           llvm::SmallVectorImpl<uint64_t> &ids) const {
  const Op *writer = unit.updates ? writers.lookup(param) : nullptr;
  if (!writer)
    return;
  if (writer->kind == OpKind::Write)
    (void)find(writer->getOperand(1), *unit.updates, iteration, ids);
  else if (auto position = unit.updates->layout->findPosition(writer, iteration))
    ids.push_back(unit.updates->getId(*position));
}

/// What has sampled the tokens of a unit, or brings them from another stage. True if some of them are inputs of the job
/// all the same: those of prompts.
bool Producers::findSampled(const Value *input, const PlacedUnit &unit, llvm::SmallVectorImpl<uint64_t> &ids) const {
  if (!unit.feeder) { // of a first step: another part sends them, if anybody has sampled them
    size_t before = ids.size();
    if (unit.previous)
      findCacheRecvs({Origin::Kind::Source, input, unit.previous, -1, 0}, ids);
    return ids.size() == before;
  }
  (void)find(graph.findPhase(unit.feeder->kind)->getTerminator()->getOperands().back(), *unit.feeder, -1, ids);
  return !isDecoding(unit.kind);
}

bool Producers::find(const Value *value, const PlacedUnit &unit, int64_t iteration,
                     llvm::SmallVectorImpl<uint64_t> &ids) const {
  bool isInput = false;
  visit(value, unit, iteration, [&](const Origin &origin) {
    if (origin.kind == Origin::Kind::Node || origin.kind == Origin::Kind::Recv)
      ids.push_back(origin.id);
    else if (origin.kind == Origin::Kind::Buffer)
      additions.findLast(origin.value, origin.iteration, unit, ids);
    else if (origin.value->getOp()->kind == OpKind::Cache)
      findCacheRecvs(origin, ids);
    else if (origin.value->getOp()->kind == OpKind::Param)
      findWriter(origin.value, *origin.unit, origin.iteration, ids);
    else if (origin.value->getOp()->isFed)
      isInput |= findSampled(origin.value, *origin.unit, ids);
    else
      isInput |= origin.value->getOp()->kind == OpKind::Input;
  });
  return isInput;
}

void stage::forEachAddition(const Graph &graph, const Op &op, llvm::function_ref<void(const Value *)> visit) {
  if (isAddition(op.kind))
    visit(op.getResult());
  for (auto &result : op.getResults())
    if (const Op *accumulation = getFusedAccumulation(graph, result.get()))
      visit(accumulation->getResult());
}

void Additions::addLayout(const Graph &graph, const TaskLayout &layout) {
  for (const Segment &segment : layout.getSegments()) {
    if (segment.item->kind != ProgramItem::Kind::Loop)
      continue;
    for (const std::vector<Op *> &ops : segment.ops)
      for (const Op *op : ops)
        forEachAddition(graph, *op, [&](const Value *buffer) {
          if (!isPerIteration(buffer))
            return;
          auto &ofBuffer = adders[buffers.getFirst(buffer)];
          if (ofBuffer.empty() || ofBuffer.back().layout != &layout) // layouts come one after the other
            ofBuffer.push_back({&layout, {}});
          ofBuffer.back().ops.push_back(op);
        });
  }
}

void Additions::add(const Value *buffer, const PlacedUnit &unit) {
  if (isPerIteration(buffer))
    return; // known from the layout
  const Op *first = buffers.getFirst(buffer);
  findKnown(first, unit.layout) = {unit.layout, &unit, unit.getPosition(current)};
  addedInRound.emplace_back(first, unit.layout);
}

Additions::Last &Additions::findKnown(const Op *first, const TaskLayout *layout) {
  auto &lasts = known[first];
  auto last = llvm::find_if(lasts, [&](const Last &other) { return other.layout == layout; });
  return last == lasts.end() ? *lasts.insert(lasts.end(), Last()) : *last;
}

void Additions::skipUnit(const Graph &graph, const PlacedUnit &unit) {
  if (!skipped.insert(unit.layout).second)
    return;
  auto note = [&](const Op &op, int64_t iteration) {
    forEachAddition(graph, op, [&](const Value *buffer) {
      if (isPerIteration(buffer))
        return;
      uint64_t offset = *unit.layout->findPosition(&op, iteration);
      Last &last = findKnown(buffers.getFirst(buffer), unit.layout);
      if (!last.layout || last.offset < offset)
        last = {unit.layout, &unit, offset};
    });
  };
  for (const Segment &segment : unit.layout->getSegments()) {
    const ProgramItem &item = *segment.item;
    if (item.kind == ProgramItem::Kind::Op)
      for (const Op *op : segment.ops.front())
        note(*op, -1);
    if (item.kind != ProgramItem::Kind::Loop)
      continue;
    // Of each case the last iteration that runs.
    std::vector<char> isNoted(segment.ops.size());
    for (int64_t n = item.getNumIterations(); n-- > 0;) {
      int64_t iteration = item.getIteration(n);
      unsigned number = segment.ops.size() > 1 ? item.op->cases.get(iteration) : 0;
      if (!std::exchange(isNoted[number], 1))
        for (const Op *op : segment.ops[number])
          note(*op, iteration);
      if (llvm::all_of(isNoted, [](char each) { return each; }))
        break;
    }
  }
}

void Additions::shiftRound(int64_t numNodes) {
  llvm::sort(addedInRound); // what is added to twice is shifted once
  addedInRound.erase(std::unique(addedInRound.begin(), addedInRound.end()), addedInRound.end());
  for (auto [first, layout] : addedInRound)
    for (Last &last : known[first])
      if (last.layout == layout)
        last.offset += numNodes;
}

void Additions::endUnit(const PlacedUnit &unit) {
  latest[unit.layout] = &unit;
  startRound();
}

/// In an iteration, in which all of them are or none.
std::optional<uint64_t> Additions::findLast(const Adders &adders, int64_t iteration, const PlacedUnit &unit) const {
  if (adders.layout == unit.layout && unit.layout->findPosition(adders.ops.front(), iteration)) {
    auto getId = [&](const Op *op) { return unit.getId(*unit.layout->findPosition(op, iteration)); };
    auto end = llvm::partition_point(adders.ops, [&](const Op *op) { return getId(op) < current; });
    if (end != adders.ops.begin())
      return getId(*std::prev(end));
  }
  const PlacedUnit *before = getLatest(adders.layout);
  auto position = before ? adders.layout->findPosition(adders.ops.back(), iteration) : std::nullopt;
  return position ? std::optional(before->getId(*position)) : std::nullopt;
}

void Additions::findLast(const Value *buffer, int64_t iteration, const PlacedUnit &unit,
                         llvm::SmallVectorImpl<uint64_t> &ids) {
  isAsked = true;
  std::optional<uint64_t> id; // nothing is less than any id
  const Op *first = buffers.getFirst(buffer);
  if (isPerIteration(buffer)) {
    if (auto it = adders.find(first); it != adders.end())
      for (const Adders &ofLayout : it->second)
        id = std::max(id, findLast(ofLayout, iteration, unit));
  } else if (auto it = known.find(first); it != known.end()) {
    for (const Last &last : it->second)
      if (const PlacedUnit *where = last.unit == &unit ? &unit : getLatest(last.layout))
        id = std::max(id, std::optional(where->getId(last.offset)));
  }
  if (id)
    ids.push_back(*id);
}

void Producers::visit(const Value *value, const PlacedUnit &unit, int64_t iteration, Visitor visitor) const {
  Seen seen;
  visit(value, unit, iteration, visitor, seen);
}

void Producers::visit(const Value *value, const PlacedUnit &unit, int64_t iteration, Visitor visitor,
                      Seen &seen) const {
  if (isTransferred(*value))
    if (auto recv = unit.layout->findRecv(value)) { // whatever the phase that uses it first
      for (const ProgramItem &item : unit.layout->getItems())
        if (item.kind == ProgramItem::Kind::Recv && item.values.front() == value)
          for (unsigned i = 0; i < item.values.size(); ++i)
            visitor({Origin::Kind::Recv, value, &unit, -1, unit.getId(*recv + i)});
      return;
    }
  // A value of another phase is that of the microbatch's earlier unit.
  if (unit.previous && value->getBlock()->getPhase() != unit.kind)
    return visit(value, *unit.previous, iteration, visitor, seen);
  if (!value->getBlock()->getParent())
    iteration = -1;
  if (value->isArgument())
    return visitArgument(value, unit, iteration, visitor, seen);
  const Op *op = value->getOp();
  if (op->kind != OpKind::Repeat &&
      !value->getBlock()->getParent()) { // what skips stages keeps its name on all of them
    if (visitArrival(value, unit, visitor))
      return;
    if (unit.giver && visitHandedIn(value, unit, visitor, seen))
      return;
  }
  switch (op->kind) {
  case OpKind::Param:
  case OpKind::Buffer:
  case OpKind::Cache:
  case OpKind::Input:
  case OpKind::Constant:
    return visitor({Origin::Kind::Source, value, &unit, iteration, 0});
  case OpKind::Accumulate:
    // All iterations share the buffer of a parameter from outside of their repeat.
    return visitor({Origin::Kind::Buffer, value, &unit, getLoop(op->getOperand(1)) ? iteration : -1, 0});
  case OpKind::AddNorm:
    return visitor({Origin::Kind::Buffer, value, &unit, -1, 0});
  case OpKind::Repeat:
    return visitLoopResult(value, unit, visitor, seen);
  default:
    break;
  }
  if (auto position = unit.layout->findPosition(op, iteration))
    return visitor({Origin::Kind::Node, value, &unit, iteration, unit.getId(*position)});
  if (op->getNumOperands() > 1 && !seen.insert({value, &unit, iteration}).second)
    return;
  for (const Value *operand : op->getOperands())
    visit(operand, unit, iteration, visitor, seen);
}

/// What another stage has sent to the unit, or the unit has gathered of the pieces that arrived. False if the value is
/// nothing of the kind.
bool Producers::visitArrival(const Value *value, const PlacedUnit &unit, Visitor visitor) const {
  auto arrival = unit.layout->findRecv(value);
  const Op *gather = arrival ? nullptr : findGather(unit.layout->getItems(), value);
  if (gather)
    visitor({Origin::Kind::Node, gather->getResult(), &unit, -1, unit.getId(*unit.layout->findPosition(gather, -1))});
  else if (arrival)
    visitor({Origin::Kind::Recv, value, &unit, -1, unit.getId(*arrival)});
  return arrival || gather;
}

/// What another chunk of the rank has handed to the unit. False if the value is nothing of the kind.
bool Producers::visitHandedIn(const Value *value, const PlacedUnit &unit, Visitor visitor, Seen &seen) const {
  const ProgramItem *taken = findHandedIn(unit.layout->getItems());
  const ProgramItem *given = taken ? findHandedOn(unit.giver->layout->getItems()) : nullptr;
  std::optional<unsigned> slot = given ? findHanded(*taken, value, *given) : std::nullopt;
  if (!slot)
    return false;
  const Value *sent = given->values[*slot];
  visit(sent, *unit.giver, unit.giver->layout->getSentIteration(sent), visitor, seen);
  return true;
}

void Producers::visitArgument(const Value *value, const PlacedUnit &unit, int64_t iteration, Visitor visitor,
                              Seen &seen) const {
  Op *loop = value->getBlock()->getParent();
  if (!loop) { // a piece
    visitArrival(value, unit, visitor);
    return;
  }
  const Segment *segment = unit.layout->findLoop(loop->loop);
  int64_t before = segment && iteration >= 0 ? segment->getNumBefore(iteration) : 0; // iterations that ran here
  if (before < 0 || (segment && before > segment->item->getNumIterations()))
    before = 0;
  // An iteration may hand on what it was given, run by run of equal ones. Where that goes in a circle whole rounds are
  // skipped (Brent's way to find one), so that a value that never changes is not followed through all iterations.
  unsigned number = value->getNumber();
  int64_t step = loop->reverse ? 1 : -1;
  while (before > 0) {
    int64_t giver = iteration + step, inRun = before;
    Block &body = loop->getBody(giver);
    if (!loop->cases.getRuns().empty()) {
      const IterationCases::Run &run = loop->cases.getRun(giver);
      inRun = std::min(before, loop->reverse ? run.end - giver : giver - run.begin + 1);
    }
    std::optional<unsigned> mark = number;
    int64_t steps = 0;
    for (int64_t markedAt = 0, limit = 1; steps < inRun;) {
      const Value *given = body.getTerminator()->getOperand(number);
      ++steps;
      if (!given->isArgument() || given->getBlock() != &body)
        return visit(given, unit, iteration + step * steps, visitor, seen);
      number = given->getNumber();
      if (number == mark) {
        int64_t round = steps - markedAt;
        steps += (inRun - steps) / round * round;
        mark.reset();
      } else if (mark && steps - markedAt == limit) {
        mark = number;
        markedAt = steps;
        limit *= 2;
      }
    }
    iteration += step * steps;
    before -= steps;
  }
  // Where no iteration runs what arrives keeps its name.
  bool runsHere = segment && iteration >= segment->item->begin && iteration < segment->item->end;
  Block &entered = runsHere ? loop->getBody(iteration) : *value->getBlock();
  if (visitArrival(entered.getArgument(number), unit, visitor))
    return;
  if (visitHandedIn(entered.getArgument(number), unit, visitor, seen))
    return;
  if (!unit.layout->isFed(*loop)) // else it is a constant, or nothing reads it
    visit(loop->getOperand(number), unit, -1, visitor, seen);
}

void Producers::visitLoopResult(const Value *value, const PlacedUnit &unit, Visitor visitor, Seen &seen) const {
  Op *loop = value->getOp();
  if (visitArrival(value, unit, visitor))
    return;
  if (visitHandedIn(value, unit, visitor, seen))
    return;
  const Segment *segment = unit.layout->findLoop(loop->loop);
  if (segment && segment->item->getNumIterations() > 0) {
    int64_t last = segment->item->getIteration(segment->item->getNumIterations() - 1);
    return visit(loop->getBody(last).getTerminator()->getOperand(value->getNumber()), unit, last, visitor, seen);
  }
  if (!unit.layout->isFed(*loop))
    visit(loop->getOperand(value->getNumber()), unit, -1, visitor, seen);
}
