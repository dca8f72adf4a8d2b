//===- Statistics.cpp - what is in the traces -----------------------------===//
#include "stage/Trace/Statistics.h"
#include "Attributes.h"
#include "stage/CodeGen/NodeWriter.h"
#include "stage/Support/Escape.h"
#include "stage/Support/Json.h"
#include "stage/Support/Ranges.h"
#include "stage/Support/Table.h"
#include "stage/Trace/TraceFolder.h"
#include "stage/Trace/TraceReader.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <array>
#include <compare>
#include <set>

using namespace stage;
using namespace stage::trace;
using ChakraProtoMsg::AttributeProto;
using llvm::StringRef;

namespace {
/// A step of a large model has more than 2^64 FLOPs.
using Count = unsigned __int128;

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

/// Where no rank has copies their columns are left out.
std::vector<std::string> formatRow(std::string title, const Numbers &numbers, bool showsCopies) {
  uint64_t shown = numbers.getCopies();
  for (ChakraNodeType type :
       {ChakraNodeType::Comp, ChakraNodeType::CommColl, ChakraNodeType::CommSend, ChakraNodeType::CommRecv})
    shown += numbers.getNodes(type);
  std::vector<std::string> row = {std::move(title),
                                  formatCount(numbers.getNumNodes()),
                                  formatCount(numbers.getNodes(ChakraNodeType::Comp)),
                                  formatCount(numbers.getNodes(ChakraNodeType::CommColl)),
                                  formatCount(numbers.getNodes(ChakraNodeType::CommSend)),
                                  formatCount(numbers.getNodes(ChakraNodeType::CommRecv)),
                                  formatCount(numbers.getNumNodes() - shown),
                                  formatCount(numbers.flops),
                                  formatCount(numbers.tensorBytes),
                                  formatCount(numbers.getCollectives().bytes),
                                  formatCount(numbers.sentBytes)};
  if (showsCopies) {
    row.push_back(formatCount(numbers.getCopies()));
    row.push_back(formatCount(numbers.loadedBytes));
    row.push_back(formatCount(numbers.storedBytes));
  }
  return row;
}

void printTables(const Collector &collector, const StatisticsOptions &options, llvm::raw_ostream &out) {
  bool hasCopies = collector.total.getCopies();
  std::vector<std::string> titles = {"ranks", "nodes", "compute",      "collective",       "send",      "recv",
                                     "other", "FLOPs", "tensor bytes", "collective bytes", "sent bytes"};
  if (hasCopies)
    titles.insert(titles.end(), {"copies", "loaded bytes", "stored bytes"});
  Table ranks = Table::ofNumbers(titles);
  for (const auto &[members, numbers] : collector.getRows())
    ranks.addRow(formatRow(formatRanks(members), *numbers, hasCopies));
  ranks.addRow(formatRow("total", collector.total, hasCopies));
  ranks.print(out);

  if (!collector.total.collectives.empty()) {
    std::map<CollectiveKey, std::set<uint64_t>> groupsOf;
    for (const auto &[key, calls] : collector.groupCalls)
      groupsOf[{key.second, collector.getGroupSize(key.first)}].insert(key.first);
    Table collectives = Table::ofNumbers({"collective", "group size", "groups", "calls", "bytes"});
    for (const auto &[key, calls] : collector.total.collectives)
      collectives.addRow({nameCollective(key.commType), formatCount(key.groupSize), formatCount(groupsOf[key].size()),
                          formatCount(calls.count), formatCount(calls.bytes)});
    out << '\n';
    collectives.print(out);
  }
  if (options.perOp && !collector.ops.empty()) {
    Table ops = Table::ofNumbers(
        {"op_type", "nodes", "FLOPs", "of these other", "recomputed", "tensor bytes", "message bytes"});
    for (const auto &[name, op] : collector.ops)
      ops.addRow({name.empty() ? "none" : escapeControls(name), formatCount(op.nodes), formatCount(op.flops),
                  formatCount(op.otherFlops), formatCount(op.recomputedFlops), formatCount(op.tensorBytes),
                  formatCount(op.messageBytes)});
    out << '\n';
    ops.print(out);
  }
  if (options.perGroup && !collector.groupCalls.empty()) {
    Table groups = Table::ofNumbers({"group", "size", "collective", "calls", "bytes"});
    for (const auto &[key, calls] : collector.groupCalls)
      groups.addRow({key.first ? std::to_string(key.first) : "all", formatCount(collector.getGroupSize(key.first)),
                     nameCollective(key.second), formatCount(calls.count), formatCount(calls.bytes)});
    out << '\n';
    groups.print(out);
  }
}

void printJson(const Collector &collector, const StatisticsOptions &options, llvm::raw_ostream &out) {
  llvm::json::OStream json(out, 2);
  auto number = [&](StringRef name, Count value) { writeNumber(json, name, value); };
  auto numbers = [&](const Numbers &numbers) {
    json.attributeObject("nodes", [&] {
      for (size_t type = 0; type < numTypes; ++type)
        if (numbers.nodes[type])
          json.attribute(getNodeTypeName(int(type)), int64_t(numbers.nodes[type]));
    });
    number("flops", numbers.flops);
    number("tensor_bytes", numbers.tensorBytes);
    number("sent_bytes", numbers.sentBytes);
    number("received_bytes", numbers.receivedBytes);
    number("loaded_bytes", numbers.loadedBytes);
    number("stored_bytes", numbers.storedBytes);
    json.attributeArray("collectives", [&] {
      for (const auto &[key, calls] : numbers.collectives)
        json.object([&] {
          json.attribute("type", nameCollective(key.commType));
          json.attribute("group_size", int64_t(key.groupSize));
          json.attribute("calls", int64_t(calls.count));
          number("bytes", calls.bytes);
        });
    });
  };
  json.object([&] {
    json.attributeArray("ranks", [&] {
      for (const auto &[members, row] : collector.getRows())
        json.object([&] {
          json.attribute("ranks", formatRanks(members));
          numbers(*row);
        });
    });
    json.attributeObject("total", [&] { numbers(collector.total); });
    if (options.perOp)
      json.attributeArray("ops", [&] {
        for (const auto &[name, op] : collector.ops)
          json.object([&] {
            json.attribute("op_type", llvm::json::fixUTF8(name));
            json.attribute("nodes", int64_t(op.nodes));
            number("flops", op.flops);
            number("other_flops", op.otherFlops);
            number("recomputed_flops", op.recomputedFlops);
            number("tensor_bytes", op.tensorBytes);
            number("message_bytes", op.messageBytes);
          });
      });
    if (options.perGroup)
      json.attributeArray("groups", [&] {
        for (const auto &[key, calls] : collector.groupCalls)
          json.object([&] {
            json.attribute("group", int64_t(key.first));
            json.attribute("size", int64_t(collector.getGroupSize(key.first)));
            json.attribute("type", nameCollective(key.second));
            json.attribute("calls", int64_t(calls.count));
            number("bytes", calls.bytes);
          });
      });
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
