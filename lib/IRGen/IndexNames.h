//===- IndexNames.h - names of an operator's indices -----------*- C++ -*-===//
#ifndef STAGE_LIB_IRGEN_INDEXNAMES_H
#define STAGE_LIB_IRGEN_INDEXNAMES_H

#include "stage/IR/algebra/OpDef.h"

namespace stage {

/// While an op is lowered, the symbols that its sizes have for the size of an index, for `area` and for `volume`. No
/// program has a name with `@`.
Size getIndexSymbol(SizeContext &sizes, unsigned index);
std::optional<unsigned> readIndexSymbol(llvm::StringRef symbol);
Size getCostSymbol(SizeContext &sizes, llvm::StringRef word);

/// Gives every index a name that no other index, no let and no size of the caller's in the op has, and puts it in the
/// place of the symbols above. `isOwn` tells the indices that the op's declaration names: they have the first choice.
/// What the op's sizes say of the caller's stays what it is.
void chooseIndexNames(OpDef &def, llvm::ArrayRef<bool> isOwn, OpDefTable &defs, const SizeBinding &binding);

/// `S = 2048`: the name of a dim, or else its size, with its value.
std::string describeExtent(const Extent &extent, const SizeBinding &binding);

} // namespace stage

#endif // STAGE_LIB_IRGEN_INDEXNAMES_H
