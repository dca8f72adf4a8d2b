//===- VerifyBlocks.cpp - dims that are dealt out by a table --------------===//
//
// `{ep by load, _}` gives coordinate c of ep as many positions of the dim as entry c of
// the table says. Nothing may be left over, or be there twice: there is an entry for each
// coordinate, and together they are what the axes before ep leave of the dim, in the units
// of every environment. As long as a symbol has no value nothing is said of sums.
//
//===----------------------------------------------------------------------===//
#include "VerifierContext.h"
#include "stage/IR/graph/Costs.h"

using namespace stage;

/// Why an axis cannot deal out what is there by a table.
static std::string findFault(const Graph &graph, Size whole, const PlacedAxis &axis) {
  const BlockLengths &lengths = graph.mesh.getBlockLengths(axis);
  std::string what = "axis '" + graph.mesh[axis].name + "' by '" + lengths.str() + "': ";
  std::shared_ptr<const SizeTable> table = graph.binding.lookupTable(lengths.table);
  if (!table)
    return what + "there is no such table";
  if (table->dims.size() != lengths.row.size() + 1)
    return what + "it is not one row of the table";
  if (table->dims.back() != graph.mesh[axis].size)
    return what + "there are " + std::to_string(table->dims.back()) + " entries for an axis of size " +
           std::to_string(graph.mesh[axis].size);
  Size total = lengths.get(graph.sizes.sumOfEntries());
  for (const std::string &symbol : collectSymbols(total))
    if (getCoordinateAxis(graph.mesh, symbol))
      return what + "which row it is depends on the rank";
  for (unsigned number = 0; number < graph.pipeline.environments.size(); ++number) {
    SizeBinding binding = graph.getBinding(number);
    SizeValue sum = evaluate(total, binding), expected = evaluate(whole, binding);
    std::string units = number ? " in units with " + toString(graph.pipeline.environments[number]) : "";
    if (sum.error == SizeError::NoEntry || sum.error == SizeError::Overflow)
      return what + (sum.error == SizeError::NoEntry ? "there is no row " + sum.symbol : "its entries are too large") +
             units;
    if (sum && expected && !(sum.value == expected.value))
      return what + "its entries are together " + sum.value.str() + ", but '" + whole.str() + "' is " +
             expected.value.str() + units;
  }
  return "";
}

std::string VerifierContext::findBlockFault(Size extent, llvm::ArrayRef<PlacedAxis> axes) {
  const PlacedAxis *listed = llvm::find_if(axes, [](const PlacedAxis &axis) { return axis.isListed(); });
  if (listed == axes.end())
    return "";
  for (const PlacedAxis &axis : llvm::makeArrayRef(listed + 1, axes.end()))
    if (axis.isListed())
      return "axes '" + graph.mesh[*listed].name + "' and '" + graph.mesh[axis].name +
             "' deal out one dim by a table each";
  Size whole = getLocalSize(graph.mesh, extent, llvm::makeArrayRef(axes.begin(), listed));
  auto [it, isNew] = blockFaults.try_emplace({whole.getNode(), listed->id, listed->lengths});
  if (isNew)
    it->second = findFault(graph, whole, *listed);
  return it->second;
}

static std::string findChoicesFault(const Graph &graph, const SlotLoad &load) {
  SizeValue choices = evaluateCount(load.getChoicesOfSource(), graph.binding);
  if (!choices && choices.error != SizeError::UnboundSymbol)
    return "'" + load.getChoicesOfSource().str() + "' is no whole number";
  return "";
}

/// Why slots cannot be as full as the table says.
static std::string findFault(const Graph &graph, const SlotLoad &load) {
  std::shared_ptr<const SizeTable> table = load.isEven() ? nullptr : graph.binding.lookupTable(load.table);
  if (load.isEven() && !load.isDropless)
    return "evenly dealt out slots are as many as come, and not at most so many";
  if (load.isEven())
    return findChoicesFault(graph, load);
  if (!table || table->dims.size() != 1)
    return "there is no table '" + load.table + "' in one dimension";
  if (llvm::none_of(table->entries, [](int64_t entry) { return entry > 0; }))
    return "no entry of table '" + load.table + "' is above 0";
  SizeValue target = evaluateCount(load.target->size, graph.binding);
  if (target && target.value.num != int64_t(table->entries.size()))
    return "table '" + load.table + "' has " + std::to_string(table->entries.size()) + " entries for '" +
           load.target->name + "' of size " + target.value.str();
  return findChoicesFault(graph, load);
}

void stage::verifySlotLoads(VerifierContext &context) {
  for (const SlotLoad &load : context.graph.mesh.getSlotLoads())
    if (std::string fault = findFault(context.graph, load); !fault.empty())
      context.diags.report(load.loc, diag::IRBadLoad) << load.slots->name << fault;
}
