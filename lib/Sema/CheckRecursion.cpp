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

  void start(const ast::ModuleDecl *module) {
    if (finished.count(module))
      return;
    path.push_back({module, SMRange()});
    visit(module);
    path.pop_back();
  }

private:
  void visit(const ast::ModuleDecl *module);
  void report(const ModuleUse &closing);

  const ModuleUses &uses;
  DiagnosticEngine &diags;
  llvm::DenseMap<const ast::ModuleDecl *, bool> finished; ///< Absent: not seen; false: on the path.
  std::vector<ModuleUse> path;                            ///< Each module with the mention that led to it.
};
} // namespace

void RecursionChecker::visit(const ast::ModuleDecl *module) {
  finished[module] = false;
  auto found = uses.find(module);
  if (found != uses.end())
    for (const ModuleUse &use : found->second) {
      auto known = finished.find(use.module);
      if (known == finished.end()) {
        path.push_back(use);
        visit(use.module);
        path.pop_back();
      } else if (!known->second) {
        report(use);
      }
    }
  finished[module] = true;
}

void RecursionChecker::report(const ModuleUse &closing) {
  // The path begins with a module that nothing led to; its entry has no place.
  auto first = llvm::find_if(path, [&](const ModuleUse &use) { return use.module == closing.module; });
  std::string chain;
  for (auto it = first; it != path.end(); ++it)
    chain += (it->module->name.name + " -> ").str();
  chain += closing.module->name.name;
  DiagnosticBuilder error = diags.report(closing.range.Start, diag::RecursiveModule);
  error.range(closing.range) << closing.module->name.name << chain;
  for (auto it = first + 1; it < path.end(); ++it)
    error.note(it->range.Start, diag::UsedByHere) << it->module->name.name;
}

void stage::sema::checkRecursion(const ModuleUses &uses, DiagnosticEngine &diags) {
  RecursionChecker checker(uses, diags);
  for (const auto &[module, list] : uses)
    checker.start(module);
}
