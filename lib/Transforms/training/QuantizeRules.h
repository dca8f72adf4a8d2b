//===- QuantizeRules.h - what rules quantize -------------------*- C++ -*-===//
//
// Problem: statements name ops, state and results by patterns, and a later statement takes back what an earlier one
// says (`as none`). Patterns match much that cannot be quantized: norms, integers, tensors in a type of their own.
//
// Rule: of two statements about an op, a state or a result the last one holds. A statement that matches nothing that
// can be quantized is refused. An attention that reads a cache is quantized if the cache is: its kernel multiplies in
// the wider type, and copies of all positions in each step would cost more than they save.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRANSFORMS_QUANTIZERULES_H
#define STAGE_LIB_TRANSFORMS_QUANTIZERULES_H

#include "sharding/RuleTargets.h"
#include "llvm/ADT/MapVector.h"

namespace stage {

class QuantizeRules {
public:
  using Chosen = llvm::MapVector<Value *, const Rule *>;

  explicit QuantizeRules(Graph &graph) : graph(graph), targets(graph) {}

  /// Finds what all rules are about. False after an error.
  bool choose(DiagnosticEngine &diags);

  /// The rule of an op whose operands are copies; null: there is none.
  const Rule *findRule(const Op &op) const;
  const Chosen &getStates() const { return states; }   ///< Null: as it is.
  const Chosen &getResults() const { return results; } ///< The same.

  /// An operand by which a product reads a parameter or buffer: in forward, if there is one. Nothing if it is taken
  /// apart.
  static std::optional<std::pair<Op *, unsigned>> findReader(Value &state);
  /// A collective or message of one tensor.
  static bool isSent(const Op &op);

private:
  void choose(const Rule &rule, DiagnosticEngine &diags);
  void chooseResult(Value &value, const Rule &rule);
  void chooseOp(Op &op, const Rule &rule);
  void chooseState(Value &value, const Op *op, const Rule &rule);
  void dropReadersOfCaches();
  bool isNarrowed(const TensorType &type, const Rule &rule) const;
  bool isNarrowed(const Op &op, const Rule &rule) const;
  bool isNarrowed(Value &state, const Rule &rule) const;

  Graph &graph;
  RuleTargets targets;
  llvm::DenseMap<const Op *, const Rule *> ops;
  llvm::SmallVector<std::pair<Op *, const Rule *>, 0> attentions; ///< Matches, in the order of rules.
  Chosen states, results;
  llvm::DenseSet<unsigned> used; ///< Statements.
};

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_QUANTIZERULES_H
