//===- Collectives.cpp - what a group's members put in and get out --------===//
#include "Collectives.h"

using namespace stage;
using namespace stage::interp;

std::vector<int64_t> stage::interp::getGroup(const Graph &graph, const Op &op, int64_t rank) {
  const Mesh &mesh = graph.mesh;
  int64_t base = rank;
  for (AxisId axis : op.axes)
    base -= mesh.getCoordinate(rank, axis) * mesh.getStride(axis);
  std::vector<int64_t> group = {base};
  for (AxisId axis : op.axes) {
    std::vector<int64_t> next;
    for (int64_t member : group)
      for (int64_t i = 0; i < mesh[axis].size; ++i)
        next.push_back(member + i * mesh.getStride(axis));
    group = std::move(next);
  }
  if (!op.stages.empty() && graph.pipeline.axis) {
    auto getStage = [&](int64_t member) { return unsigned(mesh.getCoordinate(member, *graph.pipeline.axis)); };
    llvm::ArrayRef<unsigned> stages = op.getGroupStages(getStage(rank));
    llvm::erase_if(group, [&](int64_t member) { return !llvm::is_contained(stages, getStage(member)); });
  }
  return group;
}

static double combine(ReduceKind kind, double a, double b) {
  return kind == ReduceKind::Sum ? a + b : kind == ReduceKind::Max ? std::max(a, b) : std::min(a, b);
}

static std::optional<Tensor> reduce(const Op &op, llvm::ArrayRef<TensorRef> inputs) {
  Tensor total = *inputs.front();
  for (const TensorRef &input : inputs.drop_front()) {
    if (input->dims != total.dims)
      return std::nullopt;
    for (size_t i = 0; i < total.data.size(); ++i)
      total.data[i] = combine(op.reduce, total.data[i], input->data[i]);
  }
  return total;
}

/// Positions that member `number` of the group gets of `whole`, cut axis by axis, outer first.
static std::optional<Positions> cut(const Graph &graph, const Op &op, const Positions &whole, size_t number) {
  Positions positions = whole;
  size_t inner = 1;
  for (AxisId axis : op.axes)
    inner *= graph.mesh[axis].size;
  for (const PlacedAxis &axis : op.axes) {
    inner /= graph.mesh[axis].size;
    int64_t size = graph.mesh[axis].size;
    auto piece = PieceMap(graph).split(positions, axis, graph.mesh.getPart(axis, number / inner % size));
    if (!piece)
      return std::nullopt;
    positions = std::move(*piece);
  }
  return positions;
}

/// The pieces one after the other along `dim`. What stands mirrored or rotated over the axes comes out of order, and is
/// put in order by whoever gathers; any other that does is left as it is, to be found out.
static std::optional<Tensor> concatenate(const Op &op, unsigned dim, llvm::ArrayRef<const Tensor *> parts,
                                         bool inOrder) {
  llvm::SmallVector<Positions, 4> dims = parts.front()->dims;
  Positions all;
  std::vector<std::pair<size_t, size_t>> origins; // Of each position: which part, and where in it.
  for (size_t p = 0; p < parts.size(); ++p) {
    for (unsigned d = 0; d < dims.size(); ++d)
      if (d != dim && parts[p]->dims[d] != dims[d])
        return std::nullopt;
    for (size_t i = 0; i < parts[p]->dims[dim].size(); ++i) {
      all.push_back(parts[p]->dims[dim][i]);
      origins.emplace_back(p, i);
    }
  }
  std::vector<size_t> order(all.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  if (inOrder)
    llvm::stable_sort(order, [&](size_t a, size_t b) { return all[a] < all[b]; });
  for (size_t i = 0; i < order.size(); ++i)
    dims[dim].resize(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    dims[dim][i] = all[order[i]];
  Tensor result(dims);
  forEachElement(result.dims, [&](int64_t linear, llvm::ArrayRef<int64_t> local) {
    auto [part, inside] = origins[order[local[dim]]];
    int64_t from = 0;
    for (unsigned d = 0; d < local.size(); ++d)
      from = from * parts[part]->dims[d].size() + (d == dim ? int64_t(inside) : local[d]);
    result.data[linear] = parts[part]->data[from];
  });
  return result;
}

/// What member `number` of an all_to_all has when every member has sent it its part along the target dim. The source
/// dims become longer; which part goes where among them each rank knows, and needs no message for.
static std::optional<Tensor> receiveParts(const Graph &graph, const Op &op, llvm::ArrayRef<TensorRef> inputs,
                                          size_t number) {
  if (op.dim == op.toDim) { // they stay on their dim in another layout: what all have, dealt anew
    llvm::SmallVector<const Tensor *, 8> pieces;
    for (const TensorRef &input : inputs)
      pieces.push_back(input.get());
    std::optional<Tensor> whole = concatenate(op, op.dim, pieces, /*inOrder=*/true);
    auto positions = whole ? cut(graph, op, whole->dims[op.dim], number) : std::nullopt;
    if (!positions)
      return std::nullopt;
    llvm::SmallVector<Positions, 4> mine = whole->dims;
    mine[op.dim] = std::move(*positions);
    return extract(*whole, mine);
  }
  auto isSource = [&](unsigned d) { return d == op.dim || llvm::is_contained(op.moreDims, d); };
  std::vector<Tensor> parts;
  llvm::SmallVector<Positions, 4> dims(inputs.front()->dims.size());
  for (const TensorRef &input : inputs) {
    llvm::SmallVector<Positions, 4> partDims = input->dims;
    auto positions = cut(graph, op, partDims[op.toDim], number);
    if (!positions)
      return std::nullopt;
    partDims[op.toDim] = std::move(*positions);
    for (unsigned d = 0; d < dims.size(); ++d) {
      if (parts.empty() || isSource(d))
        dims[d].insert(dims[d].end(), partDims[d].begin(), partDims[d].end());
      else if (dims[d] != partDims[d])
        return std::nullopt;
    }
    parts.push_back(std::move(*extract(*input, partDims)));
  }
  for (Positions &positions : dims) {
    llvm::sort(positions);
    positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  }
  Tensor result(dims);
  size_t numElements = 0;
  for (const Tensor &part : parts)
    numElements += part.data.size();
  if (result.data.size() != numElements)
    return std::nullopt; // parts that overlap, or that leave gaps
  auto find = [](const Positions &positions, int64_t position) {
    return size_t(llvm::lower_bound(positions, position) - positions.begin());
  };
  for (const Tensor &part : parts)
    forEachElement(part.dims, [&](int64_t linear, llvm::ArrayRef<int64_t> local) {
      size_t to = 0;
      for (unsigned d = 0; d < local.size(); ++d)
        to = to * dims[d].size() + find(dims[d], part.dims[d][local[d]]);
      result.data[to] = part.data[linear];
    });
  return result;
}

/// An all_gather from, or a reduce_scatter to, flat storage.
static std::optional<std::vector<Tensor>> runFlat(const Graph &graph, const Op &op, unsigned operand,
                                                  llvm::ArrayRef<TensorRef> inputs) {
  PieceMap pieces(graph);
  const Value *result = op.getResult(operand);
  auto sizes = pieces.getSizes(result->type);
  auto numElements = pieces.getSize(getLocalElements(graph.sizes, graph.mesh, result->type, result->sharding));
  if (!sizes || !numElements)
    return std::nullopt;
  std::vector<Tensor> results;
  if (op.kind == OpKind::AllGather) {
    // Each axis has padded what those before it left, so that the innermost is undone first.
    llvm::SmallVector<int64_t, 4> lengths = {*numElements};
    for (AxisId axis : op.axes)
      lengths.push_back((lengths.back() + graph.mesh[axis].size - 1) / graph.mesh[axis].size);
    std::vector<TensorRef> parts = inputs.vec();
    for (unsigned k = op.axes.size(); k-- > 0;) {
      size_t size = graph.mesh[op.axes[k]].size;
      std::vector<TensorRef> joined;
      for (size_t first = 0; first < parts.size(); first += size)
        joined.push_back(std::make_shared<Tensor>(joinFlat(llvm::makeArrayRef(parts).slice(first, size), lengths[k])));
      parts = std::move(joined);
    }
    std::optional<Tensor> whole = *parts.front();
    if (result->sharding.flat.empty())
      whole = unflatten(*whole, *sizes);
    if (!whole)
      return std::nullopt;
    results.assign(inputs.size(), *whole);
    return results;
  }
  auto total = reduce(op, inputs);
  if (!total)
    return std::nullopt;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor piece = flatten(*total, *sizes);
    size_t inner = inputs.size();
    for (AxisId axis : op.axes) {
      inner /= graph.mesh[axis].size;
      piece = cutFlat(piece, graph.mesh[axis].size, i / inner % graph.mesh[axis].size);
    }
    results.push_back(std::move(piece));
  }
  return results;
}

std::optional<std::vector<Tensor>> stage::interp::runCollective(const Graph &graph, const Op &op, unsigned operand,
                                                                llvm::ArrayRef<TensorRef> inputs) {
  if (op.flat)
    return runFlat(graph, op, operand, inputs);
  std::vector<Tensor> results;
  switch (op.kind) {
  case OpKind::AllReduce: {
    auto total = reduce(op, inputs);
    if (!total)
      return std::nullopt;
    results.assign(inputs.size(), *total);
    return results;
  }
  case OpKind::AllGather: {
    llvm::SmallVector<const Tensor *, 8> parts;
    for (const TensorRef &input : inputs)
      parts.push_back(input.get());
    bool isInOrder = llvm::all_of(op.axes, [](const PlacedAxis &axis) { return axis.isPlain(); });
    auto whole = concatenate(op, op.getDim(operand), parts, !isInOrder);
    if (!whole)
      return std::nullopt;
    results.assign(inputs.size(), *whole);
    return results;
  }
  case OpKind::ReduceScatter: {
    auto total = reduce(op, inputs);
    unsigned dim = op.getDim(operand);
    for (size_t i = 0; total && i < inputs.size(); ++i) {
      llvm::SmallVector<Positions, 4> dims = total->dims;
      auto positions = cut(graph, op, dims[dim], i);
      if (!positions)
        return std::nullopt;
      dims[dim] = std::move(*positions);
      results.push_back(std::move(*extract(*total, dims)));
    }
    return total ? std::optional(std::move(results)) : std::nullopt;
  }
  case OpKind::AllToAll:
    for (size_t i = 0; i < inputs.size(); ++i) {
      auto mine = receiveParts(graph, op, inputs, i);
      if (!mine)
        return std::nullopt;
      results.push_back(std::move(*mine));
    }
    return results;
  case OpKind::Permute:
    for (size_t i = 0; i < inputs.size(); ++i)
      results.push_back(*inputs[(i + inputs.size() - op.shift) % inputs.size()]);
    return results;
  default:
    return std::nullopt;
  }
}
