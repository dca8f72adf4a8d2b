//===- LinkParts.cpp - the programs of a workload, linked -----------------===//
//
// Problem: the parts of a workload are compiled each by itself. What they hand each
// other has to be sent by the pipeline stage that makes it, and received by those that
// use it, in an order in which all of them finish.
//
//   transfer Encoder %y to Decoder %x;
//
//   Encoder stage 1   forward { recv; loop; %y = norm(..); send %y to part Decoder stage 0 }
//   Decoder stage 0   forward { recv %x from part Encoder stage 1; %h = linear(%x, %w); .. }
//
// Algorithm: a value is sent at the end of forward of the last virtual stage that makes
// it: each rank of that stage has a piece. Each virtual stage of the receiver that uses the
// input gets a channel of its own, and receives before the first unit of a
// microbatch that uses it; a later one uses what that one keeps. Then all units of all parts
// are run with these messages (checkSends).
//
// Limits: what is sent is made by an op of forward, has one size for all units, and waits for the end
// of its unit.
//
//===----------------------------------------------------------------------===//
#include "stage/Transforms/pipeline/LinkParts.h"
#include "stage/IR/graph/Costs.h"
#include "stage/Schedule/Schedule.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/pipeline/BuildProgram.h"
#include "stage/Walk/Arrivals.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace stage;

namespace {
class Linker {
public:
  Linker(Workload &workload, std::vector<std::unique_ptr<Program>> parts, DiagnosticEngine &diags)
      : workload(workload), diags(diags) {
    linked->parts = std::move(parts);
    int64_t firstRank = 0;
    for (auto &part : linked->parts) {
      part->firstRank = firstRank;
      firstRank += part->graph->mesh.getNumRanks();
    }
  }

  std::unique_ptr<LinkedProgram> run() {
    bool isGood = verifyTransferSizes(workload, diags);
    for (const Transfer &transfer : workload.transfers)
      isGood = isGood && addChannels(transfer);
    return isGood && (linked->channels.empty() || checkUnits()) ? std::move(linked) : nullptr;
  }

private:
  bool refuse(const Transfer &transfer, const llvm::Twine &why) {
    diags.report(transfer.loc, diag::TransferNotSupported) << workload.describe(transfer) << why;
    return false;
  }

  /// The last template of forward that makes all of a value, or hands it on to nobody: its last iteration runs there.
  UnitTemplate *findMaker(Program &program, const Value &value, unsigned &stage) {
    UnitTemplate *found = nullptr;
    for (auto [stageNumber, chunk] : program.virtualStages)
      for (UnitTemplate &unit : program.stages[stageNumber].templates) {
        if (unit.kind != PhaseKind::Forward || unit.chunk != chunk)
          continue;
        for (const ProgramItem &item : unit.items)
          if (item.op == value.getOp() && (item.kind != ProgramItem::Kind::Loop || runsLast(program, item))) {
            found = &unit;
            stage = stageNumber;
          }
      }
    return found;
  }

  static bool runsLast(const Program &program, const ProgramItem &loop) {
    SizeValue count = evaluateCount(loop.op->count, program.graph->binding);
    return count && count.value.num == loop.end;
  }

  static bool uses(const UnitTemplate &unit, const Value &input) {
    bool found = false;
    for (const ProgramItem &item : unit.items) {
      found |= item.kind == ProgramItem::Kind::Send && llvm::is_contained(item.values, &input);
      if (item.op)
        forEachOutsideValue(item, [&](Value *value, Op &user) {
          // What enters a repeat elsewhere arrives here as a message of the pipeline.
          found |= value == &input && !(&user == item.op && receives(unit.items, user));
        });
    }
    return found;
  }

  /// The first templates that use an input, of the chains of a chunk: those of microbatches that run backward in halves
  /// may begin with another one.
  static llvm::SmallVector<UnitTemplate *, 2> findFirstUsers(StageProgram &stage, unsigned chunk, const Value &input) {
    llvm::SmallVector<UnitTemplate *, 2> users;
    for (const UnitChain &chain : stage.listChains().all) {
      auto user = llvm::find_if(chain, [&](const UnitTemplate *unit) {
        return !isOncePerStep(unit->kind) && unit->chunk == chunk && uses(*unit, input);
      });
      if (user == chain.end())
        continue;
      UnitTemplate *found = &stage.templates[*user - stage.templates.data()];
      if (!llvm::is_contained(users, found))
        users.push_back(found);
    }
    return users;
  }

  bool addChannels(const Transfer &transfer) {
    Program &from = *linked->parts[transfer.from], &to = *linked->parts[transfer.to];
    for (const Program *part : {&from, &to})
      if (part->graph->findPhase(PhaseKind::Decode))
        return refuse(transfer, "part '" + part->graph->name + "' has units of decode");
      else if (part->numCopies > 1)
        return refuse(transfer, "part '" + part->graph->name + "' has several copies of its model in its pipeline");
    const Value *output = workload.getOutput(transfer), *input = workload.getInput(transfer);
    if (from.graph->pipeline.environments.size() > 1 || to.graph->pipeline.environments.size() > 1)
      return refuse(transfer, "the units of a part bind symbols, and what is sent has one size for all");
    unsigned fromStage = 0;
    UnitTemplate *maker = findMaker(from, *output, fromStage);
    if (!maker)
      return refuse(transfer, "no pipeline stage makes the first; partition-pipeline says which one runs an op");
    unsigned before = linked->channels.size();
    for (StageProgram &stage : to.stages)
      for (unsigned chunk = 0; chunk < to.numChunks; ++chunk) {
        llvm::SmallVector<UnitTemplate *, 2> users = findFirstUsers(stage, chunk, *input);
        if (users.empty())
          continue;
        auto channel = std::make_unique<Channel>();
        channel->number = linked->channels.size();
        channel->transfer = &transfer;
        auto exchange = std::make_shared<Exchange>();
        exchange->from = &from;
        exchange->to = &to;
        exchange->fromStage = fromStage;
        exchange->toStage = stage.stage;
        channel->output = output;
        channel->input = input;
        if (std::string why = connect(*exchange, output->sharding, input->sharding); !why.empty())
          return refuse(transfer, why);
        channel->exchange = std::move(exchange);
        if (!findBytes(*channel, transfer))
          return false;
        addItem(*maker, ProgramItem::Kind::Send, *channel);
        Message &message = messages.emplace_back();
        message.sender = {transfer.from, fromStage, maker->kind, maker->chunk};
        for (UnitTemplate *user : users) {
          addItem(*user, ProgramItem::Kind::Recv, *channel);
          message.receivers.push_back({transfer.to, stage.stage, user->kind, chunk});
        }
        linked->channels.push_back(std::move(channel));
      }
    return linked->channels.size() > before || refuse(transfer, "no op uses the second");
  }

  bool findBytes(Channel &channel, const Transfer &transfer) {
    const Graph &to = *channel.getTo().graph;
    Size bytes = getLocalBytes(to.sizes, to.mesh, channel.input->type, channel.input->sharding) /
                 to.sizes.constant(channel.exchange->numMessages);
    SizeValue value = evaluateCount(bytes, to.binding);
    if (!value) {
      diags.report(transfer.loc, diag::SizeWithoutValue) << describe(*channel.input) << bytes.str() << int64_t(63);
      return false;
    }
    channel.bytes = int64_t(value.value.num);
    return true;
  }

  static void addItem(UnitTemplate &unit, ProgramItem::Kind kind, const Channel &channel) {
    ProgramItem item;
    item.kind = kind;
    item.channel = &channel;
    if (kind == ProgramItem::Kind::Recv)
      item.values.assign(channel.exchange->numMessages, const_cast<Value *>(channel.input));
    else
      item.values.push_back(const_cast<Value *>(channel.output));
    auto isMessage = [](const ProgramItem &other) { return other.kind == ProgramItem::Kind::Recv; };
    auto where = kind == ProgramItem::Kind::Send ? unit.items.end() : llvm::find_if_not(unit.items, isMessage);
    unit.items.insert(where, std::move(item));
  }

  //===--- L13: the units of all parts, with the messages between them -----===//

  struct Place {
    unsigned part, stage;
    PhaseKind kind;
    unsigned chunk;
    auto operator<=>(const Place &) const = default;
  };
  struct Message {
    Place sender;
    llvm::SmallVector<Place, 1> receivers; ///< A microbatch has units at one of them.
  };

  bool checkUnits() {
    std::vector<PartSchedule> parts;
    for (auto &part : linked->parts) {
      PartSchedule &entry = parts.emplace_back();
      entry.name = part->graph->name;
      entry.schedule = part->getSchedule(/*withStep=*/false);
      for (const StageProgram &stage : part->stages)
        entry.posts.push_back(Arrivals(*part->graph, stage).listPosts());
    }
    // Where each unit of the templates that send and receive is, by microbatch.
    using Ends = std::vector<std::optional<UnitMessage::End>>;
    std::map<Place, Ends> known;
    auto find = [&](const Place &place) -> const Ends & {
      auto [ends, isNew] = known.try_emplace(place, parts[place.part].schedule.microbatches);
      llvm::ArrayRef<Unit> units = parts[place.part].schedule.units[place.stage];
      for (unsigned position = 0; isNew && position < units.size(); ++position)
        if (units[position].kind == place.kind && units[position].chunk == place.chunk)
          ends->second[units[position].microbatch] = {place.part, {place.stage, position}};
      return ends->second;
    };
    std::vector<UnitMessage> sent;
    for (const Message &message : messages)
      for (const Place &place : message.receivers)
        for (auto [sender, receiver] : llvm::zip(find(message.sender), find(place)))
          if (receiver)
            sent.push_back({*sender, *receiver});
    llvm::DenseMap<const UnitTemplate *, bool> groups;
    auto communicates = [&](unsigned part, unsigned stage, const Unit &unit) {
      const UnitTemplate *found = linked->parts[part]->stages[stage].find(unit.kind, unit.chunk);
      auto [known, isNew] = groups.try_emplace(found, false);
      if (isNew)
        known->second = communicatesInGroups(*found);
      return known->second;
    };
    return checkSends(parts, sent, communicates, diags);
  }

  Workload &workload;
  DiagnosticEngine &diags;
  std::unique_ptr<LinkedProgram> linked = std::make_unique<LinkedProgram>();
  std::vector<Message> messages; ///< In the order in which units send them.
};
} // namespace

std::unique_ptr<LinkedProgram> stage::linkParts(Workload &workload, std::vector<std::unique_ptr<Program>> parts,
                                                DiagnosticEngine &diags) {
  return Linker(workload, std::move(parts), diags).run();
}

std::unique_ptr<LinkedProgram> stage::linkParts(Workload &workload, DiagnosticEngine &diags) {
  std::vector<std::unique_ptr<Program>> parts;
  for (auto &graph : workload.parts)
    if (std::unique_ptr<Program> program = buildProgram(*graph, diags))
      parts.push_back(std::move(program));
  return parts.size() == workload.parts.size() ? linkParts(workload, std::move(parts), diags) : nullptr;
}
