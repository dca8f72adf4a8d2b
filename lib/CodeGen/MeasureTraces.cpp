//===- MeasureTraces.cpp - how large traces would be ----------------------===//
//
// Problem: a report says how many nodes and bytes would be written, for 131,072 ranks
// and 10,000 microbatches as fast as for one.
//
// Algorithm. The bytes of a node depend on its rank through the widths of its group's
// number and of its peer, and on its unit through the widths of ids, tags and the
// microbatch's number in its name. So
//
//   * each slot has a histogram: how many ranks of the class fill it with a number of
//     how many digits (MixedRadix counts them without a walk over the ranks);
//   * units of one template whose widths are all the same have the same size, where the
//     units on whose nodes they depend have ids of the same widths, too: the first is
//     lowered and measured, the others are looked up. Widths change where ids pass
//     128, 16384, ...: the few units in which they do are lowered each.
//
//===----------------------------------------------------------------------===//
#include "EncodeTask.h"
#include "TensorTracker.h"
#include "stage/CodeGen/Emit.h"
#include "stage/Support/Digits.h"
#include "stage/Tasks/ClassTasks.h"
#include "stage/Tasks/Slowness.h"
#include <map>
#include <set>

using namespace stage;

namespace {
/// A number of ranks with a value of the width they have.
struct WidthCount {
  uint64_t value;
  int64_t ranks;
};

/// Ranks with some coordinates, counted so many times.
struct RankSet {
  std::vector<std::optional<int64_t>> fixed; ///< Per axis.
  MixedRadix ranks;
  int64_t times;
};

class ClassMeasurer {
public:
  ClassMeasurer(const Program &program, const GroupTable &groups, const EmitOptions &options,
                const RankClass &rankClass, llvm::ArrayRef<std::pair<FixedCoordinates, int64_t>> members,
                DiagnosticEngine &diags)
      : mesh(program.graph->mesh), environments(program.graph->pipeline.environments),
        pipelineAxis(program.graph->pipeline.axis), groups(groups), tasks(program, groups, options, rankClass, diags) {
    if (options.tracker)
      tracker.emplace(program, tasks, options.memory, diags);
    for (auto &[coordinates, times] : members) {
      RankSet &set = sets.emplace_back();
      set.times = times;
      set.fixed.resize(mesh.getAxes().size());
      for (auto [axis, coordinate] : coordinates)
        set.fixed[axis] = coordinate;
      for (AxisId axis = 0; axis < set.fixed.size(); ++axis)
        set.ranks.add(mesh[axis].size, set.fixed[axis] ? std::optional<uint64_t>(*set.fixed[axis]) : std::nullopt);
      numRanks += times * int64_t(set.ranks.getCount());
    }
  }

  /// False if there are not enough tags for the messages.
  bool measure(EmitStatistics &statistics) {
    if (!tasks.hasEnoughTags())
      return false;
    statistics.ranks += numRanks;
    statistics.files += numRanks;
    statistics.bytes += __int128(numRanks) * getEncodedMetadataSize(getMetadata(nullptr, 0));
    const auto &units = tasks.getUnits();
    for (unsigned number = 0; number < units.size(); number += countUnits(units[number])) {
      statistics.nodes += __int128(numRanks) * units[number].getNumIds();
      statistics.bytes += measureUnit(number);
    }
    return true;
  }

private:
  /// What the size of a unit depends on.
  using Key = std::vector<uint64_t>;
  struct UnitSize {
    __int128 bytes;
    /// Where the chains end, from the unit's first node; absent if the unit does not change them.
    ClassTasks::Chains chains;
  };

  /// Two units that run interleaved are measured as one.
  static unsigned countUnits(const PlacedUnit &first) { return first.pair ? 2 : 1; }

  __int128 measureUnit(unsigned number) {
    const PlacedUnit &unit = tasks.getUnits()[number];
    std::optional<Key> key = makeKey(number);
    if (key)
      if (auto known = sizes.find(*key); known != sizes.end()) {
        ClassTasks::Chains after = tasks.getChains();
        for (auto [end, last] : llvm::zip(after, known->second.chains))
          if (last)
            end = unit.base + *last;
        for (unsigned each = 0; each < countUnits(unit); ++each)
          tasks.skipUnit(number + each, after);
        return known->second.bytes;
      }
    UnitSize size = {0, ClassTasks::Chains(tasks.getChains().size())};
    for (unsigned each = 0; each < countUnits(unit); ++each)
      tasks.countUnit(number + each,
                      [&](const Task &task, uint64_t times) { size.bytes += times * measureTask(task); });
    if (!key)
      return size.bytes;
    for (auto [end, last] : llvm::zip(tasks.getChains(), size.chains))
      if (end >= unit.base)
        last = *end - unit.base;
    sizes.emplace(std::move(*key), size);
    return size.bytes;
  }

  /// Of all ids of a unit; nothing if they have several.
  static std::optional<uint64_t> getWidth(uint64_t first, uint64_t count) {
    uint64_t last = first + std::max<uint64_t>(1, count) - 1;
    if (!first || getVarintSize(first) != getVarintSize(last))
      return std::nullopt; // id 0 is not written
    return getVarintSize(first);
  }

  /// Lists of tensors say bytes and the batch of a cache in digits: then only what has the same environment is as long.
  void addNumbers(const PlacedUnit &unit, Key &key) {
    std::optional<std::vector<unsigned>> widths;
    if (!tracker)
      widths = tasks.getWidths(unit);
    if (widths)
      key.insert(key.end(), widths->begin(), widths->end());
    else
      key.push_back(tracker ? unit.environment : environments.getAlike(unit.environment));
  }

  /// The units whose values a unit may use: those of its microbatch before it, on its chunk and, where chunks hand each
  /// other values, on others; and the one that feeds it.
  static llvm::SmallVector<const PlacedUnit *, 8> listGivers(const PlacedUnit &unit) {
    llvm::SmallVector<const PlacedUnit *, 8> givers, open = {&unit};
    while (!open.empty()) {
      const PlacedUnit *next = open.pop_back_val();
      for (const PlacedUnit *giver : {next->giver, next->previous})
        if (giver && !llvm::is_contained(givers, giver)) {
          givers.push_back(giver);
          open.push_back(giver);
        }
    }
    if (unit.feeder)
      givers.push_back(unit.feeder);
    return givers;
  }

  /// Which nodes a unit has, and where: those of a pair lie between those of the other unit.
  static void addNodes(const PlacedUnit &unit, Key &key) {
    key.insert(key.end(), {uint64_t(unit.kind), unit.chain, unit.placeInPair,
                           uint64_t(reinterpret_cast<uintptr_t>(unit.pair))}); // of two templates the same one
  }

  /// Nothing for the step, which is there once, for units that have, or depend on, ids of several widths, and, with
  /// lists of tensors, for pairs.
  std::optional<Key> makeKey(unsigned number) {
    const PlacedUnit &first = tasks.getUnits()[number];
    std::optional<uint64_t> width = getWidth(first.base, first.getNumIds());
    if (isOncePerStep(first.kind) || !width || (tracker && tasks.hasPairs()))
      return std::nullopt;
    Key key = {*width};
    std::vector<uint64_t> counts(tasks.getNumIssued().size());
    for (unsigned each = 0; each < countUnits(first); ++each) {
      const PlacedUnit &unit = tasks.getUnits()[number + each];
      if (!addKey(unit, number + each, key))
        return std::nullopt;
      for (auto [count, more] : llvm::zip(counts, tasks.getNumCollectives(unit)))
        count += more;
    }
    for (auto [issued, count] : llvm::zip(tasks.getNumIssued(), counts)) {
      if (count && getVarintSize(issued) != getVarintSize(issued + count - 1))
        return std::nullopt;
      if (count)
        key.push_back(getVarintSize(issued));
    }
    return key;
  }

  /// False for a unit that depends on ids of several widths.
  bool addKey(const PlacedUnit &unit, unsigned number, Key &key) {
    const ClassTasks::Chains &chains = tasks.getChains();
    addNodes(unit, key);
    key.push_back(getDecimalSize(unit.microbatch));
    addNumbers(unit, key);
    auto addId = [&](std::optional<uint64_t> id) { key.push_back(id ? getVarintSize(*id) : 0); };
    llvm::for_each(chains, addId);
    addId(tasks.getPosted(number));
    std::optional<uint64_t> load = tasks.getLoad(unit);
    addId(load);
    key.push_back(tasks.getStreamOfLoad(unit).value_or(0)); // said with a load only
    // Dependencies that carry data and order at once are written once.
    auto addUnit = [&](const PlacedUnit &other) {
      std::optional<uint64_t> otherWidth = getWidth(other.base, other.getNumIds());
      addNodes(other, key);
      key.push_back(otherWidth.value_or(0));
      for (std::optional<uint64_t> end : chains)
        key.push_back(other.contains(end));
      key.push_back(other.contains(load));
      return otherWidth.has_value();
    };
    llvm::SmallVector<uint64_t, 4> others; // where the units begin from which it has data
    for (const PlacedUnit *earlier : listGivers(unit)) {
      others.push_back(earlier->base);
      if (!addUnit(*earlier))
        return false;
    }
    if (isBackward(unit.kind))
      for (const PlacedUnit *other : tasks.getLatestBackwards()) {
        others.push_back(other->base);
        if (!addUnit(*other))
          return false;
      }
    key.push_back(unit.updates != nullptr);
    if (unit.updates && !addUnit(*unit.updates))
      return false;
    auto awaited = tasks.getAwaitedUnits(number);
    if (!awaited)
      return false;
    for (const PlacedUnit *other : *awaited) {
      key.push_back(other != nullptr);
      if (other && !addUnit(*other))
        return false;
      for (uint64_t first : others)
        key.push_back(other && other->base == first);
    }
    if (tracker)
      for (const PlacedUnit *next : tasks.getLoaded(number)) // whose inputs are named
        key.insert(key.end(), {uint64_t(next->kind), next->chunk.value_or(0), next->environment,
                               getDecimalSize(next->microbatch)});
    for (uint64_t tag : tasks.getTags(unit))
      key.push_back(getVarintSize(tag));
    return true;
  }

  /// Over all ranks of the class.
  __int128 measureTask(const Task &task) {
    NodeFields node = encode(task);
    if (tracker)
      tracker->addLists(node, tasks.isLast(task.id));
    TaskValue varying = task.kind == TaskKind::Collective ? task.group : task.peer;
    if (!varying.isSlot())
      return numRanks * __int128(getEncodedSize(node, {}));
    while (histograms.size() < tasks.getSlots().size())
      histograms.push_back(makeHistogram(tasks.getSlots()[histograms.size()]));
    __int128 bytes = 0;
    values.resize(histograms.size());
    for (const WidthCount &width : histograms[varying.getSlot()]) {
      values[varying.getSlot()] = width.value;
      bytes += __int128(width.ranks) * getEncodedSize(node, values);
    }
    return bytes;
  }

  /// Of all ranks of the class.
  std::vector<WidthCount> makeHistogram(const RankSlot &slot) const {
    std::map<uint64_t, int64_t> ranksOfWidth;
    for (const RankSet &set : sets)
      for (const WidthCount &width : makeHistogram(slot, set))
        ranksOfWidth[width.value] += set.times * width.ranks;
    std::vector<WidthCount> widths;
    for (auto [value, ranks] : ranksOfWidth)
      widths.push_back({value, ranks});
    return widths;
  }

  std::vector<WidthCount> makeHistogram(const RankSlot &slot, const RankSet &set) const {
    const auto &fixed = set.fixed;
    if (slot.kind == RankSlot::Kind::Group) {
      MixedRadix numbers = groups.getNumbers(slot.groupKind, fixed);
      return countWidths(numbers, groups.getFirst(slot.groupKind), 10, set.ranks.getCount() / numbers.getCount());
    }
    // The peer has the same place on another stage, or is a neighbour: all of the class together have as peers all of
    // it.
    bool isNeighbour = slot.kind == RankSlot::Kind::Neighbour;
    MixedRadix peers;
    for (AxisId axis = 0; axis < fixed.size(); ++axis) {
      std::optional<int64_t> coordinate = fixed[axis];
      if (!isNeighbour && axis == pipelineAxis)
        coordinate = slot.stage;
      if (isNeighbour && axis == slot.axis && coordinate)
        coordinate = (*coordinate + slot.shift) % mesh[axis].size;
      peers.add(mesh[axis].size, coordinate ? std::optional<uint64_t>(*coordinate) : std::nullopt);
    }
    return countWidths(peers, 0, 128, 1);
  }

  /// How many of the values, plus `first`, are below each power of `base` and not below the one before.
  static std::vector<WidthCount> countWidths(const MixedRadix &numbers, uint64_t first, uint64_t base,
                                             uint64_t ranksPerNumber) {
    std::vector<WidthCount> widths;
    uint64_t counted = 0;
    for (uint64_t begin = 0, end = base; counted < numbers.getCount(); begin = end, end *= base) {
      uint64_t below = end > first ? numbers.countBelow(end - first) : 0;
      if (below > counted)
        widths.push_back({std::max<uint64_t>(begin, 1), int64_t((below - counted) * ranksPerNumber)});
      counted = below;
    }
    return widths;
  }

  const Mesh &mesh;
  const Environments &environments;
  std::optional<AxisId> pipelineAxis;
  const GroupTable &groups;
  ClassTasks tasks;
  std::optional<TensorTracker> tracker;
  std::vector<RankSet> sets; ///< Together the ranks of the class.
  int64_t numRanks = 0;
  std::vector<std::vector<WidthCount>> histograms; ///< Per slot.
  std::vector<uint64_t> values;                    ///< Of the slots, for the node being measured.
  std::map<Key, UnitSize> sizes;
};
} // namespace

/// Adds what the ranks with some coordinates on a stage would be, by their slowness. Ranks whose coordinates are others
/// on axes that are not `unlike` are as large.
static bool measureBySlowness(const Program &program, const GroupTable &groups, const EmitOptions &options,
                              RankClass rankClass, AxisSet unlike, DiagnosticEngine &diags, EmitStatistics &statistics,
                              std::set<const SizeNode *> &speeds) {
  const Graph &graph = *program.graph;
  FixedCoordinates common;
  for (auto [axis, coordinate] : rankClass.coordinates)
    if (unlike >> axis & 1)
      common.emplace_back(axis, coordinate);
  if (graph.pipeline.axis)
    common.emplace_back(*graph.pipeline.axis, rankClass.stage);
  llvm::sort(common);
  for (const SlownessClass &one : classifyBySlowness(graph, common)) {
    // Ranks with other coordinates are variants of one class, but for trackers.
    statistics.classes += speeds.insert(one.slowness.getNode()).second || options.tracker;
    rankClass.slowness = one.slowness.isConstant(1) ? Size() : one.slowness;
    if (!ClassMeasurer(program, groups, options, rankClass, one.sets, diags).measure(statistics))
      return false;
  }
  return true;
}

std::optional<EmitStatistics> stage::measureTraces(const Program &program, const EmitOptions &options,
                                                   DiagnosticEngine &diags) {
  const Graph &graph = *program.graph;
  const Mesh &mesh = graph.mesh;
  GroupTable groups(program);
  EmitStatistics statistics;
  if (!checkSlowRanks(graph, diags) || !checkSteps(program, options.steps, diags))
    return std::nullopt;
  for (const StageProgram &stage : program.stages) {
    RankClass rankClass;
    std::set<const SizeNode *> speeds;
    rankClass.stage = stage.stage;
    for (AxisId axis : toList(findVaryingAxes(program, stage)))
      rankClass.coordinates.emplace_back(axis, 0);
    AxisSet unlike = rankClass.coordinates.empty() ? 0 : options.tracker ? ~AxisSet(0) : findUnlikeAxes(program, stage);
    for (bool more = true; more;) {
      if (!measureBySlowness(program, groups, options, rankClass, unlike, diags, statistics, speeds))
        return std::nullopt;
      // The next coordinates, as one counts.
      more = false;
      for (auto &[axis, coordinate] : llvm::reverse(rankClass.coordinates)) {
        more = (unlike >> axis & 1) && ++coordinate < mesh[axis].size;
        if (more)
          break;
        coordinate = 0;
      }
    }
  }
  ++statistics.files; // comm_group.json
  statistics.bytes += groups.getJsonSize();
  return statistics;
}
