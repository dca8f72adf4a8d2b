//===- PartitionState.cpp - state in flat storage (ZeRO, FSDP) ------------===//
//
// Problem: ranks that have the same parameters need not all keep the same optimizer
// states, gradients and parameters. A strategy says over which axes each is cut:
//
//   partition optimizer over dp;      step: %s = reduce_scatter(%g) over dp flat
//                                           %n = update(%w, %s) : {_, tp} flat dp
//                                           write(%w, all_gather(%n) over dp flat)
//   partition gradients over dp;      backward, per microbatch, in place of the first:
//                                           accumulate(reduce_scatter(%dw) over dp flat, %w)
//   partition parameters over dp;     %w is kept {_, tp} flat dp; each phase gathers it
//                                     before its first use; update(%w, %s), and no write
//
// Algorithm: per parameter the axes are those of the statement on which the parameter is
// replicated. What is said of parameters holds for gradients, and what is said of those
// for the optimizer, unless it is said otherwise: each list begins with the one before.
//   1. The way of a gradient from its buffer to the update is taken apart: reshards along
//      dims come first, in their order; then each axis of the list is scattered flat, if
//      the gradient is partial there, or sliced, if it is not; what is partial over other
//      axes is reduced last, when it is smallest. What the gradient's own list says is
//      done before the accumulation, per microbatch, for all that one unit adds at once.
//   2. If the parameter is kept less cut than it is updated, its shard is updated, gathered
//      and written.
//      `reduce gradients ... { per_microbatch = true; }` completes contributions, too.
//   3. A parameter that is kept cut is gathered once per phase, in each block of the level
//      at which it is declared, before what uses it first there. With `keep` backward takes
//      what forward gathered. With `shards = f32` the shards of a bf16 parameter are its
//      master copies, in f32, and a gather brings bf16.
//
// Limits: one collective per parameter (bucket-units makes one of several). `keep` is not for what layers share.
// Backward gathers what it reads even where forward has just used it.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/graph/Costs.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IR/text/Text.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/Suggestions.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

namespace {
class StatePartitioner {
public:
  StatePartitioner(Graph &graph, DiagnosticEngine &diags) : graph(graph), diags(diags) {}

  void run() {
    if (!readRules())
      return;
    bool isPiped = graph.pipeline.axis && graph.mesh[*graph.pipeline.axis].size > 1;
    graph.walk([&](Op &op) {
      position[&op] = position.size();
      if (op.kind == OpKind::Param)
        states[op.getResult()];
      else if (op.kind == OpKind::Repeat)
        ++segments[op.getBlock()];
      else if (op.kind == OpKind::Accumulate)
        states[op.getOperand(1)].accumulations.push_back({&op, isPiped ? segments[op.getBlock()] : 0});
      else if (op.kind == OpKind::Update)
        states[op.getOperand(0)].update = &op;
    });
    for (auto &[param, state] : states)
      partition(*param, state);
    for (const Rule *rule : {parameters, gradients, optimizer})
      if (rule && !matched.count(rule) && hasLargeAxis(*rule))
        diags.report(rule->loc, diag::NothingToPartition)
            << getName(rule->kind) << llvm::join(listAxisNames(graph.mesh, rule->axes), ", ");
  }

private:
  /// What adds to a gradient, and how many repeats stand before it in its block, if a pipeline cuts them.
  struct Accumulation {
    Op *op;
    unsigned segment;
  };
  struct State {
    llvm::SmallVector<Accumulation, 2> accumulations;
    Op *update = nullptr;
  };

  /// False if there are none, or after an error.
  /// The axes of the rule but that of the pipeline, or else those that carry no parameter: `dp`, `(dp, cp)`.
  std::string listOtherAxes(const Rule &rule) const {
    std::vector<std::string> names;
    for (AxisId axis : rule.axes)
      if (axis != *graph.pipeline.axis)
        names.push_back(graph.mesh[axis].name);
    for (const Rule &other : graph.rules)
      if (names.empty() && other.kind == RuleKind::Shard && llvm::is_contained(other.dims, "B"))
        for (AxisId axis : other.axes)
          if (axis != *graph.pipeline.axis)
            names.push_back(graph.mesh[axis].name);
    if (names.empty())
      names.push_back("dp");
    return names.size() == 1 ? names.front() : "(" + llvm::join(names, ", ") + ")";
  }

  bool readRules() {
    for (const Rule &rule : graph.rules) {
      const Rule **place = rule.kind == RuleKind::PartitionParameters  ? &parameters
                           : rule.kind == RuleKind::PartitionGradients ? &gradients
                           : rule.kind == RuleKind::PartitionOptimizer ? &optimizer
                                                                       : nullptr;
      if (rule.kind == RuleKind::ReduceGradients && rule.perMicrobatch)
        reduction = &rule;
      if (!place)
        continue;
      *place = &rule; // the last one holds
      if (graph.pipeline.axis && (toSet(rule.axes) >> *graph.pipeline.axis & 1)) {
        diags.report(rule.loc, diag::PartitionOverStages)
            .with(graph.mesh[*graph.pipeline.axis].name, getName(rule.kind))
            .note(SMLoc(), diag::PartitionInstead)
            .with(getName(rule.kind), listOtherAxes(rule));
        return false;
      }
    }
    return checkPrefix(parameters, gradients) && checkPrefix(gradients ? gradients : parameters, optimizer) &&
           (parameters || gradients || optimizer || reduction);
  }

  /// What is updated is made of what is added up, and that of what is kept.
  bool checkPrefix(const Rule *first, const Rule *second) {
    if (!first || !second ||
        (first->axes.size() <= second->axes.size() &&
         llvm::makeArrayRef(second->axes).take_front(first->axes.size()) == llvm::makeArrayRef(first->axes)))
      return true;
    diags.report(second->loc, diag::PartitionOrder)
        << getName(second->kind) << describe(second->axes) << getName(first->kind) << describe(first->axes);
    return false;
  }

  std::string describe(llvm::ArrayRef<PlacedAxis> axes) const {
    return "(" + llvm::join(listAxisNames(graph.mesh, axes), ", ") + ")";
  }

  bool hasLargeAxis(const Rule &rule) const {
    return llvm::any_of(rule.axes, [&](AxisId axis) { return graph.mesh[axis].size > 1; });
  }

  /// The axes of a rule on which a parameter is replicated; none without the rule.
  AxisList getAxes(const Rule *rule, const Value &param) {
    AxisList axes;
    for (AxisId axis : rule ? llvm::ArrayRef<PlacedAxis>(rule->axes) : llvm::ArrayRef<PlacedAxis>())
      if (graph.mesh[axis].size > 1 && !(param.sharding.getSharded() >> axis & 1))
        axes.push_back(PlacedAxis(axis));
    if (!axes.empty())
      matched.insert(rule);
    return axes;
  }

  /// A rule says that what is added up is complete already.
  bool isReducedPerMicrobatch(const Op &update) const {
    auto isPartial = [&](Value *gradient) {
      auto way = findWay(gradient);
      const Value *buffer = way.empty() ? gradient : way.front()->getOperand(0);
      return (buffer->sharding.partial & toSet(reduction->axes)) != 0;
    };
    return reduction && llvm::any_of(update.getOperands().drop_front(), isPartial);
  }

  void partition(Value &param, State &state) {
    AxisList kept = getAxes(parameters, param);
    AxisList added = getAxes(gradients ? gradients : parameters, param);
    AxisList updated = getAxes(optimizer ? optimizer : gradients ? gradients : parameters, param);
    bool reducesAtOnce = state.update && isReducedPerMicrobatch(*state.update);
    if (reducesAtOnce && added.empty() && !updated.empty()) {
      if (!hasFailed)
        diags.report(reduction->loc, diag::ReducedPerStep) << param.path;
      hasFailed = true;
      return;
    }
    if (updated.empty() && !reducesAtOnce)
      return;
    DType read = param.type.dtype;
    if (!kept.empty() && parameters->type && !param.type.quantization &&
        getBitSize(*parameters->type) > getBitSize(read))
      param.type.dtype = *parameters->type;
    if (state.update) {
      reduceGradients(state, added, updated, reducesAtOnce);
      if (kept.size() < updated.size())
        updateShard(param, *state.update, llvm::makeArrayRef(updated).drop_front(kept.size()));
    }
    if (!kept.empty()) {
      param.sharding.flat = kept;
      gather(param, kept, read);
    }
  }

  //===--- 1. gradients ---------------------------------------------------===//

  /// The ops that bring a gradient to its update, the first one first.
  static llvm::SmallVector<Op *, 2> findWay(Value *gradient) {
    llvm::SmallVector<Op *, 2> way;
    for (; gradient->getOp() && isReshard(gradient->getOp()->kind) && gradient->getOp()->getNumOperands() == 1;
         gradient = gradient->getOp()->getOperand(0))
      way.insert(way.begin(), gradient->getOp());
    return way;
  }

  /// Buffers that differ in their sharding until they are cut may be one then, which is updated with once.
  void reduceGradients(State &state, const AxisList &added, const AxisList &updated, bool reducesAtOnce) {
    Op &update = *state.update;
    if (!added.empty() || reducesAtOnce)
      addContributions(state);
    llvm::SmallVector<Value *, 2> operands(update.getOperands().begin(), update.getOperands().end());
    update.clearOperands();
    update.addOperand(operands.front());
    llvm::SmallVector<Sharding, 2> buffers;
    for (Value *gradient : llvm::drop_begin(operands)) {
      llvm::SmallVector<Op *, 2> way = findWay(gradient);
      Value *buffer = way.empty() ? gradient : way.front()->getOperand(0);
      if (!added.empty() || reducesAtOnce)
        reduceContributions(state, *buffer, way, added, reducesAtOnce);
      if (!llvm::is_contained(buffers, buffer->sharding)) {
        buffers.push_back(buffer->sharding);
        auto rest = llvm::makeArrayRef(updated).drop_front(added.size());
        update.addOperand(move(buffer, added.empty() && !reducesAtOnce ? way : llvm::SmallVector<Op *, 2>(), rest,
                               /*reducesRest=*/true, update));
      }
      for (Op *op : llvm::reverse(way))
        op->getBlock()->erase(op);
    }
  }

  /// All that is added to a buffer.
  void reduceContributions(State &state, const Value &buffer, llvm::ArrayRef<Op *> way, const AxisList &added,
                           bool reducesRest) {
    Sharding before = buffer.sharding;
    for (auto [accumulation, segment] : state.accumulations) {
      if (accumulation->getResult()->sharding != before)
        continue; // of another buffer
      Value *part = move(accumulation->getOperand(0), way, added, reducesRest, *accumulation);
      accumulation->setOperand(0, part);
      accumulation->getResult()->sharding = part->sharding;
    }
  }

  /// What one unit of a microbatch adds to a buffer in several places, as that of an embedding that is also the output
  /// layer, is added first and reduced once. On either side of repeats that a pipeline cuts it belongs to other units.
  void addContributions(State &state) {
    using Place = std::tuple<Block *, unsigned, Sharding>;
    llvm::SmallVector<std::pair<Place, llvm::SmallVector<Op *, 2>>, 2> together;
    for (auto [accumulation, segment] : state.accumulations) {
      Place place = {accumulation->getBlock(), segment, accumulation->getOperand(0)->sharding};
      auto found = llvm::find_if(together, [&](auto &group) { return group.first == place; });
      (found == together.end() ? together.emplace_back(place, llvm::SmallVector<Op *, 2>()) : *found)
          .second.push_back(accumulation);
    }
    llvm::SmallSetVector<Op *, 8> merged; // erased in the order of the program
    for (auto &[place, accumulations] : together) {
      Op &last = *accumulations.pop_back_val();
      if (accumulations.empty())
        continue;
      const Value &like = *last.getOperand(0);
      auto sum = std::make_unique<Op>(OpKind::Compute, last.loc);
      sum->def = graph.defs.getSum(like.type.getNumDims(), accumulations.size() + 1);
      sum->scope = last.scope;
      sum->extents.assign(like.type.shape.begin(), like.type.shape.end());
      sum->indexAxes.assign(like.sharding.dims.begin(), like.sharding.dims.end());
      for (Op *accumulation : accumulations) {
        sum->addOperand(accumulation->getOperand(0));
        accumulation->getResult()->replaceAllUsesWith(last.getResult());
        merged.insert(accumulation);
      }
      sum->addOperand(last.getOperand(0));
      Value *result = sum->addResult(like.type, like.path);
      copy(like, *result);
      last.setOperand(0, result);
      last.getBlock()->insertBefore(&last, std::move(sum));
    }
    llvm::erase_if(state.accumulations, [&](const Accumulation &of) { return merged.contains(of.op); });
    for (Op *accumulation : merged)
      accumulation->getBlock()->erase(accumulation);
  }

  /// Brings a gradient along its way and to flat storage, before an op.
  Value *move(Value *value, llvm::ArrayRef<Op *> way, llvm::ArrayRef<PlacedAxis> flat, bool reducesRest, Op &where) {
    for (Op *step : way) {
      if (step->kind == OpKind::AllReduce)
        continue;
      Op &op = append(step->kind, value, where);
      op.axes = step->axes;
      op.dim = step->dim;
      op.toDim = step->toDim;
      op.moreDims = step->moreDims;
      op.reduce = step->reduce;
      // What is reduced on the way only is partial here.
      AxisSet partial = value->sharding.partial;
      value = op.getResult();
      value->sharding = step->getResult()->sharding;
      value->sharding.partial = op.kind == OpKind::ReduceScatter ? partial & ~toSet(op.axes) : partial;
    }
    for (size_t i = 0; i < flat.size();) {
      bool isPartial = value->sharding.partial >> flat[i] & 1;
      Op &op = append(isPartial ? OpKind::ReduceScatter : OpKind::Slice, value, where);
      op.flat = true;
      for (; i < flat.size() && (value->sharding.partial >> flat[i] & 1) == isPartial; ++i)
        op.axes.push_back(flat[i]);
      value = op.getResult();
      value->sharding.flat.append(op.axes.begin(), op.axes.end());
      value->sharding.partial &= ~toSet(op.axes);
    }
    if (AxisSet rest = reducesRest ? value->sharding.partial : 0) {
      Op &op = append(OpKind::AllReduce, value, where);
      op.axes = toList(rest);
      value = op.getResult();
      value->sharding.partial = 0;
    }
    return value;
  }

  /// An op on a value, with a result that is like it so far.
  Op &append(OpKind kind, Value *value, Op &where) {
    auto owner = std::make_unique<Op>(kind, where.loc);
    owner->scope = where.scope;
    owner->addOperand(value);
    copy(*value, *owner->addResult(value->type, value->path));
    return *where.getBlock()->insertBefore(&where, std::move(owner));
  }

  static void copy(const Value &from, Value &to) {
    to.sharding = from.sharding;
    to.loc = from.loc;
    to.primal = from.primal;
  }

  //===--- 2. and 3. parameters -------------------------------------------===//

  /// `cut` is what the parameter is cut over for its update only.
  void updateShard(Value &param, Op &update, llvm::ArrayRef<PlacedAxis> cut) {
    Value *shard = update.addResult(param.type, param.path);
    shard->loc = param.loc;
    shard->sharding = param.sharding;
    shard->sharding.flat = update.getOperand(1)->sharding.flat;
    Block &block = *update.getBlock();
    auto gather = makeGather(*shard, cut, update, shard->type.dtype);
    auto write = std::make_unique<Op>(OpKind::Write, update.loc);
    write->scope = update.scope;
    write->addOperand(&param);
    write->addOperand(gather->getResult());
    Op *behind = block.insertAfter(&update, std::move(gather));
    block.insertAfter(behind, std::move(write));
  }

  std::unique_ptr<Op> makeGather(Value &value, llvm::ArrayRef<PlacedAxis> axes, const Op &like, DType type) {
    auto gather = std::make_unique<Op>(OpKind::AllGather, like.loc);
    gather->scope = value.getOp()->scope;
    gather->axes.assign(axes.begin(), axes.end());
    gather->flat = true;
    gather->addOperand(&value);
    Value *result = gather->addResult(value.type, value.path);
    result->type.dtype = type;
    copy(value, *result);
    result->sharding.flat.truncate(result->sharding.flat.size() - axes.size());
    return gather;
  }

  /// The op around a user that stands at the level of the parameter: in a body of the same repeat, or at the top.
  static Op &findAnchor(Op &user, const Value &param) { return getLoop(&param) ? user : *getTopLevelOp(&user); }

  /// `type` is the one in which ops read it.
  void gather(Value &param, const AxisList &axes, DType type) {
    llvm::SmallVector<std::pair<Op *, unsigned>, 8> uses;
    for (auto use : param.getUses())
      if (use.first->kind != OpKind::Accumulate && use.first->kind != OpKind::Update &&
          use.first->kind != OpKind::Write)
        uses.push_back(use);
    llvm::MapVector<Block *, llvm::SmallVector<std::pair<Op *, unsigned>, 4>> byBlock;
    // What layers share each virtual stage gathers for itself, and could not tell which of them it keeps.
    bool isShared = llvm::any_of(uses, [&](auto use) { return findAnchor(*use.first, param).kind == OpKind::Repeat; });
    for (auto [user, operand] : uses) {
      Block *block = findAnchor(*user, param).getBlock();
      byBlock[parameters->keeps && !isShared ? param.getBlock() : block].push_back({user, operand});
    }
    for (auto &[block, users] : byBlock) {
      Op *first = nullptr; // in forward, where it gathers for backward, too
      for (auto [user, operand] : users)
        if (Op &anchor = findAnchor(*user, param); anchor.getBlock() == block)
          first = first && position[first] < position[&anchor] ? first : &anchor;
      Op &where = first ? *first : *block->getTerminator();
      Op *made = block->insertBefore(&where, makeGather(param, axes, where, type));
      for (auto [user, operand] : users)
        user->setOperand(operand, made->getResult());
    }
  }

  Graph &graph;
  DiagnosticEngine &diags;
  const Rule *parameters = nullptr, *gradients = nullptr, *optimizer = nullptr;
  const Rule *reduction = nullptr; ///< If it is per microbatch.
  bool hasFailed = false;
  llvm::MapVector<Value *, State> states;           ///< In the order of the model.
  llvm::DenseMap<const Op *, unsigned> position;    ///< In the program, before this pass.
  llvm::DenseMap<const Block *, unsigned> segments; ///< Repeats of a block so far.
  llvm::DenseSet<const Rule *> matched;             ///< Rules that cut anything.
};
} // namespace

void stage::partitionState(Graph &graph, DiagnosticEngine &diags) { StatePartitioner(graph, diags).run(); }
