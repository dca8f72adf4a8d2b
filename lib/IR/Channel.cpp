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

/// Whether the parts of `inner` are parts of those of `outer`.
static bool cutsFurther(const Mesh &outerMesh, llvm::ArrayRef<PlacedAxis> outer, const Mesh &innerMesh,
                        llvm::ArrayRef<PlacedAxis> inner) {
  if (countParts(innerMesh, inner) % countParts(outerMesh, outer))
    return false;
  if (isPlain(outer) && isPlain(inner))
    return true;
  for (unsigned i = 0; i < outer.size(); ++i)
    if (i >= inner.size() || outerMesh[outer[i]].size != innerMesh[inner[i]].size ||
        outer[i].layout != inner[i].layout || outer[i].rotation != inner[i].rotation)
      return false;
  return true;
}

/// How a dim is cut on both sides.
struct CutDim {
  int64_t held, needed; ///< In so many parts.
  /// The first part of the sender's that overlaps with one of the receiver's, and how many do.
  int64_t getFirst(int64_t part) const { return needed > held ? part / (needed / held) : part * (held / needed); }
  int64_t getCount() const { return needed > held ? 1 : held / needed; }
};

std::string stage::connect(Channel &channel) {
  const Mesh &from = channel.from->graph->mesh, &to = channel.to->graph->mesh;
  const Sharding &held = channel.output->sharding, &needed = channel.input->sharding;
  if (held.partial || needed.partial)
    return "a partial sum is not sent";
  if (!held.flat.empty() || !needed.flat.empty())
    return "what is stored flat is not sent";
  if (held.getListed() || needed.getListed())
    return "what is dealt out by a table is not sent";
  llvm::SmallVector<CutDim, 4> dims;
  channel.numMessages = 1;
  for (unsigned d = 0; d < held.dims.size(); ++d) {
    if (!cutsFurther(from, held.dims[d], to, needed.dims[d]) && !cutsFurther(to, needed.dims[d], from, held.dims[d]))
      return "dim " + std::to_string(d) + " is cut in two ways of which none cuts the parts of the other";
    dims.push_back({countParts(from, held.dims[d]), countParts(to, needed.dims[d])});
    channel.numMessages *= dims.back().getCount();
  }
  // Ranks by the piece that they hold, and messages by the piece that they are of.
  int64_t numPieces = from.getGroupSize(held.getSharded());
  std::vector<std::vector<int64_t>> holders(numPieces);
  std::vector<std::vector<Channel::Receiver>> wanted(numPieces);
  for (int64_t rank = 0; rank < from.getNumRanks(); ++rank) {
    int64_t piece = 0;
    for (const AxisList &axes : held.dims)
      piece = piece * countParts(from, axes) + getPart(from, axes, rank);
    if (isOfStage(*channel.from, rank, channel.fromStage))
      holders[piece].push_back(rank);
  }
  for (int64_t rank = 0; rank < to.getNumRanks(); ++rank)
    for (unsigned message = 0; isOfStage(*channel.to, rank, channel.toStage) && message < channel.numMessages;
         ++message) {
      int64_t piece = 0, rest = message, messages = channel.numMessages;
      for (unsigned d = 0; d < dims.size(); ++d) { // the last dim counts fastest
        messages /= dims[d].getCount();
        piece = piece * dims[d].held + dims[d].getFirst(getPart(to, needed.dims[d], rank)) + rest / messages;
        rest %= messages;
      }
      wanted[piece].push_back({rank, message});
    }
  channel.senders.assign(to.getNumRanks(), {});
  channel.receivers.assign(from.getNumRanks(), {});
  for (auto [having, messages] : llvm::zip(holders, wanted))
    for (size_t i = 0; i < messages.size(); ++i) {
      int64_t sender = having[i * having.size() / messages.size()];
      llvm::SmallVector<int64_t, 1> &senders = channel.senders[messages[i].rank];
      senders.resize(channel.numMessages);
      senders[messages[i].message] = sender;
      channel.receivers[sender].push_back(messages[i]);
    }
  return "";
}
