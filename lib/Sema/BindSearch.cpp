//===- BindSearch.cpp - the plans that a job leaves open ------------------===//
//
// Order: which names are searched, by the command line, the job and the strategy; then what follows from 'gpus'; then
// requirements, which may name both. All of it is done for each strategy that the search tries.
//
//===----------------------------------------------------------------------===//
#include "BindStrategy.h"
#include "CandidateExpr.h"
#include "JobWords.h"
#include "Overrides.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Walk.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace stage;
using namespace stage::sema;
using ast::textOf;
using llvm::dyn_cast;

static constexpr SearchRecord records[] = {{"step", false},   {"tokens_per_gpu", true}, {"mfu", true},
                                           {"memory", false}, {"bubble", false},        {"exposed", false},
                                           {"cost", false},   {"energy", false}};

ArrayRef<SearchRecord> stage::sema::getSearchRecords() { return records; }

std::optional<unsigned> stage::sema::findSearchRecord(StringRef name) {
  for (unsigned i = 0; i != std::size(records); ++i)
    if (records[i].name == name)
      return i;
  return std::nullopt;
}

namespace {
/// Values that the parameter of one strategy cannot have are tried with others, and refused if none can have them.
struct ValueUses {
  struct LeftOut {
    const ast::Expr *expr;
    std::string text;
    const ast::Param *param;
    const ast::File *file;
    CTValue value;
  };
  std::vector<LeftOut> leftOut;
  std::set<std::pair<const ast::Expr *, std::string>> taken;
};

class SearchBinder {
public:
  /// `all`: the parts of the job with each of the strategies that the search tries.
  SearchBinder(Program &program, const BoundJob &model, const SearchedStrategy &strategy, ArrayRef<JobParts> all,
               ValueUses &uses, ArrayRef<SearchChange> changes, SizeContext &sizes, const SizeBinding &binding,
               CandidateCompiler::CountIterations countIterations, DiagnosticEngine &diags)
      : program(program), model(model), all(all), uses(uses), changes(changes), countIterations(countIterations),
        diags(diags), silence(diags.getSources(), /*consumer=*/nullptr),
        evaluator(program, sizes, binding, obligations, diags),
        silent(program, sizes, binding, silentObligations, silence), parts(program, *model.decl, strategy),
        compiler(evaluator, parts, model, search, countIterations) {
    evaluator.setModel(model.model);
    silent.setModel(model.model);
    search.strategy = strategy;
  }

  bool bind();
  /// Reports values that no strategy can have.
  bool checkUses();
  BoundSearch search;

private:
  /// Another strategy has the name, and this one does not.
  bool isOfOther(StringRef name) const {
    return parts.findOwner(name).empty() &&
           llvm::any_of(all, [&](const JobParts &other) { return !other.findOwner(name).empty(); });
  }
  bool dependsOnOthers(const ast::Param &param) const;
  bool isLeftOut(const SearchedName &searched, const CTValue &value, const ast::Expr *expr);
  bool isSearched(StringRef name) const {
    return llvm::any_of(search.names, [&](const SearchedName &known) { return known.name == name; });
  }
  bool addChanges();
  bool addBlock(const ast::SearchStmt &block, const ast::File &file, bool isOfJob);
  bool addName(const ast::SearchStmt::Values &entry, const ast::File &file);
  bool addValue(SearchedName &searched, const CTValue &value, const ast::Expr *expr);
  bool checkLegal(const SearchedName &searched, const CTValue &value, SMRange range);
  bool addObjective(const ast::SearchStmt::Values &entry);
  bool addFollowing();
  bool addFreeDegree(const ast::MeshStmt &mesh);
  bool addRanks(const ast::MeshStmt &mesh);
  bool addRequirements(const ast::SearchStmt &block, const ast::File &file);

  Program &program;
  const BoundJob &model;
  ArrayRef<JobParts> all;
  ValueUses &uses;
  ArrayRef<SearchChange> changes;
  CandidateCompiler::CountIterations countIterations;
  DiagnosticEngine &diags;
  DiagnosticEngine silence; ///< Of `silent`, which asks whether a value is legal.
  Obligations obligations, silentObligations;
  Evaluator evaluator, silent;
  JobParts parts;
  CandidateCompiler compiler;
};
} // namespace

/// Values of the command line stand for those of the program.
bool SearchBinder::addChanges() {
  bool ok = true;
  for (const SearchChange &change : changes) {
    StringRef name = StringRef(change.name).contains('.') ? StringRef(change.name).rsplit('.').second : change.name;
    if (name == strategyWord || isOfOther(name))
      continue;
    SearchedName &searched = search.names.emplace_back();
    searched.owner = parts.findOwner(name);
    searched.name = searched.owner.empty() ? change.name : name.str();
    for (const OverrideValue &value : change.values) {
      if (value.isRange()) {
        reportRangeOfValues(diags, SMRange(), change.name);
        ok = false;
      }
      searched.values.push_back({value, compiler.makeValue(value)});
    }
  }
  return ok;
}

/// Whether the strategy cannot have a value that another one may have.
bool SearchBinder::isLeftOut(const SearchedName &searched, const CTValue &value, const ast::Expr *expr) {
  if (all.size() < 2 || searched.owner != strategyWord)
    return false;
  const ast::File &file = program.getFile(*parts.strategy.decl);
  std::string text = evaluator.format(value);
  for (const ast::Param &param : parts.strategy.decl->params)
    if (param.name.name == searched.name && !dependsOnOthers(param) &&
        !silent.convert(value, param, Environment(file), expr->range)) {
      uses.leftOut.push_back({expr, text, &param, &file, value});
      return true;
    }
  uses.taken.insert({expr, text});
  return false;
}

bool SearchBinder::checkUses() {
  for (const ValueUses::LeftOut &left : uses.leftOut)
    if (!uses.taken.count({left.expr, left.text})) {
      evaluator.convert(left.value, *left.param, Environment(*left.file), left.expr->range);
      return false;
    }
  return true;
}

/// Other parameters decide which values are legal.
bool SearchBinder::dependsOnOthers(const ast::Param &param) const {
  bool found = false;
  ArrayRef<ast::Param> params = parts.strategy.decl->params;
  if (param.legal)
    walk(param.legal, [&](const ast::Expr *part) {
      if (auto *name = dyn_cast<ast::NameExpr>(part))
        found |= llvm::any_of(params, [&](const ast::Param &other) { return other.name.name == name->name; });
    });
  return found;
}

/// Whether the values that the parameter of a strategy may have include this one, where no other parameter decides it.
bool SearchBinder::checkLegal(const SearchedName &searched, const CTValue &value, SMRange range) {
  if (searched.owner != strategyWord)
    return true;
  for (const ast::Param &param : parts.strategy.decl->params) {
    if (param.name.name != searched.name || !param.legal)
      continue;
    if (!dependsOnOthers(param))
      return evaluator.convert(value, param, Environment(program.getFile(*parts.strategy.decl)), range).has_value();
  }
  return true;
}

bool SearchBinder::addValue(SearchedName &searched, const CTValue &value, const ast::Expr *expr) {
  if (isLeftOut(searched, value, expr))
    return true;
  if (!checkLegal(searched, value, expr->range))
    return false;
  std::string text = value.isSize() || value.isBool() ? evaluator.format(value) : textOf(expr);
  std::optional<CandidateValue> made = compiler.makeValue(value, text);
  if (!made) {
    diags.report(expr->loc(), diag::SearchExpression).range(expr->range) << text;
    return false;
  }
  searched.values.push_back({OverrideValue::read(text), *made});
  return true;
}

bool SearchBinder::addName(const ast::SearchStmt::Values &entry, const ast::File &file) {
  size_t numLeftOut = uses.leftOut.size();
  SearchedName searched;
  searched.name = entry.name.name.str();
  searched.owner = parts.findOwner(entry.name.name);
  searched.range = entry.name.range;
  Environment env(file);
  for (ArrayRef<NamedValue> sizes : {ArrayRef(model.modelArgs), ArrayRef(model.stepDims)})
    for (const NamedValue &size : sizes)
      env.define(size.name.name, size.value);
  walk(entry.values, [&](const ast::Expr *part) {
    auto *name = dyn_cast<ast::NameExpr>(part);
    if (std::optional<int64_t> count = name ? countIterations(name->name) : std::nullopt)
      env.define(name->name, CTValue::integer(*count));
  });
  if (auto *list = dyn_cast<ast::ListExpr>(entry.values); list && !entry.isOne) {
    for (const ast::Expr *element : list->elements) {
      std::optional<CTValue> value = evaluator.evaluate(element, env);
      if (!value || !addValue(searched, *value, element))
        return false;
    }
  } else {
    std::optional<CTValue> values = evaluator.evaluate(entry.values, env);
    if (!values)
      return false;
    bool isRange = values->getKind() == CTValue::Kind::Range;
    if (entry.isOne) {
      if (!addValue(searched, *values, entry.values))
        return false;
    } else if (isRange || values->getKind() == CTValue::Kind::List) {
      std::vector<CTValue> elements(values->getElements());
      if (isRange) {
        std::optional<int64_t> begin = elements[0].getInteger(), end = elements[1].getInteger();
        elements.clear();
        constexpr int64_t most = 100'000;
        for (int64_t value = begin.value_or(0); begin && end && value < std::min(*end, *begin + most); ++value)
          elements.push_back(CTValue::integer(value));
      }
      for (const CTValue &value : elements)
        if (!addValue(searched, value, entry.values))
          return false;
    } else {
      diags.report(entry.values->loc(), diag::WrongKind).range(entry.values->range)
          << "a list or a range of values" << evaluator.format(*values);
      return false;
    }
  }
  if (searched.values.empty() && uses.leftOut.size() > numLeftOut)
    return true; // all values are of other strategies
  if (searched.values.empty()) {
    diags.report(entry.values->loc(), diag::EmptyDomain).range(entry.values->range)
        << searched.name << textOf(entry.values);
    return false;
  }
  search.names.push_back(std::move(searched));
  return true;
}

bool SearchBinder::addObjective(const ast::SearchStmt::Values &entry) {
  if (auto *list = dyn_cast<ast::ListExpr>(entry.values)) {
    for (const ast::Expr *element : list->elements)
      search.objectives.push_back(*findSearchRecord(llvm::cast<ast::NameExpr>(element)->name));
    return true;
  }
  search.objectives.push_back(*findSearchRecord(llvm::cast<ast::NameExpr>(entry.values)->name));
  return true;
}

bool SearchBinder::addBlock(const ast::SearchStmt &block, const ast::File &file, bool isOfJob) {
  bool ok = true;
  for (const ast::SearchStmt::Values &entry : block.values) {
    if (isOfJob && (entry.name.name == objectiveWord || entry.name.name == paretoWord))
      ok &= addObjective(entry);
    else if (!isSearched(entry.name.name) && !isOfOther(entry.name.name) &&
             (!isOfJob || entry.name.name != strategyWord))
      ok &= addName(entry, file);
  }
  return ok;
}

//===----------------------------------------------------------------------===//
// What follows from the number of ranks
//===----------------------------------------------------------------------===//

/// The parameter that is the size of an axis; empty: it is computed.
static StringRef getParameter(const ast::MeshStmt::AxisSyntax &axis) {
  if (!axis.size)
    return axis.name.name;
  auto *name = dyn_cast<ast::NameExpr>(axis.size);
  return name ? name->name : "";
}

/// Where the job does not say which: the only axis whose size the job gives, and that is not searched.
bool SearchBinder::addFreeDegree(const ast::MeshStmt &mesh) {
  std::vector<StringRef> free;
  for (const ast::MeshStmt::AxisSyntax &axis : mesh.axes) {
    StringRef name = getParameter(axis);
    for (unsigned i = 0; i != parts.strategy.decl->params.size(); ++i) {
      const ast::Param &param = parts.strategy.decl->params[i];
      bool isGiven = false;
      for (unsigned position = 0; position != parts.strategy.args.size(); ++position) {
        const ast::Argument &argument = parts.strategy.args[position];
        isGiven |= argument.name ? argument.name.name == name : position == i;
      }
      if (param.name.name == name && !isSearched(name) && (isGiven || !param.defaultValue))
        free.push_back(name);
    }
  }
  if (free.empty())
    return true; // the number of ranks is a requirement
  if (free.size() > 1) {
    std::string list;
    for (unsigned i = 0; i != free.size(); ++i)
      list += (i == 0 ? "" : i + 1 == free.size() ? " and " : ", ") + ("'" + free[i] + "'").str();
    auto gpus = llvm::find_if(search.names, [](const SearchedName &name) { return name.name == gpusWord; });
    diags.report(gpus->range.Start, diag::FreeDegrees).range(gpus->range) << list << free.back();
    return false;
  }
  std::vector<ast::MeshStmt::AxisSyntax> others;
  std::string product;
  for (const ast::MeshStmt::AxisSyntax &axis : mesh.axes)
    if (getParameter(axis) != free.front()) {
      others.push_back(axis);
      product += (product.empty() ? "" : " * ") + (axis.size ? textOf(axis.size) : axis.name.name.str());
    }
  FollowingName &follows = search.following.emplace_back();
  follows.name = free.front().str();
  follows.formula = gpusWord.str() + (others.empty()      ? ""
                                      : others.size() > 1 ? " / (" + product + ")"
                                                          : " / " + product);
  std::optional<CandidateExpr> value = compiler.compileQuotient(gpusWord, others);
  if (value)
    follows.value = std::move(*value);
  return value.has_value();
}

bool SearchBinder::addRanks(const ast::MeshStmt &mesh) {
  std::optional<CandidateExpr> missing = compiler.compileQuotient(gpusWord, mesh.axes);
  if (!missing)
    return false;
  SearchRequirement &ranks = search.requirements.emplace_back();
  ranks.text = "the mesh has 'gpus' ranks";
  ranks.range = mesh.range;
  ranks.condition = std::move(*missing); // 1, and no other number, where it holds
  ranks.isOne = true;
  return true;
}

/// The 'gpus' of an expression; null: it has none.
static const ast::NameExpr *findRanks(const ast::Expr *expr) {
  const ast::NameExpr *found = nullptr;
  walk(expr, [&](const ast::Expr *part) {
    auto *used = dyn_cast<ast::NameExpr>(part);
    found = used && used->name == gpusWord ? used : found;
  });
  return found;
}

bool SearchBinder::addFollowing() {
  if (!parts.strategy.decl)
    return true;
  if (!isSearched(gpusWord)) {
    for (const ast::Argument &argument : parts.strategy.args)
      if (const ast::NameExpr *ranks = findRanks(argument.value)) {
        diags.report(ranks->loc(), diag::UnknownName)
            .range(ranks->range)
            .with(ranks->name)
            .note(SMLoc(), diag::GiveRanks);
        return false;
      }
    return true;
  }
  struct Said {
    const ast::Expr *value;
    const ast::File *file;
  };
  std::vector<Said> said;
  for (unsigned position = 0; position != parts.strategy.args.size(); ++position) {
    const ast::Argument &argument = parts.strategy.args[position];
    if (!argument.name && position >= parts.strategy.decl->params.size())
      continue; // reported when the job is bound
    StringRef name = argument.name ? argument.name.name : parts.strategy.decl->params[position].name.name;
    if (!findRanks(argument.value) || isSearched(name))
      continue;
    FollowingName &follows = search.following.emplace_back();
    follows.name = name.str();
    follows.formula = textOf(argument.value);
    follows.range = argument.value->range;
    follows.isSaid = true;
    said.push_back({argument.value, parts.strategy.file});
  }
  for (unsigned i = 0; i != said.size(); ++i) {
    std::optional<CandidateExpr> value = compiler.compile(said[i].value, *said[i].file);
    if (!value)
      return false;
    search.following[i].value = std::move(*value);
  }
  const ast::MeshStmt *mesh = getMesh(*parts.strategy.decl);
  return !mesh || ((!said.empty() || addFreeDegree(*mesh)) && addRanks(*mesh));
}

//===----------------------------------------------------------------------===//
// Requirements
//===----------------------------------------------------------------------===//

/// The e of `memory <= e` or `e >= memory`; null of all others.
static const ast::Expr *findMostMemory(const ast::Expr *condition) {
  auto *binary = dyn_cast<ast::BinaryExpr>(condition);
  if (!binary)
    return nullptr;
  auto isMemory = [](const ast::Expr *expr) {
    auto *name = dyn_cast<ast::NameExpr>(expr);
    return name && name->name == memoryWord;
  };
  if (isMemory(binary->left) && binary->op == ast::BinaryOp::LessEqual)
    return binary->right;
  return isMemory(binary->right) && binary->op == ast::BinaryOp::GreaterEqual ? binary->left : nullptr;
}

bool SearchBinder::addRequirements(const ast::SearchStmt &block, const ast::File &file) {
  bool ok = true;
  for (const ast::Stmt *stmt : block.requires_) {
    auto *require = llvm::cast<ast::RequireStmt>(stmt);
    bool asksOther = false;
    walk(require->condition, [&](const ast::Expr *part) {
      auto *name = dyn_cast<ast::NameExpr>(part);
      asksOther |= name && isOfOther(name->name);
    });
    if (asksOther)
      continue;
    std::optional<CandidateExpr> condition = compiler.compile(require->condition, file);
    ok &= condition.has_value();
    if (!condition)
      continue;
    SearchRequirement requirement;
    requirement.text = require->message ? require->message->text.str() : textOf(require->condition);
    requirement.range = require->range;
    requirement.condition = std::move(*condition);
    requirement.needsReport = requirement.condition.usesFrom(search.getFirstRecord());
    if (const ast::Expr *most = findMostMemory(require->condition))
      if (std::optional<CandidateExpr> limit = compiler.compile(most, file);
          limit && !limit->usesFrom(search.getFirstRecord()))
        requirement.mostMemory = std::move(limit);
    search.requirements.push_back(std::move(requirement));
  }
  return ok;
}

bool SearchBinder::bind() {
  bool ok = addChanges();
  if (parts.search)
    ok &= addBlock(*parts.search, *parts.searchFile, /*isOfJob=*/true);
  const ast::File *ownFile = parts.strategy.decl ? &program.getFile(*parts.strategy.decl) : nullptr;
  if (parts.ownSearch)
    ok &= addBlock(*parts.ownSearch, *ownFile, /*isOfJob=*/false);
  if (!ok)
    return false;
  if (search.names.empty()) {
    diags.report(model.decl->name.loc(), diag::NothingSearched).range(model.decl->name.range) << model.decl->name.name;
    return false;
  }
  if (search.objectives.empty())
    search.objectives.push_back(*findSearchRecord("tokens_per_gpu"));
  if (!addFollowing())
    return false;
  if (parts.search)
    ok &= addRequirements(*parts.search, *parts.searchFile);
  if (parts.ownSearch)
    ok &= addRequirements(*parts.ownSearch, *ownFile);
  return ok;
}

std::optional<std::vector<BoundSearch>>
stage::sema::bindSearch(Program &program, const BoundJob &model, ArrayRef<SearchedStrategy> strategies,
                        ArrayRef<SearchChange> changes, SizeContext &sizes, const SizeBinding &binding,
                        CandidateCompiler::CountIterations countIterations, DiagnosticEngine &diags) {
  SearchedStrategy ofJob;
  if (strategies.empty())
    strategies = ofJob;
  std::vector<JobParts> all;
  for (const SearchedStrategy &strategy : strategies)
    all.emplace_back(program, *model.decl, strategy);
  ValueUses uses;
  std::vector<BoundSearch> searches;
  for (const SearchedStrategy &strategy : strategies) {
    SearchBinder binder(program, model, strategy, all, uses, changes, sizes, binding, countIterations, diags);
    if (!binder.bind() || (&strategy == &strategies.back() && !binder.checkUses()))
      return std::nullopt;
    searches.push_back(std::move(binder.search));
  }
  return searches;
}
