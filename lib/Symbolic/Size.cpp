//===- Size.cpp - interning, order and access -----------------------------===//
#include "SizeNode.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

int stage::compareAtoms(const Atom *a, const Atom *b) {
  if (a == b)
    return 0;
  if (a->kind != b->kind)
    return a->kind < b->kind ? -1 : 1;
  if (int order = a->name.compare(b->name))
    return order;
  for (size_t i = 0; i < std::min(a->args.size(), b->args.size()); ++i)
    if (int order = compareSizes(a->args[i], b->args[i]))
      return order;
  return a->args.size() < b->args.size() ? -1 : 1;
}

/// The first factor at or after `it` that is a divisor, or that is not.
static const Factor *skipTo(bool divisor, const Factor *it, const Factor *end) {
  while (it != end && (it->power < 0) != divisor)
    ++it;
  return it;
}

/// Compares the divisors of two monomials, or what they divide, as words: `a a b` before `a b`.
static int compareFactors(const Monomial *a, const Monomial *b, bool divisors) {
  const Factor *i = a->factors.begin(), *j = b->factors.begin();
  for (;; ++i, ++j) {
    i = skipTo(divisors, i, a->factors.end());
    j = skipTo(divisors, j, b->factors.end());
    if (i == a->factors.end() || j == b->factors.end())
      return int(i == a->factors.end()) - int(j == b->factors.end());
    if (int order = compareAtoms(i->atom, j->atom))
      return order;
    if (i->power != j->power)
      return std::abs(i->power) > std::abs(j->power) ? -1 : 1;
  }
}

int stage::compareMonomials(const Monomial *a, const Monomial *b) {
  if (a == b)
    return 0;
  if (a->degree != b->degree)
    return a->degree > b->degree ? -1 : 1;
  if (int order = compareFactors(a, b, /*divisors=*/false))
    return order;
  if (a->divisors != b->divisors)
    return a->divisors < b->divisors ? -1 : 1;
  return compareFactors(a, b, /*divisors=*/true);
}

int stage::compareSizes(Size a, Size b) {
  if (a == b)
    return 0;
  llvm::ArrayRef<Term> left = a.getNode()->terms, right = b.getNode()->terms;
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (int order = compareMonomials(left[i].monomial, right[i].monomial))
      return order;
    if (int order = left[i].coefficient.compare(right[i].coefficient))
      return order;
  }
  // Zero comes last, as the other constants do.
  if (left.empty() || right.empty())
    return left.empty() ? 1 : -1;
  return left.size() < right.size() ? -1 : 1;
}

//===----------------------------------------------------------------------===//
// Interning
//===----------------------------------------------------------------------===//

template <typename T> static llvm::ArrayRef<T> copyInto(llvm::BumpPtrAllocator &arena, llvm::ArrayRef<T> elements) {
  if (elements.empty())
    return {};
  T *copy = arena.Allocate<T>(elements.size());
  std::uninitialized_copy(elements.begin(), elements.end(), copy);
  return {copy, elements.size()};
}

/// The node of `set` that equals `probe`, or else a copy of it that `own` has moved into the arena.
template <typename Set, typename Node, typename Own>
static const Node *intern(Set &set, llvm::BumpPtrAllocator &arena, Node &probe, Own own) {
  auto found = set.find_as(probe);
  if (found != set.end())
    return *found;
  own();
  const Node *node = new (arena.Allocate<Node>()) Node(probe);
  set.insert(node);
  return node;
}

/// Whether a call of these arguments, a symbol being a call of none, gives an integer.
static bool isIntegral(AtomKind kind, llvm::ArrayRef<Size> args) {
  switch (kind) {
  case AtomKind::Symbol:
  case AtomKind::FloorDiv:
  case AtomKind::CeilDiv:
  case AtomKind::Lookup:
  case AtomKind::Share:
  case AtomKind::ShareCount:
  case AtomKind::LargestEntry:
  case AtomKind::SumOfEntries:
    return true;
  case AtomKind::Overflow:
  case AtomKind::TooDeep:
  case AtomKind::Undefined:
    return false;
  case AtomKind::Mod:
  case AtomKind::Min:
  case AtomKind::Max:
  case AtomKind::Sum:
    return llvm::all_of(args, [](Size arg) { return arg.isIntegral(); });
  }
  llvm_unreachable("covered switch");
}

const Atom *SizeContext::Impl::atom(AtomKind kind, llvm::StringRef name, llvm::ArrayRef<Size> args) {
  Atom probe{kind, unsigned(llvm::hash_combine(kind, name, llvm::hash_combine_range(args.begin(), args.end()))),
             0,    false,
             name, args};
  return intern(atoms, arena, probe, [&] {
    probe.integral = isIntegral(kind, args);
    for (Size arg : args)
      probe.depth = std::max(probe.depth, arg.getNode()->depth + 1);
    probe.name = name.copy(arena);
    probe.args = copyInto(arena, args);
  });
}

const Monomial *SizeContext::Impl::monomial(llvm::ArrayRef<Factor> factors) {
  llvm::hash_code hash = 0;
  Monomial probe{0, 0, 0, true, false, factors};
  for (const Factor &factor : factors) {
    hash = llvm::hash_combine(hash, factor.atom, factor.power);
    (factor.power > 0 ? probe.degree : probe.divisors) += std::abs(factor.power);
    probe.integral &= factor.power > 0 && factor.atom->integral;
    probe.hasSum |= factor.atom->kind == AtomKind::Sum;
  }
  probe.hash = unsigned(size_t(hash));
  return intern(monomials, arena, probe, [&] { probe.factors = copyInto(arena, factors); });
}

Size SizeContext::Impl::size(llvm::ArrayRef<Term> terms) {
  llvm::hash_code hash = 0;
  for (const Term &term : terms)
    hash = llvm::hash_combine(hash, term.monomial, uint64_t(term.coefficient.num), uint64_t(term.coefficient.den));
  SizeNode probe{&context, unsigned(size_t(hash)), 0, true, terms};
  return Size(intern(sizes, arena, probe, [&] {
    for (const Term &term : terms) {
      probe.integral &= term.coefficient.isInteger() && term.monomial->integral;
      for (const Factor &factor : term.monomial->factors)
        probe.depth = std::max(probe.depth, factor.atom->depth);
    }
    probe.terms = copyInto(arena, terms);
  }));
}

Size SizeContext::Impl::ofAtom(const Atom *atom) { return ofTerm(Rational::integer(1), monomial(Factor{atom, 1})); }

Size SizeContext::Impl::ofTerm(const Rational &coefficient, const Monomial *monomial) {
  return coefficient.num == 0 ? zero : size(Term{coefficient, monomial});
}

Size SizeContext::Impl::call(AtomKind kind, llvm::ArrayRef<Size> args, llvm::StringRef name) {
  for (Size arg : args)
    if (arg.getNode()->depth >= maxDepth)
      return tooDeep;
  return ofAtom(atom(kind, name, args));
}

Size SizeContext::Impl::poisonOf(Size a, Size b) const {
  for (Size poison : {overflow, tooDeep})
    if (a == poison || b == poison)
      return poison;
  return a == undefined || b == undefined ? undefined : Size();
}

SizeContext::Impl::Impl(SizeContext &context) : context(context) {
  unit = monomial({});
  zero = size({});
  one = ofTerm(Rational::integer(1), unit);
  overflow = ofAtom(atom(AtomKind::Overflow, "", {}));
  tooDeep = ofAtom(atom(AtomKind::TooDeep, "", {}));
  undefined = ofAtom(atom(AtomKind::Undefined, "", {}));
  largestEntry = ofAtom(atom(AtomKind::LargestEntry, "", {}));
  sumOfEntries = ofAtom(atom(AtomKind::SumOfEntries, "", {}));
}

//===----------------------------------------------------------------------===//
// SizeContext and Size
//===----------------------------------------------------------------------===//

SizeContext::SizeContext() : impl(std::make_unique<Impl>(*this)) {}
SizeContext::~SizeContext() = default;

Size SizeContext::constant(int64_t value) { return constant(Rational::integer(value)); }

Size SizeContext::constant(Rational value) { return impl->ofTerm(value, impl->unit); }

Size SizeContext::symbol(llvm::StringRef name) {
  assert(!name.empty() && !llvm::isDigit(name.front()) && name.front() != '.' && "not the name of a symbol");
  Size &symbol = impl->symbols[name];
  if (!symbol)
    symbol = impl->ofAtom(impl->atom(AtomKind::Symbol, name, {}));
  return symbol;
}

SizeContext &Size::getContext() const { return *node->context; }

std::optional<Rational> Size::getConstant() const {
  if (node->terms.empty())
    return Rational{};
  if (node->terms.size() > 1 || !node->terms[0].monomial->factors.empty())
    return std::nullopt;
  return node->terms[0].coefficient;
}

std::optional<int64_t> Size::getInteger() const {
  std::optional<Rational> value = getConstant();
  if (!value || !value->isInteger() || value->num != int64_t(value->num))
    return std::nullopt;
  return int64_t(value->num);
}

Size SizeContext::sum(llvm::ArrayRef<Size> sizes) {
  llvm::SmallVector<Term, 16> terms;
  Size poison;
  for (Size size : sizes) {
    if (impl->isPoison(size))
      poison = poison ? impl->poisonOf(poison, size) : size;
    terms.append(size.getNode()->terms.begin(), size.getNode()->terms.end());
  }
  return poison ? poison : impl->collect(terms);
}

llvm::StringRef Size::getSymbol() const {
  if (node->terms.size() != 1)
    return "";
  const Term &term = node->terms[0];
  if (term.coefficient != Rational::integer(1) || term.monomial->degree != 1 || term.monomial->divisors ||
      term.monomial->factors[0].atom->kind != AtomKind::Symbol)
    return "";
  return term.monomial->factors[0].atom->name;
}

bool Size::isIntegral() const { return node->integral; }

std::vector<std::pair<std::string, int64_t>> SizeBinding::sorted() const {
  std::vector<std::pair<std::string, int64_t>> result;
  for (const auto &entry : values)
    result.emplace_back(entry.first().str(), entry.second);
  llvm::sort(result);
  return result;
}

std::shared_ptr<const SizeTable> SizeBinding::lookupTable(llvm::StringRef name) const {
  std::shared_ptr<const SizeTable> table = tables.lookup(name);
  if (queries)
    note(name, table);
  return table;
}

std::vector<std::pair<std::string, std::shared_ptr<const SizeTable>>> SizeBinding::sortedTables() const {
  std::vector<std::pair<std::string, std::shared_ptr<const SizeTable>>> result;
  for (const auto &entry : tables)
    result.emplace_back(entry.first().str(), entry.second);
  llvm::sort(result, [](const auto &a, const auto &b) { return a.first < b.first; });
  return result;
}
