//===- Subjects.cpp - what the values of a graph are ----------------------===//
#include "Subjects.h"
#include "stage/IR/graph/Rule.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace stage;

llvm::StringRef stage::getName(Subject subject) {
  switch (subject) {
  case Subject::Parameters:
    return "parameters";
  case Subject::Gradients:
    return "gradients";
  case Subject::GradientNorm:
    return "gradient norm";
  case Subject::Caches:
    return "caches";
  case Subject::Loss:
    return "loss";
  case Subject::Tokens:
    return "tokens";
  case Subject::Activations:
    return "activations";
  }
  llvm_unreachable("unknown subject");
}

std::string stage::describeTypes(llvm::ArrayRef<const Value *> values) {
  std::set<DType> types;
  for (const Value *value : values)
    types.insert(value->type.quantization ? value->type.quantization->type : value->type.dtype);
  std::vector<llvm::StringRef> names;
  for (DType type : types)
    names.push_back(getName(type));
  return llvm::join(names, ", ");
}

std::string stage::describeTypes(const Op &communication) {
  if (communication.kind != OpKind::AllGather)
    return describeTypes(communication.getOperands());
  llvm::SmallVector<const Value *, 4> whole; // into the types of which wider shards are cast
  for (auto &result : communication.getResults())
    whole.push_back(result.get());
  return describeTypes(whole);
}

/// Calls `f` for what a value is another name of at the borders of repeats: of a carried value the initial one and the
/// one that each body yields.
static void forEachCarried(const Value &value, llvm::function_ref<void(const Value *)> f) {
  const Op *repeat = value.isArgument() ? value.getBlock()->getParent() : value.getOp();
  if (!repeat || repeat->kind != OpKind::Repeat)
    return;
  f(repeat->getOperand(value.getNumber()));
  for (auto &body : repeat->bodies)
    if (Op *yield = body->getTerminator())
      f(yield->getOperand(value.getNumber()));
}

Subjects::Subjects(Graph &graph) : graph(graph), slots(graph) {
  graph.walk([&](Op &op) {
    const Routing *routing = op.kind == OpKind::Compute ? op.def->getRouting() : nullptr;
    if (routing && op.extents[routing->target].dim)
      targets.insert(op.extents[routing->target].dim);
  });
  auto isForExperts = [&](const Rule &rule) {
    return llvm::all_of(rule.dims, [&](llvm::StringRef name) {
      bool isTarget = llvm::any_of(targets, [&](const Dim *dim) { return dim->name == name || dim->answersTo(name); });
      return isTarget || !graph.findDim(name); // one of several that this program may have
    });
  };
  for (const AxisGroup &group : graph.mesh.getGroups()) {
    bool isUsed = false, isForOthers = false;
    for (const Rule &rule : graph.rules)
      if (rule.kind == RuleKind::Shard && llvm::equal(rule.axes, group.axes)) {
        isUsed = true;
        isForOthers |= !isForExperts(rule);
      }
    if (isUsed && !isForOthers)
      groupsOfExperts.push_back(&group);
  }
  followState();
  followGradients();
  if (graph.training)
    followLoss();
}

bool Subjects::isOfState(const Op &op) const {
  auto isKnown = [&](const Value *operand) { return isState(*operand); };
  auto isNumber = [](const Value *operand) { return operand->getOp() && operand->getOp()->kind == OpKind::Constant; };
  return llvm::any_of(op.getOperands(), isKnown) &&
         llvm::all_of(op.getOperands(), [&](const Value *operand) { return isKnown(operand) || isNumber(operand); });
}

bool Subjects::handsOnGradients(const Op &op) const {
  return op.origin ? isOfState(*op.origin) : op.def->isSum || op.def->isElementwise || op.def->isView;
}

void Subjects::followState() {
  graph.walk([&](Op &op) {
    bool isState = op.kind == OpKind::Param || op.kind == OpKind::Buffer || op.kind == OpKind::Update;
    bool isGradient = op.origin && !op.isRecomputed; // x * w has a gradient that is made of w and numbers
    bool isMade = (op.kind == OpKind::Compute || op.kind == OpKind::Join) && !isGradient && isOfState(op);
    for (auto &result : op.getResults())
      if (isState || isMade)
        known[result.get()] = Subject::Parameters;
      else if (op.kind == OpKind::Cache || op.kind == OpKind::Append)
        known[result.get()] = Subject::Caches;
      else if (isMove(op.kind))
        if (Mark moved = known.lookup(getMoved(*result)))
          known[result.get()] = moved;
  });
}

void Subjects::mark(const Value *value, Subject subject) {
  if (known.try_emplace(value, subject).second)
    pending.push_back(value);
}

void Subjects::followGradients() {
  graph.walk([&](Op &op) {
    if (op.kind == OpKind::Accumulate || op.kind == OpKind::AddNorm)
      mark(op.getOperand(0), Subject::Gradients);
    if (op.kind == OpKind::AddNorm)
      mark(op.getResult(), Subject::GradientNorm);
    if (op.kind != OpKind::Update)
      return;
    mark(op.getOperand(1), Subject::Gradients);
    if (op.clips)
      mark(op.getOperands().back(), Subject::GradientNorm);
  });
  while (!pending.empty()) {
    const Value *value = pending.pop_back_val();
    Subject subject = *known.lookup(value);
    forEachCarried(*value, [&](const Value *other) { mark(other, subject); });
    const Op *op = value->getOp();
    if (!op)
      continue;
    if (isMove(op->kind))
      mark(getMoved(*value), subject);
    if (op->kind == OpKind::Accumulate)
      mark(op->getOperand(0), subject);
    // Sums, casts and views of gradients, and the gradient of a cast of the parameter: not what makes the gradient.
    if (op->kind == OpKind::Join || (op->kind == OpKind::Compute && handsOnGradients(*op)))
      for (const Value *operand : op->getOperands())
        mark(operand, subject);
  }
}

void Subjects::followLoss() {
  auto mark = [&](const Value *value) {
    if (reaching.insert(value).second)
      pending.push_back(value);
  };
  auto hasParameter = [&](const Op &op) {
    return op.kind == OpKind::Compute && llvm::any_of(op.getOperands(), [&](Value *value) { return isState(*value); });
  };
  Graph::walk(graph.getForward(), [&](Op &op) {
    if (hasParameter(op))
      llvm::for_each(op.getOperands(), mark);
  });
  while (!pending.empty()) {
    const Value *value = pending.pop_back_val();
    forEachCarried(*value, mark);
    if (const Op *op = value->getOp(); op && op->kind != OpKind::Repeat)
      for (const Value *operand : op->getOperands())
        mark(operand);
  }
  // What a parameter takes part in is still the model's, and so is what an op keeps beside a result that is.
  Graph::walk(graph.getForward(), [&](Op &op) {
    auto isReaching = [&](const auto &result) { return reaching.contains(result.get()); };
    bool isModel = hasParameter(op) || (isMove(op.kind) && reaching.contains(op.getOperand(0))) ||
                   (op.kind == OpKind::Compute && llvm::any_of(op.getResults(), isReaching));
    for (auto &result : op.getResults())
      if (isModel)
        reaching.insert(result.get());
  });
  // The loss itself, also of an op with a parameter.
  const Op *end = graph.getForward().getTerminator();
  const Value *loss = end && end->getNumOperands() ? end->getOperand(0) : nullptr;
  for (; loss; loss = loss->getOp() && isMove(loss->getOp()->kind) ? getMoved(*loss) : nullptr)
    reaching.erase(loss);
}

Subject Subjects::find(const Value &value) const {
  if (Mark mark = known.lookup(&value))
    return *mark;
  const Value &forward = value.primal ? *value.primal : value;
  bool isForward = forward.getBlock() && forward.getBlock()->getPhase() == PhaseKind::Forward;
  if (graph.training && isForward && !reaching.contains(&forward))
    return Subject::Loss;
  bool isId = !isFloat(value.type.dtype); // of tokens, or where they go
  return isId || isOfExperts(value) ? Subject::Tokens : Subject::Activations;
}

bool Subjects::isOfExperts(const Value &value) const {
  return slots.hasSlots(value) ||
         llvm::any_of(value.type.shape, [&](const Extent &extent) { return targets.contains(extent.dim); });
}

std::vector<std::string> Subjects::listAxisNames(const Op &op) const {
  bool isForExperts = llvm::any_of(op.getOperands(), [&](const Value *value) { return isOfExperts(*value); });
  AxisList axes; // in whatever layout
  for (AxisId axis : op.axes)
    axes.emplace_back(axis);
  std::vector<std::string> names;
  for (auto [name, axis] : graph.mesh.nameAxes(axes, isForExperts ? decltype(groupsOfExperts)() : groupsOfExperts))
    names.push_back(name.str());
  return names;
}
