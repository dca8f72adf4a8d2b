//===- CheckPrograms.cpp - what ASTRA-sim makes of a program --------------===//
//
// What ASTRA-sim does, found by runs of it on traces of a few nodes:
//
//   collective of all ranks      phases, one per dimension, each by the algorithm that system.json lists for it
//   ... of part of them          one ring over its members, in the order of comm_group.json, whatever dimensions they
//                                span; by the listed algorithm if the list has one entry. `involved_dim` is not read
//   a message, a link of a ring  timed by the innermost dimension in which both ranks differ
//   MEM nodes                    abort without remote memory
//   COMP nodes of the host       replayed: 1 ns without a duration
//   0 ns at the beginning        aborts
//
//===----------------------------------------------------------------------===//
#include "stage/AstraSim/Configuration.h"
#include "stage/AstraSim/Diagnostics.h"
#include <set>

using namespace stage;
using namespace stage::astrasim;

ComputeTimes astrasim::findComputeTimes(bool carriesDurations) {
  return carriesDurations ? ComputeTimes::Traces : ComputeTimes::Roofline;
}

namespace {
/// Of links, or messages, that leave a group of a dimension.
struct Crossings {
  int64_t all = 0;
  int64_t seen = 0; ///< As such by ASTRA-sim.
};

class Checker {
public:
  Checker(llvm::ArrayRef<const Program *> parts, const Machine &machine, const Network &network, ComputeTimes times,
          const EmitOptions &traces, SMLoc loc, DiagnosticEngine &diags)
      : parts(parts), machine(machine), network(network), times(times), traces(traces), loc(loc), diags(diags) {}

  std::optional<Needs> run() {
    unsigned errors = diags.getNumErrors();
    uint64_t firstGroup = 1;
    std::vector<GroupTable> tables;
    for (const Program *part : parts) {
      firstGroup = tables.emplace_back(*part, firstGroup).getEnd();
      tables.back().addAll(needs.groups);
    }
    for (auto [part, table] : llvm::zip(parts, tables))
      findAllToAllOfAllRanks(*part, table);
    for (auto [part, table] : llvm::zip(parts, tables)) {
      checkCollectives(*part, table);
      checkOps(*part);
      checkStageMessages(*part);
      checkStreams(*part);
      if (times == ComputeTimes::Roofline)
        checkFirstTasks(*part, table);
    }
    checkPoolMessages();
    for (auto &[number, ranks] : needs.groups)
      if (int64_t(ranks.size()) < network.getNumRanks())
        ranks = network.orderRing(ranks);
    return diags.getNumErrors() == errors ? std::optional(std::move(needs)) : std::nullopt;
  }

private:
  /// Calls `f` for the first collective of each kind of groups, and for the first all_to_all.
  static void forEachKind(const Program &part, const GroupTable &table,
                          llvm::function_ref<void(const Op &op, unsigned kind)> f) {
    std::set<std::pair<unsigned, bool>> known;
    for (const StageProgram &stage : part.stages)
      forEachOp(stage, [&](const Op &op) {
        if (!isCollective(op.kind))
          return;
        std::optional<unsigned> kind = table.find(op, stage.stage);
        if (kind && known.insert({*kind, op.kind == OpKind::AllToAll}).second)
          f(op, *kind);
      });
  }

  /// Members of the first group of a kind. All groups of a kind have as many.
  const std::vector<uint32_t> &getFirstGroup(const GroupTable &table, unsigned kind) const {
    return needs.groups.find(table.getFirst(kind))->second;
  }

  bool isOfAllRanks(const GroupTable &table, unsigned kind) const {
    return int64_t(getFirstGroup(table, kind).size()) == network.getNumRanks();
  }

  void findAllToAllOfAllRanks(const Program &part, const GroupTable &table) {
    forEachKind(part, table, [&](const Op &op, unsigned kind) {
      needs.allToAllOfAllRanks |= op.kind == OpKind::AllToAll && isOfAllRanks(table, kind);
    });
  }

  void checkCollectives(const Program &part, const GroupTable &table) {
    if (network.getDims().size() < 2)
      return;
    forEachKind(part, table, [&](const Op &op, unsigned kind) {
      if (isOfAllRanks(table, kind))
        return;
      uint64_t end = kind + 1 < table.getNumKinds() ? table.getFirst(kind + 1) : table.getEnd();
      if (op.kind == OpKind::AllToAll)
        checkAllToAll(op, getFirstGroup(table, kind));
      else
        checkRings(part, op, table.getFirst(kind), end);
    });
  }

  void add(Crossings &crossings, int64_t from, int64_t to, unsigned dim) const {
    if (from == to || network.findOutermost(from, to) != dim)
      return;
    ++crossings.all;
    crossings.seen += network.findInnermost(from, to) == dim;
  }

  /// The name of what a dimension has groups of: the level inside of it.
  llvm::StringRef getGroupLevel(unsigned dim) const { return network.getDims()[dim - 1].level->name; }

  /// Groups [first, end), of one kind. One link in a ring over an odd number of groups cannot be mended, and does not
  /// count.
  void checkRings(const Program &part, const Op &op, uint64_t first, uint64_t end) {
    for (auto it = needs.groups.find(first); it != needs.groups.end() && it->first < end; ++it) {
      const std::vector<uint32_t> ring = network.orderRing(it->second);
      unsigned dim = network.findOutermost(it->second.front(), it->second.back());
      Crossings links;
      for (size_t i = 0; i < ring.size(); ++i)
        add(links, ring[i], ring[(i + 1) % ring.size()], dim);
      if (2 * links.seen >= links.all)
        continue;
      diags.report(op.loc, diag::GroupOffDimensions)
          << links.all - links.seen << links.all << getGroupLevel(dim) << nameAxes(part, op) << network.getStride(dim);
      return;
    }
  }

  static std::string nameAxes(const Program &part, const Op &op) {
    std::string names;
    for (auto [name, axis] : part.graph->mesh.nameAxes(op.axes))
      names += (names.empty() ? "" : ", ") + name.str();
    return names;
  }

  void checkAllToAll(const Op &op, llvm::ArrayRef<uint32_t> group) {
    if (needs.allToAllOfAllRanks) {
      if (group.size() > 2)
        diags.report(op.loc, diag::AllToAllAroundRing)
            << int64_t(group.size()) << std::to_string(group.size() / 2) + (group.size() % 2 ? ".5" : "");
      return;
    }
    unsigned dim = network.findOutermost(group.front(), group.back());
    Crossings messages;
    for (uint32_t to : group)
      add(messages, group.front(), to, dim);
    if (messages.seen < messages.all)
      diags.report(op.loc, diag::AllToAllOffDimensions)
          << messages.all - messages.seen << messages.all << getGroupLevel(dim);
  }

  /// Copies, the host, and the blocks of rings.
  void checkOps(const Program &part) {
    std::set<std::pair<AxisId, int64_t>> rings;
    bool saysHost = false, saysCopies = false;
    const Mesh &mesh = part.graph->mesh;
    for (const StageProgram &stage : part.stages)
      forEachOp(stage, [&](const Op &op) {
        if (isCopy(op.kind)) {
          needs.copies = true;
          if (!machine.getRates()->copy && !std::exchange(saysCopies, true))
            diags.report(op.loc, diag::AstraSimNeedsHostRate) << machine.getRates()->name;
        } else if (runsOnHost(op) && times == ComputeTimes::Roofline && !std::exchange(saysHost, true)) {
          diags.report(op.loc, diag::HostComputeUntimed);
        }
        if (op.kind != OpKind::Permute || !rings.insert({op.axes.front().id, op.shift}).second)
          return;
        AxisId axis = op.axes.front();
        checkMessages(part, op.loc, axis, [&](int64_t rank) {
          int64_t coordinate = mesh.getCoordinate(rank, axis);
          return rank + ((coordinate + op.shift) % mesh[axis].size - coordinate) * mesh.getStride(axis);
        });
      });
  }

  /// `getReceiver`: of what a rank sends; itself, if it sends nothing. Ranks are counted in their part.
  void checkMessages(const Program &part, SMLoc where, AxisId axis, llvm::function_ref<int64_t(int64_t)> getReceiver) {
    for (unsigned dim = 1; dim < network.getDims().size(); ++dim) {
      Crossings messages;
      for (int64_t rank = 0; rank < part.graph->mesh.getNumRanks(); ++rank)
        add(messages, part.firstRank + rank, part.firstRank + getReceiver(rank), dim);
      if (messages.seen < messages.all)
        diags.report(where, diag::MessagesOffDimensions)
            << messages.all - messages.seen << messages.all << getGroupLevel(dim) << part.graph->mesh[axis].name
            << network.getStride(dim);
    }
  }

  /// Between the stages of a pipeline.
  void checkStageMessages(const Program &part) {
    if (!part.graph->pipeline.axis)
      return;
    AxisId axis = *part.graph->pipeline.axis;
    const Mesh &mesh = part.graph->mesh;
    std::set<unsigned> distances; // in stages
    for (const StageProgram &stage : part.stages)
      for (const UnitTemplate &unit : stage.templates)
        for (const ProgramItem &item : unit.items)
          if (item.kind == ProgramItem::Kind::Send && !item.channel && !item.isLocal)
            if (unsigned to = part.virtualStages[item.peer].first; to != stage.stage)
              distances.insert(std::max(to, stage.stage) - std::min(to, stage.stage));
    for (unsigned distance : distances)
      checkMessages(part, loc, axis, [&](int64_t rank) {
        bool sends = mesh.getCoordinate(rank, axis) + distance < mesh[axis].size;
        return sends ? rank + distance * mesh.getStride(axis) : rank;
      });
  }

  /// Between the parts of a workload.
  void checkPoolMessages() {
    std::set<const Exchange *> exchanges;
    std::vector<Crossings> crossings(network.getDims().size());
    for (const Program *part : parts)
      for (const StageProgram &stage : part->stages)
        for (const UnitTemplate &unit : stage.templates)
          for (const ProgramItem &item : unit.items)
            if (item.kind == ProgramItem::Kind::Send && item.channel)
              exchanges.insert(item.channel->exchange.get());
    for (const Exchange *exchange : exchanges)
      for (size_t to = 0; to < exchange->senders.size(); ++to)
        for (const Exchange::Sender &from : exchange->senders[to])
          for (unsigned dim = 1; dim < crossings.size(); ++dim)
            add(crossings[dim], exchange->from->firstRank + from.rank, exchange->to->firstRank + int64_t(to), dim);
    for (unsigned dim = 1; dim < crossings.size(); ++dim)
      if (crossings[dim].seen < crossings[dim].all)
        diags.report(loc, diag::PoolsOffDimensions)
            << crossings[dim].all - crossings[dim].seen << crossings[dim].all << getGroupLevel(dim);
  }

  void checkStreams(const Program &part) {
    if (traces.mergesStreams)
      return;
    for (const auto &stream : part.graph->streams)
      if (stream->kind == StreamKind::Communication) {
        diags.report(stream->loc.isValid() ? stream->loc : loc, diag::StreamsMayStall) << stream->name;
        return;
      }
  }

  /// What the ranks of each stage compute at once.
  void checkFirstTasks(const Program &part, const GroupTable &table) {
    constexpr Ticks nanosecond = 1000;
    for (const StageProgram &stage : part.stages) {
      RankClass rankClass;
      rankClass.stage = stage.stage;
      TaskOptions options;
      ClassTasks tasks(part, table, options, rankClass, diags);
      if (tasks.getUnits().empty())
        continue;
      bool isReported = false;
      tasks.makeUnit(0, [&](const Task &task) {
        bool isFirst = task.kind == TaskKind::Compute && task.data.empty() && task.order.empty();
        if (!isFirst || isReported || task.flops.isSlot() || task.bytes.isSlot())
          return;
        llvm::StringRef missing;
        std::optional<Ticks> time = machine.ofCompute(
            int64_t(task.flops.resolve({})), int64_t(task.isWait ? 1 : task.bytes.resolve({})), false, missing);
        isReported = time && *time < nanosecond;
        if (isReported)
          diags.report(task.op ? task.op->loc : loc, diag::FirstTaskTooShort) << task.name;
      });
      if (isReported)
        return;
    }
  }

  llvm::ArrayRef<const Program *> parts;
  const Machine &machine;
  const Network &network;
  ComputeTimes times;
  const EmitOptions &traces;
  SMLoc loc; ///< Of the job.
  DiagnosticEngine &diags;
  Needs needs;
};
} // namespace

std::optional<Needs> astrasim::checkPrograms(llvm::ArrayRef<const Program *> parts, const Machine &machine,
                                             const Network &network, ComputeTimes times, const EmitOptions &traces,
                                             SMLoc loc, DiagnosticEngine &diags) {
  return Checker(parts, machine, network, times, traces, loc, diags).run();
}
