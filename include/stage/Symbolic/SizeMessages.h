//===- SizeMessages.h - what messages say of symbols -----------*- C++ -*-===//
//
// A message is shown where the program says a number, and says which numbers near it would do:
//
//   model = Mini(D = 64, heads = 6)
//                                ^ 'D' = 64 is not divisible by 'heads' = 6
//   note: nearest multiples of 6: 60 and 66; nearest divisors of 64: 4 and 8
//
// A context keeps for each symbol where its number is written in the plan that is compiled now. Whoever binds a symbol
// says it (bindModel, lowerMesh); for numbers that are computed nobody does.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SYMBOLIC_SIZEMESSAGES_H
#define STAGE_SYMBOLIC_SIZEMESSAGES_H

#include "stage/Support/Origins.h"
#include "stage/Symbolic/Size.h"

namespace stage {

/// By this name a context keeps where the number of virtual stages of a schedule is written, which is no symbol.
constexpr llvm::StringLiteral virtualStagesName = "virtual stages";

/// Where the number of a symbol is written; an invalid place: nowhere.
void setOrigin(SizeContext &sizes, llvm::StringRef symbol, SMRange origin);
SMRange findOrigin(SizeContext &sizes, llvm::StringRef symbol);
/// Forgets all: another plan begins.
void clearOrigins(SizeContext &sizes);

/// Notes which numbers near a divisor, and near what it should divide, would do. Says nothing where one of them is no
/// symbol with a whole number.
void noteNearest(DiagnosticBuilder &error, Size number, Size divisor, const SizeBinding &binding);

} // namespace stage

#endif // STAGE_SYMBOLIC_SIZEMESSAGES_H
