//===- PhaseLook.h - how kinds of units look in pictures -------*- C++ -*-===//
#ifndef STAGE_LIB_REPORT_PHASELOOK_H
#define STAGE_LIB_REPORT_PHASELOOK_H

#include "stage/Schedule/Unit.h"

namespace stage {

/// The colour of a kind of unit: black letters can be read on it, and kinds are apart for those who do not see all
/// colours.
const char *getFill(PhaseKind kind);
/// The same in a terminal.
llvm::raw_ostream::Colors getTerminalColor(PhaseKind kind);
/// That of idle time.
inline constexpr const char *idleFill = "#ededed";
/// For legends: `backward for the weights`.
std::string describeKind(PhaseKind kind);

} // namespace stage

#endif // STAGE_LIB_REPORT_PHASELOOK_H
