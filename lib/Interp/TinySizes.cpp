//===- TinySizes.cpp - the smallest sizes that a program allows -----------===//
//
// Problem: a proof multiplies matrices element by element on every rank, so dims must
// be tiny, and yet keep all the program requires: 8 heads over tp = 2, D = H*E with E
// even for rotary positions, S split into twice cp mirrored blocks, `require S % Q == 0`.
//
// Algorithm: every requirement is a predicate over a few symbols. Symbols that no
// requirement ties together are looked at apart. Those of one group are bound one after
// the other, each next to those that it shares most with, to 2, 3, ... with backtracking;
// a predicate is tried as soon as all its symbols have values. Sizes beyond 64 are tried
// where a requirement names them (`x[128..S]`). Sizes that another symbol has come later,
// so that two dims that a pass confuses are told apart. Tables are made small first: their entries become 0, 1, 2, 3 in the
// order of their sizes, or the same multiple of these, as far as all units get what is required; else they stay. First with no dim smaller than 2,
// as a dim of size 1 hides what is done along it; then with. Where the search ends without
// an answer, each size of the job is made as small as the others allow, until none gets
// smaller: the job's own sizes satisfy what it requires.
//
// Limits: the search is bounded; what it gives is small, not always smallest.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/Costs.h"
#include "stage/IR/RoutedApart.h"
#include "stage/IR/Subscripts.h"
#include "stage/Interp/Diagnostics.h"
#include "stage/Interp/Prove.h"
#include "stage/Interp/Tensor.h"
#include "stage/Schedule/InferenceSymbols.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <map>
#include <set>

using namespace stage;

bool stage::isMet(const Obligations::Obligation &owed, const SizeBinding &binding) {
  SizeValue left = evaluate(owed.left, binding), right = owed.right ? evaluate(owed.right, binding) : SizeValue();
  if (!left || !right)
    return false;
  switch (owed.kind) {
  case Obligations::Kind::Divides:
    return left.value.isInteger() && right.value.isInteger() && right.value.num != 0 &&
           left.value.num % right.value.num == 0;
  case Obligations::Kind::Equal:
    return left.value == right.value;
  case Obligations::Kind::AtMost:
    return left.value.compare(right.value) <= 0;
  case Obligations::Kind::Positive:
    return left.value.num > 0;
  }
  llvm_unreachable("covered switch");
}

namespace {
constexpr int64_t largest = 64;

/// Something that must hold of the sizes that are found.
struct Requirement {
  enum class Kind {
    Owed,  ///< an obligation of the program
    Split, ///< `size` is a multiple of `parts`, and at least what is asked of dims just now
    Whole, ///< `size` is an integer
  };
  Kind kind;
  Size size;
  Obligations::Obligation owed{};
  int64_t parts = 1;
  std::string over;                   ///< The axes of a split, for the message.
  std::vector<unsigned> symbols = {}; ///< Numbers of those to be found.
  uint64_t failures = 0;

  bool holds(const SizeBinding &binding, int64_t least) const {
    if (kind == Kind::Owed)
      return isMet(owed, binding);
    SizeValue value = evaluate(size, binding);
    if (!value || !value.value.isInteger())
      return false;
    return kind == Kind::Whole || (value.value.num >= least && value.value.num % parts == 0);
  }

  std::string describe() const {
    std::string text = size.str();
    if (kind == Kind::Split && parts > 1)
      return text + " comes out even over (" + over + ")";
    if (kind != Kind::Owed)
      return text + " is a whole number";
    if (llvm::StringRef(owed.reason).startswith("require "))
      return owed.reason;
    switch (owed.kind) {
    case Obligations::Kind::Divides:
      return text + " is divisible by " + owed.right.str();
    case Obligations::Kind::Equal:
      return text + " equals " + owed.right.str();
    case Obligations::Kind::AtMost:
      return text + " is at most " + owed.right.str();
    case Obligations::Kind::Positive:
      return text + " is positive";
    }
    llvm_unreachable("covered switch");
  }
};

class TinySizeFinder {
public:
  TinySizeFinder(Graph &graph, llvm::ArrayRef<std::string> fixed, bool toAllTargets)
      : graph(graph), toAllTargets(toAllTargets), binding(graph.binding) {
    llvm::StringSet<> kept;
    for (const std::string &name : fixed)
      kept.insert(name);
    for (unsigned number = 0; number < graph.pipeline.environments.size(); ++number)
      for (auto &[symbol, value] : graph.pipeline.environments[number])
        kept.insert(symbol);
    for (const Axis &axis : graph.mesh.getAxes()) {
      kept.insert(axis.name);
      binding.bind(axis.name, axis.size);
    }
    auto keep = [&](Size size) {
      for (const std::string &symbol : collectSymbols(size))
        if (graph.binding.lookup(symbol))
          kept.insert(symbol);
    };
    graph.walk([&](Op &op) {
      if (op.entries) {
        keep(op.entries);
        keep(op.entry);
      }
      if (!op.count)
        return;
      keep(op.count);
      for (const SizeLookup &lookup : collectLookups(op.count))
        keptTables.insert(lookup.table);
    });
    for (const SlotLoad &load : graph.mesh.getSlotLoads())
      keptTables.insert(load.table);
    collect();
    // What is looked up is an entry, and not one of the first few.
    for (const Requirement &requirement : requirements)
      for (Size size : {requirement.size, requirement.owed.right})
        if (size)
          for (const SizeLookup &lookup : collectLookups(size))
            llvm::for_each(lookup.indices, keep);
    for (auto &[name, value] : graph.binding.sorted())
      if (!kept.contains(name) && !getCoordinateAxis(graph.mesh, name))
        addSymbol(name);
    for (auto &dim : graph.dims)
      if (dim->size.getSymbol() == dim->name && !graph.binding.lookup(dim->name))
        addSymbol(dim->name);
    llvm::for_each(requirements, [&](Requirement &requirement) { findSymbols(requirement); });
  }

  /// Binds the graph. Otherwise what could not be satisfied most often is in `obstacle`.
  bool run(std::string &obstacle) {
    SizeBinding given = binding;
    for (int64_t times : {1, 2, 3, 4, 6, 8, 12}) {
      if (!shrinkTables(times))
        break;
      if (findSizes(obstacle))
        return true;
      binding = given;
      taken.clear();
      for (Requirement &requirement : requirements)
        requirement.failures = 0;
    }
    return findSizes(obstacle);
  }

private:
  /// False if there are none.
  bool shrinkTables(int64_t times) {
    bool any = false;
    for (auto &[name, table] : binding.sortedTables()) {
      if (keptTables.contains(name))
        continue;
      std::set<int64_t> distinct(table->entries.begin(), table->entries.end());
      std::map<int64_t, int64_t> small = {{0, 0}};
      int64_t number = 0;
      for (int64_t entry : distinct)
        if (entry)
          small[entry] = times * (number++ % 3 + 1);
      SizeTable shrunk = *table;
      for (int64_t &entry : shrunk.entries)
        entry = small[entry];
      binding.bindTable(name, std::move(shrunk));
      any = true;
    }
    return any;
  }

  bool findSizes(std::string &obstacle) {
    llvm::EquivalenceClasses<unsigned> tied;
    for (unsigned i = 0; i < symbols.size(); ++i)
      tied.insert(i);
    bool isGood = true;
    for (Requirement &requirement : requirements) {
      for (unsigned symbol : requirement.symbols)
        tied.unionSets(requirement.symbols.front(), symbol);
      // What has no symbol holds or does not; a dim of a fixed size 1 is none of our doing.
      if (requirement.symbols.empty() && !requirement.holds(binding, 0)) {
        ++requirement.failures;
        isGood = false;
      }
    }
    std::vector<std::vector<unsigned>> members(symbols.size()), tests(symbols.size());
    for (unsigned i = 0; i < symbols.size(); ++i)
      members[tied.getLeaderValue(i)].push_back(i);
    for (unsigned i = 0; i < requirements.size(); ++i)
      if (!requirements[i].symbols.empty())
        tests[tied.getLeaderValue(requirements[i].symbols.front())].push_back(i);
    for (unsigned leader = 0; isGood && leader < symbols.size(); ++leader)
      isGood = members[leader].empty() || solve(members[leader], tests[leader]);
    if (isGood) {
      graph.binding = binding;
      return true;
    }
    auto worst = std::max_element(requirements.begin(), requirements.end(),
                                  [](auto &a, auto &b) { return a.failures < b.failures; });
    obstacle = worst == requirements.end() ? "nothing" : worst->describe();
    return false;
  }

  void addSymbol(const std::string &name) {
    if (numbers.try_emplace(name, symbols.size()).second)
      symbols.push_back(name);
  }

  void require(Requirement requirement) {
    if (!isNew(requirement))
      return;
    requirements.push_back(requirement);
    // What a size is may differ by unit.
    for (unsigned number = 1; number < graph.pipeline.environments.size(); ++number) {
      auto bind = [&](Size size) {
        return size ? substitute(size, [&](llvm::StringRef symbol) {
          for (auto &[name, value] : graph.pipeline.environments[number])
            if (name == symbol)
              return graph.sizes.constant(value);
          return Size();
        })
                    : size;
      };
      Requirement there = requirement;
      there.size = bind(requirement.size);
      there.owed.left = bind(requirement.owed.left);
      there.owed.right = bind(requirement.owed.right);
      if (isNew(there))
        requirements.push_back(std::move(there));
    }
  }

  bool isNew(const Requirement &requirement) {
    return known
        .emplace(requirement.kind,
                 requirement.kind == Requirement::Kind::Owed ? int64_t(requirement.owed.kind) : requirement.parts,
                 requirement.size.getNode(), requirement.owed.right.getNode())
        .second;
  }

  void findSymbols(Requirement &requirement) const {
    std::set<unsigned> used;
    for (Size size : {requirement.size, requirement.owed.right})
      if (size)
        for (const std::string &name : collectSymbols(size))
          if (auto it = numbers.find(name); it != numbers.end())
            used.insert(it->second);
    requirement.symbols.assign(used.begin(), used.end());
  }

  /// Forward has the caches also where no unit goes over it.
  bool isRun(PhaseKind kind) const {
    return graph.pipeline.units.empty() || llvm::any_of(graph.pipeline.units.front(), [&](const Unit &unit) { return unit.kind == kind; });
  }

  void collect() {
    for (const Obligations::Obligation &owed : graph.obligations.all())
      require({Requirement::Kind::Owed, owed.left, owed});
    for (auto &dim : graph.dims)
      require({Requirement::Kind::Split, dim->size});
    graph.walk([&](Op &op) {
      for (unsigned i = 0; i < op.extents.size(); ++i)
        requireSplit(op.extents[i], i < op.indexAxes.size() ? llvm::ArrayRef<PlacedAxis>(op.indexAxes[i]) : llvm::None);
      for (auto &result : op.getResults())
        for (unsigned d = 0; d < result->type.getNumDims(); ++d)
          requireSplit(result->type.shape[d], d < result->sharding.dims.size()
                                                  ? llvm::ArrayRef<PlacedAxis>(result->sharding.dims[d])
                                                  : llvm::None);
      if (op.kind == OpKind::Append && isRun(op.getBlock()->getPhase())) { // fits in behind what is there
        requireAtMost(op.getOperand(1)->type.shape[op.dim].size, op.getResult()->type.shape[op.dim].size);
        Size all = op.getResult()->type.shape[op.dim].size;
        // A window that cuts sequences of the job cuts those of the proof.
        Size kept = op.getOperand(0)->type.shape[op.dim].size, room = graph.sizes.symbol(roomSymbol);
        if (SizeValue twice = evaluate(kept * 2, graph.binding), held = evaluate(room, graph.binding);
            op.isRolling && twice && held && twice.value.compare(held.value) <= 0)
          requireAtMost(kept * 2, room);
        // Each rank that shares the positions has one that the first row of a step sees.
        const Extent &added = op.getOperand(1)->type.shape[op.dim];
        if (isDecoding(op.getBlock()->getPhase()) && op.dim < op.getResult()->sharding.dims.size())
          for (const PlacedAxis &axis : op.getResult()->sharding.dims[op.dim])
            requireAtMost(graph.sizes.constant(graph.mesh[axis].size), added.dim->origin + 1);
        requireAtMost(op.isRolling ? all - op.getOperand(1)->type.shape[op.dim].size : all,
                      op.getOperand(0)->type.shape[op.dim].size);
      }
      if (op.def && op.def->routing)
        requireFewer(op);
      if (toAllTargets && op.def && op.def->routing && !goesByPlace(op))
        requireAllTargets(op);
      if (op.def)
        forEachSubscriptSize(op, graph.sizes, [&](Size size) { require({Requirement::Kind::Whole, size}); });
    });
  }

  /// Whether a proof sends tokens where their places say, the same in each unit (Sources.h).
  bool goesByPlace(const Op &op) const {
    return takesAll(graph, op.extents[op.def->routing->slot].dim) && getApart(*op.def).empty();
  }

  /// The indices of the choices of a token, which only the integers have.
  static llvm::SmallVector<unsigned, 2> listChoices(const Op &op) {
    llvm::SmallVector<unsigned, 2> choices;
    for (unsigned index : op.def->operands[op.def->routing->operand].indices) {
      bool isOwn = true;
      for (unsigned other = 0; other < op.def->operands.size(); ++other)
        isOwn &= other == op.def->routing->operand || !llvm::is_contained(op.def->operands[other].indices, index);
      if (isOwn)
        choices.push_back(index);
    }
    return choices;
  }

  /// As many choices of a token as there are targets.
  void requireAllTargets(const Op &op) {
    const Routing &routing = *op.def->routing;
    for (unsigned index : routing.toSlots ? listChoices(op) : llvm::SmallVector<unsigned, 2>())
      require({Requirement::Kind::Owed, op.extents[index].size,
               {Obligations::Kind::Equal, op.extents[index].size, op.extents[routing.target].size, SMLoc(), ""}});
  }

  /// Where choices are dealt out evenly: fewer of a token than targets, if the job has fewer, and in training, where a proof deals out those of a
  /// rank, also of a rank.
  void requireFewer(const Op &op) {
    const SlotLoad *load = graph.mesh.findUnevenSlots(op.extents[op.def->routing->slot].dim);
    if (!load || !load->isEven() || !op.def->routing->toSlots)
      return;
    llvm::SmallVector<Size, 3> fewer;
    if (graph.training)
      fewer.push_back(load->getChoicesOfSource());
    for (unsigned index : listChoices(op))
      fewer.push_back(op.extents[index].size);
    for (Size size : fewer)
      if (SizeValue given = evaluateCount(load->target->size - size, graph.binding); given && given.value.num > 0)
        requireAtMost(size + 1, load->target->size);
  }

  void requireAtMost(Size left, Size right) {
    require({Requirement::Kind::Owed, left, {Obligations::Kind::AtMost, left, right, SMLoc(), ""}});
  }

  void requireSplit(const Extent &extent, llvm::ArrayRef<PlacedAxis> axes) {
    if (graph.mesh.findUnevenSlots(extent.dim))
      return; // as many as come
    Requirement requirement{Requirement::Kind::Split, extent.size};
    for (const PlacedAxis &axis : axes) {
      if (axis.isListed()) {
        requireBlocks(extent, axes, &axis - axes.begin());
        break;
      }
      requirement.parts *= graph.mesh[axis].size * (axis.isMirrored() ? 2 : 1);
      requirement.over += (requirement.over.empty() ? "" : ", ") + graph.mesh[axis].name;
    }
    require(std::move(requirement));
  }

  /// Of the axes of a dim, number `listed` deals it out by a table: all blocks together are what the axes before leave,
  /// and those behind divide each of them.
  void requireBlocks(const Extent &extent, llvm::ArrayRef<PlacedAxis> axes, size_t listed) {
    const BlockLengths &lengths = graph.mesh.getBlockLengths(axes[listed]);
    Obligations::Obligation total{Obligations::Kind::Equal, getLocalSize(graph.mesh, extent.size, axes.take_front(listed)),
                                  lengths.get(graph.sizes.sumOfEntries()), SMLoc(), ""};
    require({Requirement::Kind::Owed, total.left, total});
    for (int64_t part = 0; part < graph.mesh[axes[listed]].size; ++part)
      requireSplit({nullptr, lengths.get(graph.sizes.constant(part))}, axes.drop_front(listed + 1));
  }

  //===--- one group of symbols -------------------------------------------===//

  bool solve(llvm::ArrayRef<unsigned> group, llvm::ArrayRef<unsigned> tests) {
    arrange(group, tests);
    for (int64_t smallest : {2, 1}) {
      least = smallest;
      budget = 100000;
      if (assign(0))
        return true;
    }
    return descend(tests);
  }

  /// Puts the symbols of a group in an order in which requirements can be tried early.
  void arrange(llvm::ArrayRef<unsigned> group, llvm::ArrayRef<unsigned> tests) {
    order.clear();
    due.clear();
    std::vector<unsigned> missing(requirements.size());
    std::vector<std::vector<unsigned>> testsOf(symbols.size());
    for (unsigned test : tests) {
      missing[test] = requirements[test].symbols.size();
      for (unsigned symbol : requirements[test].symbols)
        testsOf[symbol].push_back(test);
    }
    // Symbols wait under (requirements they would complete, requirements they share with what is bound).
    std::vector<std::pair<int64_t, int64_t>> rating(symbols.size());
    std::set<std::tuple<int64_t, int64_t, unsigned>> waiting;
    for (unsigned symbol : group) {
      rating[symbol] = {0, -int64_t(testsOf[symbol].size())};
      waiting.emplace(rating[symbol].first, rating[symbol].second, symbol);
    }
    while (!waiting.empty()) {
      unsigned symbol = std::get<2>(*waiting.begin());
      waiting.erase(waiting.begin());
      order.push_back(symbol);
      std::vector<unsigned> &now = due.emplace_back();
      for (unsigned test : testsOf[symbol]) {
        if (--missing[test] == 0)
          now.push_back(test);
        if (missing[test] != 1)
          continue;
        for (unsigned other : requirements[test].symbols)
          if (waiting.erase({rating[other].first, rating[other].second, other})) {
            --rating[other].first;
            waiting.emplace(rating[other].first, rating[other].second, other);
          }
      }
    }
  }

  /// Values to try for a symbol, the best first.
  std::vector<int64_t> listCandidates(unsigned position) {
    const std::string &name = symbols[order[position]];
    std::set<std::pair<int64_t, int64_t>> rated;
    auto add = [&](int64_t value) { rated.emplace(2 * value + (taken.count(value) ? 22 : 0), value); };
    for (int64_t value = 1; value <= largest; ++value)
      add(value);
    // What a requirement compares the symbol with, where that is larger: the T of `S >= T`, the 130 of `S - 130 > 0`.
    SizeBinding without = binding;
    without.bind(name, 0);
    for (unsigned test : due[position])
      for (Size size : {requirements[test].size, requirements[test].owed.right}) {
        SizeValue other = size ? evaluate(size, without) : SizeValue{SizeError::Negative, "", {}};
        constexpr int64_t most = int64_t(1) << 40;
        if (!other || !other.value.isInteger() || other.value.num > most || other.value.num < -most)
          continue;
        int64_t compared = std::abs(int64_t(other.value.num));
        for (int64_t times : {1, 2, 3, 4})
          for (int64_t more : {0, 1, 2})
            if (compared * times + more > largest)
              add(compared * times + more);
      }
    if (auto given = graph.binding.lookup(name))
      for (int64_t value = *given; value > largest; value = value % 2 ? 0 : value / 2)
        add(value);
    std::vector<int64_t> values;
    for (auto [rating, value] : rated)
      values.push_back(value);
    return values;
  }

  bool assign(unsigned position) {
    if (position == order.size())
      return true;
    for (int64_t value : listCandidates(position)) {
      if (budget-- <= 0)
        return false;
      binding.bind(symbols[order[position]], value);
      if (!check(due[position]))
        continue;
      auto place = taken.insert(value);
      if (assign(position + 1))
        return true;
      taken.erase(place);
    }
    return false;
  }

  bool check(llvm::ArrayRef<unsigned> tests) {
    for (unsigned test : tests)
      if (!requirements[test].holds(binding, least)) {
        ++requirements[test].failures;
        return false;
      }
    return true;
  }

  /// From the sizes of the job downwards.
  bool descend(llvm::ArrayRef<unsigned> tests) {
    least = 1;
    for (unsigned symbol : order) {
      auto given = graph.binding.lookup(symbols[symbol]);
      if (!given)
        return false;
      binding.bind(symbols[symbol], *given);
    }
    if (!check(tests))
      return false;
    for (bool isSmaller = true; isSmaller;) {
      isSmaller = false;
      for (unsigned position = 0; position < order.size(); ++position) {
        const std::string &name = symbols[order[position]];
        int64_t now = *binding.lookup(name);
        for (int64_t value : listCandidates(position)) {
          if (value >= now)
            continue;
          binding.bind(name, value);
          if (check(tests)) {
            isSmaller = true;
            break;
          }
          binding.bind(name, now);
        }
      }
    }
    return true;
  }

  Graph &graph;
  bool toAllTargets;
  SizeBinding binding;
  std::vector<std::string> symbols;
  llvm::StringMap<unsigned> numbers;
  llvm::StringSet<> keptTables; ///< Counts of repeats are looked up there.
  std::vector<Requirement> requirements;
  std::set<std::tuple<Requirement::Kind, int64_t, const SizeNode *, const SizeNode *>> known;
  std::multiset<int64_t> taken;

  // Of the group that is being solved.
  std::vector<unsigned> order;
  std::vector<std::vector<unsigned>> due; ///< Requirements that can be tried once the symbol of this position is bound.
  int64_t least = 2, budget = 0;
};
} // namespace

bool stage::hasFewRanks(const Graph &graph, DiagnosticEngine &diags) {
  if (graph.mesh.getNumRanks() <= maxProofRanks)
    return true;
  diags.report(graph.loc, diag::ProofTooLarge) << maxProofRanks << graph.mesh.getNumRanks();
  return false;
}

/// Of fewer experts each is as busy as those together in whose place it is.
static void shrinkLoads(Graph &graph) {
  std::map<std::string, SizeTable> shrunk;
  for (const SlotLoad &load : graph.mesh.getSlotLoads()) {
    if (load.isEven())
      continue;
    std::shared_ptr<const SizeTable> table = graph.binding.lookupTable(load.table);
    SizeValue size = evaluateCount(load.target->size, graph.binding);
    if (!size || !size.value.num || size.value.num == int64_t(table->entries.size()))
      continue;
    SizeTable &small = shrunk[load.table] = SizeTable{{int64_t(size.value.num)}, std::vector<int64_t>(size.value.num)};
    for (size_t i = 0; i < table->entries.size(); ++i) {
      int64_t &entry = small.entries[i * small.entries.size() / table->entries.size()];
      if (__builtin_add_overflow(entry, table->entries[i], &entry))
        entry = std::numeric_limits<int64_t>::max();
    }
  }
  for (auto &[name, table] : shrunk)
    graph.binding.bindTable(name, std::move(table));
}

bool stage::bindTinySizes(Graph &graph, llvm::ArrayRef<std::string> fixed, DiagnosticEngine &diags) {
  if (!hasFewRanks(graph, diags))
    return false;
  std::string obstacle;
  // Units of inference deal out choices each by itself: where all experts get all tokens, each has as many as in a pass over all positions.
  if ((!graph.training && TinySizeFinder(graph, fixed, /*toAllTargets=*/true).run(obstacle)) ||
      TinySizeFinder(graph, fixed, /*toAllTargets=*/false).run(obstacle))
    return shrinkLoads(graph), true;
  diags.report(graph.loc, diag::ProofNoTinySizes) << obstacle;
  return false;
}
