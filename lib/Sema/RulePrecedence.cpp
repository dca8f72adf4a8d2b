//===- RulePrecedence.cpp - which rules of calls stay ---------------------===//
//
// Problem: a strategy that calls others wants to say some things otherwise.
//
//   strategy mine(tp) { megatron(tp = tp); shard V over (); }       // the vocabulary is whole
//   strategy both(dp) { a(); b(); mesh (dp); }                      // a: shard B over dp   b: shard S over dp, B over
//   ()
//
// Algorithm: each piece of a rule decides some subjects, such as "dim 'V'", "how gradients are reduced" or "what is
// recomputed of 'layers[*]'". Of two pieces about one subject
//   1. the one that the strategy says itself stays, and that of its call goes; a remark says so where they differ,
//   2. of two calls of one strategy both must say the same, and one is dropped; else they contradict each other,
//   3. a part that a job adds with `with` stays, and what is to its left goes, with a remark.
// What pieces say is compared by value: axes by their names in the mesh, entries by what they evaluate to, and an entry
// that is `none` as if it were not there.
//
// Limits: two patterns that match the same places by other texts are two subjects here; apply-strategy decides about
// them by RuleOrigin. Pieces that add up (`keep gathered`, `replicate`, `slow rank`) decide nothing.
//
//===----------------------------------------------------------------------===//
#include "RulePrecedence.h"
#include "stage/Sema/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

std::string BoundCall::str() const {
  constexpr size_t maxText = 60;
  std::string text = expr ? ast::textOf(expr) : callee->name.name.str();
  if (text.size() > maxText)
    text = (callee->name.name + "(...)").str();
  return caller ? caller->str() + " > " + text : (addition ? "with " : "") + text;
}

RuleOrigin BoundCall::getOrigin() const {
  RuleOrigin origin;
  origin.addition = addition;
  for (const BoundCall *call = this; call->caller; call = call->caller)
    origin.calls.insert(origin.calls.begin(), call->number);
  return origin;
}

std::vector<RulesOfCall> stage::sema::listCalls(const BoundStrategy &strategy) {
  std::vector<RulesOfCall> calls;
  for (const BoundRule &rule : strategy.rules) {
    auto known = llvm::find_if(calls, [&](const RulesOfCall &of) { return of.call == rule.call; });
    RulesOfCall &of = known == calls.end() ? calls.emplace_back(RulesOfCall{rule.call, 0, {}}) : *known;
    ++of.numRules;
    forEachPiece(*rule.stmt, nullptr, [&](const RulePiece &piece) {
      if (const ast::AxisListSyntax *axes = piece.getAxes())
        for (StringRef axis : strategy.expand(*axes, rule.env))
          if (!llvm::is_contained(of.axes, axis))
            of.axes.push_back(axis);
    });
  }
  return calls;
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

const ast::AxisListSyntax *RulePiece::getAxes() const {
  if (item)
    return &item->axes;
  if (auto *keep = dyn_cast<ast::KeepStmt>(stmt))
    return &keep->axes;
  if (auto *ring = dyn_cast<ast::RingStmt>(stmt))
    return &ring->axes;
  if (auto *replicate = dyn_cast<ast::ReplicateStmt>(stmt))
    return replicate->hasAxes ? &replicate->axes : nullptr;
  if (auto *pipeline = dyn_cast<ast::PipelineStmt>(stmt))
    return &pipeline->axes;
  if (auto *partition = dyn_cast<ast::PartitionStmt>(stmt))
    return &partition->axes;
  if (auto *reduce = dyn_cast<ast::ReduceStmt>(stmt))
    return &reduce->axes;
  if (auto *overlap = dyn_cast<ast::OverlapStmt>(stmt))
    return overlap->hasAxes ? &overlap->axes : nullptr;
  if (auto *slow = dyn_cast<ast::SlowStmt>(stmt))
    return &slow->axes;
  return nullptr;
}

llvm::SmallVector<std::string, 1> RulePiece::listSubjects() const {
  std::string place = at ? " of '" + at->text.str() + "'" : "";
  llvm::SmallVector<std::string, 1> subjects;
  if (item)
    for (const ast::Ident &dim : item->dims)
      subjects.push_back(("dim '" + dim.name + "'").str() + place);
  else if (auto *partition = dyn_cast<ast::PartitionStmt>(stmt))
    subjects.push_back(("the partition of '" + partition->what.name + "'").str());
  else if (llvm::isa<ast::ReduceStmt>(stmt))
    subjects.push_back("the reduction of gradients");
  else if (llvm::isa<ast::PipelineStmt>(stmt))
    subjects.push_back("the pipeline");
  else if (auto *pad = dyn_cast<ast::PadStmt>(stmt))
    subjects.push_back(("the padding of '" + pad->dim.name + "'").str());
  else if (auto *ring = dyn_cast<ast::RingStmt>(stmt))
    subjects.push_back(("the ring over '" + ring->index.name + "'").str() + place);
  else if (pattern)
    subjects.push_back((llvm::isa<ast::RecomputeStmt>(stmt) ? "the recomputation of '"
                        : llvm::isa<ast::OffloadStmt>(stmt) ? "the offloading of '"
                                                            : "the quantization of '") +
                       pattern->text.str() + "'");
  auto *layers = pattern ? static_cast<const ast::LayerRuleStmt *>(stmt) : nullptr;
  if (layers && layers->condition) // of some layers
    subjects.front() += " if " + ast::textOf(layers->condition);
  return subjects;
}

static const ast::LayerRuleStmt *getLayerRule(const ast::Stmt *stmt) {
  return llvm::isa<ast::RecomputeStmt, ast::OffloadStmt, ast::QuantizeStmt>(stmt)
             ? static_cast<const ast::LayerRuleStmt *>(stmt)
             : nullptr;
}

void stage::sema::forEachPiece(const ast::Stmt &stmt, const ast::Pattern *at,
                               llvm::function_ref<void(const RulePiece &)> visit) {
  if (auto *block = dyn_cast<ast::AtStmt>(&stmt)) {
    for (const ast::Stmt *inner : block->rules)
      forEachPiece(*inner, &block->pattern, visit);
  } else if (auto *shard = dyn_cast<ast::ShardStmt>(&stmt)) {
    for (const ast::ShardStmt::Item &item : shard->items)
      visit({at, &stmt, &item, nullptr});
  } else if (const ast::LayerRuleStmt *layers = getLayerRule(&stmt)) {
    for (const ast::Pattern &pattern : layers->patterns)
      visit({at, &stmt, nullptr, &pattern});
  } else {
    visit({at, &stmt, nullptr, nullptr});
  }
}

/// A list with those items that stay; `changed` is set if some do not.
template <typename T>
static ArrayRef<T> keep(ast::ASTContext &context, ArrayRef<T> items, llvm::function_ref<bool(const T &)> stays,
                        bool &changed) {
  llvm::SmallVector<T, 8> kept;
  llvm::copy_if(items, std::back_inserter(kept), stays);
  changed |= kept.size() != items.size();
  return context.copy(ArrayRef<T>(kept));
}

using Keeps = llvm::function_ref<bool(const RulePiece &)>;

static const ast::Stmt *filterStmt(ast::ASTContext &context, const ast::Stmt *stmt, const ast::Pattern *at,
                                   Keeps keeps) {
  bool changed = false;
  if (auto *block = dyn_cast<ast::AtStmt>(stmt)) {
    ast::AtStmt copy = *block;
    llvm::SmallVector<ast::Stmt *, 4> rules;
    for (ast::Stmt *inner : block->rules) {
      auto *kept = const_cast<ast::Stmt *>(filterStmt(context, inner, &block->pattern, keeps));
      changed |= kept != inner;
      if (kept)
        rules.push_back(kept);
    }
    copy.rules = context.copy(ArrayRef<ast::Stmt *>(rules));
    return !changed ? stmt : rules.empty() ? nullptr : context.create(copy);
  }
  if (auto *shard = dyn_cast<ast::ShardStmt>(stmt)) {
    ast::ShardStmt copy = *shard;
    copy.items = keep<ast::ShardStmt::Item>(
        context, shard->items,
        [&](const auto &item) {
          return keeps({at, stmt, &item, nullptr});
        },
        changed);
    return !changed ? stmt : copy.items.empty() ? nullptr : context.create(copy);
  }
  const ast::LayerRuleStmt *layers = getLayerRule(stmt);
  if (!layers)
    return keeps({at, stmt, nullptr, nullptr}) ? stmt : nullptr;
  ArrayRef<ast::Pattern> patterns = keep<ast::Pattern>(
      context, layers->patterns,
      [&](const auto &pattern) {
        return keeps({at, stmt, nullptr, &pattern});
      },
      changed);
  if (!changed || patterns.empty())
    return changed ? nullptr : stmt;
  auto copyAs = [&](auto copy) -> const ast::Stmt * {
    copy.patterns = patterns;
    return context.create(copy);
  };
  if (auto *recompute = dyn_cast<ast::RecomputeStmt>(stmt))
    return copyAs(*recompute);
  if (auto *offload = dyn_cast<ast::OffloadStmt>(stmt))
    return copyAs(*offload);
  return copyAs(*llvm::cast<ast::QuantizeStmt>(stmt));
}

const ast::Stmt *RulePrecedence::filter(const BoundRule &rule, Keeps keeps) {
  return filterStmt(evaluator.getProgram().getContext(), rule.stmt, nullptr, keeps);
}

//===----------------------------------------------------------------------===//
// What they say
//===----------------------------------------------------------------------===//

std::optional<std::string> RulePrecedence::getContent(const ast::Expr *expr, const Environment &env) {
  if (!expr)
    return "";
  std::optional<CTValue> value = evaluator.evaluate(expr, env);
  return value ? std::optional(evaluator.format(*value)) : std::nullopt;
}

std::optional<std::string> RulePrecedence::getContent(ArrayRef<ast::Stmt *> entries, const Environment &env) {
  std::vector<std::string> texts;
  for (const ast::Stmt *stmt : entries) {
    auto *entry = dyn_cast<ast::EntryStmt>(stmt);
    if (!entry) {
      auto *place = llvm::cast<ast::PlaceStmt>(stmt);
      for (const ast::Ident &name : place->names)
        texts.push_back(("place " + name.name + " = " + place->where.name).str());
      continue;
    }
    std::optional<CTValue> value = evaluator.evaluate(entry->value, env);
    if (!value)
      return std::nullopt;
    std::string arguments;
    for (const NamedValue &argument : value->getArguments())
      arguments += (" " + argument.name.name + " " + evaluator.format(argument.value)).str();
    if (!value->isNone())
      texts.push_back((entry->name.name + " = " + evaluator.format(*value) + arguments).str());
  }
  llvm::sort(texts);
  return llvm::join(texts, "; ");
}

std::optional<std::string> RulePrecedence::getContent(const BoundRule &rule, const RulePiece &piece) {
  std::string text;
  bool good = true;
  auto add = [&](std::optional<std::string> part) {
    good &= part.has_value();
    text += " " + part.value_or("");
  };
  if (const ast::AxisListSyntax *axes = piece.getAxes())
    text = "(" + llvm::join(strategy.expand(*axes, rule.env), ", ") + ")";
  if (piece.item) {
    for (const ast::Ident &dim : piece.item->dims)
      text += (" " + dim.name).str();
    add(getContent(piece.item->order, *rule.env));
  } else if (auto *partition = dyn_cast<ast::PartitionStmt>(piece.stmt)) {
    for (const ast::Pattern &unit : partition->units)
      text += (" by " + unit.text).str();
    add(getContent(partition->entries, *rule.env));
  } else if (auto *reduce = dyn_cast<ast::ReduceStmt>(piece.stmt)) {
    add(getContent(reduce->entries, *rule.env));
  } else if (auto *pipeline = dyn_cast<ast::PipelineStmt>(piece.stmt)) {
    for (const ast::Pattern &repeat : pipeline->repeats)
      text += (" " + repeat.text).str();
    add(getContent(pipeline->entries, *rule.env));
  } else if (auto *pad = dyn_cast<ast::PadStmt>(piece.stmt)) {
    add(getContent(pad->to, *rule.env));
  } else if (const ast::LayerRuleStmt *layers = getLayerRule(piece.stmt)) {
    add(getContent(layers->entries, *rule.env));
    if (auto *offload = dyn_cast<ast::OffloadStmt>(piece.stmt))
      add(getContent(offload->after, *rule.env));
    if (auto *quantize = dyn_cast<ast::QuantizeStmt>(piece.stmt)) {
      add(getContent(quantize->what, *rule.env));
      add(getContent(quantize->blocks, *rule.env));
    }
  }
  return good ? std::optional(text) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Two lists of rules
//===----------------------------------------------------------------------===//

RulePrecedence::Subjects RulePrecedence::index(ArrayRef<BoundRule> rules) {
  Subjects subjects;
  for (const BoundRule &rule : rules)
    forEachPiece(*rule.stmt, nullptr, [&](const RulePiece &piece) {
      for (const std::string &subject : piece.listSubjects())
        subjects.try_emplace(subject, Found{&rule, piece});
    });
  return subjects;
}

bool RulePrecedence::compare(
    std::vector<BoundRule> &rules, const Subjects &known,
    llvm::function_ref<bool(const BoundRule &, const RulePiece &, StringRef, const Found &, bool)> stays) {
  bool good = true;
  std::vector<BoundRule> kept;
  for (BoundRule &rule : rules) {
    const ast::Stmt *left = filter(rule, [&](const RulePiece &piece) {
      for (const std::string &subject : piece.listSubjects()) {
        auto found = known.find(subject);
        if (found == known.end())
          continue;
        std::optional<std::string> mine = getContent(rule, piece),
                                   theirs = getContent(*found->second.rule, found->second.piece);
        good &= mine && theirs;
        if (mine && theirs && !stays(rule, piece, subject, found->second, *mine == *theirs))
          return false;
      }
      return true;
    });
    if (left) {
      rule.stmt = left;
      kept.push_back(std::move(rule));
    }
  }
  rules = std::move(kept);
  return good;
}

/// The text of a rule on one line, for messages.
static std::string getText(const RulePiece &piece) {
  return (piece.at ? "at " + piece.at->text.str() + ": " : "") + textOf(piece.stmt);
}

bool RulePrecedence::replace(std::vector<BoundRule> &rules, ArrayRef<BoundRule> stronger) {
  return compare(rules, index(stronger),
                 [&](const BoundRule &rule, const RulePiece &piece, StringRef subject, const Found &by, bool isSame) {
                   if (!isSame)
                     evaluator.getDiags()
                         .report(by.piece.stmt->loc(), diag::RuleReplaced)
                         .range(by.piece.stmt->range)
                         .with(subject, by.rule->call->str(), rule.call->str())
                         .note(piece.stmt->loc(), diag::RuleHere)
                         .with(getText(piece));
                   return false;
                 });
}

bool RulePrecedence::merge(ArrayRef<BoundRule> others, std::vector<BoundRule> &rules) {
  bool good = true;
  bool evaluated =
      compare(rules, index(others),
              [&](const BoundRule &rule, const RulePiece &piece, StringRef subject, const Found &other, bool isSame) {
                if (!isSame) {
                  good = false;
                  evaluator.getDiags()
                      .report(rule.call->range.Start, diag::CallsContradict)
                      .range(rule.call->range)
                      .with(other.rule->call->str(), rule.call->str(), subject)
                      .note(other.piece.stmt->loc(), diag::RuleHere)
                      .with(getText(other.piece))
                      .note(piece.stmt->loc(), diag::RuleHere)
                      .with(getText(piece));
                }
                return false;
              });
  return good && evaluated;
}
