//===- SiteCode.cpp - code on a page of a site ----------------------------===//
//
// Problem: a page shows programs, commands with their output, and output alone. A reader wants the words of a program
// in colours, and to copy the commands without the output:
//
//   ```stg file=job.stg      <pre class="stg" data-file="job.stg">  <span class="k">shard</span> ...
//   ```console               <pre class="console">                  <span class="k">$ stagec job.stg</span>
//   ```                      a session or a program, if it looks like one
//
// Rule: text without a language is a session if it begins with `$ `, and a program if it has only tokens of programs
// and its last line, without comments, ends in `;` or `}`.
//
//===----------------------------------------------------------------------===//
#include "SitePage.h"
#include "stage/Parse/Highlight.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::driver;
using llvm::StringRef;

static bool looksLikeProgram(const ClassifiedText &code) {
  std::string text;
  for (const TextPiece &piece : code.pieces)
    if (piece.kind != TextKind::Comment)
      text += piece.text;
  StringRef end = StringRef(text).rtrim();
  return !code.hasBadTokens && (end.endswith(";") || end.endswith("}"));
}

/// Null for plain text.
static const char *getClass(TextKind kind) {
  switch (kind) {
  case TextKind::Plain:
    return nullptr;
  case TextKind::Keyword:
    return "k";
  case TextKind::Comment:
    return "c";
  case TextKind::String:
    return "s";
  case TextKind::Number:
    return "n";
  }
  llvm_unreachable("a kind of text");
}

static void printPiece(llvm::raw_ostream &os, TextKind kind, StringRef text) {
  const char *name = getClass(kind);
  if (name)
    os << "<span class=\"" << name << "\">";
  llvm::printHTMLEscaped(text, os);
  if (name)
    os << "</span>";
}

std::string stage::driver::escapeHtml(StringRef text) {
  std::string html;
  llvm::raw_string_ostream os(html);
  llvm::printHTMLEscaped(text, os);
  return os.str();
}

std::string stage::driver::makeCodeBlock(StringRef code, StringRef info) {
  StringRef language = info.split(' ').first, file = info.split("file=").second.split(' ').first;
  ClassifiedText classified;
  if (language.empty() || language == "stg")
    classified = classifyText(code);
  if (language.empty())
    language = code.startswith("$ ") ? "console" : looksLikeProgram(classified) ? "stg" : "text";
  std::string html;
  llvm::raw_string_ostream os(html);
  os << "<pre class=\"" << escapeHtml(language) << '"';
  if (!file.empty())
    os << " data-file=\"" << escapeHtml(file) << '"';
  os << "><code>";
  if (language == "stg") {
    for (const TextPiece &piece : classified.pieces)
      printPiece(os, piece.kind, piece.text);
  } else {
    while (!code.empty()) {
      auto [line, rest] = code.split('\n');
      printPiece(os, language == "console" && line.startswith("$ ") ? TextKind::Keyword : TextKind::Plain, line);
      os << '\n';
      code = rest;
    }
  }
  os << "</code></pre>";
  return os.str();
}
