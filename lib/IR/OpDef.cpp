//===- OpDef.cpp - operators as index notation: table and printer ---------===//
#include "stage/IR/OpDef.h"
#include "stage/IR/RoutedApart.h"
#include "stage/IR/Text.h"
#include "TextWriter.h"
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
    {Formula::Function::Exp, "exp"},     {Formula::Function::Log, "log"},         {Formula::Function::Sqrt, "sqrt"},
    {Formula::Function::Rsqrt, "rsqrt"}, {Formula::Function::Erf, "erf"},         {Formula::Function::Tanh, "tanh"},
    {Formula::Function::Sigmoid, "sigmoid"}, {Formula::Function::Sin, "sin"},     {Formula::Function::Cos, "cos"},
    {Formula::Function::Abs, "abs"},     {Formula::Function::Max, "max"},         {Formula::Function::Min, "min"},
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
  llvm::SmallVector<unsigned, 4> deciding = def.getRouting() ? def.getRouting()->getRouting() : llvm::SmallVector<unsigned, 4>();
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

const OpDef *OpDefTable::getCast(unsigned numDims, DType type) { return add(makeIdentity(*this, numDims, "cast", type)); }

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

//===----------------------------------------------------------------------===//
// Printer
//===----------------------------------------------------------------------===//

namespace {
/// Binding strength, loosest first: or, and, comparison, sum, product, unary, primary.
enum Strength { LooseOr, LooseAnd, Comparison, Sum, Product, Unary, Primary };

class FormulaPrinter {
public:
  FormulaPrinter(llvm::raw_ostream &os, const OpDef &def) : os(os), def(def) {}

  void print(const Formula *f, int context = LooseOr) {
    int strength = strengthOf(f);
    bool parenthesize = strength < context;
    if (parenthesize)
      os << '(';
    printBare(f, strength);
    if (parenthesize)
      os << ')';
  }

  void printIndices(llvm::ArrayRef<unsigned> indices) {
    os << '[';
    llvm::interleaveComma(indices, os, [&](unsigned index) { os << def.indices[index].name; });
    os << ']';
  }

private:
  static int strengthOf(const Formula *f) {
    switch (f->kind) {
    case Formula::Kind::Or:
      return LooseOr;
    case Formula::Kind::And:
      return LooseAnd;
    case Formula::Kind::Less:
    case Formula::Kind::LessEqual:
    case Formula::Kind::Equal:
      return Comparison;
    case Formula::Kind::Add:
    case Formula::Kind::Sub:
      return Sum;
    case Formula::Kind::Mul:
    case Formula::Kind::Div:
      return Product;
    case Formula::Kind::Negate:
    case Formula::Kind::Not:
      return Unary;
    case Formula::Kind::Number:
      return f->number < 0 ? Unary : Primary;
    default:
      return Primary;
    }
  }

  void printBinary(const Formula *f, llvm::StringRef symbol, int left, int right) {
    print(f->children[0], left);
    os << symbol;
    print(f->children[1], right);
  }

  void printBare(const Formula *f, int strength) {
    switch (f->kind) {
    case Formula::Kind::Number:
      printNumber(os, f->number);
      return;
    case Formula::Kind::SizeOf:
      os << "size(" << f->size << ')';
      return;
    case Formula::Kind::Index:
      os << def.indices[f->index].name;
      return;
    case Formula::Kind::Element:
      os << def.operands[f->operand].name << '[';
      llvm::interleaveComma(f->children, os, [&](const Formula *subscript) { print(subscript); });
      os << ']';
      return;
    case Formula::Kind::Let:
      os << def.lets[f->operand].first;
      return;
    case Formula::Kind::Reduce:
      os << (f->isMean ? llvm::StringRef("mean") : getName(f->reduce));
      printIndices(f->indices);
      os << '(';
      print(f->children[0]);
      os << ')';
      return;
    case Formula::Kind::Call:
    case Formula::Kind::Select:
    case Formula::Kind::Random:
      os << (f->kind == Formula::Kind::Call     ? getName(f->function)
             : f->kind == Formula::Kind::Select ? llvm::StringRef("where")
                                                : llvm::StringRef("random"));
      os << '(';
      llvm::interleaveComma(f->children, os, [&](const Formula *child) { print(child); });
      os << ')';
      return;
    case Formula::Kind::Negate:
      os << '-';
      print(f->children[0], Unary);
      return;
    case Formula::Kind::Not:
      os << '!';
      print(f->children[0], Unary);
      return;
    case Formula::Kind::Add:
      return printBinary(f, " + ", strength, strength);
    case Formula::Kind::Sub:
      return printBinary(f, " - ", strength, strength + 1);
    case Formula::Kind::Mul:
      return printBinary(f, " * ", strength, strength + 1);
    case Formula::Kind::Div:
      return printBinary(f, " / ", strength, strength + 1);
    case Formula::Kind::Less:
      return printBinary(f, " < ", strength + 1, strength + 1);
    case Formula::Kind::LessEqual:
      return printBinary(f, " <= ", strength + 1, strength + 1);
    case Formula::Kind::Equal:
      return printBinary(f, " == ", strength + 1, strength + 1);
    case Formula::Kind::And:
      return printBinary(f, " && ", strength, strength + 1);
    case Formula::Kind::Or:
      return printBinary(f, " || ", strength, strength + 1);
    }
  }

  llvm::raw_ostream &os;
  const OpDef &def;
};
} // namespace

void stage::print(llvm::raw_ostream &os, const OpDef &def, const Formula &formula) { FormulaPrinter(os, def).print(&formula); }

/// True if the indices are numbered in the order in which the operands and results first name them: what a reader
/// does by itself. Else they are printed: `op f[t, s](x: [s, t])`.
static bool isFirstUseOrder(const OpDef &def) {
  llvm::SmallVector<unsigned, 8> order;
  auto visit = [&](llvm::ArrayRef<unsigned> indices) {
    for (unsigned index : indices) {
      for (unsigned member : def.indices[index].members)
        if (!llvm::is_contained(order, member))
          order.push_back(member);
      if (!llvm::is_contained(order, index))
        order.push_back(index);
    }
  };
  for (const OperandInfo &operand : def.operands)
    visit(operand.indices);
  for (const ResultInfo &result : def.results)
    visit(result.indices);
  return order.size() == def.indices.size() && llvm::is_sorted(order);
}

/// The braces of an op: everything that is declared and not derived.
static void printBody(llvm::raw_ostream &os, const OpDef &def, FormulaPrinter &formulas) {
  auto name = [&](unsigned index) { return def.indices[index].name; };
  auto list = [&](llvm::StringRef word, auto &&select) {
    llvm::SmallVector<std::string, 4> names;
    for (const IndexInfo &index : def.indices)
      if (select(index))
        names.push_back(index.name);
    if (!names.empty())
      os << "  " << word << ' ' << llvm::join(names, ", ") << ";\n";
  };
  for (auto &[letName, formula] : def.lets) {
    os << "  let " << letName << " = ";
    formulas.print(formula);
    os << ";\n";
  }
  if (!def.part.kernel.empty()) {
    os << "  " << (def.part.isAddend ? "addend " : "part ") << def.part.number << " of ";
    printName(os, def.part.kernel);
    os << ";\n";
  }
  if (def.opaque)
    os << "  opaque;\n";
  if (def.stopGradient)
    os << "  stop_gradient;\n";
  list("whole", [](const IndexInfo &index) { return index.whole; });
  list("fold", [](const IndexInfo &index) { return index.fold && !index.by; });
  for (const IndexInfo &index : def.indices)
    if (index.by)
      os << "  fold " << index.name << " by " << name(*index.by) << ";\n";
  if (def.mask) {
    os << "  mask " << getName(def.mask->kind) << '(' << name(def.mask->rows) << ", " << name(def.mask->columns);
    if (def.mask->amount)
      os << ", " << def.mask->amount;
    os << ");\n";
  }
  if (def.routing) {
    os << "  routes ";
    llvm::interleaveComma(def.routing->tokens, os, [&](unsigned index) { os << name(index); });
    os << " -> " << name(def.routing->target) << ", " << name(def.routing->slot) << " by "
       << def.operands[def.routing->operand].name << ";\n";
  }
  if (def.declaredClass)
    os << "  class = " << getName(*def.declaredClass) << ";\n";
  if (def.flops)
    os << "  flops = " << def.flops << ";\n";
  if (def.bytes)
    os << "  bytes = " << def.bytes << ";\n";
  if (def.backwardFlops)
    os << "  backward flops = " << def.backwardFlops << ";\n";
  if (def.backwardRecompute)
    os << "  recomputing = " << def.backwardRecompute << ";\n";
  if (def.declaresSaves) {
    llvm::SmallVector<std::string, 4> saved;
    for (unsigned operand : def.savedOperands)
      saved.push_back(def.operands[operand].name);
    for (unsigned result : def.savedResults)
      if (!def.results[result].extra)
        saved.push_back(def.results[result].name);
    os << "  saves " << (saved.empty() ? "nothing" : llvm::join(saved, ", ")) << ";\n";
  }
}

void stage::print(llvm::raw_ostream &os, const OpDef &def) {
  FormulaPrinter formulas(os, def);
  os << "op ";
  printName(os, def.name);
  if (!isFirstUseOrder(def)) {
    os << '[';
    llvm::interleaveComma(def.indices, os, [&](const IndexInfo &index) { os << index.name; });
    os << ']';
  }
  os << '(';
  llvm::interleaveComma(def.operands, os, [&](const OperandInfo &operand) {
    os << operand.name << ": ";
    formulas.printIndices(operand.indices);
  });
  os << ") -> (";
  llvm::interleaveComma(def.results, os, [&](const ResultInfo &result) {
    if (result.extra)
      os << "extra ";
    os << result.name << ": ";
    if (result.dtype)
      os << getName(*result.dtype);
    formulas.printIndices(result.indices);
    if (result.formula) {
      os << " = ";
      formulas.print(result.formula);
    }
  });
  os << ')';
  if (def.vjpOf) {
    auto numbers = [&](llvm::ArrayRef<unsigned> list) {
      llvm::interleaveComma(list, os, [&](unsigned i) { os << i; });
    };
    os << " vjp ";
    printName(os, def.vjpOf->name);
    os << '(';
    numbers(def.vjpGradients);
    os << ") -> (";
    numbers(def.vjpOperands);
    os << ')';
  }
  std::string body;
  llvm::raw_string_ostream bodyStream(body);
  FormulaPrinter bodyFormulas(bodyStream, def);
  printBody(bodyStream, def, bodyFormulas);
  if (bodyStream.str().empty())
    os << ";\n";
  else
    os << " {\n" << body << "}\n";
}
