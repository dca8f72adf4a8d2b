//===- UnitWalk.cpp - what a rank does in a unit, in order ----------------===//
#include "stage/Walk/UnitWalk.h"
#include "stage/IR/graph/Channel.h"
#include "stage/Walk/Arrivals.h"

using namespace stage;

bool UnitWalk::outlivesUnit(const Value *value) const {
  return getLoop(value) ? lifetimes->isKept(value) : uses->isUsedAfter(value, place);
}

bool UnitWalk::isWanted(const Value *value) const {
  if (!lifetimes)
    return true;
  if (getLoop(value))
    return !lifetimes->isUnused(value) || lifetimes->isKept(value);
  return (*uses)[place].count(value) || outlivesUnit(value);
}

bool UnitWalk::diesWith(const Value *operand, const Op &op) const {
  if (getLoop(operand) || op.getBlock()->getParent())
    return llvm::is_contained(lifetimes->getReleases(&op), operand);
  return !outlivesUnit(operand) && (*uses)[place].lookup(operand) == itemEnd;
}

void UnitWalk::freeAll(llvm::ArrayRef<const Value *> values) {
  for (const Value *value : values)
    free(getName(value));
}

void UnitWalk::freeUnusedArguments(const Block &body, uint64_t iteration) {
  if (!lifetimes)
    return;
  for (auto &argument : body.getArguments())
    if (lifetimes->isUnused(argument.get()) && !lifetimes->isKept(argument.get()))
      free({argument.get(), iteration});
}

void UnitWalk::startPrefetching(llvm::ArrayRef<ProgramItem> items) {
  prefetching = {};
  const auto *work = llvm::find_if(items, [](const ProgramItem &item) { return item.op; });
  if (work == items.end())
    return;
  uint64_t room = countRoomAhead(work->op->getBlock()->getGraph(), items);
  if (work->op->getBlock()->getGraph().prefetch)
    prefetching.items = items;
  for (; room && !prefetching.items.empty(); --room)
    prefetchNext();
}

/// Steps to it and leaves the iteration in which it is; null at the end of the unit.
const Op *UnitWalk::findNextPrefetched() {
  auto &[items, current, position, end] = prefetching;
  for (; !items.empty(); items = items.drop_front(), current.reset()) {
    const ProgramItem &item = items.front();
    if (item.kind == ProgramItem::Kind::Op && item.op->isPrefetched) {
      items = items.drop_front();
      return item.op;
    }
    if (item.kind != ProgramItem::Kind::Loop || item.getNumIterations() == 0)
      continue;
    auto enter = [&](int64_t next) {
      current = next;
      Block &body = item.op->getBody(next);
      position = body.begin();
      end = body.end();
    };
    if (!current)
      enter(item.getIteration(0));
    while (true) {
      for (; position != end; ++position)
        if ((*position)->isPrefetched)
          return (position++)->get();
      if (int64_t(*current) == item.getIteration(item.getNumIterations() - 1))
        break;
      enter(getNextIteration(item, *current));
    }
  }
  return nullptr;
}

void UnitWalk::prefetchNext() {
  while (const Op *op = findNextPrefetched()) {
    std::optional<uint64_t> now = std::exchange(iteration, std::nullopt);
    if (op->getBlock()->getParent())
      iteration = prefetching.iteration;
    visitOp(*op);
    if (lifetimes && iteration)
      freeAll(lifetimes->getReleases(op)); // what has been fetched
    iteration = now;
    if (op->kind == OpKind::AllGather)
      break;
  }
}

void UnitWalk::walkLoop(const ProgramItem &loop, bool isFed) {
  const Op &op = *loop.op;
  int64_t count = loop.getNumIterations();
  if (count == 0) { // hands on what it was given
    for (unsigned k = 0; k < op.getNumResults(); ++k)
      bind({op.getOperand(k), 0}, {op.getResult(k), 0});
    return;
  }
  uint64_t current = loop.getIteration(0), last = loop.getIteration(count - 1);
  Block *body = &op.getBody(current);
  for (unsigned k = 0; k < op.getNumOperands() && !isFed; ++k)
    bind({op.getOperand(k), 0}, {body->getArgument(k), current});
  freeUnusedArguments(*body, current);
  freeAll(entryReleases);
  while (true) {
    iteration = current;
    Op *yield = body->getTerminator();
    for (auto &inner : *body)
      if (inner.get() != yield && !inner->isPrefetched) {
        visitOp(*inner);
        if (lifetimes)
          freeAll(lifetimes->getReleases(inner.get()));
        if (isReleaseOfPrefetched(*inner))
          prefetchNext();
      }
    bool isLast = current == last;
    uint64_t next = isLast ? 0 : getNextIteration(loop, current);
    Block *nextBody = isLast ? nullptr : &op.getBody(next);
    for (unsigned k = 0; k < op.getNumResults(); ++k) {
      const Value *to = isLast ? op.getResult(k) : nextBody->getArgument(k);
      if (!isLast || isWanted(to))
        bind(getName(yield->getOperand(k)), {to, next});
    }
    if (lifetimes)
      freeAll(lifetimes->getReleases(yield));
    if (isLast)
      break;
    freeUnusedArguments(*nextBody, next);
    current = next;
    body = nextBody;
  }
  iteration.reset();
}

/// What arrives, as the ops of the unit call it; `range`: the iterations of the repeat that carries it.
static IterationValue getArrival(const Value *value, const ProgramItem *range) {
  return {value, !getLoop(value) ? 0 : range ? range->getIteration(0) : UnitWalk::passingThrough};
}

void UnitWalk::walkGather(const ProgramItem &gather, const ProgramItem *range) {
  IterationValue whole = {gather.op->getResult(), 0};
  visitOp(*gather.op);
  const Value *gathered = gather.getGathered();
  bind(whole, getArrival(gathered, range));
  if (!lifetimes)
    return;
  free(whole);
  if (!getLoop(gathered) && !isWanted(gathered))
    free({gathered, 0});
}

void UnitWalk::walkRecv(const ProgramItem &recv, const ProgramItem *range) {
  for (unsigned k = 0; k < recv.values.size(); ++k)
    visitReceive(recv, k, getArrival(recv.values[k], range));
  for (auto [constant, value] : recv.constants)
    bind({constant, getArrival(value, range).second}, getArrival(value, range));
  for (const Value *value : recv.values)
    if (!getLoop(value) && !isWanted(value))
      free({value, 0});
}

void UnitWalk::walkSend(const ProgramItem &send, const ProgramItem *range) {
  for (unsigned k = 0; k < send.values.size(); ++k) {
    const Value *value = send.getSent(k, range);
    IterationValue name = {value, getLoop(value) ? passingThrough : 0};
    visitSend(send, k, name);
    if (getLoop(value))
      free(name); // passed through
  }
}

/// The cache of a message, which is there before and behind the unit.
static IterationValue getCache(const ProgramItem &message) {
  return {message.values.front(), std::max<int64_t>(message.channel->iteration, 0)};
}

void UnitWalk::walk(llvm::ArrayRef<ProgramItem> items, const ChainUses *chainUses, unsigned unitPlace) {
  uses = chainUses;
  lifetimes = uses ? &uses->getLifetimes() : nullptr;
  place = unitPlace;
  if (uses)
    enterUnit((*uses)[place]);
  startPrefetching(items);
  std::vector<llvm::SmallVector<const Value *, 2>> releases(2 * items.size());
  if (lifetimes)
    for (auto [value, time] : (*uses)[place])
      if (!getLoop(value) && !outlivesUnit(value))
        releases[time].push_back(value);
  for (unsigned i = 0; i < items.size(); ++i) {
    const ProgramItem &item = items[i];
    itemEnd = 2 * i + 1;
    entryReleases = releases[2 * i];
    switch (item.kind) {
    case ProgramItem::Kind::Op:
      if (item.op->isPrefetched)
        break;
      if (item.getGathered()) {
        walkGather(item, findRangeOfMessage(items, item));
        break;
      }
      visitOp(*item.op);
      for (auto &result : item.op->getResults())
        if (!isWanted(result.get()))
          free({result.get(), 0});
      break;
    case ProgramItem::Kind::Loop:
      walkLoop(item, receives(items, *item.op));
      break;
    case ProgramItem::Kind::Recv:
      if (item.channel && item.channel->isOfCache()) {
        for (unsigned k = 0; k < item.values.size(); ++k)
          visitReceive(item, k, getCache(item));
        break;
      }
      walkRecv(item, findRangeOfMessage(items, item));
      break;
    case ProgramItem::Kind::Send:
      if (item.channel && item.channel->isOfCache()) {
        for (unsigned k = 0; k < item.values.size(); ++k)
          visitSend(item, k, getCache(item));
        break;
      }
      walkSend(item, findRangeOfMessage(items, item));
      break;
    }
    freeAll(releases[itemEnd]);
    if (item.op && isReleaseOfPrefetched(*item.op))
      prefetchNext();
  }
}
