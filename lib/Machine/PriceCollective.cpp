//===- PriceCollective.cpp - what messages and collectives take -----------===//
//
// Problem: how long a collective takes depends on what was measured of it, and on which links its ring passes.
//
//   all_gather of a tensor of 3.2 GB over 4 nodes with 8 ranks each, nodes at 450GB/s, between nodes 50GB/s:
//   3.1 GB / (8 x 50GB/s) = 7.75 ms between nodes, and base + 28 hops inside + 4 hops between;
//   3.2 GB x 7/8 / 450GB/s = 6.2 ms inside, and base + 7 hops inside: nodes do not wait
//
// Rule: of the innermost level that contains the group,
// * a table of the operation, if the group fills the blocks of which the level is made, and so always on the first
// level;
// * else a ring over all members, block after block: f times the tensor, f = (g-1)/g, twice for an all_reduce, by as
// many
//   ports as the block with the fewest members has. On each level up to this one, and the slowest decides. In an
//   all_to_all each member sends by its own port what leaves its block.
// Latency: a base, and a hop for each link that the ring passes. An all_reduce over several blocks goes up and down a
// tree of blocks (NVIDIA, NCCL, src/graph/tuning.cc): twice (k - 1) hops among the k members of a block, and the binary
// logarithm of their number between blocks.
// It never takes less than the members of one block take for the same tensor.
//
// A level that is a ring has no links but those to neighbours: a tree has as many hops as blocks, and in an all_to_all
// of n blocks what goes from one to another passes all links between, n/4 on the mean.
//
// Limits: on a ring, sender and receiver of a message are neighbours, and so are the blocks of a group.
//
//===----------------------------------------------------------------------===//
#include "RateMath.h"
#include "Tables.h"
#include "stage/Machine/Machine.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace stage;

/// Members, and how they lie on the blocks of each level that does not contain them.
struct Machine::Group {
  int64_t members;
  llvm::SmallVector<GroupPlace::Share, 2> inside; ///< From level 1 on.
  /// Of the bytes that a member puts in: those of the same tensor, or of its part that stays among these members.
  int64_t numerator = 1, denominator = 1;

  unsigned getLevel() const { return unsigned(inside.size()); }
  GroupPlace::Share getShare(unsigned level) const { return level ? inside[level - 1] : GroupPlace::Share{members, 1}; }
  /// How many blocks of the level inside of `level` a block of `level` has, on the mean.
  double getFanOut(unsigned level) const {
    double outer = level == getLevel() ? 1 : double(getShare(level + 1).blocks);
    return double(getShare(level).blocks) / outer;
  }
};

static Ticks addTicks(Ticks a, Ticks b) { return a > maxTicks - b ? maxTicks : a + b; }

std::optional<Ticks> Machine::ofMessage(int64_t bytes, const GroupPlace &place, llvm::StringRef &missing) const {
  if (!rates)
    return units.communication * ticksPerUnit;
  if (levels.empty()) {
    missing = "link";
    return std::nullopt;
  }
  const MachineLevel &level = levels[place.getLevel()];
  return addTicks(RateMath::divide(bytes, 1, 1, level.rate), level.hop);
}

/// An all_reduce, of which a barrier is one of nothing, adds up and hands out.
static bool goesTwice(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce || kind == CollectiveKind::Barrier;
}

double Machine::priceLatency(CollectiveKind kind, const Group &group) const {
  unsigned top = group.getLevel();
  double ticks = double(levels[top].base);
  if (goesTwice(kind) && top > 0) {
    ticks += 2.0 * double(group.getShare(1).least - 1) * double(levels[0].hop);
    for (unsigned i = 1; i <= top; ++i) {
      double blocks = group.getFanOut(i);
      ticks += 2.0 * (levels[i].isRing ? blocks - 1 : log2OfOurOwn(blocks)) * double(levels[i].hop);
    }
    return ticks;
  }
  for (unsigned i = 0; i <= top; ++i) {
    int64_t blocks = group.getShare(i).blocks;
    int64_t links = i < top ? blocks - group.getShare(i + 1).blocks : blocks - (top == 0); // a ring of blocks is closed
    ticks += (goesTwice(kind) ? 2.0 : 1.0) * double(links) * double(levels[i].hop);
  }
  return ticks;
}

const Grid *Machine::findTable(CollectiveKind kind, const Group &group) const {
  unsigned top = group.getLevel();
  // Of a level that a job fills in part no block is full.
  if (top > 0 && group.getShare(top).least < rates->levels[top - 1].ranks)
    return nullptr;
  if (kind == CollectiveKind::AllToAll && levels[top].exchangeRate)
    return nullptr;
  for (const MachineLevel::Measured &measured : levels[top].collectives)
    if (measured.kind == kind)
      return measured.table.get();
  return nullptr;
}

/// Bytes of the whole tensor, which tables count: the output of an all_gather, else what a member puts in.
static double getWholeBytes(CollectiveKind kind, int64_t bytes, int64_t members) {
  return kind == CollectiveKind::AllGather ? double(bytes) * double(members) : double(bytes);
}

Ticks Machine::priceGroup(CollectiveKind kind, int64_t bytes, const Group &group) const {
  int64_t members = group.members;
  if (members <= 1)
    return 0;
  unsigned top = group.getLevel();
  const MachineLevel &level = levels[top];
  // Where switches add up, five members and more gain.
  double gain = members >= 5 && llvm::is_contained(level.inSwitch, kind) ? level.inSwitchGain.toDouble() : 1;
  if (const Grid *table = findTable(kind, group)) {
    double whole = getWholeBytes(kind, bytes, members) * double(group.numerator) / double(group.denominator);
    double micros = interpolateCollective(*table, double(members), whole);
    return roundTicks(micros * 1e6 / level.collectiveEfficiency.toDouble() / gain);
  }

  Traffic traffic = getTraffic(kind, members);
  Ticks passing = 0;       // of bytes, rounded
  double exactPassing = 0; // not rounded
  for (unsigned i = top ? 1 : 0; i <= top; ++i) {
    int64_t least = group.getShare(i).least, numerator = traffic.numerator, denominator = traffic.denominator * least;
    if (kind == CollectiveKind::AllToAll) {
      numerator = members - least;
      denominator = members;
      if (int64_t blocks = int64_t(group.getFanOut(i)); levels[i].isRing && blocks > 2) {
        numerator *= blocks * blocks / 4; // links from one block to all others, together
        denominator *= blocks - 1;
      }
    }
    numerator *= group.numerator;
    denominator *= group.denominator;
    bool isExchange = kind == CollectiveKind::AllToAll && levels[i].exchangeRate;
    Rate rate = isExchange ? levels[i].exchangeRate : levels[i].rate;
    passing = std::max(passing, RateMath::divide(bytes, numerator, denominator, rate));
    double amount = double(bytes) * double(numerator) / double(denominator);
    exactPassing = std::max(exactPassing, RateMath::divide(amount, rate));
  }
  // Software's own exchange is one kernel, which sends to all at once.
  bool isOwnExchange = kind == CollectiveKind::AllToAll && level.exchangeRate;
  double latency = isOwnExchange ? double(level.base) : priceLatency(kind, group);
  bool isWhole = gain == 1 && latency < double(maxTicks) && double(Ticks(latency)) == latency;
  Ticks ticks = isWhole ? addTicks(passing, Ticks(latency)) : roundTicks((exactPassing + latency) / gain);
  if (top == 0)
    return ticks;

  // The same tensor among the members of one block.
  Group block{group.getShare(top).least, {}, group.numerator, group.denominator};
  int64_t outer = group.getShare(top).blocks;
  for (unsigned i = 1; i < top; ++i) {
    GroupPlace::Share share = group.getShare(i);
    block.inside.push_back({(share.blocks + outer - 1) / outer, share.least});
  }
  if (kind == CollectiveKind::AllGather) { // a member of fewer puts more in
    block.numerator *= members;
    block.denominator *= block.members;
  } else if (kind == CollectiveKind::AllToAll) {
    block.numerator *= block.members;
    block.denominator *= members;
  }
  return std::max(ticks, priceGroup(kind, bytes, block));
}

std::optional<Ticks> Machine::ofCollective(CollectiveKind kind, int64_t bytes, const GroupPlace &place,
                                           llvm::StringRef &missing) const {
  if (!rates || levels.empty() || kind == CollectiveKind::Permute)
    return ofMessage(bytes, place, missing);
  Group group{place.getNumMembers(), {}};
  for (unsigned i = 1; i <= place.getLevel(); ++i)
    group.inside.push_back(place.getShare(i));
  return priceGroup(kind, bytes, group);
}

bool Machine::isInsideTables(CollectiveKind kind, int64_t bytes, const GroupPlace &place) const {
  if (!rates || levels.empty())
    return false;
  Group group{place.getNumMembers(), {}};
  for (unsigned i = 1; i <= place.getLevel(); ++i)
    group.inside.push_back(place.getShare(i));
  const Grid *table = findTable(kind, group);
  return table && contains(*table, {double(group.members), getWholeBytes(kind, bytes, group.members)});
}
