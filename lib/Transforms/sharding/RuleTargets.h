//===- RuleTargets.h - what the rules of a strategy are about --*- C++ -*-===//
//
// Problem: rules name values, ops and gradients by patterns of paths, and dims by any of their names. Both models and
// strategies may have thousands of these.
//
// Algorithm: all values, ops and gradients are listed once, in program order, with an index of the names in their paths
// (stage/IR/PathIndex.h), and of each dim where it stands. A rule costs what it is about.
//
// What nothing matches is compared with everything, to say what may have been meant: only for a message.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRANSFORMS_RULETARGETS_H
#define STAGE_LIB_TRANSFORMS_RULETARGETS_H

#include "stage/IR/graph/Graph.h"
#include "stage/IR/graph/PathIndex.h"
#include "stage/IR/graph/Rule.h"
#include "llvm/ADT/DenseSet.h"

namespace stage {

class RuleTargets {
public:
  /// A value of forward and the op whose result it is, null for an argument.
  struct Target {
    Value *value;
    Op *op;
  };
  /// Where a dim stands.
  struct Place {
    unsigned target; ///< Its number.
    unsigned position;
    bool operator<(const Place &other) const {
      return std::pair(target, position) < std::pair(other.target, other.position);
    }
  };

  explicit RuleTargets(Graph &graph);

  /// The values of forward.
  llvm::ArrayRef<Target> getValues() const { return values; }
  /// Where the dims stand in them that answer to a name.
  std::vector<Place> findDim(llvm::StringRef name) const;

  // Call `f` for all that a pattern matches; false if that is nothing.
  bool forEachValue(const PathPattern &pattern, llvm::function_ref<void(Value &, Op *)> f) const;
  /// The gradients in backward of the values that `PATTERN.grad` names.
  bool forEachGradient(const PathPattern &pattern, llvm::function_ref<void(Value &)> f);
  /// `PATTERN()`: ops of all blocks.
  bool forEachOp(const PathPattern &pattern, llvm::function_ref<void(Op &)> f);

  /// The operators of forward in modules and repeats whose path a pattern means, each with the outermost of these.
  bool forEachOpInside(const PathPattern &pattern, llvm::function_ref<void(Op &, llvm::StringRef module)> f);

  /// What a rule about values that forward keeps says something of (`recompute`, `offload`): results of ops, those of
  /// all operators in a module, values by their names, and what their ops save besides; each with the module that is
  /// meant with it. What is there without being computed, arguments of repeats and their results, only if that is asked
  /// for. False if the pattern matches nothing.
  bool forEachKept(const Rule &rule, bool withCarried, llvm::function_ref<void(Value &, llvm::StringRef module)> f);

  /// The scope and the name by which patterns mean an op.
  static std::pair<std::string, llvm::StringRef> getNames(const Op &op);
  /// `layers.attn.attention`, as a rule names the op.
  static std::string getPath(const Op &op);
  /// Reports a rule whose pattern means nothing. `dimNames`: those of the rule, as text.
  void reportUnmatched(const Rule &rule, DiagnosticEngine &diags, llvm::StringRef dimNames = "") const;
  /// `; did you mean 'layers.x'?`, or nothing if no path is near.
  std::string suggestFor(const Rule &rule) const;
  std::vector<std::string> listInside(const PathPattern &module, bool withModules = false) const;
  std::string suggestPath(const PathPattern &pattern) const;
  /// The nearest pattern that matches something, `layers[*].x` for `layer[*].x` and `**.attn` for `attn`; or nothing.
  std::string suggestPattern(const PathPattern &pattern) const;
  /// The same for the names of dims; for a size that is the product of two dims, these.
  std::string suggestDim(llvm::StringRef name) const;

private:
  void forEachForwardOp(llvm::function_ref<void(Op &)> f) const;
  static bool matches(const PathPattern &pattern, const Op &op);
  unsigned getModule(llvm::StringRef path);

  Graph &graph;
  std::vector<Target> values;
  PathIndex valuePaths;
  llvm::DenseMap<const Dim *, std::vector<Place>> places;
  llvm::StringMap<llvm::SmallVector<const Dim *, 1>> dimsByName;
  // Made when first asked for: most strategies speak of neither.
  std::optional<PathIndex> opPaths, gradientPaths;
  std::vector<Op *> ops;
  std::vector<Value *> gradients;
  struct Module {
    llvm::StringRef path;
    std::vector<Op *> ops;
    std::vector<unsigned> inner;
  };
  std::optional<PathIndex> modulePaths;
  std::vector<Module> modules; ///< Each behind the one around it.
  llvm::StringMap<unsigned> moduleNumbers;
};

/// The statements with rules of a kind that are not among `used`: where they stand, and their patterns.
std::vector<std::pair<SMLoc, std::string>> listUnusedStatements(const Graph &graph, RuleKind kind,
                                                                const llvm::DenseSet<unsigned> &used);

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_RULETARGETS_H
