//===- TraceReader.cpp - the messages of one trace file -------------------===//
#include "stage/Trace/TraceReader.h"
#include "ByteSource.h"
#include "et_def.pb.h"
#include "stage/Trace/Diagnostics.h"

using namespace stage;
using namespace stage::trace;
using llvm::StringRef;

TraceReader::TraceReader(StringRef path, std::unique_ptr<ByteSource> source, DiagnosticEngine &diags)
    : path(path.str()), source(std::move(source)), diags(diags) {}

TraceReader::~TraceReader() = default;

std::unique_ptr<TraceReader> TraceReader::open(StringRef path, DiagnosticEngine &diags) {
  std::string error;
  std::unique_ptr<ByteSource> source = ByteSource::open(path, error);
  if (!source) {
    diags.report(SMLoc(), diag::CannotReadFile) << path << error;
    return nullptr;
  }
  return std::unique_ptr<TraceReader>(new TraceReader(path, std::move(source), diags));
}

TraceReader::Status TraceReader::fail(diag::Message<diag::Text, diag::Text> id, StringRef kind,
                                      const llvm::Twine &detail) {
  failed = true;
  std::string place = "'" + path + "', byte " + std::to_string(messageOffset) + ", ";
  place += kind == "node" ? "node number " + std::to_string(numNodes) : kind.str();
  diags.report(SMLoc(), id) << place << detail;
  return Status::Failed;
}

/// Parses without a word from the library itself on the standard error.
static bool parseQuietly(google::protobuf::MessageLite &message, llvm::ArrayRef<uint8_t> bytes) {
#if GOOGLE_PROTOBUF_VERSION < 4022000 // later ones log through Abseil
  google::protobuf::LogSilencer silencer;
#endif
  return message.ParseFromArray(bytes.data(), int(bytes.size()));
}

TraceReader::Status TraceReader::readMessage(google::protobuf::MessageLite &message, StringRef kind) {
  if (failed)
    return Status::Failed;
  messageOffset = source->getOffset();
  constexpr size_t maxVarint32 = 5;
  llvm::ArrayRef<uint8_t> bytes = source->peek(maxVarint32);
  if (bytes.empty() && source->getError().empty())
    return Status::End;
  // A file of zeros is no trace of as many nodes, but metadata may be empty.
  if (kind == "node" && bytes.size() && bytes[0] == 0)
    return fail(diag::TraceBadLength, kind, "a node of no bytes says nothing");

  uint64_t length = 0;
  size_t width = 0;
  bool complete = false;
  while (width < std::min(bytes.size(), maxVarint32) && !complete) {
    length |= uint64_t(bytes[width] & 0x7f) << (7 * width);
    complete = !(bytes[width++] & 0x80);
  }
  if (!complete) {
    if (!source->getError().empty())
      return fail(diag::TraceBadGzip, kind, source->getError());
    if (width == maxVarint32)
      return fail(diag::TraceBadLength, kind, "has more than 5 bytes");
    return fail(diag::TraceTruncated, kind, "the file ends within the message's length");
  }
  if (length > maxMessageBytes)
    return fail(diag::TraceBadLength, kind, llvm::Twine(length) + " bytes is too long to be true");
  source->skip(width);

  bytes = source->peek(length);
  if (bytes.size() < length) {
    if (!source->getError().empty())
      return fail(diag::TraceBadGzip, kind, source->getError());
    return fail(diag::TraceTruncated, kind,
                "the message has " + llvm::Twine(length) + " bytes, of which " + llvm::Twine(bytes.size()) +
                    " are there");
  }
  if (!parseQuietly(message, bytes.take_front(length)))
    return fail(diag::TraceMalformed, kind, llvm::Twine(length));
  source->skip(length);
  return Status::Read;
}

TraceReader::Status TraceReader::readMetadata(ChakraProtoMsg::GlobalMetadata &metadata) {
  Status status = readMessage(metadata, "global metadata");
  if (status != Status::End)
    return status;
  failed = true;
  diags.report(SMLoc(), diag::TraceEmpty) << path;
  return Status::Failed;
}

uint64_t TraceReader::getOffset() const { return source->getOffset(); }

void TraceReader::skipTo(uint64_t offset, uint64_t number) {
  source->skipTo(offset);
  numNodes = number;
}

TraceReader::Status TraceReader::readNode(ChakraProtoMsg::Node &node) {
  Status status = readMessage(node, "node");
  if (status == Status::Read)
    ++numNodes;
  return status;
}
