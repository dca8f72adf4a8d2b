//===- PackedUnit.h - what a unit takes of several sequences ---*- C++ -*-===//
//
// A server computes some tokens of some requests at a time. Such an iteration is a unit, in
// which positions of several sequences stand one behind the other:
//
//   i2 p1+276@24 1d+1@1000     276 positions of one sequence behind 24, one of another behind 1,000
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SCHEDULE_PACKEDUNIT_H
#define STAGE_SCHEDULE_PACKEDUNIT_H

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace stage {

/// Positions of a sequence that a unit takes, at least 1, behind those whose keys and values are in caches.
struct SequencePart {
  int64_t taken = 0, cached = 0;
  int64_t sampled = 0;  ///< Of those that are taken, the last ones, whose outputs are wanted.
  int64_t sequence = 0; ///< Its number among all.
};

/// Positions of a sequence that are copied between its cache and the host.
struct MovedPart {
  int64_t positions = 0, sequence = 0;
};

struct PackedUnit {
  std::string name;
  bool decodes = false;                  ///< Nothing of a prompt is in it.
  std::vector<SequencePart> sequences;   ///< At least one.
  std::vector<MovedPart> stored, loaded; ///< To the host and back, before the unit.

  int64_t countTaken() const { return sum(&SequencePart::taken); }
  /// Sequences that have been there before.
  int64_t countResumed() const {
    return std::count_if(sequences.begin(), sequences.end(), [](const SequencePart &part) { return part.cached > 0; });
  }
  int64_t countSampled() const { return sum(&SequencePart::sampled); }
  /// Positions that its sequences have then.
  int64_t countContext() const { return countTaken() + sum(&SequencePart::cached); }

private:
  int64_t sum(int64_t SequencePart::*member) const {
    int64_t count = 0;
    for (const SequencePart &part : sequences)
      count += part.*member;
    return count;
  }
};

/// What a server runs, and what its caches are for.
struct ServedUnits {
  std::vector<PackedUnit> units; ///< In order; at least one.
  int64_t room = 0;              ///< Positions for which caches have room, of all sequences together.
  int64_t sequences = 0;         ///< That there may be at a time.
  bool rejects = false;          ///< Of what a draft model has proposed, and a unit has taken, some is not kept.

  /// Positions that any sequence has at most, at the end of a unit.
  int64_t getLongest() const {
    int64_t longest = 0;
    for (const PackedUnit &unit : units)
      for (const SequencePart &part : unit.sequences)
        longest = std::max(longest, part.cached + part.taken);
    return longest;
  }
};

} // namespace stage

#endif // STAGE_SCHEDULE_PACKEDUNIT_H
