//===- Replay.cpp - traces that take what the compiler says ---------------===//
#include "stage/AstraSim/Replay.h"
#include "stage/Support/Limits.h"
#include "stage/Tasks/RankSlots.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/MathExtras.h"

using namespace stage;
using namespace stage::astrasim;

static constexpr Ticks ticksPerNano = ticksPerSecond / 1'000'000'000;

Replay::Replay(llvm::ArrayRef<const Program *> parts, const EmitOptions &options, DiagnosticEngine &diags)
    : parts(parts), options(options), diags(diags) {
  for (const Program *part : parts) {
    tables.emplace_back(*part, tables.empty() ? 1 : tables.back().getEnd());
    tables.back().addAll(groups);
    numRanks += part->graph->mesh.getNumRanks();
  }
}

std::string Replay::makeNetworkFile() const {
  // 10^9 bytes per second, of which the network reads 2^30.
  return "# " + std::to_string(numRanks) +
         " ranks that replay durations: a byte of a message takes a nanosecond.\ntopology: [ Switch ]\nnpus_count: [ " +
         std::to_string(numRanks) + " ]\nbandwidth: [ 0.931322574615478515625 ]\nlatency: [ 0 ]\n";
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
      ofClass.steps.push_back({task.kind, task.runsOnHost, duration.unit, duration.micros,
                               std::max<uint64_t>(1, nanoseconds), task.peer, task.tag, task.group,
                               ofClass.awaited.size()});
    });
  ofClass.slots.assign(tasks.getSlots().begin(), tasks.getSlots().end());
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

/// Tasks of a rank, which are numbered anew, since a collective becomes several.
struct Replay::RankTrace {
  std::vector<Task> tasks;
  std::vector<TaskTimes> times;
  /// By old id: the new ones for which others wait.
  std::vector<llvm::SmallVector<uint64_t, 2>> ends;
  llvm::BumpPtrAllocator allocator;

  Task &add(TaskKind kind, uint64_t nanoseconds, llvm::ArrayRef<uint64_t> awaited, uint32_t unit) {
    Task &task = tasks.emplace_back();
    task.kind = kind;
    task.id = tasks.size() - 1;
    task.data = awaited.copy(allocator);
    task.bytes = nanoseconds;
    times.push_back({nanoseconds * uint64_t(ticksPerNano), 0, unit, 0});
    return task;
  }

  /// What a member at a place of a group does.
  void addRounds(uint64_t nanoseconds, llvm::ArrayRef<uint32_t> group, uint64_t place, uint64_t tag,
                 llvm::SmallVector<uint64_t, 8> awaited, uint32_t unit) {
    const uint64_t size = group.size(), numRounds = std::max(1u, llvm::Log2_64_Ceil(size));
    for (uint64_t round = 0; round < numRounds; ++round) {
      uint64_t distance = (uint64_t(1) << round) % size;
      uint64_t part = nanoseconds * (round + 1) / numRounds - nanoseconds * round / numRounds;
      part = std::max<uint64_t>(1, part);
      for (bool isSend : {true, false}) {
        Task &task = add(isSend ? TaskKind::Send : TaskKind::Receive, part, awaited, unit);
        task.peer = group[(place + (isSend ? distance : size - distance)) % size];
        task.tag = tag;
      }
      awaited = {tasks.size() - 2, tasks.size() - 1};
    }
  }
};

std::vector<uint8_t> Replay::encode(int64_t rank) {
  const ClassSteps &ofClass = classes[options.durations->findClass(rank)];
  const std::vector<uint64_t> slots = resolveSlots(rank, ofClass);
  RankTrace trace;
  size_t begin = 0;
  for (const Step &step : ofClass.steps) {
    llvm::SmallVector<uint64_t, 8> awaited;
    for (uint64_t id : llvm::makeArrayRef(ofClass.awaited).slice(begin, step.endAwaited - begin))
      awaited.append(trace.ends[id].begin(), trace.ends[id].end());
    begin = step.endAwaited;
    llvm::sort(awaited);
    if (step.kind == TaskKind::Collective) {
      uint64_t number = step.group.resolve(slots);
      const std::vector<uint32_t> &group = groups.find(number)->second;
      // Messages of the program count tags from 0.
      trace.addRounds(step.nanoseconds, group, uint64_t(llvm::find(group, rank) - group.begin()),
                      uint64_t(maxTag) - 1 - number, std::move(awaited), step.unit);
      trace.ends.push_back({trace.tasks.size() - 2, trace.tasks.size() - 1});
      continue;
    }
    bool isMessage = step.kind == TaskKind::Send || step.kind == TaskKind::Receive;
    uint64_t peer = step.peer.resolve(slots), tag = step.tag.resolve(slots), nanoseconds = step.nanoseconds;
    if (step.kind == TaskKind::Receive) {
      std::deque<uint64_t> &queue = sent[{peer, uint64_t(rank), tag}];
      nanoseconds = queue.front();
      queue.pop_front();
    }
    Task &task = trace.add(isMessage ? step.kind : TaskKind::Compute, nanoseconds, awaited, step.unit);
    if (isMessage) {
      task.peer = peer;
      task.tag = tag;
    } else {
      task.runsOnHost = step.onHost || step.kind != TaskKind::Compute;
      trace.times.back().micros = step.micros;
    }
    trace.ends.push_back({task.id});
  }
  return encodeTrace(trace.tasks, trace.times);
}

bool Replay::write(OutputDirectory &output) {
  for (unsigned number = 0; number < options.durations->getNumClasses(); ++number)
    collectSteps(number);
  for (int64_t rank = 0; rank < numRanks; ++rank) {
    const ClassSteps &ofClass = classes[options.durations->findClass(rank)];
    const std::vector<uint64_t> slots = resolveSlots(rank, ofClass);
    for (const Step &step : ofClass.steps)
      if (step.kind == TaskKind::Send)
        sent[{uint64_t(rank), step.peer.resolve(slots), step.tag.resolve(slots)}].push_back(step.nanoseconds);
  }
  for (int64_t rank = 0; rank < numRanks; ++rank)
    if (!output.writeFile((prefix + "." + llvm::Twine(rank) + ".et").str(), encode(rank)))
      return false;
  return true;
}
