//===- PackedRun.cpp - an op on several sequences -------------------------===//
//
// Problem: units of inference may have positions of several sequences in one row, each of which has a cache of its own
// and sees nothing of the others.
//
// Algorithm: an op works on one sequence after the other (Stretches.h), from which its results are put together. So
// masks see positions of one sequence only, and subscripts and angles are of positions in it. `append` puts what is new
// of a sequence into the cache of that sequence, which stands in memory as an entry with its number. So does a state,
// in the place of which its op makes the next one.
//
// Limits: what routes tokens, or deals integers out, does so for all tokens of the unit at once, and looks at no
// positions.
//
//===----------------------------------------------------------------------===//
#include "FormulaEvaluator.h"
#include "OpRunner.h"
#include "Stretches.h"
#include "stage/IR/graph/CachePlace.h"
#include "stage/IR/graph/Packing.h"
#include "stage/Transforms/sharding/CheckSizes.h"

using namespace stage;
using namespace stage::interp;

Stretches::Stretches(const Graph &graph, const PackedUnit &unit) : unit(unit) {
  for (const SequencePart &part : unit.sequences) {
    SizeBinding &own = bindings.emplace_back(graph.binding);
    for (auto &[symbol, value] : bindSequence(graph, unit, part))
      own.bind(symbol, value);
  }
}

int64_t Stretches::count(const Dim &dim, size_t i) const {
  return dim.isOptional ? unit.sequences[i].sampled : int64_t(evaluateCount(dim.size, bindings[i]).value.num);
}

Stretch Stretches::get(const Dim &dim, size_t i) const {
  Stretch stretch;
  for (size_t before = 0; before < i; ++before)
    stretch.begin += count(dim, before);
  stretch.count = count(dim, i);
  const SequencePart &part = unit.sequences[i];
  if (dim.isOptional)
    stretch.first = part.cached + part.taken - stretch.count;
  else if (dim.origin)
    stretch.first = int64_t(evaluate(dim.origin, bindings[i]).value.num);
  return stretch;
}

bool OpRunner::worksBySequence(const Op &op) const {
  return !op.def->getRouting() && llvm::none_of(op.def->results, isDealt) &&
         llvm::any_of(op.extents, Stretches::isPacked);
}

std::optional<Fault> OpRunner::computeBySequence(const PackedUnit &unit, const Step &step, int64_t rank,
                                                 const Invocation &whole, llvm::ArrayRef<TensorRef> operands,
                                                 RankMemory &memory, std::vector<Tensor> &results) {
  const Op &op = *step.op;
  Stretches stretches(graph, unit);
  for (const ResultInfo &result : op.def->results)
    results.emplace_back(pick(whole.positions, result.indices));
  for (size_t i = 0; i < unit.sequences.size(); ++i) {
    Invocation in = whole;
    for (unsigned index = 0; index < op.extents.size(); ++index) {
      if (!Stretches::isPacked(op.extents[index]))
        continue;
      Stretch stretch = stretches.get(*op.extents[index].dim, i);
      llvm::erase_if(in.positions[index], [&](int64_t place) { return !stretch.contains(place); });
      in.origins[index] = stretch.getOrigin();
    }
    int64_t sequence = unit.sequences[i].sequence;
    llvm::SmallVector<TensorRef, 6> parts;
    for (unsigned k = 0; k < operands.size(); ++k)
      parts.push_back(
          isStateOfEach(*op.getOperand(k))
              ? getCache(op.getOperand(k), step, rank, memory, sequence)
              : std::make_shared<Tensor>(*extract(*operands[k], pick(in.positions, op.def->operands[k].indices))));
    std::vector<Tensor> made;
    if (auto fault = compute(step, in, parts, memory, made))
      return fault;
    for (unsigned k = 0; k < made.size(); ++k)
      if (const Value *state = isStateOfEach(*op.getResult(k)) ? getCacheWrittenInPlace(*op.getResult(k)) : nullptr) {
        getCache(state, step, rank, memory, sequence) = std::make_shared<Tensor>(made[k]);
        results[k] = std::move(made[k]); // that of the last one
      } else {
        addInto(results[k], made[k]);
      }
  }
  return std::nullopt;
}

/// What is on the host is in no cache until it is loaded.
std::optional<Fault> OpRunner::copyCache(const PackedUnit &unit, const Step &step, int64_t rank, RankMemory &memory) {
  const Value *cache = step.op->getOperand(0);
  bool isStore = step.op->kind == OpKind::Store;
  Caches &from = isStore ? memory.caches : memory.onHost, &to = isStore ? memory.onHost : memory.caches;
  for (const MovedPart &part : isStore ? unit.stored : unit.loaded) {
    auto known = from.find({cache, getIteration(cache, step.frame), part.sequence});
    if (known == from.end())
      return makeFault(step.op, cache,
                       "has nothing of sequence " + llvm::Twine(part.sequence) + (isStore ? "" : " on the host"));
    to[known->first] = std::move(known->second);
    from.erase(known);
  }
  return std::nullopt;
}

/// Of a dim of which all is there, the places of a stretch, counted from 0.
static Tensor cutStretch(const Tensor &tensor, unsigned dim, const Stretch &stretch) {
  llvm::SmallVector<Positions, 4> dims = tensor.dims;
  llvm::erase_if(dims[dim], [&](int64_t place) { return !stretch.contains(place); });
  Tensor part = *extract(tensor, dims);
  part.dims[dim] = allPositions(stretch.count);
  return part;
}

std::optional<Fault> OpRunner::appendBySequence(const PackedUnit &unit, const Step &step, int64_t rank,
                                                RankMemory &memory) {
  const Op &op = *step.op;
  std::optional<Fault> fault;
  TensorRef added = read(op.getOperand(1), step, rank, memory, fault);
  if (fault)
    return fault;
  auto dims = pieces.getPositions(op.getResult()->type, op.getResult()->sharding, rank);
  if (!dims)
    return makeFault(&op, op.getResult(), "cannot be split evenly");
  Stretches stretches(graph, unit);
  const Dim &ofAdded = *op.getOperand(1)->type.shape[op.dim].dim, &ofAll = *op.getResult()->type.shape[op.dim].dim;
  Tensor all(std::move(*dims));
  for (size_t i = 0; i < unit.sequences.size(); ++i) {
    Stretch stretch = stretches.get(ofAll, i);
    TensorRef &content = getCache(op.getOperand(0), step, rank, memory, unit.sequences[i].sequence);
    Tensor ofSequence = cutStretch(*added, op.dim, stretches.get(ofAdded, i));
    std::optional<Tensor> own =
        appendTo(content, ofSequence, op.dim, stretch.count - int64_t(ofSequence.dims[op.dim].size()),
                 allPositions(stretch.count), op.isRolling);
    if (!own)
      return makeFault(&op, op.getOperand(1), "is another piece than the cache to which it is appended");
    for (int64_t &place : own->dims[op.dim])
      place += stretch.begin;
    if (!insert(all, *own))
      return makeFault(&op, op.getResult(), "is another piece than the cache from which it comes");
  }
  return store(op.getResult(), step.frame, step.microbatch, std::make_shared<Tensor>(std::move(all)), rank, memory,
               &op);
}
