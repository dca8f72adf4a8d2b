//===- Explain.cpp - what a message means ---------------------------------===//
//
// `stagec --explain size-not-divisible` prints the section of docs/Diagnostics.md that describes a code. This page is
// the only text about messages: docs/ lies beside the standard library, as a link in a build tree. Quoted texts have
// backslashes there, `sum[d\](x)`, so that Markdown shows them as they are; they are printed without.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/Sema/Program.h"
#include "stage/Support/Files.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace stage;
using namespace stage::driver;
using llvm::StringRef;

static void printPlain(StringRef section) {
  while (!section.empty()) {
    auto [line, rest] = section.split('\n');
    for (size_t i = 0; i < line.size(); ++i)
      if (!(line.startswith("> ") && line[i] == '\\'))
        llvm::outs() << line[i];
    llvm::outs() << '\n';
    section = rest;
  }
}

bool stage::driver::runExplain(const ExplainCommand &command, DiagnosticEngine &diags) {
  auto buffer = readFile(command.manual, diags);
  if (!buffer)
    return false;
  std::vector<std::string> codes;
  StringRef code = StringRef(command.code).trim("[]");
  StringRef rest = buffer->getBuffer().split("\n### ").second;
  while (!rest.empty()) {
    auto [section, next] = rest.split("\n### ");
    codes.push_back(section.take_until([](char c) { return c == ' ' || c == '\n'; }).str());
    if (codes.back() == code) {
      printPlain(section.rtrim());
      return true;
    }
    rest = next;
  }
  std::vector<sema::Candidate> candidates;
  candidates.reserve(codes.size());
  for (const std::string &known : codes)
    candidates.push_back({known, SMLoc()});
  DiagnosticBuilder error = diags.report(SMLoc(), diag::NoSuchCode) << code;
  if (const sema::Candidate *nearest = sema::findNearest(code, candidates))
    error.note(SMLoc(), diag::NearestInLibrary) << nearest->name;
  return false;
}
