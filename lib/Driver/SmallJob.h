//===- SmallJob.h - a plan that makes a job small --------------*- C++ -*-===//
//
// Problem: a job is for thousands of ranks; a proof runs tens, and must still be about the same strategy.
//
// Algorithm: compile the job at its own sizes, to see its mesh and its step and whether it is refused. Then find
//
//   the mesh      Every axis is reduced to 2 through the parameter of the strategy that has its name. An odd axis is
//                 reduced to its smallest divisor. An axis in which blocks go round keeps 4 ranks, because two ranks
//                 are each other's neighbours on both sides. If the program refuses a mesh (`require tp >= 4`), the
//                 next larger divisor is tried.
//   the batch     two microbatches per stage, or a few more
//   the lengths   of sequences of inference
//
// A smaller job is taken if it is the same program. Its mesh has the same *arrangement*: the same axes have more than
// one rank, and each of them is made of the same ones of the axes of the other reading (with dp = 2, cp = 2, ep = 4
// experts lie over dp and cp; with ep = 2 they would lie over cp alone). And it takes every *choice* that the job
// takes: each branch of an `if`, each side of a `min`, each loop that runs. If no mesh of 64 ranks does that, one that
// the program accepts is taken, and what it does not keep is noted.
//
// A `split` of a pipeline that gets fewer stages keeps its first and its last part; between them iterations are cut
// evenly.
//
// Limits: what the user gives with `-D` stays, and so does an axis whose size is no parameter of the job's strategy.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_DRIVER_SMALLJOB_H
#define STAGE_LIB_DRIVER_SMALLJOB_H

#include "stage/Compiler/Session.h"
#include "stage/Interp/Prove.h"

namespace stage::driver {

class SmallJob {
public:
  /// The session is that of all compilations, and outlives the object.
  SmallJob(const Plan &plan, Session &session);

  /// Finds the plan; false if the job is refused as it is, or has no small mesh, which is reported. `isPool`: of two
  /// jobs that are proved together, which agree upon the batch and the lengths by settle().
  bool run(bool isPool = false);

  /// Stages that the job balances or cuts by a list are cut as in the job, or nearly so where there are not as many: at
  /// other sizes they would be others.
  void settleSplit(Graph &graph) const;

  const Plan &getPlan() const { return plan; }
  // Of a pool, with its small mesh.
  int64_t getBatchRanks() const { return batchRanks; }
  int64_t getStages() const { return stages; }
  int64_t getGlobalBatch() const { return globalBatch; }
  /// Ranks that may cut a sequence.
  int64_t getRanksOfStage() const { return numRanks / stages; }
  /// So many sequences in so many batches, and so many positions of each. False if the job does not accept that.
  bool settle(int64_t sequences, int64_t batches, int64_t length, bool namesConstants);

  /// Names that the user gave a value, without their owners.
  llvm::ArrayRef<std::string> getGiven() const { return given; }
  /// The sizes and axes of the job, with those of `small` that it has no others for.
  SizeBinding getJobSizes(const SizeBinding &small) const;
  /// By another job, with which it is proved.
  bool isPrefilled() const { return isPrefilledByOther; }
  /// "tp 8 -> 2, microbatches 8 -> 4", and choices that are not kept.
  interp::ProofSizes made;

private:
  /// Where a choice is made, and its alternatives as bits.
  using Choices = std::map<const char *, uint64_t>;
  /// Of each axis that has a name and more than one rank, of which axes of the mesh it is made.
  using Arrangement = std::vector<std::pair<std::string, std::vector<unsigned>>>;

  bool isGiven(llvm::StringRef name) const { return llvm::is_contained(given, name); }
  std::optional<Choices> accept(Plan trial, bool isArranged);
  std::optional<Choices> acceptNamed(Plan trial, bool isArranged);
  bool passes(const Plan &trial) const;
  Choices listLostChoices(const Choices &small) const;
  bool shrinkMesh(const sema::BoundJob &job);
  void shrinkBatch();
  void shrinkSequences(const sema::BoundInference &inference);
  void reportTooLarge(const sema::BoundJob &job);
  void noteLost();
  void note(llvm::StringRef name, int64_t from, int64_t to);

  Plan plan;
  Session &session;
  std::vector<std::string> given;
  std::vector<std::string>
      longAxes; ///< Of four ranks at least: of a ring, of pairs of stages that hold copies of a model.
  bool isPrefilledByOther = false;

  // Of the job as it is.
  std::vector<std::pair<unsigned, bool>> kindsOfCuts;
  std::vector<int64_t> split; ///< Once it is balanced.
  Arrangement arrangement;
  Choices choices;
  SizeBinding binding;

  // Of the job with this plan.
  Choices lost;
  bool isRearranged = false;
  llvm::StringMap<int64_t> axisSizes;
  int64_t microbatchesOfJob = 1; ///< As the report counts them, before its mesh is made small.
  int64_t microbatches = 1, globalBatch = 1, stages = 1, batchRanks = 1, numRanks = 1;
};

} // namespace stage::driver

#endif // STAGE_LIB_DRIVER_SMALLJOB_H
