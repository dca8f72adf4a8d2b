//===- ForeignForms.cpp - words and forms of other languages --------------===//
#include "ForeignForms.h"
#include "StageLexer.h"
#include "stage/Symbolic/Quantity.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::parse;
using llvm::StringRef;
using llvm::Twine;
using stagegrammar::StageLexer;

/// The form of a rule of a strategy, by its first word; empty: no rule.
static StringRef getRuleForm(StringRef word) {
  return llvm::StringSwitch<StringRef>(word)
      .Case("mesh", "'mesh (dp, tp);'")
      .Case("shard", "'shard B over dp;'")
      .Case("partition", "'partition optimizer over dp;'")
      .Case("pipeline", "'pipeline layers over pp { schedule = one_f_one_b; }'")
      .Case("recompute",
            "'recompute layers[*];' for whole layers, 'recompute **.attention();' for the results of an op")
      .Case("offload", "'offload layers[*] to host;'")
      .Case("quantize", "'quantize **.linear() as f8e4m3;'")
      .Case("replicate", "'replicate layers[*].x;'")
      .Case("keep", "'keep gathered over tp;'")
      .Default("");
}

static bool beginsDeclaration(size_t type) {
  switch (type) {
  case StageLexer::IMPORT:
  case StageLexer::OP:
  case StageLexer::MODULE:
  case StageLexer::MODEL:
  case StageLexer::STRATEGY:
  case StageLexer::SCHEDULE:
  case StageLexer::OPTIMIZER:
  case StageLexer::PRECISION:
  case StageLexer::CONFIG:
  case StageLexer::JOB:
  case StageLexer::LAUNCHER:
  case StageLexer::MACHINE:
  case StageLexer::RUNTIME:
    return true;
  default:
    return false;
  }
}

static bool isOneOf(StringRef text, std::initializer_list<StringRef> words) { return llvm::is_contained(words, text); }

namespace {

/// The tokens around the place where a parse failed, without comments.
class Place {
public:
  Place(const SourceText &source, antlr4::TokenStream &stream, antlr4::Token *failed, StringRef expected)
      : source(source), expected(expected) {
    for (size_t i = 0; i < stream.size(); ++i) {
      antlr4::Token *token = stream.get(i);
      if (token == failed)
        at = int(tokens.size());
      if (token->getChannel() == antlr4::Token::DEFAULT_CHANNEL)
        tokens.push_back(token);
    }
    begin = at;
    while (begin > 0 && !endsStatement(begin - 1))
      --begin;
    end = at;
    while (type(end) != antlr4::Token::EOF && type(end) != StageLexer::SEMICOLON && type(end) != StageLexer::RBRACE)
      ++end;
    for (int i = 0; i <= at; ++i)
      if (token(i)->getCharPositionInLine() == 0 && beginsDeclaration(type(i)))
        declaration = i;
  }

  Instead find() const;

private:
  bool endsStatement(int i) const {
    size_t kind = type(i);
    return kind == StageLexer::SEMICOLON || kind == StageLexer::LBRACE || kind == StageLexer::RBRACE;
  }
  antlr4::Token *token(int i) const { return tokens[size_t(std::clamp(i, 0, int(tokens.size()) - 1))]; }
  size_t type(int i) const { return i < 0 ? 0 : token(i)->getType(); }
  StringRef text(int i) const { return i < 0 || type(i) == antlr4::Token::EOF ? StringRef() : source.slice(token(i)); }
  /// The source from one token to before another, on one line.
  std::string slice(int first, int last) const {
    if (first >= last)
      return "";
    StringRef from = text(first), to = text(last - 1);
    std::string result;
    for (char c : StringRef(from.data(), size_t(to.data() + to.size() - from.data())))
      if (c != '\n')
        result += c;
      else if (!result.empty() && result.back() != ' ')
        result += ' ';
    return result;
  }
  bool areAdjacent(int i) const { return i >= 0 && text(i).data() + text(i).size() == text(i + 1).data(); }
  bool isName(int i) const { return i >= 0 && type(i) >= StageLexer::AFTER && type(i) <= StageLexer::NAME; }
  StringRef inDeclaration() const { return declaration < 0 ? StringRef() : text(declaration); }
  bool isIn(StringRef word) const { return inDeclaration() == word; }
  /// The first token of the expression that ends before `i`.
  int findOperand(int i) const {
    int depth = 0;
    for (--i; i >= begin; --i) {
      size_t kind = type(i);
      if (kind == StageLexer::RPAREN || kind == StageLexer::RBRACKET)
        ++depth;
      else if (kind == StageLexer::LPAREN || kind == StageLexer::LBRACKET) {
        if (depth-- == 0)
          break;
      } else if (depth == 0 && (kind == StageLexer::COMMA || kind == StageLexer::ASSIGN || kind == StageLexer::IF ||
                                kind == StageLexer::REQUIRE || kind == StageLexer::RETURN))
        break;
    }
    return i + 1;
  }
  /// The token behind the expression that begins at `i`, or the first `stop` in it.
  int findEnd(int i, size_t stop = antlr4::Token::EOF) const {
    int depth = 0;
    for (; i < end; ++i) {
      size_t kind = type(i);
      if (depth == 0 && (kind == stop || kind == StageLexer::COMMA || kind == StageLexer::LBRACE))
        return i;
      if (kind == StageLexer::LPAREN || kind == StageLexer::LBRACKET)
        ++depth;
      else if ((kind == StageLexer::RPAREN || kind == StageLexer::RBRACKET) && depth-- == 0)
        return i;
    }
    return end;
  }
  int findWord(StringRef word, int from, int to) const {
    for (int i = from; i < to; ++i)
      if (text(i) == word)
        return i;
    return -1;
  }
  /// "a rule of a strategy": what the statements of the declaration around are.
  std::string getStatements() const {
    return llvm::StringSwitch<std::string>(inDeclaration())
        .Case("strategy", "a rule of a strategy or '}'")
        .Case("schedule", "a statement of a schedule or '}'")
        .Case("op", "a clause of an op or '}'")
        .Cases("job", "config", "precision", "an entry or '}'")
        .Case("machine", "an entry, a level or '}'")
        .Default("a statement or '}'");
  }

  std::string findNumber() const;
  std::string findCondition() const;
  std::string findLoop() const;
  std::string findRange() const;
  std::string findAxes() const;
  std::string findImport() const;
  std::string findHead() const;
  std::string findStatement() const;
  Instead findMisplaced() const;
  StringRef findWord() const;

  const SourceText &source;
  StringRef expected;
  std::vector<antlr4::Token *> tokens;
  int at = 0;           ///< Where the parser stopped.
  int begin = 0;        ///< The first token of the statement.
  int end = 0;          ///< The one behind its last.
  int declaration = -1; ///< The first token of the declaration.
};

} // namespace

/// `10000.`, `.5`, `20%`, `2 us`, `x ** 2`.
std::string Place::findNumber() const {
  if (text(at) == "**" && text(at + 1) == "2") {
    int first = at - 1;
    if (type(first) == StageLexer::RBRACKET || type(first) == StageLexer::RPAREN) {
      int depth = 0;
      for (; first > begin; --first) {
        depth += (type(first) == StageLexer::RBRACKET || type(first) == StageLexer::RPAREN) -
                 (type(first) == StageLexer::LBRACKET || type(first) == StageLexer::LPAREN);
        if (!depth)
          break;
      }
      if (isName(first - 1) && areAdjacent(first - 1))
        --first;
    }
    std::string operand = slice(first, at);
    return "there is no power; write the product: '" + operand + " * " + operand + "'";
  }
  if (type(at - 1) == StageLexer::DOT && type(at - 2) == StageLexer::NUMBER && areAdjacent(at - 2))
    return ("a number has digits behind its point: write '" + text(at - 2) + ".0'").str();
  if (type(at) == StageLexer::DOT && type(at + 1) == StageLexer::NUMBER && areAdjacent(at))
    return ("a number has digits before its point: write '0." + text(at + 1) + "'").str();
  if (text(at) == "," && type(at - 1) == StageLexer::NUMBER && type(at + 1) == StageLexer::NUMBER &&
      areAdjacent(at - 1) && areAdjacent(at) && text(at + 1).size() == 3) {
    std::string number = text(at - 1).str();
    for (int i = at; text(i) == "," && type(i + 1) == StageLexer::NUMBER && text(i + 1).size() == 3; i += 2)
      number += "_" + text(i + 1).str();
    return "digits are grouped by '_': write '" + number + "'";
  }
  double percent = 0;
  if (type(at - 1) == StageLexer::PERCENT && type(at - 2) == StageLexer::NUMBER && !text(at - 2).getAsDouble(percent)) {
    std::string share;
    llvm::raw_string_ostream(share) << llvm::format("%g", percent / 100);
    return "'%' is the remainder of a division; a share is a number: write '" + share + "'";
  }
  if (type(at - 1) == StageLexer::NUMBER && isName(at)) {
    std::string amount = (text(at - 1) + text(at)).str();
    if (type(at + 1) == StageLexer::SLASH && isName(at + 2))
      amount += ("/" + text(at + 2)).str();
    if (parseQuantity(amount))
      return "an amount has no blank before its unit: write '" + amount + "'";
  }
  return "";
}

/// `a and b`, `a if c else b`.
std::string Place::findCondition() const {
  if (isOneOf(text(at), {"and", "&&", "+", ","}) && findWord("with", begin, at) >= 0 && isName(at + 1))
    return "each part has a 'with' of its own: write '" + slice(begin, at) + " with " + slice(at + 1, end) + ";'";
  if (text(at) == "and" || text(at) == "or") {
    int first = findOperand(at), last = findEnd(at);
    std::string condition;
    for (int i = first; i < last; ++i) {
      std::string word =
          llvm::StringSwitch<std::string>(text(i)).Case("and", "&&").Case("or", "||").Default(text(i).str());
      if (i > first && text(i).data() != text(i - 1).data() + text(i - 1).size())
        condition += ' ';
      condition += word;
    }
    return ("conditions are joined by '&&' and '||': write '" + condition + "'");
  }
  int other = type(at) == StageLexer::IF ? findEnd(at + 1, StageLexer::ELSE) : -1;
  if (other < 0 || type(other) != StageLexer::ELSE)
    return "";
  int first = findOperand(at);
  std::string yes = slice(first, at), condition = slice(at + 1, other), no = slice(other + 1, findEnd(other + 1));
  bool isFormula = isIn("op") || (type(begin) == StageLexer::LET && text(begin + 2) == "[");
  if (isFormula)
    return "a choice between elements is a function: write 'where(" + condition + ", " + yes + ", " + no + ")'";
  return "a choice begins with its condition: write 'if " + condition + " { " + yes + " } else { " + no + " }'";
}

/// `for i in range(w): forward(i);`
std::string Place::findLoop() const {
  if (text(begin) == "repeat" && expected == "'['") {
    int range = text(at) == "in" ? at + 1 : at;
    int last = findEnd(range);
    // `repeat L {` has no name, which would be small: `repeat layers {` has no range.
    StringRef word = text(begin + 1);
    bool isRange = range >= last && ((word.front() >= 'A' && word.front() <= 'Z') || llvm::isDigit(word.front()));
    std::string size = isRange ? word.str() : range >= last ? "L" : slice(range, last);
    return ("the range of a repeat stands in brackets" + Twine(isRange ? " behind a name" : "") + ": write 'repeat " +
            (isRange ? "layers" : word) + "[" + size + "] { ... }'")
        .str();
  }
  if (text(begin) == "while" && at == begin + 1)
    return "there is no 'while': a loop runs over a range, as in 'for i in 0..m { ... }'";
  // `for (i = 0; i < w; i++)`
  if (text(begin) == "for" && text(at) == "(" && at == begin + 1 && isName(at + 1) && text(at + 2) == "=") {
    int condition = at + 3;
    while (type(condition) != StageLexer::SEMICOLON && type(condition) != antlr4::Token::EOF)
      ++condition;
    int last = condition + 3;
    while (type(last) != StageLexer::SEMICOLON && type(last) != antlr4::Token::EOF)
      ++last;
    if (text(condition + 1) == text(at + 1) && isOneOf(text(condition + 2), {"<", "<="}))
      return ("a loop runs over a range: write 'for " + text(at + 1) + " in " + slice(at + 3, condition) + ".." +
              slice(condition + 3, last) + (text(condition + 2) == "<=" ? " + 1" : "") + " { ... }'")
          .str();
  }
  return "";
}

/// `for i in range(w):`
std::string Place::findRange() const {
  int range = text(begin) == "for" ? findWord("range", begin, at) : -1;
  if (range < 0 || text(range + 1) != "(")
    return "";
  int last = findEnd(range + 2);
  std::string bounds = type(last) == StageLexer::COMMA
                           ? slice(range + 2, last) + ".." + slice(last + 1, findEnd(last + 1))
                           : "0.." + slice(range + 2, last);
  std::string body =
      text(at) == ":" && at + 1 < end && type(end) == StageLexer::SEMICOLON ? slice(at + 1, end + 1) : "...";
  return "a loop runs over a range, and its block stands in braces: write 'for " + text(begin + 1).str() + " in " +
         bounds + " { " + body + " }'";
}

/// `shard B over dp and tp;`, `shard B over dp, tp;`, `keep gathered tp;`
std::string Place::findAxes() const {
  int over = findWord("over", begin, at);
  if (getRuleForm(text(begin)).empty())
    return "";
  if (over >= 0 && (text(at) == "and" || (at == end && type(at - 2) == StageLexer::COMMA))) {
    std::string axes;
    for (int i = over + 1; i < end; ++i)
      axes += isName(i) && text(i) != "and" ? (axes.empty() ? "" : ", ") + text(i).str() : "";
    return "several axes stand in parentheses: write '" + slice(begin, over + 1) + " (" + axes + ");'";
  }
  if (over < 0 && expected == "'over'" && text(begin) != "shard" && isName(at))
    return "axes stand behind 'over': write '" + slice(begin, at) + " over " + slice(at, end) + ";'";
  if (over < 0 && isOneOf(text(at), {"on", "across", "along", "by", "in", "to", "with", "using"}) &&
      expected.contains("'over'"))
    return "axes stand behind 'over': write '" + slice(begin, at) + " over " + slice(at + 1, end) + ";'";
  if (text(begin) == "partition" && over < 0 && at == end)
    return "it is said over which axes: write '" + slice(begin, end) + " over dp;'";
  if (text(begin) == "shard" && at == begin + 1 && type(at) == StageLexer::NUMBER)
    return "dims have names, and no numbers: write 'shard B" + std::string(at + 1 < end ? " " : " over dp") +
           slice(at + 1, end) + ";' for the sequences of the batch";
  if (text(at - 1) == "over" && (text(at) == "," || at == end))
    return "axes of the mesh stand behind 'over': write '" + slice(begin, at) + " dp" + slice(at, end) +
           ";' for axis 'dp'";
  if (text(begin) == "shard" && expected.contains("'over'"))
    return "dims are listed with commas, and the axes behind 'over', as in 'shard B over dp, F, V over tp;'";
  return "";
}

/// `import std.nn as n;`, `import std.nn.*;`
std::string Place::findImport() const {
  // `from std.nn import a, b`: the parser stops at the first word.
  if (int names = text(begin) == "from" ? findWord("import", begin, end) : -1; names > 0)
    return "the file stands first, and the names in parentheses: write 'import " + slice(begin + 1, names) +
           (text(names + 1) == "*" ? ";'" : " (" + slice(names + 1, end) + ");'");
  if (text(begin) != "import")
    return "";
  if (at == begin && expected == "a declaration")
    return "imports stand before all declarations: move '" + slice(begin, end) + ";' to the beginning of the file";
  int last = type(at - 1) == StageLexer::DOT ? at - 1 : at;
  if (text(at) == "as")
    return "a file has no second name, and its names stand alone: write '" + slice(begin, last) + ";'";
  if (text(at) == "*" || text(at) == ".*")
    return "an import brings every name of its file: write '" + slice(begin, last) + ";'";
  return "";
}

/// The heads of declarations: a module without types, a config with `=`, a block behind `:`.
std::string Place::findHead() const {
  if (text(begin) == "module" && expected == "'->'") {
    int first = begin + 3, behind = findEnd(first);
    if (!isName(first))
      return "a module says its results: write 'module " + text(begin + 1).str() + "(...) -> [B, S, D] { ... }'";
    std::string list =
        text(first + 1) == ":" ? slice(first, at) : text(first).str() + ": [B, S, D]" + slice(behind, at);
    return "a module says the shapes of its tensors and of its results: write 'module " + text(begin + 1).str() + "(" +
           list + " -> [B, S, D] { ... }'";
  }
  // `machine b(a) {`
  if (text(at) == "(" && at == begin + 2 && expected.contains("'extends'") && isName(at + 1) && text(at + 2) == ")")
    return "what a declaration is based on stands behind 'extends': write '" + slice(begin, at) + " extends " +
           text(at + 1).str() + " {'";
  if (text(begin) == "config" && text(at) == "=") {
    std::string values;
    for (int i = at + 2; i < int(tokens.size()) && type(i) != StageLexer::RBRACE; ++i)
      values += type(i) == StageLexer::STRING                                      ? text(i).trim('"').str()
                : type(i) == StageLexer::COLON || type(i) == StageLexer::ASSIGN    ? " = "
                : type(i) == StageLexer::COMMA || type(i) == StageLexer::SEMICOLON ? "; "
                                                                                   : text(i).str();
    StringRef trimmed = StringRef(values).rtrim("; ");
    return ("a config has no '=' before its '{', no quotes, and ';' behind each value: write '" +
            Twine(slice(begin, at)) + " { " + trimmed + "; }'")
        .str();
  }
  if (text(at) == "(" && (text(begin) == "job" || text(begin) == "config"))
    return "entries stand in braces, each with a semicolon, as in 'job j { model = m; ... }'";
  if (text(at) == "{" && text(begin) == "for")
    return "a loop runs over a range: write 'for " + text(begin + 1).str() + " in 0.." +
           (at > begin + 3 ? slice(begin + 3, at) : "m") + " { ... }'";
  if (text(at) == ":" && isOneOf(text(begin), {"job", "config", "machine", "runtime", "precision"}) && at == begin + 2)
    return "entries stand in braces, each with a semicolon: write '" + slice(begin, at) + " { ... }'";
  if (text(at) == ":" &&
      isOneOf(text(begin), {"repeat", "for", "if", "module", "model", "strategy", "schedule", "job"}) &&
      at > begin + 1 && !expected.contains("')'"))
    return "a block stands in braces: write '" + slice(begin, at) + " { ... }'";
  return "";
}

/// Statements that look alike elsewhere.
std::string Place::findStatement() const {
  if (text(at) == "=" && isOneOf(text(begin), {"if", "require", "for"}))
    return "values are compared by '==', as in 'D == 64'";
  if (text(at) == ":" && at == begin + 1 && expected == "'in' or '='")
    return "values to try stand behind 'in': write '" + text(begin).str() + " in " + slice(at + 1, end) + ";'";
  if (text(at) == ":" && isIn("launcher"))
    return "a flag is said by '=': write '" + slice(begin, at) + " = " + slice(at + 1, end) + ";'";
  if (isIn("job") && isOneOf(text(begin), {"exclude", "forbid", "without", "skip", "constraint", "constrain"}) &&
      at == begin + 1) {
    std::string condition = slice(at, end);
    bool isExcluded = text(begin) != "constraint" && text(begin) != "constrain";
    return "what a plan must meet is said by 'require': write 'require " +
           (isExcluded ? "!(" + condition + ")" : condition) + ";'";
  }
  if (text(at) == "{" && isIn("job") && type(at - 1) == StageLexer::ASSIGN)
    return "an entry names a declaration: write '" + text(begin).str() + " my { ... }' outside of the job, and '" +
           text(begin).str() + " = my;' here";
  if (text(at) == "(" && text(begin) == "level")
    return "ranks of a level are an entry: write 'level " + text(begin + 1).str() +
           " { ranks = " + slice(at + 1, findEnd(at + 1)) + "; ... }'";
  if (expected == "'unit'" && text(at - 1) == "by" && isName(at))
    return "what is gathered at once is a unit of the model: write '" + slice(begin, at) + " unit layers[*];'";
  if (text(at) == "to" && expected.contains("'->'"))
    return "tokens and slots are names of indices, with '->' between them, as in 'routes b, s, j -> x, c;'";
  if (text(at) == "(" && text(begin) == "saves" && at == begin + 1) {
    int close = at + 1;
    while (close < end && type(close) != StageLexer::RPAREN)
      ++close;
    return "names are listed without parentheses: write 'saves " + slice(at + 1, close) + ";'";
  }
  bool isEntry = (text(at) == ":" && expected == "'='") || (text(at) == "," && expected == "';'");
  if (isEntry && isIn("config")) {
    std::string entries;
    for (int i = begin; i < end; ++i)
      entries += text(i) == ":" || text(i) == "=" ? " = " : text(i) == "," ? "; " : text(i).str();
    return "entries of a config have '=' and end with ';': write '" + StringRef(entries).rtrim("; ").str() + ";'";
  }
  if (text(at) == "in" && text(at - 2) == "[" && isOneOf(text(at - 3), {"sum", "mean", "max", "min"}))
    return ("a reduction runs over the whole dim of its index: write '" + text(at - 3) + "[" + text(at - 1) + "]'")
        .str();
  if (text(at) == ":" && expected == "'='")
    return "an entry is given by '=': write '" + slice(begin, at) + " = " + slice(at + 1, end) + ";'";
  if (text(at) == ":" && expected.contains("')'"))
    return "an argument is given by '=': write '" + text(at - 1).str() + " = " + slice(at + 1, findEnd(at + 1)) + "'";
  // `param head = [D, V];`, `param head: Linear(D, V);`, `param head: (D, V);`, `param g: [D] = 1;`
  if (isOneOf(text(begin), {"param", "input", "buffer"}) && !isIn("op")) {
    std::string names;
    int colon = begin + 1;
    while (isName(colon) || type(colon) == StageLexer::COMMA)
      ++colon;
    names = slice(begin, colon);
    if (text(at) == "=" && at == colon)
      return "a tensor has a type: write '" + names + ": " + slice(at + 1, end) + ";'";
    int open = text(at) == "(" ? at : -1;
    if (open > 0 && type(colon) == StageLexer::COLON) {
      std::string dims = slice(open + 1, findEnd(open + 1, StageLexer::RPAREN));
      for (int close = open + 1; close < end; ++close)
        if (type(close) == StageLexer::RPAREN)
          dims = slice(open + 1, close);
      return "the shape of a tensor stands in brackets: write '" + names + ": [" + dims + "];'";
    }
    if (text(at) == "=" && type(at - 1) == StageLexer::RBRACKET)
      return "a tensor has no value of its own, because only its shape matters: write '" + slice(begin, at) + ";'";
    if (text(at) == "," && type(at - 1) == StageLexer::RBRACKET && isName(at + 1) && findWord(":", at, end) >= 0)
      return ("a '" + text(begin) + "' has one shape: write '" + slice(begin, at) + "; " + text(begin) + " " +
              slice(at + 1, end) + ";'")
          .str();
    if (text(at) == "," && type(at - 1) == StageLexer::RBRACKET && isName(at + 1))
      return "the element type stands before the shape: write '" + names + ": " + text(at + 1).str() +
             slice(colon + 1, at) + ";'";
  }
  // `require` left out in a search.
  if (isOneOf(text(at), {"<=", ">=", "<", ">", "=="}) && at == begin + 1 && expected.contains("'in'"))
    return "what a plan must meet is said by 'require': write 'require " + slice(begin, end) + ";'";
  if (text(at) == ".." && expected.contains("';'") && text(begin + 1) == "=" && isIn("job"))
    return "values to try stand behind 'in', and the end of a range is not tried: write '" + text(begin).str() +
           " in " + slice(begin + 2, end) + ";', or list them, '" + text(begin).str() + " in [1, 2, 4, 8];'";
  bool isOperator = isOneOf(text(at), {"+", "-", "*", "/"});
  if (isOperator && type(at + 1) == StageLexer::ASSIGN && at == begin + 1) {
    std::string name = text(begin).str(), value = slice(at + 2, end);
    bool isAtom = text(at) == "+" || end - at <= 3;
    std::string whole = name + " " + text(at).str() + " " + (isAtom ? value : "(" + value + ")");
    if (isIn("strategy") || isIn("schedule"))
      return "a value does not change here; give the new one a name of its own: 'let " + name + "2 = " + whole + ";'";
    std::string var = isIn("module") || isIn("model") ? ", and declare it by 'var " + name + " = ...;'" : "";
    return "there is no '" + text(at).str() + "='; write '" + name + " = " + whole + ";'" + var;
  }
  if (text(at) == "=" && at == begin + 1 && isIn("schedule"))
    return "values of a schedule do not change; give the new one a name of its own: 'let " + text(begin).str() +
           "2 = " + slice(at + 1, end) + ";'";
  if (StringRef form = getRuleForm(text(at - 1));
      text(at) == "=" && at == begin + 1 && isIn("strategy") && !form.empty())
    return ("'" + text(begin) + "' is a rule and has no '=': write " + form).str();
  if (text(at) == "return" && isIn("op"))
    return "an op has no 'return': write 'result = " + slice(at + 1, end) + ";'";
  if (text(at) == "." && expected == "'='" && isIn("job"))
    return "an entry of a job is replaced as a whole, as in '" + text(begin).str() + " = ...(..., " +
           slice(at + 1, end) + ");'; on the command line, one value is given by '-D " + text(at + 1).str() + "=" +
           slice(at + 3, end) + "'";
  if (text(at) == "[" || (text(at) == ":" && (text(at - 1) == "[" || text(at - 1) == ","))) {
    if (text(at) == ":")
      return "a slice is a range of positions, as in 'x[0..B, 1..S]'; dims behind its last subscript are whole, and a "
             "formula takes one position, as in 'let last[b, d] = x[b, S - 1, d];'";
  }
  // `recompute layers[0:4];`
  if (text(at) == ":" && expected == "']'" && isIn("strategy") && text(at - 2) == "[") {
    int close = at + 1;
    while (close < end && type(close) != StageLexer::RBRACKET)
      ++close;
    std::string first = text(at - 1).str(), last = slice(at + 1, close);
    std::string condition = first == "0" ? "i < " + last : "i >= " + first + " && i < " + last;
    return "layers are chosen by a condition on their number: write '" + slice(begin, at - 1) + "i" +
           slice(close, end) + " if " + condition + ";'";
  }
  if (text(at - 1) == "]" && isName(at))
    for (int open = at - 1; open > begin; --open)
      if (text(open) == "[") {
        if (isOneOf(text(open - 1), {"sum", "mean", "max", "min"}))
          return "the operand of a reduction stands in parentheses: write '" + slice(open - 1, at) + "(" +
                 slice(at, findEnd(at)) + ")'";
        break;
      }
  if (type(at) == StageLexer::STRING && at == begin)
    return "a text is no statement; comments begin with '//', and '///' before a declaration documents it";
  if (text(at) == "f" && type(at + 1) == StageLexer::STRING)
    return "names in braces are replaced in every text; leave the 'f' out: write " + text(at + 1).str();
  if (isIn("launcher") && text(at) == "-" && isName(at + 2))
    return "flags stand in quotes, as in '\"--" + text(at + 2).str() + "\" = " + text(at + 2).str() + ";'";
  return "";
}

/// A word that is foreign, or stands in the wrong declaration: the parser often takes it for a name, and stops behind.
Instead Place::findMisplaced() const {
  for (int i : {at - 1, at})
    if (i >= 0 && isOneOf(text(i), {"elif", "elseif", "elsif"}))
      return {("'" + text(i) + "' is written 'else if'").str(), token(i), getStatements()};
  // `f(x) as y;` is a value that nothing takes.
  if (text(at) == "as" && expected.contains("';'") && (isIn("module") || isIn("model")))
    return {"a value is returned or named: write 'return " + slice(begin, end) + ";' or 'let y = " + slice(begin, end) +
                ";'",
            token(begin), "'return' or 'let'"};
  if (std::string range = findRange(); !range.empty())
    return {range, token(findWord("range", begin, at)), "a range"};
  if (text(begin) == "mesh" && at == begin && text(at + 1) == "[") {
    int close = at + 2;
    while (close < end && type(close) != StageLexer::RBRACKET)
      ++close;
    return {"the axes of a mesh stand in parentheses: write 'mesh (" + slice(at + 2, close) + ");'", token(at + 1),
            "'('"};
  }
  if (isIn("job") && isOneOf(text(begin), {"minimize", "maximize"}) && at == begin + 1)
    return {"plans are ranked by 'objective = step;'", token(begin), "an entry"};
  if (text(begin) == "pipeline" && text(begin + 1) == "over" && at == begin + 2)
    return {("the repeat of the model that is cut stands before 'over': write 'pipeline layers over " +
             slice(at, findEnd(at)) + " { ... }'"),
            token(begin + 1), "a repeat"};
  // `shard B over dp; (KV, G) over tp`
  if (isIn("strategy") && at == begin && text(at) == "(" && text(at - 1) == ";" && findWord("over", begin, end) >= 0)
    return {"items of a rule are separated by ',', and ';' ends the rule: write 'shard " + slice(begin, end) + ";'",
            token(at), "a rule of a strategy or '}'"};
  if ((at == begin || at == begin + 1) && text(begin) == "assert" && text(begin + 1) != "(")
    return {"'assert' is written 'require': '" + slice(begin, end).replace(0, 6, "require") + ";'", token(begin),
            getStatements()};
  if (at == begin + 1 && !getRuleForm(text(begin)).empty() && declaration >= 0 && !isIn("strategy") &&
      text(begin - 1) != "." && (isName(at) || text(at) == "(")) {
    std::string target = "name(...)";
    for (int i = 0; i < int(tokens.size()); ++i)
      if (type(i) == StageLexer::STRATEGY && token(i)->getCharPositionInLine() == 0 && isName(i + 1)) {
        target = text(i + 1).str() + "(...)";
        break;
      }
    return {("'" + text(begin) + "' is a rule of a strategy, and this is a " + inDeclaration() + ": move '" +
             slice(begin, end) + ";' into 'strategy " + target + " { ... }'")
                .str(),
            token(begin), getStatements()};
  }
  if (isIn("strategy") && at <= begin + 1 && isName(begin) && type(begin + 1) != StageLexer::LPAREN) {
    StringRef instead =
        llvm::StringSwitch<StringRef>(text(begin).lower())
            .Cases("zero", "zero1", "zero2", "zero3", "fsdp",
                   "'partition optimizer over dp;' is ZeRO-1, 'partition gradients over dp;' ZeRO-2, 'partition "
                   "parameters over dp;' ZeRO-3")
            .Cases(
                "all_reduce", "allreduce", "reduce_scatter", "all_gather", "all_to_all", "sync", "communicate",
                "collectives follow from the sharding, and none is written: 'shard B over dp;' reduces gradients over "
                "'dp', and 'overlap communication dp with compute;' hides their time")
            .Cases("split", "distribute", "parallelize", "slice", "chunk",
                   "a dim is split by 'shard', as in 'shard B over dp, F over tp;'")
            .Cases("checkpoint", "remat", "activation_checkpointing",
                   "what backward recomputes is said by 'recompute layers[*];'")
            .Cases("schedule", "microbatch", "stages", "stage",
                   "stages and their schedule are said by 'pipeline layers over pp { schedule = one_f_one_b; }'")
            .Case("axis", "an axis with a name of its own is 'axis data = (dp, cp);'")
            .Default("");
    if (!instead.empty())
      return {instead.str(), token(begin), getStatements()};
  }
  if (isIn("strategy") && isName(begin) && (at == begin || at == begin + 1) && begin + 1 == end &&
      type(end) == StageLexer::SEMICOLON && getRuleForm(text(begin)).empty())
    return {("a part is called with parentheses: write '" + text(begin) + "();'").str(), token(begin), getStatements()};
  return {};
}

/// Single words and signs.
StringRef Place::findWord() const {
  if (text(at) == "{" && expected == "an expression")
    return "a list stands in brackets, as in '[1, 2, 4]'";
  if (text(begin) == "mesh" && text(at) == "mesh")
    return "the axes of a mesh stand in parentheses, as in 'mesh (dp, tp);'";
  if (text(begin) == "minimize" || text(begin) == "maximize")
    return "plans are ranked by 'objective = step;'";
  if (text(at) == "{" && token(at)->getTokenIndex() == 0)
    return "this looks like JSON: 'stagec import config.json -o job.stg' makes a program of a model's configuration";
  if (text(at) == "/" && StringRef(text(at).data(), 2) == "/*")
    return "comments begin with '//' and end with the line";
  return llvm::StringSwitch<StringRef>(text(at))
      .Case("for", "a loop over layers is 'repeat layers[L] { ... }'")
      .Cases("def", "class", "fn",
             "a model is 'model Name(sizes) { ... }', a module 'module name(x: [b, d]) -> [b, d] { ... }', a strategy "
             "'strategy name(dp = 1) { ... }'")
      .Case("@", "a product is 'linear(x, w)' (std.nn), or a formula: 'let y[b, n] = sum[m](x[b, m] * w[m, n]);'")
      .Case("**", "there is no power; write the product, as in 'D * D', or 'exp(n * log(x))'")
      .Case("lambda", "there are no anonymous functions; declare a module")
      .Default("");
}

Instead Place::find() const {
  if (tokens.empty() || type(at) == antlr4::Token::EOF)
    return {};
  if (Instead misplaced = findMisplaced(); !misplaced.text.empty())
    return misplaced;
  for (auto form : {&Place::findNumber, &Place::findImport, &Place::findAxes, &Place::findCondition, &Place::findLoop,
                    &Place::findHead, &Place::findStatement})
    if (std::string text = (this->*form)(); !text.empty())
      return {text};
  return {findWord().str()};
}

Instead parse::findInstead(const SourceText &source, antlr4::TokenStream &stream, antlr4::Token *token,
                           StringRef expected) {
  return Place(source, stream, token, expected).find();
}
