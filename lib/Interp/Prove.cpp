//===- Prove.cpp - does the sharded program compute the same? -------------===//
#include "stage/Interp/Prove.h"
#include "ProofSize.h"
#include "Reference.h"
#include "SentCaches.h"
#include "ShardedRun.h"
#include "Uncached.h"
#include "stage/IR/graph/ShardingRules.h"
#include "stage/Interp/Diagnostics.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/pipeline/BuildProgram.h"
#include "stage/Transforms/pipeline/LinkParts.h"
#include "stage/Transforms/sharding/CheckSizes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace stage;
using namespace stage::interp;

namespace {
class Prover {
public:
  /// `before` has run the step before, if there is one.
  Prover(Graph &referenceGraph, Graph &graph, const Program *program, DiagnosticEngine &diags,
         const Prover *before = nullptr, const ServedUnits *served = nullptr)
      : referenceGraph(referenceGraph), graph(graph), program(program), diags(diags),
        scale(before ? before->scale : findScale(referenceGraph, graph)), served(served),
        referenceSources(referenceGraph, scale, served), sources(graph, scale, served),
        reference(referenceGraph, referenceSources), findings(graph) {
    referenceSources.adoptTiles(sources);
    if (before)
      startFrom(*before);
  }

  /// What other parts send is what they have computed; integers stay below the limits that the receiver has for them.
  void addOutput(unsigned number, const Prover &receiver, const Transfer &transfer, const Transfer &ofReference) {
    outputs.insert(number);
    auto limit = [number](Sources &mine, Graph &graph, const Sources &theirs, const Value *input) {
      if (std::optional<int64_t> size = theirs.findLimit(input))
        mine.limit(graph.getForward().getTerminator()->getOperand(number), *size);
    };
    limit(sources, graph, receiver.sources, transfer.input->getResult());
    limit(referenceSources, referenceGraph, receiver.referenceSources, ofReference.input->getResult());
  }
  void setInput(const Transfer &transfer, const Transfer &ofReference, const Prover &sender) {
    for (unsigned m = 0; m < graph.microbatches; ++m)
      referenceSources.set(ofReference.input->getResult(), m, sender.reference.getOutput(transfer.output, m));
    received.push_back({transfer.input->getResult(), &sender, sender.getOutput(transfer.output)});
  }

  /// Goes on with the caches that another part has filled on one device.
  void takeCaches(const Prover &sender, llvm::ArrayRef<std::unique_ptr<Channel>> channels) {
    Caches filled = rename(sender.reference.getCaches(), sender.referenceSources, sender.graph, sender.sources);
    reference.setCaches(rename(handOn(channels, filled, sources), sources, referenceGraph, referenceSources));
    unsharded.caches = handOn(channels, sender.unsharded.caches, sources);
    disturbed.caches = handOn(channels, sender.disturbedCaches, sources);
  }

  /// All that is computed on one device.
  bool runOnOneDevice() { return reference.run(diags) && runUnsharded() && compareWithReference(); }

  bool compareWithWhole(Graph &whole) {
    std::optional<double> error =
        compareUncached(referenceGraph, reference, whole, scale, served, proof.numUncached, diags);
    if (error)
      proof.maxError = std::max(proof.maxError, *error);
    return error.has_value();
  }

  /// The ranks of all parts, or of the one.
  static bool runOnRanks(llvm::ArrayRef<Prover *> parts, DiagnosticEngine &diags) {
    for (SendMode mode : {SendMode::Buffered, SendMode::Waiting}) {
      PartMail mail;
      std::vector<std::unique_ptr<ShardedRun>> runs;
      for (Prover *part : parts)
        runs.push_back(std::make_unique<ShardedRun>(*part->program, part->sources, part->unsharded, part->rounding,
                                                    part->findings, mode, mail));
      for (auto [part, run] : llvm::zip(parts, runs))
        run->startFrom(part->stored);
      bool isDone = ShardedRun::run(runs, diags), isGood = true;
      for (Prover *part : parts)
        if (!part->findings.isClean()) {
          part->findings.report(diags);
          isGood = false;
        }
      for (size_t i = 0; isGood && isDone && mode == SendMode::Buffered && i < parts.size(); ++i)
        isGood = parts[i]->checkUpdates(*runs[i]) && parts[i]->checkResults();
      if (!isGood || !isDone)
        return false;
      for (auto [part, run] : llvm::zip(parts, runs))
        part->adoptUpdates(*run, mode);
    }
    return true;
  }

  Proof getProof() {
    proof.numParams = reference.getNumGradients();
    proof.numCompared += findings.getNumCompared();
    proof.numOfRounding = findings.getNumOfRounding();
    proof.maxError = std::max(proof.maxError, findings.getMaxError());
    proof.maxAccepted = std::max(proof.maxAccepted, findings.getMaxAccepted());
    proof.isSharded = program != nullptr;
    return proof;
  }

private:
  /// The step goes on with the parameters that the one before has left: the program as it was written, and one device,
  /// with those of one device, and each rank with its own.
  void startFrom(const Prover &before) {
    llvm::DenseMap<unsigned, const Value *> written;
    for (const Value *param : referenceSources.getParams())
      written[referenceSources.getOrdinal(param->getOp())] = param;
    for (auto &[key, tensor] : before.unsharded.updated) {
      sources.set(key.first, key.second, tensor);
      referenceSources.set(written.lookup(sources.getOrdinal(key.first->getOp())), key.second, tensor);
    }
    disturbed.stored = before.disturbedUpdates;
    stored = before.updates;
  }

  void adoptUpdates(const ShardedRun &run, SendMode mode) {
    for (const RankMemory &memory : run.getMemories())
      if (mode == SendMode::Buffered) // else nothing computes
        updates.push_back(memory.updated);
  }

  /// Which tokens find a slot depends on which a rank has: the program as it was written routes them as the ranks do.
  static void adoptRouting(Graph &referenceGraph, Graph &graph) {
    auto list = [](Graph &of) {
      std::vector<Op *> ops;
      Graph::walk(of.getForward(), [&](Op &op) {
        if (op.kind == OpKind::Compute && op.def->routing)
          ops.push_back(&op);
      });
      return ops;
    };
    std::vector<Op *> now = list(graph), before = list(referenceGraph);
    for (size_t i = 0; now.size() == before.size() && i < now.size(); ++i)
      before[i]->indexAxes = now[i]->indexAxes;
    for (auto [own, load] : llvm::zip(referenceGraph.mesh.getSlotLoads(), graph.mesh.getSlotLoads()))
      own.sources = load.sources;
  }

  /// What a model without norms adds up over its layers may leave the range of an exponential: smaller numbers are
  /// drawn then.
  static double findScale(Graph &reference, Graph &graph) {
    adoptRouting(reference, graph);
    constexpr double smallest = 1.0 / 65536;
    double scale = 1;
    for (; scale > smallest; scale /= 4) {
      Sources sources(reference, scale);
      sources.adoptTiles(Sources(graph, scale)); // other choices have other shares
      if (Reference(reference, sources).isFinite())
        return scale;
    }
    return scale;
  }

  bool reportFault(Fault fault, const Step &step) {
    findings.fail(std::move(fault), /*rank=*/-1, step.microbatch, step.frame);
    findings.report(diags);
    return false;
  }

  bool runUnsharded(RankMemory &memory, bool isDisturbed) {
    OpRunner runner(graph, sources, isDisturbed);
    EnvironmentScope binding(graph);
    for (const ReceivedInput &input : received)
      for (unsigned m = 0; m < graph.microbatches; ++m) {
        const RankMemory &sender = isDisturbed ? input.sender->disturbed : input.sender->unsharded;
        TensorRef tensor = sender.values.at({input.output, 0, m});
        memory.values[{input.value, 0, m}] = tensor;
        sources.set(input.value, m, std::move(tensor));
      }
    for (const Step &step : listUnshardedSteps(graph)) {
      binding.enter(step.microbatch);
      std::optional<Fault> fault;
      if (step.kind == Step::Kind::Run) {
        fault = runner.run(step, -1, memory);
      } else {
        TensorRef tensor = runner.read(step.value, step, -1, memory, fault);
        if (!fault)
          fault = runner.store(step.to, step.toFrame, step.microbatch, tensor, -1, memory, step.op);
      }
      if (fault)
        return reportFault(std::move(*fault), step);
    }
    return true;
  }

  bool runUnsharded() {
    // What comes from other parts is undisturbed from then on.
    if (!runUnsharded(disturbed, /*isDisturbed=*/true) || !runUnsharded(unsharded, /*isDisturbed=*/false))
      return false;
    rounding = Rounding(unsharded, disturbed);
    disturbedUpdates = disturbed.updated;
    disturbedCaches = disturbed.caches;
    if (outputs.empty())
      disturbed = RankMemory();
    return true;
  }

  //===--- the unsharded run against the reference ------------------------===//

  bool compareWithReference() {
    Op *result = graph.getForward().getTerminator();
    for (unsigned m = 0; m < reference.getLosses().size(); ++m) {
      auto it = unsharded.values.find({result->getOperand(0), 0, m});
      double found = it == unsharded.values.end() ? NAN : it->second->data.front(), expected = reference.getLosses()[m];
      Deviation deviation(found, expected, rounding.get({result->getOperand(0), 0, m}), std::fabs(expected));
      if (!deviation.isAccepted()) {
        diags.report(result->loc, diag::ProofLoss) << int64_t(m) << format(found) << format(expected);
        return false;
      }
      cover(deviation);
      ++proof.numCompared;
    }
    if (!graph.training)
      for (unsigned number = 0; number < graph.getForward().getTerminator()->getNumOperands(); ++number)
        outputs.insert(number);
    for (unsigned number : outputs)
      if (!compareOutput(number))
        return false;
    if (llvm::none_of(graph.getPhases(), [](const Block &phase) { return isBackward(phase.getPhase()); }))
      return true; // before differentiate
    bool isGood = true;
    for (const Value *param : sources.getParams())
      isGood &= compareGradient(param);
    return isGood;
  }

  const Value *getOutput(unsigned number) const { return graph.getForward().getTerminator()->getOperand(number); }

  /// What another part is sent is what it was before the passes, in all microbatches.
  bool compareOutput(unsigned number) {
    for (unsigned m = 0; m < graph.microbatches; ++m) {
      const Value *output = stage::interp::getForward(graph, m)->getTerminator()->getOperand(number);
      Instance instance = {output, 0, m};
      TensorRef expected = reference.getOutput(number, m), found = unsharded.values.at(instance);
      double largest = getLargest(*expected);
      for (size_t i = 0; i < expected->data.size(); ++i) {
        Deviation deviation(found->data[i], expected->data[i], rounding.get(instance), largest);
        if (!deviation.isAccepted()) {
          diags.report(output->loc, diag::ProofOutput)
              << describe(*output) << int64_t(m) << int64_t(i) << format(found->data[i]) << format(expected->data[i]);
          return false;
        }
        cover(deviation);
      }
      ++proof.numCompared;
    }
    return true;
  }

  void cover(const Deviation &deviation) {
    if (deviation.isOfRounding)
      return;
    proof.maxError = std::max(proof.maxError, deviation.error);
    proof.maxAccepted = std::max(proof.maxAccepted, deviation.accepted);
  }

  static std::string format(double number) {
    char text[32];
    snprintf(text, sizeof text, "%.9g", number);
    return text;
  }

  /// The step leaves a parameter as the update with its gradient makes it, however that is written.
  bool checkUpdated(const Value &param, uint64_t iteration, const std::string &place, const Tensor &gradient) {
    auto it = unsharded.updated.find({&param, iteration});
    if (it == unsharded.updated.end()) {
      diags.report(param.loc, diag::ProofMissing)
          << describe(param) + " after the step" << describePlace(&param, iteration, 0) << "one device";
      return false;
    }
    TensorRef before = sources.draw(&param, iteration);
    for (size_t i = 0; i < gradient.data.size(); ++i) {
      double found = it->second->data[i], wanted = getUpdated(before->data[i], gradient.data[i] * getScale());
      if (Deviation(found, wanted, /*rounding=*/0, /*largest=*/1).isAccepted())
        continue;
      diags.report(param.loc, diag::ProofUpdate)
          << describe(param) << place << int64_t(i) << format(found) << format(wanted);
      return false;
    }
    return true;
  }

  /// By which an update scales gradients: that of the reference's gradients, each element once.
  double getScale() {
    if (!graph.clip)
      return 1;
    if (!clipScale) {
      double sum = 0;
      for (const Value *param : sources.getParams()) {
        const Op *loop = getLoop(param);
        for (int64_t iteration = 0, end = loop ? getCheckedCount(graph, loop->count) : 1; iteration < end; ++iteration)
          if (const Tensor *gradient = reference.getGradient(sources.getOrdinal(param->getOp()), iteration))
            for (double number : gradient->data)
              sum += number * number;
      }
      clipScale = getClipped(sum);
    }
    return *clipScale;
  }

  bool compareGradient(const Value *param) {
    const Op *loop = getLoop(param);
    SizeValue count = loop ? evaluateCount(loop->count, graph.binding) : SizeValue();
    for (int64_t iteration = 0, end = loop ? int64_t(count.value.num) : 1; iteration < end; ++iteration) {
      const Tensor *expected = reference.getGradient(sources.getOrdinal(param->getOp()), iteration);
      auto it = unsharded.gradients.find({param, uint64_t(iteration)});
      bool isFound = it != unsharded.gradients.end();
      // Not trained, and the loss does not depend on it.
      if (!expected && !isFound)
        continue;
      std::string place = loop ? " (iteration " + std::to_string(iteration) + ")" : "";
      if (isFound && !checkUpdated(*param, iteration, place, *it->second))
        return false;
      double changed = rounding.getGradient({param, uint64_t(iteration)});
      double largest = getLargest(expected ? *expected : *it->second);
      for (size_t i = 0, n = expected ? expected->data.size() : it->second->data.size(); i < n; ++i) {
        double found = isFound ? it->second->data[i] : 0, wanted = expected ? expected->data[i] : 0;
        Deviation deviation(found, wanted, changed, largest);
        if (!deviation.isAccepted()) {
          DiagnosticBuilder message = diags.report(param->loc, diag::ProofGradient)
                                      << describe(*param) << place << int64_t(i) << format(found) << format(wanted);
          noteFirstGradient(message);
          return false;
        }
        cover(deviation);
      }
      ++proof.numCompared;
    }
    return true;
  }

  /// Of the gradients of forward values, says which goes wrong first: the fault is in the op that makes it.
  void noteFirstGradient(DiagnosticBuilder &message) {
    llvm::DenseMap<const Value *, const Value *> written = pairForwardValues();
    for (unsigned m = 0; m < graph.microbatches && !written.empty(); ++m)
      for (const Step &step : listUnshardedSteps(graph)) {
        if (step.microbatch != m || step.kind != Step::Kind::Run || !isBackward(step.op->getBlock()->getPhase()))
          continue;
        for (auto &result : step.op->getResults()) {
          const Value *primal = result->primal;
          while (primal && primal->getOp() && isMove(primal->getOp()->kind))
            primal = getMoved(*primal);
          auto it = unsharded.values.find(getInstance(result.get(), step.frame, m));
          const Tensor *wanted =
              reference.getAdjoint({written.lookup(primal), getIteration(result.get(), step.frame), m});
          if (!wanted || it == unsharded.values.end() || wanted->data.size() != it->second->data.size())
            continue;
          for (size_t i = 0; i < wanted->data.size(); ++i)
            if (double share = wanted->data[i] / double(graph.microbatches);
                !Deviation(it->second->data[i], share, rounding.get(it->first), /*largest=*/1).isAccepted()) {
              message.note(step.op->loc, diag::ProofFirstGradient)
                  << describe(*result) << describePlace(result.get(), getIteration(result.get(), step.frame), m)
                  << describeMaker(graph, result.get());
              return;
            }
        }
      }
  }

  /// The values of the forward block and those of the program as it was written; nothing if ops were added.
  llvm::DenseMap<const Value *, const Value *> pairForwardValues() {
    auto list = [](Graph &of) {
      std::vector<Op *> ops;
      Graph::walk(of.getForward(), [&](Op &op) {
        if (!isMove(op.kind))
          ops.push_back(&op);
      });
      return ops;
    };
    std::vector<Op *> now = list(graph), before = list(referenceGraph);
    llvm::DenseMap<const Value *, const Value *> pairs;
    for (size_t i = 0; i < now.size(); ++i) {
      if (now.size() != before.size() || now[i]->kind != before[i]->kind ||
          now[i]->getNumResults() != before[i]->getNumResults())
        return llvm::DenseMap<const Value *, const Value *>();
      for (unsigned r = 0; r < now[i]->getNumResults(); ++r)
        pairs[now[i]->getResult(r)] = before[i]->getResult(r);
    }
    return pairs;
  }

  //===--- the sharded runs against the unsharded one ---------------------===//

  /// Every rank updates every parameter that it uses and that is trained, and every one is on some rank.
  bool checkUpdates(const ShardedRun &run) {
    for (auto &[key, tensor] : unsharded.updated) {
      bool isSomewhere = false;
      for (size_t rank = 0; rank < run.getMemories().size(); ++rank) {
        const RankMemory &memory = run.getMemories()[rank];
        isSomewhere |= memory.updated.count(key);
        if (!memory.params.count(key) || memory.updated.count(key))
          continue;
        diags.report(key.first->loc, diag::ProofMissing)
            << describe(*key.first) + " after the step" << describePlace(key.first, key.second, 0)
            << "rank " + std::to_string(rank);
        return false;
      }
      if (isSomewhere)
        continue;
      diags.report(key.first->loc, diag::ProofMissing)
          << describe(*key.first) + " after the step" << describePlace(key.first, key.second, 0) << "any rank";
      return false;
    }
    return true;
  }

  /// Where a value of the top level is made: what a repeat yields is made in one of its iterations, or before it.
  Instance findMaker(const Value *value, unsigned microbatch) const {
    while (value->getOp() && value->getOp()->kind == OpKind::Repeat) {
      const Op *loop = value->getOp();
      unsigned slot = value->getNumber();
      int64_t count = getCheckedCount(graph, loop->count), done = count;
      for (; done > 0; --done) {
        int64_t iteration = loop->reverse ? count - done : done - 1;
        Block &body = loop->getBody(iteration);
        const Value *given = body.getTerminator()->getOperand(slot);
        if (!given->isArgument() || given->getBlock() != &body)
          return {given, getLoop(given) ? uint64_t(iteration) : 0, microbatch};
        slot = given->getNumber();
      }
      value = loop->getOperand(slot);
    }
    return {value, 0, microbatch};
  }

  /// What the program returns is computed somewhere, which for a loss is all that can go wrong with it alone.
  bool checkResults() {
    for (unsigned m = 0; m < graph.microbatches; ++m) {
      Op *result = getForward(graph, m)->getTerminator();
      for (const Value *value : result ? result->getOperands() : llvm::ArrayRef<Value *>()) {
        Instance made = findMaker(value, m);
        if (!Sources::isSource(made.value) && !findings.hasCompared(made)) {
          diags.report(result->loc, diag::ProofMissing) << describe(*value) << describePlace(value, 0, m) << "any rank";
          return false;
        }
      }
    }
    return true;
  }

  Graph &referenceGraph;
  Graph &graph;
  const Program *program;
  DiagnosticEngine &diags;
  double scale;
  const ServedUnits *served; ///< Of units of several sequences.
  Sources referenceSources, sources;
  Reference reference;
  RankMemory unsharded;
  RankMemory disturbed; ///< Kept where another part is sent some of it.
  ShardedRun::Updates disturbedUpdates;
  Caches disturbedCaches;
  std::vector<ShardedRun::Updates> stored, updates; ///< Per rank: parameters before and after the step.
  std::set<unsigned> outputs;                       ///< Operands of `return` that others are sent.
  struct ReceivedInput {
    const Value *value;
    const Prover *sender;
    const Value *output; ///< As the sender calls it.
  };
  std::vector<ReceivedInput> received;
  Rounding rounding;
  Findings findings;
  Proof proof;
  std::optional<double> clipScale;
};
} // namespace

std::optional<Proof> stage::interp::prove(Graph &reference, Graph &graph, const Program *program,
                                          DiagnosticEngine &diags, unsigned steps, Graph *whole,
                                          const ServedUnits *served) {
  if (!checkSizes(reference, diags) || !checkSizes(graph, diags) || !checkProofSize(graph, program, diags, served))
    return std::nullopt;
  std::unique_ptr<Prover> before;
  Proof all;
  for (unsigned step = 0; step < steps; ++step) {
    auto prover = std::make_unique<Prover>(reference, graph, program, diags, before.get(), served);
    if (!prover->runOnOneDevice() || (whole && !prover->compareWithWhole(*whole)) ||
        (program && !Prover::runOnRanks(prover.get(), diags)))
      return std::nullopt;
    Proof proof = prover->getProof();
    proof.numCompared += all.numCompared;
    proof.numUncached += all.numUncached;
    proof.numOfRounding += all.numOfRounding;
    proof.maxError = std::max(proof.maxError, all.maxError);
    proof.maxAccepted = std::max(proof.maxAccepted, all.maxAccepted);
    all = proof;
    before = std::move(prover);
  }
  all.steps = steps;
  return all;
}

/// True once every operand is in the sharding that its op needs.
static bool hasCommunication(Graph &graph) {
  bool isComplete = true;
  graph.walk([&](Op &op) {
    for (auto &result : op.getResults())
      isComplete &= result->sharding.dims.size() == result->type.getNumDims();
    if (op.kind == OpKind::Compute)
      isComplete &= !op.ring && op.indexAxes.size() == op.def->indices.size();
  });
  if (!isComplete)
    return false;
  graph.walk([&](Op &op) {
    for (unsigned i = 0; i < op.getNumOperands(); ++i)
      isComplete &= op.kind == OpKind::Update && i == 0 ? true : op.getOperand(i)->sharding == getNeededSharding(op, i);
    if (op.kind == OpKind::Compute)
      for (unsigned i = 0; i < op.getNumResults(); ++i)
        isComplete &= op.getResult(i)->getUses().empty() || op.getResult(i)->sharding == getNaturalSharding(op, i);
  });
  return isComplete;
}

/// Stages are needed to run; where the pass has not been, it says where ops are and changes none.
static void placeOps(Graph &graph, DiagnosticEngine &diags) {
  if (llvm::none_of(graph.getForward(), [](const std::unique_ptr<Op> &op) { return op->virtualStage.has_value(); }))
    partitionPipeline(graph, diags);
}

std::optional<Proof> stage::interp::prove(Graph &reference, Graph &graph, DiagnosticEngine &diags) {
  std::unique_ptr<Program> program;
  if (hasCommunication(graph)) {
    placeOps(graph, diags);
    program = diags.hasErrors() ? nullptr : buildProgram(graph, diags);
    if (!program)
      return std::nullopt;
  }
  return prove(reference, graph, program.get(), diags);
}

std::optional<std::vector<Proof>> stage::interp::prove(Workload &reference, Workload &workload,
                                                       DiagnosticEngine &diags) {
  std::unique_ptr<LinkedProgram> linked;
  if (llvm::all_of(workload.parts, [](auto &part) { return hasCommunication(*part); })) {
    for (auto &part : workload.parts)
      placeOps(*part, diags);
    linked = diags.hasErrors() ? nullptr : linkParts(workload, diags);
    if (!linked)
      return std::nullopt;
  } else if (!verifyTransferSizes(workload, diags)) {
    return std::nullopt;
  }
  std::vector<std::unique_ptr<Prover>> provers;
  std::vector<Prover *> parts;
  for (unsigned part = 0; part < workload.parts.size(); ++part) {
    Graph &before = *reference.parts[part], &graph = *workload.parts[part];
    const Program *program = linked ? linked->parts[part].get() : nullptr;
    if (!checkSizes(before, diags) || !checkSizes(graph, diags) || !checkProofSize(graph, program, diags))
      return std::nullopt;
    provers.push_back(std::make_unique<Prover>(before, graph, program, diags));
    parts.push_back(provers.back().get());
  }
  // Each part sends before those that receive from it compute.
  std::vector<unsigned> order = orderParts(workload);
  for (unsigned part : llvm::reverse(order))
    for (auto [transfer, ofReference] : llvm::zip(workload.transfers, reference.transfers))
      if (transfer.from == part)
        parts[part]->addOutput(transfer.output, *parts[transfer.to], transfer, ofReference);
  for (unsigned part : order) {
    for (auto [transfer, ofReference] : llvm::zip(workload.transfers, reference.transfers))
      if (transfer.to == part)
        parts[part]->setInput(transfer, ofReference, *parts[transfer.from]);
    if (!parts[part]->runOnOneDevice())
      return std::nullopt;
  }
  if (linked && !Prover::runOnRanks(parts, diags))
    return std::nullopt;
  std::vector<Proof> proofs;
  for (Prover *part : parts)
    proofs.push_back(part->getProof());
  return proofs;
}

std::optional<std::vector<Proof>> stage::interp::prove(llvm::ArrayRef<Graph *> references, const LinkedProgram &pools,
                                                       Graph &whole, DiagnosticEngine &diags) {
  std::vector<std::unique_ptr<Prover>> provers;
  std::vector<Prover *> parts;
  for (auto [before, program] : llvm::zip(references, pools.parts)) {
    if (!checkSizes(*before, diags) || !checkSizes(*program->graph, diags) ||
        !checkProofSize(*program->graph, program.get(), diags))
      return std::nullopt;
    provers.push_back(std::make_unique<Prover>(*before, *program->graph, program.get(), diags));
    parts.push_back(provers.back().get());
  }
  if (!parts.front()->runOnOneDevice())
    return std::nullopt;
  parts.back()->takeCaches(*parts.front(), pools.channels);
  if (!parts.back()->runOnOneDevice() || !parts.back()->compareWithWhole(whole) || !Prover::runOnRanks(parts, diags))
    return std::nullopt;
  return std::vector<Proof>{parts.front()->getProof(), parts.back()->getProof()};
}

/// Of an opaque op a proof knows nothing: each result is run as a fixed function of all operands.
static void printOpaque(llvm::raw_ostream &os, const Graph &graph) {
  std::set<std::string> names;
  for (Block &phase : graph.getPhases())
    Graph::walk(phase, [&](Op &op) {
      if (op.def && (op.def->vjpOf ? op.def->vjpOf : op.def)->opaque)
        names.insert(llvm::StringRef((op.def->vjpOf ? op.def->vjpOf : op.def)->name).split('.').first.str());
    });
  for (const std::string &name : names)
    os << (&name == &*names.begin() ? "; stand-ins ran for opaque " : ", ") << name;
}

void stage::interp::print(llvm::raw_ostream &os, const Graph &graph, const Proof &proof) {
  os << "proved";
  if (proof.steps > 1)
    os << ' ' << proof.steps << " steps";
  if (proof.isSharded) {
    os << " on mesh";
    if (graph.mesh.getNumRanks() == 1)
      os << " of one rank";
    for (const Axis &axis : graph.mesh.getAxes())
      if (axis.size > 1)
        os << " " << axis.name << (llvm::isDigit(axis.name.back()) ? ":" : "") << axis.size;
  } else {
    os << " unsharded, as the graph has no communication yet";
  }
  os << ": " << proof.numParams << " parameters, " << proof.numCompared << " values compared, max error "
     << llvm::format("%.0e", proof.maxError) << " of " << llvm::format("%.0e", proof.maxAccepted) << " accepted";
  if (proof.numUncached)
    os << "; " << proof.numUncached << (proof.numUncached == 1 ? " output is" : " outputs are")
       << " what a pass over all positions makes";
  if (proof.numOfRounding)
    os << "; " << proof.numOfRounding << (proof.numOfRounding == 1 ? " is" : " are") << " nothing but rounding";
  printOpaque(os, graph);
  os << '\n';
}
