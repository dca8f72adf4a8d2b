//===- NodeTable.h - the nodes of all ranks, compact -----------*- C++ -*-===//
//
// What the verifier needs of each node, in 48 bytes and its dependencies, so that
// tens of millions of nodes fit. Nodes of a rank stand in the order of their ids and
// are then known by their place, a NodeIndex.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRACE_NODETABLE_H
#define STAGE_LIB_TRACE_NODETABLE_H

#include "FaultReporter.h"
#include "stage/CodeGen/NodeWriter.h"
#include "stage/Trace/TraceFolder.h"
#include "llvm/ADT/StringMap.h"
#include <vector>

namespace stage {

using NodeIndex = uint32_t;
inline constexpr NodeIndex noNode = ~NodeIndex(0);

struct NodeRecord {
  uint64_t id;
  /// Bytes of a communication.
  int64_t size = 0;
  uint32_t name = 0;
  /// The group of a collective, an index of NodeTable::groups; the channel of a send or recv, once known.
  uint32_t channel = 0;
  uint32_t peer = 0;
  uint32_t tag = 0;
  ChakraNodeType type = ChakraNodeType::Invalid;
  uint8_t commType = 0;
  bool isCpuOp = false;
  bool hasInputs = false, hasOutputs = false;
  /// Whether the attributes are good enough for the checks between ranks.
  bool isUsable = true;
};

/// A tensor of the list `inputs` or `outputs` of a node.
struct TensorRecord {
  NodeIndex node;
  uint32_t name;
  int64_t bytes;
  bool isWrite;
};

struct RankTable {
  std::vector<NodeRecord> nodes;
  /// The dependencies of node i: ids, until VerifyGraph turns them into indices.
  std::vector<uint64_t> depBegin;
  std::vector<uint64_t> depIds;
  std::vector<NodeIndex> deps;
  std::vector<TensorRecord> tensors;

  llvm::ArrayRef<NodeIndex> getDeps(NodeIndex node) const {
    return llvm::makeArrayRef(deps).slice(depBegin[node], depBegin[node + 1] - depBegin[node]);
  }
};

struct GroupRecord {
  /// 0 for the group of all ranks.
  uint64_t number;
  std::vector<uint32_t> members;
};

class NodeTable {
public:
  /// Reads all files and checks each node by itself.
  void load(const TraceFolder &folder, bool ignoreCtrl, FaultReporter &faults);

  /// `rank 3, node 17 'l0.qkv'`
  std::string describe(uint32_t rank, NodeIndex node) const;
  /// `ALL_REDUCE of 4096 bytes`
  std::string describeCollective(uint32_t rank, NodeIndex node) const;
  /// `group 2 (ranks 0-3)`
  std::string describeGroup(uint32_t group) const;

  llvm::StringRef getTensorName(uint32_t tensor) const { return tensorNames[tensor]; }

  std::vector<RankTable> ranks;
  /// groups[0] is that of all ranks.
  std::vector<GroupRecord> groups;
  uint64_t getNumNodes() const;

private:
  friend class NodeLoader;
  std::vector<llvm::StringRef> names, tensorNames;
  llvm::StringMap<uint32_t> nameIndices, tensorIndices;
};

/// VerifyGraph.cpp: resolves dependencies, and checks ids and that there is no cycle.
void verifyGraph(NodeTable &table, FaultReporter &faults);

struct CommunicationSummary {
  uint64_t numCollectives = 0;
  uint64_t numGroups = 0;
  uint64_t numSends = 0;
  uint32_t numChannels = 0;
};

/// VerifyCommunication.cpp: what members of a group and ends of a send say must agree.
/// Gives the sends and recvs their channels.
CommunicationSummary verifyCommunication(NodeTable &table, FaultReporter &faults);

/// VerifyTensors.cpp: what memory trackers rely on, where nodes list their tensors. Returns how many tensors there are.
uint64_t verifyTensors(NodeTable &table, FaultReporter &faults);

} // namespace stage

#endif // STAGE_LIB_TRACE_NODETABLE_H
