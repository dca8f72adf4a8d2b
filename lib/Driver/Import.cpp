//===- Import.cpp - stagec import -----------------------------------------===//
//
// The program is compiled before it is written, so that what is written compiles and says how many parameters its model
// has, beside what is published of it: the name of the configuration, or of the folder of a config.json
// ("Meta-Llama-3.1-8B"), and the index of the weights beside it.
//
//===----------------------------------------------------------------------===//
#include "stage/Import/Import.h"
#include "Commands.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/Import/Diagnostics.h"
#include "stage/Support/Files.h"
#include "stage/Support/Json.h"
#include "stage/Support/Table.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::driver;
using namespace stage::importer;
using llvm::StringRef;
namespace path = llvm::sys::path;

/// What the configuration is called; empty: nothing. Characters that end a comment, or are none, become `?`.
static std::string getConfigurationName(StringRef input) {
  llvm::SmallString<128> whole(input);
  if (input == "-" || llvm::sys::fs::make_absolute(whole))
    return "";
  path::remove_dots(whole, /*remove_dot_dot=*/true);
  StringRef stem = path::stem(whole);
  std::string name = (stem == "config" ? path::filename(path::parent_path(whole)) : stem).str();
  for (char &c : name)
    if (!llvm::isPrint(c))
      c = '?';
  return name;
}

/// The size that a name says: the "8B" of Llama-3.1-8B, the "8x7B" of Mixtral-8x7B; empty: none.
static StringRef findSize(StringRef name) {
  for (size_t begin = 0; begin < name.size(); ++begin) {
    bool isWord = begin == 0 || !(llvm::isAlnum(name[begin - 1]) || name[begin - 1] == '.');
    if (!isWord || !llvm::isDigit(name[begin]))
      continue;
    size_t end = std::min(name.find_first_not_of("0123456789.x", begin), name.size());
    if (end < name.size() && StringRef("bBmM").contains(name[end]) &&
        (end + 1 == name.size() || !llvm::isAlnum(name[end + 1])))
      return name.slice(begin, end + 1);
  }
  return "";
}

/// What the index of the weights says of their size; empty: there is none, or it says nothing.
static std::string readIndex(const ImportCommand &command, StringRef dtype, DiagnosticEngine &diags) {
  llvm::SmallString<128> file(path::parent_path(command.input));
  path::append(file, "model.safetensors.index.json");
  if (command.input == "-" || !llvm::sys::fs::exists(file))
    return "";
  std::string error;
  auto buffer = readFile(file, error);
  std::optional<llvm::json::Value> value = buffer ? parseJson(buffer->getBuffer(), error) : std::nullopt;
  const llvm::json::Object *object = value ? value->getAsObject() : nullptr;
  const llvm::json::Object *metadata = object ? object->getObject("metadata") : nullptr;
  if (!metadata) {
    diags.report(SMLoc(), diag::BadIndex) << file << (error.empty() ? "it has no 'metadata'" : error);
    return "";
  }
  std::string text;
  if (auto parameters = metadata->getInteger("total_parameters"))
    text = formatCount(*parameters) + " parameters";
  auto bytes = metadata->getInteger("total_size");
  unsigned width = dtype == "float32" ? 4 : dtype == "bfloat16" || dtype == "float16" ? 2 : 0;
  if (bytes && width && text.empty())
    text = formatCount(*bytes / width) + " parameters of " + dtype.str();
  else if (bytes)
    text += (text.empty() ? "" : ", ") + formatCount(*bytes) + " bytes";
  return text.empty() ? "" : "the index says " + text;
}

std::optional<std::string> stage::driver::describeParameters(StringRef text, const ImportCommand &command,
                                                             std::string &reason, size_t *place) {
  constexpr llvm::StringLiteral fileName = "job.stg";
  DiagnosticList messages;
  Session session({.input = "", .stdlibDir = command.stdlibDir, .cache = command.cache}, &messages);
  Compilation c(session);
  std::optional<Report> report;
  if (session.load(text, fileName) && runFrontEnd(c, Plan()) && runMiddle(c))
    report = makeReport(c);
  if (report) {
    std::string text = formatCount(report->parameters) + " parameters";
    if (report->activeParameters != report->parameters)
      text += ", of which " + formatCount(report->activeParameters) + " work on one token";
    return report->buffers ? text + ", and " + formatCount(report->buffers) + " numbers that are not trained" : text;
  }
  reason = getErrorText(messages.all);
  if (const Diagnostic *error = findError(messages.all); place && error && error->file == fileName) {
    StringRef line = text; // The buffer is a copy of the text.
    for (unsigned number = 1; number < error->line; ++number)
      line = line.split('\n').second;
    *place = size_t(line.data() - text.data()) + error->column - 1;
  }
  return std::nullopt;
}

bool stage::driver::runImport(const ImportCommand &command, DiagnosticEngine &diags) {
  if (!command.launcher.empty())
    return importArguments(command);
  llvm::SmallString<128> table(command.stdlibDir);
  path::append(table, "huggingface.json");
  if (command.input != "-" && !llvm::sys::fs::exists(command.input) && !StringRef(command.input).endswith(".json")) {
    diags.report(SMLoc(), diag::CannotReadFile)
        .with(command.input, "No such file or directory")
        .note(SMLoc(), diag::ConfigIsAFile);
    return false;
  }
  auto configuration = readFile(command.input, diags);
  auto known = configuration ? readFile(table, diags) : nullptr;
  if (!known)
    return false;
  unsigned id = diags.getSources().AddNewSourceBuffer(std::move(configuration), SMLoc());
  unsigned tableId = diags.getSources().AddNewSourceBuffer(std::move(known), SMLoc());
  std::optional<ImportedProgram> program =
      importConfiguration(id, tableId, {table.str().str(), command.ignored}, diags);
  if (!program)
    return false;
  std::string reason;
  std::optional<std::string> described = describeParameters(program->text, command, reason);
  if (!described) {
    diags.report(program->place, diag::ValuesDoNotFit)
        .with(program->model, reason)
        .note(SMLoc(), diag::FieldsSay)
        .with(program->parameters);
    return false;
  }
  std::string name = getConfigurationName(command.input), total = *described;
  if (StringRef size = findSize(name); !size.empty())
    total += "; its name says " + size.str();
  if (std::string index = readIndex(command, program->dtype, diags); !index.empty())
    total += "; " + index;
  std::string head = "//! " + (name.empty() ? program->modelType : name) + ", from its Hugging Face configuration (" +
                     program->modelType + "): " + total + "." +
                     (program->isPart ? " This is its text part alone." : "") + "\n";
  for (const std::string &note : program->notes)
    head += "//! " + note + ".\n";
  if (!writeFile(command.output, head + program->text, command.existing, diags))
    return false;
  if (command.output != "-")
    llvm::outs() << command.output << ": " << program->model << ", " << total << "\n";
  return true;
}
