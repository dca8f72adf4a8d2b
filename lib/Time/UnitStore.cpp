//===- UnitStore.cpp - compiled units of all classes of ranks -------------===//
#include "UnitStore.h"
#include "MachinePricer.h"
#include "stage/IR/graph/Channel.h"
#include "stage/Tasks/RankSlots.h"

using namespace stage;

static uint64_t getAddress(const void *pointer) { return uint64_t(reinterpret_cast<uintptr_t>(pointer)); }

unsigned UnitStore::findSizes(unsigned classNumber, const RankClass &rankClass) {
  if (rankClass.slowness)
    return ~classNumber;
  auto known = llvm::find(coordinates, rankClass.coordinates);
  if (known == coordinates.end())
    known = coordinates.insert(known, rankClass.coordinates);
  return unsigned(known - coordinates.begin());
}

uint64_t UnitStore::findPlace(const GroupPlace &place) {
  auto known = llvm::find(places, place);
  if (known == places.end())
    known = places.insert(known, place);
  return uint64_t(known - places.begin());
}

//===----------------------------------------------------------------------===//
// Templates
//===----------------------------------------------------------------------===//

ClassTemplate UnitStore::describe(unsigned classNumber, unsigned sizesOf, const ClassTasks &tasks,
                                  const PlacedUnit &unit) {
  ClassTemplate result;
  llvm::ArrayRef<ProgramItem> items = unit.layout->getItems();
  for (const ProgramItem &item : items)
    if (item.kind == ProgramItem::Kind::Loop)
      result.loops.emplace_back(item.op->loop, item.begin);
  Signature signature = {uint64_t(unit.kind), sizesOf};
  addPorts(result, signature, classNumber, tasks, unit);
  bool mayBeAlike = true;
  for (const ProgramItem &item : items)
    mayBeAlike &= addItem(signature, classNumber, tasks.getStage().stage, item, result);
  if (!mayBeAlike)
    signature = {classNumber, getAddress(unit.layout)};
  result.alike = alike.try_emplace(std::move(signature), uint32_t(alike.size())).first->second;
  return result;
}

ClassTemplate UnitStore::pairUp(const ClassTemplate &first, const ClassTemplate &second) {
  ClassTemplate result = first;
  llvm::append_range(result.loops, second.loops);
  result.secondPorts = uint32_t(first.ports.size());
  llvm::append_range(result.ports, second.ports);
  Signature signature = {~uint64_t(0), first.alike, second.alike}; // no kind of phase has this number
  result.alike = alike.try_emplace(std::move(signature), uint32_t(alike.size())).first->second;
  return result;
}

/// False where no other template can be alike.
bool UnitStore::addItem(Signature &signature, unsigned classNumber, unsigned stage, const ProgramItem &item,
                        const ClassTemplate &of) {
  if (item.channel)
    return false;
  signature.push_back(uint64_t(item.kind) | uint64_t(item.isLocal) << 8 | uint64_t(item.isBlocking) << 9);
  signature.push_back(getAddress(item.op));
  signature.push_back(getAddress(item.carrier));
  if (item.kind == ProgramItem::Kind::Loop) {
    auto first = llvm::find_if(of.loops, [&](const auto &loop) { return loop.first == item.op->loop; });
    signature.push_back(uint64_t(item.getNumIterations()));
    signature.push_back(uint64_t(item.begin - first->second));
    signature.push_back(item.op->bodies.size() > 1 ? uint64_t(item.begin) + 1 : 0);
  }
  signature.push_back(item.values.size());
  signature.push_back(getAddress(item.getGathered()));
  for (auto [value, slot] : llvm::zip(item.values, item.slots)) {
    signature.push_back(getAddress(value));
    signature.push_back(slot);
  }
  signature.push_back(item.constants.size());
  for (auto [constant, value] : item.constants) {
    signature.push_back(getAddress(constant));
    signature.push_back(getAddress(value));
  }
  return !item.op || addCommunication(signature, classNumber, *item.op, stage);
}

/// False for a permute, or for a collective with other classes.
bool UnitStore::addCommunication(Signature &signature, unsigned classNumber, const Op &item, unsigned stage) {
  auto [known, isNew] = communication.try_emplace(&item);
  if (isNew) {
    if (isCommunication(item.kind))
      known->second.push_back(&item);
    for (const auto &body : item.bodies)
      for (const auto &op : *body)
        if (isCommunication(op->kind))
          known->second.push_back(op.get());
  }
  for (const Op *op : known->second) {
    if (op->kind == OpKind::Permute)
      return false;
    std::optional<unsigned> kind = connections.groups.find(*op, stage);
    if (!kind) {
      signature.push_back(0);
      continue;
    }
    const Connections::Meeting &group = connections.getGroup(classNumber, *kind);
    if (group.expected > 1)
      return false;
    signature.push_back(1 + findPlace(group.place));
  }
  return true;
}

/// Where messages go; the distance of who is sent to makes templates alike.
void UnitStore::addPorts(ClassTemplate &result, Signature &signature, unsigned classNumber, const ClassTasks &tasks,
                         const PlacedUnit &unit) {
  const Program &program = connections.program;
  int64_t rank = connections.classes.getRepresentative(classNumber);
  llvm::SmallVector<uint64_t, 4> tags = tasks.getTags(unit); // of the first and of the last value of each message
  auto tag = tags.begin();
  for (const ProgramItem &item : unit.layout->getItems()) {
    if (!item.isMessage() || item.values.empty() || item.isLocal)
      continue;
    bool isSent = item.kind == ProgramItem::Kind::Send;
    if (item.channel) { // its template is alike with no other one, and has no ports
      tag += item.channel->isOfCache() ? 2 : 1;
      continue;
    }
    RankSlot slot{RankSlot::Kind::Stage, 0, program.virtualStages[item.peer].first};
    uint64_t peer = resolve(program, connections.groups, slot, rank);
    unsigned channel = connections.findChannel(classNumber, isSent, slot, peer);
    for (uint64_t i = 0; i < item.values.size(); ++i)
      result.ports.push_back({channel, *tag + i - uint64_t(unit.microbatch) * connections.groups.getMostValues()});
    tag += 2;
    signature.push_back(findPlace(connections.machine.findPlace({program.firstRank + rank, int64_t(peer)})));
  }
}

//===----------------------------------------------------------------------===//
// Facts
//===----------------------------------------------------------------------===//

std::optional<uint32_t> UnitStore::findFacts(const Task &task, unsigned environment, const GroupPlace &place,
                                             unsigned sizesOf, const std::optional<Rational> &slowness) {
  constexpr unsigned numKinds = unsigned(TaskKind::Store) + 1;
  uint64_t bytes = task.isPricedAsMessage() ? task.bytes.resolve({}) : 0;
  auto [known, isNew] = factNumbers.try_emplace(
      {task.op, uint64_t(environment) * numKinds + uint64_t(task.kind), bytes, findPlace(place) << 32 | sizesOf},
      uint32_t(facts.size()));
  if (!isNew)
    return known->second;
  Ticks duration = 0;
  if (task.kind != TaskKind::Receive) {
    llvm::StringRef missing;
    std::optional<Ticks> price = findPrice(task, connections.machine, runtime, slowness, place, missing);
    if (!price)
      return std::nullopt;
    duration = *price;
    if (keepsPrices)
      keepPrice(task, place, slowness, duration);
    if (task.work) {
      insideTables &= connections.machine.isInsideTables(*task.work);
      assumed |= connections.machine.isAssumed(*task.work);
    } else if (task.kind == TaskKind::Collective) {
      insideTables &=
          connections.machine.isInsideTables(getCollectiveKind(task.op->kind), int64_t(task.bytes.resolve({})), place);
    }
  }
  auto lane = StepWalk::getLaneKey(task);
  unsigned laneNumber = 0;
  if (task.kind != TaskKind::Receive)
    laneNumber = laneNumbers.try_emplace(lane, unsigned(laneNumbers.size())).first->second;
  facts.push_back({TaskFacts(task, place), duration, lane, laneNumber});
  return known->second;
}

void UnitStore::keepPrice(const Task &task, const GroupPlace &place, const std::optional<Rational> &slowness,
                          Ticks duration) {
  KeptPrice &kept = prices.emplace_back(KeptPrice{task, std::nullopt, place, slowness, duration});
  kept.task.name = kept.task.opType = {};
  kept.task.data = kept.task.order = {};
  kept.task.networkDims = {};
  if (task.work) // of a rank with coordinates it is that of the task alone
    kept.work = *task.work;
}

bool UnitStore::hasSamePrices(const Machine &other) const {
  return llvm::all_of(prices, [&](const KeptPrice &kept) {
    Task task = kept.task;
    task.work = kept.work ? &*kept.work : nullptr;
    llvm::StringRef missing;
    return findPrice(task, other, runtime, kept.slowness, kept.place, missing) == kept.duration;
  });
}
