//===- ByteSource.h - the bytes of a trace file, plain or gzip -*- C++ -*-===//
//
// A window over a file that never holds more than the message being read: plain files
// are mapped, gzip files are inflated piece by piece. The window grows with the bytes
// that really arrive, so a hostile length costs nothing.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRACE_BYTESOURCE_H
#define STAGE_LIB_TRACE_BYTESOURCE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <memory>
#include <string>

namespace stage {

class ByteSource {
public:
  /// Null with a reason in `error`.
  static std::unique_ptr<ByteSource> open(llvm::StringRef path, std::string &error);
  virtual ~ByteSource() = default;

  /// The bytes from the current offset on: `count` or more of them, or fewer where the file ends.
  virtual llvm::ArrayRef<uint8_t> peek(size_t count) = 0;
  /// Moves on by bytes that were seen with peek().
  virtual void skip(size_t count) = 0;
  /// Offset of peek() in the file, uncompressed.
  uint64_t getOffset() const { return offset; }
  /// Why the bytes ended early; empty where the file simply ends.
  llvm::StringRef getError() const { return error; }

protected:
  uint64_t offset = 0;
  std::string error;
};

} // namespace stage

#endif // STAGE_LIB_TRACE_BYTESOURCE_H
