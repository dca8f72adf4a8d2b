//===- Tiles.cpp - the tokens of each rank --------------------------------===//
#include "Tiles.h"

using namespace stage;

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
  return int64_t((place + tile) % uint64_t(limit));
}

std::optional<Tiles> stage::findTiles(const Graph &graph, const Op &op) {
  if (!op.def->routing)
    return std::nullopt;
  PieceMap pieces(graph);
  Tiles tiles;
  for (unsigned index : op.def->routing->tokens) {
    Tiles::Dim &dim = tiles.dims.emplace_back();
    std::optional<int64_t> size = pieces.getSize(op.extents[index].size);
    if (!size)
      return std::nullopt;
    dim.local.resize(*size);
    dim.first.resize(*size);
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
  return tiles;
}
