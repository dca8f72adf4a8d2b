//===- CompoundLowering.cpp - several indices as one dim ------------------===//
//
// Problem: a dim may be the product of several indices, the first of them outermost:
//
//   let heads[b, s, k: H, e] = x[b, s, (k e)];           x: [B, S, D]
//   op formula(x: [b, s, (k e)]) -> [b, s, k, e] = x[b, s, (k e)];      k = H, e = D/H
//
// Algorithm: sizes of indices that stand by themselves are known first. Then each
// dim `(k e)` of which all parts but one have a size gives that one the quotient, which
// must come out even, until nothing changes. A dim that was declared as `(H E)` gives its
// own parts to those that have no size. Where all sizes are known their product must
// be that of the dim.
//
// Limits: two parts without a size are not guessed.
//
//===----------------------------------------------------------------------===//
#include "OpLowering.h"
#include "stage/IRGen/Diagnostics.h"

using namespace stage;

/// A size of the program, and the dim that it is, if it is one.
std::optional<Extent> OpLowering::evaluateExtent(const ast::Expr *size) {
  std::optional<sema::CTValue> value = evaluator.evaluate(size, *env);
  std::optional<Size> known = value ? evaluator.evaluateSize(size, *env) : std::nullopt;
  if (!known)
    return std::nullopt;
  return Extent{static_cast<const Dim *>(value->getTag()), *known};
}

/// `k: H` in the brackets of the result of a formula in place: k has this size, whatever tensors say.
bool OpLowering::bindSized(const ast::Expr *index) {
  auto *sized = llvm::dyn_cast<ast::SizedIndexExpr>(index);
  auto *name = sized ? llvm::dyn_cast<ast::NameExpr>(sized->index) : nullptr;
  if (!name)
    return true; // that of `(k e): D` is compared with those of its parts
  std::optional<Extent> extent = evaluateExtent(sized->size);
  if (!extent)
    return false;
  graph.obligations.add(Obligations::Kind::Positive, extent->size, Size(), sized->size->loc(), "the size of an index");
  addIndex(name->name, *extent, sized->loc());
  return true;
}

/// Gives the parts of a dim their sizes, where these follow by now. False after an error.
bool OpLowering::bindCompound(const OpenCompound &open, bool &isDone) {
  llvm::SmallVector<llvm::StringRef, 2> missing;
  Size known = graph.sizes.one();
  for (const ast::Ident &member : open.expr->indices) {
    const sema::CTValue *value = inPlace ? nullptr : env->find(member.name);
    if (auto it = indexByName.find(member.name); it != indexByName.end())
      known = known * extents[it->second].size;
    else if (value && value->isSize())
      known = known *
              extents[addIndex(member.name, {static_cast<const Dim *>(value->getTag()), value->getSize(graph.sizes)},
                               member.loc())]
                  .size;
    else
      missing.push_back(member.name);
  }
  const Dim *dim = open.extent.dim;
  bool isDeclared = dim && dim->parts.size() == open.expr->indices.size();
  isDone = missing.size() <= 1 || isDeclared;
  if (!isDone)
    return true;
  if (isDeclared) {
    for (size_t i = 0; i < dim->parts.size(); ++i)
      if (llvm::is_contained(missing, open.expr->indices[i].name))
        addIndex(open.expr->indices[i].name, {dim->parts[i], dim->parts[i]->size}, open.range.Start);
  } else if (!missing.empty()) {
    std::string text = ast::textOf(open.expr);
    graph.obligations.add(Obligations::Kind::Divides, open.extent.size, known, open.expr->loc(),
                          "what the other parts of '" + text + "' leave for '" + missing.front().str() + "'");
    addIndex(missing.front(), {nullptr, open.extent.size / known}, open.range.Start);
  }
  std::optional<unsigned> index = findCompound(*open.expr, &open.extent, open.range);
  if (index && open.place)
    def.operands[open.place->first].indices[open.place->second] = *index;
  return index.has_value();
}

bool OpLowering::bindCompounds(llvm::MutableArrayRef<OpenCompound> open) {
  for (bool isChanged = true; isChanged && !open.empty();) {
    isChanged = false;
    size_t left = 0;
    for (size_t i = 0; i < open.size(); ++i) {
      bool isDone;
      if (!bindCompound(open[i], isDone))
        return false;
      isChanged |= isDone;
      if (!isDone)
        open[left++] = open[i];
    }
    open = open.take_front(left);
  }
  if (open.empty())
    return true;
  const ast::CompoundExpr *expr = open.front().expr;
  std::string names;
  for (const ast::Ident &member : expr->indices)
    if (!indexByName.count(member.name))
      names += (names.empty() ? "'" : ", '") + member.name.str() + "'";
  noteCall(diags.report(expr->loc(), diag::CompoundWithoutSizes).range(expr->range)
           << names << ast::textOf(expr) << expr->indices.front().name);
  return false;
}

/// The index of the op that is these as one dim, of this extent, if it is given. All of them have sizes.
std::optional<unsigned> OpLowering::findCompound(const ast::CompoundExpr &expr, const Extent *extent, SMRange range) {
  llvm::SmallVector<unsigned, 4> members;
  Size product = graph.sizes.one();
  for (const ast::Ident &member : expr.indices) {
    auto it = indexByName.find(member.name);
    if (it == indexByName.end()) {
      noteCall(diags.report(member.loc(), diag::NoSuchIndex).range(member.range) << member.name << def.name);
      return std::nullopt;
    }
    members.push_back(it->second);
    product = product * extents[it->second].size;
  }
  unsigned before = def.indices.size(), index = def.getCompound(members);
  if (index == before) {
    extents.push_back(extent ? *extent : Extent{nullptr, product});
    indexLocs.push_back(range.Start);
    isOwnIndex.push_back(true);
    if (extents.back().size != product)
      graph.obligations.add(Obligations::Kind::Equal, product, extents.back().size, expr.loc(),
                            "the parts of '" + ast::textOf(&expr) + "' together");
  } else if (extent && extents[index].size != extent->size) {
    DiagnosticBuilder message = diags.report(range.Start, diag::ShapeMismatch)
                                << def.name << "index '" + ast::textOf(&expr) + "'" << extent->size.str()
                                << extents[index].size.str();
    message.range(range);
    message.note(indexLocs[index], diag::IndexBoundHere) << ast::textOf(&expr) << extents[index].size.str();
    return std::nullopt;
  }
  return index;
}

/// A subscript that is several indices as one stays within a dim that is not.
bool OpLowering::oweWithin(unsigned compound, const Extent &extent, SMRange range) {
  graph.obligations.add(Obligations::Kind::AtMost, extents[compound].size, extent.size, range.Start,
                        "the positions of '" + def.indices[compound].name + "' within the dim");
  return true;
}
