//===- TinySizes.cpp - the smallest sizes that a program allows -----------===//
//
// Problem: a proof multiplies matrices element by element on every rank, so dims must
// be tiny, and yet keep all the program requires: 8 heads over tp = 2, D = H*E with E
// even for rotary positions, S split into twice cp mirrored blocks.
//
// Algorithm: every requirement is a predicate over a few symbols. Symbols are bound one
// after the other to 2, 3, ... with backtracking; a predicate is tried as soon as all
// its symbols have values. Sizes that another symbol has come later, so that two dims
// that a pass confuses are told apart. First with no dim smaller than 2, as a dim of
// size 1 hides what is done along it; then with.
//
// Limits: sizes up to 64, and a bounded search.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/Costs.h"
#include "stage/IR/Subscripts.h"
#include "stage/Interp/Diagnostics.h"
#include "stage/Interp/Prove.h"
#include "stage/Interp/Tensor.h"
#include "llvm/ADT/StringSet.h"
#include <set>

using namespace stage;

namespace {
class TinySizeFinder {
public:
  TinySizeFinder(Graph &graph, llvm::ArrayRef<std::string> fixed) : graph(graph), binding(graph.binding) {
    llvm::StringSet<> kept;
    for (const std::string &name : fixed)
      kept.insert(name);
    for (const Axis &axis : graph.mesh.getAxes()) {
      kept.insert(axis.name);
      binding.bind(axis.name, axis.size);
    }
    graph.walk([&](Op &op) {
      if (op.count)
        for (const std::string &symbol : collectSymbols(op.count))
          if (graph.binding.lookup(symbol))
            kept.insert(symbol);
    });
    for (auto &[name, value] : graph.binding.sorted())
      if (!kept.contains(name) && !getCoordinateAxis(graph.mesh, name))
        symbols.push_back(name);
    for (auto &dim : graph.dims)
      if (dim->size.getSymbol() == dim->name && !graph.binding.lookup(dim->name))
        symbols.push_back(dim->name);
    collect();
  }

  /// Binds the graph. Otherwise what could not be satisfied most often is in `obstacle`.
  bool run(std::string &obstacle) {
    for (int64_t smallest : {2, 1}) {
      least = smallest;
      budget = 200000;
      failures.assign(requirements.size(), 0);
      // Requirements without a free symbol hold or do not.
      if (check(0) && assign(0)) {
        graph.binding = binding;
        return true;
      }
    }
    size_t worst = std::max_element(failures.begin(), failures.end()) - failures.begin();
    obstacle = requirements.empty() ? "nothing" : requirements[worst].text;
    return false;
  }

private:
  struct Requirement {
    std::string text;
    std::function<bool()> holds;
    unsigned after = 0; ///< Number of symbols that must be bound before it can be tried.
    bool isWish = false; ///< Not of the program: dims of at least `least`.
  };

  std::optional<Rational> evaluate(Size size) const {
    SizeValue value = stage::evaluate(size, binding);
    return value ? std::optional<Rational>(value.value) : std::nullopt;
  }

  void require(llvm::ArrayRef<Size> sizes, const llvm::Twine &text, std::function<bool()> holds, bool isWish = false) {
    unsigned after = 0;
    std::string key = text.str();
    for (Size size : sizes) {
      key += "|" + size.str();
      for (const std::string &name : collectSymbols(size)) {
        auto it = llvm::find(symbols, name);
        if (it != symbols.end())
          after = std::max<unsigned>(after, it - symbols.begin() + 1);
      }
    }
    if (known.insert(key).second)
      requirements.push_back({text.str(), std::move(holds), after, isWish});
  }

  void collect() {
    for (const Obligations::Obligation &owed : graph.obligations.all())
      collectObligation(owed);
    for (auto &dim : graph.dims)
      require({dim->size}, "dim " + dim->name + " is a whole number", [this, size = dim->size] {
        auto value = evaluate(size);
        return value && value->isInteger() && value->num >= least;
      }, /*isWish=*/true);
    graph.walk([&](Op &op) {
      for (unsigned i = 0; i < op.extents.size(); ++i)
        requireSplit(op.extents[i], i < op.indexAxes.size() ? llvm::ArrayRef<AxisId>(op.indexAxes[i]) : llvm::None);
      for (auto &result : op.getResults())
        for (unsigned d = 0; d < result->type.getNumDims(); ++d)
          requireSplit(result->type.shape[d], d < result->sharding.dims.size()
                                                  ? llvm::ArrayRef<AxisId>(result->sharding.dims[d])
                                                  : llvm::None);
      if (op.def)
        forEachSubscriptSize(op, graph.sizes, [&](Size size) {
          require({size}, size.str() + " is a whole number", [this, size] {
            auto value = evaluate(size);
            return value && value->isInteger();
          });
        });
    });
  }

  void collectObligation(const Obligations::Obligation &owed) {
    Size left = owed.left, right = owed.right;
    auto both = [this, left, right](llvm::function_ref<bool(Rational, Rational)> f) {
      auto a = evaluate(left), b = evaluate(right);
      return a && b && f(*a, *b);
    };
    switch (owed.kind) {
    case Obligations::Kind::Divides:
      return require({left, right}, left.str() + " is divisible by " + right.str(), [both] {
        return both([](Rational a, Rational b) {
          return a.isInteger() && b.isInteger() && b.num != 0 && a.num % b.num == 0;
        });
      });
    case Obligations::Kind::Equal:
      return require({left, right}, left.str() + " equals " + right.str(),
                     [both] { return both([](Rational a, Rational b) { return a == b; }); });
    case Obligations::Kind::AtMost:
      return require({left, right}, left.str() + " is at most " + right.str(),
                     [both] { return both([](Rational a, Rational b) { return a.compare(b) <= 0; }); });
    case Obligations::Kind::Positive:
      return require({left}, left.str() + " is positive", [this, left] {
        auto value = evaluate(left);
        return value && value->num > 0;
      });
    }
  }

  void requireSplit(const Extent &extent, llvm::ArrayRef<AxisId> axes) {
    int64_t parts = 1;
    std::string over;
    for (AxisId axis : axes) {
      parts *= graph.mesh[axis].size * (isMirrored(graph, extent, axis) ? 2 : 1);
      over += (over.empty() ? "" : ", ") + graph.mesh[axis].name;
    }
    require({extent.size}, extent.size.str() + " comes out even over (" + over + ")", [this, extent, parts] {
      auto value = evaluate(extent.size);
      return value && value->isInteger() && value->num > 0 && value->num % parts == 0;
    });
  }

  /// Whether everything that can be tried once `bound` symbols are bound holds.
  bool check(unsigned bound) {
    for (size_t i = 0; i < requirements.size(); ++i)
      if (requirements[i].after == bound && !requirements[i].holds() && !(requirements[i].isWish && bound == 0)) {
        ++failures[i];
        return false;
      }
    return true;
  }

  bool assign(unsigned number) {
    if (number == symbols.size())
      return true;
    constexpr int64_t largest = 64;
    // Small first; sizes that are taken, later.
    std::vector<std::pair<int64_t, int64_t>> candidates;
    for (int64_t value = 1; value <= largest; ++value) {
      bool isTaken = false;
      for (unsigned i = 0; i < number; ++i)
        isTaken |= binding.lookup(symbols[i]) == value;
      candidates.emplace_back(2 * value + (isTaken ? 17 : 0), value);
    }
    llvm::sort(candidates);
    for (auto [rating, value] : candidates) {
      if (budget-- <= 0)
        return false;
      binding.bind(symbols[number], value);
      if (check(number + 1) && assign(number + 1))
        return true;
    }
    return false;
  }

  Graph &graph;
  SizeBinding binding;
  std::vector<std::string> symbols;
  std::vector<Requirement> requirements;
  std::set<std::string> known;
  std::vector<uint64_t> failures;
  int64_t least = 2, budget = 0;
};
} // namespace

bool stage::hasFewRanks(const Graph &graph, DiagnosticEngine &diags) {
  if (graph.mesh.getNumRanks() <= maxProofRanks)
    return true;
  diags.report(graph.loc, diag::ProofTooLarge) << maxProofRanks << graph.mesh.getNumRanks();
  return false;
}

bool stage::bindTinySizes(Graph &graph, llvm::ArrayRef<std::string> fixed, DiagnosticEngine &diags) {
  if (!hasFewRanks(graph, diags))
    return false;
  std::string obstacle;
  if (TinySizeFinder(graph, fixed).run(obstacle))
    return true;
  diags.report(graph.loc, diag::ProofNoTinySizes) << int64_t(64) << obstacle;
  return false;
}
