//===- ShardedRun.cpp - every rank of a program, on one machine -----------===//
#include "ShardedRun.h"
#include "Collectives.h"
#include "stage/IR/graph/Channel.h"
#include "stage/IR/text/Text.h"
#include "stage/Interp/Diagnostics.h"
#include "stage/Walk/Arrivals.h"
#include <cmath>

using namespace stage;
using namespace stage::interp;

ShardedRun::ShardedRun(const Program &program, Sources &sources, const RankMemory &unsharded, const Rounding &rounding,
                       Findings &findings, SendMode mode, PartMail &partMail)
    : program(program), graph(*program.graph), unsharded(unsharded), rounding(rounding), findings(findings), mode(mode),
      runner(graph, sources, unsharded.values, rounding), binding(graph), partMail(partMail) {
  partMail.runs[&program] = this;
  ChainLifetimes lifetimes(graph);
  for (const StageProgram &stage : program.stages) {
    steps.push_back(listSteps(program, stage, lifetimes));
    Arrivals arrivals(graph, stage);
    for (const Step &step : steps.back())
      if (step.kind == Step::Kind::Receive && step.channel)
        transferUnits[{step.channel->number, step.microbatch}] = arrivals.getPost(step.unit);
      else if (step.kind == Step::Kind::Receive)
        receiveUnits[{step.peer, step.self, step.microbatch}] = arrivals.getPost(step.unit);
  }
  int64_t numRanks = graph.mesh.getNumRanks();
  position.resize(numRanks);
  memories.resize(numRanks);
  waiting.resize(numRanks);
  arrived.resize(numRanks);
  for (int64_t rank = 0; rank < numRanks; ++rank)
    for (const UnitTemplate &unit : program.stages[getStage(rank)].templates)
      for (const ProgramItem &item : unit.items)
        if (item.kind == ProgramItem::Kind::Loop)
          memories[rank].ranges[item.op->loop].emplace_back(item.begin, item.end);
}

unsigned ShardedRun::getStage(int64_t rank) const {
  return graph.pipeline.axis && program.numStages > 1 ? graph.mesh.getCoordinate(rank, *graph.pipeline.axis) : 0;
}

int64_t ShardedRun::getPeer(int64_t rank, unsigned virtualStage) const {
  int64_t stride = graph.mesh.getStride(*graph.pipeline.axis);
  return rank + (int64_t(program.virtualStages[virtualStage].first) - int64_t(getStage(rank))) * stride;
}

const Step *ShardedRun::getStep(int64_t rank) const {
  const std::vector<Step> &list = steps[getStage(rank)];
  return position[rank] < list.size() ? &list[position[rank]] : nullptr;
}

std::optional<bool> ShardedRun::goRound() {
  bool isMoving = false;
  for (int64_t rank = 0; rank < int64_t(position.size()); ++rank) {
    isMoving |= completeSends(rank);
    while (getStep(rank)) {
      Outcome outcome = advance(rank);
      if (outcome == Outcome::Failed)
        return std::nullopt;
      if (outcome == Outcome::Blocked)
        break;
      isMoving = true;
      completeSends(rank);
    }
  }
  return isMoving;
}

bool ShardedRun::isDone() const {
  for (int64_t rank = 0; rank < int64_t(position.size()); ++rank)
    if (getStep(rank) || !waiting[rank].empty())
      return false;
  return true;
}

bool ShardedRun::run(llvm::ArrayRef<std::unique_ptr<ShardedRun>> parts, DiagnosticEngine &diags) {
  for (bool isMoving = true; isMoving;) {
    isMoving = false;
    for (auto &part : parts) {
      std::optional<bool> moved = part->goRound();
      if (!moved)
        return false;
      isMoving |= *moved;
    }
  }
  for (auto &part : parts)
    if (!part->isDone()) {
      part->reportStuck(diags);
      return false;
    }
  return true;
}

/// A gradient that is still to be reduced over the stages that share a parameter: each stage has its own addend.
static bool isAddendOfStages(const Value *value) {
  return llvm::any_of(value->getUses(), [](const std::pair<Op *, unsigned> &use) {
    const Op *user = use.first;
    bool isSummed = user->kind == OpKind::Compute && isOncePerStep(user->getBlock()->getPhase());
    return !user->stages.empty() ||
           ((isSummed || isMove(user->kind)) && isAddendOfStages(user->getResult(isSummed ? 0 : use.second)));
  });
}

void ShardedRun::compare(const Value *value, const Frame &frame, unsigned microbatch, int64_t rank) {
  // Nothing unsharded corresponds to an addend.
  if (value->sharding.partial || isAddendOfStages(value))
    return;
  Instance instance = getInstance(value, frame, microbatch);
  auto whole = unsharded.values.find(instance);
  auto piece = memories[rank].values.find(getHeldInstance(value, frame, microbatch));
  if (whole != unsharded.values.end() && piece != memories[rank].values.end())
    findings.compare(instance, *piece->second, *whole->second, rounding.get(instance), rank);
}

/// A wrong gradient is that of the first operand: the parameter itself is read, not made. What an update of a shard
/// makes is written, and compared, by another op.
void ShardedRun::compareUpdate(const Step &step, int64_t rank) {
  const Value *param = step.op->getOperand(0), *gradient = step.op->getOperand(1);
  std::pair<const Value *, uint64_t> key = {param, getIteration(param, step.frame)};
  Instance instance = {gradient, key.second, 0};
  RankMemory &memory = memories[rank];
  bool isUpdate = step.op->kind == OpKind::Update;
  if (auto whole = unsharded.gradients.find(key); isUpdate && whole != unsharded.gradients.end())
    findings.compare(instance, *memory.gradients[key], *whole->second, rounding.getGradient(key), rank);
  if (auto whole = unsharded.updated.find(key); !step.op->getNumResults() && whole != unsharded.updated.end())
    findings.compare(instance, *memory.updated[key], *whole->second, rounding.getUpdated(key), rank);
}

ShardedRun::Outcome ShardedRun::finish(std::optional<Fault> fault, int64_t rank, const Step &step) {
  if (fault) {
    findings.fail(std::move(*fault), rank, step.microbatch, step.frame);
    return Outcome::Failed;
  }
  ++position[rank];
  return Outcome::Done;
}

ShardedRun::Outcome ShardedRun::advance(int64_t rank) {
  const Step &step = *getStep(rank);
  RankMemory &memory = memories[rank];
  binding.enter(step.microbatch);
  switch (step.kind) {
  case Step::Kind::Run: {
    if (isCommunication(step.op->kind))
      return runCollectiveStep(rank, step);
    if (mode == SendMode::Waiting)
      return finish(std::nullopt, rank, step);
    std::optional<Fault> fault = runner.run(step, rank, memory);
    if (!fault && !isCacheCopy(step.op->kind))
      for (auto &result : step.op->getResults())
        compare(result.get(), step.frame, step.microbatch, rank);
    if (!fault && (step.op->kind == OpKind::Update ||
                   (step.op->kind == OpKind::Write && step.op->getOperand(0)->getOp()->kind == OpKind::Param)))
      compareUpdate(step, rank);
    return finish(std::move(fault), rank, step);
  }
  case Step::Kind::Bind: {
    if (mode == SendMode::Waiting)
      return finish(std::nullopt, rank, step);
    std::optional<Fault> fault;
    if (runner.isMissing(step.value, step, memory)) // what nothing reads need not arrive; else its reader says so
      return finish(std::nullopt, rank, step);
    TensorRef tensor = runner.read(step.value, step, rank, memory, fault);
    if (!fault)
      fault = runner.store(step.to, step.toFrame, step.microbatch, tensor, rank, memory, step.op);
    if (const Op *maker = fault ? nullptr : step.value->getOp(); maker && isGatherOfMessage(*maker))
      compare(step.to, step.toFrame, step.microbatch, rank);
    return finish(std::move(fault), rank, step);
  }
  case Step::Kind::Free: {
    Instance instance = getHeldInstance(step.value, step.frame, step.microbatch);
    if (memory.values.erase(instance))
      memory.freed.insert(instance);
    return finish(std::nullopt, rank, step);
  }
  case Step::Kind::Send:
    return send(rank, step);
  case Step::Kind::Receive:
    return receive(rank, step);
  }
  return Outcome::Blocked;
}

ShardedRun::Outcome ShardedRun::runCollectiveStep(int64_t rank, const Step &step) {
  std::vector<int64_t> group = getGroup(graph, *step.op, rank);
  if (!llvm::is_contained(group, rank)) // restricted to other stages
    return finish(Fault{step.op, step.op->getOperand(0), "is reduced over stages that this rank is not of"}, rank,
                  step);
  llvm::SmallVector<const Step *, 8> theirs;
  for (int64_t member : group) {
    const Step *other = getStep(member);
    if (!other || other->op != step.op || other->frame != step.frame || other->microbatch != step.microbatch)
      return Outcome::Blocked;
    if (!waiting[member].empty())
      return Outcome::Blocked;
    theirs.push_back(other);
  }
  if (mode == SendMode::Waiting) {
    for (int64_t member : group)
      ++position[member];
    return Outcome::Done;
  }
  for (unsigned operand = 0; operand < step.op->getNumOperands(); ++operand) {
    std::vector<TensorRef> inputs;
    for (size_t i = 0; i < group.size(); ++i) {
      std::optional<Fault> fault;
      inputs.push_back(runner.read(step.op->getOperand(operand), *theirs[i], group[i], memories[group[i]], fault));
      if (fault)
        return finish(std::move(fault), group[i], step);
    }
    std::optional<std::vector<Tensor>> results = runCollective(graph, *step.op, operand, inputs);
    if (!results)
      return finish(
          Fault{step.op, step.op->getOperand(operand), "has pieces on the members of the group that do not fit"}, rank,
          step);
    const Value *result = step.op->getResult(operand);
    for (size_t i = 0; i < group.size(); ++i) {
      auto fault = runner.store(result, step.frame, step.microbatch, std::make_shared<Tensor>(std::move((*results)[i])),
                                group[i], memories[group[i]], step.op);
      if (fault)
        return finish(std::move(fault), group[i], step);
      compare(result, step.frame, step.microbatch, group[i]);
    }
  }
  for (int64_t member : group)
    ++position[member];
  return Outcome::Done;
}

ShardedRun::Outcome ShardedRun::send(int64_t rank, const Step &step) {
  const Channel *channel = step.channel;
  llvm::ArrayRef<Exchange::Receiver> receivers =
      channel ? listReceivers(*channel, step, rank) : llvm::ArrayRef<Exchange::Receiver>();
  unsigned numMessages = channel ? receivers.size() : 1;
  int64_t peer = channel ? -1 : getPeer(rank, step.peer);
  if (mode == SendMode::Waiting && peer != rank) {
    for (unsigned i = 0; i < numMessages; ++i)
      waiting[rank].push_back({&step, i});
    return finish(std::nullopt, rank, step);
  }
  std::optional<Fault> fault;
  TensorRef tensor = mode == SendMode::Waiting ? nullptr : runner.read(step.value, step, rank, memories[rank], fault);
  if (!channel)
    mail[{rank, peer, step.self, step.peer, step.microbatch, step.slot}] = tensor;
  for (unsigned i = 0; channel && !fault && i < numMessages; ++i) {
    auto [receiver, message] = receivers[i];
    if (channel->isOfCache()) {
      fault = sendCache(*channel, step, *tensor, receivers[i]);
      continue;
    }
    auto wanted =
        PieceMap(*channel->getTo().graph).getPositions(channel->input->type, channel->input->sharding, receiver);
    for (unsigned d = 0; wanted && d < wanted->size(); ++d) // in ascending order, both
      llvm::erase_if((*wanted)[d], [&](int64_t position) {
        return !std::binary_search(tensor->dims[d].begin(), tensor->dims[d].end(), position);
      });
    std::optional<Tensor> piece = wanted ? extract(*tensor, *wanted) : std::nullopt;
    if (piece && (int64_t(piece->data.size()) * getBitSize(step.value->type.dtype) + 7) / 8 == channel->bytes)
      partMail.messages[{channel->number, step.microbatch, receiver, message}] =
          std::make_shared<Tensor>(std::move(*piece));
    else
      fault = Fault{nullptr, step.value,
                    "has not what rank " + std::to_string(receiver) + " of " + channel->getTo().graph->name +
                        " needs of it"};
  }
  return finish(std::move(fault), rank, step);
}

bool ShardedRun::hasPosted(const Channel &channel, unsigned microbatch, int64_t rank) const {
  if (channel.isOfCache()) // from the beginning
    return true;
  auto unit = transferUnits.find({channel.number, microbatch});
  const Step *now = getStep(rank);
  return !now || unit == transferUnits.end() || now->unit >= unit->second;
}

bool ShardedRun::completeSends(int64_t rank) {
  bool any = false;
  for (; !waiting[rank].empty(); waiting[rank].pop_front(), any = true) {
    const Step &step = *waiting[rank].front().step;
    if (const Channel *channel = step.channel) {
      auto [receiver, message] = listReceivers(*channel, step, rank)[waiting[rank].front().receiver];
      if (!partMail.runs.lookup(&channel->getTo())->hasPosted(*channel, step.microbatch, receiver))
        return any;
      partMail.messages[{channel->number, getReceivingMicrobatch(*channel, step), receiver, message}] = nullptr;
      continue;
    }
    int64_t peer = getPeer(rank, step.peer);
    const Step *theirs = getStep(peer);
    auto unit = receiveUnits.find({step.self, step.peer, step.microbatch});
    if (theirs && unit != receiveUnits.end() && theirs->unit < unit->second)
      return any;
    mail[{rank, peer, step.self, step.peer, step.microbatch, step.slot}] = nullptr;
  }
  return any;
}

/// What has arrived, put where it belongs: where nothing does, no number is.
TensorRef ShardedRun::join(const Channel &channel, int64_t rank) {
  auto whole =
      std::make_shared<Tensor>(*PieceMap(graph).getPositions(channel.input->type, channel.input->sharding, rank));
  std::fill(whole->data.begin(), whole->data.end(), NAN);
  for (const TensorRef &piece : arrived[rank])
    insert(*whole, *piece); // of what the receiver has, as the sender has cut it
  arrived[rank].clear();
  return whole;
}

ShardedRun::Outcome ShardedRun::receive(int64_t rank, const Step &step) {
  TensorRef tensor;
  auto take = [&](auto &messages, auto key) {
    auto it = messages.find(key);
    if (it == messages.end())
      return false;
    tensor = it->second;
    messages.erase(it);
    return true;
  };
  bool isThere =
      step.channel ? take(partMail.messages, std::tuple(step.channel->number, step.microbatch, rank, step.slot))
                   : take(mail, Tag(getPeer(rank, step.peer), rank, step.peer, step.self, step.microbatch, step.slot));
  if (!isThere)
    return Outcome::Blocked;
  if (mode == SendMode::Waiting)
    return finish(std::nullopt, rank, step);
  if (step.channel) {
    arrived[rank].push_back(tensor);
    if (arrived[rank].size() < step.channel->exchange->numMessages)
      return finish(std::nullopt, rank, step);
    if (step.channel->isOfCache())
      return finish(receiveCache(rank, step), rank, step);
    tensor = join(*step.channel, rank);
  }
  auto fault = runner.store(step.value, step.frame, step.microbatch, tensor, rank, memories[rank], nullptr);
  if (!fault)
    compare(step.value, step.frame, step.microbatch, rank);
  return finish(std::move(fault), rank, step);
}

/// "unit 3, all_reduce over tp of 'layers.attn.y'".
static std::string describeWait(const Graph &graph, const Step &step) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "its unit " << step.unit << ", ";
  if (step.kind == Step::Kind::Run) {
    os << getName(step.op->kind) << " over ";
    printAxes(os, graph.mesh, step.op->axes);
    os << " of '" << describe(*step.op->getOperand(0)) << "'";
  } else {
    bool isSend = step.kind == Step::Kind::Send;
    os << (isSend ? "send to " : "receive from ");
    if (step.channel)
      os << "part " << (isSend ? step.channel->getTo() : step.channel->getFrom()).graph->name;
    else
      os << "virtual stage " << step.peer;
    os << " of '" << describe(*step.value) << "', microbatch " << step.microbatch;
  }
  return os.str();
}

void ShardedRun::reportStuck(DiagnosticEngine &diags) const {
  std::optional<DiagnosticBuilder> error;
  unsigned shown = 0;
  for (int64_t rank = 0; rank < int64_t(position.size()) && shown < 8; ++rank) {
    const Step *step = waiting[rank].empty() ? getStep(rank) : waiting[rank].front().step;
    if (!step)
      continue;
    ++shown;
    if (!error) {
      error.emplace(diags.report(step->op ? step->op->loc : graph.pipeline.loc, diag::ProofStuck)
                    << (mode == SendMode::Waiting ? "wait for their recv" : "do not wait for their recv") << rank
                    << describeWait(graph, *step));
    } else {
      error->note(SMLoc(), diag::ProofRankWaits) << rank << describeWait(graph, *step);
    }
  }
}
