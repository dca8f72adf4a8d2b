//===- ReportRecords.h - what the formats of a report share ----*- C++ -*-===//
#ifndef STAGE_LIB_REPORT_REPORTRECORDS_H
#define STAGE_LIB_REPORT_REPORTRECORDS_H

#include "stage/Report/Report.h"
#include "stage/Support/Records.h"

namespace stage {

/// Adds to the report of inference, all else of which is there, what its phases take and its caches hold.
void addPhases(Report &report, DiagnosticEngine &diags);
/// `forward`, which of inference is `prefill`; `backward` of its halves, too, into which schedules split some units.
llvm::StringRef describePhase(const Graph &graph, PhaseKind kind);
/// `8 of prefill, 4,000 of decode`.
std::string describeUnits(const Report &report);
/// `99.53 GiB for 64 sequences of 5,096 positions, 327,680 bytes for one position more`.
std::string describeCaches(const CacheReport &caches);
/// `pp 2 x dp 4 x tp 8; ep = dp x tp`.
std::string describeMesh(const Mesh &mesh);
/// Units of a phase.
Records listRecords(const PhaseReport &phase);
/// What a rank communicates in a unit of a phase.
std::vector<Records> listTraffic(const PhaseReport &phase);
void printPhases(llvm::raw_ostream &os, const Report &report);
/// The operation and its group, or the part that receives what is sent, and what that is.
Records listGroup(const TrafficReport &traffic);
/// What a rank communicates in a step.
Records listRecords(const TrafficRow &row);
/// What it copies to and from its host; `stages` for people.
Records listRecords(const CopyReport &copy, const std::string &stages);
Records listRecords(const FlopReport &flops);
/// `0-3`, or `2` alone.
std::string describeStages(unsigned first, unsigned last);
/// What a step takes, where the job has a machine.
void printTime(llvm::raw_ostream &os, const Report &report);
void writeTime(llvm::json::OStream &json, const Report &report);
/// How far its time may be off.
void writeAccuracy(llvm::json::OStream &json, const Accuracy &accuracy);
/// `0.096073`.
std::string formatDouble(double value, int digits);
/// Exactly, in seconds: `0.001406501444`.
std::string formatSeconds(Ticks ticks);
/// Milliseconds to the microsecond: `1,406.501`.
std::string formatMillis(Ticks ticks);
/// Tokens, or samples, of a second.
std::string formatPerSecond(double number);
/// The table of stages, and what is largest at the peak of the worst, or of all.
void printStages(llvm::raw_ostream &os, const MemoryReport &report, bool listsAll);
/// Of traces: rows of a name and a text, and an object.
void addTraces(Table &table, const TraceStatistics &traces);
void writeTraces(llvm::json::OStream &json, const TraceStatistics &traces);

} // namespace stage

#endif // STAGE_LIB_REPORT_REPORTRECORDS_H
