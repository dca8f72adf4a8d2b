//===- UnitTimes.h - how long iterations of a job take ---------*- C++ -*-===//
//
// Problem: which iterations there are depends on how long they last, and that on what the
// model computes and reads, which is known once the job is compiled, with its iterations.
//
//   --peak-flops=989e12 --bandwidth=3.35e12       the slower of: FLOPs of an iteration on a rank, and bytes
//
// Algorithm: what a unit of each kind takes is an expression over what units bind: tokens,
// context, pairs, positions that are wanted. The job is compiled once with a unit of each kind
// for these expressions, which are evaluated for every iteration; then it is compiled with its
// iterations.
//
// Where an iteration is two units, as latent attention decodes in another way, it lasts as long as both.
//
// Limits: communication takes no time, nor what is copied; ops do not overlap, but what the
// whole iteration computes with all that it reads (Williams et al., Roofline, CACM 2009).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_DRIVER_UNITTIMES_H
#define STAGE_LIB_DRIVER_UNITTIMES_H

#include "Commands.h"

namespace stage::driver {

class UnitTimes {
public:
  explicit UnitTimes(const SessionOptions &files) : session(files, getMessagePrinter()) {}
  /// Compiles the job with rates of `options.requests`. Null after a report.
  static std::unique_ptr<UnitTimes> create(const DriverOptions &options);

  /// Of the slowest rank of each stage.
  std::vector<double> getSeconds(const PackedUnit &unit) const;

private:
  /// What a unit takes on a rank of a stage, where coordinates on `axes` may make a difference.
  struct Cost {
    Size flops, bytes;
    AxisSet axes = 0;
  };
  std::vector<Cost> addUp(PhaseKind kind) const;

  Session session;
  Compilation compilation{session};
  std::vector<Cost> ofPrompts, ofSteps; ///< Per stage.
  serving::Roofline roofline;
};

/// Whether other ops attend in a decode step than in a prefill, as those of latent attention do. False also
/// for a job that has errors, for whoever compiles it to report.
bool attendsInAnotherWay(const DriverOptions &options, int64_t numRanks);

} // namespace stage::driver

#endif // STAGE_LIB_DRIVER_UNITTIMES_H
