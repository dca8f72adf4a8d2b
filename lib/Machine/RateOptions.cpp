//===- RateOptions.cpp - a machine on the command line --------------------===//
#include "stage/Machine/RateOptions.h"
#include "stage/Machine/Diagnostics.h"
#include "stage/Support/CommandLine.h"
#include "stage/Support/Quantity.h"

using namespace stage;
namespace cl = llvm::cl;

namespace {
/// The subcommands of an option.
struct Commands {
  std::initializer_list<cl::SubCommand *> commands;
  template <typename Opt> void apply(Opt &option) const {
    for (cl::SubCommand *command : commands)
      option.addSubCommand(*command);
  }
};
} // namespace

class RateOptions::Option : public cl::opt<std::string> {
public:
  Option(const char *name, const char *description, cl::OptionCategory &category, Commands commands,
         uint64_t MachineRates::*rate)
      : cl::opt<std::string>(llvm::StringRef(name), cl::desc(description), cl::value_desc(rate ? "rate" : "us"),
                             cl::cat(category), commands),
        rate(rate) {
    if (!rate)
      setInitialValue("0");
  }

  uint64_t MachineRates::*rate; ///< Null: the latency.
};

RateOptions::RateOptions(cl::OptionCategory &category, std::initializer_list<cl::SubCommand *> commands) {
  auto add = [&](const char *name, uint64_t MachineRates::*rate, const char *description) {
    options.push_back(std::make_unique<Option>(name, description, category, Commands{commands}, rate));
  };
  add("flops", &MachineRates::flops, "FLOPs per second of a device, as in 989T");
  add("memory", &MachineRates::memory, "Bytes per second that a device reads and writes, as in 3.35T");
  add("link", &MachineRates::link, "Bytes per second that a device sends, as in 450G");
  add("latency", nullptr, "Latency of a message, and of each step of a collective, in microseconds (default 0)");
  add("copy", &MachineRates::copy, "Bytes per second between a device and its host");
  add("host-flops", &MachineRates::hostFlops, "FLOPs per second of a host");
  add("host-memory", &MachineRates::hostMemory, "Bytes per second that a host reads and writes");
}

RateOptions::~RateOptions() = default;

std::vector<std::string> RateOptions::listGiven() const {
  std::vector<std::string> given;
  for (const auto &option : options)
    if (isChanged<std::string>(*option))
      given.push_back(("--" + option->ArgStr).str());
  return given;
}

MachineRates RateOptions::read(DiagnosticEngine &diags) const {
  MachineRates rates;
  for (const auto &option : options) {
    if (!isChanged<std::string>(*option))
      continue;
    constexpr uint64_t ticksPerMicrosecond = ticksPerSecond / 1'000'000;
    std::optional<uint64_t> value =
        option->rate ? parseQuantity(*option) : parseQuantity(*option, ticksPerMicrosecond, /*least=*/0);
    if (!value && !option->rate)
      diags.report(SMLoc(), diag::BadLatency) << std::string(*option);
    else if (!value)
      diags.report(SMLoc(), diag::BadQuantity) << ("--" + option->ArgStr).str() << std::string(*option);
    else if (option->rate)
      rates.*option->rate = *value;
    else
      rates.latency = Ticks(std::min<uint64_t>(*value, maxTicks));
  }
  return rates;
}
