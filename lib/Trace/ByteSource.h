//===- ByteSource.h - the bytes of a trace file, plain or gzip -*- C++ -*-===//
//
// A window over a file that holds the message being read and some more: plain files are
// read piece by piece, gzip files inflated likewise. The window grows with the bytes
// that really arrive, so a hostile length costs nothing, and a file that is cut while it
// is read just ends early. (Of one that is mapped, the lost pages would end the process.)
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRACE_BYTESOURCE_H
#define STAGE_LIB_TRACE_BYTESOURCE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <memory>
#include <string>
#include <vector>

namespace stage::trace {

class ByteSource {
public:
  /// Null with a reason in `error`. Devices, which may have no end, are refused.
  static std::unique_ptr<ByteSource> open(llvm::StringRef path, std::string &error);
  virtual ~ByteSource() = default;

  /// The bytes from the current offset on: `count` or more of them, or fewer where the file ends.
  llvm::ArrayRef<uint8_t> peek(size_t count) {
    while (window.size() - begin < count && !ended)
      readMore();
    return llvm::makeArrayRef(window).drop_front(begin);
  }
  /// Moves on by bytes that were seen with peek().
  void skip(size_t count) {
    begin += count;
    offset += count;
  }
  /// Moves on to an offset that is not before the current one.
  virtual void skipTo(uint64_t target);
  /// Offset of peek() in the file, uncompressed.
  uint64_t getOffset() const { return offset; }
  /// Why the bytes ended early; empty where the file simply ends.
  llvm::StringRef getError() const { return error; }

protected:
  /// Drops what was skipped, adds some bytes to the window, or sets `ended`.
  virtual void readMore() = 0;
  /// Makes room in the window. Steps grow with it: a long message must not cost quadratic copies.
  llvm::MutableArrayRef<uint8_t> makeRoom();
  void fail(llvm::StringRef reason) {
    error = reason.str();
    ended = true;
  }

  std::vector<uint8_t> window;
  size_t begin = 0;
  uint64_t offset = 0;
  bool ended = false;
  std::string error;
};

} // namespace stage::trace

#endif // STAGE_LIB_TRACE_BYTESOURCE_H
