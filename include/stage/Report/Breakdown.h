//===- Breakdown.h - of what the costs of plans are made -------*- C++ -*-===//
//
// Problem: of two plans one is 8 % slower. Is that its communication, its bubble or its products? A table has a column
// for each, and the eye adds none of them up. Bars do:
//
//   time of a step      tp = 1  |products    |exposed|bubble |        1.41 s
//                       tp = 2  |products    |exposed  |bubble   |    1.51 s
//   communication       tp = 1  |dp gradients|                        3.2 GiB
//                       tp = 2  |dp gr.|tp activations    |           9.8 GiB
//   memory              tp = 1  |parameters|optimizer|activations|    61 GiB
//                       tp = 2  |para|optim|activations|              38 GiB
//
// Rule: time is the mean over stages, each of which takes the whole step: its accounts are those of the report.
// Communication is what leaves a rank of the stage that moves most, by axes and subject. Memory is the peak of the
// stage that holds most, by class. The bars of a panel have one scale.
//
// Limits: 48 plans; of more the first ones are drawn, and the picture says so. A plan without a machine has no time.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_REPORT_BREAKDOWN_H
#define STAGE_REPORT_BREAKDOWN_H

#include "stage/Report/Comparison.h"
#include "stage/Report/PictureFrame.h"

namespace stage {

/// Bars of all plans, as SVG.
void printBreakdown(llvm::raw_ostream &os, const Comparison &comparison, const PictureFrame &frame);

} // namespace stage

#endif // STAGE_REPORT_BREAKDOWN_H
