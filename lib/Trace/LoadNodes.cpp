//===- LoadNodes.cpp - nodes from files, each checked by itself -----------===//
#include "Attributes.h"
#include "NodeTable.h"
#include "stage/Machine/Machine.h"
#include "stage/Support/Limits.h"
#include "stage/Trace/Diagnostics.h"
#include "stage/Trace/TraceReader.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <limits>

using namespace stage;
using namespace stage::trace;
using ChakraProtoMsg::AttributeProto;
using llvm::StringRef;

/// What simulators do not model (docs/Traces.md) is taken for what moves as much.
static CollectiveKind getKindOfType(ChakraCommType type) {
  switch (type) {
  case ChakraCommType::AllGather:
  case ChakraCommType::Gather:
    return CollectiveKind::AllGather;
  case ChakraCommType::ReduceScatter:
  case ChakraCommType::ReduceScatterBlock:
    return CollectiveKind::ReduceScatter;
  case ChakraCommType::AllToAll:
  case ChakraCommType::Scatter:
    return CollectiveKind::AllToAll;
  case ChakraCommType::AllReduce:
    return CollectiveKind::AllReduce;
  case ChakraCommType::Reduce:
  case ChakraCommType::Broadcast:
    return CollectiveKind::Broadcast;
  case ChakraCommType::Barrier:
    return CollectiveKind::Barrier;
  }
  llvm_unreachable("no other types");
}

namespace {
constexpr int64_t maxStreams = 256;
} // namespace

namespace stage::trace {
/// Reads the file of one rank.
class NodeLoader {
public:
  NodeLoader(NodeTable &table, uint32_t slot, const VerifyOptions &options, FaultReporter &faults,
             const Machine *machine)
      : table(table), ranks(table.ranks[slot]), slot(slot), options(options), faults(faults), machine(machine) {}

  void load() {
    std::unique_ptr<TraceReader> reader = TraceReader::open(ranks.path, faults.getDiagnostics());
    ChakraProtoMsg::GlobalMetadata metadata;
    ranks.depBegin.push_back(0);
    if (!reader || reader->readMetadata(metadata) != TraceReader::Status::Read)
      return;
    ChakraProtoMsg::Node node;
    while (true) {
      uint64_t offset = reader->getOffset();
      if (reader->readNode(node) != TraceReader::Status::Read)
        break;
      if (ranks.nodes.size() % table.checkpointDistance == 0)
        ranks.checkpoints.push_back(offset);
      uint64_t more = node.data_deps_size() + node.ctrl_deps_size();
      if (ranks.nodes.size() == options.maxEntries || numDeps + more > options.maxEntries) {
        faults.report(diag::TraceTooLarge, ranks.path, options.maxEntries);
        break;
      }
      add(node);
      if (machine)
        ranks.durations.push_back(flags().isUsable ? getDuration(node) : 0);
    }
    if (!isTimed) {
      ranks.times.clear();
    } else {
      ranks.times.resize(ranks.nodes.size());
      ranks.terms = readSurchargeTerms(metadata, ranks.rank, faults);
    }
    ranks.sortById();
  }

private:
  void add(const ChakraProtoMsg::Node &node);
  void addDeps(const ChakraProtoMsg::Node &node);
  void checkKinds(const ChakraProtoMsg::Node &node);
  bool addTensors(const ChakraProtoMsg::Node &node, StringRef list);
  void addStream(const ChakraProtoMsg::Node &node);
  void addTime(const ChakraProtoMsg::Node &node);
  void addLevel(const ChakraProtoMsg::Node &node);
  void addCompute(const ChakraProtoMsg::Node &node);
  void addCollective(const ChakraProtoMsg::Node &node);
  void addSendOrRecv(const ChakraProtoMsg::Node &node);
  int64_t getDuration(const ChakraProtoMsg::Node &node);
  const GroupPlace &getPlace(uint32_t channel);

  /// Looked up once per rank and group: groups are as large as there are ranks.
  bool isMember(uint32_t group) {
    auto [known, isNew] = memberships.try_emplace(group, group == 0);
    if (isNew && group != 0)
      known->second = llvm::is_contained(table.groups[group].members, slot);
    return known->second;
  }

  /// The number of an attribute that must be there, at least `least` and below `end`.
  int64_t require(const ChakraProtoMsg::Node &node, StringRef name, int64_t least,
                  int64_t end = std::numeric_limits<int64_t>::max());

  NodeFlags &flags() { return ranks.nodes.back(); }
  Communication &addCommunication() {
    return ranks.communications.emplace_back(Communication{NodeIndex(ranks.nodes.size() - 1)});
  }
  /// Reports what is wrong with the node being added.
  template <diag::Kind... Missing, typename... Arguments>
  void fault(diag::Message<Missing...> message, const Arguments &...arguments) {
    flags().isUsable = false;
    faults.report(message, describeNode(ranks.rank, current->id(), current->name()), arguments...);
  }

  NodeTable &table;
  RankTable &ranks;
  uint32_t slot;
  const VerifyOptions &options;
  FaultReporter &faults;
  const Machine *machine;
  const ChakraProtoMsg::Node *current = nullptr;
  std::vector<uint64_t> currentDeps;
  uint64_t numDeps = 0;
  bool isTimed = false; ///< A node has a duration.
  llvm::DenseMap<uint32_t, bool> memberships;
  std::map<uint32_t, GroupPlace> places;
};
} // namespace stage::trace

void NodeLoader::add(const ChakraProtoMsg::Node &node) {
  current = &node;
  ranks.nodes.emplace_back();
  ranks.addId(node.id());
  addDeps(node);
  if (node.type() == ChakraProtoMsg::INVALID_NODE || getNodeTypeName(node.type()).empty()) {
    StringRef name = getNodeTypeName(node.type());
    fault(diag::NodeBadType, std::to_string(node.type()) + (name.empty() ? "" : " (" + name.str() + ")"));
    return;
  }
  flags().type = ChakraNodeType(node.type());
  checkKinds(node);
  flags().hasInputs = addTensors(node, "inputs");
  flags().hasOutputs = addTensors(node, "outputs");
  addStream(node);
  addTime(node);
  const AttributeProto *cpu = findAttribute(node, "is_cpu_op");
  flags().isCpuOp = cpu && cpu->bool_val();
  switch (flags().type) {
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
  case ChakraNodeType::Storage:
  case ChakraNodeType::Batch:
  case ChakraNodeType::Checkpoint:
    return;
  }
}

void NodeLoader::addDeps(const ChakraProtoMsg::Node &node) {
  std::vector<uint64_t> &ids = currentDeps;
  ids.assign(node.data_deps().begin(), node.data_deps().end());
  llvm::sort(ids);
  auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice != ids.end())
    fault(diag::NodeDuplicateDep, *twice);
  if (!options.ignoreCtrl) {
    ids.insert(ids.end(), node.ctrl_deps().begin(), node.ctrl_deps().end());
    llvm::sort(ids);
  }
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (uint64_t id : ids)
    ranks.addDep(id);
  numDeps += ids.size();
  ranks.depBegin.push_back(uint32_t(numDeps));
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
    // Some producers write the number of a float, `64.0`.
    auto [whole, fraction] = StringRef(values[i + 1]).split('.');
    if (!llvm::all_of(fraction, llvm::isDigit) || whole.getAsInteger(10, bytes) || bytes < 1) {
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
    flags().isUsable = false; // its kind was reported
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

/// Nodes before the first that names a stream are of stream 0, as those without one are.
void NodeLoader::addStream(const ChakraProtoMsg::Node &node) {
  bool names = findAttribute(node, "issue_stream");
  if (!names && ranks.streams.empty())
    return;
  ranks.streams.resize(ranks.nodes.size());
  if (names)
    ranks.streams.back() = uint8_t(require(node, "issue_stream", 0, maxStreams));
}

/// Units are kept before it is known whether any node has a duration.
void NodeLoader::addTime(const ChakraProtoMsg::Node &node) {
  bool hasDuration = findAttribute(node, "duration_picos"), hasUnit = findAttribute(node, "unit");
  isTimed |= hasDuration;
  if (!hasDuration && !hasUnit)
    return;
  ranks.times.resize(ranks.nodes.size());
  TimeRecord &record = ranks.times.back();
  if (hasDuration)
    record.duration = require(node, "duration_picos", 0, maxTicks);
  if (hasUnit)
    record.unit = int32_t(require(node, "unit", 0));
}

/// Of a communication, the last one that was added.
void NodeLoader::addLevel(const ChakraProtoMsg::Node &node) {
  if (findAttribute(node, "level"))
    ranks.communications.back().level = uint8_t(require(node, "level", 0, noLevel));
}

void NodeLoader::addCompute(const ChakraProtoMsg::Node &node) {
  // A node that was measured is replayed by its duration and needs no numbers.
  bool isCounted = findAttribute(node, "num_ops");
  if (node.duration_micros() && !isCounted)
    return;
  if (!isCounted && findAttribute(node, "duration_micros")) {
    fault(diag::DurationIsAttribute);
    return;
  }
  require(node, "num_ops", 1);
  require(node, "tensor_size", 1);
}

void NodeLoader::addCollective(const ChakraProtoMsg::Node &node) {
  Communication &record = addCommunication();
  if (flags().isCpuOp)
    fault(diag::CommunicationOnCpu);
  addLevel(node);
  record.size = require(node, "comm_size", 1);
  int64_t type = require(node, "comm_type", 0, int64_t(ChakraCommType::Barrier) + 1);
  record.commType = uint8_t(type);
  if (findAttribute(node, "comm_tag"))
    record.tag = uint32_t(require(node, "comm_tag", 0, maxTag));
  if (flags().isUsable) {
    ChakraCommType commType = ChakraCommType(type);
    if (commType != ChakraCommType::AllReduce && commType != ChakraCommType::AllGather &&
        commType != ChakraCommType::ReduceScatter && commType != ChakraCommType::AllToAll)
      faults.report(diag::CollectiveNotSimulated, describeNode(ranks.rank, node.id(), node.name()),
                    getCommTypeName(type));
  }
  std::optional<uint64_t> number = getGroup(node);
  if (!number) {
    fault(diag::GroupNotANumber, findAttribute(node, "pg_name")->string_val());
    return;
  }
  std::optional<uint32_t> group = table.findGroup(*number);
  if (!group) {
    fault(diag::GroupUnknown, *number);
    return;
  }
  record.channel = *group;
  const GroupRecord &members = table.groups[*group];
  if (!isMember(*group))
    fault(diag::RankNotInGroup, table.describeGroup(*group));
  else if (members.members.size() < 2 && !members.isPartial)
    fault(diag::GroupOfOne, table.describeGroup(*group));
}

void NodeLoader::addSendOrRecv(const ChakraProtoMsg::Node &node) {
  Communication &record = addCommunication();
  if (flags().isCpuOp)
    fault(diag::CommunicationOnCpu);
  bool isSend = flags().type == ChakraNodeType::CommSend;
  addLevel(node);
  record.size = require(node, "comm_size", 1);
  record.tag = uint32_t(require(node, "comm_tag", 0, maxTag));
  // How many ranks there are is not known if some are absent.
  int64_t end = table.isWhole ? int64_t(table.ranks.size()) : int64_t(1) << 31;
  int64_t peer = require(node, isSend ? "comm_dst" : "comm_src", 0, end);
  record.peer = uint32_t(peer);
  if (flags().isUsable && peer == ranks.rank)
    fault(diag::SendToSelf, isSend ? "sends to" : "receives from");
}

/// Of a node whose attributes are good.
int64_t NodeLoader::getDuration(const ChakraProtoMsg::Node &node) {
  auto read = [&](StringRef name) {
    const AttributeProto *attribute = findAttribute(node, name);
    return attribute ? getInteger(*attribute).value_or(0) : 0;
  };
  StringRef missing;
  std::optional<int64_t> duration;
  switch (flags().type) {
  case ChakraNodeType::Comp:
    if (!findAttribute(node, "num_ops"))
      return machine->ofMeasured(node.duration_micros());
    duration = machine->ofCompute(read("num_ops"), read("tensor_size"), flags().isCpuOp, missing);
    break;
  case ChakraNodeType::MemLoad:
  case ChakraNodeType::MemStore:
    duration = machine->ofCopy(read("tensor_size"), missing);
    break;
  case ChakraNodeType::CommSend:
  case ChakraNodeType::CommRecv:
    duration = machine->ofMessage(ranks.communications.back().size,
                                  machine->findPlace({ranks.rank, int64_t(ranks.communications.back().peer)}), missing);
    break;
  case ChakraNodeType::CommColl: {
    const Communication &record = ranks.communications.back();
    CollectiveKind kind = getKindOfType(ChakraCommType(record.commType));
    duration = machine->ofCollective(kind, record.size, getPlace(record.channel), missing);
    break;
  }
  case ChakraNodeType::Invalid:
  case ChakraNodeType::Metadata:
  case ChakraNodeType::Storage:
  case ChakraNodeType::Batch:
  case ChakraNodeType::Checkpoint:
    return 0;
  }
  if (!duration)
    fault(diag::NodeNeedsRate, machine->describeMissing(missing));
  return duration.value_or(0);
}

/// Looked up once per rank and group.
const GroupPlace &NodeLoader::getPlace(uint32_t channel) {
  auto known = places.find(channel);
  if (known != places.end())
    return known->second;
  const GroupRecord &group = table.groups[channel];
  std::vector<int64_t> members;
  if (group.number != 0)
    members.assign(group.ranks.begin(), group.ranks.end());
  else
    for (uint32_t member : group.members)
      members.push_back(table.ranks[member].rank);
  return places.emplace(channel, machine->findPlace(members)).first->second;
}

void NodeTable::load(const TraceFolder &folder, const VerifyOptions &options, FaultReporter &faults,
                     const Machine *machine) {
  isWhole = folder.absent.empty();
  GroupRecord &all = groups.emplace_back();
  all.number = 0;
  all.isPartial = !isWhole;
  for (const auto &[rank, path] : folder.files) {
    all.members.push_back(uint32_t(ranks.size()));
    RankTable &table = ranks.emplace_back();
    table.rank = rank;
    table.path = path;
  }
  for (const auto &[number, members] : folder.groups) {
    GroupRecord &group = groups.emplace_back();
    group.number = number;
    group.ranks = members;
    for (uint32_t member : members) {
      if (uint32_t slot = findSlot(member); slot != noSlot)
        group.members.push_back(slot);
      else
        group.isPartial = true;
    }
  }
  for (uint32_t slot = 0; slot < ranks.size(); ++slot)
    NodeLoader(*this, slot, options, faults, machine).load();
}
