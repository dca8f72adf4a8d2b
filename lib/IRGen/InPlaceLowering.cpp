//===- InPlaceLowering.cpp - formulas in place ----------------------------===//
//
// Problem: a formula in place declares no operands. Its tensors and their indices are
// found where they are accessed:
//
//   let y[b, t, f] = sum[d, k](x[b, 2 * t + k, d] * w[k, d, f]);
//   op contract(x: [b, s, d], w: [k, d, f]) -> [b, t, f] = sum[d, k](x[b, 2*t + k, d] * w[k, d, f])
//
// Algorithm: names in the brackets of the result and of the reductions around are
// indices. An index that is a subscript by itself has the size of that dim. Then each
// of the others gets one from the first subscript, inner ones first, in which it is the
// only one without: it takes as many values as keep the subscript within the dim,
// whatever the other indices are. With multiples m of indices of sizes n,
//
//   c + m*t + low .. c + m*t + high      low and high: the sums of m*(n - 1) of the others below and above 0
//   size(t) = (S - 1 - c - high) div m + 1      m > 0
//   size(t) = (c + low) div -m + 1              m < 0
//
// A dim with a subscript that is more than an index is an index of its own of the op.
//
// Limits: no size follows from subscripts with `div`, `%` or elements of tensors.
//
//===----------------------------------------------------------------------===//
#include "OpLowering.h"
#include "stage/IRGen/Diagnostics.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Walk.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace stage;

void OpLowering::openIndices(llvm::ArrayRef<ast::Expr *> indices, int change) {
  if (!inPlace)
    return;
  for (const ast::Expr *index : indices) {
    if (auto *sized = llvm::dyn_cast<ast::SizedIndexExpr>(index))
      index = sized->index;
    if (auto *compound = llvm::dyn_cast<ast::CompoundExpr>(index))
      for (const ast::Ident &member : compound->indices)
        openIndexNames[member.name] += change;
    else if (auto *name = llvm::dyn_cast<ast::NameExpr>(index))
      openIndexNames[name->name] += change;
  }
}

bool OpLowering::isIndex(llvm::StringRef name) const {
  return inPlace ? openIndexNames.lookup(name) > 0 : indexByName.count(name) > 0;
}

/// The name of an index that stands by itself, else null.
const ast::NameExpr *OpLowering::asIndex(const ast::Expr *expr) const {
  auto *name = llvm::dyn_cast<ast::NameExpr>(expr);
  return name && isIndex(name->name) ? name : nullptr;
}

/// Calls `f` for each dim of each access of a tensor, inner accesses first. False once `f` is, or after an error.
bool OpLowering::forEachSubscript(const ast::Expr *expr,
                                  llvm::function_ref<bool(const ast::Expr *, const TensorArgument &, unsigned)> f) {
  if (auto *conditional = llvm::dyn_cast<ast::IfExpr>(expr)) {
    std::optional<bool> condition = evaluator.evaluateCondition(conditional->condition, *env);
    return condition && forEachSubscript(*condition ? conditional->thenExpr : conditional->elseExpr, f);
  }
  auto *call = llvm::dyn_cast<ast::CallExpr>(expr);
  bool isReduction = call && call->hasIndices, good = true;
  if (isReduction)
    openIndices(call->indices, 1);
  sema::forEachChild(expr, [&](const ast::Expr *child) { good = good && forEachSubscript(child, f); });
  if (isReduction)
    openIndices(call->indices, -1);
  auto *access = llvm::dyn_cast<ast::IndexExpr>(expr);
  if (!access)
    return good;
  auto *base = llvm::dyn_cast<ast::NameExpr>(access->base);
  const sema::CTValue *value = base ? env->find(base->name) : nullptr;
  if (!value || !value->isForeign())
    return good; // said when it is lowered
  TensorArgument argument{static_cast<Value *>(value->getForeign()), access->range};
  llvm::SaveAndRestore<const ast::IndexExpr *> now(accessed, access);
  if (access->subscripts.size() == argument.value->type.getNumDims())
    for (unsigned d = 0; d < access->subscripts.size(); ++d)
      good = good && f(access->subscripts[d], argument, d);
  return good;
}

/// A sum of multiples of indices.
struct OpLowering::Affine {
  Size constant;
  llvm::SmallVector<std::pair<llvm::StringRef, Size>, 2> terms; ///< Each index once.
};

/// Nothing, without a word, where an expression is no such sum.
std::optional<OpLowering::Affine> OpLowering::readAffine(const ast::Expr *expr) {
  if (const ast::NameExpr *index = asIndex(expr))
    return Affine{graph.sizes.zero(), {{index->name, graph.sizes.one()}}};
  if (!mentionsTensors(expr)) {
    std::optional<sema::CTValue> value = evaluator.evaluate(expr, *env);
    return value && value->isSize() ? std::optional(Affine{value->getSize(graph.sizes), {}}) : std::nullopt;
  }
  if (auto *call = llvm::dyn_cast<ast::CallExpr>(expr)) { // size(s)
    auto *callee = llvm::dyn_cast<ast::NameExpr>(call->callee);
    bool isSize = callee && callee->name == "size" && call->args.size() == 1 && !call->hasIndices;
    auto *index = isSize ? llvm::dyn_cast<ast::NameExpr>(call->args[0].value) : nullptr;
    auto it = index ? indexByName.find(index->name) : indexByName.end();
    return it == indexByName.end() ? std::nullopt : std::optional(Affine{extents[it->second].size, {}});
  }
  auto scale = [](Affine affine, Size factor) {
    affine.constant = affine.constant * factor;
    for (auto &[name, multiple] : affine.terms)
      multiple = multiple * factor;
    return affine;
  };
  if (auto *unary = llvm::dyn_cast<ast::UnaryExpr>(expr)) {
    std::optional<Affine> operand = unary->op == ast::UnaryOp::Negate ? readAffine(unary->operand) : std::nullopt;
    return operand ? std::optional(scale(*operand, graph.sizes.constant(-1))) : std::nullopt;
  }
  auto *binary = llvm::dyn_cast<ast::BinaryExpr>(expr);
  bool isProduct = binary && binary->op == ast::BinaryOp::Mul;
  bool isSum = binary && (binary->op == ast::BinaryOp::Add || binary->op == ast::BinaryOp::Sub);
  if (!isProduct && !isSum)
    return std::nullopt;
  std::optional<Affine> left = readAffine(binary->left), right = left ? readAffine(binary->right) : std::nullopt;
  if (!right)
    return std::nullopt;
  if (isProduct) {
    if (!left->terms.empty())
      std::swap(left, right);
    return left->terms.empty() ? std::optional(scale(*right, left->constant)) : std::nullopt;
  }
  if (binary->op == ast::BinaryOp::Sub)
    right = scale(*right, graph.sizes.constant(-1));
  left->constant = left->constant + right->constant;
  for (auto &[name, multiple] : right->terms) {
    auto known = llvm::find_if(left->terms, [&, wanted = name](auto &term) { return term.first == wanted; });
    if (known == left->terms.end())
      left->terms.emplace_back(name, multiple);
    else
      known->second = known->second + multiple;
  }
  return left;
}

/// The least and the most of what is known of a sum; the one index without a size is left out.
std::optional<OpLowering::Bounds> OpLowering::boundSubscript(const ast::Expr *subscript) {
  std::optional<Affine> affine = readAffine(subscript);
  if (!affine)
    return std::nullopt;
  Bounds bounds{affine->constant, affine->constant, {}, {}};
  for (auto &[name, multiple] : affine->terms) {
    auto it = indexByName.find(name);
    SizeValue value = evaluate(multiple, graph.binding);
    if (!value || (it == indexByName.end() && bounds.multiple))
      return std::nullopt;
    if (it == indexByName.end()) {
      bounds.unknown = name;
      bounds.multiple = multiple;
      continue;
    }
    Size &bound = value.value.num < 0 ? bounds.low : bounds.high;
    bound = bound + multiple * (extents[it->second].size - 1);
  }
  return bounds;
}

/// Gives the only index in a subscript that has no size yet the one that keeps the subscript within its dim.
void OpLowering::bindFromSubscript(const ast::Expr *subscript, Size extent) {
  bool isMissing = false;
  sema::walk(subscript, [&](const ast::Expr *part) {
    auto *name = llvm::dyn_cast<ast::NameExpr>(part);
    isMissing |= name && isIndex(name->name) && !indexByName.count(name->name);
  });
  std::optional<Bounds> bounds = isMissing ? boundSubscript(subscript) : std::nullopt;
  if (!bounds || !bounds->multiple)
    return;
  Size multiple = bounds->multiple;
  __int128 sign = evaluate(multiple, graph.binding).value.num;
  if (sign == 0)
    return;
  Size size =
      sign > 0 ? (extent - 1 - bounds->high + multiple).floorDiv(multiple) : bounds->low.floorDiv(multiple * -1) + 1;
  graph.obligations.add(
      Obligations::Kind::Positive, size, Size(), subscript->loc(),
      ("the size of index '" + bounds->unknown + "', which keeps '" + ast::textOf(subscript) + "' within the dim")
          .str());
  addIndex(bounds->unknown, {nullptr, size}, subscript->loc());
  derivedIndices.insert(bounds->unknown);
}

/// Every index in a subscript has a size, and those with a size that no tensor gives stay within all dims.
bool OpLowering::checkSubscript(const ast::Expr *subscript, Size extent) {
  const ast::NameExpr *missing = nullptr;
  bool isDerived = false;
  sema::walk(subscript, [&](const ast::Expr *part) {
    auto *name = llvm::dyn_cast<ast::NameExpr>(part);
    if (!name || !isIndex(name->name))
      return;
    isDerived |= derivedIndices.contains(name->name);
    if (!missing && !indexByName.count(name->name))
      missing = name;
  });
  if (missing) {
    diags.report(missing->loc(), diag::SubscriptedIndexWithoutSize).range(subscript->range)
        << missing->name << ast::textOf(subscript);
    return false;
  }
  std::optional<Bounds> bounds = isDerived ? boundSubscript(subscript) : std::nullopt;
  if (!bounds)
    return true;
  owedSubscripts.insert(subscript);
  oweBounds(*bounds, subscript, extent);
  return true;
}

void OpLowering::oweBounds(const Bounds &bounds, const ast::Expr *subscript, Size extent) {
  std::string text = "'" + ast::textOf(subscript) + "'";
  if (!bounds.low.isConstant(0))
    graph.obligations.add(Obligations::Kind::Positive, bounds.low + 1, Size(), subscript->loc(),
                          "the least of the subscript " + text + ", plus 1");
  graph.obligations.add(Obligations::Kind::AtMost, bounds.high + 1, extent, subscript->loc(),
                        "the subscript " + text + " below the dim's size");
}

bool OpLowering::bindInPlaceIndices(const ast::Expr *formula) {
  auto bindPlain = [&](const ast::Expr *subscript, const TensorArgument &argument, unsigned d) {
    return !asIndex(subscript) || bindIndex(subscript, argument.value->type.shape[d], argument, d).has_value();
  };
  auto collect = [&](const ast::Expr *subscript, const TensorArgument &argument, unsigned d) {
    if (auto *compound = llvm::dyn_cast<ast::CompoundExpr>(subscript))
      openCompounds.push_back({compound, argument.value->type.shape[d], argument.range, std::nullopt});
    return true;
  };
  auto bindOther = [&](const ast::Expr *subscript, const TensorArgument &argument, unsigned d) {
    if (!llvm::isa<ast::CompoundExpr>(subscript))
      bindFromSubscript(subscript, argument.value->type.shape[d].size);
    return true;
  };
  auto check = [&](const ast::Expr *subscript, const TensorArgument &argument, unsigned d) {
    return asIndex(subscript) || llvm::isa<ast::CompoundExpr>(subscript) ||
           checkSubscript(subscript, argument.value->type.shape[d].size);
  };
  return forEachSubscript(formula, bindPlain) && forEachSubscript(formula, collect) && bindCompounds(openCompounds) &&
         forEachSubscript(formula, bindOther) && forEachSubscript(formula, check);
}

/// `(h e), d` of the subscripts h, e, d and the shape [H*E, D]: two neighbours whose sizes make one dim; empty: none
/// do.
std::string OpLowering::joinSubscripts(const ast::IndexExpr &expr, llvm::ArrayRef<Extent> shape) const {
  if (expr.subscripts.size() != shape.size() + 1)
    return "";
  auto findSize = [&](const ast::Expr *subscript) {
    auto *index = llvm::dyn_cast<ast::NameExpr>(subscript);
    auto known = index ? indexByName.find(index->name) : indexByName.end();
    return known == indexByName.end() ? Size() : extents[known->second].size;
  };
  for (size_t d = 0; d < shape.size(); ++d) {
    Size first = findSize(expr.subscripts[d]), second = findSize(expr.subscripts[d + 1]);
    if (!first || !second || first * second != shape[d].size)
      continue;
    std::string text;
    for (size_t i = 0; i < expr.subscripts.size(); ++i)
      text += (i == d       ? (i ? ", (" : "(")
               : i == d + 1 ? " "
               : i          ? ", "
                            : "") +
              ast::textOf(expr.subscripts[i]) + (i == d + 1 ? ")" : "");
    return text;
  }
  return "";
}

/// A tensor at subscripts. Its operand is added when it is first met; all accesses with the same indices share it.
const Formula *OpLowering::lowerInPlaceElement(const ast::IndexExpr &expr, Value *value) {
  llvm::StringRef name = llvm::cast<ast::NameExpr>(expr.base)->name;
  llvm::ArrayRef<Extent> shape = value->type.shape;
  if (expr.subscripts.size() != shape.size()) {
    DiagnosticBuilder error = diags.report(expr.loc(), diag::WrongSubscriptCount).range(expr.range)
                              << name << int64_t(shape.size()) << int64_t(expr.subscripts.size());
    if (std::string joined = joinSubscripts(expr, shape); !joined.empty())
      error.note(SMLoc(), diag::NameInstead)
          << "indices that are stored as one dim stand in parentheses: write '" + name.str() + "[" + joined + "]'";
    return nullptr;
  }
  if (!inCast && !checkMixing(name, value, expr.range))
    return nullptr;
  llvm::SmallVector<std::optional<unsigned>, 4> plain; // per dim: the index that is the subscript
  llvm::SmallVector<const Formula *, 4> subscripts;
  for (unsigned d = 0; d < shape.size(); ++d) {
    const ast::Expr *subscript = expr.subscripts[d];
    if (auto *compound = llvm::dyn_cast<ast::CompoundExpr>(subscript)) {
      plain.push_back(findCompound(*compound, &shape[d], expr.range));
      if (!plain.back())
        return nullptr;
      subscripts.push_back(indexFormula(*plain.back()));
      continue;
    }
    auto *index = asIndex(subscript);
    plain.push_back(index ? std::optional(indexByName.lookup(index->name)) : std::nullopt);
    bool outerCast = std::exchange(inCast, true); // positions are integers beside whatever the formula computes with
    subscripts.push_back(index ? indexFormula(*plain.back()) : lower(subscript));
    inCast = outerCast;
    if (!subscripts.back())
      return nullptr;
  }
  auto fits = [&](unsigned operand) {
    llvm::ArrayRef<unsigned> indices = def.operands[operand].indices;
    for (unsigned d = 0; d < indices.size(); ++d)
      if (plain[d] ? *plain[d] != indices[d] : bool(isOwnIndex[indices[d]]))
        return false;
    return true;
  };
  unsigned operand = 0;
  while (operand < operands.size() && !(operands[operand] == value && fits(operand)))
    ++operand;
  if (operand == operands.size()) {
    OperandInfo info{name.str(), {}};
    for (unsigned d = 0; d < shape.size(); ++d)
      info.indices.push_back(plain[d] ? *plain[d] : addUnnamedIndex(shape[d], expr.range.Start));
    for (unsigned number = 1; operandByName.count(info.name); ++number)
      info.name = name.str() + std::to_string(number);
    operandByName[info.name] = operand;
    def.operands.push_back(std::move(info));
    operands.push_back(value);
  }
  Formula node{};
  node.kind = Formula::Kind::Element;
  node.operand = operand;
  const Formula *element = graph.defs.create(node, {}, subscripts);
  llvm::SmallVector<const ast::Expr *, 4> written(expr.subscripts.begin(), expr.subscripts.end());
  noteAccess(element, written);
  return element;
}

Op *OpLowering::formulaInPlace(llvm::ArrayRef<ast::Expr *> resultIndices, const ast::Expr *formula,
                               const sema::Environment &callerEnv, SMRange range, Block &block, llvm::StringRef scope) {
  env = &callerEnv;
  inPlace = true;
  def.name = "formula";
  def.loc = range.Start;
  openIndices(resultIndices, 1);
  const ast::CallExpr *concat = asConcat(formula);
  if (!llvm::all_of(resultIndices, [&](const ast::Expr *index) { return bindSized(index); }) ||
      (!concat && !bindInPlaceIndices(formula)))
    return nullptr;
  const Formula *lowered = concat ? lowerConcat(*concat) : lower(formula);
  if (!lowered)
    return nullptr;
  ResultInfo result;
  result.name = "result";
  result.formula = lowered;
  for (const ast::Expr *expr : resultIndices) {
    auto *sized = llvm::dyn_cast<ast::SizedIndexExpr>(expr);
    if (sized)
      expr = sized->index;
    if (auto *compound = llvm::dyn_cast<ast::CompoundExpr>(expr)) {
      std::optional<Extent> extent = sized ? evaluateExtent(sized->size) : std::nullopt;
      if (sized && !extent)
        return nullptr;
      std::optional<unsigned> index = findCompound(*compound, extent ? &*extent : nullptr, expr->range);
      if (!index)
        return nullptr;
      result.indices.push_back(*index);
      continue;
    }
    auto *name = llvm::dyn_cast<ast::NameExpr>(expr);
    auto it = name ? indexByName.find(name->name) : indexByName.end();
    if (it == indexByName.end()) {
      // Sema has seen the index: it stands where no tensor is accessed, as in `where(false, x[b], 0)`.
      diags.report(expr->loc(), diag::NotSupportedYet).range(expr->range)
          << "an index of the result that no tensor is accessed at";
      return nullptr;
    }
    result.indices.push_back(it->second);
  }
  def.results.push_back(std::move(result));
  if (concat)
    def.name = "concat";
  return finishInPlace(range, block, scope);
}
