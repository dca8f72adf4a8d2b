//===- Fold.cpp - an op that visits an index block by block ---------------===//
#include "stage/IR/algebra/Fold.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace stage;
using Kind = Formula::Kind;
using Function = Formula::Function;

namespace {
class FoldDeriver {
public:
  FoldDeriver(const OpDef &def, unsigned index, OpDefTable &defs) : def(def), index(index), defs(defs) {}

  Fold run() {
    check();
    // A let uses only those before it: in this order none is followed into another.
    for (auto &[name, let] : def.lets) {
      folds(let);
      getFree(let);
      leavesOut(let);
    }
    for (const ResultInfo &result : def.results)
      if (fold.fault.empty())
        collectSums(result.formula);
    findOutside();
    if (fold.fault.empty())
      solve();
    if (fold.fault.empty())
      makeStep();
    for (const Sum &sum : sums)
      fold.sums.push_back({sum.before, sum.solvedBy});
    return std::move(fold);
  }

private:
  /// A sum over blocks, and what it has been so far; null: not known yet.
  struct Sum {
    const Formula *formula;
    const Formula *before = nullptr;
    unsigned solvedBy = 0;
  };

  void fail(const llvm::Twine &text) {
    if (fold.fault.empty())
      fold.fault = text.str();
  }

  std::string quote(llvm::StringRef name) const { return ("'" + name + "'").str(); }

  void check() {
    std::string name = quote(def.indices[index].name);
    if (def.opaque)
      return fail("it is opaque");
    if (!def.indices[index].fold)
      return fail((def.indices[index].whole ? "an invocation needs all of " : "no 'fold' names ") + name +
                  (def.indices[index].whole ? " at once: 'whole'" : ""));
    for (const ResultInfo &result : def.results) {
      if (!result.formula)
        return fail("nothing says how " + quote(result.name) + " follows from blocks of " + name);
      if (llvm::is_contained(def.expand(result.indices), index))
        return fail(quote(result.name) + " has index " + name);
    }
  }

  //===--- the sums -------------------------------------------------------===//

  /// Whether a sum over the index stands in a formula, or in a let that it uses.
  bool folds(const Formula *f) {
    if (auto it = folding.find(f); it != folding.end())
      return it->second;
    bool found = f->kind == Kind::Reduce && llvm::is_contained(f->indices, index);
    if (f->kind == Kind::Let)
      found = folds(def.lets[f->operand].second);
    for (const Formula *child : f->children)
      found |= folds(child);
    return folding[f] = found;
  }

  bool isSum(const Formula *f) const { return f->kind == Kind::Reduce && llvm::is_contained(f->indices, index); }

  void collectSums(const Formula *f) {
    if (!visited.insert(f).second)
      return;
    if (f->kind == Kind::Random)
      return fail("it draws random numbers");
    if (isSum(f)) {
      if (f->reduce != ReduceKind::Sum)
        fail("it takes the " + llvm::Twine(f->reduce == ReduceKind::Max ? "maximum" : "minimum") + " over '" +
             def.indices[index].name + "'");
      if (folds(f->children[0]))
        fail("a sum over '" + def.indices[index].name + "' in it is made of another");
      if (!def.mask && leavesOut(f->children[0]))
        fail("a sum in it may leave out all of a block by a condition on '" + def.indices[index].name +
             "', and no 'mask' says which pairs count");
      if (!find(f))
        sums.push_back({f});
      fold.sumNumbers[f] = find(f) - sums.data();
    }
    if (f->kind == Kind::Let)
      collectSums(def.lets[f->operand].second);
    for (const Formula *child : f->children)
      collectSums(child);
  }

  //===--- what stands outside of them ----------------------------------------===//

  void findOutside() {
    fold.outside.resize(def.operands.size());
    llvm::SmallBitVector inside(def.operands.size());
    llvm::DenseSet<const Formula *> met, metInSums;
    for (const ResultInfo &result : def.results)
      if (fold.fault.empty())
        collectOperands(result.formula, /*isInSum=*/false, fold.outside, inside, met, metInSums);
    inside &= fold.outside;
    if (int both = inside.find_first(); both >= 0)
      fail(quote(def.operands[both].name) + " stands inside of a sum over '" + def.indices[index].name +
           "' and outside of one, so that its gradient is no sum over blocks");
  }

  void collectOperands(const Formula *f, bool isInSum, llvm::SmallBitVector &outside, llvm::SmallBitVector &inside,
                       llvm::DenseSet<const Formula *> &met, llvm::DenseSet<const Formula *> &metInSums) {
    isInSum |= isSum(f);
    if (!(isInSum ? metInSums : met).insert(f).second)
      return;
    if (f->kind == Kind::Element)
      (isInSum ? inside : outside).set(f->operand);
    if (f->kind == Kind::Let)
      collectOperands(def.lets[f->operand].second, isInSum, outside, inside, met, metInSums);
    for (const Formula *child : f->children)
      collectOperands(child, isInSum, outside, inside, met, metInSums);
  }

  /// Whether a condition depends on the index.
  bool leavesOut(const Formula *f) {
    if (auto it = conditions.find(f); it != conditions.end())
      return it->second;
    bool found = f->kind == Kind::Select && getFree(f->children[0]).test(index);
    if (f->kind == Kind::Let)
      found = leavesOut(def.lets[f->operand].second);
    for (const Formula *child : f->children)
      found = found || leavesOut(child);
    return conditions[f] = found;
  }

  static bool areEqual(const Formula *a, const Formula *b) {
    if (a == b)
      return true;
    if (a->kind != b->kind || a->function != b->function || a->reduce != b->reduce || a->isMean != b->isMean ||
        a->operand != b->operand || a->index != b->index || a->number != b->number || a->size != b->size ||
        a->indices != b->indices || a->children.size() != b->children.size())
      return false;
    for (size_t i = 0; i < a->children.size(); ++i)
      if (!areEqual(a->children[i], b->children[i]))
        return false;
    return true;
  }

  Sum *find(const Formula *f) {
    auto it = llvm::find_if(sums, [&](const Sum &sum) { return areEqual(sum.formula, f); });
    return it == sums.end() ? nullptr : &*it;
  }

  //===--- what they have been so far ---------------------------------------===//

  void solve() {
    for (bool changed = true; changed;) {
      changed = false;
      for (unsigned result = 0; result < def.results.size(); ++result)
        changed |= solveFor(result);
    }
    if (llvm::any_of(sums, [](const Sum &sum) { return !sum.before; }))
      fail("its results do not tell what its sums over '" + def.indices[index].name +
           "' have been so far; 'carrying' may name more");
  }

  /// How often sums that are not known yet stand in a formula, with its lets written out; 2 stands for more.
  unsigned countUnknown(const Formula *f) {
    if (!folds(f))
      return 0;
    if (isSum(f))
      return find(f)->before ? 0 : 1;
    if (auto it = numUnknown.find(f); it != numUnknown.end())
      return it->second;
    unsigned count = f->kind == Kind::Let ? countUnknown(def.lets[f->operand].second) : 0;
    for (const Formula *child : f->children)
      count = std::min(2u, count + countUnknown(child));
    return numUnknown[f] = count;
  }

  const Formula *make(Kind kind, const Formula *a, const Formula *b) { return defs.binary(kind, a, b); }

  bool solveFor(unsigned number) {
    const ResultInfo &result = def.results[number];
    numUnknown.clear();
    for (auto &[name, let] : def.lets)
      countUnknown(let);
    if (countUnknown(result.formula) != 1)
      return false;
    auto carried = llvm::find(fold.carried, number);
    unsigned operand = def.operands.size() + (carried - fold.carried.begin());
    const Formula *value = defs.element(operand, result.indices);
    for (const Formula *f = result.formula; value;) {
      if (isSum(f)) {
        if (getFree(f) != toSet(result.indices))
          return false;
        if (getWeight(value) == maxWeight)
          return false;
        *find(f) = {find(f)->formula, value, operand - unsigned(def.operands.size())};
        if (carried == fold.carried.end())
          fold.carried.push_back(number);
        return true;
      }
      value = undo(f, value);
    }
    return false;
  }

  /// The value of the operand of `f` in which the unknown sum stands, where that of `f` is `value`; `f` becomes it.
  /// Null if it cannot be told.
  const Formula *undo(const Formula *&f, const Formula *value) {
    if (f->kind == Kind::Let) {
      f = def.lets[f->operand].second;
      return value;
    }
    const Formula *whole = f;
    unsigned place = 0;
    while (place < f->children.size() && !countUnknown(f->children[place]))
      ++place;
    f = whole->children[place];
    auto other = [&] { return resolve(whole->children[1 - place]); };
    switch (whole->kind) {
    case Kind::Negate: {
      Formula negated;
      negated.kind = Kind::Negate;
      return defs.create(negated, {}, {value});
    }
    case Kind::Add:
      return make(Kind::Sub, value, other());
    case Kind::Sub:
      return place == 0 ? make(Kind::Add, value, other()) : make(Kind::Sub, other(), value);
    case Kind::Mul:
      return make(Kind::Div, value, other());
    case Kind::Div:
      return place == 0 ? make(Kind::Mul, value, other()) : make(Kind::Div, other(), value);
    case Kind::Call:
      switch (whole->function) {
      case Function::Exp:
        return defs.call(Function::Log, {value});
      case Function::Log:
        return defs.call(Function::Exp, {value});
      case Function::Sqrt:
        return make(Kind::Mul, value, value);
      case Function::Rsqrt:
        return make(Kind::Div, defs.number(1), make(Kind::Mul, value, value));
      default:
        return nullptr;
      }
    default:
      return nullptr;
    }
  }

  const Formula *copy(const Formula *f, llvm::function_ref<const Formula *(const Formula *)> copyChild) {
    llvm::SmallVector<const Formula *, 3> children;
    for (const Formula *child : f->children)
      children.push_back(copyChild(child));
    return defs.create(*f, f->indices, children);
  }

  /// A formula with what its sums have been so far in their place, and lets that have some written out.
  const Formula *resolve(const Formula *f) {
    if (!folds(f))
      return f;
    if (auto it = resolved.find(f); it != resolved.end())
      return it->second;
    return resolved[f] = isSum(f)               ? find(f)->before
                         : f->kind == Kind::Let ? resolve(def.lets[f->operand].second)
                                                : copy(f, [&](const Formula *child) { return resolve(child); });
  }

  /// How many nodes a formula has, written out; lets that use each other twice double it at every step.
  static constexpr unsigned maxWeight = 2000;
  unsigned getWeight(const Formula *f) {
    if (auto it = weights.find(f); it != weights.end())
      return it->second;
    unsigned weight = 1;
    for (const Formula *child : f->children)
      weight = std::min(maxWeight, weight + getWeight(child));
    return weights[f] = weight;
  }

  llvm::SmallBitVector toSet(llvm::ArrayRef<unsigned> dims) const {
    llvm::SmallBitVector set(def.indices.size());
    for (unsigned i : def.expand(dims))
      set.set(i);
    return set;
  }

  llvm::SmallBitVector getFree(const Formula *f) {
    if (auto it = free.find(f); it != free.end())
      return it->second;
    llvm::SmallBitVector set(def.indices.size());
    if (f->kind == Kind::Index)
      set |= toSet(f->index);
    if (f->kind == Kind::Let)
      set |= getFree(def.lets[f->operand].second);
    for (const Formula *child : f->children)
      set |= getFree(child);
    if (f->kind == Kind::Reduce)
      set.reset(toSet(f->indices));
    return free[f] = set;
  }

  //===--- the op on the next block ---------------------------------------===//

  void makeStep() {
    OpDef &step = fold.step;
    step.name = def.name + ".fold";
    step.loc = def.loc;
    step.indices = def.indices;
    step.operands = def.operands;
    for (unsigned result : fold.carried)
      step.operands.push_back({def.results[result].name + ".before", def.results[result].indices});
    step.results = def.results;
    for (auto &[name, let] : def.lets)
      step.lets.emplace_back(name, merge(let));
    for (ResultInfo &result : step.results)
      result.formula = merge(result.formula);
    step.flops = def.flops;
    step.bytes = def.bytes;
    step.declaredClass = def.declaredClass;
    step.mask = def.mask;
  }

  /// A formula in which the sums go on from what they have been so far.
  const Formula *merge(const Formula *f) {
    if (!folds(f) || f->kind == Kind::Let)
      return f;
    if (auto it = merged.find(f); it != merged.end())
      return it->second;
    const Formula *made;
    if (isSum(f))
      fold.merges.insert(made = make(Kind::Add, f, find(f)->before));
    else
      made = copy(f, [&](const Formula *child) { return merge(child); });
    return merged[f] = made;
  }

  const OpDef &def;
  unsigned index;
  OpDefTable &defs;
  Fold fold;
  std::vector<Sum> sums;
  llvm::DenseSet<const Formula *> visited;
  llvm::DenseMap<const Formula *, bool> folding, conditions;
  llvm::DenseMap<const Formula *, unsigned> numUnknown;
  llvm::DenseMap<const Formula *, llvm::SmallBitVector> free;
  llvm::DenseMap<const Formula *, const Formula *> merged, resolved;
  llvm::DenseMap<const Formula *, unsigned> weights;
};
} // namespace

Fold stage::deriveFold(const OpDef &def, unsigned index, OpDefTable &defs) {
  return FoldDeriver(def, index, defs).run();
}
