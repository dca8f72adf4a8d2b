//===- Json.h - JSON of anybody, safely, and large numbers -----*- C++ -*-===//
//
// LLVM's reader calls itself for each bracket and keeps the last value of a key that is
// given twice. Here a text is looked over first: one that is nested deeper than
// maxJsonDepth, or names a key of an object twice, is refused.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SUPPORT_JSON_H
#define STAGE_SUPPORT_JSON_H

#include "llvm/Support/JSON.h"
#include <optional>
#include <string>

namespace stage {

/// Brackets around a value that are accepted.
inline constexpr size_t maxJsonDepth = 100;

/// The value of a text. Nothing, with the reason in `error`, if it is no JSON or is refused; a format that is known to
/// be another one is named.
std::optional<llvm::json::Value> parseJson(llvm::StringRef text, std::string &error);

/// The byte at which parseJson found a fault, which it takes out of the reason: "[3:14, byte=40]: Expected , or ]" is
/// at byte 40; 0 where it names none.
size_t takeJsonPlace(std::string &error);

/// If a text is no JSON: which other format it seems to be in, and what to do about that; empty if in none that is
/// known here (byte order marks, gzip, CSV and others).
std::string nameOtherFormat(llvm::StringRef text);

/// An attribute with all digits of a number.
void writeNumber(llvm::json::OStream &json, llvm::StringRef name, __int128 value);
/// A value as a user gave it, `-D S=4Ki`: whole and decimal numbers as numbers, 4096, all else as a text.
void writeGiven(llvm::json::OStream &json, llvm::StringRef name, llvm::StringRef text);

} // namespace stage

#endif // STAGE_SUPPORT_JSON_H
