//===- ProveRandom.cpp - random programs, all of them proved --------------===//
//
//   prove-random --cases=5000 --seed=1     compiles and proves; prints how many were proved, how many refused
//   prove-random --seed=1 --case=417       one of them, with all that is said
//   prove-random --seed=1 --case=417 --print
//   prove-random --cases=5000 --go-on      names all that are not proved
//
// A program that the compiler accepts must be proved; one that it refuses must be refused
// with a message. On the first that is not, lines are left out as long as the fault
// stays, and what is left is printed as a program to compile.
//
//===----------------------------------------------------------------------===//
#include "RandomParts.h"
#include "RandomProgram.h"
#include "stage/Compiler/Session.h"
#include "stage/IRGen/IRGen.h"
#include "stage/Interp/Prove.h"
#include "stage/Support/Installation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::interp;
namespace cl = llvm::cl;

static cl::opt<uint64_t> seed("seed", cl::desc("Number of the series"), cl::init(1));
static cl::opt<unsigned> cases("cases", cl::desc("How many programs"), cl::init(1000));
static cl::opt<int> only("case", cl::desc("Only this one of the series"), cl::init(-1));
static cl::opt<bool> routes("routes", cl::desc("Programs whose tokens go to targets and back"), cl::init(false));
static cl::opt<bool> printOnly("print", cl::desc("Print the program and do nothing"), cl::init(false));
static cl::opt<bool> goOn("go-on", cl::desc("Only name what is not proved, and go on"), cl::init(false));
static cl::opt<bool> statistics("statistics", cl::desc("Count the messages of refused programs"), cl::init(false));
static cl::opt<std::string> library("library", cl::desc("Folder of the standard library"), cl::Required);

enum class Verdict { Proved, Refused, Failed };

/// What became of a program: proved, refused by the compiler, or neither; and what was said of it.
struct Judgement {
  Verdict verdict = Verdict::Failed;
  std::vector<Diagnostic> messages;
  std::string text; ///< Of the messages.
  Proof proof;

  /// Of the first message that has one.
  std::string getCode() const {
    auto first = llvm::find_if(messages, [](const Diagnostic &message) { return !message.code.empty(); });
    return first == messages.end() ? "none" : first->code.str();
  }
};

static Judgement judge(const std::vector<std::string> &lines, llvm::StringRef path) {
  {
    std::error_code error;
    llvm::raw_fd_ostream file(path, error);
    for (const std::string &line : lines)
      file << line << '\n';
  }
  Judgement result;
  DiagnosticList list;
  Session session({.input = path.str(), .stdlibDir = library}, &list);
  Compilation c(session);
  std::unique_ptr<Graph> reference;
  std::optional<Proof> proof;
  bool isCompiled = runFrontEnd(c, Plan());
  if (isCompiled) {
    reference = generateGraph(session.getFiles(), *c.job, c.sizes, c.binding, c.obligations, c.diags);
    isCompiled = reference && runMiddle(c, {.verifyEach = true});
  }
  if (isCompiled)
    proof = prove(*reference, *c.graph, c.program.get(), c.diags);
  result.messages = std::move(list.all);
  llvm::raw_string_ostream os(result.text);
  for (const Diagnostic &message : result.messages)
    print(os, message, session.getSources());
  if (proof) {
    result.proof = *proof;
    result.verdict = Verdict::Proved;
  }
  // Refused, with a reason that is not the compiler's own fault.
  auto isOwnFault = [](const Diagnostic &message) { return message.code.startswith("ir-"); };
  if (!isCompiled && c.diags.hasErrors() && llvm::none_of(result.messages, isOwnFault))
    result.verdict = Verdict::Refused;
  return result;
}

/// Leaves out runs of lines, longer ones first, as long as the same fault stays.
static std::vector<std::string> shrink(std::vector<std::string> lines, llvm::StringRef path) {
  std::string code = judge(lines, path).getCode();
  auto stillFails = [&](const std::vector<std::string> &candidate) {
    Judgement judged = judge(candidate, path);
    return judged.verdict == Verdict::Failed && judged.getCode() == code;
  };
  for (bool isSmaller = true; isSmaller;) {
    isSmaller = false;
    for (size_t length = std::max<size_t>(1, lines.size() / 2); length; length /= 2)
      for (size_t start = 0; start + length <= lines.size();) {
        std::vector<std::string> candidate = lines;
        candidate.erase(candidate.begin() + start, candidate.begin() + start + length);
        if (stillFails(candidate)) {
          lines = std::move(candidate);
          isSmaller = true;
        } else {
          ++start;
        }
      }
  }
  return lines;
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv, "Proves random programs.\n");
  llvm::SmallString<64> path;
  int descriptor;
  if (llvm::sys::fs::createTemporaryFile("random", "stg", descriptor, path))
    return 2;
  llvm::sys::fs::closeFile(descriptor);
  unsigned proved = 0, refused = 0;
  uint64_t compared = 0;
  llvm::StringMap<unsigned> codes;
  unsigned first = only < 0 ? 0 : unsigned(only), end = only < 0 ? cases : first + 1;
  int status = 0;
  for (unsigned number = first; number < end; ++number) {
    std::vector<std::string> lines = makeRandomProgram(seed * 1000003 + number, routes);
    if (number % 2)
      lines = takeApart(std::move(lines), number);
    if (printOnly) {
      llvm::outs() << llvm::join(lines, "\n") << "\n";
      continue;
    }
    Judgement judged = judge(lines, path);
    proved += judged.verdict == Verdict::Proved;
    refused += judged.verdict == Verdict::Refused;
    compared += judged.proof.numCompared;
    if (judged.verdict == Verdict::Refused && statistics)
      ++codes[judged.getCode()];
    if (only >= 0)
      llvm::outs() << judged.text;
    if (judged.verdict != Verdict::Failed)
      continue;
    status = 1;
    if (goOn) {
      (llvm::outs() << "case " << number << " " << judged.getCode() << "\n").flush();
      continue;
    }
    llvm::outs() << "case " << number << " of seed " << seed << " was accepted and is not proved:\n\n"
                 << llvm::join(shrink(lines, path), "\n") << "\n\n";
    llvm::outs() << judge(shrink(lines, path), path).text;
    break;
  }
  llvm::sys::fs::remove(path);
  llvm::outs() << proved << " proved (" << compared << " values), " << refused << " refused\n";
  std::vector<std::pair<unsigned, std::string>> sorted;
  for (auto &entry : codes)
    sorted.emplace_back(entry.second, entry.first().str());
  llvm::sort(sorted, std::greater<>());
  for (auto &[count, code] : sorted)
    llvm::outs() << "  " << count << " " << code << "\n";
  return status;
}
