//===- RandomParts.h - a random strategy, made of parts --------*- C++ -*-===//
//
// Takes rules out of the strategy of a random program (RandomProgram) and puts them into parts: the first ones into
// parts that the strategy calls, the last ones into a part that the job adds. Rules keep their order, so that the
// program means what it meant.
//
//   strategy s(xa = 2, xb = 4) {                  strategy part0(a0: axes) { shard F over a0; }
//     mesh (xa, xb);                              strategy part1(a0: axes, a1: axes) { shard S over (a1, a0); }
//     shard F over xb;                     ->     strategy s(xa = 2, xb = 4) { mesh (xa, xb); part0(xb); shard B over
//     xa; } shard B over xa;                            ... strategy = s() with part1(xa, a1 = xb); shard S over (xb,
//     xa);
//   }
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_UNITTESTS_DRIVER_RANDOMPARTS_H
#define STAGE_UNITTESTS_DRIVER_RANDOMPARTS_H

#include <cstdint>
#include <string>
#include <vector>

namespace stage {

/// The program with its strategy in parts; the same on every machine.
std::vector<std::string> takeApart(std::vector<std::string> lines, uint64_t seed);

} // namespace stage

#endif // STAGE_UNITTESTS_DRIVER_RANDOMPARTS_H
