//===- NearestValues.cpp - values with which a requirement holds ----------===//
#include "NearestValues.h"
#include "stage/Sema/Walk.h"
#include "llvm/ADT/STLExtras.h"
#include <vector>

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;
using llvm::StringRef;
using Lookup = llvm::function_ref<std::optional<int64_t>(StringRef)>;

/// Of a binary operator on whole numbers; true is 1. Nothing: it has none, or is too large.
static std::optional<int64_t> apply(ast::BinaryOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
  case ast::BinaryOp::Add:
    return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  case ast::BinaryOp::Sub:
    return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  case ast::BinaryOp::Mul:
    return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  case ast::BinaryOp::Div:
    return b > 0 && a % b == 0 ? std::optional(a / b) : std::nullopt;
  case ast::BinaryOp::FloorDiv:
    return b > 0 && a >= 0 ? std::optional(a / b) : std::nullopt;
  case ast::BinaryOp::Mod:
    return b > 0 && a >= 0 ? std::optional(a % b) : std::nullopt;
  case ast::BinaryOp::Less:
    return a < b;
  case ast::BinaryOp::LessEqual:
    return a <= b;
  case ast::BinaryOp::Greater:
    return a > b;
  case ast::BinaryOp::GreaterEqual:
    return a >= b;
  case ast::BinaryOp::Equal:
    return a == b;
  case ast::BinaryOp::NotEqual:
    return a != b;
  case ast::BinaryOp::And:
    return a && b;
  case ast::BinaryOp::Or:
    return a || b;
  }
  llvm_unreachable("covered switch");
}

static std::optional<int64_t> compute(const ast::Expr *expr, Lookup lookup) {
  if (auto *name = dyn_cast<ast::NameExpr>(expr))
    return lookup(name->name);
  if (auto *number = dyn_cast<ast::NumberExpr>(expr))
    return lookup(ast::textOf(number)); // of digits alone
  auto *binary = dyn_cast<ast::BinaryExpr>(expr);
  std::optional<int64_t> left = binary ? compute(binary->left, lookup) : std::nullopt;
  std::optional<int64_t> right = left ? compute(binary->right, lookup) : std::nullopt;
  return right ? apply(binary->op, *left, *right) : std::nullopt;
}

std::string stage::sema::listValuesThatHold(const ast::Expr *condition, Lookup lookup,
                                            llvm::function_ref<bool(StringRef)> isOfUser) {
  auto itself = [&](StringRef name) {
    int64_t digits = 0;
    return name.getAsInteger(10, digits) ? lookup(name) : std::optional(digits);
  };
  // A search asks for thousands of plans, mostly of conditions that have words in them.
  if (!compute(condition, itself))
    return "";
  std::vector<StringRef> names;
  auto add = [&](const ast::Expr *from) {
    walk(from, [&](const ast::Expr *part) {
      auto *name = dyn_cast<ast::NameExpr>(part);
      if (name && lookup(name->name) && isOfUser(name->name) && !llvm::is_contained(names, name->name))
        names.push_back(name->name);
    });
  };
  walk(condition, [&](const ast::Expr *part) {
    if (auto *binary = dyn_cast<ast::BinaryExpr>(part); binary && binary->op == ast::BinaryOp::Mod)
      add(binary->right);
  });
  add(condition);
  constexpr int64_t mostTried = 1 << 9;
  std::vector<std::string> found;
  for (StringRef changed : names)
    for (int64_t step : {-1, 1}) {
      int64_t each = *lookup(changed) + step;
      auto other = [&](StringRef name) { return name == changed ? std::optional(each) : itself(name); };
      for (int64_t i = 0; i < mostTried && each > 0; ++i, each += step)
        if (std::optional<int64_t> holds = compute(condition, other); holds && *holds) {
          found.push_back((changed + " = ").str() + std::to_string(each));
          break;
        }
    }
  std::string text;
  for (size_t i = 0; i < found.size(); ++i)
    text += (i == 0 ? "" : i + 1 == found.size() ? " or " : ", ") + found[i];
  return text;
}
