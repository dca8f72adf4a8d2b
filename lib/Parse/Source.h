//===- Source.h - a buffer as ANTLR and as SourceMgr see it ----*- C++ -*-===//
//
// ANTLR counts code points, SourceMgr bytes. `SourceText` translates. Text that is not
// UTF-8 is refused before ANTLR sees it; a byte order mark is skipped.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_PARSE_SOURCE_H
#define STAGE_LIB_PARSE_SOURCE_H

#include "antlr4-runtime.h"
#include "stage/Support/Diagnostics.h"
#include <vector>

namespace stage::parse {

class SourceText {
public:
  SourceText(DiagnosticEngine &diags, unsigned bufferId);
  /// A part of a buffer that is a text of its own.
  SourceText(DiagnosticEngine &diags, unsigned bufferId, llvm::StringRef part);

  /// False, and an error reported, if the text is not UTF-8.
  bool isValid() const { return valid; }
  llvm::StringRef getText() const { return text; }
  unsigned getBufferId() const { return bufferId; }

  SMLoc loc(const antlr4::Token *token) const { return at(token->getStartIndex()); }
  SMRange range(const antlr4::Token *token) const { return range(token, token); }
  /// From the first character of `first` to the last of `last`; empty if `last` ends before `first` begins.
  SMRange range(const antlr4::Token *first, const antlr4::Token *last) const;
  llvm::StringRef slice(SMRange range) const;
  llvm::StringRef slice(const antlr4::Token *token) const { return slice(range(token)); }

private:
  SMLoc at(size_t codePoint) const;

  llvm::StringRef text;
  unsigned bufferId;
  bool valid = true;
  /// Byte offset of every code point; empty if all are ASCII.
  std::vector<uint32_t> offsets;
};

} // namespace stage::parse

#endif // STAGE_LIB_PARSE_SOURCE_H
