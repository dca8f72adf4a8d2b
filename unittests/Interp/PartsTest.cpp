//===- PartsTest.cpp - what parts of a workload send each other -----------===//
#include "ParsedGraph.h"
#include "stage/IR/graph/Channel.h"
#include "stage/Interp/Prove.h"
#include "stage/Interp/Tensor.h"
#include <random>
#include <set>

using namespace stage;
using namespace stage::interp;

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
        dims[dim] +=
            std::string(dims[dim].empty() ? "" : ", ") + name + (isMirrored && dims[dim].empty() ? " mirrored" : "");
    }
    sharding = "{" + (dims[0].empty() ? "_" : "(" + dims[0] + ")") + ", " +
               (dims[1].empty() ? "_" : "(" + dims[1] + ")") + "}";
  }
};

Positions intersect(const Positions &a, const Positions &b) {
  Positions both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}
} // namespace

/// Against the positions that ranks hold, one by one.
TEST_F(PartsTest, EachRankIsSentWhatItNeedsOnce) {
  std::mt19937 random(1);
  unsigned numConnected = 0, numOfSeveral = 0;
  for (unsigned round = 0; round < 300; ++round) {
    bool isMirrored = round % 3 == 2;
    unsigned batches = isMirrored ? 1 : 1 + round % 4; // of the sender, one behind the other in S of the receiver
    RandomPart from(random, "ab", isMirrored), to(random, "pq", isMirrored);
    std::string text = "graph A { dim S; dim D; mesh (" + from.mesh + "); bind S = 72, D = 72;\n" +
                       "forward { %x = input : f32[S, D] " + from.sharding + "; return %x; } }\n" +
                       "graph B { dim S; dim D; mesh (" + to.mesh + "); bind S = " + std::to_string(72 * batches) +
                       ", D = 72;\n" + "forward { %x = input : f32[S, D] " + to.sharding + "; return %x; } }\n";
    std::unique_ptr<Workload> workload = parseParts(text);
    ASSERT_TRUE(workload) << text << messages.str();
    Program programs[2];
    Exchange exchange;
    for (unsigned part : {0, 1})
      programs[part].graph = workload->parts[part].get();
    exchange.from = &programs[0];
    exchange.to = &programs[1];
    exchange.batches = batches;
    const Value *output = (*workload->parts[0]->getForward().begin())->getResult();
    const Value *input = (*workload->parts[1]->getForward().begin())->getResult();
    bool isConnected = connect(exchange, output->sharding, input->sharding).empty();
    auto getPiece = [&](unsigned part, const Value *value, int64_t rank) {
      return *PieceMap(*workload->parts[part]).getPositions(value->type, value->sharding, rank);
    };
    int64_t numSenders = workload->parts[0]->mesh.getNumRanks(), numReceivers = workload->parts[1]->mesh.getNumRanks();
    if (isConnected) {
      ++numConnected;
      numOfSeveral += exchange.numMessages > 1;
      std::vector<unsigned> numSent(numSenders, 0);
      std::set<std::pair<int64_t, unsigned>> sentTo;
      for (int64_t rank = 0; rank < numSenders; ++rank)
        for (unsigned batch = 0; batch < batches; ++batch) {
          EXPECT_EQ(exchange.getReceivers(rank, batch).size(), exchange.getReceivers(rank, 0).size()) << text;
          for (auto [receiver, message] : exchange.getReceivers(rank, batch)) {
            ASSERT_EQ(exchange.getSenders(receiver)[message].rank, rank) << text;
            ASSERT_EQ(exchange.getSenders(receiver)[message].batch, batch) << text;
            EXPECT_TRUE(sentTo.insert({receiver, message}).second) << text;
            ++numSent[rank];
          }
        }
      for (int64_t rank = 0; rank < numReceivers; ++rank) {
        // Whatever it needs is in one message, and all messages have as much.
        ASSERT_EQ(exchange.getSenders(rank).size(), exchange.numMessages);
        llvm::SmallVector<Positions, 4> needed = getPiece(1, input, rank);
        std::vector<bool> got(72 * 72 * batches);
        for (auto [sender, batch] : exchange.getSenders(rank)) {
          llvm::SmallVector<Positions, 4> held = getPiece(0, output, sender);
          EXPECT_EQ(held[0].size() * held[1].size() % exchange.numParts, 0u) << text;
          size_t part = held[0].size() * held[1].size() / exchange.numParts;
          for (int64_t &s : held[0])
            s += 72 * int64_t(batch);
          size_t count = 0;
          for (int64_t s : intersect(held[0], needed[0]))
            for (int64_t d : intersect(held[1], needed[1])) {
              ++count;
              EXPECT_FALSE(got[72 * s + d]) << text;
              got[72 * s + d] = true;
            }
          EXPECT_EQ(count, part) << text;
          EXPECT_EQ(count * exchange.numMessages, needed[0].size() * needed[1].size()) << text;
        }
      }
      for (int64_t a = 0; a < numSenders; ++a)
        for (int64_t b = 0; b < numSenders; ++b)
          if (getPiece(0, output, a) == getPiece(0, output, b)) {
            EXPECT_LE(numSent[a], numSent[b] + batches) << text; // one of each batch
          }
    } else if (!isMirrored) { // of mirrored ones some would fit by chance
      // Some rank needs less than all of a piece, and more than a piece has.
      bool isCutTwice = false;
      for (int64_t rank = 0; rank < numReceivers; ++rank)
        for (int64_t number = 0; number < numSenders * batches; ++number)
          for (unsigned d : {0, 1}) {
            int64_t sender = number / batches, batch = number % batches;
            Positions needed = getPiece(1, input, rank)[d], held = getPiece(0, output, sender)[d];
            for (int64_t &position : held)
              position += d == 0 ? 72 * batch : 0;
            Positions both = intersect(needed, held);
            isCutTwice |= !both.empty() && both != needed && both != held;
          }
      EXPECT_TRUE(isCutTwice) << text;
    }
  }
  EXPECT_GT(numConnected, 50u);
  EXPECT_GT(numOfSeveral, 25u);
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
    EXPECT_EQ(llvm::StringRef(messages.str()).contains("'y' of microbatch 0, which is returned, is wrong") &&
                  llvm::StringRef(messages.str()).contains("[proof-output]"),
              factor == "5");
  }
}
