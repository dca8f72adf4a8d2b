//===- SettleAxes.cpp - which index gets an axis (law L5) -----------------===//
//
// Problem: operands of an op carry axes on different indices, and each axis can stand on one.
//
//   %n : {B@dp, S@tp, D}   %w : {D, F@tp}
//   %y = linear(%n, %w)       tp is claimed on s by %n, on f by %w
//
// Algorithm: an axis stays where a parameter or the gradient of one carries it; else where the
// fewest bytes move; ties go to the leftmost operand (--remarks tell). Axes are settled in their order; those that are
// not settled yet count as being where they are claimed first.
//
//===----------------------------------------------------------------------===//
#include "SettleAxes.h"
#include "stage/IR/graph/ShardingRules.h"
#include "stage/IR/text/Text.h"
#include "stage/Machine/Traffic.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/sharding/CheckSizes.h"
#include <map>

using namespace stage;

/// The parameter whose gradient a result is, if it is one.
static const Value *gradientOf(const Value *value) {
  for (auto [user, operand] : value->getUses())
    if (user->kind == OpKind::Accumulate && operand == 0)
      return user->getOperand(1);
  return nullptr;
}

AxisSet AxisSettler::settle(Op &op, llvm::ArrayRef<bool> fixed, AxisSet taken) {
  const OpDef &def = *op.def;
  // In order of axes, so that the outcome does not depend on who claims first.
  Claims claims(graph.mesh.getAxes().size());
  collectClaims(op, fixed, taken, claims);
  AxisSet copies = dropClaimsOfGathered(op, taken, claims);
  // Axes that are not settled yet count as being where they are claimed first.
  llvm::SmallVector<AxisSet, 8> assigned(def.indices.size(), 0);
  for (AxisId axis = 0; axis < claims.size(); ++axis)
    if (!claims[axis].empty())
      assigned[claims[axis].front().index] |= AxisSet(1) << axis;
  for (AxisId axis = 0; axis < claims.size(); ++axis)
    if (!claims[axis].empty()) {
      assigned[claims[axis].front().index] &= ~(AxisSet(1) << axis);
      assigned[choose(op, axis, claims[axis], assigned)] |= AxisSet(1) << axis;
    }
  for (unsigned index = 0; index < def.indices.size(); ++index)
    if (!fixed[index] && !def.indices[index].isCompound())
      op.indexAxes[index] = orderAxes(op, index, assigned[index]);
  return copies | findCopiesOfGroups(op);
}

void AxisSettler::noteGathers(const Op &op) {
  for (unsigned i = 0; i < op.getNumOperands(); ++i) {
    AxisSet needed = 0;
    for (unsigned index : op.def->operands[i].indices)
      needed |= toSet(op.indexAxes[index]);
    if (AxisSet axes = op.getOperand(i)->sharding.getSharded() & ~needed)
      gathered[{op.getOperand(i), op.getBlock()}] |= axes;
  }
}

bool AxisSettler::isGathered(const Value *value, AxisId axis, const Op &user) const {
  for (const Block *block = user.getBlock(); block;
       block = block->getParent() ? block->getParent()->getBlock() : nullptr)
    if (gathered.lookup({value, block}) >> axis & 1)
      return true;
  return false;
}

AxisList AxisSettler::getAxesOfCarrier(const Op &op, unsigned index, const AxisList &axes) const {
  unsigned carrier = op.def->getCarrier(index);
  return carrier == index ? axes : getLeadingAxes(graph, op.extents[carrier].size, axes);
}

void AxisSettler::collectClaims(Op &op, llvm::ArrayRef<bool> fixed, AxisSet taken, Claims &claims) const {
  const OpDef &def = *op.def;
  auto claim = [&](const Sharding &sharding, llvm::ArrayRef<unsigned> indices, unsigned operand, bool stationary) {
    for (unsigned d = 0; d < sharding.dims.size(); ++d) {
      unsigned index = def.getCarrier(indices[d]);
      for (AxisId axis : getAxesOfCarrier(op, indices[d], sharding.dims[d]))
        if (!fixed[index] && def.shardable[index] && !(taken >> axis & 1) && areAddendsOver(op, index, axis))
          claims[axis].push_back({index, operand, stationary});
    }
  };
  for (unsigned i = 0; i < op.getNumOperands(); ++i)
    claim(op.getOperand(i)->sharding, def.operands[i].indices, i, wanted.isStationary(op.getOperand(i)));
  for (unsigned i = 0; i < op.getNumResults(); ++i)
    if (const Value *param = gradientOf(op.getResult(i)))
      claim(param->sharding, def.results[i].indices, ~0u, true);
  // Tokens are routed where they are, and what is routed moves.
  if (const Routing *routing = def.getRouting())
    for (auto &list : claims)
      if (llvm::any_of(list, [&](const Claim &claim) { return llvm::is_contained(routing->tokens, claim.index); }))
        llvm::erase_if(list, [&](const Claim &claim) { return claim.index == routing->target; });
}

/// Of a product that is a part of a kernel: axes along which parts before it split matrices of their own.
static AxisSet getAxesOfOtherParts(const Op &op) {
  const KernelPart &part = op.def->part;
  AxisSet axes = 0;
  if (part.kernel.empty() || part.isAddend || op.origin)
    return axes;
  const Value *common = op.getOperand(0);
  for (auto [user, operand] : common->getUses()) {
    bool isPart = operand == 0 && user->kind == OpKind::Compute && user != &op && user->getBlock() == op.getBlock() &&
                  !user->origin && user->def->part.kernel == part.kernel && user->scope == op.scope &&
                  user->def->part.number < part.number;
    for (unsigned index = 0; isPart && index < user->indexAxes.size(); ++index)
      if (!llvm::is_contained(user->def->operands.front().indices, index))
        axes |= toSet(user->indexAxes[index]);
  }
  return axes;
}

/// An axis that stands on a dim beside one that must leave it, of operands that are gathered over both for an op
/// before, stands nowhere: what is gathered already is taken, and the result, which has copies, need not be gathered.
///
///   x : {S@(tp.0, tp.1), D}   wq : {D, KV@tp.0, G@tp.1}   wk : {D, KV@tp.0}
///   q gathers x over both axes, and k takes what has been gathered
///
/// So does an axis along which another product of the same kernel splits its own matrix, unless the result is wanted in
/// parts along it: with one key/value head G@tp, k takes what q gathers.
AxisSet AxisSettler::dropClaimsOfGathered(const Op &op, AxisSet taken, Claims &claims) const {
  std::optional<AxisSet> ofOtherParts; // a kernel may have thousands of parts, and few take what is gathered
  auto isOfOtherParts = [&](AxisId axis) {
    if (!ofOtherParts)
      ofOtherParts = getAxesOfOtherParts(op);
    return *ofOtherParts >> axis & 1 &&
           llvm::none_of(op.getResults(), [&](auto &result) { return findWantedPlace(*result, axis).has_value(); });
  };
  auto isDropped = [&](AxisId axis, const Claim &claim, bool takesSum) {
    if (claim.operand == ~0u || claim.stationary)
      return false;
    if (!takesSum && !isGathered(op.getOperand(claim.operand), axis, op))
      return false;
    if (takesSum || isOfOtherParts(axis))
      return true;
    for (const AxisList &list : op.getOperand(claim.operand)->sharding.dims)
      if (llvm::is_contained(list, axis))
        return llvm::any_of(list, [&](AxisId beside) {
          auto takes = [&](const Claim &other) { return other.stationary && other.index != claim.index; };
          return beside != axis && ((taken >> beside & 1) || llvm::any_of(claims[beside], takes));
        });
    return false;
  };
  AxisSet dropped = 0;
  for (AxisId axis = 0; axis < claims.size(); ++axis) {
    if (claims[axis].empty())
      continue;
    // Where another operand is a sum over the copies, what is made of both is one, too.
    bool takesSum = llvm::any_of(op.getOperands(), [&](const Value *value) {
      return value->sharding.partial >> axis & 1 && value->primal && wanted.hasCopies(*value->primal, axis);
    });
    if (llvm::all_of(claims[axis], [&](const Claim &claim) { return isDropped(axis, claim, takesSum); }))
      dropped |= AxisSet(1) << axis;
  }
  for (AxisId axis : toList(dropped))
    claims[axis].clear();
  return dropped;
}

/// Axes over which ranks that have the same part of a parameter make the same of it, where that is split over the other
/// axes of one name: `tp = (tp.0, tp.1)` of query heads, of which a key/value head has tp.0.
AxisSet AxisSettler::findCopiesOfGroups(const Op &op) const {
  AxisSet used = 0, ofParams = 0, copies = 0;
  if (op.origin)
    return 0;
  for (const AxisList &list : op.indexAxes)
    used |= toSet(list);
  for (const Value *operand : op.getOperands())
    if (wanted.isStationary(operand))
      ofParams |= operand->sharding.getSharded();
  for (const AxisGroup &group : graph.mesh.getGroups()) {
    AxisSet axes = 0;
    for (AxisId axis : group.axes)
      axes |= AxisSet(1) << axis;
    if (axes & ofParams)
      copies |= axes & ~used;
  }
  return copies;
}

/// The index that gets the axis; `others` are the axes of each index besides.
unsigned AxisSettler::choose(Op &op, AxisId axis, llvm::ArrayRef<Claim> claims, llvm::ArrayRef<AxisSet> others) const {
  llvm::SmallVector<unsigned, 4> candidates;
  for (const Claim &claim : claims)
    if (!llvm::is_contained(candidates, claim.index))
      candidates.push_back(claim.index);
  if (candidates.size() == 1)
    return candidates.front();
  auto isHeld = [&](unsigned index) {
    return llvm::any_of(claims, [&](const Claim &claim) { return claim.index == index && claim.stationary; });
  };
  llvm::SmallVector<unsigned, 4> held;
  llvm::copy_if(candidates, std::back_inserter(held), isHeld);
  std::string reason;
  unsigned winner;
  if (held.size() == 1) {
    winner = held.front();
    reason = "a parameter or its gradient carries it there";
  } else {
    llvm::ArrayRef<unsigned> among = held.empty() ? candidates : held;
    winner = among.front();
    __int128 least = getBytesMoved(op, axis, winner, claims, others);
    for (unsigned index : among.drop_front()) {
      __int128 bytes = getBytesMoved(op, axis, index, claims, others);
      if (bytes < least) {
        least = bytes;
        winner = index;
      }
    }
    reason = "the fewest bytes move";
  }
  if (diags.getShowRemarks()) {
    std::string names;
    for (unsigned index : candidates)
      names += (names.empty() ? "'" : ", '") + op.def->indices[index].name + "' (" +
               std::to_string(int64_t(getBytesMoved(op, axis, index, claims, others))) + " bytes)";
    diags.report(op.loc, diag::ConflictDecided)
        << graph.mesh[axis].name << names << op.def->indices[winner].name << reason;
  }
  return winner;
}

/// Bytes a rank receives if `axis` stays on `index`: operands that have the axis elsewhere are gathered over it,
/// unless they are anyway; a result that is wanted with the axis elsewhere is resharded.
__int128 AxisSettler::getBytesMoved(Op &op, AxisId axis, unsigned index, llvm::ArrayRef<Claim> claims,
                                    llvm::ArrayRef<AxisSet> others) const {
  __int128 bytes = 0;
  int64_t size = graph.mesh[axis].size;
  for (const Claim &claim : claims)
    if (claim.index != index && claim.operand != ~0u && !isGathered(op.getOperand(claim.operand), axis, op))
      bytes += getCheckedBytes(graph, op.getOperand(claim.operand)->type, op.getOperand(claim.operand)->sharding) *
               getTraffic(CollectiveKind::AllGather, size).numerator;
  for (unsigned i = 0; i < op.getNumResults(); ++i) {
    const Value &result = *op.getResult(i);
    std::optional<unsigned> place = findWantedPlace(result, axis);
    llvm::SmallVector<unsigned, 4> indices;
    for (unsigned dim : op.def->results[i].indices)
      indices.push_back(op.def->getCarrier(dim));
    bool absent = !llvm::is_contained(indices, index);
    if (op.def->results[i].extra || (!absent && (!place || indices[*place] == index)))
      continue;
    Sharding sharding = Sharding::replicated(result.type.getNumDims());
    for (unsigned d = 0; d < indices.size(); ++d)
      sharding.dims[d] = op.indexAxes[indices[d]].empty() ? toList(others[indices[d]]) : op.indexAxes[indices[d]];
    __int128 whole = getCheckedBytes(graph, result.type, sharding); // over `axis`
    // Partial: one reduction of all of it. Sharded elsewhere: of its piece a rank keeps one part and gets the others.
    Traffic traffic = getTraffic(!absent ? CollectiveKind::AllToAll
                                 : place ? CollectiveKind::ReduceScatter
                                         : CollectiveKind::AllReduce,
                                 size);
    bytes += whole * traffic.numerator / (traffic.denominator * (absent ? 1 : size));
  }
  return bytes;
}

std::optional<unsigned> AxisSettler::findWantedPlace(const Value &value, AxisId axis) const {
  if (const Wanted *demand = wanted.find(value))
    for (unsigned d = 0; d < demand->dims.size(); ++d)
      if (demand->dims[d] && llvm::is_contained(*demand->dims[d], axis))
        return d;
  for (unsigned d = 0; d < value.constraint.floors.size(); ++d)
    if (llvm::is_contained(value.constraint.floors[d], axis))
      return d;
  return std::nullopt;
}

/// The order of the axes on an index: that of the stationary operand if there is one, else of the operand that
/// has the most of them; axes that it lacks follow.
AxisList AxisSettler::orderAxes(const Op &op, unsigned index, AxisSet axes) const {
  AxisList best;
  std::map<AxisId, PlacedAxis> seen; // in the layout of whoever has them first
  bool bestStationary = false;
  auto offer = [&](const Sharding &sharding, llvm::ArrayRef<unsigned> indices, bool stationary) {
    for (unsigned d = 0; d < sharding.dims.size(); ++d) {
      if (op.def->getCarrier(indices[d]) != index)
        continue;
      AxisList list;
      for (const PlacedAxis &axis : sharding.dims[d])
        if (axes >> axis & 1) {
          list.push_back(axis);
          if (!seen.count(axis))
            seen[axis] = axis;
        }
      if (list.size() > best.size() || (list.size() == best.size() && stationary && !bestStationary)) {
        best = list;
        bestStationary = stationary;
      }
    }
  };
  for (unsigned i = 0; i < op.getNumOperands(); ++i)
    offer(op.getOperand(i)->sharding, op.def->operands[i].indices, wanted.isStationary(op.getOperand(i)));
  for (unsigned i = 0; i < op.getNumResults(); ++i)
    if (const Value *param = gradientOf(op.getResult(i)))
      offer(param->sharding, op.def->results[i].indices, true);
  for (AxisId axis = 0; axis < graph.mesh.getAxes().size(); ++axis)
    if ((axes >> axis & 1) && !llvm::is_contained(best, axis))
      best.push_back(seen.count(axis) ? seen[axis] : PlacedAxis(axis));
  return best;
}
