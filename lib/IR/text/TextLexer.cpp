//===- TextLexer.cpp - tokens of the IR text ------------------------------===//
#include "TextLexer.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

static bool isWordStart(char c) { return llvm::isAlpha(c) || c == '_' || c == '@'; }
static bool isWordChar(char c) { return isWordStart(c) || llvm::isDigit(c) || c == '.'; }

/// Length of the number at the start of `text`: digits, a fraction, an exponent.
static size_t getNumberLength(llvm::StringRef text) {
  auto skipDigits = [&](size_t i) {
    while (i < text.size() && llvm::isDigit(text[i]))
      ++i;
    return i;
  };
  size_t length = skipDigits(0);
  if (length + 1 < text.size() && text[length] == '.' && llvm::isDigit(text[length + 1]))
    length = skipDigits(length + 1);
  if (length < text.size() && (text[length] == 'e' || text[length] == 'E')) {
    size_t digits = length + 1;
    if (digits < text.size() && (text[digits] == '+' || text[digits] == '-'))
      ++digits;
    if (digits < text.size() && llvm::isDigit(text[digits]))
      length = skipDigits(digits);
  }
  return length;
}

Token TextLexer::next() {
  while (true) {
    while (position < buffer.size() && llvm::isSpace(buffer[position]))
      ++position;
    if (!buffer.substr(position).startswith("//"))
      break;
    position = std::min(buffer.find('\n', position), buffer.size());
  }
  llvm::StringRef rest = buffer.substr(position);
  auto token = [&](Token::Kind kind, size_t length) {
    position += length;
    return Token{kind, rest.take_front(length)};
  };
  if (rest.empty())
    return token(Token::End, 0);
  char c = rest.front();
  if (isWordStart(c))
    return token(Token::Identifier, rest.take_while(isWordChar).size());
  if (llvm::isDigit(c))
    return token(Token::Number, getNumberLength(rest));
  if (c == '%' && rest.size() > 1 && isWordChar(rest[1]))
    return token(Token::Value, 1 + rest.drop_front().take_while(isWordChar).size());
  if (c == '"') {
    for (size_t i = 1; i < rest.size() && rest[i] != '\n'; ++i) {
      if (rest[i] == '"')
        return token(Token::String, i + 1);
      if (rest[i] == '\\' && i + 1 < rest.size() && rest[i + 1] != '\n')
        ++i;
    }
    return token(Token::UnclosedString, std::min(rest.find('\n'), rest.size()));
  }
  for (llvm::StringRef symbol : {"...", "->", "==", "<=", "&&", "||"})
    if (rest.startswith(symbol))
      return token(Token::Punctuation, symbol.size());
  if (llvm::StringRef("(){}[],;:=+-*/%<!?").contains(c))
    return token(Token::Punctuation, 1);
  return token(Token::Unknown, 1);
}
