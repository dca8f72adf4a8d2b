//===- LayerPicture.h - how the tensors of a layer are split ---*- C++ -*-===//
//
// Problem: a strategy says `shard F over tp`, and a layer has thirty tensors. Which of them are split how, and where
// does that cost communication? A row for each op of a layer's forward, in its order:
//
//   op           what it makes                      of which parameters
//   rms_norm     [B dp][S tp][D]     8.00 MiB       g1 [D]
//   == all_gather over tp, along S: 8.00 MiB put in, 56.0 MiB moved ==
//   gate_up      g [B dp][S][F tp]   14.0 MiB       gate [D][F tp]
//
// A tensor is a row of dims. A dim that is split has the colour of its outermost axis, and the dark part of it is one
// rank's. Flat storage, which has no regard to dims, is drawn over all of them.
// What is still to be reduced says so: `partial tp`. Bytes are those of a rank. Below the rows the collectives of each
// other phase are listed.
//
// Limits: sizes that differ from unit to unit have no bytes.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_REPORT_LAYERPICTURE_H
#define STAGE_REPORT_LAYERPICTURE_H

#include "stage/IR/graph/LayerOps.h"
#include "stage/Report/PictureFrame.h"

namespace stage {

/// As SVG. The graph has its shardings and its communication.
void printLayer(llvm::raw_ostream &os, const Graph &graph, const LayerOps &layer, const PictureFrame &frame);

} // namespace stage

#endif // STAGE_REPORT_LAYERPICTURE_H
