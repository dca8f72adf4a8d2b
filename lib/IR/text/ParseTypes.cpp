//===- ParseTypes.cpp - names, sizes, types and shardings of the IR text --===//
#include "TextParser.h"
#include "stage/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

bool TextParser::consume(llvm::StringRef text) {
  if (!is(text))
    return false;
  advance();
  return true;
}

bool TextParser::fail(const llvm::Twine &expected) {
  if (token.kind == Token::UnclosedString)
    diags.report(token.getLoc(), diag::IRUnclosedString);
  else if (token.kind == Token::End)
    diags.report(token.getLoc(), diag::IRExpected) << expected << "the end of the file";
  else
    diags.report(token.getLoc(), diag::IRExpected) << expected << "'" + token.text + "'";
  return false;
}

bool TextParser::expect(llvm::StringRef text) { return consume(text) || fail("'" + text + "'"); }

bool TextParser::parseList(llvm::StringRef open, llvm::StringRef close, llvm::function_ref<bool()> parseElement) {
  if (!expect(open))
    return false;
  if (consume(close))
    return true;
  do {
    if (!parseElement())
      return false;
  } while (consume(","));
  return consume(close) || fail("',' or '" + close + "'");
}

void TextParser::skipStatement(const Token &start) {
  lexer.rewind(start);
  advance();
  unsigned braces = 0;
  bool sawStatement = false; // inside the braces: they are a body and end the statement
  for (; token.kind != Token::End; advance()) {
    if (is("{")) {
      ++braces;
    } else if (is("}")) {
      if (braces == 0)
        return;
      if (--braces == 0 && sawStatement)
        return advance();
    } else if (is(";")) {
      if (braces == 0)
        return advance();
      sawStatement = true;
    }
  }
}

bool TextParser::parseIdentifier(std::string &name, llvm::StringRef what) {
  if (token.kind != Token::Identifier)
    return fail(what);
  name = token.text.str();
  advance();
  return true;
}

bool TextParser::parseQuoted(std::string &text, llvm::StringRef what) {
  if (token.kind != Token::String)
    return fail(what);
  llvm::StringRef inside = token.text.drop_front().drop_back();
  text.clear();
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] == '\\' && i + 2 < inside.size() && llvm::isHexDigit(inside[i + 1]) &&
        llvm::isHexDigit(inside[i + 2])) {
      text += char(llvm::hexFromNibbles(inside[i + 1], inside[i + 2]));
      i += 2;
    } else {
      // `\\` and `\"`
      if (inside[i] == '\\' && i + 1 < inside.size())
        ++i;
      text += inside[i];
    }
  }
  advance();
  return true;
}

bool TextParser::parseName(std::string &name, llvm::StringRef what) {
  return token.kind == Token::String ? parseQuoted(name, what) : parseIdentifier(name, what);
}

bool TextParser::parseInteger(int64_t &value, int64_t least) {
  bool negative = consume("-");
  if (token.kind != Token::Number)
    return fail("an integer");
  if (token.text.getAsInteger(10, value) || (negative ? -value : value) < least) {
    diags.report(token.getLoc(), diag::IRBadInteger) << (negative ? "-" : "") + token.text << least;
    return false;
  }
  if (negative)
    value = -value;
  advance();
  return true;
}

bool TextParser::parseUnsigned(unsigned &value) {
  if (token.kind != Token::Number)
    return fail("an integer");
  if (token.text.getAsInteger(10, value)) {
    diags.report(token.getLoc(), diag::IRBadInteger) << token.text << 0;
    return false;
  }
  advance();
  return true;
}

bool TextParser::parseNumber(double &value) {
  bool negative = consume("-");
  bool isWord = is("inf") || is("nan");
  if ((!isWord && token.kind != Token::Number) || token.text.getAsDouble(value))
    return fail("a number");
  if (negative)
    value = -value;
  advance();
  return true;
}

bool TextParser::parseSize(Size &size, llvm::ArrayRef<llvm::StringRef> stops) {
  const char *begin = token.text.data(), *end = begin;
  unsigned nesting = 0;
  Token first = token;
  for (; token.kind != Token::End && token.kind != Token::UnclosedString; advance()) {
    bool atStop = is(",") || is(")") || is("]") || is("}") || is(";") ||
                  llvm::any_of(stops, [&](llvm::StringRef stop) { return is(stop); });
    if (atStop && nesting == 0)
      break;
    if (is(";") || is("{") || is("}"))
      return fail("')'");
    if ((is("(") || is("[")) && ++nesting > maxNesting)
      return fail("less nesting");
    if (is(")") || is("]"))
      --nesting;
    end = token.text.end();
  }
  llvm::StringRef text(begin, end - begin);
  if (text.empty())
    return fail("a size");
  std::optional<Size> parsed = graph.sizes.parse(text);
  if (!parsed) {
    diags.report(first.getLoc(), diag::IRBadSize) << text;
    return false;
  }
  size = *parsed;
  return true;
}

bool TextParser::parseDType(DType &type) {
  auto parsed = token.kind == Token::Identifier ? stage::parseDType(token.text) : std::nullopt;
  if (!parsed)
    return fail("an element type");
  type = *parsed;
  advance();
  return true;
}

bool TextParser::parseReduceKind(ReduceKind &kind) {
  for (ReduceKind candidate : {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min})
    if (consume(getName(candidate))) {
      kind = candidate;
      return true;
    }
  return fail("'sum', 'max' or 'min'");
}

bool TextParser::parseAxis(AxisList &axes) {
  if (token.kind != Token::Identifier)
    return fail("an axis");
  auto found = graph.mesh.resolve(token.text);
  if (!found) {
    diags.report(token.getLoc(), diag::IRUnknownAxis) << token.text;
    return false;
  }
  advance();
  Layout layout = consume("mirrored") ? Layout::Mirrored : consume("cyclic") ? Layout::Cyclic : Layout::Blocked;
  unsigned rotation = 0, lengths = 0;
  if (isTable()) {
    layout = Layout::Listed;
    if (!parseBlockLengths(lengths))
      return false;
  }
  if (layout == Layout::Listed && found->size() > 1)
    return fail("no table for several axes");
  if (layout == Layout::Cyclic && found->size() > 1)
    return fail("no cyclic layout of several axes");
  if (is("rotated") && found->size() > 1)
    return fail("no rotation of several axes");
  if (consume("rotated") && !parseUnsigned(rotation))
    return false;
  for (AxisId axis : *found)
    axes.emplace_back(axis, layout, rotation, lengths);
  return true;
}

/// At `by load`, as against the `by 1` of a permute.
bool TextParser::isTable() {
  if (!is("by"))
    return false;
  Token here = token;
  advance();
  bool isName = token.kind == Token::Identifier;
  lexer.rewind(here);
  advance();
  return isName;
}

/// `by load`, `by hist[m]`.
bool TextParser::parseBlockLengths(unsigned &number) {
  BlockLengths lengths;
  if (!expect("by") || !parseIdentifier(lengths.table, "a table"))
    return false;
  if (consume("[") && (!parseSize(lengths.row.emplace_back()) || !expect("]")))
    return false;
  number = graph.mesh.addBlockLengths(std::move(lengths));
  return true;
}

bool TextParser::parseAxes(AxisList &axes, bool *open) {
  auto parseOne = [&] {
    if (open && !*open && consume("..."))
      return *open = true;
    return parseAxis(axes);
  };
  return is("(") ? parseList("(", ")", parseOne) : parseOne();
}

bool TextParser::parseAxisSet(AxisSet &axes, ReduceKind *reduce) {
  bool first = true;
  return parseList("(", ")", [&] {
    bool mayBeKind = first && reduce && token.kind == Token::Identifier && !graph.mesh.resolve(token.text);
    first = false;
    if (mayBeKind && (is("sum") || is("max") || is("min")))
      return parseReduceKind(*reduce);
    AxisList named;
    if (!parseAxis(named))
      return false;
    axes |= toSet(named);
    return true;
  });
}

bool TextParser::parseExtent(Extent &extent, llvm::ArrayRef<llvm::StringRef> stops) {
  if (const Dim *dim = token.kind == Token::Identifier ? graph.findDim(token.text) : nullptr) {
    Token name = token;
    advance();
    if (consume(":")) {
      extent.dim = dim;
      return parseSize(extent.size, stops);
    }
    if (is(",") || is("]") || llvm::any_of(stops, [&](llvm::StringRef stop) { return is(stop); })) {
      extent = {dim, dim->size};
      return true;
    }
    // A size that begins with a dim's name.
    lexer.rewind(name);
    advance();
  }
  extent.dim = nullptr;
  return parseSize(extent.size, stops);
}

bool TextParser::parseType(TensorType &type) {
  return parseDType(type.dtype) &&
         parseList("[", "]",
                   [&] {
                     type.shape.emplace_back();
                     return parseExtent(type.shape.back());
                   }) &&
         parseHowKept(type) && parseMemorySpace(type.space);
}

bool TextParser::parseHowKept(TensorType &type) {
  if (!consume("as"))
    return true;
  Quantization quantization;
  std::optional<DType> element;
  if (!parseQuantization(quantization, element))
    return false;
  type.quantization = std::make_shared<const Quantization>(std::move(quantization));
  return true;
}

bool TextParser::parseQuantization(Quantization &quantization, std::optional<DType> &type) {
  if (!parseDType(quantization.type))
    return false;
  type = quantization.type;
  if (consume("by") && !parseList("(", ")", [&] {
        return consume("_") ? (quantization.blocks.push_back(0), true)
                            : parseUnsigned(quantization.blocks.emplace_back());
      }))
    return false;
  return expect("with") && parseDType(quantization.scales);
}

bool TextParser::parseMemorySpace(MemorySpace &space) {
  if (!consume("on"))
    return true;
  space = MemorySpace::Host;
  return expect(getName(space));
}

bool TextParser::parseSharding(Sharding &sharding) {
  if (is("{") && !parseList("{", "}", [&] {
        sharding.dims.emplace_back();
        return consume("_") || parseAxes(sharding.dims.back());
      }))
    return false;
  if (consume("flat") && !parseAxes(sharding.flat))
    return false;
  return !consume("partial") || parseAxisSet(sharding.partial, &sharding.reduce);
}

bool TextParser::parseConstraintDim(Constraint &constraint) {
  std::optional<AxisList> &exact = constraint.dims.emplace_back();
  AxisList &floor = constraint.floors.emplace_back();
  if (consume("?"))
    return true;
  if (consume("_")) {
    exact.emplace();
  } else {
    AxisList axes;
    bool open = false;
    if (!parseAxes(axes, &open))
      return false;
    if (open) {
      floor = axes;
      return true;
    }
    exact = axes;
  }
  if (!is("("))
    return true;
  bool open = false;
  return parseAxes(floor, &open) && (open || fail("'...' at the end of the axes"));
}

bool TextParser::parseConstraint(Constraint &constraint) {
  constraint.loc = token.getLoc();
  if (is("{") && !parseList("{", "}", [&] { return parseConstraintDim(constraint); }))
    return false;
  if (consume("partial") && !parseAxisSet(constraint.partial.emplace(0), &constraint.reduce))
    return false;
  if (consume("replicated") && !parseAxisSet(constraint.replicated, nullptr))
    return false;
  if (consume("gathered") && !parseAxisSet(constraint.gathered, nullptr))
    return false;
  constraint.isInline = consume("inline");
  return true;
}
