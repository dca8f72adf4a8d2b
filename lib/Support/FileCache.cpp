//===- FileCache.cpp - results that are kept from run to run --------------===//
//
// Problem: each run of the compiler parses the same files of the library again.
//
//   load("<build> <text of nn.stg>")            // none
//   store("<build> <text of nn.stg>", tree)     // writes ~/.cache/stagec/7f0c...e1.cache-entry
//
// Algorithm: the hash of a key names the file of its entry, which holds a checksum, the length of the key, the key, and
// the value. An entry counts if its checksum fits the rest and its key is the one that is asked for. Two keys of the
// same hash therefore take turns, and none gets the value of the other. A new entry is written beside its place and
// renamed, so that other compilers that run see all of it or nothing.
//
// An entry is read only if it is a regular file of this user that nobody else may write: another user who can write to
// the folder could otherwise say what this user compiles.
//
// Limits: about one store in sixteen sums up the folder, and removes the entries that were written first once they have
// more than `maxBytes`. Values with more than a sixteenth of this are not kept. No entry is locked: two compilers that
// miss the same entry both write it.
//
//===----------------------------------------------------------------------===//
#include "stage/Support/FileCache.h"
#include "stage/Support/Files.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace stage;
using llvm::StringRef;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

static constexpr llvm::StringLiteral ending = ".cache-entry";

static std::string toBytes(uint64_t number) {
  return std::string(reinterpret_cast<const char *>(&number), sizeof number);
}

std::string FileCache::getPath(uint64_t hash) const {
  llvm::SmallString<256> result(folder);
  path::append(result, llvm::utohexstr(hash, /*LowerCase=*/true) + ending);
  return result.str().str();
}

/// The bytes of a file that only this user could write; null without.
static std::unique_ptr<llvm::MemoryBuffer> readOwnFile(const std::string &name) {
  int file = ::open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0)
    return nullptr;
  struct stat status = {};
  std::unique_ptr<llvm::MemoryBuffer> result;
  if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
      !(status.st_mode & (S_IWGRP | S_IWOTH)))
    if (auto buffer = llvm::MemoryBuffer::getOpenFile(file, name, status.st_size, /*RequiresNullTerminator=*/false,
                                                      /*IsVolatile=*/true))
      result = std::move(*buffer);
  ::close(file);
  return result;
}

std::optional<std::string> FileCache::load(StringRef key) const {
  auto buffer = isOn() ? readOwnFile(getPath(llvm::xxHash64(key))) : nullptr;
  if (!buffer)
    return std::nullopt;
  StringRef entry = buffer->getBuffer(), checksum = entry.take_front(sizeof(uint64_t));
  entry = entry.drop_front(checksum.size());
  if (checksum != toBytes(llvm::xxHash64(entry)) || !entry.consume_front(toBytes(key.size())) ||
      !entry.consume_front(key))
    return std::nullopt;
  return entry.str();
}

void FileCache::store(StringRef key, StringRef value) const {
  std::string entry = toBytes(key.size()) + key.str() + value.str();
  if (!isOn() || entry.size() > maxBytes / 16 || fs::create_directories(folder, /*IgnoreExisting=*/true, fs::owner_all))
    return;
  uint64_t hash = llvm::xxHash64(key);
  if (writePrivateFile(getPath(hash), toBytes(llvm::xxHash64(entry)) + entry) && hash % 16 == 0)
    removeOldest();
}

void FileCache::removeOldest() const {
  struct Entry {
    std::string name;
    fs::file_status status;
  };
  std::vector<Entry> entries;
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; it != end && !error; it.increment(error)) {
    fs::file_status status;
    // Also what a compiler that was killed left half written.
    if (StringRef(it->path()).contains(ending) && !fs::status(it->path(), status, /*follow=*/false)) {
      bytes += status.getSize();
      entries.push_back({it->path(), status});
    }
  }
  llvm::sort(entries, [](const Entry &a, const Entry &b) {
    return a.status.getLastModificationTime() < b.status.getLastModificationTime();
  });
  for (const Entry &entry : entries) {
    if (bytes <= maxBytes)
      return;
    bytes -= entry.status.getSize();
    fs::remove(entry.name);
  }
}

std::string stage::getCacheFolder() {
  for (auto [variable, below] : {std::pair("XDG_CACHE_HOME", ""), std::pair("HOME", ".cache")}) {
    const char *value = std::getenv(variable);
    if (!value || !path::is_absolute(value))
      continue;
    llvm::SmallString<128> folder(value);
    path::append(folder, below, "stagec");
    return folder.str().str();
  }
  return "";
}
