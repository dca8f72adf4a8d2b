//===- MemoryTable.cpp - memory over a step, as a table -------------------===//
#include "MemoryCurve.h"
#include "stage/Machine/TimeText.h"
#include "stage/Support/Table.h"

using namespace stage;

namespace {
class Lines : public MemoryCurve {
public:
  Lines(llvm::raw_ostream &os, const MemoryTimeline &timeline, const StageMemory &stage)
      : MemoryCurve(timeline, stage), os(os) {}

private:
  void show(const Moment &moment) override {
    if (!isInWindow(moment.begin, moment.end + 1))
      return;
    os << stage.stage << ',' << getUnitName(moment.place.unit) << ',' << moment.place.node << ',';
    if (moment.place.iteration >= 0)
      os << moment.place.iteration;
    os << ',' << describeNode(moment.place) << ',' << (timeline.step ? toMicros(moment.begin) : "");
    for (ByteCount bytes : moment.use.bytes)
      os << ',' << toDecimal(bytes);
    os << ',' << toDecimal(moment.use.getTotal()) << '\n';
  }
  llvm::raw_ostream &os;
};
} // namespace

void stage::printCsv(llvm::raw_ostream &os, const MemoryTimeline &timeline, DiagnosticEngine &diags) {
  os << "stage,unit,node,iteration,op,time_us";
  for (unsigned kind = 0; kind < numMemoryClasses; ++kind)
    os << ',' << getName(MemoryClass(kind));
  os << ",total\n";
  for (const StageMemory &stage : timeline.report->stages)
    Lines(os, timeline, stage).walk(diags);
}
