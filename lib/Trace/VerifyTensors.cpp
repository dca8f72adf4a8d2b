//===- VerifyTensors.cpp - what memory trackers rely on -------------------===//
//
// Problem: a simulator that tracks memory aborts on a tensor that is written twice or
// written after it was read, and counts one that is read before it is written from the
// beginning on. Wrong lists are hence wrong memory, or none.
//
//   node 3  outputs [t, 64]
//   node 5  inputs  [t, 64]       5 must depend on 3, directly or not; the sizes agree
//
// Algorithm: per rank a table from tensor to its writer. A read looks for the writer
// among the node's dependencies, and theirs, breadth first, as far back as the writer:
// as a rule it is one of the first. A tensor that nobody writes is there from the
// beginning (parameters, inputs).
//
//===----------------------------------------------------------------------===//
#include "NodeTable.h"
#include "stage/Trace/Diagnostics.h"

using namespace stage;
using namespace stage::trace;

/// Bytes of the tensors that each node reads, or writes.
static std::vector<int64_t> sumTensors(const RankTable &rank, bool isWrite) {
  std::vector<int64_t> bytes(rank.nodes.size());
  for (const TensorRecord &use : rank.tensors)
    if (use.isWrite == isWrite)
      bytes[use.node] += use.bytes;
  return bytes;
}

namespace {
/// The members of a group say one size of a collective, although each may put in another number of bytes: then it is
/// that of the member that puts in most, or of an all_to_all gets out most.
class CollectiveHolders {
public:
  explicit CollectiveHolders(const NodeTable &table) : table(table) {}

  /// Whether a member has as much as collective `number` of those of the group says, or may have, as it is absent.
  bool mayHold(uint32_t group, uint32_t number) {
    if (!isKnown)
      find();
    isKnown = true;
    return table.groups[group].isPartial || held.count({group, number});
  }

private:
  void find() {
    for (const RankTable &rank : table.ranks) {
      std::vector<int64_t> read = sumTensors(rank, /*isWrite=*/false), written = sumTensors(rank, /*isWrite=*/true);
      llvm::DenseMap<uint32_t, uint32_t> numbers;
      for (const Communication &collective : rank.communications) {
        if (rank.nodes[collective.node].type != ChakraNodeType::CommColl)
          continue;
        bool isExchange = collective.commType == uint8_t(ChakraCommType::AllToAll);
        uint32_t number = numbers[collective.channel]++;
        if (read[collective.node] >= collective.size || (isExchange && written[collective.node] >= collective.size))
          held.insert({collective.channel, number});
      }
    }
  }

  const NodeTable &table;
  bool isKnown = false;
  llvm::DenseSet<std::pair<uint32_t, uint32_t>> held;
};

class TensorVerifier {
public:
  TensorVerifier(NodeTable &table, uint32_t slot, CollectiveHolders &holders, FaultReporter &faults)
      : table(table), ranks(table.ranks[slot]), slot(slot), holders(holders), faults(faults) {}

  /// The number of tensors.
  uint64_t verify() {
    checkLists();
    collectWriters();
    order = sortTopologically();
    for (const TensorRecord &use : ranks.tensors)
      if (!use.isWrite)
        checkRead(use);
    checkMessages();
    return tensors.size();
  }

private:
  struct Tensor {
    NodeIndex first; ///< Who named it first.
    NodeIndex writer = noNode;
    int64_t bytes;
  };

  auto describe(NodeIndex node) const {
    return [this, node] { return table.describe(slot, node); };
  }

  /// All nodes have both lists or none has.
  void checkLists() {
    for (NodeIndex node = 0; node < ranks.nodes.size(); ++node) {
      NodeFlags record = ranks.nodes[node];
      if (!record.hasInputs)
        faults.report(diag::TensorListMissing, describe(node), "inputs");
      if (!record.hasOutputs)
        faults.report(diag::TensorListMissing, describe(node), "outputs");
    }
  }

  void collectWriters() {
    for (const TensorRecord &use : ranks.tensors) {
      auto [it, isNew] = tensors.try_emplace(use.name, Tensor{use.node, noNode, use.bytes});
      Tensor &tensor = it->second;
      if (tensor.bytes != use.bytes)
        faults.report(diag::TensorSizeDiffers, describe(use.node), table.getTensorName(use.name), use.bytes,
                      tensor.bytes, ranks.getId(tensor.first));
      if (!use.isWrite)
        continue;
      if (tensor.writer != noNode)
        faults.report(diag::TensorWrittenTwice, describe(use.node), table.getTensorName(use.name),
                      ranks.getId(tensor.writer));
      else
        tensor.writer = use.node;
    }
  }

  /// A number per node, larger than those of its dependencies. Ids are such numbers as a rule.
  std::vector<NodeIndex> sortTopologically() const {
    size_t count = ranks.nodes.size();
    std::vector<NodeIndex> numbers(count);
    bool ascending = true;
    for (NodeIndex node = 0; node < count; ++node) {
      numbers[node] = node;
      for (NodeIndex dep : ranks.getDeps(node))
        ascending &= dep < node;
    }
    if (ascending)
      return numbers;
    std::vector<uint32_t> waiting(count);
    std::vector<std::vector<NodeIndex>> users(count);
    std::vector<NodeIndex> ready;
    for (NodeIndex node = 0; node < count; ++node) {
      waiting[node] = ranks.getDeps(node).size();
      for (NodeIndex dep : ranks.getDeps(node))
        users[dep].push_back(node);
      if (!waiting[node])
        ready.push_back(node);
    }
    for (size_t next = 0; next < ready.size(); ++next) {
      numbers[ready[next]] = NodeIndex(next);
      for (NodeIndex user : users[ready[next]])
        if (!--waiting[user])
          ready.push_back(user);
    }
    return numbers;
  }

  void checkRead(const TensorRecord &use) {
    const Tensor &tensor = tensors.find(use.name)->second;
    if (tensor.writer == noNode || dependsOn(use.node, tensor.writer))
      return;
    faults.report(diag::TensorReadEarly, describe(use.node), table.getTensorName(use.name), ranks.getId(tensor.writer));
  }

  bool dependsOn(NodeIndex node, NodeIndex other) {
    if (order[node] <= order[other])
      return false;
    if (seen.empty())
      seen.resize(ranks.nodes.size());
    ++search;
    queue.assign(1, node);
    for (size_t next = 0; next < queue.size(); ++next)
      for (NodeIndex dep : ranks.getDeps(queue[next])) {
        if (dep == other)
          return true;
        if (order[dep] < order[other] || seen[dep] == search)
          continue;
        seen[dep] = search;
        queue.push_back(dep);
      }
    return false;
  }

  int64_t getPadding(NodeIndex node) const {
    if (ranks.nodes[node].type != ChakraNodeType::CommColl)
      return 0;
    const Communication &collective = ranks.getCommunication(node);
    if (ChakraCommType(collective.commType) != ChakraCommType::ReduceScatter ||
        collective.channel >= table.groups.size())
      return 0;
    const GroupRecord &group = table.groups[collective.channel];
    return 8 * (int64_t(std::max(group.members.size(), group.ranks.size())) - 1);
  }

  /// What is sent, or put into a collective, is held by the tensors that are read; what is received by those that are
  /// written. They may hold more: a message may be a part of a tensor. What is scattered may be padded, so that each
  /// member gets as much: by less than an element, of 8 bytes at most, per tensor and member.
  void checkMessages() {
    std::vector<int64_t> read = sumTensors(ranks, /*isWrite=*/false), written = sumTensors(ranks, /*isWrite=*/true);
    std::vector<int64_t> padding(ranks.nodes.size());
    for (const TensorRecord &use : ranks.tensors)
      if (!use.isWrite)
        padding[use.node] += getPadding(use.node);
    llvm::DenseMap<uint32_t, uint32_t> numbers; // of the collectives of each group so far
    for (NodeIndex node = 0; node < ranks.nodes.size(); ++node) {
      ChakraNodeType type = ranks.nodes[node].type;
      bool isMessage =
          type == ChakraNodeType::CommColl || type == ChakraNodeType::CommSend || type == ChakraNodeType::CommRecv;
      if (!isMessage)
        continue;
      const Communication &message = ranks.getCommunication(node);
      bool isRecv = type == ChakraNodeType::CommRecv, isCollective = type == ChakraNodeType::CommColl;
      int64_t held = isRecv ? written[node] : read[node];
      uint32_t number = isCollective ? numbers[message.channel]++ : 0;
      bool standsForNone = message.size == 1 && held == 0; // what a rank has nothing of is said to be 1 byte
      // The operands of a reduction are of one shape, on all ranks.
      auto kind = ChakraCommType(message.commType);
      bool mayDiffer = isCollective && (kind == ChakraCommType::AllGather || kind == ChakraCommType::AllToAll);
      if (held + padding[node] < message.size && !standsForNone &&
          !(mayDiffer && holders.mayHold(message.channel, number)))
        faults.report(diag::TensorMessageSize, describe(node), isRecv ? "writes" : "reads", held, message.size);
    }
  }

  NodeTable &table;
  RankTable &ranks;
  uint32_t slot;
  CollectiveHolders &holders;
  FaultReporter &faults;
  llvm::DenseMap<uint32_t, Tensor> tensors;
  std::vector<NodeIndex> order;
  /// The last search that came by each node.
  std::vector<uint32_t> seen;
  std::vector<NodeIndex> queue;
  uint32_t search = 0;
};
} // namespace

uint64_t stage::trace::verifyTensors(NodeTable &table, FaultReporter &faults) {
  uint64_t numTensors = 0;
  CollectiveHolders holders(table);
  for (uint32_t slot = 0; slot < table.ranks.size(); ++slot)
    if (llvm::any_of(table.ranks[slot].nodes, [](NodeFlags node) { return node.hasInputs || node.hasOutputs; }))
      numTensors += TensorVerifier(table, slot, holders, faults).verify();
  return numTensors;
}
