//===- Files.h - files that are read and written whole ---------*- C++ -*-===//
#ifndef STAGE_SUPPORT_FILES_H
#define STAGE_SUPPORT_FILES_H

#include "stage/Support/Diagnostics.h"
#include "llvm/Support/MemoryBuffer.h"

namespace stage {

/// Texts longer than this are refused: a device or a pipe may have no end.
inline constexpr uint64_t maxTextBytes = uint64_t(64) << 20;

/// A descriptor of a file; negative with a reason in `error`. A named pipe is refused if it has no writer within a
/// second, where open(2) would wait for one for ever; a writer that is there is waited for, when its pipe is read.
int openToRead(llvm::StringRef path, std::string &error);

/// Reads a file, or standard input for `-`, with read(2): a file that is cut while it is read is short, where one that
/// is mapped would end the program. Null with a reason in `error`.
std::unique_ptr<llvm::MemoryBuffer> readFile(llvm::StringRef path, std::string &error,
                                             uint64_t maxBytes = maxTextBytes);
/// The same with a report.
std::unique_ptr<llvm::MemoryBuffer> readFile(llvm::StringRef path, DiagnosticEngine &diags,
                                             uint64_t maxBytes = maxTextBytes);

/// What becomes of a file that has the name of an output: it is somebody's, unless its owner says otherwise
/// (`--force`).
enum class Existing { Keep, Replace };

/// Whether `path` may be written: it is absent, or a regular file that may be replaced. A link is never followed, but
/// to a device or a pipe (/dev/stdout). Of use before work whose result has no other place. False after a report.
bool checkReplaceable(llvm::StringRef path, Existing existing, DiagnosticEngine &diags);

/// Writes a file whole, or to standard output for `-`. The text goes into a file beside it that takes its name when all
/// of it is written, so that what was there is whole until then; devices and pipes are written to as they are. False
/// after a report, also of checkReplaceable.
bool writeFile(llvm::StringRef path, llvm::StringRef text, Existing existing, DiagnosticEngine &diags);
/// The same for a text that is not held in memory: `write` prints it, and returns false after a report, upon which
/// nothing takes the name.
bool writeFile(llvm::StringRef path, llvm::function_ref<bool(llvm::raw_ostream &)> write, Existing existing,
               DiagnosticEngine &diags);

/// Writes a file that only its owner may read or write, and replaces one that is there, as writeFile does. Reports
/// nothing. False if it cannot be written.
bool writePrivateFile(llvm::StringRef path, llvm::StringRef text);

/// Whether `output`, a file or a folder, can be written without writing over the file that is read as `input`: it is
/// not that file, under this or another name, nor the folder that holds it. `-` is standard input and output; devices
/// and pipes keep no text. False after a report.
bool checkKeepsInput(llvm::StringRef output, llvm::StringRef input, DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_SUPPORT_FILES_H
