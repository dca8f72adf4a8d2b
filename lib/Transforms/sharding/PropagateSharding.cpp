//===- PropagateSharding.cpp - where every value is (laws L4, L5) ---------===//
//
// Problem: the program and the strategy say where some values are; every op must
// know over which axes its indices are split, every value where its pieces are.
//
//   %n : {B@dp, S@tp, D}   %w : {D, F@tp}
//   %y = linear(%n, %w)       tp is wanted on s and on f; the parameter is stationary,
//                             so f@tp, s whole: %n will be gathered, %y is {B@dp, S, F@tp}
//
// Algorithm, per block:
//   1. Backwards: what users want (WantedShardings.h).
//   2. Forwards: each op collects which axis its operands (and, for gradients of
//      parameters, its result) want on which index, settles conflicts (L5), and so
//      gets `indexAxes`. What the results are naturally follows from those
//      (ShardingRules.h); what they are finally also obeys their constraint. A partial value
//      that some user needs complete is completed for all users.
//
// Conflicts are settled in SettleAxes.cpp.
//
// A folded index is whole unless a rule sends its blocks round (`ring t over cp`): then it has the axes of the rule,
// which stand on another index, too; or unless it is folded in parts (`fold t by p`): then it has the axes of p.
//
//===----------------------------------------------------------------------===//
#include "CheckConstraints.h"
#include "PlaceSlots.h"
#include "SettleAxes.h"
#include "stage/IR/graph/Identity.h"
#include "stage/IR/graph/ShardingRules.h"
#include "stage/IR/text/Text.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/sharding/CheckSizes.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

namespace {
class Propagator {
public:
  Propagator(Graph &graph, DiagnosticEngine &diags)
      : graph(graph), diags(diags), wanted(graph), settler(graph, wanted, diags), slots(graph, wanted, diags) {}

  void run() {
    for (Block &phase : graph.getPhases())
      visitBlock(phase);
    if (!diags.hasErrors())
      graph.obligations.check(graph.binding, diags);
  }

private:
  //===--- Forwards: what ops make ---------------------------------------===//

  void visitBlock(Block &block) {
    wanted.visitBlock(block);
    for (auto &op : block) {
      switch (op->kind) {
      case OpKind::Param:
      case OpKind::Buffer:
      case OpKind::Cache:
      case OpKind::Input:
      case OpKind::Constant:
        op->getResult()->sharding = finish(*op->getResult(), Sharding::replicated(op->getResult()->type.getNumDims()));
        break;
      case OpKind::Compute:
        visitCompute(*op);
        break;
      case OpKind::Repeat:
        visitRepeat(*op);
        break;
      case OpKind::Accumulate:
        op->getResult()->sharding = op->getOperand(0)->sharding;
        break;
      case OpKind::Store:
      case OpKind::Load:
        op->getResult()->sharding = op->getOperand(0)->sharding;
        break;
      case OpKind::Append:
        op->getResult()->sharding = getAppendedSharding(*op);
        break;
      case OpKind::Yield:
      case OpKind::Return:
      case OpKind::Update:
      case OpKind::Write:
        break;
      default:
        llvm_unreachable("communication is inserted later");
      }
    }
  }

  void visitRepeat(Op &op) {
    for (unsigned i = 0; i < op.getNumOperands(); ++i) {
      const Value &argument = *op.bodies.front()->getArgument(i); // the first case decides for all
      // Partial does not cross the boundary of a repeat.
      Sharding sharding = finish(argument, op.getOperand(i)->sharding.withoutPartial()).withoutPartial();
      for (auto &body : op.bodies)
        body->getArgument(i)->sharding = sharding;
      if (i < op.getNumResults())
        op.getResult(i)->sharding = sharding;
    }
    for (auto &body : op.bodies)
      visitBlock(*body);
    llvm::for_each(op.getResults(), [&](auto &result) { wanted.nameApart(graph, *result); });
  }

  void visitCompute(Op &op) {
    const OpDef &def = *op.def;
    op.indexAxes.assign(def.indices.size(), {});
    llvm::SmallVector<bool, 8> fixed(def.indices.size(), false);
    AxisSet taken = fixIndices(op, fixed);
    AxisSet copies = settler.settle(op, fixed, taken);
    for (unsigned index = 0; index < def.indices.size(); ++index)
      if (!def.vjpOf && def.terms.empty() && isOfSomeResults(def, index))
        copies |= toSet(op.indexAxes[index]);
    if (def.getRouting())
      slots.place(op);
    for (unsigned index = 0; index < def.indices.size(); ++index)
      if (std::optional<unsigned> part = def.indices[index].by)
        for (const PlacedAxis &axis : op.indexAxes[*part])
          op.indexAxes[index].emplace_back(axis.id, Layout::Cyclic);
    for (unsigned index = 0; index < def.indices.size(); ++index)
      op.indexAxes[index] = op.indexAxes[def.getCarrier(index)];
    for (unsigned i = 0; i < op.getNumResults(); ++i) {
      Value &result = *op.getResult(i);
      result.sharding = finish(result, getNaturalSharding(op, i));
      completeForUsers(result);
      owe(result.type, result.sharding, result);
    }
    wanted.noteCopies(op, copies);
    remarkAddends(op);
    checkRingRows(graph, op, diags);
    for (unsigned i = 0; i < def.indices.size(); ++i)
      oweDivision(op.extents[i], op.indexAxes[i], op.loc, def.name);
    settler.noteGathers(op);
  }

  /// Says where a product of tensors that are split alike needs neither of them whole.
  void remarkAddends(const Op &op) {
    if (op.origin || !op.def->isProduct)
      return;
    for (unsigned index = 0; index < op.indexAxes.size(); ++index) {
      unsigned having = 0;
      bool areSplitAlike = op.def->reduced[index] && !op.indexAxes[index].empty();
      for (unsigned i = 0; i < op.getNumOperands() && areSplitAlike; ++i)
        for (unsigned d = 0; d < op.getOperand(i)->sharding.dims.size(); ++d)
          if (op.def->operands[i].indices[d] == index) {
            ++having;
            areSplitAlike &= op.getOperand(i)->sharding.dims[d] == op.indexAxes[index];
          }
      if (areSplitAlike && having > 1)
        diags.report(op.loc, diag::AddendsMade)
            << op.def->name << op.def->indices[index].name << describeAxes(op.indexAxes[index]);
    }
  }

  std::string describeAxes(const AxisList &axes) const {
    std::string text;
    for (const PlacedAxis &axis : axes)
      text += (text.empty() ? "'" : ", '") + graph.mesh[axis.id].name + "'";
    return text;
  }

  //===--- Partial values --------------------------------------------------===//

  /// A partial value that an op of its unit needs complete is reduced once, at once, for all of them (L6): what an op
  /// that is linear in it handed on partial would have to be reduced again.
  ///
  ///   h = linear(x, w)     h * h, or 2 * h + silu(h): one all_reduce of h
  ///                        silu(g) * h, where backward needs h complete for the gradient of g: the same
  void completeForUsers(Value &value) {
    if (!value.sharding.partial || value.sharding.reduce != ReduceKind::Sum || value.constraint.partial)
      return;
    const Block &unit = value.getBlock()->getTop();
    llvm::SmallPtrSet<const Op *, 8> seen;
    bool isHandedOn = false;
    AxisSet complete = 0;
    for (auto [user, operand] : value.getUses()) {
      if (user->kind != OpKind::Compute || user->def->isSum)
        continue;
      bool isLinear = user->def->linearIn[operand], isTwice = !seen.insert(user).second;
      bool isLater = &user->getBlock()->getTop() != &unit;
      // The gradient of an op on elements is split as the op is, and what the op makes is as large as what it takes; of
      // other ops reducing that may be cheaper.
      if (isLater && !(user->origin && user->origin->def->isElementwise))
        continue;
      isHandedOn |= isLinear && !isLater;
      if (!isLinear || isTwice) // a product of two partial sums is no partial product
        for (AxisId axis : toList(value.sharding.partial))
          if (!mayCarry(isLater ? *user->origin : *user, axis, value))
            complete |= AxisSet(1) << axis;
    }
    if (isHandedOn)
      value.sharding.partial &= ~complete;
  }

  /// Whether a user may be split over an axis, so that it would take its part of a reduce_scatter.
  bool mayCarry(const Op &user, AxisId axis, const Value &value) {
    for (unsigned index = 0; index < user.def->indices.size(); ++index)
      if (std::optional<AxisList> axes = getDecidedAxes(user, index); axes && llvm::is_contained(*axes, axis))
        return true;
    for (auto &result : user.getResults())
      if (settler.findWantedPlace(*result, axis))
        return true;
    return llvm::any_of(user.getOperands(), [&](const Value *operand) {
      bool isPlaced = operand->sharding.dims.size() == operand->type.getNumDims();
      return operand != &value && (!isPlaced || (operand->sharding.getSharded() >> axis & 1));
    });
  }

  /// Indices that the strategy (`at **.op(): shard i over a`), for a gradient the op of which it is one or, for sums
  /// and ops that reduce nothing, the constraint on the result decides. Returns the axes that are used up.
  AxisSet fixIndices(Op &op, llvm::SmallVectorImpl<bool> &fixed) {
    const OpDef &def = *op.def;
    AxisSet taken = 0;
    if (def.getRouting())
      slots.forEachToken(op, [&](unsigned index, const AxisList &axes) {
        fixed[index] = true;
        op.indexAxes[index] = axes;
        taken |= toSet(axes);
      });
    // The gradient goes round where the op does.
    std::optional<unsigned> ring = op.origin ? op.origin->ring : std::nullopt;
    if (ring && !(*ring < op.indexConstraint.size() && op.indexConstraint[*ring]))
      op.ring = ring;
    auto fix = [&](unsigned index, const AxisList &axes) {
      // Blocks that go round meet other indices that are split over the same axes.
      bool isRing = op.ring == index;
      if (fixed[index] || (!isRing && ((!axes.empty() && !def.shardable[index]) || (toSet(axes) & taken))) ||
          !llvm::all_of(axes, [&](AxisId axis) { return areAddendsOver(op, index, axis); }))
        return;
      fixed[index] = true;
      op.indexAxes[index] = axes;
      if (!isRing)
        taken |= toSet(axes);
    };
    for (unsigned index = 0; index < def.indices.size(); ++index)
      if (def.indices[index].isCompound())
        continue;
      else if (std::optional<AxisList> axes = getDecidedAxes(op, index))
        fix(index, *axes);
    fixMadeIndices(op, fix);
    if (!def.isSum && !reducesNothing(def))
      return taken;
    const Wanted *result = wanted.find(*op.getResult());
    if (!result)
      return taken;
    // Addends that are all partial over an axis are added as they are, and the sum is reduced once.
    AxisSet allPartial = def.isSum ? ~AxisSet(0) : 0;
    for (Value *operand : op.getOperands())
      allPartial &= operand->sharding.partial;
    for (unsigned d = 0; d < result->dims.size(); ++d)
      if (result->dims[d]) {
        unsigned index = def.results.front().indices[d];
        AxisList axes = settler.getAxesOfCarrier(op, index, *result->dims[d]);
        llvm::erase_if(axes, [&](AxisId axis) { return allPartial >> axis & 1; });
        if (def.isSum)
          takeCommonAxes(op, index, axes);
        fix(def.getCarrier(index), axes);
      }
    return taken | result->replicated;
  }

  /// Addends that are all split alike, and more than their sum is wanted, are added in parts: the sum is gathered once,
  /// and not each of them.
  static void takeCommonAxes(const Op &op, unsigned index, AxisList &axes) {
    const AxisList *common = nullptr;
    for (unsigned i = 0; i < op.getNumOperands(); ++i) {
      const auto &indices = op.def->operands[i].indices;
      const auto *found = llvm::find(indices, index);
      const Sharding &sharding = op.getOperand(i)->sharding;
      if (found == indices.end() || sharding.dims.size() != indices.size())
        return;
      const AxisList &own = sharding.dims[found - indices.begin()];
      if (common && *common != own)
        return;
      common = &own;
    }
    bool isMore = common && common->size() > axes.size() && std::equal(axes.begin(), axes.end(), common->begin());
    if (isMore)
      axes = *common;
  }

  /// Indices that no operand has, as the heads that a slice takes of a dim: where a result is wanted in parts, each
  /// rank makes its own. What an operand brings stays where it is. But the parts into which another index is cut stay
  /// where that is: a query is gathered, not the keys.
  void fixMadeIndices(const Op &op, llvm::function_ref<void(unsigned, const AxisList &)> fix) {
    const OpDef &def = *op.def;
    if (def.vjpOf || def.getRouting() || def.opaque)
      return;
    llvm::SmallBitVector isGiven(def.indices.size());
    AxisSet given = 0;
    for (unsigned i = 0; i < op.getNumOperands(); ++i) {
      const OperandInfo &operand = def.operands[i];
      for (unsigned index : def.expand(operand.indices))
        isGiven.set(index);
      for (unsigned d = 0; d < op.getOperand(i)->sharding.dims.size(); ++d)
        if (def.shardable[operand.indices[d]])
          given |= toSet(op.getOperand(i)->sharding.dims[d]);
    }
    for (auto &result : op.getResults())
      for (unsigned d = 0; d < result->type.getNumDims(); ++d) {
        unsigned index = def.results[result->getNumber()].indices[d];
        if (isGiven.test(index) || def.indices[index].isCompound())
          continue;
        const Wanted *demand = wanted.find(*result);
        AxisList axes = demand && demand->dims[d]              ? *demand->dims[d]
                        : d < result->constraint.floors.size() ? result->constraint.floors[d]
                                                               : AxisList();
        bool isPart = llvm::any_of(def.indices, [&](const IndexInfo &info) { return info.by == index; });
        llvm::erase_if(axes, [&](AxisId axis) { return !isPart && given >> axis & 1; });
        if (!axes.empty())
          fix(index, axes);
      }
  }

  /// The natural sharding of a value made to obey what is demanded of it.
  Sharding finish(const Value &value, Sharding sharding) {
    auto remove = [&](AxisSet axes, unsigned exceptDim) {
      sharding.partial &= ~axes;
      for (unsigned d = 0; d < sharding.dims.size(); ++d)
        if (d != exceptDim)
          llvm::erase_if(sharding.dims[d], [&](AxisId axis) { return axes >> axis & 1; });
    };
    const Wanted *found = wanted.find(value);
    std::optional<Wanted> demand = found ? *found : wanted.getOwn(value);
    if (demand && !(demand->bySum && sharding.partial)) {
      for (unsigned d = 0; d < demand->dims.size(); ++d)
        if (demand->dims[d]) {
          remove(toSet(*demand->dims[d]), d);
          sharding.dims[d] = *demand->dims[d];
        }
      remove(demand->replicated, ~0u);
      sharding.partial &= ~demand->notPartial;
    }
    for (unsigned d = 0; d < value.constraint.floors.size(); ++d) {
      const AxisList &floor = value.constraint.floors[d];
      bool exact = demand && d < demand->dims.size() && demand->dims[d];
      if (floor.empty() || exact ||
          (sharding.dims[d].size() >= floor.size() && std::equal(floor.begin(), floor.end(), sharding.dims[d].begin())))
        continue;
      remove(toSet(floor), d);
      AxisList list = floor;
      for (const PlacedAxis &axis : sharding.dims[d])
        if (!llvm::is_contained(list, axis.id))
          list.push_back(axis);
      sharding.dims[d] = list;
    }
    checkPartial(value, sharding);
    owe(value.type, sharding, value);
    return sharding;
  }

  /// A demand for a partial sum where the op does not make one would be ignored.
  void checkPartial(const Value &value, const Sharding &sharding) {
    AxisSet missing = value.constraint.partial.value_or(0) & ~sharding.partial;
    bool isOtherKind = value.constraint.partial.value_or(0) && !missing && value.constraint.reduce != sharding.reduce;
    if ((!missing && !isOtherKind) || !checkedPartial.insert(&value).second)
      return;
    std::string names = llvm::join(listAxisNames(graph.mesh, toList(isOtherKind ? sharding.partial : missing)), ", ");
    const Op *maker = value.getOp();
    std::string source = "what makes it";
    if (maker && maker->def)
      source = computesNothing(*maker) ? describe(*maker->getOperand(0)) : maker->def->name;
    diags.report(value.constraint.loc, diag::NotPartial)
        << describe(value) << getName(value.constraint.reduce) << names << source;
  }

  void owe(const TensorType &type, const Sharding &sharding, const Value &value) {
    for (unsigned d = 0; d < sharding.dims.size(); ++d)
      oweDivision(type.shape[d], sharding.dims[d], value.constraint.loc.isValid() ? value.constraint.loc : value.loc,
                  describe(value));
  }

  /// A sharded extent owes that the axes divide it, twice where they deal it from both ends; said once per extent and
  /// parts. So do the blocks that a table lists, but not what they are blocks of.
  void oweDivision(const Extent &extent, llvm::ArrayRef<PlacedAxis> axes, SMLoc loc, llvm::StringRef where) {
    if (graph.mesh.findUnevenSlots(extent.dim))
      return; // as many as come
    const PlacedAxis *listed = llvm::find_if(axes, [](const PlacedAxis &axis) { return axis.isListed(); });
    if (listed != axes.end()) {
      const BlockLengths &lengths = graph.mesh.getBlockLengths(*listed);
      for (int64_t part = 0; listed + 1 != axes.end() && part < graph.mesh[*listed].size; ++part)
        oweDivision({nullptr, lengths.get(graph.sizes.constant(part))}, axes.drop_front(listed + 1 - axes.begin()), loc,
                    where);
      axes = axes.take_front(listed - axes.begin());
    }
    Size parts = graph.mesh.getGroupSymbol(graph.sizes, axes);
    std::string names;
    for (auto [name, axis] : graph.mesh.nameAxes(axes))
      names += (names.empty() ? "" : ", ") + name.str() +
               (axis.isMirrored() ? " from both ends"
                : axis.isCyclic() ? " in turn"
                                  : "");
    for (const PlacedAxis &axis : axes)
      if (axis.isMirrored())
        parts = parts * 2;
    // What is declared as (H E) is split between whole H.
    const Dim *dim = extent.dim && !extent.dim->parts.empty() ? extent.dim->parts.front() : extent.dim;
    Size size = dim && dim != extent.dim ? dim->size : extent.size;
    if (axes.empty() || !owed.insert({size, parts}).second)
      return;
    graph.obligations.add(Obligations::Kind::Divides, size, parts, loc,
                          llvm::Twine("dim ") + (dim ? dim->name : size.str()) + " of '" + where + "' is split over (" +
                              names + ")");
  }

  Graph &graph;
  DiagnosticEngine &diags;
  WantedShardings wanted;
  AxisSettler settler;
  SlotPlacer slots;
  llvm::DenseSet<std::pair<Size, Size>> owed;
  llvm::DenseSet<const Value *> checkedPartial;
};
} // namespace

void stage::propagateSharding(Graph &graph, DiagnosticEngine &diags) {
  if (checkSizes(graph, diags))
    Propagator(graph, diags).run();
}
