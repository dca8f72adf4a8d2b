//===- JobParts.h - what a job names, before it is bound -------*- C++ -*-===//
//
// A search has to know which names a job can be given values for, and where these are written:
//
//   strategy = megatron(tp = 8) with distributed_optimizer();      its call, and the strategy that is called
//
// A search that tries several strategies has parts for each of them.
//
// Limits: an entry that is computed (`strategy = if fast { a() } else { b() };`) names nothing here.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_SEMA_JOBPARTS_H
#define STAGE_LIB_SEMA_JOBPARTS_H

#include "stage/Sema/Program.h"
#include "stage/Sema/Search.h"
#include "llvm/ADT/MapVector.h"

namespace stage::sema {

struct JobParts {
  /// A declaration that an entry calls, or names.
  template <typename Decl> struct Called {
    const Decl *decl = nullptr; ///< Null: the entry is none such.
    ArrayRef<ast::Argument> args;
    const ast::File *file = nullptr;
  };
  /// The entries in effect, each with the file where it stands.
  llvm::MapVector<StringRef, std::pair<const ast::EntryStmt *, const ast::File *>> entries;
  Called<ast::StrategyDecl> strategy;
  Called<ast::ModuleDecl> model;
  const ast::CallExpr *step = nullptr; ///< Null: the entry is no call.
  const ast::File *stepFile = nullptr;
  /// The block of the job, or of the nearest job that it extends; null: there is none.
  const ast::SearchStmt *search = nullptr;
  const ast::File *searchFile = nullptr;
  /// That of the strategy.
  const ast::SearchStmt *ownSearch = nullptr;

  /// The chain of the job must end. `tried`: the strategy in place of that of the job, if it has a value.
  JobParts(const Program &program, const ast::JobDecl &job, const SearchedStrategy &tried = SearchedStrategy());
  /// Whose a name is: `strategy`, `step`, `config`, of `gpus` `job`. Empty: nobody's.
  StringRef findOwner(StringRef name) const;
  /// All names that have an owner.
  std::vector<Candidate> listNames() const;
};

/// The declaration that an entry calls, or names: of `megatron(tp = 8) with part()` megatron. Null: it is no strategy.
const ast::StrategyDecl *findCalledStrategy(const Program &program, const ast::Expr *expr, const ast::File &file);

/// The calls of `strategy in [a(), b()]`, or of `strategy = a()`. Nothing: it is no such list.
std::optional<std::vector<const ast::Expr *>> listStrategyCalls(const ast::SearchStmt::Values &entry);

/// What the search of a job, or of the nearest one that it extends, says of `gpus`; null: nothing. The chain must end.
const ast::Expr *findGpus(const Program &program, const ast::JobDecl &job);

/// Whether an expression is a list or a range, or may make one.
bool mayBeList(const ast::Expr *expr);

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_JOBPARTS_H
