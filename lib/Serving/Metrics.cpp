//===- Metrics.cpp - what a server achieved -------------------------------===//
#include "stage/Serving/Metrics.h"
#include "Timestamp.h"
#include "stage/Support/Records.h"

using namespace stage;
using namespace stage::serving;
using llvm::StringRef;

void ServingMetrics::step(const Step &step) {
  ++steps;
  busy += step.busy;
  duration += step.duration;
  for (const Iteration &iteration : step.iterations) {
    iterations += !iteration.sequences.empty();
    newTokens += iteration.newTokens;
    cachedTokens += iteration.cachedTokens;
    recomputed += iteration.recomputedTokens;
    loaded += iteration.loadedTokens;
    sequences += int64_t(iteration.sequences.size());
    mostSequences = std::max(mostSequences, int64_t(iteration.sequences.size()));
    preemptions += iteration.preemptions;
    blocksOut += iteration.blocksOut;
    blocksIn += iteration.blocksIn;
    mostBlocks = std::max(mostBlocks, iteration.blocks);
    blockTime += __int128(iteration.blocks) * step.duration;
    iterationTime += step.duration;
  }
}

void ServingMetrics::finished(const FinishedRequest &done) {
  ++requests;
  promptTokens += done.request.prompt;
  outputTokens += done.request.output;
  drafts += done.drafts;
  accepted += done.accepted;
  span = std::max(span, done.end);
  firstToken.values.push_back(done.firstToken - done.request.arrival);
  if (done.request.output > 1)
    perToken.values.push_back((done.end - done.firstToken) / (done.request.output - 1));
  queueing.values.push_back(done.start - done.request.arrival);
  latency.values.push_back(done.end - done.request.arrival);
}

int64_t ServingMetrics::Times::getMean() const {
  __int128 sum = 0;
  for (int64_t value : values)
    sum += value;
  return int64_t(sum / __int128(values.size()));
}

int64_t ServingMetrics::Times::getPercentile(int64_t percent) {
  if (!isSorted)
    llvm::sort(values);
  isSorted = true;
  return values[(values.size() * size_t(percent) + 99) / 100 - 1];
}

std::vector<ServingMetrics::NamedTimes> ServingMetrics::listTimes() {
  return {{"time to first token", &firstToken},
          {"time per output token", &perToken},
          {"queueing", &queueing},
          {"latency", &latency}};
}

std::optional<__int128> ServingMetrics::perSecond(int64_t count) const {
  if (span == 0)
    return std::nullopt;
  return __int128(count) * 1'000'000'000'000 / span;
}

std::optional<__int128> ServingMetrics::getMeanBlocks() const {
  if (iterationTime == 0)
    return std::nullopt;
  return blockTime * 1000 / iterationTime;
}

std::optional<__int128> ServingMetrics::getMeanInFlight() const {
  if (busy == 0)
    return std::nullopt;
  return duration * 1000 / busy;
}

/// `1,234.5` of 1234500; `-` for nothing.
static std::string formatThousandths(std::optional<__int128> number, std::string (*format)(__int128) = formatCount) {
  if (!number)
    return "-";
  std::string digits = std::to_string(1000 + int(*number % 1000)).substr(1);
  StringRef fraction = StringRef(digits).rtrim('0');
  return format(*number / 1000) + (fraction.empty() ? "" : "." + fraction.str());
}

/// `12.345 ms`: three decimals of the largest unit that is not above it.
static std::string formatTime(int64_t nanoseconds) {
  int64_t unit = nanoseconds >= 1'000'000'000 ? 1'000'000'000 : nanoseconds >= 1'000'000 ? 1'000'000 : 1'000;
  return formatThousandths(__int128(nanoseconds) * 1000 / unit) + (unit == 1'000       ? " us"
                                                                   : unit == 1'000'000 ? " ms"
                                                                                       : " s");
}

static std::string formatShare(__int128 part, __int128 whole) {
  // In 64 bits: what is summed over tokens may have more.
  while (whole > INT64_MAX)
    part >>= 1, whole >>= 1;
  return whole == 0 ? "-" : formatPercent(int64_t(part), int64_t(whole)) + " %";
}

static std::string describeReplicas(const SimulationOptions &options) {
  if (options.prefillReplicas)
    return "on " + formatCount(options.prefillReplicas) + " replicas for prompts and " + formatCount(options.replicas) +
           " that decode";
  return options.replicas > 1 ? "on " + formatCount(options.replicas) + " replicas" : "";
}

void ServingMetrics::print(llvm::raw_ostream &os) {
  Table counts({{"", Table::Left}, {"", Table::Right}, {"", Table::Left}}, 0);
  auto add = [&](StringRef name, const std::string &value, const std::string &note = "") {
    counts.addText({name.str(), value, note});
  };
  const BatchingOptions &batching = options.batching;
  add("requests", formatCount(requests), describeReplicas(options));
  add("tokens of prompts", formatCount(promptTokens),
      loaded ? formatCount(loaded) + " loaded, of cached prefixes" +
                   (options.prefillReplicas ? " and caches that were sent" : "")
             : "");
  add("tokens of output", formatCount(outputTokens), formatThousandths(perSecond(outputTokens)) + " per second");
  add("tokens computed", formatCount(newTokens), recomputed ? formatCount(recomputed) + " of them again" : "");
  if (batching.drafts)
    add("drafts", formatCount(drafts), formatCount(accepted) + " accepted, " + formatShare(accepted, drafts));
  add("span", formatTime(span), formatThousandths(perSecond(requests)) + " requests per second");
  add(options.lockStep ? "iterations, together" : "iterations", formatCount(steps),
      batching.stages > 1
          ? formatThousandths(getMeanInFlight()) + " in flight on " + formatCount(batching.stages) + " stages"
          : "");
  add("sequences per iteration", formatThousandths(__int128(sequences) * 1000 / iterations),
      formatCount(mostSequences) + " at most");
  add("tokens per iteration", formatThousandths(__int128(newTokens) * 1000 / iterations));
  add("blocks in use", formatThousandths(getMeanBlocks()),
      formatCount(mostBlocks) + " at most" +
          (batching.cacheBlocks
               ? " of " + formatCount(batching.cacheBlocks) + ", " + formatShare(mostBlocks, batching.cacheBlocks)
               : "") +
          "; " + formatCount(batching.block) + " tokens each");
  add("preemptions", formatCount(preemptions),
      batching.preemption == Preemption::Swap && preemptions
          ? formatCount(blocksOut) + " blocks to the host, " + formatCount(blocksIn) + " back"
          : "");
  counts.print(os, /*titles=*/false);
  os << '\n';
  Table table = Table::ofNumbers({"", "mean", "p50", "p99"});
  for (auto [name, times] : listTimes())
    if (times->values.empty())
      table.addRow({name.str(), "-", "-", "-"});
    else
      table.addRow({name.str(), formatTime(times->getMean()), formatTime(times->getPercentile(50)),
                    formatTime(times->getPercentile(99))});
  table.print(os);
}

void ServingMetrics::printJson(llvm::json::OStream &json) {
  auto exact = [](std::optional<__int128> thousandths) {
    return Record::Digits{thousandths ? formatThousandths(thousandths, toDecimal) : "null"};
  };
  auto seconds = [](int64_t nanoseconds) { return Record::Digits{formatSeconds(nanoseconds)}; };
  writeMembers(json, {{"requests", "", requests},
                      {"replicas", "", options.replicas},
                      {"prefill_replicas", "", options.prefillReplicas},
                      {"steps", "", steps},
                      {"iterations", "", iterations},
                      {"span_s", "", seconds(span)},
                      {"busy_s", "", seconds(busy)},
                      {"prompt_tokens", "", promptTokens},
                      {"output_tokens", "", outputTokens},
                      {"computed_tokens", "", newTokens},
                      {"recomputed_tokens", "", recomputed},
                      {"loaded_tokens", "", loaded},
                      {"cached_tokens_read", "", cachedTokens},
                      {"drafts", "", drafts},
                      {"accepted_drafts", "", accepted},
                      {"output_tokens_per_s", "", exact(perSecond(outputTokens))},
                      {"requests_per_s", "", exact(perSecond(requests))},
                      {"sequences", "", sequences},
                      {"most_sequences", "", mostSequences},
                      {"preemptions", "", preemptions},
                      {"blocks_out", "", blocksOut},
                      {"blocks_in", "", blocksIn},
                      {"block_tokens", "", options.batching.block},
                      {"cache_blocks", "",
                       Record::Digits{options.batching.cacheBlocks ? toDecimal(options.batching.cacheBlocks) : "null"}},
                      {"stages", "", options.batching.stages},
                      {"mean_in_flight", "", exact(getMeanInFlight())},
                      {"mean_blocks", "", exact(getMeanBlocks())},
                      {"most_blocks", "", mostBlocks}});
  for (auto [name, times] : listTimes()) {
    std::string key = name.str();
    std::replace(key.begin(), key.end(), ' ', '_');
    json.attributeBegin(key + "_s");
    if (times->values.empty())
      json.value(nullptr);
    else
      json.object([&, times = times] {
        writeMembers(json, {{"mean", "", seconds(times->getMean())},
                            {"p50", "", seconds(times->getPercentile(50))},
                            {"p99", "", seconds(times->getPercentile(99))}});
      });
    json.attributeEnd();
  }
}
