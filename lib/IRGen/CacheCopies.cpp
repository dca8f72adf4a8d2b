//===- CacheCopies.cpp - what moves between caches and the host -----------===//
//
// Problem: a server whose caches are full copies those of some requests to the host, and back when there is room; and
// what requests have in common at the beginning of their prompts it keeps there, and loads. These bytes move beside
// what is computed, and what reads a cache waits for them.
//
//   storing { repeat layers (0..L) loop 0 () do { %s = store(%keys) dim 1 : bf16[1, stored, KV, E]; ... yield; } }
//   loading { repeat layers (0..L) loop 0 () do { %l = load(%keys) dim 1 : bf16[1, loaded, KV, E]; ... yield; } }
//   forward, decode    %all = append(%keys, %k) dim 1 : ... after %s, %l
//
// Algorithm: both are phases of their own, whose units stand in front of that of their iteration where something moves.
// Each copies of every cache, in the order of the model, the positions that units bind; of several sequences that is
// the sum, of caches that keep a window that of what each keeps of it (SequenceSum), of states one for each. Whatever
// appends to a cache waits for the copies of that cache in front of its unit: what is stored must not be overwritten,
// and what is loaded be there, for attention reads what was appended. So does what reads a state.
//
//===----------------------------------------------------------------------===//
#include "ModuleLowering.h"
#include "stage/IR/graph/Packing.h"
#include "stage/Sema/InferenceWords.h"
#include "llvm/ADT/DenseMap.h"

using namespace stage;

/// Positions of a cache that are copied, of all of which there are `moved`; of a state one for each sequence.
Extent ModuleLowering::getMoved(const Cache &cache, const Dim &moved) {
  if (!cache.last && cache.along)
    return {&moved, moved.size};
  Size ofOne = min(cache.along ? cache.last : graph.sizes.one(), moved.size);
  SequenceSum sum{"", ofOne, ofOne, job.stepRange.Start};
  if (const SequenceSum *known = findSum(graph, sum))
    return {graph.findDim(known->symbol), graph.sizes.symbol(known->symbol)};
  for (unsigned number = 0; !dimNames.insert(sum.symbol = moved.name + std::to_string(number)).second;)
    ++number;
  Dim *dim = graph.addDim(sum.symbol, graph.sizes.symbol(sum.symbol), job.stepRange.Start);
  dim->isOptional = true;
  graph.sums.push_back(sum);
  return {dim, dim->size};
}

void ModuleLowering::copyCaches(PhaseKind phase) {
  Dim *moved = addInferredDim(phase == PhaseKind::Store ? storedSymbol : loadedSymbol, 0);
  moved->isOptional = true;
  Block &block = graph.getPhase(phase);
  llvm::DenseMap<const Value *, const Cache *> known;
  for (auto &entry : caches)
    known[entry.second.value] = &entry.second;
  Graph::walk(graph.getForward(), [&](Op &op) {
    if (op.kind != OpKind::Cache)
      return;
    Value *cache = op.getResult();
    auto copy = std::make_unique<Op>(phase == PhaseKind::Store ? OpKind::Store : OpKind::Load, op.loc);
    copy->scope = op.scope;
    copy->dim = known.lookup(cache)->along.value_or(0);
    copy->addOperand(cache);
    TensorType type = cache->type;
    type.shape[copy->dim] = getMoved(*known.lookup(cache), *moved);
    Value *part = copy->addResult(type, cache->path);
    part->loc = op.loc;
    for (auto [user, operand] : cache->getUses())
      if (user->kind == OpKind::Append || user->kind == OpKind::Compute) // what reads a state
        user->after.push_back({part});
    Op *repeat = op.getBlock()->getParent();
    if (!repeat)
      block.append(std::move(copy));
    else
      addLoop(*repeat, block).bodies[op.getBlock()->getNumber()]->append(std::move(copy));
  });
  for (auto &op : block)
    for (auto &body : op->bodies)
      body->append(std::make_unique<Op>(OpKind::Yield, op->loc));
}

/// The same repeat in another phase, where it carries nothing.
Op &ModuleLowering::addLoop(const Op &repeat, Block &block) {
  for (auto &op : block)
    if (op->kind == OpKind::Repeat && op->loop == repeat.loop)
      return *op;
  auto loop = std::make_unique<Op>(static_cast<const OpAttributes &>(repeat));
  for (size_t i = 0; i < repeat.bodies.size(); ++i)
    loop->addBody(graph);
  return *block.append(std::move(loop));
}
