//===- Passes.cpp - the registry of passes --------------------------------===//
#include "stage/Transforms/Passes.h"
#include "stage/IR/graph/ShardingRules.h"
#include "stage/IR/graph/Walk.h"

using namespace stage;

/// Communication is found between shardings: every value has one.
static llvm::StringRef findUnsharded(Graph &graph) {
  bool isSharded = true;
  for (Block &phase : graph.getPhases())
    forEachValue(phase,
                 [&](Value &value, Op *) { isSharded &= value.sharding.dims.size() == value.type.getNumDims(); });
  return isSharded ? "" : "propagate-sharding";
}

/// Blocks go round once they are where the op needs them.
static llvm::StringRef findUnresharded(Graph &graph) {
  bool isResharded = true;
  graph.walk([&](Op &op) {
    for (unsigned i = 0; op.ring && isResharded && i < op.getNumOperands(); ++i)
      isResharded = op.indexAxes.size() == op.def->indices.size() && !op.indexAxes[*op.ring].empty() &&
                    op.getOperand(i)->sharding == getNeededSharding(op, i);
  });
  llvm::StringRef missing = findUnsharded(graph);
  return !missing.empty() ? missing : isResharded ? "" : "insert-communication";
}

/// Copies would be made of copies.
static llvm::StringRef findQuantized(Graph &graph) {
  bool isQuantized = false;
  for (Block &phase : graph.getPhases())
    forEachValue(phase, [&](Value &value, Op *) { isQuantized |= value.type.quantization != nullptr; });
  return isQuantized ? "quantize" : "";
}

/// What has been taken apart into steps stays so.
static llvm::StringRef findJoined(Graph &graph) {
  bool isJoined = false;
  graph.walk([&](Op &op) { isJoined |= op.kind == OpKind::Join; });
  return isJoined ? "overlap-products" : "";
}

/// What makes shardings knows nothing of ops that change them.
static llvm::StringRef findCommunicated(Graph &graph) {
  bool communicates = false;
  graph.walk([&](Op &op) { communicates |= isReshard(op.kind); });
  return communicates ? "insert-communication" : "";
}

/// A second backward would be added to the first.
static llvm::StringRef findDifferentiated(Graph &graph) {
  if (llvm::StringRef done = findCommunicated(graph); !done.empty())
    return done;
  bool hasBackward = llvm::any_of(graph.getPhases(), [](Block &phase) {
    return !isForward(phase.getPhase()) && !movesCaches(phase.getPhase()) && !phase.empty();
  });
  return hasBackward ? "differentiate" : "";
}

/// What is made again is kept no more: nothing would be left to make again.
static llvm::StringRef findRecomputed(Graph &graph) {
  if (llvm::StringRef done = findCommunicated(graph); !done.empty())
    return done;
  bool isRecomputed = false;
  graph.walk([&](Op &op) { isRecomputed |= op.isRecomputed; });
  return isRecomputed ? "recompute" : "";
}

/// What is cut would be cut once more.
static llvm::StringRef findPartitioned(Graph &graph) {
  bool isPartitioned = false;
  graph.walk([&](Op &op) {
    isPartitioned |= (op.kind == OpKind::Write && op.getOperand(0)->getOp()->kind == OpKind::Param) ||
                     (op.kind == OpKind::Param && !op.getResult()->sharding.flat.empty());
  });
  return isPartitioned ? "partition-state" : "";
}

/// What is released stays there.
static llvm::StringRef findReleased(Graph &graph) {
  bool isReleased = false;
  graph.walk([&](Op &op) { isReleased |= op.kind == OpKind::Release; });
  return isReleased ? "bucket-units" : "";
}

/// The norm would be added up twice.
static llvm::StringRef findClipped(Graph &graph) { return graph.findPhase(PhaseKind::Reduce) ? "clip-gradients" : ""; }

/// What is kept on the host already is kept there twice.
static llvm::StringRef findStored(Graph &graph) {
  bool isStored = false;
  graph.walk(
      [&](Op &op) { isStored |= op.kind == OpKind::Offload && op.getBlock()->getPhase() == PhaseKind::Forward; });
  return isStored ? "offload-activations" : "";
}

static const PassInfo passes[] = {
#define PASS(name, function, doc, findMissing, findDone, knowsHost)                                                    \
  {name, function, doc, findMissing, findDone, knowsHost},
#include "stage/Transforms/Passes.def"
};

llvm::ArrayRef<PassInfo> stage::getAllPasses() { return passes; }
