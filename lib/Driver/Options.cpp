//===- Options.cpp - the command line of stagec ---------------------------===//
#include "Options.h"
#include "Definitions.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/Support/CommandLine.h"
#include "stage/Support/Decimal.h"
#include "stage/Support/Files.h"
#include "stage/Support/Installation.h"
#include "stage/Support/Ranges.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace stage;
using namespace stage::driver;
using namespace stage::serving;
namespace cl = llvm::cl;

namespace {
// llvm::cl sorts groups by name.
cl::OptionCategory compileCategory("Compile", "what is compiled:");
cl::OptionCategory passCategory("Passes", "for those who change the compiler:");
cl::OptionCategory searchCategory("Search",
                                  "compare plans, or find the largest batch (see also 'stagec plan --help'):");
cl::OptionCategory traceCategory("Trace", "Chakra traces for simulators:");
cl::opt<std::string> input(cl::Positional, cl::desc("<file.stg>"), cl::cat(compileCategory));
cl::opt<std::string> output("o",
                            cl::desc("Write one trace per rank and comm_group.json into <folder>; with --emit of a "
                                     "picture the picture into <file>.svg or, by rsvg-convert, <file>.pdf; a timeline "
                                     "also into <file>.json, for Perfetto; --emit=memory-timeline also into "
                                     "<file>.csv, or <file>.pickle for PyTorch's memory viewer"),
                            cl::value_desc("folder"), cl::cat(traceCategory));
cl::opt<std::string> astraSim("astra-sim",
                              cl::desc("Write into <folder> what ASTRA-sim needs beside the traces of -o: network, "
                                       "system and memory of the job's machine, and a script that runs it"),
                              cl::value_desc("folder"), cl::cat(traceCategory));
cl::opt<ReportKind> report(
    "report", cl::ValueOptional, cl::desc("Show what a step costs: time, memory, communication, FLOPs"),
    cl::values(clEnumValN(ReportKind::Text, "", ""), clEnumValN(ReportKind::Text, "text", "one screen (default)"),
               clEnumValN(ReportKind::Full, "full", "all tables: each stage, phase and tensor"),
               clEnumValN(ReportKind::Json, "json", "one JSON object with exact numbers"),
               clEnumValN(ReportKind::Csv, "csv", "a table, one line per job, with exact numbers")),
    cl::init(ReportKind::None), cl::cat(getLookCategory()));
cl::opt<EmitKind> emit(
    "emit", cl::desc("Print a picture or table of the job, or what it is in some phase, and stop"),
    cl::values(
        clEnumValN(EmitKind::Ast, "ast", "the program after parsing"),
        clEnumValN(EmitKind::Job, "job", "the job with every name bound"),
        clEnumValN(EmitKind::Graph, "graph", "graph IR before any pass (internal form)"),
        clEnumValN(EmitKind::Program, "program", "units of every pipeline stage"),
        clEnumValN(EmitKind::Memory, "memory", "saved bytes, symbolically, and memory"),
        clEnumValN(EmitKind::Schedule, "schedule", "a picture of the pipeline in time"),
        clEnumValN(EmitKind::Time, "time", "how long a step takes, and what ranks do"),
        clEnumValN(EmitKind::Prices, "prices", "what each op takes alone, and its shape"),
        clEnumValN(EmitKind::Timeline, "timeline", "a picture (SVG) of when each unit and collective of a step runs"),
        clEnumValN(EmitKind::MemoryTimeline, "memory-timeline",
                   "a picture (SVG) of what a rank of each stage holds over a step"),
        clEnumValN(EmitKind::Mesh, "mesh", "a picture of who talks to whom, per axis"),
        clEnumValN(EmitKind::Layer, "layer", "a picture (SVG) of how the tensors of one layer are split"),
        clEnumValN(EmitKind::Breakdown, "breakdown", "bars (SVG) of time, communication and memory, one for each plan"),
        clEnumValN(EmitKind::Dot, "dot", "graph IR after all passes, for graphviz; with --layer of one layer"),
        clEnumValN(EmitKind::Chakra, "chakra", "traces; the same as -o alone")),
    cl::init(EmitKind::None), cl::cat(getLookCategory()));
cl::opt<std::string> explain("explain",
                             cl::desc("Print what a message means and what to write instead, by its code, as in "
                                      "--explain=size-not-divisible"),
                             cl::value_desc("code"), cl::cat(getLookCategory()));
cl::opt<std::string> job("job", cl::desc("Compile this job of the file; --report compares several: a,b"),
                         cl::value_desc("name"), cl::cat(compileCategory));
cl::opt<bool> allJobs("all-jobs", cl::desc("Compare all jobs of the file (needs --report or --emit=breakdown)"),
                      cl::cat(searchCategory));
cl::list<std::string> defines("D", cl::Prefix,
                              cl::desc("Replace a value of the job, its config or its strategy; --report and "
                                       "--emit=breakdown compare several: tp=1,2,4"),
                              cl::value_desc("name=value"), cl::cat(compileCategory));
cl::list<std::string> includes("I", cl::Prefix, cl::desc("Look for imports in <folder>, too"), cl::value_desc("folder"),
                               cl::cat(compileCategory));
cl::opt<std::string> stdlib("stdlib", cl::desc("The folder of the standard library (default: the compiler's own)"),
                            cl::value_desc("folder"), cl::cat(compileCategory));
cl::opt<bool> force("force", cl::desc("Replace a folder of traces, or the file of a picture"), cl::cat(traceCategory));
cl::opt<std::string> load("load",
                          cl::desc("Load of the experts of each layer, for the model's parameter 'loads' (JSON)"),
                          cl::value_desc("file.json"), cl::cat(compileCategory));
cl::opt<std::string> ranks("ranks", cl::desc("Write the traces of these ranks only, as in 0,8-15"),
                           cl::value_desc("list"), cl::cat(traceCategory));
cl::opt<unsigned> jobs("j", cl::Prefix,
                       cl::desc("Number of threads that write traces or compile plans (default: one per core)"),
                       cl::init(0), cl::value_desc("n"), cl::cat(compileCategory));
enum class Names { All, None };
cl::opt<Names> names("names", cl::desc("Names of nodes in traces"), cl::init(Names::All),
                     cl::values(clEnumValN(Names::All, "all", "every node has a name and op_type"),
                                clEnumValN(Names::None, "none", "smaller traces")),
                     cl::cat(traceCategory));
enum class Order { Control, Data };
cl::opt<Order>
    order("order", cl::desc("How the order of a rank's nodes is written"), cl::init(Order::Control),
          cl::values(clEnumValN(Order::Control, "control", "as control dependencies"),
                     clEnumValN(Order::Data, "data", "as data dependencies, for consumers that read no others")),
          cl::cat(traceCategory));
enum class Streams { Own, One };
cl::opt<Streams> streams("streams", cl::desc("Streams on which the nodes of a rank run"), cl::init(Streams::Own),
                         cl::values(clEnumValN(Streams::Own, "own", "the streams that the strategy says (default)"),
                                    clEnumValN(Streams::One, "one",
                                               "one for communication and one for computation, for "
                                               "simulators that stall with more")),
                         cl::cat(traceCategory));
cl::opt<unsigned> steps("steps", cl::desc("Number of training steps in the traces, or in the proof (default: 1)"),
                        cl::init(1), cl::value_desc("n"), cl::cat(traceCategory));
cl::opt<bool> tracker("tracker", cl::desc("Write the inputs and outputs of every node, for memory tracking"),
                      cl::cat(traceCategory));
cl::opt<bool> times("times",
                    cl::desc("Write what each node takes on the machine of the job, for simulators that replay traces"),
                    cl::cat(traceCategory));
cl::opt<bool> prove("prove", cl::desc("Run the job on tiny sizes, every rank, and compare with the unsharded program"),
                    cl::cat(getLookCategory()));
cl::opt<std::string> fits("fits",
                          cl::desc("Search for the largest batch and the longest sequences of the job that fit into a "
                                   "rank's memory of <size>, or, "
                                   "with --fits=machine, into that of the job's machine"),
                          cl::value_desc("80GiB"), cl::cat(searchCategory));
cl::opt<bool> remarks("remarks", cl::desc("Say which rule decided each sharding, and which communication follows"),
                      cl::cat(getLookCategory()));
cl::opt<std::string> as("as", cl::desc("Print the plan as arguments of a framework, by a launcher of the library"),
                        cl::value_desc("megatron_lm"), cl::cat(getLookCategory()));
cl::opt<bool> warningsAreErrors("Werror", cl::desc("Make errors of warnings"), cl::cat(compileCategory));
cl::list<std::string> printAfter("print-after", cl::CommaSeparated, cl::desc("Print the graph after these passes"),
                                 cl::value_desc("pass"), cl::cat(passCategory));
cl::opt<bool> printAfterAll("print-after-all", cl::desc("Print the graph after every pass"), cl::cat(passCategory));
cl::opt<bool> verifyEach("verify-each", cl::desc("Verify the graph after every pass"), cl::cat(passCategory));
constexpr llvm::StringLiteral noCacheText =
    "Parse all files, and keep no syntax trees in $XDG_CACHE_HOME/stagec or ~/.cache/stagec";
cl::opt<bool> noCache("no-cache", cl::desc(noCacheText), cl::cat(compileCategory));
cl::opt<bool> timePasses("time-passes", cl::desc("Say how long every pass took"), cl::cat(passCategory));

cl::SubCommand importCommand("import",
                             "write the program of a model that is published as a Hugging Face configuration");
cl::OptionCategory importCategory("stagec import options");
cl::opt<std::string> importInput(cl::Positional, cl::Required, cl::desc("<config.json, or arguments>"),
                                 cl::cat(importCategory), cl::sub(importCommand));
cl::opt<std::string> importOutput("o", cl::desc("Write the program into <job.stg> (default: standard output)"),
                                  cl::value_desc("job.stg"), cl::init("-"), cl::cat(importCategory),
                                  cl::sub(importCommand));
cl::opt<bool> importForce("force", cl::desc("Replace <job.stg> if it exists"), cl::cat(importCategory),
                          cl::sub(importCommand));
cl::list<std::string> importIgnored(
    "ignore",
    cl::desc("Go on without <field>, which is unknown, or has a value that the library's model does not support"),
    cl::value_desc("field"), cl::cat(importCategory), cl::sub(importCommand));
cl::opt<std::string> importLauncher("launcher",
                                    cl::desc("The file has arguments of a framework, which this launcher of the "
                                             "library reads"),
                                    cl::value_desc("megatron_lm"), cl::cat(importCategory), cl::sub(importCommand));
cl::list<std::string> importDefines("D", cl::Prefix,
                                    cl::desc("With --launcher: a value that the arguments do not say, such as "
                                             "config=llama3_8b, B=64, gpus=64 or machine=h100"),
                                    cl::value_desc("name=value"), cl::cat(importCategory), cl::sub(importCommand));
cl::opt<std::string> importStdlib("stdlib",
                                  cl::desc("The folder of the standard library (default: the compiler's own)"),
                                  cl::value_desc("folder"), cl::cat(importCategory), cl::sub(importCommand));
cl::opt<bool> importNoCache("no-cache", cl::desc(noCacheText), cl::cat(importCategory), cl::sub(importCommand));

cl::SubCommand docCommand("doc", "what a declaration, its parameters and their values mean");
cl::OptionCategory docCategory("stagec doc options");
cl::opt<std::string> docInput(cl::Positional, cl::desc("<name, or file.stg>"), cl::cat(docCategory),
                              cl::sub(docCommand));
cl::opt<bool> docAll("all", cl::desc("Print the whole library"), cl::cat(docCategory), cl::sub(docCommand));
cl::opt<std::string> docMarkdown("markdown", cl::desc("With --all: write a page for each module into <folder>"),
                                 cl::value_desc("folder"), cl::cat(docCategory), cl::sub(docCommand));
cl::opt<std::string> docHtml("html",
                             cl::desc("Write a site into <folder>: the library and all documentation, with search"),
                             cl::value_desc("folder"), cl::cat(docCategory), cl::sub(docCommand));
cl::opt<std::string> docPages("docs",
                              cl::desc("With --html: the folder of the documentation (default: the compiler's own)"),
                              cl::value_desc("folder"), cl::cat(docCategory), cl::sub(docCommand));
cl::opt<std::string> docStdlib("stdlib", cl::desc("The folder of the standard library (default: the compiler's own)"),
                               cl::value_desc("folder"), cl::cat(docCategory), cl::sub(docCommand));
cl::opt<bool> docNoCache("no-cache", cl::desc(noCacheText), cl::cat(docCategory), cl::sub(docCommand));
} // namespace

std::vector<std::string> stage::driver::splitAtCommas(llvm::StringRef text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  bool isText = false;
  for (char c : text) {
    isText ^= c == '"';
    if (!isText)
      depth += llvm::StringRef("([{").contains(c) ? 1 : llvm::StringRef(")]}").contains(c) ? -1 : 0;
    if (c == ',' && depth == 0 && !isText)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  for (std::string &part : parts)
    part = llvm::StringRef(part).trim().str();
  return parts;
}

bool DriverOptions::isComparison() const {
  return allJobs || jobs.size() > 1 || report == ReportKind::Csv || emit == EmitKind::Breakdown ||
         llvm::any_of(choices, [](const Choice &choice) { return choice.values.size() > 1; });
}

/// More plans than anybody reads; a slip of the finger must not run for days.
constexpr size_t maxCombinations = 100'000;

/// `--job` and `-D`, of one plan or of many.
static void readJobs(DriverOptions &options, DiagnosticEngine &diags) {
  if (!job.empty())
    options.jobs = splitAtCommas(job);
  for (const std::string &name : options.jobs)
    if (name.empty())
      diags.report(SMLoc(), diag::BadJobs) << job;
  options.allJobs = allJobs;
  if (allJobs && job.getNumOccurrences())
    diags.report(SMLoc(), diag::AllJobsAndJob) << job;
  size_t combinations = std::max<size_t>(1, options.jobs.size());
  for (const std::string &define : defines) {
    auto [name, text] = llvm::StringRef(define).split('=');
    Choice choice{name.trim().str(), splitAtCommas(text)};
    if (choice.name.empty() || llvm::is_contained(choice.values, ""))
      diags.report(SMLoc(), diag::BadDefine) << describeDefine(define);
    combinations = std::min(combinations * choice.values.size(), maxCombinations + 1);
    // The command line has no imports.
    for (const char *entry : {"machine", "runtime"})
      if (llvm::StringRef(choice.name).rsplit('.').second == entry || choice.name == entry)
        options.files.libraries.push_back(entry + std::string("s"));
    options.choices.push_back(std::move(choice));
  }
  if (!load.empty())
    if (std::optional<std::string> loads = readLoadFile(load, diags))
      options.choices.push_back({"config.loads", {*loads}});
  if (combinations > maxCombinations)
    diags.report(SMLoc(), diag::TooManyCombinations) << int64_t(maxCombinations);
  if (options.isComparison())
    return;
  if (!options.jobs.empty())
    options.plan.job = options.jobs.front();
  for (const Choice &choice : options.choices)
    options.plan.values.push_back({choice.name, sema::OverrideValue::read(choice.values.front())});
}

/// Refuses options that are read by phases that `--emit` does not come to.
static void checkHasEffect(DiagnosticEngine &diags) {
  auto refuse = [&](std::initializer_list<const cl::Option *> given, llvm::StringRef why) {
    for (const cl::Option *option : given)
      if (option)
        diags.report(SMLoc(), diag::FlagWithoutEffect)
            << ((option->ArgStr.size() > 1 ? "--" : "-") + option->ArgStr).str() << why;
  };
  auto changed = [](const auto &option) { return isChanged(option) ? &option : nullptr; };
  auto given = [](const auto &list) { return list.empty() ? nullptr : std::addressof(list); };
  if (emit == EmitKind::Ast)
    refuse({changed(job), changed(allJobs), changed(load), given(defines), given(includes), changed(stdlib),
            changed(remarks)},
           "--emit=ast prints one file as it was read, and binds no job");
  if (emit == EmitKind::Ast || emit == EmitKind::Job || emit == EmitKind::Graph)
    refuse({given(printAfter), changed(printAfterAll), changed(verifyEach), changed(timePasses)},
           "--emit=ast, job and graph print what the program is before any pass");
}

FileCache stage::driver::makeCache(bool isOff) { return FileCache(isOff ? "" : getCacheFolder()); }

static void readImport(DriverOptions &options, const char *argv0, DiagnosticEngine &diags) {
  for (const cl::opt<std::string> *option : {&importInput, &importOutput, &importStdlib, &importLauncher})
    if (option->getNumOccurrences() && option->empty())
      diags.report(SMLoc(), diag::EmptyOption) << (option->ArgStr.empty()      ? "<config.json>"
                                                   : option->ArgStr.size() > 1 ? ("--" + option->ArgStr).str()
                                                                               : "-o");
  Existing existing = importForce ? Existing::Replace : Existing::Keep;
  if (checkKeepsInput(importOutput, importInput, diags))
    checkReplaceable(importOutput, existing, diags);
  if (importForce && importOutput == "-")
    diags.report(SMLoc(), diag::FlagWithoutEffect) << "--force"
                                                   << "no file is written (-o)";
  options.import = {importInput,
                    importOutput,
                    existing,
                    importIgnored,
                    importStdlib.getNumOccurrences() ? std::string(importStdlib) : getStdlibFolder(argv0),
                    makeCache(importNoCache),
                    importLauncher,
                    {}};
  for (const std::string &define : importDefines) {
    auto [name, value] = llvm::StringRef(define).split('=');
    if (name.empty() || value.empty())
      diags.report(SMLoc(), diag::BadDefine) << describeDefine(define);
    options.import->defines.push_back({name.str(), {value.str()}});
  }
  if (importLauncher.empty() && !importDefines.empty())
    diags.report(SMLoc(), diag::FlagWithoutEffect) << "-D"
                                                   << "it is of --launcher";
  if (!importLauncher.empty() && !importIgnored.empty())
    diags.report(SMLoc(), diag::FlagWithoutEffect) << "--ignore"
                                                   << "a launcher says which flags are ignored";
}

/// `--fits=80GiB`, for which the job is compiled many times and nothing is kept of it.
static void readFits(DriverOptions &options, DiagnosticEngine &diags) {
  if (!fits.getNumOccurrences())
    return;
  std::optional<Rational> bytes;
  if (fits == "machine")
    options.fits = 0;
  else
    bytes = readQuantity("--fits", fits, Dimension::ofBytes(), diags);
  if (bytes && (bytes->num <= 0 || !bytes->isInteger()))
    diags.report(SMLoc(), diag::BadMemorySize) << fits;
  else if (bytes)
    options.fits = bytes->num;
  auto refuse = [&](bool given, llvm::StringRef name) {
    if (given)
      diags.report(SMLoc(), diag::FitsAndOther) << name;
  };
  refuse(!output.empty(), "-o");
  refuse(prove, "--prove");
  refuse(emit != EmitKind::None, "--emit");
  refuse(remarks, "--remarks");
  refuse(printAfterAll || !printAfter.empty(), "--print-after");
  refuse(timePasses, "--time-passes");
  refuse(tracker, "--tracker");
  refuse(isChanged(names), "--names");
  refuse(isChanged(order), "--order");
  refuse(isChanged(streams), "--streams");
  refuse(isChanged(steps), "--steps");
  refuse(report == ReportKind::Full, "--report=full");
  refuse(report == ReportKind::Text, "--report");
  refuse(options.isComparison(), report == ReportKind::Csv ? "--report=csv" : "a comparison of jobs or values");
  if (options.requests && options.requests->input == "-")
    refuse(true, "--requests=-");
}

/// It lies beside the standard library, in a build tree as a link.
static std::string getDocsFolder(const char *argv0) {
  llvm::SmallString<128> folder(getStdlibFolder(argv0));
  llvm::sys::path::remove_filename(folder);
  llvm::sys::path::append(folder, "docs");
  return folder.str().str();
}

/// `text, full, json or csv`
template <typename Kind> static std::string joinValues(cl::opt<Kind> &option) {
  std::string text;
  for (unsigned i = 0, count = option.getParser().getNumOptions(); i != count; ++i)
    if (llvm::StringRef name = option.getParser().getOption(i); !name.empty())
      text += (text.empty() ? "" : i + 1 == count ? " or " : ", ") + name.str();
  return text;
}

std::string stage::driver::describeDefine(llvm::StringRef define) {
  // `tp in [1, 2]`, `L=`, `tp`.
  llvm::StringRef name = define.trim().take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
  std::string values;
  for (char c : define.contains('[') ? define.split('[').second.split(']').first : llvm::StringRef())
    if (c != ' ')
      values += c;
  return (define + "': write '-D " + (name.empty() ? llvm::StringRef("tp") : name) + "=" +
          (values.empty() ? "4" : values))
      .str();
}

/// As it was called, from which the library is found.
static std::string programName;

static std::string listValues(llvm::StringRef option) {
  return option == emit.ArgStr ? joinValues(emit) : option == report.ArgStr ? joinValues(report) : "";
}

namespace {
/// A flag that a launcher of the library reads; an empty launcher: none does.
struct FrameworkFlag {
  std::string launcher;
  std::string option; ///< Of this command, for the same; empty: none.
};
} // namespace

/// By the text of the library's file, where the comment above a flag says `the option is`.
static FrameworkFlag findFrameworkFlag(llvm::StringRef name) {
  llvm::SmallString<128> path(getStdlibFolder(programName.c_str()));
  llvm::sys::path::append(path, "launchers.stg");
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return {};
  FrameworkFlag found;
  llvm::StringRef text = (*buffer)->getBuffer(), before;
  std::string flag = ("\"--" + name + "\"").str();
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    if (line.consume_front("launcher ")) {
      found.launcher = line.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; }).str();
    } else if (line.contains(flag)) {
      if (before.ltrim().startswith("//"))
        found.option = before.split("the option is `").second.split('`').first.str();
      return found;
    }
    before = line;
  }
  return {};
}

/// Options that people know from other commands and other tools.
static std::string explainOption(llvm::StringRef command, llvm::StringRef name, llvm::StringRef value) {
  if (command == "serve" && name == "requests")
    return ("the file of requests stands alone: write 'stagec serve " + (value.empty() ? "requests.jsonl" : value) +
            " --iteration-time=12ms'")
        .str();
  if (command == "plan" && (name == "objective" || name == "pareto"))
    return ("a search says it in the job: 'search { objective = " + (value.empty() ? "step" : value) + "; ... }'")
        .str();
  if (command.empty() && (name == "search" || name == "plan" || name == "plans" || name == "tune"))
    return "plans are searched by 'stagec plan job.stg'";
  if (command.empty() && name == "gpus")
    return "the ranks of a job are those of its strategy, as in '-D dp=4 -D tp=8'; 'stagec plan job.stg --gpus=16' "
           "searches plans";
  if (name == "output" || name == "out" || name == "outdir" || name == "output-dir")
    return "traces are written by '-o FOLDER', and a report by '--report=json > report.json'";
  if (name == "verbose" || name == "debug")
    return "'--remarks' says why each collective is there, and '--report=full' shows all numbers";
  if (!name.contains('-') && !name.contains('_'))
    return "";
  FrameworkFlag flag = findFrameworkFlag(name);
  if (flag.launcher.empty())
    return "";
  std::string here =
      flag.option.empty() ? "" : "here it is '" + flag.option + (value.empty() ? "" : "=" + value.str()) + "'; ";
  return here + "it is a flag of a framework: 'stagec import --launcher=" + flag.launcher +
         " args.txt' makes a job of such flags, and 'stagec job.stg --as=" + flag.launcher + "' writes them";
}

std::optional<DriverOptions> stage::driver::parseCommandLine(int argc, char **argv, DiagnosticEngine &diags) {
  const cl::OptionCategory *ofJobs[] = {&compileCategory, &getLookCategory(),    &passCategory,        &searchCategory,
                                        &traceCategory,   &getServingCategory(), &getMachineCategory()};
  programName = argc ? argv[0] : "";
  cl::HideUnrelatedOptions(ofJobs);
  cl::HideUnrelatedOptions(importCategory, importCommand);
  cl::HideUnrelatedOptions(docCategory, docCommand);
  prepareServeOptions(/*hides=*/argc < 2 || llvm::StringRef(argv[1]) != "serve");
  preparePlanOptions();
  static const OptionHelp help{"stagec", "stagec job.stg --report", "-D", listValues, explainOption};
  if (!parseOptions(argc, argv, help,
                    "stagec: from a model and a parallel strategy to Chakra execution traces\n\n"
                    "compile  stagec job.stg                       is the program right? says 'ok', or what to mend\n"
                    "         stagec import config.json            the program of a Hugging Face configuration\n"
                    "         stagec import --launcher=megatron_lm args.txt    the program of a framework's arguments\n"
                    "         stagec doc megatron                  what a name of the library means\n"
                    "         stagec doc --html=site               all documentation as a site with search\n"
                    "         stagec --explain CODE                what a message means, by the code behind it\n"
                    "look     stagec job.stg --report              time, memory and communication of a step\n"
                    "         stagec job.stg --prove               does the strategy compute the same as one device?\n"
                    "         stagec job.stg --remarks             why is this communication there?\n"
                    "         stagec job.stg --as=megatron_lm      the plan as arguments of a framework\n"
                    "         stagec job.stg --emit=timeline -o t.svg    a picture of when what runs\n"
                    "trace    stagec job.stg -o traces             one Chakra trace per rank\n"
                    "         stagec job.stg -o traces --astra-sim=astra    and all that ASTRA-sim needs to run them\n"
                    "serve    stagec job.stg --requests=f.jsonl --report    a server that runs the job's model\n"
                    "         stagec serve f.jsonl --iteration-time=12ms    a server alone; 'stagec serve --help'\n"
                    "search   stagec plan job.stg --gpus=64        the best of many plans; 'stagec plan --help'\n"
                    "         stagec job.stg --report -D tp=1,2,4  a table of some plans\n"
                    "         stagec job.stg --fits=80GiB          the largest microbatch and sequence that fit\n"))
    return std::nullopt;
  DriverOptions options;
  unsigned errors = diags.getNumErrors();
  if (importCommand) {
    readImport(options, argv[0], diags);
    return diags.getNumErrors() == errors ? std::optional(std::move(options)) : std::nullopt;
  }
  if (docCommand) {
    if (!docInput.empty() + docAll + (docHtml.getNumOccurrences() > 0) != 1)
      diags.report(SMLoc(), diag::NoDocInput);
    for (const cl::opt<std::string> *option : {&docHtml, &docPages})
      if (option->getNumOccurrences() && option->empty())
        diags.report(SMLoc(), diag::EmptyOption) << ("--" + option->ArgStr).str();
    if (docPages.getNumOccurrences() && !docHtml.getNumOccurrences())
      diags.report(SMLoc(), diag::FlagWithoutEffect)
          << "--docs"
          << "it names the pages of a site: 'stagec doc --html=site --docs=docs'";
    if (docMarkdown.getNumOccurrences() && (!docAll || docMarkdown.empty()))
      diags.report(SMLoc(), diag::FlagWithoutEffect)
          << "--markdown"
          << "it writes the whole library into a folder: 'stagec doc --all --markdown=pages'";
    std::string docs = getDocsFolder(argv[0]);
    options.doc = {docInput,
                   docAll,
                   docMarkdown,
                   docHtml,
                   docPages.getNumOccurrences() ? std::string(docPages) : docs,
                   docs + "/site",
                   docStdlib.getNumOccurrences() ? std::string(docStdlib) : getStdlibFolder(argv[0]),
                   makeCache(docNoCache)};
    return diags.getNumErrors() == errors ? std::optional(std::move(options)) : std::nullopt;
  }
  if (isPlanCommand()) {
    options.search = readPlanCommand(argv[0], diags);
    return diags.getNumErrors() == errors ? std::optional(std::move(options)) : std::nullopt;
  }
  if (isServeCommand()) {
    options.serve = readServeCommand(diags);
    return diags.getNumErrors() == errors ? std::optional(std::move(options)) : std::nullopt;
  }
  if (explain.getNumOccurrences()) {
    if (!input.empty())
      diags.report(SMLoc(), diag::FlagWithoutEffect) << input << "--explain compiles nothing: leave the file out";
    options.explain = {explain, getDocsFolder(argv[0]) + "/Diagnostics.md"};
    return diags.getNumErrors() == errors ? std::optional(std::move(options)) : std::nullopt;
  }
  if (input.empty())
    diags.report(SMLoc(), diag::NoInput);
  options.files.input = input;
  options.report = report;
  readJobs(options, diags);
  options.requests = readRequests(/*limitsCache=*/fits.getNumOccurrences() > 0, diags);
  // A shell variable that is not set must not be an option that is not given.
  for (const cl::opt<std::string> *option : {&job, &output, &astraSim, &ranks, &stdlib, &load, &as})
    if (option->getNumOccurrences() && option->empty())
      diags.report(SMLoc(), diag::EmptyOption) << ((option->ArgStr.size() > 1 ? "--" : "-") + option->ArgStr).str();
  options.files.includeDirs.assign(includes.begin(), includes.end());
  options.files.stdlibDir = stdlib.getNumOccurrences() ? std::string(stdlib) : getStdlibFolder(argv[0]);
  options.files.cache = makeCache(noCache);
  // A folder that is not there would be looked into without effect.
  for (const std::string &folder : includes)
    if (!llvm::sys::fs::is_directory(folder))
      diags.report(SMLoc(), diag::CannotReadFile) << folder << "not a folder";
  options.emit = emit;
  options.astraSim = astraSim;
  readMachine(options, diags);
  options.prove = options.plan.servesSample = prove;
  options.remarks = remarks;
  options.files.warningsAreErrors = warningsAreErrors;
  options.passes.printAfter.assign(printAfter.begin(), printAfter.end());
  options.passes.printAfterAll = printAfterAll;
  options.passes.verifyEach = verifyEach;
  options.passes.timePasses = timePasses;
  options.launcher = as;
  if (!as.empty())
    options.files.libraries.push_back("launchers");
  readFits(options, diags);
  options.picture = readPicture(emit, input, output, force, diags);
  bool traces = !output.empty() && options.picture.file.empty();
  if (traces)
    options.traces.directory = output;
  options.traces.force = force;
  options.traces.names = names == Names::All;
  options.traces.tracker = tracker;
  options.times = times;
  options.traces.steps = steps;
  // A step takes up to half a minute, and each is like the one before.
  if (constexpr unsigned most = 10; prove && steps > most)
    diags.report(SMLoc(), diag::StepsToProve) << int64_t(most) << int64_t(steps);
  else
    checkNumSteps(steps, diags);
  options.traces.mergesStreams = streams == Streams::One;
  options.traces.orderAsData = order == Order::Data;
  options.traces.jobs = options.threads = jobs;
  if (!ranks.empty() && !parseRanges(ranks, options.traces.ranks))
    diags.report(SMLoc(), diag::BadRanks) << ranks;
  if (traces)
    checkKeepsInput(output, input, diags);
  if (!astraSim.empty()) {
    checkKeepsInput(astraSim, input, diags);
    if (!ranks.empty())
      diags.report(SMLoc(), diag::AstraSimNeedsAllRanks);
  }
  // No flag is ignored (law L14). A report says how large the traces would be, which depends on some of them.
  auto checkNeedsTraces = [&](bool given, llvm::StringRef name) {
    if (given)
      diags.report(SMLoc(), diag::FlagNeedsOutput) << name;
  };
  if (!traces) {
    checkNeedsTraces(emit == EmitKind::Chakra, "--emit=chakra");
    checkNeedsTraces(times, "--times");
    checkNeedsTraces(!astraSim.empty(), "--astra-sim");
    checkNeedsTraces(force && (options.picture.file.empty() || options.picture.file == "-"), "--force");
    checkNeedsTraces(!ranks.empty(), "--ranks");
    checkNeedsTraces(isChanged(jobs) && !options.isComparison(), "-j");
  }
  if (!traces && report == ReportKind::None) {
    checkNeedsTraces(isChanged(names), "--names");
    checkNeedsTraces(tracker, "--tracker");
    checkNeedsTraces(isChanged(order), "--order");
    checkNeedsTraces(isChanged(streams), "--streams");
    checkNeedsTraces(isChanged(steps) && !prove && emit != EmitKind::Time, "--steps");
  }
  if (options.isComparison()) {
    if (report == ReportKind::Full)
      diags.report(SMLoc(), diag::NotForSeveral) << "--report=full";
    // One plan has a graph, a proof and traces; many have a table.
    auto checkOnePlan = [&](bool given, llvm::StringRef name) {
      if (given)
        diags.report(SMLoc(), diag::NotForSeveral) << name;
    };
    checkOnePlan(traces, "-o");
    checkOnePlan(!as.empty(), "--as");
    checkOnePlan(prove, "--prove");
    checkOnePlan(options.requests.has_value(), "--requests");
    checkOnePlan(emit != EmitKind::None && emit != EmitKind::Breakdown, "--emit");
    checkOnePlan(remarks, "--remarks");
    if (report != ReportKind::None) { // else they were refused above
      checkOnePlan(tracker, "--tracker");
      checkOnePlan(isChanged(names), "--names");
      checkOnePlan(isChanged(order), "--order");
      checkOnePlan(isChanged(streams), "--streams");
      checkOnePlan(isChanged(steps), "--steps");
    }
    checkOnePlan(printAfterAll || !printAfter.empty(), "--print-after");
    checkOnePlan(timePasses, "--time-passes");
    if (report == ReportKind::None && emit != EmitKind::Breakdown)
      diags.report(SMLoc(), diag::SeveralNeedReport);
    if (report != ReportKind::None && emit == EmitKind::Breakdown)
      diags.report(SMLoc(), diag::EmitAndReport);
    if (diags.getNumErrors() != errors)
      return std::nullopt;
    return options;
  }
  checkHasEffect(diags);
  for (auto [given, name] : {std::pair(traces, "-o"), std::pair(emit != EmitKind::None, "--emit"),
                             std::pair(report != ReportKind::None, "--report")})
    if (prove && given)
      diags.report(SMLoc(), diag::ProveAndOutput) << name;
  for (auto [given, name] :
       {std::pair(traces, "-o"), std::pair(emit != EmitKind::None, "--emit"),
        std::pair(report != ReportKind::None, "--report"), std::pair(bool(prove), "--prove"),
        std::pair(options.requests.has_value(), "--requests"), std::pair(fits.getNumOccurrences() > 0, "--fits")})
    if (!as.empty() && given)
      diags.report(SMLoc(), diag::FlagWithoutEffect) << name << "--as prints the arguments and nothing else";
  if (prove && options.requests)
    diags.report(SMLoc(), diag::ProveAndOutput) << "--requests";
  if (isChanged(steps) && options.requests)
    diags.report(SMLoc(), diag::FlagWithoutEffect) << "--steps"
                                                   << "a file of requests is served once";
  if (traces && emit != EmitKind::None && emit != EmitKind::Chakra)
    diags.report(SMLoc(), diag::EmitAndOutput);
  static constexpr llvm::StringLiteral ofFiles[] = {".json", ".csv", ".txt", ".md", ".html", ".svg",
                                                    ".pdf",  ".png", ".log", ".et", ".gz"};
  if (llvm::StringRef extension = llvm::sys::path::extension(output); traces && emit == EmitKind::None &&
                                                                      llvm::is_contained(ofFiles, extension) &&
                                                                      !llvm::sys::fs::is_directory(output)) {
    std::string name = extension == ".json" || extension == ".csv" ? extension.drop_front().str() : "text";
    bool isPicture = extension == ".svg" || extension == ".pdf" || extension == ".png" || extension == ".html";
    diags.report(SMLoc(), diag::CannotWriteFile)
        << output
        << "-o names a folder of traces: write '-o " + llvm::sys::path::stem(output).str() + "' for traces; " +
               (isPicture ? "a picture is one of --emit, as in '--emit=timeline -o " +
                                (llvm::sys::path::stem(output) + ".svg'").str()
                          : "a report is printed, as in '--report=" + name + " > " + output + "'");
  }
  if (report != ReportKind::None && emit != EmitKind::None && emit != EmitKind::Memory && emit != EmitKind::Chakra)
    diags.report(SMLoc(), diag::EmitAndReport);
  if (diags.getNumErrors() != errors)
    return std::nullopt;
  return options;
}
