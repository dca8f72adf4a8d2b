//===- PriceList.cpp - what each op takes on a machine --------------------===//
#include "stage/Time/PriceList.h"
#include "StepWalk.h"
#include "stage/Support/Records.h"
#include "stage/Tasks/TaskWork.h"
#include "stage/Time/StepTime.h"

using namespace stage;

namespace {
class PriceLister : public TaskPricer {
public:
  explicit PriceLister(DiagnosticEngine &diags) : diags(diags) {}

  void setWalk(const StepWalk &asked) { walk = &asked; }

  bool price(unsigned classNumber, const Task &task, const GroupPlace &place, WaitingTask &waiting) override {
    llvm::StringRef missing;
    const TimedPart &part = walk->getPart(classNumber);
    const Machine *lacking = &part.machine;
    const TimedPart *other = walk->findOtherMachine(classNumber, task);
    std::optional<Ticks> price = other ? findDurationBetween(task, part.machine, other->machine, missing, lacking)
                                       : findDuration(task, part.machine, place, missing);
    if (!price) {
      reportMissingRate(task, *lacking, part.program->graph->loc, missing, diags);
      return false;
    }
    waiting.duration = *price;
    unsigned stage = walk->getTasks(classNumber).getStage().stage;
    const Program *program = part.program;
    auto [known, isFirst] = classOf.try_emplace({program, stage}, classNumber);
    if (known->second == classNumber)
      addParts(part, stage, task, place, *price);
    return true;
  }

  std::vector<PriceRow> take() { return std::move(rows); }

private:
  enum class Portion : uint8_t { Kernel, Beside, Host };

  void addParts(const TimedPart &part, unsigned stage, const Task &task, const GroupPlace &place, Ticks price) {
    Ticks host = task.work && part.machine.isDeclared() ? task.work->host : 0;
    Ticks beside = task.work ? part.machine.ofBeside(*task.work) : 0;
    add(part, stage, task, place, Portion::Kernel, price - beside - host);
    if (beside)
      add(part, stage, task, place, Portion::Beside, beside);
    if (host)
      add(part, stage, task, place, Portion::Host, host);
  }

  void add(const TimedPart &part, unsigned stage, const Task &task, const GroupPlace &place, Portion portion,
           Ticks price) {
    const Program *program = part.program;
    auto [known, isNew] = numbers.try_emplace({program, stage, task.op, unsigned(task.kind), price, unsigned(portion)},
                                              unsigned(rows.size()));
    if (isNew) {
      PriceRow row = describe(part.machine, task, place);
      if (portion == Portion::Beside) {
        row.kind = "element-wise";
        row.shape = formatBytes(task.work->besideBytes) + " beside it";
        row.type = "";
      } else if (portion == Portion::Host) {
        row.kind = "host";
        row.shape = row.type = "";
      }
      row.isInside |= portion != Portion::Kernel;
      row.part = unsigned(&part - walk->getParts().data());
      row.stage = stage;
      row.price = price;
      row.op = task.op;
      if (task.op)
        row.phase = getName(task.op->getBlock()->getPhase()).str();
      rows.push_back(std::move(row));
    }
    ++rows[known->second].count;
  }

  static PriceRow describe(const Machine &machine, const Task &task, const GroupPlace &place) {
    PriceRow row;
    row.task = task.op ? describeOp(*task.op) : task.isWait ? "wait" : "message";
    uint64_t bytes = task.bytes.resolve({});
    if (task.kind == TaskKind::Compute && task.work) {
      row.isInside = machine.isInsideTables(*task.work);
      describeWork(*task.work, row);
      return row;
    }
    row.kind = task.kind == TaskKind::Collective ? getName(task.op->kind).str()
               : task.isPricedAsMessage()        ? "message"
               : task.isCopy()                   ? "copy"
                                                 : "compute";
    row.shape = formatBytes(bytes);
    if (task.kind == TaskKind::Collective)
      row.shape += ", " + formatCount(place.getNumMembers()) + " ranks";
    return row;
  }

  static void describeWork(const Work &work, PriceRow &row) {
    row.type = getName(work.type).str();
    auto count = [](int64_t number) { return toDecimal(number); };
    switch (work.kind) {
    case WorkKind::Contraction:
      row.kind = "product";
      row.shape = (work.batch > 1 ? count(work.batch) + (work.isGrouped ? " groups of " : " times ") : "") +
                  count(work.m) + " x " + count(work.n) + " x " + count(work.k);
      return;
    case WorkKind::Attention:
      row.kind = "attention";
      row.shape = count(work.rows) + " x " + count(work.columns) + ", " + count(work.heads) + " heads of " +
                  count(work.headSize) + (work.isBackward ? ", backward" : "");
      return;
    case WorkKind::Elementwise:
      row.kind = work.isOnHost ? "host" : work.isOptimizer ? "optimizer" : "element-wise";
      row.shape = work.isInside ? "in another op's kernel" : formatBytes(work.bytes);
      row.type = "";
    }
  }

  DiagnosticEngine &diags;
  const StepWalk *walk = nullptr;
  std::map<std::pair<const Program *, unsigned>, unsigned> classOf; ///< The lowest of a stage.
  std::map<std::tuple<const Program *, unsigned, const Op *, unsigned, Ticks, unsigned>, unsigned> numbers;
  std::vector<PriceRow> rows;
};
} // namespace

std::optional<std::vector<PriceRow>> stage::listPrices(llvm::ArrayRef<TimedPart> asked, DiagnosticEngine &diags) {
  TaskOptions options;
  options.works = asked.front().machine.isDeclared();
  const std::vector<TimedPart> parts = findUsed(asked, options, diags);
  if (parts.empty())
    return std::nullopt;
  PriceLister lister(diags);
  StepWalk walk(parts, options, lister, diags);
  lister.setWalk(walk);
  if (!walk.run())
    return std::nullopt;
  return lister.take();
}

/// Microseconds to the picosecond: `486.386590`.
static Record::Digits toMicros(Ticks ticks) {
  constexpr Ticks ticksPerMicro = ticksPerSecond / 1'000'000;
  return {toDecimal(ticks / ticksPerMicro) + "." + toDecimal(ticksPerMicro + ticks % ticksPerMicro).substr(1)};
}

void stage::print(llvm::raw_ostream &os, llvm::ArrayRef<PriceRow> rows, llvm::StringRef machines,
                  llvm::StringRef runtimes) {
  os << "prices on " << machines << (runtimes == "ideal" ? "" : ", runtime ") << (runtimes == "ideal" ? "" : runtimes)
     << ", of a rank of each stage, in us; * lies outside of the tables\n";
  bool hasParts = llvm::any_of(rows, [](const PriceRow &row) { return row.part != 0; });
  std::vector<Records> table;
  for (const PriceRow &row : rows)
    table.push_back({{"", "task", row.task},
                     {"", hasParts ? "part" : "", __int128(row.part)},
                     {"", "stage", __int128(row.stage)},
                     {"", "kind", row.kind},
                     {"", "shape", row.shape + (row.isInside ? "" : " *")},
                     {"", "type", row.type},
                     {"", "price", toMicros(row.price)},
                     {"", "times", __int128(row.count)},
                     {"", "phase", row.phase}});
  if (!table.empty())
    printTable(os, table, 0);
}
