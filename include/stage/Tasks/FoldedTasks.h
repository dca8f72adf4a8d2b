//===- FoldedTasks.h - how long the nodes of equal rounds are --*- C++ -*-===//
//
// Problem: a report counts the bytes of traces in which each of a thousand layers has
// nodes of its own, though nothing but their numbers differs:
//
//   round        0             1             2  ...  996           997
//   id           130           142           154     12082         12094
//   depends on   129, 70       141, 82       153, 94 12081, 12022  12093, 12034
//   name         layers.3.q    layers.4.q    ...     layers.999.q  layers.1000.q
//
// Algorithm: of equal rounds of iterations (FoldedLoop) the first two and the last one
// are lowered, the others are counted. Each number of a node is linear in the round:
//
//   * a node's id, and the tag of a collective or permute, as all rounds have as many;
//   * the iteration in its name;
//   * what it depends on: a node of this round or of one a fixed distance before, of this
//     iteration in an earlier unit (whose rounds are of one length, too), or one outside of
//     the rounds.
//
// Dependencies are sorted and none is written twice, so two of them must not cross. The
// least of linear functions is concave, as are the sums of the least two, three, ...: if
// they are on a line in the first, second and last round, they are in all. So what is seen
// of three rounds is proved for those between; where the three are not on a line, all are
// lowered. The bytes of a number change where it passes a power of 128 (ids, tags) or 10
// (iterations): between these rounds a node is encoded once.
//
// Limits: lists of tensors (`inputs`, `outputs`) are not known here, and where gathers run ahead every node is lowered.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TASKS_FOLDEDTASKS_H
#define STAGE_TASKS_FOLDEDTASKS_H

#include "stage/Tasks/Task.h"
#include "llvm/ADT/STLExtras.h"
#include <array>

namespace stage {

/// The nodes of three of many rounds, and from them those of all.
class RoundSamples {
public:
  enum Sample : unsigned { First, Second, Last };
  /// The nodes that are added from here on are of this sample.
  void begin(Sample sample);
  /// Adds a node, whose name says the iteration.
  void add(const Task &node, int64_t iteration);
  /// Each number is on a line in the rounds 0, 1 and `last`.
  bool areLinear(int64_t last) const;
  /// Visits the nodes of the rounds [from, to): one of each length, and how many are as long.
  void count(int64_t from, int64_t to, llvm::function_ref<void(const Task &, uint64_t times)> visit) const;

private:
  /// What is written of a node, but for its numbers.
  struct Node {
    Task fields;
    size_t nameLength; ///< Without the iteration.
    size_t numDeps;
  };
  /// Numbers of a node: id, tag, iteration, and what it depends on, in ascending order.
  enum Number : unsigned { Id, Tag, Iteration, NumFixed };
  std::vector<Node> nodes; ///< Of the first round.
  std::array<std::vector<int64_t>, 3> numbers;
  std::array<std::vector<uint64_t>, 3> shapes; ///< What must be the same in all rounds.
  Sample current = First;
};

} // namespace stage

#endif // STAGE_TASKS_FOLDEDTASKS_H
