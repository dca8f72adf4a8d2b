//===- Replay.cpp - traces that take what the compiler says ---------------===//
#include "stage/AstraSim/Replay.h"
#include "stage/Support/Limits.h"
#include "stage/Tasks/RankSlots.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/MathExtras.h"

using namespace stage;
using namespace stage::astrasim;

static constexpr Ticks ticksPerNano = ticksPerSecond / 1'000'000'000;

//===----------------------------------------------------------------------===//
// What ranks do
//===----------------------------------------------------------------------===//

Replay::Replay(llvm::ArrayRef<const Program *> parts, const EmitOptions &options, DiagnosticEngine &diags)
    : parts(parts), options(options), diags(diags) {
  for (const Program *part : parts) {
    tables.emplace_back(*part, tables.empty() ? 1 : tables.back().getEnd());
    tables.back().addAll(groups);
    numRanks += part->graph->mesh.getNumRanks();
  }
  for (unsigned number = 0; number < options.durations->getNumClasses(); ++number)
    collectSteps(number);
  numberLanes();
}

/// Receives have none, and are where they hold up no message.
Replay::LaneKey Replay::findLane(const Task &task) {
  switch (task.kind) {
  case TaskKind::Compute:
    return task.runsOnHost ? LaneKey(0, 2) : LaneKey(task.stream, computation.second);
  case TaskKind::Receive:
    return computation;
  case TaskKind::Collective:
  case TaskKind::Send:
    return {task.stream, communication.second};
  case TaskKind::Load:
  case TaskKind::Store:
    return {task.stream, 3};
  }
  llvm_unreachable("no other kinds");
}

void Replay::collectSteps(unsigned classNumber) {
  const TaskDurations::Origin &origin = options.durations->getOrigin(classNumber);
  ClassTasks tasks(*origin.program, tables[llvm::find(parts, origin.program) - parts.begin()], options,
                   origin.description, diags);
  ClassSteps &ofClass = classes.emplace_back();
  for (unsigned unit = 0; unit < tasks.getUnits().size(); ++unit)
    tasks.makeUnit(unit, [&](const Task &task) {
      const TaskDurations::Duration &duration = options.durations->get(classNumber, task.id);
      ofClass.awaited.insert(ofClass.awaited.end(), task.data.begin(), task.data.end());
      for (uint64_t id : task.order)
        if (!llvm::is_contained(task.data, id))
          ofClass.awaited.push_back(id);
      uint64_t nanoseconds = uint64_t(duration.charged + ticksPerNano / 2) / ticksPerNano;
      Step &step = ofClass.steps.emplace_back();
      step = {task.kind, findLane(task), duration.unit, duration.micros,       std::max<uint64_t>(1, nanoseconds),
              task.peer, task.tag,       task.group,    ofClass.awaited.size()};
    });
  ofClass.slots.assign(tasks.getSlots().begin(), tasks.getSlots().end());
}

void Replay::numberLanes() {
  std::map<LaneKey, unsigned> lanes = {{computation, 0}, {communication, 0}};
  for (const ClassSteps &ofClass : classes)
    for (const Step &step : ofClass.steps)
      lanes.try_emplace(step.key, 0);
  if (lanes.size() > 2) {
    numLanes = 0;
    for (auto &[key, lane] : lanes)
      lane = numLanes++;
  }
  for (ClassSteps &ofClass : classes) {
    size_t begin = 0;
    for (Step &step : ofClass.steps) {
      step.lane = lanes[step.key];
      for (uint64_t id : llvm::makeArrayRef(ofClass.awaited).slice(begin, step.endAwaited - begin))
        if (Step &awaited = ofClass.steps[id];
            awaited.lane != step.lane && !llvm::is_contained(awaited.consumers, step.lane))
          awaited.consumers.push_back(step.lane);
      begin = step.endAwaited;
    }
  }
}

std::string Replay::makeNetworkFile() const {
  // 10^9 bytes per second, of which the network reads 2^30.
  std::string devices = std::to_string(getNumDevices());
  return "# " + std::to_string(numRanks) + " ranks, " + devices +
         " devices, that replay durations: a byte of a message takes a nanosecond.\ntopology: [ Switch ]\nnpus_count: "
         "[ " +
         devices + " ]\nbandwidth: [ 0.931322574615478515625 ]\nlatency: [ 0 ]\n";
}

size_t Replay::findPart(int64_t rank) const {
  size_t part = parts.size() - 1;
  while (rank < int64_t(parts[part]->firstRank))
    --part;
  return part;
}

std::vector<uint64_t> Replay::resolveSlots(int64_t rank, const ClassSteps &ofClass) const {
  std::vector<uint64_t> slots;
  size_t part = findPart(rank);
  for (const RankSlot &slot : ofClass.slots) {
    bool isSize = slot.kind == RankSlot::Kind::Size; // durations say what sizes take
    slots.push_back(isSize ? 0 : resolve(*parts[part], tables[part], slot, rank - int64_t(parts[part]->firstRank)));
  }
  return slots;
}

//===----------------------------------------------------------------------===//
// Traces
//===----------------------------------------------------------------------===//

/// Tasks of a device, which are numbered anew, since a collective becomes several.
struct Replay::DeviceTrace {
  std::vector<Task> tasks;
  std::vector<TaskTimes> times;
  std::unique_ptr<llvm::BumpPtrAllocator> allocator = std::make_unique<llvm::BumpPtrAllocator>();

  uint64_t add(TaskKind kind, uint64_t nanoseconds, llvm::ArrayRef<uint64_t> awaited, uint32_t unit, uint64_t peer = 0,
               uint64_t tag = 0) {
    Task &task = tasks.emplace_back();
    task.kind = kind;
    task.id = tasks.size() - 1;
    task.data = awaited.copy(*allocator);
    task.bytes = nanoseconds;
    task.peer = peer;
    task.tag = tag;
    times.push_back({nanoseconds * uint64_t(ticksPerNano), 0, unit, 0});
    return task.id;
  }

  /// What a member at a place of a group does, whose devices are the ranks and as much.
  llvm::SmallVector<uint64_t, 2> addRounds(uint64_t nanoseconds, llvm::ArrayRef<uint32_t> group, uint64_t place,
                                           uint64_t firstDevice, uint64_t tag, llvm::SmallVector<uint64_t, 8> awaited,
                                           uint32_t unit) {
    const uint64_t size = group.size(), numRounds = std::max(1u, llvm::Log2_64_Ceil(size));
    for (uint64_t round = 0; round < numRounds; ++round) {
      uint64_t distance = (uint64_t(1) << round) % size;
      uint64_t part = nanoseconds * (round + 1) / numRounds - nanoseconds * round / numRounds;
      part = std::max<uint64_t>(1, part);
      uint64_t to = firstDevice + group[(place + distance) % size];
      uint64_t from = firstDevice + group[(place + size - distance) % size];
      uint64_t send = add(TaskKind::Send, part, awaited, unit, to, tag);
      awaited = {send, add(TaskKind::Receive, part, awaited, unit, from, tag)};
    }
    return {awaited.begin(), awaited.end()};
  }
};

std::vector<Replay::DeviceTrace> Replay::makeTraces(int64_t rank) {
  const ClassSteps &ofClass = classes[options.durations->findClass(rank)];
  const std::vector<uint64_t> slots = resolveSlots(rank, ofClass);
  std::vector<DeviceTrace> traces(numLanes);
  /// By step and lane: for which tasks of the lane others wait.
  std::vector<llvm::SmallVector<std::pair<unsigned, llvm::SmallVector<uint64_t, 2>>, 1>> ends;
  // Messages of the program count tags from 0; each message from lane to lane has a tag of its own.
  uint64_t tagOfLanes = uint64_t(maxTag) - 2 - groups.size();
  size_t begin = 0;
  for (const Step &step : ofClass.steps) {
    DeviceTrace &trace = traces[step.lane];
    llvm::SmallVector<uint64_t, 8> awaited;
    for (uint64_t id : llvm::makeArrayRef(ofClass.awaited).slice(begin, step.endAwaited - begin))
      for (auto &[lane, ids] : ends[id])
        if (lane == step.lane)
          awaited.append(ids.begin(), ids.end());
    begin = step.endAwaited;
    llvm::sort(awaited);
    llvm::SmallVector<uint64_t, 2> last;
    uint64_t peer = step.peer.resolve(slots), tag = step.tag.resolve(slots), number = step.group.resolve(slots);
    switch (step.kind) {
    case TaskKind::Collective: {
      const std::vector<uint32_t> &group = groups.find(number)->second;
      last = trace.addRounds(step.nanoseconds, group, uint64_t(llvm::find(group, rank) - group.begin()),
                             getDevice(0, step.lane), uint64_t(maxTag) - 1 - number, std::move(awaited), step.unit);
      break;
    }
    case TaskKind::Send:
      last = {trace.add(step.kind, step.nanoseconds, awaited, step.unit, peer, tag)};
      break;
    case TaskKind::Receive: {
      std::deque<Message> &queue = sent[{peer, uint64_t(rank), tag}];
      Message message = queue.front();
      queue.pop_front();
      last = {trace.add(step.kind, message.nanoseconds, awaited, step.unit, getDevice(peer, message.lane), tag)};
      break;
    }
    default:
      last = {trace.add(TaskKind::Compute, step.nanoseconds, awaited, step.unit)};
      trace.times.back().micros = step.micros;
    }
    auto &ofStep = ends.emplace_back();
    ofStep.push_back({step.lane, last});
    for (unsigned lane : step.consumers) {
      trace.add(TaskKind::Send, 1, last, step.unit, getDevice(rank, lane), tagOfLanes);
      uint64_t came = traces[lane].add(TaskKind::Receive, 1, {}, step.unit, getDevice(rank, step.lane), tagOfLanes);
      ofStep.push_back({lane, {came}});
      --tagOfLanes;
    }
  }
  for (DeviceTrace &trace : traces)
    if (trace.tasks.empty())
      trace.add(TaskKind::Compute, 1, {}, 0); // the simulator reads no empty trace
  return traces;
}

bool Replay::write(OutputDirectory &output) {
  for (int64_t rank = 0; rank < numRanks; ++rank) {
    const ClassSteps &ofClass = classes[options.durations->findClass(rank)];
    const std::vector<uint64_t> slots = resolveSlots(rank, ofClass);
    for (const Step &step : ofClass.steps)
      if (step.kind == TaskKind::Send)
        sent[{uint64_t(rank), step.peer.resolve(slots), step.tag.resolve(slots)}].push_back(
            {step.nanoseconds, step.lane});
  }
  for (int64_t rank = 0; rank < numRanks; ++rank) {
    std::vector<DeviceTrace> traces = makeTraces(rank);
    for (unsigned lane = 0; lane < numLanes; ++lane) {
      std::string name = (prefix + "." + llvm::Twine(getDevice(uint64_t(rank), lane)) + ".et").str();
      if (!output.writeFile(name, encodeTrace(traces[lane].tasks, traces[lane].times)))
        return false;
    }
  }
  return true;
}
