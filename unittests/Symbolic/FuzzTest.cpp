//===- FuzzTest.cpp - random expressions against naive evaluation ---------===//
//
// A tree of operators is built at random, once as a Size and once kept as a tree.
// The tree is evaluated step by step without any algebra; where that has a value,
// the size must have the same. Seeds are fixed: a failure happens again.
//
//===----------------------------------------------------------------------===//
#include "stage/Symbolic/Size.h"
#include "gtest/gtest.h"
#include <random>

using namespace stage;

namespace {
enum class Op { Constant, Symbol, Add, Sub, Mul, Div, Mod, FloorDiv, CeilDiv, Min, Max };

const char *const symbols[] = {"B", "S", "tp", "x"};

struct Tree {
  Op op;
  int value = 0; ///< The constant, or the index of the symbol.
  std::unique_ptr<Tree> left, right;
};

class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}
  unsigned below(unsigned limit) { return random() % limit; }

  /// A tree of at most `depth` levels of operators out of `ops`.
  std::unique_ptr<Tree> tree(unsigned depth, llvm::ArrayRef<Op> ops) {
    auto result = std::make_unique<Tree>();
    if (depth == 0 || below(6) == 0) {
      result->op = below(3) ? Op::Symbol : Op::Constant;
      result->value = result->op == Op::Symbol ? int(below(std::size(symbols))) : int(below(9)) - 2;
      return result;
    }
    result->op = ops[below(ops.size())];
    result->left = tree(depth - 1, ops);
    result->right = tree(depth - 1, ops);
    return result;
  }

private:
  std::mt19937 random;
};

Size build(SizeContext &ctx, const Tree &tree) {
  if (tree.op == Op::Constant)
    return ctx.constant(tree.value);
  if (tree.op == Op::Symbol)
    return ctx.symbol(symbols[tree.value]);
  Size a = build(ctx, *tree.left), b = build(ctx, *tree.right);
  switch (tree.op) {
  case Op::Add:
    return a + b;
  case Op::Sub:
    return a - b;
  case Op::Mul:
    return a * b;
  case Op::Div:
    return a / b;
  case Op::Mod:
    return a.mod(b);
  case Op::FloorDiv:
    return a.floorDiv(b);
  case Op::CeilDiv:
    return a.ceilDiv(b);
  case Op::Min:
    return min(a, b);
  default:
    return max(a, b);
  }
}

std::optional<Rational> naive(const Tree &tree, const SizeBinding &binding) {
  if (tree.op == Op::Constant)
    return Rational::integer(tree.value);
  if (tree.op == Op::Symbol)
    return Rational::integer(*binding.lookup(symbols[tree.value]));
  std::optional<Rational> a = naive(*tree.left, binding), b = naive(*tree.right, binding);
  if (!a || !b)
    return std::nullopt;
  std::optional<Rational> quotient = b->num ? a->div(*b) : std::nullopt;
  switch (tree.op) {
  case Op::Add:
    return a->add(*b);
  case Op::Sub:
    return a->sub(*b);
  case Op::Mul:
    return a->mul(*b);
  case Op::Div:
    return quotient;
  case Op::FloorDiv:
    return quotient ? std::optional(quotient->floor()) : std::nullopt;
  case Op::CeilDiv:
    return quotient ? std::optional(quotient->ceil()) : std::nullopt;
  case Op::Mod:
    return quotient ? a->sub(*b->mul(quotient->floor())) : std::nullopt;
  case Op::Min:
    return a->compare(*b) < 0 ? a : b;
  default:
    return a->compare(*b) < 0 ? b : a;
  }
}

SizeBinding randomBinding(Generator &random) {
  static const int64_t values[] = {1, 2, 3, 4, 5, 7, 8, 12, 64, -1, -3, 97};
  SizeBinding binding;
  for (const char *symbol : symbols)
    binding.bind(symbol, values[random.below(std::size(values))]);
  return binding;
}

const Op allOps[] = {Op::Add, Op::Sub, Op::Mul, Op::Mul, Op::Div, Op::Mod, Op::FloorDiv, Op::CeilDiv, Op::Min, Op::Max};
const Op ringOps[] = {Op::Add, Op::Sub, Op::Mul};
} // namespace

TEST(SizeFuzz, CanonicalFormHasTheValueOfTheTree) {
  Generator random(20260101);
  unsigned compared = 0, poisoned = 0;
  for (int i = 0; i < 6000; ++i) {
    SizeContext ctx;
    std::unique_ptr<Tree> tree = random.tree(1 + i % 5, allOps);
    Size size = build(ctx, *tree);
    for (int j = 0; j < 8; ++j) {
      SizeBinding binding = randomBinding(random);
      std::optional<Rational> expected = naive(*tree, binding);
      if (!expected)
        continue;
      SizeValue value = evaluate(size, binding);
      if (value.error == SizeError::Overflow) {
        ++poisoned; // Multiplied out it can be larger on the way.
        continue;
      }
      ++compared;
      ASSERT_TRUE(bool(value)) << size.str();
      ASSERT_EQ(value.value, *expected) << "tree " << i << ": " << size.str() << " is " << value.value.str() << ", not "
                                        << expected->str();
    }
  }
  EXPECT_GT(compared, 20000u);
  EXPECT_LT(poisoned, compared / 50);
}

TEST(SizeFuzz, PrintingAndReadingIsIdentity) {
  Generator random(7);
  for (int i = 0; i < 10000; ++i) {
    SizeContext ctx;
    Size size = build(ctx, *random.tree(1 + i % 5, allOps));
    std::string text = size.str();
    std::optional<Size> again = ctx.parse(text);
    ASSERT_TRUE(again) << text;
    ASSERT_EQ(*again, size) << text << "\n" << again->str();
    SizeContext other;
    ASSERT_EQ(other.parse(text)->str(), text);
  }
}

TEST(SizeFuzz, SimplifyingTwiceIsSimplifyingOnce) {
  Generator random(11);
  for (int i = 0; i < 10000; ++i) {
    SizeContext ctx;
    Size size = build(ctx, *random.tree(1 + i % 5, allOps));
    Size again = substitute(size, [](llvm::StringRef) { return Size(); });
    ASSERT_EQ(again, size) << size.str() << "\n" << again.str();
  }
}

TEST(SizeFuzz, LawsOfArithmetic) {
  Generator random(13);
  SizeContext ctx;
  for (int i = 0; i < 3000; ++i) {
    Size a = build(ctx, *random.tree(3, ringOps)), b = build(ctx, *random.tree(3, ringOps)),
         c = build(ctx, *random.tree(2, ringOps));
    ASSERT_EQ(a + b, b + a);
    ASSERT_EQ(a * b, b * a);
    ASSERT_EQ((a + b) + c, a + (b + c));
    ASSERT_EQ((a * b) * c, a * (b * c));
    ASSERT_EQ(a * (b + c), a * b + a * c);
    ASSERT_EQ(a - b + b, a);
    if (b != ctx.zero()) {
      ASSERT_EQ(a * b / b, a) << a.str() << " times " << b.str();
      ASSERT_EQ(a / b * b, a) << a.str() << " over " << b.str();
      ASSERT_EQ(a / b + c / b, (a + c) / b) << a.str() << " and " << c.str() << " over " << b.str();
    }
  }
}

TEST(SizeFuzz, SubstitutionIsEvaluation) {
  Generator random(17);
  for (int i = 0; i < 3000; ++i) {
    SizeContext ctx;
    std::unique_ptr<Tree> tree = random.tree(1 + i % 4, allOps);
    SizeBinding binding = randomBinding(random);
    std::optional<Rational> expected = naive(*tree, binding);
    if (!expected)
      continue;
    Size value =
        substitute(build(ctx, *tree), [&](llvm::StringRef name) { return ctx.constant(*binding.lookup(name)); });
    ASSERT_TRUE(value.getConstant()) << value.str();
    ASSERT_EQ(*value.getConstant(), *expected);
  }
}
