//===- Sensitivities.h - what would make a step shorter --------*- C++ -*-===//
//
// Problem: is it memory, a link, or what software takes for a launch? Accounts say what ranks do, and not what would
// help: a faster network shortens nothing that compute hides.
//
//   101/100 of machine.flops.bf16            step -26.777 ms, 0.850 % shorter
//   101/100 of machine.rail.rate              -0.441 ms: compute hides most of what runs between nodes
//   9/10 of runtime.tax.collective           -21.777 ms
//
// Rule: 1 % more of each rate that the machine says, and 10 % less of what each message, collective, kernel and launch
// takes besides and of each tax, one at a time. The step is priced and walked again, so that what waits for something
// else does not count. A step is not linear in these: another change has another effect.
//
// Time: that of one more step for each entry that changes the price of some task (StepPrices.h in lib/Time). Of a step
// with many units nothing is tried, because the report would take ten times as long: 64 stages of 1,024 microbatches
// have 131,072 units.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TIME_SENSITIVITIES_H
#define STAGE_TIME_SENSITIVITIES_H

#include "stage/Time/TimeReport.h"

namespace stage {

/// An entry of the machine or the runtime that changes the step.
struct Sensitivity {
  std::string entry; ///< `machine.rail.rate`, as `-D` names it.
  Rational times;    ///< So many times as much of it.
  Ticks step = 0;    ///< With this change alone.
};

struct Sensitivities {
  std::vector<Sensitivity> list; ///< Rates, then others. An entry that is not there changes nothing.
  bool areTooMany = false;       ///< Units: nothing was tried.
};

/// Of a step whose report is known. Nothing after a report to `diags`.
std::optional<Sensitivities> findSensitivities(llvm::ArrayRef<const Program *> parts, const Machine &machine,
                                               const Runtime &runtime, const TimeReport &report,
                                               DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_TIME_SENSITIVITIES_H
