//===- ServeOptions.cpp - the command line of stagec serve ----------------===//
#include "Options.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/Machine/RateOptions.h"
#include "stage/Support/CommandLine.h"
#include "stage/Support/Decimal.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace stage;
using namespace stage::driver;
using namespace stage::serving;
using llvm::StringRef;
namespace cl = llvm::cl;

namespace {
cl::SubCommand command("serve", "go through a file of requests as a server would");
cl::OptionCategory category("Serve", "with --requests, a job takes all options of 'stagec serve --help':");

struct Text;
std::vector<const Text *> allTexts;

/// A text that is read and checked below, so that faults have codes.
struct Text : cl::opt<std::string> {
  /// `standard` is what it is anyway, if a text says that.
  Text(const char *name, const char *desc, const char *value, const char *standard = nullptr)
      : cl::opt<std::string>(StringRef(name), cl::desc(desc), cl::value_desc(value), cl::cat(category),
                             cl::sub(command), cl::sub(*cl::TopLevelSubCommand)) {
    if (standard)
      setInitialValue(standard);
    allTexts.push_back(this);
  }
  bool isGiven() const { return isChanged(*this); }
  std::string getFlag() const { return ("--" + ArgStr).str(); }
};

cl::opt<std::string> input(cl::Positional, cl::Required, cl::desc("<requests.jsonl>"), cl::cat(category),
                           cl::sub(command));
cl::list<std::string> ignored("ignore", cl::desc("Go on without <field>, which is not understood"),
                              cl::value_desc("field"), cl::cat(category), cl::sub(command),
                              cl::sub(*cl::TopLevelSubCommand));
cl::opt<std::string> requests("requests",
                              cl::desc("Serve a file of requests by a job with 'S = requests', whose units are the "
                                       "iterations of the server"),
                              cl::value_desc("requests.jsonl"), cl::cat(category));
Text tokenBudget("token-budget", "Tokens that an iteration computes at most (default: 2048)", "n", "2048");
Text maxSequences("max-sequences", "Requests that run at a time (default: 256)", "n", "256");
Text chunk("chunk", "Tokens of one request that an iteration computes at most (default: no limit)", "n");
Text block("block", "Tokens of a block of the cache (default: 16)", "n", "16");
Text cacheBlocks("cache-blocks", "Blocks of the cache of a replica (default: no limit)", "n");
cl::opt<Admission> admit("admit", cl::desc("Admit a request as soon as the cache has room for"),
                         cl::values(clEnumValN(Admission::Whole, "whole", "its whole prompt (default)"),
                                    clEnumValN(Admission::Chunk, "chunk", "the tokens of its first chunk")),
                         cl::init(Admission::Whole), cl::cat(category), cl::sub(command),
                         cl::sub(*cl::TopLevelSubCommand));
cl::opt<Preemption>
    preempt("preempt", cl::desc("Preemption of the youngest request where the cache has no free block"),
            cl::values(clEnumValN(Preemption::Recompute, "recompute", "it computes its cache again (default)"),
                       clEnumValN(Preemption::Swap, "swap", "its cache goes to the host and comes back"),
                       clEnumValN(Preemption::Refuse, "refuse", "an error")),
            cl::init(Preemption::Recompute), cl::cat(category), cl::sub(command), cl::sub(*cl::TopLevelSubCommand));
Text prefixStore("prefix-store",
                 "Blocks of prompts, as hash_ids name them, that are kept beside the cache (default: no limit)", "n");
Text prefixBlock("prefix-block", "Tokens per block of the prefix store (default: 512)", "n", "512");
Text draft("draft", "Draft tokens of each sequence in an iteration (default: none)", "n");
Text acceptance("acceptance", "Fraction of draft tokens that are accepted, as in 0.7", "share");
Text replicas("replicas", "Servers that share the requests (default: 1)", "n", "1");
cl::opt<Dealing> deal("deal", cl::desc("Which replica a request is for"),
                      cl::values(clEnumValN(Dealing::RoundRobin, "round-robin", "one after the other (default)"),
                                 clEnumValN(Dealing::LeastLoaded, "least-loaded", "the one with the fewest requests")),
                      cl::init(Dealing::RoundRobin), cl::cat(category), cl::sub(command),
                      cl::sub(*cl::TopLevelSubCommand));
cl::opt<bool> lockStep("lock-step", cl::desc("All replicas iterate together"), cl::cat(category), cl::sub(command),
                       cl::sub(*cl::TopLevelSubCommand));
Text prefillReplicas("prefill-replicas",
                     "Servers that compute prompts for the others, and send them their caches (default: none)", "n");
Text sendTime("send-time", "Transfer time of a cache, without that of its tokens, as in 2ms (default: 0s)", "time",
              "0s");
Text sendTokenTime("send-token-time", "Transfer time per token of the cache that is sent, as in 3us (default: 0s)",
                   "time", "0s");
Text stages("stages",
            "Stages of a pipeline, each of which works on an iteration of its own (default: 1, or those of the job)",
            "n");
Text iterationTime("iteration-time", "How long an iteration lasts, as in 12ms", "time");
/// Options of before, so that who gives them is told what to write instead.
Text removed[] = {{"token-time", "", "time"}, {"cached-time", "", "time"}, {"costs", "", "costs.json"}};
cl::OptionCategory machineCategory("Machine", "rates for --emit=time, and in place of those of the job's machine:");
RateOptions rates(machineCategory, {&command, &*cl::TopLevelSubCommand});
Text window("iterations", "List these iterations, from 0, without the last: 0..100", "a..b");
cl::opt<ReportKind> report("report", cl::desc("How the report is printed"),
                           cl::values(clEnumValN(ReportKind::Text, "text", "for people (default)"),
                                      clEnumValN(ReportKind::Json, "json", "one JSON object with exact numbers")),
                           cl::init(ReportKind::Text), cl::cat(category), cl::sub(command));

/// Enough for any server; sums over an iteration stay in 64 bits.
constexpr int64_t maxCount = 100'000'000;
constexpr int64_t maxReplicas = 65'536;
} // namespace

/// A number that may be left out.
static void readCount(const Text &text, int64_t least, int64_t most, int64_t &result, DiagnosticEngine &diags) {
  if (!text.isGiven())
    return;
  int64_t number;
  if (StringRef(text).getAsInteger(10, number) || number < least || number > most)
    diags.report(SMLoc(), diag::BadServingOption)
        << text.getFlag() << "a number from " + std::to_string(least) + " to " + std::to_string(most)
        << StringRef(text);
  else
    result = number;
}

/// `12ms`, in seconds: the nearest number, whatever its unit.
static void readTime(const Text &text, double &result, DiagnosticEngine &diags) {
  if (!text.isGiven())
    return;
  std::optional<Rational> seconds = readQuantity(text.getFlag(), text, Dimension::ofTime(), diags);
  if (seconds && seconds->compare(Rational::integer(maxIterationSeconds)) > 0)
    diags.report(SMLoc(), diag::BadServingOption)
        << text.getFlag() << "a time of at most " + std::to_string(maxIterationSeconds) + "s" << StringRef(text);
  else if (seconds)
    result = seconds->toDouble();
}

void stage::driver::readMachine(DriverOptions &options, DiagnosticEngine &diags) {
  std::vector<std::string> given = rates.listGiven();
  if (given.empty())
    return;
  options.machine = rates.read(diags);
  // Whether a job that serves requests has a machine, whose rates these replace, is not known yet.
  if (options.emit != EmitKind::Time && options.emit != EmitKind::Timeline &&
      options.emit != EmitKind::MemoryTimeline && options.astraSim.empty() && !options.requests)
    diags.report(SMLoc(), diag::FlagWithoutEffect)
        << given.front() << "nothing is timed (--emit=time, --emit=timeline, --requests, stagec serve)";
}

MachineRates stage::driver::replaceRates(MachineRates machine, DiagnosticEngine &diags) {
  return rates.read(diags, std::move(machine));
}

/// A job that names a machine is bound later (ServedJob.cpp), which also reports missing rates.
static void readRates(ServeCommand &result, bool hasModel, DiagnosticEngine &diags) {
  result.rates = rates.listGiven();
  for (const std::string &name : result.rates)
    if (!hasModel)
      diags.report(SMLoc(), diag::FlagWithoutEffect)
          << name << "'stagec serve' has no model that it could be a rate of";
}

/// False after a report.
static bool refuseRemoved(DiagnosticEngine &diags) {
  bool isGood = true;
  for (const Text &text : removed)
    if (text.getNumOccurrences()) {
      diags.report(SMLoc(), diag::ServingOptionRemoved) << text.getFlag();
      isGood = false;
    }
  return isGood;
}

static void readAcceptance(BatchingOptions &options, DiagnosticEngine &diags) {
  if (!acceptance.isGiven()) {
    if (options.drafts)
      diags.report(SMLoc(), diag::BadServingOption) << "--draft"
                                                    << "--acceptance, the share of drafts that is accepted,"
                                                    << "";
    return;
  }
  if (!options.drafts)
    diags.report(SMLoc(), diag::FlagWithoutEffect) << "--acceptance"
                                                   << "there are no drafts (--draft)";
  std::optional<Decimal> share = parseDecimal(StringRef(acceptance));
  bool isGood = share && share->places <= 9;
  int64_t scale = isGood ? int64_t(std::llround(std::pow(10, share->places))) : 1;
  if (!isGood || share->digits > scale) {
    diags.report(SMLoc(), diag::BadServingOption)
        << "--acceptance"
        << "a number from 0 to 1, with at most nine decimals" << StringRef(acceptance);
    return;
  }
  options.acceptedDrafts = share->digits;
  options.ofDrafts = scale;
}

static void readWindow(ServeCommand &result, DiagnosticEngine &diags) {
  if (!window.isGiven())
    return;
  auto [first, last] = StringRef(window).split("..");
  std::pair<int64_t, int64_t> numbers;
  if (first.getAsInteger(10, numbers.first) || last.getAsInteger(10, numbers.second) || numbers.first < 0 ||
      numbers.second <= numbers.first)
    diags.report(SMLoc(), diag::BadServingOption)
        << window.getFlag() << "the first iteration and the one behind the last, as in 0..100" << StringRef(window);
  else
    result.window = numbers;
}

void stage::driver::prepareServeOptions(bool hides) {
  const cl::OptionCategory *own[] = {&category, &machineCategory};
  cl::HideUnrelatedOptions(own, command);
  // A list of 25 options would hide all others of stagec.
  if (hides)
    for (auto &entry : cl::getRegisteredOptions())
      if (llvm::is_contained(entry.second->Categories, &category) && entry.second != &requests)
        entry.second->setHiddenFlag(cl::Hidden);
  for (Text &text : removed)
    text.setHiddenFlag(cl::ReallyHidden);
}

cl::OptionCategory &stage::driver::getServingCategory() { return category; }
cl::OptionCategory &stage::driver::getMachineCategory() { return machineCategory; }

bool stage::driver::isServeCommand() { return bool(command); }

template <typename T> static void refuseIfChanged(const cl::opt<T> &option, StringRef why, DiagnosticEngine &diags) {
  if (isChanged(option))
    diags.report(SMLoc(), diag::FlagWithoutEffect) << ("--" + option.ArgStr).str() << why;
}

/// What a server does with requests, whatever it serves.
static void readServing(ServeCommand &result, bool hasModel, bool limitsCache, DiagnosticEngine &diags) {
  result.ignored.assign(ignored.begin(), ignored.end());
  BatchingOptions &batching = result.options.batching;
  readCount(draft, 1, 1000, batching.drafts, diags);
  // A sequence with its drafts is computed at once.
  readCount(tokenBudget, 1 + batching.drafts, maxCount, batching.tokenBudget, diags);
  readCount(chunk, 1 + batching.drafts, maxCount, batching.chunk, diags);
  readCount(maxSequences, 1, maxCount, batching.maxSequences, diags);
  readCount(block, 1, maxCount, batching.block, diags);
  readCount(cacheBlocks, 1, maxCount * 1000, batching.cacheBlocks, diags);
  readCount(prefixStore, 0, maxCount * 1000, batching.prefixStore, diags);
  readCount(prefixBlock, 1, maxCount, batching.prefixBlock, diags);
  result.limitsPrefixes = prefixStore.isGiven() || prefixBlock.isGiven();
  readAcceptance(batching, diags);
  batching.admission = admit;
  batching.preemption = preempt;
  int64_t numReplicas = 1;
  readCount(replicas, 1, maxReplicas, numReplicas, diags);
  result.options.replicas = unsigned(numReplicas);
  int64_t numPrefill = 0;
  readCount(prefillReplicas, 1, maxReplicas, numPrefill, diags);
  result.options.prefillReplicas = unsigned(numPrefill);
  readTime(sendTime, result.options.sendTime, diags);
  readTime(sendTokenTime, result.options.sendTokenTime, diags);
  int64_t numStages = 1;
  readCount(stages, 1, maxReplicas, numStages, diags);
  result.options.batching.stages = unsigned(numStages);
  result.options.dealing = deal;
  result.options.lockStep = lockStep;
  readTime(iterationTime, result.iterationTime, diags);
  readRates(result, hasModel, diags);
  readWindow(result, diags);
  auto refuse = [&](const auto &option, StringRef why) { refuseIfChanged(option, why, diags); };
  if (limitsCache)
    refuse(cacheBlocks, "--fits searches for them");
  else if (!cacheBlocks.isGiven()) {
    refuse(admit, "the cache has no limit (--cache-blocks)");
    refuse(preempt, "the cache has no limit (--cache-blocks)");
  }
  if (!replicas.isGiven() && !prefillReplicas.isGiven()) {
    refuse(deal, "there is one replica (--replicas)");
    refuse(lockStep, "there is one replica (--replicas)");
  }
  if (hasModel)
    refuse(stages, "the job's pipeline says how many there are");
  if (!prefillReplicas.isGiven()) {
    refuse(sendTime, "no caches are sent (--prefill-replicas)");
    refuse(sendTokenTime, "no caches are sent (--prefill-replicas)");
  }
  // A time that is not understood was reported.
  result.takesTime = !refuseRemoved(diags) || iterationTime.isGiven();
}

ServeCommand stage::driver::readServeCommand(DiagnosticEngine &diags) {
  ServeCommand result;
  result.input = input;
  result.report = report;
  if (input.empty())
    diags.report(SMLoc(), diag::EmptyOption) << "<requests.jsonl>";
  readServing(result, /*hasModel=*/false, /*limitsCache=*/false, diags);
  if (!result.takesTime)
    diags.report(SMLoc(), diag::NoIterationTime);
  return result;
}

std::optional<ServeCommand> stage::driver::readRequests(bool limitsCache, DiagnosticEngine &diags) {
  if (!requests.getNumOccurrences()) {
    auto refuse = [&](const auto &option) { refuseIfChanged(option, "there are no requests (--requests)", diags); };
    for (const Text *text : allTexts)
      refuse(*text);
    refuse(admit);
    refuse(preempt);
    refuse(deal);
    refuse(lockStep);
    if (!ignored.empty())
      diags.report(SMLoc(), diag::FlagWithoutEffect) << "--ignore"
                                                     << "there are no requests (--requests)";
    return std::nullopt;
  }
  ServeCommand result;
  result.input = requests;
  if (requests.empty())
    diags.report(SMLoc(), diag::EmptyOption) << "--requests";
  readServing(result, /*hasModel=*/true, limitsCache, diags);
  if (result.options.replicas > 1 || result.options.prefillReplicas)
    diags.report(SMLoc(), diag::RequestsOfReplicas);
  return result;
}
