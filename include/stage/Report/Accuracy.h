//===- Accuracy.h - how far a time may be off -------------------*- C++ -*-===//
//
// Problem: a time without its error is taken for exact, and one that no measurement is near for as good as any other.
//
//   step         1,406.501 ms, +-9.4 % (19 measured rows of pytorch on h100, dense; h200 extends h100)
//   not covered  the peak takes 96.20 % of memory: within 5 % of capacity allocation stalls are likely; ...
//
// Rules:
//   A1  The error is the p90 of the nearest measured set (MeasuredSets.h). With an error of p the measured time is
//       between step / (1 + p) and step / (1 - p), in nine of ten cases.
//   A2  Steps of inference and steps on the ideal runtime have no set, because nothing like them was measured.
//       A machine that was not measured and says nothing of products has a range instead (StepReport.h).
//   A3  Reasons for which rows do not cover a step:
//         host-bound        waits for launches take 5 % of the step or more
//         short-step        the step is shorter than 100 ms: all that hosts do between kernels counts
//         memory-full       less than 5 % of memory are left: allocators stall
//         exchange-overlap  tokens are exchanged beside other work for 5 % of the step or more, and the host launches
//                           each kernel
//         local-experts     a rank has more than 16 experts, and waits for the host where tokens are routed
//         more-ranks        the step has more ranks than all rows of the set
//         other-type        its products multiply in another type than those of the set
//         other-ops         some op contracts, and is neither a product of two operands nor attention: no row has one
//
// Limits: errors of two plans on one machine are correlated, so that their order is surer than their bands say.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_REPORT_ACCURACY_H
#define STAGE_REPORT_ACCURACY_H

#include "stage/Report/MeasuredSets.h"
#include "stage/Time/TimeReport.h"

namespace stage {

struct Report;

/// Where the machine and the runtime of a step come from.
struct StepOrigin {
  std::string machine, runtime;                ///< Names; `runtime` is empty where it is the ideal one.
  std::vector<std::string> machines, runtimes; ///< What they are and extend, of the library, the nearest first.
  std::vector<std::string> changes;            ///< Of entries that times depend on: `machine.rail.rate = 25GB/s`.
  bool launches = false;                       ///< Kernels one by one, which takes time.
};

/// Why measured rows do not cover a step.
struct DomainReason {
  llvm::StringRef code;
  std::string text; ///< With its numbers, and what to do.
};

struct Accuracy {
  MeasuredKind step;
  std::optional<MeasuredSet> set;               ///< The nearest one.
  std::string unknown;                          ///< Why there is none.
  std::vector<std::string> differences;         ///< Of the step from the machine and the runtime of the set.
  std::vector<DomainReason> reasons;            ///< In the order of A3.
  std::optional<std::pair<Ticks, Ticks>> range; ///< Of the measured time, by the error of the set.
};

/// Of a report with memory and the time of a step.
Accuracy findAccuracy(const Report &report, const StepOrigin &origin, const MeasuredSets *sets);

/// `10.7`: the error of a set, in percent.
std::string formatError(const MeasuredSet &set);
/// `+-10.7 % (28 measured rows of megatron_2 on a100, dense)`. There is a set.
std::string describeError(const Accuracy &accuracy);

} // namespace stage

#endif // STAGE_REPORT_ACCURACY_H
