//===- ClauseChecks.cpp - what an op says against its formula -------------===//
//
// Problem: a mask that the formula contradicts gives a wrong area, and a subscript that
// leaves its dim reads what is not there:
//
//   x[b, s + 1]                                     leaves the dim at s = S - 1
//   where(s + 1 < size(s), x[b, s + 1], 0)          does not: it is read under a condition only
//
// Algorithm, subscripts: the formulas are walked from the results, with the conditions
// under which each element is read; a let is read under those of its only use, or, if it
// is used without a condition, under none. A subscript leaves its dim if a point is
// found where the conditions hold and it does: small indices are tried at all values,
// others at the first ones, the middle and the last. Where none is found, a sum of
// multiples of indices that is read without a condition owes that it stays within the
// dim: it must hold of the small sizes of a proof, too.
//
// Limits: subscripts and conditions that depend on tensors, on more than six indices,
// or on more than 64 lets are not looked at, nor lets with several uses under conditions.
//
//===----------------------------------------------------------------------===//
#include "IndexNames.h"
#include "OpLowering.h"
#include "stage/IRGen/Diagnostics.h"
#include "stage/Sema/Diagnostics.h"
#include "llvm/Support/Format.h"
#include <cmath>
#include <deque>

using namespace stage;
using Kind = Formula::Kind;

/// The number of a size of the op, which has symbols for the sizes of its indices.
std::optional<double> OpLowering::getNumber(Size size) const {
  Size global = substitute(size, [&](llvm::StringRef symbol) {
    std::optional<unsigned> index = readIndexSymbol(symbol);
    return index ? extents[*index].size : Size();
  });
  SizeValue value = evaluate(global, graph.binding);
  if (!value)
    return std::nullopt;
  return double(value.value.num) / double(value.value.den);
}

static std::string describeNumber(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.12g", number);
  return text;
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

bool OpLowering::checkMask() {
  if (!maskClause)
    return true;
  const Mask &mask = *def.mask;
  auto getSize = [&](unsigned index) { return evaluateCount(extents[index].size, graph.binding); };
  SizeValue rows = getSize(mask.rows), columns = getSize(mask.columns);
  SizeValue amount = evaluateCount(mask.amount ? mask.amount : graph.sizes.zero(), graph.binding);
  if (!rows || !columns || !amount)
    return true; // said where sizes are checked
  auto found = findMaskContradiction(def, int64_t(rows.value.num), int64_t(columns.value.num),
                                     int64_t(amount.value.num), [&](Size size) { return getNumber(size); });
  if (!found)
    return true;
  std::string s = def.indices[mask.rows].name, t = def.indices[mask.columns].name;
  std::string pair = s + " = " + std::to_string(found->row) + ", " + t + " = " + std::to_string(found->column);
  noteCall(diags.report(maskClause->loc(), found->isCounted ? diag::MaskCountsTooMuch : diag::MaskCountsTooLittle)
               .range(maskClause->range)
           << pair << def.name);
  return false;
}

//===----------------------------------------------------------------------===//
// Linearity
//===----------------------------------------------------------------------===//

/// What the formula does not bear out is no promise to build on: a partial sum that passed through would be wrong.
bool OpLowering::checkLinear(const OpDef &analyzed, llvm::StringRef name) {
  for (const ast::OpClauseStmt *clause : linearClauses)
    for (const ast::Ident &operand : clause->names) {
      if (analyzed.linearIn[operandByName.lookup(operand.name)])
        continue;
      DiagnosticBuilder message =
          diags.report(operand.loc(), analyzed.opaque ? diag::OpaqueNotLinear : diag::NotLinear).range(operand.range)
          << name << operand.name;
      message.note(calledAt.Start, diag::CalledHere) << name;
      return false;
    }
  return true;
}

//===----------------------------------------------------------------------===//
// Subscripts
//===----------------------------------------------------------------------===//

/// Conditions under which something is evaluated, innermost first.
struct OpLowering::Guard {
  const Guard *outer;
  const Formula *condition;
  bool holds;
  unsigned depth;
};

/// Calls `f` for each element with its subscripts and the guards under which it is read.
class OpLowering::AccessWalker {
public:
  AccessWalker(const OpDef &def, const llvm::DenseMap<const Formula *, unsigned> &accessOf,
               llvm::function_ref<bool(unsigned, const Guard *)> f)
      : def(def), accessOf(accessOf), f(f), letUses(def.lets.size()) {}

  bool run() {
    for (const ResultInfo &result : def.results)
      if (result.formula)
        visit(result.formula, nullptr);
    for (size_t let = def.lets.size(); let-- > 0;) // a let uses only those before it
      if (letUses[let].isUsed && !letUses[let].isUnknown)
        visit(def.lets[let].second, letUses[let].guard);
    return good;
  }

private:
  const Guard *add(const Guard *outer, const Formula *condition, bool holds) {
    guards.push_back({outer, condition, holds, outer ? outer->depth + 1 : 1});
    return &guards.back();
  }

  void visit(const Formula *formula, const Guard *guard) {
    if (!good)
      return;
    auto child = [&](unsigned i) { return formula->children[i]; };
    switch (formula->kind) {
    case Kind::Select:
      visit(child(0), guard);
      visit(child(1), add(guard, child(0), true));
      return visit(child(2), add(guard, child(0), false));
    case Kind::And:
    case Kind::Or:
      visit(child(0), guard);
      return visit(child(1), add(guard, child(0), formula->kind == Kind::And));
    case Kind::Let: {
      LetUse &use = letUses[formula->operand];
      bool isAlways = use.isUsed && !use.isUnknown && !use.guard;
      if (!guard || isAlways) // evaluated whatever else says
        use.isUnknown = false, use.guard = nullptr;
      else if (!use.isUsed)
        use.guard = guard;
      else
        use.isUnknown |= use.guard != guard;
      use.isUsed = true;
      return;
    }
    case Kind::Element:
      if (auto it = accessOf.find(formula); it != accessOf.end())
        good = good && f(it->second, guard);
      break;
    default:
      break;
    }
    for (const Formula *part : formula->children)
      visit(part, guard);
  }

  struct LetUse {
    bool isUsed = false;
    bool isUnknown = false; ///< Used under several conditions.
    const Guard *guard = nullptr;
  };
  const OpDef &def;
  const llvm::DenseMap<const Formula *, unsigned> &accessOf;
  llvm::function_ref<bool(unsigned, const Guard *)> f;
  std::vector<LetUse> letUses;
  std::deque<Guard> guards;
  bool good = true;
};

/// Notes an element whose subscripts are more than the indices of its operand.
void OpLowering::noteAccess(const Formula *element, llvm::ArrayRef<const ast::Expr *> subscripts) {
  const auto &declared = def.operands[element->operand].indices;
  Access access{element, {subscripts.begin(), subscripts.end()}, {}};
  access.bounds.resize(subscripts.size());
  bool isNoted = false;
  for (unsigned d = 0; d < subscripts.size(); ++d) {
    const Formula *subscript = element->children[d];
    bool isPlain = subscript->kind == Kind::Index && subscript->index == declared[d];
    if (isPlain || !subscripts[d] || owedSubscripts.contains(subscripts[d])) {
      access.subscripts[d] = nullptr;
      continue;
    }
    isNoted = true;
    access.bounds[d] = boundSubscript(subscripts[d]);
  }
  if (!isNoted)
    return;
  accessOf[element] = accesses.size();
  accesses.push_back(std::move(access));
}

bool OpLowering::checkSubscripts() {
  if (accesses.empty())
    return true;
  PointEvaluator points(def, [&](Size size) { return getNumber(size); });
  return AccessWalker(def, accessOf,
                      [&](unsigned access, const Guard *guard) { return checkAccess(accesses[access], guard, points); })
      .run();
}

/// Values of an index to try.
static llvm::SmallVector<int64_t, 8> chooseValues(int64_t count, bool all) {
  llvm::SmallVector<int64_t, 8> values;
  if (all) {
    for (int64_t value = 0; value < count; ++value)
      values.push_back(value);
    return values;
  }
  for (int64_t value : {count - 1, int64_t(0), count - 2, int64_t(1), count / 2, count / 2 - 1, count / 2 + 1})
    if (value >= 0 && value < count && !llvm::is_contained(values, value))
      values.push_back(value);
  return values;
}

bool OpLowering::checkAccess(const Access &access, const Guard *guard, PointEvaluator &points) {
  constexpr unsigned maxGuards = 8, maxIndices = 6;
  constexpr int64_t maxPoints = 1024;
  if (guard && guard->depth > maxGuards)
    return true;
  for (unsigned d = 0; d < access.subscripts.size(); ++d) {
    const Formula *subscript = access.element->children[d];
    if (!access.subscripts[d] || points.readsData(subscript))
      continue;
    Size extent = extents[def.operands[access.element->operand].indices[d]].size;
    SizeValue size = evaluateCount(extent, graph.binding);
    llvm::SmallBitVector own = points.getIndices(subscript), indices = own;
    unsigned numLets = points.countLets(subscript);
    for (const Guard *g = guard; g; g = g->outer) {
      indices |= points.getIndices(g->condition);
      numLets += points.countLets(g->condition);
    }
    if (!size || indices.count() > maxIndices || numLets >= PointEvaluator::maxLets)
      continue;
    int64_t numPoints = 1, numTried = 1;
    llvm::SmallVector<std::pair<unsigned, int64_t>, 6> point;
    llvm::SmallVector<int64_t, 6> counts;
    for (unsigned index : indices.set_bits()) {
      SizeValue count = evaluateCount(extents[index].size, graph.binding);
      if (!count)
        break;
      counts.push_back(int64_t(count.value.num));
      numPoints = std::min(maxPoints + 1, numPoints * std::min(counts.back(), maxPoints + 1));
      point.emplace_back(index, 0);
    }
    if (point.size() != indices.count())
      continue;
    std::vector<llvm::SmallVector<int64_t, 8>> values;
    for (int64_t count : counts) {
      values.push_back(chooseValues(count, numPoints <= maxPoints));
      if (indices.count() > 4 && numPoints > maxPoints && values.back().size() > 3)
        values.back().resize(3);
      numTried *= int64_t(values.back().size());
    }
    for (int64_t number = 0; number < numTried; ++number) {
      int64_t rest = number;
      for (size_t i = 0; i < point.size(); ++i) {
        point[i].second = values[i][rest % int64_t(values[i].size())];
        rest /= int64_t(values[i].size());
      }
      points.setPoint(point);
      bool isRead = true;
      for (const Guard *g = guard; g && isRead; g = g->outer) {
        PointValue condition = points.evaluate(g->condition);
        isRead = condition.isNumber() && (condition.number != 0) == g->holds;
      }
      PointValue value = points.evaluate(subscript);
      if (!isRead || !value.isNumber() || (value.number >= 0 && value.number < double(size.value.num)))
        continue;
      std::string where;
      for (auto [index, at] : point)
        if (own[index])
          where += (where.empty() ? " where " : ", ") + def.indices[index].name + " = " + std::to_string(at);
      const ast::Expr *written = access.subscripts[d];
      noteCall(diags.report(written->loc(), diag::SubscriptLeavesDim).range(written->range)
               << ast::textOf(written) << describeNumber(value.number) << where << int64_t(size.value.num - 1));
      return false;
    }
    if (!guard && access.bounds[d])
      oweBounds(*access.bounds[d], access.subscripts[d], extent);
  }
  return true;
}

/// What is divided by is not 0, where it is known.
bool OpLowering::checkDivisor(const ast::BinaryExpr &expr, const Formula &divisor) {
  std::optional<double> value;
  if (divisor.kind == Kind::Number)
    value = divisor.number;
  else if (divisor.kind == Kind::SizeOf)
    value = getNumber(divisor.size);
  if (!value || *value != 0)
    return true;
  noteCall(diags.report(expr.opLoc, diag::DivisionByZero).range(expr.range) << ast::textOf(&expr));
  return false;
}
