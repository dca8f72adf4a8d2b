//===- OverlapProducts.cpp - asynchronous tensor parallelism --------------===//
//
// Problem: a product waits for all of what an all_gather brings, and a reduce_scatter for all
// of what a product makes, while a rank has work that needs a part of it only:
//
//   rule 5 overlap products over tp;
//
//   %g = all_gather(%x) over tp dim 0          %y = linear(%u, %v) [m over tp] : partial(tp)
//   %u = linear(%g, %w) [n over tp]            %z = reduce_scatter(%y) over tp dim 0
//
// Algorithm: both are taken apart into steps of a ring (RingSteps.h), one per rank. What is gathered goes round, and
// each step multiplies the block that is here while the next one travels. A *piece* of the result, which has tp on two
// dims, is what a rank makes in a step, of its own columns and of the rows of another rank; all pieces are the result:
//
//   %x1 = permute(%x) over tp by 1
//   %u0 = linear(%x, %w) [b over tp, n over tp]               : {tp, tp}
//   %u1 = linear(%x1, %w) [b over tp rotated 1, n over tp]    : {tp rotated 1, tp}
//   %u  = join(%u0, %u1) over tp dim 0                        : {_, tp}
//
// What is scattered goes round as the sum of what each rank adds, which ends at home:
//
//   %u0 = slice(%u) over tp rotated 1 dim 0                   : {tp rotated 1, tp}
//   %y0 = linear(%u0, %v) [b over tp rotated 1, m over tp]    : {tp rotated 1, _}
//   %y1 = permute(%y0) over tp by 1                           : {tp, _}
//   %u1 = slice(%u) over tp dim 0
//   %y2 = linear(%u1, %v) [b over tp, m over tp]              : {tp, _}
//   %z  = add(%y1, %y2)                                       : {tp, _}
//
//   1. All products of a block that take what is gathered do so in the same ring, as far as what else they take is
//      there when the first of their results is needed. A product that adds all rows up, as the gradient of a weight
//      does, is one of them where it adds each part to a gradient's buffer; where contributions are reduced per
//      microbatch, or go to the host, all of it is wanted at once.
//   2. What else needs all that was gathered gets it from a join of the blocks, so that it is gathered once.
//   3. Products whose sum is scattered, as the input gradients of separate projections, make their parts in one step.
//   4. If gradients of products over these axes stay together as well (rule 6 overlap gradients over tp), the two
//      collectives that such a pair hides are no rings: a weight's gradient takes all that was gathered, beside the
//      input's, whose sum is scattered beside the weight's (ProductOrder.cpp). Transformer Engine does both.
//
// Who sends what is what the collectives would send: each rank n-1 blocks, or as many parts of a sum.
//
// Limits: n ops per product, as n is a number here. Over several axes all must be of one rule.
//
//===----------------------------------------------------------------------===//
#include "RingSteps.h"
#include "sharding/ReplacedValues.h"
#include "stage/IR/graph/Costs.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IR/graph/ShardingRules.h"
#include "stage/IR/text/Text.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/sharding/CheckSizes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

namespace {
class ProductOverlapper {
public:
  ProductOverlapper(Graph &graph, DiagnosticEngine &diags) : graph(graph), diags(diags) {}

  void run() {
    for (const Rule &rule : graph.rules) {
      if (rule.kind == RuleKind::OverlapProducts && graph.mesh.getGroupSize(toSet(rule.axes)) > 1)
        rules.push_back(&rule);
      if (rule.kind == RuleKind::OverlapGradients)
        ordered |= toSet(rule.axes);
      reducesPerMicrobatch |= rule.kind == RuleKind::PartitionGradients || rule.kind == RuleKind::PartitionParameters ||
                              rule.kind == RuleKind::OffloadParameters || // to the host
                              (rule.kind == RuleKind::ReduceGradients && rule.perMicrobatch);
    }
    if (rules.empty())
      return;
    for (Block &phase : graph.getPhases())
      visit(phase);
    replacedValues.follow(graph);
    for (const Rule *rule : rules)
      if (!used.contains(rule))
        diags.report(rule->loc, diag::NoProductsToOverlap) << llvm::join(listAxisNames(graph.mesh, rule->axes), ", ");
  }

private:
  /// A product, of which each step makes a part: that of a block of one of its indices.
  struct Part {
    Op *op;
    unsigned index;
    std::optional<unsigned> operand = std::nullopt; ///< What is gathered.
    std::vector<Value *> made = {};                 ///< By the steps so far.
  };
  /// The index is one of the result; else the product adds all of it up.
  static bool isKept(const Part &part) { return llvm::is_contained(part.op->def->results.front().indices, part.index); }

  void visit(Block &block) {
    struct Collective {
      Op *op;
      const Rule *rule;
      Value *computedBefore;
    };
    std::vector<Collective> collectives;
    ComputedBefore computed(graph);
    for (auto &op : block) {
      for (auto &body : op->bodies)
        visit(*body);
      numbers[op.get()] = numbers.size();
      addWaiter(*op);
      if (const Rule *rule = findRule(*op))
        collectives.push_back({op.get(), rule, computed.get()});
      computed.visit(*op);
    }
    for (auto [op, rule, before] : collectives)
      if (op->kind == OpKind::AllGather ? overlapGather(*op, before) : overlapScatter(*op))
        used.insert(rule);
  }

  /// The first rule that is about all axes of a collective; null for what products have nothing to do with.
  const Rule *findRule(const Op &op) const {
    bool isOne =
        (op.kind == OpKind::AllGather || op.kind == OpKind::ReduceScatter) && !op.flat && op.getNumOperands() == 1;
    auto rule = llvm::find_if(rules, [&](const Rule *rule) { return !(toSet(op.axes) & ~toSet(rule->axes)); });
    return !isOne || op.reduce != ReduceKind::Sum || rule == rules.end() || isBesideGradient(op) ? nullptr : *rule;
  }

  /// A sum of gradients that is hidden behind a weight's gradient.
  bool isBesideGradient(const Op &op) const {
    return op.kind == OpKind::ReduceScatter && hasOrder(op) && isBackward(op.getBlock()->getPhase()) &&
           !op.isRecomputed;
  }
  /// Whether gradients of products stay together for the sake of such a collective.
  bool hasOrder(const Op &op) const { return !(toSet(op.axes) & ~ordered); }

  //===--- order ------------------------------------------------------------===//

  /// The op of a block that another one is, or stands in; null if it is of another block.
  static Op *findIn(const Block &block, Op *op) {
    while (op && op->getBlock() != &block)
      op = op->getBlock()->getParent();
    return op;
  }

  /// Whether an op stands before another one of its block. What a ring has made has the number of the place where it
  /// stands; ops that have the same one are told apart when somebody asks.
  bool isBefore(const Op &a, const Op &b) {
    if (&a != &b && numbers.lookup(&a) == numbers.lookup(&b)) {
      unsigned next = 0;
      for (auto &op : *a.getBlock())
        numbers[op.get()] = next++;
    }
    return numbers.lookup(&a) < numbers.lookup(&b);
  }

  /// A value is there before an op of the block.
  bool isThere(const Value &value, const Op &before) {
    const Op *maker = value.getOp();
    return !maker || maker->getBlock() != before.getBlock() || isBefore(*maker, before);
  }

  /// What a ring has made stands where it does.
  void numberInserted(const RingSteps &steps, unsigned number) {
    for (Op *op : steps.getInserted()) {
      numbers[op] = number;
      addWaiter(*op);
    }
  }

  /// Enters what an op waits for, besides its operands, in its own iteration and unit.
  void addWaiter(Op &op) {
    for (const OrderEdge &edge : op.after)
      if (!edge.iterations && !edge.units)
        waiters[edge.value].push_back(&op);
  }

  //===--- steps ------------------------------------------------------------===//

  static bool isPlain(const OpDef &def, unsigned index) {
    return llvm::none_of(def.indices, [&](const IndexInfo &info) { return llvm::is_contained(info.members, index); }) &&
           !def.indices[index].isCompound();
  }

  /// The axes of indices that are in the result, or of those that are not.
  static AxisSet getAxes(const Op &op, bool ofResult) {
    AxisSet axes = 0;
    llvm::SmallVector<unsigned, 4> kept = op.def->expand(op.def->results.front().indices);
    for (unsigned index = 0; index < op.indexAxes.size(); ++index)
      if (!op.def->indices[index].isCompound() && llvm::is_contained(kept, index) == ofResult)
        axes |= toSet(op.indexAxes[index]);
    return axes;
  }

  /// A sum of products of which a rank can make a part by itself.
  static bool isContraction(const Op &op, AxisSet axes) {
    auto isComplete = [&](const Value *operand) { return !(operand->sharding.partial & axes); };
    return op.kind == OpKind::Compute && !op.ring && op.getNumResults() == 1 && op.def->isProduct &&
           op.getNumOperands() > 1 && llvm::is_contained(op.def->reduced, true) &&
           llvm::all_of(op.getOperands(), isComplete);
  }

  Value *slice(RingSteps &steps, const Op &like, Value &value, unsigned dim, llvm::ArrayRef<PlacedAxis> place) const {
    auto op = std::make_unique<Op>(OpKind::Slice, like.loc);
    op->scope = like.scope;
    op->axes.assign(place.begin(), place.end());
    op->dim = dim;
    op->addOperand(&value);
    Sharding sharding = value.sharding;
    sharding.dims[dim].append(place.begin(), place.end());
    steps.addResult(*op, value, sharding);
    return steps.insert(std::move(op))->getResult();
  }

  /// The product of the blocks at `place`: what was given of what is gathered, and slices of what else has the index.
  /// The last one is the op itself, which others are the gradients of.
  void makeStep(RingSteps &steps, Part &part, Value *given, llvm::ArrayRef<PlacedAxis> place, Op &where) const {
    Op &op = *part.op;
    bool isLast = part.made.size() + 1 == steps.getNumSteps();
    llvm::SmallVector<Value *, 4> operands;
    for (unsigned i = 0; i < op.getNumOperands(); ++i) {
      auto indices = llvm::makeArrayRef(op.def->operands[i].indices);
      auto dim = llvm::find(indices, part.index);
      operands.push_back(part.operand == i      ? given
                         : dim == indices.end() ? op.getOperand(i)
                                                : slice(steps, op, *op.getOperand(i), dim - indices.begin(), place));
    }
    std::unique_ptr<Op> made;
    if (!isLast) {
      made = std::make_unique<Op>(OpKind::Compute, op.loc);
      made->scope = op.scope;
      made->origin = op.origin;
      made->isRecomputed = op.isRecomputed;
      made->def = op.def;
      made->extents = op.extents;
      made->indexAxes = op.indexAxes;
    }
    Op &step = isLast ? op : *made;
    step.clearOperands();
    for (Value *operand : operands)
      step.addOperand(operand);
    step.indexAxes[part.index].append(place.begin(), place.end());
    step.turns = {part.index, toSet(place)};
    Sharding sharding = getNaturalSharding(step, 0);
    if (made) {
      steps.addResult(step, *op.getResult(), sharding);
      steps.insert(std::move(made));
    } else {
      op.getResult()->sharding = sharding;
      if (&op == &where)
        steps.goBehind(op);
      else
        op.getBlock()->moveBefore(&op, &where);
    }
    part.made.push_back(step.getResult());
  }

  using Uses = std::vector<std::pair<Op *, unsigned>>;
  static Uses listUses(const Value &value) { return Uses(value.getUses().begin(), value.getUses().end()); }

  /// Puts `to` in the place of a value, of which these are the uses.
  void replace(Value &from, const Uses &uses, Value &to) {
    for (auto [user, operand] : uses)
      user->setOperand(operand, &to);
    to.path = std::exchange(from.path, "");
    to.constraint = std::exchange(from.constraint, Constraint());
    to.primal = std::exchange(from.primal, nullptr);
    replacedValues.replace(from, to);
  }

  Value *makeJoin(RingSteps &steps, const Op &like, llvm::ArrayRef<Value *> parts, unsigned dim,
                  llvm::ArrayRef<PlacedAxis> axes, const Sharding &sharding) const {
    auto op = std::make_unique<Op>(OpKind::Join, like.loc);
    op->scope = like.scope;
    op->axes.assign(axes.begin(), axes.end());
    op->dim = dim;
    for (Value *part : parts)
      op->addOperand(part);
    steps.addResult(*op, *parts.front(), sharding);
    return steps.insert(std::move(op))->getResult();
  }

  //===--- what is gathered -------------------------------------------------===//

  /// A use of what is gathered that can be taken apart; nothing for another one.
  std::optional<Part> findPart(const Op &gather, Op &user, unsigned operand) const {
    AxisSet axes = toSet(gather.axes);
    if (user.getBlock() != gather.getBlock() || !isContraction(user, axes) ||
        llvm::count(user.getOperands(), gather.getResult()) != 1)
      return std::nullopt;
    unsigned index = user.def->operands[operand].indices[gather.dim];
    if (!isPlain(*user.def, index) || (getAxes(user, /*ofResult=*/false) & axes))
      return std::nullopt;
    // Rows of other ranks that are added up are those of this rank's columns; else all would have the same.
    Part part{&user, index, operand};
    bool isAdded = (axes & ~getAxes(user, /*ofResult=*/true)) == 0 && !reducesPerMicrobatch && !hasOrder(gather) &&
                   getFusedAccumulation(graph, user.getResult());
    return isKept(part) || isAdded ? std::optional<Part>(part) : std::nullopt;
  }

  bool overlapGather(Op &gather, Value *computedBefore) {
    Block &block = *gather.getBlock();
    Op *limit = nullptr; // the first that needs a result, or all that is gathered
    auto bound = [&](Op *user) {
      Op *at = findIn(block, user);
      if (at && (!limit || isBefore(*at, *limit)))
        limit = at;
    };
    std::vector<Part> parts;
    Uses others;
    for (auto [user, operand] : gather.getResult()->getUses()) {
      if (std::optional<Part> part = findPart(gather, *user, operand)) {
        parts.push_back(*part);
        for (auto [next, number] : user->getResult()->getUses())
          if (isKept(*part)) // else it is added to a buffer, and that moves with it
            bound(next);
      } else {
        others.push_back({user, operand});
        bound(user);
      }
    }
    // Steps of another ring may wait for what is gathered, and products that are steps of it need all of that.
    if (auto waiting = waiters.find(gather.getResult()); waiting != waiters.end())
      llvm::for_each(waiting->second, bound);
    llvm::sort(parts, [&](const Part &a, const Part &b) { return isBefore(*a.op, *b.op); });
    llvm::erase_if(parts, [&](const Part &part) {
      bool isLate =
          limit && llvm::any_of(part.op->getOperands(), [&](const Value *value) { return !isThere(*value, *limit); });
      if (isLate)
        others.push_back({part.op, *part.operand});
      return isLate;
    });
    if (parts.empty())
      return false;
    Op *last = parts.back().op;
    Op &where = limit && isBefore(*limit, *last) ? *limit : *last;
    RingSteps steps(graph, gather.axes, where, gather);
    AxisList place = gather.axes;
    std::vector<Value *> blocks = {gather.getOperand(0)}, operands = blocks;
    for (Part &part : parts)
      for (unsigned i = 0; i < part.op->getNumOperands(); ++i)
        if (i != part.operand)
          operands.push_back(part.op->getOperand(i));
    std::vector<std::pair<Sharding, Uses>> results;
    for (const Part &part : parts)
      results.emplace_back(part.op->getResult()->sharding, listUses(*part.op->getResult()));
    steps.setFirstStep(operands, computedBefore);
    for (unsigned number = 0; number < steps.getNumSteps(); ++number) {
      Value *now = blocks.back();
      if (number + 1 < steps.getNumSteps())
        blocks.push_back(steps.send(now, steps.getHop(number + 1)));
      std::vector<Value *> made;
      for (Part &part : parts) {
        makeStep(steps, part, now, place, where);
        made.push_back(part.made.back());
        if (!isKept(part))
          accumulate(steps, part, *part.op->getResult()->getUses().front().first);
      }
      steps.setStep(made);
      if (number + 1 < steps.getNumSteps())
        steps.rotate(place, steps.getHop(number + 1));
    }
    for (auto [part, result] : llvm::zip(parts, results)) {
      if (!isKept(part))
        continue;
      auto &indices = part.op->def->results.front().indices;
      auto dim = llvm::find(indices, part.index);
      Value *whole = makeJoin(steps, *part.op, part.made, dim - indices.begin(), gather.axes, result.first);
      replace(*part.op->getResult(), result.second, *whole);
    }
    Value &gathered = *gather.getResult();
    replacedValues.await(gathered, *blocks.back());
    if (others.empty())
      replacedValues.replace(gathered, *gather.getOperand(0));
    else
      replace(gathered, others, *makeJoin(steps, gather, blocks, gather.dim, gather.axes, gathered.sharding));
    unsigned number = numbers.lookup(&where);
    for (const Part &part : parts) {
      numbers[part.op] = number;
      if (!isKept(part)) // its accumulation moved with it
        numbers[part.op->getResult()->getUses().front().first] = number;
    }
    numberInserted(steps, number);
    replacedValues.retire(gather);
    return true;
  }

  /// Adds what the last step of a product made to the buffer to which the product is added.
  void accumulate(RingSteps &steps, const Part &part, Op &accumulation) {
    if (part.made.back() == part.op->getResult()) {
      part.op->getBlock()->moveAfter(&accumulation, part.op);
      if (steps.isBehind(*part.op))
        steps.goBehind(accumulation);
      return;
    }
    auto op = std::make_unique<Op>(static_cast<const OpAttributes &>(accumulation));
    op->addOperand(part.made.back());
    op->addOperand(accumulation.getOperand(1));
    Value *buffer = accumulation.getResult();
    steps.addResult(*op, *buffer, buffer->sharding)->path = buffer->path;
    steps.insert(std::move(op));
  }

  //===--- what is scattered ------------------------------------------------===//

  /// The products of which a value is made, and the sums in between. False if there is anything else.
  bool collect(const Op &scatter, Value &value, std::vector<Part> &parts, std::vector<Op *> &sums) const {
    Op *op = value.getOp();
    AxisSet axes = toSet(scatter.axes);
    if (!op || op->kind != OpKind::Compute || op->getBlock() != scatter.getBlock() || value.getUses().size() != 1 ||
        op->getNumResults() != 1 || (axes & ~value.sharding.partial))
      return false;
    auto &indices = op->def->results.front().indices;
    if (isContraction(*op, axes) && !(axes & ~getAxes(*op, /*ofResult=*/false))) {
      parts.push_back({op, indices[scatter.dim]});
      return isPlain(*op->def, indices[scatter.dim]);
    }
    sums.push_back(op);
    bool isMade = op->def->isSum;
    for (unsigned i = 0; isMade && i < op->getNumOperands(); ++i)
      isMade = op->def->operands[i].indices == indices && collect(scatter, *op->getOperand(i), parts, sums);
    return isMade;
  }

  bool overlapScatter(Op &scatter) {
    std::vector<Part> parts;
    std::vector<Op *> sums;
    Value &sum = *scatter.getOperand(0), &result = *scatter.getResult();
    if (!collect(scatter, sum, parts, sums))
      return false;
    Op &where = *sum.getOp();
    RingSteps steps(graph, scatter.axes, where, where);
    AxisList place = scatter.axes;
    for (unsigned number = 1; number < steps.getNumSteps(); ++number)
      steps.rotate(place, steps.getHop(number), graph.mesh[steps.getHop(number)].size - 1);
    for (Part &part : parts)
      part.op->getResult()->path = "";
    Value *soFar = nullptr;
    for (unsigned number = 0; number < steps.getNumSteps(); ++number) {
      llvm::SmallVector<Value *, 4> addends;
      if (number) {
        addends.push_back(steps.send(soFar, steps.getHop(number)));
        steps.rotate(place, steps.getHop(number));
      }
      for (Part &part : parts) {
        makeStep(steps, part, nullptr, place, where);
        addends.push_back(part.made.back());
      }
      soFar = addends.size() > 1 ? steps.add(addends) : addends.front();
      steps.setStep({soFar});
    }
    replace(result, listUses(result), *soFar);
    replacedValues.await(result, *soFar);
    unsigned number = numbers.lookup(&where);
    numberInserted(steps, number);
    replacedValues.retire(scatter);
    for (const Part &part : parts) {
      replacedValues.replace(*part.op->getResult(), *soFar);
      numbers[part.op] = number;
      part.op->getResult()->constraint = Constraint();
    }
    for (Op *op : sums) { // the outermost first
      replacedValues.replace(*op->getResult(), *soFar);
      replacedValues.await(*op->getResult(), *soFar);
      replacedValues.retire(*op);
    }
    return true;
  }

  Graph &graph;
  DiagnosticEngine &diags;
  std::vector<const Rule *> rules;
  llvm::DenseSet<const Rule *> used;
  AxisSet ordered = 0;               ///< Axes over which gradients of a product stay together.
  bool reducesPerMicrobatch = false; ///< Contributions to gradients leave in backward.
  llvm::DenseMap<const Op *, unsigned>
      numbers; ///< In the order of the program; what is inserted has that of where it is.
  llvm::DenseMap<const Value *, llvm::SmallVector<Op *, 2>> waiters; ///< Ops whose `after` has a value.
  ReplacedValues replacedValues;
};
} // namespace

void stage::overlapProducts(Graph &graph, DiagnosticEngine &diags) {
  if (checkSizes(graph, diags))
    ProductOverlapper(graph, diags).run();
}
