//===- Evaluate.cpp - values, substitution and symbols of sizes -----------===//
#include "SizeNode.h"
#include "llvm/ADT/StringSet.h"

using namespace stage;

namespace {
/// Evaluates under one binding. Calls are shared between sizes, so each is computed once.
class Evaluator {
public:
  explicit Evaluator(const SizeBinding &binding) : binding(binding) {}

  SizeValue evaluate(Size size) {
    SizeValue sum;
    for (const Term &term : size.getNode()->terms) {
      SizeValue product{SizeError::None, "", term.coefficient};
      for (const Factor &factor : term.monomial->factors) {
        SizeValue value = evaluate(factor.atom);
        if (!value)
          return value;
        product = multiply(product, power(value.value, factor.power));
        if (!product)
          return product;
      }
      sum = checked(sum.value.add(product.value));
      if (!sum)
        return sum;
    }
    return sum;
  }

private:
  static SizeValue fail(SizeError error) { return {error, "", {}}; }
  static SizeValue checked(const std::optional<Rational> &value) {
    return value ? SizeValue{SizeError::None, "", *value} : fail(SizeError::Overflow);
  }
  static SizeValue multiply(const SizeValue &a, const SizeValue &b) {
    return b ? checked(a.value.mul(b.value)) : b;
  }

  /// By squaring, so that a huge power of one ends at once and of two overflows at once.
  static SizeValue power(Rational base, int32_t exponent) {
    if (exponent < 0) {
      if (base.num == 0)
        return fail(SizeError::DivisionByZero);
      std::optional<Rational> inverse = Rational::make(base.den, base.num);
      if (!inverse)
        return fail(SizeError::Overflow);
      base = *inverse;
    }
    SizeValue result{SizeError::None, "", Rational::integer(1)}, square{SizeError::None, "", base};
    for (uint32_t rest = std::abs(exponent);;) {
      if (rest & 1)
        result = multiply(result, square);
      rest >>= 1;
      if (!result || !rest)
        return result;
      square = multiply(square, square);
      if (!square)
        return square;
    }
  }

  SizeValue evaluate(const Atom *atom) {
    if (atom->kind == AtomKind::Symbol) {
      if (std::optional<int64_t> value = binding.lookup(atom->name))
        return {SizeError::None, "", Rational::integer(*value)};
      return {SizeError::UnboundSymbol, atom->name.str(), {}};
    }
    auto found = known.find(atom);
    if (found != known.end())
      return found->second;
    SizeValue value = evaluateCall(atom);
    known[atom] = value;
    return value;
  }

  SizeValue evaluateCall(const Atom *atom) {
    if (atom->kind == AtomKind::Overflow)
      return fail(SizeError::Overflow);
    if (atom->kind == AtomKind::TooDeep)
      return fail(SizeError::TooDeep);
    if (atom->kind == AtomKind::Undefined)
      return fail(SizeError::DivisionByZero);
    SizeValue first = evaluate(atom->args[0]);
    for (Size arg : atom->args.drop_front()) {
      if (!first)
        return first;
      SizeValue next = evaluate(arg);
      if (!next)
        return next;
      first = apply(atom->kind, first.value, next.value);
    }
    return first;
  }

  static SizeValue apply(AtomKind kind, const Rational &a, const Rational &b) {
    if (kind == AtomKind::Min)
      return checked(a.compare(b) <= 0 ? a : b);
    if (kind == AtomKind::Max)
      return checked(a.compare(b) >= 0 ? a : b);
    if (b.num == 0)
      return fail(SizeError::DivisionByZero);
    std::optional<Rational> quotient = a.div(b);
    if (!quotient)
      return fail(SizeError::Overflow);
    if (kind == AtomKind::CeilDiv)
      return checked(quotient->ceil());
    if (kind == AtomKind::FloorDiv)
      return checked(quotient->floor());
    assert(kind == AtomKind::Mod && "not a call of two arguments");
    std::optional<Rational> fraction = quotient->sub(quotient->floor());
    return checked(fraction ? fraction->mul(b) : fraction);
  }

  const SizeBinding &binding;
  llvm::DenseMap<const Atom *, SizeValue> known;
};

/// Rebuilds a size bottom up from replaced symbols.
class Substituter {
public:
  Substituter(SizeContext &context, llvm::function_ref<Size(llvm::StringRef)> replacement)
      : context(context), replacement(replacement) {}

  Size rebuild(Size size) {
    Size sum = context.zero();
    for (const Term &term : size.getNode()->terms) {
      Size product = context.constant(term.coefficient);
      for (const Factor &factor : term.monomial->factors) {
        Size atom = rebuild(factor.atom);
        atom = factor.power > 0 ? atom : context.one() / atom;
        product = product * context.getImpl().power(atom, std::abs(factor.power));
      }
      sum = sum + product;
    }
    return sum;
  }

private:
  Size rebuild(const Atom *atom) {
    auto found = known.find(atom);
    if (found != known.end())
      return found->second;
    Size result = rebuildCall(atom);
    known[atom] = result;
    return result;
  }

  Size rebuildCall(const Atom *atom) {
    if (atom->kind == AtomKind::Symbol) {
      Size result = replacement(atom->name);
      return result ? result : context.symbol(atom->name);
    }
    if (atom->args.empty())
      return context.getImpl().ofAtom(atom);
    Size result = rebuild(atom->args[0]);
    for (Size arg : atom->args.drop_front())
      result = apply(atom->kind, result, rebuild(arg));
    return result;
  }

  static Size apply(AtomKind kind, Size a, Size b) {
    switch (kind) {
    case AtomKind::Mod:
      return a.mod(b);
    case AtomKind::FloorDiv:
      return a.floorDiv(b);
    case AtomKind::CeilDiv:
      return a.ceilDiv(b);
    case AtomKind::Min:
      return min(a, b);
    case AtomKind::Max:
      return max(a, b);
    default:
      llvm_unreachable("not a call of two arguments");
    }
  }

  SizeContext &context;
  llvm::function_ref<Size(llvm::StringRef)> replacement;
  llvm::DenseMap<const Atom *, Size> known;
};
} // namespace

SizeValue stage::evaluate(Size size, const SizeBinding &binding) { return Evaluator(binding).evaluate(size); }

SizeValue stage::evaluateCount(Size size, const SizeBinding &binding) {
  SizeValue result = evaluate(size, binding);
  if (!result)
    return result;
  if (!result.value.isInteger())
    result.error = SizeError::NotAnInteger;
  else if (result.value.num < 0)
    result.error = SizeError::Negative;
  else if (result.value.num != int64_t(result.value.num))
    result.error = SizeError::Overflow;
  return result;
}

Size stage::substitute(Size size, llvm::function_ref<Size(llvm::StringRef symbol)> replacement) {
  return Substituter(size.getContext(), replacement).rebuild(size);
}

static void collect(Size size, llvm::StringSet<> &names, llvm::DenseSet<const Atom *> &seen) {
  for (const Term &term : size.getNode()->terms)
    for (const Factor &factor : term.monomial->factors) {
      if (!seen.insert(factor.atom).second)
        continue;
      if (factor.atom->kind == AtomKind::Symbol)
        names.insert(factor.atom->name);
      for (Size arg : factor.atom->args)
        collect(arg, names, seen);
    }
}

std::vector<std::string> stage::collectSymbols(Size size) {
  llvm::StringSet<> names;
  llvm::DenseSet<const Atom *> seen;
  collect(size, names, seen);
  std::vector<std::string> result;
  for (const auto &name : names)
    result.push_back(name.first().str());
  llvm::sort(result);
  return result;
}
