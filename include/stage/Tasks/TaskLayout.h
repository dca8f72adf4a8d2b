//===- TaskLayout.h - where each op's task is in a trace ------ -*- C++ -*-===//
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
// iteration of the loop or in an earlier unit of the same microbatch (Producers.h).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TASKS_TASKLAYOUT_H
#define STAGE_TASKS_TASKLAYOUT_H

#include "stage/Walk/PairOrder.h"

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
class TaskLayout {
public:
  TaskLayout(const Graph &graph, llvm::ArrayRef<ProgramItem> items);

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
  const TaskLayout *layout = nullptr;
  uint64_t base = 0; ///< Id of its first node; in a pair that of the pair.
  /// Where its nodes are among those of the pair in which it runs, as the first or the second unit; null: it is in
  /// none.
  const PairOrder *pair = nullptr;
  unsigned placeInPair = 0;
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

  /// Of the node at a position in the unit; and back.
  uint64_t getId(uint64_t position) const { return base + (pair ? pair->getPlace(placeInPair, position) : position); }
  uint64_t getPosition(uint64_t id) const { return pair ? pair->find(id - base).position : id - base; }
  /// How many ids there are from `base` on: those of the pair, if it is in one.
  uint64_t getNumIds() const { return pair ? pair->getNumNodes() : layout->getNumNodes(); }
  bool contains(std::optional<uint64_t> id) const { return id && *id >= base && *id - base < getNumIds(); }

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

} // namespace stage

#endif // STAGE_TASKS_TASKLAYOUT_H
