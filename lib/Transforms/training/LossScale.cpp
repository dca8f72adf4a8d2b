//===- LossScale.cpp - a loss that grows with the batch -------------------===//
//
// Problem: a step adds up the gradients of its microbatches and divides by their number. Of a loss that is a mean over
// its sequences that is the mean over the batch, however it is cut. Of a sum it is not:
//
//   op total(x: [b, d]) -> f32[] = sum[b, d](x * x)         8 sequences: microbatch = 8 gives the sum over 8,
//                                                                        microbatch = 2 a fourth of it
//   op total(x: [b, d]) -> f32[] = mean[b, d](x * x)        the same for both
//
// Algorithm: if all sequences of a batch are alike, each value of the model is proportional to a power of their number.
// The powers are found in the order of the program: a sum over an index of the batch adds 1, a mean 0, `size(b)` has 1;
// products add powers, quotients subtract them, a sum of several numbers has the largest.
//
// Limits: where a function is not linear, a condition picks sequences, or an op is opaque, the power is not known, and
// neither is that of what depends on it. Nothing is said then.
//
//===----------------------------------------------------------------------===//
#include "stage/Transforms/training/LossScale.h"
#include "stage/Symbolic/Size.h"
#include "stage/Transforms/Diagnostics.h"
#include "llvm/ADT/DenseMap.h"
#include <cmath>

using namespace stage;
using Kind = Formula::Kind;

namespace {
using Power = std::optional<int>;

/// Of what is the sum of both.
Power join(Power a, Power b) { return a && b ? Power(std::max(*a, *b)) : std::nullopt; }

/// The powers of the results of one op.
class FormulaPowers {
public:
  FormulaPowers(const Op &op, const Graph &graph, llvm::StringRef batch, llvm::ArrayRef<Power> operands)
      : def(*op.def), graph(graph), operands(operands) {
    for (const Extent &extent : op.extents)
      grows.push_back(extent.size && llvm::is_contained(collectSymbols(extent.size), batch));
    for (auto &[name, let] : def.lets) { // a let uses only those before it
      lets.push_back(visit(let));
      readByLets.push_back(readsPosition(let));
    }
  }

  Power getResult(unsigned result) {
    const Formula *formula = def.results[result].formula;
    return def.opaque || def.routing || !formula ? std::nullopt : visit(formula);
  }

private:
  bool isOfBatch(unsigned index) const {
    return llvm::any_of(def.expand(index), [&](unsigned member) { return member < grows.size() && grows[member]; });
  }

  /// Whether a position along the batch is read, so that sequences are not alike.
  bool readsPosition(const Formula *f) const {
    if (f->kind == Kind::Element) // `x[b]` has all of them
      return llvm::any_of(f->children, [&](const Formula *c) { return c->kind != Kind::Index && readsPosition(c); });
    if (f->kind == Kind::Let)
      return readByLets[f->operand];
    return (f->kind == Kind::Index && isOfBatch(f->index)) ||
           llvm::any_of(f->children, [&](const Formula *child) { return readsPosition(child); });
  }

  Power visit(const Formula *f) {
    auto child = [&](unsigned i) { return visit(f->children[i]); };
    switch (f->kind) {
    case Kind::Element:
      return operands[f->operand];
    case Kind::Let:
      return lets[f->operand];
    case Kind::SizeOf:
      return visitSize(f->size);
    case Kind::Reduce: {
      Power power = child(0);
      unsigned numOfBatch = llvm::count_if(f->indices, [&](unsigned index) { return isOfBatch(index); });
      if (f->reduce != ReduceKind::Sum || !power || numOfBatch == 0)
        return power;
      if (readsPosition(f->children[0]))
        return std::nullopt;
      return f->isMean ? power : Power(*power + int(numOfBatch));
    }
    case Kind::Call: {
      for (unsigned i = 0; i < f->children.size(); ++i)
        if (child(i) != Power(0))
          return std::nullopt;
      return 0;
    }
    case Kind::Negate:
      return child(0);
    case Kind::Add:
    case Kind::Sub:
      return join(child(0), child(1));
    case Kind::Mul:
    case Kind::Div: {
      Power a = child(0), b = child(1);
      return a && b ? Power(f->kind == Kind::Mul ? *a + *b : *a - *b) : std::nullopt;
    }
    case Kind::Select:
      return join(child(1), child(2));
    default:
      return 0; // numbers, positions, draws and conditions
    }
  }

  /// Whether the size doubles where the batch does.
  Power visitSize(Size size) const {
    if (std::optional<Rational> constant = size.getConstant(); constant && constant->num != 0)
      return 0;
    double values[2];
    SizeBinding binding = graph.binding;
    for (int factor : {1, 2}) {
      for (unsigned i = 0; i < def.indices.size(); ++i)
        binding.bind(def.indices[i].name, isOfBatch(i) ? 12 * factor : 12);
      SizeValue value = evaluate(size, binding);
      if (!value || value.value.num == 0)
        return std::nullopt;
      values[factor - 1] = double(value.value.num) / double(value.value.den);
    }
    for (int power = -2; power <= 2; ++power)
      if (values[1] == std::ldexp(values[0], power))
        return power;
    return std::nullopt;
  }

  const OpDef &def;
  const Graph &graph;
  llvm::ArrayRef<Power> operands;
  llvm::SmallVector<bool, 8> grows; ///< Per index of the op.
  llvm::SmallVector<Power, 4> lets;
  llvm::SmallVector<bool, 4> readByLets;
};

class LossScale {
public:
  LossScale(Graph &graph, llvm::StringRef batch) : graph(graph), batch(batch) {}

  /// The power of the loss, and the op that sums.
  std::pair<Power, const Op *> run() {
    visitBlock(graph.getForward());
    const Op *end = graph.getForward().getTerminator();
    if (!end || end->getNumOperands() == 0)
      return {std::nullopt, nullptr};
    const Value *loss = end->getOperand(0);
    auto it = summedBy.find(loss);
    return {powers.lookup(loss), it == summedBy.end() ? nullptr : it->second};
  }

private:
  void set(const Value *value, Power power, const Op *by) {
    powers[value] = power;
    summedBy[value] = by;
  }

  void visitBlock(const Block &block) {
    for (auto &op : block) {
      if (op->kind == OpKind::Compute)
        visitCompute(*op);
      else if (op->kind == OpKind::Repeat)
        visitRepeat(*op);
      else
        for (auto &result : op->getResults())
          set(result.get(), op->getNumOperands() ? powers.lookup(op->getOperand(0)) : Power(0), nullptr);
    }
  }

  void visitCompute(const Op &op) {
    llvm::SmallVector<Power, 6> operands;
    const Op *by = nullptr;
    for (const Value *operand : op.getOperands()) {
      operands.push_back(isFloat(operand->type.dtype) ? powers.lookup(operand) : Power(0));
      if (operands.back() > Power(0))
        by = summedBy.lookup(operand);
    }
    FormulaPowers formulas(op, graph, batch, operands);
    for (auto &result : op.getResults())
      set(result.get(), formulas.getResult(result->getNumber()), by ? by : &op);
  }

  /// What is carried grows as it does at first and after an iteration: what an iteration adds does not depend on which
  /// it is.
  void visitRepeat(const Op &op) {
    constexpr int rounds = 3;
    for (unsigned i = 0; i < op.getNumResults(); ++i)
      set(op.getResult(i), powers.lookup(op.getOperand(i)), summedBy.lookup(op.getOperand(i)));
    bool changes = true; // else another round is like this one
    for (int round = 0; round < rounds && std::exchange(changes, false); ++round)
      for (auto &body : op.bodies) {
        for (unsigned i = 0; i < op.getNumResults(); ++i)
          set(body->getArgument(i), powers.lookup(op.getResult(i)), summedBy.lookup(op.getResult(i)));
        visitBlock(*body);
        for (unsigned i = 0; i < op.getNumResults(); ++i) {
          const Value *next = body->getTerminator()->getOperand(i), *result = op.getResult(i);
          Power before = powers.lookup(result), after = powers.lookup(next), joined = join(before, after);
          const Op *by = summedBy.lookup(after > before ? next : result);
          changes |= joined != before || by != summedBy.lookup(result);
          set(result, joined, by);
        }
      }
  }

  Graph &graph;
  llvm::StringRef batch;
  llvm::DenseMap<const Value *, Power> powers;
  llvm::DenseMap<const Value *, const Op *> summedBy;
};
} // namespace

void stage::checkLossScale(Graph &graph, llvm::StringRef batch, DiagnosticEngine &diags) {
  if (!graph.training || graph.microbatches <= 1)
    return;
  auto [power, by] = LossScale(graph, batch).run();
  if (!power || *power <= 0 || !by)
    return;
  diags.report(by->loc, diag::LossSumsBatch) << batch << graph.microbatches;
}
