//===- ExchangeRelays.cpp - ops between two exchanges of tokens -----------===//
//
// Problem: tokens go to a node, and from there to ranks of it. Between both exchanges an op puts each token into the
// slots of its ranks. If this op stands among the compute of a rank, all compute waits for the first exchange, though
// both exchanges run beside compute. The kernel of the exchange does this work itself (DeepEP).
//
//   %a = all_to_all(%sent) over nodes stream ep
//   %b = send_inside(%a, %rank) stream relays       // else in the main stream, which would wait for %a
//   %c = all_to_all(%b) over ranks stream ep
//
// A relay is an op that routes tokens, or makes the integers by which relays route. All that it reads comes from
// communication on a stream or from relays, and so goes all that it makes.
//
// Algorithm: begin with all ops that route and all makers of their integers; drop those that read or make something
// else until none is dropped. The others are on one stream, in the order of the program.
//
// Limits: an op without work of its own between both (a slice) makes its neighbours no relays.
//
//===----------------------------------------------------------------------===//
#include "ExchangeRelays.h"
#include "sharding/MergeCollectives.h"
#include "stage/IR/graph/Costs.h"
#include "llvm/ADT/SetVector.h"

using namespace stage;

namespace {
class RelayFinder {
public:
  explicit RelayFinder(Graph &graph) : graph(graph) {}

  llvm::ArrayRef<Op *> run() {
    graph.walk([&](Op &op) {
      if (!isMain(op) || !routes(op))
        return;
      relays.insert(&op);
      for (const Value *operand : op.getOperands())
        if (Op *maker = operand->getOp(); maker && isMain(*maker))
          relays.insert(maker);
    });
    while (relays.remove_if([&](Op *op) { return !isBetween(*op); }))
      ;
    return relays.getArrayRef();
  }

private:
  bool isMain(const Op &op) const { return op.kind == OpKind::Compute && !op.stream && hasNode(graph, op); }
  bool isPassing(Op *op) const { return op && ((isCommunication(op->kind) && op->stream) || relays.contains(op)); }
  bool routes(const Op &op) const { return op.def && op.def->getRouting(); }

  bool isBetween(const Op &op) const {
    if (!llvm::all_of(op.getOperands(), [&](const Value *operand) { return isPassing(operand->getOp()); }))
      return false;
    return llvm::all_of(op.getResults(), [&](const auto &result) {
      return llvm::all_of(result->getUses(), [&](const std::pair<Op *, unsigned> &use) {
        return routes(op) ? isPassing(use.first) : relays.contains(use.first);
      });
    });
  }

  Graph &graph;
  llvm::SetVector<Op *> relays;
};
} // namespace

void stage::moveRelays(Graph &graph) {
  RelayFinder finder(graph);
  llvm::ArrayRef<Op *> relays = finder.run();
  if (relays.empty())
    return;
  const Stream *stream = addStream(graph, "relays", StreamKind::Computation);
  for (Op *op : relays)
    op->stream = stream;
}
