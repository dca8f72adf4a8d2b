//===- Compare.cpp - several jobs or values, in one table -----------------===//
//
// Problem: which of these jobs, or which `tp` and `pp`, is best?
//
//   stagec file.stg --all-jobs --report
//   stagec file.stg -D tp=1,2,4,8 -D pp=1,2,4 --report=csv
//
// Algorithm: each plan is a job with one combination of values, the last `-D` varying fastest. A session compiles all
// plans in several threads, and only the numbers of each are kept. A plan that has errors is a line of the table with
// the first of them: it does not concern the others. Results are shown in the order of the plans, whoever is first.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/Report/Breakdown.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"
#include <mutex>
#ifdef __GLIBC__
#include <malloc.h>
#endif

using namespace stage;
using namespace stage::driver;

void stage::driver::keepMemoryOfPlans() {
#ifdef __GLIBC__
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  mallopt(M_TOP_PAD, 8 << 20);
  mallopt(M_MMAP_THRESHOLD, 32 << 20); // what glibc comes to by itself, unless one of these is said
#endif
}

namespace {
/// What is kept of a plan that was compiled.
struct PlanResult {
  ComparedPlan row;
  std::string warnings; ///< Of a plan that was not refused.
  std::string json;     ///< If that is asked for.
};

class Comparer {
public:
  explicit Comparer(const DriverOptions &options)
      : options(options), names(getNames(options)), session(options.files, getMessagePrinter()), json(llvm::outs()) {}

  bool run() {
    if (!session.load() || !findJobs())
      return false;
    size_t numPlans = jobs.size();
    for (const Choice &choice : options.choices)
      numPlans *= choice.values.size();
    comparison.names = names;
    results.resize(numPlans);
    keepMemoryOfPlans();
    session.compileAll(
        numPlans, options.threads, [this](size_t number) { return getPlan(number); },
        [this](size_t number, Result result) { add(number, summarize(number, result)); });
    bool isAnyGood = llvm::any_of(comparison.plans, [](const ComparedPlan &plan) { return plan.costs.has_value(); });
    if (options.emit == EmitKind::Breakdown) {
      if (!isAnyGood)
        return refuseAll();
      auto printSvg = [&](llvm::raw_ostream &os) {
        printBreakdown(os, comparison, {getTitle(), options.picture.width});
      };
      return writePicture(options, printSvg, session.getDiags());
    }
    if (options.report == ReportKind::Text)
      print(llvm::outs(), comparison);
    else if (options.report == ReportKind::Csv)
      printCsv(llvm::outs(), comparison);
    else
      json.finish();
    return isAnyGood;
  }

private:
  /// Of a picture no bar would be left.
  bool refuseAll() {
    for (const ComparedPlan &plan : comparison.plans)
      session.getDiags().report(SMLoc(), diag::NoPlanToDraw) << plan.job << plan.refusal;
    return false;
  }

  /// `job pretrain`, with the values that all plans have.
  std::string getTitle() const {
    if (!options.picture.title.empty())
      return options.picture.title;
    std::string title = (jobs.size() == 1 ? "job " : "jobs ") + llvm::join(jobs, ", "), values;
    for (const Choice &choice : options.choices)
      if (choice.values.size() == 1)
        values += (values.empty() ? "" : ", ") + choice.name + " = " + choice.values.front();
    return values.empty() ? title : title + " (" + values + ")";
  }

  /// Those that vary.
  static std::vector<std::string> getNames(const DriverOptions &options) {
    std::vector<std::string> names;
    for (const Choice &choice : options.choices)
      if (choice.values.size() > 1)
        names.push_back(choice.name);
    return names;
  }

  bool findJobs() {
    if (options.allJobs)
      jobs = session.listJobs();
    auto find = [&](llvm::StringRef name) {
      if (const ast::JobDecl *job = sema::findJob(session.getFiles(), name, session.getDiags()))
        jobs.push_back(job->name.name.str());
    };
    // Without names, and where the file has none, the only job, or what is wrong.
    for (llvm::StringRef name : options.jobs)
      find(name);
    if (jobs.empty() && !session.getDiags().hasErrors())
      find("");
    return !session.getDiags().hasErrors();
  }

  /// The job of a plan and which of its values each choice has: the last `-D` varies fastest, the job slowest.
  std::pair<size_t, std::vector<size_t>> decode(size_t number) const {
    std::vector<size_t> chosen(options.choices.size());
    for (size_t i = chosen.size(); i-- > 0;) {
      size_t count = options.choices[i].values.size();
      chosen[i] = number % count;
      number /= count;
    }
    return {number, std::move(chosen)};
  }

  Plan getPlan(size_t number) const {
    auto [job, chosen] = decode(number);
    Plan plan(jobs[job]);
    for (auto [choice, value] : llvm::zip(options.choices, chosen))
      plan.values.push_back({choice.name, sema::OverrideValue::read(choice.values[value])});
    return plan;
  }

  PlanResult summarize(size_t number, Result &result) const {
    PlanResult kept;
    auto [job, chosen] = decode(number);
    kept.row.job = jobs[job];
    for (auto [choice, value] : llvm::zip(options.choices, chosen))
      if (choice.values.size() > 1)
        kept.row.values.push_back(choice.values[value]);
    const Report *report = result.getReport();
    if (report)
      kept.row.costs = stage::summarize(*report);
    else
      kept.row.refusal = getErrorText(result.getDiagnostics());
    if (options.report == ReportKind::Json)
      kept.json = JsonComparison::describe(kept.row, names, report);
    llvm::raw_string_ostream warnings(kept.warnings);
    if (report)
      for (const Diagnostic &warning : result.getDiagnostics())
        print(warnings, warning, result.getCompilation().session.getSources());
    return kept;
  }

  void add(size_t number, PlanResult result) {
    std::lock_guard<std::mutex> lock(mutex);
    results[number] = std::move(result);
    while (numShown < results.size() && results[numShown])
      show(*std::exchange(results[numShown++], std::nullopt));
  }

  void show(PlanResult result) {
    // What every plan warns of is said once.
    if (!result.warnings.empty() && shown.insert(result.warnings).second)
      llvm::errs() << result.warnings;
    if (options.report == ReportKind::Json)
      json.add(result.json);
    comparison.plans.push_back(std::move(result.row));
  }

  const DriverOptions &options;
  std::vector<std::string> names;
  Session session;
  JsonComparison json;
  std::vector<std::string> jobs;
  std::mutex mutex;                               ///< Of all below.
  std::vector<std::optional<PlanResult>> results; ///< Those that are not shown yet.
  size_t numShown = 0;
  Comparison comparison;
  llvm::StringSet<> shown; ///< Warnings.
};
} // namespace

bool stage::driver::runComparison(const DriverOptions &options) { return Comparer(options).run(); }
