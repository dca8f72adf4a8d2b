//===- VerifyPacking.cpp - several sequences in one dim (V19) -------------===//
#include "VerifierContext.h"
#include "stage/IR/Diagnostics.h"
#include "stage/IR/graph/Packing.h"

using namespace stage;

void stage::verifyPacking(VerifierContext &context) {
  Graph &graph = context.graph;
  auto fail = [&](SMLoc loc, const llvm::Twine &fault) {
    context.diags.report(loc, diag::IRBadPacking) << fault.str();
  };
  for (const SequenceSum &sum : graph.sums)
    for (Size size : {sum.ofSeveral, sum.ofOne, graph.sizes.symbol(sum.symbol)})
      for (const std::string &symbol : collectSymbols(size))
        if (!graph.binding.lookup(symbol))
          fail(sum.loc, "nothing binds '" + symbol + "' of sum '" + sum.symbol + "'");
  size_t numNames = graph.pipeline.unitNames.size();
  if (numNames && numNames != size_t(graph.microbatches))
    fail(graph.pipeline.loc,
         llvm::Twine(int64_t(numNames)) + " units have names, and there are " + llvm::Twine(graph.microbatches));
  graph.walk([&](Op &op) {
    if (mixesSequences(op))
      fail(op.loc,
           "'" + VerifierContext::getName(op) + "' has no mask, and pairs or adds up positions of several sequences");
    else if (splitsSequences(op))
      fail(op.loc, "rows or columns of the mask of '" + VerifierContext::getName(op) + "' are packed and split");
    else if (SequenceSum packed = getTwiceMaskArea(graph, op); packed.ofSeveral && !findSum(graph, packed))
      fail(op.loc, "no sum is what '" + VerifierContext::getName(op) +
                       "' pairs of a sequence, twice: " + packed.ofSeveral.str() + " or " + packed.ofOne.str());
  });
}
