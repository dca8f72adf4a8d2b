//===- UnlikeAxes.cpp - axes along which the numbers of ranks differ ------===//
//
// Problem: sizes may name the coordinate of a rank although all ranks have the same number of everything. Slots of
// experts that are dealt out evenly (SlotLoad) do, since a rest of the division would go to some ranks alone:
//
//   17 slots on 4 ranks    5, 4, 4, 4    the ranks differ
//   16 slots on 4 ranks    4, 4, 4, 4    they do not, and one of them stands for all
//
// Algorithm: each size is evaluated at all coordinates that it names.
//
// Limits: areas of masks, and caches to which is appended, count as different wherever they name a coordinate. So does
// a size with more than 4,096 values.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/graph/Costs.h"
#include "stage/Tasks/TaskWork.h"
#include "llvm/ADT/DenseSet.h"

using namespace stage;

/// A size names coordinates of some axes. Its number may be the same along some of these: they are left out.
static AxisSet findAxesOfSize(const Graph &graph, Size size) {
  AxisSet named = getCoordinateAxes(graph.mesh, size), unlike = 0;
  const Environments &environments = graph.pipeline.environments;
  constexpr int64_t mostNumbers = 4096;
  if (!named || graph.mesh.getGroupSize(named) > mostNumbers / int64_t(environments.size()))
    return named;
  for (unsigned environment = 0; environment < environments.size(); ++environment) {
    if (!environments.isFirstAlike(environment))
      continue;
    SizeBinding binding = graph.getBinding(environment);
    std::vector<Rational> numbers; // the first axis outermost
    bool isKnown = true;
    forEachCoordinates(graph, named, binding, [&] {
      SizeValue value = evaluate(size, binding);
      isKnown &= bool(value);
      numbers.push_back(value.value);
    });
    if (!isKnown)
      return named;
    size_t stride = numbers.size();
    for (AxisId axis : toList(named)) {
      size_t length = size_t(graph.mesh[axis].size);
      stride /= length;
      for (size_t place = 0; place < numbers.size(); ++place)
        if (numbers[place] != numbers[place - place / stride % length * stride])
          unlike |= AxisSet(1) << axis;
    }
  }
  return unlike;
}

AxisSet stage::findUnlikeAxes(const Program &program, const StageProgram &stage) {
  const Graph &graph = *program.graph;
  AxisSet unlike = 0;
  llvm::DenseSet<const SizeNode *> seen;
  auto add = [&](Size size) {
    if (size && seen.insert(size.getNode()).second)
      unlike |= findAxesOfSize(graph, size);
  };
  llvm::for_each(findBlockSizes(program, stage), add);
  forEachOp(stage, [&](const Op &op) {
    OpCost cost = getLocalCost(graph, op);
    for (Size size : {cost.getComputed(), cost.bytes})
      add(size);
    if (op.kind == OpKind::Append)
      unlike |= getCoordinateAxes(graph.mesh, cost.bytes);
    if (op.kind != OpKind::Compute)
      return;
    llvm::for_each(getLocalIndexSizes(graph, op), add);
    if (Size area = getLocalMaskArea(graph, op))
      unlike |= getCoordinateAxes(graph.mesh, area);
  });
  return unlike;
}
