//===- Fits.cpp - how much of a job fits into a rank's memory -------------===//
//
// Problem: how many sequences, and how long ones, fit into 80 GiB?
//
//   stagec job.stg --fits=80GiB
//
//   size      job  largest       peak     next      needs
//   B          64      224  79.32 GiB      232  81.62 GiB
//   S       4,096   26,112  79.99 GiB   26,120  80.01 GiB
//
// Algorithm: a candidate is the job with another value, compiled and accounted as a line of a
// comparison is. Candidates are multiples of a step, in units of which a value makes sense at
// all (sequences of one batch on all ranks): the least divisor d of the job's own value n for
// which the job takes n + d or n - d. What must divide, as ranks among which positions are split,
// divides then, and limits on either side do no harm. From n candidates are doubled until one does
// not fit, or, once they have thousands of units, until memory does not grow any more (MemoryGrowth.h). Then the
// interval is narrowed where a line through its ends meets the limit, every third time at its middle.
//
// What is printed was compiled: the largest value fits, the next one does not, or is refused.
// That none behind them fits follows as memory grows with each of the sizes.
//
// Limits: each size is searched by itself, the others are the job's. Memory of the host is not limited.
//
//===----------------------------------------------------------------------===//
#include "stage/Report/Fits.h"
#include "Commands.h"
#include "MemoryGrowth.h"
#include "ServedFile.h"
#include "stage/Driver/Diagnostics.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::driver;

namespace {
/// Which of the job's sizes is searched, and how it is given another value.
struct Searched {
  std::string name;
  int64_t own;      ///< In units; 1 at least.
  int64_t unit = 1; ///< The value of the job is so many times as large.
  llvm::function_ref<void(Plan &, int64_t value)> set;
};

/// A candidate that was compiled.
struct Candidate : FitTrial {
  size_t units = 0;    ///< Of a stage.
  bool canGrow = true; ///< Memory may be more with a larger value.
};

/// A search for the largest value of one size.
class Search {
public:
  using Try = llvm::function_ref<Candidate(const Plan &, int64_t value)>;
  /// `limit`: bytes of a rank's memory.
  Search(__int128 limit, const Plan &plan, const Searched &size, Try compile)
      : limit(limit), plan(plan), size(size), compile(compile) {}

  FitResult run() {
    FitResult result{size.name, size.own * size.unit, {}, {}};
    step = findStep();
    int64_t start = std::max<int64_t>(size.own / step, 1);
    narrow(start);
    if (low)
      result.largest = get(low);
    if (high)
      result.next = get(high);
    return result;
  }

private:
  /// Far more than any memory holds; a size on which memory does not depend has no largest value.
  static constexpr int64_t most = int64_t(1) << 30;
  /// A candidate with more units is compiled only if it may need more memory: each takes as long as it has units.
  static constexpr size_t manyUnits = 4096;

  const Candidate &get(int64_t multiple) {
    auto [it, isNew] = trials.try_emplace(multiple * step);
    if (isNew) {
      Plan candidate = plan;
      size.set(candidate, multiple * step * size.unit);
      it->second = compile(candidate, multiple * step * size.unit);
    }
    return it->second;
  }
  bool fits(int64_t multiple) {
    const FitTrial &trial = get(multiple);
    return trial.peak && *trial.peak <= limit;
  }
  /// Less than the job has is refused where it is too little, as of batches for the stages of a pipeline, more where it
  /// is too much.
  bool isTooSmall(int64_t multiple) { return !get(multiple).peak && multiple * step < size.own; }

  int64_t findStep() {
    for (int64_t divisor = 1; divisor <= size.own / 2; ++divisor) {
      if (size.own % divisor)
        continue;
      step = 1; // of what is tried
      for (int64_t near : {size.own + divisor, size.own - divisor})
        if (near > 0 && get(near).peak)
          return divisor;
    }
    return std::max<int64_t>(size.own, 1);
  }

  /// Makes `low` the largest multiple that fits, 0 if none does, and `high` the next one, 0 if none was found that does
  /// not.
  void narrow(int64_t start) {
    for (int64_t at = start;; at = std::min(2 * at, most)) {
      if (!fits(at)) {
        high = at;
        break;
      }
      bool isFlat = low && get(at).units >= manyUnits && !get(at).canGrow && get(at).peak == get(low).peak;
      low = at;
      if (isFlat || low == most)
        return;
    }
    int64_t tooSmall = 0;
    if (!low && high > 1) {
      if (fits(1))
        low = 1;
      else if (isTooSmall(1))
        tooSmall = 1;
      else
        high = 1;
    }
    for (unsigned round = 0; high - std::max(low, tooSmall) > 1; ++round) {
      int64_t least = std::max(low, tooSmall), at = least + (high - least) / 2;
      if (std::optional<int64_t> met = low && round % 3 != 2 ? interpolate() : std::nullopt)
        at = *met;
      if (fits(at))
        low = at;
      else if (isTooSmall(at))
        tooSmall = at;
      else
        high = at;
    }
  }

  /// Where a line through the peaks of both ends meets the limit, inside of the interval.
  std::optional<int64_t> interpolate() {
    const FitTrial &least = get(low), &next = get(high);
    if (!next.peak || *next.peak <= *least.peak)
      return std::nullopt;
    double share = double(limit - *least.peak) / double(*next.peak - *least.peak);
    return std::clamp(low + int64_t(share * double(high - low)), low + 1, high - 1);
  }

  __int128 limit;
  const Plan &plan;
  const Searched &size;
  Try compile;
  int64_t step = 1;          ///< Candidates are multiples of it.
  int64_t low = 0, high = 0; ///< Multiples.
  std::map<int64_t, Candidate> trials;
};

class Searcher {
public:
  explicit Searcher(const DriverOptions &options) : options(options), session(options.files, getMessagePrinter()) {}

  bool run() {
    if (!session.load())
      return false;
    if (options.requests ? !searchBlocks() : !searchJob())
      return false;
    if (options.report == ReportKind::Json)
      printJson(llvm::outs(), result);
    else
      print(llvm::outs(), result);
    return true;
  }

private:
  Candidate compile(const Plan &candidate, int64_t value) {
    Candidate trial{{value, {}, {}}};
    Result compiled = session.compile(candidate);
    if (const Report *report = compiled.getReport()) {
      trial.peak = report->getLargestStage().peak.getTotal();
      trial.units = compiled.getCompilation().program->stages.front().units.size();
      trial.canGrow = canMemoryGrow(*compiled.getCompilation().graph, ownSymbols);
    } else {
      trial.refusal = getErrorText(compiled.getDiagnostics());
    }
    return trial;
  }

  /// The size that was given, or the memory of the job's machine. False after a report.
  bool findLimit(const Compilation &own) {
    const std::optional<sema::BoundMachine> &machine = own.job->machine;
    limit = *options.fits ? *options.fits : machine ? divideCapacity(*own.job).first : 0;
    if (!limit)
      session.getDiags().report(SMLoc(), diag::NoCapacity)
          << (machine ? "machine '" + machine->name + "' has no 'memory.capacity'" : "the job has no 'machine'");
    return limit > 0;
  }

  /// The job as it is must be right; what is said of it is printed. `see` gets what a search has to know.
  bool compileOwn(const Plan &own, llvm::function_ref<void(const Compilation &)> see) {
    Result compiled = session.compile(own);
    for (const Diagnostic &message : compiled.getDiagnostics())
      print(llvm::errs(), message, session.getSources());
    const Report *report = compiled.getReport();
    if (!report || !findLimit(compiled.getCompilation()))
      return false;
    result.job = report->job;
    result.ranks = report->ranks;
    result.limit = limit;
    result.peak = report->getLargestStage().peak.getTotal();
    ownSymbols = listSymbols(*compiled.getCompilation().graph);
    see(compiled.getCompilation());
    return true;
  }

  void search(std::string name, int64_t own, int64_t unit, llvm::function_ref<void(Plan &, int64_t)> set) {
    Searched size{std::move(name), own, unit, set};
    result.sizes.push_back(Search(limit, options.plan, size, [&](const Plan &candidate, int64_t value) {
                             return compile(candidate, value);
                           }).run());
  }

  /// `-D name=value`, in place of what the user says of this value of the step.
  static void define(Plan &candidate, llvm::StringRef name, int64_t value) {
    llvm::erase_if(candidate.values, [&](const sema::Override &given) { return given.name == name; });
    candidate.set(("step." + name).str(), value);
  }

  bool searchJob() {
    std::optional<sema::BoundInference> inference;
    std::string batchDim;
    int64_t batch = 0, batchRanks = 0, microbatch = 0, microbatches = 0, stages = 1, length = 0;
    bool microbatchIsGiven = false;
    SMRange stepRange;
    auto see = [&](const Compilation &c) {
      const sema::BoundJob &job = *c.job;
      inference = job.inference;
      stepRange = job.stepRange;
      batchDim = job.batchDim.str();
      std::tie(batch, batchRanks, microbatch, microbatches) =
          std::tie(job.globalBatch, job.batchRanks, job.microbatch, job.microbatches);
      stages = c.program->numStages;
      microbatchIsGiven = job.microbatchIsGiven;
      bool hasLength = llvm::any_of(job.stepDims, [](auto &dim) { return dim.name.name == "S"; });
      length = inference   ? (inference->length ? inference->length : inference->begin)
               : hasLength ? c.binding.lookup("S").value_or(0)
                           : 0;
    };
    if (!compileOwn(options.plan, see))
      return false;
    if (inference && !inference->lengths.empty()) {
      session.getDiags().report(stepRange.Start, diag::FitsOfLengths).range(stepRange);
      return false;
    }
    result.batchRanks = batchRanks;
    if (inference) {
      int64_t unit = batchRanks * (microbatchIsGiven ? microbatch : stages);
      search(batchDim, std::max<int64_t>(batch / unit, 1), unit,
             [&](Plan &candidate, int64_t value) { define(candidate, batchDim, value); });
      search(inference->length ? "S" : "T", std::max<int64_t>(length, 1), 1,
             [&](Plan &candidate, int64_t value) { candidate.positions = value; });
      result.sizes.front().own = batch;
      result.sizes.back().own = length; // steps may begin with nothing
      return true;
    }
    result.microbatches = microbatches;
    if (!batchDim.empty())
      search("microbatch", microbatch, 1, [&](Plan &candidate, int64_t value) {
        define(candidate, "microbatch", value);
        define(candidate, batchDim, value * batchRanks * microbatches);
      });
    if (length)
      search("S", length, 1, [&](Plan &candidate, int64_t value) { define(candidate, "S", value); });
    return true;
  }

  /// Of a job that serves requests: the cache that it can have.
  bool searchBlocks() {
    DriverOptions own = options;
    std::unique_ptr<ServedJob> job = ServedJob::create(own, session);
    if (!job)
      return false;
    ServedFile served = keepIterations(*own.requests);
    if (!(own.plan.served = serveJob(*own.requests, *job, served, session.getDiags())) ||
        !compileOwn(own.plan, [](const Compilation &) {}))
      return false;
    // Each candidate serves the requests with another cache.
    Searched size{"cache-blocks", served.mostBlocks, 1, [](Plan &, int64_t) {}};
    auto compileServed = [&](const Plan &candidate, int64_t value) {
      DiagnosticList messages;
      llvm::SourceMgr sources;
      DiagnosticEngine diags(sources, &messages);
      ServeCommand command = *own.requests;
      command.options.batching.cacheBlocks = value;
      ServedFile file = keepIterations(command);
      Plan plan = candidate;
      if ((plan.served = serveJob(command, *job, file, diags)))
        return compile(plan, value);
      return Candidate{{value, {}, getErrorText(messages.all)}};
    };
    result.sizes.push_back(Search(limit, own.plan, size, compileServed).run());
    return true;
  }

  const DriverOptions &options;
  Session session;
  SymbolValues ownSymbols; ///< Of the job as it is.
  __int128 limit = 0;      ///< Bytes of a rank's memory.
  Fits result;
};
} // namespace

bool stage::driver::runSearch(const DriverOptions &options) { return Searcher(options).run(); }
