//===- Kernels.h - which kernels software runs for ops ---------*- C++ -*-===//
//
// Problem: software runs one kernel for several ops, or several for one, and a kernel reads and writes other bytes than
// the op says.
//
//   y = linear(x, w); z = y + b; u = dropout(z); h = r + u          fuse **.{add, dropout}();
//     one kernel behind the product: reads y, b and r, writes h and the mask: 3.5 X instead of 7.5 X
//   at **.layer_norm() { backward bytes = 5 * bytes(x); }           its gradient: 5 X instead of 3 X
//
// Rules of a runtime (stage/Machine/Runtime.h) are met by ops:
//   K1  A rule of a pattern speaks of the ops that the pattern matches, by the module and the name of their op, and
//       its `backward` entries of their gradients. A rule of a class speaks of all ops of the class. Of several rules
//       that say an entry the last one counts.
//   K2  A gradient that several ops compute is one kernel: the first of them has it, and the others are inside. What
//       stands beside a step of a ring is beside the step's first op.
//   K3  Ops that a `fuse` names and that use each other's results in one block are one kernel. It is the last op's; the
//       others are inside of it. It reads what is made outside and writes what is used outside, each once. A kernel may
//       not wait for something that waits for it: an op whose other operands come from behind the kernel begins a new
//       one. `fuse **.x()` speaks of forward, `fuse **.x.grad()` of gradients and of ops x that convert them
//       (quantize), `fuse class elementwise` of both.
//   K4  Element-wise ops behind a product are inside of the product's kernel, and take nothing, if one `fuse` names
//       both. Ops in front of it are another kernel.
//   K5  What `bytes` says stands in place of what the kernel reads and writes, and may not be less than it reads. The
//       number 0 says that the op is no kernel, because another kernel does its work.
//   K6  Appending to a cache is an element-wise op `append`, whose operand x is what it appends. It is part of no fused
//       kernel.
//
// Limits: FLOPs of a fused kernel are those of its last op; memory alone decides how long element-wise kernels take on
// the machines of the library. A kernel ends with its block: the end of a layer is not fused with the beginning of the
// next one.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TASKS_KERNELS_H
#define STAGE_TASKS_KERNELS_H

#include "stage/IR/graph/Program.h"
#include "stage/Machine/Runtime.h"

namespace stage {

/// What software does for an op. Null sizes: what the op says, or none.
struct OpKernel {
  Size bytes, besideBytes;   ///< As Work has them.
  Size floor, host;          ///< Picoseconds.
  Rational speed = {1, 1};   ///< As a part of the speed that the machine says.
  std::optional<DType> type; ///< As Work has it, for products.
  bool allowsTF32 = false;
  bool isInside = false; ///< Of another op's kernel.
};

class Kernels {
public:
  /// Finds those of all ops of a program. The program must outlive this. Null after a report.
  static std::shared_ptr<const Kernels> find(const Program &program, const Runtime &runtime, DiagnosticEngine &diags);

  /// Null: the op is a kernel as it stands.
  const OpKernel *find(const Op &op) const {
    auto known = kernels.find(&op);
    return known == kernels.end() ? nullptr : &known->second;
  }
  /// Of an op's kernel, as a part of the speed that the machine says.
  Rational getSpeed(const Op &op, bool isAttention) const;
  /// As Runtime has it.
  int64_t getAttentionTile() const { return attentionTile; }

private:
  friend class KernelFinder;
  llvm::DenseMap<const Op *, OpKernel> kernels;
  Rational speed = {1, 1}, attentionSpeed = {1, 1};
  int64_t attentionTile = 0;
};

/// Says which rules of a runtime speak of no op of a program, and which name ops on both sides of communication, where
/// a kernel ends.
void remarkKernelRules(const Program &program, const Runtime &runtime, DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_TASKS_KERNELS_H
