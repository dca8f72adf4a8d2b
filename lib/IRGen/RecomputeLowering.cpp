//===- RecomputeLowering.cpp - which layers are made again, or offloaded --===//
//
// Problem: a strategy may have some layers made again, or kept on the host, and keep what others need, and says so by
// their numbers:
//
//   recompute layers[i] if i % 2 == 0;                  layers 0, 2, 4, ...
//   offload layers[*].mlp to host { first = 2; }        the first two of each virtual stage
//   recompute layers[*] { group = 4; }                  four layers together: their inputs are not kept
//   quantize layers[i].**.linear() as f8 if i > 0;      all layers but the first
//
// Algorithm: for each repeat that the pattern means, up to its brackets, the condition is evaluated for the number of
// each iteration, and the pipeline's cut says which are the first of their stage. The repeat is split into cases of
// those that are chosen and others (SplitCases.h), and the rule speaks of the former. What an earlier rule says of
// a case it says of the part that is split off, too. In the end repeats of which several iterations are made again
// together are made of groups (GroupIterations.h): then the inputs of inner layers are values of a group like others.
//
//===----------------------------------------------------------------------===//
#include "ModuleLowering.h"
#include "stage/IR/graph/GroupIterations.h"
#include "stage/IR/graph/PipelineChain.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IR/graph/SplitCases.h"
#include "stage/IR/graph/Walk.h"
#include "stage/IR/text/Text.h"
#include "stage/IRGen/Diagnostics.h"
#include "stage/Schedule/BalancedSplit.h"
#include "llvm/ADT/StringSwitch.h"
#include <map>
#include <numeric>

using namespace stage;

namespace {
class RecomputeLowering {
public:
  RecomputeLowering(Graph &graph, sema::Evaluator &evaluator)
      : graph(graph), evaluator(evaluator), diags(evaluator.getDiags()) {}

  bool lower(const LayerStatement &statement) {
    UserPlace place(diags, statement.bound.call->getOutermost().range.Start);
    const ast::LayerRuleStmt &stmt = *statement.stmt;
    Rule rule = statement.rule;
    rule.kind = RuleKind::Recompute;
    if (auto *offload = llvm::dyn_cast<ast::OffloadStmt>(&stmt)) {
      rule.kind = RuleKind::Offload;
      if (!lowerDepth(*offload, *statement.bound.env, rule.depth))
        return false;
    }
    if (auto *quantize = llvm::dyn_cast<ast::QuantizeStmt>(&stmt)) {
      rule.kind = RuleKind::Quantize;
      if (!lowerQuantization(*quantize, *statement.bound.env, rule))
        return false;
    }
    int64_t first = 0, group = 0; // all; each by itself
    for (const ast::Stmt *entry : stmt.entries)
      if (!lowerEntry(llvm::cast<ast::EntryStmt>(*entry), *statement.bound.env, rule, first, group))
        return false;
    if (group > 1 && !findGrouped(statement, first, group))
      return false;
    for (const ast::Pattern &syntax : stmt.patterns) {
      std::optional<RuleKind> state = getOffloadedState(stmt, syntax);
      if (!(state ? lowerState(stmt, syntax, *statement.bound.env, rule, *state)
                  : lowerPatternOf(stmt, syntax, *statement.bound.env, rule, first)))
        return false;
    }
    return true;
  }

  /// Makes groups of iterations: of those that a virtual stage runs of a repeat, the last one may be shorter.
  bool group() {
    std::vector<Op *> cut = findPipelinedRepeats(graph);
    bool isCut =
        !llvm::is_contained(cut, nullptr) && llvm::any_of(cut, [&](Op *op) { return grouped.count(op->loop); });
    std::vector<int64_t> split(isCut ? countVirtualStages(graph) : 0);
    std::map<unsigned, std::vector<int64_t>> lengths; // by loop
    for (auto &[loop, grouping] : grouped) {
      auto refuse = [&](const llvm::Twine &why) {
        diags.report(grouping.syntax->range.Start, diag::BadRecomputeGroup).range(grouping.syntax->range)
            << grouping.length << grouping.syntax->text << why;
        return false;
      };
      SizeValue count = evaluateCount(grouping.repeat->count, graph.binding);
      if (!count || count.value.num > maxIterations)
        return refuse("it has " + (count ? count.value.str() : "an unknown number of") + " iterations, and at most " +
                      llvm::Twine(maxIterations) + " can be grouped");
      if (llvm::any_of(ofLoops, [&](auto &of) { return of.second == loop; }))
        return refuse("another statement tells some of its layers from others");
      if (isCut && graph.pipeline.balance != Balance::None)
        return refuse("stages that are balanced are cut once it is known what is made again");
      bool hasRepeats = false;
      for (auto &body : grouping.repeat->bodies)
        hasRepeats |= llvm::any_of(*body, [](auto &op) { return op->kind == OpKind::Repeat; });
      if (hasRepeats)
        return refuse("it has a repeat inside of it");
      if (!llvm::is_contained(cut, grouping.repeat))
        append(lengths[loop], count.value.num, grouping.length);
    }
    if (isCut && !fits(cut))
      return true; // refused where it is cut
    if (isCut) {
      PipelineChain chain = getChain(cut);
      for (unsigned stage = 0; stage < split.size(); ++stage)
        for (unsigned number = 0; number < cut.size(); ++number) {
          auto [begin, end] = chain.getRange(number, stage);
          auto found = grouped.find(cut[number]->loop);
          split[stage] +=
              found == grouped.end() ? end - begin : append(lengths[found->first], end - begin, found->second.length);
        }
      graph.pipeline.split = split;
    }
    for (auto &[loop, grouping] : grouped) {
      llvm::ArrayRef<int64_t> groups = lengths[loop];
      if (groups.empty())
        continue;
      if (llvm::all_of(groups, [&](int64_t length) { return length == groups.front(); }))
        graph.obligations.add(Obligations::Kind::Divides, grouping.repeat->count, graph.sizes.constant(groups.front()),
                              grouping.syntax->range.Start, "groups of layers that are made again together");
      groupIterations(graph, *grouping.repeat, groups);
    }
    return true;
  }

private:
  struct Grouping {
    const Op *repeat;
    int64_t length;
    const ast::Pattern *syntax;
  };

  /// How many groups so many iterations are.
  static int64_t append(std::vector<int64_t> &lengths, int64_t count, int64_t length) {
    size_t before = lengths.size();
    for (; count > 0; count -= lengths.back())
      lengths.push_back(std::min(count, length));
    return lengths.size() - before;
  }

  std::vector<int64_t> listCounts(llvm::ArrayRef<Op *> cut) const {
    std::vector<int64_t> counts;
    for (const Op *op : cut) {
      SizeValue count = evaluateCount(op->count, graph.binding);
      counts.push_back(count ? int64_t(count.value.num) : 0);
    }
    return counts;
  }

  /// The iterations that the strategy gives each virtual stage are those that there are.
  bool fits(llvm::ArrayRef<Op *> cut) const {
    std::vector<int64_t> counts = listCounts(cut), split = graph.pipeline.split;
    return split.empty() ||
           (split.size() == countVirtualStages(graph) && std::accumulate(split.begin(), split.end(), int64_t(0)) ==
                                                             std::accumulate(counts.begin(), counts.end(), int64_t(0)));
  }

  /// Of the repeats that the pipeline cuts. What does not fit is refused where it is cut.
  PipelineChain getChain(llvm::ArrayRef<Op *> cut) const {
    std::vector<int64_t> counts = listCounts(cut);
    bool isGiven = fits(cut) && !graph.pipeline.split.empty();
    return PipelineChain(counts, isGiven ? graph.pipeline.split
                                         : splitEvenly(std::accumulate(counts.begin(), counts.end(), int64_t(0)),
                                                       countVirtualStages(graph)));
  }

  static constexpr int64_t maxBlock = 1 << 30;
  static constexpr unsigned maxDepth = 1024;
  bool lowerDepth(const ast::OffloadStmt &stmt, const sema::Environment &env, unsigned &depth) {
    depth = 1;
    if (!stmt.after)
      return true;
    std::optional<int64_t> number = evaluator.evaluateInteger(stmt.after, env, "the number of layers after 'after'");
    if (number && (*number < 0 || *number > maxDepth))
      diags.report(stmt.after->loc(), diag::BadOffloadDepth).range(stmt.after->range) << *number << int64_t(maxDepth);
    depth = number.value_or(0);
    return number && *number >= 0 && *number <= maxDepth;
  }

  /// The element type that a word means, if it has fewer bits than any that numbers are computed in; nothing after an
  /// error.
  std::optional<DType> lowerSmallType(const ast::Expr &expr, const sema::CTValue &value) {
    std::optional<DType> type =
        value.getKind() == sema::CTValue::Kind::Word ? parseDType(value.getText()) : std::nullopt;
    if (type && getBitSize(*type) <= 8 && *type != DType::U8)
      return type;
    diags.report(expr.loc(), diag::BadQuantization).range(expr.range) << evaluator.format(value);
    return std::nullopt;
  }

  bool lowerQuantization(const ast::QuantizeStmt &stmt, const sema::Environment &env, Rule &rule) {
    std::optional<sema::CTValue> what = evaluator.evaluate(stmt.what, env);
    if (!what || (!what->isNone() && !(rule.type = lowerSmallType(*stmt.what, *what))))
      return false;
    return !stmt.blocks || lowerBlocks(*stmt.blocks, env, rule);
  }

  /// `by 128`: `by (1, 128)`.
  bool lowerBlocks(const ast::Expr &expr, const sema::Environment &env, Rule &rule) {
    std::optional<sema::CTValue> value = evaluator.evaluate(&expr, env);
    if (!value || value->isNone())
      return value.has_value();
    bool isList = value->getKind() == sema::CTValue::Kind::Tuple || value->getKind() == sema::CTValue::Kind::List;
    std::vector<sema::CTValue> sizes;
    if (isList)
      sizes.assign(value->getElements().begin(), value->getElements().end());
    else
      sizes = {sema::CTValue::integer(1), *value};
    for (const sema::CTValue &size : sizes) {
      std::optional<int64_t> number = size.getInteger();
      if (!number && size.isNumber() && !size.isReal())
        if (SizeValue count = evaluateCount(size.getSize(graph.sizes), graph.binding))
          number = int64_t(count.value.num);
      if (sizes.size() != 2 || !number || *number < 1 || *number > maxBlock) {
        diags.report(expr.loc(), diag::BadBlocks).range(expr.range) << maxBlock << evaluator.format(*value);
        return false;
      }
      rule.blocks.push_back(*number);
    }
    return true;
  }

  bool lowerEntry(const ast::EntryStmt &entry, const sema::Environment &env, Rule &rule, int64_t &first,
                  int64_t &group) {
    if (entry.name.name == "whole") {
      std::optional<bool> isWhole = evaluator.evaluateCondition(entry.value, env);
      rule.isWhole = isWhole.value_or(false);
      return isWhole.has_value();
    }
    if (entry.name.name == "dequantize") {
      std::optional<bool> isApart = evaluator.evaluateCondition(entry.value, env);
      rule.dequantizes = isApart.value_or(false);
      return isApart.has_value();
    }
    std::optional<sema::CTValue> value = evaluator.evaluate(entry.value, env);
    if (!value || value->isNone())
      return value.has_value();
    if (entry.name.name == "again") {
      rule.gathersAll = value->getKind() == sema::CTValue::Kind::Word && value->getText() == "all";
      if (!rule.gathersAll)
        diags.report(entry.value->loc(), diag::BadAgain).range(entry.value->range) << value->describeKind();
      return rule.gathersAll;
    }
    if (entry.name.name == "scales") {
      std::optional<DType> type =
          value->getKind() == sema::CTValue::Kind::Word ? parseDType(value->getText()) : std::nullopt;
      if (!type || !isFloat(*type))
        diags.report(entry.value->loc(), diag::BadScales).range(entry.value->range) << evaluator.format(*value);
      rule.scales = type.value_or(DType::F32);
      return type && isFloat(*type);
    }
    std::string name = "'" + entry.name.name.str() + "'";
    std::optional<int64_t> number = evaluator.evaluateInteger(entry.value, env, name);
    if (number && *number < 1)
      diags.report(entry.value->loc(), diag::RecomputeFirst).range(entry.value->range)
          << evaluator.format(*value) << name;
    (entry.name.name == "first" ? first : group) = number.value_or(0);
    return number.value_or(0) > 0;
  }

  /// The repeats whose iterations a statement groups: they become groups when all statements have been lowered.
  bool findGrouped(const LayerStatement &statement, int64_t first, int64_t group) {
    const ast::LayerRuleStmt &stmt = *statement.stmt;
    for (const ast::Pattern &syntax : stmt.patterns) {
      auto refuse = [&](const llvm::Twine &why) {
        diags.report(syntax.range.Start, diag::BadRecomputeGroup).range(syntax.range) << group << syntax.text << why;
        return false;
      };
      std::optional<PathPattern> ofRepeat = PathPattern::parse(syntax.text);
      std::vector<Op *> repeats;
      for (auto &op : graph.getForward())
        if (ofRepeat && op->kind == OpKind::Repeat && ofRepeat->matchesPath(joinPath(op->scope, op->name)))
          repeats.push_back(op.get());
      if (repeats.empty())
        return refuse("it is no repeat of the model, as 'layers[*]'");
      if (first || stmt.condition)
        return refuse("'first' and 'if' tell layers from others, which groups do not");
      for (const Op *repeat : repeats) {
        auto [known, isNew] = grouped.try_emplace(repeat->loop, Grouping{repeat, group, &syntax});
        if (!isNew && known->second.length != group)
          return refuse("another statement has groups of " + llvm::Twine(known->second.length));
      }
    }
    return true;
  }

  /// `offload optimizer, parameters to host`: not what values are kept, but state.
  static std::optional<RuleKind> getOffloadedState(const ast::LayerRuleStmt &stmt, const ast::Pattern &syntax) {
    if (!llvm::isa<ast::OffloadStmt>(stmt) || syntax.hasDims)
      return std::nullopt;
    return llvm::StringSwitch<std::optional<RuleKind>>(syntax.text)
        .Case("optimizer", RuleKind::OffloadOptimizer)
        .Case("parameters", RuleKind::OffloadParameters)
        .Default(std::nullopt);
  }

  bool lowerState(const ast::LayerRuleStmt &stmt, const ast::Pattern &syntax, const sema::Environment &env, Rule rule,
                  RuleKind kind) {
    const ast::Expr *after = llvm::cast<ast::OffloadStmt>(stmt).after;
    if (after || !stmt.entries.empty()) {
      const ast::Node &what = after ? static_cast<const ast::Node &>(*after) : *stmt.entries.front();
      diags.report(what.loc(), diag::OffloadedByLayers).range(what.range) << (after ? "after" : "first") << syntax.text;
      return false;
    }
    std::optional<bool> holds = stmt.condition ? evaluator.evaluateCondition(stmt.condition, env) : true;
    if (!holds.value_or(false))
      return holds.has_value();
    rule.kind = kind;
    rule.loc = syntax.range.Start;
    graph.rules.push_back(std::move(rule));
    return true;
  }

  bool lowerPatternOf(const ast::LayerRuleStmt &stmt, const ast::Pattern &syntax, const sema::Environment &env,
                      Rule rule, int64_t first) {
    auto refuse = [&](const std::string &what) {
      diags.report(syntax.range.Start, diag::NotSupportedYet).range(syntax.range) << what;
      return false;
    };
    if (syntax.hasDims)
      return refuse("names of dims in '" + getName(rule.kind).str() + "'");
    llvm::StringRef index = syntax.getIndex(), text = syntax.text;
    bool isNamed = !index.empty() && (llvm::isAlpha(index.front()) || index.front() == '_');
    if (isNamed && !stmt.condition) {
      diags.report(syntax.range.Start, diag::IndexUnread).range(syntax.range) << index << text << getName(rule.kind);
      return false;
    }
    std::string all = text.str(); // with `[*]` in place of the name
    if (isNamed)
      all.replace(text.find('[') + 1, index.size(), "*");
    ast::Pattern ofAll = syntax;
    ofAll.text = all;
    rule.pattern = lowerPattern(ofAll, diags);
    if (!rule.pattern)
      return false;
    if (rule.pattern->namesGradient() && !(rule.kind == RuleKind::Quantize && rule.pattern->matchesOps()))
      return refuse("gradients in '" + getName(rule.kind).str() + "'");
    if (auto *quantize = llvm::dyn_cast<ast::QuantizeStmt>(&stmt); quantize && !checkParts(*quantize, syntax, rule))
      return false;
    rule.loc = syntax.range.Start;
    bool tellsApart = first || (stmt.condition && isNamed);
    if (stmt.condition && !isNamed) {
      if (llvm::any_of(stmt.patterns,
                       [](const ast::Pattern &other) { return !other.getIndex().empty() && other.getIndex() != "*"; }))
        return reportNoRepeat(syntax, rule.kind);
      std::optional<bool> holds = evaluator.evaluateCondition(stmt.condition, env);
      if (!holds)
        return false;
      if (!*holds)
        return true;
    }
    if (!tellsApart) {
      graph.rules.push_back(std::move(rule));
      return true;
    }
    if (index.empty())
      return reportNoRepeat(syntax, rule.kind);
    return tellApart(stmt, syntax, all, isNamed ? index : "", env, rule, first);
  }

  /// Parts of a statement that would say nothing of its matches.
  bool checkParts(const ast::QuantizeStmt &stmt, const ast::Pattern &syntax, const Rule &rule) {
    bool isOfOps = rule.pattern->matchesOps();
    if (isOfOps && rule.pattern->isOfParameters()) {
      llvm::StringRef ops = syntax.text;
      ops.consume_front("param ");
      diags.report(syntax.range.Start, diag::ParametersOfOps).range(syntax.range) << ops;
      return false;
    }
    for (const ast::Stmt *statement : stmt.entries) {
      auto *entry = llvm::cast<ast::EntryStmt>(statement);
      if (entry->name.name == "dequantize" && rule.dequantizes && isOfOps) {
        diags.report(entry->loc(), diag::DequantizedOps).range(entry->range) << syntax.text;
        return false;
      }
    }
    bool hasForm = stmt.blocks || llvm::any_of(stmt.entries, [](const ast::Stmt *statement) {
                     return llvm::cast<ast::EntryStmt>(statement)->name.name == "scales";
                   });
    auto *word = llvm::dyn_cast<ast::NameExpr>(stmt.what); // a parameter may be none in some jobs
    bool isNone = word && word->name == "none";
    if (isNone && hasForm)
      diags.report(stmt.what->loc(), diag::FormOfNone).range(stmt.what->range);
    return !isNone || !hasForm;
  }

  bool reportNoRepeat(const ast::Pattern &syntax, RuleKind kind) {
    diags.report(syntax.range.Start, diag::RecomputeOfNoRepeat).range(syntax.range) << syntax.text << getName(kind);
    return false;
  }

  /// One rule per repeat that the pattern means, with the path of that.
  bool tellApart(const ast::LayerRuleStmt &stmt, const ast::Pattern &syntax, llvm::StringRef text,
                 llvm::StringRef index, const sema::Environment &env, const Rule &rule, int64_t first) {
    size_t end = text.find("[*]");
    std::optional<PathPattern> ofRepeat = PathPattern::parse(text.take_front(end));
    llvm::SmallVector<Op *, 2> repeats;
    for (auto &op : graph.getForward())
      if (ofRepeat && op->kind == OpKind::Repeat && ofRepeat->matchesPath(joinPath(op->scope, op->name)))
        repeats.push_back(op.get());
    if (repeats.empty())
      return reportNoRepeat(syntax, rule.kind);
    if (first && graph.pipeline.balance != Balance::None &&
        llvm::any_of(repeats, [&](Op *repeat) { return llvm::is_contained(findPipelinedRepeats(graph), repeat); })) {
      diags.report(syntax.range.Start, diag::NotSupportedYet).range(syntax.range)
          << "'first' of stages that are balanced, which are cut once it is known what is made again,";
      return false;
    }
    for (Op *repeat : repeats) {
      SizeValue count = evaluateCount(repeat->count, graph.binding);
      if (!count || count.value.num > maxIterations) {
        diags.report(syntax.range.Start, diag::RecomputeTooMany).range(syntax.range)
            << repeat->name << (count ? count.value.str() : "not known") << maxIterations << getName(rule.kind);
        return false;
      }
      std::vector<bool> isChosen(count.value.num, true);
      if (first)
        chooseFirst(*repeat, first, isChosen);
      if (stmt.condition && !index.empty() && !evaluate(stmt, index, env, isChosen))
        return false;
      SplitCases split = splitCases(graph, *repeat, isChosen);
      for (auto [ruleNumber, loop] : ofLoops)
        for (auto [number, added] : split.additions)
          if (std::vector<unsigned> &cases = *graph.rules[ruleNumber].cases;
              loop == repeat->loop && llvm::is_contained(cases, number))
            cases.push_back(added);
      Rule ofOne = rule;
      ofOne.pattern = PathPattern::parse(joinPath(repeat->scope, repeat->name) + text.drop_front(end + 3).str());
      ofOne.cases = split.chosen;
      ofLoops.emplace_back(graph.rules.size(), repeat->loop);
      graph.rules.push_back(std::move(ofOne));
    }
    return true;
  }

  bool evaluate(const ast::LayerRuleStmt &stmt, llvm::StringRef index, const sema::Environment &env,
                std::vector<bool> &isChosen) {
    for (size_t i = 0; i < isChosen.size(); ++i) {
      sema::Environment inside(env);
      inside.define(index, sema::CTValue::integer(i));
      std::optional<bool> holds = evaluator.evaluateCondition(stmt.condition, inside);
      if (!holds)
        return false;
      isChosen[i] = isChosen[i] && *holds;
    }
    return true;
  }

  /// The first so many iterations that a virtual stage runs, of all repeats that the pipeline cuts; of another repeat
  /// its first ones.
  void chooseFirst(const Op &repeat, int64_t first, std::vector<bool> &isChosen) const {
    std::vector<Op *> cut = findPipelinedRepeats(graph);
    auto found = llvm::find(cut, &repeat);
    if (found == cut.end() || llvm::is_contained(cut, nullptr)) {
      for (size_t i = first; i < isChosen.size(); ++i)
        isChosen[i] = false;
      return;
    }
    PipelineChain chain = getChain(cut);
    isChosen.assign(isChosen.size(), false);
    for (unsigned stage = 0, stages = countVirtualStages(graph); stage < stages; ++stage) {
      int64_t before = 0;
      for (unsigned number = 0; number < unsigned(found - cut.begin()); ++number) {
        auto [begin, end] = chain.getRange(number, stage);
        before += end - begin;
      }
      auto [begin, end] = chain.getRange(found - cut.begin(), stage);
      for (int64_t i = begin; i < std::min(end, begin + std::max<int64_t>(0, first - before)); ++i)
        isChosen[i] = true;
    }
  }

  static constexpr int64_t maxIterations = 100000;
  Graph &graph;
  sema::Evaluator &evaluator;
  DiagnosticEngine &diags;
  /// Rules that speak of some cases, and of which loop.
  std::vector<std::pair<size_t, unsigned>> ofLoops;
  std::map<unsigned, Grouping> grouped; ///< By loop.
};
} // namespace

bool stage::lowerLayerStatements(Graph &graph, llvm::ArrayRef<LayerStatement> statements, sema::Evaluator &evaluator) {
  RecomputeLowering lowering(graph, evaluator);
  bool good = true;
  for (const LayerStatement &statement : statements)
    good &= lowering.lower(statement);
  return good && lowering.group();
}
