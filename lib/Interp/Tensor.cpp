//===- Tensor.cpp - the numbers of one rank -------------------------------===//
#include "stage/Interp/Tensor.h"
#include "stage/IR/graph/Costs.h"
#include <numeric>

using namespace stage;
using namespace stage::interp;

Tensor::Tensor(llvm::SmallVector<Positions, 4> positions) : dims(std::move(positions)) {
  data.resize(countElements(dims));
}

int64_t Tensor::countElements(llvm::ArrayRef<Positions> dims) {
  int64_t count = 1;
  for (const Positions &positions : dims)
    count *= positions.size();
  return count;
}

Positions stage::interp::allPositions(int64_t size) {
  Positions result(size);
  std::iota(result.begin(), result.end(), 0);
  return result;
}

std::optional<Positions> stage::interp::splitPositions(const Positions &whole, int64_t size, int64_t coordinate,
                                                       Layout layout) {
  bool mirrored = layout == Layout::Mirrored;
  int64_t blocks = mirrored ? 2 * size : size;
  if (whole.size() % blocks)
    return std::nullopt;
  if (layout == Layout::Cyclic) {
    Positions every;
    for (size_t i = coordinate; i < whole.size(); i += size)
      every.push_back(whole[i]);
    return every;
  }
  int64_t length = whole.size() / blocks;
  auto block = [&](int64_t i) { return whole.begin() + i * length; };
  Positions result(block(coordinate), block(coordinate + 1));
  if (mirrored)
    result.insert(result.end(), block(blocks - 1 - coordinate), block(blocks - coordinate));
  return result;
}

void stage::interp::forEachElement(llvm::ArrayRef<Positions> dims,
                                   llvm::function_ref<void(int64_t, llvm::ArrayRef<int64_t>)> f) {
  int64_t count = Tensor::countElements(dims);
  llvm::SmallVector<int64_t, 8> local(dims.size(), 0);
  for (int64_t linear = 0; linear < count; ++linear) {
    f(linear, local);
    for (unsigned d = dims.size(); d-- > 0;) {
      if (++local[d] < int64_t(dims[d].size()))
        break;
      local[d] = 0;
    }
  }
}

std::optional<Tensor> stage::interp::extract(const Tensor &whole, llvm::ArrayRef<Positions> dims) {
  // Where each wanted position stands in `whole`.
  llvm::SmallVector<std::vector<int64_t>, 4> places;
  for (unsigned d = 0; d < dims.size(); ++d) {
    std::vector<int64_t> &place = places.emplace_back();
    for (int64_t position : dims[d]) {
      auto it = llvm::lower_bound(whole.dims[d], position);
      if (it == whole.dims[d].end() || *it != position)
        return std::nullopt;
      place.push_back(it - whole.dims[d].begin());
    }
  }
  Tensor result(llvm::SmallVector<Positions, 4>(dims.begin(), dims.end()));
  forEachElement(dims, [&](int64_t linear, llvm::ArrayRef<int64_t> local) {
    int64_t from = 0;
    for (unsigned d = 0; d < local.size(); ++d)
      from = from * whole.dims[d].size() + places[d][local[d]];
    result.data[linear] = whole.data[from];
  });
  return result;
}

bool stage::interp::insert(Tensor &whole, const Tensor &part) {
  for (unsigned d = 0; d < part.dims.size(); ++d)
    if (!std::includes(whole.dims[d].begin(), whole.dims[d].end(), part.dims[d].begin(), part.dims[d].end()))
      return false;
  forEachElement(part.dims, [&](int64_t linear, llvm::ArrayRef<int64_t> local) {
    int64_t to = 0;
    for (unsigned d = 0; d < local.size(); ++d) {
      const Positions &all = whole.dims[d];
      to = to * int64_t(all.size()) + (llvm::lower_bound(all, part.dims[d][local[d]]) - all.begin());
    }
    whole.data[to] = part.data[linear];
  });
  return true;
}

std::optional<Positions> PieceMap::split(const Positions &whole, const PlacedAxis &axis, int64_t part) const {
  int64_t size = graph.mesh[axis].size;
  if (!axis.isListed())
    return splitPositions(whole, size, part, axis.layout);
  int64_t total = 0, begin = 0, end = 0;
  for (int64_t i = 0; i < size; ++i) {
    std::optional<int64_t> length = getSize(graph.mesh.getBlockLengths(axis).get(graph.sizes.constant(i)));
    if (!length)
      return std::nullopt;
    if (i == part)
      std::tie(begin, end) = std::pair(total, total + *length);
    total += *length;
  }
  if (total != int64_t(whole.size()))
    return std::nullopt;
  return Positions(whole.begin() + begin, whole.begin() + end);
}

bool stage::interp::takesAll(const Graph &graph, const Dim *slots) {
  const SlotLoad *load = graph.mesh.findUnevenSlots(slots);
  return load && load->isEven() && !graph.training;
}

std::optional<int64_t> PieceMap::getSize(Size size) const {
  SizeValue value = evaluateCount(size, graph.binding);
  return value ? std::optional<int64_t>(value.value.num) : std::nullopt;
}

std::optional<int64_t> PieceMap::getSize(const Extent &extent) const {
  const SlotLoad *load = graph.mesh.findUnevenSlots(extent.dim);
  if (takesAll(graph, extent.dim))
    return getSize(load->getChoicesOfSource() * load->getNumSources());
  return getSize(load ? load->getMostSlots() : extent.size);
}

std::optional<Positions> PieceMap::getPositions(const Extent &extent, llvm::ArrayRef<PlacedAxis> axes,
                                                int64_t rank) const {
  std::optional<int64_t> size = getSize(extent);
  if (!size)
    return std::nullopt;
  Positions positions = allPositions(*size);
  if (rank < 0)
    return positions;
  for (const PlacedAxis &axis : axes) {
    int64_t part = graph.mesh.getPart(axis, graph.mesh.getCoordinate(rank, axis));
    auto piece = split(positions, axis, part);
    if (!piece)
      return std::nullopt;
    positions = std::move(*piece);
  }
  return positions;
}

std::optional<llvm::SmallVector<Positions, 4>> PieceMap::getPositions(const TensorType &type, const Sharding &sharding,
                                                                      int64_t rank) const {
  llvm::SmallVector<Positions, 4> result;
  for (unsigned d = 0; d < type.getNumDims(); ++d) {
    auto positions = getPositions(type.shape[d], rank < 0 ? AxisList() : sharding.dims[d], rank);
    if (!positions)
      return std::nullopt;
    result.push_back(std::move(*positions));
  }
  if (sharding.flat.empty() || rank < 0)
    return result;
  auto sizes = getSizes(type);
  if (!sizes)
    return std::nullopt;
  Positions flat = flattenPositions(result, *sizes);
  for (AxisId axis : sharding.flat)
    flat = cutFlat(flat, graph.mesh[axis].size, graph.mesh.getCoordinate(rank, axis));
  result.assign(1, std::move(flat));
  return result;
}

std::optional<llvm::SmallVector<int64_t, 4>> PieceMap::getSizes(const TensorType &type) const {
  llvm::SmallVector<int64_t, 4> sizes;
  for (const Extent &extent : type.shape) {
    std::optional<int64_t> size = getSize(extent);
    if (!size)
      return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}
