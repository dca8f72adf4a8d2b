//===- PrintTraces.h - what traces are said to be --------------*- C++ -*-===//
#ifndef STAGE_LIB_REPORT_PRINTTRACES_H
#define STAGE_LIB_REPORT_PRINTTRACES_H

#include "stage/Report/Report.h"
#include "stage/Support/Table.h"

namespace stage {

/// Rows of a name and a text.
void addTraces(Table &table, const TraceStatistics &traces);
/// An object `traces`.
void writeTraces(llvm::json::OStream &json, const TraceStatistics &traces);

} // namespace stage

#endif // STAGE_LIB_REPORT_PRINTTRACES_H
