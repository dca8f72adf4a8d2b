//===- CountFlops.cpp - what a formula costs ------------------------------===//
//
// Problem: the FLOPs of an op that declares none. They follow the tree of its formula:
// each node costs what it does over the indices that it ranges over, and no others.
//
//   result[b, f] = sum[d](x[b, d] * w[d, f]) + c[f]
//
//   node             over        FLOPs      class
//   x * w            b, d, f     1          contraction
//   sum[d]           b, d, f     1          contraction
//   ... + c          b, f        1          other
//
// A node ranges over the indices that stand in it and are not reduced in it: what does
// not vary with an index is computed once. A let is computed once, however often it is
// used. Arithmetic, comparisons, calls of functions and draws cost 1; `where` and logic
// choose and cost nothing, nor do subscripts, which are addresses, nor what is known
// when the program is compiled. A reduction costs 1 per element that it reduces; a sum that
// is added to another one goes on where that ends, at no cost.
//
// The contraction in it: a sum whose body is a product of two factors each of which
// depends on an operand that the other does not; `x * x` and `x * sigmoid(x)` are no
// such products. The body may negate, mask by `where(c, ..., 0)`, divide by a constant,
// or add several products.
//
// Gradients: the adjoint of a node is brought to its children by what reverse
// accumulation computes, over the indices of the node, given the values of forward:
//
//   a + b, where     nothing          a - b      1 for b
//   a * b            1 for each       a / b      1 for a, 3 for b: -adjoint * result / b
//   f(a)             2: its slope, and the product with it; max and min choose
//
// and, where a child ranges over fewer indices than the adjoint or is used again, 1 per
// element for the addition. So x of the example costs 2 per (b, d, f), a contraction.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/algebra/OpDef.h"
#include "stage/IR/algebra/RoutedApart.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SparseBitVector.h"

using namespace stage;
using Kind = Formula::Kind;

namespace {
using BitSet = llvm::SmallBitVector;
using OperandSet = llvm::SparseBitVector<>; // of a few operands, however many the operator has

/// What a node ranges over and depends on.
struct NodeFacts {
  BitSet free;            ///< Indices.
  OperandSet values;      ///< Operands that its value depends on, subscripts and conditions aside.
  OperandSet smooth;      ///< Those that it has a derivative by.
  bool isConstant = true; ///< Known when the program is compiled.
  /// A sum that begins where another one ends: each adds 1 per element, the first of them to 0.
  bool joinsSums = false;
};

class FlopCounter {
public:
  explicit FlopCounter(const OpDef &def) : def(def), met(def.lets.size()) {
    // A let uses only those before it: none is followed into another, which would be as deep as they are many.
    for (auto &[name, let] : def.lets) {
      getFacts(let);
      addsProducts(let);
    }
    BitSet used(def.lets.size());
    for (const ResultInfo &result : def.results)
      if (result.formula)
        findContractions(result.formula, used);
    for (unsigned let = def.lets.size(); let-- > 0;)
      if (used[let])
        findContractions(def.lets[let].second, used);
  }

  std::vector<FlopTerm> countForward() {
    for (const ResultInfo &result : def.results)
      if (result.formula && !result.extra)
        count(result.formula);
    for (unsigned let = def.lets.size(); let-- > 0;)
      if (met[let])
        count(def.lets[let].second);
    return std::move(terms);
  }

  std::vector<FlopTerm> countGradients(llvm::ArrayRef<unsigned> given, llvm::ArrayRef<unsigned> operands) {
    for (unsigned operand : operands)
      wanted.set(operand);
    writtenOperands.resize(def.operands.size());
    writtenLets.resize(def.lets.size());
    for (unsigned result : given)
      if (const Formula *formula = def.results[result].formula)
        contribute(formula, toSet(def.results[result].indices), FlopClass::Other);
    for (unsigned let = def.lets.size(); let-- > 0;)
      if (met[let])
        push(def.lets[let].second);
    return std::move(terms);
  }

private:
  /// The positions that indices have: those of a compound one are its members'.
  BitSet toSet(llvm::ArrayRef<unsigned> indices) const {
    BitSet set(def.indices.size());
    for (unsigned index : def.expand(indices))
      set.set(index);
    return set;
  }

  /// A position that follows from others, over which it ranges.
  bool isRouted(const Formula *subscript) const {
    return subscript->kind == Kind::Index && def.routing && def.routing->isRouted(subscript->index);
  }

  void add(FlopClass flopClass, const BitSet &indices, int64_t number) {
    if (number == 0)
      return;
    for (FlopTerm &term : terms)
      if (term.flopClass == flopClass && toSet(term.indices) == indices) {
        term.count += number;
        return;
      }
    FlopTerm term{flopClass, {}, number};
    for (unsigned index : indices.set_bits())
      term.indices.push_back(index);
    terms.push_back(std::move(term));
  }

  //===--- facts ----------------------------------------------------------===//

  const NodeFacts &getFacts(const Formula *f) {
    // Once per node: what chained lets stand for would double at every step.
    if (auto it = facts.find(f); it != facts.end())
      return it->second;
    NodeFacts found = findFacts(f);
    return facts[f] = std::move(found);
  }

  NodeFacts findFacts(const Formula *f) {
    NodeFacts result;
    result.free.resize(def.indices.size());
    if (f->kind == Kind::Let) {
      result = getFacts(def.lets[f->operand].second);
      result.joinsSums = false; // what a let names is there before
      return result;
    }
    for (unsigned i = 0; i < f->children.size(); ++i) {
      const NodeFacts &child = getFacts(f->children[i]);
      result.free |= child.free;
      result.isConstant &= child.isConstant;
      bool isAddress = f->kind == Kind::Element, isCondition = f->kind == Kind::Select && i == 0;
      if (!isAddress && !isCondition)
        result.values |= child.values;
      if (!isAddress && !isCondition && isDifferentiable(f))
        result.smooth |= child.smooth;
    }
    switch (f->kind) {
    case Kind::Index:
      result.free |= isRouted(f) ? toSet(getDeciding(def)) : toSet(f->index);
      result.isConstant = false;
      break;
    case Kind::Random:
      result.free |= toSet(def.results.front().indices);
      result.isConstant = false;
      break;
    case Kind::Element:
      result.values.set(f->operand);
      result.smooth.set(f->operand);
      result.isConstant = false;
      break;
    case Kind::Reduce:
      result.free.reset(toSet(f->indices));
      result.joinsSums = f->reduce == ReduceKind::Sum && !f->isMean;
      break;
    case Kind::Add:
      result.joinsSums = getFacts(f->children[0]).joinsSums && getFacts(f->children[1]).joinsSums;
      break;
    default:
      break;
    }
    return result;
  }

  static bool isDifferentiable(const Formula *f) {
    switch (f->kind) {
    case Kind::Less:
    case Kind::LessEqual:
    case Kind::Equal:
    case Kind::And:
    case Kind::Or:
    case Kind::Not:
    case Kind::Random:
      return false;
    default:
      return f->kind != Kind::Call || f->function != Formula::Function::Floor;
    }
  }

  //===--- contractions ---------------------------------------------------===//

  void findContractions(const Formula *f, BitSet &usedLets) {
    if (f->kind == Kind::Let)
      usedLets.set(f->operand);
    if (f->kind == Kind::Element || f->kind == Kind::Let)
      return;
    if (f->kind == Kind::Reduce && f->reduce == ReduceKind::Sum && addsProducts(f->children[0])) {
      contracting.insert(f);
      markProducts(f->children[0]);
    }
    for (const Formula *child : f->children)
      findContractions(child, usedLets);
  }

  /// Whether a sum over `f` adds up products.
  bool addsProducts(const Formula *f) {
    if (auto it = summed.find(f); it != summed.end())
      return it->second;
    bool result = false;
    if (f->kind == Kind::Let)
      result = addsProducts(def.lets[f->operand].second);
    else if (f->kind == Kind::Add || f->kind == Kind::Sub)
      result = addsProducts(f->children[0]) | addsProducts(f->children[1]);
    else if (f->kind == Kind::Reduce)
      result = f->reduce == ReduceKind::Sum && addsProducts(f->children[0]);
    else if (const Formula *inner = getScaled(f))
      result = addsProducts(inner);
    else
      result = f->kind == Kind::Mul && isProduct(f);
    return summed[f] = result;
  }

  /// Marks what a sum over `f` adds up.
  void markProducts(const Formula *f) {
    llvm::SmallVector<const Formula *, 8> open = {f};
    while (!open.empty()) {
      const Formula *part = open.pop_back_val();
      if (!addsProducts(part) || !marked.insert(part).second)
        continue;
      if (const Formula *inner = getScaled(part)) {
        open.push_back(inner);
      } else if (part->kind == Kind::Let) {
        open.push_back(def.lets[part->operand].second);
      } else if (part->kind == Kind::Mul) {
        markFactors(part);
      } else {
        contracting.insert(part);
        open.append(part->children.begin(), part->children.end());
      }
    }
  }

  /// What `f` negates, masks or divides by a constant; null if it does not.
  const Formula *getScaled(const Formula *f) {
    auto isZero = [](const Formula *g) { return g->kind == Kind::Number && g->number == 0; };
    if (f->kind == Kind::Negate || (f->kind == Kind::Div && getFacts(f->children[1]).isConstant))
      return f->children[0];
    if (f->kind == Kind::Select && isZero(f->children[2]))
      return f->children[1];
    if (f->kind == Kind::Select && isZero(f->children[1]))
      return f->children[2];
    return nullptr;
  }

  /// Calls `visit` for the products that `f` is made of, true, and for their factors, false.
  void forEachFactor(const Formula *f, llvm::function_ref<void(const Formula *, bool)> visit) {
    llvm::SmallVector<const Formula *, 8> open = {f};
    while (!open.empty()) {
      const Formula *part = open.pop_back_val();
      if (const Formula *inner = getScaled(part)) {
        open.push_back(inner);
        continue;
      }
      visit(part, part->kind == Kind::Mul);
      if (part->kind == Kind::Mul)
        open.append(part->children.begin(), part->children.end());
    }
  }

  bool isProduct(const Formula *f) {
    std::vector<OperandSet> factors;
    forEachFactor(f, [&](const Formula *part, bool isProduct) {
      if (!isProduct)
        factors.push_back(getFacts(part).values);
    });
    // Two depend each on what the other does not: the sets of operands are no chain of subsets.
    llvm::sort(factors, [](const OperandSet &a, const OperandSet &b) { return a.count() < b.count(); });
    for (size_t i = 1; i < factors.size(); ++i)
      if (!factors[i].contains(factors[i - 1])) // which has what the larger one has not
        return true;
    return false;
  }

  void markFactors(const Formula *f) {
    forEachFactor(f, [&](const Formula *part, bool isProduct) {
      if (isProduct && !getFacts(part->children[0]).values.empty() && !getFacts(part->children[1]).values.empty())
        contracting.insert(part);
    });
  }

  FlopClass getClass(const Formula *f) const {
    return contracting.contains(f) ? FlopClass::Contraction : FlopClass::Other;
  }

  //===--- forward --------------------------------------------------------===//

  void count(const Formula *f) {
    if (f->kind == Kind::Let)
      met.set(f->operand);
    if (f->kind == Kind::Let || f->kind == Kind::Element || getFacts(f).isConstant)
      return;
    BitSet over = getFacts(f).free;
    switch (f->kind) {
    case Kind::Add:
      if (!getFacts(f).joinsSums)
        add(getClass(f), over, 1);
      break;
    case Kind::Index:
    case Kind::Select:
    case Kind::And:
    case Kind::Or:
    case Kind::Not:
      break;
    case Kind::Reduce:
      over |= toSet(f->indices);
      add(getClass(f), over, 1);
      break;
    case Kind::Call:
      add(FlopClass::Other, over, f->children.size() > 1 ? f->children.size() - 1 : 1);
      break;
    default:
      add(getClass(f), over, 1);
      break;
    }
    for (const Formula *child : f->children)
      count(child);
  }

  //===--- gradients ------------------------------------------------------===//

  bool isActive(const Formula *f) { return getFacts(f).smooth.intersects(wanted); }

  /// The index that a subscript tells apart, or nothing if it is constant; null if it is neither.
  std::optional<BitSet> getInjective(const Formula *subscript) {
    BitSet free = getFacts(subscript).free;
    if (subscript->kind == Kind::Index)
      return free; // also that of a compound index: each of its positions is that of one choice of its members
    if (!getFacts(subscript).values.empty() || free.count() > 1)
      return std::nullopt;
    auto isShift = [&](const Formula *f) {
      while (f->kind != Kind::Index) {
        bool isArithmetic =
            f->kind == Kind::Add || f->kind == Kind::Sub || f->kind == Kind::Mul || f->kind == Kind::Negate;
        const Formula *next = nullptr;
        for (const Formula *child : f->children)
          if (!getFacts(child).isConstant) {
            if (next)
              return false;
            next = child;
          }
        if (!isArithmetic || !next)
          return false;
        f = next;
      }
      return true;
    };
    if (free.any() && !isShift(subscript))
      return std::nullopt;
    return free;
  }

  /// Whether contributions over `from` meet in the gradient of a node.
  bool meets(const Formula *f, const BitSet &from) {
    if (f->kind != Kind::Element)
      return getFacts(f).free != from;
    BitSet seen(def.indices.size());
    // Each slot has one token, each token one slot; several tokens may stand at some of their indices.
    size_t numRouted = llvm::count_if(f->children, [&](const Formula *subscript) { return isRouted(subscript); });
    if (numRouted)
      seen = toSet(def.routing->getRouting());
    if (numRouted && numRouted < def.routing->getRouted().size())
      return true;
    for (const Formula *subscript : f->children) {
      if (isRouted(subscript))
        continue;
      std::optional<BitSet> index = getInjective(subscript);
      if (!index || index->anyCommon(seen))
        return true;
      seen |= *index;
    }
    return seen != from;
  }

  /// Brings the adjoint of a node, which is known over `from`, to its child `f`; where it is summed on the way, the
  /// additions are of `flopClass`.
  void contribute(const Formula *f, const BitSet &from, FlopClass flopClass) {
    if (!isActive(f))
      return;
    bool isSummed = meets(f, from);
    if (isSummed)
      add(flopClass, from, 1);
    if (f->kind != Kind::Element && f->kind != Kind::Let)
      return push(f);
    if (f->kind == Kind::Let)
      met.set(f->operand);
    if (isSummed)
      return;
    // The first that needs no sum is written, what comes to it is added.
    BitSet &written = f->kind == Kind::Let ? writtenLets : writtenOperands;
    if (written.test(f->operand))
      add(FlopClass::Other, from, 1);
    written.set(f->operand);
  }

  /// From the adjoint of `f`, which is complete, to its children.
  void push(const Formula *f) {
    if (f->kind == Kind::Element || f->kind == Kind::Let) { // the root of a let
      contribute(f, getFacts(f).free, FlopClass::Other);
      return;
    }
    BitSet from = getFacts(f).free;
    if (f->kind == Kind::Reduce)
      from |= toSet(f->indices);
    for (unsigned i = 0; i < f->children.size(); ++i) {
      const Formula *child = f->children[i];
      if (!isActive(child) || (f->kind == Kind::Select && i == 0))
        continue;
      // A multiply-add is a contraction where products are added up.
      FlopClass flopClass = f->kind == Kind::Mul && meets(child, from) ? getClass(f) : FlopClass::Other;
      add(flopClass, from, getSlopeFlops(f, i));
      contribute(child, from, flopClass);
    }
  }

  static int64_t getSlopeFlops(const Formula *f, unsigned child) {
    switch (f->kind) {
    case Kind::Negate:
    case Kind::Mul:
      return 1;
    case Kind::Sub:
      return child;
    case Kind::Div:
      return child ? 3 : 1;
    case Kind::Call:
      return f->function == Formula::Function::Max || f->function == Formula::Function::Min ? 0 : 2;
    default:
      return 0;
    }
  }

  const OpDef &def;
  std::vector<FlopTerm> terms;
  llvm::DenseMap<const Formula *, NodeFacts> facts;
  llvm::DenseMap<const Formula *, bool> summed;               ///< See addsProducts().
  llvm::SmallPtrSet<const Formula *, 16> contracting, marked; ///< Parts of sums of products; visited by markProducts().
  BitSet met;                                                 ///< Lets.
  OperandSet wanted;                                          ///< Operands with a gradient.
  BitSet writtenOperands, writtenLets;                        ///< With a contribution that needs no sum.
};
} // namespace

std::vector<FlopTerm> stage::countFlops(const OpDef &def) { return FlopCounter(def).countForward(); }

std::vector<FlopTerm> stage::countGradientFlops(const OpDef &def, llvm::ArrayRef<unsigned> given,
                                                llvm::ArrayRef<unsigned> wanted) {
  return FlopCounter(def).countGradients(given, wanted);
}
