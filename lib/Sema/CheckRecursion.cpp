//===- CheckRecursion.cpp - modules that contain themselves ---------------===//
//
// Problem: an instance of a module holds instances of those it calls, so that one
// which reaches itself has no end.
//
//   module A(x: [D]) -> [D] { return B(x); }
//   module B(x: [D]) -> [D] { return A(x); }      // A -> B -> A
//
// Algorithm: depth-first search over mentions; a mention of a module on the current
// path closes a cycle, which is reported once, where it closes.
//
//===----------------------------------------------------------------------===//
#include "NameChecker.h"
#include "stage/Sema/Diagnostics.h"

using namespace stage;
using namespace stage::sema;

namespace {
class RecursionChecker {
public:
  RecursionChecker(const ModuleUses &uses, DiagnosticEngine &diags) : uses(uses), diags(diags) {}

  void start(const ast::ModuleDecl *module);

private:
  /// A module on the path, the mention that led to it, and the mentions in it that are still to be followed.
  struct Step {
    ModuleUse use;
    ArrayRef<ModuleUse> pending;
  };
  void enter(const ModuleUse &use);
  void report(const ModuleUse &closing);

  const ModuleUses &uses;
  DiagnosticEngine &diags;
  llvm::DenseMap<const ast::ModuleDecl *, bool> finished; ///< Absent: not seen; false: on the path.
  std::vector<Step> path;                                 ///< Kept here, as modules may nest thousands deep.
};
} // namespace

void RecursionChecker::enter(const ModuleUse &use) {
  finished[use.module] = false;
  auto found = uses.find(use.module);
  path.push_back({use, found == uses.end() ? ArrayRef<ModuleUse>() : ArrayRef<ModuleUse>(found->second)});
}

void RecursionChecker::start(const ast::ModuleDecl *module) {
  if (finished.count(module))
    return;
  enter({module, SMRange()});
  while (!path.empty()) {
    Step &step = path.back();
    if (step.pending.empty()) {
      finished[step.use.module] = true;
      path.pop_back();
      continue;
    }
    const ModuleUse &use = step.pending.front();
    step.pending = step.pending.drop_front();
    auto known = finished.find(use.module);
    if (known == finished.end())
      enter(use);
    else if (!known->second)
      report(use);
  }
}

void RecursionChecker::report(const ModuleUse &closing) {
  // The path begins with a module that nothing led to; its entry has no place.
  auto first = llvm::find_if(path, [&](const Step &step) { return step.use.module == closing.module; });
  constexpr long maxShown = 20;
  auto last = path.end() - first > maxShown ? first + maxShown : path.end();
  std::string chain;
  for (auto it = first; it != last; ++it)
    chain += (it->use.module->name.name + " -> ").str();
  chain += last == path.end() ? closing.module->name.name : StringRef("...");
  DiagnosticBuilder error = diags.report(closing.range.Start, diag::RecursiveModule).range(closing.range)
                            << closing.module->name.name << chain;
  for (auto it = first + 1; it < last; ++it)
    error.note(it->use.range.Start, diag::UsedByHere) << it->use.module->name.name;
}

void stage::sema::checkRecursion(const ModuleUses &uses, DiagnosticEngine &diags) {
  RecursionChecker checker(uses, diags);
  for (const auto &[module, list] : uses)
    checker.start(module);
}
