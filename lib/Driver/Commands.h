//===- Commands.h - what stagec does ---------------------------*- C++ -*-===//
//
// Each command is a client of the compiler (stage/Compiler/Session.h): it gets a session, or makes one of its own where
// its messages are shown in another way.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_DRIVER_COMMANDS_H
#define STAGE_LIB_DRIVER_COMMANDS_H

#include "Options.h"
#include "stage/Compiler/Session.h"
#include "stage/Sema/Launchers.h"
#include "stage/Time/TimedPart.h"

namespace stage::driver {

/// Prints messages on standard error.
DiagnosticConsumer *getMessagePrinter();
/// `ok: 1 job, 64 ranks`, on standard error, where nothing else is printed of jobs that compile.
void sayOk(const DriverOptions &options, unsigned numJobs, int64_t ranks);
/// What a report says of traces.
TraceStatistics describe(const EmitStatistics &traces, bool written, unsigned steps);
/// `--emit=schedule`: the units of all stages in time. False after errors.
bool printSchedule(Compilation &c, const DriverOptions &options);
/// Writes what `printSvg` prints into the file of -o, or on standard output. False after a report.
bool writePicture(const DriverOptions &options, llvm::function_ref<void(llvm::raw_ostream &)> printSvg,
                  DiagnosticEngine &diags);
/// A program of a job, on the machine that it names, with its runtime. `what`: who needs a machine, as a user writes
/// it; empty: rates of the command line stand for one. Nothing after a report.
std::optional<TimedPart> findTimed(const Compilation &c, const Program &program, llvm::StringRef what,
                                   const DriverOptions &options);
/// `--emit=time`: how long a step takes of a program, or of linked ones. False after errors.
bool printTime(llvm::ArrayRef<TimedPart> parts, const DriverOptions &options, DiagnosticEngine &diags);
/// `--emit=prices`: what each op takes alone. False after errors.
bool printPrices(llvm::ArrayRef<TimedPart> parts, DiagnosticEngine &diags);
/// Behind the remarks: what collectives of a layer, a microbatch and a step add up to, on standard error.
void printRemarkTotals(const Compilation &c, const DriverOptions &options);
/// `--emit=timeline`: when each unit of a step runs of a program, or of linked ones. False after errors.
bool printTimeline(Compilation &c, llvm::ArrayRef<TimedPart> parts, const DriverOptions &options);
/// `--emit=memory-timeline`: what a rank of each stage holds over a step; without `part` in the order of nodes. False
/// after errors.
bool printMemoryTimeline(Compilation &c, std::optional<TimedPart> part, const DriverOptions &options);
/// The machine of the job, with the rates of the command line, or these alone. Nothing after a report.
std::optional<Machine> findMachine(const Compilation &c, const DriverOptions &options);
/// The machine of a job, for which --astra-sim writes. Nothing after a report, also if the job has none.
std::optional<Machine> findAstraSimMachine(const Compilation &c, const DriverOptions &options);
/// Writes traces by `emit`, and what ASTRA-sim needs beside them, if that is asked for. False after errors.
bool emitWithAstraSim(const Compilation &c, llvm::ArrayRef<const Program *> parts, const DriverOptions &options,
                      const EmitOptions &traces, llvm::function_ref<bool()> emit);
/// `--emit=mesh`: who talks to whom. False after errors.
bool printMesh(Compilation &c, const DriverOptions &options);
/// `--emit=layer`: how the tensors of a layer are split. `--emit=dot`: the ops of a layer, or of all, for graphviz.
/// False after errors.
bool printLayers(Compilation &c, const DriverOptions &options);
/// Compiles each job under each combination of values of `-D`, and prints what they cost, in one table. False after
/// errors that concern all, and if all are refused.
bool runComparison(const DriverOptions &options);
/// What a plan frees is not given back to the system: the next one takes as much, and while the system takes and gives
/// pages the other threads of the process wait.
void keepMemoryOfPlans();
/// `stagec plan`: searches for the best plans of a job, and prints or writes them. False after errors.
bool runPlan(const PlanCommand &command);
/// `--fits`: searches for the largest batch and the longest sequences of the job that fit into a rank's memory, and
/// prints them. False after errors of the job.
bool runSearch(const DriverOptions &options);
/// `--prove`: compiles the job with a small mesh, runs it on tiny sizes, and prints what was proved. False after
/// errors.
bool runProof(const DriverOptions &options);
/// `--prove` of a job that another one has prefilled: both run together. False after errors.
bool runPoolProof(const DriverOptions &options);
/// `stagec doc`: prints what declarations say of themselves. False after errors.
bool runDoc(const DocCommand &command, DiagnosticEngine &diags);
/// `stagec --explain`: prints the section of the manual about a code. False after errors.
bool runExplain(const ExplainCommand &command, DiagnosticEngine &diags);
/// `stagec import`: writes the program of a published configuration, or of a framework's arguments. False after errors.
bool runImport(const ImportCommand &command, DiagnosticEngine &diags);
/// The same with `--launcher`.
bool importArguments(const ImportCommand &command);
/// "671,026,404,352 parameters". Nothing, with the reason and its place in the text, where the program does not
/// compile.
std::optional<std::string> describeParameters(llvm::StringRef text, const ImportCommand &command, std::string &reason,
                                              size_t *place = nullptr);
/// The launcher that the main file sees under a name. Nothing after a report.
std::optional<sema::Launcher> findLauncher(const sema::Program &program, llvm::StringRef name, DiagnosticEngine &diags);
/// `--as`: a bound job as the arguments of a launcher, and what they do not say. False after errors.
bool printArguments(Compilation &c, llvm::StringRef launcher);
/// The job, which is bound and elaborated, and the one that has prefilled its caches, on ranks of their own, as far as
/// the user asks. False after errors.
bool compilePools(Compilation &c, const DriverOptions &options);
/// As far as the user asks. `served`: what became of the requests of a job that serves them. False after errors.
bool compile(Session &session, const DriverOptions &options, ServedFile *served = nullptr);
/// `--requests`: serves the requests of a file, and compiles the job, whose units are the iterations. False after
/// errors.
bool runRequests(Session &session, const DriverOptions &options);
/// `stagec serve`: goes through a file of requests as a server would, and reports. False after errors.
bool runServe(const ServeCommand &command, DiagnosticEngine &diags);

} // namespace stage::driver

#endif // STAGE_LIB_DRIVER_COMMANDS_H
