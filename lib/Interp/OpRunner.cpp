//===- OpRunner.cpp - one op on one rank ----------------------------------===//
#include "OpRunner.h"
#include "FormulaEvaluator.h"
#include "stage/IR/graph/Costs.h"
#include "stage/IR/graph/Packing.h"
#include <cmath>

using namespace stage;
using namespace stage::interp;

/// What is accepted follows the element and not the tensor, and nothing is accepted for being small: numbers that a
/// deep model has multiplied down to 1e-12 are as wrong as others.
Deviation::Deviation(double found, double expected, double rounding, double largest) {
  constexpr double multiple = 32;
  double unit = largest > 0 && std::isfinite(largest) ? largest : 1;
  error = found == expected ? 0 : std::fabs(found - expected) / unit;
  if (std::isnan(error))
    error = HUGE_VAL;
  accepted = (tolerance * std::fabs(expected) + multiple * rounding) / unit;
  isOfRounding = multiple * rounding >= unit;
}

double stage::interp::getUpdated(double before, double gradient) {
  return before - 0.1 * (gradient + 0.5 * std::tanh(gradient));
}

double stage::interp::getClipped(double sumOfSquares) { return 1 / (1 + std::sqrt(sumOfSquares)); }

double stage::interp::getLargest(const Tensor &tensor) {
  double largest = 0;
  for (double number : tensor.data)
    largest = std::max(largest, std::fabs(number));
  return largest;
}

Instance stage::interp::getInstance(const Value *value, const Frame &frame, unsigned microbatch) {
  bool isStep = isOncePerStep(value->getBlock()->getPhase());
  return {value, getIteration(value, frame), isStep ? 0 : microbatch};
}

Instance stage::interp::getHeldInstance(const Value *value, const Frame &frame, unsigned microbatch) {
  Instance instance = getInstance(value, frame, microbatch);
  if (!getLoop(value) && !isOncePerStep(value->getBlock()->getPhase()))
    instance.iteration = getPlace(frame);
  return instance;
}

template <typename Map, typename Changes> static void measure(const Map &once, const Map &again, Changes &changes) {
  for (auto &[key, tensor] : once) {
    auto it = again.find(key);
    double most = 0;
    for (size_t i = 0; it != again.end() && i < tensor->data.size(); ++i)
      most = std::max(most, std::fabs(tensor->data[i] - it->second->data[i]));
    // An infinity or no number at all is no rounding.
    if (most > 0 && std::isfinite(most))
      changes.emplace_hint(changes.end(), key, most);
  }
}

Rounding::Rounding(const RankMemory &once, const RankMemory &again) {
  measure(once.values, again.values, values);
  measure(once.gradients, again.gradients, gradients);
  measure(once.updated, again.updated, updated);
}

Fault stage::interp::makeFault(const Op *op, const Value *value, const llvm::Twine &text) {
  return {op, value, text.str()};
}

//===----------------------------------------------------------------------===//
// Reading and keeping
//===----------------------------------------------------------------------===//

TensorRef OpRunner::getSource(const Value *value, const Step &step, int64_t rank) const {
  const Op *op = value->getOp();
  TensorRef whole = isState(op->kind)           ? sources.draw(value, getIteration(value, step.frame))
                    : op->kind == OpKind::Input ? sources.draw(value, step.microbatch)
                                                : sources.getConstant(value);
  if (rank < 0 || !whole)
    return whole;
  auto dims = pieces.getPositions(value->type, value->sharding, rank);
  auto piece = !dims                          ? std::nullopt
               : value->sharding.flat.empty() ? extract(*whole, *dims)
                                              : extractFlat(*whole, dims->front());
  if (!piece)
    return nullptr;
  // The addends of a constant that is a partial sum: the first rank of the group has it all.
  for (AxisId axis : toList(value->sharding.partial))
    if (value->sharding.reduce == ReduceKind::Sum && graph.mesh.getCoordinate(rank, axis) != 0)
      std::fill(piece->data.begin(), piece->data.end(), 0);
  return std::make_shared<Tensor>(std::move(*piece));
}

TensorRef OpRunner::read(const Value *value, const Step &step, int64_t rank, RankMemory &memory,
                         std::optional<Fault> &fault) {
  bool readsHost = step.op && (step.op->kind == OpKind::Fetch || runsOnHost(*step.op));
  MemorySpace space = readsHost ? MemorySpace::Host : MemorySpace::Device;
  bool isUpdated = step.op && step.op->kind == OpKind::Update && value == step.op->getOperand(0); // there as a state
  if (value->type.space != space && !isUpdated) {
    fault =
        makeFault(step.op, value, "is on the " + getName(value->type.space) + ", but is read on the " + getName(space));
    return nullptr;
  }
  // One device has what another part sends from the beginning.
  if (Sources::isSource(value) || (rank < 0 && isTransferred(*value))) {
    const Op *loop = value->getOp()->kind == OpKind::Constant ? nullptr : getLoop(value);
    auto ranges = loop ? memory.ranges.find(loop->loop) : memory.ranges.end();
    int64_t iteration = getIteration(value, step.frame);
    if (ranges != memory.ranges.end() && llvm::none_of(ranges->second, [&](std::pair<int64_t, int64_t> range) {
          return range.first <= iteration && iteration < range.second;
        }))
      fault = makeFault(step.op, value,
                        "is a parameter of iteration " + llvm::Twine(iteration) + ", which another stage runs");
    if (std::pair key(value, getIteration(value, step.frame)); value->getOp()->kind == OpKind::Param) {
      memory.params.insert(key);
      if (auto stored = memory.stored.find(key); stored != memory.stored.end())
        return stored->second;
      if (rank >= 0 && sources.isGiven(value, key.second))
        fault = makeFault(step.op, value, "was not updated on this rank in the step before");
    }
    TensorRef tensor =
        value->getOp()->kind == OpKind::Cache ? getCache(value, step, rank, memory) : getSource(value, step, rank);
    if (!tensor)
      fault = makeFault(step.op, value, "cannot be split evenly");
    return tensor;
  }
  if (value->getOp() && isAddition(value->getOp()->kind)) {
    const Value *param = getTrainedParam(*value->getOp());
    auto it = memory.buffers.find({buffers.getFirst(value), param ? getIteration(param, step.frame) : 0});
    if (it != memory.buffers.end())
      return std::make_shared<Tensor>(it->second);
    fault = makeFault(step.op, value, "is a gradient buffer into which nothing was added on this rank");
    return nullptr;
  }
  Instance instance = getHeldInstance(value, step.frame, step.microbatch);
  auto it = memory.values.find(instance);
  if (it != memory.values.end())
    return it->second;
  fault = makeFault(step.op, value,
                    memory.freed.count(instance) ? "has been freed" : "was never computed or received on this rank");
  return nullptr;
}

/// What the units so far have left in it. At first that is nothing, of a state zeros, where a unit goes forward:
/// sequences begin with it. Positions that nobody has appended are drawn, so that who reads them is found. Decode steps
/// go on with what others have left, so that it is drawn. Null if it cannot be split evenly.
TensorRef &OpRunner::getCache(const Value *cache, const Step &step, int64_t rank, RankMemory &memory,
                              std::optional<int64_t> sequence) {
  const Op &op = *cache->getOp();
  int64_t entry = sequence ? *sequence : op.entry ? pieces.getSize(op.entry).value_or(0) : 0;
  TensorRef &content = memory.caches[{cache, getIteration(cache, step.frame), entry}];
  bool isNew = !content;
  if (isNew)
    content = getSource(cache, step, rank);
  bool isState = llvm::any_of(cache->getUses(), [](auto use) { return use.first->kind == OpKind::Write; });
  if (content && isNew && isState && step.op && step.op->getBlock()->getPhase() == PhaseKind::Forward) {
    auto zeros = std::make_shared<Tensor>(*content);
    std::fill(zeros->data.begin(), zeros->data.end(), 0);
    content = std::move(zeros);
  }
  return content;
}

bool OpRunner::isMissing(const Value *value, const Step &step, const RankMemory &memory) const {
  if (Sources::isSource(value) || (value->getOp() && isAddition(value->getOp()->kind)))
    return false;
  Instance instance = getHeldInstance(value, step.frame, step.microbatch);
  return !memory.values.count(instance) && !memory.freed.count(instance);
}

std::string stage::interp::describePositions(const Positions &positions) {
  std::string text = "[";
  for (size_t i = 0; i < positions.size();) {
    size_t end = i + 1;
    while (end < positions.size() && positions[end] == positions[end - 1] + 1)
      ++end;
    text += (i ? ", " : "") + std::to_string(positions[i]);
    if (end > i + 1)
      text += ".." + std::to_string(positions[end - 1]);
    i = end;
  }
  return text + "]";
}

static bool containsSum(const Formula *formula) {
  bool adds = formula->kind == Formula::Kind::Reduce &&
              formula->reduce == ReduceKind::Sum; // the largest is the same in any order
  return adds || llvm::any_of(formula->children, containsSum);
}

/// True if the order in which an op adds may matter. Others round in the same way wherever they run.
static bool addsUp(const OpDef &def) {
  if (def.vjpOf) // what is spread over an index forward is summed over it backward
    return addsUp(*def.vjpOf) || llvm::any_of(def.vjpOf->operands, [&](const OperandInfo &operand) {
             return def.vjpOf->expand(operand.indices).size() <
                    def.vjpOf->expand(def.vjpOf->results.front().indices).size();
           });
  return (def.isSum && def.operands.size() > 2) ||
         llvm::any_of(def.lets, [](auto &let) { return containsSum(let.second); }) ||
         llvm::any_of(def.results, [](auto &result) { return result.formula && containsSum(result.formula); });
}

std::optional<Fault> OpRunner::store(const Value *value, const Frame &frame, unsigned microbatch, TensorRef tensor,
                                     int64_t rank, RankMemory &memory, const Op *op) {
  if (rank >= 0) {
    auto expected = pieces.getPositions(value->type, value->sharding, rank);
    if (!expected)
      return makeFault(op, value, "cannot be split evenly");
    for (unsigned d = 0; d < expected->size(); ++d)
      if (tensor->dims.size() != expected->size() || tensor->dims[d] != (*expected)[d])
        return makeFault(op, value,
                         "holds positions " + describePositions(tensor->dims[d]) + " of dim " + llvm::Twine(d) +
                             ", where its sharding says " + describePositions((*expected)[d]));
  }
  if (isDisturbed && op && op->kind == OpKind::Compute && isFloat(value->type.dtype) && addsUp(*op->def)) {
    auto disturbed = std::make_shared<Tensor>(*tensor);
    for (size_t i = 0; i < disturbed->data.size(); ++i)
      disturbed->data[i] *= i % 2 ? 1 + 0x1p-52 : 1 - 0x1p-52;
    tensor = std::move(disturbed);
  }
  memory.values[getHeldInstance(value, frame, microbatch)] = std::move(tensor);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

std::optional<Fault> OpRunner::run(const Step &step, int64_t rank, RankMemory &memory) {
  switch (step.op->kind) {
  case OpKind::Compute:
    return runCompute(step, rank, memory);
  case OpKind::Accumulate:
    return runAccumulate(step, rank, memory);
  case OpKind::AddNorm:
    return runAddNorm(step, rank, memory);
  case OpKind::Update:
    return runUpdate(step, rank, memory);
  case OpKind::Write:
    return runWrite(step, rank, memory);
  case OpKind::Append:
    return runAppend(step, rank, memory);
  case OpKind::Join:
    return runJoin(step, rank, memory);
  case OpKind::Store:
  case OpKind::Load: // units of several sequences have them
    return copyCache(*sources.findPackedUnit(step.microbatch), step, rank, memory);
  default:
    if (!isMove(step.op->kind))
      return std::nullopt; // sources, yields, returns: their values are read where they are used
    if (rank >= 0 && !isCopy(step.op->kind))
      return runSlice(step, rank, memory);
    // A copy has the numbers that it is made of. On one device resharding does nothing.
    std::optional<Fault> fault;
    for (unsigned i = 0; i < step.op->getNumOperands() && !fault; ++i) {
      TensorRef tensor = read(step.op->getOperand(i), step, rank, memory, fault);
      if (!fault)
        fault = store(step.op->getResult(i), step.frame, step.microbatch, tensor, rank, memory, step.op);
    }
    return fault;
  }
}

/// False if it is another piece.
static bool addPiece(Tensor &sum, const Tensor &addend) {
  if (sum.dims != addend.dims)
    return false;
  for (size_t i = 0; i < addend.data.size(); ++i)
    sum.data[i] += addend.data[i];
  return true;
}

/// Adds operands to `sum`, which must be of the same piece: that of `what`.
std::optional<Fault> OpRunner::addUp(llvm::ArrayRef<Value *> operands, const llvm::Twine &what, const Step &step,
                                     int64_t rank, RankMemory &memory, Tensor &sum) {
  std::optional<Fault> fault;
  for (const Value *operand : operands) {
    TensorRef addend = read(operand, step, rank, memory, fault);
    if (fault)
      return fault;
    if (!addPiece(sum, *addend))
      return makeFault(step.op, operand, "is another piece than " + what);
  }
  return std::nullopt;
}

std::optional<Fault> OpRunner::runAccumulate(const Step &step, int64_t rank, RankMemory &memory) {
  const Op &op = *step.op;
  std::optional<Fault> fault;
  TensorRef contribution = read(op.getOperand(0), step, rank, memory, fault);
  if (fault)
    return fault;
  // A buffer that is shared in the sharded program is shared in the unsharded one.
  auto [it, isNew] = memory.buffers.try_emplace(
      {buffers.getFirst(op.getResult()), getIteration(op.getOperand(1), step.frame)}, *contribution);
  if (isNew)
    return std::nullopt;
  if (!addPiece(it->second, *contribution))
    return makeFault(&op, op.getOperand(0), "is another piece than the gradient buffer it is added to");
  return std::nullopt;
}

/// Each rank that has an element adds its share, so that all have counted it once.
std::optional<Fault> OpRunner::runAddNorm(const Step &step, int64_t rank, RankMemory &memory) {
  const Op &op = *step.op;
  std::optional<Fault> fault;
  TensorRef first = read(op.getOperand(0), step, rank, memory, fault);
  if (fault)
    return fault;
  Tensor gradient = *first;
  if (auto wrong =
          addUp(op.getOperands().drop_front(), "the gradient that it is part of", step, rank, memory, gradient))
    return wrong;
  Tensor sum;
  sum.data.assign(1, 0);
  for (double number : gradient.data)
    sum.data[0] += number * number;
  if (rank >= 0)
    sum.data[0] /= op.copies;
  auto [it, isNew] = memory.buffers.try_emplace({buffers.getFirst(op.getResult()), 0}, sum);
  if (!isNew)
    it->second.data[0] += sum.data[0];
  return std::nullopt;
}

std::optional<Fault> OpRunner::runUpdate(const Step &step, int64_t rank, RankMemory &memory) {
  const Op &op = *step.op;
  const Value *param = op.getOperand(0);
  std::optional<Fault> fault;
  TensorRef before = read(param, step, rank, memory, fault);
  if (fault)
    return fault;
  if (op.getNumResults() && rank >= 0 && op.getResult()->sharding != param->sharding) { // the rank's shard of it
    auto sizes = pieces.getSizes(param->type);
    if (!sizes)
      return makeFault(&op, param, "cannot be split evenly");
    Tensor shard = param->sharding.flat.empty() ? flatten(*before, *sizes) : *before;
    for (AxisId axis : llvm::makeArrayRef(op.getResult()->sharding.flat).drop_front(param->sharding.flat.size()))
      shard = cutFlat(shard, graph.mesh[axis].size, graph.mesh.getCoordinate(rank, axis));
    before = std::make_shared<Tensor>(std::move(shard));
  }
  Tensor gradient = *before;
  std::fill(gradient.data.begin(), gradient.data.end(), 0);
  if (auto wrong = addUp(op.getOperands().drop_front().drop_back(op.clips), "the parameter that it updates", step, rank,
                         memory, gradient))
    return wrong;
  double scale = 1;
  if (op.clips) {
    TensorRef norm = read(op.getOperands().back(), step, rank, memory, fault);
    if (fault)
      return fault;
    scale = getClipped(norm->data.front());
  }
  Tensor after = *before;
  for (size_t i = 0; i < after.data.size(); ++i)
    after.data[i] = getUpdated(before->data[i], gradient.data[i] * scale);
  std::pair<const Value *, uint64_t> key = {param, getIteration(param, step.frame)};
  if (!memory.gradients.try_emplace(key, std::make_shared<Tensor>(std::move(gradient))).second)
    return makeFault(&op, param, "is updated twice in one step");
  auto updated = std::make_shared<Tensor>(std::move(after));
  if (op.getNumResults()) // written when it is complete again
    return store(op.getResult(), step.frame, step.microbatch, std::move(updated), rank, memory, &op);
  memory.updated[key] = std::move(updated);
  return std::nullopt;
}

std::optional<Fault> OpRunner::runWrite(const Step &step, int64_t rank, RankMemory &memory) {
  const Op &op = *step.op;
  const Value *param = op.getOperand(0);
  std::optional<Fault> fault;
  TensorRef value = read(op.getOperand(1), step, rank, memory, fault);
  if (fault)
    return fault;
  if (isStateOfEach(*param)) // written by what makes it
    return std::nullopt;
  if (param->getOp()->kind == OpKind::Cache) {
    getCache(param, step, rank, memory) = std::move(value);
    return std::nullopt;
  }
  if (!memory.updated.try_emplace({param, getIteration(param, step.frame)}, std::move(value)).second)
    return makeFault(&op, param, "is written twice in one step");
  return std::nullopt;
}

/// `second` behind `first` along a dim of which both have all positions.
static Tensor concatenate(const Tensor &first, const Tensor &second, unsigned dim) {
  llvm::SmallVector<Positions, 4> dims = first.dims;
  dims[dim] = allPositions(first.dims[dim].size() + second.dims[dim].size());
  Tensor both(std::move(dims));
  Tensor behind = second;
  for (int64_t &position : behind.dims[dim])
    position += first.dims[dim].size();
  insert(both, first);
  insert(both, behind);
  return both;
}

/// `count` positions of a dim, counted from 0.
static Tensor cut(const Tensor &tensor, unsigned dim, int64_t begin, int64_t count) {
  llvm::SmallVector<Positions, 4> dims = tensor.dims;
  dims[dim].clear();
  for (int64_t i = 0; i < count; ++i)
    dims[dim].push_back(begin + i);
  Tensor part = *extract(tensor, dims);
  part.dims[dim] = allPositions(count);
  return part;
}

/// What is appended stands from position `first` on; the cache has more behind it, which come later. Of new positions a
/// rank keeps those that are its own.
std::optional<Tensor> OpRunner::appendTo(TensorRef &content, const Tensor &added, unsigned dim, int64_t first,
                                         const Positions &all, bool isRolling) {
  int64_t numAdded = added.dims[dim].size(), room = content->dims[dim].size(), numAll = all.size();
  if (isRolling) {
    // What was kept, and what is new behind it.
    Tensor both = concatenate(*content, added, dim);
    content = std::make_shared<Tensor>(cut(both, dim, numAdded, room));
    return cut(both, dim, room + numAdded - numAll, numAll);
  }
  Tensor last = added;
  for (int64_t &position : last.dims[dim])
    position += first;
  llvm::SmallVector<Positions, 4> kept = last.dims, dims = last.dims;
  llvm::erase_if(kept[dim], [&](int64_t position) { return !llvm::is_contained(content->dims[dim], position); });
  dims[dim] = all;
  auto after = std::make_shared<Tensor>(*content);
  if (!insert(*after, *extract(last, kept)))
    return std::nullopt;
  content = after;
  return all == last.dims[dim] ? std::optional<Tensor>(std::move(last)) : extract(*after, dims);
}

std::optional<Fault> OpRunner::runAppend(const Step &step, int64_t rank, RankMemory &memory) {
  const Op &op = *step.op;
  if (const PackedUnit *unit = sources.findPackedUnit(step.microbatch))
    return appendBySequence(*unit, step, rank, memory);
  std::optional<Fault> fault;
  read(op.getOperand(0), step, rank, memory, fault);
  TensorRef added = fault ? nullptr : read(op.getOperand(1), step, rank, memory, fault);
  if (fault)
    return fault;
  auto dims = pieces.getPositions(op.getResult()->type, op.getResult()->sharding, rank);
  bool isSplit = rank >= 0 && !op.getResult()->sharding.dims[op.dim].empty();
  if (!dims || (!isSplit && added->dims[op.dim].size() > (*dims)[op.dim].size()))
    return makeFault(&op, op.getResult(), "has fewer positions than are appended");
  const Extent &extent = op.getOperand(1)->type.shape[op.dim];
  std::optional<int64_t> first = pieces.getSize(
      extent.dim && extent.dim->origin ? extent.dim->origin : op.getResult()->type.shape[op.dim].size - extent.size);
  std::optional<Tensor> all = appendTo(getCache(op.getOperand(0), step, rank, memory), *added, op.dim,
                                       first.value_or(0), (*dims)[op.dim], op.isRolling);
  if (!all)
    return makeFault(&op, op.getOperand(1), "is another piece than the cache to which it is appended");
  return store(op.getResult(), step.frame, step.microbatch, std::make_shared<Tensor>(std::move(*all)), rank, memory,
               &op);
}

std::optional<Fault> OpRunner::runSlice(const Step &step, int64_t rank, RankMemory &memory) {
  const Op &op = *step.op;
  std::optional<Fault> fault;
  TensorRef operand = read(op.getOperand(0), step, rank, memory, fault);
  if (fault)
    return fault;
  if (op.flat) {
    auto sizes = pieces.getSizes(op.getResult()->type);
    if (!sizes)
      return makeFault(&op, op.getResult(), "cannot be split evenly");
    Tensor piece = flatten(*operand, *sizes);
    for (AxisId axis : op.axes)
      piece = cutFlat(piece, graph.mesh[axis].size, graph.mesh.getCoordinate(rank, axis));
    return store(op.getResult(), step.frame, step.microbatch, std::make_shared<Tensor>(std::move(piece)), rank, memory,
                 &op);
  }
  llvm::SmallVector<Positions, 4> dims = operand->dims;
  for (const PlacedAxis &axis : op.axes) {
    int64_t part = graph.mesh.getPart(axis, graph.mesh.getCoordinate(rank, axis));
    auto piece = pieces.split(dims[op.dim], axis, part);
    if (!piece)
      return makeFault(&op, op.getResult(), "cannot be split evenly");
    dims[op.dim] = std::move(*piece);
  }
  auto tensor = extract(*operand, dims);
  return store(op.getResult(), step.frame, step.microbatch, std::make_shared<Tensor>(std::move(*tensor)), rank, memory,
               &op);
}
