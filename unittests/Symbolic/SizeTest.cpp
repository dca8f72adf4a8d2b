//===- SizeTest.cpp -------------------------------------------------------===//
#include "stage/Symbolic/Size.h"
#include "gtest/gtest.h"

using namespace stage;

namespace {
class SizeTest : public ::testing::Test {
protected:
  SizeContext ctx;
  Size B = ctx.symbol("B"), S = ctx.symbol("S"), D = ctx.symbol("D"), H = ctx.symbol("H"), KV = ctx.symbol("KV"),
       E = ctx.symbol("E"), tp = ctx.symbol("tp"), cp = ctx.symbol("cp"), x = ctx.symbol("x"), y = ctx.symbol("y");
  Size one = ctx.one(), zero = ctx.zero();

  Size read(llvm::StringRef text) {
    std::optional<Size> size = ctx.parse(text);
    EXPECT_TRUE(size) << text.str();
    return size ? *size : Size();
  }
  /// The canonical text of `text`, which must read back as the same size.
  std::string canonical(llvm::StringRef text) {
    Size size = read(text);
    EXPECT_EQ(read(size.str()), size) << size.str();
    return size.str();
  }
  static SizeBinding bind(std::initializer_list<std::pair<const char *, int64_t>> values) {
    SizeBinding binding;
    for (auto [name, value] : values)
      binding.bind(name, value);
    return binding;
  }
};
} // namespace

TEST_F(SizeTest, EqualSizesAreOneNode) {
  EXPECT_EQ(S / tp * tp, S);
  EXPECT_EQ(B * S * D, D * (S * B));
  EXPECT_EQ((B + 1) * (B - 1), B * B - 1);
  EXPECT_EQ(KV / tp * (H / KV) * E, H * E / tp);
  EXPECT_EQ(S - S, zero);
  EXPECT_EQ(S * 0, zero);
  EXPECT_EQ(S / 1, S);
  EXPECT_EQ(ctx.symbol("S"), S);
  EXPECT_NE(S, B);
  EXPECT_EQ(S / 2 + S / 2, S);
}

TEST_F(SizeTest, Accessors) {
  EXPECT_EQ(S.getSymbol(), "S");
  EXPECT_EQ((S * 2).getSymbol(), "");
  EXPECT_EQ((S + 1).getSymbol(), "");
  EXPECT_EQ((one / S).getSymbol(), "");
  EXPECT_EQ((S * S).getSymbol(), "");
  EXPECT_EQ(one.getSymbol(), "");
  EXPECT_EQ(zero.getSymbol(), "");
  EXPECT_EQ(S.mod(tp).getSymbol(), "");
  EXPECT_EQ(zero.getInteger(), 0);
  EXPECT_EQ(ctx.constant(-4).getInteger(), -4);
  EXPECT_EQ((one / 2).getInteger(), std::nullopt);
  EXPECT_EQ((one / 2).getConstant()->str(), "1/2");
  EXPECT_EQ(S.getConstant(), std::nullopt);
  EXPECT_TRUE(ctx.constant(3).isConstant(3));
  EXPECT_FALSE(Size());
  EXPECT_EQ(&S.getContext(), &ctx);
}

TEST_F(SizeTest, IsIntegral) {
  EXPECT_TRUE((S * S * 3 - 7).isIntegral());
  EXPECT_TRUE((S / tp).floorDiv(cp).isIntegral());
  EXPECT_TRUE(min(S, B.mod(tp)).isIntegral());
  EXPECT_FALSE((S / tp).isIntegral());
  EXPECT_FALSE((S / 2).isIntegral());
  EXPECT_FALSE(min(S / tp, B).isIntegral());
  EXPECT_FALSE((S / tp).mod(B).isIntegral());
}

TEST_F(SizeTest, PrintsForPeople) {
  EXPECT_EQ(canonical("0"), "0");
  EXPECT_EQ(canonical("5/4"), "5/4");
  EXPECT_EQ(canonical("-x"), "-x");
  EXPECT_EQ(canonical("1 - x"), "-x + 1");
  EXPECT_EQ(canonical("D*S*B*2/tp"), "2*B*D*S/tp");
  EXPECT_EQ(canonical("B*D*S/tp/cp"), "B*D*S/(cp*tp)");
  EXPECT_EQ(canonical("B*S/2"), "B*S/2");
  EXPECT_EQ(canonical("3*S*S*B/(2*tp*tp)"), "3*B*S^2/(2*tp^2)");
  EXPECT_EQ(canonical("1/tp"), "1/tp");
  EXPECT_EQ(canonical("1/(2*tp)"), "1/(2*tp)");
  EXPECT_EQ(canonical("S*B*H*(34 + 5*A*S/H)"), "5*A*B*S^2 + 34*B*H*S");
  EXPECT_EQ(canonical("s*b*h/t*(34 + 5*a*s/h)"), "5*a*b*s^2/t + 34*b*h*s/t");
  EXPECT_EQ(canonical("s*b*h*(10 + 24/t + 5*a*s/(h*t))"), "5*a*b*s^2/t + 10*b*h*s + 24*b*h*s/t");
  EXPECT_EQ(canonical("10 + 24/t"), "10 + 24/t");
}

TEST_F(SizeTest, PrintsCalls) {
  EXPECT_EQ(canonical("S % cp"), "S % cp");
  EXPECT_EQ(canonical("S%cp + 1"), "S % cp + 1");
  EXPECT_EQ(canonical("2*(S % cp)"), "2*(S % cp)");
  EXPECT_EQ(canonical("-(S % cp)"), "-(S % cp)");
  EXPECT_EQ(canonical("1 - S % cp"), "-(S % cp) + 1");
  EXPECT_EQ(canonical("S/cp % 2"), "S/cp % 2");
  EXPECT_EQ(canonical("2*x % y"), "2*x % y");
  EXPECT_EQ(canonical("2*(x % y)"), "2*(x % y)");
  EXPECT_EQ(canonical("-x % y"), "-(x % y)");
  EXPECT_EQ(canonical("(-x) % y"), "(-x) % y");
  EXPECT_EQ(canonical("(x + 1) % (y + 1)"), "(x + 1) % (y + 1)");
  EXPECT_EQ(canonical("x % (y*B)"), "x % (B*y)");
  EXPECT_EQ(canonical("k % (p*v) div p"), "(k % (p*v)) div p");
  EXPECT_EQ(canonical("k div (p*v) * p + k % p"), "p*(k div (p*v)) + k % p");
  EXPECT_EQ(canonical("x div 2"), "x div 2");
  EXPECT_EQ(canonical("div(x, 2)"), "x div 2");
  EXPECT_EQ(canonical("x % (y % B)"), "x % (y % B)");
  EXPECT_EQ(canonical("(x % y)^2"), "(x % y)^2");
  EXPECT_EQ(canonical("1/(x % y)"), "1/(x % y)");
  EXPECT_EQ(canonical("ceildiv(V, tp)*D"), "D*ceildiv(V, tp)");
  EXPECT_EQ(canonical("min(p - r, m)"), "min(m, p - r)");
  EXPECT_EQ(canonical("max(0, m - r)"), "max(m - r, 0)");
}

TEST_F(SizeTest, Calls) {
  EXPECT_EQ((x * 6).mod(x), zero);
  EXPECT_EQ(x.mod(one), zero);
  EXPECT_EQ(x.floorDiv(one), x);
  EXPECT_EQ(x.ceilDiv(one), x);
  EXPECT_EQ((x * y).floorDiv(x), y);
  EXPECT_EQ((x * 5).ceilDiv(x), ctx.constant(5));
  EXPECT_EQ((x * 3).floorDiv(x * 2), one);
  EXPECT_EQ((x * 3).ceilDiv(x * 2), ctx.constant(2));
  EXPECT_EQ((x * 3).mod(x * 2), x);
  EXPECT_EQ((x * -1).mod(x * 2), x);
  EXPECT_EQ((x / tp).ceilDiv(cp), x.ceilDiv(tp * cp));
  EXPECT_EQ((x * 4).ceilDiv(y * 6), (x * 2).ceilDiv(y * 3));
  EXPECT_EQ((x * 4 * B).mod(y * 6 * B), B * 2 * (x * 2).mod(y * 3));
  EXPECT_EQ(canonical("7 div 2"), "3");
  EXPECT_EQ(canonical("-7 div 2"), "-3"); // -(7 div 2)
  EXPECT_EQ(canonical("(-7) div 2"), "-4");
  EXPECT_EQ(canonical("(-7) % 3"), "2");
  EXPECT_EQ(canonical("ceildiv(7, 2)"), "4");
  EXPECT_EQ(canonical("(1/2) div 1"), "0");
  // Over the common denominator of both terms this is 1/(y - x).
  EXPECT_EQ(canonical("(x/(y*(y - x)) + 1/y) div 1"), "(-1) div (x - y)");
  // Not integral: the fraction is what is left.
  EXPECT_EQ(canonical("(x/2) % 1"), "x/2 % 1");
}

TEST_F(SizeTest, MinMax) {
  EXPECT_EQ(min(x, x), x);
  EXPECT_EQ(min(x, y), min(y, x));
  EXPECT_EQ(min(min(x, y), B), min(x, min(B, y)));
  EXPECT_EQ(min(min(x, y), min(y, x)), min(x, y));
  EXPECT_EQ(min(x, x + 1), x);
  EXPECT_EQ(max(x, x + 1), x + 1);
  EXPECT_EQ(min(min(y, x), x - 2), min(x - 2, y));
  EXPECT_EQ(max(ctx.constant(3), ctx.constant(5)).getInteger(), 5);
  EXPECT_EQ(canonical("min(4, x, 7, y)"), "min(x, y, 4)");
  EXPECT_EQ(canonical("max(min(x, y), x)"), "max(x, min(x, y))");
}

TEST_F(SizeTest, SumsAsDivisors) {
  Size sum = x + y;
  EXPECT_EQ(B / sum * sum, B);
  EXPECT_EQ((x * x - y * y) / sum, x - y);
  EXPECT_EQ((sum * 2) / (sum * 3), ctx.constant(2) / 3);
  EXPECT_EQ(B / (sum * 2), B / sum / 2);
  EXPECT_EQ(B / (sum * S), B / S / sum);
  EXPECT_EQ(x / sum + y / sum, one);
  EXPECT_EQ(one / (one / sum), sum);
  EXPECT_EQ(one / (one + x / sum), sum / (x * 2 + y));
  EXPECT_EQ((one / sum).ceilDiv(B), one.ceilDiv(B * x + B * y));
  EXPECT_EQ(canonical("B/(x + y)"), "B/(x + y)");
  EXPECT_EQ(canonical("B/(x + y)/(x - y)"), "B/(x - y)/(x + y)");
  EXPECT_EQ(canonical("B/(x + y)/(y + x)/tp"), "B/tp/(x + y)/(x + y)");
  EXPECT_EQ(canonical("B/(2*x + 4*y)"), "B/2/(x + 2*y)");
  EXPECT_EQ(canonical("(p - 1)/(m + p - 1)"), "p/(m + p - 1) - 1/(m + p - 1)");
  EXPECT_EQ(canonical("x/(1 - x)"), "-1 - 1/(x - 1)");
}

TEST_F(SizeTest, LongSumsStayFactors) {
  Size sum = zero;
  for (int i = 0; i < 70; ++i)
    sum = sum + ctx.symbol("s" + std::to_string(i)) * (i + 1) * 2;
  Size product = sum * (x + y);
  EXPECT_EQ(product.getNode(), (x * sum + y * sum).getNode());
  EXPECT_LT(product.str().size(), 2 * sum.str().size() + 20);
  EXPECT_EQ(read(product.str()), product);
  EXPECT_EQ(sum * x / x, sum);
  EXPECT_EQ(sum * 3 * x, sum * x * 3);
  EXPECT_EQ(sum * x / sum, x);
  EXPECT_EQ(sum / sum, one);
  EXPECT_EQ(read((sum * sum * x).str()), x * sum * sum);
  EXPECT_EQ(substitute(product, [](llvm::StringRef) { return Size(); }), product);

  SizeBinding binding = bind({{"x", 3}, {"y", 4}});
  for (int i = 0; i < 70; ++i)
    binding.bind("s" + std::to_string(i), 1);
  EXPECT_EQ(evaluate(product, binding).value.str(), std::to_string(70 * 71 * 7));
}

TEST_F(SizeTest, HugePowersEndQuickly) {
  EXPECT_TRUE(ctx.parse("(x + y + B + S)^1000000"));
  EXPECT_FALSE(ctx.parse("x^100000000000"));
  Size power = read("x^1000000");
  EXPECT_EQ(evaluate(power, bind({{"x", -1}})).value.str(), "1");
  EXPECT_EQ(evaluate(power, bind({{"x", 2}})).error, SizeError::Overflow);
  EXPECT_EQ((read("x^1000000") * power).str(), "overflow()");
}

TEST_F(SizeTest, PoisonSwallows) {
  Size huge = ctx.constant(INT64_MAX);
  Size overflow = huge * huge * huge;
  EXPECT_EQ(overflow.str(), "overflow()");
  EXPECT_EQ(x / zero * 0, x / (y - y));
  EXPECT_EQ((x / zero).str(), "undefined()");
  EXPECT_EQ(x.mod(zero).str(), "undefined()");
  EXPECT_EQ(x.ceilDiv(zero), x.floorDiv(zero));
  EXPECT_EQ(min(overflow, one), overflow);
  EXPECT_EQ(x / zero + overflow, overflow + x / zero);
  EXPECT_EQ(one / overflow, overflow);
  EXPECT_EQ(overflow.mod(x), overflow);
  EXPECT_EQ(canonical("overflow() + x"), "overflow()");
  EXPECT_EQ(canonical("x*undefined()"), "undefined()");
  EXPECT_EQ(evaluate(overflow, {}).error, SizeError::Overflow);
  EXPECT_EQ(evaluate(x / zero, {}).error, SizeError::DivisionByZero);
}

TEST_F(SizeTest, SumOfMany) {
  EXPECT_EQ(ctx.sum({}), zero);
  EXPECT_EQ(ctx.sum({x, y * 2, x, B * -1, B}), x * 2 + y * 2);
  EXPECT_EQ(ctx.sum({x, x / zero, y}).str(), "undefined()");
}

TEST_F(SizeTest, DeepNestingIsGivenUp) {
  Size deep = x;
  for (int i = 0; i < 100000; ++i)
    deep = deep.ceilDiv(ctx.constant(2)) + 1;
  EXPECT_EQ(deep.str(), "toodeep()");
  EXPECT_EQ(canonical("toodeep() + x"), "toodeep()");
  EXPECT_EQ(evaluate(deep, {}).error, SizeError::TooDeep);
  EXPECT_FALSE(ctx.parse(std::string(100000, '(') + "x" + std::string(100000, ')')));
}

TEST_F(SizeTest, SharedCallsAreWalkedOnce) {
  // As text this has 2^60 words.
  Size deep = x;
  for (int i = 0; i < 60; ++i)
    deep = (deep + 1).floorDiv(B) + deep.mod(S);
  SizeBinding binding = bind({{"x", 1000}, {"B", 3}, {"S", 7}});
  int64_t expected = 1000;
  for (int i = 0; i < 60; ++i)
    expected = (expected + 1) / 3 + expected % 7;
  EXPECT_EQ(evaluate(deep, binding).value.num, expected);
  EXPECT_EQ(collectSymbols(deep), (std::vector<std::string>{"B", "S", "x"}));
  EXPECT_EQ(substitute(deep, [](llvm::StringRef) { return Size(); }), deep);
  // What stands in it several times is named, so that its text is linear and is read back as the same size.
  std::string text = deep.str();
  EXPECT_TRUE(llvm::StringRef(text).startswith("with(@0, "));
  EXPECT_LT(text.size(), 60u * 100u);
  EXPECT_EQ(read(text.c_str()), deep);
  EXPECT_FALSE(ctx.parse("with(@0, x"));
  EXPECT_FALSE(ctx.parse("with(@0, x, @0 + 1"));
}

TEST_F(SizeTest, ParseErrors) {
  for (const char *text : {"",
                           " ",
                           "x +",
                           "* x",
                           "x y",
                           "(x",
                           "x)",
                           "min(x)",
                           "min()",
                           "min(x,)",
                           "foo(x, y)",
                           "2D",
                           "x^",
                           "x^y",
                           "x^-1",
                           "ceildiv(x, y, 2)",
                           "x // y",
                           "x $ y",
                           "overflow(x)",
                           "--x",
                           "1.5",
                           "999999999999999999999999999999999999999999"})
    EXPECT_FALSE(ctx.parse(text)) << text;
}

TEST_F(SizeTest, WordsAreNotReserved) {
  for (const char *name : {"min", "div", "ceildiv", "overflow", "_a", "@tp", "layers.0.x", "F@tp"})
    EXPECT_EQ(read(name), ctx.symbol(name));
  EXPECT_EQ(read("div div div"), ctx.symbol("div").floorDiv(ctx.symbol("div")));
  EXPECT_EQ(canonical("divisor*2"), "2*divisor");
}

TEST_F(SizeTest, Evaluate) {
  SizeBinding binding = bind({{"B", 3}, {"S", 7}, {"tp", 2}, {"zero", 0}});
  EXPECT_EQ(evaluate(B * S / tp, binding).value.str(), "21/2");
  EXPECT_EQ(evaluate(zero, binding).value.str(), "0");
  EXPECT_EQ(evaluate(S.ceilDiv(tp) + S.floorDiv(tp) * 10 + S.mod(tp) * 100, binding).value.str(), "134");
  EXPECT_EQ(evaluate(min(S, B) + max(S, B) * 10, binding).value.str(), "73");
  EXPECT_EQ(evaluate(S * x, binding).error, SizeError::UnboundSymbol);
  EXPECT_EQ(evaluate(S * x, binding).symbol, "x");
  EXPECT_EQ(evaluate(one / ctx.symbol("zero"), binding).error, SizeError::DivisionByZero);
  EXPECT_EQ(evaluate(S.mod(ctx.symbol("zero")), binding).error, SizeError::DivisionByZero);
  // 2^126 is representable, and 2^127 is not.
  EXPECT_TRUE(bool(evaluate(read("tp^126"), binding)));
  EXPECT_EQ(evaluate(read("tp^127"), binding).error, SizeError::Overflow);
  EXPECT_EQ(evaluate(read("tp^200") / read("B^200"), binding).error, SizeError::Overflow);
}

TEST_F(SizeTest, EvaluateCount) {
  SizeBinding binding = bind({{"S", 7}, {"big", INT64_MAX}});
  EXPECT_EQ(evaluateCount(S * 2, binding).value.num, 14);
  EXPECT_EQ(evaluateCount(S / 2, binding).error, SizeError::NotAnInteger);
  EXPECT_EQ(evaluateCount(S - 8, binding).error, SizeError::Negative);
  EXPECT_TRUE(bool(evaluateCount(ctx.symbol("big"), binding)));
  EXPECT_EQ(evaluateCount(ctx.symbol("big") + 1, binding).error, SizeError::Overflow);
  EXPECT_EQ(evaluateCount(x, binding).error, SizeError::UnboundSymbol);
  // S*S/2 of an odd S is a fraction on the way, and no error where it cancels.
  EXPECT_EQ(evaluateCount(S * S / 2 + S / 2, binding).value.num, 28);
}

TEST_F(SizeTest, Substitute) {
  auto replacement = [&](llvm::StringRef name) {
    return name == "H" ? KV * 4 : name == "tp" ? ctx.constant(2) : name == "cp" ? one : Size();
  };
  EXPECT_EQ(substitute(H * E / tp, replacement), KV * E * 2);
  EXPECT_EQ(substitute(H.mod(KV), replacement), zero);
  EXPECT_EQ(substitute(S.ceilDiv(cp * tp), replacement), S.ceilDiv(ctx.constant(2)));
  EXPECT_EQ(substitute(B / (H + KV), replacement), B / (KV * 5));
  EXPECT_EQ(substitute(B / (cp - 1), replacement).str(), "undefined()");
  EXPECT_EQ(substitute(min(H, KV + 1), replacement), min(KV * 4, KV + 1));
}

TEST_F(SizeTest, CollectSymbols) {
  EXPECT_EQ(collectSymbols(min(S, B.mod(tp)) / (x + S) + 1), (std::vector<std::string>{"B", "S", "tp", "x"}));
  EXPECT_TRUE(collectSymbols(one).empty());
}

TEST_F(SizeTest, OrderDoesNotDependOnCreation) {
  SizeContext other;
  for (const char *name : {"y", "x", "tp", "cp", "E", "KV"})
    other.symbol(name);
  other.parse("ceildiv(y, x) + y % x");
  const char *text = "ceildiv(x, y)*(E + KV % cp) + max(cp, tp, x)/(x + y) + y*E^2/(tp*cp)";
  EXPECT_EQ(other.parse(text)->str(), read(text).str());
}

TEST_F(SizeTest, ManyNodes) {
  // As the memory of a large model has: every step makes new products and a new sum.
  std::vector<Size> parts;
  Size total = zero;
  for (int i = 0; i < 100000; ++i) {
    parts.push_back((B * S * D * i + S.ceilDiv(ctx.constant(i % 1009 + 2))) / tp);
    total = total + B * S * (i % 97) / tp + D;
  }
  EXPECT_EQ(total.str(), "4799685*B*S/tp + 100000*D"); // 1030 rounds of 0..96, then 0..89
  EXPECT_EQ(ctx.sum(parts).str().substr(0, 19), "4999950000*B*D*S/tp");
  EXPECT_EQ(ctx.sum(parts), read(ctx.sum(parts).str()));
}

TEST_F(SizeTest, BindingIsSorted) {
  SizeBinding binding = bind({{"tp", 2}, {"B", 1}});
  EXPECT_EQ(binding.sorted(), (std::vector<std::pair<std::string, int64_t>>{{"B", 1}, {"tp", 2}}));
  binding.unbind("B");
  EXPECT_EQ(binding.lookup("B"), std::nullopt);
}
