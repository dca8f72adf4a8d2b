//===- Walk.cpp - visiting the parts of an expression ---------------------===//
#include "stage/Sema/Walk.h"

using namespace stage;
using namespace stage::ast;
using llvm::dyn_cast;

void stage::sema::forEachChild(const Expr *expr, llvm::function_ref<void(const Expr *)> visit) {
  auto visitAll = [&](ArrayRef<Expr *> exprs) {
    for (const Expr *child : exprs)
      visit(child);
  };
  if (auto *member = dyn_cast<MemberExpr>(expr)) {
    visit(member->base);
  } else if (auto *unary = dyn_cast<UnaryExpr>(expr)) {
    visit(unary->operand);
  } else if (auto *binary = dyn_cast<BinaryExpr>(expr)) {
    visit(binary->left);
    visit(binary->right);
  } else if (auto *call = dyn_cast<CallExpr>(expr)) {
    visit(call->callee);
    visitAll(call->indices);
    for (const Argument &argument : call->args)
      visit(argument.value);
  } else if (auto *index = dyn_cast<IndexExpr>(expr)) {
    visit(index->base);
    visitAll(index->subscripts);
  } else if (auto *range = dyn_cast<RangeExpr>(expr)) {
    visit(range->begin);
    visit(range->end);
  } else if (auto *choice = dyn_cast<IfExpr>(expr)) {
    visit(choice->condition);
    visit(choice->thenExpr);
    visit(choice->elseExpr);
  } else if (auto *tuple = dyn_cast<TupleExpr>(expr)) {
    visitAll(tuple->elements);
  } else if (auto *list = dyn_cast<ListExpr>(expr)) {
    visitAll(list->elements);
  } else if (auto *list = dyn_cast<ListForExpr>(expr)) {
    visit(list->source);
    visit(list->element);
  } else if (auto *sized = dyn_cast<SizedIndexExpr>(expr)) {
    visit(sized->index);
    visit(sized->size);
  } else if (auto *op = dyn_cast<OpExpr>(expr)) {
    for (const OpExpr::Operand &operand : op->operands)
      visit(operand.value);
    if (op->formula)
      visit(op->formula);
  } else if (auto *loop = dyn_cast<ForArgExpr>(expr)) {
    visit(loop->range_);
  }
}

void stage::sema::walk(const Expr *expr, llvm::function_ref<void(const Expr *)> visit) {
  visit(expr);
  forEachChild(expr, [&](const Expr *child) { walk(child, visit); });
}
