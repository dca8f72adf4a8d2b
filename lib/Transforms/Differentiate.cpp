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
// result's gradient in the operand's place; of a sum, the result's gradient, summed
// over the indices the operand lacks; of anything else, one backward invocation over
// the values the op saves. A repeat becomes a reversed repeat that carries the
// gradients of its carried values. Every contribution to a parameter is accumulated
// over microbatches; the step block updates each parameter from its accumulators.
//
// Limits: a parameter declared outside a repeat cannot be used inside it.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/Graph.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Passes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

using namespace stage;

namespace {
class Differentiator {
public:
  Differentiator(Graph &graph, DiagnosticEngine &diags) : graph(graph), diags(diags) {}

  void run() {
    findActive(graph.forward);
    findActive(graph.forward); // once more: a carried value may become active through its yield
    Op *result = graph.forward.getTerminator();
    if (!result || result->getNumOperands() == 0 || !active.contains(result->getOperand(0))) {
      diags.report(result ? result->loc : graph.loc, diag::LossWithoutParameters);
      return;
    }
    Value *loss = result->getOperand(0);
    if (loss->type.getNumDims() != 0) {
      diags.report(result->loc, diag::LossNotScalar) << int64_t(loss->type.getNumDims());
      return;
    }
    auto seed = std::make_unique<Op>(OpKind::Constant, result->loc);
    seed->number = 1.0 / double(graph.microbatches);
    Value *one = seed->addResult(loss->type, "loss.grad");
    graph.backward.append(std::move(seed));
    gradients[loss].push_back(one);
    visitBlock(graph.forward, graph.backward);
    buildStep();
  }

private:
  /// Marks the values that depend on a parameter.
  void findActive(Block &block) {
    for (auto &op : block) {
      if (op->kind == OpKind::Param) {
        active.insert(op->getResult());
      } else if (op->kind == OpKind::Repeat) {
        for (unsigned i = 0; i < op->getNumOperands(); ++i)
          if (active.contains(op->getOperand(i)))
            active.insert(op->body->getArgument(i));
        findActive(*op->body);
        Op *yield = op->body->getTerminator();
        for (unsigned i = 0; i < op->getNumResults(); ++i)
          if (active.contains(yield->getOperand(i))) {
            active.insert(op->getResult(i));
            active.insert(op->body->getArgument(i));
          }
      } else if (op->kind == OpKind::Compute && !op->def->stopGradient) {
        bool any = false;
        for (unsigned i = 0; i < op->getNumOperands(); ++i)
          any |= !op->def->dataDependent[i] && active.contains(op->getOperand(i));
        if (!any)
          continue;
        for (unsigned i = 0; i < op->getNumResults(); ++i)
          if (isFloat(op->getResult(i)->type.dtype) && !op->def->results[i].extra)
            active.insert(op->getResult(i));
      }
    }
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
        accumulate(*op, backward);
    }
  }

  /// The sum of what the uses of a value contributed; null if nothing did.
  Value *takeGradient(Value *value, Block &backward) {
    auto it = gradients.find(value);
    if (it == gradients.end())
      return nullptr;
    llvm::SmallVector<Value *, 4> addends = std::move(it->second);
    gradients.erase(it);
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

  static std::string gradientPath(const Value *value) { return value->path.empty() ? "" : value->path + ".grad"; }

  bool needsGradient(const Op &op, unsigned operand) const {
    return !op.def->dataDependent[operand] && active.contains(op.getOperand(operand)) &&
           isFloat(op.getOperand(operand)->type.dtype);
  }

  /// Type of the gradient of a value: parameters accumulate in the precision's gradient type.
  TensorType gradientType(const Value *value) const {
    TensorType type = value->type;
    if (value->getOp() && value->getOp()->kind == OpKind::Param)
      type.dtype = graph.precision.gradient;
    return type;
  }

  void visitCompute(Op &op, Block &backward) {
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
    if (!any || !wanted || op.def->stopGradient)
      return;
    // Costs that an op declares for its backward are those of one invocation.
    if (op.def->isSum || (op.def->isProduct && !op.def->backwardFlops)) {
      for (unsigned i = 0; i < op.getNumOperands(); ++i)
        if (needsGradient(op, i))
          gradients[op.getOperand(i)].push_back(op.def->isSum
                                                    ? differentiateSum(op, i, resultGradients[0], backward)
                                                    : differentiateProduct(op, i, resultGradients[0], backward));
      return;
    }
    differentiateFused(op, resultGradients, backward);
  }

  std::unique_ptr<Op> createLike(const Op &op, const OpDef *def) {
    auto result = std::make_unique<Op>(OpKind::Compute, op.loc);
    result->def = def;
    result->extents = op.extents;
    result->scope = op.scope;
    return result;
  }

  Value *differentiateSum(const Op &op, unsigned operand, Value *gradient, Block &backward) {
    const OpDef &def = *op.def;
    const ResultInfo &result = def.results.front();
    TensorType type = gradientType(op.getOperand(operand));
    if (def.operands[operand].indices == result.indices &&
        gradient->type.dtype == type.dtype)
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
  Value *appendGradient(const Op &op, unsigned operand, OpDef &d, const Formula *body,
                        llvm::ArrayRef<Value *> operands, Block &backward) {
    const auto &kept = op.def->operands[operand].indices;
    llvm::SmallVector<unsigned, 4> summed;
    for (const OperandInfo &info : d.operands)
      for (unsigned index : info.indices)
        if (!llvm::is_contained(kept, index) && !llvm::is_contained(summed, index))
          summed.push_back(index);
    llvm::sort(summed);
    TensorType type = gradientType(op.getOperand(operand));
    ResultInfo result;
    result.name = "result";
    result.indices = kept;
    result.formula = graph.defs.sum(summed, body);
    if (type.dtype != operands.front()->type.dtype)
      result.dtype = type.dtype;
    d.results.push_back(std::move(result));
    d.declaredClass = op.def->declaredClass;
    auto created = createLike(op, graph.defs.add(std::move(d)));
    for (Value *value : operands)
      created->addOperand(value);
    Value *value = created->addResult(type, gradientPath(op.getOperand(operand)));
    backward.append(std::move(created));
    return value;
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
      gradients[operand].push_back(created->addResult(gradientType(operand), gradientPath(operand)));
    }
    backward.append(std::move(created));
  }

  Value *appendZero(Block &block, const Value *like) {
    auto zero = std::make_unique<Op>(OpKind::Constant, like->loc);
    Value *value = zero->addResult(like->type, gradientPath(like));
    block.append(std::move(zero));
    return value;
  }

  void visitRepeat(Op &op, Block &backward) {
    Op *yield = op.body->getTerminator();
    llvm::SmallVector<unsigned, 2> carried;
    llvm::SmallVector<Value *, 2> initial;
    bool any = false;
    for (unsigned i = 0; i < op.getNumResults(); ++i) {
      if (!active.contains(op.getResult(i)))
        continue;
      Value *gradient = takeGradient(op.getResult(i), backward);
      any |= gradient != nullptr;
      carried.push_back(i);
      initial.push_back(gradient);
    }
    if (!any)
      return;
    auto owner = std::make_unique<Op>(OpKind::Repeat, op.loc);
    Op *reversed = owner.get();
    reversed->name = op.name;
    reversed->scope = op.scope;
    reversed->count = op.count;
    reversed->loop = op.loop;
    reversed->reverse = true;
    reversed->body = std::make_unique<Block>(graph, reversed);
    for (unsigned i = 0; i < carried.size(); ++i) {
      Value *result = op.getResult(carried[i]);
      reversed->addOperand(initial[i] ? initial[i] : appendZero(backward, result));
      Value *argument = reversed->body->addArgument(result->type, gradientPath(yield->getOperand(carried[i])));
      argument->loc = op.loc;
      argument->primal = yield->getOperand(carried[i]);
      gradients[yield->getOperand(carried[i])].push_back(argument);
    }
    visitBlock(*op.body, *reversed->body);
    auto results = std::make_unique<Op>(OpKind::Yield, yield->loc);
    for (unsigned i : carried) {
      Value *argument = op.body->getArgument(i);
      Value *gradient = takeGradient(argument, *reversed->body);
      results->addOperand(gradient ? gradient : appendZero(*reversed->body, argument));
      gradients[op.getOperand(i)].push_back(reversed->addResult(argument->type, gradientPath(op.getOperand(i))));
    }
    carryCaptured(op, *reversed, *results, backward);
    reversed->body->append(std::move(results));
    backward.append(std::move(owner));
  }

  /// Values from outside the body that its ops use: their gradient is carried through the iterations.
  void carryCaptured(Op &op, Op &reversed, Op &yield, Block &backward) {
    llvm::SmallVector<Value *, 2> captured;
    for (auto &entry : gradients)
      if (llvm::any_of(entry.second, [&](Value *g) { return g->getBlock() == reversed.body.get(); }))
        captured.push_back(entry.first);
    for (Value *value : captured) {
      if (value->getOp() && value->getOp()->kind == OpKind::Param) {
        diags.report(value->getOp()->loc, diag::ParamUsedInsideRepeat)
            << value->getOp()->name << op.name;
        gradients.erase(value);
        continue;
      }
      llvm::SmallVector<Value *, 4> inside, outside;
      for (Value *g : gradients[value])
        (g->getBlock() == reversed.body.get() ? inside : outside).push_back(g);
      Value *argument = reversed.body->addArgument(value->type, gradientPath(value));
      inside.push_back(argument);
      gradients[value] = std::move(inside);
      yield.addOperand(takeGradient(value, *reversed.body));
      reversed.addOperand(appendZero(backward, value));
      outside.push_back(reversed.addResult(value->type, gradientPath(value)));
      gradients[value] = std::move(outside);
    }
  }

  /// Each contribution accumulates by itself: contributions may differ in where they are partial.
  void accumulate(Op &param, Block &backward) {
    auto it = gradients.find(param.getResult());
    if (it == gradients.end())
      return;
    for (Value *contribution : it->second) {
      auto op = std::make_unique<Op>(OpKind::Accumulate, param.loc);
      op->scope = param.scope;
      op->addOperand(contribution);
      op->addOperand(param.getResult());
      accumulators[&param].push_back(op->addResult(contribution->type, gradientPath(param.getResult())));
      Op *producer = contribution->getOp();
      if (producer && producer->getBlock() == &backward)
        backward.insertAfter(producer, std::move(op)); // at once, so that the contribution does not live on
      else
        backward.append(std::move(op));
    }
    gradients.erase(it);
  }

  void buildStep() {
    for (auto &op : graph.forward) {
      if (op->kind == OpKind::Param) {
        appendUpdate(*op, graph.step);
      } else if (op->kind == OpKind::Repeat) {
        auto loop = std::make_unique<Op>(OpKind::Repeat, op->loc);
        loop->name = op->name;
        loop->scope = op->scope;
        loop->count = op->count;
        loop->loop = op->loop;
        loop->body = std::make_unique<Block>(graph, loop.get());
        for (auto &inner : *op->body)
          if (inner->kind == OpKind::Param)
            appendUpdate(*inner, *loop->body);
        if (loop->body->empty())
          continue;
        loop->body->append(std::make_unique<Op>(OpKind::Yield, op->loc));
        graph.step.append(std::move(loop));
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
  llvm::DenseSet<const Value *> active;
  /// Contributions not yet summed. In order of first contribution, so that output does not depend on addresses.
  llvm::MapVector<Value *, llvm::SmallVector<Value *, 4>> gradients;
  llvm::DenseMap<const Op *, llvm::SmallVector<Value *, 2>> accumulators;
};
} // namespace

void stage::differentiate(Graph &graph, DiagnosticEngine &diags) {
  if (graph.training)
    Differentiator(graph, diags).run();
}
