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
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;
using namespace stage::sema;

namespace {
class MachineChecker : public NameChecker {
public:
  using NameChecker::NameChecker;

  void check(const ast::MachineDecl &machine, ExtendsChecker &extends) {
    ScopeGuard scope(*this);
    bool hasBase = machine.base && expectDecl<ast::MachineDecl>(machine.base, "machine") && extends.check(machine);
    // Levels of the base lie inside of those that are new here.
    std::vector<Candidate> inner;
    if (const ast::MachineDecl *base = hasBase ? getBase(program, machine) : nullptr)
      for (const ast::MachineDecl *link : getChain(program, *base))
        for (const ast::Stmt *stmt : link->body)
          if (auto *level = llvm::dyn_cast<ast::LevelStmt>(stmt))
            inner.push_back({level->name.name, level->name.loc()});
    std::vector<ast::Ident> names, levels;
    for (const ast::Stmt *stmt : machine.body) {
      if (auto *entry = llvm::dyn_cast<ast::EntryStmt>(stmt)) {
        names.push_back(entry->name);
        checkEntry(*entry, "machine", listMachineEntryNames());
        continue;
      }
      auto *level = llvm::cast<ast::LevelStmt>(stmt);
      levels.push_back(level->name);
      checkLevel(*level, inner);
      inner.push_back({level->name.name, level->name.loc()});
    }
    checkEntriesOnce(names);
    checkEntriesOnce(levels);
  }

private:
  bool mayMeanBuiltin() const override { return false; }

  void checkEntry(const ast::EntryStmt &entry, StringRef owner, const std::vector<std::string> &names) {
    StringRef name = entry.name.name;
    if (!llvm::is_contained(names, name)) {
      std::vector<Candidate> known;
      for (const std::string &each : names)
        known.push_back({each, SMLoc()});
      reportUnknownEntry(entry.name, owner, known);
    }
    if (isWordEntry(name) && owner == "level")
      readWords(entry.value, name, name, diags);
    else if (checkTableCall(entry.value, name, diags) && !findTableName(entry.value)) // read where the machine is bound
      checkExpr(entry.value);
  }

  void checkLevel(const ast::LevelStmt &level, ArrayRef<Candidate> inner) {
    // `-D machine.memory.rate` must mean one entry.
    std::vector<StringRef> taken;
    std::vector<std::string> entries = listMachineEntryNames();
    for (StringRef entry : entries)
      if (StringRef owner = entry.split('.').first; !llvm::is_contained(taken, owner))
        taken.push_back(owner);
    if (llvm::is_contained(taken, level.name.name))
      diags.report(level.name.loc(), diag::WrongKind).range(level.name.range)
          << "the name of a level, which is none of " + llvm::join(taken, ", ") << "'" + level.name.name + "'";
    if (level.base && llvm::none_of(inner, [&](const Candidate &each) { return each.name == level.base.name; })) {
      DiagnosticBuilder error = diags.report(level.base.loc(), diag::NoInnerLevel).range(level.base.range)
                                << level.name.name << level.base.name;
      suggestNearest(error, level.base.name, level.base.range, inner);
    }
    std::vector<ast::Ident> names;
    for (const ast::EntryStmt *entry : level.entries) {
      names.push_back(entry->name);
      checkEntry(*entry, "level", listLevelEntryNames());
    }
    checkEntriesOnce(names);
  }
};
} // namespace

void stage::sema::checkMachine(const Program &program, const ast::File &file, const ast::MachineDecl &machine,
                               ExtendsChecker &extends) {
  MachineChecker(program, file).check(machine, extends);
}
