//===- Diagnostics.h - located messages with stable codes ------*- C++ -*-===//
//
// Every message a user can see is one line of the Diagnostics.def of the library
// that reports it, or of this one's if several do: an identifier, a severity, a
// stable code and a text. The code is what users filter by and what
// docs/Diagnostics.md explains; every code has a test (utils/check-diagnostics). A
// message is built where the fault is seen and handed to a consumer when the builder dies:
//
//   diags.report(loc, diag::UnknownName) << name;          // {0} of the text
//   DiagnosticBuilder message = diags.report(loc, diag::Redefinition) << name;
//   message.note(first, diag::PreviousHere) << name;       // notes follow their error
//
// In a text, `{0}` stands for a text and `{0#}` for a whole number: "stage {0#} runs {1} twice" takes `<< 3 << "F0"`.
// The C++ compiler checks the arguments, because the type of diag::UnknownName lists their kinds. A text for a number,
// a number for a text, and one argument too many have no operator. One argument too few leaves a value unused, which is
// an error (-Werror=unused-result).
//
// Texts are lower case, without a full stop, and say what was seen and what was
// expected. All errors of a phase are reported; the driver stops between phases. What
// is said of a place is said once, however often a module or layer comes by there.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SUPPORT_DIAGNOSTICS_H
#define STAGE_SUPPORT_DIAGNOSTICS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/SMLoc.h"
#include "llvm/Support/SourceMgr.h"
#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stage {

using llvm::SMLoc;
using llvm::SMRange;

enum class Severity { Error, Warning, Remark, Note };

/// The fixed part of a message, as listed in a Diagnostics.def.
struct DiagnosticInfo {
  Severity severity;
  /// Stable code in kebab case, shown in brackets: `[unknown-name]`. Empty for notes.
  llvm::StringRef code;
  /// Text, lower case and without a full stop, with `{0}`, `{1#}`, ... for the arguments.
  std::string_view text;
};

namespace diag {
/// Names any message: the address of its fixed part.
using ID = const DiagnosticInfo *;

/// Kind of an argument: `{0}` in a text stands for a Text, `{0#}` for a Number.
enum Kind { Text = 1, Number };

/// Whole numbers. `true` and 'c' are none, although C++ would convert them; nor is 0.5.
template <typename T>
concept WholeNumber = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>;

/// Names a message whose text has arguments of these kinds.
template <Kind... Arguments> struct Message {
  ID id;
  constexpr operator ID() const { return id; }
};

/// Kinds of the arguments of a text, in order.
struct Arguments {
  Kind kinds[10] = {};
  unsigned count = 0;
};

/// Reads them. A text that leaves out a number below its highest, or has an argument of two kinds, does not compile.
consteval Arguments readArguments(std::string_view text) {
  Arguments read;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] != '{' || text[i + 1] < '0' || text[i + 1] > '9')
      continue;
    unsigned index = text[i + 1] - '0';
    std::string_view rest = text.substr(i + 2);
    Kind kind = rest.starts_with("#}") ? Number : Text;
    if (kind == Text && !rest.starts_with('}'))
      throw "an argument is written {0} or {0#}";
    if (read.kinds[index] && read.kinds[index] != kind)
      throw "an argument is both a text and a number";
    read.kinds[index] = kind;
    read.count = std::max(read.count, index + 1);
  }
  for (unsigned i = 0; i < read.count; ++i)
    if (!read.kinds[i])
      throw "an argument is left out";
  return read;
}

/// Names a message by its fixed part, whose text says the type.
template <const DiagnosticInfo &info> consteval auto nameMessage() {
  constexpr Arguments arguments = readArguments(info.text);
  auto name = [&]<size_t... I>(std::index_sequence<I...>) { return Message<arguments.kinds[I]...>{&info}; };
  return name(std::make_index_sequence<arguments.count>());
}
} // namespace diag
} // namespace stage

#define STAGE_DIAGNOSTICS "stage/Support/Diagnostics.def"
#include "stage/Support/DefineDiagnostics.inc"

namespace stage {

class DiagnosticEngine;

template <diag::Kind Next, diag::Kind... Rest> class IncompleteMessage;

/// One message and its notes under construction. Emitted when destroyed.
class DiagnosticBuilder {
public:
  DiagnosticBuilder(DiagnosticEngine &engine, SMLoc loc, diag::ID id);
  DiagnosticBuilder(DiagnosticBuilder &&other);
  DiagnosticBuilder(const DiagnosticBuilder &) = delete;
  ~DiagnosticBuilder();

  /// No more arguments, in a chain that passes some on.
  DiagnosticBuilder &&with() { return std::move(*this); }
  /// Underlines a range of the message that was opened last.
  DiagnosticBuilder &&range(SMRange range);
  /// Opens a note, whose arguments follow. An invalid location prints the note without a place.
  template <diag::Kind... Missing> IncompleteMessage<Missing...> note(SMLoc loc, diag::Message<Missing...> message);
  DiagnosticBuilder &&note(SMLoc loc, diag::Message<> message);
  /// Suggests to replace `range` (empty range: to insert) by `text`.
  DiagnosticBuilder &&fixIt(SMRange range, const llvm::Twine &text);

private:
  friend class DiagnosticEngine;
  template <diag::Kind Next, diag::Kind... Rest> friend class IncompleteMessage;
  void open(SMLoc loc, diag::ID id);
  void add(std::string argument);

  struct Part {
    SMLoc loc;
    diag::ID id;
    llvm::SmallVector<std::string, 3> arguments;
    llvm::SmallVector<SMRange, 1> ranges;
    llvm::SmallVector<llvm::SMFixIt, 1> fixIts;
  };
  DiagnosticEngine *engine;
  llvm::SmallVector<Part, 1> parts;
};

/// A message or note that lacks arguments of these kinds: `<<` gives the next one. The last makes it a builder again.
template <diag::Kind Next, diag::Kind... Rest> class [[nodiscard("the message lacks arguments")]] IncompleteMessage {
public:
  explicit IncompleteMessage(DiagnosticBuilder & builder) : builder(builder) {}

  decltype(auto) operator<<(const llvm::Twine &text) const requires(Next == diag::Text) { return add(text.str()); }
  decltype(auto) operator<<(diag::WholeNumber auto number) const requires(Next == diag::Number) {
    return add(std::to_string(number));
  }
  /// The same within a chain: `report(...).with(name).note(...).with(name)`.
  template <typename... Arguments> decltype(auto) with(const Arguments &...arguments) const {
    return (*this << ... << arguments);
  }
  IncompleteMessage range(SMRange range) const { return builder.range(range), *this; }

private:
  decltype(auto) add(std::string argument) const {
    builder.add(std::move(argument));
    if constexpr (sizeof...(Rest) == 0)
      return std::move(builder);
    else
      return IncompleteMessage<Rest...>(builder);
  }

  DiagnosticBuilder &builder;
};

/// An incomplete message and its builder.
template <diag::Kind... Missing>
class [[nodiscard("the message lacks arguments")]] IncompleteReport : public IncompleteMessage<Missing...> {
public:
  IncompleteReport(DiagnosticEngine & engine, SMLoc loc, diag::ID id)
      : IncompleteMessage<Missing...>(builder), builder(engine, loc, id) {}
  IncompleteReport(const IncompleteReport &) = delete;

private:
  DiagnosticBuilder builder;
};

template <diag::Kind... Missing>
IncompleteMessage<Missing...> DiagnosticBuilder::note(SMLoc loc, diag::Message<Missing...> message) {
  open(loc, message);
  return IncompleteMessage<Missing...>(*this);
}

/// A message that was reported. Its place, code and text outlive whoever reported it.
struct Diagnostic {
  Severity severity = Severity::Error; ///< Under -Werror a warning is an error.
  llvm::StringRef code;                ///< `unknown-name`, for ever; empty: a note has none.
  std::string text;                    ///< With its arguments.
  std::string file;                    ///< Empty: the message has no place, as one about an option.
  unsigned line = 0, column = 0;       ///< Counted from 1.
  std::vector<Diagnostic> notes;       ///< In order.

  // For printing, as long as the buffers of the files live.
  SMLoc loc;
  llvm::SmallVector<SMRange, 1> ranges;
  llvm::SmallVector<llvm::SMFixIt, 1> fixIts;
};

/// The first error of a list; null: there is none.
const Diagnostic *findError(llvm::ArrayRef<Diagnostic> diagnostics);
/// Its text; empty: there is none.
std::string getErrorText(llvm::ArrayRef<Diagnostic> diagnostics);
/// Prints a message and its notes, each with caret and source line. `sources` owns the buffers of its places.
void print(llvm::raw_ostream &out, const Diagnostic &diagnostic, const llvm::SourceMgr &sources);

/// Gets every message that is shown, in order. `sources` owns the buffers of its places.
class DiagnosticConsumer {
public:
  virtual ~DiagnosticConsumer() = default;
  virtual void handle(const Diagnostic &diagnostic, const llvm::SourceMgr &sources) = 0;
};

/// Prints messages as soon as they are reported.
class DiagnosticPrinter : public DiagnosticConsumer {
public:
  explicit DiagnosticPrinter(llvm::raw_ostream &out) : out(out) {}
  void handle(const Diagnostic &diagnostic, const llvm::SourceMgr &sources) override {
    print(out, diagnostic, sources);
  }

private:
  llvm::raw_ostream &out;
};

/// Keeps messages.
class DiagnosticList : public DiagnosticConsumer {
public:
  void handle(const Diagnostic &diagnostic, const llvm::SourceMgr &) override { all.push_back(diagnostic); }

  std::vector<Diagnostic> all;
};

/// Counts errors, and hands what is to be shown to a consumer.
class DiagnosticEngine {
public:
  /// Both must outlive the engine. `sources` owns every buffer a location may point into. Without a consumer messages
  /// are counted and not shown.
  explicit DiagnosticEngine(llvm::SourceMgr &sources, DiagnosticConsumer *consumer = nullptr)
      : sources(sources), consumer(consumer) {}
  /// Prints messages to a stream, which must outlive the engine.
  DiagnosticEngine(llvm::SourceMgr &sources, llvm::raw_ostream &out)
      : sources(sources), printer(std::make_unique<DiagnosticPrinter>(out)), consumer(printer.get()) {}

  template <diag::Kind... Missing> IncompleteReport<Missing...> report(SMLoc loc, diag::Message<Missing...> message) {
    return IncompleteReport<Missing...>(*this, loc, message);
  }
  DiagnosticBuilder report(SMLoc loc, diag::Message<> message) { return DiagnosticBuilder(*this, loc, message); }
  bool hasErrors() const { return numErrors != 0; }
  unsigned getNumErrors() const { return numErrors; }
  /// Errors and warnings so far, also those that are not shown.
  unsigned getNumMessages() const { return numMessages; }
  llvm::SourceMgr &getSources() { return sources; }
  /// Remarks are dropped unless asked for (`--remarks`).
  void setShowRemarks(bool show) { showRemarks = show; }
  bool getShowRemarks() const { return showRemarks; }
  /// Warnings are shown unless a program is compiled again.
  void setShowWarnings(bool show) { showWarnings = show; }
  /// Files below this folder are not the user's: what is found there is shown at the user's place, if there is one,
  /// and there in a note.
  void setLibrary(llvm::StringRef folder) { library = folder.str(); }
  /// Where the user's program asks for what is compiled now; the place before. A place in the library changes nothing.
  SMLoc setUserPlace(SMLoc place);
  /// Warnings are errors (`-Werror`).
  void setWarningsAreErrors(bool are) { warningsAreErrors = are; }

private:
  friend class DiagnosticBuilder;
  void emit(const DiagnosticBuilder &builder);
  bool isRepeated(const DiagnosticBuilder &builder, SMLoc shownAt);
  bool isInLibrary(SMLoc loc);
  /// Where a message is shown: its place, or the user's for one in the library.
  SMLoc getShownPlace(SMLoc loc);

  /// With its place; `severity` is what it counts as.
  Diagnostic makeValue(const DiagnosticBuilder::Part &part, Severity severity) const;

  llvm::SourceMgr &sources;
  std::unique_ptr<DiagnosticPrinter> printer; ///< If the engine made one.
  DiagnosticConsumer *consumer;
  unsigned numErrors = 0, numMessages = 0;
  std::string library;
  SMLoc userPlace;
  bool showRemarks = false;
  bool showWarnings = true;
  bool warningsAreErrors = false;
  bool saysTooMany = false;   ///< That there are more errors than are shown.
  llvm::StringSet<> reported; ///< Located errors and warnings so far: place and text.
};

/// While it lives, what is found in the library is shown at this place of the user's program.
class UserPlace {
public:
  UserPlace(DiagnosticEngine &diags, SMLoc place) : diags(diags), before(diags.setUserPlace(place)) {}
  UserPlace(const UserPlace &) = delete;
  ~UserPlace() { diags.setUserPlace(before); }

private:
  DiagnosticEngine &diags;
  SMLoc before;
};

} // namespace stage

#endif // STAGE_SUPPORT_DIAGNOSTICS_H
