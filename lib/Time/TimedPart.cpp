//===- TimedPart.cpp - a program on its machine ---------------------------===//
#include "stage/Time/TimedPart.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

bool TimedPart::isOnMachineOf(const TimedPart &other) const {
  if (!machine.isDeclared() || !other.machine.isDeclared())
    return machine.isDeclared() == other.machine.isDeclared();
  const MachineRates &rates = *machine.getRates(), &others = *other.machine.getRates();
  return rates.name == others.name && rates.changes == others.changes;
}

int64_t stage::countRanksElsewhere(llvm::ArrayRef<TimedPart> parts, const TimedPart &part) {
  int64_t count = 0;
  for (const TimedPart &other : parts)
    if (other.program->firstRank < part.program->firstRank && !other.isOnMachineOf(part))
      count += other.program->graph->mesh.getNumRanks();
  return count;
}

GroupPlace stage::findFarthest(const Machine &machine) {
  llvm::ArrayRef<int64_t> blocks = machine.getBlockSizes();
  return machine.findPlace({0, blocks.empty() ? 1 : blocks.back()});
}

/// What is said of parts, each text once.
static std::string join(llvm::ArrayRef<TimedPart> parts, llvm::function_ref<std::string(const TimedPart &)> describe) {
  std::vector<std::string> texts;
  for (const TimedPart &part : parts)
    if (std::string text = describe(part); !llvm::is_contained(texts, text))
      texts.push_back(text);
  return llvm::join(texts, "; ");
}

std::string stage::describeParts(llvm::ArrayRef<TimedPart> parts) {
  if (!parts.front().machine.isDeclared())
    return "";
  return join(parts, [](const TimedPart &part) {
    return "machine: " + part.machine.describe() + ", runtime: " + part.runtime.describe();
  });
}

std::string stage::describeMachines(llvm::ArrayRef<TimedPart> parts) {
  return join(parts, [](const TimedPart &part) { return part.machine.describe(); });
}

std::string stage::describeRuntimes(llvm::ArrayRef<TimedPart> parts) {
  return join(parts, [](const TimedPart &part) { return part.runtime.describe(); });
}
