//===- Diagnostics.cpp - located messages with stable codes ---------------===//
#include "stage/Support/Diagnostics.h"
#include "stage/Support/Escape.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;

DiagnosticBuilder::DiagnosticBuilder(DiagnosticEngine &engine, SMLoc loc, diag::ID id) : engine(&engine) {
  open(loc, id);
}

DiagnosticBuilder::DiagnosticBuilder(DiagnosticBuilder &&other) : engine(other.engine), parts(std::move(other.parts)) {
  other.engine = nullptr;
}

DiagnosticBuilder::~DiagnosticBuilder() {
  if (engine)
    engine->emit(*this);
}

void DiagnosticBuilder::add(std::string argument) { parts.back().arguments.push_back(std::move(argument)); }

void DiagnosticBuilder::open(SMLoc loc, diag::ID id) { parts.push_back({loc, id, {}, {}, {}}); }

DiagnosticBuilder &&DiagnosticBuilder::range(SMRange range) {
  parts.back().ranges.push_back(range);
  return std::move(*this);
}

DiagnosticBuilder &&DiagnosticBuilder::note(SMLoc loc, diag::Message<0> message) {
  open(loc, message);
  return std::move(*this);
}

DiagnosticBuilder &&DiagnosticBuilder::fixIt(SMRange range, const llvm::Twine &text) {
  parts.back().fixIts.emplace_back(range, text);
  return std::move(*this);
}

DiagnosticEngine::DiagnosticEngine(llvm::SourceMgr &sources, llvm::raw_ostream &out) : sources(sources), out(out) {
  showColors = out.has_colors();
}

/// Replaces each `{i}` of `text` by the i-th argument, which may come from anybody's file.
static std::string substitute(llvm::StringRef text, llvm::ArrayRef<std::string> arguments) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' && i + 2 < text.size() && text[i + 2] == '}' && llvm::isDigit(text[i + 1])) {
      unsigned index = text[i + 1] - '0';
      result += index < arguments.size() ? escapeControls(arguments[index]) : "<missing>";
      i += 2;
      continue;
    }
    result += text[i];
  }
  return result;
}

/// A line of generated text says nothing, and printed for each of its errors it would fill the disk.
constexpr size_t maxLine = 1000;
/// Beyond, errors are counted and not printed.
constexpr unsigned maxErrors = 1000;

/// The same was said of the same place before: of another instance of a module, say.
bool DiagnosticEngine::isRepeated(const DiagnosticBuilder &builder, SMLoc shownAt) {
  const DiagnosticBuilder::Part &first = builder.parts.front();
  Severity severity = first.id->severity;
  if (!first.loc.isValid() || (severity != Severity::Error && severity != Severity::Warning))
    return false;
  std::string key = std::to_string(reinterpret_cast<uintptr_t>(shownAt.getPointer())) + " " +
                    substitute(first.id->text, first.arguments);
  return !reported.insert(key).second;
}

bool DiagnosticEngine::isInLibrary(SMLoc loc) {
  unsigned buffer = loc.isValid() && !library.empty() ? sources.FindBufferContainingLoc(loc) : 0;
  return buffer && llvm::StringRef(sources.getMemoryBuffer(buffer)->getBufferIdentifier()).startswith(library);
}

SMLoc DiagnosticEngine::setUserPlace(SMLoc place) {
  // One that was valid before is given back as it is; so is none.
  SMLoc before = userPlace;
  if (!place.isValid() || !isInLibrary(place))
    userPlace = place;
  return before;
}

SMLoc DiagnosticEngine::getShownPlace(SMLoc loc) { return userPlace.isValid() && isInLibrary(loc) ? userPlace : loc; }

/// With the source line and the name of its file, either of which may hold what a terminal would obey.
static void print(const llvm::SMDiagnostic &message, llvm::raw_ostream &out, bool showColors) {
  std::string line = maskControls(message.getLineContents()), file = escapeControls(message.getFilename());
  if (line == message.getLineContents() && file == message.getFilename())
    return message.print(/*ProgName=*/"", out, showColors);
  if (!message.getSourceMgr())
    return llvm::SMDiagnostic(file, message.getKind(), message.getMessage()).print(/*ProgName=*/"", out, showColors);
  llvm::SMDiagnostic(*message.getSourceMgr(), message.getLoc(), file, message.getLineNo(), message.getColumnNo(),
                     message.getKind(), message.getMessage(), line, message.getRanges(), message.getFixIts())
      .print(/*ProgName=*/"", out, showColors);
}

void DiagnosticEngine::emit(const DiagnosticBuilder &builder) {
  Severity worst = builder.parts.front().id->severity;
  numMessages += worst != Severity::Remark;
  if (worst == Severity::Warning && !showWarnings) // nor are they errors: the sizes are not those of the job
    return;
  if (worst == Severity::Warning && warningsAreErrors)
    worst = Severity::Error;
  SMLoc place = builder.parts.front().loc, shownAt = worst == Severity::Remark ? place : getShownPlace(place);
  if (isRepeated(builder, shownAt)) {
    numErrors += worst == Severity::Error; // whoever reported it sees that it was no success
    return;
  }
  llvm::SmallVector<DiagnosticBuilder::Part, 2> parts(builder.parts.begin(), builder.parts.end());
  if (shownAt != place) {
    parts.insert(parts.begin() + 1, {place, diag::LibraryHere, {}, parts.front().ranges, {}});
    parts.front().loc = shownAt;
    parts.front().ranges.clear();
    parts.front().fixIts.clear();
  }
  for (const DiagnosticBuilder::Part &part : parts) {
    const DiagnosticInfo &info = *part.id;
    llvm::SourceMgr::DiagKind kind = llvm::SourceMgr::DK_Note;
    switch (&part == &parts.front() ? worst : info.severity) {
    case Severity::Error:
      kind = llvm::SourceMgr::DK_Error;
      ++numErrors;
      break;
    case Severity::Warning:
      kind = llvm::SourceMgr::DK_Warning;
      break;
    case Severity::Remark:
      if (!showRemarks)
        return; // with its notes
      kind = llvm::SourceMgr::DK_Remark;
      break;
    case Severity::Note:
      break;
    }
    if (numErrors > maxErrors) {
      if (worst == Severity::Error && &part == &parts.front() && numErrors == maxErrors + 1)
        llvm::SMDiagnostic("", llvm::SourceMgr::DK_Note,
                           substitute(diag::TooManyErrors.id->text, {std::to_string(maxErrors)}))
            .print(/*ProgName=*/"", out, showColors);
      return;
    }
    std::string text = substitute(info.text, part.arguments);
    if (!info.code.empty())
      text += (" [" + info.code + "]").str();
    // SourceMgr would print a place called `<unknown>:0`.
    llvm::SMDiagnostic message("", kind, text);
    if (part.loc.isValid())
      message = sources.GetMessage(part.loc, kind, text, part.ranges, part.fixIts);
    if (message.getLineContents().size() > maxLine)
      message = llvm::SMDiagnostic((message.getFilename() + ":" + llvm::Twine(message.getLineNo()) + ":" +
                                    llvm::Twine(message.getColumnNo() + 1))
                                       .str(),
                                   kind, text);
    print(message, out, showColors);
  }
}
