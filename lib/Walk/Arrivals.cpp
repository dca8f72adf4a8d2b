//===- Arrivals.cpp - when what a unit needs begins to arrive -------------===//
#include "stage/Walk/Arrivals.h"
#include "stage/IR/graph/Costs.h"

using namespace stage;

bool stage::hasWork(const Graph &graph, llvm::ArrayRef<ProgramItem> items) {
  bool found = false;
  forEachOp(items, [&](const Op &op, int64_t) { found = found || (isLoader(op.kind) && hasNode(graph, op)); });
  return found;
}

uint64_t stage::countRoomAhead(const Graph &graph, llvm::ArrayRef<ProgramItem> items) {
  if (!graph.prefetch)
    return 0;
  uint64_t held = 0, most = uint64_t(graph.prefetch) + 1;
  forEachOp(items, [&](Op &op, int64_t times) {
    if (isReleaseOfPrefetched(op) && op.getOperand(0)->getBlock()->getPhase() != op.getBlock()->getPhase())
      held += times;
  });
  return most - std::min(held, most);
}

Arrivals::Arrivals(const Graph &graph, const StageProgram &stage, unsigned steps) : posts(stage.posts) {
  llvm::DenseMap<const UnitTemplate *, bool> works;
  size_t unitsPerStep = stage.units.size() / steps;
  std::optional<unsigned> latest;
  std::optional<unsigned> ofPair; // the first unit with work of the pair that is listed
  for (unsigned position = 0; position < stage.units.size(); ++position) {
    const Unit &unit = stage.units[position];
    pairBegins.push_back(unsigned(getPairBegin(stage.units, position)));
    const UnitTemplate *found = stage.find(unit.kind, unit.chunk);
    auto [known, isNew] = works.try_emplace(found, false);
    if (isNew)
      known->second = found && hasWork(graph, found->items);
    bool isOnce = isOncePerStep(unit.kind);
    loaders.push_back(isOnce ? std::nullopt : latest);
    bool endsStep = (position + 1) % unitsPerStep == 0;
    if (known->second && (!isOnce || endsStep))
      ofPair = ofPair.value_or(position);
    // What is behind a pair is loaded beside it; what is in it, before it.
    if (ofPair && !unit.overlapsNext)
      latest = std::exchange(ofPair, std::nullopt);
  }
}

unsigned Arrivals::getPost(unsigned position) const {
  return pairBegins[position < posts.size() ? posts[position] : loaders[position].value_or(0)];
}

std::vector<unsigned> Arrivals::listPosts() const {
  std::vector<unsigned> all;
  for (unsigned position = 0; position < loaders.size(); ++position)
    all.push_back(getPost(position));
  return all;
}
