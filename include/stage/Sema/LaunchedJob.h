//===- LaunchedJob.h - a job as arguments of a framework -------*- C++ -*-===//
//
//   strategy = megatron(pp = 2, dp = 8, tp = 4);            WORLD_SIZE=64
//   step     = train(B = 64, S = 8Ki, ...);           <->   --pipeline-model-parallel-size 2
//   model    = Llama(llama3_8b);                            --tensor-model-parallel-size 4 --global-batch-size 64 ...
//
// A launcher says parameters of its strategy and values of the job (Launchers.h). Here a bound job becomes these
// values, and these values become a program.
//
// The axis of the mesh for which a launcher has no flag follows from `job.gpus`: dp = 64 / (2 * 4).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SEMA_LAUNCHEDJOB_H
#define STAGE_SEMA_LAUNCHEDJOB_H

#include "stage/Sema/Job.h"
#include "stage/Sema/Launchers.h"

namespace stage::sema {

/// The axis of the first mesh of the launcher's strategy, or of a strategy that it calls, that `job.gpus` decides, as a
/// parameter; nothing: none, or the launcher says no `job.gpus`.
std::optional<unsigned> findFollowingAxis(const Program &program, const Launcher &launcher);

/// The words that say a job, and what they leave out.
struct LaunchedJob {
  std::vector<std::string> words;
  struct Unsaid {
    std::string name, value;
    std::string read; ///< What the words say instead; empty: nothing.
    SMRange range;    ///< Where the job says it.
  };
  std::vector<Unsaid> unsaid;
};
/// The strategy of the job must be that of the launcher. Nothing after a report.
std::optional<LaunchedJob> writeLaunchedJob(const Launcher &launcher, Evaluator &evaluator, const BoundJob &job);

/// Adds the axis that follows from `job.gpus`, if one does and no value says it.
enum class Following {
  Good,
  NoRanks,     ///< `job.gpus` has no value.
  DoNotDivide, ///< The product of the other axes does not divide it.
};
/// `product`: of the other axes that have more than one rank, `8 = tp 4 x pp 2`.
Following addFollowingAxis(const Program &program, const Launcher &launcher, std::vector<NamedValue> &values,
                           std::string &product);

/// The program of a job with these values, which say a model and a batch: `tp = 4`, `train.B = 64`, `job.config =
/// llama3_8b`. A job without a precision has `bf16_mixed`, and a training step without an optimizer `adamw`.
std::string writeProgram(const Launcher &launcher, Evaluator &evaluator, ArrayRef<NamedValue> values);

} // namespace stage::sema

#endif // STAGE_SEMA_LAUNCHEDJOB_H
