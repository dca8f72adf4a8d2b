//===- LinkPools.h - prefill and decode on ranks of their own --*- C++ -*-===//
#ifndef STAGE_TRANSFORMS_PIPELINE_LINKPOOLS_H
#define STAGE_TRANSFORMS_PIPELINE_LINKPOOLS_H

#include "stage/IR/graph/Channel.h"

namespace stage {

/// What a job says of the one that fills its caches.
struct PoolHandover {
  std::unique_ptr<Program> prefill, decode; ///< Of one model; their graphs outlive what is linked.
  unsigned batches = 1;                     ///< Of sequences, of the prefill.
  unsigned chunks = 1;                      ///< Of each; each is a unit.
  unsigned batchesOfDecode = 1;             ///< So many of the former are one of the latter.
  bool isAtEnd = false;                     ///< Caches are sent at the end of a unit; else each when it is filled.
  SMLoc loc;                                ///< Of what says so.
};

/// Adds to the programs what they send each other: ranks of the prefill come first. Null after errors: caches
/// that differ, or are sharded in ways in which no rank can get its piece from others.
std::unique_ptr<LinkedProgram> linkPools(PoolHandover handover, DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_TRANSFORMS_PIPELINE_LINKPOOLS_H
