//===- BoundMachine.h - a declared machine, evaluated ----------*- C++ -*-===//
//
// Problem: a machine is declared in a program, may extend another one, and the command line may change its entries.
// What does it come to?
//
//   machine mine extends h100 { level rail { rate = 25GB/s; } }
//   -D machine=mine -D machine.memory.rate=4TB/s
//
//   mine with memory.rate = 4TB/s     flops.bf16 989e12, memory.rate 4e12 at 4/5, node: 8 ranks, rail: 16,384 ranks
//
// All values are in base units, FLOPs and bytes per second, bytes and picoseconds, and have been checked: rates are
// above 0, efficiencies in (0, 1], levels nest (the last group inside of the outermost level may be cut), as do their
// parts that jobs fill, and tables have a value for each combination of their coordinates.
//
// Limits: nothing is priced here. stage/Machine/Machine.h says what tasks take.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SEMA_BOUNDMACHINE_H
#define STAGE_SEMA_BOUNDMACHINE_H

#include "stage/Sema/EntryOverride.h"
#include "stage/Sema/Program.h"
#include "stage/Sema/Value.h"
#include "stage/Symbolic/Grid.h"
#include "stage/Symbolic/Rate.h"
#include <memory>

namespace stage::sema {

class Evaluator;

/// The part of a roof that an op reaches: a number in (0, 1], or a table of the times of shapes over their roofs.
struct BoundRatio {
  std::optional<Rational> share; ///< Where there is no table.
  std::shared_ptr<const Grid> table;
};

/// Values by the name of an element type, or of a collective.
template <typename Value> using ByName = std::vector<std::pair<std::string, Value>>;

/// A level of the network.
struct BoundLevel {
  std::string name;
  int64_t ranks = 1; ///< Of one group of the level.
  int64_t used = 0;  ///< Of these, those that jobs fill; 0: not said.
  Rate rate;         ///< Bytes per second that a rank sends there.
  Rational efficiency = {1, 1};
  Rational oversubscription = {1, 1}; ///< At least 1.
  int64_t base = 0;                   ///< Picoseconds of a collective, whatever it moves.
  int64_t hop = 0;                    ///< Picoseconds of a message, and of a link that a collective passes.
  bool isRing = false;                ///< Each rank has links to two neighbours alone.
  /// Microseconds by ranks and bytes of the whole tensor, by the name of the collective.
  ByName<std::shared_ptr<const Grid>> collectives;
  Rational collectiveEfficiency = {1, 1}; ///< The part of the tables' speed that is reached in a run.
  std::vector<std::string> inSwitch;      ///< Collectives that switches compute.
  Rational inSwitchGain = {1, 1};         ///< How many times faster these are.
};

struct BoundMachine {
  std::string name;
  std::vector<std::string> libraryNames; ///< Of it and what it extends, as far as the library declares these.
  std::vector<std::string> changes;      ///< By the command line: `memory.rate = 4TB/s`.
  SMRange range;                         ///< Where it was asked for.
  ByName<Rate> flops;                    ///< Per second.
  ByName<BoundRatio> contraction, attention;
  ByName<Rational> sustained;
  ByName<Rational> small;                ///< The part of FLOP/s that products of few rows reach.
  ByName<int64_t> smallFloor;            ///< Picoseconds that each of these takes besides.
  ByName<Rational> experts;              ///< The part of FLOP/s that products of experts with few rows reach.
  std::optional<Rational> expertWeights; ///< The same of memory; nothing: these are priced as other products.
  int64_t expertFloor = 0;               ///< Picoseconds that each of these takes besides.
  std::optional<Rational> smallWeights;  ///< Part of the rate of memory; nothing: these are priced as other products.
  /// Parts of the rates of memory and FLOPs that attention to a cache reaches, and picoseconds that it takes besides.
  std::optional<Rational> cacheEfficiency, cacheAttention, latentAttention, latentFloor, promptFloor;
  int64_t cacheFloor = 0;
  Rational attentionBackward = {3, 1}; ///< Times as long as forward.
  Rate memoryRate;
  Rational memoryEfficiency = {4, 5};
  uint64_t memoryCapacity = 0; ///< Bytes; 0: not said, as are the rates and the capacity of a host.
  Rate hostRate, hostFlops, hostMemory;
  uint64_t hostCapacity = 0;                    ///< Bytes for each rank.
  int64_t hostRanks = 0;                        ///< That share a host; 0: not said.
  int64_t kernelLeast = 0;                      ///< Picoseconds.
  std::optional<Rational> powerBusy, powerIdle; ///< Watts.
  std::optional<Rational> price;                ///< Dollars per second.
  std::vector<BoundLevel> levels;               ///< From the inside out.

  /// `h100 with memory.rate = 4TB/s`.
  std::string describe() const;
};

/// Evaluates a machine whose names have been checked. `range`: where it was asked for. `env`: in which `override` is
/// evaluated. Nothing after a report.
std::optional<BoundMachine> bindMachine(Evaluator &evaluator, const Program &program, const ast::MachineDecl &decl,
                                        SMRange range, EntryOverride override, const Environment &env);

/// The names of all entries that a machine can have, `memory.rate`, and `node.rate` for each of its levels.
std::vector<std::string> listMachineEntries(const Program &program, const ast::MachineDecl &decl);

} // namespace stage::sema

#endif // STAGE_SEMA_BOUNDMACHINE_H
