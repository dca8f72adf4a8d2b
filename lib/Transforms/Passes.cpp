//===- Passes.cpp - the registry of passes --------------------------------===//
#include "stage/Transforms/Passes.h"

using namespace stage;

static const PassInfo passes[] = {
#define PASS(name, function, doc, needs, knowsHost) {name, function, doc, needs, knowsHost},
#include "stage/Transforms/Passes.def"
};

llvm::ArrayRef<PassInfo> stage::getAllPasses() { return passes; }
