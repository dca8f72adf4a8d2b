//===- ParseTest.cpp - places, values and the grammar itself --------------===//
//
// What text can show is tested by test/Parse; here is what it cannot.
//
//===----------------------------------------------------------------------===//
#include "stage/Parse/Parse.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace stage;

namespace {

class ParseTest : public testing::Test {
protected:
  ParseTest() : stream(errors), diags(sources, stream) {}

  unsigned add(llvm::StringRef text) {
    return sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, "test.stg"), SMLoc());
  }
  ast::Expr *expr(llvm::StringRef text) { return parseExpression(context, diags, add(text)); }
  static std::string textOf(SMRange range) { return {range.Start.getPointer(), range.End.getPointer()}; }

  std::string errors;
  llvm::raw_string_ostream stream;
  llvm::SourceMgr sources;
  DiagnosticEngine diags;
  ast::ASTContext context;
};

/// The value of a number as text; "none" if it is refused.
class NumberTest : public ParseTest {
protected:
  std::string value(llvm::StringRef text) {
    auto *number = llvm::dyn_cast_or_null<ast::NumberExpr>(expr(text));
    if (!number)
      return "none";
    EXPECT_EQ(number->text, text);
    return std::to_string(int64_t(number->value.num)) + "/" + std::to_string(int64_t(number->value.den)) +
           (number->isReal ? " real" : "");
  }
};

} // namespace

// R1.6
TEST_F(NumberTest, ValuesAreExact) {
  EXPECT_EQ(value("0"), "0/1");
  EXPECT_EQ(value("14_336"), "14336/1");
  EXPECT_EQ(value("4Ki"), "4096/1");
  EXPECT_EQ(value("3Mi"), "3145728/1");
  EXPECT_EQ(value("2Gi"), "2147483648/1");
  EXPECT_EQ(value("1.25"), "5/4 real");
  EXPECT_EQ(value("5.0e5"), "500000/1 real");
  EXPECT_EQ(value("1e-5"), "1/100000 real");
  EXPECT_EQ(value("25E+1"), "250/1 real");
  EXPECT_EQ(value("10.500"), "21/2 real");
  EXPECT_EQ(value("0.0e-400"), "0/1 real");
  EXPECT_EQ(value("1e400"), "none");
  EXPECT_DOUBLE_EQ(llvm::cast<ast::NumberExpr>(expr("1e-5"))->real, 1e-5);
}

TEST_F(ParseTest, ExpressionsOfTheCommandLine) {
  ASSERT_TRUE(expr("4Ki"));
  ASSERT_TRUE(expr("megatron(tp = 8)"));
  EXPECT_TRUE(llvm::isa<ast::RangeExpr>(expr("0..4")));
  EXPECT_EQ(expr("1 2"), nullptr);
  EXPECT_EQ(expr(""), nullptr);
  EXPECT_EQ(diags.getNumErrors(), 2u);
}

// R1.1: places are bytes of the buffer, also behind longer characters and a byte order mark.
TEST_F(ParseTest, PlacesAreBytes) {
  auto *call =
      llvm::cast<ast::CallExpr>(expr("\xef\xbb\xbf f(\"\xc3\xa9\xf0\x9f\x98\x80\", \"\xe2\x82\xac\", g(y) as z)"));
  ASSERT_EQ(call->args.size(), 3u);
  EXPECT_EQ(textOf(call->args[0].value->range), "\"\xc3\xa9\xf0\x9f\x98\x80\"");
  EXPECT_EQ(textOf(call->args[1].value->range), "\"\xe2\x82\xac\"");
  auto *inner = llvm::cast<ast::CallExpr>(call->args[2].value);
  EXPECT_EQ(textOf(inner->range), "g(y) as z");
  EXPECT_EQ(textOf(inner->as.range), "z");
  EXPECT_EQ(inner->as.name, "z");
}

TEST_F(ParseTest, DeclarationsHaveDocumentationAndRanges) {
  ast::File *file = parseFile(context, diags, add("//! File.\n\n/// One.\n// no\n/// Two.\nop f();\nop g();"));
  ASSERT_TRUE(file);
  ASSERT_EQ(file->doc.size(), 1u);
  EXPECT_EQ(file->doc[0], "File.");
  ASSERT_EQ(file->decls.size(), 2u);
  ASSERT_EQ(file->decls[0]->doc.size(), 2u);
  EXPECT_EQ(file->decls[0]->doc[1], "Two.");
  EXPECT_TRUE(file->decls[1]->doc.empty());
  EXPECT_EQ(textOf(file->decls[1]->range), "op g();");
  EXPECT_EQ(textOf(file->decls[0]->name.range), "f");
}

// No program can be read in two ways.
TEST_F(ParseTest, GrammarIsUnambiguous) {
  unsigned count = 0;
  for (const char *folder : {"/test/Parse", "/stdlib", "/examples"}) {
    std::error_code error;
    llvm::sys::fs::recursive_directory_iterator it(llvm::Twine(STAGE_SOURCE_DIR) + folder, error), end;
    for (; !error && it != end; it.increment(error)) {
      if (!llvm::StringRef(it->path()).endswith(".stg"))
        continue;
      auto buffer = llvm::MemoryBuffer::getFile(it->path());
      ASSERT_TRUE(buffer) << it->path();
      unsigned id = sources.AddNewSourceBuffer(std::move(*buffer), SMLoc());
      for (const std::string &place : findAmbiguities(diags, id))
        ADD_FAILURE() << it->path() << ":" << place;
      ++count;
    }
  }
  EXPECT_GE(count, 9u);
}
