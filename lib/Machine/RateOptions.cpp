//===- RateOptions.cpp - a machine on the command line --------------------===//
#include "stage/Machine/RateOptions.h"
#include "stage/Machine/Diagnostics.h"
#include "stage/Support/CommandLine.h"
#include "stage/Symbolic/Quantity.h"

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
         Rate MachineRates::*rate, Dimension dimension)
      : cl::opt<std::string>(llvm::StringRef(name), cl::desc(description), cl::value_desc(rate ? "rate" : "time"),
                             cl::cat(category), commands),
        rate(rate), dimension(dimension) {
    if (!rate)
      setInitialValue("0s");
  }

  /// No latency, in whatever unit, is the default.
  bool isGiven() const {
    std::optional<Quantity> value = parseQuantity(*this, dimension);
    return isChanged<std::string>(*this) && (rate || !value || value->value.num != 0);
  }

  Rate MachineRates::*rate; ///< Null: the latency.
  Dimension dimension;
};

RateOptions::RateOptions(cl::OptionCategory &category, std::initializer_list<cl::SubCommand *> commands) {
  auto add = [&](const char *name, Rate MachineRates::*rate, Dimension dimension, const char *description) {
    options.push_back(std::make_unique<Option>(name, description, category, Commands{commands}, rate, dimension));
  };
  Dimension flops = Dimension::ofFlopsPerSecond(), bytes = Dimension::ofBytesPerSecond();
  add("flops", &MachineRates::flops, flops, "FLOPs per second of a device, as in 989TFLOP/s");
  add("memory", &MachineRates::memory, bytes, "Bytes per second that a device reads and writes, as in 3.35TB/s");
  add("link", &MachineRates::link, bytes, "Bytes per second that a device sends, as in 450GB/s");
  add("latency", nullptr, Dimension::ofTime(),
      "Latency of a message, and of each step of a collective, as in 2us (default: 0s)");
  add("copy", &MachineRates::copy, bytes, "Bytes per second between a device and its host, as in 55GB/s");
  add("host-flops", &MachineRates::hostFlops, flops, "FLOPs per second of a host, as in 2TFLOP/s");
  add("host-memory", &MachineRates::hostMemory, bytes, "Bytes per second that a host reads and writes, as in 200GB/s");
}

RateOptions::~RateOptions() = default;

std::vector<std::string> RateOptions::listGiven() const {
  std::vector<std::string> given;
  for (const auto &option : options)
    if (option->isGiven())
      given.push_back(("--" + option->ArgStr).str());
  return given;
}

MachineRates RateOptions::read(DiagnosticEngine &diags, MachineRates rates) const {
  for (const auto &option : options) {
    if (!option->isGiven())
      continue;
    std::string flag = ("--" + option->ArgStr).str();
    bool isOfNetwork = !option->rate || option->rate == &MachineRates::link;
    if (!rates.name.empty() && isOfNetwork) {
      std::string entry = option->rate ? "rate" : "hop";
      diags.report(SMLoc(), diag::LinkBesideLevels)
          << flag << rates.name
          << (rates.levels.empty() ? "" : ", such as '" + rates.levels.front().name + "." + entry + "'");
      continue;
    }
    std::optional<Rational> value = readQuantity(flag, *option, option->dimension, diags);
    if (value && !option->rate)
      value = value->mul(Rational::integer(ticksPerSecond));
    if (!value)
      continue;
    if (!value->isInteger() || value->num > UINT64_MAX || (option->rate && value->num == 0))
      diags.report(SMLoc(), option->rate ? diag::BadRate : diag::BadLatency) << flag << std::string(*option);
    else if (option->rate) {
      rates.*option->rate = Rate(uint64_t(value->num));
      // Of a machine that has FLOPs for each type, those of the type that it is asked for.
      if (std::optional<DType> type = parseDType(rates.type); type && option->rate == &MachineRates::flops)
        rates.types[size_t(*type)].flops = rates.flops;
      if (!rates.name.empty())
        rates.changes.push_back(flag + "=" + std::string(*option));
    } else
      rates.latency = Ticks(std::min<uint64_t>(value->num, maxTicks));
  }
  return rates;
}
