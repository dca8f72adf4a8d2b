//===- TinySizesOfParts.cpp - small sizes on which parts agree ------------===//
//
// Problem: each part of a workload has symbols of its own, B in one and N in the other,
// and a transfer makes two of them one size, which has to suit both.
//
// Algorithm: symbols that are the same dim of a transfer, directly or through other parts, are
// tied. Each part finds sizes by itself; what is tied becomes the least common
// multiple of what its parts found, which splits as often as they ask, and each part finds the rest
// again. Where one refuses, small multiples of it are tried, and at last the workload's own sizes. Two parts of one
// model try first what one of them found.
//
// Limits: a dim that is an expression, as 2*S, is tied to nothing; if both ends come out
// different, that is reported.
//
//===----------------------------------------------------------------------===//
#include "stage/Interp/Diagnostics.h"
#include "stage/Interp/Prove.h"
#include "stage/Schedule/InferenceSymbols.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <numeric>

using namespace stage;
using namespace stage::interp;

namespace {
class SizesOfParts {
  using Symbol = std::pair<unsigned, std::string>; ///< Of a part.

public:
  SizesOfParts(llvm::ArrayRef<Graph *> parts, llvm::ArrayRef<std::string> fixed, DiagnosticEngine &diags)
      : parts(parts.begin(), parts.end()), fixed(fixed.begin(), fixed.end()), diags(diags), quiet(diags.getSources()) {
    for (Graph *part : parts)
      before.push_back(part->binding);
    made.resize(parts.size());
  }

  /// The dims of what moves.
  void tie(const Workload &workload) {
    for (const Transfer &transfer : workload.transfers)
      tie(workload, transfer);
    checksTransfers = &workload;
  }
  /// A symbol of one part is one of the next, `times` as much there.
  void tie(const std::string &name, int64_t times) {
    tie(Symbol(0, name), Symbol(1, name));
    if (times != 1)
      factors[Symbol(1, name)] = times;
  }

  /// What has become of the sizes of each part.
  std::vector<ProofSizes> takeMade() { return std::move(made); }

  bool run() {
    for (Graph *part : parts)
      if (!bindTinySizes(*part, fixed, diags))
        return false;
    std::map<Symbol, int64_t> common; // by the leader of what is tied
    for (const Symbol &symbol : symbols) {
      int64_t &value = common.try_emplace(ties.getLeaderValue(symbol), 1).first->second;
      value = std::lcm(value, parts[symbol.first]->binding.lookup(symbol.second).value_or(1));
    }
    // What one part of a model has found is as good for the other as a rule: experts that are few are all chosen.
    std::vector<SizeBinding> found;
    for (Graph *part : parts)
      found.push_back(part->binding);
    for (unsigned part = 0; !checksTransfers && part < found.size(); ++part)
      if (tryBinding(quiet, [&](const Symbol &symbol) {
            return symbol.second == sequencesSymbol ? common[ties.getLeaderValue(symbol)] * getFactor(symbol)
                                                    : found[part].lookup(symbol.second).value_or(1);
          }))
        return true;
    for (int64_t multiple : {1, 2, 3, 4, 6, 8})
      if (tryBinding(quiet, [&](const Symbol &symbol) {
            return common[ties.getLeaderValue(symbol)] * multiple * getFactor(symbol);
          }))
        return true;
    return tryBinding(diags,
                      [&](const Symbol &symbol) { return before[symbol.first].lookup(symbol.second).value_or(1); });
  }

private:
  int64_t getFactor(const Symbol &symbol) const {
    auto it = factors.find(symbol);
    return it == factors.end() ? 1 : it->second;
  }

  void tie(const Symbol &from, const Symbol &to) {
    ties.unionSets(from, to);
    symbols.push_back(from);
    symbols.push_back(to);
  }

  void tie(const Workload &workload, const Transfer &transfer) {
    const Value *output = workload.getOutput(transfer), *input = workload.getInput(transfer);
    for (unsigned d = 0; d < output->type.getNumDims(); ++d) {
      Size left = output->type.shape[d].size, right = input->type.shape[d].size;
      if (left.getSymbol().empty() || right.getSymbol().empty())
        continue;
      tie(Symbol(transfer.from, left.getSymbol().str()), Symbol(transfer.to, right.getSymbol().str()));
    }
  }

  bool tryBinding(DiagnosticEngine &to, llvm::function_ref<int64_t(const Symbol &)> getValue) {
    for (unsigned part = 0; part < parts.size(); ++part) {
      Graph &graph = *parts[part];
      graph.binding = before[part];
      std::vector<std::string> settled = fixed;
      for (const Symbol &symbol : symbols)
        if (symbol.first == part) {
          graph.binding.bind(symbol.second, getValue(symbol));
          settled.push_back(symbol.second);
        }
      made[part] = ProofSizes();
      if (!bindTinySizes(graph, settled, to, &made[part]))
        return false;
      made[part].note(before[part], graph.binding);
    }
    return !checksTransfers || verifyTransferSizes(*checksTransfers, to);
  }

  std::vector<Graph *> parts;
  std::vector<std::string> fixed;
  const Workload *checksTransfers = nullptr;
  std::map<Symbol, int64_t> factors;
  DiagnosticEngine &diags;
  DiagnosticEngine quiet; ///< Of sizes that need not fit.
  std::vector<SizeBinding> before;
  std::vector<ProofSizes> made;
  llvm::EquivalenceClasses<Symbol> ties;
  std::vector<Symbol> symbols; ///< All that are tied.
};
} // namespace

bool stage::interp::bindTinySizes(Workload &workload, std::vector<ProofSizes> &made, DiagnosticEngine &diags) {
  std::vector<Graph *> parts;
  for (auto &part : workload.parts)
    parts.push_back(part.get());
  SizesOfParts sizes(parts, {}, diags);
  sizes.tie(workload);
  if (!sizes.run())
    return false;
  made = sizes.takeMade();
  return true;
}

bool stage::interp::bindTinySizes(Graph &prefill, Graph &decode, unsigned batches, llvm::ArrayRef<std::string> fixed,
                                  llvm::ArrayRef<std::string> own, std::vector<ProofSizes> &made,
                                  DiagnosticEngine &diags) {
  SizesOfParts sizes({&prefill, &decode}, fixed, diags);
  for (auto &[name, value] : prefill.binding.sorted())
    if (decode.binding.lookup(name) && !llvm::is_contained(own, name) && !llvm::is_contained(fixed, name) &&
        !prefill.mesh.find(name) && !decode.mesh.find(name))
      sizes.tie(name, name == sequencesSymbol ? batches : 1);
  if (!sizes.run())
    return false;
  made = sizes.takeMade();
  return true;
}
