//===- Graph.cpp - the graph IR -------------------------------------------===//
#include "stage/IR/graph/Graph.h"
#include "stage/IR/graph/Paths.h"
#include "stage/IR/graph/Rule.h"
#include "stage/Schedule/InferenceSymbols.h"

using namespace stage;

llvm::StringRef stage::getName(StreamKind kind) {
  static constexpr llvm::StringLiteral names[numStreamKinds] = {"computation", "communication", "copies",
                                                                "host_computation"};
  return names[unsigned(kind)];
}

StreamKind stage::getStreamKind(const Op &op) {
  return isCommunication(op.kind) ? StreamKind::Communication
         : isCopy(op.kind)        ? StreamKind::Copies
         : runsOnHost(op)         ? StreamKind::HostComputation
                                  : StreamKind::Computation;
}

const Value *stage::getTrainedParam(const Op &op) {
  bool trains = op.kind == OpKind::Accumulate || op.kind == OpKind::Update;
  unsigned number = op.kind == OpKind::Accumulate ? 1 : 0;
  return trains && number < op.getNumOperands() ? op.getOperand(number) : nullptr;
}

bool stage::runsOnHost(const Op &op) {
  const Value *param = getTrainedParam(op);
  bool isOfHostGradient =
      op.kind == OpKind::Update && op.getNumResults() && op.getNumOperands() > 1 && isOnHost(*op.getOperand(1));
  return isOfHostGradient || (param && isOnHost(*param));
}

llvm::StringRef stage::getName(OpKind kind) {
  switch (kind) {
#define IR_OP(id, name)                                                                                                \
  case OpKind::id:                                                                                                     \
    return name;
#include "stage/IR/graph/Ops.def"
  }
  llvm_unreachable("all kinds handled");
}

void Value::replaceAllUsesWith(Value *other) {
  assert(other != this && "a value cannot replace itself");
  while (!uses.empty()) {
    auto [user, number] = uses.back();
    user->setOperand(number, other);
  }
}

const IterationCases::Run &IterationCases::getRun(int64_t iteration) const {
  auto it =
      std::upper_bound(runs.begin(), runs.end(), iteration, [](int64_t i, const Run &run) { return i < run.end; });
  assert(it != runs.end() && iteration >= 0 && "the iterations are those of the runs");
  return *it;
}

int64_t IterationCases::count(unsigned number, int64_t begin, int64_t end) const {
  if (runs.empty() || begin >= end)
    return number == 0 ? std::max<int64_t>(0, end - begin) : 0;
  int64_t count = 0;
  for (const Run *run = &getRun(begin); run != runs.data() + runs.size() && run->begin < end; ++run)
    if (run->number == number)
      count += std::min(end, run->end) - std::max(begin, run->begin);
  return count;
}

void IterationCases::append(unsigned number, int64_t count) {
  assert(count > 0 && "a run has iterations");
  int64_t begin = getNumIterations();
  if (!runs.empty() && runs.back().number == number)
    runs.back().end += count;
  else
    runs.push_back({number, begin, begin + count});
}

Block &Op::addBody(Graph &graph) {
  bodies.push_back(std::make_unique<Block>(graph, this, bodies.size()));
  return *bodies.back();
}

Op::~Op() {
  bodies.clear();
  clearOperands();
}

/// The last use takes the place of the one that goes.
void Op::dropUse(unsigned operand) {
  auto &uses = operands[operand]->uses;
  unsigned position = usePositions[operand];
  assert(uses[position] == std::make_pair(this, operand) && "use lists are kept");
  uses[position] = uses.back();
  auto [user, number] = uses[position];
  user->usePositions[number] = position;
  uses.pop_back();
}

void Op::setOperand(unsigned i, Value *value) {
  dropUse(i);
  operands[i] = value;
  usePositions[i] = value->uses.size();
  value->uses.emplace_back(this, i);
}

void Op::addOperand(Value *value) {
  usePositions.push_back(value->uses.size());
  value->uses.emplace_back(this, operands.size());
  operands.push_back(value);
}

void Op::clearOperands() {
  for (unsigned i = 0; i < operands.size(); ++i)
    dropUse(i);
  operands.clear();
  usePositions.clear();
}

void Op::eraseCarried(unsigned slot) {
  auto eraseOperand = [&](Op &op) {
    llvm::SmallVector<Value *, 4> kept = op.operands;
    kept.erase(kept.begin() + slot);
    op.clearOperands();
    llvm::for_each(kept, [&](Value *value) { op.addOperand(value); });
  };
  auto eraseValue = [&](std::vector<std::unique_ptr<Value>> &values) {
    assert(values[slot]->uses.empty() && "something uses it");
    values.erase(values.begin() + slot);
    for (unsigned i = slot; i < values.size(); ++i)
      values[i]->number = i;
  };
  eraseOperand(*this);
  eraseValue(results);
  for (auto &body : bodies)
    eraseOperand(*body->getTerminator());
  for (auto &body : bodies)
    eraseValue(body->arguments);
}

Value *Op::addResult(TensorType type, llvm::StringRef path) {
  auto value = std::make_unique<Value>();
  value->type = std::move(type);
  value->path = path.str();
  value->loc = loc;
  value->op = this;
  value->block = block;
  value->number = results.size();
  results.push_back(std::move(value));
  return results.back().get();
}

Block::~Block() {
  // Users first: later ops may use values of earlier ones.
  while (!ops.empty())
    ops.pop_back();
}

Op *Block::getTerminator() {
  if (ops.empty())
    return nullptr;
  Op *last = ops.back().get();
  return last->kind == OpKind::Yield || last->kind == OpKind::Return ? last : nullptr;
}

Value *Block::addArgument(TensorType type, llvm::StringRef path) {
  auto value = std::make_unique<Value>();
  value->type = std::move(type);
  value->path = path.str();
  value->block = this;
  value->number = arguments.size();
  arguments.push_back(std::move(value));
  return arguments.back().get();
}

Op *Block::insert(iterator where, std::unique_ptr<Op> op) {
  Op *result = op.get();
  result->block = this;
  for (auto &value : result->results)
    value->block = this;
  result->position = ops.insert(where, std::move(op));
  return result;
}

void Block::erase(Op *op) {
  assert(op->block == this);
  assert(llvm::all_of(op->results, [](auto &value) { return value->getUses().empty(); }) && "results are used");
  ops.erase(op->position);
}

std::unique_ptr<Op> Block::take(Op *op) {
  assert(op->block == this);
  std::unique_ptr<Op> owner = std::move(*op->position);
  ops.erase(op->position);
  return owner;
}
void Block::moveBefore(Op *op, Op *where) {
  assert(op->block == this && where->block == this);
  ops.splice(where->position, ops, op->position);
}

void Block::moveAfter(Op *op, Op *where) {
  assert(op->block == this && where->block == this && op != where);
  ops.splice(std::next(where->position), ops, op->position);
}

llvm::SmallVector<std::pair<llvm::StringRef, DType>, 3> Optimizer::getStates(const TensorType &parameter) const {
  llvm::SmallVector<std::pair<llvm::StringRef, DType>, 3> result;
  for (auto &[name, type] : states)
    if (name != masterState || type != parameter.dtype || parameter.quantization)
      result.emplace_back(name, type);
  return result;
}

llvm::SmallVector<std::pair<llvm::StringRef, DType>, 3> stage::getStates(const Graph &graph, const Op &update) {
  const Value *param = update.getOperand(0);
  auto states = graph.optimizer.getStates(param->type);
  bool hasMaster = llvm::any_of(states, [](const auto &state) { return state.first == Optimizer::masterState; });
  if (runsOnHost(update) && !isOnHost(*param) && !hasMaster)
    states.emplace_back(Optimizer::masterState, param->type.dtype);
  return states;
}

bool Graph::variesByUnit(Size size) const {
  const std::set<std::string> &bound = pipeline.environments.getSymbols();
  return !bound.empty() &&
         llvm::any_of(collectSymbols(size), [&](const std::string &symbol) { return bound.count(symbol); });
}

SizeBinding Graph::getBinding(unsigned environment) const {
  SizeBinding result = binding;
  select(result, environment);
  return result;
}

void Graph::select(SizeBinding &selected, unsigned environment) const {
  auto restore = [&](llvm::StringRef symbol) {
    std::optional<int64_t> value = binding.lookup(symbol);
    value ? selected.bind(symbol, *value) : selected.unbind(symbol);
  };
  for (const std::string &symbol : pipeline.environments.getSymbols())
    restore(symbol);
  restore(batchSymbol);
  for (auto &[symbol, value] : pipeline.environments[environment])
    selected.bind(symbol, value);
}

std::vector<unsigned> Graph::listEnvironments() const {
  std::vector<unsigned> environments(microbatches, 0);
  for (const std::vector<Unit> &units : pipeline.units)
    for (const Unit &unit : units)
      if (unit.microbatch < environments.size())
        environments[unit.microbatch] = unit.environment;
  return environments;
}

std::vector<PhaseKind> Graph::listForwardPhases() const {
  std::vector<PhaseKind> phases(microbatches, PhaseKind::Forward);
  for (const std::vector<Unit> &units : pipeline.units)
    for (const Unit &unit : units)
      if (unit.microbatch < phases.size() && isForward(unit.kind))
        phases[unit.microbatch] = unit.kind;
  return phases;
}

Dim *Graph::addDim(llvm::StringRef name, Size size, SMLoc loc) {
  auto dim = std::make_shared<Dim>();
  dim->name = name.str();
  dim->size = size;
  dim->loc = loc;
  dims.push_back(std::move(dim));
  return dims.back().get();
}

Dim *Graph::findDim(llvm::StringRef name) const {
  for (auto &dim : dims)
    if (dim->name == name)
      return dim.get();
  return nullptr;
}

const Stream *Graph::findStream(llvm::StringRef name) const {
  for (auto &stream : streams)
    if (stream->name == name)
      return stream.get();
  return nullptr;
}

const Stream *Graph::getMessageStream() const {
  for (auto &stream : streams)
    if (stream->hasMessages)
      return stream.get();
  return nullptr;
}

void stage::forEachAwaitedValue(const Op &op, llvm::function_ref<void(Value *)> f) {
  for (Value *operand : op.getOperands())
    f(operand);
  for (const OrderEdge &edge : op.after)
    if (!edge.iterations && !edge.units)
      f(edge.value);
}

void Graph::walk(Block &block, llvm::function_ref<void(Op &)> f) {
  for (auto &op : block) {
    f(*op);
    for (auto &body : op->bodies)
      walk(*body, f);
  }
}

void Graph::walk(llvm::function_ref<void(Op &)> f) {
  for (Block &phase : getPhases())
    walk(phase, f);
}

Block *Graph::findPhase(PhaseKind kind) const {
  auto found = llvm::find_if(phases, [&](auto &phase) { return phase->getPhase() == kind; });
  return found == phases.end() ? nullptr : found->get();
}

Graph::Graph(SizeContext &sizes) : sizes(sizes), defs(sizes) { getPhase(PhaseKind::Forward); }

Graph::~Graph() {
  walk([](Op &op) { op.clearOperands(); });
}

Block &Graph::getPhase(PhaseKind kind) {
  if (Block *known = findPhase(kind))
    return *known;
  auto next = llvm::find_if(phases, [&](auto &phase) { return phase->getPhase() > kind; });
  return **phases.insert(next, std::make_unique<Block>(*this, kind));
}

void Graph::erasePhase(PhaseKind kind) {
  Block *phase = findPhase(kind);
  walk(*phase, [](Op &op) { op.clearOperands(); });
  llvm::erase_if(phases, [&](auto &other) { return other.get() == phase; });
}

const Block &Block::getTop() const { return parent ? parent->getBlock()->getTop() : *this; }

Op *stage::getLoop(const Value *value) { return value->getBlock()->getParent(); }

Op *stage::getTopLevelOp(Op *op) {
  while (Op *parent = op->getBlock()->getParent())
    op = parent;
  return op;
}

static void visitOutsideValues(Op &op, const Op &root, llvm::function_ref<bool(const Block &)> runs,
                               llvm::function_ref<void(Value *, Op &)> f) {
  auto isInside = [&](const Value *value) {
    for (Op *loop = getLoop(value); loop; loop = loop->getBlock()->getParent())
      if (loop == &root)
        return true;
    return false;
  };
  for (Value *value : op.getOperands())
    if (!isInside(value))
      f(value, op);
  for (auto &body : op.bodies)
    if (runs(*body))
      for (auto &inner : *body)
        visitOutsideValues(*inner, root, runs, f);
}

void stage::forEachOutsideValue(Op &op, llvm::function_ref<void(Value *, Op &)> f) {
  visitOutsideValues(
      op, op, [](const Block &) { return true; }, f);
}

void stage::forEachOutsideValue(Op &repeat, int64_t begin, int64_t end, llvm::function_ref<void(Value *, Op &)> f) {
  auto runs = [&](const Block &body) { return repeat.cases.count(body.getNumber(), begin, end) > 0; };
  visitOutsideValues(repeat, repeat, runs, f);
}

std::string stage::describe(const Value &value) {
  if (!value.path.empty())
    return value.path;
  const Op *op = value.getOp();
  if (op && op->kind == OpKind::Join) // of what its pieces are
    return describe(*op->getOperand(0));
  if (!op && !getLoop(&value))
    return "a piece of a message";
  if (!op)
    return "an argument of '" + getLoop(&value)->name + "'";
  return joinPath(op->scope, op->def ? llvm::StringRef(op->def->name) : getName(op->kind));
}
