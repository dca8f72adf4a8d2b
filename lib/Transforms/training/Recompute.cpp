//===- Recompute.cpp - what backward makes again --------------------------===//
//
// Problem: what forward makes and backward uses is kept in between, layer by layer. A
// strategy may rather have it made again when backward needs it:
//
//   recompute **.mlp;
//
//   forward                              backward
//   %n = rms_norm(%h, %g)                %u.1 = linear(%n, %w1) again %u
//   %u = linear(%n, %w1)                 %a.1 = gelu(%u.1) again %a
//   %a = gelu(%u)                        %dw2 = linear.dw(%a.1, %dy)
//   %y = linear(%a, %w2)                 %da = linear.dx(%dy, %w2)
//                                        %du = gelu.grad(%u.1, %da)
//
// %u and %a are kept no more, %n is. %y is not made again: backward does not need it.
//
// Algorithm: rules choose values of forward; each that backward uses is made by a copy of
// its op, on copies of those of its operands that are chosen, too, and on the others as
// they are. A copy stands in the block of backward that belongs to that of its op, the
// body of the same case of the same loop, before the first op that needs it: of a layer's
// values there are those of one layer at a time. Where backward is split, copies stand in
// the half for inputs, and the half for weights reads them there.
//
// `whole`: each module is run again as frameworks do that know its inputs only: all of it,
// before the first op of its gradient that needs any of it; and what ops outside of it
// need of its results is kept.
//
// It comes behind propagate-sharding, so that copies are where forward has computed, and
// before insert-communication, which brings their operands there as it does in forward,
// shares that with what else backward gathers, and keeps the smallest form of what is left
// to keep (law L6).
//
// Cost: linear in ops and uses. Limits: a value that several layers use is made again once
// for all of them. What a pipeline sends is kept where it arrives.
// The inputs of all iterations of a repeat are kept: none is made of that of an earlier one.
//
//===----------------------------------------------------------------------===//
#include "sharding/RuleTargets.h"
#include "stage/IR/graph/Identity.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IR/graph/SavedBytes.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Passes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace stage;

namespace {
/// What rules say of values of forward.
class ChosenValues {
public:
  ChosenValues(Graph &graph, DiagnosticEngine &diags) : graph(graph), diags(diags), targets(graph) {
    for (const Rule &rule : graph.rules)
      if (rule.kind == RuleKind::Recompute)
        choose(rule);
    if (!chosen.empty())
      addOtherNames();
  }

  bool empty() const { return chosen.empty(); }
  /// The rule by which a value is made again; null if it is kept.
  const Rule *getRule(const Value *value) const { return chosen.lookup(value); }
  /// What runs again as a whole with an op; 0 if nothing does.
  unsigned getGroup(const Op *op) const { return groups.lookup(op); }
  unsigned getNumGroups() const { return groupNumbers.size(); }

  /// Whether an op that belongs to `user`, of forward, takes a value as it is made again.
  bool isMadeAgainFor(const Value *value, const Op *user) const {
    const Rule *rule = getRule(value);
    return rule && (!rule->isWhole || (user && getGroup(user) && getGroup(user) == getGroup(value->getOp())));
  }

  /// A statement is a slip that means nothing of what is made again.
  void reportUnused(const llvm::DenseSet<const Value *> &madeAgain) const {
    llvm::DenseSet<unsigned> used;
    for (auto [value, statement] : matches)
      if (madeAgain.contains(value))
        used.insert(statement);
    for (auto &[loc, patterns] : listUnusedStatements(graph, RuleKind::Recompute, used))
      diags.report(loc, diag::NothingToRecompute) << patterns;
  }

private:
  void choose(const Rule &rule) {
    bool any = targets.forEachKept(rule, /*withCarried=*/false,
                                   [&](Value &value, llvm::StringRef module) { chooseValue(value, rule, module); });
    if (!any && !rule.pattern->mayLack())
      targets.reportUnmatched(rule, diags);
  }

  /// The last rule holds.
  void chooseValue(Value &value, const Rule &rule, llvm::StringRef module) {
    matches.push_back({&value, rule.statement});
    chosen[&value] = &rule;
    unsigned &group = groups[value.getOp()];
    group = 0;
    if (rule.isWhole)
      group = groupNumbers.try_emplace({module.str(), value.getBlock()}, groupNumbers.size() + 1).first->second;
  }

  /// A value is chosen under all its names, and what only reads it in another shape is not kept in its place.
  void addOtherNames() {
    std::vector<Op *> views;
    Graph::walk(graph.getForward(), [&](Op &op) {
      if (op.kind == OpKind::Compute && (computesNothing(op) || isView(op)))
        views.push_back(&op);
    });
    auto handOn = [&](Value *from, Value *to) {
      if (!getRule(from) || getRule(to) || !to->getOp() || to->getOp()->kind != OpKind::Compute)
        return;
      chosen[to] = getRule(from);
      matches.push_back({to, getRule(from)->statement});
      groups[to->getOp()] = getGroup(from->getOp());
    };
    for (Op *op : llvm::reverse(views))
      if (computesNothing(*op))
        handOn(op->getResult(), op->getOperand(0));
    for (Op *op : views)
      handOn(op->getOperand(0), op->getResult());
  }

  Graph &graph;
  DiagnosticEngine &diags;
  RuleTargets targets;
  llvm::DenseMap<const Value *, const Rule *> chosen;
  llvm::DenseMap<const Op *, unsigned> groups;
  std::map<std::pair<std::string, const Block *>, unsigned> groupNumbers;
  std::vector<std::pair<const Value *, unsigned>> matches; ///< Of each statement.
};

/// Copies for one backward, or for both of its halves: then `weights` is the one for weights.
class Recomputer {
public:
  Recomputer(Graph &graph, const ChosenValues &chosen, Block &backward, Block *weights)
      : graph(graph), chosen(chosen), backward(backward), weights(weights) {}

  /// Adds the values that backward used and now has made again.
  void run(llvm::DenseSet<const Value *> &madeAgain) {
    numberOps();
    findUses(backward);
    if (weights)
      findUses(*weights);
    if (uses.empty())
      return;
    placeGroups();
    placeOperands();
    makeCopies();
    for (auto [user, operand] : uses) {
      madeAgain.insert(user->getOperand(operand));
      user->setOperand(operand, getCopy(user->getOperand(operand)));
    }
  }

private:
  static constexpr unsigned atEnd = ~0u;

  void numberOps() {
    Graph::walk(backward, [&](Op &op) {
      auto &ops = opsOf[op.getBlock()];
      numbers[&op] = ops.size();
      ops.push_back(&op);
      if (op.kind == OpKind::Repeat)
        repeats[op.loop] = &op;
      if (op.origin)
        firstOfGradient.try_emplace(op.origin, &op);
    });
    Graph::walk(graph.getForward(), [&](Op &op) { forward.push_back(&op); });
  }

  /// The block of backward that belongs to one of forward; null if there is none.
  Block *findBlock(const Op &op) const {
    const Op *loop = op.getBlock()->getParent();
    if (!loop)
      return &backward;
    const Op *repeat = repeats.lookup(loop->loop);
    return repeat ? repeat->bodies[op.getBlock()->getNumber()].get() : nullptr;
  }

  /// The copy of `op` has to stand before `user`, an op of backward or in its place the copy of one of forward.
  void require(const Op &op, unsigned before) {
    auto [place, isNew] = places.try_emplace(&op, before);
    place->second = std::min(place->second, before);
  }

  /// Where an op of backward stands, or the repeat that it stands in, in a block.
  unsigned getPlace(Op *user, const Block *block) const {
    if (&user->getBlock()->getTop() != &backward)
      return atEnd; // of the other half
    return numbers.lookup(user->getBlock() == block ? user : getTopLevelOp(user));
  }

  void findUses(Block &phase) {
    Graph::walk(phase, [&](Op &user) {
      for (unsigned i = 0; i < user.getNumOperands(); ++i) {
        Value *value = user.getOperand(i);
        if (!chosen.isMadeAgainFor(value, user.origin))
          continue;
        const Block *block = findBlock(*value->getOp());
        if (!block)
          continue;
        uses.push_back({&user, i});
        require(*value->getOp(), getPlace(&user, block));
      }
    });
  }

  /// What runs again as a whole stands at one place.
  void placeGroups() {
    std::vector<unsigned> placeOf(chosen.getNumGroups() + 1, atEnd);
    std::vector<bool> runs(placeOf.size(), false);
    for (const Op *op : forward)
      if (unsigned group = chosen.getGroup(op)) {
        auto found = places.find(op);
        runs[group] = runs[group] || found != places.end();
        if (found != places.end())
          placeOf[group] = std::min(placeOf[group], found->second);
      }
    for (const Op *op : forward)
      if (unsigned group = chosen.getGroup(op); group && runs[group] && placeOf[group] == atEnd)
        placeOf[group] = getPlaceOfGradient(*op);
    for (const Op *op : forward)
      if (unsigned group = chosen.getGroup(op); group && runs[group])
        require(*op, placeOf[group]);
  }

  /// What only the half for weights needs is made where the op's gradient is.
  unsigned getPlaceOfGradient(const Op &op) const {
    Op *gradient = firstOfGradient.lookup(&op);
    return gradient && gradient->getBlock() == findBlock(op) ? numbers.lookup(gradient) : atEnd;
  }

  /// From the last op to the first: what a copy takes stands before it.
  void placeOperands() {
    for (const Op *op : llvm::reverse(forward)) {
      auto found = places.find(op);
      if (found == places.end())
        continue;
      if (found->second == atEnd && !chosen.getGroup(op))
        found->second = getPlaceOfGradient(*op);
      unsigned place = found->second;
      const Block *block = findBlock(*op);
      for (const Value *operand : op->getOperands())
        if (chosen.isMadeAgainFor(operand, op)) {
          const Block *outer = findBlock(*operand->getOp());
          require(*operand->getOp(), outer == block ? place : numbers.lookup(block->getParent()));
        }
    }
  }

  void makeCopies() {
    for (const Op *op : forward) {
      auto found = places.find(op);
      if (found == places.end())
        continue;
      auto copy = std::make_unique<Op>(static_cast<const OpAttributes &>(*op));
      copy->origin = op;
      copy->isRecomputed = true;
      for (Value *operand : op->getOperands())
        copy->addOperand(chosen.isMadeAgainFor(operand, op) ? getCopy(operand) : operand);
      for (auto &result : op->getResults()) {
        Value *value = copy->addResult(result->type, result->path);
        value->constraint = result->constraint;
        value->sharding = result->sharding;
        value->loc = result->loc;
      }
      copies[op] = copy.get();
      Block &block = *findBlock(*op);
      if (found->second != atEnd)
        block.insertBefore(opsOf[&block][found->second], std::move(copy));
      else if (Op *yield = block.getTerminator())
        block.insertBefore(yield, std::move(copy));
      else
        block.append(std::move(copy));
    }
  }

  Value *getCopy(const Value *value) const { return copies.lookup(value->getOp())->getResult(value->getNumber()); }

  Graph &graph;
  const ChosenValues &chosen;
  Block &backward, *weights;
  std::vector<const Op *> forward; ///< Its ops, in their order.
  /// Of backward as it was: its ops, by block, and the place of each.
  llvm::DenseMap<const Block *, std::vector<Op *>> opsOf;
  llvm::DenseMap<const Op *, unsigned> numbers;
  llvm::DenseMap<unsigned, const Op *> repeats;
  llvm::DenseMap<const Op *, Op *> firstOfGradient;
  std::vector<std::pair<Op *, unsigned>> uses;
  /// For each op of forward that is made again the place before which its copy stands.
  llvm::DenseMap<const Op *, unsigned> places;
  llvm::DenseMap<const Op *, Op *> copies;
};

} // namespace

/// Bytes that all layers keep of a microbatch on one rank, as they are split so far; nothing where that is not one
/// number.
static std::optional<int64_t> countKept(Graph &graph) {
  Size total = graph.sizes.zero();
  for (const SavedBytes &saved : collectSavedBytes(graph)) {
    Size count = graph.sizes.one();
    if (saved.loop)
      count = saved.caseNumber ? graph.sizes.constant(saved.loop->cases.count(*saved.caseNumber, 0,
                                                                              saved.loop->cases.getNumIterations()))
                               : saved.loop->count;
    total = total + saved.bytes * count;
  }
  SizeValue value = evaluateCount(total, graph.binding);
  return value ? std::optional(int64_t(value.value.num)) : std::nullopt;
}

void stage::recompute(Graph &graph, DiagnosticEngine &diags) {
  auto isRule = [](const Rule &rule) { return rule.kind == RuleKind::Recompute; };
  if (!graph.training || llvm::none_of(graph.rules, isRule))
    return;
  unsigned errors = diags.getNumErrors();
  std::optional<int64_t> before = countKept(graph);
  ChosenValues chosen(graph, diags);
  llvm::DenseSet<const Value *> madeAgain;
  if (Block *whole = graph.findPhase(PhaseKind::Backward))
    Recomputer(graph, chosen, *whole, nullptr).run(madeAgain);
  if (Block *inputs = graph.findPhase(PhaseKind::BackwardInput))
    Recomputer(graph, chosen, *inputs, graph.findPhase(PhaseKind::BackwardWeight)).run(madeAgain);
  if (diags.getNumErrors() == errors)
    chosen.reportUnused(madeAgain);
  if (diags.getNumErrors() != errors)
    return;
  // Of several statements one may keep what another needs: they are judged together.
  std::optional<int64_t> after = countKept(graph);
  if (auto all = listUnusedStatements(graph, RuleKind::Recompute, {}); before && after && *after >= *before)
    diags.report(all.front().first, diag::RecomputeSavesNothing)
        << llvm::join(llvm::make_second_range(all), ", ") << *after << *before;
}
