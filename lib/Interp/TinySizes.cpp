//===- TinySizes.cpp - the smallest sizes that a program allows -----------===//
//
// Problem: a proof multiplies matrices element by element on every rank, so dims must
// be tiny, and yet keep all the program requires: 8 heads over tp = 2, D = H*E with E
// even for rotary positions, S split into twice cp mirrored blocks, `require S % Q == 0`.
// And they should keep what the job's sizes have in common: fewer experts for a token than there are.
//
// Algorithm: every requirement is a predicate over a few symbols, and so is every relation that holds of the job
// (Relations.h); values for them are searched (SizeSearch.h). Tables are made small first: their entries become 0, 1,
// 2, 3 in the order of their sizes, or the same multiple of these, as far as all units get what is required; else they
// stay. Where a proof would take more than a second, sizes may be alike; where it would take more than some ten
// seconds, what is said of the pieces of ranks is given up, and then, one size after the other, the largest first, what
// makes that large.
//
// Limits: the search is bounded; what it gives is small, not always smallest.
//
//===----------------------------------------------------------------------===//
#include "ProofSize.h"
#include "Relations.h"
#include "SizeSearch.h"
#include "stage/IR/algebra/RoutedApart.h"
#include "stage/IR/graph/Costs.h"
#include "stage/IR/graph/Subscripts.h"
#include "stage/Interp/Diagnostics.h"
#include "stage/Interp/Prove.h"
#include "stage/Interp/Tensor.h"
#include "stage/Schedule/InferenceSymbols.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include <map>
#include <set>

using namespace stage;
using namespace stage::interp;

/// Products on one device that a proof computes in about a second, and in about ten.
constexpr double fewProducts = 4e6, manyProducts = 4e7;

bool stage::interp::isMet(const Obligations::Obligation &owed, const SizeBinding &binding) {
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
        symbols.insert(name);
    for (auto &dim : graph.dims)
      if (dim->size.getSymbol() == dim->name && !graph.binding.lookup(dim->name))
        symbols.insert(dim->name);
  }

  /// The binding of the graph with small values. Otherwise what could not be satisfied most often is in `obstacle`.
  /// Values that differ are worth so much.
  std::optional<SizeBinding> run(llvm::ArrayRef<Relation> relations, int64_t apart, std::string &obstacle) {
    std::vector<Requirement> all = requirements;
    for (const Relation &relation : relations) {
      all.push_back({Requirement::Kind::Kept});
      all.back().relation = &relation;
    }
    SizeBinding given = binding;
    auto search = [&] { return SizeSearch(graph.binding, binding, symbols.getArrayRef(), all, apart).run(obstacle); };
    for (int64_t times : {1, 2, 3, 4, 6, 8, 12}) {
      if (!shrinkTables(times))
        break;
      if (std::optional<SizeBinding> found = search())
        return found;
      binding = given;
    }
    return search();
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

  void require(Requirement requirement) {
    if (!isNew(requirement))
      return;
    requirements.push_back(requirement);
    // What a size is may differ by unit.
    for (unsigned number = 1; number < graph.pipeline.environments.size(); ++number) {
      auto bind = [&](Size size) {
        return size ? substitute(size,
                                 [&](llvm::StringRef symbol) {
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

  /// Forward has the caches also where no unit goes over it.
  bool isRun(PhaseKind kind) const {
    return graph.pipeline.units.empty() ||
           llvm::any_of(graph.pipeline.units.front(), [&](const Unit &unit) { return unit.kind == kind; });
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
      require({Requirement::Kind::Owed,
               op.extents[index].size,
               {Obligations::Kind::Equal, op.extents[index].size, op.extents[routing.target].size, SMLoc(), ""}});
  }

  /// Where choices are dealt out evenly: fewer of a token than targets, if the job has fewer, and in training, where a
  /// proof deals out those of a rank, also of a rank.
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
    Obligations::Obligation total{Obligations::Kind::Equal,
                                  getLocalSize(graph.mesh, extent.size, axes.take_front(listed)),
                                  lengths.get(graph.sizes.sumOfEntries()), SMLoc(), ""};
    require({Requirement::Kind::Owed, total.left, total});
    for (int64_t part = 0; part < graph.mesh[axes[listed]].size; ++part)
      requireSplit({nullptr, lengths.get(graph.sizes.constant(part))}, axes.drop_front(listed + 1));
  }

  Graph &graph;
  bool toAllTargets;
  SizeBinding binding;
  llvm::SetVector<std::string, std::vector<std::string>, std::set<std::string>> symbols; ///< That are searched for.
  llvm::StringSet<> keptTables; ///< Counts of repeats are looked up there.
  std::vector<Requirement> requirements;
  std::set<std::tuple<Requirement::Kind, int64_t, const SizeNode *, const SizeNode *>> known;
};
} // namespace

bool stage::interp::hasFewRanks(const Graph &graph, DiagnosticEngine &diags) {
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

/// The axes of a mesh are symbols of relations.
static SizeBinding bindAxes(SizeBinding binding, const Graph &graph) {
  for (const Axis &axis : graph.mesh.getAxes())
    if (!binding.lookup(axis.name))
      binding.bind(axis.name, axis.size);
  return binding;
}

/// Erases relations that make sizes too large: those of pieces, or else those that forbid that the largest size is a
/// small one.
static void giveUp(std::vector<Relation> &kept, const SizeBinding &now, const SizeBinding &before) {
  size_t all = kept.size();
  llvm::erase_if(kept, [](const Relation &relation) { return relation.isOfPieces; });
  std::vector<std::pair<int64_t, std::string>> sizes;
  for (auto &[name, value] : now.sorted())
    if (before.lookup(name) != value)
      sizes.emplace_back(-value, name);
  llvm::sort(sizes);
  for (auto &[value, name] : sizes) {
    if (kept.size() != all)
      return;
    SizeBinding smaller = now;
    smaller.bind(name, 2);
    llvm::erase_if(kept, [&](const Relation &relation) { return relation.holds(now) && !relation.holds(smaller); });
  }
  if (kept.size() == all)
    kept.clear();
}

bool stage::interp::bindTinySizes(Graph &graph, llvm::ArrayRef<std::string> fixed, DiagnosticEngine &diags,
                                  ProofSizes *proofSizes) {
  if (!hasFewRanks(graph, diags))
    return false;
  const SizeBinding before = graph.binding;
  SizeBinding job = bindAxes(proofSizes && proofSizes->job ? *proofSizes->job : graph.binding, graph);
  const std::vector<Relation> relations = findRelations(graph, job);
  std::vector<Relation> kept = relations;
  std::string obstacle;
  auto find = [&](int64_t apart, bool toAllTargets) {
    graph.binding = before;
    std::optional<SizeBinding> found = TinySizeFinder(graph, fixed, toAllTargets).run(kept, apart, obstacle);
    if (found) {
      graph.binding = std::move(*found);
      shrinkLoads(graph);
    }
    return found.has_value();
  };
  // Binds the graph, and says how many products a proof computes then; nothing if there are no sizes.
  auto solve = [&]() -> std::optional<double> {
    std::optional<SizeBinding> best;
    double fewest = 0;
    for (int64_t apart : {11, 4, 0}) {
      // Units of inference deal out choices each by itself: where all experts get all tokens, each has as many as in a
      // pass over all positions.
      if (!(!graph.training && find(apart, /*toAllTargets=*/true)) && !find(apart, /*toAllTargets=*/false))
        return std::nullopt;
      double products = countProducts(graph);
      if (!best || products < fewest) {
        best = graph.binding;
        fewest = products;
      }
      if (products <= fewProducts)
        break;
    }
    graph.binding = std::move(*best);
    return fewest;
  };
  std::optional<double> products = solve();
  for (; products && *products > manyProducts && !kept.empty(); products = solve())
    giveUp(kept, graph.binding, before);
  if (!products) {
    diags.report(graph.loc, diag::ProofNoTinySizes) << obstacle;
    return false;
  }
  // Pieces are given up first, and may fit once something larger is gone.
  if (kept.size() < relations.size()) {
    SizeBinding without = graph.binding;
    for (const Relation &relation : relations)
      if (relation.isOfPieces)
        kept.push_back(relation);
    products = solve();
    if (!products || *products > manyProducts)
      graph.binding = std::move(without);
  }
  if (proofSizes) {
    SizeBinding now = bindAxes(graph.binding, graph);
    for (const Axis &axis : graph.mesh.getAxes())
      now.bind(axis.name, axis.size);
    for (const Relation &relation : relations)
      if (!relation.holds(now))
        proofSizes->notKept.push_back(relation.describe(now, job));
  }
  return true;
}
