//===- BuildDecls.cpp - declarations, imports and documentation -----------===//
#include "Builder.h"
#include "StageLexer.h"
#include "stage/Parse/Diagnostics.h"

using namespace stage;
using namespace stage::ast;
using namespace stage::parse;

File *Builder::file(Grammar::FileContext *tree) {
  File file;
  file.doc = docs(0, tokens.size(), stagegrammar::StageLexer::FILE_DOC);
  file.imports = each(tree->importDecl(), &Builder::importDecl);
  file.decls = each(tree->declaration(), &Builder::decl);
  checkDocs();
  return context.create(file);
}

/// Comments between the last token of what is before and this.
ArrayRef<StringRef> Builder::docsBefore(Rule *tree) {
  size_t first = tree->getStart()->getTokenIndex();
  size_t begin = first;
  while (begin > 0 && tokens.get(begin - 1)->getChannel() != Token::DEFAULT_CHANNEL)
    --begin;
  documented.insert({begin, first});
  return docs(begin, first, stagegrammar::StageLexer::DOC_COMMENT);
}

void Builder::checkDocs() {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token *token = tokens.get(i);
    if (token->getType() != stagegrammar::StageLexer::DOC_COMMENT)
      continue;
    auto after = documented.upper_bound(i);
    if (after == documented.begin() || std::prev(after)->second <= i)
      diags.report(source.loc(token), diag::LostDocComment).range(source.range(token));
  }
}

ArrayRef<StringRef> Builder::docs(size_t begin, size_t end, size_t commentType) {
  llvm::SmallVector<StringRef, 8> lines;
  for (size_t i = begin; i < end; ++i) {
    const Token *token = tokens.get(i);
    if (token->getType() != commentType)
      continue;
    StringRef line = source.slice(token).drop_front(3).rtrim();
    line.consume_front(" ");
    lines.push_back(context.copy(line));
  }
  return list(lines);
}

Import Builder::importDecl(Grammar::ImportDeclContext *tree) {
  std::string path;
  for (auto *name : tree->name()) {
    path += path.empty() ? "" : ".";
    path += text(name);
  }
  Import import;
  import.path = context.copy(StringRef(path));
  import.range = range(tree);
  import.all = tree->nameList() == nullptr;
  import.names = idents(tree->nameList());
  return import;
}

Decl *Builder::decl(Grammar::DeclarationContext *tree) {
  Decl *result = nullptr;
  if (auto *opTree = tree->opDecl()) {
    result = op(opTree);
  } else if (auto *moduleTree = tree->moduleDecl()) {
    result = module(moduleTree);
  } else if (auto *model = tree->modelDecl()) {
    auto *node = make<ModuleDecl>(tree);
    node->name = ident(model->name());
    node->isModel = true;
    node->params = parameters(model->paramList());
    node->body = block(model->block());
    result = node;
  } else if (auto *strategyTree = tree->strategyDecl()) {
    result = strategy(strategyTree);
  } else if (auto *schedule = tree->scheduleDecl()) {
    auto *node = make<ScheduleDecl>(tree);
    node->name = ident(schedule->name());
    node->params = parameters(schedule->paramList());
    node->body = block(schedule->scheduleBlock());
    result = node;
  } else if (auto *config = tree->configDecl()) {
    auto *node = make<ConfigDecl>(tree);
    node->name = ident(config->name(0));
    node->model = ident(config->name(1));
    node->base = ident(config->name(2));
    node->entries = entries(config->entryBlock());
    result = node;
  } else if (auto *job = tree->jobDecl()) {
    auto *node = make<JobDecl>(tree);
    node->name = ident(job->name(0));
    node->base = ident(job->name(1));
    node->entries = each(job->entry(), &Builder::entry);
    node->searches = each(job->searchSpace(), &Builder::search);
    result = node;
  } else if (auto *precision = tree->precisionDecl()) {
    auto *node = make<PrecisionDecl>(tree);
    node->name = ident(precision->name());
    node->entries = entries(precision->entryBlock());
    result = node;
  } else if (auto *launcherTree = tree->launcherDecl()) {
    auto *node = make<LauncherDecl>(tree);
    node->name = ident(launcherTree->name(0));
    node->strategy = ident(launcherTree->name(1));
    node->flags = each(launcherTree->launcherEntry(), &Builder::flag);
    result = node;
  } else if (auto *machineTree = tree->machineDecl()) {
    auto *node = make<MachineDecl>(tree);
    node->name = ident(machineTree->name(0));
    node->base = ident(machineTree->name(1));
    node->body = each(machineTree->machineStmt(), &Builder::machineStmt);
    result = node;
  } else if (auto *runtimeTree = tree->runtimeDecl()) {
    auto *node = make<RuntimeDecl>(tree);
    node->name = ident(runtimeTree->name(0));
    node->base = ident(runtimeTree->name(1));
    node->body = each(runtimeTree->runtimeStmt(), &Builder::runtimeStmt);
    result = node;
  } else if (auto *fn = tree->fnDecl()) {
    auto *node = make<FnDecl>(tree);
    node->name = ident(fn->name());
    node->params = parameters(fn->paramList());
    node->value = expr(fn->expr());
    result = node;
  } else {
    result = optimizer(tree->optimizerDecl());
  }
  result->doc = docsBefore(tree);
  return result;
}

Decl *Builder::op(Grammar::OpDeclContext *tree) {
  auto *node = make<OpDecl>(tree);
  node->name = ident(tree->name());
  node->params = parameters(tree->paramList());
  llvm::SmallVector<OpDecl::Result, 2> results;
  if (auto *resultsTree = tree->opResults()) {
    if (auto *single = resultsTree->type())
      results.push_back({Ident(), type(single)});
    for (auto *result : resultsTree->opResult())
      results.push_back({ident(result->name()), type(result->type())});
  }
  node->results = list(results);
  node->formula = exprOrNull(tree->expr());
  node->body = each(tree->opStmt(), &Builder::opStmt);
  return node;
}

Decl *Builder::module(Grammar::ModuleDeclContext *tree) {
  auto *node = make<ModuleDecl>(tree);
  node->name = ident(tree->name());
  node->params = parameters(tree->paramList());
  node->results = each(tree->moduleResults()->type(), &Builder::type);
  node->body = block(tree->block());
  return node;
}

Decl *Builder::strategy(Grammar::StrategyDeclContext *tree) {
  auto *node = make<StrategyDecl>(tree);
  node->name = ident(tree->name(0));
  ArrayRef<Param> own = parameters(tree->own);
  llvm::SmallVector<Param, 16> params(own.begin(), own.end());
  for (Param param : parameters(tree->forwarded)) {
    param.isForwarded = true;
    params.push_back(param);
  }
  node->params = list(params);
  node->body = block(tree->strategyBlock());
  if (!tree->EXTENDS())
    return node;
  // What it extends is what it calls first.
  bool hasParens = tree->RPAREN().size() > 1;
  const Token *end = hasParens ? tree->RPAREN(1)->getSymbol() : tree->name(1)->getStop();
  SMRange place = source.range(tree->name(1)->getStart(), end);
  llvm::SmallVector<Stmt *, 16> body = {call(place, tree->name(1), end, tree->argList())};
  body.append(node->body.begin(), node->body.end());
  node->body = list(body);
  node->extends = place;
  return node;
}

Decl *Builder::optimizer(Grammar::OptimizerDeclContext *tree) {
  auto *node = make<OptimizerDecl>(tree);
  node->name = ident(tree->name());
  node->params = parameters(tree->paramList());
  llvm::SmallVector<Stmt *, 4> body;
  for (auto *child : tree->children) {
    if (auto *entryTree = dynamic_cast<Grammar::EntryContext *>(child)) {
      body.push_back(entry(entryTree));
    } else if (auto *stateTree = dynamic_cast<Grammar::StateStmtContext *>(child)) {
      auto *state = make<StateStmt>(stateTree);
      state->names = idents(stateTree->nameList());
      state->dtype = ident(stateTree->name());
      body.push_back(state);
    }
  }
  node->body = list(body);
  return node;
}

EntryStmt *Builder::entry(Grammar::EntryContext *tree) {
  auto *node = make<EntryStmt>(tree);
  node->doc = docsBefore(tree);
  node->name = ident(tree->name());
  std::vector<Grammar::ExprContext *> values = tree->expr();
  node->value = withParts(expr(values.front()), ArrayRef<Grammar::ExprContext *>(values).drop_front());
  return node;
}

FlagStmt *Builder::flag(Grammar::LauncherEntryContext *tree) {
  auto *node = make<FlagStmt>(tree);
  node->doc = docsBefore(tree);
  llvm::SmallVector<StringExpr *, 4> flags;
  for (auto *flag : tree->STRING())
    flags.push_back(string(flag->getSymbol()));
  node->flags = list(flags);
  node->value = exprOrNull(tree->value);
  node->condition = exprOrNull(tree->condition);
  return node;
}

EntryStmt *Builder::dottedEntry(Grammar::DottedEntryContext *tree) {
  auto *node = make<EntryStmt>(tree);
  node->doc = docsBefore(tree);
  std::string name; // without blanks around dots
  for (auto *part : tree->qualifiedName()->name())
    name += (name.empty() ? "" : ".") + text(part).str();
  node->name = {context.copy(StringRef(name)), range(tree->qualifiedName())};
  node->value = expr(tree->expr());
  return node;
}

Stmt *Builder::machineStmt(Grammar::MachineStmtContext *tree) {
  if (auto *entryTree = tree->dottedEntry())
    return dottedEntry(entryTree);
  auto *levelTree = tree->level();
  auto *node = make<LevelStmt>(levelTree);
  node->doc = docsBefore(levelTree);
  node->name = ident(levelTree->name(0));
  node->base = ident(levelTree->name(1));
  node->entries = each(levelTree->dottedEntry(), &Builder::dottedEntry);
  return node;
}

Stmt *Builder::runtimeStmt(Grammar::RuntimeStmtContext *tree) {
  if (auto *entryTree = tree->dottedEntry())
    return dottedEntry(entryTree);
  auto *node = make<KernelStmt>(tree);
  node->doc = docsBefore(tree);
  node->isFusion = tree->FUSE() != nullptr;
  if (tree->RESIDENT())
    node->resident = ident(tree->name());
  Grammar::KernelsContext *kernels = tree->kernels();
  if (kernels->pattern())
    node->pattern = pattern(kernels->pattern());
  else
    node->opClass = ident(kernels->name());
  node->entries = each(tree->kernelEntry(), &Builder::kernelEntry);
  return node;
}

EntryStmt *Builder::kernelEntry(Grammar::KernelEntryContext *tree) {
  auto *node = make<EntryStmt>(tree);
  node->doc = docsBefore(tree);
  std::string name;
  for (auto *word : tree->name())
    name += (name.empty() ? "" : " ") + text(word).str();
  node->name = {context.copy(StringRef(name)), SMRange(range(tree->name(0)).Start, range(tree->name().back()).End)};
  node->value = expr(tree->expr());
  return node;
}

ArrayRef<EntryStmt *> Builder::entries(Grammar::EntryBlockContext *tree) {
  return each(tree->entry(), &Builder::entry);
}

ArrayRef<Stmt *> Builder::entryStmts(Grammar::EntryBlockContext *tree) {
  llvm::SmallVector<Stmt *, 4> items;
  if (tree)
    for (auto *item : tree->entry())
      items.push_back(entry(item));
  return list(items);
}
