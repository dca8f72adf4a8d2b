//===- StepWalk.h - the longest path over tasks ----------------*- C++ -*-===//
//
// Runs the tasks of all classes of ranks in an order in which each comes behind those for which it waits, and finds
// when they end. What a task takes is asked of a TaskPricer, which is also told when tasks end, in that order.
// stage/Time/StepTime.h has the rules. Reports, which ask for no single task, take the faster CompiledWalk where they
// can.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TIME_STEPWALK_H
#define STAGE_LIB_TIME_STEPWALK_H

#include "StepRuns.h"
#include "stage/Tasks/ClassTasks.h"
#include "stage/Time/RankActivity.h"
#include "stage/Time/RankClasses.h"
#include "stage/Time/TimedPart.h"
#include <deque>
#include <map>

namespace stage {

/// A task that has not ended. Those for which it waits are of its class.
struct WaitingTask {
  uint64_t id;
  TaskKind kind;
  Ticks duration = 0;
  unsigned price = 0; ///< As a TaskPricer knows what it takes.
  unsigned unit = 0;
  llvm::SmallVector<uint64_t, 6> awaited; ///< Ids.
  unsigned number = 0;     ///< Of what communicates: the channel of a message, or the meeting of a collective.
  bool hasArrived = false; ///< Of a collective: its class was counted.
};

class TaskPricer {
public:
  virtual ~TaskPricer() = default;
  /// Sets `duration` and `price` of a task of a class. `place`: of the group of a collective, or of sender and
  /// receiver. It is not asked of receives. False after a report.
  virtual bool price(unsigned classNumber, const Task &task, const GroupPlace &place, WaitingTask &waiting) = 0;
  /// A receive is taken up, which takes what its send takes.
  virtual void takeReceive(unsigned classNumber, const Task &task, const GroupPlace &place,
                           const WaitingTask &waiting) {
    (void)classNumber, (void)task, (void)place, (void)waiting;
  }
  /// What a task takes depends on others: all are taken up before the first one runs.
  virtual bool needsAll() const { return false; }
  /// All have been taken up.
  virtual void settle() {}
  /// What a task takes, once it runs.
  virtual Ticks getDuration(unsigned classNumber, const WaitingTask &task) const {
    (void)classNumber;
    return task.duration;
  }
  /// When a task runs, and for what it waited last: a task, which may be of another class; nothing if it waited for
  /// none. Called of each class that runs a collective.
  virtual void run(unsigned classNumber, const WaitingTask &task, Ticks begin, Ticks end,
                   std::optional<ClassTask> cause) {
    (void)classNumber, (void)task, (void)begin, (void)end, (void)cause;
  }
  /// A task ends that has a stream: a collective of all classes that run it together, any other of one.
  virtual void end(llvm::ArrayRef<std::pair<unsigned, const WaitingTask *>> members) { (void)members; }
  /// A receive ends, of what a task sent.
  virtual void endReceive(unsigned classNumber, const WaitingTask &task, ClassTask send) {
    (void)classNumber, (void)task, (void)send;
  }
};

class StepWalk {
public:
  /// All must outlive this.
  StepWalk(llvm::ArrayRef<TimedPart> timed, const TaskOptions &options, TaskPricer &pricer, DiagnosticEngine &diags);

  /// False after a report.
  bool run();

  unsigned getNumClasses() const { return unsigned(walks.size()); }
  const ClassTasks &getTasks(unsigned classNumber) const { return walks[classNumber].tasks; }
  const Program &getProgram(unsigned classNumber) const { return walks[classNumber].part.program; }
  llvm::ArrayRef<TimedPart> getParts() const { return timed; }
  /// That of the part of a class.
  const TimedPart &getPart(unsigned classNumber) const { return walks[classNumber].part.timed; }
  /// Of a message between two machines, that is taken up, the part at its other end.
  const TimedPart *findOtherMachine(unsigned classNumber, const Task &task) const;
  /// The rank that stands for a class, counted over all parts.
  int64_t getRepresentative(unsigned classNumber) const {
    return int64_t(walks[classNumber].part.program.firstRank) + walks[classNumber].rank;
  }
  const RankClasses &getClasses(unsigned classNumber) const { return walks[classNumber].part.classes; }
  /// What tells apart the tasks of a class that run beside each other: a stream, and a kind of work.
  static std::pair<uint64_t, unsigned> getLaneKey(const Task &task);
  Ticks getStep() const { return last; }
  static ActivityKind getKindOfLane(std::pair<uint64_t, unsigned> laneKey) { return ActivityKind(laneKey.second / 2); }
  /// What all ranks did.
  StepActivity collect() const;

private:
  /// Tasks that run one after the other: of one stream, and of one kind of work.
  struct Lane {
    ActivityKind kind;
    std::deque<WaitingTask> tasks;
    std::vector<Activity> activities; ///< What follows without a gap is one.
  };
  /// Messages of one tag from a class to another one.
  struct Channel {
    struct Message {
      ClassTask send;
      Ticks begin, end;
    };
    unsigned receiver;
    std::deque<Message> sent;
  };
  /// Where the members of a group come together for the collectives of a stream, one after the other.
  struct Meeting {
    unsigned expected; ///< Classes.
    GroupPlace place;
    Ticks begin = 0;                ///< When the last of those came that have come.
    std::optional<ClassTask> cause; ///< For what that one waited.
    std::vector<unsigned> arrived;
  };
  struct Part {
    Part(const TimedPart &timed, uint64_t firstGroup, unsigned firstClass, bool apart, int64_t ranksElsewhere)
        : timed(timed), program(*timed.program), groups(program, firstGroup),
          classes(program, timed.machine.getBlockSizes(), apart), firstClass(firstClass),
          ranksElsewhere(ranksElsewhere) {}
    const TimedPart &timed;
    const Program &program;
    GroupTable groups;
    RankClasses classes;
    unsigned firstClass;
    int64_t ranksElsewhere; ///< See TimedPart.h.
  };
  /// One class, and the rank that stands for it.
  struct ClassWalk {
    ClassWalk(const StepWalk &walk, const Part &part, unsigned number);
    bool isStalled() const {
      return llvm::any_of(lanes, [](auto &lane) { return !lane.second.tasks.empty(); });
    }

    const Part &part;
    int64_t rank;
    ClassTasks tasks;
    unsigned nextUnit = 0;
    std::vector<Ticks> ends; ///< By id.
    std::map<std::pair<uint64_t, unsigned>, Lane> lanes;
    std::vector<WaitingTask> receives; ///< In flight, or not posted yet.
    /// Where all are taken up before the first one runs: tasks of the units that come, and their lanes; receives have
    /// none.
    std::deque<std::pair<WaitingTask, Lane *>> prepared;
    std::vector<Activity> arrivals; ///< Of receives.
    std::vector<uint64_t> slots;    ///< Those of `tasks` so far, on the rank; 0 for sizes.
    bool isTouched = false;
  };

  void touch(unsigned number);
  void advanceTouched();
  bool takeUpNextUnits();
  void advance(unsigned number);
  void takeUpUnit(unsigned number);
  void prepare();
  void takeUp(unsigned number, const Task &task);
  static Lane &getLane(ClassWalk &walk, const Task &task);
  unsigned findMeeting(const ClassWalk &walk, const Task &task);
  const Part &findPart(int64_t rank) const;
  GroupPlace findPlace(const ClassWalk &walk, const Task &task, unsigned number) const;
  unsigned findChannel(unsigned number, const Task &task);
  unsigned findClass(int64_t rank) const;
  /// When a task may begin, and for which other one it waited last.
  struct Readiness {
    Ticks time;
    std::optional<uint64_t> cause;
  };
  static Readiness getReady(const ClassWalk &walk, const WaitingTask &task);
  Ticks addTime(Ticks begin, Ticks duration);
  void end(ClassWalk &walk, Lane &lane, Ticks begin, Ticks end);
  bool runFirst(unsigned number, Lane &lane);
  bool meet(unsigned number, WaitingTask &task, Readiness ready);
  bool receive(unsigned number, const WaitingTask &task);

  llvm::ArrayRef<TimedPart> timed;
  TaskOptions options;
  TaskPricer &pricer;
  DiagnosticEngine &diags;
  std::deque<Part> parts;
  std::deque<ClassWalk> walks;
  std::deque<unsigned> touched; ///< Classes that may go on.
  int64_t numRanks = 0;
  std::map<std::pair<uint64_t, uint64_t>, unsigned> meetingNumbers; ///< By group and stream.
  std::vector<Meeting> meetings;
  /// By sender, receiver, neighbour along an axis, and tag.
  std::map<std::tuple<unsigned, unsigned, AxisId, int64_t, uint64_t>, unsigned> channelNumbers;
  std::vector<Channel> channels;
  Ticks last = 0;
  bool isPrepared = false; ///< All tasks have been taken up.
  bool isGood = true;      ///< Nothing was reported.
};

} // namespace stage

#endif // STAGE_LIB_TIME_STEPWALK_H
