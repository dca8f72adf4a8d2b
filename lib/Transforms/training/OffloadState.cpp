//===- OffloadState.cpp - optimizer states, or all state, on the host -----===//
//
// Problem: the optimizer's states are most of what training keeps, and used once per step. A strategy may have them on
// the host, which then computes the update (ZeRO-Offload, Megatron's --optimizer-cpu-offload):
//
//   offload optimizer to host;
//
//   %g.1 = reduce_scatter(%g) over dp flat         %g.1 = reduce_scatter(%g) over dp flat
//   %w.1 = update(%w, %g.1)                        %k = offload(%g.1) : on host
//   %w.2 = all_gather(%w.1) over dp flat           %u = update(%w, %k) : on host
//   write(%w, %w.2)                                %w.1 = fetch(%u)
//                                                  %w.2 = all_gather(%w.1) over dp flat
//                                                  write(%w, %w.2)
//
// or parameters and their gradients as well (ZeRO-Infinity, PyTorch's CPUOffload of FSDP):
//
//   offload parameters to host;
//
//   %w = param : flat dp                           %w = param : on host flat dp
//   %w.1 = all_gather(%w) over dp flat             %w.1 = all_gather(fetch(%w)) over dp flat
//   %g = reduce_scatter(%dw) over dp flat          %g = offload(reduce_scatter(%dw) over dp flat)
//   accumulate(%g, %w)                             accumulate(%g, %w) : on host
//
// Algorithm: what each update reads of reduced gradients is copied to the host, in the type and the shards in which it
// is there; so is the norm of all, where gradients are clipped. What the update makes is fetched and takes the
// parameter's place; of what is not cut, the whole parameter. Where parameters are there, too, a phase fetches what it
// gathers before the gather, ahead with it if that runs ahead, and other parameters before their first use in a block;
// contributions to gradients are copied before they are added. What is gathered or scattered at once is copied at once.
// A gradient that is reduced once per step comes to the device for it.
//
// Stores, the host's work and loads have a stream each: the gradient of one layer is stored while the host updates
// another.
//
// Limits: parameters on the host are updated in the pieces in which they are kept there.
//
// Cost: linear in ops and uses.
//
//===----------------------------------------------------------------------===//
#include "sharding/MergeCollectives.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IR/text/Text.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"

using namespace stage;

namespace {
class StateOffload {
public:
  StateOffload(Graph &graph, DiagnosticEngine &diags) : graph(graph), diags(diags) {}

  void run(const Rule *optimizer, const Rule *parameters) {
    std::vector<Op *> params, updates;
    graph.walk([&](Op &op) {
      position[&op] = position.size();
      if (op.kind == OpKind::Param)
        params.push_back(&op);
      else if (op.kind == OpKind::Update)
        updates.push_back(&op);
    });
    if (optimizer && (updates.empty() || graph.optimizer.name.empty()))
      diags.report(optimizer->loc, diag::NoOptimizerToOffload);
    else if (parameters && params.empty())
      diags.report(parameters->loc, diag::NoParametersToOffload);
    else if (!parameters || check(*parameters, updates)) {
      loads = getStreamOfLoads(graph);
      if (parameters)
        for (Op *param : params)
          moveParam(*param->getResult());
      for (Op *update : updates)
        moveUpdate(*update);
    }
  }

private:
  bool check(const Rule &rule, llvm::ArrayRef<Op *> updates) {
    for (const Op *update : updates)
      if (update->getNumResults()) {
        diags.report(rule.loc, diag::HostUpdatesParts) << update->getOperand(0)->path;
        return false;
      }
    return true;
  }

  //===--- copies ---------------------------------------------------------===//

  static Value *addResult(Op &op, const Value &like, MemorySpace space) {
    TensorType type = like.type;
    type.space = space;
    Value *result = op.addResult(type, like.path);
    result->sharding = like.sharding;
    result->loc = like.loc;
    return result;
  }

  std::unique_ptr<Op> makeCopy(OpKind kind, llvm::ArrayRef<Value *> values, const Op &like) {
    auto op = std::make_unique<Op>(kind, like.loc);
    op->scope = like.scope;
    op->virtualStage = like.virtualStage;
    if (kind == OpKind::Fetch)
      op->stream = loads;
    for (Value *value : values) {
      op->addOperand(value);
      addResult(*op, *value, kind == OpKind::Offload ? MemorySpace::Host : MemorySpace::Device);
    }
    return op;
  }

  //===--- parameters -----------------------------------------------------===//

  using Use = std::pair<Op *, unsigned>;

  void moveParam(Value &param) {
    param.type.space = MemorySpace::Host;
    llvm::MapVector<Block *, llvm::SmallVector<Use, 4>> byBlock; // of phases
    for (auto [user, operand] : param.getUses().vec()) {
      if (user->kind == OpKind::Accumulate)
        moveContribution(*user);
      else if (isGatherOfState(*user) && !user->getOperand(operand)->sharding.flat.empty())
        fetchBefore(*user);
      else if (user->kind != OpKind::Update && user->kind != OpKind::Fetch)
        byBlock[findAnchor(*user, param).getBlock()].push_back({user, operand});
    }
    for (auto &[block, uses] : byBlock)
      fetchFor(param, uses);
  }

  /// The op around a user that stands at the level of a value: in a body of the same repeat, or at the top.
  static Op &findAnchor(Op &user, const Value &value) { return getLoop(&value) ? user : *getTopLevelOp(&user); }

  /// All that is gathered at once.
  void fetchBefore(Op &gather) {
    auto copy = makeCopy(OpKind::Fetch, gather.getOperands().vec(), gather);
    copy->isPrefetched = gather.isPrefetched;
    Op *fetch = gather.getBlock()->insertBefore(&gather, std::move(copy));
    for (unsigned i = 0; i < gather.getNumOperands(); ++i)
      gather.setOperand(i, fetch->getResult(i));
  }

  /// Before the first of some uses, which are of one block or below it.
  void fetchFor(Value &value, llvm::ArrayRef<Use> uses) {
    Op *first = nullptr;
    std::optional<unsigned> stage = getTopLevelOp(uses.front().first)->virtualStage;
    for (auto [user, operand] : uses) {
      Op &anchor = findAnchor(*user, value);
      if (!first || position.lookup(&anchor) < position.lookup(first))
        first = &anchor;
      if (getTopLevelOp(user)->virtualStage != stage)
        stage.reset(); // each stage fetches it
    }
    auto copy = makeCopy(OpKind::Fetch, &value, *first);
    copy->virtualStage = first->getBlock()->getParent() ? std::nullopt : stage;
    Op *fetch = first->getBlock()->insertBefore(first, std::move(copy));
    for (auto [user, operand] : uses)
      user->setOperand(operand, fetch->getResult());
  }

  void moveContribution(Op &addition) {
    addition.stream = nullptr; // it is the host's work
    Value *contribution = addition.getOperand(0), *sum = addition.getResult();
    Value *&copied = onHost[contribution];
    if (!copied) {
      Op *maker = contribution->getOp();
      bool isBucket = maker && maker->getNumResults() > 1 && isCommunication(maker->kind) &&
                      maker->getBlock() == addition.getBlock();
      llvm::SmallVector<Value *, 4> values = {contribution};
      if (isBucket) {
        values.clear();
        for (auto &result : maker->getResults()) // what is reduced further comes later
          if (llvm::any_of(result->getUses(), [](const Use &use) { return use.first->kind == OpKind::Accumulate; }))
            values.push_back(result.get());
      }
      auto copy = makeCopy(OpKind::Offload, values, isBucket ? *maker : addition);
      Op *offload = isBucket ? addition.getBlock()->insertAfter(maker, std::move(copy))
                             : addition.getBlock()->insertBefore(&addition, std::move(copy));
      for (unsigned i = 0; i < values.size(); ++i)
        onHost[values[i]] = offload->getResult(i);
    }
    addition.setOperand(0, onHost.lookup(contribution));
    sum->type.space = MemorySpace::Host;
    llvm::MapVector<Block *, llvm::SmallVector<Use, 4>> byBlock;
    for (auto [user, operand] : sum->getUses().vec())
      if (user->kind != OpKind::Update)
        byBlock[findAnchor(*user, *sum).getBlock()].push_back({user, operand});
    for (auto &[block, uses] : byBlock)
      fetchFor(*sum, uses);
  }

  //===--- updates --------------------------------------------------------===//

  /// Once for all updates, when it is complete: what adds to it adds in phases before the step.
  Op *copyNorm(Value &norm, const Op &update) {
    Op &maker = *norm.getOp();
    Block &step = const_cast<Block &>(update.getBlock()->getTop());
    auto copy = makeCopy(OpKind::Offload, &norm, maker);
    return maker.getBlock() == &step ? step.insertAfter(&maker, std::move(copy))
                                     : step.insertBefore(step.begin()->get(), std::move(copy));
  }

  void moveUpdate(Op &update) {
    Block &block = *update.getBlock();
    for (unsigned i = 1; i < update.getNumOperands(); ++i) {
      Value *operand = update.getOperand(i);
      if (isOnHost(*operand))
        continue;
      Value *&copied = onHost[operand];
      if (!copied) {
        bool isNorm = update.clips && i + 1 == update.getNumOperands();
        copied = (isNorm ? copyNorm(*operand, update)
                         : block.insertBefore(&update, makeCopy(OpKind::Offload, operand, update)))
                     ->getResult();
      }
      update.setOperand(i, copied);
    }
    Value *param = update.getOperand(0);
    if (isOnHost(*param))
      return;
    Value *result = update.getNumResults() ? update.getResult() : addResult(update, *param, MemorySpace::Host);
    result->type.space = MemorySpace::Host;
    std::vector<Use> uses = result->getUses().vec();
    Op *fetch = block.insertAfter(&update, makeCopy(OpKind::Fetch, result, update));
    for (auto [user, operand] : uses)
      user->setOperand(operand, fetch->getResult());
    if (!uses.empty())
      return;
    auto write = std::make_unique<Op>(OpKind::Write, update.loc);
    write->scope = update.scope;
    write->virtualStage = update.virtualStage;
    write->addOperand(param);
    write->addOperand(fetch->getResult());
    block.insertAfter(fetch, std::move(write));
  }

  Graph &graph;
  DiagnosticEngine &diags;
  const Stream *loads = nullptr;
  llvm::DenseMap<const Op *, unsigned> position; ///< In the program, before this pass.
  llvm::DenseMap<const Value *, Value *> onHost;
};
} // namespace

void stage::offloadState(Graph &graph, DiagnosticEngine &diags) {
  const Rule *optimizer = nullptr, *parameters = nullptr;
  for (const Rule &rule : graph.rules)
    if (rule.kind == RuleKind::OffloadOptimizer)
      optimizer = &rule;
    else if (rule.kind == RuleKind::OffloadParameters)
      parameters = &rule;
  if (!graph.training)
    optimizer = nullptr;
  if (optimizer || parameters)
    StateOffload(graph, diags).run(optimizer, parameters);
}
