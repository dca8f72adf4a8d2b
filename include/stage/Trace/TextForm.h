//===- TextForm.h - traces as text, and back -------------------*- C++ -*-===//
//
// One line per node, stable, for people, FileCheck and hand-made tests. `assemble`
// turns the text into files again; dump, assemble and dump gives the same text, and the
// same bytes for traces in canonical form.
//
//   group 1 = [0, 1]
//   rank 0 version="1.0"
//   0 COMP "l0.qkv" is_cpu_op=false num_ops=1024 tensor_size=96
//   1 COMM_COLL "l0.sum" ctrl=[0] comm_type=ALL_REDUCE comm_size=4096 pg_name="1"
//
// A node: id, type, name, dependencies (`ctrl=`, `data=`), attributes in the order of
// the file. An attribute whose kind is not the one consumers expect shows it:
// `comm_size:int32=4096`, `mine:double_list=[1, 2.5]`, `flag:none`. Sizes are bytes.
// `//` starts a comment. Fields a schema of the future may add are not shown.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TRACE_TEXTFORM_H
#define STAGE_TRACE_TEXTFORM_H

#include "stage/Support/Diagnostics.h"
#include <optional>

namespace ChakraProtoMsg {
class Node;
} // namespace ChakraProtoMsg

namespace stage::trace {

struct DumpOptions {
  /// Only this rank of a folder.
  std::optional<uint32_t> rank;
  /// Follow each collective by a comment with the ranks of its group.
  bool expandGroups = false;
};

/// Prints a trace file or a folder of them. False after a report; what could be read is printed.
bool dumpTraces(llvm::StringRef path, const DumpOptions &options, llvm::raw_ostream &out, DiagnosticEngine &diags);

/// Prints one node without a line end.
void printNode(const ChakraProtoMsg::Node &node, llvm::raw_ostream &out);

struct AssembleOptions {
  /// Folder to write; see OutputDirectory.
  std::string output;
  std::string prefix = "workload";
  bool force = false;
};

/// Writes the traces that buffer `bufferId` of the diagnostics' sources describes. False after a report.
bool assembleTraces(unsigned bufferId, const AssembleOptions &options, DiagnosticEngine &diags);

} // namespace stage::trace

#endif // STAGE_TRACE_TEXTFORM_H
