//===- UnitSimulator.cpp - the tensors of one unit, op by op --------------===//
#include "UnitSimulator.h"
#include "stage/IR/Costs.h"
#include "stage/Memory/Diagnostics.h"
#include "llvm/ADT/MapVector.h"

using namespace stage;

int64_t LocalBytes::evaluate(Size size, SMLoc loc, llvm::StringRef what) {
  SizeValue value = evaluateCount(size, graph.binding);
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

UnitSimulator::Name UnitSimulator::getName(const Value *value) const {
  const Op *loop = getLoop(value);
  return {value, loop ? iterations.lookup(loop->loop) : 0};
}

std::optional<unsigned> UnitSimulator::find(const Value *value) const {
  auto it = names.find(getName(value));
  return it == names.end() ? std::nullopt : std::optional<unsigned>(it->second);
}

/// Constants of the top level are made where they are first used. Parameters and gradient buffers are static.
std::optional<unsigned> UnitSimulator::findOrMake(const Value *value) {
  if (auto tensor = find(value))
    return tensor;
  if (!value->getOp() || value->getOp()->kind != OpKind::Constant)
    return std::nullopt;
  unsigned tensor = allocate(value, MemoryClass::Temporaries);
  bind(value, tensor);
  return tensor;
}

unsigned UnitSimulator::allocate(const Value *value, MemoryClass kind) {
  Tensor tensor{value, bytes.get(value), kind, 0, std::nullopt};
  use[kind] += tensor.size;
  tensors.push_back(tensor);
  return tensors.size() - 1;
}

bool UnitSimulator::outlivesUnit(const Value *value) const {
  return getLoop(value) ? lifetimes.isSaved(value) : later && later->count(value);
}

void UnitSimulator::bind(const Value *value, unsigned number) {
  names[getName(value)] = number;
  Tensor &tensor = tensors[number];
  ++tensor.names;
  if (!outlivesUnit(value) || tensor.kind == MemoryClass::Activations)
    return;
  use[tensor.kind] -= getHeld(tensor);
  use[MemoryClass::Activations] += getHeld(tensor);
  tensor.kind = MemoryClass::Activations;
  tensor.value = value; // what is kept is known by the name it is kept for
}

void UnitSimulator::drop(const Value *value) {
  auto it = names.find(getName(value));
  if (it == names.end())
    return;
  unsigned tensor = it->second;
  names.erase(it);
  unhold(tensor);
}

void UnitSimulator::unhold(unsigned number) {
  Tensor &tensor = tensors[number];
  if (--tensor.names)
    return;
  use[tensor.kind] -= getHeld(tensor);
  if (tensor.source)
    llvm::erase_value(views[*tensor.source], number);
  auto it = views.find(number);
  if (it == views.end())
    return;
  for (unsigned view : it->second) {
    tensors[view].source.reset();
    use[tensors[view].kind] += tensors[view].size;
  }
  views.erase(it);
}

void UnitSimulator::release(llvm::ArrayRef<const Value *> values) {
  for (const Value *value : values)
    drop(value);
}

void UnitSimulator::reachMoment(const Op *op) {
  ++moment;
  if (moment == snapshotAt)
    snapshot = listLive();
  ByteCount total = use.getTotal();
  if (peak->moment && total <= peak->total)
    return;
  *peak = {total, use, op, iteration, moment};
}

std::vector<LiveValue> UnitSimulator::listLive() const {
  llvm::MapVector<std::pair<const Value *, unsigned>, LiveValue> live;
  for (const Tensor &tensor : tensors) {
    if (!tensor.names || !getHeld(tensor))
      continue;
    LiveValue &entry = live[{tensor.value, unsigned(tensor.kind)}];
    entry.value = tensor.value;
    entry.kind = tensor.kind;
    ++entry.copies;
    entry.bytes += tensor.size;
  }
  std::vector<LiveValue> result;
  for (auto &entry : live)
    result.push_back(entry.second);
  return result;
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
    return isStatic(op->getOperand(0));
  return op->kind == OpKind::Param || op->kind == OpKind::Accumulate;
}

bool UnitSimulator::diesWith(const Value *operand, const Op &op) const {
  if (getLoop(operand) || op.getBlock()->getParent())
    return llvm::is_contained(lifetimes.getReleases(&op), operand);
  return !outlivesUnit(operand) && current->lookup(operand) == itemEnd;
}

void UnitSimulator::runCompute(const Op &op) {
  if (op.kind == OpKind::Param)
    return; // static
  for (const Value *operand : op.getOperands())
    findOrMake(operand);
  if (op.kind == OpKind::Slice) {
    const Value *result = op.getResult();
    auto operand = find(op.getOperand(0));
    unsigned view = allocate(result, MemoryClass::Temporaries);
    use[MemoryClass::Temporaries] -= tensors[view].size;
    if (operand) {
      tensors[view].source = tensors[*operand].source.value_or(*operand);
      views[*tensors[view].source].push_back(view);
    } else {
      tensors[view].size = 0; // of something static
    }
    bind(result, view);
  } else if (op.kind == OpKind::AllReduce) {
    const Value *operand = op.getOperand(0);
    auto tensor = find(operand);
    if (tensor && tensors[*tensor].names == 1 && !tensors[*tensor].source && diesWith(operand, op)) {
      use[tensors[*tensor].kind] -= tensors[*tensor].size;
      use[MemoryClass::Buffers] += tensors[*tensor].size;
      tensors[*tensor].kind = MemoryClass::Buffers;
      tensors[*tensor].value = op.getResult();
      bind(op.getResult(), *tensor);
    } else if (!isStatic(operand)) {
      bind(op.getResult(), allocate(op.getResult(), MemoryClass::Buffers));
    }
  } else if (op.kind != OpKind::Accumulate && op.kind != OpKind::Update) { // those write static memory
    for (auto &result : op.getResults())
      if (!getFusedAccumulation(*program.graph, result.get()))
        bind(result.get(),
             allocate(result.get(), isCollective(op.kind) ? MemoryClass::Buffers : MemoryClass::Temporaries));
  }
  reachMoment(&op);
}

void UnitSimulator::runLoop(const Op &op, int64_t begin, int64_t end) {
  if (begin >= end)
    return;
  Op *yield = op.body->getTerminator();
  int64_t step = op.reverse ? -1 : 1, first = op.reverse ? end - 1 : begin, last = op.reverse ? begin : end - 1;
  auto enterIteration = [&](int64_t i) {
    iteration = i;
    iterations[op.loop] = uint64_t(i);
  };
  auto dropUnusedArguments = [&] {
    for (auto &argument : op.body->getArguments())
      if (lifetimes.isUnused(argument.get()) && !lifetimes.isSaved(argument.get()))
        drop(argument.get());
  };

  llvm::SmallVector<std::optional<unsigned>, 2> carried;
  for (const Value *operand : op.getOperands())
    carried.push_back(findOrMake(operand));
  enterIteration(first);
  for (unsigned k = 0; k < carried.size(); ++k)
    if (carried[k] && !find(op.body->getArgument(k))) // else received
      bind(op.body->getArgument(k), *carried[k]);
  dropUnusedArguments();
  release(entryReleases);

  for (int64_t i = first;; i += step) {
    for (auto &inner : *op.body)
      if (inner.get() != yield) {
        runCompute(*inner);
        release(lifetimes.getReleases(inner.get()));
      }
    carried.clear();
    for (const Value *operand : yield->getOperands()) {
      carried.push_back(findOrMake(operand));
      if (carried.back())
        ++tensors[*carried.back()].names;
    }
    release(lifetimes.getReleases(yield));
    if (i == last)
      iteration.reset();
    else
      enterIteration(i + step);
    for (unsigned k = 0; k < carried.size(); ++k) {
      const Value *name = i == last ? op.getResult(k) : op.body->getArgument(k);
      if (carried[k] && (i != last || isWanted(name)))
        bind(name, *carried[k]);
    }
    if (i != last)
      dropUnusedArguments();
    for (auto tensor : carried)
      if (tensor)
        unhold(*tensor);
    if (i == last)
      return;
  }
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

bool UnitSimulator::isWanted(const Value *value) const {
  if (getLoop(value))
    return !lifetimes.isUnused(value) || lifetimes.isSaved(value);
  return current->count(value) || outlivesUnit(value);
}

void UnitSimulator::bindInputs() {
  for (auto &op : program.graph->forward)
    if (op->kind == OpKind::Input && isWanted(op->getResult()))
      bind(op->getResult(), allocate(op->getResult(), MemoryClass::Activations));
}

void UnitSimulator::runRecv(const std::vector<ProgramItem> &items, const ProgramItem &recv) {
  if (recv.values.empty())
    return;
  if (const Op *loop = getLoop(recv.values.front())) {
    const ProgramItem *range = findPipelinedLoop(program, items);
    iterations[loop->loop] = !range ? 0 : loop->reverse ? range->end - 1 : range->begin;
  }
  for (const Value *value : recv.values)
    if (getLoop(value) || isWanted(value))
      bind(value, allocate(value, MemoryClass::Buffers));
  reachMoment(nullptr);
}

void UnitSimulator::runItems(const std::vector<ProgramItem> &items, const LastUses &uses) {
  current = &uses;
  std::vector<llvm::SmallVector<const Value *, 2>> releases(2 * items.size());
  for (auto [value, time] : uses)
    if (!getLoop(value) && !outlivesUnit(value))
      releases[time].push_back(value);
  reachMoment(nullptr);
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
      for (const Value *value : item.values)
        if (getLoop(value))
          drop(value); // passed through
      break;
    }
    release(releases[itemEnd]);
  }
}

void UnitSimulator::run(const std::vector<ProgramItem> &forward, const std::vector<ProgramItem> *backward) {
  LastUses forwardUses = findLastUses(program, forward), backwardUses;
  if (backward)
    backwardUses = findLastUses(program, *backward);
  later = &backwardUses;
  current = &forwardUses;
  peak = &forwardPeak;
  bindInputs();
  runItems(forward, forwardUses);
  saved = listLive();
  savedBytes = use.getTotal();
  later = nullptr;
  peak = &backwardPeak;
  if (backward)
    runItems(*backward, backwardUses);
}

void UnitSimulator::runStep(const std::vector<ProgramItem> &items) {
  peak = &forwardPeak;
  runItems(items, findLastUses(program, items));
}
