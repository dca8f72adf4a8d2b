//===- LayerCases.h - which iterations of a repeat are equal ---*- C++ -*-===//
#ifndef STAGE_LIB_IRGEN_LAYERCASES_H
#define STAGE_LIB_IRGEN_LAYERCASES_H

#include "stage/IR/graph/Graph.h"
#include "stage/Sema/Evaluator.h"

namespace stage {

/// The cases of a repeat in the program.
struct LayerCases {
  using Values = std::vector<std::pair<llvm::StringRef, sema::CTValue>>;
  /// What the compile-time names are that an iteration begins with: the number of the layer and what iterations assign.
  struct Case {
    Values names;
  };
  IterationCases iterations; ///< Without runs if there is one case.
  std::vector<Case> cases;   ///< By the first iteration of each.
  /// Compile-time names that iterations assign, as they are after the last one.
  Values after;
  /// Iterations depend on their number and are more than maxDryRuns: nothing else is known.
  bool isTooLong = false;
  static constexpr int64_t maxDryRuns = 100'000;
};

/// Finds out which of `count` iterations from `first` on are lowered to the same ops. `env` is that outside of the
/// repeat; `assigned` are the names of it that the body assigns.
LayerCases findLayerCases(const ast::RepeatStmt &repeat, int64_t first, int64_t count, const sema::Environment &env,
                          llvm::ArrayRef<llvm::StringRef> assigned, sema::Evaluator &evaluator);

} // namespace stage

#endif // STAGE_LIB_IRGEN_LAYERCASES_H
