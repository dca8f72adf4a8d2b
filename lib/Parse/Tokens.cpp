//===- Tokens.cpp - what is checked before parsing ------------------------===//
#include "Tokens.h"
#include "StageLexer.h"
#include "stage/Parse/Diagnostics.h"
#include "stage/Symbolic/Quantity.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

using namespace stage;
using namespace stage::parse;
using antlr4::Token;
using stagegrammar::StageLexer;

/// Those that a text processor makes of straight ones.
static bool isCurlyQuote(llvm::StringRef text) {
  static constexpr llvm::StringRef quotes[] = {"\u201c", "\u201d", "\u2018", "\u2019"};
  return llvm::is_contained(quotes, text);
}

/// Brackets, `if`s and prefix operators around a token.
static constexpr unsigned maxNesting = 200;
/// Tokens since the last separator, those of the open brackets around included.
static constexpr unsigned maxOpenTokens = 2000;

static bool isComment(const Token *token) {
  return token->getType() == StageLexer::COMMENT || token->getType() == StageLexer::DOC_COMMENT ||
         token->getType() == StageLexer::FILE_DOC;
}

/// A name that is not reserved, a number or a closing bracket: what may stand before a binary operator.
static bool endsOperand(const Token *token) {
  size_t type = token->getType();
  return (type >= StageLexer::AFTER && type <= StageLexer::STRING) || type == StageLexer::RPAREN ||
         type == StageLexer::RBRACKET;
}

/// What may follow an operand and shows that the text between was no divisor.
static bool separates(const Token *token) {
  switch (token->getType()) {
  case StageLexer::COMMA:
  case StageLexer::SEMICOLON:
  case StageLexer::RPAREN:
  case StageLexer::RBRACKET:
  case StageLexer::LBRACE:
  case StageLexer::ARROW:
  case StageLexer::ASSIGN:
    return true;
  default:
    return false;
  }
}

/// What may be meant by a number with letters: `4K`, and the name of a schedule.
static std::string findNumber(llvm::StringRef text) {
  if (text.equals_insensitive("1f1b"))
    return "the library calls this schedule 'one_f_one_b'";
  uint64_t number = 0;
  llvm::StringRef letter = text;
  if (letter.consumeInteger(10, number) || letter.size() != 1 || number > 1'000'000)
    return "";
  char unit = llvm::toUpper(letter.front());
  return unit == 'K' ? (llvm::Twine("write '") + llvm::Twine(number) + "Ki', which is " + llvm::Twine(number * 1024) +
                        ", or '" + llvm::Twine(number) + "_000'")
                           .str()
         : unit == 'M'
             ? (llvm::Twine("write '") + llvm::Twine(number) + "Mi', or '" + llvm::Twine(number) + "_000_000'").str()
             : "";
}

/// Reports a faulty token and turns it into a sound one.
static void repair(const SourceText &source, DiagnosticEngine &diags, antlr4::WritableToken *token) {
  SMRange range = source.range(token);
  switch (token->getType()) {
  case StageLexer::BAD_NUMBER:
    if (std::string meant = suggestQuantity(source.slice(range)); !meant.empty())
      diags.report(range.Start, diag::NoQuantity).range(range) << source.slice(range) << meant;
    else {
      DiagnosticBuilder error = diags.report(range.Start, diag::BadNumber).range(range) << source.slice(range);
      if (std::string instead = findNumber(source.slice(range)); !instead.empty())
        error.note(SMLoc(), diag::WriteInstead) << instead;
    }
    token->setType(StageLexer::NUMBER);
    return;
  case StageLexer::BAD_QUANTITY: {
    auto [amount, divisor] = source.slice(range).split('/');
    diags.report(range.Start, diag::NoRate).range(range) << source.slice(range) << amount << divisor;
    token->setType(StageLexer::NUMBER);
    return;
  }
  case StageLexer::BAD_STRING:
    diags.report(range.Start, diag::UnterminatedString);
    token->setType(StageLexer::STRING);
    return;
  case StageLexer::BAD_CHARACTER: {
    llvm::StringRef text = source.slice(range);
    bool control = static_cast<unsigned char>(text[0]) < 0x20 || text[0] == 0x7f;
    diags.report(range.Start, diag::BadCharacter)
        << (control              ? "byte " + std::to_string(text[0])
            : text == "#"        ? "'#'; comments begin with '//'"
            : isCurlyQuote(text) ? ("'" + text + "'; a text stands in straight quotes, and a name in none").str()
            : text == "$"        ? "'$'; a price is in USD, as in '2.50USD/h'"
                                 : ("'" + text + "'").str());
    token->setChannel(Token::HIDDEN_CHANNEL);
    return;
  }
  default:
    return;
  }
}

namespace {

/// Follows the nesting, token by token.
class NestingCheck {
public:
  /// The fault that this token makes, if any.
  std::optional<diag::Message<diag::Number>> next(const Token *token) {
    size_t type = token->getType();
    ++levels.back().tokens;
    ++openTokens;
    bool prefix = type == StageLexer::IF || type == StageLexer::NOT ||
                  (type == StageLexer::MINUS && previous && !endsOperand(previous));
    switch (type) {
    case StageLexer::LPAREN:
    case StageLexer::LBRACKET:
    case StageLexer::LBRACE:
      levels.push_back({});
      ++nesting;
      break;
    case StageLexer::RPAREN:
    case StageLexer::RBRACKET:
    case StageLexer::RBRACE:
      if (levels.size() > 1) {
        close(levels.back());
        levels.pop_back();
        --nesting;
      }
      break;
    case StageLexer::COMMA:
    case StageLexer::SEMICOLON:
      close(levels.back());
      break;
    default:
      // A block ends what is before it, unless an `else` continues it.
      if (previous && previous->getType() == StageLexer::RBRACE && type != StageLexer::ELSE)
        close(levels.back());
    }
    if (prefix) {
      ++levels.back().prefixes;
      ++nesting;
    }
    previous = token;
    if (nesting > maxNesting)
      return diag::NestingTooDeep;
    if (openTokens > maxOpenTokens)
      return diag::ExpressionTooLong;
    return std::nullopt;
  }

private:
  struct Level {
    unsigned tokens = 0;
    unsigned prefixes = 0;
  };
  void close(Level &level) {
    openTokens -= level.tokens;
    nesting -= level.prefixes;
    level = {};
  }

  llvm::SmallVector<Level, 32> levels = {Level()};
  const Token *previous = nullptr;
  unsigned openTokens = 0;
  unsigned nesting = 0;
};

} // namespace

TokenCheck parse::checkTokens(const SourceText &source, DiagnosticEngine &diags, antlr4::CommonTokenStream &tokens) {
  tokens.fill();
  TokenCheck result;
  NestingCheck nesting;
  const Token *previous = nullptr; // on the default channel
  const Token *suspect = nullptr;  // a comment right after an operand, on its line
  size_t hashLine = 0;             // of a '#', which begins a comment in other languages
  for (Token *token : tokens.getTokens()) {
    if (token->getLine() == hashLine && token->getType() != Token::EOF) {
      static_cast<antlr4::WritableToken *>(token)->setChannel(Token::HIDDEN_CHANNEL);
      continue;
    }
    if (token->getType() == StageLexer::BAD_CHARACTER && source.slice(token) == "#")
      hashLine = token->getLine();
    repair(source, diags, static_cast<antlr4::WritableToken *>(token));
    if (isComment(token) && previous && !suspect && endsOperand(previous) && previous->getLine() == token->getLine())
      suspect = token;
    if (token->getChannel() != Token::DEFAULT_CHANNEL)
      continue;
    if (suspect && !separates(token)) {
      SMLoc begin = source.loc(suspect);
      SMRange slashes(begin, SMLoc::getFromPointer(begin.getPointer() + 2));
      diags.report(begin, diag::CommentAfterOperand).range(slashes) << source.slice(previous);
      result.afterBadComment.insert(token);
    }
    suspect = nullptr;
    if (token->getType() == Token::EOF)
      break;
    if (auto fault = nesting.next(token)) {
      diags.report(source.loc(token), *fault) << (*fault == diag::NestingTooDeep ? maxNesting : maxOpenTokens);
      result.canParse = false;
      return result;
    }
    previous = token;
  }
  return result;
}
