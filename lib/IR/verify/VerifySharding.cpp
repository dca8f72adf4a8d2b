//===- VerifySharding.cpp - where the pieces of values are ----------------===//
//
// Problem: a wrong sharding makes a trace that looks right. A reshard is checked by
// computing, from the operand's sharding, the one sharding the result can have:
//
//   all_gather over A dim d       d ends in A              ->  without A
//   all_reduce over A             partial over A           ->  not partial over A
//   reduce_scatter over A dim d   partial over A           ->  d, then A
//   all_to_all over A dim d to e  d ends in A, any order   ->  d without A; e, then A
//     dim (d, f) to e             each ends in a part of A ->  both without; e, then A
//     dim d to d                  d ends in A, laid out otherwise  ->  d without A, then A
//   permute over a by k           a on a dim, rotated r      ->  rotated r - k
//                                 partial over a             ->  the same
//   slice over A dim d            A neither on d nor partial  ->  d, then A
//   join over A dim d             d of each ends in A, in every rotation once  ->  without A
//
// A slice over what another dim has makes a piece (Sharding::getTwice), which products take and make.
//
// With `flat` in place of a dim, all_gather, reduce_scatter and slice do the same to the
// axes of flat storage. Dims cannot be resharded while there are any.
//
// A sharding speaks of one pipeline stage. An all_reduce that is restricted to stages
// sums over what several of them hold of a tied parameter, and changes no sharding.
//
// Gathering an outer axis and keeping an inner one would leave pieces that are not
// contiguous; that is no sharding, hence "ends in".
//
//===----------------------------------------------------------------------===//
#include "VerifierContext.h"
#include "stage/IR/Diagnostics.h"
#include "stage/IR/graph/ShardingRules.h"
#include <set>

using namespace stage;

/// A whole scalar has no text of its own.
static std::string describe(const VerifierContext &context, const Sharding &sharding) {
  std::string text = context.text(sharding);
  return text.empty() ? "replicated" : text;
}

namespace {
/// Collects the axes of one value or op and says what is wrong with them.
class AxisChecker {
public:
  /// Of a piece, an axis may stand in two lists.
  explicit AxisChecker(const Mesh &mesh, bool isOfPiece = false) : mesh(mesh), isOfPiece(isOfPiece) {}

  void add(llvm::ArrayRef<PlacedAxis> axes) {
    AxisSet before = seen;
    for (PlacedAxis axis : axes) {
      if (!fault.empty())
        return;
      if (axis >= mesh.getAxes().size())
        fault = ("axis number " + llvm::Twine(unsigned(axis.id)) + " is none of the mesh").str();
      else if (mesh[axis].size == 1)
        fault = "axis '" + mesh[axis].name + "' has size 1";
      else if ((seen >> axis & 1) && !(isOfPiece && (before & ~twice) >> axis & 1))
        fault =
            "axis '" + mesh[axis].name + "' stands in " + (isOfPiece ? "three places, or twice in one" : "two places");
      else if (axis.rotation >= mesh[axis].size)
        fault = ("axis '" + mesh[axis].name + "' of size " + llvm::Twine(mesh[axis].size) + " is rotated by " +
                 llvm::Twine(axis.rotation))
                    .str();
      else
        (seen >> axis & 1 ? twice : seen) |= toSet(axis);
    }
  }
  llvm::StringRef getFault() const { return fault; }

private:
  const Mesh &mesh;
  bool isOfPiece;
  AxisSet seen = 0, twice = 0;
  std::string fault;
};
} // namespace

static bool isSet(const Value &value) {
  return !value.sharding.dims.empty() || value.sharding.partial || value.type.shape.empty();
}

static bool isProduct(const Op &op) {
  return op.kind == OpKind::Compute && (op.def->isProduct || !op.def->terms.empty());
}

static void verifyConstraint(VerifierContext &context, const Value &value) {
  const Constraint &constraint = value.constraint;
  auto report = [&](const llvm::Twine &fault) {
    context.diags.report(value.loc, diag::IRBadSharding) << "wanted sharding" << context.name(&value) << fault;
  };
  for (size_t size : {constraint.dims.size(), constraint.floors.size()})
    if (size != 0 && size != value.type.getNumDims())
      return report(llvm::Twine(size) + " entries for " + llvm::Twine(value.type.getNumDims()) + " dims");
  // Which dim gets an axis that several want is for a pass to say.
  auto isRight = [&](llvm::ArrayRef<PlacedAxis> axes) {
    AxisChecker checker(context.graph.mesh);
    checker.add(axes);
    if (!checker.getFault().empty())
      report(checker.getFault());
    return checker.getFault().empty();
  };
  if (!llvm::all_of(constraint.dims, [&](const std::optional<AxisList> &axes) { return !axes || isRight(*axes); }) ||
      !llvm::all_of(constraint.floors, isRight))
    return;
  if (constraint.partial && (*constraint.partial & constraint.replicated))
    report("an axis is partial and replicated");
}

void stage::verifySharding(VerifierContext &context, const Value &value) {
  verifyConstraint(context, value);
  const Sharding &sharding = value.sharding;
  auto report = [&](const llvm::Twine &fault) {
    context.diags.report(value.loc, diag::IRBadSharding) << "sharding" << context.name(&value) << fault;
  };
  if (!sharding.dims.empty() && sharding.dims.size() != value.type.getNumDims())
    return report(llvm::Twine(sharding.dims.size()) + " entries for " + llvm::Twine(value.type.getNumDims()) + " dims");
  if (sharding.dims.size() != value.type.getNumDims() && context.graph.hasRun("propagate-sharding"))
    return report("is missing, but 'passes' names propagate-sharding: write one, such as {_, _}, or take the name out");
  const Op *op = value.getOp();
  AxisChecker checker(context.graph.mesh, /*isOfPiece=*/op && (op->kind == OpKind::Slice || isProduct(*op)));
  for (const AxisList &axes : sharding.dims)
    checker.add(axes);
  checker.add(sharding.flat);
  checker.add(toList(sharding.partial));
  if (llvm::any_of(sharding.flat, [](const PlacedAxis &axis) { return !axis.isPlain(); }))
    return report("flat storage is cut into blocks only");
  if (!checker.getFault().empty())
    return report(checker.getFault());
  if (sharding.getListed() && !sharding.flat.empty())
    return report("what is dealt out by a table is not stored flat");
  for (unsigned d = 0; d < sharding.dims.size(); ++d)
    if (std::string fault = context.findBlockFault(value.type.shape[d].size, sharding.dims[d]); !fault.empty())
      return report(fault);
}

/// Where the rows and columns of a mask are is known of blocks of one length only.
static bool isMasked(const OpDef &def, unsigned index) {
  const OpDef &masked = def.vjpOf ? *def.vjpOf : def;
  return masked.mask && (masked.mask->rows == index || masked.mask->columns == index);
}

/// What is dealt out in turn are columns of a mask whose rows are whole; of blocks those that one row sees.
static std::string findFaultInTurn(const Graph &graph, const Op &op, unsigned index) {
  if (llvm::none_of(op.indexAxes[index], [](const PlacedAxis &axis) { return axis.isCyclic(); }) ||
      !isMasked(*op.def, index))
    return "";
  const Mask &mask = *(op.def->vjpOf ? *op.def->vjpOf : *op.def).mask;
  if (index == mask.rows || !op.indexAxes[mask.rows].empty())
    return ", and rows of its mask are split";
  SizeValue rows = evaluateCount(op.extents[mask.rows].size, graph.binding);
  return mask.kind == Mask::Kind::Blocks && (!rows || rows.value.num != 1) ? ", and several rows see blocks of it" : "";
}

/// Slots are split over the axes of the tokens, in some order.
static bool isSplitAsTokens(const Op &op, const Routing &routing) {
  AxisSet axes = 0;
  for (unsigned token : routing.tokens)
    axes |= toSet(op.indexAxes[token]);
  const AxisList &slots = op.indexAxes[routing.slot];
  return getRoutedAxes(op) == axes && llvm::all_of(slots, [](const PlacedAxis &axis) { return axis.isPlain(); });
}

static void verifyIndexAxes(VerifierContext &context, const Op &op) {
  AxisChecker checker(context.graph.mesh, /*isOfPiece=*/isProduct(op)), checkerOfFolded(context.graph.mesh);
  AxisSet paired = getPairedAxes(op);
  const Routing *routing = op.indexAxes.empty() ? nullptr : op.def->getRouting();
  for (unsigned i = 0; i < op.indexAxes.size(); ++i) {
    if (routing && routing->slot == i) {
      if (!isSplitAsTokens(op, *routing))
        context.diags.report(op.loc, diag::IRBadIndexAxes)
            << op.def->name
            << "index '" + op.def->indices[i].name +
                   "' is not split into blocks over the axes of the tokens that are routed";
      continue;
    }
    if (op.def->getCarrier(i) != i) {
      if (op.indexAxes[i] != op.indexAxes[op.def->getCarrier(i)])
        context.diags.report(op.loc, diag::IRBadIndexAxes)
            << op.def->name << "index '" + op.def->indices[i].name + "' is not split as its outermost part is";
      continue;
    }
    bool isFolded = op.def->indices[i].fold;
    (isFolded ? checkerOfFolded : checker).add(op.indexAxes[i]);
    if (isFolded ? (toSet(op.indexAxes[i]) & ~paired) != 0
                 : !op.indexAxes[i].empty() && i < op.def->shardable.size() && !op.def->shardable[i])
      context.diags.report(op.loc, diag::IRBadIndexAxes)
          << op.def->name << "index '" + op.def->indices[i].name + "' cannot be split";
  }
  auto report = [&](const llvm::Twine &fault) {
    context.diags.report(op.loc, diag::IRBadIndexAxes) << op.def->name << fault;
  };
  for (const AxisChecker &found : {checker, checkerOfFolded})
    if (!found.getFault().empty())
      return report(found.getFault());
  if (AxisSet twice = isProduct(op) ? 0 : getAxesTwice(op))
    return report("axes " + context.axes(toList(twice)) + " would stand on two dims of an operand or a result");
  if (op.ring && !op.def->indices[*op.ring].fold)
    return report("index '" + op.def->indices[*op.ring].name + "' goes round a ring, but is not folded");
  if (op.ring && (*op.ring >= op.indexAxes.size() || op.indexAxes[*op.ring].empty()) &&
      context.graph.hasRun("insert-communication"))
    return report("index '" + op.def->indices[*op.ring].name + "' goes round a ring, but has no axes");
  for (unsigned i = 0; i < op.indexAxes.size() && i < op.extents.size(); ++i) {
    if (std::string fault = context.findBlockFault(op.extents[i].size, op.indexAxes[i]); !fault.empty())
      return report(fault);
    if (isMasked(*op.def, i) && llvm::any_of(op.indexAxes[i], [](const PlacedAxis &axis) { return axis.isListed(); }))
      return report("index '" + op.def->indices[i].name + "' of the mask is dealt out by a table");
    if (std::string fault = findFaultInTurn(context.graph, op, i); !fault.empty())
      return report("index '" + op.def->indices[i].name + "' is dealt out in turn" + fault);
  }
}

/// Takes `axes` off the end of a list; false if it does not end in them.
static bool removeSuffix(AxisList &list, llvm::ArrayRef<PlacedAxis> axes) {
  if (list.size() < axes.size() || llvm::makeArrayRef(list).take_back(axes.size()) != axes)
    return false;
  list.truncate(list.size() - axes.size());
  return true;
}

/// Takes axes off the end of a list as long as they are of `axes`; returns them.
static AxisSet removeInner(AxisList &list, AxisSet axes) {
  AxisSet removed = 0;
  while (!list.empty() && (axes >> list.back() & 1))
    removed |= toSet(list.pop_back_val());
  return removed;
}

/// True if an all_to_all leaves the operand's axes on their dim, in their order, in another layout.
static bool changesLayoutOnly(const Op &op) {
  const Sharding &sharding = op.getOperand(0)->sharding;
  auto before = llvm::makeArrayRef(sharding.dims[op.dim]).take_back(op.axes.size());
  auto isSame = [](AxisId a, AxisId b) { return a == b; };
  return op.moreDims.empty() && std::equal(before.begin(), before.end(), op.axes.begin(), op.axes.end(), isSame) &&
         before != llvm::makeArrayRef(op.axes);
}

/// The sharding that a permute makes of `from`: what stands over its axis is rotated.
static std::optional<Sharding> getPermuted(VerifierContext &context, const Op &op, Sharding from, std::string &fault) {
  const Mesh &mesh = context.graph.mesh;
  if (op.axes.size() != 1 || !op.axes.front().isPlain())
    fault = "it goes along one axis, of which no layout is said";
  else if (op.axes.front() == context.graph.pipeline.axis)
    fault = "it goes along the pipeline's axis, whose stages run different ops";
  else if (op.shift == 0 || op.shift >= mesh[op.axes.front()].size)
    fault = ("it shifts by " + llvm::Twine(op.shift) + ", and axis '" + mesh[op.axes.front()].name + "' has size " +
             llvm::Twine(mesh[op.axes.front()].size))
                .str();
  else if (!from.flat.empty())
    fault = "the operand is stored flat over " + context.axes(from.flat);
  else if (!((from.getSharded() | from.partial) & toSet(op.axes)))
    fault = "the operand is replicated over " + context.axes(op.axes) + ", so that all have the same";
  if (!fault.empty())
    return std::nullopt;
  AxisId axis = op.axes.front();
  int64_t size = mesh[axis].size;
  for (AxisList &list : from.dims)
    for (PlacedAxis &placed : list)
      if (placed == axis)
        placed.rotation = (placed.rotation + size - op.shift) % size;
  return from;
}

static bool areGroupsOfStages(const Op &op, int64_t numStages) {
  llvm::DenseSet<unsigned> known;
  for (const auto &group : op.stages) {
    if (group.size() < 2 || std::adjacent_find(group.begin(), group.end(), std::greater_equal<>()) != group.end() ||
        group.back() >= numStages)
      return false;
    for (unsigned stage : group)
      if (!known.insert(stage).second)
        return false;
  }
  return true;
}

/// The sharding that a reshard makes of `from`, that of an operand. Nothing, with the reason in `fault`, if it cannot
/// take that.
static std::optional<Sharding> getResharded(VerifierContext &context, const Op &op, unsigned operand, Sharding from,
                                            std::string &fault) {
  AxisSet axes = toSet(op.axes);
  if (!op.stages.empty()) {
    if (op.kind != OpKind::AllReduce || op.axes.size() != 1 || op.axes.front() != context.graph.pipeline.axis)
      fault = "only an all_reduce over the pipeline's axis is restricted to stages";
    else if (!areGroupsOfStages(op, context.graph.mesh[op.axes.front()].size))
      fault = "its stages are not two or more stages of the pipeline in ascending order, each in one group";
    return fault.empty() ? std::optional<Sharding>(from) : std::nullopt;
  }
  if (op.kind == OpKind::Permute)
    return getPermuted(context, op, std::move(from), fault);
  bool reduces = op.kind == OpKind::AllReduce || op.kind == OpKind::ReduceScatter;
  if (reduces) {
    if ((from.partial & axes) != axes) {
      fault = "the operand is not partial over " + context.axes(op.axes);
      return std::nullopt;
    }
    if (from.reduce != op.reduce) {
      fault = ("the operand is to be reduced by " + getName(from.reduce)).str();
      return std::nullopt;
    }
    from.partial &= ~axes;
  }
  if (op.kind == OpKind::AllToAll) {
    AxisSet removed = 0;
    llvm::SmallVector<unsigned, 2> sources{op.dim};
    sources.append(op.moreDims);
    for (unsigned dim : sources) {
      if (!(toSet(from.dims[dim]) & axes)) {
        fault = ("dim " + llvm::Twine(dim) + " of the operand carries none of its axes").str();
        return std::nullopt;
      }
      removed |= removeInner(from.dims[dim], axes);
    }
    if (removed != axes) {
      fault = "the axes of the dims that become whole do not end in " + context.axes(op.axes);
      return std::nullopt;
    }
    if (op.dim == op.toDim && !changesLayoutOnly(op)) {
      fault = "it goes from a dim to the same dim and does not change the layout of its axes";
      return std::nullopt;
    }
  }
  if (!op.flat && op.kind != OpKind::AllReduce && !from.flat.empty()) {
    fault = "the operand is stored flat over " + context.axes(from.flat);
    return std::nullopt;
  }
  AxisList *place = op.flat ? &from.flat : op.kind == OpKind::AllReduce ? nullptr : &from.dims[op.getDim(operand)];
  if (op.kind == OpKind::AllGather) {
    if (!removeSuffix(*place, op.axes)) {
      fault = (op.flat ? "the axes of the operand's flat storage"
                       : "the axes of dim " + std::to_string(op.getDim(operand)) + " of the operand") +
              " do not end in " + context.axes(op.axes);
      return std::nullopt;
    }
  }
  if (op.kind == OpKind::Slice &&
      (((op.flat ? from.getSharded() : toSet(from.dims[op.dim]) | toSet(from.flat)) | from.partial) & axes)) {
    fault = "the operand is not replicated over " + context.axes(op.axes);
    return std::nullopt;
  }
  if (op.kind == OpKind::ReduceScatter || op.kind == OpKind::Slice)
    place->append(op.axes.begin(), op.axes.end());
  if (op.kind == OpKind::AllToAll)
    from.dims[op.toDim].append(op.axes.begin(), op.axes.end());
  return from;
}

/// One tensor of a reshard: what it makes of operand `number`.
static void verifyResharded(VerifierContext &context, const Op &op, unsigned number) {
  auto report = [&](const llvm::Twine &fault) {
    std::string which = op.getNumOperands() > 1 ? "operand " + std::to_string(number) + ": " : "";
    context.diags.report(op.loc, diag::IRBadReshard) << getName(op.kind) << which + fault;
  };
  const Value *operand = op.getOperand(number), *result = op.getResult(number);
  unsigned numDims = operand->type.getNumDims();
  bool isAllToAll = op.kind == OpKind::AllToAll;
  if (op.kind != OpKind::AllReduce && !op.flat &&
      (op.getDim(number) >= numDims ||
       (isAllToAll &&
        (op.toDim >= numDims || llvm::any_of(op.moreDims, [&](unsigned dim) { return dim >= numDims; })))))
    return report("the operand has " + llvm::Twine(numDims) + " dims only");
  if (!isSet(*operand) || !isSet(*result))
    return;
  Sharding from = operand->sharding;
  from.dims.resize(numDims);
  std::string fault;
  std::optional<Sharding> expected = getResharded(context, op, number, std::move(from), fault);
  if (!expected)
    return report(fault);
  Sharding found = result->sharding;
  found.dims.resize(numDims);
  if (*expected != found)
    report("the result should be " + describe(context, *expected) + " and is " + describe(context, found));
}

static void verifyReshard(VerifierContext &context, const Op &op) {
  auto report = [&](const llvm::Twine &fault) {
    context.diags.report(op.loc, diag::IRBadReshard) << getName(op.kind) << fault;
  };
  AxisChecker checker(context.graph.mesh);
  checker.add(op.axes);
  if (op.axes.empty())
    return report("it has no axes");
  if (!checker.getFault().empty())
    return report(checker.getFault());
  size_t numDims = op.moreDims.size() + 1;
  if (op.flat && op.kind != OpKind::AllGather && op.kind != OpKind::ReduceScatter && op.kind != OpKind::Slice)
    return report("only an all_gather, a reduce_scatter or a slice is to or from flat storage");
  if (op.kind == OpKind::AllToAll && llvm::is_contained(op.moreDims, op.toDim))
    return report("it goes from a dim to the same dim");
  if (op.kind == OpKind::AllReduce || op.flat ? numDims > 1
                                              : op.kind != OpKind::AllToAll && numDims != op.getNumOperands())
    return report("it has " + llvm::Twine(numDims) + (numDims > 1 ? " dims for " : " dim for ") +
                  llvm::Twine(op.getNumOperands()) + (op.getNumOperands() > 1 ? " operands" : " operand"));
  for (unsigned i = 0; i < op.getNumOperands(); ++i)
    verifyResharded(context, op, i);
}

/// The operands have all blocks of the dim on every rank, each once.
static void verifyJoin(VerifierContext &context, const Op &op) {
  auto report = [&](const llvm::Twine &fault) {
    context.diags.report(op.loc, diag::IRBadReshard) << getName(op.kind) << fault;
  };
  const Value &result = *op.getResult();
  AxisChecker checker(context.graph.mesh);
  checker.add(op.axes);
  if (op.axes.empty() || !checker.getFault().empty())
    return report(op.axes.empty() ? "it has no axes" : checker.getFault());
  if (op.dim >= result.type.getNumDims())
    return report("the operands have " + llvm::Twine(result.type.getNumDims()) + " dims only");
  if (op.getNumOperands() != uint64_t(context.graph.mesh.getGroupSize(toSet(op.axes))))
    return report("it has " + llvm::Twine(op.getNumOperands()) +
                  (op.getNumOperands() == 1 ? " operand, and " : " operands, and ") + context.axes(op.axes) + " has " +
                  llvm::Twine(context.graph.mesh.getGroupSize(toSet(op.axes))) + " ranks");
  std::set<AxisList> places;
  for (unsigned i = 0; i < op.getNumOperands(); ++i) {
    std::string which = "operand " + std::to_string(i) + ": ";
    Sharding whole = op.getOperand(i)->sharding;
    whole.dims.resize(result.type.getNumDims());
    AxisList &placed = whole.dims[op.dim], place;
    while (place.size() < op.axes.size() && !placed.empty())
      place.insert(place.begin(), placed.pop_back_val());
    AxisList unrotated = place;
    for (auto [axis, like] : llvm::zip(unrotated, op.axes))
      axis.rotation = like.rotation;
    if (unrotated != op.axes)
      return report(which + "its dim " + llvm::Twine(op.dim) + " does not end in " + context.axes(op.axes));
    if (!places.insert(place).second)
      return report(which + "another one has the same block");
    if (isSet(result) && whole != result.sharding)
      return report(which + "the result should be " + describe(context, whole) + " and is " +
                    describe(context, result.sharding));
  }
}

/// What an update makes of a shard is that shard of the parameter: further axes cut it flat. On the host it may be all
/// of it.
static void verifyUpdate(VerifierContext &context, const Op &op) {
  if (!op.getNumResults() || !isSet(*op.getOperand(0)) || !isSet(*op.getResult()))
    return;
  const Sharding &whole = op.getOperand(0)->sharding;
  Sharding shard = op.getResult()->sharding;
  if (shard.flat.size() > whole.flat.size())
    shard.flat.truncate(whole.flat.size());
  bool isWhole = shard.flat == op.getResult()->sharding.flat;
  if (shard != whole || (isWhole && !runsOnHost(op)))
    context.diags.report(op.loc, diag::IRBadSharding)
        << "sharding" << context.name(op.getResult())
        << "an update makes a flat shard of its parameter, which is " + context.text(whole);
}

void stage::verifySharding(VerifierContext &context, const Op &op) {
  if (op.kind == OpKind::Update)
    verifyUpdate(context, op);
  else if (op.kind == OpKind::Join)
    verifyJoin(context, op);
  else if (op.kind == OpKind::Compute)
    verifyIndexAxes(context, op);
  else if (isReshard(op.kind))
    verifyReshard(context, op);
}

void stage::verifyCommunication(VerifierContext &context, const Op &op) {
  if (op.kind == OpKind::Compute && op.indexAxes.size() != op.def->indices.size())
    return;
  auto compare = [&](const llvm::Twine &what, const Value *value, const Sharding &expected) {
    if (isSet(*value) && expected.dims.size() == value->type.getNumDims() && value->sharding != expected)
      context.diags.report(op.loc, diag::IRMissingReshard)
          << what << VerifierContext::getName(op) << context.text(expected) << context.name(value)
          << context.text(value->sharding);
  };
  for (unsigned i = 0; i < op.getNumOperands(); ++i)
    compare("operand " + llvm::Twine(i), op.getOperand(i), getNeededSharding(op, i));
  for (unsigned i = 0; i < op.indexAxes.size(); ++i)
    for (AxisId axis : op.indexAxes[i])
      if (!areAddendsOver(op, i, axis))
        context.diags.report(op.loc, diag::IRBadIndexAxes)
            << op.def->name << "gradients that it adds up are not partial over the same axes";
  if (op.kind == OpKind::Compute)
    for (unsigned i = 0; i < op.getNumResults(); ++i) {
      compare("result " + llvm::Twine(i), op.getResult(i), getNaturalSharding(op, i));
      if (!areTermsAlike(op, i))
        context.diags.report(op.loc, diag::IRBadIndexAxes)
            << op.def->name
            << "products that result '" + op.def->results[i].name + "' adds up are not partial over the same axes";
    }
}
