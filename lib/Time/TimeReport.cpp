//===- TimeReport.cpp - where the time of a step goes ---------------------===//
#include "stage/Time/TimeReport.h"
#include "MachinePricer.h"
#include "stage/Time/StepTime.h"
#include "llvm/ADT/MapVector.h"

using namespace stage;
using PricedTask = MachinePricer::PricedTask;

llvm::StringRef stage::getName(TimeAccount account) {
  static constexpr const char *names[] = {"products", "attention", "element-wise", "optimizer",
                                          "overlap",  "exposed",   "bubble",       "host"};
  return names[unsigned(account)];
}

namespace {
/// What communicates alike: the same operation in the same kind of group.
struct CommunicationKey {
  OpKind kind;
  AxisSet axes;
  bool operator==(const CommunicationKey &other) const = default;
};

/// One class of ranks.
class ClassAccount {
public:
  ClassAccount(const MachinePricer &pricer, unsigned number) : pricer(pricer), number(number) {}

  StageTime find(Ticks step) {
    llvm::ArrayRef<TimedTask> tasks = pricer.getTasks(number);
    llvm::ArrayRef<PricedTask> runs = pricer.getRuns(number);
    Ticks free = 0; // of the compute stream
    for (size_t id = 0; id < tasks.size(); ++id) {
      const TimedTask &task = tasks[id];
      const PricedTask &run = runs[id];
      if (CommunicationTime *own = task.kind == TaskKind::Receive ? nullptr : findCommunication(id)) {
        ++own->count;
        own->taken += run.end - run.begin;
      }
      if (!task.isTaxed)
        continue;
      if (run.begin > free)
        wait(run.cause, free, run.begin);
      Surcharge more = pricer.getSurcharge(number, id);
      get(TimeAccount::Host) += more.launch;
      get(TimeAccount::Overlap) += more.beside;
      get(getAccount(run)) += run.end - run.begin - more.launch - more.beside;
      free = run.end;
    }
    waitForOwn(free);
    get(TimeAccount::Bubble) += step - ends;
    return std::move(time);
  }

private:
  Ticks &get(TimeAccount account) { return time.accounts[unsigned(account)]; }

  static TimeAccount getAccount(const PricedTask &run) {
    return run.isOptimizer                     ? TimeAccount::Optimizer
           : run.work == WorkKind::Contraction ? TimeAccount::Products
           : run.work == WorkKind::Attention   ? TimeAccount::Attention
                                               : TimeAccount::Elementwise;
  }

  /// The row of a collective, of a permute's receive or send, or of a message; null for what computes or copies.
  CommunicationTime *findCommunication(size_t id) {
    const TimedTask &task = pricer.getTasks(number)[id];
    if (task.kind != TaskKind::Collective && task.kind != TaskKind::Send && task.kind != TaskKind::Receive)
      return nullptr;
    const Op *op = pricer.getRuns(number)[id].op;
    CommunicationKey key = {op ? op->kind : OpKind::Yield, op ? toSet(op->axes) : 0};
    for (auto [known, row] : llvm::zip(keys, time.communication))
      if (known == key)
        return &row;
    keys.push_back(key);
    time.communication.push_back({op, 0, 0, 0});
    return &time.communication.back();
  }

  /// The compute stream has waited from `begin` to `end` for a task of the class, which ended then. While that one
  /// waited for another one, that is what was waited for.
  void wait(std::optional<ClassTask> cause, Ticks begin, Ticks end) {
    while (begin < end) {
      bool isOwn = cause && cause->classNumber == number;
      if (!isOwn)
        return void(get(TimeAccount::Bubble) += end - begin);
      const PricedTask &run = pricer.getRuns(number)[cause->id];
      // What waits for another rank has no other cause here.
      bool hasCause = run.cause && run.cause->classNumber == number;
      Ticks from = hasCause ? std::clamp(run.begin, begin, end) : begin;
      charge(cause->id, end - from);
      end = from;
      cause = run.cause;
    }
  }

  /// So many ticks of waiting are for a task.
  void charge(size_t id, Ticks ticks) {
    CommunicationTime *own = findCommunication(id);
    if (own)
      own->exposed += ticks;
    get(own && own->op                          ? TimeAccount::Exposed
        : own                                   ? TimeAccount::Bubble
        : !pricer.getTasks(number)[id].isKernel ? TimeAccount::Host
                                                : getAccount(pricer.getRuns(number)[id])) += ticks;
  }

  /// Behind the last compute task: of what still runs the rank waits for the next that ends.
  void waitForOwn(Ticks free) {
    ends = free;
    std::vector<std::pair<Ticks, size_t>> later;
    llvm::ArrayRef<PricedTask> runs = pricer.getRuns(number);
    for (size_t id = 0; id < runs.size(); ++id)
      if (runs[id].end > free)
        later.emplace_back(runs[id].end, id);
    llvm::sort(later);
    for (auto [end, id] : later)
      if (end > ends) {
        wait(ClassTask{number, id}, ends, end);
        ends = end;
      }
  }

  const MachinePricer &pricer;
  unsigned number;
  StageTime time;
  std::vector<CommunicationKey> keys; ///< Of the rows of communication.
  Ticks ends = 0;
};

/// Tasks of the critical path that are priced alike.
struct PathPiece {
  const Op *op;
  const Program *program;
  unsigned stage, peer;
  TaskKind kind;
  PricedTask run;
  int64_t count = 0;
  Ticks taken = 0, beside = 0, launch = 0;
};

class PathFinder {
public:
  PathFinder(const StepWalk &walk, const MachinePricer &pricer) : walk(walk), pricer(pricer) {}

  /// From the task that ends last back to one that waited for none.
  std::vector<PathPiece> find(Ticks step) {
    std::optional<ClassTask> next = findLast(step);
    while (next) {
      const PricedTask &run = pricer.getRuns(next->classNumber)[next->id];
      add(*next, run);
      next = run.cause;
    }
    return std::move(pieces);
  }

private:
  std::optional<ClassTask> findLast(Ticks step) const {
    for (unsigned number = 0; number < pricer.getNumClasses(); ++number)
      for (size_t id = 0; id < pricer.getRuns(number).size(); ++id)
        if (pricer.getRuns(number)[id].end == step)
          return ClassTask{number, id};
    return std::nullopt;
  }

  void add(ClassTask task, const PricedTask &run) {
    const TimedTask &timed = pricer.getTasks(task.classNumber)[task.id];
    if (timed.kind == TaskKind::Receive)
      return; // it takes no time of its own
    unsigned stage = walk.getTasks(task.classNumber).getStage().stage;
    auto [known, isNew] =
        numbers.try_emplace({run.op, task.classNumber, unsigned(timed.kind), run.bytes}, pieces.size());
    if (isNew)
      pieces.push_back({run.op, &walk.getProgram(task.classNumber), stage, 0, timed.kind, run});
    PathPiece &piece = pieces[known->second];
    Surcharge more = pricer.getSurcharge(task.classNumber, task.id);
    ++piece.count;
    piece.taken += run.end - run.begin;
    piece.beside += more.beside;
    piece.launch += more.launch;
  }

  const StepWalk &walk;
  const MachinePricer &pricer;
  std::map<std::tuple<const Op *, unsigned, unsigned, uint64_t>, size_t> numbers;
  std::vector<PathPiece> pieces;
};
} // namespace

static std::string describe(const PathPiece &piece) {
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

std::optional<TimeReport> stage::findTimeReport(llvm::ArrayRef<const Program *> parts, const Machine &machine,
                                                const Runtime &runtime, DiagnosticEngine &diags) {
  if (!checkTimed(parts, machine, TaskOptions(), diags))
    return std::nullopt;
  TaskOptions options;
  options.works = true;
  MachinePricer pricer(parts, machine, runtime, /*keepsRuns=*/true, diags);
  StepWalk walk(parts, machine, options, pricer, diags);
  pricer.setWalk(walk);
  if (!walk.run())
    return std::nullopt;
  TimeReport report;
  report.machine = machine.describe();
  report.runtime = runtime.describe();
  report.step = walk.collect().step;
  report.insideTables = pricer.isInsideTables();
  for (unsigned number = 0; number < pricer.getNumClasses(); ++number) {
    StageTime time = ClassAccount(pricer, number).find(report.step);
    time.program = &walk.getProgram(number);
    time.stage = walk.getTasks(number).getStage().stage;
    time.rank = walk.getRepresentative(number);
    auto same = llvm::find_if(
        report.stages, [&](const StageTime &each) { return each.program == time.program && each.stage == time.stage; });
    if (same == report.stages.end())
      report.stages.push_back(std::move(time));
    else if (same->getCompute() < time.getCompute())
      *same = std::move(time);
  }
  std::vector<PathPiece> pieces = PathFinder(walk, pricer).find(report.step);
  report.path = listLinks(pieces);
  return report;
}
