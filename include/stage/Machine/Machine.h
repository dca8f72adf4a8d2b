//===- Machine.h - what a device and a link take ---------------*- C++ -*-===//
//
// Problem: how long does a task take? The compiler, timelines of traces and servers ask.
//
//   989e12 FLOPs and 1 GB, on flops = 989TFLOP/s, memory = 3.35TB/s     1 s: compute takes longer than memory
//   400 MB all-reduced over 4 ranks, link = 400GB/s             1.5 ms
//
// Rules:
//   FLOPs and bytes alone    the *roof*: the longer of both, each at its rate (Williams et al., Roofline, CACM 2009)
//   a known shape            the roof times a ratio, from a table of the machine or one number (PriceWork.cpp)
//   few rows, or a cache     the root of the squares of FLOPs and bytes, plus a floor (PriceSmall.cpp)
//   a message                its bytes at the rate of the innermost level that contains both ranks, plus a hop
//   a collective             the time in a table, or else a ring over all members (PriceCollective.cpp)
//
// The number of ranks decides which ranks share a level. Therefore whoever times a job first asks for the machine as
// the job fills it (usedBy).
//
// Only this library divides an amount by a rate. The C++ compiler enforces this, because a rate is a type of its own
// (Rate.h). Each time is rounded once, to the nearest tick, half up.
//
// Limits: links have no contention, so a message takes as long on a busy link as on an idle one.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_MACHINE_MACHINE_H
#define STAGE_MACHINE_MACHINE_H

#include "stage/Machine/GroupPlace.h"
#include "stage/Machine/Runtime.h"
#include "stage/Machine/Ticks.h"
#include "stage/Machine/Traffic.h"
#include "stage/Machine/Work.h"
#include "stage/Support/Diagnostics.h"
#include "stage/Symbolic/Grid.h"
#include "stage/Symbolic/Rate.h"
#include "stage/Symbolic/Rational.h"
#include "llvm/ADT/StringRef.h"
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stage {

/// A level of the network.
struct MachineLevel {
  std::string name;
  int64_t ranks = 1; ///< Of a block.
  Rate rate;         ///< Bytes per second that a rank sends there, of which `efficiency` is reached.
  Rational efficiency = {1, 1};
  Ticks hop = 0;                      ///< Of a message, and of each link that a collective passes.
  Ticks base = 0;                     ///< Of a collective, whatever it moves.
  Rational oversubscription = {1, 1}; ///< By how much more ports can send than the level carries.
  bool isRing = false;                ///< Each block has links to two neighbours alone.
  /// What a collective was measured to take: microseconds by ranks and bytes of the whole tensor.
  struct Measured {
    CollectiveKind kind;
    std::shared_ptr<const Grid> table;
  };
  std::vector<Measured> collectives;
  Rational collectiveEfficiency = {1, 1}; ///< The part of the tables' speed that is reached in a run.
  Rate exchangeRate;                      ///< Of an all_to_all of the software's own; 0: as of other collectives.
  std::vector<CollectiveKind> inSwitch;   ///< What switches compute.
  Rational inSwitchGain = {1, 1};         ///< How many times faster that is.
  int64_t used = 0;                       ///< Ranks of a block that jobs fill; 0: not said (Machine::usedBy).
};

/// How far an op stays behind its roof.
struct OpRatio {
  std::optional<Rational> share; ///< The part of the roof that is reached, where there is no table.
  std::shared_ptr<const Grid> table;
  bool isSaid() const { return share || table; }
};

/// What ops on operands of one type reach.
struct TypeRates {
  Rate flops;
  OpRatio contraction; ///< Table: time over roof by m, n, k.
  OpRatio attention;   ///< Table: time over roof by head size, sequence, heads.
  std::optional<Rational> sustained;
  OpRatio blockContraction; ///< Of operands with a scale for each block, where a machine tells them apart.
  std::optional<Rational> blockSustained;
  std::optional<Rational> small;   ///< The part of `flops` that products of few rows reach.
  std::optional<Ticks> smallFloor; ///< What each of these takes besides FLOPs and bytes.
  std::optional<Rational> experts; ///< The part of `flops` that products of experts with few rows reach.

  const OpRatio &getContraction(const Work &work) const {
    return work.isBlockScaled && blockContraction.isSaid() ? blockContraction : contraction;
  }
  Rational getSustained(const Work &work) const {
    const std::optional<Rational> &part = work.isBlockScaled && blockContraction.isSaid() ? blockSustained : sustained;
    return part.value_or(Rational{1, 1});
  }
};

/// What products of training reach of the roof on devices that were measured: B200 0.46, H100 0.61, A100 0.76.
constexpr Rational leastContraction{9, 20}, mostContraction{3, 4};
/// The part of the roof of attention where a machine says nothing.
constexpr Rational defaultAttention{7, 20};

/// Types of operands: those of floating point by their DType, and tf32.
constexpr size_t numOperandTypes = 6, tf32Index = 5;
/// `flops.bf16`.
llvm::StringRef getFlopsEntry(size_t type);

/// What a machine does in a second. 0: not given, an error where a task needs it.
struct MachineRates {
  Rate flops;  ///< FLOPs of a device.
  Rate memory; ///< Bytes that it reads and writes, of which `memoryEfficiency` is reached.
  Rate link;   ///< Bytes that it sends, where there are no levels.
  Rate copy;   ///< Bytes between a device and its host.
  Rate hostFlops, hostMemory;
  Rational memoryEfficiency = {1, 1};
  Ticks latency = 0; ///< Of a message, and of each step of a collective, where there are no levels.

  std::string name;                 ///< Of a machine that a program declares; empty: there are rates alone.
  std::string type;                 ///< The element type whose FLOPs `flops` is.
  std::vector<std::string> changes; ///< What the command line puts in place of entries, as it is written there.
  std::vector<MachineLevel> levels; ///< From the inside out.

  std::array<TypeRates, numOperandTypes> types;
  Rational attentionBackward = {3, 1};          ///< Times as long as forward.
  Ticks kernelLeast = 0;                        ///< No element-wise kernel is shorter.
  std::optional<Rational> expertWeights;        ///< Of `memory`, in those of experts; nothing: as other products.
  Ticks expertFloor = 0;                        ///< What each of these takes besides FLOPs and bytes.
  std::optional<Rational> smallWeights;         ///< Of `memory`, in products of few rows; nothing: as other products.
  std::optional<Rational> cacheEfficiency;      ///< Of `memory`, in attention to a cache; nothing: as other attention.
  std::optional<Rational> cacheAttention;       ///< Of `flops`, in attention to a cache.
  std::optional<Rational> latentAttention;      ///< The same to a cache of latent vectors.
  Ticks cacheFloor = 0;                         ///< What attention to a cache takes besides FLOPs and bytes.
  std::optional<Ticks> promptFloor;             ///< The same of prompts that are computed beside others.
  std::optional<Ticks> latentFloor;             ///< The same to a cache of latent vectors.
  uint64_t hostCapacity = 0;                    ///< Bytes of host memory for each rank; 0: not said.
  int64_t hostRanks = 0;                        ///< That share a host; 0: not said.
  std::optional<Rational> powerBusy, powerIdle; ///< Watts.
  std::optional<Rational> price;                ///< Dollars per second.
};

/// So many times as long, rounded half up.
Ticks multiply(Ticks time, const Rational &times);

/// Bytes or FLOPs per second, for who writes them down for another program (lib/AstraSim); no other library may ask.
uint64_t getPerSecond(Rate rate);

/// A number of a declared machine that decides what tasks take: a rate, or what they take besides (MachineEntries.cpp).
struct MachineEntry {
  enum class Kind : uint8_t {
    Flops,
    Memory,
    Copy,
    HostFlops,
    HostMemory,
    LevelRate,
    LevelBase,
    LevelHop,
    KernelLeast,
    SmallFloor,
    CacheFloor,
    LatentFloor,
    PromptFloor,
    ExpertFloor
  };
  Kind kind;
  size_t index = 0; ///< Of the type, or of the level.

  bool isRate() const { return kind <= Kind::LevelRate; }
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
  /// A program declares it: it has a name, and prices what tasks do rather than FLOPs and bytes alone.
  bool isDeclared() const { return rates && !rates->name.empty(); }
  /// What efficiency leaves of the rate of memory.
  Rate getMemory() const { return memory; }
  /// From the inside out, with the rates that their efficiencies leave.
  llvm::ArrayRef<MachineLevel> getLevels() const { return levels; }
  /// `h100 (bf16), with memory.rate = 4TB/s`; empty for rates and units without a name.
  std::string describe() const;
  /// What it was made from, for what is not a time; null for units.
  const MachineRates *getRates() const { return rates ? &*rates : nullptr; }
  /// For messages, of the name of a rate that is missing: `--link`, or `'host.rate' of machine 'h100'`. Of the FLOP/s
  /// of a type it also says which types there are.
  std::string describeMissing(llvm::StringRef missing) const;

  /// How many ranks the levels hold.
  int64_t getMostRanks() const { return levels.empty() ? 1 : levels.back().ranks; }
  /// False after a report at `loc`: a machine with a name has no room for so many ranks, or they do not divide into
  /// blocks of the size that it says.
  bool checkNumRanks(int64_t numRanks, SMLoc loc, DiagnosticEngine &diags) const;
  /// The machine as a job of so many ranks fills it, which checkNumRanks has accepted: of each level blocks have as
  /// many ranks as the machine says, or the largest divisor of the job's ranks for which there is room, in whole blocks
  /// of the level inside of it. 128 ranks fill blocks of 64 of 72. A machine that has been filled stays as it is: by
  /// ranks of two pools, of which each has a report of its own.
  Machine usedBy(int64_t numRanks) const;
  /// Ranks of a block of each level on which groups can lie in several ways, from the inside out; without the outermost
  /// one, which contains all.
  llvm::ArrayRef<int64_t> getBlockSizes() const { return blockSizes; }
  /// Of ranks in any order.
  GroupPlace findPlace(llvm::ArrayRef<int64_t> ranks) const;

  /// Nothing where a rate is needed that was not said, whose name is then in `missing`. Compute of 0 FLOPs, or bytes,
  /// needs no rate of them.
  std::optional<Ticks> ofCompute(int64_t flops, int64_t bytes, bool onHost, llvm::StringRef &missing) const;
  /// The same for a machine with a name by what the work is: products and attention by their shapes (PriceWork.cpp,
  /// PriceSmall.cpp). A machine that has no name knows FLOPs and bytes alone.
  std::optional<Ticks> ofWork(const Work &work, llvm::StringRef &missing) const;
  /// Of this what kernels beside the one of the work take.
  Ticks ofBeside(const Work &work) const;
  /// Whether a table has shapes on all sides of this one. False where there is no table; element-wise work needs none.
  bool isInsideTables(const Work &work) const;
  /// Whether it is a product of whose type nothing is said but FLOPs.
  bool isAssumed(const Work &work) const;
  /// This machine, where an all_to_all is the software's own, if the runtime says so.
  Machine withExchange(const Runtime &runtime) const;
  /// This machine, where products of whose types it says nothing reach so much of their roof.
  Machine withContraction(const Rational &share) const;
  /// What it says, as far as a change of it changes times: rates first.
  std::vector<MachineEntry> listEntries() const;
  /// As a program says it: `flops.bf16`, `rail.hop`.
  std::string getName(const MachineEntry &entry) const;
  /// This machine with so many times as much of an entry. What was measured on a level is as much faster as its links.
  Machine with(const MachineEntry &entry, const Rational &times) const;

  /// The same as ofCompute, of amounts that need not be whole, of a device.
  std::optional<Ticks> ofCosts(double flops, double bytes, llvm::StringRef &missing) const;
  std::optional<Ticks> ofCopy(int64_t bytes, llvm::StringRef &missing) const;
  /// `place`: of sender and receiver.
  std::optional<Ticks> ofMessage(int64_t bytes, const GroupPlace &place, llvm::StringRef &missing) const;
  /// `bytes`: the input of a member.
  std::optional<Ticks> ofCollective(CollectiveKind kind, int64_t bytes, const GroupPlace &place,
                                    llvm::StringRef &missing) const;
  /// A compute node that somebody measured and that says nothing else.
  Ticks ofMeasured(uint64_t micros) const;

  /// Whether a table has groups and sizes on all sides of this one. False where there is no table.
  bool isInsideTables(CollectiveKind kind, int64_t bytes, const GroupPlace &place) const;

private:
  void findReached();
  struct Group;
  Ticks priceGroup(CollectiveKind kind, int64_t bytes, const Group &group) const;
  double priceLatency(CollectiveKind kind, const Group &group) const;
  const Grid *findTable(CollectiveKind kind, const Group &group) const;
  const TypeRates &getType(const Work &work) const;
  std::optional<Ticks> ofKernel(const Work &work, llvm::StringRef &missing) const;
  double priceContraction(const Work &work, const TypeRates &type, double times = 1) const;
  /// Whether it says what products of few rows reach on operands of this type.
  bool hasSmallRates(const Work &work) const;
  /// Products of experts among which tokens are routed, of which the machine says what they reach.
  bool hasExpertRates(const Work &work, const TypeRates &type) const;
  double priceExperts(const Work &work, const TypeRates &type) const;
  std::optional<double> priceSmallContraction(const Work &work, const TypeRates &type) const;
  /// Attention of a server's iteration, of which the machine says what it reaches.
  bool isOfServer(const Work &work) const;
  std::optional<double> priceCachedAttention(const Work &work, const TypeRates &type) const;
  Ticks getSmallFloor(const Work &work, const TypeRates &type) const;
  double priceAttention(const Work &work, const TypeRates &type) const;

  std::optional<MachineRates> rates;
  Rate memory;                      ///< The part that is reached.
  std::vector<MachineLevel> levels; ///< Those of the rates, with the parts of rates that are reached, or the one link
                                    ///< of rates without levels.
  std::vector<int64_t> blockSizes;
  bool isFilled = false;         ///< Made by usedBy.
  std::optional<DType> onlyHalf; ///< Of f16 and bf16 the one whose FLOPs were said and stand for those of the other.
  MachineUnits units;
};

} // namespace stage

#endif // STAGE_MACHINE_MACHINE_H
