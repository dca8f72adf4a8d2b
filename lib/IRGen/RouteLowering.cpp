//===- RouteLowering.cpp - ops that route by data -------------------------===//
//
// Problem: `routes b, s, j -> x, c` says which indices follow from which, in either direction; the operand of integers
// that has the indices of one side says where each token goes:
//
//   op dispatch(t: [b, s, d], to: i32[b, s, j], experts: size x, slots: size c) -> [x, c, d]
//     = t { routes b, s, j -> x, c; }
//   routes b, s, j -> x, c by to;                                            in the graph
//
// With `by load` a list says how many choices each position of x gets; the graph notes it for the dims of x and c:
//
//   routes b, s, j -> x, c by [3, 1];       table load[2] = [3, 1];  load load0.C of X by load for B*K*S;
//   routes b, s, j -> x, c by evenly;       load load0.C of X evenly for B*K*S;
//   routes b, s, j -> x, c by once;         routes b, s, j -> x, c by to once;
//
// Where the integers have an index more, as all results do, the clause does not speak of it, and tokens are routed
// apart at each position of it:
//
//   op spread(t: [y, n, d], to: i32[y, n, j], experts: size z, slots: size c) -> [y, z, c, d]
//     = t { routes n, j -> z, c; }
//
// Algorithm: find that operand; its indices, in its order, are the tokens. What follows from others has no position of
// its own: it stands only as the index of an operand that is declared with it.
//
//===----------------------------------------------------------------------===//
#include "ArgumentOrder.h"
#include "OpLowering.h"
#include "stage/IR/algebra/RoutedApart.h"
#include "stage/IRGen/Diagnostics.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Support/Origins.h"
#include <cmath>

using namespace stage;

bool OpLowering::lowerRoutes() {
  if (!routesClause)
    return true;
  auto resolve = [&](llvm::ArrayRef<ast::Ident> names) {
    llvm::SmallVector<unsigned, 4> indices;
    for (const ast::Ident &name : names)
      indices.push_back(indexByName.lookup(name.name));
    return indices;
  };
  llvm::SmallVector<unsigned, 4> left = resolve(routesClause->names), right = resolve(routesClause->names2);
  auto routes = [&](unsigned operand, llvm::ArrayRef<unsigned> side, bool hasMore) {
    const auto &indices = def.operands[operand].indices;
    auto isInAllResults = [&](unsigned index) {
      return llvm::all_of(def.results,
                          [&](const ResultInfo &result) { return llvm::is_contained(result.indices, index); });
    };
    return !isFloat(operands[operand]->type.dtype) && (indices.size() > side.size()) == hasMore &&
           llvm::all_of(side, [&](unsigned index) { return llvm::is_contained(indices, index); }) &&
           llvm::all_of(indices,
                        [&](unsigned index) { return llvm::is_contained(side, index) || isInAllResults(index); });
  };
  Routing routing;
  unsigned number = 0; // of operands that may
  // One that has further indices is meant if none has these alone.
  for (bool hasMore : {false, true})
    for (unsigned i = 0, known = number; i < operands.size() && known == 0; ++i)
      if (bool isLeft = routes(i, left, hasMore); isLeft || routes(i, right, hasMore)) {
        ++number;
        routing.operand = i;
        routing.target = (isLeft ? right : left).front();
        routing.slot = (isLeft ? right : left).back();
      }
  if (number != 1) {
    noteCall(diags.report(routesClause->loc(), diag::RoutesBySeveral).range(routesClause->range)
             << def.name << int64_t(number));
    return false;
  }
  bool isRight = llvm::is_contained(left, routing.slot);
  for (unsigned index : def.operands[routing.operand].indices)
    if (llvm::is_contained(isRight ? right : left, index))
      routing.tokens.push_back(index);
  routing.toSlots = llvm::is_contained(def.results.front().indices, routing.slot);
  def.routing = std::move(routing);
  if (routesClause->value && !noteLoad())
    return false;
  for (const ResultInfo &result : def.results)
    if (result.formula && !checkRouted(result.formula))
      return false;
  return llvm::all_of(def.lets, [&](auto &let) { return checkRouted(let.second); });
}

/// Whether indices that follow from others stand only where operands have them.
bool OpLowering::checkRouted(const Formula *formula) {
  const Formula *wrong =
      formula->kind == Formula::Kind::Index && def.routing->isRouted(formula->index) ? formula : nullptr;
  unsigned index = wrong ? wrong->index : 0;
  for (unsigned reduced : formula->indices)
    if (def.routing->isRouted(reduced)) {
      wrong = formula;
      index = reduced;
    }
  if (wrong) {
    noteCall(diags.report(routesClause->loc(), diag::RoutedIndex).range(routesClause->range)
             << def.indices[index].name << def.name);
    return false;
  }
  for (size_t k = 0; k < formula->children.size(); ++k) {
    const Formula *child = formula->children[k];
    bool isOwn = formula->kind == Formula::Kind::Element && child->kind == Formula::Kind::Index &&
                 child->index == def.operands[formula->operand].indices[k];
    if (!isOwn && !checkRouted(child))
      return false;
  }
  return true;
}

bool OpLowering::reportLoad(const llvm::Twine &why) {
  DiagnosticBuilder error = diags.report(routesClause->value->loc(), diag::BadLoad).range(routesClause->value->range)
                            << def.name << why;
  setOrigin(error, loadOrigin);
  if (llvm::StringRef written = loadOrigin.isValid() ? getSource(loadOrigin) : "";
      written.contains('(') && !written.startswith("["))
    error.note(SMLoc(), diag::NameInstead)
        << "a list of lists, one for each layer in turn, is written '[" + written + "]'";
  noteCall(std::move(error));
  return false;
}

/// Whole numbers in the proportion of these, exactly; nothing if some have no exact value, or the numbers get too
/// large.
static std::optional<std::vector<int64_t>> makeWhole(llvm::ArrayRef<std::optional<Rational>> numbers) {
  Rational multiple{1, 1};
  std::vector<int64_t> weights;
  for (const std::optional<Rational> &number : numbers) {
    std::optional<Rational> scaled = number ? number->mul(multiple) : std::nullopt;
    scaled = scaled ? Rational{scaled->den, 1}.mul(multiple) : scaled;
    if (!scaled)
      return std::nullopt;
    multiple = *scaled;
  }
  for (const std::optional<Rational> &number : numbers) {
    std::optional<Rational> scaled = number->mul(multiple);
    if (!scaled || scaled->num > int64_t(1) << 62)
      return std::nullopt;
    weights.push_back(int64_t(scaled->num));
  }
  return weights;
}

/// Whole numbers in the proportion of those of a list; nothing after a report.
std::optional<std::vector<int64_t>> OpLowering::readLoad(llvm::ArrayRef<sema::CTValue> elements) {
  std::vector<double> numbers;
  std::vector<std::optional<Rational>> exact;
  for (size_t i = 0; i < elements.size(); ++i) {
    std::string entry = "entry " + std::to_string(i);
    if (!elements[i].isNumber()) {
      reportLoad(entry + " is " + elements[i].describeKind());
      return std::nullopt;
    }
    std::optional<double> number = evaluator.getDouble(elements[i], routesClause->value->range);
    if (!number)
      return std::nullopt;
    if (!(*number >= 0) || *number > 0x1p62) {
      reportLoad(entry + (*number < 0 ? " is below 0" : " is larger than 2^62"));
      return std::nullopt;
    }
    numbers.push_back(*number);
    exact.push_back(evaluator.getExact(elements[i]));
  }
  double largest = numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end());
  if (largest == 0) {
    reportLoad("no entry is above 0");
    return std::nullopt;
  }
  if (std::optional<std::vector<int64_t>> weights = makeWhole(exact))
    return weights;
  // What has no exact value counts in units of 2^-40 of the largest.
  std::vector<int64_t> weights;
  for (double number : numbers)
    weights.push_back(std::llround(number / largest * double(int64_t(1) << 40)));
  return weights;
}

/// All choices of what an op routes.
Size OpLowering::getChoices() const {
  Size choices = graph.sizes.one();
  for (unsigned token : def.routing->tokens)
    choices = choices * extents[token].size;
  return choices;
}

/// Notes how full the slots are (`by load`).
bool OpLowering::noteLoad() {
  Routing &routing = *def.routing;
  std::optional<sema::CTValue> load = evaluator.evaluate(routesClause->value, *env);
  std::optional<bool> isDropless =
      routesClause->value2 ? evaluator.evaluateCondition(routesClause->value2, *env) : std::optional<bool>(true);
  if (!load || !isDropless)
    return false;
  loadOrigin = load->getOrigin();
  auto isWord = [&](llvm::StringRef word) {
    return load->getKind() == sema::CTValue::Kind::Word && load->getText() == word;
  };
  bool isEven = isWord("evenly");
  if (isWord("once")) {
    routing.isOnce = true;
    return true;
  }
  if (load->isNone() || (isEven && !*isDropless)) // equally many slots are dealt out evenly
    return true;
  if (!routing.toSlots)
    return reportLoad("slots are filled where their results have them, not on the way back");
  const Extent target = extents[routing.target], slot = extents[routing.slot];
  if (!target.dim)
    return reportLoad("'" + def.indices[routing.target].name + "' is no named dim of the program");
  std::string table;
  if (!isEven && !noteTable(*load, table))
    return false;
  extents[routing.slot].dim =
      nameSlots({nullptr, target.dim, table, getChoices(), Size(), *isDropless, routesClause->loc()}, slot);
  return true;
}

/// Makes the table that a list of weights is.
bool OpLowering::noteTable(const sema::CTValue &load, std::string &table) {
  const Routing &routing = *def.routing;
  const Extent target = extents[routing.target];
  if (llvm::SmallVector<unsigned, 2> apart = getApart(def); !apart.empty())
    return reportLoad("tokens are routed apart for each position of '" + def.indices[apart.front()].name +
                      "', and one list does not say how for each");
  if (load.getKind() != sema::CTValue::Kind::List)
    return reportLoad(llvm::Twine("it is ") + load.describeKind() +
                      ", not a list; layers take the lists of a list in turn, as in [[3, 1], [1, 3]] or [zipf(8, 1)]");
  SizeValue size = evaluateCount(target.size, graph.binding);
  if (size && size.value.num != int64_t(load.getElements().size()))
    return reportLoad(llvm::Twine(load.getElements().size()) + " entries for " + size.value.str() + " positions of '" +
                      target.dim->name + "'");
  std::optional<std::vector<int64_t>> weights = readLoad(load.getElements());
  if (!weights)
    return false;
  // A token goes to a position once at most: of the indices of its choices no other operand knows.
  Size perToken = graph.sizes.one();
  for (unsigned token : routing.tokens) {
    bool isOfToken = false;
    for (unsigned i = 0; i < def.operands.size(); ++i)
      isOfToken |= i != routing.operand && llvm::is_contained(def.expand(def.operands[i].indices), token);
    perToken = isOfToken ? perToken : perToken * extents[token].size;
  }
  __int128 sum = 0;
  for (int64_t weight : *weights)
    sum += weight;
  SizeValue each = evaluateCount(perToken, graph.binding);
  for (size_t i = 0; each && i < weights->size(); ++i)
    if (__int128((*weights)[i]) * int64_t(each.value.num) > sum)
      return reportLoad("entry " + llvm::Twine(i) + " is more than 1/" + each.value.str() +
                        " of all, and each token goes to a position once at most");
  table = nameTable({{int64_t(weights->size())}, std::move(*weights)}, *target.dim);
  return true;
}

/// The name of a table of weights. Those of one dim that are equal are one table.
std::string OpLowering::nameTable(SizeTable table, const Dim &target) {
  for (unsigned number = 0;; ++number) {
    std::string name = "load" + (number ? "." + std::to_string(number) : "");
    bool isOfOther = llvm::any_of(graph.mesh.getSlotLoads(), [&](const SlotLoad &other) {
      return other.table == name && other.target != &target;
    });
    std::shared_ptr<const SizeTable> known = graph.binding.lookupTable(name);
    if (isOfOther || (known && !(*known == table)))
      continue;
    if (!known)
      graph.binding.bindTable(name, std::move(table));
    return name;
  }
}

/// Slots that are full in one way are a dim of their own, as layers of one module may have them otherwise. It answers
/// to the names of the dim that the program gives them.
const Dim *OpLowering::nameSlots(SlotLoad load, const Extent &slots) {
  for (const SlotLoad &known : graph.mesh.getSlotLoads())
    if (known.target == load.target && known.table == load.table && known.choices == load.choices &&
        known.isDropless == load.isDropless && known.slots->size == slots.size)
      return known.slots;
  std::string name = slots.dim ? slots.dim->name : def.indices[def.routing->slot].name, unique;
  // The part behind the point is what indices are named after.
  for (unsigned number = 0; unique.empty() || graph.findDim(unique); ++number)
    unique = "load" + std::to_string(number) + "." +
             llvm::StringRef(name).substr(llvm::StringRef(name).rfind('.') + 1).str();
  Dim *dim = graph.addDim(unique, slots.size, routesClause->loc());
  if (slots.dim)
    dim->aliases = slots.dim->aliases;
  load.slots = dim;
  graph.mesh.addSlotLoad(std::move(load));
  return dim;
}
