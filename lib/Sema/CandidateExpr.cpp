//===- CandidateExpr.cpp - expressions over the values of a candidate -----===//
#include "CandidateExpr.h"
#include "JobWords.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Diagnostics.h"

using namespace stage;
using namespace stage::sema;
using ast::textOf;
using llvm::dyn_cast;

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

static CandidateValue makeTruth(bool value) { return {Rational::integer(value), 0}; }

static std::optional<CandidateValue> apply(ast::BinaryOp op, const CandidateValue &a, const CandidateValue &b) {
  using enum ast::BinaryOp;
  if (op == Equal || op == NotEqual)
    return makeTruth((a == b) == (op == Equal));
  if (a.word || b.word)
    return std::nullopt;
  auto wrap = [](std::optional<Rational> value) -> std::optional<CandidateValue> {
    return value ? std::optional(CandidateValue{*value, 0}) : std::nullopt;
  };
  const Rational &x = a.number, &y = b.number;
  switch (op) {
  case Add:
    return wrap(x.add(y));
  case Sub:
    return wrap(x.sub(y));
  case Mul:
    return wrap(x.mul(y));
  case Div:
    return wrap(x.div(y));
  case FloorDiv:
  case Mod: {
    std::optional<Rational> quotient = x.div(y);
    if (!quotient || op == FloorDiv)
      return wrap(quotient ? std::optional(quotient->floor()) : std::nullopt);
    std::optional<Rational> whole = quotient->floor().mul(y);
    return wrap(whole ? x.sub(*whole) : std::nullopt);
  }
  case Less:
    return makeTruth(x.compare(y) < 0);
  case LessEqual:
    return makeTruth(x.compare(y) <= 0);
  case Greater:
    return makeTruth(x.compare(y) > 0);
  case GreaterEqual:
    return makeTruth(x.compare(y) >= 0);
  default:
    return std::nullopt;
  }
}

std::optional<CandidateValue> CandidateExpr::evaluate(const Node &node, ArrayRef<CandidateValue> slots) const {
  auto of = [&](unsigned operand) { return evaluate(nodes[node.operands[operand]], slots); };
  switch (node.op) {
  case Op::Constant:
    return node.value;
  case Op::Slot:
    return slots[node.slot];
  case Op::Not:
  case Op::Negate: {
    std::optional<CandidateValue> value = of(0);
    if (!value || value->word)
      return std::nullopt;
    if (node.op == Op::Not)
      return makeTruth(!value->isTrue());
    value->number.num = -value->number.num;
    return value;
  }
  case Op::If: {
    std::optional<CandidateValue> condition = of(0);
    return condition ? of(condition->isTrue() ? 1 : 2) : std::nullopt;
  }
  case Op::Binary:
  case Op::Min:
  case Op::Max:
  case Op::CeilDiv:
    break;
  }
  std::optional<CandidateValue> left = of(0);
  if (!left)
    return std::nullopt;
  if (node.op == Op::Binary && (node.binary == ast::BinaryOp::And || node.binary == ast::BinaryOp::Or)) {
    if (left->isTrue() == (node.binary == ast::BinaryOp::Or))
      return makeTruth(left->isTrue());
    std::optional<CandidateValue> right = of(1);
    return right ? std::optional(makeTruth(right->isTrue())) : std::nullopt;
  }
  std::optional<CandidateValue> right = of(1);
  if (!right)
    return std::nullopt;
  if (node.op == Op::Binary)
    return apply(node.binary, *left, *right);
  if (left->word || right->word)
    return std::nullopt;
  if (node.op == Op::CeilDiv) {
    std::optional<Rational> quotient = left->number.div(right->number);
    return quotient ? std::optional(CandidateValue{quotient->ceil(), 0}) : std::nullopt;
  }
  return (left->number.compare(right->number) < 0) == (node.op == Op::Min) ? left : right;
}

std::optional<CandidateValue> CandidateExpr::evaluate(ArrayRef<CandidateValue> slots) const {
  return evaluate(nodes.back(), slots);
}

bool CandidateExpr::usesFrom(unsigned slot) const {
  return llvm::any_of(nodes, [&](const Node &node) { return node.op == Op::Slot && node.slot >= slot; });
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

unsigned CandidateCompiler::add(Node node) {
  nodes.push_back(std::move(node));
  return nodes.size() - 1;
}

unsigned CandidateCompiler::addConstant(Rational value) {
  Node node{Op::Constant};
  node.value.number = value;
  return add(node);
}

unsigned CandidateCompiler::addSlot(unsigned slot) {
  Node node{Op::Slot};
  node.slot = slot;
  return add(node);
}

unsigned CandidateCompiler::findWord(StringRef text) {
  auto known = llvm::find(search.words, text);
  if (known == search.words.end())
    known = search.words.insert(known, text.str());
  return known - search.words.begin() + 1;
}

std::optional<CandidateValue> CandidateCompiler::makeValue(const CTValue &value, StringRef text) {
  if (value.isBool())
    return makeTruth(value.getBool());
  if (std::optional<Rational> exact = evaluator.getExact(value))
    return CandidateValue{*exact, 0};
  if (value.isReal() || value.isForeign())
    return std::nullopt;
  return CandidateValue{Rational(), findWord(text)};
}

CandidateValue CandidateCompiler::makeValue(const OverrideValue &value) {
  if (const int64_t *number = value.getInteger())
    return {Rational::integer(*number), 0};
  if (const bool *truth = value.getBoolean())
    return makeTruth(*truth);
  std::string text = value.getSpelling();
  if (std::optional<Rational> number = Rational::read(text))
    return {*number, 0};
  return {Rational(), findWord(text)};
}

std::optional<unsigned> CandidateCompiler::refuse(const ast::Expr *expr) {
  evaluator.getDiags().report(expr->loc(), diag::SearchExpression).range(expr->range) << textOf(expr);
  return std::nullopt;
}

std::optional<CandidateExpr> CandidateCompiler::compile(const ast::Expr *expr, const ast::File &file) {
  nodes.clear();
  return visit(expr, file) ? std::optional(take()) : std::nullopt;
}

CandidateExpr CandidateCompiler::take() {
  CandidateExpr result;
  result.nodes = std::move(nodes);
  return result;
}

unsigned CandidateCompiler::addBinary(ast::BinaryOp op, unsigned left, unsigned right) {
  Node node{Op::Binary, op};
  node.operands[0] = left;
  node.operands[1] = right;
  return add(node);
}

std::optional<unsigned> CandidateCompiler::visitProduct(ArrayRef<ast::MeshStmt::AxisSyntax> axes) {
  const ast::File &file = evaluator.getProgram().getFile(*parts.strategy.decl);
  unsigned product = addConstant(Rational::integer(1));
  for (const ast::MeshStmt::AxisSyntax &axis : axes) {
    ast::NameExpr name;
    name.kind = ast::NodeKind::NameExpr;
    name.range = axis.name.range;
    name.name = axis.name.name;
    std::optional<unsigned> size = visit(axis.size ? axis.size : &name, file);
    if (!size)
      return std::nullopt;
    product = addBinary(ast::BinaryOp::Mul, product, *size);
  }
  return product;
}

std::optional<CandidateExpr> CandidateCompiler::compileProduct(ArrayRef<ast::MeshStmt::AxisSyntax> axes) {
  nodes.clear();
  return visitProduct(axes) ? std::optional(take()) : std::nullopt;
}

std::optional<CandidateExpr> CandidateCompiler::compileQuotient(StringRef name,
                                                                ArrayRef<ast::MeshStmt::AxisSyntax> axes) {
  nodes.clear();
  auto isNamed = [&](const SearchedName &searched) { return searched.name == name; };
  unsigned dividend = addSlot(llvm::find_if(search.names, isNamed) - search.names.begin());
  std::optional<unsigned> product = visitProduct(axes);
  if (!product)
    return std::nullopt;
  addBinary(ast::BinaryOp::Div, dividend, *product);
  return take();
}

std::optional<unsigned> CandidateCompiler::visitConstant(const ast::Expr *expr, const ast::File &file) {
  std::optional<CTValue> value = evaluator.evaluate(expr, Environment(file));
  if (!value)
    return std::nullopt;
  std::optional<CandidateValue> made = makeValue(*value, textOf(expr));
  if (!made)
    return refuse(expr);
  Node node{Op::Constant};
  node.value = *made;
  return add(node);
}

std::optional<unsigned> CandidateCompiler::visitName(const ast::NameExpr *expr, const ast::File &file) {
  StringRef name = expr->name;
  for (unsigned i = 0; i != search.names.size(); ++i)
    if (search.names[i].name == name)
      return addSlot(i);
  for (unsigned i = 0; i != search.following.size(); ++i)
    if (search.following[i].name == name)
      return addSlot(search.names.size() + i);
  if (const ast::StrategyDecl *strategy = parts.strategy.decl) {
    auto expand = [&](const ast::Expr *value, const ast::File &from) -> std::optional<unsigned> {
      if (llvm::is_contained(open, name))
        return refuse(expr);
      open.push_back(name);
      std::optional<unsigned> result = visit(value, from);
      open.pop_back();
      return result;
    };
    for (unsigned i = 0; i != strategy->params.size(); ++i) {
      const ast::Param &param = strategy->params[i];
      if (param.name.name != name)
        continue;
      for (unsigned position = 0; position != parts.strategy.args.size(); ++position) {
        const ast::Argument &argument = parts.strategy.args[position];
        if (argument.name ? argument.name.name == name : position == i)
          return expand(argument.value, *parts.strategy.file);
      }
      return param.defaultValue ? expand(param.defaultValue, evaluator.getProgram().getFile(*strategy)) : refuse(expr);
    }
    if (&file == &evaluator.getProgram().getFile(*strategy))
      for (const ast::Stmt *stmt : strategy->body)
        if (auto *let = dyn_cast<ast::LetStmt>(stmt); let && let->targets.size() == 1 && let->targets[0].name == name)
          return expand(let->value, file);
  }
  if (std::optional<unsigned> record = findSearchRecord(name))
    return addSlot(search.getFirstRecord() + *record);
  if (name == model.batchDim)
    return addConstant(Rational::integer(model.globalBatch));
  if (name == microbatchWord)
    return addConstant(Rational::integer(model.microbatch));
  for (ArrayRef<NamedValue> sizes : {ArrayRef(model.modelArgs), ArrayRef(model.stepDims)})
    for (const NamedValue &size : sizes)
      if (size.name.name == name) {
        std::optional<CandidateValue> value = makeValue(size.value, evaluator.format(size.value));
        if (!value)
          return refuse(expr);
        Node node{Op::Constant};
        node.value = *value;
        return add(node);
      }
  if (std::optional<int64_t> count = countIterations(name))
    return addConstant(Rational::integer(*count));
  return visitConstant(expr, file);
}

std::optional<unsigned> CandidateCompiler::visitMachine(const ast::Expr *expr) {
  if (!model.machine)
    return refuse(expr);
  std::string text = textOf(expr);
  const BoundMachine &machine = *model.machine;
  if (text == "machine.memory.capacity" && machine.memoryCapacity)
    return addConstant({__int128(machine.memoryCapacity), 1});
  for (unsigned i = 0; i != machine.levels.size(); ++i)
    if (text == "machine.levels[" + std::to_string(i) + "].ranks" ||
        text == "machine." + machine.levels[i].name + ".ranks")
      return addConstant(Rational::integer(machine.levels[i].ranks));
  return refuse(expr);
}

std::optional<unsigned> CandidateCompiler::visitCall(const ast::CallExpr *expr, const ast::File &file) {
  auto *callee = dyn_cast<ast::NameExpr>(expr->callee);
  std::optional<Op> op;
  if (callee && expr->args.size() == 2 && !expr->hasIndices && findBuiltin(callee->name))
    op = callee->name == "min"       ? std::optional(Op::Min)
         : callee->name == "max"     ? std::optional(Op::Max)
         : callee->name == "ceildiv" ? std::optional(Op::CeilDiv)
                                     : std::nullopt;
  if (!op)
    return visitConstant(expr, file);
  Node node{*op};
  for (unsigned i = 0; i != 2; ++i) {
    std::optional<unsigned> operand = visit(expr->args[i].value, file);
    if (!operand)
      return std::nullopt;
    node.operands[i] = *operand;
  }
  return add(node);
}

/// The number of `memory < 80`, which has no unit.
static const ast::NumberExpr *findBareMemory(const ast::BinaryExpr &binary) {
  auto isMemory = [](const ast::Expr *expr) {
    auto *name = dyn_cast<ast::NameExpr>(expr);
    return name && name->name == memoryWord;
  };
  return isMemory(binary.left)    ? dyn_cast<ast::NumberExpr>(binary.right)
         : isMemory(binary.right) ? dyn_cast<ast::NumberExpr>(binary.left)
                                  : nullptr;
}

std::optional<unsigned> CandidateCompiler::visit(const ast::Expr *expr, const ast::File &file) {
  auto makeNode = [&](Node node, std::initializer_list<const ast::Expr *> operands) -> std::optional<unsigned> {
    unsigned number = 0;
    for (const ast::Expr *operand : operands) {
      std::optional<unsigned> made = visit(operand, file);
      if (!made)
        return std::nullopt;
      node.operands[number++] = *made;
    }
    return add(node);
  };
  switch (expr->kind) {
  case ast::NodeKind::NumberExpr: {
    auto *number = llvm::cast<ast::NumberExpr>(expr);
    return number->isExact ? std::optional(addConstant(number->value)) : refuse(expr);
  }
  case ast::NodeKind::QuantityExpr:
    return addConstant(llvm::cast<ast::QuantityExpr>(expr)->value);
  case ast::NodeKind::BoolExpr:
    return addConstant(Rational::integer(llvm::cast<ast::BoolExpr>(expr)->value));
  case ast::NodeKind::NameExpr:
    return visitName(llvm::cast<ast::NameExpr>(expr), file);
  case ast::NodeKind::MemberExpr:
    return visitMachine(expr);
  case ast::NodeKind::UnaryExpr: {
    auto *unary = llvm::cast<ast::UnaryExpr>(expr);
    return makeNode({unary->op == ast::UnaryOp::Not ? Op::Not : Op::Negate}, {unary->operand});
  }
  case ast::NodeKind::BinaryExpr: {
    auto *binary = llvm::cast<ast::BinaryExpr>(expr);
    if (const ast::NumberExpr *bare = findBareMemory(*binary)) {
      evaluator.getDiags().report(bare->loc(), diag::QuantityWanted).range(bare->range)
          << ("'" + memoryWord + "'").str() << Dimension::ofBytes().describe() << textOf(bare)
          << "'" + textOf(bare) + "GB'";
      return std::nullopt;
    }
    return makeNode({Op::Binary, binary->op}, {binary->left, binary->right});
  }
  case ast::NodeKind::IfExpr: {
    auto *choice = llvm::cast<ast::IfExpr>(expr);
    return makeNode({Op::If}, {choice->condition, choice->thenExpr, choice->elseExpr});
  }
  case ast::NodeKind::CallExpr:
    return visitCall(llvm::cast<ast::CallExpr>(expr), file);
  default:
    return visitConstant(expr, file);
  }
}
