//===- RateOptions.h - a machine on the command line -----------*- C++ -*-===//
//
//   --flops=989TFLOP/s --memory=3.35TB/s --link=400GB/s --latency=5us
//
// The options that say what a machine does in a second are the same in all tools.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_MACHINE_RATEOPTIONS_H
#define STAGE_MACHINE_RATEOPTIONS_H

#include "stage/Machine/Machine.h"
#include "stage/Support/Diagnostics.h"
#include "llvm/Support/CommandLine.h"
#include <memory>
#include <vector>

namespace stage {

/// The options of a tool. Static, because options must exist before a command line is read.
class RateOptions {
public:
  RateOptions(llvm::cl::OptionCategory &category, std::initializer_list<llvm::cl::SubCommand *> commands);
  ~RateOptions();

  /// Those that were given, as a user writes them: `--flops`.
  std::vector<std::string> listGiven() const;
  /// The rates that are given, in place of those of `base`. A value that is none is reported, as is what says nothing
  /// beside the levels of `base`.
  MachineRates read(DiagnosticEngine &diags, MachineRates base = {}) const;

private:
  class Option;
  std::vector<std::unique_ptr<Option>> options;
};

} // namespace stage

#endif // STAGE_MACHINE_RATEOPTIONS_H
