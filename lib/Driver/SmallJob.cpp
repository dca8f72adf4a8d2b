//===- SmallJob.cpp - a plan that makes a job small -----------------------===//
#include "SmallJob.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/IR/graph/PipelineChain.h"
#include "stage/IR/graph/Rule.h"
#include "stage/Interp/Diagnostics.h"
#include "stage/Schedule/BalancedSplit.h"
#include "stage/Sema/InferenceWords.h"
#include "stage/Sema/Walk.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <numeric>
#include <set>

using namespace stage;
using namespace stage::driver;
using namespace stage::interp;

SmallJob::SmallJob(const Plan &plan, Session &session) : plan(plan), session(session) {
  for (const sema::Override &define : plan.values)
    given.push_back(llvm::StringRef(define.name).rsplit('.').second.empty()
                        ? define.name
                        : llvm::StringRef(define.name).rsplit('.').second.str());
}

/// The repeats of a pipeline that are cut, each before its iterations or within them.
static std::vector<std::pair<unsigned, bool>> listKindsOfCuts(const Graph &graph) {
  std::optional<PipelineChain> chain = findChain(graph);
  return chain ? chain->listKindsOfCuts() : std::vector<std::pair<unsigned, bool>>();
}

/// By number among the axes of the mesh that have several ranks.
static std::vector<std::pair<std::string, std::vector<unsigned>>> getArrangement(const sema::BoundStrategy &strategy) {
  llvm::StringMap<unsigned> numbers;
  for (const sema::BoundAxis &axis : strategy.mesh)
    if (axis.size > 1)
      numbers.try_emplace(axis.name.name, numbers.size());
  std::vector<std::pair<std::string, std::vector<unsigned>>> result;
  for (const sema::BoundAxis &axis : strategy.readings) {
    std::vector<unsigned> parts;
    auto add = [&](llvm::StringRef name) {
      if (auto it = numbers.find(name); it != numbers.end())
        parts.push_back(it->second);
    };
    auto alias = llvm::find_if(strategy.aliases,
                               [&](const sema::BoundAlias &known) { return known.name.name == axis.name.name; });
    if (alias == strategy.aliases.end())
      add(axis.name.name);
    else
      llvm::for_each(alias->axes, add);
    result.emplace_back(axis.name.name.str(), std::move(parts));
  }
  return result;
}

static Plan with(Plan plan, std::string name, int64_t value) {
  plan.values.push_back({std::move(name), value});
  return plan;
}

/// As many parts of a sum as there are stages: the first and the last of the job, and between them even ones.
static std::vector<int64_t> thinSplit(llvm::ArrayRef<int64_t> split, unsigned parts) {
  int64_t sum = std::accumulate(split.begin(), split.end(), int64_t(0));
  if (parts < 2 || split.size() < 2)
    return {sum};
  if (parts == 2)
    return {split.front(), sum - split.front()};
  std::vector<int64_t> result = splitEvenly(sum - split.front() - split.back(), parts - 2);
  result.insert(result.begin(), split.front());
  result.push_back(split.back());
  return result;
}

void SmallJob::settleSplit(Graph &graph) const {
  PipelineInfo &pipeline = graph.pipeline;
  if (split.empty() || (pipeline.balance == Balance::None && pipeline.split.empty()))
    return;
  unsigned parts = countVirtualStages(graph);
  pipeline.balance = Balance::None;
  pipeline.split = parts == split.size()  ? split
                   : parts < split.size() ? thinSplit(split, parts)
                                          : std::vector<int64_t>();
  if (!findChain(graph))
    pipeline.split.clear();
}

bool SmallJob::run(bool isPool) {
  session.getDiags().setShowWarnings(!isPool); // both pools have been compiled before, together
  Compilation job(session);
  if (!runFrontEnd(job, plan))
    return false;
  isPrefilledByOther = job.job->inference && job.job->inference->prefilled;
  if (isPrefilledByOther && !isPool)
    return true;
  arrangement = getArrangement(job.job->strategy);
  choices = job.obligations.getChoices();
  binding = job.graph->binding;
  for (const Axis &axis : job.graph->mesh.getAxes())
    binding.bind(axis.name, axis.size);
  for (const Rule &rule : job.graph->rules)
    if (rule.kind == RuleKind::Ring || rule.kind == RuleKind::OverlapProducts)
      for (AxisId axis : rule.axes)
        longAxes.push_back(job.graph->mesh[axis].name);
  if (const PipelineInfo &pipeline = job.graph->pipeline; pipeline.copies > 1)
    longAxes.push_back(job.graph->mesh[*pipeline.axis].name);
  plan.namesConstants = plan.allEquallyFast = true;
  // Where stages are balanced the passes say how; otherwise a mesh that is too large is refused before they run.
  bool isBalanced = job.graph->pipeline.balance != Balance::None;
  auto findMesh = [&] {
    split = job.graph->pipeline.split;
    kindsOfCuts = listKindsOfCuts(*job.graph);
    return shrinkMesh(*job.job);
  };
  if (!isBalanced && !findMesh())
    return false;
  // What a report refuses is no job to prove, though a smaller one might pass.
  if (!runMiddle(job) || !makeReport(job))
    return false;
  if (isBalanced && !findMesh())
    return false;
  if (isPool) // they agree upon the rest
    return true;
  shrinkBatch();
  if (job.job->inference)
    shrinkSequences(*job.job->inference);
  noteLost();
  return true;
}

bool SmallJob::settle(int64_t sequences, int64_t batches, int64_t length, bool namesConstants) {
  Plan trial = with(with(plan, "step.B", sequences), "step.microbatch", sequences / (batches * batchRanks));
  trial.shortLength = length;
  trial.namesConstants = namesConstants;
  return accept(trial, /*isArranged=*/false).has_value();
}

SizeBinding SmallJob::getJobSizes(const SizeBinding &small) const {
  SizeBinding result = small;
  result.bind(binding);
  return result;
}

/// What the program chooses with this plan, which is ours then, if it accepts it and its pipeline cuts where
/// that of the job does; `isArranged`: and its mesh has the arrangement of the job's.
std::optional<SmallJob::Choices> SmallJob::accept(Plan trial, bool isArranged) {
  DiagnosticEngine quiet(session.getSources());
  Compilation c(session, quiet);
  if (!runFrontEnd(c, trial) || (isArranged && getArrangement(c.job->strategy) != arrangement))
    return std::nullopt;
  settleSplit(*c.graph);
  if (listKindsOfCuts(*c.graph) != kindsOfCuts)
    return std::nullopt;
  plan = std::move(trial);
  microbatches = c.job->microbatches;
  globalBatch = c.job->globalBatch;
  batchRanks = c.job->batchRanks;
  numRanks = c.graph->mesh.getNumRanks();
  axisSizes.clear();
  for (const sema::BoundAxis &axis : c.job->strategy.readings)
    axisSizes[axis.name.name] = axis.size;
  if (c.job->strategy.pipeline)
    if (const sema::BoundAxis *axis = c.job->strategy.findAxis(c.job->strategy.pipeline->axis))
      stages = axis->size;
  return c.obligations.getChoices();
}

/// The same, with a symbol for each number that has a name; or else, as to the program a literal and a name for the
/// same number are different sizes then, with one symbol of which such numbers are multiples, or with the numbers
/// themselves.
std::optional<SmallJob::Choices> SmallJob::acceptNamed(Plan trial, bool isArranged) {
  trial.namesConstants = true;
  if (std::optional<Choices> taken = accept(trial, isArranged))
    return taken;
  trial.namesConstants = false;
  if (!accept(trial, isArranged))
    return std::nullopt;
  for (int64_t unit : {64, 32, 16, 8}) {
    trial.constantUnit = unit;
    if (std::optional<Choices> taken = accept(trial, isArranged))
      return taken;
  }
  trial.constantUnit = 0;
  return accept(trial, isArranged);
}

/// Whether the passes, too, accept the program with this plan.
bool SmallJob::passes(const Plan &trial) const {
  DiagnosticEngine quiet(session.getSources());
  Compilation c(session, quiet);
  if (!runFrontEnd(c, trial))
    return false;
  settleSplit(*c.graph);
  return runMiddle(c);
}

/// A place that is not reached any more follows from another choice.
SmallJob::Choices SmallJob::listLostChoices(const Choices &small) const {
  Choices result;
  for (auto &[place, taken] : choices)
    if (auto it = small.find(place); it != small.end() && (taken & ~it->second))
      result[place] = taken & ~it->second;
  return result;
}

/// The parameter of the job's strategy that gives an axis its size; a call may have passed it on under other names.
static const ast::Param *findParam(const sema::BoundStrategy &strategy, llvm::StringRef axis) {
  if (!strategy.decl)
    return nullptr;
  llvm::StringRef name = axis;
  for (const sema::BoundCall *call = strategy.meshCall; call && call->caller; call = call->caller) {
    auto *written = llvm::cast<ast::CallExpr>(call->expr);
    llvm::ArrayRef<ast::Param> params = call->callee->params;
    const ast::Expr *passed = nullptr;
    for (size_t i = 0; i != written->args.size(); ++i) {
      const ast::Argument &argument = written->args[i];
      if (argument.name ? argument.name.name == name : i < params.size() && params[i].name.name == name)
        passed = argument.value;
    }
    auto *own = llvm::dyn_cast_or_null<ast::NameExpr>(passed);
    if (!own)
      return nullptr;
    name = own->name;
  }
  for (const ast::Param &param : strategy.decl->params)
    if (param.name.name == name)
      return &param;
  return nullptr;
}

/// `edp = dp / ep`: a default that is computed from other parameters.
static bool mentionsParam(const sema::BoundStrategy &strategy, const ast::Expr *value) {
  bool any = false;
  if (value && strategy.decl)
    sema::walk(value, [&](const ast::Expr *part) {
      auto *name = llvm::dyn_cast<ast::NameExpr>(part);
      any |= name && llvm::any_of(strategy.decl->params,
                                  [&](const ast::Param &param) { return param.name.name == name->name; });
    });
  return any;
}

/// Smaller sizes for an axis: its divisors, because a dim that the axis splits evenly must still come out even. An odd
/// axis stays odd. A prime number above 7 has no smaller divisor, and 3, 5 and 7 are tried instead.
static std::vector<int64_t> listSmaller(int64_t size, bool isLong) {
  std::vector<int64_t> result;
  int64_t even = isLong ? 4 : 2;
  for (int64_t smaller = size % 2 ? 3 : even; smaller < size && smaller <= maxProofRanks; smaller += size % 2 ? 2 : 1)
    if (size % smaller == 0 && (size % 2 || smaller % 2 == 0))
      result.push_back(smaller);
  if (result.empty() && size > 7 && size % 2)
    result = {3, 5, 7};
  return result;
}

/// By the first reading of a mesh.
static int64_t countRanks(const sema::BoundStrategy &strategy,
                          llvm::function_ref<int64_t(const sema::BoundAxis &)> getSize) {
  int64_t ranks = 1;
  for (size_t i = 0; i < strategy.readings.size() && (!strategy.meshStmt || i < strategy.meshStmt->axes.size()); ++i)
    ranks *= getSize(strategy.readings[i]);
  return ranks;
}

/// The smallest mesh, by its ranks, under which the program is the same; or else one that it accepts.
bool SmallJob::shrinkMesh(const sema::BoundJob &job) {
  struct Axis {
    llvm::StringRef name, param;
    int64_t size;
    std::vector<int64_t> sizes; ///< 0: as the strategy computes it from others.
  };
  std::vector<Axis> axes;
  auto addAxis = [&](llvm::StringRef name, int64_t now) {
    const ast::Param *param = findParam(job.strategy, name);
    if (!param || isGiven(param->name.name))
      return;
    Axis choice{name, param->name.name, now, {}};
    bool isLong = llvm::is_contained(longAxes, name), isComputed = mentionsParam(job.strategy, param->defaultValue);
    choice.sizes = listSmaller(now, isLong);
    if (choice.sizes.empty())
      return;
    if (isComputed)
      choice.sizes.insert(choice.sizes.begin(), 0);
    choice.sizes.push_back(now);
    axes.push_back(std::move(choice));
  };
  for (const sema::BoundAxis &axis : job.strategy.readings)
    addAxis(axis.name.name, axis.size);
  for (const sema::BoundAlias &alias :
       job.strategy.aliases) { // `axis ep = (ep_nodes, ep_local)`: its size may be what these are computed from
    int64_t size = 1;
    for (llvm::StringRef part : alias.axes)
      for (const sema::BoundAxis &axis : job.strategy.mesh)
        size *= axis.name.name == part ? axis.size : 1;
    if (llvm::none_of(job.strategy.readings,
                      [&](const sema::BoundAxis &axis) { return axis.name.name == alias.name.name; }))
      addAxis(alias.name.name, size);
  }
  // Every combination, that with the fewest ranks first. Most combinations of two readings have different ranks.
  bool isReadTwice = job.strategy.meshStmt && job.strategy.readings.size() > job.strategy.meshStmt->axes.size();
  size_t most = isReadTwice ? 512 : 64;
  std::vector<std::pair<int64_t, std::vector<int64_t>>> meshes = {{1, {}}};
  for (const Axis &choice : axes) {
    std::vector<std::pair<int64_t, std::vector<int64_t>>> longer;
    for (auto &[ranks, sizes] : meshes)
      for (int64_t size : choice.sizes) {
        longer.emplace_back(ranks * std::max<int64_t>(size, 1), sizes);
        longer.back().second.push_back(size);
      }
    llvm::stable_sort(longer, [](auto &a, auto &b) { return a.first < b.first; });
    longer.resize(std::min(longer.size(), most));
    meshes = std::move(longer);
  }
  meshes.emplace_back(); // That of the job.
  for (const Axis &choice : axes)
    meshes.back().second.push_back(choice.size);

  microbatchesOfJob = job.microbatches;
  const Plan before = plan;
  for (bool isArranged : {true, false}) {
    std::optional<Plan> best; ///< That makes the most choices of the job.
    for (size_t number = 0; number < meshes.size(); ++number) {
      llvm::ArrayRef<int64_t> sizes = meshes[number].second;
      Plan trial = before;
      int64_t ranks = countRanks(job.strategy, [&](const sema::BoundAxis &axis) {
        for (size_t i = 0; i < sizes.size(); ++i)
          if (axes[i].name == axis.name.name)
            return std::max<int64_t>(sizes[i], 1);
        const ast::Param *param = findParam(job.strategy, axis.name.name);
        return param && !isGiven(param->name.name) ? 1 : axis.size;
      });
      if (ranks > maxProofRanks)
        continue;
      for (size_t i = 0; i < sizes.size(); ++i)
        if (sizes[i] && sizes[i] != axes[i].size)
          trial = with(std::move(trial), "strategy." + axes[i].param.str(), sizes[i]);
      std::optional<Choices> taken = acceptNamed(std::move(trial), isArranged);
      if (!taken)
        continue;
      Choices missing = listLostChoices(*taken);
      if (best && missing.size() >= lost.size())
        continue;
      bool comesOutEven = true;
      for (size_t i = 0; i < sizes.size(); ++i)
        comesOutEven &= !sizes[i] || axes[i].size % sizes[i] == 0;
      if (!comesOutEven && !passes(plan))
        continue;
      best = plan;
      lost = std::move(missing);
      if (lost.empty())
        break;
    }
    if (!best)
      continue;
    accept(*best, isArranged);
    isRearranged = !isArranged;
    for (const sema::BoundAxis &axis : job.strategy.readings)
      note(axis.name.name, axis.size, axisSizes.lookup(axis.name.name));
    return true;
  }
  reportTooLarge(job);
  return false;
}

/// Says which axes keep their sizes, and why the smallest mesh is refused.
void SmallJob::reportTooLarge(const sema::BoundJob &job) {
  DiagnosticBuilder error = session.getDiags().report(job.decl->name.loc(), diag::ProofTooLarge)
                            << maxProofRanks << job.strategy.getNumRanks();
  std::string values;
  Plan smallest = plan;
  for (const sema::BoundAxis &axis : job.strategy.readings) {
    if (axis.size <= 2)
      continue;
    const ast::Param *param = findParam(job.strategy, axis.name.name);
    if (isGiven(axis.name.name))
      error.note(axis.name.loc(), diag::ProofAxisGiven) << axis.name.name << axis.size;
    else if (!param)
      error.note(axis.name.loc(), diag::ProofAxisFixed) << axis.name.name << axis.size << job.strategy.decl->name.name;
    else if (!mentionsParam(job.strategy, param->defaultValue))
      smallest = with(std::move(smallest), "strategy." + axis.name.name.str(), axis.size % 2 ? 3 : 2);
  }
  DiagnosticList messages;
  DiagnosticEngine loud(session.getSources(), &messages);
  Compilation c(session, loud);
  if (!runFrontEnd(c, smallest))
    error.note(SMLoc(), diag::ProofSmallerRefused) << getErrorText(messages.all);
}

/// Names the choices of the job that the proof does not make, by file and line: places in memory have another order in
/// each run.
void SmallJob::noteLost() {
  std::set<std::pair<std::string, unsigned>> lines;
  for (auto &[place, alternatives] : lost) {
    SMLoc loc = SMLoc::getFromPointer(place);
    if (unsigned buffer = session.getSources().FindBufferContainingLoc(loc))
      lines.emplace(
          llvm::sys::path::filename(session.getSources().getMemoryBuffer(buffer)->getBufferIdentifier()).str(),
          session.getSources().getLineAndColumn(loc, buffer).first);
  }
  for (auto &[file, line] : lines)
    made.notKept.push_back(file + ":" + std::to_string(line) +
                           ": the job takes a branch here that this proof does not take");
  if (isRearranged)
    made.notKept.push_back("the arrangement of the mesh: an axis lies over other axes than in the job");
}

void SmallJob::note(llvm::StringRef name, int64_t from, int64_t to) {
  if (from != to)
    made.smaller.push_back(name.str() + " " + std::to_string(from) + " -> " + std::to_string(to));
}

/// Enough for every unit of a schedule to repeat, two per stage, and for each choice that the job takes.
void SmallJob::shrinkBatch() {
  int64_t now = microbatches, first = 2 * stages;
  if (now <= first || isGiven("B") || globalBatch % now != 0)
    return;
  const Plan before = plan;
  const int64_t perMicrobatch = globalBatch / now;
  std::optional<Plan> best;
  int64_t bestCount = 0;
  std::vector<int64_t> candidates;
  for (int64_t wanted = first; wanted < now && wanted <= first + std::max<int64_t>(first, 6); ++wanted)
    candidates.push_back(wanted);
  for (int64_t wanted = stages; wanted < first; ++wanted) // of a job that never leaves the warm-up
    candidates.push_back(wanted);
  for (int64_t wanted : candidates) {
    std::optional<Choices> taken = accept(with(before, "step.B", perMicrobatch * wanted), /*isArranged=*/false);
    if (!taken)
      continue;
    Choices missing = listLostChoices(*taken);
    if (best && missing.size() >= lost.size())
      continue;
    best = plan;
    bestCount = wanted;
    lost = std::move(missing);
    if (lost.empty())
      break;
  }
  accept(best ? *best : before, /*isArranged=*/false);
  if (best)
    note("microbatches", microbatchesOfJob, bestCount);
}

/// So long that all axes may cut them, also in mirrored order, into pieces of several positions.
void SmallJob::shrinkSequences(const sema::BoundInference &inference) {
  DiagnosticEngine quiet(session.getSources());
  Compilation c(session, quiet);
  int64_t length = runFrontEnd(c, plan) ? 2 * c.graph->mesh.getNumRanks() / stages : inference.getRoom();
  if (inference.servesRequests)
    return;
  for (int64_t parts :
       {2 * length, length}) { // ranks may cut it into so many pieces, each of several positions or of one
    Plan trial = plan;
    trial.shortLength = sema::getShortLength(inference, (8 + parts - 1) / parts * parts, length);
    if ((inference.length && inference.length <= trial.shortLength) || isGiven("S") ||
        !accept(trial, /*isArranged=*/false))
      continue;
    return note("positions", inference.length ? inference.length : inference.begin, trial.shortLength);
  }
}
