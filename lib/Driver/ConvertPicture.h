//===- ConvertPicture.h - a picture as PDF ---------------------*- C++ -*-===//
#ifndef STAGE_LIB_DRIVER_CONVERTPICTURE_H
#define STAGE_LIB_DRIVER_CONVERTPICTURE_H

#include "stage/Support/Diagnostics.h"

namespace stage::driver {

/// The program that makes PDF of SVG. Nothing after a report that says how to get it.
std::optional<std::string> findConverter(DiagnosticEngine &diags);
/// The PDF of a picture: the same bytes each time. Nothing after a report.
std::optional<std::string> convertToPdf(llvm::StringRef svg, DiagnosticEngine &diags);

} // namespace stage::driver

#endif // STAGE_LIB_DRIVER_CONVERTPICTURE_H
