//===- NodeWriter.h - Chakra nodes as bytes, fast --------------*- C++ -*-===//
//
// Traces are large (a rank of a long step is megabytes, and there may be 100,000
// ranks), so their bytes are written by hand rather than through protobuf's generated
// classes, which are 10 to 20 times slower than the disk cache. The bytes are the
// canonical proto3 ones: fields in ascending order, packed integers, defaults left
// out. Unit tests compare them with what the generated classes write.
//
// Three layers, each usable alone:
//
//   TraceBuffer    a growable array of bytes
//   NodeEncoder    appends one message to a buffer
//   ClassImage     the nodes of a class of ranks, encoded once. What differs between
//                  the ranks of the class (a group's number, a peer, a tag, a size) is
//                  a *slot* instead of a number; a RankEncoder fills the slots.
//
//   ClassImage image;
//   image.appendMetadata({"1.0"});
//   NodeFields node;
//   node.type = ChakraNodeType::CommColl;
//   node.commSize = 4096;
//   node.group = TaskValue::slot(0);            // the rank's own group
//   image.append(node);
//   RankEncoder encoder(image);                  // one per thread
//   for (unsigned rank : ranks)
//     write(rank, encoder.encode({groupOf(rank)}));
//
// A RankEncoder keeps the bytes of the last rank and overwrites only the slots when
// their widths did not change, so that most ranks cost less than a memcpy. Ranks whose
// values have the same number of digits should therefore follow each other, which
// ascending order gives.
//
// Limits: nothing is checked. The caller sees to it that ids are unique, that
// dependencies exist and that numbers are in the ranges the comments give.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_CODEGEN_NODEWRITER_H
#define STAGE_CODEGEN_NODEWRITER_H

#include "stage/Tasks/Task.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Allocator.h"
#include <cassert>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

namespace stage {

/// `NodeType` of the Chakra schema; the last three of newer ones.
enum class ChakraNodeType : uint8_t {
  Invalid,
  Metadata,
  MemLoad,
  MemStore,
  Comp,
  CommSend,
  CommRecv,
  CommColl,
  Storage,
  Batch,
  Checkpoint
};

/// A copy to or from a memory that is not the device's.
inline bool isCopyNode(ChakraNodeType type) {
  return type == ChakraNodeType::MemLoad || type == ChakraNodeType::MemStore;
}

/// `CollectiveCommType` of the Chakra schema.
enum class ChakraCommType : uint8_t {
  AllReduce,
  Reduce,
  AllGather,
  Gather,
  Scatter,
  Broadcast,
  AllToAll,
  ReduceScatter,
  ReduceScatterBlock,
  Barrier
};

/// A tensor that a node reads or writes, for simulators that track memory.
struct TensorUse {
  llvm::StringRef name;
  TaskValue bytes;
};

/// What a node takes on a machine.
struct TaskTimes {
  /// Attribute `duration_picos`: its price alone. Not of COMM_RECV, which takes what its send takes.
  uint64_t picos = 0;
  /// Field `duration_micros`: with what it takes longer beside others. 0: not written.
  uint64_t micros = 0;
  uint32_t unit = 0;  ///< Attribute: number of the unit, in the rank's order.
  uint32_t level = 0; ///< COMM_*: attribute, of the network, 0 is the innermost.
};

/// What the metadata of a trace say.
struct TraceMetadata {
  std::string version;
  /// Attributes: texts, and numbers of 64 bits.
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<std::pair<std::string, int64_t>> numbers;
};

/// What a node says. Fields that its type does not use are ignored.
struct NodeFields {
  ChakraNodeType type = ChakraNodeType::Comp;
  uint64_t id = 0;
  /// Empty: no name is written.
  llvm::StringRef name;
  llvm::ArrayRef<uint64_t> ctrlDeps;
  llvm::ArrayRef<uint64_t> dataDeps;
  /// Attribute `issue_stream`; 0: not written.
  uint64_t stream = 0;
  /// Attribute `op_type`; empty: not written.
  llvm::StringRef opType;

  /// Attribute `is_cpu_op`: the host does it.
  bool isCpuOp = false;
  /// COMP: FLOPs, at least 1.
  TaskValue numOps = 1;
  /// COMP: FLOPs among them that are of class other on a node of another class; 0: not written.
  TaskValue otherOps = 0;
  /// COMP: FLOPs among them that a fused backward computes again; 0: not written.
  TaskValue recomputedOps = 0;
  /// COMP and MEM_*: bytes moved, at least 1.
  TaskValue tensorSize;

  /// COMM_COLL.
  ChakraCommType commType = ChakraCommType::AllReduce;
  /// COMM_COLL: key of comm_group.json; 0 (all ranks) writes no `pg_name`.
  TaskValue group;
  /// COMM_COLL: attribute `involved_dim`, 1 or 0 per dimension of the network; empty: not written. At most 32.
  llvm::ArrayRef<uint8_t> networkDims;
  /// COMM_*: bytes, at least 1.
  TaskValue commSize;
  /// COMM_SEND: destination; COMM_RECV: source. Below 2^31.
  TaskValue peer;
  /// COMM_SEND, COMM_RECV: below 5e8.
  TaskValue tag;
  /// COMM_COLL: below 5e8; absent: not written.
  std::optional<uint64_t> collectiveTag;

  /// What the node takes on a machine; absent: not written.
  std::optional<TaskTimes> times;

  /// Attributes `inputs` and `outputs` for memory tracking; absent: not written.
  std::optional<llvm::ArrayRef<TensorUse>> inputs;
  std::optional<llvm::ArrayRef<TensorUse>> outputs;

  /// Whether some number differs between the ranks of the class.
  bool hasSlots() const;
};

/// A growable array of bytes with cheap appends. Not initialised beyond its size.
class TraceBuffer {
public:
  size_t size() const { return used; }
  const uint8_t *data() const { return bytes.get(); }
  uint8_t *data() { return bytes.get(); }
  llvm::ArrayRef<uint8_t> getBytes() const { return {bytes.get(), used}; }
  void clear() { used = 0; }

  /// Makes room for `count` more bytes and returns where they go; they count as used.
  uint8_t *grow(size_t count) {
    if (LLVM_UNLIKELY(capacity - used < count))
      reallocate(count);
    uint8_t *place = bytes.get() + used;
    used += count;
    return place;
  }
  void append(const uint8_t *begin, size_t count) {
    if (count)
      std::memcpy(grow(count), begin, count);
  }

private:
  void reallocate(size_t count);

  std::unique_ptr<uint8_t[]> bytes;
  size_t used = 0;
  size_t capacity = 0;
};

/// A place in a buffer that holds the value of a slot.
struct SlotPlace {
  size_t offset;
  uint32_t slot;
  /// Decimal digits in a string; otherwise a varint.
  bool decimal;
};

/// Appends framed messages to a buffer.
class NodeEncoder {
public:
  explicit NodeEncoder(TraceBuffer &out) : out(out) {}

  /// The first message of a file. An empty version writes an empty message.
  void appendMetadata(const TraceMetadata &metadata);

  /// Appends a node without slots.
  void append(const NodeFields &node) {
    assert(!node.hasSlots() && "slots need values");
    append(node, {}, nullptr);
  }
  /// Appends a node with its slots filled from `slots`; where each went is added to `places`.
  void append(const NodeFields &node, llvm::ArrayRef<uint64_t> slots, std::vector<SlotPlace> *places);

private:
  TraceBuffer &out;
};

/// Bytes of a framed node with its slots filled from `slots`.
size_t getEncodedSize(const NodeFields &node, llvm::ArrayRef<uint64_t> slots);
/// Bytes of the framed first message.
size_t getEncodedMetadataSize(const TraceMetadata &metadata);
/// The trace of a class of ranks: encoded bytes, and between them nodes with slots.
class ClassImage {
public:
  ClassImage() = default;
  ClassImage(ClassImage &&) = default;
  ClassImage &operator=(ClassImage &&) = default;

  void appendMetadata(const TraceMetadata &metadata) { NodeEncoder(fixed).appendMetadata(metadata); }
  /// Appends a node; what it points to is copied where it must outlive the call.
  void append(const NodeFields &node);

  /// One more than the highest slot used.
  unsigned getNumSlots() const { return numSlots; }
  size_t getNumNodes() const { return numNodes; }
  size_t getNumVaryingNodes() const { return varying.size(); }
  /// Bytes of memory.
  size_t getNumBytes() const {
    return fixed.size() + varying.size() * sizeof(VaryingNode) + allocator.getBytesAllocated();
  }

  /// Appends the bytes of a rank. `slots` has getNumSlots() values or more.
  void appendRank(llvm::ArrayRef<uint64_t> slots, TraceBuffer &out, std::vector<SlotPlace> *places = nullptr) const;

private:
  struct VaryingNode {
    /// The node goes before this offset of `fixed`.
    size_t position;
    NodeFields fields;
  };
  template <typename T> llvm::ArrayRef<T> copy(llvm::ArrayRef<T> array);
  std::optional<llvm::ArrayRef<TensorUse>> copyTensors(const std::optional<llvm::ArrayRef<TensorUse>> &tensors);

  TraceBuffer fixed;
  std::vector<VaryingNode> varying;
  llvm::BumpPtrAllocator allocator;
  unsigned numSlots = 0;
  size_t numNodes = 0;
};

/// Writes the ranks of a class one after the other into a buffer of its own.
class RankEncoder {
public:
  /// `image` must outlive the encoder and not change.
  explicit RankEncoder(const ClassImage &image) : image(image) {}

  /// The bytes of the rank whose slots have these values, valid until the next call.
  llvm::ArrayRef<uint8_t> encode(llvm::ArrayRef<uint64_t> slots);

private:
  bool hasWidthsOf(llvm::ArrayRef<uint64_t> slots) const;

  const ClassImage &image;
  TraceBuffer buffer;
  std::vector<SlotPlace> places;
  llvm::SmallVector<uint64_t, 16> last;
};

} // namespace stage

#endif // STAGE_CODEGEN_NODEWRITER_H
