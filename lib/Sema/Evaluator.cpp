//===- Evaluator.cpp - compile-time evaluation ----------------------------===//
//
// Names, choices and conversions; arithmetic and calls have files of their own.
//
//===----------------------------------------------------------------------===//
#include "stage/Sema/Evaluator.h"
#include "EvaluatorSupport.h"
#include "NearestValues.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Walk.h"
#include "stage/Symbolic/Diagnostics.h"
#include "stage/Symbolic/SizeMessages.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/Format.h"
#include <cmath>
#include <limits>

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

std::optional<CTValue> Evaluator::evaluate(const ast::Expr *expr, const Environment &env) {
  if (!step())
    return std::nullopt;
  switch (expr->kind) {
  case ast::NodeKind::NumberExpr: {
    auto *number = llvm::cast<ast::NumberExpr>(expr);
    std::optional<Rational> exact;
    if (number->isExact)
      exact = Rational::make(number->value.num, number->value.den);
    Size size = exact ? sizes.constant(*exact) : Size();
    if (number->isReal || !size)
      return CTValue::real(number->real, size);
    return CTValue::size(size);
  }
  case ast::NodeKind::QuantityExpr: {
    auto *quantity = llvm::cast<ast::QuantityExpr>(expr);
    return makeQuantity(sizes.constant(quantity->value), quantity->dimension, expr);
  }
  case ast::NodeKind::BoolExpr:
    return CTValue::boolean(llvm::cast<ast::BoolExpr>(expr)->value);
  case ast::NodeKind::StringExpr:
    return CTValue::string(llvm::cast<ast::StringExpr>(expr)->text);
  case ast::NodeKind::NameExpr:
    return evaluateName(llvm::cast<ast::NameExpr>(expr), env);
  case ast::NodeKind::UnaryExpr:
    return evaluateUnary(llvm::cast<ast::UnaryExpr>(expr), env);
  case ast::NodeKind::BinaryExpr:
    return evaluateBinary(llvm::cast<ast::BinaryExpr>(expr), env);
  case ast::NodeKind::CallExpr:
    return evaluateCall(llvm::cast<ast::CallExpr>(expr), env);
  case ast::NodeKind::IndexExpr:
    return evaluateIndex(llvm::cast<ast::IndexExpr>(expr), env);
  case ast::NodeKind::IfExpr: {
    auto *choice = llvm::cast<ast::IfExpr>(expr);
    std::optional<bool> condition = evaluateCondition(choice->condition, env);
    if (!condition)
      return std::nullopt;
    return evaluate(*condition ? choice->thenExpr : choice->elseExpr, env);
  }
  case ast::NodeKind::RangeExpr: {
    auto *range = llvm::cast<ast::RangeExpr>(expr);
    std::optional<CTValue> begin = evaluate(range->begin, env), end = evaluate(range->end, env);
    if (!begin || !end)
      return std::nullopt;
    for (auto [value, bound] : {std::pair(&*begin, range->begin), std::pair(&*end, range->end)})
      if (!value->isNumber())
        return report(bound, diag::WrongKind, "a size", value->describeKind());
    return CTValue::range(*begin, *end);
  }
  case ast::NodeKind::TupleExpr:
  case ast::NodeKind::ListExpr: {
    bool isTuple = expr->kind == ast::NodeKind::TupleExpr;
    auto elements = evaluateAll(
        isTuple ? llvm::cast<ast::TupleExpr>(expr)->elements : llvm::cast<ast::ListExpr>(expr)->elements, env);
    if (!elements)
      return std::nullopt;
    return isTuple ? CTValue::tuple(std::move(*elements)) : CTValue::list(std::move(*elements));
  }
  case ast::NodeKind::ListForExpr:
    return evaluateListFor(llvm::cast<ast::ListForExpr>(expr), env);
  case ast::NodeKind::CompoundExpr: { // as a dim of a declared tensor: the product
    Size product = sizes.one();
    for (const ast::Ident &part : llvm::cast<ast::CompoundExpr>(expr)->indices) {
      const CTValue *value = env.find(part.name);
      if (!value || !value->isSize())
        return report(expr, diag::WrongKind, "sizes that are known here",
                      value ? value->describeKind() : "'" + part.name.str() + "'");
      product = product * value->getSize(sizes);
    }
    return CTValue::size(product);
  }
  default:
    return report(expr, diag::NotCompileTime, "'" + textOf(expr) + "'");
  }
}

/// Counts a call, or an element of a list; false after a report, once there are too many.
bool Evaluator::work(const ast::Expr *expr) {
  if (workLeft && --workLeft)
    return true;
  report(expr, diag::TooMuchWork, maxWork);
  return false;
}

std::optional<CTValue> Evaluator::evaluateListFor(const ast::ListForExpr *expr, const Environment &env) {
  std::optional<CTValue> source = evaluate(expr->source, env);
  if (!source)
    return std::nullopt;
  std::vector<CTValue> elements;
  auto add = [&](CTValue value) {
    Environment inner(env);
    inner.define(expr->variable.name, std::move(value));
    std::optional<CTValue> element = work(expr) ? evaluate(expr->element, inner) : std::nullopt;
    if (element)
      elements.push_back(std::move(*element));
    return element.has_value();
  };
  if (source->getKind() == CTValue::Kind::Range) {
    auto getBound = [&](const CTValue &bound) {
      Size size = bound.getSize(sizes);
      if (!size)
        report(expr->source, diag::NotAnInteger, "an end of the range", format(bound));
      return size ? getValue(size, expr->source->range, "an end of the range") : std::nullopt;
    };
    std::optional<int64_t> begin = getBound(source->getElements()[0]), end = getBound(source->getElements()[1]);
    if (!begin || !end)
      return std::nullopt;
    for (int64_t i = *begin; i < *end; ++i)
      if (!add(CTValue::integer(i)))
        return std::nullopt;
  } else if (source->getKind() == CTValue::Kind::List) {
    for (const CTValue &element : source->getElements())
      if (!add(element))
        return std::nullopt;
  } else {
    return report(expr->source, diag::WrongKind, "a range or a list", source->describeKind());
  }
  return CTValue::list(std::move(elements));
}

std::optional<std::vector<CTValue>> Evaluator::evaluateAll(ArrayRef<ast::Expr *> exprs, const Environment &env) {
  std::vector<CTValue> values;
  for (const ast::Expr *expr : exprs) {
    std::optional<CTValue> value = evaluate(expr, env);
    if (!value)
      return std::nullopt;
    values.push_back(std::move(*value));
  }
  return values;
}

std::optional<CTValue> Evaluator::evaluateName(const ast::NameExpr *expr, const Environment &env) {
  if (const CTValue *value = env.find(expr->name))
    return *value;
  const ast::Decl *decl = program.lookup(env.getFile(), expr->name);
  // A job is no value: in `job full { strategy = megatron(recompute = full); }` the word is meant.
  bool isWord = findBuiltin(expr->name) && llvm::isa_and_nonnull<ast::JobDecl>(decl);
  if (decl && !isWord)
    return CTValue::decl(decl);
  if (expr->name == "none")
    return CTValue();
  if (expr->name == "inf")
    return CTValue::real(std::numeric_limits<double>::infinity());
  if (findBuiltin(expr->name) == BuiltinKind::PhaseQuery)
    return CTValue::boolean(expr->name == "decoding"     ? phase.decoding
                            : expr->name == "continuing" ? phase.continuing
                                                         : phase.inferring);
  if (findBuiltin(expr->name) || program.isLegalWord(expr->name))
    return CTValue::word(expr->name);

  std::vector<Candidate> candidates = program.getVisibleNames(env.getFile());
  for (const Environment *scope = &env; scope; scope = scope->getParent())
    for (const auto &entry : scope->getOwn())
      candidates.push_back({entry.first, SMLoc()});
  for (const Builtin &builtin : getBuiltins())
    if (builtin.kind != BuiltinKind::DType) // no value of a job or a -D is one
      candidates.push_back({builtin.name, SMLoc()});
  DiagnosticBuilder error = diags.report(expr->loc(), diag::UnknownName).range(expr->range) << expr->name;
  if (program.suggestImport(error, expr->name))
    return std::nullopt;
  if (StringRef instead = findNameInstead(expr->name); !instead.empty()) {
    error.note(SMLoc(), diag::NameInstead) << instead;
    return std::nullopt;
  }
  suggestNearest(error, expr->name, expr->range, candidates);
  return std::nullopt;
}

std::optional<CTValue> Evaluator::evaluateIndex(const ast::IndexExpr *expr, const Environment &env) {
  std::optional<CTValue> base = evaluate(expr->base, env);
  if (!base)
    return std::nullopt;
  if (base->getKind() != CTValue::Kind::List && base->getKind() != CTValue::Kind::Tuple)
    return report(expr->base, diag::WrongKind, "a list", base->describeKind());
  for (const ast::Expr *subscript : expr->subscripts) {
    if (base->getKind() != CTValue::Kind::List && base->getKind() != CTValue::Kind::Tuple)
      return report(subscript, diag::WrongKind, "a list", base->describeKind());
    std::optional<int64_t> position = evaluateInteger(subscript, env, "the subscript");
    if (!position)
      return std::nullopt;
    ArrayRef<CTValue> elements = base->getElements();
    if (*position < 0 || uint64_t(*position) >= elements.size())
      return report(subscript, diag::SubscriptOutOfRange, *position, elements.size());
    SMRange origin = base->getOrigin(); // an element of a list is written where the list is
    base = CTValue(elements[*position]);
    if (!base->getOrigin().isValid())
      base->setOrigin(origin);
  }
  return base;
}

std::optional<Size> Evaluator::evaluateSize(const ast::Expr *expr, const Environment &env) {
  bool outer = std::exchange(sawDivision, false);
  auto restore = llvm::make_scope_exit([&] { sawDivision = outer; });
  std::optional<CTValue> value = evaluate(expr, env);
  if (!value)
    return std::nullopt;
  Size size = value->isNumber() ? value->getSize(sizes) : Size();
  if (!size) {
    DiagnosticBuilder error = diags.report(expr->loc(), diag::WrongKind).range(expr->range)
                              << "a size" << value->describeKind();
    // `embed[tokens]`
    const char *before = expr->loc().getPointer() - 1;
    if (value->isForeign() && *before == '[' && *expr->range.End.getPointer() == ']' && *(before - 1) != ' ')
      error.note(SMLoc(), diag::NameInstead)
          << "a subscript is one position; the rows that a tensor of numbers names are looked up: 'lookup(" +
                 textOf(expr) + ", table)' (std.nn)";
    return std::nullopt;
  }
  std::optional<Rational> constant = size.getConstant();
  if (constant && !constant->isInteger()) {
    report(expr, diag::NotAnInteger, "'" + textOf(expr) + "'", constant->str());
    return std::nullopt;
  }
  if (constant && isTooLarge(*constant)) {
    report(expr, diag::ValueOverflows, "'" + textOf(expr) + "'");
    return std::nullopt;
  }
  SizeCheck bound = checkValue(size, binding);
  if (bound.error == SizeError::UnboundSymbol && StringRef(bound.symbol).contains('.')) {
    reportUnbound(size, bound.symbol, expr->range);
    return std::nullopt;
  }
  // A division has recorded what it owes; what is fractional for another reason (1.25 * S) owes it here.
  if (!sawDivision && !size.isIntegral())
    obligations.add(Obligations::Kind::Divides, size, sizes.one(), expr->loc(), "a size is an integer");
  return size;
}

std::optional<int64_t> Evaluator::evaluateInteger(const ast::Expr *expr, const Environment &env,
                                                  const llvm::Twine &what) {
  bool outer = std::exchange(owesDivisions, false); // judged by the value
  std::optional<CTValue> value = evaluate(expr, env);
  owesDivisions = outer;
  if (!value)
    return std::nullopt;
  if (std::optional<int64_t> integer = value->getInteger())
    return integer;
  Size size = value->isNumber() ? value->getSize(sizes) : Size();
  if (!size) {
    report(expr, diag::NotAnInteger, what, value->isReal() ? format(*value) : value->describeKind().str());
    return std::nullopt;
  }
  return getValue(size, expr->range, what);
}

std::optional<CTValue> Evaluator::evaluateTruth(const ast::Expr *expr, const Environment &env) {
  std::optional<CTValue> value = evaluate(expr, env);
  if (value && !value->isBool())
    return report(expr, diag::WrongKind, "true or false", value->describeKind());
  return value;
}

std::optional<bool> Evaluator::evaluateCondition(const ast::Expr *expr, const Environment &env) {
  std::optional<CTValue> value = evaluateTruth(expr, env);
  if (!value)
    return std::nullopt;
  obligations.noteChoice(expr->loc(), value->getBool());
  noteDecision(expr, *value, env);
  return value->getBool();
}

/// Beside a number that has a name, as that of an iteration or the size of an axis, a size is compared with what is
/// another number elsewhere.
void Evaluator::noteDecision(const ast::Expr *condition, const CTValue &value, const Environment &env) {
  Size margin = value.getMargin();
  if (!margin || margin.getConstant())
    return;
  bool hasNumbers = false;
  walk(condition, [&](const ast::Expr *part) {
    auto *name = dyn_cast<ast::NameExpr>(part);
    const CTValue *known = name ? env.find(name->name) : nullptr;
    hasNumbers |= known && known->getInteger().has_value();
  });
  if (!hasNumbers)
    obligations.noteDecision(value.getBool() ? margin : sizes.one() - roundUp(margin), condition->loc(),
                             (value.getBool() ? "'" : "not '") + textOf(condition) + "'");
}

std::optional<double> Evaluator::evaluateReal(const ast::Expr *expr, const Environment &env) {
  bool outer = std::exchange(owesDivisions, false);
  auto restore = llvm::make_scope_exit([&] { owesDivisions = outer; });
  std::optional<CTValue> value = evaluate(expr, env);
  return value ? getDouble(*value, expr->range) : std::nullopt;
}

void Evaluator::reportUnbound(Size size, StringRef symbol, SMRange range) {
  diags.report(range.Start, diag::ValueUnbound).range(range) << size.str() << symbol;
}

std::optional<int64_t> Evaluator::getValue(Size size, SMRange range, const llvm::Twine &what) {
  SizeValue value = stage::evaluate(size, binding);
  if (value && !value.value.isInteger()) {
    std::vector<std::string> symbols = collectSymbols(size);
    DiagnosticBuilder error = diags.report(range.Start, diag::NotAnInteger).range(range)
                              << what << (symbols.empty() ? "" : size.str() + " = ") + value.value.str();
    std::string values;
    for (const std::string &symbol : symbols) {
      values += (values.empty() ? "" : ", ") + symbol + " = " + std::to_string(*binding.lookup(symbol));
      // Of D/H it is H that does not divide.
      Size divisor = sizes.symbol(symbol), product = size * divisor;
      if (llvm::is_contained(collectSymbols(product), symbol))
        continue;
      setOrigin(error, findOrigin(sizes, symbol));
      noteNearest(error, product, divisor, binding);
    }
    if (!values.empty())
      error.note(SMLoc(), diag::WhereValues) << values;
    for (const std::string &symbol : symbols)
      setOrigin(error, findOrigin(sizes, symbol));
  } else if (value.error == SizeError::Overflow || (value && isTooLarge(value.value)))
    diags.report(range.Start, diag::ValueOverflows).range(range) << what;
  else if (value.error == SizeError::DivisionByZero)
    diags.report(range.Start, diag::DivisionByZero).range(range) << size.str();
  else if (value.error == SizeError::UnboundSymbol)
    reportUnbound(size, value.symbol, range);
  else
    return static_cast<int64_t>(value.value.num);
  return std::nullopt;
}

std::optional<Rational> Evaluator::getExact(const CTValue &value) {
  if (std::optional<int64_t> integer = value.getInteger())
    return Rational::integer(*integer);
  Size size = value.isNumber() || value.isQuantity() ? value.getSize(sizes) : Size();
  if (!size)
    return std::nullopt;
  SizeValue result = stage::evaluate(size, binding);
  return result ? std::optional<Rational>(result.value) : std::nullopt;
}

std::optional<double> Evaluator::getDouble(const CTValue &value, SMRange range) {
  if (value.isReal())
    return value.getReal();
  std::optional<Rational> exact = value.isNumber() ? getExact(value) : std::nullopt;
  if (exact)
    return exact->toDouble();
  if (!value.isNumber()) {
    diags.report(range.Start, diag::WrongKind).range(range) << "a number" << value.describeKind();
    return std::nullopt;
  }
  Size size = value.getSize(sizes);
  SizeValue result = stage::evaluate(size, binding);
  if (result.error == SizeError::UnboundSymbol)
    reportUnbound(size, result.symbol, range);
  else
    diags.report(range.Start, diag::ValueOverflows).range(range) << "'" + size.str() + "'";
  return std::nullopt;
}

std::optional<CTValue> Evaluator::convert(const CTValue &value, const ast::Ident &kind, SMRange range,
                                          const llvm::Twine &what) {
  if (!kind)
    return value;
  auto wrong = [&](StringRef expected) -> std::optional<CTValue> {
    DiagnosticBuilder error =
        diags.report(range.Start, diag::ArgumentKind).range(range).with(what, expected, value.describeKind());
    stage::setOrigin(error, value.getOrigin());
    if (kind.name == "schedule" && value.getKind() == CTValue::Kind::String)
      program.suggestOfKind(error, value.getText(), range, kind.name, *program.getMain());
    return std::nullopt;
  };
  if (std::optional<Dimension> dimension = findDimension(kind.name))
    return checkQuantity(value, *dimension, /*isAnyRate=*/kind.name == "rate", range, what) ? std::optional(value)
                                                                                            : std::nullopt;
  if (kind.name == axesKind)
    return value.isAxes() ? std::optional<CTValue>(value) : wrong("axes of the strategy that calls it");
  if (kind.name == "schedule")
    return value.isDecl() && llvm::isa<ast::ScheduleDecl>(value.getDecl()) ? std::optional<CTValue>(value)
                                                                           : wrong("a schedule");
  if (kind.name == "type")
    return value.getKind() == CTValue::Kind::Word && isDTypeName(value.getText()) ? std::optional<CTValue>(value)
                                                                                  : wrong("an element type");
  if (kind.name == "bool")
    return value.isBool() ? std::optional<CTValue>(value) : wrong("true or false");
  if (!value.isNumber())
    return wrong(kind.name == "real" ? "a number" : "a size");
  if (kind.name == "real") {
    if (value.isReal())
      return value;
    std::optional<double> number = getDouble(value, range);
    return number ? std::optional<CTValue>(CTValue::real(*number, value.getSize(sizes))) : std::nullopt;
  }
  Size size = value.getSize(sizes);
  std::optional<Rational> constant = size ? size.getConstant() : std::nullopt;
  if (!size || (constant && !constant->isInteger())) {
    diags.report(range.Start, diag::NotAnInteger).range(range) << what << format(value);
    return std::nullopt;
  }
  return value.isSize() ? value : CTValue::size(size);
}

std::optional<CTValue> Evaluator::evaluateParam(const ast::Param &param, const ast::Argument *argument,
                                                const Environment &callee, const Environment &caller) {
  const ast::Expr *expr = argument ? argument->value : param.defaultValue;
  // `/` in a real number is a division like any other.
  bool outer = std::exchange(owesDivisions, owesDivisions && param.scalarKind.name != "real");
  std::optional<CTValue> value = argument ? evaluate(expr, caller) : evaluateOnce(expr, param, callee);
  owesDivisions = outer;
  return value ? convert(*value, param, callee, expr->range) : std::nullopt;
}

std::optional<CTValue> Evaluator::evaluateOnce(const ast::Expr *expr, const ast::Param &param,
                                               const Environment &callee) {
  if (llvm::is_contained(calling, expr))
    return report(expr, diag::RecursiveFunction, param.name.name);
  calling.push_back(expr);
  std::optional<CTValue> value = evaluate(expr, callee);
  calling.pop_back();
  return value;
}

std::optional<CTValue> Evaluator::convert(const CTValue &value, const ast::Param &param, const Environment &callee,
                                          SMRange range) {
  auto *name = llvm::dyn_cast_or_null<ast::NameExpr>(param.defaultValue);
  bool isLeftOut = value.isNone() && name && name->name == "none";
  std::optional<CTValue> converted =
      isLeftOut ? value : convert(value, param.scalarKind, range, "'" + param.name.name + "'");
  if (!converted)
    return std::nullopt;
  converted->setOrigin(value.getOrigin().isValid() ? value.getOrigin() : range);
  if (param.legal && !checkLegal(*converted, param, callee, range))
    return std::nullopt;
  return converted;
}

SMRange stage::sema::getOrigin(const ast::Expr *expr, const Environment &env) {
  auto *name = dyn_cast<ast::NameExpr>(expr);
  const CTValue *value = name ? env.find(name->name) : nullptr;
  return value && value->getOrigin().isValid() ? value->getOrigin() : expr->range;
}

/// `error` is about the values of the names in `expr`.
void Evaluator::setOrigins(DiagnosticBuilder &error, const ast::Expr *expr, const Environment &env) {
  walk(expr, [&](const ast::Expr *part) {
    auto *name = dyn_cast<ast::NameExpr>(part);
    if (const CTValue *value = name ? env.find(name->name) : nullptr)
      stage::setOrigin(error, value->getOrigin());
  });
}

bool Evaluator::checkRequire(const ast::RequireStmt &require, const Environment &env) {
  std::optional<CTValue> truth = evaluateTruth(require.condition, env);
  if (!truth)
    return false;
  if (truth->getBool()) {
    Size margin = truth->getMargin();
    if (margin && !margin.getConstant())
      obligations.add(Obligations::Kind::Positive, margin, Size(), require.condition->loc(),
                      "require " + textOf(require.condition));
    return true;
  }
  std::string message =
      require.message ? interpolate(require.messageParts, env) : "'" + textOf(require.condition) + "' does not hold";
  DiagnosticBuilder error = diags.report(require.condition->loc(), diag::RequireFailed).range(require.condition->range)
                            << message;
  std::string values;
  walk(require.condition, [&](const ast::Expr *part) {
    auto *name = dyn_cast<ast::NameExpr>(part);
    const CTValue *value = name ? env.find(name->name) : nullptr;
    std::string text = value ? (name->name + " = " + format(*value)).str() : "";
    if (auto *binary = dyn_cast<ast::BinaryExpr>(part); binary && binary->op == ast::BinaryOp::Mod)
      setOrigins(error, binary->right, env);
    if (value && values.find(text) == std::string::npos)
      values += (values.empty() ? "" : ", ") + text;
  });
  setOrigins(error, require.condition, env);
  if (!values.empty())
    error.note(SMLoc(), diag::WhereValues) << values;
  auto lookup = [&](StringRef name) -> std::optional<int64_t> {
    const CTValue *value = env.find(name);
    std::optional<Rational> exact = value && value->isNumber() ? getExact(*value) : std::nullopt;
    return exact && exact->isInteger() ? std::optional(int64_t(exact->num)) : std::nullopt;
  };
  auto isOfUser = [&](StringRef name) {
    SMRange origin = env.find(name)->getOrigin();
    unsigned buffer = origin.isValid() ? diags.getSources().FindBufferContainingLoc(origin.Start) : 0;
    return buffer && llvm::none_of(program.getFiles(), [&](const ast::File *each) {
             return each->bufferId == buffer && !each->decls.empty() && program.isOfLibrary(*each->decls.front());
           });
  };
  if (std::string instead = listValuesThatHold(require.condition, lookup, isOfUser); !instead.empty())
    error.note(SMLoc(), diag::RequireHolds) << instead;
  return false;
}

std::string Evaluator::interpolate(ArrayRef<ast::MessagePart> parts, const Environment &env) {
  bool outer = std::exchange(owesDivisions, false); // `{S / 3}` may show a fraction
  std::string result;
  for (const ast::MessagePart &part : parts) {
    std::optional<CTValue> value = part.value ? evaluate(part.value, env) : std::nullopt;
    result += value ? format(*value) : part.text.str();
  }
  owesDivisions = outer;
  return result;
}

std::string Evaluator::format(const CTValue &value) {
  switch (value.getKind()) {
  case CTValue::Kind::Size:
    if (std::optional<Rational> exact = getExact(value))
      return exact->str();
    return value.getSize(sizes).str();
  case CTValue::Kind::Real: {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%.12g", value.getReal());
    return text;
  }
  case CTValue::Kind::Quantity: {
    std::optional<Rational> exact = getExact(value);
    return exact ? Quantity{*exact, value.getDimension()}.str()
                 : value.getSize(sizes).str() + " " + value.getDimension().describe();
  }
  case CTValue::Kind::Bool:
    return value.getBool() ? "true" : "false";
  case CTValue::Kind::String:
  case CTValue::Kind::Word:
    return value.getText().str();
  case CTValue::Kind::Decl:
    return value.getDecl()->name.name.str();
  case CTValue::Kind::Axes:
    if (value.getElements().size() < 2)
      return value.getElements().empty() ? "none" : value.getElements().front().getText().str();
    [[fallthrough]];
  case CTValue::Kind::List:
  case CTValue::Kind::Tuple: {
    bool isList = value.getKind() == CTValue::Kind::List;
    std::string text(isList ? "[" : "(");
    // A list of lists of lists may be far longer than it was to write.
    constexpr size_t maxText = 200;
    for (const CTValue &element : value.getElements()) {
      if (text.size() > maxText) {
        text += ", ...";
        break;
      }
      text += (text.size() > 1 ? ", " : "") + format(element);
    }
    return text + (isList ? "]" : ")");
  }
  case CTValue::Kind::Range:
    return format(value.getElements()[0]) + ".." + format(value.getElements()[1]);
  default:
    return value.describeKind().str();
  }
}
