//===- Packing.cpp - several sequences in one dim (V19) -------------------===//
//
// What an op may do with packed dims (Packing.h), and what the graph has to say of them.
// Ops that route tokens look at tokens only: slots are for tokens of all sequences.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/Packing.h"
#include "VerifierContext.h"

using namespace stage;

const SequenceSum *stage::findSum(const Graph &graph, const SequenceSum &wanted) {
  for (const SequenceSum &sum : graph.sums)
    if (sum.ofSeveral == wanted.ofSeveral && sum.ofOne == wanted.ofOne)
      return &sum;
  return nullptr;
}

static bool isPacked(const Op &op, unsigned index) { return op.extents[index].dim && op.extents[index].dim->isPacked; }

bool stage::mixesSequences(const Op &op) {
  if (op.kind != OpKind::Compute || op.def->getRouting() || op.def->mask)
    return false;
  // What takes some positions out of all belongs to no sequence in particular.
  if (llvm::any_of(op.extents, [](const Extent &extent) { return extent.dim && extent.dim->isOptional; }))
    return false;
  const Dim *first = nullptr;
  for (unsigned index = 0; index < op.extents.size(); ++index) {
    if (!isPacked(op, index))
      continue;
    const IndexInfo &info = op.def->indices[index];
    bool pairs = first && first != op.extents[index].dim;
    if (pairs || info.whole || info.fold || op.def->reduced[index])
      return true;
    first = op.extents[index].dim;
  }
  return false;
}

bool stage::splitsSequences(const Op &op) {
  if (op.kind != OpKind::Compute || !op.def->mask)
    return false;
  const Mask &mask = *op.def->mask;
  auto isSplit = [&](unsigned index) { return isPacked(op, index) && index < op.indexAxes.size() && !op.indexAxes[index].empty(); };
  return isSplit(mask.rows) || isSplit(mask.columns);
}

void stage::verifyPacking(VerifierContext &context) {
  Graph &graph = context.graph;
  auto fail = [&](SMLoc loc, const llvm::Twine &fault) { context.diags.report(loc, diag::IRBadPacking) << fault.str(); };
  for (const SequenceSum &sum : graph.sums)
    for (Size size : {sum.ofSeveral, sum.ofOne, graph.sizes.symbol(sum.symbol)})
      for (const std::string &symbol : collectSymbols(size))
        if (!graph.binding.lookup(symbol))
          fail(sum.loc, "nothing binds '" + symbol + "' of sum '" + sum.symbol + "'");
  size_t numNames = graph.pipeline.unitNames.size();
  if (numNames && numNames != size_t(graph.microbatches))
    fail(graph.pipeline.loc, llvm::Twine(int64_t(numNames)) + " units have names, and there are " + llvm::Twine(graph.microbatches));
  graph.walk([&](Op &op) {
    if (mixesSequences(op))
      fail(op.loc, "'" + VerifierContext::getName(op) + "' has no mask, and pairs or adds up positions of several sequences");
    else if (splitsSequences(op))
      fail(op.loc, "rows or columns of the mask of '" + VerifierContext::getName(op) + "' are packed and split");
    else if (SequenceSum packed = getTwiceMaskArea(graph, op); packed.ofSeveral && !findSum(graph, packed))
      fail(op.loc, "no sum is what '" + VerifierContext::getName(op) + "' pairs of a sequence, twice: " + packed.ofSeveral.str() + " or " +
                       packed.ofOne.str());
  });
}
