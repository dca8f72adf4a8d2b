//===- RecoverOperands.cpp - operands that backward was not given ---------===//
//
// Problem: backward has the values that the operator saves and nothing else. A sigmoid may save its result: its
// gradient is y * (1 - y). A gelu may not, because two operands have the same result and different gradients. A proof
// must accept the first and refuse the second, and it must not help itself to an operand that no rank has.
//
//   op gate(x: [...]) -> [...] = sigmoid(x) { saves result; }
//     x = log(y / (1 - y))
//   op relu(x: [...]) -> [...] = where(x > 0, x, 0) { saves result; }
//     x = y where y is above 0; else any x that is not
//   op softmax(x: [..., n]) -> [..., n] = exp(x) / sum[n](exp(x)) { saves result; }
//     the sum is any number c; x = log(c * y)
//   op square(x: [...]) -> [...] = x * x { saves result; }
//     refused: the root may have either sign
//
// Algorithm: values of results go down the formula. Where one operand of a node is not known, the node's value and
// the other operand's tell it: through sums, products, quotients, exp, log, roots, tanh, sigmoid, max and min with
// something known, and the sides of a `where`. A `where` whose condition is not known has the side whose operands bear
// the condition out, if it is only one; x * x is undone there, with the sign that the condition leaves. This goes on
// until nothing new is found. Where neither operand of a node is known and one of them is a reduction, or has fewer
// indices, as the sum in a softmax, gradients may not depend on its value: it gets an arbitrary one, and the other
// operand follows.
//
// So the gradient is computed at operands that differ from the true ones in all that saved results do not tell.
// OpRunner compares it with the gradient at the true operands: they are equal, at these numbers, if the gradient
// follows from what was saved.
//
// Limits: an operand that stands twice is found only where one of the places tells it alone: x * x * x has one root,
// but is refused. A product does not tell the factor of a 0. Sums are not undone, and neither are erf, sin, cos, abs
// and floor.
//
//===----------------------------------------------------------------------===//
#include "FormulaEvaluator.h"
#include "llvm/Support/SaveAndRestore.h"
#include <algorithm>
#include <cmath>

using namespace stage;
using namespace stage::interp;
using Kind = Formula::Kind;

void FormulaEvaluator::recover(llvm::ArrayRef<const Tensor *> results) {
  if (!fault.empty())
    return;
  recovered.assign(def.operands.size(), std::nullopt);
  for (unsigned i = 0; i < def.operands.size(); ++i) {
    if (in.operands[i])
      continue;
    size_t count = 1;
    for (unsigned index : def.operands[i].indices)
      count *= in.positions[index].size();
    recovered[i] = {std::vector<double>(count), std::vector<bool>(count)};
  }
  findEqualNodes();
  for (bool isLast : {false, true}) {
    mayChoose = isLast;
    for (bool isNew = true; isNew;) {
      isNew = false;
      for (unsigned r = 0; r < results.size(); ++r) {
        if (!results[r] || roots[r] == ~0u)
          continue;
        const auto &indices = def.results[r].indices;
        forEachElement(results[r]->dims, [&](int64_t linear, llvm::ArrayRef<int64_t> local) {
          for (unsigned k = 0; k < indices.size(); ++k)
            setLocal(indices[k], local[k]);
          isNew |= solve(roots[r], results[r]->data[linear]);
        });
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// What is known
//===----------------------------------------------------------------------===//

bool FormulaEvaluator::areEqual(unsigned a, unsigned b) const {
  const Formula &f = *nodes[a].formula, &g = *nodes[b].formula;
  if (f.kind != g.kind || f.function != g.function || f.reduce != g.reduce || f.isMean != g.isMean ||
      f.operand != g.operand || f.index != g.index || f.number != g.number || f.size != g.size ||
      f.indices != g.indices || nodes[a].children.size() != nodes[b].children.size() || isMerge(f) != isMerge(g))
    return false;
  for (auto [x, y] : llvm::zip(nodes[a].children, nodes[b].children))
    if (firstEqual[x] != firstEqual[y])
      return false;
  return true;
}

/// A reduction that stands twice, in the results of a softmax and of its log-sum-exp, is known in both places.
void FormulaEvaluator::findEqualNodes() {
  firstEqual.resize(nodes.size());
  for (unsigned i = 0; i < nodes.size(); ++i) {
    firstEqual[i] = i;
    if (nodes[i].formula->kind == Kind::Let) {
      firstEqual[i] = firstEqual[letRoots[nodes[i].formula->operand]];
      continue;
    }
    for (unsigned before = 0; before < i && firstEqual[i] == i; ++before)
      if (firstEqual[before] == before && areEqual(before, i))
        firstEqual[i] = before;
    // The memo of a let also has its adjoints.
    if (nodes[i].memo >= 0 && nodes[firstEqual[i]].memo >= 0 && !llvm::is_contained(letRoots, i))
      nodes[i].memo = nodes[firstEqual[i]].memo;
  }
}

/// The value of a node at the current indices; nothing if it depends on an operand that is not known there.
std::optional<double> FormulaEvaluator::tryEval(unsigned node) {
  double value = eval(node);
  if (fault.empty())
    return value;
  fault.clear();
  missingOperand.reset();
  return std::nullopt;
}

std::optional<int64_t> FormulaEvaluator::tryLocate(const Node &node) {
  std::optional<int64_t> place = locate(node);
  if (fault.empty())
    return place;
  fault.clear();
  missingOperand.reset();
  return std::nullopt;
}

void FormulaEvaluator::rollBack(size_t numFindings) {
  for (; findings.size() > numFindings; findings.pop_back()) {
    const Finding &finding = findings.back();
    (finding.memo >= 0 ? memos[finding.memo].known : recovered[finding.operand]->known)[finding.place] = false;
  }
}

//===----------------------------------------------------------------------===//
// From a value to its operands
//===----------------------------------------------------------------------===//

/// A node has a value at the current indices. True if that tells anything new.
bool FormulaEvaluator::solve(unsigned number, double value) {
  if (!std::isfinite(value))
    return false;
  Node &node = nodes[number];
  const Formula &f = *node.formula;
  if (f.kind == Kind::Let)
    return solve(letRoots[f.operand], value);
  if (f.kind == Kind::Call && node.memo < 0 && !tryEval(number))
    node.memo = addMemo(node.free); // its value is more exact than what it makes of an operand that is found by it
  bool isNew = false;
  if (node.memo >= 0) {
    size_t slot = getSlot(memos[node.memo]);
    isNew = !memos[node.memo].known[slot];
    if (isNew)
      remember(node.memo, slot, value);
  }
  switch (f.kind) {
  case Kind::Element: {
    if (in.operands[f.operand])
      return isNew;
    std::optional<int64_t> place = tryLocate(node);
    Recovered &found = *recovered[f.operand];
    if (!place || found.known[*place])
      return isNew;
    found.known[*place] = true;
    found.values[*place] = value;
    if (numTried > 0)
      findings.push_back({-1, f.operand, size_t(*place)});
    return true;
  }
  case Kind::Negate:
    return solve(node.children[0], -value) | isNew;
  case Kind::Add:
  case Kind::Sub:
  case Kind::Mul:
  case Kind::Div:
    return isMerge(f) ? isNew : solveBinary(node, value) | isNew;
  case Kind::Call:
    return solveCall(node, value) | isNew;
  case Kind::Select:
    if (std::optional<double> condition = tryEval(node.children[0]))
      return solve(node.children[*condition != 0 ? 1 : 2], value) | isNew;
    return solveSelect(node, value) | isNew;
  default:
    return isNew;
  }
}

/// Gives a node that is not known a value that has nothing to do with its true one, if fewer elements depend on it than
/// on the other operand beside which it stands.
std::optional<double> FormulaEvaluator::choose(unsigned number, unsigned other) {
  if (!mayChoose || numTried > 0)
    return std::nullopt;
  const Node *node = &nodes[number];
  while (node->formula->kind == Kind::Let)
    node = &nodes[letRoots[node->formula->operand]];
  bool isSmaller = node->free != nodes[other].free && !node->free.test(nodes[other].free);
  if (!isSmaller && node->formula->kind != Kind::Reduce)
    return std::nullopt;
  solve(number, 0.5 + drawUniform({uint64_t(node - nodes.data())}));
  return tryEval(number);
}

bool FormulaEvaluator::solveBinary(const Node &node, double value) {
  std::optional<double> a = tryEval(node.children[0]), b = tryEval(node.children[1]);
  Kind kind = node.formula->kind;
  if (!a && !b) {
    if (kind == Kind::Mul && firstEqual[node.children[0]] == firstEqual[node.children[1]] && signOfRoot != 0) {
      tookRoot = true;
      return solve(node.children[0], signOfRoot * std::sqrt(value));
    }
    b = choose(node.children[1], node.children[0]);
    if (!b)
      a = choose(node.children[0], node.children[1]);
  }
  if (a.has_value() == b.has_value())
    return false;
  switch (kind) {
  case Kind::Add:
    return a ? solve(node.children[1], value - *a) : solve(node.children[0], value - *b);
  case Kind::Sub:
    return a ? solve(node.children[1], *a - value) : solve(node.children[0], value + *b);
  case Kind::Mul:
    return a ? solve(node.children[1], value / *a) : solve(node.children[0], value / *b);
  default:
    return a ? solve(node.children[1], *a / value) : solve(node.children[0], value * *b);
  }
}

bool FormulaEvaluator::solveCall(const Node &node, double value) {
  unsigned first = node.children[0];
  // A result at the end of its range has many operands, all of which have the gradient 0: one far out stands for them.
  constexpr double far = 300;
  auto within = [far](double operand) { return std::clamp(operand, -far, far); };
  switch (node.formula->function) {
  case Formula::Function::Exp:
    return solve(first, value == 0 ? -far : std::log(value));
  case Formula::Function::Log:
    return solve(first, std::exp(value));
  case Formula::Function::Sqrt:
    return solve(first, value * value);
  case Formula::Function::Rsqrt:
    return solve(first, 1 / (value * value));
  case Formula::Function::Tanh:
    return solve(first, within(std::atanh(value)));
  case Formula::Function::Sigmoid:
    return solve(first, within(std::log(value / (1 - value))));
  case Formula::Function::Max:
  case Formula::Function::Min: {
    double sign = node.formula->function == Formula::Function::Max ? 1 : -1;
    std::optional<unsigned> unknown;
    double extreme = -HUGE_VAL;
    for (unsigned child : node.children) {
      if (std::optional<double> known = tryEval(child))
        extreme = std::max(extreme, sign * *known);
      else if (unknown)
        return false;
      else
        unknown = child;
    }
    // Behind what is known it may be anything.
    return unknown && solve(*unknown, sign * value > extreme ? value : sign * (extreme - 1));
  }
  default: // several operands have the same value
    return false;
  }
}

//===----------------------------------------------------------------------===//
// where
//===----------------------------------------------------------------------===//

/// The side of a `where` whose operands bear its condition out, if it is the only one.
bool FormulaEvaluator::solveSelect(const Node &node, double value) {
  struct Side {
    bool isTrue;
    int sign;
  };
  llvm::SmallVector<Side, 4> possible;
  for (bool isTrue : {true, false})
    for (int sign : {1, -1}) {
      llvm::SaveAndRestore<int> root(signOfRoot, sign);
      llvm::SaveAndRestore<bool> took(tookRoot, false);
      size_t before = findings.size();
      ++numTried;
      if (trySide(node, isTrue, value))
        possible.push_back({isTrue, sign});
      rollBack(before);
      --numTried;
      if (!tookRoot)
        break;
    }
  if (possible.size() != 1)
    return false;
  llvm::SaveAndRestore<int> root(signOfRoot, possible.front().sign);
  size_t before = findings.size();
  return trySide(node, possible.front().isTrue, value) && (numTried == 0 || findings.size() > before);
}

bool FormulaEvaluator::trySide(const Node &select, bool isTrue, double value) {
  unsigned side = select.children[isTrue ? 1 : 2];
  solve(side, value);
  std::optional<double> condition = tryEval(select.children[0]);
  if (!condition && steer(select.children[0], isTrue))
    condition = tryEval(select.children[0]);
  std::optional<double> found = tryEval(side);
  return condition && (*condition != 0) == isTrue && found && std::fabs(*found - value) <= 1e-12 * std::fabs(value);
}

/// Chooses an operand with which a condition holds, or does not. True if one was found.
bool FormulaEvaluator::steer(unsigned number, bool isTrue) {
  const Node &node = nodes[number];
  Kind kind = node.formula->kind;
  if (kind == Kind::Not)
    return steer(node.children[0], !isTrue);
  if (kind != Kind::Less && kind != Kind::LessEqual)
    return false;
  std::optional<double> a = tryEval(node.children[0]), b = tryEval(node.children[1]);
  double distance = isTrue ? 1 : -1;
  if (a && !b)
    return solve(node.children[1], *a + distance);
  return b && !a && solve(node.children[0], *b - distance);
}
