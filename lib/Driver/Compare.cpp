//===- Compare.cpp - several jobs or values, in one table -----------------===//
//
// Problem: which of these jobs, or which `tp` and `pp`, is best?
//
//   stagec file.stg --all-jobs --report
//   stagec file.stg -D tp=1,2,4,8 -D pp=1,2,4 --report=csv
//
// Algorithm: the files are read and their names checked once. Each plan (a job with one
// combination of values, the last `-D` varying fastest) is then bound, compiled and
// accounted in this process, and only its numbers are kept. A plan that has errors is a
// line of the table with the first of them: it does not concern the others.
//
// What plans have in common is kept between them: the files, sizes, and the graphs of
// models (ModelCache). Several threads take plans from one list. They share the list and
// the syntax trees of the files, which nobody changes; each has sizes, models and texts of
// values of its own. Results are shown in the order of the plans, whoever is first.
//
//===----------------------------------------------------------------------===//
#include "PlanCompiler.h"
#include "stage/Report/Comparison.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"
#include <deque>
#include <mutex>
#include <thread>
#ifdef __GLIBC__
#include <malloc.h>
#endif

using namespace stage;
using namespace stage::driver;

/// What a plan frees is not given back to the system: the next one takes as much, and while the system takes and gives
/// pages the other threads of the process wait.
static void keepMemoryOfPlans() {
#ifdef __GLIBC__
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  mallopt(M_TOP_PAD, 8 << 20);
  mallopt(M_MMAP_THRESHOLD, 32 << 20); // what glibc comes to by itself, unless one of these is said
#endif
}

namespace {
/// A job under one combination of values.
struct Plan {
  DriverOptions options;
  ComparedPlan row; ///< Without what it costs.
};

/// What became of a plan.
struct PlanResult {
  ComparedPlan row;
  std::string warnings; ///< Of a plan that was not refused.
  std::string json;     ///< If that is asked for.
};

PlanResult compile(PlanCompiler &compiler, Plan plan, llvm::ArrayRef<std::string> names) {
  PlanResult result;
  result.row = std::move(plan.row);
  compiler.compile(plan.options, [&](const Compilation &, const Report *report, llvm::StringRef messages) {
    if (report)
      result.row.costs = summarize(*report);
    else
      result.row.refusal = getFirstError(messages);
    if (plan.options.report == ReportKind::Json)
      result.json = JsonComparison::describe(result.row, names, report);
    if (report)
      result.warnings = messages.str();
  });
  return result;
}

class Comparer {
public:
  explicit Comparer(const DriverOptions &options)
      : options(options), common(options), names(getNames(options)), first(options.warningsAreErrors, llvm::errs()),
        json(llvm::outs()) {
    common.choices.clear();
  }

  bool run() {
    if (!loadFiles(first.input, options) || !findJobs())
      return false;
    numPlans = jobs.size();
    for (const Choice &choice : options.choices)
      numPlans *= choice.values.size();
    comparison.names = names;
    keepMemoryOfPlans();
    compileAll();
    if (options.report == ReportKind::Text)
      print(llvm::outs(), comparison);
    else if (options.report == ReportKind::Csv)
      printCsv(llvm::outs(), comparison);
    else
      json.finish();
    return llvm::any_of(comparison.plans, [](const ComparedPlan &plan) { return plan.costs.has_value(); });
  }

private:
  /// Those that vary.
  static std::vector<std::string> getNames(const DriverOptions &options) {
    std::vector<std::string> names;
    for (const Choice &choice : options.choices)
      if (choice.values.size() > 1)
        names.push_back(choice.name);
    return names;
  }

  bool findJobs() {
    sema::Program &files = *first.input.files;
    if (options.allJobs)
      for (const ast::JobDecl *job : sema::getJobs(files))
        jobs.push_back(job->name.name.str());
    auto find = [&](llvm::StringRef name) {
      if (const ast::JobDecl *job = sema::findJob(files, name, first.input.diags))
        jobs.push_back(job->name.name.str());
    };
    // Without names, and where the file has none, the only job, or what is wrong.
    for (llvm::StringRef name : options.jobs)
      find(name);
    if (jobs.empty() && !first.input.diags.hasErrors())
      find("");
    return !first.input.diags.hasErrors();
  }

  /// The plan of this number: the last `-D` varies fastest, the job slowest.
  Plan getPlan(size_t number) const {
    std::vector<size_t> chosen(options.choices.size());
    for (size_t i = chosen.size(); i-- > 0;) {
      size_t count = options.choices[i].values.size();
      chosen[i] = number % count;
      number /= count;
    }
    Plan plan{common, {}};
    plan.options.job = plan.row.job = jobs[number];
    for (size_t i = 0; i < chosen.size(); ++i) {
      const Choice &choice = options.choices[i];
      plan.options.defines.push_back({choice.name, choice.values[chosen[i]]});
      if (choice.values.size() > 1)
        plan.row.values.push_back(choice.values[chosen[i]]);
    }
    return plan;
  }

  /// A thread makes its first model by itself, which takes as long as a few plans.
  unsigned getNumThreads() const {
    constexpr size_t plansPerThread = 6;
    if (options.threads)
      return std::min<size_t>(options.threads, numPlans);
    return std::clamp<size_t>(numPlans / plansPerThread, 1, std::max(1u, std::thread::hardware_concurrency()));
  }

  void compileAll() {
    results.resize(numPlans);
    llvm::nulls().SetUnbuffered();   // several threads may write there
    std::deque<PlanCompiler> others; // they take the files before anyone adds to these
    for (unsigned i = 1; i < getNumThreads(); ++i)
      others.emplace_back(options.warningsAreErrors, llvm::nulls()).share(first.input);
    std::vector<std::thread> threads;
    try {
      for (PlanCompiler &compiler : others)
        threads.emplace_back([&compiler, this] { compilePlans(compiler); });
    } catch (const std::system_error &) {
      // A limit of the system: those that did start take the plans of the others.
    }
    compilePlans(first);
    for (std::thread &thread : threads)
      thread.join();
  }

  /// The next plans for a thread: several in a row, as those are the likeliest to have one model, and fewer towards the
  /// end, so that all threads end at one time.
  std::pair<size_t, size_t> takePlans() {
    std::lock_guard<std::mutex> lock(mutex);
    size_t begin = next, left = numPlans - begin;
    next += std::min(left, std::max<size_t>(1, left / (size_t(4) * getNumThreads())));
    return {begin, next};
  }

  void compilePlans(PlanCompiler &compiler) {
    while (true) {
      auto [begin, end] = takePlans();
      if (begin == end)
        return;
      for (size_t number = begin; number < end; ++number) {
        PlanResult result = compile(compiler, getPlan(number), names);
        std::lock_guard<std::mutex> lock(mutex);
        results[number] = std::move(result);
        while (numShown < numPlans && results[numShown])
          show(*std::exchange(results[numShown++], std::nullopt));
      }
    }
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
  DriverOptions common; ///< Of all plans.
  std::vector<std::string> names;
  PlanCompiler first; ///< Of the main thread.
  JsonComparison json;
  std::vector<std::string> jobs;
  size_t numPlans = 0;
  std::mutex mutex;                               ///< Of all below.
  size_t next = 0;                                ///< The plan that is compiled next.
  std::vector<std::optional<PlanResult>> results; ///< Those that are not shown yet.
  size_t numShown = 0;
  Comparison comparison;
  llvm::StringSet<> shown; ///< Warnings.
};
} // namespace

bool stage::driver::runComparison(const DriverOptions &options) { return Comparer(options).run(); }
