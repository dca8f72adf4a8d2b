//===- Plan.h - one way to run a job ---------------------------*- C++ -*-===//
//
// A plan names a job of a program and the values that it gets in place of its own. It is a value: it can be copied,
// kept, changed and compiled again.
//
//   Plan plan("pretrain");
//   plan.set("tp", 8).set("strategy.sp", true).set("B", sema::OverrideValue::expression("4 * 512"));
//
// A name means what `-D name=value` of stagec means (R19.1 of docs/language): a value of the job, its config, its step
// or its strategy. A name that fits nothing, or several, is an error when the plan is compiled.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_COMPILER_PLAN_H
#define STAGE_COMPILER_PLAN_H

#include "stage/Schedule/PackedUnit.h"
#include "stage/Sema/Override.h"
#include <memory>
#include <vector>

namespace stage {

struct Plan {
  Plan() = default;
  /// `job`: its name; empty: the only job of the program.
  explicit Plan(llvm::StringRef job) : job(job.str()) {}

  /// Gives a value another one, also one that an earlier set() gave under the same name.
  Plan &set(llvm::StringRef name, sema::OverrideValue value);

  std::string job;
  std::vector<sema::Override> values;

  /// The units of a job that serves requests (`step = infer(S = requests)`); null: it serves none.
  std::shared_ptr<const ServedUnits> served;
  /// Positions of each sequence of inference when the first decode step begins; 0: as many as the job says.
  int64_t positions = 0;

  // Proofs change a job in ways that the language cannot say.
  bool servesSample = false;   ///< A job that serves requests gets a few of each kind (makeUnitsToProve).
  bool namesConstants = false; ///< Sizes that have a name and a number are symbols (sema::bindJob).
  int64_t constantUnit = 0;    ///< See sema::BoundJob.
  int64_t shortLength = 0;     ///< Positions of sequences of inference (sema::shortenInference); 0: as they are.
  bool allEquallyFast = false; ///< `slow rank` is left out: its coordinates may be gone.
};

} // namespace stage

#endif // STAGE_COMPILER_PLAN_H
