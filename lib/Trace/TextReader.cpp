//===- TextReader.cpp - traces from text ----------------------------------===//
//
// Reads what TextWriter prints. Nothing but the syntax is checked, so that tests can
// say wrong things: two nodes of one id, a dependency on nothing, a missing rank.
//
// A line is read as a whole; after an error the rest of it is left out.
//
//===----------------------------------------------------------------------===//
#include "Attributes.h"
#include "Framing.h"
#include "stage/CodeGen/OutputDirectory.h"
#include "stage/Tasks/CommGroups.h"
#include "stage/Trace/Diagnostics.h"
#include "stage/Trace/TextForm.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <charconv>
#include <cstring>
#include <map>
#include <type_traits>

using namespace stage;
using namespace stage::trace;
using ChakraProtoMsg::AttributeProto;
using llvm::StringRef;

namespace {
enum class TokenKind { Word, String, Punctuation, LineEnd, FileEnd };

struct Token {
  TokenKind kind = TokenKind::LineEnd;
  /// As in the file, with the quotes of a string.
  StringRef spelling;
  /// A string's value.
  std::string value;
};

class TextReader {
public:
  TextReader(StringRef text, DiagnosticEngine &diags) : rest(text), diags(diags) { next(); }

  /// False after a report.
  bool read() {
    while (token.kind != TokenKind::FileEnd) {
      if (token.kind != TokenKind::LineEnd && readLine() && token.kind != TokenKind::LineEnd &&
          token.kind != TokenKind::FileEnd)
        expected("the end of the line");
      while (token.kind != TokenKind::LineEnd && token.kind != TokenKind::FileEnd)
        next();
      if (token.kind == TokenKind::LineEnd)
        next();
    }
    return good;
  }

  CommGroups groups;
  /// The bytes of each rank's file.
  std::map<uint32_t, std::string> files;

private:
  void next();
  bool readLine();
  bool readGroup();
  bool readRank();
  bool readNode();
  bool readNodeField(ChakraProtoMsg::Node &node);
  bool readTensors(ChakraProtoMsg::IOInfo &tensors);
  /// `getExpected`: the kind of a name that says none.
  bool readAttribute(AttributeProto &attribute, std::optional<ValueCase> (*getExpected)(StringRef));
  bool readAttributeValue(AttributeProto &attribute, ValueCase kind);

  /// Reads `[x, y, ...]`.
  template <typename Reader> bool readList(Reader readElement);
  bool readValue(std::string &value);
  bool readValue(bool &value);
  template <typename Number> bool readValue(Number &value);

  bool isPunctuation(char c) const { return token.kind == TokenKind::Punctuation && token.spelling[0] == c; }
  bool isWord(StringRef word) const { return token.kind == TokenKind::Word && token.spelling == word; }
  bool eat(char c) {
    if (!isPunctuation(c))
      return expected(llvm::Twine("'") + llvm::Twine(c) + "'");
    next();
    return true;
  }
  bool expected(const llvm::Twine &what) {
    good = false;
    std::string found = token.kind == TokenKind::LineEnd   ? "the end of the line"
                        : token.kind == TokenKind::FileEnd ? "the end of the file"
                                                           : "'" + token.spelling.str() + "'";
    diags.report(SMLoc::getFromPointer(token.spelling.data()), diag::TextUnexpected) << what << found;
    return false;
  }

  StringRef rest;
  Token token;
  DiagnosticEngine &diags;
  std::string *current = nullptr;
  bool mayBeBytes = false; ///< The strings that are read.
  bool good = true;
};
} // namespace

void TextReader::next() {
  rest = rest.ltrim(" \t\r");
  if (rest.startswith("//"))
    rest = rest.drop_front(std::min(rest.find('\n'), rest.size()));
  token.value.clear();
  size_t length = 1;
  if (rest.empty()) {
    token.kind = TokenKind::FileEnd;
    length = 0;
  } else if (rest[0] == '\n') {
    token.kind = TokenKind::LineEnd;
  } else if (rest[0] == '"') {
    token.kind = TokenKind::String;
    while (length < rest.size() && rest[length] != '"' && rest[length] != '\n') {
      // printEscapedString writes `\\` and `\XX` in hexadecimal.
      if (rest[length] == '\\' && rest.substr(length + 1, 1) == "\\") {
        token.value += '\\';
        length += 2;
      } else if (rest[length] == '\\' && length + 2 < rest.size() && llvm::isHexDigit(rest[length + 1]) &&
                 llvm::isHexDigit(rest[length + 2])) {
        token.value += char(llvm::hexFromNibbles(rest[length + 1], rest[length + 2]));
        length += 3;
      } else {
        token.value += rest[length++];
      }
    }
    if (length >= rest.size() || rest[length] != '"') {
      token.spelling = rest.take_front(1);
      expected("a string that ends on its line");
    } else {
      ++length;
    }
  } else if (llvm::isAlnum(rest[0]) || rest[0] == '_' || rest[0] == '-' || rest[0] == '+' || rest[0] == '.') {
    token.kind = TokenKind::Word;
    length = rest.find_if_not([](char c) { return llvm::isAlnum(c) || c == '_' || c == '-' || c == '+' || c == '.'; });
    length = std::min(length, rest.size());
  } else {
    token.kind = TokenKind::Punctuation;
  }
  token.spelling = rest.take_front(length);
  rest = rest.drop_front(length);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

bool TextReader::readValue(std::string &value) {
  if (token.kind != TokenKind::String)
    return expected("a string in quotes");
  // The schema's strings are UTF-8; files with others could not be read.
  if (!mayBeBytes && !llvm::json::isUTF8(token.value))
    return expected("text in UTF-8");
  value = token.value;
  next();
  return true;
}

bool TextReader::readValue(bool &value) {
  if (!isWord("true") && !isWord("false"))
    return expected("true or false");
  value = token.spelling == "true";
  next();
  return true;
}

template <typename Number> bool TextReader::readValue(Number &value) {
  const char *end = token.spelling.end();
  if (token.kind != TokenKind::Word)
    return expected("a number");
  if constexpr (std::is_floating_point_v<Number>) {
    // The bits of what is no number.
    std::conditional_t<sizeof(Number) == 8, uint64_t, uint32_t> bits;
    StringRef digits = token.spelling;
    if (digits.consume_front("0x")) {
      if (digits.getAsInteger(16, bits))
        return expected("the bits of a number");
      std::memcpy(&value, &bits, sizeof(bits));
      next();
      return true;
    }
  }
  auto [stop, error] = std::from_chars(token.spelling.begin(), end, value);
  if (error == std::errc::result_out_of_range)
    return expected("a number that its kind can hold");
  if (error != std::errc() || stop != end)
    return expected(std::is_floating_point_v<Number> ? "a number" : "an integer of its kind");
  next();
  return true;
}

template <typename Reader> bool TextReader::readList(Reader readElement) {
  if (!eat('['))
    return false;
  while (!isPunctuation(']')) {
    if (!readElement())
      return false;
    if (!isPunctuation(']') && !eat(','))
      return false;
  }
  next();
  return true;
}

bool TextReader::readAttributeValue(AttributeProto &attribute, ValueCase kind) {
  if (attribute.name() == "comm_type" && kind == AttributeProto::kInt64Val && token.kind == TokenKind::Word) {
    if (std::optional<int64_t> type = parseCommTypeName(token.spelling)) {
      attribute.set_int64_val(*type);
      next();
      return true;
    }
  }
  mayBeBytes = kind == AttributeProto::kBytesVal || kind == AttributeProto::kBytesList;
  auto reset = llvm::make_scope_exit([&] { mayBeBytes = false; });
  switch (kind) {
#define KIND(name, Name, type)                                                                                         \
  case AttributeProto::k##Name##Val: {                                                                                 \
    type value{};                                                                                                      \
    if (!readValue(value))                                                                                             \
      return false;                                                                                                    \
    attribute.set_##name##_val(value);                                                                                 \
    return true;                                                                                                       \
  }                                                                                                                    \
  case AttributeProto::k##Name##List: {                                                                                \
    auto *values = attribute.mutable_##name##_list()->mutable_values();                                                \
    return readList([&] {                                                                                              \
      type value{};                                                                                                    \
      if (!readValue(value))                                                                                           \
        return false;                                                                                                  \
      values->Add(std::move(value));                                                                                   \
      return true;                                                                                                     \
    });                                                                                                                \
  }
    STAGE_FOR_EACH_VALUE_KIND(KIND)
#undef KIND
  case AttributeProto::VALUE_NOT_SET:
    break;
  }
  return true;
}

bool TextReader::readAttribute(AttributeProto &attribute, std::optional<ValueCase> (*getExpected)(StringRef)) {
  Token nameToken = token;
  if (token.kind == TokenKind::String) {
    if (!readValue(*attribute.mutable_name()))
      return false;
  } else if (token.kind == TokenKind::Word) {
    attribute.set_name(token.spelling.str());
    next();
  } else {
    return expected("an attribute");
  }
  std::optional<ValueCase> kind = getExpected(attribute.name());
  if (isPunctuation(':')) {
    next();
    kind = token.kind == TokenKind::Word ? parseKindName(token.spelling) : std::nullopt;
    if (!kind)
      return expected("a kind of value such as int64, string or bool_list");
    next();
  } else if (!kind) {
    good = false;
    diags.report(SMLoc::getFromPointer(nameToken.spelling.data()), diag::TextUnknownAttribute) << attribute.name();
    return false;
  }
  if (*kind != AttributeProto::VALUE_NOT_SET && (!eat('=') || !readAttributeValue(attribute, *kind)))
    return false;
  if (!isWord("doc"))
    return true;
  next();
  return eat('=') && readValue(*attribute.mutable_doc_string());
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

bool TextReader::readLine() {
  if (isWord("group"))
    return readGroup();
  if (isWord("rank"))
    return readRank();
  if (token.kind == TokenKind::Word && llvm::isDigit(token.spelling[0]))
    return readNode();
  return expected("'group', 'rank' or a node's id");
}

bool TextReader::readGroup() {
  next();
  uint64_t number;
  Token numberToken = token;
  if (!readValue(number) || !eat('='))
    return false;
  auto [group, isNew] = groups.try_emplace(number);
  if (!isNew) {
    good = false;
    diags.report(SMLoc::getFromPointer(numberToken.spelling.data()), diag::TextGroupTwice) << number;
    return false;
  }
  std::vector<uint32_t> &ranks = group->second;
  return readList([&] {
    uint32_t rank;
    if (!readValue(rank))
      return false;
    ranks.push_back(rank);
    return true;
  });
}

bool TextReader::readRank() {
  next();
  uint32_t rank;
  Token rankToken = token;
  if (!readValue(rank))
    return false;
  auto [file, isNew] = files.try_emplace(rank);
  current = &file->second;
  if (!isNew) {
    good = false;
    diags.report(SMLoc::getFromPointer(rankToken.spelling.data()), diag::TextRankTwice) << int64_t(rank);
    return false;
  }
  ChakraProtoMsg::GlobalMetadata metadata;
  while (token.kind != TokenKind::LineEnd && token.kind != TokenKind::FileEnd) {
    if (isWord("version")) {
      next();
      if (!eat('=') || !readValue(*metadata.mutable_version()))
        return false;
    } else if (!readAttribute(*metadata.add_attr(), getExpectedMetadataKind)) {
      return false;
    }
  }
  appendFramed(metadata, *current);
  return true;
}

bool TextReader::readTensors(ChakraProtoMsg::IOInfo &tensors) {
  return eat('[') && readValue(*tensors.mutable_values()) && eat(',') && readValue(*tensors.mutable_shapes()) &&
         eat(',') && readValue(*tensors.mutable_types()) && eat(']');
}

bool TextReader::readNodeField(ChakraProtoMsg::Node &node) {
  auto readDeps = [&](auto &deps) {
    return readList([&] {
      uint64_t id;
      if (!readValue(id))
        return false;
      deps.Add(id);
      return true;
    });
  };
  StringRef field = token.kind == TokenKind::Word ? token.spelling : StringRef();
  auto begin = [&] {
    next();
    return eat('=');
  };
  uint64_t micros;
  if (field == "ctrl")
    return begin() && readDeps(*node.mutable_ctrl_deps());
  if (field == "data")
    return begin() && readDeps(*node.mutable_data_deps());
  if (field == "io_inputs")
    return begin() && readTensors(*node.mutable_inputs());
  if (field == "io_outputs")
    return begin() && readTensors(*node.mutable_outputs());
  if (field == "start") {
    if (!begin() || !readValue(micros))
      return false;
    node.set_start_time_micros(micros);
    return true;
  }
  if (field == "duration") {
    if (!begin() || !readValue(micros))
      return false;
    node.set_duration_micros(micros);
    return true;
  }
  return readAttribute(*node.add_attr(), getExpectedKind);
}

bool TextReader::readNode() {
  if (!current)
    return expected("'rank' before the first node");
  ChakraProtoMsg::Node node;
  uint64_t id;
  if (!readValue(id))
    return false;
  node.set_id(id);
  std::optional<int> type = token.kind == TokenKind::Word ? parseNodeTypeName(token.spelling) : std::nullopt;
  if (type) {
    next();
  } else {
    int number;
    if (token.kind != TokenKind::Word || !llvm::isDigit(token.spelling.back()) || llvm::isAlpha(token.spelling[0]))
      return expected("a type such as COMP or COMM_COLL");
    if (!readValue(number))
      return false;
    type = number;
  }
  node.set_type(static_cast<ChakraProtoMsg::NodeType>(*type));
  if (token.kind == TokenKind::String && !readValue(*node.mutable_name()))
    return false;
  while (token.kind != TokenKind::LineEnd && token.kind != TokenKind::FileEnd)
    if (!readNodeField(node))
      return false;
  // Protobuf leaves zeros away, and nothing at all would be no node: the one that has only zeros says its id.
  static constexpr char idIsZero[] = {2, ChakraProtoMsg::Node::kIdFieldNumber << 3, 0};
  if (node.ByteSizeLong() == 0)
    current->append(idIsZero, sizeof(idIsZero));
  else
    appendFramed(node, *current);
  return true;
}

bool stage::trace::assembleTraces(unsigned bufferId, const AssembleOptions &options, DiagnosticEngine &diags) {
  TextReader reader(diags.getSources().getMemoryBuffer(bufferId)->getBuffer(), diags);
  if (!reader.read())
    return false;
  if (reader.files.empty()) {
    diags.report(SMLoc::getFromPointer(diags.getSources().getMemoryBuffer(bufferId)->getBufferEnd()),
                 diag::TextWithoutRank);
    return false;
  }
  auto output = OutputDirectory::create(options.output, {options.force}, diags);
  if (!output)
    return false;
  std::string text;
  llvm::raw_string_ostream stream(text);
  writeCommGroups(reader.groups, stream);
  output->writeFile(commGroupFileName, stream.str());
  for (const auto &[rank, bytes] : reader.files)
    output->writeFile(options.prefix + "." + std::to_string(rank) + ".et", StringRef(bytes));
  return output->commit();
}
