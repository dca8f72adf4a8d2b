//===- ReportJson.cpp - the report as JSON --------------------------------===//
#include "ReportRecords.h"
#include "ValueNames.h"
#include "stage/IR/text/Text.h"
#include "stage/Report/Comparison.h"
#include "stage/Support/Json.h"
#include "llvm/ADT/StringMap.h"

using namespace stage;

/// Changes when a field changes its name or its meaning, not when one is added.
constexpr int64_t schemaVersion = 3;

/// The dim of sequences: a step gives its global size, the graph has that of a microbatch.
constexpr llvm::StringRef batchDim = "B";

namespace {
/// Names of repeats: the second of equal ones is `name#2`.
class UniqueNames {
public:
  std::string get(const std::string &name) {
    unsigned number = ++known[name];
    return number == 1 ? name : name + "#" + std::to_string(number);
  }

private:
  llvm::StringMap<unsigned> known;
};

/// JSON has no limit on integers: all numbers are written exactly.
class JsonReport {
public:
  JsonReport(llvm::json::OStream &json, const Report &report)
      : json(json), report(report), graph(*report.program->graph) {}

  void print() {
    json.object([&] {
      json.attribute("schema", schemaVersion);
      if (!report.job.empty())
        json.attribute("job", report.job);
      json.attribute("name", graph.name);
      number("ranks", report.ranks);
      if (report.program->firstRank)
        number("first_rank", report.program->firstRank);
      json.attributeObject("mesh", [&] {
        for (const Axis &axis : graph.mesh.getAxes())
          number(axis.name, axis.size);
        for (const AxisGroup &group : graph.mesh.getGroups()) {
          int64_t size = 1;
          for (AxisId axis : group.axes)
            size *= graph.mesh[axis].size;
          number(group.name, size);
        }
      });
      printDims();
      number("microbatches", report.program->microbatches);
      number("parameters", report.parameters);
      if (report.activeParameters != report.parameters)
        number("active_parameters", report.activeParameters);
      number("padding", report.padding);
      if (report.storagePadding)
        number("storage_padding", report.storagePadding);
      number("buffers", report.buffers);
      if (report.slots) {
        number("slots", report.slots);
        number("empty_slots", report.emptySlots);
        number("dropped_choices", report.droppedChoices);
      }
      number("peak", report.getLargestStage().peak.getTotal());
      writeTime(json, report);
      printFlops("flops", report.flops);
      printFlops("duplicated_flops", report.duplicatedFlops);
      printFlops("padding_flops", report.paddingFlops);
      printSaved();
      json.attributeArray("stages", [&] {
        for (size_t i = 0; i < report.stages.size(); ++i)
          json.object([&] { printStage(report.stages[i], report.memory.stages[i]); });
      });
      if (!report.phases.empty())
        printPhases();
      if (report.traces)
        writeTraces(json, *report.traces);
    });
  }

private:
  /// What the job binds (L, B, D), then what the model names of it (G = H/KV). A dim of a repeat has no one value.
  void printDims() {
    json.attributeObject("dims", [&] {
      for (auto &[name, value] : graph.binding.sorted())
        if (!graph.mesh.find(name))
          number(name == batchDim ? "microbatch_" + name : name, value);
      for (const auto &dim : graph.dims) {
        if (graph.binding.lookup(dim->name))
          continue;
        SizeValue value = evaluateCount(dim->size, graph.binding);
        if (value)
          number(dim->name, value.value.num);
        else
          json.attribute(dim->name, dim->size.str());
      }
    });
  }

  void number(llvm::StringRef name, __int128 value) { writeNumber(json, name, value); }

  void printFlops(llvm::StringRef name, const FlopReport &flops) {
    json.attributeObject(name, [&] { writeMembers(json, listRecords(flops)); });
  }

  void printSaved() {
    UniqueNames repeats;
    std::string repeat; // the cases of one follow each other
    json.attributeArray("saved", [&] {
      for (const SavedBytes &saved : report.memory.saved)
        json.object([&] {
          bool isOnHost = saved.space == MemorySpace::Host; // listed behind what the device keeps
          if (saved.loop && !saved.caseNumber.value_or(0) && !isOnHost)
            repeat = repeats.get(saved.loop->name);
          json.attribute("repeat", saved.loop ? llvm::json::Value(repeat) : nullptr);
          if (saved.caseNumber)
            json.attribute("case", int64_t(*saved.caseNumber));
          if (std::string kind = saved.caseNumber ? describeKind(*saved.loop, *saved.caseNumber) : ""; !kind.empty())
            json.attribute("kind", kind);
          if (isOnHost)
            json.attribute("memory", getName(saved.space));
          const SizeBinding &binding = report.program->graph->binding;
          std::vector<Records> values;
          for (auto [name, value] : llvm::zip(nameValues(saved.values), saved.values)) {
            Records &records = values.emplace_back(Records{{"name", "", name}, {"bytes", "", value.bytes.str()}});
            if (SizeValue here = evaluateCount(value.bytes, binding))
              records.push_back({"here", "", here.value.num});
          }
          json.attribute("bytes", saved.bytes.str());
          if (SizeValue here = evaluateCount(saved.bytes, binding))
            number("here", here.value.num);
          writeRows(json, "values", values);
        });
    });
  }

  void printPhases() {
    json.attributeArray("phases", [&] {
      for (const PhaseReport &phase : report.phases)
        json.object([&] {
          writeMembers(json, listRecords(phase));
          writeRows(json, "communication", listTraffic(phase));
        });
    });
    if (report.caches)
      json.attributeObject("caches", [&] {
        number("bytes", report.caches->bytes);
        // Of one sequence, as everywhere.
        number("bytes_per_position", report.caches->perPosition / std::max<__int128>(report.caches->sequences, 1));
        number("positions", report.caches->positions);
        number("sequences", report.caches->sequences);
      });
  }

  void printStage(const StageReport &stage, const StageMemory &memory) {
    number("stage", stage.stage);
    number("parameters_per_rank", stage.parameters);
    number("buffers_per_rank", stage.buffers);
    number("flops", stage.flops);
    if (stage.expertFlops) {
      number("expert_flops", stage.expertFlops);
      number("most_expert_flops", stage.mostExpertFlops);
    }
    std::vector<Records> communication, copies;
    for (const TrafficReport &traffic : stage.traffic)
      communication.push_back(listRecords({&traffic, stage.stage, stage.stage}));
    for (const CopyReport &copy : stage.copies)
      copies.push_back(listRecords(copy, ""));
    writeRows(json, "communication", communication);
    if (!copies.empty())
      writeRows(json, "copies", copies);
    json.attributeObject("memory", [&] {
      printPeak(memory);
      number("in_flight", memory.inFlight);
      json.attributeArray("saved_per_microbatch", [&] {
        for (ByteCount bytes : memory.savedPerMicrobatch)
          json.rawValue(toDecimal(bytes));
      });
      printLive(memory);
      if (const std::optional<AllocatorUse> &use = report.memory.allocator; use && use->stage == memory.stage)
        json.attributeObject("allocator", [&] {
          number("allocated", use->allocated);
          number("reserved", use->reserved);
          number("stalls", use->stalls);
          json.attribute("fits", use->fits);
        });
      if (!memory.moments.empty())
        json.attributeArray("moments", [&] {
          for (const MemoryMoment &moment : memory.moments)
            json.object([&] {
              json.attribute("phase", getName(moment.phase));
              printPeak(moment);
            });
        });
    });
    if (memory.host)
      json.attributeObject("host_memory", [&] {
        printPeak(*memory.host);
        printLive(*memory.host);
      });
  }

  void printPeak(const MemoryPeak &memory) {
    number("peak", memory.peak.getTotal());
    if (memory.leastPeak != memory.peak.getTotal())
      number("least_peak", memory.leastPeak);
    for (unsigned kind = 0; kind < numMemoryClasses; ++kind)
      if (MemoryClass(kind) < MemoryClass::Caches || memory.peak.bytes[kind])
        number(getName(MemoryClass(kind)), memory.peak.bytes[kind]);
    json.attribute("unit", memory.unit);
    json.attribute("moment", memory.describeMoment());
  }

  void printLive(const MemoryPeak &memory) {
    std::vector<Records> rows;
    for (auto [name, live] : llvm::zip(nameValues(memory.live, /*withClasses=*/true), memory.live))
      rows.push_back({{"name", "", name},
                      {"class", "", getName(live.kind).str()},
                      {"copies", "", live.copies},
                      {"bytes", "", live.bytes}});
    writeRows(json, "live", rows);
  }

  llvm::json::OStream &json;
  const Report &report;
  const Graph &graph;
};
} // namespace

void stage::writeTraces(llvm::json::OStream &json, const TraceStatistics &traces) {
  json.attributeObject("traces", [&] {
    json.attribute("written", traces.written);
    writeMembers(json, {{"ranks", "", traces.ranks},
                        {"classes", "", traces.classes},
                        {"nodes", "", traces.nodes},
                        {"files", "", traces.files},
                        {"bytes", "", traces.bytes},
                        {traces.steps > 1 ? "steps" : "", "", traces.steps}});
  });
}

void stage::printJson(llvm::raw_ostream &os, const Report &report) {
  {
    llvm::json::OStream json(os, 2);
    JsonReport(json, report).print();
  }
  os << '\n';
}

void stage::printJson(llvm::raw_ostream &os, llvm::ArrayRef<Report> parts,
                      llvm::function_ref<void(llvm::json::OStream &)> more) {
  {
    llvm::json::OStream json(os, 2);
    json.object([&] {
      json.attribute("schema", schemaVersion);
      json.attributeArray("parts", [&] {
        for (const Report &part : parts)
          JsonReport(json, part).print();
      });
      more(json);
    });
  }
  os << '\n';
}

struct JsonComparison::Writer {
  explicit Writer(llvm::raw_ostream &os) : os(os) {}
  llvm::raw_ostream &os;
  std::optional<llvm::json::OStream> json; ///< Nothing is written before the first plan.

  llvm::json::OStream &open() {
    if (json)
      return *json;
    json.emplace(os, 2);
    json->objectBegin();
    json->attribute("schema", schemaVersion);
    json->attributeBegin("plans");
    json->arrayBegin();
    return *json;
  }
};

JsonComparison::JsonComparison(llvm::raw_ostream &os) : writer(std::make_unique<Writer>(os)) {}
JsonComparison::~JsonComparison() = default;

std::string JsonComparison::describe(const ComparedPlan &plan, llvm::ArrayRef<std::string> names,
                                     const Report *report) {
  std::string text;
  llvm::raw_string_ostream os(text);
  {
    llvm::json::OStream json(os, 2);
    json.object([&] {
      json.attribute("job", plan.job);
      json.attributeObject("values", [&] {
        for (size_t i = 0; i < names.size(); ++i)
          writeGiven(json, names[i], plan.values[i]);
      });
      if (report) {
        json.attributeBegin("report");
        JsonReport(json, *report).print();
        json.attributeEnd();
      } else {
        json.attribute("refused", plan.refusal);
      }
    });
  }
  return os.str();
}

/// The plan stands two levels deep; a string has no line break in it.
void JsonComparison::add(llvm::StringRef description) {
  writer->open().rawValue([&](llvm::raw_ostream &os) {
    for (auto [line, rest] = description.split('\n');; std::tie(line, rest) = rest.split('\n')) {
      os << line;
      if (rest.empty())
        break;
      os << "\n    ";
    }
  });
}

void JsonComparison::finish() {
  llvm::json::OStream &json = writer->open();
  json.arrayEnd();
  json.attributeEnd();
  json.objectEnd();
  json.flush();
  writer->os << '\n';
}
