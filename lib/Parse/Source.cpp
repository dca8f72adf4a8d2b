//===- Source.cpp - a buffer as ANTLR and as SourceMgr see it -------------===//
#include "Source.h"
#include "stage/Parse/Diagnostics.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace stage;
using namespace stage::parse;

static llvm::StringRef getContents(DiagnosticEngine &diags, unsigned bufferId) {
  llvm::StringRef text = diags.getSources().getMemoryBuffer(bufferId)->getBuffer();
  text.consume_front("\xef\xbb\xbf");
  return text;
}

SourceText::SourceText(DiagnosticEngine &diags, unsigned bufferId)
    : SourceText(diags, bufferId, getContents(diags, bufferId)) {}

SourceText::SourceText(DiagnosticEngine &diags, unsigned bufferId, llvm::StringRef part)
    : text(part), bufferId(bufferId) {
  auto *bytes = reinterpret_cast<const llvm::UTF8 *>(text.data());
  auto *end = bytes + text.size();
  bool ascii = true;
  for (const llvm::UTF8 *next = bytes; next != end;) {
    ascii &= *next < 0x80;
    offsets.push_back(next - bytes);
    if (!llvm::isLegalUTF8Sequence(next, end)) {
      diags.report(SMLoc::getFromPointer(text.data() + (next - bytes)), diag::InvalidUtf8);
      valid = false;
      return;
    }
    next += llvm::getNumBytesForUTF8(*next);
  }
  if (ascii)
    offsets.clear();
}

SMLoc SourceText::at(size_t codePoint) const {
  size_t byte = offsets.empty() ? codePoint : codePoint < offsets.size() ? offsets[codePoint] : text.size();
  return SMLoc::getFromPointer(text.data() + std::min(byte, text.size()));
}

SMRange SourceText::range(const antlr4::Token *first, const antlr4::Token *last) const {
  SMLoc begin = loc(first);
  // The stop of an empty token or rule lies before its start.
  bool empty = !last || last->getType() == antlr4::Token::EOF || last->getStopIndex() + 1 <= first->getStartIndex();
  return SMRange(begin, empty ? begin : at(last->getStopIndex() + 1));
}

llvm::StringRef SourceText::slice(SMRange range) const {
  return llvm::StringRef(range.Start.getPointer(), range.End.getPointer() - range.Start.getPointer());
}
