//===- OffloadActivations.cpp - what is kept on the host for backward -----===//
//
// Problem: what forward keeps for backward fills the device. A strategy may have it copied to the host and back:
//
//   offload layers[*] to host after 1;
//
//   forward                                     backward
//   %u = linear(%h, %w1) after %k [-2]          %u.1 = fetch(%k) stream loads after %dh [-2]
//   %a = gelu(%u)                               %du = gelu.grad(%u.1, %da)
//   %k = offload(%u)                            %dh = linear.dx(%du, %w1)
//
// Algorithm: rules choose values of forward, as those of `recompute` do; each that backward uses, in whatever form
// insert-communication decided to keep, is stored behind the last op of forward that uses it, and loaded before the
// first one of a phase. What only gives it another shape is made again of what is loaded. Copies run beside `after` d
// layers: an iteration of forward begins when those have been stored which the iteration d + 1 before it kept, and what
// an iteration of backward loads may be on its way as soon as the one d + 1 before it has ended. So the device has what
// d + 1 layers keep at most (UnitSimulator counts from and to these edges). Loads have a stream of their own: they do
// not wait for stores of later microbatches.
//
// What stands outside of repeats is copied where it stands.
//
// It comes last: buckets, units and orders are of what is computed and communicated. Cost: linear in ops and uses, and
// in cases of a repeat times those that copy something.
//
//===----------------------------------------------------------------------===//
#include "sharding/MergeCollectives.h"
#include "sharding/RuleTargets.h"
#include "stage/IR/graph/Costs.h"
#include "stage/IR/graph/Rule.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"

using namespace stage;

namespace {
class ActivationOffload {
public:
  ActivationOffload(Graph &graph, DiagnosticEngine &diags) : graph(graph), diags(diags), targets(graph) {}

  void run() {
    unsigned errors = diags.getNumErrors();
    for (const Rule &rule : graph.rules)
      if (rule.kind == RuleKind::Offload)
        choose(rule);
    if (diags.getNumErrors() != errors)
      return;
    for (Block &phase : graph.getPhases())
      if (phase.getPhase() != PhaseKind::Forward && !isOncePerStep(phase.getPhase()))
        findUses(phase);
    llvm::DenseSet<unsigned> used;
    for (auto [value, statement] : matches)
      if (offloaded.contains(value))
        used.insert(statement);
    for (auto &[loc, patterns] : listUnusedStatements(graph, RuleKind::Offload, used))
      diags.report(loc, diag::NothingToOffload) << patterns;
    if (kept.empty())
      return;
    numberOps();
    storeAll();
    loads = getStreamOfLoads(graph);
    for (auto &[place, uses] : kept)
      load(place.first, uses);
  }

private:
  /// An operand of an op of a later phase.
  struct Use {
    Op *user;
    unsigned operand;
  };

  void choose(const Rule &rule) {
    bool any = targets.forEachKept(rule, /*withCarried=*/true, [&](Value &value, llvm::StringRef) {
      matches.push_back({&value, rule.statement});
      chosen[&value] = &rule; // the last rule holds
    });
    if (!any && !rule.pattern->mayLack())
      targets.reportUnmatched(rule, diags);
  }

  static bool isReshaped(const Value &value) {
    return value.getOp() && value.getOp()->kind == OpKind::Compute && isView(*value.getOp());
  }

  /// The chosen value of which this one is a form: in other pieces, or in another shape. Null if nothing is said of it,
  /// and for what is there besides: state, inputs and what is nothing but these.
  Value *findChosen(Value *value) const {
    Value *found = nullptr;
    while (true) {
      if (!found && chosen.count(value))
        found = value;
      const Op *op = value->getOp();
      if (op && (isState(op->kind) || op->kind == OpKind::Input || op->kind == OpKind::Constant))
        return nullptr;
      if (!op || !(isMove(op->kind) || isView(*op)))
        return found;
      value = isMove(op->kind) ? getMoved(*value) : op->getOperand(0);
    }
  }

  void findUses(Block &phase) {
    Graph::walk(phase, [&](Op &user) {
      for (unsigned i = 0; i < user.getNumOperands(); ++i) {
        Value *value = user.getOperand(i);
        if (value->getBlock()->getPhase() != PhaseKind::Forward)
          continue;
        Value *found = findChosen(value);
        if (!found)
          continue;
        offloaded.insert(found);
        while (isReshaped(*value) && value->getOp()->getOperand(0)->getBlock() == value->getBlock())
          value = value->getOp()->getOperand(0);
        rules.try_emplace(value, chosen.lookup(found));
        kept[{value, &phase}].push_back({&user, i});
      }
    });
  }

  void numberOps() {
    Graph::walk(graph.getForward(), [&](Op &op) {
      unsigned &count = numOps[op.getBlock()];
      numbers[&op] = count++;
    });
  }

  /// The op that stands in a block and is `op`, or has it inside.
  static Op *findIn(Op *op, const Block &block) { return op->getBlock() == &block ? op : getTopLevelOp(op); }

  /// The last op of forward that reads a value or a view of it, in its block; null if there is none.
  Op *findLastUser(const Value &value) const {
    Op *last = nullptr;
    llvm::SmallVector<const Value *, 4> names = {&value};
    while (!names.empty())
      for (auto [user, operand] : names.pop_back_val()->getUses()) {
        if (user->getBlock()->getPhase() != PhaseKind::Forward || user->kind == OpKind::Yield ||
            user->kind == OpKind::Return)
          continue;
        Op *here = findIn(user, *value.getBlock());
        if (!last || numbers.lookup(here) > numbers.lookup(last))
          last = here;
        if (isView(*user))
          names.push_back(user->getResult());
      }
    return last;
  }

  static std::unique_ptr<Op> makeCopy(OpKind kind, Value *value, MemorySpace space) {
    const Op *maker = value->getOp();
    auto op = std::make_unique<Op>(kind, value->loc);
    op->addOperand(value);
    TensorType type = value->type;
    type.space = space;
    Value *copy = op->addResult(type, value->path);
    copy->sharding = value->sharding;
    copy->loc = value->loc;
    llvm::StringRef path = value->path;
    op->scope = maker ? maker->scope : path.contains('.') ? path.rsplit('.').first.str() : "";
    return op;
  }

  /// Behind their last uses: in the order in which these stand, so that the last store of a body ends after the others.
  void storeAll() {
    llvm::MapVector<Value *, Op *> values;
    for (auto &[place, uses] : kept)
      values.insert({place.first, nullptr});
    struct LastStore {
      Op *op;
      unsigned place;
    };
    llvm::MapVector<std::pair<Op *, unsigned>, llvm::MapVector<Block *, LastStore>> lastStores; // by repeat and depth
    for (auto &[value, unused] : values) {
      Block &block = *value->getBlock();
      Op *maker = value->getOp(), *user = findLastUser(*value);
      auto copy = makeCopy(OpKind::Offload, value, MemorySpace::Host);
      if (maker)
        copy->virtualStage = maker->virtualStage;
      Op *behind = user ? user : maker;
      unsigned place = behind ? numbers.lookup(behind) + 1 : 0;
      Op *&last = stored[{&block, place}]; // those behind one op in the order of their values
      Op *op = last     ? block.insertAfter(last, std::move(copy))
               : behind ? block.insertAfter(behind, std::move(copy))
                        : block.insertBefore(block.begin()->get(), std::move(copy));
      last = op;
      onHost[value] = op->getResult();
      if (Op *repeat = block.getParent()) {
        LastStore &ofBody =
            lastStores[{repeat, rules.lookup(value)->depth}].insert({&block, {op, place}}).first->second;
        if (place >= ofBody.place)
          ofBody = {op, place};
      }
    }
    for (auto &[key, ofBodies] : lastStores)
      for (auto &body : key.first->bodies)
        if (Op *first = findComputation(*body, /*isLast=*/false))
          for (auto &[block, store] : ofBodies)
            first->after.push_back({store.op->getResult(), key.second + 1, 0});
  }

  /// The first or the last op of a body that runs on the stream for computation; null if there is none.
  Op *findComputation(Block &body, bool isLast) const {
    Op *found = nullptr;
    for (auto &op : body)
      if (op->kind == OpKind::Compute && !op->stream && op->getNumResults() && hasNode(graph, *op)) {
        found = op.get();
        if (!isLast)
          break;
      }
    return found;
  }

  /// The last computation of each body of a repeat.
  llvm::ArrayRef<Op *> getEnds(Op &repeat) {
    auto [known, isNew] = ends.try_emplace(&repeat);
    if (isNew)
      for (auto &body : repeat.bodies)
        if (Op *last = findComputation(*body, /*isLast=*/true))
          known->second.push_back(last);
    return known->second;
  }

  void load(Value *value, llvm::ArrayRef<Use> uses) {
    Op *first = uses.front().user; // in the order of the phase
    Block &block =
        value->getBlock()->getParent() ? *first->getBlock() : const_cast<Block &>(first->getBlock()->getTop());
    first = findIn(first, block);
    Value *onHostValue = onHost.lookup(value);
    auto copy = makeCopy(OpKind::Fetch, onHostValue, MemorySpace::Device);
    copy->stream = loads;
    copy->scope = first->scope;
    if (!block.getParent())
      copy->virtualStage = findStage(uses);
    Op *fetch = block.insertBefore(first, std::move(copy));
    if (Op *repeat = block.getParent())
      for (Op *end : getEnds(*repeat))
        fetch->after.push_back({end->getResult(), rules.lookup(value)->depth + 1, 0});
    llvm::DenseMap<Value *, Value *> forms = {{value, fetch->getResult()}};
    for (const Use &use : uses)
      use.user->setOperand(use.operand, getForm(use.user->getOperand(use.operand), *first, forms));
  }

  /// The virtual stage on which all uses are; none if they are on several, each of which loads it.
  static std::optional<unsigned> findStage(llvm::ArrayRef<Use> uses) {
    std::optional<unsigned> stage = getTopLevelOp(uses.front().user)->virtualStage;
    for (const Use &use : uses)
      if (getTopLevelOp(use.user)->virtualStage != stage)
        return std::nullopt;
    return stage;
  }

  /// A view of what was loaded, as backward reads it.
  Value *getForm(Value *value, Op &before, llvm::DenseMap<Value *, Value *> &forms) {
    if (Value *known = forms.lookup(value))
      return known;
    const Op &view = *value->getOp();
    Value *operand = getForm(view.getOperand(0), before, forms);
    auto copy = std::make_unique<Op>(static_cast<const OpAttributes &>(view));
    copy->origin = &view;
    copy->isRecomputed = true;
    copy->virtualStage = operand->getOp()->virtualStage;
    copy->addOperand(operand);
    Value *result = copy->addResult(value->type, value->path);
    result->sharding = value->sharding;
    result->loc = value->loc;
    before.getBlock()->insertBefore(&before, std::move(copy));
    return forms[value] = result;
  }

  Graph &graph;
  DiagnosticEngine &diags;
  RuleTargets targets;
  const Stream *loads = nullptr;
  llvm::DenseMap<const Value *, const Rule *> chosen;
  std::vector<std::pair<const Value *, unsigned>> matches; ///< Of each statement.
  llvm::DenseSet<const Value *> offloaded;                 ///< Of those that are chosen.
  /// What is copied, with the phase that uses it, in the order of first uses.
  llvm::MapVector<std::pair<Value *, Block *>, std::vector<Use>> kept;
  llvm::DenseMap<const Value *, const Rule *> rules; ///< Of what is copied.
  llvm::DenseMap<const Value *, Value *> onHost;
  /// Of forward as it was: the place of each op in its block.
  llvm::DenseMap<const Op *, unsigned> numbers;
  llvm::DenseMap<const Block *, unsigned> numOps;
  llvm::DenseMap<std::pair<const Block *, unsigned>, Op *> stored;
  llvm::DenseMap<const Op *, llvm::SmallVector<Op *, 1>> ends;
};
} // namespace

void stage::offloadActivations(Graph &graph, DiagnosticEngine &diags) {
  auto isRule = [](const Rule &rule) { return rule.kind == RuleKind::Offload; };
  if (graph.training && llvm::any_of(graph.rules, isRule))
    ActivationOffload(graph, diags).run();
}
