//===- ByteSource.cpp - the bytes of a trace file, plain or gzip ----------===//
#include "ByteSource.h"
#include "stage/Support/Files.h"
#include <algorithm>
#include <cerrno>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <zlib.h>

using namespace stage;
using namespace stage::trace;
using llvm::ArrayRef;
using llvm::StringRef;

static std::string lastError() { return std::error_code(errno, std::generic_category()).message(); }

llvm::MutableArrayRef<uint8_t> ByteSource::makeRoom() {
  constexpr size_t step = 1 << 18;
  window.erase(window.begin(), window.begin() + begin);
  begin = 0;
  size_t old = window.size();
  window.resize(old + std::max(step, old));
  return llvm::makeMutableArrayRef(window.data() + old, window.size() - old);
}

void ByteSource::skipTo(uint64_t target) {
  while (offset < target) {
    ArrayRef<uint8_t> bytes = peek(1);
    if (bytes.empty())
      return;
    skip(std::min<uint64_t>(bytes.size(), target - offset));
  }
}

namespace {
class PlainSource : public ByteSource {
public:
  explicit PlainSource(int file) : file(file) {}
  ~PlainSource() override { ::close(file); }

  void skipTo(uint64_t target) override {
    // A pipe cannot be sought in.
    if (target - offset <= window.size() - begin || lseek(file, off_t(target), SEEK_SET) < 0)
      return ByteSource::skipTo(target);
    window.clear();
    begin = 0;
    offset = target;
  }

private:
  void readMore() override {
    llvm::MutableArrayRef<uint8_t> room = makeRoom();
    ssize_t count;
    do
      count = ::read(file, room.data(), room.size());
    while (count < 0 && errno == EINTR);
    if (count < 0)
      fail(lastError());
    ended |= count == 0;
    window.resize(window.size() - room.size() + std::max<ssize_t>(count, 0));
  }

  int file;
};

class GzipSource : public ByteSource {
public:
  explicit GzipSource(std::unique_ptr<ByteSource> file) : file(std::move(file)) {
    constexpr int largestWindow = 15;
    constexpr int gzipHeader = 16;
    if (inflateInit2(&stream, largestWindow + gzipHeader) != Z_OK)
      fail("out of memory");
  }
  ~GzipSource() override { inflateEnd(&stream); }

private:
  void readMore() override {
    ArrayRef<uint8_t> packed = file->peek(1);
    llvm::MutableArrayRef<uint8_t> room = makeRoom();
    stream.next_out = room.data();
    size_t offered = std::min<size_t>(room.size(), 1 << 30);
    stream.avail_out = uInt(offered);
    uInt in = uInt(std::min<size_t>(packed.size(), 1 << 30));
    stream.next_in = const_cast<Bytef *>(packed.data());
    stream.avail_in = in;
    int status = inflate(&stream, Z_NO_FLUSH);
    file->skip(in - stream.avail_in);
    window.resize(window.size() - room.size() + (offered - stream.avail_out));
    if (status == Z_STREAM_END) {
      // A gzip file may be several members, one after the other.
      if (file->peek(1).empty())
        ended = true;
      else if (inflateReset(&stream) != Z_OK)
        fail("cannot go on to the next member");
    } else if (status != Z_OK) {
      fail(stream.msg ? stream.msg : !packed.empty() ? "damaged data" : "the data ends early");
    }
  }

  std::unique_ptr<ByteSource> file;
  z_stream stream = {};
};
} // namespace

std::unique_ptr<ByteSource> ByteSource::open(StringRef path, std::string &error) {
  int file = openToRead(path, error);
  if (file < 0)
    return nullptr;
  auto plain = std::make_unique<PlainSource>(file);
  struct stat status = {};
  if (fstat(file, &status) != 0) {
    error = lastError();
    return nullptr;
  }
  if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) {
    error = "it is a device, not a file";
    return nullptr;
  }
  ArrayRef<uint8_t> head = plain->peek(2);
  if (!plain->getError().empty()) {
    error = plain->getError().str();
    return nullptr;
  }
  // No trace begins like this: the second byte would be a field that GlobalMetadata lacks, of the wrong kind.
  if (head.size() >= 2 && head[0] == 0x1f && head[1] == 0x8b)
    return std::make_unique<GzipSource>(std::move(plain));
  return plain;
}
