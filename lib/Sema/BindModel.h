//===- BindModel.h - a value for each parameter of the model ---*- C++ -*-===//
//
//   config base for M { D = 512; F = 4 * D; }     config big for M extends base { D = 1Ki; }
//   job j { model = M(big, L = 2); }              model M(L, D, H = 8, F, E = D / H)
//
//   L = symbol L (2), D = symbol D (1024), H = 8, F = 4*D, E = D/8
//
// An integer that the job, its config or a -D chose makes the parameter a symbol, so
// that what others say of it stays symbolic. So does a default that the strategy pads.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SEMA_BINDMODEL_H
#define STAGE_LIB_SEMA_BINDMODEL_H

#include "BindParams.h"
#include "stage/Sema/Job.h"

namespace stage::sema {

/// The values of `call`, a model with arguments, in the order of its parameters. Symbols are bound in `binding`.
/// `namesConstants`: see bindJob. `overrides` may be null. Symbols are called `prefix` and the parameter.
std::optional<std::vector<NamedValue>> bindModel(Evaluator &evaluator, const JobCall &call, SMRange callRange,
                                                 const Overrides *overrides, SizeBinding &binding,
                                                 const BoundStrategy &strategy, bool namesConstants,
                                                 StringRef prefix = "");

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_BINDMODEL_H
