//===- BuildTypes.cpp - shapes, indices, types and parameters -------------===//
#include "Builder.h"

using namespace stage;
using namespace stage::ast;
using namespace stage::parse;

Expr *Builder::ellipsis(Grammar::EllipsisContext *tree) {
  auto *node = make<EllipsisExpr>(tree);
  node->name = ident(tree->name()).name;
  return node;
}

Expr *Builder::subscript(Grammar::SubscriptContext *tree) {
  if (tree->ellipsis())
    return ellipsis(tree->ellipsis());
  return tree->compound() ? compound(tree->compound()) : expr(tree->rangeOrExpr());
}

Expr *Builder::compound(Grammar::CompoundContext *tree) {
  auto *node = make<CompoundExpr>(tree);
  node->indices = idents(tree->name());
  return node;
}

bool Builder::productOfNames(Grammar::ExprContext *tree, llvm::SmallVectorImpl<Ident> &names) {
  if (auto *name = dynamic_cast<Grammar::NameExprContext *>(tree)) {
    names.push_back(ident(name));
    return true;
  }
  auto *product = dynamic_cast<Grammar::BinaryExprContext *>(tree);
  return product && product->STAR() && productOfNames(product->expr(0), names) &&
         productOfNames(product->expr(1), names);
}

Expr *Builder::shapeExpr(Grammar::ExprContext *tree) {
  llvm::SmallVector<Ident, 4> names;
  auto *paren = dynamic_cast<Grammar::ParenExprContext *>(tree);
  if (!paren || paren->COMMA() || !productOfNames(paren->expr(), names) || names.size() < 2)
    return expr(tree);
  auto *node = make<CompoundExpr>(tree);
  node->indices = list(names);
  return node;
}

Expr *Builder::indexItem(Grammar::IndexItemContext *tree) {
  if (tree->ellipsis())
    return ellipsis(tree->ellipsis());
  Expr *index = tree->compound() ? compound(tree->compound()) : shapeExpr(tree->expr(0));
  if (!tree->COLON())
    return index;
  auto *node = make<SizedIndexExpr>(tree);
  node->index = index;
  node->size = expr(tree->expr().back());
  return node;
}

ArrayRef<Expr *> Builder::indices(Grammar::IndexListContext *tree) {
  return tree ? each(tree->indexItem(), &Builder::indexItem) : ArrayRef<Expr *>();
}

Argument Builder::argument(Grammar::ArgContext *tree) {
  Expr *value = expr(tree->rangeOrExpr());
  if (!tree->FOR())
    return {ident(tree->name()), value};
  auto *node = make<ForArgExpr>(tree);
  node->variable = ident(tree->name());
  node->range_ = value;
  return {Ident(), node};
}

ArrayRef<Argument> Builder::arguments(Grammar::ArgListContext *tree) {
  return tree ? each(tree->arg(), &Builder::argument) : ArrayRef<Argument>();
}

AxisListSyntax Builder::axes(Grammar::AxisListContext *tree) {
  if (!tree->name())
    return {idents(tree->nameList()), range(tree)};
  return {context.copy(ArrayRef<Ident>(ident(tree->name()))), range(tree)};
}

ShapeDim Builder::dim(Grammar::DimContext *tree) {
  ShapeDim dim{};
  dim.index = ident(tree->name());
  dim.size = tree->ellipsis()   ? ellipsis(tree->ellipsis())
             : tree->compound() ? compound(tree->compound())
                                : shapeExpr(tree->expr());
  if (auto *axisList = tree->axisList()) {
    dim.hasAxes = true;
    dim.axes = axes(axisList);
  }
  return dim;
}

TensorType *Builder::type(Grammar::TypeContext *tree) {
  auto *node = make<TensorType>(tree);
  node->dtype = ident(tree->name());
  node->dims = each(tree->dim(), &Builder::dim);
  if (auto *names = tree->nameList()) {
    node->hasPartial = true;
    node->partial = {idents(names), range(names)};
    // `partial(max, tp)`: the first of several words may say how to reduce.
    StringRef first = node->partial.axes[0].name;
    if (node->partial.axes.size() > 1 && (first == "max" || first == "min" || first == "sum")) {
      node->partialReduce = node->partial.axes[0];
      node->partial.axes = node->partial.axes.drop_front();
    }
  }
  if (tree->REPLICATED()) {
    node->hasReplicated = true;
    node->replicated = axes(tree->axisList());
  }
  return node;
}

Param Builder::parameter(Grammar::ParameterContext *tree) {
  Param param;
  param.doc = docsBefore(tree);
  param.name = ident(tree->name());
  param.tensor = typeOrNull(tree->type());
  if (auto *scalar = tree->scalarKind()) {
    param.scalarKind = ident(scalar->name(0));
    param.sizeIndex = ident(scalar->name(1));
  }
  param.legal = tree->rangeOrExpr() ? expr(tree->rangeOrExpr()) : nullptr;
  param.defaultValue = exprOrNull(tree->expr());
  return param;
}

ArrayRef<Param> Builder::parameters(Grammar::ParamListContext *tree) {
  return tree ? each(tree->parameter(), &Builder::parameter) : ArrayRef<Param>();
}
