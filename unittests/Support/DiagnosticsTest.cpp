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
  diags.report(at(12), diag::CannotReadFile).range({at(12), at(13)}) << "a" << int64_t(-3);
  diags.report(at(15), diag::CannotReadFile).with("b", "c").note(at(7), diag::PreviousHere) << "wq";
  DiagnosticBuilder message = diags.report(at(18), diag::CannotReadFile) << "d"
                                                                         << "e";
  message.note(at(7), diag::OtherOneHere).note(at(7), diag::DidYouMean).with("wq").fixIt({at(7), at(9)}, "wk");
  EXPECT_EQ(diags.getNumErrors(), 2u) << "a message is emitted when its builder dies";
  { DiagnosticBuilder moved = std::move(message); }
  EXPECT_NE(os.str().find("cannot read 'a': -3"), std::string::npos);
  EXPECT_NE(os.str().find("job.stg:1:7: note: 'wq' was declared here\n"), std::string::npos) << os.str();
  EXPECT_NE(os.str().find("note: did you mean 'wq'?\n"), std::string::npos) << os.str();
  EXPECT_EQ(diags.getNumErrors(), 3u);
}

/// Arguments are counted by the compiler: what does not take or need one more is another type.
template <typename T>
concept TakesArgument = requires(T message) {
  std::move(message) << "a";
};
static_assert(diag::countArguments("no {} {x} argument") == 0 && diag::countArguments("'{1}' is {0}, not {1}") == 2);
static_assert(TakesArgument<IncompleteMessage<2>> && TakesArgument<IncompleteMessage<1>>);
static_assert(std::is_same_v<decltype(std::declval<IncompleteMessage<2>>() << "a"), IncompleteMessage<1>>);
static_assert(std::is_same_v<decltype(std::declval<IncompleteMessage<1>>() << "a"), DiagnosticBuilder &&>);
static_assert(!TakesArgument<DiagnosticBuilder>, "there is one argument too many");
static_assert(!std::is_convertible_v<IncompleteMessage<1>, DiagnosticBuilder>, "an argument is missing");
static_assert(std::is_same_v<decltype(diag::CannotReadFile), const diag::Message<2>>);

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
    collects.report(at(7), diag::CannotReadFile) << i << "b";
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
