//===- TraceReader.h - the messages of one trace file ----------*- C++ -*-===//
//
//   auto reader = TraceReader::open(path, diags);
//   ChakraProtoMsg::GlobalMetadata metadata;
//   if (!reader || reader->readMetadata(metadata) != TraceReader::Status::Read) ...
//   ChakraProtoMsg::Node node;
//   while (reader->readNode(node) == TraceReader::Status::Read) ...
//   if (reader->hasFailed()) ...                    // reported, with byte offset and node number
//
// Any producer's file may come: gzip is inflated, and what is truncated, damaged or
// hostile ends in a report, never in a crash or in an allocation of the announced size.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TRACE_TRACEREADER_H
#define STAGE_TRACE_TRACEREADER_H

#include "stage/Support/Diagnostics.h"
#include <memory>
#include <string>

namespace ChakraProtoMsg {
class GlobalMetadata;
class Node;
} // namespace ChakraProtoMsg

namespace google::protobuf {
class MessageLite;
} // namespace google::protobuf

namespace stage::trace {

class ByteSource;

class TraceReader {
public:
  enum class Status { Read, End, Failed };

  /// A longer message is taken for damage: the largest real nodes have a few hundred kilobytes.
  static constexpr uint64_t maxMessageBytes = 1 << 28;

  /// Null after a report.
  static std::unique_ptr<TraceReader> open(llvm::StringRef path, DiagnosticEngine &diags);
  ~TraceReader();

  /// The first message of a file; an empty file is an error.
  Status readMetadata(ChakraProtoMsg::GlobalMetadata &metadata);
  /// The next node. One of no bytes is an error.
  Status readNode(ChakraProtoMsg::Node &node);
  /// Where the next message begins; and to go on at such a place, before which there are `number` nodes.
  uint64_t getOffset() const;
  void skipTo(uint64_t offset, uint64_t number);
  bool hasFailed() const { return failed; }

private:
  TraceReader(llvm::StringRef path, std::unique_ptr<ByteSource> source, DiagnosticEngine &diags);
  Status readMessage(google::protobuf::MessageLite &message, llvm::StringRef kind);
  Status fail(diag::Message<diag::Text, diag::Text> id, llvm::StringRef kind, const llvm::Twine &detail);

  std::string path;
  std::unique_ptr<ByteSource> source;
  DiagnosticEngine &diags;
  uint64_t messageOffset = 0;
  uint64_t numNodes = 0;
  bool failed = false;
};

} // namespace stage::trace

#endif // STAGE_TRACE_TRACEREADER_H
