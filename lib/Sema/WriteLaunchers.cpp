//===- WriteLaunchers.cpp - writing arguments of a framework --------------===//
//
// Problem: several values may be written alike, and some not at all. What a framework is told must be the plan, or
// nothing.
//
//   tp = 8, zero = 1   ->  --tensor-model-parallel-size 8 --use-distributed-optimizer
//   zero = 2           ->  refused: the same flag would be read as zero = 1
//
// Algorithm: a flag is written where its condition holds; a flag without condition where its argument is given. Then
// the words are read, and each parameter that has another value than before is a fault, or is listed (writeKnown).
//
// Limits: Launchers.h.
//
//===----------------------------------------------------------------------===//
#include "stage/Sema/Arguments.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Launchers.h"

using namespace stage;
using namespace stage::sema;
using Scale = LauncherFlag::Scale;
using Test = LauncherFlag::Test;

bool Launcher::isGiven(unsigned param, ArrayRef<NamedValue> arguments) const {
  StringRef name = params[param]->name.name;
  return llvm::any_of(llvm::enumerate(arguments), [&](auto entry) {
    const ast::Ident &given = entry.value().name;
    return given ? given.name == name : entry.index() == param;
  });
}

std::optional<Launcher::Values> Launcher::bind(Evaluator &evaluator, ArrayRef<NamedValue> arguments) const {
  std::vector<NamedValue> own, ofJob;
  for (const NamedValue &argument : arguments)
    (argument.name.name.contains('.') ? ofJob : own).push_back(argument);
  auto matched = matchArguments(strategy->params, own, strategy->name.name, SMRange(), evaluator.getDiags(),
                                /*allNeeded=*/false);
  if (!matched)
    return std::nullopt;
  SilentEvaluator silent(*program, evaluator.getSizes(), evaluator.getBinding());
  Environment callee(program->getFile(*strategy));
  Values values;
  bool ok = true;
  for (unsigned i = 0; i != strategy->params.size(); ++i) {
    const ast::Param &param = strategy->params[i];
    const NamedValue *argument = (*matched)[i];
    std::optional<CTValue> value = argument ? evaluator.convert(argument->value, param, callee, argument->range)
                                            : getDefault(silent.get(), i, callee);
    ok &= value || !argument;
    if (value)
      callee.define(param.name.name, *value);
    values.push_back(std::move(value));
  }
  for (const ast::Param *param : ArrayRef<const ast::Param *>(params).drop_front(strategy->params.size())) {
    auto given = llvm::find_if(ofJob, [&](const NamedValue &value) { return value.name.name == param->name.name; });
    values.push_back(given == ofJob.end() ? std::nullopt : std::optional(given->value));
  }
  return ok ? std::optional(std::move(values)) : std::nullopt;
}

/// An argument of a value that is a declaration: `v` of `interleaved(v = 2)`; null: it has none.
static const CTValue *findArgument(const CTValue &value, StringRef name) {
  for (const NamedValue &argument : value.isDecl() ? value.getArguments() : ArrayRef<NamedValue>())
    if (argument.name.name == name)
      return &argument.value;
  return nullptr;
}

std::optional<std::string> Launcher::print(Evaluator &evaluator, const LauncherFlag &flag, const CTValue &value) const {
  if (!flag.argument.empty()) {
    const CTValue *argument = value.getArguments().size() == 1 ? findArgument(value, flag.argument) : nullptr;
    std::optional<Rational> number = argument ? evaluator.getExact(*argument) : std::nullopt;
    bool isPlain = number && number->isInteger() && number->num >= 0 && !isTooLarge(*number);
    return isPlain ? std::optional(number->str()) : std::nullopt;
  }
  if (getParam(flag).name.name == clipParam)
    return value.isReal() ? evaluator.format(value) : "0";
  bool isWord = value.isNone() || value.isBool() || value.getKind() == CTValue::Kind::Word ||
                (value.isDecl() && value.getArguments().empty());
  if (flag.scale == Scale::Plain && isWord)
    return value.isNone() ? "none" : evaluator.format(value);
  std::optional<Rational> number = evaluator.getExact(value);
  std::optional<Dimension> dimension = value.getDimension();
  if (number && flag.scale != Scale::Plain) {
    number = flag.scale == Scale::Times ? number->mul(flag.factor) : number->div(flag.factor);
    dimension = flag.scale == Scale::Times ? dimension->multiply(flag.unit) : dimension->divide(flag.unit);
  }
  bool isPlain = number && dimension && dimension->isNumber() && number->isInteger() && number->num >= 0;
  return isPlain && !isTooLarge(*number) ? std::optional(number->str()) : std::nullopt;
}

std::optional<std::vector<std::string>> Launcher::compose(Evaluator &evaluator, ArrayRef<NamedValue> arguments,
                                                          const Values &values, ArrayRef<unsigned> left) const {
  std::vector<std::string> words;
  StringRef listed; // the flag to whose list values are added
  for (const LauncherFlag &flag : flags) {
    if (!flag.param || llvm::is_contained(left, *flag.param) ||
        ((flag.test == Test::Always || isOfJob(*flag.param)) && !isGiven(*flag.param, arguments)))
      continue;
    const std::optional<CTValue> &value = values[*flag.param];
    if (!value) {
      evaluator.getDiags().report(SMLoc(), diag::MissingArgument) << strategy->name.name << getParam(flag).name.name;
      return std::nullopt;
    }
    if (!holds(evaluator, flag, *value))
      continue;
    if (flag.isElement && flag.scale != Scale::None) { // `--sizes 2 4`
      if (std::optional<std::string> text = print(evaluator, flag, *value)) {
        if (std::exchange(listed, flag.key) != flag.key)
          words.push_back(flag.key.str());
        words.push_back(*text);
      }
      continue;
    }
    if (flag.isElement) {
      std::string begin = flag.key.str() + "=[";
      auto list = llvm::find_if(words, [&](StringRef word) { return word.startswith(begin); });
      if (list == words.end())
        words.push_back(begin + flag.value->str() + "]");
      else
        list->insert(list->size() - 1, "," + flag.value->str());
      continue;
    }
    words.push_back(flag.text->text.str());
    // What cannot be printed is found missing when the words are read.
    std::optional<std::string> text = flag.scale == Scale::None ? "" : print(evaluator, flag, *value);
    if (!text)
      words.pop_back();
    else if (!text->empty())
      words.push_back(*text);
  }
  return words;
}

std::vector<Launcher::Unsaid> Launcher::findUnsaid(Evaluator &evaluator, ArrayRef<NamedValue> arguments,
                                                   const Values &values, ArrayRef<std::string> words) const {
  SilentEvaluator silent(*program, evaluator.getSizes(), evaluator.getBinding());
  std::optional<std::vector<NamedValue>> read = this->read(silent.get(), words);
  std::optional<Values> back = read ? bind(silent.get(), *read) : std::nullopt;
  std::vector<Unsaid> unsaid;
  for (unsigned i = 0; i != params.size(); ++i) {
    const std::optional<CTValue> &value = values[i];
    if (!value)
      continue;
    // Where the words cannot be read at all, a flag that has no number for its parameter is to blame.
    bool isBack = back ? (*back)[i] && isSame(evaluator, *value, *(*back)[i])
                       : llvm::all_of(getFlags(i), [&](const LauncherFlag *flag) {
                           bool isWritten =
                               flag->test == Test::Always ? isGiven(i, arguments) : holds(evaluator, *flag, *value);
                           return !isWritten || flag->scale == Scale::None || print(evaluator, *flag, *value);
                         });
    if (isBack || (back && !isGiven(i, arguments) && getFlags(i).empty()))
      continue;
    unsaid.push_back({i, *value, back ? (*back)[i] : std::nullopt});
  }
  return unsaid;
}

std::optional<std::vector<std::string>> Launcher::write(Evaluator &evaluator, ArrayRef<NamedValue> arguments,
                                                        ArrayRef<StringRef> saidElsewhere) const {
  std::optional<Values> values = bind(evaluator, arguments);
  std::optional<std::vector<std::string>> words = values ? compose(evaluator, arguments, *values, {}) : std::nullopt;
  if (!words)
    return std::nullopt;
  bool ok = true;
  for (const Unsaid &unsaid : findUnsaid(evaluator, arguments, *values, *words)) {
    StringRef name = params[unsaid.param]->name.name;
    if (llvm::is_contained(saidElsewhere, name))
      continue;
    evaluator.getDiags().report(SMLoc(), diag::NoFlagSays)
        << getName() << name << (unsaid.value.isNone() ? "none" : evaluator.format(unsaid.value));
    ok = false;
  }
  if (ok && !this->read(evaluator, *words)) // says why
    return std::nullopt;
  return ok ? words : std::nullopt;
}

std::optional<Launcher::Written> Launcher::writeKnown(Evaluator &evaluator, ArrayRef<NamedValue> arguments) const {
  std::optional<Values> values = bind(evaluator, arguments);
  if (!values)
    return std::nullopt;
  SilentEvaluator silent(*program, evaluator.getSizes(), evaluator.getBinding());
  // Flags of a parameter without a number are left out, and what the others say is read again.
  Written written;
  std::vector<unsigned> left;
  for (;;) {
    auto words = compose(evaluator, arguments, *values, left);
    if (!words)
      return std::nullopt;
    written.words = std::move(*words);
    written.unsaid = findUnsaid(evaluator, arguments, *values, written.words);
    if (this->read(silent.get(), written.words))
      return written;
    size_t before = left.size();
    for (const Unsaid &unsaid : written.unsaid)
      if (!llvm::is_contained(left, unsaid.param))
        left.push_back(unsaid.param);
    if (left.size() == before) {
      (void)this->read(evaluator, written.words); // says why
      return std::nullopt;
    }
  }
}
