//===- SplitAxes.cpp - axes of which several dims have a part --------------===//
//
// Problem: `shard (KV, G) over tp` gives tensor ranks to key/value heads and, where these
// are too few, to the query heads of a group. With 2 heads and tp = 8 neither takes all
// of tp: four ranks share a head, and each has a part of its queries.
//
//   mesh (tp = 8), KV = 2     ->     mesh (tp.0 = 2, tp.1 = 4), axis tp = (tp.0, tp.1)
//
// Algorithm: of each axis of such a rule the first dim takes the largest part that divides
// what is left of it; where that is some of the axis, and not all, the axis becomes two,
// the part that is taken outside, so that ranks that share a head are neighbours. Its name
// stands for both from then on.
//
// So it is for a draft model, whose parameters may cut what is left.
//
// Limits: the first dim must be a parameter of the job's model, or of the draft model, whose value is known before
// there is a graph; a rule with an `order` deals out blocks of its own and is left as it is.
//
//===----------------------------------------------------------------------===//
#include "BindStrategy.h"
#include "llvm/Support/MathExtras.h"

using namespace stage;
using namespace stage::sema;

/// Makes an axis of the mesh two, `size` coordinates of it outside.
static void split(BoundStrategy &strategy, StringRef name, int64_t size, SizeContext &sizes) {
  auto axis = llvm::find_if(strategy.mesh, [&](const BoundAxis &known) { return known.name.name == name; });
  const BoundAxis whole = *axis;
  auto makePiece = [&](char number, int64_t pieceSize) {
    std::string text = (whole.name.name + "." + llvm::Twine(number)).str(); // the context keeps it
    return BoundAxis{{sizes.symbol(text).getSymbol(), whole.name.range}, pieceSize, whole.networkDim, whole.origin};
  };
  BoundAxis outer = makePiece('0', size), inner = makePiece('1', whole.size / size);
  *axis = outer;
  strategy.mesh.insert(std::next(axis), inner);
  for (BoundAlias &alias : strategy.aliases)
    if (auto place = llvm::find(alias.axes, whole.name.name); place != alias.axes.end()) {
      *place = outer.name.name;
      alias.axes.insert(std::next(place), inner.name.name);
    }
  strategy.aliases.push_back({whole.name, {outer.name.name, inner.name.name}});
}

void stage::sema::splitSharedAxes(BoundStrategy &strategy, ArrayRef<NamedValue> modelArgs, const SizeBinding &binding,
                                  SizeContext &sizes) {
  auto find = [&](StringRef name) -> std::optional<int64_t> {
    auto arg = llvm::find_if(modelArgs, [&](const NamedValue &value) { return value.name.name == name; });
    if (arg == modelArgs.end() || !arg->value.isNumber())
      return std::nullopt;
    Size size = arg->value.getSize(sizes);
    SizeValue value = size ? evaluateCount(size, binding) : SizeValue();
    return size && value && value.value.num > 0 ? std::optional<int64_t>(value.value.num) : std::nullopt;
  };
  for (const BoundRule &rule : strategy.rules) {
    auto *shard = llvm::dyn_cast<ast::ShardStmt>(rule.stmt);
    if (!shard)
      continue;
    for (const ast::ShardStmt::Item &item : shard->items) {
      std::optional<int64_t> left = item.dims.size() > 1 && !item.order ? find(item.dims.front().name) : std::nullopt;
      if (!left)
        continue;
      for (StringRef name : strategy.expand(item.axes, rule.env)) {
        int64_t size = strategy.findAxis(name)->size;
        int64_t taken = llvm::GreatestCommonDivisor64(*left, size);
        if (taken > 1 && taken < size && strategy.mesh.size() < maxAxes)
          split(strategy, name, taken, sizes);
        *left /= taken;
      }
    }
  }
}
