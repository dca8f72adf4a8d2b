//===- Verify.h - do the traces agree, and do they finish? -----*- C++ -*-===//
//
// A simulator that is given wrong traces aborts, or stalls and still exits with 0. The
// verifier says what is wrong, of any producer's traces:
//
//   nodes        ids unique; dependencies exist, on others, once; no cycle
//   attributes   there, of the kind consumers read, in range
//   collectives  each member of a group issues the same ones (type, bytes) in the same
//                order; the rank is a member; a group has two members or more
//   sends        each has its recv and each recv its send (tag, source, destination, bytes)
//   tensors      where nodes list them (`inputs`, `outputs`): all nodes do, each tensor is written once and read by
//                nodes that depend on its writer only, its size is the same everywhere
//   durations    where nodes carry them: all nodes but recvs do, units do not go backwards, ids are the order
//   execution    a greedy simulator finishes (Simulation.h), with sends that are buffered
//                and with sends that wait for their recv
//
// All faults are reported, up to a number per code; the execution is tried when there
// are none. Dependencies are the union of ctrl_deps and data_deps, as ASTRA-sim takes it.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TRACE_VERIFY_H
#define STAGE_TRACE_VERIFY_H

#include "stage/Support/Diagnostics.h"

namespace stage::trace {

struct VerifyOptions {
  /// Take data_deps only, like consumers that ignore ctrl_deps.
  bool ignoreCtrl = false;
  /// Messages shown per code; the others are counted.
  unsigned maxShown = 10;
  /// Nodes, and dependencies, of a rank: more are refused, as they are counted in 32 bits.
  uint32_t maxEntries = UINT32_MAX - 1;
};

/// Verifies the traces of a folder and prints a summary of good ones. False after a report.
bool verifyTraces(llvm::StringRef path, const VerifyOptions &options, llvm::raw_ostream &out, DiagnosticEngine &diags);

} // namespace stage::trace

#endif // STAGE_TRACE_VERIFY_H
