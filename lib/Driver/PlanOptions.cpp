//===- PlanOptions.cpp - the command line of stagec plan ------------------===//
#include "ConvertPicture.h"
#include "Definitions.h"
#include "Options.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/Support/CommandLine.h"
#include "stage/Support/Installation.h"
#include "llvm/Support/FileSystem.h"

using namespace stage;
using namespace stage::driver;
namespace cl = llvm::cl;

namespace {
cl::SubCommand command("plan", "search for the best plan of a job, and say why not another one");
cl::OptionCategory category("stagec plan options");
cl::opt<std::string> input(cl::Positional, cl::Required, cl::desc("<job.stg>"), cl::cat(category), cl::sub(command));
cl::opt<std::string> job("job", cl::desc("Search plans of this job of the file"), cl::value_desc("name"),
                         cl::cat(category), cl::sub(command));
cl::opt<unsigned> gpus("gpus", cl::desc("Ranks of every plan, in place of what the job says"), cl::init(0),
                       cl::value_desc("n"), cl::cat(category), cl::sub(command));
constexpr unsigned standardTop = 5;
cl::opt<unsigned> top("top", cl::desc("Plans that are shown (default: 5)"), cl::init(standardTop), cl::value_desc("n"),
                      cl::cat(category), cl::sub(command));
cl::list<std::string> defines("D", cl::Prefix,
                              cl::desc("Values in place of those of the program: tp=1,2,4, or tp=8 for one"),
                              cl::value_desc("name=values"), cl::cat(category), cl::sub(command));
cl::opt<double> seconds("seconds", cl::desc("Begin no plan after so many seconds; the most promising ones come first"),
                        cl::init(0), cl::value_desc("s"), cl::cat(category), cl::sub(command));
cl::opt<unsigned> plans("plans", cl::desc("Compile so many plans at most; the most promising ones come first"),
                        cl::init(0), cl::value_desc("n"), cl::cat(category), cl::sub(command));
cl::opt<bool> progress("progress",
                       cl::desc("Say on standard error how long the search takes, and every ten seconds how far it is "
                                "(default: on a terminal alone)"),
                       cl::cat(category), cl::sub(command));
cl::opt<bool> noBounds("no-bounds", cl::desc("Compile also what cannot fit or be among the best, to check bounds"),
                       cl::cat(category), cl::sub(command));
cl::opt<bool> prove("prove", cl::desc("Prove the plans that are shown, as --prove does of a job"), cl::cat(category),
                    cl::sub(command));
cl::opt<std::string> output("o", cl::desc("Write the first plan as a job into <best.stg>"), cl::value_desc("best.stg"),
                            cl::cat(category), cl::sub(command));
cl::opt<std::string> picture("picture",
                             cl::desc("Draw the front of two objectives ('pareto') into <front.svg>, or front.pdf"),
                             cl::value_desc("front.svg"), cl::cat(category), cl::sub(command));
constexpr unsigned minWidth = 640, maxWidth = 16384, standardWidth = 900;
cl::opt<unsigned> width("width", cl::desc("Width of the picture in pixels (default: 900)"), cl::init(standardWidth),
                        cl::value_desc("pixels"), cl::cat(category), cl::sub(command));
cl::opt<std::string> title("title", cl::desc("Title of the picture (default: the job and its records)"),
                           cl::value_desc("text"), cl::cat(category), cl::sub(command));
cl::opt<std::string> as("as",
                        cl::desc("Print the first plan as arguments of a framework, by a launcher of the library, and "
                                 "nothing else"),
                        cl::value_desc("megatron_lm"), cl::cat(category), cl::sub(command));
cl::opt<bool> force("force", cl::desc("Replace <best.stg> if it exists"), cl::cat(category), cl::sub(command));
cl::opt<ReportKind> report("report", cl::desc("How plans are shown"),
                           cl::values(clEnumValN(ReportKind::Text, "text", "for people (default)"),
                                      clEnumValN(ReportKind::Json, "json", "one JSON object with exact numbers"),
                                      clEnumValN(ReportKind::Csv, "csv", "a table, one line per plan")),
                           cl::init(ReportKind::Text), cl::cat(category), cl::sub(command));
cl::opt<unsigned> threads("j", cl::Prefix, cl::desc("Threads that compile plans (default: one per core)"), cl::init(0),
                          cl::value_desc("n"), cl::cat(category), cl::sub(command));
cl::list<std::string> includes("I", cl::Prefix, cl::desc("Look for imports in <folder>, too"), cl::value_desc("folder"),
                               cl::cat(category), cl::sub(command));
cl::opt<std::string> stdlib("stdlib", cl::desc("The folder of the standard library (default: the compiler's own)"),
                            cl::value_desc("folder"), cl::cat(category), cl::sub(command));
cl::opt<bool> noCache("no-cache", cl::desc("Parse all files, and keep no syntax trees"), cl::cat(category),
                      cl::sub(command));
} // namespace

bool stage::driver::isPlanCommand() { return bool(command); }

void stage::driver::preparePlanOptions() { cl::HideUnrelatedOptions(category, command); }

/// `--picture`, `--width`, `--title`.
static void readFrontPicture(PlanCommand &result, DiagnosticEngine &diags) {
  for (const cl::Option *option : {static_cast<const cl::Option *>(&width), static_cast<const cl::Option *>(&title)})
    if (option->getNumOccurrences() && picture.empty())
      diags.report(SMLoc(), diag::FlagWithoutEffect)
          << ("--" + option->ArgStr).str() << "no picture is drawn (--picture)";
  if (picture.empty())
    return;
  if (width < minWidth || width > maxWidth)
    diags.report(SMLoc(), diag::BadPictureWidth) << int64_t(minWidth) << int64_t(maxWidth) << int64_t(width);
  bool isPdf = llvm::StringRef(picture).endswith(".pdf");
  if (!isPdf && !llvm::StringRef(picture).endswith(".svg"))
    diags.report(SMLoc(), diag::FrontNeedsName) << picture;
  if (isPdf)
    findConverter(diags);
  if (checkKeepsInput(picture, input, diags))
    checkReplaceable(picture, result.existing, diags);
  result.picture = picture;
  result.frame = {title, int64_t(width)};
  result.request.wantsFront = true;
}

PlanCommand stage::driver::readPlanCommand(const char *argv0, DiagnosticEngine &diags) {
  PlanCommand result;
  for (const cl::opt<std::string> *option : {&input, &job, &output, &stdlib, &as, &picture})
    if (option->getNumOccurrences() && option->empty())
      diags.report(SMLoc(), diag::EmptyOption) << (option->ArgStr.empty()      ? "<job.stg>"
                                                   : option->ArgStr.size() > 1 ? ("--" + option->ArgStr).str()
                                                                               : "-o");
  result.files.input = input;
  result.files.includeDirs.assign(includes.begin(), includes.end());
  result.files.stdlibDir = stdlib.getNumOccurrences() ? std::string(stdlib) : getStdlibFolder(argv0);
  result.files.cache = makeCache(noCache);
  for (const std::string &folder : includes)
    if (!llvm::sys::fs::is_directory(folder))
      diags.report(SMLoc(), diag::CannotReadFile) << folder << "not a folder";
  SearchRequest &request = result.request;
  request.plan.job = job;
  for (const std::string &define : defines) {
    auto [name, text] = llvm::StringRef(define).split('=');
    sema::SearchChange change{name.trim().str(), {}};
    bool isRight = !change.name.empty();
    for (const std::string &value : splitAtCommas(text)) {
      isRight &= !value.empty();
      change.values.push_back(sema::OverrideValue::read(value));
    }
    if (!isRight)
      diags.report(SMLoc(), diag::BadDefine) << describeDefine(define);
    for (const char *entry : {"machine", "runtime"}) // the command line has no imports
      if (llvm::StringRef(change.name).rsplit('.').second == entry || change.name == entry)
        result.files.libraries.push_back(entry + std::string("s"));
    request.changes.push_back(std::move(change));
  }
  auto checkCount = [&](const cl::opt<unsigned> &option) {
    if (option.getNumOccurrences() && option == 0)
      diags.report(SMLoc(), diag::FlagWithoutEffect) << ("--" + option.ArgStr).str() << "it must be at least 1";
  };
  checkCount(gpus);
  checkCount(top);
  checkCount(plans);
  if (seconds.getNumOccurrences() && !(seconds > 0))
    diags.report(SMLoc(), diag::FlagWithoutEffect) << "--seconds"
                                                   << "it must be above 0";
  if (gpus)
    request.changes.insert(request.changes.begin(), {"gpus", {int64_t(gpus)}});
  request.top = top;
  request.threads = threads;
  request.mostPlans = plans;
  request.seconds = seconds;
  request.usesBounds = !noBounds;
  result.prove = prove;
  result.showsProgress = progress;
  result.report = report;
  result.output = output;
  result.existing = force ? Existing::Replace : Existing::Keep;
  if (!output.empty() && checkKeepsInput(output, input, diags))
    checkReplaceable(output, result.existing, diags);
  readFrontPicture(result, diags);
  result.launcher = as;
  if (!as.empty()) {
    result.files.libraries.push_back("launchers");
    auto refuse = [&](bool given, llvm::StringRef name) {
      if (given)
        diags.report(SMLoc(), diag::FlagWithoutEffect) << name << "--as prints the arguments and nothing else";
    };
    refuse(!output.empty(), "-o");
    refuse(!picture.empty(), "--picture");
    refuse(prove, "--prove");
    refuse(report != ReportKind::Text, "--report");
  }
  if (force && output.empty() && picture.empty())
    diags.report(SMLoc(), diag::FlagWithoutEffect) << "--force"
                                                   << "no file is written (-o)";
  if (output == "-" && report != ReportKind::Text)
    diags.report(SMLoc(), diag::FlagWithoutEffect) << "-o -"
                                                   << "the report is written there";
  return result;
}
