//===- IterationList.h - some iterations, to be shown ----------*- C++ -*-===//
#ifndef STAGE_SERVING_ITERATIONLIST_H
#define STAGE_SERVING_ITERATIONLIST_H

#include "stage/Serving/Simulation.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <deque>

namespace stage::serving {

/// Keeps the iterations of the steps from `first` to before `last`.
class IterationList : public ServingObserver {
public:
  IterationList(int64_t first, int64_t last, bool hasReplicas) : first(first), last(last), hasReplicas(hasReplicas) {}

  void step(const Step &step) override;
  void finished(const FinishedRequest &request) override {}

  bool empty() const { return entries.empty(); }
  size_t size() const { return entries.size(); }
  /// Of all steps, listed or not.
  int64_t getNumSteps() const { return numSteps; }

  void forEach(llvm::function_ref<void(const Iteration &)> visit) const {
    for (const Entry &entry : entries)
      visit(entry.iteration);
  }
  /// Forgets the iterations, not how many steps there were.
  void clear() { entries.clear(); }

  /// One line each: when it begins, how long it lasts, and its name.
  void print(llvm::raw_ostream &os) const;
  /// A member `listed` of a JSON object that is open.
  void printJson(llvm::json::OStream &json) const;

private:
  struct Entry {
    Iteration iteration;
    int64_t duration; ///< Nanoseconds.
  };
  std::deque<Entry> entries; // never copied: a server has a hundred thousand
  int64_t first, last, numSteps = 0;
  bool hasReplicas;
};

} // namespace stage::serving

#endif // STAGE_SERVING_ITERATIONLIST_H
