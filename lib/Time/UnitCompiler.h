//===- UnitCompiler.h - which units have the same tasks --------*- C++ -*-===//
//
// Problem: units of one kind are made once (CompiledUnit.h). Which units are of one kind?
//
//   B7    after F8, of microbatch 7 with F7; the last one that added to the gradients was B6
//   B8    after F9, of microbatch 8 with F8; the last one that added to the gradients was B7     the same kind
//   B0    after F1, of microbatch 0 with F0; nobody has added to the gradients                   another one
//
// Rule: what the tasks of a unit wait for follows from its template, its environment and its *relations*: the units
// whose values it may use, those that added to gradients last, the one that updated the parameters, those to which
// edges lead, and the tasks with which streams end, behind which it posts receives and loads inputs (rules W1 to W8 of
// stage/Tasks/ClassTasks.h). All of these are tasks of earlier units. Units are of one kind if, in the order in which
// these earlier units run, each has an alike template (UnitStore.h), and each relation leads to the same one of them,
// and to the same task in it, or to a unit whose iterations are as far from its own.
//
// Algorithm: the relations of each unit are listed. The first one of a kind is made and priced; for what it waits
// outside of itself is a task of one of the listed units. The others are skipped. Each op is priced once. Of equal
// rounds of iterations three are made (stage/Tasks/FoldedTasks.h). Of kinds that differ in nothing but where their
// relations lead the first one is made, and the others follow from its pattern (UnitPattern.h). Only units that ask who
// added to a gradient have relations to these.
//
// Two units that run interleaved (stage/Walk/PairOrder.h) are one unit here and in CompiledWalk.h: it has the tasks of
// both, in the order in which the pair runs them, and the relations of both.
//
// Limits: a unit that waits for a unit that is not listed, or whose edges lead to ops that several templates run, is
// made, and is of a kind of its own.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TIME_UNITCOMPILER_H
#define STAGE_LIB_TIME_UNITCOMPILER_H

#include "UnitStore.h"

namespace stage {

class UnitCompiler {
public:
  /// All must outlive this.
  UnitCompiler(Connections &connections, UnitStore &store, const TaskOptions &options, unsigned classNumber,
               DiagnosticEngine &diags);

  /// The kind of the next unit. `related`: the numbers of the earlier units to which its references lead. Null after a
  /// report, or where tasks are of another form or have no price.
  CompiledUnit *compileNext(std::vector<uint32_t> &related);

  /// After the last unit: frees what was kept to compile units.
  void finish();

  const ClassTasks &getTasks() const { return tasks; }
  size_t getNumUnits() const { return bases.size(); }
  /// Among the units of the stage; of a pair that of the first one.
  unsigned getPlace(size_t unit) const { return firstUnits[unit]; }
  /// Of a unit twice, of a pair those of both.
  std::array<uint32_t, 2> listMicrobatches(size_t unit) const;
  uint64_t getBase(size_t unit) const { return bases[unit]; }
  /// The unit of a task.
  size_t findUnit(uint64_t id) const { return size_t(llvm::upper_bound(bases, id) - bases.begin()) - 1; }
  /// The number of a unit's template, for getPort().
  uint32_t getTemplate(size_t unit) const { return templates[unit]; }
  /// Of message number `port` between stages of a template.
  const Port &getPort(uint32_t templateNumber, uint32_t port) const { return described[templateNumber]->ports[port]; }
  const TaskFacts &getFacts(uint32_t number) const { return store.getFacts(number); }
  uint32_t getNumFacts() const { return store.getNumFacts(); }
  /// Of a task, by its facts. Receives are on none.
  unsigned getLane(uint32_t number) const { return store.getLane(number); }
  ActivityKind getActivityKind(uint32_t number) const { return StepWalk::getKindOfLane(store.getLaneKey(number)); }
  unsigned getNumLanes() const { return store.getNumLanes(); }
  uint64_t getNumMade() const { return numMade; }

private:
  /// A task that was made.
  struct Sample {
    UnitPattern::PatternTask task;
    size_t begin = 0, dataEnd = 0, end = 0; ///< Of what it waits for.
  };
  using Key = UnitStore::Key;

  /// The relations of a unit, each in its place.
  struct Relations {
    llvm::SmallVector<UnitRelation, 24> list;
    uint32_t numEnds = 0;                ///< Those to ends of streams and the like come first.
    uint32_t numLatest = 0;              ///< Units that added to gradients last.
    llvm::SmallVector<uint32_t, 4> ways; ///< In which those were found whose values it may use.
    bool isKnown = true;                 ///< They are all listed.
    bool hasEdges = false;
  };
  Relations listRelations(unsigned number);
  /// The unit, or both units of a pair.
  llvm::SmallVector<const PlacedUnit *, 2> listPlaced(size_t unit) const;
  /// Of a task, in which unit of a pair it is.
  unsigned getPart(size_t unit, uint64_t id) const;
  static std::vector<uint32_t> listRelated(const Relations &relations);
  Key makeKindKey(unsigned number, const Relations &relations, llvm::ArrayRef<uint32_t> related) const;
  Key makeForm(unsigned number, const Relations &relations) const;
  void addDistances(Key &key, unsigned number, const Relations &relations) const;
  void describe(unsigned number);
  const ClassTemplate &getDescription(unsigned unit) const { return *described[templates[unit]]; }
  std::unique_ptr<UnitPattern> make(unsigned number, Relations &relations, bool &isExplained);
  bool take(const Task &task, unsigned number, uint64_t firstPermute);
  bool repeat(const ClassTasks::Rounds &rounds, uint64_t base);
  void listAwaited(unsigned number, Relations &relations, UnitPattern &pattern, bool &isExplained);
  std::unique_ptr<CompiledUnit> instantiate(UnitPattern &pattern, const Relations &relations,
                                            llvm::ArrayRef<uint32_t> related, const ClassTemplate &description);
  void connect(CompiledUnit &unit, const UnitPattern &pattern, const ClassTemplate &description);
  void order(CompiledUnit &unit);
  void listEvents(CompiledUnit &unit, const UnitPattern &pattern);
  void listLanes(CompiledUnit &unit);
  void skip(unsigned number, const CompiledUnit &unit);

  Connections &connections;
  UnitStore &store;
  const unsigned classNumber;
  const int64_t rank;     ///< That stands for the class, in the program.
  const unsigned sizesOf; ///< As UnitStore::findSizes().
  ClassTasks tasks;
  std::optional<Rational> slowness;
  std::vector<unsigned> firstUnits;                    ///< By unit: its number in `tasks`, of a pair that of the first.
  std::vector<uint64_t> bases;                         ///< By unit.
  std::vector<uint32_t> templates;                     ///< Their numbers in the class, by unit.
  std::vector<std::optional<ClassTemplate>> described; ///< Templates, once a unit of theirs has come.
  std::vector<uint64_t> slots;                         ///< Those of `tasks` so far, on the rank; 0 for sizes.
  std::vector<std::unique_ptr<CompiledUnit>> others;   ///< Kinds of one unit.
  std::vector<const CompiledUnit *> compiled;          ///< By unit.
  unsigned nextUnit = 0;
  std::vector<Sample> samples; ///< Of the unit that is made.
  std::vector<uint64_t> awaited;
  uint64_t numMade = 0;
};

} // namespace stage

#endif // STAGE_LIB_TIME_UNITCOMPILER_H
