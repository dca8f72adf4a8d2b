//===- RuleTargets.cpp - what the rules of a strategy are about -----------===//
#include "RuleTargets.h"
#include "RuleCalls.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IR/graph/Walk.h"
#include "stage/IR/text/Text.h"
#include <map>
#include <set>

using namespace stage;

/// `linear` of `linear.1`, one operator with operands of other shapes: as programs and rules call it.
static llvm::StringRef getBaseName(const OpDef &def) { return llvm::StringRef(def.name).split('.').first; }

/// Adds a value under what patterns call it (PathPattern::matches); what has no name and is not computed has none
/// there.
static void addTo(PathIndex &index, unsigned number, const Value &value) {
  if (!value.path.empty() || (value.getOp() && value.getOp()->kind == OpKind::Compute))
    index.add(number, describe(value));
}

RuleTargets::RuleTargets(Graph &graph) : graph(graph) {
  auto add = [&](Value &value, Op *op) {
    unsigned number = values.size();
    values.push_back({&value, op});
    addTo(valuePaths, number, value);
    for (unsigned d = 0; d < value.type.getNumDims(); ++d)
      if (const Dim *dim = value.type.shape[d].dim)
        places[dim].push_back({number, d});
  };
  for (Block &phase : graph.getPhases())
    if (isForward(phase.getPhase()))
      stage::forEachValue(phase, add);
  auto name = [&](llvm::StringRef text, const Dim *dim) {
    auto &dims = dimsByName[text];
    if (dims.empty() || dims.back() != dim)
      dims.push_back(dim);
  };
  for (auto &dim : graph.dims)
    // What is declared as (H E) answers to the names of H (Dim::answersTo), too.
    for (const Dim *named = dim.get(); named; named = named->parts.empty() ? nullptr : named->parts.front()) {
      name(named->name, dim.get());
      for (llvm::StringRef alias : named->aliases) {
        name(alias, dim.get());
        if (alias.contains('.'))
          name(alias.rsplit('.').second, dim.get());
      }
    }
}

void RuleTargets::forEachForwardOp(llvm::function_ref<void(Op &)> f) const {
  for (Block &phase : graph.getPhases())
    if (isForward(phase.getPhase()))
      Graph::walk(phase, f);
}

std::vector<RuleTargets::Place> RuleTargets::findDim(llvm::StringRef name) const {
  std::vector<Place> all;
  for (const Dim *dim : dimsByName.lookup(name))
    if (auto found = places.find(dim); found != places.end())
      all.insert(all.end(), found->second.begin(), found->second.end());
  llvm::sort(all);
  return all;
}

bool RuleTargets::forEachValue(const PathPattern &pattern, llvm::function_ref<void(Value &, Op *)> f) const {
  bool any = false;
  for (unsigned number : valuePaths.find(pattern)) {
    const Target &target = values[number];
    if (!pattern.matches(*target.value))
      continue;
    any = true;
    f(*target.value, target.op);
  }
  return any;
}

bool RuleTargets::forEachGradient(const PathPattern &pattern, llvm::function_ref<void(Value &)> f) {
  if (!gradientPaths) {
    gradientPaths.emplace();
    for (Block &phase : graph.getPhases())
      if (isBackward(phase.getPhase()))
        stage::forEachValue(phase, [&](Value &value, Op *) {
          if (!value.primal)
            return;
          addTo(*gradientPaths, gradients.size(), value);
          gradients.push_back(&value);
        });
  }
  bool any = false;
  for (unsigned number : gradientPaths->find(pattern)) {
    if (!pattern.matches(*gradients[number]))
      continue;
    any = true;
    f(*gradients[number]);
  }
  return any;
}

std::string RuleTargets::getPath(const Op &op) { return joinPath(op.scope, getBaseName(*op.def)); }

static bool isGradient(const Op &op) { return op.origin && !op.isRecomputed; }

/// The gradient of `layers.attn.attention()` is `layers.attn.attention.grad()`.
std::pair<std::string, llvm::StringRef> RuleTargets::getNames(const Op &op) {
  if (!isGradient(op))
    return {op.scope, op.def->name};
  return {joinPath(op.scope, getBaseName(*op.origin->def)), "grad"};
}

bool RuleTargets::matches(const PathPattern &pattern, const Op &op) {
  auto [scope, name] = getNames(op);
  return (!isGradient(op) || pattern.namesGradient()) && pattern.matchesOp(scope, name);
}

bool RuleTargets::forEachOp(const PathPattern &pattern, llvm::function_ref<void(Op &)> f) {
  if (!opPaths) {
    opPaths.emplace();
    graph.walk([&](Op &op) {
      if (op.kind != OpKind::Compute)
        return;
      if (isGradient(op)) {
        opPaths->add(ops.size(), joinPath(joinPath(op.scope, getBaseName(*op.origin->def)), "grad"));
      } else {
        opPaths->add(ops.size(), getPath(op));
        if (op.def->name != getBaseName(*op.def))
          opPaths->add(ops.size(), joinPath(op.scope, op.def->name));
      }
      ops.push_back(&op);
    });
  }
  bool any = false;
  for (unsigned number : opPaths->find(pattern)) {
    if (!matches(pattern, *ops[number]))
      continue;
    any = true;
    f(*ops[number]);
  }
  return any;
}

/// The number of the module with a path, which is made with those around it.
unsigned RuleTargets::getModule(llvm::StringRef path) {
  auto found = moduleNumbers.find(path);
  if (found != moduleNumbers.end())
    return found->second;
  llvm::StringRef outer = path.contains('.') ? path.rsplit('.').first : "";
  unsigned around = outer.empty() ? ~0u : getModule(outer), number = modules.size();
  auto entry = moduleNumbers.try_emplace(path, number).first;
  modules.push_back({entry->getKey(), {}, {}});
  modulePaths->add(number, path);
  if (around != ~0u)
    modules[around].inner.push_back(number);
  return number;
}

bool RuleTargets::forEachOpInside(const PathPattern &pattern, llvm::function_ref<void(Op &, llvm::StringRef)> f) {
  if (!modulePaths) {
    modulePaths.emplace();
    forEachForwardOp([&](Op &op) {
      if (op.kind == OpKind::Compute && !op.scope.empty())
        modules[getModule(op.scope)].ops.push_back(&op);
    });
  }
  llvm::DenseSet<unsigned> visited;
  for (unsigned number : modulePaths->find(pattern)) {
    if (!pattern.matchesPath(modules[number].path))
      continue;
    std::vector<unsigned> pending = {number};
    while (!pending.empty()) {
      unsigned next = pending.back();
      pending.pop_back();
      if (!visited.insert(next).second)
        continue;
      for (Op *op : modules[next].ops)
        f(*op, modules[number].path);
      pending.insert(pending.end(), modules[next].inner.begin(), modules[next].inner.end());
    }
  }
  return !visited.empty();
}

/// True for the path of something in a module, or of the module itself.
static bool isBelow(llvm::StringRef path, llvm::StringRef module) {
  return path.consume_front(module) && (path.empty() || path.front() == '.');
}

bool RuleTargets::forEachKept(const Rule &rule, bool withCarried,
                              llvm::function_ref<void(Value &, llvm::StringRef)> f) {
  const PathPattern &pattern = *rule.pattern;
  bool any = false;
  llvm::DenseSet<const Value *> visited; // with their modules
  auto visit = [&](Value &value, llvm::StringRef module) {
    const Block &block = *value.getBlock();
    bool isOther = rule.cases && block.getParent() && !llvm::is_contained(*rule.cases, block.getNumber());
    if (!isOther && visited.insert(&value).second)
      f(value, module);
  };
  auto visitOp = [&](Op &op, llvm::StringRef module) {
    any = true;
    for (auto &result : op.getResults())
      visit(*result, module);
  };
  if (pattern.matchesOps()) {
    forEachOp(pattern, [&](Op &op) {
      if (op.getBlock()->getPhase() == PhaseKind::Forward)
        visitOp(op, op.scope);
    });
    return any;
  }
  if (pattern.isPath())
    forEachOpInside(pattern, [&](Op &op, llvm::StringRef module) {
      visitOp(op, module);
      const Op *repeat = withCarried ? op.getBlock()->getParent() : nullptr;
      if (!repeat || !isBelow(joinPath(repeat->scope, repeat->name), module))
        return;
      for (auto &argument : op.getBlock()->getArguments())
        visit(*argument, module);
    });
  forEachValue(pattern, [&](Value &value, Op *op) {
    any = true;
    if (!op || op->kind != OpKind::Compute) {
      if (withCarried && (!op || op->kind == OpKind::Repeat))
        visit(value, "");
      return;
    }
    bool isNew = !visited.count(&value);
    visit(value, op->scope);
    // With a result comes what its op saves besides.
    for (auto &result : op->getResults())
      if (isNew && !op->def->results[value.getNumber()].extra && op->def->results[result->getNumber()].extra)
        visit(*result, op->scope);
  });
  return any;
}

/// A rule below `at` stands at its dim; the pattern stands behind the last `at` before it.
static SMLoc findPatternPlace(const Rule &rule, DiagnosticEngine &diags) {
  if (!rule.loc.isValid() || rule.kind == RuleKind::Replicate || rule.isOfKept())
    return rule.loc;
  llvm::SourceMgr &sources = diags.getSources();
  unsigned buffer = sources.FindBufferContainingLoc(rule.loc);
  if (!buffer)
    return rule.loc;
  const char *begin = sources.getMemoryBuffer(buffer)->getBufferStart(), *end = rule.loc.getPointer();
  llvm::StringRef before(begin, size_t(end - begin));
  before = before.substr(before.find_last_of(";") == llvm::StringRef::npos ? 0 : before.find_last_of(";") + 1);
  size_t at = before.rfind("at ");
  llvm::StringRef text = rule.pattern->getText();
  if (at == llvm::StringRef::npos || (at && llvm::isAlnum(before[at - 1])))
    return rule.loc;
  llvm::StringRef pattern = before.drop_front(at + 2).ltrim();
  return pattern.front() == text.front() ? SMLoc::getFromPointer(pattern.data()) : rule.loc;
}

void RuleTargets::reportUnmatched(const Rule &rule, DiagnosticEngine &diags, llvm::StringRef dimNames) const {
  noteCalls(diags.report(findPatternPlace(rule, diags), diag::PatternMatchesNothing)
                << rule.pattern->getText() + dimNames << graph.name << suggestFor(rule),
            rule);
}

/// The text with each name that no path has replaced by the nearest name that one has: `layer[*].{x,h}` becomes
/// `layers[*].{x,h}`.
static std::string replaceNames(llvm::StringRef text, const std::set<std::string> &known) {
  std::string result;
  while (!text.empty()) {
    llvm::StringRef name = text.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (name.empty()) {
      result += text.front();
      text = text.drop_front();
      continue;
    }
    text = text.drop_front(name.size());
    std::string nearest = name.str();
    unsigned least = known.count(nearest) ? 0 : name.size() / 3 + 2;
    for (const std::string &other : known)
      if (unsigned distance = least ? name.edit_distance(other, true, least) : 0; distance < least) {
        nearest = other;
        least = distance;
      }
    result += nearest;
  }
  return result;
}

std::string RuleTargets::suggestPattern(const PathPattern &pattern) const {
  std::set<std::string> known;
  std::vector<std::string> paths, opPaths;
  auto add = [&](std::string path, std::vector<std::string> &to) {
    for (llvm::StringRef name : splitPath(path))
      known.insert(name.str());
    to.push_back(std::move(path));
  };
  for (const Target &target : values)
    if (!target.value->path.empty())
      add(target.value->path, paths);
  forEachForwardOp([&](Op &op) {
    if (op.kind == OpKind::Compute)
      add(getPath(op), opPaths);
  });
  auto matches = [&](const PathPattern &other) {
    return llvm::any_of(other.matchesOps() ? opPaths : paths, [&](llvm::StringRef path) {
      if (other.matchesOps()) {
        auto [scope, name] = path.rsplit('.');
        return name.empty() ? other.matchesOp("", scope) : other.matchesOp(scope, name);
      }
      for (llvm::StringRef part = path; !part.empty(); part = part.rsplit('.').first) {
        if (other.matchesPath(part))
          return true;
        if (!part.contains('.'))
          break;
      }
      return false;
    });
  };
  // Of a pattern that matches by another name in its braces only one name is meant.
  if (std::optional<PathPattern> whole = PathPattern::parse(pattern.getText()); whole && matches(*whole))
    return "";
  std::string replaced = replaceNames(pattern.getText(), known);
  // `recompute attention;`: an op is named with parentheses.
  std::string asOp = "**." + pattern.getText() + "()";
  for (const std::string &text : {"**." + pattern.getText(), asOp, replaced, "**." + replaced})
    if (std::optional<PathPattern> other = PathPattern::parse(text);
        other && text != pattern.getText() && matches(*other))
      return text;
  return "";
}

/// `recompute full`, `offload activations to host`: no name of the model at all. Of what layers keep, the layers are
/// meant; `layers[*].attn` is a module, which has no dims.
std::string RuleTargets::suggestFor(const Rule &rule) const {
  llvm::StringRef text = rule.pattern->getText();
  std::string repeat;
  graph.walk([&](Op &op) {
    if (op.kind == OpKind::Repeat && repeat.empty())
      repeat = joinPath(op.scope, op.name);
  });
  // A module, or a name that what stands before it lacks: the names that are there.
  std::vector<std::string> inside = listInside(*rule.pattern);
  if (rule.kind == RuleKind::Shard && !inside.empty())
    return "; it is a module, and a rule is about values: name one of " + llvm::join(inside, ", ") + ", as in '" +
           text.str() + "." + inside.front() + "'";
  std::string nearest = suggestPath(*rule.pattern);
  auto [module, last] = text.rsplit('.');
  std::vector<std::string> beside;
  if (!last.empty() && !module.contains("**") &&
      llvm::all_of(last, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
    if (std::optional<PathPattern> around = PathPattern::parse(module))
      beside = listInside(*around, /*withModules=*/true);
  // `attention` is `attn`: its letters in order, from the first one.
  for (const std::string &name : beside) {
    llvm::StringRef rest = last;
    bool isShort = name.size() > 2 && name.size() < last.size() && name.front() == last.front();
    for (char letter : name)
      if (size_t at = rest.find(letter); at == llvm::StringRef::npos)
        isShort = false;
      else
        rest = rest.drop_front(at + 1);
    if (isShort)
      return "; did you mean '" + module.str() + "." + name + "'?";
  }
  bool isNear = false;
  for (const std::string &name : beside)
    isNear |= llvm::StringRef(name).edit_distance(last, true) <= last.size() / 3 + 1;
  if (!beside.empty() && !isNear)
    return "; '" + module.str() + "' has " + llvm::join(beside, ", ");
  if (nearest.empty() && rule.isOfKept() && !repeat.empty() && !text.contains('.'))
    return "; write '" + repeat + "[*]' for what layers keep";
  return nearest;
}

/// The names of the parameters and values of the modules that a pattern names, as far as they are called by it.
std::vector<std::string> RuleTargets::listInside(const PathPattern &module, bool withModules) const {
  std::vector<std::string> names;
  if (module.matchesOps())
    return names;
  constexpr size_t mostListed = 16;
  for (const Target &target : values) {
    auto [scope, name] = llvm::StringRef(target.value->path).rsplit('.');
    // A module there, by what it has itself.
    for (llvm::StringRef inside = scope; withModules && !module.matchesPath(scope) && inside.contains('.');) {
      auto [around, own] = inside.rsplit('.');
      if (module.matchesPath(around)) {
        scope = around;
        name = own;
        break;
      }
      inside = around;
    }
    if (name.empty() || name == "result" || !module.matchesPath(scope) || llvm::is_contained(names, name.str()))
      continue;
    names.push_back(name.str());
    if (names.size() == mostListed)
      break;
  }
  return names;
}

std::string RuleTargets::suggestPath(const PathPattern &pattern) const {
  if (std::string text = suggestPattern(pattern); !text.empty())
    return "; did you mean '" + text + "'?";
  std::string best;
  unsigned bestDistance = ~0u;
  auto consider = [&](const std::string &name, bool isOp) {
    std::optional<unsigned> distance = pattern.getDistance(name);
    if (!distance || *distance >= bestDistance)
      return;
    bestDistance = *distance;
    best = name + (isOp ? "()" : "");
  };
  if (pattern.matchesOps())
    forEachForwardOp([&](Op &op) {
      if (op.kind == OpKind::Compute)
        consider(getPath(op), true);
    });
  else
    for (const Target &target : values)
      if (!target.value->path.empty())
        consider(target.value->path, false);
  return best.empty() ? "" : "; did you mean '" + best + "'?";
}

std::string RuleTargets::suggestDim(llvm::StringRef text) const {
  // Of H = KV * G tensors have the dims KV and G, side by side.
  for (const Target &target : values) {
    llvm::ArrayRef<Extent> shape = target.value->type.shape;
    for (size_t d = 0; d + 1 < shape.size(); ++d)
      if (shape[d].dim && shape[d + 1].dim && (shape[d].size * shape[d + 1].size).getSymbol() == text) {
        const std::string &outer = shape[d].dim->name, &inner = shape[d + 1].dim->name;
        return "; '" + describe(*target.value) + "' has " + outer + " and " + inner +
               ", whose product it is: write '(" + outer + ", " + inner + ")' in its place";
      }
  }
  std::string best, all;
  unsigned bestDistance = text.size() / 2 + 1;
  std::set<std::string> names;
  for (auto &dim : graph.dims) {
    if (!places.count(dim.get()) || dim->name.empty())
      continue;
    unsigned distance = text.equals_insensitive(dim->name) ? 0 : text.edit_distance(dim->name, true, bestDistance);
    if (distance < bestDistance) {
      bestDistance = distance;
      best = dim->name;
    }
    if (names.insert(dim->name).second)
      all += (all.empty() ? "" : ", ") + dim->name;
  }
  // `batch` is B: what begins alike, if one dim does.
  std::string initial;
  size_t numAlike = 0;
  for (const std::string &name : names)
    if (text.size() > 2 && name.size() == 1 && llvm::toLower(name.front()) == llvm::toLower(text.front())) {
      initial = name;
      ++numAlike;
    }
  best = best.empty() && numAlike == 1 ? initial : best;
  constexpr size_t mostListed = 24;
  return !best.empty() ? "; did you mean '" + best + "'?" : names.size() > mostListed ? "" : "; its dims are " + all;
}

std::vector<std::pair<SMLoc, std::string>> stage::listUnusedStatements(const Graph &graph, RuleKind kind,
                                                                       const llvm::DenseSet<unsigned> &used) {
  std::map<unsigned, std::pair<SMLoc, std::string>> unused;
  for (const Rule &rule : graph.rules)
    if (rule.kind == kind && !used.contains(rule.statement) && !rule.isTrimmed) {
      auto &[loc, patterns] = unused[rule.statement];
      loc = patterns.empty() ? rule.loc : loc;
      patterns += (patterns.empty() ? "" : ", ") + rule.pattern->getText();
    }
  auto statements = llvm::make_second_range(unused);
  return {statements.begin(), statements.end()};
}
