//===- ValueNames.h - names that tell the values of a list apart -*- C++ -*-===//
//
// Problem: several values of a report may have one name: layers of several kinds have an `h` each, and two norms of a
// layer are both `layers.rms_norm`.
//
// Example: layers.h, layers.h, layers.rms_norm, layers.rms_norm are listed as
//          layers (mlp).h, layers (moe).h, layers.rms_norm(x), layers.rms_norm(h)
//
// Algorithm: names that only one value of the list has stay. Others get the kind of their layer, where the layers of
// their repeat differ; those that are still alike and have no name of their own say from which value they are computed;
// then, in lists that mix them, the class of memory follows. What is alike even so is numbered: `w#2`.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_REPORT_VALUENAMES_H
#define STAGE_LIB_REPORT_VALUENAMES_H

#include "stage/IR/graph/SavedBytes.h"
#include "stage/Memory/Memory.h"
#include <string>
#include <vector>

namespace stage {

/// The kind of layer that a body of a repeat is: the modules that it has and some other body has not, `moe`. Empty: the
/// repeat has one body, or no modules tell its bodies apart.
std::string describeKind(const Op &loop, unsigned body);

/// A name for each value of a list, in its order.
std::vector<std::string> nameValues(llvm::ArrayRef<SavedValue> values);
/// The same; `withClasses`: also the parameter, gradient and optimizer states of one name are told apart.
std::vector<std::string> nameValues(llvm::ArrayRef<LiveValue> values, bool withClasses);

} // namespace stage

#endif // STAGE_LIB_REPORT_VALUENAMES_H
