//===- Reshard.cpp - from one sharding to another (law L6) ----------------===//
//
// Problem: a value has one sharding and a user needs another. Find the collectives.
//
//   {S@cp} partial(tp)  ->  {S@(cp, tp)}     reduce_scatter over tp along S
//   {S@(cp, tp)}        ->  {S@cp}           all_gather over tp along S
//   {H@cp, S}           ->  {H, S@cp}        all_to_all over cp
//   {B@a, S@b, E}       ->  {B, S, E@(a, b)} all_to_all over (a, b), from two dims to one
//   {S@(a, b), D}       ->  {S@(b, a), D}    all_to_all over (a, b) to D, and back over (b, a)
//   {S@cp}              ->  {S@cp mirrored}  all_to_all over cp, from S to S
//
// Algorithm: shortest path (Dijkstra). Nodes are shardings, edges are steps, and the
// length of an edge is what a rank receives, then whether it is a collective, then 1.
// Of paths of one length the one whose steps come first is taken, in the order in
// which `visitSteps` makes them, so the outcome depends on nothing but the input.
//
// Axes enter and leave a dim at its inner end only: a gather of an outer axis leaves
// pieces that are no contiguous part. What follows for the size of the search:
//
//  * The outer axes that both lists of a dim begin with are never in the way; they
//    stay. The others, and the partial axes that must be reduced, are the movers.
//  * An axis over which the value is replicated before and after takes no part. (To
//    split an all_reduce over ranks that hold the same could save bytes; it would be
//    another program than the one that was asked for.)
//
//  * One step that leads there is the shortest path: each kind of step moves no more than its ranks lack, and what
//    takes several steps takes no fewer collectives. It is looked for first.
//
//  * With more than three movers, those that stand together before and after travel
//    together, as one: twelve axes of a gradient that is reduced are one axis. What
//    is still more than three is searched less: a dim has on the way only axes that
//    it begins with before or after, in that order.
//
// Limits: so a plan for more than three axes that go different ways is good, and not
// always the best.
//
//===----------------------------------------------------------------------===//
#include "stage/Transforms/sharding/Reshard.h"
#include "stage/Machine/Traffic.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ErrorHandling.h"
#include <queue>

using namespace stage;

namespace {
/// Length of a path. Compared in the order of the members.
struct Length {
  __int128 received = 0; ///< In units of Planner::unit.
  unsigned collectives = 0;
  unsigned steps = 0;

  friend auto operator<=>(const Length &, const Length &) = default;
};

struct Node {
  Sharding sharding;
  Length length;
  /// Number of each step on the way here among the steps that were possible.
  llvm::SmallVector<unsigned, 4> choices;
  unsigned previous = 0;
  ReshardStep step; ///< From `previous` to here; its result is not filled in.
  bool done = false;
};

class Planner {
public:
  Planner(const Mesh &mesh, llvm::ArrayRef<int64_t> extents, const Sharding &from, const Sharding &to)
      : mesh(mesh), extents(extents), from(from), to(to) {
    assert(from.dims.size() == to.dims.size() && "shardings of one value");
    AxisSet stay = 0, touched = from.getSharded() | to.getSharded();
    for (unsigned d = 0; d < from.dims.size(); ++d) {
      size_t common = 0;
      while (common < from.dims[d].size() && common < to.dims[d].size() && from.dims[d][common] == to.dims[d][common])
        stay |= toSet(from.dims[d][common++]);
      fixed.push_back(common);
    }
    movers = (touched & ~stay) | (from.partial & ~to.partial);
    whole = mesh.getGroupSize(movers);
    stayPieces = mesh.getGroupSize(stay);
    free = !hasManyMovers();
  }

  /// Too many to try each on every dim.
  bool hasManyMovers() const { return toList(movers).size() > 3; }

  ReshardPlan run() {
    if (from == to)
      return {};
    if (std::optional<ReshardStep> direct = findDirect()) {
      direct->result = to;
      return {{*direct}, makeReceived(add(from, direct->kind, toSet(direct->axes)).received)};
    }
    find(from); // the start; its length is 0
    unsigned last = search();
    ReshardPlan plan;
    plan.received = makeReceived(nodes[last].length.received);
    for (unsigned i = last; i != 0; i = nodes[i].previous) {
      plan.steps.push_back(nodes[i].step);
      plan.steps.back().result = nodes[i].sharding;
    }
    std::reverse(plan.steps.begin(), plan.steps.end());
    return plan;
  }

private:
  /// The first step that leads from the start to the end, if there is one.
  std::optional<ReshardStep> findDirect() const {
    std::optional<ReshardStep> found;
    Sharding result;
    visitSteps(from, [&](const ReshardStep &step) {
      if (found)
        return;
      result = from;
      apply(step, result);
      if (result == to)
        found = step;
    });
    return found;
  }

  unsigned search() {
    using Entry = std::pair<Length, unsigned>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    queue.push({Length(), 0});
    while (!queue.empty()) {
      unsigned current = queue.top().second;
      queue.pop();
      if (nodes[current].done)
        continue;
      nodes[current].done = true;
      if (nodes[current].sharding == to)
        return current;
      expand(current, [&](unsigned next) { queue.push({nodes[next].length, next}); });
    }
    llvm::report_fatal_error(
        "no way from one sharding to another, although gathers, one all_reduce and slices lead everywhere");
  }

  /// Tries every step from a node; `reached` hears of each node that is now known to be nearer.
  void expand(unsigned number, llvm::function_ref<void(unsigned)> reached) {
    const Node node = nodes[number]; // a copy: `nodes` grows
    here = node.length;
    unsigned choice = 0;
    Sharding result;
    visitSteps(node.sharding, [&](const ReshardStep &step) {
      result = node.sharding;
      apply(step, result);
      Length length = add(node.sharding, step.kind, toSet(step.axes));
      llvm::SmallVector<unsigned, 4> choices = node.choices;
      choices.push_back(choice++);
      auto [next, isNew] = find(result);
      Node &target = nodes[next];
      if (!isNew && std::tie(target.length, target.choices) <= std::tie(length, choices))
        return;
      if (target.sharding == to)
        shortest = length;
      target.length = length;
      target.choices = std::move(choices);
      target.previous = number;
      target.step = step;
      reached(next);
    });
  }

  /// What a step that may be taken makes of a sharding.
  static void apply(const ReshardStep &step, Sharding &sharding) {
    AxisSet axes = toSet(step.axes);
    auto remove = [&](unsigned d) { llvm::erase_if(sharding.dims[d], [&](AxisId axis) { return axes >> axis & 1; }); };
    if (step.kind == OpKind::AllGather || step.kind == OpKind::AllToAll)
      remove(step.dim);
    for (unsigned d : step.moreDims)
      remove(d);
    if (step.kind == OpKind::AllReduce || step.kind == OpKind::ReduceScatter)
      sharding.partial &= ~axes;
    if (step.kind == OpKind::ReduceScatter || step.kind == OpKind::Slice)
      sharding.dims[step.dim].append(step.axes);
    if (step.kind == OpKind::AllToAll)
      sharding.dims[step.toDim].append(step.axes);
  }

  std::pair<unsigned, bool> find(const Sharding &sharding) {
    std::string key;
    for (const AxisList &list : sharding.dims) {
      for (const PlacedAxis &axis : list) {
        key += char(axis.id | (axis.isMirrored() ? 0x40 : 0) | (axis.isCyclic() ? 0x20 : 0)); // at most 32 axes
        if (axis.isListed()) {
          key += '\xfd';
          key.append(reinterpret_cast<const char *>(&axis.lengths), sizeof axis.lengths);
        }
        if (axis.rotation) {
          key += '\xfe';
          key.append(reinterpret_cast<const char *>(&axis.rotation), sizeof axis.rotation);
        }
      }
      key += '\xff';
    }
    for (AxisId axis : toList(sharding.partial))
      key += char(axis);
    auto [it, isNew] = numbers.try_emplace(key, nodes.size());
    if (isNew)
      nodes.emplace_back().sharding = sharding;
    return {it->second, isNew};
  }

  //===--- Lengths --------------------------------------------------------===//

  /// From the start to the end of one step from `here`.
  Length add(const Sharding &before, OpKind kind, AxisSet axes) const {
    Length length = here;
    ++length.steps;
    if (kind == OpKind::Slice)
      return length;
    ++length.collectives;
    // `whole` is a multiple of the pieces and of the group: both divisions are exact.
    __int128 local = whole / mesh.getGroupSize(before.getSharded() & movers);
    Traffic traffic = getTraffic(getCollectiveKind(kind), mesh.getGroupSize(axes));
    length.received += local * traffic.numerator * (whole / traffic.denominator);
    return length;
  }

  /// False for a step that is longer than a whole way that is known already.
  bool isWorth(const Sharding &before, OpKind kind, AxisSet axes) const {
    return !shortest || add(before, kind, axes) <= *shortest;
  }

  Rational makeReceived(__int128 units) const {
    return Rational::make(units, whole * whole * stayPieces).value_or(Rational());
  }

  //===--- Steps ----------------------------------------------------------===//

  /// Equal parts into which axes deal a dim. Blocks that a table lists need not divide anything, and whether what they
  /// are cut into comes out even is checked where sizes are.
  int64_t countPieces(llvm::ArrayRef<PlacedAxis> axes) const {
    int64_t pieces = 1;
    for (const PlacedAxis &axis : axes) {
      if (axis.isListed())
        break;
      pieces *= mesh[axis].size * (axis.isMirrored() ? 2 : 1);
    }
    return pieces;
  }

  /// True if dim d may carry these axes on the way: `outer`, then `inner`.
  bool mayCarry(unsigned d, llvm::ArrayRef<PlacedAxis> outer, llvm::ArrayRef<PlacedAxis> inner = {}) const {
    auto isFront = [&](llvm::ArrayRef<PlacedAxis> all) {
      return outer.size() + inner.size() <= all.size() && all.take_front(outer.size()) == outer &&
             all.slice(outer.size(), inner.size()) == inner;
    };
    if (isFront(from.dims[d]) || isFront(to.dims[d]))
      return true;
    if (!free)
      return false;
    int64_t pieces = countPieces(outer) * countPieces(inner);
    if (d < extents.size() && extents[d] != 0)
      return extents[d] != unevenExtent && extents[d] % pieces == 0;
    return countPieces(from.dims[d]) % pieces == 0 || countPieces(to.dims[d]) % pieces == 0;
  }

  using Visitor = llvm::function_ref<void(const ReshardStep &)>;

  /// Every step that may be taken from `now`, without its result.
  void visitSteps(const Sharding &now, Visitor visit) const {
    for (unsigned d = 0; d < now.dims.size(); ++d)
      for (size_t left = fixed[d]; left < now.dims[d].size(); ++left)
        visitGather(now, d, left, visit);
    AxisSet open = now.partial & ~to.partial;
    for (AxisSet axes = open; axes != 0; axes = (axes - 1) & open)
      if (isWorth(now, OpKind::AllReduce, axes))
        visit({OpKind::AllReduce, toList(axes), 0, 0, {}, now.reduce, {}});
    for (unsigned d = 0; d < now.dims.size(); ++d)
      visitSplits(OpKind::ReduceScatter, now, d, open, visit);
    for (unsigned d = 0; d < now.dims.size(); ++d) {
      ReshardStep step{OpKind::AllToAll, {}, 0, d, {}, ReduceKind::Sum, {}};
      visitExchanges(now, 0, step, 0, visit);
    }
    for (unsigned d = 0; d < now.dims.size(); ++d)
      visitLayouts(now, d, visit);
    for (unsigned d = 0; d < now.dims.size(); ++d)
      visitSplits(OpKind::Slice, now, d, movers & ~now.getSharded() & ~now.partial, visit);
  }

  void visitGather(const Sharding &now, unsigned d, size_t left, Visitor visit) const {
    auto list = llvm::makeArrayRef(now.dims[d]);
    AxisList axes(list.drop_front(left).begin(), list.end());
    if (mayCarry(d, list.take_front(left)) && isWorth(now, OpKind::AllGather, toSet(axes)))
      visit({OpKind::AllGather, axes, d, 0, {}, ReduceKind::Sum, {}});
  }

  /// Deals what dim d has over inner axes anew, in the layout that they have at the end.
  void visitLayouts(const Sharding &now, unsigned d, Visitor visit) const {
    auto list = llvm::makeArrayRef(now.dims[d]);
    if (to.dims[d].size() < list.size())
      return;
    auto wanted = llvm::makeArrayRef(to.dims[d]).take_front(list.size());
    size_t left = 0;
    while (left < list.size() && list[left] == wanted[left])
      ++left;
    auto isSame = [](AxisId a, AxisId b) { return a == b; };
    AxisList axes(wanted.begin() + left, wanted.end());
    if (!axes.empty() && std::equal(axes.begin(), axes.end(), list.begin() + left, isSame) &&
        isWorth(now, OpKind::AllToAll, toSet(axes)))
      visit({OpKind::AllToAll, axes, d, d, {}, ReduceKind::Sum, {}});
  }

  /// Splits dim d over some of `axes`, in any order.
  void visitSplits(OpKind kind, const Sharding &now, unsigned d, AxisSet axes, Visitor visit) const {
    ReduceKind reduce = kind == OpKind::ReduceScatter ? now.reduce : ReduceKind::Sum;
    ReshardStep step{kind, {}, d, 0, {}, reduce, {}};
    forEachAddition(now, d, axes, step.axes, [&] {
      if (isWorth(now, kind, toSet(step.axes)) && mayCarry(d, now.dims[d], step.axes))
        visit(step);
    });
  }

  /// Calls `f` for every ordered choice of at least one of `axes` that dim d may carry after what it has; `chosen` has
  /// it. In the order of their axes.
  void forEachAddition(const Sharding &now, unsigned d, AxisSet axes, AxisList &chosen,
                       llvm::function_ref<void()> f) const {
    if (free)
      return forEachOrder(d, axes, chosen, f);
    auto outer = llvm::makeArrayRef(now.dims[d]);
    llvm::SmallVector<AxisList, 16> additions;
    for (const AxisList *all : {&from.dims[d], &to.dims[d]}) {
      if (all->size() < outer.size() || llvm::makeArrayRef(*all).take_front(outer.size()) != outer)
        continue;
      AxisList addition;
      for (const PlacedAxis &axis : llvm::makeArrayRef(*all).drop_front(outer.size())) {
        if (!(axes >> axis & 1))
          break;
        addition.push_back(axis);
        additions.push_back(addition);
      }
    }
    llvm::sort(additions);
    additions.erase(std::unique(additions.begin(), additions.end()), additions.end());
    for (const AxisList &addition : additions) {
      chosen = addition;
      f();
    }
  }

  /// An axis as dim d has it at the end, or had it at the start.
  PlacedAxis place(AxisId axis, unsigned d) const {
    for (const AxisList *list : {&to.dims[d], &from.dims[d]})
      for (const PlacedAxis &placed : *list)
        if (placed == axis)
          return placed;
    return PlacedAxis(axis);
  }

  /// Calls `f` for every ordered choice of at least one of `axes`, for dim d; `chosen` has it.
  void forEachOrder(unsigned d, AxisSet axes, AxisList &chosen, llvm::function_ref<void()> f) const {
    for (AxisId axis : toList(axes)) {
      chosen.push_back(place(axis, d));
      f();
      forEachOrder(d, axes & ~toSet(axis), chosen, f);
      chosen.pop_back();
    }
  }

  /// Takes inner axes off the dims from `source` on. They go to dim `step.toDim` together with what was taken off
  /// earlier ones (`moved`), in any order.
  void visitExchanges(const Sharding &now, unsigned source, ReshardStep &step, AxisSet moved, Visitor visit) const {
    if (source == now.dims.size()) {
      if (!moved || !isWorth(now, OpKind::AllToAll, moved))
        return;
      step.axes.clear();
      forEachAddition(now, step.toDim, moved, step.axes, [&] {
        if (toSet(step.axes) == moved && mayCarry(step.toDim, now.dims[step.toDim], step.axes))
          visit(step);
      });
      return;
    }
    visitExchanges(now, source + 1, step, moved, visit);
    auto list = llvm::makeArrayRef(now.dims[source]);
    for (size_t left = fixed[source]; source != step.toDim && left < list.size(); ++left) {
      if (!mayCarry(source, list.take_front(left)))
        continue;
      if (moved)
        step.moreDims.push_back(source);
      else
        step.dim = source;
      visitExchanges(now, source + 1, step, moved | toSet(list.drop_front(left)), visit);
      if (moved)
        step.moreDims.pop_back();
    }
  }

  const Mesh &mesh;
  llvm::ArrayRef<int64_t> extents;
  const Sharding &from, &to;
  llvm::SmallVector<size_t, 4> fixed; ///< Per dim: how many of its outer axes stay.
  AxisSet movers = 0;
  __int128 whole = 1, stayPieces = 1; ///< Pieces that the movers, and that the others can make.
  bool free = true;
  Length here;                    ///< Of the way to the node from which steps are tried.
  std::optional<Length> shortest; ///< Of the ways to the end that are known.
  std::vector<Node> nodes;
  llvm::StringMap<unsigned> numbers;
};

/// Axes that stand together before and after, each time in one layout, as one axis each: mirrored over several axes
/// is mirrored over their ranks.
///
///   {S@(a, b), D} partial(c, d)  ->  {S, D@(a, b)}     {S@ab, D} partial(cd)  ->  {S, D@ab}
class Bundles {
public:
  Bundles(const Mesh &mesh, const Sharding &from, const Sharding &to) {
    AxisSet done = 0;
    auto add = [&](llvm::ArrayRef<PlacedAxis> axes) {
      bundles.emplace_back(axes.begin(), axes.end());
      done |= toSet(axes);
    };
    // Lists fall into pieces that follow each other in the other sharding, too, or are nowhere on its dims.
    for (auto [lists, others] : {std::pair(&from, &to), std::pair(&to, &from)})
      for (const AxisList &list : lists->dims)
        for (size_t begin = 0, end; begin < list.size(); begin = end) {
          end = begin + 1;
          while (end < list.size() && list[end - 1].joins(list[end]) && follows(*others, list[end - 1], list[end]))
            ++end;
          if (!(done >> list[begin] & 1))
            add(llvm::makeArrayRef(list).slice(begin, end - begin));
        }
    for (AxisSet rest : {from.partial & to.partial & ~done, from.partial & ~to.partial & ~done})
      if (rest)
        add(toList(rest));
    for (const AxisList &bundle : bundles)
      coarse.addAxis({"", mesh.getGroupSize(toSet(bundle)), Size(), SMLoc()});
  }

  const Mesh &getMesh() const { return coarse; }

  Sharding bundle(const Sharding &sharding) const {
    Sharding result = Sharding::replicated(sharding.dims.size());
    result.reduce = sharding.reduce;
    for (size_t d = 0; d < sharding.dims.size(); ++d)
      for (const PlacedAxis &axis : sharding.dims[d])
        for (AxisId i = 0; i < bundles.size(); ++i)
          if (bundles[i].front() == axis.id)
            result.dims[d].push_back(axis.withId(i));
    for (AxisId i = 0; i < bundles.size(); ++i)
      if (sharding.partial >> bundles[i].front() & 1)
        result.partial |= toSet(i);
    return result;
  }

  AxisList unbundle(const AxisList &list) const {
    AxisList result;
    for (const PlacedAxis &axis : list)
      for (AxisId part : bundles[axis])
        result.push_back(axis.withId(part));
    return result;
  }

  Sharding unbundle(const Sharding &sharding) const {
    Sharding result = sharding;
    for (AxisList &list : result.dims)
      list = unbundle(list);
    result.partial = toSet(unbundle(toList(sharding.partial)));
    return result;
  }

private:
  /// True if `second` is where `first` is: behind it on a dim, or as little on any.
  static bool follows(const Sharding &sharding, AxisId first, AxisId second) {
    std::optional<unsigned> dim = sharding.getDimOf(first);
    if (dim != sharding.getDimOf(second))
      return false;
    if (!dim)
      return (sharding.partial >> first & 1) == (sharding.partial >> second & 1);
    const AxisList &list = sharding.dims[*dim];
    const auto *place = llvm::find(list, first);
    return place + 1 != list.end() && place[1] == second && place[1].joins(*place);
  }

  llvm::SmallVector<AxisList, 8> bundles;
  Mesh coarse;
};
} // namespace

ReshardPlan stage::planReshard(const Mesh &mesh, llvm::ArrayRef<int64_t> extents, const Sharding &from,
                               const Sharding &to) {
  assert((to.partial & ~from.partial) == 0 && "nothing becomes partial by communication");
  Planner planner(mesh, extents, from, to);
  if (!planner.hasManyMovers())
    return planner.run();
  Bundles bundles(mesh, from, to);
  Sharding coarseFrom = bundles.bundle(from), coarseTo = bundles.bundle(to);
  ReshardPlan plan = Planner(bundles.getMesh(), extents, coarseFrom, coarseTo).run();
  for (ReshardStep &step : plan.steps) {
    step.axes = bundles.unbundle(step.axes);
    if (step.kind == OpKind::AllReduce)
      step.axes = toList(toSet(step.axes)); // in no order but the mesh's
    step.result = bundles.unbundle(step.result);
  }
  return plan;
}

ReshardPlan stage::planReshard(const Graph &graph, const TensorType &type, const Sharding &from, const Sharding &to) {
  llvm::SmallVector<int64_t, 4> extents;
  for (const Extent &extent : type.shape) {
    if (graph.mesh.findUnevenSlots(extent.dim)) {
      extents.push_back(unevenExtent);
      continue;
    }
    SizeValue value = evaluateCount(extent.size, graph.binding);
    if (!value)
      llvm::report_fatal_error("a reshard of what has no size");
    extents.push_back(int64_t(value.value.num));
  }
  return planReshard(graph.mesh, extents, from, to);
}

const ReshardPlan &ReshardPlans::get(const TensorType &type, const Sharding &from, const Sharding &to) {
  llvm::SmallVector<Size, 4> shape;
  for (const Extent &extent : type.shape)
    shape.push_back(graph.mesh.findUnevenSlots(extent.dim) ? Size() : extent.size);
  size_t hash = llvm::hash_combine(from.partial, to.partial, from.getSharded(), to.getSharded(), shape.size());
  auto [begin, end] = entries.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (const Entry &known = it->second; known.shape == shape && known.from == from && known.to == to)
      return known.plan;
  return entries.emplace(hash, Entry{shape, from, to, planReshard(graph, type, from, to)})->second.plan;
}

Value *stage::insertReshard(Value *value, const Sharding &to, Block &block, Op *before, ReshardPlans &plans) {
  const Op *producer = value->getOp();
  for (const ReshardStep &step : plans.get(value->type, value->sharding, to).steps) {
    auto op = std::make_unique<Op>(step.kind, before ? before->loc : value->loc);
    op->scope = producer ? producer->scope : before ? before->scope : "";
    op->axes = step.axes;
    op->dim = step.dim;
    op->toDim = step.toDim;
    op->moreDims = step.moreDims;
    op->reduce = step.reduce;
    op->addOperand(value);
    Value *result = op->addResult(value->type, value->path);
    result->sharding = step.result;
    result->loc = value->loc;
    if (before)
      block.insertBefore(before, std::move(op));
    else
      block.append(std::move(op));
    value = result;
  }
  return value;
}
