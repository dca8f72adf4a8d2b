//===- PartsTest.cpp - what parts of a workload send each other -----------===//
#include "ParsedGraph.h"
#include "stage/IR/Channel.h"
#include "stage/Interp/Prove.h"
#include "stage/Interp/Tensor.h"
#include <random>

using namespace stage;

namespace {
class PartsTest : public ::testing::Test, protected GraphSource {
protected:
  std::unique_ptr<Workload> parseParts(llvm::StringRef source) {
    unsigned buffer = sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(source, "test.sir"), SMLoc());
    return parseWorkload(sizes, diags, buffer);
  }
};

/// Axes of a mesh dealt out over the dims of a value: each on one of the two dims, or on none.
struct RandomPart {
  std::string mesh, sharding;
  RandomPart(std::mt19937 &random, llvm::StringRef names, bool isMirrored) {
    std::string dims[2];
    for (char name : names) {
      mesh += std::string(mesh.empty() ? "" : ", ") + name + " = " + std::to_string(2 + random() % 2);
      if (unsigned dim = random() % 3; dim < 2)
        dims[dim] += std::string(dims[dim].empty() ? "" : ", ") + name + (isMirrored && dims[dim].empty() ? " mirrored" : "");
    }
    sharding = "{" + (dims[0].empty() ? "_" : "(" + dims[0] + ")") + ", " +
               (dims[1].empty() ? "_" : "(" + dims[1] + ")") + "}";
  }
};

bool contains(llvm::ArrayRef<Positions> outer, llvm::ArrayRef<Positions> inner) {
  for (auto [more, fewer] : llvm::zip(outer, inner))
    if (!std::includes(more.begin(), more.end(), fewer.begin(), fewer.end()))
      return false;
  return true;
}
} // namespace

/// Against the positions that ranks hold, one by one.
TEST_F(PartsTest, EachRankIsSentWhatItNeedsByOneThatHasIt) {
  std::mt19937 random(1);
  unsigned numConnected = 0;
  for (unsigned round = 0; round < 300; ++round) {
    bool isMirrored = round % 3 == 2;
    RandomPart from(random, "abc", isMirrored), to(random, "pqr", isMirrored);
    std::string text = "graph A { dim S; dim D; mesh (" + from.mesh + "); bind S = 432, D = 432;\n" +
                       "forward { %x = input : f32[S, D] " + from.sharding + "; return %x; } }\n" +
                       "graph B { dim S; dim D; mesh (" + to.mesh + "); bind S = 432, D = 432;\n" +
                       "forward { %x = input : f32[S, D] " + to.sharding + "; return %x; } }\n";
    std::unique_ptr<Workload> workload = parseParts(text);
    ASSERT_TRUE(workload) << text << messages.str();
    Program programs[2];
    Channel channel;
    for (unsigned part : {0, 1})
      programs[part].graph = workload->parts[part].get();
    channel.from = &programs[0];
    channel.to = &programs[1];
    channel.output = (*workload->parts[0]->getForward().begin())->getResult();
    channel.input = (*workload->parts[1]->getForward().begin())->getResult();
    bool isConnected = connect(channel).empty();
    auto getPiece = [&](unsigned part, const Value *value, int64_t rank) {
      return *PieceMap(*workload->parts[part]).getPositions(value->type, value->sharding, rank);
    };
    int64_t numSenders = workload->parts[0]->mesh.getNumRanks(), numReceivers = workload->parts[1]->mesh.getNumRanks();
    if (isConnected) {
      ++numConnected;
      std::vector<unsigned> numSent(numSenders, 0);
      for (int64_t rank = 0; rank < numReceivers; ++rank) {
        int64_t sender = channel.senders[rank];
        ASSERT_TRUE(contains(getPiece(0, channel.output, sender), getPiece(1, channel.input, rank))) << text;
        ASSERT_EQ(channel.receivers[sender][numSent[sender]++], rank);
      }
      for (int64_t a = 0; a < numSenders; ++a) {
        EXPECT_EQ(numSent[a], channel.receivers[a].size());
        for (int64_t b = 0; b < numSenders; ++b)
          if (getPiece(0, channel.output, a) == getPiece(0, channel.output, b)) {
            EXPECT_LE(numSent[a], numSent[b] + 1) << text;
          }
      }
    } else if (!isMirrored) { // of mirrored ones some would fit by chance
      bool allFit = true;
      for (int64_t rank = 0; rank < numReceivers; ++rank) {
        bool fits = false;
        for (int64_t sender = 0; sender < numSenders; ++sender)
          fits |= contains(getPiece(0, channel.output, sender), getPiece(1, channel.input, rank));
        allFit &= fits;
      }
      EXPECT_FALSE(allFit) << text;
    }
  }
  EXPECT_GT(numConnected, 50u);
}

/// A pass that changes what another part is sent is seen, though each part alone runs alike everywhere.
TEST_F(PartsTest, AProofSeesAChangedOutput) {
  auto write = [](llvm::StringRef factor) {
    return "graph A { dim S; bind S = 4; inference; op times(x: [s]) -> (result: [s] = x[s] * " + factor.str() +
           ");\nforward { %x = input : f32[S] {_}; %y = times(%x) : f32[S] {_}; return %y; } }\n"
           "graph B { dim N; bind N = 4; inference; op twice(x: [s]) -> (result: [s] = x[s] * 2);\n"
           "forward { %z = input : f32[N] {_}; %w = twice(%z) : f32[N] {_}; return %w; } }\n"
           "transfer A %y to B %z;\n";
  };
  for (llvm::StringRef factor : {"3", "5"}) {
    std::unique_ptr<Workload> reference = parseParts(write("3")), workload = parseParts(write(factor));
    ASSERT_TRUE(reference && workload) << messages.str();
    std::optional<std::vector<Proof>> proofs = prove(*reference, *workload, diags);
    EXPECT_EQ(proofs.has_value(), factor == "3") << messages.str();
    EXPECT_EQ(llvm::StringRef(messages.str()).contains("'y' of microbatch 0, which another part receives, is wrong") &&
                  llvm::StringRef(messages.str()).contains("[proof-output]"),
              factor == "5");
  }
}
