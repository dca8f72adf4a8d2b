//===- PlanCompiler.h - many plans of one program --------------*- C++ -*-===//
#ifndef STAGE_LIB_DRIVER_PLANCOMPILER_H
#define STAGE_LIB_DRIVER_PLANCOMPILER_H

#include "Compilation.h"
#include "stage/Transforms/Passes.h"

namespace stage::driver {

/// Compiles plans one after the other: jobs of the files of `input` under other values. What plans have in common is
/// kept: files, sizes, and the graphs of models. A plan that has errors does not concern the others.
class PlanCompiler {
public:
  /// `messages`: of the files, once.
  PlanCompiler(bool warningsAreErrors, llvm::raw_ostream &messages) : input(messages) {
    input.diags.setWarningsAreErrors(warningsAreErrors);
  }

  /// Takes the files that another one has read and checked. Their texts and trees are shared and stay as they are.
  void share(const SourceFiles &read);

  /// `see` gets the plan, its report, null if it was refused, and what was said of it. All of them are gone afterwards.
  using Seer = llvm::function_ref<void(const Compilation &, const Report *, llvm::StringRef messages)>;
  void compile(const DriverOptions &options, Seer see);

  SourceFiles input;

private:
  SizeContext sizes;
  ModelCache models{differentiate};
};

} // namespace stage::driver

#endif // STAGE_LIB_DRIVER_PLANCOMPILER_H
