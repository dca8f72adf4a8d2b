//===- LinkPools.cpp - prefill and decode on ranks of their own -----------===//
//
// Problem: one job prefills caches, another one, of the same model on other ranks, goes on with
// them. What the first has left has to be sent before a step reads it.
//
//   prefill   forward { loop layers [0, 2); send %keys @0; send %keys @1 }      F0 F1 F2 F3
//   (in chunks: forward { loop layers [0, 2) }  decode { send %keys @0; .. }                        F0 F1 D1 F2 F3 D3)
//   decode    forward { recv %keys @0; recv %keys @1 }  decode { ... }          F0 F1 D0 D1 D2 ...
//
// Algorithm: caches of both jobs are paired by their path and iteration. Each is sent by the pipeline stage
// that fills it to the one that reads it: a Channel. They are sent at the end of the list of a unit's nodes, on a
// stream of their own, after nothing but what fills them: the first layer's while the second is computed. The job that
// decodes gets a unit of forward per batch, in front of all others, which only receives; it belongs to the microbatch
// of the first step of the batch, whose readers wait for it. Exchanges are found once for all caches that are sharded
// alike and move between the same stages. What the prefill samples moves as a cache does, and what the first steps look
// up waits for it. Where a cache is sent by one of several ranks that hold the same, another one sends the next cache.
//
// L13: the units of prefill wait for nothing of the other job, and recvs are posted from the beginning, so all sends
// finish.
//
// Limits: a cache belongs to one stage.
//
//===----------------------------------------------------------------------===//
#include "stage/Transforms/pipeline/LinkPools.h"
#include "sharding/MergeCollectives.h"
#include "stage/IR/graph/Costs.h"
#include "stage/Schedule/InferenceSymbols.h"
#include "stage/Transforms/Diagnostics.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace stage;

namespace {
/// A cache, of one iteration of its repeat.
struct KeptCache {
  Value *value = nullptr;
  unsigned stage = 0;
  bool isOnSeveral = false; ///< Stages.
};
/// By path and iteration, in the order in which units use them.
using KeptCaches = llvm::MapVector<std::pair<const char *, int64_t>, KeptCache>;

class PoolLinker {
public:
  PoolLinker(PoolHandover handover, DiagnosticEngine &diags) : handover(std::move(handover)), diags(diags) {}

  std::unique_ptr<LinkedProgram> run() {
    Program &from = *handover.prefill, &to = *handover.decode;
    from.firstRank = 0;
    to.firstRank = from.graph->mesh.getNumRanks();
    KeptCaches filled = listCaches(from, PhaseKind::Forward), read = listCaches(to, PhaseKind::Decode);
    if (read.empty()) {
      diags.report(handover.loc, diag::PoolsWithoutCaches);
      return nullptr;
    }
    if (handover.chunks > 1)
      startSending(from);
    startReceiving(to);
    // Sends of caches run beside all that the ranks compute and what else they send.
    stream = addStream(*from.graph, "caches", StreamKind::Communication);
    startTurns(filled);
    for (auto &[key, cache] : read)
      if (!addChannel(key.second, filled, cache))
        return nullptr;
    if (!addTokens())
      return nullptr;
    linked->parts.push_back(std::move(handover.prefill));
    linked->parts.push_back(std::move(handover.decode));
    return std::move(linked);
  }

private:
  bool refuse(const Value &cache, const llvm::StringRef why) {
    DiagnosticBuilder message = diags.report(handover.loc, diag::CacheNotSent) << describe(cache) << why;
    message.note(cache.loc, diag::CacheDeclaredHere);
    return false;
  }

  /// Paths of both graphs as one address each.
  const char *intern(const std::string &path) { return paths.try_emplace(path).first->first.c_str(); }

  /// The caches that units of a kind fill or read.
  KeptCaches listCaches(const Program &program, PhaseKind kind) {
    KeptCaches caches;
    for (const StageProgram &stage : program.stages)
      if (const UnitTemplate *unit = stage.find(kind, 0))
        for (const ProgramItem &item : unit->items) {
          if (item.kind == ProgramItem::Kind::Op)
            addUsed(*item.op, -1, stage.stage, caches);
          if (item.kind != ProgramItem::Kind::Loop)
            continue;
          for (int64_t n = 0; n < item.getNumIterations(); ++n)
            for (auto &op : item.op->getBody(item.getIteration(n)))
              addUsed(*op, item.getIteration(n), stage.stage, caches);
        }
    return caches;
  }

  void addUsed(const Op &op, int64_t iteration, unsigned stage, KeptCaches &caches) {
    for (Value *operand : op.getOperands()) {
      if (!operand->getOp() || operand->getOp()->kind != OpKind::Cache)
        continue;
      KeptCache &cache = caches[{intern(operand->path), getLoop(operand) ? iteration : -1}];
      cache.isOnSeveral |= cache.value && cache.stage != stage;
      cache.value = operand;
      cache.stage = stage;
    }
  }

  /// Of batches that are filled in several units, behind the last one of each there is one that only sends. It is of a
  /// phase that a prefill has not: decode.
  void startSending(Program &program) {
    for (StageProgram &stage : program.stages) {
      UnitTemplate &sending = stage.templates.emplace_back();
      sending.kind = PhaseKind::Decode;
      std::vector<Unit> units;
      std::vector<unsigned> places, posts; // of the units that there were
      for (const Unit &unit : stage.units) {
        places.push_back(units.size());
        units.push_back(unit);
        if ((unit.microbatch + 1) % handover.chunks == 0) {
          units.push_back(unit);
          units.back().kind = PhaseKind::Decode;
        }
      }
      for (size_t i = 0; i < stage.posts.size(); ++i) {
        posts.push_back(places[stage.posts[i]]);
        if ((stage.units[i].microbatch + 1) % handover.chunks == 0)
          posts.push_back(posts.back()); // of no recv
      }
      stage.units = std::move(units);
      stage.posts = std::move(posts);
    }
  }

  /// In front of the decode steps, for each batch: units of the first steps are the first ones, in the order of
  /// batches.
  void startReceiving(Program &program) {
    unsigned batches = handover.batches / handover.batchesOfDecode;
    for (StageProgram &stage : program.stages) {
      // What forward would be without another job, no unit runs.
      llvm::erase_if(stage.templates, [](const UnitTemplate &unit) { return unit.kind == PhaseKind::Forward; });
      stage.templates.insert(stage.templates.begin(), UnitTemplate());
      std::vector<Unit> units(stage.units.begin(), stage.units.begin() + batches);
      for (Unit &unit : units)
        unit.kind = PhaseKind::Forward;
      stage.units.insert(stage.units.begin(), units.begin(), units.end());
      for (unsigned &post : stage.posts)
        post += batches;
      stage.posts.insert(stage.posts.begin(), stage.posts.empty() ? 0 : batches, 0);
    }
  }

  /// Caches of one path, which are of one size, are sent in turn; those of the next one begin where these end.
  void startTurns(const KeptCaches &filled) {
    for (auto &[key, cache] : filled)
      ++turns[{cache.stage, cache.value->path}];
    unsigned next = 0, stage = 0;
    for (auto &[place, turn] : turns) {
      if (std::exchange(stage, place.first) != place.first)
        next = 0;
      next += std::exchange(turn, next);
    }
  }

  /// Nothing where the two have the same sizes, but for positions and for rows of several batches.
  std::string findDifference(const Value &held, const Value &needed, unsigned &batchDim) {
    const TensorType &has = held.type, &wants = needed.type;
    bool isKeptAlike = has.quantization && wants.quantization ? *has.quantization == *wants.quantization
                                                              : has.quantization == wants.quantization;
    if (has.dtype != wants.dtype || !isKeptAlike || has.getNumDims() != wants.getNumDims())
      return isKeptAlike
                 ? ("its elements are " + getName(has.dtype) + " there, and " + getName(wants.dtype) + " here").str()
                 : std::string("it is quantized ") +
                       (!wants.quantization ? "there and not here"
                        : !has.quantization ? "here and not there"
                                            : "otherwise here and there") +
                       "; give both strategies the same 'quantize'";
    std::optional<unsigned> along;
    for (auto [user, operand] : needed.getUses())
      if (user->kind == OpKind::Append && operand == 0)
        along = user->dim;
    bool hasBatch = false;
    for (unsigned d = 0; d < has.getNumDims(); ++d) {
      if (d == along)
        continue;
      SizeValue left = evaluateCount(has.shape[d].size, held.getBlock()->getGraph().binding);
      SizeValue right = evaluateCount(wants.shape[d].size, needed.getBlock()->getGraph().binding);
      bool isBatch = has.shape[d].size.getSymbol() == sequencesSymbol;
      if (isBatch)
        batchDim = d;
      hasBatch |= isBatch;
      if (!left || !right || left.value.num * (isBatch ? handover.batchesOfDecode : 1) != right.value.num)
        return "its dim " + std::to_string(d) + " is " + (left ? left.value.str() : "?") + " there, and " +
               (right ? right.value.str() : "?") + " here";
    }
    return hasBatch || handover.batchesOfDecode == 1
               ? ""
               : "it has no dim 'B', and several batches of the prefill are one of the other job";
  }

  bool addChannel(int64_t iteration, KeptCaches &filled, const KeptCache &needed) {
    auto held = filled.find({intern(needed.value->path), iteration});
    if (held == filled.end())
      return refuse(*needed.value, "no unit of the other job fills it");
    if (held->second.isOnSeveral || needed.isOnSeveral)
      return refuse(*needed.value, "several stages of a pipeline use it");
    auto channel = std::make_unique<Channel>();
    channel->output = held->second.value;
    channel->input = needed.value;
    unsigned batchDim = 0;
    if (std::string why = findDifference(*channel->output, *channel->input, batchDim); !why.empty())
      return refuse(*needed.value, why);
    for (auto [user, operand] : channel->output->getUses())
      if ((user->kind == OpKind::Append || user->kind == OpKind::Write) && operand == 0 &&
          user->getBlock()->getPhase() == PhaseKind::Forward)
        channel->filler = user;
    if (!channel->filler)
      return refuse(*needed.value, "no unit of the other job fills it");
    std::string why;
    channel->exchange = findExchange(held->second, needed, batchDim, why);
    if (!why.empty())
      return refuse(*needed.value, why);
    if (std::string left = findRest(*channel->output, *channel->input); !left.empty())
      return refuse(*needed.value, left);
    channel->iteration = iteration;
    return link(std::move(channel), held->second, needed);
  }

  /// Sender and receiver, and their exchange, are known.
  bool link(std::unique_ptr<Channel> channel, const KeptCache &held, const KeptCache &needed) {
    channel->number = linked->channels.size();
    channel->isAtEnd = handover.isAtEnd;
    channel->stream = stream;
    channel->numBatches = handover.batches;
    channel->unitsOfBatch = handover.chunks;
    const Graph &graph = *handover.prefill->graph;
    const Value &output = *channel->output;
    Size bytes = getLocalBytes(graph.sizes, graph.mesh, output.type, output.sharding) /
                 graph.sizes.constant(channel->exchange->numParts);
    SizeValue value = evaluateCount(bytes, graph.binding);
    if (!value) {
      diags.report(handover.loc, diag::SizeWithoutValue) << describe(output) << bytes.str() << int64_t(63);
      return false;
    }
    channel->bytes = int64_t(value.value.num);
    addItem(*handover.prefill, held, ProgramItem::Kind::Send, *channel);
    addItem(*handover.decode, needed, ProgramItem::Kind::Recv, *channel);
    linked->channels.push_back(std::move(channel));
    return true;
  }

  /// What the prefill samples the first steps begin with.
  bool addTokens() {
    Program &from = *handover.prefill, &to = *handover.decode;
    llvm::ArrayRef<Value *> returned = from.graph->getForward().getTerminator()->getOperands();
    KeptCache held;
    held.value = returned.back();
    if (isFloat(held.value->type.dtype))
      return true;
    for (const StageProgram &stage : from.stages)
      forEachOp(stage.find(PhaseKind::Forward, 0)->items, [&](Op &op, int64_t) {
        if (&op == held.value->getOp())
          held.stage = stage.stage;
      });
    for (const StageProgram &stage : to.stages) {
      KeptCache needed;
      needed.stage = stage.stage;
      if (const UnitTemplate *unit = stage.find(PhaseKind::Decode, 0))
        forEachOp(unit->items, [&](Op &op, int64_t) {
          for (Value *operand : op.getOperands())
            if (operand->getOp() && operand->getOp()->isFed)
              needed.value = operand;
        });
      if (needed.value && !addTokens(held, needed))
        return false;
    }
    return true;
  }

  bool addTokens(const KeptCache &held, const KeptCache &needed) {
    auto channel = std::make_unique<Channel>();
    channel->output = held.value;
    channel->input = needed.value;
    channel->isOfTokens = true;
    unsigned batchDim = 0;
    for (unsigned d = 0; d < held.value->type.getNumDims(); ++d)
      if (held.value->type.shape[d].size.getSymbol() == sequencesSymbol)
        batchDim = d;
    std::string why;
    channel->exchange = findExchange(held, needed, batchDim, why);
    return why.empty() ? link(std::move(channel), held, needed) : refuse(*needed.value, why);
  }

  /// Messages are equally long: of positions that the receivers share each gets as many.
  static std::string findRest(const Value &held, const Value &needed) {
    for (unsigned d = 0; d < needed.sharding.dims.size(); ++d)
      for (const PlacedAxis &axis : needed.sharding.dims[d]) {
        SizeValue count = evaluateCount(held.type.shape[d].size, held.getBlock()->getGraph().binding);
        int64_t ranks = needed.getBlock()->getGraph().mesh[axis].size;
        if (axis.isCyclic() && count && count.value.num % ranks)
          return std::to_string(int64_t(count.value.num)) + " positions are not equally many for each of the " +
                 std::to_string(ranks) + " ranks that share them";
      }
    return "";
  }

  /// Caches that are sharded alike and move between the same stages, which share an exchange.
  struct Likeness {
    Sharding held, needed;
    unsigned fromStage, toStage, batchDim;
    std::vector<std::shared_ptr<const Exchange>> exchanges; ///< Of different turns.
    bool operator==(const Likeness &other) const {
      return held == other.held && needed == other.needed && fromStage == other.fromStage && toStage == other.toStage &&
             batchDim == other.batchDim;
    }
  };

  std::shared_ptr<const Exchange> findExchange(const KeptCache &held, const KeptCache &needed, unsigned batchDim,
                                               std::string &why) {
    Likeness wanted{held.value->sharding, needed.value->sharding, held.stage, needed.stage, batchDim};
    auto like = llvm::find(likenesses, wanted);
    if (like == likenesses.end())
      like = likenesses.insert(like, std::move(wanted));
    unsigned turn = turns[{held.stage, held.value->path}]++;
    if (!like->exchanges.empty()) {
      const Exchange &first = *like->exchanges.front();
      turn = first.isEven ? first.turn : turn % first.numCopies;
      for (auto &exchange : like->exchanges)
        if (exchange->turn == turn)
          return exchange;
    }
    auto exchange = std::make_shared<Exchange>();
    exchange->from = handover.prefill.get();
    exchange->to = handover.decode.get();
    exchange->fromStage = held.stage;
    exchange->toStage = needed.stage;
    exchange->batches = handover.batchesOfDecode;
    exchange->batchDim = batchDim;
    exchange->turn = turn;
    why = connect(*exchange, held.value->sharding, needed.value->sharding);
    exchange->turn %= exchange->numCopies;
    like->exchanges.push_back(exchange);
    return exchange;
  }

  void addItem(Program &program, const KeptCache &cache, ProgramItem::Kind kind, const Channel &channel) const {
    ProgramItem item;
    item.kind = kind;
    item.channel = &channel;
    item.values.assign(kind == ProgramItem::Kind::Recv ? channel.exchange->numMessages : 1, cache.value);
    bool isApart = kind == ProgramItem::Kind::Send && handover.chunks > 1;
    for (UnitTemplate &unit : program.stages[cache.stage].templates)
      if (unit.kind == (isApart ? PhaseKind::Decode : PhaseKind::Forward))
        unit.items.push_back(item);
  }

  PoolHandover handover;
  DiagnosticEngine &diags;
  std::unique_ptr<LinkedProgram> linked = std::make_unique<LinkedProgram>();
  const Stream *stream = nullptr;
  std::map<std::string, char> paths;
  std::vector<Likeness> likenesses;
  std::map<std::pair<unsigned, std::string>, unsigned>
      turns; ///< By stage of the sender and path: that of the next cache.
};
} // namespace

std::unique_ptr<LinkedProgram> stage::linkPools(PoolHandover handover, DiagnosticEngine &diags) {
  return PoolLinker(std::move(handover), diags).run();
}
