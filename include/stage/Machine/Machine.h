//===- Machine.h - what a device and a link take ---------------*- C++ -*-===//
//
// Problem: how long does a task take? Timelines of traces and servers ask, and must be told the same.
//
//   989e12 FLOPs and 1 GB, on flops = 989TFLOP/s, memory = 3.35TB/s     1 s: compute takes longer than memory
//   400 MB all-reduced over 4 ranks, link = 400G                1.5 ms
//
// Rule: compute takes as long as its FLOPs or its bytes, whichever takes longer (Williams et al., Roofline, CACM 2009);
// a message as long as its bytes on one link, and the latency; a collective as long as a ring needs for it (Traffic.h).
// This is the only place that divides an amount by a rate. Times are rounded to the nearest tick.
//
// Limits: all links have one rate, and nobody waits for a link.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_MACHINE_MACHINE_H
#define STAGE_MACHINE_MACHINE_H

#include "stage/Machine/Ticks.h"
#include "stage/Machine/Traffic.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace stage {

/// What a machine does in a second. 0: not given, an error where a task needs it.
struct MachineRates {
  uint64_t flops = 0;  ///< FLOPs of a device.
  uint64_t memory = 0; ///< Bytes that it reads and writes.
  uint64_t link = 0;   ///< Bytes that it sends.
  uint64_t copy = 0;   ///< Bytes between a device and its host.
  uint64_t hostFlops = 0, hostMemory = 0;
  Ticks latency = 0; ///< Of a message, and of each step of a collective.
};

/// Units of time that each task takes, where a machine has no rates.
struct MachineUnits {
  uint32_t compute = 1;
  uint32_t communication = 1;
  uint32_t copy = 1;
};

class Machine {
public:
  static constexpr Ticks ticksPerUnit = 1'000'000;

  Machine(const MachineRates &rates) : rates(rates) {}
  Machine(const MachineUnits &units) : units(units) {}

  bool hasRates() const { return rates.has_value(); }

  /// Nothing where a rate is needed that was not said, whose name is then in `missing`. Compute of 0 FLOPs, or bytes,
  /// needs no rate of them.
  std::optional<Ticks> ofCompute(int64_t flops, int64_t bytes, bool onHost, llvm::StringRef &missing) const;
  /// The same of amounts that need not be whole, of a device.
  std::optional<Ticks> ofCosts(double flops, double bytes, llvm::StringRef &missing) const;
  std::optional<Ticks> ofCopy(int64_t bytes, llvm::StringRef &missing) const;
  std::optional<Ticks> ofMessage(int64_t bytes, llvm::StringRef &missing) const;
  /// `bytes`: the input of a member.
  std::optional<Ticks> ofCollective(CollectiveKind kind, int64_t bytes, int64_t members,
                                    llvm::StringRef &missing) const;
  /// A compute node that somebody measured and that says nothing else.
  Ticks ofMeasured(uint64_t micros) const;

private:
  std::optional<MachineRates> rates;
  MachineUnits units;
};

} // namespace stage

#endif // STAGE_MACHINE_MACHINE_H
