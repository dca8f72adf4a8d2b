//===- AccountMemory.cpp - what every stage holds at its worst moment -----===//
//
// Problem: the peak of every stage over a whole step, without walking the step op by
// op for every microbatch, let alone for every rank.
//
// Algorithm: static memory is summed over the parameters of a stage. The templates of
// each chunk are simulated once (UnitSimulator), which gives for each unit the most it
// adds, and what a microbatch keeps from each to the next. The units of the schedule are
// then walked with the number of microbatches that rest behind each unit:
//
//   live before unit u = static + kept by the microbatches at rest, except u's own
//   peak               = max over u of (live before u + u's own peak)
//
// and what arrives for unit u+1, messages and inputs, exists during u. What a unit hands another chunk of the stage is
// kept until that chunk's unit begins. The simulation of
// the worst unit says what was live.
//
// Two units that run interleaved (stage/Walk/PairOrder.h) are one step. At each node of the unit that runs, the tensors
// that the paused unit holds are added.
//
// What is on the host is summed up by itself in the same way: its peak is at a moment of
// its own. Where ranks have different parts of a dim, the stage is as its rank with the highest peak. Peaks
// grow with sizes: of ranks one of which has as much as another of everything, or more, the highest peak is that of
// the one, the lowest that of the other, and those in between are not simulated.
//
// What software keeps besides is RuntimeMemory's.
//
// Limits: fragmentation is not counted.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/graph/Costs.h"
#include "stage/Memory/StaticMemory.h"
#include "stage/Memory/UnitSimulator.h"
#include "stage/Walk/Arrivals.h"
#include "stage/Walk/PairOrder.h"
#include "stage/Walk/Receivers.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <deque>
#include <map>
#include <set>

using namespace stage;

llvm::StringRef stage::getName(MemoryClass kind) {
  static const char *const names[] = {"parameters", "gradients",     "optimizer", "activations", "temporaries",
                                      "buffers",    "model_buffers", "caches",    "residents"};
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
  explicit LiveTable(MemorySpace space) : space(space) {}
  /// Values of the other memory are left out.
  void add(const Value *value, MemoryClass kind, int64_t copies, ByteCount bytes) {
    add(value, value->type.space, kind, copies, bytes);
  }
  /// Known by the name of a value that may be in the other memory.
  void add(const Value *value, MemorySpace memory, MemoryClass kind, int64_t copies, ByteCount bytes) {
    if (!bytes || memory != space)
      return;
    LiveValue &entry = table[{value, unsigned(kind)}];
    entry.value = value;
    entry.kind = kind;
    entry.copies += copies;
    entry.bytes += bytes;
  }
  void addResident(const std::string &name, ByteCount bytes) {
    if (bytes && space == MemorySpace::Device)
      residents.push_back({nullptr, name, MemoryClass::Residents, 1, bytes});
  }
  void add(const std::vector<LiveValue> &values, int64_t times) {
    for (const LiveValue &live : values)
      add(live.value, live.kind, live.copies * times, live.bytes * times);
  }
  /// Largest first; of equal ones the first added.
  std::vector<LiveValue> take() const {
    std::vector<LiveValue> result = residents;
    for (auto &entry : table)
      result.push_back(entry.second);
    llvm::stable_sort(result, [](const LiveValue &a, const LiveValue &b) { return a.bytes > b.bytes; });
    return result;
  }
  MemoryUse getUse() const {
    MemoryUse use;
    for (auto &entry : table)
      use[entry.second.kind] += entry.second.bytes;
    for (const LiveValue &resident : residents)
      use[resident.kind] += resident.bytes;
    return use;
  }

private:
  MemorySpace space;
  std::vector<LiveValue> residents;
  llvm::MapVector<std::pair<const Value *, unsigned>, LiveValue> table;
};

/// What simulating a chain found, per unit of a microbatch.
struct ChainMemory {
  struct UnitMemory {
    std::vector<LiveValue> kept;             ///< In both memories.
    std::vector<LiveValue> inputs, received; ///< What is there when it begins; on the device.
    ByteCount inputBytes = 0, receivedBytes = 0;
    std::vector<LiveValue> handedIn; ///< By another chunk; on the device.
    ByteCount handedBytes = 0;
    std::array<ByteCount, numMemorySpaces> keptBytes = {};
  };
  UnitChain templates;
  std::unique_ptr<UnitSimulator> simulator;
  std::vector<UnitMemory> units;

  unsigned getPlace(PhaseKind kind) const {
    return llvm::find_if(templates, [&](auto *unit) { return unit->kind == kind; }) - templates.begin();
  }
};

/// By the number of a chain and a unit's place in it.
struct OpenUnit {
  int64_t resting = 0; ///< Microbatches for which this unit was the last so far.
  int64_t waiting = 0; ///< Units that were handed something and have not begun.
};
using OpenUnits = std::map<std::pair<unsigned, unsigned>, OpenUnit>;

static ByteCount sumBytes(llvm::ArrayRef<LiveValue> values, MemorySpace space) {
  ByteCount bytes = 0;
  for (const LiveValue &live : values)
    if (live.value->type.space == space)
      bytes += live.bytes;
  return bytes;
}

class Accountant {
public:
  Accountant(const Program &program, DiagnosticEngine &diags, const RuntimeMemory *memory, bool withMoments)
      : program(program), graph(*program.graph), diags(diags), memory(memory), withMoments(withMoments),
        lifetimes(graph) {
    select(SizeBinding());
  }

  StageMemory account(const StageProgram &stage) {
    arrivals.emplace(graph, stage);
    std::vector<Size> blocks = findBlockSizes(program, stage);
    AxisSet axes = 0;
    for (Size block : blocks)
      axes |= getCoordinateAxes(graph.mesh, block);
    if (!axes) {
      if (!isPlain)
        select(SizeBinding());
      isPlain = true;
      return accountRank(stage);
    }
    isPlain = false;
    std::optional<StageMemory> most;
    std::optional<MemoryPeak> mostOnHost;
    std::vector<std::pair<SizeBinding, std::vector<int64_t>>> ranks; // those with the same sizes hold the same
    std::set<std::vector<int64_t>> known;
    SizeBinding coordinates;
    forEachCoordinates(graph, axes, coordinates, [&] {
      std::vector<int64_t> values = listValues(blocks, coordinates);
      if (known.insert(values).second)
        ranks.emplace_back(coordinates, std::move(values));
    });
    unsigned errorsBefore = diags.getNumErrors();
    for (auto &[place, values] : ranks) {
      if (diags.getNumErrors() > errorsBefore)
        break;
      bool isMost = true, isLeast = true;
      for (auto &other : ranks) {
        isMost &= &other.second == &values || !isWithin(values, other.second);
        isLeast &= &other.second == &values || !isWithin(other.second, values);
      }
      if (!isMost && !isLeast)
        continue;
      select(place);
      StageMemory here = accountRank(stage);
      here.coordinates = place;
      takeLarger(mostOnHost, std::move(here.host));
      takeLarger(most, std::optional<StageMemory>(std::move(here)));
    }
    most->host = std::move(mostOnHost);
    return *most;
  }

private:
  /// The peak of a rank, if it is higher than those before; the lowest one is noted.
  template <typename Peak> static void takeLarger(std::optional<Peak> &most, std::optional<Peak> here) {
    if (!here)
      return;
    if (!most) {
      most = std::move(here);
      return;
    }
    ByteCount least = std::min(most->leastPeak, here->leastPeak);
    if (here->peak.getTotal() > most->peak.getTotal())
      most = std::move(here);
    most->leastPeak = least;
  }

  /// No size is larger than that of the other one.
  static bool isWithin(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> others) {
    return std::equal(sizes.begin(), sizes.end(), others.begin(), std::less_equal<int64_t>());
  }

  /// Bytes are those of ranks with these coordinates from here on.
  void select(const SizeBinding &coordinates) {
    bytesOf.clear();
    selected = coordinates;
  }

  LocalBytes &getBytesOf(unsigned environment) {
    return bytesOf.try_emplace(environment, graph, diags, environment, selected).first->second;
  }

  /// What these sizes are on ranks with some coordinates, in all environments.
  std::vector<int64_t> listValues(llvm::ArrayRef<Size> blocks, const SizeBinding &coordinates) const {
    std::vector<int64_t> values;
    for (unsigned environment = 0; environment < graph.pipeline.environments.size(); ++environment) {
      if (!graph.pipeline.environments.isFirstAlike(environment))
        continue;
      SizeBinding binding = graph.getBinding(environment);
      binding.bind(coordinates);
      for (Size block : blocks) {
        SizeValue value = evaluateCount(block, binding);
        values.push_back(value ? int64_t(value.value.num) : -1);
      }
    }
    return values;
  }

  StageMemory accountRank(const StageProgram &stage) {
    StageMemory result;
    result.stage = stage.stage;
    UnitChains kinds = stage.listChains();
    std::vector<ChainMemory> chains;                          // by environment, where sizes are others
    std::map<std::pair<unsigned, unsigned>, unsigned> places; // by chain and environment
    std::map<std::vector<int64_t>, unsigned> alike;           // by chain and bytes that vary
    std::map<unsigned, std::vector<const Value *>> varying;   // by chain
    chainOfUnit = std::move(kinds.ofUnit);
    for (size_t i = 0; i < stage.units.size(); ++i) {
      unsigned kind = chainOfUnit[i], environment = graph.pipeline.environments.getAlike(stage.units[i].environment);
      auto [place, isNew] = places.try_emplace({kind, environment}, chains.size());
      chainOfUnit[i] = place->second;
      if (!isNew)
        continue;
      auto known = varying.find(kind);
      auto list = [&](llvm::ArrayRef<const Value *> values) {
        std::vector<int64_t> key = {int64_t(kind)};
        for (const Value *value : values)
          key.push_back(getBytesOf(environment).get(value));
        return key;
      };
      if (known != varying.end())
        if (auto same = alike.find(list(known->second)); same != alike.end()) {
          chainOfUnit[i] = place->second = same->second;
          bytesOf.erase(environment); // a server has a hundred thousand environments
          continue;
        }
      chains.push_back(simulate(kinds.all[kind], environment, /*folds=*/!hasPairs(stage.units)));
      if (known == varying.end())
        known = varying.emplace(kind, getBytesOf(environment).listVarying()).first;
      alike.emplace(list(known->second), place->second);
    }
    result.savedPerMicrobatch.assign(program.numChunks, 0);
    for (size_t i = 0; i < stage.units.size(); ++i)
      if (stage.units[i].kind == PhaseKind::Forward) {
        ByteCount &most = result.savedPerMicrobatch[stage.units[i].chunk];
        most = std::max(most, chains[chainOfUnit[i]].units.front().keptBytes[unsigned(MemorySpace::Device)]);
      }
    static_cast<MemoryPeak &>(result) = findPeak(stage, chains, MemorySpace::Device, result);
    if (usesHost(stage))
      result.host = findPeak(stage, chains, MemorySpace::Host, result);
    return result;
  }

  //===--------------------------------------------------------------------===//
  // Units
  //===--------------------------------------------------------------------===//

  ChainMemory simulate(const UnitChain &templates, unsigned environment, bool folds) {
    ChainMemory result;
    result.templates = templates;
    result.simulator =
        std::make_unique<UnitSimulator>(program, lifetimes.get(templates), getBytesOf(environment), folds, memory);
    result.simulator->run(templates);
    for (unsigned place = 0; place < templates.size(); ++place) {
      ChainMemory::UnitMemory &unit = result.units.emplace_back();
      unit.kept = result.simulator->listKept(place);
      for (MemorySpace space : {MemorySpace::Device, MemorySpace::Host})
        unit.keptBytes[unsigned(space)] = sumBytes(unit.kept, space);
      unit.inputs = result.simulator->listArrivingInputs(place);
      unit.inputBytes = sumBytes(unit.inputs, MemorySpace::Device);
      unit.received = result.simulator->listReceived(place);
      unit.receivedBytes = sumBytes(unit.received, MemorySpace::Device);
      unit.handedIn = result.simulator->listHandedIn(place);
      unit.handedBytes = sumBytes(unit.handedIn, MemorySpace::Device);
    }
    return result;
  }

  /// Of the unit at a position in the list of the stage.
  const ChainMemory::UnitMemory &get(const StageProgram &stage, const std::vector<ChainMemory> &chains,
                                     size_t position) const {
    const ChainMemory &chain = chains[chainOfUnit[position]];
    return chain.units[chain.getPlace(stage.units[position].kind)];
  }

  /// An op of the stage reads or makes a value that is kept there.
  static bool usesHost(const StageProgram &stage) {
    bool found = false;
    forEachOp(stage, [&](const Op &op) { found |= isCopy(op.kind) && !isCacheCopy(op.kind); });
    return found;
  }

  /// Where a pair holds most: the unit that runs is at a node, and the other one stands in front of a node.
  struct PairPeak {
    ByteCount total = 0;
    unsigned running = 0; ///< 0 or 1.
    std::array<unsigned, 2> nodes = {0, 0};
  };

  /// Of the pair that begins at a position. `handed`: what its units hand to other chunks when they end.
  PairPeak findPairPeak(const StageProgram &stage, const std::vector<ChainMemory> &chains, size_t position,
                        MemorySpace space, std::array<ByteCount, 2> handed) const {
    std::array<const UnitTemplate *, 2> templates;
    std::array<UnitSimulator::UnitCurve, 2> curves;
    std::array<unsigned, 2> next;
    std::array<unsigned, 2> ends;
    for (unsigned unit : {0, 1}) {
      const ChainMemory &chain = chains[chainOfUnit[position + unit]];
      unsigned place = chain.getPlace(stage.units[position + unit].kind);
      templates[unit] = chain.templates[place];
      curves[unit] = chain.simulator->getCurve(place, space);
      next[unit] = chain.simulator->getFirstNode(place);
      ends[unit] = chain.simulator->getFirstNode(place + 1);
    }
    const std::array<unsigned, 2> firsts = next;
    PairPeak peak;
    const PairOrder order(graph, templates[0]->items, templates[1]->items);
    for (const PairOrder::Turn &turn : order.getTurns()) {
      unsigned unit = turn.unit, other = 1 - unit;
      ByteCount standing = curves[other].paused[next[other] - firsts[other]];
      for (unsigned each : {0, 1})
        standing += next[each] == ends[each] ? handed[each] : 0;
      for (uint64_t node = turn.begin; node < turn.end; ++node)
        if (ByteCount total = curves[unit].live[node] + standing; total > peak.total) {
          next[unit] = firsts[unit] + unsigned(node);
          peak = {total, unit, next};
        }
      next[unit] = firsts[unit] + unsigned(turn.end);
    }
    return peak;
  }

  /// Where units hold most.
  struct WorstUnit {
    ByteCount total = -1;
    size_t position = 0; ///< Of the first unit of a pair.
    OpenUnits open;
    std::optional<PairPeak> pair = std::nullopt;
  };

  /// Says in `result` how many microbatches are in flight, and, of the device, what each kind of unit holds at most.
  MemoryPeak findPeak(const StageProgram &stage, const std::vector<ChainMemory> &chains, MemorySpace space,
                      StageMemory &result) {
    LiveTable live(space);
    for (const StaticValue &value : listStatic(program, stage, getBytesOf(0), this->memory))
      value.value ? live.add(value.value, value.space, value.kind, value.copies, value.bytes)
                  : live.addResident(value.name, value.bytes);
    ByteCount fixed = live.getUse().getTotal(), kept = 0;
    unsigned memory = unsigned(space);
    OpenUnits open;
    WorstUnit worst;
    std::map<PhaseKind, WorstUnit> worstOfKind;
    bool findsMoments = withMoments && space == MemorySpace::Device;
    std::vector<ByteCount> arriving = sumArriving(stage, chains);
    llvm::DenseMap<size_t, size_t> receivers;
    if (space == MemorySpace::Device)
      receivers = findReceivers(program, stage);
    auto hand = [&](size_t position, int64_t count) {
      unsigned receiver = chainOfUnit[position], place = chains[receiver].getPlace(stage.units[position].kind);
      kept += chains[receiver].units[place].handedBytes * count;
      open[{receiver, place}].waiting += count;
    };
    llvm::BitVector isHanded(stage.units.size());
    int64_t inFlight = 0; // microbatches between their first and their last unit, of all chunks
    std::map<std::pair<std::array<unsigned, 4>, std::array<ByteCount, 2>>, PairPeak> pairPeaks; // by chain and place
    for (size_t i = 0, end; i < stage.units.size(); i = end) {
      end = getPairEnd(stage.units, i);
      for (size_t k = i; k < end; ++k) {
        const ChainMemory &chain = chains[chainOfUnit[k]];
        if (unsigned place = chain.getPlace(stage.units[k].kind); place > 0) {
          kept -= chain.units[place - 1].keptBytes[memory];
          --open[{chainOfUnit[k], place - 1}].resting;
          inFlight -= !movesCaches(chain.templates[place - 1]->kind);
        }
        if (isHanded[k])
          hand(k, -1);
      }
      ByteCount total = fixed + kept + (space == MemorySpace::Device ? arriving[i] : 0);
      WorstUnit here = {total, i, {}};
      if (end == i + 1) {
        const ChainMemory &chain = chains[chainOfUnit[i]];
        here.total += chain.simulator->getPeak(chain.getPlace(stage.units[i].kind), space).total;
      } else {
        std::array<unsigned, 4> key;
        std::array<ByteCount, 2> handed = {0, 0};
        for (unsigned unit : {0, 1}) {
          key[2 * unit] = chainOfUnit[i + unit];
          key[2 * unit + 1] = chains[key[2 * unit]].getPlace(stage.units[i + unit].kind);
          if (auto receiver = receivers.find(i + unit); receiver != receivers.end())
            handed[unit] = get(stage, chains, receiver->second).handedBytes;
        }
        auto [known, isNew] = pairPeaks.try_emplace({key, handed});
        if (isNew)
          known->second = findPairPeak(stage, chains, i, space, handed);
        here.pair = known->second;
        here.total += here.pair->total;
      }
      auto note = [&](WorstUnit &most) {
        if (here.total <= most.total)
          return;
        most = here;
        most.open = open;
      };
      note(worst);
      for (size_t k = i; k < end && findsMoments; ++k)
        note(worstOfKind[stage.units[k].kind]);
      for (size_t k = i; k < end; ++k) {
        if (auto receiver = receivers.find(k); receiver != receivers.end()) {
          isHanded.set(receiver->second);
          hand(receiver->second, 1);
        }
        const ChainMemory &chain = chains[chainOfUnit[k]];
        unsigned place = chain.getPlace(stage.units[k].kind);
        if (place + 1 == chain.units.size())
          continue;
        kept += chain.units[place].keptBytes[memory];
        ++open[{chainOfUnit[k], place}].resting;
        inFlight += !movesCaches(stage.units[k].kind);
        result.inFlight = std::max(result.inFlight, inFlight);
      }
    }
    for (auto &[kind, ofKind] : worstOfKind) {
      MemoryMoment &moment = result.moments.emplace_back();
      static_cast<MemoryPeak &>(moment) = describePeak(stage, chains, space, live, ofKind);
      moment.phase = kind;
    }
    return describePeak(stage, chains, space, std::move(live), worst);
  }

  /// `live`: what is static.
  MemoryPeak describePeak(const StageProgram &stage, const std::vector<ChainMemory> &chains, MemorySpace space,
                          LiveTable live, const WorstUnit &worst) const {
    std::string name;
    const Op *op = nullptr;
    std::optional<int64_t> iteration;
    size_t end = getPairEnd(stage.units, worst.position);
    for (size_t k = worst.position; k < end; ++k) {
      const ChainMemory &chain = chains[chainOfUnit[k]];
      unsigned place = chain.getPlace(stage.units[k].kind);
      name += (name.empty() ? "" : "|") + program.getUnitName(stage.units[k]);
      if (!worst.pair) {
        const UnitPeak &peak = chain.simulator->getPeak(place, space);
        if (peak.node)
          live.add(chain.simulator->listLive(*peak.node), 1); // of them those in this memory
        op = peak.op;
        iteration = peak.iteration;
        continue;
      }
      unsigned unit = unsigned(k - worst.position), node = worst.pair->nodes[unit];
      if (unit != worst.pair->running) {
        live.add(chain.simulator->listPaused(place, node), 1);
        continue;
      }
      live.add(chain.simulator->listLive(node), 1);
      op = chain.simulator->getOp(node);
      if (int of = chain.simulator->getIterationOf(node); of >= 0)
        iteration = of;
    }
    for (auto [other, count] : worst.open) {
      live.add(chains[other.first].units[other.second].kept, count.resting);
      live.add(chains[other.first].units[other.second].handedIn, count.waiting);
    }
    for (size_t next = end; next < stage.units.size(); ++next) {
      if (arrivals->getPost(next) <= worst.position)
        live.add(get(stage, chains, next).received, 1);
      if (getPairBegin(stage.units, arrivals->getLoader(next).value_or(0)) <= worst.position)
        live.add(get(stage, chains, next).inputs, 1);
    }
    MemoryUse use = live.getUse();
    return {use, use.getTotal(), std::move(name), op, iteration, live.take()};
  }

  /// What is there during each unit for later ones.
  std::vector<ByteCount> sumArriving(const StageProgram &stage, const std::vector<ChainMemory> &chains) const {
    std::vector<ByteCount> arriving(stage.units.size() + 1, 0);
    auto add = [&](ByteCount bytes, size_t from, size_t to) {
      arriving[getPairBegin(stage.units, from)] += bytes;
      arriving[getPairBegin(stage.units, to)] -= bytes;
    };
    for (size_t i = 0; i < stage.units.size(); ++i) {
      const ChainMemory::UnitMemory &unit = get(stage, chains, i);
      add(unit.inputBytes, arrivals->getLoader(i).value_or(0), i);
      add(unit.receivedBytes, arrivals->getPost(i), i);
    }
    for (size_t i = 1; i < arriving.size(); ++i)
      arriving[i] += arriving[i - 1];
    return arriving;
  }

  const Program &program;
  Graph &graph;
  DiagnosticEngine &diags;
  const RuntimeMemory *memory;
  bool withMoments;
  ChainLifetimes lifetimes;
  std::optional<Arrivals> arrivals;       ///< Of the current stage.
  std::vector<unsigned> chainOfUnit;      ///< By position in the list of the current stage.
  bool isPlain = true;                    ///< Bytes are those of no coordinates.
  SizeBinding selected;                   ///< Coordinates.
  std::map<unsigned, LocalBytes> bytesOf; ///< Per environment: with these coordinates.
};
} // namespace

std::string stage::describe(const LiveValue &live) { return live.value ? describe(*live.value) : live.name; }

std::string MemoryPeak::describeMoment() const {
  if (!op)
    return unit;
  std::string text = unit + ": " + (op->getNumResults() ? describe(*op->getResult()) : getName(op->kind).str());
  if (iteration)
    text += ", iteration " + std::to_string(*iteration);
  return text;
}

MemoryReport stage::accountMemory(const Program &program, DiagnosticEngine &diags, const RuntimeMemory *memory,
                                  bool withMoments, std::optional<ByteCount> limit) {
  unsigned errorsBefore = diags.getNumErrors();
  MemoryReport report;
  report.program = &program;
  report.saved = collectSavedBytes(*program.graph);
  Accountant accountant(program, diags, memory, withMoments);
  for (const StageProgram &stage : program.stages) {
    report.stages.push_back(accountant.account(stage));
    if (limit && report.stages.back().peak.getTotal() > *limit)
      break;
  }
  return diags.getNumErrors() == errorsBefore ? report : MemoryReport();
}
