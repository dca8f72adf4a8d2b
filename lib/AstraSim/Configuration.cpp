//===- Configuration.cpp - what ASTRA-sim needs beside traces -------------===//
#include "stage/AstraSim/Configuration.h"
#include "stage/AstraSim/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace stage;
using namespace stage::astrasim;
using llvm::StringRef;

std::optional<Network> astrasim::makeNetwork(llvm::ArrayRef<const Program *> parts, const Machine &machine, SMLoc loc,
                                             DiagnosticEngine &diags) {
  int64_t numRanks = 0;
  for (const Program *part : parts)
    numRanks += part->graph->mesh.getNumRanks();
  if (!machine.checkNumRanks(numRanks, loc, diags))
    return std::nullopt;
  if (numRanks == 1) {
    diags.report(loc, diag::AstraSimOfOneRank);
    return std::nullopt;
  }
  const Mesh &mesh = parts.front()->graph->mesh;
  // The topology of one of several parts says nothing of the others.
  if (parts.size() > 1 || !mesh.getNumNetworkDims())
    return Network::makeFromLevels(machine, numRanks);
  llvm::SmallVector<int64_t, 4> sizes(mesh.getNumNetworkDims(), 1);
  for (const Axis &axis : mesh.getAxes())
    sizes[*axis.networkDim] *= axis.size;
  Network network = Network::makeFromSizes(machine, sizes);
  const Machine used = machine.usedBy(numRanks);
  int64_t stride = 1;
  for (unsigned dim = 0; dim < sizes.size(); ++dim) {
    int64_t size = sizes[dim];
    const MachineLevel *inner = Network::findSpannedLevel(used, stride, size);
    const MachineLevel *outer =
        llvm::find_if(used.getLevels(), [&](const MachineLevel &level) { return level.ranks >= stride * size; });
    if (inner)
      diags.report(loc, diag::DimensionSpansLevels)
          << dim << size << inner->ranks / stride << inner->name << outer->name;
    stride *= size;
  }
  return network;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// `amount` / 10^places, exactly, without zeros at the end.
static std::string printDecimal(uint64_t amount, unsigned places) {
  std::string digits = std::to_string(amount);
  if (digits.size() <= places)
    digits.insert(0, places + 1 - digits.size(), '0');
  std::string whole = digits.substr(0, digits.size() - places);
  StringRef fraction = StringRef(digits).substr(whole.size()).rtrim('0');
  return fraction.empty() ? whole : whole + "." + fraction.str();
}

/// Bytes per second, in GB/s of 1e9 bytes.
static std::string printRate(uint64_t rate) { return printDecimal(rate, 9); }

/// The same in units of 2^30 bytes, which the network calls GB. Twelve digits are more than any rate has.
static std::string printNetworkRate(uint64_t rate) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::format("%.12g", double(rate) / double(uint64_t(1) << 30));
  return os.str();
}

/// Picoseconds / `parts`, a divisor of 10, in nanoseconds.
static std::string printNanoseconds(Ticks ticks, unsigned parts) {
  return printDecimal(uint64_t(ticks) * (10 / parts), 4);
}

/// What the simulator reads as the rate of a host.
static uint64_t roundHostRate(uint64_t rate) {
  constexpr uint64_t gigabyte = 1'000'000'000;
  return std::max<uint64_t>(1, (rate + gigabyte / 2) / gigabyte);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

std::string astrasim::makeNetworkFile(const Network &network, const Machine &machine) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "# " << network.getNumRanks() << " ranks on machine " << machine.describe() << ", for ASTRA-sim's analytical "
     << "network. Dimensions from the inside out:\n";
  unsigned number = 0;
  for (const NetworkDim &dim : network.getDims())
    os << "#   " << number++ << ": " << dim.ranks << " ranks on level '" << dim.level->name << "', "
       << printRate(getPerSecond(dim.level->rate)) << " GB/s, " << printNanoseconds(dim.level->hop, 1) << " ns\n";
  os << "# GB/s below are 2^30 bytes per second. A latency is that of one link, and a message passes the links to a "
        "switch and from it.\n";
  auto list = [&](StringRef key, auto print) {
    os << key << ": [ ";
    llvm::interleaveComma(network.getDims(), os, print);
    os << " ]\n";
  };
  list("topology", [&](const NetworkDim &dim) { os << getName(dim.block); });
  list("npus_count", [&](const NetworkDim &dim) { os << dim.ranks; });
  list("bandwidth", [&](const NetworkDim &dim) { os << printNetworkRate(getPerSecond(dim.level->rate)); });
  list("latency", [&](const NetworkDim &dim) { os << printNanoseconds(dim.level->hop, getNumLinks(dim.block)); });
  return os.str();
}

/// The algorithm of each dimension. With one entry in the list groups of part of the ranks have it, too; with more
/// they have a ring. `oneDirect` treats all ranks as one dimension.
static void listAllToAll(llvm::json::OStream &json, const Network &network, const Needs &needs) {
  if (network.getDims().size() == 1 || needs.allToAllOfAllRanks)
    for (size_t dim = 0; dim < network.getDims().size(); ++dim)
      json.value("direct1");
  else
    json.value("oneDirect1");
}

std::string astrasim::makeSystemFile(const Network &network, const Machine &machine, const Needs &needs,
                                     ComputeTimes times, bool tracksMemory) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os, 2);
  auto number = [&](StringRef key, StringRef value) {
    json.attributeBegin(key);
    json.rawValue(value);
    json.attributeEnd();
  };
  json.object([&] {
    json.attribute("scheduling-policy", "FIFO");
    json.attribute("endpoint-delay", 1); // ns; with 0 the simulator aborts where a step begins with a collective
    json.attribute("active-chunks-per-dimension", 1);
    json.attribute("preferred-dataset-splits", 1);
    for (StringRef kind : {"all-reduce", "all-gather", "reduce-scatter"})
      json.attributeArray((kind + "-implementation").str(), [&] {
        for (size_t dim = 0; dim < network.getDims().size(); ++dim)
          json.value("ring");
      });
    json.attributeArray("all-to-all-implementation", [&] { listAllToAll(json, network, needs); });
    json.attribute("collective-optimization", "localBWAware");
    number("local-mem-bw", printRate(getPerSecond(machine.getMemory())));
    number("peak-perf", printDecimal(getPerSecond(machine.getRates()->flops), 12));
    json.attribute("roofline-enabled", times == ComputeTimes::Roofline ? 1 : 0);
    if (tracksMemory)
      json.attribute("track-local-mem", 1);
  });
  os << '\n';
  return os.str();
}

std::string astrasim::makeMemoryFile(const Machine &machine, const Needs &needs) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attribute("memory-type", needs.copies ? "PER_NPU_MEMORY_EXPANSION" : "NO_MEMORY_EXPANSION");
    if (!needs.copies)
      return;
    json.attribute("remote-mem-latency", 0);
    json.attribute("remote-mem-bw", int64_t(roundHostRate(getPerSecond(machine.getRates()->copy))));
  });
  os << '\n';
  return os.str();
}

/// In quotes that a shell leaves alone.
static std::string quote(StringRef text) {
  std::string quoted = "'";
  for (char c : text)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string astrasim::makeRunScript(const Network &network, const RunFiles &files) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << R"sh(#!/bin/sh
# Runs ASTRA-sim on traces that were written with this folder:
#
)sh"
     << "#   " << files.script << " path/to/AstraSim_Analytical_Congestion_Unaware [option of the simulator...]\n"
     << "#   ASTRA_SIM=path/to/... TRACES=other/folder " << files.script << "\n"
     << (files.about.empty() ? "" : "#\n# " + files.about + "\n") << R"sh(#
# The simulator writes its log into the folder log of the current folder. The exit code is 0 if all ranks finish.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
traces=$here/)sh"
     << quote(files.traces) << R"sh(
traces=${TRACES:-$traces}
simulator=${ASTRA_SIM:-}
if [ $# -gt 0 ]; then
  simulator=$1
  shift
fi
if [ -z "$simulator" ]; then
  echo "usage: $0 path/to/AstraSim_Analytical_Congestion_Unaware [option...]" >&2
  exit 2
fi
output=$(mktemp)
trap 'rm -f "$output"' EXIT
code=0
"$simulator" \
  --workload-configuration="$traces"/)sh"
     << quote(files.prefix) << R"sh( \
  --comm-group-configuration="$here/comm_group.json" \
  --system-configuration="$here/)sh"
     << files.system << R"sh(" \
  --network-configuration="$here/)sh"
     << files.network << R"sh(" \
  --remote-memory-configuration="$here/memory.json" \
  "$@" >"$output" 2>&1 || code=$?
finished=$(grep -c 'sys\[[0-9]*\] finished, ' "$output" || true)
if [ "$finished" -ne )sh"
     << network.getNumRanks() << R"sh( ]; then
  tail -n 20 "$output" >&2
  echo "$finished of )sh"
     << network.getNumRanks() << R"sh( ranks finished; the simulator ended with exit code $code" >&2
  exit 1
fi
sed -n 's/.*\(sys\[[0-9]*\] finished, .*\)/\1/p; s/.*\(sys\[[0-9]*\] peak memory usage.*\)/\1/p' "$output" |
  sort -t '[' -k 2 -n
)sh";
  return os.str();
}

//===----------------------------------------------------------------------===//
// The folder
//===----------------------------------------------------------------------===//

/// Further names than that of comm_group.json.
static constexpr llvm::StringLiteral memoryFileName = "memory.json", replayScriptName = "replay.sh",
                                     replayNetworkName = "replay_network.yml", replaySystemName = "replay_system.json";

static OutputDirectory::Options getOptions(const EmitOptions &traces) {
  static const RunFiles run;
  static const StringRef names[] = {run.network,       run.system,       run.script,        memoryFileName,
                                    commGroupFileName, replayScriptName, replayNetworkName, replaySystemName};
  return {.force = traces.force, .names = names, .prefix = Replay::prefix};
}

/// Whether one path is the other one, or stands in it.
static bool isInside(StringRef inner, StringRef outer) {
  return inner == outer || (inner.consume_front(outer) && inner.startswith("/")) || outer == "/";
}

bool Folder::prepare(llvm::ArrayRef<const Program *> programs, const EmitOptions &traces, DiagnosticEngine &diags) {
  parts.assign(programs.begin(), programs.end());
  std::string ours = OutputDirectory::resolve(directory), theirs = OutputDirectory::resolve(traces.directory);
  if (isInside(ours, theirs) || isInside(theirs, ours)) {
    diags.report(SMLoc(), diag::AstraSimNested) << directory << traces.directory;
    return false;
  }
  if (!OutputDirectory::check(directory, getOptions(traces), diags))
    return false;
  network = makeNetwork(parts, machine, loc, diags);
  if (!network)
    return false;
  std::optional<Needs> found = checkPrograms(parts, machine, *network, times, traces, loc, diags);
  if (!found)
    return false;
  needs = std::move(*found);
  constexpr uint64_t gigabyte = 1'000'000'000;
  if (uint64_t rate = getPerSecond(machine.getRates()->copy); needs.copies && rate != roundHostRate(rate) * gigabyte)
    diags.report(loc, diag::HostRateRounded) << printRate(rate) << int64_t(roundHostRate(rate));
  return true;
}

/// The path of `to` from the folder `from`. Both are absolute.
static std::string findRelative(StringRef from, StringRef to) {
  auto split = [](StringRef path) {
    llvm::SmallVector<StringRef, 16> names;
    path.split(names, '/', -1, /*KeepEmpty=*/false);
    return names;
  };
  llvm::SmallVector<StringRef, 16> start = split(from), end = split(to), relative;
  size_t common = 0;
  while (common < start.size() && common < end.size() && start[common] == end[common])
    ++common;
  relative.assign(start.size() - common, "..");
  relative.append(end.begin() + common, end.end());
  return llvm::join(relative, "/");
}

void Folder::writeReplay(const EmitOptions &traces, OutputDirectory &output, DiagnosticEngine &diags) {
  Replay replay(parts, traces, diags);
  RunFiles files;
  files.script = replayScriptName;
  files.network = replayNetworkName;
  files.system = replaySystemName;
  files.traces = ".";
  files.prefix = Replay::prefix;
  files.about = "All takes what the compiler says, communication by messages of as many bytes as nanoseconds.";
  const Network flat({{BuildingBlock::Switch, replay.getNumDevices(), network->getDims().front().level}});
  output.writeFile(files.network, replay.makeNetworkFile());
  output.writeFile(files.system, makeSystemFile(flat, machine, {}, ComputeTimes::Traces, /*tracksMemory=*/false));
  output.writeFile(files.script, makeRunScript(flat, files), OutputDirectory::WriteMode::CreateProgram);
  replay.write(output);
}

bool Folder::write(const EmitOptions &traces, DiagnosticEngine &diags) {
  std::unique_ptr<OutputDirectory> output = OutputDirectory::create(directory, getOptions(traces), diags);
  if (!output)
    return false;
  std::string groups;
  llvm::raw_string_ostream os(groups);
  writeCommGroups(needs.groups, os);
  std::string relative = findRelative(OutputDirectory::resolve(directory), OutputDirectory::resolve(traces.directory));
  RunFiles run;
  run.traces = relative;
  run.prefix = traces.prefix;
  if (traces.durations)
    run.about =
        "Communication takes what rings of ASTRA-sim take, which may be far from what the compiler says: replay.sh.";
  output->writeFile(run.network, makeNetworkFile(*network, machine));
  output->writeFile(run.system, makeSystemFile(*network, machine, needs, times, traces.tracker));
  output->writeFile(memoryFileName, makeMemoryFile(machine, needs));
  output->writeFile(commGroupFileName, os.str());
  output->writeFile(run.script, makeRunScript(*network, run), OutputDirectory::WriteMode::CreateProgram);
  if (traces.durations)
    writeReplay(traces, *output, diags);
  return output->commit();
}
