//===- Unit.h - kinds of phases, and units of a schedule -------*- C++ -*-===//
//
// A step of a workload has phases: forward, backward, ... (Phases.def). One enumeration
// of their kinds goes from the text of a schedule, through the blocks of a graph and the
// templates of a program, to the names of nodes in a trace. What a schedule orders are
// units: a phase of one chunk for one microbatch, `F2` or `I0.1`, or a pair of them that run interleaved, `F2|B0`.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SCHEDULE_UNIT_H
#define STAGE_SCHEDULE_UNIT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/SMLoc.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace stage {

using llvm::SMLoc;

enum class PhaseKind : uint8_t {
#define PHASE(id, name, letter, duration) id,
#include "stage/Schedule/Phases.def"
};
constexpr unsigned numPhaseKinds = 0
#define PHASE(id, name, letter, duration) +1
#include "stage/Schedule/Phases.def"
    ;
/// `backward_input`.
llvm::StringRef getName(PhaseKind kind);
/// In the text of a schedule; 0 for what runs once per step.
char getLetter(PhaseKind kind);
/// The kind of a letter; nothing if there is none.
std::optional<PhaseKind> findPhase(char letter);

/// Runs behind all microbatches, and is in no schedule.
inline bool isOncePerStep(PhaseKind kind) { return kind == PhaseKind::Reduce || kind == PhaseKind::Step; }
/// Up the virtual stages: what a unit of inference runs, or the first that one of training does.
inline bool isForward(PhaseKind kind) {
  return kind == PhaseKind::Forward || kind == PhaseKind::Draft || kind == PhaseKind::Decode;
}
/// Copies parts of caches to the host or back, in front of a unit of the same microbatch that goes forward; in those
/// units that have any.
inline bool movesCaches(PhaseKind kind) { return kind == PhaseKind::Store || kind == PhaseKind::Load; }
/// Goes on with what units of forward have left in caches; what else these make is nothing to it.
inline bool isDecoding(PhaseKind kind) { return kind == PhaseKind::Draft || kind == PhaseKind::Decode; }
/// Gradients are made there, and contributions to those of parameters added up.
inline bool isBackward(PhaseKind kind) {
  return kind == PhaseKind::Backward || kind == PhaseKind::BackwardInput || kind == PhaseKind::BackwardWeight;
}
/// Whether the virtual stage before is waiting for what the phase makes of its inputs: their gradients.
inline bool makesInputGradient(PhaseKind kind) {
  return kind == PhaseKind::Backward || kind == PhaseKind::BackwardInput;
}
/// Whether messages go from virtual stage to virtual stage in a phase: up in forward, down where input gradients are
/// made.
inline bool hasMessages(PhaseKind kind) { return isForward(kind) || makesInputGradient(kind); }

/// What symbols are in some units and not in others: S = 16. By name.
using UnitBindings = std::vector<std::pair<std::string, int64_t>>;
/// All that units have, each once. Number 0 binds nothing.
class Environments {
public:
  Environments();
  unsigned add(UnitBindings bindings);
  const UnitBindings &operator[](unsigned number) const { return all[number]; }
  unsigned size() const { return all.size(); }
  /// The number of the first one in which all sizes are the same: batches (InferenceSymbols.h) differ in whose caches
  /// they have only.
  unsigned getAlike(unsigned number) const { return alike[number]; }
  bool isFirstAlike(unsigned number) const { return alike[number] == number; }
  /// Of sizes that some of them bind.
  const std::set<std::string> &getSymbols() const { return symbols; }

private:
  std::vector<UnitBindings> all;
  std::vector<unsigned> alike;
  std::set<std::string> symbols;
  /// Numbers by hash, of what is bound and of what is left without the batch: a server has a hundred thousand.
  std::unordered_multimap<size_t, unsigned> numbers, firsts;
};
/// `(S=16,T=4)`; nothing for one that binds nothing.
std::string toString(const UnitBindings &environment);

/// One step of one stage.
struct Unit {
  PhaseKind kind = PhaseKind::Forward;
  unsigned microbatch = 0;
  unsigned chunk = 0;
  /// Where the program asks for it; if invalid, messages are at the schedule's place.
  SMLoc loc = {};
  unsigned environment = 0; ///< Number in Environments.
  /// Of inference: the unit before it, by microbatch, whose sampled tokens are inputs of this one (Op::isFed).
  std::optional<unsigned> feeder = {};
  /// It runs interleaved with the next unit of its stage (stage/Schedule/Schedule.h).
  bool overlapsNext = false;

  bool operator==(const Unit &other) const {
    return kind == other.kind && microbatch == other.microbatch && chunk == other.chunk;
  }
  /// `F2`, `I0.1`, `step`; with `showChunk` also `F2.0`.
  std::string str(bool showChunk = false) const;
};
llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const Unit &unit);

/// What stands behind a unit in a list of units: `F1|B0` is a pair of units that run interleaved.
inline llvm::StringRef getSeparator(const Unit &unit) { return unit.overlapsNext ? "|" : " "; }

/// The first unit of the pair to which the unit at a position belongs; itself, if it is in no pair.
inline size_t getPairBegin(llvm::ArrayRef<Unit> units, size_t position) {
  return position && units[position - 1].overlapsNext ? position - 1 : position;
}
/// The position behind that pair.
inline size_t getPairEnd(llvm::ArrayRef<Unit> units, size_t position) {
  return position + (units[position].overlapsNext ? 2 : 1);
}
inline bool hasPairs(llvm::ArrayRef<Unit> units) {
  return llvm::any_of(units, [](const Unit &unit) { return unit.overlapsNext; });
}

/// Reads `F0 F1|B0.1`, and, where there are environments to add to, `F1(S=16)` and `D2(S=1)<1`, which unit 1 feeds.
/// Nothing on a syntax error.
std::optional<std::vector<Unit>> parseUnits(llvm::StringRef text, Environments *environments = nullptr);

} // namespace stage

#endif // STAGE_SCHEDULE_UNIT_H
