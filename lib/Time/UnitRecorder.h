//===- UnitRecorder.h - the tasks of one unit of each kind -----*- C++ -*-===//
//
// What UnitTimer (stage/Time/UnitTimer.h) knows of a program: the tasks of a prompt and of a decode step as lists of
// nodes, by stage, and what they take, as expressions over what a unit binds. Surcharges are found from lists of the
// tasks of each class (UnitSurcharges.h).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TIME_UNITRECORDER_H
#define STAGE_LIB_TIME_UNITRECORDER_H

#include "StepWalk.h"
#include "UnitSurcharges.h"
#include "stage/IR/graph/PackedUnits.h"
#include "stage/Time/UnitTimer.h"

namespace stage {

/// Keeps the tasks of each kind of unit.
class UnitTimer::Recorder final : public TaskPricer {
public:
  Recorder(const TimedPart &used, DiagnosticEngine &diags);

  bool record();
  /// Finds what the tasks of a unit take, behind the unit that was evaluated before. False after a report.
  bool evaluate(const PackedUnit &unit);
  /// No unit has been evaluated.
  void restart();
  bool isInsideTables() const { return insideTables; }
  void addInsideTables(bool isInside) { insideTables &= isInside; }
  /// Runs that unit on a stage, behind the stages before, and updates `lanes`. The stage is busy until `busy` and takes
  /// `given` before the unit. Returns when its tasks end, and when its messages have arrived.
  std::pair<Ticks, Ticks> run(const PackedUnit &unit, unsigned stage, Ticks busy, Ticks given,
                              std::vector<Ticks> &lanes);

  bool price(unsigned classNumber, const Task &task, const GroupPlace &place, WaitingTask &waiting) override;
  void takeReceive(unsigned classNumber, const Task &task, const GroupPlace &place,
                   const WaitingTask &waiting) override;
  void end(llvm::ArrayRef<std::pair<unsigned, const WaitingTask *>> members) override;
  void endReceive(unsigned classNumber, const WaitingTask &task, ClassTask send) override;

  /// By class, stream and kind of work.
  std::map<std::tuple<unsigned, uint64_t, unsigned>, unsigned> laneNumbers;

private:
  /// What tasks take that have the same numbers, on a stream of a class.
  struct Price {
    Task task; ///< Its kind, op, memory and numbers.
    GroupPlace place;
    unsigned classNumber, lane;
    unsigned unit;                                          ///< Of the recorded ones.
    Ticks ticks = 0;                                        ///< In the unit that was evaluated.
    std::optional<OpCost> cost{};                           ///< Of what computes.
    Work work{};                                            ///< Likewise, in that unit.
    llvm::SmallVector<std::pair<Size, int64_t>, 0> sizes{}; ///< From which that work follows, and what they were.
  };
  /// A task of a class as it was taken up.
  struct Taken {
    TimedTask task;
    unsigned price;
    llvm::SmallVector<uint64_t, 4> awaited;
  };
  /// Of a class: binds what a unit says.
  struct ClassSizes {
    ClassSizes(SizeBinding bound, DiagnosticEngine &diags) : binding(std::move(bound)), sizes(binding, diags) {}
    SizeBinding binding;
    TaskSizes sizes;
  };
  /// A task of the microbatch that is kept, by its place in the graph of a stage.
  struct Place {
    unsigned stage, node;
    uint64_t microbatch;
  };
  struct Node {
    unsigned endOfEarlier, endOfLanes, endOfPrices; ///< In the lists below, which begin where those before end.
    PhaseKind kind;
    bool isSend = false;           ///< To another stage.
    std::optional<Place> sender{}; ///< Of a message from another stage.
  };
  /// The tasks of a unit on a stage, in an order in which each stands behind those for which it waits.
  struct UnitGraph {
    std::vector<Node> nodes;
    std::vector<unsigned> earlier;                    ///< Nodes for which nodes wait.
    std::vector<unsigned> lanes;                      ///< In which a task of an earlier unit is for which a node waits.
    std::vector<unsigned> prices;                     ///< Of nodes: one for each class that runs it; none of a receive.
    std::vector<std::pair<unsigned, uint64_t>> tasks; ///< Of each price its class and, from record() on, the place.
  };

  unsigned getStage(unsigned classNumber) const { return walk.getTasks(classNumber).getStage().stage; }
  const PlacedUnit &getUnit(unsigned classNumber, unsigned unit) const {
    return walk.getTasks(classNumber).getUnits()[unit];
  }
  bool isDecode(unsigned classNumber, unsigned unit) const;
  /// A unit of the second half stands behind one of each kind.
  bool isKept(unsigned classNumber, unsigned unit) const {
    return getUnit(classNumber, unit).microbatch >= phases.size() / 2;
  }
  void take(unsigned classNumber, const Task &task, const GroupPlace &place, const WaitingTask &waiting);
  void listItems(unsigned classNumber);
  std::unique_ptr<ClassSizes> bind(unsigned classNumber, bool decodes, const UnitBindings &bindings);
  void evaluateSlots(unsigned classNumber, ClassSizes &sizes, bool decodes);
  bool evaluate(Price &price, ClassSizes &sizes);
  void addSurcharges(const PackedUnit &unit);
  Ticks getDuration(const UnitGraph &graph, unsigned price) const;
  UnitGraph *findGraph(unsigned classNumber, const WaitingTask &task);
  void wait(unsigned classNumber, const WaitingTask &task, UnitGraph &graph);
  Node &addNode(unsigned classNumber, const WaitingTask &task, UnitGraph &graph);

  const TimedPart part;
  const Program &program;
  const Graph &graph;
  const Machine &machine;
  DiagnosticEngine &diags;
  const TaskOptions options{.works = true, .keepsSizes = true};
  const bool hasCharges; ///< Tasks may take more than their prices.
  bool insideTables = true;
  const std::vector<PhaseKind> phases; ///< By microbatch.
  std::vector<Price> prices;
  std::map<std::vector<uint64_t>, unsigned> priceNumbers;   ///< By all that tells prices apart.
  std::map<std::pair<unsigned, uint64_t>, Place> places;    ///< By class and id.
  std::map<std::pair<unsigned, uint64_t>, unsigned> laneOf; ///< The same.
  std::vector<UnitGraph> graphs[2];                         ///< Of prompts and of decode steps, by stage.
  std::vector<std::vector<uint64_t>> values;                ///< Of slots, by class.
  std::vector<std::vector<Ticks>> ends;                     ///< Of the nodes of the unit that runs, by stage.
  std::vector<std::optional<Rational>> slowness;            ///< By class.
  // By class, where there are charges:
  std::vector<std::vector<Taken>> taken; ///< Until all are recorded.
  std::vector<UnitSurcharges> surcharges;
  std::vector<std::vector<unsigned>> priceOfItems[2]; ///< Of prompts and of decode steps.
  std::vector<std::vector<Ticks>> more;               ///< Of the items of the unit that was evaluated.
  std::vector<unsigned> numLanes;
  std::vector<unsigned> ownLanes; ///< By lane: its number among those of its class.
  StepWalk walk;
};

} // namespace stage

#endif // STAGE_LIB_TIME_UNITRECORDER_H
