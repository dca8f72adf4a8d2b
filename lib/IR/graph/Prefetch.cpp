//===- Prefetch.cpp - gathers ahead of several phases ---------------------===//
#include "stage/IR/graph/Prefetch.h"

using namespace stage;

uint64_t stage::countHeldAhead(llvm::ArrayRef<ProgramItem> items) {
  uint64_t held = 0;
  forEachOp(items, [&](Op &op, int64_t times) {
    if (isReleaseOfPrefetched(op) && op.getOperand(0)->getBlock()->getPhase() != op.getBlock()->getPhase())
      held += times;
  });
  return held;
}
