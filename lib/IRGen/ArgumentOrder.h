//===- ArgumentOrder.h - arguments that fit in another order ---*- C++ -*-===//
#ifndef STAGE_LIB_IRGEN_ARGUMENTORDER_H
#define STAGE_LIB_IRGEN_ARGUMENTORDER_H

#include "OpLowering.h"
#include "stage/AST/AST.h"

namespace stage {

/// An argument as the program has it.
inline llvm::StringRef getSource(SMRange range) {
  return {range.Start.getPointer(), size_t(range.End.getPointer() - range.Start.getPointer())};
}

/// `lookup(table, ids)`: the call with two tensors exchanged, where each of them fits the parameter of the other in its
/// element type and its number of dims, and does not fit its own; empty: no such order.
std::string suggestOrder(llvm::StringRef callee, llvm::ArrayRef<ast::Param> params,
                         llvm::ArrayRef<TensorArgument> tensors);

} // namespace stage

#endif // STAGE_LIB_IRGEN_ARGUMENTORDER_H
