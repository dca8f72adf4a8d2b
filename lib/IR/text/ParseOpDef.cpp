//===- ParseOpDef.cpp - operators of the IR text --------------------------===//
//
// A result's formula may use the lets, which stand behind it in the braces: formulas
// of results are skipped first and read when the operator ends.
//
//===----------------------------------------------------------------------===//
#include "TextParser.h"
#include "stage/IR/Diagnostics.h"

using namespace stage;

bool TextParser::parseIndexNames(OpDef &def, llvm::SmallVectorImpl<unsigned> &indices, bool declare) {
  return parseList("[", "]", [&] {
    std::optional<unsigned> index = declare && is("(") ? parseCompound(def, declare) : parseIndexName(def, declare);
    if (index)
      indices.push_back(*index);
    return index.has_value();
  });
}

std::optional<unsigned> TextParser::parseIndexName(OpDef &def, bool declare) {
  Token at = token;
  std::string name;
  if (!parseIdentifier(name, "an index"))
    return std::nullopt;
  auto known = def.findIndex(name);
  if (!known && !declare) {
    diags.report(at.getLoc(), diag::IRUnknownIndex) << def.name << name;
    return std::nullopt;
  }
  if (!known)
    def.indices.push_back({name, false, false, {}});
  return known ? *known : unsigned(def.indices.size() - 1);
}

/// `(k e)`: several indices as one.
std::optional<unsigned> TextParser::parseCompound(OpDef &def, bool declare) {
  llvm::SmallVector<unsigned, 4> members;
  Token open = token;
  if (!expect("("))
    return std::nullopt;
  while (!consume(")")) {
    if (token.kind != Token::Identifier) {
      fail("an index or ')'");
      return std::nullopt;
    }
    Token at = token;
    std::optional<unsigned> member = parseIndexName(def, declare);
    if (!member)
      return std::nullopt;
    if (llvm::is_contained(members, *member)) {
      diags.report(at.getLoc(), diag::IRRedefinition) << at.text;
      return std::nullopt;
    }
    members.push_back(*member);
  }
  if (members.size() < 2) {
    fail("two indices or more in a compound");
    return std::nullopt;
  }
  unsigned numKnown = def.indices.size(), compound = def.getCompound(members);
  if (declare || compound < numKnown)
    return compound;
  diags.report(open.getLoc(), diag::IRUnknownIndex) << def.name << def.indices[compound].name;
  return std::nullopt;
}

bool TextParser::parseOpDef() {
  OpDef def;
  operandNumbers.clear();
  letNumbers.clear();
  Token name = token;
  def.loc = name.getLoc();
  if (!parseName(def.name, "the operator's name"))
    return false;
  llvm::SmallVector<unsigned, 8> order;
  if (is("[") && !parseIndexNames(def, order, /*declare=*/true))
    return false;
  bool parsed = parseList("(", ")", [&] {
    OperandInfo operand;
    if (!parseIdentifier(operand.name, "an operand") || !expect(":") || !parseIndexNames(def, operand.indices, true))
      return false;
    operandNumbers.try_emplace(operand.name, def.operands.size());
    def.operands.push_back(std::move(operand));
    return true;
  });
  llvm::SmallVector<Token, 2> formulas;
  parsed = parsed && expect("->") && parseList("(", ")", [&] { return parseResult(def, formulas.emplace_back()); });
  if (!parsed || (consume("vjp") && !parseVjp(def)))
    return false;
  if (!is(";")) {
    if (!expect("{"))
      return false;
    while (!is("}"))
      if (!parseClause(def) || !expect(";"))
        return false;
  }

  Token end = token;
  for (unsigned i = 0; i < formulas.size(); ++i) {
    if (formulas[i].kind == Token::End)
      continue;
    lexer.rewind(formulas[i]);
    advance();
    def.results[i].formula = parseFormula(def);
    if (!def.results[i].formula)
      return false;
    if (!is(",") && !is(")"))
      return fail("',' or ')'");
  }
  lexer.rewind(end);
  advance();
  advance(); // `;` or `}`
  if (!checkVjp(def))
    return false;
  std::string written = def.name;
  if (graph.defs.find(written) || graph.defs.add(std::move(def))->name != written)
    diags.report(name.getLoc(), diag::IRRedefinition) << written;
  return true;
}

bool TextParser::parseResult(OpDef &def, Token &formula) {
  ResultInfo result;
  result.extra = consume("extra");
  if (!parseIdentifier(result.name, "a result") || !expect(":"))
    return false;
  if (!is("[")) {
    result.dtype.emplace();
    if (!parseDType(*result.dtype))
      return false;
  }
  if (!parseIndexNames(def, result.indices, /*declare=*/true))
    return false;
  def.results.push_back(std::move(result));
  if (consume("=")) {
    formula = token;
    skipFormula();
  }
  return true;
}

void TextParser::skipFormula() {
  unsigned nesting = 0;
  for (; token.kind != Token::End; advance()) {
    if (is("(") || is("["))
      ++nesting;
    else if (nesting == 0 && (is(",") || is(")") || is(";")))
      return;
    else if (is(")") || is("]"))
      nesting -= nesting != 0;
  }
}

bool TextParser::parseVjp(OpDef &def) {
  Token at = token;
  std::string name;
  if (!parseName(name, "an operator"))
    return false;
  def.vjpOf = graph.defs.find(name);
  if (!def.vjpOf) {
    diags.report(at.getLoc(), diag::IRUnknownOperator) << name;
    return false;
  }
  auto parseNumbers = [&](auto &numbers, size_t count) {
    return parseList("(", ")", [&] {
      numbers.emplace_back();
      if (token.kind == Token::Number && !token.text.getAsInteger(10, numbers.back()) && numbers.back() < count) {
        advance();
        return true;
      }
      return fail("a number below " + llvm::Twine(count));
    });
  };
  return parseNumbers(def.vjpGradients, def.vjpOf->results.size()) && expect("->") &&
         parseNumbers(def.vjpOperands, def.vjpOf->operands.size());
}

/// The backward of an op takes and makes what makeBackward() says; names may differ.
bool TextParser::checkVjp(const OpDef &def) {
  if (!def.vjpOf)
    return true;
  OpDef expected = makeBackward(*def.vjpOf, def.vjpGradients, def.vjpOperands);
  auto areAlike = [](auto &found, auto &wanted, auto &&member) {
    return std::equal(found.begin(), found.end(), wanted.begin(), wanted.end(),
                      [&](auto &a, auto &b) { return a.*member == b.*member; });
  };
  if (areAlike(def.indices, expected.indices, &IndexInfo::name) &&
      areAlike(def.operands, expected.operands, &OperandInfo::indices) &&
      areAlike(def.results, expected.results, &ResultInfo::indices))
    return true;
  expected.name = def.name;
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os, expected);
  diags.report(def.loc, diag::IRWrongVjp) << def.name << def.vjpOf->name << llvm::StringRef(os.str()).trim();
  return false;
}

/// One clause of the braces, without its `;`.
bool TextParser::parseClause(OpDef &def) {
  if (consume("let")) {
    std::string name;
    if (!parseIdentifier(name, "a name") || !expect("="))
      return false;
    const Formula *formula = parseFormula(def);
    if (formula) {
      letNumbers.try_emplace(name, def.lets.size());
      def.lets.emplace_back(name, formula);
    }
    return formula;
  }
  if (consume("opaque"))
    return def.opaque = true;
  for (auto [word, isAddend] : {std::pair("part", false), std::pair("addend", true)})
    if (consume(word)) {
      def.part.isAddend = isAddend;
      return parseUnsigned(def.part.number) && expect("of") && parseName(def.part.kernel, "a kernel");
    }
  if (consume("stop_gradient"))
    return def.stopGradient = true;
  for (auto [word, flag] : {std::pair("whole", &IndexInfo::whole), std::pair("fold", &IndexInfo::fold)}) {
    if (!consume(word))
      continue;
    do {
      auto index = token.kind == Token::Identifier ? def.findIndex(token.text) : std::nullopt;
      if (!index)
        return fail("an index");
      def.indices[*index].*flag = true;
      advance();
      if (flag == &IndexInfo::fold && consume("by")) {
        def.indices[*index].by = token.kind == Token::Identifier ? def.findIndex(token.text) : std::nullopt;
        if (!def.indices[*index].by)
          return fail("an index");
        advance();
      }
    } while (consume(","));
    return true;
  }
  if (consume("mask")) {
    auto kind = token.kind == Token::Identifier ? parseMaskKind(token.text) : std::nullopt;
    if (!kind)
      return fail("'full', 'causal', 'window' or 'blocks'");
    advance();
    Mask mask{*kind, 0, 0, Size()};
    auto parseMasked = [&](unsigned &masked) {
      auto index = token.kind == Token::Identifier ? def.findIndex(token.text) : std::nullopt;
      if (!index)
        return fail("an index");
      masked = *index;
      advance();
      return true;
    };
    if (!expect("(") || !parseMasked(mask.rows) || !expect(",") || !parseMasked(mask.columns))
      return false;
    if (needsAmount(*kind) ? !expect(",") || !parseSize(mask.amount)
                           : takesAmount(*kind) && consume(",") && !parseSize(mask.amount))
      return false;
    def.mask = mask;
    return expect(")");
  }
  if (consume("routes"))
    return parseRouting(def);
  if (consume("saves"))
    return parseSaves(def);
  if (consume("class")) {
    if (!expect("="))
      return false;
    def.declaredClass = parseFlopClass(token.text);
    if (!def.declaredClass)
      return fail("'contraction', 'attention' or 'other'");
    advance();
    return true;
  }
  if (consume("flops"))
    return expect("=") && parseSize(def.flops);
  if (consume("bytes"))
    return expect("=") && parseSize(def.bytes);
  if (consume("backward"))
    return expect("flops") && expect("=") && parseSize(def.backwardFlops);
  if (consume("recomputing"))
    return expect("=") && parseSize(def.backwardRecompute);
  return fail("a clause of the operator");
}

/// `b, s, j -> x, c by to`: indices of the operand, in its order, on the left, two others on the right. What else the
/// operand has stays as it is.
bool TextParser::parseRouting(OpDef &def) {
  auto parseIndices = [&](llvm::SmallVectorImpl<unsigned> &indices) {
    do {
      auto index = token.kind == Token::Identifier ? def.findIndex(token.text) : std::nullopt;
      if (!index || llvm::is_contained(indices, *index))
        return fail(index ? "another index" : "an index");
      indices.push_back(*index);
      advance();
    } while (consume(","));
    return true;
  };
  Routing routing;
  llvm::SmallVector<unsigned, 2> place;
  if (!parseIndices(routing.tokens) || !expect("->") || !parseIndices(place))
    return false;
  if (place.size() != 2 ||
      llvm::any_of(place, [&](unsigned index) { return llvm::is_contained(routing.tokens, index); }))
    return fail("two indices that are not on the left before 'by'");
  routing.target = place.front();
  routing.slot = place.back();
  if (!is("by"))
    return fail("'by'");
  advance();
  auto operand = operandNumbers.find(token.text);
  llvm::SmallVector<unsigned, 4> found, apart;
  if (operand != operandNumbers.end())
    for (unsigned index : def.operands[operand->second].indices) {
      bool isToken = llvm::is_contained(routing.tokens, index);
      (isToken ? found : apart).push_back(index);
    }
  bool isGood = llvm::all_of(apart, [&](unsigned index) {
    return !llvm::is_contained(place, index) && llvm::all_of(def.results, [&](const ResultInfo &result) {
      return llvm::is_contained(result.indices, index);
    });
  });
  if (found != routing.tokens || !isGood)
    return fail("an operand that has the indices on the left, and no other that a result lacks");
  advance();
  routing.operand = operand->second;
  routing.isOnce = consume("once");
  def.routing = std::move(routing);
  return true;
}

bool TextParser::parseSaves(OpDef &def) {
  def.declaresSaves = true;
  if (is("nothing") && !operandNumbers.count("nothing")) {
    advance();
    return true;
  }
  do {
    if (token.kind != Token::Identifier)
      return fail("an operand or result");
    auto result = llvm::find_if(def.results, [&](const ResultInfo &info) { return info.name == token.text; });
    if (auto operand = operandNumbers.find(token.text); operand != operandNumbers.end()) {
      def.savedOperands.push_back(operand->second);
    } else if (result != def.results.end()) {
      def.savedResults.push_back(result - def.results.begin());
    } else {
      diags.report(token.getLoc(), diag::IRUnknownName) << token.text << def.name;
      return false;
    }
    advance();
  } while (consume(","));
  return true;
}
