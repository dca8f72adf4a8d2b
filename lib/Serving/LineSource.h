//===- LineSource.h - the lines of a file, one at a time -------*- C++ -*-===//
#ifndef STAGE_LIB_SERVING_LINESOURCE_H
#define STAGE_LIB_SERVING_LINESOURCE_H

#include "llvm/ADT/StringRef.h"
#include <memory>
#include <string>
#include <vector>

namespace stage::serving {

/// Reads ahead by one piece, whatever the length of the file. A device may have no end, nor a line of it.
class LineSource {
public:
  /// Bytes that a line may have.
  static constexpr size_t maxLine = size_t(1) << 20;

  /// `-` is standard input. A file that cannot be opened has an error.
  static std::unique_ptr<LineSource> open(llvm::StringRef path);
  LineSource(int file, std::string error) : file(file), error(std::move(error)) {}
  LineSource(const LineSource &) = delete;
  ~LineSource();

  /// The next line, without its end; it is there until the next call. False at the end of the file, and after errors.
  bool next(llvm::StringRef &line);
  /// The number of the line that was read last, from 1.
  int64_t getNumber() const { return number; }
  /// The line has more than `maxLine` bytes. Only its beginning was given, and nothing comes after it.
  bool isTooLong() const { return tooLong; }
  /// Why nothing more is read; empty: nothing is wrong.
  const std::string &getError() const { return error; }

private:
  bool readMore();

  int file;
  std::string error;
  std::vector<char> window;
  size_t begin = 0, end = 0; ///< What of the window has not been given yet.
  int64_t number = 0;
  bool ended = false, tooLong = false;
};

} // namespace stage::serving

#endif // STAGE_LIB_SERVING_LINESOURCE_H
