//===- Highlight.cpp - programs in colours --------------------------------===//
//
// Problem: pages show programs, and a reader finds the words of the language faster if they have a colour. Most of
// these words are names as well:
//
//   shard B over dp;  at **.linear(): shard n over tp;     `shard` and `over` are words, `linear` is a name
//
// Algorithm: the lexer of the grammar cuts the text. A reserved word is always one. Any other word of the language is
// one where a statement begins, or directly behind an operand, because no two operands of an expression stand side by
// side. A word before `(` or `.` is a name.
//
// Limits: this is a guess by neighbours, not a parse, because an example is seldom a whole program. For example, the
// entry `model` of a job has a colour.
//
//===----------------------------------------------------------------------===//
#include "stage/Parse/Highlight.h"
#include "StageLexer.h"
#include "Tokens.h"
#include "llvm/Support/ConvertUTF.h"

using namespace stage;
using namespace stage::parse;
using stagegrammar::StageLexer;

/// Byte offsets of the code points of a text, and of its end: ANTLR counts code points. Nothing if it is not UTF-8.
static std::vector<size_t> findOffsets(llvm::StringRef text) {
  std::vector<size_t> offsets;
  auto *begin = text.bytes_begin(), *end = text.bytes_end();
  for (auto *next = begin; next != end; next += llvm::getNumBytesForUTF8(*next)) {
    offsets.push_back(next - begin);
    if (!llvm::isLegalUTF8Sequence(next, end))
      return {};
  }
  offsets.push_back(text.size());
  return offsets;
}

static bool isKeyword(const antlr4::Token *previous, const antlr4::Token &token, char next) {
  size_t type = token.getType();
  if (type >= StageLexer::AS && type < StageLexer::AFTER)
    return true;
  if (type < StageLexer::AFTER || type >= StageLexer::NAME || next == '(' || next == '.')
    return false;
  if (!previous)
    return true;
  size_t before = previous->getType();
  bool beginsStatement =
      before == StageLexer::SEMICOLON || before == StageLexer::LBRACE || before == StageLexer::RBRACE;
  bool followsOperand = (before >= StageLexer::AFTER && before <= StageLexer::QUANTITY) ||
                        before == StageLexer::STRING || before == StageLexer::RPAREN || before == StageLexer::RBRACKET;
  bool followsPattern = before == StageLexer::COLON; // `at **.x: shard n over tp;`
  return beginsStatement || followsOperand || followsPattern;
}

static TextKind classify(const antlr4::Token *previous, const antlr4::Token &token, char next) {
  switch (token.getType()) {
  case StageLexer::COMMENT:
  case StageLexer::DOC_COMMENT:
  case StageLexer::FILE_DOC:
    return TextKind::Comment;
  case StageLexer::STRING:
    return TextKind::String;
  case StageLexer::NUMBER:
  case StageLexer::QUANTITY:
    return TextKind::Number;
  default:
    return isKeyword(previous, token, next) ? TextKind::Keyword : TextKind::Plain;
  }
}

ClassifiedText stage::classifyText(llvm::StringRef text) {
  std::vector<size_t> offsets = findOffsets(text);
  // ANTLR skips a byte order mark, so that its counts would be one off.
  if (offsets.empty() || text.startswith("\xEF\xBB\xBF"))
    return {{{TextKind::Plain, text}}, true};
  std::lock_guard<std::recursive_mutex> lock(tables);
  antlr4::ANTLRInputStream input(text.str());
  StageLexer lexer(&input);
  lexer.removeErrorListeners(); // every character is some token
  ClassifiedText result;
  size_t end = 0; // of the pieces so far
  auto add = [&](TextKind kind, size_t to) {
    if (to == end)
      return;
    if (!result.pieces.empty() && result.pieces.back().kind == kind)
      result.pieces.back().text =
          llvm::StringRef(result.pieces.back().text.begin(), result.pieces.back().text.size() + to - end);
    else
      result.pieces.push_back({kind, text.slice(end, to)});
    end = to;
  };
  std::vector<std::unique_ptr<antlr4::Token>> tokens = lexer.getAllTokens();
  const antlr4::Token *previous = nullptr; // but for comments
  for (const auto &token : tokens) {
    size_t begin = offsets[token->getStartIndex()], behind = offsets[token->getStopIndex() + 1];
    size_t type = token->getType();
    result.hasBadTokens |= type == StageLexer::BAD_NUMBER || type == StageLexer::BAD_QUANTITY ||
                           type == StageLexer::BAD_STRING || type == StageLexer::BAD_CHARACTER;
    add(TextKind::Plain, begin);
    add(classify(previous, *token, behind < text.size() ? text[behind] : ' '), behind);
    if (token->getChannel() == antlr4::Token::DEFAULT_CHANNEL)
      previous = token.get();
  }
  add(TextKind::Plain, text.size());
  return result;
}
