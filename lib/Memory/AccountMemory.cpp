//===- AccountMemory.cpp - what every stage holds at its worst moment -----===//
//
// Problem: the peak of every stage over a whole step, without walking the step op by
// op for every microbatch, let alone for every rank.
//
// Algorithm: static memory is summed over the parameters of a stage. Each pair of
// templates is simulated once (UnitSimulator), which gives for the forward and the
// backward unit the most it adds, and what a microbatch keeps in between. The units of
// the schedule are then walked with the number of microbatches in flight:
//
//   live before unit u = static + kept by the microbatches in flight, except u's own
//   peak               = max over u of (live before u + u's own peak)
//
// and what arrives for unit u+1, messages and inputs, exists during u. The simulation of
// the worst unit says what was live.
//
// Limits: all ranks of a stage hold the same. Workspace of kernels and fragmentation
// are not counted.
//
//===----------------------------------------------------------------------===//
#include "StageOps.h"
#include "stage/Memory/UnitSimulator.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace stage;

llvm::StringRef stage::getName(MemoryClass kind) {
  static const char *const names[] = {"parameters", "gradients", "optimizer", "activations", "temporaries", "buffers",
                                      "model_buffers"};
  return names[unsigned(kind)];
}

ByteCount MemoryUse::getTotal() const {
  ByteCount total = 0;
  for (ByteCount part : bytes)
    total += part;
  return total;
}

MemoryUse &MemoryUse::operator+=(const MemoryUse &other) {
  for (unsigned i = 0; i < numMemoryClasses; ++i)
    bytes[i] += other.bytes[i];
  return *this;
}

namespace {
/// The live values of a stage, joined by value and class.
class LiveTable {
public:
  void add(const Value *value, MemoryClass kind, int64_t copies, ByteCount bytes) {
    if (!bytes)
      return;
    LiveValue &entry = table[{value, unsigned(kind)}];
    entry.value = value;
    entry.kind = kind;
    entry.copies += copies;
    entry.bytes += bytes;
  }
  void add(const std::vector<LiveValue> &values, int64_t times) {
    for (const LiveValue &live : values)
      add(live.value, live.kind, live.copies * times, live.bytes * times);
  }
  /// Largest first; of equal ones the first added.
  std::vector<LiveValue> take() const {
    std::vector<LiveValue> result;
    for (auto &entry : table)
      result.push_back(entry.second);
    llvm::stable_sort(result, [](const LiveValue &a, const LiveValue &b) { return a.bytes > b.bytes; });
    return result;
  }
  MemoryUse getUse() const {
    MemoryUse use;
    for (auto &entry : table)
      use[entry.second.kind] += entry.second.bytes;
    return use;
  }

private:
  llvm::MapVector<std::pair<const Value *, unsigned>, LiveValue> table;
};

/// What simulating the templates of a chunk found.
struct ChunkMemory {
  std::unique_ptr<UnitSimulator> simulator;
  UnitPeak forward, backward;
  std::vector<LiveValue> saved;
  ByteCount savedBytes = 0;
  /// What arrives for the two kinds of unit, and its bytes.
  std::vector<LiveValue> arrivals[2];
  ByteCount arrivingBytes[2] = {0, 0};
  bool works[2];
};

class Accountant {
public:
  Accountant(const Program &program, DiagnosticEngine &diags)
      : program(program), graph(*program.graph), lifetimes(graph), bytes(graph, diags) {}

  StageMemory account(const StageProgram &stage) {
    StageMemory result;
    result.stage = stage.stage;
    LiveTable live;
    addStatic(stage, live);
    std::vector<ChunkMemory> chunks;
    for (unsigned chunk = 0; chunk < program.numChunks; ++chunk) {
      chunks.push_back(simulate(stage, chunk));
      result.savedPerMicrobatch.push_back(chunks.back().savedBytes);
    }
    findPeak(stage, chunks, live, result);
    return result;
  }

private:
  //===--------------------------------------------------------------------===//
  // Static memory
  //===--------------------------------------------------------------------===//

  /// Parameters, the model's buffers, gradient buffers and optimizer states of a stage.
  void addStatic(const StageProgram &stage, LiveTable &live) {
    for (auto [param, copies] : collectState(graph, stage, OpKind::Param))
      live.add(param, MemoryClass::Parameters, copies, ByteCount(copies) * bytes.get(param));
    for (auto [buffer, copies] : collectState(graph, stage, OpKind::Buffer))
      live.add(buffer, MemoryClass::ModelBuffers, copies, ByteCount(copies) * bytes.get(buffer));
    llvm::SmallSetVector<const Value *, 16> buffers;
    for (const UnitTemplate &unit : stage.templates)
      forEachOp(unit.items, [&](Op &op, int64_t times) {
        if (op.kind == OpKind::Accumulate)
          addGradient(op, times, buffers, live);
      });
    forEachOp(stage.step, [&](Op &op, int64_t times) {
      if (op.kind == OpKind::Update)
        live.add(op.getOperand(0), MemoryClass::Optimizer, times, ByteCount(times) * getStateBytes(op));
    });
  }

  /// Accumulations of one parameter and sharding share a buffer. A repeat's body stands for its iterations, so those
  /// of the chunks of a stage add up; a parameter outside of repeats has one buffer however many iterations and chunks
  /// use it.
  void addGradient(Op &op, int64_t times, llvm::SmallSetVector<const Value *, 16> &known, LiveTable &live) {
    const Value *param = op.getOperand(1), *buffer = program.buffers.getFirst(op.getResult())->getResult();
    bool inLoop = getLoop(param);
    if (inLoop ? buffer != op.getResult() : !known.insert(buffer))
      return;
    int64_t copies = inLoop ? times : 1;
    live.add(param, MemoryClass::Gradients, copies, ByteCount(copies) * bytes.get(buffer));
  }

  /// The states are sharded as the gradient that updates them.
  int64_t getStateBytes(const Op &update) {
    const Value *param = update.getOperand(0), *gradient = update.getOperand(1);
    int64_t perElement = 0;
    for (auto &[name, type] : graph.optimizer.getStates(param->type.dtype))
      perElement += getByteSize(type);
    return bytes.evaluate(getLocalElements(graph.sizes, graph.mesh, gradient->type, gradient->sharding) * perElement,
                          update.loc, describe(*param));
  }

  //===--------------------------------------------------------------------===//
  // Units
  //===--------------------------------------------------------------------===//

  ChunkMemory simulate(const StageProgram &stage, unsigned chunk) {
    ChunkMemory result;
    result.simulator = std::make_unique<UnitSimulator>(program, lifetimes, bytes, /*folds=*/true);
    UnitSimulator &simulator = *result.simulator;
    const UnitTemplate *backward = stage.find(PassKind::Backward, chunk);
    simulator.run(stage.find(PassKind::Forward, chunk)->items, backward ? &backward->items : nullptr);
    result.forward = simulator.getForwardPeak();
    result.backward = simulator.getBackwardPeak();
    result.saved = simulator.listSaved();
    result.savedBytes = simulator.getSavedBytes();
    for (PassKind kind : {PassKind::Forward, PassKind::Backward}) {
      result.works[unsigned(kind)] = simulator.works(kind == PassKind::Forward);
      result.arrivals[unsigned(kind)] = simulator.listArrivals(kind == PassKind::Forward);
      for (const LiveValue &value : result.arrivals[unsigned(kind)])
        result.arrivingBytes[unsigned(kind)] += value.bytes;
    }
    return result;
  }

  void findPeak(const StageProgram &stage, const std::vector<ChunkMemory> &chunks, LiveTable &live,
                StageMemory &result) {
    ByteCount fixed = live.getUse().getTotal(), kept = 0, most = -1;
    std::vector<int64_t> inFlight(chunks.size()), inFlightAtPeak;
    std::optional<size_t> worst;
    std::vector<ByteCount> arriving = sumArriving(stage, chunks);
    for (size_t i = 0; i < stage.units.size(); ++i) {
      const ProgramUnit &unit = stage.units[i];
      const ChunkMemory &chunk = chunks[unit.chunk];
      bool isForward = unit.kind == PassKind::Forward;
      if (!isForward) {
        kept -= chunk.savedBytes;
        --inFlight[unit.chunk];
      }
      ByteCount total = fixed + kept + arriving[i] + (isForward ? chunk.forward.total : chunk.backward.total);
      if (total > most) {
        most = total;
        worst = i;
        inFlightAtPeak = inFlight;
      }
      if (isForward && graph.training) {
        kept += chunk.savedBytes;
        ++inFlight[unit.chunk];
        int64_t sum = 0;
        for (int64_t count : inFlight)
          sum += count;
        result.inFlight = std::max(result.inFlight, sum);
      }
    }
    UnitSimulator step(program, lifetimes, bytes, /*folds=*/true);
    step.runStep(stage.step);
    if (!worst || fixed + step.getForwardPeak().total > most)
      return recordStep(step, live, result);

    const ProgramUnit &unit = stage.units[*worst];
    const UnitPeak &peak = unit.kind == PassKind::Forward ? chunks[unit.chunk].forward : chunks[unit.chunk].backward;
    result.unit = program.getUnitName(unit);
    if (peak.node)
      live.add(chunks[unit.chunk].simulator->listLive(*peak.node), 1);
    for (unsigned chunk = 0; chunk < chunks.size(); ++chunk)
      live.add(chunks[chunk].saved, inFlightAtPeak[chunk]);
    for (const ProgramUnit &next : llvm::ArrayRef<ProgramUnit>(stage.units).drop_front(*worst + 1)) {
      live.add(chunks[next.chunk].arrivals[unsigned(next.kind)], 1);
      if (chunks[next.chunk].works[unsigned(next.kind)])
        break;
    }
    record(peak, live, result);
  }

  /// What arrives during each unit: all that the units after it need, up to the next in which more can arrive.
  static std::vector<ByteCount> sumArriving(const StageProgram &stage, const std::vector<ChunkMemory> &chunks) {
    std::vector<ByteCount> arriving(stage.units.size(), 0);
    for (size_t i = stage.units.size(); i-- > 1;) {
      const ProgramUnit &unit = stage.units[i];
      const ChunkMemory &chunk = chunks[unit.chunk];
      arriving[i - 1] = chunk.arrivingBytes[unsigned(unit.kind)] + (chunk.works[unsigned(unit.kind)] ? 0 : arriving[i]);
    }
    return arriving;
  }

  static void recordStep(const UnitSimulator &step, LiveTable &live, StageMemory &result) {
    const UnitPeak &peak = step.getForwardPeak();
    result.unit = "step";
    if (peak.node)
      live.add(step.listLive(*peak.node), 1);
    record(peak, live, result);
  }

  static void record(const UnitPeak &peak, const LiveTable &live, StageMemory &result) {
    result.op = peak.op;
    result.iteration = peak.iteration;
    result.live = live.take();
    result.peak = live.getUse();
  }

  const Program &program;
  Graph &graph;
  Lifetimes lifetimes;
  LocalBytes bytes;
};
} // namespace

MemoryReport stage::accountMemory(const Program &program, DiagnosticEngine &diags) {
  unsigned errorsBefore = diags.getNumErrors();
  MemoryReport report;
  report.program = &program;
  report.saved = collectSavedBytes(*program.graph);
  Accountant accountant(program, diags);
  for (const StageProgram &stage : program.stages)
    report.stages.push_back(accountant.account(stage));
  return diags.getNumErrors() == errorsBefore ? report : MemoryReport();
}
