//===- BucketUnits.cpp - what a unit gathers and reduces, at once (FSDP) --===//
//
// Problem: frameworks do not move parameter by parameter what partition-state cut, but
// unit by unit: a layer's parameters are gathered in one collective, there until the
// layer has run, and gathered while the layer before computes; its gradients are reduced
// in one collective, beside the backward of the next.
//
//   partition parameters over dp by unit layers[*] { prefetch = 1; }
//
//   repeat layers {                             repeat layers {
//     %w.1 = all_gather(%w) over dp flat          %w.1, %v.1 = all_gather(%w, %v) over dp flat prefetched;
//     %y = linear(%x, %w.1)                ->     %y = linear(%x, %w.1)
//     %v.1 = all_gather(%v) over dp flat          %z = linear(%y, %v.1)
//     %z = linear(%y, %v.1)                       release(%w.1, %v.1)
//
// Algorithm: a parameter is of the unit whose pattern means the longest beginning of its
// path; `gf` and `head`, which `*` means, are one, as nothing else is used between them. In
// each block
//
//   * gathers of parameters of one unit become one, where the first of them stands, and
//     what they bring is released behind the unit's last op; those of units that enclose no
//     other one run ahead;
//   * scattered contributions to gradients become one, where the last of them stands; they
//     are added on a stream of their own, for which no compute waits;
//   * in the step, scattered gradients become one where the first stands, and gathered
//     shards where the last does.
//
// What differs in its axes or its virtual stage is apart; element types may differ. What is kept
// of the last unit (KeepLastUnit.h) is not gathered again.
//
// Limits: a unit that encloses others is gathered when it begins, not ahead. What is taken out
// of flat storage or put there in several steps stays as it is.
//
//===----------------------------------------------------------------------===//
#include "GatherAgain.h"
#include "KeepLastUnit.h"
#include "sharding/MergeCollectives.h"
#include "stage/IR/graph/ParameterUnits.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IR/text/Text.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Passes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"
#include <map>

using namespace stage;

namespace {
class UnitBucketer {
public:
  UnitBucketer(Graph &graph, DiagnosticEngine &diags) : graph(graph), diags(diags) {}

  void run() {
    const Rule *optimizer = nullptr;
    for (const Rule &rule : graph.rules) { // the last one holds
      if (rule.kind == RuleKind::PartitionParameters)
        parameters = &rule;
      else if (rule.kind == RuleKind::PartitionGradients)
        gradients = &rule;
      else if (rule.kind == RuleKind::PartitionOptimizer)
        optimizer = &rule;
    }
    if (parameters && parameters->gathersAll)
      gatherAllAgain(graph, *parameters);
    if (!gradients)
      gradients = parameters;
    step = optimizer ? optimizer : gradients;
    if (llvm::none_of(std::array{parameters, gradients, step},
                      [](const Rule *rule) { return rule && !rule->units.empty(); }))
      return;
    reportUnmatched();
    for (const Rule *rule : {parameters, gradients, step})
      nameUnits(rule);
    graph.walk([&](Op &op) {
      for (const OrderEdge &edge : op.after)
        awaited.insert(edge.value);
    });
    for (Block &phase : graph.getPhases())
      visit(phase);
    if (parameters && keepsLastUnit(*parameters)) {
      llvm::StringMap<std::string> names;
      for (auto &[param, name] : unitNames[parameters])
        names[param->path] = name;
      keepLastUnit(graph, names);
    }
  }

private:
  /// A unit as far as one collective goes: its name, the axes, the virtual stage.
  using Key = std::tuple<std::string, std::vector<AxisId>, unsigned>;
  using Members = std::vector<Op *>;

  void visit(Block &block) {
    numberOps(block);
    if (block.getPhase() != PhaseKind::Step) {
      bucketParameters(block);
      bucketContributions(block);
    } else {
      bucketStep(block);
    }
    for (auto &op : block)
      for (auto &body : op->bodies)
        visit(*body);
  }

  void numberOps(Block &block) {
    position.clear();
    ops.clear();
    for (auto &op : block) {
      position[op.get()] = ops.size();
      ops.push_back(op.get());
    }
  }

  /// The unit of a parameter by its path; nothing if no pattern means it.
  std::optional<std::pair<llvm::StringRef, const PathPattern *>> findUnit(const Rule *rule, const Value &param) {
    if (!rule || rule->units.empty())
      return std::nullopt;
    return units.try_emplace(rule, *rule).first->second.find(param.path);
  }

  /// Parameters that stand beside modules, not in one, are of one unit where one pattern means them and forward uses no
  /// other unit between them, nor a repeat: they get its number for a name. Others are called by the unit's path.
  void nameUnits(const Rule *rule) {
    if (!rule || unitNames.count(rule))
      return;
    auto &names = unitNames[rule];
    Block &forward = graph.getForward();
    numberOps(forward);
    std::vector<std::tuple<unsigned, const Value *, const PathPattern *>> alone; // by first use
    std::vector<unsigned> others;                                                // where other units are used
    graph.walk([&](Op &op) {
      if (op.kind == OpKind::Repeat && op.getBlock() == &forward)
        others.push_back(position[&op]);
      auto unit = op.kind == OpKind::Param ? findUnit(rule, *op.getResult()) : std::nullopt;
      if (!unit)
        return;
      unsigned first = findFirstUse(*op.getResult(), forward);
      names[op.getResult()] = unit->first.str();
      if (unit->first != op.getResult()->path)
        others.push_back(first);
      else if (op.getBlock() == &forward)
        alone.emplace_back(first, op.getResult(), unit->second);
    });
    llvm::sort(others);
    llvm::stable_sort(alone, [](auto &a, auto &b) { return std::get<0>(a) < std::get<0>(b); });
    unsigned run = 0, before = 0;
    const PathPattern *last = nullptr;
    for (auto &[first, param, pattern] : alone) {
      auto other = llvm::lower_bound(others, before);
      if (pattern != last || (other != others.end() && *other <= first))
        ++run;
      names[param] = std::to_string(run);
      last = pattern;
      before = first;
    }
  }

  /// The place in forward of the op around the first one that reads a value, in whatever form.
  unsigned findFirstUse(const Value &value, const Block &forward) {
    unsigned first = ~0u;
    for (auto [user, operand] : value.getUses())
      if (user->getBlock()->getPhase() == PhaseKind::Forward)
        first = std::min(first, isReshard(user->kind) ? findFirstUse(*user->getResult(operand), forward)
                                                      : position[findAnchor(user, forward)]);
    return first;
  }

  /// The collectives of a block that are to be one, per unit. Those that other ops name as what they wait for stay.
  struct Units {
    std::map<Key, Members> members;
    const llvm::DenseSet<const Value *> &awaited;

    void add(const llvm::DenseMap<const Value *, std::string> &names, const Value &param, Op &op) {
      if (auto name = names.find(&param); name != names.end() && !awaited.contains(op.getResult()))
        members[{name->second, std::vector<AxisId>(op.axes.begin(), op.axes.end()), getStage(op)}].push_back(&op);
    }

  private:
    /// An op that several stages of a pipeline run is alone: others may be on some of them.
    unsigned getStage(const Op &op) const {
      bool isCut = op.getBlock()->getGraph().pipeline.axis && !op.getBlock()->getParent();
      return op.virtualStage ? *op.virtualStage : isCut ? ~unsigned(members.size()) : 0;
    }
  };

  /// One op for all, which stands before one of them.
  Op &merge(const Members &members, Op &where) {
    declareBefore(where, members);
    unsigned place = position[&where];
    for (const Op *member : members)
      ops[position[member]] = nullptr;
    Op &merged = mergeCollectives(members, where);
    position[&merged] = place;
    return merged;
  }

  /// What members read that is declared behind an op is declared before it, with all that is declared in between: their
  /// order stays.
  void declareBefore(Op &where, const Members &members) {
    unsigned last = 0;
    for (const Op *member : members)
      if (const Op *maker = member->getOperand(0)->getOp();
          maker->kind == OpKind::Param && maker->getBlock() == where.getBlock())
        last = std::max(last, position[maker]);
    for (unsigned place = position[&where] + 1; place <= last; ++place)
      if (Op *&op = ops[place]; op && (isState(op->kind) || op->kind == OpKind::Input)) {
        where.getBlock()->moveBefore(op, &where);
        position[op] = position[&where];
        op = nullptr;
      }
  }

  //===--- parameters -----------------------------------------------------===//

  struct Gathered {
    Op *gather;
    unsigned begin, end; ///< Places of the first op that reads it, and of the last of its unit.
    Op *first, *last;
  };

  void bucketParameters(Block &block) {
    Units units = {{}, awaited};
    std::vector<unsigned> repeats; // their places
    for (auto &op : block) {
      if (!op->bodies.empty())
        repeats.push_back(position[op.get()]);
      if (isGatherOfState(*op) && op->getNumOperands() == 1)
        units.add(unitNames[parameters], *op->getOperand(0), *op);
    }
    llvm::StringMap<Op *> lastOps; // per unit
    for (auto &[key, members] : units.members)
      lastOps[std::get<0>(key)] = nullptr;
    for (auto &op : block)
      if (op->kind == OpKind::Compute)
        if (auto unit = findUnitOfOp(lastOps, op->scope); unit != lastOps.end())
          unit->second = op.get();
    std::vector<Gathered> spans;
    for (auto &[key, members] : units.members)
      spans.push_back(findSpan(merge(members, *members.front()), block, lastOps[std::get<0>(key)]));
    llvm::sort(spans, [](const Gathered &a, const Gathered &b) { return a.begin < b.begin; });
    for (size_t i = 0; i < spans.size(); ++i) {
      Gathered &span = spans[i];
      if (span.first) // order-operations may have put it further ahead
        block.moveBefore(span.gather, span.first);
      release(span, block);
      auto repeat = llvm::lower_bound(repeats, span.begin);
      bool enclosesOthers =
          (repeat != repeats.end() && *repeat <= span.end) || (i + 1 < spans.size() && spans[i + 1].begin <= span.end);
      if (!parameters->prefetch || enclosesOthers)
        continue;
      graph.prefetch = parameters->prefetch;
      span.gather->isPrefetched = true;
    }
  }

  /// The unit in which an op runs: the innermost.
  static llvm::StringMap<Op *>::iterator findUnitOfOp(llvm::StringMap<Op *> &units, llvm::StringRef scope) {
    for (; !scope.empty(); scope = getScope(scope))
      if (auto unit = units.find(scope); unit != units.end())
        return unit;
    return units.end();
  }

  /// The op of the block that an op is or stands in.
  static Op *findAnchor(Op *op, const Block &block) {
    while (op && op->getBlock() != &block)
      op = op->getBlock()->getParent();
    return op;
  }

  Gathered findSpan(Op &gather, const Block &block, Op *lastOfUnit) {
    Gathered span = {&gather, ~0u, 0, nullptr, nullptr};
    auto extend = [&](Op *op) {
      if (span.last && position[op] < span.end)
        return;
      span.end = position[op];
      span.last = op;
    };
    auto use = [&](Op *user) {
      Op *anchor = user ? findAnchor(user, block) : nullptr;
      if (!anchor)
        return;
      if (!span.first || position[anchor] < span.begin) {
        span.begin = position[anchor];
        span.first = anchor;
      }
      extend(anchor);
    };
    for (auto &result : gather.getResults())
      for (auto [user, operand] : result->getUses())
        use(user);
    if (parameters->gathersAll && !isForward(block.getPhase())) // a module's hooks release behind its gradients
      for (unsigned i = 0; i < gather.getNumOperands(); ++i)
        for (auto [user, operand] : gather.getOperand(i)->getUses())
          if (Op *maker = user->kind == OpKind::Accumulate ? findMaker(*user) : nullptr) {
            if (maker->getBlock() == &block && gather.getResult(i)->getUses().empty())
              maker->after.push_back({gather.getResult(i)});
            use(maker);
          }
    if (lastOfUnit)
      extend(lastOfUnit);
    return span;
  }

  void release(const Gathered &span, Block &block) {
    auto owner = std::make_unique<Op>(OpKind::Release, span.gather->loc);
    owner->scope = span.gather->scope;
    owner->virtualStage = span.gather->virtualStage;
    for (auto &result : span.gather->getResults())
      owner->addOperand(result.get());
    block.insertAfter(span.last ? span.last : span.gather, std::move(owner));
  }

  //===--- gradients ------------------------------------------------------===//

  void bucketContributions(Block &block) {
    for (OpKind kind : {OpKind::ReduceScatter, OpKind::AllReduce}) { // over replicas, what has been scattered
      Units units = {{}, awaited};
      for (auto &op : block)
        if (op->kind == kind && op->getNumOperands() == 1 && !op->getResult()->sharding.flat.empty())
          if (const Op *addition = findAddition(*op->getResult()))
            units.add(unitNames[gradients], *addition->getOperand(1), *op);
      for (auto &[key, members] : units.members) {
        Op &merged = merge(members, *members.back());
        moveUsersBehind(merged);
        for (auto &result : merged.getResults())
          if (Op *user = result->getUses().front().first; user->kind == OpKind::Accumulate)
            user->stream = getAdditions();
      }
    }
  }

  /// What adds a value to a gradient, perhaps once it is reduced over replicas; null if it is used for anything else.
  static const Op *findAddition(const Value &value) {
    if (!llvm::hasSingleElement(value.getUses()))
      return nullptr;
    auto [user, operand] = value.getUses().front();
    return user->kind == OpKind::Accumulate  ? user
           : user->kind == OpKind::AllReduce ? findAddition(*user->getResult(operand))
                                             : nullptr;
  }

  /// The stream for what is added to gradients when it has been reduced.
  const Stream *getAdditions() {
    if (!additions)
      additions = addStream(graph, "additions", StreamKind::Computation);
    return additions;
  }

  //===--- the step -------------------------------------------------------===//

  void bucketStep(Block &block) {
    for (OpKind kind : {OpKind::ReduceScatter, OpKind::AllReduce, OpKind::AllGather}) {
      Units units = {{}, awaited};
      for (auto &op : block)
        if (op->kind == kind && op->getNumOperands() == 1 && llvm::hasSingleElement(op->getResult()->getUses()) &&
            (op->flat || !op->getResult()->sharding.flat.empty()))
          if (const Value *param = findParam(op->getOperand(0), kind))
            units.add(unitNames[step], *param, *op);
      for (auto &[key, members] : units.members)
        if (kind == OpKind::AllGather)
          moveUsersBehind(merge(members, *members.back())); // all are written when all are there
        else
          mergeAtFront(members);
    }
  }

  /// Where the first one stands, with those that read nothing that is made behind it; and so on with the others.
  void mergeAtFront(Members members) {
    while (!members.empty()) {
      Op *front = members.front();
      auto isReady = [&](const Op *member) {
        const Op *maker = member->getOperand(0)->getOp();
        return maker->getBlock() != front->getBlock() || position[maker] < position[front];
      };
      Members rest;
      llvm::copy_if(members, std::back_inserter(rest), [&](const Op *member) { return !isReady(member); });
      llvm::erase_if(members, [&](const Op *member) { return !isReady(member); });
      merge(members, *front);
      members = std::move(rest);
    }
  }

  /// Of a gradient, as it is added up or reduced since, or of an updated shard.
  static const Value *findParam(const Value *value, OpKind kind) {
    while (value->getOp() && kind == OpKind::AllReduce && value->getOp()->kind == OpKind::ReduceScatter)
      value = getMoved(*value);
    const Op *op = value->getOp();
    if (op && kind == OpKind::AllGather && op->kind == OpKind::Update)
      return op->getOperand(0);
    return op && kind != OpKind::AllGather && op->kind == OpKind::Accumulate ? op->getOperand(1) : nullptr;
  }

  /// Those of an op whose results have one user each.
  static void moveUsersBehind(Op &op) {
    for (auto &result : llvm::reverse(op.getResults()))
      op.getBlock()->moveAfter(result->getUses().front().first, &op);
  }

  void reportUnmatched() {
    llvm::SmallPtrSet<const PathPattern *, 8> matched;
    llvm::SmallVector<const Rule *, 3> rules = {parameters, gradients, step};
    rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
    auto cuts = [&](const Rule &rule, llvm::ArrayRef<AxisList> taken) {
      return llvm::any_of(rule.axes, [&](AxisId axis) {
        return graph.mesh[axis].size > 1 &&
               llvm::none_of(taken, [&](const AxisList &of) { return toSet(of) >> axis & 1; });
      });
    };
    graph.walk([&](Op &op) {
      for (const Rule *rule : rules)
        if (rule && op.kind == OpKind::Param && cuts(*rule, op.getResult()->sharding.dims))
          if (auto unit = findUnit(rule, *op.getResult()))
            matched.insert(unit->second);
    });
    for (const Rule *rule : rules)
      for (const PathPattern &pattern : rule ? llvm::makeArrayRef(rule->units) : llvm::ArrayRef<PathPattern>())
        if (!matched.count(&pattern) && cuts(*rule, {}))
          diags.report(rule->loc, diag::UnitWithoutParameters) << pattern.getText() << getName(rule->kind);
  }

  Graph &graph;
  DiagnosticEngine &diags;
  const Rule *parameters = nullptr, *gradients = nullptr, *step = nullptr;
  const Stream *additions = nullptr;
  llvm::DenseMap<const Rule *, ParameterUnits> units;
  llvm::DenseSet<const Value *> awaited; ///< Named by `after`.
  /// Per rule, the unit of each parameter that has one.
  llvm::DenseMap<const Rule *, llvm::DenseMap<const Value *, std::string>> unitNames;
  /// Of the current block, as it was: its ops (null: moved or gone), and where each stood.
  std::vector<Op *> ops;
  llvm::DenseMap<const Op *, unsigned> position;
};
} // namespace

void stage::bucketUnits(Graph &graph, DiagnosticEngine &diags) { UnitBucketer(graph, diags).run(); }
