//===- ParseGraph.cpp - declarations of the IR text -----------------------===//
#include "TextParser.h"
#include "stage/IR/Diagnostics.h"
#include "stage/IR/graph/Rule.h"
#include "stage/Schedule/BalancedSplit.h"

using namespace stage;

bool TextParser::parseGraph() {
  graph.loc = token.getLoc();
  if (!expect("graph") || !parseName(graph.name, "the graph's name") || !expect("{"))
    return false;
  bool good = true;
  while (!is("}") && token.kind != Token::End) {
    Token start = token;
    if (!parseItem()) {
      good = false;
      skipStatement(start);
    }
  }
  good &= resolveEdges();
  if (token.kind == Token::End && !good)
    return false; // the broken item may have swallowed the end
  return expect("}");
}

bool TextParser::parseTransferEnd(TransferEnd &end) {
  end.name = token;
  if (!parseName(end.part, "the name of a part"))
    return false;
  end.value = token;
  if (token.kind != Token::Value)
    return fail("a value");
  advance();
  return true;
}

bool TextParser::parseTransfer(TransferEnd &from, TransferEnd &to) {
  return expect("transfer") && parseTransferEnd(from) && expect("to") && parseTransferEnd(to) && expect(";");
}

bool TextParser::parseItem() {
  struct Item {
    llvm::StringRef word;
    bool (TextParser::*parse)();
  };
  static const Item items[] = {
      {"passes", &TextParser::parsePasses},
      {"dim", &TextParser::parseDim},
      {"mesh", &TextParser::parseMesh},
      {"axis", &TextParser::parseAxisGroup},
      {"bind", &TextParser::parseBindings},
      {"table", &TextParser::parseTable},
      {"load", &TextParser::parseSlotLoad},
      {"precision", &TextParser::parsePrecision},
      {"optimizer", &TextParser::parseOptimizer},
      {"require", &TextParser::parseObligation},
      {"rule", &TextParser::parseRule},
      {"slow", &TextParser::parseSlowRanks},
      {"sum", &TextParser::parseSum},
      {"pipeline", &TextParser::parsePipeline},
      {"stream", &TextParser::parseStream},
      {"op", &TextParser::parseOpDef},
  };
  for (const Item &item : items)
    if (consume(item.word))
      return (this->*item.parse)();
  if (consume("pad")) {
    auto &[symbol, value] = graph.unpadded.emplace_back();
    return parseIdentifier(symbol, "a padded symbol") && expect("from") && parseInteger(value, 1) && expect(";");
  }
  if (consume("prefetch"))
    return parseUnsigned(graph.prefetch) && expect(";");
  if (consume("clip"))
    return parseNumber(graph.clip) && expect(";");
  if (consume("microbatches"))
    return parseInteger(graph.microbatches, 1) && expect(";");
  if (consume("inference")) {
    graph.training = false;
    return expect(";");
  }
  for (unsigned kind = 0; kind < numPhaseKinds; ++kind)
    if (is(getName(PhaseKind(kind))))
      return parseTopBlock(graph.getPhase(PhaseKind(kind)));
  return fail("a declaration or a block");
}

/// `passes differentiate, propagate-sharding;`
bool TextParser::parsePasses() {
  do {
    std::string &pass = graph.passes.emplace_back();
    if (!parseIdentifier(pass, "a pass"))
      return false;
    for (std::string word; consume("-"); pass += "-" + word)
      if (!parseIdentifier(word, "the rest of the pass's name"))
        return false;
  } while (consume(","));
  return expect(";");
}

bool TextParser::parseDim() {
  Token at = token;
  std::string name;
  if (!parseIdentifier(name, "the dim's name"))
    return false;
  llvm::SmallVector<std::string, 2> aliases;
  if (consume("as")) {
    do {
      if (!parseIdentifier(aliases.emplace_back(), "another name"))
        return false;
    } while (consume(","));
  }
  Size size = graph.sizes.symbol(name);
  if (consume("=") && !parseSize(size, {"of", "from", "packed", "optional"}))
    return false;
  llvm::SmallVector<const Dim *, 2> parts;
  if (consume("of") && !parseList("(", ")", [&] {
        Token part = token;
        std::string partName;
        if (!parseIdentifier(partName, "a dim"))
          return false;
        parts.push_back(graph.findDim(partName));
        if (!parts.back())
          diags.report(part.getLoc(), diag::IRUnknownDim) << partName;
        return parts.back() != nullptr;
      }))
    return false;
  Size origin;
  if (consume("from") && !parseSize(origin, {"packed", "optional"}))
    return false;
  bool isPacked = consume("packed"), isOptional = consume("optional");
  if (graph.findDim(name)) {
    diags.report(at.getLoc(), diag::IRRedefinition) << name;
    return expect(";");
  }
  Dim *dim = graph.addDim(name, size, at.getLoc());
  dim->origin = origin;
  dim->isPacked = isPacked;
  dim->isOptional = isOptional;
  dim->aliases = std::move(aliases);
  dim->parts = std::move(parts);
  return expect(";");
}

bool TextParser::parseMesh() {
  return parseList("(", ")",
                   [&] {
                     Axis axis;
                     Token at = token;
                     axis.loc = at.getLoc();
                     if (graph.mesh.getAxes().size() == 32)
                       return fail("at most 32 axes");
                     if (!parseIdentifier(axis.name, "an axis") || !expect("=") || !parseInteger(axis.size, 1))
                       return false;
                     if (graph.mesh.resolve(axis.name)) {
                       diags.report(at.getLoc(), diag::IRRedefinition) << axis.name;
                       return true;
                     }
                     int64_t ranks;
                     if (__builtin_mul_overflow(graph.mesh.getNumRanks(), axis.size, &ranks) || ranks > maxRanks) {
                       diags.report(at.getLoc(), diag::IRTooManyRanks) << axis.name << maxRanks;
                       return true;
                     }
                     axis.symbol = graph.sizes.symbol(axis.name);
                     graph.binding.bind(axis.name, axis.size);
                     graph.mesh.addAxis(std::move(axis));
                     return true;
                   }) &&
         (!consume("on") || parseTopology()) && expect(";");
}

/// `on topology (1, 0)`
bool TextParser::parseTopology() {
  Token at = token;
  std::vector<unsigned> dims;
  if (!expect("topology") || !parseList("(", ")", [&] { return parseUnsigned(dims.emplace_back()); }))
    return false;
  bool good = dims.size() == graph.mesh.getAxes().size() && !dims.empty() && dims.back() == 0;
  for (size_t i = 1; i < dims.size(); ++i)
    good &= dims[i - 1] - dims[i] <= 1;
  if (good)
    graph.mesh.setNetworkDims(dims);
  else
    diags.report(at.getLoc(), diag::IRBadTopology);
  return true;
}

/// `axis ep = (dp.1, cp);`
bool TextParser::parseAxisGroup() {
  AxisGroup group;
  Token at = token;
  group.loc = at.getLoc();
  AxisList axes;
  if (!parseIdentifier(group.name, "a name for axes") || !expect("=") || !parseAxes(axes) || !expect(";"))
    return false;
  if (graph.mesh.resolve(group.name)) {
    diags.report(at.getLoc(), diag::IRRedefinition) << group.name;
    return true;
  }
  AxisSet seen = 0;
  for (const PlacedAxis &axis : axes) {
    if (!axis.isPlain() || (seen & toSet(axis))) {
      diags.report(at.getLoc(), diag::IRBadAxisGroup)
          << group.name << graph.mesh[axis].name << (axis.isPlain() ? "stands twice" : "has a layout");
      return true;
    }
    seen |= toSet(axis);
    group.axes.push_back(axis);
  }
  graph.mesh.addGroup(std::move(group));
  return true;
}

bool TextParser::parseBindings() {
  do {
    std::string name;
    int64_t value;
    Token at = token;
    if (!parseIdentifier(name, "a name") || !expect("=") || !parseInteger(value, INT64_MIN + 1))
      return false;
    // An axis is bound by the mesh.
    if (std::optional<int64_t> known = graph.binding.lookup(name))
      diags.report(at.getLoc(), diag::IRBoundTwice) << name << *known;
    else
      graph.binding.bind(name, value);
  } while (consume(","));
  return expect(";");
}

/// `table load[4] = [12, 3, 5, 12];`, `table lengths[2, 3] = [[7, 5, 6], [1, 1, 2]];`.
bool TextParser::parseTable() {
  std::string name;
  SizeTable table;
  Token at = token;
  int64_t numEntries = 1;
  if (!parseIdentifier(name, "the table's name") || !parseList("[", "]", [&] {
        Token size = token;
        if (!parseInteger(table.dims.emplace_back(), 1))
          return false;
        if (!__builtin_mul_overflow(numEntries, table.dims.back(), &numEntries) && numEntries <= maxEntries)
          return true;
        diags.report(size.getLoc(), diag::IRTableTooLarge) << name << maxEntries;
        return false;
      }))
    return false;
  if (table.dims.empty() || table.dims.size() > 2)
    return fail("one dimension or two");
  if (!expect("=") || !parseEntries(name, table.dims, table.entries))
    return false;
  if (graph.binding.lookupTable(name))
    diags.report(at.getLoc(), diag::IRRedefinition) << name;
  else
    graph.binding.bindTable(name, std::move(table));
  return expect(";");
}

/// `load C of X by weights for B*K*S from dp*ep;`, `evenly` in place of `by weights`, `at most` before the `;` where
/// all positions of X have equally many slots.
bool TextParser::parseSlotLoad() {
  SlotLoad load;
  Token at = token;
  load.loc = at.getLoc();
  auto parseDimName = [&](const Dim *&dim) {
    Token place = token;
    std::string name;
    if (!parseIdentifier(name, "a dim"))
      return false;
    if (!(dim = graph.findDim(name)))
      diags.report(place.getLoc(), diag::IRUnknownDim) << name;
    return dim != nullptr;
  };
  if (!parseDimName(load.slots) || !expect("of") || !parseDimName(load.target) ||
      (!consume("evenly") && (!expect("by") || !parseIdentifier(load.table, "a table"))) || !expect("for") ||
      !parseSize(load.choices, {"from", "at"}))
    return false;
  if (consume("from") && !parseSize(load.sources, {"at"}))
    return false;
  if (consume("at")) {
    if (!expect("most"))
      return false;
    load.isDropless = false;
  }
  if (graph.mesh.findSlotLoad(load.slots))
    diags.report(at.getLoc(), diag::IRRedefinition) << load.slots->name;
  else
    graph.mesh.addSlotLoad(std::move(load));
  return expect(";");
}

/// As many lists as the first dimension has, each of the rest, or as many numbers.
bool TextParser::parseEntries(llvm::StringRef table, llvm::ArrayRef<int64_t> dims, std::vector<int64_t> &entries) {
  Token at = token;
  int64_t count = 0;
  if (!parseList("[", "]", [&] {
        ++count;
        return dims.size() > 1 ? parseEntries(table, dims.drop_front(), entries)
                               : parseInteger(entries.emplace_back(), 0);
      }))
    return false;
  if (count == dims.front())
    return true;
  diags.report(at.getLoc(), diag::IRWrongCount) << "entries in a list" << table << dims.front() << count;
  return false;
}

bool TextParser::parsePrecision() {
  Precision &p = graph.precision;
  if (!expect("weight") || !parseDType(p.weight) || !expect(",") || !expect("activation") ||
      !parseDType(p.activation) || !expect(",") || !expect("gradient") || !parseDType(p.gradient) || !expect(",") ||
      !expect("master") || !parseDType(p.master))
    return false;
  if (consume(",")) {
    if (!expect("accumulate") || !expect("separate"))
      return false;
    p.separateAccumulation = true;
  }
  return expect(";");
}

bool TextParser::parseOptimizer() {
  graph.optimizer.loc = token.getLoc();
  if (!parseName(graph.optimizer.name, "the optimizer's name") || !expect("{"))
    return false;
  while (!consume("}")) {
    if (consume("state")) {
      auto &[name, type] = graph.optimizer.states.emplace_back();
      if (!parseIdentifier(name, "the state's name") || !expect(":") || !parseDType(type))
        return false;
    } else if (!expect("flops") || !expect("=") || !parseSize(graph.optimizer.flops)) {
      return false;
    }
    if (!expect(";"))
      return false;
  }
  return true;
}

bool TextParser::parseObligation() {
  SMLoc loc = token.getLoc();
  auto kind = Obligations::Kind::Divides;
  if (consume("equal"))
    kind = Obligations::Kind::Equal;
  else if (consume("positive"))
    kind = Obligations::Kind::Positive;
  else if (consume("at_most"))
    kind = Obligations::Kind::AtMost;
  else if (!consume("multiple"))
    return fail("'multiple', 'equal', 'positive' or 'at_most'");
  Size left, right;
  if (!expect("(") || !parseSize(left))
    return false;
  if (kind != Obligations::Kind::Positive && (!expect(",") || !parseSize(right)))
    return false;
  std::string reason;
  if (!expect(")") || (token.kind == Token::String && !parseQuoted(reason, "the reason")))
    return false;
  graph.obligations.add(kind, left, right, loc, reason);
  return expect(";");
}

bool TextParser::parseRule() {
  Rule rule;
  rule.loc = token.getLoc();
  if (!parseUnsigned(rule.statement) || (consume("added") && !parseUnsigned(rule.origin.addition)) ||
      (consume("from") && !parseList("(", ")", [&] { return parseUnsigned(rule.origin.calls.emplace_back()); })))
    return false;
  rule.isTrimmed = consume("trimmed");
  if (consume("at") && !(rule.pattern = parsePattern()))
    return false;
  if (is("[") && !parseList("[", "]", [&] {
        if (consume("..."))
          return rule.dimNames.hasEllipsis = true;
        return parseIdentifier(rule.dimNames.names.emplace_back(), "a name of a dim");
      }))
    return false;
  if (!rule.pattern && consume("offload")) {
    rule.kind = consume("optimizer") ? RuleKind::OffloadOptimizer : RuleKind::OffloadParameters;
    if (rule.kind == RuleKind::OffloadParameters && !expect("parameters"))
      return false;
    graph.rules.push_back(std::move(rule));
    return expect(";");
  }
  if (rule.pattern && consume("quantize")) {
    rule.kind = RuleKind::Quantize;
    Quantization said;
    if (!expect("as") || !(consume("none") || parseQuantization(said, rule.type)))
      return false;
    rule.blocks.assign(said.blocks.begin(), said.blocks.end());
    rule.scales = said.scales;
    rule.dequantizes = consume("dequantize");
    return parseCases(rule);
  }
  bool recomputes = rule.pattern && consume("recompute");
  if (recomputes || (rule.pattern && consume("offload"))) {
    rule.kind = recomputes ? RuleKind::Recompute : RuleKind::Offload;
    rule.isWhole = recomputes && consume("whole");
    rule.gathersAll = recomputes && consume("again");
    if (rule.gathersAll && !expect("all"))
      return false;
    if (!recomputes && (!expect("after") || !parseUnsigned(rule.depth)))
      return false;
    return parseCases(rule);
  }
  if (consume("replicate")) {
    rule.kind = RuleKind::Replicate;
  } else if (consume("keep")) {
    rule.kind = RuleKind::KeepGathered;
    if (!expect("gathered"))
      return false;
  } else if (consume("partition")) {
    rule.kind = consume("optimizer")   ? RuleKind::PartitionOptimizer
                : consume("gradients") ? RuleKind::PartitionGradients
                                       : RuleKind::PartitionParameters;
    if (rule.kind == RuleKind::PartitionParameters && !expect("parameters"))
      return false;
  } else if (consume("overlap")) {
    rule.kind = consume("products")    ? RuleKind::OverlapProducts
                : consume("nothing")   ? RuleKind::OverlapNothing
                : consume("gradients") ? RuleKind::OverlapGradients
                                       : RuleKind::OverlapCommunication;
    if (rule.kind == RuleKind::OverlapCommunication) {
      if (!expect("communication"))
        return false;
      rule.isApart = consume("apart");
    }
  } else if (consume("reduce")) {
    rule.kind = RuleKind::ReduceGradients;
    if (!expect("gradients"))
      return false;
    rule.isApart = consume("apart");
  } else {
    auto parseDimName = [&] {
      if (!parseIdentifier(rule.dims.emplace_back(), "a dim"))
        return false;
      if (consume("?"))
        rule.lackable.push_back(rule.dims.back());
      return true;
    };
    rule.kind = consume("ring") ? RuleKind::Ring : RuleKind::Shard;
    if ((rule.kind == RuleKind::Shard && !expect("shard")) ||
        !(is("(") ? parseList("(", ")", parseDimName) : parseDimName()))
      return false;
  }
  if (!expect("over") || !parseAxes(rule.axes))
    return false;
  if (rule.kind == RuleKind::PartitionParameters && consume("keep")) {
    rule.depth = consume("last");
    rule.keeps = !rule.depth;
  }
  if (rule.kind == RuleKind::PartitionParameters && consume("again")) {
    if (!expect("all"))
      return false;
    rule.gathersAll = true;
  }
  if (rule.kind == RuleKind::PartitionOptimizer && consume("whole")) {
    if (!expect("tied"))
      return false;
    rule.isWhole = true;
  }
  if (rule.partitionsState() && consume("units") && !parseList("(", ")", [&] {
        std::optional<PathPattern> unit = parsePattern();
        if (unit)
          rule.units.push_back(std::move(*unit));
        return unit.has_value();
      }))
    return false;
  if (rule.kind == RuleKind::PartitionParameters && consume("prefetch") && !parseUnsigned(rule.prefetch))
    return false;
  if (rule.kind == RuleKind::PartitionParameters && consume("in") && !parseDType(rule.type.emplace()))
    return false;
  if (rule.kind == RuleKind::ReduceGradients && !parseReduction(rule))
    return false;
  rule.saysLayout =
      consume("blocked") || llvm::any_of(rule.axes, [](const PlacedAxis &axis) { return !axis.isPlain(); });
  graph.rules.push_back(std::move(rule));
  return expect(";");
}

/// `cases (1, 2);` or `;`, which ends the rule.
bool TextParser::parseCases(Rule &rule) {
  if (consume("cases")) {
    rule.cases.emplace();
    if (!parseList("(", ")", [&] { return parseUnsigned(rule.cases->emplace_back()); }))
      return false;
  }
  graph.rules.push_back(std::move(rule));
  return expect(";");
}

/// `bucket 1024 in bf16 per microbatch beside backward`
bool TextParser::parseReduction(Rule &rule) {
  if (consume("bucket") && !parseInteger(rule.bucketBytes, 1))
    return false;
  if (consume("in") && !parseDType(rule.type.emplace()))
    return false;
  rule.perMicrobatch = consume("per");
  if (rule.perMicrobatch && !expect("microbatch"))
    return false;
  rule.overlap = consume("beside")   ? Rule::Overlap::Beside
                 : consume("behind") ? Rule::Overlap::Behind
                                     : Rule::Overlap::None;
  return rule.overlap == Rule::Overlap::None || expect("backward");
}

/// `sum pairs.0 = 2*S*context - S^2 or 2*context;`
bool TextParser::parseSum() {
  SequenceSum sum;
  sum.loc = token.getLoc();
  if (!parseIdentifier(sum.symbol, "a name") || !expect("=") || !parseSize(sum.ofSeveral, {"or"}) || !expect("or") ||
      !parseSize(sum.ofOne))
    return false;
  graph.sums.push_back(std::move(sum));
  return expect(";");
}

bool TextParser::parseSlowRanks() {
  SlowRanks slow;
  slow.loc = token.getLoc();
  AxisSet seen = 0;
  if (!parseList("(", ")",
                 [&] {
                   Token at = token;
                   std::string name;
                   int64_t coordinate;
                   if (!parseIdentifier(name, "an axis") || !expect("=") || !parseInteger(coordinate, 0))
                     return false;
                   std::optional<AxisId> axis = graph.mesh.find(name);
                   if (!axis)
                     diags.report(at.getLoc(), diag::IRUnknownAxis) << name;
                   else if (coordinate >= graph.mesh[*axis].size || (seen >> *axis & 1))
                     diags.report(at.getLoc(), diag::IRBadSlowRanks) << name << graph.mesh[*axis].size;
                   else
                     slow.coordinates.emplace_back(*axis, coordinate);
                   seen |= axis ? toSet(PlacedAxis(*axis)) : 0;
                   return true;
                 }) ||
      !expect("by") || !parseSize(slow.factor) || !expect(";"))
    return false;
  std::optional<Rational> factor = slow.factor.getConstant();
  if (!factor || factor->num <= 0)
    diags.report(slow.loc, diag::IRBadFactor) << slow.factor.str();
  graph.slowRanks.push_back(std::move(slow));
  return true;
}

std::optional<PathPattern> TextParser::parsePattern() {
  Token at = token;
  std::string text;
  if (!parseQuoted(text, "a pattern in quotes"))
    return std::nullopt;
  std::optional<PathPattern> pattern = PathPattern::parse(text);
  if (!pattern)
    diags.report(at.getLoc(), diag::BadPattern) << text;
  return pattern;
}

/// `stream reduce: communication;`
bool TextParser::parseStream() {
  auto stream = std::make_shared<Stream>();
  Token at = token;
  stream->loc = at.getLoc();
  stream->number = graph.streams.size();
  if (!parseIdentifier(stream->name, "a name for a stream") || !expect(":"))
    return false;
  if (graph.findStream(stream->name)) {
    diags.report(at.getLoc(), diag::IRRedefinition) << at.text;
    return false;
  }
  if (graph.streams.size() == maxStreams)
    return fail("at most " + llvm::Twine(maxStreams) + " streams");
  for (unsigned kind = 0; kind < numStreamKinds; ++kind) {
    stream->kind = StreamKind(kind);
    if (!consume(getName(stream->kind)))
      continue;
    stream->hasMessages = stream->kind == StreamKind::Communication && consume("of");
    if (stream->hasMessages && (!expect("stages") || graph.getMessageStream()))
      return fail("one stream of the messages between stages");
    graph.streams.push_back(std::move(stream));
    return expect(";");
  }
  return fail("'computation', 'communication', 'copies' or 'host_computation'");
}

/// `"F0 F1(S=16) B0 B1(S=16)"`.
bool TextParser::parseUnitList() {
  SMLoc loc = token.getLoc();
  std::string text;
  if (!parseQuoted(text, "a list of units in quotes"))
    return false;
  if (auto units = parseUnits(text, &graph.pipeline.environments)) {
    graph.pipeline.units.push_back(std::move(*units));
    return true;
  }
  diags.report(loc, diag::IRUnits) << int64_t(graph.pipeline.units.size()) << text;
  return false;
}

bool TextParser::parsePipeline() {
  PipelineInfo &pipeline = graph.pipeline;
  pipeline.loc = token.getLoc();
  bool isList = consume("(");
  bool hasRepeats = isList || !is("{"); // without any it says the units of one stage
  while (hasRepeats) {
    if (!parseName(pipeline.repeats.emplace_back(), "the name of a repeat"))
      return false;
    hasRepeats = isList && consume(",");
  }
  if (isList && !expect(")"))
    return false;
  if (consume("over")) {
    Token at = token;
    AxisList axes;
    if (!parseAxis(axes))
      return false;
    if (axes.size() != 1 || !axes.front().isPlain()) {
      diags.report(at.getLoc(), diag::IRPipelineAxis) << at.text;
      return false;
    }
    pipeline.axis = axes.front();
  }
  if (!expect("{"))
    return false;
  while (!consume("}")) {
    bool parsed;
    if (consume("chunks")) {
      parsed = parseUnsigned(pipeline.chunks);
    } else if (consume("copies")) {
      parsed = parseUnsigned(pipeline.copies);
    } else if (consume("placement")) {
      do
        parsed = parseUnsigned(pipeline.placement.emplace_back());
      while (parsed && consume(","));
    } else if (consume("split")) {
      if (consume("balanced")) {
        pipeline.balance = consume("flops") ? Balance::Flops : consume("memory") ? Balance::Memory : Balance::None;
        if (pipeline.balance == Balance::None)
          return fail("'flops' or 'memory'");
        parsed = true;
      } else {
        do
          parsed = parseInteger(pipeline.split.emplace_back(), 0);
        while (parsed && consume(","));
      }
    } else if (consume("send")) {
      pipeline.send = consume("early")      ? MessageMode::Early
                      : consume("blocking") ? MessageMode::Blocking
                                            : MessageMode::AtEnd;
      if (pipeline.send == MessageMode::AtEnd)
        return fail("'early' or 'blocking'");
      parsed = true;
    } else if (consume("scatter_gather")) {
      AxisList axes;
      parsed = parseAxes(axes);
      pipeline.scatterGather = toSet(axes);
    } else if (consume("place")) {
      PipelineInfo::Placement &placement = pipeline.placements.emplace_back();
      placement.loc = token.getLoc();
      parsed = parseName(placement.name, "what is placed") && expect("on") && parseUnsigned(placement.virtualStage);
    } else if (consume("schedule")) {
      parsed = parseName(pipeline.scheduleName, "the schedule's name");
    } else if (consume("units")) {
      parsed = parseUnitList();
    } else if (consume("names")) {
      do
        parsed = parseQuoted(pipeline.unitNames.emplace_back(), "the name of a unit");
      while (parsed && consume(","));
    } else {
      return fail("'chunks', 'copies', 'placement', 'split', 'send', 'scatter_gather', 'place', 'schedule', 'units' or "
                  "'names'");
    }
    if (!parsed || !expect(";"))
      return false;
  }
  return true;
}

std::unique_ptr<Graph> stage::parseGraph(SizeContext &sizes, DiagnosticEngine &diags, unsigned bufferId) {
  auto graph = std::make_unique<Graph>(sizes);
  unsigned errorsBefore = diags.getNumErrors();
  llvm::StringRef text = diags.getSources().getMemoryBuffer(bufferId)->getBuffer();
  TextParser parser(*graph, diags, text);
  if (parser.parseGraph())
    parser.parseEnd();
  return diags.getNumErrors() == errorsBefore ? std::move(graph) : nullptr;
}
