//===- Program.h - the program IR ------------------------------*- C++ -*-===//
//
// What each pipeline stage runs, in order: templates of schedule units (which ops,
// which iterations of which repeats) and the list of units that invoke them. It
// refers to a graph whose communication has been inserted, and to nothing of ranks.
//
//   program Mlp {
//     stages 2, chunks 1, microbatches 4;
//     stage 0 {
//       forward { %x = lookup(%tokens, %embed); loop layers [0, 4); send %x.1 to stage 1; }
//       backward { recv %x.grad from stage 1; loop layers reverse [0, 4); ... }
//       step { loop layers [0, 4); ... }
//       order F0 F1 B0 F2 B1 F3 B2 B3;
//     }
//     ...
//
// Which op runs where: a top-level op has a virtual stage; the repeats of a pipeline are
// cut into ranges of iterations (PipelineChain.h). A range that starts after the first
// iteration gets its block arguments from a recv, one that ends before the last sends its
// yield. A unit receives once at most, before all else, and sends once at most, at its end. A
// value that tensor ranks hold whole may go in pieces (`scatter_gather`): a slice, a view, is
// then what is sent, and a gather stands behind the recv:
//
//   forward { recv %x.piece from stage 0; %x = all_gather(%x.piece) over tp; loop layers [2, 4); ... }
//
// What another part of a workload sends, or is sent (Channel.h), arrives behind that and leaves
// behind that.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_PROGRAM_H
#define STAGE_IR_GRAPH_PROGRAM_H

#include "stage/IR/graph/Graph.h"
#include "stage/Schedule/Schedule.h"

namespace stage {

struct Channel;

/// Which accumulations add into one gradient buffer: those of the same parameter, element type and sharding. A tied
/// parameter may have one on each of several stages; the step block names the buffer by any of them and means what the
/// stage that runs it has accumulated.
class GradientBuffers {
public:
  GradientBuffers() = default;
  explicit GradientBuffers(Graph &graph);

  /// The accumulations into the same buffer as `gradient`, the result of one.
  llvm::ArrayRef<Op *> getAccumulations(const Value *gradient) const {
    return buffers[numbers.lookup(gradient->getOp())];
  }
  /// The first of them, which stands for the buffer.
  const Op *getFirst(const Value *gradient) const { return getAccumulations(gradient).front(); }

private:
  std::vector<llvm::SmallVector<Op *, 1>> buffers;
  llvm::DenseMap<const Op *, unsigned> numbers;
};

/// One piece of a unit's template, in order.
struct ProgramItem {
  enum class Kind : uint8_t {
    Op,   ///< a top-level op that is not a repeat
    Loop, ///< iterations [begin, end) of a repeat; counted in forward order, run in reverse if the repeat is
    Recv, ///< `values` arrive from the virtual stage `peer`, or through `channel`
    Send, ///< `values` leave for the virtual stage `peer`, or through `channel`
  };
  Kind kind = Kind::Op;
  Op *op = nullptr; ///< Op, Loop
  int64_t begin = 0, end = 0;
  /// Recv: the values as this unit's ops call them: block arguments of the repeat whose range follows, or the
  /// repeat's results if the range is empty or past. Send: the values that leave: the yield's operands of the last
  /// iteration run, or (empty range) the same values that were received. Op, if it gathers what arrives in pieces: the
  /// value that it makes whole, as this unit's ops call it.
  std::vector<Value *> values;
  /// Recv, Send: the repeat, of the unit's phase, that carries these values; null for those of a channel. The same of
  /// the gather of such a value.
  const Op *carrier = nullptr;
  /// Recv, Send: from or to another part; then the value has no slot. What arrives in several messages, and, on a rank
  /// of a class, what is sent in several, stands here once for each.
  const Channel *channel = nullptr;
  /// Recv, Send: for each of them, which of the values that the repeat carries it is; from `skipping` on: of those that
  /// no repeat carries, of the top level.
  std::vector<unsigned> slots;
  static constexpr unsigned skipping = 1u << 31;
  /// Recv: constants that the sender holds and this unit makes for itself, and its ops' names for them.
  std::vector<std::pair<const Value *, Value *>> constants;
  unsigned peer = 0; ///< Recv, Send: a virtual stage.
  /// Recv, Send: between chunks of one stage, which hand values on as they are. There is no message and no node.
  bool isLocal = false;
  /// Send: behind each message the unit computes nothing for as long as it lasts, which is a node (MessageMode).
  bool isBlocking = false;

  void append(Value *value, unsigned slot) {
    values.push_back(value);
    slots.push_back(slot);
  }
  /// Op: the value that it makes whole of what arrives in pieces; null if it does nothing of the kind.
  Value *getGathered() const { return kind == Kind::Op && !values.empty() ? values.front() : nullptr; }
  bool isMessage() const { return kind == Kind::Recv || kind == Kind::Send; }
  /// Recv, Send: how many nodes it has.
  uint64_t getNumMessageNodes() const { return isLocal ? 0 : values.size() * (isBlocking ? 2 : 1); }
  /// Send: a value as the unit knows it when it is sent; `range`: the iterations of its carrier that the unit runs.
  const Value *getSent(unsigned i, const ProgramItem *range) const;
  /// Of a loop: how many iterations it runs, and number n of them, from 0, in the order in which they run.
  int64_t getNumIterations() const { return end - begin; }
  int64_t getIteration(int64_t n) const { return op->reverse ? end - 1 - n : begin + n; }
};

/// The values that a unit hands to another chunk of its stage, or is handed by one; null if there are none.
const ProgramItem *findHandedOn(llvm::ArrayRef<ProgramItem> items);
const ProgramItem *findHandedIn(llvm::ArrayRef<ProgramItem> items);
/// Which of the values that are handed on this one is where it is taken; nothing if it is not among those.
std::optional<unsigned> findHanded(const ProgramItem &taken, const Value *value, const ProgramItem &given);
/// The gather that makes a value whole which these items of a unit receive in pieces; null if they do not.
const Op *findGather(llvm::ArrayRef<ProgramItem> items, const Value *value);
/// What this repeat carries comes to these items of a unit from another virtual stage.
bool receives(llvm::ArrayRef<ProgramItem> items, const Op &repeat);
/// The iterations of the repeat that these items of a unit run; null if they run none.
const ProgramItem *findRange(llvm::ArrayRef<ProgramItem> items, const Op &repeat);
/// Those of the repeat that carries a message.
inline const ProgramItem *findRangeOfMessage(llvm::ArrayRef<ProgramItem> items, const ProgramItem &message) {
  return message.carrier ? findRange(items, *message.carrier) : nullptr;
}
/// Calls `f` for each body of the repeat of a Loop item that one of its iterations runs, with how many do.
void forEachBody(const ProgramItem &loop, llvm::function_ref<void(Block &body, int64_t iterations)> f);
/// Calls `f` for every op that the items run, repeats and the ops of their bodies among them, with how often one run of
/// the items runs it: all that is counted is counted by this.
void forEachOp(llvm::ArrayRef<ProgramItem> items, llvm::function_ref<void(Op &op, int64_t times)> f);
/// Calls `f` for each value that an item's op, or an op inside of it that runs, uses and that is defined outside of it.
void forEachOutsideValue(const ProgramItem &item, llvm::function_ref<void(Value *value, Op &user)> f);

/// What a stage runs of a phase: all units of one kind and chunk (law L8) are alike.
struct UnitTemplate {
  PhaseKind kind = PhaseKind::Forward;
  unsigned chunk = 0;
  std::vector<ProgramItem> items;
};

/// The templates that run for one microbatch on a chunk, in the order of their phases: what one keeps the next ones
/// use.
using UnitChain = llvm::SmallVector<const UnitTemplate *, 4>;
/// The chains of a stage. Microbatches differ in theirs where backward runs whole for some and in halves for others.
struct UnitChains {
  std::vector<UnitChain> all;   ///< Each once, by chunk; the step by itself at the end, if there is one.
  std::vector<unsigned> ofUnit; ///< By position in the list of the stage.
};

struct StageProgram {
  unsigned stage = 0;
  /// At most one per (kind, chunk); one of kind Step, for all chunks.
  std::vector<UnitTemplate> templates;
  /// The schedule's, and what runs once per step.
  std::vector<Unit> units;
  /// By position in the schedule: the unit from whose beginning the recv of a unit is posted. Empty: there are no
  /// messages.
  std::vector<unsigned> posts;

  const UnitTemplate *find(PhaseKind kind, unsigned chunk) const;
  /// Of all units: templates must not be added to any more.
  UnitChains listChains() const;
};

struct Program {
  Graph *graph = nullptr;
  unsigned numStages = 1;
  unsigned numChunks = 1;
  unsigned microbatches = 1;
  std::vector<StageProgram> stages;
  unsigned numCopies = 1; ///< Of the model (stage/Schedule/Schedule.h).
  /// Virtual stage -> (stage, chunk), in the order of the layers, copy by copy.
  std::vector<std::pair<unsigned, unsigned>> virtualStages;
  GradientBuffers buffers;
  /// Of a part of a workload: its ranks are counted from this one.
  int64_t firstRank = 0;

  /// What its stages run for microbatches and, if asked for, once per step.
  Schedule getSchedule(bool withStep) const;
  /// `F0`, or `F0.1` if ranks have several chunks, or the name that the unit was given.
  std::string getUnitName(const Unit &unit) const {
    bool isNamed = !isOncePerStep(unit.kind) && !graph->pipeline.unitNames.empty();
    return isNamed ? graph->pipeline.unitNames[unit.microbatch] : unit.str(numChunks > 1);
  }
};

/// Calls `f` for every op of the templates of a stage, once each, bodies of repeats included.
void forEachOp(const StageProgram &stage, llvm::function_ref<void(const Op &)> f);

/// Lengths of the blocks of what a stage has that is dealt out by tables, each once: expressions over coordinates, by
/// which its ranks hold and move more or less.
std::vector<Size> findBlockSizes(const Program &program, const StageProgram &stage);
/// Calls `f` for all coordinates on these axes, as one counts; meanwhile they have their values in `binding`.
void forEachCoordinates(const Graph &graph, AxisSet axes, SizeBinding &binding, llvm::function_ref<void()> f);

/// Sum of a size over the ranks of one stage; nothing if it has no value, or too large a one. Coordinates have a value
/// in `binding` while it is found.
std::optional<Rational> sumOverRanks(const Graph &graph, Size size, SizeBinding &binding);
/// Ranks of a stage that have the same coordinates on `axes`.
int64_t countAlike(const Graph &graph, AxisSet axes);

/// Axes along which ranks of a stage differ in their work: those whose coordinate occurs in a cost or in what they
/// hold. Ranks with equal coordinates on them are a class (law L10). Never the pipeline's axis.
AxisSet findVaryingAxes(const Program &program, const StageProgram &stage);

/// Prints the text above, one op per line.
void print(llvm::raw_ostream &os, const Program &program);

} // namespace stage

#endif // STAGE_IR_GRAPH_PROGRAM_H
