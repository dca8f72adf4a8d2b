//===- Reshard.cpp - from one sharding to another (law L6) ----------------===//
//
// Problem: a value has one sharding and a user needs another. Find the collectives.
//
//   {S@cp} partial(tp)  ->  {S@(cp, tp)}     reduce_scatter over tp along S
//   {S@(cp, tp)}        ->  {S@cp}           all_gather over tp along S
//   {H@cp, S}           ->  {H, S@cp}        all_to_all over cp
//
// Algorithm: axes leave and enter a dim at its inner end, so on every dim the common
// outer part of both lists is kept, what the source has beyond it must leave and
// what the target has beyond it must enter. While something is left to do, take the
// first that is legal of: a slice (free, and everything after it moves less), a
// reduce_scatter, an all_to_all, an all_reduce, an all_gather. Axes that move
// together move as one group.
//
// Ends: every step moves at least one axis closer to its place; an all_gather of what
// must leave is legal whenever nothing else is, and after it the axis can be sliced.
//
//===----------------------------------------------------------------------===//
#include "stage/Transforms/Reshard.h"

using namespace stage;

namespace {
class Planner {
public:
  Planner(const Sharding &from, const Sharding &to) : now(from), to(to) {}

  llvm::SmallVector<ReshardStep, 4> run() {
    while (now != to) {
      if (slice() || reduceScatter() || allToAll() || allReduce() || allGather())
        continue;
      assert(false && "a step is always possible");
      break;
    }
    return std::move(steps);
  }

private:
  size_t commonPrefix(unsigned d) const {
    size_t common = 0;
    while (common < now.dims[d].size() && common < to.dims[d].size() && now.dims[d][common] == to.dims[d][common])
      ++common;
    return common;
  }
  /// What dim d must still lose, from its inner end.
  llvm::ArrayRef<AxisId> leaving(unsigned d) const { return llvm::ArrayRef<AxisId>(now.dims[d]).drop_front(commonPrefix(d)); }
  /// What dim d must still get; only reachable once nothing has to leave.
  llvm::ArrayRef<AxisId> entering(unsigned d) const {
    return leaving(d).empty() ? llvm::ArrayRef<AxisId>(to.dims[d]).drop_front(now.dims[d].size())
                              : llvm::ArrayRef<AxisId>();
  }

  /// The longest front of what enters d for which `can` holds.
  template <typename F> AxisList front(unsigned d, F can) const {
    AxisList axes;
    for (AxisId axis : entering(d)) {
      if (!can(axis))
        break;
      axes.push_back(axis);
    }
    return axes;
  }

  void take(OpKind kind, AxisList axes, unsigned dim, unsigned toDim = 0) {
    ReshardStep step{kind, std::move(axes), dim, toDim, now.reduce, now};
    steps.push_back(std::move(step));
    steps.back().result = now;
  }

  bool slice() {
    for (unsigned d = 0; d < now.dims.size(); ++d) {
      AxisSet busy = now.getSharded() | now.partial;
      AxisList axes = front(d, [&](AxisId axis) { return !(busy >> axis & 1); });
      if (axes.empty())
        continue;
      now.dims[d].append(axes);
      take(OpKind::Slice, axes, d);
      return true;
    }
    return false;
  }

  bool reduceScatter() {
    if (now.reduce != ReduceKind::Sum)
      return false; // only sums are scattered by the consumers' collectives
    for (unsigned d = 0; d < now.dims.size(); ++d) {
      AxisSet open = now.partial & ~to.partial;
      AxisList axes = front(d, [&](AxisId axis) { return open >> axis & 1; });
      if (axes.empty())
        continue;
      now.dims[d].append(axes);
      now.partial &= ~toSet(axes);
      take(OpKind::ReduceScatter, axes, d);
      return true;
    }
    return false;
  }

  bool allToAll() {
    for (unsigned source = 0; source < now.dims.size(); ++source) {
      llvm::ArrayRef<AxisId> out = leaving(source);
      if (out.empty())
        continue;
      for (unsigned target = 0; target < now.dims.size(); ++target) {
        if (target == source)
          continue;
        // The longest inner run of what leaves that is just what enters next.
        for (size_t length = std::min(out.size(), entering(target).size()); length > 0; --length) {
          llvm::ArrayRef<AxisId> run = out.take_back(length);
          if (run != entering(target).take_front(length))
            continue;
          AxisList axes(run.begin(), run.end());
          now.dims[source].resize(now.dims[source].size() - length);
          now.dims[target].append(axes);
          take(OpKind::AllToAll, axes, source, target);
          return true;
        }
      }
    }
    return false;
  }

  bool allReduce() {
    // What will be scattered once something else has left waits for it, unless nothing is in its way but order.
    AxisSet open = now.partial & ~to.partial & ~waiting();
    if (!open)
      return false;
    now.partial &= ~open;
    AxisList axes;
    for (AxisId axis = 0; axis < 32; ++axis)
      if (open >> axis & 1)
        axes.push_back(axis);
    take(OpKind::AllReduce, axes, 0);
    return true;
  }

  /// Partial axes that can be scattered after an all_gather or all_to_all that is due anyway.
  AxisSet waiting() const {
    if (now.reduce != ReduceKind::Sum)
      return 0;
    AxisSet set = 0;
    for (unsigned d = 0; d < now.dims.size(); ++d)
      if (!leaving(d).empty()) {
        for (AxisId axis : llvm::ArrayRef<AxisId>(to.dims[d]).drop_front(commonPrefix(d))) {
          if (!(now.partial >> axis & 1))
            break;
          set |= AxisSet(1) << axis;
        }
      }
    return set;
  }

  bool allGather() {
    for (unsigned d = 0; d < now.dims.size(); ++d) {
      llvm::ArrayRef<AxisId> out = leaving(d);
      if (out.empty())
        continue;
      AxisList axes(out.begin(), out.end());
      now.dims[d].resize(now.dims[d].size() - axes.size());
      take(OpKind::AllGather, axes, d);
      return true;
    }
    // Left: partial axes that wait for nothing any more.
    AxisSet open = now.partial & ~to.partial;
    if (!open)
      return false;
    now.partial &= ~open;
    AxisList axes;
    for (AxisId axis = 0; axis < 32; ++axis)
      if (open >> axis & 1)
        axes.push_back(axis);
    take(OpKind::AllReduce, axes, 0);
    return true;
  }

  Sharding now;
  const Sharding &to;
  llvm::SmallVector<ReshardStep, 4> steps;
};
} // namespace

llvm::SmallVector<ReshardStep, 4> stage::planReshard(const Sharding &from, const Sharding &to) {
  return Planner(from, to).run();
}

Value *stage::insertReshard(Value *value, const Sharding &to, Block &block, Op *before) {
  const Op *producer = value->getOp();
  for (ReshardStep &step : planReshard(value->sharding, to)) {
    auto op = std::make_unique<Op>(step.kind, before ? before->loc : value->loc);
    op->scope = producer ? producer->scope : before ? before->scope : "";
    op->axes = step.axes;
    op->dim = step.dim;
    op->toDim = step.toDim;
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
