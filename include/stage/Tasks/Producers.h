//===- Producers.h - the tasks that made what a task uses ------*- C++ -*-===//
//
// The task that made a value is one of this unit, of an earlier iteration, or of an earlier unit of the same
// microbatch: its id is arithmetic (TaskLayout.h). A value without a task, such as a view, stands for those it was made
// of. What reads a gradient's buffer waits for the task that added to it last (Additions).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TASKS_PRODUCERS_H
#define STAGE_TASKS_PRODUCERS_H

#include "stage/Tasks/TaskLayout.h"
#include <set>

namespace stage {

/// Where a value comes from: the name its maker gives it, and when.
struct Origin {
  enum class Kind : uint8_t {
    Node,   ///< result of an op that has a node
    Recv,   ///< received from another stage
    Source, ///< param, input or constant: there before the step
    Buffer, ///< the buffer in which a gradient accumulates; `value` is the result of an accumulate
  };
  Kind kind;
  const Value *value;
  const PlacedUnit *unit;
  int64_t iteration; ///< -1 outside of loops.
  uint64_t id;       ///< Node, Recv
};

/// Visits the buffers to which the node of an op adds, as results of accumulates.
void forEachAddition(const Graph &graph, const Op &op, llvm::function_ref<void(const Value *)> visit);

/// The nodes that added last to the gradient buffers of a stage, as its units are lowered in order. All units of one
/// template add in the same places: a unit that is skipped did what the one before it did.
///
/// A parameter of a repeat has a buffer per iteration, to which ops of its body add, whatever the iteration: where the
/// node of one is, and whether it comes before the current one, is arithmetic. Of other buffers the last addition is
/// remembered.
class Additions {
public:
  /// The buffers, and all units, must outlive this.
  explicit Additions(const GradientBuffers &buffers) : buffers(buffers) {}

  /// Before all units: notes what the iterations of a template add.
  void addLayout(const Graph &graph, const TaskLayout &layout);
  /// The node that is lowered from here on.
  void setCurrent(uint64_t id) { current = id; }
  /// The current node, of `unit`, adds to the buffer of which `buffer`, the result of an accumulate, is a name.
  void add(const Value *buffer, const PlacedUnit &unit);
  /// Of a unit of whose layout none has been made, or that is the first one that is skipped: notes what its nodes add.
  void skipUnit(const Graph &graph, const PlacedUnit &unit);
  /// All nodes of the unit have been added, or are those of an earlier unit with the same layout.
  void endUnit(const PlacedUnit &unit);
  /// Another step begins: no unit of it has added anything yet.
  void startStep() { latest.clear(); }
  /// Appends the node of `unit`, or else of an earlier one, that added last before the current node.
  void findLast(const Value *buffer, int64_t iteration, const PlacedUnit &unit, llvm::SmallVectorImpl<uint64_t> &ids);
  /// Whether findLast() was called since forgetAsked().
  bool wasAsked() const { return isAsked; }
  void forgetAsked() { isAsked = false; }
  /// The latest unit with this layout that has ended; null if none has.
  const PlacedUnit *getLatest(const TaskLayout *layout) const { return latest.lookup(layout); }

  /// What is added to buffers of the top level from here on, iterations of a repeat, ...
  void startRound() { addedInRound.clear(); }
  /// ... was added so many nodes later (or earlier).
  void shiftRound(int64_t numNodes);

private:
  /// A place in all units of a layout, found in one of them.
  struct Last {
    const TaskLayout *layout = nullptr;
    const PlacedUnit *unit = nullptr;
    uint64_t offset = 0;
  };
  /// The ops of a layout that add to the buffers of a parameter of a repeat, in order.
  struct Adders {
    const TaskLayout *layout;
    llvm::SmallVector<const Op *, 1> ops;
  };
  bool isPerIteration(const Value *buffer) const {
    const Value *param = getTrainedParam(*buffer->getOp());
    return param && getLoop(param);
  }
  std::optional<uint64_t> findLast(const Adders &adders, int64_t iteration, const PlacedUnit &unit) const;
  Last &findKnown(const Op *first, const TaskLayout *layout);

  const GradientBuffers &buffers;
  uint64_t current = 0;
  bool isAsked = false;
  /// Per buffer, for which its first accumulation stands, one for each layout that adds to it: of repeats, and others.
  llvm::DenseMap<const Op *, llvm::SmallVector<Adders, 1>> adders;
  std::set<const TaskLayout *> skipped; ///< Layouts of units that were skipped.
  llvm::DenseMap<const Op *, llvm::SmallVector<Last, 1>> known;
  std::vector<std::pair<const Op *, const TaskLayout *>> addedInRound; ///< Of `known`.
  llvm::DenseMap<const TaskLayout *, const PlacedUnit *> latest;
};

/// Finds out where values come from on one stage.
class Producers {
public:
  /// Notes what writes parameters.
  Producers(const Graph &graph, const StageProgram &stage, Additions &additions);

  using Visitor = llvm::function_ref<void(const Origin &)>;
  /// Visits the origins of a value that is used in `unit` at `iteration` (-1: outside of loops). There are several
  /// if an op without a node made it: those of its operands.
  void visit(const Value *value, const PlacedUnit &unit, int64_t iteration, Visitor visitor) const;
  /// Appends the ids of the nodes that the value waits for: of a parameter, those that wrote it in the step before.
  /// True if it is an input of the microbatch, or a view of one.
  bool find(const Value *value, const PlacedUnit &unit, int64_t iteration, llvm::SmallVectorImpl<uint64_t> &ids) const;

private:
  /// Results of ops without a node that one visit has been at: chained ones would be come by in every way.
  using Seen = std::set<std::tuple<const Value *, const PlacedUnit *, int64_t>>;
  void visit(const Value *value, const PlacedUnit &unit, int64_t iteration, Visitor visitor, Seen &seen) const;
  bool visitArrival(const Value *value, const PlacedUnit &unit, Visitor visitor) const;
  bool visitHandedIn(const Value *value, const PlacedUnit &unit, Visitor visitor, Seen &seen) const;
  void visitArgument(const Value *value, const PlacedUnit &unit, int64_t iteration, Visitor visitor, Seen &seen) const;
  void visitLoopResult(const Value *value, const PlacedUnit &unit, Visitor visitor, Seen &seen) const;
  static void findCacheRecvs(const Origin &cache, llvm::SmallVectorImpl<uint64_t> &ids);
  bool findSampled(const Value *input, const PlacedUnit &unit, llvm::SmallVectorImpl<uint64_t> &ids) const;
  void findWriter(const Value *param, const PlacedUnit &unit, int64_t iteration,
                  llvm::SmallVectorImpl<uint64_t> &ids) const;

  const Graph &graph;
  Additions &additions;
  llvm::DenseMap<const Value *, const Op *> writers; ///< An update in place, or a write, by parameter.
};

} // namespace stage

#endif // STAGE_TASKS_PRODUCERS_H
