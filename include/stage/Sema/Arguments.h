//===- Arguments.h - which argument is which parameter's -------*- C++ -*-===//
#ifndef STAGE_SEMA_ARGUMENTS_H
#define STAGE_SEMA_ARGUMENTS_H

#include "stage/Sema/Value.h"

namespace stage::sema {

class Program;

/// What messages may say of the place of a call.
struct CallPlace {
  bool outerLacks = true;                        ///< A call around it may lack the argument that is too many.
  llvm::function_ref<bool(StringRef)> sees = {}; ///< Whether a name is that of a size there.
};

/// For each parameter its argument; null: the default is to be taken. Positional arguments come first. Unknown,
/// repeated, missing and superfluous arguments are reported at the argument or at `callRange`, and give nothing. With a
/// program, words of other tools are explained. `caller`: what is known of the place of the call.
std::optional<llvm::SmallVector<const ast::Argument *, 8>>
matchArguments(ArrayRef<ast::Param> params, ArrayRef<ast::Argument> args, StringRef callee, SMRange callRange,
               DiagnosticEngine &diags, const Program *program = nullptr, const CallPlace &caller = {});
/// The same for evaluated arguments. Unless `allNeeded`, parameters without default may be absent.
std::optional<llvm::SmallVector<const NamedValue *, 8>>
matchArguments(ArrayRef<ast::Param> params, ArrayRef<NamedValue> args, StringRef callee, SMRange callRange,
               DiagnosticEngine &diags, bool allNeeded = true, const Program *program = nullptr);

} // namespace stage::sema

#endif // STAGE_SEMA_ARGUMENTS_H
