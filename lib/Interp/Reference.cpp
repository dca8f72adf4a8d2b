//===- Reference.cpp - the program as it was written ----------------------===//
#include "Reference.h"
#include "Findings.h"
#include "FormulaEvaluator.h"
#include "stage/IR/graph/ShardingRules.h"
#include "stage/Interp/Diagnostics.h"
#include "stage/Transforms/sharding/CheckSizes.h"
#include <cmath>

using namespace stage;
using namespace stage::interp;

const Value *Reference::getLoss() const {
  Op *result = graph.getForward().getTerminator();
  if (!graph.training || !result || result->kind != OpKind::Return || result->getNumOperands() == 0)
    return nullptr;
  return result->getOperand(0)->type.getNumDims() == 0 ? result->getOperand(0) : nullptr;
}

const Tensor *Reference::getAdjoint(const Instance &instance) const {
  auto it = adjoints.find(instance);
  return it == adjoints.end() ? nullptr : &it->second;
}

const Tensor *Reference::getGradient(unsigned param, uint64_t iteration) const {
  auto it = gradients.find({param, iteration});
  return it == gradients.end() ? nullptr : &it->second;
}

std::optional<Fault> Reference::runForward(llvm::ArrayRef<Step> steps, const Frozen *frozen, RankMemory &memory) {
  OpRunner runner(graph, sources);
  for (const Step &step : steps) {
    std::optional<Fault> fault;
    if (step.kind == Step::Kind::Bind) {
      TensorRef tensor = runner.read(step.value, step, -1, memory, fault);
      if (!fault)
        memory.values[getInstance(step.to, step.toFrame, step.microbatch)] = tensor;
    } else if (frozen && step.op->def && step.op->def->stopGradient) {
      for (auto &result : step.op->getResults()) {
        Instance instance = getInstance(result.get(), step.frame, step.microbatch);
        memory.values[instance] = frozen->at(instance);
      }
    } else {
      fault = runner.run(step, -1, memory);
    }
    if (fault)
      return fault;
  }
  return std::nullopt;
}

void Reference::add(const Instance &instance, const Tensor &adjoint) {
  auto [it, isNew] = adjoints.try_emplace(instance, adjoint);
  for (size_t i = 0; !isNew && i < adjoint.data.size(); ++i)
    it->second.data[i] += adjoint.data[i];
}

std::optional<Fault> Reference::runBackwardOp(const Step &step, RankMemory &memory) {
  const Op &op = *step.op;
  const OpDef &def = *op.def;
  if (def.stopGradient)
    return std::nullopt;
  llvm::SmallVector<const Tensor *, 2> resultAdjoints;
  bool isReached = false;
  for (unsigned i = 0; i < op.getNumResults(); ++i) {
    auto it = adjoints.find(getInstance(op.getResult(i), step.frame, step.microbatch));
    resultAdjoints.push_back(it == adjoints.end() ? nullptr : &it->second);
    isReached |= resultAdjoints.back() != nullptr;
  }
  if (!isReached)
    return std::nullopt;
  OpRunner runner(graph, sources);
  Invocation in;
  in.def = &def;
  in.drops = dropsTokens(graph, op);
  PieceMap pieces(graph);
  for (const Extent &extent : op.extents) {
    std::optional<int64_t> size = pieces.getSize(extent);
    if (!size)
      return Fault{&op, op.getResult(0), "has a size without a value"};
    in.sizes.push_back(*size);
    in.positions.push_back(allPositions(in.sizes.back()));
  }
  in.identity = hashWords({sources.getOrdinal(&op), getIteration(op.getResult(0), step.frame), step.microbatch});
  std::optional<Fault> fault;
  llvm::SmallVector<TensorRef, 6> operands;
  llvm::SmallVector<unsigned, 6> wanted;
  for (unsigned i = 0; i < op.getNumOperands(); ++i) {
    operands.push_back(runner.read(op.getOperand(i), step, -1, memory, fault));
    if (fault)
      return fault;
    in.operands.push_back(operands.back().get());
    if (isFloat(op.getOperand(i)->type.dtype))
      wanted.push_back(i);
  }
  bool isByRank = !op.ring && (getPairedAxes(op) | getRoutedAxes(op));
  auto differentiate = [&](const Invocation &of, llvm::ArrayRef<const Tensor *> given) -> std::optional<Fault> {
    FormulaEvaluator evaluator(of, graph.defs, graph.binding);
    std::vector<Tensor> made = evaluator.differentiate(given, wanted);
    if (!evaluator.getFault().empty())
      return Fault{&op, op.getResult(0), "has no derivative: " + evaluator.getFault()};
    for (unsigned i = 0; i < wanted.size(); ++i) {
      Tensor whole(isByRank ? pick(in.positions, def.operands[wanted[i]].indices) : llvm::SmallVector<Positions, 4>());
      if (isByRank)
        addInto(whole, made[i]);
      add(getInstance(op.getOperand(wanted[i]), step.frame, step.microbatch), isByRank ? whole : made[i]);
    }
    return std::nullopt;
  };
  if (!isByRank)
    return differentiate(in, resultAdjoints);
  return runner.forEachShare(op, in, [&](Invocation &share) {
    std::vector<Tensor> parts;
    parts.reserve(operands.size() + resultAdjoints.size());
    for (unsigned i = 0; i < operands.size(); ++i) {
      parts.push_back(*extract(*operands[i], pick(share.positions, def.operands[i].indices)));
      share.operands[i] = &parts.back();
    }
    llvm::SmallVector<const Tensor *, 2> given;
    for (unsigned i = 0; i < resultAdjoints.size(); ++i) {
      if (resultAdjoints[i])
        parts.push_back(*extract(*resultAdjoints[i], pick(share.positions, def.results[i].indices)));
      given.push_back(resultAdjoints[i] ? &parts.back() : nullptr);
    }
    return differentiate(share, given);
  });
}

/// Each piece gets the part of the adjoint that is in its places.
std::optional<Fault> Reference::runBackwardJoin(const Step &step) {
  const Op &op = *step.op;
  auto adjoint = adjoints.find(getInstance(op.getResult(), step.frame, step.microbatch));
  if (adjoint == adjoints.end())
    return std::nullopt;
  OpRunner runner(graph, sources);
  for (unsigned i = 0; i < op.getNumOperands(); ++i) {
    Tensor piece(adjoint->second.dims);
    std::optional<Fault> fault = runner.forEachPiece(op, i, /*rank=*/-1, [&](llvm::ArrayRef<Positions> places) {
      auto part = extract(adjoint->second, places);
      return part && insert(piece, *part);
    });
    if (fault)
      return fault;
    add(getInstance(op.getOperand(i), step.frame, step.microbatch), piece);
  }
  return std::nullopt;
}

std::optional<Fault> Reference::runBackward(llvm::ArrayRef<Step> steps, RankMemory &memory) {
  for (const Step &step : llvm::reverse(steps)) {
    // The same tensor by another name.
    auto rename = [&](const Instance &to, const Value *from) {
      if (auto it = adjoints.find(to); it != adjoints.end())
        add(getInstance(from, step.frame, step.microbatch), Tensor(it->second));
    };
    if (step.kind == Step::Kind::Bind) {
      rename(getInstance(step.to, step.toFrame, step.microbatch), step.value);
    } else if (step.op->kind == OpKind::Compute) {
      if (auto fault = runBackwardOp(step, memory))
        return fault;
    } else if (step.op->kind == OpKind::Join) {
      if (auto fault = runBackwardJoin(step))
        return fault;
    } else if (isMove(step.op->kind)) {
      for (auto &result : step.op->getResults())
        rename(getInstance(result.get(), step.frame, step.microbatch), getMoved(*result));
    }
  }
  return std::nullopt;
}

bool Reference::isFinite() {
  const Value *loss = getLoss();
  EnvironmentScope binding(graph);
  for (unsigned m = 0; loss && m < graph.microbatches; ++m) {
    binding.enter(m);
    std::vector<Step> steps = listForwardSteps(graph, m);
    RankMemory memory;
    if (runForward(steps, nullptr, memory))
      return true; // a fault is for run() to report
    std::optional<Fault> fault;
    TensorRef value = OpRunner(graph, sources).read(loss, steps.back(), -1, memory, fault);
    // Far from the end of the range: scores of such size leave nothing of a softmax or a sigmoid but 0 and 1.
    constexpr double most = 1e9;
    if (!fault && !(std::fabs(value->data.front()) < most))
      return false;
  }
  return true;
}

bool Reference::run(DiagnosticEngine &diags) {
  const Value *loss = getLoss();
  auto report = [&](std::optional<Fault> fault, const Step &step) {
    Findings findings(graph);
    findings.fail(std::move(*fault), -1, step.microbatch, step.frame);
    findings.report(diags);
    return false;
  };
  EnvironmentScope binding(graph);
  for (unsigned m = 0; m < graph.microbatches; ++m) {
    binding.enter(m);
    std::vector<Step> steps = listForwardSteps(graph, m);
    RankMemory memory;
    memory.caches = std::move(caches);
    if (auto fault = runForward(steps, nullptr, memory))
      return report(std::move(fault), steps.back());
    Step last = steps.empty() ? Step() : steps.back();
    std::optional<Fault> fault;
    OpRunner runner(graph, sources);
    caches = memory.caches;
    std::vector<TensorRef> &returned = outputs.emplace_back();
    if (Op *result = getForward(graph, m)->getTerminator())
      for (const Value *value : result->getOperands())
        returned.push_back(fault ? nullptr : runner.read(value, last, -1, memory, fault));
    if (fault)
      return report(std::move(fault), last);
    if (!loss)
      continue;
    TensorRef value = runner.read(loss, last, -1, memory, fault);
    if (fault)
      return report(std::move(fault), last);
    losses.push_back(value->data.front());
    if (!std::isfinite(losses.back())) {
      diags.report(loss->loc, diag::ProofNotFinite) << int64_t(m) << std::to_string(losses.back());
      return false;
    }
    Tensor one = *value;
    one.data.front() = 1;
    add(getInstance(loss, last.frame, m), one);
    if (auto fault = runBackward(steps, memory))
      return report(std::move(fault), last);
    if (m == 0 && !checkDerivatives(steps, memory, diags))
      return false;
  }
  for (const Value *param : sources.getParams())
    forEachAdjoint(param, [&](const Instance &instance, const Tensor &adjoint) {
      Tensor share = adjoint;
      for (double &number : share.data)
        number /= double(graph.microbatches);
      auto [it, isNew] = gradients.try_emplace({sources.getOrdinal(param->getOp()), instance.iteration}, share);
      for (size_t i = 0; !isNew && i < share.data.size(); ++i)
        it->second.data[i] += share.data[i];
    });
  return true;
}

void Reference::forEachAdjoint(const Value *value, llvm::function_ref<void(const Instance &, const Tensor &)> f) const {
  for (auto it = adjoints.lower_bound({value, 0, 0}); it != adjoints.end() && it->first.value == value; ++it)
    f(it->first, it->second);
}

/// (loss(p + h*d) - loss(p - h*d)) / 2h for the first microbatch. Every iteration's parameter moves at once.
double Reference::getDifference(llvm::ArrayRef<Step> steps, const RankMemory &base,
                                llvm::ArrayRef<const Value *> moving, double h) {
  double sides[2] = {NAN, NAN};
  for (int side = 0; side < 2; ++side) {
    std::vector<std::tuple<const Value *, uint64_t, TensorRef>> originals;
    for (const Value *param : moving)
      forEachAdjoint(param, [&](const Instance &instance, const Tensor &) {
        if (instance.microbatch != 0)
          return;
        originals.emplace_back(param, instance.iteration, sources.draw(param, instance.iteration));
        Tensor moved = *std::get<TensorRef>(originals.back());
        for (size_t i = 0; i < moved.data.size(); ++i)
          moved.data[i] += (side ? h : -h) * getDirection(param, instance.iteration, i);
        sources.set(param, instance.iteration, std::make_shared<Tensor>(std::move(moved)));
      });
    RankMemory memory;
    std::optional<Fault> fault = runForward(steps, &base.values, memory);
    OpRunner runner(graph, sources);
    TensorRef value = fault ? nullptr : runner.read(getLoss(), steps.back(), -1, memory, fault);
    if (!fault)
      sides[side] = value->data.front();
    for (auto &[param, iteration, original] : originals)
      sources.set(param, iteration, original);
  }
  return (sides[1] - sides[0]) / (2 * h);
}

double Reference::getDirection(const Value *param, uint64_t iteration, size_t element) const {
  return 2 * drawUniform({3, sources.getOrdinal(param->getOp()), iteration, element}) - 1;
}

/// The derivative of the first microbatch's loss in the direction of getDirection.
double Reference::getSlope(llvm::ArrayRef<const Value *> params) const {
  double slope = 0;
  for (const Value *param : params)
    forEachAdjoint(param, [&](const Instance &instance, const Tensor &adjoint) {
      for (size_t i = 0; instance.microbatch == 0 && i < adjoint.data.size(); ++i)
        slope += adjoint.data[i] * getDirection(param, instance.iteration, i);
    });
  return slope;
}

/// Whether finite differences confirm the slope; else `difference` is what they give.
bool Reference::isConfirmed(llvm::ArrayRef<Step> steps, const RankMemory &base, llvm::ArrayRef<const Value *> params,
                            double &difference) {
  constexpr double h = 1e-5, accepted = 1e-6;
  // What the loss rounds to is what a difference of two of them is worth.
  auto isNear = [&](double slope, double difference, double more) {
    return std::fabs(slope - difference) <= accepted * (std::fabs(losses.front()) + std::fabs(difference)) + more;
  };
  double slope = getSlope(params), wide = getDifference(steps, base, params, h);
  if (isNear(slope, wide, 0))
    return true;
  // Where the loss bends within h, shorter steps come closer: how much they differ says what differences are worth.
  difference = getDifference(steps, base, params, h / 50);
  return isNear(slope, difference, 4 * std::fabs(wide - difference));
}

/// Each difference runs the whole program: where there are many parameters, several move at once, and each alone only
/// if that shows a fault.
bool Reference::checkDerivatives(llvm::ArrayRef<Step> steps, const RankMemory &base, DiagnosticEngine &diags) {
  constexpr size_t most = 8;
  std::vector<std::vector<const Value *>> together(most);
  size_t number = 0;
  for (const Value *param : sources.getParams()) {
    bool isReached = false;
    forEachAdjoint(param, [&](const Instance &instance, const Tensor &) { isReached |= instance.microbatch == 0; });
    if (isReached)
      together[number++ % most].push_back(param);
  }
  bool isGood = true;
  double difference = 0;
  for (const std::vector<const Value *> &params : together) {
    if (params.empty() || isConfirmed(steps, base, params, difference))
      continue;
    for (const Value *param : params) {
      if (params.size() > 1 && isConfirmed(steps, base, param, difference))
        continue;
      char a[32], b[32];
      snprintf(a, sizeof a, "%.9g", getSlope(param));
      snprintf(b, sizeof b, "%.9g", difference);
      diags.report(param->loc, diag::ProofDerivative) << describe(*param) << a << b;
      isGood = false;
      break;
    }
  }
  return isGood;
}
