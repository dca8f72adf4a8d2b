//===- Plan.cpp - stagec plan ---------------------------------------------===//
//
//   stagec plan job.stg --gpus=1024 --top=3 -o best.stg
//
// A client of stage/Search/Search.h: options come in, tables, JSON or a job go out. The first plan is
// compiled once more, for what is too long to be kept of all.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "ConvertPicture.h"
#include "stage/Search/Search.h"
#include "stage/Support/Table.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <csignal>

using namespace stage;
using namespace stage::driver;

/// The first interrupt ends the search, whose best plans are then shown; the second one ends the program.
static std::atomic<bool> isInterrupted = false;
static void interrupt(int signal) {
  isInterrupted = true;
  std::signal(signal, SIG_DFL);
}

/// `64 of 21,064 plans compiled or left out, some 45 s left`
static std::string describe(const SearchProgress &progress) {
  using Phase = SearchProgress::Phase;
  std::string text = formatCount(progress.done) + " of " + formatCount(progress.done + progress.left);
  text += progress.phase == Phase::Decide ? " candidates decided by values"
          : progress.phase == Phase::Bind ? " candidates bound"
                                          : " candidates compiled or left out";
  return text + ", some " + formatDuration(progress.seconds) + " left";
}

/// How far it is: on a terminal ten times a second in one line, and with `--progress` a line in ten seconds, and one
/// with how long the search takes once its first plans are compiled.
static std::function<void(const SearchProgress &)> makeProgress(bool asLines) {
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds first(1000), between(100), betweenLines(10'000);
  if (asLines)
    return [last = Clock::now()](const SearchProgress &progress) mutable {
      Clock::time_point now = Clock::now();
      if (!progress.isEstimate && now - last < betweenLines)
        return;
      last = now;
      llvm::errs() << describe(progress) << '\n';
    };
  if (!llvm::errs().is_displayed())
    return nullptr;
  return [begin = Clock::now(), last = Clock::time_point()](const SearchProgress &progress) mutable {
    Clock::time_point now = Clock::now();
    if (now - begin < first || now - last < between)
      return;
    last = now;
    llvm::errs() << '\r' << describe(progress) << "\033[K";
  };
}

/// What would make the best plan shorter, the largest effect first.
static bool printLimits(Session &session, const SearchResult &found) {
  Result compiled = session.compile(found.getPlan(found.best.front().number));
  const Report *report = compiled.getReport();
  if (!report || !report->step)
    return false;
  StepReport step = *report->step;
  if (!completeStepReport(compiled.getCompilation(), step) || !step.sensitivities)
    return false;
  std::vector<Sensitivity> list = step.sensitivities->list;
  llvm::stable_sort(list, [](const Sensitivity &a, const Sensitivity &b) { return a.step < b.step; });
  llvm::outs() << "\nwhat limits the first plan\n";
  constexpr size_t mostShown = 3;
  constexpr double percent = 100;
  size_t numShown = 0;
  for (const Sensitivity &row : list) {
    if (row.step >= step.time.step || numShown++ == mostShown)
      break;
    double share = double(row.step - step.time.step) / double(step.time.step) * percent;
    llvm::outs() << "  " << (row.times.num > row.times.den ? "1 % more of " : "10 % less of ") << row.entry << ": step "
                 << llvm::format("%.3f", share) << " %\n";
  }
  for (const auto &[name, ticks] : found.best.front().shares)
    if (double(ticks) > 0.01 * double(step.time.step))
      llvm::outs() << "  " << name << ": " << formatPercent(ticks, step.time.step) << " % of the step\n";
  return true;
}

static bool proveAll(const PlanCommand &command, const SearchResult &found) {
  bool good = true;
  for (const FoundPlan &plan : found.best) {
    DriverOptions options;
    options.files = command.files;
    options.plan = found.getPlan(plan.number);
    options.plan.servesSample = options.prove = true;
    llvm::outs() << "\nproof of";
    for (size_t i = 0; i != found.names.size(); ++i)
      if (found.varies[i] && !plan.values[i].empty())
        llvm::outs() << ' ' << found.names[i] << " = " << plan.values[i];
    llvm::outs() << '\n';
    llvm::outs().flush();
    good &= runProof(options);
  }
  return good;
}

static bool drawFront(const PlanCommand &command, const SearchResult &found, DiagnosticEngine &diags) {
  std::string picture;
  llvm::raw_string_ostream os(picture);
  printFront(os, found, command.frame);
  os.flush();
  if (llvm::StringRef(command.picture).endswith(".pdf")) {
    std::optional<std::string> pdf = convertToPdf(picture, diags);
    if (!pdf)
      return false;
    picture = std::move(*pdf);
  }
  return writeFile(command.picture, picture, command.existing, diags);
}

bool stage::driver::runPlan(const PlanCommand &command) {
  Session session(command.files, getMessagePrinter());
  if (!session.load())
    return false;
  SearchRequest request = command.request;
  request.stop = &isInterrupted;
  request.progress = makeProgress(command.showsProgress);
  std::signal(SIGINT, interrupt);
  keepMemoryOfPlans();
  std::optional<SearchResult> found = findPlans(session, request);
  if (request.progress && !command.showsProgress)
    llvm::errs() << "\r\033[K";
  if (!found)
    return false;
  if (!command.launcher.empty()) {
    Compilation c(session);
    return bindPlan(c, found->getPlan(found->best.front().number)) && printArguments(c, command.launcher);
  }
  bool writesText = command.output == "-";
  if (!command.output.empty()) {
    std::optional<std::string> text = writePlan(session, *found, found->best.front());
    if (!text || !writeFile(command.output, *text, command.existing, session.getDiags()))
      return false;
  }
  if (!command.picture.empty() && !drawFront(command, *found, session.getDiags()))
    return false;
  if (writesText)
    return true;
  if (command.report == ReportKind::Json) {
    printJson(llvm::outs(), *found);
  } else if (command.report == ReportKind::Csv) {
    printCsv(llvm::outs(), *found);
  } else {
    print(llvm::outs(), *found);
    if (!printLimits(session, *found))
      return false;
  }
  return !command.prove || proveAll(command, *found);
}
