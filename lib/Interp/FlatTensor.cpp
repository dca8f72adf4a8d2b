//===- FlatTensor.cpp - tensors in flat storage ---------------------------===//
//
// Problem: what a rank has of a tensor that is stored flat is no block of rows and
// columns. A piece of 2 x 3 elements over 4 ranks, of which the last holds padding only:
//
//   0 1 2        rank 0: 0 1    rank 1: 2 3    rank 2: 4 5    rank 3: - -
//   3 4 5
//
// Over two axes of 2 each, the outer one leaves 0 1 2 and 3 4 5, and the inner one pads both:
//
//                rank 0: 0 1    rank 1: 2 -    rank 2: 3 4    rank 3: 5 -
//
// A flat tensor has the global position of each element in row-major order, so that a
// piece that another sharding left (columns 0 and 2, say) is found out as well.
//
//===----------------------------------------------------------------------===//
#include "stage/Interp/Tensor.h"

using namespace stage;
using namespace stage::interp;

Positions stage::interp::flattenPositions(llvm::ArrayRef<Positions> dims, llvm::ArrayRef<int64_t> sizes) {
  Positions result;
  result.reserve(Tensor::countElements(dims));
  forEachElement(dims, [&](int64_t, llvm::ArrayRef<int64_t> local) {
    int64_t position = 0;
    for (unsigned d = 0; d < dims.size(); ++d)
      position = position * sizes[d] + dims[d][local[d]];
    result.push_back(position);
  });
  return result;
}

/// Block `number` of `count` equal ones, where what lacks at the end is `fill`.
template <typename Element>
static std::vector<Element> cutBlock(const std::vector<Element> &whole, int64_t count, int64_t number, Element fill) {
  int64_t size = whole.size(), length = (size + count - 1) / count;
  int64_t begin = std::min(number * length, size), end = std::min(begin + length, size);
  std::vector<Element> block(whole.begin() + begin, whole.begin() + end);
  block.resize(length, fill);
  return block;
}

Positions stage::interp::cutFlat(const Positions &positions, int64_t size, int64_t coordinate) {
  return cutBlock(positions, size, coordinate, padding);
}

Tensor stage::interp::cutFlat(const Tensor &flat, int64_t size, int64_t coordinate) {
  Tensor result;
  result.isFlat = true;
  result.dims = {cutBlock(flat.dims.front(), size, coordinate, padding)};
  result.data = cutBlock(flat.data, size, coordinate, 0.0);
  return result;
}

Tensor stage::interp::flatten(const Tensor &tensor, llvm::ArrayRef<int64_t> sizes) {
  if (tensor.isFlat)
    return tensor;
  Tensor result;
  result.isFlat = true;
  result.dims = {flattenPositions(tensor.dims, sizes)};
  result.data = tensor.data;
  return result;
}

Tensor stage::interp::joinFlat(llvm::ArrayRef<TensorRef> parts, int64_t numElements) {
  Tensor result;
  result.isFlat = true;
  result.dims.emplace_back();
  for (const TensorRef &part : parts) {
    llvm::append_range(result.dims.front(), part->dims.front());
    llvm::append_range(result.data, part->data);
  }
  result.dims.front().resize(numElements, padding);
  result.data.resize(numElements);
  return result;
}

std::optional<Tensor> stage::interp::unflatten(const Tensor &flat, llvm::ArrayRef<int64_t> sizes) {
  llvm::SmallVector<Positions, 4> dims(sizes.size());
  for (int64_t position : flat.dims.front()) {
    if (position == padding)
      return std::nullopt;
    for (unsigned d = sizes.size(); d-- > 0; position /= sizes[d])
      dims[d].push_back(position % sizes[d]);
  }
  for (Positions &positions : dims) {
    llvm::sort(positions);
    positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  }
  Tensor result(dims);
  if (flattenPositions(dims, sizes) != flat.dims.front())
    return std::nullopt; // they are out of order, or there are gaps
  result.data = flat.data;
  return result;
}

std::optional<Tensor> stage::interp::extractFlat(const Tensor &whole, const Positions &positions) {
  Tensor result;
  result.isFlat = true;
  result.dims = {positions};
  for (int64_t position : positions) {
    if (position != padding && position >= int64_t(whole.data.size()))
      return std::nullopt;
    result.data.push_back(position == padding ? 0 : whole.data[position]);
  }
  return result;
}
