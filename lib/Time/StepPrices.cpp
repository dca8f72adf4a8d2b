//===- StepPrices.cpp - what the tasks of a step take ---------------------===//
#include "StepPrices.h"
#include "stage/Time/StepTime.h"

using namespace stage;

StepPrices::StepPrices(llvm::ArrayRef<const Program *> programs, const Machine &machine, const Runtime &runtime,
                       DiagnosticEngine &diags)
    : runtime(runtime), diags(diags) {
  if (programs.size() != 1)
    return;
  parts = findUsed({{programs.front(), machine, runtime}}, TaskOptions(), diags);
  if (parts.empty() || !CompiledWalk::serves(parts))
    return;
  walk = std::make_unique<CompiledWalk>(parts.front(), TaskOptions(), diags);
  walk->keepPrices();
  if (walk->compile() != CompiledWalk::Outcome::Done)
    walk.reset();
}

bool StepPrices::areSameOn(const Machine &other) const {
  if (!walk)
    return false;
  const std::vector<TimedPart> used = findUsed({{parts.front().program, other, runtime}}, TaskOptions(), diags);
  return !used.empty() && walk->hasSamePrices(used.front().machine);
}
