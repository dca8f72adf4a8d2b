//===- ShapeMistakes.cpp - an index that would have two sizes -------------===//
//
// Problem: `linear(x, head)` of `head: [V, D]` says that m is V and D. The program is changed at the declaration of
// `head`, at its subscripts, or at the name of the op, and not where the second size is seen.
//
// Algorithm: the dims of the operand are tried in other orders. Of a formula in place the subscripts change, so that
// each index that other operands bind has its size, and as many of the others as can be are called like their dims. Of
// a declared op the operand has two dims: it is declared the other way round if nothing else uses it; else an op of the
// same file may take it as it is.
//
//===----------------------------------------------------------------------===//
#include "ArgumentOrder.h"
#include "IndexNames.h"
#include "OpLowering.h"
#include "stage/IRGen/Diagnostics.h"
#include "stage/Support/Origins.h"
#include "llvm/ADT/Sequence.h"

using namespace stage;

bool stage::mayRedeclare(const Value &value) {
  const Op *op = value.getOp();
  return op && (op->kind == OpKind::Param || op->kind == OpKind::Input) && value.getUses().empty();
}

static std::string nameExtent(const Extent &extent) {
  return extent.dim ? llvm::StringRef(extent.dim->name).rsplit('.').second.empty()
                          ? extent.dim->name
                          : llvm::StringRef(extent.dim->name).rsplit('.').second.str()
                    : extent.size.str();
}

static std::string nameShape(llvm::ArrayRef<Extent> shape) {
  std::string text;
  for (const Extent &extent : shape)
    text += (text.empty() ? "" : ", ") + nameExtent(extent);
  return "[" + text + "]";
}

/// `wq[d, h, e]` in place of `wq[h, d, e]`; empty: the subscripts fit in no order, or are no names.
std::string OpLowering::suggestSubscripts(const Value &value) const {
  llvm::ArrayRef<Extent> shape = value.type.shape;
  constexpr size_t maxDims = 6; // 720 orders
  if (!accessed || accessed->subscripts.size() != shape.size() || shape.size() > maxDims)
    return "";
  std::vector<llvm::StringRef> names;
  for (const ast::Expr *subscript : accessed->subscripts)
    if (const ast::NameExpr *index = asIndex(subscript))
      names.push_back(index->name);
  if (names.size() != shape.size())
    return "";
  std::vector<unsigned> order(shape.size()), best;
  llvm::copy(llvm::seq(0u, unsigned(shape.size())), order.begin());
  size_t most = 0;
  do {
    size_t alike = 1;
    for (size_t d = 0; d < shape.size() && alike; ++d) {
      llvm::StringRef name = names[order[d]];
      auto known = indexByName.find(name);
      bool isOfOther = known != indexByName.end() && indexLocs[known->second] != accessed->loc();
      if (isOfOther && extents[known->second].size != shape[d].size)
        alike = 0;
      else
        alike += name.equals_insensitive(nameExtent(shape[d]));
    }
    if (alike > most)
      std::tie(best, most) = std::pair(order, alike);
  } while (std::next_permutation(order.begin(), order.end()));
  std::string text;
  for (unsigned from : best)
    text += (text.empty() ? "" : ", ") + names[from].str();
  return text.empty() ? "" : ast::textOf(accessed->base) + "[" + text + "]";
}

/// An op of the same file that takes the same operands, but the dims of this one the other way round; empty: none.
llvm::StringRef OpLowering::findOpOfOtherOrder(unsigned operand) const {
  auto listDims = [](const ast::TensorType &type, bool isReversed) {
    std::vector<std::string> dims;
    for (const ast::ShapeDim &dim : type.dims)
      dims.push_back(ast::textOf(dim.size));
    if (isReversed)
      std::reverse(dims.begin(), dims.end());
    return dims;
  };
  for (const ast::Decl *decl : evaluator.getProgram().getFile(*declared).decls) {
    auto *other = llvm::dyn_cast<ast::OpDecl>(decl);
    bool isAlike = other && other != declared && other->params.size() == declared->params.size() &&
                   other->results.size() == declared->results.size();
    for (size_t i = 0; isAlike && i < declared->params.size(); ++i) {
      const ast::TensorType *own = declared->params[i].tensor, *its = other->params[i].tensor;
      isAlike = own && its && listDims(*own, i == operand) == listDims(*its, false);
    }
    for (size_t i = 0; isAlike && i < declared->results.size(); ++i) {
      const ast::TensorType *own = declared->results[i].type, *its = other->results[i].type;
      isAlike = own && its && listDims(*own, false) == listDims(*its, false);
    }
    if (isAlike)
      return other->name.name;
  }
  return "";
}

void OpLowering::reportTwoSizes(llvm::StringRef name, unsigned index, const Extent &extent,
                                const TensorArgument &argument, unsigned position) {
  llvm::ArrayRef<Extent> shape = argument.value->type.shape;
  auto noteOther = [&](DiagnosticBuilder &message) {
    message.note(indexLocs[index], diag::IndexBoundHere) << name << describeExtent(extents[index], graph.binding);
  };
  if (std::string written = inPlace ? suggestSubscripts(*argument.value) : ""; !written.empty()) {
    DiagnosticBuilder message = diags.report(argument.range.Start, diag::SubscriptOrder)
                                << stage::describe(*argument.value) << nameShape(shape) << name
                                << describeExtent(extent, graph.binding)
                                << describeExtent(extents[index], graph.binding) << written;
    message.range(argument.range).fixIt(argument.range, written);
    return noteOther(message);
  }
  const Extent *other = shape.size() == 2 ? &shape[1 - position] : nullptr;
  if (!declared || !other || other->size != extents[index].size) {
    DiagnosticBuilder message = diags.report(argument.range.Start, diag::ShapeMismatch)
                                << (declared ? def.name : "formula") << ("index '" + name + "'").str()
                                << describeExtent(extent, graph.binding)
                                << describeExtent(extents[index], graph.binding);
    message.range(argument.range);
    return noteOther(message);
  }
  std::string found = nameShape(shape), wanted = nameShape({shape[1], shape[0]});
  if (mayRedeclare(*argument.value)) {
    DiagnosticBuilder message = diags.report(argument.range.Start, diag::DeclareOtherOrder)
                                << def.name << stage::describe(*argument.value) << found << wanted;
    setOrigin(message, {argument.value->loc, argument.value->loc});
    message.range(argument.range);
    return;
  }
  auto operand =
      llvm::find_if(given, [&](const TensorArgument &each) { return each.range.Start == argument.range.Start; });
  llvm::StringRef otherOp = operand == given.end() ? "" : findOpOfOtherOrder(operand - given.begin());
  DiagnosticBuilder message =
      diags.report(otherOp.empty() ? argument.range.Start : calledAt.Start, diag::TakesOtherOrder)
      << def.name << stage::describe(*argument.value) << found << wanted;
  message.range(argument.range);
  if (!otherOp.empty())
    message.note(SMLoc(), diag::OpOfOtherOrder) << otherOp << found;
  else
    message.note(SMLoc(), diag::SwapByFormula) << stage::describe(*argument.value);
}
