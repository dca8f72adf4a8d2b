//===- Network.cpp - a machine's network as ASTRA-sim has it --------------===//
#include "stage/AstraSim/Network.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

using namespace stage;
using namespace stage::astrasim;

llvm::StringRef astrasim::getName(BuildingBlock block) {
  switch (block) {
  case BuildingBlock::Switch:
    return "Switch";
  }
  llvm_unreachable("no other blocks");
}

unsigned astrasim::getNumLinks(BuildingBlock block) {
  switch (block) {
  case BuildingBlock::Switch:
    return 2; // to the switch and from it
  }
  llvm_unreachable("no other blocks");
}

/// Every level of a machine is a switch.
static BuildingBlock getBlock(const MachineLevel &) { return BuildingBlock::Switch; }

Network Network::makeFromLevels(const Machine &machine, int64_t numRanks) {
  const Machine used = machine.usedBy(numRanks);
  std::vector<NetworkDim> dims;
  int64_t inside = 1;
  for (auto [level, own] : llvm::zip(machine.getLevels(), used.getLevels())) {
    if (own.ranks > inside)
      dims.push_back({getBlock(level), own.ranks / inside, &level});
    inside = own.ranks;
  }
  return Network(std::move(dims));
}

Network Network::makeFromSizes(const Machine &machine, llvm::ArrayRef<int64_t> sizes) {
  int64_t numRanks = 1;
  for (int64_t size : sizes)
    numRanks *= size;
  const Machine used = machine.usedBy(numRanks);
  std::vector<NetworkDim> dims;
  int64_t block = 1;
  for (int64_t size : sizes) {
    block *= size;
    const MachineLevel *own =
        llvm::find_if(used.getLevels(), [&](const MachineLevel &each) { return each.ranks >= block; });
    const MachineLevel &level = machine.getLevels()[own - used.getLevels().begin()];
    if (size > 1)
      dims.push_back({getBlock(level), size, &level});
  }
  return Network(std::move(dims));
}

const MachineLevel *Network::findSpannedLevel(const Machine &machine, int64_t stride, int64_t ranks) {
  for (const MachineLevel &level : machine.getLevels())
    if (level.ranks >= 2 * stride && level.ranks < stride * ranks)
      return &level;
  return nullptr;
}

int64_t Network::getStride(size_t dim) const {
  int64_t stride = 1;
  for (const NetworkDim &inner : getDims().take_front(dim))
    stride *= inner.ranks;
  return stride;
}

unsigned Network::findInnermost(int64_t a, int64_t b) const {
  unsigned dim = 0;
  while (getCoordinate(a, dim) == getCoordinate(b, dim))
    ++dim;
  return dim;
}

unsigned Network::findOutermost(int64_t a, int64_t b) const {
  unsigned dim = dims.size() - 1;
  while (getCoordinate(a, dim) == getCoordinate(b, dim))
    --dim;
  return dim;
}

std::vector<uint32_t> Network::orderRing(llvm::ArrayRef<uint32_t> ranks) const {
  std::vector<uint32_t> ring;
  appendRing(ranks, dims.size(), /*isReversed=*/false, ring);
  return ring;
}

/// Of ranks that have the same coordinates in all but the first `numDims` dimensions.
void Network::appendRing(llvm::ArrayRef<uint32_t> ranks, size_t numDims, bool isReversed,
                         std::vector<uint32_t> &ring) const {
  if (numDims == 0) {
    ring.insert(ring.end(), ranks.begin(), ranks.end());
    return;
  }
  size_t first = ring.size();
  bool turns = false;
  while (!ranks.empty()) {
    int64_t coordinate = getCoordinate(ranks.front(), numDims - 1);
    auto group = ranks.take_while([&](uint32_t rank) { return getCoordinate(rank, numDims - 1) == coordinate; });
    appendRing(group, numDims - 1, turns, ring);
    ranks = ranks.drop_front(group.size());
    turns = !turns;
  }
  if (isReversed)
    std::reverse(ring.begin() + first, ring.end());
}
