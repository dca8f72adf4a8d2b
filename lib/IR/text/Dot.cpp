//===- Dot.cpp - the graph IR as a picture --------------------------------===//
//
// One cluster per block and repeat, one box per op, one arrow per use. For graphviz.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/text/Text.h"

using namespace stage;

namespace {
class DotPrinter {
public:
  DotPrinter(llvm::raw_ostream &os, const Graph &graph) : os(os), graph(graph) {}

  void run() {
    auto &mutableGraph = const_cast<Graph &>(graph);
    os << "digraph \"" << graph.name << "\" {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\"];\n";
    for (Block &phase : graph.getPhases())
      cluster(getName(phase.getPhase()).str(), phase);
    mutableGraph.walk([&](Op &op) {
      for (const Value *operand : op.getOperands())
        if (const Op *from = operand->getOp() ? operand->getOp() : operand->getBlock()->getParent())
          os << "  op" << number(from) << " -> op" << number(&op) << ";\n";
    });
    os << "}\n";
  }

private:
  unsigned number(const Op *op) { return numbers.try_emplace(op, numbers.size()).first->second; }

  void cluster(const std::string &name, Block &block) {
    if (block.empty())
      return;
    os << "  subgraph cluster" << numClusters++ << " {\n  label=\"" << name << "\";\n";
    for (auto &op : block) {
      std::string label = op->def ? op->def->name : getName(op->kind).str();
      if (op->kind == OpKind::Repeat)
        label = "repeat " + op->name;
      if (op->getNumResults() && !op->getResult()->path.empty())
        label += "\\n" + op->getResult()->path;
      if (isCommunication(op->kind)) {
        std::string axes;
        llvm::raw_string_ostream stream(axes);
        printAxes(stream, graph.mesh, op->axes);
        label += "\\nover " + stream.str();
      }
      os << "  op" << number(op.get()) << " [label=\"" << label << '"'
         << (isCommunication(op->kind) ? ", style=filled, fillcolor=lightblue" : "") << "];\n";
      for (auto &body : op->bodies)
        cluster(op->bodies.size() == 1 ? op->name : op->name + " case " + std::to_string(body->getNumber()), *body);
    }
    os << "  }\n";
  }

  llvm::raw_ostream &os;
  const Graph &graph;
  llvm::DenseMap<const Op *, unsigned> numbers;
  unsigned numClusters = 0;
};
} // namespace

void stage::printDot(llvm::raw_ostream &os, const Graph &graph) { DotPrinter(os, graph).run(); }
