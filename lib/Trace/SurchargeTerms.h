//===- SurchargeTerms.h - what surcharges depend on ------------*- C++ -*-===//
//
// Traces with durations say in their global metadata for which machine and runtime these are, and what
// surcharges (Surcharges.h) depend on:
//
//   machine="h100" runtime="ideal" launch_picos=2500000 step_host_picos=10000000000 tax_collective="3/10"
//   tax_send="0.05"
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRACE_SURCHARGETERMS_H
#define STAGE_LIB_TRACE_SURCHARGETERMS_H

#include "FaultReporter.h"
#include "stage/Machine/Ticks.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace ChakraProtoMsg {
class GlobalMetadata;
} // namespace ChakraProtoMsg

namespace stage::trace {

/// What is paid for each tick of something that runs beside: `3/10`.
struct Tax {
  int64_t numerator = 0, denominator = 1; ///< Below 10^18.
  explicit operator bool() const { return numerator != 0; }
  /// For so many ticks, rounded half up, and at most maxTicks.
  Ticks of(Ticks ticks) const;
};

struct SurchargeTerms {
  std::string machine, runtime; ///< Empty where the metadata say none.
  Ticks launch = 0;             ///< Of a node that the device computes.
  Ticks stepHost = 0;           ///< Of the last one.
  Tax collective, send, copy;   ///< What compute pays for those beside it.
  Tax communication;            ///< What a collective or a send pays for compute beside it.

  /// `machine: h100, runtime: ideal`
  std::string describe() const;
};

/// Reports what is wrong, as faults of the rank.
SurchargeTerms readSurchargeTerms(const ChakraProtoMsg::GlobalMetadata &metadata, uint32_t rank, FaultReporter &faults);

} // namespace stage::trace

#endif // STAGE_LIB_TRACE_SURCHARGETERMS_H
