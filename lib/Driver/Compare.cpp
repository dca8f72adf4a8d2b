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
//===----------------------------------------------------------------------===//
#include "Compilation.h"
#include "stage/Memory/Comparison.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;

/// The text of the first error among messages, without its place and its code.
static std::string getFirstError(llvm::StringRef messages) {
  constexpr llvm::StringLiteral mark = "error: ";
  llvm::StringRef line = messages.substr(messages.find(mark)).split('\n').first;
  line.consume_front(mark);
  if (line.endswith("]"))
    line = line.take_front(line.rfind(" ["));
  return line.str();
}

namespace {
class Comparer {
public:
  explicit Comparer(const DriverOptions &options) : options(options), input(llvm::errs()), json(llvm::outs()) {
    for (const Choice &choice : options.choices)
      if (choice.values.size() > 1)
        comparison.names.push_back(choice.name);
    input.diags.setWarningsAreErrors(options.warningsAreErrors);
  }

  bool run() {
    if (!loadFiles(input, options) || !findJobs())
      return false;
    for (const ast::JobDecl *job : jobs) {
      std::vector<size_t> chosen(options.choices.size());
      do
        compile(*job, chosen);
      while (advance(chosen));
    }
    if (options.report == ReportKind::Text)
      print(llvm::outs(), comparison);
    else if (options.report == ReportKind::Csv)
      printCsv(llvm::outs(), comparison);
    else
      json.finish();
    return llvm::any_of(comparison.plans, [](const ComparedPlan &plan) { return plan.costs.has_value(); });
  }

private:
  bool findJobs() {
    if (options.allJobs)
      jobs = sema::getJobs(*input.files);
    // Without names, and where the file has none, the only job, or what is wrong.
    for (llvm::StringRef name : options.jobs)
      jobs.push_back(sema::findJob(*input.files, name, input.diags));
    if (jobs.empty())
      jobs.push_back(sema::findJob(*input.files, "", input.diags));
    return !input.diags.hasErrors();
  }

  /// To the next combination; false after the last.
  bool advance(std::vector<size_t> &chosen) const {
    for (size_t i = chosen.size(); i-- > 0;) {
      if (++chosen[i] < options.choices[i].values.size())
        return true;
      chosen[i] = 0;
    }
    return false;
  }

  void compile(const ast::JobDecl &job, llvm::ArrayRef<size_t> chosen) {
    DriverOptions plan = options;
    plan.job = job.name.name.str();
    ComparedPlan &row = comparison.plans.emplace_back();
    row.job = plan.job;
    for (size_t i = 0; i < chosen.size(); ++i) {
      const Choice &choice = options.choices[i];
      plan.defines.push_back({choice.name, choice.values[chosen[i]]});
      if (choice.values.size() > 1)
        row.values.push_back(choice.values[chosen[i]]);
    }
    std::string messages;
    llvm::raw_string_ostream stream(messages);
    DiagnosticEngine diags(input.sources, stream);
    diags.setWarningsAreErrors(options.warningsAreErrors);
    Compilation c(input, sizes, diags);
    std::optional<Report> report;
    if (runFrontEnd(c, plan) && runMiddle(c, plan))
      report = makeReport(c);
    if (report)
      row.costs = summarize(*report);
    else
      row.refusal = getFirstError(stream.str());
    // What every plan warns of is said once.
    if (report && shown.insert(stream.str()).second)
      llvm::errs() << stream.str();
    if (options.report == ReportKind::Json)
      json.add(row, comparison.names, report ? &*report : nullptr);
  }

  const DriverOptions &options;
  SourceFiles input;
  SizeContext sizes; ///< Of all plans: most sizes are those of other plans.
  JsonComparison json;
  std::vector<const ast::JobDecl *> jobs;
  Comparison comparison;
  llvm::StringSet<> shown; ///< Warnings.
};
} // namespace

bool stage::runComparison(const DriverOptions &options) { return Comparer(options).run(); }
