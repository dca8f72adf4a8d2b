//===- TreeBytesTest.cpp - trees that are written, read and kept ----------===//
#include "stage/AST/TreeBytes.h"
#include "stage/Parse/Parse.h"
#include "stage/Support/Installation.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>
#include <random>

using namespace stage;
using namespace stage::ast;

//===----------------------------------------------------------------------===//
// AST_FIELDS lists all members
//===----------------------------------------------------------------------===//

namespace {
/// A value of any type.
struct Anything {
  template <typename T> operator T() const;
};
/// How many values a struct can be initialized with: its bases are one each.
template <typename T, typename... Values> constexpr size_t countMembers() {
  if constexpr (requires { T{Values{}..., Anything{}}; })
    return countMembers<T, Values..., Anything>();
  else
    return sizeof...(Values);
}
template <typename T> constexpr size_t countFields = std::tuple_size_v<decltype(T{}.fields())>;
/// Those that a class lists for its base.
template <typename T>
constexpr size_t countInherited = std::is_base_of_v<Decl, T>            ? countMembers<Decl>() - 1
                                  : std::is_base_of_v<LayerRuleStmt, T> ? countMembers<LayerRuleStmt>() - 1
                                                                        : 0;
} // namespace

#define AST_NODE(KIND, category)                                                                                       \
  static_assert(countFields<KIND> - countInherited<KIND> == countMembers<KIND>() - 1, #KIND " lists all its fields");
#include "stage/AST/Nodes.def"
#define CHECK_PART(TYPE, HIDDEN)                                                                                       \
  static_assert(countFields<TYPE> == countMembers<TYPE>() - (HIDDEN), #TYPE " lists all its fields");
CHECK_PART(Ident, 0)
CHECK_PART(Argument, 0)
CHECK_PART(OpExpr::Operand, 0)
CHECK_PART(AxisListSyntax, 0)
CHECK_PART(ShapeDim, 0)
CHECK_PART(Param, 0)
CHECK_PART(MessagePart, 0)
CHECK_PART(Pattern, 0)
CHECK_PART(MeshStmt::AxisSyntax, 0)
CHECK_PART(ShardStmt::Item, 0)
CHECK_PART(OpDecl::Result, 0)
CHECK_PART(Import, 0)
CHECK_PART(File, 2) // its path and its buffer

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

namespace {
class TreeBytesTest : public testing::Test {
protected:
  TreeBytesTest() : stream(errors), diags(sources, stream) {}

  unsigned add(StringRef text) {
    return sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, "test.stg"), SMLoc());
  }
  StringRef getText(unsigned id) const { return sources.getMemoryBuffer(id)->getBuffer(); }
  static std::string print(const File &file) {
    std::string text;
    llvm::raw_string_ostream os(text);
    ast::print(os, file);
    return os.str();
  }
  /// Reads the tree of a text into another buffer, and compares.
  void check(StringRef text, StringRef name) {
    unsigned first = add(text), second = add(text);
    File *file = parseFile(context, diags, first);
    if (!file)
      return; // a test of errors
    std::string bytes = writeTree(*file, getText(first));
    File *again = readTree(context, bytes, getText(second));
    ASSERT_TRUE(again) << name.str();
    EXPECT_EQ(print(*again), print(*file)) << name.str();
    // Places are in the second buffer.
    EXPECT_EQ(writeTree(*again, getText(second)), bytes) << name.str();
    ++count;
  }

  std::string errors;
  llvm::raw_string_ostream stream;
  llvm::SourceMgr sources;
  DiagnosticEngine diags;
  ASTContext context;
  unsigned count = 0;
};

constexpr const char *program = R"(//! A file.
import std.nn (linear);
/// Twice.
op twice(x: [b, s], rate: real = 1.25e-3) -> [b, s] = 2 * x[b, s] { class = "light"; }
model M(D, n = none) {
  param w: bf16[D, (k e)] partial(max, tp);
  input x: i32[B@(dp, cp), D];
  repeat layers[i in 0..L] { x = twice(x, rate = if i < 2 { 1e-40 } else { 1 }) as t; }
  require D % 2 == 0, "an even D, not {D}";
  output sum[d](x)[0, ...];
}
strategy s(tp) { t(2); mesh (pp, dp = 4); at layers[*].{x,h?}: shard (KV, F?) over tp order mirrored; }
)";
} // namespace

TEST_F(TreeBytesTest, TreesAreReadAsTheyWereWritten) {
  for (const char *folder : {"/test", "/stdlib", "/examples"}) {
    std::error_code error;
    llvm::sys::fs::recursive_directory_iterator it(llvm::Twine(STAGE_SOURCE_DIR) + folder, error), end;
    for (; !error && it != end; it.increment(error))
      if (llvm::StringRef(it->path()).endswith(".stg"))
        check((*llvm::MemoryBuffer::getFile(it->path()))->getBuffer(), it->path());
  }
  check("\xef\xbb\xbf//! Behind a mark, \xc3\xa9.\nfn f(x) = x;", "with a byte order mark");
  check("", "empty");
  EXPECT_GE(count, 100u);
}

TEST_F(TreeBytesTest, ValuesOfNumbersAreKept) {
  unsigned id = add("fn f() = 1e-40 + 170141183460469231731687303715884105727 + 0.3;");
  File *file = parseFile(context, diags, id);
  ASSERT_TRUE(file);
  auto getNumbers = [](const File &file) {
    auto *sum = llvm::cast<BinaryExpr>(llvm::cast<FnDecl>(file.decls[0])->value);
    auto *first = llvm::cast<BinaryExpr>(sum->left);
    return std::tuple(llvm::cast<NumberExpr>(first->left)->real, llvm::cast<NumberExpr>(first->left)->isExact,
                      llvm::cast<NumberExpr>(first->right)->value.str(),
                      llvm::cast<NumberExpr>(sum->right)->value.str());
  };
  File *again = readTree(context, writeTree(*file, getText(id)), getText(id));
  ASSERT_TRUE(again);
  EXPECT_EQ(getNumbers(*again), getNumbers(*file));
  EXPECT_EQ(std::get<2>(getNumbers(*again)), "170141183460469231731687303715884105727");
}

// Without a checksum: bytes may give a tree that nobody wrote, and no read outside of them (run under sanitizers).
TEST_F(TreeBytesTest, DamagedBytesAreHarmless) {
  unsigned id = add(program);
  File *file = parseFile(context, diags, id);
  ASSERT_TRUE(file) << stream.str();
  std::string bytes = writeTree(*file, getText(id));
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_EQ(readTree(context, StringRef(bytes).take_front(length), getText(id)), nullptr) << length;
  EXPECT_EQ(readTree(context, bytes + "x", getText(id)), nullptr);
  EXPECT_EQ(readTree(context, bytes, getText(id).drop_back(40)), nullptr); // places behind the end of the text
  std::mt19937 random(1);
  unsigned refused = 0;
  for (unsigned i = 0; i < 20'000; ++i) {
    ASTContext own;
    std::string damaged = bytes;
    for (unsigned flips = 1 + random() % 3; flips-- > 0;)
      damaged[random() % damaged.size()] = char(random());
    refused += readTree(own, damaged, getText(id)) == nullptr;
  }
  EXPECT_GT(refused, 10'000u);
}

//===----------------------------------------------------------------------===//
// Files that the cache holds
//===----------------------------------------------------------------------===//

namespace {
class ParseCacheTest : public TreeBytesTest {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("parse-cache", folder));
    cache = FileCache(folder.str().str());
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string parse(StringRef text) {
    File *file = parseFile(context, diags, add(text), cache);
    if (file) {
      EXPECT_EQ(file->path, "test.stg");
      EXPECT_EQ(getText(file->bufferId), text);
    }
    return file ? print(*file) : "none";
  }
  static std::string getKey(StringRef text) { return (getBuildId() + "\n" + text).str(); }

  llvm::SmallString<128> folder;
  FileCache cache;
};
} // namespace

TEST_F(ParseCacheTest, TreesAreKept) {
  ASSERT_FALSE(getBuildId().empty());
  EXPECT_EQ(parse("fn f() = 1;"), "fn f() = 1;\n");
  std::optional<std::string> stored = cache.load(getKey("fn f() = 1;"));
  ASSERT_TRUE(stored);
  // The tree of another text of the same length shows that nothing is parsed.
  EXPECT_EQ(parse("fn g() = 2;"), "fn g() = 2;\n");
  cache.store(getKey("fn g() = 2;"), *stored);
  EXPECT_EQ(parse("fn g() = 2;"), "fn f() = 1;\n");
  // Bytes that are no tree are replaced.
  cache.store(getKey("fn g() = 2;"), "no tree");
  EXPECT_EQ(parse("fn g() = 2;"), "fn g() = 2;\n");
  EXPECT_NE(cache.load(getKey("fn g() = 2;")), std::optional<std::string>("no tree"));
}

TEST_F(ParseCacheTest, TreesOfOtherBuildsAreNone) {
  unsigned id = add("fn f() = 1;");
  std::string bytes = writeTree(*parseFile(context, diags, id), getText(id));
  cache.store("another build\nfn g() = 2;", bytes);
  cache.store("fn g() = 2;", bytes);
  EXPECT_EQ(parse("fn g() = 2;"), "fn g() = 2;\n");
}

TEST_F(ParseCacheTest, FilesWithErrorsAreNotKept) {
  for (unsigned run = 1; run <= 2; ++run) {
    EXPECT_EQ(parse("fn f() = 1 < 2 < 3;"), "none");
    EXPECT_EQ(diags.getNumErrors(), run);
  }
  EXPECT_FALSE(cache.load(getKey("fn f() = 1 < 2 < 3;")));
}
