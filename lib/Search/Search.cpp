//===- Search.cpp - the best plans of a job -------------------------------===//
#include "stage/Search/Search.h"
#include "Estimate.h"
#include "Searcher.h"
#include "stage/AST/AST.h"
#include "stage/Search/Diagnostics.h"
#include "stage/Sema/Program.h"
#include "stage/Support/Table.h"

using namespace stage;
using sema::CandidateValue;
using State = CandidateState;

/// So many candidates are gone through in some minutes.
constexpr size_t mostCandidates = 20'000'000;
/// Of a larger space, whose search is limited, so many are looked at.
constexpr size_t partOfLarge = 100'000;

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
  jobPlace = job->name.loc();
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

/// Those of a strategy, as far as requirements allow them.
llvm::ArrayRef<Candidate> Searcher::listCandidates(size_t space) const {
  auto find = [&](size_t number) {
    return llvm::partition_point(candidates, [&](const Candidate &of) { return of.number < number; });
  };
  auto begin = find(spaces->getFirst(space));
  auto end = space + 1 == models.size() ? candidates.end() : find(spaces->getFirst(space + 1));
  return llvm::makeArrayRef(candidates.data() + (begin - candidates.begin()), end - begin);
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
