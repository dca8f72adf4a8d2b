//===- NodeWriter.cpp - Chakra nodes as bytes, fast -----------------------===//
//
// A message is preceded by its length, and so are the lists and attributes in it, so a
// node is walked twice: once to add up its size, once to write it. Both walks are
// written next to each other for each part.
//
//===----------------------------------------------------------------------===//
#include "stage/CodeGen/NodeWriter.h"
#include "stage/Support/Digits.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

using namespace stage;
using llvm::ArrayRef;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Varints and decimals
//===----------------------------------------------------------------------===//

static inline uint8_t *writeVarint(uint8_t *out, uint64_t value) {
  while (value >= 0x80) {
    *out++ = uint8_t(value) | 0x80;
    value >>= 7;
  }
  *out++ = uint8_t(value);
  return out;
}

static uint8_t *writeDecimal(uint8_t *out, uint64_t value) {
  char *begin = reinterpret_cast<char *>(out);
  return reinterpret_cast<uint8_t *>(std::to_chars(begin, begin + 20, value).ptr);
}

static inline uint8_t *writeBytes(uint8_t *out, StringRef bytes) {
  if (!bytes.empty())
    std::memcpy(out, bytes.data(), bytes.size());
  return out + bytes.size();
}

/// Size of a length and of as many bytes.
static inline size_t delimitedSize(size_t length) { return getVarintSize(length) + length; }

static inline uint8_t *writeDelimited(uint8_t *out, StringRef bytes) {
  return writeBytes(writeVarint(out, bytes.size()), bytes);
}

//===----------------------------------------------------------------------===//
// The schema: tags of fields and the constant parts of attributes
//===----------------------------------------------------------------------===//

namespace {
enum WireType : unsigned { Varint = 0, Delimited = 2 };
constexpr unsigned fieldTag(unsigned field, WireType type) { return field << 3 | type; }

constexpr uint8_t NodeId = fieldTag(1, Varint);
constexpr uint8_t NodeName = fieldTag(2, Delimited);
constexpr uint8_t NodeTypeTag = fieldTag(3, Varint);
constexpr uint8_t NodeCtrlDeps = fieldTag(4, Delimited);
constexpr uint8_t NodeDataDeps = fieldTag(5, Delimited);
constexpr uint8_t NodeDuration = fieldTag(7, Varint);
constexpr uint8_t NodeAttr = fieldTag(10, Delimited);
constexpr uint8_t MetadataVersion = fieldTag(1, Delimited);
constexpr uint8_t MetadataAttr = fieldTag(2, Delimited);
constexpr uint8_t AttributeName = fieldTag(1, Delimited);
constexpr uint8_t ListValue = fieldTag(1, Delimited);

/// Field numbers of AttributeProto's values.
enum ValueField : unsigned {
  Int32 = 7,
  Int64 = 9,
  Uint64 = 13,
  Bool = 27,
  BoolList = 28,
  String = 29,
  StringList = 30
};

/// The part of an attribute before its value: the name's field and the value's tag.
template <size_t Size> struct AttributeHead {
  std::array<uint8_t, Size> bytes;
  static constexpr size_t size() { return Size; }
};

template <ValueField Field, size_t N> consteval auto attributeHead(const char (&name)[N]) {
  constexpr unsigned tag = fieldTag(Field, Field > Bool ? Delimited : Varint);
  constexpr size_t tagSize = tag >= 0x80 ? 2 : 1;
  AttributeHead<2 + (N - 1) + tagSize> head{};
  head.bytes[0] = fieldTag(1, Delimited);
  head.bytes[1] = N - 1;
  std::copy(name, name + N - 1, head.bytes.begin() + 2);
  if (tagSize == 2) {
    head.bytes[N + 1] = (tag & 0x7f) | 0x80;
    head.bytes[N + 2] = tag >> 7;
  } else {
    head.bytes[N + 1] = tag;
  }
  return head;
}

constexpr auto IsCpuOp = attributeHead<Bool>("is_cpu_op");
constexpr auto NumOps = attributeHead<Int64>("num_ops");
constexpr auto OtherOps = attributeHead<Int64>("other_ops");
constexpr auto RecomputedOps = attributeHead<Int64>("recomputed_ops");
constexpr auto TensorSize = attributeHead<Uint64>("tensor_size");
constexpr auto CommType = attributeHead<Int64>("comm_type");
constexpr auto CommSize = attributeHead<Int64>("comm_size");
constexpr auto PgName = attributeHead<String>("pg_name");
constexpr auto InvolvedDim = attributeHead<BoolList>("involved_dim");
constexpr auto CommDst = attributeHead<Int32>("comm_dst");
constexpr auto CommSrc = attributeHead<Int32>("comm_src");
constexpr auto CommTag = attributeHead<Int32>("comm_tag");
constexpr auto IssueStream = attributeHead<Int64>("issue_stream");
constexpr auto OpType = attributeHead<String>("op_type");
constexpr auto Inputs = attributeHead<StringList>("inputs");
constexpr auto DurationPicos = attributeHead<Int64>("duration_picos");
constexpr auto UnitNumber = attributeHead<Int32>("unit");
constexpr auto Level = attributeHead<Int32>("level");
constexpr auto Outputs = attributeHead<StringList>("outputs");

/// The attribute every node has, whole: `is_cpu_op` is false. Its last byte is the value.
constexpr auto cpuAttribute = [] {
  std::array<uint8_t, IsCpuOp.size() + 3> bytes{};
  bytes[0] = NodeAttr;
  bytes[1] = IsCpuOp.size() + 1;
  std::copy(IsCpuOp.bytes.begin(), IsCpuOp.bytes.end(), bytes.begin() + 2);
  return bytes;
}();

template <size_t Size> size_t attributeSize(const AttributeHead<Size> &, size_t valueSize) {
  return 1 + delimitedSize(Size + valueSize);
}
template <size_t Size> uint8_t *writeHead(uint8_t *out, const AttributeHead<Size> &head, size_t valueSize) {
  *out++ = NodeAttr;
  out = writeVarint(out, Size + valueSize);
  std::memcpy(out, head.bytes.data(), Size);
  return out + Size;
}

//===----------------------------------------------------------------------===//
// One node
//===----------------------------------------------------------------------===//

/// Both walks over a node. The first fills the sizes the second one needs.
class NodeMessage {
public:
  NodeMessage(const NodeFields &node, ArrayRef<uint64_t> slots) : node(node), slots(slots) { size = measure(); }

  size_t getFramedSize() const { return getVarintSize(size) + size; }

  void write(TraceBuffer &out, std::vector<SlotPlace> *places) {
    uint8_t *begin = out.grow(getVarintSize(size) + size);
    bufferBegin = out.data();
    this->places = places;
    uint8_t *end = writeBody(writeVarint(begin, size));
    (void)end;
    assert(end == out.data() + out.size() && "the two walks disagree");
  }

private:
  size_t measure();
  uint8_t *writeBody(uint8_t *out);

  static size_t packedSize(ArrayRef<uint64_t> values) {
    size_t size = 0;
    for (uint64_t value : values)
      size += getVarintSize(value);
    return size;
  }
  static uint8_t *writePacked(uint8_t *out, uint8_t tag, ArrayRef<uint64_t> values, size_t size) {
    if (values.empty())
      return out;
    *out++ = tag;
    out = writeVarint(out, size);
    for (uint64_t value : values)
      out = writeVarint(out, value);
    return out;
  }

  template <size_t Size> size_t numberSize(const AttributeHead<Size> &head, TaskValue value) const {
    return attributeSize(head, getVarintSize(value.resolve(slots)));
  }
  template <size_t Size> uint8_t *writeNumber(uint8_t *out, const AttributeHead<Size> &head, TaskValue value) {
    uint64_t number = value.resolve(slots);
    out = writeHead(out, head, getVarintSize(number));
    notePlace(out, value, /*decimal=*/false);
    return writeVarint(out, number);
  }

  size_t groupSize() const {
    uint64_t group = node.group.resolve(slots);
    return group ? attributeSize(PgName, delimitedSize(getDecimalSize(group))) : 0;
  }
  uint8_t *writeGroup(uint8_t *out) {
    uint64_t group = node.group.resolve(slots);
    if (!group)
      return out;
    size_t digits = getDecimalSize(group);
    out = writeVarint(writeHead(out, PgName, delimitedSize(digits)), digits);
    notePlace(out, node.group, /*decimal=*/true);
    return writeDecimal(out, group);
  }

  /// A message of packed booleans, each a byte.
  size_t networkDimsSize() const {
    return node.networkDims.empty()
               ? 0
               : attributeSize(InvolvedDim, delimitedSize(1 + delimitedSize(node.networkDims.size())));
  }
  uint8_t *writeNetworkDims(uint8_t *out) {
    if (node.networkDims.empty())
      return out;
    size_t size = 1 + delimitedSize(node.networkDims.size());
    out = writeVarint(writeHead(out, InvolvedDim, delimitedSize(size)), size);
    *out++ = ListValue;
    return writeDelimited(out, llvm::toStringRef(node.networkDims));
  }

  /// Bytes of a list `[name, bytes, name, bytes, ...]` without its own length.
  size_t tensorListSize(ArrayRef<TensorUse> tensors) const {
    size_t size = 0;
    for (const TensorUse &tensor : tensors)
      size += 2 + delimitedSize(tensor.name.size()) + delimitedSize(getDecimalSize(tensor.bytes.resolve(slots)));
    return size;
  }
  template <size_t Size>
  uint8_t *writeTensors(uint8_t *out, const AttributeHead<Size> &head, ArrayRef<TensorUse> tensors, size_t size) {
    out = writeVarint(writeHead(out, head, delimitedSize(size)), size);
    for (const TensorUse &tensor : tensors) {
      *out++ = ListValue;
      out = writeDelimited(out, tensor.name);
      uint64_t bytes = tensor.bytes.resolve(slots);
      *out++ = ListValue;
      out = writeVarint(out, getDecimalSize(bytes));
      notePlace(out, tensor.bytes, /*decimal=*/true);
      out = writeDecimal(out, bytes);
    }
    return out;
  }

  void notePlace(const uint8_t *out, TaskValue value, bool decimal) {
    if (places && value.isSlot())
      places->push_back({size_t(out - bufferBegin), value.getSlot(), decimal});
  }

  const NodeFields &node;
  ArrayRef<uint64_t> slots;
  std::vector<SlotPlace> *places = nullptr;
  const uint8_t *bufferBegin = nullptr;
  size_t size = 0;
  size_t ctrlSize = 0;
  size_t dataSize = 0;
  size_t inputsSize = 0;
  size_t outputsSize = 0;
};
} // namespace

static bool isCommunication(ChakraNodeType type) {
  return type >= ChakraNodeType::CommSend && type <= ChakraNodeType::CommColl;
}

size_t NodeMessage::measure() {
  size_t size = 2 + cpuAttribute.size(); // type and is_cpu_op
  if (node.type == ChakraNodeType::Invalid)
    size -= 2;
  if (node.id)
    size += 1 + getVarintSize(node.id);
  if (!node.name.empty())
    size += 1 + delimitedSize(node.name.size());
  if (!node.ctrlDeps.empty())
    size += 1 + delimitedSize(ctrlSize = packedSize(node.ctrlDeps));
  if (!node.dataDeps.empty())
    size += 1 + delimitedSize(dataSize = packedSize(node.dataDeps));
  if (node.times && node.times->micros)
    size += 1 + getVarintSize(node.times->micros);

  switch (node.type) {
  case ChakraNodeType::Comp:
    size += numberSize(NumOps, node.numOps) + numberSize(TensorSize, node.tensorSize);
    if (node.otherOps.resolve(slots))
      size += numberSize(OtherOps, node.otherOps);
    if (node.recomputedOps.resolve(slots))
      size += numberSize(RecomputedOps, node.recomputedOps);
    break;
  case ChakraNodeType::MemLoad:
  case ChakraNodeType::MemStore:
    size += numberSize(TensorSize, node.tensorSize);
    break;
  case ChakraNodeType::CommColl:
    size += numberSize(CommType, uint64_t(node.commType)) + numberSize(CommSize, node.commSize) + groupSize() +
            networkDimsSize();
    if (node.collectiveTag)
      size += numberSize(CommTag, *node.collectiveTag);
    break;
  case ChakraNodeType::CommSend:
  case ChakraNodeType::CommRecv:
    // comm_dst and comm_src have the same length.
    size += numberSize(CommDst, node.peer) + numberSize(CommSize, node.commSize) + numberSize(CommTag, node.tag);
    break;
  case ChakraNodeType::Invalid:
  case ChakraNodeType::Metadata:
  case ChakraNodeType::Storage:
  case ChakraNodeType::Batch:
  case ChakraNodeType::Checkpoint:
    break;
  }
  if (node.stream)
    size += numberSize(IssueStream, node.stream);
  if (!node.opType.empty())
    size += attributeSize(OpType, delimitedSize(node.opType.size()));
  if (node.times) {
    if (node.type != ChakraNodeType::CommRecv)
      size += numberSize(DurationPicos, node.times->picos);
    size += numberSize(UnitNumber, node.times->unit);
    if (isCommunication(node.type))
      size += numberSize(Level, node.times->level);
  }
  if (node.inputs)
    size += attributeSize(Inputs, delimitedSize(inputsSize = tensorListSize(*node.inputs)));
  if (node.outputs)
    size += attributeSize(Outputs, delimitedSize(outputsSize = tensorListSize(*node.outputs)));
  return size;
}

uint8_t *NodeMessage::writeBody(uint8_t *out) {
  if (node.id) {
    *out++ = NodeId;
    out = writeVarint(out, node.id);
  }
  if (!node.name.empty()) {
    *out++ = NodeName;
    out = writeDelimited(out, node.name);
  }
  if (node.type != ChakraNodeType::Invalid) {
    *out++ = NodeTypeTag;
    *out++ = uint8_t(node.type);
  }
  out = writePacked(out, NodeCtrlDeps, node.ctrlDeps, ctrlSize);
  out = writePacked(out, NodeDataDeps, node.dataDeps, dataSize);
  if (node.times && node.times->micros) {
    *out++ = NodeDuration;
    out = writeVarint(out, node.times->micros);
  }
  std::memcpy(out, cpuAttribute.data(), cpuAttribute.size());
  out += cpuAttribute.size();
  out[-1] = node.isCpuOp;

  switch (node.type) {
  case ChakraNodeType::Comp:
    out = writeNumber(out, NumOps, node.numOps);
    if (node.otherOps.resolve(slots))
      out = writeNumber(out, OtherOps, node.otherOps);
    if (node.recomputedOps.resolve(slots))
      out = writeNumber(out, RecomputedOps, node.recomputedOps);
    out = writeNumber(out, TensorSize, node.tensorSize);
    break;
  case ChakraNodeType::MemLoad:
  case ChakraNodeType::MemStore:
    out = writeNumber(out, TensorSize, node.tensorSize);
    break;
  case ChakraNodeType::CommColl:
    out = writeNumber(out, CommType, uint64_t(node.commType));
    out = writeNumber(out, CommSize, node.commSize);
    out = writeGroup(out);
    out = writeNetworkDims(out);
    if (node.collectiveTag)
      out = writeNumber(out, CommTag, *node.collectiveTag);
    break;
  case ChakraNodeType::CommSend:
  case ChakraNodeType::CommRecv:
    out = writeNumber(out, node.type == ChakraNodeType::CommSend ? CommDst : CommSrc, node.peer);
    out = writeNumber(out, CommSize, node.commSize);
    out = writeNumber(out, CommTag, node.tag);
    break;
  case ChakraNodeType::Invalid:
  case ChakraNodeType::Metadata:
  case ChakraNodeType::Storage:
  case ChakraNodeType::Batch:
  case ChakraNodeType::Checkpoint:
    break;
  }
  if (node.stream)
    out = writeNumber(out, IssueStream, node.stream);
  if (!node.opType.empty()) {
    out = writeHead(out, OpType, delimitedSize(node.opType.size()));
    out = writeDelimited(out, node.opType);
  }
  if (node.times) {
    if (node.type != ChakraNodeType::CommRecv)
      out = writeNumber(out, DurationPicos, node.times->picos);
    out = writeNumber(out, UnitNumber, node.times->unit);
    if (isCommunication(node.type))
      out = writeNumber(out, Level, node.times->level);
  }
  if (node.inputs)
    out = writeTensors(out, Inputs, *node.inputs, inputsSize);
  if (node.outputs)
    out = writeTensors(out, Outputs, *node.outputs, outputsSize);
  return out;
}

/// Calls `visit` for every number of the node that may be a slot.
template <typename Visitor> static void visitValues(const NodeFields &node, Visitor visit) {
  for (TaskValue value : {node.numOps, node.otherOps, node.recomputedOps, node.tensorSize, node.group, node.commSize,
                          node.peer, node.tag})
    visit(value);
  for (const auto &tensors : {node.inputs, node.outputs})
    if (tensors)
      for (const TensorUse &tensor : *tensors)
        visit(tensor.bytes);
}

bool NodeFields::hasSlots() const {
  bool found = false;
  visitValues(*this, [&](TaskValue value) { found |= value.isSlot(); });
  return found;
}

void TraceBuffer::reallocate(size_t count) {
  size_t newCapacity = std::max<size_t>({4096, capacity * 2, used + count});
  std::unique_ptr<uint8_t[]> larger(new uint8_t[newCapacity]);
  if (used)
    std::memcpy(larger.get(), bytes.get(), used);
  bytes = std::move(larger);
  capacity = newCapacity;
}

/// The attributes of metadata are few, and written like the fields of any message.
static std::string encodeMetadata(const TraceMetadata &metadata) {
  std::string text;
  auto appendVarint = [](std::string &out, uint64_t value) {
    uint8_t digits[10];
    out.append(digits, writeVarint(digits, value));
  };
  auto appendText = [&](std::string &out, uint8_t tag, StringRef value) {
    out += char(tag);
    appendVarint(out, value.size());
    out += value;
  };
  if (!metadata.version.empty())
    appendText(text, MetadataVersion, metadata.version);
  auto appendAttribute = [&](StringRef name, llvm::function_ref<void(std::string &)> appendValue) {
    std::string attribute;
    appendText(attribute, AttributeName, name);
    appendValue(attribute);
    appendText(text, MetadataAttr, attribute);
  };
  for (const auto &[name, value] : metadata.texts)
    appendAttribute(name, [&](std::string &out) {
      appendVarint(out, fieldTag(String, Delimited));
      appendVarint(out, value.size());
      out += value;
    });
  for (const auto &[name, value] : metadata.numbers)
    appendAttribute(name, [&](std::string &out) {
      appendVarint(out, fieldTag(Int64, Varint));
      appendVarint(out, uint64_t(value));
    });
  return text;
}

void NodeEncoder::appendMetadata(const TraceMetadata &metadata) {
  std::string text = encodeMetadata(metadata);
  writeDelimited(out.grow(delimitedSize(text.size())), text);
}

void NodeEncoder::append(const NodeFields &node, ArrayRef<uint64_t> slots, std::vector<SlotPlace> *places) {
  NodeMessage(node, slots).write(out, places);
}

size_t stage::getEncodedSize(const NodeFields &node, ArrayRef<uint64_t> slots) {
  return NodeMessage(node, slots).getFramedSize();
}

size_t stage::getEncodedMetadataSize(const TraceMetadata &metadata) {
  return delimitedSize(encodeMetadata(metadata).size());
}

//===----------------------------------------------------------------------===//
// Classes of ranks
//===----------------------------------------------------------------------===//

template <typename T> ArrayRef<T> ClassImage::copy(ArrayRef<T> array) {
  T *place = allocator.Allocate<T>(array.size());
  std::uninitialized_copy(array.begin(), array.end(), place);
  return {place, array.size()};
}

std::optional<ArrayRef<TensorUse>> ClassImage::copyTensors(const std::optional<ArrayRef<TensorUse>> &tensors) {
  if (!tensors)
    return std::nullopt;
  llvm::SmallVector<TensorUse, 8> owned;
  for (const TensorUse &tensor : *tensors)
    owned.push_back({tensor.name.copy(allocator), tensor.bytes});
  return copy(llvm::makeArrayRef(owned));
}

void ClassImage::append(const NodeFields &node) {
  ++numNodes;
  if (!node.hasSlots()) {
    NodeEncoder(fixed).append(node);
    return;
  }
  visitValues(node, [&](TaskValue value) {
    if (value.isSlot())
      numSlots = std::max(numSlots, value.getSlot() + 1);
  });
  NodeFields owned = node;
  owned.name = node.name.copy(allocator);
  owned.opType = node.opType.copy(allocator);
  owned.ctrlDeps = copy(node.ctrlDeps);
  owned.dataDeps = copy(node.dataDeps);
  owned.networkDims = copy(node.networkDims);
  owned.inputs = copyTensors(node.inputs);
  owned.outputs = copyTensors(node.outputs);
  varying.push_back({fixed.size(), owned});
}

void ClassImage::appendRank(ArrayRef<uint64_t> slots, TraceBuffer &out, std::vector<SlotPlace> *places) const {
  assert(slots.size() >= numSlots && "a slot has no value");
  NodeEncoder encoder(out);
  size_t done = 0;
  for (const VaryingNode &node : varying) {
    out.append(fixed.data() + done, node.position - done);
    done = node.position;
    encoder.append(node.fields, slots, places);
  }
  out.append(fixed.data() + done, fixed.size() - done);
}

bool RankEncoder::hasWidthsOf(ArrayRef<uint64_t> slots) const {
  if (last.size() != slots.size())
    return false;
  // A value stands as a varint in some places and in decimal in others; some are not written at all where they are 0.
  for (auto [before, now] : llvm::zip(last, slots))
    if (getVarintSize(before) != getVarintSize(now) || getDecimalSize(before) != getDecimalSize(now) || !before != !now)
      return false;
  return true;
}

ArrayRef<uint8_t> RankEncoder::encode(ArrayRef<uint64_t> slots) {
  if (buffer.size() && hasWidthsOf(slots)) {
    for (const SlotPlace &place : places) {
      uint64_t value = slots[place.slot];
      if (value == last[place.slot])
        continue;
      uint8_t *out = buffer.data() + place.offset;
      place.decimal ? writeDecimal(out, value) : writeVarint(out, value);
    }
  } else {
    buffer.clear();
    places.clear();
    image.appendRank(slots, buffer, &places);
  }
  last.assign(slots.begin(), slots.end());
  return buffer.getBytes();
}
