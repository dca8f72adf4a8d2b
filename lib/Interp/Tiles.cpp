//===- Tiles.cpp - the tokens of each rank --------------------------------===//
#include "Tiles.h"
#include <numeric>

using namespace stage;
using namespace stage::interp;

bool Tiles::fit(llvm::ArrayRef<int64_t> sizes) const {
  return std::equal(dims.begin(), dims.end(), sizes.begin(), sizes.end(),
                    [](const Dim &dim, int64_t size) { return int64_t(dim.local.size()) == size; });
}

int64_t Tiles::deal(llvm::ArrayRef<int64_t> positions, uint64_t identity, int64_t limit) const {
  uint64_t place = 0, tile = identity % 1024;
  for (unsigned d = 0; d < dims.size(); ++d) {
    place = place * uint64_t(dims[d].length) + uint64_t(dims[d].local[positions[d]]);
    tile += uint64_t(dims[d].first[positions[d]]);
  }
  if (ends.empty())
    return int64_t((place + tile) % uint64_t(limit));
  uint64_t number = uint64_t(ends.back()), stride = 1;
  while (stride * stride < number || std::gcd(stride, number) != 1)
    ++stride;
  int64_t turn = int64_t((place * stride + tile) % number);
  return llvm::upper_bound(ends, turn) - ends.begin();
}

/// Of each target the choices of a source that it and those before it get.
static std::vector<int64_t> findEnds(const PieceMap &pieces, const SizeBinding &binding, const SlotLoad &load) {
  std::optional<int64_t> choices = pieces.getSize(load.getChoicesOfSource());
  std::vector<int64_t> ends;
  if (choices)
    ends = apportion(binding.lookupTable(load.table)->entries, *choices);
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  return ends;
}

bool stage::interp::dropsTokens(const Graph &graph, const Op &op) {
  const Routing *routing = op.def->getRouting();
  const SlotLoad *load = routing ? graph.mesh.findSlotLoad(op.extents[routing->slot].dim) : nullptr;
  return load && !load->isDropless;
}

std::optional<Tiles> stage::interp::findTiles(const Graph &graph, const Op &op) {
  if (!op.def->routing)
    return std::nullopt;
  PieceMap pieces(graph);
  Tiles tiles;
  for (unsigned index : op.def->operands[op.def->routing->operand].indices) {
    Tiles::Dim &dim = tiles.dims.emplace_back();
    std::optional<int64_t> size = pieces.getSize(op.extents[index].size);
    if (!size)
      return std::nullopt;
    dim.local.resize(*size);
    dim.first.resize(*size);
    // Where tokens are routed apart for each position of an index, the choices of each are dealt by themselves.
    if (!llvm::is_contained(op.def->routing->tokens, index)) {
      dim.length = 1;
      std::iota(dim.first.begin(), dim.first.end(), 0);
      continue;
    }
    auto axes = op.indexAxes.empty() ? llvm::ArrayRef<PlacedAxis>() : llvm::makeArrayRef(op.indexAxes[index]);
    for (int64_t rank = 0, n = axes.empty() ? 1 : graph.mesh.getNumRanks(); rank < n; ++rank) {
      std::optional<Positions> positions = pieces.getPositions(op.extents[index], axes, rank);
      if (!positions)
        return std::nullopt;
      dim.length = int64_t(positions->size());
      for (size_t i = 0; i < positions->size(); ++i) {
        dim.local[(*positions)[i]] = int64_t(i);
        dim.first[(*positions)[i]] = positions->front();
      }
    }
  }
  if (const SlotLoad *load = graph.mesh.findSlotLoad(op.extents[op.def->routing->slot].dim); load && !load->isEven())
    tiles.ends = findEnds(pieces, graph.binding, *load);
  return tiles;
}
