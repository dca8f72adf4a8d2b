//===- TraceFolder.h - the traces of all ranks -----------------*- C++ -*-===//
//
// A folder of `<prefix>.<rank>.et` files and, where collectives use groups, a
// comm_group.json. Some ranks may be absent.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TRACE_TRACEFOLDER_H
#define STAGE_TRACE_TRACEFOLDER_H

#include "stage/Support/Diagnostics.h"
#include "stage/Tasks/CommGroups.h"
#include <map>
#include <optional>
#include <string>

namespace stage::trace {

struct TraceFolder {
  std::string path;
  std::string prefix;
  /// Rank to the path of its file.
  std::map<uint32_t, std::string> files;
  CommGroups groups;

  /// Ranks without a file, as inclusive ranges: those below the highest one, and those that groups name.
  std::vector<std::pair<uint32_t, uint32_t>> absent;

  /// Reads the names and the groups. Nothing after a report.
  static std::optional<TraceFolder> load(llvm::StringRef path, DiagnosticEngine &diags);

private:
  void findAbsent();
};

/// The rank in `<prefix>.<rank>.et`, if the name is such a one.
std::optional<uint32_t> getRankOfFileName(llvm::StringRef name, llvm::StringRef *prefix = nullptr);

} // namespace stage::trace

#endif // STAGE_TRACE_TRACEFOLDER_H
