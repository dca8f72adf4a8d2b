//===- NodeTable.cpp - the nodes of all ranks, compact --------------------===//
#include "NodeTable.h"
#include "Attributes.h"
#include "stage/Trace/Diagnostics.h"
#include "stage/Trace/TraceReader.h"
#include "llvm/ADT/DenseMap.h"
#include <algorithm>
#include <limits>
#include <numeric>

using namespace stage;
using ChakraProtoMsg::AttributeProto;
using llvm::StringRef;

namespace {
constexpr int64_t maxTag = 500'000'000;
} // namespace

namespace stage {
/// Reads the file of one rank.
class NodeLoader {
public:
  NodeLoader(NodeTable &table, uint32_t rank, uint64_t numRanks, bool ignoreCtrl,
             const llvm::DenseMap<uint64_t, uint32_t> &groupIndices, FaultReporter &faults)
      : table(table), ranks(table.ranks[rank]), rank(rank), numRanks(numRanks), ignoreCtrl(ignoreCtrl),
        groupIndices(groupIndices), faults(faults) {}

  void load(StringRef path) {
    std::unique_ptr<TraceReader> reader = TraceReader::open(path, faults.getDiagnostics());
    ChakraProtoMsg::GlobalMetadata metadata;
    if (!reader || reader->readMetadata(metadata) != TraceReader::Status::Read)
      return;
    ranks.depBegin.push_back(0);
    ChakraProtoMsg::Node node;
    while (reader->readNode(node) == TraceReader::Status::Read)
      add(node);
    sortById();
  }

private:
  void add(const ChakraProtoMsg::Node &node);
  void addDeps(const ChakraProtoMsg::Node &node);
  void checkKinds(const ChakraProtoMsg::Node &node);
  bool addTensors(const ChakraProtoMsg::Node &node, StringRef list);
  void addCompute(const ChakraProtoMsg::Node &node);
  void addCollective(const ChakraProtoMsg::Node &node);
  void addSendOrRecv(const ChakraProtoMsg::Node &node);
  void sortById();

  /// Looked up once per rank and group: groups are as large as there are ranks.
  bool isMember(uint32_t group) {
    auto [known, isNew] = memberships.try_emplace(group, group == 0);
    if (isNew && group != 0)
      known->second = llvm::is_contained(table.groups[group].members, rank);
    return known->second;
  }

  /// The number of an attribute that must be there, at least `least` and below `end`.
  int64_t require(const ChakraProtoMsg::Node &node, StringRef name, int64_t least,
                  int64_t end = std::numeric_limits<int64_t>::max());

  std::string describe() const { return table.describe(rank, NodeIndex(ranks.nodes.size() - 1)); }
  /// Reports what is wrong with the node being added.
  template <typename... Arguments> void fault(diag::ID id, const Arguments &...arguments) {
    record->isUsable = false;
    faults.report(id, describe(), arguments...);
  }

  NodeTable &table;
  RankTable &ranks;
  uint32_t rank;
  uint64_t numRanks;
  bool ignoreCtrl;
  const llvm::DenseMap<uint64_t, uint32_t> &groupIndices;
  FaultReporter &faults;
  NodeRecord *record = nullptr;
  llvm::DenseMap<uint32_t, bool> memberships;
};
} // namespace stage

void NodeLoader::add(const ChakraProtoMsg::Node &node) {
  auto [name, isNew] = table.nameIndices.try_emplace(node.name(), uint32_t(table.names.size()));
  if (isNew)
    table.names.push_back(name->first());
  record = &ranks.nodes.emplace_back();
  record->id = node.id();
  record->name = name->second;
  addDeps(node);
  if (getNodeTypeName(node.type()).empty()) {
    fault(diag::NodeBadType, int(node.type()));
    return;
  }
  record->type = ChakraNodeType(node.type());
  checkKinds(node);
  record->hasInputs = addTensors(node, "inputs");
  record->hasOutputs = addTensors(node, "outputs");
  const AttributeProto *cpu = findAttribute(node, "is_cpu_op");
  record->isCpuOp = cpu && cpu->bool_val();
  switch (record->type) {
  case ChakraNodeType::Comp:
    return addCompute(node);
  case ChakraNodeType::CommColl:
    return addCollective(node);
  case ChakraNodeType::CommSend:
  case ChakraNodeType::CommRecv:
    return addSendOrRecv(node);
  case ChakraNodeType::MemLoad:
  case ChakraNodeType::MemStore:
    require(node, "tensor_size", 1);
    return;
  case ChakraNodeType::Invalid:
  case ChakraNodeType::Metadata:
    return;
  }
}

void NodeLoader::addDeps(const ChakraProtoMsg::Node &node) {
  auto &ids = ranks.depIds;
  size_t begin = ids.size();
  ids.insert(ids.end(), node.data_deps().begin(), node.data_deps().end());
  std::sort(ids.begin() + begin, ids.end());
  auto twice = std::adjacent_find(ids.begin() + begin, ids.end());
  if (twice != ids.end())
    fault(diag::NodeDuplicateDep, *twice);
  if (!ignoreCtrl) {
    ids.insert(ids.end(), node.ctrl_deps().begin(), node.ctrl_deps().end());
    std::sort(ids.begin() + begin, ids.end());
  }
  ids.erase(std::unique(ids.begin() + begin, ids.end()), ids.end());
  ranks.depBegin.push_back(ids.size());
}

void NodeLoader::checkKinds(const ChakraProtoMsg::Node &node) {
  for (const AttributeProto &attribute : node.attr()) {
    std::optional<ValueCase> expected = getExpectedKind(attribute.name());
    if (!expected)
      continue;
    if (attribute.value_case() != *expected)
      fault(diag::AttributeBadKind, attribute.name(), getKindName(attribute.value_case()), getKindName(*expected));
    if (findAttribute(node, attribute.name()) != &attribute)
      fault(diag::AttributeTwice, attribute.name());
  }
}

/// Whether the node has the list.
bool NodeLoader::addTensors(const ChakraProtoMsg::Node &node, StringRef list) {
  const AttributeProto *attribute = findAttribute(node, list);
  if (!attribute)
    return false;
  if (attribute->value_case() != AttributeProto::kStringList)
    return true; // its kind was reported
  const auto &values = attribute->string_list().values();
  if (values.size() % 2)
    fault(diag::TensorListMalformed, list, "found " + std::to_string(values.size()) + " strings");
  for (int i = 0; i + 1 < values.size(); i += 2) {
    int64_t bytes;
    if (StringRef(values[i + 1]).getAsInteger(10, bytes) || bytes < 1) {
      fault(diag::TensorListMalformed, list, "found '" + values[i + 1] + "' for bytes");
      continue;
    }
    auto [it, isNew] = table.tensorIndices.try_emplace(values[i], uint32_t(table.tensorNames.size()));
    if (isNew)
      table.tensorNames.push_back(it->first());
    ranks.tensors.push_back({NodeIndex(ranks.nodes.size() - 1), it->second, bytes, list == "outputs"});
  }
  return true;
}

int64_t NodeLoader::require(const ChakraProtoMsg::Node &node, StringRef name, int64_t least, int64_t end) {
  const AttributeProto *attribute = findAttribute(node, name);
  if (!attribute) {
    fault(diag::AttributeMissing, getNodeTypeName(node.type()), name);
    return 0;
  }
  std::optional<int64_t> value = getInteger(*attribute);
  if (!value) {
    record->isUsable = false; // its kind was reported
    return 0;
  }
  // A uint64 beyond int64 is negative here; nothing has so many bytes.
  if (*value < least || *value >= end) {
    std::string range = "at least " + std::to_string(least);
    if (end != std::numeric_limits<int64_t>::max())
      range += " and below " + std::to_string(end);
    fault(diag::AttributeOutOfRange, name, *value, range);
  }
  return *value;
}

void NodeLoader::addCompute(const ChakraProtoMsg::Node &node) {
  // A node that was measured is replayed by its duration and needs no numbers.
  if (node.duration_micros() && !findAttribute(node, "num_ops") && !findAttribute(node, "tensor_size"))
    return;
  require(node, "num_ops", 1);
  require(node, "tensor_size", 1);
}

void NodeLoader::addCollective(const ChakraProtoMsg::Node &node) {
  if (record->isCpuOp)
    fault(diag::CommunicationOnCpu);
  record->size = require(node, "comm_size", 1);
  int64_t type = require(node, "comm_type", 0, int64_t(ChakraCommType::Barrier) + 1);
  record->commType = uint8_t(type);
  if (record->isUsable) {
    ChakraCommType commType = ChakraCommType(type);
    if (commType != ChakraCommType::AllReduce && commType != ChakraCommType::AllGather &&
        commType != ChakraCommType::ReduceScatter && commType != ChakraCommType::AllToAll)
      faults.report(diag::CollectiveNotSimulated, describe(), getCommTypeName(type));
  }
  std::optional<uint64_t> number = getGroup(node);
  if (!number) {
    fault(diag::GroupNotANumber, findAttribute(node, "pg_name")->string_val());
    return;
  }
  auto group = groupIndices.find(*number);
  if (group == groupIndices.end()) {
    fault(diag::GroupUnknown, *number);
    return;
  }
  record->channel = group->second;
  const std::vector<uint32_t> &members = table.groups[group->second].members;
  if (!isMember(group->second))
    fault(diag::RankNotInGroup, table.describeGroup(group->second));
  else if (members.size() < 2)
    fault(diag::GroupOfOne, table.describeGroup(group->second));
}

void NodeLoader::addSendOrRecv(const ChakraProtoMsg::Node &node) {
  if (record->isCpuOp)
    fault(diag::CommunicationOnCpu);
  record->size = require(node, "comm_size", 1);
  record->tag = uint32_t(require(node, "comm_tag", 0, maxTag));
  int64_t peer = require(node, record->type == ChakraNodeType::CommSend ? "comm_dst" : "comm_src", 0, numRanks);
  record->peer = uint32_t(peer);
  if (record->isUsable && peer == rank)
    fault(diag::SendToSelf, record->type == ChakraNodeType::CommSend ? "sends to" : "receives from");
}

void NodeLoader::sortById() {
  auto byId = [&](const NodeRecord &a, const NodeRecord &b) { return a.id < b.id; };
  if (std::is_sorted(ranks.nodes.begin(), ranks.nodes.end(), byId))
    return;
  std::vector<NodeIndex> order(ranks.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](NodeIndex a, NodeIndex b) { return byId(ranks.nodes[a], ranks.nodes[b]); });
  RankTable sorted;
  sorted.nodes.reserve(order.size());
  sorted.depIds.reserve(ranks.depIds.size());
  sorted.depBegin.push_back(0);
  for (NodeIndex node : order) {
    sorted.nodes.push_back(ranks.nodes[node]);
    sorted.depIds.insert(sorted.depIds.end(), ranks.depIds.begin() + ranks.depBegin[node],
                         ranks.depIds.begin() + ranks.depBegin[node + 1]);
    sorted.depBegin.push_back(sorted.depIds.size());
  }
  std::vector<NodeIndex> places(order.size());
  for (NodeIndex place = 0; place < order.size(); ++place)
    places[order[place]] = place;
  sorted.tensors = std::move(ranks.tensors);
  for (TensorRecord &use : sorted.tensors)
    use.node = places[use.node];
  std::stable_sort(sorted.tensors.begin(), sorted.tensors.end(),
                   [](const TensorRecord &a, const TensorRecord &b) { return a.node < b.node; });
  ranks = std::move(sorted);
}

void NodeTable::load(const TraceFolder &folder, bool ignoreCtrl, FaultReporter &faults) {
  std::vector<uint32_t> all(folder.files.size());
  std::iota(all.begin(), all.end(), 0);
  groups.push_back({0, std::move(all)});
  llvm::DenseMap<uint64_t, uint32_t> indices;
  indices[0] = 0;
  for (const auto &[number, members] : folder.groups) {
    indices[number] = uint32_t(groups.size());
    groups.push_back({number, members});
  }
  ranks.resize(folder.files.size());
  for (const auto &[rank, path] : folder.files)
    NodeLoader(*this, rank, folder.files.size(), ignoreCtrl, indices, faults).load(path);
}

uint64_t NodeTable::getNumNodes() const {
  uint64_t count = 0;
  for (const RankTable &rank : ranks)
    count += rank.nodes.size();
  return count;
}

std::string NodeTable::describe(uint32_t rank, NodeIndex node) const {
  const NodeRecord &record = ranks[rank].nodes[node];
  std::string text = "rank " + std::to_string(rank) + ", node " + std::to_string(record.id);
  if (StringRef name = names[record.name]; !name.empty())
    text += (" '" + name + "'").str();
  return text;
}

std::string NodeTable::describeCollective(uint32_t rank, NodeIndex node) const {
  const NodeRecord &record = ranks[rank].nodes[node];
  return (getCommTypeName(record.commType) + " of " + llvm::Twine(record.size) + " bytes").str();
}

std::string NodeTable::describeGroup(uint32_t group) const {
  const GroupRecord &record = groups[group];
  if (record.number == 0)
    return "the group of all ranks (" + std::to_string(record.members.size()) + ")";
  std::vector<uint32_t> sorted = record.members;
  llvm::sort(sorted);
  constexpr size_t maxShown = 200;
  std::string text = formatRanks(sorted);
  if (text.size() > maxShown)
    text = text.substr(0, maxShown) + "...";
  return "group " + std::to_string(record.number) + " (" + (sorted.size() > 1 ? "ranks " : "rank ") + text + ")";
}
