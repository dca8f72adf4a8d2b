//===- ArrivalsTest.cpp - when what a unit needs begins to arrive ---------===//
//
// Expected numbers follow from the rule: the last unit before it that has work.
//
//===----------------------------------------------------------------------===//
#include "stage/Walk/Arrivals.h"
#include "ParsedGraph.h"

using namespace stage;

namespace {
/// Forward, of chunk 0, and the step have an op; forward of chunk 1 has none.
class ArrivalsTest : public GraphTest {
protected:
  void SetUp() override {
    read("graph G {\n"
         "  op half(x: [b]) -> (result: [b] = x[b] / 2);\n"
         "  forward {\n"
         "    %x = input : f32[4];\n"
         "    %y = half(%x) : f32[4];\n"
         "    return %y;\n"
         "  }\n"
         "}\n");
    ProgramItem work;
    graph->walk([&](Op &op) {
      if (op.kind == OpKind::Compute)
        work.op = &op;
    });
    ASSERT_TRUE(work.op);
    for (PhaseKind kind : {PhaseKind::Forward, PhaseKind::Reduce, PhaseKind::Step}) {
      UnitTemplate &unit = stage.templates.emplace_back();
      unit.kind = kind;
      unit.items = {work};
    }
    UnitTemplate &empty = stage.templates.emplace_back();
    empty.chunk = 1;
  }

  void add(PhaseKind kind, unsigned chunk = 0) { stage.units.push_back({kind, unsigned(stage.units.size()), chunk}); }
  std::vector<int> listLoaders(unsigned steps = 1) {
    Arrivals arrivals(*graph, stage, steps);
    std::vector<int> loaders;
    for (unsigned position = 0; position < stage.units.size(); ++position)
      loaders.push_back(arrivals.getLoader(position) ? int(*arrivals.getLoader(position)) : -1);
    return loaders;
  }

  StageProgram stage;
};

TEST_F(ArrivalsTest, TheLastUnitThatHasWorkLoads) {
  for (unsigned chunk : {1, 0, 0, 1, 1, 0})
    add(PhaseKind::Forward, chunk);
  EXPECT_EQ(listLoaders(), (std::vector<int>{-1, -1, 1, 2, 2, 2}));
  EXPECT_EQ(Arrivals(*graph, stage).listPosts(), (std::vector<unsigned>{0, 0, 1, 2, 2, 2}));
}

TEST_F(ArrivalsTest, PostsOfTheProgramAreKept) {
  for (unsigned i = 0; i < 4; ++i)
    add(PhaseKind::Forward);
  stage.posts = {0, 0, 0};
  EXPECT_EQ(listLoaders(), (std::vector<int>{-1, 0, 1, 2}));
  EXPECT_EQ(Arrivals(*graph, stage).listPosts(), (std::vector<unsigned>{0, 0, 0, 2}));
}

TEST_F(ArrivalsTest, TheEndOfAStepLoadsTheNextOne) {
  for (unsigned step = 0; step < 2; ++step) {
    add(PhaseKind::Forward);
    add(PhaseKind::Reduce);
    add(PhaseKind::Step);
  }
  EXPECT_EQ(listLoaders(2), (std::vector<int>{-1, -1, -1, 2, -1, -1}));
  // Without work at its end the next step is loaded by the last unit that loads.
  stage.templates[2].items.clear();
  EXPECT_EQ(listLoaders(2), (std::vector<int>{-1, -1, -1, 0, -1, -1}));
}

TEST_F(ArrivalsTest, InputsAreNoWork) {
  graph->walk([&](Op &op) {
    ProgramItem item;
    item.op = &op;
    EXPECT_EQ(hasWork(*graph, item), op.kind == OpKind::Compute);
  });
}
} // namespace
