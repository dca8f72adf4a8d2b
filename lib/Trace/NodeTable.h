//===- NodeTable.h - the nodes of all ranks, compact -----------*- C++ -*-===//
//
// What the verifier needs of each node, so that tens of millions of nodes fit: a byte,
// its dependencies and their reverse, 32 more for a communication, and 16 more where nodes carry durations. Nodes of a
// rank stand in the order of their ids and are known by their place, a NodeIndex; ids are kept only where they are not
// dense. Names are not kept: a message that needs one reads it again, from the nearest of the places in the file that
// were noted.
//
// A folder may lack ranks. Those that are there are numbered from 0, each a *slot*, in
// the order of the ranks; where no rank is absent, slot and rank are the same number.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRACE_NODETABLE_H
#define STAGE_LIB_TRACE_NODETABLE_H

#include "FaultReporter.h"
#include "SurchargeTerms.h"
#include "stage/CodeGen/NodeWriter.h"
#include "stage/Trace/TraceFolder.h"
#include "stage/Trace/Verify.h"
#include "llvm/ADT/StringMap.h"
#include <vector>

namespace stage {
class Machine;
} // namespace stage

namespace stage::trace {

using NodeIndex = uint32_t;
inline constexpr NodeIndex noNode = ~NodeIndex(0);
inline constexpr uint32_t noSlot = ~uint32_t(0);
inline constexpr uint32_t noChannel = ~uint32_t(0);
inline constexpr uint32_t noTag = ~uint32_t(0);
inline constexpr uint8_t noLevel = 255;

struct NodeFlags {
  ChakraNodeType type : 4 = ChakraNodeType::Invalid;
  bool isCpuOp : 1 = false;
  bool hasInputs : 1 = false;
  bool hasOutputs : 1 = false;
  /// Whether the attributes are good enough for the checks between ranks.
  bool isUsable : 1 = true;
};

/// A send, recv or collective.
struct Communication {
  NodeIndex node;
  /// Of a send or recv: the rank of the other end.
  uint32_t peer = 0;
  int64_t size = 0;
  /// noTag: a collective without one.
  uint32_t tag = noTag;
  /// The group of a collective, an index of NodeTable::groups; the channel of a send or recv, once known: noChannel if
  /// the other end is absent.
  uint32_t channel = noChannel;
  uint8_t commType = 0;
  /// Of the network (`level`), from the inside out; noLevel where the node says none.
  uint8_t level = noLevel;
};

/// What a node says of its time, where nodes of its rank have durations.
struct TimeRecord {
  Ticks duration = -1; ///< `duration_picos`, the price alone; -1: not said.
  int32_t unit = -1;   ///< -1: not said.
};

/// A tensor of the list `inputs` or `outputs` of a node.
struct TensorRecord {
  NodeIndex node;
  uint32_t name;
  int64_t bytes;
  bool isWrite;
};

class RankTable {
public:
  uint32_t rank = 0;
  std::string path;
  std::vector<NodeFlags> nodes;
  std::vector<Communication> communications; ///< In the order of their nodes.
  std::vector<TensorRecord> tensors;
  /// Numbers of streams (`issue_stream`) of the nodes; empty if none names one.
  std::vector<uint8_t> streams;
  /// How long nodes take; empty where nobody asks.
  std::vector<int64_t> durations;
  /// By nodes; empty if none has a duration. `terms` have been read where it is not.
  std::vector<TimeRecord> times;
  SurchargeTerms terms;
  /// The places of nodes in the file; empty where nodes stand there in the order of their ids.
  llvm::ArrayRef<NodeIndex> getFilePlaces() const { return filePlaces; }
  uint8_t getStream(NodeIndex node) const { return streams.empty() ? 0 : streams[node]; }

  size_t getNumNodes() const { return nodes.size(); }
  uint64_t getId(NodeIndex node) const { return ids.empty() ? firstId + node : ids[node]; }
  /// The node of an id, or noNode.
  NodeIndex find(uint64_t id) const;
  /// Of a node that is one.
  const Communication &getCommunication(NodeIndex node) const;
  Communication &getCommunication(NodeIndex node) {
    return const_cast<Communication &>(std::as_const(*this).getCommunication(node));
  }
  llvm::ArrayRef<NodeIndex> getDeps(NodeIndex node) const { return slice(deps, depBegin, node); }
  /// The nodes that depend on a node, once findUsers() has been called.
  llvm::ArrayRef<NodeIndex> getUsers(NodeIndex node) const { return slice(users, userBegin, node); }

  /// Turns the ids of dependencies into nodes. Those that do not exist, or are the node itself, are visited and left
  /// out.
  void resolveDeps(llvm::function_ref<void(NodeIndex node, uint64_t id)> visitBad);
  void findUsers();

private:
  friend class NodeLoader;
  friend class NodeTable;
  static llvm::ArrayRef<NodeIndex> slice(const std::vector<NodeIndex> &all, const std::vector<uint32_t> &begin,
                                         NodeIndex node) {
    return llvm::makeArrayRef(all).slice(begin[node], begin[node + 1] - begin[node]);
  }
  void addId(uint64_t id);
  void addDep(uint64_t id);
  void sortById();

  uint64_t firstId = 0;
  std::vector<uint64_t> ids; ///< Empty if dense.
  /// Dependencies: ids, and in wideDeps if one of them is large, until they are resolved.
  std::vector<uint32_t> depBegin;
  std::vector<NodeIndex> deps;
  std::vector<uint64_t> wideDeps;
  std::vector<uint32_t> userBegin;
  std::vector<NodeIndex> users;
  /// Offsets in the file of every so manyth node; and places of nodes in the file where they are not in order.
  std::vector<uint64_t> checkpoints;
  std::vector<NodeIndex> filePlaces;
};

struct GroupRecord {
  /// 0 for the group of all ranks.
  uint64_t number;
  /// Slots of those that are there.
  std::vector<uint32_t> members;
  /// Ranks, those that are absent too; left out for the group of all.
  std::vector<uint32_t> ranks;
  /// Whether some are absent.
  bool isPartial = false;
};

/// `rank 3, node 17 'l0.qkv'`
std::string describeNode(uint32_t rank, uint64_t id, llvm::StringRef name);

class NodeTable {
public:
  /// Reads all files and checks each node by itself.
  void load(const TraceFolder &folder, const VerifyOptions &options, FaultReporter &faults,
            const Machine *machine = nullptr);

  std::string describe(uint32_t slot, NodeIndex node) const;
  /// `ALL_REDUCE of 4096 bytes`; `withTag`: and its tag.
  std::string describeCollective(const Communication &collective, bool withTag = false) const;
  /// `group 2 (ranks 0-3)`
  std::string describeGroup(uint32_t group) const;

  llvm::StringRef getTensorName(uint32_t tensor) const { return tensorNames[tensor]; }
  /// noSlot for a rank that is absent.
  uint32_t findSlot(uint32_t rank) const;
  /// The index of a group, if there is one of that number.
  std::optional<uint32_t> findGroup(uint64_t number) const;
  uint64_t getNumNodes() const;

  std::vector<RankTable> ranks;
  /// groups[0] is that of all ranks; ascending numbers.
  std::vector<GroupRecord> groups;
  /// Whether no rank is absent, as far as files and groups tell.
  bool isWhole = true;

private:
  friend class NodeLoader;
  /// Nodes between the places of a file that are noted.
  static constexpr NodeIndex checkpointDistance = 64;
  std::vector<llvm::StringRef> tensorNames;
  llvm::StringMap<uint32_t> tensorIndices;
};

/// VerifyGraph.cpp: resolves dependencies, and checks ids and that there is no cycle.
void verifyGraph(NodeTable &table, FaultReporter &faults);

/// VerifyTimes.cpp: where nodes carry durations, all do that need one, in an order that units and ids agree about.
/// Dependencies have been resolved.
void verifyTimes(const NodeTable &table, FaultReporter &faults);

struct CommunicationSummary {
  uint64_t numCollectives = 0;
  uint64_t numGroups = 0;
  uint64_t numSends = 0;
  uint32_t numChannels = 0;
  /// What could not be compared, as a member or the other end is absent.
  uint64_t numPartialGroups = 0;
  uint64_t numSendsOut = 0;
  uint64_t numRecvsIn = 0;
};

/// VerifyCommunication.cpp: what members of a group and ends of a send say must agree.
/// Gives the sends and recvs their channels.
CommunicationSummary verifyCommunication(NodeTable &table, FaultReporter &faults);

/// VerifyTensors.cpp: what memory trackers rely on, where nodes list their tensors. Returns how many tensors there are.
uint64_t verifyTensors(NodeTable &table, FaultReporter &faults);

} // namespace stage::trace

#endif // STAGE_LIB_TRACE_NODETABLE_H
