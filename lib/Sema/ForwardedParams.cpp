//===- ForwardedParams.cpp - parameters that belong to parts --------------===//
//
// Problem: a strategy that was taken apart keeps its parameters, as older programs give them. Who writes a new program
// should see how it is said now.
//
//   strategy megatron(tp = 1, zero = 0; bucket: bytes = none, ring = false) {      behind the semicolon: forwarded
//     gradient_reduction(bucket = bucket);
//     if ring { key_value_ring(cp); }
//
//   megatron(tp = 8, bucket = 25MiB)   ->   megatron(tp = 8) with gradient_reduction(bucket = 25MiB)
//
// Algorithm: the calls that mention a forwarded parameter that is given, in an argument or in the condition of an `if`
// around them, become parts of the new form, with those arguments that are not the part's defaults.
//
//===----------------------------------------------------------------------===//
#include "BindStrategy.h"
#include "stage/Sema/Arguments.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Walk.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

namespace {
class NewForm {
public:
  NewForm(Evaluator &evaluator, const StrategyCall &call, const BoundCall &root)
      : evaluator(evaluator), call(call), root(root) {}

  void remark(const std::deque<BoundCall> &calls);
  /// Of parameters whose part is added by the job as well.
  void warn(const std::deque<BoundCall> &calls);

private:
  const NamedValue *findGiven(StringRef param) const;
  bool mentionsForwarded(const ast::Expr *expr) const;
  /// Whether a condition around a statement of the strategy does.
  bool isChosen(ArrayRef<ast::Stmt *> body, const ast::Stmt *stmt, bool isInside) const;
  /// `gradient_reduction(bucket = 25MiB)`; empty if it would say nothing.
  std::string describePart(const BoundCall &part) const;

  Evaluator &evaluator;
  const StrategyCall &call;
  const BoundCall &root;
};
} // namespace

static std::string getText(SMRange range) {
  StringRef source(range.Start.getPointer(), range.End.getPointer() - range.Start.getPointer());
  llvm::SmallVector<StringRef, 16> words;
  llvm::SplitString(source, words, " \t\r\n");
  return llvm::join(words, " ");
}

const NamedValue *NewForm::findGiven(StringRef param) const {
  for (size_t i = 0; i != call.arguments.size(); ++i)
    if (call.arguments[i].name.name == param && call.isGiven[i])
      return &call.arguments[i];
  return nullptr;
}

bool NewForm::mentionsForwarded(const ast::Expr *expr) const {
  bool found = false;
  walk(expr, [&](const ast::Expr *part) {
    auto *name = dyn_cast<ast::NameExpr>(part);
    for (const ast::Param &param : name ? call.decl->params : ArrayRef<ast::Param>())
      found |= param.isForwarded && param.name.name == name->name && findGiven(name->name);
  });
  return found;
}

bool NewForm::isChosen(ArrayRef<ast::Stmt *> body, const ast::Stmt *stmt, bool isInside) const {
  return llvm::any_of(body, [&](const ast::Stmt *each) {
    auto *choice = dyn_cast<ast::IfStmt>(each);
    if (!choice)
      return each == stmt && isInside;
    bool mentions = isInside || mentionsForwarded(choice->condition);
    return isChosen(choice->thenBody, stmt, mentions) || isChosen(choice->elseBody, stmt, mentions);
  });
}

std::string NewForm::describePart(const BoundCall &part) const {
  auto *written = llvm::cast<ast::CallExpr>(part.expr);
  bool saysSomething = isChosen(call.decl->body, part.stmt, /*isInside=*/false);
  std::string text;
  auto matched =
      matchArguments(part.callee->params, written->args, part.callee->name.name, part.range, evaluator.getDiags());
  for (size_t i = 0; matched && i != part.callee->params.size(); ++i) {
    const ast::Param &param = part.callee->params[i];
    const ast::Argument *argument = (*matched)[i];
    if (!argument)
      continue;
    std::string value = textOf(argument->value);
    if (param.scalarKind.name != axesKind) {
      const CTValue &known = *part.env->find(param.name.name);
      std::optional<CTValue> usual =
          param.defaultValue ? evaluator.evaluateParam(param, nullptr, *part.env, *part.env) : std::nullopt;
      if (usual && evaluator.isSame(*usual, known))
        continue;
      saysSomething |= mentionsForwarded(argument->value);
      auto *name = dyn_cast<ast::NameExpr>(argument->value);
      const NamedValue *given = name ? findGiven(name->name) : nullptr;
      value = given ? getText(given->range) : evaluator.format(known);
    }
    text += (text.empty() ? "" : ", ") + (argument->name ? (param.name.name + " = ").str() : "") + value;
  }
  return saysSomething ? (part.callee->name.name + "(" + text + ")").str() : "";
}

/// The call of the job that adds a part, if it does.
static const BoundCall *findAdded(const std::deque<BoundCall> &calls, const ast::StrategyDecl *callee) {
  auto found = llvm::find_if(
      calls, [&](const BoundCall &call) { return call.addition && !call.caller && call.callee == callee; });
  return found == calls.end() ? nullptr : &*found;
}

void NewForm::remark(const std::deque<BoundCall> &calls) {
  std::vector<std::string> forwarded, kept;
  for (const ast::Param &param : call.decl->params)
    if (const NamedValue *given = findGiven(param.name.name)) {
      if (param.isForwarded)
        forwarded.push_back(("'" + param.name.name + "'").str());
      else
        kept.push_back((param.name.name + " = ").str() + getText(given->range));
    }
  if (forwarded.empty())
    return;
  std::string text = (call.decl->name.name + "(" + llvm::join(kept, ", ") + ")").str();
  for (const BoundCall &part : calls)
    if (part.caller == &root && !part.addition && !findAdded(calls, part.callee))
      if (std::string described = describePart(part); !described.empty())
        text += " with " + described;
  for (const ast::Expr *part : call.parts)
    text += " with " + textOf(part);
  evaluator.getDiags().report(call.range.Start, diag::ForwardedGiven).range(call.range)
      << llvm::join(forwarded, ", ") << text;
}

void NewForm::warn(const std::deque<BoundCall> &calls) {
  for (const BoundCall &part : calls) {
    if (part.caller != &root || part.addition || !findAdded(calls, part.callee))
      continue;
    for (const ast::Argument &argument : llvm::cast<ast::CallExpr>(part.expr)->args) {
      auto *name = dyn_cast<ast::NameExpr>(argument.value);
      const NamedValue *given = name ? findGiven(name->name) : nullptr;
      if (given && mentionsForwarded(argument.value))
        evaluator.getDiags().report(given->range.Start, diag::ForwardedReplaced).range(given->range)
            << name->name << call.decl->name.name << part.callee->name.name;
    }
  }
}

void stage::sema::remarkForwarded(Evaluator &evaluator, const StrategyCall &call, const std::deque<BoundCall> &calls) {
  NewForm form(evaluator, call, calls.front());
  form.warn(calls);
  if (evaluator.getDiags().getShowRemarks())
    form.remark(calls);
}
