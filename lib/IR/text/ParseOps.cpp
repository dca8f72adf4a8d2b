//===- ParseOps.cpp - blocks of the IR text -------------------------------===//
//
// Names are those of the whole graph: a backward body finds the values of the forward
// body of its loop by name. Whether an op may use a value is for the verifier.
//
// Invariant: a value is in `values` only if its op is in its block, so no name ever
// leads to an op that was given up.
//
//===----------------------------------------------------------------------===//
#include "TextParser.h"
#include "TextWriter.h"
#include "stage/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace stage;

bool TextParser::parseTopBlock(Block &block) {
  if (!block.empty()) {
    diags.report(token.getLoc(), diag::IRRedefinition) << token.text;
    return false;
  }
  advance();
  return parseBlock(block);
}

bool TextParser::parseBlock(Block &block) {
  if (depth == maxNesting)
    return fail("less nesting");
  if (!expect("{"))
    return false;
  ++depth;
  while (!is("}") && token.kind != Token::End) {
    Token start = token;
    if (!parseOp(block))
      skipStatement(start);
  }
  --depth;
  return expect("}");
}

bool TextParser::parseDefinition(Definition &definition) {
  if (token.kind != Token::Value)
    return fail("the name of a value");
  definition.name = token;
  llvm::StringRef name = token.text.drop_front();
  advance();
  if (token.kind == Token::String)
    return parseQuoted(definition.path, "a path");
  if (!llvm::isDigit(name.front()))
    definition.path = name.str();
  return true;
}

void TextParser::define(const Definition &definition, Value *value) {
  llvm::StringRef name = definition.name.text.drop_front();
  if (value && values.lookup(name))
    diags.report(definition.name.getLoc(), diag::IRRedefinition) << definition.name.text;
  values.try_emplace(name, value);
}

bool TextParser::parseOp(Block &block) {
  llvm::SmallVector<Definition, 2> results;
  Op *op = nullptr;
  auto parseHead = [&] {
    if (token.kind == Token::Value) {
      do {
        Definition definition;
        if (!parseDefinition(definition))
          return false;
        results.push_back(std::move(definition));
      } while (consume(","));
      if (!expect("="))
        return false;
    }
    auto created = std::make_unique<Op>(OpKind::Compute, token.getLoc());
    if (!parseOpBody(*created, results))
      return false;
    op = block.append(std::move(created));
    return true;
  };
  size_t numPending = pendingEdges.size();
  if (!parseHead()) {
    pendingEdges.erase(pendingEdges.begin() + numPending, pendingEdges.end()); // those of an op that is gone
    for (const Definition &definition : results)
      define(definition, nullptr);
    return false;
  }
  bool parsed;
  if (op->kind == OpKind::Repeat) {
    parsed = expect("do") && parseBodies(*op);
  } else {
    parsed = expect(";");
  }
  for (auto &result : op->getResults())
    define(results[result->getNumber()], result.get());
  return parsed;
}

/// The op's kind with all that follows, up to a `;` or a body.
bool TextParser::parseOpBody(Op &op, llvm::ArrayRef<Definition> results) {
  std::string name;
  Token at = token;
  if (token.kind == Token::Identifier && isOpKeyword(token.text)) {
#define IR_OP(id, text)                                                                                                \
  if (is(text))                                                                                                        \
    op.kind = OpKind::id;
#include "stage/IR/graph/Ops.def"
    advance();
  } else if (!parseName(name, "an op")) {
    return false;
  }
  bool parsed = true;
  switch (op.kind) {
  case OpKind::Compute:
    op.def = graph.defs.find(name);
    if (!op.def) {
      diags.report(at.getLoc(), diag::IRUnknownOperator) << name;
      return false;
    }
    writtenExtents.assign(op.def->indices.size(), Extent());
    op.indexAxes.resize(op.def->indices.size());
    op.indexConstraint.resize(op.def->indices.size());
    parsed = parseOperands(op) && (!is("[") || parseIndices(op));
    for (unsigned i = 0; i < op.def->indices.size(); ++i)
      op.indexAxes[i] = op.indexAxes[op.def->getCarrier(i)];
    break;
  case OpKind::Param:
  case OpKind::Buffer:
  case OpKind::Cache:
  case OpKind::Input:
    if (token.kind == Token::String || token.kind == Token::Identifier)
      parsed = parseName(op.name, "a name");
    else if (!results.empty())
      op.name = getLocalName(results.front().path).str();
    if (op.kind == OpKind::Cache && parsed && consume("["))
      parsed = parseSize(op.entry) && expect(",") && parseSize(op.entries) && expect("]");
    break;
  case OpKind::Append:
  case OpKind::Store:
  case OpKind::Load:
    parsed = parseOperands(op) && expect("dim") && parseUnsigned(op.dim);
    op.isRolling = parsed && op.kind == OpKind::Append && consume("rolling");
    break;
  case OpKind::Constant:
    parsed = parseNumber(op.number);
    break;
  case OpKind::Repeat:
    parsed = parseRepeatHead(op);
    break;
  case OpKind::Yield:
  case OpKind::Return:
    if (token.kind == Token::Value)
      do
        parsed = parseOperand(op);
      while (parsed && consume(","));
    break;
  default:
    parsed = parseOperands(op) && (!(isReshard(op.kind) || op.kind == OpKind::Join) || parseReshard(op));
  }
  return parsed && parseResults(op, results) && parseOrigin(op) && parsePlace(op);
}

/// `from %y`: the op that makes %y, of which this one is the gradient. `again %y`: this one makes it again, as `again`
/// alone does what belongs to such ops and not to one of them.
bool TextParser::parseOrigin(Op &op) {
  op.isRecomputed = consume("again");
  if (op.isRecomputed ? token.kind != Token::Value : !consume("from"))
    return true;
  Token at = token;
  Value *value;
  if (!parseValue(value))
    return false;
  op.origin = value->getOp();
  bool fits = op.kind == OpKind::Compute && op.origin && op.origin->kind == OpKind::Compute &&
              op.origin->def->indices.size() == op.def->indices.size();
  for (unsigned i = 0; fits && i < op.def->indices.size(); ++i)
    fits = op.origin->def->indices[i].name == op.def->indices[i].name;
  if (!fits)
    diags.report(at.getLoc(), diag::IRWrongOrigin) << at.text;
  return fits;
}

bool TextParser::parseValue(Value *&value) {
  if (token.kind != Token::Value)
    return fail("a value");
  llvm::StringRef name = token.text.drop_front();
  auto it = values.find(name);
  if (it == values.end()) {
    diags.report(token.getLoc(), diag::IRUnknownValue) << name;
    return false;
  }
  if (!it->second)
    return false; // reported where the value is defined
  value = it->second;
  advance();
  return true;
}

bool TextParser::parseOperand(Op &op) {
  Value *value;
  if (!parseValue(value))
    return false;
  op.addOperand(value);
  return true;
}

bool TextParser::parseOperands(Op &op) {
  return parseList("(", ")", [&] { return parseOperand(op); });
}

bool TextParser::parseReshard(Op &op) {
  if (!expect("over") || !parseAxes(op.axes))
    return false;
  op.flat = consume("flat");
  if (consume("dim") && !(is("(") ? parseDims(op) : parseUnsigned(op.dim)))
    return false;
  if (consume("to") && !parseUnsigned(op.toDim))
    return false;
  if (consume("reduce") && !parseReduceKind(op.reduce))
    return false;
  if (op.kind == OpKind::Permute && (!expect("by") || !parseUnsigned(op.shift)))
    return false;
  if (!consume("stages"))
    return true;
  bool parsed;
  do
    parsed =
        parseList("(", ")", [&, &group = op.stages.emplace_back()] { return parseUnsigned(group.emplace_back()); });
  while (parsed && consume(","));
  return parsed;
}

/// `(0, 2)`: the dims that an all_to_all makes whole.
bool TextParser::parseDims(Op &op) {
  bool isFirst = true;
  return parseList("(", ")", [&] {
    unsigned &dim = isFirst ? op.dim : op.moreDims.emplace_back();
    isFirst = false;
    return parseUnsigned(dim);
  });
}

bool TextParser::parseRepeatHead(Op &op) {
  if (!parseName(op.name, "the name of the repeat") || !expect("[") || !parseSize(op.count) || !expect("]") ||
      (consume("cases") && !parseCases(op)) || !expect("loop") || !parseUnsigned(op.loop))
    return false;
  op.reverse = consume("reverse");
  return parseArguments(op, op.addBody(graph));
}

/// `(0 * 3, 1 * 58)`: runs of equal iterations.
bool TextParser::parseCases(Op &op) {
  return parseList("(", ")", [&] {
    unsigned number;
    int64_t count, sum;
    if (!parseUnsigned(number) || !expect("*"))
      return false;
    Token at = token;
    if (!parseInteger(count, 1))
      return false;
    if (llvm::AddOverflow(op.cases.getNumIterations(), count, sum)) {
      diags.report(at.getLoc(), diag::IRBadCases) << op.name << "more iterations than a number holds";
      return false;
    }
    op.cases.append(number, count);
    return true;
  });
}

/// Those of the first body have initial values, which are the repeat's operands.
bool TextParser::parseArguments(Op &op, Block &body) {
  argumentDefinitions.clear();
  return parseList("(", ")", [&] {
    Definition definition;
    if (!parseDefinition(definition) || (!body.getNumber() && consume("=") && !parseOperand(op)) || !expect(":"))
      return false;
    Value *argument = body.addArgument(TensorType(), definition.path);
    argument->loc = definition.name.getLoc();
    argumentDefinitions.push_back(std::move(definition));
    return parseFacts(*argument);
  });
}

/// `{ ... } or (arguments) { ... }`
bool TextParser::parseBodies(Op &op) {
  bool parsed;
  do {
    Block &body = *op.bodies.back();
    for (auto &argument : body.getArguments())
      define(argumentDefinitions[argument->getNumber()], argument.get());
    parsed = parseBlock(body);
  } while (parsed && consume("or") && (parsed = parseArguments(op, op.addBody(graph))));
  return parsed;
}

bool TextParser::parseIndices(Op &op) {
  return parseList("[", "]", [&] {
    Token at = token;
    std::string name;
    if (is("(")) { // a compound index that stands nowhere else
      while (!is(")") && token.kind != Token::End) {
        name += (name.size() > 1 ? " " : "") + token.text.str();
        advance();
      }
      name += ")";
      if (!expect(")"))
        return false;
    } else if (!parseIdentifier(name, "an index")) {
      return false;
    }
    auto index = op.def->findIndex(name);
    if (!index) {
      diags.report(at.getLoc(), diag::IRUnknownIndex) << op.def->name << name;
      return false;
    }
    if (consume("=") && !parseExtent(writtenExtents[*index], {"over", "must", "ring", "turns"}))
      return false;
    if (consume("over") && !parseAxes(op.indexAxes[*index]))
      return false;
    if (consume("must") && !parseAxes(op.indexConstraint[*index].emplace()))
      return false;
    if (consume("ring"))
      op.ring = *index;
    if (consume("turns")) {
      AxisList axes;
      if (!parseAxes(axes))
        return false;
      op.turns = {*index, toSet(axes)};
    }
    return true;
  });
}

bool TextParser::parseFacts(Value &value) {
  return parseType(value.type) && parseSharding(value.sharding) &&
         (!consume("want") || parseConstraint(value.constraint)) && (!consume("of") || parseValue(value.primal));
}

bool TextParser::parseResults(Op &op, llvm::ArrayRef<Definition> definitions) {
  for (size_t i = 0; i < definitions.size(); ++i) {
    Value *result = op.addResult(TensorType(), definitions[i].path);
    result->loc = definitions[i].name.getLoc();
    if (!expect(i == 0 ? ":" : ",") || !parseFacts(*result))
      return false;
  }
  if (op.kind != OpKind::Compute)
    return true;
  for (unsigned i = 0; i < op.def->indices.size(); ++i) {
    op.extents.push_back(writtenExtents[i].size ? writtenExtents[i] : inferExtent(op, i));
    if (!op.extents.back().size) {
      diags.report(op.loc, diag::IRNoExtent) << op.def->indices[i].name << op.def->name;
      return false;
    }
  }
  return true;
}

bool TextParser::parsePlace(Op &op) {
  if (op.getNumResults())
    op.scope = getScope(op.getResult()->path).str();
  if (consume("in") && !parseQuoted(op.scope, "a scope in quotes"))
    return false;
  if (consume("stage")) {
    unsigned stage;
    if (!parseUnsigned(stage))
      return false;
    op.virtualStage = stage;
  }
  return parseOrder(op);
}

/// `stream reduce after %x, %y [-1], %z [unit -2]`. What comes after may be named: a later op of an earlier iteration.
bool TextParser::parseOrder(Op &op) {
  op.isFed = consume("fed");
  op.isPrefetched = consume("prefetched");
  op.clips = consume("clipped");
  if (consume("copies") && !parseUnsigned(op.copies))
    return false;
  op.waitsForUnits = consume("behind");
  if (op.waitsForUnits && !expect("units"))
    return false;
  if (consume("stream")) {
    op.stream = graph.findStream(token.text);
    if (!op.stream) {
      diags.report(token.getLoc(), diag::IRUnknownStream) << token.text;
      return false;
    }
    advance();
  }
  if (!consume("after"))
    return true;
  do {
    PendingEdge edge{&op, token, {}};
    if (token.kind != Token::Value)
      return fail("a value");
    advance();
    if (consume("[")) {
      bool ofUnits = consume("unit");
      int64_t distance;
      if (!expect("-") || !parseInteger(distance, 1) || !expect("]"))
        return false;
      (ofUnits ? edge.edge.units : edge.edge.iterations) = std::min<int64_t>(distance, UINT32_MAX);
    }
    pendingEdges.push_back(edge);
  } while (consume(","));
  return true;
}

/// Once all values have names.
bool TextParser::resolveEdges() {
  bool good = true;
  for (PendingEdge &pending : pendingEdges) {
    auto it = values.find(pending.name.text.drop_front());
    if (it == values.end())
      diags.report(pending.name.getLoc(), diag::IRUnknownValue) << pending.name.text.drop_front();
    pending.edge.value = it == values.end() ? nullptr : it->second;
    if (pending.edge.value) // else reported
      pending.op->after.push_back(pending.edge);
    else
      good = false;
  }
  return good;
}
