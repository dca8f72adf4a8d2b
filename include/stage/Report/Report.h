//===- Report.h - what a step costs, without writing it --------*- C++ -*-===//
//
// Parameters, FLOPs, communication and memory of one step, from the program IR. Sums
// go over stages, ops and coordinates, never over ranks: 131,072 ranks cost what 8 do.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_REPORT_REPORT_H
#define STAGE_REPORT_REPORT_H

#include "stage/Memory/Memory.h"
#include "stage/Report/StepReport.h"
#include "stage/Report/Subject.h"
#include "llvm/Support/JSON.h"
#include <map>

namespace stage {

/// FLOPs of a step, summed over all ranks. A multiply-add is 2.
struct FlopReport {
  __int128 contraction = 0, attention = 0, other = 0;
  /// What fused backwards compute again; in none of the others.
  __int128 recompute = 0;
  __int128 getModel() const { return contraction + attention; }
  __int128 getTotal() const { return contraction + attention + other + recompute; }

  void add(const FlopReport &more, __int128 times) {
    contraction += more.contraction * times;
    attention += more.attention * times;
    other += more.other * times;
    recompute += more.recompute * times;
  }
};

/// Collectives of one kind over one group of axes, or sends, of one subject, phase and element type, as one rank of a
/// stage sees them in a step.
struct TrafficReport {
  OpKind kind = OpKind::AllReduce; ///< Ignored if `isSend`.
  bool isSend = false;
  /// Of sends: the part that receives them; null for those of a pipeline.
  const Program *toPart = nullptr;
  AxisList axes;
  std::vector<std::string> axisNames; ///< As dense layers or experts call them, whichever the subject is of.
  Subject subject = Subject::Activations;
  PhaseKind phase = PhaseKind::Forward; ///< Of the halves of backward: backward.
  llvm::StringRef phaseName;            ///< As people call it: `backward`, of inference `prefill`.
  std::string types;                    ///< In which it is sent: `bf16`, of a bucket of parameters `bf16, f32`.
  /// Of groups across stages that not all take part in: those that do.
  llvm::SmallVector<unsigned, 2> stages;
  int64_t groupSize = 2;
  __int128 count = 0;
  __int128 bytes = 0; ///< That the rank puts in: of ranks that differ the one that puts in most.
  __int128 least = 0; ///< The one that puts in least.
  /// Where ranks differ what traces say: of each group the most that a member puts in or, of an all_to_all, gets. Of
  /// groups that differ the one that says most. Otherwise 0.
  __int128 agreed = 0;
  /// What leaves the rank of these bytes where members pass on to their neighbours what is not theirs
  /// (stage/Machine/Traffic.h).
  __int128 getMoved() const;
};

/// `all_gather`, `send`.
llvm::StringRef describeOperation(const TrafficReport &traffic);

/// Copies between the device and the host, as one rank of a stage sees them in a step.
struct CopyReport {
  OpKind kind = OpKind::Offload;
  __int128 count = 0;
  __int128 bytes = 0;
};

struct StageReport {
  unsigned stage = 0;
  /// Elements of parameters, and of buffers of the model, that a rank of the stage holds; the most that one does.
  __int128 parameters = 0, buffers = 0;
  /// FLOPs of all ranks of the stage, recomputation and padding included.
  __int128 flops = 0;
  /// Of these what experts compute whose slots a load makes different from rank to rank (0 without one), and what the
  /// busiest rank computes of it.
  __int128 expertFlops = 0, mostExpertFlops = 0;
  /// Bytes of its ranks' memories that ops read and write, collectives and copies apart.
  __int128 accessedBytes = 0;
  /// Of one unit.
  struct UnitCost {
    __int128 flops = 0, accessedBytes = 0;
    std::vector<TrafficReport> traffic; ///< Of a rank; of inference.
  };
  /// By kind, chunk and environment (of those with the same sizes the first).
  std::map<std::tuple<PhaseKind, unsigned, unsigned>, UnitCost> unitCosts;
  std::vector<TrafficReport> traffic; ///< In the order of first use.
  std::vector<CopyReport> copies;     ///< Likewise.
};

/// One kind of communication in a unit: count and bytes in the unit that has least and in the one that has most of
/// each, as a rank of each of these neighbouring stages sees them.
struct PhaseTraffic {
  TrafficReport least, most;
  unsigned first = 0, last = 0; ///< Stages.
};

/// The units of inference of one kind, from what one takes of all ranks at least to what one takes at most.
struct PhaseReport {
  PhaseKind kind = PhaseKind::Forward;
  int64_t units = 0;
  __int128 leastFlops = 0, mostFlops = 0;
  __int128 leastBytes = 0, mostBytes = 0; ///< That ops read and write.
  std::vector<PhaseTraffic> traffic;      ///< By kind, in the order of first use, and by stage.
};
/// What is kept for further positions, of all batches and ranks together, each byte once.
struct CacheReport {
  __int128 bytes = 0;
  __int128 perPosition = 0; ///< More for a position more, of all sequences.
  int64_t positions = 0;    ///< Of a sequence for which there is room.
  int64_t sequences = 0;    ///< 0: nobody knows which dim of caches they are.
};

/// The traces that were written, or those that would be.
struct TraceStatistics {
  bool written = false;
  int64_t ranks = 0; ///< Of the files.
  int64_t classes = 0;
  __int128 nodes = 0;
  __int128 bytes = 0;
  int64_t files = 0;
  int64_t steps = 1; ///< That they are of; all else in a report is of one.
};

struct Report {
  const Program *program = nullptr;
  std::string job; ///< Its name; empty where there is none.
  int64_t ranks = 1;
  /// Elements of all parameters, unsharded and unpadded, each once.
  __int128 parameters = 0;
  /// Those that work on one token: of the parameters of experts, whose dim a token is routed along, the share of its
  /// experts.
  __int128 activeParameters = 0;
  /// Elements of all buffers of the model, in the same way.
  __int128 buffers = 0;
  /// Elements that padding adds to the parameters.
  __int128 padding = 0;
  /// Elements that flat storage of parameters, or of what the optimizer keeps for them, adds, so that all parts of one
  /// are equally large; of all parts.
  __int128 storagePadding = 0;
  /// Slots to which forward routes tokens in a step, those without a token, and choices of tokens for which there is
  /// none.
  __int128 slots = 0, emptySlots = 0, droppedChoices = 0;
  /// The work of the unsharded model, with its own sizes: each result counts once, however many ranks compute it. Model
  /// FLOPs are the same for every strategy.
  FlopReport flops;
  /// Beyond these: FLOPs of ranks that compute the same numbers as others, or an addend as large as the sum.
  FlopReport duplicatedFlops;
  /// Beyond both: the work that padding and empty slots add. Ranks execute all three.
  FlopReport paddingFlops;
  std::vector<StageReport> stages;
  /// Of inference; of training there are none.
  std::vector<PhaseReport> phases;
  std::optional<CacheReport> caches;
  MemoryReport memory;
  std::optional<TraceStatistics> traces;
  std::optional<StepReport> step; ///< Where the job has a machine.

  /// The stage whose ranks hold most at their peak; the first of several.
  const StageMemory &getLargestStage() const;
};

/// The memory report is taken over. After errors (a cost that has no value) the numbers are not to be used.
Report makeReport(const Program &program, MemoryReport memory, DiagnosticEngine &diags);

/// One kind of communication with its numbers on neighbouring stages.
struct TrafficRow {
  const TrafficReport *traffic;
  unsigned first, last;
};
/// Rows by kind and axes in the order of first appearance; stages with equal numbers share a row.
std::vector<TrafficRow> collectTraffic(const Report &report);

/// Prints the table of stages and what is largest at their peaks.
void printStages(llvm::raw_ostream &os, const MemoryReport &report);
/// Prints the saved bytes and the table of stages (`--emit=memory`).
void print(llvm::raw_ostream &os, const MemoryReport &report);

/// Aligned text for people (`--report`).
void print(llvm::raw_ostream &os, const Report &report);
/// One JSON object with exact numbers (`--report=json`); docs/schema names its fields.
void printJson(llvm::raw_ostream &os, const Report &report);
/// The same of all parts of a workload: an object with a list `parts`.
/// What else there is to say of them all is added by `more`.
void printJson(
    llvm::raw_ostream &os, llvm::ArrayRef<Report> parts,
    llvm::function_ref<void(llvm::json::OStream &)> more = [](llvm::json::OStream &) {});

} // namespace stage

#endif // STAGE_REPORT_REPORT_H
