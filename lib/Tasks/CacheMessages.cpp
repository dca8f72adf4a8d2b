//===- CacheMessages.cpp - the nodes that send and receive caches ---------===//
//
// Problem: the ranks of a prefill send their caches to those that decode (Channel.h). What
// waits for what?
//
//   sender      append keys @1 F2  <-  send keys @1 F2  <-  send vals @1 F2      a chain of all sends of caches
//   receiver    recv keys @1 F0, posted from the beginning  <-  append keys @1 D0
//
// * A send waits for what has filled its cache, and for the send of a cache before it; of caches that are sent
//   at the end of a unit, also for all that the unit computes.
// * A recv waits for nothing. What reads the cache in the first step of a batch waits for its recvs.
//
// A tag is the number of the channel and of the sender's batch, which both ends know.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/graph/Channel.h"
#include "stage/Tasks/ClassTasks.h"

using namespace stage;

void ClassTasks::makeCacheMessage(const PlacedUnit &unit, const ProgramItem &item, unsigned index, uint64_t id,
                                  const std::string &suffix, Sink sink) {
  const Channel &channel = *item.channel;
  const Exchange &exchange = *channel.exchange;
  bool isSend = item.kind == ProgramItem::Kind::Send;
  const Value *cache = item.values[index];
  Task task;
  task.kind = isSend ? TaskKind::Send : TaskKind::Receive;
  task.id = id;
  task.bytes = std::max<uint64_t>(1, channel.bytes); // no reader takes 0
  RankSlot slot{isSend ? RankSlot::Kind::Receiver : RankSlot::Kind::Sender};
  slot.shift = index;
  slot.exchange = &exchange;
  data.clear();
  after.clear();
  if (isSend) {
    unsigned batch = channel.getBatch(unit.microbatch);
    slot.batch = batch % exchange.batches;
    task.tag = getCacheTag(channel, batch);
    unsigned stream = getStream(channel.stream, StreamKind::Communication);
    task.stream = getNumber(stream);
    const Value *content = channel.isOfTokens                       ? channel.output
                           : channel.filler->kind == OpKind::Append ? channel.filler->getResult()
                                                                    : channel.filler->getOperand(1);
    bool readsInput = producers.find(content, unit, channel.iteration, data);
    finish(task, {chains[stream], channel.isAtEnd ? chains[computation] : std::nullopt,
                  readsInput ? getOtherChainsLoad(unit, stream) : std::nullopt});
    chains[stream] = id;
  } else {
    uint64_t first = getCacheTag(channel, uint64_t(unit.microbatch) * exchange.batches);
    RankSlot ofBatch = slot;
    ofBatch.kind = RankSlot::Kind::Tag;
    ofBatch.least = first;
    task.tag = exchange.batches == 1 ? TaskValue(first) : TaskValue::slot(getSlot(ofBatch));
    finish(task, {});
  }
  task.peer = TaskValue::slot(getSlot(slot));
  std::string name;
  if (options.names) {
    name = (isSend ? "send " : "recv ") +
           (channel.isOfTokens ? cache->path + suffix : names->get(*cache->getOp()).get(channel.iteration, suffix));
    task.name = name;
    task.opType = isSend ? "send" : "recv";
  }
  assert(!observer && "lists of tensors do not know caches that arrive");
  sink(task);
}

std::optional<std::pair<uint64_t, unsigned>> TaskLayout::findCacheRecvs(const Value *cache, int64_t iteration) const {
  auto it = cacheRecvs.find({cache, iteration});
  if (it == cacheRecvs.end())
    return std::nullopt;
  const Segment &segment = segments[it->second];
  return std::pair(getPosition(segment, -1, 0, 0), unsigned(segment.numNodes));
}

void Producers::findCacheRecvs(const Origin &cache, llvm::SmallVectorImpl<uint64_t> &ids) {
  if (auto recvs = cache.unit->layout->findCacheRecvs(cache.value, cache.iteration))
    for (unsigned i = 0; i < recvs->second; ++i)
      ids.push_back(cache.unit->getId(recvs->first + i));
}
