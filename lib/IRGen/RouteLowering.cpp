//===- RouteLowering.cpp - ops that route by data -------------------------===//
//
// Problem: `routes b, s, j -> x, c` says which indices follow from which, in either direction; the operand of integers
// that has the indices of one side says where each token goes:
//
//   op dispatch(t: [b, s, d], to: i32[b, s, j], experts: size x, slots: size c) -> [x, c, d] = t { routes b, s, j -> x, c; }
//   routes b, s, j -> x, c by to;                                            in the graph
//
// Algorithm: find that operand; its indices, in its order, are the tokens. What follows from others has no position of
// its own: it stands only as the index of an operand that is declared with it.
//
//===----------------------------------------------------------------------===//
#include "OpLowering.h"
#include "stage/IRGen/Diagnostics.h"

using namespace stage;

bool OpLowering::lowerRoutes() {
  if (!routesClause)
    return true;
  auto resolve = [&](llvm::ArrayRef<ast::Ident> names) {
    llvm::SmallVector<unsigned, 4> indices;
    for (const ast::Ident &name : names)
      indices.push_back(indexByName.lookup(name.name));
    return indices;
  };
  llvm::SmallVector<unsigned, 4> left = resolve(routesClause->names), right = resolve(routesClause->names2);
  auto routes = [&](unsigned operand, llvm::ArrayRef<unsigned> side) {
    const auto &indices = def.operands[operand].indices;
    return !isFloat(operands[operand]->type.dtype) && indices.size() == side.size() &&
           llvm::all_of(side, [&](unsigned index) { return llvm::is_contained(indices, index); });
  };
  Routing routing;
  unsigned number = 0; // of operands that may
  for (unsigned i = 0; i < operands.size(); ++i)
    if (bool isLeft = routes(i, left); isLeft || routes(i, right)) {
      ++number;
      routing.operand = i;
      routing.target = (isLeft ? right : left).front();
      routing.slot = (isLeft ? right : left).back();
    }
  if (number != 1) {
    noteCall(diags.report(routesClause->loc(), diag::RoutesBySeveral).range(routesClause->range)
             << def.name << int64_t(number));
    return false;
  }
  routing.tokens.assign(def.operands[routing.operand].indices.begin(), def.operands[routing.operand].indices.end());
  routing.toSlots = llvm::is_contained(def.results.front().indices, routing.slot);
  def.routing = std::move(routing);
  for (const ResultInfo &result : def.results)
    if (result.formula && !checkRouted(result.formula))
      return false;
  return llvm::all_of(def.lets, [&](auto &let) { return checkRouted(let.second); });
}

/// Whether indices that follow from others stand only where operands have them.
bool OpLowering::checkRouted(const Formula *formula) {
  const Formula *wrong = formula->kind == Formula::Kind::Index && def.routing->isRouted(formula->index) ? formula : nullptr;
  unsigned index = wrong ? wrong->index : 0;
  for (unsigned reduced : formula->indices)
    if (def.routing->isRouted(reduced)) {
      wrong = formula;
      index = reduced;
    }
  if (wrong) {
    noteCall(diags.report(routesClause->loc(), diag::RoutedIndex).range(routesClause->range)
             << def.indices[index].name << def.name);
    return false;
  }
  for (size_t k = 0; k < formula->children.size(); ++k) {
    const Formula *child = formula->children[k];
    bool isOwn = formula->kind == Formula::Kind::Element && child->kind == Formula::Kind::Index &&
                 child->index == def.operands[formula->operand].indices[k];
    if (!isOwn && !checkRouted(child))
      return false;
  }
  return true;
}
