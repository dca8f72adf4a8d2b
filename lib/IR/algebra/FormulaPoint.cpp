//===- FormulaPoint.cpp - a formula at one point --------------------------===//
//
// Algorithm: a bottom-up walk over three kinds of values (PointValue). A let is
// evaluated once per point.
//
// Limits: what a reduction of numbers that are not 0 gives is unknown.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/algebra/FormulaPoint.h"
#include <cmath>

using namespace stage;
using Kind = Formula::Kind;

PointEvaluator::PointEvaluator(const OpDef &def, SizeNumber sizeNumber) : def(def) {
  point.resize(def.indices.size());
  lets.resize(def.lets.size());
  for (size_t i = 0; i < lets.size(); ++i) { // a let uses only those before it
    const Formula *formula = def.lets[i].second;
    findSizes(formula, sizeNumber);
    lets[i].readsData = readsData(formula);
    lets[i].indices = getIndices(formula);
    lets[i].numLets = std::min(maxLets, countLets(formula) + 1);
  }
  for (const ResultInfo &result : def.results)
    if (result.formula)
      findSizes(result.formula, sizeNumber);
}

void PointEvaluator::findSizes(const Formula *f, SizeNumber sizeNumber) {
  if (f->kind == Kind::SizeOf)
    if (std::optional<double> number = sizeNumber(f->size))
      sizes[f] = *number;
  for (const Formula *child : f->children)
    findSizes(child, sizeNumber);
}

void PointEvaluator::setPoint(llvm::ArrayRef<std::pair<unsigned, int64_t>> values) {
  point.assign(point.size(), std::nullopt);
  for (auto [index, value] : values)
    point[index] = value;
  ++pointNumber;
}

void PointEvaluator::evaluateLets() {
  for (size_t i = 0; i < lets.size(); ++i) {
    PointValue value = evaluate(def.lets[i].second);
    lets[i].value = value;
    lets[i].point = pointNumber;
  }
}

bool PointEvaluator::readsData(const Formula *f) const {
  return f->kind == Kind::Element || (f->kind == Kind::Let && lets[f->operand].readsData) ||
         llvm::any_of(f->children, [&](const Formula *child) { return readsData(child); });
}

llvm::SmallBitVector PointEvaluator::getIndices(const Formula *f) const {
  if (f->kind == Kind::Let)
    return lets[f->operand].indices;
  llvm::SmallBitVector indices(def.indices.size());
  if (f->kind == Kind::Index)
    indices.set(f->index);
  for (const Formula *child : f->children)
    indices |= getIndices(child);
  if (f->kind == Kind::Reduce)
    for (unsigned index : f->indices)
      indices.reset(index);
  return indices;
}

unsigned PointEvaluator::countLets(const Formula *f) const {
  unsigned count = f->kind == Kind::Let ? lets[f->operand].numLets : 0;
  for (const Formula *child : f->children)
    count = std::min(maxLets, count + countLets(child));
  return count;
}

static PointValue makeNumber(double number) { return {PointValue::Kind::Number, number}; }
static PointValue makeData() { return {PointValue::Kind::Data}; }

/// What is added to data to drown it, as in `exp(x + where(t <= s, 0, -1e9))`.
static bool drowns(const PointValue &value) { return value.isNumber() && std::fabs(value.number) >= 1e4; }

PointValue PointEvaluator::evaluate(const Formula *f) {
  auto child = [&](unsigned i) { return evaluate(f->children[i]); };
  switch (f->kind) {
  case Kind::Number:
    return makeNumber(f->number);
  case Kind::SizeOf: {
    auto it = sizes.find(f);
    return it == sizes.end() ? PointValue() : makeNumber(it->second);
  }
  case Kind::Index:
    return point[f->index] ? makeNumber(double(*point[f->index])) : PointValue();
  case Kind::Element:
  case Kind::Random:
    return makeData();
  case Kind::Let: {
    Let &let = lets[f->operand];
    if (let.point != pointNumber) {
      let.value = evaluate(def.lets[f->operand].second);
      let.point = pointNumber;
    }
    return let.value;
  }
  case Kind::Reduce: {
    // Over all values of an index that has one here.
    if (llvm::any_of(f->indices, [&](unsigned index) { return point[index].has_value(); }))
      return readsData(f->children[0]) ? makeData() : PointValue();
    PointValue body = child(0);
    bool isSum = f->reduce == ReduceKind::Sum && !f->isMean;
    return body.isNumber() && isSum && body.number != 0 ? PointValue() : body;
  }
  case Kind::Call:
    return evaluateCall(f);
  case Kind::Negate: {
    PointValue value = child(0);
    value.number = -value.number;
    return value;
  }
  case Kind::Not: {
    PointValue value = child(0);
    return value.isNumber() ? makeNumber(value.number == 0) : PointValue();
  }
  case Kind::And:
  case Kind::Or: {
    bool decides = f->kind == Kind::Or;
    PointValue a = child(0), b = child(1);
    for (const PointValue &side : {a, b})
      if (side.isNumber() && (side.number != 0) == decides)
        return makeNumber(decides);
    return a.isNumber() && b.isNumber() ? makeNumber(!decides) : PointValue();
  }
  case Kind::Select: {
    PointValue condition = child(0);
    if (condition.isNumber())
      return child(condition.number != 0 ? 1 : 2);
    PointValue a = child(1), b = child(2);
    return a.isNumber() && b.isNumber() && a.number == b.number ? a : PointValue();
  }
  case Kind::Add:
  case Kind::Sub:
  case Kind::Mul:
  case Kind::Div:
  case Kind::Less:
  case Kind::LessEqual:
  case Kind::Equal:
    return evaluateBinary(f);
  }
  llvm_unreachable("all kinds handled");
}

PointValue PointEvaluator::evaluateBinary(const Formula *f) {
  PointValue a = evaluate(f->children[0]), b = evaluate(f->children[1]);
  if (a.isNumber() && b.isNumber()) {
    switch (f->kind) {
    case Kind::Add:
      return makeNumber(a.number + b.number);
    case Kind::Sub:
      return makeNumber(a.number - b.number);
    case Kind::Mul:
      return makeNumber(a.number * b.number);
    case Kind::Div:
      return makeNumber(a.number / b.number);
    case Kind::Less:
      return makeNumber(a.number < b.number);
    case Kind::LessEqual:
      return makeNumber(a.number <= b.number);
    case Kind::Equal:
      return makeNumber(a.number == b.number);
    default:
      llvm_unreachable("no binary formula");
    }
  }
  bool isSum = f->kind == Kind::Add || f->kind == Kind::Sub, isProduct = f->kind == Kind::Mul || f->kind == Kind::Div;
  if (!isSum && !isProduct)
    return PointValue(); // a condition on data
  if (isSum && drowns(a))
    return a;
  if (isSum && drowns(b))
    return makeNumber(f->kind == Kind::Add ? b.number : -b.number);
  if (isProduct && ((a.isNumber() && a.number == 0) || (f->kind == Kind::Mul && b.isNumber() && b.number == 0)))
    return makeNumber(0);
  bool isUnknown = a.kind == PointValue::Kind::Unknown || b.kind == PointValue::Kind::Unknown;
  return isUnknown ? PointValue() : makeData();
}

PointValue PointEvaluator::evaluateCall(const Formula *f) {
  llvm::SmallVector<PointValue, 2> values;
  for (const Formula *child : f->children)
    values.push_back(evaluate(child));
  if (llvm::any_of(values, [](const PointValue &v) { return v.kind == PointValue::Kind::Unknown; }))
    return PointValue();
  if (!llvm::all_of(values, [](const PointValue &v) { return v.isNumber(); }))
    return makeData();
  double x = values.front().number;
  switch (f->function) {
  case Formula::Function::Exp:
    return makeNumber(std::exp(x));
  case Formula::Function::Log:
    return makeNumber(std::log(x));
  case Formula::Function::Sqrt:
    return makeNumber(std::sqrt(x));
  case Formula::Function::Rsqrt:
    return makeNumber(1 / std::sqrt(x));
  case Formula::Function::Erf:
    return makeNumber(std::erf(x));
  case Formula::Function::Tanh:
    return makeNumber(std::tanh(x));
  case Formula::Function::Sigmoid:
    return makeNumber(1 / (1 + std::exp(-x)));
  case Formula::Function::Sin:
    return makeNumber(std::sin(x));
  case Formula::Function::Cos:
    return makeNumber(std::cos(x));
  case Formula::Function::Abs:
    return makeNumber(std::fabs(x));
  case Formula::Function::Floor:
    return makeNumber(std::floor(x));
  case Formula::Function::Max:
  case Formula::Function::Min:
    for (const PointValue &value : values)
      x = f->function == Formula::Function::Max ? std::max(x, value.number) : std::min(x, value.number);
    return makeNumber(x);
  }
  llvm_unreachable("all functions handled");
}
