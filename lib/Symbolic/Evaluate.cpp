//===- Evaluate.cpp - values, substitution and symbols of sizes -----------===//
#include "SizeNode.h"
#include "llvm/ADT/StringSet.h"
#include <numeric>

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
  static SizeValue multiply(const SizeValue &a, const SizeValue &b) { return b ? checked(a.value.mul(b.value)) : b; }

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

  SizeValue evaluateLookup(const Atom *atom) {
    std::shared_ptr<const SizeTable> table = binding.lookupTable(atom->name);
    if (!table)
      return {SizeError::UnboundSymbol, atom->name.str(), {}};
    llvm::SmallVector<std::optional<int64_t>, 2> indices; // nothing: all of them
    bool isEntry = atom->args.size() == table->dims.size();
    std::string text;
    for (size_t d = 0; d < atom->args.size(); ++d) {
      AtomKind kind = getKind(atom->args[d]);
      text += (d ? ", " : "");
      if (kind == AtomKind::LargestEntry || kind == AtomKind::SumOfEntries) {
        indices.emplace_back();
        text += kind == AtomKind::LargestEntry ? "max" : "sum";
        continue;
      }
      SizeValue index = evaluate(atom->args[d]);
      if (!index)
        return index;
      text += index.value.str();
      isEntry &=
          index.value.isInteger() && index.value.num >= 0 && d < table->dims.size() && index.value.num < table->dims[d];
      indices.emplace_back(index.value.num);
    }
    if (!isEntry)
      return {SizeError::NoEntry, (atom->name + "[" + text + "]").str(), {}};
    if (llvm::all_of(indices, [](std::optional<int64_t> index) { return index.has_value(); }))
      return combine(*table, atom, indices, 0);
    std::vector<int64_t> asked;
    for (auto [index, arg] : llvm::zip(indices, atom->args))
      asked.push_back(index ? *index : -1 - int64_t(getKind(arg)));
    auto [combined, isNew] = table->combined.values.try_emplace(std::move(asked));
    if (isNew)
      if (SizeValue value = combine(*table, atom, indices, 0))
        combined->second = value.value;
    return checked(combined->second);
  }

  /// The entries that agree with the indices from dimension `indices.size()` on back, of which those before are
  /// `position`.
  static SizeValue combine(const SizeTable &table, const Atom *atom, llvm::ArrayRef<std::optional<int64_t>> indices,
                           int64_t position) {
    if (indices.empty())
      return {SizeError::None, "", Rational::integer(table.entries[position])};
    size_t dim = table.dims.size() - indices.size();
    position *= table.dims[dim];
    if (indices.front())
      return combine(table, atom, indices.drop_front(), position + *indices.front());
    bool isSum = getKind(atom->args[dim]) == AtomKind::SumOfEntries;
    SizeValue result = combine(table, atom, indices.drop_front(), position);
    for (int64_t i = 1; i < table.dims[dim] && result; ++i) {
      SizeValue next = combine(table, atom, indices.drop_front(), position + i);
      if (!next)
        return next;
      if (isSum)
        result = checked(result.value.add(next.value));
      else if (next.value.compare(result.value) > 0)
        result = next;
    }
    return result;
  }

  SizeValue evaluateShare(const Atom *atom) {
    std::shared_ptr<const SizeTable> table = binding.lookupTable(atom->name);
    if (!table)
      return {SizeError::UnboundSymbol, atom->name.str(), {}};
    std::vector<int64_t> asked; // -1 for the one that gets most
    int64_t numBlocks = 1;
    bool isGood = table->dims.size() == 1;
    bool isCount = atom->kind == AtomKind::ShareCount;
    std::string text = (isCount ? "shares(" : "share(") + atom->name.str();
    for (size_t i = 0; i < atom->args.size(); ++i) {
      bool isLargest = i % 2 == 1 && getKind(atom->args[i]) == AtomKind::LargestEntry;
      SizeValue value = isLargest ? SizeValue() : evaluate(atom->args[i]);
      if (!value)
        return value;
      text += ", " + (isLargest ? "max" : value.value.str());
      isGood &= value.value.isInteger() && value.value.num >= 0 && !isTooLarge(value.value);
      asked.push_back(isLargest ? -1 : int64_t(value.value.num));
      if (i > 0 && i % 2 == 0) { // a number of blocks
        isGood &= asked.back() > 0 && asked[i - 1] < asked.back() &&
                  !__builtin_mul_overflow(numBlocks, asked.back(), &numBlocks);
      }
    }
    if (!isGood || int64_t(table->entries.size()) % numBlocks != 0 ||
        llvm::none_of(table->entries, [](int64_t entry) { return entry > 0; }))
      return {SizeError::NoEntry, text + ")", {}};
    std::vector<int64_t> key = asked;
    if (isCount)
      key.push_back(-2);
    auto [known, isNew] = table->combined.values.try_emplace(std::move(key));
    if (isNew) {
      auto [shares, isFirst] = table->combined.shares.try_emplace(asked.front());
      if (isFirst)
        shares->second = apportion(table->entries, asked.front());
      std::vector<int64_t> counted = shares->second;
      for (int64_t &share : counted)
        share = isCount ? share > 0 : share;
      known->second = Rational::integer(addUpBlock(counted, llvm::makeArrayRef(asked).drop_front()));
    }
    return checked(known->second);
  }

  /// What the block gets that pairs of an index and a number of blocks say.
  static int64_t addUpBlock(llvm::ArrayRef<int64_t> shares, llvm::ArrayRef<int64_t> blocks) {
    if (blocks.empty())
      return std::accumulate(shares.begin(), shares.end(), int64_t(0));
    size_t length = shares.size() / blocks[1];
    if (blocks[0] >= 0)
      return addUpBlock(shares.slice(blocks[0] * length, length), blocks.drop_front(2));
    int64_t most = 0;
    for (; !shares.empty(); shares = shares.drop_front(length))
      most = std::max(most, addUpBlock(shares.take_front(length), blocks.drop_front(2)));
    return most;
  }

  /// Of a size that is one call or symbol.
  static std::optional<AtomKind> findKind(Size size) {
    llvm::ArrayRef<Term> terms = size.getNode()->terms;
    if (terms.size() != 1 || terms[0].monomial->factors.size() != 1)
      return std::nullopt;
    return terms[0].monomial->factors[0].atom->kind;
  }
  static AtomKind getKind(Size size) { return findKind(size).value_or(AtomKind::Sum); }

  SizeValue evaluateCall(const Atom *atom) {
    if (atom->kind == AtomKind::Lookup)
      return evaluateLookup(atom);
    if (atom->kind == AtomKind::Share || atom->kind == AtomKind::ShareCount)
      return evaluateShare(atom);
    if (atom->kind == AtomKind::Overflow)
      return fail(SizeError::Overflow);
    if (atom->kind == AtomKind::TooDeep)
      return fail(SizeError::TooDeep);
    if (atom->kind == AtomKind::Undefined)
      return fail(SizeError::DivisionByZero);
    if (atom->args.empty())
      return fail(SizeError::NoEntry); // what stands for an index, and in none
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
    if (atom->kind == AtomKind::Lookup) {
      llvm::SmallVector<Size, 2> indices;
      for (Size index : atom->args)
        indices.push_back(rebuild(index));
      return context.lookup(atom->name, indices);
    }
    if (atom->kind == AtomKind::Share || atom->kind == AtomKind::ShareCount) {
      llvm::SmallVector<Size, 5> args;
      for (Size arg : atom->args)
        args.push_back(rebuild(arg));
      return context.getImpl().share(atom->kind, atom->name, args);
    }
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

/// Calls `f` for each atom in a size and in the arguments of its calls, each once.
static void forEachAtom(Size size, llvm::function_ref<void(const Atom &)> f, llvm::DenseSet<const Atom *> &seen) {
  for (const Term &term : size.getNode()->terms)
    for (const Factor &factor : term.monomial->factors) {
      if (!seen.insert(factor.atom).second)
        continue;
      f(*factor.atom);
      for (Size arg : factor.atom->args)
        forEachAtom(arg, f, seen);
    }
}
static void forEachAtom(Size size, llvm::function_ref<void(const Atom &)> f) {
  llvm::DenseSet<const Atom *> seen;
  forEachAtom(size, f, seen);
}

std::vector<SizeLookup> stage::collectLookups(Size size) {
  std::vector<SizeLookup> lookups;
  forEachAtom(size, [&](const Atom &atom) {
    if (atom.kind == AtomKind::Lookup)
      lookups.push_back({atom.name, atom.args});
  });
  return lookups;
}

static std::optional<SizeCall::Kind> getCallKind(AtomKind kind) {
  switch (kind) {
  case AtomKind::Mod:
    return SizeCall::Kind::Mod;
  case AtomKind::FloorDiv:
    return SizeCall::Kind::FloorDiv;
  case AtomKind::CeilDiv:
    return SizeCall::Kind::CeilDiv;
  case AtomKind::Min:
    return SizeCall::Kind::Min;
  case AtomKind::Max:
    return SizeCall::Kind::Max;
  default:
    return std::nullopt;
  }
}

std::vector<SizeCall> stage::collectCalls(Size size) {
  std::vector<SizeCall> calls;
  forEachAtom(size, [&](const Atom &atom) {
    if (std::optional<SizeCall::Kind> kind = getCallKind(atom.kind))
      calls.push_back({*kind, atom.args});
  });
  return calls;
}

std::vector<std::string> stage::collectSymbols(Size size) {
  llvm::StringSet<> names;
  forEachAtom(size, [&](const Atom &atom) {
    if (atom.kind == AtomKind::Symbol)
      names.insert(atom.name);
  });
  std::vector<std::string> result;
  for (const auto &name : names)
    result.push_back(name.first().str());
  llvm::sort(result);
  return result;
}
