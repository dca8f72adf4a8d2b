//===- CheckModule.cpp - the names of modules and models ------------------===//
//
// What can be said of a module before it is instantiated. A tensor parameter's
// pattern introduces dims; every other name must be there before it is used. Names
// of a block end with it and may not hide names of the blocks around it, except
// indices, which live in their formula only.
//
//===----------------------------------------------------------------------===//
#include "FormulaChecker.h"
#include "NameChecker.h"
#include "stage/Sema/Arguments.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Suggestions.h"
#include "stage/Sema/Walk.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

/// Where a statement of a body, or of a block in it, declares a name; null: none does.
static const ast::Ident *findDeclared(ArrayRef<ast::Stmt *> body, StringRef name) {
  auto findIn = [&](ArrayRef<ast::Ident> names) -> const ast::Ident * {
    for (const ast::Ident &each : names)
      if (each.name == name)
        return &each;
    return nullptr;
  };
  for (const ast::Stmt *stmt : body) {
    const ast::Ident *found = nullptr;
    if (auto *dim = llvm::dyn_cast<ast::DimStmt>(stmt))
      found = findIn(dim->names);
    else if (auto *let = llvm::dyn_cast<ast::LetStmt>(stmt); let && let->form != ast::LetStmt::Form::Assign)
      found = findIn(let->targets);
    else if (auto *repeat = llvm::dyn_cast<ast::RepeatStmt>(stmt))
      found = findDeclared(repeat->body, name);
    else if (auto *choice = llvm::dyn_cast<ast::IfStmt>(stmt))
      found = findDeclared(choice->thenBody, name);
    if (auto *choice = llvm::dyn_cast<ast::IfStmt>(stmt); choice && !found)
      found = findDeclared(choice->elseBody, name);
    if (found)
      return found;
  }
  return nullptr;
}

/// The shape with which a statement of a body, or of a repeat in it, declares a tensor; null: none does.
static const ast::TensorType *findShapeIn(ArrayRef<ast::Stmt *> body, StringRef name) {
  const ast::TensorType *found = nullptr;
  for (const ast::Stmt *stmt : body) {
    if (auto *decl = dyn_cast<ast::TensorDeclStmt>(stmt)) {
      if (llvm::any_of(decl->names, [&](const ast::Ident &each) { return each.name == name; }))
        found = decl->type;
    } else if (auto *repeat = dyn_cast<ast::RepeatStmt>(stmt)) {
      found = findShapeIn(repeat->body, name);
    }
    if (found)
      return found;
  }
  return nullptr;
}

namespace {
class ModuleChecker : public NameChecker, private FormulaScope {
public:
  ModuleChecker(const Program &program, const ast::File &file, const ast::ModuleDecl &module, DeclUses &uses)
      : NameChecker(program, file), module(module), uses(uses[&module]) {}

  void check();

private:
  void checkModuleParams();
  void explainReturn(DiagnosticBuilder &error, const ast::Stmt &last);
  void checkShape(const ast::TensorType &type);
  void checkBody(ArrayRef<ast::Stmt *> body, bool isModuleBody);
  void checkStmt(const ast::Stmt *stmt, bool isLast);
  void checkLet(const ast::LetStmt &let);
  void checkOutput(const ast::OutputStmt &output);
  void checkDim(const ast::DimStmt &dim);
  void checkRepeat(const ast::RepeatStmt &repeat);
  void checkExpr(const ast::Expr *expr) override;
  void explainUnknown(DiagnosticBuilder &message, StringRef name) override {
    if (assigned == name)
      message.note(SMLoc(), diag::AssignsNothing) << name;
    else if (name == "i" && !repeats.empty())
      message.note(repeats.back().first->loc(), diag::NameLayer) << repeats.back().first->name.name << name;
    else if (const ast::Ident *later = findDeclared(module.body, name))
      message.note(later->loc(), diag::DeclaredLater) << name;
    else if (module.isModel)
      message.note(SMLoc(), diag::DeclareInput) << name << module.name.name;
    else
      message.note(SMLoc(), diag::DeclareFirst) << name << module.name.name;
  }
  bool mayCallTensors() const override { return true; }
  void explainUnused(DiagnosticBuilder &message, const Symbol &symbol) override;
  void explainUnusedInput(DiagnosticBuilder &message, StringRef unused);
  ArrayRef<ast::Param> getParams(const ast::CallExpr &call);
  bool holdsTooMany(const ast::Expr *expr);
  void checkCall(const ast::CallExpr &call);
  void checkOpExpr(const ast::OpExpr &op);
  void addInstance(const ast::CallExpr &call, const ast::ModuleDecl &callee);

  // FormulaScope: what a formula in place sees.
  bool resolve(StringRef name, SMRange range, IndexSet &accessed) override { return use(name); }
  bool isCallable(StringRef name) override;
  const ast::TensorType *findShape(StringRef name) override;
  void checkOutside(const ast::Expr *expr) override { checkExpr(expr); }
  void reportUnknownName(StringRef name, SMRange range, diag::Message<diag::Text> id) override {
    reportUnknown(name, range, id);
  }

  const ast::ModuleDecl &module;
  bool outerLacks = false; ///< The call around may lack an argument.
  StringRef assigned;      ///< The name that a statement assigns, while it is looked up.
  std::vector<DeclUse> &uses;
  /// Those around, the innermost last, each with the number of scopes outside of it.
  llvm::SmallVector<std::pair<const ast::RepeatStmt *, size_t>, 2> repeats;
  const ast::OutputStmt *output = nullptr; ///< The first one.
};
} // namespace

void ModuleChecker::check() {
  ScopeGuard paramScope(*this, /*isPathLevel=*/true);
  checkModuleParams();
  for (const ast::TensorType *type : module.results)
    checkShape(*type);
  checkBody(module.body, true);
  if (module.body.empty() || module.body.back()->kind != ast::NodeKind::ReturnStmt) {
    const ast::Stmt *last = module.body.empty() ? nullptr : module.body.back();
    bool isValue = last && (llvm::isa<ast::LetStmt>(last) || llvm::isa<ast::ExprStmt>(last));
    SMLoc place = !last ? module.name.loc() : isValue ? last->loc() : last->range.End; // what changes, or where it goes
    DiagnosticBuilder error = diags.report(place, diag::ReturnMissing) << module.name.name;
    if (last)
      explainReturn(error, *last);
  }
}

/// `let loss = f(x);` and `f(x);` end a module as if they were its `return`.
void ModuleChecker::explainReturn(DiagnosticBuilder &error, const ast::Stmt &last) {
  auto *let = dyn_cast<ast::LetStmt>(&last);
  auto *call = dyn_cast<ast::ExprStmt>(&last);
  const ast::Expr *value = let && !let->isFormula ? let->value : call ? call->value : nullptr;
  if (value && let && let->form == ast::LetStmt::Form::Let)
    error.fixIt(SMRange(last.loc(), value->range.Start), "return ");
  else if (value)
    error.fixIt(SMRange(value->range.Start, value->range.Start), "return ");
  error.note(SMLoc(), diag::FormInstead)
      << (value ? "return " + textOf(value) + ";"
                : "return " + std::string(let && !let->targets.empty() ? let->targets[0].name : "x") + ";");
}

void ModuleChecker::checkModuleParams() {
  // A pattern may name a parameter that follows it: `module Head(y: [B, S, D], D)`.
  auto isScalarParam = [&](StringRef name) {
    return llvm::any_of(module.params, [&](const ast::Param &p) { return !p.tensor && p.name.name == name; });
  };
  for (const ast::Param &param : module.params) {
    if (param.defaultValue)
      checkDefault(param);
    checkScalarKind(param);
    if (!param.tensor) {
      bool wasInPattern = false;
      for (const ast::Param &other : module.params)
        if (other.tensor && &other < &param)
          for (const ast::ShapeDim &dim : other.tensor->dims)
            if (auto *name = dyn_cast<ast::NameExpr>(dim.size))
              wasInPattern |= name->name == param.name.name;
      define(SymbolKind::Scalar, param.name, wasInPattern ? std::nullopt : std::optional(diag::UnusedParameter));
      continue;
    }
    if (module.isModel)
      diags.report(param.tensor->loc(), diag::TensorParameter).range(param.tensor->range) << param.name.name;
    define(SymbolKind::Tensor, param.name);
    checkDType(param.tensor->dtype);
    checkDimsOnce(*param.tensor);
    for (const ast::ShapeDim &dim : param.tensor->dims) {
      auto *name = dyn_cast<ast::NameExpr>(dim.size);
      if (name && !use(name->name) && !isScalarParam(name->name))
        define(SymbolKind::Dim, {name->name, name->range});
      else if (!name)
        checkExpr(dim.size);
    }
  }
}

void ModuleChecker::checkShape(const ast::TensorType &type) {
  checkDType(type.dtype);
  checkDimsOnce(type);
  for (const ast::ShapeDim &dim : type.dims)
    checkExpr(dim.size);
}

void ModuleChecker::checkBody(ArrayRef<ast::Stmt *> body, bool isModuleBody) {
  for (const ast::Stmt *stmt : body)
    checkStmt(stmt, isModuleBody && stmt == body.back());
}

void ModuleChecker::checkStmt(const ast::Stmt *stmt, bool isLast) {
  if (auto *decl = dyn_cast<ast::TensorDeclStmt>(stmt)) {
    checkShape(*decl->type);
    if (decl->last)
      checkExpr(decl->last);
    for (const ast::Ident &name : decl->names)
      defineValue(SymbolKind::Tensor, name);
  } else if (auto *output = dyn_cast<ast::OutputStmt>(stmt)) {
    checkOutput(*output);
  } else if (auto *dim = dyn_cast<ast::DimStmt>(stmt)) {
    checkDim(*dim);
  } else if (auto *let = dyn_cast<ast::LetStmt>(stmt)) {
    checkLet(*let);
  } else if (auto *ret = dyn_cast<ast::ReturnStmt>(stmt)) {
    if (ret->isFormula)
      checkFormula(*this, diags, ret->indices, ret->value);
    else
      checkExpr(ret->value);
    if (!isLast) {
      DiagnosticBuilder error = diags.report(ret->loc(), diag::ReturnNotLast).range(ret->range) << module.name.name;
      if (!repeats.empty())
        error.note(SMLoc(), diag::NameInstead) << "an iteration returns nothing: the next one begins with what is "
                                                  "assigned to each 'var'; delete this line";
    }
  } else if (auto *repeat = dyn_cast<ast::RepeatStmt>(stmt)) {
    checkRepeat(*repeat);
  } else if (auto *choice = dyn_cast<ast::IfStmt>(stmt)) {
    checkExpr(choice->condition);
    for (ArrayRef<ast::Stmt *> branch : {choice->thenBody, choice->elseBody}) {
      ScopeGuard scope(*this);
      checkBody(branch, false);
    }
  } else if (auto *require = dyn_cast<ast::RequireStmt>(stmt)) {
    checkRequire(*require);
  } else if (auto *call = dyn_cast<ast::ExprStmt>(stmt)) {
    checkExpr(call->value);
  }
}

/// Inference ends there: once, and in no branch.
void ModuleChecker::checkOutput(const ast::OutputStmt &stmt) {
  checkExpr(stmt.value);
  if (!module.isModel || scopes.size() != 1)
    diags.report(stmt.loc(), diag::OutputNotInModel).range(stmt.range);
  else if (output)
    diags.report(stmt.loc(), diag::OutputTwice)
        .range(stmt.range)
        .note(output->loc(), diag::PreviousHere)
        .with("output");
  output = &stmt;
}

void ModuleChecker::checkDim(const ast::DimStmt &dim) {
  bool isStepDim = !dim.value && module.isModel && scopes.size() == 1;
  if (dim.value)
    checkExpr(dim.value);
  else if (!isStepDim)
    diags.report(dim.loc(), diag::DimWithoutValue).range(dim.range) << dim.names[0].name;
  for (const ast::Ident &name : dim.names)
    define(SymbolKind::Dim, name, isStepDim ? std::optional(diag::UnusedDim) : std::nullopt);
}

void ModuleChecker::checkLet(const ast::LetStmt &let) {
  if (let.type)
    checkShape(*let.type);
  if (let.isFormula)
    checkFormula(*this, diags, let.indices, let.value);
  else
    checkExpr(let.value);
  if (let.form != ast::LetStmt::Form::Assign) {
    for (const ast::Ident &target : let.targets)
      defineValue(let.form == ast::LetStmt::Form::Var ? SymbolKind::Var : SymbolKind::Tensor, target);
    return;
  }
  for (const ast::Ident &target : let.targets) {
    Symbol *symbol = find(target.name);
    if (!symbol) {
      assigned = target.name;
      reportUnknown(target.name, target.range);
      assigned = "";
      defineValue(SymbolKind::Tensor, target); // one message is enough
      use(target.name);
    } else if (const ast::Ident *declared = findDeclared(module.body, target.name);
               symbol->kind == SymbolKind::Tensor && declared && declared->loc() == symbol->ident.loc())
      diags.report(declared->loc(), diag::AssignToLet)
          .range(declared->range)
          .with(target.name)
          .note(target.loc(), diag::AssignedHere)
          .with(target.name);
    else if (symbol->kind != SymbolKind::Var)
      diags.report(target.loc(), diag::AssignToOther)
          .range(target.range)
          .with(target.name)
          .note(symbol->ident.loc(), diag::PreviousHere)
          .with(target.name);
    else
      symbol->assigned = true;
  }
}

void ModuleChecker::checkRepeat(const ast::RepeatStmt &repeat) {
  if (repeat.begin)
    checkExpr(repeat.begin);
  checkExpr(repeat.end);
  define(SymbolKind::Place, repeat.name);
  // What the iterations do with vars that are declared before.
  std::vector<Symbol> before;
  for (Scope &outer : scopes)
    for (auto &[name, symbol] : outer.symbols)
      if (symbol.kind == SymbolKind::Var) {
        before.push_back(symbol);
        symbol.used = symbol.assigned = false;
      }
  repeats.push_back({&repeat, scopes.size()});
  {
    ScopeGuard scope(*this, /*isPathLevel=*/true);
    if (repeat.variable)
      define(SymbolKind::Scalar, repeat.variable);
    checkBody(repeat.body, false);
  }
  repeats.pop_back();
  for (const Symbol &symbol : before) {
    Symbol *now = find(symbol.ident.name);
    now->used |= symbol.used;
    now->assigned |= symbol.assigned;
  }
}

/// `repeat layers[L] { let x2 = x + f(x); }`: each layer begins with the same x, which none assigns. Of several such
/// vars the one that is called most alike is meant.
/// `cross_entropy(y, tokens)`, where the labels are not used: another input of the same declaration, and of the same
/// type, stands in what is returned.
void ModuleChecker::explainUnusedInput(DiagnosticBuilder &message, StringRef unused) {
  auto *returned = module.body.empty() ? nullptr : dyn_cast<ast::ReturnStmt>(module.body.back());
  for (const ast::Stmt *stmt : returned ? module.body : ArrayRef<ast::Stmt *>()) {
    auto *inputs = dyn_cast<ast::TensorDeclStmt>(stmt);
    auto isNamed = [&](StringRef name) {
      return llvm::any_of(inputs->names, [&](const ast::Ident &known) { return known.name == name; });
    };
    if (!inputs || inputs->declKind != ast::TensorDeclKind::Input || !isNamed(unused))
      continue;
    const ast::NameExpr *last = nullptr;
    walk(returned->value, [&](const ast::Expr *part) {
      auto *name = dyn_cast<ast::NameExpr>(part);
      last = name && isNamed(name->name) ? name : last;
    });
    if (last)
      message.note(last->loc(), diag::NameInstead)
          << "'" + last->name.str() + "' is used here; is '" + unused.str() + "' meant?";
  }
}

void ModuleChecker::explainUnused(DiagnosticBuilder &message, const Symbol &symbol) {
  explainUnusedInput(message, symbol.ident.name);
  if (repeats.empty() || (symbol.kind != SymbolKind::Tensor && symbol.kind != SymbolKind::Var))
    return;
  auto [repeat, depth] = repeats.back();
  std::vector<Candidate> kept;
  for (const Scope &outer : llvm::makeArrayRef(scopes).take_front(depth))
    for (const auto &[name, var] : outer.symbols)
      if (var.kind == SymbolKind::Var && var.used && !var.assigned)
        kept.push_back({name, var.ident.loc()});
  if (kept.empty())
    return;
  auto nearest = std::min_element(kept.begin(), kept.end(), [&](const Candidate &a, const Candidate &b) {
    return symbol.ident.name.edit_distance(a.name) < symbol.ident.name.edit_distance(b.name);
  });
  message.note(repeat->loc(), diag::VarNeverAssigned) << repeat->name.name << nearest->name << symbol.ident.name;
}

void ModuleChecker::checkExpr(const ast::Expr *expr) {
  if (auto *call = dyn_cast<ast::CallExpr>(expr))
    return checkCall(*call);
  if (auto *op = dyn_cast<ast::OpExpr>(expr))
    return checkOpExpr(*op);
  if (auto *choice = dyn_cast<ast::IfExpr>(expr)) {
    // Only one branch is built: both may name an instance alike.
    checkExpr(choice->condition);
    for (const ast::Expr *branch : {choice->thenExpr, choice->elseExpr}) {
      ScopeGuard scope(*this);
      checkExpr(branch);
    }
    return;
  }
  if (auto *name = dyn_cast<ast::NameExpr>(expr))
    if (!find(name->name))
      if (auto *used = llvm::dyn_cast_or_null<ast::ModuleDecl>(program.lookup(file, name->name)))
        uses.push_back({used, name->range});
  NameChecker::checkExpr(expr);
}

/// Of the op, module or function that is called; none: it is something else.
ArrayRef<ast::Param> ModuleChecker::getParams(const ast::CallExpr &call) {
  auto *callee = dyn_cast<ast::NameExpr>(call.callee);
  const ast::Decl *decl = callee && !find(callee->name) ? program.lookup(file, callee->name) : nullptr;
  return decl ? ast::getParams(*decl) : ArrayRef<ast::Param>();
}

/// Whether a call in an expression has more arguments than parameters: some may belong to a call around it.
bool ModuleChecker::holdsTooMany(const ast::Expr *expr) {
  bool found = false;
  walk(expr, [&](const ast::Expr *part) {
    auto *call = dyn_cast<ast::CallExpr>(part);
    ArrayRef<ast::Param> params = call ? getParams(*call) : ArrayRef<ast::Param>();
    found |= !params.empty() && call->args.size() > params.size();
  });
  return found;
}

void ModuleChecker::checkCall(const ast::CallExpr &call) {
  auto *callee = dyn_cast<ast::NameExpr>(call.callee);
  checkExpr(call.callee);
  {
    // The argument too many of a call within this one may be its own, or that of a call around.
    llvm::SaveAndRestore<bool> now(outerLacks, outerLacks || call.args.size() < getParams(call).size());
    for (const ast::Argument &argument : call.args)
      checkExpr(argument.value);
  }
  auto holds = [&](const ast::Argument &argument) { return holdsTooMany(argument.value); };
  if (call.args.size() < getParams(call).size() && llvm::any_of(call.args, holds))
    return; // what it lacks was reported in the call that has it
  if (call.hasIndices)
    diags.report(call.loc(), diag::ReductionOutsideFormula).range(call.range);
  const ast::Decl *decl = callee && !find(callee->name) ? program.lookup(file, callee->name) : nullptr;
  auto sees = [&](StringRef name) {
    const Symbol *known = find(name);
    return known && (known->kind == SymbolKind::Scalar || known->kind == SymbolKind::Dim);
  };
  CallPlace place{outerLacks, sees};
  if (auto *op = llvm::dyn_cast_or_null<ast::OpDecl>(decl)) {
    matchArguments(op->params, call.args, callee->name, call.range, diags, &program, place);
  } else if (auto *called = llvm::dyn_cast_or_null<ast::ModuleDecl>(decl)) {
    matchArguments(called->params, call.args, callee->name, call.range, diags, &program, place);
    if (called->isModel)
      reportWrongDecl({callee->name, callee->range}, "module", *called);
    addInstance(call, *called);
  } else if (auto *fn = llvm::dyn_cast_or_null<ast::FnDecl>(decl)) {
    matchArguments(fn->params, call.args, callee->name, call.range, diags, &program);
  } else if (decl) {
    reportWrongDecl({callee->name, callee->range}, "module or op", *decl);
  } else if (callee && !find(callee->name) && isDTypeName(callee->name) && call.args.size() != 1) {
    diags.report(call.loc(), diag::WrongArgumentCount).range(call.range)
        << callee->name << "1" << int64_t(call.args.size());
  }
  if (!call.as)
    return;
  if (find(call.as.name) && decl && !find(decl->name.name.lower())) {
    // `MLP(n, F) as attn`, where another one is called so.
    DiagnosticBuilder error = diags.report(call.as.loc(), diag::InstanceRedefined).range(call.as.range)
                              << call.as.name << decl->name.name.lower();
    error.note(find(call.as.name)->ident.loc(), diag::PreviousHere) << call.as.name;
    return;
  }
  define(SymbolKind::Tensor, call.as);
}

void ModuleChecker::addInstance(const ast::CallExpr &call, const ast::ModuleDecl &callee) {
  if (call.as)
    return;
  for (Scope &scope : llvm::reverse(scopes)) {
    auto found = scope.unnamedInstances.find(&callee);
    if (found != scope.unnamedInstances.end()) {
      DiagnosticBuilder error = diags.report(call.loc(), diag::UnnamedInstances).range(call.range) << callee.name.name;
      error.fixIt(SMRange(call.range.End, call.range.End), " as name");
      error.note(found->second.Start, diag::OtherInstance);
      return;
    }
    if (scope.isPathLevel)
      break;
  }
  scopes.back().unnamedInstances.insert({&callee, call.range});
}

namespace {
/// What the formula of an op in an expression sees: its operands by the names that they have outside, and the module.
class OpExprScope : public FormulaScope {
public:
  OpExprScope(FormulaScope &module, const ast::OpExpr &op) : module(module) {
    for (const ast::OpExpr::Operand &operand : op.operands)
      if (auto *name = dyn_cast<ast::NameExpr>(operand.value))
        collectIndices(*operand.type, operands[name->name]);
  }
  bool resolve(StringRef name, SMRange range, IndexSet &accessed) override {
    auto found = operands.find(name);
    if (found == operands.end())
      return module.resolve(name, range, accessed);
    for (const auto &entry : found->second)
      accessed.insert({entry.first, range});
    return true;
  }
  void checkOutside(const ast::Expr *expr) override { module.checkOutside(expr); }
  bool isCallable(StringRef name) override { return module.isCallable(name); }
  void reportUnknownName(StringRef name, SMRange range, diag::Message<diag::Text> id) override {
    module.reportUnknownName(name, range, id);
  }

private:
  FormulaScope &module;
  llvm::StringMap<IndexSet> operands;
};
} // namespace

/// `op(x: [b, s, d], w: [d, f]) -> [b, s, f]`: absent indices are summed, so only the result's must be somewhere.
void ModuleChecker::checkOpExpr(const ast::OpExpr &op) {
  IndexSet indices;
  for (const ast::OpExpr::Operand &operand : op.operands) {
    checkExpr(operand.value);
    checkDType(operand.type->dtype);
    checkDimsOnce(*operand.type);
    collectIndices(*operand.type, indices);
  }
  for (const ast::TensorType *result : op.results) {
    checkDType(result->dtype);
    checkDimsOnce(*result);
    checkResultIndices(diags, *result, indices);
  }
  if (!op.formula)
    return;
  IndexSet own;
  for (const ast::TensorType *result : op.results)
    collectIndices(*result, own);
  OpExprScope scope(*this, op);
  checkReduced(diags, checkOpFormula(scope, diags, indices, op.formula), own);
}

const ast::TensorType *ModuleChecker::findShape(StringRef name) {
  for (const ast::Param &param : module.params)
    if (param.tensor && param.name.name == name)
      return param.tensor;
  return findShapeIn(module.body, name);
}

bool ModuleChecker::isCallable(StringRef name) {
  return use(name) || llvm::isa_and_nonnull<ast::OpDecl>(program.lookup(file, name));
}

void stage::sema::checkModule(const Program &program, const ast::File &file, const ast::ModuleDecl &module,
                              DeclUses &uses) {
  ModuleChecker(program, file, module, uses).check();
}
