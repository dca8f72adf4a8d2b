//===- Schedule.h - pipeline schedules -------------------------*- C++ -*-===//
//
// A pipeline of p stages works on m microbatches. Each stage holds v chunks of the
// model; chunk c of stage r is one of p*v virtual stages, which a microbatch passes
// in order. A schedule says, stage by stage, what is run in which order (law L8):
//
//   stages 2, microbatches 3, chunks 1
//   stage 0: F0 F1 B0 F2 B1 B2
//   stage 1: F0 B0 F1 B1 F2 B2
//
// `F2` is forward of microbatch 2 on chunk 0, `F2.1` on chunk 1; B is a whole
// backward, I and W its halves for inputs and weights, R a recomputed forward, D a forward of its own (decode).
// Stages, microbatches, chunks and positions in a list all count from 0.
//
// `F2|B0` is a pair: two neighbours of the list, a forward and a backward of two microbatches, that run interleaved.
// The collectives of one unit hide behind the compute of the other one. A pair is one step of its stage: it begins when
// both units have what they receive, and their messages leave when both units have ended. The order of the tasks of
// both units: stage/Walk/PairOrder.h.
//
// The model may be there several times (DualPipe: twice, once in each direction). A microbatch passes one of these
// copies, whose virtual stages are numbered behind those of the copy before it:
//
//   stages 2, microbatches 2, chunks 2        chunk 0    chunk 1
//   copies 2                        stage 0   0          3
//   placement 0 1 3 2               stage 1   1          2
//
// Stages 0 and 1 both hold the first half of the layers, as virtual stage 0 and as 2, and both the second.
//
// Schedules are written in the language (std.schedules), not here. Here they are
// checked, put in one order over all stages, and timed.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SCHEDULE_SCHEDULE_H
#define STAGE_SCHEDULE_SCHEDULE_H

#include "stage/Schedule/Unit.h"
#include "stage/Support/Diagnostics.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include <array>

namespace stage {

/// A unit by its place.
struct UnitRef {
  unsigned stage;
  unsigned position;
  bool operator==(const UnitRef &other) const { return stage == other.stage && position == other.position; }
};

struct Schedule {
  unsigned stages = 1;       ///< p
  unsigned microbatches = 1; ///< m
  unsigned chunks = 1;       ///< v
  /// For each stage what it runs, in order.
  std::vector<std::vector<Unit>> units;
  /// The virtual stage of chunk c on stage r at [c*p + r]. Empty stands for the identity, c*p + r.
  std::vector<unsigned> placement;
  /// Of the model. The chunks of the first copy come first, then those of the second.
  unsigned copies = 1;
  /// Else no microbatch needs a backward.
  bool training = true;
  SMLoc loc;

  unsigned getVirtualStage(unsigned chunk, unsigned stage) const {
    unsigned index = chunk * stages + stage;
    return placement.empty() ? index : placement[index];
  }
  unsigned getNumVirtualStages() const { return stages * chunks; }
  unsigned getChunksPerCopy() const { return chunks / copies; }
  /// The copy that a chunk belongs to, and how many virtual stages each copy has.
  unsigned getCopy(unsigned chunk) const { return chunk / getChunksPerCopy(); }
  unsigned getNumPerCopy() const { return stages * getChunksPerCopy(); }
  /// The virtual stage behind one, and the one before it; nothing at the ends of a copy.
  std::optional<unsigned> getNext(unsigned virtualStage) const {
    return (virtualStage + 1) % getNumPerCopy() ? std::optional(virtualStage + 1) : std::nullopt;
  }
  std::optional<unsigned> getPrevious(unsigned virtualStage) const {
    return virtualStage % getNumPerCopy() ? std::optional(virtualStage - 1) : std::nullopt;
  }
  const Unit &get(UnitRef ref) const { return units[ref.stage][ref.position]; }

  /// The text above; a placement that is not the identity is a line `placement 0 1 3 2`.
  void print(llvm::raw_ostream &os) const;
  std::string str() const;
};

/// Reads what Schedule::print writes. Nothing on a syntax error; what the text says may still be wrong, see
/// checkSchedule.
std::optional<Schedule> parseSchedule(llvm::StringRef text);

/// The (stage, chunk) of every virtual stage: the placement the other way round, if it has no faults.
std::vector<std::pair<unsigned, unsigned>> invertPlacement(const Schedule &schedule);
/// Reports virtual stages that are not placed once each, and copies that are not on as many stages of their own: of
/// each stage, all that it holds is also on the same others. True if all is right.
bool checkPlacement(const Schedule &schedule, DiagnosticEngine &diags);

/// Reports everything that is wrong with a schedule. True if nothing is. Rules:
///
///   * each virtual stage is placed once, and there is a list for every stage;
///   * a stage runs forward (or decode) of each (chunk, microbatch) once, of several copies those of one, which is the
///     same on all stages, and, to train, either one whole backward or one of each half;
///   * forward comes before recompute, that before backward, and input gradients come before weight gradients;
///   * a pair has one unit that goes forward and one that goes backward, of two microbatches;
///   * every stage gets to the end of its list, if forward of virtual stage k waits for forward of k-1, and the
///     input gradients of k for those of k+1. Otherwise the message shows who waits for whom.
///
/// Each fault is reported with its first unit on each stage, and a note says how many more there are.
bool checkSchedule(const Schedule &schedule, DiagnosticEngine &diags);

/// By stage and position: while which unit of the stage, from its beginning, the recv of a unit is posted.
using RecvPosts = std::vector<std::vector<unsigned>>;

/// When recvs are posted so that a schedule that passes checkSchedule finishes where sends wait for their recv, too. A
/// stage sends in the order of its list, and does not communicate in groups of its ranks (`communicates`) before its
/// earlier sends are gone. `posts` are kept (one unit ahead, stage/Walk/Arrivals.h) if the schedule finishes with them.
/// If it hangs, a recv is posted as soon as its message is sent, where that is earlier and if forward and halves of
/// backward take equally long. Nothing, and a message, if it hangs and neighbouring virtual stages take microbatches in
/// different orders. All but linear in the units.
std::optional<RecvPosts> postRecvs(const Schedule &schedule, RecvPosts posts,
                                   llvm::function_ref<bool(unsigned stage, const Unit &unit)> communicates,
                                   DiagnosticEngine &diags);

/// The schedule of one of several parts that send each other messages.
struct PartSchedule {
  std::string name;
  Schedule schedule;
  RecvPosts posts;
};
/// A message between units of two parts.
struct UnitMessage {
  struct End {
    unsigned part = 0;
    UnitRef unit = {};
  };
  End sender, receiver;
};
/// Reports parts that hang so, each of which finishes by itself: with messages between them, those of a unit in the
/// order in which it sends them, behind those of its pipeline. No part may wait for itself through others.
bool checkSends(llvm::ArrayRef<PartSchedule> parts, llvm::ArrayRef<UnitMessage> messages,
                llvm::function_ref<bool(unsigned part, unsigned stage, const Unit &unit)> communicates,
                DiagnosticEngine &diags);

//===----------------------------------------------------------------------===//
// What follows from a schedule. All of it is for schedules that pass checkSchedule.
//===----------------------------------------------------------------------===//

/// All units of all stages, each after what it depends on and after its predecessors on its stage. Ordered by the
/// number of units that must come before (when every unit takes one step), then by stage.
std::vector<UnitRef> topologicalOrder(const Schedule &schedule);

/// What a microbatch is held for: its activations are needed until the input gradients, and some until the weight
/// gradients, are done. Without split backwards both are the same.
enum class HeldUntil : uint8_t { InputGradient, WeightGradient };

/// The most microbatches whose forward is done on a stage and whose backward is not.
struct InFlight {
  std::vector<unsigned> perChunk; ///< The peak of each chunk, at different times perhaps.
  unsigned total = 0;             ///< The peak of the sum over chunks, in (chunk, microbatch) pairs.
};
InFlight countInFlight(const Schedule &schedule, unsigned stage, HeldUntil until = HeldUntil::InputGradient);

/// How long a unit of each kind takes, in any unit of time.
using PhaseDurations = std::array<int64_t, numPhaseKinds>;
/// Where nobody says it (Phases.def).
inline constexpr PhaseDurations standardDurations = {
#define PHASE(id, name, letter, duration) duration,
#include "stage/Schedule/Phases.def"
};

/// Every unit started as early as its stage and its dependencies allow; sending takes no time.
struct ScheduleTimes {
  std::vector<std::vector<int64_t>> start; ///< Per stage and position.
  std::vector<int64_t> busy;               ///< Per stage: the sum of its durations.
  int64_t makespan = 0;                    ///< When the last unit ends.
  /// How long a stage idles between 0 and the makespan.
  int64_t getBubble(unsigned stage) const { return makespan - busy[stage]; }
};
ScheduleTimes simulate(const Schedule &schedule, llvm::function_ref<int64_t(UnitRef)> duration);

} // namespace stage

#endif // STAGE_SCHEDULE_SCHEDULE_H
