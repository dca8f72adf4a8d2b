//===- ApplyStrategy.cpp - rules of a strategy become constraints ---------===//
//
// Problem: a strategy names dims, paths and axes; propagation wants to know of each
// value what is demanded of it.
//
//   shard F over tp;                          %gate : [D, F]    demands {_, tp}
//   at layers[*].{x, h}: shard S over tp;     %h    : [B, S, D] demands {_, tp, _}
//   at **.attention(): shard k over cp;       the op's index k is split over cp, and in
//                                             its gradient, which computes where it does
//   at **.attention.grad(): shard k over cp;  the gradient alone
//   at layers[*].x.grad: shard S over tp;     the gradient of x alone
//
// Algorithm: a plain `shard DIM over AXES` is exact for parameters and inputs, which
// are where shardings start, and a floor for every other value that has the dim: at
// least these axes, outermost (so `at` rules and propagation may add to them); what an
// op saves besides its results stays where the op makes it. An `at` rule is exact. Per
// value and dim, and per op and index, the more specific rule wins, whichever stands
// first; two that are equally specific and differ are an error; inline annotations beat
// all rules.
//
// `replicate PATTERN over AXES` takes the axes from what less specific rules say, and from floors.
//
// `(KV, G) over tp`: the axes go to KV as far as they divide it, the rest to G.
//
// Layout: `order mirrored` belongs to the axes of its rule, on the values that the rule
// is about. A rule or annotation that says which axes split a dim and not how
// takes the layout of an axis from the rule for the dim alone, else blocked:
//
//   shard S over cp order mirrored;           %x : [B, S, D] demands {?, (cp mirrored, ...), ?}
//   at layers[*].h: shard S over (cp, tp);    %h demands {?, (cp mirrored, tp), ?}
//
// A rule whose axes all have size 1 says nothing here, and need not find what it names.
//
// Limits: an axis is not cut in two; it must fit one of the dims of a tuple whole.
//
//===----------------------------------------------------------------------===//
#include "CheckConstraints.h"
#include "RuleCalls.h"
#include "RuleTargets.h"
#include "UnmatchedNames.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IR/text/Text.h"
#include "stage/Schedule/InferenceSymbols.h"
#include "stage/Symbolic/SizeMessages.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/Suggestions.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace stage;

namespace {
class StrategyApplier {
public:
  StrategyApplier(Graph &graph, DiagnosticEngine &diags) : graph(graph), diags(diags), targets(graph) {}

  void run() {
    applyRules();
    inheritLayouts();
    reportUnmatched();
    if (!diags.hasErrors()) {
      warnUnmatchedNames(graph, targets, diags);
      warnUnfound();
    }
    for (auto [value, op] : targets.getValues())
      replicate(*value);
    checkConstraints(graph, targets, usedAxes, diags);
  }

  /// The axes that rules and annotations demand on a dim of the inputs, whose constraints are left as they are.
  AxisSet getInputAxes(llvm::StringRef dim) {
    std::vector<std::pair<Value *, Constraint>> before;
    for (auto [value, op] : targets.getValues())
      if (isInput(op))
        before.emplace_back(value, value->constraint);
    onlyInputs = true;
    applyRules();
    for (auto &[value, constraint] : before)
      replicate(*value);
    AxisSet axes = 0;
    for (auto &[value, constraint] : before) {
      for (unsigned d = 0; d < value->constraint.dims.size(); ++d)
        if (const Dim *known = value->type.shape[d].dim; known && known->answersTo(dim) && value->constraint.dims[d])
          axes |= toSet(*value->constraint.dims[d]);
      value->constraint = std::move(constraint);
    }
    return axes;
  }

private:
  struct Setting {
    unsigned specificity;
    const Rule *rule;
  };

  void applyRules() {
    for (const Rule &rule : graph.rules) {
      if (rule.isOfKept() || rule.isOfOverlap() || rule.kind == RuleKind::Quantize)
        continue;                // what it is about finds the pass of its name
      else if (rule.isOfState()) // as does partition-state, or reduce-gradients
        use(rule.axes);
      else if (rule.pattern)
        applyAtRule(rule);
      else if (!rule.dims.empty())
        applyDimRule(rule);
      else
        applyToAll(rule);
    }
  }

  static bool isInput(const Op *op) { return op && op->kind == OpKind::Input; }
  /// Whether the constraint of a value is to be found.
  bool isWanted(const Op *op) const { return !onlyInputs || isInput(op); }
  static bool isSource(const Op *op) { return op && (isState(op->kind) || op->kind == OpKind::Input); }

  static void prepare(Value &value) {
    value.constraint.dims.resize(value.type.getNumDims());
    value.constraint.floors.resize(value.type.getNumDims());
  }

  /// Axes of size 1 say nothing.
  AxisList dropTrivial(llvm::ArrayRef<PlacedAxis> axes) const {
    AxisList kept;
    for (const PlacedAxis &axis : axes)
      if (graph.mesh[axis].size > 1)
        kept.push_back(axis);
    return kept;
  }

  /// Axes that the rule names, all of size 1: it changes nothing. `over ()` does.
  bool isTrivial(const Rule &rule) const { return !rule.axes.empty() && dropTrivial(rule.axes).empty(); }

  /// `KV = 8 (2 per rank of the axes before), G = 4`: what is left of the dims of a rule.
  std::string describeDims(const Rule &rule, llvm::ArrayRef<std::optional<Extent>> extents,
                           llvm::ArrayRef<int64_t> left) const {
    std::string text;
    for (unsigned i = 0; i < left.size(); ++i) {
      if (!extents[i])
        continue;
      SizeValue value = evaluateCount(extents[i]->size, graph.binding);
      text += (text.empty() ? "" : ", ") + rule.dims[i] + " = " + value.value.str();
      if (value && value.value.num != left[i])
        text += " (" + std::to_string(left[i]) + " per rank of the axes before)";
    }
    return text;
  }

  /// Sizes above 1 that an axis may have: divisors of one of these numbers, the smallest ones.
  static std::string listDivisors(llvm::ArrayRef<int64_t> numbers) {
    std::string text;
    unsigned count = 0;
    for (int64_t divisor = 2; divisor <= 4096 && count < 6; ++divisor)
      if (llvm::any_of(numbers, [&](int64_t number) { return number % divisor == 0; }) && ++count)
        text += (text.empty() ? "" : ", ") + std::to_string(divisor);
    return text.empty() ? "1" : text;
  }

  /// An axis that another reading of the mesh has cut is `tp.0` and `tp.1`; the program says `tp`.
  void reportNoFit(const Rule &rule, const AxisList &axes, AxisId axis, llvm::ArrayRef<std::optional<Extent>> extents,
                   llvm::ArrayRef<int64_t> left) {
    auto getBase = [&](AxisId id) { return llvm::StringRef(graph.mesh[id].name).split('.').first; };
    llvm::StringRef base = getBase(axis);
    bool areAlike = llvm::all_of(axes, [&](const PlacedAxis &other) { return getBase(other) == base; });
    if (!areAlike || base == graph.mesh[axis].name) {
      DiagnosticBuilder error = diags.report(rule.loc, diag::SharedAxisDoesNotFit)
                                << graph.mesh[axis].name << graph.mesh[axis].size << describeDims(rule, extents, left)
                                << listDivisors(left);
      setOrigin(error, findOrigin(graph.sizes, graph.mesh[axis].name));
      return;
    }
    int64_t size = 1, product = 1;
    for (const PlacedAxis &part : axes)
      size *= graph.mesh[part].size;
    llvm::SmallVector<int64_t, 2> whole;
    for (const auto &extent : extents) {
      SizeValue value = extent ? evaluateCount(extent->size, graph.binding) : SizeValue();
      whole.push_back(extent && value ? int64_t(value.value.num) : 1);
      product *= whole.back();
    }
    if (!rule.pattern && reportedBases.insert(base).second) {
      DiagnosticBuilder error = diags.report(rule.loc, diag::SharedAxisDoesNotFit)
                                << base << size << describeDims(rule, extents, whole) << listDivisors(product);
      setOrigin(error, findOrigin(graph.sizes, graph.mesh[axis].name));
    }
  }

  static std::string listIndices(const Op &op) {
    std::string text;
    for (const auto &index : op.def->indices)
      text += (text.empty() ? "" : ", ") + index.name;
    return text;
  }

  /// How the axes of a rule fall on the positions that its names have (absent: no such dim).
  llvm::SmallVector<AxisList, 2> distribute(const Rule &rule, llvm::ArrayRef<std::optional<Extent>> extents,
                                            bool &fits) {
    llvm::SmallVector<AxisList, 2> lists(extents.size());
    AxisList axes = dropTrivial(rule.axes);
    fits = true;
    if (extents.size() == 1) {
      lists[0] = axes;
      return lists;
    }
    llvm::SmallVector<int64_t, 2> left;
    for (const auto &extent : extents) {
      SizeValue value = extent ? evaluateCount(extent->size, graph.binding) : SizeValue();
      left.push_back(extent && value ? int64_t(value.value.num) : 1);
    }
    for (const PlacedAxis &axis : axes) {
      unsigned place = 0;
      while (place < left.size() && left[place] % graph.mesh[axis].size != 0)
        ++place;
      if (place == left.size()) {
        fits = false;
        if (reported.insert({&rule, axis.id}).second)
          reportNoFit(rule, axes, axis, extents, left);
        continue;
      }
      left[place] /= graph.mesh[axis].size;
      lists[place].push_back(axis);
    }
    return lists;
  }

  /// What a name means of a dim: of one that is declared as (H E) the H.
  static Extent getNamed(const Extent &extent) {
    if (!extent.dim || extent.dim->parts.empty())
      return extent;
    return getNamed({extent.dim->parts.front(), extent.dim->parts.front()->size});
  }

  static bool isOfDraft(const Value &value) {
    llvm::StringRef place =
        value.path.empty() && value.getOp() ? llvm::StringRef(value.getOp()->scope) : llvm::StringRef(value.path);
    return place.split('.').first == draftScope;
  }

  /// A draft model has dims of its own, of other sizes, that are called as those of the model are.
  void applyDimRule(const Rule &rule) {
    applyDimRule(rule, /*ofDraft=*/false);
    applyDimRule(rule, /*ofDraft=*/true);
  }

  void applyDimRule(const Rule &rule, bool ofDraft) {
    // A tuple is decided on the program's dims, not per value: a value may have only some of them.
    llvm::SmallVector<std::optional<Extent>, 2> extents;
    bool any = false;
    std::vector<std::vector<RuleTargets::Place>> places;
    for (const std::string &name : rule.dims) {
      places.push_back(targets.findDim(name));
      llvm::erase_if(places.back(), [&](const RuleTargets::Place &place) {
        return isOfDraft(*targets.getValues()[place.target].value) != ofDraft;
      });
      extents.emplace_back();
      if (places.back().empty())
        continue;
      any = true;
      RuleTargets::Place first = places.back().front();
      extents.back() = getNamed(targets.getValues()[first.target].value->type.shape[first.position]);
    }
    statements[rule.statement] |= any;
    if (!any)
      return;
    bool fits;
    auto lists = distribute(rule, extents, fits);
    if (!fits)
      return;
    for (size_t i = 0; i < rule.dims.size(); ++i)
      for (auto [target, d] : places[i]) {
        auto [value, op] = targets.getValues()[target];
        if (isWanted(op))
          applyToDim(rule, *value, op, d, lists[i]);
      }
  }

  void applyToDim(const Rule &rule, Value &value, const Op *op, unsigned d, const AxisList &axes) {
    prepare(value);
    use(axes);
    for (const PlacedAxis &axis : axes)
      if (axis.isMirrored())
        mirrored[value.type.shape[d].dim] |= toSet(axis);
    bool isExtra = op && op->kind == OpKind::Compute && op->def->results[value.getNumber()].extra;
    if (isSource(op))
      set(value, d, axes, 0, rule);
    else if (!isExtra && !value.constraint.isInline)
      setFloor(value, d, axes, rule);
  }

  /// The first rule says it, unless another one wins over it.
  void setFloor(Value &value, unsigned d, const AxisList &axes, const Rule &rule) {
    AxisList &floor = value.constraint.floors[d];
    auto [by, fresh] = floorRules.try_emplace({&value, d}, &rule);
    if (rule.origin.winsOver(by->second->origin))
      by->second = &rule;
    else if (by->second->origin.winsOver(rule.origin) ||
             (!fresh && !floor.empty() && !(rule.saysLayout && areSameAxes(floor, axes))))
      return;
    floor = axes;
  }

  /// A rule without a pattern and without dims: `keep gathered over tp;`
  void applyToAll(const Rule &rule) {
    statements[rule.statement] = true;
    for (auto [value, op] : targets.getValues())
      if (isWanted(op) && !isSource(op))
        applyToValue(rule, *value, 0);
  }

  /// Whatever the layouts.
  static bool areSameAxes(llvm::ArrayRef<PlacedAxis> left, llvm::ArrayRef<PlacedAxis> right) {
    return std::equal(left.begin(), left.end(), right.begin(), right.end(), [](AxisId x, AxisId y) { return x == y; });
  }

  /// Other axes, or another layout where both say one.
  static bool contradict(const Rule &a, llvm::ArrayRef<PlacedAxis> axesOfA, const Rule &b,
                         llvm::ArrayRef<PlacedAxis> axesOfB) {
    return a.saysLayout && b.saysLayout ? axesOfA != axesOfB : !areSameAxes(axesOfA, axesOfB);
  }

  /// Puts `axes` in the place of what a less specific rule said; false if another rule stays. Of two that are equally
  /// specific and contradict each other both are shown; `getPlace` says what they are about, as three arguments.
  template <typename F>
  bool settle(std::pair<Setting *, bool> found, std::optional<AxisList> &list, const AxisList &axes, Setting by,
              F getPlace) {
    auto [setting, fresh] = found;
    if (!fresh) {
      if (setting->specificity > by.specificity)
        return false;
      if (setting->specificity == by.specificity) {
        if (contradict(*setting->rule, *list, *by.rule, axes)) {
          auto [what, name, owner] = getPlace();
          bool wins = by.rule->origin.winsOver(setting->rule->origin);
          const Rule &winner = wins ? *by.rule : *setting->rule, &other = wins ? *setting->rule : *by.rule;
          if (!winner.origin.winsOver(other.origin)) {
            if (!conflicting.insert({by.rule->loc.getPointer(), setting->rule->loc.getPointer()}).second)
              return false; // one tensor tells what is wrong with the two
            DiagnosticBuilder error = diags.report(by.rule->loc, diag::ConflictingRules)
                                      << what << name << owner << describe(*list) << describe(axes);
            error.note(setting->rule->loc, diag::ConflictingRuleHere);
            noteCalls(error, *by.rule);
            noteCalls(error, *setting->rule);
            return false;
          }
          if (replaced.insert({&winner, &other}).second)
            noteCalls(diags.report(winner.loc, diag::RuleWins) << what << name << owner, other);
          if (!wins)
            return false;
        } else if (!by.rule->saysLayout) {
          return false;
        }
      }
      *setting = by;
    }
    list = axes;
    return true;
  }

  void set(Value &value, unsigned d, const AxisList &axes, unsigned specificity, const Rule &rule) {
    if (value.constraint.isInline && value.constraint.dims[d])
      return;
    Setting by{specificity, &rule};
    auto [it, fresh] = settings.try_emplace({&value, d}, by);
    if (settle({&it->second, fresh}, value.constraint.dims[d], axes, by,
               [&] { return std::tuple("dim", getDimName(value, d), getNameForRules(value)); }))
      value.constraint.loc = rule.loc;
  }

  void setIndex(Op &op, unsigned index, const AxisList &axes, unsigned specificity, const Rule &rule) {
    Setting by{specificity, &rule};
    auto [it, fresh] = indexSettings.try_emplace({&op, index}, by);
    settle({&it->second, fresh}, op.indexConstraint[index], axes, by,
           [&] { return std::tuple("index", op.def->indices[index].name, RuleTargets::getPath(op) + "()"); });
  }

  /// What a rule for a dim alone says of the layout of an axis holds wherever nothing more specific says another.
  void inheritLayouts() {
    if (mirrored.empty())
      return;
    auto inherit = [&](std::optional<AxisList> &list, const Dim *dim, const auto &settings, const auto &place) {
      auto setting = settings.find(place);
      if (setting != settings.end() && setting->second.rule->saysLayout)
        return;
      AxisSet axes = dim ? mirrored.lookup(dim) : 0;
      for (unsigned i = 0; axes && list && i < list->size(); ++i)
        if (axes >> (*list)[i] & 1)
          (*list)[i].layout = Layout::Mirrored;
    };
    for (auto [value, op] : targets.getValues()) {
      for (unsigned d = 0; d < value->constraint.dims.size(); ++d)
        inherit(value->constraint.dims[d], value->type.shape[d].dim, settings, std::pair(value, d));
      for (unsigned i = 0; op && op->getResult() == value && i < op->indexConstraint.size(); ++i)
        inherit(op->indexConstraint[i], op->extents[i].dim, indexSettings, std::pair(op, i));
    }
  }

  void applyAtRule(const Rule &rule) {
    const PathPattern &pattern = *rule.pattern;
    if (onlyInputs) { // what is wrong is said when all rules are applied
      if (!pattern.matchesOps() && !pattern.namesGradient())
        targets.forEachValue(pattern, [&](Value &value, Op *op) {
          if (isInput(op) && hasNamedDims(rule, value))
            applyToValue(rule, value, 1 + pattern.getSpecificity());
        });
      return;
    }
    if (rule.kind == RuleKind::Ring && (!pattern.matchesOps() || pattern.isOfResults() || !rule.dimNames.empty())) {
      diags.report(rule.loc, diag::RingOfNoOp) << pattern.getText() + describeDimNames(rule);
      return;
    }
    if (pattern.namesGradient() && !graph.training)
      return; // what is not trained has none
    unsigned specificity = 1 + pattern.getSpecificity();
    bool any = false;
    auto apply = [&](Value &value) {
      if (!hasNamedDims(rule, value))
        return;
      any = true;
      applyToValue(rule, value, specificity);
    };
    // `result **.linear(): shard F over tp`, and where the rule names dims: of what the ops make, not of their indices.
    bool isOfResults = rule.kind == RuleKind::Shard && (pattern.isOfResults() || !rule.dimNames.empty());
    if (pattern.matchesOps() && isOfResults) {
      targets.forEachOp(pattern, [&](Op &op) {
        for (auto &result : op.getResults())
          if (!op.def->results[result->getNumber()].extra)
            apply(*result);
      });
    } else if (pattern.matchesOps()) {
      any = targets.forEachOp(pattern, [&](Op &op) { applyToOp(rule, op, specificity); });
    } else {
      targets.forEachValue(pattern, [&](Value &value, Op *) { apply(value); });
      if (pattern.namesGradient())
        targets.forEachGradient(pattern, apply);
    }
    if (!any && !isTrivial(rule) && !pattern.mayLack())
      targets.reportUnmatched(rule, diags, describeDimNames(rule));
  }

  static std::string describeDimNames(const Rule &rule) {
    if (rule.dimNames.empty())
      return "";
    llvm::SmallVector<std::string, 4> names = rule.dimNames.names;
    if (rule.dimNames.hasEllipsis)
      names.insert(names.begin(), "...");
    return ": [" + llvm::join(names, ", ") + "]";
  }

  /// A rule that names dims is about what has as many.
  static bool hasNamedDims(const Rule &rule, const Value &value) {
    return value.type.getNumDims() >= rule.dimNames.names.size();
  }

  /// Position of a rule's name in a value: by the names that the rule gives the dims, or by the dims' own.
  std::optional<unsigned> findDim(const Rule &rule, const Value &value, llvm::StringRef name) {
    unsigned rankOf = value.type.getNumDims();
    for (size_t i = 0; i < rule.dimNames.names.size(); ++i)
      if (rule.dimNames.names[i] == name)
        return rule.dimNames.hasEllipsis ? rankOf - rule.dimNames.names.size() + i : i;
    for (unsigned d = 0; d < rankOf; ++d)
      if (value.type.shape[d].dim && value.type.shape[d].dim->answersTo(name))
        return d;
    return std::nullopt;
  }

  void applyToValue(const Rule &rule, Value &value, unsigned specificity) {
    if (rule.kind == RuleKind::KeepGathered) {
      value.constraint.gathered |= toSet(dropTrivial(rule.axes));
      return; // it shards nothing
    }
    prepare(value);
    if (rule.kind == RuleKind::Replicate) {
      replications[&value].push_back({specificity, &rule});
      use(rule.axes);
      return;
    }
    llvm::SmallVector<std::optional<Extent>, 2> extents;
    llvm::SmallVector<std::optional<unsigned>, 2> places;
    for (const std::string &name : rule.dims) {
      places.push_back(findDim(rule, value, name));
      extents.push_back(places.back() ? std::optional<Extent>(getNamed(value.type.shape[*places.back()]))
                                      : std::nullopt);
    }
    if (llvm::none_of(places, [](auto &place) { return place.has_value(); })) {
      // A decode step has another dim where prefill has the sequence's, of which rules speak.
      bool isOfDecode = isDecoding(value.getBlock()->getPhase());
      if (!isOfDecode && !isTrivial(rule) && !mayLackAll(rule) && reported.insert({&rule, 0}).second)
        diags.report(rule.loc, diag::IndexMissing)
            .with(llvm::join(rule.dims, ", "), value.path)
            .note(SMLoc(), diag::IndexInstead)
            .with(targets.suggestDim(rule.dims.front()));
      return;
    }
    for (size_t i = 0; rule.dims.size() > 1 && i < places.size(); ++i)
      if (places[i])
        dimsFound[&rule].insert(rule.dims[i]);
    bool fits;
    auto lists = distribute(rule, extents, fits);
    for (size_t i = 0; fits && i < places.size(); ++i)
      if (places[i]) {
        set(value, *places[i], lists[i], specificity, rule);
        use(lists[i]);
      }
  }

  /// What `replicate` takes from the other rules of a value.
  void replicate(Value &value) {
    auto found = replications.find(&value);
    if (found == replications.end())
      return;
    Constraint &constraint = value.constraint;
    for (const Setting &setting : found->second)
      for (AxisId axis : dropTrivial(setting.rule->axes)) {
        bool isSplit = false;
        for (unsigned d = 0; d < constraint.dims.size(); ++d) {
          llvm::erase_value(constraint.floors[d], axis);
          if (!constraint.dims[d] || !llvm::is_contained(*constraint.dims[d], axis))
            continue;
          auto other = settings.find({&value, d});
          // What the program says of a value comes without a setting.
          const Rule *split = other == settings.end() ? nullptr : other->second.rule;
          bool isEqual = split && other->second.specificity == setting.specificity;
          if (!split || other->second.specificity > setting.specificity ||
              (isEqual && split->origin.winsOver(setting.rule->origin))) {
            isSplit = true;
          } else if (!isEqual || setting.rule->origin.winsOver(split->origin)) {
            llvm::erase_value(*constraint.dims[d], axis);
          } else {
            DiagnosticBuilder message = diags.report(setting.rule->loc, diag::ConflictingRules)
                                        << "dim" << getDimName(value, d) << getNameForRules(value)
                                        << describe(*constraint.dims[d]) << "none of " + describe(PlacedAxis(axis));
            message.note(other->second.rule->loc, diag::ConflictingRuleHere);
          }
        }
        if (!isSplit)
          constraint.replicated |= toSet(axis);
      }
  }

  void applyToOp(const Rule &rule, Op &op, unsigned specificity) {
    bool isRing = rule.kind == RuleKind::Ring;
    if (rule.kind != RuleKind::Shard && !isRing) {
      for (auto &result : op.getResults())
        applyToValue(rule, *result, specificity);
      return;
    }
    op.indexConstraint.resize(op.def->indices.size());
    for (const std::string &name : rule.dims) {
      std::optional<unsigned> index = findIndex(op, name);
      if (!index) {
        if (!isTrivial(rule) && !llvm::is_contained(rule.lackable, name) && reported.insert({&rule, 1}).second)
          diags.report(rule.loc, diag::IndexMissing)
              .with(name, op.def->name)
              .note(SMLoc(), diag::IndexInstead)
              .with("; its indices are " + listIndices(op));
        continue;
      }
      index = op.def->getCarrier(*index);
      AxisList axes = dropTrivial(rule.axes);
      if (isRing && (axes.empty() || !isRingPossible(rule, op, *index, axes)))
        continue;
      if (!isRing && !axes.empty() && !op.def->shardable[*index]) {
        if (reported.insert({&rule, 2}).second)
          diags.report(rule.loc, diag::IndexNotShardable) << op.def->name << name << describe(axes);
        continue;
      }
      setIndex(op, *index, axes, specificity, rule);
      use(axes);
      bool isSettled = op.indexConstraint[*index] == axes; // and not what a more specific rule says
      if (isSettled && isRing)
        op.ring = *index;
      else if (isSettled && op.ring == index)
        op.ring.reset();
    }
  }

  /// What stands against it is said once per rule.
  bool isRingPossible(const Rule &rule, const Op &op, unsigned index, const AxisList &axes) {
    return !reported.count({&rule, 3}) &&
           (checkRing(graph, rule, op, index, axes, diags) || !reported.insert({&rule, 3}).second);
  }

  static std::optional<unsigned> findIndex(const Op &op, llvm::StringRef name) {
    std::optional<unsigned> index = op.def->findIndex(name);
    if (!index)
      index = op.def->findIndex((name + ".1").str()); // a size of the caller's has the name of the op's index
    for (unsigned i = 0; !index && i < op.extents.size(); ++i)
      if (op.extents[i].dim && op.extents[i].dim->answersTo(name))
        index = i;
    return index;
  }

  /// A `shard a? over x, b over y;` may name dims that a model lacks as long as it has one of them, and `shard a? over
  /// x;` its only one.
  void reportUnmatched() {
    llvm::DenseMap<unsigned, size_t> numDims;
    for (const Rule &rule : graph.rules)
      numDims[rule.statement] += rule.dims.size();
    llvm::DenseSet<unsigned> done;
    for (const Rule &rule : graph.rules) {
      if (rule.pattern || rule.isOfState() || statements[rule.statement] || isTrivial(rule) || rule.isTrimmed ||
          (mayLackAll(rule) && numDims[rule.statement] == 1) || !done.insert(rule.statement).second)
        continue;
      noteCalls(diags.report(rule.loc, diag::RuleDimMissing)
                    << llvm::join(rule.dims, ", ") << graph.name << targets.suggestDim(rule.dims.front()),
                rule);
    }
  }

  /// `at P: shard (KV, GG) over tp`: what P matches has a KV, and none of it a GG.
  void warnUnfound() {
    for (const Rule &rule : graph.rules)
      if (auto found = dimsFound.find(&rule); found != dimsFound.end() && !isTrivial(rule))
        for (const std::string &name : rule.dims)
          if (!found->second.contains(name) && !llvm::is_contained(rule.lackable, name))
            noteCalls(diags.report(rule.loc, diag::TupleDimUnmatched)
                          << name << rule.pattern->getText() + describeDimNames(rule),
                      rule);
  }

  static bool mayLackAll(const Rule &rule) { return !rule.dims.empty() && rule.dims.size() == rule.lackable.size(); }

  void use(llvm::ArrayRef<PlacedAxis> axes) { usedAxes |= toSet(axes); }

  std::string describe(llvm::ArrayRef<PlacedAxis> axes) const {
    return "(" + llvm::join(listAxisNames(graph.mesh, axes), ", ") + ")";
  }
  Graph &graph;
  DiagnosticEngine &diags;
  RuleTargets targets;
  llvm::DenseMap<std::pair<Value *, unsigned>, Setting> settings;   ///< Of the dims of values.
  llvm::DenseMap<std::pair<Op *, unsigned>, Setting> indexSettings; ///< Of the indices of ops.
  llvm::DenseMap<std::pair<Value *, unsigned>, const Rule *> floorRules;
  llvm::DenseMap<Value *, llvm::SmallVector<Setting, 1>> replications;
  /// Axes that a rule for the dim alone deals out mirrored.
  llvm::DenseMap<const Dim *, AxisSet> mirrored;
  llvm::DenseMap<unsigned, bool> statements;                         ///< did one of its rules match?
  llvm::DenseSet<std::pair<const char *, const char *>> conflicting; ///< Places of rules that were reported together.
  llvm::DenseSet<std::pair<const Rule *, const Rule *>> replaced;    ///< Pairs of a rule and one over which it wins.
  llvm::DenseSet<std::pair<const Rule *, unsigned>> reported;
  llvm::StringSet<> reportedBases;
  llvm::DenseMap<const Rule *, llvm::StringSet<>> dimsFound; ///< By a rule with a pattern, in what it matches.
  AxisSet usedAxes = 0;
  bool onlyInputs = false; ///< Nothing else is constrained.
};
} // namespace

void stage::applyStrategy(Graph &graph, DiagnosticEngine &diags) { StrategyApplier(graph, diags).run(); }

int64_t stage::countRanksThatSplitInputs(Graph &graph, llvm::StringRef dim, DiagnosticEngine &diags) {
  DiagnosticEngine silent(diags.getSources()); // the pass will say what is wrong
  return graph.mesh.getGroupSize(StrategyApplier(graph, silent).getInputAxes(dim));
}
