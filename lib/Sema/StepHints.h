//===- StepHints.h - words of other tools in a step -------------*- C++ -*-===//
#ifndef STAGE_LIB_SEMA_STEPHINTS_H
#define STAGE_LIB_SEMA_STEPHINTS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace stage::sema {

/// What to write instead of an argument that a step does not have; empty: the nearest name is the better advice.
/// `dims`: the dims of the model to which a step gives values.
llvm::StringRef findStepHint(llvm::StringRef name, bool isTraining, llvm::ArrayRef<llvm::StringRef> dims);

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_STEPHINTS_H
