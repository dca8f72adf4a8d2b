//===- ScheduleWords.h - the words of schedule programs --------*- C++ -*-===//
#ifndef STAGE_LIB_SEMA_SCHEDULEWORDS_H
#define STAGE_LIB_SEMA_SCHEDULEWORDS_H

#include "stage/AST/AST.h"
#include "stage/Schedule/Unit.h"

namespace stage::sema {

/// The first parameters of every schedule: stages, microbatches, this stage.
constexpr size_t numScheduleParams = 3;

/// `list(...)` gives the units of all stages.
constexpr llvm::StringRef listWord = "list";
/// `overlap(backward(0), forward(1))` pairs two units, which run interleaved.
constexpr llvm::StringRef overlapWord = "overlap";
/// The phases that a statement of its name issues a unit of.
constexpr PhaseKind unitKinds[] = {PhaseKind::Forward, PhaseKind::Backward, PhaseKind::BackwardInput,
                                   PhaseKind::BackwardWeight};

inline std::optional<PhaseKind> getUnitKind(llvm::StringRef word) {
  for (PhaseKind kind : unitKinds)
    if (getName(kind) == word)
      return kind;
  return std::nullopt;
}

struct ListedUnit {
  PhaseKind kind = PhaseKind::Forward;
  int64_t microbatch = 0;
  int64_t chunk = 0;
};
/// An element of a `list`: `F0` or `F(0, 1)`.
std::optional<ListedUnit> readListedUnit(const ast::Expr *expr);
/// The units of a call `overlap(...)`, which has two; nothing if an expression is no such call.
std::optional<llvm::SmallVector<const ast::Expr *, 2>> readOverlap(const ast::Expr *expr);

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_SCHEDULEWORDS_H
