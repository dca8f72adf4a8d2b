//===- ServedFile.h - what became of a file of requests --------*- C++ -*-===//
#ifndef STAGE_LIB_DRIVER_SERVEDFILE_H
#define STAGE_LIB_DRIVER_SERVEDFILE_H

#include "Commands.h"
#include "stage/Compiler/Compilation.h"
#include "stage/Serving/IterationList.h"
#include "stage/Serving/Metrics.h"
#include "stage/Time/UnitTimer.h"

namespace stage::driver {

/// What is to be said of requests that were served: sums over all of them, and some iterations.
struct ServedFile : serving::ServingObserver {
  /// Keeps the iterations of the window, or all, up to before the last.
  ServedFile(const ServeCommand &command, int64_t last)
      : command(command), metrics(command.options),
        list(command.window ? command.window->first : 0, last,
             command.options.prefillReplicas + command.options.replicas > 1) {}

  void step(const serving::Step &step) override;
  void finished(const serving::FinishedRequest &request) override;

  void print(llvm::raw_ostream &os);
  /// The members of a JSON object that is open.
  void printJson(llvm::json::OStream &json);
  const ServeCommand &command;
  serving::ServingMetrics metrics;
  serving::IterationList list;
  int64_t mostBlocks = 0; ///< Of a replica.
  bool hasPrefixes = false;
  bool insideTables = true; ///< Of the machine, if iterations last as long as the job takes.
};

/// A job that serves requests, as far as it is known before its iterations are: compiled with a unit of each kind.
class ServedJob {
public:
  /// Settles how many stages work on iterations, and whether the job decodes in another way. Null after errors of the
  /// job. The session must outlive it.
  static std::unique_ptr<ServedJob> create(DriverOptions &options, Session &session);

  /// Nothing has run.
  void restart();
  /// As a server asks (serving::IterationTime), on the machine of the job. Each stage takes `given` seconds besides.
  std::optional<double> run(const serving::Iteration &iteration, double given, int64_t begin,
                            llvm::MutableArrayRef<int64_t> freeAt);
  /// Every op and collective that has run lies inside the tables of the machine.
  bool isInsideTables() const;

private:
  /// The job with a unit of each kind, which copies caches or does not.
  struct Probe {
    explicit Probe(Session &session) : diags(session.getSources(), &messages), compilation(session, diags) {
      diags.setShowWarnings(false); // they are said when the job is compiled with its iterations
    }
    DiagnosticList messages;
    DiagnosticEngine diags;
    Compilation compilation;
    std::unique_ptr<UnitTimer> timer;
  };
  ServedJob(const DriverOptions &options, Session &session) : options(options), session(session) {}
  bool compileProbe(bool withCopies);
  bool compileProbeOf(int64_t tokens);
  /// Whether iterations last as long as the job takes.
  static bool usesModel(const Compilation &c) { return c.job->machine.has_value(); }
  /// False after a report that nothing says how long iterations last, or that rates say nothing.
  bool findTimes(const Compilation &c);
  bool makeTimer();
  /// What is wrong with the last probe.
  void printMessages() const;

  DriverOptions options;
  Session &session;
  std::vector<std::unique_ptr<Probe>> probes; ///< The last one times iterations.
  bool copies = false;                        ///< Whether it copies caches.
  int64_t tokens = 0;                         ///< Of its units.
  int64_t lastBegin = 0;
};

/// Keeps the iterations that become units of a job.
ServedFile keepIterations(const ServeCommand &command);
/// Goes through the requests of a job; its units. Iterations last as long as the job says, or the command. Null after
/// errors.
std::shared_ptr<const ServedUnits> serveJob(const ServeCommand &command, ServedJob &job, ServedFile &served,
                                            DiagnosticEngine &diags);
/// What the model runs of an iteration: all at once, or first the prompts and then those that decode.
std::vector<PackedUnit> listUnits(const ServeCommand &command, const serving::Iteration &iteration);

} // namespace stage::driver

#endif // STAGE_LIB_DRIVER_SERVEDFILE_H
