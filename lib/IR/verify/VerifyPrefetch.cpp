//===- VerifyPrefetch.cpp - what is gathered ahead, and released (V14) ----===//
//
// Problem: a gather runs ahead when others have been released (UnitWalk), so each must
// be, once, when nothing of its block reads it any more, and in the order of the gathers.
//
//   %w.1 = all_gather(%w) over dp flat prefetched
//   %y = linear(%x, %w.1)
//   release(%w.1)
//
// Where params are on the host each has a fetch that runs ahead with it.
//
//===----------------------------------------------------------------------===//
#include "VerifierContext.h"
#include "stage/IR/Diagnostics.h"
#include "llvm/ADT/DenseSet.h"

using namespace stage;

namespace {
class PrefetchVerifier {
public:
  explicit PrefetchVerifier(VerifierContext &context) : context(context) {}

  void verify(const Block &block) {
    const Op *open = nullptr; // the gather ahead that has not been released
    for (auto &op : block) {
      for (const Value *operand : op->getOperands())
        if (released.count(operand))
          report(*op, "uses " + context.name(operand) + ", which has been released");
      if (op->isPrefetched && op->kind == OpKind::Fetch) {
        verifyFetch(*op);
      } else if (op->isPrefetched) {
        verifyGather(*op);
        if (open)
          report(*op, "stands before " + context.name(open->getResult()) + " is released");
        open = op.get();
      } else if (op->kind == OpKind::Release && verifyRelease(*op) && op->getOperand(0)->getOp() == open) {
        open = nullptr;
      }
      for (auto &body : op->bodies) {
        if (open && hasPrefetched(*body))
          report(*open, "is released only behind repeat '" + op->name + "', in which others run ahead");
        verify(*body);
      }
    }
    if (open)
      report(*open, "is not released in its block");
  }

private:
  void report(const Op &op, const llvm::Twine &fault) {
    context.diags.report(op.loc, diag::IRBadPrefetch) << VerifierContext::getName(op) << fault;
  }

  static bool hasPrefetched(const Block &block) {
    return llvm::any_of(block, [](auto &op) { return op->isPrefetched; });
  }

  static bool isOfState(const Op &op) {
    return llvm::all_of(op.getOperands(),
                        [](const Value *operand) { return operand->getOp() && isState(operand->getOp()->kind); });
  }

  /// It runs with the gather of all that it fetches.
  void verifyFetch(const Op &op) {
    const Op *gather = op.getNumResults() && llvm::hasSingleElement(op.getResult()->getUses())
                           ? op.getResult()->getUses().front().first
                           : nullptr;
    if (!gather || !gather->isPrefetched || gather->getBlock() != op.getBlock() || getFetch(*gather) != &op ||
        !isOfState(op))
      report(op, "cannot run ahead: a fetch of params can, of all that an all_gather of its block gathers ahead");
    if (!op.after.empty())
      report(op, "runs ahead when others are released: it can have no 'after'");
  }

  /// The fetch of all that is gathered; null if there is none.
  static const Op *getFetch(const Op &gather) {
    const Op *fetch = gather.getOperand(0)->getOp();
    if (!fetch || fetch->kind != OpKind::Fetch || !fetch->isPrefetched ||
        fetch->getNumResults() != gather.getNumOperands())
      return nullptr;
    for (unsigned i = 0; i < gather.getNumOperands(); ++i)
      if (gather.getOperand(i) != fetch->getResult(i))
        return nullptr;
    return fetch;
  }

  void verifyGather(const Op &op) {
    if (!context.graph.prefetch)
      report(op, "runs ahead, but the graph has no 'prefetch'");
    const Op *fetch = op.kind == OpKind::AllGather && op.getNumOperands() ? getFetch(op) : nullptr;
    bool gathersState = op.kind == OpKind::AllGather && (fetch || isOfState(op));
    if (!gathersState || isOncePerStep(op.getBlock()->getPhase()))
      report(op, "cannot run ahead: an all_gather of params can, and not in step");
    if (!op.after.empty())
      report(op, "runs ahead when others are released: it can have no 'after'");
    if (!first)
      first = &op;
    if (!fetch != !getFetch(*first))
      report(op, "runs ahead " + llvm::Twine(fetch ? "behind a fetch" : "without a fetch") + ", unlike " +
                     context.name(first->getResult()));
    if (op.stream != first->stream)
      report(op, "runs ahead on another stream than " + context.name(first->getResult()));
  }

  /// A block is the other one, or stands where that does in a later phase, which has kept what was gathered.
  static bool belongs(const Block &from, const Block &block) {
    const Op *loop = from.getParent(), *other = block.getParent();
    if (&from == &block || &from.getTop() == &block.getTop())
      return &from == &block;
    return loop && other ? loop->loop == other->loop && from.getNumber() == block.getNumber() : !loop && !other;
  }

  bool verifyRelease(const Op &op) {
    if (op.getNumOperands() == 0 || op.getNumResults()) {
      report(op, "takes what an all_gather made, and makes nothing");
      return false;
    }
    const Op *gather = op.getOperand(0)->getOp();
    for (const Value *operand : op.getOperands())
      if (!gather || operand->getOp() != gather) {
        report(op, context.name(operand) + " is not made by the op that makes " + context.name(op.getOperand(0)));
        return false;
      }
    if (gather->kind != OpKind::AllGather || !belongs(*gather->getBlock(), *op.getBlock()) ||
        gather->getNumResults() != op.getNumOperands()) {
      report(op, "takes all that an all_gather of its block made");
      return false;
    }
    released.insert(op.getOperands().begin(), op.getOperands().end());
    return true;
  }

  VerifierContext &context;
  const Op *first = nullptr; ///< That runs ahead.
  /// In blocks of the phase so far.
  llvm::DenseSet<const Value *> released;
};
} // namespace

void stage::verifyPrefetch(VerifierContext &context, const Block &phase) { PrefetchVerifier(context).verify(phase); }
