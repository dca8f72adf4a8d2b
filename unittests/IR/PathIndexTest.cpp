//===- PathIndexTest.cpp --------------------------------------------------===//
#include "stage/IR/graph/PathIndex.h"
#include "stage/IR/graph/PathPattern.h"
#include "gtest/gtest.h"
#include <random>

using namespace stage;

namespace {
std::vector<unsigned> find(const PathIndex &index, llvm::StringRef pattern) {
  return index.find(*PathPattern::parse(pattern));
}
using Numbers = std::vector<unsigned>;
} // namespace

TEST(PathIndexTest, TakesTheRarestName) {
  PathIndex index;
  index.add(0, "layers.l0.h");
  index.add(1, "layers.l1.h");
  index.add(2, "layers.l1.q");
  index.add(3, "h");
  EXPECT_EQ(find(index, "layers.l0.h"), Numbers({0}));
  EXPECT_EQ(find(index, "layers.*.q"), Numbers({2}));
  EXPECT_EQ(find(index, "**.l1.*"), Numbers({1, 2}));
  EXPECT_EQ(find(index, "**.{q, h, q}"), Numbers({0, 1, 2, 3}));
  EXPECT_EQ(find(index, "layers.**"), Numbers({0, 1, 2}));
  EXPECT_EQ(find(index, "layers[*].l2.h"), Numbers());
  EXPECT_EQ(find(index, "a.b.c.d.e"), Numbers());
  EXPECT_EQ(find(index, "**"), Numbers({0, 1, 2, 3}));
  EXPECT_EQ(find(index, "*l*.*"), Numbers({0, 1, 2, 3}));
}

TEST(PathIndexTest, AThingMayHaveSeveralPaths) {
  PathIndex index;
  index.add(0, "rope");
  index.add(0, "rope.1");
  index.add(2, "rope");
  EXPECT_EQ(find(index, "rope()"), Numbers({0, 2}));
  EXPECT_EQ(find(index, "**.1()"), Numbers({0}));
}

// What a pattern matches is always among what is found.
TEST(PathIndexTest, LosesNothing) {
  std::mt19937 random(1);
  auto draw = [&](unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(random); };
  const char *names[] = {"a", "b", "ab", "ba"};
  const char *segments[] = {"a", "b", "ab", "*", "a*", "**", "{a, b}", "{ba, b*}", "a[*]"};
  auto path = [&](auto &words) {
    std::string text;
    for (unsigned i = 0, n = 1 + draw(4); i < n; ++i)
      text += (i ? "." : "") + std::string(words[draw(std::size(words))]);
    return text;
  };
  unsigned matched = 0;
  for (unsigned round = 0; round < 200; ++round) {
    PathIndex index;
    std::vector<std::string> paths;
    for (unsigned i = 0; i < 20; ++i) {
      paths.push_back(path(names));
      index.add(i, paths.back());
    }
    PathPattern pattern = *PathPattern::parse(path(segments) + "()");
    Numbers found = index.find(pattern);
    for (unsigned i = 0; i < paths.size(); ++i) {
      auto [scope, name] = llvm::StringRef(paths[i]).rsplit('.');
      bool isMatch = name.empty() ? pattern.matchesOp("", scope) : pattern.matchesOp(scope, name);
      matched += isMatch;
      EXPECT_TRUE(!isMatch || llvm::is_contained(found, i)) << paths[i];
    }
  }
  EXPECT_GT(matched, 300u);
}

// A name in braces is seen in a path if, and only if, the pattern with that name alone in its place matches the path.
TEST(PathIndexTest, SeenNames) {
  std::mt19937 random(2);
  auto draw = [&](unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(random); };
  const char *names[] = {"a", "b", "ab"};
  const char *segments[] = {"a", "*", "**", "{a, b}", "{ab, b*}", "{a, b?, c}"};
  auto path = [&](auto &words) {
    std::string text;
    for (unsigned i = 0, n = 1 + draw(5); i < n; ++i)
      text += (i ? "." : "") + std::string(words[draw(std::size(words))]);
    return text;
  };
  unsigned numSeen = 0, numUnseen = 0;
  for (unsigned round = 0; round < 2000; ++round) {
    PathPattern pattern = *PathPattern::parse(path(segments));
    std::string text = path(names);
    PathPattern::SeenNames seen;
    pattern.notePath(text, seen);
    std::vector<std::string> unseen;
    for (auto &[name, alone] : pattern.listUnseen(seen))
      unseen.push_back(name + " in " + alone.getText());
    std::vector<std::string> expected;
    for (auto &[name, alone] : pattern.listUnseen({})) { // all names without a `?`
      if (!alone.matchesPath(text))
        expected.push_back(name + " in " + alone.getText());
      numSeen += alone.matchesPath(text);
    }
    numUnseen += expected.size();
    EXPECT_EQ(unseen, expected) << pattern.getText() << " on " << text;
    EXPECT_EQ(pattern.namesAlternatives(), !pattern.listUnseen({}).empty());
  }
  EXPECT_GT(numSeen, 300u);
  EXPECT_GT(numUnseen, 300u);
}

TEST(PathIndexTest, LackableNames) {
  EXPECT_FALSE(PathPattern::parse("**.{q?, k?}")->namesAlternatives());
  EXPECT_FALSE(PathPattern::parse("**.{q, k}")->mayLack());
  EXPECT_TRUE(PathPattern::parse("**.{q, k}?")->mayLack());
  EXPECT_TRUE(PathPattern::parse("**.{q, k?}()")->matchesOp("a", "k"));
  EXPECT_TRUE(PathPattern::parse("**.{q(), k()?}")->matchesOp("a", "k"));
  EXPECT_TRUE(PathPattern::parse("param **.w?")->mayLack());
  EXPECT_FALSE(PathPattern::parse("a?.b"));
  EXPECT_FALSE(PathPattern::parse("?"));
}
