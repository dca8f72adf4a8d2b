//===- Options.h - the command line of stagec ------------------*- C++ -*-===//
#ifndef STAGE_LIB_DRIVER_OPTIONS_H
#define STAGE_LIB_DRIVER_OPTIONS_H

#include "stage/CodeGen/Emit.h"
#include "stage/Pass/PassManager.h"
#include "stage/Sema/Job.h"

namespace stage {

enum class EmitKind { None, Ast, Job, Graph, Program, Memory, Dot, Chakra };
enum class ReportKind { None, Text, Json };

/// What the user asks for.
struct DriverOptions {
  std::string input;
  std::string job;
  std::vector<sema::Override> defines;
  std::vector<std::string> includeDirs;
  std::string stdlibDir;
  EmitKind emit = EmitKind::None;
  ReportKind report = ReportKind::None;
  bool prove = false;
  bool namesConstants = false; ///< Of proofs: see sema::bindJob.
  bool remarks = false;
  PassOptions passes;
  EmitOptions traces; ///< `directory` is empty if none are to be written.
};

/// Reads the command line. Faults are reported, and give nothing; `--help` and `--version` end the program.
std::optional<DriverOptions> parseCommandLine(int argc, char **argv, DiagnosticEngine &diags);

} // namespace stage

#endif // STAGE_LIB_DRIVER_OPTIONS_H
