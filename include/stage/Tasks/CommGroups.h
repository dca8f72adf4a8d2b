//===- CommGroups.h - the process groups of a set of traces ----*- C++ -*-===//
//
// comm_group.json names the groups that collectives run in, one file for all ranks:
//
//   {
//     "1": [0, 1],
//     "2": [2, 3]
//   }
//
// Keys are decimal integers above 0 (0 means all ranks and is not listed); values are
// ranks in the order of the ring.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TASKS_COMMGROUPS_H
#define STAGE_TASKS_COMMGROUPS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <map>
#include <vector>

namespace stage {

/// The file's name. Consumers refuse one that contains the word "empty".
inline constexpr llvm::StringLiteral commGroupFileName = "comm_group.json";

/// Group number to its ranks in ring order.
using CommGroups = std::map<uint64_t, std::vector<uint32_t>>;

/// Writes comm_group.json, groups in ascending order.
void writeCommGroups(const CommGroups &groups, llvm::raw_ostream &out);

} // namespace stage

#endif // STAGE_TASKS_COMMGROUPS_H
