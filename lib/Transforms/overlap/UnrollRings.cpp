//===- UnrollRings.cpp - attention whose keys go round --------------------===//
//
// Problem: `ring t over cp`: queries (index s) and keys (index t) are both split over cp.
// Each rank works on one block of t after the other, while it sends that on to the next
// rank; nobody ever holds all of t.
//
//   %o = attention(%q, %k, %v) [s over cp, t over cp ring]
//
//   cp = 3        step 0          step 1          step 2
//     rank 0      t block 0       t block 2       t block 1
//     rank 1      t block 1       t block 0       t block 2
//     rank 2      t block 2       t block 1       t block 0
//
//   %k1 = permute(%k) over cp by 1          %v1 = permute(%v) over cp by 1
//   %o0, %c0 = attention(%q, %k, %v)                      [s over cp, t over cp]
//   %k2 = permute(%k1) over cp by 1         ...
//   %o1, %c1 = attention.fold(%q, %k1, %v1, %o0, %c0)     [s over cp, t over cp rotated 2]
//   %o,  %c  = attention.fold(%q, %k2, %v2, %o1, %c1)     [s over cp, t over cp rotated 1]
//
// The first step is the op itself on the block that the rank has; `attention.fold` merges
// the next block into what came before (Fold.h). The blocks are sent on before the step
// that works on them, so that they travel beside it. They are received once the step before
// has ended, whose block nobody needs any more: a rank has memory for two blocks.
//
// Backward: the op's gradient, block by block, from the last block of forward back to the
// rank's own, so that forward keeps its last block instead of its first. What forward saved
// is of all blocks, so gradients of blocks add up: of what has no t (queries) on the rank, of
// what has t (keys, values) in a sum that travels with its block and comes home with it. What
// stands outside of all sums over t (a sink) has its whole gradient in every step; the first
// counts.
//
//   %dk0 = ...grad(%q, %k2, ...)            %k1 = permute(%k2) over cp by 2
//   %dk1 = ...grad(%q, %k1, ...)            %s1 = permute(%dk0) over cp by 2      %a1 = add(%s1, %dk1)
//   %dk2 = ...grad(%q, %k, ...)             %s2 = permute(%a1) over cp by 2       %dk = add(%s2, %dk2)
//
// So a rank sends (n-1) times its keys and values forward, and as much again backward,
// and as often their gradients: 6 (n-1) blocks, as Transformer Engine does. Where backward has
// not the blocks of a forward ring it begins with the rank's own, and sums go one hop further.
//
// Limits: one axis; n ops per op, as n is a number here.
//
//===----------------------------------------------------------------------===//
#include "RingSteps.h"
#include "stage/IR/algebra/Fold.h"
#include "stage/IR/graph/ShardingRules.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/sharding/CheckSizes.h"

using namespace stage;

namespace {
class RingUnroller {
public:
  explicit RingUnroller(Graph &graph) : graph(graph) {}

  void run() {
    std::vector<std::pair<Op *, Value *>> rings;
    ComputedBefore computed(graph);
    graph.walk([&](Op &op) {
      if (op.ring)
        rings.push_back({&op, computed.get()});
      computed.visit(op);
    });
    for (auto [op, before] : rings) {
      ring = op;
      computedBefore = before;
      index = op->def->getCarrier(*std::exchange(op->ring, std::nullopt));
      axis = op->indexAxes[index].front().id;
      steps.emplace(graph, op->indexAxes[index], *op, *op);
      isBack = false;
      // Of a product the gradients are products, of which each block is a part of the sum as well.
      if (op->def->vjpOf || (op->origin && !op->isRecomputed))
        unrollBackward();
      else
        unrollForward();
    }
  }

private:
  bool hasIndex(llvm::ArrayRef<unsigned> dims) const { return llvm::is_contained(ring->def->expand(dims), index); }
  /// On to the next rank or, in backward that begins where forward has ended, back to the one before.
  Value *send(Value *value) { return steps->send(value, axis, isBack ? steps->getNumSteps() - 1 : 1); }

  //===--- blocks -----------------------------------------------------------===//

  /// What the op takes of the blocks that a rank has now: its operands, those with the index sent on so far.
  using Operands = llvm::SmallVector<Value *, 8>;
  Operands getOperands() const { return Operands(ring->getOperands().begin(), ring->getOperands().end()); }

  void sendBlocks(Operands &operands) {
    llvm::SmallDenseMap<Value *, Value *, 4> sent; // one value may be several operands
    for (unsigned i = 0; i < operands.size(); ++i)
      if (hasIndex(ring->def->operands[i].indices)) {
        Value *&next = sent[operands[i]];
        operands[i] = next ? next : next = send(operands[i]);
      }
  }

  /// The op on these blocks, which `hops` ranks before had first. The last step is the op itself.
  Op *makeStep(const OpDef *def, const Operands &operands, llvm::ArrayRef<Value *> carried, unsigned hops,
               bool isLast) {
    std::unique_ptr<Op> made;
    Op *step = ring;
    if (!isLast) {
      made = std::make_unique<Op>(OpKind::Compute, ring->loc);
      step = made.get();
      step->scope = ring->scope;
      step->origin = ring->origin;
      step->isRecomputed = ring->isRecomputed;
      step->extents = ring->extents;
      step->indexAxes = ring->indexAxes;
    }
    step->def = def;
    step->clearOperands();
    for (Value *operand : operands)
      step->addOperand(operand);
    for (Value *value : carried)
      step->addOperand(value);
    for (unsigned i = 0; i < step->indexAxes.size(); ++i)
      for (unsigned k = 0; def->getCarrier(i) == index && k < hops; ++k)
        steps->rotate(step->indexAxes[i], axis);
    for (auto &result : ring->getResults())
      if (made)
        steps->addResult(*step, *result, getNaturalSharding(*step, result->getNumber()));
      else
        result->sharding = getNaturalSharding(*step, result->getNumber());
    if (made)
      steps->insert(std::move(made));
    return step;
  }

  //===--- forward ------------------------------------------------------------===//

  void unrollForward() {
    Fold fold = deriveFold(*ring->def, index, graph.defs);
    const OpDef *first = ring->def, *next = graph.defs.add(fold.step);
    Operands operands = getOperands();
    steps->setFirstStep(operands, computedBefore);
    llvm::SmallVector<Value *, 2> carried;
    const Operands own = operands;
    for (unsigned number = 0; number < steps->getNumSteps(); ++number) {
      Operands following = operands;
      unsigned left = steps->getNumSteps() - 1 - number;
      if (left)
        sendBlocks(following);
      Op *made = makeStep(number ? next : first, operands, carried, number, left == 0);
      carried.clear();
      for (unsigned result : fold.carried)
        carried.push_back(made->getResult(result));
      steps->setStep({made->getResult()});
      operands = std::move(following);
    }
    for (unsigned i = 0; i < own.size(); ++i)
      if (own[i] != operands[i])
        lastBlocks[{ring->isRecomputed ? ring->origin : ring, own[i]}] = operands[i];
  }

  //===--- backward -----------------------------------------------------------===//

  /// The blocks that forward, or what backward has made again of it, worked on last; false if there is none of some.
  bool takeLastBlocks(Operands &operands) const {
    Operands last = operands;
    for (unsigned i = 0; i < operands.size(); ++i)
      if (hasIndex(ring->def->operands[i].indices) && !(last[i] = lastBlocks.lookup({ring->origin, operands[i]})))
        return false;
    operands = std::move(last);
    return true;
  }

  void unrollBackward() {
    Operands operands = getOperands();
    isBack = takeLastBlocks(operands);
    steps->setFirstStep(operands, computedBefore);
    llvm::SmallVector<std::vector<std::pair<Op *, unsigned>>, 4> uses;
    for (auto &result : ring->getResults())
      uses.emplace_back(result->getUses().begin(), result->getUses().end());
    llvm::SmallVector<Value *, 4> sums; // per result
    auto travels = [&](unsigned result) { return hasIndex(ring->def->results[result].indices); };
    // What stands outside of the sums has its whole gradient in every step.
    llvm::SmallBitVector isWhole(ring->getNumResults());
    if (const OpDef *def = ring->def->vjpOf) {
      Fold fold = deriveFold(*def, index, graph.defs);
      for (unsigned i = 0; i < ring->getNumResults(); ++i)
        isWhole[i] = fold.outside.test(ring->def->vjpOperands[i]);
    }
    for (unsigned number = 0; number < steps->getNumSteps(); ++number) {
      Operands following = operands;
      unsigned left = steps->getNumSteps() - 1 - number;
      if (left)
        sendBlocks(following);
      for (unsigned i = 0; i < sums.size(); ++i)
        if (travels(i))
          sums[i] = send(sums[i]);
      Op *made = makeStep(ring->def, operands, {}, isBack ? left : number, left == 0);
      if (made == ring)
        steps->goBehind(*ring);
      for (unsigned i = 0; i < ring->getNumResults(); ++i)
        if (number == 0)
          sums.push_back(made->getResult(i));
        else if (!isWhole[i])
          sums[i] = steps->add({sums[i], made->getResult(i)});
      steps->setStep(sums);
      operands = std::move(following);
    }
    for (unsigned i = 0; i < sums.size(); ++i) {
      Value *result = ring->getResult(i), *sum = sums[i] = travels(i) && !isBack ? send(sums[i]) : sums[i];
      sum->path = std::exchange(result->path, "");
      sum->constraint = std::exchange(result->constraint, Constraint());
      sum->primal = std::exchange(result->primal, nullptr);
      for (auto [user, operand] : uses[i])
        user->setOperand(operand, sum);
    }
  }

  Graph &graph;
  Op *ring = nullptr;              ///< The op that is unrolled.
  Value *computedBefore = nullptr; ///< By an op in front of it, maybe of another block.
  unsigned index = 0;              ///< Of which blocks go round,
  AxisId axis = 0;                 ///< over this axis.
  bool isBack = false;             ///< Blocks go the way back.
  std::optional<RingSteps> steps;
  /// For an op of forward and each block that a rank sends on there: the one that it has in the last step.
  llvm::DenseMap<std::pair<const Op *, Value *>, Value *> lastBlocks;
};
} // namespace

void stage::unrollRings(Graph &graph, DiagnosticEngine &diags) {
  if (checkSizes(graph, diags))
    RingUnroller(graph).run();
}
