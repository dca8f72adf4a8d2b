//===- LayerCases.cpp - which iterations of a repeat are equal ------------===//
//
// Problem: layers stay rolled, and a model of 1,000 layers is lowered as fast as one of
// 100, though what stands in the repeat may depend on the number of the layer:
//
//   repeat layers[i in 0..62] {                       case 0: i = 0, 1, 2
//     x = Block(x, sparse = i >= 3, W[i % 6]);        case 1: i = 3, 4, 6, ...
//   }                                                 case 2: i = 5, 11, ...
//
// Algorithm: a dry run of each iteration. It walks the statements as lowering does, takes
// the branches that lowering takes and defines the names that are known at compile time,
// but makes no ops. Every compile-time expression that depends on the number of the layer,
// the largest first, is evaluated: `i >= 3`, not `i`. Iterations in which all of them have
// the same values are lowered to the same ops, as the number is known by its name, and so
// in the text of the body only; modules get it as an argument. Compile-time `var`s that a
// body assigns go on from one iteration to the next, and depend on its number, too.
//
// What cannot be evaluated makes a case of its own: lowering says why.
//
// Limits: the dry runs take time by iteration, a microsecond or so for each expression; 100,000 iterations are looked
// at.
//
//===----------------------------------------------------------------------===//
#include "LayerCases.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Walk.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include <map>

using namespace stage;
using llvm::dyn_cast;
using sema::CTValue;

namespace {
/// A dry run of one iteration.
class DryRun {
public:
  DryRun(sema::Evaluator &evaluator, const sema::Environment &outside) : evaluator(evaluator), env(outside) {}

  /// The iteration begins with these names, all of which depend on it.
  void begin(const LayerCases::Values &names) {
    for (auto &[name, value] : names)
      define(name, value, /*depends=*/true);
  }
  void run(llvm::ArrayRef<ast::Stmt *> stmts) {
    for (const ast::Stmt *stmt : stmts)
      runStmt(*stmt);
  }
  const sema::Environment &getEnvironment() const { return env; }
  /// The values of all expressions that depend on the iteration, in order; equal text, equal values.
  std::string takeSignature() { return std::move(signature); }
  /// Some of them have no value.
  bool hasFailed() const { return failed; }

private:
  //===--- names ----------------------------------------------------------===//

  void define(llvm::StringRef name, CTValue value, bool depends) {
    env.define(name, std::move(value));
    if (depends)
      dependent.insert(name);
    else
      dependent.erase(name);
  }
  /// What is computed has no value here.
  void defineTensor(llvm::StringRef name) { define(name, CTValue::foreign(nullptr), false); }

  static bool holdsTensor(const CTValue &value) {
    return value.isForeign() || llvm::any_of(value.getElements(), holdsTensor);
  }

  bool isHidden(llvm::StringRef name) const { return llvm::is_contained(indices, name); }

  bool depends(const ast::Expr *expr) const {
    bool any = false;
    sema::walk(expr, [&](const ast::Expr *part) {
      auto *name = dyn_cast<ast::NameExpr>(part);
      any |= name && dependent.contains(name->name) && !isHidden(name->name);
    });
    return any;
  }

  /// No tensor and no index stands in it.
  bool isCompileTime(const ast::Expr *expr) const {
    bool result = true;
    llvm::StringSet<> counted; // variables of lists
    sema::walk(expr, [&](const ast::Expr *part) {
      if (auto *list = dyn_cast<ast::ListForExpr>(part))
        counted.insert(list->variable.name);
    });
    sema::walk(expr, [&](const ast::Expr *part) {
      if (auto *name = dyn_cast<ast::NameExpr>(part)) {
        const CTValue *value = env.find(name->name);
        const ast::Decl *decl = value ? nullptr : evaluator.getProgram().lookup(env.getFile(), name->name);
        bool isKnown = value || decl || counted.contains(name->name) || name->name == "none" || name->name == "inf" ||
                       sema::findBuiltin(name->name);
        result &= isKnown && !isHidden(name->name) && !(value && holdsTensor(*value));
      } else if (auto *call = dyn_cast<ast::CallExpr>(part)) {
        auto *callee = dyn_cast<ast::NameExpr>(call->callee);
        const CTValue *value = callee ? env.find(callee->name) : nullptr;
        const ast::Decl *decl = !callee ? nullptr
                                : value ? (value->isDecl() ? value->getDecl() : nullptr)
                                        : evaluator.getProgram().lookup(env.getFile(), callee->name);
        result &= !call->hasIndices && !llvm::isa_and_nonnull<ast::ModuleDecl, ast::OpDecl>(decl);
      } else if (part->kind == ast::NodeKind::OpExpr) {
        result = false;
      }
    });
    return result;
  }

  //===--- statements -----------------------------------------------------===//

  void runStmt(const ast::Stmt &stmt) {
    if (auto *decl = dyn_cast<ast::TensorDeclStmt>(&stmt)) {
      visitType(*decl->type);
      for (const ast::Ident &name : decl->names)
        defineTensor(name.name);
    } else if (auto *dim = dyn_cast<ast::DimStmt>(&stmt)) {
      for (const ast::Ident &name : dim->names)
        if (dim->value)
          bind(name.name, dim->value, /*isDim=*/true);
    } else if (auto *let = dyn_cast<ast::LetStmt>(&stmt)) {
      runLet(*let);
    } else if (auto *require = dyn_cast<ast::RequireStmt>(&stmt)) {
      visit(require->condition);
    } else if (auto *conditional = dyn_cast<ast::IfStmt>(&stmt)) {
      visit(conditional->condition);
      if (std::optional<bool> condition = evaluator.evaluateCondition(conditional->condition, env))
        run(*condition ? conditional->thenBody : conditional->elseBody);
      else
        failed = true;
    } else if (auto *repeat = dyn_cast<ast::RepeatStmt>(&stmt)) {
      runRepeat(*repeat);
    } else if (auto *result = dyn_cast<ast::ReturnStmt>(&stmt)) {
      visit(result->value);
    } else if (auto *call = dyn_cast<ast::ExprStmt>(&stmt)) {
      visit(call->value);
    }
  }

  void runLet(const ast::LetStmt &let) {
    if (let.type)
      visitType(*let.type);
    size_t outer = indices.size();
    if (let.isFormula)
      openIndices(let.indices);
    if (!let.isFormula && let.targets.size() == 1 && isCompileTime(let.value)) {
      bind(let.targets.front().name, let.value, /*isDim=*/false);
    } else {
      visit(let.value);
      for (const ast::Ident &target : let.targets)
        defineTensor(target.name);
    }
    indices.resize(outer);
  }

  /// A repeat inside is written out.
  void runRepeat(const ast::RepeatStmt &repeat) {
    if (repeat.begin)
      visit(repeat.begin);
    visit(repeat.end);
    std::optional<int64_t> begin = repeat.begin ? evaluator.evaluateInteger(repeat.begin, env, "") : 0,
                           end = evaluator.evaluateInteger(repeat.end, env, "");
    failed |= !begin || !end;
    for (int64_t i = begin.value_or(0); i < end.value_or(0) && !failed; ++i) {
      if (repeat.variable)
        define(repeat.variable.name, CTValue::integer(i), /*depends=*/false);
      run(repeat.body);
    }
  }

  /// A dim is something in the graph; what else has a name matters where that is used.
  void bind(llvm::StringRef name, const ast::Expr *expr, bool isDim) {
    std::optional<CTValue> value = evaluator.evaluate(expr, env);
    bool isDependent = depends(expr);
    if (isDependent && isDim)
      note(value);
    failed |= !value;
    define(name, value.value_or(CTValue()), isDependent);
  }

  //===--- expressions ----------------------------------------------------===//

  void openIndices(llvm::ArrayRef<ast::Expr *> exprs) {
    for (const ast::Expr *index : exprs)
      if (auto *name = dyn_cast<ast::NameExpr>(index))
        indices.push_back(name->name);
  }

  void visitType(const ast::TensorType &type) {
    for (const ast::ShapeDim &dim : type.dims)
      visit(dim.size);
  }

  /// Notes the largest compile-time parts that depend on the iteration.
  void visit(const ast::Expr *expr) {
    if (auto *op = dyn_cast<ast::OpExpr>(expr))
      return visitOp(*op);
    if (!depends(expr))
      return;
    if (isCompileTime(expr))
      return note(evaluator.evaluate(expr, env));
    if (auto *choice = dyn_cast<ast::IfExpr>(expr)) {
      visit(choice->condition);
      std::optional<bool> condition = evaluator.evaluateCondition(choice->condition, env);
      failed |= !condition;
      return condition ? visit(*condition ? choice->thenExpr : choice->elseExpr) : void();
    }
    size_t outer = indices.size();
    if (auto *call = dyn_cast<ast::CallExpr>(expr))
      openIndices(call->indices);
    sema::forEachChild(expr, [&](const ast::Expr *child) { visit(child); });
    indices.resize(outer);
  }

  /// The names in the types of an op in place are its indices.
  void visitOp(const ast::OpExpr &op) {
    for (const ast::OpExpr::Operand &operand : op.operands)
      visit(operand.value);
    size_t outer = indices.size();
    auto visitSizes = [&](const ast::TensorType &type) {
      for (const ast::ShapeDim &dim : type.dims) {
        if (dim.index)
          indices.push_back(dim.index.name);
        if (auto *name = dyn_cast<ast::NameExpr>(dim.size); name && !dim.index)
          indices.push_back(name->name);
        else
          visit(dim.size);
      }
    };
    for (const ast::OpExpr::Operand &operand : op.operands)
      visitSizes(*operand.type);
    for (const ast::TensorType *result : op.results)
      visitSizes(*result);
    if (op.formula)
      visit(op.formula);
    indices.resize(outer);
  }

  //===--- values ---------------------------------------------------------===//

  void note(const std::optional<CTValue> &value) {
    failed |= !value;
    if (value)
      append(*value);
  }

  void append(const CTValue &value) {
    llvm::raw_string_ostream os(signature);
    os << int(value.getKind()) << ':';
    switch (value.getKind()) {
    case CTValue::Kind::None:
    case CTValue::Kind::Foreign:
      break;
    case CTValue::Kind::Size:
      os << value.getSize(evaluator.getSizes()).str();
      break;
    case CTValue::Kind::Quantity:
      os << value.getSize(evaluator.getSizes()).str() << ' ' << value.getDimension().describe();
      break;
    case CTValue::Kind::Real: {
      Size exact = value.getSize(evaluator.getSizes());
      os << llvm::format("%a", value.getReal()) << ' ' << (exact ? exact.str() : "");
      break;
    }
    case CTValue::Kind::Bool:
      os << value.getBool();
      break;
    case CTValue::Kind::String:
    case CTValue::Kind::Word:
      os << value.getText().size() << ' ' << value.getText();
      break;
    case CTValue::Kind::Decl:
      os << static_cast<const void *>(value.getDecl()) << value.getArguments().size();
      for (const sema::NamedValue &argument : value.getArguments()) {
        os << ' ' << argument.name.name << '=';
        os.flush();
        append(argument.value);
      }
      break;
    case CTValue::Kind::Function:
      os << static_cast<const void *>(value.getFunction());
      break;
    case CTValue::Kind::Axes:
    case CTValue::Kind::List:
    case CTValue::Kind::Tuple:
    case CTValue::Kind::Range:
      os << value.getElements().size() << ' ';
      os.flush();
      for (const CTValue &element : value.getElements())
        append(element);
    }
    os << ';';
  }

  sema::Evaluator &evaluator;
  sema::Environment env;
  llvm::StringSet<> dependent;
  llvm::SmallVector<llvm::StringRef, 8> indices; ///< Open ones, which hide what has their names.
  std::string signature;
  bool failed = false;
};
} // namespace

LayerCases stage::findLayerCases(const ast::RepeatStmt &repeat, int64_t first, int64_t count,
                                 const sema::Environment &env, llvm::ArrayRef<llvm::StringRef> assigned,
                                 sema::Evaluator &evaluator) {
  // What a dry run owes and reports is owed and reported by lowering.
  Obligations owed;
  DiagnosticEngine quiet(evaluator.getDiags().getSources());
  sema::Evaluator dry(evaluator.getProgram(), evaluator.getSizes(), evaluator.getBinding(), owed, quiet);
  dry.setPhase(evaluator.getPhase());

  LayerCases result;
  LayerCases::Values names;
  if (repeat.variable)
    names.emplace_back(repeat.variable.name, CTValue());
  for (llvm::StringRef name : assigned)
    if (!env.find(name)->isForeign())
      names.emplace_back(name, *env.find(name));
  std::map<std::string, unsigned> known;
  for (int64_t i = 0; i < count; ++i) {
    if (i == LayerCases::maxDryRuns) {
      result.isTooLong = true;
      return result;
    }
    if (repeat.variable)
      names.front().second = CTValue::integer(first + i);
    DryRun run(dry, env);
    run.begin(names);
    run.run(repeat.body);
    std::string signature = run.takeSignature();
    // What does not depend on its number in one does not in any.
    bool isFree = signature.empty() && !run.hasFailed() && names.size() == (repeat.variable ? 1 : 0);
    if (run.hasFailed())
      signature += "failed in " + std::to_string(i);
    auto [it, isNew] = known.emplace(std::move(signature), result.cases.size());
    if (isNew)
      result.cases.push_back({names});
    result.iterations.append(it->second, 1);
    for (auto &[name, value] : names)
      value = *run.getEnvironment().find(name);
    if (isFree)
      break;
  }
  if (repeat.variable)
    names.erase(names.begin());
  result.after = std::move(names);
  if (result.cases.size() == 1)
    result.iterations = IterationCases();
  return result;
}
