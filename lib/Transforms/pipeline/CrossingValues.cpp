//===- CrossingValues.cpp - values that skip stages -----------------------===//
#include "CrossingValues.h"

using namespace stage;

std::optional<unsigned> stage::getHome(const PipelineLayout &layout, const Value &value) {
  const Op *op = value.getOp();
  if (!op || isSource(*op))
    return std::nullopt;
  return layout.isPipelined(*op) ? layout.getExit(*op) : op->virtualStage;
}

CrossingValues::CrossingValues(Graph &graph, const PipelineLayout &layout) : layout(layout) {
  if (layout.getNumVirtual() == 1)
    return;
  for (Block &phase : graph.getPhases())
    for (auto &op : phase)
      if (!isOncePerStep(phase.getPhase()) && op->getNumResults())
        if (std::optional<unsigned> home = getHome(layout, *op->getResult(0)))
          for (auto &result : op->getResults())
            visit(*result, *home, phase.getPhase());
}

void CrossingValues::visit(Value &value, unsigned home, PhaseKind kind) {
  unsigned furthest = home;
  for (auto [user, number] : value.getUses()) {
    if (isOncePerStep(user->getBlock()->getPhase()) || user->kind == OpKind::Return)
      continue; // what a step returns is where it was made
    llvm::BitVector stages = getStagesOfUse(*user);
    for (unsigned stage : stages.set_bits()) {
      if (stage == home)
        continue;
      if (!hasMessages(kind) || (isBackward(kind) ? stage > home : stage < home))
        unreached.push_back({&value, home, stage, user});
      else
        furthest = isBackward(kind) ? std::min(furthest, stage) : std::max(furthest, stage);
    }
  }
  if (furthest != home)
    crossings[unsigned(kind)].push_back({&value, home, furthest});
}

llvm::BitVector CrossingValues::getStagesOfUse(Op &user) {
  Op *top = getTopLevelOp(&user);
  llvm::BitVector stages(layout.getNumVirtual());
  if (layout.isPipelined(*top)) {
    if (&user != top)
      return layout.getStagesOfLoop(user);
    stages.set(layout.getEntry(*top));
  } else if (top->virtualStage) {
    stages.set(*top->virtualStage);
  } else {
    auto known = makers.find(top);
    if (known != makers.end())
      return known->second;
    for (auto &result : top->getResults())
      stages |= getUseStages(*result);
    makers[top] = stages;
  }
  return stages;
}

llvm::BitVector CrossingValues::getUseStages(const Value &value) {
  llvm::BitVector stages(layout.getNumVirtual());
  for (auto [user, number] : value.getUses())
    if (!isOncePerStep(user->getBlock()->getPhase()) && user->kind != OpKind::Return)
      stages |= getStagesOfUse(*user);
  return stages;
}

llvm::SmallVector<std::pair<Value *, unsigned>, 2> CrossingValues::list(PhaseKind kind, unsigned from,
                                                                        unsigned to) const {
  llvm::SmallVector<std::pair<Value *, unsigned>, 2> values;
  const std::vector<Crossing> &ofPhase = crossings[unsigned(kind)];
  for (unsigned number = 0; number < ofPhase.size(); ++number) {
    const Crossing &crossing = ofPhase[number];
    if (from < to ? crossing.home <= from && to <= crossing.furthest : crossing.home >= from && to >= crossing.furthest)
      values.emplace_back(crossing.value, number);
  }
  return values;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

namespace {
/// The addends of one gradient, in the order in which a backward phase comes to their stages.
class SumOnTheWay {
public:
  /// By op of its phase, where that stands.
  using Positions = llvm::DenseMap<const Op *, unsigned>;
  SumOnTheWay(Graph &graph, const PipelineLayout &layout, Op &sum, Positions &positions)
      : graph(graph), layout(layout), sum(sum), positions(positions) {}

  void run() {
    std::vector<std::pair<unsigned, Value *>> addends; // by virtual stage, the last one first
    for (Value *addend : sum.getOperands()) {
      std::optional<unsigned> home = getHome(layout, *addend);
      if (!home || !(addend->sharding == sum.getOperand(0)->sharding) ||
          addend->type.dtype != sum.getOperand(0)->type.dtype)
        return;
      addends.emplace_back(*home, addend);
    }
    llvm::stable_sort(addends, [](auto &a, auto &b) { return a.first > b.first; });
    if (addends.front().first == addends.back().first)
      return;
    Value *soFar = nullptr;
    for (size_t i = 0; i < addends.size();) {
      llvm::SmallVector<Value *, 4> here;
      unsigned stage = addends[i].first;
      for (; i < addends.size() && addends[i].first == stage; ++i)
        here.push_back(addends[i].second);
      for (Value *addend : here)
        if (soFar && goesInto(*soFar, *addend))
          soFar = nullptr;
      if (soFar)
        here.push_back(soFar);
      soFar = here.size() == 1 ? here.front() : add(here, stage);
    }
    soFar->primal = sum.getResult()->primal;
    sum.getResult()->replaceAllUsesWith(soFar);
    sum.clearOperands();
    sum.getBlock()->erase(&sum);
  }

private:
  /// What each iteration hands on is what it was handed, and addends: a sum that the repeat carries. A gradient of what
  /// is carried forward may begin at zero, too, but is something else in each iteration.
  static bool isSumSoFar(const Op &loop, unsigned number) {
    return llvm::all_of(loop.bodies, [&](const std::unique_ptr<Block> &body) {
      const Value *sum = body->getArgument(number), *handedOn = body->getTerminator()->getOperand(number);
      while (sum != handedOn) {
        if (sum->getUses().size() != 1)
          return false;
        const Op *user = sum->getUses().front().first;
        if (user->kind != OpKind::Compute || !user->def->isSum || user->getBlock() != body.get())
          return false;
        sum = user->getResult();
      }
      return sum->getUses().size() == 1;
    });
  }

  /// A repeat that adds up a gradient from zero on goes on from what is there before it instead.
  bool goesInto(Value &before, Value &result) const {
    Op *loop = result.getOp();
    if (!layout.isPipelined(*loop) || *getHome(layout, before) < layout.getEntry(*loop) || result.getUses().size() != 1)
      return false;
    Value *zero = loop->getOperand(result.getNumber());
    if (!isSumSoFar(*loop, result.getNumber()))
      return false;
    if (!zero->getOp() || zero->getOp()->kind != OpKind::Constant ||
        positions.lookup(before.getOp()) > positions.lookup(loop))
      return false;
    loop->setOperand(result.getNumber(), &before);
    return true;
  }

  /// As early as can be, so that a repeat behind it may go on from it.
  Value *add(llvm::ArrayRef<Value *> addends, unsigned stage) {
    Op *last = addends.front()->getOp();
    for (Value *addend : addends)
      if (positions.lookup(addend->getOp()) >=
          positions.lookup(last)) // what was added before stands behind its addends
        last = addend->getOp();
    auto owner = std::make_unique<Op>(OpKind::Compute, sum.loc);
    owner->def = graph.defs.getSum(sum.getResult()->type.getNumDims(), addends.size());
    owner->scope = sum.scope;
    owner->extents = sum.extents;
    owner->indexAxes = sum.indexAxes;
    owner->virtualStage = stage;
    for (Value *addend : addends)
      owner->addOperand(addend);
    Value *like = sum.getResult(), *result = owner->addResult(like->type, like->path);
    result->sharding = like->sharding;
    result->loc = like->loc;
    positions[owner.get()] = positions.lookup(last);
    sum.getBlock()->insertAfter(last, std::move(owner));
    return result;
  }

  Graph &graph;
  const PipelineLayout &layout;
  Op &sum;
  Positions &positions;
};
} // namespace

void stage::addUpOnTheWay(Graph &graph, const PipelineLayout &layout) {
  for (Block &phase : graph.getPhases()) {
    if (!makesInputGradient(phase.getPhase()))
      continue;
    std::vector<Op *> sums;
    llvm::DenseMap<const Op *, unsigned> positions;
    for (auto &op : phase) {
      positions[op.get()] = positions.size();
      if (op->kind == OpKind::Compute && op->def->isSum && op->getResult()->primal && op->virtualStage &&
          op->getNumOperands() > 1)
        sums.push_back(op.get());
    }
    for (Op *sum : sums)
      SumOnTheWay(graph, layout, *sum, positions).run();
  }
}
