//===- Builder.h - from the parse tree to the syntax tree ------*- C++ -*-===//
//
// One method per kind of node, in three files: expressions and types, statements,
// declarations. Runs on trees without errors of syntax only, so that no child is
// missing; what the grammar leaves open (see StageParser.g4) is told apart here.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_PARSE_BUILDER_H
#define STAGE_LIB_PARSE_BUILDER_H

#include "Source.h"
#include "StageParser.h"
#include "stage/AST/AST.h"
#include "llvm/ADT/SmallVector.h"
#include <map>

namespace stage::parse {

using Grammar = stagegrammar::StageParser;

/// Parses an expression inside of a string. Null after an error.
ast::Expr *parseExpressionIn(const SourceText &source, ast::ASTContext &context, DiagnosticEngine &diags);

class Builder {
public:
  Builder(ast::ASTContext &context, DiagnosticEngine &diags, const SourceText &source,
          antlr4::CommonTokenStream &tokens)
      : context(context), diags(diags), source(source), tokens(tokens) {}

  ast::File *file(Grammar::FileContext *tree);
  ast::Expr *expr(Grammar::RangeOrExprContext *tree);
  ast::Expr *expr(Grammar::SingleExprContext *tree);

private:
  using Token = antlr4::Token;
  using Rule = antlr4::ParserRuleContext;

  //===--- Tools ----------------------------------------------------------===//
  SMRange range(Rule *tree) const { return source.range(tree->getStart(), tree->getStop()); }
  llvm::StringRef text(Rule *tree) const { return source.slice(range(tree)); }
  /// The source text of some tokens, comments left out and any space between two of them as one blank.
  llvm::StringRef plainText(const Token *first, const Token *last);
  template <typename T> T *make(SMRange range) {
    T node{};
    node.kind = T::ownKind;
    node.range = range;
    return context.create(node);
  }
  template <typename T> T *make(Rule *tree) { return make<T>(range(tree)); }
  template <typename T> llvm::ArrayRef<T> list(const llvm::SmallVectorImpl<T> &items) {
    return context.copy(llvm::ArrayRef<T>(items));
  }
  /// Applies a method to each tree.
  template <typename Result, typename Tree>
  llvm::ArrayRef<Result> each(const std::vector<Tree *> &trees, Result (Builder::*build)(Tree *)) {
    llvm::SmallVector<Result, 8> items;
    for (Tree *tree : trees)
      items.push_back((this->*build)(tree));
    return list(items);
  }
  ast::Ident ident(SMRange range) { return {context.copy(source.slice(range)), range}; }
  ast::Ident ident(Rule *tree) { return tree ? ident(range(tree)) : ast::Ident(); }
  ast::Ident ident(const Token *token) { return ident(source.range(token)); }
  llvm::ArrayRef<ast::Ident> idents(Grammar::NameListContext *tree);
  template <typename Tree> llvm::ArrayRef<ast::Ident> idents(const std::vector<Tree *> &trees) {
    llvm::SmallVector<ast::Ident, 8> items;
    for (Tree *tree : trees)
      items.push_back(ident(tree));
    return list(items);
  }

  //===--- Expressions and types ------------------------------------------===//
  ast::Expr *expr(Grammar::ExprContext *tree);
  /// `base with a with b`; `base` alone if there are no parts.
  ast::Expr *withParts(ast::Expr *base, llvm::ArrayRef<Grammar::ExprContext *> parts);
  ast::Expr *exprOrNull(Grammar::ExprContext *tree) { return tree ? expr(tree) : nullptr; }
  ast::Expr *number(const Token *token);
  ast::Expr *quantity(const Token *token);
  ast::StringExpr *string(const Token *token);
  llvm::ArrayRef<ast::MessagePart> messageParts(const Token *token);
  ast::Expr *call(Grammar::CallExprContext *tree);
  ast::Expr *binary(Grammar::BinaryExprContext *tree);
  ast::Expr *tuple(Grammar::ParenExprContext *tree);
  ast::Expr *ifExpr(Grammar::IfExprContext *tree);
  ast::Expr *opExpr(Grammar::OpExprContext *tree);
  ast::Expr *subscript(Grammar::SubscriptContext *tree);
  ast::Expr *ellipsis(Grammar::EllipsisContext *tree);
  ast::Expr *compound(Grammar::CompoundContext *tree);
  /// In a shape: `(c * q)` is several indices as one.
  ast::Expr *shapeExpr(Grammar::ExprContext *tree);
  bool productOfNames(Grammar::ExprContext *tree, llvm::SmallVectorImpl<ast::Ident> &names);
  ast::Expr *indexItem(Grammar::IndexItemContext *tree);
  llvm::ArrayRef<ast::Expr *> indices(Grammar::IndexListContext *tree);
  ast::Argument argument(Grammar::ArgContext *tree);
  llvm::ArrayRef<ast::Argument> arguments(Grammar::ArgListContext *tree);
  ast::OpExpr::Operand operand(Grammar::OperandContext *tree);
  ast::TensorType *type(Grammar::TypeContext *tree);
  ast::TensorType *typeOrNull(Grammar::TypeContext *tree) { return tree ? type(tree) : nullptr; }
  ast::ShapeDim dim(Grammar::DimContext *tree);
  ast::AxisListSyntax axes(Grammar::AxisListContext *tree);
  ast::Param parameter(Grammar::ParameterContext *tree);
  llvm::ArrayRef<ast::Param> parameters(Grammar::ParamListContext *tree);

  //===--- Statements -----------------------------------------------------===//
  ast::Stmt *stmt(Grammar::StmtContext *tree);
  llvm::ArrayRef<ast::Stmt *> block(Grammar::BlockContext *tree) { return each(tree->stmt(), &Builder::stmt); }
  ast::Stmt *tensorDecl(Grammar::TensorDeclContext *tree);
  ast::Stmt *let(Grammar::LetStmtContext *tree);
  ast::Stmt *assign(Rule *tree, Grammar::NameContext *target, Grammar::ExprContext *value);
  ast::Stmt *repeat(Grammar::RepeatStmtContext *tree);
  ast::Stmt *require(Grammar::RequireStmtContext *tree);
  ast::Stmt *callStmt(Grammar::CallStmtContext *tree);
  /// `name(arguments)` as a statement; `end` is the last token of the call.
  ast::Stmt *call(SMRange range, Rule *name, const Token *end, Grammar::ArgListContext *arguments);
  ast::SearchStmt *search(Grammar::SearchSpaceContext *tree);
  ast::Stmt *opStmt(Grammar::OpStmtContext *tree);
  ast::Stmt *scheduleStmt(Grammar::ScheduleStmtContext *tree);
  llvm::ArrayRef<ast::Stmt *> block(Grammar::ScheduleBlockContext *tree) {
    return each(tree->scheduleStmt(), &Builder::scheduleStmt);
  }
  /// `if`, `else if`, ... of any kind of block.
  template <typename Block>
  ast::Stmt *ifStmt(SMRange range, const std::vector<Grammar::ExprContext *> &conditions,
                    const std::vector<Block *> &blocks);

  //===--- Strategies -----------------------------------------------------===//
  ast::Stmt *strategyStmt(Grammar::StrategyStmtContext *tree);
  llvm::ArrayRef<ast::Stmt *> block(Grammar::StrategyBlockContext *tree) {
    return each(tree->strategyStmt(), &Builder::strategyStmt);
  }
  ast::Stmt *rule(Grammar::StrategyRuleContext *tree);
  ast::Stmt *shard(Grammar::ShardRuleContext *tree);
  ast::Stmt *mesh(Grammar::MeshStmtContext *tree);
  ast::Stmt *pipeline(Grammar::PipelineStmtContext *tree);
  ast::Stmt *slow(Grammar::SlowStmtContext *tree);
  ast::Stmt *partition(Grammar::PartitionStmtContext *tree);
  ast::Stmt *reduce(Grammar::ReduceStmtContext *tree);
  ast::Pattern pattern(Grammar::PatternContext *tree);

  //===--- Declarations ---------------------------------------------------===//
  ast::Import importDecl(Grammar::ImportDeclContext *tree);
  ast::Decl *decl(Grammar::DeclarationContext *tree);
  ast::Decl *op(Grammar::OpDeclContext *tree);
  ast::Decl *module(Grammar::ModuleDeclContext *tree);
  ast::Decl *strategy(Grammar::StrategyDeclContext *tree);
  ast::Decl *optimizer(Grammar::OptimizerDeclContext *tree);
  ast::EntryStmt *entry(Grammar::EntryContext *tree);
  ast::FlagStmt *flag(Grammar::LauncherEntryContext *tree);
  ast::Stmt *machineStmt(Grammar::MachineStmtContext *tree);
  ast::Stmt *runtimeStmt(Grammar::RuntimeStmtContext *tree);
  ast::EntryStmt *kernelEntry(Grammar::KernelEntryContext *tree);
  ast::EntryStmt *dottedEntry(Grammar::DottedEntryContext *tree);
  llvm::ArrayRef<ast::EntryStmt *> entries(Grammar::EntryBlockContext *tree);
  llvm::ArrayRef<ast::Stmt *> entryStmts(Grammar::EntryBlockContext *tree);
  /// The documentation of a kind among the comments before a token.
  llvm::ArrayRef<llvm::StringRef> docs(size_t begin, size_t end, size_t commentType);
  llvm::ArrayRef<llvm::StringRef> docsBefore(Rule *tree);
  /// Warns of doc comments that stand before nothing that has one.
  void checkDocs();
  std::map<size_t, size_t>
      documented; ///< Tokens that were looked at for doc comments: from the first to before the last.

  ast::ASTContext &context;
  DiagnosticEngine &diags;
  const SourceText &source;
  antlr4::CommonTokenStream &tokens;
};

template <typename Block>
ast::Stmt *Builder::ifStmt(SMRange range, const std::vector<Grammar::ExprContext *> &conditions,
                           const std::vector<Block *> &blocks) {
  llvm::ArrayRef<ast::Stmt *> otherwise;
  if (blocks.size() > conditions.size())
    otherwise = block(blocks.back());
  for (size_t i = conditions.size(); i-- > 0;) {
    SMLoc begin = i == 0 ? range.Start : source.loc(conditions[i]->getStart());
    auto *node = make<ast::IfStmt>(SMRange(begin, range.End));
    node->condition = expr(conditions[i]);
    node->thenBody = block(blocks[i]);
    node->elseBody = otherwise;
    if (i == 0)
      return node;
    ast::Stmt *single = node;
    otherwise = context.copy(llvm::ArrayRef<ast::Stmt *>(single));
  }
  llvm_unreachable("an if has a condition");
}

} // namespace stage::parse

#endif // STAGE_LIB_PARSE_BUILDER_H
