//===- StepPrices.h - what the tasks of a step take -------------*- C++ -*-===//
//
// Problem: would a step be shorter on another machine? To walk it again takes as long as the step, and most entries of
// a machine change no price of it: rates of other element types, what a cache takes, copies to the host.
//
//   StepPrices prices(parts, machine, runtime, diags);
//   prices.areSameOn(machine.with(entry, more))       true: the step is as long there, and need not be walked
//
// Algorithm: the units of the step are made, and each price is kept with all that it was found from: the task, its
// work, its place on the network, and how slow its rank is. On another machine the prices are found again, and
// compared.
//
// Limits: of a program whose units are made once (CompiledWalk.h). Of other steps nothing is kept, and no prices are
// called the same.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TIME_STEPPRICES_H
#define STAGE_LIB_TIME_STEPPRICES_H

#include "CompiledWalk.h"

namespace stage {

class StepPrices {
public:
  StepPrices(llvm::ArrayRef<const Program *> programs, const Machine &machine, const Runtime &runtime,
             DiagnosticEngine &diags);

  /// Whether all tasks take on `other` what they take on the machine. It has the same levels, with the same ranks.
  bool areSameOn(const Machine &other) const;

private:
  const Runtime &runtime;
  DiagnosticEngine &diags;
  std::vector<TimedPart> parts;
  std::unique_ptr<CompiledWalk> walk; ///< Null: nothing is kept.
};

} // namespace stage

#endif // STAGE_LIB_TIME_STEPPRICES_H
