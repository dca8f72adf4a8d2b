//===- Costs.cpp - FLOPs and bytes of an op on one rank -------------------===//
#include "stage/IR/graph/Costs.h"
#include "stage/IR/graph/Packing.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IR/graph/ShardingRules.h"
#include "stage/Schedule/InferenceSymbols.h"

using namespace stage;

AxisSet stage::getCoordinateAxes(const Mesh &mesh, Size size) {
  AxisSet axes = 0;
  for (const std::string &symbol : collectSymbols(size))
    if (std::optional<AxisId> axis = getCoordinateAxis(mesh, symbol))
      axes |= toSet(*axis);
  return axes;
}

llvm::SmallVector<Size, 8> stage::getLocalIndexSizes(const Graph &graph, const Op &op) {
  return getLocalSizes(graph.mesh, op.extents, op.indexAxes);
}

namespace {
/// How a formula reads an operand: row by row at subscripts that are data, or all of it.
struct Reads {
  bool rows = false, all = false;
};

/// Finds the reads of an op's operands. Lets are visited once, after all that uses them.
class ReadFinder {
public:
  ReadFinder(const OpDef &def, llvm::MutableArrayRef<Reads> reads) : def(def), reads(reads), met(def.lets.size()) {
    for (auto &[name, let] : def.lets) // which uses only those before it
      areData.push_back(isData(let));
    for (const ResultInfo &result : def.results)
      if (result.formula)
        visit(result.formula);
    for (unsigned let = def.lets.size(); let-- > 0;)
      if (met[let])
        visit(def.lets[let].second);
  }

private:
  bool isData(const Formula *f) const {
    return f->kind == Formula::Kind::Element || (f->kind == Formula::Kind::Let && areData[f->operand]) ||
           llvm::any_of(f->children, [&](const Formula *child) { return isData(child); });
  }

  void visit(const Formula *f) {
    if (f->kind == Formula::Kind::Let)
      met[f->operand] = true;
    if (f->kind == Formula::Kind::Element) {
      bool atData = llvm::any_of(f->children, [&](const Formula *child) { return isData(child); });
      (atData ? reads[f->operand].rows : reads[f->operand].all) = true;
    }
    for (const Formula *child : f->children)
      visit(child);
  }

  const OpDef &def;
  llvm::MutableArrayRef<Reads> reads;
  std::vector<bool> areData, met; ///< Per let: it depends on an operand; something uses it.
};
} // namespace

static Size getBytes(const Graph &graph, const Value *value) {
  return getLocalBytes(graph.sizes, graph.mesh, value->type, value->sharding);
}

/// What an op that works on slots of which targets have as many as come reads of an operand that has the targets and no
/// slots, the weights of experts: that of targets that have a slot. Null for others.
static Size getBytesOfFilled(const Graph &graph, const Op &op, unsigned operand) {
  for (unsigned slot = 0; slot < op.extents.size(); ++slot) {
    const SlotLoad *load = graph.mesh.findUnevenSlots(op.extents[slot].dim);
    if (!load)
      continue;
    const auto &indices = op.def->operands[operand].indices;
    auto isTarget = [&](unsigned index) { return op.extents[index].dim == load->target; };
    auto target = llvm::find_if(indices, isTarget);
    if (target == indices.end() || llvm::is_contained(indices, slot))
      continue;
    const Value *value = op.getOperand(operand);
    llvm::SmallVector<Size, 8> sizes = getLocalSizes(graph.mesh, value->type.shape, value->sharding.dims);
    sizes[target - indices.begin()] =
        getFilledTargets(graph.mesh, *load, op.extents[*target], op.indexAxes[*target], op.indexAxes[slot]);
    return getPieceBytes(graph.sizes, value->type, sizes);
  }
  return Size();
}

/// Of a state that of each sequence of a unit is written, and that of those that have one is read.
static Size getAccessedBytes(const Graph &graph, const Value *value, bool isWrite) {
  Size bytes = getBytes(graph, value);
  return isStateOfEach(*value) ? bytes * graph.sizes.symbol(isWrite ? presentSymbol : resumedSymbol) : bytes;
}

/// Operands and results, once each. A table that is looked up moves what comes out of it.
static Size getTrafficBytes(const Graph &graph, const Op &op) {
  llvm::SmallVector<Reads, 8> reads(op.getNumOperands());
  ReadFinder(*op.def, reads);
  Size bytes = graph.sizes.zero();
  for (auto &result : op.getResults())
    bytes = bytes + getAccessedBytes(graph, result.get(), /*isWrite=*/true);
  for (unsigned i = 0; i < op.getNumOperands(); ++i) {
    if (llvm::is_contained(op.getOperands().take_front(i), op.getOperand(i)))
      continue;
    bool onlyRows = reads[i].rows && !reads[i].all;
    Size ofFilled = onlyRows ? Size() : getBytesOfFilled(graph, op, i);
    bytes =
        bytes + (ofFilled ? ofFilled
                          : getAccessedBytes(graph, onlyRows ? op.getResult(0) : op.getOperand(i), /*isWrite=*/false));
  }
  return bytes;
}

const Op *stage::getFusedAccumulation(const Graph &graph, const Value *value) {
  const Op *maker = value->getOp();
  if (graph.precision.separateAccumulation || !maker || maker->kind != OpKind::Compute || maker->def->isView ||
      value->getUses().size() != 1)
    return nullptr;
  auto [user, operand] = *value->getUses().begin();
  bool isAdded = user->kind == OpKind::Accumulate && operand == 0 && user->getBlock() == maker->getBlock() &&
                 user->getResult()->type.dtype == value->type.dtype;
  return isAdded ? user : nullptr;
}

bool stage::isSeparateAccumulation(const Graph &graph, const Op &op) {
  return op.kind == OpKind::Accumulate && !getFusedAccumulation(graph, op.getOperand(0));
}

Size stage::getPresence(const Graph &graph, const Op &op) {
  Size area = op.kind == OpKind::Compute && getPairedAxes(op) ? getLocalMaskArea(graph, op) : Size();
  return area && getCoordinateAxes(graph.mesh, area) ? min(graph.sizes.constant(1), area * 2)
                                                     : Size(); // halves are the least
}

/// The same for what adds up such steps: where one of two is nothing, nothing is added.
static Size getPresenceOfSum(const Graph &graph, const Op &op) {
  Size presence = getPresence(graph, op);
  for (const Value *operand : op.def->isSum ? op.getOperands() : llvm::ArrayRef<Value *>())
    if (Size of = operand->getOp() ? getPresence(graph, *operand->getOp()) : Size())
      presence = presence ? presence * of : of;
  return presence;
}

static OpCost getComputeCost(const Graph &graph, const Op &op) {
  llvm::SmallVector<Size, 8> sizes = getLocalIndexSizes(graph, op);
  Size area = getLocalMaskArea(graph, op);
  OpCost cost;
  cost.flops = getFlops(graph.sizes, *op.def, sizes, area);
  cost.recomputeFlops = getRecomputeFlops(graph.sizes, *op.def, sizes, area);
  if (!cost.recomputeFlops)
    cost.recomputeFlops = graph.sizes.zero();
  cost.bytes = op.def->isView ? graph.sizes.zero() : getDeclaredBytes(graph.sizes, *op.def, sizes, area);
  if (!cost.bytes)
    cost.bytes = getTrafficBytes(graph, op);
  // Where a unit has nothing of a dim the op does not even read its weights.
  for (const Extent &extent : op.extents)
    if (extent.dim && extent.dim->isOptional)
      cost.bytes = cost.bytes * min(graph.sizes.one(), extent.size);
  // What is added to a buffer is written, and the buffer is read before.
  for (auto &result : op.getResults())
    if (const Op *accumulation = getFusedAccumulation(graph, result.get()))
      cost.bytes = cost.bytes + getBytes(graph, accumulation->getResult());
  if (Size presence = getPresenceOfSum(graph, op)) {
    cost.bytes = cost.bytes * presence;
    for (Size *flops : {&cost.flops.contraction, &cost.flops.attention, &cost.flops.other})
      *flops = *flops * presence;
  }
  if (op.isRecomputed) {
    cost.recomputeFlops = cost.recomputeFlops + cost.flops.getTotal();
    cost.flops = {graph.sizes.zero(), graph.sizes.zero(), graph.sizes.zero()};
  }
  return cost;
}

static FlopCounts countOther(Size flops) {
  Size zero = flops.getContext().zero();
  return {zero, zero, flops};
}

/// Reads the gradients, reads and writes the optimizer's states and writes the parameter, which it reads only where no
/// master copy has its value.
static OpCost getUpdateCost(const Graph &graph, const Op &op) {
  const Value *param = op.getOperand(0), *gradient = op.getOperand(1);
  Size elements = getLocalElements(graph.sizes, graph.mesh, gradient->type, gradient->sharding);
  auto states = getStates(graph, op);
  bool hasMaster = llvm::any_of(states, [](const auto &state) { return state.first == Optimizer::masterState; });
  // The update is of what the gradient has of the parameter, in the form in which that is kept.
  Size bytes = getLocalBytes(graph.sizes, graph.mesh, param->type, gradient->sharding) * int64_t(hasMaster ? 1 : 2);
  for (const Value *addend : op.getOperands().drop_front())
    bytes = bytes + getBytes(graph, addend);
  for (auto &[name, type] : states)
    bytes = bytes + getByteCount(elements, type) * 2;
  Size flops = graph.optimizer.flops
                   ? substitute(graph.optimizer.flops,
                                [&](llvm::StringRef symbol) { return symbol == "volume" ? elements : Size(); })
                   : graph.sizes.zero();
  if (op.clips)
    flops = flops + elements; // each element of the gradient is scaled
  return {countOther(flops), graph.sizes.zero(), bytes};
}

/// `partition optimizer ... { whole_tied = true; }`: stages sum the gradient of a parameter that they share as the
/// buffer of which the operand is a shard. The last rule for the optimizer holds. `reduce gradients ... { apart = true;
/// }`: so do ranks along other axes than those of the rule.
static bool sendsWholeBuffer(const Graph &graph, const Op &op) {
  if (op.kind != OpKind::AllReduce)
    return false;
  if (op.stages.empty())
    return isOncePerStep(op.getBlock()->getPhase()) &&
           llvm::any_of(graph.rules,
                        [&](const Rule &rule) {
                          return rule.kind == RuleKind::ReduceGradients && rule.isApart &&
                                 !(toSet(rule.axes) & toSet(op.axes));
                        }) &&
           llvm::none_of(graph.rules, [](const Rule &rule) { // of these the buffer is a shard
             return rule.kind == RuleKind::PartitionGradients || rule.kind == RuleKind::PartitionParameters;
           });
  if (op.getBlock()->getParent())
    return false;
  bool isWhole = false;
  for (const Rule &rule : graph.rules)
    if (rule.kind == RuleKind::PartitionOptimizer)
      isWhole = rule.isWhole;
  return isWhole;
}

/// What a rank puts into a collective, sends or copies: all operands. Those that are scattered into flat storage are
/// padded, so that all members get as much. Of `over`, the most that a coordinate there has.
static Size getPutIn(const Graph &graph, const Op &sender, AxisSet over = 0) {
  Size bytes = graph.sizes.zero();
  bool isPadded = sender.kind == OpKind::ReduceScatter && sender.flat;
  for (unsigned i = 0; i < sender.getNumOperands(); ++i) {
    const Value *operand = sender.getOperand(i);
    Sharding sent = operand->sharding;
    if (sendsWholeBuffer(graph, sender))
      sent.flat.clear();
    TensorType type = operand->type;
    if (sender.kind == OpKind::AllGather) // shards are brought to the type of the whole before they are sent
      type.dtype = sender.getResult(i)->type.dtype;
    bytes = bytes + (isPadded ? getBytes(graph, sender.getResult(i)) * graph.mesh.getGroupSize(toSet(sender.axes))
                              : getLocalBytes(graph.sizes, graph.mesh, type, sent, over));
  }
  return bytes;
}

/// What the members of a group say alike, whatever each of them has (law L7). Where ranks have different parts of a dim
/// an all_to_all may give back more than it takes.
static Size getAgreedBytes(const Graph &graph, const Op &collective) {
  if (collective.kind == OpKind::Permute)
    return getPutIn(graph, collective); // sent to one member, not agreed upon
  AxisSet group = toSet(collective.axes);
  Size bytes = getPutIn(graph, collective, group);
  if (collective.kind != OpKind::AllToAll)
    return bytes;
  const Value *operand = collective.getOperand(0), *result = collective.getResult();
  bool hasSlots =
      llvm::any_of(operand->type.shape, [&](const Extent &extent) { return graph.mesh.findUnevenSlots(extent.dim); });
  if (!hasSlots && !((operand->sharding.getListed() | result->sharding.getListed()) & group))
    return bytes;
  return max(bytes, getLocalBytes(graph.sizes, graph.mesh, result->type, result->sharding, group));
}

/// A square and an addition per element, of which there are several addends where its update has; each rank that has an
/// element computes them.
static OpCost getNormCost(const Graph &graph, const Op &op) {
  const Value *gradient = op.getOperand(0);
  Size elements = getLocalElements(graph.sizes, graph.mesh, gradient->type, gradient->sharding),
       bytes = graph.sizes.zero();
  for (const Value *addend : op.getOperands())
    bytes = bytes + getBytes(graph, addend);
  return {countOther(elements * int64_t(op.getNumOperands() + 1)), graph.sizes.zero(), bytes};
}

OpCost stage::getLocalCost(const Graph &graph, const Op &op) {
  Size zero = graph.sizes.zero();
  if (op.kind == OpKind::AddNorm)
    return getNormCost(graph, op);
  if (op.kind == OpKind::Compute)
    return getComputeCost(graph, op);
  if (op.kind == OpKind::Update)
    return getUpdateCost(graph, op);
  if (op.kind == OpKind::Append) { // read where it was made, written where it is kept, and as that is
    const Value *added = op.getOperand(1), *cache = op.getOperand(0);
    TensorType taken = added->type;
    if (op.dim < cache->sharding.dims.size() &&
        !cache->sharding.dims[op.dim].empty()) { // each rank those that it keeps
      const Extent &extent = taken.shape[op.dim];
      Size first = extent.dim && extent.dim->origin ? extent.dim->origin : zero;
      llvm::ArrayRef<PlacedAxis> axes = cache->sharding.dims[op.dim];
      taken.shape[op.dim] = {nullptr, countInTurn(graph, first + extent.size, axes) - countInTurn(graph, first, axes)};
    }
    if (op.isRolling) { // of more positions than the cache keeps the last ones; what goes on from them has the others
                        // from where they were made
      Extent &extent = taken.shape[op.dim];
      extent = {nullptr, min(extent.size, cache->type.shape[op.dim].size)};
    }
    TensorType kept = taken;
    kept.quantization = cache->type.quantization;
    return {countOther(zero), zero,
            getLocalBytes(graph.sizes, graph.mesh, taken, added->sharding) +
                getLocalBytes(graph.sizes, graph.mesh, kept, added->sharding)};
  }
  if (isCacheCopy(op.kind))
    return {countOther(zero), zero, getBytes(graph, op.getResult())};
  if (isCopy(op.kind))
    return {countOther(zero), zero, getPutIn(graph, op)};
  if (isCommunication(op.kind))
    return {countOther(zero), zero, getAgreedBytes(graph, op), getPutIn(graph, op)};
  if (isSeparateAccumulation(graph, op)) {
    // buffer += contribution
    const Value *contribution = op.getOperand(0), *buffer = op.getResult(0);
    return {countOther(getLocalElements(graph.sizes, graph.mesh, buffer->type, buffer->sharding)), zero,
            getBytes(graph, contribution) + getBytes(graph, buffer) * 2};
  }
  return {countOther(zero), zero, zero};
}

bool stage::hasNode(const Graph &graph, const Op &op) {
  if (isCommunication(op.kind) || isCopy(op.kind))
    return true;
  if (isView(op))
    return false;
  // What declares no bytes moves at least its results, so that there is nothing to add up.
  if (op.kind == OpKind::Compute && !op.def->bytes && !(op.def->vjpOf && op.def->vjpOf->bytes))
    return true;
  bool isWork =
      op.kind == OpKind::Compute || op.kind == OpKind::Update || op.kind == OpKind::Append || isAddition(op.kind);
  return isWork && !getLocalCost(graph, op).bytes.isConstant(0);
}
