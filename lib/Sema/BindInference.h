//===- BindInference.h - the values of `infer(...)` ------------*- C++ -*-===//
#ifndef STAGE_LIB_SEMA_BINDINFERENCE_H
#define STAGE_LIB_SEMA_BINDINFERENCE_H

#include "BindParams.h"
#include "stage/Sema/Evaluator.h"
#include "stage/Sema/Job.h"

namespace stage::sema {

/// A value of the step and where it is evaluated; null if it is not given.
using StepValue = std::pair<const ast::Expr *, const Environment *>;

/// Binds what a step of inference says beside the dims of its model: `steps` is the range of its `for`, null if it has
/// none, and `find` gives values by name. `length`: S, if it is given; `lengths`: or those of all sequences. False
/// after errors.
bool bindInference(Evaluator &evaluator, const ast::CallExpr &step, StepValue steps, std::optional<int64_t> length,
                   std::vector<int64_t> lengths, llvm::function_ref<StepValue(StringRef)> find, BoundJob &job);

/// Binds `sample`: a module whose first parameter, the only one that is a tensor, is what the model puts out. False
/// after errors.
bool bindSampler(Evaluator &evaluator, const JobCall &call, SMRange range, BoundInference &inference);

/// Then makes the units of sequences of different lengths, in batches of `microbatch`, if it is given. False after
/// errors.
bool bindLengths(Evaluator &evaluator, const ast::CallExpr &step, std::optional<int64_t> microbatch, int64_t stages,
                 BoundJob &job);

/// What S is: positions of a unit of prefill. Where there is none, a number that all axes divide: the block is there
/// then, for its parameters, and no unit runs it.
int64_t getUnitLength(const BoundInference &inference, int64_t numRanks);

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_BINDINFERENCE_H
