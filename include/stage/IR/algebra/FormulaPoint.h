//===- FormulaPoint.h - a formula at one point -----------------*- C++ -*-===//
//
// What is known of a formula where some of its indices have values, without the numbers
// of any tensor: `where(t <= s, exp(q[s] * key[t]), 0)` is 0 at s = 1, t = 2, and
// depends on data at s = 2, t = 1. That is enough to hold what an op declares against
// what its formula says.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_ALGEBRA_FORMULAPOINT_H
#define STAGE_IR_ALGEBRA_FORMULAPOINT_H

#include "stage/IR/algebra/OpDef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallBitVector.h"

namespace stage {

/// The number of a size; nothing if it has none.
using SizeNumber = llvm::function_ref<std::optional<double>(Size)>;

struct PointValue {
  enum class Kind : uint8_t {
    Number,  ///< `number`, whatever the tensors hold
    Data,    ///< depends on what tensors hold
    Unknown, ///< on indices without a value, or on conditions that depend on tensors
  };
  Kind kind = Kind::Unknown;
  double number = 0;
  bool isNumber() const { return kind == Kind::Number; }
  bool isData() const { return kind == Kind::Data; }
};

class PointEvaluator {
public:
  PointEvaluator(const OpDef &def, SizeNumber sizeNumber);
  /// Gives indices their values, in the place of those before.
  void setPoint(llvm::ArrayRef<std::pair<unsigned, int64_t>> values);
  /// Evaluates all lets at the point, in their order: none is then followed into another.
  void evaluateLets();
  PointValue evaluate(const Formula *f);
  /// Whether the formula reads a tensor.
  bool readsData(const Formula *f) const;
  /// The indices whose values the formula depends on: those that it does not reduce.
  llvm::SmallBitVector getIndices(const Formula *f) const;
  /// How many lets it takes to evaluate the formula, with repetitions, at most `maxLets`.
  unsigned countLets(const Formula *f) const;
  static constexpr unsigned maxLets = 64;

private:
  void findSizes(const Formula *f, SizeNumber sizeNumber);
  PointValue evaluateBinary(const Formula *f);
  PointValue evaluateCall(const Formula *f);

  struct Let {
    bool readsData = false;
    unsigned numLets = 0;
    llvm::SmallBitVector indices;
    PointValue value;
    unsigned point = 0; ///< Of the value: the number of the point.
  };
  const OpDef &def;
  std::vector<Let> lets;
  std::vector<std::optional<int64_t>> point; ///< Per index.
  unsigned pointNumber = 0;
  llvm::DenseMap<const Formula *, double> sizes;
};

/// A pair of a row and a column on which an op's mask and its formula contradict each other.
struct MaskContradiction {
  int64_t row, column;
  /// The mask counts the pair, and the formula is the same whatever stands there; else the mask leaves out a pair that
  /// the formula uses.
  bool isCounted;
};

/// Holds the mask of an op against its formulas at small positions, at the edges of what the mask counts and at the
/// ends. Only what is certain is said: nothing of an op without formulas, or whose conditions depend on tensors.
std::optional<MaskContradiction> findMaskContradiction(const OpDef &def, int64_t rows, int64_t columns, int64_t amount,
                                                       SizeNumber sizeNumber);

//===--- What backward needs --------------------------------------------===//

/// The operands whose values the gradients of the operands `wanted` are made of, given those of the results `given`.
llvm::SmallBitVector findGradientNeeds(const OpDef &def, llvm::ArrayRef<unsigned> given,
                                       llvm::ArrayRef<unsigned> wanted);
/// The first of them that the op declares not to save, although nothing that it saves could tell its values: no result
/// and no extra tensor has all its indices, or dims of its own. Nothing for an op that does not declare what it saves,
/// or has no formula.
std::optional<unsigned> findUnsavedOperand(const OpDef &def, llvm::ArrayRef<unsigned> given,
                                           llvm::ArrayRef<unsigned> wanted);

} // namespace stage

#endif // STAGE_IR_ALGEBRA_FORMULAPOINT_H
