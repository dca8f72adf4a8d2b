//===- VerifyCommunication.cpp - what ranks must agree on -----------------===//
//
// Collectives: the k-th one that a member issues in a group must be the k-th one of all
// its members. A member's order is taken from a run of its own graph in which ready
// nodes go lowest id first and everything finishes at once.
//
// Sends: a send and a recv meet when tag, source, destination and bytes are the same;
// such a quadruple is a channel.
//
//===----------------------------------------------------------------------===//
#include "NodeTable.h"
#include "stage/Trace/Diagnostics.h"
#include <functional>
#include <queue>
#include <tuple>
#include <unordered_map>

using namespace stage;

/// The communications of a rank in the order in which it issues them.
static std::vector<NodeIndex> getCommunicationOrder(const RankTable &rank) {
  std::vector<uint32_t> waiting(rank.nodes.size());
  // Dependents of each node, as lists through one array.
  std::vector<uint64_t> userBegin(rank.nodes.size() + 1);
  for (NodeIndex dep : rank.deps)
    ++userBegin[dep + 1];
  for (size_t i = 1; i < userBegin.size(); ++i)
    userBegin[i] += userBegin[i - 1];
  std::vector<NodeIndex> users(rank.deps.size());
  std::vector<uint64_t> fill(userBegin.begin(), userBegin.end());
  std::priority_queue<NodeIndex, std::vector<NodeIndex>, std::greater<NodeIndex>> ready;
  for (NodeIndex node = 0; node < rank.nodes.size(); ++node) {
    waiting[node] = uint32_t(rank.getDeps(node).size());
    if (waiting[node] == 0)
      ready.push(node);
    for (NodeIndex dep : rank.getDeps(node))
      users[fill[dep]++] = node;
  }
  std::vector<NodeIndex> order;
  while (!ready.empty()) {
    NodeIndex node = ready.top();
    ready.pop();
    if (rank.nodes[node].type >= ChakraNodeType::CommSend)
      order.push_back(node);
    for (NodeIndex user : llvm::makeArrayRef(users).slice(userBegin[node], userBegin[node + 1] - userBegin[node]))
      if (--waiting[user] == 0)
        ready.push(user);
  }
  return order;
}

namespace {
struct Place {
  uint32_t rank;
  NodeIndex node;
};

class CommunicationVerifier {
public:
  CommunicationVerifier(NodeTable &table, FaultReporter &faults) : table(table), faults(faults) {}

  CommunicationSummary verify() {
    std::vector<std::vector<std::vector<NodeIndex>>> uses(table.groups.size());
    for (size_t group = 0; group < uses.size(); ++group)
      uses[group].resize(table.groups[group].members.size());
    for (uint32_t rank = 0; rank < table.ranks.size(); ++rank)
      collect(rank, uses);
    for (uint32_t group = 0; group < uses.size(); ++group)
      checkGroup(group, uses[group]);
    matchSends();
    summary.numChannels = uint32_t(channels.size());
    return summary;
  }

private:
  /// Position of each rank in each group, found once per rank and group.
  size_t getMember(uint32_t group, uint32_t rank) {
    if (group == 0)
      return rank;
    auto [cached, isNew] = memberOf.try_emplace(uint64_t(group) << 32 | rank, 0);
    if (isNew) {
      const std::vector<uint32_t> &members = table.groups[group].members;
      cached->second = llvm::find(members, rank) - members.begin();
    }
    return cached->second;
  }

  void collect(uint32_t rank, std::vector<std::vector<std::vector<NodeIndex>>> &uses) {
    for (NodeIndex node : getCommunicationOrder(table.ranks[rank])) {
      NodeRecord &record = table.ranks[rank].nodes[node];
      if (!record.isUsable)
        continue;
      if (record.type == ChakraNodeType::CommColl) {
        ++summary.numCollectives;
        uses[record.channel][getMember(record.channel, rank)].push_back(node);
        continue;
      }
      bool isSend = record.type == ChakraNodeType::CommSend;
      summary.numSends += isSend;
      uint32_t source = isSend ? rank : record.peer;
      uint32_t destination = isSend ? record.peer : rank;
      auto key = std::make_tuple(source, destination, record.tag, record.size);
      auto [channel, isNew] = channelOf.try_emplace(key, uint32_t(channels.size()));
      if (isNew)
        channels.emplace_back();
      record.channel = channel->second;
      (isSend ? channels[record.channel].sends : channels[record.channel].recvs).push_back({rank, node});
    }
  }

  /// Compares each member with the first one; reports the first difference of a pair only.
  void checkGroup(uint32_t group, const std::vector<std::vector<NodeIndex>> &uses) {
    const std::vector<uint32_t> &members = table.groups[group].members;
    bool isUsed = false;
    for (size_t member = 0; member < members.size(); ++member) {
      isUsed |= !uses[member].empty();
      if (member > 0)
        checkPair(group, members[0], uses[0], members[member], uses[member]);
    }
    summary.numGroups += isUsed;
  }

  void checkPair(uint32_t group, uint32_t first, llvm::ArrayRef<NodeIndex> firstUses, uint32_t second,
                 llvm::ArrayRef<NodeIndex> secondUses) {
    size_t common = std::min(firstUses.size(), secondUses.size());
    for (size_t use = 0; use < common; ++use) {
      const NodeRecord &a = table.ranks[first].nodes[firstUses[use]];
      const NodeRecord &b = table.ranks[second].nodes[secondUses[use]];
      if (a.commType == b.commType && a.size == b.size)
        continue;
      if (faults.isShown(diag::CollectiveMismatch))
        faults.getDiagnostics().report(SMLoc(), diag::CollectiveMismatch)
            << int64_t(use + 1) << table.describeGroup(group) << table.describe(first, firstUses[use])
            << table.describeCollective(first, firstUses[use]) << table.describe(second, secondUses[use])
            << table.describeCollective(second, secondUses[use]);
      return;
    }
    if (firstUses.size() != secondUses.size())
      faults.report(diag::CollectiveCount, table.describeGroup(group), first, firstUses.size(), second,
                    secondUses.size());
  }

  void matchSends() {
    for (const Channel &channel : channels) {
      for (size_t i = channel.recvs.size(); i < channel.sends.size(); ++i)
        reportUnmatched(diag::SendUnmatched, channel.sends[i]);
      for (size_t i = channel.sends.size(); i < channel.recvs.size(); ++i)
        reportUnmatched(diag::RecvUnmatched, channel.recvs[i]);
    }
  }
  void reportUnmatched(diag::ID id, Place place) {
    const NodeRecord &record = table.ranks[place.rank].nodes[place.node];
    faults.report(id, table.describe(place.rank, place.node), record.peer, record.tag, record.size);
  }

  struct Channel {
    std::vector<Place> sends;
    std::vector<Place> recvs;
  };
  using Key = std::tuple<uint32_t, uint32_t, uint32_t, int64_t>;
  struct KeyHash {
    size_t operator()(const Key &key) const {
      return llvm::hash_combine(std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key));
    }
  };

  NodeTable &table;
  FaultReporter &faults;
  CommunicationSummary summary;
  std::unordered_map<uint64_t, size_t> memberOf;
  std::unordered_map<Key, uint32_t, KeyHash> channelOf;
  std::vector<Channel> channels;
};
} // namespace

CommunicationSummary stage::verifyCommunication(NodeTable &table, FaultReporter &faults) {
  return CommunicationVerifier(table, faults).verify();
}
