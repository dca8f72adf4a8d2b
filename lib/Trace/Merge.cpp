//===- Merge.cpp - several jobs in one folder of traces -------------------===//
//
// Ranks are placed first: a table per job from its ranks to those of the result, which are 0 to N-1, each given once.
// Then job by job and rank by rank nodes are read, renamed and written, some of them at a time: memory holds groups and
// a few nodes, however long traces are.
//
//===----------------------------------------------------------------------===//
#include "stage/Trace/Merge.h"
#include "Attributes.h"
#include "FaultReporter.h"
#include "Framing.h"
#include "NodeTable.h"
#include "stage/CodeGen/OutputDirectory.h"
#include "stage/Support/Files.h"
#include "stage/Support/Limits.h"
#include "stage/Support/Ranges.h"
#include "stage/Trace/TraceFolder.h"
#include "stage/Trace/TraceReader.h"

using namespace stage;
using namespace stage::trace;
using ChakraProtoMsg::AttributeProto;
using llvm::StringRef;

namespace {

/// A job, and where its ranks go.
struct Job {
  TraceFolder folder;
  std::vector<uint32_t> ranks;
};

/// Places ranks and reports what cannot be placed.
class Placement {
public:
  Placement(std::vector<Job> &jobs, DiagnosticEngine &diags) : jobs(jobs), diags(diags) {}

  /// One job behind the other.
  bool placeInOrder() {
    int64_t next = 0;
    for (Job &job : jobs) {
      int64_t count = int64_t(job.folder.files.size());
      if (next + count > maxRanks) {
        diags.report(SMLoc(), diag::MergedRanks)
            << job.folder.path << "would have ranks above " + std::to_string(maxRanks - 1);
        return false;
      }
      for (int64_t i = 0; i < count; ++i)
        job.ranks.push_back(uint32_t(next++));
    }
    return true;
  }

  bool placeAsListed(llvm::ArrayRef<std::string> lists) {
    if (lists.size() != jobs.size()) {
      diags.report(SMLoc(), diag::MergedLists) << int64_t(lists.size()) << int64_t(jobs.size());
      return false;
    }
    bool good = true;
    for (auto [job, list] : llvm::zip(jobs, lists))
      good &= readList(job, list);
    return good && checkDisjoint();
  }

private:
  bool readList(Job &job, StringRef list) {
    std::vector<std::pair<int64_t, int64_t>> ranges;
    if (!parseRanges(list, ranges)) {
      diags.report(SMLoc(), diag::BadRanks) << list;
      return false;
    }
    // Counted before anything is stored: a range may be as long as a number can say.
    uint64_t count = 0, expected = job.folder.files.size();
    for (auto [first, last] : ranges) {
      if (last >= maxRanks) {
        diags.report(SMLoc(), diag::MergedRanks) << job.folder.path << "would have rank " + std::to_string(last);
        return false;
      }
      count += uint64_t(last - first) + 1;
    }
    if (count != expected) {
      diags.report(SMLoc(), diag::MergedRanks)
          << job.folder.path << "has " + std::to_string(expected) + ", but --ranks gives it " + std::to_string(count);
      return false;
    }
    for (auto [first, last] : ranges)
      for (int64_t rank = first; rank <= last; ++rank)
        job.ranks.push_back(uint32_t(rank));
    return true;
  }

  /// Each rank belongs to one job, and there is none between them that has nothing to do.
  bool checkDisjoint() {
    std::vector<std::pair<uint32_t, const Job *>> owners;
    for (const Job &job : jobs)
      for (uint32_t rank : job.ranks)
        owners.emplace_back(rank, &job);
    llvm::stable_sort(owners, llvm::less_first());
    for (size_t i = 0; i < owners.size(); ++i) {
      auto [rank, job] = owners[i];
      if (rank == i)
        continue;
      if (i && owners[i - 1].first == rank)
        diags.report(SMLoc(), diag::MergedRankTwice)
            << int64_t(rank) << owners[i - 1].second->folder.path << job->folder.path;
      else
        diags.report(SMLoc(), diag::MergedRankMissing) << int64_t(i) << int64_t(owners.back().first);
      return false;
    }
    return true;
  }

  std::vector<Job> &jobs;
  DiagnosticEngine &diags;
};

/// Copies jobs, one after the other.
class Merger {
public:
  Merger(OutputDirectory &output, const MergeOptions &options, FaultReporter &faults)
      : output(output), options(options), faults(faults) {}

  void add(const Job &merged) {
    job = &merged;
    numbers.clear();
    wholeGroup.reset();
    for (const auto &[number, members] : job->folder.groups)
      numbers[number] = addGroup(members);
    for (const auto &[rank, path] : job->folder.files)
      if (!copyFile(rank, path))
        return;
  }

  const CommGroups &getGroups() const { return groups; }

private:
  uint64_t addGroup(llvm::ArrayRef<uint32_t> members) {
    std::vector<uint32_t> &placed = groups[nextGroup];
    for (uint32_t member : members)
      placed.push_back(job->ranks[member]);
    return nextGroup++;
  }

  /// False where nothing more can be written.
  bool copyFile(uint32_t rank, StringRef path) {
    std::unique_ptr<TraceReader> reader = TraceReader::open(path, faults.getDiagnostics());
    ChakraProtoMsg::GlobalMetadata metadata;
    if (!reader || reader->readMetadata(metadata) != TraceReader::Status::Read)
      return true;
    std::string name = options.prefix + "." + std::to_string(job->ranks[rank]) + ".et";
    auto mode = OutputDirectory::WriteMode::Create;
    std::string bytes;
    auto flush = [&] {
      bool good = output.writeFile(name, StringRef(bytes), mode);
      mode = OutputDirectory::WriteMode::Append;
      bytes.clear();
      return good;
    };
    appendFramed(metadata, bytes);
    ChakraProtoMsg::Node node;
    while (reader->readNode(node) == TraceReader::Status::Read) {
      rename(rank, node);
      appendFramed(node, bytes);
      constexpr size_t chunk = 1 << 20;
      if (bytes.size() >= chunk && !flush())
        return false;
    }
    return flush();
  }

  void rename(uint32_t rank, ChakraProtoMsg::Node &node) {
    auto fault = [&](auto message, const auto &...arguments) {
      faults.report(message, "'" + job->folder.path + "', " + describeNode(rank, node.id(), node.name()), arguments...);
    };
    if (node.type() == ChakraProtoMsg::COMM_COLL_NODE)
      renameGroup(node, fault);
    else if (node.type() == ChakraProtoMsg::COMM_SEND_NODE)
      renamePeer(node, "comm_dst", fault);
    else if (node.type() == ChakraProtoMsg::COMM_RECV_NODE)
      renamePeer(node, "comm_src", fault);
  }

  template <typename Fault> void renamePeer(ChakraProtoMsg::Node &node, StringRef name, Fault fault) {
    for (AttributeProto &attribute : *node.mutable_attr()) {
      if (attribute.name() != name)
        continue;
      if (attribute.value_case() != AttributeProto::kInt32Val)
        return fault(diag::AttributeBadKind, name, getKindName(attribute.value_case()), "int32");
      if (attribute.int32_val() < 0 || size_t(attribute.int32_val()) >= job->ranks.size())
        return fault(diag::AttributeOutOfRange, name, attribute.int32_val(),
                     "at least 0 and below " + std::to_string(job->ranks.size()));
      return attribute.set_int32_val(int32_t(job->ranks[attribute.int32_val()]));
    }
    fault(diag::AttributeMissing, getNodeTypeName(node.type()), name);
  }

  template <typename Fault> void renameGroup(ChakraProtoMsg::Node &node, Fault fault) {
    AttributeProto *name = nullptr;
    for (AttributeProto &attribute : *node.mutable_attr())
      if (attribute.name() == "pg_name")
        name = &attribute;
    if (name && name->value_case() != AttributeProto::kStringVal)
      return fault(diag::AttributeBadKind, "pg_name", getKindName(name->value_case()), "string");
    std::optional<uint64_t> number = getGroup(node);
    if (!number)
      return fault(diag::GroupNotANumber, name->string_val());
    uint64_t merged;
    if (*number == 0) {
      const AttributeProto *dims = findAttribute(node, "involved_dim");
      if (dims && llvm::is_contained(dims->bool_list().values(), false))
        return fault(diag::MergedDimensions);
      if (!wholeGroup) {
        std::vector<uint32_t> all(job->ranks.size());
        for (uint32_t rank = 0; rank < all.size(); ++rank)
          all[rank] = rank;
        wholeGroup = addGroup(all);
      }
      merged = *wholeGroup;
    } else if (auto found = numbers.find(*number); found != numbers.end()) {
      merged = found->second;
    } else {
      return fault(diag::GroupUnknown, *number);
    }
    if (!name) {
      name = node.add_attr();
      name->set_name("pg_name");
    }
    name->set_string_val(std::to_string(merged));
    // Which dimensions of the network a group spans depends on where its ranks are.
    for (int i = node.attr_size(); i--;)
      if (node.attr(i).name() == "involved_dim")
        node.mutable_attr()->DeleteSubrange(i, 1);
  }

  OutputDirectory &output;
  const MergeOptions &options;
  FaultReporter &faults;
  CommGroups groups;
  uint64_t nextGroup = 1;

  // Of the job that is copied.
  const Job *job = nullptr;
  std::map<uint64_t, uint64_t> numbers;
  std::optional<uint64_t> wholeGroup;
};
} // namespace

/// Nothing after a report.
static std::optional<std::vector<Job>> loadJobs(llvm::ArrayRef<std::string> folders, const MergeOptions &options,
                                                DiagnosticEngine &diags) {
  std::vector<Job> jobs;
  for (const std::string &path : folders) {
    std::optional<TraceFolder> folder = TraceFolder::load(path, diags);
    if (!folder)
      continue;
    for (const auto &[rank, file] : folder->files)
      if (!checkKeepsInput(options.output, file, diags))
        return std::nullopt;
    if (folder->absent.empty())
      jobs.push_back({std::move(*folder), {}});
    else
      diags.report(SMLoc(), diag::MergedAbsent) << path << formatRanges(folder->absent);
  }
  Placement placement(jobs, diags);
  if (diags.hasErrors() || !(options.ranks.empty() ? placement.placeInOrder() : placement.placeAsListed(options.ranks)))
    return std::nullopt;
  return jobs;
}

bool stage::trace::mergeTraces(llvm::ArrayRef<std::string> folders, const MergeOptions &options,
                               DiagnosticEngine &diags) {
  std::optional<std::vector<Job>> jobs = loadJobs(folders, options, diags);
  if (!jobs)
    return false;
  auto output = OutputDirectory::create(options.output, {options.force}, diags);
  if (!output)
    return false;
  FaultReporter faults(diags, options.maxShown);
  Merger merger(*output, options, faults);
  for (const Job &job : *jobs)
    merger.add(job);
  faults.finish();
  if (faults.getNumErrors())
    return false;
  std::string text;
  llvm::raw_string_ostream stream(text);
  writeCommGroups(merger.getGroups(), stream);
  output->writeFile(commGroupFileName, stream.str());
  return output->commit();
}
