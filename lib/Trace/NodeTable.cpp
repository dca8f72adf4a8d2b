//===- NodeTable.cpp - the nodes of all ranks, compact --------------------===//
#include "NodeTable.h"
#include "Attributes.h"
#include "stage/Support/Ranges.h"
#include "stage/Trace/TraceReader.h"
#include <algorithm>
#include <numeric>

using namespace stage;
using namespace stage::trace;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// One rank
//===----------------------------------------------------------------------===//

NodeIndex RankTable::find(uint64_t id) const {
  if (ids.empty())
    return id - firstId < nodes.size() ? NodeIndex(id - firstId) : noNode;
  auto found = std::lower_bound(ids.begin(), ids.end(), id);
  return found == ids.end() || *found != id ? noNode : NodeIndex(found - ids.begin());
}

const Communication &RankTable::getCommunication(NodeIndex node) const {
  auto found = std::lower_bound(communications.begin(), communications.end(), node,
                                [](const Communication &entry, NodeIndex node) { return entry.node < node; });
  assert(found != communications.end() && found->node == node && "no communication");
  return *found;
}

/// Of the node that was added last.
void RankTable::addId(uint64_t id) {
  NodeIndex node = NodeIndex(nodes.size() - 1);
  if (node == 0)
    firstId = id;
  if (ids.empty() && id == firstId + node)
    return;
  if (ids.empty()) {
    ids.resize(node);
    std::iota(ids.begin(), ids.end(), firstId);
  }
  ids.push_back(id);
}

void RankTable::addDep(uint64_t id) {
  if (wideDeps.empty() && id > UINT32_MAX) {
    wideDeps.assign(deps.begin(), deps.end());
    deps = {};
  }
  if (wideDeps.empty())
    deps.push_back(uint32_t(id));
  else
    wideDeps.push_back(id);
}

void RankTable::sortById() {
  if (ids.empty() || std::is_sorted(ids.begin(), ids.end()))
    return;
  std::vector<NodeIndex> order(nodes.size()), places(nodes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](NodeIndex a, NodeIndex b) { return ids[a] < ids[b]; });
  RankTable sorted;
  sorted.depBegin.push_back(0);
  for (NodeIndex place = 0; place < order.size(); ++place) {
    NodeIndex node = order[place];
    places[node] = place;
    sorted.nodes.push_back(nodes[node]);
    sorted.ids.push_back(ids[node]);
    if (!streams.empty())
      sorted.streams.push_back(streams[node]);
    if (!durations.empty())
      sorted.durations.push_back(durations[node]);
    if (!times.empty())
      sorted.times.push_back(times[node]);
    for (uint32_t i = depBegin[node]; i < depBegin[node + 1]; ++i)
      sorted.addDep(wideDeps.empty() ? deps[i] : wideDeps[i]);
    sorted.depBegin.push_back(uint32_t(sorted.deps.size() + sorted.wideDeps.size()));
  }
  auto move = [&](auto &entries) {
    for (auto &entry : entries)
      entry.node = places[entry.node];
    std::stable_sort(entries.begin(), entries.end(), [](const auto &a, const auto &b) { return a.node < b.node; });
  };
  move(communications);
  move(tensors);
  nodes = std::move(sorted.nodes);
  streams = std::move(sorted.streams);
  durations = std::move(sorted.durations);
  times = std::move(sorted.times);
  ids = std::move(sorted.ids);
  depBegin = std::move(sorted.depBegin);
  deps = std::move(sorted.deps);
  wideDeps = std::move(sorted.wideDeps);
  filePlaces = std::move(order);
}

void RankTable::resolveDeps(llvm::function_ref<void(NodeIndex, uint64_t)> visitBad) {
  // In place: there are never more nodes than ids before.
  if (!wideDeps.empty())
    deps.resize(wideDeps.size());
  uint32_t begin = 0, used = 0;
  for (NodeIndex node = 0; node < nodes.size(); ++node) {
    uint32_t end = depBegin[node + 1];
    for (; begin < end; ++begin) {
      uint64_t id = wideDeps.empty() ? deps[begin] : wideDeps[begin];
      NodeIndex dep = id == getId(node) ? noNode : find(id);
      if (dep == noNode)
        visitBad(node, id);
      else
        deps[used++] = dep;
    }
    depBegin[node + 1] = used;
  }
  deps.resize(used);
  deps.shrink_to_fit();
  wideDeps = {};
}

void RankTable::findUsers() {
  userBegin.assign(nodes.size() + 1, 0);
  users.resize(deps.size());
  for (NodeIndex dep : deps)
    ++userBegin[dep];
  // Each begins where it ends, and is moved back by each of its users.
  std::partial_sum(userBegin.begin(), userBegin.end(), userBegin.begin());
  for (NodeIndex node = NodeIndex(nodes.size()); node-- > 0;)
    for (NodeIndex dep : getDeps(node))
      users[--userBegin[dep]] = node;
}

//===----------------------------------------------------------------------===//
// All ranks
//===----------------------------------------------------------------------===//

uint32_t NodeTable::findSlot(uint32_t rank) const {
  auto found = std::lower_bound(ranks.begin(), ranks.end(), rank,
                                [](const RankTable &entry, uint32_t rank) { return entry.rank < rank; });
  return found == ranks.end() || found->rank != rank ? noSlot : uint32_t(found - ranks.begin());
}

std::optional<uint32_t> NodeTable::findGroup(uint64_t number) const {
  auto found = std::lower_bound(groups.begin(), groups.end(), number,
                                [](const GroupRecord &group, uint64_t number) { return group.number < number; });
  if (found == groups.end() || found->number != number)
    return std::nullopt;
  return uint32_t(found - groups.begin());
}

uint64_t NodeTable::getNumNodes() const {
  uint64_t count = 0;
  for (const RankTable &rank : ranks)
    count += rank.nodes.size();
  return count;
}

std::string stage::trace::describeNode(uint32_t rank, uint64_t id, StringRef name) {
  std::string text = "rank " + std::to_string(rank) + ", node " + std::to_string(id);
  return name.empty() ? text : text + " '" + name.str() + "'";
}

std::string NodeTable::describe(uint32_t slot, NodeIndex node) const {
  const RankTable &table = ranks[slot];
  NodeIndex place = table.filePlaces.empty() ? node : table.filePlaces[node];
  // The file was read without a fault; if it has changed since, its names are gone.
  llvm::SourceMgr sources;
  DiagnosticEngine quiet(sources);
  ChakraProtoMsg::Node message;
  if (auto reader = TraceReader::open(table.path, quiet)) {
    reader->skipTo(table.checkpoints[place / checkpointDistance], place - place % checkpointDistance);
    auto status = TraceReader::Status::Read;
    for (NodeIndex i = 0; i <= place % checkpointDistance && status == TraceReader::Status::Read; ++i)
      status = reader->readNode(message);
    if (status != TraceReader::Status::Read || message.id() != table.getId(node))
      message.clear_name();
  }
  return describeNode(table.rank, table.getId(node), message.name());
}

std::string NodeTable::describeCollective(const Communication &collective, bool withTag) const {
  std::string text = (getCommTypeName(collective.commType) + " of " + llvm::Twine(collective.size) + " bytes").str();
  if (withTag)
    text += collective.tag == noTag ? " without a tag" : " with tag " + std::to_string(collective.tag);
  return text;
}

std::string NodeTable::describeGroup(uint32_t group) const {
  const GroupRecord &record = groups[group];
  if (record.number == 0)
    return "the group of all ranks (" + std::to_string(record.members.size()) + ")";
  std::vector<uint32_t> sorted = record.ranks;
  llvm::sort(sorted);
  constexpr size_t maxShown = 200;
  std::string text = formatRanks(sorted);
  if (text.size() > maxShown)
    text = text.substr(0, maxShown) + "...";
  return "group " + std::to_string(record.number) + " (" + (sorted.size() > 1 ? "ranks " : "rank ") + text + ")";
}
