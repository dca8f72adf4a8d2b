//===- Graph.h - the graph IR ----------------------------------*- C++ -*-===//
//
// SSA over symbolic tensors. A graph is one step of a workload: a list of phases, each
// a block, in the order in which they run (stage/Schedule/Phases.def):
//
//   forward    one microbatch forward. Params and inputs are ops of it.
//   decode     the same of a microbatch that goes on with the caches that others have filled.
//   recompute  one microbatch: values of forward made again, which are not kept.
//   backward   one microbatch backward (made by `differentiate`). Its ops may use
//              values of earlier phases: those are what is kept. Or its two halves,
//              backward_input and backward_weight.
//   step       once per step: gradient reductions and the optimizer.
//
// `repeat` keeps layers rolled: its body is a block with one argument per carried
// value, ended by a yield. Values from outside the body may be used inside. The
// repeats of one loop in several phases share a name, count and `loop` number;
// the body of a later one may use values of the earlier ones' bodies and means
// those of the same iteration. The backward repeat runs the iterations in reverse.
// Layers that differ are cases: a repeat has one body for each, all with the same
// carried values, and says which iterations run which.
//
// Every value has a global type, a place in the program (path, location), a
// constraint (what the program demands) and a sharding (what propagation decided).
// Collectives are ordinary ops with axes; ranks appear only in emission.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_GRAPH_H
#define STAGE_IR_GRAPH_GRAPH_H

#include "stage/IR/algebra/OpDef.h"
#include "stage/IR/algebra/Types.h"
#include "stage/Schedule/MessageMode.h"
#include "stage/Schedule/Unit.h"
#include "llvm/ADT/DenseMap.h"
#include <list>
#include <memory>

namespace stage {

class Op;
class Block;
class Graph;
struct Rule;
enum class Balance : uint8_t;

/// A result of an op or an argument of a block.
class Value {
public:
  TensorType type;
  /// Where the program calls it: "layers.attn.q". Empty for unnamed temporaries.
  std::string path;
  Constraint constraint;
  /// Final sharding: after resharding to the constraint. Set by propagate-sharding.
  Sharding sharding;
  /// For the (summed) gradient of a forward value: that value. It is brought to its sharding (law L4). The same of
  /// pieces of a message (Graph::addMessageBlock); for those of a forward value that value itself.
  Value *primal = nullptr;
  SMLoc loc;

  Op *getOp() const { return op; }              ///< Null for a block argument.
  Block *getBlock() const { return block; }     ///< The block it is defined in.
  unsigned getNumber() const { return number; } ///< Result or argument number.
  bool isArgument() const { return op == nullptr; }
  /// Every (op, operand number) that uses the value, in no particular order of time. The order is that in which uses
  /// were made as long as none was dropped, and always a function of the input.
  llvm::ArrayRef<std::pair<Op *, unsigned>> getUses() const { return uses; }
  void replaceAllUsesWith(Value *other);

private:
  friend class Op;
  friend class Block;
  friend class GraphCopier;
  Op *op = nullptr;
  Block *block = nullptr;
  unsigned number = 0;
  llvm::SmallVector<std::pair<Op *, unsigned>, 4> uses;
};

enum class OpKind : uint8_t {
#define IR_OP(id, name) id,
#include "stage/IR/graph/Ops.def"
};
llvm::StringRef getName(OpKind kind);
inline bool isCollective(OpKind kind) { return kind >= OpKind::AllGather && kind <= OpKind::AllToAll; }
/// True for collectives that take several tensors at once.
inline bool isBucket(OpKind kind) {
  return kind == OpKind::AllGather || kind == OpKind::AllReduce || kind == OpKind::ReduceScatter;
}
/// True for what members of a group send each other.
inline bool isCommunication(OpKind kind) { return kind >= OpKind::AllGather && kind <= OpKind::Permute; }
inline bool isReshard(OpKind kind) { return kind >= OpKind::AllGather && kind <= OpKind::Slice; }
/// True for what goes between a device and its host.
inline bool isCopy(OpKind kind) { return kind >= OpKind::Offload && kind <= OpKind::Load; }
/// True for copies of parts of a cache, which have no memory of their own: the result of one is what is copied.
inline bool isCacheCopy(OpKind kind) { return kind == OpKind::Store || kind == OpKind::Load; }
/// True for ops each of whose results is an operand, in other pieces or in another place (getMoved).
inline bool isMove(OpKind kind) { return isReshard(kind) || isCopy(kind); }
/// True for ops beside which a rank loads the inputs of later units: those that are neither sent nor copied.
inline bool isLoader(OpKind kind) { return kind != OpKind::Permute && !isCopy(kind); }
/// True for what outlives a unit: parameters, which are trained, buffers, which nothing writes, and caches, which units
/// append to or write.
inline bool isState(OpKind kind) { return kind == OpKind::Param || kind == OpKind::Buffer || kind == OpKind::Cache; }

/// Which case each iteration of a repeat is: runs of equal iterations, in order. Without runs all are case 0.
class IterationCases {
public:
  struct Run {
    unsigned number; ///< The case.
    int64_t begin, end;
    bool operator==(const Run &other) const {
      return number == other.number && begin == other.begin && end == other.end;
    }
  };

  llvm::ArrayRef<Run> getRuns() const { return runs; }
  /// The run that an iteration belongs to. There must be runs, and the iteration must be one of theirs.
  const Run &getRun(int64_t iteration) const;
  unsigned get(int64_t iteration) const { return runs.empty() ? 0 : getRun(iteration).number; }
  /// How many of the iterations [begin, end) are case `number`.
  int64_t count(unsigned number, int64_t begin, int64_t end) const;
  int64_t getNumIterations() const { return runs.empty() ? 0 : runs.back().end; }
  /// Goes on with `count` iterations of case `number`.
  void append(unsigned number, int64_t count);
  bool operator==(const IterationCases &other) const { return runs == other.runs; }

private:
  std::vector<Run> runs; ///< Neighbours are of different cases.
};

/// What the ops of a stream do.
enum class StreamKind : uint8_t {
  Computation,
  Communication,   ///< Between ranks.
  Copies,          ///< Between a device and its host.
  HostComputation, ///< What the host computes.
};
constexpr unsigned numStreamKinds = 4;
llvm::StringRef getName(StreamKind kind);
StreamKind getStreamKind(const Op &op);

/// Ops of one stream run one after the other, in the order of the program; those of different streams beside each
/// other. There is one of each kind besides those that a graph declares.
struct Stream {
  std::string name;
  StreamKind kind;
  unsigned number; ///< Among those of the graph, from 0.
  SMLoc loc;
  /// What stages of a pipeline send each other runs here, too: of one stream at most.
  bool hasMessages = false;
};

/// Something that an op waits for beside its operands: until `value` has been made
///   in the same iteration and unit (or, of an earlier phase, for the same microbatch), or
///   so many iterations earlier, in the order in which they run; nothing in those that have not as many before them, or
///   so many units earlier, of those that make it; nothing as long as there are fewer.
struct OrderEdge {
  Value *value;
  unsigned iterations = 0, units = 0; ///< One of them at most.
};

/// What an op is, apart from the values and blocks it is tied to.
struct OpAttributes {
  OpKind kind;
  SMLoc loc;
  /// Path of the module instance it belongs to: "layers.attn".
  std::string scope;

  // Compute.
  /// The forward op of which this one is (part of) the gradient; its indices are this op's. Null for a forward op, and
  /// for sums of gradients. Of an op that makes values of forward again: the op that made them.
  const Op *origin = nullptr;
  /// It makes again what `origin` made and forward has not kept: its FLOPs are recomputed, not the model's.
  bool isRecomputed = false;
  const OpDef *def = nullptr;
  llvm::SmallVector<Extent, 6> extents; ///< Per index of `def`, global.
  /// Axes each index is split over while it executes; set by propagate-sharding.
  llvm::SmallVector<AxisList, 6> indexAxes;
  /// Strategy's `at **.attention(): shard k over cp` for this op, by index.
  llvm::SmallVector<std::optional<AxisList>, 6> indexConstraint;
  /// The folded index whose blocks go round over its axes (`ring t over cp`): a rank works on one after the other, and
  /// sends it on. Until `unroll-rings` has made an op of each.
  std::optional<unsigned> ring;
  /// Of a step of a product in parts (`overlap ... with products`): an index and those of its axes whose parts a rank
  /// computes in turn, one per step.
  struct Turns {
    unsigned index;
    AxisSet axes;
  };
  std::optional<Turns> turns;

  // Collectives and slice: over which axes, in the order and layout in which they stand on the dim
  // (all_reduce: any), and along which dim of the operand. all_to_all: `dim` and
  // `moreDims` lose those of the axes that they end in, whatever their order there;
  // `toDim` gets all of them, in the order of `axes`. Where it is `dim` they stay on it in another layout.
  // A bucket is a collective of several operands, with a result for each: `dim` is that of the first, `moreDims` are
  // those of the others.
  AxisList axes;
  unsigned dim = 0, toDim = 0;
  llvm::SmallVector<unsigned, 1> moreDims;
  /// all_gather, reduce_scatter and slice: to or from flat storage instead of along a dim.
  bool flat = false;
  /// all_gather: runs ahead of where it stands, as far as the graph says (Graph::prefetch).
  bool isPrefetched = false;
  /// Of a collective of the step: waits until the units before have computed what they compute.
  bool waitsForUnits = false;
  /// Of an update: its last operand is the sum of squares of all gradients, by which it scales its own.
  bool clips = false;
  /// Of an add_norm: how many ranks have the same elements, of which each adds its share.
  unsigned copies = 1;
  ReduceKind reduce = ReduceKind::Sum;
  /// Of a permute, which has one axis: what a member has goes to the one so many coordinates further on, counted
  /// around.
  uint32_t shift = 0;
  /// Restricted to these pipeline stages (law L10): the gradient of a tied embedding is reduced over the first and
  /// the last, that of a layer over those that hold a copy of it, which are other ones for other layers. Empty: all.
  llvm::SmallVector<llvm::SmallVector<unsigned, 2>, 1> stages;
  /// Those of the group of a stage, in ascending order; none if the op is not restricted, or the stage takes no part.
  llvm::ArrayRef<unsigned> getGroupStages(unsigned stage) const {
    for (const auto &group : stages)
      if (llvm::is_contained(group, stage))
        return group;
    return {};
  }

  // Repeat.
  std::string name; ///< Also of params and inputs: their local name.
  Size count;
  unsigned loop = 0;
  bool reverse = false;
  IterationCases cases;

  /// Of a cache: how many there are, and the number of the one that a unit has; null: one. Each batch of sequences that
  /// is in flight has its own.
  Size entries, entry;
  /// Of an append: the cache keeps the last positions that it has room for, and the result begins with as many of them
  /// as it has more than are appended. Otherwise a cache has room for all.
  bool isRolling = false;

  // Constant (the seed of the gradient): its value.
  double number = 0;

  /// Of an input: another part sends it (Workload.h).
  bool isTransferred = false;
  /// Of an input of inference: in units that have a feeder (Unit) it is what that one has returned last, its tokens.
  bool isFed = false;

  // What runs: on which stream (null: the one of its kind that is always there), and after what.
  const Stream *stream = nullptr;
  llvm::SmallVector<OrderEdge, 0> after;

  // Top-level ops, once the pipeline is partitioned: the virtual stage it runs on.
  std::optional<unsigned> virtualStage;
};

class Op : public OpAttributes {
public:
  llvm::SmallVector<std::unique_ptr<Block>, 1> bodies; ///< Of a repeat: one per case.

  llvm::ArrayRef<Value *> getOperands() const { return operands; }
  Value *getOperand(unsigned i) const { return operands[i]; }
  unsigned getNumOperands() const { return operands.size(); }
  void setOperand(unsigned i, Value *value);
  void addOperand(Value *value);
  /// Drops all operands (and their uses).
  void clearOperands();
  llvm::ArrayRef<std::unique_ptr<Value>> getResults() const { return results; }
  Value *getResult(unsigned i = 0) const { return results[i].get(); }
  unsigned getNumResults() const { return results.size(); }
  Value *addResult(TensorType type, llvm::StringRef path = "");
  Block *getBlock() const { return block; }
  /// Of a repeat: a body for one more case.
  Block &addBody(Graph &graph);
  /// Of a repeat: no longer carries what it carries there, which nothing may use but what yields it.
  void eraseCarried(unsigned slot);
  /// The body that an iteration of a repeat runs.
  Block &getBody(int64_t iteration) const { return *bodies[cases.get(iteration)]; }
  /// Of an all_gather, a reduce_scatter or a slice: the dim of an operand along which it is gathered or cut.
  unsigned getDim(unsigned operand) const { return operand ? moreDims[operand - 1] : dim; }
  bool isCompute(llvm::StringRef defName) const { return kind == OpKind::Compute && def->name == defName; }

  Op(OpKind kind, SMLoc loc) : OpAttributes{kind, loc} {}
  /// The same op without operands, results and bodies.
  explicit Op(const OpAttributes &attributes) : OpAttributes(attributes) {}
  ~Op();

private:
  friend class Block;
  friend class GraphCopier;
  Block *block = nullptr;
  std::list<std::unique_ptr<Op>>::iterator position;
  void dropUse(unsigned operand);

  llvm::SmallVector<Value *, 4> operands;
  /// Where each operand stands among the uses of its value, so that a use is dropped at once however many there are.
  llvm::SmallVector<unsigned, 4> usePositions;
  std::vector<std::unique_ptr<Value>> results;
};

/// A list of ops in the order in which they run.
class Block {
public:
  /// The body of a repeat.
  Block(Graph &graph, Op *parent, unsigned number) : graph(graph), parent(parent), number(number) {}
  /// A phase.
  Block(Graph &graph, PhaseKind phase) : graph(graph), phase(phase) {}
  ~Block();
  Graph &getGraph() const { return graph; }
  Op *getParent() const { return parent; }      ///< The repeat, or null at the top.
  unsigned getNumber() const { return number; } ///< Which case of the repeat it is.
  const Block &getTop() const;                  ///< The block of the phase.
  PhaseKind getPhase() const { return getTop().phase; }

  using iterator = std::list<std::unique_ptr<Op>>::iterator;
  using const_iterator = std::list<std::unique_ptr<Op>>::const_iterator;
  iterator begin() { return ops.begin(); }
  iterator end() { return ops.end(); }
  const_iterator begin() const { return ops.begin(); }
  const_iterator end() const { return ops.end(); }
  bool empty() const { return ops.empty(); }
  /// The yield or return at the end; null if there is none.
  Op *getTerminator();

  llvm::ArrayRef<std::unique_ptr<Value>> getArguments() const { return arguments; }
  Value *getArgument(unsigned i) const { return arguments[i].get(); }
  Value *addArgument(TensorType type, llvm::StringRef path = "");

  Op *append(std::unique_ptr<Op> op) { return insert(ops.end(), std::move(op)); }
  Op *insertBefore(Op *where, std::unique_ptr<Op> op) { return insert(where->position, std::move(op)); }
  Op *insertAfter(Op *where, std::unique_ptr<Op> op) { return insert(std::next(where->position), std::move(op)); }
  /// The op must have no used results.
  void erase(Op *op);
  /// Takes an op out, for another block.
  std::unique_ptr<Op> take(Op *op);
  /// Moves an op of this block to just before, or after, another of it.
  void moveBefore(Op *op, Op *where);
  void moveAfter(Op *op, Op *where);

private:
  friend class Op;
  Op *insert(iterator where, std::unique_ptr<Op> op);
  Graph &graph;
  Op *parent = nullptr;
  unsigned number = 0;
  PhaseKind phase = PhaseKind::Forward; ///< Of a phase's block.
  std::list<std::unique_ptr<Op>> ops;
  std::vector<std::unique_ptr<Value>> arguments;
};

/// Element types that a precision gives.
struct Precision {
  DType weight = DType::F32, activation = DType::F32, gradient = DType::F32, master = DType::F32;
  /// `accumulate = separate`: gradients of parameters are tensors of the parameter's type, which an op of its own adds
  /// to the buffer. Otherwise the op that makes a contribution adds it.
  bool separateAccumulation = false;
};

/// The optimizer: what it keeps per parameter element and what an update costs.
struct Optimizer {
  /// The state that is a copy of the parameter.
  static constexpr llvm::StringLiteral masterState = "master";

  std::string name;
  /// Names and types of states; `master` is kept only where the parameter's type differs from it, or it is quantized.
  std::vector<std::pair<std::string, DType>> states;
  Size flops; ///< Over `volume`, the local elements of the parameter.
  SMLoc loc;

  /// The states that a parameter of this type really has.
  llvm::SmallVector<std::pair<llvm::StringRef, DType>, 3> getStates(const TensorType &parameter) const;
};

/// What partition-pipeline and schedule need, decided by the strategy.
struct PipelineInfo {
  /// Names of the repeats that it cuts, in the order in which they run (PipelineChain); none: no pipeline.
  std::vector<std::string> repeats;
  std::optional<AxisId> axis;
  unsigned chunks = 1; ///< Virtual stages per rank.
  /// The virtual stage of chunk c of stage r at [c*p + r]; empty: c*p + r.
  std::vector<unsigned> placement;
  /// Of the model; virtual stages are numbered copy by copy, and chunks too (stage/Schedule/Schedule.h).
  unsigned copies = 1;
  std::vector<int64_t> split; ///< Iterations of all of them per virtual stage; empty: even, or as `balance` says.
  Balance balance{};          ///< None, or what partition-pipeline is to balance; it makes a `split` of it.
  /// `place head = last`: a parameter, a value or a module of the top level, and the virtual stage that computes with
  /// it.
  struct Placement {
    std::string name;
    unsigned virtualStage;
    SMLoc loc;
  };
  std::vector<Placement> placements;
  MessageMode send = MessageMode::AtEnd; ///< Of messages between stages.
  /// Each of these ranks sends its piece of a value that all of them hold whole, and the receivers gather the pieces.
  AxisSet scatterGather = 0;
  /// Per stage the units in order; made from the schedule program.
  std::vector<std::vector<Unit>> units;
  Environments environments;          ///< Of the units.
  std::vector<std::string> unitNames; ///< By microbatch; empty: they have none of their own.
  std::string scheduleName;
  SMLoc loc;
};

/// `slow (pp = 1) by 6/5;`: the compute of the ranks with these coordinates takes so many times as long. Traces alone
/// say so (stage/CodeGen/Emit.h).
struct SlowRanks {
  llvm::SmallVector<std::pair<AxisId, int64_t>, 4> coordinates; ///< Each axis once.
  Size factor;                                                  ///< A constant above 0.
  SMLoc loc;
};

/// `sum pairs.0 = 2*S*context - S^2 or 2*context;`: units bind the symbol to the sum, over their sequences, of the
/// first size, or, of a sequence of which they take one position, of the second. In these the sizes of packed dims, and
/// symbols of sums before this one, are those of a sequence.
struct SequenceSum {
  std::string symbol;
  Size ofSeveral, ofOne;
  SMLoc loc;
};

class Graph {
public:
  explicit Graph(SizeContext &sizes);
  /// Drops all uses first: a graph that does not verify may use a value before it is defined.
  ~Graph();

  SizeContext &sizes;
  /// What this graph was copied from and shares operators with; null if it was made by itself.
  std::shared_ptr<const Graph> model;
  OpDefTable defs;
  std::string name;
  std::vector<std::shared_ptr<Dim>> dims;
  Mesh mesh;
  /// Values of independent dims and of axes.
  SizeBinding binding;
  /// Symbols that the strategy padded (`pad V to N`), with the values that the model gives them. `binding` has the
  /// padded ones.
  std::vector<std::pair<std::string, int64_t>> unpadded;
  Obligations obligations;
  std::vector<Rule> rules; ///< stage/IR/graph/Rule.h
  std::vector<SlowRanks> slowRanks;
  std::vector<SequenceSum> sums;
  Precision precision;
  Optimizer optimizer;
  PipelineInfo pipeline;
  std::vector<std::shared_ptr<const Stream>> streams;
  /// A prefetched gather runs when so many of those before it in its unit have not been released yet, or fewer.
  unsigned prefetch = 0;
  /// Microbatches per step.
  int64_t microbatches = 1;
  /// The largest norm of all gradients together with which parameters are updated; 0: they are not clipped.
  double clip = 0;
  /// False for inference: no backward, no step.
  bool training = true;
  /// The passes that have run, in their order: names of Passes.def, or what the head of a text says.
  std::vector<std::string> passes;
  SMLoc loc;

  bool hasRun(llvm::StringRef pass) const { return llvm::is_contained(passes, pass); }

  /// The phases in the order in which they run. There is always a forward.
  auto getPhases() const { return llvm::make_pointee_range(phases); }
  /// Makes the phase if there is none.
  Block &getPhase(PhaseKind kind);
  Block *findPhase(PhaseKind kind) const;
  /// Makes a block for ops at messages between stages, of units of this kind: pieces that arrive are its arguments. It
  /// is no phase, because its ops run where the program has them.
  Block &addMessageBlock(PhaseKind kind) { return *messageBlocks.emplace_back(std::make_unique<Block>(*this, kind)); }
  auto getMessageBlocks() const { return llvm::make_pointee_range(messageBlocks); }
  /// Erases a phase of which no other one uses anything.
  void erasePhase(PhaseKind kind);
  Block &getForward() const { return *phases.front(); }

  /// Takes over the dims, operators and ops of a graph that does not change any more: copies of its ops, in the same
  /// order and with the uses of each value in the same order. This graph must have none yet.
  void copyModel(std::shared_ptr<const Graph> from);
  /// Whether a size may be another one in other units.
  bool variesByUnit(Size size) const;
  /// What symbols are in the units of an environment.
  SizeBinding getBinding(unsigned environment) const;
  /// The same of a binding that has what is common to all units, and is of some environment: much cheaper than another
  /// one.
  void select(SizeBinding &binding, unsigned environment) const;
  /// Per microbatch the environment of its units, which all have the same one.
  std::vector<unsigned> listEnvironments() const;
  /// Per microbatch the phase that its units go forward in: decode, where they say so.
  std::vector<PhaseKind> listForwardPhases() const;

  Dim *addDim(llvm::StringRef name, Size size, SMLoc loc);
  Dim *findDim(llvm::StringRef name) const;
  const Stream *findStream(llvm::StringRef name) const;
  /// The stream of what stages send each other; null if it is that of all communication.
  const Stream *getMessageStream() const;
  /// Calls `f` for every op of a block, repeat bodies included, in program order.
  static void walk(Block &block, llvm::function_ref<void(Op &)> f);
  void walk(llvm::function_ref<void(Op &)> f);

private:
  std::vector<std::unique_ptr<Block>> phases;
  std::vector<std::unique_ptr<Block>> messageBlocks; ///< They use values of the phases.
};

/// Calls `f` for each value for which an op waits in the same unit and iteration: its operands, and those after which
/// it runs.
void forEachAwaitedValue(const Op &op, llvm::function_ref<void(Value *)> f);
/// An input that another part sends.
inline bool isTransferred(const Value &value) { return value.getOp() && value.getOp()->isTransferred; }
/// True for an op whose result is the operand's memory, or a part of it.
inline bool isView(const Op &op) { return op.kind == OpKind::Slice || (op.kind == OpKind::Compute && op.def->isView); }
/// Copies parameters or buffers to the device that are kept on the host.
inline bool isFetchOfState(const Op &op) {
  return op.kind == OpKind::Fetch && op.getOperand(0)->getOp() && isState(op.getOperand(0)->getOp()->kind);
}
/// Makes parameters whole that are kept in parts (flat storage).
inline bool isGatherOfState(const Op &op) {
  const Op *maker = op.kind == OpKind::AllGather && op.flat ? op.getOperand(0)->getOp() : nullptr;
  return maker && (isState(maker->kind) || isFetchOfState(*maker));
}
/// Makes a value whole that arrives from another stage in pieces (`scatter_gather`).
inline bool isGatherOfMessage(const Op &op) {
  return op.kind == OpKind::AllGather && !op.getBlock()->getParent() && op.getOperand(0)->isArgument();
}
/// Ends the use of what a gather ahead brought, so that another one runs.
inline bool isReleaseOfPrefetched(const Op &op) {
  return op.kind == OpKind::Release && op.getOperand(0)->getOp()->isPrefetched;
}
/// The operand of which a reshard or a copy makes this result.
inline Value *getMoved(const Value &result) { return result.getOp()->getOperand(result.getNumber()); }
/// Adds into something that outlives its unit: a gradient, or the norm of all.
inline bool isAddition(OpKind kind) { return kind == OpKind::Accumulate || kind == OpKind::AddNorm; }
inline bool isOnHost(const Value &value) { return value.type.space == MemorySpace::Host; }
/// Of an accumulate or an update: the param. Null for other ops, and if it is missing.
const Value *getTrainedParam(const Op &op);
/// What trains a param that is kept on the host runs there, on a gradient that is kept there, too; so does an update of
/// a param on the device that makes its new value on the host of gradients there.
bool runsOnHost(const Op &op);
/// A parameter's new value, as it is fetched from the host that updated it: in the parameter's place.
inline bool isFetchOfUpdate(const Op &op) {
  return op.kind == OpKind::Fetch && op.getOperand(0)->getOp() && op.getOperand(0)->getOp()->kind == OpKind::Update;
}
/// The states that an update keeps per element. On the host, of a param on the device, a copy of it is one, if there is
/// no master.
llvm::SmallVector<std::pair<llvm::StringRef, DType>, 3> getStates(const Graph &graph, const Op &update);
/// The innermost repeat a block or value is in; null at the top.
Op *getLoop(const Value *value);
/// The op of a top-level block that an op is or stands in.
Op *getTopLevelOp(Op *op);
/// Calls `f` for each value that an op, or an op inside of it, uses and that is defined outside of it.
void forEachOutsideValue(Op &op, llvm::function_ref<void(Value *value, Op &user)> f);
/// The same for a repeat of which only the iterations [begin, end) run: bodies that none of them runs use nothing.
void forEachOutsideValue(Op &repeat, int64_t begin, int64_t end, llvm::function_ref<void(Value *value, Op &user)> f);
/// A name to show: its path, or else what makes it.
std::string describe(const Value &value);

} // namespace stage

#endif // STAGE_IR_GRAPH_GRAPH_H
