//===- LastPositions.cpp - logits of the last position only ---------------===//
//
// Problem: of a prompt the logits of the last position are wanted; those of all others
// would be a product with the whole vocabulary each, for nothing.
//
//   %y = repeat layers ...  : [B, S, D]          %y = repeat layers ... : [B, S, D]
//   %n = rms_norm(%y, %g)   : [B, S, D]          %l = last(%y)          : [B, sampled, D]
//   %z = linear(%n, %head)  : [B, S, V]          %n = rms_norm(%l, %g)  : [B, sampled, D]
//   return %z                                    %z = linear(%n, %head) : [B, sampled, V]
//
// Algorithm: back from what is returned, through ops that make a position of their result
// from the same position of their operands and whose result nothing else uses. Where that ends the last
// position is taken, as a lookup takes a row of its table: by a sum over all positions, of which one is no zero.
//
//   last(x: [b, s, d]) -> [b, t, d] = sum[s](where(s == t, x[b, s, d], 0))
//
// So ranks that share positions each take it from what they have, one of them finds it, and what they add up is one
// position: nothing else of the sequence moves.
//
//===----------------------------------------------------------------------===//
#include "ModuleLowering.h"
#include "llvm/ADT/DenseMap.h"

using namespace stage;

namespace {
class LastPositions {
public:
  LastPositions(Block &block, const Dim *sequence, llvm::StringRef name)
      : block(block), graph(block.getGraph()), sequence(sequence) {
    Size before = sequence->origin ? sequence->origin : graph.sizes.zero();
    if (sequence->isPacked) { // units say of how many sequences the last position is wanted, if of any
      sampled = graph.addDim(name, graph.sizes.symbol(name), sequence->loc);
      sampled->isOptional = true;
      return;
    }
    sampled = graph.addDim(name, graph.sizes.one(), sequence->loc);
    sampled->origin = before + sequence->size - 1;
  }

  void run() {
    Op *end = block.getTerminator();
    for (unsigned i = 0; i < end->getNumOperands(); ++i)
      end->setOperand(i, take(end->getOperand(i)));
  }

private:
  std::optional<unsigned> findDim(const TensorType &type) const {
    for (unsigned d = 0; d < type.getNumDims(); ++d)
      if (type.shape[d].dim == sequence)
        return d;
    return std::nullopt;
  }

  /// The same value with the last position only.
  Value *take(Value *value) {
    std::optional<unsigned> dim = findDim(value->type);
    if (!dim)
      return value;
    auto [it, isNew] = taken.try_emplace(value, nullptr);
    if (!isNew)
      return it->second;
    Value *result = shorten(*value, *dim) ? value : addLast(*value, *dim);
    return taken[value] = result;
  }

  /// Has the op that makes a value make its last position only, if it can.
  bool shorten(Value &value, unsigned dim) {
    Op *op = value.getOp();
    if (!op || op->kind != OpKind::Compute || op->getBlock()->getParent() || op->getNumResults() != 1 ||
        value.getUses().size() != 1 || op->def->routing)
      return false;
    const OpDef &def = *op->def;
    unsigned index = def.results[0].indices[dim];
    if (def.indices[index].isCompound() || !def.shardable[index] || def.reduced[index] ||
        !areSubscriptsPlain(def, index))
      return false;
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (llvm::is_contained(def.operands[i].indices, index))
        op->setOperand(i, take(op->getOperand(i)));
    op->extents[index] = {sampled, sampled->size};
    value.type.shape[dim] = op->extents[index];
    return true;
  }

  /// Where an operand has the index, it is read at the position of the result.
  static bool areSubscriptsPlain(const OpDef &def, unsigned index) {
    bool arePlain = true;
    auto visit = [&](auto &self, const Formula *f) -> void {
      for (unsigned k = 0; f->kind == Formula::Kind::Element && k < f->children.size(); ++k)
        if (def.operands[f->operand].indices[k] == index)
          arePlain &= f->children[k]->kind == Formula::Kind::Index && f->children[k]->index == index;
      for (const Formula *child : f->children)
        self(self, child);
    };
    for (const ResultInfo &result : def.results)
      if (result.formula)
        visit(visit, result.formula);
    for (const auto &let : def.lets)
      visit(visit, let.second);
    return arePlain;
  }

  Value *addLast(Value &value, unsigned dim) {
    OpDef def;
    def.name = "last";
    def.loc = value.loc;
    def.bytes = def.flops = graph.sizes.zero(); // a view
    OperandInfo operand{"x", {}};
    ResultInfo result;
    result.name = "result";
    auto op = std::make_unique<Op>(OpKind::Compute, value.loc);
    llvm::SmallVector<const Formula *, 4> subscripts;
    TensorType type = value.type;
    type.shape[dim] = {sampled, sampled->size};
    const Formula *position = nullptr; // that is taken
    auto getIndex = [&](unsigned index) {
      Formula node{};
      node.kind = Formula::Kind::Index;
      node.index = index;
      return graph.defs.create(node, {}, {});
    };
    auto addIndex = [&](const Extent &extent) {
      def.indices.push_back({"i" + std::to_string(def.indices.size())});
      op->extents.push_back(extent);
      return unsigned(def.indices.size() - 1);
    };
    for (unsigned d = 0; d < type.getNumDims(); ++d) {
      operand.indices.push_back(addIndex(value.type.shape[d]));
      result.indices.push_back(d == dim ? addIndex(type.shape[d]) : operand.indices.back());
      subscripts.push_back(getIndex(operand.indices.back()));
      if (d == dim)
        position = getIndex(result.indices.back());
    }
    Formula element{}, isWanted{}, nothing{}, chosen{}, sum{};
    element.kind = Formula::Kind::Element;
    isWanted.kind = Formula::Kind::Equal;
    const Formula *wanted = graph.defs.create(isWanted, {}, {subscripts[dim], position});
    chosen.kind = Formula::Kind::Select;
    const Formula *summand = graph.defs.create(
        chosen, {}, {wanted, graph.defs.create(element, {}, subscripts), graph.defs.create(nothing, {}, {})});
    sum.kind = Formula::Kind::Reduce;
    result.formula = graph.defs.create(sum, {operand.indices[dim]}, {summand});
    def.operands.push_back(std::move(operand));
    def.results.push_back(std::move(result));
    op->def = graph.defs.add(std::move(def));
    op->addOperand(&value);
    Value *made = op->addResult(type, value.path.empty() ? "" : value.path + ".last");
    if (value.getOp())
      block.insertAfter(value.getOp(), std::move(op));
    else
      block.insertBefore(block.getTerminator(), std::move(op));
    return made;
  }

  Block &block;
  Graph &graph;
  const Dim *sequence;
  Dim *sampled;
  llvm::DenseMap<Value *, Value *> taken;
};
} // namespace

void stage::takeLastPositions(Block &block, const Dim *sequence, llvm::StringRef name) {
  LastPositions(block, sequence, name).run();
}
