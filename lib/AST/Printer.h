//===- Printer.h - the syntax tree as .stg text ----------------*- C++ -*-===//
//
// One statement per line, no line wrapped. Parentheses stand where the tree needs them
// and nowhere else; comments other than documentation are not in the tree.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_AST_PRINTER_H
#define STAGE_LIB_AST_PRINTER_H

#include "stage/AST/AST.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace stage::ast {

class Printer {
public:
  explicit Printer(llvm::raw_ostream &os) : os(os) {}

  void file(const File &file);
  /// In parentheses if it binds less tightly than `minimum`.
  void expr(const Expr *expr, unsigned minimum = 0);
  /// On lines of its own.
  void stmt(const Stmt *stmt);

private:
  //===--- Expressions and types ------------------------------------------===//
  void binary(const BinaryExpr *expr, unsigned minimum);
  void call(const CallExpr *expr);
  void opExpr(const OpExpr *expr);
  void type(const TensorType *type);
  void axes(const AxisListSyntax &axes);
  void param(const Param &param);
  void args(ArrayRef<Argument> args);
  void params(ArrayRef<Param> params);
  /// On lines of their own, in front of what they are about.
  void docs(ArrayRef<StringRef> lines);

  //===--- Statements -----------------------------------------------------===//
  void let(const LetStmt *stmt);
  void ifStmt(const IfStmt *stmt);
  void clause(const OpClauseStmt *stmt);
  void shard(const ShardStmt *stmt);
  void mesh(const MeshStmt *stmt);
  void at(const AtStmt *stmt);
  void partition(const PartitionStmt *stmt);
  void reduce(const ReduceStmt *stmt);
  void layerRule(const LayerRuleStmt *stmt);
  void slow(const SlowStmt *stmt);
  void search(const SearchStmt *stmt);
  void flag(const FlagStmt *stmt);
  void pattern(const Pattern &pattern);
  void because(const OpClauseStmt *node);
  void block(ArrayRef<Stmt *> body);
  /// `{ ... }`, or `;` if there is nothing inside.
  void optionalBlock(ArrayRef<Stmt *> body);
  void entries(ArrayRef<EntryStmt *> entries, ArrayRef<SearchStmt *> searches = {});
  /// ` extends base`, if there is a base.
  void extension(const Ident &base);

  //===--- Declarations ---------------------------------------------------===//
  void decl(const Decl *decl);
  void op(const OpDecl *decl);
  void moduleResults(ArrayRef<TensorType *> results);

  //===--- Tools ----------------------------------------------------------===//
  template <typename List, typename Each> void commas(const List &list, Each each) {
    llvm::interleave(
        list, [&](const auto &item) { each(item); }, [&] { os << ", "; });
  }
  void names(ArrayRef<Ident> idents) {
    commas(idents, [&](const Ident &ident) { os << ident.name; });
  }
  void exprs(ArrayRef<Expr *> list) {
    commas(list, [&](const Expr *item) { expr(item); });
  }
  llvm::raw_ostream &line() { return os.indent(indent); }

  llvm::raw_ostream &os;
  unsigned indent = 0;
};

} // namespace stage::ast

#endif // STAGE_LIB_AST_PRINTER_H
