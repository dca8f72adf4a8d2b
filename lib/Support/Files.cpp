//===- Files.cpp - files that are read and written whole ------------------===//
#include "stage/Support/Files.h"
#include "stage/Support/StandardOutput.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <csignal>
#include <fcntl.h>
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

std::unique_ptr<llvm::MemoryBuffer> stage::readFile(StringRef path, std::string &error, uint64_t maxBytes) {
  bool isInput = path == "-";
  Descriptor file(isInput ? STDIN_FILENO : ::open(path.str().c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status = {};
  if (file.number < 0 || fstat(file.number, &status) != 0) {
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

bool stage::writeFile(StringRef path, StringRef text, DiagnosticEngine &diags) {
  return writeFile(
      path,
      [&](llvm::raw_ostream &out) {
        out << text;
        return true;
      },
      diags);
}

bool stage::writeFile(StringRef path, llvm::function_ref<bool(llvm::raw_ostream &)> write, DiagnosticEngine &diags) {
  auto fail = [&](const std::string &reason) {
    diags.report(SMLoc(), diag::CannotWriteFile) << path << reason;
    return false;
  };
  if (path == "-") {
    bool good = write(llvm::outs());
    return flushStandardOutput(diags) && good;
  }
  // What a link points to is replaced, not the link.
  llvm::SmallString<256> target(path);
  fs::file_status status;
  bool exists = !fs::status(path, status);
  if (exists && fs::real_path(path, target))
    target = path;
  if (exists && !fs::is_regular_file(status)) {
    if (fs::is_directory(status))
      return fail("Is a directory");
    std::error_code error;
    llvm::raw_fd_ostream out(target, error, fs::CD_OpenExisting, fs::FA_Write, fs::OF_None);
    if (error)
      return fail(error.message());
    bool good = write(out);
    return flushOutput(out, path, diags) && good;
  }
  // A file that nobody may write is not replaced either.
  if (exists && ::access(target.c_str(), W_OK) != 0)
    return fail(lastError());
  // Removed on signals.
  llvm::Expected<fs::TempFile> file =
      fs::TempFile::create(target + ".partial-%%%%%%%%", exists ? unsigned(status.permissions()) : 0666);
  if (!file)
    return fail(llvm::toString(file.takeError()));
  // A limit on the size of files shall be an error of write(2) like any other.
  auto previous = std::signal(SIGXFSZ, SIG_IGN);
  llvm::raw_fd_ostream out(file->FD, /*shouldClose=*/false);
  bool good = write(out);
  out.flush();
  std::signal(SIGXFSZ, previous);
  if (out.has_error()) {
    std::string reason = out.error().message();
    out.clear_error();
    llvm::consumeError(file->discard());
    return fail(reason);
  }
  if (!good) {
    llvm::consumeError(file->discard());
    return false;
  }
  if (llvm::Error error = file->keep(target))
    return fail(llvm::toString(std::move(error)));
  return true;
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
