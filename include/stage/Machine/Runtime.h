//===- Runtime.h - what software adds to the times of a machine -*- C++ -*-===//
//
// Problem: a step takes longer than its tasks do alone, because software launches each kernel, and kernels of
// collectives take cores and memory from the compute beside them.
//
//   3 ms of a collective beside 10 ms of compute, tax 0.30       compute takes 10.9 ms
//   100 kernels of 5 us of compute, launch 8 us                  800 us instead of 500 us
//
// Rule: a tax is computed from durations alone, before anything is placed, so that time stays a longest path. An ideal
// runtime launches at once and takes no tax.
//
// Limits: bytes that fused kernels save, the host's own time, and memory that software keeps are not said here.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_MACHINE_RUNTIME_H
#define STAGE_MACHINE_RUNTIME_H

#include "stage/Machine/Ticks.h"
#include "stage/Symbolic/Rational.h"
#include <string>
#include <vector>

namespace stage {

struct Runtime {
  std::string name;                 ///< Of a runtime that a program declares; empty: an ideal one.
  std::vector<std::string> changes; ///< What the command line puts in place of entries, as it is written there.

  /// What the host takes to launch a kernel. No unit is shorter than its kernels times this: a unit whose compute takes
  /// less has the rest added to its last compute task.
  Ticks launch = 0;
  /// What 1 ms of a collective beside compute costs this compute, in ms: o ticks beside each other lengthen the compute
  /// by o times the tax. A collective that still waits for another rank costs nothing.
  Rational taxOfCollectives;
  /// The same of messages between stages, and of copies between device and host.
  Rational taxOfSends, taxOfCopies;
  /// What 1 ms of compute beside communication costs this communication, in ms. Rates of networks that were measured
  /// in runs contain it already.
  Rational taxOfCommunication;
  /// How fast the fused attention kernel is, as a part of the speed that the machine says: at 0.5 it takes twice as
  /// long.
  Rational attentionKernel = {1, 1};

  /// `megatron_2 with launch = 5us`; `ideal` without a name.
  std::string describe() const;
};

} // namespace stage

#endif // STAGE_MACHINE_RUNTIME_H
