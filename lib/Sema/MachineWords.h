//===- MachineWords.h - the entries of machines ----------------*- C++ -*-===//
#ifndef STAGE_LIB_SEMA_MACHINEWORDS_H
#define STAGE_LIB_SEMA_MACHINEWORDS_H

#include "llvm/ADT/StringRef.h"

namespace stage::sema {

/// What the value of an entry is.
enum class MachineValue {
  Flops, ///< Per second.
  Rate,  ///< Bytes per second.
  Bytes,
  Time,  ///< May be 0.
  Share, ///< A number above 0 and at most 1.
  Count, ///< Of ranks.
};

struct MachineEntry {
  llvm::StringLiteral name;
  MachineValue value;
  bool isNeeded = false;
};

/// `flops.bf16`, and so on, for each element type of floating point; one at least.
constexpr llvm::StringLiteral flopsPrefix = "flops.";
constexpr MachineEntry machineEntries[] = {
    {"memory.rate", MachineValue::Rate, true}, {"memory.efficiency", MachineValue::Share},
    {"memory.capacity", MachineValue::Bytes},  {"host.rate", MachineValue::Rate},
    {"host.flops", MachineValue::Flops},       {"host.memory", MachineValue::Rate},
};
/// Of a level.
constexpr MachineEntry levelEntries[] = {
    {"ranks", MachineValue::Count, true},
    {"rate", MachineValue::Rate, true},
    {"efficiency", MachineValue::Share},
    {"latency", MachineValue::Time},
};

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_MACHINEWORDS_H
