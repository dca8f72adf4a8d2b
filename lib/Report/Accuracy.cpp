//===- Accuracy.cpp - how far a time may be off ---------------------------===//
#include "stage/Report/Accuracy.h"
#include "ReportRecords.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

/// Of the time of a step, from which on something decides it.
constexpr int64_t shareThatCounts = 20;
/// Steps of measured rows take 250 ms or more; below this hosts were seen to bound them.
constexpr Ticks leastStep = ticksPerSecond / 10;
/// With more of them errors of measured steps grow, where the host waits for counts.
constexpr int64_t mostLocalExperts = 16;

namespace {
class AccuracyFinder {
public:
  AccuracyFinder(const Report &report, const StepOrigin &origin)
      : report(report), step(*report.step), traits(step.time.traits), origin(origin) {}

  Accuracy run(const MeasuredSets *sets) {
    std::string type = traits.productType ? getName(*traits.productType).str() : step.peakType;
    accuracy.step = {origin.machines, origin.runtimes, traits.hasExperts ? "experts" : "dense", type};
    accuracy.unknown = findObstacle();
    const MeasuredSet *set = sets && accuracy.unknown.empty() ? sets->findNearest(accuracy.step) : nullptr;
    if (set && step.time.isAssumed && !llvm::is_contained(origin.machines, set->machine))
      accuracy.unknown = "the machine says nothing of products, so that the step has a range";
    else if (set)
      take(*set);
    else if (accuracy.unknown.empty())
      accuracy.unknown = "no step of a model " + std::string(traits.hasExperts ? "with" : "without") +
                         " experts was measured on " + origin.machine + " or with " + origin.runtime;
    findReasons();
    return std::move(accuracy);
  }

private:
  std::string findObstacle() const {
    if (!traits.trains)
      return "no step of inference was measured";
    if (origin.runtime.empty())
      return "nothing was measured with the ideal runtime; give the job a runtime, such as one of std.runtimes";
    return "";
  }

  void addDifference(llvm::StringRef own, llvm::ArrayRef<std::string> names, llvm::StringRef ofSet) {
    if (own != ofSet)
      accuracy.differences.push_back(llvm::is_contained(names, ofSet) ? (own + " extends " + ofSet).str()
                                                                      : ("none is of " + own).str());
  }

  void take(const MeasuredSet &set) {
    accuracy.set = set;
    addDifference(origin.machine, origin.machines, set.machine);
    addDifference(origin.runtime, origin.runtimes, set.runtime);
    if (!origin.changes.empty())
      accuracy.differences.push_back("none has " + llvm::join(origin.changes, ", "));
    // The error is predicted / measured - 1.
    __int128 whole = set.p90.den * 100;
    auto divide = [&](__int128 by) { return Ticks((step.time.step * whole + by / 2) / by); };
    accuracy.range = {divide(whole + set.p90.num), divide(whole - set.p90.num)};
  }

  void add(llvm::StringRef code, std::string text) { accuracy.reasons.push_back({code, std::move(text)}); }
  bool counts(Ticks part) const { return part > 0 && __int128(part) * shareThatCounts >= step.time.step; }
  std::string describePart(Ticks part) const {
    return formatMillis(part) + " ms, " + formatPercent(part, std::max<Ticks>(step.time.step, 1)) + " % of the step";
  }

  void findReasons() {
    bool isHostBound = counts(traits.launch);
    if (isHostBound)
      add("host-bound", "ranks wait " + describePart(traits.launch) +
                            ", for kernels to be launched and for the host's part of a step, so that the host decides; "
                            "larger microbatches have longer kernels, and -D runtime.launch=0us is for CUDA graphs");
    if (origin.launches && !isHostBound && step.time.step < leastStep)
      add("short-step", "the step takes " + formatMillis(step.time.step) + " ms, and below " + formatMillis(leastStep) +
                            " ms all that the host does between kernels counts; measure it");
    if (isNearlyFull(report))
      add("memory-full", "the peak takes " +
                             formatPercent(int64_t(report.getLargestStage().peak.getTotal()), int64_t(step.capacity)) +
                             " % of memory: within 5 % of capacity allocation stalls are likely; try a smaller "
                             "microbatch, or more recomputation");
    if (origin.launches && counts(traits.besideExchange))
      add("exchange-overlap", "tokens are exchanged beside other work for " + describePart(traits.besideExchange) +
                                  ", while the host launches each kernel; exchange them alone, or use "
                                  "-D runtime.launch=0us for CUDA graphs");
    if (traits.waitsForCounts && traits.numLocalExperts > mostLocalExperts)
      add("local-experts", "a rank has " + formatCount(traits.numLocalExperts) + " experts, and more than " +
                               formatCount(mostLocalExperts) +
                               " whose kernels the host launches behind a count of tokens take time that no price "
                               "has; use more ranks for experts");
    if (traits.otherContraction && accuracy.set)
      add("other-ops", "no measured row has ops such as '" + traits.otherContraction->name +
                           "', which contract and are neither products nor attention; expect larger errors");
    if (const std::optional<MeasuredSet> &set = accuracy.set) {
      if (report.ranks > set->ranks)
        add("more-ranks", "the job has " + formatCount(report.ranks) + " ranks, and measured rows have up to " +
                              formatCount(set->ranks) + "; expect larger errors");
      if (accuracy.step.type != set->type)
        add("other-type", "products multiply " + accuracy.step.type + ", and those of measured rows " + set->type +
                              "; expect larger errors");
    }
  }

  const Report &report;
  const StepReport &step;
  const StepTraits &traits;
  const StepOrigin &origin;
  Accuracy accuracy;
};
} // namespace

Accuracy stage::findAccuracy(const Report &report, const StepOrigin &origin, const MeasuredSets *sets) {
  return AccuracyFinder(report, origin).run(sets);
}

std::string stage::formatError(const MeasuredSet &set) { return formatDouble(set.p90.toDouble(), 1); }

std::string stage::describeError(const Accuracy &accuracy) {
  const MeasuredSet &set = *accuracy.set;
  std::string text = "+-" + formatError(set) + " % (" + formatCount(set.rows) +
                     (set.rows == 1 ? " measured row of " : " measured rows of ") + set.runtime + " on " + set.machine +
                     ", " + set.kind;
  for (const std::string &difference : accuracy.differences)
    text += "; " + difference;
  return text + ")";
}

void stage::writeAccuracy(llvm::json::OStream &json, const Accuracy &accuracy) {
  json.attributeObject("accuracy", [&] {
    writeMembers(json, {{"kind", "", accuracy.step.kind},
                        {"type", "", accuracy.step.type},
                        {"machines", "", accuracy.step.machines},
                        {"runtimes", "", accuracy.step.runtimes}});
    auto digits = [](const Rational &percent) { return Record::Digits{formatDouble(percent.toDouble() / 100, 6)}; };
    if (const std::optional<MeasuredSet> &set = accuracy.set)
      json.attributeObject("measured", [&] {
        writeMembers(json, {{"machine", "", set->machine},
                            {"runtime", "", set->runtime},
                            {"type", "", set->type},
                            {"rows", "", __int128(set->rows)},
                            {"ranks", "", __int128(set->ranks)},
                            {"bias", "", digits(set->bias)},
                            {"p90", "", digits(set->p90)},
                            {"differences", "", accuracy.differences}});
      });
    else
      json.attribute("unknown", accuracy.unknown);
    std::vector<Records> reasons;
    for (const DomainReason &reason : accuracy.reasons)
      reasons.push_back({{"reason", "", reason.code.str()}, {"text", "", reason.text}});
    writeRows(json, "not_covered", reasons);
  });
}
