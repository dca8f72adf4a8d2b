//===- VerifyOrder.cpp - streams, and what ops wait for (V11) -------------===//
//
// Problem: two ops that wait for each other stall a rank, and an edge to what never runs
// says nothing. What an op waits for ran before it in the order of the program: earlier
// in its unit, in an earlier iteration, or in an earlier unit. So there are no circles.
//
// Copies of caches stand in front of units that go forward.
//
//   %g = all_gather(%w) over dp after %y [-1]   runs while the iteration before computes
//                                               what follows %y
//
//===----------------------------------------------------------------------===//
#include "VerifierContext.h"
#include "stage/IR/Diagnostics.h"
#include "stage/IR/graph/Costs.h"

using namespace stage;

/// Why an op cannot wait for what makes a value so many iterations or units earlier; empty if it can.
static std::string findFaultOfDistance(const Op &op, const OrderEdge &edge) {
  const Block *block = edge.value->getBlock(), *mine = op.getBlock();
  const Op *loop = block->getParent();
  if (edge.iterations)
    return !loop || mine->getParent() != loop ? "it is of no iteration of the same repeat" : "";
  if (isOncePerStep(block->getPhase()))
    return "it belongs to step, which is no unit";
  bool isSameLoop = loop && mine->getParent() && mine->getParent()->loop == loop->loop;
  if (loop && !isSameLoop)
    return "it is inside repeat '" + loop->name + "'";
  if (loop && mine->getNumber() != block->getNumber())
    return "it belongs to case " + std::to_string(block->getNumber()) + " of repeat '" + loop->name + "'";
  return "";
}

/// False if only another stage of the pipeline runs what an op waits for.
static bool isOnStageOf(const Op &op, const Op &maker) {
  const Op *mine = getTopLevelOp(const_cast<Op *>(&op)), *other = getTopLevelOp(const_cast<Op *>(&maker));
  return !other->virtualStage || other->virtualStage == mine->virtualStage;
}

void stage::verifyOrder(VerifierContext &context, const Op &op,
                        llvm::function_ref<std::string(const Value *)> findFault) {
  llvm::StringRef name = VerifierContext::getName(op);
  if (!hasNode(context.graph, op)) {
    context.diags.report(op.loc, diag::IRBadOrder)
        << name << "it is no work of its own that could stand on a stream or wait";
    return;
  }
  if (op.stream && op.stream->kind != getStreamKind(op))
    context.diags.report(op.loc, diag::IRBadOrder)
        << name << "stream '" + op.stream->name + "' is for " + getName(op.stream->kind);
  if (op.waitsForUnits && (!isCollective(op.kind) || !isOncePerStep(op.getBlock()->getPhase())))
    context.diags.report(op.loc, diag::IRBadOrder) << name << "only a collective of step waits for the units before it";
  for (const OrderEdge &edge : op.after) {
    const Op *maker = edge.value->getOp();
    bool isNear = !edge.iterations && !edge.units &&
                  !(isForward(op.getBlock()->getPhase()) && movesCaches(edge.value->getBlock()->getPhase()));
    bool runs = maker && (maker->kind == OpKind::Compute || isCommunication(maker->kind) || isCopy(maker->kind)) &&
                hasNode(context.graph, *maker);
    std::string fault = !runs    ? "no work of its own makes it"
                        : isNear ? findFault(edge.value)
                                 : findFaultOfDistance(op, edge);
    if (fault.empty() && !isOnStageOf(op, *maker))
      fault = "it is made on stage " + std::to_string(*getTopLevelOp(const_cast<Op *>(maker))->virtualStage) +
              " of the pipeline";
    if (!fault.empty())
      context.diags.report(op.loc, diag::IRBadOrder)
          << name << "it cannot run after " + context.name(edge.value) + ": " + fault;
  }
}
