//===- ModelCache.cpp - graphs of models, made once for many plans --------===//
#include "stage/IRGen/ModelCache.h"

using namespace stage;
using sema::CTValue;

constexpr size_t maxModels = 16;

//===----------------------------------------------------------------------===//
// What a model's graph is made from
//===----------------------------------------------------------------------===//

static bool areSame(const sema::NamedValue &a, const sema::NamedValue &b);

/// Where values stand does not count: a model about which nothing is said shows no places.
static bool areSame(const CTValue &a, const CTValue &b) {
  if (a.getKind() != b.getKind() || a.getTag() != b.getTag())
    return false;
  auto areSameLists = [](const auto &left, const auto &right) {
    return left.size() == right.size() &&
           std::equal(left.begin(), left.end(), right.begin(), [](auto &x, auto &y) { return areSame(x, y); });
  };
  switch (a.getKind()) {
  case CTValue::Kind::None:
    return true;
  case CTValue::Kind::Size:
    return a.isSameNumber(b);
  case CTValue::Kind::Quantity:
    return a.isSameNumber(b) && a.getDimension() == b.getDimension();
  case CTValue::Kind::Real:
    return a.isSameNumber(b) && a.getReal() == b.getReal();
  case CTValue::Kind::Bool:
    return a.getBool() == b.getBool() && a.getMargin() == b.getMargin();
  case CTValue::Kind::String:
  case CTValue::Kind::Word:
    return a.getText() == b.getText();
  case CTValue::Kind::Decl:
    return a.getDecl() == b.getDecl() && areSameLists(a.getArguments(), b.getArguments());
  case CTValue::Kind::List:
  case CTValue::Kind::Tuple:
  case CTValue::Kind::Range:
  case CTValue::Kind::Axes:
    return areSameLists(a.getElements(), b.getElements());
  case CTValue::Kind::Function:
    return a.getFunction() == b.getFunction();
  case CTValue::Kind::Foreign:
    return a.getForeign() == b.getForeign();
  }
  llvm_unreachable("covered switch");
}

static bool areSame(const sema::NamedValue &a, const sema::NamedValue &b) {
  return a.name.name == b.name.name && areSame(a.value, b.value);
}

static bool areSame(const std::vector<sema::NamedValue> &a, const std::vector<sema::NamedValue> &b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](auto &x, auto &y) { return areSame(x, y); });
}

static bool areSame(const Precision &a, const Precision &b) {
  return std::tie(a.weight, a.activation, a.gradient, a.master, a.separateAccumulation) ==
         std::tie(b.weight, b.activation, b.gradient, b.master, b.separateAccumulation);
}

static bool areSame(llvm::ArrayRef<Obligations::Obligation> a, llvm::ArrayRef<Obligations::Obligation> b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](auto &x, auto &y) {
           return x.kind == y.kind && x.left == y.left && x.right == y.right && x.loc == y.loc && x.reason == y.reason;
         });
}

/// Axes of size 1 are as good as none; what the others' sizes are, an annotation does not say.
static std::string describeAxes(const Mesh &mesh) {
  std::string text;
  for (const Axis &axis : mesh.getAxes())
    text += axis.name + (axis.size == 1 ? "1 " : " ");
  for (const AxisGroup &group : mesh.getGroups()) {
    text += "; " + group.name;
    for (AxisId axis : group.axes)
      text += " " + std::to_string(axis);
  }
  return text;
}

bool ModelCache::isFor(const Model &model, const Graph &graph, const sema::BoundJob &job) {
  return model.decl == job.decl && model.module == job.model && model.isTraining == job.isTraining &&
         areSame(model.precision, graph.precision) && areSame(model.arguments, job.modelArgs) &&
         areSame(model.stepDims, job.stepDims) && areSame(model.before, graph.obligations.all()) &&
         (!model.mesh || *model.mesh == describeAxes(graph.mesh)) && model.queries.agreesWith(graph.binding);
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

void ModelCache::finish(Model &model) {
  model.isFinished = true;
  llvm::SourceMgr noSources;
  DiagnosticEngine silent(noSources);
  auto graph = std::make_shared<Graph>(model.graph->sizes);
  graph->loc = model.graph->loc;
  graph->training = model.isTraining;
  graph->precision = model.precision;
  graph->binding = model.graph->binding;
  graph->obligations = model.graph->obligations;
  graph->copyModel(model.graph);
  {
    RecordQueries record(graph->binding, model.queries);
    differentiate(*graph, silent);
    graph->passes.push_back("differentiate");
  }
  // What is wrong is said of the plan, when the pass runs.
  if (!silent.getNumMessages())
    model.graph = std::move(graph);
}

bool ModelCache::find(Graph &graph, const sema::BoundJob &job) {
  auto found = llvm::find_if(models, [&](const Model &model) { return isFor(model, graph, job); });
  if (found == models.end())
    return false;
  if (!found->isFinished)
    finish(*found);
  graph.obligations = found->graph->obligations;
  graph.copyModel(found->graph);
  return true;
}

bool ModelCache::make(Graph &graph, const sema::BoundJob &job, DiagnosticEngine &diags,
                      llvm::function_ref<bool(Graph &, bool &)> lower) {
  auto made = std::make_shared<Graph>(graph.sizes);
  made->name = graph.name;
  made->loc = graph.loc;
  made->precision = graph.precision;
  made->mesh = graph.mesh;
  made->binding = graph.binding;
  made->obligations = graph.obligations;
  SizeQueries queries;
  bool namesAxes = false;
  unsigned messagesBefore = diags.getNumMessages();
  {
    RecordQueries record(made->binding, queries);
    if (!lower(*made, namesAxes))
      return false;
  }
  if (diags.getNumMessages() == messagesBefore) {
    if (models.size() == maxModels)
      models.pop_front();
    Model &model = models.emplace_back();
    model.decl = job.decl;
    model.module = job.model;
    model.arguments = job.modelArgs;
    model.stepDims = job.stepDims;
    model.precision = graph.precision;
    model.isTraining = job.isTraining;
    model.before = graph.obligations.all().vec();
    model.queries = std::move(queries);
    if (namesAxes)
      model.mesh = describeAxes(graph.mesh);
    model.graph = made;
  }
  graph.obligations = made->obligations;
  graph.copyModel(std::move(made));
  return true;
}
