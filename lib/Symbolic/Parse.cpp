//===- Parse.cpp - sizes from infix text ----------------------------------===//
//
//   sum     := ['-'] product (('+' | '-') product)*
//   product := power (('*' | '/' | '%' | 'div') power)*        from left to right
//   power   := primary ['^' digits]
//   primary := digits | symbol | '(' sum ')' | call | lookup
//   lookup  := name '[' index (',' index)* ']'        index := sum | 'max' | 'sum'
//   call    := ('min' | 'max' | 'ceildiv' | 'div') '(' sum (',' sum)+ ')' | 'overflow()' | 'toodeep()' | 'undefined()'
//            | 'share' '(' name ',' sum (',' (sum | 'max') ',' sum)* ')'
//            | 'with' '(' (name ',' sum ',')+ sum ')'        names for the last sum, and those between
//
// No word is reserved: `min` is a symbol unless `(` follows, `div` unless it stands
// where an operator is due.
//
//===----------------------------------------------------------------------===//
#include "SizeNode.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

namespace {
class Parser {
public:
  Parser(SizeContext &context, llvm::StringRef text) : context(context), rest(text) {}

  std::optional<Size> parseAll() {
    std::optional<Size> size = parseSum();
    skipSpace();
    return rest.empty() ? size : std::nullopt;
  }

private:
  void skipSpace() { rest = rest.ltrim(" \t\n"); }

  bool take(llvm::StringRef text) {
    skipSpace();
    return rest.consume_front(text);
  }

  std::optional<Size> parseSum() {
    // Text is nested by whoever wrote it; the stack is not theirs.
    if (depth > maxDepth)
      return std::nullopt;
    ++depth;
    bool negative = take("-");
    std::optional<Size> sum = parseProduct();
    if (sum && negative)
      sum = *sum * -1;
    while (sum) {
      bool minus = take("-");
      if (!minus && !take("+"))
        break;
      std::optional<Size> term = parseProduct();
      sum = !term ? term : minus ? *sum - *term : *sum + *term;
    }
    --depth;
    return sum;
  }

  std::optional<Size> parseProduct() {
    std::optional<Size> product = parsePower();
    while (product) {
      char op = takeOperator();
      if (!op)
        break;
      std::optional<Size> right = parsePower();
      if (!right)
        return std::nullopt;
      switch (op) {
      case '*':
        product = *product * *right;
        break;
      case '/':
        product = *product / *right;
        break;
      case '%':
        product = product->mod(*right);
        break;
      case 'd':
        product = product->floorDiv(*right);
        break;
      }
    }
    return product;
  }

  /// The operator that follows, `d` for `div`, 0 if none does.
  char takeOperator() {
    for (char op : {'*', '/', '%'})
      if (take(llvm::StringRef(&op, 1)))
        return op;
    if (peekWord() != "div")
      return 0;
    take("div");
    return 'd';
  }

  static bool isWordStart(char c) { return llvm::isAlpha(c) || c == '_' || c == '@'; }

  llvm::StringRef peekWord() {
    skipSpace();
    if (rest.empty() || !isWordStart(rest.front()))
      return "";
    return rest.take_while([](char c) { return isWordStart(c) || llvm::isDigit(c) || c == '.'; });
  }

  std::optional<Rational> parseInteger() {
    skipSpace();
    Rational value;
    size_t digits = 0;
    for (; digits < rest.size() && llvm::isDigit(rest[digits]); ++digits)
      if (__builtin_mul_overflow(value.num, 10, &value.num) ||
          __builtin_add_overflow(value.num, rest[digits] - '0', &value.num))
        return std::nullopt;
    rest = rest.drop_front(digits);
    return digits ? std::optional<Rational>(value) : std::nullopt;
  }

  std::optional<Size> parsePower() {
    std::optional<Size> base = parsePrimary();
    if (!base || !take("^"))
      return base;
    std::optional<Rational> exponent = parseInteger();
    if (!exponent || exponent->num > maxPower)
      return std::nullopt;
    return context.getImpl().power(*base, exponent->num);
  }

  std::optional<Size> parsePrimary() {
    if (take("(")) {
      std::optional<Size> size = parseSum();
      return take(")") ? size : std::nullopt;
    }
    llvm::StringRef word = peekWord();
    if (word.empty()) {
      std::optional<Rational> value = parseInteger();
      return value ? std::optional<Size>(context.constant(*value)) : std::nullopt;
    }
    rest = rest.drop_front(word.size());
    if (take("("))
      return parseCall(word);
    if (take("["))
      return parseLookup(word);
    auto named = names.find(word);
    return named == names.end() ? context.symbol(word) : named->second;
  }

  /// Behind `with(`.
  std::optional<Size> parseWith() {
    for (;;) {
      llvm::StringRef word = peekWord(), before = rest;
      rest = rest.drop_front(word.size());
      if (!word.startswith("@") || !take(",")) {
        rest = before;
        std::optional<Size> size = parseSum();
        return take(")") ? size : std::nullopt;
      }
      std::optional<Size> named = parseSum();
      if (!named || !take(","))
        return std::nullopt;
      names.insert_or_assign(word, *named);
    }
  }

  /// A size, or a word that means all entries.
  std::optional<Size> parseIndex() {
    llvm::StringRef word = peekWord(), before = rest;
    rest = rest.drop_front(word.size());
    skipSpace();
    bool isAll = (word == "max" || word == "sum") && (rest.startswith(",") || rest.startswith("]"));
    rest = isAll ? rest : before;
    return !isAll ? parseSum() : word == "max" ? context.largestEntry() : context.sumOfEntries();
  }

  /// Behind `name[`.
  std::optional<Size> parseLookup(llvm::StringRef name) {
    llvm::SmallVector<Size, 2> indices;
    do {
      std::optional<Size> index = parseIndex();
      if (!index)
        return std::nullopt;
      indices.push_back(*index);
    } while (take(","));
    return take("]") ? std::optional<Size>(context.lookup(name, indices)) : std::nullopt;
  }

  /// Behind `share(` or `shares(`.
  std::optional<Size> parseShare(AtomKind kind) {
    llvm::StringRef table = peekWord();
    rest = rest.drop_front(table.size());
    llvm::SmallVector<Size, 5> args;
    while (!table.empty() && take(",")) {
      bool isIndex = args.size() % 2 == 1;
      std::optional<Size> arg = isIndex ? parseIndex() : parseSum();
      if (!arg || (isIndex && *arg == context.sumOfEntries()))
        return std::nullopt;
      args.push_back(*arg);
    }
    bool isWhole = args.size() % 2 == 1 && take(")");
    return isWhole ? std::optional<Size>(context.getImpl().share(kind, table, args)) : std::nullopt;
  }

  std::optional<Size> parseCall(llvm::StringRef name) {
    SizeContext::Impl &impl = context.getImpl();
    for (auto [poison, text] : {std::pair(impl.overflow, "overflow"), std::pair(impl.tooDeep, "toodeep"),
                                std::pair(impl.undefined, "undefined")})
      if (name == text)
        return take(")") ? std::optional<Size>(poison) : std::nullopt;
    if (name == "with")
      return parseWith();
    if (name == "share" || name == "shares")
      return parseShare(name == "share" ? AtomKind::Share : AtomKind::ShareCount);
    llvm::SmallVector<Size, 4> args;
    do {
      std::optional<Size> arg = parseSum();
      if (!arg)
        return std::nullopt;
      args.push_back(*arg);
    } while (take(","));
    if (!take(")") || args.size() < 2)
      return std::nullopt;
    if (name == "ceildiv" && args.size() == 2)
      return args[0].ceilDiv(args[1]);
    if (name == "div" && args.size() == 2)
      return args[0].floorDiv(args[1]);
    if (name != "min" && name != "max")
      return std::nullopt;
    Size result = args[0];
    for (Size arg : llvm::drop_begin(args))
      result = name == "min" ? min(result, arg) : max(result, arg);
    return result;
  }

  SizeContext &context;
  llvm::StringRef rest;
  llvm::StringMap<Size> names; ///< Of `with`.
  unsigned depth = 0;
};
} // namespace

std::optional<Size> SizeContext::parse(llvm::StringRef text) { return Parser(*this, text).parseAll(); }
