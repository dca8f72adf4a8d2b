//===- RandomParts.cpp - a random strategy, made of parts -----------------===//
#include "RandomParts.h"
#include "Random.h"
#include "llvm/ADT/STLExtras.h"

using namespace stage;

namespace {
class Surgeon {
public:
  Surgeon(std::vector<std::string> lines, uint64_t seed) : lines(std::move(lines)), random(seed) {}

  std::vector<std::string> run() {
    auto begin = llvm::find_if(lines, [](llvm::StringRef line) { return line.startswith("strategy s("); });
    auto mesh = begin == lines.end() ? begin : begin + 1;
    if (mesh == lines.end() || !llvm::StringRef(*mesh).startswith("  mesh ("))
      return std::move(lines);
    llvm::SmallVector<llvm::StringRef, 4> names;
    llvm::StringRef(*mesh).split('(').second.split(')').first.split(names, ", ");
    for (llvm::StringRef name : names)
      axes.push_back(name.str());
    auto end = std::find(mesh, lines.end(), "}");
    std::vector<std::string> rules(mesh + 1, end);
    size_t first = random.below(unsigned(rules.size()) + 1),
           last = first + random.below(unsigned(rules.size() - first) + 1);
    std::vector<std::string> body;
    std::string added;
    for (size_t i = 0; i < first;) { // of one rule or of some
      size_t next = std::min(first, i + 1 + random.below(3));
      body.push_back("  " + makePart({rules.begin() + i, rules.begin() + next}) + ";");
      i = next;
    }
    body.insert(body.end(), rules.begin() + first, rules.begin() + last);
    if (last < rules.size())
      added = " with " + makePart({rules.begin() + last, rules.end()});
    std::string meshLine = *mesh; // it may stand anywhere
    body.insert(body.begin() + random.below(unsigned(body.size()) + 1), meshLine);
    size_t place = mesh - lines.begin();
    lines.erase(mesh, end);
    lines.insert(lines.begin() + place, body.begin(), body.end());
    for (std::string &line : lines)
      if (line == "  strategy = s();")
        line = "  strategy = s()" + added + ";";
    lines.insert(lines.end(), parts.begin(), parts.end());
    return std::move(lines);
  }

private:
  /// Declares a part with these rules. Its call.
  std::string makePart(std::vector<std::string> rules) {
    std::string name = "part" + std::to_string(parts.size()), params, arguments;
    bool isNamed = false;
    unsigned number = 0;
    for (const std::string &axis : axes) {
      if (llvm::none_of(rules, [&](const std::string &rule) { return hasWord(rule, axis); }))
        continue;
      std::string param = "a" + std::to_string(number++);
      for (std::string &rule : rules)
        rule = replaceWords(rule, [&](llvm::StringRef word) { return word == axis ? "over_" + param : word.str(); });
      isNamed |= random.chance(30); // what stands behind has a name, too
      std::string separator = params.empty() ? "" : ", ";
      params += separator + "over_" + param + ": axes";
      arguments += separator + (isNamed ? "over_" + param + " = " : "") + axis;
    }
    std::string text = "strategy " + name + "(" + params + ") {";
    for (const std::string &rule : rules)
      text += " " + llvm::StringRef(rule).trim().str();
    parts.push_back(text + " }");
    if (!random.chance(25))
      return name + "(" + arguments + ")";
    // Behind another one, which passes on what it is given.
    std::string passed;
    for (unsigned i = 0; i < number; ++i)
      passed += (i ? ", over_a" : "over_a") + std::to_string(i);
    std::string outer = "part" + std::to_string(parts.size());
    parts.push_back("strategy " + outer + "(" + params + ") { " + name + "(" + passed + "); }");
    return outer + "(" + arguments + ")";
  }

  std::vector<std::string> lines, parts;
  std::vector<std::string> axes;
  Random random;
};
} // namespace

std::vector<std::string> stage::takeApart(std::vector<std::string> lines, uint64_t seed) {
  return Surgeon(std::move(lines), seed).run();
}
