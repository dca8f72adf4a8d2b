//===- BuildStmts.cpp - statements of modules, ops and schedules ----------===//
#include "Builder.h"
#include "stage/Parse/Diagnostics.h"

using namespace stage;
using namespace stage::ast;
using namespace stage::parse;

//===----------------------------------------------------------------------===//
// Modules and models
//===----------------------------------------------------------------------===//

Stmt *Builder::stmt(Grammar::StmtContext *tree) {
  if (auto *decl = tree->tensorDecl())
    return tensorDecl(decl);
  if (auto *letTree = tree->letStmt())
    return let(letTree);
  if (auto *assignTree = tree->assignStmt())
    return assign(assignTree, assignTree->name(), assignTree->expr());
  if (auto *repeatTree = tree->repeatStmt())
    return repeat(repeatTree);
  if (auto *ifTree = tree->ifStmt())
    return ifStmt(range(ifTree), ifTree->expr(), ifTree->block());
  if (auto *requireTree = tree->requireStmt())
    return require(requireTree);
  if (auto *callTree = tree->callStmt())
    return callStmt(callTree);
  if (auto *dim = tree->dimStmt()) {
    auto *node = make<DimStmt>(dim);
    node->doc = docsBefore(dim);
    node->names = idents(dim->nameList());
    node->value = exprOrNull(dim->expr());
    return node;
  }
  if (auto *output = tree->outputStmt()) {
    auto *node = make<OutputStmt>(output);
    node->value = expr(output->expr());
    return node;
  }
  auto *returnTree = tree->returnStmt();
  auto *node = make<ReturnStmt>(returnTree);
  node->isFormula = returnTree->LBRACKET() != nullptr;
  node->indices = indices(returnTree->indexList());
  node->value = expr(returnTree->expr());
  return node;
}

Stmt *Builder::tensorDecl(Grammar::TensorDeclContext *tree) {
  auto *node = make<TensorDeclStmt>(tree);
  node->declKind = tree->PARAM()    ? TensorDeclKind::Param
                   : tree->INPUT()  ? TensorDeclKind::Input
                   : tree->BUFFER() ? TensorDeclKind::Buffer
                                    : TensorDeclKind::Cache;
  node->names = idents(tree->nameList());
  node->type = type(tree->type());
  node->last = exprOrNull(tree->expr());
  node->isPast = tree->PAST() != nullptr;
  return node;
}

Stmt *Builder::let(Grammar::LetStmtContext *tree) {
  auto *node = make<LetStmt>(tree);
  node->form = tree->VAR() ? LetStmt::Form::Var : LetStmt::Form::Let;
  if (auto *name = tree->name())
    node->targets = context.copy(ArrayRef<Ident>(ident(name)));
  else
    node->targets = idents(tree->nameList());
  node->isFormula = tree->LBRACKET() != nullptr;
  node->indices = indices(tree->indexList());
  node->type = typeOrNull(tree->type());
  node->value = expr(tree->expr());
  return node;
}

Stmt *Builder::assign(Rule *tree, Grammar::NameContext *target, Grammar::ExprContext *value) {
  auto *node = make<LetStmt>(tree);
  node->form = LetStmt::Form::Assign;
  node->targets = context.copy(ArrayRef<Ident>(ident(target)));
  node->value = expr(value);
  return node;
}

Stmt *Builder::repeat(Grammar::RepeatStmtContext *tree) {
  auto *node = make<RepeatStmt>(tree);
  node->name = ident(tree->name(0));
  node->variable = ident(tree->name(1));
  auto *bounds = tree->rangeOrExpr();
  if (bounds->DOTS())
    node->begin = expr(bounds->expr(0));
  node->end = expr(bounds->expr().back());
  node->body = block(tree->block());
  return node;
}

Stmt *Builder::require(Grammar::RequireStmtContext *tree) {
  auto *node = make<RequireStmt>(tree);
  node->condition = expr(tree->expr());
  if (auto *message = tree->STRING()) {
    node->message = string(message->getSymbol());
    node->messageParts = messageParts(message->getSymbol());
  }
  return node;
}

Stmt *Builder::call(SMRange range, Rule *name, const Token *end, Grammar::ArgListContext *arguments) {
  auto *callee = make<NameExpr>(name);
  callee->name = ident(name).name;
  auto *call = make<CallExpr>(source.range(name->getStart(), end));
  call->callee = callee;
  call->args = this->arguments(arguments);
  auto *node = make<ExprStmt>(range);
  node->value = call;
  return node;
}

Stmt *Builder::callStmt(Grammar::CallStmtContext *tree) {
  auto *head = make<NameExpr>(tree->callee());
  head->name = ident(tree->callee()).name;
  Expr *callee = head;
  for (auto *name : tree->name()) {
    auto *member = make<MemberExpr>(source.range(tree->getStart(), name->getStop()));
    member->base = callee;
    member->member = ident(name);
    callee = member;
  }
  auto *call = make<CallExpr>(source.range(tree->getStart(), tree->RPAREN()->getSymbol()));
  call->callee = callee;
  call->args = arguments(tree->argList());
  auto *node = make<ExprStmt>(tree);
  node->value = call;
  return node;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

Stmt *Builder::opStmt(Grammar::OpStmtContext *tree) {
  if (auto *letTree = dynamic_cast<Grammar::OpLetContext *>(tree))
    return let(letTree->letStmt());
  using Clause = OpClauseStmt::Clause;
  auto *node = make<OpClauseStmt>(tree);
  if (auto *assignTree = dynamic_cast<Grammar::OpAssignContext *>(tree)) {
    StringRef name = text(assignTree->name());
    // `flop = ... because "..."`
    if (auto *because = assignTree->BECAUSE(); because && name.lower() != "flops" && name.lower().starts_with("flop"))
      diags.report(source.range(assignTree->name()->getStart()).Start, diag::SyntaxError)
          .with(("'" + name + "'").str(), "a clause of an op or '}'")
          .note(SMLoc(), diag::WriteInstead)
          .with(("'" + name + "' is written 'flops'").str());
    else if (because && name != "flops")
      diags.report(source.range(because->getSymbol()).Start, diag::SyntaxError) << "'because'"
                                                                                << "';'";
    if (assignTree->BECAUSE() && name == "flops")
      node->because = string(assignTree->STRING()->getSymbol());
    if (name != "flops" && name != "bytes" && name != "class")
      return assign(tree, assignTree->name(), assignTree->expr());
    node->clause = name == "flops" ? Clause::Flops : name == "bytes" ? Clause::Bytes : Clause::FlopClass;
    node->value = expr(assignTree->expr());
  } else if (auto *backward = dynamic_cast<Grammar::OpBackwardContext *>(tree)) {
    node->clause = Clause::BackwardFlops;
    node->value = expr(backward->expr(0));
    node->value2 = exprOrNull(backward->expr(1));
    if (backward->BECAUSE())
      node->because = string(backward->STRING()->getSymbol());
  } else if (auto *whole = dynamic_cast<Grammar::OpWholeContext *>(tree)) {
    node->clause = Clause::Whole;
    node->names = idents(whole->nameList());
  } else if (auto *fold = dynamic_cast<Grammar::OpFoldContext *>(tree)) {
    node->clause = Clause::Fold;
    node->names = idents(fold->nameList());
    node->extraName = ident(fold->name());
    node->extraType = typeOrNull(fold->type());
    node->formula = exprOrNull(fold->expr());
  } else if (auto *mask = dynamic_cast<Grammar::OpMaskContext *>(tree)) {
    node->clause = Clause::Mask;
    node->word = ident(mask->name());
    llvm::SmallVector<Expr *, 3> arguments;
    if (auto *given = mask->exprList())
      for (auto *argument : given->expr())
        arguments.push_back(expr(argument));
    node->arguments = context.copy(ArrayRef<Expr *>(arguments));
  } else if (dynamic_cast<Grammar::OpSavesNothingContext *>(tree)) {
    node->clause = Clause::Saves;
  } else if (auto *saves = dynamic_cast<Grammar::OpSavesContext *>(tree)) {
    node->clause = Clause::Saves;
    llvm::SmallVector<Ident, 4> names = {ident(saves->savedNames()->nameNotNothing())};
    for (auto *name : saves->savedNames()->name())
      names.push_back(ident(name));
    node->names = list(names);
  } else if (auto *tensor = dynamic_cast<Grammar::OpSavesTensorContext *>(tree)) {
    node->clause = Clause::Saves;
    node->extraName = ident(tensor->name());
    node->extraType = type(tensor->type());
  } else if (auto *linear = dynamic_cast<Grammar::OpLinearContext *>(tree)) {
    node->clause = Clause::Linear;
    node->names = idents(linear->nameList());
  } else if (auto *scan = dynamic_cast<Grammar::OpScanContext *>(tree)) {
    node->clause = Clause::Scan;
    node->names = idents(scan->nameList());
  } else if (auto *routes = dynamic_cast<Grammar::OpRoutesContext *>(tree)) {
    node->clause = Clause::Routes;
    node->names = idents(routes->nameList(0));
    node->names2 = idents(routes->nameList(1));
    if (!routes->expr().empty())
      node->value = expr(routes->expr(0));
    if (routes->expr().size() > 1)
      node->value2 = expr(routes->expr(1));
  } else if (auto *updates = dynamic_cast<Grammar::OpUpdatesContext *>(tree)) {
    node->clause = Clause::Updates;
    node->names = idents(updates->nameList());
    node->names2 = context.copy(ArrayRef<Ident>(ident(updates->name())));
  } else if (dynamic_cast<Grammar::OpOpaqueContext *>(tree)) {
    node->clause = Clause::Opaque;
  } else {
    node->clause = Clause::StopGradient;
  }
  return node;
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

Stmt *Builder::scheduleStmt(Grammar::ScheduleStmtContext *tree) {
  if (auto *letTree = dynamic_cast<Grammar::ScheduleLetContext *>(tree))
    return let(letTree->letStmt());
  if (auto *requireTree = dynamic_cast<Grammar::ScheduleRequireContext *>(tree))
    return require(requireTree->requireStmt());
  if (auto *call = dynamic_cast<Grammar::ScheduleCallContext *>(tree))
    return callStmt(call->callStmt());
  if (auto *ifTree = dynamic_cast<Grammar::ScheduleIfContext *>(tree))
    return ifStmt(range(tree), ifTree->expr(), ifTree->scheduleBlock());
  if (auto *forTree = dynamic_cast<Grammar::ScheduleForContext *>(tree)) {
    auto *node = make<ForStmt>(tree);
    node->variable = ident(forTree->name());
    node->begin = expr(forTree->expr(0));
    node->end = expr(forTree->expr(1));
    node->body = block(forTree->scheduleBlock());
    return node;
  }
  if (auto *stages = dynamic_cast<Grammar::ScheduleVirtualContext *>(tree)) {
    auto *node = make<VirtualStmt>(tree);
    node->count = expr(stages->expr(0));
    node->place = exprOrNull(stages->expr(1));
    return node;
  }
  auto *fn = static_cast<Grammar::ScheduleFnContext *>(tree);
  auto *node = make<FnStmt>(tree);
  node->name = ident(fn->name());
  node->params = idents(fn->nameList());
  node->value = expr(fn->expr());
  return node;
}
