//===- Options.h - the command line of stagec ------------------*- C++ -*-===//
#ifndef STAGE_LIB_DRIVER_OPTIONS_H
#define STAGE_LIB_DRIVER_OPTIONS_H

#include "stage/CodeGen/Emit.h"
#include "stage/Compiler/Session.h"
#include "stage/Machine/Machine.h"
#include "stage/Machine/Runtime.h"
#include "stage/Schedule/Schedule.h"
#include "stage/Search/Search.h"
#include "stage/Serving/Simulation.h"
#include "stage/Support/FileCache.h"
#include "stage/Support/Files.h"
#include "llvm/Support/CommandLine.h"

namespace stage::driver {

struct ServedFile;

enum class EmitKind {
  None,
  Ast,
  Job,
  Graph,
  Program,
  Memory,
  Schedule,
  Time,
  Prices,
  Timeline,
  MemoryTimeline,
  Mesh,
  Layer,
  Breakdown,
  Dot,
  Chakra
};
enum class ReportKind { None, Text, Full, Json, Csv };

/// `-D tp=1,2,4`: a name and the values it is given in turn.
struct Choice {
  std::string name;
  std::vector<std::string> values;
};

/// `stagec import config.json -o job.stg`, `stagec import --launcher=megatron_lm args.txt`.
struct ImportCommand {
  std::string input;                  ///< `-`: standard input.
  std::string output;                 ///< `-`: standard output.
  Existing existing = Existing::Keep; ///< What becomes of a file that has its name.
  std::vector<std::string> ignored;   ///< Fields to go on without.
  std::string stdlibDir;
  FileCache cache;             ///< Of syntax trees.
  std::string launcher;        ///< Whose arguments the input has; empty: it is a configuration.
  std::vector<Choice> defines; ///< Values that the arguments do not say.
};

/// `stagec doc data_parallel`, `stagec doc file.stg`, `stagec doc --all`.
struct DocCommand {
  std::string input;
  bool all = false;     ///< Of the library; then there is no input.
  std::string markdown; ///< A folder for pages instead of text; empty: none.
  std::string site;     ///< A folder for a site of the library and the documentation; empty: none.
  std::string docs;     ///< The pages of the documentation.
  std::string assets;   ///< The template, the style and the script of a site.
  std::string stdlibDir;
  FileCache cache; ///< Of syntax trees.
};

/// `stagec --explain size-not-divisible`.
struct ExplainCommand {
  std::string code;
  std::string manual; ///< The file that describes codes.
};

/// `stagec serve requests.jsonl --iteration-time=12ms`.
struct ServeCommand {
  std::string input;                ///< `-`: standard input.
  std::vector<std::string> ignored; ///< Fields to go on without.
  serving::SimulationOptions options;
  double iterationTime = 0; ///< Seconds that a stage takes for an iteration, besides what the model takes.
  /// Of a job whose attention decodes in another way (docs/language, R21.7): an iteration of prompts and of requests
  /// that decode is two units.
  bool decodesApart = false;
  Machine machine = MachineRates(); ///< Of the job that serves the requests, if it names one.
  std::vector<std::string> rates;   ///< Those that the command line gives: `--flops`.
  Runtime runtime;                  ///< Of the job.
  bool usesModel = false;           ///< Iterations last as long as the job takes on its machine.
  /// The iterations that are listed, from the first to before the last; none: no list is asked for.
  std::optional<std::pair<int64_t, int64_t>> window;
  bool takesTime = false;      ///< The command line says how long iterations last.
  bool limitsPrefixes = false; ///< The store of prefixes is said, so that some request must have one.
  ReportKind report = ReportKind::Text;
};

/// `stagec plan job.stg --gpus=1024 -o best.stg`.
struct PlanCommand {
  SessionOptions files;
  SearchRequest request;
  ReportKind report = ReportKind::Text;
  bool prove = false;
  bool showsProgress = false; ///< Also without a terminal, in lines.
  std::string output;         ///< The file of the best plan; empty: none, `-`: standard output, and nothing else there.
  Existing existing = Existing::Keep;
  std::string picture; ///< The file of the front as SVG or PDF; empty: none.
  PictureFrame frame{"", 0};
  std::string launcher; ///< Whose arguments of the best plan are printed, and nothing else; empty: none.
};

/// A place in a step: of `--emit=schedule` in units of time or percent, else in ticks.
struct PictureTime {
  int64_t value = 0;
  bool isPercent = false;
  std::string text; ///< For messages.
};

/// What a picture of `--emit` shows, and where it is written.
struct PictureOptions {
  /// By the end of the file's name: SVG, or PDF made of it; trace events (.json) of a timeline; a table (.csv) or an
  /// allocator's snapshot (.pickle) of a memory-timeline.
  enum class Format { Svg, Pdf, Events, Table, Snapshot };
  std::string file; ///< `-`: standard output; empty: text there.
  Format format = Format::Svg;
  std::string title; ///< Empty: the job and its plan.
  int64_t width = 0; ///< Pixels.
  std::optional<PictureTime> from, to;
  /// How long units take in the picture of a schedule; none: by their FLOPs.
  std::optional<PhaseDurations> scheduleTimes = standardDurations;
  std::string layer; ///< The path of one; empty: the first, or of a graph all.
};

/// What the user asks for: what is compiled, and what is printed of it, and where.
struct DriverOptions {
  std::optional<ImportCommand> import;   ///< If this is all.
  std::optional<DocCommand> doc;         ///< The same.
  std::optional<ExplainCommand> explain; ///< The same.
  std::optional<ServeCommand> serve;     ///< If this is all.
  std::optional<PlanCommand> search;     ///< If this is all.
  std::optional<ServeCommand> requests;  ///< Of a job that serves them.
  SessionOptions files;
  Plan plan;
  /// The plans of a comparison: these jobs of the file, or all, each under every combination of the values. `plan` is
  /// then empty.
  std::vector<std::string> jobs;
  bool allJobs = false;
  std::vector<Choice> choices;
  EmitKind emit = EmitKind::None;
  Machine machine = MachineUnits(); ///< Of --emit=time, of a job without a machine.
  ReportKind report = ReportKind::None;
  /// Bytes of a rank's memory; what fits there is searched for. 0: those of the job's machine.
  std::optional<__int128> fits;
  bool prove = false;
  bool remarks = false;
  unsigned threads = 0; ///< That compile the plans of a comparison; 0: one per core, as far as it is worth it.
  PassOptions passes;
  std::string launcher; ///< Whose arguments of the job are printed; empty: none.
  PictureOptions picture;
  bool times = false;   ///< Traces say what nodes take.
  EmitOptions traces;   ///< `directory` is empty if none are to be written.
  std::string astraSim; ///< The folder of what ASTRA-sim needs beside the traces; empty: none.

  /// More than one plan is asked for, or a table.
  bool isComparison() const;
};

/// The options that say what is looked at, and how.
llvm::cl::OptionCategory &getLookCategory();
/// The picture of an `--emit` and its -o. Faults are reported, and options of pictures that it does not have.
PictureOptions readPicture(EmitKind emit, const std::string &input, const std::string &output, bool force,
                           DiagnosticEngine &diags);
/// The options of a server, which are some of a job that serves requests, too.
llvm::cl::OptionCategory &getServingCategory();
/// The options that say what a machine does, which `stagec serve` and `--emit=time` share.
llvm::cl::OptionCategory &getMachineCategory();
/// The machine of `--emit=time`. Rates that nothing asks for are reported; `requests` and `emit` must be known.
void readMachine(DriverOptions &options, DiagnosticEngine &diags);
/// The rates of a job's machine, with those that the command line gives in their place. Faults are reported.
MachineRates replaceRates(MachineRates machine, DiagnosticEngine &diags);
/// `--requests` of a job and what goes with it; nothing if it is not given. Faults are reported.
/// `limitsCache`: the largest cache is searched for (--fits).
std::optional<ServeCommand> readRequests(bool limitsCache, DiagnosticEngine &diags);
/// Hides options of others from the help of `stagec serve`; called before the command line is read.
void prepareServeOptions(bool hides);
/// `stagec serve` was given.
bool isServeCommand();
/// Its options. Faults are reported.
ServeCommand readServeCommand(DiagnosticEngine &diags);

/// Hides options of others from the help of `stagec plan`; called before the command line is read.
void preparePlanOptions();
/// `stagec plan` was given.
bool isPlanCommand();
/// Its options. Faults are reported.
PlanCommand readPlanCommand(const char *argv0, DiagnosticEngine &diags);
/// Splits at the commas outside of brackets and texts: `1,2,4` has three parts, `[3,4],[4,3]` two, `min(a,b)` one.
std::vector<std::string> splitAtCommas(llvm::StringRef text);
/// Of syntax trees.
FileCache makeCache(bool isOff);

/// The value of `loads` that a file of JSON says (`--load`), as the language writes it. Nothing after a report.
std::optional<std::string> readLoadFile(llvm::StringRef path, DiagnosticEngine &diags);
/// Reads the command line. Faults are reported, and give nothing; `--help` and `--version` end the program.
std::optional<DriverOptions> parseCommandLine(int argc, char **argv, DiagnosticEngine &diags);

} // namespace stage::driver

#endif // STAGE_LIB_DRIVER_OPTIONS_H
