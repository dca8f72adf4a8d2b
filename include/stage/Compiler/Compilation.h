//===- Compilation.h - the phases of a compilation, one by one -*- C++ -*-===//
//
// Session::compile runs all phases of a plan. Whoever needs to stop between phases, or to change the graph before the
// passes run, as proofs do, makes a Compilation and calls them in this order:
//
//   Compilation c(session);
//   session.load() && bindPlan(c, plan)    the job, with every name bound
//                  && elaborate(c, plan)   the graph of one microbatch
//                  && runMiddle(c)         all passes, and the program of every pipeline stage
//   makeReport(c)                          what it costs
//
// Each phase reports what is wrong to the engine of the compilation.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_COMPILER_COMPILATION_H
#define STAGE_COMPILER_COMPILATION_H

#include "stage/Compiler/Plan.h"
#include "stage/IR/graph/Channel.h"
#include "stage/IR/graph/Program.h"
#include "stage/Pass/PassManager.h"
#include "stage/Report/Report.h"
#include "stage/Sema/Job.h"
#include "stage/Time/StepBound.h"

namespace stage {

class ModelCache;
class RuntimeMemory;
class Session;
struct LinkedProgram;

/// Everything that the phases of one plan make, in their order. Refers to the session, which must outlive it.
struct Compilation {
  /// Says what is wrong to the engine of the session.
  explicit Compilation(Session &session);
  /// Says it to another engine of the session's buffers, which must outlive the compilation.
  Compilation(Session &session, DiagnosticEngine &diags);

  Session &session;
  DiagnosticEngine &diags;
  SizeContext &sizes;
  ModelCache *models = nullptr; ///< Those of the session, where graphs of models are to be kept.
  SizeBinding binding;
  Obligations obligations;
  std::optional<sema::BoundJob> job;
  std::unique_ptr<Graph> graph;
  std::unique_ptr<Program> program;
  std::shared_ptr<const RuntimeMemory> memory; ///< Of the program; null until somebody asks.
  int64_t ranksOfPools = 0; ///< Of both jobs, where one prefills for the other on the same machine; 0: there is one.
};

/// Binds the job of a plan. False after errors.
bool bindPlan(Compilation &c, const Plan &plan);
/// Makes the graph of a bound job. False after errors.
bool elaborate(Compilation &c, const Plan &plan);
/// Loads the program of the session, if nobody has, binds the job and makes its graph. False after errors.
bool runFrontEnd(Compilation &c, const Plan &plan);
/// All passes, then the program. False after errors.
bool runMiddle(Compilation &c, const PassOptions &passes = {});
/// Bytes of the machine's memory that a rank may use, and those that the runtime reserves.
std::pair<__int128, __int128> divideCapacity(const sema::BoundJob &job);
/// What a step takes on the machine of the job, which must have one. Nothing after errors.
std::optional<StepReport> makeStepReport(Compilation &c);
/// A time before which no step ends there, for a fraction of the work. Nothing after errors.
std::optional<StepBound> makeStepBound(Compilation &c);
/// Adds what a report of one plan says besides: a range of the step, and, if asked for, what would make it shorter,
/// which takes as long as some ten such reports. False after errors.
bool completeStepReport(Compilation &c, StepReport &step, bool withSensitivities = true);
/// What the runtime of the job keeps of the compiled program. Null after errors.
const RuntimeMemory *findRuntimeMemory(Compilation &c);
/// What the compiled program costs, without its traces. Nothing after errors. `withMoments`: with the peak of each kind
/// of unit.
std::optional<Report> makeReport(Compilation &c, bool withMoments = false);
/// The same where memory has been accounted (accountMemory).
std::optional<Report> makeReport(Compilation &c, MemoryReport memory);

/// For proofs of a job that serves requests: units of a few sequences, with so many tokens, or a multiple, in those of
/// prefill.
std::shared_ptr<const ServedUnits> makeUnitsToProve(int64_t tokens);

//===----------------------------------------------------------------------===//
// Jobs that another job has prefilled, on ranks of its own
//===----------------------------------------------------------------------===//

/// Reports that something is not supported of a job that another one has prefilled. False if `c` is none.
bool refusePools(Compilation &c, llvm::StringRef what);
/// The plan of the job that prefills for `c`, whose plan is `plan`. It has its own values.
Plan getPlanOfPrefill(const Compilation &c, const Plan &plan);
/// Binds and elaborates the job that prefills for `c`, and checks that it does. False after errors.
bool runFrontEndOfPrefill(Compilation &prefill, const Compilation &c, const Plan &plan);
/// The programs of both, linked. Null after errors.
std::unique_ptr<LinkedProgram> linkPools(Compilation &prefill, Compilation &c);

} // namespace stage

#endif // STAGE_COMPILER_COMPILATION_H
