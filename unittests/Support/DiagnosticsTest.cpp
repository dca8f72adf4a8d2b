//===- DiagnosticsTest.cpp ------------------------------------------------===//
#include "stage/Support/Diagnostics.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace stage;

namespace {
class DiagnosticsTest : public ::testing::Test {
protected:
  DiagnosticsTest() {
    auto buffer = llvm::MemoryBuffer::getMemBuffer("param wq: [D, KV];\n", "job.stg");
    start = buffer->getBufferStart();
    sources.AddNewSourceBuffer(std::move(buffer), {});
  }
  SMLoc at(unsigned column) const { return SMLoc::getFromPointer(start + column - 1); }

  const char *start;
  llvm::SourceMgr sources;
  std::string text;
  llvm::raw_string_ostream os{text};
  DiagnosticEngine diags{sources, os};
};
} // namespace

TEST_F(DiagnosticsTest, ArgumentsCodeAndCaret) {
  diags.report(at(7), diag::CannotReadFile) << "a.stg"
                                            << "no such file";
  EXPECT_EQ(os.str(), "job.stg:1:7: error: cannot read 'a.stg': no such file [cannot-read-file]\n"
                      "param wq: [D, KV];\n      ^\n");
  EXPECT_EQ(diags.getNumErrors(), 1u);
}

TEST_F(DiagnosticsTest, NotesFollowAndDoNotCount) {
  diags.report(at(12), diag::CannotReadFile).range({at(12), at(13)}) << "a"
                                                                     << "x";
  diags.report(at(15), diag::CannotReadFile).with("b", "c").note(at(7), diag::PreviousHere) << "wq";
  DiagnosticBuilder message = diags.report(at(18), diag::CannotReadFile) << "d"
                                                                         << "e";
  message.note(at(7), diag::OtherOneHere).note(at(7), diag::DidYouMean).with("wq").fixIt({at(7), at(9)}, "wk");
  EXPECT_EQ(diags.getNumErrors(), 2u) << "a message is emitted when its builder dies";
  { DiagnosticBuilder moved = std::move(message); }
  EXPECT_NE(os.str().find("cannot read 'a': x"), std::string::npos);
  EXPECT_NE(os.str().find("job.stg:1:7: note: 'wq' was declared here\n"), std::string::npos) << os.str();
  EXPECT_NE(os.str().find("note: did you mean 'wq'?\n"), std::string::npos) << os.str();
  EXPECT_EQ(diags.getNumErrors(), 3u);
}

//===----------------------------------------------------------------------===//
// Arguments are counted, and their kinds compared, when the compiler is compiled
//===----------------------------------------------------------------------===//

using diag::Number, diag::Text;

template <typename T, typename Argument>
concept Takes = requires(T message, Argument argument) {
  std::move(message) << argument;
};
template <typename T, typename... Arguments> constexpr bool takesAny = (Takes<T, Arguments> || ...);
template <typename T, typename... Arguments> constexpr bool takesAll = (Takes<T, Arguments> && ...);

static_assert(takesAll<IncompleteMessage<Text>, const char *, char[2], std::string, llvm::StringRef, llvm::Twine>);
static_assert(!takesAny<IncompleteMessage<Text>, int, unsigned, int64_t, size_t>, "a number for a text");
static_assert(takesAll<IncompleteMessage<Number>, int, unsigned, int64_t, size_t, uint8_t>);
static_assert(!takesAny<IncompleteMessage<Number>, const char *, std::string, llvm::Twine>, "a text for a number");
static_assert(!takesAny<IncompleteMessage<Text>, bool, char, double>, "C++ would convert them to numbers");
static_assert(!takesAny<IncompleteMessage<Number>, bool, char, double>, "C++ would convert them to numbers");
static_assert(!takesAny<DiagnosticBuilder, const char *, int>, "there is one argument too many");
static_assert(!std::is_convertible_v<IncompleteMessage<Text>, DiagnosticBuilder>, "an argument is missing");

/// The type of a message that lacks a text and a number, and after each of both.
using LacksBoth = IncompleteMessage<Text, Number>;
static_assert(std::is_same_v<decltype(std::declval<LacksBoth>() << "a"), IncompleteMessage<Number>>);
static_assert(std::is_same_v<decltype(std::declval<LacksBoth>() << "a" << 1), DiagnosticBuilder &&>);

/// The type of a message lists the arguments of its text.
constexpr DiagnosticInfo swapped{Severity::Note, "", "'{1}' is {0#} {x} {}, not {1}"};
static_assert(std::is_same_v<decltype(diag::nameMessage<swapped>()), diag::Message<Number, Text>>);
static_assert(std::is_same_v<decltype(diag::CannotReadFile), const diag::Message<Text, Text>>);
static_assert(std::is_same_v<decltype(diag::OutOfMemory), const diag::Message<>>);

/// A text whose arguments cannot be read is no constant.
template <const char *text>
concept IsRead = requires {
  typename std::integral_constant<unsigned, diag::readArguments(text).count>;
};
constexpr char goodText[] = "{1#} {0}", twoKinds[] = "{0} {0#}", leavesOut[] = "{1}", isOpen[] = "{0 }";
static_assert(IsRead<goodText> && !IsRead<twoKinds> && !IsRead<leavesOut> && !IsRead<isOpen>);

TEST_F(DiagnosticsTest, NumbersAreWritten) {
  diags.report(SMLoc(), diag::nameMessage<swapped>()) << -3 << "a";
  diags.report(SMLoc(), diag::nameMessage<swapped>()).with(~uint64_t(0), "b");
  EXPECT_EQ(os.str(), "note: 'a' is -3 {x} {}, not a\nnote: 'b' is 18446744073709551615 {x} {}, not b\n");
}

TEST_F(DiagnosticsTest, FixItIsShown) {
  diags.report(at(7), diag::CannotReadFile).with("a", "b").fixIt({at(7), at(9)}, "wk");
  EXPECT_NE(os.str().find("      wk"), std::string::npos) << os.str();
}

TEST_F(DiagnosticsTest, MessagesWithoutPlace) {
  diags.report(SMLoc(), diag::CannotReadFile) << "a"
                                              << "b";
  EXPECT_EQ(os.str(), "error: cannot read 'a': b [cannot-read-file]\n");
}

//===----------------------------------------------------------------------===//
// Messages as values
//===----------------------------------------------------------------------===//

TEST_F(DiagnosticsTest, ListKeepsCodePlaceAndText) {
  DiagnosticList list;
  DiagnosticEngine collects(sources, &list);
  collects.report(at(7), diag::CannotReadFile).with("a", "b").note(at(12), diag::PreviousHere) << "wq";
  collects.report(SMLoc(), diag::OutOfMemory);
  ASSERT_EQ(list.all.size(), 2u);
  const Diagnostic &first = list.all.front();
  EXPECT_EQ(first.code, "cannot-read-file");
  EXPECT_EQ(first.text, "cannot read 'a': b");
  EXPECT_EQ(first.file, "job.stg");
  EXPECT_EQ(std::pair(first.line, first.column), std::pair(1u, 7u));
  ASSERT_EQ(first.notes.size(), 1u);
  EXPECT_EQ(first.notes.front().column, 12u);
  EXPECT_EQ(list.all.back().file, "");
  EXPECT_EQ(findError(list.all), &first);
  // Printed, they are what an engine prints that was given a stream.
  print(os, first, sources);
  std::string printed = os.str();
  text.clear();
  diags.report(at(7), diag::CannotReadFile).with("a", "b").note(at(12), diag::PreviousHere) << "wq";
  EXPECT_EQ(os.str(), printed);
}

TEST_F(DiagnosticsTest, WithoutConsumerErrorsAreCounted) {
  DiagnosticEngine quiet(sources);
  for (int i = 0; i < 2; ++i)
    quiet.report(at(7), diag::CannotReadFile).with("a", "b");
  EXPECT_EQ(quiet.getNumErrors(), 2u);
  EXPECT_EQ(os.str(), "");
}

TEST_F(DiagnosticsTest, ManyErrorsAreCutOnce) {
  DiagnosticList list;
  DiagnosticEngine collects(sources, &list);
  for (int64_t i = 0; i < 1010; ++i)
    collects.report(at(7), diag::CannotReadFile) << llvm::Twine(i) << "b";
  EXPECT_EQ(collects.getNumErrors(), 1010u);
  ASSERT_EQ(list.all.size(), 1001u);
  EXPECT_EQ(list.all.back().severity, Severity::Note);
  EXPECT_EQ(list.all.back().text, "more than 1000 errors; the rest is not shown");
}

TEST(DiagnosticValues, TheFirstErrorIsTheReason) {
  std::vector<Diagnostic> messages(3);
  messages[0].severity = Severity::Warning;
  messages[1].text = "first";
  messages[2].text = "second";
  EXPECT_EQ(getErrorText(messages), "first");
  messages.resize(1);
  EXPECT_FALSE(findError(messages));
  EXPECT_EQ(getErrorText(messages), "");
}
