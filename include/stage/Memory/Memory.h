//===- Memory.h - what every stage must hold -------------------*- C++ -*-===//
//
// Memory is liveness in the order of the program (law L9; docs/Memory.md is the
// model, rule by rule). Bytes are those of one rank; all ranks of a stage hold the
// same, unless a dim is dealt out by a table: then of the rank that holds most. Unless
// something else is said they are those of the device; what is kept on the host is
// accounted apart.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_MEMORY_MEMORY_H
#define STAGE_MEMORY_MEMORY_H

#include "stage/IR/graph/Program.h"
#include "stage/IR/graph/SavedBytes.h"
#include <array>

namespace stage {

class RuntimeMemory;

enum class MemoryClass : uint8_t {
  Parameters,   ///< In their compute sharding, one copy.
  Gradients,    ///< One buffer per parameter and sharding in which its gradient accumulates.
  Optimizer,    ///< States of the optimizer.
  Activations,  ///< What backward uses of forward, and the inputs, per microbatch in flight.
  Temporaries,  ///< Other results, from their op to their last use.
  Buffers,      ///< Results of collectives, and receives from the moment they are posted.
  ModelBuffers, ///< What the model declares as `buffer`, one copy.
  Caches,       ///< What units leave for later ones, as large as it may become.
  Residents,    ///< What software keeps besides: workspaces, placeholders.
};
constexpr unsigned numMemoryClasses = 9;
llvm::StringRef getName(MemoryClass kind);

/// Wide, so that no sum over layers and microbatches can overflow.
using ByteCount = __int128;

/// Bytes per class.
struct MemoryUse {
  std::array<ByteCount, numMemoryClasses> bytes = {};

  ByteCount &operator[](MemoryClass kind) { return bytes[unsigned(kind)]; }
  ByteCount operator[](MemoryClass kind) const { return bytes[unsigned(kind)]; }
  ByteCount getTotal() const;
  MemoryUse &operator+=(const MemoryUse &other);
};

/// All live copies of one value: over iterations of its repeat and microbatches.
struct LiveValue {
  const Value *value = nullptr; ///< Null: a resident, which has a name.
  std::string name;
  MemoryClass kind = MemoryClass::Temporaries;
  int64_t copies = 0;
  ByteCount bytes = 0; ///< Of all copies.
};

/// The resident's name, or the value's.
std::string describe(const LiveValue &live);

/// One of the memories of a stage at the moment when it holds most.
struct MemoryPeak {
  MemoryUse peak;
  /// Of the rank of the stage that holds least at its own worst moment.
  ByteCount leastPeak = 0;
  /// When: the unit ("B0", "step"), the op that ran, and the iteration it was in if it stands in a repeat.
  std::string unit;
  const Op *op = nullptr;
  std::optional<int64_t> iteration;
  /// What is live at the peak, largest first.
  std::vector<LiveValue> live;

  /// `B0: layers.mlp.h.grad, iteration 3`.
  std::string describeMoment() const;
};

/// Where the units of one kind hold most. Which kind holds most of all changes with software.
struct MemoryMoment : MemoryPeak {
  PhaseKind phase = PhaseKind::Forward;
};

/// One pipeline stage: the peak of its device, and that of its host, which is at a moment of its own.
struct StageMemory : MemoryPeak {
  unsigned stage = 0;
  /// Of the rank that holds most, on the axes that make a difference.
  SizeBinding coordinates;
  /// Nothing if nothing is kept there.
  std::optional<MemoryPeak> host;
  /// Of the device, in the order in which kinds of units run; only where they were asked for.
  std::vector<MemoryMoment> moments;
  /// Most microbatches whose activations are held at once, counted per chunk.
  int64_t inFlight = 0;
  /// Bytes of the device that one microbatch keeps from forward to backward, per chunk; of microbatches that differ
  /// the most.
  std::vector<ByteCount> savedPerMicrobatch;
};

/// What the runtime's allocator makes of the stage that holds most.
struct AllocatorUse {
  unsigned stage = 0;
  ByteCount allocated = 0; ///< Bytes at most, with what is lost by rounding.
  ByteCount reserved = 0;  ///< Bytes of all segments at most.
  int64_t stalls = 0;      ///< How often unused segments are given back, since the device has no more memory.
  bool fits = true;        ///< Into the capacity, if that is known.
};

struct MemoryReport {
  const Program *program = nullptr;
  std::vector<SavedBytes> saved;
  std::vector<StageMemory> stages;
  std::optional<AllocatorUse> allocator; ///< If the runtime has one and somebody asks.
};

/// Simulates each template once and sums over the units of each stage: O(iterations of templates + units). After
/// errors (a tensor whose local bytes are not a whole number) the report is empty.
/// Without `memory` software keeps nothing besides. `withMoments`: also the peak of each kind of unit. With `limit` the
/// first stage that holds more bytes is the last one in the report.
MemoryReport accountMemory(const Program &program, DiagnosticEngine &diags, const RuntimeMemory *memory = nullptr,
                           bool withMoments = false, std::optional<ByteCount> limit = std::nullopt);

} // namespace stage

#endif // STAGE_MEMORY_MEMORY_H
