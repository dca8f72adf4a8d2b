//===- Schedules.h - schedules by their definitions ------------*- C++ -*-===//
//
// What std.schedules says in the language, said again in C++, so that the checker and
// the simulation are tested without a compiler in front of them.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_UNITTESTS_SCHEDULE_SCHEDULES_H
#define STAGE_UNITTESTS_SCHEDULE_SCHEDULES_H

#include "stage/Schedule/Schedule.h"

namespace stage {

/// A schedule whose stage r runs what `fill(r, add)` adds.
template <typename Fill> Schedule makeSchedule(unsigned p, unsigned m, unsigned v, Fill fill) {
  Schedule schedule;
  schedule.stages = p;
  schedule.microbatches = m;
  schedule.chunks = v;
  for (unsigned r = 0; r < p; ++r) {
    std::vector<Unit> &units = schedule.units.emplace_back();
    fill(r, [&](PhaseKind kind, unsigned microbatch, unsigned chunk = 0) {
      units.push_back({kind, microbatch, chunk});
    });
  }
  return schedule;
}

inline Schedule makeGPipe(unsigned p, unsigned m) {
  return makeSchedule(p, m, 1, [&](unsigned, auto add) {
    for (unsigned i = 0; i < m; ++i)
      add(PhaseKind::Forward, i);
    for (unsigned i = 0; i < m; ++i)
      add(PhaseKind::Backward, i);
  });
}

/// 1F1B whose backward and forward of the steady phase are pairs.
inline Schedule makeOverlapped1F1B(unsigned p, unsigned m) {
  Schedule schedule = makeSchedule(p, m, 1, [&](unsigned r, auto add) {
    unsigned w = std::min(m, 2 * (p - r) - 1);
    for (unsigned i = 0; i < w; ++i)
      add(PhaseKind::Forward, i);
    for (unsigned i = 0; i < m; ++i) {
      add(PhaseKind::Backward, i);
      if (w + i < m)
        add(PhaseKind::Forward, w + i);
    }
  });
  for (std::vector<Unit> &units : schedule.units)
    for (size_t i = 0; i + 1 < units.size(); ++i)
      units[i].overlapsNext = units[i].kind == PhaseKind::Backward && units[i + 1].kind == PhaseKind::Forward;
  return schedule;
}

inline Schedule make1F1B(unsigned p, unsigned m) {
  return makeSchedule(p, m, 1, [&](unsigned r, auto add) {
    unsigned w = std::min(m, p - r);
    for (unsigned i = 0; i < w; ++i)
      add(PhaseKind::Forward, i);
    for (unsigned i = 0; i < m - w; ++i) {
      add(PhaseKind::Backward, i);
      add(PhaseKind::Forward, w + i);
    }
    for (unsigned i = m - w; i < m; ++i)
      add(PhaseKind::Backward, i);
  });
}

/// Needs m % p == 0.
inline Schedule makeInterleaved(unsigned p, unsigned m, unsigned v) {
  return makeSchedule(p, m, v, [&](unsigned r, auto add) {
    unsigned n = m * v, w = std::min(n, 2 * (p - r - 1) + (v - 1) * p);
    auto chunk = [&](unsigned k) { return k % (p * v) / p; };
    auto microbatch = [&](unsigned k) { return k / (p * v) * p + k % p; };
    for (unsigned k = 0; k < w; ++k)
      add(PhaseKind::Forward, microbatch(k), chunk(k));
    for (unsigned k = w; k < n; ++k) {
      add(PhaseKind::Forward, microbatch(k), chunk(k));
      add(PhaseKind::Backward, microbatch(k - w), v - 1 - chunk(k - w));
    }
    for (unsigned k = n - w; k < n; ++k)
      add(PhaseKind::Backward, microbatch(k), v - 1 - chunk(k));
  });
}

inline Schedule makeZBH1(unsigned p, unsigned m) {
  return makeSchedule(p, m, 1, [&](unsigned r, auto add) {
    unsigned w = std::min(m, p - r);
    for (unsigned i = 0; i < w; ++i)
      add(PhaseKind::Forward, i);
    for (unsigned i = 0; i < m; ++i) {
      add(PhaseKind::BackwardInput, i);
      if (i + w < m)
        add(PhaseKind::Forward, i + w);
      if (i >= r)
        add(PhaseKind::BackwardWeight, i - r);
    }
    for (unsigned i = m > r ? m - r : 0; i < m; ++i)
      add(PhaseKind::BackwardWeight, i);
  });
}

/// Two chunks in the shape of a V: virtual stage r, and the r-th from the end.
inline Schedule makeVee(unsigned p, unsigned m) {
  Schedule schedule = makeSchedule(p, m, 2, [&](unsigned, auto add) {
    for (unsigned i = 0; i < m; ++i) {
      add(PhaseKind::Forward, i, 0);
      add(PhaseKind::Forward, i, 1);
      add(PhaseKind::Backward, i, 1);
      add(PhaseKind::Backward, i, 0);
    }
  });
  for (unsigned r = 0; r < p; ++r)
    schedule.placement.push_back(r);
  for (unsigned r = 0; r < p; ++r)
    schedule.placement.push_back(2 * p - 1 - r);
  return schedule;
}

} // namespace stage

#endif // STAGE_UNITTESTS_SCHEDULE_SCHEDULES_H
