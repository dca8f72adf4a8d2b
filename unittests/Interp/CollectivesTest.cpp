//===- CollectivesTest.cpp - pieces and collectives -----------------------===//
#include "Collectives.h"
#include "ParsedGraph.h"

using namespace stage;
using namespace stage::interp;

namespace {
class CollectivesTest : public ::testing::Test, protected GraphSource {
protected:
  /// A graph with one value split over mesh (a = 2, b = 3), outermost first.
  std::unique_ptr<Graph> parse(const std::string &rules, const std::string &body) {
    std::string source =
        "graph G { passes insert-communication; dim N; dim M; mesh (a = 2, b = 3); bind N = 12, M = 6; " + rules +
        " forward { " + body + " } }";
    auto graph = GraphSource::parse(source);
    EXPECT_TRUE(graph) << messages.str();
    return graph;
  }
  /// What every rank holds of a tensor whose elements are their own positions.
  std::vector<TensorRef> cut(const Graph &graph, const Value *value) {
    PieceMap pieces(graph);
    std::vector<TensorRef> result;
    for (int64_t rank = 0; rank < graph.mesh.getNumRanks(); ++rank) {
      Tensor piece(*pieces.getPositions(value->type, value->sharding, rank));
      forEachElement(piece.dims, [&](int64_t i, llvm::ArrayRef<int64_t> local) {
        for (unsigned d = 0; d < local.size(); ++d)
          piece.data[i] = 100 * piece.data[i] + piece.dims[d][local[d]];
      });
      result.push_back(std::make_shared<Tensor>(std::move(piece)));
    }
    return result;
  }
  /// Runs the op behind the returned value for all groups: every rank must get its piece of the result.
  void expectPieces(const Graph &graph) {
    const Op *op = (*std::prev(graph.getForward().end()))->getOperand(0)->getOp();
    auto inputs = cut(graph, op->getOperand(0)), expected = cut(graph, op->getResult());
    for (int64_t rank = 0; rank < graph.mesh.getNumRanks(); ++rank) {
      std::vector<int64_t> group = getGroup(graph, *op, rank);
      std::vector<TensorRef> theirs;
      for (int64_t member : group)
        theirs.push_back(inputs[member]);
      auto results = runCollective(graph, *op, /*operand=*/0, theirs);
      ASSERT_TRUE(results);
      size_t self = llvm::find(group, rank) - group.begin();
      ASSERT_LT(self, group.size());
      EXPECT_EQ((*results)[self].dims, expected[rank]->dims) << "rank " << rank;
      EXPECT_EQ((*results)[self].data, expected[rank]->data) << "rank " << rank;
    }
  }
};
} // namespace

TEST_F(CollectivesTest, PositionsOfAnOuterAndAnInnerAxis) {
  auto graph = parse("", "%x = input : f32[N] {(b, a)}; return %x;");
  PieceMap pieces(*graph);
  const Value *x = (*graph->getForward().begin())->getResult();
  // Rank 3*a + b has coordinates (a, b); b is outer: piece 2*b + a of 6.
  for (int64_t rank = 0; rank < 6; ++rank) {
    int64_t piece = 2 * (rank % 3) + rank / 3;
    EXPECT_EQ((*pieces.getPositions(x->type, x->sharding, rank))[0], (Positions{2 * piece, 2 * piece + 1}));
  }
}

TEST_F(CollectivesTest, MirroredBlocksComeInPairs) {
  EXPECT_EQ(*splitPositions(allPositions(8), 2, 0, stage::Layout::Mirrored), (Positions{0, 1, 6, 7}));
  EXPECT_EQ(*splitPositions(allPositions(8), 2, 1, stage::Layout::Mirrored), (Positions{2, 3, 4, 5}));
  EXPECT_FALSE(splitPositions(allPositions(6), 2, 0, stage::Layout::Mirrored));
  EXPECT_FALSE(splitPositions(allPositions(7), 2, 0, stage::Layout::Blocked));
}

TEST_F(CollectivesTest, PositionsComeInTurn) {
  EXPECT_EQ(*splitPositions(allPositions(8), 4, 1, stage::Layout::Cyclic), (Positions{1, 5}));
  EXPECT_FALSE(splitPositions(allPositions(7), 4, 1, stage::Layout::Cyclic));
}

TEST_F(CollectivesTest, GroupsSpanTheAxes) {
  auto graph = parse("", "%x = input : f32[N] {a}; %y = all_gather(%x) over a dim 0 : f32[N] {_}; return %y;");
  const Op *op = std::next(graph->getForward().begin())->get();
  EXPECT_EQ(getGroup(*graph, *op, 4), (std::vector<int64_t>{1, 4}));
}

TEST_F(CollectivesTest, EveryRankGetsItsPiece) {
  for (const char *body : {
           "%x = input : f32[N, M] {a, b}; %y = all_gather(%x) over a dim 0 : f32[N, M] {_, b}; return %y;",
           "%x = input : f32[N, M] {(a, b), _}; %y = all_gather(%x) over b dim 0 : f32[N, M] {a, _}; return %y;",
           "%x = input : f32[N, M] {(b, a), _}; %y = all_gather(%x) over (b, a) dim 0 : f32[N, M] {_, _}; return %y;",
           "%x = input : f32[N, M] {(a, b), _}; %y = all_to_all(%x) over b dim 0 to 1 : f32[N, M] {a, b}; return %y;",
           "%x = input : f32[N, M] {_, (b, a)}; %y = all_to_all(%x) over (b, a) dim 1 to 0 : f32[N, M] {(b, a), _}; "
           "return %y;",
           // Mirrored: coordinate 0 of a has blocks 0 and 3 of 4.
           "%x = input : f32[N, M] {a mirrored, b}; %y = all_gather(%x) over a mirrored dim 0 : f32[N, M] {_, b}; "
           "return %y;",
           "%x = input : f32[N, M] {(a mirrored, b), _}; %y = all_gather(%x) over b dim 0 : f32[N, M] {a mirrored, _}; "
           "return %y;",
           "%x = input : f32[N, M] {(a mirrored, b), _}; %y = all_to_all(%x) over b dim 0 to 1 : f32[N, M] {a "
           "mirrored, b}; return %y;",
           "%x = input : f32[N, M] {_, a}; %y = all_to_all(%x) over a mirrored dim 1 to 0 : f32[N, M] {a mirrored, _}; "
           "return %y;",
           // From one layout to another on the same dim.
           "%x = input : f32[N, M] {a, b}; %y = all_to_all(%x) over a mirrored dim 0 to 0 : f32[N, M] {a mirrored, b}; "
           "return %y;",
           "%x = input : f32[N, M] {a mirrored, b}; %y = all_to_all(%x) over a dim 0 to 0 : f32[N, M] {a, b}; return "
           "%y;",
           "%x = input : f32[N, M] {(a, b), _}; %y = all_to_all(%x) over (a mirrored, b) dim 0 to 0 : f32[N, M] {(a "
           "mirrored, b), _}; return %y;",
           // Rotated: coordinate 0 of b has block 2 of 3, coordinate 1 block 0.
           "%x = input : f32[N, M] {a, b rotated 2}; %y = all_gather(%x) over b rotated 2 dim 1 : f32[N, M] {a, _}; "
           "return %y;",
           "%x = input : f32[N, M] {(b rotated 1, a), _}; %y = all_to_all(%x) over a dim 0 to 1 : f32[N, M] {b rotated "
           "1, a}; return %y;",
           "%x = input : f32[N, M] {_, b}; %y = all_to_all(%x) over b mirrored rotated 1 dim 1 to 0 : f32[N, M] {b "
           "mirrored rotated 1, _}; return %y;",
           "%x = input : f32[N, M] {a, b rotated 2}; %y = all_to_all(%x) over b dim 1 to 1 : f32[N, M] {a, b}; return "
           "%y;",
           "%x = input : f32[N, M] {a, b}; %y = permute(%x) over b by 1 : f32[N, M] {a, b rotated 2}; return %y;",
           "%x = input : f32[N, M] {(a, b mirrored rotated 1), _}; %y = permute(%x) over b by 2 : f32[N, M] {(a, b "
           "mirrored rotated 2), _}; return %y;",
           "%x = input : f32[N, M] {(a, b), _}; %y = permute(%x) over a by 1 : f32[N, M] {(a rotated 1, b), _}; return "
           "%y;",
       }) {
    SCOPED_TRACE(body);
    expectPieces(*parse("", body));
  }
}

TEST_F(CollectivesTest, SumsAreCutInTheOrderOfTheGroup) {
  auto graph = parse("", "%x = input : f32[M] {_} partial(a, b); "
                         "%y = reduce_scatter(%x) over (b, a) dim 0 : f32[M] {(b, a)}; return %y;");
  const Op *op = std::next(graph->getForward().begin())->get();
  std::vector<int64_t> group = getGroup(*graph, *op, 0);
  EXPECT_EQ(group, (std::vector<int64_t>{0, 3, 1, 4, 2, 5}));
  std::vector<TensorRef> inputs;
  for (int64_t member : group) {
    Tensor tensor({allPositions(6)});
    for (int64_t i = 0; i < 6; ++i)
      tensor.data[i] = double(i) + 10.0 * double(member);
    inputs.push_back(std::make_shared<Tensor>(std::move(tensor)));
  }
  auto results = runCollective(*graph, *op, /*operand=*/0, inputs);
  ASSERT_TRUE(results);
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ((*results)[i].dims[0], Positions{i});
    EXPECT_EQ((*results)[i].data[0], 6.0 * double(i) + 10.0 * (0 + 1 + 2 + 3 + 4 + 5));
  }
}

TEST_F(CollectivesTest, GatheringAnOuterAxisAloneGivesOtherPositions) {
  // {(a, b)} without a is not {b}: the blocks of one b lie apart.
  auto graph =
      parse("", "%x = input : f32[N, M] {(a, b), _}; %y = all_gather(%x) over a dim 0 : f32[N, M] {b, _}; return %y;");
  const Op *op = std::next(graph->getForward().begin())->get();
  auto inputs = cut(*graph, op->getOperand(0));
  auto results = runCollective(*graph, *op, /*operand=*/0, {inputs[0], inputs[3]});
  ASSERT_TRUE(results);
  EXPECT_EQ((*results)[0].dims[0], (Positions{0, 1, 6, 7}));
}
