//===- UnmatchedNames.cpp - names in rules that mean nothing --------------===//
//
// Problem: a strategy for several models lists names that not all of them have, so that a name without a meaning is no
// error as long as another one of its statement has one. A name that is wrong looks the same: all compiles, and a rank
// computes and keeps more than it should.
//
//   shard (KV, G) over tp, FF, V over tp;     no tensor of the model has a dim FF: its MLP is replicated over tp
//   shard H over tp, F over tp;               H is a size of the model, its tensors have KV and G instead
//   at layers[*].{x, hh}: shard S over tp;    the model has no hh
//
// Algorithm: whoever means that a model may lack a name says so, `FF?`, `{x, hh?}`, or asks for the dim first,
// `if has(FF) { ... }`. Every other name must match something: a dim some tensor, a name in braces, with the rest of
// its pattern, some value, op or module. The nearest name is suggested; for a size that is the product of two dims
// which stand side by side in a tensor, these.
//
// Rules over axes of size 1 do nothing and are not looked at. Where a statement matches nothing at all, that is an
// error elsewhere.
//
// Limits: that a name matches does not say that its rule changes something. The first 20 names of a strategy are named.
//
//===----------------------------------------------------------------------===//
#include "UnmatchedNames.h"
#include "RuleCalls.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IR/text/Text.h"
#include "stage/Transforms/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace stage;

namespace {
class UnmatchedNames {
public:
  UnmatchedNames(const Graph &graph, RuleTargets &targets, DiagnosticEngine &diags)
      : graph(graph), targets(targets), diags(diags) {}

  void run() {
    for (const Rule &rule : graph.rules)
      if (rule.kind == RuleKind::Shard && !rule.pattern)
        checkDims(rule);
      else if (rule.pattern && isSaidOf(rule))
        checkPattern(rule);
  }

private:
  bool isTrivial(const Rule &rule) const {
    return !rule.axes.empty() && graph.mesh.getGroupSize(toSet(rule.axes)) == 1;
  }

  /// What is not trained keeps nothing for backward, and has no gradients.
  bool isSaidOf(const Rule &rule) const {
    return !isTrivial(rule) && (graph.training || (!rule.isOfKept() && !rule.pattern->namesGradient()));
  }

  bool hasDim(llvm::StringRef name) const { return !targets.findDim(name).empty(); }

  void checkDims(const Rule &rule) {
    if (isTrivial(rule) || numNamed >= maxNamed)
      return;
    for (const std::string &name : rule.dims)
      if (!llvm::is_contained(rule.lackable, name) && !hasDim(name) &&
          (rule.isTrimmed || hasOtherDim(rule.statement)) && numNamed++ < maxNamed)
        noteCalls(diags.report(rule.loc, diag::DimUnmatched)
                      << name << graph.name << "(" + llvm::join(listAxisNames(graph.mesh, rule.axes), ", ") + ")"
                      << targets.suggestDim(name),
                  rule);
  }

  /// Whether the statement is about a dim that is there: if not, that is an error.
  bool hasOtherDim(unsigned statement) const {
    return llvm::any_of(graph.rules, [&](const Rule &rule) {
      return rule.statement == statement && !rule.pattern &&
             llvm::any_of(rule.dims, [&](const std::string &name) { return hasDim(name); });
    });
  }

  void checkPattern(const Rule &rule) {
    const PathPattern &pattern = *rule.pattern;
    PathPattern::SeenNames seen;
    if (!pattern.namesAlternatives() || !checked.insert({rule.statement, pattern.getText()}).second ||
        numNamed >= maxNamed || !note(rule, seen))
      return;
    for (auto &[name, alone] : pattern.listUnseen(seen))
      if (numNamed++ < maxNamed)
        noteCalls(diags.report(rule.loc, diag::AlternativeUnmatched)
                      << name << pattern.getText() << graph.name << targets.suggestPath(alone),
                  rule);
  }

  /// The names in braces by which a rule means something; false if it means nothing.
  bool note(const Rule &rule, PathPattern::SeenNames &seen) {
    const PathPattern &pattern = *rule.pattern;
    if (pattern.matchesOps())
      return targets.forEachOp(pattern, [&](Op &op) {
        auto [scope, name] = RuleTargets::getNames(op);
        pattern.noteOp(scope, name, seen);
      });
    bool any = targets.forEachValue(pattern, [&](Value &value, Op *) { pattern.note(value, seen); });
    if (pattern.namesGradient())
      any |= targets.forEachGradient(pattern, [&](Value &value) { pattern.note(value, seen); });
    if (!rule.isOfKept() || !pattern.isPath())
      return any;
    llvm::StringRef last;
    return any | targets.forEachOpInside(pattern, [&](Op &, llvm::StringRef module) {
      if (module != last)
        pattern.notePath(module, seen);
      last = module;
    });
  }

  const Graph &graph;
  RuleTargets &targets;
  DiagnosticEngine &diags;
  std::set<std::pair<unsigned, std::string>> checked;
  /// Each message looks for the nearest name, and the first ones tell what is wrong with a list that a program has
  /// written.
  static constexpr unsigned maxNamed = 20;
  unsigned numNamed = 0;
};
} // namespace

void stage::warnUnmatchedNames(const Graph &graph, RuleTargets &targets, DiagnosticEngine &diags) {
  UnmatchedNames(graph, targets, diags).run();
}
