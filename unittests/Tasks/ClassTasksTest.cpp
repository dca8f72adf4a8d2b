//===- ClassTasksTest.cpp - ids and dependencies, counted by hand ------===//
//
// Layers y = x * g between an embedding e = x0 * w and a loss. An iteration is a node
// forward, y, and two backward, dg and dx. Two stages of two chunks have a layer each,
// so that virtual stage v runs iteration v:
//
//   stage 0   F0.0 e y send   F0.1 recv y send   B.1 recv dg dx send   B.0 recv dg dx dw
//   stage 1   F.0 recv y send F.1 recv y loss    B.1 dr dg dx send     B.0 recv dg dx send
//
//===----------------------------------------------------------------------===//
#include "stage/Tasks/ClassTasks.h"
#include "ProgramTest.h"
#include <map>
#include <set>

using namespace stage;

namespace {
constexpr const char *chunked = R"(graph Chain {
  dim B;
  mesh (pp = 2);
  bind B = 8;
  microbatches 2;
  optimizer sgd { state m: f32; flops = volume; }
  pipeline layers over pp {
    chunks 2;
    split 1, 1, 1, 1;
    units "F0.0 F1.0 F0.1 F1.1 B0.1 B1.1 B0.0 B1.0";
    units "F0.0 F1.0 F0.1 F1.1 B0.1 B1.1 B0.0 B1.0";
  }
  op scale(x: [b], g: [b]) -> (result: [b] = x[b] * g[b]);
  op scale.dx(dy: [b], g: [b]) -> (result: [b] = dy[b] * g[b]);
  op loss(x: [b]) -> (result: [] = sum[b](x[b]));
  op loss.dx[b](dy: []) -> (result: [b] = dy[]);
  forward {
    %x0 = input : f32[B] {_};
    %w = param : f32[B] {_};
    %e = scale(%x0, %w) : f32[B] {_};
    %r = repeat layers [4] loop 0 (%x = %e : f32[B] {_}) : f32[B] {_} do {
      %g = param : f32[B] {_};
      %y = scale(%x, %g) : f32[B] {_};
      yield %y;
    }
    %l = loss(%r) : f32[];
    return %l;
  }
  backward {
    %one = constant 1 : f32[];
    %dr = loss.dx(%one) [b = B] : f32[B] {_};
    %de = repeat layers [4] loop 0 reverse (%dy = %dr : f32[B] {_}) : f32[B] {_} do {
      %dg = scale.dx(%dy, %x) : f32[B] {_};
      %ag = accumulate(%dg, %g) : f32[B] {_};
      %dx = scale.dx(%dy, %g) : f32[B] {_};
      yield %dx;
    }
    %dw = scale.dx(%de, %x0) : f32[B] {_};
    %aw = accumulate(%dw, %w) : f32[B] {_};
  }
  step {
    update(%w, %aw);
    repeat layers [4] loop 0 () do {
      update(%g, %ag);
      yield;
    }
  }
})";

using Ids = std::vector<uint64_t>;

class ClassTasksTest : public ProgramTest {
protected:
  struct Node {
    TaskKind type;
    Ids data, control;
    uint64_t tag;
  };

  /// All nodes of a stage, by id. The ids must be dense and in order.
  std::vector<Node> lower(unsigned stage) {
    GroupTable groups(*program);
    TaskOptions options;
    RankClass rankClass;
    rankClass.stage = stage;
    ClassTasks tasks(*program, groups, options, rankClass, diags);
    std::vector<Node> nodes;
    names.clear();
    bases.clear();
    for (unsigned unit = 0; unit < tasks.getUnits().size(); ++unit) {
      names.push_back(tasks.getUnits()[unit].getName());
      bases.push_back(tasks.getUnits()[unit].base);
      tasks.makeUnit(unit, [&](const Task &node) {
        EXPECT_EQ(node.id, nodes.size());
        nodes.push_back({node.kind, node.data.vec(), node.order.vec(), node.tag.resolve({})});
      });
    }
    EXPECT_EQ(nodes.size(), countNodes(*program, program->stages[stage]));
    EXPECT_FALSE(diags.hasErrors()) << messages.str();
    return nodes;
  }

  std::vector<std::string> names;
  Ids bases;
};

TEST_F(ClassTasksTest, UnitsOfTwoChunksFollowEachOther) {
  build(chunked);
  EXPECT_EQ(lower(0).size(), 31u);
  EXPECT_EQ(names, (std::vector<std::string>{"F0.0", "F1.0", "F0.1", "F1.1", "B0.1", "B1.1", "B0.0", "B1.0", "step"}));
  EXPECT_EQ(bases, (Ids{0, 3, 6, 9, 12, 16, 20, 24, 28}));
  // The last stage has no weight of its own to update: a node per layer in the step.
  EXPECT_EQ(lower(1).size(), 30u);
  EXPECT_EQ(bases, (Ids{0, 3, 6, 9, 12, 16, 20, 24, 28}));
}

TEST_F(ClassTasksTest, TypesFollowTheTemplates) {
  build(chunked);
  std::vector<Node> nodes = lower(0);
  using T = TaskKind;
  std::vector<T> types;
  for (const Node &node : nodes)
    types.push_back(node.type);
  std::vector<T> expected;
  // Both microbatches of each.
  for (const std::vector<T> &unit : std::vector<std::vector<T>>{{T::Compute, T::Compute, T::Send},
                                                                {T::Receive, T::Compute, T::Send},
                                                                {T::Receive, T::Compute, T::Compute, T::Send},
                                                                {T::Receive, T::Compute, T::Compute, T::Compute}}) {
    expected.insert(expected.end(), unit.begin(), unit.end());
    expected.insert(expected.end(), unit.begin(), unit.end());
  }
  expected.insert(expected.end(), 3, T::Compute);
  EXPECT_EQ(types, expected);
}

TEST_F(ClassTasksTest, ValuesComeFromTheUnitOfTheirChunkAndMicrobatch) {
  build(chunked);
  std::vector<Node> nodes = lower(0);
  // F1.0: e, y of e, send of y.
  EXPECT_EQ(nodes[3].data, Ids());
  EXPECT_EQ(nodes[4].data, Ids({3}));
  EXPECT_EQ(nodes[5].data, Ids({4}));
  // F1.1 takes what it receives, not the y of chunk 0.
  EXPECT_EQ(nodes[9].data, Ids());
  EXPECT_EQ(nodes[10].data, Ids({9}));
  EXPECT_EQ(nodes[11].data, Ids({10}));
  // B0.1: dg of dy, which is received, and of x, which F0.1 received; dx needs dy and a parameter.
  EXPECT_EQ(nodes[13].data, Ids({6, 12}));
  EXPECT_EQ(nodes[14].data, Ids({12}));
  EXPECT_EQ(nodes[15].data, Ids({14}));
  // B1.0: x is the e of F1.0, and dg is added to what B0.0 left in the buffer; dw is of the loop's result, the dx.
  EXPECT_EQ(nodes[25].data, Ids({3, 21, 24}));
  EXPECT_EQ(nodes[26].data, Ids({24}));
  EXPECT_EQ(nodes[27].data, Ids({23, 26}));
  // The last stage's B1.1 starts from the loss: a constant, which has no node. Its x came in F1.1.
  nodes = lower(1);
  EXPECT_EQ(nodes[16].data, Ids());
  EXPECT_EQ(nodes[17].data, Ids({9, 13, 16}));
  EXPECT_EQ(nodes[18].data, Ids({16}));
}

TEST_F(ClassTasksTest, EachContributionWaitsForTheOneBefore) {
  build(chunked);
  std::vector<Node> nodes = lower(0);
  // dg of layer 2 in B0.1 and B1.1, of layer 0 in B0.0 and B1.0: each chain is of its own.
  EXPECT_EQ(nodes[13].data, Ids({6, 12}));
  EXPECT_EQ(nodes[17].data, Ids({9, 13, 16}));
  EXPECT_EQ(nodes[21].data, Ids({0, 20}));
  EXPECT_EQ(nodes[25].data, Ids({3, 21, 24}));
}

TEST_F(ClassTasksTest, ContributionsOfOneUnitWaitForEachOther) {
  // w is used twice: in B0 and B1 the second contribution is added to the first, and the first to what B0 left.
  build(R"(graph Tied {
    dim B;
    bind B = 8;
    microbatches 2;
    op scale(x: [b], g: [b]) -> (result: [b] = x[b] * g[b]);
    forward {
      %x = input : f32[B] {_};
      %w = param : f32[B] {_};
      %y = scale(%x, %w) : f32[B] {_};
      %z = scale(%y, %w) : f32[B] {_};
      return %z;
    }
    backward {
      %d1 = scale(%y, %x) : f32[B] {_};
      %a1 = accumulate(%d1, %w) : f32[B] {_};
      %d0 = scale(%x, %x) : f32[B] {_};
      %a0 = accumulate(%d0, %w) : f32[B] {_};
    }
    step { update(%w, %a0); }
  })");
  std::vector<Node> nodes = lower(0);
  EXPECT_EQ(names, (std::vector<std::string>{"F0", "B0", "F1", "B1", "step"}));
  ASSERT_EQ(nodes.size(), 9u); // y z, d1 d0, y z, d1 d0, update
  EXPECT_EQ(nodes[2].data, Ids({0}));
  EXPECT_EQ(nodes[3].data, Ids({2}));
  EXPECT_EQ(nodes[6].data, Ids({3, 4}));
  EXPECT_EQ(nodes[7].data, Ids({6}));
  EXPECT_EQ(nodes[8].data, Ids({7}));
}

TEST_F(ClassTasksTest, SeparateAccumulationsAreNodesOfTheirOwn) {
  std::string source = chunked, optimizer = "optimizer sgd";
  source.replace(source.find(optimizer), optimizer.size(),
                 "precision weight f32, activation f32, gradient f32, master f32, accumulate separate; optimizer sgd");
  build(source);
  std::vector<Node> nodes = lower(0);
  // One more per unit of chunk 1 (recv dg ag dx send) and two of chunk 0 (recv dg ag dx dw aw).
  ASSERT_EQ(nodes.size(), 31u + 2 * 1 + 2 * 2);
  EXPECT_EQ(bases, (Ids{0, 3, 6, 9, 12, 17, 22, 28, 34}));
  EXPECT_EQ(nodes[18].data, Ids({9, 17}));  // dg of B1.1 is a tensor of its own
  EXPECT_EQ(nodes[19].data, Ids({14, 18})); // and is added to what B0.1 left
  EXPECT_EQ(nodes[34].data, Ids({33}));     // w: aw of B1.0
  EXPECT_EQ(nodes[35].data, Ids({30}));     // g of layer 0: ag of B1.0
  EXPECT_EQ(nodes[36].data, Ids({19}));     // g of layer 2: ag of B1.1
}

TEST_F(ClassTasksTest, StepWaitsForTheLastContributionOfEachChunk) {
  build(chunked);
  std::vector<Node> nodes = lower(0);
  EXPECT_EQ(nodes[28].data, Ids({27})); // w: dw of B1.0
  EXPECT_EQ(nodes[29].data, Ids({25})); // g of layer 0: dg of B1.0
  EXPECT_EQ(nodes[30].data, Ids({17})); // g of layer 2: dg of B1.1
  nodes = lower(1);
  EXPECT_EQ(nodes[28].data, Ids({25})); // g of layer 1: dg of B1.0, after its recv
  EXPECT_EQ(nodes[29].data, Ids({17})); // g of layer 3: dg of B1.1, after its dr
}

TEST_F(ClassTasksTest, StepUsesItsOwnIterationOfTheSecondChunk) {
  // The gradient is scaled before the update: two nodes per layer in the step, the second a user of the first.
  std::string source = chunked, update = "update(%g, %ag);";
  source.replace(source.find(update), update.size(), "%s = scale(%ag, %ag) : f32[B] {_}; update(%g, %s);");
  build(source);
  std::vector<Node> nodes = lower(0);
  ASSERT_EQ(nodes.size(), 33u);
  EXPECT_EQ(nodes[29].data, Ids({25})); // layer 0: dg of B1.0
  EXPECT_EQ(nodes[30].data, Ids({29}));
  EXPECT_EQ(nodes[31].data, Ids({17})); // layer 2: dg of B1.1
  EXPECT_EQ(nodes[32].data, Ids({31}));
}

TEST_F(ClassTasksTest, ChainsAndPostedReceives) {
  build(chunked);
  std::vector<Node> nodes = lower(0);
  // A chain's dependency is left out where data carry it.
  EXPECT_EQ(nodes[1].control, Ids());
  EXPECT_EQ(nodes[3].control, Ids({1}));
  EXPECT_EQ(nodes[2].control, Ids());
  EXPECT_EQ(nodes[5].control, Ids({2}));
  // A recv waits for the last compute node of the unit two before its own, and does not end the chain of sends.
  EXPECT_EQ(nodes[6].control, Ids({1}));
  EXPECT_EQ(nodes[9].control, Ids({4}));
  EXPECT_EQ(nodes[8].control, Ids({5}));
  EXPECT_EQ(nodes[12].control, Ids({7}));
  EXPECT_EQ(nodes[24].control, Ids({18}));
  EXPECT_EQ(nodes[28].control, Ids());
  EXPECT_EQ(nodes[29].control, Ids({28}));
  EXPECT_EQ(nodes[30].control, Ids({29}));
}

TEST_F(ClassTasksTest, TagsOfAMessageAgreeAndNoTwoAreEqual) {
  build(chunked);
  std::map<TaskKind, std::multiset<uint64_t>> tags[2];
  for (unsigned stage : {0, 1})
    for (const Node &node : lower(stage))
      if (node.type != TaskKind::Compute)
        tags[stage][node.type].insert(node.tag);
  for (unsigned stage : {0, 1}) {
    const auto &sent = tags[stage][TaskKind::Send];
    EXPECT_EQ(sent, tags[1 - stage][TaskKind::Receive]);
    EXPECT_EQ(std::set<uint64_t>(sent.begin(), sent.end()).size(), sent.size());
  }
  // 3 boundaries, 2 directions, 2 microbatches: stage 0 sends forward over boundaries 0 and 2, and backward over 1.
  EXPECT_EQ(tags[0][TaskKind::Send].size(), 6u);
  EXPECT_EQ(tags[1][TaskKind::Send].size(), 6u);
}

TEST_F(ClassTasksTest, TooManyTags) {
  build(chunked);
  // 2 directions of 4 virtual stages with one value each: 8 tags per microbatch.
  auto check = [&](unsigned microbatches) {
    program->microbatches = microbatches;
    GroupTable groups(*program);
    TaskOptions options;
    ClassTasks tasks(*program, groups, options, RankClass(), diags);
    return tasks.checkTags();
  };
  EXPECT_TRUE(check(62'500'000));
  EXPECT_EQ(messages.str(), "");
  EXPECT_FALSE(check(62'500'001));
  EXPECT_NE(messages.str().find("error: the pipeline needs 500000008 different message tags, but simulators read "
                                "500000000 at most; use fewer microbatches or virtual stages [too-many-messages]"),
            std::string::npos)
      << messages.str();
}

TEST_F(ClassTasksTest, GroupsAreNumberedByFirstUseAndLowestRank) {
  // Stage 0 gathers over dp before the layers, each layer over dp and tp, stage 1 over tp after them.
  build(R"(graph Gathers {
  passes insert-communication;
    dim B;
    mesh (pp = 2, dp = 2, tp = 2);
    bind B = 8;
    microbatches 1;
    inference;
    pipeline layers over pp { split 1, 1; units "F0 B0"; units "F0 B0"; }
    op scale(x: [b], g: [b]) -> (result: [b] = x[b] * g[b]);
    forward {
      %x0 = input : f32[B] {_};
      %w = param : f32[B] {dp};
      %wg = all_gather(%w) over dp dim 0 : f32[B] {_};
      %e = scale(%x0, %wg) : f32[B] {_};
      %r = repeat layers [2] loop 0 (%x = %e : f32[B] {_}) : f32[B] {_} do {
        %g = param : f32[B] {(dp, tp)};
        %gg = all_gather(%g) over (dp, tp) dim 0 : f32[B] {_};
        %y = scale(%x, %gg) : f32[B] {_};
        yield %y;
      }
      %h = param : f32[B] {tp};
      %hg = all_gather(%h) over tp dim 0 : f32[B] {_};
      %z = scale(%r, %hg) : f32[B] {_};
      return %z;
    }
  })");
  GroupTable groups(*program);
  CommGroups expected = {{1, {0, 2}}, {2, {1, 3}}, {3, {0, 1, 2, 3}}, {4, {4, 5, 6, 7}}, {5, {4, 5}}, {6, {6, 7}}};
  CommGroups all;
  groups.addAll(all);
  EXPECT_EQ(all, expected);

  // Each class's collectives name the kinds that its stage uses, in order.
  auto getKinds = [&](unsigned stage) {
    RankClass rankClass;
    rankClass.stage = stage;
    TaskOptions options;
    ClassTasks tasks(*program, groups, options, rankClass, diags);
    Ids kinds;
    for (unsigned unit = 0; unit < tasks.getUnits().size(); ++unit)
      tasks.makeUnit(unit, [&](const Task &node) {
        if (node.kind == TaskKind::Collective) {
          EXPECT_TRUE(node.group.isSlot());
          EXPECT_EQ(tasks.getSlots()[node.group.getSlot()].kind, RankSlot::Kind::Group);
          kinds.push_back(tasks.getSlots()[node.group.getSlot()].groupKind);
        }
      });
    return kinds;
  };
  EXPECT_EQ(getKinds(0), Ids({0, 1}));
  EXPECT_EQ(getKinds(1), Ids({1, 2}));
  EXPECT_EQ(groups.getNumber(0, 3), 2u);
  EXPECT_EQ(groups.getNumber(1, 2), 3u);
  EXPECT_EQ(groups.getNumber(1, 5), 4u);
  EXPECT_EQ(groups.getNumber(2, 7), 6u);
}
} // namespace
