//===- Emit.cpp - from a program to traces --------------------------------===//
//
// Ranks of a stage are a class where their nodes are the same but for numbers of groups, peers, and sizes
// that depend on coordinates: a blocked causal mask, a dim that a table deals out. These are slots,
// and a *variant* of the class is the ranks with the same coordinates on the axes that matter, for which sizes are
// evaluated once. Lists for trackers know which tensors are empty: there each variant is a class.
//
// Classes are lowered one after the other. The nodes of a class are collected until they
// fill maxImageBytes, then written to the files of all its ranks and freed: memory is
// that of one such piece and of the buffers of the threads, however long the step is.
// As a rule a class is one piece, and each file is opened once.
//
//===----------------------------------------------------------------------===//
#include "stage/CodeGen/Emit.h"
#include "EncodeTask.h"
#include "TensorTracker.h"
#include "stage/CodeGen/Diagnostics.h"
#include "stage/CodeGen/OutputDirectory.h"
#include "stage/IR/graph/Costs.h"
#include "stage/Support/Limits.h"
#include "stage/Tasks/RankSlots.h"
#include "stage/Tasks/Slowness.h"
#include <map>
#include <mutex>

using namespace stage;

namespace {
class Emitter {
public:
  Emitter(std::vector<const Program *> all, const EmitOptions &options, DiagnosticEngine &diags)
      : options(options), diags(diags) {
    uint64_t firstGroup = 1;
    for (const Program *program : all) {
      const Part &part = parts.emplace_back(*program, firstGroup);
      firstGroup = part.groups.getEnd();
      numRanks += part.mesh.getNumRanks();
    }
  }

  std::optional<EmitStatistics> run() {
    if (!checkRanks() || !checkSizes())
      return std::nullopt;
    for (int64_t rank = 0; rank < numRanks; ++rank)
      numWanted += isWanted(rank);
    auto output = OutputDirectory::create(options.directory, {.force = options.force}, diags);
    if (!output)
      return std::nullopt;
    CommGroups groups;
    for (const Part &part : parts) {
      for (const StageProgram &stage : part.program.stages)
        if (!emitStage(part, stage, *output))
          return std::nullopt;
      part.groups.addAll(groups);
    }
    std::string text;
    llvm::raw_string_ostream stream(text);
    writeCommGroups(groups, stream);
    output->writeFile(commGroupFileName, llvm::StringRef(stream.str()));
    statistics.bytes = output->getNumBytes();
    statistics.files = output->getNumFiles();
    finishProgress();
    if (!output->commit())
      return std::nullopt;
    return statistics;
  }

private:
  struct Part {
    Part(const Program &program, uint64_t firstGroup)
        : program(program), mesh(program.graph->mesh), pipelineAxis(program.graph->pipeline.axis),
          groups(program, firstGroup) {}
    const Program &program;
    const Mesh &mesh;
    std::optional<AxisId> pipelineAxis;
    GroupTable groups;
  };

  bool checkRanks() {
    for (auto [first, last] : options.ranks)
      if (first < 0 || last < first || last >= numRanks) {
        diags.report(SMLoc(), diag::RankOutOfRange) << first << last << numRanks;
        return false;
      }
    return true;
  }

  /// All groups are listed in memory, and ids are looked up there: what no one can write or read is refused before.
  bool checkSizes() {
    if (numRanks > maxTraces) {
      diags.report(parts.front().program.graph->loc, diag::TracesOfTooManyRanks) << numRanks << maxTraces;
      return false;
    }
    for (const Part &part : parts) {
      if (!checkSlowRanks(*part.program.graph, diags) || !checkSteps(part.program, options.steps, diags))
        return false;
      for (const StageProgram &stage : part.program.stages)
        if (uint64_t nodes = options.steps * countNodes(part.program, stage); nodes > maxNodes) {
          diags.report(part.program.graph->loc, diag::TracesOfTooManyNodes)
              << stage.stage << int64_t(nodes) << maxNodes;
          return false;
        }
    }
    return true;
  }

  bool isWanted(int64_t rank) const {
    return options.ranks.empty() || llvm::any_of(options.ranks, [&](const std::pair<int64_t, int64_t> &range) {
             return rank >= range.first && rank <= range.second;
           });
  }

  bool emitStage(const Part &part, const StageProgram &stage, OutputDirectory &output) {
    const Graph &graph = *part.program.graph;
    const Mesh &mesh = part.mesh;
    AxisSet varying = findVaryingAxes(part.program, stage);
    std::vector<Size> speeds; // of the ranks, each once
    llvm::SmallVector<const Exchange *, 1> exchanges = listSendingExchanges(stage);
    // Ranks of the stage by what makes their nodes differ, and then by their coordinates, in ascending order.
    std::map<std::vector<int64_t>, std::map<Coordinates, std::vector<uint32_t>>> classes;
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
      if (part.pipelineAxis && mesh.getCoordinate(rank, *part.pipelineAxis) != int64_t(stage.stage))
        continue;
      Coordinates coordinates;
      for (AxisId axis = 0; axis < mesh.getAxes().size(); ++axis)
        if (varying >> axis & 1)
          coordinates.push_back(mesh.getCoordinate(rank, axis));
      std::vector<int64_t> key;
      if (options.tracker)
        key = coordinates;
      for (const Exchange *exchange : exchanges)
        key.push_back(exchange->getReceivers(rank, 0).size());
      if (options.durations)
        key.push_back(options.durations->findClass(part.program.firstRank + rank));
      if (!graph.slowRanks.empty())
        key.push_back(listSlowness(speeds, getSlowness(graph, rank)));
      auto &variants = classes[key];
      if (isWanted(part.program.firstRank + rank))
        variants[coordinates].push_back(uint32_t(part.program.firstRank + rank));
    }
    for (auto &[key, variants] : classes) {
      ++statistics.classes;
      Size slowness = speeds.empty() ? Size() : speeds[key.back()];
      if (!variants.empty() && !emitClass(part, stage, varying, key, slowness, variants, output))
        return false;
    }
    return true;
  }

  /// The number of a slowness in a list, to which it is added.
  static int64_t listSlowness(std::vector<Size> &list, Size slowness) {
    int64_t number = llvm::find(list, slowness) - list.begin();
    if (number == int64_t(list.size()))
      list.push_back(slowness);
    return number;
  }

  /// On the axes on which sizes depend.
  using Coordinates = std::vector<int64_t>;
  /// Ranks of a class for which all sizes are the same.
  struct Variant {
    SizeBinding coordinates;
    std::vector<uint64_t> sizes; ///< Of the slots so far; 0 for those that are no sizes.
  };
  struct RanksOfClass {
    std::vector<Variant> variants;
    std::vector<uint32_t> ranks;     ///< Those of a variant follow each other.
    std::vector<uint32_t> variantOf; ///< By rank, counted from the first of the part.
  };

  bool emitClass(const Part &part, const StageProgram &stage, AxisSet varying, const std::vector<int64_t> &key,
                 Size slowness, const std::map<Coordinates, std::vector<uint32_t>> &members, OutputDirectory &output) {
    RankClass rankClass;
    rankClass.stage = stage.stage;
    rankClass.slowness = slowness;
    unsigned next = 0;
    if (options.tracker)
      for (AxisId axis : toList(varying))
        rankClass.coordinates.emplace_back(axis, key[next++]);
    for (const Exchange *exchange : listSendingExchanges(stage))
      rankClass.messages.emplace_back(exchange, key[next++]);
    RanksOfClass ofClass = listVariants(part, varying, members);
    const std::vector<uint32_t> &ranks = ofClass.ranks;
    ClassTasks tasks(part.program, part.groups, options, rankClass, diags);
    if (!tasks.checkTags())
      return false;
    std::optional<TensorTracker> tracker;
    if (options.tracker)
      tracker.emplace(part.program, tasks, options.memory, diags);
    statistics.ranks += ranks.size();
    numNodes = std::max<uint64_t>(1, tasks.getNumIds());
    numNodesWritten = 0;
    ClassImage image;
    const TaskDurations *durations = ranks.empty() ? nullptr : options.durations;
    image.appendMetadata(getMetadata(durations, durations ? ranks.front() : 0));
    unsigned timeClass = durations ? durations->findClass(ranks.front()) : 0;
    auto mode = OutputDirectory::WriteMode::Create;
    auto write = [&] {
      bool written =
          evaluateSizes(*part.program.graph, tasks, ofClass) && writeImage(image, part, tasks, ofClass, output, mode);
      statistics.nodes += int64_t(ranks.size()) * int64_t(image.getNumNodes());
      numNodesWritten += image.getNumNodes();
      image = ClassImage();
      mode = OutputDirectory::WriteMode::Append;
      return written;
    };
    bool good = true;
    for (unsigned unit = 0; unit < tasks.getUnits().size() && good && !diags.hasErrors(); ++unit)
      tasks.makeUnit(unit, [&](const Task &task) {
        if (!good)
          return;
        NodeFields node = encode(task);
        if (options.durations) {
          const TaskDurations::Duration &own = options.durations->get(timeClass, task.id);
          node.times = TaskTimes{uint64_t(own.alone), own.micros, own.unit, own.level};
        }
        if (tracker)
          tracker->addLists(node, tasks.isLast(task.id));
        image.append(node);
        if (image.getNumBytes() >= maxImageBytes)
          good = write();
      });
    if (diags.hasErrors())
      return false;
    if (good && write()) {
      numRanksDone += ranks.size();
      return true;
    }
    finishProgress();
    output.commit(); // reports what failed, and removes what was written
    return false;
  }

  static RanksOfClass listVariants(const Part &part, AxisSet varying,
                                   const std::map<Coordinates, std::vector<uint32_t>> &members) {
    RanksOfClass result;
    result.variantOf.resize(part.mesh.getNumRanks());
    SizeContext &sizes = part.program.graph->sizes;
    for (auto &[coordinates, ranks] : members) {
      for (uint32_t rank : ranks)
        result.variantOf[rank - part.program.firstRank] = result.variants.size();
      result.ranks.insert(result.ranks.end(), ranks.begin(), ranks.end());
      Variant &variant = result.variants.emplace_back();
      for (auto [axis, coordinate] : llvm::zip(toList(varying), coordinates))
        variant.coordinates.bind(getCoordinateSymbol(sizes, part.mesh[axis]).getSymbol(), coordinate);
    }
    return result;
  }

  /// What the slots that are sizes are for each variant. False if one cannot be held, which is reported.
  bool evaluateSizes(const Graph &graph, const ClassTasks &tasks, RanksOfClass &ofClass) {
    for (Variant &variant : ofClass.variants) {
      std::map<unsigned, SizeBinding> bindings; // by environment
      for (const RankSlot &slot : tasks.getSlots().drop_front(variant.sizes.size())) {
        variant.sizes.push_back(0);
        if (slot.kind != RankSlot::Kind::Size)
          continue;
        auto [binding, isNew] = bindings.try_emplace(slot.environment);
        if (isNew) {
          binding->second = graph.getBinding(slot.environment);
          binding->second.bind(variant.coordinates);
        }
        TaskSizes sizes(binding->second, diags);
        uint64_t value = slot.op ? sizes.evaluate(slot.size, *slot.op) : sizes.evaluate(slot.size, *slot.value);
        variant.sizes.back() = std::max(slot.least, value);
        if (diags.hasErrors())
          return false;
      }
    }
    return true;
  }

  /// Writes the nodes of an image to the files of its ranks.
  bool writeImage(const ClassImage &image, const Part &part, const ClassTasks &tasks, const RanksOfClass &ofClass,
                  OutputDirectory &output, OutputDirectory::WriteMode mode) {
    const std::vector<uint32_t> &ranks = ofClass.ranks;
    std::vector<RankEncoder> encoders;
    for (unsigned worker = 0; worker < getNumWorkers(options.jobs, ranks.size()); ++worker)
      encoders.emplace_back(image);
    uint64_t numEncoded = 0;
    auto encode = [&](uint32_t rank, unsigned worker) {
      llvm::SmallVector<uint64_t, 16> slots;
      int64_t number = int64_t(rank) - part.program.firstRank;
      const Variant &variant = ofClass.variants[ofClass.variantOf[number]];
      for (auto [slot, size] : llvm::zip(tasks.getSlots(), variant.sizes))
        slots.push_back(slot.kind == RankSlot::Kind::Size ? size : resolve(part.program, part.groups, slot, number));
      if (options.progress) {
        std::lock_guard<std::mutex> lock(mutex);
        // Of a class that is written in pieces, as many ranks count as its nodes would fill.
        uint64_t nodes = numNodesWritten * ranks.size() + image.getNumNodes() * ++numEncoded;
        options.progress->update(numRanksDone + nodes / numNodes, numWanted);
      }
      return encoders[worker].encode(slots);
    };
    return writeRankFiles(output, options.prefix, ranks, options.jobs, encode, mode);
  }

  void finishProgress() {
    if (options.progress)
      options.progress->finish();
  }

  static constexpr int64_t maxTraces = 1 << 22;
  /// Simulators load some 40,000 nodes per second.
  static constexpr int64_t maxNodes = 10'000'000;
  /// Pieces of this size are written in much more time than it takes to open their files.
  static constexpr size_t maxImageBytes = 8 << 20;

  std::deque<Part> parts;
  int64_t numRanks = 0; ///< Of all parts.
  const EmitOptions &options;
  DiagnosticEngine &diags;
  EmitStatistics statistics;
  std::mutex mutex;
  /// For the progress: of the class being written, and ranks of those before it.
  uint64_t numNodes = 0, numNodesWritten = 0;
  size_t numRanksDone = 0, numWanted = 0;
};
} // namespace

bool stage::checkNumSteps(unsigned steps, DiagnosticEngine &diags) {
  constexpr unsigned maxSteps = 100'000;
  bool isGood = steps >= 1 && steps <= maxSteps;
  if (!isGood)
    diags.report(SMLoc(), diag::BadSteps) << int64_t(maxSteps) << int64_t(steps);
  return isGood;
}

std::optional<EmitStatistics> stage::emitTraces(const Program &program, const EmitOptions &options,
                                                DiagnosticEngine &diags) {
  return Emitter({&program}, options, diags).run();
}

std::optional<EmitStatistics> stage::emitTraces(const LinkedProgram &program, const EmitOptions &options,
                                                DiagnosticEngine &diags) {
  std::vector<const Program *> parts;
  for (auto &part : program.parts) {
    parts.push_back(part.get());
    if (uint64_t tags = uint64_t(program.channels.size()) * part->microbatches; tags > uint64_t(maxTag)) {
      diags.report(part->graph->loc, diag::TooManyTransferTags) << int64_t(tags) << maxTag;
      return std::nullopt;
    }
  }
  return Emitter(std::move(parts), options, diags).run();
}
