//===- StageTraffic.h - what a rank of a stage communicates ----*- C++ -*-===//
//
// Problem: bytes are asked for of a step and of a unit, where units differ, and where the ranks of a stage do.
//
//   unit     all_reduce over tp    2 of 4096 bytes, 1 of 512 * S bytes
//   step     = 8 units with S = 64, and 1 with S = 12
//
// Algorithm: sums of a unit are added up into sums of a step, by kind of communication. What is the same on all ranks
// is a number. What is not is kept as an expression over coordinates per environment, and measured at the end: the most
// of a sum over units is not the sum of what is most in each.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_REPORT_STAGETRAFFIC_H
#define STAGE_LIB_REPORT_STAGETRAFFIC_H

#include "stage/Report/Report.h"

namespace stage {

/// Sizes that differ from rank to rank, by the environment in which they have a value.
using SizesByEnvironment = std::map<unsigned, Size>;

/// Over the ranks of a stage: sum, least and most of what the sizes are in their environments, together.
struct Spread {
  __int128 sum = 0, least = 0, most = 0;
};
/// `what` is said where a size has no value.
Spread measureSpread(const Graph &graph, const SizesByEnvironment &sizes, llvm::StringRef what,
                     DiagnosticEngine &diags);
void addTo(SizesByEnvironment &sums, unsigned environment, Size size, int64_t times);

/// The same operation over the same group, of the same subject, phase and type.
bool isAlike(const TrafficReport &a, const TrafficReport &b);

class StageTraffic {
public:
  /// What an op adds in one run: bytes as numbers, or expressions for an environment, if those are not null.
  struct Addend {
    __int128 count = 0;
    __int128 bytes = 0, least = 0;
    Size ownBytes, agreedBytes;
    unsigned environment = 0;
  };
  /// Of `kind` all but its numbers is read.
  void add(const TrafficReport &kind, const Addend &addend, int64_t times);
  /// In `environment`, if one is given: expressions have the same values there.
  void add(const StageTraffic &other, int64_t times, std::optional<unsigned> environment = std::nullopt);
  /// By kind, in the order of first use.
  std::vector<TrafficReport> measure(const Graph &graph, DiagnosticEngine &diags) const;

private:
  struct Sum {
    TrafficReport numbers;
    SizesByEnvironment own, agreed; ///< Where ranks differ; what is said in traces is what a group agrees upon.
  };
  Sum &find(const TrafficReport &kind);

  std::vector<Sum> sums;
};

} // namespace stage

#endif // STAGE_LIB_REPORT_STAGETRAFFIC_H
