//===- Emit.cpp - from a program to traces --------------------------------===//
//
// Classes are lowered one after the other, each is written and freed: memory is that
// of the largest class and of the buffers of the threads.
//
//===----------------------------------------------------------------------===//
#include "stage/CodeGen/Emit.h"
#include "ClassLowering.h"
#include "stage/CodeGen/Diagnostics.h"
#include "stage/CodeGen/OutputDirectory.h"
#include <map>
#include <mutex>

using namespace stage;

namespace {
class Emitter {
public:
  Emitter(const Program &program, const EmitOptions &options, DiagnosticEngine &diags)
      : program(program), mesh(program.graph->mesh), pipelineAxis(program.graph->pipeline.axis), options(options),
        diags(diags), groups(program) {}

  std::optional<EmitStatistics> run() {
    if (!checkRanks() || !checkSizes())
      return std::nullopt;
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank)
      numWanted += isWanted(rank);
    auto output = OutputDirectory::create(options.directory, {.force = options.force}, diags);
    if (!output)
      return std::nullopt;
    for (const StageProgram &stage : program.stages)
      if (!emitStage(stage, *output))
        return std::nullopt;
    std::string text;
    llvm::raw_string_ostream stream(text);
    writeCommGroups(groups.getAll(), stream);
    output->writeFile(commGroupFileName, llvm::StringRef(stream.str()));
    statistics.bytes = output->getNumBytes();
    statistics.files = output->getNumFiles();
    finishProgress();
    if (!output->commit())
      return std::nullopt;
    return statistics;
  }

private:
  bool checkRanks() {
    for (auto [first, last] : options.ranks)
      if (first < 0 || last < first || last >= mesh.getNumRanks()) {
        diags.report(SMLoc(), diag::RankOutOfRange) << first << last << mesh.getNumRanks();
        return false;
      }
    return true;
  }

  /// A trace is built in memory, and all groups are listed: what no one can write or read is refused before.
  bool checkSizes() {
    if (mesh.getNumRanks() > maxRanks) {
      diags.report(program.graph->loc, diag::TracesOfTooManyRanks) << mesh.getNumRanks() << maxRanks;
      return false;
    }
    for (const StageProgram &stage : program.stages)
      if (uint64_t nodes = countNodes(program, stage); nodes > maxNodes) {
        diags.report(program.graph->loc, diag::TracesOfTooManyNodes) << stage.stage << int64_t(nodes) << maxNodes;
        return false;
      }
    return true;
  }

  bool isWanted(int64_t rank) const {
    return options.ranks.empty() || llvm::any_of(options.ranks, [&](const std::pair<int64_t, int64_t> &range) {
             return rank >= range.first && rank <= range.second;
           });
  }

  bool emitStage(const StageProgram &stage, OutputDirectory &output) {
    AxisSet varying = findVaryingAxes(program, stage);
    // Ranks of the stage by the coordinates that matter, in ascending order within a class.
    std::map<std::vector<int64_t>, std::vector<uint32_t>> classes;
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
      if (pipelineAxis && mesh.getCoordinate(rank, *pipelineAxis) != int64_t(stage.stage))
        continue;
      std::vector<int64_t> key;
      for (AxisId axis = 0; axis < mesh.getAxes().size(); ++axis)
        if (varying >> axis & 1)
          key.push_back(mesh.getCoordinate(rank, axis));
      auto &members = classes[key];
      if (isWanted(rank))
        members.push_back(uint32_t(rank));
    }
    for (auto &[key, ranks] : classes) {
      ++statistics.classes;
      if (!ranks.empty() && !emitClass(stage, varying, key, ranks, output))
        return false;
    }
    return true;
  }

  bool emitClass(const StageProgram &stage, AxisSet varying, const std::vector<int64_t> &key,
                 const std::vector<uint32_t> &ranks, OutputDirectory &output) {
    RankClass rankClass;
    rankClass.stage = stage.stage;
    unsigned next = 0;
    for (AxisId axis = 0; axis < mesh.getAxes().size(); ++axis)
      if (varying >> axis & 1)
        rankClass.coordinates.emplace_back(axis, key[next++]);
    ClassLowering lowering(program, groups, options, rankClass, diags);
    if (!lowering.checkTags())
      return false;
    ClassImage image;
    image.appendMetadata(traceVersion);
    for (unsigned unit = 0; unit < lowering.getUnits().size() && !diags.hasErrors(); ++unit)
      lowering.lowerUnit(unit, [&](const NodeFields &node) { image.append(node); });
    if (diags.hasErrors())
      return false;
    statistics.ranks += ranks.size();
    statistics.nodes += int64_t(ranks.size()) * int64_t(image.getNumNodes());
    std::vector<RankEncoder> encoders;
    for (unsigned worker = 0; worker < getNumWorkers(options.jobs, ranks.size()); ++worker)
      encoders.emplace_back(image);
    auto encode = [&](uint32_t rank, unsigned worker) {
      llvm::SmallVector<uint64_t, 16> slots;
      for (const RankSlot &slot : lowering.getSlots())
        slots.push_back(slot.isGroup ? groups.getNumber(slot.kind, rank) : getPeer(rank, stage.stage, slot.peerStage));
      reportProgress();
      return encoders[worker].encode(slots);
    };
    if (writeRankFiles(output, options.prefix, ranks, options.jobs, encode))
      return true;
    finishProgress();
    output.commit(); // reports what failed, and removes what was written
    return false;
  }

  uint64_t getPeer(int64_t rank, int64_t stage, int64_t peerStage) const {
    return rank + (peerStage - stage) * mesh.getStride(*pipelineAxis);
  }

  void reportProgress() {
    if (!options.progress)
      return;
    std::lock_guard<std::mutex> lock(mutex);
    options.progress->update(++done, numWanted);
  }

  void finishProgress() {
    if (options.progress)
      options.progress->finish();
  }

  static constexpr int64_t maxRanks = 1 << 22;
  /// Simulators load some 40,000 nodes per second.
  static constexpr int64_t maxNodes = 10'000'000;

  const Program &program;
  const Mesh &mesh;
  std::optional<AxisId> pipelineAxis;
  const EmitOptions &options;
  DiagnosticEngine &diags;
  GroupTable groups;
  EmitStatistics statistics;
  std::mutex mutex;
  size_t done = 0, numWanted = 0;
};
} // namespace

std::optional<EmitStatistics> stage::emitTraces(const Program &program, const EmitOptions &options,
                                                DiagnosticEngine &diags) {
  return Emitter(program, options, diags).run();
}
