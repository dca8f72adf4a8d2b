//===- FormulaIndices.cpp - where a formula stands ------------------------===//
//
// An index that is several as one has no position of its own: it is where its members are. Of an op that routes some
// indices have none either: at a slot the token that is there says where they are, at a token its slot.
//
//===----------------------------------------------------------------------===//
#include "FormulaEvaluator.h"
#include "stage/IR/algebra/RoutedApart.h"

using namespace stage;
using namespace stage::interp;

/// A dim holds the positions of the product of its parts, of which all but the outermost are whole.
int64_t FormulaEvaluator::getLocal(unsigned index) const {
  if (!def.indices[index].isCompound())
    return at[index];
  int64_t local = 0;
  for (unsigned member : def.indices[index].members)
    local = local * int64_t(in.positions[member].size()) + at[member];
  return local;
}

int64_t FormulaEvaluator::getPosition(unsigned index) const {
  if (!def.indices[index].isCompound())
    return in.positions[index][at[index]];
  int64_t position = 0;
  for (unsigned member : def.indices[index].members)
    position = position * in.sizes[member] + in.positions[member][at[member]];
  return position;
}

void FormulaEvaluator::setLocal(unsigned index, int64_t local) {
  if (!def.indices[index].isCompound()) {
    at[index] = local;
    return;
  }
  for (unsigned member : llvm::reverse(def.indices[index].members)) {
    int64_t size = int64_t(in.positions[member].size());
    at[member] = local % size;
    local /= size;
  }
}

void FormulaEvaluator::addStrides(unsigned index, int64_t &stride,
                                  llvm::SmallVectorImpl<std::pair<unsigned, int64_t>> &strides) const {
  llvm::SmallVector<unsigned, 4> parts = def.expand(index); // reverse() would keep a reference to one without a name
  for (unsigned part : llvm::reverse(parts)) {
    strides.emplace_back(part, stride);
    stride *= int64_t(in.positions[part].size());
  }
}

FormulaEvaluator::IndexSet FormulaEvaluator::toSet(llvm::ArrayRef<unsigned> indices) const {
  IndexSet set(def.indices.size());
  for (unsigned index : def.expand(indices))
    set.set(index);
  return set;
}

/// Of an element of the integers that route, by its number: in which of the sets it is that are routed apart.
static int64_t getSet(const Invocation &in, int64_t token) {
  const Routing &routing = *in.def->routing;
  int64_t set = 0, stride = 1;
  for (unsigned index : llvm::reverse(in.def->operands[routing.operand].indices)) {
    int64_t size = int64_t(in.positions[index].size());
    if (!llvm::is_contained(routing.tokens, index)) {
      set += token % size * stride;
      stride *= size;
    }
    token /= size;
  }
  return set;
}

/// A target takes tokens in their order, one per slot, as long as it has slots. Where there are fewer slots than tokens
/// the others are dropped.
void FormulaEvaluator::routeTokens() {
  const Routing &routing = *def.routing;
  const Tensor *integers = in.operands[routing.operand];
  if (!integers)
    return fail("the backward of this operator needs operand '" + def.operands[routing.operand].name +
                "', which it does not save");
  const Positions &targets = in.positions[routing.target];
  int64_t numSlots = int64_t(in.positions[routing.slot].size()), numTargets = in.sizes[routing.target], numApart = 1;
  for (unsigned index : getApart(def))
    numApart *= int64_t(in.positions[index].size());
  std::vector<int64_t> taken(numApart * numTargets, 0);
  placeOfToken.assign(integers->data.size(), -1);
  tokenAtPlace.assign(numApart * targets.size() * numSlots, -1);
  for (size_t token = 0; token < integers->data.size(); ++token) {
    int64_t target = int64_t(integers->data[token]), apart = getSet(in, int64_t(token));
    if (target < 0 || target >= numTargets)
      return fail("a token is routed to " + std::to_string(target) + ", and index '" +
                  def.indices[routing.target].name + "' has " + std::to_string(numTargets) + " positions");
    int64_t slot = taken[apart * numTargets + target]++;
    bool isDropping = in.drops || numSlots * int64_t(taken.size()) < int64_t(integers->data.size());
    if (slot >= numSlots && isDropping)
      continue;
    if (slot >= numSlots)
      return fail("more tokens are routed to " + std::to_string(target) + " than the " + std::to_string(numSlots) +
                  " slots that index '" + def.indices[routing.slot].name + "' has for them");
    auto it = llvm::lower_bound(targets, target);
    if (it == targets.end() || *it != target)
      continue;
    placeOfToken[token] = (apart * int64_t(targets.size()) + (it - targets.begin())) * numSlots + slot;
    tokenAtPlace[placeOfToken[token]] = int64_t(token);
  }
}

std::optional<int64_t> FormulaEvaluator::findLocal(unsigned index) const {
  if (!def.routing || !def.routing->isRouted(index))
    return getLocal(index);
  const Routing &routing = *def.routing;
  int64_t numSlots = int64_t(in.positions[routing.slot].size()),
          numTargets = int64_t(in.positions[routing.target].size());
  llvm::ArrayRef<unsigned> indices = def.operands[routing.operand].indices;
  if (routing.toSlots) {
    int64_t apart = 0;
    for (unsigned other : getApart(def))
      apart = apart * int64_t(in.positions[other].size()) + at[other];
    int64_t place = (apart * numTargets + at[routing.target]) * numSlots + at[routing.slot];
    int64_t token = tokenAtPlace.empty() ? -1 : tokenAtPlace[place];
    for (unsigned i = indices.size(); token >= 0 && i-- > 0;) {
      int64_t size = int64_t(in.positions[indices[i]].size());
      if (indices[i] == index)
        return token % size;
      token /= size;
    }
    return std::nullopt;
  }
  int64_t token = 0;
  for (unsigned other : indices)
    token = token * int64_t(in.positions[other].size()) + at[other];
  int64_t place = placeOfToken.empty() ? -1 : placeOfToken[token];
  if (place < 0)
    return std::nullopt;
  return index == routing.target ? place / numSlots % numTargets : place % numSlots;
}
