//===- Prove.cpp - does the sharded program compute the same? -------------===//
#include "stage/Interp/Prove.h"
#include "Reference.h"
#include "ShardedRun.h"
#include "stage/IR/ShardingRules.h"
#include "stage/Interp/Diagnostics.h"
#include "stage/Transforms/BuildProgram.h"
#include "stage/Transforms/CheckSizes.h"
#include "stage/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace stage;

/// The indices that an op runs over. Not those of dims that are only subscripted, as of a part of a concatenation, nor
/// several indices as one: where these stand follows from others.
static std::vector<bool> findIterated(const OpDef &op) {
  const OpDef &def = op.vjpOf ? *op.vjpOf : op;
  std::vector<bool> iterated(def.indices.size(), def.opaque);
  auto mark = [&](llvm::ArrayRef<unsigned> indices) {
    for (unsigned index : def.expand(indices))
      iterated[index] = true;
  };
  auto visit = [&](auto &self, const Formula *f) -> void {
    mark(f->indices);
    for (const Formula *child : f->children)
      self(self, child);
  };
  for (const ResultInfo &result : def.results) {
    mark(result.indices);
    if (result.formula)
      visit(visit, result.formula);
  }
  for (auto &[name, let] : def.lets)
    visit(visit, let);
  for (unsigned i = 0; i < def.indices.size(); ++i)
    if (def.indices[i].isCompound())
      iterated[i] = false;
  return iterated;
}

/// Element by element a proof is slow: what would take minutes is refused.
static bool checkSize(Graph &graph, const Program *program, DiagnosticEngine &diags) {
  constexpr double most = 2e8;
  double work = 0;
  auto visit = [&](auto &self, Block &block, double times) -> void {
    for (auto &op : block) {
      for (auto &body : op->bodies) {
        int64_t iterations = op->cases.count(body->getNumber(), 0, getCheckedCount(graph, op->count));
        self(self, *body, times * double(iterations));
      }
      double size = times;
      std::vector<bool> iterated = op->def ? findIterated(*op->def) : std::vector<bool>();
      for (unsigned i = 0; i < iterated.size() && i < op->extents.size(); ++i)
        if (iterated[i])
          size *= double(getCheckedCount(graph, op->extents[i].size));
      for (auto &result : op->getResults()) {
        double elements = times;
        for (const Extent &extent : result->type.shape)
          elements *= double(getCheckedCount(graph, extent.size));
        size = std::max(size, elements);
      }
      work += size;
    }
  };
  for (Block &phase : graph.getPhases())
    visit(visit, phase, 1);
  work *= double(graph.microbatches);
  if (program && !hasFewRanks(graph, diags))
    return false;
  if (work > most) {
    diags.report(graph.loc, diag::ProofTooMuch) << std::to_string(work) << std::to_string(most);
    return false;
  }
  return true;
}

namespace {
class Prover {
public:
  Prover(Graph &referenceGraph, Graph &graph, const Program *program, DiagnosticEngine &diags)
      : referenceGraph(referenceGraph), graph(graph), program(program), diags(diags), scale(findScale(referenceGraph)),
        referenceSources(referenceGraph, scale), sources(graph, scale),
        reference(referenceGraph, referenceSources), findings(graph) {}

  std::optional<Proof> run() {
    if (!reference.run(diags) || !runUnsharded() || !compareWithReference())
      return std::nullopt;
    if (program)
      for (SendMode mode : {SendMode::Buffered, SendMode::Waiting})
        if (!runSharded(mode))
          return std::nullopt;
    proof.numParams = reference.getNumGradients();
    proof.numCompared += findings.getNumCompared();
    proof.numOfRounding = findings.getNumOfRounding();
    proof.maxError = std::max(proof.maxError, findings.getMaxError());
    proof.maxAccepted = std::max(proof.maxAccepted, findings.getMaxAccepted());
    proof.isSharded = program != nullptr;
    return proof;
  }

private:
  /// What a model without norms adds up over its layers may leave the range of an exponential: smaller numbers are
  /// drawn then.
  static double findScale(Graph &reference) {
    constexpr double smallest = 1.0 / 256;
    double scale = 1;
    for (; scale > smallest; scale /= 4) {
      Sources sources(reference, scale);
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
    RankMemory disturbed;
    if (!runUnsharded(unsharded, /*isDisturbed=*/false) || !runUnsharded(disturbed, /*isDisturbed=*/true))
      return false;
    rounding = Rounding(unsharded, disturbed);
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
    if (llvm::none_of(graph.getPhases(), [](const Block &phase) { return isBackward(phase.getPhase()); }))
      return true; // before differentiate
    bool isGood = true;
    for (const Value *param : sources.getParams())
      isGood &= compareGradient(param);
    return isGood;
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
      double found = it->second->data[i], wanted = getUpdated(before->data[i], gradient.data[i]);
      if (Deviation(found, wanted, /*rounding=*/0, /*largest=*/1).isAccepted())
        continue;
      diags.report(param.loc, diag::ProofUpdate)
          << describe(param) << place << int64_t(i) << format(found) << format(wanted);
      return false;
    }
    return true;
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
          DiagnosticBuilder message = diags.report(param->loc, diag::ProofGradient);
          message << describe(*param) << place << int64_t(i) << format(found) << format(wanted);
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
          const Tensor *wanted = reference.getAdjoint({written.lookup(primal), getIteration(result.get(), step.frame), m});
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

  bool runSharded(SendMode mode) {
    ShardedRun run(*program, sources, unsharded, rounding, findings, mode);
    bool isDone = run.run(diags);
    if (!findings.isClean()) {
      findings.report(diags);
      return false;
    }
    return isDone && (mode == SendMode::Waiting || (checkUpdates(run) && checkResults()));
  }

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
    Op *result = graph.getForward().getTerminator();
    for (unsigned m = 0; result && m < graph.microbatches; ++m)
      for (const Value *value : result->getOperands()) {
        Instance made = findMaker(value, m);
        if (!Sources::isSource(made.value) && !findings.hasCompared(made)) {
          diags.report(result->loc, diag::ProofMissing) << describe(*value) << describePlace(value, 0, m) << "any rank";
          return false;
        }
      }
    return true;
  }

  Graph &referenceGraph;
  Graph &graph;
  const Program *program;
  DiagnosticEngine &diags;
  double scale;
  Sources referenceSources, sources;
  Reference reference;
  RankMemory unsharded;
  Rounding rounding;
  Findings findings;
  Proof proof;
};
} // namespace

std::optional<Proof> stage::prove(Graph &reference, Graph &graph, const Program *program, DiagnosticEngine &diags) {
  if (!checkSizes(reference, diags) || !checkSizes(graph, diags) || !checkSize(graph, program, diags))
    return std::nullopt;
  return Prover(reference, graph, program, diags).run();
}

/// True once every operand is in the sharding that its op needs.
static bool hasCommunication(Graph &graph) {
  bool isComplete = true;
  graph.walk([&](Op &op) {
    for (auto &result : op.getResults())
      isComplete &= result->sharding.dims.size() == result->type.getNumDims();
    if (op.kind == OpKind::Compute)
      isComplete &= op.indexAxes.size() == op.def->indices.size();
  });
  if (!isComplete)
    return false;
  graph.walk([&](Op &op) {
    for (unsigned i = 0; i < op.getNumOperands(); ++i)
      isComplete &= op.kind == OpKind::Update && i == 0 ? true
                    : op.getOperand(i)->sharding == getNeededSharding(op, i);
    if (op.kind == OpKind::Compute)
      for (unsigned i = 0; i < op.getNumResults(); ++i)
        isComplete &= op.getResult(i)->getUses().empty() || op.getResult(i)->sharding == getNaturalSharding(op, i);
  });
  return isComplete;
}

std::optional<Proof> stage::prove(Graph &reference, Graph &graph, DiagnosticEngine &diags) {
  std::unique_ptr<Program> program;
  if (hasCommunication(graph)) {
    // Stages are needed to run; where the pass has not been, it says where ops are and changes none.
    if (llvm::none_of(graph.getForward(), [](const std::unique_ptr<Op> &op) { return op->virtualStage.has_value(); }))
      partitionPipeline(graph, diags);
    program = diags.hasErrors() ? nullptr : buildProgram(graph, diags);
    if (!program)
      return std::nullopt;
  }
  return prove(reference, graph, program.get(), diags);
}

void stage::print(llvm::raw_ostream &os, const Graph &graph, const Proof &proof) {
  os << "proved";
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
  if (proof.numOfRounding)
    os << "; " << proof.numOfRounding << (proof.numOfRounding == 1 ? " is" : " are") << " nothing but rounding";
  os << '\n';
}
