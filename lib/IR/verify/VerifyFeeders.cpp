//===- VerifyFeeders.cpp - who samples the tokens of a unit (V20) ---------===//
//
// A unit may begin with what another one has sampled:
//
//   units "F0 D1(T=5)<0 D2(T=6)<1"         D2 begins with what D1 returns last
//   decode { %tokens = input : i32[B, 1] fed; ... return %logits, %token; }
//
// The feeder comes first on every stage, returns integers of the same type, and somebody reads them.
//
//===----------------------------------------------------------------------===//
#include "VerifierContext.h"
#include "llvm/ADT/DenseMap.h"

using namespace stage;

static const Value *findFed(Block &phase) {
  for (auto &op : phase)
    if (op->kind == OpKind::Input && op->isFed)
      return op->getResult();
  return nullptr;
}

/// Why one phase cannot feed another; nothing if it can.
static std::string findFault(const Graph &graph, PhaseKind feeding, PhaseKind fed) {
  Block *from = graph.findPhase(feeding), *to = graph.findPhase(fed);
  const Value *input = to ? findFed(*to) : nullptr;
  if (!input)
    return ("no input of " + getName(fed) + " is fed").str();
  const Op *end = from ? from->getTerminator() : nullptr;
  if (!end || !end->getNumOperands() || end->getOperands().back()->type.dtype != input->type.dtype ||
      isFloat(input->type.dtype))
    return (getName(feeding) + " does not return integers last, as '" + describe(*input) + "' is").str();
  return "";
}

void stage::verifyFeeders(VerifierContext &context) {
  Graph &graph = context.graph;
  graph.walk([&](Op &op) {
    if (op.isFed && op.getNumResults() && (op.kind != OpKind::Input || graph.training || op.getBlock()->getParent()))
      context.diags.report(op.loc, diag::IRFedElsewhere) << describe(*op.getResult());
  });
  for (const std::vector<Unit> &units : graph.pipeline.units) {
    llvm::DenseMap<unsigned, PhaseKind> before; // by microbatch
    for (const Unit &unit : units) {
      std::string fault;
      if (unit.feeder) {
        auto feeder = before.find(*unit.feeder);
        fault = feeder == before.end() ? "no unit before it has number " + std::to_string(*unit.feeder)
                                       : findFault(graph, feeder->second, unit.kind);
      }
      if (!fault.empty()) {
        context.diags.report(graph.pipeline.loc, diag::IRBadFeeder) << unit.str() << fault;
        return;
      }
      before[unit.microbatch] = unit.kind;
    }
  }
}
