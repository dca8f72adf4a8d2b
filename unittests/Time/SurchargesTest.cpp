//===- SurchargesTest.cpp -------------------------------------------------===//
//
// Expected numbers are derived by hand from the rules in stage/Time/Surcharges.h; milliseconds are ticks here.
//
//===----------------------------------------------------------------------===//
#include "stage/Time/Surcharges.h"
#include "gtest/gtest.h"

using namespace stage;

namespace {
constexpr unsigned compute = 0, collectives = 1, sends = 2, others = 3;

class Tasks {
public:
  unsigned addCompute(Ticks alone, llvm::ArrayRef<unsigned> awaited = {}, unsigned unit = 0) {
    return add({TaskKind::Compute, true, true, compute, unit, 0, alone}, awaited);
  }
  unsigned addCollective(unsigned lane, unsigned level, Ticks alone, llvm::ArrayRef<unsigned> awaited,
                         unsigned unit = 0) {
    return add({TaskKind::Collective, false, false, lane, unit, level, alone}, awaited);
  }
  unsigned addSend(unsigned level, Ticks alone, llvm::ArrayRef<unsigned> awaited, unsigned unit = 0) {
    return add({TaskKind::Send, false, false, sends, unit, level, alone}, awaited);
  }
  /// Of all tasks, launches included.
  std::vector<Ticks> find(const Runtime &runtime) const {
    std::vector<Ticks> more;
    for (const Surcharge &each : findSurcharges(tasks, 4, runtime))
      more.push_back(each.launch + each.beside);
    return more;
  }

private:
  /// It waits for the one before it on its lane.
  unsigned add(TimedTask task, llvm::ArrayRef<unsigned> awaited) {
    unsigned number = unsigned(tasks.size());
    TimedTask &added = tasks.add();
    task.endAwaited = added.endAwaited;
    added = task;
    for (unsigned id : awaited)
      tasks.wait(id);
    for (unsigned id = number; id-- > 0;)
      if (tasks[id].kind != TaskKind::Receive && tasks[id].lane == task.lane) {
        tasks.wait(id);
        break;
      }
    return number;
  }
  TimedTasks tasks;
};

Runtime tax(int64_t percent) {
  Runtime runtime;
  runtime.taxOfCollectives = *Rational::make(percent, 100);
  return runtime;
}

/// The worked example of the header, in tenths of a millisecond.
TEST(Surcharges, EndOfLastBackward) {
  Tasks tasks;
  tasks.addCompute(0);
  tasks.addCollective(collectives, 1, 60, {0});
  tasks.addSend(1, 10, {0});
  tasks.addCollective(others, 0, 20, {0});
  tasks.addCompute(50, {0});
  // the longest queue is the reduction with 70, of which 50 are beside compute
  EXPECT_EQ(tasks.find(tax(30)), (std::vector<Ticks>{0, 10, 10, 0, 15}));
}

/// FSDP: the gather of the next block runs beside the compute of this one, which is behind its own gather.
std::vector<Ticks> getBlocks(Ticks gather) {
  Tasks tasks;
  std::vector<unsigned> computes;
  unsigned first = tasks.addCollective(collectives, 0, gather, {});
  for (unsigned block = 0, own = first; block < 4; ++block) {
    unsigned next = block < 3 ? tasks.addCollective(collectives, 0, gather,
                                                    computes.empty() ? std::vector<unsigned>{own}
                                                                     : std::vector<unsigned>{computes.back()})
                              : own;
    computes.push_back(tasks.addCompute(100, {own}));
    own = next;
  }
  std::vector<Ticks> all = tasks.find(tax(30)), ofCompute;
  for (unsigned id : computes)
    ofCompute.push_back(all[id]);
  return ofCompute;
}

TEST(Surcharges, GatherOfTheNextBlockIsTaxedAsFarAsItLasts) {
  EXPECT_EQ(getBlocks(40), (std::vector<Ticks>{12, 12, 12, 0}));
  EXPECT_EQ(getBlocks(120), (std::vector<Ticks>{30, 30, 30, 0}));
  EXPECT_EQ(getBlocks(200), (std::vector<Ticks>{30, 30, 30, 0}));
}

TEST(Surcharges, WhatComputeWaitsForIsNoQueue) {
  Tasks tasks;
  unsigned a = tasks.addCompute(10);
  unsigned gather = tasks.addCollective(collectives, 0, 40, {a});
  tasks.addCompute(10, {gather}); // waits: nothing beside it
  EXPECT_EQ(tasks.find(tax(50)), (std::vector<Ticks>{0, 0, 0}));
}

TEST(Surcharges, WhatComputeWaitsForLeavesItsQueue) {
  Tasks tasks;
  unsigned a = tasks.addCompute(10);
  unsigned gather = tasks.addCollective(collectives, 0, 40, {a});
  tasks.addCompute(10);           // beside it
  tasks.addCompute(10, {gather}); // behind it
  EXPECT_EQ(tasks.find(tax(50)), (std::vector<Ticks>{0, 0, 5, 0}));
}

TEST(Surcharges, QueueIsUsedUpByComputeBesideIt) {
  Tasks tasks;
  unsigned a = tasks.addCompute(10);
  tasks.addCollective(collectives, 0, 15, {a});
  tasks.addCompute(10);
  tasks.addCompute(10);
  tasks.addCompute(10);
  EXPECT_EQ(tasks.find(tax(50)), (std::vector<Ticks>{0, 0, 5, 3, 0})); // 10 and 5 of 15, 2.5 is rounded up
}

TEST(Surcharges, DistantUnitsDoNotMeet) {
  for (unsigned distance : {0, 1, 2}) {
    Tasks tasks;
    unsigned a = tasks.addCompute(10);
    tasks.addCollective(collectives, 1, 30, {a}, 0);
    tasks.addCollective(others, 1, 50, {a}, distance);
    Ticks met = distance < 2 ? 30 : 0;
    EXPECT_EQ(tasks.find(Runtime()), (std::vector<Ticks>{0, met, met}));
  }
}

TEST(Surcharges, WhatWaitsForTheOtherDoesNotMeetIt) {
  Tasks tasks;
  unsigned a = tasks.addCollective(collectives, 1, 30, {});
  tasks.addCollective(others, 1, 50, {a});
  EXPECT_EQ(tasks.find(Runtime()), (std::vector<Ticks>{0, 0}));
}

TEST(Surcharges, SeveralOfAStreamAreAddedUp) {
  Tasks tasks;
  tasks.addCollective(collectives, 1, 30, {});
  tasks.addCollective(collectives, 1, 30, {});
  tasks.addCollective(others, 1, 50, {});
  tasks.addSend(0, 50, {}); // another level
  EXPECT_EQ(tasks.find(Runtime()), (std::vector<Ticks>{30, 30, 50, 0}));
}

TEST(Surcharges, LaunchesAreTheLeastOfAUnit) {
  Tasks tasks;
  tasks.addCompute(10, {}, 0);
  tasks.addCompute(10, {}, 0);
  tasks.addCompute(100, {}, 1);
  Runtime runtime;
  runtime.launch = 15;
  EXPECT_EQ(tasks.find(runtime), (std::vector<Ticks>{0, 10, 0}));
}

/// Of all units, launched or not: the last kernel of the rank, and no collective behind it.
TEST(Surcharges, TheLastKernelHasTheHostsPartOfAStep) {
  Tasks tasks;
  tasks.addCompute(10, {}, 0);
  unsigned last = tasks.addCompute(100, {}, 1);
  tasks.addCollective(collectives, 0, 40, {last});
  Runtime runtime;
  runtime.stepHost = 7;
  EXPECT_EQ(tasks.find(runtime), (std::vector<Ticks>{0, 7, 0}));
  runtime.launch = 15;
  EXPECT_EQ(tasks.find(runtime), (std::vector<Ticks>{5, 7, 0}));
}

TEST(Surcharges, ComputeBesideCommunication) {
  Tasks tasks;
  unsigned a = tasks.addCompute(10);
  unsigned gather = tasks.addCollective(collectives, 0, 40, {a});
  tasks.addCompute(20);           // beside it
  tasks.addCompute(30, {gather}); // behind it
  Runtime runtime;
  runtime.taxOfCommunication = *Rational::make(1, 4);
  EXPECT_EQ(tasks.find(runtime), (std::vector<Ticks>{0, 5, 0, 0}));
}

TEST(Surcharges, EndlessTimesDoNotOverflow) {
  Tasks tasks;
  tasks.addCollective(collectives, 1, maxTicks, {});
  tasks.addCollective(others, 1, maxTicks, {});
  tasks.addSend(1, maxTicks, {});
  EXPECT_EQ(tasks.find(tax(100)), (std::vector<Ticks>{maxTicks, maxTicks, maxTicks}));
}
} // namespace
