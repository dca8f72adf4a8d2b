//===- Kernels.cpp - which kernels software runs for ops ------------------===//
#include "stage/Tasks/Kernels.h"
#include "stage/IR/graph/Costs.h"
#include "stage/Tasks/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;
using OpClass = KernelRule::OpClass;

static llvm::StringRef getBaseName(const OpDef &def) { return llvm::StringRef(def.name).split('.').first; }

static bool isGradient(const Op &op) { return op.origin && !op.isRecomputed; }

/// The op of forward whose gradient this one is, or itself.
static const Op &getNamed(const Op &op) { return isGradient(op) ? *op.origin : op; }

/// Nothing: no kernel is told of it by its class.
static std::optional<OpClass> findClass(const Op &op) {
  if (op.kind == OpKind::Update)
    return OpClass::Optimizer;
  if (op.kind == OpKind::Append)
    return OpClass::Elementwise;
  if (op.kind != OpKind::Compute || op.def->isView)
    return std::nullopt;
  const OpDef &forward = op.def->vjpOf ? *op.def->vjpOf : *op.def;
  if (forward.declaredClass == FlopClass::Attention)
    return OpClass::Attention;
  auto isContraction = [](const FlopTerm &term) { return term.flopClass == FlopClass::Contraction; };
  bool multiplies = forward.declaredClass != FlopClass::Other && llvm::any_of(op.def->flopTerms, isContraction);
  return multiplies ? OpClass::Contraction : OpClass::Elementwise;
}

static bool isPrimitive(const Op &op) { return op.kind == OpKind::Update || op.kind == OpKind::Append; }

/// As a pattern names it; empty for updates, which patterns do not name.
static llvm::StringRef getPatternName(const Op &op) {
  return op.kind == OpKind::Append ? "append" : op.def ? llvm::StringRef(op.def->name) : "";
}

static std::string describeNamed(const Op &op) {
  std::string name = op.kind == OpKind::Update ? "update" : getPatternName(op).str();
  return op.scope.empty() ? name : op.scope + " " + name;
}

/// Or attention.
static bool isProduct(const Op *op) { return findClass(*op) != OpClass::Elementwise; }

static bool isElementwise(const Op &op) { return findClass(op) == OpClass::Elementwise; }

namespace {
/// Which rules speak of an op: those of its class, and those whose pattern ends in its name. Patterns are compared with
/// few ops only.
class RuleIndex {
public:
  explicit RuleIndex(llvm::ArrayRef<KernelRule> rules) : rules(rules) {
    for (unsigned number = 0; number < rules.size(); ++number) {
      const KernelRule &rule = rules[number];
      if (rule.opClass != OpClass::Named) {
        others.push_back(number);
        continue;
      }
      unsigned last = rule.pattern->getNumSegments() - 1;
      if (last && rule.pattern->namesGradient())
        --last;
      if (rule.pattern->isAnyDepth(last) || rule.pattern->hasStar(last))
        others.push_back(number);
      else
        for (const std::string &name : rule.pattern->getAlternatives(last))
          byName[name].push_back(number);
    }
  }

  /// Their numbers, in the order in which they were said.
  llvm::SmallVector<unsigned, 4> findAll(const Op &op, bool isFusion) const {
    llvm::SmallVector<unsigned, 4> found;
    std::optional<OpClass> opClass = findClass(op);
    if (!opClass)
      return found;
    auto add = [&](unsigned number) {
      const KernelRule &rule = rules[number];
      bool speaks = rule.opClass == OpClass::Named ? matches(rule, op) : rule.opClass == opClass;
      if (speaks && rule.isFusion == isFusion)
        found.push_back(number);
    };
    llvm::for_each(others, add);
    if (llvm::StringRef full = getPatternName(getNamed(op)); !full.empty()) {
      llvm::StringRef base = full.split('.').first;
      for (unsigned i = 0; i < (full == base ? 1 : 2); ++i)
        if (auto it = byName.find(i ? base : full); it != byName.end())
          llvm::for_each(it->second, add);
    }
    llvm::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

private:
  /// `at` names the op whose gradient it is, `fuse` the gradient.
  static bool matches(const KernelRule &rule, const Op &op) {
    const Op &named = getNamed(op);
    llvm::StringRef name = getPatternName(named);
    if (name.empty())
      return false;
    if (!rule.isFusion || !isGradient(op))
      return rule.pattern->matchesOp(named.scope, name.str());
    std::string scope = (named.scope.empty() ? "" : named.scope + ".") + getBaseName(*named.def).str();
    return rule.pattern->namesGradient() && rule.pattern->matchesOp(scope, "grad");
  }

  llvm::ArrayRef<KernelRule> rules;
  llvm::StringMap<llvm::SmallVector<unsigned, 2>> byName;
  llvm::SmallVector<unsigned, 4> others;
};
} // namespace

namespace stage {
class KernelFinder {
public:
  KernelFinder(const Program &program, const Runtime &runtime, DiagnosticEngine &diags)
      : graph(*program.graph), rules(runtime.kernels), index(rules), diags(diags) {}

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
    if (ok && llvm::any_of(rules, [](const KernelRule &rule) { return rule.isFusion; }))
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
    for (unsigned number : index.findAll(op, /*isFusion=*/false)) {
      const KernelRule &rule = rules[number];
      Size bytes = isBackward ? rule.backwardBytes : rule.bytes;
      Size beside = isBackward ? rule.backwardBesideBytes : rule.besideBytes;
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
      if (!take(op, rule, bytes, kernel.bytes) || !take(op, rule, beside, kernel.besideBytes) ||
          !take(op, rule, floor, kernel.floor) || !take(op, rule, host, kernel.host))
        return false;
    }
    if (!kernel.bytes && !kernel.besideBytes && !kernel.floor && !kernel.host && !kernel.type &&
        kernel.speed == Rational{1, 1})
      return true;
    // K2
    if (isBackward && !firstOfGradient.try_emplace(op.origin, &op).second) {
      kernel.besideBytes = kernel.floor = kernel.host = Size();
      kernel.isInside = bool(kernel.bytes);
      kernel.bytes = Size();
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

  /// Puts the sizes of an op into a formula. False after a report.
  bool take(const Op &op, const KernelRule &rule, Size formula, Size &result) {
    if (!formula)
      return true;
    bool ok = true;
    result = substitute(formula, [&](llvm::StringRef symbol) {
      Size size = resolve(op, symbol);
      if (!size && ok)
        reportNoName(op, rule, symbol);
      ok &= bool(size);
      return size;
    });
    SizeValue value = ok ? evaluate(result, graph.binding) : SizeValue();
    if (!value || value.value.num >= 0)
      return ok;
    diags.report(rule.range.Start, diag::KernelNegative)
        .range(rule.range)
        .with(describeNamed(op), int64_t(value.value.floor().num))
        .note(op.loc, diag::KernelOfOp);
    return false;
  }

  Size getBytes(const Value &value) const { return getLocalBytes(graph.sizes, graph.mesh, value.type, value.sharding); }
  Size getElements(const Value &value) const {
    return getLocalElements(graph.sizes, graph.mesh, value.type, value.sharding);
  }

  const Value *findValue(const Op &named, llvm::StringRef name) const {
    if (named.kind == OpKind::Append)
      return name == "x" ? named.getOperand(1) : nullptr;
    if (named.kind == OpKind::Update)
      return name == "parameter" ? named.getOperand(0) : name == "gradient" ? named.getOperand(1) : nullptr;
    for (unsigned i = 0; i < named.def->operands.size(); ++i)
      if (named.def->operands[i].name == name)
        return named.getOperand(i);
    for (unsigned i = 0; i < named.def->results.size(); ++i)
      if (named.def->results[i].name == name)
        return named.getResult(i);
    return nullptr;
  }

  /// What a symbol of a formula stands for; null if the op has nothing of this name.
  Size resolve(const Op &op, llvm::StringRef symbol) const {
    const Op &named = getNamed(op);
    if (symbol == "volume")
      return getElements(isPrimitive(named) ? *named.getOperand(1) : *named.getResult());
    auto [what, name] = symbol.split('.');
    if (!name.empty()) {
      const Value *value = findValue(named, name);
      return !value ? Size() : what == "bytes" ? getBytes(*value) : getElements(*value);
    }
    std::optional<unsigned> found = isPrimitive(named) ? std::nullopt : named.def->findIndex(symbol);
    return found ? getLocalIndexSizes(graph, named)[*found] : Size();
  }

  void reportNoName(const Op &op, const KernelRule &rule, llvm::StringRef symbol) const {
    const Op &named = getNamed(op);
    std::vector<std::string> names;
    if (named.kind == OpKind::Update) {
      names = {"parameter", "gradient"};
    } else if (named.kind == OpKind::Append) {
      names = {"x"};
    } else {
      for (const OperandInfo &operand : named.def->operands)
        names.push_back(operand.name);
      for (const ResultInfo &result : named.def->results)
        names.push_back(result.name);
      for (const IndexInfo &each : named.def->indices)
        if (!each.isCompound())
          names.push_back(each.name);
    }
    llvm::StringRef name = symbol.contains('.') ? symbol.split('.').second : symbol;
    diags.report(rule.range.Start, diag::KernelNoName)
        .range(rule.range)
        .with(describeNamed(named), name, llvm::join(names, ", "))
        .note(named.loc, diag::KernelOfOp);
  }

  /// K5
  bool checkBytes(const Op &op, const KernelRule &rule, Size bytes) const {
    if (op.kind != OpKind::Compute)
      return true;
    std::optional<OpClass> opClass = findClass(op);
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
      llvm::SmallVector<unsigned, 4> fusions = index.findAll(op, /*isFusion=*/true);
      if (!fusions.empty() && (!hasNode(graph, op) || op.kind == OpKind::Append))
        fusions.clear();
      std::optional<unsigned> own;
      for (const Value *operand : fusions.empty() ? llvm::ArrayRef<Value *>() : op.getOperands()) {
        const Op *maker = operand->getOp();
        auto known = maker && maker->getBlock() == &block ? groupOf.find(maker) : groupOf.end();
        if (known == groupOf.end() || own || !sharesFusion(groups[known->second], fusions) ||
            isBehind(op, known->second, groupOf, behind))
          continue;
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
    llvm::SmallVector<unsigned, 4> theirs = index.findAll(*other, /*isFusion=*/true);
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

  Graph &graph;
  llvm::ArrayRef<KernelRule> rules;
  const RuleIndex index;
  DiagnosticEngine &diags;
  llvm::DenseMap<const Op *, OpKernel> *kernels = nullptr;
  llvm::DenseMap<const Op *, const Op *> firstOfGradient;
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
  llvm::SmallVector<unsigned, 4> fusions = index.findAll(op, /*isFusion=*/true);
  for (const Value *operand : fusions.empty() ? llvm::ArrayRef<Value *>() : message.getOperands())
    if (const Op *before = operand->getOp(); before && before->getBlock() == op.getBlock())
      for (unsigned number : index.findAll(*before, /*isFusion=*/true))
        if (llvm::is_contained(fusions, number))
          return std::pair(number, before);
  return std::nullopt;
}

void stage::remarkKernelRules(const Program &program, const Runtime &runtime, DiagnosticEngine &diags) {
  RuleIndex index(runtime.kernels);
  std::vector<bool> isUsed(runtime.kernels.size()), isOver(runtime.kernels.size());
  program.graph->walk([&](Op &op) {
    for (bool isFusion : {false, true})
      for (unsigned number : index.findAll(op, isFusion))
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
    if (const KernelRule &rule = runtime.kernels[number]; !isUsed[number])
      diags.report(rule.range.Start, diag::KernelsUnused).range(rule.range) << runtime.name;
}
