//===- Prove.cpp - a job, compiled small and executed ---------------------===//
//
// Problem: a job is for thousands of ranks; a proof runs tens, on tiny tensors, and must
// still be about the same strategy.
//
// Algorithm: compile the job once, at its own sizes, to see its mesh and its step and
// whether it is refused. Compile it again with every axis reduced to 2 (an odd one to 3, an even one in
// which blocks go round to 4: two ranks are each other's neighbours on both sides)
// through the strategy's parameter of the same name, with two microbatches per stage,
// and with a symbol for every size that has a name; give repeats as few iterations as
// tell the truth; run the passes at the sizes of the job, so that they decide as they
// would; then bind every other dim to a tiny size and execute. What the user gives with
// `-D` stays. What a smaller mesh makes the program refuse (`require tp >= 4`) is tried
// with the next larger one, up to the job's own.
//
// Limits: an axis whose size is no parameter of the job's strategy keeps its size.
//
//===----------------------------------------------------------------------===//
#include "Compilation.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/IR/PackedUnits.h"
#include "stage/IRGen/IRGen.h"
#include "stage/Interp/Prove.h"
#include "stage/Schedule/InferenceSymbols.h"
#include "stage/Sema/InferenceWords.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <numeric>

using namespace stage;

namespace {
/// A job under more and more options that make it small.
class SmallJob {
public:
  explicit SmallJob(const DriverOptions &options) : options(options) {
    for (const sema::Override &define : options.defines)
      given.push_back(llvm::StringRef(define.name).rsplit('.').second.empty()
                          ? define.name
                          : llvm::StringRef(define.name).rsplit('.').second.str());
  }

  /// Finds the options; false if the job is refused as it is, which is reported.
  bool run(bool isPool = false) {
    Compilation job;
    job.diags.setShowWarnings(!isPool); // both pools have been compiled before, together
    job.diags.setWarningsAreErrors(options.warningsAreErrors);
    DriverOptions quiet = options;
    quiet.passes = {};
    // What a report refuses is no job to prove, though a smaller one might pass.
    if (!runFrontEnd(job, options))
      return false;
    isPrefilled = job.job->inference && job.job->inference->prefilled;
    if (isPrefilled && !isPool)
      return true;
    if (!runMiddle(job, quiet) || !makeReport(job))
      return false;
    options.namesConstants = options.allEquallyFast = true;
    split = job.graph->pipeline.split;
    kindsOfCuts = listKindsOfCuts(*job.graph);
    for (const Rule &rule : job.graph->rules)
      if (rule.kind == RuleKind::Ring || rule.kind == RuleKind::OverlapProducts)
        for (AxisId axis : rule.axes)
          longAxes.push_back(job.graph->mesh[axis].name);
    if (const PipelineInfo &pipeline = job.graph->pipeline; pipeline.copies > 1)
      longAxes.push_back(job.graph->mesh[*pipeline.axis].name);
    shrinkMesh(*job.job);
    if (isPool) // they agree upon the rest
      return true;
    shrinkBatch();
    if (job.job->inference)
      shrinkSequences(*job.job->inference);
    return true;
  }

  /// Stages that the job balances are cut as in the job, or evenly where there are not as many: at other sizes they
  /// would be others.
  void settleSplit(Graph &graph) const {
    if (graph.pipeline.balance == Balance::None)
      return;
    graph.pipeline.balance = Balance::None;
    graph.pipeline.split = split;
    if (!findChain(graph))
      graph.pipeline.split.clear();
  }

  const DriverOptions &getOptions() const { return options; }
  // Of a pool, with its small mesh.
  int64_t getBatchRanks() const { return batchRanks; }
  int64_t getStages() const { return stages; }
  int64_t getGlobalBatch() const { return globalBatch; }
  /// Ranks that may cut a sequence.
  int64_t getRanksOfStage() const { return numRanks / stages; }
  /// So many sequences in so many batches, and so many positions of each. False if the job does not accept that.
  bool settle(int64_t sequences, int64_t batches, int64_t length, bool namesConstants) {
    DriverOptions trial = with(with(options, "step.B", sequences), "step.microbatch", sequences / (batches * batchRanks));
    trial.sequenceLength = length;
    trial.namesConstants = namesConstants;
    return accept(trial);
  }

  /// Names that the user gave a value, without their owners.
  llvm::ArrayRef<std::string> getGiven() const { return given; }
  bool isPrefilled = false; ///< By another job, with which it is proved.
  /// "tp 8 -> 2, microbatches 8 -> 4".
  std::vector<std::string> notes;

private:
  bool isGiven(llvm::StringRef name) const { return llvm::is_contained(given, name); }

  /// Axes of more than one rank of which the mesh is made.
  static size_t countAxes(const sema::BoundJob &job) {
    return llvm::count_if(job.strategy.mesh, [](const sema::BoundAxis &axis) { return axis.size > 1; });
  }

  /// The repeats of a pipeline that are cut, each before its iterations or within them.
  static std::vector<std::pair<unsigned, bool>> listKindsOfCuts(const Graph &graph) {
    std::optional<PipelineChain> chain = findChain(graph);
    return chain ? chain->listKindsOfCuts() : std::vector<std::pair<unsigned, bool>>();
  }

  /// Whether the program is accepted with these options, has as many axes as it has to, and its pipeline cuts where that
  /// of the job does; they are ours then.
  bool accept(DriverOptions trial, size_t numAxes = 0) {
    Compilation c(llvm::nulls());
    if (!runFrontEnd(c, trial) || (numAxes && countAxes(*c.job) != numAxes))
      return false;
    settleSplit(*c.graph);
    if (listKindsOfCuts(*c.graph) != kindsOfCuts)
      return false;
    options = std::move(trial);
    microbatches = c.job->microbatches;
    globalBatch = c.job->globalBatch;
    batchRanks = c.job->batchRanks;
    numRanks = c.graph->mesh.getNumRanks();
    if (c.job->strategy.pipeline)
      if (const sema::BoundAxis *axis = c.job->strategy.findAxis(c.job->strategy.pipeline->axis))
        stages = axis->size;
    return true;
  }

  static DriverOptions with(DriverOptions options, std::string name, int64_t value) {
    options.defines.push_back({std::move(name), std::to_string(value)});
    return options;
  }

  /// The smallest mesh, by its ranks, with which the program is accepted. Two readings of it that cut the ranks in
  /// different places still do.
  void shrinkMesh(const sema::BoundJob &job) {
    struct Choice {
      const sema::BoundAxis *axis;
      std::vector<int64_t> sizes;
    };
    std::vector<Choice> choices;
    for (const sema::BoundAxis &axis : job.strategy.readings) {
      bool isParameter = llvm::any_of(job.strategy.decl->params,
                                      [&](const ast::Param &param) { return param.name.name == axis.name.name; });
      if (!isParameter || isGiven(axis.name.name))
        continue;
      Choice choice{&axis, {}};
      bool isLong = llvm::is_contained(longAxes, axis.name.name);
      for (int64_t size = axis.size % 2 == 0 ? (isLong ? 4 : 2) : 3; size < axis.size; size *= 2)
        choice.sizes.push_back(size);
      if (choice.sizes.empty())
        continue;
      choice.sizes.push_back(axis.size);
      choices.push_back(std::move(choice));
    }
    // Every combination, that with the fewest ranks first. Most combinations of two readings have different ranks.
    bool isReadTwice = job.strategy.meshStmt && job.strategy.readings.size() > job.strategy.meshStmt->axes.size();
    // Nor is an axis of which several dims have a part one of which one dim has all.
    bool isRefined = isReadTwice || job.strategy.mesh.size() > job.strategy.readings.size();
    size_t numAxes = isRefined ? countAxes(job) : 0, most = isReadTwice ? 512 : 64;
    std::vector<std::pair<int64_t, std::vector<int64_t>>> meshes = {{1, {}}};
    for (const Choice &choice : choices) {
      std::vector<std::pair<int64_t, std::vector<int64_t>>> longer;
      for (auto &[ranks, sizes] : meshes)
        for (int64_t size : choice.sizes) {
          longer.emplace_back(ranks * size, sizes);
          longer.back().second.push_back(size);
        }
      llvm::stable_sort(longer, [](auto &a, auto &b) { return a.first < b.first; });
      longer.resize(std::min(longer.size(), most));
      meshes = std::move(longer);
    }
    meshes.emplace_back(); // That of the job.
    for (const Choice &choice : choices)
      meshes.back().second.push_back(choice.axis->size);
    for (auto &[ranks, sizes] : meshes) {
      DriverOptions trial = options;
      for (size_t i = 0; i < sizes.size(); ++i)
        if (sizes[i] != choices[i].axis->size)
          trial = with(std::move(trial), "strategy." + choices[i].axis->name.name.str(), sizes[i]);
      bool isGood = accept(trial, numAxes);
      // To the program a literal and a name for the same number are different sizes then.
      if (!isGood && options.namesConstants && !accept(options)) {
        trial.namesConstants = options.namesConstants = false;
        isGood = accept(trial, numAxes);
      }
      if (!isGood)
        continue;
      for (size_t i = 0; i < sizes.size(); ++i)
        note(choices[i].axis->name.name, choices[i].axis->size, sizes[i]);
      return;
    }
  }

  /// Enough for every unit of a schedule to repeat: two per stage.
  void shrinkBatch() {
    int64_t wanted = 2 * stages, now = microbatches;
    if (now > wanted && !isGiven("B") && globalBatch % now == 0 &&
        accept(with(options, "step.B", globalBatch / now * wanted)))
      note("microbatches", now, wanted);
  }

  /// So long that all axes may cut them, also in mirrored order.
  void shrinkSequences(const sema::BoundInference &inference) {
    Compilation c(llvm::nulls());
    int64_t length = runFrontEnd(c, options) ? 2 * c.graph->mesh.getNumRanks() / stages : inference.getRoom();
    if (inference.servesRequests)
      return;
    DriverOptions trial = options;
    trial.sequenceLength = sema::getShortLength(inference, (8 + length - 1) / length * length, length); // ranks may cut it into so many
    if ((inference.length && inference.length <= trial.sequenceLength) || isGiven("S") || !accept(trial))
      return;
    note("positions", inference.length ? inference.length : inference.begin, trial.sequenceLength);
  }

  void note(llvm::StringRef name, int64_t from, int64_t to) {
    if (from != to)
      notes.push_back(name.str() + " " + std::to_string(from) + " -> " + std::to_string(to));
  }

  DriverOptions options;
  std::vector<std::string> given;
  std::vector<std::pair<unsigned, bool>> kindsOfCuts; ///< Of the job as it is.
  std::vector<int64_t> split;                         ///< Of the job, once it is balanced.
  std::vector<std::string> longAxes; ///< Of four ranks at least: of a ring, of pairs of stages that hold copies of a model.
  // Of the job with these options.
  int64_t microbatches = 1, globalBatch = 1, stages = 1, batchRanks = 1, numRanks = 1;
};
} // namespace

/// Adds what differs between two bindings to the notes.
static void noteChanges(const SizeBinding &before, const SizeBinding &after, std::vector<std::string> &smaller,
                        std::vector<std::string> &larger) {
  for (auto &[name, value] : before.sorted())
    if (int64_t now = after.lookup(name).value_or(value); now != value)
      (now < value ? smaller : larger).push_back(name + " " + std::to_string(value) + " -> " + std::to_string(now));
}

/// What no other sizes are found for: units bind it, or what it is made of, or it is the user's.
static std::vector<std::string> listFixed(const Compilation &c, llvm::ArrayRef<std::string> given) {
  std::vector<std::string> fixed = given.vec();
  if (c.job->inference) {
    for (llvm::StringRef name : sema::inferredDims)
      fixed.push_back(name.str());
    fixed.push_back(sema::sequenceDim.str());
    if (c.job->inference->isPacked()) // one row
      fixed.push_back(sequencesSymbol.str());
  }
  for (auto &op : c.graph->getForward()) // a count that is cut becomes a number, and its symbols what they are elsewhere
    if (!op->cases.getRuns().empty())
      llvm::append_range(fixed, collectSymbols(op->count));
  return fixed;
}

static std::unique_ptr<Graph> elaborateAgain(Compilation &c) {
  return generateGraph(*c.files, *c.job, c.sizes, c.binding, c.obligations, c.diags);
}

/// Gives a graph that was elaborated again the sizes and iterations of the one that is proved.
static void adoptSizes(Graph &again, const Graph &graph) {
  again.binding = graph.binding;
  copyIterations(again, graph);
}

static void printSizes(const Graph &graph) {
  llvm::outs() << "sizes:";
  for (auto &[name, value] : graph.binding.sorted())
    if (!graph.mesh.find(name))
      llvm::outs() << " " << name << "=" << value;
  llvm::outs() << "\n";
}

/// The repeats of one model are as short in both as the longer pipeline asks for, or else the prefill, which carries all that decode
/// steps do.
static void shortenLoopsOfPools(Compilation &prefill, Compilation &decode, llvm::ArrayRef<std::string> given,
                                std::vector<std::string> &notes) {
  auto countStages = [](const Compilation &c) {
    return c.graph->pipeline.axis ? c.graph->mesh[*c.graph->pipeline.axis].size : 1;
  };
  bool prefillLeads = countStages(prefill) >= countStages(decode);
  Graph &first = *(prefillLeads ? prefill : decode).graph, &second = *(prefillLeads ? decode : prefill).graph;
  llvm::append_range(notes, shortenLoops(first, given));
  if (countStages(prefill) == countStages(decode))
    second.pipeline.split = first.pipeline.split;
  for (auto &op : first.getForward())
    if (op->count)
      for (const std::string &symbol : collectSymbols(op->count))
        if (auto value = first.binding.lookup(symbol))
          second.binding.bind(symbol, *value);
  copyIterations(second, first);
}

bool stage::runPoolProof(const DriverOptions &options) {
  Compilation job;
  job.diags.setWarningsAreErrors(options.warningsAreErrors);
  DriverOptions quiet = options;
  quiet.passes = {};
  if (!runFrontEnd(job, options))
    return false;
  Compilation filler(job.input, job.sizes, job.diags);
  DriverOptions ofFiller = getOptionsOfPrefill(job, options);
  // What cannot be compiled as it is is no job to prove.
  if (!runFrontEndOfPrefill(filler, job, ofFiller) || !runMiddle(filler, ofFiller) || !runMiddle(job, quiet) || !makeReport(filler) ||
      !makeReport(job) || !linkPools(filler, job))
    return false;
  SmallJob fill(ofFiller), decode(options);
  if (!fill.run(/*isPool=*/true) || !decode.run(/*isPool=*/true))
    return false;
  int64_t batches = std::min(job.job->microbatches, 2 * decode.getStages());
  int64_t more = std::min<int64_t>(filler.job->microbatches / job.job->microbatches, 2);
  int64_t sequences = std::lcm(more * batches * fill.getBatchRanks(), batches * decode.getBatchRanks());
  if (llvm::is_contained(decode.getGiven(), "B"))
    sequences = decode.getGlobalBatch();
  int64_t length = std::min(job.job->inference->begin,
                            std::max<int64_t>({8, 2 * fill.getRanksOfStage(), 2 * decode.getRanksOfStage()}));
  length = sema::getShortLength(*filler.job->inference, length, 2 * fill.getRanksOfStage());
  // Sizes have names in both or in none, so that they are the same.
  bool namesConstants = fill.getOptions().namesConstants && decode.getOptions().namesConstants;
  if (!fill.settle(sequences, more * batches, length, namesConstants) || !decode.settle(sequences, batches, length, namesConstants)) {
    job.diags.report(job.job->stepRange.Start, diag::PoolsNotSmall).range(job.job->stepRange);
    return false;
  }

  Compilation c;
  c.diags.setShowWarnings(false);
  c.diags.setShowRemarks(options.remarks);
  if (!runFrontEnd(c, decode.getOptions()))
    return false;
  Compilation p(c.input, c.sizes, c.diags);
  if (!runFrontEndOfPrefill(p, c, fill.getOptions()))
    return false;
  fill.settleSplit(*p.graph);
  decode.settleSplit(*c.graph);
  std::vector<std::string> notes, larger, own = listFixed(c, {}), fixed = listFixed(c, decode.getGiven());
  SizeBinding ofJob = c.graph->binding;
  shortenLoopsOfPools(p, c, decode.getGiven(), notes);
  std::unique_ptr<Graph> referenceOfPrefill = elaborateAgain(p), reference = elaborateAgain(c);
  if (!referenceOfPrefill || !reference || !runMiddle(p, quiet) || !runMiddle(c, options) ||
      !bindTinySizes(*p.graph, *c.graph, more, fixed, own, c.diags))
    return false;
  noteChanges(ofJob, c.graph->binding, notes, larger);
  adoptSizes(*referenceOfPrefill, *p.graph);
  adoptSizes(*reference, *c.graph);
  c.job->inference->isWhole = true;
  std::unique_ptr<Graph> whole = elaborateAgain(c);
  if (!whole)
    return false;
  adoptSizes(*whole, *c.graph);
  std::unique_ptr<LinkedProgram> linked = linkPools(p, c);
  std::optional<std::vector<Proof>> proofs;
  if (linked)
    proofs = prove({referenceOfPrefill.get(), reference.get()}, *linked, *whole, c.diags);
  if (!proofs)
    return false;
  for (auto &[pool, name] : {std::pair(&fill, filler.job->decl->name.name), std::pair(&decode, job.job->decl->name.name)})
    if (!pool->notes.empty())
      llvm::outs() << name << " made small: " << llvm::join(pool->notes, ", ") << "\n";
  if (length != job.job->inference->begin)
    notes.insert(notes.begin(), "positions " + std::to_string(job.job->inference->begin) + " -> " + std::to_string(length));
  if (!notes.empty())
    llvm::outs() << "both made small: " << llvm::join(notes, ", ") << "\n";
  if (!larger.empty())
    llvm::outs() << "made larger: " << llvm::join(larger, ", ") << "\n";
  printSizes(*c.graph);
  for (auto [graph, name, proof] : {std::tuple(p.graph.get(), filler.job->decl->name.name, &proofs->front()),
                                    std::tuple(c.graph.get(), job.job->decl->name.name, &proofs->back())}) {
    llvm::outs() << name << ": ";
    print(llvm::outs(), *graph, *proof);
  }
  return true;
}

bool stage::runProof(const DriverOptions &options) {
  SmallJob small(options);
  if (!small.run())
    return false;
  if (small.isPrefilled)
    return runPoolProof(options);
  Compilation c;
  c.diags.setShowWarnings(false); // the first compilation has shown them
  c.diags.setShowRemarks(options.remarks);
  if (!runFrontEnd(c, small.getOptions()))
    return false;
  small.settleSplit(*c.graph);
  std::vector<std::string> larger;
  SizeBinding ofJob = c.graph->binding;
  std::vector<std::string> fixed = listFixed(c, small.getGiven());
  llvm::append_range(small.notes, shortenLoops(*c.graph, small.getGiven()));
  noteChanges(ofJob, c.graph->binding, small.notes, larger);
  SizeBinding inPasses = c.graph->binding;
  std::unique_ptr<Graph> reference = elaborateAgain(c);
  if (!reference || !runMiddle(c, options))
    return false;
  if (!bindTinySizes(*c.graph, fixed, c.diags))
    return false;
  noteChanges(inPasses, c.graph->binding, small.notes, larger);
  adoptSizes(*reference, *c.graph);
  const ServedUnits *served = c.job->inference ? c.job->inference->served.get() : nullptr;
  if (served) // windows, say, are others than they were
    for (Graph *graph : {reference.get(), c.graph.get()})
      bindPackedUnits(*graph, *served);
  std::unique_ptr<Graph> whole;
  if (c.job->inference && (c.job->inference->length || !c.job->inference->begin)) { // else nobody knows what the caches hold
    c.job->inference->isWhole = true;
    whole = elaborateAgain(c);
    if (!whole)
      return false;
    adoptSizes(*whole, *c.graph);
  }
  std::optional<Proof> proof = prove(*reference, *c.graph, c.program.get(), c.diags, options.traces.steps, whole.get(), served);
  if (!proof)
    return false;
  if (!small.notes.empty())
    llvm::outs() << "made small: " << llvm::join(small.notes, ", ") << "\n";
  if (!larger.empty())
    llvm::outs() << "made larger: " << llvm::join(larger, ", ") << "\n";
  printSizes(*c.graph);
  print(llvm::outs(), *c.graph, *proof);
  return true;
}
