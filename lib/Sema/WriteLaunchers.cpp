//===- WriteLaunchers.cpp - writing arguments of a framework --------------===//
//
// Problem: several values may be written alike, and some not at all. What a framework is told must be the plan, or
// nothing.
//
//   tp = 8, zero = 1   ->  --tensor-model-parallel-size 8 --use-distributed-optimizer
//   zero = 2           ->  refused: the same flag would be read as zero = 1
//
// Algorithm: a flag is written where its condition holds; a flag without condition where its argument is given. Then
// the words are read, and each parameter that has another value than before is a fault.
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

std::optional<Launcher::Values> Launcher::bind(Evaluator &evaluator, ArrayRef<NamedValue> arguments) const {
  auto matched = matchArguments(strategy->params, arguments, strategy->name.name, SMRange(), evaluator.getDiags(),
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
  return ok ? std::optional(std::move(values)) : std::nullopt;
}

std::optional<std::string> Launcher::print(Evaluator &evaluator, const LauncherFlag &flag, const CTValue &value) const {
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

std::optional<std::vector<std::string>> Launcher::write(Evaluator &evaluator, ArrayRef<NamedValue> arguments,
                                                        ArrayRef<StringRef> saidElsewhere) const {
  std::optional<Values> values = bind(evaluator, arguments);
  if (!values)
    return std::nullopt;
  DiagnosticEngine &diags = evaluator.getDiags();
  auto isGiven = [&](unsigned param) {
    StringRef name = strategy->params[param].name.name;
    return llvm::any_of(llvm::enumerate(arguments), [&](auto entry) {
      const ast::Ident &given = entry.value().name;
      return given ? given.name == name : entry.index() == param;
    });
  };
  std::vector<std::string> words;
  for (const LauncherFlag &flag : flags) {
    if (!flag.param || (flag.test == Test::Always && !isGiven(*flag.param)))
      continue;
    const std::optional<CTValue> &value = (*values)[*flag.param];
    if (!value) {
      diags.report(SMLoc(), diag::MissingArgument) << strategy->name.name << getParam(flag).name.name;
      return std::nullopt;
    }
    if (!holds(evaluator, flag, *value))
      continue;
    words.push_back(flag.text->text.str());
    // What cannot be printed is found missing when the words are read.
    std::optional<std::string> text = flag.scale == Scale::None ? "" : print(evaluator, flag, *value);
    if (!text)
      words.pop_back();
    else if (!text->empty())
      words.push_back(*text);
  }

  SilentEvaluator silent(*program, evaluator.getSizes(), evaluator.getBinding());
  std::optional<std::vector<NamedValue>> read = this->read(silent.get(), words);
  std::optional<Values> back = read ? bind(silent.get(), *read) : std::nullopt;
  bool ok = true;
  for (unsigned i = 0; i != strategy->params.size(); ++i) {
    StringRef name = strategy->params[i].name.name;
    const std::optional<CTValue> &value = (*values)[i];
    if (llvm::is_contained(saidElsewhere, name) || !value)
      continue;
    // Where the words cannot be read at all, a flag that has no number for its parameter is to blame.
    bool isBack = back ? (*back)[i] && isSame(evaluator, *value, *(*back)[i])
                       : llvm::all_of(getFlags(i), [&](const LauncherFlag *flag) {
                           bool isWritten = flag->test == Test::Always ? isGiven(i) : holds(evaluator, *flag, *value);
                           return !isWritten || flag->scale == Scale::None || print(evaluator, *flag, *value);
                         });
    if (isBack || (back && !isGiven(i) && getFlags(i).empty()))
      continue;
    diags.report(SMLoc(), diag::NoFlagSays)
        << getName() << name << (value->isNone() ? "none" : evaluator.format(*value));
    ok = false;
  }
  if (ok && !back)
    (void)this->read(evaluator, words); // says why
  return ok && back ? std::optional(std::move(words)) : std::nullopt;
}
