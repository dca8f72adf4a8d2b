//===- IndexNames.cpp - names of an operator's indices --------------------===//
//
// Problem (hygiene, law L2): what a pack stands for is best named after the caller's
// dims, the op names its own indices, and sizes in formulas and costs mix symbols of
// the indices with sizes of the caller. All are names in one text in the IR:
//
//   op linear(x: [..., m], w: [m, n]) -> [..., n] = sum[m](x * w);       called with x: [B, N, D]
//   op linear(x: [b, n.1, m], w: [m, n]) -> (result: [b, n.1, n] = sum[m](x[b, n.1, m] * w[m, n]));
//
// Algorithm: while an op is lowered an index is a number, and its size a symbol that no
// program can write. Once everything of the op is known the indices get names: first
// those that the op declares, then the others. A name that a size of the caller's, a
// let, a word of costs or another index has gets a number: `n.1`.
//
//===----------------------------------------------------------------------===//
#include "IndexNames.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace stage;

static const char indexPrefix[] = "index@";
static const char *const costWords[] = {"area", "volume"};

Size stage::getIndexSymbol(SizeContext &sizes, unsigned index) {
  return sizes.symbol(indexPrefix + std::to_string(index));
}

std::optional<unsigned> stage::readIndexSymbol(llvm::StringRef symbol) {
  unsigned index;
  if (!symbol.consume_front(indexPrefix) || symbol.getAsInteger(10, index))
    return std::nullopt;
  return index;
}

Size stage::getCostSymbol(SizeContext &sizes, llvm::StringRef word) { return sizes.symbol((word + "@").str()); }

static bool isCostWord(llvm::StringRef name) { return llvm::is_contained(costWords, name); }

namespace {
class IndexNamer {
public:
  IndexNamer(OpDef &def, OpDefTable &defs, const SizeBinding &binding) : def(def), defs(defs), binding(binding) {
    for (llvm::StringRef word : costWords)
      taken.insert(word);
    for (auto &[name, let] : def.lets)
      taken.insert(name);
    forEachSize([&](Size size) {
      for (const std::string &symbol : collectSymbols(size))
        taken.insert(symbol);
      return size;
    });
  }

  void run(llvm::ArrayRef<bool> isOwn) {
    for (bool own : {true, false})
      for (unsigned i = 0; i < def.indices.size(); ++i)
        if (isOwn[i] == own && !def.indices[i].isCompound())
          def.indices[i].name = choose(def.indices[i].name);
    def.nameCompounds();
    forEachSize([&](Size size) { return substitute(size, [&](llvm::StringRef symbol) { return replace(symbol); }); });
  }

private:
  std::string choose(llvm::StringRef wish) {
    std::string name = wish.str();
    if (wish.empty() || !llvm::isAlpha(wish.front())) {
      for (unsigned number = 0; name.empty() || taken.contains(name); ++number)
        name = "i" + std::to_string(number);
    } else {
      for (unsigned number = 1; taken.contains(name); ++number)
        name = (wish + "." + llvm::Twine(number)).str();
    }
    taken.insert(name);
    return name;
  }

  Size replace(llvm::StringRef symbol) const {
    SizeContext &sizes = defs.getSizes();
    if (std::optional<unsigned> index = readIndexSymbol(symbol))
      return sizes.symbol(def.indices[*index].name);
    if (symbol.consume_back("@") && isCostWord(symbol))
      return sizes.symbol(symbol);
    // A size of the caller's that is called like a word of costs: its value stands in its place.
    if (isCostWord(symbol))
      if (std::optional<int64_t> value = binding.lookup(symbol))
        return sizes.constant(*value);
    return Size();
  }

  void forEachSize(llvm::function_ref<Size(Size)> f) {
    for (Size *size : {&def.flops, &def.bytes, &def.backwardFlops, &def.backwardRecompute})
      if (*size)
        *size = f(*size);
    for (auto &[name, let] : def.lets)
      let = visit(let, f);
    for (ResultInfo &result : def.results)
      if (result.formula)
        result.formula = visit(result.formula, f);
  }

  const Formula *visit(const Formula *formula, llvm::function_ref<Size(Size)> f) {
    Formula node = *formula;
    if (node.kind == Formula::Kind::SizeOf)
      node.size = f(node.size);
    bool isChanged = node.size != formula->size;
    llvm::SmallVector<const Formula *, 4> children;
    for (const Formula *child : formula->children) {
      children.push_back(visit(child, f));
      isChanged |= children.back() != child;
    }
    return isChanged ? defs.create(node, formula->indices, children) : formula;
  }

  OpDef &def;
  OpDefTable &defs;
  const SizeBinding &binding;
  llvm::StringSet<> taken;
};
} // namespace

std::string stage::describeExtent(const Extent &extent, const SizeBinding &binding) {
  std::string text = extent.dim ? extent.dim->name : extent.size.str();
  SizeValue value = evaluateCount(extent.size, binding);
  if (value && text != value.value.str())
    text += " = " + value.value.str();
  return text;
}

void stage::chooseIndexNames(OpDef &def, llvm::ArrayRef<bool> isOwn, OpDefTable &defs, const SizeBinding &binding) {
  IndexNamer(def, defs, binding).run(isOwn);
}
