//===- Escape.h - text that a terminal does not obey -----------*- C++ -*-===//
#ifndef STAGE_SUPPORT_ESCAPE_H
#define STAGE_SUPPORT_ESCAPE_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace stage {

/// Names come from files of anybody, and terminals obey control characters: each (C0, DEL, and C1 in UTF-8) is
/// replaced by `\` and its code in two hexadecimal digits, as `dump` prints it. All other bytes stay.
std::string escapeControls(llvm::StringRef text);

/// The same without a change of the columns: each byte of a control character but tabs becomes `?`.
std::string maskControls(llvm::StringRef text);

/// Text of anybody as it may stand between the tags of XML.
std::string escapeXml(llvm::StringRef text);

} // namespace stage

#endif // STAGE_SUPPORT_ESCAPE_H
