//===- Tokens.h - what is checked before parsing ---------------*- C++ -*-===//
//
// Looks once through the tokens of a file and reports what is no matter of syntax:
//
//   * text that is no token: `2D`, an open string, a stray character;
//   * `D // H`, a division in other languages and a comment here;
//   * nesting so deep, or an expression so long, that trees of it could exhaust the
//     stack of whoever walks them.
//
// Faulty tokens are then replaced by what they were meant to be, so that the parser
// can go on and report what else is wrong.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_PARSE_TOKENS_H
#define STAGE_LIB_PARSE_TOKENS_H

#include "Source.h"
#include <mutex>
#include <set>

namespace stage::parse {

/// Of the tables that all lexers and parsers of the grammar share, and fill as they go. An expression may be parsed
/// while the text that it stands in is.
extern std::recursive_mutex tables;

struct TokenCheck {
  /// False: too deep; do not parse.
  bool canParse = true;
  /// Tokens before which a part of the program was taken for a comment, as reported: a syntax error there is no news.
  std::set<const antlr4::Token *> afterBadComment;
};

TokenCheck checkTokens(const SourceText &source, DiagnosticEngine &diags, antlr4::CommonTokenStream &tokens);

} // namespace stage::parse

#endif // STAGE_LIB_PARSE_TOKENS_H
