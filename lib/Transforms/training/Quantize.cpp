//===- Quantize.cpp - what products read is kept in small types -----------===//
//
// Problem: products are computed, kept and sent in types of 8 or 4 bits, with a scale for each block of elements:
//
//   quantize **.linear() as f8 by (1, 128);
//
//   %t = dispatch(%x, %to)                          %t = dispatch(%x, %to)
//   %t.1 = all_to_all(%t) over ep                   %q = quantize(%t) : bf16[..] as f8 by (1, 1, 128) with f32
//   %a = linear(%t.1, %w)                    ->     %q.1 = all_to_all(%q) over ep
//   ...                                             %v = quantize(%w)
//   backward: %dw = linear.dw(%t.1, %da)            %a = linear(%q.1, %v)
//                                                   ...
//                                                   backward: %r = requantize(%q.1)    blocks along tokens
//                                                             %dw = linear.dw(%r, ...)
//
// A tensor that is quantized has its element type and says besides how it is kept; so nothing else of the graph
// changes, and bytes are counted where all are (getLocalBytes). Quantizing is exact here: a proof is about what is made
// where and moved when, not about what is rounded.
//
// Algorithm: a rule for ops holds for the products that match, and their gradients. Each operand is read as a copy:
// with blocks of n elements along the indices that this product adds up, and of m along its other ones. The first copy
// of a value is made before its first use; those in other blocks are made of that, also in backward, for which it is
// kept. What is resharded for such products alone moves as a copy: it is made in front of the reshards. Gradients of
// parameters add up what others do not, and wait until others have made theirs; what moves for them first is in the
// blocks of these. A rule for state changes how that is kept, and what its reshards bring. A rule for results makes a
// copy of each in front of the first reshard that sends it to other ranks, and all that use what this brings read the
// copy; an op that puts it into slots for products hands the copy on.
//
// Limits: what is partial is not quantized, nor a parameter that is taken apart by a view. Of ops that route, those
// whose slots hold their operand hand copies on, but no gradients, nor what they multiply by weights.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/graph/Identity.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Passes.h"
#include "training/QuantizeRules.h"
#include "training/QuantizedOperands.h"

using namespace stage;

namespace {
class Quantizer {
public:
  Quantizer(Graph &graph, DiagnosticEngine &diags) : graph(graph), diags(diags), rules(graph) {}

  void run() {
    if (!rules.choose(diags))
      return;
    for (auto &[state, rule] : rules.getStates())
      if (rule)
        keepState(*state, *rule);
    collectProducts();
    for (auto &[value, rule] : rules.getResults())
      if (rule)
        quantizeMoves(*value, *rule);
    for (bool ofParameters : {false, true})
      for (const Product &product : products)
        if (product.isOfParameter == ofParameters)
          quantizeOperands(product);
    for (auto &[state, rule] : rules.getStates())
      if (rule && rule->dequantizes)
        dequantize(*state);
    for (Op *move : llvm::reverse(moves))
      if (move->getResult()->getUses().empty())
        move->getBlock()->erase(move);
  }

private:
  using Blocks = QuantizedBlocks;
  struct Product {
    Op *op;
    const Rule *rule;
    llvm::SmallVector<unsigned, 4> operands;
    bool isOfParameter; ///< The gradient of one.
  };

  void collectProducts() {
    unsigned number = 0;
    graph.walk([&](Op &op) {
      numbers[&op] = ++number;
      const Rule *rule = rules.findRule(op);
      if (!rule)
        return;
      products.push_back({&op, rule, listQuantizedOperands(op), isAccumulated(op)});
      for (unsigned operand : products.back().operands)
        readsCopy.insert({&op, operand});
    });
  }

  static bool isAccumulated(const Op &op) {
    return llvm::any_of(op.getResults(), [](auto &result) {
      return llvm::any_of(result->getUses(), [](auto use) {
        bool goesOn = isReshard(use.first->kind) || (use.first->kind == OpKind::Compute && use.first->def->isSum);
        return use.first->kind == OpKind::Accumulate || (goesOn && isAccumulated(*use.first));
      });
    });
  }

  //===--- Blocks ---------------------------------------------------------===//

  using Kept = std::shared_ptr<const Quantization>;
  static std::shared_ptr<const Quantization> makeQuantization(const Rule &rule, Blocks blocks) {
    return std::make_shared<const Quantization>(Quantization{*rule.type, rule.scales, std::move(blocks)});
  }

  /// What is cut or put together along a dim must not cut blocks: no rank could scale the rest of one. `named` is what
  /// the value is called.
  void checkBlocks(const Op &move, const Value &named, const Rule &rule) {
    const Value &from = *move.getOperand(0), &to = *move.getResult();
    llvm::ArrayRef<uint32_t> blocks = from.type.quantization->blocks;
    for (const Value *value : {&from, &to}) {
      if (blocks.empty() || !value->sharding.flat.empty() || !from.sharding.flat.empty())
        return;
      auto local = getLocalSizes(graph.mesh, value->type.shape, value->sharding.dims, ~AxisSet(0));
      for (unsigned d = 0; d < blocks.size(); ++d) {
        if (from.sharding.dims[d] == to.sharding.dims[d] || value->sharding.dims[d].empty())
          continue;
        unsigned end = d;
        Size piece = local[d];
        while (!blocks[end])
          piece = piece * local[++end];
        if (llvm::any_of(value->sharding.dims[d], [](const PlacedAxis &axis) { return axis.isMirrored(); }))
          piece = piece / 2;
        SizeValue count = evaluate(piece, graph.binding);
        if (blocks[end] == 1 || !count || (count.value.isInteger() && count.value.num % blocks[end] == 0))
          continue;
        if (reported.insert(&rule).second)
          diags.report(rule.loc, diag::BlocksCut)
              << describe(named) << count.value.str() << describeDims(from, d, end) << int64_t(blocks[end]);
        return;
      }
    }
  }

  static std::string describeDims(const Value &value, unsigned begin, unsigned end) {
    std::string text;
    for (unsigned d = begin; d <= end; ++d) {
      const Extent &extent = value.type.shape[d];
      text += (text.empty() ? "" : "*") + (extent.dim ? extent.dim->name : extent.size.str());
    }
    return text;
  }

  //===--- State ----------------------------------------------------------===//

  void keepState(Value &state, const Rule &rule) {
    Blocks blocks;
    if (auto reader = QuantizeRules::findReader(state); reader && state.getOp()->kind != OpKind::Cache) {
      blocks = getBlocks(rule, *reader->first, reader->second, /*isTurned=*/false);
    } else {
      blocks = getLastBlocks(rule, state.type);
    }
    auto quantization = makeQuantization(rule, blocks);
    llvm::SmallVector<Value *, 4> forms = {&state};
    while (!forms.empty()) {
      Value *form = forms.pop_back_val();
      form->type.quantization = quantization;
      for (auto [user, operand] : form->getUses())
        if (isReshard(user->kind) || isCacheCopy(user->kind) || (user->kind == OpKind::Append && operand == 0))
          forms.push_back(user->getResult());
      if (form->getOp() != state.getOp() && QuantizeRules::isSent(*form->getOp()))
        checkBlocks(*form->getOp(), state, rule);
    }
  }

  /// Before the products of each block.
  void dequantize(Value &state) {
    llvm::SmallVector<Value *, 4> forms = {&state};
    while (!forms.empty()) {
      Value *form = forms.pop_back_val();
      llvm::DenseMap<Block *, Value *> plain;
      llvm::SmallVector<std::pair<Op *, unsigned>, 4> uses(form->getUses().begin(), form->getUses().end());
      for (auto [user, operand] : uses) {
        if (isReshard(user->kind))
          forms.push_back(user->getResult());
        if (!isQuantizableProduct(*user))
          continue;
        Value *&copy = plain[user->getBlock()];
        if (!copy)
          copy = make("dequantize", *form, nullptr, findPlace(*form, *user->getBlock()), *user);
        user->setOperand(operand, copy);
      }
    }
  }

  //===--- Results --------------------------------------------------------===//

  void quantizeMoves(Value &value, const Rule &rule) {
    llvm::SmallVector<std::pair<Op *, unsigned>, 4> uses(value.getUses().begin(), value.getUses().end());
    for (auto [user, operand] : uses) {
      if (!isReshard(user->kind))
        continue;
      if (!QuantizeRules::isSent(*user) || value.sharding.partial) {
        quantizeMoves(*user->getResult(), rule);
        continue;
      }
      auto how = makeQuantization(rule, getLastBlocks(rule, value.type));
      user->setOperand(operand, getCopy(value, how, how, *user, rule));
      handOn(*user->getResult(), how, value, rule);
    }
  }

  /// `named` is what the copy is of.
  void handOn(Value &copy, const Kept &how, const Value &named, const Rule &rule) {
    copy.type.quantization = how;
    copies[&copy].push_back(&copy);
    if (QuantizeRules::isSent(*copy.getOp()))
      checkBlocks(*copy.getOp(), named, rule);
    for (auto [user, operand] : copy.getUses()) {
      if (isReshard(user->kind))
        handOn(*user->getResult(), how, named, rule);
      else if (std::optional<Blocks> blocks = getBlocksOfSlots(*user, operand, *how))
        handOn(*user->getResult(), makeQuantization(rule, *blocks), named, rule);
    }
  }

  /// The blocks of what is in slots, if an op puts its operand there for products: a slot has what it gets of one
  /// token.
  std::optional<Blocks> getBlocksOfSlots(const Op &op, unsigned operand, const Quantization &how) const {
    if (op.kind != OpKind::Compute || findInSlots(*op.def) != operand || !hasOnlyCopies(*op.getResult()))
      return std::nullopt;
    Blocks blocks;
    if (how.blocks.empty())
      return blocks;
    llvm::ArrayRef<unsigned> from = op.def->operands[operand].indices, to = op.def->results.front().indices;
    blocks.assign(to.size(), 1);
    for (unsigned d = 0; d < from.size(); ++d) {
      const unsigned *place = llvm::find(to, from[d]);
      if (place != to.end())
        blocks[place - to.begin()] = how.blocks[d];
      else if (how.blocks[d] != 1)
        return std::nullopt;
    }
    return blocks;
  }

  //===--- Copies ---------------------------------------------------------===//

  void quantizeOperands(const Product &product) {
    for (unsigned i : product.operands) {
      Value *value = product.op->getOperand(i);
      if ((value->type.quantization && !copies.count(value)) || value->sharding.partial || value->sharding.getTwice())
        continue;
      auto wanted = makeQuantization(*product.rule, getBlocks(*product.rule, *product.op, i, /*isTurned=*/false));
      auto moved = makeQuantization(*product.rule, getBlocks(*product.rule, *product.op, i, product.isOfParameter));
      product.op->setOperand(i, getCopy(*value, wanted, moved, *product.op, *product.rule));
    }
  }

  Value *getCopy(Value &value, const Kept &wanted, const Kept &moved, Op &user, const Rule &rule) {
    Value *first = nullptr;
    for (Value *copy : copies[&value]) {
      if (!isVisible(*copy, value, user))
        continue;
      if (*copy->type.quantization == *wanted)
        return copy;
      if (copy->type.quantization->type == wanted->type && !first)
        first = copy;
    }
    if (!first && value.getOp() && QuantizeRules::isSent(*value.getOp()) && hasOnlyCopies(value) &&
        !movesAsItIs(value)) {
      first = move(value, moved, rule);
      if (*first->type.quantization == *wanted)
        return first;
    }
    Block &block = isSamePhase(value, user) ? *value.getBlock() : *user.getBlock();
    Value *made =
        make(first ? "requantize" : "quantize", first ? *first : value, wanted, findPlace(value, block), user);
    copies[&value].push_back(made);
    return made;
  }

  /// A rule says of its source `as none`.
  bool movesAsItIs(Value &value) {
    auto known = rules.getResults().find(getMoved(value));
    return known != rules.getResults().end() && !known->second;
  }

  /// A copy of what a reshard brings: a reshard of a copy.
  Value *move(Value &value, const Kept &moved, const Rule &rule) {
    Op &reshard = *value.getOp();
    Value &from = *getMoved(value), *copy = nullptr;
    for (Value *known : copies[&from])
      if (!copy && known->type.quantization->type == moved->type && isVisible(*known, from, reshard))
        copy = known;
    if (!copy)
      copy = getCopy(from, moved, moved, reshard, rule);
    auto owner = std::make_unique<Op>(static_cast<const OpAttributes &>(reshard));
    owner->addOperand(copy);
    TensorType type = value.type;
    type.quantization = copy->type.quantization;
    Value *result = owner->addResult(type);
    result->sharding = value.sharding;
    result->loc = value.loc;
    checkBlocks(*value.getBlock()->insertAfter(&reshard, std::move(owner)), from, rule);
    moves.push_back(&reshard);
    copies[&value].push_back(result);
    return result;
  }

  /// All that reads it, or what it becomes by reshards, are products that read a copy.
  bool hasOnlyCopies(const Value &value) const {
    return llvm::all_of(value.getUses(), [&](auto use) {
      return readsCopy.contains(use) || !numbers.count(use.first) ||
             (QuantizeRules::isSent(*use.first) && hasOnlyCopies(*use.first->getResult()));
    });
  }

  static bool isSamePhase(const Value &value, const Op &user) {
    return &value.getBlock()->getTop() == &user.getBlock()->getTop();
  }

  /// Of state and inputs, which are there in all phases, each phase makes its own copies.
  static bool isVisible(const Value &copy, const Value &value, const Op &user) {
    for (const Block *block = user.getBlock(); block;
         block = block->getParent() ? block->getParent()->getBlock() : nullptr)
      if (block == copy.getBlock())
        return true;
    const Op *maker = value.getOp();
    bool isSource = maker && (isState(maker->kind) || maker->kind == OpKind::Input);
    return !isSource && copy.getBlock() == value.getBlock() && !isSamePhase(value, user);
  }

  /// The first op of a block that uses a value, or has one that does inside. There is one.
  Op &findPlace(const Value &value, const Block &block) const {
    Op *first = nullptr;
    for (auto [user, operand] : value.getUses()) {
      Op *here = user;
      while (here && here->getBlock() != &block)
        here = here->getBlock()->getParent();
      if (here && numbers.count(here) && (!first || numbers.lookup(here) < numbers.lookup(first)))
        first = here;
    }
    return *first;
  }

  Value *make(llvm::StringRef name, Value &from, const Kept &how, Op &place, const Op &user) {
    auto owner = std::make_unique<Op>(OpKind::Compute, user.loc);
    owner->def = graph.defs.getCopy(from.type.getNumDims(), name);
    owner->scope = user.scope;
    owner->isRecomputed = user.isRecomputed || place.getBlock()->getPhase() == PhaseKind::Recompute;
    owner->extents.assign(from.type.shape.begin(), from.type.shape.end());
    owner->indexAxes.assign(from.sharding.dims.begin(), from.sharding.dims.end());
    owner->addOperand(&from);
    TensorType type = from.type;
    type.quantization = how;
    Value *result = owner->addResult(type);
    result->sharding = from.sharding;
    result->loc = from.loc;
    place.getBlock()->insertBefore(&place, std::move(owner));
    return result;
  }

  Graph &graph;
  DiagnosticEngine &diags;
  QuantizeRules rules;
  llvm::DenseSet<const Rule *> reported; ///< For blocks that are cut.
  std::vector<Product> products;
  llvm::DenseSet<std::pair<Op *, unsigned>> readsCopy; ///< Operands of products.
  llvm::DenseMap<const Op *, unsigned> numbers;        ///< In the program, of ops before this pass.
  llvm::DenseMap<const Value *, llvm::SmallVector<Value *, 2>> copies;
  std::vector<Op *> moves; ///< Reshards of which there is one of a copy.
};
} // namespace

void stage::quantize(Graph &graph, DiagnosticEngine &diags) {
  if (llvm::any_of(graph.rules, [](const Rule &rule) { return rule.kind == RuleKind::Quantize; }))
    Quantizer(graph, diags).run();
}
