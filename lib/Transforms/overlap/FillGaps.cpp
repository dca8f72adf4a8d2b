//===- FillGaps.cpp - the order of a run of ops (idea E8) -----------------===//
//
// Problem: a rank computes in the order of the program, and does nothing while the next
// op waits for a collective. The gradients of weights, for which nothing waits before
// the step, can fill such a *gap*, if they are not done before it begins. There are not
// enough of them to spend all on the first.
//
//   awaited                          deferred, where they are ready
//   %dx = linear.dx(%dy, %up)        %dup, %ddown
//   %r  = reduce_scatter(%dx)
//     gap                       <-   %dup
//   %dn = rms_norm.grad(%n, %r)
//   %s  = all_gather(%dn)
//     gap                       <-   %ddown
//   %do = linear.dx(%s, %wo)
//
// Algorithm:
//   1. Awaited are the collectives, what is carried on (yielded, or taken by the repeat
//      that follows) and all on the way to them, but not what only accumulates. All
//      other ops are deferred. Awaited ops keep their order, but a gather of what
//      forward kept, if only deferred ops use it, goes ahead of what is computed beside
//      them: the communication stream is then free when that has its own collective.
//   2. A gap stands before each awaited op that is the first to need a collective whose
//      operand is made here. Its weight is what the collective moves. One more is the end
//      of the run, beside collectives behind the last one that an awaited op needs (those
//      before it have ended with it), the one with which the next iteration begins, and
//      what leaves for another stage, if it leaves early.
//   3. A deferred op may go into the gaps at which nothing that it needs is on its way.
//      The FLOPs of all are spread over the gaps by weight, as evenly as they become
//      ready in time, in the order of the program. One for which no gap is left stays
//      where it is.
//   4. What costs nothing (a slice, an accumulation that the op before does itself) and
//      a collective of a deferred op follow at once what they depend on; what a deferred
//      collective brings is used in a later gap.
//
// Cost: n log n for n ops and uses. Limits: a run without a gap stays as it is: another
// order would take memory and win nothing. FLOPs and bytes stand for time.
//
//===----------------------------------------------------------------------===//
#include "FillGaps.h"
#include "stage/IR/graph/Costs.h"
#include "stage/IR/graph/PipelineChain.h"
#include "stage/Machine/Traffic.h"
#include "stage/Transforms/sharding/CheckSizes.h"
#include "llvm/ADT/DenseSet.h"
#include <queue>

using namespace stage;

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

OpWeights::OpWeights(const Graph &graph) : graph(graph), binding(graph.binding) {
  for (const Axis &axis : graph.mesh.getAxes())
    binding.bind(getCoordinateSymbol(graph.sizes, axis).getSymbol(), 0);
  for (const Op *repeat : findPipelinedRepeats(graph))
    if (repeat && pipelinedLoops.insert(repeat->loop).second)
      numPipelined += evaluateFloor(repeat->count);
}

/// 0 for what has no value: the phases that count it report it.
OpWeights::Amount OpWeights::evaluateFloor(Size size) const {
  SizeValue value = evaluate(size, binding);
  return value ? std::min<Amount>(value.value.num / value.value.den, Amount(1) << 90) : 0;
}

OpWeights::Amount OpWeights::getWork(const Op &op) const {
  bool computes = op.kind == OpKind::Compute || op.kind == OpKind::Accumulate;
  return computes ? evaluateFloor(getLocalCost(graph, op).getComputed()) : 0;
}

OpWeights::Amount OpWeights::getTraffic(const Op &collective) const {
  auto getBytes = [&](const Value &value) { return getCheckedBytes(graph, value.type, value.sharding); };
  Amount in = 0, out = 0;
  for (unsigned i = 0; i < collective.getNumOperands(); ++i) {
    in += getBytes(*collective.getOperand(i));
    out += getBytes(*collective.getResult(i));
  }
  return getTrafficOfLargeGroup(getCollectiveKind(collective.kind)) * std::max(in, out);
}

OpWeights::Amount OpWeights::getSent(const Op &yield) const {
  const PipelineInfo &pipeline = graph.pipeline;
  if (pipeline.send != MessageMode::Early || !pipelinedLoops.contains(yield.getBlock()->getParent()->loop) ||
      !pipeline.axis || graph.mesh[*pipeline.axis].size < 2)
    return 0;
  Amount bytes = 0, stages = countVirtualStages(graph);
  for (const Value *value : yield.getOperands())
    bytes += getCheckedBytes(graph, value->type, value->sharding);
  return bytes * stages / std::max<Amount>(numPipelined, 1);
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Slices are views: who uses one waits for what is behind.
static const Value *skipSlices(const Value *value) {
  while (value->getOp() && value->getOp()->kind == OpKind::Slice)
    value = value->getOp()->getOperand(0);
  return value;
}

namespace {
using Amount = OpWeights::Amount;

class GapFiller {
public:
  GapFiller(llvm::ArrayRef<Op *> ops, Op *end, const OpWeights &weights) : end(end), weights(weights) {
    nodes.resize(ops.size());
    for (unsigned i = 0; i < ops.size(); ++i) {
      nodes[i].op = ops[i];
      nodes[i].number = i;
      numbers[ops[i]] = i;
    }
  }

  std::vector<Op *> run() {
    findAwaited();
    listAwaited();
    findGaps();
    if (gaps.empty())
      return {};
    findReleases();
    setTargets();
    place();
    return std::move(order);
  }

private:
  static constexpr unsigned never = ~0u;
  struct Node {
    Op *op = nullptr;
    unsigned number = 0; ///< In the order of the program.
    bool awaited = false;
    bool isKept = false; ///< Reshards: of something that is not made here.
    // Awaited ops.
    unsigned position = 0;                 ///< Among them.
    unsigned neededAt = never;             ///< Collectives: the position of the first that needs it.
    llvm::SmallVector<Node *, 1> arrivals; ///< The collectives that are needed here first.
    // Deferred ops.
    unsigned release = 0; ///< They may stand before the awaited op at this position, and before none that is earlier.
    Amount work = 0;
    bool atOnce = false; ///< Before the awaited op that follows it, if it is ready, and else as soon as it is.
    unsigned numPending = 0;
    /// Of all: one entry per use.
    llvm::SmallVector<unsigned, 2> deferredUsers;
  };
  struct Gap {
    unsigned position; ///< Of the awaited op behind it; their number for the end.
    Amount weight;
    Amount target = 0; ///< Work that should be done by its end.
  };

  Node *find(const Op *op) {
    auto it = numbers.find(op);
    return it == numbers.end() ? nullptr : &nodes[it->second];
  }
  /// What makes a value; null if nothing here does.
  Node *find(const Value *value) { return value->getOp() ? find(value->getOp()) : nullptr; }
  /// The collective that makes a value or what it is a view of; null if none does here.
  Node *findCollective(const Value *value) {
    Node *node = find(skipSlices(value));
    return node && isCommunication(node->op->kind) ? node : nullptr;
  }

  //===--- 1. what is awaited ---------------------------------------------===//

  void findAwaited() {
    llvm::DenseSet<const Op *> usedForMore; // reshards of what is not only added to a buffer
    auto isForMore = [&](const std::pair<Op *, unsigned> &use) {
      return isReshard(use.first->kind) ? usedForMore.contains(use.first) : use.first->kind != OpKind::Accumulate;
    };
    auto awaitValue = [&](Value *value) {
      if (Node *node = find(value))
        node->awaited = true;
    };
    auto await = [&](Op &op) {
      forEachOutsideValue(op, [&](Value *value, Op &) { awaitValue(value); });
      forEachAwaitedValue(op, awaitValue);
      for (auto &body : op.bodies)
        Graph::walk(*body, [&](Op &inner) { forEachAwaitedValue(inner, awaitValue); });
    };
    if (end)
      await(*end);
    for (Node &node : llvm::reverse(nodes)) {
      if (isReshard(node.op->kind) && llvm::any_of(node.op->getResults(), [&](auto &result) {
            return llvm::any_of(result->getUses(), isForMore);
          })) {
        usedForMore.insert(node.op);
        node.awaited |= isCommunication(node.op->kind);
      }
      if (node.awaited)
        await(*node.op);
    }
    for (Node &node : nodes)
      node.isKept = isReshard(node.op->kind) && llvm::all_of(node.op->getOperands(), [&](const Value *operand) {
                      const Node *maker = find(operand);
                      return !maker || maker->isKept;
                    });
  }

  /// Behind the op with this number, or in the place of it.
  using Place = std::pair<int64_t, bool>;

  /// Where a gather of something kept goes: behind what the first of its users needs else, if all are deferred.
  Place findPlace(const Node &gather, llvm::ArrayRef<Place> places) {
    Place own(gather.number, false), place = own;
    if (!gather.op->after.empty())
      return own;
    for (auto &result : gather.op->getResults())
      for (auto [user, operand] : result->getUses()) {
        const Node *node = find(user);
        if (!node || (node->awaited && !node->isKept))
          return own;
        Place ofUser(-1, true);
        if (node->isKept)
          ofUser = places[node->number];
        else
          for (const Value *other : user->getOperands())
            if (const Node *maker = find(other); maker && maker != &gather)
              ofUser.first = std::max<int64_t>(ofUser.first, maker->number);
        place = std::min(place, ofUser);
      }
    return place;
  }

  void listAwaited() {
    std::vector<Place> places(nodes.size());
    for (Node &node : llvm::reverse(nodes))
      places[node.number] = node.awaited && node.isKept ? findPlace(node, places) : Place(node.number, false);
    for (Node &node : nodes)
      if (node.awaited)
        awaited.push_back(&node);
    llvm::stable_sort(awaited, [&](const Node *a, const Node *b) { return places[a->number] < places[b->number]; });
    for (unsigned i = 0; i < awaited.size(); ++i)
      awaited[i]->position = i;
  }

  //===--- 2. gaps --------------------------------------------------------===//

  void findGaps() {
    for (Node *node : awaited) {
      if (isReshard(node->op->kind))
        continue; // nothing computes yet
      Amount weight = 0;
      llvm::SmallVector<const Value *, 8> needed(llvm::reverse(node->op->getOperands()));
      while (!needed.empty()) {
        Node *from = findCollective(needed.pop_back_val());
        if (!from || from->neededAt != never)
          continue;
        from->neededAt = node->position;
        node->arrivals.push_back(from);
        weight += from->isKept ? 0 : weights.getTraffic(*from->op);
        needed.append(from->op->getOperands().rbegin(), from->op->getOperands().rend());
      }
      if (weight)
        gaps.push_back({node->position, weight});
    }
    if (Amount weight = getEndWeight())
      gaps.push_back({unsigned(awaited.size()), weight});
  }

  Amount getEndWeight() {
    Amount weight = 0;
    for (const Node *node : llvm::reverse(awaited)) {
      if (!isCommunication(node->op->kind))
        continue;
      if (node->neededAt != never)
        break; // what stands before it has ended with it
      if (!node->isKept)
        weight += weights.getTraffic(*node->op); // under way still
    }
    if (end && end->kind == OpKind::Repeat)
      weight +=
          getEntryTraffic(end->getBody(end->reverse ? std::max<int64_t>(0, end->cases.getNumIterations() - 1) : 0));
    else if (end)
      weight += getEntryTraffic(*end->getBlock()) + weights.getSent(*end);
    return weight;
  }

  /// What the collectives move with which an iteration begins: those of what is carried.
  Amount getEntryTraffic(const Block &body) {
    Amount traffic = 0;
    llvm::DenseSet<const Value *> carried;
    for (auto &argument : body.getArguments())
      carried.insert(argument.get());
    for (auto &op : body)
      if (isReshard(op->kind) &&
          llvm::any_of(op->getOperands(), [&](const Value *operand) { return carried.contains(operand); })) {
        for (auto &result : op->getResults())
          carried.insert(result.get());
        traffic += isCommunication(op->kind) ? weights.getTraffic(*op) : 0;
      }
    return traffic;
  }

  //===--- 3. what goes where ---------------------------------------------===//

  void findReleases() {
    for (Node &node : nodes) {
      if (node.awaited)
        continue;
      forEachAwaitedValue(*node.op, [&](Value *value) {
        Node *maker = find(value);
        if (!maker)
          return;
        maker->deferredUsers.push_back(node.number);
        ++node.numPending;
        unsigned release = !maker->awaited            ? maker->release
                           : maker->neededAt == never ? maker->position + 1
                                                      : maker->neededAt + 1;
        node.release = std::max(node.release, release);
      });
      node.work = weights.getWork(*node.op);
      node.atOnce = !node.work || node.release > gaps.back().position;
    }
  }

  /// Targets are on the lower hull of the work that can be done by each gap, over their weights: what a gap gets per
  /// byte is the least that it or a later one must.
  void setTargets() {
    std::vector<Amount> ready(gaps.size());
    for (const Node &node : nodes)
      if (!node.awaited && !node.atOnce) {
        auto gap = llvm::partition_point(gaps, [&](const Gap &gap) { return gap.position < node.release; });
        ready[gap - gaps.begin()] += node.work;
      }
    std::vector<std::pair<Amount, Amount>> points{{0, 0}}; // weight and work so far
    for (unsigned i = 0; i < gaps.size(); ++i)
      points.emplace_back(points[i].first + gaps[i].weight, points[i].second + ready[i]);
    unsigned weightShift = getShift(points.back().first);
    workShift = getShift(points.back().second);
    std::vector<unsigned> hull;
    for (unsigned i = 0; i < points.size(); ++i) {
      auto &[weight, work] = points[i];
      weight >>= weightShift;
      work >>= workShift;
      while (hull.size() > 1 && !isBelow(points[hull.back()], points[hull[hull.size() - 2]], points[i]))
        hull.pop_back();
      hull.push_back(i);
    }
    for (unsigned i = 1; i < hull.size(); ++i) {
      auto [weight, work] = points[hull[i - 1]];
      Amount width = std::max<Amount>(points[hull[i]].first - weight, 1), height = points[hull[i]].second - work;
      for (unsigned point = hull[i - 1] + 1; point <= hull[i]; ++point)
        gaps[point - 1].target = work + height * (points[point].first - weight) / width;
    }
  }

  /// How often to halve an amount so that products of two such are exact.
  static unsigned getShift(Amount most) {
    unsigned shift = 0;
    while (most >> shift >> 60)
      ++shift;
    return shift;
  }

  /// A point is below the line between two others.
  using Point = std::pair<Amount, Amount>;
  static bool isBelow(Point point, Point from, Point to) {
    return (point.second - from.second) * (to.first - from.first) <
           (to.second - from.second) * (point.first - from.first);
  }

  //===--- 4. the new order -----------------------------------------------===//

  void place() {
    for (const Node &node : nodes)
      if (!node.awaited && !node.numPending)
        makeReady(node);
    auto gap = gaps.begin();
    for (Node *node : awaited) {
      appendDue(node->number);
      if (gap != gaps.end() && gap->position == node->position)
        fill(*gap++);
      append(*node);
      for (Node *arrived : node->arrivals)
        release(*arrived);
    }
    appendDue();
    while (!waiting.empty() || !travelling.empty()) {
      while (!waiting.empty())
        appendNext();
      arrive();
    }
  }

  void fill(const Gap &gap) {
    arrive();
    bool isLast = &gap == &gaps.back();
    while (!waiting.empty() && (isLast || 2 * done + (nodes[waiting.top()].work >> workShift) <= 2 * gap.target))
      appendNext();
  }

  void appendNext() {
    Node &node = nodes[waiting.top()];
    waiting.pop();
    done += node.work >> workShift;
    append(node);
    appendDue();
  }

  void append(Node &node) {
    order.push_back(node.op);
    if (!node.awaited && isCommunication(node.op->kind))
      travelling.push_back(&node);
    else if (node.neededAt == never)
      release(node);
  }

  /// Users of the node need wait for it no longer.
  void release(const Node &node) {
    for (unsigned user : node.deferredUsers)
      if (!--nodes[user].numPending)
        makeReady(nodes[user]);
  }

  void makeReady(const Node &node) { (node.atOnce ? due : waiting).push(node.number); }

  /// Of what is due that which stands before `limit` in the program.
  void appendDue(unsigned limit = never) {
    while (!due.empty() && due.top() < limit) {
      Node &node = nodes[due.top()];
      due.pop();
      append(node);
    }
  }

  /// What deferred collectives bring is taken for there when other work has been done.
  void arrive() {
    for (const Node *node : std::exchange(travelling, {}))
      release(*node);
    appendDue();
  }

  using Queue = std::priority_queue<unsigned, std::vector<unsigned>, std::greater<>>;

  Op *end;
  const OpWeights &weights;
  std::vector<Node> nodes;
  llvm::DenseMap<const Op *, unsigned> numbers;
  std::vector<Node *> awaited;
  std::vector<Gap> gaps;
  Queue due, waiting; ///< Deferred ops that wait for nothing: those to be done at once, and the others.
  std::vector<const Node *> travelling; ///< Deferred collectives since the last gap.
  unsigned workShift = 0;
  Amount done = 0; ///< Work of deferred ops so far, shifted.
  std::vector<Op *> order;
};
} // namespace

std::vector<Op *> stage::fillGaps(llvm::ArrayRef<Op *> ops, Op *end, const OpWeights &weights) {
  return GapFiller(ops, end, weights).run();
}
