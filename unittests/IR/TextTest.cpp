//===- TextTest.cpp - the graph IR as text --------------------------------===//
//
// test/IR/roundtrip.sir says everything once. Here its text is damaged in every place:
// the reader may refuse it, with a message, but may not crash, and what it accepts
// must verify or be refused without a crash, and print to a fixed point.
//
//===----------------------------------------------------------------------===//
#include "ParsedGraph.h"
#include "stage/IR/verify/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

using namespace stage;

static std::string readTest(llvm::StringRef name) {
  auto file = llvm::MemoryBuffer::getFile((STAGE_TEST_DIR "/IR/" + name).str());
  EXPECT_TRUE(bool(file)) << name.str();
  return file ? (*file)->getBuffer().str() : "";
}

/// Words, numbers and single characters, with the space behind them.
static std::vector<std::string> splitTokens(llvm::StringRef text) {
  std::vector<std::string> tokens;
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '%'; };
  while (!text.empty()) {
    size_t length = std::max<size_t>(1, text.take_while(isWord).size());
    length += text.drop_front(length).take_while([](char c) { return llvm::isSpace(c); }).size();
    tokens.push_back(text.take_front(length).str());
    text = text.drop_front(length);
  }
  return tokens;
}

/// The reader's promise for any text.
static void checkAnyText(const std::string &text) {
  ParsedGraph first(text);
  if (!first.graph) {
    EXPECT_NE(first.messages.str(), "") << text;
    return;
  }
  EXPECT_EQ(first.messages.str(), "");
  std::string printed = first.print();
  ParsedGraph second(printed);
  ASSERT_TRUE(second.graph) << second.messages.str() << printed;
  EXPECT_EQ(second.print(), printed);
  verify(*first.graph, first.diags);
}

static void damage(llvm::StringRef name) {
  std::vector<std::string> tokens = splitTokens(readTest(name));
  std::vector<std::string> others = {"{ ",  "} ", "( ", ") ", "; ",  ", ",   "% ",
                                     "\" ", "1 ", "x ", "[ ", "-> ", "0.5 ", "99999999999999999999 "};
  auto text = [&](llvm::ArrayRef<std::string> pieces) { return llvm::join(pieces, ""); };
  unsigned random = 1;
  for (size_t i = 0; i < tokens.size() && !::testing::Test::HasFailure(); ++i) {
    std::vector<std::string> damaged = tokens;
    random = random * 1103515245 + 12345;
    switch (random >> 16 & 3) {
    case 0:
      damaged.erase(damaged.begin() + i);
      break;
    case 1:
      damaged.insert(damaged.begin() + i, tokens[i]);
      break;
    case 2:
      damaged[i] = others[(random >> 18) % others.size()];
      break;
    case 3:
      std::swap(damaged[i], damaged[(random >> 18) % tokens.size()]);
      break;
    }
    checkAnyText(text(damaged));
  }
}

TEST(TextTest, DamagedTexts) {
  damage("roundtrip.sir");
  damage("reshards.sir");
}

TEST(TextTest, TruncatedTexts) {
  std::string text = readTest("roundtrip.sir");
  for (size_t length = 0; length < text.size(); length += 7)
    checkAnyText(text.substr(0, length));
}

TEST(TextTest, DeepNesting) {
  for (llvm::StringRef open : {"(", "-", "!", "exp(", "x[", "where("}) {
    std::string formula;
    for (int i = 0; i < 100000; ++i)
      formula += open;
    checkAnyText("graph G { op f(x: [b]) -> (y: [b] = " + formula + "); }");
    checkAnyText("graph G { dim D = " + formula + "; }");
  }
}

TEST(TextTest, NamesComeFromPathsAndAreUnique) {
  ParsedGraph parsed(
      "graph G { forward { %a = input : f32[]; %b \"m.a\" = input : f32[]; %c \"m.a.grad\" = input : f32[];"
      "%d \"a.grad\" = input : f32[]; %7 = input : f32[]; %e \"x.3\" = input : f32[];"
      "%f \"x.+\" = input : f32[]; %g \"a.1\" = input : f32[]; return; } }");
  ASSERT_TRUE(parsed.graph) << parsed.messages.str();
  ValueNames names(*parsed.graph);
  std::vector<std::string> found;
  for (auto &op : parsed.graph->getForward())
    if (op->getNumResults())
      found.push_back(names.get(op->getResult()).str());
  EXPECT_EQ(found, (std::vector<std::string>{"a", "a.1", "a.grad", "a.grad.1", "0", "v3", "v", "v1"}));
  Value detached;
  EXPECT_EQ(names.get(&detached), "<detached>");
}

TEST(TextTest, NumbersAreTheShortestThatReadBack) {
  auto text = [](double number) {
    std::string result;
    llvm::raw_string_ostream os(result);
    printNumber(os, number);
    return os.str();
  };
  EXPECT_EQ(text(0.1), "0.1");
  EXPECT_EQ(text(1e-5), "1e-05");
  EXPECT_EQ(text(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(text(128), "128");
  EXPECT_EQ(text(-0.0), "-0");
  EXPECT_EQ(text(1.0 / 0.0), "inf");
}

/// A graph built by hand may be wrong in ways that no text can be.
TEST(TextTest, WrongGraphsPrintAndDoNotVerify) {
  Op removed(OpKind::Input, SMLoc());
  Value *gone = removed.addResult(TensorType());
  ParsedGraph parsed("graph G { op f(x: [b]) -> (y: [b] = x[b]); forward { %x = input : f32[4]; return %x; } }");
  Graph &graph = *parsed.graph;
  auto user = std::make_unique<Op>(OpKind::Compute, SMLoc());
  user->def = graph.defs.find("f");
  user->addOperand(gone);
  Value *result = user->addResult({DType::F32, {Extent()}});
  result->sharding.dims = {AxisList()};
  result->sharding.dims[0].emplace_back(7);
  graph.getForward().insertBefore(graph.getForward().getTerminator(), std::move(user));
  EXPECT_NE(parsed.print().find("f(%<detached>)"), std::string::npos);
  EXPECT_NE(parsed.print().find("{<axis 7>}"), std::string::npos);
  EXPECT_FALSE(verify(graph, parsed.diags));
  EXPECT_NE(parsed.messages.str().find("it is not in the graph [ir-not-visible]"), std::string::npos)
      << parsed.messages.str();
  EXPECT_NE(parsed.messages.str().find("[ir-no-size]"), std::string::npos);
  EXPECT_NE(parsed.messages.str().find("axis number 7 is none of the mesh [ir-bad-sharding]"), std::string::npos);
}
