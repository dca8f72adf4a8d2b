//===- KnownSchedules.cpp - schedules that need no second check -----------===//
#include "stage/Schedule/KnownSchedules.h"

using namespace stage;

constexpr size_t mostSchedules = 64;

KnownSchedules::Known::Known(const Schedule &schedule) {
  counts.stages = schedule.stages;
  counts.microbatches = schedule.microbatches;
  counts.chunks = schedule.chunks;
  counts.copies = schedule.copies;
  counts.training = schedule.training;
  counts.placement = schedule.placement;
  for (const std::vector<Unit> &ofStage : schedule.units) {
    std::vector<UnitKey> &keys = units.emplace_back();
    keys.reserve(ofStage.size());
    for (const Unit &unit : ofStage)
      keys.push_back({unit.microbatch, unit.chunk, unit.kind, unit.overlapsNext});
  }
}

bool KnownSchedules::Known::isOf(const Schedule &schedule) const {
  auto getCounts = [](const Schedule &of) {
    return std::tie(of.stages, of.microbatches, of.chunks, of.copies, of.training, of.placement);
  };
  auto areSame = [](const std::vector<UnitKey> &keys, const std::vector<Unit> &ofStage) {
    return std::equal(keys.begin(), keys.end(), ofStage.begin(), ofStage.end(),
                      [](const UnitKey &key, const Unit &unit) { return key.isOf(unit); });
  };
  return getCounts(counts) == getCounts(schedule) &&
         std::equal(units.begin(), units.end(), schedule.units.begin(), schedule.units.end(), areSame);
}

KnownSchedules::Known &KnownSchedules::find(const Schedule &schedule) {
  auto found = llvm::find_if(all, [&](const Known &known) { return known.isOf(schedule); });
  if (found != all.end())
    return *found;
  if (all.size() == mostSchedules)
    all.pop_front();
  return all.emplace_back(schedule);
}

bool KnownSchedules::check(const Schedule &schedule, DiagnosticEngine &diags) {
  Known &known = find(schedule);
  known.isRight = known.isRight || checkSchedule(schedule, diags);
  return known.isRight;
}

std::optional<RecvPosts> KnownSchedules::post(const Schedule &schedule, const std::vector<bool> &work,
                                              llvm::function_ref<RecvPosts()> listPosts,
                                              llvm::function_ref<bool(unsigned, const Unit &)> communicates,
                                              DiagnosticEngine &diags) {
  Known &known = find(schedule);
  auto found = llvm::find_if(known.posts, [&](const auto &posts) { return posts.first == work; });
  if (found != known.posts.end())
    return found->second;
  std::optional<RecvPosts> posts = postRecvs(schedule, listPosts(), communicates, diags);
  if (posts)
    known.posts.emplace_back(work, *posts);
  return posts;
}
