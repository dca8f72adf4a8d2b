//===- TensorTracker.cpp - which tensors a node reads and writes ----------===//
#include "TensorTracker.h"
#include "stage/IR/graph/CachePlace.h"
#include "stage/IR/graph/Costs.h"
#include "stage/IR/graph/Identity.h"

using namespace stage;

TensorTracker::TensorTracker(const Program &program, ClassTasks &tasks, const RuntimeMemory *memory,
                             DiagnosticEngine &diags)
    : graph(*program.graph), buffers(program.buffers), producers(tasks.getProducers()), taskSizes(tasks.getSizes()),
      lifetimes(*program.graph) {
  tasks.setObserver(this);
  UnitChains kinds = tasks.getStage().listChains();
  numChains = kinds.all.size();
  for (unsigned environment = 0; environment < graph.pipeline.environments.size(); ++environment) {
    placeOf.push_back(chains.size() / numChains);
    if (!graph.pipeline.environments.isFirstAlike(environment))
      continue;
    LocalBytes bytesOf(graph, diags, environment, tasks.getCoordinates());
    for (const UnitChain &chain : kinds.all)
      chains.emplace_back(program, lifetimes.get(chain), bytesOf, /*folds=*/false, memory).run(chain);
  }
  if (!memory)
    return;
  LocalBytes bytesOf(graph, diags, 0, tasks.getCoordinates());
  for (const Resident &resident : memory->listResidents(tasks.getStage()))
    residents.emplace_back("r" + std::to_string(residents.size()),
                           uint64_t(bytesOf.evaluate(resident.bytes, SMLoc(), resident.name)));
}

std::string TensorTracker::getName(char kind, const Value *value, int64_t iteration) {
  unsigned number = numbers.try_emplace(value, numbers.size()).first->second;
  std::string name = kind + std::to_string(number);
  return iteration < 0 ? name : name + "." + std::to_string(iteration);
}

std::string TensorTracker::getName(const UnitTensor &tensor, const PlacedUnit &unit, unsigned part) {
  if (tensor.isInput) {
    std::string name = getName('i', tensor.maker, -1) + " " + std::to_string(unit.microbatch);
    return unit.chunk ? name + "." + std::to_string(*unit.chunk) : name;
  }
  const PlacedUnit *maker = &unit;
  while (maker->getPlace() > tensor.unit)
    maker = maker->previous;
  // What another chunk has handed on goes on under the name that it had there.
  if (const ProgramItem *taken = tensor.isHandedIn ? findHandedIn(maker->layout->getItems()) : nullptr) {
    const PlacedUnit &giver = *maker->giver;
    unsigned slot = *findHanded(*taken, tensor.maker, *findHandedOn(giver.layout->getItems()));
    const UnitSimulator &simulator = getSimulator(giver);
    if (std::optional<unsigned> handed = simulator.getHandedOn(giver.getPlace())[slot])
      return getName(simulator.getTensor(*handed), giver, simulator.getPart(*handed));
  }
  // What arrives in parts stands in no repeat.
  return getName(tensor.isOfRuntime ? 'k' : 't', tensor.maker, part ? int64_t(part) : tensor.iteration) + " " +
         maker->getName();
}

uint64_t TensorTracker::getBytes(const Value *value) {
  auto [it, isNew] = sizes.try_emplace(value, 0);
  if (isNew)
    it->second = taskSizes.evaluate(getLocalBytes(graph.sizes, graph.mesh, value->type, value->sharding), *value);
  return it->second;
}

void TensorTracker::addInput(std::string name, uint64_t bytes) {
  if (!bytes || !known.insert(name).second)
    return; // nothing, or linear(%x, %x)
  names.push_back(std::move(name));
  inputs.push_back({names.back(), bytes});
}

void TensorTracker::addOutput(std::string name, uint64_t bytes) {
  if (!bytes)
    return;
  names.push_back(std::move(name));
  outputs.push_back({names.back(), bytes});
}

void TensorTracker::addStatic(std::string name, uint64_t bytes) {
  if (bytes && knownStatics.insert(name).second)
    statics.emplace_back(name, bytes);
  addInput(std::move(name), bytes);
}

/// The result is static memory where the first operand is: a buffer that is reduced, or scattered to its owners, a
/// parameter of which a shard is updated, here or on the host, and a cache.
static bool isMadeInPlace(const Op &op) {
  return op.kind == OpKind::AllReduce || op.kind == OpKind::Update || isFetchOfUpdate(op) ||
         op.kind == OpKind::Append || (op.kind == OpKind::ReduceScatter && op.flat);
}

/// The parameters, buffers of the model and gradient buffers that a value is, is a view of, or is reduced in.
void TensorTracker::readStatic(const Value *value, const PlacedUnit &unit, int64_t iteration) {
  producers.visit(value, unit, iteration, [&](const Origin &origin) {
    const Op *op = origin.value->getOp();
    if (isOnHost(*origin.value)) // lists are of the device's memory
      return;
    if (origin.kind == Origin::Kind::Source && isState(op->kind)) {
      std::string name = getName(op->kind == OpKind::Param ? 'p' : 'b', origin.value, origin.iteration);
      if (op->entry)
        name += " at " + std::to_string(taskSizes.evaluate(op->entry, *origin.value));
      addStatic(std::move(name), getBytes(origin.value));
    } else if (origin.kind == Origin::Kind::Buffer) {
      // Accumulations of one parameter, type and sharding share a buffer.
      const Value *buffer = buffers.getFirst(origin.value)->getResult();
      addStatic(getName('g', buffer, origin.iteration), getBytes(buffer));
    } else if (origin.kind == Origin::Kind::Node && isMadeInPlace(*op)) {
      const Op &maker = isFetchOfUpdate(*op) ? *op->getOperand(0)->getOp() : *op;
      bool isOfFirst = maker.kind == OpKind::Update || maker.kind == OpKind::Append;
      readStatic(isOfFirst ? maker.getOperand(0) : getMoved(*origin.value), *origin.unit, origin.iteration);
    } else if (const Value *buffer = origin.kind == Origin::Kind::Node ? getBufferWrittenBack(*op) : nullptr) {
      readStatic(buffer, *origin.unit, origin.iteration);
    }
  });
}

/// All states of a parameter as one tensor. They are sharded as the gradient that updates it.
void TensorTracker::readStates(const Op &update, const PlacedUnit &unit, int64_t iteration) {
  const Value *param = update.getOperand(0), *gradient = update.getOperand(1);
  Size elements = getLocalElements(graph.sizes, graph.mesh, gradient->type, gradient->sharding),
       bytes = graph.sizes.zero();
  for (auto &[name, type] : getStates(graph, update))
    bytes = bytes + getByteCount(elements, type);
  if (bytes.isConstant(0))
    return;
  if (!param->getBlock()->getParent())
    iteration = -1;
  addStatic(getName('s', param, iteration), taskSizes.evaluate(bytes, *param));
}

void TensorTracker::clear() {
  names.clear();
  inputs.clear();
  outputs.clear();
  known.clear();
}

void TensorTracker::trackTensors(const PlacedUnit &unit, const Task &task) {
  const UnitSimulator &simulator = getSimulator(unit);
  unsigned number = unsigned(unit.getPosition(task.id)) + simulator.getFirstNode(unit.getPlace());
  assert(number < simulator.getNumNodes() && "the simulation has other nodes than the layout");
  for (const TensorAccess &access : simulator.getAccesses(number)) {
    const UnitTensor &tensor = simulator.getTensor(access.tensor);
    if (isOnHost(*tensor.maker))
      continue;
    std::string name = getName(tensor, unit, simulator.getPart(access.tensor));
    if (access.isWrite)
      addOutput(std::move(name), uint64_t(tensor.size));
    else
      addInput(std::move(name), uint64_t(tensor.size));
  }
}

void TensorTracker::observeOp(const Op &op, const PlacedUnit &unit, int64_t iteration, const Task &task,
                              llvm::ArrayRef<const PlacedUnit *> loaded) {
  clear();
  if (!runsOnHost(op))
    readStatic(op, unit, iteration);
  trackTensors(unit, task);
  for (const PlacedUnit *next : loaded)
    loadInputs(*next);
}

void TensorTracker::readStatic(const Op &op, const PlacedUnit &unit, int64_t iteration) {
  for (const Value *operand : op.kind == OpKind::Accumulate ? op.getOperands().take_front() : op.getOperands())
    readStatic(operand, unit, iteration);
  if (isAddition(op.kind) || getBufferWrittenBack(op))
    readStatic(op.getResult(), unit, iteration);
  for (auto &result : op.getResults())
    if (const Op *accumulation = getFusedAccumulation(graph, result.get()))
      readStatic(accumulation->getResult(), unit, iteration);
    else if (const Value *cache = getCacheWrittenInPlace(*result))
      readStatic(cache, unit, iteration);
  if (op.kind == OpKind::Update)
    readStates(op, unit, iteration);
}

void TensorTracker::observeMessage(const Value *value, const PlacedUnit &unit, int64_t iteration, const Task &task) {
  clear();
  if (task.kind == TaskKind::Send)
    readStatic(value, unit, iteration);
  trackTensors(unit, task);
}

void TensorTracker::loadInputs(const PlacedUnit &unit) {
  const UnitSimulator &simulator = getSimulator(unit);
  for (unsigned number : simulator.listInputs(unit.getPlace())) {
    const UnitTensor &tensor = simulator.getTensor(number);
    addOutput(getName(tensor, unit), uint64_t(tensor.size));
  }
}

void TensorTracker::addLists(NodeFields &node, bool isLast) {
  for (auto &[name, bytes] : std::exchange(residents, {}))
    addStatic(name, bytes); // they are there from the beginning
  if (isLast)
    for (auto &[name, bytes] : statics)
      addInput(name, bytes);
  node.inputs = llvm::ArrayRef<TensorUse>(inputs);
  node.outputs = llvm::ArrayRef<TensorUse>(outputs);
}
