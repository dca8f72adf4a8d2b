//===- Process.cpp - how a tool begins and ends ---------------------------===//
#include "stage/Support/Process.h"
#include "stage/Support/StandardOutput.h"
#include "llvm/Support/ErrorHandling.h"
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <new>
#include <unistd.h>

using namespace stage;

static int failureCode = 1;
static std::atomic<void (*)()> emergencyCleanup = nullptr;
/// Made beforehand: there is no memory when it is needed.
static std::string &getOutOfMemoryMessage() {
  static std::string message;
  return message;
}

void stage::setEmergencyCleanup(void (*cleanup)()) { emergencyCleanup = cleanup; }

[[noreturn]] static void endWithoutMemory() {
  const std::string &message = getOutOfMemoryMessage();
  if (write(STDERR_FILENO, message.data(), message.size()) < 0) {
    // Nobody is left to be told.
  }
  if (void (*cleanup)() = emergencyCleanup.exchange(nullptr))
    cleanup();
  _exit(failureCode);
}

static void openClosedStreams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF)
      continue;
    int opened = open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    if (opened >= 0 && opened != stream) {
      dup2(opened, stream);
      close(opened);
    }
  }
}

/// Streams with an error would abort the program when they are destroyed.
static void endStreams() {
  llvm::SourceMgr sources;
  DiagnosticEngine diags(sources, llvm::errs());
  bool good = flushStandardOutput(diags);
  llvm::errs().clear_error();
  if (!good)
    _exit(failureCode);
}

void stage::prepareProcess(int code) {
  failureCode = code;
  getOutOfMemoryMessage() =
      "error: " + std::string(diag::info::OutOfMemory.text) + " [" + diag::info::OutOfMemory.code.str() + "]\n";
  openClosedStreams();
  // Made here, so that they live longer than what is registered next.
  llvm::outs();
  llvm::errs();
  std::atexit(endStreams);
  std::set_new_handler(endWithoutMemory);
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) { endWithoutMemory(); });
}
