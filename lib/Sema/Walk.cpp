//===- Walk.cpp - visiting the parts of an expression ---------------------===//
#include "stage/Sema/Walk.h"

using namespace stage;
using namespace stage::ast;

using Visit = llvm::function_ref<void(const Expr *)>;

/// Visits the expressions in a field of an expression. Types of operands hold none that belong to it.
template <typename T> static void visitField(const T &field, Visit visit) {
  if constexpr (std::is_same_v<T, Expr *>) {
    if (field)
      visit(field);
  } else if constexpr (requires { field.fields(); }) {
    std::apply([&](const auto &...fields) { (visitField(fields, visit), ...); }, field.fields());
  } else if constexpr (requires { field.vec(); }) {
    for (const auto &item : field)
      visitField(item, visit);
  }
}

void stage::sema::forEachChild(const Expr *expr, Visit visit) {
  visitNode(*expr, [&](const auto &node) { visitField(node, visit); });
}

void stage::sema::walk(const Expr *expr, llvm::function_ref<void(const Expr *)> visit) {
  visit(expr);
  forEachChild(expr, [&](const Expr *child) { walk(child, visit); });
}
