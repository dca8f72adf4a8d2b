//===- UnitSimulator.cpp - the tensors of one unit, node by node ----------===//
#include "stage/Memory/UnitSimulator.h"
#include "stage/IR/graph/CachePlace.h"
#include "stage/IR/graph/Channel.h"
#include "stage/IR/graph/Costs.h"
#include "stage/IR/graph/Identity.h"
#include "stage/Machine/RuntimeRules.h"
#include "stage/Memory/Diagnostics.h"

using namespace stage;

int64_t LocalBytes::evaluate(Size size, SMLoc loc, llvm::StringRef what) {
  SizeValue value = evaluateCount(size, binding);
  if (value)
    return int64_t(value.value.num);
  diags.report(loc, diag::NoByteCount) << what << size.str();
  return 0;
}

int64_t LocalBytes::get(const Value *value) {
  auto [it, isNew] = known.insert({value, 0});
  if (isNew)
    it->second =
        evaluate(getLocalBytes(graph.sizes, graph.mesh, value->type, value->sharding), value->loc, describe(*value));
  return it->second;
}

std::vector<const Value *> LocalBytes::listVarying() const {
  std::vector<const Value *> varying;
  for (auto [value, bytes] : known)
    if (graph.variesByUnit(getLocalElements(graph.sizes, graph.mesh, value->type, value->sharding)))
      varying.push_back(value);
  return varying;
}

//===----------------------------------------------------------------------===//
// Tensors and names
//===----------------------------------------------------------------------===//

const unsigned *TensorNames::Entry::find(uint64_t wanted) const {
  if (tensor != none && iteration == wanted)
    return &tensor;
  return wanted < earlier.size() && earlier[wanted] != none ? &earlier[wanted] : nullptr;
}

std::optional<unsigned> TensorNames::find(IterationValue name) const {
  auto it = entries.find(name.first);
  if (it == entries.end())
    return std::nullopt;
  const unsigned *tensor = it->second.find(name.second);
  return tensor ? std::optional<unsigned>(*tensor) : std::nullopt;
}

void TensorNames::set(IterationValue name, unsigned tensor) {
  Entry &entry = entries[name.first];
  if (unsigned *known = entry.find(name.second)) {
    *known = tensor;
    return;
  }
  if (entry.tensor != none) {
    if (entry.earlier.size() <= entry.iteration)
      entry.earlier.resize(std::max<size_t>(entry.iteration + 1, 2 * entry.earlier.size()), none);
    entry.earlier[entry.iteration] = entry.tensor;
  }
  entry.iteration = name.second;
  entry.tensor = tensor;
}

void TensorNames::erase(IterationValue name) {
  auto it = entries.find(name.first);
  if (unsigned *tensor = it == entries.end() ? nullptr : it->second.find(name.second))
    *tensor = none;
}

/// To be written by the current node.
unsigned UnitSimulator::allocate(const Value *value, MemoryClass kind) {
  UnitTensor &tensor = tensors.emplace_back();
  tensor.maker = tensor.value = value;
  tensor.iteration = getIteration() ? int(*getIteration()) : -1;
  tensor.size = bytes.get(value);
  usesHost |= isOnHost(*value);
  tensor.kind = kind;
  tensor.unit = unit;
  tensor.names = tensor.isInput = tensor.isHandedIn = tensor.isView = tensor.isOfRuntime = 0;
  tensor.first = nodes.empty() ? 0 : nodes.size() - 1;
  return tensors.size() - 1;
}

void UnitSimulator::name(IterationValue value, unsigned number) {
  if (std::optional<unsigned> earlier = names.find(value))
    --tensors[*earlier].names;
  names.set(value, number);
  UnitTensor &tensor = tensors[number];
  ++tensor.names;
  if (outlivesUnit(value.first))
    tensor.value = value.first; // what is kept is known by the name it is kept for
}

void UnitSimulator::bind(IterationValue from, IterationValue to) {
  if (std::optional<unsigned> tensor = names.find(from))
    name(to, *tensor);
}

void UnitSimulator::free(IterationValue value) {
  if (std::optional<unsigned> tensor = names.find(value)) {
    --tensors[*tensor].names;
    names.erase(value);
  }
}

void UnitSimulator::access(unsigned tensor, bool isWrite) { accesses.push_back({tensor, isWrite}); }

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Parameters and gradient buffers, also where a reduction works over them, are not tensors of a unit.
static bool isStatic(const Value *value) {
  const Op *op = value->getOp();
  if (!op)
    return false;
  if (op->kind == OpKind::AllReduce || (op->kind == OpKind::ReduceScatter && op->flat))
    return isStatic(getMoved(*value));
  if (getBufferWrittenBack(*op))
    return true;
  if (op->kind == OpKind::Update)
    return isOnHost(*value) == isOnHost(*op->getOperand(0)); // in its place
  return isState(op->kind) || isAddition(op->kind) || isFetchOfUpdate(*op) || op->kind == OpKind::Append;
}

/// The tensor of the operand over which the result is written: that of which an all_reduce makes it, or of which a
/// runtime says so.
std::optional<unsigned> UnitSimulator::findOverwritten(const Op &op, unsigned result) const {
  std::optional<unsigned> number;
  if (op.kind == OpKind::AllReduce)
    number = result;
  else if (const OpMemory *kept = memory && result == 0 ? memory->find(op) : nullptr)
    number = kept->overwritten;
  const Value *operand = number ? op.getOperand(*number) : nullptr;
  auto tensor = operand ? find(operand) : std::nullopt;
  if (!tensor || tensors[*tensor].names != 1 || tensors[*tensor].isView || tensors[*tensor].isInput ||
      !diesWith(operand, op))
    return std::nullopt;
  if (op.kind != OpKind::AllReduce && tensors[*tensor].size != bytes.get(op.getResult(result)))
    return std::nullopt;
  return tensor;
}

/// What the last run before a gradient keeps counts: that of the ops that run again, if they do.
void UnitSimulator::keepForGradient(const Op &op, const OpMemory &kept) {
  int64_t size = bytes.evaluate(kept.keepBytes, op.loc, describe(*op.getResult()));
  if (!size)
    return;
  unsigned tensor = allocate(op.getResult(), MemoryClass::Temporaries);
  tensors[tensor].size = size;
  tensors[tensor].isOfRuntime = 1;
  access(tensor, /*isWrite=*/true);
  keptFor[{op.isRecomputed && op.origin ? op.origin : &op, tensors[tensor].iteration}] = tensor;
}

void UnitSimulator::hold(const Op &op, const OpMemory &kept) {
  if (int64_t size = kept.holdBytes ? bytes.evaluate(kept.holdBytes, op.loc, describe(*op.getResult())) : 0) {
    unsigned tensor = allocate(op.getResult(), MemoryClass::Temporaries);
    tensors[tensor].size = size;
    tensors[tensor].isOfRuntime = 1;
    access(tensor, /*isWrite=*/true);
    held[kept.heldUntil].push_back(tensor);
  }
  for (auto &result : op.getResults())
    if (std::optional<unsigned> tensor = kept.holdsResults ? find(result.get()) : std::nullopt)
      held[kept.heldUntil].push_back(*tensor);
}

void UnitSimulator::runSlice(const Op &op) {
  std::optional<unsigned> operand = find(op.getOperand(0));
  if (!operand)
    return; // of something static
  unsigned number = allocate(op.getResult(), MemoryClass::Temporaries);
  tensors[number].isView = true;
  if (joined.count(*operand))
    joined[number] = listSources(*operand);
  else
    views[number] = {listSources(*operand).front(), int(nodes.size()) - 1, op.getResult()->sharding.getTwice() != 0};
  name(getName(op.getResult()), number);
}

/// The tensors behind one: several where it is joined of them.
std::vector<unsigned> UnitSimulator::listSources(unsigned tensor) const {
  if (auto parts = joined.find(tensor); parts != joined.end())
    return parts->second;
  return {tensors[tensor].isView ? views.lookup(tensor).source : tensor};
}

/// What is joined of pieces that a product makes for nothing else: these are written where they belong. Null for other
/// values.
const Value *UnitSimulator::findJoined(const Value &value) {
  if (value.getUses().size() != 1 || !value.getOp() || value.getOp()->kind != OpKind::Compute)
    return nullptr;
  const Op *user = value.getUses().front().first;
  return user->kind == OpKind::Join && user->getBlock() == value.getBlock() ? user->getResult() : nullptr;
}

void UnitSimulator::runJoin(const Op &op) {
  if (find(op.getResult()))
    return; // it is there since the first piece
  unsigned number = allocate(op.getResult(), MemoryClass::Buffers);
  tensors[number].isView = true;
  for (const Value *operand : op.getOperands())
    if (std::optional<unsigned> part = find(operand))
      llvm::append_range(joined[number], listSources(*part));
  name(getName(op.getResult()), number);
}

/// Its recv, and its send.
void UnitSimulator::runPermute(const Op &op) {
  addNode(&op);
  unsigned tensor = allocate(op.getResult(), MemoryClass::Buffers);
  access(tensor, /*isWrite=*/true);
  addNode(&op);
  if (auto sent = find(op.getOperand(0)))
    access(*sent, /*isWrite=*/false);
  name(getName(op.getResult()), tensor);
}

void UnitSimulator::runNode(const Op &op) {
  addNode(&op);
  const OpMemory *kept = memory ? memory->find(op) : nullptr;
  for (unsigned i = 0; i < (op.kind == OpKind::Accumulate ? 1 : op.getNumOperands()); ++i)
    if (auto tensor = find(op.getOperand(i)); tensor && !(kept && llvm::is_contained(kept->dropped, i)))
      access(*tensor, /*isWrite=*/false);
  if (!keptFor.empty() && isGradient(op))
    if (auto known = keptFor.find({op.origin, getIteration() ? int(*getIteration()) : -1}); known != keptFor.end())
      access(known->second, /*isWrite=*/false);
  if (isAddition(op.kind))
    return; // writes static memory
  if (isCacheCopy(op.kind))
    return; // from a cache or into it
  for (auto &result : op.getResults()) {
    if (getFusedAccumulation(*program.graph, result.get()) || isStatic(result.get()) || getCacheWrittenInPlace(*result))
      continue;
    if (std::optional<unsigned> tensor = findOverwritten(op, result->getNumber())) {
      if (op.kind == OpKind::AllReduce)
        tensors[*tensor].kind = MemoryClass::Buffers;
      tensors[*tensor].value = result.get();
      name(getName(result.get()), *tensor);
      continue;
    }
    const Value *whole = findJoined(*result);
    if (std::optional<unsigned> known = whole ? find(whole) : std::nullopt) {
      access(*known, /*isWrite=*/false);
      name(getName(result.get()), *known);
      continue;
    }
    unsigned tensor = allocate(whole ? whole : result.get(), isGatherOfState(op) ? MemoryClass::Parameters
                                                             : isCommunication(op.kind) || isCopy(op.kind)
                                                                 ? MemoryClass::Buffers
                                                                 : MemoryClass::Temporaries);
    if (kept && kept->isInResident)
      tensors[tensor].size = 0;
    access(tensor, /*isWrite=*/true);
    name(getName(result.get()), tensor);
    if (whole)
      name(getName(whole), tensor);
  }
  if (kept && kept->keepBytes)
    keepForGradient(op, *kept);
  if (kept && kept->heldUntil)
    hold(op, *kept);
  // What keeps a window does not hold all that the positions of a unit see: they read what was added, too.
  auto countPositions = [&](const Value *value) {
    return bytes.evaluate(value->type.shape[op.dim].size, op.loc, describe(*value));
  };
  if (op.kind == OpKind::Append && op.isRolling && countPositions(op.getResult()) > countPositions(op.getOperand(0)))
    if (std::optional<unsigned> added = find(op.getOperand(1)))
      name(getName(op.getResult()), *added);
}

void UnitSimulator::visitOp(const Op &op) {
  if (op.kind == OpKind::Release) {
    ReleasedTensors &together = released.emplace_back();
    for (const Value *operand : op.getOperands())
      if (auto tensor = find(operand))
        together.tensors.push_back(*tensor);
    // What runs on the stream for computation waited for what the bucket brought.
    for (together.node = int(nodes.size()) - 1; together.node >= 0; --together.node)
      if (const Node &node = nodes[together.node]; node.op && node.op->kind == OpKind::Compute && !node.op->stream)
        break;
    return;
  }
  if (op.kind == OpKind::Slice)
    return runSlice(op);
  if (op.kind == OpKind::Permute)
    return runPermute(op);
  if (op.kind == OpKind::Join)
    return runJoin(op);
  auto [it, isNew] = haveNodes.try_emplace(&op, false);
  if (isNew)
    it->second = hasNode(*program.graph, op);
  if (it->second)
    runNode(op);
  if (memory && memory->endsHold(op))
    if (auto ended = held.find(&op); ended != held.end()) {
      for (unsigned tensor : ended->second)
        if (nodes.size() - 1 > tensors[tensor].first)
          released.push_back({{tensor}, int(nodes.size()) - 1});
      held.erase(ended);
    }
  if (it->second)
    return;
  // What moves nothing gives its operand another name.
  if (op.kind == OpKind::Compute && op.getNumOperands())
    if (auto tensor = find(op.getOperand(0)))
      for (auto &result : op.getResults())
        name(getName(result.get()), *tensor);
}

int64_t UnitSimulator::getNextIteration(const ProgramItem &loop, int64_t iteration) {
  auto folded = foldedLoops.find(loop.op->loop);
  return folded == foldedLoops.end() ? UnitWalk::getNextIteration(loop, iteration)
                                     : folded->second.getNext(iteration, loop.op->reverse ? -1 : 1);
}

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

/// Those that the current unit is the first of its microbatch to use. What another part sends is received under the
/// same name, so that nothing reads what is loaded, which takes no memory then.
void UnitSimulator::enterUnit(const LastUses &uses) {
  for (auto &op : program.graph->getForward())
    if (op->kind == OpKind::Input && uses.count(op->getResult()) && !find(op->getResult())) {
      unsigned tensor = allocate(op->getResult(), MemoryClass::Activations);
      tensors[tensor].isInput = true;
      tensors[tensor].first = nodes.size();
      name(getName(op->getResult()), tensor);
    }
}

void UnitSimulator::visitReceive(const ProgramItem &item, unsigned slot, IterationValue value) {
  if (item.isLocal) {
    unsigned tensor = allocate(value.first, MemoryClass::Activations);
    tensors[tensor].isHandedIn = true;
    tensors[tensor].first = nodes.size();
    return name(value, tensor);
  }
  addNode(nullptr, /*isRecv=*/true);
  unsigned tensor = allocate(value.first, MemoryClass::Buffers);
  access(tensor, /*isWrite=*/true);
  if (item.channel)
    tensors[tensor].size = item.channel->bytes;
  if (item.channel && slot > 0)
    parts[tensor] = slot; // known by the name of the first
  else
    name(value, tensor);
}

void UnitSimulator::visitSend(const ProgramItem &item, unsigned, IterationValue value) {
  if (item.isLocal) {
    handedOn.back().push_back(names.find(value));
    handedValues.back().push_back(value.first);
    return;
  }
  addNode(nullptr);
  if (std::optional<unsigned> tensor = names.find(value))
    access(*tensor, /*isWrite=*/false);
  if (item.isBlocking)
    addNode(nullptr); // the wait, which accesses nothing
}

/// Vectors that grow would take twice as much.
void UnitSimulator::reserve(const UnitChain &chain) {
  size_t numNodes = 0, numTensors = 0, numAccesses = 0;
  for (const UnitTemplate *unit : chain) {
    forEachOp(unit->items, [&](const Op &op, int64_t times) {
      numNodes += times;
      numTensors += times * op.getNumResults();
      numAccesses += times * (op.getNumOperands() + op.getNumResults());
    });
    for (const ProgramItem &item : unit->items) {
      numNodes += item.getNumMessageNodes();
      numTensors += item.values.size();
      numAccesses += item.values.size();
    }
  }
  nodes.reserve(numNodes);
  tensors.reserve(numTensors);
  accesses.reserve(numAccesses);
}

/// Decides which iterations stand for others: the same ones in all items that run a loop.
void UnitSimulator::fold(const UnitChain &chain) {
  struct Range {
    const ProgramItem *item;
    unsigned numCarried, reach; ///< How many iterations ahead something runs.
    bool agrees;
  };
  llvm::DenseMap<unsigned, Range> ranges;
  for (const UnitTemplate *unit : chain)
    for (const ProgramItem &item : unit->items) {
      if (item.kind != ProgramItem::Kind::Loop)
        continue;
      Range &range = ranges.try_emplace(item.op->loop, Range{&item, 0, program.graph->prefetch, true}).first->second;
      range.numCarried = std::max(range.numCarried, item.op->getNumOperands());
      for (auto &body : item.op->bodies)
        for (auto &op : *body)
          for (const OrderEdge &edge : op->after)
            range.reach = std::max(range.reach, edge.iterations);
      range.agrees &=
          item.begin == range.item->begin && item.end == range.item->end && item.op->cases == range.item->op->cases;
    }
  for (auto &[loop, range] : ranges)
    if (range.agrees)
      foldedLoops[loop] =
          FoldedLoop(range.item->op->cases, range.item->begin, range.item->end, range.numCarried, range.reach);
}

void UnitSimulator::run(const UnitChain &chain) {
  ChainUses uses(chain, lifetimes);
  folds &= chain.size() <= 2;
  if (folds)
    fold(chain);
  else
    reserve(chain);
  for (unit = 0; unit < chain.size(); ++unit) {
    handedOn.emplace_back();
    handedValues.emplace_back();
    walk(chain[unit]->items, &uses, unit);
    ends.push_back(nodes.size());
  }
  finish();
}
