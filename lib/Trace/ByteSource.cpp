//===- ByteSource.cpp - the bytes of a trace file, plain or gzip ----------===//
#include "ByteSource.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>
#include <vector>
#include <zlib.h>

using namespace stage;
using llvm::ArrayRef;
using llvm::StringRef;

namespace {
class PlainSource : public ByteSource {
public:
  explicit PlainSource(std::unique_ptr<llvm::MemoryBuffer> file) : file(std::move(file)) {}

  ArrayRef<uint8_t> peek(size_t) override { return llvm::arrayRefFromStringRef(file->getBuffer().substr(offset)); }
  void skip(size_t count) override { offset += count; }

private:
  std::unique_ptr<llvm::MemoryBuffer> file;
};

class GzipSource : public ByteSource {
public:
  explicit GzipSource(std::unique_ptr<llvm::MemoryBuffer> file) : file(std::move(file)) {
    StringRef bytes = this->file->getBuffer();
    stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(bytes.data()));
    unread = bytes.size();
    constexpr int largestWindow = 15;
    constexpr int gzipHeader = 16;
    if (inflateInit2(&stream, largestWindow + gzipHeader) != Z_OK) {
      error = "out of memory";
      ended = true;
    }
  }
  ~GzipSource() override { inflateEnd(&stream); }

  ArrayRef<uint8_t> peek(size_t count) override {
    while (window.size() - begin < count && !ended)
      inflateMore();
    return llvm::makeArrayRef(window).drop_front(begin);
  }
  void skip(size_t count) override {
    begin += count;
    offset += count;
  }

private:
  void inflateMore() {
    constexpr size_t step = 1 << 16;
    window.erase(window.begin(), window.begin() + begin);
    begin = 0;
    size_t old = window.size();
    // Steps grow with the window: a long message must not cost quadratic copies.
    window.resize(old + std::max(step, old));
    stream.next_out = window.data() + old;
    size_t room = window.size() - old;
    stream.avail_out = uInt(std::min<size_t>(room, 1 << 30));
    size_t offered = stream.avail_out;
    uInt in = uInt(std::min<size_t>(unread, 1 << 30));
    stream.avail_in = in;
    int status = inflate(&stream, Z_NO_FLUSH);
    unread -= in - stream.avail_in;
    window.resize(old + (offered - stream.avail_out));
    if (status == Z_STREAM_END) {
      // A gzip file may be several members, one after the other.
      if (unread == 0)
        ended = true;
      else if (inflateReset(&stream) != Z_OK)
        fail("cannot go on to the next member");
    } else if (status != Z_OK) {
      fail(stream.msg ? stream.msg : unread ? "damaged data" : "the data ends early");
    }
  }
  void fail(StringRef reason) {
    error = reason.str();
    ended = true;
  }

  std::unique_ptr<llvm::MemoryBuffer> file;
  z_stream stream = {};
  size_t unread = 0;
  std::vector<uint8_t> window;
  size_t begin = 0;
  bool ended = false;
};
} // namespace

std::unique_ptr<ByteSource> ByteSource::open(StringRef path, std::string &error) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file) {
    error = file.getError().message();
    return nullptr;
  }
  // No trace begins like this: the second byte would be a field that GlobalMetadata lacks, of the wrong kind.
  if ((*file)->getBuffer().startswith("\x1f\x8b"))
    return std::make_unique<GzipSource>(std::move(*file));
  return std::make_unique<PlainSource>(std::move(*file));
}
