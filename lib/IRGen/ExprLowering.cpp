//===- ExprLowering.cpp - expressions of modules --------------------------===//
//
// Problem: in a module `x + attn(...) * rsqrt(E)` mixes tensors, sizes and scalars.
// What mentions no tensor is the evaluator's; tensor operators become small ops, a
// chain of `+` one n-ary sum. Calls are CallLowering.cpp's.
//
// Element-wise operators align by dim, never by size 1: the operand with the most
// dims gives the result its shape, and every dim of the others must be one of its.
//
//===----------------------------------------------------------------------===//
#include "ArgumentOrder.h"
#include "IndexNames.h"
#include "ModuleLowering.h"
#include "stage/IRGen/Diagnostics.h"
#include "stage/IRGen/Suggestions.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/InferenceWords.h"
#include "stage/Sema/Program.h"
#include "stage/Support/Origins.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace stage;

Value *ModuleLowering::expectTensor(const std::optional<CTValue> &value, SMRange range,
                                    llvm::function_ref<std::string()> suggest) {
  if (!value)
    return nullptr;
  if (value->isForeign())
    return static_cast<Value *>(value->getForeign());
  if (isCache(*value)) {
    diags.report(range.Start, diag::CacheRead).range(range);
    return nullptr;
  }
  DiagnosticBuilder message = diags.report(range.Start, diag::ExpectedTensor) << value->describeKind();
  message.range(range);
  if (std::string instead = suggest ? suggest() : ""; !instead.empty())
    message.note(SMLoc(), diag::OperandsInOtherOrder) << instead;
  return nullptr;
}

bool ModuleLowering::mentionsTensors(const ast::Expr *expr, const Environment &env) {
  auto any = [&](llvm::ArrayRef<ast::Expr *> list) {
    return llvm::any_of(list, [&](const ast::Expr *e) { return mentionsTensors(e, env); });
  };
  switch (expr->kind) {
  case ast::NodeKind::NameExpr: {
    const CTValue *value = env.find(llvm::cast<ast::NameExpr>(expr)->name);
    return value && (value->isForeign() || isCache(*value) ||
                     (value->getKind() == CTValue::Kind::Tuple &&
                      llvm::any_of(value->getElements(), [](const CTValue &e) { return e.isForeign(); })));
  }
  case ast::NodeKind::UnaryExpr:
    return mentionsTensors(llvm::cast<ast::UnaryExpr>(expr)->operand, env);
  case ast::NodeKind::BinaryExpr:
    return any({llvm::cast<ast::BinaryExpr>(expr)->left, llvm::cast<ast::BinaryExpr>(expr)->right});
  case ast::NodeKind::CallExpr: {
    auto *call = llvm::cast<ast::CallExpr>(expr);
    // An instance is a tensor, also of a module that takes none: `Positions(S, D)`.
    if (auto *callee = llvm::dyn_cast<ast::NameExpr>(call->callee); callee && !env.find(callee->name))
      if (llvm::isa_and_nonnull<ast::ModuleDecl, ast::OpDecl>(
              evaluator.getProgram().lookup(env.getFile(), callee->name)))
        return true;
    return llvm::any_of(call->args, [&](const ast::Argument &arg) { return mentionsTensors(arg.value, env); });
  }
  case ast::NodeKind::IndexExpr:
    return mentionsTensors(llvm::cast<ast::IndexExpr>(expr)->base, env);
  case ast::NodeKind::IfExpr:
    return any({llvm::cast<ast::IfExpr>(expr)->thenExpr, llvm::cast<ast::IfExpr>(expr)->elseExpr});
  case ast::NodeKind::TupleExpr:
    return any(llvm::cast<ast::TupleExpr>(expr)->elements);
  case ast::NodeKind::OpExpr:
    return true;
  default:
    return false;
  }
}

std::optional<sema::CTValue> ModuleLowering::lower(const ast::Expr *expr, Environment &env, Place &place) {
  if (!mentionsTensors(expr, env))
    return evaluator.evaluate(expr, env);
  switch (expr->kind) {
  case ast::NodeKind::NameExpr:
    return *env.find(llvm::cast<ast::NameExpr>(expr)->name);
  case ast::NodeKind::BinaryExpr:
    return lowerBinary(*llvm::cast<ast::BinaryExpr>(expr), env, place);
  case ast::NodeKind::CallExpr:
    return lowerCall(*llvm::cast<ast::CallExpr>(expr), env, place);
  case ast::NodeKind::UnaryExpr: {
    auto *unary = llvm::cast<ast::UnaryExpr>(expr);
    Value *value = expectTensor(lower(unary->operand, env, place), unary->range);
    if (!value)
      return std::nullopt;
    if (unary->op == ast::UnaryOp::Not) {
      diags.report(unary->loc(), diag::BadTensorOperator).range(unary->range) << "!";
      return std::nullopt;
    }
    return lowerElementwise(ast::BinaryOp::Mul, {{value, unary->range}}, std::nullopt, -1.0, unary->range, place);
  }
  case ast::NodeKind::IfExpr: {
    auto *conditional = llvm::cast<ast::IfExpr>(expr);
    std::optional<bool> condition = evaluator.evaluateCondition(conditional->condition, env);
    if (!condition)
      return std::nullopt;
    return lower(*condition ? conditional->thenExpr : conditional->elseExpr, env, place);
  }
  case ast::NodeKind::TupleExpr: {
    std::vector<CTValue> elements;
    for (const ast::Expr *element : llvm::cast<ast::TupleExpr>(expr)->elements) {
      std::optional<CTValue> value = lower(element, env, place);
      if (!value)
        return std::nullopt;
      elements.push_back(*value);
    }
    return CTValue::tuple(std::move(elements));
  }
  case ast::NodeKind::IndexExpr: {
    auto *index = llvm::cast<ast::IndexExpr>(expr);
    Value *value = expectTensor(lower(index->base, env, place), index->base->range);
    return value ? lowerSlice(*index, value, env, place) : std::nullopt;
  }
  case ast::NodeKind::OpExpr: {
    auto *op = llvm::cast<ast::OpExpr>(expr);
    llvm::SmallVector<TensorArgument, 3> arguments;
    for (const ast::OpExpr::Operand &operand : op->operands) {
      Value *value = expectTensor(lower(operand.value, env, place), operand.value->range);
      if (!value)
        return std::nullopt;
      arguments.push_back({value, operand.value->range});
    }
    Op *created = OpLowering(graph, evaluator, types).contraction(*op, arguments, env, *place.block, place.scope);
    return created ? std::optional<CTValue>(tensor(created->getResult())) : std::nullopt;
  }
  default:
    llvm_unreachable("mentionsTensors has let nothing else through");
  }
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

/// The addends of a chain of `+` of tensors, left to right.
void ModuleLowering::collectAddends(const ast::Expr *expr, const Environment &env,
                                    llvm::SmallVectorImpl<const ast::Expr *> &addends) {
  auto *binary = llvm::dyn_cast<ast::BinaryExpr>(expr);
  if (binary && binary->op == ast::BinaryOp::Add && mentionsTensors(binary->left, env) &&
      mentionsTensors(binary->right, env)) {
    collectAddends(binary->left, env, addends);
    collectAddends(binary->right, env, addends);
    return;
  }
  addends.push_back(expr);
}

std::optional<sema::CTValue> ModuleLowering::lowerBinary(const ast::BinaryExpr &expr, Environment &env, Place &place) {
  llvm::SmallVector<const ast::Expr *, 4> parts;
  if (expr.op == ast::BinaryOp::Add)
    collectAddends(&expr, env, parts);
  if (parts.size() < 2)
    parts = {expr.left, expr.right};
  if (expr.op != ast::BinaryOp::Add && expr.op != ast::BinaryOp::Sub && expr.op != ast::BinaryOp::Mul &&
      expr.op != ast::BinaryOp::Div) {
    diags.report(expr.opLoc, diag::BadTensorOperator).range(expr.range) << ast::spell(expr.op);
    return std::nullopt;
  }
  llvm::SmallVector<TensorArgument, 4> tensors;
  std::optional<double> scalars[2];
  for (unsigned i = 0; i < parts.size(); ++i) {
    if (!mentionsTensors(parts[i], env)) {
      scalars[i] = evaluator.evaluateReal(parts[i], env);
      if (!scalars[i])
        return std::nullopt;
      continue;
    }
    Value *value = expectTensor(lower(parts[i], env, place), parts[i]->range);
    if (!value)
      return std::nullopt;
    tensors.push_back({value, parts[i]->range});
  }
  return lowerElementwise(expr.op, tensors, scalars[0], scalars[1], expr.range, place);
}

/// R13.3: integers mix neither with floating-point numbers nor with integers of another type, and stay integers.
bool ModuleLowering::checkElementTypes(ast::BinaryOp op, llvm::ArrayRef<TensorArgument> tensors,
                                       std::initializer_list<std::optional<double>> scalars, SMRange range) {
  const TensorArgument &first = tensors.front();
  DType type = first.value->type.dtype;
  for (const TensorArgument &other : tensors.drop_front()) {
    DType found = other.value->type.dtype;
    if (found == type || (isFloat(found) && isFloat(type)))
      continue;
    diags.report(other.range.Start, diag::MixedDTypes).range(first.range).range(other.range)
        << "one operand" << getName(type) << "the other" << getName(found);
    return false;
  }
  if (isFloat(type))
    return true;
  bool fraction =
      llvm::any_of(scalars, [](std::optional<double> scalar) { return scalar && *scalar != std::floor(*scalar); });
  if (!fraction && op != ast::BinaryOp::Div)
    return true;
  diags.report(range.Start, diag::IntegerArithmetic).range(range)
      << (fraction ? "a number with a fraction" : "'/'") << getName(type);
  return false;
}

/// `let y[b, s, d] = x[b, s, d] + p[d];`: the dims of the smaller tensor meet the last ones of the other.
static std::string suggestSum(const TensorType &shape, SMRange whole, const TensorType &type, SMRange part) {
  std::vector<std::string> indices;
  for (const Extent &extent : shape.shape) {
    std::string index = extent.dim ? llvm::StringRef(extent.dim->name).lower() : std::string("i");
    while (llvm::is_contained(indices, index))
      index += "2";
    indices.push_back(index);
  }
  size_t skipped = shape.getNumDims() >= type.getNumDims() ? shape.getNumDims() - type.getNumDims() : 0;
  auto getName = [](SMRange range, llvm::StringRef other) {
    llvm::StringRef text = getSource(range);
    bool isName = llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; });
    return (isName ? text : other).str();
  };
  std::string all = llvm::join(indices, ", ");
  return "let y[" + all + "] = " + getName(whole, "x") + "[" + all + "] + " + getName(part, "p") + "[" +
         llvm::join(llvm::makeArrayRef(indices).drop_front(skipped), ", ") + "];";
}

/// A tensor whose sizes are not those of the last dims of another one: no formula adds them up.
static void explainSizes(DiagnosticBuilder &message, const TensorType &shape, const TensorType &type,
                         const SizeBinding &binding, const Value &value) {
  std::string seen, wanted, names;
  size_t skipped = shape.getNumDims() - type.getNumDims();
  for (const Extent &extent : type.shape)
    seen += (seen.empty() ? "" : ", ") + describeExtent(extent, binding);
  for (const Extent &extent : llvm::makeArrayRef(shape.shape).drop_front(skipped)) {
    wanted += (wanted.empty() ? "" : ", ") + describeExtent(extent, binding);
    names += (names.empty() ? "" : ", ") + (extent.dim ? extent.dim->name : extent.size.str());
  }
  if (mayRedeclare(value))
    setOrigin(message, {value.loc, value.loc});
  message.note(mayRedeclare(value) ? SMLoc() : value.loc, diag::NameInstead)
      << "'" + describe(value) + "' is [" + seen + "], and the last dims of the other tensor are [" + wanted +
             "]: declare it as '[" + names + "]'";
}

std::optional<sema::CTValue> ModuleLowering::lowerElementwise(ast::BinaryOp op, llvm::ArrayRef<TensorArgument> tensors,
                                                              std::optional<double> scalarLeft,
                                                              std::optional<double> scalarRight, SMRange range,
                                                              Place &place) {
  if (!checkElementTypes(op, tensors, {scalarLeft, scalarRight}, range))
    return std::nullopt;
  unsigned widest = 0;
  for (unsigned i = 1; i < tensors.size(); ++i)
    if (tensors[i].value->type.getNumDims() > tensors[widest].value->type.getNumDims())
      widest = i;
  const TensorType &shape = tensors[widest].value->type;
  OpDef def;
  def.loc = range.Start;
  ResultInfo result;
  result.name = "result";
  for (unsigned d = 0; d < shape.getNumDims(); ++d) {
    const Dim *dim = shape.shape[d].dim;
    std::string name = dim ? llvm::StringRef(dim->name).lower() : "i" + std::to_string(d);
    std::replace(name.begin(), name.end(), '.', '_');
    if (def.findIndex(name))
      name = "i" + std::to_string(d);
    def.indices.push_back({name});
    result.indices.push_back(d);
  }
  for (unsigned i = 0; i < tensors.size(); ++i) {
    OperandInfo info{tensors.size() == 1 ? "x" : "x" + std::to_string(i), {}};
    llvm::SmallVector<bool, 6> taken(shape.getNumDims(), false);
    const TensorType &type = tensors[i].value->type;
    for (unsigned d = 0; d < type.getNumDims(); ++d) {
      // By name; a dim without a name by its size, from the inside out, if only one fits.
      llvm::SmallVector<unsigned, 2> fits;
      const Extent &extent = type.shape[d];
      for (unsigned p = 0; p < shape.getNumDims(); ++p)
        if (!taken[p] && shape.shape[p].size == extent.size && shape.shape[p].dim == extent.dim)
          fits.push_back(p);
      if (fits.empty())
        for (unsigned p = 0; p < shape.getNumDims(); ++p)
          if (!taken[p] && shape.shape[p].size == extent.size && (!extent.dim || !shape.shape[p].dim))
            fits.push_back(p);
      if (i == widest)
        fits.assign(1, d);
      if (fits.size() != 1) {
        std::string seen, wanted;
        for (const Extent &e : type.shape)
          seen += (seen.empty() ? "" : ", ") + (e.dim ? e.dim->name : e.size.str());
        for (const Extent &e : shape.shape)
          wanted += (wanted.empty() ? "" : ", ") + (e.dim ? e.dim->name : e.size.str());
        size_t skipped = shape.getNumDims() - type.getNumDims();
        bool fits = std::equal(type.shape.begin(), type.shape.end(), shape.shape.begin() + skipped,
                               [](const Extent &a, const Extent &b) { return a.size == b.size; });
        SMLoc place = tensors[i].range.Start;
        DiagnosticBuilder message = fits ? diags.report(place, diag::CannotAlign)
                                               .with(seen, wanted, extent.dim ? extent.dim->name : extent.size.str())
                                         : diags.report(place, diag::SizesDoNotAlign).with(seen, wanted);
        message.range(tensors[i].range).range(tensors[widest].range);
        if (fits)
          message.note(SMLoc(), diag::AlignInstead) << suggestSum(shape, tensors[widest].range, type, tensors[i].range);
        else
          explainSizes(message, shape, type, graph.binding, *tensors[i].value);
        return std::nullopt;
      }
      taken[fits.front()] = true;
      info.indices.push_back(fits.front());
    }
    def.operands.push_back(std::move(info));
  }
  using Kind = Formula::Kind;
  auto combine = [&](const Formula *a, const Formula *b) {
    Kind kind = op == ast::BinaryOp::Add   ? Kind::Add
                : op == ast::BinaryOp::Sub ? Kind::Sub
                : op == ast::BinaryOp::Mul ? Kind::Mul
                                           : Kind::Div;
    return graph.defs.binary(kind, a, b);
  };
  llvm::SmallVector<const Formula *, 4> elements;
  if (scalarLeft)
    elements.push_back(graph.defs.number(*scalarLeft));
  for (unsigned i = 0; i < tensors.size(); ++i)
    elements.push_back(graph.defs.element(i, def.operands[i].indices));
  const Formula *formula = elements.front();
  if (op == ast::BinaryOp::Add)
    formula = graph.defs.addUp(elements);
  else
    for (const Formula *element : llvm::drop_begin(elements))
      formula = combine(formula, element);
  if (scalarRight)
    formula = combine(formula, graph.defs.number(*scalarRight));
  bool scalar = scalarLeft || scalarRight;
  def.name = op == ast::BinaryOp::Add   ? "add"
             : op == ast::BinaryOp::Sub ? "sub"
             : op == ast::BinaryOp::Mul ? (scalar ? "scale" : "mul")
                                        : "div";
  result.formula = formula;
  def.results.push_back(std::move(result));
  auto created = std::make_unique<Op>(OpKind::Compute, range.Start);
  created->scope = place.scope;
  created->extents.assign(shape.shape.begin(), shape.shape.end());
  for (const TensorArgument &argument : tensors)
    created->addOperand(argument.value);
  created->def = graph.defs.add(std::move(def));
  TensorType type = shape;
  type.dtype = types.get(*tensors.front().value);
  // A wider type wins: bf16 + f32 is f32.
  for (const TensorArgument &argument : tensors)
    if (DType found = types.get(*argument.value); isFloat(found) && found < type.dtype)
      type.dtype = found;
  Value *value = created->addResult(type);
  place.block->append(std::move(created));
  return tensor(value);
}

std::optional<sema::CTValue> ModuleLowering::cast(Value *value, DType type, SMRange range, Place &place) {
  bool isSame = value->type.dtype == type && types.get(*value) == type;
  return tensor(isSame ? value : appendCopy("cast", value, type, range.Start, place));
}

/// An op whose elements are those of a value: in another element type, or (no type) under another name.
Value *ModuleLowering::appendCopy(llvm::StringRef name, Value *value, std::optional<DType> type, SMLoc loc,
                                  Place &place) {
  OpDef def;
  def.name = name.str();
  def.loc = loc;
  ResultInfo result;
  result.name = "result";
  result.dtype = type;
  for (unsigned d = 0; d < value->type.getNumDims(); ++d) {
    def.indices.push_back({"i" + std::to_string(d)});
    result.indices.push_back(d);
  }
  def.operands.push_back({"x", result.indices});
  result.formula = graph.defs.element(0, result.indices);
  def.results.push_back(std::move(result));
  auto op = std::make_unique<Op>(OpKind::Compute, loc);
  op->scope = place.scope;
  op->extents.assign(value->type.shape.begin(), value->type.shape.end());
  op->addOperand(value);
  op->def = graph.defs.add(std::move(def));
  TensorType resultType = value->type;
  resultType.dtype = type.value_or(resultType.dtype);
  Value *created = op->addResult(resultType);
  if (!type)
    types.addView(*created, *value);
  place.block->append(std::move(op));
  return created;
}

/// `wpe[0..S]`: a view of part of the first dims; dims without a subscript are taken whole.
std::optional<sema::CTValue> ModuleLowering::lowerSlice(const ast::IndexExpr &expr, Value *value, Environment &env,
                                                        Place &place) {
  // `x[..., 0]`: the dims that `...` stands for are taken whole, as are those behind the last subscript.
  auto isPack = [](const ast::Expr *subscript) { return llvm::isa<ast::EllipsisExpr>(subscript); };
  size_t numPacks = llvm::count_if(expr.subscripts, isPack), numDims = value->type.getNumDims();
  for (const ast::Expr *subscript : expr.subscripts)
    if (llvm::isa<ast::CompoundExpr>(subscript)) {
      diags.report(subscript->loc(), diag::CompoundOutsideFormula).range(subscript->range) << ast::textOf(subscript);
      return std::nullopt;
    }
  if (numPacks > 1 || expr.subscripts.size() - numPacks > numDims) {
    diags.report(expr.loc(), diag::WrongSubscriptCount).range(expr.range)
        << ast::textOf(expr.base) << int64_t(numDims) << int64_t(expr.subscripts.size());
    return std::nullopt;
  }
  llvm::SmallVector<const ast::Expr *, 6> written; // per dim; null: whole
  for (const ast::Expr *subscript : expr.subscripts)
    if (isPack(subscript))
      written.append(numDims - (expr.subscripts.size() - 1), nullptr);
    else
      written.push_back(subscript);
  written.resize(numDims, nullptr);
  OpDef def;
  def.name = "slice";
  def.loc = expr.loc();
  def.bytes = graph.sizes.zero(); // a view
  ResultInfo result;
  result.name = "result";
  OperandInfo operand{"x", {}};
  llvm::SmallVector<Extent, 4> extents;
  llvm::SmallVector<const Formula *, 4> subscripts;
  TensorType type = value->type;
  type.shape.clear();
  for (unsigned d = 0; d < value->type.getNumDims(); ++d) {
    auto position = [&](unsigned index) {
      Formula node{};
      node.kind = Formula::Kind::Index;
      node.index = index;
      return graph.defs.create(node, {}, {});
    };
    unsigned index = def.indices.size();
    def.indices.push_back({"i" + std::to_string(d)});
    extents.push_back(value->type.shape[d]);
    operand.indices.push_back(index);
    if (!written[d]) {
      result.indices.push_back(index);
      type.shape.push_back(value->type.shape[d]);
      subscripts.push_back(position(index));
      continue;
    }
    auto *range = llvm::dyn_cast<ast::RangeExpr>(written[d]);
    if (!range) {
      std::optional<Size> at = evaluator.evaluateSize(written[d], env);
      if (!at)
        return std::nullopt;
      graph.obligations.add(Obligations::Kind::Positive, *at + 1, Size(), written[d]->loc(),
                            "a subscript from 0 on, plus 1");
      graph.obligations.add(Obligations::Kind::AtMost, *at + 1, value->type.shape[d].size, written[d]->loc(),
                            "a subscript below the dim's size");
      Formula node{};
      node.kind = Formula::Kind::SizeOf;
      node.size = *at;
      subscripts.push_back(graph.defs.create(node, {}, {}));
      continue;
    }
    std::optional<Size> begin = evaluator.evaluateSize(range->begin, env);
    std::optional<CTValue> endValue = evaluator.evaluate(range->end, env);
    std::optional<Size> end = endValue ? evaluator.evaluateSize(range->end, env) : std::nullopt;
    if (!begin || !end)
      return std::nullopt;
    graph.obligations.add(Obligations::Kind::Positive, *begin + 1, Size(), range->loc(),
                          "the begin of a slice from 0 on, plus 1");
    graph.obligations.add(Obligations::Kind::Positive, *end - *begin, Size(), range->loc(), "the size of a slice");
    Extent extent{begin->isConstant(0) ? static_cast<const Dim *>(endValue->getTag()) : nullptr, *end - *begin};
    // Of several sequences in a row each begins with the first position of a table.
    const Dim *whole = value->type.shape[d].dim;
    bool isPacked = extent.dim && extent.dim->isPacked && !(whole && whole->isPacked);
    Size last = isPacked ? graph.sizes.constant(job.inference->served->getLongest()) : *end;
    graph.obligations.add(Obligations::Kind::AtMost, last, value->type.shape[d].size, range->loc(),
                          "the end of a slice within the dim");
    // Positions of a table, by those of a sequence that goes on: there must be one for the last.
    if (extent.dim && extent.dim->origin && !isPacked)
      graph.obligations.add(Obligations::Kind::AtMost, graph.sizes.symbol(sema::roomDim), value->type.shape[d].size,
                            range->loc(), "the positions of a sequence at its end");
    if (begin->isConstant(0) && *end == value->type.shape[d].size) {
      // All of it: the same index, which may be split as it is.
      result.indices.push_back(index);
      type.shape.push_back(extent.dim ? extent : value->type.shape[d]);
      subscripts.push_back(position(index));
      continue;
    }
    unsigned own = def.indices.size();
    def.indices.push_back({"s" + std::to_string(d)});
    extents.push_back(extent);
    result.indices.push_back(own);
    type.shape.push_back(extent);
    const Formula *offset = position(own);
    if (!begin->isConstant(0)) {
      Formula node{};
      node.kind = Formula::Kind::SizeOf;
      node.size = *begin;
      offset = graph.defs.binary(Formula::Kind::Add, offset, graph.defs.create(node, {}, {}));
    }
    subscripts.push_back(offset);
  }
  Formula node{};
  node.kind = Formula::Kind::Element;
  result.formula = graph.defs.create(node, {}, subscripts);
  def.operands.push_back(std::move(operand));
  def.results.push_back(std::move(result));
  chooseIndexNames(def, llvm::SmallVector<bool, 8>(def.indices.size(), true), graph.defs, graph.binding);
  auto op = std::make_unique<Op>(OpKind::Compute, expr.loc());
  op->scope = place.scope;
  op->extents.assign(extents.begin(), extents.end());
  op->addOperand(value);
  op->def = graph.defs.add(std::move(def));
  Value *created = op->addResult(type);
  types.addView(*created, *value);
  place.block->append(std::move(op));
  return tensor(created);
}
