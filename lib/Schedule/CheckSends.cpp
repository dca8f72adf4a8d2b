//===- CheckSends.cpp - schedules whose sends wait for their recv ---------===//
//
// Problem: a schedule may finish with sends that are buffered and hang where a send waits
// for its recv, as in simulators that meet both (stage-trace verify runs traces either
// way). Traces have one chain of sends and collectives per rank, in the order of the
// program, and post a recv one unit ahead (stage/Walk/Arrivals.h). Where chunks take turns that
// may be too late: a chunk's message stands before another's that is needed earlier. Then
// a recv is posted when its message is sent, were all units as long as each other: what a
// send waits for has then happened in an execution that finishes. That takes memory, and
// neighbours that take microbatches in the same order:
//
//   stage 0: F0 F1 F2 B2 ..    F0's message waits for stage 1 to be one before F0,
//   stage 1: F2 B2 F1 B1 F0    which waits for F2's message, which waits behind F0's
//
// Algorithm: each stage has two places in its list, the next unit to run and the next
// message to send. A unit, or a pair of them, runs when its messages have come and, if it communicates in
// groups of ranks, all messages before it are gone; a message goes when the one before it
// is gone and its receiver has come to the unit that its recv is posted in. What moves
// wakes whom it may let go on: linear in the units. No order of moves takes a way from
// another, so that who is stuck does not depend on it. Where several parts send each other
// messages their stages stand in one row.
//
//===----------------------------------------------------------------------===//
#include "Execution.h"
#include "stage/Schedule/Diagnostics.h"
#include <deque>
#include <numeric>

using namespace stage;

namespace {
/// The stages of all parts, in one row.
class SendChecker {
public:
  using Communicates = llvm::function_ref<bool(unsigned part, unsigned stage, const Unit &unit)>;

  SendChecker(llvm::ArrayRef<PartSchedule> parts, llvm::ArrayRef<UnitMessage> messages, Communicates communicates) {
    std::vector<unsigned> firstStages;
    for (unsigned part = 0; part < parts.size(); ++part) {
      firstStages.push_back(stages.size());
      for (unsigned stage = 0; stage < parts[part].schedule.stages; ++stage) {
        std::string name = std::to_string(stage);
        addStage(parts[part], stage, parts.size() > 1 ? name + " of " + parts[part].name : name,
                 [&](const Unit &unit) { return communicates(part, stage, unit); });
      }
      addPipeline(parts[part].schedule, firstStages.back());
    }
    for (const UnitMessage &message : messages) {
      auto place = [&](const UnitMessage::End &end) {
        return UnitRef{firstStages[end.part] + end.unit.stage, end.unit.position};
      };
      add(place(message.sender), place(message.receiver));
    }
    auto isEarlier = [](const Message &a, const Message &b) { return a.position < b.position; };
    for (Stage &stage : stages)
      if (!llvm::is_sorted(stage.messages, isEarlier)) // one pipeline alone gives them in this order
        llvm::stable_sort(stage.messages, isEarlier);
    for (unsigned stage = 0; stage < stages.size(); ++stage)
      for (unsigned number = 0; number < stages[stage].messages.size(); ++number) {
        UnitRef receiver = stages[stage].messages[number].receiver;
        stages[receiver.stage].arriving[receiver.position].push_back({stage, number});
      }
    run();
  }

  /// A stage that is stuck with a message.
  std::optional<unsigned> findStuck() const {
    for (unsigned number = 0; number < stages.size(); ++number)
      if (hasWaiting(stages[number]))
        return number;
    return std::nullopt;
  }
  bool check(DiagnosticEngine &diags) {
    std::optional<unsigned> stuck = findStuck();
    if (stuck)
      report(*stuck, diags);
    return !stuck;
  }

private:
  struct Message {
    unsigned position; ///< Of the unit that sends it.
    UnitRef receiver;
  };
  /// A message by its stage and its number there.
  using MessageRef = std::pair<unsigned, unsigned>;
  struct Stage {
    std::string name;
    SMLoc loc;
    llvm::ArrayRef<Unit> units;
    std::vector<bool> communicates;                         ///< Per unit, in groups of ranks.
    std::vector<unsigned> posts;                            ///< Per unit the one in which its recvs are posted.
    std::vector<llvm::SmallVector<unsigned, 1>> postedAt;   ///< Per unit those whose recvs are posted in it.
    std::vector<llvm::SmallVector<MessageRef, 1>> arriving; ///< Per unit.
    std::vector<Message> messages;                          ///< In the order in which they are sent.
    unsigned run = 0, sent = 0;                             ///< Units that have run, messages that have gone.
  };

  void addStage(const PartSchedule &part, unsigned number, std::string name,
                llvm::function_ref<bool(const Unit &)> communicates) {
    Stage &stage = stages.emplace_back();
    stage.name = std::move(name);
    stage.loc = part.schedule.loc;
    stage.units = part.schedule.units[number];
    stage.arriving.resize(stage.units.size());
    stage.postedAt.resize(stage.units.size());
    for (const Unit &unit : stage.units)
      stage.communicates.push_back(communicates(unit));
    stage.posts = part.posts[number];
    for (unsigned &post : stage.posts)
      post = getPairBegin(stage.units, post);
    for (unsigned position = 0; position < stage.units.size(); ++position)
      stage.postedAt[stage.posts[position]].push_back(position);
  }

  void add(UnitRef sender, UnitRef receiver) { stages[sender.stage].messages.push_back({sender.position, receiver}); }

  /// Forward goes up the virtual stages, what makes input gradients down.
  void addPipeline(const Schedule &schedule, unsigned firstStage) {
    // By virtual stage, microbatch, and whether it is forward.
    std::vector<UnitRef> units(size_t(schedule.getNumVirtualStages()) * schedule.microbatches * 2);
    auto find = [&](unsigned virtualStage, const Unit &unit) -> UnitRef & {
      return units[(size_t(virtualStage) * schedule.microbatches + unit.microbatch) * 2 + isForward(unit.kind)];
    };
    auto forEachUnit = [&](llvm::function_ref<void(const Unit &, unsigned, UnitRef)> f) {
      for (unsigned stage = 0; stage < schedule.stages; ++stage)
        for (unsigned position = 0; position < schedule.units[stage].size(); ++position) {
          const Unit &unit = schedule.units[stage][position];
          if (hasMessages(unit.kind))
            f(unit, schedule.getVirtualStage(unit.chunk, stage), {firstStage + stage, position});
        }
    };
    forEachUnit([&](const Unit &unit, unsigned virtualStage, UnitRef ref) { find(virtualStage, unit) = ref; });
    forEachUnit([&](const Unit &unit, unsigned virtualStage, UnitRef ref) {
      auto next = isForward(unit.kind) ? schedule.getNext(virtualStage) : schedule.getPrevious(virtualStage);
      if (!next)
        return;
      // What chunks of one stage hand each other is no message.
      if (UnitRef receiver = find(*next, unit); receiver.stage != ref.stage)
        add(ref, receiver);
    });
  }

  //===--------------------------------------------------------------------===//
  // Moves
  //===--------------------------------------------------------------------===//

  /// A unit that has run has messages that have not gone.
  static bool hasWaiting(const Stage &stage) {
    return stage.sent < stage.messages.size() && stage.messages[stage.sent].position < stage.run;
  }
  unsigned getPost(UnitRef ref) const { return stages[ref.stage].posts[ref.position]; }
  /// A message that the next unit of a stage needs and that has not come.
  std::optional<MessageRef> findLacking(const Stage &stage) const {
    for (unsigned position = stage.run; position < getPairEnd(stage.units, stage.run); ++position)
      for (MessageRef message : stage.arriving[position])
        if (stages[message.first].sent <= message.second)
          return message;
    return std::nullopt;
  }

  void run() {
    awake.resize(stages.size());
    std::iota(awake.rbegin(), awake.rend(), 0);
    while (!awake.empty()) {
      Stage &stage = stages[awake.back()];
      awake.pop_back();
      advance(stage);
    }
  }

  void advance(Stage &stage) {
    while (true) {
      for (; hasWaiting(stage); ++stage.sent) {
        UnitRef receiver = stage.messages[stage.sent].receiver;
        if (stages[receiver.stage].run < getPost(receiver))
          break;
        awake.push_back(receiver.stage);
      }
      if (stage.run == stage.units.size() || findLacking(stage))
        return;
      unsigned end = getPairEnd(stage.units, stage.run); // a pair runs as one unit
      auto first = stage.communicates.begin();
      if (hasWaiting(stage) && std::find(first + stage.run, first + end, true) != first + end)
        return;
      stage.run = end;
      postRecvs(stage);
    }
  }

  /// The stage has come to a unit: who sends what is received from now on can go on.
  void postRecvs(const Stage &stage) {
    if (stage.run == stage.units.size())
      return;
    for (unsigned run = stage.run; run < getPairEnd(stage.units, stage.run); ++run)
      for (unsigned position : stage.postedAt[run])
        for (MessageRef message : stage.arriving[position])
          awake.push_back(message.first);
  }

  //===--------------------------------------------------------------------===//
  // Messages
  //===--------------------------------------------------------------------===//

  SMLoc place(UnitRef ref) const {
    SMLoc loc = stages[ref.stage].units[ref.position].loc;
    return loc.isValid() ? loc : stages[ref.stage].loc;
  }

  /// Follows who waits for whom from a message that does not go until it comes back, and shows the circle.
  void report(unsigned number, DiagnosticEngine &diags) {
    // What is waited for: a message of a stage that has not gone, or else its next unit.
    std::vector<std::pair<unsigned, bool>> way = {{number, true}};
    size_t first;
    while (true) {
      std::pair<unsigned, bool> next = follow(way.back());
      first = llvm::find(way, next) - way.begin();
      if (first < way.size())
        break;
      way.push_back(next);
    }
    way.erase(way.begin(), way.begin() + first);
    // It begins with a message: without one, units would wait for each other with buffered sends, too.
    std::rotate(way.begin(), llvm::find_if(way, [](auto &waiting) { return waiting.second; }), way.end());
    std::optional<DiagnosticBuilder> message;
    for (auto [at, isSend] : way) {
      const Stage &stage = stages[at];
      UnitRef unit = {at, isSend ? stage.messages[stage.sent].position : stage.run};
      UnitRef other;
      if (isSend)
        other = stage.messages[stage.sent].receiver;
      else if (std::optional<MessageRef> lacking = findLacking(stage))
        other = {lacking->first, stages[lacking->first].messages[lacking->second].position};
      else // its collectives wait for that unit's message
        other = {at, stage.messages[stage.sent].position};
      auto complete = [&](auto &&opened) -> decltype(auto) {
        return opened.with(stage.name, stage.units[unit.position].str(), unit.position,
                           stages[other.stage].units[other.position].str(), stages[other.stage].name,
                           isSend ? getPost(other) : other.position);
      };
      if (!message)
        message.emplace(complete(diags.report(place(unit), diag::ScheduleSendsStuck)));
      else
        complete(message->note(place(unit), isSend ? diag::ScheduleSendWaits : diag::ScheduleWaits));
    }
  }

  std::pair<unsigned, bool> follow(std::pair<unsigned, bool> waiting) {
    const Stage &stage = stages[waiting.first];
    if (waiting.second)
      return {stage.messages[stage.sent].receiver.stage, false};
    std::optional<MessageRef> lacking = findLacking(stage);
    if (!lacking)
      return {waiting.first, true};
    const Stage &sender = stages[lacking->first];
    return {lacking->first, sender.messages[lacking->second].position < sender.run};
  }

  std::deque<Stage> stages;
  std::vector<unsigned> awake;
};
} // namespace

/// Moves posts forward to where their messages are sent. False if two neighbouring virtual stages take microbatches in
/// different orders.
static bool postWhenSent(const Schedule &schedule, RecvPosts &posts) {
  auto getDuration = [&](UnitRef ref) { return standardDurations[unsigned(schedule.get(ref).kind)]; };
  Execution execution(schedule, getDuration);
  struct Sent {
    unsigned microbatch;
    int64_t time;
  };
  std::vector<std::vector<Sent>> sent(schedule.getNumVirtualStages() * 2); // by virtual stage and direction
  std::vector<std::vector<int64_t>> ends(schedule.stages);
  for (unsigned stage = 0; stage < schedule.stages; ++stage)
    for (unsigned position = 0; position < schedule.units[stage].size(); ++position) {
      const Unit &unit = schedule.units[stage][position];
      ends[stage].push_back(execution.getEnds()[stage][position]);
      if (hasMessages(unit.kind))
        sent[schedule.getVirtualStage(unit.chunk, stage) * 2 + isForward(unit.kind)].push_back(
            {unit.microbatch, ends[stage].back()});
    }
  for (unsigned stage = 0; stage < schedule.stages; ++stage) {
    llvm::DenseMap<unsigned, size_t> received; // by virtual stage and direction, how many
    for (unsigned position = 0; position < schedule.units[stage].size(); ++position) {
      const Unit &unit = schedule.units[stage][position];
      std::optional<Execution::Need> need = execution.getNeed(stage, unit);
      if (!need)
        continue;
      unsigned channel = need->virtualStage * 2 + need->forward;
      const Sent &message = sent[channel][received[channel]++];
      if (message.microbatch != unit.microbatch)
        return false;
      unsigned ended = llvm::upper_bound(ends[stage], message.time) - ends[stage].begin();
      posts[stage][position] = std::min(posts[stage][position], ended);
    }
  }
  return true;
}

std::optional<RecvPosts> stage::postRecvs(const Schedule &schedule, RecvPosts posts,
                                          llvm::function_ref<bool(unsigned, const Unit &)> communicates,
                                          DiagnosticEngine &diags) {
  auto ofPart = [&](unsigned, unsigned stage, const Unit &unit) { return communicates(stage, unit); };
  PartSchedule part = {"", schedule, std::move(posts)};
  SendChecker checker(part, {}, ofPart);
  if (!checker.findStuck() || postWhenSent(schedule, part.posts))
    return std::move(part.posts);
  checker.check(diags);
  return std::nullopt;
}

bool stage::checkSends(llvm::ArrayRef<PartSchedule> parts, llvm::ArrayRef<UnitMessage> messages,
                       llvm::function_ref<bool(unsigned, unsigned, const Unit &)> communicates,
                       DiagnosticEngine &diags) {
  return SendChecker(parts, messages, communicates).check(diags);
}
