//===- GatherAgain.cpp - what backward gathers though nothing reads it -----===//
#include "GatherAgain.h"
#include "stage/IR/graph/Rule.h"
#include "llvm/ADT/DenseSet.h"

using namespace stage;

Op *stage::findMaker(const Op &accumulate) {
  Op *maker = accumulate.getOperand(0)->getOp();
  while (maker && (isReshard(maker->kind) || maker->def == nullptr) && maker->getNumOperands() == 1)
    maker = maker->getOperand(0)->getOp();
  return maker;
}

/// That of an op at the top; none in a repeat, which several stages run.
static int getStage(const Op &op) { return op.virtualStage ? int(*op.virtualStage) : -1; }

static Op &insertGather(const Op &forward, Value &param, Op &where) {
  auto gather = std::make_unique<Op>(static_cast<const OpAttributes &>(forward));
  gather->scope = where.scope;
  gather->virtualStage = where.virtualStage;
  gather->addOperand(&param);
  Value *result = gather->addResult(forward.getResult()->type, forward.getResult()->path);
  result->sharding = forward.getResult()->sharding;
  return *where.getBlock()->insertBefore(&where, std::move(gather));
}

static void release(Op &gather, Op &where) {
  auto release = std::make_unique<Op>(OpKind::Release, gather.loc);
  release->scope = gather.scope;
  release->virtualStage = gather.virtualStage;
  release->addOperand(gather.getResult());
  where.getBlock()->insertAfter(&where, std::move(release));
}

void stage::gatherAllAgain(Graph &graph, const Rule &parameters) {
  std::vector<Op *> params;
  graph.walk([&](Op &op) {
    if (op.kind == OpKind::Param && !op.getResult()->sharding.flat.empty())
      params.push_back(&op);
  });
  for (Op *op : params) {
    Value &param = *op->getResult();
    const Op *forward = nullptr;
    llvm::DenseSet<int> done; // virtual stages on which backward gathers it
    std::vector<Op *> makers;
    for (auto [user, operand] : param.getUses().vec()) {
      PhaseKind phase = user->getBlock()->getPhase();
      if (user->kind == OpKind::AllGather && isForward(phase))
        forward = user;
      else if (user->kind == OpKind::AllGather && phase != PhaseKind::Step)
        done.insert(getStage(*user));
      else if (user->kind == OpKind::Accumulate)
        if (Op *maker = findMaker(*user))
          makers.push_back(maker);
    }
    for (Op *maker : makers) {
      if (!forward || !done.insert(getStage(*maker)).second)
        continue;
      Op &gather = insertGather(*forward, param, *maker);
      if (!parameters.units.empty())
        continue;
      maker->after.push_back({gather.getResult()});
      release(gather, *maker);
    }
  }
}
