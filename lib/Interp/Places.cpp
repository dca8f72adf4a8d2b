//===- Places.cpp - which positions of sequences a unit has ---------------===//
#include "Places.h"
#include "stage/Schedule/InferenceSymbols.h"

using namespace stage;
using namespace stage::interp;

Places::Places(const Graph &graph, llvm::ArrayRef<Extent> shape, const PackedUnit *unit)
    : shape(shape.begin(), shape.end()), unit(unit) {
  if (unit) {
    stretches.emplace(graph, *unit);
    return;
  }
  for (const Extent &extent : shape) {
    SizeValue origin = extent.dim && extent.dim->origin ? evaluate(extent.dim->origin, graph.binding) : SizeValue();
    origins.push_back(origin ? int64_t(origin.value.num) : 0);
    if (extent.size.getSymbol() == sequencesSymbol) // however many of them are a batch
      origins.back() +=
          graph.binding.lookup(batchSymbol).value_or(0) * graph.binding.lookup(sequencesSymbol).value_or(0);
  }
}

void Places::append(llvm::ArrayRef<int64_t> positions, llvm::SmallVectorImpl<uint64_t> &words) const {
  size_t begin = words.size();
  for (size_t d = 0; d < positions.size(); ++d)
    words.push_back(uint64_t(positions[d] + (unit ? 0 : origins[d])));
  if (!unit)
    return;
  const SequencePart *part = nullptr;
  for (size_t d = 0; d < positions.size(); ++d)
    for (size_t i = 0; i < unit->sequences.size() && Stretches::isPacked(shape[d]); ++i)
      if (Stretch stretch = stretches->get(*shape[d].dim, i); stretch.contains(positions[d])) {
        part = &unit->sequences[i];
        words[begin + d] = uint64_t(positions[d] + stretch.getOrigin());
      }
  for (size_t d = 0; part && d < positions.size(); ++d)
    if (shape[d].size.getSymbol() == sequencesSymbol) // one row, of all of them
      words[begin + d] += part->sequence;
}
