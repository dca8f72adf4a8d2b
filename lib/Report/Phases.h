//===- Phases.h - prefill, decode and caches in the report -----*- C++ -*-===//
#ifndef STAGE_LIB_REPORT_PHASES_H
#define STAGE_LIB_REPORT_PHASES_H

#include "stage/Report/Report.h"

namespace stage {

/// Adds to the report of inference, all else of which is there, what its phases take and its caches hold.
void addPhases(Report &report, DiagnosticEngine &diags);
/// `8 of prefill, 4,000 of decode`.
std::string describeUnits(const Report &report);
/// `99.53 GiB for 64 sequences of 5,096 positions, 327,680 bytes for one position more`.
std::string describeCaches(const CacheReport &caches);
void printPhases(llvm::raw_ostream &os, const Report &report);
/// `tp`, or where another part receives what is sent.
std::string describeGroup(const Graph &graph, const TrafficReport &traffic);
/// `0-3`, or `2` alone.
std::string describeStages(unsigned first, unsigned last);

} // namespace stage

#endif // STAGE_LIB_REPORT_PHASES_H
