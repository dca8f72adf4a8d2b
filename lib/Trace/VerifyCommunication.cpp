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
using namespace stage::trace;

static bool isCommunication(ChakraNodeType type) {
  return type == ChakraNodeType::CommSend || type == ChakraNodeType::CommRecv || type == ChakraNodeType::CommColl;
}

/// The communications of a rank in the order in which it issues them.
static std::vector<NodeIndex> getCommunicationOrder(const RankTable &rank) {
  std::vector<uint32_t> waiting(rank.getNumNodes());
  std::priority_queue<NodeIndex, std::vector<NodeIndex>, std::greater<NodeIndex>> ready;
  for (NodeIndex node = 0; node < rank.getNumNodes(); ++node) {
    waiting[node] = uint32_t(rank.getDeps(node).size());
    if (waiting[node] == 0)
      ready.push(node);
  }
  std::vector<NodeIndex> order;
  while (!ready.empty()) {
    NodeIndex node = ready.top();
    ready.pop();
    if (isCommunication(rank.nodes[node].type))
      order.push_back(node);
    for (NodeIndex user : rank.getUsers(node))
      if (--waiting[user] == 0)
        ready.push(user);
  }
  return order;
}

namespace {
struct Place {
  uint32_t slot;
  NodeIndex node;
};

class CommunicationVerifier {
public:
  CommunicationVerifier(NodeTable &table, FaultReporter &faults) : table(table), faults(faults) {}

  CommunicationSummary verify() {
    // Per group and member, in the order in which it issues them.
    std::vector<std::vector<std::vector<NodeIndex>>> uses(table.groups.size());
    for (size_t group = 0; group < uses.size(); ++group)
      uses[group].resize(table.groups[group].members.size());
    for (uint32_t slot = 0; slot < table.ranks.size(); ++slot)
      collect(slot, uses);
    for (uint32_t group = 0; group < uses.size(); ++group)
      checkGroup(group, uses[group]);
    matchSends();
    summary.numChannels = uint32_t(channels.size());
    return summary;
  }

private:
  /// Position of each rank in each group, found once per rank and group.
  size_t getMember(uint32_t group, uint32_t slot) {
    if (group == 0)
      return slot;
    auto [cached, isNew] = memberOf.try_emplace(uint64_t(group) << 32 | slot, 0);
    if (isNew) {
      const std::vector<uint32_t> &members = table.groups[group].members;
      cached->second = llvm::find(members, slot) - members.begin();
    }
    return cached->second;
  }

  void collect(uint32_t slot, std::vector<std::vector<std::vector<NodeIndex>>> &uses) {
    RankTable &rank = table.ranks[slot];
    for (NodeIndex node : getCommunicationOrder(rank)) {
      if (!rank.nodes[node].isUsable)
        continue;
      Communication &record = rank.getCommunication(node);
      if (rank.nodes[node].type == ChakraNodeType::CommColl) {
        ++summary.numCollectives;
        uses[record.channel][getMember(record.channel, slot)].push_back(node);
        continue;
      }
      bool isSend = rank.nodes[node].type == ChakraNodeType::CommSend;
      summary.numSends += isSend;
      if (table.findSlot(record.peer) == noSlot) {
        ++(isSend ? summary.numSendsOut : summary.numRecvsIn);
        continue;
      }
      uint32_t source = isSend ? rank.rank : record.peer;
      uint32_t destination = isSend ? record.peer : rank.rank;
      auto key = std::make_tuple(source, destination, record.tag, record.size);
      auto [channel, isNew] = channelOf.try_emplace(key, uint32_t(channels.size()));
      if (isNew)
        channels.emplace_back();
      record.channel = channel->second;
      (isSend ? channels[record.channel].sends : channels[record.channel].recvs).push_back({slot, node});
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
    summary.numPartialGroups += isUsed && table.groups[group].isPartial;
  }

  void checkPair(uint32_t group, uint32_t first, llvm::ArrayRef<NodeIndex> firstUses, uint32_t second,
                 llvm::ArrayRef<NodeIndex> secondUses) {
    size_t common = std::min(firstUses.size(), secondUses.size());
    for (size_t use = 0; use < common; ++use) {
      const Communication &a = table.ranks[first].getCommunication(firstUses[use]);
      const Communication &b = table.ranks[second].getCommunication(secondUses[use]);
      bool isSame = a.commType == b.commType && a.size == b.size;
      if (isSame && a.tag == b.tag)
        continue;
      if (faults.isShown(diag::CollectiveMismatch))
        faults.getDiagnostics().report(SMLoc(), diag::CollectiveMismatch)
            << int64_t(use + 1) << table.describeGroup(group) << table.describe(first, firstUses[use])
            << table.describeCollective(a, isSame) << table.describe(second, secondUses[use])
            << table.describeCollective(b, isSame);
      return;
    }
    if (firstUses.size() != secondUses.size())
      faults.report(diag::CollectiveCount, table.describeGroup(group), table.ranks[first].rank, firstUses.size(),
                    table.ranks[second].rank, secondUses.size());
  }

  void matchSends() {
    for (const Channel &channel : channels) {
      for (size_t i = channel.recvs.size(); i < channel.sends.size(); ++i)
        reportUnmatched(diag::SendUnmatched, channel.sends[i]);
      for (size_t i = channel.sends.size(); i < channel.recvs.size(); ++i)
        reportUnmatched(diag::RecvUnmatched, channel.recvs[i]);
    }
  }
  void reportUnmatched(diag::Message<diag::Text, diag::Number, diag::Number, diag::Number> id, Place place) {
    if (!faults.isShown(id))
      return;
    const Communication &record = table.ranks[place.slot].getCommunication(place.node);
    faults.getDiagnostics().report(SMLoc(), id)
        << table.describe(place.slot, place.node) << int64_t(record.peer) << int64_t(record.tag) << record.size;
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

CommunicationSummary stage::trace::verifyCommunication(NodeTable &table, FaultReporter &faults) {
  return CommunicationVerifier(table, faults).verify();
}
