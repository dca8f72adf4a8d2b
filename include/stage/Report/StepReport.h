//===- StepReport.h - what a step takes on a machine, for people *- C++ -*-===//
//
// Problem: from the ticks of a step to what people compare: seconds, tokens per second and device, which share of the
// machine's peak the model's FLOPs are, and what it costs.
//
//   step 1.4065 s on 32 ranks, 524,288 tokens       372,760 tokens/s, 11,649 per device
//   model FLOPs 26.99e15, peak 989e12 per rank      MFU = 26.99e15 / (1.4065 * 32 * 989e12) = 60.6 %
//
// MFU counts each FLOP of the model once; HFU also those that are computed again (Chowdhery et al., PaLM, arXiv
// 2204.02311, appendix B). Both are shares of the peak that the machine has for the type of activations. Bubble and
// exposed communication are means over stages.
//
// Energy: each rank draws the machine's `power.busy` while it computes and `power.idle` while it waits. Cost: ranks
// times the step times `price`, whatever ranks do.
//
//   32 ranks of 700W and 70W compute for 1.5 s of 2 s      32 x (700W x 1.5 s + 70W x 0.5 s) = 34.7 kJ
//   at 2.50USD/h for each                                  32 x 2 s x 2.50USD/h = 0.0444 USD
//
// Where nobody says what products reach, the step of one plan has a range: devices reach 0.45 to 0.75 of the roof.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_REPORT_STEPREPORT_H
#define STAGE_REPORT_STEPREPORT_H

#include "stage/Report/Accuracy.h"
#include "stage/Time/Sensitivities.h"

namespace stage {

struct Report;

struct StepReport {
  TimeReport time;
  /// Of a step: tokens or, of a model without any, samples.
  __int128 tokens = 0;
  bool areSamples = false;
  /// What 1e15 FLOPs take at the peak that a rank has for the type of activations; 0: the machine does not say.
  Ticks petaFlop = 0;
  std::string peakType;
  __int128 capacity = 0;                        ///< Bytes of a rank's memory; 0: the machine does not say.
  __int128 reserved = 0;                        ///< Bytes more that the runtime reserves.
  std::optional<Rational> powerBusy, powerIdle; ///< Watts of a rank.
  std::optional<Rational> price;                ///< Dollars per second of a rank.
  Accuracy accuracy;
  // Of one plan, for which there is more time than for each of many.
  std::optional<std::pair<Ticks, Ticks>> range; ///< Of the step, where no table and no number says what products reach.
  std::optional<Sensitivities> sensitivities;
};

/// What follows from a step. Shares are of 1.
struct StepFigures {
  double seconds = 0, tokensPerSecond = 0, tokensPerDevice = 0;
  double modelFlops = 0; ///< Per second and device.
  double mfu = 0, hfu = 0, bubble = 0;
  Ticks exposed = 0;
  std::optional<double> joules, dollars; ///< Of a step, all ranks.
};
/// The report must have a time.
StepFigures getFigures(const Report &report);

/// Whether memory at the peak is no more than a rank has. Nothing where no machine says how much that is.
std::optional<bool> fitsMemory(const Report &report);
/// It fits, but no 5 % are left.
bool isNearlyFull(const Report &report);

} // namespace stage

#endif // STAGE_REPORT_STEPREPORT_H
