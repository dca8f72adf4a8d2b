//===- Diff.cpp - where do two sets of traces differ? ---------------------===//
#include "stage/Trace/Diff.h"
#include "ByteSource.h"
#include "et_def.pb.h"
#include "stage/Trace/TextForm.h"
#include "stage/Trace/TraceFolder.h"
#include "stage/Trace/TraceReader.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <google/protobuf/util/message_differencer.h>

using namespace stage;
using namespace stage::trace;
using google::protobuf::util::MessageDifferencer;
using llvm::StringRef;
using Status = TraceReader::Status;

namespace {
class Differ {
public:
  Differ(const DiffOptions &options, llvm::raw_ostream &out, DiagnosticEngine &diags)
      : options(options), out(out), diags(diags) {}

  /// Compares two files; `title` begins the lines about them. False after a report.
  bool compareFiles(StringRef title, StringRef first, StringRef second);
  bool compareFolders(const TraceFolder &first, const TraceFolder &second);
  uint64_t getNumDifferences() const { return numDifferences; }
  void finish() {
    if (numDifferences > options.maxShown)
      out << "and " << numDifferences - options.maxShown << " more\n";
  }

private:
  /// Counts a difference; whether it is to be shown.
  bool count() { return ++numDifferences <= options.maxShown; }
  void showNode(char sign, Status status, const ChakraProtoMsg::Node &node) {
    out << sign << ' ';
    if (status == Status::Read)
      printNode(node, out);
    else
      out << "(no more nodes)";
    out << '\n';
  }

  const DiffOptions &options;
  llvm::raw_ostream &out;
  DiagnosticEngine &diags;
  uint64_t numDifferences = 0;
};
} // namespace

/// A short cut: most files of two runs are the same to the byte.
static bool haveSameBytes(StringRef first, StringRef second) {
  std::string error;
  std::unique_ptr<ByteSource> a = ByteSource::open(first, error), b = ByteSource::open(second, error);
  if (!a || !b)
    return false;
  while (true) {
    llvm::ArrayRef<uint8_t> left = a->peek(1), right = b->peek(1);
    size_t common = std::min(left.size(), right.size());
    if (left.take_front(common) != right.take_front(common))
      return false;
    if (!common)
      return left.size() == right.size() && a->getError().empty() && b->getError().empty();
    a->skip(common);
    b->skip(common);
  }
}

bool Differ::compareFiles(StringRef title, StringRef first, StringRef second) {
  if (haveSameBytes(first, second))
    return true;
  std::unique_ptr<TraceReader> a = TraceReader::open(first, diags);
  std::unique_ptr<TraceReader> b = TraceReader::open(second, diags);
  ChakraProtoMsg::GlobalMetadata aMetadata, bMetadata;
  if (!a || !b || a->readMetadata(aMetadata) != Status::Read || b->readMetadata(bMetadata) != Status::Read)
    return false;
  if (!MessageDifferencer::Equals(aMetadata, bMetadata)) {
    if (count())
      out << title << "global metadata differs\n- " << aMetadata.ShortDebugString() << "\n+ "
          << bMetadata.ShortDebugString() << '\n';
    return true;
  }
  ChakraProtoMsg::Node aNode, bNode;
  for (uint64_t number = 0;; ++number) {
    Status aStatus = a->readNode(aNode);
    Status bStatus = b->readNode(bNode);
    if (aStatus == Status::Failed || bStatus == Status::Failed)
      return false;
    if (aStatus == Status::End && bStatus == Status::End)
      return true;
    if (options.ignoreNames) {
      aNode.clear_name();
      bNode.clear_name();
    }
    if (aStatus == bStatus && MessageDifferencer::Equals(aNode, bNode))
      continue;
    if (count()) {
      out << title << "node number " << number << " differs\n";
      showNode('-', aStatus, aNode);
      showNode('+', bStatus, bNode);
    }
    return true;
  }
}

bool Differ::compareFolders(const TraceFolder &first, const TraceFolder &second) {
  if (first.groups != second.groups && count())
    out << commGroupFileName << " differs\n";
  bool good = true;
  for (const auto &[rank, path] : first.files) {
    auto other = second.files.find(rank);
    std::string title = "rank " + std::to_string(rank) + ": ";
    if (other != second.files.end())
      good &= compareFiles(title, path, other->second);
    else if (count())
      out << title << "only in " << first.path << '\n';
  }
  for (const auto &[rank, path] : second.files)
    if (!first.files.count(rank) && count())
      out << "rank " << rank << ": only in " << second.path << '\n';
  return good;
}

std::optional<bool> stage::trace::diffTraces(StringRef first, StringRef second, const DiffOptions &options,
                                             llvm::raw_ostream &out, DiagnosticEngine &diags) {
  Differ differ(options, out, diags);
  bool good;
  if (llvm::sys::fs::is_directory(first) && llvm::sys::fs::is_directory(second)) {
    std::optional<TraceFolder> a = TraceFolder::load(first, diags);
    std::optional<TraceFolder> b = TraceFolder::load(second, diags);
    good = a && b && differ.compareFolders(*a, *b);
  } else {
    good = differ.compareFiles("", first, second);
  }
  differ.finish();
  if (!good)
    return std::nullopt;
  return differ.getNumDifferences() == 0;
}
