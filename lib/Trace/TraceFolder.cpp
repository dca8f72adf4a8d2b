//===- TraceFolder.cpp - the traces of all ranks --------------------------===//
#include "stage/Trace/TraceFolder.h"
#include "stage/Trace/Diagnostics.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <set>

using namespace stage;
using llvm::StringRef;

std::optional<uint32_t> stage::getRankOfFileName(StringRef name, StringRef *prefix) {
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

std::string stage::formatRanks(llvm::ArrayRef<uint32_t> ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1)
      ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(ranks[i]);
    if (last > i)
      text += "-" + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
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

static bool checkNoRankIsMissing(const TraceFolder &folder, DiagnosticEngine &diags) {
  constexpr size_t maxShown = 1000;
  std::vector<uint32_t> missing;
  uint32_t expected = 0;
  for (const auto &[rank, file] : folder.files) {
    for (; expected < rank && missing.size() < maxShown; ++expected)
      missing.push_back(expected);
    expected = rank + 1;
  }
  if (missing.empty())
    return true;
  diags.report(SMLoc(), diag::MissingRanks)
      << folder.path << formatRanks(missing) << int64_t(folder.files.rbegin()->first);
  return false;
}

namespace {
/// Turns comm_group.json into groups, reporting all that is wrong in it.
class GroupReader {
public:
  GroupReader(TraceFolder &folder, StringRef path, bool wholeOnly, DiagnosticEngine &diags)
      : folder(folder), path(path), wholeOnly(wholeOnly), diags(diags) {}

  bool read(StringRef text) {
    llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
    if (!value) {
      diags.report(SMLoc(), diag::GroupsMalformed) << path << llvm::toString(value.takeError());
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
      if (wholeOnly && *rank >= int64_t(folder.files.size())) {
        diags.report(SMLoc(), diag::GroupBadMember)
            << path << key
            << ("rank " + llvm::Twine(*rank) + " is a member, but there are only " + llvm::Twine(folder.files.size()) +
                " ranks");
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
  bool wholeOnly;
  DiagnosticEngine &diags;
};
} // namespace

std::optional<TraceFolder> TraceFolder::load(StringRef path, bool wholeOnly, DiagnosticEngine &diags) {
  TraceFolder folder;
  folder.path = path.str();
  if (!findFiles(folder, diags))
    return std::nullopt;
  if (wholeOnly && !checkNoRankIsMissing(folder, diags))
    return std::nullopt;

  llvm::SmallString<256> groupPath(path);
  llvm::sys::path::append(groupPath, commGroupFileName);
  if (!llvm::sys::fs::exists(groupPath))
    return folder;
  auto file = llvm::MemoryBuffer::getFile(groupPath);
  if (!file) {
    diags.report(SMLoc(), diag::CannotReadFile) << groupPath << file.getError().message();
    return std::nullopt;
  }
  if (!GroupReader(folder, groupPath, wholeOnly, diags).read((*file)->getBuffer()))
    return std::nullopt;
  return folder;
}
