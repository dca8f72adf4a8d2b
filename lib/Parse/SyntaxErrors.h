//===- SyntaxErrors.h - errors of syntax in words --------------*- C++ -*-===//
//
// Hears ANTLR's errors and reports them as diagnostics: what was found, and what was
// expected there in a few words ("an expression", "a name or ')'"), not as a set of
// sixty tokens.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_PARSE_SYNTAXERRORS_H
#define STAGE_LIB_PARSE_SYNTAXERRORS_H

#include "Source.h"
#include "Tokens.h"

namespace stage::parse {

class SyntaxErrors : public antlr4::BaseErrorListener {
public:
  SyntaxErrors(const SourceText &source, DiagnosticEngine &diags, const TokenCheck &check)
      : source(source), diags(diags), check(check) {}

  void syntaxError(antlr4::Recognizer *recognizer, antlr4::Token *token, size_t line, size_t column,
                   const std::string &message, std::exception_ptr exception) override;
  unsigned getCount() const { return count; }

private:
  bool isEcho(antlr4::Parser &parser, antlr4::Token *token) const;

  const SourceText &source;
  DiagnosticEngine &diags;
  const TokenCheck &check;
  unsigned count = 0;
  unsigned shown = 0;
  /// The line of the last error; 0 if the parser could go on as if nothing had been missing.
  size_t brokenLine = 0;
  /// Tokens before this one belong to a runtime with statements that are not read yet; errors there are echoes.
  size_t unread = 0;
};

/// How the parser goes on after an error: as usual, but what ends a statement is never taken for a stray token.
class Recovery : public antlr4::DefaultErrorStrategy {
protected:
  antlr4::Token *singleTokenDeletion(antlr4::Parser *parser) override;
};

} // namespace stage::parse

#endif // STAGE_LIB_PARSE_SYNTAXERRORS_H
