//===- Parse.h - from text to the syntax tree ------------------*- C++ -*-===//
//
// Reads a buffer of the engine's SourceMgr. The syntax is grammar/*.g4; ANTLR stays
// inside this library.
//
//   unsigned id = sources.AddNewSourceBuffer(std::move(buffer), SMLoc());
//   ast::File *file = parseFile(context, diags, id);     // null: errors were reported
//
// All errors of syntax of a file are reported. Hostile input is refused before it
// could exhaust the stack: see `nesting-too-deep` and `expression-too-long`.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_PARSE_PARSE_H
#define STAGE_PARSE_PARSE_H

#include "stage/AST/AST.h"
#include "stage/Support/FileCache.h"
#include <string>
#include <vector>

namespace stage {

/// Null, and errors reported, if the buffer is no program. A tree that the cache holds is read instead; one of a text
/// without errors and warnings is stored there.
ast::File *parseFile(ast::ASTContext &context, DiagnosticEngine &diags, unsigned bufferId,
                     const FileCache &cache = FileCache());

/// The value of `-D name=value`: an expression or a range. Null, and errors reported, if it is none.
ast::Expr *parseExpression(ast::ASTContext &context, DiagnosticEngine &diags, unsigned bufferId);

/// The places, as `line:column: rule`, where the grammar can read a program in two ways. Empty for every program:
/// the tests of the grammar ask. Slow.
std::vector<std::string> findAmbiguities(DiagnosticEngine &diags, unsigned bufferId);

} // namespace stage

#endif // STAGE_PARSE_PARSE_H
