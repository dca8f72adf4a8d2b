//===- Kernels.cpp - which kernels software runs for ops ------------------===//
#include "stage/Tasks/Kernels.h"
#include "stage/IR/graph/Costs.h"
#include "stage/Machine/Diagnostics.h"
#include "stage/Machine/RuntimeRules.h"
#include "stage/Tasks/Diagnostics.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;
using OpClass = KernelRule::OpClass;
using RuleKind = KernelRule::Kind;

/// Or attention.
static bool isProduct(const Op *op) { return findOpClass(*op) != OpClass::Elementwise; }

static bool isElementwise(const Op &op) { return findOpClass(op) == OpClass::Elementwise; }

/// By how many ranks the block of a ring has gone round that an op works on; 0: it is the rank's own, or there is none.
/// Products that go piece by piece are no such ring: a kernel adds their pieces itself.
static unsigned getRotation(const Op &op) {
  if (!op.turns)
    for (const AxisList &axes : op.indexAxes)
      for (const PlacedAxis &axis : axes)
        if (axis.rotation)
          return axis.rotation;
  return 0;
}

namespace stage {
class KernelFinder {
public:
  KernelFinder(const Program &program, const Runtime &runtime, DiagnosticEngine &diags)
      : graph(*program.graph), rules(runtime.kernels), index(rules), formulas(graph, diags), diags(diags) {}

  std::shared_ptr<const Kernels> find(const Runtime &runtime) {
    auto made = std::make_shared<Kernels>();
    made->speed = runtime.kernelSpeed;
    made->attentionSpeed = runtime.attentionKernel;
    made->attentionTile = runtime.attentionTile;
    if (rules.empty())
      return made;
    kernels = &made->kernels;
    bool ok = true;
    graph.walk([&](Op &op) { ok = ok && applyRules(op); });
    if (ok && llvm::any_of(rules, [](const KernelRule &rule) { return rule.kind == RuleKind::Fusion; }))
      for (const Block &phase : graph.getPhases())
        fuse(phase);
    return ok ? made : nullptr;
  }

private:
  // ---- what `at` says ----------------------------------------------------------------------------------------------

  bool applyRules(const Op &op) {
    bool isBackward = isGradient(op);
    const KernelRule *ofBytes = nullptr;
    OpKernel kernel;
    Size ofRing;
    const unsigned rotation = getRotation(op);
    for (unsigned number : index.findAll(op, RuleKind::Kernel)) {
      const KernelRule &rule = rules[number];
      Size bytes = isBackward ? rule.backwardBytes : rule.bytes;
      Size beside = isBackward ? rule.backwardBesideBytes : rule.besideBytes;
      Size ring = !rotation ? Size() : isBackward ? rule.backwardRingBytes : rule.ringBytes;
      Size floor = isBackward ? rule.backwardFloor : rule.floor;
      Size host = isBackward ? rule.backwardHost : rule.host;
      if (bytes)
        ofBytes = &rule;
      if (rule.speed)
        kernel.speed = *rule.speed;
      if (rule.type) {
        kernel.type = rule.type;
        kernel.allowsTF32 = rule.allowsTF32;
      }
      if (!formulas.take(op, rule, bytes, kernel.bytes) || !formulas.take(op, rule, beside, kernel.besideBytes) ||
          !formulas.take(op, rule, ring, ofRing) || !formulas.take(op, rule, floor, kernel.floor) ||
          !formulas.take(op, rule, host, kernel.host))
        return false;
    }
    if (!kernel.bytes && !kernel.besideBytes && !ofRing && !kernel.floor && !kernel.host && !kernel.type &&
        kernel.speed == Rational{1, 1})
      return true;
    // K2
    if (isBackward && !firstOfGradient.try_emplace(op.origin, &op).second) {
      kernel.besideBytes = kernel.floor = kernel.host = Size();
      kernel.isInside = bool(kernel.bytes);
      kernel.bytes = Size();
    }
    if (ofRing && isBackward && !ofSteps.insert({op.origin, rotation}).second)
      ofRing = Size();
    if (ofRing) {
      if (Size presence = getPresence(graph, op))
        ofRing = ofRing * presence;
      kernel.besideBytes = kernel.besideBytes ? kernel.besideBytes + ofRing : ofRing;
    }
    if (kernel.bytes && kernel.bytes.isConstant(0) && isElementwise(op)) { // K5: no kernel
      kernel.isInside = true;
      kernel.bytes = Size();
    }
    if (kernel.bytes && !checkBytes(op, *ofBytes, kernel.bytes))
      return false;
    (*kernels)[&op] = kernel;
    return true;
  }

  /// K5
  bool checkBytes(const Op &op, const KernelRule &rule, Size bytes) const {
    if (op.kind != OpKind::Compute)
      return true;
    std::optional<OpClass> opClass = findOpClass(op);
    if (opClass != OpClass::Elementwise) {
      diags.report(rule.range.Start, diag::KernelOfProduct)
          .range(rule.range)
          .with(describeNamed(op))
          .note(op.loc, diag::KernelOfOp);
      return false;
    }
    const OpDef &forward = op.def->vjpOf ? *op.def->vjpOf : *op.def;
    if (forward.isLookup || forward.routing)
      return true; // it reads some rows only
    Size reads = graph.sizes.zero();
    for (unsigned i = 0; i < op.getNumOperands(); ++i)
      if (!llvm::is_contained(op.getOperands().take_front(i), op.getOperand(i)))
        reads = reads + getBytes(*op.getOperand(i));
    SizeValue said = evaluate(bytes, graph.binding), least = evaluate(reads, graph.binding);
    if (!said || !least || said.value.compare(least.value) >= 0)
      return true;
    diags.report(rule.range.Start, diag::KernelReadsMore)
        .range(rule.range)
        .with(describeNamed(op), int64_t(least.value.floor().num), int64_t(said.value.floor().num))
        .note(op.loc, diag::KernelOfOp);
    return false;
  }

  // ---- what `fuse` says --------------------------------------------------------------------------------------------

  /// Ops of a block that are one kernel.
  struct Group {
    std::vector<const Op *> ops;
    bool hasProduct = false;
  };

  /// Kernels of a block, and of the blocks in it.
  void fuse(const Block &block) {
    std::vector<Group> groups;
    llvm::DenseMap<const Op *, unsigned> groupOf;
    llvm::DenseMap<const Op *, llvm::SmallVector<unsigned, 4>> behind; ///< The groups for which an op waits.
    for (const auto &each : block) {
      const Op &op = *each;
      for (const auto &body : op.bodies)
        fuse(*body);
      llvm::SmallVector<unsigned, 4> fusions = index.findAll(op, RuleKind::Fusion);
      if (!fusions.empty() && (!hasNode(graph, op) || op.kind == OpKind::Append))
        fusions.clear();
      std::optional<unsigned> own;
      for (const Value *operand : fusions.empty() ? llvm::ArrayRef<Value *>() : op.getOperands()) {
        const Op *maker = operand->getOp();
        auto known = maker && maker->getBlock() == &block ? groupOf.find(maker) : groupOf.end();
        if (known == groupOf.end() || own || !sharesFusion(groups[known->second], fusions) ||
            isBehind(op, known->second, groupOf, behind))
          continue;
        if (isProduct(&op) && !groups[known->second].hasProduct)
          continue; // K4: a product's kernel begins with it
        own = known->second;
      }
      auto &waits = behind[&op];
      for (const Value *operand : op.getOperands())
        if (const Op *maker = operand->getOp(); maker && maker->getBlock() == &block) {
          for (unsigned group : behind.lookup(maker))
            if (group != own && !llvm::is_contained(waits, group))
              waits.push_back(group);
          if (auto known = groupOf.find(maker); known != groupOf.end() && known->second != own)
            if (!llvm::is_contained(waits, known->second))
              waits.push_back(known->second);
        }
      if (fusions.empty())
        continue;
      if (!own) {
        own = groups.size();
        groups.emplace_back();
      }
      groups[*own].ops.push_back(&op);
      groups[*own].hasProduct |= isProduct(&op);
      groupOf[&op] = *own;
    }
    for (const Group &group : groups)
      if (group.ops.size() > 1)
        settle(group);
  }

  /// Ops are one kernel only by one rule that names both, and are inside of a product's only by one that names it.
  bool sharesFusion(const Group &group, llvm::ArrayRef<unsigned> fusions) const {
    const Op *other = group.hasProduct ? *llvm::find_if(group.ops, isProduct) : group.ops.back();
    llvm::SmallVector<unsigned, 4> theirs = index.findAll(*other, RuleKind::Fusion);
    return llvm::any_of(fusions, [&](unsigned number) { return llvm::is_contained(theirs, number); });
  }

  /// Whether an operand of the op that the group does not make waits for the group.
  static bool isBehind(const Op &op, unsigned group, const llvm::DenseMap<const Op *, unsigned> &groupOf,
                       const llvm::DenseMap<const Op *, llvm::SmallVector<unsigned, 4>> &behind) {
    return llvm::any_of(op.getOperands(), [&](const Value *operand) {
      const Op *maker = operand->getOp();
      if (!maker || maker->getBlock() != op.getBlock())
        return false;
      auto known = groupOf.find(maker);
      return (known == groupOf.end() || known->second != group) && llvm::is_contained(behind.lookup(maker), group);
    });
  }

  /// K3, K4
  void settle(const Group &group) {
    auto isMember = [&](const Op *op) { return op && llvm::is_contained(group.ops, op); };
    const Op *leader = group.hasProduct ? *llvm::find_if(group.ops, isProduct) : group.ops.back();
    Size said, beside, host, bytes = graph.sizes.zero();
    auto add = [](Size &sum, Size addend) {
      if (addend)
        sum = sum ? sum + addend : addend;
    };
    llvm::SmallVector<const Value *, 8> read;
    for (const Op *op : group.ops) {
      OpKernel &kernel = (*kernels)[op];
      add(said, kernel.bytes);
      kernel.isInside = op != leader && !isProduct(op);
      kernel.bytes = Size();
      if (kernel.isInside) {
        add(beside, std::exchange(kernel.besideBytes, Size()));
        add(host, std::exchange(kernel.host, Size()));
      }
      if (group.hasProduct)
        continue;
      Size inner = graph.sizes.zero();
      llvm::SmallVector<const Value *, 4> own;
      for (const Value *operand : op->getOperands()) {
        if (llvm::is_contained(own, operand))
          continue;
        own.push_back(operand);
        if (isMember(operand->getOp()) || llvm::is_contained(read, operand))
          inner = inner + getBytes(*operand);
        else
          read.push_back(operand);
      }
      for (const auto &result : op->getResults())
        if (!result->getUses().empty() &&
            llvm::all_of(result->getUses(), [&](auto use) { return isMember(use.first); }))
          inner = inner + getBytes(*result);
      // An op that reads some rows of an operand counts less than all of it.
      bytes = bytes + max(getLocalCost(graph, *op).bytes - inner, graph.sizes.zero());
    }
    OpKernel &kernel = (*kernels)[leader];
    add(kernel.besideBytes, beside);
    add(kernel.host, host);
    if (!group.hasProduct)
      kernel.bytes = said ? said : bytes;
  }

  Size getBytes(const Value &value) const { return getLocalBytes(graph.sizes, graph.mesh, value.type, value.sharding); }

  Graph &graph;
  llvm::ArrayRef<KernelRule> rules;
  const RuleIndex index;
  const RuleFormulas formulas;
  DiagnosticEngine &diags;
  llvm::DenseMap<const Op *, OpKernel> *kernels = nullptr;
  llvm::DenseMap<const Op *, const Op *> firstOfGradient;
  llvm::DenseSet<std::pair<const Op *, unsigned>> ofSteps; ///< Of rings, by what they are the gradient of.
};
} // namespace stage

std::shared_ptr<const Kernels> Kernels::find(const Program &program, const Runtime &runtime, DiagnosticEngine &diags) {
  return KernelFinder(program, runtime, diags).find(runtime);
}

Rational Kernels::getSpeed(const Op &op, bool isAttention) const {
  const OpKernel *kernel = find(op);
  Rational own = kernel ? kernel->speed : Rational{1, 1};
  if (isAttention)
    own = *own.mul(attentionSpeed);
  return *own.mul(speed);
}

/// A rule that names ops on both sides of what communicates, and the op before it.
static std::optional<std::pair<unsigned, const Op *>> findOverMessage(const Op &op, const Op &message,
                                                                      const RuleIndex &index) {
  llvm::SmallVector<unsigned, 4> fusions = index.findAll(op, RuleKind::Fusion);
  for (const Value *operand : fusions.empty() ? llvm::ArrayRef<Value *>() : message.getOperands())
    if (const Op *before = operand->getOp(); before && before->getBlock() == op.getBlock())
      for (unsigned number : index.findAll(*before, RuleKind::Fusion))
        if (llvm::is_contained(fusions, number))
          return std::pair(number, before);
  return std::nullopt;
}

void stage::remarkKernelRules(const Program &program, const Runtime &runtime, DiagnosticEngine &diags) {
  RuleIndex index(runtime.kernels);
  std::vector<bool> isUsed(runtime.kernels.size()), isOver(runtime.kernels.size());
  program.graph->walk([&](Op &op) {
    for (RuleKind kind : {RuleKind::Kernel, RuleKind::Fusion, RuleKind::Resident})
      for (unsigned number : index.findAll(op, kind))
        isUsed[number] = true;
    for (const Value *operand : op.getOperands()) {
      const Op *maker = operand->getOp();
      auto over = maker && isCommunication(maker->kind) ? findOverMessage(op, *maker, index) : std::nullopt;
      if (!over || isOver[over->first] || runtime.kernels[over->first].opClass != OpClass::Named)
        continue;
      isOver[over->first] = true;
      SMRange range = runtime.kernels[over->first].range;
      diags.report(range.Start, diag::FusedOverMessage)
          .range(range)
          .with(describeNamed(*over->second), describeNamed(op), getName(maker->kind))
          .note(op.loc, diag::KernelOfOp);
    }
  });
  for (unsigned number = 0; number < runtime.kernels.size(); ++number)
    if (const KernelRule &rule = runtime.kernels[number]; !isUsed[number] && rule.opClass != OpClass::Send)
      diags.report(rule.range.Start, diag::KernelsUnused).range(rule.range) << runtime.name;
}
