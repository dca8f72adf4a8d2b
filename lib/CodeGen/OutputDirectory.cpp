//===- OutputDirectory.cpp - a folder that appears whole or not -----------===//
#include "stage/CodeGen/OutputDirectory.h"
#include "stage/CodeGen/Diagnostics.h"
#include "stage/Support/Process.h"
#include "stage/Tasks/CommGroups.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"
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
// Removal when the process ends
//===----------------------------------------------------------------------===//
// The handler may only use system calls: the interrupted thread may hold malloc's lock, so neither readdir nor
// std::string will do. One folder at a time is enough for a compiler.

namespace {
/// All that end a process unless it handles them, but SIGKILL; batch systems send SIGUSR1, SIGUSR2 and SIGXCPU.
constexpr int handledSignals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGPIPE, SIGABRT,   SIGSEGV,
                                  SIGBUS,  SIGILL,  SIGFPE,  SIGTRAP, SIGSYS,  SIGALRM,   SIGPROF,
                                  SIGPOLL, SIGPWR,  SIGUSR1, SIGUSR2, SIGXCPU, SIGVTALRM, SIGSTKFLT};
struct sigaction previousActions[std::size(handledSignals)];
struct sigaction previousFileSizeAction;
/// Path of the folder to remove; empty when there is none.
char pathToRemove[4096];
/// How many of the folders around it were made for it and go with it.
size_t parentsToRemove = 0;
std::atomic<int> descriptorToRemove = -1;

/// While one lives, signals wait: what the handler removes is changed.
class SignalBlock {
public:
  SignalBlock() {
    sigset_t handled;
    sigemptyset(&handled);
    for (int signal : handledSignals)
      sigaddset(&handled, signal);
    pthread_sigmask(SIG_BLOCK, &handled, &before);
  }
  ~SignalBlock() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }

private:
  sigset_t before;
};
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

/// By system calls only. Other threads may still be adding files; once the folder is gone they cannot.
static void removeNow() {
  int directory = descriptorToRemove.exchange(-1);
  if (directory < 0)
    return;
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

static void removeOnSignal(int signal) {
  removeNow();
  for (size_t i = 0; i < std::size(handledSignals); ++i)
    if (handledSignals[i] == signal)
      sigaction(signal, &previousActions[i], nullptr);
  raise(signal);
}

/// What is removed from now on when the process ends before its time.
static void setFolderToRemove(StringRef folder, size_t numParents, int descriptor) {
  descriptorToRemove = -1;
  if (folder.size() >= sizeof(pathToRemove))
    return;
  std::memcpy(pathToRemove, folder.data(), folder.size());
  pathToRemove[folder.size()] = 0;
  parentsToRemove = numParents;
  descriptorToRemove = descriptor;
}

static void startHandlingSignals() {
  setEmergencyCleanup(removeNow);
  struct sigaction action = {};
  action.sa_handler = removeOnSignal;
  sigfillset(&action.sa_mask);
  for (size_t i = 0; i < std::size(handledSignals); ++i) {
    sigaction(handledSignals[i], nullptr, &previousActions[i]);
    // nohup and background shells ignore signals on purpose; LLVM prints its state on SIGUSR1 and goes on.
    bool endsProcess = previousActions[i].sa_handler != SIG_IGN &&
                       (handledSignals[i] != SIGUSR1 || previousActions[i].sa_handler == SIG_DFL);
    if (endsProcess)
      sigaction(handledSignals[i], &action, nullptr);
  }
  // A limit on the size of files shall be an error of write(2) like any other.
  action.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &action, &previousFileSizeAction);
}

static void stopHandlingSignals() {
  descriptorToRemove = -1;
  setEmergencyCleanup(nullptr);
  for (size_t i = 0; i < std::size(handledSignals); ++i)
    sigaction(handledSignals[i], &previousActions[i], nullptr);
  sigaction(SIGXFSZ, &previousFileSizeAction, nullptr);
}

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

static std::error_code lastError() { return std::error_code(errno, std::generic_category()); }

/// In every folder that we write. A name says nothing about who wrote a file.
static constexpr llvm::StringLiteral markName = ".stagec";

/// Whether we give files of such a folder this name: one of the given names, with traces of the given prefix, or
/// `<prefix>.<rank>.et` and comm_group.json; and the mark.
bool OutputDirectory::isOurName(StringRef name) const {
  if (name == markName)
    return true;
  if (options.names.empty() ? name == commGroupFileName : llvm::is_contained(options.names, name))
    return true;
  if (!name.consume_back(".et"))
    return false;
  auto [prefix, rank] = name.rsplit('.');
  if (rank.empty() || !llvm::all_of(rank, llvm::isDigit))
    return false;
  return !prefix.empty() && (options.names.empty() || prefix == options.prefix);
}

/// The names in a folder. False after a report.
static bool listFolder(StringRef folder, StringRef target, llvm::StringSet<> &names, DiagnosticEngine &diags) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.insert(path::filename(entry->path()));
  if (error)
    diags.report(SMLoc(), diag::CannotCreateFolder) << target << error.message();
  return !error;
}

/// Whether all files of a folder are ours, and none came since `before` was listed. False after a report about
/// the target.
bool OutputDirectory::checkReplaceable(StringRef folder, const llvm::StringSet<> *before) {
  std::error_code error;
  bool isMarked = false, isEmpty = true;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    StringRef name = path::filename(entry->path());
    isEmpty = false;
    isMarked |= name == markName;
    if (entry->type() == fs::file_type::regular_file && isOurName(name) && (!before || before->contains(name)))
      continue;
    diags.report(SMLoc(), diag::OutputHoldsOthers) << target << name;
    return false;
  }
  if (error)
    diags.report(SMLoc(), diag::CannotCreateFolder) << target << error.message();
  else if (!isMarked && !isEmpty)
    diags.report(SMLoc(), diag::OutputUnmarked) << target << markName;
  return !error && (isMarked || isEmpty);
}

/// Reports what speaks against writing to `target`, if anything.
bool OutputDirectory::checkTarget() {
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
  if (!listFolder(target, target, replaced, diags))
    return false;
  if (options.force)
    return checkReplaceable(target, nullptr);
  if (!replaced.empty())
    diags.report(SMLoc(), diag::OutputNotEmpty) << target;
  return replaced.empty();
}

/// The absolute path of a target. The part that exists is that of the folders behind its links; in the other part `..`
/// can be left out, with what is before it.
std::string OutputDirectory::resolve(StringRef target) {
  llvm::SmallString<256> whole(target), real;
  fs::make_absolute(whole);
  StringRef existing = whole;
  while (!existing.empty() && !fs::exists(existing))
    existing = path::parent_path(existing);
  if (fs::real_path(existing, real))
    real = existing;
  path::append(real, StringRef(whole).drop_front(existing.size()));
  path::remove_dots(real, /*remove_dot_dot=*/true);
  while (real.size() > 1 && path::is_separator(real.back()))
    real.pop_back();
  return std::string(real);
}

std::unique_ptr<OutputDirectory> OutputDirectory::create(StringRef target, Options options, DiagnosticEngine &diags) {
  if (target.empty()) {
    diags.report(SMLoc(), diag::CannotCreateFolder) << target << "the name is empty";
    return nullptr;
  }
  std::unique_ptr<OutputDirectory> output(new OutputDirectory(resolve(target), options, diags));
  if (!output->checkTarget() || !output->makeParents() || !output->makeHidden())
    return nullptr;
  return output;
}

bool OutputDirectory::check(StringRef target, Options options, DiagnosticEngine &diags) {
  return OutputDirectory(resolve(target), options, diags).checkTarget();
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
  setFolderToRemove(hidden, madeParents.size(), descriptor);
  startHandlingSignals();
  isHandlingSignals = true;
  return true;
}

OutputDirectory::~OutputDirectory() { remove(); }

void OutputDirectory::remove() {
  // A signal that comes now does the rest.
  if (!hidden.empty()) {
    if (descriptor >= 0)
      unlinkAllIn(descriptor);
    rmdir(hidden.c_str());
    hidden.clear();
  }
  for (const std::string &parent : llvm::reverse(madeParents))
    rmdir(parent.c_str());
  madeParents.clear();
  if (isHandlingSignals)
    stopHandlingSignals();
  isHandlingSignals = false;
  if (descriptor >= 0)
    close(descriptor);
  descriptor = -1;
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

/// Added up, it tells whether two folders hold the same names, in whatever order.
static uint64_t hashName(StringRef name) { return llvm::xxHash64(name); }

bool OutputDirectory::writeFile(StringRef name, llvm::ArrayRef<uint8_t> bytes, WriteMode mode) {
  if (hasFailed())
    return false;
  llvm::SmallString<64> terminated(name);
  int file = -1;
  if (mode == WriteMode::Append) {
    file = openat(descriptor, terminated.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  } else {
    // The kernel lets one thread at a time change a folder and has the others spin; here they sleep.
    std::lock_guard<std::mutex> lock(creating);
    mode_t rights = mode == WriteMode::CreateProgram ? 0777 : 0666;
    file = openat(descriptor, terminated.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, rights);
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
  if (mode != WriteMode::Append) {
    numFiles.fetch_add(1, std::memory_order_relaxed);
    nameHashes.fetch_add(hashName(name), std::memory_order_relaxed);
  }
  numBytes.fetch_add(bytes.size(), std::memory_order_relaxed);
  return true;
}

/// Whether what was written is still there: anybody may remove files of a folder that he may write.
bool OutputDirectory::checkComplete() {
  std::error_code error;
  uint64_t hashes = 0;
  struct stat ours = {}, named = {};
  for (fs::directory_iterator entry(hidden, error), end; !error && entry != end; entry.increment(error))
    if (StringRef name = path::filename(entry->path()); name != markName)
      hashes += hashName(name);
  if (!error && fstat(descriptor, &ours) == 0 && stat(hidden.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
      hashes == nameHashes)
    return true;
  diags.report(SMLoc(), diag::OutputDisturbed) << target;
  return false;
}

/// Two folders change places at once, or one after the other where the file system cannot do that. The old one is then
/// `hidden`.
std::error_code OutputDirectory::exchange() {
  if (renameat2(AT_FDCWD, hidden.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0)
    return {};
  std::string old = hidden + "-old";
  if (rename(target.c_str(), old.c_str()) != 0)
    return lastError();
  if (rename(hidden.c_str(), target.c_str()) != 0) {
    std::error_code error = lastError();
    (void)rename(old.c_str(), target.c_str());
    return error;
  }
  (void)rename(old.c_str(), hidden.c_str());
  return {};
}

/// False after a report.
bool OutputDirectory::renameToTarget() {
  auto fail = [&](std::error_code error) {
    diags.report(SMLoc(), diag::CannotCreateFolder) << target << error.message();
    return false;
  };
  SignalBlock block;
  // Also succeeds over an empty folder.
  if (rename(hidden.c_str(), target.c_str()) == 0) {
    setFolderToRemove("", 0, -1);
    hidden.clear();
    madeParents.clear();
    return true;
  }
  std::error_code error = lastError();
  if (error != std::errc::directory_not_empty && error != std::errc::file_exists)
    return fail(error);
  if (!options.force) {
    diags.report(SMLoc(), diag::OutputNotEmpty) << target;
    return false;
  }
  if ((error = exchange()))
    return fail(error);
  // Nobody knows the old folder's name now, so what is not in it will not come.
  if (!checkReplaceable(hidden, &replaced)) {
    if ((error = exchange()))
      return fail(error);
    return false;
  }
  // A signal that waits, or comes, removes the rest of the old folder.
  close(descriptor);
  descriptor = open(hidden.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  madeParents.clear();
  setFolderToRemove(hidden, 0, descriptor);
  return true;
}

void OutputDirectory::writeMark() {
  int mark = openat(descriptor, markName.data(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (mark >= 0)
    close(mark);
  else
    fail(markName, errno);
}

bool OutputDirectory::commit() {
  bool good = !hasFailed() && checkComplete();
  if (good)
    writeMark();
  if (hasFailed())
    diags.report(SMLoc(), diag::CannotWriteFile)
        << (target + "/" + failedName) << std::error_code(failedError, std::generic_category()).message();
  good = good && !hasFailed() && renameToTarget();
  // What is hidden now: all of it after a failure, the folder that was replaced, or nothing.
  remove();
  return good;
}

unsigned stage::getNumWorkers(unsigned numThreads, size_t numRanks) {
  if (numThreads == 0)
    numThreads = std::max(1u, std::thread::hardware_concurrency());
  return unsigned(std::clamp<size_t>(numRanks, 1, numThreads));
}

bool stage::writeRankFiles(OutputDirectory &output, StringRef prefix, llvm::ArrayRef<uint32_t> ranks,
                           unsigned numThreads, llvm::function_ref<llvm::ArrayRef<uint8_t>(uint32_t, unsigned)> encode,
                           OutputDirectory::WriteMode mode) {
  unsigned numWorkers = getNumWorkers(numThreads, ranks.size());
  // Runs are long enough for a RankEncoder to profit from its last rank, short enough to even out.
  size_t run = std::clamp<size_t>(ranks.size() / (numWorkers * 8), 1, 64);
  std::atomic<size_t> next = 0;
  auto work = [&](unsigned worker) {
    for (size_t begin; (begin = next.fetch_add(run)) < ranks.size();) {
      for (uint32_t rank : ranks.slice(begin, std::min(run, ranks.size() - begin))) {
        llvm::SmallString<64> name;
        (prefix + "." + llvm::Twine(rank) + ".et").toVector(name);
        if (!output.writeFile(name, encode(rank, worker), mode))
          return;
      }
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(numWorkers);
  try {
    for (unsigned worker = 1; worker < numWorkers; ++worker)
      threads.emplace_back(work, worker);
  } catch (const std::system_error &) {
    // A limit of the system: those that did start take the runs of the others.
  }
  work(0);
  for (std::thread &thread : threads)
    thread.join();
  return !output.hasFailed();
}
