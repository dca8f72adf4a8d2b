//===- Uncached.cpp - is what caches give what all tokens give? -----------===//
//
// Problem: a model that infers goes over a sequence in units, each of which sees what
// those before have left in caches. It must make what the model makes that goes over all
// of the sequence at once, as in training.
//
//   cached   unit 0: positions 0 .. 7     unit 1: position 8      unit 2: position 9
//   whole    unit 0: positions 0 .. 7     unit 1: 0 .. 8          unit 2: 0 .. 9
//
// Algorithm: units of both have the same tokens at the same positions of the same
// sequences (Sources.h). What a unit of `cached` returns is what the same unit of `whole`
// returns at the last positions, of which there are as many as the cached one has.
//
// Where a unit has positions of several sequences, a unit of `whole` has one of them:
//
//   cached   unit 2: positions 4 .. 6 of p1, 2 of p0        whole    units 3: 0 .. 6 of p1, and 4: 0 .. 2 of p0
//
// A model may cut positions into even parts, as a state space layer does (chunks of Q tokens), which 9 positions need
// not have. What only says so, and stands in no parameter and no input, is 1 in `whole`: what is computed must not
// depend on it.
//
//===----------------------------------------------------------------------===//
#include "Uncached.h"
#include "Stretches.h"
#include "stage/IR/graph/ShardingRules.h"
#include "stage/Interp/Diagnostics.h"
#include "stage/Transforms/sharding/CheckSizes.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>

using namespace stage;
using namespace stage::interp;

/// The last positions of a tensor in each dim, as many as these dims have.
static std::optional<Tensor> takeLast(const Tensor &whole, llvm::ArrayRef<Positions> dims) {
  llvm::SmallVector<Positions, 4> last;
  if (whole.dims.size() != dims.size())
    return std::nullopt;
  for (auto [all, part] : llvm::zip(whole.dims, dims)) {
    if (part.size() > all.size())
      return std::nullopt;
    last.emplace_back();
    for (size_t i = all.size() - part.size(); i < all.size(); ++i)
      last.back().push_back(all[i]);
  }
  return extract(whole, last);
}

/// Sizes of parts that a unit's positions do not have become 1.
static void settleParts(Graph &whole) {
  llvm::StringSet<> fixed, parts;
  auto add = [](llvm::StringSet<> &names, Size size) {
    for (const std::string &name : collectSymbols(size))
      names.insert(name);
  };
  std::vector<SizeBinding> units;
  for (unsigned number = 0; number < whole.pipeline.environments.size(); ++number) {
    units.push_back(whole.getBinding(number));
    for (auto &[name, value] : whole.pipeline.environments[number])
      fixed.insert(name);
  }
  whole.walk([&](Op &op) {
    for (auto &result : op.getResults())
      for (const Extent &extent : result->type.shape)
        if (isState(op.kind) || op.kind == OpKind::Input)
          add(fixed, extent.size);
        else if (llvm::any_of(units, [&](const SizeBinding &unit) {
                   return evaluateCount(extent.size, unit).error == SizeError::NotAnInteger;
                 }))
          add(parts, extent.size);
  });
  for (auto &part : parts)
    if (!fixed.contains(part.first()))
      whole.binding.bind(part.first(), 1);
}

namespace {
/// What a unit returns of a sequence, and the unit of `whole` that has all of that.
struct Part {
  Tensor found;
  unsigned whole;
};
} // namespace

/// All that is returned, or, of several sequences, what is of each.
static std::vector<Part> listParts(const Graph &graph, const Value &output, const TensorRef &tensor,
                                   unsigned microbatch, const ServedUnits *served) {
  if (!served)
    return {{*tensor, microbatch}};
  unsigned whole = 0;
  for (unsigned before = 0; before < microbatch; ++before)
    whole += served->units[before].sequences.size();
  const PackedUnit &unit = served->units[microbatch];
  Stretches stretches(graph, unit);
  std::vector<Part> parts;
  for (size_t i = 0; i < unit.sequences.size(); ++i) {
    llvm::SmallVector<Positions, 4> dims = tensor->dims;
    for (unsigned d = 0; d < dims.size(); ++d)
      if (const Extent &extent = output.type.shape[d]; Stretches::isPacked(extent))
        llvm::erase_if(dims[d], [&](int64_t place) { return !stretches.get(*extent.dim, i).contains(place); });
    if (llvm::none_of(dims, [](const Positions &positions) { return positions.empty(); })) // nothing of it is wanted
      parts.push_back({*extract(*tensor, dims), unsigned(whole + i)});
  }
  return parts;
}

std::optional<double> stage::interp::compareUncached(Graph &cached, const Reference &found, Graph &whole, double scale,
                                                     const ServedUnits *served, uint64_t &numCompared,
                                                     DiagnosticEngine &diags) {
  settleParts(whole);
  if (!checkSizes(whole, diags))
    return std::nullopt;
  Sources sources(whole, scale);
  Reference expected(whole, sources);
  if (!expected.run(diags))
    return std::nullopt;
  double most = 0;
  EnvironmentScope binding(cached);
  for (unsigned m = 0; m < cached.microbatches; ++m) {
    binding.enter(m);
    const Block *block = getForward(cached, m);
    Op *end = const_cast<Block *>(block)->getTerminator();
    // A draft model returns its outputs behind those of the model.
    unsigned first = block->getPhase() == PhaseKind::Draft
                         ? whole.getForward().getTerminator()->getNumOperands() - end->getNumOperands()
                         : 0;
    for (unsigned i = 0; i < end->getNumOperands(); ++i) {
      const Value &output = *end->getOperand(i);
      for (const Part &part : listParts(cached, output, found.getOutput(i, m), m, served)) {
        std::optional<Tensor> wanted = takeLast(*expected.getOutput(first + i, part.whole), part.found.dims);
        double largest = wanted ? getLargest(*wanted) : 0;
        for (size_t k = 0; k < part.found.data.size(); ++k) {
          Deviation deviation(part.found.data[k], wanted ? wanted->data[k] : NAN, /*rounding=*/0, largest);
          most = std::max(most, deviation.error);
          if (deviation.isAccepted())
            continue;
          char texts[2][32];
          snprintf(texts[0], sizeof texts[0], "%.9g", part.found.data[k]);
          snprintf(texts[1], sizeof texts[1], "%.9g", wanted ? wanted->data[k] : NAN);
          diags.report(output.loc, diag::ProofUncached)
              << describe(output) << int64_t(m) << int64_t(k) << texts[0] << texts[1];
          return std::nullopt;
        }
        ++numCompared;
      }
    }
  }
  return most;
}
