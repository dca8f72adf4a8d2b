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
// above 0, efficiencies in (0, 1], and each level holds a whole number of groups of the level inside of it.
//
// Limits: nothing is priced here. stage/Machine/Machine.h says what tasks take.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SEMA_BOUNDMACHINE_H
#define STAGE_SEMA_BOUNDMACHINE_H

#include "stage/Sema/EntryOverride.h"
#include "stage/Sema/Program.h"
#include "stage/Sema/Value.h"

namespace stage::sema {

class Evaluator;

/// A level of the network.
struct BoundLevel {
  std::string name;
  int64_t ranks = 1; ///< Of one group of the level.
  uint64_t rate = 0; ///< Bytes per second that a rank sends there.
  Rational efficiency = {1, 1};
  int64_t latency = 0; ///< Picoseconds of a step.
};

struct BoundMachine {
  std::string name;
  std::vector<std::string> changes;                    ///< By the command line: `memory.rate = 4TB/s`.
  SMRange range;                                       ///< Where it was asked for.
  std::vector<std::pair<std::string, uint64_t>> flops; ///< Per second, by the name of the element type.
  uint64_t memoryRate = 0;
  Rational memoryEfficiency = {1, 1};
  uint64_t memoryCapacity = 0; ///< Bytes; 0: not said, as are the rates of a host.
  uint64_t hostRate = 0, hostFlops = 0, hostMemory = 0;
  std::vector<BoundLevel> levels; ///< From the inside out.

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
