//===- Verifier.cpp - what every graph must satisfy -----------------------===//
//
// Problem: a pass that leaves a use before its definition, an operand of the wrong
// shape or two repeats of one loop that disagree would only be noticed as a wrong
// trace. The rules have numbers (docs/internals/IRRef.md) which are named here.
//
// Algorithm: one walk numbers all ops and finds the loops, a second one checks every
// op with what it uses. An op whose operands or results are too few is not looked at
// further; everything else is checked and reported.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/verify/Verifier.h"
#include "VerifierContext.h"
#include "stage/IR/Diagnostics.h"
#include "stage/IR/graph/PipelineChain.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"

using namespace stage;

namespace {
class Verifier {
public:
  Verifier(Graph &graph, DiagnosticEngine &diags) : context{graph, diags, std::nullopt}, graph(graph), diags(diags) {}

  void run() {
    findSymbols();
    verifyPhases();
    verifyPasses(context);
    for (Block &phase : graph.getPhases())
      enumerate(phase);
    for (Block &phase : graph.getPhases()) {
      currentPhase = phase.getPhase();
      loopsOfPhase.clear();
      verifyBlock(phase);
      verifyPrefetch(context, phase);
      if (!phase.empty())
        verifyTerminator(phase);
    }
    if (!diags.hasErrors())
      verifyPacking(context);
    if (!diags.hasErrors())
      verifyFeeders(context);
  }

private:
  //===--------------------------------------------------------------------===//
  // V1: sizes
  //===--------------------------------------------------------------------===//

  void findSymbols() {
    for (auto &dim : graph.dims)
      if (dim->size.getSymbol() == dim->name)
        symbols.insert(dim->name);
    for (const Axis &axis : graph.mesh.getAxes())
      symbols.insert(axis.name);
    for (auto &[name, value] : graph.binding.sorted())
      symbols.insert(name);
    for (auto &dim : graph.dims)
      verifySize(dim->size, dim->loc);
    for (const SlotLoad &load : graph.mesh.getSlotLoads())
      for (Size size : {load.choices, load.getNumSources()})
        verifySize(size, load.loc);
    verifySlotLoads(context);
    for (unsigned number = 0; number < graph.pipeline.environments.size(); ++number)
      for (auto &[symbol, value] : graph.pipeline.environments[number])
        if (!graph.binding.lookup(symbol) || graph.mesh.find(symbol))
          diags.report(graph.pipeline.loc, diag::IRUnknownSymbol)
              << toString(graph.pipeline.environments[number]) << symbol;
  }

  void verifySize(Size size, SMLoc loc) {
    if (!size) {
      diags.report(loc, diag::IRNoSize);
      return;
    }
    if (!checkedSizes.insert(size.getNode()).second)
      return;
    bool isKnown = true;
    for (const std::string &symbol : collectSymbols(size))
      if (!symbols.contains(symbol)) {
        diags.report(loc, diag::IRUnknownSymbol) << size.str() << symbol;
        isKnown = false;
      }
    if (isKnown && !collectLookups(size).empty())
      verifyLookups(size, loc);
  }

  /// In the units of each environment there is the entry. Nothing is said of symbols without a value.
  void verifyLookups(Size size, SMLoc loc) {
    for (const SizeLookup &lookup : collectLookups(size)) {
      std::shared_ptr<const SizeTable> table = graph.binding.lookupTable(lookup.table);
      std::string fault = !table ? "there is no table '" + lookup.table.str() + "'"
                          : table->dims.size() != lookup.indices.size()
                              ? "table '" + lookup.table.str() + "' is looked up with " +
                                    std::to_string(lookup.indices.size()) + " of its " +
                                    std::to_string(table->dims.size()) + " indices"
                              : "";
      if (fault.empty())
        continue;
      diags.report(loc, diag::IRBadLookup) << size.str() << fault;
      return;
    }
    for (unsigned number = 0; number < graph.pipeline.environments.size(); ++number) {
      SizeValue value = evaluate(size, graph.getBinding(number));
      if (value.error != SizeError::NoEntry)
        continue;
      std::string units = number ? " in units with " + toString(graph.pipeline.environments[number]) : "";
      diags.report(loc, diag::IRBadLookup) << size.str() << "there is no entry " + value.symbol + units;
      return;
    }
  }

  //===--------------------------------------------------------------------===//
  // V2: every value is visible where it is used
  //===--------------------------------------------------------------------===//

  /// Numbers the ops in program order and notes every value, so that a pointer to a value that is gone is seen.
  void enumerate(Block &block) {
    for (auto &argument : block.getArguments())
      known.insert(argument.get());
    for (auto &op : block) {
      order[op.get()] = order.size();
      for (auto &result : op->getResults())
        known.insert(result.get());
      for (auto &body : op->bodies)
        enumerate(*body);
    }
  }

  /// The bodies of repeats that a block is or stands in, outermost first.
  static llvm::SmallVector<const Block *, 2> getBodies(const Block *block) {
    llvm::SmallVector<const Block *, 2> bodies;
    for (; block->getParent(); block = block->getParent()->getBlock())
      bodies.insert(bodies.begin(), block);
    return bodies;
  }

  /// Why `user` must not use `value`; empty if it may.
  std::string findFault(const Value *value, const Op &user) {
    if (!known.contains(value))
      return "it is not in the graph";
    PhaseKind phase = value->getBlock()->getPhase();
    if (phase > currentPhase)
      return "it belongs to " + getName(phase).str() + ", which runs later";
    const Op *definer = value->getOp();
    if (phase != currentPhase && isDecoding(currentPhase) && !(definer && isState(definer->kind)))
      return "it belongs to " + getName(phase).str() + ", which other units run; " + getName(currentPhase).str() +
             " has params, buffers and caches of forward";
    // What accumulates is a buffer, which is where its parameter is.
    bool isBuffer = phase != currentPhase && definer && definer->kind == OpKind::Accumulate &&
                    definer->getNumOperands() == 2 && known.contains(definer->getOperand(1));
    if (phase != currentPhase && definer && definer->kind == OpKind::AddNorm)
      return "";
    auto outer = getBodies(isBuffer ? definer->getOperand(1)->getBlock() : value->getBlock()),
         inner = getBodies(user.getBlock());
    for (size_t i = 0; i < outer.size(); ++i) {
      const Op &loop = *outer[i]->getParent();
      bool sameLoop = i < inner.size() && (phase == currentPhase ? inner[i]->getParent() == &loop
                                                                 : inner[i]->getParent()->loop == loop.loop);
      if (!sameLoop)
        return "it is inside repeat '" + loop.name + "'";
      if (inner[i]->getNumber() != outer[i]->getNumber())
        return "it belongs to case " + std::to_string(outer[i]->getNumber()) + " of repeat '" + loop.name + "'";
    }
    if (phase != currentPhase || !definer)
      return "";
    bool isAround = llvm::any_of(inner, [&](const Block *body) { return body->getParent() == definer; });
    return isAround || order.lookup(definer) >= order.lookup(&user) ? "it is defined later" : "";
  }

  /// False if an operand is not in the graph: then nothing of it may be looked at.
  bool verifyUses(const Op &op) {
    bool allKnown = true;
    for (const Value *operand : op.getOperands()) {
      std::string fault = findFault(operand, op);
      if (!fault.empty())
        diags.report(op.loc, diag::IRNotVisible) << context.name(operand) << fault;
      allKnown &= known.contains(operand);
    }
    return allKnown;
  }

  //===--------------------------------------------------------------------===//
  // V3: blocks
  //===--------------------------------------------------------------------===//

  /// Backward is one phase, or two halves, or both: then a microbatch runs the one or the other.
  void verifyPhases() {
    std::string found;
    for (Block &phase : graph.getPhases())
      if (isBackward(phase.getPhase()))
        found += (found.empty() ? "" : ", ") + getName(phase.getPhase()).str();
    if (graph.training && (graph.findPhase(PhaseKind::Decode) || graph.findPhase(PhaseKind::Draft)))
      diags.report(graph.loc, diag::IRDecodeTrains);
    if (found.empty() || found == getName(PhaseKind::Backward) ||
        (graph.findPhase(PhaseKind::BackwardInput) && graph.findPhase(PhaseKind::BackwardWeight)))
      return;
    diags.report(graph.loc, diag::IRPhases) << found;
  }

  void verifyBlock(Block &block) {
    for (auto &argument : block.getArguments())
      verifyValue(*argument);
    for (auto &op : block)
      verifyOp(*op);
  }

  void verifyTerminator(Block &block) {
    bool isBody = block.getParent();
    if (!isBody && !isForward(block.getPhase()))
      return;
    Op *last = block.getTerminator();
    if (!last || last->kind != (isBody ? OpKind::Yield : OpKind::Return))
      diags.report((*std::prev(block.end()))->loc, diag::IRNoTerminator)
          << (isBody ? "the body of repeat '" + block.getParent()->name + "'" : getName(block.getPhase()).str())
          << (isBody ? "yield" : "return");
  }

  void verifyPlace(const Op &op) {
    auto misplaced = [&](llvm::StringRef where) {
      diags.report(op.loc, diag::IRMisplacedOp) << getName(op.kind) << where;
    };
    const Block *block = op.getBlock();
    bool isLast = block->end() != block->begin() && std::prev(block->end())->get() == &op;
    if (op.kind == OpKind::Yield && !(isLast && block->getParent()))
      misplaced("at the end of a repeat's body");
    if (op.kind == OpKind::Return && !(isLast && !block->getParent() && isForward(currentPhase)))
      misplaced("at the end of forward or decode");
    if ((isState(op.kind) && currentPhase != PhaseKind::Forward) ||
        (op.kind == OpKind::Input && !isForward(currentPhase)))
      misplaced(isState(op.kind) ? "in forward" : "in forward or decode");
    if (op.kind == OpKind::Append && !isForward(currentPhase))
      misplaced("in forward or decode");
    if ((op.kind == OpKind::Store && currentPhase != PhaseKind::Store) ||
        (op.kind == OpKind::Load && currentPhase != PhaseKind::Load))
      misplaced("in " + getName(op.kind == OpKind::Store ? PhaseKind::Store : PhaseKind::Load).str());
    else if (movesCaches(currentPhase) && !isCacheCopy(op.kind) && op.kind != OpKind::Repeat &&
             op.kind != OpKind::Yield)
      misplaced("outside of " + getName(currentPhase).str());
    if (op.kind == OpKind::Accumulate && !isBackward(currentPhase))
      misplaced("in backward");
    if (op.kind == OpKind::Update && currentPhase != PhaseKind::Step)
      misplaced("in step");
    if (op.kind == OpKind::Write && currentPhase != PhaseKind::Step && !isForward(currentPhase))
      misplaced("in step, forward or decode");
    if (op.kind == OpKind::AddNorm && currentPhase != PhaseKind::Reduce)
      misplaced("in reduce");
    if (op.kind == OpKind::Repeat && block->getParent())
      misplaced("outside of other repeats");
    unsigned numVirtual = graph.pipeline.axis ? countVirtualStages(graph) : 1;
    if (op.virtualStage && *op.virtualStage >= numVirtual)
      misplaced("on virtual stages below " + std::to_string(numVirtual));
  }

  //===--------------------------------------------------------------------===//
  // V4, V5: operands and results
  //===--------------------------------------------------------------------===//

  bool verifyCounts(const Op &op, size_t operands, size_t results) {
    return context.checkCount(op, "operands", operands, op.getNumOperands()) &
           context.checkCount(op, "results", results, op.getNumResults());
  }

  void verifyValue(const Value &value) {
    for (const Extent &extent : value.type.shape) {
      verifySize(extent.size, value.loc);
      if (extent.dim && extent.dim->size != extent.size)
        diags.report(value.loc, diag::IRWrongExtent)
            << "dim '" + extent.dim->name + "'" << extent.dim->size.str() << context.name(&value) << extent.size.str();
    }
    if (value.primal && !known.contains(value.primal))
      diags.report(value.loc, diag::IRNotVisible) << "of " + context.name(&value) << "its primal is not in the graph";
    else if (value.primal && !VerifierContext::hasSameShape(value.type, value.primal->type))
      diags.report(value.loc, diag::IRWrongType)
          << "gradient " + context.name(&value) << context.text(value.primal->type) << context.text(value.type);
    verifyQuantization(context, value);
    verifySharding(context, value);
  }

  void verifyOp(Op &op) {
    verifyPlace(op);
    for (auto &result : op.getResults())
      verifyValue(*result);
    bool good = verifyUses(op);
    if (!good)
      return;
    auto verifyCacheUse = [&] {
      unsigned place = order.lookup(&op);
      return stage::verifyCacheUse(context, op, [&](const Op &other) { return order.lookup(&other) > place; });
    };
    switch (op.kind) {
    case OpKind::Param:
    case OpKind::Buffer:
    case OpKind::Input:
    case OpKind::Constant:
      good = verifyCounts(op, 0, 1);
      break;
    case OpKind::Cache:
      if (op.entries)
        verifySize(op.entries, op.loc);
      if (op.entry)
        verifySize(op.entry, op.loc);
      good = verifyCounts(op, 0, 1) && verifyCache(context, op);
      break;
    case OpKind::Append:
      good = verifyCounts(op, 2, 1) && verifyCacheUse() && verifyAppend(context, op);
      break;
    case OpKind::Store:
    case OpKind::Load:
      good = verifyCounts(op, 1, 1) && verifyCacheCopy(context, op);
      break;
    case OpKind::Compute:
      good = verifyCompute(context, op) && verifyAgain(context, op, currentPhase);
      for (const Extent &extent : op.extents)
        verifySize(extent.size, op.loc);
      break;
    case OpKind::Repeat:
      good = verifyRepeat(op);
      break;
    case OpKind::Yield:
      good = op.getBlock()->getParent() && verifyCarried(op, op.getOperands(), *op.getBlock()->getParent());
      [[fallthrough]];
    case OpKind::Return:
      good &= context.checkCount(op, "results", 0, op.getNumResults());
      break;
    case OpKind::Accumulate:
      good = verifyCounts(op, 2, 1) && verifyParam(op, 1);
      if (good) {
        verifyGradient(op, *op.getOperand(0), *op.getOperand(1));
        TensorType expected = op.getOperand(0)->type;
        expected.dtype = graph.precision.gradient;
        context.checkType(op.loc, "result of accumulate", expected, op.getResult()->type);
      }
      break;
    case OpKind::AddNorm:
      if ((good = verifyCounts(op, std::max(1u, op.getNumOperands()), 1)))
        context.checkType(op.loc, "result of add_norm", getNormType(), op.getResult()->type);
      break;
    case OpKind::Update:
      good = verifyCounts(op, std::max(2u + op.clips, op.getNumOperands()), std::min(1u, op.getNumResults())) &&
             verifyParam(op, 0);
      for (unsigned i = 1; good && i + op.clips < op.getNumOperands(); ++i)
        verifyGradient(op, *op.getOperand(i), *op.getOperand(0));
      if (good && op.clips)
        context.checkType(op.loc, "norm of an update", getNormType(), op.getOperand(op.getNumOperands() - 1)->type);
      if (good && op.getNumResults())
        context.checkType(op.loc, "result of update", op.getOperand(0)->type, op.getResult()->type);
      break;
    case OpKind::Write:
      good = verifyCounts(op, 2, 0) && (isForward(currentPhase) ? verifyCacheUse() : verifyParam(op, 0));
      if (good) {
        TensorType expected = op.getOperand(0)->type;
        if (isForward(currentPhase)) // a cache quantizes what is written to it
          expected.quantization = op.getOperand(1)->type.quantization;
        context.checkType(op.loc, "what is written to " + context.name(op.getOperand(0)), expected,
                          op.getOperand(1)->type);
      }
      break;
    case OpKind::Join:
      good = verifyCounts(op, std::max(1u, op.getNumOperands()), 1);
      for (unsigned i = 0; good && i < op.getNumOperands(); ++i)
        context.checkType(op.loc, "operand " + llvm::Twine(i) + " of join", op.getResult()->type,
                          op.getOperand(i)->type);
      break;
    case OpKind::Release:
      break; // see V14
    case OpKind::Offload:
    case OpKind::Fetch:
      good = verifyCounts(op, std::max(1u, op.getNumOperands()), std::max(1u, op.getNumOperands()));
      for (unsigned i = 0; good && i < op.getNumOperands(); ++i) {
        TensorType expected = op.getOperand(i)->type;
        expected.space = op.getResult(i)->type.space; // see V12
        context.checkType(op.loc, "result of " + getName(op.kind), expected, op.getResult(i)->type);
      }
      break;
    default:
      good = verifyReshard(op);
    }
    verifyMemory(context, op);
    if (good)
      verifySharding(context, op);
    if (good && (op.stream || !op.after.empty() || op.waitsForUnits))
      verifyOrder(context, op, [&](const Value *value) { return findFault(value, op); });
    if (good && graph.hasRun("insert-communication"))
      verifyCommunication(context, op);
  }

  /// A bucket is one buffer on the wire: its operands have one element type, and each is there once.
  bool verifyReshard(const Op &op) {
    unsigned count = isBucket(op.kind) ? std::max(1u, op.getNumOperands()) : 1;
    if (!verifyCounts(op, count, count))
      return false;
    llvm::DenseSet<const Value *> seen;
    for (unsigned i = 0; i < count; ++i) {
      const Value *operand = op.getOperand(i);
      std::string what = count > 1 ? "result " + std::to_string(i) : "result";
      TensorType expected = operand->type;
      DType gathered = op.getResult(i)->type.dtype;
      if (isGatherOfState(op) && isFloat(gathered) && getBitSize(gathered) < getBitSize(expected.dtype))
        expected.dtype = gathered; // of a state that is kept in more bits than ops read
      context.checkType(op.loc, what + " of " + getName(op.kind), expected, op.getResult(i)->type);
      // What is not added up moves as bytes.
      if (op.kind != OpKind::AllGather && operand->type.dtype != op.getOperand(0)->type.dtype)
        diags.report(op.loc, diag::IRBadReshard)
            << getName(op.kind)
            << "a bucket has one element type, but operand " + llvm::Twine(i) + " is " + getName(operand->type.dtype) +
                   " and operand 0 is " + getName(op.getOperand(0)->type.dtype);
      if (!seen.insert(operand).second)
        diags.report(op.loc, diag::IRBadReshard)
            << getName(op.kind) << context.name(operand) + " stands in the bucket twice";
    }
    return true;
  }

  bool verifyParam(const Op &op, unsigned operand) {
    const Op *param = op.getOperand(operand)->getOp();
    if (param && param->kind == OpKind::Param)
      return true;
    diags.report(op.loc, diag::IRNotParam) << int64_t(operand) << getName(op.kind);
    return false;
  }

  /// A gradient has the shape of its parameter; its dtype is the precision's.
  void verifyGradient(const Op &op, const Value &gradient, const Value &param) {
    if (!VerifierContext::hasSameShape(gradient.type, param.type)) {
      TensorType expected = param.type;
      expected.dtype = gradient.type.dtype;
      context.checkType(op.loc, "gradient of " + context.name(&param), expected, gradient.type);
    }
  }

  static TensorType getNormType() {
    TensorType type;
    type.dtype = DType::F32;
    return type;
  }

  //===--------------------------------------------------------------------===//
  // V6: repeats
  //===--------------------------------------------------------------------===//

  bool verifyRepeat(Op &op) {
    verifySize(op.count, op.loc);
    verifyLoopCount(context, op);
    auto [first, isNew] = loops.try_emplace(op.loop, &op);
    const Op &other = *first->second;
    std::string difference;
    if (!loopsOfPhase.insert(op.loop).second)
      difference = "stands in " + getName(currentPhase).str() + " as well";
    else if (other.name != op.name)
      difference = "has another name";
    else if (other.count != op.count)
      difference = "has another count";
    else if (!(other.cases == op.cases) || other.bodies.size() != op.bodies.size())
      difference = "has other cases";
    if (!isNew && !difference.empty())
      diags.report(op.loc, diag::IRLoopMismatch)
          .with(op.name, int64_t(op.loop), difference)
          .note(other.loc, diag::PreviousHere)
          .with(other.name);
    bool good = verifyCases(context, op);
    for (auto &body : op.bodies)
      good = good && context.checkCount(op, "arguments", body->getArguments().size(), op.getNumOperands()) &&
             context.checkCount(op, "results", body->getArguments().size(), op.getNumResults());
    if (!good)
      return false;
    verifyCarried(op, op.getOperands(), op);
    for (unsigned i = 0; i < op.getNumResults(); ++i)
      context.checkType(op.loc, "result " + std::to_string(i) + " of repeat '" + op.name + "'",
                        op.bodies.front()->getArgument(i)->type, op.getResult(i)->type);
    for (auto &body : op.bodies)
      verifyBody(op, *body);
    return true;
  }

  void verifyBody(const Op &op, Block &body) {
    const Block &first = *op.bodies.front();
    for (unsigned i = 0; i < body.getArguments().size(); ++i) {
      const Value &argument = *body.getArgument(i), &expected = *first.getArgument(i);
      context.checkType(op.loc, "argument " + std::to_string(i) + " of case " + std::to_string(body.getNumber()),
                        expected.type, argument.type);
      if (argument.sharding != expected.sharding)
        diags.report(op.loc, diag::IRBadCases)
            << op.name
            << "carried value " + std::to_string(i) + " has another sharding in case " +
                   std::to_string(body.getNumber()) + " than in case 0";
    }
    if (body.empty())
      diags.report(op.loc, diag::IRNoTerminator) << "the body of repeat '" + op.name + "'"
                                                 << "yield";
    else
      verifyTerminator(body);
    verifyBlock(body);
  }

  /// What goes into an iteration, from outside or from a yield, has the types of the arguments.
  bool verifyCarried(const Op &op, llvm::ArrayRef<Value *> values, const Op &repeat) {
    auto arguments = repeat.bodies.front()->getArguments();
    if (&op != &repeat && !context.checkCount(op, "operands", arguments.size(), values.size()))
      return false;
    for (unsigned i = 0; i < values.size(); ++i)
      context.checkType(op.loc, "operand " + llvm::Twine(i) + " of " + getName(op.kind), arguments[i]->type,
                        values[i]->type);
    return true;
  }

  VerifierContext context;
  Graph &graph;
  DiagnosticEngine &diags;
  PhaseKind currentPhase = PhaseKind::Forward;
  llvm::StringSet<> symbols;
  llvm::DenseSet<const SizeNode *> checkedSizes;
  llvm::DenseSet<const Value *> known;
  llvm::DenseMap<const Op *, unsigned> order;
  /// The first repeat of each loop number, and the numbers seen in the phase.
  llvm::DenseMap<unsigned, const Op *> loops;
  llvm::DenseSet<unsigned> loopsOfPhase;
};
} // namespace

bool stage::verify(Graph &graph, DiagnosticEngine &diags) {
  unsigned errorsBefore = diags.getNumErrors();
  Verifier(graph, diags).run();
  return diags.getNumErrors() == errorsBefore;
}
