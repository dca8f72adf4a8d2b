//===- Files.cpp - files that are read and written whole ------------------===//
#include "stage/Support/Files.h"
#include "stage/Support/StandardOutput.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <climits>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace stage;
using llvm::StringRef;
namespace fs = llvm::sys::fs;

static std::string lastError() { return std::error_code(errno, std::generic_category()).message(); }

namespace {
/// Closes what it holds.
struct Descriptor {
  int number;
  explicit Descriptor(int number) : number(number) {}
  Descriptor(const Descriptor &) = delete;
  ~Descriptor() {
    if (number > STDERR_FILENO)
      ::close(number);
  }
};
} // namespace

/// Whether a named pipe has a writer, bytes, or bytes that a writer left, within a second: `make > pipe & stagec pipe`
/// may open it before the writer does.
static bool hasWriter(int pipe) {
  constexpr int patience = 1000; // milliseconds
  struct pollfd polled = {pipe, POLLIN, 0};
  while (::poll(&polled, 1, patience) < 0 && errno == EINTR)
    ;
  if (polled.revents)
    return true;
  // tee(2) takes nothing out: it fails with EAGAIN where somebody may write yet, and copies nothing where nobody can.
  int copy[2];
  if (::pipe2(copy, O_CLOEXEC) != 0)
    return true;
  bool isOpen = ::tee(pipe, copy[1], 1, SPLICE_F_NONBLOCK) != 0;
  ::close(copy[0]);
  ::close(copy[1]);
  return isOpen;
}

int stage::openToRead(StringRef path, std::string &error) {
  // Without O_NONBLOCK, open(2) itself waits for the writer of a named pipe.
  int file = ::open(path.str().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status = {};
  if (file < 0 || fstat(file, &status) != 0) {
    error = lastError();
  } else if (S_ISFIFO(status.st_mode) && !hasWriter(file)) {
    error = "it is a pipe that nobody writes to; start its writer first, or name a file";
  } else if (int flags = ::fcntl(file, F_GETFL); flags < 0 || ::fcntl(file, F_SETFL, flags & ~O_NONBLOCK) != 0) {
    error = lastError();
  } else {
    return file;
  }
  if (file >= 0)
    ::close(file);
  return -1;
}

std::unique_ptr<llvm::MemoryBuffer> stage::readFile(StringRef path, std::string &error, uint64_t maxBytes) {
  bool isInput = path == "-";
  Descriptor file(isInput ? STDIN_FILENO : openToRead(path, error));
  if (file.number < 0)
    return nullptr;
  struct stat status = {};
  if (fstat(file.number, &status) != 0) {
    error = lastError();
    return nullptr;
  }
  std::string tooLong = "it has more than " + std::to_string(maxBytes >> 20) + " MiB";
  if (S_ISREG(status.st_mode) && uint64_t(status.st_size) > maxBytes) {
    error = tooLong;
    return nullptr;
  }
  llvm::SmallVector<char, 0> bytes;
  size_t expected = S_ISREG(status.st_mode) ? size_t(status.st_size) + 1 : 1 << 14;
  while (true) {
    size_t old = bytes.size();
    bytes.resize_for_overwrite(old + std::max(expected - std::min(expected, old), std::max<size_t>(old, 1 << 12)));
    ssize_t count = ::read(file.number, bytes.data() + old, bytes.size() - old);
    if (count < 0 && errno != EINTR) {
      error = lastError();
      return nullptr;
    }
    bytes.truncate(old + std::max<ssize_t>(count, 0));
    if (count == 0)
      break;
    if (bytes.size() > maxBytes) {
      error = tooLong;
      return nullptr;
    }
  }
  return llvm::MemoryBuffer::getMemBufferCopy(StringRef(bytes.data(), bytes.size()), isInput ? "<stdin>" : path);
}

std::unique_ptr<llvm::MemoryBuffer> stage::readFile(StringRef path, DiagnosticEngine &diags, uint64_t maxBytes) {
  std::string error;
  auto buffer = readFile(path, error, maxBytes);
  if (!buffer)
    diags.report(SMLoc(), diag::CannotReadFile) << path << error;
  return buffer;
}

bool stage::writeFile(StringRef path, StringRef text, Existing existing, DiagnosticEngine &diags) {
  return writeFile(
      path,
      [&](llvm::raw_ostream &out) {
        out << text;
        return true;
      },
      existing, diags);
}

/// A link to what standard output writes to, as /dev/stdout and /dev/fd/1 are.
static bool isStandardOutput(StringRef path) {
  struct stat named = {}, written = {};
  return fs::is_symlink_file(path) && ::stat(path.str().c_str(), &named) == 0 &&
         ::fstat(STDOUT_FILENO, &written) == 0 && named.st_dev == written.st_dev && named.st_ino == written.st_ino;
}

/// Pipes and devices keep no text, so that nothing of them is lost.
static bool isStream(const fs::file_status &status) {
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

static constexpr llvm::StringLiteral itExists =
    "it exists already, and may hold somebody's changes; give --force to replace it, or name another file";

bool stage::checkReplaceable(StringRef path, Existing existing, DiagnosticEngine &diags) {
  fs::file_status status, ofLink;
  if (path == "-" || fs::status(path, ofLink, /*follow=*/false))
    return true; // absent, or writing says why not
  (void)fs::status(path, status);
  if (isStandardOutput(path) || isStream(status))
    return true;
  if (ofLink.type() == fs::file_type::symlink_file) {
    llvm::SmallString<256> target;
    if (ssize_t length = (target.resize(PATH_MAX), ::readlink(path.str().c_str(), target.data(), target.size()));
        length >= 0)
      target.truncate(size_t(length));
    diags.report(SMLoc(), diag::CannotWriteFile)
        << path
        << ("it is a symbolic link to '" + target + "', through which nothing is written; name the file itself").str();
    return false;
  }
  if (fs::is_directory(status)) {
    diags.report(SMLoc(), diag::CannotWriteFile) << path << "Is a directory";
    return false;
  }
  if (existing == Existing::Keep) {
    diags.report(SMLoc(), diag::CannotWriteFile) << path << itExists;
    return false;
  }
  // A file that nobody may write is not replaced either.
  if (::access(path.str().c_str(), W_OK) != 0) {
    diags.report(SMLoc(), diag::CannotWriteFile) << path << lastError();
    return false;
  }
  return true;
}

/// Ends the name of a file that is being written.
static constexpr llvm::StringLiteral partial = ".partial-%%%%%%%%";

/// Gives a file that is written the name of its target. False after a report.
static bool giveName(fs::TempFile &file, StringRef target, Existing existing, DiagnosticEngine &diags) {
  // link(2) never replaces a file, though one may have come while this was written. Some file systems lack it.
  if (existing == Existing::Keep) {
    if (::link(file.TmpName.c_str(), target.str().c_str()) == 0) {
      llvm::consumeError(file.discard());
      return true;
    }
    if (errno == EEXIST) {
      llvm::consumeError(file.discard());
      diags.report(SMLoc(), diag::CannotWriteFile) << target << itExists;
      return false;
    }
  }
  if (llvm::Error error = file.keep(target)) {
    diags.report(SMLoc(), diag::CannotWriteFile) << target << llvm::toString(std::move(error));
    return false;
  }
  return true;
}

/// Writes into a new file; removes it after a failure. `error` is none if `write` failed by itself.
static bool fill(fs::TempFile &file, llvm::function_ref<bool(llvm::raw_ostream &)> write, std::error_code &error) {
  // A limit on the size of files shall be an error of write(2) like any other.
  auto previous = std::signal(SIGXFSZ, SIG_IGN);
  llvm::raw_fd_ostream out(file.FD, /*shouldClose=*/false);
  bool good = write(out);
  out.flush();
  std::signal(SIGXFSZ, previous);
  error = out.error();
  out.clear_error();
  if (good && !error)
    return true;
  llvm::consumeError(file.discard());
  return false;
}

bool stage::writePrivateFile(StringRef path, StringRef text) {
  auto print = [&](llvm::raw_ostream &out) {
    out << text;
    return true;
  };
  std::error_code error;
  llvm::Expected<fs::TempFile> file = fs::TempFile::create(path + partial, unsigned(fs::owner_read | fs::owner_write));
  llvm::Error failure = file.takeError();
  if (!failure && fill(*file, print, error))
    failure = file->keep(path);
  else if (!failure)
    failure = llvm::errorCodeToError(error);
  return !llvm::errorToBool(std::move(failure));
}

bool stage::writeFile(StringRef path, llvm::function_ref<bool(llvm::raw_ostream &)> write, Existing existing,
                      DiagnosticEngine &diags) {
  auto fail = [&](const std::string &reason) {
    diags.report(SMLoc(), diag::CannotWriteFile) << path << reason;
    return false;
  };
  if (path == "-" || isStandardOutput(path)) {
    bool good = write(llvm::outs());
    return flushStandardOutput(diags) && good;
  }
  if (!checkReplaceable(path, existing, diags))
    return false;
  fs::file_status status;
  bool exists = !fs::status(path, status);
  if (exists && isStream(status)) {
    std::error_code error;
    llvm::raw_fd_ostream out(path, error, fs::CD_OpenExisting, fs::FA_Write, fs::OF_None);
    if (error)
      return fail(error.message());
    bool good = write(out);
    return flushOutput(out, path, diags) && good;
  }
  // Removed on signals.
  llvm::Expected<fs::TempFile> file =
      fs::TempFile::create(path + partial, exists ? unsigned(status.permissions()) : 0666);
  if (!file)
    return fail(llvm::toString(file.takeError()));
  std::error_code error;
  if (!fill(*file, write, error))
    return error ? fail(error.message()) : false;
  return giveName(*file, path, existing, diags);
}

bool stage::checkKeepsInput(StringRef output, StringRef input, DiagnosticEngine &diags) {
  struct stat read = {}, written = {};
  bool isInput = input == "-";
  // What cannot be found is reported when it is read or written.
  if (output == "-" || (isInput ? fstat(STDIN_FILENO, &read) : ::stat(input.str().c_str(), &read)) != 0 ||
      ::stat(output.str().c_str(), &written) != 0 || !S_ISREG(read.st_mode))
    return true;
  bool isSame = written.st_dev == read.st_dev && written.st_ino == read.st_ino;
  llvm::SmallString<256> whole;
  bool isHeld = S_ISDIR(written.st_mode) && !isInput && !fs::real_path(input, whole) &&
                fs::equivalent(llvm::sys::path::parent_path(whole), output);
  if (isSame || isHeld)
    diags.report(SMLoc(), diag::OutputIsInput)
        << output << (isSame ? "is" : "is the folder of") << (isInput ? StringRef("standard input") : input);
  return !isSame && !isHeld;
}
