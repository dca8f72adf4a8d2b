//===- SlotShares.cpp - which work is on slots without a token ------------===//
#include "SlotShares.h"
#include "stage/IR/algebra/RoutedApart.h"

using namespace stage;

SlotShares::SlotShares(Graph &graph) : graph(graph) {
  if (llvm::any_of(graph.defs.all(), [](const OpDef *def) { return def->routing.has_value(); }))
    graph.walk([&](Op &op) { visit(op); });
}

std::optional<Rational> SlotShare::countFilled(const SizeBinding &binding) const {
  SizeValue all = evaluate(slots, binding), given = evaluate(choices, binding);
  if (!all || !given)
    return std::nullopt;
  if (!load || load->isDropless)
    return given.value.compare(all.value) < 0 ? given.value : all.value;
  // On each source, and of each target, as many as come or as there are slots.
  SizeValue ofSource = evaluateCount(load->getChoicesOfSource(), binding),
            sources = evaluateCount(load->getNumSources(), binding),
            perTarget = evaluateCount(slots / (targets * load->getNumSources()), binding);
  std::shared_ptr<const SizeTable> table = binding.lookupTable(load->table);
  if (!ofSource || !sources || !perTarget || !table)
    return std::nullopt;
  Rational filled;
  for (int64_t share : apportion(table->entries, int64_t(ofSource.value.num)))
    filled.num += std::min(share, int64_t(perTarget.value.num));
  return filled.mul(sources.value);
}

SlotShare SlotShares::getShare(const Op &op, const Routing &routing) const {
  SlotShare share{op.extents[routing.tokens.front()].size,
                  op.extents[routing.target].size * op.extents[routing.slot].size,
                  graph.mesh.findSlotLoad(op.extents[routing.slot].dim), op.extents[routing.target].size};
  for (unsigned token : llvm::ArrayRef<unsigned>(routing.tokens).drop_front())
    share.choices = share.choices * op.extents[token].size;
  for (unsigned index : getApart(*op.def)) {
    share.choices = share.choices * op.extents[index].size;
    share.slots = share.slots * op.extents[index].size;
  }
  if (share.load && share.load->isDropless)
    share.slots = share.choices;
  // Of what is in slots already as much is routed as these have.
  for (unsigned i = 0; i < op.getNumOperands(); ++i)
    if (auto it = ofValues.find(op.getOperand(i)); it != ofValues.end())
      if (const auto &[dim, before] = it->second;
          llvm::is_contained(routing.tokens, op.def->operands[i].indices[dim])) {
        share.choices = share.choices * min(before.choices, before.slots) / before.slots;
        break;
      }
  return share;
}

std::optional<SlotShare> SlotShares::getRouted(const Op &op) const {
  const Routing *routing = op.kind == OpKind::Compute && op.def->routing ? &*op.def->routing : nullptr;
  bool isFirst = routing && routing->toSlots && firstByIntegers.lookup(op.getOperand(routing->operand)) == &op;
  return isFirst ? std::optional<SlotShare>(getShare(op, *routing)) : std::nullopt;
}

void SlotShares::visit(const Op &op) {
  if (op.kind != OpKind::Compute) {
    if (isMove(op.kind))
      for (auto &result : op.getResults())
        if (auto it = ofValues.find(getMoved(*result)); it != ofValues.end())
          ofValues[result.get()] = std::pair(it->second);
    return;
  }
  const OpDef &def = *op.def;
  std::optional<unsigned> slot;
  SlotShare share;
  if (const Routing *routing = def.getRouting()) {
    slot = routing->slot;
    share = getShare(op, *routing);
    if (def.routing && routing->toSlots)
      firstByIntegers.try_emplace(op.getOperand(routing->operand), &op);
  }
  for (unsigned i = 0; i < op.getNumOperands() && !slot; ++i)
    if (auto it = ofValues.find(op.getOperand(i)); it != ofValues.end()) {
      slot = def.operands[i].indices[it->second.first];
      share = it->second.second;
    }
  if (!slot)
    return;
  for (auto &result : op.getResults()) {
    const auto &indices = def.results[result->getNumber()].indices;
    auto place = llvm::find(indices, *slot);
    if (place != indices.end())
      ofValues[result.get()] = {unsigned(place - indices.begin()), share};
  }
  // What is done per token and choice is not done per slot.
  if (!def.getRouting() ||
      llvm::any_of(def.flopTerms, [&](const FlopTerm &term) { return llvm::is_contained(term.indices, *slot); }))
    ofOps[&op] = share;
}
