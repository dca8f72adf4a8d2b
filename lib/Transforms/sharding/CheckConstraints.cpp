//===- CheckConstraints.cpp - what rules leave must be possible -----------===//
#include "CheckConstraints.h"
#include "stage/IR/algebra/Fold.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IR/graph/ShardingRules.h"
#include "stage/IR/text/Text.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Suggestions.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

std::string stage::getDimName(const Value &value, unsigned d) {
  const Extent &extent = value.type.shape[d];
  return extent.dim ? extent.dim->name : extent.size.str();
}

std::string stage::getNameForRules(const Value &value) { return value.path.empty() ? "a value" : value.path; }

/// Reports axes that would split two dims. Returns the axes that are used.
static AxisSet checkAxes(const Graph &graph, const Value &value, AxisSet &reported, DiagnosticEngine &diags) {
  const Constraint &constraint = value.constraint;
  AxisSet seen = 0;
  for (unsigned d = 0; d < constraint.dims.size(); ++d) {
    if (!constraint.dims[d])
      continue;
    for (AxisId axis : *constraint.dims[d]) {
      if (!(seen >> axis & 1)) {
        seen |= AxisSet(1) << axis;
        continue;
      }
      if (reported >> axis & 1)
        continue; // one message of an axis is enough: other tensors have the same two rules
      reported |= AxisSet(1) << axis;
      unsigned first = 0;
      while (!constraint.dims[first] || !llvm::is_contained(*constraint.dims[first], axis))
        ++first;
      DiagnosticBuilder message = diags.report(constraint.loc.isValid() ? constraint.loc : value.loc, diag::AxisTwice)
                                  << graph.mesh[axis].name << getDimName(value, first) << getDimName(value, d)
                                  << getNameForRules(value);
      message.note(value.loc, diag::PreviousHere) << getNameForRules(value);
      for (unsigned dim : {first, d})
        for (const Rule &rule : graph.rules)
          if (rule.kind == RuleKind::Shard && llvm::is_contained(rule.dims, getDimName(value, dim)) &&
              llvm::is_contained(rule.axes, axis) && rule.loc.isValid() && rule.loc != constraint.loc)
            message.note(rule.loc, diag::AxisSplitsHere) << getDimName(value, dim) << graph.mesh[axis].name;
    }
  }
  return seen | constraint.replicated | constraint.partial.value_or(0);
}

bool stage::checkRing(Graph &graph, const Rule &rule, const Op &op, unsigned index, llvm::ArrayRef<PlacedAxis> axes,
                      DiagnosticEngine &diags) {
  const OpDef &def = op.def->vjpOf ? *op.def->vjpOf : *op.def;
  auto refuse = [&](auto message, const auto &...why) {
    DiagnosticBuilder error =
        diags.report(rule.loc, message)
            .with(def.name, def.indices[index].name, llvm::join(listAxisNames(graph.mesh, axes), ", "), why...);
    if (def.loc.isValid())
      error.note(def.loc, diag::OpDeclaredHere) << def.name;
    return false;
  };
  if (axes.size() > 1)
    return refuse(diag::RingOverSeveral);
  if (axes.front() == graph.pipeline.axis)
    return refuse(diag::RingNotPossible, "it carries the pipeline");
  Fold fold = deriveFold(def, index, graph.defs);
  if (!fold.fault.empty())
    return refuse(diag::RingNotPossible, fold.fault);
  llvm::SmallVector<unsigned, 4> savedOperands, savedResults;
  listSaved(def, savedOperands, savedResults);
  for (unsigned result : fold.carried)
    if (graph.training && !llvm::is_contained(savedResults, result))
      return refuse(diag::RingNotPossible,
                    "the gradient of a block needs '" + def.results[result].name + "', which it does not save");
  return true;
}

void stage::checkRingRows(const Graph &graph, const Op &op, DiagnosticEngine &diags) {
  if (!op.ring)
    return;
  AxisSet paired = getPairedAxes(op) & ~getAxesTwice(op);
  for (AxisId axis : op.indexAxes[*op.ring])
    if (!(paired >> axis & 1) && !diags.hasErrors()) {
      DiagnosticBuilder message = diags.report(op.loc, diag::RingWithoutRows)
                                  << op.def->name << op.def->indices[*op.ring].name << graph.mesh[axis].name;
      for (const Rule &rule : graph.rules)
        if (rule.kind == RuleKind::Ring && llvm::is_contained(rule.axes, axis))
          message.note(rule.loc, diag::RingRuleHere);
    }
  // Under a mask each row sees itself, and so a pair of the first block if that has the row: sums over nothing do not
  // tell what came before.
  const std::optional<Mask> &mask = op.def->mask;
  if (op.def->vjpOf || !mask || mask->kind == Mask::Kind::Full)
    return;
  llvm::ArrayRef<PlacedAxis> rows = op.indexAxes[mask->rows], columns = op.indexAxes[mask->columns];
  bool hasOwnRows = op.ring == mask->columns && rows.take_front(columns.size()) == columns &&
                    op.extents[mask->rows].size == op.extents[mask->columns].size;
  if (!hasOwnRows && !diags.hasErrors())
    diags.report(op.loc, diag::RingBeginsElsewhere)
        << op.def->name << op.def->indices[*op.ring].name << op.def->indices[mask->rows].name
        << op.def->indices[mask->columns].name;
}

/// `S over cp`: a dim of an input that no rule splits, or else `B over (dp, cp)`.
static std::string suggestRule(const Graph &graph, const RuleTargets &targets, AxisId axis) {
  const std::string &name = graph.mesh[axis].name;
  auto findRule = [&](llvm::StringRef dim) {
    return llvm::find_if(graph.rules, [&](const Rule &rule) {
      return rule.kind == RuleKind::Shard && !rule.pattern && llvm::is_contained(rule.dims, dim);
    });
  };
  std::string first;
  for (auto [value, op] : targets.getValues())
    if (op && op->kind == OpKind::Input)
      for (unsigned d = 0; d < value->type.getNumDims(); ++d) {
        std::string dim = getDimName(*value, d);
        if (first.empty())
          first = dim;
        if (findRule(dim) == graph.rules.end())
          return dim + " over " + name;
      }
  if (first.empty())
    return "B over " + name;
  std::vector<std::string> axes;
  for (AxisId known : findRule(first)->axes)
    axes.push_back(graph.mesh[known].name);
  axes.push_back(name);
  return first + " over " + (axes.size() > 1 ? "(" + llvm::join(axes, ", ") + ")" : name);
}

void stage::checkConstraints(const Graph &graph, const RuleTargets &targets, AxisSet usedAxes,
                             DiagnosticEngine &diags) {
  AxisSet reported = 0;
  for (auto [value, op] : targets.getValues())
    usedAxes |= checkAxes(graph, *value, reported, diags);
  if (graph.pipeline.axis)
    usedAxes |= AxisSet(1) << *graph.pipeline.axis;
  for (AxisId axis = 0; axis < graph.mesh.getAxes().size(); ++axis)
    if (graph.mesh[axis].size > 1 && !(usedAxes >> axis & 1) && !diags.hasErrors())
      diags.report(graph.mesh[axis].loc, diag::UnusedAxis)
          .with(graph.mesh[axis].name, graph.mesh[axis].size)
          .note(SMLoc(), diag::ShardInstead)
          .with(suggestRule(graph, targets, axis));
}
