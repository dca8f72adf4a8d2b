//===- Job.h - a job with every name bound ---------------------*- C++ -*-===//
//
// Binding a job decides everything that needs no tensor: which model with which
// sizes, the step, the precision, the optimizer, and the strategy down to a flat
// list of the statements that are in effect.
//
//   job pretrain {
//     model     = Llama(llama3_8b, L = 4);
//     step      = train(B = 512, S = 8Ki, microbatch = 1, optimizer = adamw);
//     precision = bf16_mixed;
//     strategy  = megatron(pp = 2, dp = 4, tp = 8);
//   }
//
// Model sizes: a parameter whose argument is an integer becomes a symbol of the
// parameter's name, bound to the integer; one that is computed from others (a
// default `E = D / H`, an entry `F = 4 * D`) stays an expression. The dims that the
// model leaves to the step are symbols too. B is special: the step says the global
// batch, while the graph describes one microbatch over the whole mesh, so that the
// symbol B is bound to microbatch * (ranks over which the inputs are split along B),
// and a step has (global batch) / B microbatches. Where an input is split is certain
// only once the model is elaborated; the job is bound with what a rule that names B
// says, and, should that prove wrong, bound again.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SEMA_JOB_H
#define STAGE_SEMA_JOB_H

#include "stage/Schedule/MessageMode.h"
#include "stage/Schedule/PackedUnit.h"
#include "stage/Sema/BoundMachine.h"
#include "stage/Sema/BoundRuntime.h"
#include "stage/Sema/Override.h"
#include "stage/Sema/Schedules.h"
#include "stage/Support/RuleOrigin.h"
#include <deque>

namespace stage::sema {

/// The symbol that BoundJob::constantUnit is bound to.
constexpr llvm::StringLiteral constantUnitSymbol = "unit";

struct BoundAxis {
  ast::Ident name;
  int64_t size = 1;
  /// The dimension of the network in which it lies, where the mesh says so.
  std::optional<int64_t> networkDim = std::nullopt;
  SMRange origin = SMRange(); ///< Where its size is written.
};

/// `axis dp = (edp, ep);`: one name for several axes. So are the axes of `mesh (dp, tp) = (edp, ep);`, where these are
/// made of several of the factors that both readings have in common.
struct BoundAlias {
  ast::Ident name;
  llvm::SmallVector<StringRef, 4> axes; ///< Axes of the mesh, no aliases.
  /// `axis data = (dp, cp);`, where `data` is no parameter: a name by which parts find axes, and no number of ranks
  /// that somebody has chosen.
  bool isRole = false;
};

/// A call of a strategy that is in effect, by the job or by a strategy.
struct BoundCall {
  const ast::StrategyDecl *callee = nullptr;
  /// CallExpr or NameExpr; null: the job's strategy was chosen by an expression.
  const ast::Expr *expr = nullptr;
  SMRange range;
  const Environment *env = nullptr;       ///< The callee's parameters.
  const Environment *callerEnv = nullptr; ///< In which its arguments are evaluated; null: the job's.
  const BoundCall *caller = nullptr;      ///< Null: the job.
  const ast::Stmt *stmt = nullptr;        ///< Of the caller's body.
  unsigned number = 0;                    ///< Among the calls of its caller.
  /// `let`s of the callee in the order in which they were evaluated, each with its scope.
  std::vector<std::pair<const Environment *, const ast::LetStmt *>> lets;
  /// Among the parts that the job adds by `with`, from 1; 0: of the job's strategy.
  unsigned addition = 0;

  /// `megatron(dp = 2) > recompute_full(first = 2)`: the calls from the job's on, cut where they are long.
  std::string str() const;
  /// That of the job.
  const BoundCall &getOutermost() const { return caller ? caller->getOutermost() : *this; }
  /// What a rule of this call wins or loses against one of another call.
  RuleOrigin getOrigin() const;
};

/// Fills `again`, a new scope of the callee's file, with the names of a scope `env` of this call, where the arguments
/// of calls are evaluated again: `decoding` may be another one than when they were bound. False after an error.
bool evaluateAgain(Evaluator &evaluator, const BoundCall &call, const Environment &env, Environment &again);

/// A statement that is in effect, and where its expressions are evaluated.
struct BoundRule {
  /// OffloadStmt, ShardStmt, KeepStmt, RingStmt, ReplicateStmt, AtStmt, PipelineStmt, PartitionStmt, ReduceStmt,
  /// PadStmt, RecomputeStmt, QuantizeStmt, SlowStmt, OverlapStmt or OtherRuleStmt. `if`s are decided: only statements
  /// of the branch taken are there. Rules inside an AtStmt are as written (they hold no `if`).
  const ast::Stmt *stmt = nullptr;
  const Environment *env = nullptr;
  /// The call of the strategy that says it.
  const BoundCall *call = nullptr;
  /// Some of what is written is not in effect, and `stmt` is what is left.
  bool isTrimmed = false;
  /// The names in `has(NAME)` of the conditions under which it stands: models may lack them.
  llvm::SmallVector<StringRef, 0> asked;
};

struct BoundPipeline {
  const ast::PipelineStmt *stmt = nullptr;
  const Environment *env = nullptr;
  StringRef axis;         ///< The mesh axis; exactly one.
  BoundSchedule schedule; ///< For the axis's size and the job's microbatches.
  /// `split = [3, 4, 4]`: iterations per virtual stage; empty: evenly, or as `balance` says.
  std::vector<int64_t> split;
  Balance balance = Balance::None;       ///< `split = balanced(flops)`.
  MessageMode send = MessageMode::AtEnd; ///< `send = early`, or `messages = blocking`.
  /// `scatter_gather = tp`: bit i for axis i of the mesh.
  uint32_t scatterGather = 0;
  /// `place head = last;`: names, and their virtual stage.
  std::vector<std::pair<ast::Ident, int64_t>> placements;
  SMRange splitRange;
};

struct BoundStrategy {
  /// Null: the job names none, and runs on one rank.
  const ast::StrategyDecl *decl = nullptr;
  const BoundCall *call = nullptr;     ///< That of the job.
  const BoundCall *meshCall = nullptr; ///< That whose strategy has the mesh.
  const ast::MeshStmt *meshStmt = nullptr;
  /// The axes as the strategy names them: those of the mesh, then those of its second reading that have other names.
  std::vector<BoundAxis> readings;
  /// The axes of which these are made, outermost first; the same ones if there is one reading. `on topology` puts those
  /// of higher dimensions of the network before those of lower ones.
  std::vector<BoundAxis> mesh;
  std::vector<BoundAlias> aliases;
  /// Those of a strategy's calls before its own, and those of parts that the job adds last; none that another one
  /// replaces.
  std::vector<BoundRule> rules;
  std::optional<BoundPipeline> pipeline;

  int64_t getNumRanks() const;
  /// Of the pipeline, if there is one.
  int64_t getNumStages() const;
  const BoundAxis *findAxis(StringRef name) const;
  /// The mesh axes that a list means where `env` has the parameters of a part: parameters and aliases are replaced,
  /// axes that the mesh lacks (size 1) dropped.
  llvm::SmallVector<StringRef, 4> expand(const ast::AxisListSyntax &axes, const Environment *env = nullptr) const;
};

struct BoundPrecision {
  const ast::PrecisionDecl *decl = nullptr;
  ast::Ident weight, activation, gradient, master; ///< Names of element types.
  bool separateAccumulation = false;               ///< `accumulate = separate`.
};

struct OptimizerState {
  ast::Ident name;
  StringRef dtype;
};
struct BoundOptimizer {
  const ast::OptimizerDecl *decl = nullptr;
  std::vector<OptimizerState> states; ///< Per element of a parameter.
  Size flops;                         ///< Over the symbol `volume`, the elements of a parameter.
};

/// What `infer(...)` runs. Every batch of sequences is prefilled, all its positions at once or in chunks; then all
/// batches in turn do the first decode step, the second one, ...
struct BoundInference {
  int64_t length = 0; ///< Positions of a sequence that are prefilled: S. 0: the caches are filled from the beginning.
  int64_t mostChunk = 0; ///< `chunk = c`, be it more than S; 0: there is none.
  int64_t chunk = 0;     ///< Positions of a unit of prefill; the last one may have fewer.
  int64_t begin = 0,
          end = 0;        ///< `for T in begin..end`: positions in the caches before each decode step. Empty: no steps.
  int64_t tokens = 1;     ///< Positions that a decode step adds to each sequence.
  bool isWhole = false;   ///< For proofs: all positions that a unit's sequences have then, without caches.
  bool allLogits = false; ///< Of prefill: those of all positions; else of the last one of a sequence.
  bool servesRequests = false;  ///< `S = requests`: of these there are units; the lengths above say nothing.
  int64_t ofBatch = 0;          ///< Of sequences of different lengths: so many are a batch.
  std::vector<int64_t> lengths; ///< `S = [100, 2000]`: those of all sequences, the longest of which is `length`; T
                                ///< counts from their ends.
  /// The units of requests, given by serveRequests(), or of sequences of different lengths.
  std::shared_ptr<const ServedUnits> served;

  /// The job whose ranks fill the caches with which the first step begins, where `prefilled` says one; and its ranks
  /// send what they have of a batch when all of it is there, instead of each layer's as soon as it is.
  const ast::JobDecl *prefilled = nullptr;
  SMRange prefilledRange;
  bool sendsAtEnd = false;
  /// `sample = TopK(k = 50)`: the module that makes tokens of what is put out; null: nobody does. Its arguments are
  /// those behind its first parameter.
  const ast::ModuleDecl *sampler = nullptr;
  std::vector<NamedValue> samplerArgs;
  SMRange samplerRange;

  /// `draft = Llama(L = 4, ...), accept = 0.75`: the model that proposes `tokens` positions for each decode step, and
  /// the share of them that is accepted. Null: nobody proposes.
  const ast::ModuleDecl *draft = nullptr;
  std::vector<NamedValue> draftArgs;
  SMRange draftRange;
  Rational acceptance = {0, 1};

  /// A decode step that verifies proposals, with those before it.
  struct Round {
    int64_t begin = 0;  ///< Positions that both models know.
    int64_t behind = 0; ///< Of these the draft model has yet to see so many, 1 where all proposals of the round before
                        ///< were accepted.
  };
  /// The first `d` proposals have floor(acceptance * d) that are accepted; a round goes on behind those and one more
  /// token.
  std::vector<Round> listRounds() const;
  /// Positions of a decode step: of a round one more than are proposed.
  int64_t countStep() const { return draft ? tokens + 1 : tokens; }

  /// Units take positions of several sequences, each with a length of its own.
  bool isPacked() const { return (servesRequests || !lengths.empty()) && !isWhole; }
  bool prefills() const {
    return isPacked() ? served && llvm::any_of(served->units, [](auto &unit) { return !unit.decodes; }) : length > 0;
  }
  bool decodes() const {
    return isPacked() ? served && llvm::any_of(served->units, [](auto &unit) { return unit.decodes; }) : begin < end;
  }
  /// A unit of prefill goes on with positions that have been before.
  bool isChunked() const { return isPacked() || chunk < length; }
  /// Positions of a sequence for which caches have room: those that there are at the end.
  int64_t getRoom() const;
};

struct BoundJob {
  const ast::JobDecl *decl = nullptr;
  const ast::ModuleDecl *model = nullptr;
  SMRange modelRange; ///< The call in the job.
  /// A value for every parameter of the model, in order.
  std::vector<NamedValue> modelArgs;
  /// The dims that the step binds: symbols of the model's `dim` statements. B is here too.
  std::vector<NamedValue> stepDims;

  SMRange stepRange;
  int64_t globalBatch = 1;           ///< Sequences per step, over all ranks.
  int64_t microbatch = 1;            ///< Sequences per microbatch and coordinate of the axes that shard B.
  int64_t microbatches = 1;          ///< Per step.
  bool microbatchIsGiven = false;    ///< The step says it; of training it is 1 otherwise.
  StringRef batchDim;                ///< Empty: the model has none.
  int64_t batchRanks = 1;            ///< Ranks among which the batch is split.
  bool batchRanksAreGuessed = false; ///< A pattern or an annotation may say otherwise.
  bool isTraining = true;
  std::optional<BoundInference> inference; ///< If it does not train.
  /// Sizes that the program gives a name and a number are symbols, bound to the number (see bindJob).
  bool namesConstants = false;
  /// Of proofs, instead: numbers that the program gives a name and that are multiples of this one are multiples of one
  /// symbol, so that channels of 64, 128 and 4 * 128 stay in proportion as they are made small. 0: they are numbers.
  int64_t constantUnit = 0;

  BoundPrecision precision;
  std::optional<BoundOptimizer> optimizer; ///< Absent: the step updates nothing.
  double clip = 0;                         ///< The largest norm of all gradients that an update sees; 0: any.
  BoundStrategy strategy;
  std::optional<BoundMachine> machine; ///< Absent: the job names none.
  std::optional<BoundRuntime> runtime; ///< Absent: an ideal one. Only beside a machine.

  /// Keeps the environments and calls that rules refer to.
  std::deque<Environment> environments;
  std::deque<BoundCall> calls;
};

/// Calls that add rules to the job's strategy, in the order of the rules, each with the axes that these name.
struct RulesOfCall {
  const BoundCall *call;
  unsigned numRules = 0;
  llvm::SmallVector<StringRef, 4> axes;
};
std::vector<RulesOfCall> listCalls(const BoundStrategy &strategy);

/// The jobs of the main file, in order.
std::vector<const ast::JobDecl *> getJobs(const Program &program);
/// The job of that name (empty: the only one). Null if there is none, which is reported.
const ast::JobDecl *findJob(const Program &program, StringRef name, DiagnosticEngine &diags);

/// Binds, in a program whose names have been checked, the job called `jobName` (empty: the only one of the main file),
/// with `defines` replacing values it names. Binds the symbols in `binding`. Every fault is reported, and gives
/// nothing. Obligations are recorded, for the caller to check once all are. `batchRanks`: known from an earlier
/// attempt.
///
/// With `namesConstants` also a default of a parameter (`E = 128`), a list of sizes and a `dim Q = 256;` become
/// symbols, so that a proof can give them other values. As such a size is then no more known to be equal to a literal,
/// some programs are refused that are right without.
std::optional<BoundJob> bindJob(Program &program, StringRef jobName, ArrayRef<Override> defines, SizeContext &sizes,
                                SizeBinding &binding, Obligations &obligations, DiagnosticEngine &diags,
                                bool namesConstants = false, std::optional<int64_t> batchRanks = std::nullopt);

/// For proofs: sequences of `length` positions and three decode steps at most, instead of those that the job has. Of
/// sequences of different lengths some are left, with as many of `length` positions and more.
void shortenInference(BoundJob &job, int64_t length, SizeBinding &binding);
/// The least length from this one on whose chunks come out even as those of the job do, over `parts` parts of a
/// sequence.
int64_t getShortLength(const BoundInference &inference, int64_t length, int64_t parts);

/// For searches: sequences of `length` positions when the first decode step begins, which are prefilled if the job
/// prefills, and as many steps as the job has.
void setSequenceLength(BoundJob &job, int64_t length, SizeBinding &binding);

/// Gives a job that serves requests the units that it runs.
void serveRequests(BoundJob &job, std::shared_ptr<const ServedUnits> served, SizeBinding &binding);

/// Jobs of one model have the same values for it, and for what the step says of it but B and S: the first that differs,
/// with both its values as texts; an empty name if there is none.
struct ModelDifference {
  std::string name, first, second;
};
ModelDifference compareModels(const BoundJob &first, const SizeBinding &ofFirst, const BoundJob &second,
                              const SizeBinding &ofSecond, SizeContext &sizes);

/// What the job comes to, for people and tests.
void print(llvm::raw_ostream &os, const BoundJob &job, SizeContext &sizes, const SizeBinding &binding);

} // namespace stage::sema

#endif // STAGE_SEMA_JOB_H
