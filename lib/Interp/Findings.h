//===- Findings.h - where a program goes wrong -----------------*- C++ -*-===//
//
// Values that differ are collected over the whole run, as ranks do not run in the order
// of the program; the first in program order is the one to look at, as most others follow
// from it.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_INTERP_FINDINGS_H
#define STAGE_LIB_INTERP_FINDINGS_H

#include "OpRunner.h"

namespace stage::interp {

/// Compares tensors and remembers what differs.
class Findings {
public:
  explicit Findings(const Graph &graph);

  /// Compares a piece with the same positions of the whole, which rounding may change by `rounding`. Counts each
  /// instance once, however many ranks hold it.
  void compare(const Instance &instance, const Tensor &piece, const Tensor &whole, double rounding, int64_t rank);
  /// Something that could not be executed. Only the first is kept.
  void fail(Fault fault, int64_t rank, unsigned microbatch, const Frame &frame);

  bool hasCompared(const Instance &instance) const { return compared.count(instance); }
  bool isClean() const { return !fault && differing.empty(); }
  uint64_t getNumCompared() const { return compared.size(); }
  double getMaxError() const { return maxError; }
  /// The largest error that was accepted anywhere.
  double getMaxAccepted() const { return maxAccepted; }
  /// Of the compared instances, those of which nothing can be said, as they are nothing but rounding.
  uint64_t getNumOfRounding() const { return ofRounding.size(); }
  /// Reports the first value in the order of the program that differs, or else the fault.
  void report(DiagnosticEngine &diags) const;

private:
  struct Difference {
    std::vector<int64_t> ranks;
    std::vector<int64_t> position; ///< Of the first element that differs.
    double found = 0, expected = 0;
  };
  /// Microbatch by microbatch (the step last), top-level op by op, iteration by iteration, op by op.
  std::tuple<unsigned, unsigned, uint64_t, unsigned> getOrder(const Instance &instance) const;

  void reportUnsaved(DiagnosticEngine &diags) const;

  const Graph &graph;
  /// Position of each value in the text, and of the top-level op it is of or in.
  llvm::DenseMap<const Value *, unsigned> order, outerOrder;
  std::set<Instance> compared, ofRounding;
  std::map<Instance, Difference> differing;
  std::optional<Fault> fault;
  int64_t faultRank = -1;
  std::string faultPlace;
  double maxError = 0, maxAccepted = tolerance;
};

/// The op that makes a value, in words: "all_reduce over tp", "linear", "repeat layers".
std::string describeMaker(const Graph &graph, const Value *value);
/// "iteration 2, microbatch 1": as far as the value has them.
std::string describePlace(const Value *value, uint64_t iteration, unsigned microbatch);

} // namespace stage::interp

#endif // STAGE_LIB_INTERP_FINDINGS_H
