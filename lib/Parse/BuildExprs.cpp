//===- BuildExprs.cpp - expressions, types and parameters -----------------===//
#include "Builder.h"
#include "stage/Parse/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <charconv>
#include <cmath>

using namespace stage;
using namespace stage::ast;
using namespace stage::parse;

ArrayRef<Ident> Builder::idents(Grammar::NameListContext *tree) {
  return tree ? idents(tree->name()) : ArrayRef<Ident>();
}

/// The exact value of the text of a number. False if it does not fit.
static bool readNumber(StringRef text, Rational &value, bool &isReal) {
  unsigned shift = text.consume_back("Ki") ? 10 : text.consume_back("Mi") ? 20 : text.consume_back("Gi") ? 30 : 0;
  isReal = text.find_first_of(".eE") != StringRef::npos;
  std::optional<Rational> number = Rational::read(text);
  if (number)
    number = number->mul(Rational::integer(int64_t(1) << shift));
  value = number.value_or(Rational());
  return number.has_value();
}

/// The nearest double. False if there is none but infinity or zero.
static bool readDouble(StringRef text, double &value) {
  std::string digits;
  llvm::copy_if(text, std::back_inserter(digits), [](char c) { return c != '_'; });
  // Not getAsDouble, which takes stack in proportion to the digits.
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() && end == digits.data() + digits.size() && std::isfinite(value) && value != 0;
}

Expr *Builder::number(const Token *token) {
  auto *node = make<NumberExpr>(source.range(token));
  node->text = context.copy(source.slice(token));
  node->isExact = readNumber(node->text, node->value, node->isReal);
  if (node->isExact)
    node->real = static_cast<double>(node->value.num) / static_cast<double>(node->value.den);
  else if (node->text.find_first_not_of("0123456789_.eE+-KMGi") != StringRef::npos || node->text.count('.') > 1 ||
           (llvm::isAlpha(node->text.back()) && node->text.back() != 'i'))
    ; // no number, as has been reported
  else if (!node->isReal || !readDouble(node->text, node->real))
    diags.report(node->loc(), diag::NumberTooLarge).range(node->range)
        << (node->text.size() > 60 ? node->text.take_front(60) + "..." : llvm::Twine(node->text));
  return node;
}

Expr *Builder::quantity(const Token *token) {
  auto *node = make<QuantityExpr>(source.range(token));
  node->text = context.copy(source.slice(token));
  if (std::optional<Quantity> quantity = parseQuantity(node->text)) {
    node->value = quantity->value;
    node->dimension = quantity->dimension;
  } else {
    diags.report(node->loc(), diag::QuantityTooLarge).range(node->range) << node->text;
  }
  return node;
}

Expr *Builder::expr(Grammar::SingleExprContext *tree) { return withParts(expr(tree->rangeOrExpr()), tree->expr()); }

Expr *Builder::withParts(Expr *base, ArrayRef<Grammar::ExprContext *> parts) {
  if (parts.empty())
    return base;
  llvm::SmallVector<Expr *, 4> items;
  for (auto *part : parts)
    items.push_back(expr(part));
  auto *node = make<WithExpr>(SMRange(base->range.Start, items.back()->range.End));
  node->base = base;
  node->parts = list(items);
  return node;
}

StringExpr *Builder::string(const Token *token) {
  auto *node = make<StringExpr>(source.range(token));
  // A string that was not closed, as reported, has one quote only.
  StringRef text = source.slice(token).drop_front();
  text.consume_back("\"");
  node->text = context.copy(text);
  return node;
}

/// The `}` of a text that begins with `{`, or npos.
static size_t findClosingBrace(StringRef text) {
  size_t open = 0;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '{')
      ++open;
    else if (text[i] == '}' && --open == 0)
      return i;
  return StringRef::npos;
}

ArrayRef<MessagePart> Builder::messageParts(const Token *token) {
  StringRef text = source.slice(token).drop_front();
  text.consume_back("\"");
  llvm::SmallVector<MessagePart, 4> parts;
  while (!text.empty()) {
    size_t open = std::min(text.find('{'), text.size()), close = findClosingBrace(text.drop_front(open));
    if (close == StringRef::npos)
      open = text.size(); // a brace that nothing closes stands for itself
    if (open > 0)
      parts.push_back({context.copy(text.take_front(open)), nullptr});
    text = text.drop_front(open);
    if (text.empty())
      break;
    StringRef inside = text.slice(1, close);
    if (Expr *value = parseExpressionIn(SourceText(diags, source.getBufferId(), inside), context, diags))
      parts.push_back({context.copy(inside), value});
    text = text.drop_front(close + 1);
  }
  return list(parts);
}

Expr *Builder::expr(Grammar::RangeOrExprContext *tree) {
  if (!tree->DOTS())
    return expr(tree->expr(0));
  auto *node = make<RangeExpr>(tree);
  node->begin = expr(tree->expr(0));
  node->end = expr(tree->expr(1));
  return node;
}

Expr *Builder::expr(Grammar::ExprContext *tree) {
  if (auto *name = dynamic_cast<Grammar::NameExprContext *>(tree)) {
    auto *node = make<NameExpr>(tree);
    node->name = ident(name).name;
    return node;
  }
  if (auto *number = dynamic_cast<Grammar::NumberExprContext *>(tree))
    return this->number(number->getStart());
  if (auto *quantity = dynamic_cast<Grammar::QuantityExprContext *>(tree))
    return this->quantity(quantity->getStart());
  if (auto *binary = dynamic_cast<Grammar::BinaryExprContext *>(tree))
    return this->binary(binary);
  if (auto *call = dynamic_cast<Grammar::CallExprContext *>(tree))
    return this->call(call);
  if (auto *paren = dynamic_cast<Grammar::ParenExprContext *>(tree))
    return paren->COMMA() ? tuple(paren) : expr(paren->expr());
  if (auto *index = dynamic_cast<Grammar::IndexExprContext *>(tree)) {
    auto *node = make<IndexExpr>(tree);
    node->base = expr(index->expr());
    node->subscripts = each(index->subscript(), &Builder::subscript);
    return node;
  }
  if (auto *member = dynamic_cast<Grammar::MemberExprContext *>(tree)) {
    auto *node = make<MemberExpr>(tree);
    node->base = expr(member->expr());
    node->member = ident(member->name());
    return node;
  }
  if (auto *unary = dynamic_cast<Grammar::UnaryExprContext *>(tree)) {
    auto *node = make<UnaryExpr>(tree);
    node->op = unary->NOT() ? UnaryOp::Not : UnaryOp::Negate;
    node->operand = expr(unary->expr());
    return node;
  }
  if (auto *string = dynamic_cast<Grammar::StringExprContext *>(tree))
    return this->string(string->getStart());
  if (auto *boolean = dynamic_cast<Grammar::BoolExprContext *>(tree)) {
    auto *node = make<BoolExpr>(tree);
    node->value = boolean->TRUE() != nullptr;
    return node;
  }
  if (auto *items = dynamic_cast<Grammar::ListExprContext *>(tree)) {
    if (items->FOR()) {
      auto *node = make<ListForExpr>(tree);
      node->element = expr(items->rangeOrExpr(0));
      node->variable = ident(items->name());
      node->source = expr(items->rangeOrExpr(1));
      return node;
    }
    auto *node = make<ListExpr>(tree);
    llvm::SmallVector<Expr *, 16> elements;
    for (auto *item : items->rangeOrExpr())
      elements.push_back(expr(item));
    node->elements = list(elements);
    return node;
  }
  if (auto *ifTree = dynamic_cast<Grammar::IfExprContext *>(tree))
    return ifExpr(ifTree);
  return opExpr(static_cast<Grammar::OpExprContext *>(tree));
}

Expr *Builder::call(Grammar::CallExprContext *tree) {
  auto *node = make<CallExpr>(tree);
  // `sum[d](x)`: a bracket between a name and its arguments holds indices that are reduced.
  auto *index = dynamic_cast<Grammar::IndexExprContext *>(tree->expr());
  if (index && dynamic_cast<Grammar::NameExprContext *>(index->expr())) {
    node->callee = expr(index->expr());
    node->hasIndices = true;
    node->indices = each(index->subscript(), &Builder::subscript);
  } else {
    node->callee = expr(tree->expr());
  }
  node->args = arguments(tree->argList());
  node->as = ident(tree->name());
  return node;
}

static BinaryOp binaryOp(size_t token) {
  switch (token) {
  case Grammar::PLUS:
    return BinaryOp::Add;
  case Grammar::MINUS:
    return BinaryOp::Sub;
  case Grammar::STAR:
    return BinaryOp::Mul;
  case Grammar::SLASH:
    return BinaryOp::Div;
  case Grammar::DIV:
    return BinaryOp::FloorDiv;
  case Grammar::PERCENT:
    return BinaryOp::Mod;
  case Grammar::LESS:
    return BinaryOp::Less;
  case Grammar::LESS_EQUAL:
    return BinaryOp::LessEqual;
  case Grammar::GREATER:
    return BinaryOp::Greater;
  case Grammar::GREATER_EQUAL:
    return BinaryOp::GreaterEqual;
  case Grammar::EQUAL:
    return BinaryOp::Equal;
  case Grammar::NOT_EQUAL:
    return BinaryOp::NotEqual;
  case Grammar::AND:
    return BinaryOp::And;
  case Grammar::OR:
    return BinaryOp::Or;
  }
  llvm_unreachable("not a binary operator");
}

static bool isComparison(BinaryOp op) { return op >= BinaryOp::Less && op <= BinaryOp::NotEqual; }

Expr *Builder::binary(Grammar::BinaryExprContext *tree) {
  auto *op = static_cast<antlr4::tree::TerminalNode *>(tree->children[1])->getSymbol();
  auto *node = make<BinaryExpr>(tree);
  node->op = binaryOp(op->getType());
  node->opLoc = source.loc(op);
  node->left = expr(tree->expr(0));
  node->right = expr(tree->expr(1));
  auto *left = llvm::dyn_cast<BinaryExpr>(node->left);
  if (isComparison(node->op) && left && isComparison(left->op) &&
      !dynamic_cast<Grammar::ParenExprContext *>(tree->expr(0)))
    diags.report(node->opLoc, diag::ComparisonChain).range(left->range);
  return node;
}

/// `(a,)` and `(a, b)`
Expr *Builder::tuple(Grammar::ParenExprContext *tree) {
  llvm::SmallVector<Expr *, 4> elements = {expr(tree->expr())};
  if (auto *rest = tree->exprList())
    for (auto *element : rest->expr())
      elements.push_back(expr(element));
  auto *node = make<TupleExpr>(tree);
  node->elements = list(elements);
  return node;
}

Expr *Builder::ifExpr(Grammar::IfExprContext *tree) {
  auto parts = tree->expr(); // condition, value, condition, value, ..., value
  SMRange whole = range(tree);
  Expr *result = expr(parts.back());
  for (size_t i = parts.size() / 2; i-- > 0;) {
    SMLoc begin = i == 0 ? whole.Start : source.loc(parts[2 * i]->getStart());
    auto *node = make<IfExpr>(SMRange(begin, whole.End));
    node->condition = expr(parts[2 * i]);
    node->thenExpr = expr(parts[2 * i + 1]);
    node->elseExpr = result;
    result = node;
  }
  return result;
}

OpExpr::Operand Builder::operand(Grammar::OperandContext *tree) { return {expr(tree->expr()), type(tree->type())}; }

Expr *Builder::opExpr(Grammar::OpExprContext *tree) {
  auto *node = make<OpExpr>(tree);
  node->operands = each(tree->operand(), &Builder::operand);
  node->results = each(tree->moduleResults()->type(), &Builder::type);
  node->formula = exprOrNull(tree->expr());
  return node;
}
