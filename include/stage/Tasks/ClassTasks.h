//===- ClassTasks.h - what the ranks of a class do --------------*- C++ -*-===//
//
// Problem: ranks of a class run the units of one stage. Which tasks does each of them run, in which order, and for
// which other tasks does a task wait, so that a simulator finishes that runs any task that is ready (law L13)?
//
// The rules of waiting; docs/Traces.md has an example of each:
//
//   W1  Streams. A task waits for the task before it on its stream: compute, communication, copies, compute on
//       the host, and one stream more for each that the graph declares. Receives are on no stream.
//   W2  Results. A task waits for the tasks whose results it uses. A view has none: its readers wait for the task that
//       made the tensor.
//   W3  Messages. The first compute task of a unit waits for all receives of the unit. A send waits for the last
//       compute task of its unit, and with `send = early` for what it sends alone. No compute task waits for a send.
//       With `messages = blocking` a wait follows each send, a compute task that takes as long. It waits for what the
//       send sends, and not for the send. What gathers pieces that arrive (`scatter_gather`) waits for the last compute
//       task before it, and the first compute task of its unit waits for it, too.
//   W4  Posts. A receive waits for the last compute task before the unit in which it is posted (stage/Walk/Arrivals.h).
//   W5  Inputs. A task that reads an input of its unit waits for the first task of the unit that loads it (Arrivals).
//   W6  Brought on time. A fetch, a copy of a cache, and a gather of parameters from flat storage wait for the compute
//       task before them, because a tensor that comes too early takes memory; not if rule W7 says more.
//   W7  Edges. An op that the program puts behind another one waits for that op's task: of its unit, so many iterations
//       before, or so many units before.
//   W8  Sums. A task that adds to a gradient's buffer waits for the task that added before; a reader of the buffer
//       waits for the last of them. A permute is a receive and a send: both wait for the send or collective before,
//       and readers of the result wait for the receive.
//
// The tasks of a pair of units follow each other as stage/Walk/PairOrder.h says; the rules say of them what they say of
// one unit. Receives of both are posted, and inputs of both loaded, before the pair, and what they send leaves behind
// the last compute task of the pair.
//
// Ids are dense in the order of the program: a task has a larger id than those for which it waits, and of the tasks
// that are ready the one with the lowest id is the next in the order.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TASKS_CLASSTASKS_H
#define STAGE_TASKS_CLASSTASKS_H

#include "stage/IR/graph/Channel.h"
#include "stage/IR/graph/Costs.h"
#include "stage/Support/Limits.h"
#include "stage/Tasks/Groups.h"
#include "stage/Tasks/OpCosts.h"
#include "stage/Tasks/Producers.h"
#include "stage/Tasks/Task.h"
#include "stage/Tasks/TaskNames.h"
#include "stage/Tasks/TaskSizes.h"
#include "stage/Tasks/TaskWork.h"
#include "stage/Walk/Arrivals.h"
#include "stage/Walk/FoldedLoop.h"
#include <deque>
#include <map>

namespace stage {

struct TaskOptions {
  bool names = true;          ///< Tasks have a name and `opType`.
  bool orderAsData = false;   ///< What is waited for without using its result stands among `data`, too.
  bool mergesStreams = false; ///< All streams of a kind are one, for simulators that know no others.
  unsigned steps = 1;         ///< Training steps, one after the other.
  bool works = false;         ///< Tasks say what their price depends on; those that compute, instead of FLOPs.
  bool keepsSizes = false;    ///< Sizes that differ from unit to unit are slots, for who asks about other units.
};

/// What a slot of a class's image is filled with for each rank.
struct RankSlot {
  enum class Kind : uint8_t {
    Group,     ///< Its group of a kind.
    Stage,     ///< The rank at the same coordinates on another stage.
    Neighbour, ///< The rank some coordinates further on along an axis, counted around.
    Sender,    ///< The rank of another part from which message number `shift` of an exchange comes.
    Receiver,  ///< That to which it sends its message number `shift` of a batch in an exchange.
    Tag,       ///< That of message number `shift` of an exchange, which is `least` for the first batch of the sender.
    Size,      ///< What a size is at its coordinates, and `least` at least.
  };
  Kind kind;
  unsigned groupKind = 0;
  int64_t stage = 0;
  AxisId axis = 0;
  int64_t shift = 0;
  const Exchange *exchange = nullptr;
  unsigned batch = 0; ///< Of those of the sender that are one of the receiver.
  // Of a size: what has it, an op or a value, and in which units.
  stage::Size size = {};
  uint64_t least = 0;
  const Op *op = nullptr;
  const Value *value = nullptr;
  unsigned environment = 0;
};

/// A class: ranks of a stage whose tasks are the same but for sizes that depend on coordinates. Ranks that send
/// different numbers of messages to other parts are of different classes.
struct RankClass {
  unsigned stage = 0;
  /// Of ranks with these coordinates only: then no such size is a slot.
  llvm::SmallVector<std::pair<AxisId, int64_t>, 2> coordinates;
  /// Of each exchange in which the stage sends: the messages of a unit and channel.
  llvm::SmallVector<std::pair<const Exchange *, unsigned>, 1> messages;
  /// How many times as long these ranks compute, and as their nodes say then; null: once.
  Size slowness;
};
/// The exchanges in which a stage sends, each once, in order.
llvm::SmallVector<const Exchange *, 1> listSendingExchanges(const StageProgram &stage);

/// Sees what tasks are made of, each before it is handed on. What it is given lives as long as the call.
class TaskObserver {
public:
  virtual ~TaskObserver() = default;
  /// A task of an op, and the units whose inputs are loaded beside it.
  virtual void observeOp(const Op &op, const PlacedUnit &unit, int64_t iteration, const Task &task,
                         llvm::ArrayRef<const PlacedUnit *> loaded) = 0;
  /// A task that sends or receives a value, or waits behind a send of it.
  virtual void observeMessage(const Value *value, const PlacedUnit &unit, int64_t iteration, const Task &task) = 0;
};

/// Makes the tasks of a class, unit by unit:
///
///   ClassTasks tasks(program, groups, options, rankClass, diags);
///   if (!tasks.checkTags()) return false;         // reported
///   for (unsigned u = 0; u < tasks.getUnits().size(); ++u)
///     tasks.makeUnit(u, [&](const Task &task) { ... });
///
/// The slots of the tasks are numbered by getSlots(), which grows with them.
class ClassTasks {
public:
  /// All but the class must outlive this. `costs`: what it has in common with other classes; null: nothing. `kernels`:
  /// those of who asks what prices depend on.
  ClassTasks(const Program &program, const GroupTable &groups, const TaskOptions &options, const RankClass &rankClass,
             DiagnosticEngine &diags, OpCosts *costs = nullptr, const Kernels *kernels = nullptr);

  /// Is told of each task from here on.
  void setObserver(TaskObserver *taskObserver) { observer = taskObserver; }
  /// What the class runs, and by what its sizes are found.
  const StageProgram &getStage() const { return stage; }
  const SizeBinding &getCoordinates() const { return coordinates; }
  const Producers &getProducers() const { return producers; }
  TaskSizes &getSizes() { return sizes; }
  /// How many times as long its ranks compute; nothing: once.
  std::optional<Rational> getSlowness() const {
    SizeValue value = slowness ? stage::evaluate(slowness, binding) : SizeValue();
    return slowness && value ? std::optional(value.value) : std::nullopt;
  }
  /// Of all tasks of a rank.
  bool isLast(uint64_t id) const { return id + 1 == getNumIds(); }
  uint64_t getNumIds() const { return units.back().base + units.back().getNumIds(); }
  /// The unit of a task, if it is not before another unit.
  unsigned findUnit(uint64_t id, unsigned from = 0) const;

  /// Whether tags of messages stay below maxTag.
  bool hasEnoughTags() const { return getNumTags() + numPermutes <= uint64_t(maxTag); }
  /// The same, and reports it.
  bool checkTags() const;
  /// In the order of the trace, the step last.
  const std::deque<PlacedUnit> &getUnits() const { return units; }
  llvm::ArrayRef<RankSlot> getSlots() const { return slots; }
  /// Tags of the first and of the last value of each message of a unit.
  llvm::SmallVector<uint64_t, 4> getTags(const PlacedUnit &unit) const;

  using Sink = llvm::function_ref<void(const Task &)>;
  /// Units must be made, or skipped, in order. The first unit of a pair makes the tasks of both, the second one none.
  void makeUnit(unsigned number, Sink sink);

  /// The same for who asks only how long encoded tasks are: `sink` is given a task and the number of tasks of its
  /// length. Equal rounds of iterations are counted instead of made one by one (FoldedTasks.h).
  using CountSink = llvm::function_ref<void(const Task &, uint64_t times)>;
  void countUnit(unsigned number, CountSink sink);

  /// Equal rounds of iterations of a unit. Each number of a task is linear in the round, as the first and the second
  /// have it.
  struct Rounds {
    uint64_t first; ///< Id of the first task of the first round.
    uint64_t tasks; ///< Of a round.
    int64_t count;
  };
  /// Numbers of streams: one of each kind, then those that the graph declares.
  static constexpr unsigned computation = 0, firstDeclared = numStreamKinds;
  /// The last task of each stream in the units so far, for which the next task of the stream waits.
  using Chains = llvm::SmallVector<std::optional<uint64_t>, 2>;
  const Chains &getChains() const { return chains; }

  /// *Ends*: tasks of earlier units that the waiting rules name by their role instead of by a value, for example the
  /// last task of a stream (W1). The chains come first, then one end of each kind below; of the first unit of a pair
  /// then one of each kind of the second unit, which may post and load elsewhere. Nothing: no such task.
  enum class End : uint8_t { Posted, Load, WorkBefore, WorkBeforeLoop };
  static constexpr unsigned numEndKinds = 4;
  llvm::SmallVector<std::optional<uint64_t>, 12> listEnds(unsigned number) const;
  unsigned getNumber(End end, unsigned placeInPair = 0) const {
    return unsigned(chains.size()) + placeInPair * numEndKinds + unsigned(end);
  }
  /// While a unit is made by name, tasks wait for `firstName + n` instead of the id of end n. No rank has so many
  /// tasks.
  static constexpr uint64_t firstName = uint64_t(1) << 44;

  /// The state behind a unit that was made by name: ids of its own tasks, or names of ends that it left as they were.
  struct Left {
    Chains chains;
    std::optional<uint64_t> workBeforeLoop;
    bool asksForSums; ///< A task of the unit waits for the last addition to a gradient, if there is one (W8).
  };
  /// Makes a unit by name, and with the first unit of a pair both. Of equal rounds of iterations only the first, the
  /// second and the last one are made, because the others follow from these; `repeat` is told behind the last one.
  /// Tasks wait for names also of absent ends, so that the same tasks serve units with other ends (UnitPattern.h in
  /// lib/Time).
  using RepeatSink = llvm::function_ref<void(const Rounds &)>;
  Left makeRounds(unsigned number, Sink sink, RepeatSink repeat);

  /// Rule W4: the task for which receives of a unit wait. Nothing: they are posted from the beginning.
  std::optional<uint64_t> getPosted(unsigned number) const {
    unsigned post = arrivals->getPost(number);
    return post ? lastCompOfUnit[post - 1] : std::nullopt;
  }
  /// Some units run in pairs.
  bool hasPairs() const { return !pairs.empty(); }
  /// Rule W5: the task beside which inputs of a unit are loaded. Nothing: they are there from the beginning.
  std::optional<uint64_t> getLoad(const PlacedUnit &unit) const;
  /// The stream of that task. Tasks of this stream are behind it already; a task of another stream that reads an input
  /// waits for it.
  std::optional<unsigned> getStreamOfLoad(const PlacedUnit &unit) const;
  /// The units of which a unit is the loader.
  llvm::SmallVector<const PlacedUnit *, 1> getLoaded(unsigned number) const;
  /// The latest backward unit of each template, the last one first: what adds to a gradient depends on their nodes.
  llvm::SmallVector<const PlacedUnit *, 2> getLatestBackwards() const;
  /// The units to which edges of a unit lead, null for an edge that leads to none yet; nothing if that differs from op
  /// to op.
  std::optional<llvm::SmallVector<const PlacedUnit *, 1>> getAwaitedUnits(unsigned number);
  /// How many bytes each number takes, in the nodes of a unit, that is not the same in all units, in an order of its
  /// template's. Nothing where they differ from rank to rank.
  const std::optional<std::vector<unsigned>> &getWidths(const PlacedUnit &unit);
  /// The last task on the compute stream up to the unit before.
  std::optional<uint64_t> getWorkBefore(unsigned number) const {
    size_t begin = getPairBegin(stage.units, number);
    return begin ? lastCompOfUnit[begin - 1] : std::nullopt;
  }
  /// What tasks ahead of a repeat wait for is the last computation before the repeat that was entered last, in this
  /// unit or an earlier one.
  std::optional<uint64_t> getWorkBeforeLoop() const { return workBeforeLoop; }
  void setWorkBeforeLoop(std::optional<uint64_t> id) { workBeforeLoop = id; }
  /// The first environment with the sizes of the unit that was made last.
  unsigned getEnvironment() const { return environment; }
  /// Goes on as if the next unit had been made, and its last tasks on each stream were these.
  void skipUnit(unsigned number, const Chains &after);
  /// For who has made or skipped all units: frees what is known of them, some 200 bytes each.
  void forgetUnits();

  /// Per kind of groups: the collectives of the units so far, and those of a unit. A collective's tag is how many its
  /// group had before, which its members agree on as they issue the same ones in the same order. At the end stand the
  /// permutes, which are counted from the tags of messages between stages on.
  llvm::ArrayRef<uint64_t> getNumIssued() const { return numIssued; }
  llvm::ArrayRef<uint64_t> getNumCollectives(const PlacedUnit &unit);

private:
  class TaskMaker;
  class TaskWalk;
  class PairedWalk;
  class FoldedWalk;
  /// What the nodes of an op say, in all units; absent sizes are null.
  struct OpNumbers {
    Size commSize, numOps, otherOps, recomputedOps, tensorSize;
    std::optional<OpCost> cost; ///< Where prices are asked for.
    bool varies = false;        ///< From one environment to another.
    llvm::SmallVector<Size, 5> list() const {
      llvm::SmallVector<Size, 5> present;
      for (Size size : {commSize, numOps, otherOps, recomputedOps, tensorSize})
        if (size)
          present.push_back(size);
      return present;
    }
  };

  /// Numbers and names of an op, the same in every unit of an environment.
  struct OpFacts {
    Task fields;
    std::optional<Work> work; ///< Of compute, where prices are asked for.
    TaskName name;            ///< Where nodes have names.
    unsigned groupKind = 0;   ///< Of a collective.
    unsigned stream = computation;
    llvm::SmallVector<const Value *, 1> additions; ///< The buffers to which it adds (forEachAddition).
    /// Of a collective: per dimension of the network, whether members of a group differ there.
    llvm::SmallVector<uint8_t, 4> networkDims;
  };

  /// Sizes are those of the units of an environment from here on.
  void select(unsigned environment);
  /// Of messages between stages.
  uint64_t getNumTags() const;
  /// In all steps.
  uint64_t getNumMicrobatches() const { return uint64_t(program.microbatches) * options.steps; }
  void placeUnits();
  void pairUp(PlacedUnit &first, PlacedUnit &second);
  unsigned getVirtualStage(const PlacedUnit &unit) const;
  uint64_t getTag(const PlacedUnit &unit, unsigned from, unsigned to, unsigned value) const;
  uint64_t getTag(const Channel &channel, const PlacedUnit &unit) const;
  static uint64_t getCacheTag(const Channel &channel, uint64_t batch) {
    return uint64_t(channel.number) * channel.numBatches + batch;
  }
  unsigned getSlot(const RankSlot &slot);
  /// A size of an op's shape. It need not be whole (ShapeSizes.h).
  int64_t evaluateOf(const Op &op, Size size);
  /// A size, or `least` if that is more: a number if all ranks of the class have it, else a slot.
  TaskValue makeNumber(Size size, uint64_t least, const Op *op, const Value *value);
  /// The last kinds are those of collectives that name no group, and of permutes.
  unsigned getGroupKind(const Op &op) const {
    return op.kind == OpKind::Permute ? groups.getNumKinds() + 1
                                      : groups.find(op, stage.stage).value_or(groups.getNumKinds());
  }
  const OpNumbers &getNumbers(const Op &op);
  const OpFacts &getFacts(const Op &op);
  void makeOp(const Op &op, const PlacedUnit &unit, unsigned number, int64_t iteration, uint64_t id,
              const std::string &suffix, Sink sink);
  void makeMessage(const PlacedUnit &unit, unsigned number, const ProgramItem &item, unsigned index, uint64_t id,
                   const std::string &suffix, Sink sink);
  void makeWait(const PlacedUnit &unit, const ProgramItem &item, unsigned index, uint64_t id, const std::string &suffix,
                Sink sink);
  void makeCacheMessage(const PlacedUnit &unit, const ProgramItem &item, unsigned index, uint64_t id,
                        const std::string &suffix, Sink sink);
  void makePermute(const Op &op, const PlacedUnit &unit, unsigned number, bool isSend, int64_t iteration, uint64_t id,
                   const std::string &suffix, Sink sink);
  /// Of what is sent from rank to rank.
  TaskValue getMessageBytes(const Value &value);
  std::string makeName(const OpFacts &facts, int64_t iteration, const std::string &suffix) const {
    return names ? facts.name.get(iteration, suffix) : "";
  }
  std::optional<uint64_t> getOtherChainsLoad(const PlacedUnit &unit, unsigned stream) const;
  /// Where streams are merged a declared one is as good as none. But what computes beside the rest, as the addition of
  /// a scattered gradient, waits for a collective, for which the next layer need not wait: it keeps a chain of its own.
  unsigned getStream(const Stream *declared, StreamKind kind) const {
    bool isMerged = options.mergesStreams && kind != StreamKind::Computation;
    return declared && !isMerged ? firstDeclared + declared->number : unsigned(kind);
  }
  unsigned getStream(const Op &op) const { return getStream(op.stream, getStreamKind(op)); }
  /// What nodes of a stream say of it.
  uint64_t getNumber(unsigned stream) const {
    return options.mergesStreams || stream < firstDeclared ? 0 : stream - firstDeclared + 1;
  }
  std::optional<uint64_t> getTurnOfReader(const Op &op) const;
  void findEdges(const Op &op, const PlacedUnit &unit, unsigned number, int64_t iteration);
  using UnitEdges = llvm::SmallVector<std::pair<unsigned, unsigned>, 1>;
  const std::optional<UnitEdges> &getUnitEdges(const TaskLayout &layout);
  llvm::ArrayRef<unsigned> getUnitsBefore(unsigned layout, unsigned number) const;
  const PlacedUnit *findEarlierUnit(const Op &maker, unsigned number, int64_t iteration, unsigned distance) const;
  void makePair(unsigned number, Sink sink);
  void endUnit(unsigned number);
  void nameEnds(unsigned number);
  void replaceNames();
  /// An end of a unit that is made.
  std::optional<uint64_t> getEnd(End end, const PlacedUnit &unit, std::optional<uint64_t> id) const {
    return endsOfNames.empty() ? id : std::optional(firstName + getNumber(end, unit.placeInPair));
  }
  void foldUnit(unsigned number, Sink sink, CountSink count, RepeatSink repeat);
  void foldLoops();
  void finish(Task &task, llvm::ArrayRef<std::optional<uint64_t>> order);

  const Program &program;
  Graph &graph;
  const GroupTable &groups;
  const TaskOptions &options;
  DiagnosticEngine &diags;
  const Kernels *kernels;
  /// What the ranks of the class run, where it is not what the stage runs.
  const std::optional<StageProgram> own;
  const StageProgram &stage;
  SizeBinding binding, measured; ///< Of the current unit, and of those whose widths are looked at.
  TaskSizes sizes;

  std::deque<TaskLayout> layouts;                        ///< One per template, in their order.
  llvm::DenseMap<const ProgramItem *, FoldedLoop> folds; ///< Of the loops of all templates, if a unit was counted.
  /// By the layouts of the two units.
  std::map<std::pair<const TaskLayout *, const TaskLayout *>, PairOrder> pairs;
  std::vector<std::vector<unsigned>> unitsOfLayout; ///< Numbers of the units of each template, in order.
  llvm::DenseMap<const TaskLayout *, std::optional<UnitEdges>> unitEdges;
  std::optional<Arrivals> arrivals;
  std::deque<PlacedUnit> units; ///< A deque: they point to each other.
  std::vector<unsigned> virtualStageOfChunk;
  Additions additions;
  Producers producers;
  TaskObserver *observer = nullptr;
  std::optional<TaskNames> names; ///< If nodes have them.

  std::unique_ptr<OpCosts> ownCosts; ///< If it has none in common with others.
  OpCosts &costs;
  const bool hasCoordinates;           ///< Sizes depend on them, or may be other ones than those of other classes.
  SizeBinding coordinates;             ///< Of the class.
  Size slowness;                       ///< Of the class; null: 1.
  unsigned bound = 0, environment = 0; ///< Whose symbols `binding` has, and the first with the same sizes.
  llvm::DenseMap<const Op *, OpNumbers> numbers;
  /// Per environment, or in 0 where it is the same in all of them.
  llvm::DenseMap<std::pair<const Op *, unsigned>, std::unique_ptr<OpFacts>> facts;
  llvm::DenseMap<std::pair<const TaskLayout *, unsigned>, std::optional<std::vector<unsigned>>>
      widths;                                                         ///< By environment.
  llvm::DenseMap<const TaskLayout *, std::vector<Size>> varyingSizes; ///< In the order of their nodes in memory.
  std::vector<RankSlot> slots;
  /// By all that tells slots apart: looked up only, so that the order of addresses does not show.
  std::map<std::tuple<unsigned, unsigned, int64_t, AxisId, int64_t, const Exchange *, unsigned, const SizeNode *,
                      uint64_t, unsigned>,
           unsigned>
      slotNumbers;
  std::vector<uint64_t> numIssued;
  uint64_t numPermutes = 0; ///< Of all units.
  llvm::DenseMap<const TaskLayout *, std::vector<uint64_t>> numCollectives;
  Chains chains;
  llvm::SmallVector<std::optional<uint64_t>, 12> endsOfNames; ///< While a unit is made with names.
  Left left;                                                  ///< By the last unit that was made by name.
  std::optional<uint64_t> workBeforeLoop; ///< The last computation before the repeat that runs was entered.
  llvm::SmallVector<uint64_t, 2> arrived; ///< Recvs of the unit that runs, until a computation waits for them.
  std::vector<std::optional<uint64_t>> lastCompOfUnit;
  llvm::SmallVector<uint64_t, 8> data, control, after; ///< Dependencies of the current node; those of edges.
};

} // namespace stage

#endif // STAGE_TASKS_CLASSTASKS_H
