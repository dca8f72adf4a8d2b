//===- PackedSequences.cpp - units of several sequences -------------------===//
//
// Problem: an iteration of a server computes some positions of each of several sequences, of
// which some decode and others are in the middle of their prompts. All have caches of their
// own, and lengths of their own. So have sequences of a list (`S = [100, 2000]`).
//
//   i2 p1+276@24 1d+1@1000        S = 277, context = 24 + 276 + 1000 + 1, sampled = 2
//                                 twice the pairs under a causal mask: 276^2 + 2*276*24 + 2*(1000 + 1)
//
// Algorithm: B is 1, and the positions of all sequences are one row, S long, or `step` where
// all of them decode; the dims are *packed* (stage/IR/Packing.h). To products and norms this is
// a sequence. Masks count the pairs of each sequence: what that is of one is an expression
// over its S and context, and the sum over those of a unit is a symbol that the unit binds.
// So is what caches that keep a window have.
//
//   before   mask causal(s, t)    area = S*(context - S) + S^2/2, of one sequence
//   after    sum pairs.0 = 2*S*context - S^2 or 2*context;     area = pairs.0/2, and units bind pairs.0
//
// On a machine the price of attention also depends on which of these pairs are of prompts: a second sum has them, or,
// if the runtime's kernel computes rows in tiles, all pairs as its tiles have them.
//
// What scans a sequence from its state, or looks back a few positions, does so much for each position (Packing.h); of
// states as many are read and written as there are sequences, which units bind.
//
// Limits: what else looks at other positions without a mask is refused.
//
//===----------------------------------------------------------------------===//
#include "ModuleLowering.h"
#include "stage/IR/graph/PackedUnits.h"
#include "stage/IR/graph/Packing.h"
#include "stage/IRGen/Diagnostics.h"
#include "stage/IRGen/IRGen.h"
#include "stage/Schedule/InferenceSymbols.h"
#include "stage/Sema/InferenceWords.h"
#include "llvm/Support/ErrorHandling.h"

using namespace stage;

static int64_t countOrFail(Size size, const SizeBinding &binding) {
  SizeValue value = evaluateCount(size, binding);
  if (!value)
    llvm::report_fatal_error(llvm::Twine("a sum over sequences has no value: ") + size.str());
  return int64_t(value.value.num);
}

/// What is decided by sizes is decided by those of the first unit of each kind. Parameters stand in forward, also where
/// no unit runs it.
static void bindDefaults(Graph &graph, const ServedUnits &served) {
  std::vector<UnitBindings> firsts;
  int64_t context = graph.binding.lookup(sema::sequenceDim).value_or(1);
  for (bool decodes : {false, true})
    if (auto unit = llvm::find_if(served.units, [&](auto &unit) { return unit.decodes == decodes; });
        unit != served.units.end()) {
      firsts.push_back(bindPackedUnit(graph, *unit));
      context = std::max(context, unit->countContext());
    }
  graph.binding.bind(sema::sampledDim, 1);
  graph.binding.bind(sema::contextDim, context);
  for (const SequenceSum &sum : graph.sums)
    graph.binding.bind(sum.symbol, countOrFail(sum.ofSeveral, graph.binding));
  for (const UnitBindings &bindings : firsts)
    for (auto &[symbol, value] : bindings)
      if (symbol != sema::contextDim && (symbol != sema::sampledDim || value))
        graph.binding.bind(symbol, value);
}

/// `tile`: rows of the kernel that computes attention; 0: none is said. Nothing: nobody prices it.
bool stage::packSequences(Graph &graph, const sema::BoundInference &inference, std::optional<int64_t> tile,
                          DiagnosticEngine &diags) {
  auto add = [&](SequenceSum sum) {
    if (findSum(graph, sum))
      return;
    sum.symbol = "pairs." + std::to_string(graph.sums.size());
    graph.sums.push_back(std::move(sum));
  };
  bool isGood = true;
  graph.walk([&](Op &op) {
    if (mixesSequences(op)) {
      diags.report(op.loc, diag::NotSupportedYet)
          << "'" + op.def->name + "' in units of several sequences: " +
                 (cutsSequences(op) ? "it cuts positions into parts, of which one may have positions of two sequences"
                                    : "without a mask it does not say which positions belong together");
      isGood = false;
    }
    SequenceSum sum = getTwiceMaskArea(graph, op);
    if (!sum.ofSeveral)
      return;
    add(sum);
    // Of decode steps a kernel takes the heads that share a key for its rows.
    if (const Dim &rows = *op.extents[op.def->mask->rows].dim; tile && rows.name != stepSymbol)
      add(ofPrompts(graph, sum, rows, *tile));
  });
  if (isGood)
    bindDefaults(graph, *inference.served);
  return isGood;
}

std::vector<Unit> stage::listPackedUnits(const ServedUnits &served, const Graph &graph, const UnitBindings &ofSteps,
                                         Environments &environments) {
  std::vector<Unit> units;
  unsigned number = 0;
  for (const PackedUnit &packed : served.units) {
    Unit unit;
    unit.kind = packed.decodes ? PhaseKind::Decode : PhaseKind::Forward;
    unit.microbatch = number++;
    UnitBindings bindings = bindPackedUnit(graph, packed);
    if (packed.decodes)
      llvm::append_range(bindings, ofSteps);
    unit.environment = environments.add(std::move(bindings));
    for (auto [kind, parts] : {std::pair(PhaseKind::Store, &packed.stored), {PhaseKind::Load, &packed.loaded}})
      if (!parts->empty()) {
        units.push_back(unit);
        units.back().kind = kind;
      }
    units.push_back(unit);
  }
  return units;
}

std::vector<Unit> stage::listWholeUnits(const ServedUnits &served, Environments &environments) {
  std::vector<Unit> units;
  for (const PackedUnit &packed : served.units)
    for (const SequencePart &part : packed.sequences) {
      Unit unit;
      unit.microbatch = units.size();
      unit.environment =
          environments.add({{batchSymbol.str(), part.sequence}, {sema::sequenceDim.str(), part.cached + part.taken}});
      units.push_back(unit);
    }
  return units;
}
