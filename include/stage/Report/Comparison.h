//===- Comparison.h - what several plans cost, in one table ----*- C++ -*-===//
//
// A plan is a job under one combination of values of `-D`. One line each:
//
//   job       tp  pp  ranks     parameters  model FLOPs  duplicated  ...   bytes tp  bytes dp  peak memory
//   pretrain   8   2     64  8,030,261,248  13.49 PFLOP           -  ...  38.56 GiB  1.87 GiB    12.84 GiB
//   pretrain   3   2  refused: 'F/tp' must be a whole number
//
// Plans on a machine have a second table, with the time of a step; where they differ in machine or runtime, it has a
// column of these:
//
//   time of a step on h100 (bf16), runtime ideal
//   job       tp    step ms  +- %  against best  tokens/s/device  MFU %  bubble %  exposed ms  peak memory  ...
//   pretrain   8  1,406.501   9.4  best                   11,649   60.6       9.6      31.020    12.84 GiB
//   pretrain   4  1,512.022   9.4  alike                  10,836   56.4       9.6      99.870    14.02 GiB
//   pretrain   2  1,906.741   9.4  slower                  8,593   44.7       9.6     410.116    18.92 GiB
//
// Errors are those of stage/Report/Accuracy.h. The best plan is the one with most tokens per second and device that
// fits into memory. A plan whose time of a token may be no longer than that of the best one, by the errors of both, is
// alike: measurements do not tell the two apart.
//
// What a plan costs is kept apart from its program, so that only one program is there at a time.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_REPORT_COMPARISON_H
#define STAGE_REPORT_COMPARISON_H

#include "stage/Report/Report.h"

namespace stage {

/// What a step of a plan takes.
struct PlanTime {
  std::string machine, runtime; ///< With changes.
  bool insideTables = false;
  Ticks step = 0;
  StepFigures figures;
  std::optional<MeasuredSet> set;               ///< By which its error is known.
  std::string notCovered;                       ///< Codes of what measured rows do not cover.
  std::optional<std::pair<Ticks, Ticks>> range; ///< Of the measured time, by this error.
  bool areSamples = false;                      ///< And not tokens.
  bool hasPeak = false;                         ///< Of FLOPs, so that figures have an MFU.
  std::optional<bool> fits;
  bool isNearlyFull = false;
};

/// Of what time, communication and memory of a plan are made (stage/Report/Breakdown.h).
struct PlanParts {
  std::array<Ticks, numTimeAccounts> accounts = {}; ///< The mean over stages; 0 without a machine.
  /// What leaves a rank of the stage that moves most in a step: bytes by axes (`tp`, `dp+tp`) and subject, in the order
  /// of first use.
  struct Moved {
    std::string axes;
    Subject subject;
    __int128 bytes;
  };
  std::vector<Moved> moved;
  MemoryUse peak; ///< Of the stage that holds most.
};

/// The numbers of a report that are compared.
struct PlanCosts {
  int64_t ranks = 1;
  int64_t microbatches = 1;
  __int128 parameters = 0, padding = 0;
  FlopReport flops, duplicatedFlops;
  /// FLOPs of a rank of the stage that has most, with recomputed and duplicated ones and padding; the mean of its
  /// ranks.
  __int128 rankFlops = 0;
  /// Per group of axes ("tp", "dp+tp") the bytes that a rank puts in during a step, in the stage where these are most;
  /// fewer axes first, then in the order of the mesh.
  std::vector<std::pair<std::string, __int128>> traffic;
  /// Of a rank, over all stages.
  ByteCount peak = 0;
  std::optional<PlanTime> time; ///< Where the job has a machine.
  PlanParts parts;
};
PlanCosts summarize(const Report &report);

struct ComparedPlan {
  std::string job;
  std::vector<std::string> values; ///< Of the names that vary.
  std::optional<PlanCosts> costs;  ///< Absent: the plan was refused.
  std::string refusal;             ///< Why.
};

struct Comparison {
  std::vector<std::string> names; ///< That have several values: "tp".
  std::vector<ComparedPlan> plans;
};

/// Aligned text for people.
void print(llvm::raw_ostream &os, const Comparison &comparison);
/// The second of these tables alone.
void printTimes(llvm::raw_ostream &os, const Comparison &comparison);
/// A header and a line per plan, with exact numbers (RFC 4180, with \n).
void printCsv(llvm::raw_ostream &os, const Comparison &comparison);

/// One JSON object, written plan by plan: what varies and the whole report, or why it was refused; docs/schema names
/// its fields.
class JsonComparison {
public:
  explicit JsonComparison(llvm::raw_ostream &os);
  ~JsonComparison();
  /// The object of one plan, for `add`. `report` is null if the plan was refused.
  static std::string describe(const ComparedPlan &plan, llvm::ArrayRef<std::string> names, const Report *report);
  void add(llvm::StringRef description);
  /// Ends the object.
  void finish();

private:
  struct Writer;
  std::unique_ptr<Writer> writer;
};

} // namespace stage

#endif // STAGE_REPORT_COMPARISON_H
