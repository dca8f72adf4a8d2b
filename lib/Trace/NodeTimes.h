//===- NodeTimes.h - how long nodes take -----------------------*- C++ -*-===//
#ifndef STAGE_LIB_TRACE_NODETIMES_H
#define STAGE_LIB_TRACE_NODETIMES_H

#include "stage/CodeGen/NodeWriter.h"
#include "stage/Trace/Timeline.h"

namespace stage::trace {

/// Times are in ticks, and at most maxTime (Simulation.h): what takes longer than that takes as long.
class NodeTimes {
public:
  static constexpr int64_t ticksPerUnit = 1'000'000;
  static constexpr int64_t ticksPerSecond = 1'000'000'000'000;

  explicit NodeTimes(const TimelineOptions &options) : options(options) {}

  /// Nothing where a rate is needed that was not said, whose option is then in `missing`.
  std::optional<int64_t> ofCompute(int64_t flops, int64_t bytes, bool onHost, llvm::StringRef &missing) const;
  std::optional<int64_t> ofCopy(int64_t bytes, llvm::StringRef &missing) const;
  std::optional<int64_t> ofMessage(int64_t bytes, llvm::StringRef &missing) const;
  std::optional<int64_t> ofCollective(ChakraCommType type, int64_t bytes, int64_t members,
                                      llvm::StringRef &missing) const;
  /// A compute node that somebody measured and that says nothing else.
  int64_t ofMeasured(uint64_t micros) const;

private:
  /// So many bytes, or FLOPs, times a fraction, at so many a second.
  static int64_t divide(int64_t amount, int64_t numerator, int64_t denominator, uint64_t rate);

  const TimelineOptions &options;
};

} // namespace stage::trace

#endif // STAGE_LIB_TRACE_NODETIMES_H
