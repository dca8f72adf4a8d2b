//===- Search.cpp - the best plans of a job -------------------------------===//
#include "stage/Search/Search.h"
#include "Bounds.h"
#include "Estimate.h"
#include "Progress.h"
#include "Space.h"
#include "stage/AST/AST.h"
#include "stage/IR/graph/PipelineChain.h"
#include "stage/Memory/Memory.h"
#include "stage/Search/Diagnostics.h"
#include "stage/Sema/Program.h"
#include "stage/Support/Table.h"
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <thread>

using namespace stage;
using sema::CandidateValue;

/// So many candidates are gone through in some minutes.
constexpr size_t mostCandidates = 20'000'000;
/// Of a larger space, whose search is limited, so many are looked at.
constexpr size_t partOfLarge = 100'000;
/// Plans of the first round, behind which those that fit are timed; each round is so many times as long as the one
/// before. The same for any number of threads, as is the number of plans that are timed together.
constexpr size_t firstRound = 64, growthOfRounds = 4, timedTogether = 8;

namespace {
enum class State : uint8_t {
  Unbound,
  Waiting,  ///< It was bound, and may be compiled.
  Refused,  ///< By the compiler.
  TooLarge, ///< Its bound of memory says so, or memory that was accounted.
  Fits,     ///< It was compiled, and has no time yet.
  TooSlow,  ///< Its bound of time.
  Excluded, ///< By a requirement about its report.
  Found,
};

struct Candidate {
  size_t number = 0;
  State state = State::Unbound;
  bool isExact = false; ///< `memory` was accounted.
  __int128 memory = 0;  ///< Bytes: a bound, or exact.
  __int128 limit = 0;   ///< Bytes; 0: none.
  double time = 0;      ///< Ticks: a bound, of the compiled program where it fits.
  size_t rule = 0;      ///< Of a candidate that a requirement excludes.
  std::string refusal;  ///< The code, and the text up to its numbers.
  std::shared_ptr<const FoundPlan> plan;
};

/// It was neither compiled nor excluded.
bool isOpen(const Candidate &candidate) {
  return candidate.state == State::Unbound || candidate.state == State::Waiting || candidate.state == State::Fits;
}

class Searcher {
public:
  Searcher(Session &session, const SearchRequest &request) : session(session), request(request) {}

  bool run();
  SearchResult result;

private:
  bool bindSpace();
  bool filter();
  bool reportTooLarge(std::optional<size_t> count);
  Candidate makeCandidate(size_t number, llvm::ArrayRef<CandidateValue> slots) const;
  void bindAll(SessionThreads &threads);
  void findReferences();
  llvm::ArrayRef<Candidate> listCandidates(size_t space) const;
  void compileAll(SessionThreads &threads);
  void timeBest(SessionThreads &threads, llvm::ArrayRef<Candidate *> fitting);
  void findNearest(SessionThreads &threads);
  void rank();
  void findNeighbors(SessionThreads &threads);
  void addOtherStrategies();
  bool checkRecords();
  void count();
  bool reportNothing();

  void bind(Session &own, Candidate &candidate) const;
  /// How far a candidate is compiled.
  enum class Depth : uint8_t { Memory, Bound, Time };
  void compile(Session &own, Candidate &candidate, Depth depth = Depth::Time) const;
  /// No plan of this bound is among the best of those that were timed.
  bool isTooSlow(double time) const { return best.size() >= request.top && time > best[request.top - 1]; }
  bool isRankedByTime() const;
  /// Whether the first plan is before the second one.
  bool isBetter(const FoundPlan &a, const FoundPlan &b) const;
  double getRecord(const FoundPlan &plan, unsigned objective) const {
    unsigned record = result.getObjectives()[objective];
    double value = plan.records[record];
    return sema::getSearchRecords()[record].isMost ? -value : value;
  }
  bool isFront() const { return result.getObjectives().size() > 1; }
  /// `share`: of the seconds that the search may take.
  bool isStopped(double share = 1) const {
    return (request.stop && *request.stop) ||
           (request.seconds > 0 &&
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > request.seconds * share);
  }
  unsigned countThreads() const {
    return request.threads ? request.threads : std::max(1u, std::thread::hardware_concurrency());
  }

  Session &session;
  const SearchRequest &request;
  std::optional<Spaces> spaces;
  std::vector<size_t> numByRule;
  std::vector<Candidate> candidates;
  std::vector<std::optional<ModelCosts>> models; ///< By strategy; nothing: none of its plans compiles.
  bool usesBounds = false;
  std::vector<double> best; ///< Ticks of the best plans that were timed, ascending.
  ProgressMeter meter{request.progress};
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};
} // namespace

Plan SearchResult::getPlan(size_t number) const {
  Plan plan = base;
  size_t tried = 0;
  for (size_t count; number >= (count = Space(spaces[tried]).count().value_or(number + 1)); ++tried)
    number -= count;
  const sema::BoundSearch &space = spaces[tried];
  if (space.strategy.value)
    plan.set("job.strategy", sema::OverrideValue::expression(space.strategy.text));
  std::vector<size_t> digits = Space(space).decode(number);
  for (size_t i = 0; i != digits.size(); ++i)
    plan.set(space.names[i].getQualified(), space.names[i].values[digits[i]].given);
  std::vector<std::string> texts = Space(space).describe(number);
  for (size_t i = 0; i != space.following.size(); ++i)
    if (!space.following[i].isSaid)
      plan.set("strategy." + space.following[i].name, sema::OverrideValue::read(texts[digits.size() + i]));
  // The job knows how many ranks there are only where it says so itself.
  if (llvm::none_of(space.following, [](const sema::FollowingName &name) { return name.isSaid; }))
    llvm::erase_if(plan.values, [](const sema::Override &value) { return value.name == "job.gpus"; });
  return plan;
}

//===----------------------------------------------------------------------===//
// The space
//===----------------------------------------------------------------------===//

/// The iterations of the repeats of the model, by name.
static std::optional<int64_t> countIterations(const Graph &graph, llvm::StringRef name) {
  for (const auto &op : graph.getForward())
    if (op->kind == OpKind::Repeat && op->name == name) {
      SizeValue count = evaluateCount(op->count, graph.binding);
      return count ? std::optional(int64_t(count.value.num)) : std::nullopt;
    }
  return std::nullopt;
}

/// The model is elaborated on one rank.
bool Searcher::bindSpace() {
  const ast::JobDecl *job = sema::findJob(session.getFiles(), request.plan.job, session.getDiags());
  if (!job)
    return false;
  result.job = job->name.name.str();
  result.base = request.plan;
  std::optional<std::vector<sema::SearchedStrategy>> strategies =
      sema::findSearchedStrategies(session.getFiles(), *job, request.changes, session.getDiags());
  if (!strategies)
    return false;
  std::vector<sema::SearchChange> changes;
  Plan ofModel(result.job);
  for (const sema::SearchChange &change : request.changes) {
    llvm::StringRef name = llvm::StringRef(change.name);
    name = name.contains('.') ? name.rsplit('.').second : name;
    if (name == "strategy")
      continue;
    llvm::StringRef owner = sema::findSearchOwner(session.getFiles(), *job, name, *strategies);
    if (change.values.size() > 1 || !owner.empty())
      changes.push_back(change);
    else
      result.base.set(change.name, change.values.front());
    if (change.values.size() == 1 && (owner == "config" || owner == "step" || owner.empty()))
      ofModel.set(change.name, change.values.front());
  }
  ofModel.set("job.strategy", sema::OverrideValue::expression("none"));
  Compilation c(session);
  if (!bindPlan(c, ofModel) || !elaborate(c, ofModel))
    return false;
  if (!c.job->machine) {
    session.getDiags().report(job->name.loc(), diag::SearchNeedsMachine).range(job->name.range) << result.job;
    return false;
  }
  std::optional<std::vector<sema::BoundSearch>> bound = sema::bindSearch(
      session.getFiles(), *c.job, *strategies, changes, c.sizes, c.binding,
      [&](llvm::StringRef name) { return countIterations(*c.graph, name); }, session.getDiags());
  if (!bound)
    return false;
  if (request.wantsFront && bound->front().objectives.size() == 1) {
    session.getDiags().report(job->name.loc(), diag::PictureNeedsFront).range(job->name.range) << result.job;
    return false;
  }
  result.spaces = std::move(*bound);
  spaces.emplace(result.spaces);
  result.names = spaces->getNames();
  for (size_t i = 0; i != result.names.size(); ++i)
    result.varies.push_back(spaces->varies(i));
  models.resize(result.spaces.size());
  usesBounds = request.usesBounds;
  for (const sema::BoundSearch &space : result.spaces)
    for (const sema::SearchedName &name : space.names) {
      // Model, batch, precision, machine and runtime are those of all plans.
      bool isOfPlan = name.owner == "strategy" || name.name == "gpus" || name.name == "microbatch";
      usesBounds &= isOfPlan || name.values.size() == 1;
    }
  return true;
}

/// How long it would take is measured.
bool Searcher::reportTooLarge(std::optional<size_t> count) {
  std::string duration = "centuries";
  if (count) {
    auto prepare = [&](llvm::ArrayRef<size_t> numbers) {
      for (size_t number : numbers)
        candidates.emplace_back().number = number;
      findReferences();
    };
    Depth depth = isRankedByTime() ? Depth::Bound : Depth::Time;
    duration = formatDuration(estimateSeconds(*spaces, *count, countThreads(), prepare, [&](size_t number) {
      Candidate candidate;
      candidate.number = number;
      bind(session, candidate);
      if (candidate.state == State::Waiting)
        compile(session, candidate, depth);
    }));
  }
  session.getDiags().report(SMLoc(), diag::SpaceTooLarge)
      << (count ? formatCount(*count) : "more than 64 bits count") << formatCount(mostCandidates) << duration;
  return false;
}

Candidate Searcher::makeCandidate(size_t number, llvm::ArrayRef<CandidateValue> slots) const {
  Candidate candidate;
  candidate.number = number;
  if (std::optional<__int128> most = spaces->findMostMemory(number, slots))
    candidate.limit = std::max<__int128>(*most, 1);
  return candidate;
}

/// What values alone decide.
bool Searcher::filter() {
  std::optional<size_t> count = spaces->count();
  bool isLarge = !count || *count > mostCandidates, hasLimit = request.mostPlans || request.seconds > 0;
  if (isLarge && (!count || !hasLimit))
    return reportTooLarge(count);
  result.numCandidates = *count;
  std::vector<size_t> part;
  for (size_t i = 0; isLarge && i != partOfLarge; ++i)
    part.push_back(ScatteredNumbers(*count).get(i));
  llvm::sort(part);
  size_t numDecided = isLarge ? part.size() : *count;
  result.numUndecided = *count - numDecided;
  result.isLimited = isLarge;
  numByRule.resize(spaces->countRules());
  std::vector<CandidateValue> slots;
  meter.begin(SearchProgress::Phase::Decide, numDecided);
  for (size_t i = 0; i != numDecided; ++i) {
    size_t number = isLarge ? part[i] : i;
    meter.advance();
    if (std::optional<size_t> rule = spaces->findRule(number, slots))
      ++numByRule[*rule];
    else
      candidates.push_back(makeCandidate(number, slots));
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

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

void Searcher::compile(Session &own, Candidate &candidate, Depth depth) const {
  OwnCompilation compilation(own);
  Compilation &c = compilation.c;
  Plan plan = result.getPlan(candidate.number);
  auto refuse = [&] {
    candidate.state = State::Refused;
    candidate.refusal = describeRefusal(compilation.messages.all);
  };
  if (!bindPlan(c, plan) || !elaborate(c, plan) || !runMiddle(c))
    return refuse();
  setLimit(candidate, c);
  if (depth == Depth::Bound) {
    candidate.time = std::max(candidate.time, double(findLeastStep(c)));
    if (c.diags.hasErrors())
      return refuse();
    if (isTooSlow(candidate.time)) {
      candidate.state = State::TooSlow;
      return;
    }
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
    return;
  }
  if (depth == Depth::Memory)
    return;
  if (depth == Depth::Bound) {
    candidate.state = State::Fits;
    return;
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

/// Those of a strategy, as far as requirements allow them.
llvm::ArrayRef<Candidate> Searcher::listCandidates(size_t space) const {
  auto find = [&](size_t number) {
    return llvm::partition_point(candidates, [&](const Candidate &of) { return of.number < number; });
  };
  auto begin = find(spaces->getFirst(space));
  auto end = space + 1 == models.size() ? candidates.end() : find(spaces->getFirst(space + 1));
  return llvm::makeArrayRef(candidates.data() + (begin - candidates.begin()), end - begin);
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

bool Searcher::isBetter(const FoundPlan &a, const FoundPlan &b) const {
  double left = getRecord(a, 0), right = getRecord(b, 0);
  return left != right ? left < right : a.number < b.number;
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

void Searcher::compileAll(SessionThreads &threads) {
  std::vector<Candidate *> order, fitting;
  for (Candidate &candidate : candidates)
    if (candidate.state == State::Waiting)
      order.push_back(&candidate);
  llvm::stable_sort(order, [](Candidate *a, Candidate *b) { return a->time < b->time; });
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
    threads.forEach(count, [&](Session &own, size_t i) {
      Candidate &candidate = *order[done + i];
      meter.advance();
      if (isTooSlow(candidate.time)) {
        candidate.state = State::TooSlow;
        return;
      }
      if (isStopped())
        return;
      compile(own, candidate, isByTime ? Depth::Bound : Depth::Time);
      ++numCompiled;
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
    if (candidate->state == State::Fits && isTooSlow(candidate->time))
      candidate->state = State::TooSlow;
  for (const Candidate &candidate : candidates)
    result.numUndecided += isOpen(candidate);
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

void Searcher::rank() {
  for (Candidate &candidate : candidates)
    if (candidate.state == State::Found)
      result.best.push_back(*candidate.plan);
  result.numFit = result.best.size();
  llvm::sort(result.best, [&](const FoundPlan &a, const FoundPlan &b) { return isBetter(a, b); });
  if (!isFront()) {
    result.best.resize(std::min(result.best.size(), request.top));
    return;
  }
  // Of plans that come later in the first objective those stay that are better in the second one than all before.
  std::vector<FoundPlan> front;
  for (FoundPlan &plan : result.best) {
    bool isEqual = !front.empty() && getRecord(front.back(), 0) == getRecord(plan, 0);
    if (front.empty() || getRecord(plan, 1) < getRecord(front.back(), 1)) {
      if (isEqual)
        front.pop_back();
      front.push_back(std::move(plan));
    }
  }
  auto isOfFront = [&](size_t number) {
    return llvm::any_of(front, [&](const FoundPlan &plan) { return plan.number == number; });
  };
  for (const Candidate &candidate : candidates)
    if (candidate.state == State::Found && !isOfFront(candidate.number))
      result.behindFront.emplace_back(candidate.plan->records[result.getObjectives()[0]],
                                      candidate.plan->records[result.getObjectives()[1]]);
  result.best = std::move(front);
}

void Searcher::findNeighbors(SessionThreads &threads) {
  auto [own, ofBest] = spaces->locate(result.best.front().number);
  const Space &space = spaces->get(own);
  std::vector<size_t> digits = space.decode(ofBest);
  std::vector<Candidate> tried;
  std::vector<CandidateValue> slots;
  for (size_t i = 0; i != digits.size(); ++i) {
    const sema::SearchedName &name = result.spaces[own].names[i];
    for (size_t value = 0; value != name.values.size(); ++value) {
      if (value == digits[i])
        continue;
      std::vector<size_t> changed = digits;
      changed[i] = value;
      size_t number = spaces->getFirst(own) + space.encode(changed);
      NeighborPlan &neighbor = result.neighbors.emplace_back();
      neighbor.name = name.name;
      neighbor.from = name.values[digits[i]].getText();
      neighbor.to = name.values[value].getText();
      Candidate &candidate = tried.emplace_back();
      candidate.number = number;
      if (std::optional<size_t> rule = spaces->findRule(number, slots)) {
        neighbor.reason = spaces->describeRule(*rule);
        candidate.state = State::Excluded;
        continue;
      }
      auto known = llvm::partition_point(candidates, [&](const Candidate &of) { return of.number < number; });
      bool isKnown = known != candidates.end() && known->number == number;
      candidate = isKnown ? *known : makeCandidate(number, slots);
    }
  }
  threads.forEach(tried.size(), [&](Session &own, size_t i) {
    Candidate &candidate = tried[i];
    if (isOpen(candidate) || candidate.state == State::TooSlow ||
        (candidate.state == State::TooLarge && !candidate.isExact))
      compile(own, candidate);
    if (candidate.state == State::TooLarge && !candidate.isExact)
      compile(own, candidate, Depth::Memory);
  });
  for (size_t i = 0; i != tried.size(); ++i) {
    NeighborPlan &neighbor = result.neighbors[i];
    if (tried[i].plan)
      neighbor.plan = *tried[i].plan;
    if (neighbor.plan || !neighbor.reason.empty())
      continue;
    neighbor.reason = tried[i].state == State::TooLarge  ? "needs " + formatBytes(tried[i].memory)
                      : tried[i].state == State::Refused ? "refused [" + tried[i].refusal + "]"
                                                         : spaces->describeRule(tried[i].rule);
  }
  addOtherStrategies();
}

/// The best plan of each other strategy, of those that were timed, or why there is none.
void Searcher::addOtherStrategies() {
  size_t own = spaces->locate(result.best.front().number).space;
  for (size_t space = 0; space != result.spaces.size(); ++space) {
    if (space == own)
      continue;
    NeighborPlan &neighbor = result.neighbors.emplace_back();
    neighbor.name = result.names.front();
    neighbor.from = result.spaces[own].strategy.label;
    neighbor.to = result.spaces[space].strategy.label;
    bool hasSlow = false, hasOpen = false;
    const Candidate *nearest = nullptr, *refused = nullptr;
    for (const Candidate &candidate : listCandidates(space)) {
      if (candidate.plan && (!neighbor.plan || isBetter(*candidate.plan, *neighbor.plan)))
        neighbor.plan = *candidate.plan;
      hasSlow |= candidate.state == State::TooSlow;
      hasOpen |= isOpen(candidate);
      if (candidate.state == State::TooLarge && candidate.isExact && (!nearest || candidate.memory < nearest->memory))
        nearest = &candidate;
      if (candidate.state == State::Refused && !refused)
        refused = &candidate;
    }
    neighbor.reason = hasSlow   ? "takes longer than those shown, by a lower bound"
                      : hasOpen ? "was not compiled"
                      : nearest ? "needs " + formatBytes(nearest->memory)
                      : refused ? "refused [" + refused->refusal + "]"
                                : "requirements allow none";
  }
}

/// Why candidates are no plans, by rules in their order, then by what the compiler says, in that of its codes.
void Searcher::count() {
  std::map<std::string, size_t> refused;
  for (const Candidate &candidate : candidates) {
    if (candidate.state == State::Excluded)
      ++numByRule[candidate.rule];
    else if (candidate.state == State::Refused)
      ++refused[candidate.refusal];
    else
      result.numTooSlow += candidate.state == State::TooSlow;
  }
  for (size_t rule = 0; rule != numByRule.size(); ++rule)
    if (numByRule[rule])
      result.excluded.push_back({spaces->describeRule(rule), numByRule[rule]});
  for (const auto &[code, number] : refused)
    result.excluded.push_back({"refused [" + code + "]", number});
}

/// No plan is there: why.
bool Searcher::reportNothing() {
  std::string numCandidates = formatCount(result.numCandidates);
  if (result.isLimited) {
    session.getDiags().report(SMLoc(), diag::SearchLimited)
        << formatCount(result.numCompiled) << formatCount(result.numUndecided);
    return false;
  }
  if (result.numTooLarge && result.nearest) {
    std::string plan;
    for (size_t i = 0; i != result.names.size(); ++i)
      if (!result.nearest->values[i].empty())
        plan += (plan.empty() ? "" : ", ") + result.names[i] + " = " + result.nearest->values[i];
    session.getDiags().report(SMLoc(), diag::NothingFits)
        << formatCount(result.numTooLarge) << plan << formatBytes(result.nearest->needs)
        << formatBytes(result.nearest->limit);
    return false;
  }
  DiagnosticBuilder error = session.getDiags().report(SMLoc(), diag::EmptySearch) << numCandidates;
  for (size_t rule = 0; rule != numByRule.size(); ++rule)
    if (numByRule[rule])
      error.note(spaces->getLocation(rule), diag::ExcludedHere)
          << formatCount(numByRule[rule]) << spaces->describeRule(rule);
  for (const ExcludedBy &excluded : result.excluded)
    if (llvm::StringRef(excluded.rule).startswith("refused"))
      error.note(SMLoc(), diag::ExcludedHere) << formatCount(excluded.count) << excluded.rule;
  return false;
}

bool Searcher::checkRecords() {
  for (unsigned record : result.getObjectives()) {
    if (!std::isnan(result.best.front().records[record]))
      continue;
    llvm::StringRef name = sema::getSearchRecords()[record].name;
    session.getDiags().report(SMLoc(), diag::RecordMissing)
        << name
        << (name == "cost"     ? "'price'"
            : name == "energy" ? "'power.busy' and 'power.idle'"
                               : "'flops' of the type of activations");
    return false;
  }
  return true;
}

bool Searcher::run() {
  if (!bindSpace() || !filter())
    return false;
  SessionThreads threads(session,
                         request.threads ? request.threads : std::min<size_t>(countThreads(), candidates.size() + 1));
  if (!candidates.empty()) {
    findReferences();
    bindAll(threads);
    compileAll(threads);
  }
  findNearest(threads);
  count();
  rank();
  if (result.best.empty())
    return reportNothing();
  if (!checkRecords())
    return false;
  findNeighbors(threads);
  return true;
}

std::optional<SearchResult> stage::findPlans(Session &session, const SearchRequest &request) {
  Searcher searcher(session, request);
  return searcher.run() ? std::optional(std::move(searcher.result)) : std::nullopt;
}
