//===- FileCache.h - results that are kept from run to run -----*- C++ -*-===//
#ifndef STAGE_SUPPORT_FILECACHE_H
#define STAGE_SUPPORT_FILECACHE_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace stage {

/// Keeps values by key in the files of a folder. Nothing is reported: an entry that cannot be read or written is an
/// entry that is not there.
class FileCache {
public:
  /// Without a folder nothing is kept. The folder is made when the first entry is written.
  explicit FileCache(std::string folder = "", uint64_t maxBytes = uint64_t(64) << 20)
      : folder(std::move(folder)), maxBytes(maxBytes) {}

  bool isOn() const { return !folder.empty(); }
  /// The value that was stored with this key.
  std::optional<std::string> load(llvm::StringRef key) const;
  void store(llvm::StringRef key, llvm::StringRef value) const;

private:
  std::string getPath(uint64_t hash) const;
  void removeOldest() const;

  std::string folder;
  uint64_t maxBytes; ///< Of all entries together, about.
};

/// `$XDG_CACHE_HOME/stagec`, else `~/.cache/stagec`; empty if neither variable has an absolute path.
std::string getCacheFolder();

} // namespace stage

#endif // STAGE_SUPPORT_FILECACHE_H
