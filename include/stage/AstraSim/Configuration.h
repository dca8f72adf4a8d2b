//===- Configuration.h - what ASTRA-sim needs beside traces ----*- C++ -*-===//
//
// Problem: ASTRA-sim wants a network, a system, a memory and groups beside the traces, in units and with keys that are
// easily wrong: a wrong one stalls, aborts, or times something else than the machine.
//
//   stagec job.stg -o traces --astra-sim=astra
//   astra/run.sh path/to/AstraSim_Analytical_Congestion_Unaware
//
//   network.yml       dimensions (Network.h). GB/s there are 2^30 bytes, latency is that of a link, in ns; a message
//                     passes two links of a switch, so that each has half of the level's latency
//   system.json       one chunk per collective and one in flight: with more in flight than one, chunks do not wait for
//                     each other's links, and take as much less time; with fewer in flight than there are, an
//                     all_reduce over several dimensions can stall; an all_gather of fewer bytes than chunks never
//                     ends. Rings in each dimension, and an all_to_all that sends one block after the other
//   memory.json       the host's rate, if the job copies
//   comm_group.json   the groups of the traces, in the order of rings that ASTRA-sim times right
//   run.sh            runs the simulator, and says when a rank does not finish, which its exit code does not say
//   replay.sh ...     with durations: runs it on traces of its own, where communication takes them, too (Replay.h)
//
// Algorithm: the program is checked against the network first, group by group and message by message. Where ASTRA-sim
// would abort that is an error, where it would stall or time something wrongly a warning, at the op, with what to
// write.
//
// Limits: the analytical backend that knows no congestion. Its other one has a network of one dimension, and takes
// twice as long for what passes a switch.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_ASTRASIM_CONFIGURATION_H
#define STAGE_ASTRASIM_CONFIGURATION_H

#include "stage/AstraSim/Network.h"
#include "stage/AstraSim/Replay.h"

namespace stage::astrasim {

/// What becomes of nodes that compute.
enum class ComputeTimes : uint8_t {
  Roofline, ///< ASTRA-sim finds them by num_ops and tensor_size.
  Traces,   ///< Nodes carry duration_micros, which is replayed.
};
/// The times of traces as they are written today.
ComputeTimes findComputeTimes(bool carriesDurations);

/// What a program asks of the simulator.
struct Needs {
  bool copies = false; ///< To or from the host.
  bool allToAllOfAllRanks = false;
  CommGroups groups; ///< In the order of rings.
};

/// Compares the parts of a workload, whose ranks follow each other, with what ASTRA-sim makes of them. Warnings are
/// reported, at `loc`, the job, where no op is at fault. Nothing after an error.
std::optional<Needs> checkPrograms(llvm::ArrayRef<const Program *> parts, const Machine &machine,
                                   const Network &network, ComputeTimes times, const EmitOptions &traces, SMLoc loc,
                                   DiagnosticEngine &diags);

/// The network that parts of a workload have on a machine. Nothing after a report: the machine has no room for them, or
/// they are one rank.
std::optional<Network> makeNetwork(llvm::ArrayRef<const Program *> parts, const Machine &machine, SMLoc loc,
                                   DiagnosticEngine &diags);

/// The texts of the files.
std::string makeNetworkFile(const Network &network, const Machine &machine);
std::string makeSystemFile(const Network &network, const Machine &machine, const Needs &needs, ComputeTimes times,
                           bool tracksMemory);
std::string makeMemoryFile(const Machine &machine, const Needs &needs);
/// What a script runs.
struct RunFiles {
  std::string script = "run.sh", network = "network.yml", system = "system.json";
  std::string traces; ///< The folder, from that of the script.
  std::string prefix; ///< Of traces.
  std::string about;  ///< What it does, a line of comment; empty: nothing.
};
std::string makeRunScript(const Network &network, const RunFiles &files);

/// A folder of these files, which is written in two steps, so that nothing is written of a program that is refused:
///
///   Folder folder(directory, machine, times, loc);
///   if (!folder.prepare(parts, traces, diags)) return false;      // reported
///   ... emitTraces ...
///   if (!folder.write(traces, diags)) return false;               // reported
class Folder {
public:
  /// `loc`: of the job.
  Folder(std::string directory, const Machine &machine, ComputeTimes times, SMLoc loc)
      : directory(std::move(directory)), machine(machine), times(times), loc(loc) {}
  /// The parts must outlive this.
  bool prepare(llvm::ArrayRef<const Program *> parts, const EmitOptions &traces, DiagnosticEngine &diags);
  bool write(const EmitOptions &traces, DiagnosticEngine &diags);

private:
  void writeReplay(const EmitOptions &traces, OutputDirectory &output, DiagnosticEngine &diags);

  std::vector<const Program *> parts;
  std::string directory;
  const Machine &machine;
  ComputeTimes times;
  SMLoc loc;
  std::optional<Network> network;
  Needs needs;
};

} // namespace stage::astrasim

#endif // STAGE_ASTRASIM_CONFIGURATION_H
