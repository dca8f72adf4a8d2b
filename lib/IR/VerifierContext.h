//===- VerifierContext.h - what the parts of the verifier share -*- C++ -*-===//
//
// Verifier.cpp checks what an op is (V1 to V6), VerifySharding.cpp where its pieces
// are (V7 to V10), VerifyOrder.cpp what runs when (V11), VerifyMemory.cpp where values
// are kept (V12), VerifyPrefetch.cpp what is gathered ahead (V14). Numbers are those of docs/IRRef.md.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_IR_VERIFIERCONTEXT_H
#define STAGE_LIB_IR_VERIFIERCONTEXT_H

#include "TextWriter.h"
#include <map>

namespace stage {

struct VerifierContext {
  Graph &graph;
  DiagnosticEngine &diags;
  /// Made when the first message needs a name.
  std::optional<ValueNames> names;

  std::string name(const Value *value) {
    if (!names)
      names.emplace(graph);
    return ("%" + names->get(value)).str();
  }
  /// Types, extents and shardings as they are printed.
  template <typename T> std::string text(const T &entity) const {
    std::string result;
    llvm::raw_string_ostream os(result);
    print(os, graph, entity);
    return os.str();
  }
  std::string axes(llvm::ArrayRef<PlacedAxis> list) const {
    std::string result;
    llvm::raw_string_ostream os(result);
    printAxes(os, graph.mesh, list);
    return os.str();
  }
  /// Why axes cannot deal out an extent by a table, if they are to; empty where nothing is wrong.
  std::string findBlockFault(Size extent, llvm::ArrayRef<PlacedAxis> axes);
  /// What was found of (what is dealt out, the axis, number of its lengths).
  std::map<std::tuple<const SizeNode *, AxisId, uint32_t>, std::string> blockFaults = {};
  /// What an op is called in messages: its kind or its operator.
  static llvm::StringRef getName(const Op &op) {
    return op.kind == OpKind::Compute ? llvm::StringRef(op.def->name) : stage::getName(op.kind);
  }
};

/// V7: the sharding and the constraint of a value fit its type and the mesh.
void verifySharding(VerifierContext &context, const Value &value);
/// V8: the axes of a compute op's indices; V9: a reshard makes of its operand what it says. Types have been verified.
void verifySharding(VerifierContext &context, const Op &op);
/// V11: the stream of an op, and what it waits for. `findFault` says why the op cannot use a value, if it cannot.
void verifyOrder(VerifierContext &context, const Op &op, llvm::function_ref<std::string(const Value *)> findFault);
/// V12: every operand and result is in the memory in which the op reads or makes it.
void verifyMemory(VerifierContext &context, const Op &op);
/// V14: what a phase gathers ahead, and releases.
void verifyPrefetch(VerifierContext &context, const Block &phase);
/// V10: every operand has the sharding that the op needs, every result the one it is made with.
void verifyCommunication(VerifierContext &context, const Op &op);

} // namespace stage

#endif // STAGE_LIB_IR_VERIFIERCONTEXT_H
