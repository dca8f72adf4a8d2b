//===- TextLexer.h - tokens of the IR text ---------------------*- C++ -*-===//
//
// Identifiers may contain dots (`layers.attn`, `linear.1`) and `@`; values begin
// with `%`; `//` begins a comment. The text of a token is a piece of the buffer, so
// a token is also its location, and sizes are cut out of the buffer as they stand.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_IR_TEXTLEXER_H
#define STAGE_LIB_IR_TEXTLEXER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/SMLoc.h"

namespace stage {

struct Token {
  enum Kind { End, Identifier, Value, Number, String, Punctuation, UnclosedString, Unknown };
  Kind kind = End;
  /// As it stands in the buffer, with the `%` of a value and the quotes of a string.
  llvm::StringRef text;

  llvm::SMLoc getLoc() const { return llvm::SMLoc::getFromPointer(text.data()); }
  /// Is it this word or punctuation? Never true of a string.
  bool is(llvm::StringRef expected) const { return (kind == Identifier || kind == Punctuation) && text == expected; }
};

class TextLexer {
public:
  explicit TextLexer(llvm::StringRef buffer) : buffer(buffer) {}
  Token next();
  /// Goes back to (or ahead to) a token: next() returns it.
  void rewind(const Token &token) { position = token.text.data() - buffer.data(); }
  llvm::StringRef getBuffer() const { return buffer; }

private:
  llvm::StringRef buffer;
  size_t position = 0;
};

} // namespace stage

#endif // STAGE_LIB_IR_TEXTLEXER_H
