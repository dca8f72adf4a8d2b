//===- UnitsToProve.cpp - requests of a proof -----------------------------===//
//
// A proof of a job that serves requests runs iterations in which there is what there may be in one: a prompt in chunks,
// chunks of several prompts, prompts beside decoding, nobody who samples, some who do, sequences that sit an iteration
// out, that decode in another order than they came, and two tokens of one that verifies a draft. With n = 2:
//
//   i0  p0+6@0 p1+2@0                 nobody samples
//   i1  p1+7@2 0d+1@6                 only who decodes does
//   i2  p1+1@9 0d+1@7 p2+6@0          all do
//   i3  2d+1@6 0d+1@8 1d+2@10         a decode step
//   i4  1d+1@12 2d+1@7                one of fewer
//
// In front of i3 the cache of sequence 0 goes to the host and back.
//
// Those of prefill have 4 n tokens, so that ranks may split them.
//
//===----------------------------------------------------------------------===//
#include "stage/Compiler/Compilation.h"

using namespace stage;

std::shared_ptr<const ServedUnits> stage::makeUnitsToProve(int64_t n) {
  auto served = std::make_shared<ServedUnits>();
  std::vector<int64_t> computed(3);
  auto add = [&](bool decodes, std::vector<SequencePart> parts) {
    PackedUnit &unit = served->units.emplace_back();
    unit.name = "i" + std::to_string(served->units.size() - 1);
    unit.decodes = decodes;
    for (SequencePart &part : parts) {
      part.cached = computed[part.sequence];
      computed[part.sequence] += part.taken;
      unit.name +=
          " r" + std::to_string(part.sequence) + "+" + std::to_string(part.taken) + "@" + std::to_string(part.cached);
    }
    unit.sequences = std::move(parts);
  };
  auto take = [](int64_t sequence, int64_t taken, int64_t sampled) {
    return SequencePart{taken, 0, sampled, sequence};
  };
  add(false, {take(0, 3 * n, 0), take(1, n, 0)});
  add(false, {take(1, 4 * n - 1, 0), take(0, 1, 1)});
  add(false, {take(1, 1, 1), take(0, 1, 1), take(2, 4 * n - 2, 1)});
  add(true, {take(2, 1, 1), take(0, 1, 1), take(1, 2, 2)});
  add(true, {take(1, 1, 1), take(2, 1, 1)});
  served->units[3].stored = served->units[3].loaded = {{3 * n + 2, 0}};
  served->sequences = int64_t(computed.size());
  for (int64_t positions : computed)
    served->room += positions;
  return served;
}
