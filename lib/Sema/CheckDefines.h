//===- CheckDefines.h - values of the command line that are none -*- C++ -*-===//
//
// Names of the program are checked before it is bound. Those of `-D name=value` are not, because only the job says
// what `name` is:
//
//   -D machine=A100           no declaration: did you mean 'a100'?
//   -D tp=four                'tp' is a number, as in 'tp = 1'
//   -D tp=1..8                one number is expected, and a range found
//   -D pipeline_schedule=zb   no schedule: did you mean 'zb_h1'?
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SEMA_CHECKDEFINES_H
#define STAGE_LIB_SEMA_CHECKDEFINES_H

#include "Overrides.h"

namespace stage::sema {

/// Whether a value of the command line that is a word means something, where a declaration of this kind is wanted;
/// reported if not.
bool checkDefinedWord(const Program &program, const ast::Expr &value, StringRef kind, DiagnosticEngine &diags);

/// Whether the values that the command line gives to parameters of `owner` may be values of theirs; reported if not.
bool checkDefines(const Program &program, const Overrides &overrides, StringRef owner, ArrayRef<ast::Param> params,
                  DiagnosticEngine &diags);

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_CHECKDEFINES_H
