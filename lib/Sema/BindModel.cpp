//===- BindModel.cpp - a value for each parameter of the model ------------===//
#include "BindModel.h"
#include "stage/Sema/Diagnostics.h"
#include "Extends.h"
#include "JobWords.h"
#include "Walk.h"
#include <map>

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

namespace {
class ModelBinder {
public:
  ModelBinder(Evaluator &evaluator, const ast::ModuleDecl &model, SMRange callRange, const Overrides &overrides,
              SizeBinding &binding, bool namesConstants)
      : evaluator(evaluator), diags(evaluator.getDiags()), model(model), callRange(callRange), overrides(overrides),
        binding(binding), namesConstants(namesConstants), slots(model.params.size()) {}

  bool readArguments(ArrayRef<NamedValue> args);
  std::optional<std::vector<NamedValue>> bind();

private:
  /// What is known of a parameter.
  struct Slot {
    enum class State { Waiting, Active, Bound, Failed } state = State::Waiting;
    const NamedValue *argument = nullptr;    ///< Of the call.
    const ast::EntryStmt *entry = nullptr;   ///< Of the nearest config.
    const ast::ConfigDecl *config = nullptr; ///< Which one.
    CTValue value;
    SMRange range;
  };

  bool readConfig(const ast::ConfigDecl &config, SMRange range);
  std::optional<size_t> findParam(StringRef name) const;
  bool bindSlot(size_t index);
  bool bindExpr(size_t index, const ast::Expr *expr, const ast::File &file);
  bool finish(size_t index, const CTValue &value, bool isDefault);
  CTValue nameElements(StringRef name, const CTValue &list);

  Evaluator &evaluator;
  DiagnosticEngine &diags;
  const ast::ModuleDecl &model;
  SMRange callRange;
  const Overrides &overrides;
  SizeBinding &binding;
  const bool namesConstants;
  std::vector<Slot> slots;
  const ast::ConfigDecl *config = nullptr;
};
} // namespace

std::optional<size_t> ModelBinder::findParam(StringRef name) const {
  for (size_t i = 0; i != model.params.size(); ++i)
    if (model.params[i].name.name == name)
      return i;
  return std::nullopt;
}

bool ModelBinder::readArguments(ArrayRef<NamedValue> args) {
  bool ok = true;
  for (const NamedValue &argument : args) {
    if (!argument.name) {
      auto *given = argument.value.isDecl() ? dyn_cast<ast::ConfigDecl>(argument.value.getDecl()) : nullptr;
      if (!given || config) {
        diags.report(argument.range.Start, diag::ConfigExpected).range(argument.range) << model.name.name;
        ok = false;
        continue;
      }
      config = given;
      ok &= readConfig(*given, argument.range);
      continue;
    }
    std::optional<size_t> index = findParam(argument.name.name);
    if (!index) {
      std::vector<Candidate> candidates;
      for (const ast::Param &param : model.params)
        candidates.push_back({param.name.name, param.name.loc()});
      DiagnosticBuilder error = diags.report(argument.name.loc(), diag::UnknownArgument);
      error.range(argument.name.range) << model.name.name << argument.name.name;
      suggestNearest(error, argument.name.name, argument.name.range, candidates);
      ok = false;
    } else if (slots[*index].argument) {
      diags.report(argument.name.loc(), diag::ArgumentTwice).range(argument.name.range) << argument.name.name;
      ok = false;
    } else {
      slots[*index].argument = &argument;
    }
  }
  return ok;
}

bool ModelBinder::readConfig(const ast::ConfigDecl &given, SMRange range) {
  const Program &program = evaluator.getProgram();
  for (const ast::ConfigDecl *link : getChain(program, given)) {
    if (program.lookup(program.getFile(*link), link->model.name) != &model) {
      diags.report(range.Start, diag::ConfigOfOtherModel)
              .range(range)
              .
              operator<<(link->name.name)
              .
              operator<<(link->model.name)
              .
              operator<<(model.name.name)
              .note(link->model.loc(), diag::PreviousHere)
          << link->name.name;
      return false;
    }
    for (const ast::EntryStmt *entry : link->entries) {
      Slot &slot = slots[*findParam(entry->name.name)];
      slot.entry = entry;
      slot.config = link;
    }
  }
  return true;
}

bool ModelBinder::bindSlot(size_t index) {
  Slot &slot = slots[index];
  if (slot.state == Slot::State::Bound || slot.state == Slot::State::Failed)
    return slot.state == Slot::State::Bound;
  const ast::Param &param = model.params[index];
  if (slot.state == Slot::State::Active) {
    diags.report(slot.range.Start, diag::ValueOfItself).range(slot.range) << param.name.name;
    return false;
  }
  slot.state = Slot::State::Active;
  const Program &program = evaluator.getProgram();
  bool ok = true;
  if (const ast::Expr *value = overrides.find(configWord, param.name.name)) {
    ok = bindExpr(index, value, overrides.getEnvironment().getFile());
  } else if (slot.argument) {
    slot.range = slot.argument->range;
    ok = finish(index, slot.argument->value, false);
  } else if (slot.entry) {
    ok = bindExpr(index, slot.entry->value, program.getFile(*slot.config));
  } else if (param.defaultValue) {
    ok = bindExpr(index, param.defaultValue, program.getFile(model));
  } else {
    diags.report(callRange.Start, diag::MissingArgument)
            .range(callRange)
            .
            operator<<(model.name.name)
            .
            operator<<(param.name.name)
            .note(param.name.loc(), diag::PreviousHere)
        << param.name.name;
    ok = false;
  }
  slot.state = ok ? Slot::State::Bound : Slot::State::Failed;
  return ok;
}

/// Evaluates an expression over other parameters, which come first.
bool ModelBinder::bindExpr(size_t index, const ast::Expr *expr, const ast::File &file) {
  Slot &slot = slots[index];
  slot.range = expr->range;
  Environment env(file);
  bool ok = true;
  walk(expr, [&](const ast::Expr *part) {
    auto *name = dyn_cast<ast::NameExpr>(part);
    std::optional<size_t> other = name ? findParam(name->name) : std::nullopt;
    if (!other || !ok)
      return;
    ok = bindSlot(*other);
    if (ok)
      env.define(name->name, slots[*other].value);
  });
  if (!ok)
    return false;
  const ast::Param &param = model.params[index];
  ast::Argument argument{param.name, const_cast<ast::Expr *>(expr)};
  std::optional<CTValue> value = evaluator.evaluateParam(param, &argument, env, env);
  return value && finish(index, *value, expr == param.defaultValue);
}

/// Sizes of a list become symbols `widths.0`, `widths.2`: equal ones are one, as the program may rely on it.
CTValue ModelBinder::nameElements(StringRef name, const CTValue &list) {
  std::vector<CTValue> elements(list.getElements());
  std::map<int64_t, CTValue> known;
  for (size_t i = 0; i != elements.size(); ++i) {
    std::optional<int64_t> number = elements[i].getInteger();
    if (!number || *number < 2)
      continue;
    auto [it, isNew] = known.try_emplace(*number);
    if (isNew) {
      std::string symbol = (name + "." + llvm::Twine(i)).str();
      binding.bind(symbol, *number);
      it->second = CTValue::size(evaluator.getSizes().symbol(symbol));
    }
    elements[i] = it->second;
  }
  return CTValue::list(std::move(elements));
}

/// Checks the value and, if it is an integer that the job chose, makes it a symbol.
bool ModelBinder::finish(size_t index, const CTValue &given, bool isDefault) {
  Slot &slot = slots[index];
  const ast::Param &param = model.params[index];
  std::string what = ("'" + param.name.name + "'").str();
  std::optional<CTValue> value = evaluator.convert(given, param.scalarKind, slot.range, what);
  if (!value)
    return false;
  slot.value = *value;
  if (namesConstants && value->getKind() == CTValue::Kind::List)
    slot.value = nameElements(param.name.name, *value);
  std::optional<int64_t> constant = value->getInteger();
  // Defaults of 0 and 1 switch something on or off.
  if (!value->isSize() || (constant && isDefault && !(namesConstants && *constant > 1)))
    return true;
  std::optional<int64_t> number =
      constant ? constant : evaluator.getValue(value->getSize(evaluator.getSizes()), slot.range, what);
  if (!number)
    return false;
  if (*number < 1 && param.scalarKind.name == "int")
    return true;
  if (*number < 1) {
    diags.report(slot.range.Start, diag::ValueNotPositive)
            .range(slot.range)
            .
            operator<<(what)
            .
            operator<<(*number)
            .note(param.name.loc(), diag::PreviousHere)
        << param.name.name;
    return false;
  }
  if (constant) {
    binding.bind(param.name.name, *constant);
    slot.value = CTValue::size(evaluator.getSizes().symbol(param.name.name));
  }
  return true;
}

std::optional<std::vector<NamedValue>> ModelBinder::bind() {
  bool ok = true;
  for (size_t i = 0; i != slots.size(); ++i)
    ok &= bindSlot(i);
  if (!ok)
    return std::nullopt;
  std::vector<NamedValue> values;
  for (size_t i = 0; i != slots.size(); ++i)
    values.push_back({model.params[i].name, slots[i].value, slots[i].range});
  return values;
}

std::optional<std::vector<NamedValue>> stage::sema::bindModel(Evaluator &evaluator, const CTValue &call,
                                                              SMRange callRange, const Overrides &overrides,
                                                              SizeBinding &binding, bool namesConstants) {
  ModelBinder binder(evaluator, *llvm::cast<ast::ModuleDecl>(call.getDecl()), callRange, overrides, binding,
                     namesConstants);
  if (!binder.readArguments(call.getArguments()))
    return std::nullopt;
  return binder.bind();
}
