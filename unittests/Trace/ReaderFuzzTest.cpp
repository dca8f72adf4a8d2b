//===- ReaderFuzzTest.cpp - damaged files are told, and do not crash ------===//
#include "TraceTest.h"
#include "stage/Trace/Diff.h"
#include "stage/Trace/Statistics.h"
#include "stage/Trace/TextForm.h"
#include "stage/Trace/Verify.h"
#include <random>

using namespace stage;
using namespace stage::trace;

namespace {
class ReaderFuzzTest : public TraceTest {
protected:
  void write(const std::string &file, llvm::ArrayRef<uint8_t> bytes) {
    std::error_code error;
    llvm::raw_fd_ostream stream(file, error);
    stream.write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    ASSERT_FALSE(error);
  }
  /// All that stage-trace does with a folder whose file may be anything.
  void lookAt() {
    llvm::raw_null_ostream null;
    dumpTraces(root, {}, null, diags);
    printStatistics(root, {}, null, diags);
    verifyTraces(root, {}, null, diags);
    diffTraces(path("w.0.et"), path("w.1.et"), {}, null, diags);
    messages.clear();
  }
};
} // namespace

TEST_F(ReaderFuzzTest, SurvivesDamage) {
  TraceBuffer buffer;
  NodeEncoder encoder(buffer);
  encoder.appendMetadata({"1.0", {}, {}});
  for (uint64_t id = 0; id < 20; ++id) {
    uint64_t deps[] = {id - 1};
    TensorUse tensors[] = {{"x", 5}};
    NodeFields node;
    node.id = id;
    node.name = "layers.0.attention.q";
    node.type = ChakraNodeType(4 + id % 4);
    node.tensorSize = node.commSize = node.peer = 1;
    if (id)
      node.ctrlDeps = deps;
    node.inputs = llvm::makeArrayRef(tensors);
    encoder.append(node);
  }
  write(path("w.1.et"), buffer.getBytes());

  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    std::vector<uint8_t> bytes(buffer.data(), buffer.data() + buffer.size());
    for (unsigned changes = random() % 5; changes > 0; --changes)
      bytes[random() % bytes.size()] = random() % 2 ? uint8_t(random()) : uint8_t(random() % 2 ? 0xff : 0x80);
    if (random() % 4 == 0)
      bytes.resize(random() % bytes.size());
    if (random() % 4 == 0)
      bytes.insert(bytes.begin() + random() % (bytes.size() + 1), random() % 10, uint8_t(random()));
    write(path("w.0.et"), bytes);
    lookAt();
  }
}

TEST_F(ReaderFuzzTest, SurvivesNoise) {
  std::mt19937 random(4);
  write(path("w.1.et"), {0});
  for (int i = 0; i < 500; ++i) {
    std::vector<uint8_t> bytes(random() % 64);
    for (uint8_t &byte : bytes)
      byte = uint8_t(random());
    if (i % 3 == 0) {
      // Goes on after a gzip file's header.
      constexpr uint8_t header[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
      bytes.insert(bytes.begin(), std::begin(header), std::end(header));
    }
    write(path("w.0.et"), bytes);
    lookAt();
  }
}
