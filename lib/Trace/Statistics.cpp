//===- Statistics.cpp - what is in the traces -----------------------------===//
#include "stage/Trace/Statistics.h"
#include "Attributes.h"
#include "stage/CodeGen/NodeWriter.h"
#include "stage/Support/Escape.h"
#include "stage/Support/Ranges.h"
#include "stage/Support/Records.h"
#include "stage/Trace/TraceFolder.h"
#include "stage/Trace/TraceReader.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <array>
#include <compare>

using namespace stage;
using namespace stage::trace;
using ChakraProtoMsg::AttributeProto;
using llvm::StringRef;

namespace {
/// A step of a large model has more than 2^64 FLOPs.
using Count = __int128;

/// Calls of a collective, by what tells them apart in a report.
struct CollectiveKey {
  int64_t commType;
  uint64_t groupSize;
  auto operator<=>(const CollectiveKey &) const = default;
};
struct Calls {
  uint64_t count = 0;
  Count bytes = 0;
  auto operator<=>(const Calls &) const = default;
  void add(const Calls &other) {
    count += other.count;
    bytes += other.bytes;
  }
};

constexpr size_t numTypes = size_t(ChakraNodeType::Checkpoint) + 1;

struct Numbers {
  std::array<uint64_t, numTypes> nodes = {};
  uint64_t unknownNodes = 0;
  Count flops = 0;
  Count tensorBytes = 0;
  Count sentBytes = 0;
  Count receivedBytes = 0;
  Count loadedBytes = 0, storedBytes = 0; ///< By copies from and to another memory.
  std::map<CollectiveKey, Calls> collectives;
  auto operator<=>(const Numbers &) const = default;

  uint64_t getNodes(ChakraNodeType type) const { return nodes[size_t(type)]; }
  uint64_t getCopies() const { return getNodes(ChakraNodeType::MemLoad) + getNodes(ChakraNodeType::MemStore); }
  uint64_t getNumNodes() const {
    uint64_t count = unknownNodes;
    for (uint64_t number : nodes)
      count += number;
    return count;
  }
  Calls getCollectives() const {
    Calls sum;
    for (const auto &[key, calls] : collectives)
      sum.add(calls);
    return sum;
  }
  void add(const Numbers &other) {
    for (size_t type = 0; type < numTypes; ++type)
      nodes[type] += other.nodes[type];
    unknownNodes += other.unknownNodes;
    flops += other.flops;
    tensorBytes += other.tensorBytes;
    sentBytes += other.sentBytes;
    receivedBytes += other.receivedBytes;
    loadedBytes += other.loadedBytes;
    storedBytes += other.storedBytes;
    for (const auto &[key, calls] : other.collectives)
      collectives[key].add(calls);
  }
};

/// Nodes of one operator, over all ranks.
struct OpNumbers {
  uint64_t nodes = 0;
  Count flops = 0;
  Count otherFlops = 0;      ///< Of these, on nodes of another class.
  Count recomputedFlops = 0; ///< Of these, what is computed again.
  Count tensorBytes = 0;
  Count messageBytes = 0;
};

/// Calls per group, over all ranks.
using GroupCalls = std::map<std::pair<uint64_t, int64_t>, Calls>;

class Collector {
public:
  Collector(const TraceFolder &folder, DiagnosticEngine &diags) : folder(folder), diags(diags) {}

  bool collect() {
    bool good = true;
    for (const auto &[rank, path] : folder.files) {
      Numbers numbers;
      good &= read(path, numbers);
      total.add(numbers);
      ranksWith[std::move(numbers)].push_back(rank);
    }
    return good;
  }
  /// Rows in the order of their first rank.
  std::vector<std::pair<std::vector<uint32_t>, const Numbers *>> getRows() const {
    std::vector<std::pair<std::vector<uint32_t>, const Numbers *>> rows;
    for (const auto &[numbers, ranks] : ranksWith)
      rows.emplace_back(ranks, &numbers);
    llvm::sort(rows, [](const auto &a, const auto &b) { return a.first.front() < b.first.front(); });
    return rows;
  }
  uint64_t getGroupSize(uint64_t group) const {
    auto found = folder.groups.find(group);
    return group == 0 ? folder.files.size() : found == folder.groups.end() ? 0 : found->second.size();
  }

  const TraceFolder &folder;
  Numbers total;
  GroupCalls groupCalls;
  std::map<std::string, OpNumbers> ops;

private:
  bool read(StringRef path, Numbers &numbers) {
    std::unique_ptr<TraceReader> reader = TraceReader::open(path, diags);
    ChakraProtoMsg::GlobalMetadata metadata;
    if (!reader || reader->readMetadata(metadata) != TraceReader::Status::Read)
      return false;
    ChakraProtoMsg::Node node;
    while (reader->readNode(node) == TraceReader::Status::Read)
      add(node, numbers);
    return !reader->hasFailed();
  }

  void add(const ChakraProtoMsg::Node &node, Numbers &numbers) {
    if (getNodeTypeName(node.type()).empty()) {
      ++numbers.unknownNodes;
      return;
    }
    ++numbers.nodes[node.type()];
    auto number = [&](StringRef name) -> uint64_t {
      const AttributeProto *attribute = findAttribute(node, name);
      return attribute ? uint64_t(std::max<int64_t>(getInteger(*attribute).value_or(0), 0)) : 0;
    };
    numbers.flops += number("num_ops");
    if (!isCopyNode(ChakraNodeType(node.type())))
      numbers.tensorBytes += number("tensor_size");
    const AttributeProto *opType = findAttribute(node, "op_type");
    OpNumbers &op = ops[opType ? opType->string_val() : std::string()];
    ++op.nodes;
    op.flops += number("num_ops");
    op.otherFlops += number("other_ops");
    op.recomputedFlops += number("recomputed_ops");
    op.tensorBytes += number("tensor_size");
    op.messageBytes += number("comm_size");
    switch (ChakraNodeType(node.type())) {
    case ChakraNodeType::MemLoad:
      numbers.loadedBytes += number("tensor_size");
      break;
    case ChakraNodeType::MemStore:
      numbers.storedBytes += number("tensor_size");
      break;
    case ChakraNodeType::CommSend:
      numbers.sentBytes += number("comm_size");
      break;
    case ChakraNodeType::CommRecv:
      numbers.receivedBytes += number("comm_size");
      break;
    case ChakraNodeType::CommColl: {
      Calls call = {1, number("comm_size")};
      int64_t type = int64_t(number("comm_type"));
      uint64_t group = getGroup(node).value_or(0);
      numbers.collectives[{type, getGroupSize(group)}].add(call);
      groupCalls[{group, type}].add(call);
      break;
    }
    default:
      break;
    }
  }

  DiagnosticEngine &diags;
  std::map<Numbers, std::vector<uint32_t>> ranksWith;
};

std::string nameCollective(int64_t type) {
  StringRef name = getCommTypeName(type);
  return name.empty() ? "type " + std::to_string(type) : name.str();
}

/// Of ranks, behind their names. Where no rank has copies, tables have no columns of these.
Records listRecords(const Numbers &numbers, bool showsCopies) {
  uint64_t shown = numbers.getCopies();
  for (ChakraNodeType type :
       {ChakraNodeType::Comp, ChakraNodeType::CommColl, ChakraNodeType::CommSend, ChakraNodeType::CommRecv})
    shown += numbers.getNodes(type);
  auto titleCopies = [&](const char *title) { return showsCopies ? title : ""; };
  return {{"", "nodes", numbers.getNumNodes()},
          {"", "compute", numbers.getNodes(ChakraNodeType::Comp)},
          {"", "collective", numbers.getNodes(ChakraNodeType::CommColl)},
          {"", "send", numbers.getNodes(ChakraNodeType::CommSend)},
          {"", "recv", numbers.getNodes(ChakraNodeType::CommRecv)},
          {"", "other", numbers.getNumNodes() - shown},
          {"flops", "FLOPs", numbers.flops},
          {"tensor_bytes", "tensor bytes", numbers.tensorBytes},
          {"", "collective bytes", numbers.getCollectives().bytes},
          {"sent_bytes", "sent bytes", numbers.sentBytes},
          {"received_bytes", "", numbers.receivedBytes},
          {"", titleCopies("copies"), numbers.getCopies()},
          {"loaded_bytes", titleCopies("loaded bytes"), numbers.loadedBytes},
          {"stored_bytes", titleCopies("stored bytes"), numbers.storedBytes}};
}

/// `groups` says how many groups make calls of a kind, for people.
std::vector<Records> listCollectives(const Numbers &numbers, std::map<CollectiveKey, uint64_t> groups = {}) {
  std::vector<Records> rows;
  for (const auto &[key, calls] : numbers.collectives)
    rows.push_back({{"type", "collective", nameCollective(key.commType)},
                    {"group_size", "group size", key.groupSize},
                    {"", "groups", groups[key]},
                    {"calls", "calls", calls.count},
                    {"bytes", "bytes", calls.bytes}});
  return rows;
}

std::vector<Records> listOps(const Collector &collector) {
  std::vector<Records> rows;
  for (const auto &[name, op] : collector.ops)
    rows.push_back({{"op_type", "", llvm::json::fixUTF8(name)},
                    {"", "op_type", name.empty() ? "none" : escapeControls(name)},
                    {"nodes", "nodes", op.nodes},
                    {"flops", "FLOPs", op.flops},
                    {"other_flops", "of these other", op.otherFlops},
                    {"recomputed_flops", "recomputed", op.recomputedFlops},
                    {"tensor_bytes", "tensor bytes", op.tensorBytes},
                    {"message_bytes", "message bytes", op.messageBytes}});
  return rows;
}

std::vector<Records> listGroups(const Collector &collector) {
  std::vector<Records> rows;
  for (const auto &[key, calls] : collector.groupCalls)
    rows.push_back({{"group", "", key.first},
                    {"", "group", key.first ? std::to_string(key.first) : "all"},
                    {"size", "size", collector.getGroupSize(key.first)},
                    {"type", "collective", nameCollective(key.second)},
                    {"calls", "calls", calls.count},
                    {"bytes", "bytes", calls.bytes}});
  return rows;
}

void printTables(const Collector &collector, const StatisticsOptions &options, llvm::raw_ostream &out) {
  bool hasCopies = collector.total.getCopies();
  std::vector<Records> ranks;
  auto add = [&](std::string name, const Numbers &numbers) {
    llvm::append_range(ranks.emplace_back(1, Record{"", "ranks", std::move(name)}), listRecords(numbers, hasCopies));
  };
  for (const auto &[members, numbers] : collector.getRows())
    add(formatRanks(members), *numbers);
  add("total", collector.total);
  printTable(out, ranks, 0);
  auto print = [&](const std::vector<Records> &rows) {
    if (!rows.empty())
      printTable(out << '\n', rows, 0, Table::Right);
  };
  std::map<CollectiveKey, uint64_t> groups;
  for (const auto &[key, calls] : collector.groupCalls) // each group and type once
    ++groups[{key.second, collector.getGroupSize(key.first)}];
  print(listCollectives(collector.total, std::move(groups)));
  if (options.perOp)
    print(listOps(collector));
  if (options.perGroup)
    print(listGroups(collector));
}

void printJson(const Collector &collector, const StatisticsOptions &options, llvm::raw_ostream &out) {
  llvm::json::OStream json(out, 2);
  auto print = [&](const Numbers &numbers) {
    json.attributeObject("nodes", [&] {
      for (size_t type = 0; type < numTypes; ++type)
        if (numbers.nodes[type])
          json.attribute(getNodeTypeName(int(type)), int64_t(numbers.nodes[type]));
    });
    writeMembers(json, listRecords(numbers, /*showsCopies=*/false));
    writeRows(json, "collectives", listCollectives(numbers));
  };
  json.object([&] {
    json.attributeArray("ranks", [&] {
      for (const auto &[members, row] : collector.getRows())
        json.object([&, row = row, &members = members] {
          json.attribute("ranks", formatRanks(members));
          print(*row);
        });
    });
    json.attributeObject("total", [&] { print(collector.total); });
    if (options.perOp)
      writeRows(json, "ops", listOps(collector));
    if (options.perGroup)
      writeRows(json, "groups", listGroups(collector));
  });
  out << '\n';
}
} // namespace

bool stage::trace::printStatistics(StringRef path, const StatisticsOptions &options, llvm::raw_ostream &out,
                                   DiagnosticEngine &diags) {
  std::optional<TraceFolder> folder = TraceFolder::load(path, diags);
  if (!folder)
    return false;
  Collector collector(*folder, diags);
  if (!collector.collect())
    return false;
  if (options.json)
    printJson(collector, options, out);
  else
    printTables(collector, options, out);
  return true;
}
