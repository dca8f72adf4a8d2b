//===- Subscripts.cpp - what subscripts ask of sizes ----------------------===//
#include "stage/IR/graph/Subscripts.h"

using namespace stage;

namespace {
class SubscriptVisitor {
public:
  SubscriptVisitor(const Op &op, SizeContext &sizes, llvm::function_ref<void(Size)> found)
      : op(op), def(op.def->vjpOf ? *op.def->vjpOf : *op.def), sizes(sizes), found(found) {
    subscripted.resize(def.lets.size());
  }

  void run() {
    for (const ResultInfo &result : def.results)
      if (result.formula)
        visit(result.formula, /*inSubscript=*/false);
    // A let uses only those before it: each is visited after all that stand in subscripts have named it.
    for (unsigned let = def.lets.size(); let-- > 0;)
      visit(def.lets[let].second, subscripted[let]);
  }

private:
  void visit(const Formula *f, bool inSubscript) {
    if (inSubscript && f->kind == Formula::Kind::Let) {
      subscripted[f->operand] = true;
      return;
    }
    // What is rounded down need not come out even: `div`, `%`.
    if (f->kind == Formula::Kind::Call && f->function == Formula::Function::Floor)
      inSubscript = false;
    if (inSubscript && (f->kind == Formula::Kind::SizeOf || f->kind == Formula::Kind::Div))
      if (Size size = toSize(f))
        return found(size);
    for (const Formula *child : f->children)
      visit(child, inSubscript || f->kind == Formula::Kind::Element);
  }

  /// A size, a number, or a quotient of such; else null.
  Size toSize(const Formula *f) {
    if (f->kind == Formula::Kind::SizeOf)
      return substitute(f->size, [&](llvm::StringRef symbol) {
        auto index = def.findIndex(symbol);
        return index ? op.extents[*index].size : Size();
      });
    if (f->kind == Formula::Kind::Number && f->number == double(int64_t(f->number)))
      return sizes.constant(int64_t(f->number));
    if (f->kind != Formula::Kind::Div)
      return Size();
    Size a = toSize(f->children[0]), b = toSize(f->children[1]);
    return a && b ? a / b : Size();
  }

  const Op &op;
  const OpDef &def;
  SizeContext &sizes;
  llvm::function_ref<void(Size)> found;
  std::vector<bool> subscripted; ///< Lets that a subscript uses.
};
} // namespace

void stage::forEachSubscriptSize(const Op &op, SizeContext &sizes, llvm::function_ref<void(Size)> f) {
  SubscriptVisitor(op, sizes, f).run();
}
