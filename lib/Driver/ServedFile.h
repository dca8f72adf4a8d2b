//===- ServedFile.h - what became of a file of requests --------*- C++ -*-===//
#ifndef STAGE_LIB_DRIVER_SERVEDFILE_H
#define STAGE_LIB_DRIVER_SERVEDFILE_H

#include "Options.h"
#include "stage/Serving/IterationList.h"
#include "stage/Serving/Metrics.h"

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
  /// Iterations last as long as they compute and read, by rates: what ranks send each other is in no time. Times that
  /// are given are what they are.
  bool leavesOutCommunication() const {
    return command.roofline.flopsPerSecond > 0 || command.roofline.bytesPerSecond > 0;
  }

  const ServeCommand &command;
  serving::ServingMetrics metrics;
  serving::IterationList list;
  int64_t mostBlocks = 0; ///< Of a replica.
  bool hasPrefixes = false;
};

class UnitTimes;

/// Finds on how many stages of a pipeline the job runs that serves the requests, which says how many iterations are in
/// flight, and whether it decodes in another way. False after errors of the job.
bool settleServer(DriverOptions &options);
/// Keeps the iterations that become units of a job.
ServedFile keepIterations(const ServeCommand &command);
/// Goes through the requests of a job; its units. Iterations last as long as `times` says, null: as the command does.
/// Null after errors.
std::shared_ptr<const ServedUnits> serveJob(const ServeCommand &command, const UnitTimes *times, ServedFile &served,
                                            DiagnosticEngine &diags);

} // namespace stage::driver

#endif // STAGE_LIB_DRIVER_SERVEDFILE_H
