//===- ScheduleWords.h - the words of schedule programs --------*- C++ -*-===//
#ifndef STAGE_LIB_SEMA_SCHEDULEWORDS_H
#define STAGE_LIB_SEMA_SCHEDULEWORDS_H

#include "stage/AST/AST.h"

namespace stage::sema {

/// The first parameters of every schedule: stages, microbatches, this stage.
constexpr size_t numScheduleParams = 3;

/// `list(...)` gives the units of all stages.
constexpr llvm::StringRef listWord = "list";
/// The statements that issue a unit.
constexpr llvm::StringRef unitWords[] = {"forward", "backward", "backward_input", "backward_weight"};
/// The letter of each.
constexpr char unitLetters[] = "FBIW";

inline std::optional<char> getUnitKind(llvm::StringRef word) {
  for (size_t i = 0; i != std::size(unitWords); ++i)
    if (unitWords[i] == word)
      return unitLetters[i];
  return std::nullopt;
}

struct ListedUnit {
  char kind = 'F';
  int64_t microbatch = 0;
  int64_t chunk = 0;
};
/// An element of a `list`: `F0` or `F(0, 1)`.
std::optional<ListedUnit> readListedUnit(const ast::Expr *expr);

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_SCHEDULEWORDS_H
