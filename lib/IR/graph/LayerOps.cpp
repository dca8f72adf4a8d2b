//===- LayerOps.cpp - the ops of one layer --------------------------------===//
#include "stage/IR/graph/LayerOps.h"
#include "stage/IR/graph/PathPattern.h"
#include "llvm/ADT/DenseSet.h"

using namespace stage;

namespace {
/// `layers[3].attn`: names, and the iteration that stands behind the first one.
struct LayerPath {
  PathNames names;
  int64_t iteration = 0;
};

class LayerFinder {
public:
  explicit LayerFinder(const LayerPath &path) : path(path) {}
  std::vector<const Op *> find(const Block &block);

private:
  bool isInside(llvm::StringRef place) const {
    PathNames names = splitPath(place);
    return names.size() >= path.names.size() && std::equal(path.names.begin(), path.names.end(), names.begin());
  }
  bool isInside(const Op &op) const {
    return isInside(op.scope) ||
           llvm::any_of(op.getResults(), [&](const auto &result) { return isInside(result->path); });
  }
  /// `isWhole`: all ops of the block belong to the layer.
  void visit(const Block &block, bool isWhole);
  void visitRepeat(const Op &repeat, bool isWhole);

  const LayerPath &path;
  std::vector<const Op *> ops;
  llvm::DenseSet<const Op *> inside;
};
} // namespace

void LayerFinder::visitRepeat(const Op &repeat, bool isWhole) {
  PathNames names = splitPath(repeat.name);
  bool isNamed =
      !names.empty() && names.size() <= path.names.size() && std::equal(names.begin(), names.end(), path.names.begin());
  bool hasIteration = isNamed && path.iteration < std::max<int64_t>(1, repeat.cases.getNumIterations());
  const Block &body = hasIteration ? repeat.getBody(path.iteration) : *repeat.bodies.front();
  visit(body, isWhole || (isNamed && names.size() == path.names.size()));
}

void LayerFinder::visit(const Block &block, bool isWhole) {
  for (const std::unique_ptr<Op> &op : block)
    if (op->kind == OpKind::Repeat)
      visitRepeat(*op, isWhole);
    else if (op->kind != OpKind::Yield && op->kind != OpKind::Return && (isWhole || isInside(*op)))
      inside.insert(op.get());
  // A user stands behind what it uses.
  if (!isWhole)
    for (auto at = block.end(); at != block.begin();)
      if (const Op &op = **--at; isReshard(op.kind) && llvm::any_of(op.getResults(), [&](const auto &result) {
                                   return llvm::any_of(result->getUses(), [&](const auto &use) {
                                     return use.first->getBlock() == &block && inside.count(use.first);
                                   });
                                 }))
        inside.insert(&op);
  for (const std::unique_ptr<Op> &op : block)
    if (inside.count(op.get()))
      ops.push_back(op.get());
}

std::vector<const Op *> LayerFinder::find(const Block &block) {
  visit(block, /*isWhole=*/false);
  return std::move(ops);
}

std::optional<LayerOps> stage::findLayer(const Graph &graph, llvm::StringRef text) {
  LayerPath path;
  std::string plain;
  for (llvm::StringRef rest = text; !rest.empty();) {
    auto [before, behind] = rest.split('[');
    plain += before.str();
    auto [number, after] = behind.split(']');
    if (!behind.empty() && number.getAsInteger(10, path.iteration))
      return std::nullopt;
    rest = after;
  }
  path.names = splitPath(plain);
  LayerOps layer;
  layer.path = text.str();
  for (const Block &phase : graph.getPhases())
    if (std::vector<const Op *> ops = LayerFinder(path).find(phase); !ops.empty())
      layer.phases.push_back({phase.getPhase(), std::move(ops)});
  return layer.phases.empty() || path.names.empty() ? std::nullopt : std::optional(std::move(layer));
}

std::vector<std::string> stage::listLayers(const Graph &graph) {
  std::vector<std::string> paths;
  auto add = [&](llvm::StringRef path) {
    if (!path.empty() && !llvm::is_contained(paths, path))
      paths.push_back(path.str());
  };
  Graph::walk(graph.getForward(), [&](Op &op) { add(op.kind == OpKind::Repeat ? op.name : op.scope); });
  return paths;
}
