//===- Sensitivities.cpp - what would make a step shorter -----------------===//
#include "stage/Time/Sensitivities.h"
#include "StepPrices.h"

using namespace stage;

/// So much more of a rate, and so much less of what is no rate.
static constexpr Rational moreOfRates{101, 100}, lessOfOthers{9, 10};
/// Over all changes so many units or tasks are placed, some 2 us each: a second, which a report may take longer.
static constexpr uint64_t mostPlaced = 500'000;

namespace {
struct Change {
  std::string entry;
  Machine machine;
  Runtime runtime;
  bool isRate;
  bool isOfMachine;
};
} // namespace

static std::vector<Change> listChanges(const Machine &machine, const Runtime &runtime) {
  std::vector<Change> changes;
  for (const MachineEntry &entry : machine.listEntries())
    changes.push_back({"machine." + machine.getName(entry),
                       machine.with(entry, entry.isRate() ? moreOfRates : lessOfOthers), runtime, entry.isRate(),
                       /*isOfMachine=*/true});
  static constexpr std::pair<llvm::StringLiteral, Ticks Runtime::*> times[] = {
      {"runtime.launch", &Runtime::launch}, {"runtime.step.host", &Runtime::stepHost}};
  for (auto [name, time] : times)
    if (runtime.*time) {
      Runtime changed = runtime;
      changed.*time = multiply(runtime.*time, lessOfOthers);
      changes.push_back({name.str(), machine, changed, /*isRate=*/false, /*isOfMachine=*/false});
    }
  static constexpr std::pair<llvm::StringLiteral, Rational Runtime::*> taxes[] = {
      {"runtime.tax.collective", &Runtime::taxOfCollectives},
      {"runtime.tax.send", &Runtime::taxOfSends},
      {"runtime.tax.copy", &Runtime::taxOfCopies},
      {"runtime.tax.communication", &Runtime::taxOfCommunication}};
  for (auto [name, tax] : taxes)
    if (std::optional<Rational> less = (runtime.*tax).mul(lessOfOthers); less && less->num) {
      Runtime changed = runtime;
      changed.*tax = *less;
      changes.push_back({name.str(), machine, changed, /*isRate=*/false, /*isOfMachine=*/false});
    }
  return changes;
}

std::optional<Sensitivities> stage::findSensitivities(llvm::ArrayRef<const Program *> parts, const Machine &machine,
                                                      const Runtime &runtime, const TimeReport &report,
                                                      DiagnosticEngine &diags) {
  Sensitivities found;
  std::vector<Change> changes = listChanges(machine, runtime);
  found.areTooMany = report.numPlaced > mostPlaced / std::max<size_t>(changes.size(), 1);
  if (found.areTooMany)
    return found;
  const StepPrices prices(parts, machine, runtime, diags);
  for (const Change &change : changes) {
    if (change.isOfMachine && prices.areSameOn(change.machine))
      continue;
    std::optional<Ticks> step = findStep(parts, change.machine, change.runtime, diags);
    if (!step)
      return std::nullopt;
    if (*step != report.step)
      found.list.push_back({change.entry, change.isRate ? moreOfRates : lessOfOthers, *step});
  }
  return found;
}
