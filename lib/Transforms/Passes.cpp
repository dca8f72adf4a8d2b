//===- Passes.cpp - the registry of passes --------------------------------===//
#include "stage/Transforms/Passes.h"
#include "stage/IR/Walk.h"

using namespace stage;

/// Communication is found between shardings: every value has one.
static llvm::StringRef findUnsharded(Graph &graph) {
  bool isSharded = true;
  for (Block &phase : graph.getPhases())
    forEachValue(phase, [&](Value &value, Op *) {
      isSharded &= value.sharding.dims.size() == value.type.getNumDims();
    });
  return isSharded ? "" : "propagate-sharding";
}

static const PassInfo passes[] = {
#define PASS(name, function, doc, findMissing) {name, function, doc, findMissing},
#include "stage/Transforms/Passes.def"
};

llvm::ArrayRef<PassInfo> stage::getAllPasses() { return passes; }
