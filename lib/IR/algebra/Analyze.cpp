//===- Analyze.cpp - what follows from an operator's formula --------------===//
//
// Problem: sharding, gradients and costs need facts that the author of an operator
// did not write: is it a plain contraction? in which operands is it linear? which
// operand values does the derivative need? over which indices may it be split?
//
// Algorithm: one bottom-up walk per result formula and let; what is found of a node is
// kept, as chained lets would double the work at every step. For every operand the walk keeps
// a degree (absent, linear, or other) and the set of operands whose values the
// derivative needs; for every reduced index it keeps whether the reduction is
// *outermost*, i.e. everything above it is linear, so that partial results of a split
// index may be added (or maxed) afterwards.
//
// Limits: linearity is syntactic. `x * (y / y)` counts as nonlinear in y.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/algebra/FormulaPoint.h"
#include "stage/IR/algebra/OpDef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SparseBitVector.h"

using namespace stage;

namespace {
/// An operator may have any number of operands: the gradients of all uses of a value are added by one.
class OperandSet {
public:
  OperandSet() = default;
  static OperandSet all(unsigned numOperands) {
    OperandSet set;
    for (unsigned operand = 0; operand < numOperands; ++operand)
      set.bits.set(operand);
    return set;
  }
  static OperandSet of(unsigned operand) {
    OperandSet set;
    set.bits.set(operand);
    return set;
  }
  bool contains(unsigned operand) const { return bits.test(operand); }
  bool any() const { return !bits.empty(); }
  bool meets(const OperandSet &other) const { return bits.intersects(other.bits); }
  OperandSet &operator|=(const OperandSet &other) {
    bits |= other.bits;
    return *this;
  }
  friend OperandSet operator|(OperandSet a, const OperandSet &b) { return a |= b; }
  friend OperandSet operator&(OperandSet a, const OperandSet &b) {
    a.bits &= b.bits;
    return a;
  }
  /// What is in `a` and not in `b`.
  friend OperandSet operator-(OperandSet a, const OperandSet &b) {
    a.bits.intersectWithComplement(b.bits);
    return a;
  }

private:
  llvm::SparseBitVector<> bits; // of a few operands, however many the operator has
};

/// How a formula depends on the operands.
struct Dependence {
  OperandSet depends; ///< value depends on the operand's float values
  OperandSet linear;  ///< and homogeneously linearly so
  OperandSet flows;   ///< and the derivative is not zero, as that of a condition is
  OperandSet needs;   ///< the derivative needs the operand's values
  OperandSet steers;  ///< stands in subscripts or conditions
};

/// Finds the dependence of formulas. Gradients are wanted of some operands, as a rule of all.
class DependenceFinder {
public:
  DependenceFinder(const OpDef &def, OperandSet wanted) : op(def), wanted(std::move(wanted)) {}

  Dependence visit(const Formula *f) {
    if (auto it = dependences.find(f); it != dependences.end())
      return it->second;
    Dependence d = findDependence(f);
    return dependences[f] = d;
  }

private:
  /// Whether a gradient of it is wanted.
  bool isWanted(const Dependence &d) const { return d.flows.meets(wanted); }
  /// All that its values are made of.
  static OperandSet valuesOf(const Dependence &d) { return d.depends | d.steers; }

  Dependence findDependence(const Formula *f) {
    auto child = [&](unsigned i) { return visit(f->children[i]); };
    Dependence d;
    switch (f->kind) {
    case Formula::Kind::Number:
    case Formula::Kind::SizeOf:
    case Formula::Kind::Index:
    case Formula::Kind::Random:
      return d;
    case Formula::Kind::Let:
      return visit(op.lets[f->operand].second);
    case Formula::Kind::Element:
      for (const Formula *subscript : f->children) {
        Dependence s = visit(subscript);
        d.steers |= valuesOf(s);
        d.needs |= s.needs;
      }
      d.depends = d.linear = d.flows = OperandSet::of(f->operand);
      if (op.routing &&
          llvm::any_of(op.operands[f->operand].indices, [&](unsigned i) { return op.routing->isRouted(i); }))
        d.steers |= OperandSet::of(op.routing->operand);
      if (isWanted(d))
        d.needs |= d.steers;
      return d;
    case Formula::Kind::Negate:
      return child(0);
    case Formula::Kind::Add:
    case Formula::Kind::Sub: {
      Dependence a = child(0), b = child(1);
      join(d, a, b);
      // x + y is linear in x only together with y: as a function of x alone it is affine.
      d.linear = a.linear & b.linear;
      return d;
    }
    case Formula::Kind::Mul: {
      Dependence a = child(0), b = child(1);
      join(d, a, b);
      d.linear = (a.linear - b.depends) | (b.linear - a.depends);
      if (isWanted(a))
        d.needs |= valuesOf(b);
      if (isWanted(b))
        d.needs |= valuesOf(a);
      return d;
    }
    case Formula::Kind::Div: {
      Dependence a = child(0), b = child(1);
      join(d, a, b);
      d.linear = a.linear - b.depends;
      if (isWanted(a))
        d.needs |= valuesOf(b);
      if (isWanted(b))
        d.needs |= valuesOf(a) | valuesOf(b);
      return d;
    }
    case Formula::Kind::Reduce: {
      d = child(0);
      if (f->reduce != ReduceKind::Sum) {
        d.linear = OperandSet();
        if (isWanted(d))
          d.needs |= valuesOf(d);
      }
      return d;
    }
    case Formula::Kind::Select: {
      Dependence c = child(0), a = child(1), b = child(2);
      join(d, a, b);
      d.steers |= c.depends | c.steers;
      d.needs |= c.needs;
      if (isWanted(d))
        d.needs |= valuesOf(c);
      auto isZero = [](const Formula *g) { return g->kind == Formula::Kind::Number && g->number == 0; };
      d.linear = isZero(f->children[2]) ? a.linear : isZero(f->children[1]) ? b.linear : a.linear & b.linear;
      return d;
    }
    case Formula::Kind::Call:
    case Formula::Kind::Less:
    case Formula::Kind::LessEqual:
    case Formula::Kind::Equal:
    case Formula::Kind::And:
    case Formula::Kind::Or:
    case Formula::Kind::Not:
      for (unsigned i = 0; i < f->children.size(); ++i) {
        Dependence c = child(i);
        join(d, d, c);
      }
      d.linear = OperandSet();
      if (f->kind != Formula::Kind::Call || f->function == Formula::Function::Floor)
        d.flows = OperandSet();
      if (isWanted(d))
        d.needs |= valuesOf(d);
      return d;
    }
    llvm_unreachable("all kinds handled");
  }

  static void join(Dependence &d, const Dependence &a, const Dependence &b) {
    Dependence result;
    result.depends = a.depends | b.depends;
    result.flows = a.flows | b.flows;
    result.needs = a.needs | b.needs;
    result.steers = a.steers | b.steers;
    d = result;
  }
  const OpDef &op;
  OperandSet wanted;
  llvm::DenseMap<const Formula *, Dependence> dependences;
};

class Analyzer {
public:
  explicit Analyzer(OpDef &def) : def(def), finder(def, OperandSet::all(def.operands.size())) {}

  void run() {
    unsigned numOperands = def.operands.size(), numIndices = def.indices.size();
    if (def.routing)
      def.routing->toSlots = llvm::is_contained(def.results.front().indices, def.routing->slot);
    def.linearIn.assign(numOperands, true);
    def.derivativeNeeds.assign(numOperands, false);
    def.dataDependent.assign(numOperands, false);
    findReduced();
    // A let uses only those before it: in this order none is followed into another.
    for (auto &[name, let] : def.lets) {
      visit(let);
      visitsReduction(let);
    }
    OperandSet depends, notLinear, needs, steers, ofAll = OperandSet::all(numOperands);
    bool anyFormula = false;
    for (const ResultInfo &result : def.results) {
      if (!result.formula) {
        if (!result.extra) // opaque: nonlinear in everything, needs everything
          notLinear = needs = depends = OperandSet::all(numOperands);
        continue;
      }
      anyFormula = true;
      Dependence d = visit(result.formula);
      depends |= d.depends;
      notLinear |= d.depends - d.linear;
      // A result that does not depend on an operand at all is linear in it only if it is zero; the sum of
      // partial results would count it several times.
      if (!result.extra)
        ofAll = ofAll & d.depends;
      needs |= d.needs;
      steers |= d.steers;
      markReductions(result.formula, Place::Top);
    }
    notLinear |= OperandSet::all(numOperands) - ofAll;
    for (unsigned let = def.lets.size(); let-- > 0;)
      for (Place place : {Place::Top, Place::Linear, Place::Inside})
        if (placesOfLets[unsigned(place)].test(let))
          markReductions(def.lets[let].second, place);
    for (unsigned i = 0; i < numOperands; ++i) {
      def.linearIn[i] = depends.contains(i) && !notLinear.contains(i) && !steers.contains(i);
      def.derivativeNeeds[i] = needs.contains(i);
      def.dataDependent[i] = steers.contains(i) && !depends.contains(i);
    }
    // A backward is linear in the gradient that it is given; what was saved it needs complete. (Of two gradients the
    // contributions are added, and one that is complete would be added once per rank.)
    if (def.vjpOf && !def.vjpOf->opaque && def.vjpGradients.size() == 1)
      def.linearIn.back() = true;
    classify(anyFormula);
    decideShardable(numIndices);
  }

private:
  Dependence visit(const Formula *f) { return finder.visit(f); }

  /// An index is reduced if no visible result has it.
  void findReduced() {
    def.reduced.assign(def.indices.size(), true);
    for (const ResultInfo &result : def.results)
      if (!result.extra)
        for (unsigned index : def.expand(result.indices))
          def.reduced[index] = false;
    for (unsigned index = 0; index < def.indices.size(); ++index)
      if (def.indices[index].isCompound())
        def.reduced[index] = false; // its members are
    // What follows from others is not reduced. But a sum over slots of some positions of the target is a part of it.
    if (def.routing)
      for (unsigned index : def.routing->getRouted())
        def.reduced[index] &= index == def.routing->target;
    def.reduceKind.assign(def.indices.size(), ReduceKind::Sum);
    reducedOutermost.assign(def.indices.size(), false);
    reducedInside.assign(def.indices.size(), false);
    gathered.assign(def.indices.size(), false);
    shifted.assign(def.indices.size(), false);
    for (llvm::SmallBitVector &lets : placesOfLets)
      lets.resize(def.lets.size());
  }

  /// What lies between a formula's value and its place: which reductions there may be done piece by piece.
  enum class Place {
    Top,    ///< nothing: any kind of reduction
    Linear, ///< linear operations: sums
    Inside, ///< anything else: none
  };

  void markReductions(const Formula *f, Place place) {
    Place below = place == Place::Top ? Place::Linear : place;
    switch (f->kind) {
    case Formula::Kind::Let: // once per place, after all that uses it
      placesOfLets[unsigned(place)].set(f->operand);
      return;
    case Formula::Kind::Reduce: {
      bool isOutermost = place == Place::Top || (place == Place::Linear && f->reduce == ReduceKind::Sum);
      for (unsigned index : f->indices) {
        // Pieces of an index that is summed here and maxed there would need two kinds of partial results.
        bool otherKind = (reducedOutermost[index] || reducedInside[index]) && def.reduceKind[index] != f->reduce;
        (isOutermost && !otherKind ? reducedOutermost : reducedInside)[index] = true;
        def.reduceKind[index] = f->reduce;
      }
      // max of sums is no max of partial sums: below a max only the max's own indices are outermost.
      return markReductions(f->children[0],
                            isOutermost && f->reduce == ReduceKind::Sum ? Place::Linear : Place::Inside);
    }
    case Formula::Kind::Element: {
      // A subscript that is not the plain index of its position: a gather (the index of the position is found in
      // the operand's declaration) or a shift of an index.
      for (size_t i = 0; i < f->children.size(); ++i) {
        const Formula *subscript = f->children[i];
        unsigned declared = def.operands[f->operand].indices[i];
        if (gathersTarget(declared))
          (place != Place::Inside ? gathered : reducedInside)[declared] = true;
        if (subscript->kind == Formula::Kind::Index && subscript->index == declared)
          continue;
        if (visit(subscript).depends.any())
          (place != Place::Inside ? gathered : reducedInside)[declared] = true;
        else
          shifted[declared] = true;
        markReductions(subscript, Place::Inside);
      }
      return;
    }
    case Formula::Kind::Negate:
      return markReductions(f->children[0], below);
    case Formula::Kind::Add:
    case Formula::Kind::Sub: {
      // sum[t](a) + sum[t](b): both are outermost. sum[t](a) + c is not: c would be added once per piece; and so would
      // be sum[u](c).
      Place both = reduces(f->children[0]) && reduces(f->children[1]) ? below : Place::Inside;
      if (both != Place::Inside) {
        IndexSet left = findOutermost(f->children[0]), right = findOutermost(f->children[1]);
        for (unsigned index = 0; index < def.indices.size(); ++index)
          if (left.test(index) != right.test(index))
            reducedInside[index] = true;
      }
      markReductions(f->children[0], both);
      return markReductions(f->children[1], both);
    }
    case Formula::Kind::Mul: {
      bool left = visitsReduction(f->children[0]), right = visitsReduction(f->children[1]);
      markReductions(f->children[0], left && right ? Place::Inside : below);
      return markReductions(f->children[1], left && right ? Place::Inside : below);
    }
    case Formula::Kind::Div:
      markReductions(f->children[0], visitsReduction(f->children[1]) ? Place::Inside : below);
      return markReductions(f->children[1], Place::Inside);
    default:
      for (const Formula *child : f->children)
        markReductions(child, Place::Inside);
    }
  }

  /// Whether what a token reads at this index is of the position to which it is routed: nothing, if that is elsewhere.
  bool gathersTarget(unsigned index) const {
    return def.routing && !def.routing->toSlots && index == def.routing->target;
  }

  bool reduces(const Formula *f) {
    if (f->kind == Formula::Kind::Let)
      return reduces(def.lets[f->operand].second);
    if (f->kind == Formula::Kind::Negate)
      return reduces(f->children[0]);
    return f->kind == Formula::Kind::Reduce;
  }

  using IndexSet = llvm::SmallBitVector;

  /// The indices of the reductions at the top of a formula; of a sum of such, those that stand in each.
  IndexSet findOutermost(const Formula *f) {
    if (auto it = outermost.find(f); it != outermost.end())
      return it->second;
    IndexSet found(def.indices.size());
    if (f->kind == Formula::Kind::Let) {
      found = findOutermost(def.lets[f->operand].second);
    } else if (f->kind == Formula::Kind::Negate) {
      found = findOutermost(f->children[0]);
    } else if (f->kind == Formula::Kind::Reduce) {
      found = findOutermost(f->children[0]);
      for (unsigned index : f->indices)
        found.set(index);
    }
    return outermost[f] = found;
  }

  bool visitsReduction(const Formula *f) {
    if (auto it = reductions.find(f); it != reductions.end())
      return it->second;
    bool result = f->kind == Formula::Kind::Reduce;
    if (f->kind == Formula::Kind::Let)
      result = visitsReduction(def.lets[f->operand].second);
    else if (f->kind == Formula::Kind::Element) // a gather is a sum over a one-hot
      result = llvm::any_of(f->children, [&](const Formula *subscript) { return visit(subscript).depends.any(); }) ||
               llvm::any_of(def.operands[f->operand].indices, [&](unsigned index) { return gathersTarget(index); });
    else
      result |= llvm::any_of(f->children, [&](const Formula *child) { return visitsReduction(child); });
    return reductions[f] = result;
  }

  /// Collects the factors of a product; false if it is none.
  bool collectFactors(const Formula *f, llvm::SmallVectorImpl<const Formula *> &factors) {
    if (f->kind == Formula::Kind::Mul)
      return collectFactors(f->children[0], factors) && collectFactors(f->children[1], factors);
    if (f->kind == Formula::Kind::Div && !visit(f->children[1]).depends.any())
      return collectFactors(f->children[0], factors);
    if (f->kind == Formula::Kind::Element) {
      factors.push_back(f);
      return true;
    }
    Dependence d = visit(f);
    return !d.depends.any() && !d.steers.any() && !visitsReduction(f) && !isOfTheOp(f);
  }

  /// A draw or a let, which gradients made of the factors would not have.
  static bool isOfTheOp(const Formula *f) {
    return f->kind == Formula::Kind::Random || f->kind == Formula::Kind::Let || llvm::any_of(f->children, isOfTheOp);
  }

  /// Operand at the indices of its declaration, all different.
  bool isPlain(const Formula *element) {
    const auto &declared = def.operands[element->operand].indices;
    for (size_t i = 0; i < element->children.size(); ++i) {
      const Formula *subscript = element->children[i];
      if (subscript->kind != Formula::Kind::Index || subscript->index != declared[i])
        return false;
    }
    return !repeatsIndex(declared);
  }

  /// Whether an index stands on two dims, by itself or in a compound one.
  bool repeatsIndex(llvm::ArrayRef<unsigned> dims) {
    llvm::SmallVector<unsigned, 4> indices = def.expand(dims);
    llvm::sort(indices);
    return std::adjacent_find(indices.begin(), indices.end()) != indices.end();
  }

  bool isPlainSum(const Formula *f, OperandSet &seen) {
    if (f->kind == Formula::Kind::Add)
      return isPlainSum(f->children[0], seen) && isPlainSum(f->children[1], seen);
    if (f->kind != Formula::Kind::Element || !isPlain(f) || seen.contains(f->operand))
      return false;
    seen |= OperandSet::of(f->operand);
    return true;
  }

  /// A sum of a product, over what the result lacks of its operands, or several of these.
  bool collectTerms(const Formula *f, unsigned result) {
    if (f->kind == Formula::Kind::Add)
      return collectTerms(f->children[0], result) && collectTerms(f->children[1], result);
    llvm::SmallVector<const Formula *, 4> factors;
    if (f->kind != Formula::Kind::Reduce || f->reduce != ReduceKind::Sum || f->isMean ||
        !collectFactors(f->children[0], factors) || factors.size() < 2)
      return false;
    ProductTerm term{result, {}};
    for (const Formula *factor : factors) {
      if (!isPlain(factor) || llvm::is_contained(term.operands, factor->operand))
        return false;
      term.operands.push_back(factor->operand);
    }
    llvm::SmallVector<unsigned, 4> kept = def.expand(def.results[result].indices);
    llvm::SmallVector<unsigned, 8> indices = listIndices(def, term);
    bool isWhole = llvm::all_of(kept, [&](unsigned index) { return llvm::is_contained(indices, index); });
    llvm::erase_if(indices, [&](unsigned index) { return llvm::is_contained(kept, index); });
    def.terms.push_back(std::move(term));
    return isWhole && std::is_permutation(indices.begin(), indices.end(), f->indices.begin(), f->indices.end());
  }

  void findTerms() {
    bool isPlain = !def.vjpOf && !def.opaque && def.lets.empty() && !def.routing && !def.mask;
    for (unsigned i = 0; isPlain && i < def.results.size(); ++i)
      isPlain = def.results[i].formula && !def.results[i].extra && collectTerms(def.results[i].formula, i);
    if (!isPlain || def.terms.size() < 2)
      def.terms.clear();
  }

  void classify(bool anyFormula) {
    unsigned visible = def.getNumVisibleResults();
    const Formula *formula = visible == 1 && anyFormula ? def.results.front().formula : nullptr;
    bool anyReduced = llvm::is_contained(def.reduced, true);
    if (formula && !def.vjpOf) {
      const Formula *body =
          formula->kind == Formula::Kind::Reduce && formula->reduce == ReduceKind::Sum ? formula->children[0] : formula;
      llvm::SmallVector<const Formula *, 4> factors;
      if (collectFactors(body, factors) && !factors.empty()) {
        OperandSet seen;
        def.isProduct = llvm::all_of(factors,
                                     [&](const Formula *factor) {
                                       bool fresh = !seen.contains(factor->operand) && isPlain(factor);
                                       seen |= OperandSet::of(factor->operand);
                                       return fresh;
                                     }) &&
                        factors.size() == def.operands.size();
      }
      OperandSet seen;
      def.isSum = formula->kind == Formula::Kind::Add && isPlainSum(formula, seen);
    }
    findTerms();
    bool anyCompound = llvm::any_of(def.indices, [](const IndexInfo &index) { return index.isCompound(); });
    def.isView = anyCompound && formula && def.isProduct && formula->kind == Formula::Kind::Element &&
                 !def.results.front().dtype && !def.stopGradient && !def.flops && !def.bytes && !def.backwardFlops &&
                 def.expand(def.operands.front().indices) == def.expand(def.results.front().indices);
    bool anyWhole = llvm::any_of(def.indices, [](const IndexInfo &index) { return index.whole || index.fold; });
    def.isLookup = llvm::is_contained(gathered, true);
    def.isElementwise = !anyReduced && !anyWhole && !def.isLookup && (anyFormula || def.vjpOf) && !def.opaque &&
                        !llvm::is_contained(shifted, true) && !llvm::is_contained(reducedInside, true);
    if (def.vjpOf)
      def.isElementwise = def.vjpOf->isElementwise && !anyReduced;
    if (def.getRouting()) // where its operands are it computes, whatever is wanted of its results
      def.isProduct = def.isSum = def.isView = def.isLookup = def.isElementwise = false;
    def.flopTerms = def.vjpOf ? countGradientFlops(*def.vjpOf, def.vjpGradients, def.vjpOperands) : countFlops(def);
    auto isContraction = [](const FlopTerm &term) { return term.flopClass == FlopClass::Contraction; };
    if (def.vjpOf)
      def.flopClass = def.vjpOf->flopClass;
    else if (def.declaredClass)
      def.flopClass = *def.declaredClass;
    else if (llvm::any_of(def.flopTerms, isContraction))
      def.flopClass = FlopClass::Contraction;
  }

  void decideShardable(unsigned numIndices) {
    def.shardable.assign(numIndices, true);
    for (unsigned i = 0; i < numIndices; ++i) {
      const IndexInfo &index = def.indices[i];
      if (index.whole || index.fold || shifted[i] || (reducedInside[i] && def.terms.empty()))
        def.shardable[i] = false;
      else if (!def.terms.empty())
        continue; // each product is one by itself
      else if (def.vjpOf)
        // Gradients are sums over what their operand lacks. Where a maximum stands it takes all of them to know.
        def.shardable[i] =
            def.vjpOf->shardable[i] && !(def.vjpOf->reduced[i] && def.vjpOf->reduceKind[i] != ReduceKind::Sum);
      else if (def.reduced[i])
        def.shardable[i] = !def.opaque && (reducedOutermost[i] || gathered[i]);
    }
    // Several visible results that differ in a reduced index would need different partial axes: an index reduced in
    // one result but standing in another is kept whole. Of one that the other has nothing to do with it has copies.
    for (unsigned i = 0; i < numIndices; ++i)
      if (!def.vjpOf && def.terms.empty() && isOfSomeResults(def, i) &&
          (def.opaque || reducedOutermost[i] || gathered[i]) && !(def.routing && def.routing->isRouted(i)))
        def.shardable[i] = false;
    decideCompounds();
    if (const Routing *routing = def.getRouting())
      def.shardable[routing->slot] = false; // it has the axes of the tokens
  }

  /// The pieces of a dim are blocks, and so are those of its outermost member; pieces of an inner member are not.
  void decideCompounds() {
    for (const IndexInfo &index : def.indices)
      for (unsigned member : llvm::ArrayRef<unsigned>(index.members).drop_front(index.isCompound()))
        def.shardable[member] = false;
    // Where a part of a dim stands on another one, too, none of them is split.
    for (const OperandInfo &operand : def.operands)
      if (llvm::any_of(operand.indices, [&](unsigned i) { return def.indices[i].isCompound(); }) &&
          repeatsIndex(operand.indices))
        for (unsigned member : def.expand(operand.indices))
          def.shardable[member] = false;
    for (unsigned i = 0; i < def.indices.size(); ++i)
      if (def.indices[i].isCompound()) {
        unsigned carrier = def.indices[i].members.front();
        if (!def.shardable[i])
          def.shardable[carrier] = false;
      }
    for (unsigned i = 0; i < def.indices.size(); ++i)
      def.shardable[i] = def.shardable[def.getCarrier(i)];
  }

  OpDef &def;
  DependenceFinder finder;
  llvm::SmallVector<bool, 8> reducedOutermost, reducedInside, gathered, shifted;
  llvm::DenseMap<const Formula *, IndexSet> outermost; ///< See findOutermost().
  llvm::DenseMap<const Formula *, bool> reductions;    ///< See visitsReduction().
  llvm::SmallBitVector placesOfLets[3];                ///< Per place: lets that stand there.
};
} // namespace

llvm::SmallVector<unsigned, 8> stage::listIndices(const OpDef &def, const ProductTerm &term) {
  llvm::SmallVector<unsigned, 8> indices;
  for (unsigned operand : term.operands)
    for (unsigned index : def.expand(def.operands[operand].indices))
      if (!llvm::is_contained(indices, index))
        indices.push_back(index);
  return indices;
}

void stage::analyze(OpDef &def) { Analyzer(def).run(); }

llvm::SmallBitVector stage::findGradientNeeds(const OpDef &def, llvm::ArrayRef<unsigned> given,
                                              llvm::ArrayRef<unsigned> wanted) {
  OperandSet operands;
  for (unsigned operand : wanted)
    operands |= OperandSet::of(operand);
  DependenceFinder finder(def, std::move(operands));
  for (auto &[name, let] : def.lets) // a let uses only those before it
    finder.visit(let);
  OperandSet needs;
  for (unsigned result : given)
    if (const Formula *formula = def.results[result].formula)
      needs |= finder.visit(formula).needs;
  llvm::SmallBitVector found(def.operands.size());
  for (unsigned i = 0; i < found.size(); ++i)
    found[i] = needs.contains(i);
  return found;
}

std::optional<unsigned> stage::findUnsavedOperand(const OpDef &def, llvm::ArrayRef<unsigned> given,
                                                  llvm::ArrayRef<unsigned> wanted) {
  if (!def.declaresSaves || def.opaque)
    return std::nullopt;
  llvm::SmallVector<unsigned, 4> savedOperands, savedResults;
  listSaved(def, savedOperands, savedResults);
  auto isOfOperands = [&](unsigned index) {
    return llvm::any_of(def.operands,
                        [&](const OperandInfo &o) { return llvm::is_contained(def.expand(o.indices), index); });
  };
  llvm::SmallBitVector needs = findGradientNeeds(def, given, wanted);
  for (unsigned operand : needs.set_bits()) {
    bool isKnown = llvm::is_contained(savedOperands, operand) || llvm::any_of(savedResults, [&](unsigned result) {
                     llvm::SmallVector<unsigned, 4> indices = def.expand(def.results[result].indices);
                     bool hasOwn = def.results[result].extra && !llvm::all_of(indices, isOfOperands);
                     return hasOwn || llvm::all_of(def.expand(def.operands[operand].indices),
                                                   [&](unsigned index) { return llvm::is_contained(indices, index); });
                   });
    if (!isKnown)
      return operand;
  }
  return std::nullopt;
}
