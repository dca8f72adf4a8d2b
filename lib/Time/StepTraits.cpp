//===- StepTraits.cpp - what the error of a step depends on ---------------===//
#include "stage/Time/StepTraits.h"
#include "stage/IR/graph/Costs.h"
#include "stage/Time/TimeReport.h"
#include "llvm/ADT/DenseSet.h"

using namespace stage;

namespace {
class TraitFinder {
public:
  explicit TraitFinder(StepTraits &traits) : traits(traits) {}

  void visit(const TimedPart &part) {
    Graph &graph = *part.program->graph;
    traits.trains &= graph.training;
    graph.walk([&](Op &op) {
      if (const Routing *routing = op.kind == OpKind::Compute ? op.def->getRouting() : nullptr)
        visitRouting(part, op, *routing);
    });
    graph.walk([&](Op &op) {
      if (op.kind != OpKind::Compute || op.def->getRouting())
        return;
      if (op.def->isProduct || !op.def->terms.empty())
        visitProduct(graph, op);
      else if (!traits.otherContraction && contracts(graph, op))
        traits.otherContraction = op.def;
    });
  }

  /// Collectives of a tensor that has experts or their slots, and the time in which they are not waited for.
  Ticks getBesideExchange(const StageTime &stage) const {
    Ticks beside = 0;
    for (const CommunicationTime &each : stage.communication)
      if (each.op && each.op->kind != OpKind::Permute && isOfExperts(each.op->getOperand(0)->type))
        beside += std::max<Ticks>(each.taken - each.exposed, 0);
    return beside;
  }

private:
  void visitRouting(const TimedPart &part, const Op &op, const Routing &routing) {
    traits.hasExperts = true;
    if (const Dim *target = op.extents[routing.target].dim)
      targets.insert(target);
    if (const Dim *slot = op.extents[routing.slot].dim)
      slots.insert(slot);
    const OpKernel *kernel = part.kernels ? part.kernels->find(op) : nullptr;
    traits.waitsForCounts |= kernel && kernel->host;
  }

  void visitProduct(const Graph &graph, const Op &op) {
    std::optional<DType> type; // the wider one of the operands, into which a kernel brings the others
    for (const Value *operand : op.getOperands()) {
      DType kept = operand->type.quantization ? operand->type.quantization->type : operand->type.dtype;
      if (isFloat(kept) && (!type || getBitSize(*type) < getBitSize(kept)))
        type = kept;
    }
    if (type && (!traits.productType || getBitSize(*type) < getBitSize(*traits.productType)))
      traits.productType = type;
    llvm::SmallVector<Size, 8> sizes;
    for (unsigned index = 0; index < op.extents.size(); ++index)
      if (targets.contains(op.extents[index].dim)) {
        if (sizes.empty())
          sizes = getLocalIndexSizes(graph, op);
        if (SizeValue count = evaluateCount(sizes[index], graph.binding))
          traits.numLocalExperts = std::max(traits.numLocalExperts, int64_t(count.value.num));
      }
  }

  /// A forward op that is not attention. What it costs is asked of few: most ops have no such term.
  static bool contracts(const Graph &graph, const Op &op) {
    auto isContraction = [](const FlopTerm &term) { return term.flopClass == FlopClass::Contraction; };
    if (op.def->vjpOf || llvm::none_of(op.def->flopTerms, isContraction))
      return false;
    FlopCounts flops = getLocalCost(graph, op).flops;
    return !flops.contraction.isConstant(0) && flops.attention.isConstant(0);
  }

  bool isOfExperts(const TensorType &type) const {
    return llvm::any_of(type.shape, [&](const Extent &extent) { return slots.contains(extent.dim); });
  }
  StepTraits &traits;
  llvm::DenseSet<const Dim *> targets, slots;
};
} // namespace

StepTraits stage::findTraits(llvm::ArrayRef<TimedPart> parts, llvm::ArrayRef<StageTime> stages) {
  StepTraits traits;
  TraitFinder finder(traits);
  for (const TimedPart &part : parts)
    finder.visit(part);
  for (const StageTime &stage : stages) {
    traits.besideExchange = std::max(traits.besideExchange, finder.getBesideExchange(stage));
    traits.launch = std::max(traits.launch, stage.launch);
  }
  return traits;
}
