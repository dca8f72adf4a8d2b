//===- EvaluateCalls.cpp - calls at compile time --------------------------===//
#include "EvaluatorSupport.h"
#include "stage/Sema/Arguments.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Evaluator.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

/// Functions may call earlier ones, each level on the C++ stack.
constexpr unsigned maxCallDepth = 64;

/// What can be chosen by name and given arguments: `schedule = interleaved(v = 2)`.
static bool takesArguments(const ast::Decl *decl) {
  return llvm::isa<ast::ScheduleDecl, ast::StrategyDecl, ast::OptimizerDecl, ast::ModuleDecl>(decl);
}

std::optional<CTValue> Evaluator::evaluateCall(const ast::CallExpr *expr, const Environment &env) {
  auto *callee = dyn_cast<ast::NameExpr>(expr->callee);
  if (!callee || expr->hasIndices)
    return report(expr, diag::NotCompileTime, "'" + textOf(expr) + "'");
  const CTValue *local = env.find(callee->name);
  if (local && local->getKind() == CTValue::Kind::Function)
    return evaluateFunction(expr, *local->getFunction(), env);
  const ast::Decl *decl = local ? nullptr : program.lookup(env.getFile(), callee->name);
  if (!local && !decl && findBuiltin(callee->name))
    return evaluateBuiltinCall(expr, callee->name, env);
  if (auto *fn = llvm::dyn_cast_or_null<ast::FnDecl>(decl))
    return evaluateFunction(expr, *fn, env);

  std::optional<CTValue> value = evaluate(expr->callee, env);
  if (!value)
    return std::nullopt;
  if (!value->isDecl() || !takesArguments(value->getDecl())) {
    bool isPlain = value->isDecl() && llvm::isa<ast::ConfigDecl, ast::MachineDecl>(value->getDecl());
    if (!isPlain)
      return report(expr->callee, diag::NotCompileTime, "a call of '" + textOf(expr->callee) + "'");
    bool isConfig = llvm::isa<ast::ConfigDecl>(value->getDecl());
    diags.report(expr->callee->loc(), diag::TakesNoArguments).range(expr->callee->range)
        << textOf(expr->callee)
        << (isConfig
                ? "its model takes them, as in '" + llvm::cast<ast::ConfigDecl>(value->getDecl())->model.name.str() +
                      "(" + textOf(expr->callee) + ", L = 4)'"
                : "write '" + textOf(expr->callee) + "' alone");
    return std::nullopt;
  }
  std::vector<NamedValue> arguments;
  for (const ast::Argument &argument : expr->args) {
    std::optional<CTValue> evaluated = evaluate(argument.value, env);
    if (!evaluated)
      return std::nullopt;
    arguments.push_back({argument.name, std::move(*evaluated), argument.value->range});
  }
  return CTValue::decl(value->getDecl(), std::move(arguments));
}

std::optional<CTValue> Evaluator::evaluateFunction(const ast::CallExpr *expr, const ast::FnStmt &fn,
                                                   const Environment &env) {
  if (expr->args.size() != fn.params.size()) {
    diags.report(expr->loc(), diag::WrongArgumentCount).range(expr->range)
        << fn.name.name << llvm::Twine(fn.params.size()) << expr->args.size();
    return std::nullopt;
  }
  if (calling.size() >= maxCallDepth || llvm::is_contained(calling, &fn))
    return report(expr, diag::RecursiveFunction, fn.name.name);
  // The body sees the scope of the function, not that of the call.
  Environment inner(*env.findScope(fn.name.name));
  for (size_t i = 0; i != fn.params.size(); ++i) {
    std::optional<CTValue> value = evaluate(expr->args[i].value, env);
    if (!value)
      return std::nullopt;
    inner.define(fn.params[i].name, std::move(*value));
  }
  calling.push_back(&fn);
  std::optional<CTValue> result = evaluate(fn.value, inner);
  calling.pop_back();
  return result;
}

/// The body sees the declarations of the file of the function, and its parameters.
std::optional<CTValue> Evaluator::evaluateFunction(const ast::CallExpr *expr, const ast::FnDecl &fn,
                                                   const Environment &env) {
  auto matched = matchArguments(fn.params, expr->args, fn.name.name, expr->range, diags);
  if (!matched)
    return std::nullopt;
  if (calling.size() >= maxCallDepth || llvm::is_contained(calling, &fn))
    return report(expr, diag::RecursiveFunction, fn.name.name);
  if (!work(expr))
    return std::nullopt;
  Environment inner(program.getFile(fn));
  for (size_t i = 0; i != fn.params.size(); ++i) {
    std::optional<CTValue> value = evaluateParam(fn.params[i], (*matched)[i], inner, env);
    if (!value)
      return std::nullopt;
    inner.define(fn.params[i].name.name, std::move(*value));
  }
  calling.push_back(&fn);
  std::optional<CTValue> result = evaluate(fn.value, inner);
  calling.pop_back();
  return result;
}

std::optional<CTValue> Evaluator::evaluateMinMax(const ast::CallExpr *expr, bool isMin, ArrayRef<CTValue> args) {
  if (llvm::any_of(args, [](const CTValue &value) { return value.isQuantity(); })) {
    if (!checkDimensions(expr, isMin ? "min" : "max", args))
      return std::nullopt;
    Size best = args[0].getSize(sizes);
    for (const CTValue &value : args.drop_front())
      best = isMin ? stage::min(best, value.getSize(sizes)) : stage::max(best, value.getSize(sizes));
    return makeQuantity(best, args[0].getDimension(), expr);
  }
  bool allReal = llvm::all_of(args, [](const CTValue &value) { return value.isReal(); });
  bool allExact = llvm::all_of(args, [&](const CTValue &value) { return bool(value.getSize(sizes)); });
  bool allIntegers = llvm::all_of(args, [](const CTValue &value) { return value.getInteger().has_value(); });
  if (allIntegers) {
    int64_t result = *args[0].getInteger();
    for (const CTValue &value : args)
      result = isMin ? std::min(result, *value.getInteger()) : std::max(result, *value.getInteger());
    for (size_t i = 0; i != args.size(); ++i)
      if (*args[i].getInteger() == result)
        obligations.noteChoice(expr->loc(), i);
    return CTValue::integer(result);
  }
  if (allExact && !allReal) {
    Size result = args[0].getSize(sizes);
    for (const CTValue &value : args.drop_front())
      result = isMin ? stage::min(result, value.getSize(sizes)) : stage::max(result, value.getSize(sizes));
    return makeSize(result, expr);
  }
  const CTValue *result = nullptr;
  std::optional<double> best;
  for (size_t i = 0; i != args.size(); ++i) {
    std::optional<double> number = getDouble(args[i], expr->args[std::min(i, expr->args.size() - 1)].value->range);
    if (!number)
      return std::nullopt;
    if (!best || (isMin ? *number < *best : *number > *best)) {
      best = number;
      result = &args[i];
    }
  }
  return CTValue::real(*best, result->getSize(sizes));
}

namespace {
/// `sum(list)`: what the elements make with `+` between them.
struct ListSum {
  ListSum(ArrayRef<CTValue> elements, SizeContext &sizes) : exact(sizes.zero()) {
    for (const CTValue &element : elements) {
      Size size = element.getSize(sizes);
      exact = exact && size ? exact + size : Size();
    }
    isReal = !exact ||
             (!elements.empty() && llvm::all_of(elements, [](const CTValue &element) { return element.isReal(); }));
  }
  Size exact; ///< Null: an element has no exact value.
  bool isReal;
  double total = 0; ///< Of a real one.
};
} // namespace

/// `has(V)`: the job's model has a parameter, or a dim of its own, that is called V.
std::optional<CTValue> Evaluator::evaluateModelQuery(const ast::CallExpr *expr) {
  auto *name = expr->args.size() == 1 ? dyn_cast<ast::NameExpr>(expr->args[0].value) : nullptr;
  if (!name || expr->args[0].name)
    return report(expr, diag::WrongKind, "the name of a parameter or dim of a model", "'" + textOf(expr) + "'");
  if (!model)
    return report(expr, diag::NotCompileTime, "'" + textOf(expr) + "', outside of strategies,");
  auto isMeant = [&](const ast::Ident &known) { return known.name == name->name; };
  bool found = llvm::any_of(model->params, [&](const ast::Param &param) { return isMeant(param.name); });
  for (const ast::Stmt *stmt : model->body)
    if (auto *dim = dyn_cast<ast::DimStmt>(stmt))
      found |= llvm::any_of(dim->names, isMeant);
  return CTValue::boolean(found);
}

/// `balanced(flops)`, `balanced(memory)`.
std::optional<CTValue> Evaluator::evaluateBalanced(const ast::CallExpr *expr) {
  auto *name = expr->args.size() == 1 && !expr->args[0].name ? dyn_cast<ast::NameExpr>(expr->args[0].value) : nullptr;
  StringRef text = llvm::StringSwitch<StringRef>(name ? name->name : "")
                       .Case("flops", "balanced(flops)")
                       .Case("memory", "balanced(memory)")
                       .Default("");
  if (text.empty())
    return report(expr, diag::WrongKind, "'balanced(flops)' or 'balanced(memory)'", "'" + textOf(expr) + "'");
  return CTValue::word(text);
}

std::optional<CTValue> Evaluator::evaluateBuiltinCall(const ast::CallExpr *expr, StringRef name,
                                                      const Environment &env) {
  if (findBuiltin(name) == BuiltinKind::ModelQuery)
    return evaluateModelQuery(expr);
  if (findBuiltin(name) == BuiltinKind::WordFunction)
    return evaluateBalanced(expr);
  if (findBuiltin(name) == BuiltinKind::ListFunction)
    return evaluateListFunction(expr, name, env);
  using Function = double (*)(double);
  auto function = llvm::StringSwitch<Function>(name)
                      .Case("exp", [](double x) { return std::exp(x); })
                      .Case("log", [](double x) { return std::log(x); })
                      .Case("sqrt", [](double x) { return std::sqrt(x); })
                      .Case("rsqrt", [](double x) { return 1 / std::sqrt(x); })
                      .Case("erf", [](double x) { return std::erf(x); })
                      .Case("tanh", [](double x) { return std::tanh(x); })
                      .Case("sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); })
                      .Case("sin", [](double x) { return std::sin(x); })
                      .Case("cos", [](double x) { return std::cos(x); })
                      .Default(nullptr);
  bool isMinMax = name == "min" || name == "max";
  if (expr->args.size() == 1 && (name == "size" || name == "sum" || isMinMax)) {
    std::optional<CTValue> list = evaluate(expr->args[0].value, env);
    if (!list)
      return std::nullopt;
    if (list->isAxes() && name == "size")
      return CTValue::integer(list->getRanks());
    if (list->getKind() == CTValue::Kind::List) {
      ArrayRef<CTValue> elements = list->getElements();
      if (name == "size")
        return CTValue::integer(int64_t(elements.size()));
      auto wrong = llvm::find_if(
          elements, [&](const CTValue &element) { return !element.isNumber() && !(isMinMax && element.isQuantity()); });
      if (wrong != elements.end())
        return report(expr->args[0].value, diag::WrongKind, "a list of numbers", "one with " + wrong->describeKind());
      if (elements.empty() && isMinMax)
        return report(expr->args[0].value, diag::WrongKind, "a list with an element", "an empty one");
      if (isMinMax)
        return evaluateMinMax(expr, name == "min", elements);
      ListSum sum(elements, sizes);
      for (const CTValue &element : elements) {
        std::optional<double> number = sum.isReal ? getDouble(element, expr->args[0].value->range) : 0;
        if (!number)
          return std::nullopt;
        sum.total += *number;
      }
      return sum.isReal ? makeReal(sum.total, sum.exact, expr) : makeSize(sum.exact, expr);
    }
    if (!isMinMax)
      return report(expr->args[0].value, diag::WrongKind, "a list", list->describeKind());
  }
  bool isUnary = function || name == "abs" || name == "floor";
  if (!isMinMax && !isUnary && name != "ceildiv")
    return report(expr, diag::NotCompileTime, "'" + textOf(expr) + "'");

  size_t count = expr->args.size();
  if (isMinMax ? count < 1 : count != (isUnary ? 1 : 2)) {
    diags.report(expr->loc(), diag::WrongArgumentCount).range(expr->range) << name
                                                                           << (isMinMax  ? "at least 1"
                                                                               : isUnary ? "1"
                                                                                         : "2")
                                                                           << int64_t(count);
    return std::nullopt;
  }
  std::vector<CTValue> args;
  for (const ast::Argument &argument : expr->args) {
    std::optional<CTValue> value = evaluate(argument.value, env);
    if (!value)
      return std::nullopt;
    if (!value->isNumber() && !(isMinMax && value->isQuantity()))
      return report(argument.value, diag::WrongKind, "a number", value->describeKind());
    args.push_back(std::move(*value));
  }

  if (isMinMax)
    return evaluateMinMax(expr, name == "min", args);
  Size size = args[0].getSize(sizes);
  if (name == "ceildiv") {
    Size divisor = args[1].getSize(sizes);
    if (!size || !divisor)
      return report(expr, diag::WrongKind, "sizes", "a real number");
    if (divisor.isConstant(0))
      return report(expr, diag::DivisionByZero, textOf(expr));
    return makeSize(size.ceilDiv(divisor), expr);
  }
  if (name == "floor" && size)
    return makeSize(size.floorDiv(sizes.one()), expr);
  if (name == "abs" && size && !args[0].isReal())
    return makeSize(stage::max(size, size * -1), expr);
  std::optional<double> number = getDouble(args[0], expr->args[0].value->range);
  if (!number)
    return std::nullopt;
  return makeReal(function        ? function(*number)
                  : name == "abs" ? std::fabs(*number)
                                  : std::floor(*number),
                  Size(), expr);
}
