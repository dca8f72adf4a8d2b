//===- PipelineChain.h - repeats in a row that a pipeline cuts -*- C++ -*-===//
//
// A pipeline cuts a chain: repeats one behind the other, with what stands between them.
// Its iterations are those of all its repeats in a row, and each virtual stage runs some
// of them. For 3 dense and 5 expert layers over 4 virtual stages:
//
//   virtual stage   0              1                          2                3
//   iterations      dense [0, 2)   dense [2, 3) expert [0, 1)   expert [1, 3)    expert [3, 5)
//   cut of                   dense                       expert           expert
//
// Between two virtual stages moves what one repeat carries: the one that is cut there.
// Where one ends with virtual stage v and the next begins with v + 1, that is the next,
// before its first iteration: what stands between them runs on v. So each repeat has a
// first and a last virtual stage, where what enters it is made and where its results are;
// the last of one is the first of the next.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_PIPELINECHAIN_H
#define STAGE_IR_GRAPH_PIPELINECHAIN_H

#include "stage/IR/graph/Graph.h"

namespace stage {

class PipelineChain {
public:
  PipelineChain() = default;
  /// Repeats of so many iterations each; each virtual stage runs so many of all of them. Both add up to the same.
  /// The first one is entered on virtual stage `entry`, and the results of the last one are on `exit`, or on the last
  /// virtual stage: those before and behind run no iterations.
  PipelineChain(llvm::ArrayRef<int64_t> counts, llvm::ArrayRef<int64_t> split, unsigned entry = 0,
                std::optional<unsigned> exit = std::nullopt);

  unsigned getNumRepeats() const { return begins.empty() ? 0 : begins.size() - 1; }
  int64_t getCount(unsigned repeat) const { return begins[repeat + 1] - begins[repeat]; }
  /// The iterations [begin, end) of a repeat that a virtual stage runs. Where it runs none both are 0 before the repeat
  /// begins, and the count of the repeat behind its end.
  std::pair<int64_t, int64_t> getRange(unsigned repeat, unsigned virtualStage) const;
  /// The virtual stages where, in forward, what enters a repeat is made and where its results are.
  unsigned getFirst(unsigned repeat) const { return repeat ? lasts[repeat - 1] : entry; }
  unsigned getLast(unsigned repeat) const { return lasts[repeat]; }
  /// The repeat that is cut between a virtual stage and the one after it; nothing before the first of them and behind
  /// the last one.
  std::optional<unsigned> getCutRepeat(unsigned virtualStage) const;
  /// The places where the pipeline cuts, each once: a repeat, and whether some of its iterations are before the cut.
  std::vector<std::pair<unsigned, bool>> listKindsOfCuts() const;

private:
  /// Counted over all iterations of the chain: where each repeat and each virtual stage begins, and the end.
  std::vector<int64_t> begins, cuts;
  std::vector<unsigned> lasts; ///< By repeat.
  unsigned entry = 0;
};

/// The repeats of forward that the pipeline of a graph names, in its order; null for a name that none has.
std::vector<Op *> findPipelinedRepeats(const Graph &graph);

/// The virtual stages of one copy of the model: 1 at least, also where a graph that was read has as many copies as
/// cannot be.
unsigned countVirtualStages(const Graph &graph);

/// `count` iterations over so many virtual stages, as evenly as can be.
std::vector<int64_t> splitEvenly(int64_t count, unsigned parts);

} // namespace stage

#endif // STAGE_IR_GRAPH_PIPELINECHAIN_H
