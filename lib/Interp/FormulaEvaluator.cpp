//===- FormulaEvaluator.cpp - an operator's numbers -----------------------===//
#include "FormulaEvaluator.h"
#include "stage/IR/algebra/RoutedApart.h"
#include "llvm/Support/SaveAndRestore.h"
#include <cmath>

using namespace stage;
using namespace stage::interp;
using Kind = Formula::Kind;

uint64_t stage::interp::hashWords(llvm::ArrayRef<uint64_t> words) {
  // splitmix64 over the words: the same on every machine.
  uint64_t state = 0x9e3779b97f4a7c15u;
  for (uint64_t word : words) {
    state += word + 0x9e3779b97f4a7c15u;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
    state ^= state >> 31;
  }
  return state;
}

double stage::interp::drawUniform(llvm::ArrayRef<uint64_t> words) { return double(hashWords(words) >> 11) * 0x1p-53; }

static bool containsRandom(const Formula *f) {
  return f->kind == Kind::Random || llvm::any_of(f->children, containsRandom);
}

bool stage::interp::isRandom(const OpDef &def) {
  return llvm::any_of(def.results, [](const ResultInfo &r) { return r.formula && containsRandom(r.formula); }) ||
         llvm::any_of(def.lets, [](const auto &let) { return containsRandom(let.second); });
}

bool stage::interp::isDealt(const ResultInfo &result) {
  return !result.formula && !result.extra && result.dtype && !isFloat(*result.dtype);
}

FormulaEvaluator::FormulaEvaluator(const Invocation &invocation, OpDefTable &defs, const SizeBinding &binding)
    : in(invocation), def(*invocation.def), binding(binding), reversesSums(invocation.disturbsSums) {
  at.assign(def.indices.size(), 0);
  if (def.routing)
    routeTokens();
  for (auto &[name, formula] : def.lets) {
    IndexSet free(def.indices.size());
    letRoots.push_back(build(formula, free));
    letFree.push_back(free);
    if (nodes[letRoots.back()].memo < 0)
      nodes[letRoots.back()].memo = addMemo(free);
  }
  for (unsigned i = 0; i < def.results.size(); ++i) {
    const Formula *formula = def.results[i].formula;
    if (!formula && !def.results[i].extra && !isDealt(def.results[i]))
      formula = makeStandIn(def, i, defs);
    IndexSet free(def.indices.size());
    roots.push_back(formula ? build(formula, free) : ~0u);
  }
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

unsigned FormulaEvaluator::build(const Formula *formula, IndexSet &free) {
  Node node;
  node.formula = formula;
  IndexSet inside(def.indices.size());
  for (const Formula *child : formula->children) {
    node.children.push_back(build(child, inside));
    node.isData |= nodes[node.children.back()].isData;
  }
  switch (formula->kind) {
  case Kind::Number:
    node.number = formula->number;
    break;
  case Kind::SizeOf: {
    // Index names stand for their global sizes.
    SizeBinding sizes = binding;
    for (unsigned i = 0; i < def.indices.size(); ++i)
      sizes.bind(def.indices[i].name, in.sizes[i]);
    SizeValue value = stage::evaluate(formula->size, sizes);
    if (value)
      node.number = double(value.value.num) / double(value.value.den);
    else
      fail("size(" + formula->size.str() + ") has no value");
    break;
  }
  case Kind::Index:
    if (def.routing && def.routing->isRouted(formula->index)) // follows from these
      inside |= toSet(getDeciding(def));
    else
      inside |= toSet(formula->index);
    break;
  case Kind::Random:
    inside |= toSet(def.results.front().indices);
    break;
  case Kind::Element:
    node.atData = node.isData;
    node.isData = true;
    node.isPlain = true;
    for (int64_t k = int64_t(formula->children.size()) - 1, stride = 1; k >= 0; --k) {
      unsigned index = def.operands[formula->operand].indices[k];
      node.isPlain &= formula->children[k]->kind == Kind::Index && formula->children[k]->index == index &&
                      !(def.routing && def.routing->isRouted(index));
      addStrides(index, stride, node.strides);
    }
    break;
  case Kind::Let:
    node.isData = nodes[letRoots[formula->operand]].isData;
    inside |= letFree[formula->operand];
    break;
  case Kind::Reduce:
    for (unsigned index : formula->indices)
      inside.reset(index);
    node.memo = addMemo(inside);
    break;
  default:
    break;
  }
  free |= inside;
  node.free = inside;
  nodes.push_back(std::move(node));
  return nodes.size() - 1;
}

int FormulaEvaluator::addMemo(const IndexSet &free) {
  Memo memo;
  size_t count = 1;
  for (unsigned i = 0; i < def.indices.size(); ++i)
    if (free[i]) {
      memo.indices.push_back(i);
      count *= in.positions[i].size();
    }
  memo.values.resize(count);
  memo.known.resize(count);
  memos.push_back(std::move(memo));
  return memos.size() - 1;
}

size_t FormulaEvaluator::getSlot(const Memo &memo) const {
  size_t slot = 0;
  for (unsigned index : memo.indices)
    slot = slot * in.positions[index].size() + at[index];
  return slot;
}

template <typename Function> void FormulaEvaluator::forEachIn(llvm::ArrayRef<unsigned> indices, Function f) {
  if (indices.empty())
    return f();
  unsigned index = indices.front();
  int64_t outer = at[index];
  for (size_t i = 0, n = in.positions[index].size(); i < n; ++i) {
    at[index] = reversesSums ? n - 1 - i : i;
    forEachIn(indices.drop_front(), f);
  }
  at[index] = outer;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

std::optional<int64_t> FormulaEvaluator::locate(const Node &node) {
  const Formula &f = *node.formula;
  int64_t place = 0;
  if (node.isPlain) {
    for (auto [index, stride] : node.strides)
      place += at[index] * stride;
    return place;
  }
  for (unsigned k = 0; k < node.children.size(); ++k) {
    const Formula *subscript = f.children[k];
    unsigned index = def.operands[f.operand].indices[k];
    // The caller sees to it that operands hold the positions that the op works on.
    const Positions &held = in.positions[index];
    int64_t local;
    if (subscript->kind == Kind::Index && subscript->index == index) {
      std::optional<int64_t> found = findLocal(index);
      if (!found)
        return std::nullopt;
      local = *found;
    } else {
      double position = eval(node.children[k]) - double(in.getOrigin(index));
      if (position != std::floor(position) || position < 0 || position >= double(in.sizes[index])) {
        fail("a subscript of operand '" + def.operands[f.operand].name + "' is " + std::to_string(position) +
             ", and the dim has " + std::to_string(in.sizes[index]) + " positions");
        return std::nullopt;
      }
      auto it = llvm::lower_bound(held, int64_t(position));
      if (it == held.end() || *it != int64_t(position)) {
        // A lookup is a one-hot contraction: what another rank holds adds nothing here.
        if (!node.atData)
          fail("operand '" + def.operands[f.operand].name + "' is read at position " +
               std::to_string(int64_t(position)) + " of a dim, which is held by another rank");
        return std::nullopt;
      }
      local = it - held.begin();
    }
    place = place * int64_t(held.size()) + local;
  }
  return place;
}

double FormulaEvaluator::eval(unsigned number) {
  const Node &node = nodes[number];
  if (node.memo < 0)
    return compute(node);
  Memo &memo = memos[node.memo];
  size_t slot = getSlot(memo);
  if (!memo.known[slot]) {
    if (!fault.empty())
      return 0;
    double value = compute(node);
    if (!fault.empty())
      return 0; // of an operand that is not known yet
    remember(node.memo, slot, value);
  }
  return memo.values[slot];
}

void FormulaEvaluator::remember(int memo, size_t slot, double value) {
  memos[memo].values[slot] = value;
  memos[memo].known[slot] = true;
  if (numTried > 0)
    findings.push_back({memo, 0, slot});
}

double FormulaEvaluator::compute(const Node &node) {
  const Formula &f = *node.formula;
  auto child = [&](unsigned i) { return eval(node.children[i]); };
  switch (f.kind) {
  case Kind::Number:
  case Kind::SizeOf:
    return node.number;
  case Kind::Index:
    return double(getPosition(f.index) + in.getOrigin(f.index));
  case Kind::Element: {
    auto place = locate(node);
    if (!place)
      return 0;
    if (const Tensor *operand = in.operands[f.operand])
      return operand->data[*place];
    const Recovered *found = recovered.empty() || !recovered[f.operand] ? nullptr : &*recovered[f.operand];
    if (found && found->known[*place])
      return found->values[*place];
    missingOperand = f.operand;
    fail("operand '" + def.operands[f.operand].name + "' was not saved");
    return 0;
  }
  case Kind::Let:
    return eval(letRoots[f.operand]);
  case Kind::Reduce: {
    double total = f.reduce == ReduceKind::Sum ? 0 : f.reduce == ReduceKind::Max ? -HUGE_VAL : HUGE_VAL, terms = 0;
    forEachIn(f.indices, [&] {
      double value = child(0);
      terms += std::fabs(value);
      total = f.reduce == ReduceKind::Sum   ? total + value
              : f.reduce == ReduceKind::Max ? std::max(total, value)
                                            : std::min(total, value);
    });
    if (in.disturbsSums && f.reduce == ReduceKind::Sum)
      total += getDisturbance(terms, getSlot(memos[node.memo]));
    if (f.isMean)
      for (unsigned index : f.indices)
        total /= double(in.sizes[index]);
    return total;
  }
  case Kind::Call:
    return call(node);
  case Kind::Negate:
    return -child(0);
  case Kind::Add:
    return isMerge(f) ? child(1) : child(0) + child(1);
  case Kind::Sub:
    return child(0) - child(1);
  case Kind::Mul:
    return child(0) * child(1);
  case Kind::Div:
    return child(0) / child(1);
  case Kind::Less:
    return child(0) < child(1);
  case Kind::LessEqual:
    return child(0) <= child(1);
  case Kind::Equal:
    return child(0) == child(1);
  case Kind::And:
    return child(0) != 0 && child(1) != 0;
  case Kind::Or:
    return child(0) != 0 || child(1) != 0;
  case Kind::Not:
    return child(0) == 0;
  case Kind::Select:
    return child(0) != 0 ? child(1) : child(2);
  case Kind::Random: {
    double probability = child(0), draw;
    if (in.draws) {
      int64_t place = 0;
      for (unsigned k = 0; k < def.results.front().indices.size(); ++k)
        place = place * int64_t(in.draws->dims[k].size()) + getLocal(def.results.front().indices[k]);
      draw = in.draws->data[place];
    } else {
      llvm::SmallVector<uint64_t, 8> words = {in.identity};
      for (unsigned index : in.drawIndices.empty() ? def.results.front().indices : in.drawIndices)
        words.push_back(uint64_t(getPosition(index)));
      draw = drawUniform(words);
    }
    return draw < probability ? 1 / probability : 0;
  }
  }
  return 0;
}

double FormulaEvaluator::call(const Node &node) {
  double x = eval(node.children[0]);
  switch (node.formula->function) {
  case Formula::Function::Exp:
    return std::exp(x);
  case Formula::Function::Log:
    return std::log(x);
  case Formula::Function::Sqrt:
    return std::sqrt(x);
  case Formula::Function::Rsqrt:
    return 1 / std::sqrt(x);
  case Formula::Function::Erf:
    return std::erf(x);
  case Formula::Function::Tanh:
    return std::tanh(x);
  case Formula::Function::Sigmoid:
    return 1 / (1 + std::exp(-x));
  case Formula::Function::Sin:
    return std::sin(x);
  case Formula::Function::Cos:
    return std::cos(x);
  case Formula::Function::Abs:
    return std::fabs(x);
  case Formula::Function::Floor:
    return std::floor(x);
  case Formula::Function::Max:
  case Formula::Function::Min: {
    bool isMax = node.formula->function == Formula::Function::Max;
    for (unsigned child : llvm::ArrayRef<unsigned>(node.children).drop_front())
      x = isMax ? std::max(x, eval(child)) : std::min(x, eval(child));
    return x;
  }
  }
  return 0;
}

Tensor FormulaEvaluator::evaluate(unsigned result) {
  llvm::SmallVector<Positions, 4> dims;
  const auto &indices = def.results[result].indices;
  for (unsigned index : indices)
    dims.push_back(in.positions[index]);
  Tensor tensor(std::move(dims));
  forEachElement(tensor.dims, [&](int64_t linear, llvm::ArrayRef<int64_t> local) {
    for (unsigned k = 0; k < indices.size(); ++k)
      setLocal(indices[k], local[k]);
    if (roots[result] != ~0u) {
      tensor.data[linear] = eval(roots[result]);
      return;
    }
    if (isDealt(def.results[result])) {
      llvm::SmallVector<int64_t, 4> positions;
      for (unsigned index : indices)
        positions.push_back(getPosition(index));
      if (!in.tiles.empty() && in.tiles[result]) {
        tensor.data[linear] = double(in.tiles[result]->deal(positions, in.identity, in.limits[result]));
        return;
      }
      if (!in.places.empty()) { // along the last dim one after the other, so that choices of a token differ
        llvm::SmallVector<uint64_t, 8> words = {in.placeIdentity};
        in.places[result]->append(positions, words);
        uint64_t choice = positions.empty() ? 0 : words.pop_back_val();
        tensor.data[linear] = double((hashWords(words) % 1024 + choice) % uint64_t(in.limits[result]));
        return;
      }
      uint64_t place = in.identity % 1024;
      for (unsigned d = 0; d < indices.size(); ++d)
        place = place * uint64_t(in.sizes[indices[d]]) + uint64_t(positions[d]);
      tensor.data[linear] = double(place % uint64_t(in.limits[result]));
      return;
    }
    // A saved extra without a formula (a mask, the logarithm of a sum): a number that tells whose it is.
    llvm::SmallVector<uint64_t, 8> words = {in.identity};
    for (unsigned index : indices)
      words.push_back(uint64_t(getPosition(index)));
    tensor.data[linear] = drawUniform(words);
  });
  return tensor;
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

void FormulaEvaluator::push(unsigned number, double adjoint) {
  // What no gradient is wanted of is not even evaluated: it need not have been saved.
  if (adjoint == 0 || !active[number])
    return;
  const Node &node = nodes[number];
  const Formula &f = *node.formula;
  auto child = [&](unsigned i) { return eval(node.children[i]); };
  switch (f.kind) {
  case Kind::Element:
    if (gradients[f.operand])
      if (auto place = locate(node)) {
        gradients[f.operand]->data[*place] += adjoint;
        termsOfGradients[f.operand][*place] += std::fabs(adjoint);
      }
    return;
  case Kind::Let: {
    Memo &memo = memos[nodes[letRoots[f.operand]].memo];
    size_t slot = getSlot(memo);
    memo.adjoints[slot] += adjoint;
    memo.terms[slot] += std::fabs(adjoint);
    return;
  }
  case Kind::Reduce:
    return pushReduce(node, adjoint);
  case Kind::Call:
    return pushCall(node, adjoint);
  case Kind::Negate:
    return push(node.children[0], -adjoint);
  case Kind::Add:
  case Kind::Sub:
    push(node.children[0], adjoint);
    if (isMerge(f))
      return;
    return push(node.children[1], f.kind == Kind::Add ? adjoint : -adjoint);
  case Kind::Mul: {
    if (active[node.children[0]])
      push(node.children[0], adjoint * child(1));
    if (active[node.children[1]])
      push(node.children[1], adjoint * child(0));
    return;
  }
  case Kind::Div: {
    double b = child(1);
    push(node.children[0], adjoint / b);
    if (active[node.children[1]])
      push(node.children[1], -adjoint * child(0) / (b * b));
    return;
  }
  case Kind::Select:
    return push(child(0) != 0 ? node.children[1] : node.children[2], adjoint);
  default:
    return; // numbers, positions and conditions
  }
}

void FormulaEvaluator::pushReduce(const Node &node, double adjoint) {
  const Formula &f = *node.formula;
  if (f.isMean)
    for (unsigned index : f.indices)
      adjoint /= double(in.sizes[index]);
  if (f.reduce == ReduceKind::Sum)
    return forEachIn(f.indices, [&] { push(node.children[0], adjoint); });
  // The gradient of a maximum goes to the first element that has it, in whatever order sums run.
  llvm::SaveAndRestore<bool> inOrder(reversesSums, false);
  double extreme = eval(&node - nodes.data());
  bool isFound = false;
  forEachIn(f.indices, [&] {
    if (isFound || eval(node.children[0]) != extreme)
      return;
    isFound = true;
    push(node.children[0], adjoint);
  });
}

void FormulaEvaluator::pushCall(const Node &node, double adjoint) {
  double x = eval(node.children[0]), slope = 0;
  auto y = [&] { return eval(&node - nodes.data()); }; // may be known more exactly than x
  switch (node.formula->function) {
  case Formula::Function::Exp:
    slope = y();
    break;
  case Formula::Function::Log:
    slope = 1 / x;
    break;
  case Formula::Function::Sqrt:
    slope = 0.5 / y();
    break;
  case Formula::Function::Rsqrt:
    slope = -0.5 / (x * std::sqrt(x));
    break;
  case Formula::Function::Erf:
    slope = M_2_SQRTPI * std::exp(-x * x);
    break;
  case Formula::Function::Tanh:
    slope = 1 - y() * y();
    break;
  case Formula::Function::Sigmoid:
    slope = y() * (1 - y());
    break;
  case Formula::Function::Sin:
    slope = std::cos(x);
    break;
  case Formula::Function::Cos:
    slope = -std::sin(x);
    break;
  case Formula::Function::Abs:
    slope = x < 0 ? -1 : 1;
    break;
  case Formula::Function::Floor:
    return;
  case Formula::Function::Max:
  case Formula::Function::Min: {
    double extreme = call(node);
    for (unsigned child : node.children)
      if (eval(child) == extreme)
        return push(child, adjoint);
    return;
  }
  }
  push(node.children[0], adjoint * slope);
}

std::vector<Tensor> FormulaEvaluator::differentiate(llvm::ArrayRef<const Tensor *> resultGradients,
                                                    llvm::ArrayRef<unsigned> wanted) {
  gradients.assign(def.operands.size(), std::nullopt);
  termsOfGradients.resize(def.operands.size());
  for (unsigned operand : wanted) {
    llvm::SmallVector<Positions, 4> dims;
    for (unsigned index : def.operands[operand].indices)
      dims.push_back(in.positions[index]);
    gradients[operand].emplace(std::move(dims));
    termsOfGradients[operand].assign(gradients[operand]->data.size(), 0);
  }
  active.assign(nodes.size(), false);
  for (size_t i = 0; i < nodes.size(); ++i) { // children come first
    const Formula &f = *nodes[i].formula;
    bool isFlat = f.kind == Kind::Less || f.kind == Kind::LessEqual || f.kind == Kind::Equal || f.kind == Kind::And ||
                  f.kind == Kind::Or || f.kind == Kind::Not ||
                  (f.kind == Kind::Call && f.function == Formula::Function::Floor);
    if (isFlat)
      continue;
    active[i] = (f.kind == Kind::Element && gradients[f.operand]) ||
                (f.kind == Kind::Let && active[letRoots[f.operand]]) ||
                (f.kind != Kind::Element && llvm::any_of(nodes[i].children, [&](unsigned c) { return active[c]; }));
  }
  for (Memo &memo : memos) {
    memo.adjoints.assign(memo.values.size(), 0);
    memo.terms.assign(memo.values.size(), 0);
  }
  for (unsigned r = 0; r < def.results.size(); ++r) {
    if (r >= resultGradients.size() || !resultGradients[r] || roots[r] == ~0u)
      continue;
    const auto &indices = def.results[r].indices;
    forEachElement(resultGradients[r]->dims, [&](int64_t linear, llvm::ArrayRef<int64_t> local) {
      for (unsigned k = 0; k < indices.size(); ++k)
        setLocal(indices[k], local[k]);
      push(roots[r], resultGradients[r]->data[linear]);
    });
  }
  // A let uses only those before it.
  for (unsigned let = letRoots.size(); let-- > 0;) {
    const Memo &memo = memos[nodes[letRoots[let]].memo];
    llvm::SmallVector<unsigned, 4> indices = memo.indices;
    std::vector<double> adjoints = memo.adjoints;
    for (size_t i = 0; in.disturbsSums && i < adjoints.size(); ++i)
      adjoints[i] += getDisturbance(memo.terms[i], i);
    forEachIn(indices, [&] { push(letRoots[let], adjoints[getSlot(memo)]); });
  }
  std::vector<Tensor> result;
  for (unsigned operand : wanted) {
    for (size_t i = 0; in.disturbsSums && i < gradients[operand]->data.size(); ++i)
      gradients[operand]->data[i] += getDisturbance(termsOfGradients[operand][i], i);
    result.push_back(std::move(*gradients[operand]));
  }
  return result;
}
