//===- StepBound.h - a time before which no step ends ----------*- C++ -*-===//
//
// Problem: a search compiles thousands of plans, and asks of most of them only whether they can be among the best. To
// find when each task runs takes ten times as long as to compile the plan.
//
//   StepBound bound(*program, machine, runtime, diags);
//   bound.find()                                            9.83 s
//   ...                                                     the step takes 10.96 s
//
// Algorithm: of each template of a stage a lower bound of what its unit takes is found, and the schedule is run with
// these durations (simulate, stage/Schedule/Schedule.h).
//   1. Each op has the price that it has alone. Surcharges, for a launch or beside other tasks, are left out.
//   2. Ops of the compute stream run one after the other, each behind what makes its operands in the unit.
//   3. A collective begins when its operands are made, behind those before it on its stream. Where nothing in the unit
//      makes its operands, it may have run before the unit, and who waits for it waits for nothing here.
//   4. The unit ends with its last op of the compute stream. Its messages leave behind that and take nothing.
//   5. No stage ends before its collectives of one stream, one after the other. Those of units that run once per step
//      begin after the last backward of some chunk has begun, because no gradient is complete before.
// Each rule leaves out something that a rank waits for, and adds nothing, so that no step is faster.
//
// Of a unit that is in a pair (stage/Walk/PairOrder.h) compute alone counts, because its collectives may hide behind
// the compute of the other unit. Iterations of a loop are left out if each is as much later as the one before.
//
// A bound of microbatches alone (BoundedOps) is that of each plan that computes the same for a microbatch, whatever
// becomes of its gradients: it leaves out units that run once per step, and in the others what adds gradients up,
// what ranks send of them, and element-wise ops that lead nowhere else. So plans that differ in where optimizer states
// are, or in when gradients are reduced, have one such bound.
//
// Limits: where messages leave early, units run interleaved, or some stage has nothing to send, a stage takes at least
// what it computes, and waits for nobody. Parts of a workload are bound one by one. Ops whose sizes differ from rank to
// rank take nothing.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TIME_STEPBOUND_H
#define STAGE_TIME_STEPBOUND_H

#include "stage/Time/TimedPart.h"

namespace stage {

enum class BoundedOps : uint8_t { All, OfMicrobatches };

class StepBound {
public:
  /// The program must outlive it.
  StepBound(const Program &program, const Machine &machine, const Runtime &runtime, DiagnosticEngine &diags);
  StepBound(StepBound &&);
  ~StepBound();

  /// 0 after a report, and where the machine does not say what an op takes.
  Ticks find(BoundedOps ops = BoundedOps::All);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace stage

#endif // STAGE_TIME_STEPBOUND_H
