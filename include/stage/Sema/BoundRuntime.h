//===- BoundRuntime.h - a declared runtime, evaluated ----------*- C++ -*-===//
//
// Problem: a runtime is declared in a program, may extend another one, and the command line may change its entries.
// What does it come to?
//
//   runtime eager { launch = 12us; tax.collective = 0.30; }
//   runtime fused extends eager { launch = 8us; }
//   -D runtime=fused -D runtime.tax.collective=0.2
//
//   fused with tax.collective = 0.2     launch 8,000,000 ps, tax.collective 1/5, all other taxes 0, attention.kernel 1
//
// All values have been checked: a launch takes 0 to 1 s, taxes are 0 to 1, the attention kernel is above 0 and at
// most 2.
//
// Limits: nothing is priced here. stage/Machine/Runtime.h says what the values mean.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SEMA_BOUNDRUNTIME_H
#define STAGE_SEMA_BOUNDRUNTIME_H

#include "stage/Sema/EntryOverride.h"
#include "stage/Sema/Program.h"
#include "stage/Sema/Value.h"

namespace stage::sema {

class Evaluator;

struct BoundRuntime {
  std::string name;
  std::vector<std::string> changes; ///< By the command line: `launch = 5us`.
  SMRange range;                    ///< Where it was asked for.
  int64_t launch = 0;               ///< Picoseconds of a kernel.
  Rational taxOfCollectives, taxOfSends, taxOfCopies, taxOfCommunication;
  Rational attentionKernel = {1, 1};

  /// `megatron_2 with launch = 5us`.
  std::string describe() const;
};

/// Evaluates a runtime whose names have been checked. `range`: where it was asked for. `env`: in which `override` is
/// evaluated. Nothing after a report.
std::optional<BoundRuntime> bindRuntime(Evaluator &evaluator, const Program &program, const ast::RuntimeDecl &decl,
                                        SMRange range, EntryOverride override, const Environment &env);

/// The names of all entries that a runtime can have.
std::vector<std::string> listRuntimeEntries();

} // namespace stage::sema

#endif // STAGE_SEMA_BOUNDRUNTIME_H
