//===- Differentiate.cpp - backward and step from forward (law L3) --------===//
//
// Problem: the program says forward only. Backward must do what the field does: no
// gradient for operands that need none, one gradient GEMM per operand of a GEMM,
// fused backwards for fused ops, gradients of several uses summed once.
//
//   forward                                  backward
//   %y = linear(%x, %w)                      %dx = linear.dx(%dy, %w)
//   %z = rms_norm(%y, %g)                    %dw = linear.dw(%x, %dy); accumulate %dw into %w
//                                            %dy, %dg = rms_norm.grad(%y, %dz)
//
// Algorithm: reverse walk. The gradient of a product is the same product with the
// result's gradient in the operand's place; of a sum, and of what computes nothing, the
// result's gradient, summed over the indices the operand lacks; of anything else, one backward invocation over
// the values the op saves. Gradients are made of values that depend on a parameter and
// on which the loss depends, both found to a fixpoint: a value may take many iterations
// to pass through what a repeat carries. A repeat becomes a reversed repeat that carries
// the gradients of its carried values and of the values from outside that it uses. Every
// contribution to a parameter is accumulated over microbatches, and over the iterations
// of a repeat if the parameter is declared outside of it; the step block updates each
// parameter from its accumulators.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/algebra/FormulaPoint.h"
#include "stage/IR/graph/Graph.h"
#include "stage/IR/graph/Identity.h"
#include "stage/IR/graph/Paths.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/Suggestions.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace stage;

namespace {
class Differentiator {
public:
  Differentiator(Graph &graph, DiagnosticEngine &diags) : graph(graph), diags(diags) {}

  void run() {
    findActive();
    Op *result = graph.getForward().getTerminator();
    if (!result || result->getNumOperands() == 0 || !active.contains(result->getOperand(0))) {
      diags.report(result ? result->loc : graph.loc, diag::LossWithoutParameters);
      return;
    }
    Value *loss = result->getOperand(0);
    if (loss->type.getNumDims() != 0) {
      // Of ids and scores the scores have one dim more: what has two may be a loss of each token.
      bool isPerToken = loss->type.getNumDims() < 3;
      DiagnosticBuilder error = diags.report(result->loc, diag::LossNotScalar) << int64_t(loss->type.getNumDims());
      if (isPerToken)
        error.note(SMLoc(), diag::ReturnMean);
      else
        error.note(SMLoc(), diag::ReturnLoss);
      return;
    }
    auto seed = std::make_unique<Op>(OpKind::Constant, result->loc);
    Value *one = seed->addResult(loss->type, "loss.grad");
    graph.getPhase(PhaseKind::Backward).append(std::move(seed));
    setGradientSeed(graph);
    findReached(loss);
    contribute(loss, one);
    visitBlock(graph.getForward(), graph.getPhase(PhaseKind::Backward));
    buildStep();
  }

private:
  /// Marks the values that depend on a parameter. Each is looked at once, with its uses.
  void findActive() {
    llvm::SmallVector<Value *, 64> worklist;
    auto mark = [&](Value *value) {
      if (active.insert(value).second)
        worklist.push_back(value);
    };
    auto markArguments = [&](Op &loop, unsigned number) { // any case may come next
      for (auto &body : loop.bodies)
        mark(body->getArgument(number));
    };
    Graph::walk(graph.getForward(), [&](Op &op) {
      if (op.kind == OpKind::Param)
        mark(op.getResult());
      if (op.kind == OpKind::Param || (computesNothing(op) && isParam.contains(op.getOperand(0))))
        isParam.insert(op.getResult());
    });
    while (!worklist.empty()) {
      for (auto [user, operand] : worklist.pop_back_val()->getUses()) {
        if (user->kind == OpKind::Repeat) {
          markArguments(*user, operand);
        } else if (user->kind == OpKind::Yield) {
          Op *loop = user->getBlock()->getParent();
          markArguments(*loop, operand);
          mark(loop->getResult(operand));
        } else if (user->kind == OpKind::Compute && handsOn(*user, operand)) {
          for (auto &result : user->getResults())
            if (isFloat(result->type.dtype) && !user->def->results[result->getNumber()].extra)
              mark(result.get());
        }
      }
    }
  }

  /// True if the derivative of an op in an operand is not zero.
  static bool handsOn(const Op &op, unsigned operand) {
    return !op.def->stopGradient && !op.def->dataDependent[operand];
  }

  /// Marks the values on which the loss depends.
  void findReached(Value *loss) {
    llvm::SmallVector<Value *, 64> worklist;
    auto mark = [&](Value *value) {
      if (reached.insert(value).second)
        worklist.push_back(value);
    };
    auto markYielded = [&](Op &loop, unsigned number) {
      for (auto &body : loop.bodies)
        mark(body->getTerminator()->getOperand(number));
    };
    mark(loss);
    while (!worklist.empty()) {
      Value *value = worklist.pop_back_val();
      if (!isFloat(value->type.dtype))
        continue; // ids and masks hand no gradient back
      unsigned number = value->getNumber();
      if (Op *op = value->getOp()) {
        if (op->kind == OpKind::Repeat)
          markYielded(*op, number);
        for (unsigned i = 0; op->kind == OpKind::Compute && i < op->getNumOperands(); ++i)
          if (handsOn(*op, i))
            mark(op->getOperand(i));
      } else if (Op *loop = value->getBlock()->getParent()) {
        mark(loop->getOperand(number));
        markYielded(*loop, number);
      }
    }
  }

  /// True for values that get a gradient.
  bool isTrained(const Value *value) const { return active.contains(value) && reached.contains(value); }

  /// Notes an addend of a value's gradient.
  void contribute(Value *value, Value *gradient) {
    gradients[value].push_back(gradient);
    if (body && value->getBlock() != body)
      captured.insert(value);
  }

  void visitBlock(Block &forward, Block &backward) {
    llvm::SmallVector<Op *, 32> ops;
    for (auto &op : forward)
      ops.push_back(op.get());
    for (Op *op : llvm::reverse(ops)) {
      if (op->kind == OpKind::Compute)
        visitCompute(*op, backward);
      else if (op->kind == OpKind::Repeat)
        visitRepeat(*op, backward);
      else if (op->kind == OpKind::Param)
        accumulate(*op, std::exchange(gradients[op->getResult()], {}), backward);
    }
  }

  /// The sum of what the uses of a value contributed; null if nothing did.
  Value *takeGradient(Value *value, Block &backward) {
    auto it = gradients.find(value);
    if (it == gradients.end())
      return nullptr;
    llvm::SmallVector<Value *, 4> addends = std::move(it->second);
    it->second.clear(); // the entry stays: to erase it would move all later ones
    if (addends.empty())
      return nullptr;
    if (addends.size() == 1) {
      // A sum hands its own gradient on: the value keeps the primal it was made for.
      if (!addends.front()->primal)
        addends.front()->primal = value;
      return addends.front();
    }
    auto op = std::make_unique<Op>(OpKind::Compute, value->loc);
    op->def = graph.defs.getSum(value->type.getNumDims(), addends.size());
    op->extents.assign(value->type.shape.begin(), value->type.shape.end());
    if (Op *producer = value->getOp())
      op->scope = producer->scope;
    for (Value *addend : addends)
      op->addOperand(addend);
    Value *sum = op->addResult(value->type, gradientPath(value));
    sum->primal = value;
    backward.append(std::move(op));
    return sum;
  }

  static std::string gradientPath(const Value *value) {
    return value->path.empty() ? "" : value->path + gradientSuffix.str();
  }

  bool needsGradient(const Op &op, unsigned operand) const {
    return handsOn(op, operand) && active.contains(op.getOperand(operand)) &&
           isFloat(op.getOperand(operand)->type.dtype);
  }

  /// Type of the gradient of a value. What is added to a parameter's buffer has the precision's gradient type, unless
  /// it is a tensor of its own.
  TensorType gradientType(const Value *value) const {
    TensorType type = value->type;
    if (isParam.contains(value) && !graph.precision.separateAccumulation)
      type.dtype = graph.precision.gradient;
    return type;
  }

  void visitCompute(Op &op, Block &backward) {
    if (computesNothing(op) && needsGradient(op, 0) && isParam.contains(op.getResult())) {
      // Each contribution to a parameter accumulates by itself, under whatever name it was used.
      for (Value *gradient : std::exchange(gradients[op.getResult()], {}))
        contribute(op.getOperand(0), gradient);
      return;
    }
    llvm::SmallVector<Value *, 2> resultGradients;
    bool any = false;
    for (auto &result : op.getResults()) {
      Value *gradient = takeGradient(result.get(), backward);
      resultGradients.push_back(gradient);
      any |= gradient != nullptr;
    }
    bool wanted = false;
    for (unsigned i = 0; i < op.getNumOperands(); ++i)
      wanted |= needsGradient(op, i);
    if (!any || !wanted)
      return;
    if (!checkSaved(op, resultGradients))
      return;
    // Costs that an op declares for its backward are those of one invocation, which reads what the op saves.
    bool addsUp = op.def->isSum || computesNothing(op);
    if (addsUp || (op.def->isProduct && !op.def->backwardFlops && savesFactors(op))) {
      for (unsigned i = 0; i < op.getNumOperands(); ++i)
        if (needsGradient(op, i))
          contribute(op.getOperand(i), addsUp ? differentiateSum(op, i, resultGradients[0], backward)
                                              : differentiateProduct(op, i, resultGradients[0], backward));
      return;
    }
    differentiateFused(op, resultGradients, backward);
  }

  /// Backward is given what the op saves: it cannot need more.
  bool checkSaved(const Op &op, llvm::ArrayRef<Value *> resultGradients) {
    const OpDef &def = *op.def;
    llvm::SmallVector<unsigned, 4> given, wanted;
    for (unsigned i = 0; i < resultGradients.size(); ++i)
      if (resultGradients[i])
        given.push_back(i);
    for (unsigned i = 0; i < op.getNumOperands(); ++i)
      if (needsGradient(op, i))
        wanted.push_back(i);
    std::optional<unsigned> unsaved = findUnsavedOperand(def, given, wanted);
    if (!unsaved)
      return true;
    if (reported.insert(op.def).second) {
      DiagnosticBuilder message = diags.report(def.loc.isValid() ? def.loc : op.loc, diag::SavesTooLittle)
                                  << def.name << def.operands[*unsaved].name;
      if (def.loc.isValid())
        message.note(op.loc, diag::ValueUsedHere);
    }
    return false;
  }

  /// Whether a product saves all the operands that its gradients read.
  bool savesFactors(const Op &op) const {
    const OpDef &def = *op.def;
    if (!def.declaresSaves)
      return true;
    llvm::SmallVector<unsigned, 4> wanted;
    for (unsigned i = 0; i < op.getNumOperands(); ++i)
      if (needsGradient(op, i))
        wanted.push_back(i);
    llvm::SmallBitVector needs = findGradientNeeds(def, /*given=*/0u, wanted);
    for (unsigned operand : def.savedOperands)
      needs.reset(operand);
    return needs.none();
  }

  std::unique_ptr<Op> createLike(const Op &op, const OpDef *def) {
    auto result = std::make_unique<Op>(OpKind::Compute, op.loc);
    result->def = def;
    result->origin = &op;
    result->extents = op.extents;
    result->scope = op.scope;
    return result;
  }

  Value *differentiateSum(const Op &op, unsigned operand, Value *gradient, Block &backward) {
    const OpDef &def = *op.def;
    const ResultInfo &result = def.results.front();
    TensorType type = gradientType(op.getOperand(operand));
    if (def.operands[operand].indices == result.indices && gradient->type.dtype == type.dtype)
      return gradient;
    OpDef d;
    d.name = def.name + ".d" + def.operands[operand].name;
    d.indices = def.indices;
    d.operands.push_back({"dy", result.indices});
    return appendGradient(op, operand, d, graph.defs.element(0, result.indices), {gradient}, backward);
  }

  Value *differentiateProduct(const Op &op, unsigned operand, Value *gradient, Block &backward) {
    const OpDef &def = *op.def;
    const ResultInfo &result = def.results.front();
    OpDef d;
    d.name = def.name + ".d" + def.operands[operand].name;
    d.indices = def.indices;
    d.operands = def.operands;
    d.operands[operand] = {"dy", result.indices};
    const Formula *body = result.formula;
    llvm::ArrayRef<unsigned> mean;
    if (body->kind == Formula::Kind::Reduce) {
      if (body->isMean)
        mean = body->indices;
      body = body->children[0];
    }
    body = replaceElement(body, operand, graph.defs.element(operand, result.indices));
    if (!mean.empty()) {
      Size count = graph.sizes.one();
      for (unsigned index : mean)
        count = count * graph.sizes.symbol(def.indices[index].name);
      Formula divisor{};
      divisor.kind = Formula::Kind::SizeOf;
      divisor.size = count;
      body = graph.defs.binary(Formula::Kind::Div, body, graph.defs.create(divisor, {}, {}));
    }
    llvm::SmallVector<Value *, 4> operands(op.getOperands().begin(), op.getOperands().end());
    operands[operand] = gradient;
    return appendGradient(op, operand, d, body, operands, backward);
  }

  /// Appends an op that sums `body` over every index that the operand lacks.
  Value *appendGradient(const Op &op, unsigned operand, OpDef &d, const Formula *body, llvm::ArrayRef<Value *> operands,
                        Block &backward) {
    llvm::SmallVector<unsigned, 4> kept = d.expand(op.def->operands[operand].indices), summed;
    for (const OperandInfo &info : d.operands)
      for (unsigned index : d.expand(info.indices))
        if (!llvm::is_contained(kept, index) && !llvm::is_contained(summed, index))
          summed.push_back(index);
    llvm::sort(summed);
    TensorType type = gradientType(op.getOperand(operand));
    ResultInfo result;
    result.name = "result";
    result.indices = op.def->operands[operand].indices;
    result.formula = graph.defs.sum(summed, body);
    if (type.dtype != operands.front()->type.dtype)
      result.dtype = type.dtype;
    d.results.push_back(std::move(result));
    d.declaredClass = op.def->declaredClass;
    d.part = getPartOfGradient(op.def->part, operand, op.def->operands[operand].name);
    auto created = createLike(op, graph.defs.add(std::move(d)));
    for (Value *value : operands)
      created->addOperand(value);
    Value *value = created->addResult(type, gradientPath(op.getOperand(operand)));
    backward.append(std::move(created));
    return value;
  }

  /// Products made at once have gradients that are made at once: the parts have their first operand in common, to whose
  /// gradient each adds something.
  static KernelPart getPartOfGradient(const KernelPart &part, unsigned operand, llvm::StringRef name) {
    if (part.kernel.empty())
      return part;
    if (operand == 0)
      return {part.kernel + ".d" + name.str(), part.number, /*isAddend=*/true};
    return {part.kernel + ".dw" + (operand > 1 ? std::to_string(operand) : ""), part.number, /*isAddend=*/false};
  }

  const Formula *replaceElement(const Formula *f, unsigned operand, const Formula *replacement) {
    if (f->kind == Formula::Kind::Element)
      return f->operand == operand ? replacement : f;
    llvm::SmallVector<const Formula *, 4> children;
    for (const Formula *child : f->children)
      children.push_back(replaceElement(child, operand, replacement));
    return children.empty() ? f : graph.defs.create(*f, f->indices, children);
  }

  /// One backward invocation: saved values and result gradients in, operand gradients out.
  void differentiateFused(const Op &op, llvm::ArrayRef<Value *> resultGradients, Block &backward) {
    const OpDef &def = *op.def;
    llvm::SmallVector<unsigned, 4> savedOperands, savedResults, given, wanted;
    listSaved(def, savedOperands, savedResults);
    llvm::SmallVector<Value *, 6> operands;
    for (unsigned i : savedOperands)
      operands.push_back(op.getOperand(i));
    for (unsigned i : savedResults)
      operands.push_back(op.getResult(i));
    for (unsigned i = 0; i < def.results.size(); ++i)
      if (resultGradients[i]) {
        operands.push_back(resultGradients[i]);
        given.push_back(i);
      }
    for (unsigned i = 0; i < def.operands.size(); ++i)
      if (needsGradient(op, i))
        wanted.push_back(i);
    OpDef d = makeBackward(def, given, wanted);
    for (unsigned i = 0; i < wanted.size(); ++i)
      d.results[i].dtype = gradientType(op.getOperand(wanted[i])).dtype;
    auto created = createLike(op, graph.defs.add(std::move(d)));
    for (Value *value : operands)
      created->addOperand(value);
    for (unsigned i : wanted) {
      Value *operand = op.getOperand(i);
      contribute(operand, created->addResult(gradientType(operand), gradientPath(operand)));
    }
    backward.append(std::move(created));
  }

  /// A gradient of nothing yet; it is kept as the value is.
  Value *appendZero(Block &block, Value *like) {
    auto zero = std::make_unique<Op>(OpKind::Constant, like->loc);
    Value *value = zero->addResult(like->type, gradientPath(like));
    value->primal = like;
    block.append(std::move(zero));
    return value;
  }

  void visitRepeat(Op &op, Block &backward) {
    llvm::SmallVector<unsigned, 2> carried;
    llvm::SmallVector<Value *, 2> initial;
    for (unsigned i = 0; i < op.getNumResults(); ++i) {
      Value *gradient = takeGradient(op.getResult(i), backward);
      if (llvm::none_of(op.bodies, [&](auto &body) {
            return isTrained(body->getTerminator()->getOperand(i)) || isTrained(body->getArgument(i));
          }))
        continue;
      carried.push_back(i);
      initial.push_back(gradient);
    }
    if (carried.empty())
      return;
    std::unique_ptr<Op> owner = createSameLoop(op);
    Op *reversed = owner.get();
    reversed->reverse = true;
    for (unsigned i = 0; i < carried.size(); ++i)
      reversed->addOperand(initial[i] ? initial[i] : appendZero(backward, op.getResult(carried[i])));
    Yields yields;
    for (auto &forward : op.bodies) {
      body = forward.get(); // a repeat stands in no other
      yields.push_back(visitBody(op, *forward, *reversed->bodies[forward->getNumber()], carried));
    }
    body = nullptr;
    for (unsigned i : carried) {
      Value *before = op.getOperand(i);
      Value *result = reversed->addResult(before->type, gradientPath(before));
      if (isTrained(before))
        contribute(before, result);
    }
    carryCaptured(*reversed, yields, backward);
    for (auto &results : yields)
      reversed->bodies[&results - yields.data()]->append(std::move(results));
    backward.append(std::move(owner));
  }

  /// A repeat of the same loop in another block, whose bodies are empty.
  std::unique_ptr<Op> createSameLoop(const Op &op) {
    auto loop = std::make_unique<Op>(OpKind::Repeat, op.loc);
    loop->name = op.name;
    loop->scope = op.scope;
    loop->count = op.count;
    loop->loop = op.loop;
    loop->cases = op.cases;
    for (size_t i = 0; i < op.bodies.size(); ++i)
      loop->addBody(graph);
    return loop;
  }

  /// The backward body of one case, and what it yields of the gradients of carried values.
  std::unique_ptr<Op> visitBody(const Op &op, Block &forward, Block &backward, llvm::ArrayRef<unsigned> carried) {
    Op *yield = forward.getTerminator();
    for (unsigned i : carried) {
      Value *next = yield->getOperand(i);
      Value *argument = backward.addArgument(op.getResult(i)->type, gradientPath(next));
      argument->loc = op.loc;
      argument->primal = next;
      if (isTrained(next))
        contribute(next, argument); // what is yielded may be a value from outside
    }
    visitBlock(forward, backward);
    auto results = std::make_unique<Op>(OpKind::Yield, yield->loc);
    for (unsigned i : carried) {
      Value *argument = forward.getArgument(i);
      Value *gradient = takeGradient(argument, backward);
      results->addOperand(gradient ? gradient : appendZero(backward, argument));
    }
    return results;
  }

  using Yields = llvm::SmallVector<std::unique_ptr<Op>, 1>; ///< One per case.

  /// Values from outside the bodies that their ops use: the gradient of one that is computed is carried through the
  /// iterations of all cases, where the value itself is. What each iteration contributes to a parameter goes into its
  /// buffer.
  void carryCaptured(Op &reversed, Yields &yields, Block &backward) {
    for (Value *value : captured) {
      llvm::SmallVector<Contributions, 1> inside(yields.size());
      Contributions outside;
      for (Value *gradient : gradients[value]) {
        const Block *block = gradient->getBlock(); // null for results of `reversed` itself, which stands nowhere yet
        (block && block->getParent() == &reversed ? inside[block->getNumber()] : outside).push_back(gradient);
      }
      if (Op *producer = value->getOp(); producer && producer->kind == OpKind::Param) {
        gradients[value] = std::move(outside);
        for (auto &body : reversed.bodies)
          accumulate(*producer, inside[body->getNumber()], *body);
        continue;
      }
      for (auto &body : reversed.bodies) {
        Value *argument = body->addArgument(value->type, gradientPath(value));
        argument->loc = value->loc;
        argument->primal = value;
        inside[body->getNumber()].push_back(argument);
        gradients[value] = std::move(inside[body->getNumber()]);
        yields[body->getNumber()]->addOperand(takeGradient(value, *body));
      }
      reversed.addOperand(appendZero(backward, value));
      outside.push_back(reversed.addResult(value->type, gradientPath(value)));
      gradients[value] = std::move(outside);
    }
    captured.clear();
  }

  /// Each contribution accumulates by itself: contributions may differ in where they are partial.
  void accumulate(Op &param, llvm::ArrayRef<Value *> contributions, Block &backward) {
    for (Value *contribution : contributions) {
      auto op = std::make_unique<Op>(OpKind::Accumulate, param.loc);
      op->scope = param.scope;
      op->addOperand(contribution);
      op->addOperand(param.getResult());
      TensorType type = contribution->type;
      type.dtype = graph.precision.gradient;
      accumulators[&param].push_back(op->addResult(type, gradientPath(param.getResult())));
      Op *producer = contribution->getOp();
      if (producer && producer->getBlock() == &backward)
        backward.insertAfter(producer, std::move(op)); // at once, so that the contribution does not live on
      else
        backward.append(std::move(op));
    }
  }

  void buildStep() {
    for (auto &op : graph.getForward()) {
      if (op->kind == OpKind::Param) {
        appendUpdate(*op, graph.getPhase(PhaseKind::Step));
      } else if (op->kind == OpKind::Repeat) {
        std::unique_ptr<Op> loop = createSameLoop(*op);
        bool hasUpdates = false;
        for (auto &body : op->bodies) {
          Block &updates = *loop->bodies[body->getNumber()];
          for (auto &inner : *body)
            if (inner->kind == OpKind::Param)
              appendUpdate(*inner, updates);
          hasUpdates |= !updates.empty();
          updates.append(std::make_unique<Op>(OpKind::Yield, op->loc));
        }
        if (hasUpdates)
          graph.getPhase(PhaseKind::Step).append(std::move(loop));
      }
    }
  }

  void appendUpdate(Op &param, Block &block) {
    auto it = accumulators.find(&param);
    if (it == accumulators.end())
      return; // a parameter that the loss does not reach is not trained
    auto update = std::make_unique<Op>(OpKind::Update, param.loc);
    update->scope = param.scope;
    update->addOperand(param.getResult());
    for (Value *gradient : it->second)
      update->addOperand(gradient);
    block.append(std::move(update));
  }

  Graph &graph;
  DiagnosticEngine &diags;
  using Contributions = llvm::SmallVector<Value *, 4>;
  llvm::DenseSet<const Value *> active, reached;
  llvm::DenseSet<const Value *> isParam; ///< Parameters, and other names for them.
  /// Contributions not yet summed.
  llvm::DenseMap<Value *, Contributions> gradients;
  /// The body whose ops are visited, if they are those of a repeat, and the values from outside to which they
  /// contributed, in this order.
  Block *body = nullptr;
  llvm::SetVector<Value *> captured;
  llvm::DenseMap<const Op *, llvm::SmallVector<Value *, 2>> accumulators;
  llvm::DenseSet<const OpDef *> reported; ///< Ops that save too little.
};
} // namespace

void stage::differentiate(Graph &graph, DiagnosticEngine &diags) {
  if (graph.training)
    Differentiator(graph, diags).run();
}

void stage::setGradientSeed(Graph &graph) {
  Op &seed = **graph.getPhase(PhaseKind::Backward).begin();
  assert(seed.kind == OpKind::Constant && "backward begins with its seed");
  seed.number = 1.0 / double(graph.microbatches);
}
