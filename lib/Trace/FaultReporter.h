//===- FaultReporter.h - many faults, few messages -------------*- C++ -*-===//
//
// One wrong pass of a compiler makes a million wrong nodes. Each code is shown a few
// times and then counted.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TRACE_FAULTREPORTER_H
#define STAGE_LIB_TRACE_FAULTREPORTER_H

#include "stage/Support/Diagnostics.h"
#include "stage/Trace/Diagnostics.h"
#include "llvm/ADT/MapVector.h"

namespace stage::trace {

class FaultReporter {
public:
  FaultReporter(DiagnosticEngine &diags, unsigned maxShown) : diags(diags), maxShown(maxShown) {}

  /// Reports a fault with its arguments, or counts it. An argument that is costly is a function that returns it.
  template <diag::Kind... Missing, typename... Arguments>
  void report(diag::Message<Missing...> message, const Arguments &...arguments) {
    if (isShown(message))
      diags.report(SMLoc(), message).with(resolve(arguments)...);
  }
  /// Like report(), for messages with notes: whether to build one.
  bool isShown(diag::ID id) {
    bool isShown = ++counts[id] <= maxShown;
    if (!isShown && id->severity == Severity::Error)
      ++numHidden;
    return isShown;
  }
  /// Says how many of each code were only counted.
  void finish() {
    for (const auto &[id, count] : counts)
      if (count > maxShown)
        diags.report(SMLoc(), diag::MoreOfThese) << int64_t(count - maxShown) << id->code;
  }
  /// All errors so far, shown or not, also those that were reported to the engine by others.
  uint64_t getNumErrors() const { return diags.getNumErrors() + numHidden; }
  DiagnosticEngine &getDiagnostics() { return diags; }

private:
  template <typename Argument> static decltype(auto) resolve(const Argument &argument) {
    if constexpr (std::is_invocable_v<const Argument &>)
      return argument();
    else
      return (argument);
  }

  DiagnosticEngine &diags;
  unsigned maxShown;
  llvm::MapVector<diag::ID, uint64_t> counts;
  uint64_t numHidden = 0;
};

} // namespace stage::trace

#endif // STAGE_LIB_TRACE_FAULTREPORTER_H
