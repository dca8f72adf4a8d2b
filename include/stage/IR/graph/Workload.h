//===- Workload.h - several graphs, each on a mesh of its own --*- C++ -*-===//
//
// Problem: some workloads are several models on different ranks that hand each other
// tensors: an encoder and a language model, a policy and its reference model, prefill
// and decode. Each is a graph with a mesh, shardings and a schedule of its own.
//
//   graph Encoder { mesh (dp = 2); ... return %y; }
//   graph Decoder { mesh (tp = 4); ... %x = input : bf16[B, S, D] {_, _, tp}; ... }
//   transfer Encoder %y to Decoder %x;
//
// The ranks of the parts are numbered one after the other: Encoder has 0 and 1, Decoder 2
// to 5. A transfer takes an output, an operand of `return`, to an input of another part,
// once per microbatch; who sends what to whom follows from the shardings (Channel.h).
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_WORKLOAD_H
#define STAGE_IR_GRAPH_WORKLOAD_H

#include "stage/IR/graph/Graph.h"

namespace stage {

struct Transfer {
  unsigned from = 0, to = 0; ///< Numbers of parts.
  unsigned output = 0;       ///< Operand of the `return` of `from`.
  Op *input = nullptr;       ///< Of `to`.
  SMLoc loc;
};

/// One part or more, in the order of their ranks. Names of parts differ.
struct Workload {
  std::vector<std::unique_ptr<Graph>> parts;
  std::vector<Transfer> transfers;

  /// What a transfer moves, as the part that makes it knows it.
  Value *getOutput(const Transfer &transfer) const;
  Value *getInput(const Transfer &transfer) const { return transfer.input->getResult(); }
  /// `'y' of Encoder to 'x' of Decoder`.
  std::string describe(const Transfer &transfer) const;
};

/// Reads one graph or more, and the transfers between them. Null after errors, all of which are reported.
std::unique_ptr<Workload> parseWorkload(SizeContext &sizes, DiagnosticEngine &diags, unsigned bufferId);
/// Prints what parseWorkload reads.
void print(llvm::raw_ostream &os, const Workload &workload);

/// Checks each part, and rule V13 of docs/internals/IRRef.md. Reports every violation; true if there is none.
bool verify(Workload &workload, DiagnosticEngine &diags);
/// Whether both ends of each transfer have the same size, which is reported.
bool verifyTransferSizes(const Workload &workload, DiagnosticEngine &diags);
/// The parts, each behind those from which it receives, else in their order. Those that wait for each other in a circle
/// are left out.
std::vector<unsigned> orderParts(const Workload &workload);

} // namespace stage

#endif // STAGE_IR_GRAPH_WORKLOAD_H
