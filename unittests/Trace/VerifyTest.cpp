//===- VerifyTest.cpp - random traces that are right by construction ------===//
//
// Ranks that restrict one global order of collectives and sends always finish (L13).
// The verifier must accept all such traces, and none where two collectives of a rank
// changed places.
//
//===----------------------------------------------------------------------===//
#include "stage/Trace/Verify.h"
#include "TraceTest.h"
#include "stage/Tasks/CommGroups.h"
#include <random>

using namespace stage;
using namespace stage::trace;

namespace {
/// One event of the global order: a collective of a group, or a send (two members).
struct Event {
  bool isSend;
  uint32_t group;
  uint32_t source;
  uint32_t destination;
  uint64_t bytes;
};

class VerifyTest : public TraceTest {
protected:
  static constexpr uint32_t numRanks = 6;

  void makeEvents(std::mt19937 &random) {
    groups.clear();
    for (uint64_t number = 1; number <= 4; ++number) {
      std::vector<uint32_t> members;
      for (uint32_t rank = 0; rank < numRanks; ++rank)
        if (random() % 2)
          members.push_back(rank);
      if (members.size() < 2)
        members = {0, numRanks - 1};
      std::shuffle(members.begin(), members.end(), random);
      groups[number] = members;
    }
    events.clear();
    for (int i = 0; i < 60; ++i) {
      Event event = {};
      event.isSend = random() % 3 == 0;
      event.group = random() % 5;
      event.source = random() % numRanks;
      event.destination = (event.source + 1 + random() % (numRanks - 1)) % numRanks;
      event.bytes = uint64_t(8) << i % 40; // differs from its neighbours
      events.push_back(event);
    }
  }

  bool isMember(uint32_t rank, uint32_t group) const {
    return group == 0 || llvm::is_contained(groups.at(group), rank);
  }

  /// A rank's part of the global order: computes in one chain, communication in another, and some
  /// dependencies from compute to communication and back.
  void writeRank(OutputDirectory &output, uint32_t rank, llvm::ArrayRef<Event> order, std::mt19937 &random) {
    TraceBuffer buffer;
    NodeEncoder encoder(buffer);
    encoder.appendMetadata({});
    uint64_t id = 0;
    std::optional<uint64_t> lastCompute, lastCommunication;
    auto append = [&](NodeFields node, std::optional<uint64_t> chain, std::optional<uint64_t> other) {
      llvm::SmallVector<uint64_t, 2> ctrl;
      uint64_t data[1];
      if (chain)
        ctrl.push_back(*chain);
      if (other && random() % 2) {
        data[0] = *other;
        node.dataDeps = data;
      }
      node.ctrlDeps = ctrl;
      node.id = id;
      encoder.append(node);
      return id++;
    };
    for (const Event &event : order) {
      for (unsigned i = random() % 3; i > 0; --i) {
        NodeFields compute;
        compute.tensorSize = 1;
        lastCompute = append(compute, lastCompute, lastCommunication);
      }
      NodeFields node;
      node.commSize = event.bytes;
      if (!event.isSend) {
        if (!isMember(rank, event.group))
          continue;
        node.type = ChakraNodeType::CommColl;
        node.group = event.group;
      } else if (rank == event.source || rank == event.destination) {
        node.type = rank == event.source ? ChakraNodeType::CommSend : ChakraNodeType::CommRecv;
        node.peer = rank == event.source ? event.destination : event.source;
        node.tag = event.bytes % 1000;
      } else {
        continue;
      }
      lastCommunication = append(node, lastCommunication, lastCompute);
    }
    output.writeFile("w." + std::to_string(rank) + ".et", buffer.getBytes());
  }

  /// Writes all ranks; `orderOf` gives the events as a rank sees them.
  bool verify(std::mt19937 &random, llvm::function_ref<std::vector<Event>(uint32_t)> orderOf) {
    std::string folder = path("traces");
    llvm::sys::fs::remove_directories(folder);
    auto output = OutputDirectory::create(folder, {}, diags);
    for (uint32_t rank = 0; rank < numRanks; ++rank)
      writeRank(*output, rank, orderOf(rank), random);
    std::string text;
    llvm::raw_string_ostream json(text);
    writeCommGroups(groups, json);
    output->writeFile(commGroupFileName, json.str());
    EXPECT_TRUE(output->commit());
    llvm::SourceMgr noSources;
    DiagnosticEngine fresh(noSources, out);
    llvm::raw_null_ostream null;
    return verifyTraces(folder, {}, null, fresh);
  }

  CommGroups groups;
  std::vector<Event> events;
};
} // namespace

TEST_F(VerifyTest, AcceptsRestrictionsOfOneOrder) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    makeEvents(random);
    ASSERT_TRUE(verify(random, [&](uint32_t) { return events; })) << "seed " << seed << '\n' << out.str();
  }
}

TEST_F(VerifyTest, RefusesMoreNodesThanItCounts) {
  TraceBuffer buffer;
  NodeEncoder encoder(buffer);
  encoder.appendMetadata({"1.0", {}, {}});
  for (uint64_t id = 0; id < 5; ++id) {
    NodeFields node;
    node.id = id;
    node.tensorSize = 1;
    encoder.append(node);
  }
  std::string folder = path("many");
  auto output = OutputDirectory::create(folder, {}, diags);
  output->writeFile("w.0.et", buffer.getBytes());
  EXPECT_TRUE(output->commit());
  VerifyOptions options;
  llvm::raw_null_ostream null;
  options.maxEntries = 5;
  EXPECT_TRUE(verifyTraces(folder, options, null, diags));
  options.maxEntries = 4;
  EXPECT_FALSE(verifyTraces(folder, options, null, diags));
  EXPECT_TRUE(llvm::StringRef(out.str()).contains("[trace-too-large]"));
}

TEST_F(VerifyTest, RejectsTwoCollectivesThatChangedPlaces) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    makeEvents(random);
    // Two neighbours in the order of some rank that another rank sees too.
    uint32_t victim = random() % numRanks;
    std::vector<size_t> seen;
    for (size_t i = 0; i < events.size(); ++i)
      if (!events[i].isSend && isMember(victim, events[i].group))
        seen.push_back(i);
    size_t at = seen.size();
    for (size_t i = 0; i + 1 < seen.size() && at == seen.size(); ++i)
      if (events[seen[i]].group == events[seen[i + 1]].group)
        at = i;
    if (at == seen.size())
      continue;
    ASSERT_FALSE(verify(random,
                        [&](uint32_t rank) {
                          std::vector<Event> order = events;
                          if (rank == victim)
                            std::swap(order[seen[at]], order[seen[at + 1]]);
                          return order;
                        }))
        << "seed " << seed;
  }
}
