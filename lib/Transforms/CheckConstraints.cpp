//===- CheckConstraints.cpp - what rules leave must be possible -----------===//
#include "CheckConstraints.h"
#include "stage/Transforms/Diagnostics.h"

using namespace stage;

std::string stage::getDimName(const Value &value, unsigned d) {
  const Extent &extent = value.type.shape[d];
  return extent.dim ? extent.dim->name : extent.size.str();
}

std::string stage::getNameForRules(const Value &value) { return value.path.empty() ? "a value" : value.path; }

/// Reports axes that would split two dims. Returns the axes that are used.
static AxisSet checkAxes(const Graph &graph, const Value &value, DiagnosticEngine &diags) {
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
      unsigned first = 0;
      while (!constraint.dims[first] || !llvm::is_contained(*constraint.dims[first], axis))
        ++first;
      DiagnosticBuilder message =
          diags.report(constraint.loc.isValid() ? constraint.loc : value.loc, diag::AxisTwice);
      message << graph.mesh[axis].name << getDimName(value, first) << getDimName(value, d) << getNameForRules(value);
      message.note(value.loc, diag::PreviousHere) << getNameForRules(value);
    }
  }
  return seen | constraint.replicated | constraint.partial.value_or(0);
}

void stage::checkConstraints(const Graph &graph, const RuleTargets &targets, AxisSet usedAxes,
                             DiagnosticEngine &diags) {
  for (auto [value, op] : targets.getValues())
    usedAxes |= checkAxes(graph, *value, diags);
  if (graph.pipeline.axis)
    usedAxes |= AxisSet(1) << *graph.pipeline.axis;
  for (AxisId axis = 0; axis < graph.mesh.getAxes().size(); ++axis)
    if (graph.mesh[axis].size > 1 && !(usedAxes >> axis & 1) && !diags.hasErrors())
      diags.report(graph.mesh[axis].loc, diag::UnusedAxis) << graph.mesh[axis].name << graph.mesh[axis].size;
}
