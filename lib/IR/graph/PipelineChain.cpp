//===- PipelineChain.cpp - repeats in a row that a pipeline cuts ----------===//
#include "stage/IR/graph/PipelineChain.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>

using namespace stage;

static std::vector<int64_t> addUp(llvm::ArrayRef<int64_t> parts) {
  std::vector<int64_t> sums = {0};
  for (int64_t part : parts)
    sums.push_back(sums.back() + part);
  return sums;
}

PipelineChain::PipelineChain(llvm::ArrayRef<int64_t> counts, llvm::ArrayRef<int64_t> split, unsigned entry,
                             std::optional<unsigned> exit)
    : begins(addUp(counts)), cuts(addUp(split)), entry(entry) {
  for (unsigned repeat = 0; repeat < counts.size(); ++repeat) {
    // The virtual stage that ends with the last iteration or behind it; what follows the chain runs on the last one.
    unsigned last = std::lower_bound(cuts.begin() + 1, cuts.end(), begins[repeat + 1]) - cuts.begin() - 1;
    lasts.push_back(repeat + 1 == counts.size() ? exit.value_or(split.size() - 1)
                    : counts[repeat]            ? last
                                                : getFirst(repeat));
  }
}

std::pair<int64_t, int64_t> PipelineChain::getRange(unsigned repeat, unsigned virtualStage) const {
  auto clamp = [&](int64_t place) { return std::clamp<int64_t>(place - begins[repeat], 0, getCount(repeat)); };
  return {clamp(cuts[virtualStage]), clamp(cuts[virtualStage + 1])};
}

std::optional<unsigned> PipelineChain::getCutRepeat(unsigned virtualStage) const {
  unsigned repeat = std::upper_bound(lasts.begin(), lasts.end(), virtualStage) - lasts.begin();
  return virtualStage < entry || repeat == lasts.size() ? std::nullopt : std::optional<unsigned>(repeat);
}

std::vector<std::pair<unsigned, bool>> PipelineChain::listKindsOfCuts() const {
  std::vector<std::pair<unsigned, bool>> kinds;
  for (unsigned v = 0; v + 2 < cuts.size(); ++v) {
    unsigned repeat = *getCutRepeat(v);
    kinds.emplace_back(repeat, getRange(repeat, v).second > 0);
  }
  llvm::sort(kinds);
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  return kinds;
}

std::vector<Op *> stage::findPipelinedRepeats(const Graph &graph) {
  llvm::StringMap<Op *> byName;
  for (auto &op : graph.getForward())
    if (op->kind == OpKind::Repeat)
      byName.try_emplace(op->name, op.get());
  std::vector<Op *> repeats;
  for (const std::string &name : graph.pipeline.repeats)
    repeats.push_back(byName.lookup(name));
  return repeats;
}

unsigned stage::countVirtualStages(const Graph &graph) {
  const PipelineInfo &pipeline = graph.pipeline;
  int64_t ofAllCopies = (pipeline.axis ? graph.mesh[*pipeline.axis].size : 1) * int64_t(pipeline.chunks);
  return std::max<int64_t>(1, ofAllCopies / std::max(pipeline.copies, 1u));
}

std::vector<int64_t> stage::splitEvenly(int64_t count, unsigned parts) {
  std::vector<int64_t> split;
  for (unsigned part = 0; part < parts; ++part)
    split.push_back(count / parts + (part < count % parts));
  return split;
}
