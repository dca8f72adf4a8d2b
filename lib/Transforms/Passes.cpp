//===- Passes.cpp - the registry of passes --------------------------------===//
#include "stage/Transforms/Passes.h"

using namespace stage;

/// Communication is found between shardings: every value has one.
static llvm::StringRef findUnsharded(Graph &graph) {
  bool isSharded = true;
  auto visit = [&](const Value &value) { isSharded &= value.sharding.dims.size() == value.type.getNumDims(); };
  graph.walk([&](Op &op) {
    for (auto &result : op.getResults())
      visit(*result);
    if (op.body)
      for (auto &argument : op.body->getArguments())
        visit(*argument);
  });
  return isSharded ? "" : "propagate-sharding";
}

static const PassInfo passes[] = {
#define PASS(name, function, doc, findMissing) {name, function, doc, findMissing},
#include "stage/Transforms/Passes.def"
};

llvm::ArrayRef<PassInfo> stage::getAllPasses() { return passes; }
