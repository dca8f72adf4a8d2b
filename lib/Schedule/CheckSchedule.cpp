//===- CheckSchedule.cpp - what makes a schedule right --------------------===//
//
// Problem: a list of units written by a person, or computed by a formula that is
// wrong for some p and m, must be refused with words that show the mistake.
//
// Example, two stages and one microbatch, with stage 1 the wrong way round:
//
//   stage 0: F0 B0
//   stage 1: B0 F0
//
//   error: stage 1 runs B0 at position 0, before F0 at position 1
//
// Algorithm. First each stage alone: where each unit stands is put into a table, and
// the table is read for units that are missing, double, or in the wrong order. Only a
// schedule without such faults is executed. A stage that gets stuck waits for one
// unit, which stands in the list of a stage that is stuck as well: following who
// waits for whom ends in a cycle, and each cycle is one message.
//
//===----------------------------------------------------------------------===//
#include "Execution.h"
#include "stage/Schedule/Diagnostics.h"
#include "llvm/ADT/BitVector.h"

using namespace stage;

namespace {
/// What a stage can get wrong, each reported once per stage.
enum class Fault { OutOfRange, OtherCopy, Repeats, Misses, MixesBackward, WrongOrder, Overlaps };
constexpr unsigned numFaults = 7;

class Checker {
public:
  Checker(const Schedule &schedule, DiagnosticEngine &diags) : schedule(schedule), diags(diags) {}

  bool run() {
    unsigned errorsBefore = diags.getNumErrors();
    if (!checkPlacement(schedule, diags))
      return false;
    copyOf.assign(schedule.microbatches, 0);
    isKnown.resize(schedule.microbatches);
    if (schedule.units.size() != schedule.stages)
      diags.report(schedule.loc, diag::ScheduleWrongStages) << schedule.units.size() << schedule.stages;
    for (stage = 0; stage < schedule.units.size(); ++stage)
      checkStage();
    if (diags.getNumErrors() == errorsBefore)
      checkProgress();
    return diags.getNumErrors() == errorsBefore;
  }

private:
  static constexpr unsigned absent = ~0u;

  SMLoc place(SMLoc loc) const { return loc.isValid() ? loc : schedule.loc; }

  //===--------------------------------------------------------------------===//
  // One stage
  //===--------------------------------------------------------------------===//

  /// Counts a fault of this stage; true for the first, which is to be reported.
  bool isFirst(Fault fault) { return faults[unsigned(fault)]++ == 0; }

  unsigned &position(PhaseKind kind, unsigned chunk, unsigned microbatch) {
    return positions[(size_t(chunk) * schedule.microbatches + microbatch) * numPhaseKinds + unsigned(kind)];
  }

  void checkStage() {
    std::fill(std::begin(faults), std::end(faults), 0);
    isShifted = false;
    positions.assign(size_t(schedule.chunks) * schedule.microbatches * numPhaseKinds, absent);
    fillPositions();
    for (unsigned chunk = 0; chunk < schedule.chunks; ++chunk)
      for (unsigned microbatch = 0; microbatch < schedule.microbatches; ++microbatch)
        if (isPassed(chunk, microbatch))
          checkMicrobatch(chunk, microbatch);
    // Indices of backward that are shifted leave one microbatch out, and run another one twice.
    if (faults[unsigned(Fault::Repeats)] && !isShifted) {
      const Unit &unit = schedule.units[stage][repeated.second];
      messages[unsigned(Fault::Repeats)].emplace(diags.report(place(unit.loc), diag::ScheduleRepeats)
                                                     .with(stage, unit.str(), repeated.first, repeated.second));
    }
    for (std::optional<DiagnosticBuilder> &message : messages) {
      unsigned more = faults[&message - messages] - 1;
      if (message && more)
        message->note(SMLoc(), diag::ScheduleMore) << more << stage;
      message.reset();
    }
  }

  /// The message of the first fault of a kind on this stage, kept open until it is known how many more there are.
  template <diag::Kind... Missing, typename... Arguments>
  void report(Fault fault, SMLoc loc, diag::Message<Missing...> message, const Arguments &...arguments) {
    if (isFirst(fault))
      messages[unsigned(fault)].emplace(diags.report(place(loc), message).with(stage, arguments...));
  }

  void fillPositions() {
    llvm::ArrayRef<Unit> units = schedule.units[stage];
    for (unsigned i = 0; i < units.size(); ++i) {
      const Unit &unit = units[i];
      if (unit.chunk >= schedule.chunks || unit.microbatch >= schedule.microbatches) {
        report(Fault::OutOfRange, unit.loc, diag::ScheduleOutOfRange, unit.str(), i, schedule.microbatches,
               schedule.chunks);
        continue;
      }
      if (stage == 0 && !isKnown.test(unit.microbatch)) {
        isKnown.set(unit.microbatch);
        copyOf[unit.microbatch] = schedule.getCopy(unit.chunk);
      }
      checkCopy(unit, i);
      checkPair(units, i);
      unsigned &known = position(unit.kind, unit.chunk, unit.microbatch);
      if (known == absent)
        known = i;
      else if (isFirst(Fault::Repeats))
        repeated = {known, i};
    }
  }

  /// Whether a microbatch passes a chunk: its copy is that of the first unit on the first stage.
  bool isPassed(unsigned chunk, unsigned microbatch) const { return schedule.getCopy(chunk) == copyOf[microbatch]; }

  /// A unit of a copy that its microbatch does not pass.
  void checkCopy(const Unit &unit, unsigned at) {
    if (isPassed(unit.chunk, unit.microbatch))
      return;
    report(Fault::OtherCopy, unit.loc, diag::ScheduleOtherCopy, unit.str(), at, unit.microbatch,
           copyOf[unit.microbatch], schedule.getCopy(unit.chunk));
  }

  /// A pair whose units may depend on each other, or of units of one direction.
  void checkPair(llvm::ArrayRef<Unit> units, unsigned at) {
    if (!units[at].overlapsNext)
      return;
    assert(at + 1 < units.size() && !units[at + 1].overlapsNext && "pairs are made of two units");
    const Unit &first = units[at], &second = units[at + 1];
    bool isOfBoth =
        (isForward(first.kind) && isBackward(second.kind)) || (isBackward(first.kind) && isForward(second.kind));
    if (!isOfBoth)
      report(Fault::Overlaps, first.loc, diag::ScheduleOverlapKinds, first.str(), second.str(), at);
    else if (first.microbatch == second.microbatch)
      report(Fault::Overlaps, first.loc, diag::ScheduleOverlapDepends, first.str(), second.str(), at);
  }

  void checkMicrobatch(unsigned chunk, unsigned microbatch) {
    auto find = [&](PhaseKind kind) { return position(kind, chunk, microbatch); };
    if (find(PhaseKind::Decode) == absent && find(PhaseKind::Draft) == absent)
      require(PhaseKind::Forward, chunk, microbatch);
    bool whole = find(PhaseKind::Backward) != absent;
    bool split = find(PhaseKind::BackwardInput) != absent || find(PhaseKind::BackwardWeight) != absent;
    if (whole && split) {
      PhaseKind half = find(PhaseKind::BackwardInput) != absent ? PhaseKind::BackwardInput : PhaseKind::BackwardWeight;
      const Unit &unit = schedule.units[stage][find(half)];
      report(Fault::MixesBackward, unit.loc, diag::ScheduleMixesBackward,
             Unit{PhaseKind::Backward, microbatch, chunk}.str(), unit.str());
    } else if (split) {
      require(PhaseKind::BackwardInput, chunk, microbatch);
      require(PhaseKind::BackwardWeight, chunk, microbatch);
    } else if (schedule.training) {
      require(PhaseKind::Backward, chunk, microbatch);
    }
    PhaseKind input = whole ? PhaseKind::Backward : PhaseKind::BackwardInput;
    bool recomputes = find(PhaseKind::Recompute) != absent;
    requireOrder(PhaseKind::Forward, recomputes ? PhaseKind::Recompute : input, chunk, microbatch);
    if (recomputes)
      requireOrder(PhaseKind::Recompute, input, chunk, microbatch);
    if (split)
      requireOrder(PhaseKind::BackwardInput, PhaseKind::BackwardWeight, chunk, microbatch);
  }

  void require(PhaseKind kind, unsigned chunk, unsigned microbatch) {
    if (position(kind, chunk, microbatch) != absent)
      return;
    if (runsAsManyAsStages()) {
      if (!std::exchange(saysSwapped, true))
        diags.report(place(schedule.units[stage].front().loc), diag::ScheduleSwapped)
            << schedule.stages << schedule.microbatches;
      return;
    }
    const Unit *first = nullptr, *last = nullptr;
    unsigned numBefore = 0; // forwards before the first unit of this kind
    for (const Unit &unit : schedule.units[stage]) {
      numBefore += isForward(unit.kind) && !first;
      if (unit.kind != kind || unit.chunk != chunk)
        continue;
      first = first ? first : &unit;
      last = &unit;
    }
    isShifted = first && microbatch == 0 && first->microbatch > 0 && !isForward(kind);
    if (isShifted && std::exchange(saysShifted, true))
      return; // of another stage
    bool isNew = faults[unsigned(Fault::Misses)] == 0;
    llvm::ArrayRef<Unit> units = schedule.units[stage]; // none, if the stage runs nothing
    const Unit *place = isShifted ? first : last ? last : units.empty() ? nullptr : &units.back();
    report(Fault::Misses, place ? place->loc : SMLoc(), diag::ScheduleMisses, Unit{kind, microbatch, chunk}.str());
    if (!isNew)
      return;
    DiagnosticBuilder &message = *messages[unsigned(Fault::Misses)];
    std::string call = getName(kind).str(), ofChunk = chunk ? ", " + std::to_string(chunk) + ");" : ");";
    unsigned numLast = countLast(kind, chunk);
    if (isShifted)
      message.note(SMLoc(), diag::ScheduleShifted) << call << first->microbatch;
    else if (first && numLast == schedule.microbatches - microbatch)
      message.note(SMLoc(), diag::ScheduleAddLoop)
          << numLast << schedule.microbatches << call + "(i" + ofChunk
          << (numBefore == numLast ? ": the forwards before its first " + call : std::string());
    else
      message.note(SMLoc(), diag::ScheduleAddUnit)
          << call + "(" + (first ? std::to_string(microbatch) : std::string("i")) + ofChunk;
  }

  /// Microbatches at the end of all that have no unit of a kind.
  unsigned countLast(PhaseKind kind, unsigned chunk) {
    unsigned count = 0;
    while (count < schedule.microbatches && position(kind, chunk, schedule.microbatches - 1 - count) == absent)
      ++count;
    return count;
  }

  /// Whether this stage runs exactly as many microbatches as there are stages: a loop ends at the wrong parameter.
  bool runsAsManyAsStages() {
    if (schedule.stages < 2 || schedule.stages >= schedule.microbatches || schedule.chunks != 1)
      return false;
    for (unsigned microbatch = 0; microbatch < schedule.microbatches; ++microbatch)
      for (PhaseKind kind : {PhaseKind::Forward, PhaseKind::Backward})
        if ((position(kind, 0, microbatch) != absent) != (microbatch < schedule.stages))
          return false;
    return true;
  }

  void requireOrder(PhaseKind first, PhaseKind second, unsigned chunk, unsigned microbatch) {
    unsigned i = position(first, chunk, microbatch), j = position(second, chunk, microbatch);
    if (i == absent || j == absent || i < j)
      return;
    const Unit &early = schedule.units[stage][j];
    report(Fault::WrongOrder, early.loc, diag::ScheduleWrongOrder, early.str(), j, schedule.units[stage][i].str(), i);
  }

  //===--------------------------------------------------------------------===//
  // All stages together
  //===--------------------------------------------------------------------===//

  void checkProgress() {
    Execution execution(schedule, [](UnitRef) { return 1; });
    // The walk that came by a stage first; walks are numbered from 1.
    std::vector<unsigned> walkOf(schedule.stages, 0);
    for (unsigned from = 0; from < schedule.stages; ++from) {
      unsigned walk = from + 1, stage = from;
      while (execution.isStuck(stage) && walkOf[stage] == 0) {
        walkOf[stage] = walk;
        stage = getWaitedFor(execution, stage);
      }
      // Back at a stage of this walk: a cycle. At one of another walk: that one's cycle was reported.
      if (execution.isStuck(stage) && walkOf[stage] == walk)
        reportCycle(execution, stage);
    }
  }

  const Unit &getBlocked(const Execution &execution, unsigned stage) const {
    return schedule.units[stage][execution.findBlocked(stage)];
  }

  unsigned getWaitedFor(const Execution &execution, unsigned stage) const {
    return execution.locate(execution.getNeed(stage, getBlocked(execution, stage))->virtualStage).first;
  }

  /// Where the unit stands that a blocked unit needs. It is there: no stage alone is at fault.
  UnitRef findNeeded(const Execution &execution, const Unit &blocked, Execution::Need need) const {
    std::pair<unsigned, unsigned> place = execution.locate(need.virtualStage);
    llvm::ArrayRef<Unit> units = schedule.units[place.first];
    for (unsigned position = 0;; ++position) {
      const Unit &unit = units[position];
      bool makesIt = need.forward ? isForward(unit.kind) : makesInputGradient(unit.kind);
      if (makesIt && unit.chunk == place.second && unit.microbatch == blocked.microbatch)
        return {place.first, position};
    }
  }

  void reportCycle(const Execution &execution, unsigned first) {
    std::optional<DiagnosticBuilder> message;
    std::tuple<unsigned, std::string, std::string> earlier; // a stage, what it should run, and before what
    unsigned stage = first;
    do {
      const Unit &blocked = getBlocked(execution, stage);
      Execution::Need need = *execution.getNeed(stage, blocked);
      UnitRef needed = findNeeded(execution, blocked, need);
      auto complete = [&](auto &&opened) -> decltype(auto) {
        return opened.with(llvm::Twine(stage), blocked.str(), execution.findBlocked(stage), schedule.get(needed).str(),
                           llvm::Twine(needed.stage), needed.position);
      };
      if (!message)
        message.emplace(complete(diags.report(place(blocked.loc), diag::ScheduleStuck)));
      else
        complete(message->note(place(blocked.loc), diag::ScheduleWaits));
      // The cycle ends if the stage runs what is needed before it waits itself.
      const Unit &wanted = schedule.get(needed), &waiting = getBlocked(execution, needed.stage);
      if (isForward(wanted.kind) && !isForward(waiting.kind))
        earlier = {needed.stage, wanted.str(), waiting.str()};
      stage = needed.stage;
    } while (stage != first);
    if (!std::get<1>(earlier).empty())
      message->note(SMLoc(), diag::ScheduleRunEarlier)
          << llvm::Twine(std::get<0>(earlier)) << std::get<1>(earlier) << std::get<2>(earlier);
  }

  const Schedule &schedule;
  DiagnosticEngine &diags;
  unsigned stage = 0;                     ///< The stage that is checked alone.
  std::pair<unsigned, unsigned> repeated; ///< Its first unit that runs twice: both positions.
  bool isShifted = false;                 ///< Its first backward is not that of microbatch 0.
  bool saysShifted = false;
  std::vector<unsigned> positions;
  std::vector<unsigned> copyOf; ///< By microbatch.
  llvm::BitVector isKnown;      ///< Whose copy is known.
  unsigned faults[numFaults];
  bool saysSwapped = false;
  std::optional<DiagnosticBuilder> messages[numFaults];
};
} // namespace

/// Stages by the virtual stage that they hold, of whichever copy.
static std::vector<std::vector<unsigned>> listHolders(const Schedule &schedule) {
  unsigned perCopy = schedule.getNumPerCopy();
  std::vector<std::vector<unsigned>> holders(perCopy);
  for (unsigned stage = 0; stage < schedule.stages; ++stage)
    for (unsigned chunk = 0; chunk < schedule.chunks; ++chunk)
      holders[schedule.getVirtualStage(chunk, stage) % perCopy].push_back(stage);
  return holders;
}

/// `0, 3`.
static std::string listNumbers(llvm::ArrayRef<unsigned> numbers) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(numbers, os);
  return os.str();
}

/// One all_reduce adds up what stages computed for the same parameters: they have all of them in common.
static bool checkCopies(const Schedule &schedule, DiagnosticEngine &diags) {
  std::vector<const std::vector<unsigned> *> known(schedule.stages, nullptr);
  std::vector<std::vector<unsigned>> holders = listHolders(schedule);
  for (unsigned v = 0; v < holders.size(); ++v)
    for (unsigned i = 0; i < holders[v].size(); ++i) {
      unsigned stage = holders[v][i];
      if (i && holders[v][i - 1] == stage) {
        diags.report(schedule.loc, diag::ScheduleCopiesMeet) << stage << v;
        return false;
      }
      if (known[stage] && *known[stage] != holders[v]) {
        diags.report(schedule.loc, diag::ScheduleCopiesOverlap)
            << stage << v << listNumbers(holders[v]) << listNumbers(*known[stage]);
        return false;
      }
      known[stage] = &holders[v];
    }
  return true;
}

bool stage::checkPlacement(const Schedule &schedule, DiagnosticEngine &diags) {
  unsigned numVirtual = schedule.getNumVirtualStages(), errorsBefore = diags.getNumErrors();
  if (schedule.copies == 0 || schedule.chunks % schedule.copies) {
    diags.report(schedule.loc, diag::ScheduleCopies) << schedule.copies << schedule.chunks;
    return false;
  }
  if (schedule.placement.empty() && schedule.copies == 1)
    return true;
  if (!schedule.placement.empty() && schedule.placement.size() != numVirtual) {
    diags.report(schedule.loc, diag::SchedulePlacementSize) << schedule.placement.size() << numVirtual;
    return false;
  }
  unsigned perCopy = schedule.getNumPerCopy();
  llvm::BitVector taken(numVirtual);
  for (unsigned chunk = 0; chunk < schedule.chunks; ++chunk)
    for (unsigned stage = 0; stage < schedule.stages; ++stage) {
      unsigned virtualStage = schedule.getVirtualStage(chunk, stage);
      if (virtualStage >= numVirtual)
        diags.report(schedule.loc, diag::SchedulePlacementRange) << chunk << stage << virtualStage << numVirtual;
      else if (taken.test(virtualStage))
        diags.report(schedule.loc, diag::SchedulePlacementTwice) << virtualStage << chunk << stage;
      else if (unsigned copy = schedule.getCopy(chunk); virtualStage / perCopy != copy)
        diags.report(schedule.loc, diag::SchedulePlacementCopy) << chunk << stage << copy << virtualStage;
      else
        taken.set(virtualStage);
    }
  return diags.getNumErrors() == errorsBefore && (schedule.copies == 1 || checkCopies(schedule, diags));
}

bool stage::checkSchedule(const Schedule &schedule, DiagnosticEngine &diags) { return Checker(schedule, diags).run(); }
