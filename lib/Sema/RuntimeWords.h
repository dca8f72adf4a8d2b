//===- RuntimeWords.h - the entries of runtimes ----------------*- C++ -*-===//
#ifndef STAGE_LIB_SEMA_RUNTIMEWORDS_H
#define STAGE_LIB_SEMA_RUNTIMEWORDS_H

#include "stage/Sema/BoundRuntime.h"

namespace stage::sema {

struct RuntimeEntry {
  llvm::StringLiteral name;
  Rational BoundRuntime::*number = nullptr; ///< Null: a time, the launch.
  bool isTax = false;                       ///< From 0 to 1; another number is above 0 and at most 2.
};

/// All may be left out.
constexpr RuntimeEntry runtimeEntries[] = {
    {"launch"},
    {"tax.collective", &BoundRuntime::taxOfCollectives, true},
    {"tax.send", &BoundRuntime::taxOfSends, true},
    {"tax.copy", &BoundRuntime::taxOfCopies, true},
    {"tax.communication", &BoundRuntime::taxOfCommunication, true},
    {"attention.kernel", &BoundRuntime::attentionKernel},
};

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_RUNTIMEWORDS_H
