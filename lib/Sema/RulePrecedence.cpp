//===- RulePrecedence.cpp - which rules of calls stay ---------------------===//
//
// Problem: a strategy that calls others wants to say some things otherwise.
//
//   strategy mine(tp) { megatron(tp = tp); shard V over (); }       // the vocabulary is whole
//   strategy both(dp) { a(); b(); mesh (dp); }                      // a: shard B over dp   b: shard S over dp, B over
//   ()
//
// Algorithm: each piece of a rule decides some subjects, such as "dim 'V'", "the reduction of gradients" or "the
// recomputation of 'layers[*]'". What the rules of one call say of a subject, all together, is one decision, and of two
//   1. the one that the strategy says itself stays, and that of its call goes; a remark says so where they differ,
//   2. of two calls of one strategy both must say the same, and the earlier one goes, because the last statement of
//      several holds; else they contradict each other,
//   3. a part that a job adds with `with` stays, and what is to its left goes, with a remark.
// Decisions are compared by value: axes by their names in the mesh, entries by what they evaluate to, an entry that is
// `none`, or false where that is the default, as if it were not there, and a multiple of padding in decode steps, too.
//
// Limits: two patterns that match the same places by other texts are two subjects here; apply-strategy decides about
// them by RuleOrigin. Pieces that add up (`keep gathered`, `replicate`, `overlap`, `slow rank`) decide nothing, so that
// one which two calls say is there twice.
//
//===----------------------------------------------------------------------===//
#include "RulePrecedence.h"
#include "JobWords.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Walk.h"
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

const ast::LayerRuleStmt *stage::sema::getLayerRule(const ast::Stmt *stmt) {
  return llvm::isa<ast::RecomputeStmt, ast::OffloadStmt, ast::QuantizeStmt>(stmt)
             ? static_cast<const ast::LayerRuleStmt *>(stmt)
             : nullptr;
}

/// A pattern as text, without the names of iterations: `layers[i].x` is about what `layers[*].x` is about.
static std::string getPlace(const ast::Pattern &pattern) {
  std::string text = pattern.text.str();
  StringRef index = pattern.getIndex();
  if (!index.empty() && index != "*" && !llvm::isDigit(index.front()))
    text.replace(pattern.text.find('[') + 1, index.size(), "*");
  std::string dims;
  for (const ast::Ident &dim : pattern.dims)
    dims += ((dims.empty() ? "" : ", ") + dim.name).str();
  return "'" + text + "'" +
         (pattern.hasDims ? ": [" + std::string(pattern.dimsEllipsis ? "..., " : "") + dims + "]" : "");
}

llvm::SmallVector<std::string, 1> RulePiece::listSubjects() const {
  std::string place = at ? " of " + getPlace(*at) : "";
  llvm::SmallVector<std::string, 1> subjects;
  if (item)
    for (const ast::Ident &dim : item->dims)
      subjects.push_back(("dim '" + dim.name + "'").str() + place);
  else if (llvm::isa<ast::PartitionStmt>(stmt))
    subjects.push_back("the partition of state");
  else if (llvm::isa<ast::ReduceStmt>(stmt))
    subjects.push_back("the reduction of gradients");
  else if (llvm::isa<ast::PipelineStmt>(stmt))
    subjects.push_back("the pipeline");
  else if (auto *pad = dyn_cast<ast::PadStmt>(stmt))
    subjects.push_back(("the padding of '" + pad->dim.name + "'").str());
  else if (auto *ring = dyn_cast<ast::RingStmt>(stmt))
    subjects.push_back(("the ring over '" + ring->index.name + "'").str() + place);
  else if (pattern)
    subjects.push_back((llvm::isa<ast::RecomputeStmt>(stmt) ? "the recomputation of "
                        : llvm::isa<ast::OffloadStmt>(stmt) ? "the offloading of "
                                                            : "the quantization of ") +
                       getPlace(*pattern));
  return subjects;
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

bool RulePrecedence::filter(BoundRule &rule, Keeps keeps) {
  const ast::Stmt *left = filterStmt(evaluator.getProgram().getContext(), rule.stmt, nullptr, keeps);
  rule.isTrimmed |= left != rule.stmt;
  rule.stmt = left;
  return left;
}

//===----------------------------------------------------------------------===//
// What they say
//===----------------------------------------------------------------------===//

/// All of a list, however long.
std::string RulePrecedence::format(const CTValue &value) {
  std::string text;
  if (value.getKind() == CTValue::Kind::List || value.getKind() == CTValue::Kind::Tuple) {
    for (const CTValue &element : value.getElements())
      text += (text.empty() ? "" : ", ") + format(element);
    return "[" + text + "]";
  }
  for (const NamedValue &argument : value.getArguments())
    text += (text.empty() ? "" : ", ") + argument.name.name.str() + " = " + format(argument.value);
  return evaluator.format(value) + (text.empty() ? "" : "(" + text + ")");
}

std::optional<std::string> RulePrecedence::getContent(const ast::Expr *expr, const Environment &env) {
  std::optional<CTValue> value = evaluator.evaluate(expr, env);
  return value ? std::optional(format(*value)) : std::nullopt;
}

bool RulePrecedence::addEntries(ArrayRef<ast::Stmt *> entries, const Environment &env, Decision &decision) {
  for (const ast::Stmt *stmt : entries) {
    auto *entry = dyn_cast<ast::EntryStmt>(stmt);
    if (!entry) {
      auto *place = llvm::cast<ast::PlaceStmt>(stmt);
      const CTValue *where = env.find(place->where.name);
      for (const ast::Ident &name : place->names)
        decision.entries.push_back(
            ("place " + name.name + " = " + (where ? format(*where) : place->where.name.str())).str());
      continue;
    }
    if (entry->name.name == scatterGatherWord) {
      llvm::SmallVector<StringRef, 2> axes;
      walk(entry->value, [&](const ast::Expr *part) {
        if (auto *name = dyn_cast<ast::NameExpr>(part))
          llvm::append_range(axes, strategy.expand({ast::Ident{name->name, name->range}, name->range}, &env));
      });
      if (!axes.empty())
        decision.entries.push_back((entry->name.name + " = (" + llvm::join(axes, ", ") + ")").str());
      continue;
    }
    std::optional<CTValue> value = evaluator.evaluate(entry->value, env);
    if (!value)
      return false;
    // `overlap = false` is another thing than no such entry.
    bool isUsual = value->isNone() || (value->isBool() && !value->getBool() && entry->name.name != "overlap");
    if (!isUsual)
      decision.entries.push_back((entry->name.name + " = " + format(*value)).str());
  }
  llvm::sort(decision.entries);
  return true;
}

/// Adds what a piece says. False if a value could not be evaluated.
bool RulePrecedence::addContent(const BoundRule &rule, const RulePiece &piece, Decision &decision) {
  std::string &text = decision.content;
  const Environment &env = *rule.env;
  bool good = true;
  auto add = [&](const char *before, const ast::Expr *expr) {
    std::optional<std::string> value = expr ? getContent(expr, env) : "";
    good &= value.has_value();
    if (expr)
      text += before + value.value_or("");
  };
  text += text.empty() ? "" : "; ";
  size_t begin = text.size();
  if (piece.item) {
    for (const ast::Ident &dim : piece.item->dims)
      text += ((text.size() == begin ? "" : ", ") + dim.name).str();
  } else if (auto *partition = dyn_cast<ast::PartitionStmt>(piece.stmt)) {
    text += partition->what.name;
  }
  if (const ast::AxisListSyntax *axes = piece.getAxes())
    text += (text.size() == begin ? "over (" : " over (") + llvm::join(strategy.expand(*axes, &env), ", ") + ")";
  if (piece.item) {
    // `order blocked` is as without an order.
    std::optional<std::string> order = piece.item->order ? getContent(piece.item->order, env) : "";
    good &= order.has_value();
    if (order && !order->empty() && *order != "blocked")
      text += " order " + *order;
  } else if (auto *partition = dyn_cast<ast::PartitionStmt>(piece.stmt)) {
    for (const ast::Pattern &unit : partition->units)
      text += (" by unit " + unit.text).str();
    good &= addEntries(partition->entries, env, decision);
  } else if (auto *reduce = dyn_cast<ast::ReduceStmt>(piece.stmt)) {
    good &= addEntries(reduce->entries, env, decision);
  } else if (auto *pipeline = dyn_cast<ast::PipelineStmt>(piece.stmt)) {
    for (const ast::Pattern &repeat : pipeline->repeats)
      text += (" " + repeat.text).str();
    good &= addEntries(pipeline->entries, env, decision);
  } else if (auto *pad = dyn_cast<ast::PadStmt>(piece.stmt)) {
    add("to ", pad->to);
    Evaluator::Phase now = evaluator.getPhase();
    evaluator.setPhase({/*decoding=*/true, /*continuing=*/true, /*inferring=*/true});
    Environment again(env.getFile());
    std::optional<std::string> inSteps =
        evaluateAgain(evaluator, *rule.call, env, again) ? getContent(pad->to, again) : std::nullopt;
    evaluator.setPhase(now);
    good &= inSteps.has_value();
    if (inSteps && !StringRef(text).endswith("to " + *inSteps))
      text += ", in decode steps to " + *inSteps;
  } else if (const ast::LayerRuleStmt *layers = getLayerRule(piece.stmt)) {
    if (auto *offload = dyn_cast<ast::OffloadStmt>(piece.stmt))
      add("after ", offload->after);
    if (auto *quantize = dyn_cast<ast::QuantizeStmt>(piece.stmt)) {
      add("as ", quantize->what);
      add(" by ", quantize->blocks);
    }
    if (layers->condition) { // about iterations, whose numbers are no values here
      text += " if " + textOf(layers->condition);
      walk(layers->condition, [&](const ast::Expr *part) {
        auto *name = dyn_cast<ast::NameExpr>(part);
        const CTValue *value = name ? env.find(name->name) : nullptr;
        if (value)
          text += (" where " + name->name + " is ").str() + format(*value);
      });
    }
    good &= addEntries(layers->entries, env, decision);
  }
  return good;
}

//===----------------------------------------------------------------------===//
// Two lists of rules
//===----------------------------------------------------------------------===//

RulePrecedence::Decisions RulePrecedence::decide(ArrayRef<BoundRule> rules) {
  Decisions decisions;
  for (const BoundRule &rule : rules)
    forEachPiece(*rule.stmt, nullptr, [&](const RulePiece &piece) {
      for (const std::string &subject : piece.listSubjects())
        decisions[subject].pieces.emplace_back(&rule, piece);
    });
  return decisions;
}

bool RulePrecedence::read(Decision &decision) {
  bool good = true;
  for (const auto &[rule, piece] : decision.pieces)
    good &= addContent(*rule, piece, decision);
  return good;
}

void RulePrecedence::drop(std::vector<BoundRule> &rules, const llvm::StringSet<> &subjects) {
  if (subjects.empty())
    return;
  llvm::erase_if(rules, [&](BoundRule &rule) {
    return !filter(rule, [&](const RulePiece &piece) {
      return llvm::none_of(piece.listSubjects(),
                           [&](const std::string &subject) { return subjects.contains(subject); });
    });
  });
}

/// The text of a rule on one line, for messages.
static std::string getText(const RulePiece &piece) {
  return (piece.at ? "at " + piece.at->text.str() + ": " : "") + textOf(piece.stmt);
}

/// `over (dp, cp), bucket = 25MiB`
static std::string describe(const std::string &content, ArrayRef<std::string> entries) {
  return content + (content.empty() || entries.empty() ? "" : ", ") + llvm::join(entries, ", ");
}

bool RulePrecedence::replace(std::vector<BoundRule> &rules, ArrayRef<BoundRule> stronger, bool warnsOfLost) {
  Decisions mine = decide(rules), theirs = decide(stronger);
  llvm::StringSet<> subjects;
  DiagnosticEngine &diags = evaluator.getDiags();
  bool saysNew = stronger.empty();
  for (const BoundRule &rule : stronger)
    forEachPiece(*rule.stmt, nullptr, [&](const RulePiece &piece) { saysNew |= piece.listSubjects().empty(); });
  for (auto &[subject, by] : theirs) {
    auto found = mine.find(subject);
    saysNew |= found == mine.end();
    if (found == mine.end())
      continue;
    Decision &old = found->second;
    if (!read(old) || !read(by))
      return false;
    subjects.insert(subject);
    if (old.content == by.content && old.entries == by.entries)
      continue;
    saysNew = true;
    const BoundCall &caller = *by.getRule().call, &replaced = *old.getRule().call;
    diags.report(by.getPiece().stmt->loc(), diag::RuleReplaced)
        .range(by.getPiece().stmt->range)
        .with(subject, caller.str(), replaced.str())
        .note(old.getPiece().stmt->loc(), diag::RuleHere)
        .with(getText(old.getPiece()), describe(old.content, old.entries));
    std::string lost;
    for (const std::string &entry : old.entries) {
      StringRef name = StringRef(entry).split(" = ").first;
      bool isSaid = llvm::any_of(by.entries, [&](StringRef other) { return other.split(" = ").first == name; });
      if (!isSaid && entry != "send = at_end")
        lost += (lost.empty() ? "" : ", ") + entry;
    }
    if (warnsOfLost && !lost.empty())
      diags.report(caller.range.Start, diag::EntriesLost).range(caller.range)
          << caller.str() << subject << replaced.str() << lost;
  }
  if (warnsOfLost && !saysNew)
    diags.report(stronger.front().call->range.Start, diag::PartSaysNothingNew).range(stronger.front().call->range)
        << stronger.front().call->str();
  drop(rules, subjects);
  return true;
}

bool RulePrecedence::merge(std::vector<BoundRule> &others, ArrayRef<BoundRule> rules) {
  Decisions mine = decide(rules), theirs = decide(others);
  llvm::StringSet<> subjects;
  std::string contradictions;
  const Decision *first = nullptr, *second = nullptr;
  for (auto &[subject, decision] : mine) {
    auto found = theirs.find(subject);
    if (found == theirs.end())
      continue;
    Decision &other = found->second;
    if (!read(decision) || !read(other))
      return false;
    subjects.insert(subject);
    if (other.content == decision.content && other.entries == decision.entries)
      continue;
    contradictions += (contradictions.empty() ? "" : ", ") + subject;
    if (!first) {
      first = &other;
      second = &decision;
    }
  }
  if (first)
    evaluator.getDiags()
        .report(second->getRule().call->range.Start, diag::CallsContradict)
        .range(second->getRule().call->range)
        .with(first->getRule().call->str(), second->getRule().call->str(), contradictions)
        .note(first->getPiece().stmt->loc(), diag::RuleHere)
        .with(getText(first->getPiece()), describe(first->content, first->entries))
        .note(second->getPiece().stmt->loc(), diag::RuleHere)
        .with(getText(second->getPiece()), describe(second->content, second->entries));
  drop(others, subjects);
  return !first;
}
