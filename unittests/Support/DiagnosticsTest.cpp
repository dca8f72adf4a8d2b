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
  diags.report(at(15), diag::CannotReadFile).note(at(7), diag::PreviousHere) << "wq";
  EXPECT_NE(os.str().find("cannot read 'a': -3"), std::string::npos);
  EXPECT_NE(os.str().find("job.stg:1:7: note: 'wq' was declared here\n"), std::string::npos) << os.str();
  EXPECT_EQ(diags.getNumErrors(), 2u);
}

TEST_F(DiagnosticsTest, FixItIsShown) {
  diags.report(at(7), diag::CannotReadFile).fixIt({at(7), at(9)}, "wk") << "a"
                                                                        << "b";
  EXPECT_NE(os.str().find("      wk"), std::string::npos) << os.str();
}

TEST_F(DiagnosticsTest, MessagesWithoutPlace) {
  diags.report(SMLoc(), diag::CannotReadFile) << "a"
                                              << "b";
  EXPECT_EQ(os.str(), "error: cannot read 'a': b [cannot-read-file]\n");
}
