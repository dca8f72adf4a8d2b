//===- ProofSize.cpp - is a proof small enough to run? --------------------===//
#include "ProofSize.h"
#include "stage/Interp/Diagnostics.h"
#include "stage/Interp/Prove.h"
#include "stage/Transforms/sharding/CheckSizes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::interp;

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

double stage::interp::countProducts(Graph &graph) {
  double work = 0;
  auto count = [&](Size size) -> int64_t { // what has no value is refused elsewhere
    SizeValue value = evaluateCount(size, graph.binding);
    return value ? int64_t(value.value.num) : 0;
  };
  auto visit = [&](auto &self, Block &block, double times) -> void {
    for (auto &op : block) {
      for (auto &body : op->bodies) {
        int64_t iterations = op->cases.count(body->getNumber(), 0, count(op->count));
        self(self, *body, times * double(iterations));
      }
      double size = times;
      std::vector<bool> iterated = op->def ? findIterated(*op->def) : std::vector<bool>();
      for (unsigned i = 0; i < iterated.size() && i < op->extents.size(); ++i)
        if (iterated[i])
          size *= double(count(op->extents[i].size));
      for (auto &result : op->getResults()) {
        double elements = times;
        for (const Extent &extent : result->type.shape)
          elements *= double(count(extent.size));
        size = std::max(size, elements);
      }
      work += size;
    }
  };
  for (Block &phase : graph.getPhases())
    visit(visit, phase, 1);
  return work * double(graph.microbatches);
}

bool stage::interp::checkProofSize(Graph &graph, const Program *program, DiagnosticEngine &diags,
                                   const ServedUnits *served) {
  for (auto &dim : graph.dims)
    if (dim->isPacked && !served) {
      diags.report(dim->loc, diag::ProofOfRequests) << dim->name;
      return false;
    }
  if (program && !hasFewRanks(graph, diags))
    return false;
  if (double work = countProducts(graph); work > mostProducts) {
    diags.report(graph.loc, diag::ProofTooMuch) << std::to_string(work) << std::to_string(mostProducts);
    return false;
  }
  return true;
}

void ProofSizes::note(const SizeBinding &before, const SizeBinding &after) {
  for (auto &[name, value] : before.sorted())
    if (int64_t now = after.lookup(name).value_or(value); now != value)
      (now < value ? smaller : larger).push_back(name + " " + std::to_string(value) + " -> " + std::to_string(now));
}

void ProofSizes::print(llvm::raw_ostream &os, llvm::StringRef whose) const {
  if (!smaller.empty())
    os << whose << "made small: " << llvm::join(smaller, ", ") << '\n';
  if (!larger.empty())
    os << whose << "made larger: " << llvm::join(larger, ", ") << '\n';
  for (const std::string &relation : notKept)
    os << whose << "not kept: " << relation << '\n';
}
