//===- Prove.cpp - a job, compiled small and executed ---------------------===//
//
// Problem: a job is for thousands of ranks; a proof runs tens, on tiny tensors, and must
// still be about the same strategy.
//
// Algorithm: find a plan that makes the mesh and the batch small (SmallJob.h). Compile the job under it, with a
// symbol for every size that has a name; give repeats as few iterations as tell the truth; run the passes at the sizes
// of the job, so that they decide as they would; then bind every other dim to a tiny size and execute. What of the job
// this does not keep is said.
//
//===----------------------------------------------------------------------===//
#include "stage/Interp/Prove.h"
#include "Commands.h"
#include "SmallJob.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/IR/graph/PackedUnits.h"
#include "stage/IRGen/IRGen.h"
#include "stage/Schedule/InferenceSymbols.h"
#include "stage/Sema/InferenceWords.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <numeric>

using namespace stage;
using namespace stage::driver;
using namespace stage::interp;

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
  for (auto &op :
       c.graph->getForward()) // a count that is cut becomes a number, and its symbols what they are elsewhere
    if (!op->cases.getRuns().empty())
      llvm::append_range(fixed, collectSymbols(op->count));
  return fixed;
}

static std::unique_ptr<Graph> elaborateAgain(Compilation &c) {
  return generateGraph(c.session.getFiles(), *c.job, c.sizes, c.binding, c.obligations, c.diags);
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

/// The repeats of one model are as short in both as the longer pipeline asks for, or else the prefill, which carries
/// all that decode steps do.
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

bool stage::driver::runPoolProof(const DriverOptions &options) {
  Session first(options.files, getMessagePrinter());
  Compilation job(first);
  if (!runFrontEnd(job, options.plan))
    return false;
  Compilation filler(first);
  Plan planOfFiller = getPlanOfPrefill(job, options.plan);
  // What cannot be compiled as it is is no job to prove.
  if (!runFrontEndOfPrefill(filler, job, planOfFiller) || !runMiddle(filler) || !runMiddle(job) ||
      !makeReport(filler) || !makeReport(job) || !linkPools(filler, job))
    return false;
  Session session(options.files, getMessagePrinter());
  SmallJob fill(planOfFiller, session), decode(options.plan, session);
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
  bool namesConstants = fill.getPlan().namesConstants && decode.getPlan().namesConstants;
  if (!fill.settle(sequences, more * batches, length, namesConstants) ||
      !decode.settle(sequences, batches, length, namesConstants)) {
    job.diags.report(job.job->stepRange.Start, diag::PoolsNotSmall).range(job.job->stepRange);
    return false;
  }

  session.getDiags().setShowWarnings(false);
  session.getDiags().setShowRemarks(options.remarks);
  Compilation c(session);
  if (!runFrontEnd(c, decode.getPlan()))
    return false;
  Compilation p(session);
  if (!runFrontEndOfPrefill(p, c, fill.getPlan()))
    return false;
  fill.settleSplit(*p.graph);
  decode.settleSplit(*c.graph);
  std::vector<std::string> notes, own = listFixed(c, {}), fixed = listFixed(c, decode.getGiven());
  const SizeBinding ofJob = c.graph->binding;
  std::vector<ProofSizes> made;
  shortenLoopsOfPools(p, c, decode.getGiven(), notes);
  std::unique_ptr<Graph> referenceOfPrefill = elaborateAgain(p), reference = elaborateAgain(c);
  if (!referenceOfPrefill || !reference || !runMiddle(p) || !runMiddle(c, options.passes) ||
      !bindTinySizes(*p.graph, *c.graph, more, fixed, own, made, c.diags))
    return false;
  ProofSizes both;
  both.smaller = std::move(notes);
  both.note(ofJob, c.graph->binding);
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
  if (length != job.job->inference->begin)
    both.smaller.insert(both.smaller.begin(),
                        "positions " + std::to_string(job.job->inference->begin) + " -> " + std::to_string(length));
  for (auto [pool, name, sizesOf] : {std::tuple(&fill, filler.job->decl->name.name, &made.front()),
                                     std::tuple(&decode, job.job->decl->name.name, &made.back())}) {
    pool->made.notKept = std::move(sizesOf->notKept);
    pool->made.print(llvm::outs(), name.str() + " ");
  }
  both.print(llvm::outs(), "both ");
  printSizes(*c.graph);
  for (auto [graph, name, proof] : {std::tuple(p.graph.get(), filler.job->decl->name.name, &proofs->front()),
                                    std::tuple(c.graph.get(), job.job->decl->name.name, &proofs->back())}) {
    llvm::outs() << name << ": ";
    print(llvm::outs(), *graph, *proof);
  }
  return true;
}

bool stage::driver::runProof(const DriverOptions &options) {
  Session session(options.files, getMessagePrinter());
  SmallJob small(options.plan, session);
  if (!small.run())
    return false;
  if (small.isPrefilled())
    return runPoolProof(options);
  session.getDiags().setShowWarnings(false); // the first compilation has shown them
  session.getDiags().setShowRemarks(options.remarks);
  Compilation c(session);
  if (!runFrontEnd(c, small.getPlan()))
    return false;
  small.settleSplit(*c.graph);
  const SizeBinding ofJob = small.getJobSizes(c.graph->binding), before = c.graph->binding;
  std::vector<std::string> fixed = listFixed(c, small.getGiven());
  llvm::append_range(small.made.smaller, shortenLoops(*c.graph, small.getGiven()));
  small.made.note(before, c.graph->binding);
  SizeBinding inPasses = c.graph->binding;
  std::unique_ptr<Graph> reference = elaborateAgain(c);
  if (!reference || !runMiddle(c, options.passes))
    return false;
  small.made.job = &ofJob;
  if (!bindTinySizes(*c.graph, fixed, c.diags, &small.made))
    return false;
  small.made.note(inPasses, c.graph->binding);
  adoptSizes(*reference, *c.graph);
  const ServedUnits *served = c.job->inference ? c.job->inference->served.get() : nullptr;
  if (served) // windows, say, are others than they were
    for (Graph *graph : {reference.get(), c.graph.get()})
      bindPackedUnits(*graph, *served);
  std::unique_ptr<Graph> whole;
  if (c.job->inference &&
      (c.job->inference->length || !c.job->inference->begin)) { // else nobody knows what the caches hold
    c.job->inference->isWhole = true;
    whole = elaborateAgain(c);
    if (!whole)
      return false;
    adoptSizes(*whole, *c.graph);
  }
  std::optional<Proof> proof =
      prove(*reference, *c.graph, c.program.get(), c.diags, options.traces.steps, whole.get(), served);
  if (!proof)
    return false;
  small.made.print(llvm::outs());
  printSizes(*c.graph);
  print(llvm::outs(), *c.graph, *proof);
  return true;
}
