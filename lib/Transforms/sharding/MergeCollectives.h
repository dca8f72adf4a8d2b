//===- MergeCollectives.h - several collectives as one ---------*- C++ -*-===//
//
//   %a.1 = all_reduce(%a) over dp
//   %b.1 = all_reduce(%b) over dp    ->    %a.1, %b.1 = all_reduce(%a, %b) over dp
//
// What buckets are made of is decided by bucket-units and reduce-gradients.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRANSFORMS_MERGECOLLECTIVES_H
#define STAGE_LIB_TRANSFORMS_MERGECOLLECTIVES_H

#include "stage/IR/graph/Graph.h"

namespace stage {

/// Makes one collective of several of one operand each that are alike but for their dims, in front of an op. They are
/// erased.
Op &mergeCollectives(llvm::ArrayRef<Op *> members, Op &where);

/// A stream with this name, or one like it where a stream of the graph has it.
const Stream *addStream(Graph &graph, llvm::StringRef name, StreamKind kind, bool hasMessages = false);
/// The stream for what comes from the host: it waits for nothing that goes there.
const Stream *getStreamOfLoads(Graph &graph);

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_MERGECOLLECTIVES_H
