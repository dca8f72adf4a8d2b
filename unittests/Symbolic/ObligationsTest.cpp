//===- ObligationsTest.cpp ------------------------------------------------===//
#include "stage/Symbolic/Size.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

using namespace stage;
using Kind = Obligations::Kind;

namespace {
class ObligationsTest : public ::testing::Test {
protected:
  ObligationsTest() {
    auto buffer = llvm::MemoryBuffer::getMemBuffer("shard KV over tp;\n", "job.stg");
    loc = SMLoc::getFromPointer(buffer->getBufferStart() + 6);
    sources.AddNewSourceBuffer(std::move(buffer), {});
    binding.bind("KV", 8);
    binding.bind("D", 12);
  }

  /// What checking prints.
  std::string check(bool expected = false) {
    std::string text;
    llvm::raw_string_ostream os(text);
    DiagnosticEngine diags(sources, os);
    EXPECT_EQ(obligations.check(binding, diags), expected);
    EXPECT_EQ(diags.hasErrors(), !expected);
    return os.str();
  }

  llvm::SourceMgr sources;
  SMLoc loc;
  SizeContext ctx;
  Size KV = ctx.symbol("KV"), D = ctx.symbol("D"), tp = ctx.symbol("tp");
  SizeBinding binding;
  Obligations obligations;
};

bool contains(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }
} // namespace

TEST_F(ObligationsTest, PaidOnesAreSilent) {
  binding.bind("tp", 4);
  obligations.add(Kind::Divides, KV, tp, loc, "a");
  obligations.add(Kind::Equal, KV, tp * 2, loc, "b");
  obligations.add(Kind::AtMost, tp, KV, loc, "c");
  obligations.add(Kind::AtMost, tp, tp, loc, "d");
  obligations.add(Kind::Positive, KV, Size(), loc, "e");
  EXPECT_EQ(check(true), "");
}

TEST_F(ObligationsTest, OwedAlthoughItCancels) {
  // (KV/tp)*(D/KV) prints as D/tp, which is fine for tp = 3; the shard of KV is not.
  binding.bind("tp", 3);
  obligations.add(Kind::Divides, KV, tp, loc, "dim KV sharded over tp");
  EXPECT_EQ((KV / tp * (D / KV)).str(), "D/tp");
  EXPECT_EQ(check(), "job.stg:1:7: error: 'KV' = 8 is not divisible by 'tp' = 3: dim KV sharded over tp "
                     "[size-not-divisible]\nshard KV over tp;\n      ^\n"
                     "note: nearest multiples of 3: 6 and 9; nearest divisors of 8: 2 and 4\n");
}

TEST_F(ObligationsTest, NoDivisorIsNearLargeSizes) {
  // A search up to the next divisor would not end.
  binding.bind("KV", 2'000'000'000'000'003);
  binding.bind("tp", 1'000'000'000'000'037);
  obligations.add(Kind::Divides, KV, tp, loc, "a");
  EXPECT_TRUE(contains(check(), "nearest multiples of 1000000000000037: 1000000000000037 and 2000000000000074; "
                                "nearest divisors of 2000000000000003: 1\n"));
}

TEST_F(ObligationsTest, ValuesOfCompoundSizesAreShown) {
  binding.bind("tp", 5);
  obligations.add(Kind::Divides, D * KV, tp * 2, loc, "why");
  std::string text = check();
  EXPECT_TRUE(contains(text, "'D*KV' = 96 is not divisible by '2*tp' = 10: why")) << text;
  EXPECT_TRUE(contains(text, "note: where D = 12, KV = 8, tp = 5")) << text;
}

TEST_F(ObligationsTest, FractionsAreNotDivisible) {
  obligations.add(Kind::Divides, D / KV, ctx.one(), loc, "why");
  EXPECT_TRUE(contains(check(), "'D/KV' = 3/2 is not divisible by 1: why"));
}

TEST_F(ObligationsTest, EveryBrokenOneIsReported) {
  binding.bind("tp", 0);
  obligations.add(Kind::Equal, KV, D, loc, "a");
  obligations.add(Kind::AtMost, D, KV, loc, "b");
  obligations.add(Kind::Positive, tp, Size(), loc, "c");
  obligations.add(Kind::Divides, KV, tp, loc, "d");
  obligations.add(Kind::Positive, D / tp, Size(), loc, "e");
  obligations.add(Kind::Positive, ctx.symbol("U") + 1, Size(), loc, "f");
  obligations.add(Kind::Positive, ctx.constant(INT64_MAX) * INT64_MAX * INT64_MAX, Size(), loc, "g");
  std::string text = check();
  for (const char *part :
       {"'KV' = 8 differs from 'D' = 12: a [sizes-differ]", "'D' = 12 is larger than 'KV' = 8: b [size-too-large]",
        "'tp' = 0 is not positive: c [size-not-positive]", "size 'tp' divides by zero: d [size-divides-by-zero]",
        "size 'D/tp' divides by zero: e [size-divides-by-zero]",
        "size 'U + 1' has no value, as 'U' is not bound: f [size-unbound]",
        "size 'overflow()' is too large to compute: g [size-overflows]"})
    EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
}

TEST_F(ObligationsTest, RepetitionIsDropped) {
  obligations.add(Kind::Divides, KV, tp, loc, "a");
  obligations.add(Kind::Divides, KV, tp, loc, "b");
  obligations.add(Kind::Divides, KV, tp, SMLoc(), "c");
  obligations.add(Kind::Equal, KV, tp, loc, "d");
  EXPECT_EQ(obligations.all().size(), 3u);
}

TEST_F(ObligationsTest, NoEntryOfTheTable) {
  binding.bindTable("load", {{4}, {12, 3, 0, 12}});
  obligations.add(Kind::Equal, D, ctx.lookup("load", {ctx.constant(3)}), loc, "rows of the last rank");
  check(/*expected=*/true);
  obligations.add(Kind::Equal, D, ctx.lookup("load", {KV}), loc, "rows of rank KV");
  std::string text = check();
  EXPECT_TRUE(contains(text, "size 'load[KV]' has no value, as the table has no entry 'load[8]': rows of rank KV"))
      << text;
}
