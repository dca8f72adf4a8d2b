//===- SizeQueriesTest.cpp - what was asked of a binding ------------------===//
#include "stage/Symbolic/SizeQueries.h"
#include "gtest/gtest.h"

using namespace stage;

namespace {
class SizeQueriesTest : public ::testing::Test {
protected:
  SizeQueriesTest() {
    binding.bind("L", 4);
    binding.bind("D", 8);
  }

  /// What `ask` asks of the binding.
  SizeQueries record(llvm::function_ref<void(const SizeBinding &)> ask) {
    SizeQueries queries;
    RecordQueries recorder(binding, queries);
    ask(binding);
    return queries;
  }

  SizeBinding with(llvm::StringRef symbol, int64_t value) {
    SizeBinding other = binding;
    other.bind(symbol, value);
    return other;
  }

  SizeContext ctx;
  SizeBinding binding;
  Size L = ctx.symbol("L"), D = ctx.symbol("D"), V = ctx.symbol("V");
};

TEST_F(SizeQueriesTest, ValuesThatWereLookedUp) {
  SizeQueries queries = record([&](const SizeBinding &asked) { evaluate(L * 2, asked); });
  EXPECT_TRUE(queries.agreesWith(binding));
  EXPECT_TRUE(queries.agreesWith(with("D", 9)));
  EXPECT_FALSE(queries.agreesWith(with("L", 5)));
}

TEST_F(SizeQueriesTest, ThatASymbolHadNoValue) {
  SizeQueries queries = record([&](const SizeBinding &asked) { evaluate(V, asked); });
  EXPECT_TRUE(queries.agreesWith(binding));
  EXPECT_FALSE(queries.agreesWith(with("V", 1)));
}

/// Only the outcome counts, but all of it: a value, none, one too large.
TEST_F(SizeQueriesTest, WhetherASizeHasAValue) {
  SizeQueries queries = record([&](const SizeBinding &asked) {
    EXPECT_EQ(checkValue(D / (L - 5), asked).error, SizeError::None);
    EXPECT_EQ(checkValue(V, asked).error, SizeError::UnboundSymbol);
  });
  EXPECT_TRUE(queries.agreesWith(with("L", 7)));
  EXPECT_FALSE(queries.agreesWith(with("L", 5)));
  EXPECT_FALSE(queries.agreesWith(with("V", 5)));
  SizeQueries large = record([&](const SizeBinding &asked) { checkValue(D * D, asked); });
  EXPECT_TRUE(large.agreesWith(with("D", 1'000'000'000)));
  EXPECT_FALSE(large.agreesWith(with("D", 4'000'000'000)));
}

/// Tables, too: what they hold, and that there is none.
TEST_F(SizeQueriesTest, TablesThatWereLookedUp) {
  Size entry = ctx.lookup("load", {ctx.constant(1)});
  SizeQueries missing = record([&](const SizeBinding &asked) { evaluate(entry, asked); });
  SizeBinding first = binding, second = binding;
  first.bindTable("load", {{2}, {3, 5}});
  second.bindTable("load", {{2}, {3, 6}});
  EXPECT_TRUE(missing.agreesWith(binding));
  EXPECT_FALSE(missing.agreesWith(first));
  binding = first;
  SizeQueries found = record([&](const SizeBinding &asked) { evaluate(entry, asked); });
  EXPECT_TRUE(found.agreesWith(first));
  EXPECT_FALSE(found.agreesWith(second));
  EXPECT_FALSE(found.agreesWith(SizeBinding()));
}

TEST_F(SizeQueriesTest, NothingIsNotedLater) {
  SizeQueries queries = record([](const SizeBinding &) {});
  evaluate(L, binding);
  EXPECT_TRUE(queries.agreesWith(SizeBinding()));
}
} // namespace
