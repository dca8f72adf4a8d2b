//===- Quantity.h - amounts with a unit ------------------------*- C++ -*-===//
//
// Problem: bytes, times and rates are written in the language, in options and in files, and must mean the same in all
// of them. A number without its unit is read wrongly by a factor of 8 (bits), 1.07 (GiB) or 1000 (ms).
//
//   450GB/s   80GiB   2us   989TFLOP/s   400Gbit/s   700W   2.50USD/h
//
// A quantity is an exact number of base units: bytes, seconds, operations, watts, dollars. Its dimension says which,
// and to which power. Amounts of one dimension are added and compared; products and quotients combine dimensions.
//
// Grammar: a decimal number, a unit right behind it, and perhaps `/` and a unit of time. Prefixes are k (or K), M, G,
// T, P and E of a thousand, and Ki, Mi, Gi, Ti and Pi of 1024 in front of B.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SYMBOLIC_QUANTITY_H
#define STAGE_SYMBOLIC_QUANTITY_H

#include "stage/Support/Diagnostics.h"
#include "stage/Symbolic/Rational.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace stage {

/// To which power a quantity has each base unit.
struct Dimension {
  int8_t bytes = 0, seconds = 0, operations = 0, watts = 0, dollars = 0;

  static Dimension ofBytes() { return {.bytes = 1}; }
  static Dimension ofTime() { return {.seconds = 1}; }
  static Dimension ofBytesPerSecond() { return {.bytes = 1, .seconds = -1}; }
  static Dimension ofFlopsPerSecond() { return {.seconds = -1, .operations = 1}; }

  bool operator==(const Dimension &other) const = default;
  bool isNumber() const { return *this == Dimension(); }
  /// Nothing where a power is beyond 100.
  std::optional<Dimension> multiply(const Dimension &other) const;
  std::optional<Dimension> divide(const Dimension &other) const;

  /// For messages: `bytes per second`.
  std::string describe() const;
  /// What one may look like: `450GB/s`.
  std::string getExample() const;
};

struct Quantity {
  Rational value; ///< In base units.
  Dimension dimension;

  /// With the largest unit in which the number stays short and exact: `450GB/s`, `1.5us`.
  std::string str() const;
};

/// Reads `450GB/s`. Nothing if the text is no quantity, or beyond 2^100.
std::optional<Quantity> parseQuantity(llvm::StringRef text);
/// The same of one dimension.
std::optional<Quantity> parseQuantity(llvm::StringRef text, Dimension wanted);

/// The same in base units, for the option or field `what`. Nothing after a report.
std::optional<Rational> readQuantity(llvm::StringRef what, llvm::StringRef text, Dimension wanted,
                                     DiagnosticEngine &diags);

/// For messages: what to write instead of a text that is no quantity, or none of a dimension that is wanted.
/// `989TFLOPS`: "989TFLOP/s". Empty where nothing is wanted and the text is no unit that is used elsewhere.
std::string suggestQuantity(llvm::StringRef text, std::optional<Dimension> wanted = std::nullopt);

} // namespace stage

#endif // STAGE_SYMBOLIC_QUANTITY_H
