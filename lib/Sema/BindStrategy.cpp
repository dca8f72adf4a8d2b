//===- BindStrategy.cpp - a strategy with its arguments -------------------===//
#include "BindStrategy.h"
#include "Extends.h"
#include "JobWords.h"
#include "stage/Schedule/BalancedSplit.h"
#include "stage/Sema/Arguments.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Walk.h"
#include "stage/Support/Limits.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

int64_t BoundStrategy::getNumRanks() const {
  int64_t ranks = 1;
  for (const BoundAxis &axis : mesh)
    ranks *= axis.size;
  return ranks;
}

int64_t BoundStrategy::getNumStages() const {
  for (const BoundRule &rule : rules)
    if (auto *pipeline = llvm::dyn_cast<ast::PipelineStmt>(rule.stmt))
      for (StringRef axis : expand(pipeline->axes))
        return findAxis(axis)->size;
  return 1;
}

const BoundAxis *BoundStrategy::findAxis(StringRef name) const {
  auto found = llvm::find_if(mesh, [&](const BoundAxis &axis) { return axis.name.name == name; });
  return found == mesh.end() ? nullptr : &*found;
}

llvm::SmallVector<StringRef, 4> BoundStrategy::expand(const ast::AxisListSyntax &axes) const {
  llvm::SmallVector<StringRef, 4> result;
  for (const ast::Ident &name : axes.axes) {
    auto alias = llvm::find_if(aliases, [&](const BoundAlias &known) { return known.name.name == name.name; });
    if (alias != aliases.end())
      result.append(alias->axes.begin(), alias->axes.end());
    else if (findAxis(name.name))
      result.push_back(name.name);
  }
  return result;
}

namespace {
class StrategyBinder {
public:
  StrategyBinder(Evaluator &evaluator, std::deque<Environment> &environments)
      : evaluator(evaluator), diags(evaluator.getDiags()), environments(environments) {}

  bool bind(const ast::StrategyDecl &decl, ArrayRef<NamedValue> args, SMRange usedAt);
  bool checkRules();
  BoundStrategy result;
  bool hasMesh = false; ///< It was bound without a fault.

private:
  bool bindParams(const ast::StrategyDecl &decl, ArrayRef<NamedValue> args, SMRange usedAt, Environment &env);
  std::optional<std::vector<NamedValue>> evaluateBaseArgs(const ast::StrategyDecl &decl, const Environment &env);
  bool bindBody(ArrayRef<ast::Stmt *> body, Environment &env, const ast::StrategyDecl &decl);
  bool bindStmt(const ast::Stmt *stmt, Environment &env, const ast::StrategyDecl &decl);
  bool bindMesh(const ast::MeshStmt &mesh, Environment &env);
  bool bindTopology(const ast::MeshStmt &mesh, Environment &env);
  bool bindAxis(const ast::MeshStmt::AxisSyntax &axis, Environment &env, std::vector<BoundAxis> &into);
  bool bindAlias(const ast::AxisAliasStmt &alias);
  bool addPipeline(const BoundRule &rule);
  bool checkRule(const ast::Stmt *stmt);
  bool checkAxes(const ast::AxisListSyntax &axes);
  /// Where the argument for a parameter is written, if one is.
  void noteGiven(DiagnosticBuilder &error, StringRef param) const;

  Evaluator &evaluator;
  DiagnosticEngine &diags;
  std::deque<Environment> &environments;
  llvm::SmallVector<StringRef, 4> asked; ///< In the conditions around.
  llvm::StringMap<SMRange> givenAt;      ///< Of the strategy bound last, which is the one that is extended.
};
} // namespace

/// Parameters from the strategy down to its last base, as each gives the arguments of the next; then the rules from
/// there up.
bool StrategyBinder::bind(const ast::StrategyDecl &decl, ArrayRef<NamedValue> args, SMRange usedAt) {
  llvm::SmallVector<std::pair<const ast::StrategyDecl *, Environment *>, 4> chain;
  std::vector<NamedValue> baseArgs;
  for (const ast::StrategyDecl *link = &decl; link; link = getBase(evaluator.getProgram(), *link)) {
    Environment &env = environments.emplace_back(evaluator.getProgram().getFile(*link));
    if (!bindParams(*link, args, usedAt, env))
      return false;
    chain.emplace_back(link, &env);
    std::optional<std::vector<NamedValue>> next = evaluateBaseArgs(*link, env);
    if (!next)
      return false;
    baseArgs = std::move(*next);
    args = baseArgs;
    usedAt = link->base.range;
  }
  return llvm::all_of(llvm::reverse(chain),
                      [&](auto &entry) { return bindBody(entry.first->body, *entry.second, *entry.first); });
}

bool StrategyBinder::bindParams(const ast::StrategyDecl &decl, ArrayRef<NamedValue> args, SMRange usedAt,
                                Environment &env) {
  auto matched = matchArguments(decl.params, args, decl.name.name, usedAt, diags);
  if (!matched)
    return false;
  for (size_t i = 0; i != decl.params.size(); ++i) {
    const ast::Param &param = decl.params[i];
    const NamedValue *given = (*matched)[i];
    std::optional<CTValue> value = given ? evaluator.convert(given->value, param, env, given->range)
                                         : evaluator.evaluateParam(param, nullptr, env, env);
    if (!value)
      return false;
    env.define(param.name.name, std::move(*value));
    if (given)
      givenAt[param.name.name] = given->range;
  }
  return true;
}

void StrategyBinder::noteGiven(DiagnosticBuilder &error, StringRef param) const {
  auto found = givenAt.find(param);
  if (found != givenAt.end())
    error.note(found->second.Start, diag::ValueGivenHere) << param;
}

std::optional<std::vector<NamedValue>> StrategyBinder::evaluateBaseArgs(const ast::StrategyDecl &decl,
                                                                        const Environment &env) {
  std::vector<NamedValue> args;
  for (const ast::Argument &argument : decl.baseArgs) {
    std::optional<CTValue> value = evaluator.evaluate(argument.value, env);
    if (!value)
      return std::nullopt;
    args.push_back({argument.name, std::move(*value), argument.value->range});
  }
  return args;
}

bool StrategyBinder::bindBody(ArrayRef<ast::Stmt *> body, Environment &env, const ast::StrategyDecl &decl) {
  bool ok = true;
  for (const ast::Stmt *stmt : body)
    ok &= bindStmt(stmt, env, decl);
  return ok;
}

bool StrategyBinder::bindStmt(const ast::Stmt *stmt, Environment &env, const ast::StrategyDecl &decl) {
  if (auto *mesh = dyn_cast<ast::MeshStmt>(stmt))
    return bindMesh(*mesh, env);
  if (auto *alias = dyn_cast<ast::AxisAliasStmt>(stmt))
    return bindAlias(*alias);
  if (auto *require = dyn_cast<ast::RequireStmt>(stmt))
    return evaluator.checkRequire(*require, env);
  if (auto *let = dyn_cast<ast::LetStmt>(stmt)) {
    std::optional<CTValue> value = evaluator.evaluate(let->value, env);
    if (value)
      env.define(let->targets[0].name, std::move(*value));
    return value.has_value();
  }
  if (auto *choice = dyn_cast<ast::IfStmt>(stmt)) {
    std::optional<bool> condition = evaluator.evaluateCondition(choice->condition, env);
    if (!condition)
      return false;
    size_t before = asked.size();
    walk(choice->condition, [&](const ast::Expr *part) {
      auto *call = dyn_cast<ast::CallExpr>(part);
      auto *callee = call && call->args.size() == 1 ? dyn_cast<ast::NameExpr>(call->callee) : nullptr;
      auto *name = callee ? dyn_cast<ast::NameExpr>(call->args[0].value) : nullptr;
      if (name && findBuiltin(callee->name) == BuiltinKind::ModelQuery)
        asked.push_back(name->name);
    });
    bool ok = bindBody(*condition ? choice->thenBody : choice->elseBody, environments.emplace_back(env), decl);
    asked.truncate(before);
    return ok;
  }
  BoundRule rule{stmt, &env, &decl, {asked.begin(), asked.end()}};
  if (llvm::isa<ast::PipelineStmt>(stmt))
    return addPipeline(rule);
  result.rules.push_back(rule);
  return true;
}

bool StrategyBinder::bindMesh(const ast::MeshStmt &mesh, Environment &env) {
  if (result.meshStmt) {
    diags.report(mesh.loc(), diag::MeshTwice).range(mesh.range).note(result.meshStmt->loc(), diag::OtherOneHere);
    return false;
  }
  result.meshStmt = &mesh;
  bool ok = true;
  for (const ast::MeshStmt::AxisSyntax &axis : mesh.axes)
    ok &= bindAxis(axis, env, result.readings);
  std::vector<BoundAxis> second;
  for (const ast::Ident &name : mesh.second)
    ok &= bindAxis({name, nullptr}, env, second);
  if (mesh.axes.size() > maxAxes || mesh.second.size() > maxAxes) {
    size_t most = std::max(mesh.axes.size(), mesh.second.size());
    diags.report(mesh.loc(), diag::TooManyAxes).range(mesh.range) << int64_t(most) << int64_t(maxAxes);
    return false;
  }
  for (const std::vector<BoundAxis> &reading : {result.readings, second}) {
    int64_t ranks = 1;
    for (const BoundAxis &axis : reading)
      if (ok && (__builtin_mul_overflow(ranks, axis.size, &ranks) || ranks > maxRanks)) {
        diags.report(mesh.loc(), diag::TooManyRanks).range(mesh.range) << maxRanks;
        return false;
      }
  }
  ok = ok && bindTopology(mesh, env);
  if (second.empty())
    result.mesh = result.readings;
  else
    ok = ok && refineMesh(result, second, mesh.range, evaluator.getSizes(), diags);
  // Ranks are numbered as the network numbers its devices: dimension 0 varies fastest.
  llvm::stable_sort(result.mesh, [](const BoundAxis &a, const BoundAxis &b) {
    return a.networkDim.value_or(0) > b.networkDim.value_or(0);
  });
  hasMesh = ok;
  return ok;
}

/// `on topology (1, 0)`: per axis of the first reading the dimension of the network in which it lies. All of 0 to some
/// n have axes.
bool StrategyBinder::bindTopology(const ast::MeshStmt &mesh, Environment &env) {
  std::vector<int64_t> dims;
  for (const ast::Expr *expr : mesh.topology) {
    std::optional<CTValue> value = evaluator.evaluate(expr, env);
    if (!value)
      return false;
    // A parameter of a strategy may have all of it: a list, or `none`.
    bool isWhole = mesh.topology.size() == 1 && (value->isNone() || value->getKind() == CTValue::Kind::List);
    ArrayRef<CTValue> entries = isWhole ? value->getElements() : ArrayRef<CTValue>(*value);
    if (isWhole && value->isNone())
      return true;
    for (const CTValue &entry : entries) {
      std::optional<int64_t> dim = entry.getInteger();
      if (!dim || *dim < 0 || *dim >= int64_t(mesh.axes.size())) {
        diags.report(expr->loc(), diag::TopologyDimension).range(expr->range)
            << int64_t(mesh.axes.size()) << evaluator.format(entry);
        return false;
      }
      dims.push_back(*dim);
    }
  }
  if (mesh.topology.empty())
    return true;
  if (dims.size() != mesh.axes.size()) {
    diags.report(mesh.loc(), diag::TopologyEntries).range(mesh.range)
        << int64_t(dims.size()) << int64_t(mesh.axes.size());
    return false;
  }
  int64_t last = *std::max_element(dims.begin(), dims.end());
  for (int64_t dim = 0; dim < last; ++dim)
    if (!llvm::is_contained(dims, dim)) {
      diags.report(mesh.loc(), diag::TopologyGap).range(mesh.range) << dim << last;
      return false;
    }
  for (auto [axis, dim] : llvm::zip(result.readings, dims))
    axis.networkDim = dim;
  return true;
}

bool StrategyBinder::bindAxis(const ast::MeshStmt::AxisSyntax &axis, Environment &env, std::vector<BoundAxis> &into) {
  std::string what = ("the size of axis '" + axis.name.name + "'").str();
  std::optional<int64_t> size;
  if (axis.size) {
    size = evaluator.evaluateInteger(axis.size, env, what);
    if (!size)
      return false;
  } else if (const CTValue *value = env.find(axis.name.name)) {
    Size exact = value->isNumber() ? value->getSize(evaluator.getSizes()) : Size();
    if (!exact) {
      DiagnosticBuilder error = diags.report(axis.name.loc(), diag::NotAnInteger).range(axis.name.range)
                                << what << evaluator.format(*value);
      noteGiven(error, axis.name.name);
      return false;
    }
    size = evaluator.getValue(exact, axis.name.range, what);
    if (!size)
      return false;
  }
  if (*size < 1) {
    DiagnosticBuilder error = diags.report(axis.name.loc(), diag::AxisSize).range(axis.name.range)
                              << axis.name.name << *size;
    noteGiven(error, axis.name.name);
    return false;
  }
  auto other = llvm::find_if(into, [&](const BoundAxis &known) { return known.name.name == axis.name.name; });
  if (other != into.end()) {
    diags.report(axis.name.loc(), diag::Redefinition)
        .range(axis.name.range)
        .with(axis.name.name)
        .note(other->name.loc(), diag::PreviousHere)
        .with(axis.name.name);
    return false;
  }
  if (!env.find(axis.name.name))
    env.define(axis.name.name, CTValue::integer(*size));
  into.push_back({axis.name, *size});
  return true;
}

bool StrategyBinder::bindAlias(const ast::AxisAliasStmt &alias) {
  auto other = llvm::find_if(result.aliases, [&](const BoundAlias &a) { return a.name.name == alias.name.name; });
  const BoundAxis *axis = result.findAxis(alias.name.name);
  if (axis || other != result.aliases.end()) {
    diags.report(alias.name.loc(), diag::Redefinition)
        .range(alias.name.range)
        .with(alias.name.name)
        .note(axis ? axis->name.loc() : other->name.loc(), diag::PreviousHere)
        .with(alias.name.name);
    return false;
  }
  if (!checkAxes(alias.axes))
    return false;
  result.aliases.push_back({alias.name, result.expand(alias.axes)});
  return true;
}

/// One pipeline is in effect. What a strategy says replaces what it extends.
bool StrategyBinder::addPipeline(const BoundRule &rule) {
  auto earlier = llvm::find_if(result.rules, [](const BoundRule &r) { return llvm::isa<ast::PipelineStmt>(r.stmt); });
  if (earlier != result.rules.end()) {
    if (earlier->strategy == rule.strategy) {
      diags.report(rule.stmt->loc(), diag::PipelineTwice)
          .range(rule.stmt->range)
          .note(earlier->stmt->loc(), diag::OtherOneHere);
      return false;
    }
    result.rules.erase(earlier);
  }
  result.rules.push_back(rule);
  return true;
}

/// `dp, tp`, or `none`.
static std::string listNames(ArrayRef<Candidate> candidates) {
  std::string names;
  for (const Candidate &candidate : candidates)
    names += ((names.empty() ? "" : ", ") + candidate.name).str();
  return names.empty() ? "none" : names;
}

bool StrategyBinder::checkAxes(const ast::AxisListSyntax &axes) {
  bool ok = true;
  std::vector<Candidate> candidates;
  for (const BoundAxis &axis : result.mesh)
    candidates.push_back({axis.name.name, axis.name.loc()});
  for (const BoundAlias &alias : result.aliases)
    candidates.push_back({alias.name.name, alias.name.loc()});
  llvm::SmallVector<StringRef, 4> seen;
  for (const ast::Ident &name : axes.axes) {
    if (llvm::none_of(candidates, [&](const Candidate &known) { return known.name == name.name; })) {
      DiagnosticBuilder error = diags.report(name.loc(), diag::UnknownAxis).range(name.range)
                                << name.name << listNames(candidates);
      suggestNearest(error, name.name, name.range, candidates);
      ok = false;
      continue;
    }
    for (StringRef axis : result.expand({name, name.range})) {
      if (llvm::is_contained(seen, axis)) {
        diags.report(name.loc(), diag::AxisListedTwice).range(name.range) << axis;
        ok = false;
      }
      seen.push_back(axis);
    }
  }
  return ok;
}

bool StrategyBinder::checkRule(const ast::Stmt *stmt) {
  bool ok = true;
  if (auto *shard = dyn_cast<ast::ShardStmt>(stmt)) {
    for (const ast::ShardStmt::Item &item : shard->items)
      ok &= checkAxes(item.axes);
  } else if (auto *keep = dyn_cast<ast::KeepStmt>(stmt)) {
    ok = checkAxes(keep->axes);
  } else if (auto *ring = dyn_cast<ast::RingStmt>(stmt)) {
    ok = checkAxes(ring->axes);
  } else if (auto *replicate = dyn_cast<ast::ReplicateStmt>(stmt)) {
    ok = checkAxes(replicate->axes);
  } else if (auto *at = dyn_cast<ast::AtStmt>(stmt)) {
    for (const ast::Stmt *rule : at->rules)
      ok &= checkRule(rule);
  } else if (auto *pipeline = dyn_cast<ast::PipelineStmt>(stmt)) {
    ok = checkAxes(pipeline->axes);
    size_t count = ok ? result.expand(pipeline->axes).size() : 1;
    if (count != 1) {
      diags.report(pipeline->axes.range.Start, diag::PipelineAxes).range(pipeline->axes.range) << int64_t(count);
      ok = false;
    }
  } else if (auto *partition = dyn_cast<ast::PartitionStmt>(stmt)) {
    ok = checkAxes(partition->axes);
  } else if (auto *reduce = dyn_cast<ast::ReduceStmt>(stmt)) {
    ok = checkAxes(reduce->axes);
  } else if (auto *overlap = dyn_cast<ast::OverlapStmt>(stmt)) {
    ok = checkAxes(overlap->axes);
  } else if (auto *slow = dyn_cast<ast::SlowStmt>(stmt)) {
    ok = checkAxes(slow->axes);
  }
  return ok;
}

bool StrategyBinder::checkRules() {
  bool ok = true;
  for (const BoundRule &rule : result.rules)
    ok &= checkRule(rule.stmt);
  return ok;
}

std::optional<BoundStrategy> stage::sema::bindStrategy(Evaluator &evaluator, std::deque<Environment> &environments,
                                                       const ast::StrategyDecl &decl, ArrayRef<NamedValue> args,
                                                       SMRange usedAt) {
  StrategyBinder binder(evaluator, environments);
  binder.result.decl = &decl;
  bool ok = binder.bind(decl, args, usedAt);
  // Without its mesh no rule has an axis.
  if ((ok || binder.hasMesh) && !binder.checkRules())
    ok = false;
  if (!ok)
    return std::nullopt;
  return std::move(binder.result);
}

/// `split = [3, 4, 4]`, `split = balanced(flops)`, `split = none`
static bool bindSplit(Evaluator &evaluator, const ast::EntryStmt &entry, BoundPipeline &pipeline) {
  std::optional<CTValue> value = evaluator.evaluate(entry.value, *pipeline.env);
  if (!value)
    return false;
  if (value->isNone())
    return true;
  if (value->getKind() == CTValue::Kind::Word)
    pipeline.balance = llvm::StringSwitch<Balance>(value->getText())
                           .Case("balanced(flops)", Balance::Flops)
                           .Case("balanced(memory)", Balance::Memory)
                           .Default(Balance::None);
  if (pipeline.balance != Balance::None)
    return true;
  if (value->getKind() != CTValue::Kind::List) {
    evaluator.getDiags().report(entry.value->loc(), diag::WrongKind).range(entry.value->range)
        << "a list of integers, 'balanced(flops)' or 'balanced(memory)'" << evaluator.format(*value);
    return false;
  }
  auto *list = dyn_cast<ast::ListExpr>(entry.value);
  for (size_t i = 0; i != value->getElements().size(); ++i) {
    const CTValue &element = value->getElements()[i];
    SMRange range = list ? list->elements[i]->range : entry.value->range;
    Size size = element.isNumber() ? element.getSize(evaluator.getSizes()) : Size();
    if (!size) {
      evaluator.getDiags().report(range.Start, diag::WrongKind).range(range)
          << "an integer" << evaluator.format(element);
      return false;
    }
    std::optional<int64_t> count = evaluator.getValue(size, range, "an element of 'split'");
    if (!count)
      return false;
    if (*count < 0) {
      evaluator.getDiags().report(range.Start, diag::NegativeSplit).range(range) << *count;
      return false;
    }
    pipeline.split.push_back(*count);
  }
  pipeline.splitRange = entry.value->range;
  return true;
}

/// `send = early`, `send = at_end`
static bool bindSend(Evaluator &evaluator, const ast::EntryStmt &entry, BoundPipeline &pipeline) {
  std::optional<CTValue> value = evaluator.evaluate(entry.value, *pipeline.env);
  if (!value)
    return false;
  StringRef word = value->getKind() == CTValue::Kind::Word ? value->getText() : "";
  pipeline.sendsEarly = word == earlyWord;
  if (pipeline.sendsEarly || word == atEndWord)
    return true;
  evaluator.getDiags().report(entry.value->loc(), diag::WrongKind).range(entry.value->range)
      << "'at_end' or 'early'" << evaluator.format(*value);
  return false;
}

/// `place embed = first;`, `place gf, head = last;`, or with the name of a number.
static bool bindPlace(Evaluator &evaluator, const ast::PlaceStmt &place, int64_t stages, BoundPipeline &pipeline) {
  int64_t last = stages * pipeline.schedule.chunks / pipeline.schedule.copies - 1;
  std::optional<int64_t> where;
  const CTValue *value = pipeline.env->find(place.where.name);
  if (value) {
    Size size = value->isNumber() ? value->getSize(evaluator.getSizes()) : Size();
    where = size ? evaluator.getValue(size, place.where.range, "a virtual stage") : std::nullopt;
    if (size && !where)
      return false;
  } else if (place.where.name == "first" || place.where.name == "last") {
    where = place.where.name == "first" ? 0 : last;
  }
  if (!where || *where < 0 || (*where > last && last > 0)) {
    DiagnosticBuilder error = evaluator.getDiags().report(place.where.loc(), diag::BadPlace).range(place.where.range)
                              << last << (value ? evaluator.format(*value) : place.where.name.str());
    return false;
  }
  for (const ast::Ident &name : place.names)
    pipeline.placements.emplace_back(name, *where);
  return true;
}

bool stage::sema::bindPipeline(Evaluator &evaluator, BoundStrategy &strategy, int64_t microbatches, bool isTraining) {
  auto rule = llvm::find_if(strategy.rules, [](const BoundRule &r) { return llvm::isa<ast::PipelineStmt>(r.stmt); });
  if (rule == strategy.rules.end())
    return true;
  BoundPipeline pipeline;
  pipeline.stmt = llvm::cast<ast::PipelineStmt>(rule->stmt);
  pipeline.env = rule->env;
  pipeline.axis = strategy.expand(pipeline.stmt->axes).front();

  DiagnosticEngine &diags = evaluator.getDiags();
  const ast::EntryStmt *scheduleEntry = nullptr;
  for (const ast::Stmt *stmt : pipeline.stmt->entries) {
    auto *entry = dyn_cast<ast::EntryStmt>(stmt);
    if (!entry)
      continue; // `place`: once the virtual stages are known
    if (entry->name.name == "schedule")
      scheduleEntry = entry;
    else if (!(entry->name.name == sendWord ? bindSend : bindSplit)(evaluator, *entry, pipeline))
      return false;
  }
  if (!scheduleEntry) {
    diags.report(pipeline.stmt->loc(), diag::EntryMissing).range(pipeline.stmt->range) << "pipeline"
                                                                                       << "schedule";
    return false;
  }
  std::optional<CTValue> value = evaluator.evaluate(scheduleEntry->value, *pipeline.env);
  if (!value)
    return false;
  auto *schedule = value->isDecl() ? dyn_cast<ast::ScheduleDecl>(value->getDecl()) : nullptr;
  if (!schedule) {
    diags.report(scheduleEntry->value->loc(), diag::WrongKind).range(scheduleEntry->value->range)
        << "a schedule" << evaluator.format(*value);
    return false;
  }
  if (isTraining) {
    std::optional<BoundSchedule> bound = runSchedule(evaluator, *schedule, strategy.findAxis(pipeline.axis)->size,
                                                     microbatches, value->getArguments(), scheduleEntry->value->range);
    if (!bound)
      return false;
    pipeline.schedule = std::move(*bound);
  }
  for (const ast::Stmt *stmt : pipeline.stmt->entries)
    if (auto *place = dyn_cast<ast::PlaceStmt>(stmt);
        place && !bindPlace(evaluator, *place, strategy.findAxis(pipeline.axis)->size, pipeline))
      return false;
  strategy.pipeline = std::move(pipeline);
  return true;
}
