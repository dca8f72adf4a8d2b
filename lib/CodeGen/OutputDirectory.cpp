//===- OutputDirectory.cpp - a folder that appears whole or not -----------===//
#include "stage/CodeGen/OutputDirectory.h"
#include "stage/CodeGen/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

using namespace stage;
using llvm::StringRef;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

//===----------------------------------------------------------------------===//
// Removal on signals
//===----------------------------------------------------------------------===//
// The handler may only use system calls: the interrupted thread may hold malloc's lock, so neither readdir nor
// std::string will do. One folder at a time is enough for a compiler.

namespace {
constexpr int handledSignals[] = {SIGINT, SIGTERM, SIGHUP};
struct sigaction previousActions[std::size(handledSignals)];
struct sigaction previousFileSizeAction;
/// Path of the folder to remove; empty when there is none.
char pathToRemove[4096];
/// How many of the folders around it were made for it and go with it.
size_t parentsToRemove = 0;
std::atomic<int> descriptorToRemove = -1;
} // namespace

static void unlinkAllIn(int directory) {
  alignas(8) char buffer[32768];
  lseek(directory, 0, SEEK_SET);
  long count;
  while ((count = syscall(SYS_getdents64, directory, buffer, sizeof(buffer))) > 0) {
    // struct linux_dirent64: inode 8, offset 8, record length 2, type 1, name.
    for (long at = 0; at < count;) {
      unsigned short length;
      std::memcpy(&length, buffer + at + 16, sizeof(length));
      unlinkat(directory, buffer + at + 19, 0); // "." and ".." are refused
      at += length;
    }
  }
}

static void removeOnSignal(int signal) {
  int directory = descriptorToRemove.exchange(-1);
  if (directory >= 0) {
    // Other threads may still be adding files; once the folder is gone they cannot.
    for (int attempt = 0; attempt < 1000; ++attempt) {
      unlinkAllIn(directory);
      if (rmdir(pathToRemove) == 0 || errno != ENOTEMPTY)
        break;
    }
    for (size_t parent = 0; parent < parentsToRemove; ++parent) {
      *std::strrchr(pathToRemove, '/') = 0;
      rmdir(pathToRemove);
    }
  }
  for (size_t i = 0; i < std::size(handledSignals); ++i)
    if (handledSignals[i] == signal)
      sigaction(signal, &previousActions[i], nullptr);
  raise(signal);
}

static void startHandlingSignals(StringRef folder, size_t numParents, int descriptor) {
  if (folder.size() >= sizeof(pathToRemove))
    return;
  std::memcpy(pathToRemove, folder.data(), folder.size());
  pathToRemove[folder.size()] = 0;
  parentsToRemove = numParents;
  descriptorToRemove = descriptor;
  struct sigaction action = {};
  action.sa_handler = removeOnSignal;
  sigfillset(&action.sa_mask);
  for (size_t i = 0; i < std::size(handledSignals); ++i) {
    sigaction(handledSignals[i], nullptr, &previousActions[i]);
    // nohup and background shells ignore signals on purpose.
    if (previousActions[i].sa_handler != SIG_IGN)
      sigaction(handledSignals[i], &action, nullptr);
  }
  // A limit on the size of files shall be an error of write(2) like any other.
  action.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &action, &previousFileSizeAction);
}

static void stopHandlingSignals() {
  if (descriptorToRemove.exchange(-1) < 0)
    return;
  for (size_t i = 0; i < std::size(handledSignals); ++i)
    sigaction(handledSignals[i], &previousActions[i], nullptr);
  sigaction(SIGXFSZ, &previousFileSizeAction, nullptr);
}

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

static std::error_code lastError() { return std::error_code(errno, std::generic_category()); }

/// Whether `force` may replace a folder that holds this.
static bool isReplaceable(const fs::directory_entry &entry) {
  StringRef extension = path::extension(entry.path());
  return entry.type() == fs::file_type::regular_file && (extension == ".et" || extension == ".json");
}

/// Reports what speaks against writing to `target`, if anything.
static bool checkTarget(StringRef target, bool force, DiagnosticEngine &diags) {
  fs::file_status status;
  if (fs::status(target, status))
    return true; // absent, or its parent says why not
  if (!fs::is_directory(status)) {
    diags.report(SMLoc(), diag::OutputNotAFolder) << target;
    return false;
  }
  llvm::SmallString<256> current;
  if (!fs::current_path(current) && fs::equivalent(target, current)) {
    diags.report(SMLoc(), diag::OutputIsCurrent) << target;
    return false;
  }
  std::error_code error;
  for (fs::directory_iterator entry(target, error), end; !error && entry != end; entry.increment(error)) {
    if (!force) {
      diags.report(SMLoc(), diag::OutputNotEmpty) << target;
      return false;
    }
    if (!isReplaceable(*entry)) {
      diags.report(SMLoc(), diag::OutputHoldsOthers) << target << path::filename(entry->path());
      return false;
    }
  }
  if (error)
    diags.report(SMLoc(), diag::CannotCreateFolder) << target << error.message();
  return !error;
}

std::unique_ptr<OutputDirectory> OutputDirectory::create(StringRef target, Options options, DiagnosticEngine &diags) {
  // A trailing slash or "x/." would make the name below empty; a link must be replaced by what it points to.
  llvm::SmallString<256> whole(target);
  if (fs::exists(target)) {
    llvm::SmallString<256> real;
    if (!fs::real_path(target, real))
      whole = real;
  } else {
    fs::make_absolute(whole);
    path::remove_dots(whole, /*remove_dot_dot=*/false);
    while (whole.size() > 1 && path::is_separator(whole.back()))
      whole.pop_back();
  }
  if (target.empty()) {
    diags.report(SMLoc(), diag::CannotCreateFolder) << target << "the name is empty";
    return nullptr;
  }
  if (!checkTarget(whole, options.force, diags))
    return nullptr;
  std::unique_ptr<OutputDirectory> output(new OutputDirectory(std::string(whole), options, diags));
  if (!output->makeParents() || !output->makeHidden())
    return nullptr;
  return output;
}

OutputDirectory::OutputDirectory(std::string target, Options options, DiagnosticEngine &diags)
    : target(std::move(target)), options(options), diags(diags) {}

bool OutputDirectory::makeParents() {
  llvm::SmallVector<StringRef, 8> missing;
  for (StringRef parent = path::parent_path(target); !parent.empty() && !fs::exists(parent);
       parent = path::parent_path(parent))
    missing.push_back(parent);
  for (StringRef parent : llvm::reverse(missing)) {
    if (std::error_code error = fs::create_directory(parent)) {
      diags.report(SMLoc(), diag::CannotCreateFolder) << parent << error.message();
      return false;
    }
    madeParents.push_back(parent.str());
  }
  return true;
}

bool OutputDirectory::makeHidden() {
  std::string base =
      (path::parent_path(target) + "/." + path::filename(target) + ".partial-" + llvm::Twine(getpid())).str();
  for (unsigned attempt = 0;; ++attempt) {
    std::string candidate = attempt ? (base + "-" + llvm::Twine(attempt)).str() : base;
    if (mkdir(candidate.c_str(), 0777) == 0) {
      hidden = candidate;
      break;
    }
    if (errno != EEXIST || attempt == 1000) {
      diags.report(SMLoc(), diag::CannotCreateFolder) << target << lastError().message();
      return false;
    }
  }
  descriptor = open(hidden.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    diags.report(SMLoc(), diag::CannotCreateFolder) << target << lastError().message();
    return false;
  }
  startHandlingSignals(hidden, madeParents.size(), descriptor);
  return true;
}

OutputDirectory::~OutputDirectory() { remove(); }

void OutputDirectory::remove() {
  stopHandlingSignals();
  if (!hidden.empty()) {
    if (descriptor >= 0)
      unlinkAllIn(descriptor);
    rmdir(hidden.c_str());
    hidden.clear();
  }
  if (descriptor >= 0)
    close(descriptor);
  descriptor = -1;
  for (const std::string &parent : llvm::reverse(madeParents))
    rmdir(parent.c_str());
  madeParents.clear();
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

void OutputDirectory::fail(StringRef name, int error) {
  std::lock_guard<std::mutex> lock(mutex);
  if (failed.exchange(true))
    return;
  failedName = name.str();
  failedError = error;
}

bool OutputDirectory::writeFile(StringRef name, llvm::ArrayRef<uint8_t> bytes) {
  if (hasFailed())
    return false;
  llvm::SmallString<64> terminated(name);
  int file = -1;
  {
    // The kernel lets one thread at a time change a folder and has the others spin; here they sleep.
    std::lock_guard<std::mutex> lock(creating);
    file = openat(descriptor, terminated.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  if (file < 0) {
    fail(name, errno);
    return false;
  }
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t count = write(file, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0) {
      fail(name, errno);
      close(file);
      return false;
    }
    done += size_t(count);
  }
  if (close(file) != 0) {
    fail(name, errno);
    return false;
  }
  numFiles.fetch_add(1, std::memory_order_relaxed);
  numBytes.fetch_add(bytes.size(), std::memory_order_relaxed);
  return true;
}

std::error_code OutputDirectory::renameToTarget() {
  // Also succeeds over an empty folder.
  if (rename(hidden.c_str(), target.c_str()) == 0)
    return {};
  if ((errno != ENOTEMPTY && errno != EEXIST) || !options.force)
    return lastError();
  // The old folder and the new one change places at once; what is then hidden is the old one.
  if (renameat2(AT_FDCWD, hidden.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) != 0) {
    // Not every file system can exchange.
    std::string old = hidden + "-old";
    if (rename(target.c_str(), old.c_str()) != 0)
      return lastError();
    if (rename(hidden.c_str(), target.c_str()) != 0) {
      std::error_code error = lastError();
      (void)rename(old.c_str(), target.c_str());
      return error;
    }
    hidden = old;
  }
  int directory = open(hidden.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    unlinkAllIn(directory);
    close(directory);
  }
  rmdir(hidden.c_str());
  return {};
}

bool OutputDirectory::commit() {
  if (hasFailed()) {
    diags.report(SMLoc(), diag::CannotWriteFile)
        << (target + "/" + failedName) << std::error_code(failedError, std::generic_category()).message();
    remove();
    return false;
  }
  stopHandlingSignals();
  if (std::error_code error = renameToTarget()) {
    diags.report(SMLoc(), diag::CannotCreateFolder) << target << error.message();
    remove();
    return false;
  }
  hidden.clear();
  madeParents.clear();
  remove();
  return true;
}

unsigned stage::getNumWorkers(unsigned numThreads, size_t numRanks) {
  if (numThreads == 0)
    numThreads = std::max(1u, std::thread::hardware_concurrency());
  return unsigned(std::clamp<size_t>(numRanks, 1, numThreads));
}

bool stage::writeRankFiles(OutputDirectory &output, StringRef prefix, llvm::ArrayRef<uint32_t> ranks,
                           unsigned numThreads,
                           llvm::function_ref<llvm::ArrayRef<uint8_t>(uint32_t, unsigned)> encode) {
  unsigned numWorkers = getNumWorkers(numThreads, ranks.size());
  // Runs are long enough for a RankEncoder to profit from its last rank, short enough to even out.
  size_t run = std::clamp<size_t>(ranks.size() / (numWorkers * 8), 1, 64);
  std::atomic<size_t> next = 0;
  auto work = [&](unsigned worker) {
    for (size_t begin; (begin = next.fetch_add(run)) < ranks.size();) {
      for (uint32_t rank : ranks.slice(begin, std::min(run, ranks.size() - begin))) {
        llvm::SmallString<64> name;
        (prefix + "." + llvm::Twine(rank) + ".et").toVector(name);
        if (!output.writeFile(name, encode(rank, worker)))
          return;
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned worker = 1; worker < numWorkers; ++worker)
    threads.emplace_back(work, worker);
  work(0);
  for (std::thread &thread : threads)
    thread.join();
  return !output.hasFailed();
}
