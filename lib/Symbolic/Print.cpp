//===- Print.cpp - sizes as infix text ------------------------------------===//
//
// Writes what SizeContext::parse reads back as the same size:
//
//   3*B*S^2/(2*cp*tp) - S % cp + ceildiv(V, tp) + x/(a + b)/(a + b)
//
// A sum that divides stands alone behind its own slash, once for every power, and
// never in a product in parentheses: reading `1/((a + b)*(a - b))` would multiply out
// and give another, equal but not identical, divisor.
//
//===----------------------------------------------------------------------===//
#include "SizeNode.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

static const Factor *asSingleFactor(Size size) {
  llvm::ArrayRef<Term> terms = size.getNode()->terms;
  bool single = terms.size() == 1 && terms[0].coefficient == Rational::integer(1) &&
                terms[0].monomial->factors.size() == 1 && terms[0].monomial->factors[0].power == 1;
  return single ? &terms[0].monomial->factors[0] : nullptr;
}

static bool isInfix(const Atom *atom) { return atom->kind == AtomKind::Mod || atom->kind == AtomKind::FloorDiv; }

/// Whether a size can stand on the left of `%` without parentheses: one product that does not start with a sign.
static bool isProduct(Size size) {
  const Factor *factor = asSingleFactor(size);
  return size.getNode()->terms.size() == 1 && size.getNode()->terms[0].coefficient.num > 0 &&
         !(factor && isInfix(factor->atom));
}

/// Whether a size can stand on the right of `%` without parentheses: one word.
static bool isWord(Size size) {
  if (std::optional<int64_t> value = size.getInteger())
    return *value >= 0;
  const Factor *factor = asSingleFactor(size);
  return factor && !isInfix(factor->atom);
}

/// In place of an index: over all of them.
static bool isEntryWord(llvm::StringRef symbol) { return symbol == "max" || symbol == "sum"; }

namespace {
class Printer {
public:
  explicit Printer(llvm::raw_ostream &os) : os(os) {}

  void print(Size size) {
    unsigned budget = maxPlainCalls;
    if (isShort(size, budget)) {
      printSum(size);
      return;
    }
    findShared(size);
    if (llvm::none_of(order, [&](const Atom *atom) { return uses[atom] > 1; })) {
      printSum(size); // long, and each call stands in it once
      return;
    }
    os << "with(";
    for (const Atom *atom : order)
      if (uses[atom] > 1) {
        std::string name = "@" + std::to_string(names.size());
        os << name << ", ";
        printAtom(atom);
        os << ", ";
        names[atom] = std::move(name);
      }
    printSum(size);
    os << ')';
  }

private:
  /// As plain text a size may have this many calls and factor sums.
  static constexpr unsigned maxPlainCalls = 256;

  bool isShort(Size size, unsigned &budget) {
    for (const Term &term : size.getNode()->terms)
      for (const Factor &factor : term.monomial->factors)
        for (Size arg : factor.atom->args)
          if (budget == 0 || (--budget, !isShort(arg, budget)))
            return false;
    return true;
  }

  /// Counts where each call is used, and puts every one after those in it.
  void findShared(Size size) {
    for (const Term &term : size.getNode()->terms)
      for (const Factor &factor : term.monomial->factors) {
        // A sum that divides has a place of its own in the text, and no name.
        bool isSum = factor.atom->kind == AtomKind::Sum;
        if (factor.atom->args.empty() || (!isSum && ++uses[factor.atom] > 1))
          continue;
        llvm::for_each(factor.atom->args, [&](Size arg) { findShared(arg); });
        if (!isSum)
          order.push_back(factor.atom);
      }
  }

  void printEnclosed(Size size, bool bare) {
    os << (bare ? "" : "(");
    printSum(size);
    os << (bare ? "" : ")");
  }

  void printInfix(const Atom *atom) {
    printEnclosed(atom->args[0], isProduct(atom->args[0]));
    os << (atom->kind == AtomKind::Mod ? " % " : " div ");
    printEnclosed(atom->args[1], isWord(atom->args[1]));
  }

  void printAtom(const Atom *atom) {
    auto named = names.find(atom);
    if (named != names.end()) {
      os << named->second;
      return;
    }
    llvm::StringRef name;
    switch (atom->kind) {
    case AtomKind::Symbol:
      os << atom->name;
      return;
    case AtomKind::Mod:
    case AtomKind::FloorDiv:
      os << '(';
      printInfix(atom);
      os << ')';
      return;
    case AtomKind::Lookup:
      printLookup(atom);
      return;
    case AtomKind::Share:
    case AtomKind::ShareCount:
      printShare(atom);
      return;
    case AtomKind::LargestEntry:
      os << "max";
      return;
    case AtomKind::SumOfEntries:
      os << "sum";
      return;
    case AtomKind::Sum:
      break;
    case AtomKind::CeilDiv:
      name = "ceildiv";
      break;
    case AtomKind::Min:
      name = "min";
      break;
    case AtomKind::Max:
      name = "max";
      break;
    case AtomKind::Overflow:
      name = "overflow";
      break;
    case AtomKind::TooDeep:
      name = "toodeep";
      break;
    case AtomKind::Undefined:
      name = "undefined";
      break;
    }
    os << name << '(';
    llvm::interleave(
        atom->args, [&](Size arg) { printSum(arg); }, [&] { os << ", "; });
    os << ')';
  }

  /// An index that is one word of a meaning of its own is that symbol only in parentheses.
  void printLookup(const Atom *atom) {
    os << atom->name << '[';
    llvm::interleave(
        atom->args, [&](Size index) { printEnclosed(index, !isEntryWord(index.getSymbol())); }, [&] { os << ", "; });
    os << ']';
  }

  void printShare(const Atom *atom) {
    os << (atom->kind == AtomKind::Share ? "share(" : "shares(") << atom->name;
    for (size_t i = 0; i < atom->args.size(); ++i) {
      os << ", ";
      printEnclosed(atom->args[i], i % 2 == 0 || !isEntryWord(atom->args[i].getSymbol()));
    }
    os << ')';
  }

  void printPower(const Factor &factor) {
    printAtom(factor.atom);
    if (std::abs(factor.power) > 1)
      os << '^' << std::abs(factor.power);
  }

  /// A term without its sign.
  void printMagnitude(const Term &term) {
    llvm::ArrayRef<Factor> factors = term.monomial->factors;
    std::string num = Rational{term.coefficient.num, 1}.str();
    num = llvm::StringRef(num).ltrim('-').str();
    // Behind a sign `%` needs parentheses: readers disagree on what `-S % cp` means.
    if (term.coefficient == Rational::integer(1) && factors.size() == 1 && factors[0].power == 1 &&
        isInfix(factors[0].atom) && !names.count(factors[0].atom)) {
      printInfix(factors[0].atom);
      return;
    }

    llvm::ListSeparator times("*");
    if (num != "1" || term.monomial->degree == 0)
      os << times << num;
    for (const Factor &factor : factors)
      if (factor.power > 0) {
        os << times;
        printPower(factor);
      }

    llvm::SmallVector<Factor, 4> divisors;
    for (const Factor &factor : factors)
      if (factor.power < 0 && factor.atom->kind != AtomKind::Sum)
        divisors.push_back(factor);
    unsigned numDivisors = divisors.size() + (term.coefficient.den != 1);
    if (numDivisors) {
      os << (numDivisors > 1 ? "/(" : "/");
      llvm::ListSeparator inner("*");
      if (term.coefficient.den != 1)
        os << inner << Rational{term.coefficient.den, 1}.str();
      for (const Factor &factor : divisors) {
        os << inner;
        printPower(factor);
      }
      os << (numDivisors > 1 ? ")" : "");
    }
    for (const Factor &factor : factors)
      if (factor.atom->kind == AtomKind::Sum)
        for (int32_t i = factor.power; i < 0; ++i) {
          os << '/';
          printAtom(factor.atom);
        }
  }

  void printSum(Size size) {
    llvm::ArrayRef<Term> terms = size.getNode()->terms;
    if (terms.empty())
      os << '0';
    for (const Term &term : terms) {
      bool first = &term == terms.begin();
      if (term.coefficient.num < 0)
        os << (first ? "-" : " - ");
      else if (!first)
        os << " + ";
      printMagnitude(term);
    }
  }

  llvm::raw_ostream &os;
  llvm::DenseMap<const Atom *, unsigned> uses;
  std::vector<const Atom *> order;
  llvm::DenseMap<const Atom *, std::string> names;
};
} // namespace

void Size::print(llvm::raw_ostream &os) const { Printer(os).print(*this); }

std::string Size::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return os.str();
}
