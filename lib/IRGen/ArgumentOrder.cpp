//===- ArgumentOrder.cpp - arguments that fit in another order ------------===//
//
// Problem: operands of other libraries stand in another order, `lookup(table, ids)` or `linear(w, x)`, and the first
// one that does not fit is reported as if it were wrong itself.
//
// Algorithm: of each two tensors it is asked whether both would fit if they were exchanged, by what an element type and
// a number of dims tell. Sizes are not compared: they are those of the caller.
//
//===----------------------------------------------------------------------===//
#include "ArgumentOrder.h"
#include "llvm/ADT/STLExtras.h"

using namespace stage;

static bool fits(const ast::TensorType &type, const Value &value) {
  std::optional<DType> wanted = type.dtype ? parseDType(type.dtype.name) : std::nullopt;
  DType found = value.type.dtype;
  // Without an element type a parameter takes floats and integers.
  if (wanted && (isFloat(*wanted) != isFloat(found) || (!isFloat(found) && *wanted != found)))
    return false;
  size_t packs =
      llvm::count_if(type.dims, [](const ast::ShapeDim &dim) { return llvm::isa<ast::EllipsisExpr>(dim.size); });
  size_t fixed = type.dims.size() - packs, dims = value.type.getNumDims();
  return packs ? dims >= fixed : dims == fixed;
}

std::string stage::suggestOrder(llvm::StringRef callee, llvm::ArrayRef<ast::Param> params,
                                llvm::ArrayRef<TensorArgument> tensors) {
  std::vector<const ast::TensorType *> types;
  for (const ast::Param &param : params)
    if (param.tensor)
      types.push_back(param.tensor);
  for (size_t i = 0; i != std::min(types.size(), tensors.size()); ++i)
    for (size_t j = i + 1; j < std::min(types.size(), tensors.size()); ++j) {
      bool fitsAsIs = fits(*types[i], *tensors[i].value) && fits(*types[j], *tensors[j].value);
      if (fitsAsIs || !fits(*types[i], *tensors[j].value) || !fits(*types[j], *tensors[i].value))
        continue;
      std::string text;
      for (size_t k = 0; k != tensors.size(); ++k) {
        llvm::StringRef source = getSource(tensors[k == i ? j : k == j ? i : k].range);
        text += (text.empty() ? "" : ", ") + source.str();
      }
      return (callee + "(" + text + ")").str();
    }
  return "";
}
