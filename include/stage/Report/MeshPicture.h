//===- MeshPicture.h - who talks to whom, per axis -------------*- C++ -*-===//
//
// For each kind of group that a step uses, the axes over which collectives go or the one
// along which the stages of a pipeline send: which ranks are together, and what a rank
// puts in and moves. Eight ranks, `mesh (dp = 4, tp = 2)`:
//
//   axes  members  groups  ranks of the first group  ranks of the last group
//   tp          2       4  0-1                       6-7
//   dp          4       2  0, 2, 4, 6                1, 3, 5, 7
//
//   tp  ##......
//   dp  #.#.#.#.
//
// SVG has a panel for each of them, in which ranks of a group have one colour, and the nodes of the machine are frames:
//
//   tp      node 0 |0 0 1 1|   node 1 |2 2 3 3|         neighbours, inside of a node
//   dp      node 0 |0 1 0 1|   node 1 |0 1 0 1|         every second rank, across nodes
//
// Large meshes are cut: of each axis as many coordinates are shown as fit, and the picture says of how many. A panel of
// SVG shows few groups, whose colours can be told apart, and as many members of each as fit. What goes to another part
// of a workload, on a mesh of its own, is not shown.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_REPORT_MESHPICTURE_H
#define STAGE_REPORT_MESHPICTURE_H

#include "stage/Report/PictureFrame.h"
#include "stage/Report/Report.h"

namespace stage {

/// A level of the machine: blocks of so many ranks, side by side.
struct MeshLevel {
  std::string name;
  int64_t ranks;
};

class MeshPicture {
public:
  /// `levels`: from the inside out; none if the job has no machine.
  explicit MeshPicture(const Report &report, std::vector<MeshLevel> levels = {});

  void printText(llvm::raw_ostream &os) const;
  void printSvg(llvm::raw_ostream &os, const PictureFrame &frame) const;

private:
  friend class MeshSvg;
  /// Ranks that talk to each other.
  struct Kind {
    std::string axes;
    AxisSet set = 0;
    bool isSend = false;
    int64_t members = 0;
    /// Coordinates on the pipeline's axis of ranks that take part, ascending.
    std::vector<unsigned> stages;
    std::vector<TrafficRow> rows;
  };
  /// The ranks with these coordinates or less on each axis, in their order.
  struct Window {
    std::vector<int64_t> sizes;
    std::vector<int64_t> ranks;
  };

  void collect();
  Window choose(int64_t maxRanks) const;
  bool takesPart(const Kind &kind, int64_t rank) const;
  /// Of the groups of a kind: those with the same number are in one.
  int64_t getGroup(const Kind &kind, int64_t rank) const;
  int64_t countGroups(const Kind &kind) const;
  /// The ranks of the group of one, in so many letters at most: `0, 8, 16, 24`.
  std::string listMembers(const Kind &kind, int64_t rank, size_t maxShown = 60) const;
  int64_t getFirst(const Kind &kind) const;
  int64_t getLast(const Kind &kind) const;
  std::string describeMesh() const;
  /// `messages go between stages 0 and 1, 1 and 2`
  std::string describeMessages() const;
  std::string describeCut(const Window &window) const;
  static std::string describeStages(const TrafficRow &row);

  const Report &report;
  const Mesh &mesh;
  std::vector<MeshLevel> levels;
  std::optional<AxisId> pipelineAxis;
  std::vector<Kind> kinds;
};

} // namespace stage

#endif // STAGE_REPORT_MESHPICTURE_H
