//===- CompilePlans.cpp - the candidates that are compiled ----------------===//
//
// Candidates are bound, and those that their bounds do not exclude are compiled, in rounds, the most promising ones
// first. Of the plans that fit those are timed that may be among the best.
//
//===----------------------------------------------------------------------===//
#include "Estimate.h"
#include "Searcher.h"
#include "stage/Memory/Memory.h"
#include <cmath>
#include <limits>

using namespace stage;
using State = CandidateState;

/// Plans of the first round, behind which those that fit are timed; each round is so many times as long as the one
/// before. The same for any number of threads, as is the number of plans that are timed together.
constexpr size_t firstRound = 64, growthOfRounds = 4, timedTogether = 8;
/// Plans of neighbours have much in common (PlanStores.h).
constexpr size_t neighborsTogether = 8;
/// One thread takes candidates in a row, so many of them: a part of a round that leaves work for other threads.
constexpr size_t shareOfRound = 64, mostTogether = 128;

/// A code and its text without numbers, so that plans that are refused for the same reason are counted together.
static std::string describeRefusal(llvm::ArrayRef<Diagnostic> messages) {
  const Diagnostic *error = findError(messages);
  return error ? error->code.str() : "refused";
}

static void setLimit(Candidate &candidate, const Compilation &c) {
  if (!c.job->machine || !c.job->machine->memoryCapacity)
    return;
  __int128 capacity = divideCapacity(*c.job).first;
  candidate.limit = candidate.limit ? std::min(candidate.limit, capacity) : capacity;
}

namespace {
/// A compilation with messages of its own.
struct OwnCompilation {
  DiagnosticList messages;
  DiagnosticEngine diags;
  Compilation c;
  explicit OwnCompilation(Session &session) : diags(session.getSources(), &messages), c(session, diags) {
    c.models = &session.getModels();
  }
};
} // namespace

void Searcher::bind(Session &own, Candidate &candidate) const {
  OwnCompilation compilation(own);
  Compilation &c = compilation.c;
  candidate.state = State::Waiting;
  if (!bindPlan(c, result.getPlan(candidate.number))) {
    candidate.state = State::Refused;
    candidate.refusal = describeRefusal(compilation.messages.all);
    return;
  }
  setLimit(candidate, c);
  if (!usesBounds)
    return;
  const std::optional<ModelCosts> &model = models[spaces->locate(candidate.number).space];
  if (!model)
    return;
  candidate.memory = findLeastMemory(c, *model);
  candidate.time = findLeastTime(c, *model);
  if (candidate.limit && candidate.memory > candidate.limit)
    candidate.state = State::TooLarge;
}

static StepShares findShares(const Report &report) {
  StepShares shares;
  const TimeReport &time = report.step->time;
  Ticks numStages = Ticks(std::max<size_t>(time.stages.size(), 1));
  auto add = [&](const std::string &name, Ticks ticks) {
    auto known = llvm::find_if(shares, [&](const auto &share) { return share.first == name; });
    if (known == shares.end())
      shares.emplace_back(name, ticks);
    else
      known->second += ticks;
  };
  for (const StageTime &stage : time.stages) {
    Ticks exposed = stage.get(TimeAccount::Exposed);
    for (const CommunicationTime &communication : stage.communication) {
      if (!communication.op || !communication.exposed)
        continue;
      add("exposed " + getName(communication.op->kind).str(), communication.exposed);
      exposed -= communication.exposed;
    }
    for (unsigned account = 0; account != numTimeAccounts; ++account)
      add(getName(TimeAccount(account)).str(),
          TimeAccount(account) == TimeAccount::Exposed ? exposed : stage.accounts[account]);
  }
  for (auto &[name, ticks] : shares)
    ticks /= numStages;
  return shares;
}

static std::vector<double> listRecords(const Report &report, const PlanCosts &costs) {
  const StepFigures &figures = costs.time->figures;
  double none = std::numeric_limits<double>::quiet_NaN();
  return {figures.seconds,
          figures.tokensPerDevice,
          costs.time->hasPeak ? figures.mfu : none,
          double(costs.peak),
          figures.bubble,
          double(figures.exposed) / double(ticksPerSecond),
          figures.dollars.value_or(none),
          figures.joules.value_or(none)};
}

/// An exact number near a double.
static Rational toRational(double value) {
  constexpr double scale = 1e9;
  if (!std::isfinite(value) || std::abs(value) > 1e27)
    return Rational();
  if (value == std::floor(value))
    return {__int128(value), 1};
  return Rational::make(__int128(std::llround(std::min(std::abs(value), 9e9) * scale)) * (value < 0 ? -1 : 1),
                        __int128(scale))
      .value_or(Rational());
}

bool Searcher::compile(Session &own, Candidate &candidate, Depth depth, SharedBounds *shared) const {
  OwnCompilation compilation(own);
  Compilation &c = compilation.c;
  Plan plan = result.getPlan(candidate.number);
  auto refuse = [&] {
    candidate.state = State::Refused;
    candidate.refusal = describeRefusal(compilation.messages.all);
    return true;
  };
  auto exclude = [&](Ticks least) {
    candidate.state = State::TooSlow;
    candidate.time = double(least);
    return true;
  };
  if (!bindPlan(c, plan) || !elaborate(c, plan))
    return refuse();
  std::optional<GraphInput> input = shared ? SharedBounds::makeInput(*c.graph) : std::nullopt;
  if (std::optional<Ticks> known = input ? shared->find(*input, c.graph->pipeline) : std::nullopt;
      known && isTooSlow(double(*known)))
    return !exclude(*known);
  PipelineInfo pipeline = input ? c.graph->pipeline : PipelineInfo();
  if (!runMiddle(c))
    return refuse();
  setLimit(candidate, c);
  if (depth == Depth::Bound) {
    std::optional<StepBound> bound = makeStepBound(c);
    if (!bound)
      return refuse();
    if (input)
      if (Ticks ofMicrobatches = bound->find(BoundedOps::OfMicrobatches); isTooSlow(double(ofMicrobatches))) {
        shared->add(std::move(*input), std::move(pipeline), ofMicrobatches);
        return exclude(ofMicrobatches);
      }
    if (Ticks least = bound->find(); isTooSlow(double(least)))
      return exclude(least);
    else
      candidate.time = std::max(candidate.time, double(least));
  }
  const RuntimeMemory *software = findRuntimeMemory(c);
  if (!software)
    return refuse();
  // Of a candidate without room one stage says that.
  std::optional<ByteCount> limit =
      depth != Depth::Memory && candidate.limit ? std::optional(candidate.limit) : std::nullopt;
  MemoryReport memory = accountMemory(*c.program, c.diags, software, /*withMoments=*/false, limit);
  if (c.diags.hasErrors())
    return refuse();
  candidate.isExact = memory.stages.size() == c.program->stages.size();
  if (candidate.isExact)
    candidate.memory = 0;
  for (const StageMemory &stage : memory.stages)
    candidate.memory = std::max(candidate.memory, stage.peak.getTotal());
  if (candidate.limit && candidate.memory > candidate.limit) {
    candidate.state = State::TooLarge;
    return true;
  }
  if (depth == Depth::Memory)
    return true;
  if (depth == Depth::Bound) {
    candidate.state = State::Fits;
    return true;
  }
  std::optional<Report> report = makeReport(c, std::move(memory));
  if (!report)
    return refuse();
  auto kept = std::make_shared<FoundPlan>();
  FoundPlan &found = *kept;
  candidate.plan = kept;
  found.number = candidate.number;
  found.values = spaces->describe(candidate.number);
  found.costs = summarize(*report);
  found.shares = findShares(*report);
  found.records = listRecords(*report, found.costs);
  candidate.state = State::Found;
  std::vector<Rational> records;
  for (double record : found.records)
    records.push_back(toRational(record));
  if (std::optional<size_t> rule = spaces->findRuleOfReport(candidate.number, records)) {
    candidate.state = State::Excluded;
    candidate.rule = *rule;
    candidate.plan.reset();
  }
  return true;
}

/// The first plan of a strategy that compiles says what all have in common.
void Searcher::findReferences() {
  if (!usesBounds)
    return;
  for (size_t space = 0; space != models.size(); ++space) {
    llvm::ArrayRef<Candidate> own = listCandidates(space);
    // A few in a row may be refused for one value of the first name: others are tried in between.
    constexpr size_t mostTries = 64;
    size_t stride = std::max<size_t>(own.size() / mostTries, 1);
    for (size_t i = 0; i < own.size() && !models[space]; i += stride) {
      Result compiled = session.compile(result.getPlan(own[i].number));
      if (const Report *report = compiled.getReport())
        models[space] = findModelCosts(compiled.getCompilation(), *report);
    }
  }
  usesBounds = llvm::any_of(models, [](const std::optional<ModelCosts> &model) { return model.has_value(); });
}

void Searcher::bindAll(SessionThreads &threads) {
  // Half of the time is for compiling. Where it may end early the first value of a name is not tried alone.
  constexpr double share = 0.5;
  ScatteredNumbers scattered(candidates.size());
  meter.begin(SearchProgress::Phase::Bind, candidates.size());
  threads.forEach(candidates.size(), [&](Session &own, size_t i) {
    if (isStopped(share))
      return;
    bind(own, candidates[request.seconds > 0 ? scattered.get(i) : i]);
    meter.advance();
  });
}

/// Plans are ranked by time, and all have one batch.
bool Searcher::isRankedByTime() const {
  llvm::StringRef objective = sema::getSearchRecords()[result.getObjectives().front()].name;
  bool hasRanks = llvm::all_of(result.spaces, [](const sema::BoundSearch &space) {
    return llvm::any_of(space.names, [](const sema::SearchedName &name) {
      return name.owner == "job" && name.values.size() == 1; // `gpus`
    });
  });
  return usesBounds && !isFront() && (objective == "step" || (objective == "tokens_per_gpu" && hasRanks));
}

/// Times plans that fit, those with the lowest bounds first, until no other one can be among the best.
void Searcher::timeBest(SessionThreads &threads, llvm::ArrayRef<Candidate *> fitting) {
  std::vector<Candidate *> order = fitting.vec();
  llvm::stable_sort(order, [](Candidate *a, Candidate *b) { return a->time < b->time; });
  for (size_t done = 0; done < order.size() && !isTooSlow(order[done]->time) && !isStopped(); done += timedTogether) {
    size_t count = std::min(timedTogether, order.size() - done);
    threads.forEach(count, [&](Session &own, size_t i) {
      if (!isTooSlow(order[done + i]->time))
        compile(own, *order[done + i]);
    });
    for (size_t i = done; i != done + count; ++i)
      if (order[i]->state == State::Found)
        best.push_back(double(order[i]->plan->costs.time->step));
    llvm::sort(best);
    best.resize(std::min(best.size(), request.top));
  }
}

/// Those that wait, with the lowest bounds first. Many have the same bound: of these a few neighbours from everywhere
/// come first, so that good plans are known when most of the others are compiled.
std::vector<Candidate *> Searcher::orderWaiting() {
  std::vector<std::pair<size_t, Candidate *>> waiting; // with its place among equals
  for (Candidate &candidate : candidates)
    if (candidate.state == State::Waiting)
      waiting.emplace_back(waiting.size(), &candidate);
  ScatteredNumbers scattered(waiting.size() / neighborsTogether + 1);
  std::vector<size_t> placeOf(waiting.size() / neighborsTogether + 1);
  for (size_t i = 0; i != placeOf.size(); ++i)
    placeOf[scattered.get(i)] = i;
  for (auto &[place, candidate] : waiting)
    place = placeOf[place / neighborsTogether];
  llvm::stable_sort(waiting, [](const auto &a, const auto &b) {
    return std::pair(a.second->time, a.first) < std::pair(b.second->time, b.first);
  });
  std::vector<Candidate *> order;
  for (const auto &[place, candidate] : waiting)
    order.push_back(candidate);
  return order;
}

void Searcher::compileAll(SessionThreads &threads) {
  std::vector<Candidate *> order = orderWaiting(), fitting;
  bool isByTime = isRankedByTime();
  size_t done = 0;
  meter.begin(SearchProgress::Phase::Compile, order.size());
  for (size_t round = firstRound; done != order.size(); round *= growthOfRounds) {
    size_t count = std::min(round, order.size() - done);
    if (request.mostPlans)
      count = std::min(count, request.mostPlans - std::min(request.mostPlans, result.numCompiled));
    if (!count || isStopped())
      break;
    std::atomic<size_t> numCompiled = 0;
    std::vector<Candidate *> ofRound(order.begin() + done, order.begin() + done + count);
    llvm::sort(ofRound, [](Candidate *a, Candidate *b) { return a->number < b->number; });
    const size_t together = std::clamp<size_t>(count / shareOfRound, 1, mostTogether);
    threads.forEach((count + together - 1) / together, [&](Session &own, size_t part) {
      SharedBounds shared;
      for (size_t i = part * together; i != std::min((part + 1) * together, count) && !isStopped(); ++i) {
        Candidate &candidate = *ofRound[i];
        meter.advance();
        if (isTooSlow(candidate.time)) {
          candidate.state = State::TooSlow;
          continue;
        }
        numCompiled += compile(own, candidate, isByTime ? Depth::Bound : Depth::Time, isByTime ? &shared : nullptr);
      }
    });
    llvm::erase_if(fitting, [](Candidate *candidate) { return candidate->state != State::Fits; });
    for (size_t i = done; i != done + count; ++i)
      if (order[i]->state == State::Fits)
        fitting.push_back(order[i]);
    timeBest(threads, fitting);
    if (!done && count != order.size())
      meter.reportEstimate();
    done += count;
    result.numCompiled += numCompiled;
  }
  for (Candidate *candidate : order)
    if ((candidate->state == State::Fits || candidate->state == State::Waiting) && isTooSlow(candidate->time))
      candidate->state = State::TooSlow;
  for (const Candidate &candidate : candidates)
    result.numUndecided += candidate.isOpen();
  result.isLimited = result.numUndecided > 0;
}

/// Bounds of memory may be far below what plans need. Those with the least bounds are accounted until no other one can
/// need less.
void Searcher::findNearest(SessionThreads &threads) {
  std::vector<Candidate *> large;
  for (Candidate &candidate : candidates)
    if (candidate.state == State::TooLarge)
      large.push_back(&candidate);
  result.numTooLarge = large.size();
  auto getMiss = [](const Candidate &candidate) { return candidate.memory - candidate.limit; };
  llvm::stable_sort(large, [&](Candidate *a, Candidate *b) { return getMiss(*a) < getMiss(*b); });
  const Candidate *nearest = nullptr;
  auto consider = [&](const Candidate &candidate) {
    if (candidate.isExact && (!nearest || getMiss(candidate) < getMiss(*nearest)))
      nearest = &candidate;
  };
  for (Candidate *candidate : large)
    consider(*candidate);
  constexpr size_t ofRound = 16, mostRounds = 16;
  size_t next = 0;
  for (size_t round = 0; round != mostRounds && !isStopped(); ++round) {
    std::vector<Candidate *> tried;
    for (; next != large.size() && tried.size() != ofRound; ++next)
      if (!large[next]->isExact && (!nearest || getMiss(*large[next]) < getMiss(*nearest)))
        tried.push_back(large[next]);
    if (tried.empty())
      break;
    threads.forEach(tried.size(), [&](Session &own, size_t i) {
      Candidate copy = *tried[i];
      compile(own, copy, Depth::Memory);
      if (copy.isExact)
        *tried[i] = copy;
    });
    for (Candidate *candidate : tried)
      consider(*candidate);
  }
  if (nearest)
    result.nearest = NearestMiss{spaces->describe(nearest->number), nearest->memory, nearest->limit};
}
