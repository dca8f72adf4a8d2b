//===- MachineWords.h - the entries of machines ----------------*- C++ -*-===//
//
// The lists that say which entries there are, what their values are, and where a bound machine keeps them. Checks of
// names, binding, `-D` and documentation read them.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SEMA_MACHINEWORDS_H
#define STAGE_LIB_SEMA_MACHINEWORDS_H

#include "stage/Sema/BoundMachine.h"
#include <variant>

namespace stage::sema {

class Program;

/// What the value of an entry is.
enum class MachineValue {
  Flops, ///< Per second.
  Rate,  ///< Bytes per second.
  Bytes,
  Time,     ///< May be 0.
  Floor,    ///< The same of a kernel: at most a second.
  Share,    ///< A number above 0 and at most 1.
  Factor,   ///< A number above 0 and at most 2.
  Multiple, ///< A number of at least 1, and at most 1000.
  Count,    ///< Of ranks.
  Power,
  Price,
};

template <typename Owner> struct MachineEntry {
  llvm::StringLiteral name;
  MachineValue value;
  std::variant<Rate Owner::*, uint64_t Owner::*, int64_t Owner::*, Rational Owner::*, std::optional<Rational> Owner::*>
      field;
  bool isNeeded = false;
};

constexpr MachineEntry<BoundMachine> machineEntries[] = {
    {"memory.rate", MachineValue::Rate, &BoundMachine::memoryRate, true},
    {"memory.efficiency", MachineValue::Share, &BoundMachine::memoryEfficiency},
    {"memory.capacity", MachineValue::Bytes, &BoundMachine::memoryCapacity},
    {"host.rate", MachineValue::Rate, &BoundMachine::hostRate},
    {"host.flops", MachineValue::Flops, &BoundMachine::hostFlops},
    {"host.memory", MachineValue::Rate, &BoundMachine::hostMemory},
    {"host.capacity", MachineValue::Bytes, &BoundMachine::hostCapacity},
    {"host.ranks", MachineValue::Count, &BoundMachine::hostRanks},
    {"attention.backward", MachineValue::Multiple, &BoundMachine::attentionBackward},
    {"kernel.least", MachineValue::Time, &BoundMachine::kernelLeast},
    {"small.weights", MachineValue::Share, &BoundMachine::smallWeights},
    {"cache.efficiency", MachineValue::Share, &BoundMachine::cacheEfficiency},
    {"cache.attention", MachineValue::Share, &BoundMachine::cacheAttention},
    {"cache.floor", MachineValue::Floor, &BoundMachine::cacheFloor},
    {"latent.attention", MachineValue::Share, &BoundMachine::latentAttention},
    {"latent.floor", MachineValue::Floor, &BoundMachine::latentFloor},
    {"prompt.floor", MachineValue::Floor, &BoundMachine::promptFloor},
    {"experts.weights", MachineValue::Share, &BoundMachine::expertWeights},
    {"experts.floor", MachineValue::Floor, &BoundMachine::expertFloor},
    {"power.busy", MachineValue::Power, &BoundMachine::powerBusy},
    {"power.idle", MachineValue::Power, &BoundMachine::powerIdle},
    {"price", MachineValue::Price, &BoundMachine::price},
};
/// Of a level. How many of its ranks jobs fill is no entry that a level has from the one that it extends.
constexpr llvm::StringLiteral usedEntry = "used";
constexpr MachineEntry<BoundLevel> levelEntries[] = {
    {"ranks", MachineValue::Count, &BoundLevel::ranks, true},
    {usedEntry, MachineValue::Count, &BoundLevel::used},
    {"rate", MachineValue::Rate, &BoundLevel::rate, true},
    {"efficiency", MachineValue::Share, &BoundLevel::efficiency},
    {"oversubscription", MachineValue::Multiple, &BoundLevel::oversubscription},
    {"base", MachineValue::Time, &BoundLevel::base},
    {"hop", MachineValue::Time, &BoundLevel::hop},
    {"collective.efficiency", MachineValue::Share, &BoundLevel::collectiveEfficiency},
    {"in_switch_gain", MachineValue::Multiple, &BoundLevel::inSwitchGain},
};

/// Entries for each element type: `flops.bf16`, of which a machine needs one.
constexpr llvm::StringLiteral flopsPrefix = "flops.", contractionPrefix = "contraction.",
                              attentionPrefix = "attention.", sustainedPrefix = "sustained.",
                              smallPrefix = "small.contraction.", smallFloorPrefix = "small.floor.",
                              expertsPrefix = "experts.contraction.", collectivePrefix = "collective.";
/// Without these the entries beside them have no effect.
constexpr llvm::StringLiteral smallWeightsEntry = "small.weights", cacheEfficiencyEntry = "cache.efficiency",
                              expertWeightsEntry = "experts.weights";
constexpr llvm::StringLiteral machineTypes[] = {"f32", "tf32", "f16", "bf16", "f8", "f4"};
/// `contraction.f8_block` and `sustained.f8_block` are of 8-bit products whose operands have a scale for each block.
constexpr llvm::StringLiteral blockType = "f8_block", blockTypeOf = "f8";
/// Entries of a level that are words.
constexpr llvm::StringLiteral kindEntry = "kind", inSwitchEntry = "in_switch", inSwitchGainEntry = "in_switch_gain",
                              collectiveEfficiencyEntry = "collective.efficiency";
constexpr llvm::StringLiteral levelKinds[] = {"switch", "ring"};
/// Those that have a table, and those that a switch can compute.
constexpr llvm::StringLiteral collectiveNames[] = {"all_gather", "all_reduce", "reduce_scatter", "all_to_all"};
constexpr llvm::StringLiteral inSwitchNames[] = {"all_gather", "all_reduce", "reduce_scatter"};

/// The names of all entries of a machine, without those of its levels, and of a level.
std::vector<std::string> listMachineEntryNames();
std::vector<std::string> listLevelEntryNames();

/// The text of `table("file.csv")`; null for any other expression.
const ast::StringExpr *findTableName(const ast::Expr *value);
/// False after a report of a call of `table` that has something else than a name.
bool checkTableCall(const ast::Expr *value, StringRef name, DiagnosticEngine &diags);
/// Whether an entry is a word, or a list of words, rather than an amount.
bool isWordEntry(StringRef levelEntry);
/// The words of such an entry. Nothing after a report.
std::optional<std::vector<std::string>> readWords(const ast::Expr *value, StringRef levelEntry, StringRef name,
                                                  DiagnosticEngine &diags);

/// What the rows of a table are.
struct TableForm {
  ArrayRef<llvm::StringLiteral> columns; ///< Coordinates, and the value.
  int64_t leastFirst = 0;                ///< Of the first coordinate.
};
/// Of contractions, attention and collectives, by the prefix of the entry.
TableForm getTableForm(StringRef prefix);

/// Reads the table `name`, which lies beside the file `path`, unless the program has read it before. `what`: the entry.
/// Null after a report.
std::shared_ptr<const Grid> readTable(const Program &program, const ast::StringExpr &name, StringRef path,
                                      TableForm form, StringRef what, DiagnosticEngine &diags);

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_MACHINEWORDS_H
