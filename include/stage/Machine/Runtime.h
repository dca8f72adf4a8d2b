//===- Runtime.h - what software adds to the times of a machine -*- C++ -*-===//
//
// Problem: a step takes longer than its tasks do alone, because software launches each kernel, and kernels of
// collectives take cores and memory from the compute beside them.
//
//   3 ms of a collective beside 10 ms of compute, tax 0.30       compute takes 10.9 ms
//   100 kernels of 5 us of compute, launch 8 us                  800 us instead of 500 us
//
//   layer_norm: reads its operand three times, writes twice       5 X bytes instead of 2 X, X those of the operand
//   fuse add, dropout, add                                       3.5 X instead of 7.5 X, in one kernel
//
// Rule: a tax is computed from durations alone, before anything is placed, so that time stays a longest path. An ideal
// runtime launches at once and takes no tax. Rules about kernels are in the order in which they were said: of several
// for one op the last one counts (stage/Tasks/Kernels.h).
//
// Rules also say what software keeps in memory besides the program's tensors, and which tensors it does without
// (stage/Memory/RuntimeMemory.h).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_MACHINE_RUNTIME_H
#define STAGE_MACHINE_RUNTIME_H

#include "stage/IR/algebra/Types.h"
#include "stage/IR/graph/PathPattern.h"
#include "stage/Machine/Ticks.h"
#include "stage/Symbolic/Size.h"
#include <optional>
#include <string>
#include <vector>

namespace stage {

/// What software makes of some ops. Formulas are over what an op has: `bytes.x` and `size.x` of an
/// operand or result x, `gathered.x` for those bytes where x is the result of an all_gather, `volume`, and the name of
/// each index. `bytes.weight` is the matrix of parameters that a product reads, of experts' products that of one
/// expert.
struct KernelRule {
  enum class OpClass : uint8_t { Named, Elementwise, Contraction, Attention, Optimizer, Send };
  enum class Kind : uint8_t {
    Kernel,   ///< What the kernels of ops do, and which tensors they keep.
    Fusion,   ///< Ops that use each other's results are one kernel.
    Resident, ///< Memory that stays from the first run of an op on.
  };
  Kind kind = Kind::Kernel;
  OpClass opClass = OpClass::Named;
  std::optional<PathPattern> pattern; ///< Of a class of named ops.
  SMRange range;
  // Null: not said. In bytes, and in picoseconds.
  Size bytes, backwardBytes;             ///< Of the kernel, in place of what the op reads and writes.
  Size besideBytes, backwardBesideBytes; ///< Of kernels beside it.
  Size ringBytes, backwardRingBytes;     ///< The same, in a step of a ring with a block of another rank.
  Size floor, backwardFloor;             ///< What the kernel takes besides its bytes, in place of the shortest kernel.
  Size host, backwardHost;               ///< For so long the device waits for the host.
  std::optional<Rational> speed;         ///< Of the kernel, as a part of the speed that the machine says.
  std::optional<DType> type;             ///< In which the kernel of a product multiplies.
  bool allowsTF32 = false;               ///< That is f32, rounded for tensor cores.

  std::string resident;    ///< Its name. `bytes` are there from forward on, `backwardBytes` from the gradient on.
  bool isPerShape = false; ///< One for each shape of a weight's matrix; else one for all ops of a rank.
  Size keepBytes;          ///< What the op keeps for its gradient, besides what its formula says.
  std::string overwritten, backwardOverwritten; ///< The operand whose place the result takes.
  std::string dropped;                          ///< The operand that the op's gradient does without.
  std::string heldUntil;                        ///< Results are held until the call of this module's instance returns.
  Size holdBytes;                               ///< Held besides for as long.
  std::string placed;                           ///< The operand that lies in a resident where a gather makes it.
};

/// How software takes memory of the device: it rounds sizes, cuts them out of larger segments, and keeps free parts for
/// later tensors (stage/Memory/CachingAllocator.h). In bytes.
struct AllocatorRules {
  int64_t round = 0;        ///< Sizes are multiples of it.
  int64_t small = 0;        ///< Sizes up to it are cut out of small segments.
  int64_t smallSegment = 0; ///< A small segment.
  int64_t large = 0;        ///< Other sizes below it are cut out of large segments.
  int64_t largeSegment = 0; ///< A large segment.
  int64_t segmentRound = 0; ///< Sizes from `large` on have segments of their own, multiples of it.
  int64_t unsplit = 0;      ///< A part of a segment that is no small one is not cut if so little or less would be left.
};

struct Runtime {
  std::string name;                 ///< Of a runtime that a program declares; empty: an ideal one.
  std::vector<std::string> changes; ///< What the command line puts in place of entries, as it is written there.

  /// What the host takes to launch a kernel. No unit is shorter than its kernels times this: a unit whose compute takes
  /// less has the rest added to its last compute task.
  Ticks launch = 0;
  /// What the host does once per training step while the device waits: it reads the norm of gradients, logs the loss,
  /// and prepares the next batch. The last kernel of a rank takes so much longer.
  Ticks stepHost = 0;
  /// What 1 ms of a collective beside compute costs this compute, in ms: o ticks beside each other lengthen the compute
  /// by o times the tax. A collective that still waits for another rank costs nothing.
  Rational taxOfCollectives;
  /// The same of messages between stages, and of copies between device and host.
  Rational taxOfSends, taxOfCopies;
  /// What 1 ms of compute beside communication costs this communication, in ms. Rates of networks that were measured
  /// in runs contain it already.
  Rational taxOfCommunication;
  /// How fast the fused attention kernel is, as a part of the speed that the machine says: at 0.5 it takes twice as
  /// long.
  Rational attentionKernel = {1, 1};
  /// The same of all kernels of ops.
  Rational kernelSpeed = {1, 1};
  /// The part of a link's rate that an all_to_all reaches inside of the outermost level, in place of what the machine
  /// says: each software has kernels of its own for the exchange of experts' tokens. 0: not said.
  Rational exchangeEfficiency;
  /// Where a unit has a prompt, attention computes the rows of each sequence and head in tiles of so many. 0: it packs
  /// heads, so that one row of a sequence costs no more.
  int64_t attentionTile = 0;
  std::vector<KernelRule> kernels;
  /// The part of the device's memory that is kept free, or for something else.
  Rational reserve;
  std::optional<AllocatorRules> allocator;

  /// `megatron_2 with launch = 5us`; `ideal` without a name.
  std::string describe() const;
};

} // namespace stage

#endif // STAGE_MACHINE_RUNTIME_H
