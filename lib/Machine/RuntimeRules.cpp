//===- RuntimeRules.cpp - which rules of a runtime speak of an op ---------===//
#include "stage/Machine/RuntimeRules.h"
#include "stage/IR/graph/Costs.h"
#include "stage/Machine/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;
using OpClass = KernelRule::OpClass;

static constexpr llvm::StringLiteral weightName = "weight";

static llvm::StringRef getBaseName(const OpDef &def) { return llvm::StringRef(def.name).split('.').first; }

bool stage::isGradient(const Op &op) { return op.origin && !op.isRecomputed; }

const Op &stage::getNamed(const Op &op) { return isGradient(op) ? *op.origin : op; }

std::optional<OpClass> stage::findOpClass(const Op &op) {
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

std::string stage::describeNamed(const Op &op) {
  std::string name = op.kind == OpKind::Update ? "update" : getPatternName(op).str();
  return op.scope.empty() ? name : op.scope + " " + name;
}

RuleIndex::RuleIndex(llvm::ArrayRef<KernelRule> rules) : rules(rules) {
  for (unsigned number = 0; number < rules.size(); ++number) {
    const KernelRule &rule = rules[number];
    if (rule.opClass == OpClass::Send)
      continue; // messages are no ops
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

/// An op of backward that is no gradient, but brings one into another type.
static bool convertsGradient(const Op &op) {
  return op.kind == OpKind::Compute && !op.origin && op.getBlock()->getPhase() == PhaseKind::Backward &&
         llvm::any_of(op.getOperands(), [](const Value *operand) {
           return operand->primal || (operand->getOp() && isGradient(*operand->getOp()));
         });
}

/// `at` names the op whose gradient it is, `fuse` the gradient.
static bool matches(const KernelRule &rule, const Op &op) {
  const Op &named = getNamed(op);
  llvm::StringRef name = getPatternName(named);
  if (name.empty())
    return false;
  bool isFused = rule.kind == KernelRule::Kind::Fusion;
  if (!(isFused && isGradient(op)) && rule.pattern->matchesOp(named.scope, name.str()))
    return true;
  if (!isFused || !(isGradient(op) || convertsGradient(op)))
    return false;
  std::string scope = (named.scope.empty() ? "" : named.scope + ".") + getBaseName(*named.def).str();
  return rule.pattern->namesGradient() && rule.pattern->matchesOp(scope, "grad");
}

bool RuleFormulas::take(const Op &op, const KernelRule &rule, Size formula, Size &result) const {
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

llvm::SmallVector<unsigned, 4> RuleIndex::findAll(const Op &op, KernelRule::Kind kind) const {
  llvm::SmallVector<unsigned, 4> found;
  std::optional<OpClass> opClass = findOpClass(op);
  if (!opClass)
    return found;
  auto add = [&](unsigned number) {
    const KernelRule &rule = rules[number];
    bool speaks = rule.opClass == OpClass::Named ? matches(rule, op) : rule.opClass == opClass;
    if (speaks && rule.kind == kind)
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

static Size getBytes(Graph &graph, const Value &value) {
  return getLocalBytes(graph.sizes, graph.mesh, value.type, value.sharding);
}

static Size getElements(Graph &graph, const Value &value) {
  return getLocalElements(graph.sizes, graph.mesh, value.type, value.sharding);
}

static const Value *findValue(const Op &named, llvm::StringRef name) {
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

/// The parameter of which a value is a copy, in another type, place or sharding. Null for other values.
static const Value *findParameter(const Value *value) {
  while (const Op *op = value->getOp()) {
    if (op->kind == OpKind::Param)
      return value;
    bool isCopied = op->getNumOperands() == 1 && (op->kind != OpKind::Compute || op->def->isElementwise);
    if (!isCopied && !isCommunication(op->kind) && !isCopy(op->kind))
      return nullptr;
    value = isCopied ? op->getOperand(0) : getMoved(*value);
  }
  return nullptr;
}

std::optional<WeightMatrix> RuleFormulas::findWeight(const Op &op) const {
  const Op &named = getNamed(op);
  if (named.kind != OpKind::Compute)
    return std::nullopt;
  const OpDef &def = *named.def;
  std::vector<const Value *> parameters;
  llvm::SmallDenseSet<unsigned, 8> ofResults, ofOthers;
  for (const Value *operand : named.getOperands())
    parameters.push_back(findParameter(operand));
  for (const ResultInfo &result : def.results)
    ofResults.insert(result.indices.begin(), result.indices.end());
  for (unsigned i = 0; i < parameters.size(); ++i)
    if (!parameters[i])
      ofOthers.insert(def.operands[i].indices.begin(), def.operands[i].indices.end());
  llvm::SmallVector<Size, 8> sizes = getLocalIndexSizes(graph, named);
  std::optional<WeightMatrix> matrix;
  for (unsigned i = 0; i < parameters.size(); ++i) {
    if (!parameters[i])
      continue;
    Size rows = graph.sizes.one(), columns = graph.sizes.one();
    bool isReduced = false;
    for (unsigned index : def.operands[i].indices) {
      bool isColumn = ofResults.contains(index);
      isReduced |= !isColumn;
      if (!isColumn)
        rows = rows * sizes[index];
      else if (!ofOthers.contains(index))
        columns = columns * sizes[index];
    }
    if (!isReduced)
      continue; // a bias, or a scale
    if (!matrix)
      matrix = {rows, columns, parameters[i]->type.dtype};
    else if (matrix->rows == rows)
      matrix->columns = matrix->columns + columns;
  }
  return matrix;
}

/// What a symbol of a formula stands for; null if the op has nothing of this name.
Size RuleFormulas::resolve(const Op &op, llvm::StringRef symbol) const {
  const Op &named = getNamed(op);
  if (symbol == "volume")
    return getElements(graph, isPrimitive(named) ? *named.getOperand(1) : *named.getResult());
  auto [what, name] = symbol.split('.');
  const Value *value = name.empty() ? nullptr : findValue(named, name);
  if (value && what == "gathered" && !(value->getOp() && value->getOp()->kind == OpKind::AllGather))
    return graph.sizes.zero();
  if (value)
    return what == "size" ? getElements(graph, *value) : getBytes(graph, *value);
  // The gradient of a product with a vector is a product, too.
  if (name == weightName && (findOpClass(named) == OpClass::Contraction || findOpClass(op) == OpClass::Contraction)) {
    std::optional<WeightMatrix> weight = findWeight(named);
    Size elements = weight ? weight->rows * weight->columns : graph.sizes.zero();
    return what == "size" ? elements : getByteCount(elements, weight ? weight->type : DType::F32);
  }
  if (!name.empty())
    return Size();
  std::optional<unsigned> found = isPrimitive(named) ? std::nullopt : named.def->findIndex(symbol);
  return found ? getLocalIndexSizes(graph, named)[*found] : Size();
}

void RuleFormulas::reportNoName(const Op &op, const KernelRule &rule, llvm::StringRef symbol) const {
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
  if (!symbol.contains('.') && findValue(named, name)) {
    diags.report(rule.range.Start, diag::KernelBareName)
        .range(rule.range)
        .with(name, describeNamed(named))
        .note(named.loc, diag::KernelOfOp);
    return;
  }
  diags.report(rule.range.Start, diag::KernelNoName)
      .range(rule.range)
      .with(describeNamed(named), name, llvm::join(names, ", "))
      .note(named.loc, diag::KernelOfOp);
}
