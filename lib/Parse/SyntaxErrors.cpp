//===- SyntaxErrors.cpp - errors of syntax in words -----------------------===//
#include "SyntaxErrors.h"
#include "ExpectedTokens.h"
#include "ForeignForms.h"
#include "StageParser.h"
#include "stage/Parse/Diagnostics.h"

using namespace stage;
using namespace stage::parse;
using Grammar = stagegrammar::StageParser;

/// Errors after this many are mostly echoes of the first.
static constexpr unsigned maxErrors = 20;

static bool isSoftWord(size_t token) { return token >= Grammar::AFTER && token <= Grammar::WITH; }

/// What the body of a rule is made of, for places where many tokens could begin the next item.
static const char *itemOf(size_t rule) {
  switch (rule) {
  case Grammar::RuleFile:
  case Grammar::RuleDeclaration:
    return "a declaration";
  case Grammar::RuleBlock:
  case Grammar::RuleStmt:
    return "a statement or '}'";
  case Grammar::RuleOpDecl:
  case Grammar::RuleOpStmt:
    return "a clause of an op or '}'";
  case Grammar::RuleMachineDecl:
  case Grammar::RuleMachineStmt:
    return "an entry, a level or '}'";
  case Grammar::RuleRuntimeDecl:
  case Grammar::RuleRuntimeStmt:
    return "an entry, 'at', 'fuse' or '}'";
  case Grammar::RuleStrategyBlock:
  case Grammar::RuleStrategyStmt:
  case Grammar::RuleStrategyRule:
  case Grammar::RuleOtherRule:
    return "a rule of a strategy or '}'";
  case Grammar::RuleScheduleBlock:
  case Grammar::RuleScheduleStmt:
    return "a statement of a schedule or '}'";
  case Grammar::RuleCallStmt:
  case Grammar::RuleExpr:
    return "an expression";
  case Grammar::RuleType:
  case Grammar::RuleParameter:
    return "a type";
  case Grammar::RuleDim:
    return "a dim";
  case Grammar::RulePattern:
  case Grammar::RulePath:
  case Grammar::RulePathSegment:
  case Grammar::RulePathName:
  case Grammar::RuleGlob:
    return "a pattern of paths";
  default:
    return "something else";
  }
}

/// Takes `tokens` out of `set`; true if it had all of `signature`.
static bool take(std::set<size_t> &set, std::initializer_list<size_t> signature, std::initializer_list<size_t> tokens) {
  for (size_t token : signature)
    if (!set.count(token))
      return false;
  for (size_t token : tokens)
    set.erase(token);
  return true;
}

/// "an expression, 'x' or 'y'"
static std::string describe(std::set<size_t> set, const antlr4::dfa::Vocabulary &vocabulary, size_t rule) {
  std::vector<std::string> words;
  bool name = set.count(Grammar::NAME);
  if (name)
    for (auto it = set.begin(); it != set.end();)
      it = *it == Grammar::NAME || isSoftWord(*it) ? set.erase(it) : std::next(it);
  if (take(set, {Grammar::NUMBER, Grammar::LPAREN, Grammar::MINUS},
           {Grammar::NUMBER, Grammar::QUANTITY, Grammar::STRING, Grammar::TRUE, Grammar::FALSE, Grammar::LPAREN,
            Grammar::LBRACKET, Grammar::IF, Grammar::OP, Grammar::MINUS, Grammar::NOT}))
    words.push_back("an expression");
  else if (name)
    words.push_back("a name");
  if (take(set, {Grammar::PLUS, Grammar::SLASH},
           {Grammar::PLUS, Grammar::MINUS, Grammar::STAR, Grammar::SLASH, Grammar::PERCENT, Grammar::DIV, Grammar::LESS,
            Grammar::LESS_EQUAL, Grammar::GREATER, Grammar::GREATER_EQUAL, Grammar::EQUAL, Grammar::NOT_EQUAL,
            Grammar::AND, Grammar::OR, Grammar::LPAREN, Grammar::LBRACKET, Grammar::DOT}))
    words.push_back("an operator");
  for (size_t rare : {Grammar::QUESTION, Grammar::BECAUSE, Grammar::WITH}) // seldom what is missing
    if (set.size() > 1)
      set.erase(rare);
  if (set.size() > 4)
    return itemOf(rule);
  for (size_t token : set)
    words.push_back(token == antlr4::Token::EOF  ? "the end"
                    : token == Grammar::STRING   ? "a string"
                    : token == Grammar::NUMBER   ? "a number"
                    : token == Grammar::QUANTITY ? "a quantity"
                                                 : vocabulary.getDisplayName(token));
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text.empty() ? itemOf(rule) : text;
}

/// The last token before `token` that is no comment.
static antlr4::Token *before(antlr4::Token *token, antlr4::TokenStream &stream) {
  for (size_t i = token->getTokenIndex(); i-- > 0;)
    if (stream.get(i)->getChannel() == antlr4::Token::DEFAULT_CHANNEL)
      return stream.get(i);
  return nullptr;
}

static bool beginsDeclaration(size_t token) {
  switch (token) {
  case Grammar::IMPORT:
  case Grammar::OP:
  case Grammar::MODULE:
  case Grammar::MODEL:
  case Grammar::STRATEGY:
  case Grammar::SCHEDULE:
  case Grammar::OPTIMIZER:
  case Grammar::PRECISION:
  case Grammar::CONFIG:
  case Grammar::JOB:
  case Grammar::LAUNCHER:
  case Grammar::MACHINE:
  case Grammar::RUNTIME:
    return true;
  default:
    return false;
  }
}

/// The brace of a declaration that is still open at `token`, if that is the end, or in a line that begins another one.
static antlr4::Token *findOpenBrace(antlr4::Token *token, antlr4::TokenStream &stream) {
  std::vector<std::pair<antlr4::Token *, size_t>> open; // with the columns where their lines begin
  antlr4::Token *misaligned = nullptr;                  // closed by a brace that begins a line in another column
  antlr4::Token *first = nullptr;                       // of the line
  antlr4::Token *openAtFirst = nullptr;                 // the outermost brace that is open there
  for (size_t i = 0; i <= token->getTokenIndex(); ++i) {
    antlr4::Token *next = stream.get(i);
    if (next->getChannel() != antlr4::Token::DEFAULT_CHANNEL)
      continue;
    if (!first || first->getLine() != next->getLine()) {
      first = next;
      openAtFirst = open.empty() ? nullptr : open.front().first;
    }
    if (next == token)
      break;
    if (next->getType() == Grammar::LBRACE)
      open.push_back({next, first->getCharPositionInLine()});
    else if (next->getType() == Grammar::RBRACE && !open.empty()) {
      if (next == first && next->getCharPositionInLine() != open.back().second && !misaligned)
        misaligned = open.back().first;
      open.pop_back();
    }
  }
  bool atEnd = token->getType() == antlr4::Token::EOF;
  bool atDeclaration = first && first->getCharPositionInLine() == 0 && beginsDeclaration(first->getType());
  if (open.empty())
    return nullptr;
  antlr4::Token *outermost = atEnd ? open.front().first : atDeclaration ? openAtFirst : nullptr;
  return outermost && misaligned ? misaligned : outermost;
}

/// The last token in front of the line where the block of a brace should have ended: the first line behind it that does
/// not begin further right than the line of the brace.
static antlr4::Token *findMissingClose(antlr4::Token *brace, antlr4::TokenStream &stream) {
  size_t indent = std::string::npos;
  antlr4::Token *last = nullptr;
  for (size_t i = 0; i < stream.size(); ++i) {
    antlr4::Token *next = stream.get(i);
    if (next->getChannel() != antlr4::Token::DEFAULT_CHANNEL)
      continue;
    bool beginsLine = !last || last->getLine() != next->getLine();
    if (beginsLine && next->getTokenIndex() <= brace->getTokenIndex())
      indent = next->getCharPositionInLine();
    else if (beginsLine && (next->getCharPositionInLine() <= indent || next->getType() == antlr4::Token::EOF))
      return last;
    last = next;
  }
  return last;
}

/// The statements that runtimes do not have yet.
static constexpr llvm::StringLiteral laterStatements[] = {"allocator", "hold"};

/// The word that begins a later statement of a runtime, if its second token is `token`.
static antlr4::Token *findLaterStatement(Grammar &parser, antlr4::Token *token) {
  auto *context = static_cast<antlr4::RuleContext *>(parser.getContext());
  while (context && context->getRuleIndex() != Grammar::RuleRuntimeDecl)
    context = dynamic_cast<antlr4::RuleContext *>(context->parent);
  antlr4::Token *word = context ? before(token, *parser.getTokenStream()) : nullptr;
  antlr4::Token *end = word ? before(word, *parser.getTokenStream()) : nullptr;
  if (!end || !llvm::is_contained(laterStatements, word->getText()))
    return nullptr;
  switch (end->getType()) {
  case Grammar::LBRACE:
  case Grammar::RBRACE:
  case Grammar::SEMICOLON:
    return word;
  default:
    return nullptr;
  }
}

/// The token that closes the braces in which `token` stands, or the last one.
static size_t findClosingBrace(antlr4::Token *token, antlr4::TokenStream &stream) {
  size_t at = token->getTokenIndex();
  for (int depth = 1; stream.get(at)->getType() != antlr4::Token::EOF; ++at) {
    size_t type = stream.get(at)->getType();
    depth += (type == Grammar::LBRACE) - (type == Grammar::RBRACE);
    if (!depth)
      break;
  }
  return at;
}

/// The next declaration that begins in the first column, or the end: where the head of one is broken, its body is not
/// read.
static size_t findNextDeclaration(antlr4::Token *token, antlr4::TokenStream &stream) {
  size_t at = token->getTokenIndex() + 1;
  while (at < stream.size() &&
         (stream.get(at)->getCharPositionInLine() || !beginsDeclaration(stream.get(at)->getType())))
    ++at;
  return at;
}

/// Whether no brace is open before `token`.
static bool isInHeader(antlr4::Token *token, antlr4::TokenStream &stream) {
  int depth = 0;
  for (size_t i = 0; i < token->getTokenIndex(); ++i)
    depth += (stream.get(i)->getType() == Grammar::LBRACE) - (stream.get(i)->getType() == Grammar::RBRACE);
  return depth <= 0;
}

/// An error of a declaration follows from an earlier one: the parser has left its body, or the rest of a line.
bool SyntaxErrors::isEcho(antlr4::Parser &parser, antlr4::Token *token) const {
  size_t rule = parser.getContext()->getRuleIndex();
  antlr4::Token *previous = before(token, *parser.getTokenStream());
  if (previous && brokenLine && previous->getLine() == brokenLine)
    return true;
  return (rule == Grammar::RuleFile || rule == Grammar::RuleDeclaration) && token->getCharPositionInLine() != 0;
}

void SyntaxErrors::syntaxError(antlr4::Recognizer *recognizer, antlr4::Token *token, size_t, size_t,
                               const std::string &message, std::exception_ptr exception) {
  ++count;
  // Unless only a `;` was missing, what follows on the line is rarely news.
  bool echo = brokenLine != 0 && token->getLine() == brokenLine;
  echo |= shown && isEcho(*static_cast<Grammar *>(recognizer), token);
  brokenLine = llvm::StringRef(message).startswith("missing ';'") ? 0 : token->getLine();
  if (echo || token->getTokenIndex() < unread || check.afterBadComment.count(token) || shown > maxErrors)
    return;
  SMLoc loc = source.loc(token);
  if (++shown > maxErrors) {
    diags.report(loc, diag::TooManySyntaxErrors) << maxErrors;
    return;
  }
  auto *parser = static_cast<Grammar *>(recognizer);
  if (antlr4::Token *word = findLaterStatement(*parser, token)) {
    diags.report(source.loc(word), diag::LaterStatement).range(source.range(word)) << source.slice(word);
    unread = findClosingBrace(word, *parser->getTokenStream()) + 1;
    return;
  }
  antlr4::Token *decision = token;
  try {
    if (exception)
      std::rethrow_exception(exception);
  } catch (const antlr4::NoViableAltException &error) {
    decision = error.getStartToken();
  } catch (const antlr4::RecognitionException &) {
  }
  std::string expected =
      describe(expectedAt(*parser, decision, token), parser->getVocabulary(), parser->getContext()->getRuleIndex());
  // Whatever begins a statement of a strategy may be the name of a part: a call needs its parenthesis.
  if (parser->getContext()->getRuleIndex() == Grammar::RuleStrategyStmt && expected == "'('") {
    token = parser->getContext()->getStart();
    loc = source.loc(token);
    expected = itemOf(Grammar::RuleStrategyStmt);
  }
  Instead instead = findInstead(source, *parser->getTokenStream(), token, expected);
  if (instead.at) {
    token = instead.at;
    loc = source.loc(token);
    expected = instead.expected;
  }
  bool atEnd = token->getType() == antlr4::Token::EOF;
  std::string found = atEnd ? "the end of the text" : ("'" + source.slice(token) + "'").str();
  // What is missing at the end of a line is shown there.
  antlr4::Token *previous = before(token, *parser->getTokenStream());
  bool endsStatement = llvm::StringRef(expected).contains("';'");
  if (endsStatement && previous && previous->getLine() != token->getLine())
    loc = source.range(previous).End;
  antlr4::Token *brace = findOpenBrace(token, *parser->getTokenStream());
  if (brace || (isInHeader(token, *parser->getTokenStream()) && !endsStatement))
    unread = brace ? parser->getTokenStream()->size() : findNextDeclaration(token, *parser->getTokenStream());
  // What follows a list in braces is read as if it stood outside of the block; what a note explains is explained once.
  if (found == "'{'" && expected == "an expression")
    unread = findNextDeclaration(token, *parser->getTokenStream());
  if (!instead.text.empty())
    brokenLine = token->getLine();
  if (brace && instead.text.empty()) {
    if (antlr4::Token *last = findMissingClose(brace, *parser->getTokenStream()))
      loc = source.range(last).End;
    diags.report(loc, diag::BraceMissing).note(source.loc(brace), diag::BraceNotClosed);
    return;
  }
  DiagnosticBuilder error = diags.report(loc, diag::SyntaxError) << found << expected;
  if (!instead.text.empty())
    error.note(SMLoc(), diag::WriteInstead) << instead.text;
  else if (expected == "';'")
    error.fixIt(SMRange(loc, loc), ";");
  if (brace)
    error.note(source.loc(brace), diag::BraceNotClosed);
}

antlr4::Token *Recovery::singleTokenDeletion(antlr4::Parser *parser) {
  switch (parser->getTokenStream()->LA(1)) {
  case Grammar::SEMICOLON:
  case Grammar::LBRACE:
  case Grammar::RBRACE:
    return nullptr;
  default:
    return DefaultErrorStrategy::singleTokenDeletion(parser);
  }
}
