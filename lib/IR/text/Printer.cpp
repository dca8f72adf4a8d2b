//===- Printer.cpp - the graph IR as text ---------------------------------===//
//
// One line per op and per declaration. The order is that in which the reader needs
// things: dims, mesh, what the strategy says, operators, blocks.
//
//===----------------------------------------------------------------------===//
#include "TextWriter.h"
#include "stage/IR/graph/ParameterUnits.h"
#include "stage/IR/graph/Rule.h"
#include "stage/Schedule/BalancedSplit.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

namespace {
class GraphPrinter {
public:
  GraphPrinter(llvm::raw_ostream &os, const Graph &graph) : os(os), graph(graph) {}

  void print() {
    os << "graph ";
    printName(os, graph.name);
    os << " {\n";
    if (!graph.passes.empty())
      os << "  passes " << llvm::join(graph.passes, ", ") << ";\n";
    printDims();
    printMesh();
    printStep();
    printPrecision();
    printOptimizer();
    for (const Obligations::Obligation &obligation : graph.obligations.all())
      printObligation(obligation);
    for (const Rule &rule : graph.rules)
      printRule(rule);
    for (const SlowRanks &slow : graph.slowRanks)
      printSlowRanks(slow);
    for (const SequenceSum &sum : graph.sums)
      os << "  sum " << sum.symbol << " = " << sum.ofSeveral << " or " << sum.ofOne << ";\n";
    printPipeline();
    if (graph.prefetch)
      os << "  prefetch " << graph.prefetch << ";\n";
    for (auto &stream : graph.streams)
      os << "  stream " << stream->name << ": " << getName(stream->kind) << (stream->hasMessages ? " of stages" : "")
         << ";\n";
    for (auto &def : graph.defs.all())
      printDef(*def);
    printBlocks(os, graph);
    os << "}\n";
  }

private:
  void printDims() {
    for (auto &dim : graph.dims) {
      os << "  dim " << dim->name;
      if (!dim->aliases.empty())
        os << " as " << llvm::join(dim->aliases, ", ");
      if (dim->size != graph.sizes.symbol(dim->name))
        os << " = " << dim->size;
      if (!dim->parts.empty()) {
        os << " of (";
        llvm::interleaveComma(dim->parts, os, [&](const Dim *part) { os << part->name; });
        os << ')';
      }
      if (dim->origin)
        os << " from " << dim->origin;
      os << (dim->isPacked ? " packed" : "") << (dim->isOptional ? " optional" : "") << ";\n";
    }
  }

  void printMesh() {
    if (graph.mesh.getAxes().empty())
      return;
    os << "  mesh (";
    llvm::interleaveComma(graph.mesh.getAxes(), os, [&](const Axis &axis) { os << axis.name << " = " << axis.size; });
    os << ')';
    if (graph.mesh.getNumNetworkDims()) {
      os << " on topology (";
      llvm::interleaveComma(graph.mesh.getAxes(), os, [&](const Axis &axis) { os << *axis.networkDim; });
      os << ')';
    }
    os << ";\n";
    for (const AxisGroup &group : graph.mesh.getGroups()) {
      os << "  axis " << group.name << " = (";
      llvm::interleaveComma(group.axes, os, [&](AxisId axis) { os << graph.mesh[axis].name; });
      os << ");\n";
    }
  }

  void printStep() {
    // The mesh binds its axes.
    auto bound = graph.binding.sorted();
    llvm::erase_if(bound, [&](const std::pair<std::string, int64_t> &entry) {
      auto axis = graph.mesh.find(entry.first);
      return axis && graph.mesh[*axis].size == entry.second;
    });
    if (!bound.empty()) {
      os << "  bind ";
      llvm::interleaveComma(bound, os, [&](auto &entry) { os << entry.first << " = " << entry.second; });
      os << ";\n";
    }
    for (auto &[name, table] : graph.binding.sortedTables())
      printTable(name, *table);
    for (const SlotLoad &load : graph.mesh.getSlotLoads()) {
      os << "  load " << load.slots->name << " of " << load.target->name
         << (load.isEven() ? " evenly" : " by " + load.table) << " for " << load.choices;
      if (load.sources)
        os << " from " << load.sources;
      os << (load.isDropless ? "" : " at most") << ";\n";
    }
    for (auto &[symbol, value] : graph.unpadded)
      os << "  pad " << symbol << " from " << value << ";\n";
    if (graph.microbatches != 1)
      os << "  microbatches " << graph.microbatches << ";\n";
    if (graph.clip) {
      os << "  clip ";
      printNumber(os, graph.clip);
      os << ";\n";
    }
    if (!graph.training)
      os << "  inference;\n";
  }

  void printTable(llvm::StringRef name, const SizeTable &table) {
    os << "  table " << name << '[';
    llvm::interleaveComma(table.dims, os);
    os << "] = [";
    size_t length = table.dims.back();
    llvm::ArrayRef<int64_t> entries = table.entries;
    for (llvm::ListSeparator comma; !entries.empty(); entries = entries.drop_front(length)) {
      os << comma << (table.dims.size() > 1 ? "[" : "");
      llvm::interleaveComma(entries.take_front(length), os);
      os << (table.dims.size() > 1 ? "]" : "");
    }
    os << "];\n";
  }

  void printPrecision() {
    const Precision &p = graph.precision;
    if (p.weight == DType::F32 && p.activation == DType::F32 && p.gradient == DType::F32 && p.master == DType::F32 &&
        !p.separateAccumulation)
      return;
    os << "  precision weight " << getName(p.weight) << ", activation " << getName(p.activation) << ", gradient "
       << getName(p.gradient) << ", master " << getName(p.master)
       << (p.separateAccumulation ? ", accumulate separate" : "") << ";\n";
  }

  void printOptimizer() {
    const Optimizer &optimizer = graph.optimizer;
    if (optimizer.name.empty() && optimizer.states.empty() && !optimizer.flops)
      return;
    os << "  optimizer ";
    printName(os, optimizer.name);
    os << " {";
    for (auto &[name, type] : optimizer.states)
      os << " state " << name << ": " << getName(type) << ';';
    if (optimizer.flops)
      os << " flops = " << optimizer.flops << ';';
    os << " }\n";
  }

  void printObligation(const Obligations::Obligation &obligation) {
    os << "  require ";
    switch (obligation.kind) {
    case Obligations::Kind::Divides:
      os << "multiple";
      break;
    case Obligations::Kind::Equal:
      os << "equal";
      break;
    case Obligations::Kind::Positive:
      os << "positive";
      break;
    case Obligations::Kind::AtMost:
      os << "at_most";
      break;
    }
    os << '(' << obligation.left;
    if (obligation.kind != Obligations::Kind::Positive)
      os << ", " << obligation.right;
    os << ')';
    if (!obligation.reason.empty()) {
      os << ' ';
      printQuoted(os, obligation.reason);
    }
    os << ";\n";
  }

  void printRule(const Rule &rule) {
    os << "  rule " << rule.statement;
    if (rule.origin.addition)
      os << " added " << rule.origin.addition;
    if (!rule.origin.calls.empty()) {
      os << " from (";
      llvm::interleaveComma(rule.origin.calls, os);
      os << ')';
    }
    os << (rule.isTrimmed ? " trimmed" : "");
    if (rule.pattern) {
      os << " at ";
      printQuoted(os, rule.pattern->getText());
    }
    if (!rule.dimNames.empty()) {
      os << " [" << (rule.dimNames.hasEllipsis ? "..." : "");
      os << (rule.dimNames.hasEllipsis && !rule.dimNames.names.empty() ? ", " : "")
         << llvm::join(rule.dimNames.names, ", ") << ']';
    }
    os << ' ' << getName(rule.kind);
    bool isTuple = rule.dims.size() > 1;
    os << (rule.dims.empty() ? "" : isTuple ? " (" : " ");
    llvm::interleaveComma(rule.dims, os, [&](const std::string &dim) {
      os << dim << (llvm::is_contained(rule.lackable, dim) ? "?" : "");
    });
    os << (isTuple ? ")" : "");
    if (rule.isOfKept()) {
      os << (rule.isWhole ? " whole" : "") << (rule.gathersAll ? " again all" : "");
      if (rule.kind == RuleKind::Offload)
        os << " after " << rule.depth;
      printCases(rule);
      return;
    }
    if (rule.kind == RuleKind::Quantize) {
      if (rule.type)
        stage::print(os, getQuantization(rule));
      else
        os << " as none";
      os << (rule.dequantizes ? " dequantize" : "");
      printCases(rule);
      return;
    }
    if (rule.offloadsState()) {
      os << ";\n";
      return;
    }
    os << (rule.isApart ? " apart over " : " over ");
    printAxes(os, graph.mesh, rule.axes);
    if (rule.keeps || keepsLastUnit(rule))
      os << (rule.keeps ? " keep" : " keep last");
    if (rule.gathersAll)
      os << " again all";
    if (rule.isWhole)
      os << " whole tied";
    if (!rule.units.empty()) {
      os << " units (";
      llvm::interleaveComma(rule.units, os, [&](const PathPattern &unit) { printQuoted(os, unit.getText()); });
      os << ')';
    }
    if (rule.prefetch)
      os << " prefetch " << rule.prefetch;
    if (rule.bucketBytes)
      os << " bucket " << rule.bucketBytes;
    if (rule.type)
      os << " in " << getName(*rule.type);
    if (rule.perMicrobatch)
      os << " per microbatch";
    if (rule.overlap != Rule::Overlap::None)
      os << (rule.overlap == Rule::Overlap::Beside ? " beside" : " behind") << " backward";
    if (rule.saysLayout && llvm::all_of(rule.axes, [](const PlacedAxis &axis) { return axis.isPlain(); }))
      os << " blocked";
    os << ";\n";
  }

  void printCases(const Rule &rule) {
    if (rule.cases) {
      os << " cases (";
      llvm::interleaveComma(*rule.cases, os);
      os << ')';
    }
    os << ";\n";
  }

  /// What it says of a matrix.
  static Quantization getQuantization(const Rule &rule) {
    return {*rule.type, rule.scales, {rule.blocks.begin(), rule.blocks.end()}};
  }

  void printSlowRanks(const SlowRanks &slow) {
    os << "  slow (";
    llvm::interleaveComma(slow.coordinates, os, [&](const std::pair<AxisId, int64_t> &place) {
      os << graph.mesh[place.first].name << " = " << place.second;
    });
    os << ") by " << slow.factor << ";\n";
  }

  void printPipeline() {
    const PipelineInfo &pipeline = graph.pipeline;
    if (pipeline.repeats.empty() && pipeline.units.empty())
      return;
    os << "  pipeline" << (pipeline.repeats.empty() ? "" : " ");
    bool isList = pipeline.repeats.size() > 1;
    os << (isList ? "(" : "");
    llvm::interleaveComma(pipeline.repeats, os, [&](const std::string &name) { printName(os, name); });
    os << (isList ? ")" : "");
    if (pipeline.axis) {
      os << " over ";
      printAxes(os, graph.mesh, *pipeline.axis);
    }
    os << " {\n";
    if (pipeline.chunks != 1)
      os << "    chunks " << pipeline.chunks << ";\n";
    if (pipeline.copies != 1)
      os << "    copies " << pipeline.copies << ";\n";
    if (!pipeline.placement.empty()) {
      os << "    placement ";
      llvm::interleaveComma(pipeline.placement, os);
      os << ";\n";
    }
    if (!pipeline.split.empty()) {
      os << "    split ";
      llvm::interleaveComma(pipeline.split, os);
      os << ";\n";
    }
    if (pipeline.balance != Balance::None)
      os << "    split balanced " << getName(pipeline.balance) << ";\n";
    if (pipeline.send != MessageMode::AtEnd)
      os << "    send " << (pipeline.send == MessageMode::Early ? "early" : "blocking") << ";\n";
    if (pipeline.scatterGather) {
      os << "    scatter_gather ";
      printAxes(os, graph.mesh, toList(pipeline.scatterGather));
      os << ";\n";
    }
    for (const PipelineInfo::Placement &placement : pipeline.placements) {
      os << "    place ";
      printName(os, placement.name);
      os << " on " << placement.virtualStage << ";\n";
    }
    if (!pipeline.scheduleName.empty()) {
      os << "    schedule ";
      printName(os, pipeline.scheduleName);
      os << ";\n";
    }
    for (const std::vector<Unit> &units : pipeline.units) {
      os << "    units \"";
      llvm::StringRef separator;
      for (const Unit &unit : units) {
        os << separator << unit.str(pipeline.chunks > 1) << toString(pipeline.environments[unit.environment]);
        if (unit.feeder)
          os << '<' << *unit.feeder;
        separator = getSeparator(unit);
      }
      os << "\";\n";
    }
    if (!pipeline.unitNames.empty()) {
      os << "    names ";
      llvm::interleaveComma(pipeline.unitNames, os, [&](const std::string &name) { printQuoted(os, name); });
      os << ";\n";
    }
    os << "  }\n";
  }

  void printDef(const OpDef &def) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    stage::print(stream, def);
    llvm::SmallVector<llvm::StringRef, 8> lines;
    llvm::StringRef(stream.str()).split(lines, '\n', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef line : lines)
      os << "  " << line << '\n';
  }

  llvm::raw_ostream &os;
  const Graph &graph;
};
} // namespace

void stage::print(llvm::raw_ostream &os, const Graph &graph) { GraphPrinter(os, graph).print(); }
