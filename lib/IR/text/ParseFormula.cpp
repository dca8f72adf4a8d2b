//===- ParseFormula.cpp - element formulas of the IR text -----------------===//
//
// Precedence as printed, loosest first: `||`, `&&`, comparison (which does not
// associate), `+ -`, `* /`, unary `- !`.
//
//===----------------------------------------------------------------------===//
#include "TextParser.h"
#include "stage/IR/Diagnostics.h"

using namespace stage;

namespace {
struct BinaryOperator {
  llvm::StringRef text;
  Formula::Kind kind;
  unsigned strength;
};

/// Counts the nesting of a recursive phrase while it is alive.
class DepthScope {
public:
  explicit DepthScope(unsigned &depth) : depth(depth) { ++depth; }
  ~DepthScope() { --depth; }

private:
  unsigned &depth;
};
} // namespace

static constexpr unsigned comparison = 2, unary = 5;
static const BinaryOperator binaryOperators[] = {
    {"||", Formula::Kind::Or, 0},        {"&&", Formula::Kind::And, 1},   {"<", Formula::Kind::Less, 2},
    {"<=", Formula::Kind::LessEqual, 2}, {"==", Formula::Kind::Equal, 2}, {"+", Formula::Kind::Add, 3},
    {"-", Formula::Kind::Sub, 3},        {"*", Formula::Kind::Mul, 4},    {"/", Formula::Kind::Div, 4},
};

const Formula *TextParser::parseFormula(OpDef &def, unsigned strength) {
  if (strength >= unary)
    return parseUnary(def);
  const Formula *left = parseFormula(def, strength + 1);
  llvm::SmallVector<const Formula *, 4> addends; // of a chain of `+` that ends in `left`; it may be long
  while (left) {
    auto op = llvm::find_if(binaryOperators, [&](const BinaryOperator &candidate) {
      return candidate.strength == strength && is(candidate.text);
    });
    if (op == std::end(binaryOperators))
      break;
    advance();
    const Formula *right = parseFormula(def, strength + 1);
    if (!right)
      return nullptr;
    if (op->kind == Formula::Kind::Add) {
      addends.push_back(left);
      left = right;
      continue;
    }
    addends.push_back(left);
    left = graph.defs.binary(op->kind, graph.defs.addUp(addends), right);
    addends.clear();
    if (strength == comparison)
      break;
  }
  if (!left)
    return nullptr;
  addends.push_back(left);
  return graph.defs.addUp(addends);
}

const Formula *TextParser::parseUnary(OpDef &def) {
  DepthScope scope(depth);
  if (depth > maxNesting) {
    fail("less nesting");
    return nullptr;
  }
  bool negate = is("-");
  if (!negate && !is("!"))
    return parsePrimary(def);
  advance();
  if (negate && token.kind == Token::Number) {
    double value;
    if (!parseNumber(value))
      return nullptr;
    return graph.defs.number(-value);
  }
  const Formula *operand = parseFormula(def, unary);
  if (!operand)
    return nullptr;
  Formula node{};
  node.kind = negate ? Formula::Kind::Negate : Formula::Kind::Not;
  return graph.defs.create(node, {}, operand);
}

const Formula *TextParser::parsePrimary(OpDef &def) {
  if (token.kind == Token::Number) {
    double value;
    return parseNumber(value) ? graph.defs.number(value) : nullptr;
  }
  if (isCompound()) {
    std::optional<unsigned> compound = parseCompound(def, /*declare=*/false);
    if (!compound)
      return nullptr;
    Formula node{};
    node.kind = Formula::Kind::Index;
    node.index = *compound;
    return graph.defs.create(node, {}, {});
  }
  if (consume("(")) {
    const Formula *inner = parseFormula(def);
    return inner && expect(")") ? inner : nullptr;
  }
  if (token.kind != Token::Identifier) {
    fail("a formula");
    return nullptr;
  }
  if (isReduction())
    return parseReduction(def);
  Token name = token;
  advance();
  if (is("(")) {
    lexer.rewind(name);
    advance();
    return parseCall(def);
  }
  if (is("["))
    if (auto operand = operandNumbers.find(name.text); operand != operandNumbers.end())
      return parseElement(def, operand->second);
  Formula node{};
  if (auto let = letNumbers.find(name.text); let != letNumbers.end()) {
    node.kind = Formula::Kind::Let;
    node.operand = let->second;
    return graph.defs.create(node, {}, {});
  }
  if (auto index = def.findIndex(name.text)) {
    node.kind = Formula::Kind::Index;
    node.index = *index;
    return graph.defs.create(node, {}, {});
  }
  double value;
  if ((name.text == "inf" || name.text == "nan") && !name.text.getAsDouble(value))
    return graph.defs.number(value);
  diags.report(name.getLoc(), diag::IRUnknownName) << name.text << def.name;
  return nullptr;
}

/// `(k e)`, not the formula `(k)`.
bool TextParser::isCompound() {
  if (!is("("))
    return false;
  Token start = token;
  advance();
  bool first = token.kind == Token::Identifier;
  advance();
  bool result = first && token.kind == Token::Identifier;
  lexer.rewind(start);
  advance();
  return result;
}

bool TextParser::isReduction() {
  if (!is("sum") && !is("max") && !is("min") && !is("mean"))
    return false;
  Token start = token;
  advance();
  if (is("[")) {
    while (!is("]") && token.kind != Token::End)
      advance();
    advance();
  } else {
    token = Token();
  }
  bool result = is("(");
  lexer.rewind(start);
  advance();
  return result;
}

const Formula *TextParser::parseReduction(OpDef &def) {
  Formula node{};
  node.kind = Formula::Kind::Reduce;
  node.isMean = consume("mean");
  if (!node.isMean && !parseReduceKind(node.reduce))
    return nullptr;
  llvm::SmallVector<unsigned, 4> indices;
  // Indices that no operand and no result has are declared in brackets behind the operator's name.
  if (!parseIndexNames(def, indices, /*declare=*/false) || !expect("("))
    return nullptr;
  const Formula *body = parseFormula(def);
  return body && expect(")") ? graph.defs.create(node, indices, body) : nullptr;
}

const Formula *TextParser::parseElement(OpDef &def, unsigned operand) {
  llvm::SmallVector<const Formula *, 4> subscripts;
  Token start = token;
  if (!parseArguments(def, "[", "]", subscripts))
    return nullptr;
  size_t expected = def.operands[operand].indices.size();
  if (subscripts.size() != expected) {
    diags.report(start.getLoc(), diag::IRWrongCount)
        << "subscripts" << def.operands[operand].name << expected << subscripts.size();
    return nullptr;
  }
  Formula node{};
  node.kind = Formula::Kind::Element;
  node.operand = operand;
  return graph.defs.create(node, {}, subscripts);
}

const Formula *TextParser::parseCall(OpDef &def) {
  Token name = token;
  advance();
  Formula node{};
  if (name.text == "size") {
    node.kind = Formula::Kind::SizeOf;
    return expect("(") && parseSize(node.size) && expect(")") ? graph.defs.create(node, {}, {}) : nullptr;
  }
  size_t expected = 1;
  bool orMore = false;
  if (name.text == "where") {
    node.kind = Formula::Kind::Select;
    expected = 3;
  } else if (name.text == "random") {
    node.kind = Formula::Kind::Random;
  } else if (auto function = parseFunction(name.text)) {
    node.kind = Formula::Kind::Call;
    node.function = *function;
    orMore = *function == Formula::Function::Max || *function == Formula::Function::Min;
    expected = orMore ? 2 : 1;
  } else {
    diags.report(name.getLoc(), diag::IRUnknownName) << name.text << def.name;
    return nullptr;
  }
  llvm::SmallVector<const Formula *, 3> arguments;
  if (!parseArguments(def, "(", ")", arguments))
    return nullptr;
  if (orMore ? arguments.size() < expected : arguments.size() != expected) {
    diags.report(name.getLoc(), diag::IRWrongCount) << "arguments" << name.text << expected << arguments.size();
    return nullptr;
  }
  return graph.defs.create(node, {}, arguments);
}

bool TextParser::parseArguments(OpDef &def, llvm::StringRef open, llvm::StringRef close,
                                llvm::SmallVectorImpl<const Formula *> &arguments) {
  return parseList(open, close, [&] {
    arguments.push_back(parseFormula(def));
    return arguments.back() != nullptr;
  });
}
