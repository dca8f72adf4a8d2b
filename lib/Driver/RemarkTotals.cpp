//===- RemarkTotals.cpp - what the communication of remarks adds up to ----===//
//
// Problem: remarks name one collective each, with the bytes of one layer or microbatch. How much is that in a step, and
// how long does it take?
//
//   communication of a rank of stage 0, without overlap
//                              collectives  input bytes       time
//     each of 'layers', forward          4   144.00 MiB   0.817 ms
//     each of 'layers', backward         6   160.00 MiB   1.232 ms
//     per microbatch                   164     4.84 GiB  33.171 ms
//     per step                       1,326    39.28 GiB
//
// Algorithm: each op of the stage's templates that communicates is counted once per iteration of its repeat, as often
// as a unit runs it, and as often as the step runs the unit. Times are the prices of the tasks alone, where the job has
// a machine.
//
// Limits: one stage, the one whose ranks put in most. Messages between stages are counted apart from repeats; their
// time is that of the transfer alone.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "stage/IR/graph/Costs.h"
#include "stage/IR/graph/Program.h"
#include "stage/Support/Table.h"
#include "stage/Time/PriceList.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

using namespace stage;
using namespace stage::driver;

namespace {
struct Sum {
  __int128 count = 0, bytes = 0;
  Ticks time = 0;

  void add(__int128 times, __int128 bytesOfOne, Ticks timeOfOne) {
    count += times;
    bytes += times * bytesOfOne;
    time += Ticks(times) * timeOfOne;
  }
};

/// Sums of a stage: of one iteration of each repeat, by its name and phase, of one microbatch, and of the step.
struct StageSums {
  unsigned stage = 0;
  llvm::MapVector<std::pair<const Op *, unsigned>, Sum> layers;
  Sum microbatch, step;
};
} // namespace

/// Milliseconds to the microsecond.
static std::string formatTime(Ticks ticks) {
  int64_t micros = ticks / (ticksPerSecond / 1'000'000);
  return formatCount(micros / 1000) + "." + toDecimal(1000 + micros % 1000).substr(1) + " ms";
}

static __int128 countInputBytes(const Graph &graph, const Op &op) {
  __int128 bytes = 0;
  for (const Value *operand : op.getOperands())
    if (SizeValue value =
            evaluateCount(getLocalBytes(graph.sizes, graph.mesh, operand->type, operand->sharding), graph.binding))
      bytes += value.value.num;
  return bytes;
}

static StageSums sumStage(const Program &program, const StageProgram &stage,
                          const llvm::DenseMap<const Op *, Ticks> &prices) {
  const Graph &graph = *program.graph;
  StageSums sums;
  sums.stage = stage.stage;
  for (const UnitTemplate &unit : stage.templates) {
    int64_t runs = llvm::count_if(stage.units, [&](const Unit &run) {
      return run.kind == unit.kind && (run.chunk == unit.chunk || isOncePerStep(unit.kind));
    });
    forEachOp(unit.items, [&](Op &op, int64_t times) {
      if (!isCommunication(op.kind))
        return;
      __int128 bytes = countInputBytes(graph, op);
      Ticks price = prices.lookup(&op);
      const Op *loop = op.getBlock()->getParent();
      if (loop && !isOncePerStep(unit.kind))
        if (Sum &layer = sums.layers[{loop, unsigned(op.getBlock()->getPhase())}]; !unit.chunk || !layer.count)
          layer.add(1, bytes, price);
      if (!isOncePerStep(unit.kind))
        sums.microbatch.add(times, bytes, price);
      sums.step.add(__int128(times) * runs, bytes, price);
    });
  }
  return sums;
}

void stage::driver::printRemarkTotals(const Compilation &c, const DriverOptions &options) {
  const Program &program = *c.program;
  llvm::DenseMap<const Op *, Ticks> prices;
  if (c.job->machine)
    if (std::optional<TimedPart> part = findTimed(c, program, "", options))
      if (std::optional<std::vector<PriceRow>> rows = listPrices(*part, c.diags))
        for (const PriceRow &row : *rows)
          if (row.op)
            prices[row.op] += row.price;
  std::optional<StageSums> most;
  for (const StageProgram &stage : program.stages)
    if (StageSums sums = sumStage(program, stage, prices); !most || sums.step.bytes > most->step.bytes)
      most = std::move(sums);
  if (!most || !most->step.count)
    return;
  auto &os = llvm::errs();
  os << "communication of a rank of stage " << most->stage << ", collectives alone, without overlap\n";
  std::vector<std::pair<std::string, Table::Alignment>> columns = {
      {"", Table::Left}, {"collectives", Table::Right}, {"input bytes", Table::Right}};
  if (!prices.empty())
    columns.push_back({"time", Table::Right});
  Table table(std::move(columns), 2);
  auto addRow = [&](std::string name, const Sum &sum) {
    std::vector<std::string> cells = {std::move(name), formatCount(sum.count), formatBytes(sum.bytes)};
    if (!prices.empty())
      cells.push_back(formatTime(sum.time));
    table.addRow(std::move(cells));
  };
  for (auto &[key, sum] : most->layers)
    addRow("each of '" + key.first->name + "', " + getName(PhaseKind(key.second)).str(), sum);
  addRow("per microbatch", most->microbatch);
  addRow("per step", most->step);
  table.print(os);
}
