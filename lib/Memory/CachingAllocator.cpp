//===- CachingAllocator.cpp - memory in segments that are kept ------------===//
#include "stage/Memory/CachingAllocator.h"

using namespace stage;

static int64_t roundUp(int64_t bytes, int64_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

int64_t CachingAllocator::allocate(int64_t requested) {
  assert(requested > 0 && "nothing is allocated for nothing");
  givenBack.clear();
  newSegment.reset();
  int64_t bytes = roundUp(requested, rules.round);
  bool isSmall = bytes <= rules.small;
  auto known = freeBlocks[isSmall].lower_bound({bytes, 0});
  Blocks::iterator place;
  if (known != freeBlocks[isSmall].end()) {
    place = blocks.find(known->second);
    freeBlocks[isSmall].erase(known);
  } else {
    place = addSegment(isSmall               ? rules.smallSegment
                       : bytes < rules.large ? rules.largeSegment
                                             : roundUp(bytes, rules.segmentRound),
                       isSmall);
  }
  Block &block = place->second;
  int64_t rest = block.bytes - bytes;
  if (isSmall ? rest >= rules.round : rest > rules.unsplit) {
    Block &other = blocks[place->first + bytes] = {rest, 0, block.segment, isSmall};
    getFree(other).insert({rest, place->first + bytes});
    block.bytes = bytes;
  }
  block.requested = requested;
  allocated += block.bytes;
  peakAllocated = std::max(peakAllocated, allocated);
  return place->first;
}

CachingAllocator::Blocks::iterator CachingAllocator::addSegment(int64_t bytes, bool isSmall) {
  if (capacity && reserved + bytes > capacity)
    giveBack();
  reserved += bytes;
  peakReserved = std::max(peakReserved, reserved);
  newSegment = {nextSegment, bytes};
  auto place = blocks.emplace(nextSegment, Block{bytes, 0, nextSegment, isSmall}).first;
  nextSegment += roundUp(bytes, rules.segmentRound);
  return place;
}

void CachingAllocator::giveBack() {
  for (auto place = blocks.begin(); place != blocks.end();) {
    auto [address, block] = *place;
    auto next = std::next(place);
    bool isWhole = address == block.segment && (next == blocks.end() || next->second.segment != block.segment);
    if (!block.requested && isWhole) {
      givenBack.push_back({address, block.bytes});
      reserved -= block.bytes;
      getFree(block).erase({block.bytes, address});
      blocks.erase(place);
    }
    place = next;
  }
  numStalls += !givenBack.empty();
}

void CachingAllocator::join(Blocks::iterator place) {
  auto next = std::next(place);
  if (next == blocks.end() || next->second.requested || next->second.segment != place->second.segment)
    return;
  getFree(next->second).erase({next->second.bytes, next->first});
  place->second.bytes += next->second.bytes;
  blocks.erase(next);
}

void CachingAllocator::free(int64_t address) {
  givenBack.clear();
  newSegment.reset();
  auto place = blocks.find(address);
  assert(place != blocks.end() && place->second.requested && "it is not allocated");
  allocated -= place->second.bytes;
  place->second.requested = 0;
  join(place);
  if (place != blocks.begin())
    if (auto before = std::prev(place); !before->second.requested && before->second.segment == place->second.segment) {
      getFree(before->second).erase({before->second.bytes, before->first});
      join(before);
      place = before;
    }
  getFree(place->second).insert({place->second.bytes, place->first});
}
