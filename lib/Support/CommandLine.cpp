//===- CommandLine.cpp - the options of a tool ----------------------------===//
//
// Problem: llvm::cl repeats names and values of options in its messages as they were given, and an argument may hold
// `ESC [ 2 J`, which a terminal obeys. Some of its messages go to the stream that it is told, others always to standard
// error.
//
// And they say what is wrong, not what to write: `Unknown command line argument '--tp=4'`, of an option with values
// none of them.
//
// Algorithm: while options are read, standard error is a file in memory. What is in it then is printed line by line,
// escaped; the messages about unknown options, values and files are said anew, with what to write. `--help` ends the
// process while options are read: what has been written is printed at exit.
//
//===----------------------------------------------------------------------===//
#include "stage/Support/CommandLine.h"
#include "stage/Support/Escape.h"
#include "stage/Support/Installation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

using namespace stage;
namespace cl = llvm::cl;

/// Standard error, while another file is in its place.
static int keptErrors = -1;

/// Puts a file in memory in the place of standard error. Without one, messages are printed as they are.
static void captureErrors() {
  int file = memfd_create("messages", MFD_CLOEXEC);
  if (file < 0)
    return;
  keptErrors = dup(STDERR_FILENO);
  if (keptErrors >= 0)
    dup2(file, STDERR_FILENO);
  close(file);
}

/// The subcommand that the first argument names, or the tool itself.
static cl::SubCommand &getSubcommand(llvm::StringRef argument) {
  for (cl::SubCommand *command : cl::getRegisteredSubcommands())
    if (!command->getName().empty() && command->getName() == argument)
      return *command;
  return *cl::TopLevelSubCommand;
}

/// The option whose name is nearest; empty: none is near.
static std::string findNearestOption(llvm::StringRef name, cl::SubCommand &command) {
  std::string nearest;
  unsigned least = unsigned(name.size()) / 3 + 1;
  for (const auto &entry : cl::getRegisteredOptions(command))
    if (unsigned distance = name.edit_distance(entry.getKey(), true, least);
        entry.getKey().size() > 1 && (distance < least || (distance == least && entry.getKey() < nearest))) {
      least = distance;
      nearest = entry.getKey().str();
    }
  return nearest;
}

/// What kept messages are said with: what the tool knows of its options.
static const OptionHelp *help;
static std::string firstArgument;
static std::vector<std::string> arguments;

/// `there is no option '--tp'; ...`
static std::string explainUnknown(llvm::StringRef argument) {
  auto [name, value] = argument.ltrim('-').split('=');
  std::string text = ("there is no option '" + argument.split('=').first + "'").str();
  bool isTop = &getSubcommand(firstArgument) == &*cl::TopLevelSubCommand;
  std::string command = isTop ? "" : firstArgument;
  if (help->explainOption)
    if (std::string instead = help->explainOption(command, name, value); !instead.empty())
      return text + "; " + instead;
  std::string nearest = findNearestOption(name, getSubcommand(firstArgument));
  if (!nearest.empty())
    return text + "; did you mean '--" + nearest + (value.empty() ? "'" : "=" + value.str() + "'") + "? '" +
           help->tool.str() + (isTop ? "" : " " + firstArgument) + " --help' lists the options";
  std::string owner;
  for (cl::SubCommand *command : cl::getRegisteredSubcommands())
    if (!command->getName().empty() && cl::getRegisteredOptions(*command).count(name))
      owner = command->getName().str();
  if (!owner.empty())
    text += ("; '" + help->tool + " " + owner + "' has it").str();
  else if (!value.empty() && !help->define.empty() && !name.contains('-') && nearest.empty())
    text += ("; values of a job are given as '" + help->define + " " + name + "=" + value + "'").str();
  return text +
         ("; '" + help->tool + (&getSubcommand(firstArgument) == &*cl::TopLevelSubCommand ? "" : " " + firstArgument) +
          " --help' lists the options")
             .str();
}

/// `-D tp 4`, `-D tp=2 4`: the word behind a definition that is no part of it; empty: another case.
static std::string explainSurplus() {
  if (help->define.empty())
    return "";
  for (size_t i = 0; i + 1 < arguments.size(); ++i) {
    llvm::StringRef argument = arguments[i];
    bool isApart = argument == help->define;
    if (!argument.startswith(help->define))
      continue;
    llvm::StringRef given = isApart ? llvm::StringRef(arguments[i + 1]) : argument.drop_front(help->define.size());
    size_t next = i + (isApart ? 2 : 1);
    if (next >= arguments.size() || llvm::StringRef(arguments[next]).startswith("-") ||
        llvm::sys::fs::exists(arguments[next]))
      continue;
    llvm::StringRef define = help->define, word = arguments[next];
    if (!given.contains('='))
      return ("error: '" + define + " " + given + " " + word + "' gives no value: write '" + define + " " + given +
              "=" + word + "'")
          .str();
    if (word.contains('='))
      return ("error: each value has its own '" + define + "': write '" + define + " " + given + " " + define + " " +
              word + "'")
          .str();
    return ("error: '" + word + "' belongs to no option: several values of a name are '" + define + " " + given + "," +
            word + "'")
        .str();
  }
  return "";
}

/// `, and 'stagec --report' ...`: a command that is an option, or the commands.
static std::string explainCommand() {
  if (cl::getRegisteredOptions(*cl::TopLevelSubCommand).count(firstArgument)) {
    std::string rest = arguments.size() > 2 ? arguments[2] : "";
    bool isFile = llvm::StringRef(rest).endswith(".stg");
    return ", and '" + firstArgument + "' is an option: '" + help->tool.str() + (isFile ? " " + rest : "") + " --" +
           firstArgument + (isFile || rest.empty() ? "" : "=" + rest) + "'";
  }
  std::vector<std::string> names;
  for (cl::SubCommand *command : cl::getRegisteredSubcommands())
    if (!command->getName().empty())
      names.push_back(command->getName().str());
  llvm::sort(names);
  return names.empty() ? ", and '" + help->tool.str() + " --help' lists the commands"
                       : ", and the commands are " + llvm::join(names, ", ");
}

/// `80GiB`, `<n>`: how the help calls the value of an option; empty: it has no name.
static std::string getValueName(llvm::StringRef option) {
  auto &options = cl::getRegisteredOptions(getSubcommand(firstArgument));
  auto found = options.find(option);
  if (found == options.end())
    return "";
  llvm::StringRef value = found->second->ValueStr;
  return value.empty() || llvm::isDigit(value.front()) ? value.str() : "<" + value.str() + ">";
}

/// `for the --gpus option: '8-64' value invalid for uint argument!`, `for the --fits option: requires a value!`;
/// empty: another message.
static std::string explainValue(llvm::StringRef line) {
  auto [option, fault] = line.split(" option: ");
  std::string name = option.rsplit(' ').second.ltrim('-').str();
  if (fault == "requires a value!")
    return "error: --" + name + " needs a value: write '--" + name + "=" + getValueName(name) + "'";
  auto [quoted, kind] = fault.split(" value invalid for ");
  if (kind.empty())
    return "";
  llvm::StringRef value = quoted.trim('\'');
  bool isReal = kind.startswith("floating");
  llvm::StringRef digits = value.take_while(llvm::isDigit), unit = value.drop_front(digits.size());
  uint64_t number = 0, thousand = unit == "k" || unit == "K" ? 1000 : unit == "Ki" ? 1024 : 0;
  if (thousand && !digits.getAsInteger(10, number) && number < (uint64_t(1) << 32))
    return "error: --" + name + " expects a number without a unit, found '" + value.str() + "': write '--" + name +
           "=" + std::to_string(number * thousand) + "'";
  return "error: --" + name + " expects " + (isReal ? "a number" : "a whole number") + " without a unit, found '" +
         value.str() + "': write '--" + name + "=" + (digits.empty() ? "10" : digits.str()) + "', for example";
}

/// A message of llvm::cl as one that says what to write; empty: it is said by another line.
static std::string explain(llvm::StringRef line) {
  auto [before, quoted] = line.split(": Unknown command line argument '");
  if (!quoted.empty())
    return "error: " + explainUnknown(quoted.split("'.").first);
  if (line.contains(": Did you mean '") || line.contains("option: may not occur within a group!"))
    return "";
  bool isTooMany = line.endswith("Too many positional arguments specified!");
  if (std::string surplus = isTooMany ? explainSurplus() : ""; !surplus.empty())
    return surplus;
  if (isTooMany && !llvm::StringRef(firstArgument).contains('.') && !llvm::sys::fs::exists(firstArgument) &&
      &getSubcommand(firstArgument) == &*cl::TopLevelSubCommand && !llvm::StringRef(firstArgument).startswith("-"))
    return (llvm::Twine("error: there is no command '") + firstArgument + "'; a program is compiled as in '" +
            help->example + "'" + explainCommand())
        .str();
  if (isTooMany)
    return ("error: '" + help->tool + "' reads one file; options begin with '--', as in '" + help->example + "'").str();
  if (line.startswith("Can specify at most") && line.contains("positional arguments: See:"))
    return "";
  if (std::string value = explainValue(line); !value.empty())
    return value;
  auto [option, found] = line.split(" option: Cannot find option named '");
  if (!found.empty()) {
    llvm::StringRef name = option.rsplit(' ').second;
    std::string values = help->listValues ? help->listValues(name.ltrim('-')) : "";
    std::string text = ("error: '" + name + "=" + found.rsplit('\'').first + "' is no value of '" + name + "'").str();
    return values.empty() ? text : text + "; write one of " + values;
  }
  return line.str();
}

static void releaseErrors() {
  if (keptErrors < 0)
    return;
  std::string text;
  char piece[4096];
  for (off_t at = 0; ssize_t count = pread(STDERR_FILENO, piece, sizeof(piece), at); at += count) {
    if (count < 0)
      break;
    text.append(piece, size_t(count));
  }
  dup2(keptErrors, STDERR_FILENO);
  close(std::exchange(keptErrors, -1));
  llvm::StringRef rest = text;
  while (!rest.empty()) {
    auto [line, behind] = rest.split('\n');
    if (std::string said = explain(line); !said.empty())
      llvm::errs() << escapeControls(said) << '\n';
    rest = behind;
  }
}

bool stage::parseOptions(int argc, char **argv, const OptionHelp &known, llvm::StringRef overview) {
  llvm::StringRef tool = known.tool;
  help = &known;
  firstArgument = argc > 1 ? argv[1] : "";
  arguments.assign(argv, argv + argc);
  cl::SetVersionPrinter([=](llvm::raw_ostream &os) { os << tool << " " << getVersion() << "\n"; });
  std::atexit(releaseErrors);
  captureErrors();
  bool isGood = cl::ParseCommandLineOptions(argc, argv, overview, &llvm::errs());
  releaseErrors();
  return isGood;
}
