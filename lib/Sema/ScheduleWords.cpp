//===- ScheduleWords.cpp - the words of schedule programs -----------------===//
#include "ScheduleWords.h"
#include "llvm/ADT/STLExtras.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;
using llvm::StringRef;

/// A plain integer.
static std::optional<int64_t> readNumber(const ast::Expr *expr) {
  auto *number = dyn_cast<ast::NumberExpr>(expr);
  if (!number || number->isReal || !number->value.isInteger() || number->value.num > INT64_MAX)
    return std::nullopt;
  return static_cast<int64_t>(number->value.num);
}

std::optional<ListedUnit> stage::sema::readListedUnit(const ast::Expr *expr) {
  ListedUnit unit;
  auto readKind = [&](char letter) {
    auto kind = llvm::find_if(unitKinds, [&](PhaseKind kind) { return getLetter(kind) == letter; });
    unit.kind = kind == std::end(unitKinds) ? PhaseKind::Forward : *kind;
    return kind != std::end(unitKinds);
  };
  if (auto *name = dyn_cast<ast::NameExpr>(expr)) {
    if (!readKind(name->name.front()) || name->name.drop_front().getAsInteger(10, unit.microbatch))
      return std::nullopt;
    return unit;
  }
  auto *call = dyn_cast<ast::CallExpr>(expr);
  auto *callee = call ? dyn_cast<ast::NameExpr>(call->callee) : nullptr;
  if (!callee || callee->name.size() != 1 || !readKind(callee->name.front()) || call->args.size() != 2)
    return std::nullopt;
  std::optional<int64_t> microbatch = readNumber(call->args[0].value), chunk = readNumber(call->args[1].value);
  if (!microbatch || !chunk)
    return std::nullopt;
  return ListedUnit{unit.kind, *microbatch, *chunk};
}

std::optional<llvm::SmallVector<const ast::Expr *, 2>> stage::sema::readOverlap(const ast::Expr *expr) {
  auto *call = dyn_cast<ast::CallExpr>(expr);
  auto *callee = call ? dyn_cast<ast::NameExpr>(call->callee) : nullptr;
  if (!callee || callee->name != overlapWord)
    return std::nullopt;
  llvm::SmallVector<const ast::Expr *, 2> units;
  for (const ast::Argument &argument : call->args)
    units.push_back(argument.value);
  return units;
}
