//===- ModuleLowering.h - modules become ops of a block --------*- C++ -*-===//
//
// Elaborates a model: every module call is expanded in place, under its own scope of
// paths (`layers.attn`), every `repeat` becomes one rolled repeat.
//
// Tensors are foreign values of the compile-time environment, dims are sizes that
// carry their Dim as tag; so names, defaults and conditions need no second lookup.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_IRGEN_MODULELOWERING_H
#define STAGE_LIB_IRGEN_MODULELOWERING_H

#include "LayerCases.h"
#include "OpLowering.h"
#include "stage/IR/graph/Rule.h"
#include "stage/Sema/Job.h"
#include <map>

namespace stage {

/// A value and a place of the program that gives it a name.
struct NamedTensor {
  const Value *value;
  ast::Ident name;
};
/// Warns of values that nothing uses (UnusedValues.cpp).
void warnUnusedValues(Graph &graph, llvm::ArrayRef<NamedTensor> named, DiagnosticEngine &diags);
/// Erases what a phase of inference computes, reads and carries for nothing: neither what it returns nor a cache needs
/// it.
void eraseUnusedValues(Block &phase);

class ModuleLowering {
public:
  ModuleLowering(Graph &graph, sema::Evaluator &evaluator, const sema::BoundJob &job)
      : graph(graph), evaluator(evaluator), diags(evaluator.getDiags()), job(job), types(graph.precision) {}

  /// Fills the forward block, and that of decode steps if the job has some. False after errors.
  bool lowerModel();
  /// The model says where some value is, by axes of the mesh.
  bool namesAxes() const { return hasAxes; }

private:
  using CTValue = sema::CTValue;
  using Environment = sema::Environment;

  /// Where statements are lowered to: a scope of paths and a block.
  struct Place {
    std::string scope;
    Block *block;
    const ast::ModuleDecl *decl;
    bool inLoop = false;
  };

  /// Elaborates the model into a block, up to what it returns or, for inference, up to its output.
  bool lowerPhase(Block &block);
  /// A model of the job, and the scope in which it stands.
  struct RootModel {
    const ast::ModuleDecl *decl;
    llvm::ArrayRef<sema::NamedValue> args;
    std::string scope;
  };
  /// The same without the end of the block: what is returned. Nothing after errors.
  std::optional<llvm::SmallVector<Value *, 2>> lowerBody(const RootModel &model, Block &block);
  void appendReturn(const RootModel &model, llvm::ArrayRef<Value *> values, Block &block);

  // Inference (InferenceLowering.cpp).
  bool lowerInference();
  bool pack();
  Dim *addInferredDim(llvm::StringRef name, int64_t value);
  Size getContext() const;
  void addRoom(int64_t positions);
  // Caches whose positions ranks share (SplitFolds.cpp). Of a split that cannot be false, after an error.
  bool findContextSplit();
  Size roundUp(Size positions) const;
  void splitFolds(Block &phase);
  // Tokens, and who begins with them (SampleLowering.cpp).
  std::optional<llvm::SmallVector<Value *, 2>> sample(llvm::ArrayRef<Value *> outputs, llvm::StringRef scope,
                                                      Block &block);
  bool sampleReturned(Block &block, llvm::StringRef scope, bool isFed);
  bool feed(Block &block, const Value &token);
  RootModel getDraft() const;
  bool lowerDraftPrefill(Block &forward);
  bool lowerDraft();
  bool isOfOneVocabulary(llvm::ArrayRef<Value *> proposed, const Op &end) const;
  bool lowerOutput(const ast::OutputStmt &stmt, Environment &env, Place &place, std::optional<CTValue> *result);
  bool hasCaches() const { return job.inference && !job.inference->isWhole; }
  CTValue getSequence(const sema::NamedValue &bound);
  void noteSequence(llvm::StringRef name, const CTValue &dim);
  bool lowerCacheDecl(const ast::TensorDeclStmt &stmt, Environment &env, Place &place);
  std::optional<CTValue> lowerAppend(const ast::CallExpr &call, Environment &env, Place &place);
  bool lowerWrite(const ast::CallExpr &call, Environment &env, Place &place);
  bool isCacheCall(const ast::CallExpr &call, const Environment &env) const;
  bool checkPositions(Block &block);
  Extent getWindow(Size last);
  Extent getPackedWindow(Size size);
  Value *findState(const Place &place, llvm::StringRef path) const;
  void addState(const Place &place, Value *value);

  // Statements.
  bool lowerStmts(llvm::ArrayRef<ast::Stmt *> stmts, Environment &env, Place &place, std::optional<CTValue> *result);
  bool lowerTensorDecl(const ast::TensorDeclStmt &stmt, Environment &env, Place &place);
  bool lowerDims(const ast::DimStmt &stmt, Environment &env, Place &place);
  bool lowerLet(const ast::LetStmt &stmt, Environment &env, Place &place);
  bool lowerRepeat(const ast::RepeatStmt &stmt, Environment &env, Place &place);
  bool lowerCase(const ast::RepeatStmt &stmt, const LayerCases::Case &layer, llvm::ArrayRef<llvm::StringRef> carried,
                 Environment &env, Place &place, Op &repeat);
  bool unrollRepeat(const ast::RepeatStmt &stmt, int64_t count, Environment &env, Place &place);
  bool assign(const ast::Ident &name, CTValue value, bool define, Environment &env, Place &place);
  static void collectAssigned(llvm::ArrayRef<ast::Stmt *> stmts, const Environment &env,
                              llvm::SmallVectorImpl<llvm::StringRef> &names);

  // Expressions (ExprLowering.cpp).
  std::optional<CTValue> lower(const ast::Expr *expr, Environment &env, Place &place);
  std::optional<CTValue> lowerBinary(const ast::BinaryExpr &expr, Environment &env, Place &place);
  std::optional<CTValue> lowerSlice(const ast::IndexExpr &expr, Value *value, Environment &env, Place &place);
  std::optional<CTValue> lowerElementwise(ast::BinaryOp op, llvm::ArrayRef<TensorArgument> tensors,
                                          std::optional<double> scalarLeft, std::optional<double> scalarRight,
                                          SMRange range, Place &place);
  std::optional<CTValue> cast(Value *value, DType type, SMRange range, Place &place);
  Value *appendCopy(llvm::StringRef name, Value *value, std::optional<DType> type, SMLoc loc, Place &place);
  bool checkElementTypes(ast::BinaryOp op, llvm::ArrayRef<TensorArgument> tensors,
                         std::initializer_list<std::optional<double>> scalars, SMRange range);
  bool mentionsTensors(const ast::Expr *expr, const Environment &env);
  std::string describe(const TensorType &type) const;
  void collectAddends(const ast::Expr *expr, const Environment &env, llvm::SmallVectorImpl<const ast::Expr *> &addends);
  /// `suggest`, of a value that is none: the call with its arguments in the other order, where these fit, or "".
  Value *expectTensor(const std::optional<CTValue> &value, SMRange range,
                      llvm::function_ref<std::string()> suggest = nullptr);
  std::string suggestSwap(const ast::CallExpr &call, llvm::ArrayRef<ast::Param> params, const ast::Argument *tensor,
                          Environment &env);

  // Calls (CallLowering.cpp).
  std::optional<CTValue> lowerCall(const ast::CallExpr &expr, Environment &env, Place &place);
  std::optional<CTValue> callOp(const ast::OpDecl &decl, const ast::CallExpr &expr, Environment &env, Place &place);
  std::optional<CTValue> callModule(const ast::ModuleDecl &decl, const ast::CallExpr &expr, Environment &env,
                                    Place &place);
  /// `otherOrder`: the call with two tensors exchanged, if they fit so.
  bool bindPattern(const ast::TensorType &pattern, Value &value, SMRange range, Environment &env,
                   const ast::ModuleDecl &decl, llvm::StringRef param, llvm::StringRef otherOrder = "");

  // Shapes.
  std::optional<TensorType> lowerType(const ast::TensorType &type, DType dtype, const Environment &env);
  bool constrain(Value &value, const ast::TensorType &type);
  std::optional<AxisList> lowerAxes(const ast::AxisListSyntax &axes);
  /// With `namesConstants` (see bindJob), the symbol for a number that the program names.
  CTValue nameConstant(llvm::StringRef module, llvm::StringRef name, const CTValue &value);
  /// The dim that a name is defined as; a new one for a size that is none yet.
  CTValue nameDim(llvm::StringRef module, llvm::StringRef name, const CTValue &value, SMLoc loc);

  /// The dim that is declared as these dims as one.
  const Dim *nameCompound(const ast::CompoundExpr &compound, Size size, const Environment &env);

  static CTValue tensor(Value *value) { return CTValue::foreign(value); }

  Graph &graph;
  sema::Evaluator &evaluator;
  DiagnosticEngine &diags;
  const sema::BoundJob &job;
  ComputeTypes types;
  llvm::StringMap<llvm::SmallVector<Dim *, 1>> compoundDims; ///< By the names of their parts.
  llvm::StringMap<llvm::SmallVector<Dim *, 1>> dimsByAlias;  ///< By the names that they answer to, qualified.
  llvm::StringSet<> dimNames;
  llvm::StringMap<unsigned> dimNumbers; ///< The last number behind an alias that names a dim.
  /// What parameters, inputs and `let`s are called, in the order of the program.
  std::vector<NamedTensor> named;
  /// Parameters, buffers and caches by path and case of the repeat: decode steps use those of prefill.
  std::map<std::pair<std::string, unsigned>, Value *> states;
  /// What is known of a cache.
  struct Cache {
    Value *value;
    std::optional<unsigned> along;   ///< The dim of its positions; none: it is a state.
    Size last;                       ///< It keeps so many positions; null: all.
    Size window;                     ///< A unit sees so many with the first of its own; null: all.
    bool isFilled = false;           ///< In this phase.
    std::unique_ptr<Op> placeholder; ///< In training, where there is none.
  };
  /// By path and case, which the names of caches stand for: they are no tensors, but that a state is one where it is
  /// read.
  std::map<std::string, Cache> caches;
  Cache *findCache(const ast::CallExpr &call, const Environment &env);
  bool isCache(const CTValue &value) const {
    return value.getKind() == CTValue::Kind::Word && caches.count(value.getText().str());
  }
  // CacheCopies.cpp
  void copyCaches(PhaseKind phase);
  Extent getMoved(const Cache &cache, const Dim &moved);
  Op &addLoop(const Op &repeat, Block &block);
  bool isDecoding = false;
  const ast::OutputStmt *output = nullptr; ///< Where inference ended.
  Dim *sequence = nullptr;                 ///< Of inference: positions of a sequence that a unit of this phase has.
  Dim *context = nullptr;                  ///< All of a sequence so far, where these are others.
  Dim *room = nullptr;                     ///< Positions for which caches have room, where ranks share them.
  Size contextParts;                       ///< Ranks that share the positions in caches; null: all have all.
  bool hasAxes = false;
  unsigned numLoops = 0;
  unsigned draftLoops = 0; ///< Number of the draft model's first repeat.
  unsigned depth = 0;      ///< Modules around the statement that is lowered.
  unsigned numStmts = 0;   ///< Lowered so far: modules that hold each other twice double at each level.
};

/// What is returned is made of the last position of `sequence` only, in a dim that gets this name (LastPositions.cpp).
void takeLastPositions(Block &block, const Dim *sequence, llvm::StringRef name);
/// The units of a job that infers, which all stages run (InferenceLowering.cpp).
/// What is written takes the place of what there was: who reads that comes first. False after an error.
bool checkReads(Block &block, DiagnosticEngine &diags);
/// Decode steps bind `ofSteps`, too.
std::vector<Unit> listUnits(const sema::BoundJob &job, const Graph &graph, const UnitBindings &ofSteps,
                            Environments &environments);
/// What masks keep of several sequences becomes sums that units bind, and all has the values of the first units
/// (PackedSequences.cpp). False after errors: ops that need other positions of a sequence than a mask says.
bool packSequences(Graph &graph, const sema::BoundInference &inference, std::optional<int64_t> tile,
                   DiagnosticEngine &diags);
/// The units of a job that serves requests.
std::vector<Unit> listPackedUnits(const ServedUnits &served, const Graph &graph, const UnitBindings &ofSteps,
                                  Environments &environments);
/// Notes of units which one has sampled the tokens that they begin with.
void feedPackedUnits(const ServedUnits &served, bool ofRequests, std::vector<Unit> &units);
/// For proofs: of each unit, for each of its sequences, one that goes over all positions that this one has then.
std::vector<Unit> listWholeUnits(const ServedUnits &served, Environments &environments);

/// Writes mesh and rules of the strategy and the schedule into the graph. False after errors.
void lowerMesh(Graph &graph, const sema::BoundJob &job);
bool padDims(Graph &graph, const sema::BoundJob &job, sema::Evaluator &evaluator);
/// A pattern that speaks of all iterations of repeats; nothing after an error.
std::optional<PathPattern> lowerPattern(const ast::Pattern &syntax, DiagnosticEngine &diags);
struct LayerStatement {
  const ast::LayerRuleStmt *stmt;
  const sema::BoundRule &bound;
  Rule rule; ///< Where it comes from; what it says is missing.
};
/// What is made again or offloaded; the pipeline must be there.
bool lowerLayerStatements(Graph &graph, llvm::ArrayRef<LayerStatement> statements, sema::Evaluator &evaluator);
bool lowerStrategy(Graph &graph, const sema::BoundJob &job, sema::Evaluator &evaluator);

} // namespace stage

#endif // STAGE_LIB_IRGEN_MODULELOWERING_H
