//===- FuseProducts.cpp - several products as one op ----------------------===//
//
// Problem: the program makes several products of one tensor at once (`part 1 of qkv`, SplitProducts.cpp), as one kernel
// that is given the matrices side by side. Until here each has been an op of its own, so that each has the sharding and
// the gradients that it would have alone. What a kernel computes is one op:
//
//   %q = qkv(%x, %wq)                                   %q, %k = qkv.2(%x, %wq, %wk)
//   %k = qkv.1(%x, %wk)
//
//   %d0 = qkv.dx(%dq, %wq)                              %dx = qkv.dx.2(%dq, %wq, %dk, %wk)
//   %d1 = qkv.dx.1(%dk, %wk)                              = sum[k, g, e](dq * wq) + sum[k, e](dk * wk)
//   %dx = add(%d0, %d1)
//
//   %dwq = qkv.dw(%x, %dq)                              %dwq, %dwk = qkv.dw.2(%x, %dq, %dk)
//   accumulate(%dwq, %wq)                               accumulate(%dwq, %wq)
//   %dwk = qkv.dw.1(%x, %dk)                            accumulate(%dwk, %wk)
//   accumulate(%dwk, %wk)
//
// The parts need not be split alike: queries may be split along tp.1 where keys have copies, as vLLM lays them out.
// Each product keeps what it has (OpDef::terms); the gradient of the input is one sum if all of its addends are partial
// over the same axes.
//
// Algorithm, per block:
//   1. Parts of one kernel and module that take the same first operand are *siblings*, addends those that one sum adds
//      up.
//   2. Siblings become one op in front of the first op that needs a result of one of them, or where the last of them
//      stands, if all of their operands are there. What adds a result to a gradient's buffer follows.
//   3. Addends become one op where the last of them stands; other addends of their sum stay.
//   4. What a part made it makes: where an op of all would have operands or results in other shardings, the parts stay
//      apart, and a remark says so.
//
// Steps of a ring (overlap-products) are products of one block each: so much of a kernel is one op.
//
// Limits: products of other tensors, or in other modules, are never one op.
//
//===----------------------------------------------------------------------===//
#include "sharding/ReplacedValues.h"
#include "stage/IR/graph/ShardingRules.h"
#include "stage/IR/text/Text.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/sharding/CheckSizes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"
#include <set>

using namespace stage;

namespace {
class ProductFuser {
public:
  ProductFuser(Graph &graph, DiagnosticEngine &diags) : graph(graph), diags(diags) {}

  void run() {
    for (Block &phase : graph.getPhases())
      visit(phase);
    replacedValues.follow(graph);
  }

private:
  /// Parts that may become one op.
  struct Group {
    std::vector<Op *> members;        ///< In the order of the program.
    llvm::DenseSet<unsigned> numbers; ///< Of the parts.
    Op *sum = nullptr;                ///< Of addends.
  };
  /// The parts of a kernel in one place.
  struct Kernel {
    std::vector<Group> groups;
    llvm::MapVector<const void *, size_t> current; ///< The group that goes on, by what its members have in common.
  };

  void visit(Block &block) {
    numbers.clear();
    awaiting.clear();
    using Key = std::tuple<std::string, std::string, bool>;
    std::map<Key, size_t> numberOf;
    std::vector<Kernel> kernels;
    for (auto &op : block) {
      numbers[op.get()] = 2 * numbers.size() + 1;
      for (const OrderEdge &edge : op->after)
        awaiting.try_emplace(edge.value, op.get());
      if (op->kind != OpKind::Compute || op->def->part.kernel.empty())
        continue;
      auto [known, isNew] = numberOf.try_emplace({op->def->part.kernel, op->scope, op->isRecomputed}, kernels.size());
      if (isNew)
        kernels.emplace_back();
      add(kernels[known->second], *op);
    }
    for (Kernel &kernel : kernels)
      fuse(kernel);
    for (auto &op : block)
      for (auto &body : op->bodies)
        visit(*body);
  }

  static void add(Kernel &kernel, Op &op) {
    const KernelPart &part = op.def->part;
    Op *sum = part.isAddend ? findSum(op) : nullptr;
    const void *common = part.isAddend ? static_cast<const void *>(sum ? sum : &op) : op.getOperand(0);
    auto [current, isNew] = kernel.current.insert({common, kernel.groups.size()});
    if (!isNew && kernel.groups[current->second].numbers.contains(part.number)) { // another call
      current->second = kernel.groups.size();
      isNew = true;
    }
    if (isNew)
      kernel.groups.push_back({{}, {}, sum});
    kernel.groups[current->second].members.push_back(&op);
    kernel.groups[current->second].numbers.insert(part.number);
  }

  /// The sum that is all that uses the result of an op.
  static Op *findSum(const Op &op) {
    if (op.getResult()->getUses().size() != 1)
      return nullptr;
    Op *user = op.getResult()->getUses().front().first;
    bool isSum = user->kind == OpKind::Compute && user->def->isSum && user->getBlock() == op.getBlock();
    return isSum && user->getResult()->type.dtype == op.getResult()->type.dtype ? user : nullptr;
  }

  void fuse(Kernel &kernel) {
    std::set<unsigned> all;
    for (const Group &group : kernel.groups)
      all.insert(group.numbers.begin(), group.numbers.end());
    bool isRemarked = false;
    for (Group &group : kernel.groups) {
      const Op &first = *group.members.front();
      std::string reason;
      if (group.members.size() < all.size())
        reason = first.def->part.isAddend ? "the gradients of what they take are not added up as they are"
                                          : "they do not take the same tensor";
      SMLoc loc = first.loc;
      std::string name = joinPath(first.scope, first.def->part.kernel);
      if (group.members.size() > 1)
        if (std::string fault = group.sum ? fuseAddends(group) : fuseSiblings(group); !fault.empty())
          reason = fault;
      if (!reason.empty() && !std::exchange(isRemarked, true))
        diags.report(loc, diag::ProductsApart) << name << reason;
    }
  }

  //===--- where ------------------------------------------------------------===//

  /// The op of a block that another one is, or stands in; null if it is of another block.
  static Op *findIn(const Block &block, Op *op) {
    while (op && op->getBlock() != &block)
      op = op->getBlock()->getParent();
    return op;
  }

  bool isBefore(const Op &op, const Op &other) const { return numbers.lookup(&op) < numbers.lookup(&other); }

  bool isThere(const Value &value, const Op &before) const {
    const Op *maker = value.getOp();
    return !maker || maker->getBlock() != before.getBlock() || isBefore(*maker, before);
  }

  /// The first op that needs a result of one of these, or else the last of them.
  Op &findPlace(llvm::ArrayRef<Op *> members) const {
    Op *place = members.back();
    auto bound = [&](Op *user) {
      Op *at = user ? findIn(*place->getBlock(), user) : nullptr;
      if (at && isBefore(*at, *place))
        place = at;
    };
    for (const Op *member : members) {
      for (auto [user, operand] : member->getResult()->getUses())
        if (user->kind != OpKind::Accumulate)
          bound(user);
      bound(awaiting.lookup(member->getResult()));
    }
    return *place;
  }

  //===--- one op -----------------------------------------------------------===//

  /// An op of all parts, not yet in the graph; null with a reason if it would take or make anything else than these.
  std::unique_ptr<Op> merge(const Group &group, std::string &reason) {
    std::vector<Op *> members = group.members;
    llvm::sort(members, [](const Op *a, const Op *b) { return a->def->part.number < b->def->part.number; });
    const Op &first = *members.front();
    auto op = std::make_unique<Op>(OpKind::Compute, first.loc);
    op->scope = first.scope;
    op->isRecomputed = first.isRecomputed;
    op->origin = first.origin;
    OpDef def;
    def.name = first.def->part.kernel;
    llvm::StringMap<unsigned> operandNames, resultNames;
    llvm::SmallVector<const Formula *, 4> addends;
    for (const Op *member : members) {
      const OpDef &of = *member->def;
      llvm::SmallVector<unsigned, 8> toIndices, toOperands;
      for (unsigned i = 0; i < of.indices.size(); ++i) {
        std::optional<unsigned> known = def.findIndex(of.indices[i].name);
        if (known &&
            (op->extents[*known].size != member->extents[i].size || op->indexAxes[*known] != member->indexAxes[i])) {
          reason = "they are not split alike along '" + of.indices[i].name + "'";
          return nullptr;
        }
        toIndices.push_back(known.value_or(def.indices.size()));
        if (known)
          continue;
        IndexInfo info = of.indices[i];
        for (unsigned &part : info.members)
          part = toIndices[part];
        def.indices.push_back(std::move(info));
        op->extents.push_back(member->extents[i]);
        op->indexAxes.push_back(member->indexAxes[i]);
      }
      if (member->turns) // the products of a step take the same block
        op->turns = {toIndices[member->turns->index], member->turns->axes};
      auto translate = [&](llvm::SmallVectorImpl<unsigned> &indices) {
        for (unsigned &index : indices)
          index = toIndices[index];
      };
      for (unsigned i = 0; i < of.operands.size(); ++i) {
        bool isShared = i == 0 && !group.sum && member != &first;
        toOperands.push_back(isShared ? 0 : def.operands.size());
        if (isShared)
          continue;
        OperandInfo &info = def.operands.emplace_back(of.operands[i]);
        info.name = makeName(info.name, operandNames);
        translate(info.indices);
        op->addOperand(member->getOperand(i));
      }
      addends.push_back(graph.defs.translate(of.results.front().formula, toIndices, toOperands));
      if (group.sum && member != &first)
        continue;
      ResultInfo &result = def.results.emplace_back(of.results.front());
      result.name = makeName(result.name, resultNames);
      result.formula = addends.back();
      translate(result.indices);
      addResult(*op, group.sum ? *group.sum->getResult() : *member->getResult());
      op->getResult(op->getNumResults() - 1)->sharding = member->getResult()->sharding;
    }
    if (group.sum)
      def.results.front().formula = graph.defs.addUp(addends);
    auto isFloating =
        llvm::find_if(op->getOperands(), [](const Value *operand) { return isFloat(operand->type.dtype); });
    for (auto &result : op->getResults()) {
      std::optional<DType> &type = def.results[result->getNumber()].dtype;
      type = result->type.dtype;
      if (isFloating != op->getOperands().end() && (*isFloating)->type.dtype == *type)
        type.reset();
    }
    op->def = graph.defs.add(std::move(def));
    if (!isAlike(*op, members)) {
      reason = "blocks that meet in one of them do not meet in another one";
      return nullptr;
    }
    return op;
  }

  /// Whether an op takes and makes what the parts took and made. Where blocks meet along an axis, each part has it:
  /// ranks along it make different things.
  static bool isAlike(const Op &op, llvm::ArrayRef<Op *> members) {
    AxisSet paired = getPairedAxes(op);
    bool alike = llvm::all_of(members, [&](const Op *member) {
      AxisSet split = 0;
      for (const AxisList &axes : member->indexAxes)
        split |= toSet(axes);
      return !(paired & ~split);
    });
    for (unsigned i = 0; i < op.getNumOperands(); ++i)
      alike &= op.getOperand(i)->sharding == getNeededSharding(op, i);
    for (unsigned i = 0; i < op.getNumResults(); ++i)
      alike &= areTermsAlike(op, i) && op.getResult(i)->sharding == getNaturalSharding(op, i);
    return alike;
  }

  /// A name that is not taken yet; `taken` has of each the last number that was tried behind it.
  static std::string makeName(const std::string &name, llvm::StringMap<unsigned> &taken) {
    std::string unique = name;
    while (!taken.try_emplace(unique, 1).second)
      unique = name + std::to_string(++taken[name]);
    return unique;
  }

  static void addResult(Op &op, const Value &like) {
    Value *result = op.addResult(like.type, like.path);
    result->constraint = like.constraint;
    result->primal = like.primal;
    result->loc = like.loc;
  }

  void standFor(Value &from, Value &to) {
    from.replaceAllUsesWith(&to);
    replacedValues.replace(from, to);
    replacedValues.await(from, to);
  }

  /// Why the members stay apart; nothing if they are one now.
  std::string fuseSiblings(Group &group) {
    Op &place = findPlace(group.members);
    for (const Op *member : group.members)
      for (const Value *operand : member->getOperands())
        if (!isThere(*operand, place))
          return "what is made of one of them is needed for another one";
    std::string reason;
    std::unique_ptr<Op> owner = merge(group, reason);
    if (!owner)
      return reason;
    Op *op = insertBefore(place, std::move(owner));
    Block &block = *op->getBlock();
    Op *last = op;
    for (Op *member : group.members)
      for (auto [user, operand] : member->getResult()->getUses())
        if (user->kind == OpKind::Accumulate && operand == 0 && isBefore(*user, place)) {
          block.moveAfter(user, last);
          numbers[user] = numbers.lookup(op);
          last = user;
        }
    std::vector<Op *> members = group.members;
    llvm::sort(members, [](const Op *a, const Op *b) { return a->def->part.number < b->def->part.number; });
    for (unsigned i = 0; i < members.size(); ++i)
      standFor(*members[i]->getResult(), *op->getResult(i));
    for (Op *member : members)
      replacedValues.retire(*member, op);
    return "";
  }

  std::string fuseAddends(Group &group) {
    Op &place = *group.members.back(), &sum = *group.sum;
    std::string reason;
    std::unique_ptr<Op> owner = merge(group, reason);
    if (!owner)
      return reason;
    Op *op = insertBefore(place, std::move(owner));
    Value &result = *op->getResult();
    llvm::SmallVector<Value *, 4> rest = {&result};
    llvm::SmallPtrSet<const Op *, 8> members(group.members.begin(), group.members.end());
    for (Value *addend : sum.getOperands())
      if (!members.contains(addend->getOp()))
        rest.push_back(addend);
    if (rest.size() == 1) {
      standFor(*sum.getResult(), result);
    } else {
      result.path.clear();
      result.primal = nullptr;
      result.constraint = Constraint();
      sum.clearOperands();
      sum.def = graph.defs.getSum(result.type.getNumDims(), rest.size());
      for (Value *addend : rest)
        sum.addOperand(addend);
    }
    for (Op *member : group.members) {
      replacedValues.replace(*member->getResult(), result);
      replacedValues.await(*member->getResult(), result);
      replacedValues.retire(*member, op);
    }
    if (rest.size() == 1)
      replacedValues.retire(sum);
    return "";
  }

  Op *insertBefore(Op &place, std::unique_ptr<Op> owner) {
    Op *op = place.getBlock()->insertBefore(&place, std::move(owner));
    numbers[op] = numbers.lookup(&place) - 1;
    return op;
  }

  Graph &graph;
  DiagnosticEngine &diags;
  llvm::DenseMap<const Op *, unsigned> numbers; ///< In the order of the block; even: of what has been inserted.
  llvm::DenseMap<const Value *, Op *>
      awaiting; ///< The first op of the block that waits for a value beside its operands.
  ReplacedValues replacedValues;
};
} // namespace

void stage::fuseProducts(Graph &graph, DiagnosticEngine &diags) {
  if (checkSizes(graph, diags))
    ProductFuser(graph, diags).run();
}
