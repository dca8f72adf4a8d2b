//===- Sources.cpp - what a proof starts from -----------------------------===//
#include "Sources.h"
#include "FormulaEvaluator.h"
#include "Places.h"
#include "stage/IR/algebra/RoutedApart.h"

using namespace stage;
using namespace stage::interp;

Sources::Sources(const Graph &graph, double scale, const ServedUnits *served)
    : graph(graph), scale(scale), served(served), pieces(graph) {
  unsigned numParams = 0, numBuffers = 0, numCaches = 0, numInputs = 0, numRandom = 0;
  auto number = [&](Op &op) {
    if (op.kind == OpKind::Param) {
      ordinals[&op] = numParams++;
      params.push_back(op.getResult());
    } else if (op.kind == OpKind::Buffer) {
      ordinals[&op] = numBuffers++;
    } else if (op.kind == OpKind::Cache) {
      ordinals[&op] = numCaches++;
    } else if (op.kind == OpKind::Input) {
      ordinals[&op] = numInputs++;
    } else if (op.kind == OpKind::Compute) {
      // Extras and integers that are dealt out tell invocations apart as draws do.
      if (isRandom(*op.def) ||
          llvm::any_of(op.def->results, [](const ResultInfo &r) { return (r.extra && !r.formula) || isDealt(r); }))
        ordinals[&op] = numRandom++;
      findLimits(op);
    }
  };
  for (Block &phase : graph.getPhases())
    if (isForward(phase.getPhase()))
      Graph::walk(phase, number);
  findDrawers();
}

/// What is made of an op knows it, or else stands where differentiation left it: at one place of the source, in one
/// scope.
void Sources::findDrawers() {
  std::map<std::pair<const char *, std::string>, const Op *> places;
  for (Block &phase : graph.getPhases())
    Graph::walk(phase, [&](Op &op) {
      if (op.origin) {
        drawers[&op] = getDrawer(op.origin);
        return;
      }
      if (op.kind != OpKind::Compute || !isRandom(op.def->vjpOf ? *op.def->vjpOf : *op.def))
        return;
      auto [it, isNew] = places.try_emplace({op.loc.getPointer(), op.scope}, &op);
      if (!isForward(phase.getPhase()) && !isNew)
        drawers[&op] = it->second;
    });
}

bool Sources::isSource(const Value *value) {
  const Op *op = value->getOp();
  return op && !op->isTransferred && (isState(op->kind) || op->kind == OpKind::Input || op->kind == OpKind::Constant);
}

/// Calls `f` for each value of which an integer one is a copy of elements, itself first, as long as `f` says so.
static void forEachOriginal(const Value *value, llvm::function_ref<bool(const Value *)> f);

const Tiles *Sources::findTiles(const Value *value) const {
  const Op *op = value->getOp();
  if (op && op->isRecomputed && op->origin)
    op = op->origin;
  if (!op || isFloat(value->type.dtype))
    return nullptr;
  auto it = tiles.find({op->kind == OpKind::Compute, getOrdinal(op), value->getNumber()});
  return it == tiles.end() ? nullptr : &it->second;
}

/// Integers have the tiles of the op that routes by them first.
void Sources::noteTiles(const Op &op) {
  const Value *integers = op.getOperand(op.def->routing->operand);
  if (auto size = pieces.getSize(op.extents[op.def->routing->target].size))
    limit(integers, *size);
  if (takesAll(graph, op.extents[op.def->routing->slot].dim) && getApart(*op.def).empty())
    return; // by the places of tokens
  std::optional<Tiles> found = stage::interp::findTiles(graph, op);
  if (!found)
    return;
  llvm::DenseSet<const Value *> seen;
  forEachOriginal(integers, [&](const Value *value) {
    const Op *maker = value->getOp();
    bool isDealer = maker && maker->kind == OpKind::Compute && isDealt(maker->def->results[value->getNumber()]);
    if (isDealer || (maker && maker->kind == OpKind::Input))
      tiles.try_emplace({isDealer, getOrdinal(maker), value->getNumber()}, *found);
    return seen.insert(value).second;
  });
}

void Sources::findLimits(const Op &op) {
  if (op.def->routing)
    noteTiles(op);
  auto visit = [&](auto &self, const Formula *f) -> void {
    if (f->kind == Formula::Kind::Element)
      for (unsigned k = 0; k < f->children.size(); ++k)
        if (f->children[k]->kind == Formula::Kind::Element)
          if (auto size = pieces.getSize(op.extents[op.def->operands[f->operand].indices[k]].size))
            limit(op.getOperand(f->children[k]->operand), *size);
    for (const Formula *child : f->children)
      self(self, child);
  };
  for (const ResultInfo &result : op.def->results)
    if (result.formula)
      visit(visit, result.formula);
  for (auto &[name, let] : op.def->lets)
    visit(visit, let);
}

/// Calls `f` for the operands whose elements a formula hands on as they are.
static void forEachCopied(const OpDef &def, const Formula *formula, llvm::function_ref<void(unsigned)> f) {
  switch (formula->kind) {
  case Formula::Kind::Element:
    return f(formula->operand);
  case Formula::Kind::Let:
    return forEachCopied(def, def.lets[formula->operand].second, f);
  case Formula::Kind::Select:
    forEachCopied(def, formula->children[1], f);
    return forEachCopied(def, formula->children[2], f);
  default:
    return;
  }
}

void Sources::limit(const Value *value, int64_t size) {
  forEachOriginal(value, [&](const Value *original) {
    auto [it, isNew] = limits.try_emplace(original, size);
    if (!isNew && it->second <= size)
      return false;
    it->second = size;
    return true;
  });
}

static void forEachOriginal(const Value *value, llvm::function_ref<bool(const Value *)> f) {
  llvm::SmallVector<const Value *, 8> pending = {value};
  while (!pending.empty()) {
    const Value *now = pending.pop_back_val();
    if (isFloat(now->type.dtype) || !f(now))
      continue;
    const Op *op = now->isArgument() ? now->getBlock()->getParent() : now->getOp();
    if (op && op->kind == OpKind::Repeat) {
      pending.push_back(op->getOperand(now->getNumber()));
      for (auto &body : op->bodies)
        pending.push_back(body->getTerminator()->getOperand(now->getNumber()));
    } else if (op && isMove(op->kind)) {
      pending.push_back(getMoved(*now));
    } else if (op && op->kind == OpKind::Compute && op->def->results[now->getNumber()].formula) {
      forEachCopied(*op->def, op->def->results[now->getNumber()].formula,
                    [&](unsigned operand) { pending.push_back(op->getOperand(operand)); });
    }
  }
}

std::optional<Tensor> Sources::makeTensor(const Value *value) {
  auto dims = pieces.getPositions(value->type, Sharding::replicated(value->type.getNumDims()), /*rank=*/-1);
  return dims ? std::optional<Tensor>(std::move(*dims)) : std::nullopt;
}

/// In (-0.8, 1) * scale: not symmetric, so that a lost sign shows, and not so large that an exponential leaves the
/// range where sums are exact to many digits.
static void fill(Tensor &tensor, llvm::ArrayRef<uint64_t> key, double scale) {
  for (size_t i = 0; i < tensor.data.size(); ++i) {
    llvm::SmallVector<uint64_t, 8> words(key.begin(), key.end());
    words.push_back(i);
    tensor.data[i] = scale * (1.8 * drawUniform(words) - 0.8);
  }
}

void Sources::fillByPlace(Tensor &tensor, const Op &input, uint64_t microbatch) const {
  uint64_t name = 0;
  for (char letter : input.name)
    name = hashWords({name, uint64_t(letter)});
  double range = isFloat(input.getResult()->type.dtype) ? scale : 1;
  Places places(graph, input.getResult()->type.shape, findPackedUnit(microbatch));
  forEachElement(tensor.dims, [&](int64_t linear, llvm::ArrayRef<int64_t> local) {
    llvm::SmallVector<uint64_t, 8> words = {5, name, 0};
    places.append(local, words);
    tensor.data[linear] = range * (1.8 * drawUniform(words) - 0.8);
  });
}

TensorRef Sources::draw(const Value *value, uint64_t instance) {
  TensorRef &known = this->known[{value, instance}];
  if (known)
    return known;
  auto tensor = makeTensor(value);
  if (!tensor)
    return nullptr;
  const Op *op = value->getOp();
  uint64_t kind = op->kind == OpKind::Param ? 1 : op->kind == OpKind::Input ? 2 : op->kind == OpKind::Buffer ? 3 : 4;
  if (op->kind == OpKind::Input && !graph.training)
    fillByPlace(*tensor, *op, instance);
  else
    fill(*tensor, {kind, getOrdinal(op), instance}, isFloat(value->type.dtype) ? scale : 1);
  if (!isFloat(value->type.dtype)) {
    double limit = double(getLimit(value));
    llvm::SmallVector<int64_t, 4> sizes;
    for (const Positions &positions : tensor->dims)
      sizes.push_back(int64_t(positions.size()));
    if (const Tiles *cut = findTiles(value); cut && cut->fit(sizes)) {
      forEachElement(tensor->dims, [&](int64_t linear, llvm::ArrayRef<int64_t> positions) { // it is whole
        tensor->data[linear] = double(cut->deal(positions, instance, int64_t(limit)));
      });
      return this->known[{value, instance}] = std::make_shared<Tensor>(std::move(*tensor));
    }
    for (double &number : tensor->data)
      number = std::min(limit - 1, double(int64_t((number + 0.8) / 1.8 * limit)));
    // The last position is among them, too: few numbers of many positions may miss what an op does with those at the
    // end.
    if (graph.training && op->kind == OpKind::Input && !tensor->data.empty())
      tensor->data.back() = limit - 1;
  }
  known = std::make_shared<Tensor>(std::move(*tensor));
  return known;
}

TensorRef Sources::getConstant(const Value *constant) {
  TensorRef &known = this->known[{constant, 0}];
  std::optional<Tensor> tensor = makeTensor(constant);
  if (tensor && !(known && known->dims == tensor->dims)) { // units may differ in the size
    std::fill(tensor->data.begin(), tensor->data.end(), constant->getOp()->number);
    known = std::make_shared<Tensor>(std::move(*tensor));
  }
  return known;
}
