//===- OutputDirectoryTest.cpp - all or nothing ---------------------------===//
#include "stage/CodeGen/OutputDirectory.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <csignal>
#include <gtest/gtest.h>
#include <numeric>
#include <set>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace stage;
namespace fs = llvm::sys::fs;

namespace {
class OutputDirectoryTest : public testing::Test {
protected:
  void SetUp() override { ASSERT_FALSE(fs::createUniqueDirectory("stage-output", root)); }
  void TearDown() override { fs::remove_directories(root); }

  std::string path(const llvm::Twine &name) const { return (root + "/" + name).str(); }
  std::set<std::string> list(const std::string &folder) const {
    std::set<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
      names.insert(llvm::sys::path::filename(entry->path()).str());
    names.erase(".stagec"); // our mark
    return names;
  }
  std::string read(const std::string &file) const {
    auto buffer = llvm::MemoryBuffer::getFile(file);
    return buffer ? (*buffer)->getBuffer().str() : "(unreadable)";
  }
  void write(const std::string &file, llvm::StringRef text) const {
    std::error_code error;
    llvm::raw_fd_ostream(file, error) << text;
    ASSERT_FALSE(error);
  }
  std::unique_ptr<OutputDirectory> create(const std::string &target, bool force = false) {
    return OutputDirectory::create(target, {force}, diags);
  }
  bool said(llvm::StringRef text) {
    out.flush();
    return llvm::StringRef(messages).contains(text);
  }

  llvm::SmallString<128> root;
  std::string messages;
  llvm::raw_string_ostream out{messages};
  llvm::SourceMgr sources;
  DiagnosticEngine diags{sources, out};
};
using Names = std::set<std::string>;
} // namespace

TEST_F(OutputDirectoryTest, AppearsOnlyWhenCommitted) {
  auto output = create(path("a/b/traces/"));
  ASSERT_TRUE(output);
  EXPECT_TRUE(output->writeFile("w.0.et", llvm::StringRef("bytes")));
  EXPECT_FALSE(fs::exists(path("a/b/traces")));
  EXPECT_EQ(output->getNumFiles(), 1u);
  EXPECT_EQ(output->getNumBytes(), 5u);
  EXPECT_TRUE(output->commit());
  EXPECT_EQ(list(path("a/b")), Names{"traces"});
  EXPECT_EQ(read(path("a/b/traces/w.0.et")), "bytes");
}

TEST_F(OutputDirectoryTest, LeavesNothingWhenAbandoned) {
  {
    auto output = create(path("a/b/traces"));
    ASSERT_TRUE(output);
    output->writeFile("w.0.et", llvm::StringRef("bytes"));
  }
  EXPECT_EQ(list(std::string(root)), Names());
}

TEST_F(OutputDirectoryTest, TakesTheNameOfAnEmptyFolder) {
  fs::create_directory(path("traces"));
  auto output = create(path("traces"));
  ASSERT_TRUE(output);
  output->writeFile("w.0.et", llvm::StringRef("new"));
  EXPECT_TRUE(output->commit());
  EXPECT_EQ(list(path("traces")), Names{"w.0.et"});
}

TEST_F(OutputDirectoryTest, RefusesAFullFolderUnlessForced) {
  fs::create_directory(path("traces"));
  write(path("traces/w.0.et"), "old");
  write(path("traces/w.1.et"), "old");
  write(path("traces/.stagec"), "");
  EXPECT_FALSE(create(path("traces")));
  EXPECT_TRUE(said("[output-not-empty]"));
  auto output = create(path("traces"), /*force=*/true);
  ASSERT_TRUE(output);
  output->writeFile("w.0.et", llvm::StringRef("new"));
  EXPECT_EQ(read(path("traces/w.0.et")), "old");
  EXPECT_TRUE(output->commit());
  EXPECT_EQ(list(path("traces")), Names{"w.0.et"});
  EXPECT_EQ(read(path("traces/w.0.et")), "new");
  EXPECT_EQ(list(std::string(root)), Names{"traces"});
}

TEST_F(OutputDirectoryTest, NeverReplacesWhatIsNotATrace) {
  fs::create_directory(path("home"));
  write(path("home/thesis.tex"), "years");
  EXPECT_FALSE(create(path("home"), /*force=*/true));
  EXPECT_TRUE(said("[output-holds-others]"));
  EXPECT_EQ(list(path("home")), Names{"thesis.tex"});
}

TEST_F(OutputDirectoryTest, NeverReplacesWhatSomebodyElseWrote) {
  fs::create_directory(path("measured"));
  write(path("measured/w.0.et"), "days");
  EXPECT_FALSE(create(path("measured"), /*force=*/true));
  EXPECT_TRUE(said("[output-holds-others]"));
  EXPECT_EQ(read(path("measured/w.0.et")), "days");
}

/// Not even what comes while the new files are written, whatever its name.
TEST_F(OutputDirectoryTest, KeepsAFileThatAppears) {
  for (const char *name : {"notes.txt", "w.7.et"}) {
    auto first = create(path("traces"));
    ASSERT_TRUE(first);
    first->writeFile("w.0.et", llvm::StringRef("old"));
    EXPECT_TRUE(first->commit());
    auto output = create(path("traces"), /*force=*/true);
    ASSERT_TRUE(output);
    output->writeFile("w.0.et", llvm::StringRef("new"));
    write(path("traces/" + llvm::Twine(name)), "mine");
    EXPECT_FALSE(output->commit());
    EXPECT_TRUE(said("[output-holds-others]"));
    EXPECT_EQ(list(path("traces")), (Names{name, "w.0.et"}));
    EXPECT_EQ(read(path("traces/w.0.et")), "old");
    EXPECT_EQ(list(std::string(root)), Names{"traces"});
    fs::remove_directories(path("traces"));
  }
}

/// Others may remove files of the hidden folder, or all of it.
TEST_F(OutputDirectoryTest, FailsWhenFilesVanish) {
  for (bool whole : {false, true}) {
    auto output = create(path("traces"));
    ASSERT_TRUE(output);
    output->writeFile("w.0.et", llvm::StringRef("a"));
    output->writeFile("w.1.et", llvm::StringRef("b"));
    std::string hidden = path(*list(std::string(root)).begin());
    fs::remove(hidden + "/w.0.et");
    if (whole)
      fs::remove_directories(hidden);
    EXPECT_FALSE(output->commit());
    EXPECT_TRUE(said("[output-disturbed]"));
    EXPECT_EQ(list(std::string(root)), Names());
    messages.clear();
  }
}

TEST_F(OutputDirectoryTest, LeavesNoFolderThatThePathLeavesAgain) {
  auto output = create(path("nothere/../traces"));
  ASSERT_TRUE(output);
  EXPECT_TRUE(output->commit());
  EXPECT_EQ(list(std::string(root)), Names{"traces"});
}

TEST_F(OutputDirectoryTest, GoesOnWithAFile) {
  auto output = create(path("traces"));
  ASSERT_TRUE(output);
  output->writeFile("w.0.et", llvm::StringRef("begin"));
  output->writeFile("w.0.et", llvm::StringRef(" end"), OutputDirectory::WriteMode::Append);
  EXPECT_EQ(output->getNumFiles(), 1u);
  EXPECT_EQ(output->getNumBytes(), 9u);
  EXPECT_TRUE(output->commit());
  EXPECT_EQ(read(path("traces/w.0.et")), "begin end");
}

TEST_F(OutputDirectoryTest, RefusesFilesAndTheCurrentFolder) {
  write(path("file"), "");
  EXPECT_FALSE(create(path("file")));
  EXPECT_TRUE(said("[output-not-a-folder]"));
  EXPECT_FALSE(create("."));
  EXPECT_TRUE(said("[output-is-current]"));
  EXPECT_FALSE(create(path("file/below")));
  EXPECT_TRUE(said("[cannot-create-folder]"));
  EXPECT_FALSE(create(""));
}

TEST_F(OutputDirectoryTest, FollowsALinkToItsFolder) {
  fs::create_directory(path("real"));
  ASSERT_FALSE(fs::create_link(path("real"), path("link")));
  auto output = create(path("link"));
  ASSERT_TRUE(output);
  output->writeFile("w.0.et", llvm::StringRef("new"));
  EXPECT_TRUE(output->commit());
  EXPECT_EQ(list(path("real")), Names{"w.0.et"});
  EXPECT_EQ(list(std::string(root)), (Names{"link", "real"}));
}

/// A limit on the size of files fails as a full disk does: a write comes back short, and the next one not at all.
TEST_F(OutputDirectoryTest, ReportsAFailedWriteAndLeavesNothing) {
  pid_t child = fork();
  if (child == 0) {
    rlimit limit = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto output = create(path("traces"));
    uint32_t ranks[] = {0, 1, 2, 3};
    std::vector<uint8_t> bytes(5000);
    bool written =
        writeRankFiles(*output, "w", ranks, 2, [&](uint32_t, unsigned) { return llvm::makeArrayRef(bytes); });
    bool committed = output->commit();
    _exit(!written && !committed && said("error: cannot write '") && said("[cannot-write-file]") ? 0 : 1);
  }
  int status;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(list(std::string(root)), Names());
}

TEST_F(OutputDirectoryTest, IsRemovedOnSignals) {
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGABRT, SIGUSR1, SIGUSR2, SIGXCPU, SIGALRM, SIGFPE}) {
    int pipeEnds[2];
    ASSERT_EQ(pipe(pipeEnds), 0);
    pid_t child = fork();
    if (child == 0) {
      // A signal that was ignored from the start, as nohup does, stays ignored.
      signal(number, SIG_DFL);
      auto output = create(path("traces"));
      // More than one buffer of directory entries.
      for (int i = 0; i < 2000; ++i)
        output->writeFile("a-rather-long-name-of-a-workload." + std::to_string(i) + ".et", llvm::StringRef("bytes"));
      char ready = 1;
      if (::write(pipeEnds[1], &ready, 1) == 1)
        pause();
      _exit(0);
    }
    char ready;
    ASSERT_EQ(::read(pipeEnds[0], &ready, 1), 1);
    EXPECT_EQ(list(std::string(root)).size(), 1u);
    kill(child, number);
    int status;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number);
    EXPECT_EQ(list(std::string(root)), Names());
    close(pipeEnds[0]);
    close(pipeEnds[1]);
  }
}

TEST_F(OutputDirectoryTest, WorkersWriteTheSameFiles) {
  std::vector<uint32_t> ranks(300);
  std::iota(ranks.begin(), ranks.end(), 0);
  for (unsigned numThreads : {1, 2, 7, 0}) {
    std::string target = path("t" + llvm::Twine(numThreads));
    auto output = create(target);
    ASSERT_TRUE(output);
    std::vector<std::string> scratch(getNumWorkers(numThreads, ranks.size()));
    EXPECT_TRUE(writeRankFiles(*output, "w", ranks, numThreads, [&](uint32_t rank, unsigned worker) {
      scratch[worker] = std::string(rank, 'x');
      return llvm::arrayRefFromStringRef(scratch[worker]);
    }));
    EXPECT_TRUE(output->commit());
    EXPECT_EQ(list(target).size(), 300u);
    for (uint32_t rank : {0u, 1u, 150u, 299u})
      EXPECT_EQ(read(target + "/w." + std::to_string(rank) + ".et"), std::string(rank, 'x'));
  }
}
