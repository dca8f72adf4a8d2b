//===- WaitRows.h - how long ranks wait for communication ------*- C++ -*-===//
//
// Problem: a step has thousands of collectives, and people ask which kind of them is waited for.
//
//   operation       axes  carries      phase     ms       exposed
//   all_gather      tp    activations  forward   120.000   80.000
//
// Algorithm: collectives of a stage that carry the same in the same phase are one row, in the order of first use; all
// messages between stages are one.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_REPORT_WAITROWS_H
#define STAGE_LIB_REPORT_WAITROWS_H

#include "ReportRecords.h"
#include "Subjects.h"

namespace stage {

/// Collectives of a stage that carry the same in the same phase, or its messages.
struct WaitRow {
  unsigned stage = 0;
  std::string operation = "message", subject, phase, type;
  std::vector<std::string> axes;
  int64_t count = 0;
  Ticks taken = 0, exposed = 0;

  bool isAlike(const WaitRow &other) const {
    return std::tie(operation, axes, subject, phase, type) ==
           std::tie(other.operation, other.axes, other.subject, other.phase, other.type);
  }
  Records list(llvm::function_ref<Record::Digits(Ticks)> format) const;
};

/// Of a stage, in the order of first use.
std::vector<WaitRow> listWaits(const StageTime &stage, const Subjects &subjects);
/// Per stage.
std::vector<std::vector<WaitRow>> listWaits(const TimeReport &time);

} // namespace stage

#endif // STAGE_LIB_REPORT_WAITROWS_H
