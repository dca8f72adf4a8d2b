//===- Printer.cpp - the graph IR as text ---------------------------------===//
//
// One line per op and per declaration. The order is that in which the reader needs
// things: dims, mesh, what the strategy says, operators, blocks.
//
//===----------------------------------------------------------------------===//
#include "TextWriter.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

namespace {
class GraphPrinter {
public:
  GraphPrinter(llvm::raw_ostream &os, const Graph &graph) : os(os), graph(graph), names(graph) {}

  void print() {
    os << "graph ";
    printName(os, graph.name);
    os << " {\n";
    printDims();
    printMesh();
    printStep();
    printPrecision();
    printOptimizer();
    for (const Obligations::Obligation &obligation : graph.obligations.all())
      printObligation(obligation);
    for (const ShardRule &rule : graph.rules)
      printRule(rule);
    printPipeline();
    for (auto &def : graph.defs.all())
      printDef(*def);
    printBlock("forward", graph.forward);
    printBlock("backward", graph.backward);
    printBlock("step", graph.step);
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
      os << ";\n";
    }
  }

  void printMesh() {
    if (graph.mesh.getAxes().empty())
      return;
    os << "  mesh (";
    llvm::interleaveComma(graph.mesh.getAxes(), os,
                          [&](const Axis &axis) { os << axis.name << " = " << axis.size; });
    os << ");\n";
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
    for (auto &[symbol, value] : graph.unpadded)
      os << "  pad " << symbol << " from " << value << ";\n";
    if (graph.microbatches != 1)
      os << "  microbatches " << graph.microbatches << ";\n";
    if (!graph.training)
      os << "  inference;\n";
  }

  void printPrecision() {
    const Precision &p = graph.precision;
    if (p.weight == DType::F32 && p.activation == DType::F32 && p.gradient == DType::F32 && p.master == DType::F32)
      return;
    os << "  precision weight " << getName(p.weight) << ", activation " << getName(p.activation) << ", gradient "
       << getName(p.gradient) << ", master " << getName(p.master) << ";\n";
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

  void printRule(const ShardRule &rule) {
    os << "  rule " << rule.statement;
    if (!rule.pattern.empty()) {
      os << " at ";
      printQuoted(os, rule.pattern);
    }
    if (rule.dimNamesHaveEllipsis || !rule.dimNames.empty()) {
      os << " [" << (rule.dimNamesHaveEllipsis ? "..." : "");
      os << (rule.dimNamesHaveEllipsis && !rule.dimNames.empty() ? ", " : "") << llvm::join(rule.dimNames, ", ")
         << ']';
    }
    if (rule.replicated)
      os << " replicate over ";
    else if (rule.dims.size() == 1)
      os << " shard " << rule.dims.front() << " over ";
    else
      os << " shard (" << llvm::join(rule.dims, ", ") << ") over ";
    printAxes(os, graph.mesh, rule.axes);
    if (rule.mirrored)
      os << " mirrored";
    os << ";\n";
  }

  void printPipeline() {
    const PipelineInfo &pipeline = graph.pipeline;
    if (pipeline.loop.empty())
      return;
    os << "  pipeline ";
    printName(os, pipeline.loop);
    if (pipeline.axis) {
      os << " over ";
      printAxes(os, graph.mesh, *pipeline.axis);
    }
    os << " {\n";
    if (pipeline.chunks != 1)
      os << "    chunks " << pipeline.chunks << ";\n";
    if (!pipeline.split.empty()) {
      os << "    split ";
      llvm::interleaveComma(pipeline.split, os);
      os << ";\n";
    }
    if (!pipeline.scheduleName.empty()) {
      os << "    schedule ";
      printName(os, pipeline.scheduleName);
      os << ";\n";
    }
    for (const std::string &units : pipeline.units) {
      os << "    units ";
      printQuoted(os, units);
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

  //===--------------------------------------------------------------------===//
  // Blocks
  //===--------------------------------------------------------------------===//

  void printBlock(llvm::StringRef word, const Block &block) {
    if (block.empty())
      return;
    os << "  " << word << " {\n";
    printOps(block, 4);
    os << "  }\n";
  }

  void printOps(const Block &block, unsigned indent) {
    for (auto &op : block) {
      os.indent(indent);
      printOp(*op, indent);
    }
  }

  void printOp(const Op &op, unsigned indent) {
    if (op.getNumResults()) {
      llvm::interleaveComma(op.getResults(), os, [&](auto &result) { printDefinition(*result); });
      os << " = ";
    }
    switch (op.kind) {
    case OpKind::Param:
    case OpKind::Input:
      os << getName(op.kind);
      if (!op.getNumResults() || op.name != getLocalName(op.getResult()->path)) {
        os << ' ';
        printName(os, op.name);
      }
      break;
    case OpKind::Constant:
      os << getName(op.kind) << ' ';
      printNumber(os, op.number);
      break;
    case OpKind::Compute:
      printCompute(op);
      break;
    case OpKind::Repeat:
      printRepeatHead(op);
      break;
    case OpKind::Yield:
    case OpKind::Return:
      os << getName(op.kind) << (op.getNumOperands() ? " " : "");
      printOperands(op);
      break;
    default:
      os << getName(op.kind) << '(';
      printOperands(op);
      os << ')';
      if (isReshard(op.kind))
        printReshard(op);
    }
    if (op.getNumResults()) {
      os << " : ";
      llvm::interleaveComma(op.getResults(), os, [&](auto &result) { printFacts(*result); });
    }
    printPlace(os, op);
    if (!op.body) {
      os << ";\n";
      return;
    }
    os << " do {\n";
    printOps(*op.body, indent + 2);
    os.indent(indent) << "}\n";
  }

  /// `%q "layers.attn.q"`; the path is left out where the reader derives it.
  void printDefinition(const Value &value) {
    llvm::StringRef name = names.get(&value);
    os << '%' << name;
    if (!value.path.empty() && value.path != name) {
      os << ' ';
      printQuoted(os, value.path);
    }
  }

  /// Type, sharding, constraint and primal of a value.
  void printFacts(const Value &value) {
    stage::print(os, graph, value.type);
    if (!value.sharding.dims.empty() || value.sharding.partial) {
      os << ' ';
      stage::print(os, graph, value.sharding);
    }
    if (!value.constraint.empty())
      printConstraint(value.constraint);
    if (value.primal)
      os << " of %" << names.get(value.primal);
  }

  void printConstraint(const Constraint &constraint) {
    os << " want";
    size_t numDims = std::max(constraint.dims.size(), constraint.floors.size());
    auto exact = [&](size_t i) {
      return i < constraint.dims.size() ? constraint.dims[i] : std::optional<AxisList>();
    };
    auto floor = [&](size_t i) { return i < constraint.floors.size() ? constraint.floors[i] : AxisList(); };
    bool any = false;
    for (size_t i = 0; i < numDims; ++i)
      any |= exact(i) || !floor(i).empty();
    if (any) {
      os << " {";
      for (size_t i = 0; i < numDims; ++i) {
        os << (i ? ", " : "");
        if (!exact(i) && floor(i).empty())
          os << '?';
        if (exact(i) && exact(i)->empty())
          os << '_';
        else if (exact(i))
          printAxes(os, graph.mesh, *exact(i));
        if (!floor(i).empty()) {
          os << (exact(i) ? " (" : "(");
          for (AxisId axis : floor(i)) {
            printAxes(os, graph.mesh, axis);
            os << ", ";
          }
          os << "...)";
        }
      }
      os << '}';
    }
    auto axes = [&](AxisSet set) {
      llvm::interleaveComma(toList(set), os, [&](AxisId axis) { printAxes(os, graph.mesh, axis); });
    };
    if (constraint.partial) {
      os << " partial(";
      if (*constraint.partial && constraint.reduce != ReduceKind::Sum)
        os << getName(constraint.reduce) << ", ";
      axes(*constraint.partial);
      os << ')';
    }
    if (constraint.replicated) {
      os << " replicated(";
      axes(constraint.replicated);
      os << ')';
    }
    if (constraint.isInline)
      os << " inline";
  }

  void printOperands(const Op &op) {
    llvm::interleaveComma(op.getOperands(), os, [&](const Value *operand) { os << '%' << names.get(operand); });
  }

  void printCompute(const Op &op) {
    // An operator may have the name of an op kind; quoted it is the operator.
    if (isOpKeyword(op.def->name))
      printQuoted(os, op.def->name);
    else
      printName(os, op.def->name);
    os << '(';
    printOperands(op);
    os << ')';
    bool first = true;
    for (unsigned i = 0; i < op.def->indices.size(); ++i) {
      std::string text;
      llvm::raw_string_ostream stream(text);
      printIndex(stream, op, i);
      if (stream.str().empty())
        continue;
      os << (first ? " [" : ", ") << op.def->indices[i].name << text;
      first = false;
    }
    if (!first)
      os << ']';
  }

  /// ` = D over tp must (tp)`: each part only where it says something.
  void printIndex(llvm::raw_ostream &out, const Op &op, unsigned i) {
    Extent usual = inferExtent(op, i);
    if (i < op.extents.size() && !(op.extents[i] == usual)) {
      out << " = ";
      stage::print(out, graph, op.extents[i]);
    }
    if (i < op.indexAxes.size() && !op.indexAxes[i].empty()) {
      out << " over ";
      printAxes(out, graph.mesh, op.indexAxes[i]);
    }
    if (i < op.indexConstraint.size() && op.indexConstraint[i]) {
      out << " must ";
      printAxes(out, graph.mesh, *op.indexConstraint[i]);
    }
  }

  void printReshard(const Op &op) {
    os << " over ";
    printAxes(os, graph.mesh, op.axes);
    if (op.kind != OpKind::AllReduce)
      os << " dim " << op.dim;
    if (op.kind == OpKind::AllToAll)
      os << " to " << op.toDim;
    if (op.reduce != ReduceKind::Sum)
      os << " reduce " << getName(op.reduce);
    if (!op.stages.empty()) {
      os << " stages (";
      llvm::interleaveComma(op.stages, os);
      os << ')';
    }
  }

  void printRepeatHead(const Op &op) {
    os << "repeat ";
    printName(os, op.name);
    os << " [" << op.count << "] loop " << op.loop << (op.reverse ? " reverse" : "") << " (";
    auto arguments = op.body->getArguments();
    for (unsigned i = 0; i < std::max<size_t>(arguments.size(), op.getNumOperands()); ++i) {
      os << (i ? ", " : "");
      if (i < arguments.size())
        printDefinition(*arguments[i]);
      if (i < op.getNumOperands())
        os << " = %" << names.get(op.getOperand(i));
      if (i < arguments.size()) {
        os << " : ";
        printFacts(*arguments[i]);
      }
    }
    os << ')';
  }

  llvm::raw_ostream &os;
  const Graph &graph;
  ValueNames names;
};
} // namespace

void stage::print(llvm::raw_ostream &os, const Graph &graph) { GraphPrinter(os, graph).print(); }
