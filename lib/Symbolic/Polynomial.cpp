//===- Polynomial.cpp - sums, products and quotients of sizes -------------===//
//
// Problem: one form for everything that `+ - * /` can say, cheap to build and
// close to what a person would write.
//
//   (B + 1)*(B - 1)             ->  B^2 - 1
//   B*S*D/(tp*2)                ->  1/2 * B D S tp^-1
//   X/(a + b)*(a + b)           ->  X
//   (a^2 + 3*a*b + 2*b^2)/(a + b)  ->  a + 2*b
//
// Algorithm. Products of sums are multiplied out, so a size is a polynomial in its
// atoms and their inverses. The inverse of a sum is the one hard case: it becomes an
// atom D with power -1, made primitive first so that multiples of one sum share it.
// What it divides is reduced as in long division: a monomial that the leading
// monomial of D divides is rewritten,
//
//   lead*q/D  ->  q/c - (rest of D)*q/(c*D),     D = c*lead + rest
//
// until none is left. The result does not depend on how the expression was built:
// remainders are unique, and division is linear, so that adding needs no reduction.
// It ends because each step lowers the monomial in the order of compareMonomials,
// which on one D is a degree-lexicographic monomial order, or the powers of D.
//
// Limits. With several different sums as divisors of one monomial, or an atom as a
// divisor that also stands in such a sum, the result may depend on how it was built
// (there are no partial fractions): `x/(y*(y - x)) + 1/y` and `1/(y - x)` differ. Sums of more than 64 terms are
// neither expanded nor reduced by. A monomial that needs more than 4096 rewrites is left as it is.
//
//===----------------------------------------------------------------------===//
#include "SizeNode.h"
#include <map>

using namespace stage;

using Impl = SizeContext::Impl;

constexpr unsigned maxRewrites = 4096;

namespace {
struct MonomialOrder {
  bool operator()(const Monomial *a, const Monomial *b) const { return compareMonomials(a, b) < 0; }
};
} // namespace

//===----------------------------------------------------------------------===//
// Monomials
//===----------------------------------------------------------------------===//

const Monomial *Impl::mulMonomials(const Monomial *a, const Monomial *b) {
  if (a == unit)
    return b;
  if (b == unit)
    return a;
  llvm::SmallVector<Factor, 8> factors;
  const Factor *i = a->factors.begin(), *j = b->factors.begin();
  while (i != a->factors.end() || j != b->factors.end()) {
    int order = i == a->factors.end() ? 1 : j == b->factors.end() ? -1 : compareAtoms(i->atom, j->atom);
    if (order < 0) {
      factors.push_back(*i++);
    } else if (order > 0) {
      factors.push_back(*j++);
    } else {
      int64_t power = int64_t(i->power) + j->power;
      if (std::abs(power) > maxPower)
        return nullptr;
      if (power)
        factors.push_back({i->atom, int32_t(power)});
      ++i, ++j;
    }
  }
  return monomial(factors);
}

const Monomial *Impl::invertMonomial(const Monomial *a) {
  llvm::SmallVector<Factor, 8> factors(a->factors.begin(), a->factors.end());
  for (Factor &factor : factors)
    factor.power = -factor.power;
  return monomial(factors);
}

/// Whether `divisor`, which has no negative powers, divides `a` atom by atom.
static bool divides(const Monomial *divisor, const Monomial *a) {
  const Factor *it = a->factors.begin();
  for (const Factor &factor : divisor->factors) {
    while (it != a->factors.end() && it->atom != factor.atom)
      ++it;
    if (it == a->factors.end() || it->power < factor.power)
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

Size Impl::collect(llvm::SmallVectorImpl<Term> &terms) {
  llvm::sort(terms, [](const Term &a, const Term &b) { return compareMonomials(a.monomial, b.monomial) < 0; });
  size_t kept = 0;
  for (size_t i = 0; i < terms.size();) {
    Term sum = terms[i];
    for (++i; i < terms.size() && terms[i].monomial == sum.monomial; ++i) {
      std::optional<Rational> next = sum.coefficient.add(terms[i].coefficient);
      if (!next)
        return overflow;
      sum.coefficient = *next;
    }
    if (sum.coefficient.num != 0)
      terms[kept++] = sum;
  }
  terms.resize(kept, Term{{}, unit});
  return size(terms);
}

Size Impl::add(Size a, Size b) {
  if (Size poison = poisonOf(a, b))
    return poison;
  llvm::ArrayRef<Term> left = a.getNode()->terms, right = b.getNode()->terms;
  llvm::SmallVector<Term, 8> terms;
  const Term *i = left.begin(), *j = right.begin();
  while (i != left.end() || j != right.end()) {
    int order = i == left.end() ? 1 : j == right.end() ? -1 : compareMonomials(i->monomial, j->monomial);
    if (order < 0) {
      terms.push_back(*i++);
    } else if (order > 0) {
      terms.push_back(*j++);
    } else {
      std::optional<Rational> sum = i->coefficient.add(j->coefficient);
      if (!sum)
        return overflow;
      if (sum->num != 0)
        terms.push_back({*sum, i->monomial});
      ++i, ++j;
    }
  }
  return size(terms);
}

Size Impl::scale(Size a, const Rational &factor) {
  if (isPoison(a) || factor == Rational::integer(1))
    return a;
  if (factor.num == 0)
    return zero;
  llvm::SmallVector<Term, 8> terms(a.getNode()->terms.begin(), a.getNode()->terms.end());
  for (Term &term : terms) {
    std::optional<Rational> product = term.coefficient.mul(factor);
    if (!product)
      return overflow;
    term.coefficient = *product;
  }
  return size(terms);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The factor of a monomial that normalize() has to rewrite, or null.
static const Factor *findReducible(const Monomial *monomial) {
  for (const Factor &factor : monomial->factors) {
    if (factor.atom->kind != AtomKind::Sum)
      continue;
    llvm::ArrayRef<Term> sum = factor.atom->args[0].getNode()->terms;
    bool expandable = sum.size() <= maxExpandedTerms;
    bool alone = monomial->factors.size() == 1 && factor.power == 1;
    if (factor.power > 0 ? expandable || alone : expandable && divides(sum[0].monomial, monomial))
      return &factor;
  }
  return nullptr;
}

/// Appends what a term is when factor sums are expanded and cancelled. False on overflow.
bool Impl::normalize(const Term &term, llvm::SmallVectorImpl<Term> &terms) {
  if (!term.monomial->hasSum) {
    terms.push_back(term);
    return true;
  }
  // The first monomial in order first: what it is rewritten to comes later, and adds up there.
  std::map<const Monomial *, Rational, MonomialOrder> pending;
  pending[term.monomial] = term.coefficient;
  auto push = [&](const std::optional<Rational> &coefficient, const Monomial *monomial) {
    if (!coefficient || !monomial)
      return false;
    std::optional<Rational> sum = pending[monomial].add(*coefficient);
    if (!sum)
      return false;
    pending[monomial] = *sum;
    return true;
  };
  for (unsigned rewrites = 0; !pending.empty();) {
    auto [current, coefficient] = *pending.begin();
    pending.erase(pending.begin());
    if (coefficient.num == 0)
      continue;
    const Factor *factor = rewrites < maxRewrites ? findReducible(current) : nullptr;
    if (!factor) {
      terms.push_back({coefficient, current});
      continue;
    }
    ++rewrites;
    llvm::ArrayRef<Term> sum = factor->atom->args[0].getNode()->terms;
    const Monomial *inverse = monomial(Factor{factor->atom, -1});
    if (factor->power > 0) {
      const Monomial *rest = mulMonomials(current, inverse);
      for (const Term &part : sum)
        if (!push(coefficient.mul(part.coefficient), mulMonomials(rest, part.monomial)))
          return false;
      continue;
    }
    std::optional<Rational> quotient = coefficient.div(sum[0].coefficient);
    const Monomial *rest = mulMonomials(current, invertMonomial(sum[0].monomial));
    if (!quotient || !push(quotient, mulMonomials(rest, monomial(Factor{factor->atom, 1}))))
      return false;
    for (const Term &part : sum.drop_front()) {
      std::optional<Rational> product = Rational{}.sub(*quotient);
      product = product ? product->mul(part.coefficient) : product;
      if (!push(product, mulMonomials(rest, part.monomial)))
        return false;
    }
  }
  return true;
}

Size Impl::asFactor(Size a) {
  if (a.getNode()->terms.size() <= maxExpandedTerms)
    return a;
  std::optional<Split> split = splitContent(a);
  if (!split)
    return overflow;
  if (split->primitive.getNode()->depth >= maxDepth)
    return tooDeep;
  return ofTerm(split->coefficient, monomial(Factor{atom(AtomKind::Sum, "", split->primitive), 1}));
}

Size Impl::mul(Size a, Size b) {
  if (a == one)
    return b;
  if (b == one)
    return a;
  auto found = products.find({a.getNode(), b.getNode()});
  if (found != products.end())
    return found->second;
  Size product = computeProduct(a, b);
  products[{a.getNode(), b.getNode()}] = product;
  return product;
}

Size Impl::computeProduct(Size a, Size b) {
  if (Size poison = poisonOf(a, b))
    return poison;
  if (std::optional<Rational> factor = a.getConstant())
    return scale(b, *factor);
  if (std::optional<Rational> factor = b.getConstant())
    return scale(a, *factor);
  a = asFactor(a);
  b = asFactor(b);
  if (Size poison = poisonOf(a, b))
    return poison;
  llvm::SmallVector<Term, 16> terms;
  for (const Term &left : a.getNode()->terms)
    for (const Term &right : b.getNode()->terms) {
      std::optional<Rational> coefficient = left.coefficient.mul(right.coefficient);
      const Monomial *product = mulMonomials(left.monomial, right.monomial);
      if (!coefficient || !product || !normalize({*coefficient, product}, terms))
        return overflow;
    }
  return collect(terms);
}

Size Impl::power(Size base, unsigned exponent) {
  Size result = one;
  for (Size square = base; exponent; exponent >>= 1) {
    if (exponent & 1)
      result = mul(result, square);
    if (exponent > 1)
      square = mul(square, square);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Quotients
//===----------------------------------------------------------------------===//

/// The lowest power of each atom over all terms, an absent atom having power zero.
static llvm::SmallVector<Factor, 8> lowestPowers(llvm::ArrayRef<Term> terms) {
  llvm::SmallVector<Factor, 8> lowest(terms[0].monomial->factors.begin(), terms[0].monomial->factors.end());
  for (const Term &term : terms.drop_front()) {
    llvm::SmallVector<Factor, 8> merged;
    const Factor *i = lowest.begin(), *j = term.monomial->factors.begin(), *end = term.monomial->factors.end();
    while (i != lowest.end() || j != end) {
      int order = i == lowest.end() ? 1 : j == end ? -1 : compareAtoms(i->atom, j->atom);
      Factor factor = order <= 0 ? *i : *j;
      factor.power = std::min(order <= 0 ? i->power : 0, order >= 0 ? j->power : 0);
      i += order <= 0;
      j += order >= 0;
      if (factor.power)
        merged.push_back(factor);
    }
    lowest = std::move(merged);
  }
  return lowest;
}

/// The largest rational of which all coefficients are integral multiples, with the sign of the first.
static std::optional<Rational> commonCoefficient(llvm::ArrayRef<Term> terms) {
  unsigned __int128 num = 0, den = 1;
  for (const Term &term : terms) {
    const Rational &value = term.coefficient;
    unsigned __int128 other = value.den;
    num = greatestCommonDivisor(num, value.num < 0 ? -(unsigned __int128)value.num : value.num);
    if (__builtin_mul_overflow(den, other / greatestCommonDivisor(den, other), &den) || den >> 127)
      return std::nullopt;
  }
  __int128 sign = terms[0].coefficient.num < 0 ? -1 : 1;
  return num >> 127 ? std::nullopt : Rational::make(sign * __int128(num), __int128(den));
}

std::optional<Impl::Split> Impl::splitContent(Size a) {
  Split result{Rational::integer(1), unit, a};
  // Taking out a divisor that is itself a sum expands that sum, after which more may be common: `1 + x/(a + b)`.
  while (true) {
    llvm::ArrayRef<Term> terms = result.primitive.getNode()->terms;
    std::optional<Rational> common = commonCoefficient(terms);
    std::optional<Rational> coefficient = common ? result.coefficient.mul(*common) : std::nullopt;
    std::optional<Rational> inverse = common ? Rational::make(common->den, common->num) : std::nullopt;
    if (!coefficient || !inverse)
      return std::nullopt;
    result.coefficient = *coefficient;
    result.primitive = scale(result.primitive, *inverse);
    if (terms.size() > maxExpandedTerms)
      return result;
    const Monomial *lowest = monomial(lowestPowers(terms));
    if (lowest == unit)
      return result;
    result.monomial = mulMonomials(result.monomial, lowest);
    result.primitive = mul(result.primitive, ofTerm(Rational::integer(1), invertMonomial(lowest)));
    if (!result.monomial || isPoison(result.primitive))
      return std::nullopt;
  }
}

Size Impl::inverse(Size a) {
  auto found = inverses.find(a.getNode());
  if (found != inverses.end())
    return found->second;
  Size inverse = computeInverse(a);
  inverses[a.getNode()] = inverse;
  return inverse;
}

Size Impl::computeInverse(Size a) {
  if (isPoison(a))
    return a;
  if (a == zero)
    return undefined;
  std::optional<Split> split = splitContent(a);
  std::optional<Rational> coefficient =
      split ? Rational::make(split->coefficient.den, split->coefficient.num) : std::nullopt;
  if (!coefficient)
    return overflow;
  // The content may have had sums as divisors; upside down they are factors, to be expanded.
  llvm::SmallVector<Term, 8> terms;
  if (!normalize({*coefficient, invertMonomial(split->monomial)}, terms))
    return overflow;
  Size content = collect(terms);
  if (split->primitive == one)
    return content;
  if (split->primitive.getNode()->depth >= maxDepth)
    return tooDeep;
  return mul(content, ofTerm(Rational::integer(1), monomial(Factor{atom(AtomKind::Sum, "", split->primitive), -1})));
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

static Impl &implOf(Size size) { return size.getContext().getImpl(); }

Size stage::operator+(Size a, Size b) { return implOf(a).add(a, b); }
Size stage::operator-(Size a, Size b) { return a + b * -1; }
Size stage::operator*(Size a, Size b) { return implOf(a).mul(a, b); }
Size stage::operator/(Size a, Size b) { return implOf(a).mul(a, implOf(a).inverse(b)); }
Size stage::operator+(Size a, int64_t b) { return a + a.getContext().constant(b); }
Size stage::operator-(Size a, int64_t b) { return a - a.getContext().constant(b); }
Size stage::operator*(Size a, int64_t b) { return implOf(a).scale(a, Rational::integer(b)); }
Size stage::operator/(Size a, int64_t b) { return a / a.getContext().constant(b); }
