//===- BoundRuntime.h - a declared runtime, evaluated ----------*- C++ -*-===//
//
// Problem: a runtime is declared in a program, may extend another one, and the command line may change its entries.
// What does it come to?
//
//   runtime eager { launch = 12us; tax.collective = 0.30; }
//   runtime fused extends eager { launch = 8us; }
//   -D runtime=fused -D runtime.tax.collective=0.2
//
//   fused with tax.collective = 0.2     launch 8,000,000 ps, tax.collective 1/5, all other taxes 0, both speeds 1
//
// All values have been checked: a launch takes 0 to 1 s, taxes are 0 to 1, speeds are above 0 and at most 2, a tile has
// 1 to 1024 rows, sizes of an allocator are 1 byte to 1 TiB and in order.
//
// Limits: nothing is priced here. stage/Machine/Runtime.h says what the values mean.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SEMA_BOUNDRUNTIME_H
#define STAGE_SEMA_BOUNDRUNTIME_H

#include "stage/Sema/EntryOverride.h"
#include "stage/Sema/Program.h"
#include "stage/Sema/Value.h"

namespace stage::sema {

class Evaluator;

/// `at P { ... }`, `fuse P;` or `resident NAME at P { ... }`. Formulas are sizes over symbols, which stand for what an
/// op that matches has: `bytes.x` and `size.x` for the bytes and elements of its operand or result x, `volume` for the
/// elements of its first result, and the name of each of its indices.
struct BoundKernels {
  bool isFusion = false;
  StringRef resident; ///< Empty: no resident.
  bool isPerShape = false;
  StringRef opClass; ///< Empty: ops are those of the pattern.
  StringRef pattern; ///< As it was written, without spaces.
  SMRange range;     ///< Of the class or the pattern.
  // Null: not said. In bytes, and in picoseconds.
  Size bytes, backwardBytes;             ///< Of the kernel, in place of what the op reads and writes.
  Size besideBytes, backwardBesideBytes; ///< Of kernels beside it.
  Size ringBytes, backwardRingBytes;     ///< The same, in a step of a ring with a block of another rank.
  Size floor, backwardFloor;             ///< What the kernel takes besides its bytes.
  Size host, backwardHost;               ///< For so long the device waits for the host.
  std::optional<Rational> speed;         ///< Of the kernel, as a part of the speed that the machine says.
  StringRef type;                        ///< In which the kernel of a product multiplies, as in `flops.T`.
  // What stays in memory (stage/Machine/Runtime.h). Names are those of operands or of a module's instance.
  Size keepBytes, holdBytes;
  StringRef overwritten, backwardOverwritten, dropped, heldUntil, placed;
};

/// How software takes memory of the device (stage/Machine/Runtime.h), in bytes; 0: not said. All are said, or none.
struct BoundAllocator {
  int64_t round = 0, small = 0, smallSegment = 0, large = 0, largeSegment = 0, segmentRound = 0, unsplit = 0;
};

struct BoundRuntime {
  std::string name;
  std::vector<std::string> libraryNames; ///< Of it and what it extends, as far as the library declares these.
  std::vector<std::string> changes;      ///< By the command line: `launch = 5us`.
  SMRange range;                         ///< Where it was asked for.
  int64_t launch = 0;                    ///< Picoseconds of a kernel.
  int64_t stepHost = 0;                  ///< Picoseconds of a training step; 0 in inference.
  Rational taxOfCollectives, taxOfSends, taxOfCopies, taxOfCommunication;
  Rational attentionKernel = {1, 1}, kernelSpeed = {1, 1};
  Rational exchangeEfficiency; ///< 0: not said.
  int64_t attentionTile = 0;   ///< Rows; 0: not said.
  Rational reserve;            ///< Of the memory's capacity.
  BoundAllocator allocator;
  std::vector<BoundKernels> kernels; ///< The last base first: of several for one op the last one counts.

  /// `megatron_2 with launch = 5us`.
  std::string describe() const;
};

/// Evaluates a runtime whose names have been checked. `range`: where it was asked for. `env`: in which `override` is
/// evaluated. Nothing after a report.
std::optional<BoundRuntime> bindRuntime(Evaluator &evaluator, const Program &program, const ast::RuntimeDecl &decl,
                                        SMRange range, EntryOverride override, const Environment &env);

/// The names of all entries that a runtime can have.
std::vector<std::string> listRuntimeEntries();

} // namespace stage::sema

#endif // STAGE_SEMA_BOUNDRUNTIME_H
