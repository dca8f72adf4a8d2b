//===- ShortNumbers.h - numbers of three digits for people -----*- C++ -*-===//
//
// Problem: a reader of `13,849,788,416 bytes` counts commas. Three significant digits and a unit say as much:
//
//   13849788416 bytes    12.9 GiB        8030261248            8.03 billion
//   786432 bytes         768 KiB         1125027000000 ticks   1.13 s
//
// A unit is used up to 999: 1,000 MiB are 0.98 GiB. Exact numbers are in --report=full, JSON and CSV.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_REPORT_SHORTNUMBERS_H
#define STAGE_LIB_REPORT_SHORTNUMBERS_H

#include "stage/Machine/Ticks.h"
#include <string>

namespace stage {

/// `0.0313`, `9.43`, `62.1`, `372`: of a number from 0 to 999.
std::string shortenDigits(double number);
/// `1,304` below ten thousand, then `336 thousand`, `8.03 billion`.
std::string shortenCount(double count);
std::string shortenBytes(double bytes);
std::string shortenFlops(double flops);
std::string shortenJoules(double joules);
std::string shortenTime(Ticks ticks);
/// `62.1 %` of a share of 1.
std::string shortenShare(double share);

} // namespace stage

#endif // STAGE_LIB_REPORT_SHORTNUMBERS_H
