//===- FormulaLowering.cpp - element formulas -----------------------------===//
//
// Problem: the formula of an op is an ordinary expression whose names are operands,
// indices, lets and compile-time values. It becomes a Formula, in which operands
// stand at explicit subscripts and everything known at compile time is a number.
//
//===----------------------------------------------------------------------===//
#include "IndexNames.h"
#include "OpLowering.h"
#include "stage/IR/graph/Identity.h"
#include "stage/IRGen/Diagnostics.h"
#include "stage/Sema/Builtins.h"
#include "llvm/Support/Format.h"
#include <limits>

using namespace stage;

/// `, 'x * sigmoid(x)'`; empty: its body says it in statements.
static std::string describeFormula(const ast::Decl *decl) {
  auto *op = llvm::dyn_cast_or_null<ast::OpDecl>(decl);
  return op && op->formula ? ", '" + ast::textOf(op->formula) + "'" : "";
}

const Formula *OpLowering::indexFormula(unsigned index) {
  Formula node{};
  node.kind = Formula::Kind::Index;
  node.index = index;
  return graph.defs.create(node, {}, {});
}

/// True if the value of an expression differs from element to element.
bool OpLowering::mentionsTensors(const ast::Expr *expr) const {
  auto any = [&](auto &&list) { return llvm::any_of(list, [&](auto *e) { return mentionsTensors(e); }); };
  switch (expr->kind) {
  case ast::NodeKind::NameExpr: {
    llvm::StringRef name = llvm::cast<ast::NameExpr>(expr)->name;
    if (isIndex(name) || operandByName.count(name) || letByName.count(name))
      return true;
    const sema::CTValue *value = env->find(name);
    return value && value->isForeign();
  }
  case ast::NodeKind::UnaryExpr:
    return mentionsTensors(llvm::cast<ast::UnaryExpr>(expr)->operand);
  case ast::NodeKind::BinaryExpr: {
    auto *binary = llvm::cast<ast::BinaryExpr>(expr);
    return mentionsTensors(binary->left) || mentionsTensors(binary->right);
  }
  case ast::NodeKind::CallExpr: {
    auto *call = llvm::cast<ast::CallExpr>(expr);
    if (call->hasIndices)
      return true;
    if (auto *callee = llvm::dyn_cast<ast::NameExpr>(call->callee))
      if (callee->name == "random" || callee->name == "where" || callee->name == "size")
        return true;
    return llvm::any_of(call->args, [&](const ast::Argument &arg) { return mentionsTensors(arg.value); });
  }
  case ast::NodeKind::IndexExpr:
    return true;
  case ast::NodeKind::IfExpr: {
    auto *conditional = llvm::cast<ast::IfExpr>(expr);
    return mentionsTensors(conditional->thenExpr) || mentionsTensors(conditional->elseExpr);
  }
  case ast::NodeKind::TupleExpr:
    return any(llvm::cast<ast::TupleExpr>(expr)->elements);
  default:
    return false;
  }
}

const Formula *OpLowering::lowerConstant(const ast::Expr *expr) {
  std::optional<sema::CTValue> value = evaluator.evaluate(expr, *env);
  if (!value)
    return nullptr;
  if (value->isBool())
    return graph.defs.number(value->getBool() ? 1 : 0);
  if (value->isReal())
    return graph.defs.number(value->getReal());
  if (value->getKind() == sema::CTValue::Kind::Word && value->getText() == "inf")
    return graph.defs.number(std::numeric_limits<double>::infinity());
  if (!value->isSize()) {
    noteCall(diags.report(expr->loc(), diag::NotAScalar).range(expr->range) << value->describeKind());
    return nullptr;
  }
  if (std::optional<int64_t> integer = value->getInteger())
    return graph.defs.number(double(*integer));
  Formula node{};
  node.kind = Formula::Kind::SizeOf;
  node.size = value->getSize(graph.sizes);
  return graph.defs.create(node, {}, {});
}

const Formula *OpLowering::lower(const ast::Expr *expr) {
  if (!mentionsTensors(expr))
    return lowerConstant(expr);
  switch (expr->kind) {
  case ast::NodeKind::NameExpr:
    return lowerName(*llvm::cast<ast::NameExpr>(expr));
  case ast::NodeKind::IndexExpr:
    return lowerElement(*llvm::cast<ast::IndexExpr>(expr));
  case ast::NodeKind::CallExpr:
    return lowerCall(*llvm::cast<ast::CallExpr>(expr));
  case ast::NodeKind::UnaryExpr: {
    auto *unary = llvm::cast<ast::UnaryExpr>(expr);
    const Formula *operand = lower(unary->operand);
    if (!operand)
      return nullptr;
    Formula node{};
    node.kind = unary->op == ast::UnaryOp::Negate ? Formula::Kind::Negate : Formula::Kind::Not;
    return graph.defs.create(node, {}, {operand});
  }
  case ast::NodeKind::IfExpr: {
    auto *conditional = llvm::cast<ast::IfExpr>(expr);
    std::optional<bool> condition = evaluator.evaluateCondition(conditional->condition, *env);
    if (!condition)
      return nullptr;
    return lower(*condition ? conditional->thenExpr : conditional->elseExpr);
  }
  case ast::NodeKind::BinaryExpr: {
    auto *binary = llvm::cast<ast::BinaryExpr>(expr);
    bool isAnd = binary->op == ast::BinaryOp::And, isOr = binary->op == ast::BinaryOp::Or;
    if (isAnd || isOr)
      for (auto [known, other] : {std::pair(binary->left, binary->right), std::pair(binary->right, binary->left)})
        if (!mentionsTensors(known)) {
          std::optional<bool> value = evaluator.evaluateCondition(known, *env);
          if (!value)
            return nullptr;
          return *value == isOr ? graph.defs.number(isOr ? 1 : 0) : lower(other);
        }
    const Formula *left = lower(binary->left), *right = lower(binary->right);
    if (!left || !right)
      return nullptr;
    bool divides =
        binary->op == ast::BinaryOp::Div || binary->op == ast::BinaryOp::FloorDiv || binary->op == ast::BinaryOp::Mod;
    if (divides && !checkDivisor(*binary, *right))
      return nullptr;
    if (binary->op == ast::BinaryOp::Mod) { // x - y * floor(x / y)
      left = shareFormula(left);
      right = shareFormula(right);
    }
    using Kind = Formula::Kind;
    switch (binary->op) {
    case ast::BinaryOp::Add:
      return graph.defs.binary(Kind::Add, left, right);
    case ast::BinaryOp::Sub:
      return graph.defs.binary(Kind::Sub, left, right);
    case ast::BinaryOp::Mul:
      return multiply(Kind::Mul, left, right);
    case ast::BinaryOp::Div:
      return multiply(Kind::Div, left, right);
    case ast::BinaryOp::Less:
      return graph.defs.binary(Kind::Less, left, right);
    case ast::BinaryOp::LessEqual:
      return graph.defs.binary(Kind::LessEqual, left, right);
    case ast::BinaryOp::Greater:
      return graph.defs.binary(Kind::Less, right, left);
    case ast::BinaryOp::GreaterEqual:
      return graph.defs.binary(Kind::LessEqual, right, left);
    case ast::BinaryOp::Equal:
      return graph.defs.binary(Kind::Equal, left, right);
    case ast::BinaryOp::And:
      return graph.defs.binary(Kind::And, left, right);
    case ast::BinaryOp::Or:
      return graph.defs.binary(Kind::Or, left, right);
    case ast::BinaryOp::NotEqual: {
      Formula node{};
      node.kind = Kind::Not;
      return graph.defs.create(node, {}, {graph.defs.binary(Kind::Equal, left, right)});
    }
    case ast::BinaryOp::FloorDiv:
      return graph.defs.call(Formula::Function::Floor, {graph.defs.binary(Kind::Div, left, right)});
    case ast::BinaryOp::Mod: {
      const Formula *floor = graph.defs.call(Formula::Function::Floor, {graph.defs.binary(Kind::Div, left, right)});
      return graph.defs.binary(Kind::Sub, left, graph.defs.binary(Kind::Mul, right, floor));
    }
    }
    llvm_unreachable("all operators handled");
  }
  default:
    noteCall(diags.report(expr->loc(), diag::NotAFormula).range(expr->range) << ast::textOf(expr));
    return nullptr;
  }
}

/// A formula that will stand twice: a let, unless it is a leaf. Chains of them would double at every link.
const Formula *OpLowering::shareFormula(const Formula *formula) {
  if (formula->children.empty())
    return formula;
  Formula node{};
  node.kind = Formula::Kind::Let;
  node.operand = def.lets.size();
  def.lets.emplace_back("shared." + std::to_string(def.lets.size()), formula); // no program has a name with a dot
  return graph.defs.create(node, {}, {});
}

const Formula *OpLowering::lowerName(const ast::NameExpr &expr) {
  if (isIndex(expr.name)) // hides every other name
    return indexFormula(indexByName.lookup(expr.name));
  if (auto it = letByName.find(expr.name); it != letByName.end()) {
    if (const Formula *value = def.lets[it->second].second; certainDraws.count(value))
      return value;
    Formula node{};
    node.kind = Formula::Kind::Let;
    node.operand = it->second;
    return graph.defs.create(node, {}, {});
  }
  auto operand = operandByName.find(expr.name);
  if (operand != operandByName.end() && !inPlace)
    return graph.defs.element(operand->second, def.operands[operand->second].indices);
  // In place: a tensor without subscripts is a scalar.
  const sema::CTValue *value = env->find(expr.name);
  auto *tensor = static_cast<Value *>(value->getForeign());
  if (tensor->type.getNumDims() != 0) {
    noteCall(diags.report(expr.loc(), diag::TensorWithoutIndices).range(expr.range)
             << expr.name << int64_t(tensor->type.getNumDims()));
    return nullptr;
  }
  if (!inCast && !checkMixing(expr.name, tensor, expr.range))
    return nullptr;
  if (operand != operandByName.end())
    return graph.defs.element(operand->second, {});
  operandByName[expr.name] = def.operands.size();
  def.operands.push_back({expr.name.str(), {}});
  operands.push_back(tensor);
  return graph.defs.element(def.operands.size() - 1, {});
}

const Formula *OpLowering::lowerCall(const ast::CallExpr &expr) {
  auto *callee = llvm::cast<ast::NameExpr>(expr.callee); // Sema has refused others
  llvm::StringRef name = callee->name;
  if (name == "size" && expr.args.size() == 1) {
    auto *index = llvm::dyn_cast<ast::NameExpr>(expr.args[0].value);
    auto it = index ? indexByName.find(index->name) : indexByName.end();
    if (it == indexByName.end()) {
      noteCall(diags.report(expr.loc(), diag::NoSuchIndex).range(expr.args[0].value->range)
               << (index ? index->name : "this") << def.name);
      return nullptr;
    }
    Formula node{};
    node.kind = Formula::Kind::SizeOf;
    node.size = getIndexSymbol(graph.sizes, it->second);
    return graph.defs.create(node, {}, {});
  }
  llvm::SmallVector<const Formula *, 3> arguments;
  bool outerCast = std::exchange(inCast, inCast || sema::isDTypeName(name));
  openIndices(expr.indices, 1);
  for (const ast::Argument &arg : expr.args)
    if (const Formula *lowered = lower(arg.value))
      arguments.push_back(lowered);
  openIndices(expr.indices, -1);
  inCast = outerCast;
  if (arguments.size() != expr.args.size())
    return nullptr;
  if (expr.hasIndices) {
    llvm::SmallVector<unsigned, 4> indices;
    for (const ast::Expr *index : expr.indices) {
      if (auto *pack = llvm::dyn_cast<ast::EllipsisExpr>(index)) {
        indices.append(packs[pack->name]);
        continue;
      }
      auto *named = llvm::dyn_cast<ast::NameExpr>(index);
      auto it = named ? indexByName.find(named->name) : indexByName.end();
      if (it == indexByName.end()) {
        noteCall(diags.report(index->loc(), diag::NoSuchIndex).range(index->range)
                 << (named ? named->name : "this") << def.name);
        return nullptr;
      }
      indices.push_back(it->second);
    }
    Formula node{};
    node.kind = Formula::Kind::Reduce;
    node.isMean = name == "mean";
    node.reduce = name == "max" ? ReduceKind::Max : name == "min" ? ReduceKind::Min : ReduceKind::Sum;
    return graph.defs.create(node, indices, arguments);
  }
  if (name == "where" || name == "random") {
    if (name == "where" && arguments[0]->kind == Formula::Kind::Number)
      return arguments[0]->number != 0 ? arguments[1] : arguments[2];
    if (name == "random")
      return lowerRandom(*arguments[0], *expr.args[0].value);
    Formula node{};
    node.kind = Formula::Kind::Select;
    return graph.defs.create(node, {}, arguments);
  }
  if (sema::isDTypeName(name))
    return arguments[0];
  std::optional<Formula::Function> function = parseFunction(name);
  if (!function || env->find(name) || evaluator.getProgram().lookup(env->getFile(), name)) {
    noteCall(diags.report(expr.loc(), diag::NotSupportedYet).range(expr.range)
             << "a call of '" + name + "' in a formula; call it in a module, or write its formula out" +
                    describeFormula(evaluator.getProgram().lookup(env->getFile(), name)));
    return nullptr;
  }
  if (arguments.size() == 1)
    return graph.defs.call(*function, arguments);
  // max and min of any number of elements.
  const Formula *result = arguments[0];
  for (const Formula *next : llvm::ArrayRef<const Formula *>(arguments).drop_front())
    result = graph.defs.call(*function, {result, next});
  return result;
}

/// A probability that is known now is above 0, as `random` divides by it, and at most 1. At 1, and in inference,
/// nothing is drawn.
const Formula *OpLowering::lowerRandom(const Formula &probability, const ast::Expr &expr) {
  std::optional<double> known;
  if (probability.kind == Formula::Kind::Number)
    known = probability.number;
  else if (probability.kind == Formula::Kind::SizeOf)
    if (SizeValue size = evaluate(probability.size, graph.binding))
      known = double(size.value.num) / double(size.value.den);
  if (known && !(*known > 0 && *known <= 1)) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%g", *known);
    noteCall(diags.report(expr.loc(), diag::BadProbability).range(expr.range) << text);
    return nullptr;
  }
  if (known == 1.0 || !graph.training) { // what infers takes the mean
    const Formula *one = graph.defs.number(1);
    certainDraws.insert(one);
    return one;
  }
  Formula node{};
  node.kind = Formula::Kind::Random;
  return graph.defs.create(node, {}, {&probability});
}

/// `left * right` or `left / right`, where a draw that is certain leaves the other factor.
const Formula *OpLowering::multiply(Formula::Kind kind, const Formula *left, const Formula *right) {
  if (certainDraws.count(right))
    return left;
  if (kind == Formula::Kind::Mul && certainDraws.count(left))
    return right;
  return graph.defs.binary(kind, left, right);
}

/// The argument that is the result of the op, if that is so because of a draw that is certain: nothing is left to do
/// or to save, whatever the op declares. Any other identity is one that its author wants to have.
Value *OpLowering::findHandedOn() const {
  std::optional<unsigned> operand;
  if (!certainDraws.empty() && !def.stopGradient)
    operand = findIdentity(def);
  if (!operand)
    return nullptr;
  std::optional<DType> type = def.results.front().dtype;
  Value *argument = operands[*operand];
  return !type || *type == argument->type.dtype ? argument : nullptr;
}

const Formula *OpLowering::lowerElement(const ast::IndexExpr &expr) {
  auto *base = llvm::dyn_cast<ast::NameExpr>(expr.base);
  if (!base) {
    noteCall(diags.report(expr.loc(), diag::NotAFormula).range(expr.base->range) << ast::textOf(expr.base));
    return nullptr;
  }
  if (inPlace) {
    const sema::CTValue *value = env->find(base->name);
    if (!value || !value->isForeign()) {
      noteCall(diags.report(base->loc(), diag::NotATensor).range(base->range) << base->name);
      return nullptr;
    }
    return lowerInPlaceElement(expr, static_cast<Value *>(value->getForeign()));
  }
  auto it = operandByName.find(base->name);
  if (it == operandByName.end()) {
    noteCall(diags.report(base->loc(), diag::NotATensor).range(base->range) << base->name);
    return nullptr;
  }
  llvm::SmallVector<const Formula *, 4> subscripts;
  llvm::SmallVector<const ast::Expr *, 4> written;
  for (const ast::Expr *subscript : expr.subscripts) {
    if (auto *pack = llvm::dyn_cast<ast::EllipsisExpr>(subscript)) {
      for (unsigned index : packs[pack->name])
        subscripts.push_back(indexFormula(index));
      written.resize(subscripts.size(), nullptr);
      continue;
    }
    if (auto *compound = llvm::dyn_cast<ast::CompoundExpr>(subscript)) {
      std::optional<unsigned> index = findCompound(*compound, nullptr, expr.range);
      if (!index)
        return nullptr;
      subscripts.push_back(indexFormula(*index));
      written.push_back(nullptr); // that it stays within the dim is owed below
      continue;
    }
    const Formula *lowered = lower(subscript);
    if (!lowered)
      return nullptr;
    subscripts.push_back(lowered);
    written.push_back(subscript);
  }
  size_t expected = def.operands[it->second].indices.size();
  if (subscripts.size() != expected) {
    noteCall(diags.report(expr.loc(), diag::WrongSubscriptCount).range(expr.range)
             << base->name << int64_t(expected) << int64_t(subscripts.size()));
    return nullptr;
  }
  for (size_t d = 0; d < subscripts.size(); ++d) {
    unsigned declared = def.operands[it->second].indices[d], index = subscripts[d]->index;
    if (subscripts[d]->kind == Formula::Kind::Index && def.indices[index].isCompound() && index != declared &&
        !oweWithin(index, extents[declared], expr.range))
      return nullptr;
  }
  Formula node{};
  node.kind = Formula::Kind::Element;
  node.operand = it->second;
  const Formula *element = graph.defs.create(node, {}, subscripts);
  noteAccess(element, written);
  return element;
}

/// A cost is a size over the names of the indices, `area` and `volume`, whose values are those of a rank.
std::optional<Size> OpLowering::lowerCost(const ast::Expr *expr) {
  sema::Environment costs(*env);
  for (auto &entry : indexByName)
    costs.define(entry.getKey(), sema::CTValue::size(getIndexSymbol(graph.sizes, entry.getValue())));
  for (llvm::StringRef name : {"area", "volume"})
    costs.define(name, sema::CTValue::size(getCostSymbol(graph.sizes, name)));
  Obligations none; // halves of even numbers are no promise about dims
  sema::Evaluator evaluate(evaluator.getProgram(), graph.sizes, graph.binding, none, diags);
  return evaluate.evaluateSize(expr, costs);
}
