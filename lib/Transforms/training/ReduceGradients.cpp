//===- ReduceGradients.cpp - gradients in buckets, in a type, beside backward ===//
//
// Problem: gradients are reduced one by one, in the type in which they were added up, on
// the stream of all communication. Frameworks reduce many at once, in a type of their own,
// beside backward or behind it. A strategy says so:
//
//   reduce gradients over dp { bucket = 25MiB; type = bf16; overlap = true; }
//
//   %a.2 = all_reduce(%a.1) over dp        %a.2 = cast(%a.1) : bf16
//   update(%a, %a.2)                       %b.2 = cast(%b.1) : bf16
//   %b.2 = all_reduce(%b.1) over dp   ->   %a.3, %b.3 = all_reduce(%a.2, %b.2) over dp
//   update(%b, %b.2)                       %a.4 = cast(%a.3) : f32
//                                          update(%a, %a.4)
//                                          %b.4 = cast(%b.3) : f32
//                                          update(%b, %b.4)
//
// Algorithm: the *way* of a gradient is what reduces it over axes of the rule, one behind
// the other, and the gather of its parameter where its shard was updated. In each block
//
//   1. what is reduced first is brought to the type: an op that makes a contribution
//      writes that type, all else is cast, on a stream for casts, and cast back into its
//      buffer when it has been reduced;
//   2. gradients fill buckets in the order in which backward completes them. A bucket is
//      full when it has `bucket` bytes or more (as those of PyTorch's DDP and Megatron's),
//      and ends in any case where a repeat or an iteration does, as layers stay rolled: all
//      equal layers have equal buckets. What is left over there joins the bucket before it.
//      What differs in its way, its type or its virtual stage is in buckets of its own;
//   3. each collective of the ways of a bucket becomes one, where the last of them stands,
//      and what waits for it moves behind it;
//   4. reductions stand on a stream of their own, and so do gathers of updated shards,
//      and additions of what has been reduced in backward, for which no compute waits;
//      or reductions wait for all of backward;
//   5. with `apart` a gradient that is partial over other axes, too, as that of a norm under
//      sequence parallelism, is reduced over those of the rule with all others, and then
//      over the rest, behind backward: those of a block by one message.
//
// Limits: what is reduced by unit (bucket-units) is in no other bucket.
//
//===----------------------------------------------------------------------===//
#include "sharding/MergeCollectives.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IR/text/Text.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/sharding/CheckSizes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include <map>

using namespace stage;

namespace {
class GradientReducer {
public:
  GradientReducer(Graph &graph, DiagnosticEngine &diags) : graph(graph), diags(diags) {}

  void run() {
    auto found = llvm::find_if(graph.rules, [](const Rule &r) { return r.kind == RuleKind::ReduceGradients; });
    if (found == graph.rules.end() || graph.mesh.getGroupSize(toSet(found->axes)) == 1)
      return;
    rule = &*found;
    graph.walk([&](Op &op) {
      for (const OrderEdge &edge : op.after)
        awaited.insert(edge.value);
    });
    if (Block *step = rule->isApart ? graph.findPhase(PhaseKind::Step) : nullptr)
      splitReductions(*step);
    for (Block &phase : graph.getPhases())
      if (phase.getPhase() == PhaseKind::Step || isBackward(phase.getPhase()))
        visit(phase);
    if (!reducesAny)
      diags.report(rule->loc, diag::NothingToReduce) << llvm::join(listAxisNames(graph.mesh, rule->axes), ", ");
  }

private:
  /// Of one gradient: its collectives, in the order in which they run.
  struct Way {
    llvm::SmallVector<Op *, 2> reductions;
    Op *gather = nullptr;
  };
  using Bucket = std::vector<Way>;

  /// The buckets of one kind between two repeats: the last one that is full, if there is one, and the one that is
  /// filled.
  struct Filling {
    std::optional<size_t> full, open;
    __int128 bytes = 0; ///< Of the latter.
  };
  using Fillings = std::map<std::vector<int64_t>, Filling>;

  void visit(Block &block) {
    std::vector<Bucket> buckets;
    Fillings fillings;
    std::vector<Op *> ops;
    for (auto &op : block)
      ops.push_back(op.get());
    for (Op *op : ops) {
      if (!op->bodies.empty()) {
        finish(fillings, buckets);
        for (auto &body : op->bodies)
          visit(*body);
        continue;
      }
      if (!isReduction(*op) || follows(*op))
        continue;
      Way way = findWay(*op);
      if (!begin(*op))
        continue;
      std::optional<std::vector<int64_t>> kind = rule->bucketBytes ? getKind(way) : std::nullopt;
      if (!kind) {
        buckets.push_back({way});
        continue;
      }
      Filling &filling = fillings[*kind];
      if (!filling.open) {
        filling.open = buckets.size();
        buckets.emplace_back();
      }
      buckets[*filling.open].push_back(way);
      filling.bytes += getPutIn(*op);
      if (filling.bytes >= rule->bucketBytes)
        filling = {filling.open, std::nullopt, 0};
    }
    finish(fillings, buckets);
    numberParameters(buckets);
    if (block.getPhase() == PhaseKind::Step)
      addGathers(block, buckets);
    bool hasMerged = false;
    for (Bucket &bucket : buckets)
      hasMerged |= merge(bucket);
    if (hasMerged)
      moveBehindOperands(block);
    for (Bucket &bucket : buckets)
      place(bucket.front());
    if (rule->isApart && block.getPhase() == PhaseKind::Step)
      mergeRest(block);
  }

  //===--- apart ----------------------------------------------------------===//

  /// What is reduced over axes of the rule and others at once is reduced over those of the rule first.
  void splitReductions(Block &block) {
    std::vector<Op *> mixed;
    Graph::walk(block, [&](Op &op) {
      if (op.kind == OpKind::AllReduce && isReduction(op) && (toSet(op.axes) & ~toSet(rule->axes)))
        mixed.push_back(&op);
    });
    for (Op *op : mixed) {
      auto owner = std::make_unique<Op>(static_cast<const OpAttributes &>(*op));
      llvm::erase_if(owner->axes, [&](AxisId axis) { return toSet(rule->axes) >> axis & 1; });
      llvm::erase_if(op->axes, [&](AxisId axis) { return !(toSet(rule->axes) >> axis & 1); });
      Value &first = *op->getResult();
      Value *sum = owner->addResult(first.type, first.path);
      sum->sharding = first.sharding;
      sum->loc = first.loc;
      sum->primal = first.primal;
      first.replaceAllUsesWith(sum);
      first.sharding.partial |= toSet(owner->axes);
      owner->addOperand(&first);
      op->getBlock()->insertAfter(op, std::move(owner));
    }
  }

  /// What is reduced over other axes behind a reduction of the rule: of each block and group of ranks by one message.
  void mergeRest(Block &block) {
    std::map<std::vector<int64_t>, std::vector<Op *>> groups;
    for (auto &op : block) {
      bool isRest = op->kind == OpKind::AllReduce && op->stages.empty() && op->getNumOperands() == 1 &&
                    !(toSet(op->axes) & toSet(rule->axes)) && follows(*op);
      std::optional<std::vector<int64_t>> kind = isRest ? getKind({{op.get()}}) : std::nullopt;
      if (!isRest)
        continue;
      op->waitsForUnits = true;
      if (kind)
        groups[*kind].push_back(op.get());
    }
    for (auto &[kind, members] : groups)
      if (members.size() > 1)
        mergeCollectives(members, *members.back());
    if (!groups.empty())
      moveBehindOperands(block);
  }

  /// What is left over joins the bucket before it.
  static void finish(Fillings &fillings, std::vector<Bucket> &buckets) {
    for (auto &[kind, filling] : fillings)
      if (filling.full && filling.open) {
        llvm::append_range(buckets[*filling.full], buckets[*filling.open]);
        buckets[*filling.open].clear();
      }
    fillings.clear();
  }

  void numberParameters(std::vector<Bucket> &buckets) {
    llvm::erase_if(buckets, [](const Bucket &bucket) { return bucket.empty(); });
    for (const Bucket &bucket : buckets) {
      ++numBuckets;
      for (const Way &way : bucket)
        if (const Op *accumulation = findUser(*way.reductions.front()->getResult(), OpKind::Accumulate))
          bucketOf[accumulation->getOperand(1)] = numBuckets;
    }
  }

  /// What backward scatters at once is gathered at once: a bucket without reductions.
  void addGathers(Block &block, std::vector<Bucket> &buckets) {
    llvm::DenseSet<const Op *> known;
    for (const Bucket &bucket : buckets)
      for (const Way &way : bucket)
        known.insert(way.gather);
    std::map<std::vector<int64_t>, size_t> numbers;
    for (auto &op : block) {
      const Op *update = op->kind == OpKind::AllGather ? op->getOperand(0)->getOp() : nullptr;
      if (!update || update->kind != OpKind::Update || known.contains(op.get()) ||
          !(toSet(op->axes) & toSet(rule->axes)))
        continue;
      Way way;
      way.gather = op.get();
      auto bucket = bucketOf.find(update->getOperand(0));
      std::optional<std::vector<int64_t>> kind = bucket != bucketOf.end() ? getKind(way) : std::nullopt;
      if (kind)
        kind->push_back(bucket->second);
      auto [number, isNew] = kind ? numbers.try_emplace(*kind, buckets.size()) : std::pair(numbers.end(), true);
      if (isNew)
        buckets.emplace_back();
      buckets[isNew ? buckets.size() - 1 : number->second].push_back(way);
    }
  }

  //===--- ways -----------------------------------------------------------===//

  /// Sums up a gradient, or, in backward, a contribution to one, over axes of the rule. (What ties the stages of a
  /// pipeline has axes of its own.)
  bool isReduction(const Op &op) const {
    bool reduces = op.kind == OpKind::AllReduce || op.kind == OpKind::ReduceScatter;
    if (!reduces || op.reduce != ReduceKind::Sum || !(toSet(op.axes) & toSet(rule->axes)) || !op.stages.empty())
      return false;
    return op.getBlock()->getPhase() == PhaseKind::Step || findUser(*op.getResult(), OpKind::Accumulate);
  }

  /// The op that a value goes to, perhaps through reshards, and nothing else does.
  static Op *findUser(const Value &value, OpKind kind) {
    for (const Value *at = &value; at->getUses().size() == 1;) {
      auto [user, operand] = at->getUses().front();
      if (user->kind == kind)
        return user;
      if (!isReshard(user->kind))
        return nullptr;
      at = user->getResult(operand);
    }
    return nullptr;
  }

  /// It reduces what another op of the rule has reduced.
  bool follows(const Op &op) const {
    for (const Op *maker = op.getOperand(0)->getOp(); maker && isReshard(maker->kind);
         maker = maker->getOperand(0)->getOp())
      if (isReduction(*maker))
        return true;
    return false;
  }

  Way findWay(Op &first) const {
    Way way;
    way.reductions.push_back(&first);
    for (const Value *at = first.getResult(); at->getUses().size() == 1;) {
      auto [user, operand] = at->getUses().front();
      if (user->kind == OpKind::Update && user->getNumResults() && user->getResult()->getUses().size() == 1) {
        Op *gather = user->getResult()->getUses().front().first;
        if (gather->kind == OpKind::AllGather && toSet(gather->axes) & toSet(rule->axes))
          way.gather = gather;
      }
      if (!isReshard(user->kind))
        break;
      if (isReduction(*user))
        way.reductions.push_back(user);
      at = user->getResult(operand);
    }
    return way;
  }

  /// What ways of one bucket have in common; nothing for one that is alone: of several stages, by unit, or named by
  /// another op as what it waits for.
  std::optional<std::vector<int64_t>> getKind(const Way &way) const {
    std::vector<int64_t> kind;
    auto add = [&](const Op &op) {
      bool isCut = graph.pipeline.axis && !op.getBlock()->getParent();
      if (op.getNumOperands() > 1 || (isCut && !op.virtualStage) || awaited.contains(op.getResult()))
        return false;
      kind.insert(kind.end(), {int64_t(op.kind), op.flat, op.virtualStage ? *op.virtualStage : -1,
                               int64_t(op.getOperand(0)->type.dtype), int64_t(op.axes.size())});
      for (AxisId axis : op.axes)
        kind.push_back(axis);
      return true;
    };
    for (const Op *op : way.reductions)
      if (!add(*op))
        return std::nullopt;
    return !way.gather || add(*way.gather) ? std::optional(kind) : std::nullopt;
  }

  __int128 getPutIn(const Op &op) const {
    const Value &operand = *op.getOperand(0), &result = *op.getResult();
    return op.flat ? getCheckedBytes(graph, result.type, result.sharding) * graph.mesh.getGroupSize(toSet(op.axes))
                   : getCheckedBytes(graph, operand.type, operand.sharding);
  }

  //===--- types ----------------------------------------------------------===//

  /// What the rule says of the first reduction of a gradient. False after an error.
  bool begin(Op &first) {
    reducesAny = true;
    bool isInBackward = first.getBlock()->getPhase() != PhaseKind::Step;
    if (isInBackward && rule->overlap == Rule::Overlap::Behind) {
      if (!hasFailed)
        diags.report(rule->loc, diag::ReducedInBackward) << describe(*first.getResult());
      hasFailed = true;
      return false;
    }
    for (unsigned i = 0; rule->type && i < first.getNumOperands(); ++i)
      bringToType(first, i);
    return true;
  }

  void bringToType(Op &reduction, unsigned number) {
    Value &operand = *reduction.getOperand(number);
    DType type = operand.type.dtype;
    bool isContribution = reduction.getBlock()->getPhase() != PhaseKind::Step;
    if (type == *rule->type)
      return;
    Op *maker = operand.getOp();
    if (isContribution && maker && maker->kind == OpKind::Compute && operand.getUses().size() == 1) {
      maker->def = getWriting(*maker->def, operand.getNumber());
      operand.type.dtype = *rule->type;
    } else {
      Op &narrow = cast(operand, *rule->type, reduction);
      reduction.getBlock()->moveBefore(&narrow, &reduction);
      reduction.setOperand(number, narrow.getResult());
    }
    llvm::SmallVector<Value *, 4> moved = {reduction.getResult(number)};
    size_t numReduced = 1; // up to the last one over axes of the rule
    while (moved.back()->getUses().size() == 1 && isReshard(moved.back()->getUses().front().first->kind)) {
      auto [user, position] = moved.back()->getUses().front();
      moved.push_back(user->getResult(position));
      numReduced = isContribution || isReduction(*user) ? moved.size() : numReduced;
    }
    moved.resize(numReduced);
    for (Value *value : moved)
      value->type.dtype = *rule->type;
    if (!isContribution)
      writeBack(*moved.back(), type);
  }

  /// A gradient is reduced in a copy, and goes on in its buffer.
  void writeBack(Value &reduced, DType type) {
    llvm::SmallVector<std::pair<Op *, unsigned>, 2> uses(reduced.getUses().begin(), reduced.getUses().end());
    Value *buffer = cast(reduced, type, *reduced.getOp()).getResult();
    for (auto [user, operand] : uses)
      user->setOperand(operand, buffer);
  }

  /// The same operator with another type of a result.
  const OpDef *getWriting(const OpDef &def, unsigned result) {
    const OpDef *&known = writing[{&def, result}];
    if (!known) {
      OpDef copy = def;
      copy.results[result].dtype = rule->type;
      known = graph.defs.add(std::move(copy));
    }
    return known;
  }

  /// Behind another op, whose place in the strategy it shares.
  Op &cast(Value &value, DType dtype, Op &where) {
    auto owner = std::make_unique<Op>(OpKind::Compute, where.loc);
    owner->def = graph.defs.getCast(value.type.getNumDims(), dtype);
    owner->scope = where.scope;
    owner->extents.assign(value.type.shape.begin(), value.type.shape.end());
    owner->indexAxes.assign(value.sharding.dims.begin(), value.sharding.dims.end());
    owner->addOperand(&value);
    moveToStream(*owner, casts, "casts", StreamKind::Computation);
    owner->virtualStage = where.virtualStage;
    TensorType type = value.type;
    type.dtype = dtype;
    Value *result = owner->addResult(type, value.path);
    result->sharding = value.sharding;
    result->loc = value.loc;
    result->primal = value.primal;
    return *where.getBlock()->insertAfter(&where, std::move(owner));
  }

  //===--- buckets --------------------------------------------------------===//

  /// The first way of the bucket then has what all have.
  static bool merge(Bucket &bucket) {
    if (bucket.size() < 2)
      return false;
    std::vector<Op *> members;
    members.reserve(bucket.size());
    for (size_t i = 0; i < bucket.front().reductions.size(); ++i) {
      members.clear();
      for (const Way &way : bucket)
        members.push_back(way.reductions[i]);
      bucket.front().reductions[i] = &mergeCollectives(members, *members.back());
    }
    members.clear();
    for (const Way &way : bucket)
      members.push_back(way.gather);
    if (members.front())
      bucket.front().gather = &mergeCollectives(members, *members.back());
    return true;
  }

  /// Each op stays where it is, or comes right behind the last of what it waits for.
  static void moveBehindOperands(Block &block) {
    std::vector<Op *> order;
    llvm::DenseSet<const Op *> done;
    llvm::DenseMap<const Op *, unsigned> missing;
    llvm::DenseMap<const Op *, std::vector<Op *>> waiting; // for each op
    llvm::DenseSet<const Op *> later;                      // ops of the block that do not run yet
    for (auto &op : block)
      later.insert(op.get());
    for (auto &owner : block) {
      llvm::DenseSet<const Op *> makers;
      auto await = [&](const Value *value) {
        const Op *maker = value->getOp();
        if (maker && later.contains(maker) && maker->getBlock() == &block && makers.insert(maker).second)
          waiting[maker].push_back(owner.get());
      };
      forEachOutsideValue(*owner, [&](Value *value, Op &) { await(value); });
      forEachAwaitedValue(*owner, await);
      missing[owner.get()] = makers.size();
      std::vector<Op *> ready;
      if (makers.empty())
        ready.push_back(owner.get());
      while (!ready.empty()) {
        Op *op = ready.back();
        ready.pop_back();
        later.erase(op);
        order.push_back(op);
        for (Op *user : llvm::reverse(waiting[op]))
          if (!--missing[user])
            ready.push_back(user);
      }
    }
    for (size_t i = order.size(); i > 1; --i)
      block.moveBefore(order[i - 2], order[i - 1]);
  }

  //===--- when -----------------------------------------------------------===//

  void place(const Way &way) {
    for (Op *op : way.reductions) {
      bool isInStep = op->getBlock()->getPhase() == PhaseKind::Step;
      op->waitsForUnits = isInStep && rule->overlap == Rule::Overlap::Behind;
      if (rule->overlap != Rule::Overlap::Beside)
        continue;
      moveToStream(*op, reductions, "reductions", StreamKind::Communication);
      for (auto &result : op->getResults())
        if (Op *addition = isInStep ? nullptr : findUser(*result, OpKind::Accumulate))
          moveToStream(*addition, additions, "additions", StreamKind::Computation);
    }
    // Updates come behind all of backward: no reduction may come behind what gathers them.
    if (way.gather && rule->overlap == Rule::Overlap::Beside)
      moveToStream(*way.gather, gathers, "gathers", StreamKind::Communication);
  }

  void moveToStream(Op &op, const Stream *&stream, llvm::StringRef name, StreamKind kind) {
    if (op.stream)
      return;
    if (!stream)
      stream = addStream(graph, name, kind);
    op.stream = stream;
  }

  Graph &graph;
  DiagnosticEngine &diags;
  const Rule *rule = nullptr;
  bool reducesAny = false, hasFailed = false;
  const Stream *reductions = nullptr, *gathers = nullptr, *additions = nullptr, *casts = nullptr;
  llvm::DenseSet<const Value *> awaited; ///< Named by `after`.
  size_t numBuckets = 0;                 ///< Of the blocks that have been visited.
  llvm::DenseMap<const Value *, size_t>
      bucketOf; ///< Of a parameter to whose gradient backward adds reduced contributions.
  std::map<std::pair<const OpDef *, unsigned>, const OpDef *> writing;
};
} // namespace

void stage::reduceGradients(Graph &graph, DiagnosticEngine &diags) {
  if (checkSizes(graph, diags))
    GradientReducer(graph, diags).run();
}
