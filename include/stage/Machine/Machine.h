//===- Machine.h - what a device and a link take ---------------*- C++ -*-===//
//
// Problem: how long does a task take? Timelines of traces and servers ask, and must be told the same.
//
//   989e12 FLOPs and 1 GB, on flops = 989TFLOP/s, memory = 3.35TB/s     1 s: compute takes longer than memory
//   400 MB all-reduced over 4 ranks, link = 400GB/s             1.5 ms
//
// Rule: compute takes as long as its FLOPs or its bytes, whichever takes longer (Williams et al., Roofline, CACM 2009).
// A message takes its bytes at the rate of the innermost level that contains both ranks, and the latency of it.
//
// A collective is a ring over all members, one block of a level after the other (Traffic.h, GroupPlace.h). On each
// level, up to the one that contains the group, as many rings run beside each other as the block with the fewest
// members has ports; the slowest level decides. Each link of the ring adds the latency of its level. In an all_to_all
// each member sends by its own port what leaves its block, so that ports are not shared.
//
//   all_gather of 100 MB over 4 nodes with 8 ranks each, nodes at 450GB/s, between nodes 50GB/s:
//   3.1 GB / 450GB/s = 6.9 ms inside, 3.1 GB / (8 * 50GB/s) = 7.75 ms between       7.75 ms, 28 + 3 latencies
//
// This is the only place that divides an amount by a rate. Times are rounded to the nearest tick.
//
// Limits: nobody waits for a link that others use. All FLOPs count at one rate.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_MACHINE_MACHINE_H
#define STAGE_MACHINE_MACHINE_H

#include "stage/Machine/GroupPlace.h"
#include "stage/Machine/Ticks.h"
#include "stage/Machine/Traffic.h"
#include "stage/Support/Diagnostics.h"
#include "stage/Symbolic/Rational.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace stage {

/// A level of the network.
struct MachineLevel {
  std::string name;
  int64_t ranks = 1; ///< Of a block.
  uint64_t rate = 0; ///< Bytes per second that a rank sends there, of which `efficiency` is reached.
  Rational efficiency = {1, 1};
  Ticks latency = 0; ///< Of a message, and of each link of a ring.
};

/// What a machine does in a second. 0: not given, an error where a task needs it.
struct MachineRates {
  uint64_t flops = 0;  ///< FLOPs of a device.
  uint64_t memory = 0; ///< Bytes that it reads and writes, of which `memoryEfficiency` is reached.
  uint64_t link = 0;   ///< Bytes that it sends, where there are no levels.
  uint64_t copy = 0;   ///< Bytes between a device and its host.
  uint64_t hostFlops = 0, hostMemory = 0;
  Rational memoryEfficiency = {1, 1};
  Ticks latency = 0; ///< Of a message, and of each step of a collective, where there are no levels.

  std::string name;                 ///< Of a machine that a program declares; empty: there are rates alone.
  std::string type;                 ///< The element type whose FLOPs it says.
  std::vector<std::string> changes; ///< What the command line puts in place of entries, as it is written there.
  std::vector<MachineLevel> levels; ///< From the inside out, each a multiple of the one before.
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

  Machine(MachineRates rates);
  Machine(const MachineUnits &units) : units(units) {}

  bool hasRates() const { return rates.has_value(); }
  /// Nothing: it has units of time. The rate of memory is what its efficiency leaves of it.
  const std::optional<MachineRates> &getRates() const { return rates; }
  /// From the inside out, with the rates that their efficiencies leave.
  llvm::ArrayRef<MachineLevel> getLevels() const { return levels; }
  /// `h100 (bf16), with memory.rate = 4TB/s`; empty for rates and units without a name.
  std::string describe() const;
  /// For messages, of the name of a rate that is missing: `--link`, or `'host.rate' of machine 'h100'`.
  std::string describeMissing(llvm::StringRef missing) const;

  /// How many ranks the levels hold.
  int64_t getMostRanks() const { return levels.empty() ? 1 : levels.back().ranks; }
  /// False after a report at `loc`: a machine with a name has no room for so many ranks.
  bool checkNumRanks(int64_t numRanks, SMLoc loc, DiagnosticEngine &diags) const;
  /// Ranks of a block of each level on which groups can lie in several ways, from the inside out; without the outermost
  /// one, which contains all.
  llvm::ArrayRef<int64_t> getBlockSizes() const { return blockSizes; }
  /// Of ranks in any order.
  GroupPlace findPlace(llvm::ArrayRef<int64_t> ranks) const;

  /// Nothing where a rate is needed that was not said, whose name is then in `missing`. Compute of 0 FLOPs, or bytes,
  /// needs no rate of them.
  std::optional<Ticks> ofCompute(int64_t flops, int64_t bytes, bool onHost, llvm::StringRef &missing) const;
  /// The same of amounts that need not be whole, of a device.
  std::optional<Ticks> ofCosts(double flops, double bytes, llvm::StringRef &missing) const;
  std::optional<Ticks> ofCopy(int64_t bytes, llvm::StringRef &missing) const;
  /// `place`: of sender and receiver.
  std::optional<Ticks> ofMessage(int64_t bytes, const GroupPlace &place, llvm::StringRef &missing) const;
  /// `bytes`: the input of a member.
  std::optional<Ticks> ofCollective(CollectiveKind kind, int64_t bytes, const GroupPlace &place,
                                    llvm::StringRef &missing) const;
  /// A compute node that somebody measured and that says nothing else.
  Ticks ofMeasured(uint64_t micros) const;

private:
  std::optional<MachineRates> rates;
  std::vector<MachineLevel> levels; ///< Those of the rates, or the one link of rates without levels.
  std::vector<int64_t> blockSizes;
  MachineUnits units;
};

} // namespace stage

#endif // STAGE_MACHINE_MACHINE_H
