//===- BindMesh.cpp - the mesh of a strategy ------------------------------===//
//
//   mesh (pp, hdp = replicas, dp) = (pp, edp, ep) on topology (1, 0, 0);
//
// Each axis gets a size, of its own expression or of the strategy's parameter of its name, and is a number in the scope
// of the body from there on. Two readings become one mesh of what they have in common (RefineMesh.cpp).
//
//===----------------------------------------------------------------------===//
#include "BindStrategy.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Suggestions.h"
#include "stage/Support/Limits.h"
#include "stage/Support/Origins.h"

using namespace stage;
using namespace stage::sema;

namespace {
class MeshBinder {
public:
  MeshBinder(Evaluator &evaluator, BoundStrategy &result)
      : evaluator(evaluator), diags(evaluator.getDiags()), result(result) {}

  bool bind(const ast::MeshStmt &mesh, Environment &env, const BoundCall &call);

private:
  bool bindTopology(const ast::MeshStmt &mesh, Environment &env);
  bool bindAxis(const ast::MeshStmt::AxisSyntax &axis, Environment &env, std::vector<BoundAxis> &into);

  Evaluator &evaluator;
  DiagnosticEngine &diags;
  BoundStrategy &result;
};
} // namespace

/// `dp = 8, tp = 4`
static std::string listSizes(ArrayRef<BoundAxis> axes) {
  std::string text;
  for (const BoundAxis &axis : axes)
    text += (text.empty() ? "" : ", ") + axis.name.name.str() + " = " + std::to_string(axis.size);
  return text;
}

bool MeshBinder::bind(const ast::MeshStmt &mesh, Environment &env, const BoundCall &call) {
  if (result.meshStmt) {
    SMRange place = call.caller ? call.range : mesh.range;
    DiagnosticBuilder error = diags.report(place.Start, diag::MeshTwice).range(place);
    if (call.caller)
      error.note(mesh.loc(), diag::OneHere);
    error.note(result.meshStmt->loc(), diag::OtherOneHere);
    return false;
  }
  result.meshStmt = &mesh;
  bool good = true;
  for (const ast::MeshStmt::AxisSyntax &axis : mesh.axes)
    good &= bindAxis(axis, env, result.readings);
  std::vector<BoundAxis> second;
  for (const ast::Ident &name : mesh.second)
    good &= bindAxis({name, nullptr}, env, second);
  if (mesh.axes.size() > maxAxes || mesh.second.size() > maxAxes) {
    size_t most = std::max(mesh.axes.size(), mesh.second.size());
    diags.report(mesh.loc(), diag::TooManyAxes).range(mesh.range) << int64_t(most) << int64_t(maxAxes);
    return false;
  }
  for (const std::vector<BoundAxis> &reading : {result.readings, second}) {
    int64_t ranks = 1;
    for (const BoundAxis &axis : reading)
      if (good && (__builtin_mul_overflow(ranks, axis.size, &ranks) || ranks > maxRanks)) {
        DiagnosticBuilder error = diags.report(mesh.loc(), diag::TooManyRanks).range(mesh.range)
                                  << maxRanks << listSizes(reading);
        std::vector<BoundAxis> largest(reading);
        llvm::stable_sort(largest, [](const BoundAxis &a, const BoundAxis &b) { return a.size > b.size; });
        for (const BoundAxis &each : largest)
          if (each.size > 1)
            setOrigin(error, each.origin);
        return false;
      }
  }
  good = good && bindTopology(mesh, env);
  if (second.empty())
    result.mesh = result.readings;
  else
    good = good && refineMesh(result, second, mesh.range, evaluator.getSizes(), diags);
  // Ranks are numbered as the network numbers its devices: dimension 0 varies fastest.
  llvm::stable_sort(result.mesh, [](const BoundAxis &a, const BoundAxis &b) {
    return a.networkDim.value_or(0) > b.networkDim.value_or(0);
  });
  return good;
}

/// `on topology (1, 0)`: per axis of the first reading the dimension of the network in which it lies. All of 0 to some
/// n have axes.
bool MeshBinder::bindTopology(const ast::MeshStmt &mesh, Environment &env) {
  std::vector<int64_t> dims;
  for (const ast::Expr *expr : mesh.topology) {
    std::optional<CTValue> value = evaluator.evaluate(expr, env);
    if (!value)
      return false;
    // A parameter of a strategy may have all of it: a list, or `none`.
    bool isWhole = mesh.topology.size() == 1 && (value->isNone() || value->getKind() == CTValue::Kind::List);
    ArrayRef<CTValue> entries = isWhole ? value->getElements() : ArrayRef<CTValue>(*value);
    if (isWhole && value->isNone())
      return true;
    for (const CTValue &entry : entries) {
      std::optional<int64_t> dim = entry.getInteger();
      if (!dim || *dim < 0 || *dim >= int64_t(mesh.axes.size())) {
        diags.report(expr->loc(), diag::TopologyDimension).range(expr->range)
            << int64_t(mesh.axes.size()) << evaluator.format(entry);
        return false;
      }
      dims.push_back(*dim);
    }
  }
  if (mesh.topology.empty())
    return true;
  if (dims.size() != mesh.axes.size()) {
    diags.report(mesh.loc(), diag::TopologyEntries).range(mesh.range)
        << int64_t(dims.size()) << int64_t(mesh.axes.size());
    return false;
  }
  int64_t last = *std::max_element(dims.begin(), dims.end());
  for (int64_t dim = 0; dim < last; ++dim)
    if (!llvm::is_contained(dims, dim)) {
      diags.report(mesh.loc(), diag::TopologyGap).range(mesh.range) << dim << last;
      return false;
    }
  for (auto [axis, dim] : llvm::zip(result.readings, dims))
    axis.networkDim = dim;
  return true;
}

bool MeshBinder::bindAxis(const ast::MeshStmt::AxisSyntax &axis, Environment &env, std::vector<BoundAxis> &into) {
  std::string what = ("the size of axis '" + axis.name.name + "'").str();
  std::optional<int64_t> size;
  SMRange origin;
  if (axis.size) {
    origin = getOrigin(axis.size, env);
    size = evaluator.evaluateInteger(axis.size, env, what);
    if (!size)
      return false;
  } else if (const CTValue *value = env.find(axis.name.name)) {
    origin = value->getOrigin();
    Size exact = value->isNumber() ? value->getSize(evaluator.getSizes()) : Size();
    std::optional<Rational> constant = exact ? exact.getConstant() : std::nullopt;
    if (!exact || (constant && !constant->isInteger())) {
      DiagnosticBuilder error = diags.report(axis.name.loc(), diag::NotAnInteger).range(axis.name.range)
                                << what << evaluator.format(*value);
      setOrigin(error, origin);
      if (constant && constant->num > 0)
        error.note(SMLoc(), diag::FormInstead)
            << axis.name.name.str() + " = " +
                   std::to_string(std::max<int64_t>(int64_t(constant->num / constant->den), 1)) + "' or '" +
                   axis.name.name.str() + " = " + std::to_string(int64_t(constant->num / constant->den) + 1);
      return false;
    }
    size = evaluator.getValue(exact, axis.name.range, what);
    if (!size)
      return false;
  }
  if (*size < 1) {
    DiagnosticBuilder error = diags.report(axis.name.loc(), *size < 0 ? diag::AxisOfRest : diag::AxisSize)
                                  .range(axis.name.range)
                                  .with(axis.name.name, *size);
    setOrigin(error, origin);
    return false;
  }
  auto other = llvm::find_if(into, [&](const BoundAxis &known) { return known.name.name == axis.name.name; });
  if (other != into.end()) {
    diags.report(axis.name.loc(), diag::Redefinition)
        .range(axis.name.range)
        .with(axis.name.name)
        .note(other->name.loc(), diag::PreviousHere)
        .with(axis.name.name);
    return false;
  }
  if (!env.find(axis.name.name)) {
    CTValue value = CTValue::integer(*size);
    value.setOrigin(origin);
    env.define(axis.name.name, std::move(value));
  }
  into.push_back({axis.name, *size, std::nullopt, origin});
  return true;
}

bool stage::sema::bindMesh(Evaluator &evaluator, BoundStrategy &strategy, const ast::MeshStmt &mesh, Environment &env,
                           const BoundCall &call) {
  return MeshBinder(evaluator, strategy).bind(mesh, env, call);
}
