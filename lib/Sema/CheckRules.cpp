//===- CheckRules.cpp - the names of strategies and schedules -------------===//
//
// What a strategy's rules say of dims, paths and values is checked where there are
// tensors, and its axes once its mesh is known; here, its expressions and words.
//
//===----------------------------------------------------------------------===//
#include "BindStrategy.h"
#include "JobParts.h"
#include "JobWords.h"
#include "Meanings.h"
#include "NameChecker.h"
#include "ScheduleWords.h"
#include "stage/Sema/Arguments.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Suggestions.h"
#include "stage/Sema/Walk.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

namespace {
class StrategyChecker : public NameChecker {
public:
  StrategyChecker(const Program &program, const ast::File &file, std::vector<DeclUse> &uses)
      : NameChecker(program, file), uses(uses) {}

  void check(const ast::StrategyDecl &strategy);

private:
  void checkCall(const ast::ExprStmt &stmt);
  void checkAxes(const ast::Expr *expr);
  void defineRepeats(const ast::StrategyDecl &strategy, ArrayRef<ast::Stmt *> body,
                     llvm::SmallPtrSetImpl<const ast::StrategyDecl *> &seen);
  void checkSearch(const ast::SearchStmt &search, const ast::StrategyDecl &strategy);
  void checkBody(ArrayRef<ast::Stmt *> body);
  void checkStmt(const ast::Stmt *stmt);
  void reportNoSize(const ast::Ident &axis);
  void checkMesh(const ast::MeshStmt &mesh);
  void checkLayerRule(const ast::LayerRuleStmt &rule, StringRef owner, ArrayRef<Candidate> entries);
  void checkEntries(ArrayRef<ast::Stmt *> entries, StringRef owner, ArrayRef<Candidate> known);

  void collectAxes(const ast::AxisListSyntax &axes) {
    for (const ast::Ident &axis : axes.axes)
      if (llvm::is_contained(axesParams, axis.name))
        use(axis.name);
      else
        namedAxes.insert({axis.name, axis.loc()});
  }
  void explainUnused(DiagnosticBuilder &message, const Symbol &symbol) override {
    if (symbol.unusedId == diag::UnusedParameter && llvm::is_contained(scheduleParams, symbol.ident.name)) {
      message.note(SMLoc(), diag::PipelineRunsSchedule) << symbol.ident.name;
      return;
    }
    auto found = namedAxes.find(symbol.ident.name);
    if (found != namedAxes.end())
      message.note(meshAxes.lookup(symbol.ident.name), diag::AxisNotParameter) << symbol.ident.name;
  }

  std::vector<DeclUse> &uses;
  llvm::SmallVector<StringRef, 2> axesParams;         ///< Parameters of the kind `axes`.
  llvm::SmallVector<StringRef, 2> scheduleParams;     ///< Those of the kind `schedule`.
  llvm::MapVector<StringRef, SMLoc> namedAxes;        ///< Others that rules name, each with its first mention.
  llvm::SmallVector<const ast::Expr *, 4> conditions; ///< Of the `if`s around.
  llvm::StringSet<> passed; ///< Names on which arguments of calls depend, or whether there is a call.
  const ast::SearchStmt *search = nullptr;
  bool hasMesh = false; ///< In its own body.
  llvm::StringMap<SMLoc> meshAxes;
  std::vector<StringRef> axisOrder;
  SMLoc meshPlace;
  void checkAxesAreThere(const ast::StrategyDecl &strategy);
};

class ScheduleChecker : public NameChecker {
public:
  using NameChecker::NameChecker;

  void check(const ast::ScheduleDecl &schedule);

private:
  void checkBody(ArrayRef<ast::Stmt *> body);
  void checkStmt(const ast::Stmt *stmt);
  void checkUnit(const ast::ExprStmt &stmt);
  void checkFunction(const ast::FnStmt &fn);
  void explainUnknown(DiagnosticBuilder &error, StringRef name) override;

  std::string params;
};
} // namespace

void StrategyChecker::check(const ast::StrategyDecl &strategy) {
  ScopeGuard scope(*this);
  checkParams(strategy.params, /*mustBeUsed=*/true);
  for (const ast::Param &param : strategy.params)
    if (param.scalarKind.name == axesKind)
      axesParams.push_back(param.name.name);
    else if (param.scalarKind.name == "schedule")
      scheduleParams.push_back(param.name.name);
  if (strategy.extends.isValid())
    diags.report(strategy.extends.Start, diag::ExtendsIsCall).range(strategy.extends)
        << strategy.name.name << textOf(llvm::cast<ast::ExprStmt>(strategy.body.front())->value);
  checkBody(strategy.body);
  for (const ast::Param &param : strategy.params)
    if (param.isForwarded && !passed.contains(param.name.name))
      diags.report(param.name.loc(), diag::ForwardedUnused).range(param.name.range)
          << param.name.name << strategy.name.name;
  if (search)
    checkSearch(*search, strategy);
  checkAxesAreThere(strategy);
}

/// Rules over parameters that are numbers, and no axes, since no mesh lists them.
void StrategyChecker::checkAxesAreThere(const ast::StrategyDecl &strategy) {
  std::vector<StringRef> missing;
  for (const ast::Param &param : strategy.params)
    if (namedAxes.count(param.name.name) && !meshAxes.count(param.name.name) && !find(param.name.name)->used)
      missing.push_back(param.name.name);
  if (missing.empty())
    return;
  SMLoc at = namedAxes.find(missing.front())->second;
  if (!hasMesh) {
    diags.report(at, diag::MeshMissing) << strategy.name.name << "'" + llvm::join(missing, "' and '") + "'"
                                        << llvm::join(missing, ", ") << missing.front();
    return;
  }
  std::vector<StringRef> all = axisOrder;
  all.insert(all.end(), missing.begin(), missing.end());
  DiagnosticBuilder error = diags.report(meshPlace, diag::MeshLacksAxis)
                            << llvm::join(missing, "' and '") << llvm::join(all, ", ");
  for (StringRef name : missing)
    error.note(namedAxes.find(name)->second, diag::AxisUsedHere) << name;
}

/// A call of a strategy, whose arguments may be axes.
void StrategyChecker::checkCall(const ast::ExprStmt &stmt) {
  auto *call = llvm::cast<ast::CallExpr>(stmt.value);
  auto *name = llvm::cast<ast::NameExpr>(call->callee);
  auto *callee = expectDecl<ast::StrategyDecl>({name->name, name->range}, "strategy");
  if (!callee)
    return;
  uses.push_back({callee, name->range});
  auto note = [&](const ast::Expr *part) {
    if (auto *known = dyn_cast<ast::NameExpr>(part))
      passed.insert(known->name);
  };
  for (const ast::Argument &argument : call->args)
    walk(argument.value, note);
  for (const ast::Expr *condition : conditions)
    walk(condition, note);
  auto matched = matchArguments(callee->params, call->args, callee->name.name, call->range, diags, &program);
  for (const ast::Argument &argument : call->args) {
    auto place = matched ? llvm::find(*matched, &argument) : nullptr;
    bool isAxes =
        matched && place != matched->end() && callee->params[place - matched->begin()].scalarKind.name == axesKind;
    if (isAxes)
      checkAxes(argument.value);
    else
      checkExpr(argument.value);
  }
}

/// Axes are known once the mesh is; here, conditions, and parameters that are passed on.
void StrategyChecker::checkAxes(const ast::Expr *expr) {
  if (auto *name = dyn_cast<ast::NameExpr>(expr)) {
    ast::Ident ident{name->name, name->range};
    collectAxes({ident, name->range});
  } else if (auto *choice = dyn_cast<ast::IfExpr>(expr)) {
    checkExpr(choice->condition);
    checkAxes(choice->thenExpr);
    checkAxes(choice->elseExpr);
  } else if (auto *tuple = dyn_cast<ast::TupleExpr>(expr)) {
    for (const ast::Expr *element : tuple->elements)
      checkAxes(element);
  }
}

/// The repeats that a strategy divides into stages, itself or by a call.
void StrategyChecker::defineRepeats(const ast::StrategyDecl &strategy, ArrayRef<ast::Stmt *> body,
                                    llvm::SmallPtrSetImpl<const ast::StrategyDecl *> &seen) {
  for (const ast::Stmt *stmt : body) {
    if (auto *pipeline = dyn_cast<ast::PipelineStmt>(stmt)) {
      for (const ast::Pattern &repeat : pipeline->repeats)
        if (!find(repeat.text))
          define(SymbolKind::Scalar, {repeat.text, repeat.range});
    } else if (auto *choice = dyn_cast<ast::IfStmt>(stmt)) {
      defineRepeats(strategy, choice->thenBody, seen);
      defineRepeats(strategy, choice->elseBody, seen);
    } else if (const ast::StrategyDecl *callee = getCalledStrategy(program, strategy, *stmt)) {
      if (seen.insert(callee).second)
        defineRepeats(*callee, callee->body, seen);
    }
  }
}

/// `search { tp in powers(2, 1..9); require tp <= machine.levels[0].ranks; }` is kept for who looks for plans. Beside
/// parameters it may ask for the sizes of a repeat that the pipeline cuts, the machine, and the memory of a rank.
void StrategyChecker::checkSearch(const ast::SearchStmt &search, const ast::StrategyDecl &strategy) {
  ScopeGuard scope(*this);
  for (StringRef word : {"machine", "memory"})
    if (!find(word))
      define(SymbolKind::Scalar, {word, SMRange()});
  llvm::SmallPtrSet<const ast::StrategyDecl *, 8> seen;
  defineRepeats(strategy, strategy.body, seen);
  std::vector<Candidate> params;
  for (const ast::Param &param : strategy.params)
    params.push_back({param.name.name, param.name.loc()});
  std::vector<ast::Ident> names;
  for (const ast::SearchStmt::Values &values : search.values) {
    names.push_back(values.name);
    if (llvm::none_of(params, [&](const Candidate &param) { return param.name == values.name.name; })) {
      DiagnosticBuilder error = diags.report(values.name.loc(), diag::SearchedNotParameter).range(values.name.range)
                                << values.name.name << strategy.name.name;
      suggestNearest(error, values.name.name, values.name.range, params);
    }
    bool isList = values.isOne || mayBeList(values.values);
    if (!isList)
      diags.report(values.values->loc(), diag::WrongKind).range(values.values->range)
          << "a list or a range of values"
          << "'" + textOf(values.values) + "'";
    checkExpr(values.values);
  }
  checkEntriesOnce(names);
  for (const ast::Stmt *require : search.requires_)
    checkRequire(*llvm::cast<ast::RequireStmt>(require));
}

void StrategyChecker::checkBody(ArrayRef<ast::Stmt *> body) {
  for (const ast::Stmt *stmt : body)
    checkStmt(stmt);
}

void StrategyChecker::checkStmt(const ast::Stmt *stmt) {
  static const Candidate pipelineEntries[] = {
      {"messages", {}}, {"scatter_gather", {}}, {"schedule", {}}, {"send", {}}, {"split", {}}};
  static const Candidate partitionEntries[] = {
      {"again", {}}, {"keep", {}}, {"prefetch", {}}, {"shards", {}}, {"whole_tied", {}}};
  static const Candidate recomputeEntries[] = {{"again", {}}, {"first", {}}, {"group", {}}, {"whole", {}}};
  static const Candidate offloadEntries[] = {{"first", {}}};
  static const Candidate quantizeEntries[] = {{"scales", {}}, {"dequantize", {}}, {"first", {}}};
  static const Candidate reduceEntries[] = {
      {"apart", {}}, {"bucket", {}}, {"overlap", {}}, {"per_microbatch", {}}, {"type", {}}};
  if (auto *mesh = dyn_cast<ast::MeshStmt>(stmt)) {
    if (hasMesh && conditions.empty())
      for (const ast::MeshStmt::AxisSyntax &axis : mesh->axes) // a second one is reported when the strategy is bound
        if (!axis.size && !find(axis.name.name))
          define(SymbolKind::Scalar, axis.name);
    hasMesh = true;
    checkMesh(*mesh);
  } else if (auto *shard = dyn_cast<ast::ShardStmt>(stmt)) {
    for (const ast::ShardStmt::Item &item : shard->items) {
      collectAxes(item.axes);
      if (item.order)
        checkExpr(item.order);
    }
  } else if (auto *keep = dyn_cast<ast::KeepStmt>(stmt)) {
    collectAxes(keep->axes);
  } else if (auto *ring = dyn_cast<ast::RingStmt>(stmt)) {
    collectAxes(ring->axes);
    checkEntries(ring->entries, "ring", {});
  } else if (auto *at = dyn_cast<ast::AtStmt>(stmt)) {
    checkBody(at->rules);
  } else if (auto *pipeline = dyn_cast<ast::PipelineStmt>(stmt)) {
    collectAxes(pipeline->axes);
    checkEntries(pipeline->entries, "pipeline", pipelineEntries);
  } else if (auto *partition = dyn_cast<ast::PartitionStmt>(stmt)) {
    collectAxes(partition->axes);
    checkEntries(partition->entries, "partition", partitionEntries);
  } else if (auto *reduce = dyn_cast<ast::ReduceStmt>(stmt)) {
    collectAxes(reduce->axes);
    checkEntries(reduce->entries, "reduce", reduceEntries);
  } else if (auto *recompute = dyn_cast<ast::RecomputeStmt>(stmt)) {
    checkLayerRule(*recompute, "recompute", recomputeEntries);
  } else if (auto *offload = dyn_cast<ast::OffloadStmt>(stmt)) {
    if (offload->where.name != "host")
      diags.report(offload->where.loc(), diag::UnknownMemory).range(offload->where.range) << offload->where.name;
    if (offload->after)
      checkExpr(offload->after);
    checkLayerRule(*offload, "offload", offloadEntries);
  } else if (auto *quantize = dyn_cast<ast::QuantizeStmt>(stmt)) {
    checkExpr(quantize->what);
    if (quantize->blocks)
      checkExpr(quantize->blocks);
    checkLayerRule(*quantize, "quantize", quantizeEntries);
  } else if (auto *overlap = dyn_cast<ast::OverlapStmt>(stmt)) {
    collectAxes(overlap->axes);
    if (overlap->what.name != "communication")
      diags.report(overlap->what.loc(), diag::OverlapWord)
          .range(overlap->what.range)
          .with("'communication'", overlap->what.name)
          .note(SMLoc(), diag::FormInstead)
          .with(("overlap communication " + overlap->what.name + " with compute;").str());
    static constexpr llvm::StringLiteral hiders[] = {"compute", "products", "gradients", "nothing"};
    if (!llvm::is_contained(hiders, overlap->with.name))
      diags.report(overlap->with.loc(), diag::OverlapWord).range(overlap->with.range)
          << "'compute', 'products', 'gradients' or 'nothing'" << overlap->with.name;
  } else if (auto *slow = dyn_cast<ast::SlowStmt>(stmt)) {
    collectAxes(slow->axes);
    llvm::for_each(slow->coordinates, [&](const ast::Expr *coordinate) { checkExpr(coordinate); });
    checkExpr(slow->by);
  } else if (auto *pad = dyn_cast<ast::PadStmt>(stmt)) {
    checkExpr(pad->to);
  } else if (auto *require = dyn_cast<ast::RequireStmt>(stmt)) {
    checkRequire(*require);
  } else if (auto *choice = dyn_cast<ast::IfStmt>(stmt)) {
    checkExpr(choice->condition);
    conditions.push_back(choice->condition);
    for (ArrayRef<ast::Stmt *> branch : {choice->thenBody, choice->elseBody}) {
      ScopeGuard scope(*this);
      checkBody(branch);
    }
    conditions.pop_back();
  } else if (auto *call = dyn_cast<ast::ExprStmt>(stmt)) {
    checkCall(*call);
  } else if (auto *block = dyn_cast<ast::SearchStmt>(stmt)) {
    if (search || !conditions.empty())
      diags.report(block->loc(), diag::SearchPlace).range(block->range);
    search = block;
  } else if (auto *alias = dyn_cast<ast::AxisAliasStmt>(stmt)) {
    collectAxes(alias->axes);
  } else if (auto *replicate = dyn_cast<ast::ReplicateStmt>(stmt)) {
    collectAxes(replicate->axes);
  } else if (auto *let = dyn_cast<ast::LetStmt>(stmt)) {
    checkPlainLet(*let, "a strategy");
  }
}

void StrategyChecker::checkLayerRule(const ast::LayerRuleStmt &rule, StringRef owner, ArrayRef<Candidate> entries) {
  checkEntries(rule.entries, owner, entries);
  ScopeGuard scope(*this);
  for (const ast::Pattern &pattern : rule.patterns) {
    StringRef index = pattern.getIndex();
    if (index.empty() || index == "*")
      continue;
    bool isKnown = find(index); // of another pattern, or of the strategy, which it hides
    if (!isKnown)
      define(SymbolKind::Scalar, {index, pattern.range});
  }
  if (rule.condition)
    checkExpr(rule.condition);
}

/// `mesh (dp, tp, F);`: who writes the sizes of a model there means to split them.
void StrategyChecker::reportNoSize(const ast::Ident &axis) {
  for (const ast::Decl *decl : file.decls)
    if (auto *model = dyn_cast<ast::ModuleDecl>(decl); model && model->isModel && hasDim(*model, axis.name)) {
      diags.report(axis.loc(), diag::SizeInMesh).range(axis.range) << axis.name << model->name.name;
      return;
    }
  diags.report(axis.loc(), diag::AxisWithoutSize).range(axis.range) << axis.name;
}

void StrategyChecker::checkMesh(const ast::MeshStmt &mesh) {
  meshPlace = mesh.loc();
  for (const ast::MeshStmt::AxisSyntax &axis : mesh.axes) {
    if (meshAxes.insert({axis.name.name, axis.name.loc()}).second)
      axisOrder.push_back(axis.name.name);
    if (llvm::is_contained(axesParams, axis.name.name))
      diags.report(axis.name.loc(), diag::MeshOfAxes).range(axis.name.range) << axis.name.name;
    if (axis.size)
      checkExpr(axis.size);
    else if (!use(axis.name.name))
      reportNoSize(axis.name);
    if (!find(axis.name.name))
      define(SymbolKind::Scalar, axis.name);
  }
  for (const ast::Ident &name : mesh.second)
    if (!use(name.name))
      reportNoSize(name);
  checkExprs(mesh.topology);
}

void StrategyChecker::checkEntries(ArrayRef<ast::Stmt *> entries, StringRef owner, ArrayRef<Candidate> known) {
  std::vector<ast::Ident> names;
  for (const ast::Stmt *stmt : entries) {
    auto *entry = dyn_cast<ast::EntryStmt>(stmt);
    if (!entry) {
      use(llvm::cast<ast::PlaceStmt>(stmt)->where.name); // it may be that of a number
      continue;
    }
    names.push_back(entry->name);
    entry->name.name == scatterGatherWord ? checkAxes(entry->value) : checkExpr(entry->value);
    if (llvm::none_of(known, [&](const Candidate &candidate) { return candidate.name == entry->name.name; }))
      reportUnknownEntry(entry->name, owner, known);
  }
  checkEntriesOnce(names);
}

void ScheduleChecker::check(const ast::ScheduleDecl &schedule) {
  ScopeGuard scope(*this);
  checkParams(schedule.params, /*mustBeUsed=*/false);
  for (const ast::Param &param : schedule.params)
    params += ((params.empty() ? "" : ", ") + param.name.name).str();
  if (schedule.params.size() < numScheduleParams) {
    std::string all = "p, m, r";
    for (const ast::Param &param : schedule.params)
      if (StringRef name = param.name.name; name != "p" && name != "m" && name != "r")
        all += ", " + name.str() + (param.defaultValue ? " = " + textOf(param.defaultValue) : "");
    diags.report(schedule.name.loc(), diag::ScheduleParameters).range(schedule.name.range) << schedule.name.name << all;
  } else
    checkBody(schedule.body);
}

void ScheduleChecker::checkBody(ArrayRef<ast::Stmt *> body) {
  ScopeGuard scope(*this);
  for (const ast::Stmt *stmt : body)
    checkStmt(stmt);
}

void ScheduleChecker::checkStmt(const ast::Stmt *stmt) {
  if (auto *let = dyn_cast<ast::LetStmt>(stmt)) {
    checkPlainLet(*let, "a schedule");
  } else if (auto *loop = dyn_cast<ast::ForStmt>(stmt)) {
    checkExpr(loop->begin);
    checkExpr(loop->end);
    ScopeGuard scope(*this);
    define(SymbolKind::Scalar, loop->variable);
    checkBody(loop->body);
  } else if (auto *choice = dyn_cast<ast::IfStmt>(stmt)) {
    checkExpr(choice->condition);
    checkBody(choice->thenBody);
    checkBody(choice->elseBody);
  } else if (auto *require = dyn_cast<ast::RequireStmt>(stmt)) {
    checkRequire(*require);
  } else if (auto *fn = dyn_cast<ast::FnStmt>(stmt)) {
    checkFunction(*fn);
  } else if (auto *place = dyn_cast<ast::VirtualStmt>(stmt)) {
    checkExpr(place->count);
    ScopeGuard scope(*this);
    if (!find("c"))
      define(SymbolKind::Scalar, {"c", SMRange()});
    if (place->place)
      checkExpr(place->place);
  } else if (auto *call = dyn_cast<ast::ExprStmt>(stmt)) {
    checkUnit(*call);
  }
}

/// A function sees what stands before it, hence never itself.
void ScheduleChecker::checkFunction(const ast::FnStmt &fn) {
  {
    ScopeGuard scope(*this);
    for (const ast::Ident &param : fn.params)
      define(SymbolKind::Scalar, param);
    bool isRecursive = false;
    walk(fn.value, [&](const ast::Expr *part) {
      auto *name = dyn_cast<ast::NameExpr>(part);
      if (!name || name->name != fn.name.name || find(name->name))
        return;
      diags.report(name->loc(), diag::RecursiveFunction).range(name->range) << name->name;
      isRecursive = true;
    });
    if (!isRecursive)
      checkExpr(fn.value);
  }
  define(SymbolKind::Function, fn.name);
}

namespace {
class FunctionChecker : public NameChecker {
public:
  using NameChecker::NameChecker;
  void check(const ast::FnDecl &fn) {
    ScopeGuard scope(*this);
    checkParams(fn.params, /*mustBeUsed=*/true);
    checkExpr(fn.value);
  }
};
} // namespace

void stage::sema::checkFunction(const Program &program, const ast::File &file, const ast::FnDecl &fn) {
  FunctionChecker(program, file).check(fn);
}

void ScheduleChecker::checkUnit(const ast::ExprStmt &stmt) {
  auto *call = dyn_cast<ast::CallExpr>(stmt.value);
  auto *callee = call ? dyn_cast<ast::NameExpr>(call->callee) : nullptr;
  if (callee && callee->name == listWord)
    return; // its units are no names; they are read when the schedule is run
  if (auto paired = readOverlap(stmt.value)) {
    for (const ast::Expr *unit : *paired) {
      auto *inner = dyn_cast<ast::CallExpr>(unit);
      auto *kind = inner ? dyn_cast<ast::NameExpr>(inner->callee) : nullptr;
      if (!kind || !getUnitKind(kind->name)) {
        diags.report(unit->range.Start, diag::OverlapUnits).range(unit->range);
        return;
      }
      for (const ast::Argument &argument : inner->args)
        checkExpr(argument.value);
    }
    if (paired->size() != 2)
      diags.report(stmt.range.Start, diag::OverlapUnits).range(stmt.range);
    return;
  }
  const ast::Decl *decl = callee ? lookupDecl(callee->name, callee->range) : nullptr;
  if (callee && (getUnitKind(callee->name) || (decl && llvm::isa<ast::ScheduleDecl>(decl)))) {
    for (const ast::Argument &argument : call->args)
      checkExpr(argument.value);
    return;
  }
  std::vector<Candidate> candidates{{listWord, SMLoc()}, {overlapWord, SMLoc()}};
  for (PhaseKind kind : unitKinds)
    candidates.push_back({getName(kind), SMLoc()});
  SMRange range = call ? call->callee->range : stmt.range;
  DiagnosticBuilder error = diags.report(range.Start, diag::UnknownUnit).range(range);
  if (!callee)
    return;
  // `backward_w` is nearer to `backward`, and means more.
  std::vector<Candidate> longer;
  for (const Candidate &candidate : candidates)
    if (candidate.name.startswith(callee->name) || (callee->name.size() > 9 && candidate.name.size() > 9))
      longer.push_back(candidate);
  static constexpr StringRef messages[] = {"send", "recv", "receive", "isend", "irecv", "wait", "sync", "barrier"};
  if (llvm::is_contained(messages, callee->name))
    error.note(SMLoc(), diag::NameInstead)
        << "messages between stages follow from the units, and are not written; leave it out";
  else if (const Candidate *nearest = findNearest(callee->name, longer))
    suggestNearest(error, callee->name, range, *nearest);
  else if (findNearest(callee->name, candidates))
    suggestNearest(error, callee->name, range, candidates);
}

void ScheduleChecker::explainUnknown(DiagnosticBuilder &error, StringRef) {
  if (!params.empty())
    error.note(SMLoc(), diag::NameInstead)
        << "a schedule knows its parameters, which are " + params + ": stages, microbatches and this stage come first";
}

void stage::sema::checkStrategy(const Program &program, const ast::File &file, const ast::StrategyDecl &strategy,
                                DeclUses &uses) {
  std::vector<DeclUse> calls;
  StrategyChecker(program, file, calls).check(strategy);
  uses[&strategy] = std::move(calls);
}

void stage::sema::checkSchedule(const Program &program, const ast::File &file, const ast::ScheduleDecl &schedule) {
  ScheduleChecker(program, file).check(schedule);
}
