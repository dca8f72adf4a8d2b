//===- Highlight.h - programs in colours -----------------------*- C++ -*-===//
//
// For pages that show programs. Words are those of the grammar, so that no second list of them is kept.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_PARSE_HIGHLIGHT_H
#define STAGE_PARSE_HIGHLIGHT_H

#include "llvm/ADT/StringRef.h"
#include <vector>

namespace stage {

enum class TextKind { Plain, Keyword, Comment, String, Number };

/// A piece of a text; pieces point into the text.
struct TextPiece {
  TextKind kind;
  llvm::StringRef text;
};

struct ClassifiedText {
  std::vector<TextPiece> pieces; ///< In order, without gaps: together they are the text.
  bool hasBadTokens = false;     ///< Something in the text is no token of a program.
};

/// The text need not be a whole program: the lines of an example will do.
ClassifiedText classifyText(llvm::StringRef text);

} // namespace stage

#endif // STAGE_PARSE_HIGHLIGHT_H
