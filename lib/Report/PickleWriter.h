//===- PickleWriter.h - values as Python's pickle ---------------*- C++ -*-===//
//
// Problem: PyTorch's memory viewer reads snapshots as pickles of dictionaries, lists, strings and numbers.
//
//   writer.beginDict(); writer.string("segments"); writer.beginList(); writer.endList(); writer.endDict();
//
// Rule: protocol 2, and of its opcodes those that the viewer's own reader has (`unpickle` of torch/utils/viz/
// MemoryViz.js): strings and remembered values are written once and then named by number. The reader passes the items
// that follow a mark as arguments of one call, so that lists are appended to by a thousand items at most.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_REPORT_PICKLEWRITER_H
#define STAGE_LIB_REPORT_PICKLEWRITER_H

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/EndianStream.h"
#include "llvm/Support/raw_ostream.h"

namespace stage {

class PickleWriter {
public:
  explicit PickleWriter(llvm::raw_ostream &out) : out(out) { out << "\x80\x02"; }
  void finish() { out << '.'; }

  void number(int64_t value) {
    if (value >= 0 && value < 256) {
      out << 'K' << char(value);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
      out << 'J';
      put(int32_t(value));
    } else {
      out << "\x8a\x08";
      put(value);
    }
  }
  void string(llvm::StringRef text) {
    auto [known, isNew] = strings.try_emplace(text, numRemembered);
    if (!isNew)
      return recall(known->second);
    out << 'X';
    put(uint32_t(text.size()));
    out << text;
    remember();
  }
  /// The value that was written last is known by the number that is returned.
  unsigned remember() {
    out << 'r';
    put(uint32_t(numRemembered));
    return numRemembered++;
  }
  void recall(unsigned number) {
    out << 'j';
    put(uint32_t(number));
  }

  /// Keys and values follow, one after the other.
  void beginDict() { out << "}("; }
  void endDict() { out << 'u'; }
  /// Items follow, each behind a call of `item`.
  void beginList() {
    out << "](";
    open.push_back(0);
  }
  void item() {
    constexpr unsigned maxItems = 1000;
    if (open.back()++ == maxItems) {
      out << "e(";
      open.back() = 1;
    }
  }
  void endList() {
    out << 'e';
    open.pop_back();
  }

private:
  template <typename Number> void put(Number value) {
    llvm::support::endian::write<Number>(out, value, llvm::support::little);
  }

  llvm::raw_ostream &out;
  llvm::StringMap<unsigned> strings;
  unsigned numRemembered = 0;
  std::vector<unsigned> open; ///< Items of each open list since its last mark.
};

} // namespace stage

#endif // STAGE_LIB_REPORT_PICKLEWRITER_H
