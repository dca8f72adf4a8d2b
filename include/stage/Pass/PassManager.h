//===- PassManager.h - runs passes over a graph ----------------*- C++ -*-===//
//
// A pass is a function over a graph that reports what is wrong through the engine.
// The list of all passes lives in Transforms, behind this wall, and is handed in:
//
//   PassManager manager(getAllPasses(), diags, options, llvm::errs());
//   if (!manager.addPipeline("differentiate,apply-strategy") || !manager.run(graph))
//     return failure;
//
// Passes run in the order of the registry until one of them reports an error. The graph records the passes that have
// run (Graph::passes), also in its text. Hence a pass that comes too late, too early or twice is refused before any
// runs. Dumps and the table of times are for the eyes of developers and go to a stream of their own.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_PASS_PASSMANAGER_H
#define STAGE_PASS_PASSMANAGER_H

#include "stage/IR/graph/Graph.h"

namespace stage {

/// One line of Passes.def.
struct PassInfo {
  llvm::StringRef name;
  void (*run)(Graph &graph, DiagnosticEngine &diags);
  llvm::StringRef doc;
  /// A pass that must have run before this one. The passes that it needs must have run, too. Empty: none.
  llvm::StringRef needs = "";
  /// Graphs may keep values on the host. Other passes run before anything is copied there.
  bool knowsHost = false;
};

struct PassOptions {
  /// Passes after which the graph is printed. Naming one that does not run is an error (law L14).
  std::vector<std::string> printAfter;
  bool printAfterAll = false;
  /// Verify the graph after every pass.
  bool verifyEach = false;
  /// Print how long every pass took.
  bool timePasses = false;
};

class PassManager {
public:
  /// `registry` and `diags` must outlive the manager. Dumps and times are written to `out`.
  PassManager(llvm::ArrayRef<PassInfo> registry, DiagnosticEngine &diags, PassOptions options, llvm::raw_ostream &out);

  /// Appends passes by name, separated by commas. False if one is unknown: an error names the nearest.
  bool addPipeline(llvm::StringRef names);
  /// Appends every pass of the registry behind the last one that has run on the graph.
  void addRemaining(const Graph &graph);

  /// Runs the passes in order. False after errors, also of options that name no pass of the pipeline.
  bool run(Graph &graph);

private:
  const PassInfo *find(llvm::StringRef name, SMLoc loc = SMLoc());
  bool checkOptions();
  bool checkOrder(const Graph &graph);
  bool runPass(const PassInfo &pass, Graph &graph);
  void printTimes();

  llvm::ArrayRef<PassInfo> registry;
  DiagnosticEngine &diags;
  PassOptions options;
  llvm::raw_ostream &out;
  std::vector<const PassInfo *> pipeline;
  std::vector<double> seconds; ///< Of the passes that ran, in order.
};

/// Prints one line per pass: its name and what it does.
void printPassList(llvm::raw_ostream &os, llvm::ArrayRef<PassInfo> registry);

} // namespace stage

#endif // STAGE_PASS_PASSMANAGER_H
