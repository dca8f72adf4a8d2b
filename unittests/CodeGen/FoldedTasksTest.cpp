//===- FoldedTasksTest.cpp - how long the nodes of equal rounds are -------===//
//
// What is counted is asserted against encoding each node of each round.
//
//===----------------------------------------------------------------------===//
#include "stage/Tasks/FoldedTasks.h"
#include "EncodeTask.h"
#include "stage/IR/graph/Graph.h"
#include "gtest/gtest.h"

using namespace stage;

namespace {
/// A number of a node in a round.
struct Line {
  int64_t first, slope;
  uint64_t at(int64_t round) const { return uint64_t(first + slope * round); }
};

/// Collectives have this one.
const Op op(OpKind::AllReduce, SMLoc());

/// One node in each round.
struct LinearNode {
  TaskKind type;
  Line id, tag, iteration;
  std::vector<Line> data, control;
  bool named = true;

  void visit(int64_t round, llvm::function_ref<void(const Task &, int64_t)> take) const {
    std::vector<uint64_t> dataDeps, ctrlDeps;
    for (const Line &line : data)
      dataDeps.push_back(line.at(round));
    for (const Line &line : control)
      ctrlDeps.push_back(line.at(round));
    llvm::sort(dataDeps);
    llvm::sort(ctrlDeps);
    Task node;
    node.kind = type;
    node.op = &op;
    node.id = id.at(round);
    node.tag = tag.at(round);
    std::string name = "layers." + std::to_string(iteration.at(round)) + ".q F1";
    if (named)
      node.name = name;
    node.data = llvm::ArrayRef<uint64_t>(dataDeps);
    node.order = llvm::ArrayRef<uint64_t>(ctrlDeps);
    take(node, iteration.at(round));
  }
};

class FoldedTasksTest : public ::testing::Test {
protected:
  bool sample(const std::vector<LinearNode> &nodes, int64_t last) {
    for (auto [sample, round] : {std::pair(RoundSamples::First, int64_t(0)),
                                 std::pair(RoundSamples::Second, int64_t(1)), std::pair(RoundSamples::Last, last)}) {
      samples.begin(sample);
      for (const LinearNode &node : nodes)
        node.visit(round, [&](const Task &fields, int64_t iteration) { samples.add(fields, iteration); });
    }
    return samples.areLinear(last);
  }

  void expectExact(const std::vector<LinearNode> &nodes, int64_t last) {
    ASSERT_TRUE(sample(nodes, last));
    uint64_t counted = 0, numNodes = 0, encoded = 0;
    samples.count(2, last, [&](const Task &fields, uint64_t times) {
      counted += times * getEncodedSize(encode(fields), {});
      numNodes += times;
    });
    for (int64_t round = 2; round < last; ++round)
      for (const LinearNode &node : nodes)
        node.visit(round, [&](const Task &fields, int64_t) { encoded += getEncodedSize(encode(fields), {}); });
    EXPECT_EQ(numNodes, nodes.size() * uint64_t(last - 2));
    EXPECT_EQ(counted, encoded);
  }

  RoundSamples samples;
};

/// Forward: ids over 127/128, 16383/16384 and 2097151/2097152, iterations over 9/10, 99/100, 999/1000.
TEST_F(FoldedTasksTest, NumbersThatGrow) {
  expectExact({{TaskKind::Compute, {100, 13}, {0, 0}, {3, 1}, {{99, 13}, {50, 0}}, {{92, 13}}},
               {TaskKind::Collective, {101, 13}, {7, 2}, {3, 1}, {{100, 13}}, {}},
               {TaskKind::Send, {102, 13}, {100, 1}, {3, 1}, {{101, 13}}, {}, /*named=*/false}},
              1500);
  expectExact({{TaskKind::Compute, {16000, 1999}, {0, 0}, {0, 8}, {{15999, 1999}}, {}}}, 1500);
}

/// Backward: iterations and the nodes of the unit before go down, to 128, 16384 and below.
TEST_F(FoldedTasksTest, NumbersThatShrink) {
  expectExact({{TaskKind::Compute, {20000, 7}, {0, 0}, {1012, -1}, {{17000, -16}, {1000, -1}, {19998, 7}}, {}}}, 1000);
  expectExact({{TaskKind::Compute, {20000, 7}, {0, 0}, {1000, -1}, {{128, 0}}, {{16384, -1}}},
               {TaskKind::Compute, {20001, 7}, {0, 0}, {999, -1}, {{1001, -1}}, {{1127, -1}}}},
              999);
}

/// A dependency that passes another: in between the two are one, and what is first in the list grows by another slope.
TEST_F(FoldedTasksTest, DependenciesThatCross) {
  auto node = [](Line a, Line b, bool bIsData) {
    LinearNode node = {TaskKind::Compute, {20000, 7}, {0, 0}, {10, 1}, {a}, {}};
    (bIsData ? node.data : node.control).push_back(b);
    return node;
  };
  for (bool bIsData : {false, true}) {
    EXPECT_TRUE(sample({node({1000, 7}, {999, 7}, bIsData)}, 100));
    EXPECT_TRUE(sample({node({1000, -7}, {300, 0}, bIsData)}, 100));
    EXPECT_FALSE(sample({node({1000, -7}, {301, 0}, bIsData)}, 100)); // in the last round
    EXPECT_FALSE(sample({node({1000, -7}, {500, 0}, bIsData)}, 100));
    EXPECT_FALSE(sample({node({1000, -7}, {996, 0}, bIsData)}, 100)); // in the second
  }
}

/// Rounds in which something else is there.
TEST_F(FoldedTasksTest, RoundsThatDiffer) {
  LinearNode node = {TaskKind::Compute, {20000, 7}, {0, 0}, {10, 1}, {{19999, 7}}, {}};
  for (RoundSamples::Sample different : {RoundSamples::Second, RoundSamples::Last}) {
    ASSERT_TRUE(sample({node}, 100));
    int64_t round = different == RoundSamples::Second ? 1 : 100;
    LinearNode more = node;
    more.control.push_back({5, 0});
    samples.begin(different);
    more.visit(round, [&](const Task &fields, int64_t iteration) { samples.add(fields, iteration); });
    EXPECT_FALSE(samples.areLinear(100));
  }
}
} // namespace
