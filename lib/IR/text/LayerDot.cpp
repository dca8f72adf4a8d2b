//===- LayerDot.cpp - the ops of a layer for graphviz ---------------------===//
//
// Problem: the picture of a whole graph is too large to read, and backward stands far below the forward whose values it
// uses.
//
//   forward            backward
//   | x  -> linear |- - - -> | linear.dw |        what forward keeps: dashed, and no reason for backward to stand below
//
// Algorithm: a cluster for each phase but the step, which runs once for all microbatches. Arrows between clusters do
// not constrain ranks, so that graphviz places the clusters beside each other, the last one to the left. State and
// values from outside of the layer are nodes of each phase that uses them, because arrows to one node would tie the
// phases together again.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/text/LayerDot.h"
#include "stage/IR/text/Text.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace stage;

namespace {
class LayerPrinter {
public:
  LayerPrinter(llvm::raw_ostream &os, const Graph &graph, const LayerOps &layer) : os(os), graph(graph), layer(layer) {}
  void run();

private:
  void printPhase(unsigned number);
  void printOperand(unsigned phase, const Value &value, const std::string &user);
  std::string describe(const Op &op) const;
  std::string describe(const Value &value) const;
  void printNode(const std::string &name, const std::string &label, llvm::StringRef attributes);

  llvm::raw_ostream &os;
  const Graph &graph;
  const LayerOps &layer;
  std::map<const Op *, std::pair<unsigned, std::string>> ops; ///< Phase and name of the node.
  std::map<std::pair<unsigned, const Value *>, std::string> others;
  std::string kept; ///< Arrows between phases.
};
} // namespace

/// A type, and how it is split: `bf16[B, S, D] {dp, tp, _}`.
std::string LayerPrinter::describe(const Value &value) const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  print(stream, graph, value.type);
  std::string sharding;
  llvm::raw_string_ostream shardingStream(sharding);
  print(shardingStream, graph, value.sharding);
  stream << ' ' << llvm::StringRef(shardingStream.str()).trim();
  return llvm::StringRef(stream.str()).trim().str();
}

std::string LayerPrinter::describe(const Op &op) const {
  std::string label = op.def ? op.def->name : getName(op.kind).str();
  if (isCommunication(op.kind)) {
    llvm::raw_string_ostream stream(label);
    stream << " over ";
    printAxes(stream, graph.mesh, op.axes);
    stream.flush();
  }
  for (const auto &result : op.getResults())
    if (!result->getUses().empty())
      label += "\\n" + (result->path.empty() ? "" : result->path + ": ") + describe(*result);
  return label;
}

void LayerPrinter::printNode(const std::string &name, const std::string &label, llvm::StringRef attributes) {
  os << "    " << name << " [label=\"" << label << '"' << attributes << "];\n";
}

void LayerPrinter::printOperand(unsigned phase, const Value &value, const std::string &user) {
  const Op *maker = value.getOp();
  auto found = maker ? ops.find(maker) : ops.end();
  if (found != ops.end() && found->second.first == phase) {
    os << "    " << found->second.second << " -> " << user << ";\n";
    return;
  }
  if (found != ops.end() && !isState(maker->kind)) {
    kept += "  " + found->second.second + " -> " + user + " [style=dashed, color=gray40, constraint=false];\n";
    return;
  }
  auto [other, isNew] = others.try_emplace({phase, &value}, "v" + std::to_string(others.size()));
  if (isNew)
    printNode(other->second, (value.path.empty() ? "" : value.path + "\\n") + describe(value),
              maker && isState(maker->kind) ? ", shape=ellipse" : ", shape=plaintext");
  os << "    " << other->second << " -> " << user << ";\n";
}

void LayerPrinter::printPhase(unsigned number) {
  const LayerOps::Phase &phase = layer.phases[number];
  os << "  subgraph cluster" << number << " {\n    label=\"" << getName(phase.kind) << "\";\n";
  for (const Op *op : phase.ops) {
    const std::string &name = ops.at(op).second;
    printNode(name, describe(*op),
              isState(op->kind)           ? ", shape=ellipse"
              : isCommunication(op->kind) ? ", style=filled, fillcolor=lightblue"
                                          : "");
    for (const Value *operand : op->getOperands())
      printOperand(number, *operand, name);
  }
  os << "  }\n";
}

void LayerPrinter::run() {
  unsigned numPhases = 0;
  while (numPhases < layer.phases.size() && !isOncePerStep(layer.phases[numPhases].kind))
    ++numPhases;
  for (unsigned number = 0; number < numPhases; ++number)
    for (const Op *op : layer.phases[number].ops)
      ops.try_emplace(op, number, "op" + std::to_string(ops.size()));
  os << "digraph \"" << layer.path << "\" {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\"];\n";
  for (unsigned number = numPhases; number-- > 0;)
    printPhase(number);
  os << kept << "}\n";
}

void stage::printDot(llvm::raw_ostream &os, const Graph &graph, const LayerOps &layer) {
  LayerPrinter(os, graph, layer).run();
}
