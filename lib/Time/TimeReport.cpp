//===- TimeReport.cpp - where the time of a step goes ---------------------===//
#include "stage/Time/TimeReport.h"
#include "CompiledWalk.h"
#include "MachinePricer.h"
#include "stage/Time/StepTime.h"
#include "llvm/ADT/MapVector.h"

using namespace stage;

llvm::StringRef stage::getName(TimeAccount account) {
  static constexpr const char *names[] = {"products", "attention", "element-wise", "optimizer",
                                          "overlap",  "exposed",   "bubble",       "host"};
  return names[unsigned(account)];
}

/// Of a class whose tasks were walked one by one.
static StageTime findAccounts(const MachinePricer &pricer, unsigned number, Ticks step) {
  TimeAccounts accounts(pricer, number);
  accounts.chargeAll(pricer.getRuns(number).size(), step);
  return accounts.take();
}

namespace {
/// Of a class.
struct StageOwner {
  const Program *program;
  unsigned stage;
};

/// Tasks of the critical path that are priced alike.
struct PathPiece {
  const Op *op;
  const Program *program;
  unsigned stage, peer;
  TaskKind kind;
  TaskFacts facts;
  int64_t count = 0;
  Ticks taken = 0;
};

/// Adds up the links of a path.
class PathPieces {
public:
  void add(const StageOwner &owner, unsigned classNumber, const TaskFacts &facts, int64_t count, Ticks taken) {
    auto [known, isNew] =
        numbers.try_emplace({facts.op, classNumber, unsigned(facts.kind), facts.bytes}, pieces.size());
    if (isNew)
      pieces.push_back({facts.op, owner.program, owner.stage, 0, facts.kind, facts});
    PathPiece &piece = pieces[known->second];
    piece.count += count;
    piece.taken += taken;
  }
  llvm::ArrayRef<PathPiece> get() const { return pieces; }

private:
  std::map<std::tuple<const Op *, unsigned, unsigned, uint64_t>, size_t> numbers;
  std::vector<PathPiece> pieces;
};
} // namespace

static std::optional<ClassTask> findLast(const MachinePricer &pricer, Ticks step) {
  for (unsigned number = 0; number < pricer.getNumClasses(); ++number)
    for (size_t id = 0; id < pricer.getRuns(number).size(); ++id)
      if (pricer.getRuns(number)[id].end == step)
        return ClassTask{number, id};
  return std::nullopt;
}

static std::string describe(const PathPiece &piece) {
  if (piece.facts.isWait)
    return "wait of stage " + std::to_string(piece.stage) + " for its message";
  if (!piece.op)
    return "message from stage " + std::to_string(piece.stage);
  return describeOp(*piece.op);
}

static std::vector<PathLink> listLinks(llvm::ArrayRef<PathPiece> pieces) {
  llvm::MapVector<std::pair<unsigned, std::string>, PathLink, std::map<std::pair<unsigned, std::string>, unsigned>>
      links;
  for (const PathPiece &piece : pieces) {
    std::string name = describe(piece);
    PathLink &link = links[{piece.stage, name}];
    link.name = name;
    link.stage = piece.stage;
    link.count += piece.count;
    link.ticks += piece.taken;
  }
  std::vector<PathLink> list;
  for (auto &[key, link] : links)
    list.push_back(std::move(link));
  llvm::stable_sort(list, [](const PathLink &a, const PathLink &b) { return a.ticks > b.ticks; });
  return list;
}

/// Adds a class. Of those of a stage the one that computes longest stands for it.
static void addStage(TimeReport &report, StageTime time, const StageOwner &owner, const RankClasses &classes,
                     int64_t rank) {
  report.busy += __int128(time.getBusy()) * classes.getNumRanks(classes.find(rank - int64_t(owner.program->firstRank)));
  time.program = owner.program;
  time.stage = owner.stage;
  time.rank = rank;
  auto same = llvm::find_if(
      report.stages, [&](const StageTime &each) { return each.program == time.program && each.stage == time.stage; });
  if (same == report.stages.end())
    report.stages.push_back(std::move(time));
  else if (same->getCompute() < time.getCompute())
    *same = std::move(time);
}

static bool walkTasks(llvm::ArrayRef<TimedPart> parts, DiagnosticEngine &diags, TimeReport &report) {
  TaskOptions options;
  options.works = true;
  MachinePricer pricer(/*keepsRuns=*/true, diags);
  StepWalk walk(parts, options, pricer, diags);
  pricer.setWalk(walk);
  if (!walk.run())
    return false;
  report.step = walk.collect().step;
  report.insideTables = pricer.isInsideTables();
  report.isAssumed = pricer.isAssumed();
  auto getOwner = [&](unsigned number) {
    return StageOwner{&walk.getProgram(number), walk.getTasks(number).getStage().stage};
  };
  for (unsigned number = 0; number < pricer.getNumClasses(); ++number)
    addStage(report, findAccounts(pricer, number, report.step), getOwner(number), walk.getClasses(number),
             walk.getRepresentative(number));
  for (unsigned number = 0; number < pricer.getNumClasses(); ++number)
    report.numPlaced += pricer.getRuns(number).size();
  PathPieces pieces;
  // From the task that ends last back to one that waited for none.
  for (std::optional<ClassTask> next = findLast(pricer, report.step); next;) {
    TaskRun run = pricer.getRun(*next);
    if (run.facts->kind != TaskKind::Receive) // it takes no time of its own
      pieces.add(getOwner(next->classNumber), next->classNumber, *run.facts, 1, run.end - run.begin);
    next = run.cause;
  }
  report.path = listLinks(pieces.get());
  return true;
}

static CompiledWalk::Outcome walkUnits(const TimedPart &part, DiagnosticEngine &diags, TimeReport &report) {
  CompiledWalk walk(part, TaskOptions(), diags);
  if (CompiledWalk::Outcome outcome = walk.run(); outcome != CompiledWalk::Outcome::Done)
    return outcome;
  report.step = walk.getStep();
  report.insideTables = walk.isInsideTables();
  report.isAssumed = walk.isAssumed();
  report.numPlaced = walk.getCounts().placed + walk.getCounts().tasks;
  auto getOwner = [&](unsigned number) { return StageOwner{part.program, walk.getTasks(number).getStage().stage}; };
  for (unsigned number = 0; number < walk.getNumClasses(); ++number)
    addStage(report, walk.takeAccounts(number), getOwner(number), walk.getClasses(), walk.getRepresentative(number));
  PathPieces pieces;
  if (std::optional<ClassTask> last = walk.findLast())
    walk.visitPath(*last, [&](unsigned classNumber, const TaskFacts &facts, int64_t count, Ticks taken) {
      pieces.add(getOwner(classNumber), classNumber, facts, count, taken);
    });
  report.path = listLinks(pieces.get());
  return CompiledWalk::Outcome::Done;
}

static std::optional<TimeReport> find(llvm::ArrayRef<TimedPart> asked, bool byTask, DiagnosticEngine &diags) {
  const std::vector<TimedPart> parts = findUsed(asked, TaskOptions(), diags);
  if (parts.empty())
    return std::nullopt;
  TimeReport report;
  report.machine = describeMachines(parts);
  report.runtime = describeRuntimes(parts);
  CompiledWalk::Outcome outcome = CompiledWalk::Outcome::Unsupported;
  if (!byTask && CompiledWalk::serves(parts))
    outcome = walkUnits(parts.front(), diags, report);
  bool isDone = outcome == CompiledWalk::Outcome::Done ||
                (outcome == CompiledWalk::Outcome::Unsupported && walkTasks(parts, diags, report));
  if (!isDone)
    return std::nullopt;
  report.traits = findTraits(parts, report.stages);
  return report;
}

static std::vector<TimedPart> listParts(llvm::ArrayRef<const Program *> programs, const Machine &machine,
                                        const Runtime &runtime) {
  std::vector<TimedPart> parts;
  for (const Program *program : programs)
    parts.push_back({program, machine, runtime});
  return parts;
}

std::optional<TimeReport> stage::findTimeReport(llvm::ArrayRef<const Program *> parts, const Machine &machine,
                                                const Runtime &runtime, DiagnosticEngine &diags) {
  return find(listParts(parts, machine, runtime), /*byTask=*/false, diags);
}

std::optional<TimeReport> stage::findTimeReportByTask(llvm::ArrayRef<const Program *> parts, const Machine &machine,
                                                      const Runtime &runtime, DiagnosticEngine &diags) {
  return find(listParts(parts, machine, runtime), /*byTask=*/true, diags);
}

static std::optional<Ticks> findStepOf(llvm::ArrayRef<TimedPart> asked, DiagnosticEngine &diags) {
  const std::vector<TimedPart> parts = findUsed(asked, TaskOptions(), diags);
  if (parts.empty())
    return std::nullopt;
  if (CompiledWalk::serves(parts)) {
    CompiledWalk walk(parts.front(), TaskOptions(), diags);
    CompiledWalk::Outcome outcome = walk.run();
    if (outcome != CompiledWalk::Outcome::Unsupported)
      return outcome == CompiledWalk::Outcome::Done ? std::optional(walk.getStep()) : std::nullopt;
  }
  TaskOptions options;
  options.works = true;
  MachinePricer pricer(/*keepsRuns=*/false, diags);
  StepWalk walk(parts, options, pricer, diags);
  pricer.setWalk(walk);
  return walk.run() ? std::optional(walk.getStep()) : std::nullopt;
}

std::optional<Ticks> stage::findStep(llvm::ArrayRef<const Program *> parts, const Machine &machine,
                                     const Runtime &runtime, DiagnosticEngine &diags) {
  return findStepOf(listParts(parts, machine, runtime), diags);
}
