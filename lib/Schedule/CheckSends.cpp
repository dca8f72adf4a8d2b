//===- CheckSends.cpp - schedules whose sends wait for their recv ---------===//
//
// Problem: a schedule may finish with sends that are buffered and hang where a send waits
// for its recv, as in simulators that meet both (stage-trace verify runs traces either
// way). Traces have one chain of sends and collectives per rank, in the order of the
// program, and post a recv one unit ahead (ClassLowering.h).
//
//   stage 0: F0 F1 F2 B2 ..    F0's message waits for stage 1 to be one before F0,
//   stage 1: F2 B2 F1 B1 F0    which waits for F2's message, which waits behind F0's
//
// Algorithm: each stage has two places in its list, the next unit to run and the next
// message to send. A unit runs when its message has come and, if it communicates in
// groups of ranks, all messages before it are gone; a message goes when the one before it
// is gone and its receiver has come to the unit that its recv is posted in. What moves
// wakes whom it may let go on: linear in the units. No order of moves takes a way from
// another, so that who is stuck does not depend on it.
//
//===----------------------------------------------------------------------===//
#include "Execution.h"
#include "stage/Schedule/Diagnostics.h"
#include <numeric>

using namespace stage;

namespace {
class SendChecker {
public:
  SendChecker(const Schedule &schedule, llvm::function_ref<UnitWork(unsigned, const Unit &)> work)
      : schedule(schedule), places(invertPlacement(schedule)), work(work),
        units(size_t(schedule.getNumVirtualStages()) * schedule.microbatches * 2), loaders(schedule.stages),
        run(schedule.stages, 0), sent(schedule.stages, 0) {
    for (unsigned stage = 0; stage < schedule.stages; ++stage) {
      unsigned loader = 0; // the unit in which the recv of the current one is posted
      for (unsigned position = 0; position < schedule.units[stage].size(); ++position) {
        const Unit &unit = schedule.units[stage][position];
        if (hasMessages(unit.kind))
          find(schedule.getVirtualStage(unit.chunk, stage), unit) = {stage, position};
        loaders[stage].push_back(loader);
        if (work(stage, unit) != UnitWork::Nothing)
          loader = position;
      }
    }
    awake.resize(schedule.stages);
    std::iota(awake.rbegin(), awake.rend(), 0);
    while (!awake.empty()) {
      unsigned stage = awake.back();
      awake.pop_back();
      advance(stage);
    }
  }

  bool check(DiagnosticEngine &diags) {
    for (unsigned stage = 0; stage < schedule.stages; ++stage)
      if (sent[stage] < run[stage]) {
        report(stage, diags);
        return false;
      }
    return true;
  }

private:
  /// Forward and what makes the input gradients of a microbatch on a virtual stage.
  UnitRef &find(unsigned virtualStage, const Unit &unit) {
    return units[(size_t(virtualStage) * schedule.microbatches + unit.microbatch) * 2 +
                 (unit.kind == PhaseKind::Forward)];
  }

  /// The unit that a unit's message goes to (`step` 1) or comes from (-1).
  std::optional<UnitRef> getOther(UnitRef ref, int step) {
    const Unit &unit = schedule.get(ref);
    if (!hasMessages(unit.kind))
      return std::nullopt;
    bool forward = unit.kind == PhaseKind::Forward;
    int64_t other = int64_t(schedule.getVirtualStage(unit.chunk, ref.stage)) + (forward ? step : -step);
    if (other < 0 || other >= int64_t(places.size()))
      return std::nullopt;
    return find(unsigned(other), unit);
  }
  std::optional<UnitRef> getReceiver(UnitRef ref) { return getOther(ref, 1); }
  std::optional<UnitRef> getSender(UnitRef ref) { return getOther(ref, -1); }

  unsigned getLoader(UnitRef ref) const { return loaders[ref.stage][ref.position]; }
  /// The message that the unit needs has not come.
  bool lacksMessage(UnitRef ref) {
    std::optional<UnitRef> sender = getSender(ref);
    return sender && sent[sender->stage] <= sender->position;
  }

  void advance(unsigned stage) {
    while (true) {
      for (; sent[stage] < run[stage]; ++sent[stage])
        if (std::optional<UnitRef> receiver = getReceiver({stage, sent[stage]})) {
          if (run[receiver->stage] < getLoader(*receiver))
            break;
          awake.push_back(receiver->stage);
        }
      UnitRef next = {stage, run[stage]};
      if (next.position == schedule.units[stage].size() || lacksMessage(next))
        return;
      if (work(stage, schedule.get(next)) == UnitWork::ComputesAndCommunicates && sent[stage] < run[stage])
        return;
      ++run[stage];
      postRecvs(stage);
    }
  }

  /// The stage has come to a unit: who sends to the units of which it is the loader can go on.
  void postRecvs(unsigned stage) {
    llvm::ArrayRef<unsigned> of = loaders[stage];
    for (unsigned next = run[stage] + 1; next < of.size() && of[next] == run[stage]; ++next)
      if (std::optional<UnitRef> sender = getSender({stage, next}))
        awake.push_back(sender->stage);
  }

  //===--------------------------------------------------------------------===//
  // Messages
  //===--------------------------------------------------------------------===//

  SMLoc place(UnitRef ref) const {
    SMLoc loc = schedule.get(ref).loc;
    return loc.isValid() ? loc : schedule.loc;
  }

  /// Follows who waits for whom from a message that does not go until it comes back, and shows the circle.
  void report(unsigned stage, DiagnosticEngine &diags) {
    // What is waited for: a message of a stage that has not gone, or else its next unit.
    std::vector<std::pair<unsigned, bool>> way = {{stage, true}};
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
    for (auto [at, isMessage] : way) {
      UnitRef unit = {at, isMessage ? sent[at] : run[at]};
      if (!message)
        message.emplace(diags.report(place(unit), diag::ScheduleSendsStuck));
      else
        message->note(place(unit), isMessage ? diag::ScheduleSendWaits : diag::ScheduleWaits);
      UnitRef other = isMessage ? *getReceiver(unit) : getSender(unit).value_or(unit);
      if (!isMessage && !lacksMessage(unit))
        other = {at, sent[at]}; // its collectives wait for that unit's message
      *message << at << schedule.get(unit).str() << unit.position << schedule.get(other).str() << other.stage
               << (isMessage ? getLoader(other) : other.position);
    }
  }

  std::pair<unsigned, bool> follow(std::pair<unsigned, bool> waiting) {
    auto [stage, isMessage] = waiting;
    if (isMessage)
      return {getReceiver({stage, sent[stage]})->stage, false};
    UnitRef next = {stage, run[stage]};
    if (!lacksMessage(next))
      return {stage, true};
    UnitRef sender = *getSender(next);
    return {sender.stage, sender.position < run[sender.stage]};
  }

  const Schedule &schedule;
  std::vector<std::pair<unsigned, unsigned>> places;
  llvm::function_ref<UnitWork(unsigned, const Unit &)> work;
  std::vector<UnitRef> units;
  std::vector<std::vector<unsigned>> loaders; ///< Per stage and position.
  std::vector<unsigned> run, sent;            ///< Per stage: units that have run, and whose messages have gone.
  std::vector<unsigned> awake;
};
} // namespace

bool stage::checkSends(const Schedule &schedule, llvm::function_ref<UnitWork(unsigned, const Unit &)> work,
                       DiagnosticEngine &diags) {
  return SendChecker(schedule, work).check(diags);
}
