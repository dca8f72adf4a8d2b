//===- Exchange.cpp - which rank sends which piece to which ---------------===//
#include "stage/IR/graph/Exchange.h"

using namespace stage;

bool stage::isOfStage(const Program &program, int64_t rank, unsigned stage) {
  const Graph &graph = *program.graph;
  return !graph.pipeline.axis || program.numStages == 1 ||
         graph.mesh.getCoordinate(rank, *graph.pipeline.axis) == int64_t(stage);
}

std::pair<size_t, size_t> Exchange::countMessages() const {
  size_t most = 0, fewest = SIZE_MAX;
  for (int64_t rank = 0; rank < from->graph->mesh.getNumRanks(); ++rank)
    if (isOfStage(*from, rank, fromStage)) {
      most = std::max(most, getReceivers(rank, 0).size());
      fewest = std::min(fewest, getReceivers(rank, 0).size());
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

/// Whether the parts of `inner` are parts of those of `outer`. Each counts so many times: in the batches of which it is
/// one.
static bool cutsFurther(const Mesh &outerMesh, llvm::ArrayRef<PlacedAxis> outer, int64_t outerTimes,
                        const Mesh &innerMesh, llvm::ArrayRef<PlacedAxis> inner, int64_t innerTimes) {
  if (countParts(innerMesh, inner) * innerTimes % (countParts(outerMesh, outer) * outerTimes))
    return false;
  if (isPlain(outer) && isPlain(inner))
    return true;
  if (outerTimes != 1 || innerTimes != 1)
    return false;
  for (unsigned i = 0; i < outer.size(); ++i)
    if (i >= inner.size() || outerMesh[outer[i]].size != innerMesh[inner[i]].size ||
        outer[i].layout != inner[i].layout || outer[i].rotation != inner[i].rotation)
      return false;
  return true;
}

/// How a dim is cut on both sides.
struct CutDim {
  int64_t held, needed; ///< In so many parts, of all batches.
  /// The first part of the sender's that overlaps with one of the receiver's, and how many do.
  int64_t getFirst(int64_t part) const { return needed > held ? part / (needed / held) : part * (held / needed); }
  int64_t getCount() const { return needed > held ? 1 : held / needed; }
};

std::string stage::connect(Exchange &exchange, const Sharding &held, const Sharding &needed) {
  const Mesh &from = exchange.from->graph->mesh, &to = exchange.to->graph->mesh;
  if (held.partial || needed.partial)
    return "a partial sum is not sent";
  if (!held.flat.empty() || !needed.flat.empty())
    return "what is stored flat is not sent";
  if (held.getListed() || needed.getListed())
    return "what is dealt out by a table is not sent";
  llvm::SmallVector<CutDim, 4> dims;
  exchange.numMessages = 1;
  exchange.numParts = 1;
  for (unsigned d = 0; d < held.dims.size(); ++d) {
    int64_t times = d == exchange.batchDim ? exchange.batches : 1;
    if (!cutsFurther(from, held.dims[d], times, to, needed.dims[d], 1) &&
        !cutsFurther(to, needed.dims[d], 1, from, held.dims[d], times))
      return "dim " + std::to_string(d) + " is cut in two ways of which none cuts the parts of the other";
    dims.push_back({countParts(from, held.dims[d]) * times, countParts(to, needed.dims[d])});
    exchange.numMessages *= dims.back().getCount();
    exchange.numParts *= std::max<int64_t>(1, dims.back().needed / dims.back().held);
  }
  // Ranks by the piece that they hold, and messages by the piece that they are of.
  struct Holder {
    int64_t rank;
    unsigned batch;
  };
  int64_t numPieces = from.getGroupSize(held.getSharded()) * exchange.batches;
  std::vector<std::vector<Holder>> holders(numPieces);
  std::vector<std::vector<Exchange::Receiver>> wanted(numPieces);
  for (int64_t rank = 0; rank < from.getNumRanks(); ++rank)
    for (unsigned batch = 0; isOfStage(*exchange.from, rank, exchange.fromStage) && batch < exchange.batches; ++batch) {
      int64_t piece = 0;
      for (unsigned d = 0; d < dims.size(); ++d) {
        int64_t part = getPart(from, held.dims[d], rank);
        if (d == exchange.batchDim)
          part += batch * countParts(from, held.dims[d]);
        piece = piece * dims[d].held + part;
      }
      holders[piece].push_back({rank, batch});
    }
  for (int64_t rank = 0; rank < to.getNumRanks(); ++rank)
    for (unsigned message = 0; isOfStage(*exchange.to, rank, exchange.toStage) && message < exchange.numMessages;
         ++message) {
      int64_t piece = 0, rest = message, messages = exchange.numMessages;
      for (unsigned d = 0; d < dims.size(); ++d) { // the last dim counts fastest
        messages /= dims[d].getCount();
        piece = piece * dims[d].held + dims[d].getFirst(getPart(to, needed.dims[d], rank)) + rest / messages;
        rest %= messages;
      }
      wanted[piece].push_back({rank, message});
    }
  exchange.senders.assign(to.getNumRanks(), {});
  exchange.receivers.assign(from.getNumRanks() * exchange.batches, {});
  for (auto [having, messages] : llvm::zip(holders, wanted)) {
    exchange.numCopies = having.size();
    exchange.isEven &= messages.size() % having.size() == 0;
    for (size_t i = 0; i < messages.size(); ++i) {
      Holder sender = having[(i * having.size() / messages.size() + exchange.turn) % having.size()];
      llvm::SmallVector<Exchange::Sender, 1> &senders = exchange.senders[messages[i].rank];
      senders.resize(exchange.numMessages);
      senders[messages[i].message] = {sender.rank, sender.batch};
      exchange.receivers[sender.rank * exchange.batches + sender.batch].push_back(messages[i]);
    }
  }
  return "";
}
