//===- OpDef.cpp - operators as index notation: their table ---------===//
#include "stage/IR/algebra/OpDef.h"
#include "stage/IR/algebra/RoutedApart.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

static constexpr std::pair<Mask::Kind, const char *> maskNames[] = {{Mask::Kind::Full, "full"},
                                                                    {Mask::Kind::Causal, "causal"},
                                                                    {Mask::Kind::Window, "window"},
                                                                    {Mask::Kind::Blocks, "blocks"}};

llvm::StringRef stage::getName(Mask::Kind kind) {
  return llvm::find_if(maskNames, [&](const auto &known) { return known.first == kind; })->second;
}

std::optional<Mask::Kind> stage::parseMaskKind(llvm::StringRef name) {
  for (auto [kind, text] : maskNames)
    if (name == text)
      return kind;
  return std::nullopt;
}

bool stage::needsAmount(Mask::Kind kind) { return kind == Mask::Kind::Window || kind == Mask::Kind::Blocks; }
bool stage::takesAmount(Mask::Kind kind) { return kind != Mask::Kind::Full; }

static constexpr std::pair<Formula::Function, const char *> functionNames[] = {
    {Formula::Function::Exp, "exp"},         {Formula::Function::Log, "log"}, {Formula::Function::Sqrt, "sqrt"},
    {Formula::Function::Rsqrt, "rsqrt"},     {Formula::Function::Erf, "erf"}, {Formula::Function::Tanh, "tanh"},
    {Formula::Function::Sigmoid, "sigmoid"}, {Formula::Function::Sin, "sin"}, {Formula::Function::Cos, "cos"},
    {Formula::Function::Abs, "abs"},         {Formula::Function::Max, "max"}, {Formula::Function::Min, "min"},
    {Formula::Function::Floor, "floor"}};

std::optional<Formula::Function> stage::parseFunction(llvm::StringRef name) {
  for (auto [id, text] : functionNames)
    if (name == text)
      return id;
  return std::nullopt;
}

llvm::StringRef stage::getName(Formula::Function function) {
  for (auto [id, text] : functionNames)
    if (id == function)
      return text;
  llvm_unreachable("all functions have names");
}

static constexpr const char *flopClassNames[] = {"contraction", "attention", "other"};

std::optional<FlopClass> stage::parseFlopClass(llvm::StringRef name) {
  auto found = llvm::find(flopClassNames, name);
  return found == std::end(flopClassNames) ? std::nullopt
                                           : std::optional(FlopClass(found - std::begin(flopClassNames)));
}

llvm::StringRef stage::getName(FlopClass flopClass) { return flopClassNames[unsigned(flopClass)]; }

llvm::SmallVector<unsigned, 4> Routing::getRouted() const {
  return toSlots ? tokens : llvm::SmallVector<unsigned, 4>{target, slot};
}

llvm::SmallVector<unsigned, 4> Routing::getRouting() const {
  return toSlots ? llvm::SmallVector<unsigned, 4>{target, slot} : tokens;
}

llvm::SmallVector<unsigned, 2> stage::getApart(const OpDef &def) {
  llvm::SmallVector<unsigned, 2> apart;
  const OpDef &own = def.vjpOf ? *def.vjpOf : def;
  if (own.routing)
    for (unsigned index : own.operands[own.routing->operand].indices)
      if (!llvm::is_contained(own.routing->tokens, index))
        apart.push_back(index);
  return apart;
}

llvm::SmallVector<unsigned, 4> stage::getDeciding(const OpDef &def) {
  llvm::SmallVector<unsigned, 4> deciding =
      def.getRouting() ? def.getRouting()->getRouting() : llvm::SmallVector<unsigned, 4>();
  llvm::append_range(deciding, getApart(def));
  return deciding;
}

std::optional<unsigned> OpDef::findIndex(llvm::StringRef name) const {
  for (size_t i = 0; i < indices.size(); ++i)
    if (indices[i].name == name)
      return i;
  return std::nullopt;
}

unsigned OpDef::getCompound(llvm::ArrayRef<unsigned> members) {
  auto known = llvm::find_if(indices, [&](const IndexInfo &index) { return members.equals(index.members); });
  if (known != indices.end())
    return known - indices.begin();
  indices.emplace_back().members.assign(members.begin(), members.end());
  nameCompounds();
  return indices.size() - 1;
}

void OpDef::nameCompounds() {
  for (IndexInfo &index : indices)
    if (index.isCompound()) {
      auto names = llvm::map_range(index.members, [&](unsigned member) { return indices[member].name; });
      index.name = "(" + llvm::join(names, " ") + ")";
    }
}

llvm::SmallVector<unsigned, 4> OpDef::expand(llvm::ArrayRef<unsigned> dims) const {
  llvm::SmallVector<unsigned, 4> result;
  for (unsigned index : dims) {
    if (indices[index].isCompound())
      result.append(indices[index].members);
    else
      result.push_back(index);
  }
  return result;
}

unsigned OpDef::getNumVisibleResults() const {
  return llvm::count_if(results, [](const ResultInfo &result) { return !result.extra; });
}

const Formula *OpDefTable::create(Formula node, llvm::ArrayRef<unsigned> indices,
                                  llvm::ArrayRef<const Formula *> children) {
  auto copy = [&](auto array) {
    using T = typename decltype(array)::value_type;
    T *data = arena.Allocate<T>(array.size());
    std::uninitialized_copy(array.begin(), array.end(), data);
    return llvm::ArrayRef<T>(data, array.size());
  };
  node.indices = copy(indices);
  node.children = copy(children);
  return new (arena.Allocate<Formula>()) Formula(node);
}

const Formula *OpDefTable::number(double value) {
  Formula node{};
  node.kind = Formula::Kind::Number;
  node.number = value;
  return create(node, {}, {});
}

const Formula *OpDefTable::element(unsigned operand, llvm::ArrayRef<unsigned> indices) {
  llvm::SmallVector<const Formula *, 4> subscripts;
  for (unsigned index : indices) {
    Formula node{};
    node.kind = Formula::Kind::Index;
    node.index = index;
    subscripts.push_back(create(node, {}, {}));
  }
  Formula node{};
  node.kind = Formula::Kind::Element;
  node.operand = operand;
  return create(node, {}, subscripts);
}

const Formula *OpDefTable::translate(const Formula *formula, llvm::ArrayRef<unsigned> toIndices,
                                     llvm::ArrayRef<unsigned> toOperands) {
  Formula node = *formula;
  if (node.kind == Formula::Kind::Index)
    node.index = toIndices[node.index];
  if (node.kind == Formula::Kind::Element)
    node.operand = toOperands[node.operand];
  llvm::SmallVector<unsigned, 4> over;
  for (unsigned index : formula->indices)
    over.push_back(toIndices[index]);
  llvm::SmallVector<const Formula *, 4> children;
  for (const Formula *child : formula->children)
    children.push_back(translate(child, toIndices, toOperands));
  return create(node, over, children);
}

const Formula *OpDefTable::call(Formula::Function function, llvm::ArrayRef<const Formula *> arguments) {
  Formula node{};
  node.kind = Formula::Kind::Call;
  node.function = function;
  return create(node, {}, arguments);
}

const Formula *OpDefTable::binary(Formula::Kind kind, const Formula *a, const Formula *b) {
  Formula node{};
  node.kind = kind;
  return create(node, {}, {a, b});
}

const Formula *OpDefTable::sum(llvm::ArrayRef<unsigned> indices, const Formula *body) {
  if (indices.empty())
    return body;
  Formula node{};
  node.kind = Formula::Kind::Reduce;
  return create(node, indices, {body});
}

const Formula *OpDefTable::addUp(llvm::ArrayRef<const Formula *> addends) {
  if (addends.size() == 1)
    return addends.front();
  size_t half = (addends.size() + 1) / 2;
  return binary(Formula::Kind::Add, addUp(addends.take_front(half)), addUp(addends.drop_front(half)));
}

const OpDef *OpDefTable::getSum(unsigned numDims, unsigned numAddends) {
  OpDef def;
  def.name = "add";
  ResultInfo result;
  result.name = "result";
  for (unsigned i = 0; i < numDims; ++i) {
    def.indices.push_back({"i" + std::to_string(i)});
    result.indices.push_back(i);
  }
  llvm::SmallVector<const Formula *, 4> addends;
  for (unsigned i = 0; i < numAddends; ++i) {
    def.operands.push_back({"x" + std::to_string(i), result.indices});
    addends.push_back(element(i, result.indices));
  }
  result.formula = addUp(addends);
  def.results.push_back(std::move(result));
  return add(std::move(def));
}

static OpDef makeIdentity(OpDefTable &table, unsigned numDims, llvm::StringRef name, std::optional<DType> type) {
  OpDef def;
  def.name = name.str();
  ResultInfo result;
  result.name = "result";
  result.dtype = type;
  for (unsigned i = 0; i < numDims; ++i) {
    def.indices.push_back({"i" + std::to_string(i)});
    result.indices.push_back(i);
  }
  def.operands.push_back({"x", result.indices});
  result.formula = table.element(0, result.indices);
  def.results.push_back(std::move(result));
  return def;
}

const OpDef *OpDefTable::getCast(unsigned numDims, DType type) {
  return add(makeIdentity(*this, numDims, "cast", type));
}

const OpDef *OpDefTable::getCopy(unsigned numDims, llvm::StringRef name) {
  return add(makeIdentity(*this, numDims, name, std::nullopt));
}

void OpDefTable::goOnFrom(const OpDefTable &other) {
  assert(defs.empty() && "a table goes on before it has anything of its own");
  base = &other;
  defs = other.defs;
}

const OpDef *OpDefTable::find(llvm::StringRef name) const {
  const OpDef *own = byName.lookup(name);
  return own || !base ? own : base->find(name);
}

const OpDef *OpDefTable::findText(llvm::StringRef text) const {
  const OpDef *own = byText.lookup(text);
  return own || !base ? own : base->findText(text);
}

unsigned OpDefTable::getLastNumber(llvm::StringRef name) const {
  auto own = lastNumber.find(name);
  return own != lastNumber.end() ? own->second : base ? base->getLastNumber(name) : 0;
}

void stage::listSaved(const OpDef &def, llvm::SmallVectorImpl<unsigned> &operands,
                      llvm::SmallVectorImpl<unsigned> &results) {
  for (unsigned i = 0; i < def.operands.size(); ++i)
    if (def.declaresSaves ? llvm::is_contained(def.savedOperands, i) : bool(def.derivativeNeeds[i]))
      operands.push_back(i);
  for (unsigned i = 0; i < def.results.size(); ++i)
    if (def.results[i].extra || llvm::is_contained(def.savedResults, i))
      results.push_back(i);
}

bool stage::isOfSomeResults(const OpDef &op, unsigned index) {
  const OpDef &def = op.vjpOf ? *op.vjpOf : op;
  unsigned having = llvm::count_if(def.results, [&](const ResultInfo &result) {
    return !result.extra && llvm::is_contained(def.expand(result.indices), index);
  });
  return having && having < def.getNumVisibleResults();
}

OpDef stage::makeBackward(const OpDef &def, llvm::ArrayRef<unsigned> gradients, llvm::ArrayRef<unsigned> operands) {
  OpDef backward;
  backward.name = def.name + ".grad";
  backward.vjpOf = &def;
  backward.indices = def.indices;
  backward.vjpGradients.assign(gradients.begin(), gradients.end());
  backward.vjpOperands.assign(operands.begin(), operands.end());
  llvm::SmallVector<unsigned, 4> savedOperands, savedResults;
  listSaved(def, savedOperands, savedResults);
  for (unsigned i : savedOperands)
    backward.operands.push_back(def.operands[i]);
  for (unsigned i : savedResults)
    backward.operands.push_back({def.results[i].name, def.results[i].indices});
  for (unsigned i : gradients)
    backward.operands.push_back({"d_" + def.results[i].name, def.results[i].indices});
  for (unsigned i : operands) {
    ResultInfo &result = backward.results.emplace_back();
    result.name = "d_" + def.operands[i].name;
    result.indices = def.operands[i].indices;
  }
  return backward;
}

/// `linear` of `linear.1`.
static std::string stripNumber(llvm::StringRef name) {
  auto [base, number] = name.rsplit('.');
  return (number.empty() || !llvm::all_of(number, llvm::isDigit) ? name : base).str();
}

const OpDef *OpDefTable::add(OpDef def) {
  std::string name = def.name, base = stripNumber(name);
  def.name = base;
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os, def);
  if (const OpDef *known = findText(os.str()))
    return known;
  unsigned last = getLastNumber(base);
  while (find(name))
    name = base + "." + std::to_string(++last);
  lastNumber[base] = last;
  def.name = std::move(name);
  analyze(def);
  const OpDef *added = owned.emplace_back(std::make_unique<OpDef>(std::move(def))).get();
  defs.push_back(added);
  byText[text] = added;
  byName[added->name] = added;
  return added;
}
