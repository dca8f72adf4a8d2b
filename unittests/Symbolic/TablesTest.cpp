//===- TablesTest.cpp - sizes that are looked up --------------------------===//
#include "stage/Symbolic/Size.h"
#include "gtest/gtest.h"
#include <limits>

using namespace stage;

namespace {
class TablesTest : public ::testing::Test {
protected:
  TablesTest() {
    binding.bindTable("load", {{4}, {12, 3, 0, 12}});
    binding.bindTable("hist", {{2, 3}, {7, 5, 6, 1, 9, 2}});
    binding.bind("m", 1);
    binding.bind("x", 7);
  }

  Size read(llvm::StringRef text) {
    std::optional<Size> size = ctx.parse(text);
    EXPECT_TRUE(size) << text.str();
    return size ? *size : ctx.zero();
  }
  std::string canonical(llvm::StringRef text) { return read(text).str(); }
  int64_t value(llvm::StringRef text) {
    SizeValue found = evaluateCount(read(text), binding);
    EXPECT_TRUE(bool(found)) << text.str();
    return int64_t(found.value.num);
  }
  std::string missing(llvm::StringRef text) {
    SizeValue found = evaluate(read(text), binding);
    EXPECT_EQ(found.error, SizeError::NoEntry) << text.str();
    return found.symbol;
  }

  SizeContext ctx;
  SizeBinding binding;
};

TEST_F(TablesTest, PrintsWhatItReads) {
  for (const char *text : {"load[3]", "hist[m, 2*x + 1]", "D*load[x % 4]", "1/load[m]", "load[load[1]]^2", "load[max]",
                           "hist[sum, max]", "hist[m, sum]", "load[(max)]", "load[(sum)]", "load[sum + 1]",
                           "max(load[m], 3)", "ceildiv(load[coord.ep], tp)"})
    EXPECT_EQ(canonical(text), text);
  for (const char *text : {"load[", "load[]", "load[1", "load[1,]", "load[1)", "load 1]", "load[1][2"})
    EXPECT_FALSE(ctx.parse(text)) << text;
}

TEST_F(TablesTest, Algebra) {
  EXPECT_EQ(read("load[x + 1 - 1]"), read("load[x]"));
  EXPECT_EQ(canonical("2*load[x] + D*load[x]/D"), "3*load[x]");
  EXPECT_EQ(canonical("load[1] - load[1]"), "0");
  EXPECT_NE(read("load[1]"), read("load[2]"));
  EXPECT_NE(read("load[1]"), read("hist[1]"));
  EXPECT_NE(read("load[max]"), read("load[(max)]"));
  EXPECT_NE(read("load[max]"), read("load[sum]"));
  // A number of elements is whole; it is not a symbol.
  EXPECT_TRUE(read("load[x]").isIntegral());
  EXPECT_FALSE(read("load[x]/2").isIntegral());
  EXPECT_EQ(canonical("(6*load[x]) div (2*load[x])"), "3");
  EXPECT_EQ(read("load[x]").getSymbol(), "");
  EXPECT_EQ(canonical("load[1/0]"), "undefined()");
  EXPECT_EQ(read("load[y] + load[B]").str(), "load[B] + load[y]");
}

TEST_F(TablesTest, Values) {
  EXPECT_EQ(value("load[0]"), 12);
  EXPECT_EQ(value("2*load[m] + load[x - 5]"), 6);
  EXPECT_EQ(value("hist[m, 1]"), 9);
  EXPECT_EQ(value("hist[0, load[1] - 1]"), 6);
  EXPECT_EQ(value("load[max]"), 12);
  EXPECT_EQ(value("load[sum]"), 27);
  EXPECT_EQ(value("hist[m, max]"), 9);
  EXPECT_EQ(value("hist[m, sum]"), 12);
  EXPECT_EQ(value("hist[sum, 2]"), 8);
  EXPECT_EQ(value("hist[max, 0]"), 7);
  EXPECT_EQ(value("hist[max, sum]"), 18); // the larger of two sums
  EXPECT_EQ(value("hist[sum, max]"), 16); // the sum of two largest
  EXPECT_EQ(value("hist[sum, sum]"), 30);
}

TEST_F(TablesTest, SharesPrintAndFold) {
  for (const char *text : {"share(load, n, coord.ep, ep)", "share(load, B*S, max, 2)", "share(load, n, i, 2, max, 2)",
                           "2*share(load, 7, (max), 4)", "shares(load, n)", "shares(load, B*S, coord.ep, ep)"})
    EXPECT_EQ(canonical(text), text);
  EXPECT_EQ(canonical("share(load, n)"), "n"); // all of it
  EXPECT_EQ(canonical("share(load, 1/0, i, 2)"), "undefined()");
  EXPECT_TRUE(read("share(load, n, i, 2)").isIntegral());
  for (const char *text :
       {"share(load)", "share(load, n, i)", "share(load, n, sum, 2)", "share(3, n, i, 2)", "share(load, n, i, 2"})
    EXPECT_FALSE(ctx.parse(text)) << text;
  Size read = this->read("share(load, n, i, m)");
  EXPECT_EQ(substitute(read, [&](llvm::StringRef name) { return name == "n" ? ctx.constant(9) : Size(); }).str(),
            "share(load, 9, i, m)");
}

// The method of A. Hamilton by its definition: quotas rounded down, and one more for the largest remainders.
TEST_F(TablesTest, SharesOfATotal) {
  EXPECT_EQ(apportion({13, 2, 7, 0, 9, 1, 5, 3}, 64), (std::vector<int64_t>{21, 3, 11, 0, 14, 2, 8, 5}));
  EXPECT_EQ(apportion({1, 1, 1}, 5), (std::vector<int64_t>{2, 2, 1})); // of equal ones the first
  EXPECT_EQ(apportion({0, 5}, 3), (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(apportion({7}, 0), (std::vector<int64_t>{0}));
  int64_t large = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(apportion({large, large}, large), (std::vector<int64_t>{large / 2 + 1, large / 2}));
  // 12, 3, 0, 12 of 27: of 9 these get 4, 1, 0 and 4.
  EXPECT_EQ(value("share(load, 9, 0, 4)"), 4);
  EXPECT_EQ(value("share(load, 9, 2, 4)"), 0);
  // How many get any.
  EXPECT_EQ(value("shares(load, 9)"), 3);
  EXPECT_EQ(value("shares(load, 9, 0, 2)"), 2);
  EXPECT_EQ(value("shares(load, 9, 1, 2)"), 1);
  EXPECT_EQ(value("shares(load, 1)"), 1); // the first of two equal ones
  EXPECT_EQ(value("share(load, 9, 1, 2)"), 4);
  EXPECT_EQ(value("share(load, 9, 0, 2)"), 5);
  EXPECT_EQ(value("share(load, 9, m, 2, 0, 2)"), 0);
  EXPECT_EQ(value("share(load, 9, max, 2)"), 5);
  EXPECT_EQ(value("share(load, 9, max, 2, 1, 2)"), 4); // the larger one of the second quarters of both halves
  EXPECT_EQ(value("share(load, 9, max, 4)"), 4);
  EXPECT_EQ(value("share(load, 9, 0, 1)"), 9);
}

TEST_F(TablesTest, SharesWithoutValues) {
  EXPECT_EQ(missing("share(load, 9, 4, 4)"), "share(load, 9, 4, 4)");
  EXPECT_EQ(missing("share(load, 9, 0, 3)"), "share(load, 9, 0, 3)");
  EXPECT_EQ(missing("share(load, 9/2, 0, 2)"), "share(load, 9/2, 0, 2)");
  EXPECT_EQ(missing("share(hist, 9, 0, 2)"), "share(hist, 9, 0, 2)");
  EXPECT_EQ(evaluate(read("share(none, 9, 0, 2)"), binding).error, SizeError::UnboundSymbol);
  EXPECT_EQ(evaluate(read("share(load, 9, i, 2)"), binding).error, SizeError::UnboundSymbol);
}

TEST_F(TablesTest, NoValues) {
  EXPECT_EQ(missing("load[4]"), "load[4]");
  EXPECT_EQ(missing("load[0 - m]"), "load[-1]");
  EXPECT_EQ(missing("load[x/2]"), "load[7/2]");
  EXPECT_EQ(missing("hist[2, m]"), "hist[2, 1]");
  EXPECT_EQ(missing("hist[max, 3]"), "hist[max, 3]");
  EXPECT_EQ(missing("hist[m]"), "hist[1]");
  EXPECT_EQ(missing("load[m, max]"), "load[1, max]");
  EXPECT_EQ(evaluate(read("none[m]"), binding).symbol, "none");
  EXPECT_EQ(evaluate(read("load[y]"), binding).symbol, "y");
  EXPECT_EQ(evaluate(read("x/load[2]"), binding).error, SizeError::DivisionByZero);
  binding.bindTable("huge", {{2}, {INT64_MAX, INT64_MAX}});
  EXPECT_EQ(evaluateCount(read("huge[sum]"), binding).error, SizeError::Overflow);
  EXPECT_EQ(value("huge[max]"), INT64_MAX);
}

/// What was asked of a table once is asked of another one of that name anew, and of a copy that gets other entries.
TEST_F(TablesTest, CombinedEntriesAreThoseOfTheTable) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(value("hist[m, max]"), 9);
    EXPECT_EQ(value("hist[m, sum]"), 12);
    EXPECT_EQ(value("hist[m - 1, sum]"), 18);
    EXPECT_EQ(value("hist[max, 1]"), 9);
    EXPECT_EQ(value("hist[max, 2]"), 6);
    EXPECT_EQ(value("hist[sum, max]"), 16);
    EXPECT_EQ(value("hist[max, sum]"), 18);
  }
  SizeTable copy = *binding.lookupTable("hist");
  copy.entries[4] = 1;
  binding.bindTable("hist", copy);
  EXPECT_EQ(value("hist[m, max]"), 2);
  EXPECT_EQ(value("hist[sum, max]"), 9);
}

/// Each of as many classes of ranks as there are entries asks for the largest: the square would not end.
TEST_F(TablesTest, CombinedEntriesAreFoundOnce) {
  constexpr int64_t size = 1 << 18;
  binding.bindTable("long", {{size}, std::vector<int64_t>(size, 3)});
  Size most = read("long[max] + long[sum] + long[c]");
  for (int64_t c = 0; c < size; ++c) {
    binding.bind("c", c);
    ASSERT_EQ(evaluateCount(most, binding).value.num, 3 + 3 * size + 3);
  }
}

TEST_F(TablesTest, SymbolsAndLookups) {
  EXPECT_EQ(collectSymbols(read("D*hist[m, load[x]] + load[max]")), (std::vector<std::string>{"D", "m", "x"}));
  std::vector<SizeLookup> lookups = collectLookups(read("D*hist[m, load[x]]"));
  ASSERT_EQ(lookups.size(), 2u);
  EXPECT_EQ(lookups[0].table, "hist");
  EXPECT_EQ(lookups[0].indices[0], read("m"));
  EXPECT_EQ(lookups[1].table, "load");
  EXPECT_EQ(lookups[1].indices[0], read("x"));
  EXPECT_TRUE(collectLookups(read("D*x")).empty());
}

TEST_F(TablesTest, Substitute) {
  auto replacement = [&](llvm::StringRef name) { return name == "x" ? ctx.constant(2) : Size(); };
  EXPECT_EQ(substitute(read("D*hist[m, x + 1]^2/load[x]"), replacement), read("D*hist[m, 3]^2/load[2]"));
  EXPECT_EQ(substitute(read("hist[max, x]"), replacement), read("hist[max, 2]"));
}

TEST_F(TablesTest, Tables) {
  std::vector<std::string> names;
  for (auto &[name, table] : binding.sortedTables())
    names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"hist", "load"}));
  EXPECT_EQ(binding.lookupTable("hist")->dims.size(), 2u);
  EXPECT_FALSE(binding.lookupTable("m"));
  EXPECT_FALSE(binding.lookup("load"));
}
} // namespace
