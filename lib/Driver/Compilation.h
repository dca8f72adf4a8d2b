//===- Compilation.h - what the phases hand on -----------------*- C++ -*-===//
#ifndef STAGE_LIB_DRIVER_COMPILATION_H
#define STAGE_LIB_DRIVER_COMPILATION_H

#include "Options.h"
#include "stage/AST/AST.h"
#include "stage/IR/graph/Channel.h"
#include "stage/IRGen/ModelCache.h"
#include "stage/Report/Report.h"

namespace stage::driver {

/// What was read. Several compilations may share it, one after the other.
struct SourceFiles {
  explicit SourceFiles(llvm::raw_ostream &messages) : diags(sources, messages) {}

  llvm::SourceMgr sources;
  DiagnosticEngine diags;
  ast::ASTContext ast;
  std::unique_ptr<sema::Program> files; ///< Null until they are loaded and their names checked.
};

/// Everything a compilation owns, in the order of the phases.
struct Compilation {
  explicit Compilation(llvm::raw_ostream &messages = llvm::errs())
      : owned(std::make_unique<SourceFiles>(messages)), ownSizes(std::make_unique<SizeContext>()), input(*owned),
        diags(input.diags), sizes(*ownSizes) {}
  /// Compiles what was read already, with the sizes and models that others have made before; all must outlive it.
  Compilation(SourceFiles &input, SizeContext &sizes, ModelCache &models, DiagnosticEngine &diags)
      : Compilation(input, sizes, diags) {
    this->models = &models;
  }
  /// Compiles what was read already, with the same sizes.
  Compilation(SourceFiles &input, SizeContext &sizes, DiagnosticEngine &diags)
      : input(input), diags(diags), sizes(sizes) {}

  std::unique_ptr<SourceFiles> owned;
  std::unique_ptr<SizeContext> ownSizes;
  SourceFiles &input;
  DiagnosticEngine &diags;
  llvm::SourceMgr &sources = input.sources;
  ast::ASTContext &ast = input.ast;
  std::unique_ptr<sema::Program> &files = input.files;

  SizeContext &sizes;
  ModelCache *models = nullptr;
  SizeBinding binding;
  Obligations obligations;
  std::optional<sema::BoundJob> job;
  std::unique_ptr<Graph> graph;
  std::unique_ptr<Program> program;
};

/// Where files are looked for.
inline sema::ProgramOptions getProgramOptions(const DriverOptions &options) {
  return {options.stdlibDir, options.includeDirs, options.cache};
}
/// Loads the file with its imports and checks its names, unless that was done. False after errors.
bool loadFiles(SourceFiles &input, const DriverOptions &options);
/// Reads the program, binds the job, and makes the graph (or prints what `--emit` asks for of these phases). False
/// after errors.
bool runFrontEnd(Compilation &c, const DriverOptions &options);
/// Where a size does not divide as a rule asks: says which parameter of the strategy leaves the rule out.
void noteRuleConditions(Compilation &c);
/// All passes, then the program. False after errors.
bool runMiddle(Compilation &c, const DriverOptions &options);
/// What the compiled program costs, without its traces. Nothing after errors.
std::optional<Report> makeReport(Compilation &c);
/// The text of the first error among printed messages, without its place and its code.
std::string getFirstError(llvm::StringRef messages);
/// What a report says of traces.
TraceStatistics describe(const EmitStatistics &traces, bool written, unsigned steps);
/// `--emit=schedule`: the units of all stages in time. False after errors.
bool printSchedule(Compilation &c, const DriverOptions &options);
/// `--emit=time`: how long a step takes of a program, or of linked ones. False after errors.
bool printTime(llvm::ArrayRef<const Program *> parts, const DriverOptions &options, DiagnosticEngine &diags);
/// `--emit=mesh`: who talks to whom. False after errors.
bool printMesh(Compilation &c, const DriverOptions &options);
/// Compiles each job under each combination of values of `-D`, and prints what they cost, in one table. False after
/// errors that concern all, and if all are refused.
bool runComparison(const DriverOptions &options);
/// `--fits`: searches for the largest batch and the longest sequences of the job that fit into a rank's memory, and
/// prints them. False after errors of the job.
bool runSearch(const DriverOptions &options);
/// `--prove`: compiles the job with a small mesh, runs it on tiny sizes, and prints what was proved. False after
/// errors.
bool runProof(const DriverOptions &options);
/// For `--prove` of a job that serves requests: units of a few sequences, with so many tokens, or a multiple, in those
/// of prefill.
std::shared_ptr<const ServedUnits> makeUnitsToProve(int64_t tokens);
/// `stagec import`: writes the program of a published configuration. False after errors.
bool runImport(const ImportCommand &command, Compilation &c);
/// The job, whose front end has run, and the one that has prefilled its caches, on ranks of their own, as far as the
/// user asks. False after errors.
bool compilePools(Compilation &c, const DriverOptions &options);
/// Reports that something is not supported of a job that another one has prefilled. False if `c` is none.
bool refusePools(Compilation &c, llvm::StringRef what);
/// Binds and elaborates the job that prefills for `c`, and checks that it does. False after errors.
bool runFrontEndOfPrefill(Compilation &prefill, const Compilation &c, DriverOptions options);
/// The same under options of its own.
DriverOptions getOptionsOfPrefill(const Compilation &c, const DriverOptions &options);
/// The programs of both, linked. Null after errors.
std::unique_ptr<LinkedProgram> linkPools(Compilation &prefill, Compilation &c);
/// `--prove` of such a job: both run together. False after errors.
bool runPoolProof(const DriverOptions &options);
/// As far as the user asks. False after errors.
bool compile(Compilation &c, const DriverOptions &options);
/// `--requests`: serves the requests of a file, and compiles the job, whose units are the iterations. False after
/// errors.
bool runRequests(Compilation &c, const DriverOptions &options);
/// `stagec serve`: goes through a file of requests as a server would, and reports. False after errors.
bool runServe(const ServeCommand &command, DiagnosticEngine &diags);

} // namespace stage::driver

#endif // STAGE_LIB_DRIVER_COMPILATION_H
