//===- Uncached.h - is what caches give what all tokens give? --*- C++ -*-===//
#ifndef STAGE_LIB_INTERP_UNCACHED_H
#define STAGE_LIB_INTERP_UNCACHED_H

#include "Reference.h"

namespace stage::interp {

/// Compares what the units of `cached` return with what `whole` returns: the same model without caches, whose unit m
/// goes forward over all positions that the sequences have when unit m of `cached` is done. The difference, as a part
/// of the largest element; nothing if a unit differs, which is reported. `numCompared`: tensors. Where units have
/// several sequences (`served`), `whole` has a unit for each sequence of a unit of `cached`.
std::optional<double> compareUncached(Graph &cached, const Reference &found, Graph &whole, double scale,
                                      const ServedUnits *served, uint64_t &numCompared, DiagnosticEngine &diags);

} // namespace stage::interp

#endif // STAGE_LIB_INTERP_UNCACHED_H
