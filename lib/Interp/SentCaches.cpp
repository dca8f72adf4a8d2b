//===- SentCaches.cpp - caches that one part fills for another ------------===//
//
// A cache of the sender has the sequences of one of its batches, and room for the positions that
// these have; one of the receiver has those of several batches, one behind the other, and room for more positions:
//
//   sender, batch 2 and 3, two sequences each      receiver, batch 1
//   sequences 0 1     positions 0 .. 7         ->  sequences 0 1     positions 0 .. 7 of 10
//   sequences 0 1     positions 0 .. 7         ->  sequences 2 3     positions 0 .. 7 of 10
//
// A cache that keeps the last positions has the last one at its end, however many it keeps.
//
//===----------------------------------------------------------------------===//
#include "SentCaches.h"
#include "ShardedRun.h"
#include <cmath>
#include <set>

using namespace stage;
using namespace stage::interp;

/// Positions of what is appended; nothing of a state.
static const Op *findAppend(const Value &cache) {
  for (auto [user, operand] : cache.getUses())
    if (user->kind == OpKind::Append && operand == 0)
      return user;
  return nullptr;
}

/// Where a position of the sender's cache is in the receiver's, along a dim.
static int64_t getShift(const Channel &channel, unsigned dim, unsigned batch) {
  const Graph &from = *channel.getFrom().graph, &to = *channel.getTo().graph;
  auto getSize = [&](const Graph &graph, const Value *cache) {
    return PieceMap(graph).getSize(cache->type.shape[dim]).value_or(0);
  };
  if (channel.exchange->batches > 1 && dim == channel.exchange->batchDim)
    return batch * getSize(from, channel.output);
  const Op *append = findAppend(*channel.input);
  return append && append->isRolling && append->dim == dim ? getSize(to, channel.input) - getSize(from, channel.output)
                                                           : 0;
}

static Tensor shift(Tensor piece, const Channel &channel, unsigned batch) {
  for (unsigned dim = 0; dim < piece.dims.size(); ++dim)
    for (int64_t &position : piece.dims[dim])
      position += getShift(channel, dim, batch);
  return piece;
}

llvm::ArrayRef<Exchange::Receiver> ShardedRun::listReceivers(const Channel &channel, const Step &step, int64_t rank) {
  return channel.exchange->getReceivers(rank, channel.getBatch(step.microbatch) % channel.exchange->batches);
}

unsigned ShardedRun::getReceivingMicrobatch(const Channel &channel, const Step &step) {
  return channel.getBatch(step.microbatch) / channel.exchange->batches;
}

std::optional<Fault> ShardedRun::sendCache(const Channel &channel, const Step &step, const Tensor &held,
                                           const Exchange::Receiver &receiver) {
  Tensor shifted = shift(held, channel, channel.getBatch(step.microbatch) % channel.exchange->batches);
  auto wanted =
      PieceMap(*channel.getTo().graph).getPositions(channel.input->type, channel.input->sharding, receiver.rank);
  for (unsigned d = 0; wanted && d < wanted->size(); ++d) // in ascending order, both
    llvm::erase_if((*wanted)[d], [&](int64_t position) {
      return !std::binary_search(shifted.dims[d].begin(), shifted.dims[d].end(), position);
    });
  std::optional<Tensor> piece = wanted ? extract(shifted, *wanted) : std::nullopt;
  if (!piece || int64_t(piece->data.size()) * channel.exchange->numParts != int64_t(held.data.size()))
    return Fault{nullptr, step.value,
                 "has not what rank " + std::to_string(receiver.rank) + " of " + channel.getTo().graph->name +
                     " needs of it"};
  partMail.messages[{channel.number, getReceivingMicrobatch(channel, step), receiver.rank, receiver.message}] =
      std::make_shared<Tensor>(std::move(*piece));
  return std::nullopt;
}

/// What has arrived is all that the rank needs, each element once.
std::optional<Fault> ShardedRun::receiveCache(int64_t rank, const Step &step) {
  std::optional<Fault> fault;
  std::vector<TensorRef> pieces = std::move(arrived[rank]);
  arrived[rank].clear();
  TensorRef before = runner.read(step.value, step, rank, memories[rank], fault);
  if (fault)
    return fault;
  const Op *append = findAppend(*step.value);
  llvm::SmallVector<Positions, 4> filled = before->dims;
  if (append) { // what senders have dealt out comes from several of them
    std::set<int64_t> positions;
    for (const TensorRef &piece : pieces)
      positions.insert(piece->dims[append->dim].begin(), piece->dims[append->dim].end());
    filled[append->dim].assign(positions.begin(), positions.end());
  }
  auto content = std::make_shared<Tensor>(*before);
  Tensor none(filled);
  std::fill(none.data.begin(), none.data.end(), NAN);
  bool fits = insert(*content, none);
  size_t numElements = 0;
  for (const TensorRef &piece : pieces) {
    fits = fits && insert(*content, *piece);
    numElements += piece->data.size();
  }
  bool isComplete = llvm::none_of(content->data, [](double number) { return std::isnan(number); });
  if (!fits || !isComplete || numElements != none.data.size())
    return Fault{nullptr, step.value, "has not been sent all that the rank needs of it, each element once"};
  runner.setCache(step, rank, memories[rank], std::move(content));
  return std::nullopt;
}

Caches stage::interp::rename(const Caches &caches, const Sources &known, Graph &graph, const Sources &wanted) {
  llvm::DenseMap<unsigned, const Value *> names; // caches are known by their order in the program, which passes keep
  Graph::walk(graph.getForward(), [&](Op &op) {
    if (op.kind == OpKind::Cache)
      names[wanted.getOrdinal(&op)] = op.getResult();
  });
  Caches renamed;
  for (auto &[key, content] : caches)
    renamed[{names.lookup(known.getOrdinal(std::get<0>(key)->getOp())), std::get<1>(key), std::get<2>(key)}] = content;
  return renamed;
}

Caches stage::interp::handOn(llvm::ArrayRef<std::unique_ptr<Channel>> channels, const Caches &filled,
                             Sources &receiver) {
  Caches result;
  for (auto &channel : channels) {
    unsigned batches = channel->exchange->batches;
    uint64_t iteration = std::max<int64_t>(channel->iteration, 0);
    for (unsigned batch = 0; batch < channel->numBatches; ++batch) {
      auto content = filled.find({channel->output, iteration, batch});
      if (content == filled.end())
        continue;
      TensorRef &to = result[{channel->input, iteration, batch / batches}];
      auto more = std::make_shared<Tensor>(to ? *to : *receiver.draw(channel->input, iteration));
      insert(*more, shift(*content->second, *channel, batch % batches));
      to = std::move(more);
    }
  }
  return result;
}
