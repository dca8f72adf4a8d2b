//===- MeasuredSets.h - errors of predicted steps ---------------*- C++ -*-===//
//
// Problem: a time is worth as much as its error is known. `utils/score` compares predicted steps with measured ones;
// the compiler reads what it found:
//
//   machine,runtime,kind,type,rows,ranks,bias,p90          stdlib/tables/measured.csv
//   a100,megatron_2,dense,bf16,28,512,0.0,10.7             28 measured rows on up to 512 ranks; of nine in ten of them
//                                                          the prediction is off by 10.7 % at most
//
// Nearest set of a step, the first of these that there is:
//   1  its kind, machine and runtime, or what these extend: the nearest machine first, then the nearest runtime
//   2  its kind and runtime on another machine
//   3  its kind and machine with another runtime
// Of several sets in 2 and 3 the one with the largest error counts.
//
// Limits: a set says nothing of what makes its rows differ. Accuracy.h says where a step differs from all of them.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_REPORT_MEASUREDSETS_H
#define STAGE_REPORT_MEASUREDSETS_H

#include "stage/Support/Diagnostics.h"
#include "stage/Symbolic/Rational.h"
#include "llvm/ADT/ArrayRef.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stage {

/// Measured steps of one machine, runtime and kind of model.
struct MeasuredSet {
  std::string machine, runtime; ///< Names of the library.
  std::string kind;             ///< `dense`, `experts`.
  std::string type;             ///< In which products multiply: `bf16`.
  int64_t rows = 0;
  int64_t ranks = 0; ///< Of the largest row.
  // Of predicted / measured - 1, in percent.
  Rational bias; ///< The mean.
  Rational p90;  ///< Of absolute errors; below 100.
};

/// What a step is compared by.
struct MeasuredKind {
  std::vector<std::string> machines, runtimes; ///< Of the library: the job's own, and what it extends, nearest first.
  std::string kind, type;
};

class MeasuredSets {
public:
  /// Reads the text of a table. Null after a report, which shows the buffer.
  static std::shared_ptr<const MeasuredSets> read(std::unique_ptr<llvm::MemoryBuffer> buffer, DiagnosticEngine &diags);
  /// Null: nothing near was measured. Of sets that are equally near those of the same type come first.
  const MeasuredSet *findNearest(const MeasuredKind &step) const;

private:
  std::vector<MeasuredSet> sets;
};

} // namespace stage

#endif // STAGE_REPORT_MEASUREDSETS_H
