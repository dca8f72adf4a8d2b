//===- Tensor.h - the numbers of one rank ----------------------*- C++ -*-===//
//
// A tensor knows which elements of the global tensor it holds: along every dim the
// global positions, ascending. A rank's piece of 8 rows split over 2 is
//
//   contiguous   coordinate 0: 0 1 2 3     coordinate 1: 4 5 6 7
//   mirrored     coordinate 0: 0 1 6 7     coordinate 1: 2 3 4 5
//
// and an op that is handed pieces of other rows than it works on is found out, even
// where the numbers are equal by chance.
//
// What is stored flat has one list: the positions of its elements in the global tensor,
// row by row. Padding is at position `padding`, and is 0.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_INTERP_TENSOR_H
#define STAGE_INTERP_TENSOR_H

#include "stage/IR/graph/Graph.h"
#include <memory>

namespace stage::interp {

/// Global positions along a dim, ascending.
using Positions = std::vector<int64_t>;

/// Stands for the position of an element that only pads flat storage; behind all others.
constexpr int64_t padding = INT64_MAX;

struct Tensor {
  llvm::SmallVector<Positions, 4> dims;
  bool isFlat = false;
  /// One number per element, the last dim fastest. All element types are computed as doubles.
  std::vector<double> data;

  Tensor() = default;
  explicit Tensor(llvm::SmallVector<Positions, 4> positions);
  /// Product of the numbers of positions.
  static int64_t countElements(llvm::ArrayRef<Positions> dims);
};
/// Tensors are not changed once they are made.
using TensorRef = std::shared_ptr<const Tensor>;

/// 0, 1, ..., size-1.
Positions allPositions(int64_t size);
/// The positions that `coordinate` of `size` gets of `whole`: a block, or (mirrored) the blocks `coordinate` and
/// `2*size - 1 - coordinate` of 2*size. Nothing if they do not come out even.
std::optional<Positions> splitPositions(const Positions &whole, int64_t size, int64_t coordinate, Layout layout);
/// The elements of `whole` at these positions, all of which it must hold; else nothing.
std::optional<Tensor> extract(const Tensor &whole, llvm::ArrayRef<Positions> dims);
/// The reverse: puts the elements of a part in their places. False if there is no place for one of them.
bool insert(Tensor &whole, const Tensor &part);
/// Positions row by row in a global tensor of these sizes, of a piece that has `dims` of it.
Positions flattenPositions(llvm::ArrayRef<Positions> dims, llvm::ArrayRef<int64_t> sizes);
/// Lays out a piece of a global tensor of these sizes row by row. A flat one is returned as it is.
Tensor flatten(const Tensor &tensor, llvm::ArrayRef<int64_t> sizes);
/// The part that `coordinate` of `size` gets of what is flat: of equal blocks, the last ones padded.
Positions cutFlat(const Positions &positions, int64_t size, int64_t coordinate);
Tensor cutFlat(const Tensor &flat, int64_t size, int64_t coordinate);
/// Flat parts one after the other, without what pads them beyond `numElements`.
Tensor joinFlat(llvm::ArrayRef<TensorRef> parts, int64_t numElements);
/// The reverse of `flatten`. Nothing if the elements are not those of a piece, in order.
std::optional<Tensor> unflatten(const Tensor &flat, llvm::ArrayRef<int64_t> sizes);
/// The elements of a whole global tensor at these positions in it, as a flat tensor; nothing if one is outside.
std::optional<Tensor> extractFlat(const Tensor &whole, const Positions &positions);
/// Calls `f(linear index, local index per dim)` for every element, in order.
void forEachElement(llvm::ArrayRef<Positions> dims, llvm::function_ref<void(int64_t, llvm::ArrayRef<int64_t>)> f);

/// True for slots that are dealt out evenly in inference. A proof has room in them for whatever comes: units must send
/// a token to the same targets, however many others there are.
bool takesAll(const Graph &graph, const Dim *slots);

/// Knows where the pieces of values are under a graph's binding.
class PieceMap {
public:
  explicit PieceMap(const Graph &graph) : graph(graph) {}

  /// What one part of a dim has of what all parts together have. Nothing if they do not come out even, or, where a
  /// table lists their lengths, if these are not together what there is.
  std::optional<Positions> split(const Positions &whole, const PlacedAxis &axis, int64_t part) const;
  /// The value of a size; nothing if it is no whole number.
  std::optional<int64_t> getSize(Size size) const;
  /// How many positions there are. Of slots that are as many as come there are as many for all as one has at most: the
  /// others stay empty.
  std::optional<int64_t> getSize(const Extent &extent) const;
  /// What a rank holds along an extent that is split over `axes`, outer first. A negative rank holds everything: the
  /// one device of an unsharded run. Nothing if the split does not come out even.
  std::optional<Positions> getPositions(const Extent &extent, llvm::ArrayRef<PlacedAxis> axes, int64_t rank) const;
  /// The same for every dim, or, of a value that is stored flat, of the one list of a flat tensor.
  std::optional<llvm::SmallVector<Positions, 4>> getPositions(const TensorType &type, const Sharding &sharding,
                                                              int64_t rank) const;
  /// The global size of every dim; nothing if one is no whole number.
  std::optional<llvm::SmallVector<int64_t, 4>> getSizes(const TensorType &type) const;

private:
  const Graph &graph;
};

} // namespace stage::interp

#endif // STAGE_INTERP_TENSOR_H
