//===- TimedPart.h - a program on its machine -------------------*- C++ -*-===//
//
// Problem: the parts of a workload may run on machines of their own, with software of their own.
//
//   job fill   { machine = h100; ... }                            prompts, ranks 0 to 15
//   job decode { machine = h200; step = infer(prefilled = fill, ...); ... }     ranks 16 to 23
//
// Rule: parts whose machines have one name and the same changes are on one machine, where their ranks stand one behind
// the other. Else each fills a machine of its own from its first node on. A message between two machines leaves one by
// its outermost level and enters the other by its outermost level. Both carry it at the same time, and it takes the
// longer of what the two say.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TIME_TIMEDPART_H
#define STAGE_TIME_TIMEDPART_H

#include "stage/IR/graph/Program.h"
#include "stage/Machine/Machine.h"
#include "stage/Machine/Runtime.h"
#include "stage/Tasks/Kernels.h"

namespace stage {

/// A program, which must outlive this.
struct TimedPart {
  const Program *program;
  Machine machine;
  Runtime runtime = Runtime();
  std::shared_ptr<const Kernels> kernels = nullptr; ///< Of the program with the runtime (findUsed).

  bool isOnMachineOf(const TimedPart &other) const;
};

/// Ranks are counted over all parts, and places on a machine from 0: so many ranks of other machines come before those
/// of a part.
int64_t countRanksElsewhere(llvm::ArrayRef<TimedPart> parts, const TimedPart &part);
/// Of two ranks that only the outermost level of a machine contains.
GroupPlace findFarthest(const Machine &machine);

/// `machine: h100 (bf16), runtime: ideal`, and others behind it; empty if a machine has no name.
std::string describeParts(llvm::ArrayRef<TimedPart> parts);
/// The same of machines, or of runtimes, alone: `h100 (bf16); h200 (bf16)`. All have names.
std::string describeMachines(llvm::ArrayRef<TimedPart> parts);
std::string describeRuntimes(llvm::ArrayRef<TimedPart> parts);

} // namespace stage

#endif // STAGE_TIME_TIMEDPART_H
