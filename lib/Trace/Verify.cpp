//===- Verify.cpp - do the traces agree, and do they finish? --------------===//
#include "stage/Trace/Verify.h"
#include "NodeTable.h"
#include "Simulation.h"
#include "stage/Support/Ranges.h"
#include "stage/Trace/Diagnostics.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::trace;

/// All timings finish; else one that does not is reported.
static bool simulateAll(const NodeTable &table, uint32_t numChannels, bool mergesStreams, FaultReporter &faults) {
  for (bool sendsAreBuffered : {true, false})
    for (bool computeIsSlow : {true, false}) {
      auto duration = [&](uint32_t slot, NodeIndex node) -> int64_t {
        switch (getRoom(table.ranks[slot], node, Timing{})) {
        case RoomKind::Compute:
        case RoomKind::HostCompute:
          return computeIsSlow;
        case RoomKind::Communication:
        case RoomKind::Copy:
          return !computeIsSlow;
        case RoomKind::None:
          return table.ranks[slot].nodes[node].type == ChakraNodeType::CommRecv && !computeIsSlow;
        }
        llvm_unreachable("covered switch");
      };
      std::string description = sendsAreBuffered ? "buffered sends" : "sends that wait for their recv";
      description += computeIsSlow ? " and slow compute" : " and slow communication";
      Timing timing = {duration, sendsAreBuffered, mergesStreams, /*copiesShareRoom=*/true, description};
      if (!simulate(table, numChannels, timing, faults))
        return false;
    }
  return true;
}

/// Everything that can be said without an execution, then the executions.
static CommunicationSummary verify(NodeTable &table, FaultReporter &faults, uint64_t &numTensors) {
  verifyGraph(table, faults);
  verifyTimes(table, faults);
  // Where a node is missing from the order, what comes after it would look different too.
  if (faults.getNumErrors())
    return {};
  CommunicationSummary summary = verifyCommunication(table, faults);
  numTensors = verifyTensors(table, faults);
  if (faults.getNumErrors())
    return summary;
  simulateAll(table, summary.numChannels, /*mergesStreams=*/false, faults);
  return summary;
}

bool stage::trace::verifyTraces(llvm::StringRef path, const VerifyOptions &options, llvm::raw_ostream &out,
                                DiagnosticEngine &diags) {
  std::optional<TraceFolder> folder = TraceFolder::load(path, diags);
  if (!folder)
    return false;
  FaultReporter faults(diags, options.maxShown);
  NodeTable table;
  table.load(*folder, options, faults);
  uint64_t numTensors = 0;
  CommunicationSummary summary = verify(table, faults, numTensors);
  faults.finish();
  if (uint64_t numFaults = faults.getNumErrors()) {
    diags.report(SMLoc(), diag::VerifyFailed)
        << path << (numFaults == 1 ? "1 fault" : std::to_string(numFaults) + " faults");
    return false;
  }
  auto count = [&](uint64_t number, llvm::StringRef one, llvm::StringRef many) {
    out << number << ' ' << (number == 1 ? one : many);
  };
  out << "ok: ";
  count(table.ranks.size(), "rank", "ranks");
  out << ", ";
  count(table.getNumNodes(), "node", "nodes");
  out << ", ";
  count(summary.numCollectives, "collective", "collectives");
  out << " in ";
  count(summary.numGroups, "group", "groups");
  out << ", ";
  count(summary.numSends, "send", "sends");
  if (numTensors) {
    out << ", ";
    count(numTensors, "tensor", "tensors");
  }
  out << "; finishes with buffered and with waiting sends";
  if (llvm::any_of(table.ranks, [](const RankTable &rank) { return !rank.streams.empty(); })) {
    DiagnosticEngine silent(diags.getSources());
    FaultReporter quiet(silent, options.maxShown);
    bool always = simulateAll(table, summary.numChannels, /*mergesStreams=*/true, quiet);
    out << (always ? ", with streams and without" : ", if each stream has a node of its own in flight; stalls if not");
  }
  out << '\n';
  if (folder->absent.empty())
    return true;
  out << "not checked, for lack of the traces of ranks " << formatRanges(folder->absent) << ": ";
  count(summary.numPartialGroups, "group", "groups");
  out << " against all members, ";
  count(summary.numSendsOut, "send", "sends");
  out << " to and ";
  count(summary.numRecvsIn, "recv", "recvs");
  out << " from them; the execution takes them to keep up\n";
  return true;
}
