//===- VerifierContext.h - what the parts of the verifier share -*- C++ -*-===//
//
// Verifier.cpp checks what stands where (V1 to V6), VerifyTypes.cpp what operators make, and again (V5, V15),
// VerifyRepeats.cpp the cases of a repeat (V6), VerifySharding.cpp where pieces are (V7 to V10), VerifyOrder.cpp what
// runs when (V11), VerifyMemory.cpp where values are kept (V12), VerifyPrefetch.cpp what is gathered ahead (V14),
// VerifyCaches.cpp what outlives a unit (V17), VerifyPasses.cpp which passes have run (V21). Numbers are those of
// docs/internals/IRRef.md.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_IR_VERIFIERCONTEXT_H
#define STAGE_LIB_IR_VERIFIERCONTEXT_H

#include "stage/IR/Diagnostics.h"
#include "text/TextWriter.h"
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
  /// False, and reported, unless there are as many of something.
  bool checkCount(const Op &op, llvm::StringRef what, size_t expected, size_t found) const {
    if (expected == found)
      return true;
    diags.report(op.loc, diag::IRWrongCount) << what << getName(op) << expected << found;
    return false;
  }
  void checkType(SMLoc loc, const llvm::Twine &what, const TensorType &expected, const TensorType &found) const {
    if (expected.dtype != found.dtype || !expected.isKeptAs(found) || !hasSameShape(expected, found))
      diags.report(loc, diag::IRWrongType) << what << text(expected) << text(found);
  }
  /// Extents are compared by size: one dim may be called by the name of another of its size.
  static bool hasSameShape(const TensorType &a, const TensorType &b) {
    return a.getNumDims() == b.getNumDims() && llvm::all_of(llvm::zip(a.shape, b.shape), [](auto pair) {
             return std::get<0>(pair).size == std::get<1>(pair).size;
           });
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

/// V21: the head names the passes of which the graph has traces.
void verifyPasses(VerifierContext &context);
/// V1: how full slots are.
void verifySlotLoads(VerifierContext &context);
/// V4, V5: operands, results and extents of an operator. False if there are too few or too many of something.
bool verifyCompute(VerifierContext &context, const Op &op);
/// V18: how a value is quantized, and by what.
void verifyQuantization(VerifierContext &context, const Value &value);
/// V15: what is made again was made in forward; nothing else is made in a phase that is there for it.
bool verifyAgain(VerifierContext &context, const Op &op, PhaseKind phase);
/// V6: where the dims are bound, the count of a repeat is a whole number.
void verifyLoopCount(VerifierContext &context, const Op &op);
/// V6: every case of a repeat runs, and every iteration is one of the cases.
bool verifyCases(VerifierContext &context, const Op &op);
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
/// V17: a cache and its entries; what a unit appends to it fits in.
bool verifyCache(VerifierContext &context, const Op &op);
bool verifyAppend(VerifierContext &context, const Op &op);
/// What is copied of a cache, or into it, is part of it along a dim.
bool verifyCacheCopy(VerifierContext &context, const Op &op);
/// What is appended to, or written, is a cache; nothing of the unit uses it behind that, as `isBehind` says of an op.
bool verifyCacheUse(VerifierContext &context, const Op &op, llvm::function_ref<bool(const Op &)> isBehind);
/// V19: what ops do with packed dims, and the sums over sequences.
void verifyPacking(VerifierContext &context);
/// V20: units that begin with what others have sampled.
void verifyFeeders(VerifierContext &context);
/// V10: every operand has the sharding that the op needs, every result the one it is made with.
void verifyCommunication(VerifierContext &context, const Op &op);

} // namespace stage

#endif // STAGE_LIB_IR_VERIFIERCONTEXT_H
