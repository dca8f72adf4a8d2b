//===- RunCompute.cpp - an operator on one rank ---------------------------===//
//
// Problem: an operator or its gradient is to be computed on what a rank holds, or, in the unsharded run, on all of it.
// An op on pairs of blocks (getPairedAxes: queries of a rank, keys of another one) is none of all rows with all
// columns, and one that routes is one of the tokens of each rank. On one device it is what the ranks do, one after the
// other.
//
// Algorithm: the positions of the indices say what is worked on, and FormulaEvaluator does it. For pairs of blocks it
// does so once per rank that has other blocks; what they make is put together, and added up where it is of several. The
// gradient of a block is taken at sums that are those of all blocks, as the results of forward tell (Fold.h).
//
//===----------------------------------------------------------------------===//
#include "FormulaEvaluator.h"
#include "OpRunner.h"
#include "stage/IR/algebra/FormulaPoint.h"
#include "stage/IR/graph/Identity.h"
#include "stage/IR/graph/ShardingRules.h"
#include <cmath>

using namespace stage;
using namespace stage::interp;

std::optional<Fault> OpRunner::runCompute(const Step &step, int64_t rank, RankMemory &memory) {
  const Op &op = *step.op;
  const OpDef &def = *op.def;
  if (rank >= 0 && op.ring)
    return makeFault(&op, op.getResult(0), "is made of blocks that go round a ring, and 'unroll-rings' has not run");
  Invocation in;
  in.def = def.vjpOf ? def.vjpOf : &def;
  in.drops = dropsTokens(graph, op);
  std::optional<Fault> fault;
  if (rank >= 0 && isCast(op) && !op.getOperand(0)->sharding.flat.empty()) {
    TensorRef piece = read(op.getOperand(0), step, rank, memory, fault);
    return fault ? fault : store(op.getResult(), step.frame, step.microbatch, piece, rank, memory, &op);
  }
  if (!setPositions(op, rank, ~AxisSet(0), in, fault))
    return fault;
  llvm::SmallVector<TensorRef, 6> operands;
  for (unsigned i = 0; i < op.getNumOperands(); ++i) {
    operands.push_back(read(op.getOperand(i), step, rank, memory, fault));
    if (fault)
      return fault;
    for (unsigned k = 0; k < def.operands[i].indices.size(); ++k) {
      const Positions &wanted = in.positions[def.operands[i].indices[k]];
      if (operands[i]->dims[k] != wanted)
        return makeFault(&op, op.getOperand(i),
                         "holds positions " + describePositions(operands[i]->dims[k]) + " along index '" +
                             def.indices[def.operands[i].indices[k]].name + "', and the op works on " +
                             describePositions(wanted));
    }
  }
  const Op *drawer = sources.getDrawer(&op);
  in.drawIndices = drawer->def->results.front().indices;
  in.identity = hashWords({sources.getOrdinal(drawer), getIteration(op.getResult(0), step.frame), step.microbatch});
  if (!graph.training && def.opaque) {
    llvm::SmallVector<uint64_t, 64> words = {getIteration(op.getResult(0), step.frame)};
    for (char letter : op.scope + " " + llvm::StringRef(def.name).split('.').first.str())
      words.push_back(uint64_t(letter));
    in.placeIdentity = hashWords(words);
    for (auto &result : op.getResults())
      in.places.push_back(std::make_shared<Places>(graph, result->type.shape, sources.findPackedUnit(step.microbatch)));
  }
  in.disturbsSums = isDisturbed;
  for (auto &result : op.getResults()) {
    in.limits.push_back(sources.getLimit(result.get()));
    llvm::SmallVector<int64_t, 4> sizes;
    for (unsigned index : def.results[result->getNumber()].indices)
      sizes.push_back(in.sizes[index]);
    const Tiles *tiles = sources.findTiles(result.get());
    in.tiles.push_back(tiles && tiles->fit(sizes) ? tiles : nullptr);
  }
  std::vector<Tensor> results;
  bool isByRank = rank < 0 && !op.ring && (getPairedAxes(op) | getRoutedAxes(op));
  const PackedUnit *unit = worksBySequence(op) ? sources.findPackedUnit(step.microbatch) : nullptr;
  fault = unit       ? computeBySequence(*unit, step, rank, in, operands, memory, results)
          : isByRank ? computeByRank(step, in, operands, memory, results)
                     : compute(step, in, operands, memory, results);
  for (unsigned i = 0; i < results.size() && !fault; ++i)
    fault = store(op.getResult(i), step.frame, step.microbatch, std::make_shared<Tensor>(std::move(results[i])), rank,
                  memory, &op);
  return fault;
}

/// The positions of each index that a rank works on: of indices that have one of the axes `among` its part, of others
/// all.
bool OpRunner::setPositions(const Op &op, int64_t rank, AxisSet among, Invocation &in,
                            std::optional<Fault> &fault) const {
  in.sizes.clear();
  in.positions.clear();
  in.origins.clear();
  for (unsigned i = 0; i < op.extents.size(); ++i) {
    auto axes = i < op.indexAxes.size() ? llvm::ArrayRef<PlacedAxis>(op.indexAxes[i]) : llvm::ArrayRef<PlacedAxis>();
    auto size = pieces.getSize(op.extents[i]);
    auto positions = pieces.getPositions(op.extents[i], axes, toSet(axes) & among ? rank : -1);
    if (!size || !positions) {
      fault = makeFault(&op, op.getResult(0), "index '" + op.def->indices[i].name + "' cannot be split evenly");
      return false;
    }
    in.sizes.push_back(*size);
    in.positions.push_back(std::move(*positions));
    const Dim *dim = op.extents[i].dim;
    SizeValue origin = dim && dim->origin ? evaluate(dim->origin, graph.binding) : SizeValue();
    in.origins.push_back(origin ? int64_t(origin.value.num) : 0);
  }
  return true;
}

void stage::interp::addInto(Tensor &whole, const Tensor &piece) {
  forEachElement(piece.dims, [&](int64_t linear, llvm::ArrayRef<int64_t> local) {
    int64_t place = 0;
    for (unsigned d = 0; d < piece.dims.size(); ++d)
      place = place * int64_t(whole.dims[d].size()) +
              (llvm::lower_bound(whole.dims[d], piece.dims[d][local[d]]) - whole.dims[d].begin());
    whole.data[place] += piece.data[linear];
  });
}

/// Of ranks that differ along other axes than these only, one.
bool OpRunner::isFirstOfAlike(int64_t rank, AxisSet axes) const {
  for (AxisId axis = 0; axis < graph.mesh.getAxes().size(); ++axis)
    if (!(axes >> axis & 1) && graph.mesh.getCoordinate(rank, axis) != 0)
      return false;
  return true;
}

llvm::SmallVector<Positions, 4> stage::interp::pick(llvm::ArrayRef<Positions> positions,
                                                    llvm::ArrayRef<unsigned> indices) {
  llvm::SmallVector<Positions, 4> dims;
  for (unsigned index : indices)
    dims.push_back(positions[index]);
  return dims;
}

std::optional<Fault> OpRunner::forEachShare(const Op &op, const Invocation &whole,
                                            llvm::function_ref<std::optional<Fault>(Invocation &)> f) const {
  AxisSet paired = getPairedAxes(op) | getRoutedAxes(op), among = paired;
  for (const AxisList &axes : op.indexAxes)
    if (toSet(axes) & paired)
      among |= toSet(axes);
  for (int64_t rank = 0, n = graph.mesh.getNumRanks(); rank < n; ++rank) {
    if (!isFirstOfAlike(rank, among))
      continue;
    Invocation in = whole;
    std::optional<Fault> fault;
    if (!setPositions(op, rank, among, in, fault) || (fault = f(in)))
      return fault;
  }
  return std::nullopt;
}

/// An op on pairs of blocks (getPairedAxes), or one that routes the tokens of each rank, all of it on one device: what
/// ranks do one after the other.
std::optional<Fault> OpRunner::computeByRank(const Step &step, const Invocation &whole,
                                             llvm::ArrayRef<TensorRef> operands, RankMemory &memory,
                                             std::vector<Tensor> &results) {
  const Op &op = *step.op;
  for (const ResultInfo &result : op.def->results)
    results.emplace_back(pick(whole.positions, result.indices));
  return forEachShare(op, whole, [&](Invocation &in) {
    llvm::SmallVector<TensorRef, 6> parts;
    for (unsigned i = 0; i < operands.size(); ++i)
      parts.push_back(
          std::make_shared<Tensor>(*extract(*operands[i], pick(in.positions, op.def->operands[i].indices))));
    std::vector<Tensor> made;
    std::optional<Fault> fault = compute(step, in, parts, memory, made);
    for (unsigned i = 0; i < made.size() && !fault; ++i)
      addInto(results[i], made[i]);
    return fault;
  });
}

std::optional<Fault> OpRunner::forEachPiece(const Op &join, unsigned operand, int64_t rank,
                                            llvm::function_ref<bool(llvm::ArrayRef<Positions>)> f) const {
  const Value &piece = *join.getOperand(operand);
  AxisSet axes = piece.sharding.getSharded();
  for (int64_t of = std::max<int64_t>(rank, 0), end = rank < 0 ? graph.mesh.getNumRanks() : rank + 1; of < end; ++of) {
    if (rank < 0 && !isFirstOfAlike(of, axes))
      continue;
    auto places = pieces.getPositions(piece.type, piece.sharding, of);
    if (!places || !f(*places))
      return makeFault(&join, &piece, "is no piece of " + describe(*join.getResult()));
  }
  return std::nullopt;
}

/// Puts the pieces of a rank together; on one device, which has of each piece those of all ranks, these.
std::optional<Fault> OpRunner::runJoin(const Step &step, int64_t rank, RankMemory &memory) {
  const Op &op = *step.op;
  const Value &result = *op.getResult();
  auto dims = pieces.getPositions(result.type, result.sharding, rank);
  if (!dims)
    return makeFault(&op, &result, "cannot be split evenly");
  Tensor whole(std::move(*dims));
  for (unsigned i = 0; i < op.getNumOperands(); ++i) {
    std::optional<Fault> fault;
    TensorRef piece = read(op.getOperand(i), step, rank, memory, fault);
    if (!fault)
      fault = forEachPiece(op, i, rank, [&](llvm::ArrayRef<Positions> places) {
        auto part = extract(*piece, places);
        return part && insert(whole, *part);
      });
    if (fault)
      return fault;
  }
  return store(&result, step.frame, step.microbatch, std::make_shared<Tensor>(std::move(whole)), rank, memory, &op);
}

std::optional<Fault> OpRunner::compute(const Step &step, Invocation &in, llvm::ArrayRef<TensorRef> operands,
                                       RankMemory &memory, std::vector<Tensor> &results) {
  const Op &op = *step.op;
  if (op.def->vjpOf)
    return computeGradients(step, in, operands, memory, results);
  for (const TensorRef &operand : operands)
    in.operands.push_back(operand.get());
  FormulaEvaluator evaluator(in, graph.defs, graph.binding);
  for (unsigned i = 0; i < op.getNumResults(); ++i) {
    results.push_back(evaluator.evaluate(i));
    if (!evaluator.getFault().empty())
      return makeFault(&op, op.getResult(i), "cannot be computed: " + evaluator.getFault());
  }
  return std::nullopt;
}

const Op *OpRunner::findForward(const Op &op) const {
  llvm::SmallVector<unsigned, 4> savedOperands, savedResults;
  listSaved(*op.def->vjpOf, savedOperands, savedResults);
  for (unsigned i = 0; i < savedResults.size(); ++i) {
    const Value *value = op.getOperand(savedOperands.size() + i);
    while (value->getOp() && isMove(value->getOp()->kind))
      value = getMoved(*value);
    if (value->getOp() && value->getOp()->def == op.def->vjpOf)
      return value->getOp();
  }
  return nullptr;
}

/// How the gradient of a block is taken: see Fold.h. Null: of all of the index.
const Fold *OpRunner::getFold(const Op &op) {
  AxisSet paired = op.ring ? 0 : getPairedAxes(op);
  for (unsigned index = 0; paired && index < op.indexAxes.size(); ++index)
    if (op.def->indices[index].fold && (toSet(op.indexAxes[index]) & paired)) {
      auto [it, isNew] = folds.try_emplace({op.def->vjpOf, index});
      if (isNew)
        it->second = std::make_unique<Fold>(deriveFold(*op.def->vjpOf, index, graph.defs));
      return it->second.get();
    }
  return nullptr;
}

std::optional<Fault> OpRunner::computeGradients(const Step &step, const Invocation &shape,
                                                llvm::ArrayRef<TensorRef> operands, RankMemory &memory,
                                                std::vector<Tensor> &results) {
  const Op &op = *step.op;
  const OpDef &forward = *op.def->vjpOf;
  llvm::SmallVector<unsigned, 4> savedOperands, savedResults;
  listSaved(forward, savedOperands, savedResults);
  Invocation in = shape;
  in.operands.assign(forward.operands.size(), nullptr);
  for (unsigned i = 0; i < savedOperands.size(); ++i)
    in.operands[savedOperands[i]] = operands[i].get();

  const Op *origin = findForward(op);
  const std::map<Instance, TensorRef> &known = unsharded ? *unsharded : memory.values;
  std::vector<TensorRef> ofStandIn;
  if (forward.opaque)
    ofStandIn = addUnsaved(step, origin, in, memory);
  llvm::SmallVector<const Tensor *, 2> saves(forward.results.size(), nullptr);
  for (unsigned i = 0; i < savedResults.size(); ++i) {
    const TensorRef &saved = operands[savedOperands.size() + i];
    saves[savedResults[i]] = saved.get();
    const ResultInfo &result = forward.results[savedResults[i]];
    if (result.extra && !result.formula && result.indices == forward.results.front().indices)
      in.draws = saved.get();
    Instance instance =
        origin ? getInstance(origin->getResult(savedResults[i]), step.frame, step.microbatch) : Instance();
    auto it = origin ? known.find(instance) : known.end();
    auto expected = it != known.end() ? extract(*it->second, saved->dims) : std::nullopt;
    double changed = rounding && expected ? rounding->get(instance) : 0;
    for (size_t k = 0; expected && k < saved->data.size(); ++k)
      if (!Deviation(saved->data[k], expected->data[k], changed, /*largest=*/1).isAccepted())
        return makeFault(&op, op.getOperand(savedOperands.size() + i),
                         "is not what forward saved for this microbatch and iteration");
  }

  llvm::SmallVector<const Tensor *, 2> gradients(forward.results.size(), nullptr);
  for (unsigned i = 0; i < op.def->vjpGradients.size(); ++i)
    gradients[op.def->vjpGradients[i]] = operands[savedOperands.size() + savedResults.size() + i].get();
  if (const Fold *fold = getFold(op)) {
    if (!fold->fault.empty())
      return makeFault(&op, op.getResult(0), "cannot be computed block by block: " + fold->fault);
    in.def = &fold->step;
    in.merges = &fold->merges;
    for (unsigned result : fold->carried) {
      auto saved = llvm::find(savedResults, result);
      bool isSaved = saved != savedResults.end();
      in.operands.push_back(isSaved ? operands[savedOperands.size() + (saved - savedResults.begin())].get() : nullptr);
    }
  }
  FormulaEvaluator evaluator(in, graph.defs, graph.binding);
  bool isRecovered = llvm::is_contained(in.operands, nullptr) && !forward.opaque;
  if (isRecovered)
    evaluator.recover(saves);
  results = evaluator.differentiate(gradients, op.def->vjpOperands);
  if (std::optional<unsigned> missing = evaluator.getMissingOperand())
    return Fault{&op, op.getResult(0), "", *missing};
  if (!evaluator.getFault().empty())
    return makeFault(&op, op.getResult(0), "cannot be computed: " + evaluator.getFault());
  return isRecovered && !unsharded ? compareWithTrue(step, origin, in, saves, gradients, memory, results)
                                   : std::nullopt;
}

/// How far gradients move if what was saved is off by some thousand roundings: where a softmax is nearly 1 at one
/// place, its small gradients follow from what is left of 1.
static std::vector<double> findSensitivities(const Invocation &in, Graph &graph, llvm::ArrayRef<const Tensor *> saves,
                                             llvm::ArrayRef<const Tensor *> gradients,
                                             llvm::ArrayRef<unsigned> operands, llvm::ArrayRef<Tensor> results) {
  constexpr double off = 1e-12;
  std::vector<Tensor> copies;
  copies.reserve(saves.size());
  std::vector<const Tensor *> disturbed(saves.size(), nullptr);
  for (size_t i = 0; i < saves.size(); ++i) {
    if (!saves[i])
      continue;
    Tensor &copy = copies.emplace_back(*saves[i]);
    for (size_t k = 0; k < copy.data.size(); ++k)
      copy.data[k] *= 1 - off * drawUniform({uint64_t(i), uint64_t(k)}); // less, so that a tanh of 1 stays one
    disturbed[i] = &copy;
  }
  FormulaEvaluator evaluator(in, graph.defs, graph.binding);
  evaluator.recover(disturbed);
  std::vector<Tensor> moved = evaluator.differentiate(gradients, operands);
  std::vector<double> result(results.size(), 0);
  for (size_t i = 0; evaluator.getFault().empty() && i < results.size(); ++i)
    for (size_t k = 0; k < results[i].data.size(); ++k)
      if (double distance = std::fabs(moved[i].data[k] - results[i].data[k]); std::isfinite(distance))
        result[i] = std::max(result[i], distance);
  return result;
}

/// Adds operands of forward that were not saved, as far as they are known of the unsharded run. They live as long as
/// what is returned.
std::vector<TensorRef> OpRunner::addUnsaved(const Step &step, const Op *origin, Invocation &in,
                                            const RankMemory &memory) {
  const OpDef &forward = *step.op->def->vjpOf;
  const std::map<Instance, TensorRef> &known = unsharded ? *unsharded : memory.values;
  std::vector<TensorRef> unsaved;
  for (unsigned i = 0; origin && i < forward.operands.size(); ++i) {
    if (in.operands[i])
      continue;
    const Value *value = origin->getOperand(i);
    auto it = known.find(getInstance(value, step.frame, step.microbatch));
    TensorRef whole = Sources::isSource(value) || isTransferred(*value) ? getSource(value, step, /*rank=*/-1)
                      : it != known.end()                               ? it->second
                                                                        : nullptr;
    if (auto piece = whole ? extract(*whole, pick(in.positions, forward.operands[i].indices)) : std::nullopt) {
      unsaved.push_back(std::make_shared<Tensor>(std::move(*piece)));
      in.operands[i] = unsaved.back().get();
    }
  }
  return unsaved;
}

/// Gradients that were computed at other operands with the same results are those at the true ones, or they do not
/// follow from what was saved. Rounding is measured as by Rounding: how far it leads exactly is for later comparisons.
std::optional<Fault> OpRunner::compareWithTrue(const Step &step, const Op *origin, Invocation in,
                                               llvm::ArrayRef<const Tensor *> saves,
                                               llvm::ArrayRef<const Tensor *> gradients, const RankMemory &memory,
                                               llvm::ArrayRef<Tensor> results) {
  constexpr double accepted = 1e-6, multiple = 1e5;
  const Op &op = *step.op;
  const OpDef &forward = *op.def->vjpOf;
  const Invocation recovered = in;
  std::vector<TensorRef> unsaved = addUnsaved(step, origin, in, memory);
  if (unsaved.empty())
    return std::nullopt;
  std::vector<Tensor> wanted[2];
  std::vector<double> sensitivities;
  for (bool disturbs : {false, true}) {
    in.disturbsSums = disturbs;
    FormulaEvaluator evaluator(in, graph.defs, graph.binding);
    wanted[disturbs] = evaluator.differentiate(gradients, op.def->vjpOperands);
    if (!evaluator.getFault().empty())
      return std::nullopt;
  }
  for (unsigned i = 0; i < results.size(); ++i) {
    double rounding = 0, difference = 0;
    for (size_t k = 0; k < results[i].data.size(); ++k) {
      double error = std::fabs(results[i].data[k] - wanted[0][i].data[k]);
      difference = std::isnan(error) ? HUGE_VAL : std::max(difference, error);
      rounding = std::max(rounding, std::fabs(wanted[1][i].data[k] - wanted[0][i].data[k]));
    }
    if (difference <= accepted * getLargest(wanted[0][i]) + multiple * rounding)
      continue;
    if (sensitivities.empty())
      sensitivities = findSensitivities(recovered, graph, saves, gradients, op.def->vjpOperands, results);
    if (difference <= accepted * getLargest(wanted[0][i]) + multiple * rounding + sensitivities[i])
      continue;
    llvm::SmallVector<unsigned, 4> savedOperands, savedResults;
    listSaved(forward, savedOperands, savedResults);
    llvm::SmallBitVector needs = findGradientNeeds(forward, op.def->vjpGradients, op.def->vjpOperands);
    for (unsigned operand : savedOperands)
      needs.reset(operand);
    return Fault{&op, op.getResult(i), "", unsigned(std::max(needs.find_first(), 0))};
  }
  return std::nullopt;
}
