//===- TaskWork.cpp - what an op computes, as a machine prices it ---------===//
#include "stage/Tasks/TaskWork.h"
#include "stage/IR/algebra/AttentionIndices.h"
#include "stage/IR/graph/Costs.h"
#include "stage/IR/graph/Packing.h"

using namespace stage;

/// Those of an op that is priced as attention. FLOPs that are computed again are of the class that they were of.
static Size getAttentionFlops(const Graph &graph, const Op &op, const OpCost &cost) {
  if (op.def->isProduct)
    return graph.sizes.zero();
  if (!op.isRecomputed)
    return cost.flops.attention;
  return getFlops(graph.sizes, *op.def, getLocalIndexSizes(graph, op), getLocalMaskArea(graph, op)).attention;
}

namespace {
using IndexSet = AttentionIndices::Set;

/// Finds the shape of one op.
class WorkFinder {
public:
  WorkFinder(const Graph &graph, const Op &op, const OpCost &cost, const Kernels *kernels,
             llvm::function_ref<int64_t(Size)> evaluate)
      : graph(graph), op(op), cost(cost), def(*op.def), kernels(kernels), evaluate(evaluate),
        sizes(getLocalIndexSizes(graph, op)) {}

  void find(Work &work) const {
    if (work.flops > 0 && evaluate(getAttentionFlops(graph, op, cost)) > 0)
      findAttention(work);
    else if (!def.terms.empty())
      findProducts(work, def.terms);
    else if (def.isProduct && def.operands.size() == 2 && countsAsContraction()) {
      if (!addsUpElements())
        findProducts(work, {{0, {0, 1}}});
    } else if (countsAsContraction())
      findLargest(work);
  }

private:
  bool countsAsContraction() const {
    auto isContraction = [](const FlopTerm &term) { return term.flopClass == FlopClass::Contraction; };
    const OpDef &forward = def.vjpOf ? *def.vjpOf : def;
    return forward.declaredClass != FlopClass::Other && llvm::any_of(def.flopTerms, isContraction) &&
           evaluate(cost.getComputed()) > 0;
  }
  /// Of a product in which neither operand has an index of its own each element is used once, as in the gradient of a
  /// scale.
  bool addsUpElements() const { return toSet(def.operands[0].indices) == toSet(def.operands[1].indices); }
  int64_t getBytes(const Value &value) const {
    return evaluate(getLocalBytes(graph.sizes, graph.mesh, value.type, value.sharding));
  }

  IndexSet toSet(llvm::ArrayRef<unsigned> indices) const {
    IndexSet set;
    for (unsigned index : def.expand(indices))
      set.insert(index);
    return set;
  }
  int64_t getVolume(llvm::function_ref<bool(unsigned)> counts) const {
    int64_t volume = 1;
    for (unsigned index = 0; index < def.indices.size(); ++index)
      if (!def.indices[index].isCompound() && counts(index))
        volume *= evaluate(sizes[index]);
    return volume;
  }

  /// In which type elements are multiplied: the one that they are kept in.
  static DType getKeptType(const Value &value) {
    return value.type.quantization ? value.type.quantization->type : value.type.dtype;
  }
  static bool isBlockScaled(const Value &value) {
    return value.type.quantization && !value.type.quantization->blocks.empty();
  }
  /// Of two the wider one, into which a kernel brings the other.
  static DType getWider(DType a, DType b) { return getBitSize(a) < getBitSize(b) ? b : a; }

  /// It is a parameter, perhaps in another piece, type or form.
  static bool isParameter(const Value *value) {
    while (const Op *maker = value->getOp()) {
      if (isState(maker->kind))
        return maker->kind != OpKind::Cache;
      bool isForm = isMove(maker->kind) || (maker->kind == OpKind::Compute && maker->getNumOperands() == 1 &&
                                            (maker->def->isView || maker->def->isElementwise));
      if (!isForm)
        return false;
      value = maker->getOperand(maker->getNumOperands() == 1 ? 0 : value->getNumber());
    }
    return false;
  }
  /// A kernel brings a parameter that is wider than its result into that type.
  DType getReadType(const Value &value) const {
    DType kept = getKeptType(value), made = op.getResult()->type.dtype;
    return isParameter(&value) && isFloat(made) && getBitSize(kept) > getBitSize(made) ? made : kept;
  }
  bool isGradientOfParameter() const {
    return llvm::any_of(op.getResults(), [](const auto &result) {
      return llvm::any_of(result->getUses(), [](auto use) { return use.first->kind == OpKind::Accumulate; });
    });
  }

  void setResult(Work &work) const {
    for (const auto &result : op.getResults()) {
      work.resultBytes += getBytes(*result);
      if (const Op *addition = getFusedAccumulation(graph, result.get()))
        work.resultBytes += getBytes(*addition->getResult());
    }
  }

  void findProducts(Work &work, llvm::ArrayRef<ProductTerm> terms) const {
    work.kind = WorkKind::Contraction;
    setResult(work);
    bool hasParameter = false;
    const Value *common = nullptr; // what the products of a kernel share, that has the rows
    for (const ProductTerm &term : terms) {
      if (term.operands.size() != 2)
        continue;
      unsigned a = term.operands[0], b = term.operands[1];
      bool hasWeights = isParameter(op.getOperand(b));
      if (!hasWeights && (isParameter(op.getOperand(a)) || isGradientOfParameter())) {
        std::swap(a, b);
        hasWeights = isParameter(op.getOperand(b));
      }
      hasParameter |= hasWeights;
      work.type = getWider(getReadType(*op.getOperand(a)), getReadType(*op.getOperand(b)));
      work.isBlockScaled = isBlockScaled(*op.getOperand(a)) || isBlockScaled(*op.getOperand(b));
      IndexSet ofA = toSet(def.operands[a].indices), ofB = toSet(def.operands[b].indices),
               ofResult = toSet(def.results[term.result].indices);
      int64_t m = getVolume([&](unsigned i) { return ofA.count(i) && !ofB.count(i); });
      int64_t n = getVolume([&](unsigned i) { return ofB.count(i) && !ofA.count(i); });
      int64_t k = getVolume([&](unsigned i) { return ofA.count(i) && ofB.count(i) && !ofResult.count(i); });
      work.batch = getVolume([&](unsigned i) { return ofA.count(i) && ofB.count(i) && ofResult.count(i); });
      const Value *shared = op.getOperand(a);
      if (!common)
        common = shared, work.m = m, work.n = n, work.k = k;
      else if (term.result == terms.front().result) // addends of one result
        work.k += k;
      else if (shared == common) // of one input
        work.n += n;
      else
        work.m += m;
    }
    work.isGrouped = work.batch > 1 && (hasParameter || isGradientOfParameter());
    if (work.isGrouped && common)
      findExperts(work, common);
    // Either operand of a batch may have the rows, which a kernel cuts into tiles of all products.
    if (work.batch > 1 && !work.isGrouped && work.m < work.n)
      std::swap(work.m, work.n);
  }

  /// If the rows are slots of experts, how many of these tokens are routed to. Rows are found back to where they came
  /// into slots, over what keeps a row in its place.
  void findExperts(Work &work, const Value *rows) const {
    for (const Op *maker = rows->getOp(); maker && maker->getNumOperands() > 0; maker = maker->getOperand(0)->getOp()) {
      const Routing *routing = maker->kind == OpKind::Compute ? maker->def->getRouting() : nullptr;
      if (!routing && (isMove(maker->kind) || isCommunication(maker->kind) || maker->kind == OpKind::Compute))
        continue;
      // Sent once, most choices of a token are of experts elsewhere, which says nothing of those here.
      if (!routing || !routing->toSlots || routing->isOnce)
        return;
      auto getSize = [&](unsigned index) { return evaluate(maker->extents[index].size); };
      work.experts = getSize(routing->target);
      work.choices = getSize(routing->tokens.back());
      work.tokens = 1;
      for (unsigned index : llvm::ArrayRef<unsigned>(routing->tokens).drop_back())
        work.tokens *= getSize(index);
      return;
    }
  }

  /// Of an op that is no product: its largest contraction. One operand says which indices of the result are rows, and
  /// the others are columns. It is the first operand with a summed index, because a gradient may begin with an operand
  /// that is shaped like its result: then all indices would be rows, and the product would have one column.
  void findLargest(Work &work) const {
    work.kind = WorkKind::Contraction;
    setResult(work);
    work.type = findType();
    IndexSet ofResult = toSet(def.results.front().indices);
    int64_t largest = 0;
    for (const FlopTerm &term : def.flopTerms) {
      IndexSet range = toSet(term.indices);
      int64_t volume = getVolume([&](unsigned i) { return range.count(i); });
      if (term.flopClass != FlopClass::Contraction || volume <= largest)
        continue;
      largest = volume;
      auto isSummed = [&](unsigned i) { return range.count(i) && !ofResult.count(i); };
      auto hasRows = [&](const OperandInfo &operand) { return llvm::any_of(def.expand(operand.indices), isSummed); };
      auto rows = llvm::find_if(def.operands, hasRows);
      IndexSet ofRows = toSet((rows != def.operands.end() ? *rows : def.operands.front()).indices);
      work.k = getVolume(isSummed);
      work.m = getVolume([&](unsigned i) { return range.count(i) && ofResult.count(i) && ofRows.count(i); });
      work.n = getVolume([&](unsigned i) { return range.count(i) && ofResult.count(i) && !ofRows.count(i); });
    }
  }

  /// Of the operands that a kernel multiplies.
  DType findType() const {
    std::optional<DType> type;
    for (const Value *operand : op.getOperands())
      if (isFloat(operand->type.dtype))
        type = type ? getWider(*type, getReadType(*operand)) : getReadType(*operand);
    return type.value_or(DType::F32);
  }

  /// An index of values with which the queries are multiplied, too, and that one tensor of positions has: latent
  /// vectors are keys and values. Keys and values that share the name of a dim are two tensors.
  static bool isOfLatents(const OpDef &forward, unsigned index, std::optional<unsigned> columns) {
    auto has = [&](const OperandInfo &operand) {
      llvm::SmallVector<unsigned, 4> indices = forward.expand(operand.indices);
      return columns && llvm::is_contained(indices, *columns) && llvm::is_contained(indices, index);
    };
    return llvm::count_if(forward.operands, has) == 1 && standsWith(forward, index, columns, false);
  }

  /// The widest of the types in which queries, keys and values are kept: a kernel brings the others into that.
  DType getAttentionType(std::optional<unsigned> columns) const {
    DType type = getKeptType(*op.getOperand(0));
    for (unsigned i = 1; i < def.operands.size(); ++i)
      if (columns && llvm::is_contained(def.expand(def.operands[i].indices), *columns))
        type = getWider(type, getKeptType(*op.getOperand(i)));
    return type;
  }

  void findAttention(Work &work) const {
    const OpDef &forward = def.vjpOf ? *def.vjpOf : def;
    std::optional<AttentionIndices> found = findAttentionIndices(forward);
    if (!found)
      return findLargest(work);
    const AttentionIndices &indices = *found;
    std::optional<unsigned> rows = indices.rows, columns = indices.columns;
    IndexSet ofResult = toSet(forward.results.front().indices);
    work.kind = WorkKind::Attention;
    work.isBackward = def.vjpOf != nullptr;
    work.type = getAttentionType(columns);
    auto isOfKeys = [&](unsigned index) { return standsWith(forward, index, columns, true); };
    auto isHead = [&](unsigned index) { return indices.scores.count(index) && index != rows && index != columns; };
    work.rows = rows ? evaluate(sizes[*rows]) : 1;
    work.columns = columns ? evaluate(sizes[*columns]) : 1;
    work.heads = getVolume(isHead);
    work.keyHeads = getVolume([&](unsigned index) { return isHead(index) && isOfKeys(index); });
    for (unsigned index : indices.inner) // that of values stands in the result, and in what a further block is added to
      if (indices.isInner(index) && standsWith(forward, index, columns, false) &&
          (indices.addedUp.count(index) || !ofResult.count(index)))
        work.headSize += evaluate(sizes[index]); // parts of a query whose products are added up
    work.valueSize = getVolume([&](unsigned i) { return indices.isInner(i) && ofResult.count(i); });
    work.isLatent = llvm::any_of(indices.inner, [&](unsigned i) {
      return indices.isInner(i) && ofResult.count(i) && isOfLatents(forward, i, columns);
    });
    Size area = getLocalMaskArea(graph, op);
    // A triangle of n rows has n * n / 2 pairs, which need not be whole.
    work.pairs = area ? work.heads * evaluate(area * 2) / 2 : work.heads * work.rows * work.columns;
    if (forward.mask && !work.isBackward)
      findPrompts(work, area);
  }

  /// Of the pairs of all sequences of a unit those of prompts, as the graph has sums of them.
  void findPrompts(Work &work, Size area) const {
    const Dim *rows = op.extents[def.mask->rows].dim;
    work.isPacked = rows && rows->isPacked;
    auto isOfArea = [&](const SequenceSum &sum) { return graph.sizes.symbol(sum.symbol) / 2 == area; };
    auto pairs = work.isPacked ? llvm::find_if(graph.sums, isOfArea) : graph.sums.end();
    int64_t tile = kernels ? kernels->getAttentionTile() : 0;
    if (pairs == graph.sums.end()) {
      if (tile && !work.isPacked && work.rows > 1)
        work.tiledPairs = work.pairs / work.rows * ((work.rows + tile - 1) / tile * tile);
    } else if (const SequenceSum *known = findSum(graph, ofPrompts(graph, *pairs, *rows, tile))) {
      (tile ? work.tiledPairs : work.promptPairs) = work.heads * evaluate(graph.sizes.symbol(known->symbol)) / 2;
    }
  }

  const Graph &graph;
  const Op &op;
  const OpCost &cost;
  const OpDef &def;
  const Kernels *kernels;
  llvm::function_ref<int64_t(Size)> evaluate;
  llvm::SmallVector<Size, 8> sizes;
};
} // namespace

Work stage::getWork(const Graph &graph, const Op &op, const OpCost &cost, const Kernels *kernels,
                    llvm::function_ref<int64_t(Size)> evaluate) {
  Work work;
  work.isOnHost = runsOnHost(op);
  work.isOptimizer = op.kind == OpKind::Update;
  work.flops = evaluate(cost.getComputed());
  work.bytes = evaluate(cost.bytes);
  if (op.kind == OpKind::Compute && !work.isOnHost)
    WorkFinder(graph, op, cost, kernels, evaluate).find(work);
  if (!kernels || work.isOnHost)
    return work;
  work.speed = kernels->getSpeed(op, work.kind == WorkKind::Attention);
  if (const OpKernel *kernel = kernels->find(op)) {
    if (kernel->bytes)
      work.bytes = evaluate(kernel->bytes);
    if (kernel->besideBytes)
      work.besideBytes = evaluate(kernel->besideBytes);
    if (kernel->floor && work.kind == WorkKind::Elementwise)
      work.floor = evaluate(kernel->floor);
    if (kernel->host)
      work.host = evaluate(kernel->host);
    work.isInside = kernel->isInside;
    if (kernel->type && work.kind == WorkKind::Contraction) {
      work.type = *kernel->type;
      work.allowsTF32 = kernel->allowsTF32;
    }
  }
  return work;
}

AxisSet stage::findAxesOfWork(const Program &program, const StageProgram &stage) {
  const Graph &graph = *program.graph;
  AxisSet axes = findVaryingAxes(program, stage);
  forEachOp(stage, [&](const Op &op) {
    if (op.kind != OpKind::Compute || (!op.def->mask && !(op.def->vjpOf && op.def->vjpOf->mask)))
      return;
    AxisSet ofArea = getCoordinateAxes(graph.mesh, getLocalMaskArea(graph, op));
    if ((axes | ofArea) != axes && !getAttentionFlops(graph, op, getLocalCost(graph, op)).isConstant(0))
      axes |= ofArea;
  });
  return graph.pipeline.axis ? axes & ~(AxisSet(1) << *graph.pipeline.axis) : axes;
}
