//===- OutputDirectory.h - a folder that appears whole or not --*- C++ -*-===//
//
// A run that fails must leave nothing that looks complete. Files are written into a
// hidden folder beside the target, which takes the target's name in one rename when
// all of them are there:
//
//   auto output = OutputDirectory::create("traces", {.force = false}, diags);
//   if (!output) return 1;                       // reported
//   output->writeFile("comm_group.json", bytes);  // any thread
//   if (!output->commit()) return 1;              // reported: disk full, ...
//
// Destroyed without commit(), on signals that end the process, or when it runs out of
// memory, the hidden folder is removed, and so are the parents of the target that were
// made for it. After SIGKILL a folder `.<name>.partial-<pid>` stays behind.
//
// An existing target must be empty, or `force` must be given and the target be a folder
// that was written here: it holds our mark, the file `.stagec`, and files of the names that such a folder
// has, and nothing that came while the new ones were written. A mistyped path shall
// not cost a user his home, nor his own files beside the traces.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_CODEGEN_OUTPUTDIRECTORY_H
#define STAGE_CODEGEN_OUTPUTDIRECTORY_H

#include "stage/Support/Diagnostics.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

namespace stage {

class OutputDirectory {
public:
  struct Options {
    /// Replace a target that was written here.
    bool force = false;
    /// All names of files that the folder may hold; empty: those of traces and their groups. A folder that holds
    /// others is not replaced.
    llvm::ArrayRef<llvm::StringRef> names = {};
    /// Beside `names`: traces with this prefix; empty: none.
    llvm::StringRef prefix = {};
  };

  /// Null after a report.
  static std::unique_ptr<OutputDirectory> create(llvm::StringRef target, Options options, DiagnosticEngine &diags);
  /// Whether create() would find nothing that speaks against the target. False after a report.
  static bool check(llvm::StringRef target, Options options, DiagnosticEngine &diags);
  /// The absolute path that the folder gets, behind links.
  static std::string resolve(llvm::StringRef target);
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory &) = delete;
  OutputDirectory &operator=(const OutputDirectory &) = delete;

  enum class WriteMode { Create, CreateProgram, Append };

  /// Writes a file of that name, which may be run if it is a program, or goes on with one that was written. Safe to
  /// call from several threads; after the first failure all calls return false and commit() reports it.
  bool writeFile(llvm::StringRef name, llvm::ArrayRef<uint8_t> bytes, WriteMode mode = WriteMode::Create);
  bool writeFile(llvm::StringRef name, llvm::StringRef text, WriteMode mode = WriteMode::Create) {
    return writeFile(name, llvm::ArrayRef<uint8_t>(text.bytes_begin(), text.bytes_end()), mode);
  }
  bool hasFailed() const { return failed.load(std::memory_order_relaxed); }

  /// Gives the folder its name, if all files are still in it. False after a report, with everything removed.
  bool commit();

  /// Files and bytes written so far.
  uint64_t getNumFiles() const { return numFiles.load(std::memory_order_relaxed); }
  uint64_t getNumBytes() const { return numBytes.load(std::memory_order_relaxed); }

private:
  OutputDirectory(std::string target, Options options, DiagnosticEngine &diags);
  bool isOurName(llvm::StringRef name) const;
  bool checkReplaceable(llvm::StringRef folder, const llvm::StringSet<> *before);
  bool checkTarget();
  bool makeParents();
  bool makeHidden();
  void fail(llvm::StringRef name, int error);
  void writeMark();
  bool checkComplete();
  std::error_code exchange();
  bool renameToTarget();
  void remove();

  std::string target;
  std::string hidden;
  Options options;
  DiagnosticEngine &diags;
  /// Parents of the target made by us, outermost first.
  std::vector<std::string> madeParents;
  /// Names in the folder that is replaced.
  llvm::StringSet<> replaced;
  int descriptor = -1;
  bool isHandlingSignals = false;
  std::atomic<bool> failed = false;
  std::atomic<uint64_t> numFiles = 0;
  std::atomic<uint64_t> numBytes = 0;
  std::atomic<uint64_t> nameHashes = 0; ///< Of all files, added up.
  std::mutex creating;                  ///< Held while a file is made in the folder.
  std::mutex mutex;                     ///< Guards the failure.
  std::string failedName;
  int failedError = 0;
};

/// Writes, or goes on with, `<prefix>.<rank>.et` for each of `ranks` with `numThreads` threads (0: one per core).
/// `encode(rank, worker)` returns the bytes of a rank, valid until the same worker's next call; workers are
/// numbered from 0 and get runs of consecutive entries of `ranks`, so each can keep a RankEncoder.
/// Which worker writes a file never shows in it. Returns false when a write failed; commit() says why.
bool writeRankFiles(OutputDirectory &output, llvm::StringRef prefix, llvm::ArrayRef<uint32_t> ranks,
                    unsigned numThreads,
                    llvm::function_ref<llvm::ArrayRef<uint8_t>(uint32_t rank, unsigned worker)> encode,
                    OutputDirectory::WriteMode mode = OutputDirectory::WriteMode::Create);

/// Number of workers that writeRankFiles starts for a request of `numThreads`.
unsigned getNumWorkers(unsigned numThreads, size_t numRanks);

} // namespace stage

#endif // STAGE_CODEGEN_OUTPUTDIRECTORY_H
