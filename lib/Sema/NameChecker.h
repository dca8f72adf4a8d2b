//===- NameChecker.h - scopes and names of one declaration -----*- C++ -*-===//
//
// The base of the checks of modules, ops, strategies and schedules: a stack of
// scopes, and what all of them do with a name. A name means the innermost symbol,
// else a declaration that the file sees, else a builtin.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SEMA_NAMECHECKER_H
#define STAGE_LIB_SEMA_NAMECHECKER_H

#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Program.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace stage::sema {

enum class SymbolKind {
  Scalar, ///< a compile-time value: parameter, loop variable, `let` of a strategy
  Dim,
  Tensor, ///< also what `let` binds in a module, which may be a compile-time value
  Var,
  Index,
  Let,   ///< of an op
  Place, ///< a name in paths only: of a repeat
  Function,
};

struct Symbol {
  SymbolKind kind = SymbolKind::Scalar;
  ast::Ident ident;
  bool used = false;
  /// Nothing: it may stay unused. Else the message if it does.
  std::optional<diag::Message<diag::Text>> unusedId;
  bool assigned = false; ///< Of a var: after its declaration.
};

class NameChecker {
public:
  NameChecker(const Program &program, const ast::File &file)
      : program(program), diags(program.getDiags()), file(file) {}
  virtual ~NameChecker() = default;

protected:
  /// One block. Instances of modules have to differ in name within a path level: a module body or a repeat.
  struct Scope {
    llvm::MapVector<StringRef, Symbol> symbols;
    llvm::MapVector<const ast::Decl *, SMRange> unnamedInstances;
    bool isPathLevel = false;
    unsigned errorsBefore = 0; ///< When it was opened.
  };
  struct ScopeGuard {
    NameChecker &checker;
    ScopeGuard(NameChecker &checker, bool isPathLevel = false) : checker(checker) {
      checker.scopes.emplace_back();
      checker.scopes.back().isPathLevel = isPathLevel;
      checker.scopes.back().errorsBefore = checker.diags.getNumErrors();
    }
    ~ScopeGuard() { checker.closeScope(); }
  };

  /// Reports a second definition in the enclosing blocks of the declaration.
  void define(SymbolKind kind, const ast::Ident &ident,
              std::optional<diag::Message<diag::Text>> unusedId = std::nullopt);
  /// The same for what is computed or declared to be used: a warning if nothing does, unless its name begins with `_`.
  void defineValue(SymbolKind kind, const ast::Ident &ident);
  Symbol *find(StringRef name);
  /// The same, and counts as a use.
  Symbol *use(StringRef name);
  const ast::Decl *lookupDecl(StringRef name, SMRange range);
  /// Reports a name that means nothing, with the nearest one.
  void reportUnknown(StringRef name, SMRange range, diag::Message<diag::Text> id = diag::UnknownName);
  /// A name that must be a symbol, a declaration or a builtin.
  void checkName(StringRef name, SMRange range);

  /// Checks an expression with no meaning of its own for calls and instances.
  virtual void checkExpr(const ast::Expr *expr);
  void checkExprs(ArrayRef<ast::Expr *> exprs);
  void checkRequire(const ast::RequireStmt &require);
  /// Two parameters of one name, a kind that is none; then the default values.
  void checkParams(ArrayRef<ast::Param> params, bool mustBeUsed);
  /// Its kind, and its legal values.
  void checkDefault(const ast::Param &param);
  void checkScalarKind(const ast::Param &param);
  void checkLegal(const ast::Param &param);
  void checkShortRange(const ast::Expr *values, StringRef name);
  /// The element type of a tensor, if one is written.
  void checkDType(const ast::Ident &dtype);
  /// One name twice in one shape: rules and formulas could not tell the dims apart.
  void checkDimsOnce(const ast::TensorType &type);
  /// Reports names that stand twice in one list of entries.
  void checkEntriesOnce(ArrayRef<ast::Ident> names);
  /// The same, and reports names that are not known. `owner`: "job".
  void checkEntryNames(ArrayRef<ast::EntryStmt *> entries, StringRef owner, ArrayRef<Candidate> known);
  /// The declaration of that name, which must be of `Kind`.
  template <typename Kind> const Kind *expectDecl(const ast::Ident &name, StringRef kind) {
    const ast::Decl *decl = lookupDecl(name.name, name.range);
    if (!decl) {
      reportUnknown(name.name, name.range);
      return nullptr;
    }
    if (auto *found = llvm::dyn_cast<Kind>(decl))
      return found;
    reportWrongDecl(name, kind, *decl);
    return nullptr;
  }
  void reportUnknownEntry(const ast::Ident &name, StringRef owner, ArrayRef<Candidate> known);
  /// `let x = e;`, the only form outside modules. `owner`: "a schedule".
  void checkPlainLet(const ast::LetStmt &let, StringRef owner);
  void reportWrongDecl(const ast::Ident &name, StringRef kind, const ast::Decl &decl);

  const Program &program;
  DiagnosticEngine &diags;
  const ast::File &file;
  llvm::SmallVector<Scope, 8> scopes;

  /// Adds to the message that a symbol is not used.
  bool checkMember(const ast::MemberExpr &member);
  virtual void explainUnused(DiagnosticBuilder &, const Symbol &) {}
  /// Adds to the message that a name means nothing, where no other name is near.
  virtual void explainUnknown(DiagnosticBuilder &, StringRef) {}
  bool isNumber(const ast::CallExpr &call) const;
  /// Whether an unknown name may be meant to be a builtin, when the nearest name is looked for.
  virtual bool mayMeanBuiltin() const { return true; }
  /// Whether what is called here makes tensors, so that a member of a call is a method of one.
  virtual bool mayCallTensors() const { return false; }

private:
  std::string findSpelledOtherwise(StringRef name, ArrayRef<Candidate> candidates) const;
  void closeScope();

  llvm::StringSet<> reportedNames; ///< Unknown ones, each of which is reported once.
};

/// A call of one module or strategy by another, or another mention of it.
struct DeclUse {
  const ast::Decl *decl;
  SMRange range;
};
/// For each module and strategy those it uses, in source order.
using DeclUses = llvm::MapVector<const ast::Decl *, std::vector<DeclUse>>;

class ExtendsChecker;
/// The entries that each config has, its own and inherited ones. Configs that add no name share a list.
using ConfigNames =
    llvm::DenseMap<const ast::ConfigDecl *, std::shared_ptr<const llvm::MapVector<StringRef, ast::Ident>>>;

void checkModule(const Program &program, const ast::File &file, const ast::ModuleDecl &module, DeclUses &uses);
void checkOp(const Program &program, const ast::File &file, const ast::OpDecl &op);
void checkStrategy(const Program &program, const ast::File &file, const ast::StrategyDecl &strategy, DeclUses &uses);
void checkSchedule(const Program &program, const ast::File &file, const ast::ScheduleDecl &schedule);
void checkFunction(const Program &program, const ast::File &file, const ast::FnDecl &fn);
void checkConfig(const Program &program, const ast::File &file, const ast::ConfigDecl &config, ExtendsChecker &extends,
                 ConfigNames &configs);
void checkJob(const Program &program, const ast::File &file, const ast::JobDecl &job, ExtendsChecker &extends);
/// The `search` of a job whose chain ends.
void checkSearches(const Program &program, const ast::File &file, const ast::JobDecl &job);
void checkPrecision(const Program &program, const ast::File &file, const ast::PrecisionDecl &precision);
void checkOptimizer(const Program &program, const ast::File &file, const ast::OptimizerDecl &optimizer);
void checkLauncher(const Program &program, const ast::LauncherDecl &launcher);
void checkMachine(const Program &program, const ast::File &file, const ast::MachineDecl &machine,
                  ExtendsChecker &extends);
void checkRuntime(const Program &program, const ast::File &file, const ast::RuntimeDecl &runtime,
                  ExtendsChecker &extends);
/// Modules that contain themselves, and strategies that call themselves.
void checkRecursion(const DeclUses &uses, DiagnosticEngine &diags);

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_NAMECHECKER_H
