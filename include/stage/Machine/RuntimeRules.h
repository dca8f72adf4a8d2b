//===- RuntimeRules.h - which rules of a runtime speak of an op -*- C++ -*-===//
//
// Problem: rules of a runtime name ops by pattern or by class, and their formulas speak of what an op has.
//
//   at **.layer_norm() { backward bytes = 5 * bytes(x); }          the gradient of each layer_norm; 5 X
//   resident cublas at class contraction { bytes = 32MiB; }        each product
//
//   R1  A pattern names ops by the module in which they stand and by their name. It speaks of their gradients, too, by
//       the entries with `backward`. `fuse **.x.grad()` names gradients.
//   R2  A class speaks of all ops of it. Fused attention is no product, and an update of a parameter is the
//   optimizer's. R3  `bytes.x`, `size.x` and `gathered.x` are of the operand or result x of the op of forward, on a
//   rank;
//       `gathered.x` is 0 unless an all_gather makes x. `volume` counts the first result. The name of an index stands
//       for its size on a rank.
//   R4  Of a product without an operand `weight`, `bytes.weight` are those of its parameters, in the type in which they
//       are stored. Indices that operands and results of a product share (experts) are left out: the matrix of one.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_MACHINE_RUNTIMERULES_H
#define STAGE_MACHINE_RUNTIMERULES_H

#include "stage/IR/graph/Graph.h"
#include "stage/Machine/Runtime.h"
#include "llvm/ADT/StringMap.h"

namespace stage {

class DiagnosticEngine;

bool isGradient(const Op &op);
/// The op of forward whose gradient this one is, or itself.
const Op &getNamed(const Op &op);
/// Nothing: no rule of a class speaks of it.
std::optional<KernelRule::OpClass> findOpClass(const Op &op);
/// For messages: `layers.attn rope`.
std::string describeNamed(const Op &op);

/// Which rules speak of an op. Patterns are compared with few ops only.
class RuleIndex {
public:
  explicit RuleIndex(llvm::ArrayRef<KernelRule> rules);
  /// Their numbers, in the order in which they were said.
  llvm::SmallVector<unsigned, 4> findAll(const Op &op, KernelRule::Kind kind) const;

private:
  llvm::ArrayRef<KernelRule> rules;
  llvm::StringMap<llvm::SmallVector<unsigned, 2>> byName;
  llvm::SmallVector<unsigned, 4> others;
};

/// The matrix of parameters that a product reads.
struct WeightMatrix {
  Size rows, columns;
  DType type;
};

/// Puts the sizes of ops into formulas of rules.
class RuleFormulas {
public:
  RuleFormulas(Graph &graph, DiagnosticEngine &diags) : graph(graph), diags(diags) {}

  /// Leaves `result` as it is if the formula is null. False after a report.
  bool take(const Op &op, const KernelRule &rule, Size formula, Size &result) const;
  /// Of the op of forward. Nothing if it reads no parameter.
  std::optional<WeightMatrix> findWeight(const Op &op) const;
  /// Says which names an op has.
  void reportNoName(const Op &op, const KernelRule &rule, llvm::StringRef name) const;

private:
  Size resolve(const Op &op, llvm::StringRef symbol) const;

  Graph &graph;
  DiagnosticEngine &diags;
};

} // namespace stage

#endif // STAGE_MACHINE_RUNTIMERULES_H
