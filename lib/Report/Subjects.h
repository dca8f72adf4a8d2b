//===- Subjects.h - what the values of a graph are ---------------*- C++ -*-===//
//
// Problem: an op that communicates has an operand, and a row of the report says what that is (Subject.h): a parameter,
// its gradient, tokens on their way to experts.
//
//   %w.1 = all_gather(%w)                 w is a parameter, and so is what is moved or cast of it
//   %g.1 = reduce_scatter(%g)             an update reads g.1: both are gradients
//   %t.1 = all_to_all(%t)                 t has a dim of slots, or of experts
//   %r.1 = all_reduce(%r)                 no parameter is multiplied with anything that r.1 leads to: loss
//
// Algorithm: state is followed forward through what only moves, casts or joins it; gradients backward from what adds
// them up or updates with them, through moves and sums, up to the ops that make them. The loss is what reaches no op
// with a parameter, and what no op with a parameter makes; a second result is what the first one is. What forward
// returns first is loss in any case. Tokens are in SlotShares' slots or have the dim that they are routed along, as on
// their way back from nodes. Each value is looked at once per rule.
//
// Where a strategy reads the ranks of a stage twice, as (dp, cp) by dense layers and as ep by experts, one set of axes
// has two names. Values of experts, which have slots or the dim that tokens are routed along, get the names of groups
// that only rules for this dim use; others do not: gradients of dense weights are summed over (dp, cp).
//
// Limits: where the ops behind the last parameter work on the whole residual stream, that counts as loss, too. Where
// experts are on the ranks of one axis, as ep 2 on those of cp 2, that axis has its own name for tokens, too.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_REPORT_SUBJECTS_H
#define STAGE_LIB_REPORT_SUBJECTS_H

#include "SlotShares.h"
#include "stage/Report/Subject.h"
#include "llvm/ADT/DenseSet.h"

namespace stage {

/// The element types in which values are sent, of quantized ones those of their elements: `bf16`, `bf16, f32`.
std::string describeTypes(llvm::ArrayRef<const Value *> values);
/// Those of what moves.
std::string describeTypes(const Op &communication);

class Subjects {
public:
  explicit Subjects(Graph &graph);

  Subject find(const Value &value) const;
  const SlotShares &getSlots() const { return slots; }
  /// Of a collective or a permute, as people call its axes.
  std::vector<std::string> listAxisNames(const Op &op) const;

private:
  void followState();
  void followGradients();
  void followLoss();
  void mark(const Value *value, Subject subject);
  bool isState(const Value &value) const { return known.lookup(&value) == Mark(Subject::Parameters); }
  /// Makes its result of parameters, and of no other values but numbers.
  bool isOfState(const Op &op) const;
  /// Hands on gradients of parameters. (Packed products have gradients without an origin.)
  bool handsOnGradients(const Op &op) const;
  bool isOfExperts(const Value &value) const;

  using Mark = std::optional<Subject>;
  Graph &graph;
  SlotShares slots;
  llvm::DenseMap<const Value *, Mark> known; ///< But for loss and slots.
  llvm::SmallVector<const Value *, 32> pending;
  llvm::DenseSet<const Value *> reaching; ///< What an op with a parameter is reached from.
  llvm::DenseSet<const Dim *> targets;    ///< Along which tokens are routed.
  std::vector<const AxisGroup *> groupsOfExperts;
};

} // namespace stage

#endif // STAGE_LIB_REPORT_SUBJECTS_H
