//===- Text.h - the graph IR as text ---------------------------*- C++ -*-===//
//
// Every graph prints, and what is printed reads back: printing what was read gives
// the same bytes. docs/internals/IRRef.md is the reference of the text.
//
//   graph Mlp {
//     dim B;
//     dim D as Mlp.D;
//     mesh (dp = 2, tp = 4);
//     op linear(x: [b, m], w: [m, n]) -> (result: [b, n] = sum[m](x[b, m] * w[m, n]));
//     forward {
//       %x = input : f32[B, D] {dp, _};
//       %w = param : f32[D, F] {_, tp};
//       %h = linear(%x, %w) [b over dp, n over tp] : f32[B, F] {dp, tp};
//       return %h;
//     }
//   }
//
// What can be seen elsewhere is left out: the path of a value whose name is its
// path, the extent of an index that stands in an operand, anything empty.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_TEXT_TEXT_H
#define STAGE_IR_TEXT_TEXT_H

#include "stage/IR/graph/Graph.h"
#include "stage/IR/graph/Paths.h"

namespace stage {

/// Prints all of a graph. Never fails, not even on a graph that does not verify.
void print(llvm::raw_ostream &os, const Graph &graph);

/// Prints a graph for graphviz.
void printDot(llvm::raw_ostream &os, const Graph &graph);

/// Reads what print writes from a buffer of the engine's sources. Locations of the graph are places in that buffer.
/// Null after errors; all of them are reported. The graph has the right form but is not verified.
std::unique_ptr<Graph> parseGraph(SizeContext &sizes, DiagnosticEngine &diags, unsigned bufferId);

/// The names that a graph's values have in its text, without the `%`: the last component of the path, numbered on a
/// clash (`x`, `x.1`), and a number for a value without a path. They depend on the graph only.
class ValueNames {
public:
  explicit ValueNames(const Graph &graph);
  /// `<detached>` for a value that is not in the graph.
  llvm::StringRef get(const Value *value) const;

private:
  void visit(const Block &block);
  void add(const Value &value);
  llvm::DenseMap<const Value *, std::string> names;
  /// Names taken, each with the last number tried for it.
  llvm::StringMap<unsigned> taken;
  unsigned numUnnamed = 0;
};

/// What an index of a compute op has for extent if nothing is said: that of the first operand position, or else
/// result position, where it stands. Null size if it stands in none.
Extent inferExtent(const Op &op, unsigned index);

/// Prints the shortest decimal text that reads back to the same number.
void printNumber(llvm::raw_ostream &os, double number);
/// `s - t < 4`: a formula of an op, or a part of one, as the printed op has it.
void print(llvm::raw_ostream &os, const OpDef &def, const Formula &formula);
/// The names of axes, groups of them by their own (Mesh::nameAxes): `dp`, `cp mirrored`.
llvm::SmallVector<std::string, 4> listAxisNames(const Mesh &mesh, llvm::ArrayRef<PlacedAxis> axes);
/// Prints `()`, `tp` or `(cp, tp)`.
void printAxes(llvm::raw_ostream &os, const Mesh &mesh, llvm::ArrayRef<PlacedAxis> axes);
inline void printAxes(llvm::raw_ostream &os, const Mesh &mesh, const PlacedAxis &axis) {
  printAxes(os, mesh, llvm::ArrayRef<PlacedAxis>(axis));
}
inline void printAxes(llvm::raw_ostream &os, const Mesh &mesh, AxisId axis) { printAxes(os, mesh, PlacedAxis(axis)); }
/// Prints ` stages (0, 3), (1, 2)`: those that a collective of the pipeline's axis is restricted to; nothing if it is
/// not.
void printStages(llvm::raw_ostream &os, const Op &op);
/// Prints ` as f8 by (1, 128) with f32`; a dim over which blocks go on to the next one is `_`.
void print(llvm::raw_ostream &os, const Quantization &quantization);
/// Prints a type: `bf16[B, S, 4*D]`. An anonymous extent that looks like the name of a dim stands in parentheses.
void print(llvm::raw_ostream &os, const Graph &graph, const TensorType &type);
/// Prints `{dp, (cp, tp), _} partial(tp)`, one entry per dim; nothing for a sharding that was not set.
void print(llvm::raw_ostream &os, const Graph &graph, const Sharding &sharding);

} // namespace stage

#endif // STAGE_IR_TEXT_TEXT_H
