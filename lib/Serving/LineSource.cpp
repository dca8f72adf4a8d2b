//===- LineSource.cpp - the lines of a file, one at a time ----------------===//
#include "LineSource.h"
#include "stage/Support/Files.h"
#include <cerrno>
#include <cstring>
#include <system_error>
#include <unistd.h>

using namespace stage;
using namespace stage::serving;
using llvm::StringRef;

static std::string lastError() { return std::error_code(errno, std::generic_category()).message(); }

std::unique_ptr<LineSource> LineSource::open(StringRef path) {
  std::string error;
  int file = path == "-" ? STDIN_FILENO : openToRead(path, error);
  return std::make_unique<LineSource>(file, error);
}

LineSource::~LineSource() {
  if (file > STDERR_FILENO)
    ::close(file);
}

/// Reads a piece behind what is left. False at the end and after errors.
bool LineSource::readMore() {
  constexpr size_t piece = 1 << 16;
  if (begin) {
    std::memmove(window.data(), window.data() + begin, end - begin);
    end -= begin;
    begin = 0;
  }
  if (window.size() < end + piece)
    window.resize(std::max(2 * window.size(), end + piece));
  ssize_t count;
  do
    count = ::read(file, window.data() + end, window.size() - end);
  while (count < 0 && errno == EINTR);
  if (count < 0)
    error = lastError();
  ended |= count <= 0;
  end += size_t(std::max<ssize_t>(count, 0));
  return count > 0;
}

bool LineSource::next(StringRef &line) {
  line = "";
  if (tooLong || !error.empty())
    return false;
  for (size_t seen = 0;;) {
    StringRef rest(window.data() + begin, end - begin);
    size_t length = rest.find('\n', seen);
    if (std::min(length, rest.size()) > maxLine) {
      tooLong = true;
      length = maxLine;
    }
    if (length != StringRef::npos) {
      line = rest.substr(0, length);
      begin += tooLong ? length : length + 1;
      ++number;
      return true;
    }
    seen = rest.size();
    if (!ended && readMore())
      continue;
    if (!error.empty() || begin == end)
      return false;
    line = StringRef(window.data() + begin, end - begin); // the last line has no end
    begin = end;
    ++number;
    return true;
  }
}
