//===- BindKernels.cpp - what a runtime says of kernels -------------------===//
//
// Problem: bytes of a kernel depend on the op that it runs, which is known only when a job is compiled.
//
//   at **.{rms_norm, layer_norm}() { bytes = 5 * bytes(x); }      5 bytes.x
//   at class optimizer { bytes = 110 * volume; }                  110 volume
//   at **.dispatch() { host = 0.1ms * x; }                        100000000 x, in picoseconds
//
// Algorithm: a formula becomes a size over symbols, for which each op that matches puts its own sizes
// (stage/Tasks/Kernels.h). Dimensions are checked here: bytes and numbers make bytes, the host's part is a
// time, and a speed is a number.
//
// Limits: a formula sees neither values of the job nor functions.
//
//===----------------------------------------------------------------------===//
#include "MachineWords.h"
#include "RuntimeWords.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Evaluator.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;
using namespace stage::sema;

namespace {
class KernelFormula {
public:
  /// Of messages only `bytes(x)` is known.
  KernelFormula(Evaluator &evaluator, const ast::File &file, bool isOfMessages)
      : evaluator(evaluator), env(file), isOfMessages(isOfMessages) {}

  struct Term {
    Size size;
    Dimension dimension;
  };
  /// Nothing after a report.
  std::optional<Term> lower(const ast::Expr *expr) {
    if (auto *binary = llvm::dyn_cast<ast::BinaryExpr>(expr))
      return lowerBinary(*binary);
    if (auto *name = llvm::dyn_cast<ast::NameExpr>(expr); name && !isOfMessages)
      return Term{getSizes().symbol(name->name), Dimension()};
    if (auto *call = llvm::dyn_cast<ast::CallExpr>(expr))
      return lowerCall(*call);
    if (!llvm::isa<ast::NumberExpr, ast::QuantityExpr>(expr))
      return refuse(expr);
    std::optional<CTValue> value = evaluator.evaluate(expr, env);
    std::optional<Rational> exact = value ? evaluator.getExact(*value) : std::nullopt;
    if (!exact)
      return value ? refuse(expr) : std::nullopt;
    return Term{getSizes().constant(*exact), value->getDimension()};
  }

private:
  SizeContext &getSizes() { return evaluator.getSizes(); }
  std::nullopt_t refuse(const ast::Expr *expr) {
    evaluator.getDiags().report(expr->loc(), diag::KernelFormula).range(expr->range) << ast::textOf(expr);
    return std::nullopt;
  }

  std::optional<Term> lowerBinary(const ast::BinaryExpr &expr) {
    std::optional<Term> left = lower(expr.left), right = left ? lower(expr.right) : std::nullopt;
    if (!right)
      return std::nullopt;
    std::optional<Dimension> dimension;
    switch (expr.op) {
    case ast::BinaryOp::Mul:
      dimension = left->dimension.multiply(right->dimension);
      return dimension ? std::optional(Term{left->size * right->size, *dimension}) : refuse(&expr);
    case ast::BinaryOp::Div:
      if (std::optional<Rational> divisor = right->size.getConstant();
          divisor && divisor->num && right->dimension.isNumber())
        return Term{left->size / right->size, left->dimension};
      return refuse(&expr);
    case ast::BinaryOp::Add:
    case ast::BinaryOp::Sub: {
      Size sum = expr.op == ast::BinaryOp::Add ? left->size + right->size : left->size - right->size;
      if (left->dimension == right->dimension)
        return Term{sum, left->dimension};
      // So many bytes an element are bytes.
      auto countsBytes = [](const Term &term) {
        return term.dimension.isNumber() || term.dimension == Dimension::ofBytes();
      };
      if (countsBytes(*left) && countsBytes(*right))
        return Term{sum, Dimension::ofBytes()};
      return refuse(&expr);
    }
    default:
      return refuse(&expr);
    }
  }

  std::optional<Term> lowerCall(const ast::CallExpr &call) {
    auto *callee = llvm::dyn_cast<ast::NameExpr>(call.callee);
    static constexpr llvm::StringLiteral functions[] = {"bytes", "size", "gathered"};
    bool isKnown =
        callee && llvm::is_contained(functions, callee->name) && call.args.size() == 1 && !call.args.front().name;
    auto *argument = isKnown ? llvm::dyn_cast<ast::NameExpr>(call.args.front().value) : nullptr;
    if (!argument || (isOfMessages && (callee->name != "bytes" || argument->name != "x")))
      return refuse(&call);
    Dimension dimension = callee->name == "size" ? Dimension() : Dimension::ofBytes();
    return Term{getSizes().symbol((callee->name + "." + argument->name).str()), dimension};
  }

  Evaluator &evaluator;
  Environment env;
  bool isOfMessages;
};
} // namespace

static bool isGood(const KernelEntry &entry, const KernelFormula::Term &term, const std::optional<Rational> &constant) {
  if (!entry.formula)
    return term.dimension.isNumber() && constant && constant->num > 0 && constant->den <= 10'000 &&
           constant->compare(Rational::integer(2)) <= 0;
  bool fits = entry.isTime ? term.dimension == Dimension::ofTime()
                           : term.dimension.isNumber() || term.dimension == Dimension::ofBytes();
  return (fits || term.size.isConstant(0)) && !(constant && constant->num < 0);
}

static StringRef describeWanted(const KernelEntry &entry) {
  return !entry.formula ? "a number above 0 and at most 2, of at most four decimals, such as 0.6"
         : entry.isTime ? "a time of 0 or more, such as '250us'"
                        : "bytes, 0 or more, such as '2 * bytes(x)'";
}

bool stage::sema::bindKernels(Evaluator &evaluator, const ast::KernelStmt &stmt, const ast::File &file,
                              BoundRuntime &runtime) {
  BoundKernels kernels;
  kernels.isFusion = stmt.isFusion;
  kernels.resident = stmt.resident.name;
  kernels.opClass = stmt.opClass.name;
  kernels.pattern = stmt.pattern.text;
  kernels.range = stmt.opClass ? stmt.opClass.range : stmt.pattern.range;
  bool ok = true, isOfMessages = kernels.opClass == sendClass;
  for (const ast::EntryStmt *said : stmt.entries) {
    auto *entry = llvm::find_if(kernelEntries, [&](const KernelEntry &each) { return each.name == said->name.name; });
    auto *word = llvm::dyn_cast<ast::NameExpr>(said->value);
    if (entry->word) {
      if (word) {
        kernels.*entry->word = word->name;
        continue;
      }
      evaluator.getDiags().report(said->value->loc(), diag::KernelDimension).range(said->value->range)
          << entry->name << ("a name, as in '" + entry->example + "'").str() << "'" + ast::textOf(said->value) + "'";
      ok = false;
      continue;
    }
    if (entry->name == residentCountEntry) {
      kernels.isPerShape = word && word->name == perShape;
      if (kernels.isPerShape || (word && word->name == perStage))
        continue;
      evaluator.getDiags().report(said->value->loc(), diag::KernelDimension).range(said->value->range)
          << entry->name << "'shape' or 'stage'"
          << "'" + ast::textOf(said->value) + "'";
      ok = false;
      continue;
    }
    if (entry->name == kernelTypeEntry) {
      if (word && llvm::is_contained(machineTypes, word->name)) {
        kernels.type = word->name;
        continue;
      }
      evaluator.getDiags().report(said->value->loc(), diag::KernelDimension).range(said->value->range)
          << entry->name << "one of " + llvm::join(llvm::makeArrayRef(machineTypes), ", ")
          << "'" + ast::textOf(said->value) + "'";
      ok = false;
      continue;
    }
    std::optional<KernelFormula::Term> term = KernelFormula(evaluator, file, isOfMessages).lower(said->value);
    ok &= term.has_value();
    if (!term)
      continue;
    std::optional<Rational> constant = term->size.getConstant();
    if (!isGood(*entry, *term, constant)) {
      evaluator.getDiags().report(said->value->loc(), diag::KernelDimension).range(said->value->range)
          << entry->name << describeWanted(*entry) << "'" + ast::textOf(said->value) + "'";
      ok = false;
      continue;
    }
    if (!entry->formula) {
      kernels.speed = constant;
      continue;
    }
    Size picos = evaluator.getSizes().constant(1'000'000'000'000);
    kernels.*entry->formula = entry->isTime ? term->size * picos : term->size;
  }
  runtime.kernels.push_back(kernels);
  return ok;
}
