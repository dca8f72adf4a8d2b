//===- CheckMask.cpp - a mask against the formula -------------------------===//
//
// Problem: `mask causal(s, t)` halves what an op costs, and nothing but the formula
// says whether the pairs that it leaves out are really left out.
//
//   op scores(x: [s, t]) -> [s, t] = exp(x) { mask causal(s, t); flops = area; }     every pair counts
//
// Algorithm: pairs meet where the formula reads data at a row and a column: below sums
// over one of them, or in the result that has both. A pair is used where that depends
// on data (PointEvaluator), and is not where it is a number. Where the two can differ
// is at the edges of what masks count, so a few rows, and the columns around their
// edges, are all that is looked at; small indices are looked at whole.
//
// Limits: maxima and minima over pairs are looked at only where nothing is summed, as a
// softmax may subtract that of all scores. Conditions on other indices or on data are
// unknown, and nothing is said of them.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/algebra/FormulaPoint.h"

using namespace stage;

static bool isUnder(const Mask &mask, int64_t s, int64_t t, int64_t amount) {
  switch (mask.kind) {
  case Mask::Kind::Full:
    return true;
  case Mask::Kind::Causal:
    return t <= s + amount;
  case Mask::Kind::Window:
    return t <= s && t > s - amount;
  case Mask::Kind::Blocks:
    return t <= s && s / amount == t / amount;
  }
  llvm_unreachable("all kinds handled");
}

/// The formulas that say what a row makes of a column.
static llvm::SmallVector<const Formula *, 4> findMeetings(const OpDef &def, const PointEvaluator &evaluator) {
  const Mask &mask = *def.mask;
  auto meets = [&](const Formula *f) {
    llvm::SmallBitVector indices = evaluator.getIndices(f);
    return indices[mask.rows] && indices[mask.columns] && evaluator.readsData(f);
  };
  llvm::SmallVector<const Formula *, 4> sums, extremes;
  auto visit = [&](auto &self, const Formula *f) -> void {
    bool reduces = f->kind == Formula::Kind::Reduce && llvm::any_of(f->indices, [&](unsigned index) {
                     return index == mask.rows || index == mask.columns;
                   });
    if (reduces && meets(f->children[0]))
      (f->reduce == ReduceKind::Sum ? sums : extremes).push_back(f->children[0]);
    for (const Formula *child : f->children)
      self(self, child);
  };
  for (const ResultInfo &result : def.results)
    if (!result.extra) {
      visit(visit, result.formula);
      if (meets(result.formula))
        sums.push_back(result.formula);
    }
  for (const auto &let : def.lets)
    visit(visit, let.second);
  return sums.empty() ? extremes : sums;
}

std::optional<MaskContradiction> stage::findMaskContradiction(const OpDef &def, int64_t rows, int64_t columns,
                                                              int64_t amount, SizeNumber sizeNumber) {
  const Mask &mask = *def.mask;
  llvm::SmallVector<const Formula *, 4> formulas;
  for (const ResultInfo &result : def.results)
    if (!result.extra)
      formulas.push_back(result.formula);
  bool hasSize = amount >= (needsAmount(mask.kind) ? 1 : 0);
  if (def.opaque || llvm::is_contained(formulas, nullptr) || !hasSize)
    return std::nullopt;
  PointEvaluator evaluator(def, sizeNumber);
  if (llvm::none_of(formulas, [&](const Formula *formula) { return evaluator.readsData(formula); }))
    return std::nullopt;
  llvm::SmallVector<const Formula *, 4> meetings = findMeetings(def, evaluator);

  auto check = [&](int64_t s, int64_t t) -> std::optional<MaskContradiction> {
    if (s < 0 || s >= rows || t < 0 || t >= columns)
      return std::nullopt;
    evaluator.setPoint({{mask.rows, s}, {mask.columns, t}});
    evaluator.evaluateLets();
    bool anyUsed = meetings.empty(), noneUsed = !meetings.empty(); // what does not tell pairs apart leaves none out
    for (const Formula *meeting : meetings) {
      PointValue value = evaluator.evaluate(meeting);
      anyUsed |= value.isData();
      noneUsed &= value.isNumber();
    }
    bool isCounted = isUnder(mask, s, t, amount);
    if (isCounted ? noneUsed : anyUsed)
      return MaskContradiction{s, t, isCounted};
    return std::nullopt;
  };
  constexpr int64_t smallCount = 8;
  if (rows <= smallCount && columns <= smallCount) {
    for (int64_t s = 0; s < rows; ++s)
      for (int64_t t = 0; t < columns; ++t)
        if (auto found = check(s, t))
          return found;
    return std::nullopt;
  }
  for (int64_t s : {int64_t(0), int64_t(1), amount - 1, amount, amount + 1, rows / 2, rows - 1}) {
    int64_t block = amount > 0 ? s / amount * amount : 0;
    for (int64_t t : {int64_t(0), s - amount - 1, s - amount, s - amount + 1, block - 1, block, s - 1, s, s + 1,
                      s + amount - 1, s + amount, s + amount + 1, columns - 1})
      if (auto found = check(s, t))
        return found;
  }
  return std::nullopt;
}
