//===- SplitFolds.cpp - decode steps over caches that are split -----------===//
//
// Problem: `shard context over cp;` deals the positions in caches out to ranks, so that long sequences fit. In a decode
// step all ranks have the same queries, and each some keys: attention is of what a rank has, and then merged.
//
//   %all = append(%keys, %k) dim 1 : [B, context, KV, E]           dim context = roundUp(context, cp)
//   %o, %lse = attention(%q, %all, ...)
//
//   dim splits = cp;                                                position t is of part t mod cp
//   %o.part, %lse.part = attention.1(%q, %all, ...) : [splits, B, step, KV, G, E], [splits, B, step, KV, G]
//   %lse = attention_merge.lse(%lse.part)                           gathered over cp
//   %o = attention_merge(%o.part, %lse.part, %lse)                  a sum over cp
//
// Positions are dealt out in turn, as sequences grow at their end; a round that is not full has empty ones, which masks
// leave out.
//
// Algorithm: each op of a phase that folds an index over `context` becomes its parts and their merges
// (stage/IR/Fold.h).
//
// Limits: one axis. What does not fold the positions, and prefill, gathers them. Windows are not split.
//
//===----------------------------------------------------------------------===//
#include "ModuleLowering.h"
#include "stage/IR/algebra/Fold.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IRGen/Diagnostics.h"
#include "stage/Schedule/InferenceSymbols.h"
#include "stage/Sema/InferenceWords.h"

using namespace stage;

/// What splits `context`, over which axes, and where these mean something.
static std::pair<const ast::ShardStmt::Item *, const sema::Environment *> findSplit(const sema::BoundJob &job) {
  for (const sema::BoundRule &rule : job.strategy.rules)
    if (auto *shard = llvm::dyn_cast<ast::ShardStmt>(rule.stmt))
      for (const ast::ShardStmt::Item &item : shard->items)
        if (item.dims.size() == 1 && item.dims.front().name == sema::contextDim)
          return {&item, rule.env};
  return {};
}

bool ModuleLowering::findContextSplit() {
  auto [split, env] = findSplit(job);
  if (!split)
    return true;
  AxisList axes;
  for (llvm::StringRef name : job.strategy.expand(split->axes, env))
    if (std::optional<AxisId> axis = graph.mesh.find(name); axis && graph.mesh[*axis].size > 1)
      axes.emplace_back(*axis);
  if (axes.empty())
    return true;
  auto refuse = [&, split = split](const char *what) {
    diags.report(split->dims.front().loc(), diag::NotSupportedYet).range(split->dims.front().range) << what;
    return false;
  };
  if (axes.size() > 1)
    return refuse("'context' over several axes");
  if (job.inference->isPacked())
    return refuse("'context' of units of several sequences that is split");
  if (job.inference->draft)
    return refuse("'context' that is split beside a draft model");
  contextParts = graph.mesh.getGroupSymbol(graph.sizes, axes);
  const sema::BoundInference &inference = *job.inference;
  int64_t first = inference.begin + 1, ranks = graph.mesh[axes.front()].size;
  if (inference.decodes() && first < ranks) {
    diags.report(job.stepRange.Start, diag::TooFewPositions).range(job.stepRange)
        << std::to_string(first) + (first == 1 ? " position" : " positions") << ranks;
    return false;
  }
  return true;
}

Size ModuleLowering::roundUp(Size positions) const {
  return contextParts ? positions.ceilDiv(contextParts) * contextParts : positions;
}

namespace {
class FoldSplitter {
public:
  FoldSplitter(Graph &graph, const Dim *context, Size numParts) : graph(graph), context(context), numParts(numParts) {}

  void run(Block &phase) {
    std::vector<std::pair<Op *, unsigned>> found;
    Graph::walk(phase, [&](Op &op) {
      if (op.kind != OpKind::Compute)
        return;
      for (unsigned index = 0; index < op.extents.size(); ++index)
        if (op.extents[index].dim == context && op.def->indices[index].fold && seesEachPart(op)) {
          found.emplace_back(&op, index);
          return;
        }
    });
    for (auto [op, index] : found)
      if (FoldParts parts = deriveFoldParts(*op->def, index, graph.defs); parts.fault.empty()) // else keys are gathered
        split(*op, parts);
  }

private:
  /// A row that sees nothing of a part would divide 0 by 0 there. A window must be as long as there are ranks; of a
  /// block a row may see itself only.
  bool seesEachPart(const Op &op) const {
    if (!op.def->mask || op.def->mask->kind == Mask::Kind::Causal || op.def->mask->kind == Mask::Kind::Full)
      return true;
    SizeValue window = evaluate(op.def->mask->amount - numParts, graph.binding);
    return op.def->mask->kind == Mask::Kind::Window && window && window.value.num >= 0;
  }

  void split(Op &whole, FoldParts &parts) {
    Block &block = *whole.getBlock();
    if (!splits)
      splits = graph.addDim(sema::splitsDim, numParts, whole.loc);
    Extent ofPart{splits, splits->size};
    auto extents = whole.extents;
    extents.push_back(ofPart);
    auto add = [&](const OpDef *def, llvm::ArrayRef<Extent> sizes, llvm::ArrayRef<Value *> operands) {
      auto op = std::make_unique<Op>(OpKind::Compute, whole.loc);
      op->scope = whole.scope;
      op->def = def;
      op->extents.assign(sizes.begin(), sizes.end());
      for (Value *operand : operands)
        op->addOperand(operand);
      return block.insertBefore(&whole, std::move(op));
    };
    auto getPath = [&](const Value &value, const char *what) {
      return value.path.empty() ? std::string() : value.path + what;
    };
    // What the op's own operands, the parts and what is merged are, by number of operand (FoldParts::Merge).
    std::vector<Value *> values(whole.getOperands().begin(), whole.getOperands().end());
    Op *part = add(graph.defs.add(parts.part), extents, whole.getOperands());
    for (auto &result : whole.getResults()) {
      TensorType type = result->type;
      type.shape.insert(type.shape.begin(), ofPart);
      values.push_back(part->addResult(type, getPath(*result, ".part")));
    }
    values.resize(values.size() + whole.getNumResults(), nullptr);
    for (FoldParts::Merge &merge : parts.merges) {
      llvm::SmallVector<Extent, 6> sizes;
      for (unsigned i : merge.indices)
        sizes.push_back(extents[i]);
      llvm::SmallVector<Value *, 4> operands;
      for (unsigned operand : merge.operands)
        operands.push_back(values[operand]);
      Value *result = whole.getResult(merge.result);
      Op *op = add(graph.defs.add(std::move(merge.def)), sizes, operands);
      Value *made = op->addResult(result->type, result->path);
      made->constraint = result->constraint;
      if (!made->constraint.partial)
        made->constraint.partial = AxisSet(0); // it is whole before anything else is made of it
      values[whole.getNumOperands() + whole.getNumResults() + merge.result] = made;
      result->replaceAllUsesWith(made);
    }
    block.erase(&whole);
  }

  Graph &graph;
  const Dim *context;
  Size numParts;
  Dim *splits = nullptr;
};
} // namespace

void ModuleLowering::splitFolds(Block &phase) {
  if (contextParts)
    FoldSplitter(graph, context, contextParts).run(phase);
}
