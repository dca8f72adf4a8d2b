//===- UnitSimulator.cpp - the tensors of one unit, node by node ----------===//
#include "stage/Memory/UnitSimulator.h"
#include "stage/IR/Costs.h"
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
  auto [it, isNew] = known.try_emplace(value, 0);
  if (isNew)
    it->second =
        evaluate(getLocalBytes(graph.sizes, graph.mesh, value->type, value->sharding), value->loc, describe(*value));
  return it->second;
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

IterationValue UnitSimulator::getName(const Value *value) const {
  const Op *loop = getLoop(value);
  return {value, loop ? iterations.lookup(loop->loop) : 0};
}

/// Nothing for parameters, gradient buffers and constants.
std::optional<unsigned> UnitSimulator::find(const Value *value) const {
  return names.find(getName(value));
}

/// To be written by the current node.
unsigned UnitSimulator::allocate(const Value *value, MemoryClass kind) {
  UnitTensor &tensor = tensors.emplace_back();
  tensor.maker = tensor.value = value;
  tensor.iteration = iteration;
  tensor.size = bytes.get(value);
  tensor.kind = kind;
  tensor.unit = unit;
  tensor.names = tensor.isInput = tensor.isView = 0;
  tensor.first = nodes.empty() ? 0 : nodes.size() - 1;
  return tensors.size() - 1;
}

bool UnitSimulator::outlivesUnit(const Value *value) const {
  return getLoop(value) ? lifetimes.isKept(value) : uses->isUsedAfter(value, unit);
}

void UnitSimulator::bind(const Value *value, unsigned number) {
  IterationValue name = getName(value);
  if (std::optional<unsigned> earlier = names.find(name))
    --tensors[*earlier].names;
  names.set(name, number);
  UnitTensor &tensor = tensors[number];
  ++tensor.names;
  if (outlivesUnit(value))
    tensor.value = value; // what is kept is known by the name it is kept for
}

void UnitSimulator::drop(const Value *value) {
  IterationValue name = getName(value);
  std::optional<unsigned> tensor = names.find(name);
  if (!tensor)
    return;
  --tensors[*tensor].names;
  names.erase(name);
}

void UnitSimulator::release(llvm::ArrayRef<const Value *> values) {
  for (const Value *value : values)
    drop(value);
}

void UnitSimulator::access(unsigned tensor, bool isWrite) {
  accesses.push_back({tensor, isWrite});
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Parameters and gradient buffers, also where a reduction works over them, are not tensors of a unit.
static bool isStatic(const Value *value) {
  const Op *op = value->getOp();
  if (!op)
    return false;
  if (op->kind == OpKind::AllReduce)
    return isStatic(getResharded(*value));
  return isState(op->kind) || op->kind == OpKind::Accumulate;
}

bool UnitSimulator::diesWith(const Value *operand, const Op &op) const {
  if (getLoop(operand) || op.getBlock()->getParent())
    return llvm::is_contained(lifetimes.getReleases(&op), operand);
  return !outlivesUnit(operand) && (*uses)[unit].lookup(operand) == itemEnd;
}

/// The result is written over the operand of which it is made.
bool UnitSimulator::isInPlace(const Op &op, unsigned result) const {
  if (op.kind != OpKind::AllReduce)
    return false;
  auto tensor = find(op.getOperand(result));
  return tensor && tensors[*tensor].names == 1 && !tensors[*tensor].isView && !tensors[*tensor].isInput &&
         diesWith(op.getOperand(result), op);
}

void UnitSimulator::runSlice(const Op &op) {
  std::optional<unsigned> operand = find(op.getOperand(0));
  if (!operand)
    return; // of something static
  unsigned number = allocate(op.getResult(), MemoryClass::Temporaries);
  unsigned source = tensors[*operand].isView ? views.lookup(*operand).source : *operand;
  tensors[number].isView = true;
  views[number] = {source, int(nodes.size()) - 1};
  bind(op.getResult(), number);
}

/// Its recv, and its send.
void UnitSimulator::runPermute(const Op &op) {
  addNode(&op);
  unsigned tensor = allocate(op.getResult(), MemoryClass::Buffers);
  access(tensor, /*isWrite=*/true);
  addNode(&op);
  if (auto sent = find(op.getOperand(0)))
    access(*sent, /*isWrite=*/false);
  bind(op.getResult(), tensor);
}

void UnitSimulator::runNode(const Op &op) {
  addNode(&op);
  for (const Value *operand : op.kind == OpKind::Accumulate ? op.getOperands().take_front() : op.getOperands())
    if (auto tensor = find(operand))
      access(*tensor, /*isWrite=*/false);
  if (op.kind == OpKind::Accumulate || op.kind == OpKind::Update)
    return; // those write static memory
  for (auto &result : op.getResults()) {
    if (getFusedAccumulation(*program.graph, result.get()) || isStatic(result.get()))
      continue;
    if (isInPlace(op, result->getNumber())) {
      unsigned tensor = *find(op.getOperand(result->getNumber()));
      tensors[tensor].kind = MemoryClass::Buffers;
      tensors[tensor].value = result.get();
      bind(result.get(), tensor);
      continue;
    }
    unsigned tensor = allocate(result.get(), isCommunication(op.kind) ? MemoryClass::Buffers : MemoryClass::Temporaries);
    access(tensor, /*isWrite=*/true);
    bind(result.get(), tensor);
  }
}

void UnitSimulator::runCompute(const Op &op) {
  if (op.kind == OpKind::Slice)
    return runSlice(op);
  if (op.kind == OpKind::Permute)
    return runPermute(op);
  auto [it, isNew] = haveNodes.try_emplace(&op, false);
  if (isNew)
    it->second = hasNode(*program.graph, op);
  if (it->second)
    return runNode(op);
  // What moves nothing gives its operand another name.
  if (op.kind == OpKind::Compute && op.getNumOperands())
    if (auto tensor = find(op.getOperand(0)))
      for (auto &result : op.getResults())
        bind(result.get(), *tensor);
}

void UnitSimulator::runLoop(const Op &op, int64_t begin, int64_t end) {
  if (begin >= end)
    return;
  const Block *body = nullptr; // of the current iteration
  const FoldedLoop &folded = foldedLoops[op.loop];
  int64_t step = op.reverse ? -1 : 1, first = op.reverse ? end - 1 : begin, last = op.reverse ? begin : end - 1;
  auto enterIteration = [&](int64_t i) {
    iteration = int(i);
    iterations[op.loop] = uint64_t(i);
    body = &op.getBody(i);
  };
  auto dropUnusedArguments = [&] {
    for (auto &argument : body->getArguments())
      if (lifetimes.isUnused(argument.get()) && !lifetimes.isKept(argument.get()))
        drop(argument.get());
  };

  llvm::SmallVector<std::optional<unsigned>, 2> carried;
  for (const Value *operand : op.getOperands())
    carried.push_back(find(operand));
  enterIteration(first);
  for (unsigned k = 0; k < carried.size(); ++k)
    if (carried[k] && !find(body->getArgument(k))) // else received
      bind(body->getArgument(k), *carried[k]);
  dropUnusedArguments();
  release(entryReleases);

  for (int64_t i = first;; i = folded.getNext(i, step)) {
    const Op *yield = op.getBody(i).getTerminator();
    for (auto &inner : *body)
      if (inner.get() != yield) {
        runCompute(*inner);
        release(lifetimes.getReleases(inner.get()));
      }
    carried.clear();
    for (const Value *operand : yield->getOperands()) {
      carried.push_back(find(operand));
      if (carried.back())
        ++tensors[*carried.back()].names;
    }
    release(lifetimes.getReleases(yield));
    if (i == last)
      iteration = -1;
    else
      enterIteration(folded.getNext(i, step));
    for (unsigned k = 0; k < carried.size(); ++k) {
      const Value *name = i == last ? op.getResult(k) : body->getArgument(k);
      if (carried[k] && (i != last || isWanted(name)))
        bind(name, *carried[k]);
    }
    if (i != last)
      dropUnusedArguments();
    for (auto tensor : carried)
      if (tensor)
        --tensors[*tensor].names;
    if (i == last)
      return;
  }
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

bool UnitSimulator::isWanted(const Value *value) const {
  if (getLoop(value))
    return !lifetimes.isUnused(value) || lifetimes.isKept(value);
  return (*uses)[unit].count(value) || outlivesUnit(value);
}

/// Those that the current unit is the first of its microbatch to use.
void UnitSimulator::bindInputs() {
  for (auto &op : program.graph->getForward())
    if (op->kind == OpKind::Input && (*uses)[unit].count(op->getResult()) && !find(op->getResult())) {
      unsigned tensor = allocate(op->getResult(), MemoryClass::Activations);
      tensors[tensor].isInput = true;
      tensors[tensor].first = nodes.size();
      bind(op->getResult(), tensor);
    }
}

void UnitSimulator::runRecv(const std::vector<ProgramItem> &items, const ProgramItem &recv) {
  if (recv.values.empty())
    return;
  if (const Op *loop = getLoop(recv.values.front())) {
    const ProgramItem *range = findPipelinedLoop(program, items);
    iterations[loop->loop] = !range ? 0 : loop->reverse ? range->end - 1 : range->begin;
  }
  for (const Value *value : recv.values) {
    addNode(nullptr, /*isRecv=*/true);
    unsigned tensor = allocate(value, MemoryClass::Buffers);
    access(tensor, /*isWrite=*/true);
    if (getLoop(value) || isWanted(value))
      bind(value, tensor);
  }
}

void UnitSimulator::runSend(const std::vector<ProgramItem> &items, const ProgramItem &send) {
  const ProgramItem *loop = findPipelinedLoop(program, items);
  for (unsigned k = 0; k < send.values.size(); ++k) {
    addNode(nullptr);
    if (auto tensor = find(loop ? loop->op->getResult(k) : send.values[k]))
      access(*tensor, /*isWrite=*/false);
  }
  for (const Value *value : send.values)
    if (getLoop(value))
      drop(value); // passed through
}

/// Vectors that grow would take twice as much.
void UnitSimulator::reserve(llvm::ArrayRef<const UnitTemplate *> chain) {
  size_t numNodes = 0, numTensors = 0, numAccesses = 0;
  for (const UnitTemplate *unit : chain)
    for (const ProgramItem &item : unit->items) {
      auto add = [&](const Op &op, size_t times) {
        numNodes += times;
        numTensors += times * op.getNumResults();
        numAccesses += times * (op.getNumOperands() + op.getNumResults());
      };
      if (item.kind == ProgramItem::Kind::Op)
        add(*item.op, 1);
      else if (item.kind == ProgramItem::Kind::Loop)
        forEachBody(item, [&](Block &body, int64_t iterations) {
          for (auto &op : body)
            add(*op, iterations);
        });
      numNodes += item.values.size();
      numTensors += item.values.size();
      numAccesses += item.values.size();
    }
  nodes.reserve(numNodes);
  tensors.reserve(numTensors);
  accesses.reserve(numAccesses);
}

void UnitSimulator::runItems(const std::vector<ProgramItem> &items) {
  bindInputs();
  std::vector<llvm::SmallVector<const Value *, 2>> releases(2 * items.size());
  for (auto [value, time] : (*uses)[unit])
    if (!getLoop(value) && !outlivesUnit(value))
      releases[time].push_back(value);
  for (unsigned i = 0; i < items.size(); ++i) {
    const ProgramItem &item = items[i];
    itemEnd = 2 * i + 1;
    entryReleases = releases[2 * i];
    switch (item.kind) {
    case ProgramItem::Kind::Op:
      runCompute(*item.op);
      for (auto &result : item.op->getResults())
        if (!isWanted(result.get()))
          drop(result.get());
      break;
    case ProgramItem::Kind::Loop:
      runLoop(*item.op, item.begin, item.end);
      break;
    case ProgramItem::Kind::Recv:
      runRecv(items, item);
      break;
    case ProgramItem::Kind::Send:
      runSend(items, item);
      break;
    }
    release(releases[itemEnd]);
  }
}

/// Decides which iterations stand for others: the same ones in all items that run a loop.
void UnitSimulator::fold(llvm::ArrayRef<const UnitTemplate *> chain) {
  struct Range {
    const ProgramItem *item;
    unsigned numCarried;
    bool agrees;
  };
  llvm::DenseMap<unsigned, Range> ranges;
  for (const UnitTemplate *unit : chain)
    for (const ProgramItem &item : unit->items) {
      if (item.kind != ProgramItem::Kind::Loop)
        continue;
      Range &range = ranges.try_emplace(item.op->loop, Range{&item, 0, true}).first->second;
      range.numCarried = std::max(range.numCarried, item.op->getNumOperands());
      range.agrees &= item.begin == range.item->begin && item.end == range.item->end &&
                      item.op->cases == range.item->op->cases;
    }
  for (auto &[loop, range] : ranges)
    if (range.agrees)
      foldedLoops[loop] = FoldedLoop(range.item->op->cases, range.item->begin, range.item->end, range.numCarried);
}

void UnitSimulator::run(llvm::ArrayRef<const UnitTemplate *> chain) {
  uses.emplace(program, chain);
  folds &= chain.size() <= 2;
  if (folds)
    fold(chain);
  else
    reserve(chain);
  for (unit = 0; unit < chain.size(); ++unit) {
    runItems(chain[unit]->items);
    ends.push_back(nodes.size());
  }
  finish();
}
