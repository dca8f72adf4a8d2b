//===- ProductOrder.h - gradients of a product one behind the other *- C++ -*-===//
#ifndef STAGE_LIB_TRANSFORMS_PRODUCTORDER_H
#define STAGE_LIB_TRANSFORMS_PRODUCTORDER_H

#include "stage/IR/graph/Graph.h"

namespace stage {

/// Ops of backward that stand one behind the other, in the order in which software without a compiler runs them
/// (ProductOrder.cpp).
std::vector<Op *> orderByProduct(llvm::ArrayRef<Op *> ops);

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_PRODUCTORDER_H
