//===- Reshard.h - from one sharding to another (law L6) -------*- C++ -*-===//
#ifndef STAGE_TRANSFORMS_SHARDING_RESHARD_H
#define STAGE_TRANSFORMS_SHARDING_RESHARD_H

#include "stage/IR/graph/Graph.h"
#include <unordered_map>

namespace stage {

/// One step of a plan: a collective or a local slice, as in Op.
struct ReshardStep {
  OpKind kind;
  AxisList axes;                           ///< As in Op.
  unsigned dim = 0;                        ///< all_gather, all_to_all: becomes whole; reduce_scatter, slice: is split.
  unsigned toDim = 0;                      ///< all_to_all: is split.
  llvm::SmallVector<unsigned, 1> moreDims; ///< all_to_all: more dims that become whole.
  ReduceKind reduce = ReduceKind::Sum;
  Sharding result; ///< What the value is after the step.
};

struct ReshardPlan {
  /// Empty if the shardings are equal.
  llvm::SmallVector<ReshardStep, 4> steps;
  /// Elements that a rank receives from others, as a part of all elements of the value. With g ranks in a group and n
  /// elements on each: all_gather n(g-1), reduce_scatter and all_to_all n(g-1)/g, all_reduce twice that.
  Rational received;
};

/// Of slots of which ranks have as many as come (Mesh::findUnevenSlots): nothing says that a rank's can be split
/// evenly.
constexpr int64_t unevenExtent = -1;

/// The steps that bring a value from one sharding to another such that a rank receives the fewest elements; of several
/// such plans one with the fewest collectives, then with the fewest steps. `extents` are the global sizes of the
/// value's dims, 0 where not known: no dim is split on the way into more pieces than divide it, and one of
/// `unevenExtent` only as before or after. Requires: what `to` keeps partial is partial in `from`, in the same way.
ReshardPlan planReshard(const Mesh &mesh, llvm::ArrayRef<int64_t> extents, const Sharding &from, const Sharding &to);
/// The same for a value of a graph.
ReshardPlan planReshard(const Graph &graph, const TensorType &type, const Sharding &from, const Sharding &to);

/// The plans of one graph, each made once: most values that are resharded have the sizes and shardings of another one.
class ReshardPlans {
public:
  explicit ReshardPlans(const Graph &graph) : graph(graph) {}
  const ReshardPlan &get(const TensorType &type, const Sharding &from, const Sharding &to);

private:
  struct Entry {
    llvm::SmallVector<Size, 4> shape;
    Sharding from, to;
    ReshardPlan plan;
  };
  const Graph &graph;
  std::unordered_multimap<size_t, Entry> entries; ///< By a hash of what they are for.
};

/// Inserts the ops of a plan into `block` before an op of it (null: at the end) and returns the resharded value.
Value *insertReshard(Value *value, const Sharding &to, Block &block, Op *before, ReshardPlans &plans);

} // namespace stage

#endif // STAGE_TRANSFORMS_SHARDING_RESHARD_H
