//===- StrategyLowering.cpp - the strategy as data of the graph -----------===//
//
// Rules become objects (stage/IR/Rule.h), whose axes are numbers; what a strategy computes
// (sizes of axes, splits, unit lists) is computed by now. Statements that are read
// but not lowered yet are refused where they stand.
//
//===----------------------------------------------------------------------===//
#include "ModuleLowering.h"
#include "SplitLastUnit.h"
#include "stage/IR/Diagnostics.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IRGen/Diagnostics.h"
#include "stage/Sema/InferenceWords.h"
#include "stage/Symbolic/SizeMessages.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace stage;
using sema::Candidate;

void stage::lowerMesh(Graph &graph, const sema::BoundJob &job) {
  for (const sema::BoundAxis &bound : job.strategy.mesh) {
    graph.mesh.addAxis({bound.name.name.str(), bound.size, graph.sizes.symbol(bound.name.name), bound.name.loc(),
                        bound.networkDim ? std::optional<unsigned>(*bound.networkDim) : std::nullopt});
    graph.binding.bind(bound.name.name, bound.size);
    setOrigin(graph.sizes, bound.name.name, bound.origin);
  }
  for (const sema::BoundAlias &alias : job.strategy.aliases) {
    if (alias.isRole)
      continue;
    AxisGroup group{alias.name.name.str(), {}, alias.name.loc()};
    for (llvm::StringRef axis : alias.axes)
      group.axes.push_back(*graph.mesh.find(axis));
    graph.mesh.addGroup(std::move(group));
  }
}

/// The parameter of the model that a rule pads; null after saying why there is none.
static const sema::NamedValue *findPadded(const sema::BoundJob &job, const ast::PadStmt &pad, DiagnosticEngine &diags) {
  auto arg =
      llvm::find_if(job.modelArgs, [&](const sema::NamedValue &value) { return value.name.name == pad.dim.name; });
  if (arg == job.modelArgs.end()) {
    std::vector<Candidate> parameters;
    std::string names;
    for (const sema::NamedValue &value : job.modelArgs)
      if (value.value.isSize()) {
        parameters.push_back({value.name.name, value.name.loc()});
        names += (names.empty() ? "" : ", ") + value.name.name.str();
      }
    DiagnosticBuilder error = diags.report(pad.dim.loc(), diag::PaddedUnknown).range(pad.dim.range)
                              << job.model->name.name << pad.dim.name << (names.empty() ? "none" : names);
    suggestNearest(error, pad.dim.name, pad.dim.range, parameters);
    return nullptr;
  }
  return &*arg;
}

/// The next multiple of what a rule pads to; nothing after an error.
static std::optional<int64_t> padTo(const ast::PadStmt &pad, const sema::BoundRule &rule, int64_t value,
                                    sema::Evaluator &evaluator) {
  sema::Environment env(evaluator.getProgram().getFile(*rule.call->callee));
  if (!sema::evaluateAgain(evaluator, *rule.call, *rule.env, env))
    return std::nullopt;
  std::optional<int64_t> multiple = evaluator.evaluateInteger(pad.to, env, "the multiple to pad to");
  if (!multiple)
    return std::nullopt;
  if (*multiple < 1) {
    evaluator.getDiags().report(pad.to->loc(), diag::BadPadding).range(pad.to->range) << *multiple;
    return std::nullopt;
  }
  int64_t excess = value % *multiple, padded = value;
  if (excess && __builtin_add_overflow(value, *multiple - excess, &padded)) {
    evaluator.getDiags().report(pad.to->loc(), diag::PaddedTooLarge).range(pad.to->range) << pad.dim.name << *multiple;
    return std::nullopt;
  }
  return padded;
}

/// `pad V to N`: the symbol V becomes the next multiple of N.
bool stage::padDims(Graph &graph, const sema::BoundJob &job, sema::Evaluator &evaluator) {
  for (const sema::BoundRule &rule : job.strategy.rules) {
    auto *pad = llvm::dyn_cast<ast::PadStmt>(rule.stmt);
    if (!pad)
      continue;
    const sema::NamedValue *arg = findPadded(job, *pad, evaluator.getDiags());
    if (!arg)
      return false;
    llvm::StringRef symbol = arg->value.isSize() ? arg->value.getSize(graph.sizes).getSymbol() : "";
    std::optional<int64_t> value = symbol.empty() ? std::nullopt : graph.binding.lookup(symbol);
    if (!value) {
      DiagnosticBuilder error = evaluator.getDiags().report(pad->dim.loc(), diag::PaddedNotGiven).range(pad->dim.range)
                                << pad->dim.name << evaluator.format(arg->value);
      error.note(arg->range.Start, diag::ValueIs) << pad->dim.name << evaluator.format(arg->value);
      return false;
    }
    std::optional<int64_t> padded = padTo(*pad, rule, *value, evaluator);
    if (!padded)
      return false;
    if (*padded == *value)
      continue;
    if (llvm::none_of(graph.unpadded, [&](const auto &known) { return known.first == symbol; }))
      graph.unpadded.emplace_back(symbol.str(), *value);
    graph.binding.bind(symbol, *padded);
  }
  return true;
}

/// Repeats stay rolled: what is said of one iteration would be said of all, and is refused.
std::optional<PathPattern> stage::lowerPattern(const ast::Pattern &syntax, DiagnosticEngine &diags) {
  llvm::StringRef path = syntax.text;
  for (size_t open = path.find('['); open != llvm::StringRef::npos; open = path.find('[', open + 1))
    if (!path.substr(open).startswith("[*]")) {
      diags.report(syntax.range.Start, diag::NotSupportedYet).range(syntax.range)
          << "a rule for one iteration of a repeat; write [*], which means all of them";
      return std::nullopt;
    }
  std::optional<PathPattern> pattern = PathPattern::parse(path);
  if (!pattern)
    diags.report(syntax.range.Start, diag::BadPattern).range(syntax.range) << path;
  return pattern;
}

namespace {
class StrategyLowering {
public:
  StrategyLowering(Graph &graph, const sema::BoundJob &job, sema::Evaluator &evaluator)
      : graph(graph), job(job), evaluator(evaluator), diags(evaluator.getDiags()) {}

  bool run() {
    bool good = true;
    for (const sema::BoundRule &rule : job.strategy.rules) {
      ++statement;
      bound = &rule;
      UserPlace place(diags, rule.call->getOutermost().range.Start);
      if (auto *shard = llvm::dyn_cast<ast::ShardStmt>(rule.stmt)) {
        good &= lowerShard(*shard, std::nullopt, nullptr);
      } else if (auto *at = llvm::dyn_cast<ast::AtStmt>(rule.stmt)) {
        std::optional<PathPattern> pattern = lowerPattern(at->pattern, diags);
        good &= pattern.has_value();
        for (const ast::Stmt *inner : pattern ? at->rules : llvm::ArrayRef<ast::Stmt *>()) {
          if (auto *shardInner = llvm::dyn_cast<ast::ShardStmt>(inner))
            good &= lowerShard(*shardInner, pattern, &at->pattern);
          else if (auto *keepInner = llvm::dyn_cast<ast::KeepStmt>(inner))
            lowerKeep(*keepInner, pattern);
          else if (auto *ring = llvm::dyn_cast<ast::RingStmt>(inner))
            lowerRing(*ring, pattern, at->pattern);
          else
            good &= refuse(inner);
        }
      } else if (auto *keep = llvm::dyn_cast<ast::KeepStmt>(rule.stmt)) {
        lowerKeep(*keep, std::nullopt);
      } else if (auto *replicate = llvm::dyn_cast<ast::ReplicateStmt>(rule.stmt)) {
        good &= lowerReplicate(*replicate);
      } else if (auto *partition = llvm::dyn_cast<ast::PartitionStmt>(rule.stmt)) {
        good &= lowerPartition(*partition);
      } else if (auto *reduce = llvm::dyn_cast<ast::ReduceStmt>(rule.stmt)) {
        good &= lowerReduce(*reduce);
      } else if (auto *recompute = llvm::dyn_cast<ast::RecomputeStmt>(rule.stmt)) {
        ofLayers.push_back({recompute, rule, makeRule(SMLoc())});
      } else if (auto *offload = llvm::dyn_cast<ast::OffloadStmt>(rule.stmt)) {
        ofLayers.push_back({offload, rule, makeRule(SMLoc())});
      } else if (auto *quantize = llvm::dyn_cast<ast::QuantizeStmt>(rule.stmt)) {
        ofLayers.push_back({quantize, rule, makeRule(SMLoc())});
      } else if (auto *overlap = llvm::dyn_cast<ast::OverlapStmt>(rule.stmt)) {
        lowerOverlap(*overlap);
      } else if (auto *slow = llvm::dyn_cast<ast::SlowStmt>(rule.stmt)) {
        good &= lowerSlow(*slow);
      } else if (!llvm::isa<ast::PipelineStmt>(rule.stmt)) {
        good &= refuse(rule.stmt);
      }
    }
    good &= lowerPipeline();
    if (job.inference)
      lowerUnits();
    if (!lowerLayerStatements(graph, ofLayers, evaluator) || !good) // may speak of the pipeline's stages
      return false;
    splitLastUnit(graph);
    return true;
  }

private:
  /// A rule of the statement that is lowered.
  Rule makeRule(SMLoc loc) const {
    Rule rule;
    rule.loc = loc;
    rule.statement = statement;
    rule.origin = bound->call->getOrigin();
    rule.isTrimmed = bound->isTrimmed;
    if (bound->call->caller || bound->call->addition) {
      rule.calls = bound->call->str();
      rule.callLoc = bound->call->range.Start;
    }
    return rule;
  }

  /// One rule per pattern.
  bool lowerReplicate(const ast::ReplicateStmt &stmt) {
    bool good = true;
    for (const ast::Pattern &pattern : stmt.patterns) {
      Rule rule = makeRule(pattern.range.Start);
      rule.kind = RuleKind::Replicate;
      rule.pattern = lowerPattern(pattern, diags);
      good &= rule.pattern.has_value();
      if (pattern.hasDims) {
        diags.report(pattern.range.Start, diag::NotSupportedYet).range(pattern.range) << "names of dims in 'replicate'";
        good = false;
      }
      if (stmt.hasAxes)
        rule.axes = lowerAxes(stmt.axes);
      else
        for (AxisId axis = 0; axis < graph.mesh.getAxes().size(); ++axis)
          rule.axes.push_back(PlacedAxis(axis));
      graph.rules.push_back(std::move(rule));
    }
    return good;
  }

  bool refuse(const ast::Stmt *stmt) {
    std::string what = "this rule";
    if (llvm::isa<ast::ReplicateStmt>(stmt))
      what = "'replicate' below 'at'";
    if (llvm::isa<ast::RingStmt>(stmt))
      what = "'ring' that is not below 'at'";
    if (auto *other = llvm::dyn_cast<ast::OtherRuleStmt>(stmt))
      what = "'" + other->word.name.str() + "'";
    else if (llvm::isa<ast::PadStmt>(stmt))
      return true; // before the model was elaborated: padDims
    diags.report(stmt->loc(), diag::NotSupportedYet).range(stmt->range) << what;
    return false;
  }

  /// `syntax` may name the dims of what `pattern` matches.
  bool lowerShard(const ast::ShardStmt &stmt, const std::optional<PathPattern> &pattern, const ast::Pattern *syntax) {
    for (const ast::ShardStmt::Item &item : stmt.items) {
      Rule rule = makeRule(item.dims.empty() ? stmt.loc() : item.dims.front().loc());
      rule.pattern = pattern;
      if (syntax)
        rule.dimNames = lowerDimNames(*syntax);
      for (size_t i = 0; i < item.dims.size(); ++i) {
        llvm::StringRef dim = item.dims[i].name;
        rule.dims.push_back(dim.str());
        // Asked for and alone, a dim that no tensor has is an error.
        bool isAlone = stmt.items.size() == 1 && item.dims.size() == 1;
        if (item.mayLack[i] || (!isAlone && llvm::is_contained(bound->asked, dim)))
          rule.lackable.push_back(dim.str());
      }
      rule.axes = lowerAxes(item.axes);
      if (item.order) {
        std::optional<sema::CTValue> order = evaluator.evaluate(item.order, *bound->env);
        if (!order)
          return false;
        std::string word = evaluator.format(*order);
        if (order->getKind() != sema::CTValue::Kind::Word || (word != "mirrored" && word != "blocked")) {
          diags.report(item.order->loc(), diag::UnknownOrder).range(item.order->range) << word;
          return false;
        }
        rule.saysLayout = true;
        for (PlacedAxis &axis : rule.axes)
          axis.layout = word == "mirrored" ? Layout::Mirrored : Layout::Blocked;
      }
      if (job.inference && !lowerContext(item, rule))
        return false;
      graph.rules.push_back(std::move(rule));
    }
    return true;
  }

  /// `shard context over cp`: positions in caches are dealt out in turn, and the parts that ops fold are one for each
  /// rank.
  bool lowerContext(const ast::ShardStmt::Item &item, Rule &rule) {
    auto *dim = llvm::find_if(item.dims, [](const ast::Ident &name) { return name.name == sema::contextDim; });
    if (dim == item.dims.end())
      return true;
    if (rule.pattern || item.dims.size() > 1 || item.order) {
      diags.report(dim->loc(), diag::NotSupportedYet).range(dim->range)
          << (rule.pattern ? "'context' of some values"
              : item.order ? "an order of 'context'"
                           : "'context' beside other dims");
      return false;
    }
    if (graph.findDim(sema::splitsDim)) {
      Rule parts = rule;
      parts.dims = {sema::splitsDim.str()};
      graph.rules.push_back(std::move(parts));
    }
    for (PlacedAxis &axis : rule.axes)
      axis.layout = Layout::Cyclic;
    return true;
  }

  void lowerKeep(const ast::KeepStmt &stmt, const std::optional<PathPattern> &pattern) {
    Rule rule = makeRule(stmt.loc());
    rule.pattern = pattern;
    rule.axes = lowerAxes(stmt.axes);
    rule.kind = RuleKind::KeepGathered;
    graph.rules.push_back(std::move(rule));
  }

  void lowerOverlap(const ast::OverlapStmt &stmt) {
    Rule rule = makeRule(stmt.loc());
    rule.kind = llvm::StringSwitch<RuleKind>(stmt.with.name)
                    .Case("products", RuleKind::OverlapProducts)
                    .Case("gradients", RuleKind::OverlapGradients)
                    .Case("nothing", RuleKind::OverlapNothing)
                    .Default(RuleKind::OverlapCommunication);
    rule.isApart = !stmt.hasAxes && rule.kind == RuleKind::OverlapCommunication;
    if (stmt.hasAxes)
      rule.axes = lowerAxes(stmt.axes);
    else
      for (AxisId axis = 0; axis < graph.mesh.getAxes().size(); ++axis)
        rule.axes.push_back(PlacedAxis(axis));
    if (graph.mesh.getGroupSize(toSet(rule.axes)) > 1)
      graph.rules.push_back(std::move(rule));
  }

  static Rule::DimNames lowerDimNames(const ast::Pattern &syntax) {
    Rule::DimNames names;
    names.hasEllipsis = syntax.dimsEllipsis;
    for (const ast::Ident &name : syntax.dims)
      names.names.push_back(name.name.str());
    return names;
  }

  void lowerRing(const ast::RingStmt &stmt, const std::optional<PathPattern> &pattern, const ast::Pattern &syntax) {
    Rule rule = makeRule(stmt.loc());
    rule.pattern = pattern;
    rule.dims.push_back(stmt.index.name.str());
    rule.axes = lowerAxes(stmt.axes);
    rule.kind = RuleKind::Ring;
    rule.dimNames = lowerDimNames(syntax);
    graph.rules.push_back(std::move(rule));
  }

  static constexpr int64_t maxPrefetch = 1024;
  bool lowerPartition(const ast::PartitionStmt &stmt) {
    const sema::Environment &env = *bound->env;
    auto refuse = [&](SMRange range, const llvm::Twine &what) {
      diags.report(range.Start, diag::NotSupportedYet).range(range) << what;
      return false;
    };
    Rule rule = makeRule(stmt.loc());
    rule.axes = lowerAxes(stmt.axes);
    llvm::StringRef what = stmt.what.name;
    if (what != "optimizer" && what != "gradients" && what != "parameters") {
      diags.report(stmt.what.loc(), diag::UnknownPartition).range(stmt.what.range) << what;
      return false;
    }
    rule.kind = what == "optimizer"   ? RuleKind::PartitionOptimizer
                : what == "gradients" ? RuleKind::PartitionGradients
                                      : RuleKind::PartitionParameters;
    for (const ast::Pattern &syntax : stmt.units) {
      std::optional<PathPattern> unit = lowerPattern(syntax, diags);
      if (!unit)
        return false;
      if (syntax.hasDims || !unit->isPath())
        return refuse(syntax.range, "what is no path after 'by unit', where modules and parameters are expected,");
      rule.units.push_back(std::move(*unit));
    }
    for (const ast::Stmt *entry : stmt.entries) {
      auto *given = llvm::dyn_cast<ast::EntryStmt>(entry);
      if (given && what == "optimizer" && given->name.name == "whole_tied") {
        std::optional<bool> isWhole = evaluator.evaluateCondition(given->value, env);
        if (!isWhole)
          return false;
        rule.isWhole = *isWhole;
        continue;
      }
      if (!given || what != "parameters" || given->name.name == "whole_tied")
        return refuse(entry->range, "this entry of 'partition " + what + "'");
      if (given->name.name == "keep") {
        if (!lowerKeep(*given, env, rule))
          return false;
        continue;
      }
      if (given->name.name == "again") {
        if (!lowerAgain(*given, env, rule))
          return false;
        continue;
      }
      if (given->name.name == "shards") {
        if (!lowerShards(*given, env, rule))
          return false;
        continue;
      }
      std::optional<int64_t> prefetch = evaluator.evaluateInteger(given->value, env, "'prefetch'");
      if (!prefetch)
        return false;
      if (*prefetch < 0 || *prefetch > maxPrefetch || (*prefetch && rule.units.empty())) {
        diags.report(given->value->loc(), diag::BadPrefetch).range(given->value->range) << *prefetch << maxPrefetch;
        return false;
      }
      rule.prefetch = *prefetch;
    }
    if (rule.gathersAll && rule.keeps) {
      diags.report(rule.loc, diag::BadAgain) << "'keep = true', under which nothing is gathered again";
      return false;
    }
    graph.rules.push_back(std::move(rule));
    return true;
  }

  bool lowerAgain(const ast::EntryStmt &entry, const sema::Environment &env, Rule &rule) {
    std::optional<sema::CTValue> value = evaluator.evaluate(entry.value, env);
    if (!value)
      return false;
    rule.gathersAll = value->getKind() == sema::CTValue::Kind::Word && value->getText() == "all";
    if (!rule.gathersAll && !value->isNone())
      diags.report(entry.value->loc(), diag::BadAgain).range(entry.value->range) << value->describeKind();
    return rule.gathersAll || value->isNone();
  }

  bool lowerShards(const ast::EntryStmt &entry, const sema::Environment &env, Rule &rule) {
    std::optional<sema::CTValue> value = evaluator.evaluate(entry.value, env);
    if (!value || value->isNone())
      return value.has_value();
    rule.type = value->getKind() == sema::CTValue::Kind::Word ? parseDType(value->getText()) : std::nullopt;
    if (rule.type && isFloat(*rule.type))
      return true;
    diags.report(entry.value->loc(), diag::BadShardType).range(entry.value->range) << evaluator.format(*value);
    return false;
  }

  bool lowerKeep(const ast::EntryStmt &entry, const sema::Environment &env, Rule &rule) {
    std::optional<sema::CTValue> value = evaluator.evaluate(entry.value, env);
    if (!value)
      return false;
    if (value->getKind() == sema::CTValue::Kind::Word && value->getText() == "last") {
      rule.depth = 1;
      if (rule.units.empty())
        diags.report(entry.value->loc(), diag::NotSupportedYet).range(entry.value->range)
            << "'keep = last' without 'by unit', which says what a unit is";
      return !rule.units.empty();
    }
    std::optional<bool> keeps = evaluator.evaluateCondition(entry.value, env);
    rule.keeps = keeps.value_or(false);
    return keeps.has_value();
  }

  bool lowerReduce(const ast::ReduceStmt &stmt) {
    if (stmt.what.name != "gradients") {
      diags.report(stmt.what.loc(), diag::UnknownReduction).range(stmt.what.range) << stmt.what.name;
      return false;
    }
    auto earlier = llvm::find_if(graph.rules, [](const Rule &r) { return r.kind == RuleKind::ReduceGradients; });
    if (earlier != graph.rules.end()) {
      diags.report(stmt.loc(), diag::ReduceTwice).range(stmt.range).note(earlier->loc, diag::ReducedBefore);
      return false;
    }
    Rule rule = makeRule(stmt.loc());
    rule.kind = RuleKind::ReduceGradients;
    rule.axes = lowerAxes(stmt.axes);
    bool good = true;
    for (const ast::Stmt *entry : stmt.entries)
      good &= lowerReduceEntry(llvm::cast<ast::EntryStmt>(*entry), *bound->env, rule);
    graph.rules.push_back(std::move(rule));
    return good;
  }

  bool lowerReduceEntry(const ast::EntryStmt &entry, const sema::Environment &env, Rule &rule) {
    std::optional<sema::CTValue> value = evaluator.evaluate(entry.value, env);
    if (!value)
      return false;
    if (value->isNone() && entry.name.name != "per_microbatch" && entry.name.name != "apart")
      return true; // as without the entry
    auto refuse = [&](auto id) {
      diags.report(entry.value->loc(), id).range(entry.value->range) << evaluator.format(*value);
      return false;
    };
    if (entry.name.name == "type") {
      rule.type = value->getKind() == sema::CTValue::Kind::Word ? parseDType(value->getText()) : std::nullopt;
      return (rule.type && isFloat(*rule.type)) || refuse(diag::BadReductionType);
    }
    if (entry.name.name == "bucket") {
      std::optional<int64_t> bytes = evaluator.evaluateBytes(entry.value, env, "'bucket'");
      rule.bucketBytes = bytes.value_or(0);
      return bytes && (*bytes >= 1 || refuse(diag::BadBucket));
    }
    std::optional<bool> isTrue = evaluator.evaluateCondition(entry.value, env);
    if (entry.name.name == "overlap")
      rule.overlap = isTrue.value_or(true) ? Rule::Overlap::Beside : Rule::Overlap::Behind;
    else if (entry.name.name == "apart")
      rule.isApart = isTrue.value_or(false);
    else
      rule.perMicrobatch = isTrue.value_or(false);
    return isTrue.has_value();
  }

  bool lowerSlow(const ast::SlowStmt &stmt) {
    const sema::Environment &env = *bound->env;
    SlowRanks slow;
    slow.loc = stmt.loc();
    for (auto [name, syntax] : llvm::zip(stmt.axes.axes, stmt.coordinates)) {
      std::optional<int64_t> coordinate =
          evaluator.evaluateInteger(syntax, env, "the coordinate on '" + name.name.str() + "'");
      if (!coordinate)
        return false;
      AxisList axes = lowerAxes({name, name.range});
      const sema::CTValue *passed = env.find(name.name);
      if (axes.empty() && passed && passed->isAxes()) // no axes: there is one coordinate
        continue;
      int64_t size = graph.mesh.getGroupSize(toSet(axes));
      if (*coordinate < 0 || *coordinate >= size) {
        diags.report(syntax->loc(), diag::SlowRankOutOfRange).range(syntax->range) << name.name << size << *coordinate;
        return false;
      }
      // That of an axis with a name of its own that is several, the last one counting fastest.
      for (const PlacedAxis &axis : axes) {
        size /= graph.mesh[axis].size;
        slow.coordinates.emplace_back(axis, *coordinate / size % graph.mesh[axis].size);
      }
    }
    std::optional<sema::CTValue> factor = evaluator.evaluate(stmt.by, env);
    if (!factor)
      return false;
    slow.factor = factor->isNumber() ? factor->getSize(graph.sizes) : Size();
    std::optional<Rational> value = slow.factor ? slow.factor.getConstant() : std::nullopt;
    if (!value || value->num <= 0) {
      diags.report(stmt.by->loc(), diag::BadSlowFactor).range(stmt.by->range) << evaluator.format(*factor);
      return false;
    }
    graph.slowRanks.push_back(std::move(slow));
    return true;
  }

  AxisList lowerAxes(const ast::AxisListSyntax &syntax) const {
    AxisList axes;
    for (llvm::StringRef name : job.strategy.expand(syntax, bound->env))
      if (std::optional<AxisId> axis = graph.mesh.find(name))
        axes.emplace_back(*axis);
    return axes;
  }

  bool lowerPipeline() {
    const auto &bound = job.strategy.pipeline;
    if (!bound)
      return true;
    PipelineInfo &info = graph.pipeline;
    info.loc = bound->stmt->loc();
    for (const ast::Pattern &repeat : bound->stmt->repeats) {
      llvm::StringRef name = repeat.text;
      name.consume_back("[*]");
      info.repeats.push_back(name.str());
    }
    info.axis = graph.mesh.find(bound->axis);
    info.chunks = bound->schedule.chunks;
    setOrigin(graph.sizes, virtualStagesName, bound->schedule.chunksOrigin);
    info.split = bound->split;
    info.balance = bound->balance;
    info.send = bound->send;
    for (unsigned i = 0; i < job.strategy.mesh.size(); ++i)
      if (bound->scatterGather >> i & 1)
        if (std::optional<AxisId> axis = graph.mesh.find(job.strategy.mesh[i].name.name))
          info.scatterGather |= toSet(*axis);
    for (const auto &[name, virtualStage] : bound->placements)
      info.placements.push_back({name.name.str(), unsigned(virtualStage), name.loc()});
    info.units = bound->schedule.units; // of training
    if (bound->schedule.decl)
      info.scheduleName = bound->schedule.decl->name.name.str();
    info.copies = bound->schedule.copies;
    info.placement = bound->schedule.getPlacement();
    bool isUsual = true;
    for (unsigned place = 0; place < info.placement.size(); ++place)
      isUsual &= info.placement[place] == place;
    if (isUsual)
      info.placement.clear();
    llvm::StringSet<> names;
    std::string known;
    for (auto &op : graph.getForward())
      if (op->kind == OpKind::Repeat && op->scope != sema::draftScope) { // those of a draft model are on one stage
        names.insert(op->name);
        known += (known.empty() ? "; it repeats '" : "', '") + op->name;
      }
    bool isWhole = bound->schedule.chunks == 1 && (!info.axis || graph.mesh[*info.axis].size == 1);
    for (size_t i = 0; i < info.repeats.size(); ++i) {
      if (names.contains(info.repeats[i]))
        continue;
      // One stage of a model that has no such repeat: all of it.
      if (isWhole) {
        info = PipelineInfo();
        return true;
      }
      SMRange range = bound->stmt->repeats[i].range;
      diags.report(range.Start, diag::PipelineLoopUnknown).range(range)
          << info.repeats[i] << graph.name << (known.empty() ? "" : known + "'");
      return false;
    }
    return true;
  }

  /// What `pad` says where `decoding` is true, if that is something else than padDims has found.
  UnitBindings padDecodeSteps() {
    UnitBindings sizes;
    if (!job.inference->decodes())
      return sizes;
    sema::Evaluator::Phase elsewhere = evaluator.getPhase();
    evaluator.setPhase({/*decoding=*/true, /*continuing=*/true, /*inferring=*/true});
    for (const sema::BoundRule &rule : job.strategy.rules)
      if (auto *pad = llvm::dyn_cast<ast::PadStmt>(rule.stmt)) {
        llvm::StringRef symbol = findPadded(job, *pad, diags)->value.getSize(graph.sizes).getSymbol();
        auto own = llvm::find_if(graph.unpadded, [&](auto &entry) { return entry.first == symbol; });
        int64_t known = *graph.binding.lookup(symbol);
        std::optional<int64_t> padded = padTo(*pad, rule, own == graph.unpadded.end() ? known : own->second, evaluator);
        if (padded && *padded != known)
          sizes.emplace_back(symbol.str(), *padded);
      }
    evaluator.setPhase(elsewhere);
    return sizes;
  }

  /// All stages run the units in one order.
  void lowerUnits() {
    PipelineInfo &info = graph.pipeline;
    std::vector<Unit> units = listUnits(job, graph, padDecodeSteps(), info.environments);
    graph.microbatches = llvm::count_if(units, [](const Unit &unit) { return !movesCaches(unit.kind); });
    if (job.inference->servesRequests && !job.inference->isWhole)
      for (const PackedUnit &unit : job.inference->served->units)
        info.unitNames.push_back(unit.name);
    info.units.assign(info.axis ? graph.mesh[*info.axis].size : 1, units);
  }

  Graph &graph;
  const sema::BoundJob &job;
  sema::Evaluator &evaluator;
  DiagnosticEngine &diags;
  unsigned statement = 0;
  const sema::BoundRule *bound = nullptr; ///< The statement that is lowered.
  std::vector<LayerStatement> ofLayers;
};
} // namespace

bool stage::lowerStrategy(Graph &graph, const sema::BoundJob &job, sema::Evaluator &evaluator) {
  return StrategyLowering(graph, job, evaluator).run();
}
