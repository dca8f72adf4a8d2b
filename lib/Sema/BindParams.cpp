//===- BindParams.cpp - values for what a job calls -----------------------===//
#include "BindParams.h"
#include "Meanings.h"
#include "stage/Sema/Arguments.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Walk.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

ParamBinder::ParamBinder(Evaluator &evaluator, const ast::Decl &callee, ArrayRef<ast::Param> params, SMRange callRange)
    : evaluator(evaluator), diags(evaluator.getDiags()), callee(callee), params(params), callRange(callRange),
      slots(params.size()) {
  for (size_t i = 0; i != params.size(); ++i)
    if (params[i].defaultValue) {
      slots[i].expr = params[i].defaultValue;
      slots[i].range = params[i].defaultValue->range;
      slots[i].file = &evaluator.getProgram().getFile(callee);
    }
}

std::optional<size_t> ParamBinder::find(StringRef name) const {
  for (size_t i = 0; i != params.size(); ++i)
    if (params[i].name.name == name)
      return i;
  return std::nullopt;
}

void ParamBinder::give(size_t index, const ast::Expr *expr, const ast::File &file) {
  Slot &slot = slots[index];
  slot.isGiven = true;
  slot.expr = expr;
  slot.file = &file;
  slot.range = expr->range;
}

void ParamBinder::give(size_t index, const JobArgument &argument, const ast::File &file) {
  if (argument.expr)
    return give(index, argument.expr, file);
  Slot &slot = slots[index];
  slot.isGiven = true;
  slot.expr = nullptr;
  slot.value = argument.value;
  slot.range = argument.range;
}

void ParamBinder::give(const Overrides &overrides, StringRef owner) {
  for (size_t i = 0; i != params.size(); ++i)
    if (const ast::Expr *value = overrides.find(owner, params[i].name.name))
      give(i, value, overrides.getEnvironment().getFile());
}

bool ParamBinder::give(ArrayRef<JobArgument> arguments, const ast::File &file) {
  std::vector<NamedValue> places;
  for (const JobArgument &argument : arguments)
    places.push_back({argument.name, CTValue(), argument.range});
  auto matched =
      matchArguments(params, places, callee.name.name, callRange, diags, /*allNeeded=*/false, &evaluator.getProgram());
  if (!matched)
    return false;
  for (size_t i = 0; i != params.size(); ++i)
    if (const NamedValue *place = (*matched)[i])
      give(i, arguments[place - places.data()], file);
  return true;
}

bool ParamBinder::bind(size_t index) {
  Slot &slot = slots[index];
  const ast::Param &param = params[index];
  if (slot.state == Slot::State::Bound || slot.state == Slot::State::Failed)
    return slot.state == Slot::State::Bound;
  if (slot.state == Slot::State::Active) {
    diags.report(slot.range.Start, diag::ValueOfItself).range(slot.range) << param.name.name;
    return false;
  }
  slot.state = Slot::State::Active;
  bool ok = evaluate(index) && finish(index);
  slot.state = ok ? Slot::State::Bound : Slot::State::Failed;
  return ok;
}

bool ParamBinder::evaluate(size_t index) {
  Slot &slot = slots[index];
  const ast::Param &param = params[index];
  std::optional<CTValue> value;
  // Over other parameters, which come first.
  Environment env(slot.expr ? *slot.file : evaluator.getProgram().getFile(callee));
  for (auto [name, number] : others)
    env.define(name, CTValue::integer(number));
  bool ok = true;
  for (const ast::Expr *expr : {slot.expr, static_cast<const ast::Expr *>(param.legal)})
    if (expr)
      walk(expr, [&](const ast::Expr *part) {
        auto *name = dyn_cast<ast::NameExpr>(part);
        std::optional<size_t> other = name ? find(name->name) : std::nullopt;
        if (!other || !ok)
          return;
        ok = bind(*other);
        if (ok)
          env.define(name->name, slots[*other].value);
      });
  if (!ok)
    return false;
  if (slot.expr) {
    ast::Argument argument{param.name, const_cast<ast::Expr *>(slot.expr)};
    value = evaluator.evaluateParam(param, &argument, env, env);
  } else if (slot.isGiven) {
    value = evaluator.convert(slot.value, param, env, slot.range);
  } else {
    // One message for all that are missing, the first of which is reached first.
    llvm::SmallVector<StringRef, 8> missing;
    for (size_t i = 0; i != slots.size(); ++i)
      if (!slots[i].expr && !slots[i].isGiven && !params[i].defaultValue)
        missing.push_back(params[i].name.name);
    if (std::exchange(saysMissing, true))
      return false;
    auto *model = dyn_cast<ast::ModuleDecl>(&callee);
    DiagnosticBuilder error = diags.report(callRange.Start, diag::MissingArgument).range(callRange)
                              << callee.name.name << llvm::join(missing, "', '");
    if (model && model->isModel)
      explainMissingSizes(error, evaluator.getProgram(), *model, getText(callRange), config, missing);
    else
      explainMissing(error, callee.name.name, getText(callRange), param);
  }
  if (value)
    slot.value = std::move(*value);
  return value.has_value();
}

bool ParamBinder::bindAll() {
  bool ok = true;
  for (size_t i = 0; i != slots.size(); ++i)
    ok &= bind(i);
  return ok;
}

std::vector<NamedValue> ParamBinder::take() const {
  std::vector<NamedValue> values;
  for (size_t i = 0; i != slots.size(); ++i)
    values.push_back({params[i].name, slots[i].value, slots[i].range});
  return values;
}

std::vector<bool> ParamBinder::listGiven() const {
  std::vector<bool> given;
  for (const Slot &slot : slots)
    given.push_back(slot.isGiven);
  return given;
}
