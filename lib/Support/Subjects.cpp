//===- Subjects.cpp - the value that a message is about -------------------===//
#include "stage/Support/Subjects.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;
using llvm::StringRef;

void stage::setSubject(DiagnosticBuilder &message, StringRef name, StringRef value) {
  message.note(SMLoc(), diag::Subject) << name << value;
}

namespace {
/// `name = value` in a piece of source text.
struct Given {
  StringRef name, value;
  unsigned depth; ///< Parentheses around it.
};
} // namespace

static bool isWordChar(char c) { return llvm::isAlnum(c) || c == '_'; }

/// What ends a value outside of its own parentheses.
static StringRef takeValue(StringRef text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    depth += c == '(' || c == '[';
    depth -= c == ')' || c == ']';
    if (depth < 0 || (depth == 0 && (c == ',' || c == ';' || c == '}' || c == '\n')))
      return text.take_front(i).rtrim();
  }
  return text.rtrim();
}

/// All in a text without its comments and texts in quotes.
static std::vector<Given> listGiven(StringRef text) {
  std::vector<Given> all;
  unsigned depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (text.substr(i).startswith("//")) {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '"') {
      i = std::min(text.find('"', i + 1), text.size());
    } else if (c == '(' || c == ')') {
      depth += c == '(' ? 1 : depth ? -1 : 0;
    } else if (isWordChar(c)) {
      StringRef name = text.substr(i).take_while(isWordChar), rest = text.substr(i + name.size()).ltrim(' ');
      bool isMember = i && text[i - 1] == '.';
      if (!isMember && rest.consume_front("=") && !rest.startswith("="))
        all.push_back({name, takeValue(rest.ltrim(' ')), depth});
      i += name.size() - 1;
    }
  }
  return all;
}

/// The declaration at the beginning of whose line `begin` points, to its last brace.
static StringRef takeDeclaration(StringRef text, size_t begin) {
  size_t end = text.find("\n}", begin), line = text.find('\n', begin);
  StringRef first = text.slice(begin, line);
  return first.rtrim().endswith("}") ? first : text.slice(begin, end);
}

static bool namesWord(StringRef text, StringRef word) {
  for (size_t at = text.find(word); at != StringRef::npos; at = text.find(word, at + 1))
    if ((at == 0 || !isWordChar(text[at - 1])) && text.substr(at + word.size()).take_while(isWordChar).empty())
      return true;
  return false;
}

/// A number that is written otherwise is another one; what is computed may be any.
static bool mayBe(StringRef written, StringRef value) {
  bool isNumber = !written.empty() && llvm::all_of(written, [](char c) { return llvm::isDigit(c) || c == '_'; });
  std::string digits;
  llvm::copy_if(written, std::back_inserter(digits), [](char c) { return c != '_'; });
  return !isNumber || value.empty() || digits == value;
}

static SMRange getRange(StringRef value) {
  return {SMLoc::getFromPointer(value.begin()), SMLoc::getFromPointer(value.end())};
}

/// Whether a strategy of the text that `caller` names, or one that this calls, gives `name` another value than its own,
/// as `megatron(tp = dp)` does: then nobody knows what of the job has come to the rule.
static bool isGivenOtherwise(StringRef text, StringRef caller, StringRef name, unsigned mostCalls = 8) {
  StringRef begin = "strategy ";
  for (size_t at = text.find(begin); at != StringRef::npos && mostCalls; at = text.find(begin, at + 1)) {
    StringRef declaration = takeDeclaration(text, at);
    StringRef called = declaration.drop_front(begin.size()).ltrim().take_while(isWordChar);
    if ((at && text[at - 1] != '\n') || called.empty() || !namesWord(caller, called))
      continue;
    StringRef body = declaration.drop_front(std::min(declaration.find('{'), declaration.size()));
    for (const Given &given : listGiven(body))
      if (given.depth && given.name == name && given.value != name)
        return true;
    if (isGivenOtherwise(text, body, name, mostCalls - 1))
      return true;
  }
  return false;
}

SMRange stage::findGiven(StringRef text, SMLoc place, StringRef name, StringRef value) {
  size_t at = size_t(place.getPointer() - text.data());
  size_t begin = text.take_front(at + 1).rfind("\njob ");
  begin = begin == StringRef::npos ? (text.startswith("job ") ? 0 : begin) : begin + 1;
  if (begin == StringRef::npos)
    return {};
  StringRef job = takeDeclaration(text, begin);
  if (at >= begin + job.size() || (!name.empty() && isGivenOtherwise(text, job, name)))
    return {};
  for (const Given &given : listGiven(job)) {
    bool isMeant = name.empty() ? given.depth > 1 && given.value == value : given.depth && given.name == name;
    if (isMeant && mayBe(given.value, value))
      return getRange(given.value);
    if (isMeant)
      return {};
  }
  for (size_t config = text.find("\nconfig "); config != StringRef::npos; config = text.find("\nconfig ", config + 1)) {
    StringRef called = text.substr(config + 8).ltrim().take_while(isWordChar);
    if (name.empty() || !namesWord(job, called))
      continue;
    for (const Given &given : listGiven(takeDeclaration(text, config + 1)))
      if (given.name == name && mayBe(given.value, value))
        return getRange(given.value);
  }
  return {};
}
