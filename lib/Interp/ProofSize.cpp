//===- ProofSize.cpp - is a proof small enough to run? --------------------===//
#include "ProofSize.h"
#include "stage/Interp/Diagnostics.h"
#include "stage/Interp/Prove.h"
#include "stage/Transforms/CheckSizes.h"

using namespace stage;

/// The indices that an op runs over. Not those of dims that are only subscripted, as of a part of a concatenation, nor
/// several indices as one, nor those to which tokens are routed: where these stand follows from others.
static std::vector<bool> findIterated(const OpDef &op) {
  const OpDef &def = op.vjpOf ? *op.vjpOf : op;
  std::vector<bool> iterated(def.indices.size(), def.opaque);
  auto mark = [&](llvm::ArrayRef<unsigned> indices) {
    for (unsigned index : def.expand(indices))
      iterated[index] = true;
  };
  auto visit = [&](auto &self, const Formula *f) -> void {
    mark(f->indices);
    for (const Formula *child : f->children)
      self(self, child);
  };
  for (const ResultInfo &result : def.results) {
    mark(result.indices);
    if (result.formula)
      visit(visit, result.formula);
  }
  for (auto &[name, let] : def.lets)
    visit(visit, let);
  for (unsigned i = 0; i < def.indices.size(); ++i)
    if (def.indices[i].isCompound() || (def.routing && def.routing->isRouted(i)))
      iterated[i] = false;
  return iterated;
}

bool stage::checkProofSize(Graph &graph, const Program *program, DiagnosticEngine &diags, const ServedUnits *served) {
  for (auto &dim : graph.dims)
    if (dim->isPacked && !served) {
      diags.report(dim->loc, diag::ProofOfRequests) << dim->name;
      return false;
    }
  constexpr double most = 2e8;
  double work = 0;
  auto visit = [&](auto &self, Block &block, double times) -> void {
    for (auto &op : block) {
      for (auto &body : op->bodies) {
        int64_t iterations = op->cases.count(body->getNumber(), 0, getCheckedCount(graph, op->count));
        self(self, *body, times * double(iterations));
      }
      double size = times;
      std::vector<bool> iterated = op->def ? findIterated(*op->def) : std::vector<bool>();
      for (unsigned i = 0; i < iterated.size() && i < op->extents.size(); ++i)
        if (iterated[i])
          size *= double(getCheckedCount(graph, op->extents[i].size));
      for (auto &result : op->getResults()) {
        double elements = times;
        for (const Extent &extent : result->type.shape)
          elements *= double(getCheckedCount(graph, extent.size));
        size = std::max(size, elements);
      }
      work += size;
    }
  };
  for (Block &phase : graph.getPhases())
    visit(visit, phase, 1);
  work *= double(graph.microbatches);
  if (program && !hasFewRanks(graph, diags))
    return false;
  if (work > most) {
    diags.report(graph.loc, diag::ProofTooMuch) << std::to_string(work) << std::to_string(most);
    return false;
  }
  return true;
}
