//===- Prove.h - does the sharded program compute the same? ----*- C++ -*-===//
//
// A strategy is proved by running what it was compiled to (law L12). For tiny sizes
// and real numbers three runs are compared:
//
//   reference   the forward block as written, and its derivative by the formulas of
//               its operators (checked against finite differences)
//   unsharded   the graph after its passes, on one device: forward, backward, step
//   sharded     the program IR: every rank with its own pieces, every collective from
//               what the members really hold, messages through mailboxes, units in the
//               order of the schedule, tensors freed where memory accounting says so
//
// Between the first two, losses and the gradients of all parameters must agree; between
// the last two every value that is not a partial sum, on every rank that has a piece of
// it, and every updated parameter. That says nothing of other sizes: what a pass decides
// by size is decided as it was, but it is executed at the tiny ones only.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_INTERP_PROVE_H
#define STAGE_INTERP_PROVE_H

#include "stage/IR/graph/Channel.h"
#include "stage/IR/graph/PipelineChain.h"
#include "stage/IR/graph/Workload.h"
#include "stage/Schedule/PackedUnit.h"

namespace stage::interp {

/// What a proof covered.
struct Proof {
  unsigned numParams = 0;   ///< Tensors of parameters, one per iteration of their repeat.
  uint64_t numCompared = 0; ///< Values, each in one iteration and microbatch.
  double maxError = 0;      ///< As a part of the largest element of the expected tensor.
  double maxAccepted = 0;   ///< The largest error that was accepted of any value: 1e-9 but where rounding may be more.
  /// Of the values that were compared, those that are what rounding leaves of numbers that cancel: a proof cannot say
  /// anything about them, and no more about the errors that it accepts.
  uint64_t numOfRounding = 0;
  unsigned steps = 1;
  uint64_t numUncached = 0; ///< What units return that was compared with a pass over all positions, without caches.
  bool isSharded = false;   ///< False: the graph has no shardings yet, and only its derivative was proved.
};

/// Most ranks that a proof runs.
constexpr int64_t maxProofRanks = 64;

/// Proves a graph after its passes against one that means the same before them. `program` may be null: then only the
/// unsharded run is compared. Both graphs must be bound to the same sizes, small ones. Every fault is reported, and
/// gives nothing.
/// Several training steps are of the same microbatches: each begins with the parameters that the one before has left,
/// on each rank with its own.
///
/// Of a graph that infers also, with `whole`, against the model without caches (Uncached.h in lib/Interp). `served`:
/// the units of one whose units are of several sequences.
std::optional<Proof> prove(Graph &reference, Graph &graph, const Program *program, DiagnosticEngine &diags,
                           unsigned steps = 1, Graph *whole = nullptr, const ServedUnits *served = nullptr);
/// The same, for a graph after any passes: a program is made of it if its communication has been inserted.
std::optional<Proof> prove(Graph &reference, Graph &graph, DiagnosticEngine &diags);

/// The same for all parts of a workload, which are run together: one proof for each. What a part receives is what the
/// others send, before the passes, on one device and on the ranks.
std::optional<std::vector<Proof>> prove(Workload &reference, Workload &workload, DiagnosticEngine &diags);

/// The same for a prefill and the part that decodes with its caches: what is sent are the pieces of caches that the
/// channels say. `whole` is the model that decodes, without caches.
std::optional<std::vector<Proof>> prove(llvm::ArrayRef<Graph *> references, const LinkedProgram &pools, Graph &whole,
                                        DiagnosticEngine &diags);

/// False if a graph's mesh has more than maxProofRanks, which is reported.
bool hasFewRanks(const Graph &graph, DiagnosticEngine &diags);

/// Under what small sizes are chosen, and what becomes of those of the job.
struct ProofSizes {
  const SizeBinding *job = nullptr; ///< Sizes and axes of the job; null: those that the graph has before.
  std::vector<std::string> smaller; ///< "X 128 -> 4", "microbatches 8 -> 4".
  std::vector<std::string> larger;  ///< "T 1 -> 2".
  std::vector<std::string>
      notKept; ///< Relations of the job (Relations.h in lib/Interp): "K < X: K 2 of 8, X 2 of 128".

  /// Notes every symbol whose value differs.
  void note(const SizeBinding &before, const SizeBinding &after);
  /// "made small: ...", "made larger: ..." behind `whose`, and a line "not kept: ..." for each relation.
  void print(llvm::raw_ostream &os, llvm::StringRef whose = "") const;
};

/// Binds the symbols of a graph to small sizes that keep all it requires: obligations, the splits of its shardings,
/// whole numbers in subscripts, and, as far as can be, the relations between sizes that the job has. Symbols in `fixed`
/// or bound by units, mesh axes and the counts of repeats keep their values. Different symbols get different sizes
/// where they may. False if there are none, or if the mesh has more than maxProofRanks, which is reported.
bool bindTinySizes(Graph &graph, llvm::ArrayRef<std::string> fixed, DiagnosticEngine &diags,
                   ProofSizes *proofSizes = nullptr);

/// The same for all parts of a workload. Both ends of a transfer get the same sizes. `made` gets an entry for each
/// part.
bool bindTinySizes(Workload &workload, std::vector<ProofSizes> &made, DiagnosticEngine &diags);

/// The same for a prefill and the part that decodes with its caches, of one model: their symbols have the same values,
/// but for `own` ones. So many batches of the one are one of the other. `made` gets an entry for both.
bool bindTinySizes(Graph &prefill, Graph &decode, unsigned batches, llvm::ArrayRef<std::string> fixed,
                   llvm::ArrayRef<std::string> own, std::vector<ProofSizes> &made, DiagnosticEngine &diags);

/// The repeats that the pipeline of a graph cuts, and where: as evenly as can be without a `split`. Nothing if there
/// are none, or the pipeline does not fit them.
std::optional<PipelineChain> findChain(const Graph &graph);
/// Binds the symbols of the counts of repeats, but for those in `fixed`, so that repeats have as few iterations as tell
/// the truth (ShortLoops.cpp), and says how many of them each virtual stage of a pipeline runs. To be done before the
/// passes. Returns what changed other than by the binding: the repeats with cases, "layers 61 -> 4", and a `split`.
std::vector<std::string> shortenLoops(Graph &graph, llvm::ArrayRef<std::string> fixed);
/// Gives the repeats of `to`, a graph of the same program before its passes, the iterations of those of `from`.
void copyIterations(Graph &to, const Graph &from);
/// Cases of fewer iterations, a multiple of `parts` and `least` or more, in which each case has two iterations or all
/// it has, each step from one case to another stands, and runs are cut to `longestRun` where nothing asks for more. The
/// same cases if there are none.
IterationCases shortenCases(const IterationCases &cases, int64_t longestRun, int64_t least, int64_t parts);
/// Through how many of the values that a repeat carries one value can pass, one each iteration.
int64_t countPassedThrough(const Op &loop);
/// Whether an obligation holds under a binding.
bool isMet(const Obligations::Obligation &owed, const SizeBinding &binding);

/// "proved on mesh dp2 tp2: 37 parameters, 214 values compared, max error 3e-12 of 1e-09 accepted".
void print(llvm::raw_ostream &os, const Graph &graph, const Proof &proof);

} // namespace stage::interp

#endif // STAGE_INTERP_PROVE_H
