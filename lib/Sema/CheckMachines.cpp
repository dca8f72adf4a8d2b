//===- CheckMachines.cpp - the names of machines --------------------------===//
//
// Problem: an entry that nobody knows would have no effect, and a machine that is in no job would hide it.
//
//   machine mine { memory.rat = 4TB/s; }      machine has no entry 'memory.rat'; did you mean 'memory.rate'?
//
// Rule: names are checked where a machine is declared, whether a job has it or not. Values are checked where it is
// bound (BindMachine.cpp), because only then is it known what extends what, and what the command line changes.
//
//===----------------------------------------------------------------------===//
#include "Extends.h"
#include "MachineWords.h"
#include "NameChecker.h"
#include "stage/Sema/Builtins.h"

using namespace stage;
using namespace stage::sema;

namespace {
class MachineChecker : public NameChecker {
public:
  using NameChecker::NameChecker;

  void check(const ast::MachineDecl &machine, ExtendsChecker &extends) {
    ScopeGuard scope(*this);
    if (machine.base && expectDecl<ast::MachineDecl>(machine.base, "machine"))
      extends.check(machine);
    std::vector<ast::Ident> names, levels;
    for (const ast::Stmt *stmt : machine.body) {
      if (auto *entry = llvm::dyn_cast<ast::EntryStmt>(stmt)) {
        names.push_back(entry->name);
        checkEntry(*entry);
        continue;
      }
      auto *level = llvm::cast<ast::LevelStmt>(stmt);
      levels.push_back(level->name);
      checkLevel(*level);
    }
    checkEntriesOnce(names);
    checkEntriesOnce(levels);
  }

private:
  bool mayMeanBuiltin() const override { return false; }

  void checkEntry(const ast::EntryStmt &entry) {
    StringRef name = entry.name.name, type = name;
    bool isKnown = type.consume_front(flopsPrefix) && isFloatName(type);
    std::vector<Candidate> known;
    for (const MachineEntry &each : machineEntries)
      known.push_back({each.name, SMLoc()});
    for (const Candidate &each : known)
      isKnown |= each.name == name;
    for (StringRef each : {"flops.bf16", "flops.f16", "flops.f32", "flops.f4", "flops.f8"})
      known.push_back({each, SMLoc()});
    if (!isKnown)
      reportUnknownEntry(entry.name, "machine", known);
    checkExpr(entry.value);
  }

  void checkLevel(const ast::LevelStmt &level) {
    // `-D machine.memory.rate` must mean one entry.
    StringRef name = level.name.name;
    if (name == "memory" || name == "host" || name == "flops")
      diags.report(level.name.loc(), diag::WrongKind).range(level.name.range)
          << "the name of a level, which is not memory, host or flops"
          << "'" + name + "'";
    std::vector<Candidate> known;
    for (const MachineEntry &each : levelEntries)
      known.push_back({each.name, SMLoc()});
    checkEntryNames(level.entries, "level", known);
    for (const ast::EntryStmt *entry : level.entries)
      checkExpr(entry->value);
  }
};
} // namespace

void stage::sema::checkMachine(const Program &program, const ast::File &file, const ast::MachineDecl &machine,
                               ExtendsChecker &extends) {
  MachineChecker(program, file).check(machine, extends);
}
