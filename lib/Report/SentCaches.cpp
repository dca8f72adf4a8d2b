//===- SentCaches.cpp - what a prefill sends to those that decode ---------===//
//
// Problem: how much moves between two pools, and is it spread evenly?
//
// Algorithm: caches that share an exchange move between the same ranks in the same messages: what a
// rank sends in one exchange is how many messages it has there, times the bytes of all caches that share it. That is
// added up for each rank, exactly.
//
//===----------------------------------------------------------------------===//
#include "stage/Report/SentCaches.h"
#include "ReportRecords.h"
#include "stage/IR/graph/Costs.h"
#include "stage/Support/Json.h"
#include "stage/Support/Records.h"
#include "llvm/ADT/MapVector.h"

using namespace stage;

namespace {
/// Of all caches that share an exchange.
struct ExchangedCaches {
  int64_t caches = 0;
  __int128 bytes = 0; ///< Of one message of each.
};
} // namespace

static void add(SentCaches::Share &share, __int128 messages, __int128 bytes) {
  bool isFirst = share.ranks++ == 0;
  share.leastMessages = isFirst ? messages : std::min(share.leastMessages, messages);
  share.mostMessages = std::max(share.mostMessages, messages);
  share.leastBytes = isFirst ? bytes : std::min(share.leastBytes, bytes);
  share.mostBytes = std::max(share.mostBytes, bytes);
}

SentCaches stage::countSentCaches(const LinkedProgram &pools, int64_t sequences) {
  SentCaches result;
  result.sequences = sequences;
  llvm::MapVector<const Exchange *, ExchangedCaches> exchanges;
  int64_t numBatches = 1;
  for (auto &channel : pools.channels) {
    if (channel->isOfTokens)
      continue;
    ExchangedCaches &of = exchanges[channel->exchange.get()];
    ++of.caches;
    of.bytes += channel->bytes;
    numBatches = channel->numBatches;
    result.isAtEnd = channel->isAtEnd;
    const Graph &graph = *channel->getFrom().graph;
    Size whole = getLocalBytes(graph.sizes, graph.mesh, channel->output->type, Sharding());
    result.sequenceBytes += evaluateCount(whole, graph.binding).value.num * numBatches; // a part of it has a value
  }
  for (int64_t rank = 0; rank < pools.parts.front()->graph->mesh.getNumRanks(); ++rank) {
    __int128 messages = 0, bytes = 0;
    for (auto &[exchange, of] : exchanges) {
      __int128 times = __int128(exchange->getReceivers(rank, 0).size()) * numBatches;
      messages += times * of.caches;
      bytes += times * of.bytes;
    }
    add(result.sent, messages, bytes);
    result.messages += messages;
    result.bytes += bytes;
  }
  for (int64_t rank = 0; rank < pools.parts.back()->graph->mesh.getNumRanks(); ++rank) {
    __int128 messages = 0, bytes = 0;
    for (auto &[exchange, of] : exchanges) {
      __int128 times = __int128(exchange->getSenders(rank).size()) * (numBatches / exchange->batches);
      messages += times * of.caches;
      bytes += times * of.bytes;
    }
    add(result.received, messages, bytes);
  }
  return result;
}

static Records listShare(const SentCaches::Share &share) {
  Record::Range bytes(share.leastBytes, share.mostBytes);
  return {{"ranks", "", share.ranks},
          {"messages", "messages", Record::Range(share.leastMessages, share.mostMessages)},
          {"bytes", "bytes", bytes, formatBytes},
          {"", "exactly", bytes}};
}

void stage::print(llvm::raw_ostream &os, llvm::ArrayRef<Report> pools, const SentCaches &sent) {
  for (const Report &pool : pools) {
    os << pool.job << ": ";
    print(os, pool);
    os << '\n';
  }
  os << "caches sent from " << sent.from << " to " << sent.to
     << (sent.isAtEnd ? ", at the end of a unit\n" : ", by layer\n");
  Table totals({{"", Table::Left}, {"", Table::Left}}, 2);
  auto addRow = [&](const char *name, __int128 bytes) {
    totals.addRow({name, formatBytes(bytes) + " (" + formatCount(bytes) + " bytes)"});
  };
  addRow("of a sequence", sent.sequenceBytes / sent.sequences);
  addRow("of all sequences", sent.sequenceBytes);
  addRow("sent", sent.bytes);
  totals.addRow({"messages", formatCount(sent.messages)});
  if (sent.traces)
    addTraces(totals, *sent.traces);
  totals.print(os, /*titles=*/false);
  os << '\n';
  // The second column has a blank for a title.
  std::vector<Records> shares = {{{"", "a rank of", sent.from}, {"", " ", "sends"}},
                                 {{"", "a rank of", sent.to}, {"", " ", "receives"}}};
  llvm::append_range(shares[0], listShare(sent.sent));
  llvm::append_range(shares[1], listShare(sent.received));
  printTable(os, shares, 2);
}

void stage::printJson(llvm::raw_ostream &os, llvm::ArrayRef<Report> pools, const SentCaches &sent) {
  printJson(os, pools, [&](llvm::json::OStream &json) {
    auto number = [&](llvm::StringRef name, __int128 value) { writeNumber(json, name, value); };
    auto addShare = [&](llvm::StringRef name, const SentCaches::Share &share) {
      json.attributeObject(name, [&] { writeMembers(json, listShare(share)); });
    };
    json.attributeObject("sent_caches", [&] {
      json.attribute("from", sent.from);
      json.attribute("to", sent.to);
      json.attribute("send", sent.isAtEnd ? "at_end" : "by_layer");
      number("sequences", sent.sequences);
      number("cache_bytes", sent.sequenceBytes);
      number("bytes", sent.bytes);
      number("messages", sent.messages);
      addShare("senders", sent.sent);
      addShare("receivers", sent.received);
      if (sent.traces)
        writeTraces(json, *sent.traces);
    });
  });
}
