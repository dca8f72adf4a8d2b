//===- StepTimeline.cpp - when each task of a step runs -------------------===//
#include "stage/Time/StepTimeline.h"
#include "CompiledWalk.h"
#include "MachinePricer.h"
#include "stage/Time/StepTime.h"

using namespace stage;

std::string stage::getName(const TimedLane &lane, const Program &program) {
  using Kind = TimedLane::Kind;
  if (lane.stream)
    return program.graph->streams[lane.stream - 1]->name;
  switch (lane.kind) {
  case Kind::Compute:
    return "compute";
  case Kind::Communication:
    return "communication";
  case Kind::Copies:
    return "copies";
  case Kind::Host:
    return "host";
  }
  llvm_unreachable("covered switch");
}

std::string TimedRun::getName() const { return op ? describeOp(*op) : "message"; }

static TimedLane getLane(const TaskFacts &facts) {
  using Kind = TimedLane::Kind;
  bool isCopy = facts.kind == TaskKind::Load || facts.kind == TaskKind::Store;
  Kind kind = facts.isKernel                    ? Kind::Compute
              : facts.kind == TaskKind::Compute ? Kind::Host
              : isCopy                          ? Kind::Copies
                                                : Kind::Communication;
  return {kind, facts.stream};
}

/// A walk that has found when all tasks run.
class StepTimeline::Walked {
public:
  virtual ~Walked() = default;
  virtual const StepRuns &getRuns() const = 0;
  virtual unsigned getNumClasses() const = 0;
  virtual const ClassTasks &getTasks(unsigned classNumber) const = 0;
  virtual const Program &getProgram(unsigned classNumber) const = 0;
  virtual int64_t getRepresentative(unsigned classNumber) const = 0;
};

class StepTimeline::ByUnit final : public Walked {
public:
  ByUnit(const TimedPart &used, DiagnosticEngine &diags)
      : part(used), program(*part.program), walk(part, TaskOptions(), diags) {
    walk.keepUnits();
  }
  const StepRuns &getRuns() const override { return walk; }
  unsigned getNumClasses() const override { return walk.getNumClasses(); }
  const ClassTasks &getTasks(unsigned classNumber) const override { return walk.getTasks(classNumber); }
  const Program &getProgram(unsigned) const override { return program; }
  int64_t getRepresentative(unsigned classNumber) const override { return walk.getRepresentative(classNumber); }

  const TimedPart part;
  const Program &program;
  CompiledWalk walk;
};

class StepTimeline::ByTask final : public Walked {
public:
  ByTask(std::vector<TimedPart> used, const TaskOptions &options, DiagnosticEngine &diags)
      : parts(std::move(used)), pricer(/*keepsRuns=*/true, diags), walk(parts, options, pricer, diags) {
    pricer.setWalk(walk);
  }
  const StepRuns &getRuns() const override { return pricer; }
  unsigned getNumClasses() const override { return walk.getNumClasses(); }
  const ClassTasks &getTasks(unsigned classNumber) const override { return walk.getTasks(classNumber); }
  const Program &getProgram(unsigned classNumber) const override { return walk.getProgram(classNumber); }
  int64_t getRepresentative(unsigned classNumber) const override { return walk.getRepresentative(classNumber); }

  const std::vector<TimedPart> parts;
  MachinePricer pricer;
  StepWalk walk;
};

StepTimeline::StepTimeline() = default;
StepTimeline::~StepTimeline() = default;

std::unique_ptr<StepTimeline> StepTimeline::find(llvm::ArrayRef<TimedPart> asked, DiagnosticEngine &diags) {
  const std::vector<TimedPart> parts = findUsed(asked, TaskOptions(), diags);
  if (parts.empty())
    return nullptr;
  std::unique_ptr<StepTimeline> timeline(new StepTimeline());
  timeline->machine = describeMachines(parts);
  timeline->runtime = describeRuntimes(parts);
  for (const TimedPart &part : parts)
    timeline->numRanks += part.program->graph->mesh.getNumRanks();
  if (CompiledWalk::serves(parts)) {
    auto walked = std::make_unique<ByUnit>(parts.front(), diags);
    switch (walked->walk.run()) {
    case CompiledWalk::Outcome::Done:
      timeline->step = walked->walk.getStep();
      timeline->insideTables = walked->walk.isInsideTables();
      timeline->walked = std::move(walked);
      return timeline;
    case CompiledWalk::Outcome::Failed:
      return nullptr;
    case CompiledWalk::Outcome::Unsupported:
      break;
    }
  }
  TaskOptions options;
  options.works = true;
  auto walked = std::make_unique<ByTask>(parts, options, diags);
  if (!walked->walk.run())
    return nullptr;
  timeline->step = walked->walk.collect().step;
  timeline->insideTables = walked->pricer.isInsideTables();
  timeline->walked = std::move(walked);
  return timeline;
}

unsigned StepTimeline::getNumClasses() const { return walked->getNumClasses(); }
const ClassTasks &StepTimeline::getTasks(unsigned classNumber) const { return walked->getTasks(classNumber); }
const Program &StepTimeline::getProgram(unsigned classNumber) const { return walked->getProgram(classNumber); }
int64_t StepTimeline::getRepresentative(unsigned classNumber) const { return walked->getRepresentative(classNumber); }

StageTime StepTimeline::visit(unsigned classNumber, RunSink runs, WaitSink waits) const {
  const ClassTasks &tasks = getTasks(classNumber);
  unsigned unit = 0;
  TimeAccounts accounts(walked->getRuns(), classNumber, waits);
  accounts.chargeAll(tasks.getNumIds(), step, [&](uint64_t id, const TaskRun &run) {
    if (run.facts->kind == TaskKind::Receive)
      return;
    unit = tasks.findUnit(id, unit);
    TimeAccount account = run.facts->isWait ? TimeAccount::Bubble : TimeAccounts::getAccount(*run.facts);
    runs({getLane(*run.facts), run.facts->kind, run.facts->op, account, unit,
          unsigned(tasks.getUnits()[unit].getPosition(id)), run.begin, run.end, run.more});
  });
  StageTime time = accounts.take();
  time.program = &getProgram(classNumber);
  time.stage = getTasks(classNumber).getStage().stage;
  time.rank = getRepresentative(classNumber);
  return time;
}
