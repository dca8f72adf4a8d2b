//===- BuildStrategies.cpp - the rules of strategies ----------------------===//
#include "Builder.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;
using namespace stage::ast;
using namespace stage::parse;

Stmt *Builder::strategyStmt(Grammar::StrategyStmtContext *tree) {
  if (auto *ruleTree = dynamic_cast<Grammar::RuleStmtContext *>(tree))
    return rule(ruleTree->strategyRule());
  if (auto *meshTree = dynamic_cast<Grammar::MeshStmtContext *>(tree))
    return mesh(meshTree);
  if (auto *pipelineTree = dynamic_cast<Grammar::PipelineStmtContext *>(tree))
    return pipeline(pipelineTree);
  if (auto *slowTree = dynamic_cast<Grammar::SlowStmtContext *>(tree))
    return slow(slowTree);
  if (auto *partitionTree = dynamic_cast<Grammar::PartitionStmtContext *>(tree))
    return partition(partitionTree);
  if (auto *reduceTree = dynamic_cast<Grammar::ReduceStmtContext *>(tree))
    return reduce(reduceTree);
  if (auto *letTree = dynamic_cast<Grammar::StrategyLetContext *>(tree))
    return let(letTree->letStmt());
  if (auto *requireTree = dynamic_cast<Grammar::StrategyRequireContext *>(tree))
    return require(requireTree->requireStmt());
  if (auto *ifTree = dynamic_cast<Grammar::StrategyIfContext *>(tree))
    return ifStmt(range(tree), ifTree->expr(), ifTree->strategyBlock());
  if (auto *part = dynamic_cast<Grammar::PartStmtContext *>(tree))
    return call(range(tree), part->partName(), part->RPAREN()->getSymbol(), part->argList());
  if (auto *searchTree = dynamic_cast<Grammar::SearchBlockContext *>(tree))
    return search(searchTree->searchSpace());
  if (auto *at = dynamic_cast<Grammar::AtStmtContext *>(tree)) {
    auto *node = make<AtStmt>(tree);
    node->pattern = pattern(at->pattern());
    node->rules = each(at->strategyRule(), &Builder::rule);
    return node;
  }
  if (auto *axis = dynamic_cast<Grammar::AxisStmtContext *>(tree)) {
    auto *node = make<AxisAliasStmt>(tree);
    node->name = ident(axis->name());
    node->axes = axes(axis->axisList());
    return node;
  }
  auto *pad = static_cast<Grammar::PadStmtContext *>(tree);
  auto *node = make<PadStmt>(tree);
  node->dim = ident(pad->qualifiedName());
  node->to = expr(pad->expr());
  return node;
}

SearchStmt *Builder::search(Grammar::SearchSpaceContext *tree) {
  llvm::SmallVector<SearchStmt::Values, 8> values;
  llvm::SmallVector<Stmt *, 4> requirements;
  for (auto *stmt : tree->searchStmt()) {
    if (stmt->requireStmt())
      requirements.push_back(require(stmt->requireStmt()));
    else if (stmt->rangeOrExpr())
      values.push_back({ident(stmt->name()), expr(stmt->rangeOrExpr()), /*isOne=*/false});
    else
      values.push_back({ident(stmt->name()), expr(stmt->expr()), /*isOne=*/true});
  }
  auto *node = make<SearchStmt>(tree);
  node->values = list(values);
  node->requires_ = list(requirements);
  return node;
}

Stmt *Builder::rule(Grammar::StrategyRuleContext *tree) {
  if (auto *shardTree = tree->shardRule())
    return shard(shardTree);
  if (auto *keepTree = tree->keepRule()) {
    auto *node = make<KeepStmt>(keepTree);
    node->axes = axes(keepTree->axisList());
    return node;
  }
  if (auto *other = tree->otherRule(); other->RING()) {
    auto *node = make<RingStmt>(tree);
    node->index = ident(other->name(0));
    node->axes = axes(other->axisList());
    node->entries = entryStmts(other->entryBlock());
    return node;
  }
  if (auto *other = tree->otherRule(); other->REPLICATE()) {
    llvm::SmallVector<Pattern, 4> patterns;
    for (auto *what : other->patternList()->pattern())
      patterns.push_back(pattern(what));
    auto *node = make<ReplicateStmt>(tree);
    node->patterns = list(patterns);
    node->hasAxes = other->axisList() != nullptr;
    if (node->hasAxes)
      node->axes = axes(other->axisList());
    return node;
  }
  auto fill = [&](LayerRuleStmt *node, Grammar::OtherRuleContext *rule) {
    node->patterns = each(rule->patternList()->pattern(), &Builder::pattern);
    node->condition = rule->IF() ? expr(rule->expr().back()) : nullptr;
    node->entries = entryStmts(rule->entryBlock());
    return node;
  };
  if (auto *other = tree->otherRule(); other->RECOMPUTE()) {
    return fill(make<RecomputeStmt>(tree), other);
  } else if (other->OFFLOAD()) {
    auto *node = make<OffloadStmt>(tree);
    node->where = ident(other->name().front());
    node->after = other->AFTER() ? expr(other->after) : nullptr;
    return fill(node, other);
  }
  if (auto *other = tree->otherRule(); other->QUANTIZE()) {
    auto *node = make<QuantizeStmt>(tree);
    node->what = expr(other->what);
    node->blocks = other->blocks ? expr(other->blocks) : nullptr;
    return fill(node, other);
  }
  if (auto *other = tree->otherRule(); other->OVERLAP()) {
    auto *node = make<OverlapStmt>(tree);
    node->what = ident(other->name(0));
    node->with = ident(other->name(1));
    node->hasAxes = other->axisList() != nullptr;
    if (node->hasAxes)
      node->axes = axes(other->axisList());
    return node;
  }
  auto *node = make<OtherRuleStmt>(tree);
  node->word = ident(tree->getStart());
  const Token *last = tree->getStop();
  if (last->getType() == Grammar::SEMICOLON)
    last = tokens.get(last->getTokenIndex() - 1);
  node->text = plainText(tree->getStart(), last);
  return node;
}

Stmt *Builder::shard(Grammar::ShardRuleContext *tree) {
  llvm::SmallVector<ShardStmt::Item, 4> items;
  for (auto *group : tree->shardGroup()) {
    AxisListSyntax axisList = axes(group->axisList());
    Expr *order = exprOrNull(group->expr());
    for (auto *target : group->shardTarget()) {
      llvm::SmallVector<Ident, 4> names;
      llvm::SmallVector<bool, 4> mayLack;
      for (auto *dim : target->shardDim()) {
        names.push_back(ident(dim->qualifiedName()));
        mayLack.push_back(dim->QUESTION() != nullptr);
      }
      items.push_back({list(names), list(mayLack), axisList, order});
    }
  }
  auto *node = make<ShardStmt>(tree);
  node->items = list(items);
  return node;
}

Stmt *Builder::mesh(Grammar::MeshStmtContext *tree) {
  llvm::SmallVector<MeshStmt::AxisSyntax, 4> axes;
  for (auto *axis : tree->meshAxis())
    axes.push_back({ident(axis->name()), exprOrNull(axis->expr())});
  auto *node = make<MeshStmt>(tree);
  node->axes = list(axes);
  node->second = idents(tree->nameList());
  if (auto *topology = tree->exprList()) {
    llvm::SmallVector<Expr *, 4> values;
    for (auto *value : topology->expr())
      values.push_back(expr(value));
    node->topology = list(values);
  }
  return node;
}

Stmt *Builder::pipeline(Grammar::PipelineStmtContext *tree) {
  llvm::SmallVector<Stmt *, 4> entries;
  for (auto *part : tree->pipelineEntry()) {
    if (auto *entryTree = part->entry()) {
      entries.push_back(entry(entryTree));
      continue;
    }
    auto *place = make<PlaceStmt>(part);
    place->names = idents(part->nameList());
    place->where = ident(part->name());
    entries.push_back(place);
  }
  auto *node = make<PipelineStmt>(tree);
  std::vector<Grammar::PatternContext *> one = {tree->pattern()};
  node->repeats = each(tree->patternList() ? tree->patternList()->pattern() : one, &Builder::pattern);
  node->axes = axes(tree->axisList());
  node->entries = list(entries);
  return node;
}

Stmt *Builder::slow(Grammar::SlowStmtContext *tree) {
  llvm::SmallVector<Ident, 4> names;
  llvm::SmallVector<Expr *, 4> coordinates;
  for (auto *coordinate : tree->rankCoordinate()) {
    names.push_back(ident(coordinate->name()));
    coordinates.push_back(expr(coordinate->expr()));
  }
  auto *node = make<SlowStmt>(tree);
  node->axes = {list(names), {names.front().range.Start, range(tree->rankCoordinate().back()).End}};
  node->coordinates = list(coordinates);
  node->by = expr(tree->expr());
  return node;
}

Stmt *Builder::partition(Grammar::PartitionStmtContext *tree) {
  auto *node = make<PartitionStmt>(tree);
  node->what = ident(tree->name());
  node->axes = axes(tree->axisList());
  if (auto *units = tree->patternList())
    node->units = each(units->pattern(), &Builder::pattern);
  node->entries = entryStmts(tree->entryBlock());
  return node;
}

Stmt *Builder::reduce(Grammar::ReduceStmtContext *tree) {
  auto *node = make<ReduceStmt>(tree);
  node->what = ident(tree->name());
  node->axes = axes(tree->axisList());
  node->entries = entryStmts(tree->entryBlock());
  return node;
}

/// Letters and digits, which need a blank between them.
static bool endsInWord(StringRef text) { return !text.empty() && (llvm::isAlnum(text.back()) || text.back() == '_'); }

Pattern Builder::pattern(Grammar::PatternContext *tree) {
  std::string text;
  auto *path = tree->path();
  if (tree->PARAM() || tree->RESULT())
    text = tree->PARAM() ? "param " : "result ";
  for (size_t i = path->getStart()->getTokenIndex(); i <= path->getStop()->getTokenIndex(); ++i) {
    const Token *token = tokens.get(i);
    if (token->getChannel() != Token::DEFAULT_CHANNEL)
      continue;
    StringRef word = source.slice(token);
    if (word == "}" && text.back() == ',')
      text.pop_back();
    if (endsInWord(text) && (llvm::isAlnum(word[0]) || word[0] == '_'))
      text += ' ';
    text += word;
  }
  if (tree->QUESTION())
    text += '?';
  Pattern pattern;
  pattern.text = context.copy(StringRef(text));
  pattern.range = range(tree);
  if (auto *dims = tree->patternDims()) {
    pattern.hasDims = true;
    pattern.dimsEllipsis = dims->ELLIPSIS() != nullptr;
    pattern.dims = idents(dims->nameList());
  }
  return pattern;
}

StringRef Builder::plainText(const Token *first, const Token *last) {
  std::string text;
  SMLoc end;
  for (size_t i = first->getTokenIndex(); i <= last->getTokenIndex(); ++i) {
    const Token *token = tokens.get(i);
    if (token->getChannel() != Token::DEFAULT_CHANNEL)
      continue;
    SMRange place = source.range(token);
    if (end.isValid() && end != place.Start)
      text += ' ';
    text += source.slice(place);
    end = place.End;
  }
  return context.copy(StringRef(text));
}
