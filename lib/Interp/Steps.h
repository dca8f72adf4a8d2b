//===- Steps.h - what a rank does, one after the other ---------*- C++ -*-===//
//
// A program is rolled: templates, loops, units. To run it, each stage's work is
// written out once as a list of steps, which all its ranks go through:
//
//   F1: receive layers.x @4   run rms_norm @4   ...   bind layers.x @5 <- layers.y @4   free layers.x @4   ...
//
// Tensors are freed where memory accounting says they are (stage/Memory/Lifetimes.h).
// The unsharded run has the same steps of the whole graph, without sends and frees.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_INTERP_STEPS_H
#define STAGE_LIB_INTERP_STEPS_H

#include "stage/Walk/UnitWalk.h"

namespace stage::interp {

/// Which iteration of which loop (by its number) is running, if one is.
using Frame = llvm::SmallVector<std::pair<unsigned, uint64_t>, 2>;
/// In place of a loop, at the end of a frame: on which virtual stage, if that is not the first; none for the step.
constexpr unsigned placeInFrame = ~0u;
uint64_t getPlace(const Frame &frame);
/// The iteration a value belongs to; 0 outside of repeats.
uint64_t getIteration(const Value *value, const Frame &frame);

struct Step {
  enum class Kind : uint8_t {
    Run,     ///< `op`
    Bind,    ///< `to` at `toFrame` is another name for `value`
    Receive, ///< `value` from the virtual stage `peer`
    Send,    ///< `value` to the virtual stage `peer`
    Free,    ///< `value`
  };
  Kind kind = Kind::Run;
  const Op *op = nullptr;
  const Value *value = nullptr;
  Frame frame;
  const Value *to = nullptr;
  Frame toFrame;
  unsigned peer = 0, self = 0;      ///< Virtual stages.
  unsigned slot = 0;                ///< Number of a sent value in its message.
  const Channel *channel = nullptr; ///< Of what is received from another part, or sent there.
  unsigned microbatch = 0;
  unsigned unit = 0; ///< Position in the stage's list.
};

/// While it lives, a graph's symbols are what they are in the units of one microbatch.
class EnvironmentScope {
public:
  explicit EnvironmentScope(Graph &graph) : graph(graph), own(graph.binding), environments(graph.listEnvironments()) {}
  ~EnvironmentScope() { select(0); }
  void enter(unsigned microbatch) {
    if (environments[microbatch] != current)
      select(environments[microbatch]);
  }

private:
  void select(unsigned environment) {
    graph.binding = own;
    graph.binding = graph.getBinding(current = environment);
  }
  Graph &graph;
  const SizeBinding own;
  const std::vector<unsigned> environments; ///< Per microbatch.
  unsigned current = 0;
};

/// All units of a stage in their order, then the step.
std::vector<Step> listSteps(const Program &program, const StageProgram &stage, const ChainLifetimes &lifetimes);
/// Every microbatch forward and backward, then the step, on one device.
std::vector<Step> listUnshardedSteps(Graph &graph);
/// The phase in which a microbatch goes forward; without one, null.
Block *getForward(const Graph &graph, unsigned microbatch);
/// One microbatch forward, on one device.
std::vector<Step> listForwardSteps(Graph &graph, unsigned microbatch);

} // namespace stage::interp

#endif // STAGE_LIB_INTERP_STEPS_H
