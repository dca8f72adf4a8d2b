//===- TinySizesOfParts.cpp - small sizes on which parts agree ------------===//
//
// Problem: each part of a workload has symbols of its own, B in one and N in the other,
// and a transfer makes two of them one size, which has to suit both.
//
// Algorithm: symbols that are the same dim of a transfer, directly or through other parts, are
// tied. Each part finds sizes by itself; what is tied becomes the least common
// multiple of what its parts found, which splits as often as they ask, and each part finds the rest
// again. Where one refuses, small multiples of it are tried, and at last the workload's own sizes.
//
// Limits: a dim that is an expression, as 2*S, is tied to nothing; if both ends come out
// different, that is reported.
//
//===----------------------------------------------------------------------===//
#include "stage/Interp/Diagnostics.h"
#include "stage/Interp/Prove.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <numeric>

using namespace stage;

namespace {
class SizesOfParts {
public:
  SizesOfParts(Workload &workload, DiagnosticEngine &diags)
      : workload(workload), diags(diags), quiet(diags.getSources(), llvm::nulls()) {
    for (auto &part : workload.parts)
      before.push_back(part->binding);
    for (const Transfer &transfer : workload.transfers)
      tie(transfer);
  }

  bool run() {
    for (auto &part : workload.parts)
      if (!bindTinySizes(*part, {}, diags))
        return false;
    std::map<Symbol, int64_t> common; // by the leader of what is tied
    for (const Symbol &symbol : symbols) {
      int64_t &value = common.try_emplace(ties.getLeaderValue(symbol), 1).first->second;
      value = std::lcm(value, workload.parts[symbol.first]->binding.lookup(symbol.second).value_or(1));
    }
    for (int64_t multiple : {1, 2, 3, 4, 6, 8})
      if (tryBinding(quiet, [&](const Symbol &symbol) { return common[ties.getLeaderValue(symbol)] * multiple; }))
        return true;
    return tryBinding(diags, [&](const Symbol &symbol) { return before[symbol.first].lookup(symbol.second).value_or(1); });
  }

private:
  using Symbol = std::pair<unsigned, std::string>; ///< Of a part.

  void tie(const Transfer &transfer) {
    const Value *output = workload.getOutput(transfer), *input = workload.getInput(transfer);
    for (unsigned d = 0; d < output->type.getNumDims(); ++d) {
      Size left = output->type.shape[d].size, right = input->type.shape[d].size;
      if (left.getSymbol().empty() || right.getSymbol().empty())
        continue;
      Symbol from = {transfer.from, left.getSymbol().str()}, to = {transfer.to, right.getSymbol().str()};
      ties.unionSets(from, to);
      symbols.push_back(from);
      symbols.push_back(to);
    }
  }

  bool tryBinding(DiagnosticEngine &to, llvm::function_ref<int64_t(const Symbol &)> getValue) {
    for (unsigned part = 0; part < workload.parts.size(); ++part) {
      Graph &graph = *workload.parts[part];
      graph.binding = before[part];
      std::vector<std::string> fixed;
      for (const Symbol &symbol : symbols)
        if (symbol.first == part) {
          graph.binding.bind(symbol.second, getValue(symbol));
          fixed.push_back(symbol.second);
        }
      if (!bindTinySizes(graph, fixed, to))
        return false;
    }
    return verifyTransferSizes(workload, to);
  }

  Workload &workload;
  DiagnosticEngine &diags;
  DiagnosticEngine quiet; ///< Of sizes that need not fit.
  std::vector<SizeBinding> before;
  llvm::EquivalenceClasses<Symbol> ties;
  std::vector<Symbol> symbols; ///< All that are tied.
};
} // namespace

bool stage::bindTinySizes(Workload &workload, DiagnosticEngine &diags) { return SizesOfParts(workload, diags).run(); }
