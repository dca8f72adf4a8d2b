//===- Requests.h - what a server is asked, in order of arrival -*- C++ -*-===//
//
// Reads a request file, line by line as requests are taken, so that a file may be longer
// than memory:
//
//   {"arrival": 0, "prompt": 1024, "output": 128}
//   {"arrival": 0.125, "prompt": 300, "output": 20, "cached": 256}
//
// Which fields say what is listed in Fields.def; docs/Serving.md has the rules (S1 to S6).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SERVING_REQUESTS_H
#define STAGE_SERVING_REQUESTS_H

#include "stage/Support/Diagnostics.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stage::serving {

/// Tokens that a prompt or an output may have.
inline constexpr int64_t maxTokens = 100'000'000;
/// Nanoseconds that are counted; about 285 years.
inline constexpr int64_t maxTime = 9'000'000'000'000'000'000;

struct Request {
  int64_t index = 0;   ///< From 0, in the file.
  int64_t line = 0;    ///< From 1, in the file.
  int64_t arrival = 0; ///< Nanoseconds since the first arrival.
  int64_t prompt = 0;  ///< Tokens, at least 1.
  int64_t output = 0;  ///< Tokens, at least 1.
  int64_t cached = 0;  ///< Tokens at the beginning of the prompt that are loaded; the last is computed anyway.
  /// What the whole blocks of the prompt are called, each with all before it; those of equal names are equal.
  std::vector<int64_t> prefix;
};

/// The requests of a file, one after the other.
class RequestReader {
public:
  /// `-` is standard input. Fields in `ignored` are skipped. Null after a report.
  static std::unique_ptr<RequestReader> open(llvm::StringRef path, llvm::ArrayRef<std::string> ignored,
                                             DiagnosticEngine &diags);
  explicit RequestReader(DiagnosticEngine &diags) : diags(diags) {}
  virtual ~RequestReader();

  /// The next one, for which `check` is true; else `check` has reported it. Nothing at the end, and after errors: then
  /// the other lines have been looked at for theirs.
  virtual std::optional<Request> next(llvm::function_ref<bool(const Request &)> check) = 0;
  /// A message at the line of a request, whose text is shown if it was read last.
  template <diag::Kind... Missing> auto report(const Request &request, diag::Message<Missing...> message) {
    return diags.report(placeFault(request), message);
  }
  /// Something was reported, of the file or of one of its requests.
  virtual bool hasErrors() const = 0;
  /// The place of an error of a request, which counts.
  virtual SMLoc placeFault(const Request &request) = 0;

protected:
  DiagnosticEngine &diags;
};

} // namespace stage::serving

#endif // STAGE_SERVING_REQUESTS_H
