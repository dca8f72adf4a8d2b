//===- Layout.h - where each op's node is in a trace -----------*- C++ -*-===//
//
// A unit's template lays its nodes out once: top-level ops have a position in the
// unit, ops of a repeat one in the iteration. The id of any node is then arithmetic:
//
//   id = first id of the unit + start of the segment + start of the iteration + position
//
// (of equal layers all have equally many nodes; of layers that differ, all of a run; a gather
// that runs ahead has the node where that many others have been released)
//
// and so is the id of the node that produced any value: in this unit, in the previous
// iteration of the loop or in an earlier unit of the same microbatch. What
// reads a gradient's buffer waits for the node that added to it last (Additions).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_CODEGEN_LAYOUT_H
#define STAGE_LIB_CODEGEN_LAYOUT_H

#include "stage/IR/graph/Program.h"
#include <set>

namespace stage {

/// How many of something the iterations of a loop have, those that run before an iteration among them.
class IterationSums {
public:
  IterationSums() = default;
  /// So many per case.
  IterationSums(const ProgramItem &loop, std::vector<uint64_t> ofCase);
  uint64_t getTotal() const { return total; }
  uint64_t getBefore(int64_t iteration) const;
  /// The iteration that has number n of them.
  int64_t find(uint64_t n) const;

private:
  const ProgramItem *loop = nullptr;
  std::vector<uint64_t> ofCase;
  /// Of a loop with cases: per run, from the first one of the repeat, those of its iterations that are of the item and
  /// of the runs before it.
  llvm::SmallVector<uint64_t, 1> upTo;
  uint64_t total = 0;
};

/// A run of nodes of a template: one item of the program. Where a gather ahead is released, one of an earlier unit
/// among them, another one runs, if there is one more: there is a *slot* for it, which is counted here as a node, or as
/// two where each has a fetch before it.
struct Segment {
  const ProgramItem *item;
  uint64_t start = 0, firstSlot = 0; ///< Nodes, and the slots among them, of the segments before.
  uint64_t firstGather = 0;          ///< Gathers ahead that stand in these.
  uint64_t numNodes = 0;
  /// Those with nodes, in order: of a loop per case, else one list. A permute stands there twice, for its recv and for
  /// its send; for a slot its release does.
  llvm::SmallVector<std::vector<Op *>, 1> ops;
  IterationSums nodes, slots, gathers; ///< Of a loop.

  bool isLoop() const { return item->kind == ProgramItem::Kind::Loop; }
  /// Of a loop: the ops of an iteration.
  llvm::ArrayRef<Op *> getOps(int64_t iteration) const { return ops[item->op->cases.get(iteration)]; }
  /// Of a loop: how many of its iterations run before this one.
  int64_t getNumBefore(int64_t iteration) const {
    return item->op->reverse ? item->end - 1 - iteration : iteration - item->begin;
  }
  /// In `ops`, the place of the first op that a rank loads inputs beside, and its iteration.
  std::optional<std::pair<const Op *, int64_t>> findFirstWork() const;
};

/// The nodes of one template.
class NodeLayout {
public:
  NodeLayout(const Graph &graph, llvm::ArrayRef<ProgramItem> items);

  llvm::ArrayRef<ProgramItem> getItems() const { return items; }
  llvm::ArrayRef<Segment> getSegments() const { return segments; }
  /// Of a repeat's op: in some iteration.
  bool hasNode(const Op &op) const { return positions.count(&op); }
  uint64_t getNumNodes() const { return numNodes; }
  /// Position in the unit of the first node that is no message, and its op; nothing if all are.
  std::optional<std::pair<uint64_t, const Op *>> getFirstWork() const { return firstWork; }
  /// The segment that runs a loop; null if this template does not. A unit has one per loop; the step has one for each
  /// of the stage's chunks, which are ranges of one loop.
  const Segment *findLoop(unsigned loop) const;
  /// The segment that runs an iteration of a loop; null if this template does not.
  const Segment *findLoop(unsigned loop, int64_t iteration) const;
  /// Position in the unit of an op's node (for an op in a loop: at this iteration; of a permute that of its recv);
  /// nothing if it has no node here.
  std::optional<uint64_t> findPosition(const Op *op, int64_t iteration) const;
  /// Position in the unit of the recv of a value, the first one if it comes in several messages; nothing if it is not
  /// received.
  std::optional<uint64_t> findRecv(const Value *value) const;
  /// The same of a cache that another part has filled, and in how many messages it comes.
  std::optional<std::pair<uint64_t, unsigned>> findCacheRecvs(const Value *cache, int64_t iteration) const;
  /// What this repeat carries comes from another virtual stage.
  bool isFed(const Op &repeat) const { return receives(items, repeat); }
  /// The iteration in which what a unit sends was made; -1 for what passes through it.
  int64_t getSentIteration(const Value *value) const;

private:
  /// Where an op stands: in its (first) segment, among the nodes of an iteration, behind so many slots of it. A gather
  /// ahead stands nowhere: it is the next one behind so many others of the iteration.
  struct Position {
    unsigned segment, place, ahead;
  };
  /// What there is so far in an iteration.
  struct Ahead {
    unsigned slots = 0, gathers = 0;
  };
  void append(Segment &segment, std::vector<Op *> &nodes, const Graph &graph, Op &op, Ahead &ahead);
  uint64_t getPosition(const Segment &segment, int64_t iteration, unsigned place, unsigned slots) const;
  uint64_t getPositionOfSlot(uint64_t number) const;

  llvm::ArrayRef<ProgramItem> items;
  std::vector<Segment> segments;
  llvm::DenseMap<const Op *, Position> positions;
  llvm::DenseMap<const Value *, Position> recvs;
  llvm::DenseMap<std::pair<const Value *, int64_t>, unsigned> cacheRecvs; ///< Their segments, by iteration.
  llvm::DenseMap<unsigned, llvm::SmallVector<unsigned, 1>> loops;         ///< Their segments, in order.
  uint64_t numNodes = 0, numSlots = 0, numGathers = 0;
  uint64_t numAhead = 0; ///< Gathers that run when the unit begins; the others fill the first slots.
  unsigned nodesPerSlot = 1;
  const Op *anyPrefetched = nullptr; ///< They are all of one stream.
  std::optional<std::pair<uint64_t, const Op *>> firstWork;
};

/// A template at a place in a rank's trace.
struct PlacedUnit {
  const NodeLayout *layout = nullptr;
  uint64_t base = 0; ///< Id of its first node.
  PhaseKind kind = PhaseKind::Forward;
  unsigned microbatch = 0; ///< Counted through all steps.
  unsigned step = 0;
  std::optional<unsigned> chunk; ///< If the stage has several.
  unsigned environment = 0;
  unsigned chain = 0;      ///< Of its stage.
  llvm::StringRef ownName; ///< That it was given; empty: it has none.
  /// The unit before it of the same microbatch and chunk; null if it is the first.
  const PlacedUnit *previous = nullptr;
  /// The unit of another chunk that hands this one what its repeat carries; null if there is none.
  const PlacedUnit *giver = nullptr;
  /// The unit that has sampled the tokens of this one (Unit); null if these are inputs of the job.
  const PlacedUnit *feeder = nullptr;
  /// What updated the parameters in the step before; null in the first step.
  const PlacedUnit *updates = nullptr;
  /// The number of the last unit before it that has more than messages: what this one needs arrives while that runs.
  std::optional<unsigned> loader;

  /// `F0`, `B2.1`, `step`, and of the steps behind the first `step1`, ...; or the name that it was given.
  std::string getName() const {
    if (!ownName.empty())
      return ownName.str();
    std::string name = Unit{kind, microbatch, chunk.value_or(0)}.str(chunk.has_value());
    return isOncePerStep(kind) && step ? name + std::to_string(step) : name;
  }
  /// How many units of its microbatch and chunk are before it.
  unsigned getPlace() const { return previous ? previous->getPlace() + 1 : 0; }
};

/// The nodes of a rank of a stage.
uint64_t countNodes(const Program &program, const StageProgram &stage);

/// Whether the units of all steps can be listed. False after a report.
bool checkSteps(const Program &program, unsigned steps, DiagnosticEngine &diags);

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
  /// The buffers must outlive this.
  explicit Additions(const GradientBuffers &buffers) : buffers(buffers) {}

  /// Before all units: notes what the iterations of a template add.
  void addLayout(const Graph &graph, const NodeLayout &layout);
  /// The node that is lowered from here on.
  void setCurrent(uint64_t id) { current = id; }
  /// The current node, of `unit`, adds to the buffer of which `buffer`, the result of an accumulate, is a name.
  void add(const Value *buffer, const PlacedUnit &unit);
  /// All nodes of the unit have been added, or are those of an earlier unit with the same layout.
  void endUnit(const PlacedUnit &unit);
  /// Another step begins: no unit of it has added anything yet.
  void startStep() { latest.clear(); }
  /// Appends the node of `unit`, or else of an earlier one, that added last before the current node.
  void findLast(const Value *buffer, int64_t iteration, const PlacedUnit &unit, llvm::SmallVectorImpl<uint64_t> &ids);
  /// The first id of the latest unit with this layout, if one has ended.
  std::optional<uint64_t> getLatest(const NodeLayout *layout) const;

  /// What is added to buffers of the top level from here on, iterations of a repeat, ...
  void startRound() { addedInRound.clear(); }
  /// ... was added so many nodes later (or earlier).
  void shiftRound(int64_t numNodes);

private:
  /// A place in all units of a layout, found in the one that begins with node `base`.
  struct Last {
    const NodeLayout *layout;
    uint64_t base, offset;
  };
  /// The ops of a layout that add to the buffers of a parameter of a repeat, in order.
  struct Adders {
    const NodeLayout *layout;
    llvm::SmallVector<const Op *, 1> ops;
  };
  bool isPerIteration(const Value *buffer) const {
    const Value *param = getTrainedParam(*buffer->getOp());
    return param && getLoop(param);
  }
  std::optional<uint64_t> findLast(const Adders &adders, int64_t iteration, const PlacedUnit &unit) const;

  const GradientBuffers &buffers;
  uint64_t current = 0;
  /// Per buffer, for which its first accumulation stands, one for each layout that adds to it: of repeats, and others.
  llvm::DenseMap<const Op *, llvm::SmallVector<Adders, 1>> adders;
  llvm::DenseMap<const Op *, llvm::SmallVector<Last, 1>> known;
  std::vector<std::pair<const Op *, const NodeLayout *>> addedInRound; ///< Of `known`.
  llvm::DenseMap<const NodeLayout *, uint64_t> latest;
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

#endif // STAGE_LIB_CODEGEN_LAYOUT_H
