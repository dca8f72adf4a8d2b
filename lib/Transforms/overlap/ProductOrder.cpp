//===- ProductOrder.cpp - gradients of a product one behind the other -----===//
//
// Problem: software that differentiates op by op computes both gradients of a product before it goes on, and hides
// communication only behind these two: what is gathered for the weight's gradient comes beside the input's, and the
// input's is summed beside the weight's. A compiler spreads gradients of weights over all gaps (FillGaps.cpp), which
// such software does not.
//
//   %g = all_gather(%dy)                     nothing hides it
//   %a = all_gather(%x)                      beside %dx
//   %dx = linear.dx(%g, %w)
//   %r = reduce_scatter(%dx)                 beside %dw
//   %dw = linear.dw(%a, %g)
//   %dn = rms_norm.grad(%n, %r)
//
// Algorithm: ops keep their order, but what communicates follows at once what it needs; what it needs from outside of
// these ops stands in front of the first gradient of the op that uses it.
//
// Limits: what costs nothing counts as an op that computes; if it stands between a product and a collective, the
// collective follows it where it stands.
//
//===----------------------------------------------------------------------===//
#include "ProductOrder.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

using namespace stage;

namespace {
class ProductOrderer {
public:
  explicit ProductOrderer(llvm::ArrayRef<Op *> ops) : inRun(ops.begin(), ops.end()) {
    for (Op *op : ops)
      if (isCommunication(op->kind) && !needsRun(*op))
        for (const auto &result : op->getResults())
          for (auto [user, operand] : result->getUses())
            if (user->origin && inRun.contains(user))
              gathers[user->origin].push_back(op);
  }

  std::vector<Op *> run(llvm::ArrayRef<Op *> ops) {
    for (Op *op : ops) {
      if (auto known = gathers.find(op->origin); op->origin && known != gathers.end())
        for (Op *gather : known->second)
          emit(*gather);
      emit(*op);
    }
    return std::move(order);
  }

private:
  bool needsRun(const Op &op) const {
    return llvm::any_of(op.getOperands(), [&](const Value *operand) { return inRun.contains(operand->getOp()); });
  }
  bool isReady(const Op &op) const {
    auto isThere = [&](const Value *value) {
      return !inRun.contains(value->getOp()) || emitted.contains(value->getOp());
    };
    return llvm::all_of(op.getOperands(), isThere) && llvm::all_of(op.after, [&](const OrderEdge &edge) {
             return edge.iterations || edge.units || isThere(edge.value);
           });
  }

  void emit(Op &op) {
    if (!emitted.insert(&op).second)
      return;
    order.push_back(&op);
    for (const auto &result : op.getResults())
      for (auto [user, operand] : result->getUses())
        if (isCommunication(user->kind) && inRun.contains(user) && isReady(*user))
          emit(*user);
  }

  llvm::DenseSet<const Op *> inRun, emitted;
  llvm::DenseMap<const Op *, llvm::SmallVector<Op *, 1>> gathers; ///< By the op whose gradient uses what they bring.
  std::vector<Op *> order;
};
} // namespace

std::vector<Op *> stage::orderByProduct(llvm::ArrayRef<Op *> ops) { return ProductOrderer(ops).run(ops); }
