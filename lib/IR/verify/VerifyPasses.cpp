//===- VerifyPasses.cpp - the head names the passes that have run (V21) ----===//
//
// Problem: which pass may run next follows from the head of the graph, and whoever writes
// a text may forget a name there. A pass that runs twice makes its work twice, and one that
// runs too late meets ops that it does not know:
//
//   graph G {                      differentiate would add a second backward
//     backward { ... }
//
// Each trace that a pass leaves is listed here with the pass. A pass without a trace may
// run again. That values have the shardings of which `passes` speaks is V7, V8 and V10.
//
//===----------------------------------------------------------------------===//
#include "VerifierContext.h"
#include "llvm/ADT/StringSet.h"

using namespace stage;

void stage::verifyPasses(VerifierContext &context) {
  Graph &graph = context.graph;
  llvm::StringSet<> missing; // each is reported once
  // Where two passes make the same, one of them is enough.
  auto require = [&](SMLoc loc, const llvm::Twine &made, llvm::StringRef pass, llvm::StringRef other = "") {
    if (!graph.hasRun(pass) && !graph.hasRun(other) && missing.insert(pass).second)
      context.diags.report(loc, diag::IRMissingPass) << made << pass;
  };
  for (const Block &phase : graph.getPhases()) {
    PhaseKind kind = phase.getPhase();
    SMLoc loc = phase.empty() ? graph.loc : (*phase.begin())->loc;
    if (kind == PhaseKind::Reduce)
      require(loc, getName(kind), "clip-gradients", "overlap-communication");
    if (!phase.empty() && (isBackward(kind) || kind == PhaseKind::Step))
      require(loc, getName(kind), "differentiate");
  }
  graph.walk([&](const Op &op) {
    PhaseKind phase = op.getBlock()->getPhase();
    if (isReshard(op.kind))
      require(op.loc, getName(op.kind), "insert-communication");
    if (op.kind == OpKind::Join)
      require(op.loc, getName(op.kind), "overlap-products");
    if (op.kind == OpKind::Release)
      require(op.loc, getName(op.kind), "bucket-units");
    if (op.kind == OpKind::Offload && phase == PhaseKind::Forward)
      require(op.loc, getName(op.kind), "offload-activations");
    if (op.kind == OpKind::Write && phase == PhaseKind::Step)
      require(op.loc, getName(op.kind), "partition-state", "offload-state");
    if (op.isRecomputed)
      require(op.loc, "again", "recompute");
    for (auto &result : op.getResults()) {
      if (op.kind == OpKind::Param && !result->sharding.flat.empty())
        require(op.loc, "flat", "partition-state");
      if (const Quantization *how = result->type.quantization.get())
        require(op.loc, "as " + getName(how->type), "quantize");
    }
  });
}
