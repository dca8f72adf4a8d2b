//===- CompiledUnit.h - the tasks of a unit as numbers ---------*- C++ -*-===//
//
// Problem: a rank runs the same tasks in each of a thousand microbatches. To make each of them, with the list of those
// for which it waits, takes fifty times as long as to find out when it runs.
//
//   unit B7, from task 5204 on:  5204 waits for 5203, 3310    5205 for 5204    5206 for 5205, 3308
//   compiled:                    0 for [a], [b]               1 for 0          2 for 1, [c]
//                                [a] last task of the unit before, [b] number 16 of unit F7, [c] number 14 of it
//
// Units are of one kind if they have the same tasks, which wait for the same tasks of the same related units
// (UnitCompiler.h). Of each kind there is one CompiledUnit: what each task takes, and for which *references* and tasks
// it waits, in flat arrays. A reference is a task of an earlier unit.
//
// When a unit runs is a *run*: times of its references, of the messages that it receives and of its tasks, and for each
// task what decided when it begins. Of these only some references matter, and all that follows is as much later as they
// are:
//
//   [a] 900  [b] 400  [c] 390    0 waits for [a] last; for [b] it would wait only if that ended behind 900
//   another unit: [a] 1700, [b] 1250, [c] 1240    the same run, 800 later
//
// So a run says of each reference and message whether it decided anything, and else up to when it would not. A unit
// whose deciding references are all as much later, and whose others are in time, has that run, to the tick and with the
// same causes. Else it is evaluated, in one pass.
//
// What tasks take beside others (stage/Time/Surcharges.h) may differ from unit to unit of a kind; those that take the
// same have their runs in common (UnitCharges).
//
// Limits: units with collectives of several classes, or permutes to other classes, are evaluated each.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TIME_COMPILEDUNIT_H
#define STAGE_LIB_TIME_COMPILEDUNIT_H

#include "StepRuns.h"
#include "stage/Tasks/ClassTasks.h"
#include "stage/Time/Surcharges.h"
#include <array>
#include <memory>

namespace stage {

struct CompiledUnit;
struct UnitCharges;

/// A wait of the compute stream, which is charged to what it waited for when the unit is placed: some of that is of
/// other units. Or what is the same in each unit that has the run.
struct AccountEntry {
  enum class Kind : uint8_t { Compute, Row, Charge, Bubble, Wait };
  Kind kind;
  uint32_t number = 0;        ///< Compute: of the account; Row, Charge: of the facts of a task.
  int64_t count = 0;          ///< Row.
  Ticks ticks = 0;            ///< All but Wait.
  int32_t cause = 0;          ///< Wait: as UnitRun has it.
  std::optional<Ticks> begin; ///< Wait: nothing: since the last compute task of the units before.
  Ticks end = 0;              ///< Wait.
};

/// What is charged for a unit in each run in which its tasks take the same.
struct FixedEntries {
  std::vector<std::pair<uint32_t, AccountEntry>> entries; ///< By the first task of each.
  std::vector<uint32_t> taxed;                            ///< Compute tasks of the main stream.
};

/// When the tasks of a unit run.
struct UnitRun {
  static constexpr int32_t none = -1;
  const UnitCharges *charges = nullptr; ///< What its tasks take.
  std::vector<Ticks> times;             ///< Ends, by place: of references, messages and tasks.
  std::vector<int32_t> causes; ///< By task: the place for which it waited last; -2 - n: of shared collective n.
  std::vector<std::pair<Ticks, std::optional<ClassTask>>>
      shared;                   ///< Of collectives of several classes: begin and cause.
  std::vector<Ticks> limits;    ///< By reference and message: the latest time at which it decides nothing.
  std::vector<uint8_t> decides; ///< Likewise: something waited for it last.
  uint32_t first = 0;           ///< One that decides.
  Ticks last = 0;               ///< The latest end.
  std::optional<Ticks> free;    ///< When the last compute task of the main stream ends.
  std::vector<AccountEntry> entries;
};

/// What the tasks of a unit take, and the runs in which they take that.
struct UnitCharges {
  llvm::ArrayRef<Ticks> durations;            ///< By task.
  std::vector<Ticks> charged;                 ///< Where they are not those of the unit.
  std::vector<Surcharge> surcharges;          ///< By task; empty: none.
  std::vector<std::unique_ptr<UnitRun>> runs; ///< Found so far, of all classes.
  FixedEntries fixed;                         ///< Once there is a run.

  Surcharge getSurcharge(uint32_t task) const { return surcharges.empty() ? Surcharge() : surcharges[task]; }
};

/// The runs of a unit that a class has had, the last one first.
class KnownRuns {
public:
  /// A known run whose references have these times, and by how much it is later; of other classes the latest ones are
  /// looked at, too.
  std::pair<const UnitRun *, Ticks> find(llvm::ArrayRef<Ticks> times, const UnitCharges &charges);
  void add(const UnitRun &run) { own.insert(own.begin(), &run); }

private:
  std::vector<const UnitRun *> own;
};

struct CompiledUnit {
  /// A task of an earlier unit. `unit`: in the list of related units; nothing: the beginning of the step.
  struct Reference {
    std::optional<unsigned> unit;
    uint32_t offset;
    bool operator==(const Reference &other) const = default;
  };
  /// A message from or to another class: of a permute, which is counted from the unit's first one, or between stages.
  struct Message {
    uint32_t task;
    uint32_t connection; ///< Of a permute the channel, else the port (UnitStore.h).
    uint64_t tag;        ///< Of a permute.
    bool isPermute;
    unsigned part; ///< Of a pair, of which unit it is.
  };
  /// A collective of several classes.
  struct Shared {
    uint32_t task;
    uint32_t meeting;
  };
  /// What is evaluated next: plain tasks from `task` to before `end`, or a receive of a task of the class, which is
  /// `end`, or of message number `end`.
  struct Step {
    enum class Kind : uint8_t { Plain, LocalReceive, Receive };
    Kind kind;
    uint32_t task, end;
  };
  /// A send or collective.
  struct Event {
    uint64_t needs;               ///< Messages that must have come before, one bit each.
    std::optional<uint32_t> sent; ///< To another class.
  };

  std::vector<Reference> references;
  std::vector<Message> received, sent;
  std::vector<Shared> shared;
  std::vector<Step> steps;                  ///< Of a whole unit, which has its messages.
  std::vector<Event> events;                ///< Likewise, in their order.
  std::vector<std::vector<uint32_t>> lanes; ///< Of others: tasks that run one after the other, all but receives.
  // By task.
  std::vector<uint32_t> facts;
  std::vector<Ticks> durations;            ///< Alone.
  std::vector<uint32_t> ends;              ///< In `awaited`, behind the last of a task.
  std::vector<uint32_t> awaited;           ///< Places, in the order in which a tie is decided.
  std::vector<uint32_t> receives;          ///< Tasks, ascending.
  std::vector<uint32_t> waitsOutside;      ///< Tasks that wait for references, and receives.
  std::map<uint32_t, uint32_t> localSends; ///< Of receives from ranks of the class.
  /// It waits for other classes only for messages, and has all of them before it sends any itself.
  bool isWhole = true;
  /// Where streams end, from the first task; nothing if the unit does not change them.
  ClassTasks::Chains chains;
  std::optional<uint64_t> workBeforeLoop;
  bool entersRepeatFirst = false; ///< Its repeat begins before the unit computes anything.
  uint64_t numPermutes = 0;

  /// Of the units of the kind, each once. Copies, whose references alone lead elsewhere (UnitPattern.h), have them in
  /// common: a run says when tasks end if references end at such times.
  using Charges = std::vector<std::unique_ptr<UnitCharges>>;
  std::shared_ptr<Charges> charges = std::make_shared<Charges>();

  /// Where messages or shared collectives, which are in the order of their tasks, have this one; nothing: none is of
  /// it.
  template <typename T> static std::optional<uint32_t> findOfTask(const std::vector<T> &list, uint32_t task) {
    auto found = llvm::partition_point(list, [&](const T &each) { return each.task < task; });
    return found != list.end() && found->task == task ? std::optional(uint32_t(found - list.begin())) : std::nullopt;
  }
  bool isReceive(uint32_t task) const { return std::binary_search(receives.begin(), receives.end(), task); }
  uint32_t getNumTasks() const { return uint32_t(durations.size()); }
  /// Places below are those of references and messages.
  uint32_t getFirstTask() const { return uint32_t(references.size() + received.size()); }
  uint32_t getFirstAwaited(uint32_t task) const { return task ? ends[task - 1] : 0; }
  llvm::ArrayRef<uint32_t> getAwaited(uint32_t task) const {
    return llvm::ArrayRef(awaited).slice(getFirstAwaited(task), ends[task] - getFirstAwaited(task));
  }

  /// When a task may begin, and the place for which it waited last; -1 if something for which it waits has not ended.
  std::pair<Ticks, int32_t> getReady(const UnitRun &run, uint32_t task) const;
  /// What tasks take that take so much more than alone.
  std::vector<Ticks> addSurcharges(llvm::ArrayRef<Surcharge> surcharges) const;
  /// The charges of such tasks; empty: they take no more.
  UnitCharges &findCharges(std::vector<Surcharge> surcharges);
  /// A run whose times are not known.
  std::unique_ptr<UnitRun> startRun(const UnitCharges &taken) const;
  /// False if time is too long.
  bool runPlain(UnitRun &run, uint32_t begin, uint32_t end) const;
  /// The task that sends what a receive takes up, of the same class, has run.
  void runLocalReceive(UnitRun &run, uint32_t task, uint32_t send) const;
  /// When the message was sent is known.
  void runReceive(UnitRun &run, uint32_t task, uint32_t number) const;
  /// Of a unit that has run: notes what decided, and since when others would.
  void findLimits(UnitRun &run) const;
  /// When a task of a run began; of a receive only where it has waited for a task of its class.
  Ticks getBegin(const UnitRun &run, uint32_t task) const;
  Ticks getEnd(const UnitRun &run, uint32_t task) const { return run.times[getFirstTask() + task]; }
};

/// The units of a class, in their order.
class UnitList {
public:
  struct Entry {
    CompiledUnit *unit;
    UnitCharges *charges;
    uint32_t firstRelated;
    std::array<uint32_t, 2> microbatches; ///< Of a unit, or of both units of a pair.
    uint32_t templateNumber;              ///< In the class.
    uint32_t place;                       ///< Among the units of the stage; of a pair that of the first one.
  };
  void add(CompiledUnit *unit, llvm::ArrayRef<uint32_t> itsRelated, std::array<uint32_t, 2> microbatches,
           uint32_t templateNumber, uint32_t place) {
    entries.push_back({unit, nullptr, uint32_t(related.size()), microbatches, templateNumber, place});
    llvm::append_range(related, itsRelated);
  }
  void reserve(size_t count) { entries.reserve(count); }
  void shrink() { related.shrink_to_fit(); }
  size_t size() const { return entries.size(); }
  Entry &operator[](size_t number) { return entries[number]; }
  const Entry &operator[](size_t number) const { return entries[number]; }
  /// The numbers of the earlier units to which the references of one lead, ascending but for those that nothing
  /// explains.
  llvm::ArrayRef<uint32_t> getRelated(size_t number) const {
    size_t end = number + 1 < entries.size() ? entries[number + 1].firstRelated : related.size();
    return llvm::ArrayRef(related).slice(entries[number].firstRelated, end - entries[number].firstRelated);
  }

private:
  std::vector<Entry> entries;
  std::vector<uint32_t> related; ///< Of all units, one behind the other.
};

} // namespace stage

#endif // STAGE_LIB_TIME_COMPILEDUNIT_H
