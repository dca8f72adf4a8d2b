//===- Lifetimes.cpp - when a tensor may be freed      ---------------------===//
#include "stage/Walk/Lifetimes.h"

using namespace stage;

Lifetimes::Lifetimes(Graph &graph, llvm::ArrayRef<PhaseKind> without) : without(without.begin(), without.end()) {
  // All positions first: values are compared by the ops of later phases that use them.
  graph.walk([&](Op &op) { order[&op] = order.size(); });
  for (Block &phase : graph.getPhases())
    if (!llvm::is_contained(without, phase.getPhase()))
      visitBlock(phase);
}

static constexpr PhaseKind halves[] = {PhaseKind::BackwardInput, PhaseKind::BackwardWeight};

ChainLifetimes::ChainLifetimes(Graph &graph)
    : ofWhole(graph, graph.findPhase(PhaseKind::Backward) ? llvm::makeArrayRef(halves) : llvm::ArrayRef<PhaseKind>()) {
  if (graph.findPhase(PhaseKind::Backward) && graph.findPhase(PhaseKind::BackwardInput))
    ofHalves.emplace(graph, PhaseKind::Backward);
}

const Lifetimes &ChainLifetimes::get(const UnitChain &chain) const {
  bool isSplit = llvm::any_of(chain, [](const UnitTemplate *unit) { return llvm::is_contained(halves, unit->kind); });
  return ofHalves && isSplit ? *ofHalves : ofWhole;
}

void Lifetimes::visitBlock(Block &block) {
  for (auto &argument : block.getArguments())
    visitValue(*argument);
  for (auto &op : block) {
    for (auto &result : op->getResults())
      visitValue(*result);
    for (auto &body : op->bodies)
      visitBlock(*body);
  }
}

/// The op around `user` that stands in `block`, or else in the body of another repeat of the same loop.
static const Op *findAnchor(const Op *user, const Block *block) {
  const Op *loop = block->getParent();
  for (const Op *op = user; op; op = op->getBlock()->getParent()) {
    const Op *parent = op->getBlock()->getParent();
    if (op->getBlock() == block || (loop && parent && parent->loop == loop->loop))
      return op;
  }
  return nullptr;
}

void Lifetimes::visitValue(const Value &value) {
  Block *block = value.getBlock();
  PhaseKind home = block->getPhase();
  const Op *last = nullptr;
  bool usedAtHome = false;
  for (auto [user, number] : value.getUses()) {
    PhaseKind phase = user->getBlock()->getPhase();
    if (llvm::is_contained(without, phase))
      continue;
    if (phase != home) {
      PhaseKind &lastUser = lastUsers.try_emplace(&value, phase).first->second;
      lastUser = std::max(lastUser, phase);
    }
    const Op *anchor = findAnchor(user, block);
    if (!anchor)
      continue;
    usedAtHome |= phase == home;
    if (!last || order[anchor] >= order[last])
      last = anchor;
  }
  if (!usedAtHome)
    unused.insert(&value);
  if (!last && value.getOp())
    last = value.getOp();
  if (last && block->getParent())
    releases[last].push_back(&value);
}

LastUses stage::findLastUses(llvm::ArrayRef<ProgramItem> items) {
  LastUses uses;
  auto use = [&](const Value *value, unsigned time) {
    unsigned &last = uses[value];
    last = std::max(last, time);
  };
  for (unsigned i = 0; i < items.size(); ++i) {
    const ProgramItem &item = items[i];
    if (item.kind == ProgramItem::Kind::Send)
      for (unsigned k = 0; k < item.values.size(); ++k)
        use(item.getSent(k, findRangeOfMessage(items, item)), 2 * i + 1);
    if (item.op)
      forEachOutsideValue(item, [&](Value *value, Op &user) {
        bool entry = item.kind == ProgramItem::Kind::Loop && &user == item.op;
        if (entry && receives(items, *item.op))
          return; // it enters the repeat on another virtual stage, and arrives here as a message
        use(value, 2 * i + (entry ? 0 : 1));
      });
  }
  return uses;
}
