//===- Receivers.cpp - who takes what a unit hands on ---------------------===//
#include "stage/Walk/Receivers.h"
#include <map>

using namespace stage;

llvm::DenseMap<size_t, size_t> stage::findReceivers(const Program &program, const StageProgram &stage) {
  llvm::DenseMap<size_t, size_t> receivers;
  if (llvm::none_of(stage.templates, [](const UnitTemplate &unit) { return findHandedOn(unit.items); }))
    return receivers;
  std::map<std::tuple<bool, unsigned, unsigned>, size_t> positions; // forward, microbatch, chunk
  for (size_t i = 0; i < stage.units.size(); ++i)
    if (const Unit &unit = stage.units[i]; hasMessages(unit.kind))
      positions[{isForward(unit.kind), unit.microbatch, unit.chunk}] = i;
  for (size_t i = 0; i < stage.units.size(); ++i) {
    const Unit &unit = stage.units[i];
    const UnitTemplate *items = stage.find(unit.kind, unit.chunk);
    if (const ProgramItem *handed = items ? findHandedOn(items->items) : nullptr)
      receivers[i] = positions.at({isForward(unit.kind), unit.microbatch, program.virtualStages[handed->peer].second});
  }
  return receivers;
}
