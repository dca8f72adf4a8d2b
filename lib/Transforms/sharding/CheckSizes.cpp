//===- CheckSizes.cpp - tensors have sizes, repeats counts ----------------===//
#include "stage/Transforms/sharding/CheckSizes.h"
#include "stage/IR/graph/Walk.h"
#include "stage/Transforms/Diagnostics.h"
#include "llvm/Support/ErrorHandling.h"

using namespace stage;

namespace {
class SizeChecker {
public:
  SizeChecker(Graph &graph, DiagnosticEngine &diags) : graph(graph), diags(diags) {}

  bool run() {
    for (Block &phase : graph.getPhases())
      forEachValue(phase, [&](Value &value, Op *) { visitValue(value); });
    // Nothing is said of an op whose values are the reason.
    if (good)
      graph.walk([&](Op &op) { visitOp(op); });
    return good;
  }

private:
  /// Bytes are multiplied by sizes of groups, and added, in 128 bits.
  static constexpr unsigned maxBits = 96;

  void visitOp(const Op &op) {
    if (op.kind == OpKind::Repeat && !getCount(op.count)) {
      diags.report(op.loc, diag::RepeatCountUnknown) << op.name << op.count.str();
      good = false;
    }
    for (const Extent &extent : op.extents)
      if (!getCount(extent.size))
        return report(*op.getResult(), extent.size, 63);
  }

  void visitValue(const Value &value) {
    __int128 elements = 1;
    for (const Extent &extent : value.type.shape) {
      std::optional<int64_t> count = getCount(extent.size);
      if (!count)
        return report(value, extent.size, 63);
      if (__builtin_mul_overflow(elements, __int128(*count), &elements) || elements >> maxBits)
        return report(value, getLocalElements(graph.sizes, graph.mesh, value.type, Sharding()), maxBits);
    }
  }

  std::optional<int64_t> getCount(Size size) {
    auto [it, isNew] = counts.try_emplace(size);
    if (isNew)
      if (SizeValue value = evaluateCount(size, graph.binding))
        it->second = int64_t(value.value.num);
    return it->second;
  }

  void report(const Value &value, Size size, unsigned bits) {
    diags.report(value.loc, diag::SizeWithoutValue) << describe(value) << size.str() << int64_t(bits);
    good = false;
  }

  Graph &graph;
  DiagnosticEngine &diags;
  llvm::DenseMap<Size, std::optional<int64_t>> counts;
  bool good = true;
};
} // namespace

bool stage::checkSizes(Graph &graph, DiagnosticEngine &diags) { return SizeChecker(graph, diags).run(); }

__int128 stage::getCheckedBytes(const Graph &graph, const TensorType &type, const Sharding &sharding) {
  // Slots that a load fills unevenly count as those of an average rank: some ranks have more of them on the way to
  // experts than behind, others fewer, and all do the same.
  bool isUneven =
      llvm::any_of(type.shape, [&](const Extent &extent) { return graph.mesh.findUnevenSlots(extent.dim); });
  Size size =
      isUneven ? graph.sizes.one() : getLocalBytes(graph.sizes, graph.mesh, type, sharding, /*over=*/~AxisSet(0));
  if (isUneven)
    for (auto [extent, axes] : llvm::zip(type.shape, sharding.dims)) {
      const SlotLoad *load = graph.mesh.findUnevenSlots(extent.dim);
      size = size * getLocalSize(graph.mesh, load ? load->choices / load->target->size : extent.size, axes,
                                 /*over=*/~AxisSet(0));
    }
  if (isUneven)
    size = getAverageBytes(type, size);
  SizeValue bytes = evaluate(size, graph.binding);
  if (!bytes)
    llvm::report_fatal_error("a size was not checked");
  return bytes.value.num / bytes.value.den;
}

int64_t stage::getCheckedCount(const Graph &graph, Size size) {
  SizeValue count = evaluateCount(size, graph.binding);
  if (!count)
    llvm::report_fatal_error("a size was not checked");
  return int64_t(count.value.num);
}
