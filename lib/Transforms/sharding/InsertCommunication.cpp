//===- InsertCommunication.cpp - every reshard becomes ops (law L6) -------===//
//
// Problem: propagation says what each value is and what each user needs. Where they
// differ, data must move: once for all users of one schedule unit of one kind, at
// the first of them, and what backward uses of forward must be kept in the form that
// costs least memory.
//
//   %n : {B@dp, S@tp, D}                       %n.1 = all_gather(%n) over tp along S
//   %q = linear(%n, %wq)                 ->    %q = linear(%n.1, %wq)
//   %k = linear(%n, %wk)                       %k = linear(%n.1, %wk)
//   backward: %dwq = linear.dw(%n, %dq)        backward gathers %n again, once
//
// Algorithm, ops in order:
//   1. A result whose natural sharding is not its final one: the op keeps making the
//      natural one, a reshard follows and everybody uses that.
//   2. A sum with partial addends that it cannot hand on: those that are alike are
//      added first, as they are; the sum then takes one partial addend.
//   3. Each operand that is not in the sharding its op needs is resharded before the
//      op, or taken from the forms of the value that this unit has made already.
//   4. A backward op starts from the forward form with the fewest local bytes; a tie
//      goes to the form it needs. Where the strategy says `keep gathered over tp`, a form
//      that is not split over tp comes before all that are. What an op that runs again has
//      gathered is there for gradients, too, unless its rule says `again = all`.
//   5. An op that computes nothing, as another name for a value has it, has had its say
//      once its operand is where it is to be: its users take that, and it goes.
//
// Gradients of parameters: accumulators of one parameter with one sharding are one
// buffer; the step block reduces each buffer once.
//
//===----------------------------------------------------------------------===//
#include "RuleCalls.h"
#include "stage/IR/graph/Identity.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IR/graph/ShardingRules.h"
#include "stage/IR/text/Text.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/sharding/CheckSizes.h"
#include "stage/Transforms/sharding/Reshard.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include <tuple>

using namespace stage;

namespace {
class CommunicationInserter {
public:
  CommunicationInserter(Graph &graph, DiagnosticEngine &diags) : graph(graph), diags(diags), plans(graph) {}

  void run() {
    for (const Rule &rule : graph.rules)
      gathersAgain |= rule.kind == RuleKind::Recompute && rule.gathersAll;
    for (Block &block : graph.getPhases()) {
      phase = block.getPhase();
      if (phase == PhaseKind::Step)
        mergeBuffers(block);
      visitBlock(block, formsOf[unsigned(phase)]);
    }
    checkKeepRules();
    eraseReplaced();
    eraseUnused();
  }

private:
  /// The shardings in which a value is there in one schedule unit. A form made inside a repeat is known by its
  /// block: it serves that block only.
  struct Form {
    Value *value;
    Block *block;
    bool isRecomputed = false; ///< Made for an op that runs again.
  };
  using Forms = llvm::DenseMap<Value *, llvm::SmallVector<Form, 2>>;

  void visitBlock(Block &block, Forms &forms) {
    llvm::SmallVector<Op *, 64> ops;
    for (auto &op : block)
      ops.push_back(op.get());
    for (size_t position = 0; position < ops.size(); ++position) {
      Op *op = ops[position];
      if (op->kind == OpKind::Compute && op->def->isSum)
        op = addPartialFirst(op);
      Value *before = op->getNumOperands() ? op->getOperand(0) : nullptr;
      for (unsigned i = op->kind == OpKind::Update ? 1 : 0; i < op->getNumOperands(); ++i)
        provide(*op, i, block, forms);
      if (computesNothing(*op))
        replaceByOperand(*op, before, block, forms);
      else if (op->kind == OpKind::Compute)
        separateNatural(*op, block, position + 1 < ops.size() ? ops[position + 1] : nullptr);
      if (op->kind == OpKind::Accumulate)
        op->getResult()->sharding = op->getOperand(0)->sharding;
      for (auto &body : op->bodies)
        visitBlock(*body, forms);
    }
  }

  //===--- 1. natural and final ------------------------------------------===//

  /// `next` is the op behind; null at the end of the block.
  void separateNatural(Op &op, Block &block, Op *next) {
    for (unsigned i = 0; i < op.getNumResults(); ++i) {
      Value *result = op.getResult(i);
      Sharding natural = getNaturalSharding(op, i);
      if (result->getUses().empty()) {
        result->sharding = natural; // nobody needs it to be anywhere
        continue;
      }
      // An operand that propagation saw partial may be complete by now: then so is the result.
      result->sharding.partial &= natural.partial;
      if (natural == result->sharding)
        continue;
      Sharding final = result->sharding;
      result->sharding = natural;
      llvm::SmallVector<std::pair<Op *, unsigned>, 8> uses(result->getUses().begin(), result->getUses().end());
      Value *resharded = insertReshard(result, final, block, next, plans);
      remark(*result, *resharded, op);
      resharded->constraint = result->constraint;
      resharded->primal = result->primal;
      for (auto [user, operand] : uses)
        user->setOperand(operand, resharded);
      finals.push_back(resharded);
      // The natural form, if it is whole, is there for other users, and to be kept for later phases, too.
      if (!natural.partial)
        formsOf[unsigned(phase)][resharded].push_back({result, &block});
    }
  }

  //===--- 2. sums -------------------------------------------------------===//

  /// Addends that are partial alike, over axes that the sum does not hand on, become one. Returns the op to go on with.
  Op *addPartialFirst(Op *op) {
    AxisSet passed = getPassedPartial(*op);
    llvm::SmallVector<llvm::SmallVector<unsigned, 4>, 2> groups;
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      const Value *value = op->getOperand(i);
      // The maximum of a sum is no sum of maxima.
      if (!(value->sharding.partial & ~passed) || value->sharding.reduce != ReduceKind::Sum ||
          op->def->operands[i].indices != op->def->results.front().indices)
        continue;
      auto alike = llvm::find_if(groups, [&](const llvm::SmallVector<unsigned, 4> &group) {
        return op->getOperand(group.front())->sharding == value->sharding;
      });
      if (alike != groups.end())
        alike->push_back(i);
      else
        groups.emplace_back().push_back(i);
    }
    llvm::SmallVector<Value *, 4> operands(op->getOperands().begin(), op->getOperands().end());
    llvm::SmallVector<bool, 4> dropped(operands.size(), false);
    bool any = false;
    for (const auto &group : groups) {
      if (group.size() < 2 || group.size() == operands.size())
        continue;
      any = true;
      const Value *like = operands[group.front()];
      auto sum = std::make_unique<Op>(OpKind::Compute, op->loc);
      sum->def = graph.defs.getSum(like->type.getNumDims(), group.size());
      sum->scope = op->scope;
      sum->isRecomputed = op->isRecomputed;
      sum->extents.assign(like->type.shape.begin(), like->type.shape.end());
      sum->indexAxes.assign(like->sharding.dims.begin(), like->sharding.dims.end());
      for (unsigned i : group)
        sum->addOperand(operands[i]);
      Value *result = sum->addResult(like->type);
      result->sharding = like->sharding;
      operands[group.front()] = result;
      for (unsigned i : llvm::ArrayRef<unsigned>(group).drop_front())
        dropped[i] = true;
      op->getBlock()->insertBefore(op, std::move(sum));
    }
    if (any)
      replaceAddends(*op, operands, dropped);
    return op;
  }

  void replaceAddends(Op &op, llvm::ArrayRef<Value *> operands, llvm::ArrayRef<bool> dropped) {
    OpDef def;
    def.name = op.def->name;
    def.indices = op.def->indices;
    def.results = op.def->results;
    llvm::SmallVector<const Formula *, 4> addends;
    op.clearOperands();
    for (unsigned i = 0; i < operands.size(); ++i) {
      if (dropped[i])
        continue;
      addends.push_back(graph.defs.element(def.operands.size(), op.def->operands[i].indices));
      def.operands.push_back(op.def->operands[i]);
      op.addOperand(operands[i]);
    }
    def.results.front().formula = graph.defs.addUp(addends);
    op.def = graph.defs.add(std::move(def));
  }

  //===--- 3. and 4. operands --------------------------------------------===//

  void provide(Op &op, unsigned operand, Block &block, Forms &forms) {
    Value *value = op.getOperand(operand);
    if (op.kind == OpKind::Repeat || op.kind == OpKind::Yield || op.kind == OpKind::Return ||
        op.kind == OpKind::Update || op.kind == OpKind::Append || op.kind == OpKind::Write ||
        op.kind == OpKind::Compute) {
      Sharding needed = getNeededSharding(op, operand);
      if (isEarlier(*value) && !isSource(*value)) {
        Value *kept = chooseKept(value, needed, value->constraint.gathered);
        if (kept != chooseKept(value, needed, 0))
          keptGathered.insert(value);
        if (kept != value) {
          // Kept complete, a value that was partial asks for less of the op.
          op.setOperand(operand, value = kept);
          needed = getNeededSharding(op, operand);
        }
      }
      if (value->sharding != needed)
        value = getForm(value, needed, op, block, forms);
    }
    if (value != op.getOperand(operand))
      op.setOperand(operand, value);
  }

  Value *getForm(Value *value, const Sharding &needed, Op &user, Block &block, Forms &forms) {
    for (const Form &form : forms[value])
      if (form.value->sharding == needed && encloses(form.block, &block) && !isOfOtherRun(form, *value, user))
        return form.value;
    Value *made = insertReshard(value, needed, block, &user, plans);
    remark(*value, *made, user);
    forms[value].push_back({made, &block, user.isRecomputed});
    return made;
  }

  /// `recompute ... { again = all; }`: gradients gather what an op that runs again has gathered, unless it is kept.
  bool isOfOtherRun(const Form &form, const Value &value, const Op &user) const {
    const Op &gather = *form.value->getOp();
    return gathersAgain && isBackward(phase) && form.isRecomputed != user.isRecomputed &&
           gather.kind == OpKind::AllGather && gather.getOperand(0) == &value &&
           !(value.constraint.gathered & toSet(gather.axes));
  }

  static bool encloses(const Block *outer, const Block *inner) {
    for (; inner; inner = inner->getParent() ? inner->getParent()->getBlock() : nullptr)
      if (inner == outer)
        return true;
    return false;
  }

  /// Kept for this phase. What the step takes of backward are gradient buffers.
  bool isEarlier(const Value &value) const { return value.getBlock()->getPhase() != phase && phase != PhaseKind::Step; }

  /// Parameters, buffers and inputs are there anyway.
  static bool isSource(const Value &value) {
    return value.getOp() && (isState(value.getOp()->kind) || value.getOp()->kind == OpKind::Input);
  }

  /// The form of an earlier phase that this one starts from: not split over `gathered`, then complete rather than
  /// addends, which backward would have to reduce once more, then the smallest.
  Value *chooseKept(Value *value, const Sharding &needed, AxisSet gathered) {
    Value *best = nullptr;
    std::tuple<bool, bool, __int128> bestCost;
    auto offer = [&](Value *form) {
      std::tuple<bool, bool, __int128> cost{(form->sharding.getSharded() & gathered) != 0, form->sharding.partial != 0,
                                            localBytes(*form)};
      if (best && (cost > bestCost || (cost == bestCost && form->sharding != needed)))
        return;
      best = form;
      bestCost = cost;
    };
    offer(value);
    for (const Form &form : formsOf[unsigned(value->getBlock()->getPhase())][value])
      if (form.block == value->getBlock())
        offer(form.value);
    return best;
  }

  /// A rule that says `keep gathered` of what is never gathered would say nothing.
  void checkKeepRules() {
    for (const Rule &rule : graph.rules) {
      AxisSet axes = 0;
      for (AxisId axis : rule.axes)
        if (graph.mesh[axis].size > 1)
          axes |= toSet(axis);
      bool mayBeVain = rule.pattern && rule.pattern->mayLack();
      if (rule.kind != RuleKind::KeepGathered || axes == 0 || !graph.training || mayBeVain)
        continue;
      bool any = llvm::any_of(keptGathered, [&](const Value *value) {
        return (value->constraint.gathered & axes) && (!rule.pattern || matches(*rule.pattern, *value));
      });
      if (!any) {
        std::string names = llvm::join(listAxisNames(graph.mesh, toList(axes)), ", ");
        noteCalls(diags.report(rule.loc, diag::NothingToKeep)
                      << (rule.pattern ? "that '" + rule.pattern->getText() + "' matches" : "of the model") << names,
                  rule);
      }
    }
  }

  static bool matches(const PathPattern &pattern, const Value &value) {
    const Value *made = &value;
    while (made->getOp() && isReshard(made->getOp()->kind))
      made = getMoved(*made);
    const Op *op = made->getOp();
    if (pattern.matchesOps())
      return op && op->def && pattern.matchesOp(op->scope, op->def->name);
    return pattern.matches(value);
  }

  //===--- 5. what computes nothing --------------------------------------===//

  /// `before` is the operand as it was before it was brought to where the op needs it.
  void replaceByOperand(Op &op, Value *before, Block &block, Forms &forms) {
    Value *result = op.getResult(), *form = op.getOperand(0);
    Sharding final = result->sharding;
    final.partial &= form->sharding.partial; // as in separateNatural()
    if (!result->getUses().empty() && form->sharding != final)
      form = getForm(form, final, op, block, forms);
    form->constraint.gathered |= result->constraint.gathered;
    // Backward may start from what forward has of the value under its other name.
    if (!isBackward(phase) && form != before && !before->sharding.partial)
      formsOf[unsigned(phase)][form].push_back({before, &block});
    result->replaceAllUsesWith(form);
    replaced[result] = form;
  }

  void eraseReplaced() {
    if (replaced.empty())
      return;
    auto follow = [&](Value &value) {
      if (Value *form = replaced.lookup(value.primal))
        value.primal = form;
    };
    graph.walk([&](Op &op) {
      for (auto &result : op.getResults())
        follow(*result);
      for (auto &body : op.bodies)
        llvm::for_each(body->getArguments(), [&](auto &argument) { follow(*argument); });
      if (op.origin && op.origin->getNumResults() && replaced.count(op.origin->getResult()))
        op.origin = nullptr;
      for (OrderEdge &edge : op.after)
        if (Value *form = replaced.lookup(edge.value))
          edge.value = form;
    });
    for (auto [result, form] : replaced)
      result->getBlock()->erase(result->getOp());
  }

  /// All users of a result may have taken it as its op makes it.
  void eraseUnused() {
    for (Value *value : llvm::reverse(finals))
      while (value->getUses().empty() && isReshard(value->getOp()->kind)) {
        Value *from = getMoved(*value);
        value->getBlock()->erase(value->getOp());
        value = from;
      }
  }

  __int128 localBytes(const Value &value) { return getCheckedBytes(graph, value.type, value.sharding); }

  /// Accumulators of one parameter with one sharding are one buffer: the step uses it once.
  void mergeBuffers(Block &block) {
    for (auto &op : block) {
      for (auto &body : op->bodies)
        mergeBuffers(*body);
      if (op->kind != OpKind::Update)
        continue;
      llvm::SmallVector<Value *, 4> kept;
      for (Value *buffer : op->getOperands().drop_front())
        if (llvm::none_of(kept, [&](Value *other) { return other->sharding == buffer->sharding; }))
          kept.push_back(buffer);
      Value *param = op->getOperand(0);
      op->clearOperands();
      op->addOperand(param);
      for (Value *buffer : kept)
        op->addOperand(buffer);
    }
  }

  /// Its name, or how it is computed: `layers.rms_norm(layers.x)`; of gradients whose they are.
  static std::string describeMoved(const Value &value, unsigned depth = 3) {
    if (!value.path.empty())
      return value.path;
    if (value.primal)
      return "the gradient of " + describeMoved(*value.primal, depth);
    const Op *op = value.getOp();
    std::string name = describe(value);
    if (!op || !op->getNumOperands() || !depth)
      return name;
    // Of an update or a gradient the first operand says little without the others.
    return name + "(" + describeMoved(*op->getOperand(0), depth - 1) + ")";
  }

  /// `layers.mlp.gate_up`; of what is there without being computed what it is.
  static std::string describeOp(const Op *op) {
    return !op ? "the layer before" : joinPath(op->scope, op->def ? llvm::StringRef(op->def->name) : getName(op->kind));
  }

  void remark(const Value &from, const Value &to, const Op &user) {
    if (!diags.getShowRemarks())
      return;
    // The first step is the op behind `from`; one remark per collective.
    for (const Value *value = &to; value != &from; value = value->getOp()->getOperand(0)) {
      const Op &op = *value->getOp();
      const Value &operand = *op.getOperand(0);
      diags.report(user.loc, diag::ReshardInserted)
          << getName(op.kind) << llvm::join(listAxisNames(graph.mesh, op.axes), ", ") << describeMoved(from)
          << getName(user.getBlock()->getPhase()) << int64_t(localBytes(operand)) << describeOp(from.getOp())
          << describeOp(&user);
    }
  }

  Graph &graph;
  DiagnosticEngine &diags;
  ReshardPlans plans;
  bool gathersAgain = false;                  ///< What is gathered for what runs again is not for gradients.
  std::array<Forms, numPhaseKinds> formsOf;   ///< Per phase.
  PhaseKind phase = PhaseKind::Forward;       ///< The one being visited.
  std::vector<Value *> finals;                ///< What results are brought to for their users.
  llvm::MapVector<Value *, Value *> replaced; ///< Results of ops that compute nothing, and what stands for them.
  llvm::DenseSet<Value *> keptGathered;       ///< Kept in another form than without `keep gathered`.
};
} // namespace

void stage::insertCommunication(Graph &graph, DiagnosticEngine &diags) {
  if (checkSizes(graph, diags))
    CommunicationInserter(graph, diags).run();
}
