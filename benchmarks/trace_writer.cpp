//===- trace_writer.cpp - how fast are traces encoded? --------------------===//
//
// Bytes per second of the same nodes, by protobuf's generated classes and by the three
// layers of stage/CodeGen/NodeWriter.h. The node mix is that of a tensor-parallel
// transformer: two computes to one collective, every 50th node a send.
//
//===----------------------------------------------------------------------===//
#include "et_def.pb.h"
#include "stage/CodeGen/NodeWriter.h"
#include <benchmark/benchmark.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>

using namespace stage;

namespace {
constexpr size_t numNodes = 10000;

/// The nodes of a rank; what differs between ranks is in two slots.
struct Workload {
  explicit Workload(bool withSlots) {
    deps.resize(numNodes);
    nodes.resize(numNodes);
    for (size_t id = 0; id < numNodes; ++id) {
      NodeFields &node = nodes[id];
      node.id = id;
      node.name = "layers.17.attention.qkv.forward";
      node.opType = "linear";
      deps[id] = id ? id - 1 : 0;
      if (id)
        node.ctrlDeps = llvm::makeArrayRef(deps[id]);
      node.numOps = 137438953472;
      node.tensorSize = 100663296;
      node.commSize = 67108864;
      node.tag = id;
      if (id % 50 == 0)
        node.type = ChakraNodeType::CommSend;
      else if (id % 3 == 0)
        node.type = ChakraNodeType::CommColl;
      node.group = withSlots ? TaskValue::slot(0) : TaskValue(1234);
      node.peer = withSlots ? TaskValue::slot(1) : TaskValue(4321);
    }
  }
  std::vector<uint64_t> deps;
  std::vector<NodeFields> nodes;
};

void countBytes(benchmark::State &state, size_t bytesPerRank) {
  state.SetBytesProcessed(int64_t(state.iterations() * bytesPerRank));
  state.counters["nodes/s"] = benchmark::Counter(double(state.iterations() * numNodes), benchmark::Counter::kIsRate);
}

void encodeByProtobuf(benchmark::State &state) {
  Workload workload(/*withSlots=*/false);
  TraceBuffer buffer;
  for (const NodeFields &node : workload.nodes)
    NodeEncoder(buffer).append(node);
  std::vector<ChakraProtoMsg::Node> messages(numNodes);
  google::protobuf::io::ArrayInputStream input(buffer.data(), int(buffer.size()));
  for (ChakraProtoMsg::Node &message : messages)
    google::protobuf::util::ParseDelimitedFromZeroCopyStream(&message, &input, nullptr);
  std::vector<uint8_t> bytes(buffer.size());
  for (auto _ : state) {
    uint8_t *out = bytes.data();
    for (const ChakraProtoMsg::Node &message : messages) {
      out = google::protobuf::io::CodedOutputStream::WriteVarint32ToArray(uint32_t(message.ByteSizeLong()), out);
      out = message.SerializeWithCachedSizesToArray(out);
    }
    benchmark::DoNotOptimize(out);
  }
  countBytes(state, bytes.size());
}

void encodeNodes(benchmark::State &state) {
  Workload workload(/*withSlots=*/false);
  TraceBuffer buffer;
  for (auto _ : state) {
    buffer.clear();
    NodeEncoder encoder(buffer);
    for (const NodeFields &node : workload.nodes)
      encoder.append(node);
    benchmark::DoNotOptimize(buffer.data());
  }
  countBytes(state, buffer.size());
}

void appendRanks(benchmark::State &state) {
  Workload workload(/*withSlots=*/true);
  ClassImage image;
  for (const NodeFields &node : workload.nodes)
    image.append(node);
  TraceBuffer buffer;
  for (auto _ : state) {
    buffer.clear();
    image.appendRank({1234, 4321}, buffer);
    benchmark::DoNotOptimize(buffer.data());
  }
  countBytes(state, buffer.size());
}

/// Ranks of equal widths one after the other: only slots are written.
void encodeRanks(benchmark::State &state) {
  Workload workload(/*withSlots=*/true);
  ClassImage image;
  for (const NodeFields &node : workload.nodes)
    image.append(node);
  RankEncoder encoder(image);
  uint64_t rank = 0;
  size_t size = 0;
  for (auto _ : state) {
    uint64_t group = 1000 + rank++ % 9000;
    size = encoder.encode({group, group}).size();
    benchmark::DoNotOptimize(size);
  }
  countBytes(state, size);
}

void copyBytes(benchmark::State &state) {
  std::vector<char> from(size_t(1) << 26, 'x'), to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::DoNotOptimize(to.data());
  }
  state.SetBytesProcessed(int64_t(state.iterations() * from.size()));
}
} // namespace

BENCHMARK(encodeByProtobuf);
BENCHMARK(encodeNodes);
BENCHMARK(appendRanks);
BENCHMARK(encodeRanks);
BENCHMARK(copyBytes);
BENCHMARK_MAIN();
