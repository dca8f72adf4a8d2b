//===- Report.cpp - what a step costs, before any trace is written --------===//
//
// Problem: totals over all ranks, exact, for 131,072 ranks in a blink.
//
// Algorithm: every op is costed once (stage/IR/Costs.h) and multiplied by how often a
// stage runs it in a step. A cost that depends on coordinates (causal attention over
// contiguous shards) is summed over the coordinates that it names; the other axes of
// the mesh multiply. All ranks of a stage take part in the same collectives, with the
// same sizes but for dims that are dealt out by a table: of these the bytes are added up as
// expressions over the coordinates, which then say what a rank puts in at least and at most. FLOPs are those of the
// model's own sizes, evaluated exactly even where these do not divide over the axes; padding is the difference, and
// work on slots without a token. Work that ranks duplicate is counted apart:
//
//   y[b, f] = sum[d](x[b, d] * w[d, f])     ranks dp 4 x tp 2, b split over dp: two ranks compute each share of b
//
// The axes over which no index of a cost is split are the copies: the sum over all ranks, divided by their number, is
// the work of the unsharded model, and the rest is duplicated.
//
//===----------------------------------------------------------------------===//
#include "stage/Report/Report.h"
#include "ReportRecords.h"
#include "StageTraffic.h"
#include "Subjects.h"
#include "stage/IR/graph/Channel.h"
#include "stage/IR/graph/Costs.h"
#include "stage/Machine/Traffic.h"
#include "stage/Report/Diagnostics.h"
#include "stage/Walk/StageOps.h"
#include <map>

using namespace stage;

namespace {
/// What one run of an op costs.
struct OpTotals {
  FlopReport flops;           ///< Summed over the ranks of a stage.
  FlopReport paddingFlops;    ///< The part of these that padding adds.
  FlopReport duplicatedFlops; ///< The part of the rest that ranks compute beyond the unsharded model's.
  __int128 bytes = 0;         ///< That one rank puts into a collective, or copies.
  Size varyingBytes;          ///< The same where ranks differ; else null.
  __int128 accessedBytes = 0; ///< Of the memories of the ranks of a stage.
  Size agreedBytes;           ///< Where they do: what all members of the group say.
};

class Reporter {
public:
  Reporter(const Program &program, DiagnosticEngine &diags)
      : program(program), graph(*program.graph), binding(graph.binding), ownBinding(graph.binding),
        subjects(*program.graph), slots(subjects.getSlots()), diags(diags) {}

  Report run() {
    report.program = &program;
    report.ranks = graph.mesh.getNumRanks();
    select(0);
    __int128 padded = countElements(OpKind::Param);
    report.storagePadding =
        sumOver(graph.getForward(), OpKind::Param, [&](const Op &op) { return getStoragePadding(*op.getResult()); });
    binding = ownBinding;
    report.parameters = countElements(OpKind::Param);
    findExperts();
    report.activeParameters = countElements(OpKind::Param);
    experts.clear();
    report.buffers = countElements(OpKind::Buffer);
    binding = graph.binding;
    report.padding = padded - report.parameters;
    for (const StageProgram &stage : program.stages)
      report.stages.push_back(visitStage(stage));
    return std::move(report);
  }

private:
  /// The dims along which tokens are routed.
  void findExperts() {
    graph.walk([&](Op &op) {
      const Routing *routing = op.kind == OpKind::Compute ? op.def->getRouting() : nullptr;
      if (!routing || op.def->vjpOf || !routing->toSlots)
        return;
      // Indices of the tokens that no operand but the one that routes has: a token's experts.
      Size perToken = graph.sizes.one();
      for (unsigned index : routing->tokens)
        if (llvm::none_of(op.def->operands, [&](const OperandInfo &operand) {
              return &operand != &op.def->operands[routing->operand] &&
                     llvm::is_contained(op.def->expand(operand.indices), index);
            }))
          perToken = perToken * op.extents[index].size;
      const Extent &target = op.extents[routing->target];
      if (!target.dim)
        return;
      if (routing->isOnce) { // so many as find a slot
        Size tokens = graph.sizes.one();
        for (unsigned index : routing->tokens)
          tokens = tokens * op.extents[index].size;
        perToken = perToken * target.size * op.extents[routing->slot].size / tokens;
      }
      // What goes along with a token, as weights of choices do, has the indices of its choices.
      auto [it, isNew] = experts.try_emplace(target.dim, perToken / target.size);
      if (!isNew && !routing->isOnce && getInteger(perToken, op) > getInteger(it->second * target.size, op))
        it->second = perToken / target.size;
    });
  }

  /// A sum over all parameters, or all buffers, those of a repeat as often as it runs.
  __int128 sumOver(const Block &block, OpKind kind, llvm::function_ref<__int128(const Op &)> get, __int128 copies = 1) {
    __int128 sum = 0;
    for (auto &op : block) {
      if (op->kind == kind)
        sum += copies * get(*op);
      for (auto &body : op->bodies)
        sum += sumOver(*body, kind, get,
                       copies * op->cases.count(body->getNumber(), 0, int64_t(getInteger(op->count, *op))));
    }
    return sum;
  }

  /// Elements of all of them; of what `experts` have, those that work on one token.
  __int128 countElements(OpKind kind) {
    return sumOver(graph.getForward(), kind, [&](const Op &op) {
      Size size = getLocalElements(*op.getResult(), /*global=*/true);
      for (const Extent &extent : op.getResult()->type.shape)
        if (auto it = experts.find(extent.dim); it != experts.end())
          size = size * it->second;
      // Slots that are rounded up make no whole number of it.
      SizeValue value = evaluate(size, binding);
      return value ? value.value.ceil().num : getInteger(size, op);
    });
  }

  /// The form in which a parameter, or at least what the optimizer keeps for it, is stored.
  static const Sharding &getStorage(const Value &param) {
    for (auto [user, operand] : param.getUses())
      if (user->kind == OpKind::Update && operand == 0)
        return user->getOperand(1)->sharding;
    return param.sharding;
  }

  /// Elements that flat storage adds to all parts of a parameter together, so that these are equally large.
  __int128 getStoragePadding(const Value &param) {
    Sharding storage = getStorage(param);
    auto count = [&] {
      return getInteger(stage::getLocalElements(graph.sizes, graph.mesh, param.type, storage, /*over=*/~AxisSet(0)),
                        *param.getOp());
    };
    __int128 stored = count() * __int128(graph.mesh.getGroupSize(toSet(storage.flat)));
    storage.flat.clear();
    return graph.mesh.getGroupSize(storage.getSharded()) * (stored - count());
  }

  Size getLocalElements(const Value &value, bool global) const {
    return stage::getLocalElements(graph.sizes, graph.mesh, value.type, global ? Sharding() : value.sharding,
                                   /*over=*/~AxisSet(0));
  }

  StageReport visitStage(const StageProgram &stage) {
    StageReport result;
    result.stage = stage.stage;
    auto count = [&](OpKind kind) {
      __int128 elements = 0;
      for (auto [value, copies] : collectState(graph, stage, kind))
        elements += copies * getInteger(getLocalElements(*value, /*global=*/false), *value->getOp());
      return elements;
    };
    result.parameters = count(OpKind::Param);
    result.buffers = count(OpKind::Buffer);

    // Of a template: how many of its units are in each environment with other sizes.
    llvm::MapVector<const UnitTemplate *, std::map<unsigned, int64_t>> invocations;
    for (const Unit &unit : stage.units)
      ++invocations[stage.find(unit.kind, unit.chunk)][graph.pipeline.environments.getAlike(unit.environment)];
    for (auto &[unit, environments] : invocations) {
      // What costs the same in all of them is visited once.
      int64_t all = 0;
      for (auto [environment, times] : environments)
        all += times;
      select(environments.begin()->first);
      using UnitCost = StageReport::UnitCost;
      auto visit = [&](int64_t times, bool varying) {
        UnitCost before = {result.flops, result.accessedBytes, {}};
        unitTraffic = StageTraffic();
        visitItems(*unit, times, varying, result);
        traffic.add(unitTraffic, times);
        return UnitCost{
            (result.flops - before.flops) / times, (result.accessedBytes - before.accessedBytes) / times, {}};
      };
      UnitCost same = visit(all, /*varying=*/false);
      StageTraffic sameTraffic = unitTraffic;
      for (auto [environment, times] : environments) {
        select(environment);
        UnitCost own = visit(times, /*varying=*/true);
        unitTraffic.add(sameTraffic, /*times=*/1, environment);
        UnitCost &cost = result.unitCosts[{unit->kind, unit->chunk, environment}];
        cost = {same.flops + own.flops, same.accessedBytes + own.accessedBytes, {}};
        if (!graph.training)
          cost.traffic = unitTraffic.measure(graph, diags);
      }
    }
    result.traffic = traffic.measure(graph, diags);
    traffic = StageTraffic();
    addExpertFlops(result);
    return result;
  }

  /// What is done on the slots of experts, where ranks have different numbers of them.
  void addExpertFlops(StageReport &stage) {
    if (!expertFlops.empty()) {
      Spread spread = measureSpread(graph, expertFlops, "experts", diags);
      stage.expertFlops = spread.sum;
      stage.mostExpertFlops = spread.most;
    }
    expertFlops.clear();
  }

  /// Where ranks differ, in what they put in or from one group to the other in what they agree upon; else null.
  Size findVarying(Size bytes, Size agreed) const {
    bool varies = graph.mesh.isUneven() && (getCoordinateAxes(graph.mesh, bytes) || agreed != bytes);
    return varies ? bytes : Size();
  }

  /// Sizes are those of the units of an environment from here on.
  void select(unsigned number) {
    if (number == environment)
      return;
    if (environment == ~0u)
      binding = ownBinding = graph.binding;
    environment = number;
    // Of one environment all stages ask again, of a hundred thousand a server's nobody can remember all.
    constexpr size_t maxKnown = 1 << 15;
    if (known.size() > maxKnown)
      known.clear();
    sums.clear();
    ownSums.clear();
    graph.select(binding, number);
    graph.select(ownBinding, number);
    for (auto &[symbol, value] : graph.unpadded)
      ownBinding.bind(symbol, value);
  }

  /// What may cost more in one environment than in another, or what does not.
  void visitItems(const UnitTemplate &unit, int64_t invocations, bool varying, StageReport &stage) {
    forEachOp(unit.items, [&](Op &op, int64_t times) {
      if (varies(op) == varying)
        addOp(op, times, invocations, stage);
    });
    for (const ProgramItem &item : unit.items) {
      if (item.kind != ProgramItem::Kind::Send || item.isLocal)
        continue;
      if (llvm::any_of(item.values, [&](const Value *value) { return varies(*value); }) != varying)
        continue;
      if (item.channel) {
        addTransfer(*item.channel, unit.kind);
        continue;
      }
      AxisId axis = *graph.pipeline.axis;
      for (const Value *value : item.values) {
        TrafficReport sends = describeSend(*value, unit.kind);
        sends.axes = {PlacedAxis(axis)};
        sends.axisNames = {graph.mesh[axis].name};
        const auto &[bytes, varyingBytes] = getSentBytes(*value);
        unitTraffic.add(sends, {1, bytes, bytes, varyingBytes, varyingBytes, environment}, 1);
      }
    }
  }

  bool varies(const Op &op) {
    if (graph.pipeline.environments.getSymbols().empty())
      return false;
    auto [it, isNew] = varyingOps.try_emplace(&op, false);
    if (isNew) {
      OpCost cost = getLocalCost(graph, op);
      std::optional<SlotShare> share = slots.getRouted(op);
      if (const SlotShare *used = slots.find(op); used && !share)
        share = *used;
      Size none = graph.sizes.zero();
      Size slotsOf = share ? share->slots : none, choicesOf = share && share->choices ? share->choices : none;
      varyingOps[&op] = (share && share->load) ||
                        llvm::any_of(llvm::ArrayRef<Size>{cost.flops.contraction, cost.flops.attention,
                                                          cost.flops.other, cost.recomputeFlops, cost.bytes,
                                                          cost.ownBytes ? cost.ownBytes : none, slotsOf, choicesOf},
                                     [&](Size size) { return graph.variesByUnit(size); });
    }
    return varyingOps[&op];
  }
  bool varies(const Value &value) const {
    return graph.variesByUnit(getLocalBytes(graph.sizes, graph.mesh, value.type, value.sharding));
  }

  TrafficReport describeSend(const Value &value, PhaseKind phase) const {
    TrafficReport sends;
    sends.isSend = true;
    describeSubject(sends, value, phase);
    return sends;
  }

  void describeSubject(TrafficReport &traffic, const Value &value, PhaseKind phase) const {
    traffic.subject = subjects.find(value);
    traffic.phase = isBackward(phase) ? PhaseKind::Backward : phase;
    traffic.phaseName = describePhase(graph, phase);
    traffic.types = describeTypes(&value);
  }

  /// Some ranks of a stage may send more messages than others.
  void addTransfer(const Channel &channel, PhaseKind phase) {
    TrafficReport sends = describeSend(*channel.output, phase);
    sends.toPart = channel.exchange->to;
    auto [most, fewest] = channel.exchange->countMessages();
    unitTraffic.add(sends,
                    {most, __int128(most) * channel.bytes, __int128(fewest) * channel.bytes, {}, {}, environment}, 1);
  }

  /// An op that a unit runs so many times, and so many units do.
  void addOp(const Op &op, int64_t timesInUnit, int64_t invocations, StageReport &stage) {
    __int128 times = __int128(timesInUnit) * invocations;
    const OpTotals &totals = getTotals(op);
    countSlots(op, times);
    if (const SlotShare *share = slots.find(op);
        share && share->load && share->load->isDropless && !op.def->getRouting()) {
      OpCost cost = getLocalCost(graph, op);
      addTo(expertFlops, environment, cost.flops.getTotal() + cost.recomputeFlops, int64_t(times));
    }
    report.flops.add(totals.flops, times);
    report.flops.add(totals.paddingFlops, -times);
    report.paddingFlops.add(totals.paddingFlops, times);
    report.flops.add(totals.duplicatedFlops, -times);
    report.duplicatedFlops.add(totals.duplicatedFlops, times);
    addRepeatedUpdates(op, times);
    stage.flops += times * totals.flops.getTotal();
    stage.accessedBytes += times * totals.accessedBytes;
    if (isCopy(op.kind))
      addCopy(op.kind, times, times * totals.bytes, stage);
    if (!isCommunication(op.kind))
      return;
    TrafficReport kind = describeGroup(op);
    llvm::ArrayRef<unsigned> stages = op.getGroupStages(stage.stage);
    kind.stages.assign(stages.begin(), stages.end());
    if (!op.stages.empty())
      kind.groupSize = kind.groupSize / program.numStages * stages.size();
    unitTraffic.add(kind, {1, totals.bytes, totals.bytes, totals.varyingBytes, totals.agreedBytes, environment},
                    timesInUnit);
  }

  /// Of an op that communicates all that does not depend on the stage.
  const TrafficReport &describeGroup(const Op &op) {
    auto [it, isNew] = groups.try_emplace(&op);
    TrafficReport &kind = it->second;
    if (!isNew)
      return kind;
    kind.kind = op.kind;
    kind.groupSize = graph.mesh.getGroupSize(toSet(op.axes));
    for (AxisId axis : op.axes) // in whatever layout
      kind.axes.emplace_back(axis);
    kind.axisNames = subjects.listAxisNames(op);
    describeSubject(kind, *op.getOperand(0), op.getBlock()->getPhase());
    kind.types = describeTypes(op);
    return kind;
  }

  /// Several stages may update the same parameter: a tied one, or layers of which they have copies. All updates but one
  /// are duplicated.
  void addRepeatedUpdates(const Op &op, __int128 times) {
    if (!isOncePerStep(op.getBlock()->getPhase()))
      return;
    __int128 once = 1;
    for (const Block *block = op.getBlock(); const Op *repeat = block->getParent(); block = repeat->getBlock())
      once *= repeat->cases.count(block->getNumber(), 0, int64_t(getInteger(repeat->count, *repeat)));
    __int128 &runs = runsOfStep[&op];
    __int128 copies = std::min(times, std::max<__int128>(runs + times - once, 0));
    runs += times;
    FlopReport own = getTotals(op).flops;
    own.add(getTotals(op).paddingFlops, -1);
    own.add(getTotals(op).duplicatedFlops, -1);
    report.flops.add(own, -copies);
    report.duplicatedFlops.add(own, copies);
  }

  /// How many slots forward fills.
  void countSlots(const Op &op, __int128 times) {
    std::optional<SlotShare> routed = slots.getRouted(op);
    if (!routed || op.isRecomputed)
      return;
    __int128 choices = getInteger(routed->choices, op), all = getInteger(routed->slots, op);
    std::optional<Rational> filled = routed->countFilled(binding);
    if (!filled || !filled->isInteger())
      return reportNoValue(routed->slots, op);
    report.slots += times * all;
    report.emptySlots += times * (all - filled->num);
    if (!op.def->routing->isOnce)
      report.droppedChoices += times * (choices - filled->num);
  }

  /// Leaves in place of what is done on all slots what is done on those with a token.
  void leaveFilled(FlopReport &flops, const Op &op, SizeBinding &binding) {
    const SlotShare *share = slots.find(op);
    if (!share)
      return;
    SizeValue all = evaluate(share->slots, binding);
    // How many a load fills depends on how many there are on each rank, padded as they are.
    std::optional<Rational> filled = share->countFilled(share->load ? this->binding : binding);
    if (!filled || !all || filled->compare(all.value) >= 0 || !filled->isInteger() || !all.value.isInteger())
      return;
    for (__int128 *number : {&flops.contraction, &flops.attention, &flops.other, &flops.recompute})
      *number = *number / all.value.num * filled->num + *number % all.value.num * filled->num / all.value.num;
  }

  static void addCopy(OpKind kind, __int128 count, __int128 bytes, StageReport &stage) {
    auto known = llvm::find_if(stage.copies, [&](const CopyReport &copy) { return copy.kind == kind; });
    CopyReport &copy = known == stage.copies.end() ? stage.copies.emplace_back() : *known;
    copy.kind = kind;
    copy.count += count;
    copy.bytes += bytes;
  }

  const OpTotals &getTotals(const Op &op) {
    auto [it, isNew] = known.try_emplace({&op, environment});
    if (isNew) {
      OpCost cost = getLocalCost(graph, op);
      it->second.flops = sumFlops(cost, op, binding, sums);
      FlopReport own = graph.unpadded.empty() ? it->second.flops : sumFlops(cost, op, ownBinding, ownSums);
      leaveFilled(own, op, ownBinding);
      it->second.paddingFlops = it->second.flops;
      it->second.paddingFlops.add(own, -1);
      it->second.duplicatedFlops = own;
      it->second.duplicatedFlops.add(countOnce(op, own), -1);
      if (isCopy(op.kind))
        it->second.bytes = getInteger(cost.bytes, op);
      if (!isCommunication(op.kind)) {
        if (!isCopy(op.kind) && !graph.training)
          it->second.accessedBytes = sumOverStage(cost.bytes, op, binding);
        return it->second;
      }
      it->second.varyingBytes = findVarying(cost.ownBytes, cost.bytes);
      it->second.agreedBytes = cost.bytes;
      if (!it->second.varyingBytes)
        it->second.bytes = getInteger(cost.ownBytes, op);
    }
    return it->second;
  }

  /// Axes over which ranks share the work along an index: not those of which each does all parts, in one step or
  /// another.
  static AxisSet getSplitAxes(const Op &op, unsigned index) {
    AxisSet inTurn = op.turns && op.turns->index == index ? op.turns->axes : 0;
    return toSet(op.indexAxes[index]) & ~inTurn;
  }

  /// Axes over which ranks share the work of an op: all others have copies of it, or each an addend as large as the
  /// sum.
  static AxisSet getSplitAxes(const Op &op) {
    if (op.kind == OpKind::Update) // element by element, as its gradient is kept
      return op.getOperand(1)->sharding.getSharded();
    if (isAddition(op.kind))
      return op.getOperand(0)->sharding.getSharded();
    AxisSet split = 0;
    for (unsigned index = 0; index < op.indexAxes.size(); ++index)
      split |= getSplitAxes(op, index);
    return split;
  }

  /// The work of the unsharded model among the FLOPs of an op on the ranks of a stage, padding apart.
  FlopReport countOnce(const Op &op, const FlopReport &own) {
    if (std::optional<FlopReport> once = countTermsOnce(op, own))
      return *once;
    return divide(own, countAlike(graph, getSplitAxes(op)));
  }

  /// Term by term of the formula, as one may be split over axes along which another one has copies: several products at
  /// once, or a bias beside a product. Nothing where the cost is declared, or depends on the step of a ring.
  std::optional<FlopReport> countTermsOnce(const Op &op, const FlopReport &own) {
    if (op.kind != OpKind::Compute || op.def->flopTerms.size() < 2 || own.getTotal() == 0)
      return std::nullopt;
    llvm::SmallVector<Size, 8> sizes = getLocalIndexSizes(graph, op);
    const OpDef &def = op.def->vjpOf ? *op.def->vjpOf : *op.def;
    FlopReport all, once;
    for (const FlopTerm &term : op.def->flopTerms) {
      AxisSet split = 0;
      for (unsigned index : term.indices)
        split |= getSplitAxes(op, index);
      Size zero = graph.sizes.zero();
      OpCost cost = {{zero, zero, zero}, zero, zero};
      (op.isRecomputed ? cost.recomputeFlops : cost.flops[def.declaredClass.value_or(term.flopClass)]) =
          getFlops(graph.sizes, term, sizes);
      FlopReport ofTerm = sumFlops(cost, op, ownBinding, ownSums);
      leaveFilled(ofTerm, op, ownBinding);
      all.add(ofTerm, 1);
      once.add(divide(ofTerm, countAlike(graph, split)), 1);
    }
    bool isCost = all.contraction == own.contraction && all.attention == own.attention && all.other == own.other &&
                  all.recompute == own.recompute;
    return isCost ? std::optional<FlopReport>(once) : std::nullopt;
  }

  static FlopReport divide(FlopReport flops, int64_t divisor) {
    for (__int128 *number : {&flops.contraction, &flops.attention, &flops.other, &flops.recompute})
      *number /= divisor;
    return flops;
  }

  const std::pair<__int128, Size> &getSentBytes(const Value &value) {
    auto [it, isNew] = sentBytes.try_emplace({&value, environment}, 0, Size());
    if (isNew) {
      Size bytes = getLocalBytes(graph.sizes, graph.mesh, value.type, value.sharding);
      it->second.second = findVarying(bytes, bytes);
      if (!it->second.second)
        it->second.first = getInteger(bytes, value.loc, [&] { return describe(value); });
    }
    return it->second;
  }

  /// Sums of sizes over the ranks of one stage, for one of the bindings.
  using Sums = llvm::DenseMap<Size, __int128>;

  FlopReport sumFlops(const OpCost &cost, const Op &op, SizeBinding &binding, Sums &sums) {
    auto sum = [&](Size size) -> __int128 {
      if (size.isConstant(0))
        return 0;
      // Many ops cost the same: the gradients of the operands of a product, the ops of a layer that are alike.
      auto found = sums.find(size);
      if (found != sums.end())
        return found->second;
      unsigned errorsBefore = diags.getNumErrors();
      __int128 result = sumOverStage(size, op, binding);
      if (diags.getNumErrors() == errorsBefore)
        sums[size] = result;
      return result;
    };
    FlopReport flops;
    flops.contraction = sum(cost.flops.contraction);
    flops.attention = sum(cost.flops.attention);
    flops.other = sum(cost.flops.other);
    flops.recompute = sum(cost.recomputeFlops);
    return flops;
  }

  /// Sum of a cost over the ranks of one stage. Coordinates have a value in `binding` while it is found.
  __int128 sumOverStage(Size cost, const Op &op, SizeBinding &binding) {
    std::optional<Rational> all = sumOverRanks(graph, cost, binding);
    if (!all || !all->isInteger() || all->num < 0) {
      reportNoValue(cost, op);
      return 0;
    }
    return all->num;
  }

  /// 0 after a report.
  __int128 getInteger(Size size, SMLoc loc, llvm::function_ref<std::string()> describe) {
    SizeValue value = evaluate(size, binding);
    if (value && value.value.isInteger() && value.value.num >= 0)
      return value.value.num;
    diags.report(loc, diag::NoCost) << describe() << size.str();
    return 0;
  }
  __int128 getInteger(Size size, const Op &op) {
    return getInteger(size, op.loc, [&] { return describeOp(op); });
  }

  static std::string describeOp(const Op &op) {
    return op.getNumResults() ? describe(*op.getResult()) : getName(op.kind).str();
  }
  void reportNoValue(Size size, const Op &op) { diags.report(op.loc, diag::NoCost) << describeOp(op) << size.str(); }

  const Program &program;
  Graph &graph;
  llvm::DenseMap<const Dim *, Size>
      experts;            ///< The share of the parameters with this dim that one token uses; while these are counted.
  SizeBinding binding;    ///< The padded one, but while parameters are counted.
  SizeBinding ownBinding; ///< With the model's own sizes.
  Subjects subjects;
  const SlotShares &slots;
  DiagnosticEngine &diags;
  Report report;
  unsigned environment = ~0u;
  llvm::DenseMap<std::pair<const Op *, unsigned>, OpTotals> known; ///< Per environment; the latest ones.
  llvm::DenseMap<const Op *, bool> varyingOps;
  llvm::DenseMap<const Op *, __int128> runsOfStep; ///< On the stages so far.
  Sums sums, ownSums;                              ///< With `binding` and with `ownBinding`.
  llvm::DenseMap<std::pair<const Value *, unsigned>, std::pair<__int128, Size>> sentBytes;
  llvm::DenseMap<const Op *, TrafficReport> groups;
  StageTraffic traffic;           ///< Of the stage.
  StageTraffic unitTraffic;       ///< Of the unit that is visited.
  SizesByEnvironment expertFlops; ///< Of the stage: of a rank.
};
} // namespace

llvm::StringRef stage::describeOperation(const TrafficReport &traffic) {
  return traffic.isSend ? "send" : getName(traffic.kind);
}

__int128 TrafficReport::getMoved() const {
  return (isSend ? Traffic() : stage::getTraffic(getCollectiveKind(kind), groupSize)).roundUp(bytes);
}

const StageMemory &Report::getLargestStage() const {
  return *std::max_element(memory.stages.begin(), memory.stages.end(), [](const StageMemory &a, const StageMemory &b) {
    return a.peak.getTotal() < b.peak.getTotal();
  });
}

Report stage::makeReport(const Program &program, MemoryReport memory, DiagnosticEngine &diags) {
  Report report = Reporter(program, diags).run();
  report.memory = std::move(memory);
  if (!program.graph->training)
    addPhases(report, diags);
  return report;
}
