//===- Session.h - a program that is compiled many times -------*- C++ -*-===//
//
// A session reads a program with everything that it imports, once, and compiles any number of plans of it. What plans
// have in common is kept: syntax trees, sizes, the graphs of models (ModelCache), and checked schedules (PlanStores).
//
//   DiagnosticPrinter printer(llvm::errs());
//   Session session({.input = "job.stg", .stdlibDir = "/usr/share/stagec/stdlib"}, &printer);
//   if (!session.load())
//     return 1;                                   // the program has errors, which were printed
//   for (int64_t tp : {1, 2, 4}) {
//     Result result = session.compile(Plan().set("tp", tp));
//     if (const Report *report = result.getReport())
//       use(report->getLargestStage().peak.getTotal());       // bytes
//     else
//       show(result.getRefusal());                            // code, place and text
//   }
//
// Ownership: a session owns files and sizes, to which results and their programs refer: it must outlive them. What a
// Diagnostic says outlives both.
// Errors: those of the files go to the consumer of the session, those of a plan into its result. A plan that is refused
// does not concern other plans.
// Threads: one thread at a time may use a session and its results, but compileAll() has threads of its own.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_COMPILER_SESSION_H
#define STAGE_COMPILER_SESSION_H

#include "stage/Compiler/Plan.h"
#include "stage/Compiler/Result.h"
#include "stage/Report/MeasuredSets.h"
#include "stage/Support/FileCache.h"
#include "llvm/ADT/STLExtras.h"

namespace stage {

struct PlanStores;

/// The files of a program.
struct SessionOptions {
  std::string input;                    ///< The main file; `-`: standard input.
  std::string stdlibDir;                ///< The folder of `std.*`; empty: there is none.
  std::vector<std::string> includeDirs; ///< Where imports are looked for, too, in order.
  std::vector<std::string> libraries;   ///< Files of the library that every file sees, such as `machines`.
  bool warningsAreErrors = false;       ///< Of files and of plans.
  FileCache cache = FileCache();        ///< Keeps the syntax trees of files from run to run.
};

class Session {
public:
  /// `consumer` gets what is said of the files; null: it is not shown. It must outlive the session.
  explicit Session(SessionOptions options, DiagnosticConsumer *consumer = nullptr);
  Session(const Session &) = delete;
  ~Session();

  /// Reads the program and checks its names, the first time that it is called. False after errors.
  bool load();
  /// The same of a text instead of a file. `name` stands for its path in messages.
  bool load(llvm::StringRef text, llvm::StringRef name);
  /// The jobs of the main file, in order. The program must have been loaded.
  std::vector<std::string> listJobs() const;

  /// Compiles a plan and accounts what it costs. The program must have been loaded. A job that another job prefills is
  /// refused, because it is two programs: Compilation.h links them.
  Result compile(const Plan &plan);

  /// The plan of a number, asked for by any thread.
  using PlanGetter = llvm::function_ref<Plan(size_t number)>;
  /// Gets each result in the thread that compiled it, several at a time, in any order.
  using ResultVisitor = llvm::function_ref<void(size_t number, Result result)>;
  /// Compiles the plans 0 to `count - 1` in several threads: `threads`, or, if that is 0, one per core as far as they
  /// have enough plans. The program must have been loaded. Threads share files and syntax trees, which nobody changes;
  /// each has sizes and models of its own. Results are gone when it returns, as are the sizes of other threads.
  void compileAll(size_t count, unsigned threads, PlanGetter getPlan, ResultVisitor visit);

  /// What the phases of a compilation need (Compilation.h).
  const SessionOptions &getOptions() const { return options; }
  sema::Program &getFiles() { return *files; } ///< Once they are loaded.
  llvm::SourceMgr &getSources() { return sources; }
  /// Says what is wrong with the files.
  DiagnosticEngine &getDiags() { return diags; }
  SizeContext &getSizes() { return sizes; }
  ModelCache &getModels() { return *models; }
  PlanStores &getStores() { return *stores; }
  /// With which steps are compared; null: the library has none.
  const MeasuredSets *getMeasured() const { return measured.get(); }
  ast::ASTContext &getContext() { return *ast; }

private:
  friend class SessionThreads;
  /// Shares the files of another session, which must have been loaded and outlive this one.
  explicit Session(Session &loaded);
  bool load(llvm::function_ref<bool(sema::Program &)> read);
  bool readMeasured();

  SessionOptions options;
  llvm::SourceMgr sources;
  DiagnosticEngine diags;
  std::unique_ptr<ast::ASTContext> ast;
  std::unique_ptr<sema::Program> files; ///< Null until they are loaded and their names checked.
  std::shared_ptr<const MeasuredSets> measured;
  SizeContext sizes;
  std::unique_ptr<ModelCache> models;
  std::unique_ptr<PlanStores> stores;
};

/// Threads that compile plans of one session, each with sizes and models of its own, which are kept from call to call.
class SessionThreads {
public:
  /// `threads`: at least 1. The session must have been loaded, and outlive this.
  SessionThreads(Session &session, unsigned threads);
  ~SessionThreads();
  /// Calls `visit` with each number below `count` in some thread, and the session of that thread.
  void forEach(size_t count, llvm::function_ref<void(Session &session, size_t number)> visit);

private:
  Session &session;
  std::vector<std::unique_ptr<Session>> others;
};

} // namespace stage

#endif // STAGE_COMPILER_SESSION_H
