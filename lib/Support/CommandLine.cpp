//===- CommandLine.cpp - the options of a tool ----------------------------===//
//
// Problem: llvm::cl repeats names and values of options in its messages as they were given, and an argument may hold
// `ESC [ 2 J`, which a terminal obeys. Some of its messages go to the stream that it is told, others always to standard
// error.
//
// Algorithm: while options are read, standard error is a file in memory. What is in it then is printed line by line,
// escaped. `--help` ends the process while options are read: what has been written is printed at exit.
//
//===----------------------------------------------------------------------===//
#include "stage/Support/CommandLine.h"
#include "stage/Support/Escape.h"
#include "stage/Support/Installation.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

using namespace stage;
namespace cl = llvm::cl;

/// Standard error, while another file is in its place.
static int keptErrors = -1;

/// Puts a file in memory in the place of standard error. Without one, messages are printed as they are.
static void captureErrors() {
  int file = memfd_create("messages", MFD_CLOEXEC);
  if (file < 0)
    return;
  keptErrors = dup(STDERR_FILENO);
  if (keptErrors >= 0)
    dup2(file, STDERR_FILENO);
  close(file);
}

static void releaseErrors() {
  if (keptErrors < 0)
    return;
  std::string text;
  char piece[4096];
  for (off_t at = 0; ssize_t count = pread(STDERR_FILENO, piece, sizeof(piece), at); at += count) {
    if (count < 0)
      break;
    text.append(piece, size_t(count));
  }
  dup2(keptErrors, STDERR_FILENO);
  close(std::exchange(keptErrors, -1));
  llvm::StringRef rest = text;
  while (!rest.empty()) {
    auto [line, behind] = rest.split('\n');
    llvm::errs() << escapeControls(line) << '\n';
    rest = behind;
  }
}

bool stage::parseOptions(int argc, char **argv, llvm::StringRef tool, llvm::StringRef overview) {
  cl::SetVersionPrinter([=](llvm::raw_ostream &os) { os << tool << " " << getVersion() << "\n"; });
  std::atexit(releaseErrors);
  captureErrors();
  bool isGood = cl::ParseCommandLineOptions(argc, argv, overview, &llvm::errs());
  releaseErrors();
  return isGood;
}
