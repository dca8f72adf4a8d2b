//===- UnitSimulator.h - the tensors of one unit, op by op -----*- C++ -*-===//
//
// Problem: how much does a virtual stage hold at each moment of a forward unit and
// of its backward unit, and how much does it keep in between?
//
//   forward   %h = linear(%x, %w)      allocates h           saved: x
//             %y = gelu(%h)            allocates y           saved: h
//   backward  %dh = gelu.grad(%h, %dy) allocates dh; h and dy die after it
//
// Algorithm: runs the items of both templates in order, every iteration of every
// repeat, once each. A *tensor* is storage; a *name* is a value in an iteration. A
// name holds its tensor from its op to its last use (Lifetimes inside repeats; the
// last item that uses it at the top); a tensor without names is free. What a repeat
// carries is one tensor under several names: the yield's operand, the argument of the
// next iteration, the result. A slice is a view: it takes no bytes while the tensor
// it looks at is held, and its own when that is gone. An all_reduce writes over its
// operand if nothing uses that afterwards. Otherwise no op works in place.
//
// The simulator sees what one microbatch of one virtual stage adds; static memory and
// the other microbatches are the caller's (AccountMemory).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_MEMORY_UNITSIMULATOR_H
#define STAGE_LIB_MEMORY_UNITSIMULATOR_H

#include "stage/Memory/Lifetimes.h"
#include "stage/Memory/Memory.h"

namespace stage {

/// Local bytes of values, evaluated once each.
class LocalBytes {
public:
  LocalBytes(const Graph &graph, DiagnosticEngine &diags) : graph(graph), diags(diags) {}
  /// Zero after an error, which is reported once per value.
  int64_t get(const Value *value);
  int64_t evaluate(Size size, SMLoc loc, llvm::StringRef what);

private:
  const Graph &graph;
  DiagnosticEngine &diags;
  llvm::DenseMap<const Value *, int64_t> known;
};

/// The moment when a unit holds most, and what it holds then.
struct UnitPeak {
  ByteCount total = 0;
  MemoryUse use;
  const Op *op = nullptr;
  std::optional<int64_t> iteration;
  uint64_t moment = 0; ///< Number of the moment within the simulation.
};

class UnitSimulator {
public:
  /// If `snapshotAt` is a moment of an earlier simulation, what is live then is kept.
  UnitSimulator(const Program &program, const Lifetimes &lifetimes, LocalBytes &bytes, uint64_t snapshotAt = 0)
      : program(program), lifetimes(lifetimes), bytes(bytes), snapshotAt(snapshotAt) {}

  /// Runs a forward template and, unless null, the backward template of the same chunk.
  void run(const std::vector<ProgramItem> &forward, const std::vector<ProgramItem> *backward);
  /// Runs the step's items; their peak is the forward peak.
  void runStep(const std::vector<ProgramItem> &items);

  const UnitPeak &getForwardPeak() const { return forwardPeak; }
  const UnitPeak &getBackwardPeak() const { return backwardPeak; }
  /// What forward leaves for backward, and its sum.
  const std::vector<LiveValue> &getSaved() const { return saved; }
  ByteCount getSavedBytes() const { return savedBytes; }
  const std::vector<LiveValue> &getSnapshot() const { return snapshot; }

private:
  struct Tensor {
    const Value *value;
    ByteCount size;
    MemoryClass kind;
    unsigned names = 0;
    std::optional<unsigned> source; ///< Of a view whose source is held.
  };
  /// A value in an iteration.
  using Name = std::pair<const Value *, uint64_t>;

  void runItems(const std::vector<ProgramItem> &items, const LastUses &uses);
  void bindInputs();
  void runRecv(const std::vector<ProgramItem> &items, const ProgramItem &recv);
  void runLoop(const Op &op, int64_t begin, int64_t end);
  void runCompute(const Op &op);

  Name getName(const Value *value) const;
  std::optional<unsigned> find(const Value *value) const;
  std::optional<unsigned> findOrMake(const Value *value);
  unsigned allocate(const Value *value, MemoryClass kind);
  void bind(const Value *value, unsigned tensor);
  void drop(const Value *value);
  void release(llvm::ArrayRef<const Value *> values);
  void unhold(unsigned tensor);
  /// The result of an op or a repeat that something uses.
  bool isWanted(const Value *value) const;
  /// Backward uses it.
  bool outlivesUnit(const Value *value) const;
  /// The op is the last that uses this operand.
  bool diesWith(const Value *operand, const Op &op) const;
  /// Bytes a tensor takes now.
  ByteCount getHeld(const Tensor &tensor) const { return tensor.source ? 0 : tensor.size; }
  void reachMoment(const Op *op);
  std::vector<LiveValue> listLive() const;

  const Program &program;
  const Lifetimes &lifetimes;
  LocalBytes &bytes;
  uint64_t snapshotAt;

  std::vector<Tensor> tensors;
  llvm::DenseMap<Name, unsigned> names;
  /// Views of each tensor that is held.
  llvm::DenseMap<unsigned, llvm::SmallVector<unsigned, 2>> views;
  /// Current iteration of each loop number.
  llvm::DenseMap<unsigned, uint64_t> iterations;
  std::optional<int64_t> iteration; ///< Of the repeat that runs now.
  MemoryUse use;
  uint64_t moment = 0;
  const LastUses *current = nullptr, *later = nullptr;
  llvm::ArrayRef<const Value *> entryReleases; ///< What dies when the current item is entered.
  unsigned itemEnd = 0;                        ///< 2 * item + 1 of the current item.
  UnitPeak *peak = nullptr;
  UnitPeak forwardPeak, backwardPeak;
  std::vector<LiveValue> saved, snapshot;
  ByteCount savedBytes = 0;
};

} // namespace stage

#endif // STAGE_LIB_MEMORY_UNITSIMULATOR_H
