//===- QuantizeRules.cpp - what rules quantize ----------------------------===//
#include "training/QuantizeRules.h"
#include "stage/IR/graph/Identity.h"
#include "stage/Transforms/Diagnostics.h"
#include "training/QuantizedOperands.h"

using namespace stage;

bool QuantizeRules::choose(DiagnosticEngine &diags) {
  unsigned errors = diags.getNumErrors();
  for (const Rule &rule : graph.rules)
    if (rule.kind == RuleKind::Quantize && !(rule.pattern->namesGradient() && !graph.training))
      choose(rule, diags);
  dropReadersOfCaches();
  for (auto &[loc, patterns] : listUnusedStatements(graph, RuleKind::Quantize, used))
    diags.report(loc, diag::NothingToQuantize) << patterns;
  return diags.getNumErrors() == errors;
}

static bool isOtherCase(const Block &block, const Rule &rule) {
  return rule.cases && block.getParent() && !llvm::is_contained(*rule.cases, block.getNumber());
}

void QuantizeRules::choose(const Rule &rule, DiagnosticEngine &diags) {
  bool any;
  if (rule.pattern->isOfResults() && rule.pattern->matchesOps()) {
    any = targets.forEachOp(*rule.pattern, [&](Op &op) {
      for (auto &result : op.getResults())
        chooseResult(*result, rule);
    });
  } else if (rule.pattern->isOfResults()) {
    any = targets.forEachValue(*rule.pattern, [&](Value &value, Op *op) {
      if (!op || !isReshard(op->kind)) // these have the names of what they bring
        chooseResult(value, rule);
    });
  } else if (rule.pattern->matchesOps()) {
    any = targets.forEachOp(*rule.pattern, [&](Op &op) { chooseOp(op, rule); });
  } else {
    any = targets.forEachValue(*rule.pattern, [&](Value &value, Op *op) { chooseState(value, op, rule); });
  }
  if (!any && !rule.pattern->mayLack())
    targets.reportUnmatched(rule, diags);
}

bool QuantizeRules::isSent(const Op &op) {
  return (op.kind == OpKind::AllGather || op.kind == OpKind::AllToAll || op.kind == OpKind::Permute) &&
         op.getNumOperands() == 1;
}

/// Of a value that is not partial a reshard sends something to other ranks, at once or behind what each rank does by
/// itself.
static bool isSentAnywhere(const Value &value) {
  return llvm::any_of(value.getUses(), [&](auto use) {
    return isReshard(use.first->kind) &&
           ((QuantizeRules::isSent(*use.first) && !value.sharding.partial) || isSentAnywhere(*use.first->getResult()));
  });
}

void QuantizeRules::chooseResult(Value &value, const Rule &rule) {
  if (isOtherCase(*value.getBlock(), rule) || !isNarrowed(value.type, rule) || !isSentAnywhere(value))
    return;
  results[&value] = rule.type ? &rule : nullptr;
  used.insert(rule.statement);
}

void QuantizeRules::chooseOp(Op &op, const Rule &rule) {
  if (isOtherCase(*op.getBlock(), rule) || !isNarrowed(op, rule))
    return;
  ops[&op] = &rule; // the last rule holds
  if (isQuantizableAttention(op))
    attentions.push_back({&op, &rule});
  else
    used.insert(rule.statement);
}

void QuantizeRules::chooseState(Value &value, const Op *op, const Rule &rule) {
  bool isMeant = op && isState(op->kind) && !(rule.pattern->isOfParameters() && op->kind == OpKind::Cache);
  if (!isMeant || isOtherCase(*value.getBlock(), rule) || !isNarrowed(value, rule))
    return;
  states[&value] = rule.type ? &rule : nullptr;
  used.insert(rule.statement);
}

void QuantizeRules::dropReadersOfCaches() {
  for (auto [op, rule] : attentions) {
    bool readsPlain = llvm::any_of(listQuantizedOperands(*op), [&](unsigned operand) {
      Value *cache = findCache(*op->getOperand(operand));
      return cache && !states.lookup(cache);
    });
    if (readsPlain && rule->type)
      ops.erase(op);
    else
      used.insert(rule->statement);
  }
}

/// What the program declares in a type of its own stays in that.
bool QuantizeRules::isNarrowed(const TensorType &type, const Rule &rule) const {
  return (type.dtype == graph.precision.weight || type.dtype == graph.precision.activation) &&
         (!rule.type || getBitSize(*rule.type) < getBitSize(type.dtype));
}

bool QuantizeRules::isNarrowed(const Op &op, const Rule &rule) const {
  llvm::SmallVector<unsigned, 4> operands = listQuantizedOperands(op);
  return !operands.empty() &&
         llvm::all_of(operands, [&](unsigned operand) { return isNarrowed(op.getOperand(operand)->type, rule); });
}

bool QuantizeRules::isNarrowed(Value &state, const Rule &rule) const {
  return isNarrowed(state.type, rule) && (state.getOp()->kind == OpKind::Cache || findReader(state));
}

std::optional<std::pair<Op *, unsigned>> QuantizeRules::findReader(Value &state) {
  std::optional<std::pair<Op *, unsigned>> found;
  llvm::SmallVector<Value *, 4> forms = {&state};
  while (!forms.empty())
    for (auto use : forms.pop_back_val()->getUses()) {
      if (use.first->kind == OpKind::Compute && use.first->def->isView)
        return std::nullopt;
      if (isReshard(use.first->kind))
        forms.push_back(use.first->getResult());
      else if (isQuantizableProduct(*use.first) && (!found || (found->first->origin && !use.first->origin)))
        found = use;
    }
  return found;
}

/// A rule for an op is one for its gradients, unless there is one for these.
const Rule *QuantizeRules::findRule(const Op &op) const {
  for (const Op *of = &op; of; of = of->origin)
    if (const Rule *rule = ops.lookup(of))
      return rule->type && isNarrowed(op, *rule) ? rule : nullptr;
  return nullptr;
}
