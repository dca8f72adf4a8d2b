//===- TraceFolder.cpp - the traces of all ranks --------------------------===//
#include "stage/Trace/TraceFolder.h"
#include "stage/Support/Files.h"
#include "stage/Support/Json.h"
#include "stage/Trace/Diagnostics.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <set>

using namespace stage;
using namespace stage::trace;
using llvm::StringRef;

std::optional<uint32_t> stage::trace::getRankOfFileName(StringRef name, StringRef *prefix) {
  if (!name.consume_back(".et"))
    return std::nullopt;
  auto [stem, digits] = name.rsplit('.');
  uint32_t rank;
  if (stem.empty() || digits.empty() || !llvm::all_of(digits, llvm::isDigit) || digits.getAsInteger(10, rank) ||
      (digits.size() > 1 && digits[0] == '0'))
    return std::nullopt;
  if (prefix)
    *prefix = stem;
  return rank;
}

/// Finds the files. False after a report.
static bool findFiles(TraceFolder &folder, DiagnosticEngine &diags) {
  std::error_code error;
  std::set<std::string> prefixes;
  for (llvm::sys::fs::directory_iterator entry(folder.path, error), end; !error && entry != end;
       entry.increment(error)) {
    StringRef prefix;
    std::optional<uint32_t> rank = getRankOfFileName(llvm::sys::path::filename(entry->path()), &prefix);
    if (!rank)
      continue;
    prefixes.insert(prefix.str());
    folder.files[*rank] = entry->path();
  }
  if (error) {
    diags.report(SMLoc(), diag::CannotReadFile) << folder.path << error.message();
    return false;
  }
  if (prefixes.empty()) {
    diags.report(SMLoc(), diag::NoTraces) << folder.path;
    return false;
  }
  if (prefixes.size() > 1) {
    diags.report(SMLoc(), diag::SeveralTraces) << folder.path << *prefixes.begin() << *std::next(prefixes.begin());
    return false;
  }
  folder.prefix = *prefixes.begin();
  return true;
}

namespace {
/// Turns comm_group.json into groups, reporting all that is wrong in it.
class GroupReader {
public:
  GroupReader(TraceFolder &folder, StringRef path, DiagnosticEngine &diags)
      : folder(folder), path(path), diags(diags) {}

  bool read(StringRef text) {
    std::string error;
    std::optional<llvm::json::Value> value = parseJson(text, error);
    if (!value) {
      diags.report(SMLoc(), diag::GroupsMalformed) << path << error;
      return false;
    }
    const llvm::json::Object *object = value->getAsObject();
    if (!object) {
      diags.report(SMLoc(), diag::GroupsMalformed) << path << "an object of groups was expected";
      return false;
    }
    // The order of an object's keys is that of a hash table.
    std::vector<std::pair<StringRef, const llvm::json::Value *>> sorted;
    for (const auto &[key, members] : *object)
      sorted.emplace_back(key, &members);
    llvm::sort(sorted, [](const auto &a, const auto &b) { return a.first < b.first; });
    bool good = true;
    for (const auto &[key, members] : sorted)
      good &= readGroup(key, *members);
    return good;
  }

private:
  bool readGroup(StringRef key, const llvm::json::Value &members) {
    uint64_t number;
    if (key.getAsInteger(10, number) || number == 0 || !llvm::all_of(key, llvm::isDigit) || key[0] == '0') {
      diags.report(SMLoc(), diag::GroupBadKey) << path << key;
      return false;
    }
    const llvm::json::Array *array = members.getAsArray();
    if (!array || array->empty()) {
      diags.report(SMLoc(), diag::GroupBadMember) << path << key << "a list of ranks was expected";
      return false;
    }
    std::vector<uint32_t> &ranks = folder.groups[number];
    llvm::DenseSet<uint32_t> seen;
    for (const llvm::json::Value &element : *array) {
      llvm::Optional<int64_t> rank = element.getAsInteger();
      // Two values of uint32_t are reserved by DenseSet; no machine has so many ranks.
      if (!rank || *rank < 0 || *rank >= (int64_t(1) << 31)) {
        diags.report(SMLoc(), diag::GroupBadMember) << path << key << "a member is not a rank";
        return false;
      }
      if (!seen.insert(uint32_t(*rank)).second) {
        diags.report(SMLoc(), diag::GroupBadMember)
            << path << key << ("rank " + llvm::Twine(*rank) + " is there twice");
        return false;
      }
      ranks.push_back(uint32_t(*rank));
    }
    return true;
  }

  TraceFolder &folder;
  StringRef path;
  DiagnosticEngine &diags;
};
} // namespace

void TraceFolder::findAbsent() {
  // Ranks are counted from 0, and groups may name some beyond the last file.
  std::set<uint32_t> beyond;
  uint32_t last = files.rbegin()->first;
  for (const auto &[number, members] : groups)
    for (uint32_t member : members)
      if (member > last)
        beyond.insert(member);
  uint32_t expected = 0;
  for (const auto &[rank, file] : files) {
    if (rank > expected)
      absent.emplace_back(expected, rank - 1);
    expected = rank + 1;
  }
  for (uint32_t rank : beyond) {
    if (!absent.empty() && absent.back().second + 1 == rank)
      absent.back().second = rank;
    else
      absent.emplace_back(rank, rank);
  }
}

std::optional<TraceFolder> TraceFolder::load(StringRef path, DiagnosticEngine &diags) {
  TraceFolder folder;
  folder.path = path.str();
  if (!findFiles(folder, diags))
    return std::nullopt;
  llvm::SmallString<256> groupPath(path);
  llvm::sys::path::append(groupPath, commGroupFileName);
  if (llvm::sys::fs::exists(groupPath)) {
    // Each rank is in several groups.
    constexpr uint64_t maxBytes = uint64_t(1) << 30;
    auto file = readFile(groupPath, diags, maxBytes);
    if (!file || !GroupReader(folder, groupPath, diags).read(file->getBuffer()))
      return std::nullopt;
  }
  folder.findAbsent();
  return folder;
}
