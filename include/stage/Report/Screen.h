//===- Screen.h - a report that fits on a screen ---------------*- C++ -*-===//
//
// Problem: the full report of a large job has 250 lines, and a reader wants to know whether the step fits into memory,
// how long it takes, and what it communicates most.
//
// `--report` prints at most 25 lines of at most 110 columns, with three significant digits; `--report=full` prints all
// tables (print() of Report.h).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_REPORT_SCREEN_H
#define STAGE_REPORT_SCREEN_H

#include "stage/Report/SentCaches.h"

namespace stage {

void printScreen(llvm::raw_ostream &os, const Report &report);
/// A screen of each pool, and what one sends to the other.
void printScreen(llvm::raw_ostream &os, llvm::ArrayRef<Report> pools, const SentCaches &sent);

} // namespace stage

#endif // STAGE_REPORT_SCREEN_H
