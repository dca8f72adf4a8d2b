//===- Diagnostics.cpp - located messages with stable codes ---------------===//
#include "stage/Support/Diagnostics.h"
#include "stage/Support/Escape.h"
#include "stage/Support/Origins.h"
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

DiagnosticBuilder &&DiagnosticBuilder::note(SMLoc loc, diag::Message<> message) {
  open(loc, message);
  return std::move(*this);
}

void stage::setOrigin(DiagnosticBuilder &message, SMRange origin) {
  if (origin.isValid())
    message.note(origin.Start, diag::OriginHere).range(origin);
}

DiagnosticBuilder &&DiagnosticBuilder::fixIt(SMRange range, const llvm::Twine &text) {
  parts.back().fixIts.emplace_back(range, text);
  return std::move(*this);
}

/// Replaces each `{i}` or `{i#}` of `text` by the i-th argument, which may come from anybody's file.
static std::string substitute(llvm::StringRef text, llvm::ArrayRef<std::string> arguments) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' && i + 1 < text.size() && llvm::isDigit(text[i + 1])) {
      unsigned index = text[i + 1] - '0';
      result += index < arguments.size() ? escapeControls(arguments[index]) : "<missing>";
      i = text.find('}', i);
      continue;
    }
    result += text[i];
  }
  return result;
}

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

Diagnostic DiagnosticEngine::makeValue(const DiagnosticBuilder::Part &part, Severity severity) const {
  Diagnostic value;
  value.severity = severity;
  value.code = part.id->code;
  value.text = substitute(part.id->text, part.arguments);
  value.loc = part.loc;
  value.ranges.assign(part.ranges.begin(), part.ranges.end());
  value.fixIts.assign(part.fixIts.begin(), part.fixIts.end());
  if (unsigned buffer = part.loc.isValid() ? sources.FindBufferContainingLoc(part.loc) : 0) {
    value.file = sources.getMemoryBuffer(buffer)->getBufferIdentifier().str();
    std::tie(value.line, value.column) = sources.getLineAndColumn(part.loc, buffer);
  }
  return value;
}

void DiagnosticEngine::emit(const DiagnosticBuilder &builder) {
  const DiagnosticBuilder::Part &first = builder.parts.front();
  Severity worst = first.id->severity;
  numMessages += worst != Severity::Remark;
  if (worst == Severity::Warning && !showWarnings) // nor are they errors: the sizes are not those of the job
    return;
  if (worst == Severity::Warning && warningsAreErrors)
    worst = Severity::Error;
  numErrors += worst == Severity::Error; // also where it is repeated: whoever reported it sees that it was no success
  if (!consumer)
    return;
  SMLoc shownAt = worst == Severity::Remark ? first.loc : getShownPlace(first.loc);
  llvm::SmallVector<SMRange, 1> origins;
  for (const DiagnosticBuilder::Part &part : llvm::drop_begin(builder.parts))
    if (part.id == diag::OriginHere.id && worst != Severity::Remark && sources.FindBufferContainingLoc(part.loc) &&
        !isInLibrary(part.loc))
      origins.push_back(part.ranges.front());
  shownAt = origins.empty() ? shownAt : origins.front().Start;
  if (isRepeated(builder, shownAt) || (worst == Severity::Remark && !showRemarks))
    return;
  if (numErrors > maxErrors) {
    if (worst == Severity::Error && !std::exchange(saysTooMany, true))
      consumer->handle(makeValue({SMLoc(), diag::TooManyErrors, {std::to_string(maxErrors)}, {}, {}}, Severity::Note),
                       sources);
    return;
  }
  Diagnostic message = makeValue(first, worst);
  if (shownAt != first.loc) {
    bool isOfLibrary = isInLibrary(first.loc);
    DiagnosticBuilder::Part shown = first;
    DiagnosticBuilder::Part own = {first.loc, diag::NeededHere, {}, first.ranges, first.fixIts};
    if (isOfLibrary) {
      own.id = diag::LibraryHere;
      own.fixIts.clear();
    }
    shown.loc = shownAt;
    shown.ranges = origins;
    shown.fixIts.clear();
    message = makeValue(shown, worst);
    if (first.loc.isValid())
      message.notes.push_back(makeValue(own, Severity::Note));
  }
  for (const DiagnosticBuilder::Part &note : llvm::drop_begin(builder.parts))
    if (note.id != diag::OriginHere.id)
      message.notes.push_back(makeValue(note, note.id->severity));
  consumer->handle(message, sources);
}

const Diagnostic *stage::findError(llvm::ArrayRef<Diagnostic> diagnostics) {
  const Diagnostic *error =
      llvm::find_if(diagnostics, [](const Diagnostic &message) { return message.severity == Severity::Error; });
  return error == diagnostics.end() ? nullptr : error;
}

std::string stage::getErrorText(llvm::ArrayRef<Diagnostic> diagnostics) {
  const Diagnostic *error = findError(diagnostics);
  return error ? error->text : "";
}

//===----------------------------------------------------------------------===//
// For people
//===----------------------------------------------------------------------===//

/// A line of generated text says nothing, and printed for each of its errors it would fill the disk.
constexpr size_t maxLine = 1000;

static llvm::SourceMgr::DiagKind getKind(Severity severity) {
  switch (severity) {
  case Severity::Error:
    return llvm::SourceMgr::DK_Error;
  case Severity::Warning:
    return llvm::SourceMgr::DK_Warning;
  case Severity::Remark:
    return llvm::SourceMgr::DK_Remark;
  case Severity::Note:
    return llvm::SourceMgr::DK_Note;
  }
  llvm_unreachable("covered switch");
}

/// With the source line and the name of its file, either of which may hold what a terminal would obey.
static void print(const llvm::SMDiagnostic &message, llvm::raw_ostream &out) {
  bool showColors = out.has_colors();
  std::string line = maskControls(message.getLineContents()), file = escapeControls(message.getFilename());
  if (line == message.getLineContents() && file == message.getFilename()) {
    message.print(/*ProgName=*/"", out, showColors);
    // LLVM prints no caret below a line with other characters than ASCII, as their width is unknown.
    llvm::StringRef before = llvm::StringRef(line).take_front(std::max(message.getColumnNo(), 0));
    if (!llvm::isASCII(line))
      out.indent(unsigned(llvm::count_if(before, [](char c) { return (c & 0xC0) != 0x80; }))) << "^\n";
    return;
  }
  if (!message.getSourceMgr())
    return llvm::SMDiagnostic(file, message.getKind(), message.getMessage()).print(/*ProgName=*/"", out, showColors);
  llvm::SMDiagnostic(*message.getSourceMgr(), message.getLoc(), file, message.getLineNo(), message.getColumnNo(),
                     message.getKind(), message.getMessage(), line, message.getRanges(), message.getFixIts())
      .print(/*ProgName=*/"", out, showColors);
}

void stage::print(llvm::raw_ostream &out, const Diagnostic &diagnostic, const llvm::SourceMgr &sources) {
  llvm::SourceMgr::DiagKind kind = getKind(diagnostic.severity);
  std::string text = diagnostic.text;
  if (!diagnostic.code.empty())
    text += (" [" + diagnostic.code + "]").str();
  // SourceMgr would print a place called `<unknown>:0`.
  llvm::SMDiagnostic message("", kind, text);
  if (diagnostic.loc.isValid())
    message = sources.GetMessage(diagnostic.loc, kind, text, diagnostic.ranges, diagnostic.fixIts);
  if (message.getLineContents().size() > maxLine)
    message = llvm::SMDiagnostic(
        (message.getFilename() + ":" + llvm::Twine(message.getLineNo()) + ":" + llvm::Twine(message.getColumnNo() + 1))
            .str(),
        kind, text);
  ::print(message, out);
  for (const Diagnostic &note : diagnostic.notes)
    print(out, note, sources);
}
