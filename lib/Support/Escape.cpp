//===- Escape.cpp - text that a terminal does not obey --------------------===//
#include "stage/Support/Escape.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

using namespace stage;

/// How many bytes the control character at the beginning of a text has; 0 if there is none.
static size_t getControlLength(llvm::StringRef text) {
  auto byte = [&](size_t i) { return i < text.size() ? uint8_t(text[i]) : 0; };
  if (byte(0) < 0x20 || byte(0) == 0x7f)
    return 1;
  // U+0080 to U+009F: terminals take U+009B for ESC [.
  return byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0 ? 2 : 0;
}

std::string stage::escapeControls(llvm::StringRef text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    size_t length = getControlLength(text);
    for (char c : text.take_front(length)) {
      result += '\\';
      result += llvm::hexdigit(uint8_t(c) >> 4);
      result += llvm::hexdigit(c & 0xf);
    }
    if (!length)
      result += text[length++];
    text = text.drop_front(length);
  }
  return result;
}

std::string stage::maskControls(llvm::StringRef text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    size_t length = text[0] == '\t' ? 0 : getControlLength(text);
    result.append(length, '?');
    if (!length)
      result += text[length++];
    text = text.drop_front(length);
  }
  return result;
}

std::string stage::escapeXml(llvm::StringRef text) {
  std::string result;
  for (char c : llvm::json::fixUTF8(maskControls(text)))
    result += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return result;
}
