//===- RandomProgram.h - programs, strategies and meshes by chance -*- C++ -*-===//
//
// A random job: a model of random ops on random dims, with layers perhaps, and a
// strategy of random rules over a random mesh. Most are sound and all are well-formed
// as text; what cannot be sharded as the rules say the compiler must refuse.
//
// A program is a list of lines, so that it can be made smaller by leaving lines out.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_UNITTESTS_DRIVER_RANDOMPROGRAM_H
#define STAGE_UNITTESTS_DRIVER_RANDOMPROGRAM_H

#include <cstdint>
#include <string>
#include <vector>

namespace stage {

/// The job that belongs to a seed; the same on every machine. With `routes` its tokens go to targets and back.
std::vector<std::string> makeRandomProgram(uint64_t seed, bool routes = false);

} // namespace stage

#endif // STAGE_UNITTESTS_DRIVER_RANDOMPROGRAM_H
