//===- MemoryCurve.h - what a rank holds, node by node ---------*- C++ -*-===//
//
// Problem: picture, table and snapshot of memory over a step all go through the allocations of a stage and must agree
// when each node runs.
//
//   class Columns : public MemoryCurve { void show(const Moment &moment) override { ... } };
//   Columns(timeline, stage).walk(diags);
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_REPORT_MEMORYCURVE_H
#define STAGE_LIB_REPORT_MEMORYCURVE_H

#include "stage/Report/MemoryTimeline.h"

namespace stage {

class MemoryCurve : public AllocationListener {
public:
  MemoryCurve(const MemoryTimeline &timeline, const StageMemory &stage);
  /// Shows all nodes in their order.
  void walk(DiagnosticEngine &diags);

protected:
  struct Moment {
    NodePlace place;
    Ticks begin, end;      ///< As the main lane is then: no earlier than those before it.
    const MemoryUse &use;  ///< While the node runs.
    const MemoryUse &rest; ///< Since the end of the node before.
  };
  virtual void show(const Moment &moment) = 0;
  /// What is held behind the last node, which ends then.
  virtual void finish(Ticks, const MemoryUse &) {}
  void allocate(unsigned number, const AllocatedTensor &tensor) override;
  void free(unsigned number) override;
  std::string getUnitName(size_t unit) const;
  const StageProgram &getStage() const;
  bool isInWindow(Ticks begin, Ticks end) const { return end > timeline.window.from && begin < timeline.window.to; }

  const MemoryTimeline &timeline;
  const StageMemory &stage;

private:
  void run(const NodePlace &place) override;
  void reclassify(unsigned number, MemoryClass kind) override;
  void findTimes();

  struct Times {
    Ticks begin = 0, end = 0;
    bool isMain = false;
  };
  std::vector<Times> times;   ///< By node of the stage; empty: there is no machine.
  std::vector<size_t> firsts; ///< By unit: its first node of those.
  std::vector<std::pair<MemoryClass, int64_t>> tensors;
  MemoryUse use, rest;
  Ticks now = 0;
};

/// `layers.mlp.g gate_up`; `message`.
std::string describeNode(const NodePlace &place);
} // namespace stage

#endif // STAGE_LIB_REPORT_MEMORYCURVE_H
