//===- LaunchedJob.cpp - a job as arguments of a framework ----------------===//
#include "stage/Sema/LaunchedJob.h"
#include "BindStrategy.h"
#include "JobParts.h"
#include "JobWords.h"
#include "stage/Sema/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <set>

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

/// Of jobs whose launcher has no flag for them.
static constexpr StringRef standardPrecision = "bf16_mixed", standardOptimizer = "adamw";
/// Of jobs whose launcher has a flag for it that is not given: the default of Megatron-LM and torchtitan.
static constexpr StringRef standardClip = "1.0";
static constexpr double standardNorm = 1.0;

/// A value as a program writes it: `interleaved(v = 2)`.
static std::string spell(Evaluator &evaluator, const CTValue &value) {
  if (value.isNone())
    return "none";
  std::string text = evaluator.format(value), arguments;
  for (const NamedValue &argument : value.isDecl() ? value.getArguments() : ArrayRef<NamedValue>())
    arguments += (arguments.empty() ? "" : ", ") + argument.name.name.str() + (argument.name ? " = " : "") +
                 spell(evaluator, argument.value);
  return arguments.empty() ? text : text + "(" + arguments + ")";
}

//===----------------------------------------------------------------------===//
// The axis that follows from the number of ranks
//===----------------------------------------------------------------------===//

/// The parameters of a strategy that are axes of its mesh, or, if it has none, of the mesh of a strategy that it calls.
static std::vector<unsigned> findAxes(const Program &program, const ast::StrategyDecl &strategy, unsigned depth = 0) {
  std::vector<unsigned> axes;
  auto add = [&](StringRef name) {
    for (unsigned i = 0; i != strategy.params.size(); ++i)
      if (strategy.params[i].name.name == name)
        axes.push_back(i);
  };
  auto addValue = [&](const ast::Expr *value) {
    if (auto *name = llvm::dyn_cast_or_null<ast::NameExpr>(value))
      add(name->name);
  };
  if (const ast::MeshStmt *mesh = getMesh(strategy))
    for (const ast::MeshStmt::AxisSyntax &axis : mesh->axes)
      axis.size ? addValue(axis.size) : add(axis.name.name);
  constexpr unsigned deepest = 16; // a strategy that calls itself is refused elsewhere
  for (const ast::Stmt *stmt : axes.empty() && depth < deepest ? strategy.body : ArrayRef<ast::Stmt *>())
    if (const ast::StrategyDecl *callee = getCalledStrategy(program, strategy, *stmt)) {
      ArrayRef<ast::Argument> args = llvm::cast<ast::CallExpr>(llvm::cast<ast::ExprStmt>(stmt)->value)->args;
      for (unsigned axis : findAxes(program, *callee, depth + 1))
        for (unsigned place = 0; place != args.size(); ++place)
          if (args[place].name ? args[place].name.name == callee->params[axis].name.name : place == axis)
            addValue(args[place].value);
    }
  return axes;
}

static const std::string gpusName = (jobWord + "." + gpusWord).str();

std::optional<unsigned> stage::sema::findFollowingAxis(const Program &program, const Launcher &launcher) {
  if (!launcher.says(gpusName))
    return std::nullopt;
  std::optional<unsigned> found;
  for (unsigned axis : findAxes(program, launcher.getStrategy())) {
    if (launcher.says(launcher.getParams()[axis]->name.name))
      continue;
    if (found)
      return std::nullopt;
    found = axis;
  }
  return found;
}

static const NamedValue *findValue(ArrayRef<NamedValue> values, const llvm::Twine &name) {
  std::string text = name.str();
  auto found = llvm::find_if(values, [&](const NamedValue &value) { return value.name.name == text; });
  return found == values.end() ? nullptr : found;
}

Following stage::sema::addFollowingAxis(const Program &program, const Launcher &launcher,
                                        std::vector<NamedValue> &values, std::string &text) {
  std::optional<unsigned> axis = findFollowingAxis(program, launcher);
  if (!axis || findValue(values, launcher.getParams()[*axis]->name.name))
    return Following::Good;
  StringRef name = launcher.getParams()[*axis]->name.name;
  const NamedValue *gpus = findValue(values, gpusName);
  std::optional<int64_t> ranks = gpus ? gpus->value.getInteger() : std::nullopt;
  if (!ranks)
    return Following::NoRanks;
  __int128 product = 1;
  for (unsigned other : findAxes(program, launcher.getStrategy())) {
    if (other == *axis)
      continue;
    const NamedValue *given = findValue(values, launcher.getParams()[other]->name.name);
    std::optional<int64_t> size = given ? given->value.getInteger() : std::optional<int64_t>(1);
    if (!size || *size == 1)
      continue;
    product *= *size;
    text += (text.empty() ? "" : " x ") + launcher.getParams()[other]->name.name.str() + " " + std::to_string(*size);
    if (product <= 0 || product > *ranks)
      break;
  }
  text = std::to_string(int64_t(product)) + " = " + text;
  if (product <= 0 || *ranks % product != 0)
    return Following::DoNotDivide;
  values.push_back({{name, SMRange()}, CTValue::integer(int64_t(*ranks / product)), SMRange()});
  return Following::Good;
}

//===----------------------------------------------------------------------===//
// From a job
//===----------------------------------------------------------------------===//

namespace {
class JobReader {
public:
  JobReader(const Launcher &launcher, Evaluator &evaluator, const BoundJob &job)
      : launcher(launcher), evaluator(evaluator), program(evaluator.getProgram()), job(job), parts(program, *job.decl),
        silent(program, evaluator.getSizes(), evaluator.getBinding()) {}

  std::optional<LaunchedJob> run() {
    addStrategy();
    addStep();
    addDecl(precisionWord, job.precision.decl);
    addDecl(machineWord, findDecl(job.machine ? StringRef(job.machine->name) : ""));
    addDecl(runtimeWord, findDecl(job.runtime ? StringRef(job.runtime->name) : ""));
    add(gpusName, CTValue::integer(job.strategy.getNumRanks()), job.decl->name.range);
    bool isModelSaid = addModel();
    std::optional<Launcher::Written> written = launcher.writeKnown(evaluator, values);
    if (!written)
      return std::nullopt;
    LaunchedJob result;
    result.words = std::move(written->words);
    std::optional<unsigned> following = findFollowingAxis(program, launcher);
    for (const Launcher::Unsaid &unsaid : written->unsaid)
      if (unsaid.param != following)
        result.unsaid.push_back({launcher.getParams()[unsaid.param]->name.name.str(), spell(evaluator, unsaid.value),
                                 unsaid.read ? spell(evaluator, *unsaid.read) : "",
                                 getRange(launcher.getParams()[unsaid.param]->name.name)});
    for (const NamedValue &value : values)
      if (value.name.name.contains('.') && value.name.name != gpusName && !launcher.says(value.name.name) &&
          !isOfModel(value.name.name) && !isStandard(value))
        result.unsaid.push_back({value.name.name.str(), spell(evaluator, value.value), "", value.range});
    addUnknown(result);
    if (!isModelSaid)
      result.unsaid.push_back(
          {modelWord.str(), ast::textOf(parts.entries.lookup(modelWord).first->value), "", job.modelRange});
    return result;
  }

private:
  void add(StringRef name, CTValue value, SMRange range) {
    std::optional<Rational> exact = value.isSize() ? evaluator.getExact(value) : std::nullopt;
    if (exact && exact->isInteger() && !isTooLarge(*exact))
      value = CTValue::integer(int64_t(exact->num));
    values.push_back({{program.getContext().copy(name), SMRange()}, std::move(value), range});
  }
  void addDecl(StringRef entry, const ast::Decl *decl) {
    auto [stmt, file] = parts.entries.lookup(entry);
    if (decl)
      add((jobWord + "." + entry).str(), CTValue::decl(decl), stmt ? stmt->value->range : job.decl->name.range);
  }
  const ast::Decl *findDecl(StringRef name) const {
    return name.empty() ? nullptr : program.lookup(program.getFile(*job.decl), name);
  }
  /// What writeProgram() gives a job without being told.
  bool isStandard(const NamedValue &value) const {
    auto [owner, name] = value.name.name.split('.');
    StringRef standard = owner == jobWord && name == precisionWord     ? standardPrecision
                         : owner == trainWord && name == optimizerWord ? standardOptimizer
                                                                       : StringRef();
    return value.value.isDecl() && value.value.getDecl()->name.name == standard &&
           program.isOfLibrary(*value.value.getDecl());
  }
  bool isOfModel(StringRef name) const { return name.split('.').first == job.model->name.name; }
  SMRange getRange(StringRef name) const {
    const NamedValue *value = findValue(values, name);
    return value && value->range.isValid() ? value->range : job.decl->name.range;
  }

  /// Parts that the strategy is called with, and arguments of the step that are no number of its model.
  void addUnknown(LaunchedJob &result) const {
    if (auto [entry, file] = parts.entries.lookup(strategyWord); entry)
      if (auto *with = dyn_cast<ast::WithExpr>(entry->value))
        result.unsaid.push_back({strategyWord.str(), ast::textOf(with), "", with->range});
    StringRef kind = job.isTraining ? trainWord : inferWord;
    for (const ast::Argument &argument : parts.step ? parts.step->args : ArrayRef<ast::Argument>())
      if (StringRef name = argument.name.name; !findValue(values, kind + "." + name) && !saysNothing(argument.value) &&
                                               !(name == clipWord && launcher.says(clipParam)))
        result.unsaid.push_back({(kind + "." + name).str(), ast::textOf(argument.value), "", argument.value->range});
  }
  static bool saysNothing(const ast::Expr *value) {
    auto *name = dyn_cast<ast::NameExpr>(value);
    return name && name->name == "none";
  }

  /// Arguments that are written, or that are not the default.
  void addStrategy() {
    Environment callee(program.getFile(launcher.getStrategy()));
    ArrayRef<ast::Param> params = launcher.getStrategy().params;
    for (unsigned i = 0; i != params.size(); ++i) {
      const CTValue *value = job.strategy.call->env->find(params[i].name.name);
      if (!value)
        continue;
      SMRange range = params[i].name.range;
      bool isGiven = false;
      for (unsigned place = 0; place != parts.strategy.args.size(); ++place) {
        const ast::Argument &argument = parts.strategy.args[place];
        if (argument.name ? argument.name.name == params[i].name.name : place == i) {
          isGiven = true;
          range = argument.value->range;
        }
      }
      std::optional<CTValue> standard =
          params[i].defaultValue ? silent.get().evaluateParam(params[i], nullptr, callee, callee) : std::nullopt;
      if (isGiven || !standard || !evaluator.isSame(*standard, *value) ||
          spell(evaluator, *standard) != spell(evaluator, *value))
        add(params[i].name.name, *value, range);
      callee.define(params[i].name.name, *value);
    }
  }

  void addStep() {
    StringRef kind = job.isTraining ? trainWord : inferWord;
    auto addValue = [&](StringRef name, CTValue value) {
      SMRange range = job.stepRange;
      for (const ast::Argument &argument : parts.step ? parts.step->args : ArrayRef<ast::Argument>())
        if (argument.name.name == name)
          range = argument.value->range;
      add((kind + "." + name).str(), std::move(value), range);
    };
    if (!job.batchDim.empty())
      addValue(job.batchDim, CTValue::integer(job.globalBatch));
    if (job.microbatchIsGiven)
      addValue(microbatchWord, CTValue::integer(job.microbatch));
    for (const NamedValue &dim : job.stepDims)
      if (dim.name.name != job.batchDim)
        addValue(dim.name.name, dim.value);
    if (job.optimizer)
      addValue(optimizerWord, CTValue::decl(job.optimizer->decl));
    if (launcher.says(clipParam) ? job.clip != standardNorm : job.clip > 0)
      addValue(clipWord, job.clip > 0 ? CTValue::real(job.clip) : CTValue());
  }

  /// The config of the model, and its parameters. Whether flags say them all.
  bool addModel() {
    // A config is said by its name where it is all that the model is called with.
    ArrayRef<ast::Argument> args = parts.model.args;
    auto *name = args.size() == 1 && !args.front().name ? dyn_cast<ast::NameExpr>(args.front().value) : nullptr;
    const ast::Decl *config = name ? program.lookup(*parts.model.file, name->name) : nullptr;
    bool isConfig = config && llvm::isa<ast::ConfigDecl>(config);
    Environment callee(program.getFile(*job.model));
    if (isConfig)
      for (const NamedValue &value : job.modelArgs)
        callee.define(value.name.name, value.value);
    std::string configName = (jobWord + "." + configWord).str();
    if (isConfig && launcher.says(configName)) {
      add(configName, CTValue::decl(config), job.modelRange);
      return true;
    }
    bool isSaid = false, isMissing = false;
    Environment before(program.getFile(*job.model));
    for (const ast::Param &param : job.model->params) {
      const NamedValue *value = findValue(job.modelArgs, param.name.name);
      if (!value)
        continue;
      std::string qualified = (job.model->name.name + "." + param.name.name).str();
      bool says = launcher.says(qualified);
      std::optional<CTValue> standard =
          param.defaultValue ? silent.get().evaluateParam(param, nullptr, before, before) : std::nullopt;
      bool isStandard = standard && spell(evaluator, *standard) == spell(evaluator, value->value);
      if (says && (!isStandard || !param.defaultValue))
        add(qualified, value->value, job.modelRange);
      isSaid |= says;
      isMissing |= !says && !isStandard;
      before.define(param.name.name, value->value);
    }
    return isSaid && !isMissing;
  }

  const Launcher &launcher;
  Evaluator &evaluator;
  const Program &program;
  const BoundJob &job;
  JobParts parts;
  SilentEvaluator silent;
  std::vector<NamedValue> values;
};
} // namespace

std::optional<LaunchedJob> stage::sema::writeLaunchedJob(const Launcher &launcher, Evaluator &evaluator,
                                                         const BoundJob &job) {
  return JobReader(launcher, evaluator, job).run();
}

//===----------------------------------------------------------------------===//
// To a program
//===----------------------------------------------------------------------===//

namespace {
class ProgramWriter {
public:
  ProgramWriter(const Launcher &launcher, Evaluator &evaluator, ArrayRef<NamedValue> values)
      : launcher(launcher), evaluator(evaluator), program(evaluator.getProgram()), values(values) {}

  std::string write() {
    std::string model = writeModel(), step = writeStep(), precision = writeEntry(precisionWord);
    std::string machine = writeEntry(machineWord), runtime = writeEntry(runtimeWord);
    import(launcher.getStrategy());
    std::string strategy = listArguments("");
    std::string text;
    llvm::raw_string_ostream os(text);
    for (const auto &[file, names] : imports)
      os << "import " << file << " (" << llvm::join(names, ", ") << ");\n";
    os << "\njob launched {\n  model     = " << model << ";\n  step      = " << step
       << ";\n  precision = " << (precision.empty() ? standardPrecision : StringRef(precision)) << ";\n";
    if (!machine.empty())
      os << "  machine   = " << machine << ";\n";
    if (!runtime.empty())
      os << "  runtime   = " << runtime << ";\n";
    os << "  strategy  = " << launcher.getStrategy().name.name << "(" << strategy << ");\n}\n";
    return os.str();
  }

private:
  /// `std.parallel (megatron)`
  void import(const ast::Decl &decl) {
    // Every file sees the prelude.
    bool isOfLauncher = &program.getFile(decl) == &launcher.getFile();
    if (!isOfLauncher && program.lookup(*program.getMain(), decl.name.name) == &decl)
      return;
    StringRef path = program.getFile(decl).path;
    imports[(program.isOfLibrary(decl) ? "std." : "") + llvm::sys::path::stem(path).str()].insert(decl.name.name.str());
  }
  std::string spellValue(const CTValue &value) {
    if (value.isDecl())
      import(*value.getDecl());
    return spell(evaluator, value);
  }
  /// Values whose names have this owner.
  std::string listArguments(StringRef owner) {
    std::string text;
    for (const NamedValue &value : values) {
      auto [first, second] = value.name.name.split('.');
      if (second.empty() ? owner.empty() : first == owner)
        text += (text.empty() ? "" : ", ") + (second.empty() ? first : second).str() + " = " + spellValue(value.value);
    }
    return text;
  }
  std::string writeEntry(StringRef entry) {
    const NamedValue *value = findValue(values, jobWord + "." + entry);
    return value ? spellValue(value->value) : "";
  }

  std::string writeModel() {
    if (const NamedValue *config = findValue(values, jobWord + "." + configWord)) {
      auto *decl = llvm::cast<ast::ConfigDecl>(config->value.getDecl());
      if (const ast::Decl *model = program.lookup(program.getFile(*decl), decl->model.name))
        import(*model);
      return (decl->model.name + "(" + spellValue(config->value) + ")").str();
    }
    for (const NamedValue &value : values) {
      StringRef owner = value.name.name.contains('.') ? value.name.name.split('.').first : "";
      if (owner.empty() || owner == jobWord || owner == trainWord || owner == inferWord)
        continue;
      if (const ast::Decl *model = program.lookup(launcher.getFile(), owner))
        import(*model);
      return (owner + "(" + listArguments(owner) + ")").str();
    }
    return "";
  }

  std::string writeStep() {
    bool infers = llvm::any_of(values, [](auto &value) { return value.name.name.startswith("infer."); });
    std::string arguments = listArguments(infers ? inferWord : trainWord);
    if (!infers && !findValue(values, trainWord + "." + optimizerWord))
      arguments += (", " + optimizerWord + " = " + standardOptimizer).str();
    if (!infers && launcher.says(clipParam) && !findValue(values, clipParam))
      arguments += (", " + clipWord + " = " + standardClip).str();
    return ((infers ? inferWord : trainWord) + "(" + arguments + ")").str();
  }

  const Launcher &launcher;
  Evaluator &evaluator;
  const Program &program;
  ArrayRef<NamedValue> values;
  std::map<std::string, std::set<std::string>> imports;
};
} // namespace

std::string stage::sema::writeProgram(const Launcher &launcher, Evaluator &evaluator, ArrayRef<NamedValue> values) {
  return ProgramWriter(launcher, evaluator, values).write();
}
