//===- CommandLine.h - the options of a tool -------------------*- C++ -*-===//
#ifndef STAGE_SUPPORT_COMMANDLINE_H
#define STAGE_SUPPORT_COMMANDLINE_H

#include "llvm/Support/CommandLine.h"

namespace stage {

/// What messages about options say of a tool.
struct OptionHelp {
  llvm::StringRef tool;
  llvm::StringRef example = tool; ///< A command with a file and an option.
  llvm::StringRef define = "";    ///< The option that gives a value to a name, `-D`; empty: there is none.
  /// `a, b or c`: the values of an option that has a list of them; empty: it has none.
  std::string (*listValues)(llvm::StringRef option) = nullptr;
  /// What to write in place of an option that is none, as a word of another tool; empty: nothing is known of it.
  std::string (*explainOption)(llvm::StringRef command, llvm::StringRef name, llvm::StringRef value) = nullptr;
};

/// Reads the options of a tool, which are global (llvm::cl). `--version` prints the tool's name and the project's
/// version. False after a message, in which control characters of arguments are escaped.
/// `known` must live as long as the process, because `--help` ends it.
bool parseOptions(int argc, char **argv, const OptionHelp &known, llvm::StringRef overview);

/// Whether an option was given, with another value than it has anyway. An option that repeats its default changes
/// nothing, and is refused nowhere: scripts may say all that they rely on.
template <typename T> bool isChanged(const llvm::cl::opt<T> &option) {
  const auto &standard = option.getDefault();
  const T &value = option.getValue();
  return option.getNumOccurrences() > 0 && !(standard.hasValue() && standard.getValue() == value);
}

} // namespace stage

#endif // STAGE_SUPPORT_COMMANDLINE_H
