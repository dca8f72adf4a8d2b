//===- SizeNode.h - how sizes are stored -----------------------*- C++ -*-===//
//
// Private to lib/Symbolic. Three kinds of interned, trivially destructible nodes
// live in the arena of a SizeContext:
//
//   Atom      what the algebra does not look into: a symbol, a call over sizes, a
//             sum that stands as one factor
//   Monomial  atoms with non-zero powers, ordered:        B S tp^-1
//   SizeNode  a sum of rational multiples of monomials:   2*(B S tp^-1) + 1*()
//
// Zero is the SizeNode without terms, a constant has one term with the empty
// monomial. Equal nodes are one node, so equality is a comparison of pointers.
//
// Order (compareAtoms, compareMonomials) looks at structure only, never at
// addresses or at the order of creation. Symbols come before calls, by name.
// Monomials come by falling degree (of the powers above zero), then as their
// factors do, then with few divisors first: `S^2*b + B*S + S/tp + 1`.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SYMBOLIC_SIZENODE_H
#define STAGE_LIB_SYMBOLIC_SIZENODE_H

#include "stage/Symbolic/Size.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/Allocator.h"

#include <array>

namespace stage {

/// Longer sums are not expanded when they are multiplied; see Size.h.
constexpr size_t maxExpandedTerms = 64;
/// Calls nested deeper are given up as `toodeep()`: every walk over sizes is recursive.
constexpr unsigned maxDepth = 512;
/// Powers beyond are given up as `overflow()`.
constexpr int64_t maxPower = 1 << 20;

enum class AtomKind : uint8_t {
  Symbol,
  Mod,
  FloorDiv,
  CeilDiv,
  Min,
  Max,
  Lookup,
  Share,        ///< Of a table; the total, and then an index and a number of blocks in turn.
  ShareCount,   ///< Of the same, how many get anything.
  LargestEntry, ///< This and the next stand for an index only.
  SumOfEntries,
  Sum,
  Overflow,
  TooDeep,
  Undefined
};

struct Atom {
  AtomKind kind;
  unsigned hash;
  /// Calls and factor sums on the longest path below this atom, itself included; 0 for symbols.
  unsigned depth;
  bool integral;        ///< See Size::isIntegral; kept here, as calls are shared and walking them again is exponential.
  llvm::StringRef name; ///< Of a symbol, or of the table of a lookup or a share.
  llvm::ArrayRef<Size> args; ///< Of a call. A Sum has one: the sum, primitive (see splitContent).
};

struct Factor {
  const Atom *atom;
  int32_t power; ///< Never zero.
  bool operator==(const Factor &other) const { return atom == other.atom && power == other.power; }
};

struct Monomial {
  unsigned hash;
  unsigned degree;   ///< Sum of the positive powers.
  unsigned divisors; ///< Sum of the negative powers, made positive.
  bool integral;     ///< Integral atoms without negative powers.
  bool hasSum;       ///< Whether a factor is a Sum: only then is there anything to expand or cancel.
  llvm::ArrayRef<Factor> factors;
};

struct Term {
  Rational coefficient; ///< Never zero.
  const Monomial *monomial;
  bool operator==(const Term &other) const { return monomial == other.monomial && coefficient == other.coefficient; }
};

struct SizeNode {
  SizeContext *context;
  unsigned hash;
  unsigned depth;
  bool integral;
  llvm::ArrayRef<Term> terms;
};

unsigned __int128 greatestCommonDivisor(unsigned __int128 a, unsigned __int128 b);

int compareAtoms(const Atom *a, const Atom *b);
int compareMonomials(const Monomial *a, const Monomial *b);
int compareSizes(Size a, Size b);

/// DenseSet traits of nodes that keep their hash and are looked up by an unfinished node on the stack.
template <typename Node> struct NodeInfo {
  static const Node *getEmptyKey() { return llvm::DenseMapInfo<const Node *>::getEmptyKey(); }
  static const Node *getTombstoneKey() { return llvm::DenseMapInfo<const Node *>::getTombstoneKey(); }
  static unsigned getHashValue(const Node *node) { return node->hash; }
  static bool isEqual(const Node *a, const Node *b) { return a == b; }
  static unsigned getHashValue(const Node &probe) { return probe.hash; }
  static bool isEqual(const Node &probe, const Node *node) {
    return node != getEmptyKey() && node != getTombstoneKey() && same(probe, *node);
  }

private:
  static bool same(const Atom &a, const Atom &b) { return a.kind == b.kind && a.name == b.name && a.args == b.args; }
  static bool same(const Monomial &a, const Monomial &b) { return a.factors == b.factors; }
  static bool same(const SizeNode &a, const SizeNode &b) { return a.terms == b.terms; }
};

/// Owns the nodes and does the algebra that needs to make new ones.
struct SizeContext::Impl {
  explicit Impl(SizeContext &context);

  // Interning (Size.cpp). Arguments are in canonical order already.
  const Atom *atom(AtomKind kind, llvm::StringRef name, llvm::ArrayRef<Size> args);
  const Monomial *monomial(llvm::ArrayRef<Factor> factors);
  Size size(llvm::ArrayRef<Term> terms);
  Size ofAtom(const Atom *atom);
  Size ofTerm(const Rational &coefficient, const Monomial *monomial);
  /// A call as a size; `toodeep()` where it nests too deep.
  Size call(AtomKind kind, llvm::ArrayRef<Size> args, llvm::StringRef name = "");
  bool isPoison(Size size) const { return size == overflow || size == tooDeep || size == undefined; }
  /// The poison among the operands: overflow() before toodeep() before undefined(). Null if none is.
  Size poisonOf(Size a, Size b) const;

  // Algebra (Polynomial.cpp). Products, inverses and quotients are remembered: a model asks for the same ones op after
  // op, and plan after plan.
  Size add(Size a, Size b);
  Size mul(Size a, Size b);
  Size inverse(Size a);
  Size scale(Size a, const Rational &factor);
  Size power(Size base, unsigned exponent);
  /// The product of two monomials; null if a power gets out of bounds.
  const Monomial *mulMonomials(const Monomial *a, const Monomial *b);
  /// Every power negated.
  const Monomial *invertMonomial(const Monomial *a);
  /// Sorts the terms and adds up those of one monomial; `overflow()` if that overflows.
  Size collect(llvm::SmallVectorImpl<Term> &terms);

  /// A size as content times primitive. The primitive of a sum has coprime integer coefficients, the first one
  /// positive, and no atom divides it or stands in it as a divisor; that of one term is 1. The content of a sum
  /// that is too long to be expanded has no monomial, as taking it out would be multiplying.
  struct Split {
    Rational coefficient;
    const Monomial *monomial;
    Size primitive;
  };
  std::optional<Split> splitContent(Size a);

  // Calls (Calls.cpp).
  Size divide(AtomKind kind, Size a, Size b); ///< FloorDiv and CeilDiv.
  Size commonDenominator(Size quotient);
  Size mod(Size a, Size b);
  Size extremum(AtomKind kind, Size a, Size b); ///< Min and Max.
  Size lookup(llvm::StringRef table, llvm::ArrayRef<Size> indices);
  /// A Share or ShareCount, as the atom has its arguments.
  Size share(AtomKind kind, llvm::StringRef table, llvm::ArrayRef<Size> args);

  SizeContext &context;
  llvm::StringMap<SMRange> origins; ///< Of numbers of symbols (stage/Symbolic/SizeMessages.h).
  llvm::BumpPtrAllocator arena;
  llvm::DenseSet<const Atom *, NodeInfo<Atom>> atoms;
  llvm::DenseSet<const Monomial *, NodeInfo<Monomial>> monomials;
  llvm::DenseSet<const SizeNode *, NodeInfo<SizeNode>> sizes;
  llvm::StringMap<Size> symbols;
  const Monomial *unit; ///< The empty monomial.
  Size zero, one, overflow, tooDeep, undefined, largestEntry, sumOfEntries;

private:
  Size computeProduct(Size a, Size b);
  Size computeInverse(Size a);
  Size computeQuotient(AtomKind kind, Size a, Size b);
  void multiplyInto(const Term &a, const Term &b, llvm::SmallVectorImpl<Term> &terms, bool &overflowed);
  bool normalize(const Term &term, llvm::SmallVectorImpl<Term> &terms);
  Size asFactor(Size a);

  llvm::DenseMap<std::pair<const SizeNode *, const SizeNode *>, Size> products;
  llvm::DenseMap<const SizeNode *, Size> inverses;
  std::array<llvm::DenseMap<std::pair<const SizeNode *, const SizeNode *>, Size>, 2> quotients; ///< Floors, ceilings.
};

} // namespace stage

#endif // STAGE_LIB_SYMBOLIC_SIZENODE_H
