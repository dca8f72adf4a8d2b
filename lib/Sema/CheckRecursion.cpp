//===- CheckRecursion.cpp - declarations that reach themselves ------------===//
//
// Problem: an instance of a module holds instances of those it calls, so that one
// which reaches itself has no end. So it is with strategies, whatever the conditions
// under which they call each other.
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
  RecursionChecker(const DeclUses &uses, DiagnosticEngine &diags) : uses(uses), diags(diags) {}

  void start(const ast::Decl *decl);

private:
  /// A declaration on the path, the mention that led to it, and the mentions in it that are still to be followed.
  struct Step {
    DeclUse use;
    ArrayRef<DeclUse> pending;
  };
  void enter(const DeclUse &use);
  void report(const DeclUse &closing);
  void finish(const ast::Decl *decl);

  const DeclUses &uses;
  DiagnosticEngine &diags;
  llvm::DenseMap<const ast::Decl *, bool> finished;   ///< Absent: not seen; false: on the path.
  llvm::DenseMap<const ast::Decl *, unsigned> depths; ///< Of finished ones: 1 where nothing is used.
  bool foundCycle = false;
  std::vector<Step> path; ///< Kept here, as they may nest thousands deep.
};
} // namespace

void RecursionChecker::enter(const DeclUse &use) {
  finished[use.decl] = false;
  auto found = uses.find(use.decl);
  path.push_back({use, found == uses.end() ? ArrayRef<DeclUse>() : ArrayRef<DeclUse>(found->second)});
}

void RecursionChecker::start(const ast::Decl *decl) {
  if (finished.count(decl))
    return;
  enter({decl, SMRange()});
  while (!path.empty()) {
    Step &step = path.back();
    if (step.pending.empty()) {
      finish(step.use.decl);
      path.pop_back();
      continue;
    }
    const DeclUse &use = step.pending.front();
    step.pending = step.pending.drop_front();
    auto known = finished.find(use.decl);
    if (known == finished.end())
      enter(use);
    else if (!known->second)
      report(use);
  }
}

/// Calls of strategies are bound each within the one that calls it, on the stack.
void RecursionChecker::finish(const ast::Decl *decl) {
  constexpr unsigned maxDepth = 100;
  finished[decl] = true;
  unsigned depth = 1;
  auto found = uses.find(decl);
  if (found != uses.end())
    for (const DeclUse &use : found->second)
      depth = std::max(depth, depths.lookup(use.decl) + 1);
  depths[decl] = depth;
  if (llvm::isa<ast::StrategyDecl>(decl) && depth == maxDepth + 1 && !foundCycle)
    diags.report(decl->name.loc(), diag::StrategiesTooDeep).range(decl->name.range) << decl->name.name << maxDepth;
}

void RecursionChecker::report(const DeclUse &closing) {
  // The path begins with one that nothing led to; its entry has no place.
  auto first = llvm::find_if(path, [&](const Step &step) { return step.use.decl == closing.decl; });
  constexpr long maxShown = 20;
  auto last = path.end() - first > maxShown ? first + maxShown : path.end();
  std::string chain;
  for (auto it = first; it != last; ++it)
    chain += (it->use.decl->name.name + " -> ").str();
  chain += last == path.end() ? closing.decl->name.name : StringRef("...");
  foundCycle = true;
  auto message = llvm::isa<ast::StrategyDecl>(closing.decl) ? diag::RecursiveStrategy : diag::RecursiveModule;
  DiagnosticBuilder error = diags.report(closing.range.Start, message).range(closing.range)
                            << closing.decl->name.name << chain;
  for (auto it = first + 1; it < last; ++it)
    error.note(it->use.range.Start, diag::UsedByHere) << it->use.decl->name.name;
}

void stage::sema::checkRecursion(const DeclUses &uses, DiagnosticEngine &diags) {
  RecursionChecker checker(uses, diags);
  for (const auto &[decl, list] : uses)
    checker.start(decl);
}
