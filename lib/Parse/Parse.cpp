//===- Parse.cpp - from text to the syntax tree ---------------------------===//
//
// Almost every program is parsed with SLL prediction, which is fast; where that
// fails, full LL prediction decides and reports.
//
//===----------------------------------------------------------------------===//
#include "stage/Parse/Parse.h"
#include "Builder.h"
#include "StageLexer.h"
#include "SyntaxErrors.h"
#include "stage/AST/TreeBytes.h"
#include "stage/Support/Installation.h"

using namespace stage;
using namespace stage::parse;
using stagegrammar::StageLexer;

namespace {

/// The tokens of a buffer.
struct Tokens {
  explicit Tokens(const SourceText &source) : input(source.getText().str()), lexer(&input), stream(&lexer) {
    lexer.removeErrorListeners(); // every character is some token
  }
  antlr4::ANTLRInputStream input;
  StageLexer lexer;
  antlr4::CommonTokenStream stream;
};

/// Hears of decisions with two possible outcomes.
class AmbiguityListener : public antlr4::BaseErrorListener {
public:
  std::vector<std::string> found;

  void reportAmbiguity(antlr4::Parser *parser, const antlr4::dfa::DFA &dfa, size_t start, size_t, bool,
                       const antlrcpp::BitSet &, antlr4::atn::ATNConfigSet *) override {
    auto *token = parser->getTokenStream()->get(start);
    found.push_back(std::to_string(token->getLine()) + ":" + std::to_string(token->getCharPositionInLine() + 1) + ": " +
                    parser->getRuleNames()[dfa.atnStartState->ruleIndex]);
  }
};

} // namespace

using Mode = antlr4::atn::PredictionMode;

std::recursive_mutex stage::parse::tables;

/// Parses a text by `parseRule` and builds a tree by `build` unless there are errors.
template <typename ParseRule, typename Build>
static auto parseText(DiagnosticEngine &diags, const SourceText &source, ParseRule parseRule, Build build)
    -> decltype(build(parseRule(std::declval<Grammar &>()), std::declval<Tokens &>(),
                      std::declval<const SourceText &>())) {
  unsigned errorsBefore = diags.getNumErrors();
  if (!source.isValid())
    return nullptr;
  std::lock_guard<std::recursive_mutex> lock(tables);
  Tokens tokens(source);
  TokenCheck check = checkTokens(source, diags, tokens.stream);
  if (!check.canParse)
    return nullptr;
  Grammar parser(&tokens.stream);
  parser.removeErrorListeners();
  auto *simulator = parser.getInterpreter<antlr4::atn::ParserATNSimulator>();
  simulator->setPredictionMode(Mode::SLL);
  parser.setErrorHandler(std::make_shared<antlr4::BailErrorStrategy>());
  decltype(parseRule(parser)) tree = nullptr;
  try {
    tree = parseRule(parser);
  } catch (const antlr4::ParseCancellationException &) {
    SyntaxErrors errors(source, diags, check);
    parser.reset();
    parser.addErrorListener(&errors);
    parser.setErrorHandler(std::make_shared<Recovery>());
    simulator->setPredictionMode(Mode::LL);
    tree = parseRule(parser);
    if (errors.getCount() != 0)
      return nullptr;
  }
  auto *result = build(tree, tokens, source);
  return diags.getNumErrors() == errorsBefore ? result : nullptr;
}

static ast::File *parseText(ast::ASTContext &context, DiagnosticEngine &diags, unsigned bufferId) {
  return parseText(
      diags, SourceText(diags, bufferId), [](Grammar &parser) { return parser.file(); },
      [&](Grammar::FileContext *tree, Tokens &tokens, const SourceText &source) {
        return Builder(context, diags, source, tokens.stream).file(tree);
      });
}

ast::File *stage::parseFile(ast::ASTContext &context, DiagnosticEngine &diags, unsigned bufferId,
                            const FileCache &cache) {
  const llvm::MemoryBuffer &buffer = *diags.getSources().getMemoryBuffer(bufferId);
  llvm::StringRef text = buffer.getBuffer(), build = getBuildId();
  bool isKept = cache.isOn() && !build.empty();
  std::string key = isKept ? (build + "\n" + text).str() : "";
  std::optional<std::string> known = isKept ? cache.load(key) : std::nullopt;
  ast::File *file = known ? ast::readTree(context, *known, text) : nullptr;
  if (!file) {
    unsigned messages = diags.getNumMessages();
    file = parseText(context, diags, bufferId);
    if (file && isKept && diags.getNumMessages() == messages)
      cache.store(key, ast::writeTree(*file, text));
  }
  if (file) {
    file->path = context.copy(buffer.getBufferIdentifier());
    file->bufferId = bufferId;
  }
  return file;
}

ast::Expr *stage::parse::parseExpressionIn(const SourceText &source, ast::ASTContext &context,
                                           DiagnosticEngine &diags) {
  return parseText(
      diags, source, [](Grammar &parser) { return parser.singleExpr(); },
      [&](Grammar::SingleExprContext *tree, Tokens &tokens, const SourceText &source) {
        return Builder(context, diags, source, tokens.stream).expr(tree);
      });
}

ast::Expr *stage::parseExpression(ast::ASTContext &context, DiagnosticEngine &diags, unsigned bufferId) {
  return parseExpressionIn(SourceText(diags, bufferId), context, diags);
}

std::vector<std::string> stage::findAmbiguities(DiagnosticEngine &diags, unsigned bufferId) {
  SourceText source(diags, bufferId);
  if (!source.isValid())
    return {};
  Tokens tokens(source);
  if (!checkTokens(source, diags, tokens.stream).canParse)
    return {};
  Grammar parser(&tokens.stream);
  AmbiguityListener listener;
  parser.removeErrorListeners();
  parser.addErrorListener(&listener);
  parser.getInterpreter<antlr4::atn::ParserATNSimulator>()->setPredictionMode(Mode::LL_EXACT_AMBIG_DETECTION);
  parser.file();
  return listener.found;
}
