//===- RuntimeMemory.h - what software keeps, and does without --*- C++ -*-===//
//
// Problem: software keeps memory that no tensor of the program stands for, and its ops keep other tensors than their
// formulas need. Real peaks are 1 to 20 % above those of the program's tensors.
//
//   resident placeholder at class contraction { backward bytes = bytes(weight); per = shape; }
//     weights of 160, 128, 896 and 448 MiB in 6 layers              4 tensors, 1,632 MiB, from the first gradient on
//   at **.exp_sum_and_pick() { backward overwrite = x; }
//     logits of 1,002 MiB, and their gradient                       1,002 MiB instead of 2,004 MiB
//   at **.dispatch() { hold = moe; }                                the result lives until the call of `moe` returns
//
// Rules of a runtime (stage/Machine/RuntimeRules.h) are met by ops:
//   H1  A resident is there in all of a step, because a step follows another one: from the first run on, nothing frees
//       it. Of several ops the largest counts; with `per = shape`, the largest of each shape of a weight's matrix.
//       `bytes` and `backward bytes` are two residents. `backward bytes` with `weight` speaks of the gradients that are
//       added to their buffers by the product itself. `place = x`: where an all_gather makes operand x, x lies in the
//       resident, and takes no other memory.
//       `class send` speaks of messages to other stages, whose value is x; the largest counts.
//   H2  `overwrite = x`: the first result takes the place of operand x if it has as many bytes and nothing uses x
//       later; `backward overwrite = x` says it of the gradient.
//   H3  `keep bytes`: what the op keeps for its gradient besides, from the op to the end of its gradient.
//   H4  `drop = x`: the op's gradient does without its operand x.
//   H5  `hold = m`: results live until the last op of the module's instance m that contains the op, in the same unit;
//       if no instance is called m, until the innermost one ends. So do `hold bytes` besides, also alone.
//
// Limits: a resident is allocated in no unit, so that a first step may hold less. Fragmentation is not counted.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_MEMORY_RUNTIMEMEMORY_H
#define STAGE_MEMORY_RUNTIMEMEMORY_H

#include "stage/IR/graph/Program.h"
#include "stage/Machine/Runtime.h"
#include "llvm/ADT/DenseSet.h"

namespace stage {

/// What a runtime says of an op.
struct OpMemory {
  std::optional<unsigned> overwritten;    ///< The operand whose place the first result takes.
  Size keepBytes;                         ///< Null: none.
  llvm::SmallVector<unsigned, 2> dropped; ///< Operands that this op, a gradient, does without.
  const Op *heldUntil = nullptr;          ///< Results, if they are held, and `holdBytes` live until this op has run.
  bool holdsResults = false;
  Size holdBytes;            ///< Null: none.
  bool isInResident = false; ///< The result takes no memory of its own.
};

struct Resident {
  std::string name; ///< As the runtime has it.
  Size bytes;
};

class RuntimeMemory {
public:
  /// Finds what a runtime says of all ops of a program, which must outlive this. Null after a report.
  static std::shared_ptr<const RuntimeMemory> find(const Program &program, const Runtime &runtime,
                                                   DiagnosticEngine &diags);

  /// Null: nothing.
  const OpMemory *find(const Op &op) const {
    auto known = ops.find(&op);
    return known == ops.end() ? nullptr : &known->second;
  }
  /// Those of the ranks of a stage, in the order in which the runtime declares them; of each shape in the order of ops.
  std::vector<Resident> listResidents(const StageProgram &stage) const;
  /// Something ends with this op.
  bool endsHold(const Op &op) const { return ends.contains(&op); }

private:
  friend class RuntimeMemoryFinder;
  struct ResidentOfMessages;
  void addMessages(const StageProgram &stage, llvm::function_ref<void(const ResidentOfMessages &, Size)> add) const;
  struct ResidentOfOp {
    unsigned rule;
    bool isBackward;
    std::string shape; ///< Empty: one for all ops.
    Size bytes;
  };
  /// Of messages: a formula over `bytes.x`.
  struct ResidentOfMessages {
    unsigned rule;
    bool isBackward;
    Size formula;
  };
  std::vector<std::string> names; ///< Of rules.
  std::vector<ResidentOfMessages> ofMessages;
  llvm::DenseMap<const Op *, OpMemory> ops;
  llvm::DenseMap<const Op *, llvm::SmallVector<ResidentOfOp, 1>> residents;
  llvm::DenseSet<const Op *> ends;
  Graph *graph = nullptr;
};

} // namespace stage

#endif // STAGE_MEMORY_RUNTIMEMEMORY_H
