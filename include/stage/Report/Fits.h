//===- Fits.h - how much of a job fits into a memory -----------*- C++ -*-===//
//
//   size  job  largest       peak  next      needs
//   B       4       60  20.92 MiB    62  21.48 MiB
//
// What a search over compiled plans has found (`--fits`).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_REPORT_FITS_H
#define STAGE_REPORT_FITS_H

#include "stage/Memory/Memory.h"

namespace stage {

/// The job with another value of one of its sizes.
struct FitTrial {
  int64_t value = 0;
  std::optional<ByteCount> peak; ///< Of a rank; absent: the job was refused.
  std::string refusal;           ///< Why.
};

struct FitResult {
  std::string name;                ///< Of the size: "B", "S".
  int64_t own = 0;                 ///< The job's value.
  std::optional<FitTrial> largest; ///< Absent: none fits.
  std::optional<FitTrial>
      next; ///< The next larger value, which does not fit or is refused. Absent: memory does not depend on the size.
};

struct Fits {
  std::string job;
  int64_t ranks = 1;
  __int128 limit = 0;       ///< Bytes of a rank.
  ByteCount peak = 0;       ///< Of the job as it is.
  int64_t batchRanks = 1;   ///< Ranks among which sequences are split.
  int64_t microbatches = 0; ///< Of training, in a step, whatever the microbatch; else 0.
  std::vector<FitResult> sizes;
};

/// Aligned text for people.
void print(llvm::raw_ostream &os, const Fits &fits);
/// One JSON object with exact numbers; docs/schema names its fields.
void printJson(llvm::raw_ostream &os, const Fits &fits);

} // namespace stage

#endif // STAGE_REPORT_FITS_H
