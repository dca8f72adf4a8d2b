//===- ImportArguments.cpp - stagec import --launcher ---------------------===//
//
//   stagec import --launcher=megatron_lm args.txt -o job.stg
//
// Algorithm: the launcher of the library reads the words of the file as values of a job (stage/Sema/LaunchedJob.h),
// `-D` gives others, and the program of these values is compiled before it is written.
//
//===----------------------------------------------------------------------===//
#include "ArgumentFile.h"
#include "Commands.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/Sema/LaunchedJob.h"
#include "stage/Support/Files.h"
#include "stage/Support/Table.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::driver;
using llvm::StringRef;
using sema::NamedValue;

std::optional<sema::Launcher> stage::driver::findLauncher(const sema::Program &program, StringRef name,
                                                          DiagnosticEngine &diags) {
  const ast::Decl *found = program.lookup(*program.getMain(), name);
  if (auto *decl = llvm::dyn_cast_or_null<ast::LauncherDecl>(found))
    return sema::Launcher::make(program, *decl);
  std::vector<sema::Candidate> known;
  std::string list;
  for (const sema::Candidate &candidate : program.getVisibleNames(*program.getMain()))
    if (llvm::isa_and_nonnull<ast::LauncherDecl>(program.lookup(*program.getMain(), candidate.name))) {
      known.push_back(candidate);
      list += (list.empty() ? "" : ", ") + candidate.name.str();
    }
  DiagnosticBuilder error = diags.report(SMLoc(), diag::UnknownLauncher) << name << list;
  if (const sema::Candidate *nearest = findNearest(name, known))
    error.note(nearest->loc, diag::NearestInLibrary) << nearest->name;
  return std::nullopt;
}

namespace {
class ArgumentImporter {
public:
  ArgumentImporter(const ImportCommand &command, Session &session)
      : command(command), session(session), diags(session.getDiags()),
        evaluator(session.getFiles(), session.getSizes(), binding, obligations, diags) {}

  bool run() {
    auto buffer = readFile(command.input, diags);
    if (!buffer)
      return false;
    StringRef text = buffer->getBuffer();
    session.getSources().AddNewSourceBuffer(std::move(buffer), SMLoc());
    begin = SMLoc::getFromPointer(text.data());
    std::optional<sema::Launcher> launcher = findLauncher(session.getFiles(), command.launcher, diags);
    if (!launcher)
      return false;
    ArgumentWords words = readArguments(text, *launcher);
    if (!words.fault.empty()) {
      diags.report(SMLoc::getFromPointer(words.faultPlace), diag::ArgumentsDoNotFit) << command.launcher << words.fault;
      return false;
    }
    std::vector<std::string> ignored;
    auto read = launcher->read(evaluator, words.words, words.places, &ignored);
    if (!read)
      return false;
    values = std::move(*read);
    for (const Choice &define : command.defines)
      if (!addDefine(*launcher, define))
        return false;
    if (!checkComplete(*launcher))
      return false;
    std::string program = sema::writeProgram(*launcher, evaluator, values), reason;
    size_t place = 0;
    std::optional<std::string> described = describeParameters(program, command, reason, &place);
    if (!described) {
      diags.report(findFlag(program, place), diag::ArgumentsDoNotFit) << command.launcher << reason;
      return false;
    }
    std::string head = "//! From arguments of " + command.launcher + ": " + *described + ".\n";
    if (!ignored.empty())
      head += "//! Arguments that change no plan, and are not here: " + llvm::join(ignored, ", ") + ".\n";
    if (!writeFile(command.output, head + program, command.existing, diags))
      return false;
    if (command.output != "-") {
      llvm::outs() << command.output << ": " << *described << "\n";
      if (!ignored.empty())
        llvm::outs() << "ignored, because no plan depends on them: " << llvm::join(ignored, ", ") << "\n";
    }
    return true;
  }

private:
  /// The flag behind `3` at a place of the program's `tp = 3`; where no flag says it, the first word.
  SMLoc findFlag(StringRef program, size_t place) const {
    StringRef before = program.take_front(place).rtrim(" =");
    StringRef name = before.take_back(before.size() - (before.find_last_of("(, ") + 1));
    for (const NamedValue &value : values)
      if (value.range.isValid() && (value.name.name == name || value.name.name.endswith(("." + name).str())))
        return value.range.Start;
    return begin;
  }

  bool has(StringRef name) const {
    return llvm::any_of(values, [&](const NamedValue &value) { return value.name.name == name; });
  }

  /// `-D config=llama3_8b`: a value of the job, a parameter of the strategy, or a value of the step.
  bool addDefine(const sema::Launcher &launcher, const Choice &define) {
    StringRef name = define.name, text = define.values.size() == 1 ? StringRef(define.values.front()) : "";
    bool isOfJob = name == "config" || name == "precision" || name == "machine" || name == "runtime" || name == "gpus";
    bool isOfStrategy = llvm::any_of(launcher.getStrategy().params, [&](auto &p) { return p.name.name == name; });
    bool infers = llvm::any_of(launcher.getParams(), [](auto *p) { return p->name.name.startswith("infer."); });
    std::string full = (isOfJob ? "job." : isOfStrategy ? "" : infers ? "infer." : "train.") + name.str();
    int64_t number;
    sema::CTValue value;
    if (!text.getAsInteger(10, number))
      value = sema::CTValue::integer(number);
    else if (const ast::Decl *decl = session.getFiles().lookup(launcher.getFile(), text))
      value = sema::CTValue::decl(decl);
    else
      value = sema::CTValue::word(text);
    bool isConfig = value.isDecl() && llvm::isa<ast::ConfigDecl>(value.getDecl());
    if (text.empty() || (name == "config" && !isConfig) || (isOfJob && name != "gpus" && !value.isDecl()) ||
        has(full)) {
      diags.report(SMLoc(), diag::BadLaunchDefine)
          << name << text << (has(full) ? "the arguments say it, too" : "the library has no such declaration");
      return false;
    }
    values.push_back({{session.getContext().copy(StringRef(full)), SMRange()}, value, SMRange()});
    return true;
  }

  /// A job needs a model, a batch, and the ranks of its mesh.
  bool checkComplete(const sema::Launcher &launcher) {
    bool ok = true;
    auto need = [&](StringRef name, StringRef what, StringRef define) {
      std::string flags = launcher.listFlags(name);
      // The framework knows what stands behind the name of a configuration.
      auto config = llvm::find_if(values, [](const NamedValue &value) { return value.name.name == "job.config"; });
      std::string text = config == values.end() ? "" : launcher.getFlagText(evaluator, "job.config", config->value);
      diags.report(begin, diag::ArgumentMissing)
          << what << flags + (flags.empty() || define.empty() ? "" : ", or ")
          << define.str() + (text.empty() ? "" : ", with the value that the framework has for '" + text + "'");
      ok = false;
    };
    bool hasModel = has("job.config");
    std::string dims;
    for (const ast::Param *param : launcher.getParams()) {
      StringRef owner = param->name.name.contains('.') ? param->name.name.split('.').first : "";
      if (owner.empty() || owner == "job" || owner == "train" || owner == "infer")
        continue;
      hasModel |= has(param->name.name);
      if (dims.empty())
        dims = param->name.name.str();
    }
    if (hasModel && !has("job.config"))
      needSizes(launcher, need);
    if (!hasModel)
      need(launcher.says("job.config") || dims.empty() ? "job.config" : StringRef(dims), "a model", "-D config=NAME");
    bool infers = llvm::any_of(launcher.getParams(), [](auto *p) { return p->name.name.startswith("infer."); });
    if (std::string batch = infers ? "infer.B" : "train.B"; !has(batch))
      need(batch, "a batch", "-D B=N");
    if (launcher.says("job.precision") && !has("job.precision"))
      need("job.precision", "a precision", "-D precision=NAME");
    std::string product;
    sema::Following following = sema::addFollowingAxis(session.getFiles(), launcher, values, product);
    if (following == sema::Following::NoRanks)
      need("job.gpus", "the number of GPUs", "-D gpus=N");
    else if (following == sema::Following::DoNotDivide) {
      auto gpus = llvm::find_if(values, [](const NamedValue &value) { return value.name.name == "job.gpus"; });
      diags.report(gpus->range.isValid() ? gpus->range.Start : begin, diag::RanksDoNotDivide)
          << *gpus->value.getInteger() << product
          << launcher.getParams()[*findFollowingAxis(session.getFiles(), launcher)]->name.name;
      ok = false;
    }
    return ok;
  }

  /// Arguments that say some sizes of a model must say all that have no default.
  void needSizes(const sema::Launcher &launcher, llvm::function_ref<void(StringRef, StringRef, StringRef)> need) const {
    for (const ast::Param *param : launcher.getParams()) {
      auto [owner, name] = param->name.name.split('.');
      auto *model = llvm::dyn_cast_or_null<ast::ModuleDecl>(session.getFiles().lookup(launcher.getFile(), owner));
      if (!model || has(param->name.name))
        continue;
      for (const ast::Param &size : model->params)
        if (size.name.name == name && !size.defaultValue)
          need(param->name.name, ("'" + name + "' of '" + owner + "'").str(), "");
    }
  }

  const ImportCommand &command;
  Session &session;
  DiagnosticEngine &diags;
  SizeBinding binding;
  Obligations obligations;
  sema::Evaluator evaluator;
  SMLoc begin;
  std::vector<NamedValue> values;
};
} // namespace

bool stage::driver::importArguments(const ImportCommand &command) {
  Session session({.input = "", .stdlibDir = command.stdlibDir, .cache = command.cache}, getMessagePrinter());
  return session.load("import std.launchers;\n", "launchers.stg") && ArgumentImporter(command, session).run();
}

/// `write --as=megatron_lm`: the launchers for a strategy.
static std::string suggestLaunchers(const sema::Program &program, const ast::StrategyDecl *strategy) {
  std::string names;
  for (const sema::Candidate &candidate : program.getVisibleNames(*program.getMain())) {
    auto *decl = llvm::dyn_cast_or_null<ast::LauncherDecl>(program.lookup(*program.getMain(), candidate.name));
    std::optional<sema::Launcher> launcher = decl ? sema::Launcher::make(program, *decl) : std::nullopt;
    if (launcher && &launcher->getStrategy() == strategy)
      names += (names.empty() ? "--as=" : " or --as=") + candidate.name.str();
  }
  return names.empty() ? "no launcher of the library is for it: declare one, 'launcher l for " +
                             (strategy ? strategy->name.name.str() : std::string("s")) + " { ... }'"
                       : "write " + names;
}

bool stage::driver::printArguments(Compilation &c, StringRef name) {
  std::optional<sema::Launcher> launcher = findLauncher(c.session.getFiles(), name, c.diags);
  if (!launcher)
    return false;
  const sema::BoundJob &job = *c.job;
  if (job.strategy.decl != &launcher->getStrategy()) {
    c.diags.report(SMLoc(), diag::LauncherOfOther) << name << launcher->getStrategy().name.name << job.decl->name.name
                                                   << (job.strategy.decl ? job.strategy.decl->name.name : "none")
                                                   << suggestLaunchers(c.session.getFiles(), job.strategy.decl);
    return false;
  }
  sema::Evaluator evaluator(c.session.getFiles(), c.sizes, c.binding, c.obligations, c.diags);
  std::optional<sema::LaunchedJob> launched = sema::writeLaunchedJob(*launcher, evaluator, job);
  if (!launched)
    return false;
  // A flag and its value, or the values of its list, are a line.
  const std::vector<std::string> &words = launched->words;
  for (size_t i = 0; i != words.size(); ++i) {
    llvm::outs() << words[i];
    bool hasValue = i + 1 != words.size() && !StringRef(words[i]).contains('=') && !launcher->isSwitch(words[i]);
    if (hasValue) {
      StringRef key = words[i];
      llvm::outs() << (key.startswith("-") ? " " : "=") << words[++i];
      while (launcher->isList(key) && i + 1 != words.size() &&
             !launcher->hasKey(StringRef(words[i + 1]).split('=').first))
        llvm::outs() << ' ' << words[++i];
    }
    llvm::outs() << '\n';
  }
  for (const sema::LaunchedJob::Unsaid &unsaid : launched->unsaid) {
    DiagnosticBuilder warning = c.diags.report(unsaid.range.Start, diag::ValueNotSaid).range(unsaid.range)
                                << name << unsaid.name << unsaid.value;
    if (!unsaid.read.empty())
      warning.note(unsaid.range.Start, diag::ValueSaidInstead) << unsaid.name << unsaid.read;
  }
  return !c.diags.hasErrors();
}
