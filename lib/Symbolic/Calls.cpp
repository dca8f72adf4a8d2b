//===- Calls.cpp - min, max, ceildiv, div, %, lookups and shares ----------===//
//
// Problem: say as much as possible about what is not a polynomial, without
// assuming the values of symbols (only that divisors are not zero).
//
//   (6*x) div (2*x)             ->  3
//   ceildiv(V/dp, tp)           ->  ceildiv(V, dp*tp)
//   (4*x) % (6*y)               ->  2*((2*x) % (3*y))
//   min(p, min(m, p + 1))       ->  min(m, p)
//
// All three divisions start from the exact quotient: where it is integral, or a
// constant, they are done. `div` and `ceildiv` see the quotient only, so it is made a
// fraction in lowest terms again. `%` scales with its operands, so only what both
// have in common is taken out: `(S/cp) % 2` stays as it was written.
//
//===----------------------------------------------------------------------===//
#include "SizeNode.h"

using namespace stage;

using Impl = SizeContext::Impl;

/// A second round is rare and a third was never seen; the limit is there because nothing proves that there is none.
constexpr unsigned maxRounds = 8;

/// The least common denominator of the terms of a quotient: of the coefficients, and of each atom its lowest power
/// below zero; `overflow()` on overflow.
Size Impl::commonDenominator(Size quotient) {
  Rational common = Rational::integer(1);
  const Monomial *divisors = unit;
  for (const Term &term : quotient.getNode()->terms) {
    std::optional<Rational> scaled = term.coefficient.mul(common);
    scaled = scaled ? Rational{scaled->den, 1}.mul(common) : scaled;
    if (!scaled)
      return overflow;
    common = *scaled;
    llvm::SmallVector<Factor, 4> missing;
    const Monomial *left = mulMonomials(term.monomial, divisors);
    if (!left)
      return overflow;
    for (const Factor &factor : left->factors)
      if (factor.power < 0)
        missing.push_back({factor.atom, -factor.power});
    divisors = mulMonomials(divisors, monomial(missing));
    if (!divisors)
      return overflow;
  }
  return scale(inverse(ofTerm(Rational::integer(1), invertMonomial(divisors))), common);
}

Size Impl::divide(AtomKind kind, Size a, Size b) {
  bool isCeiling = kind == AtomKind::CeilDiv;
  auto known = quotients[isCeiling].find({a.getNode(), b.getNode()});
  if (known != quotients[isCeiling].end())
    return known->second;
  Size quotient = computeQuotient(kind, a, b);
  quotients[isCeiling][{a.getNode(), b.getNode()}] = quotient;
  return quotient;
}

Size Impl::computeQuotient(AtomKind kind, Size a, Size b) {
  Size quotient = mul(a, inverse(b));
  for (unsigned round = 0;; ++round) {
    if (isPoison(quotient) || quotient.isIntegral())
      return quotient;
    if (std::optional<Rational> value = quotient.getConstant())
      return context.constant(kind == AtomKind::FloorDiv ? value->floor() : value->ceil());
    Size denominator = commonDenominator(quotient);
    Size numerator = mul(quotient, denominator);
    // Over one denominator more may cancel than term by term: `x/(y*(y - x)) + 1/y` is `1/(y - x)`.
    Size reduced = mul(numerator, inverse(denominator));
    if (Size poison = poisonOf(numerator, reduced))
      return poison;
    if (reduced == quotient || round == maxRounds)
      return call(kind, {numerator, denominator});
    quotient = reduced;
  }
}

/// The powers that two monomials share, above and below zero.
static llvm::SmallVector<Factor, 8> sharedPowers(const Monomial *a, const Monomial *b) {
  llvm::SmallVector<Factor, 8> shared;
  for (const Factor &left : a->factors)
    for (const Factor &right : b->factors)
      if (left.atom == right.atom && (left.power < 0) == (right.power < 0))
        shared.push_back({left.atom, std::abs(left.power) < std::abs(right.power) ? left.power : right.power});
  return shared;
}

Size Impl::mod(Size a, Size b) {
  Size quotient = mul(a, inverse(b));
  if (isPoison(quotient))
    return quotient;
  if (quotient.isIntegral())
    return zero;
  if (std::optional<Rational> value = quotient.getConstant()) {
    std::optional<Rational> fraction = value->sub(value->floor());
    return fraction ? scale(b, *fraction) : overflow;
  }
  std::optional<Split> left = splitContent(a), right = splitContent(b);
  if (!left || !right)
    return overflow;
  auto magnitude = [](const Rational &value) -> unsigned __int128 { return value.num < 0 ? -value.num : value.num; };
  Rational shared{__int128(greatestCommonDivisor(magnitude(left->coefficient), magnitude(right->coefficient))),
                  __int128(greatestCommonDivisor(left->coefficient.den, right->coefficient.den))};
  Size factor = ofTerm(shared, monomial(sharedPowers(left->monomial, right->monomial)));
  Size divisor = inverse(factor);
  Size dividend = mul(a, divisor);
  divisor = mul(b, divisor);
  if (Size poison = poisonOf(dividend, divisor))
    return poison;
  return mul(factor, call(AtomKind::Mod, {dividend, divisor}));
}

Size Impl::extremum(AtomKind kind, Size a, Size b) {
  if (Size poison = poisonOf(a, b))
    return poison;
  llvm::SmallVector<Size, 8> args;
  auto insert = [&](Size candidate) {
    for (Size &arg : args) {
      // Where two arguments differ by a constant one of them never counts.
      std::optional<Rational> difference = add(candidate, scale(arg, Rational::integer(-1))).getConstant();
      if (!difference)
        continue;
      if (kind == AtomKind::Min ? difference->num < 0 : difference->num > 0)
        arg = candidate;
      return;
    }
    args.push_back(candidate);
  };
  for (Size operand : {a, b}) {
    llvm::ArrayRef<Term> terms = operand.getNode()->terms;
    bool nested = terms.size() == 1 && terms[0].coefficient == Rational::integer(1) &&
                  terms[0].monomial->factors.size() == 1 && terms[0].monomial->factors[0].power == 1 &&
                  terms[0].monomial->factors[0].atom->kind == kind;
    if (!nested)
      insert(operand);
    else
      llvm::for_each(terms[0].monomial->factors[0].atom->args, insert);
  }
  if (args.size() == 1)
    return args[0];
  llvm::sort(args, [](Size a, Size b) { return compareSizes(a, b) < 0; });
  return call(kind, args);
}

/// Nothing is known of the entries: two lookups are the same if their indices are.
Size Impl::lookup(llvm::StringRef table, llvm::ArrayRef<Size> indices) {
  for (Size index : indices)
    if (isPoison(index))
      return index;
  return call(AtomKind::Lookup, indices, table);
}

/// All blocks together get all of it.
Size Impl::share(AtomKind kind, llvm::StringRef table, llvm::ArrayRef<Size> args) {
  for (Size arg : args)
    if (isPoison(arg))
      return arg;
  return kind == AtomKind::Share && args.size() == 1 ? args.front() : call(kind, args, table);
}

static llvm::SmallVector<Size, 5> listShareArgs(Size total, llvm::ArrayRef<std::pair<Size, Size>> blocks) {
  llvm::SmallVector<Size, 5> args = {total};
  for (auto [index, count] : blocks) {
    args.push_back(index);
    args.push_back(count);
  }
  return args;
}

Size SizeContext::share(llvm::StringRef table, Size total, llvm::ArrayRef<std::pair<Size, Size>> blocks) {
  return impl->share(AtomKind::Share, table, listShareArgs(total, blocks));
}

Size SizeContext::countShares(llvm::StringRef table, Size total, llvm::ArrayRef<std::pair<Size, Size>> blocks) {
  return impl->share(AtomKind::ShareCount, table, listShareArgs(total, blocks));
}

Size SizeContext::lookup(llvm::StringRef table, llvm::ArrayRef<Size> indices) { return impl->lookup(table, indices); }
Size SizeContext::largestEntry() { return impl->largestEntry; }
Size SizeContext::sumOfEntries() { return impl->sumOfEntries; }

static Impl &implOf(Size size) { return size.getContext().getImpl(); }

Size Size::floorDiv(Size divisor) const { return implOf(*this).divide(AtomKind::FloorDiv, *this, divisor); }
Size Size::ceilDiv(Size divisor) const { return implOf(*this).divide(AtomKind::CeilDiv, *this, divisor); }
Size Size::mod(Size divisor) const { return implOf(*this).mod(*this, divisor); }
Size stage::min(Size a, Size b) { return implOf(a).extremum(AtomKind::Min, a, b); }
Size stage::max(Size a, Size b) { return implOf(a).extremum(AtomKind::Max, a, b); }
