//===- Channel.cpp - who sends what to whom between two parts -------------===//
#include "stage/IR/Channel.h"

using namespace stage;

bool stage::isOfStage(const Program &program, int64_t rank, unsigned stage) {
  const Graph &graph = *program.graph;
  return !graph.pipeline.axis || program.numStages == 1 ||
         graph.mesh.getCoordinate(rank, *graph.pipeline.axis) == int64_t(stage);
}

std::pair<size_t, size_t> Channel::countMessages() const {
  size_t most = 0, fewest = SIZE_MAX;
  for (size_t rank = 0; rank < receivers.size(); ++rank)
    if (isOfStage(*from, rank, fromStage)) {
      most = std::max(most, receivers[rank].size());
      fewest = std::min(fewest, receivers[rank].size());
    }
  return {most, fewest};
}

/// Blocks by coordinate, however many axes they are.
static bool isPlain(llvm::ArrayRef<PlacedAxis> axes) {
  return llvm::all_of(axes, [](const PlacedAxis &axis) { return axis.isPlain(); });
}

static int64_t countParts(const Mesh &mesh, llvm::ArrayRef<PlacedAxis> axes) { return mesh.getGroupSize(toSet(axes)); }

/// Which of them a rank has.
static int64_t getPart(const Mesh &mesh, llvm::ArrayRef<PlacedAxis> axes, int64_t rank) {
  int64_t part = 0;
  for (const PlacedAxis &axis : axes)
    part = part * mesh[axis].size + mesh.getPart(axis, mesh.getCoordinate(rank, axis));
  return part;
}

/// Into how many parts the receiver cuts each part of a dim of the sender; nothing if it does not.
static std::optional<int64_t> countPartsOfPart(const Mesh &from, llvm::ArrayRef<PlacedAxis> outer, const Mesh &to,
                                               llvm::ArrayRef<PlacedAxis> inner) {
  int64_t parts = countParts(from, outer), all = countParts(to, inner);
  if (all % parts)
    return std::nullopt;
  if (isPlain(outer) && isPlain(inner))
    return all / parts;
  for (unsigned i = 0; i < outer.size(); ++i)
    if (i >= inner.size() || from[outer[i]].size != to[inner[i]].size || outer[i].layout != inner[i].layout ||
        outer[i].rotation != inner[i].rotation)
      return std::nullopt;
  return all / parts;
}

std::string stage::connect(Channel &channel) {
  const Mesh &from = channel.from->graph->mesh, &to = channel.to->graph->mesh;
  const Sharding &held = channel.output->sharding, &needed = channel.input->sharding;
  if (held.partial || needed.partial)
    return "a partial sum is not sent";
  if (!held.flat.empty() || !needed.flat.empty())
    return "what is stored flat is not sent";
  if (held.getListed() || needed.getListed())
    return "what is dealt out by a table is not sent";
  llvm::SmallVector<int64_t, 4> partsOfPart;
  for (unsigned d = 0; d < held.dims.size(); ++d) {
    std::optional<int64_t> count = countPartsOfPart(from, held.dims[d], to, needed.dims[d]);
    if (!count)
      return "in dim " + std::to_string(d) + " what a rank needs is not part of what one rank has";
    partsOfPart.push_back(*count);
  }
  // Ranks by the piece that they hold or want a part of.
  int64_t numPieces = from.getGroupSize(held.getSharded());
  std::vector<std::vector<int64_t>> holders(numPieces), users(numPieces);
  for (int64_t rank = 0; rank < from.getNumRanks(); ++rank) {
    int64_t piece = 0;
    for (const AxisList &axes : held.dims)
      piece = piece * countParts(from, axes) + getPart(from, axes, rank);
    if (isOfStage(*channel.from, rank, channel.fromStage))
      holders[piece].push_back(rank);
  }
  for (int64_t rank = 0; rank < to.getNumRanks(); ++rank) {
    int64_t piece = 0;
    for (unsigned d = 0; d < needed.dims.size(); ++d)
      piece = piece * countParts(from, held.dims[d]) + getPart(to, needed.dims[d], rank) / partsOfPart[d];
    if (isOfStage(*channel.to, rank, channel.toStage))
      users[piece].push_back(rank);
  }
  channel.senders.assign(to.getNumRanks(), -1);
  channel.receivers.assign(from.getNumRanks(), {});
  for (auto [having, wanted] : llvm::zip(holders, users))
    for (size_t i = 0; i < wanted.size(); ++i) {
      int64_t sender = having[i * having.size() / wanted.size()];
      channel.senders[wanted[i]] = sender;
      channel.receivers[sender].push_back(wanted[i]);
    }
  return "";
}
