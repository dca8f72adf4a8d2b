//===- EntryOverride.h - a value in place of an entry ----------*- C++ -*-===//
#ifndef STAGE_SEMA_ENTRYOVERRIDE_H
#define STAGE_SEMA_ENTRYOVERRIDE_H

#include "stage/AST/AST.h"
#include "llvm/ADT/STLExtras.h"

namespace stage::sema {

/// Another value for an entry of a machine or a runtime, `memory.rate` or `tax.collective`; null: its own.
using EntryOverride = llvm::function_ref<const ast::Expr *(llvm::StringRef entry)>;

} // namespace stage::sema

#endif // STAGE_SEMA_ENTRYOVERRIDE_H
