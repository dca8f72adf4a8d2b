//===- NodeWriterTest.cpp - the writer against protobuf's own encoding ----===//
#include "stage/CodeGen/NodeWriter.h"
#include "et_def.pb.h"
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <gtest/gtest.h>
#include <random>

using namespace stage;
namespace pb = ChakraProtoMsg;

namespace {
std::string toString(const TraceBuffer &buffer) {
  return std::string(reinterpret_cast<const char *>(buffer.data()), buffer.size());
}

/// Parses the framed message and gives it back in protobuf's own bytes.
template <typename Message> std::string reencode(const std::string &bytes, Message &message) {
  google::protobuf::io::ArrayInputStream input(bytes.data(), int(bytes.size()));
  bool cleanEnd = false;
  EXPECT_TRUE(google::protobuf::util::ParseDelimitedFromZeroCopyStream(&message, &input, &cleanEnd));
  EXPECT_EQ(input.ByteCount(), int64_t(bytes.size()));
  std::string again;
  google::protobuf::io::StringOutputStream output(&again);
  google::protobuf::util::SerializeDelimitedToZeroCopyStream(message, &output);
  return again;
}

const pb::AttributeProto *find(const pb::Node &node, const std::string &name) {
  for (const pb::AttributeProto &attribute : node.attr())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

/// Random nodes with small and large numbers, short and long strings.
class RandomNode {
public:
  explicit RandomNode(std::mt19937_64 &random) : random(random) {
    fields.type = ChakraNodeType(below(8));
    fields.id = number();
    fill(ctrl);
    fill(data);
    name.resize(pick({0, 1, 20, 200}), 'n');
    opType.resize(pick({0, 6, 300}), 't');
    fields.ctrlDeps = ctrl;
    fields.dataDeps = data;
    fields.name = name;
    fields.opType = opType;
    fields.isCpuOp = below(2);
    fields.numOps = number() >> 1;
    fields.otherOps = number() >> 1;
    fields.recomputedOps = number() >> 1;
    fields.stream = below(3) == 0 ? number() >> 1 : 0;
    fields.tensorSize = number();
    fields.commType = ChakraCommType(below(10));
    fields.group = number();
    fields.commSize = number() >> 1;
    fields.peer = number() & 0x7fffffff;
    fields.tag = number() & 0x7fffffff;
    if (below(3) == 0)
      fields.inputs = fill(inputs);
    if (below(3) == 0)
      fields.outputs = fill(outputs);
  }

  NodeFields fields;

private:
  uint64_t below(uint64_t end) { return random() % end; }
  size_t pick(std::initializer_list<size_t> choices) { return choices.begin()[below(choices.size())]; }
  /// All widths of varints occur.
  uint64_t number() {
    unsigned width = unsigned(below(65));
    return width == 0 ? 0 : random() >> (64 - width);
  }
  void fill(std::vector<uint64_t> &ids) {
    ids.resize(pick({0, 1, 3, 200}));
    for (uint64_t &id : ids)
      id = number();
  }
  llvm::ArrayRef<TensorUse> fill(std::vector<TensorUse> &tensors) {
    tensors.resize(pick({0, 1, 40}));
    for (TensorUse &tensor : tensors)
      tensor = {below(2) ? "layers.0.x" : "", number()};
    return tensors;
  }

  std::mt19937_64 &random;
  std::vector<uint64_t> ctrl, data;
  std::string name, opType;
  std::vector<TensorUse> inputs, outputs;
};
} // namespace

TEST(NodeEncoder, MetadataIsCanonical) {
  for (std::string version : {"", "1.0",
                              "0.0.4-a-version-name-long-enough-to-need-two-bytes-of-length-"
                              "0123456789012345678901234567890123456789012345678901234567890123456789"}) {
    TraceBuffer buffer;
    NodeEncoder(buffer).appendMetadata({version, {}, {}});
    pb::GlobalMetadata metadata;
    EXPECT_EQ(reencode(toString(buffer), metadata), toString(buffer));
    EXPECT_EQ(metadata.version(), version);
  }
}

TEST(NodeEncoder, NodesAreCanonical) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    RandomNode node(random);
    TraceBuffer buffer;
    NodeEncoder(buffer).append(node.fields);
    pb::Node message;
    ASSERT_EQ(reencode(toString(buffer), message), toString(buffer)) << message.ShortDebugString();
    ASSERT_EQ(message.id(), node.fields.id);
    ASSERT_EQ(message.name(), node.fields.name.str());
    ASSERT_EQ(int(message.type()), int(node.fields.type));
    ASSERT_EQ(find(message, "is_cpu_op")->bool_val(), node.fields.isCpuOp);
    ASSERT_TRUE(std::equal(message.ctrl_deps().begin(), message.ctrl_deps().end(), node.fields.ctrlDeps.begin(),
                           node.fields.ctrlDeps.end()));
    ASSERT_TRUE(std::equal(message.data_deps().begin(), message.data_deps().end(), node.fields.dataDeps.begin(),
                           node.fields.dataDeps.end()));
  }
}

TEST(NodeEncoder, ComputeAttributes) {
  NodeFields node;
  node.numOps = 1024;
  node.otherOps = 24;
  node.recomputedOps = 100;
  node.tensorSize = 96;
  node.opType = "linear";
  TraceBuffer buffer;
  NodeEncoder(buffer).append(node);
  pb::Node message;
  reencode(toString(buffer), message);
  ASSERT_EQ(message.attr_size(), 6);
  EXPECT_EQ(find(message, "recomputed_ops")->value_case(), pb::AttributeProto::kInt64Val);
  EXPECT_EQ(find(message, "recomputed_ops")->int64_val(), 100);
  EXPECT_EQ(find(message, "other_ops")->value_case(), pb::AttributeProto::kInt64Val);
  EXPECT_EQ(find(message, "other_ops")->int64_val(), 24);
  EXPECT_EQ(find(message, "is_cpu_op")->value_case(), pb::AttributeProto::kBoolVal);
  EXPECT_FALSE(find(message, "is_cpu_op")->bool_val());
  EXPECT_EQ(find(message, "num_ops")->value_case(), pb::AttributeProto::kInt64Val);
  EXPECT_EQ(find(message, "num_ops")->int64_val(), 1024);
  EXPECT_EQ(find(message, "tensor_size")->value_case(), pb::AttributeProto::kUint64Val);
  EXPECT_EQ(find(message, "tensor_size")->uint64_val(), 96u);
  EXPECT_EQ(find(message, "op_type")->string_val(), "linear");
}

TEST(NodeEncoder, CollectiveAttributes) {
  NodeFields node;
  node.type = ChakraNodeType::CommColl;
  node.commType = ChakraCommType::ReduceScatter;
  node.commSize = 4096;
  node.group = 17;
  node.collectiveTag = 300;
  node.stream = 2;
  TraceBuffer buffer;
  NodeEncoder(buffer).append(node);
  pb::Node message;
  reencode(toString(buffer), message);
  ASSERT_EQ(message.attr_size(), 6);
  EXPECT_EQ(find(message, "issue_stream")->value_case(), pb::AttributeProto::kInt64Val);
  EXPECT_EQ(find(message, "issue_stream")->int64_val(), 2);
  EXPECT_EQ(find(message, "comm_tag")->value_case(), pb::AttributeProto::kInt32Val);
  EXPECT_EQ(find(message, "comm_tag")->int32_val(), 300);
  EXPECT_EQ(find(message, "comm_type")->value_case(), pb::AttributeProto::kInt64Val);
  EXPECT_EQ(find(message, "comm_type")->int64_val(), pb::REDUCE_SCATTER);
  EXPECT_EQ(find(message, "comm_size")->value_case(), pb::AttributeProto::kInt64Val);
  EXPECT_EQ(find(message, "comm_size")->int64_val(), 4096);
  EXPECT_EQ(find(message, "pg_name")->string_val(), "17");
}

TEST(NodeEncoder, GroupOfAllRanksHasNoName) {
  NodeFields node;
  node.type = ChakraNodeType::CommColl;
  node.commSize = 1;
  TraceBuffer buffer;
  NodeEncoder(buffer).append(node);
  pb::Node message;
  reencode(toString(buffer), message);
  EXPECT_EQ(find(message, "pg_name"), nullptr);
}

TEST(NodeEncoder, SendAndRecvAttributes) {
  NodeFields node;
  for (auto [type, peer] : {std::pair(ChakraNodeType::CommSend, "comm_dst"), {ChakraNodeType::CommRecv, "comm_src"}}) {
    node.type = type;
    node.peer = 3;
    node.commSize = 100;
    node.tag = 7;
    TraceBuffer buffer;
    NodeEncoder(buffer).append(node);
    pb::Node message;
    reencode(toString(buffer), message);
    ASSERT_EQ(message.attr_size(), 4);
    EXPECT_EQ(find(message, peer)->value_case(), pb::AttributeProto::kInt32Val);
    EXPECT_EQ(find(message, peer)->int32_val(), 3);
    EXPECT_EQ(find(message, "comm_size")->value_case(), pb::AttributeProto::kInt64Val);
    EXPECT_EQ(find(message, "comm_size")->int64_val(), 100);
    EXPECT_EQ(find(message, "comm_tag")->value_case(), pb::AttributeProto::kInt32Val);
    EXPECT_EQ(find(message, "comm_tag")->int32_val(), 7);
  }
}

TEST(NodeEncoder, TensorLists) {
  NodeFields node;
  TensorUse tensors[] = {{"x", 12}, {"w", 400}};
  node.inputs = llvm::makeArrayRef(tensors);
  node.outputs = llvm::ArrayRef<TensorUse>();
  TraceBuffer buffer;
  NodeEncoder(buffer).append(node);
  pb::Node message;
  reencode(toString(buffer), message);
  const auto &values = find(message, "inputs")->string_list().values();
  EXPECT_EQ(std::vector<std::string>(values.begin(), values.end()), (std::vector<std::string>{"x", "12", "w", "400"}));
  EXPECT_EQ(find(message, "outputs")->value_case(), pb::AttributeProto::kStringList);
  EXPECT_EQ(find(message, "outputs")->string_list().values_size(), 0);
}

/// A class whose ranks differ: the image must give the bytes that encoding each rank alone gives.
TEST(ClassImage, RanksAreAsIfEncodedAlone) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 50; ++round) {
    constexpr unsigned numSlots = 5;
    ClassImage image;
    image.appendMetadata({"1.0", {}, {}});
    std::vector<std::unique_ptr<RandomNode>> nodes;
    for (int i = 0; i < 40; ++i) {
      auto &node = nodes.emplace_back(std::make_unique<RandomNode>(random));
      if (random() % 3 == 0) {
        node->fields.group = TaskValue::slot(0);
        node->fields.peer = TaskValue::slot(1);
        node->fields.tag = TaskValue::slot(1);
        node->fields.numOps = TaskValue::slot(2);
        node->fields.tensorSize = TaskValue::slot(3);
        node->fields.commSize = TaskValue::slot(4);
      }
      image.append(node->fields);
    }
    EXPECT_EQ(image.getNumNodes(), 40u);
    RankEncoder encoder(image);
    uint64_t slots[numSlots] = {100, 100, 100, 100, 100};
    for (int rank = 0; rank < 60; ++rank) {
      // One changes at a time. Widths change as varints (127, 128), in decimal (9, 10; 99, 100), both or not at all;
      // a group 0 is as wide as 1, and yet is not written.
      constexpr uint64_t values[] = {0, 1, 9, 10, 99, 100, 127, 128, 129, 999, 1000, 0x7fffffff};
      slots[random() % numSlots] = values[random() % std::size(values)];

      TraceBuffer expected;
      NodeEncoder(expected).appendMetadata({"1.0", {}, {}});
      for (const auto &node : nodes) {
        NodeFields resolved = node->fields;
        for (TaskValue NodeFields::*member : {&NodeFields::group, &NodeFields::peer, &NodeFields::tag,
                                              &NodeFields::numOps, &NodeFields::tensorSize, &NodeFields::commSize})
          resolved.*member = (resolved.*member).resolve(slots);
        NodeEncoder(expected).append(resolved);
      }
      llvm::ArrayRef<uint8_t> bytes = encoder.encode(slots);
      ASSERT_EQ(bytes, expected.getBytes()) << "rank " << rank;
    }
  }
}

TEST(ClassImage, CopiesWhatItsNodesPointTo) {
  ClassImage image;
  {
    std::string name = "a name that is gone when the rank is written";
    std::string tensor = "tensor";
    std::vector<uint64_t> deps = {1, 2, 3};
    TensorUse uses[] = {{tensor, TaskValue::slot(1)}};
    NodeFields node;
    node.type = ChakraNodeType::CommColl;
    node.commSize = 8;
    node.group = TaskValue::slot(0);
    node.name = name;
    node.dataDeps = deps;
    node.inputs = llvm::makeArrayRef(uses);
    image.append(node);
    name.assign(name.size(), 'x');
    tensor.assign(tensor.size(), 'x');
    deps.assign(3, 9);
  }
  EXPECT_EQ(image.getNumSlots(), 2u);
  EXPECT_EQ(image.getNumVaryingNodes(), 1u);
  RankEncoder encoder(image);
  for (uint64_t rank = 0; rank < 3; ++rank) {
    llvm::ArrayRef<uint8_t> bytes = encoder.encode({rank + 1, 1000 + rank});
    pb::Node message;
    reencode(std::string(bytes.begin(), bytes.end()), message);
    EXPECT_EQ(message.name(), "a name that is gone when the rank is written");
    EXPECT_EQ(message.data_deps(2), 3u);
    EXPECT_EQ(find(message, "pg_name")->string_val(), std::to_string(rank + 1));
    EXPECT_EQ(find(message, "inputs")->string_list().values(0), "tensor");
    EXPECT_EQ(find(message, "inputs")->string_list().values(1), std::to_string(1000 + rank));
  }
}
