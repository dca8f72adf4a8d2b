//===- TreeBytes.cpp - a syntax tree as bytes -----------------------------===//
//
// Problem: to parse the library takes most of the time of a small job, and gives the same trees each time. A tree that
// is to be kept in a file needs a form without addresses.
//
//   x + 1      BinaryExpr, 1, 6, Add, 3, NameExpr, 1, 2, "x", NumberExpr, 5, 6, "1", 1/1, ...
//
// Algorithm: the fields of each struct in the order of its AST_FIELDS. A place is the number of its byte in the text,
// counted from 1, and 0 for none; a list or a name is its length and its items; a node is its kind, counted from 1, its
// range and its fields, and 0 for none. Numbers of variable length (LEB128) hold places, lengths and kinds; other
// values are copied as memory has them. Names that are read point into one copy of all bytes.
//
// Limits: only the compiler that wrote the bytes can read them, because they follow its structs. Bytes that were cut or
// changed give null or another tree, and never a read beyond their end. Values of enums and the depth of the tree are
// not checked: the cache has a checksum for that.
//
//===----------------------------------------------------------------------===//
#include "stage/AST/TreeBytes.h"
#include "llvm/ADT/SmallVector.h"
#include <cstring>

using namespace stage;
using namespace stage::ast;

/// Whether a value may be copied as memory has it.
template <typename T>
constexpr bool isPlain =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, Rational> || std::is_same_v<T, Dimension>;

namespace {

class TreeWriter {
public:
  explicit TreeWriter(StringRef text) : text(text) {}

  template <typename T> void write(ArrayRef<T> list) {
    writeNumber(list.size());
    for (const T &item : list)
      write(item);
  }
  template <typename T> void write(T *node) {
    writeNumber(node ? uint64_t(node->kind) + 1 : 0);
    if (node)
      visitNode(*node, [&](const auto &own) {
        write(own.range);
        writeFields(own);
      });
  }
  template <typename T> void write(const T &value) {
    if constexpr (isPlain<T>)
      bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
    else
      writeFields(value);
  }
  void write(StringRef name) {
    writeNumber(name.size());
    bytes += name;
  }
  void write(SMLoc place) { writeNumber(place.isValid() ? place.getPointer() - text.begin() + 1 : 0); }
  void write(SMRange range) {
    write(range.Start);
    write(range.End);
  }

  std::string bytes;

private:
  void writeNumber(uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      bytes += char(value | 0x80);
    bytes += char(value);
  }
  template <typename T> void writeFields(const T &value) {
    std::apply([&](const auto &...field) { (write(field), ...); }, value.fields());
  }

  StringRef text;
};

class TreeReader {
public:
  TreeReader(ASTContext &context, StringRef bytes, StringRef text) : context(context), rest(bytes), text(text) {}

  /// Whether all bytes were read, and were those of a tree.
  bool isDone() const { return !failed && rest.empty(); }

  template <typename T> void read(ArrayRef<T> &list) {
    llvm::SmallVector<T, 8> items(readLength());
    for (T &item : items)
      read(item);
    list = context.copy(ArrayRef<T>(items));
  }
  template <typename T> void read(T *&node) {
    switch (uint64_t kind = readNumber(); NodeKind(kind - 1)) {
#define AST_NODE(KIND, category)                                                                                       \
  case NodeKind::KIND:                                                                                                 \
    if constexpr (std::is_base_of_v<T, KIND>)                                                                          \
      node = readNode<KIND>();                                                                                         \
    else                                                                                                               \
      failed = true;                                                                                                   \
    return;
#include "stage/AST/Nodes.def"
    default:
      node = nullptr;
      failed |= kind != 0;
    }
  }
  template <typename T> void read(T &value) {
    if constexpr (std::is_same_v<T, bool>)
      value = readNumber() != 0;
    else if constexpr (isPlain<T>)
      std::memcpy(&value, take(sizeof value).data(), sizeof value);
    else
      readFields(value);
  }
  void read(StringRef &name) { name = take(readLength()); }
  void read(SMLoc &place) {
    uint64_t number = readNumber();
    failed |= number > text.size() + 1;
    place = number == 0 || failed ? SMLoc() : SMLoc::getFromPointer(text.begin() + number - 1);
  }
  void read(SMRange &range) {
    SMLoc begin, end;
    read(begin);
    read(end);
    failed |= begin.isValid() != end.isValid();
    if (!failed)
      range = SMRange(begin, end);
  }

private:
  template <typename T> T *readNode() {
    T node{};
    node.kind = T::ownKind;
    read(node.range);
    readFields(node);
    return context.create(node);
  }
  template <typename T> void readFields(T &value) {
    std::apply([&](auto &...field) { (read(field), ...); }, value.fields());
  }

  uint64_t readNumber() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
      uint8_t byte = rest.front();
      rest = rest.drop_front();
      value |= uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80)
        return value;
    }
    failed = true;
    rest = StringRef();
    return 0;
  }
  /// Of a list or a name: no more than bytes are left, as each item has one at least.
  size_t readLength() {
    uint64_t length = readNumber();
    failed |= length > rest.size();
    return failed ? 0 : length;
  }
  /// The next bytes; zeros if there are not so many.
  StringRef take(size_t count) {
    static constexpr char zeros[sizeof(Rational)] = {};
    if (rest.size() < count) {
      failed = true;
      return StringRef(zeros, count);
    }
    StringRef taken = rest.take_front(count);
    rest = rest.drop_front(count);
    return taken;
  }

  ASTContext &context;
  StringRef rest, text;
  bool failed = false;
};

} // namespace

std::string ast::writeTree(const File &file, StringRef text) {
  TreeWriter writer(text);
  writer.write(file);
  return std::move(writer.bytes);
}

File *ast::readTree(ASTContext &context, StringRef bytes, StringRef text) {
  TreeReader reader(context, context.copy(bytes), text);
  File file{};
  reader.read(file);
  return reader.isDone() ? context.create(file) : nullptr;
}
