//===- ReshardTest.cpp - the resharding planner, over all pairs -----------===//
//
// Law L6. For every mesh of one to three axes of sizes 2 and 3, every tensor of one to
// three dims and every pair of shardings of it, the plan is executed on what the ranks
// really hold (LayoutSimulation.h), must end at the target and must receive no more
// than the best sequence of at most three collectives, with local slices anywhere.
//
// That best sequence is found without the planner's rules: from each sharding every
// conceivable collective is tried on the ranks' data, and it is an edge if what comes
// out is what some sharding says. Axes over which both ends are replicated take no
// part, in the planner as in the search: the ranks along them hold and do the same.
//
//===----------------------------------------------------------------------===//
#include "stage/Transforms/sharding/Reshard.h"
#include "LayoutSimulation.h"
#include "gtest/gtest.h"
#include <chrono>
#include <map>

using namespace stage;
using namespace stage::test;

namespace {
/// A sharding as the test sees it.
struct State {
  std::vector<std::vector<int>> dims;
  uint32_t partial = 0;
  auto operator<=>(const State &) const = default;

  uint32_t getUsed() const {
    uint32_t used = partial;
    for (const auto &list : dims)
      for (int axis : list)
        used |= 1u << axis;
    return used;
  }
};

struct Edge {
  unsigned to;
  uint32_t axes;
  int64_t received; ///< Per rank, times the number of ranks so that it is an integer.
};

std::string toString(const State &state) {
  std::string text = "{";
  for (const auto &list : state.dims) {
    text += text.size() > 1 ? ", (" : "(";
    for (int axis : list)
      text += char('a' + axis);
    text += ")";
  }
  text += "} partial";
  for (int axis = 0; axis < 3; ++axis)
    if (state.partial >> axis & 1)
      text += std::string(" ") + char('a' + axis);
  return text;
}

class Search {
public:
  Search(std::vector<int> axisSizes, std::vector<int> extents)
      : axisSizes(std::move(axisSizes)), extents(std::move(extents)) {
    State state;
    state.dims.resize(this->extents.size());
    place(state, 0);
    for (unsigned i = 0; i < states.size(); ++i)
      numbers[states[i]] = i;
    for (unsigned i = 0; i < states.size(); ++i)
      byPositions[positionsOf(makeLayout(this->axisSizes, this->extents, states[i].dims, 0, 0))] = states[i].dims;
    for (int size : this->axisSizes)
      numRanks *= size;
    findEdges();
  }

  const std::vector<State> &getStates() const { return states; }
  int64_t getNumRanks() const { return numRanks; }
  test::Layout layoutOf(const State &state, uint32_t addends) const {
    return makeLayout(axisSizes, extents, state.dims, state.partial, addends);
  }

  /// For each target the least that at most three collectives receive, and how few collectives do that.
  struct Best {
    int64_t received = -1;
    int collectives = 0;
  };
  std::vector<Best> search(unsigned source, uint32_t idle) const {
    std::vector<int64_t> now(states.size(), -1);
    std::vector<Best> best(states.size());
    now[source] = 0;
    for (int collectives = 0; collectives <= 3; ++collectives) {
      if (collectives > 0) {
        std::vector<int64_t> next(states.size(), -1);
        for (unsigned i = 0; i < states.size(); ++i)
          if (now[i] >= 0)
            relax(collectiveEdges[i], now[i], idle, next);
        now = std::move(next);
      }
      // A slice adds axes, and `order` has states with fewer axes on dims first.
      for (unsigned i : order)
        if (now[i] >= 0)
          relax(sliceEdges[i], now[i], idle, now);
      for (unsigned i = 0; i < states.size(); ++i)
        if (now[i] >= 0 && (best[i].received < 0 || now[i] < best[i].received))
          best[i] = {now[i], collectives};
    }
    return best;
  }

private:
  static void relax(const std::vector<Edge> &edges, int64_t start, uint32_t idle, std::vector<int64_t> &lengths) {
    for (const Edge &edge : edges)
      if (!(edge.axes & idle) && (lengths[edge.to] < 0 || start + edge.received < lengths[edge.to]))
        lengths[edge.to] = start + edge.received;
  }

  bool divides(const State &state) const {
    for (unsigned d = 0; d < extents.size(); ++d) {
      int pieces = 1;
      for (int axis : state.dims[d])
        pieces *= axisSizes[axis];
      if (extents[d] % pieces != 0)
        return false;
    }
    return true;
  }

  /// All shardings: axis by axis, at every place of every list, or partial, or nowhere.
  void place(State state, int axis) {
    if (axis == int(axisSizes.size())) {
      if (divides(state))
        states.push_back(state);
      return;
    }
    place(state, axis + 1);
    for (unsigned d = 0; d < state.dims.size(); ++d)
      for (size_t i = 0; i <= state.dims[d].size(); ++i) {
        State next = state;
        next.dims[d].insert(next.dims[d].begin() + i, axis);
        place(next, axis + 1);
      }
    state.partial |= 1u << axis;
    place(state, axis + 1);
  }

  using Positions = std::vector<std::vector<std::vector<int>>>;
  static Positions positionsOf(const test::Layout &layout) {
    Positions positions;
    for (const Piece &piece : layout.ranks)
      positions.push_back(piece.positions);
    return positions;
  }

  /// The sharding that says what these ranks hold.
  std::optional<unsigned> recognise(const test::Layout &layout, uint32_t addends) const {
    auto found = byPositions.find(positionsOf(layout));
    if (found == byPositions.end())
      return std::nullopt;
    for (uint32_t partial = addends;; partial = (partial - 1) & addends) {
      State state{found->second, partial};
      auto number = numbers.find(state);
      if (number != numbers.end() && layoutOf(state, addends).ranks == layout.ranks)
        return number->second;
      if (partial == 0)
        return std::nullopt;
    }
  }

  void findEdges() {
    collectiveEdges.resize(states.size());
    sliceEdges.resize(states.size());
    std::vector<std::vector<int>> choices;
    chooseOrdered({}, choices);
    int numDims = extents.size();
    for (unsigned i = 0; i < states.size(); ++i) {
      uint32_t addends = states[i].partial;
      test::Layout from = layoutOf(states[i], addends);
      for (const std::vector<int> &axes : choices) {
        int64_t group = 1;
        uint32_t set = 0;
        for (int axis : axes) {
          group *= axisSizes[axis];
          set |= 1u << axis;
        }
        int64_t local = from.getLocalElements();
        auto offer = [&](std::vector<std::vector<Edge>> &edges, const std::optional<test::Layout> &result,
                         int64_t received) {
          std::optional<unsigned> to = result ? recognise(*result, addends) : std::nullopt;
          if (to && *to != i)
            edges[i].push_back({*to, set, received});
        };
        offer(collectiveEdges, allReduce(from, axes), 2 * local * (group - 1) * (numRanks / group));
        for (int d = 0; d < numDims; ++d) {
          offer(collectiveEdges, allGather(from, axes, d), local * (group - 1) * numRanks);
          offer(collectiveEdges, reduceScatter(from, axes, d), local * (group - 1) * (numRanks / group));
          offer(sliceEdges, slice(from, axes, d), 0);
          for (uint32_t sources = 1; sources < 1u << numDims; ++sources)
            offer(collectiveEdges, allToAll(from, axes, sources, d), local * (group - 1) * (numRanks / group));
        }
      }
    }
    for (unsigned i = 0; i < states.size(); ++i)
      order.push_back(i);
    auto numAxes = [&](unsigned i) {
      size_t count = 0;
      for (const auto &list : states[i].dims)
        count += list.size();
      return count;
    };
    std::stable_sort(order.begin(), order.end(), [&](unsigned a, unsigned b) { return numAxes(a) < numAxes(b); });
  }

  void chooseOrdered(std::vector<int> chosen, std::vector<std::vector<int>> &choices) const {
    if (!chosen.empty())
      choices.push_back(chosen);
    for (int axis = 0; axis < int(axisSizes.size()); ++axis) {
      if (std::count(chosen.begin(), chosen.end(), axis))
        continue;
      chosen.push_back(axis);
      chooseOrdered(chosen, choices);
      chosen.pop_back();
    }
  }

  std::vector<int> axisSizes, extents;
  int64_t numRanks = 1;
  std::vector<State> states;
  std::map<State, unsigned> numbers;
  std::map<Positions, std::vector<std::vector<int>>> byPositions;
  std::vector<std::vector<Edge>> collectiveEdges, sliceEdges;
  std::vector<unsigned> order;
};

Sharding toSharding(const State &state, ReduceKind reduce) {
  Sharding sharding;
  for (const auto &list : state.dims)
    sharding.dims.emplace_back(list.begin(), list.end());
  sharding.partial = state.partial;
  sharding.reduce = reduce;
  return sharding;
}

std::optional<test::Layout> execute(const test::Layout &from, const ReshardStep &step) {
  std::vector<int> axes(step.axes.begin(), step.axes.end());
  switch (step.kind) {
  case OpKind::AllGather:
    return allGather(from, axes, step.dim);
  case OpKind::AllReduce:
    return allReduce(from, axes);
  case OpKind::ReduceScatter:
    return reduceScatter(from, axes, step.dim);
  case OpKind::AllToAll: {
    uint32_t sources = 1u << step.dim;
    for (unsigned dim : step.moreDims)
      sources |= 1u << dim;
    return allToAll(from, axes, sources, step.toDim);
  }
  case OpKind::Slice:
    return slice(from, axes, step.dim);
  default:
    return std::nullopt;
  }
}

/// Checks the plans of all pairs; returns how many there are.
unsigned checkAllPairs(const std::vector<int> &axisSizes, const std::vector<int> &extents,
                       ReduceKind reduce = ReduceKind::Sum) {
  SizeContext sizes;
  Mesh mesh;
  for (size_t i = 0; i < axisSizes.size(); ++i) {
    std::string name(1, char('a' + i));
    mesh.addAxis({name, axisSizes[i], sizes.symbol(name), {}});
  }
  std::vector<int64_t> globals(extents.begin(), extents.end());
  int64_t elements = 1;
  for (int extent : extents)
    elements *= extent;
  Search search(axisSizes, extents);
  const std::vector<State> &states = search.getStates();
  uint32_t all = (1u << axisSizes.size()) - 1;
  unsigned pairs = 0;
  for (unsigned i = 0; i < states.size(); ++i) {
    std::map<uint32_t, std::vector<Search::Best>> bests;
    for (const State &target : states) {
      if (target.partial & ~states[i].partial)
        continue; // nothing becomes partial by communication
      ++pairs;
      std::string what = toString(states[i]) + " -> " + toString(target);
      ReshardPlan plan = planReshard(mesh, globals, toSharding(states[i], reduce), toSharding(target, reduce));
      test::Layout layout = search.layoutOf(states[i], states[i].partial);
      int64_t received = 0;
      int collectives = 0;
      for (const ReshardStep &step : plan.steps) {
        int64_t local = layout.getLocalElements(), group = mesh.getGroupSize(toSet(step.axes));
        std::optional<test::Layout> next = execute(layout, step);
        if (!next) {
          ADD_FAILURE() << what << ": " << getName(step.kind).str() << " cannot be done";
          return pairs;
        }
        layout = *next;
        State said{{}, step.result.partial};
        for (const AxisList &list : step.result.dims)
          said.dims.emplace_back(list.begin(), list.end());
        EXPECT_EQ(search.layoutOf(said, states[i].partial).ranks, layout.ranks)
            << what << ": " << getName(step.kind).str() << " does not make " << toString(said);
        bool reduces = step.kind == OpKind::AllReduce || step.kind == OpKind::ReduceScatter;
        EXPECT_EQ(step.reduce, reduces ? reduce : ReduceKind::Sum) << what;
        collectives += step.kind != OpKind::Slice;
        if (step.kind == OpKind::AllGather)
          received += local * (group - 1) * search.getNumRanks();
        else if (step.kind != OpKind::Slice)
          received += (step.kind == OpKind::AllReduce ? 2 : 1) * local * (group - 1) * (search.getNumRanks() / group);
      }
      EXPECT_EQ(search.layoutOf(target, states[i].partial).ranks, layout.ranks) << what << " ends elsewhere";
      // The number that the plan gives itself.
      EXPECT_EQ(plan.received.num * elements * search.getNumRanks(), plan.received.den * received) << what;
      uint32_t idle = all & ~states[i].getUsed() & ~target.getUsed();
      auto [best, isNew] = bests.try_emplace(idle);
      if (isNew)
        best->second = search.search(i, idle);
      const Search::Best &reference = best->second[&target - states.data()];
      if (reference.received >= 0) {
        EXPECT_LE(received, reference.received) << what;
        if (received == reference.received) {
          EXPECT_LE(collectives, reference.collectives) << what;
        }
      }
      if (testing::Test::HasFailure())
        return pairs;
    }
  }
  return pairs;
}

int product(const std::vector<int> &sizes) {
  int result = 1;
  for (int size : sizes)
    result *= size;
  return result;
}

TEST(ReshardTest, AllPairsOverOneAndTwoAxes) {
  for (int a : {2, 3})
    for (int numDims = 0; numDims <= 3; ++numDims) {
      checkAllPairs({a}, std::vector<int>(numDims, a));
      for (int b : {2, 3})
        for (ReduceKind reduce : {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min})
          checkAllPairs({a, b}, std::vector<int>(numDims, a * b), reduce);
    }
}

/// Every dim divides over all axes.
class ThreeAxes : public testing::TestWithParam<std::vector<int>> {};
TEST_P(ThreeAxes, AllPairs) {
  for (int numDims = 1; numDims <= 2; ++numDims)
    checkAllPairs(GetParam(), std::vector<int>(numDims, product(GetParam())));
  // r axes stand on three dims in order, or nowhere, in n(r) = 1, 4, 19, 106 ways. Over sources that are partial over p
  // axes and targets over p' of these: sum of C(3,p) n(3-p) C(p,p') n(3-p') = 11236 + 7125 + 1776 + 176.
  EXPECT_EQ(checkAllPairs(GetParam(), std::vector<int>(3, product(GetParam()))), 20313u);
}
// The order of sizes makes no difference but to ties: all places of all axes are tried. Hence one order each.
INSTANTIATE_TEST_SUITE_P(Reshard, ThreeAxes,
                         testing::Values(std::vector<int>{2, 2, 2}, std::vector<int>{2, 2, 3},
                                         std::vector<int>{3, 2, 3}, std::vector<int>{3, 3, 3}));

/// A mesh of n axes of size 2.
Mesh makeCube(SizeContext &sizes, int numAxes) {
  Mesh mesh;
  for (int i = 0; i < numAxes; ++i) {
    std::string name = "a" + std::to_string(i);
    mesh.addAxis({name, 2, sizes.symbol(name), {}});
  }
  return mesh;
}

AxisList makeList(int first, int last, int step = 1) {
  AxisList list;
  for (int axis = first; axis != last; axis += step)
    list.emplace_back(AxisId(axis));
  return list;
}

/// The steps of a plan, "all_to_all 3" for one over three axes. Checks that they lead to the target.
std::string describePlan(const Mesh &mesh, const Sharding &from, const Sharding &to) {
  std::vector<int64_t> extents(from.dims.size(), int64_t(1) << 40);
  ReshardPlan plan = planReshard(mesh, extents, from, to);
  EXPECT_EQ(plan.steps.back().result, to);
  std::string text;
  for (const ReshardStep &step : plan.steps)
    text += (text.empty() ? "" : ", ") + getName(step.kind).str() + " " + std::to_string(step.axes.size());
  return text;
}

TEST(ReshardTest, AxesThatStandTogetherTravelTogether) {
  SizeContext sizes;
  Mesh mesh = makeCube(sizes, 12);
  Sharding whole = Sharding::replicated(2), rows = whole, columns = whole, partial = whole, mixed = whole;
  rows.dims[0] = makeList(0, 12);
  columns.dims[1] = makeList(0, 12);
  partial.partial = (1 << 12) - 1;
  EXPECT_EQ(describePlan(mesh, rows, whole), "all_gather 12");
  EXPECT_EQ(describePlan(mesh, partial, whole), "all_reduce 12");
  EXPECT_EQ(describePlan(mesh, partial, rows), "reduce_scatter 12");
  EXPECT_EQ(describePlan(mesh, rows, columns), "all_to_all 12");
  EXPECT_EQ(describePlan(mesh, whole, rows), "slice 12");
  // Half of what is partial goes to each dim.
  mixed.dims[0] = makeList(0, 6);
  mixed.dims[1] = makeList(6, 12);
  EXPECT_EQ(describePlan(mesh, partial, mixed), "reduce_scatter 6, reduce_scatter 6");
  // Of axes that stood together half stay and half go to the other dim.
  EXPECT_EQ(describePlan(mesh, rows, mixed), "all_to_all 6");
}

/// From one layout to another is one exchange; an axis inside of it comes along or stays.
TEST(ReshardTest, Layouts) {
  SizeContext sizes;
  Mesh mesh = makeCube(sizes, 3);
  Sharding whole = Sharding::replicated(2), blocked = whole, mirrored = whole, inner = whole, other = whole;
  blocked.dims[0] = makeList(0, 1);
  mirrored.dims[0].emplace_back(0, stage::Layout::Mirrored);
  inner.dims[0] = mirrored.dims[0];
  inner.dims[0].emplace_back(1);
  other.dims[1] = makeList(0, 1);
  Sharding rotated = whole;
  rotated.dims[0].emplace_back(0, stage::Layout::Blocked, 1);
  EXPECT_EQ(describePlan(mesh, rotated, blocked), "all_to_all 1");
  EXPECT_EQ(describePlan(mesh, rotated, mirrored), "all_to_all 1");
  EXPECT_EQ(describePlan(mesh, rotated, whole), "all_gather 1");
  EXPECT_EQ(describePlan(mesh, whole, rotated), "slice 1");
  EXPECT_EQ(describePlan(mesh, blocked, mirrored), "all_to_all 1");
  EXPECT_EQ(describePlan(mesh, mirrored, blocked), "all_to_all 1");
  EXPECT_EQ(describePlan(mesh, mirrored, whole), "all_gather 1");
  EXPECT_EQ(describePlan(mesh, whole, mirrored), "slice 1");
  EXPECT_EQ(describePlan(mesh, mirrored, inner), "slice 1");
  EXPECT_EQ(describePlan(mesh, mirrored, other), "all_to_all 1");
  EXPECT_EQ(describePlan(mesh, other, mirrored), "all_to_all 1");
}

/// Growth: axes that all go different ways, one axis at a time or all orders turned round.
TEST(ReshardTest, ManyAxesTakeNoTime) {
  SizeContext sizes;
  for (int numAxes : {6, 12, 24}) {
    Mesh mesh = makeCube(sizes, numAxes);
    Sharding forwards = Sharding::replicated(2), backwards = forwards, across = forwards, partial = forwards;
    forwards.dims[0] = makeList(0, numAxes);
    backwards.dims[0] = makeList(numAxes - 1, -1, -1);
    across.dims[1] = makeList(numAxes - 1, -1, -1);
    partial.partial = toSet(forwards.dims[0]);
    auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(describePlan(mesh, forwards, across), "all_to_all " + std::to_string(numAxes));
    EXPECT_FALSE(describePlan(mesh, forwards, backwards).empty());
    EXPECT_EQ(describePlan(mesh, partial, backwards), "reduce_scatter " + std::to_string(numAxes));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1)) << numAxes << " axes";
  }
}

/// Dims that divide over some of the axes only: no plan may split them over others on the way.
TEST(ReshardTest, DimsThatDivideOverSomeAxesOnly) {
  checkAllPairs({2, 3}, {2, 3, 6});
  checkAllPairs({2, 3}, {4, 9, 2});
  checkAllPairs({2, 2, 3}, {4, 6, 5});
  checkAllPairs({2, 2, 3}, {2, 12, 3});
  checkAllPairs({2, 3, 3}, {3, 1, 18});
}
} // namespace
