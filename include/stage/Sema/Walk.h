//===- Walk.h - visiting the parts of an expression ------------*- C++ -*-===//
#ifndef STAGE_SEMA_WALK_H
#define STAGE_SEMA_WALK_H

#include "stage/AST/AST.h"
#include "llvm/ADT/STLExtras.h"

namespace stage::sema {

/// Calls `visit` for each expression directly inside `expr`, in source order. The expressions of types (of an OpExpr)
/// are not visited.
void forEachChild(const ast::Expr *expr, llvm::function_ref<void(const ast::Expr *)> visit);

/// Calls `visit` for `expr` and everything inside it, outer first.
void walk(const ast::Expr *expr, llvm::function_ref<void(const ast::Expr *)> visit);

} // namespace stage::sema

#endif // STAGE_SEMA_WALK_H
