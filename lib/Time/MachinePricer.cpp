//===- MachinePricer.cpp - what tasks take on a machine -------------------===//
#include "MachinePricer.h"
#include "stage/Tasks/TaskWork.h"
#include "stage/Time/StepTime.h"

using namespace stage;

bool stage::hasSurcharges(const TimedPart &part) {
  const Runtime &runtime = part.runtime;
  bool isTaxed = runtime.launch || runtime.stepHost || runtime.taxOfCollectives.num || runtime.taxOfSends.num ||
                 runtime.taxOfCopies.num || runtime.taxOfCommunication.num;
  return part.machine.isDeclared() && (isTaxed || llvm::any_of(part.program->graph->streams, [](const auto &stream) {
                                         return stream->kind == StreamKind::Communication;
                                       }));
}

void MachinePricer::setWalk(const StepWalk &asked) {
  walk = &asked;
  surcharges = llvm::any_of(asked.getParts(), hasSurcharges);
}

MachinePricer::PricedClass &MachinePricer::getClass(unsigned number) {
  for (unsigned next = unsigned(classes.size()); next <= number; ++next)
    classes.emplace_back().slowness = walk->getTasks(next).getSlowness();
  return classes[number];
}

TimedTask &MachinePricer::add(unsigned classNumber, const WaitingTask &waiting) {
  TimedTasks &tasks = getClass(classNumber).tasks;
  TimedTask &task = tasks.add();
  task.kind = waiting.kind;
  task.unit = waiting.unit;
  for (uint64_t id : waiting.awaited)
    if (surcharges)
      tasks.wait(id);
  if (keepsRuns)
    classes[classNumber].runs.emplace_back();
  return task;
}

std::optional<Ticks> stage::findPrice(const Task &task, const Machine &machine, const Runtime &runtime,
                                      const std::optional<Rational> &slowness, const GroupPlace &place,
                                      llvm::StringRef &missing) {
  std::optional<Ticks> price = findDuration(task, machine, place, missing);
  return price && task.work && slowness ? multiply(*price, *slowness) : price;
}

bool MachinePricer::price(unsigned classNumber, const Task &task, const GroupPlace &place, WaitingTask &waiting) {
  llvm::StringRef missing;
  const TimedPart &part = walk->getPart(classNumber);
  const Machine &machine = part.machine, *lacking = &machine;
  const TimedPart *other = walk->findOtherMachine(classNumber, task);
  std::optional<Ticks> duration =
      other ? findDurationBetween(task, machine, other->machine, missing, lacking)
            : findPrice(task, machine, part.runtime, getClass(classNumber).slowness, place, missing);
  if (!duration) {
    reportMissingRate(task, *lacking, part.program->graph->loc, missing, diags);
    return false;
  }
  waiting.duration = *duration;
  if (!surcharges && !keepsRuns)
    return true;
  TimedTask &timed = add(classNumber, waiting);
  auto &lanes = classes[classNumber].lanes;
  timed.lane = lanes.try_emplace(StepWalk::getLaneKey(task), unsigned(lanes.size())).first->second;
  timed.isKernel = task.kind == TaskKind::Compute && !task.runsOnHost;
  timed.isTaxed = timed.isKernel && task.stream == 0;
  timed.level = place.getLevel();
  timed.alone = waiting.duration;
  if (task.work) {
    insideTables &= machine.isInsideTables(*task.work);
    assumed |= machine.isAssumed(*task.work);
  } else if (task.kind == TaskKind::Collective) {
    insideTables &= machine.isInsideTables(getCollectiveKind(task.op->kind), int64_t(task.bytes.resolve({})), place);
  }
  if (keepsRuns)
    classes[classNumber].runs.back() = {TaskFacts(task, place)};
  return true;
}

void MachinePricer::takeReceive(unsigned classNumber, const Task &task, const GroupPlace &place,
                                const WaitingTask &waiting) {
  if (!surcharges && !keepsRuns)
    return;
  add(classNumber, waiting).level = place.getLevel();
  if (keepsRuns)
    classes[classNumber].runs.back() = {TaskFacts(task, place)};
}

void MachinePricer::settle() {
  for (unsigned number = 0; number < classes.size(); ++number) {
    PricedClass &each = classes[number];
    each.surcharges = findSurcharges(each.tasks, unsigned(each.lanes.size()), walk->getPart(number).runtime);
    each.tasks.forgetAwaited();
  }
}

Ticks MachinePricer::getDuration(unsigned classNumber, const WaitingTask &task) const {
  if (!surcharges)
    return task.duration;
  const Surcharge &more = classes[classNumber].surcharges[task.id];
  return Ticks(std::min<__int128>(__int128(task.duration) + more.launch + more.beside, maxTicks));
}

void MachinePricer::run(unsigned classNumber, const WaitingTask &task, Ticks begin, Ticks end,
                        std::optional<ClassTask> cause) {
  if (!keepsRuns)
    return;
  PricedTask &run = classes[classNumber].runs[task.id];
  run.begin = begin;
  run.end = end;
  run.cause = cause;
}
