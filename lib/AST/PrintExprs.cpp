//===- PrintExprs.cpp - expressions and types as text ---------------------===//
#include "Printer.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;
using namespace stage::ast;
using llvm::cast;

namespace {
/// How tightly an expression binds.
enum Level : unsigned { OrLevel = 1, AndLevel, ComparisonLevel, SumLevel, ProductLevel, PrefixLevel, PostfixLevel };

struct OpInfo {
  const char *text;
  Level level;
};
} // namespace

static OpInfo opInfo(BinaryOp op) {
  switch (op) {
  case BinaryOp::Add:
    return {"+", SumLevel};
  case BinaryOp::Sub:
    return {"-", SumLevel};
  case BinaryOp::Mul:
    return {"*", ProductLevel};
  case BinaryOp::Div:
    return {"/", ProductLevel};
  case BinaryOp::FloorDiv:
    return {"div", ProductLevel};
  case BinaryOp::Mod:
    return {"%", ProductLevel};
  case BinaryOp::Less:
    return {"<", ComparisonLevel};
  case BinaryOp::LessEqual:
    return {"<=", ComparisonLevel};
  case BinaryOp::Greater:
    return {">", ComparisonLevel};
  case BinaryOp::GreaterEqual:
    return {">=", ComparisonLevel};
  case BinaryOp::Equal:
    return {"==", ComparisonLevel};
  case BinaryOp::NotEqual:
    return {"!=", ComparisonLevel};
  case BinaryOp::And:
    return {"&&", AndLevel};
  case BinaryOp::Or:
    return {"||", OrLevel};
  }
  llvm_unreachable("unknown operator");
}

void Printer::expr(const Expr *expr, unsigned minimum) {
  switch (expr->kind) {
  case NodeKind::NumberExpr:
    os << cast<NumberExpr>(expr)->text;
    return;
  case NodeKind::QuantityExpr:
    os << cast<QuantityExpr>(expr)->text;
    return;
  case NodeKind::BoolExpr:
    os << (cast<BoolExpr>(expr)->value ? "true" : "false");
    return;
  case NodeKind::StringExpr:
    os << '"' << cast<StringExpr>(expr)->text << '"';
    return;
  case NodeKind::NameExpr:
    os << cast<NameExpr>(expr)->name;
    return;
  case NodeKind::MemberExpr:
    this->expr(cast<MemberExpr>(expr)->base, PostfixLevel);
    os << '.' << cast<MemberExpr>(expr)->member.name;
    return;
  case NodeKind::UnaryExpr: {
    auto *unary = cast<UnaryExpr>(expr);
    bool parens = minimum > PrefixLevel;
    os << (parens ? "(" : "") << (unary->op == UnaryOp::Not ? '!' : '-');
    this->expr(unary->operand, PrefixLevel);
    os << (parens ? ")" : "");
    return;
  }
  case NodeKind::BinaryExpr:
    return binary(cast<BinaryExpr>(expr), minimum);
  case NodeKind::CallExpr:
    return call(cast<CallExpr>(expr));
  case NodeKind::WithExpr:
    this->expr(cast<WithExpr>(expr)->base);
    for (const Expr *part : cast<WithExpr>(expr)->parts) {
      os << " with ";
      this->expr(part);
    }
    return;
  case NodeKind::IndexExpr:
    this->expr(cast<IndexExpr>(expr)->base, PostfixLevel);
    os << '[';
    exprs(cast<IndexExpr>(expr)->subscripts);
    os << ']';
    return;
  case NodeKind::RangeExpr:
    this->expr(cast<RangeExpr>(expr)->begin);
    os << "..";
    this->expr(cast<RangeExpr>(expr)->end);
    return;
  case NodeKind::IfExpr: {
    auto *node = cast<IfExpr>(expr);
    bool parens = minimum >= PostfixLevel;
    os << (parens ? "(if " : "if ");
    this->expr(node->condition);
    os << " { ";
    this->expr(node->thenExpr);
    os << " } else ";
    if (llvm::isa<IfExpr>(node->elseExpr)) {
      this->expr(node->elseExpr);
    } else {
      os << "{ ";
      this->expr(node->elseExpr);
      os << " }";
    }
    os << (parens ? ")" : "");
    return;
  }
  case NodeKind::TupleExpr: {
    ArrayRef<Expr *> elements = cast<TupleExpr>(expr)->elements;
    os << '(';
    exprs(elements);
    os << (elements.size() == 1 ? ",)" : ")");
    return;
  }
  case NodeKind::ListExpr:
    os << '[';
    exprs(cast<ListExpr>(expr)->elements);
    os << ']';
    return;
  case NodeKind::ListForExpr: {
    auto *node = cast<ListForExpr>(expr);
    os << '[';
    this->expr(node->element);
    os << " for " << node->variable.name << " in ";
    this->expr(node->source);
    os << ']';
    return;
  }
  case NodeKind::EllipsisExpr:
    os << "..." << cast<EllipsisExpr>(expr)->name;
    return;
  case NodeKind::CompoundExpr:
    os << '(';
    llvm::interleave(
        cast<CompoundExpr>(expr)->indices, [&](const Ident &index) { os << index.name; }, [&] { os << ' '; });
    os << ')';
    return;
  case NodeKind::SizedIndexExpr:
    this->expr(cast<SizedIndexExpr>(expr)->index);
    os << ": ";
    this->expr(cast<SizedIndexExpr>(expr)->size);
    return;
  case NodeKind::OpExpr: {
    bool parens = minimum >= PostfixLevel;
    os << (parens ? "(" : "");
    opExpr(cast<OpExpr>(expr));
    os << (parens ? ")" : "");
    return;
  }
  case NodeKind::ForArgExpr:
    os << "for " << cast<ForArgExpr>(expr)->variable.name << " in ";
    this->expr(cast<ForArgExpr>(expr)->range_);
    return;
  default:
    llvm_unreachable("not an expression");
  }
}

void Printer::binary(const BinaryExpr *node, unsigned minimum) {
  auto [text, level] = opInfo(node->op);
  bool parens = minimum > level;
  os << (parens ? "(" : "");
  // Operators associate to the left; comparisons do not associate.
  expr(node->left, level == ComparisonLevel ? level + 1 : level);
  os << ' ' << text << ' ';
  expr(node->right, level + 1);
  os << (parens ? ")" : "");
}

void Printer::call(const CallExpr *node) {
  // `(x[0])(y)` is no reduction.
  bool parens = llvm::isa<IndexExpr>(node->callee);
  os << (parens ? "(" : "");
  expr(node->callee, PostfixLevel);
  os << (parens ? ")" : "");
  if (node->hasIndices) {
    os << '[';
    exprs(node->indices);
    os << ']';
  }
  os << '(';
  args(node->args);
  os << ')';
  if (node->as)
    os << " as " << node->as.name;
}

void Printer::opExpr(const OpExpr *node) {
  os << "op(";
  commas(node->operands, [&](const OpExpr::Operand &operand) {
    expr(operand.value);
    os << ": ";
    type(operand.type);
  });
  os << ") -> ";
  moduleResults(node->results);
  if (node->formula) {
    os << " = (";
    expr(node->formula);
    os << ')';
  }
}

void Printer::axes(const AxisListSyntax &list) {
  if (list.axes.size() == 1) {
    os << list.axes[0].name;
    return;
  }
  os << '(';
  names(list.axes);
  os << ')';
}

void Printer::type(const TensorType *type) {
  os << type->dtype.name << '[';
  commas(type->dims, [&](const ShapeDim &dim) {
    if (dim.index)
      os << dim.index.name << ": ";
    expr(dim.size);
    if (dim.hasAxes) {
      os << '@';
      axes(dim.axes);
    }
  });
  os << ']';
  if (type->hasPartial) {
    os << " partial(";
    if (type->partialReduce)
      os << type->partialReduce.name << ", ";
    names(type->partial.axes);
    os << ')';
  }
  if (type->hasReplicated) {
    os << " replicated(";
    names(type->replicated.axes);
    os << ')';
  }
}

void Printer::args(ArrayRef<Argument> list) {
  commas(list, [&](const Argument &argument) {
    if (argument.name)
      os << argument.name.name << " = ";
    expr(argument.value);
  });
}

void Printer::param(const Param &param) {
  os << param.name.name;
  if (param.tensor) {
    os << ": ";
    type(param.tensor);
  } else if (param.scalarKind) {
    os << ": " << param.scalarKind.name;
    if (param.sizeIndex)
      os << ' ' << param.sizeIndex.name;
  }
  if (param.legal) {
    os << " in ";
    expr(param.legal);
  }
  if (param.defaultValue) {
    os << " = ";
    expr(param.defaultValue);
  }
}

void Printer::params(ArrayRef<Param> list) {
  auto forwarded = llvm::find_if(list, [](const Param &item) { return item.isForwarded; });
  if (llvm::none_of(list, [](const Param &item) { return !item.doc.empty(); })) {
    os << '(';
    commas(llvm::make_range(list.begin(), forwarded), [&](const Param &item) { param(item); });
    if (forwarded != list.end())
      os << "; ";
    commas(llvm::make_range(forwarded, list.end()), [&](const Param &item) { param(item); });
    os << ')';
    return;
  }
  os << "(\n";
  indent += 2;
  if (forwarded == list.begin() && forwarded != list.end())
    line() << ";\n";
  for (const Param &item : list) {
    docs(item.doc);
    line();
    param(item);
    os << (&item + 1 == forwarded && forwarded != list.end() ? ";\n" : ",\n");
  }
  indent -= 2;
  line() << ')';
}

void ast::print(llvm::raw_ostream &os, const Expr *expr) { Printer(os).expr(expr); }

std::string ast::textOf(const Stmt *stmt) {
  std::string text;
  llvm::raw_string_ostream os(text);
  Printer(os).stmt(stmt);
  llvm::SmallVector<StringRef, 32> words;
  llvm::SplitString(os.str(), words, " \n");
  return llvm::join(words, " ");
}

std::string ast::textOf(const Expr *expr) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os, expr);
  return os.str();
}

StringRef ast::spell(BinaryOp op) { return opInfo(op).text; }
