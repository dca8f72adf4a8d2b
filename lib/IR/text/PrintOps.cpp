//===- PrintOps.cpp - blocks of the IR text -------------------------------===//
#include "TextWriter.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

namespace {
class BlockPrinter {
public:
  BlockPrinter(llvm::raw_ostream &os, const Graph &graph) : os(os), graph(graph), names(graph) {}

  void print(const Block &block) {
    if (block.empty())
      return;
    os << "  " << getName(block.getPhase()) << " {\n";
    printOps(block, 4);
    os << "  }\n";
  }

private:
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
    case OpKind::Buffer:
    case OpKind::Cache:
    case OpKind::Input:
      os << getName(op.kind);
      if (!op.getNumResults() || op.name != getLocalName(op.getResult()->path)) {
        os << ' ';
        printName(os, op.name);
      }
      if (op.entries)
        os << " [" << op.entry << ", " << op.entries << ']';
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
      if (isReshard(op.kind) || op.kind == OpKind::Join)
        printReshard(op);
      if (op.kind == OpKind::Append || isCacheCopy(op.kind))
        os << " dim " << op.dim << (op.isRolling ? " rolling" : "");
    }
    if (op.getNumResults()) {
      os << " : ";
      llvm::interleaveComma(op.getResults(), os, [&](auto &result) { printFacts(*result); });
    }
    if (op.isRecomputed)
      os << " again";
    if (op.origin && op.origin->getNumResults())
      os << (op.isRecomputed ? " %" : " from %") << names.get(op.origin->getResult());
    printPlace(os, op);
    printOrder(op);
    if (op.bodies.empty()) {
      os << ";\n";
      return;
    }
    os << " do {\n";
    for (auto &body : op.bodies) {
      if (body->getNumber()) {
        os.indent(indent) << "} or (";
        printArguments(*body, {});
        os << ") {\n";
      }
      printOps(*body, indent + 2);
    }
    os.indent(indent) << "}\n";
  }

  void printOrder(const Op &op) {
    if (op.isFed)
      os << " fed";
    if (op.isPrefetched)
      os << " prefetched";
    if (op.clips)
      os << " clipped";
    if (op.copies > 1)
      os << " copies " << op.copies;
    if (op.waitsForUnits)
      os << " behind units";
    if (op.stream)
      os << " stream " << op.stream->name;
    os << (op.after.empty() ? "" : " after ");
    llvm::interleaveComma(op.after, os, [&](const OrderEdge &edge) {
      os << '%' << names.get(edge.value);
      if (edge.iterations)
        os << " [-" << edge.iterations << ']';
      if (edge.units)
        os << " [unit -" << edge.units << ']';
    });
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
    if (!value.sharding.dims.empty() || value.sharding.partial || !value.sharding.flat.empty()) {
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
    auto exact = [&](size_t i) { return i < constraint.dims.size() ? constraint.dims[i] : std::optional<AxisList>(); };
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
          for (const std::string &name : listAxisNames(graph.mesh, floor(i)))
            os << name << ", ";
          os << "...)";
        }
      }
      os << '}';
    }
    auto axes = [&](AxisSet set) {
      llvm::interleaveComma(listAxisNames(graph.mesh, toList(set)), os, [&](const std::string &name) { os << name; });
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
    if (constraint.gathered) {
      os << " gathered(";
      axes(constraint.gathered);
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
    // The axes of a compound index are those of its outermost member.
    if (i < op.indexAxes.size() && !op.indexAxes[i].empty() && !op.def->indices[i].isCompound()) {
      out << " over ";
      printAxes(out, graph.mesh, op.indexAxes[i]);
    }
    if (i < op.indexConstraint.size() && op.indexConstraint[i]) {
      out << " must ";
      printAxes(out, graph.mesh, *op.indexConstraint[i]);
    }
    if (op.ring == i)
      out << " ring";
    if (op.turns && op.turns->index == i) {
      out << " turns ";
      printAxes(out, graph.mesh, toList(op.turns->axes));
    }
  }

  void printReshard(const Op &op) {
    os << " over ";
    printAxes(os, graph.mesh, op.axes);
    if (op.flat) {
      os << " flat";
    } else if (!op.moreDims.empty()) {
      os << " dim (" << op.dim << ", ";
      llvm::interleaveComma(op.moreDims, os);
      os << ')';
    } else if (op.kind != OpKind::AllReduce && op.kind != OpKind::Permute) {
      os << " dim " << op.dim;
    }
    if (op.kind == OpKind::AllToAll)
      os << " to " << op.toDim;
    if (op.reduce != ReduceKind::Sum)
      os << " reduce " << getName(op.reduce);
    if (op.kind == OpKind::Permute)
      os << " by " << op.shift;
    printStages(os, op);
  }

  void printRepeatHead(const Op &op) {
    os << "repeat ";
    printName(os, op.name);
    os << " [" << op.count << "] ";
    if (!op.cases.getRuns().empty()) {
      os << "cases (";
      llvm::interleaveComma(op.cases.getRuns(), os,
                            [&](const IterationCases::Run &run) { os << run.number << " * " << run.end - run.begin; });
      os << ") ";
    }
    os << "loop " << op.loop << (op.reverse ? " reverse" : "") << " (";
    printArguments(*op.bodies.front(), op.getOperands());
    os << ')';
  }

  /// The arguments of a body, and what they are at first.
  void printArguments(const Block &body, llvm::ArrayRef<Value *> initial) {
    auto arguments = body.getArguments();
    for (unsigned i = 0; i < std::max<size_t>(arguments.size(), initial.size()); ++i) {
      os << (i ? ", " : "");
      if (i < arguments.size())
        printDefinition(*arguments[i]);
      if (i < initial.size())
        os << " = %" << names.get(initial[i]);
      if (i < arguments.size()) {
        os << " : ";
        printFacts(*arguments[i]);
      }
    }
  }

  llvm::raw_ostream &os;
  const Graph &graph;
  ValueNames names;
};
} // namespace

void stage::printBlocks(llvm::raw_ostream &os, const Graph &graph) {
  BlockPrinter printer(os, graph);
  for (const Block &phase : graph.getPhases())
    printer.print(phase);
}
