//===- RankClasses.cpp - ranks that do the same at the same times ---------===//
#include "stage/Time/RankClasses.h"
#include "stage/Tasks/Slowness.h"
#include "stage/Tasks/TaskWork.h"
#include <map>
#include <numeric>

using namespace stage;

/// The axes along which ranks send to a neighbour.
static AxisSet findAxesOfPermutes(const Program &program) {
  AxisSet axes = 0;
  for (const StageProgram &stage : program.stages)
    forEachOp(stage, [&](const Op &op) {
      if (op.kind == OpKind::Permute)
        for (AxisId axis : op.axes)
          axes |= AxisSet(1) << axis;
    });
  return axes;
}

/// A block is made of all ranks along the axes inside of one axis, and of a whole part of those along that one: it
/// looks alike from each rank.
static bool endsWithAxis(const Mesh &mesh, int64_t block) {
  for (AxisId axis = 0; axis < mesh.getAxes().size(); ++axis) {
    int64_t stride = mesh.getStride(axis), size = mesh[axis].size;
    if (block >= stride && block <= stride * size && block % stride == 0 && size % (block / stride) == 0)
      return true;
  }
  return false;
}

/// Of the ranks with a coordinate, in their order: how many come before each place where the block changes.
static std::vector<int64_t> listBlockEnds(const Mesh &mesh, AxisId axis, int64_t coordinate, int64_t block) {
  int64_t stride = mesh.getStride(axis), size = mesh[axis].size;
  std::vector<int64_t> ends;
  int64_t before = 0, blockBefore = 0;
  for (int64_t begin = coordinate * stride; begin < mesh.getNumRanks(); begin += stride * size) {
    if (before && begin / block != blockBefore)
      ends.push_back(before);
    for (int64_t end = (begin / block + 1) * block; end < begin + stride; end += block)
      ends.push_back(before + end - begin);
    blockBefore = (begin + stride - 1) / block;
    before += stride;
  }
  return ends;
}

RankClasses::RankClasses(const Program &program, llvm::ArrayRef<int64_t> blockSizes, bool apart)
    : program(program), mesh(program.graph->mesh) {
  const Graph &graph = *program.graph;
  AxisSet whole = 0;
  for (const StageProgram &stage : program.stages) {
    AxisSet ofWork = findAxesOfWork(program, stage);
    varying |= ofWork;
    whole |= ofWork ? ofWork & findUnlikeAxes(program, stage) : 0;
  }
  bool isUneven = whole;
  if (graph.pipeline.axis)
    whole |= AxisSet(1) << *graph.pipeline.axis;
  std::vector<std::vector<int64_t>> named(mesh.getAxes().size()); // coordinates, by axis
  AxisSet permuted = graph.slowRanks.empty() && blockSizes.empty() ? 0 : findAxesOfPermutes(program);
  std::vector<int64_t> periods(mesh.getAxes().size(), 1); // of neighbours along each axis
  std::vector<int64_t> crossing;                          // blocks that end within an axis, anywhere
  for (int64_t block : blockSizes) {
    if (block >= mesh.getNumRanks())
      continue;
    for (AxisId axis : toList(permuted)) {
      int64_t stride = mesh.getStride(axis), size = mesh[axis].size;
      if (block > stride && block % (stride * size)) // some neighbours are in one block
        periods[axis] = std::lcm(periods[axis], block % stride ? size : block / stride);
    }
    if (!endsWithAxis(mesh, block))
      crossing.push_back(block);
  }
  apart |= isUneven && !crossing.empty();
  for (const SlowRanks &slow : graph.slowRanks)
    for (auto [axis, coordinate] : slow.coordinates) {
      named[axis].push_back(coordinate);
      whole |= permuted & AxisSet(1) << axis;
    }
  for (AxisId axis = 0; axis < mesh.getAxes().size(); ++axis) {
    std::vector<unsigned> &cells = cellOf.emplace_back(mesh[axis].size);
    unsigned &number = numCells.emplace_back(0);
    bool isWhole = apart || whole >> axis & 1;
    // By what tells a coordinate from others: itself if a rule names it, and where blocks end.
    std::map<std::pair<int64_t, std::vector<std::vector<int64_t>>>, unsigned> known;
    for (int64_t coordinate = 0; coordinate < mesh[axis].size; ++coordinate) {
      bool isAlone = isWhole || llvm::is_contained(named[axis], coordinate);
      std::vector<std::vector<int64_t>> ends;
      if (!isAlone)
        for (int64_t block : crossing)
          ends.push_back(listBlockEnds(mesh, axis, coordinate, block));
      auto [cell, isNew] = known.try_emplace({isAlone ? coordinate : -1, std::move(ends)}, number);
      number += isNew;
      cells[coordinate] = cell->second;
    }
    if (!(permuted >> axis & 1))
      continue;
    // Neighbours of ranks that are not alike are not alike either.
    int64_t period = number > 1 || isUneven ? mesh[axis].size : periods[axis];
    number = unsigned(mesh[axis].size % period ? mesh[axis].size : period);
    for (int64_t coordinate = 0; coordinate < mesh[axis].size; ++coordinate)
      cells[coordinate] = unsigned(coordinate % number);
  }
  unsigned numClasses = 1;
  for (unsigned count : numCells)
    numClasses *= count;
  representatives.assign(numClasses, -1);
  for (int64_t rank = mesh.getNumRanks(); rank-- > 0;)
    representatives[find(rank)] = rank;
}

unsigned RankClasses::find(int64_t rank) const {
  unsigned number = 0;
  for (AxisId axis = 0; axis < cellOf.size(); ++axis)
    number = number * numCells[axis] + cellOf[axis][mesh.getCoordinate(rank, axis)];
  return number;
}

int64_t RankClasses::getNumRanks(unsigned number) const {
  int64_t numRanks = 1;
  for (AxisId axis = 0; axis < cellOf.size(); ++axis) {
    const std::vector<unsigned> &cells = cellOf[axis];
    numRanks *= llvm::count(cells, cells[mesh.getCoordinate(representatives[number], axis)]);
  }
  return numRanks;
}

RankClass RankClasses::describe(unsigned number) const {
  const Graph &graph = *program.graph;
  int64_t rank = representatives[number];
  RankClass result;
  if (graph.pipeline.axis)
    result.stage = unsigned(mesh.getCoordinate(rank, *graph.pipeline.axis));
  for (AxisId axis : toList(varying))
    result.coordinates.emplace_back(axis, mesh.getCoordinate(rank, axis));
  for (const Exchange *exchange : listSendingExchanges(program.stages[result.stage]))
    result.messages.emplace_back(exchange, exchange->getReceivers(rank, 0).size());
  if (Size slowness = getSlowness(graph, rank); !slowness.isConstant(1))
    result.slowness = slowness;
  return result;
}

std::vector<int64_t> RankClasses::listMembers(const Program &program, const GroupKind &kind, int64_t rank) {
  const Mesh &mesh = program.graph->mesh;
  std::vector<int64_t> members = {int64_t(program.firstRank) + rank};
  for (AxisId axis : toList(kind.axes)) {
    bool isCut = axis == program.graph->pipeline.axis && !kind.stages.empty();
    std::vector<int64_t> before = std::exchange(members, {});
    int64_t stride = mesh.getStride(axis), own = mesh.getCoordinate(rank, axis);
    for (int64_t coordinate = 0; coordinate < mesh[axis].size; ++coordinate)
      if (!isCut || llvm::is_contained(kind.stages, unsigned(coordinate)))
        for (int64_t member : before)
          members.push_back(member + (coordinate - own) * stride);
  }
  return members;
}

RankClasses::GroupSize RankClasses::getGroupSize(const GroupKind &kind) const {
  GroupSize size;
  for (AxisId axis : toList(kind.axes)) {
    bool isCut = axis == program.graph->pipeline.axis && !kind.stages.empty();
    size.classes *= isCut ? kind.stages.size() : numCells[axis];
    size.members *= isCut ? int64_t(kind.stages.size()) : mesh[axis].size;
  }
  return size;
}
