//===- VerifyPasses.cpp - the head names the passes that have run (V21) ----===//
//
// Problem: which pass may run next follows from the head of the graph, and whoever writes a text may forget a name
// there. Then a pass does its work twice, or meets ops that it does not know. For example, `differentiate` would add a
// second backward to that of a text. Hence each trace that a pass leaves stands here with the pass; one without a trace
// may run again. That values have the shardings of which `passes` speaks is V7, V8 and V10.
//
//===----------------------------------------------------------------------===//
#include "VerifierContext.h"
#include "llvm/ADT/StringSet.h"

using namespace stage;

void stage::verifyPasses(VerifierContext &context) {
  Graph &graph = context.graph;
  llvm::StringSet<> missing; // each is reported once
  // Where two passes make the same, one of them is enough.
  auto require = [&](bool isMade, SMLoc loc, const llvm::Twine &made, llvm::StringRef pass,
                     llvm::StringRef other = "") {
    if (isMade && !graph.hasRun(pass) && !graph.hasRun(other) && missing.insert(pass).second)
      context.diags.report(loc, diag::IRMissingPass) << made << pass;
  };
  for (const Block &phase : graph.getPhases()) {
    PhaseKind kind = phase.getPhase();
    SMLoc loc = phase.empty() ? graph.loc : (*phase.begin())->loc;
    require(kind == PhaseKind::Reduce, loc, getName(kind), "clip-gradients", "overlap-communication");
    bool isTrained = !phase.empty() && (isBackward(kind) || kind == PhaseKind::Step);
    require(isTrained, loc, getName(kind), "differentiate");
  }
  graph.walk([&](const Op &op) {
    PhaseKind phase = op.getBlock()->getPhase();
    llvm::StringRef kind = getName(op.kind);
    require(isReshard(op.kind), op.loc, kind, "insert-communication");
    require(op.kind == OpKind::Join, op.loc, kind, "overlap-products");
    require(op.kind == OpKind::Release, op.loc, kind, "bucket-units");
    require(op.kind == OpKind::Offload && phase == PhaseKind::Forward, op.loc, kind, "offload-activations");
    require(op.kind == OpKind::Write && phase == PhaseKind::Step, op.loc, kind, "partition-state", "offload-state");
    require(op.isRecomputed, op.loc, "again", "recompute");
    for (auto &result : op.getResults()) {
      require(op.kind == OpKind::Param && !result->sharding.flat.empty(), op.loc, "flat", "partition-state");
      if (const Quantization *how = result->type.quantization.get())
        require(true, op.loc, "as " + getName(how->type), "quantize");
    }
  });
}
