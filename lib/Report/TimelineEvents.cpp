//===- TimelineEvents.cpp - a step in time, as trace events ---------------===//
//
// The JSON that Perfetto and chrome://tracing read: a process per class of ranks, a complete event (`X`) for each unit,
// task and wait. Times are microseconds, exactly.
//
//   {"ph":"X","name":"layers.mlp.g
//   gate_up","cat":"compute","pid":0,"tid":1,"ts":12.5,"dur":3,"args":{"unit":"F0","account":"products"}}
//
// Lines are printed as the tasks of a class are visited, so that no list of them is held.
//
//===----------------------------------------------------------------------===//
#include "stage/Machine/TimeText.h"
#include "stage/Report/TimelinePicture.h"
#include "llvm/Support/JSON.h"
#include <set>

using namespace stage;
using llvm::StringRef;

namespace {
class EventPrinter {
public:
  EventPrinter(llvm::raw_ostream &out, const StepTimeline &timeline, TimelineWindow window)
      : out(out), timeline(timeline), window(window) {}
  void print(const std::string &job);

private:
  using Json = llvm::json::OStream;
  /// Threads of a process. Those of lanes are counted from `firstLane` on.
  enum Thread : int64_t { Units, Main, Waits, firstLane };

  static int64_t getThread(const TimedLane &lane) {
    constexpr int64_t numStreams = 256; // more than there are
    return lane.isMain() ? int64_t(Main) : firstLane + int64_t(lane.kind) * numStreams + lane.stream;
  }
  static StringRef getCategory(const TimedLane &lane) {
    static constexpr const char *names[] = {"compute", "communication", "copy", "host compute"};
    return names[unsigned(lane.kind)];
  }
  /// One object on a line of its own.
  void printObject(llvm::function_ref<void(Json &)> attributes) {
    out << (isFirst ? "\n" : ",\n");
    isFirst = false;
    Json json(out);
    json.object([&] { attributes(json); });
  }
  static void printTime(Json &json, StringRef name, Ticks ticks) {
    json.attributeBegin(name);
    json.rawValue(toMicros(ticks));
    json.attributeEnd();
  }
  void printLabel(StringRef kind, int64_t rank, int64_t thread, StringRef key, llvm::json::Value value);
  void printThread(int64_t rank, int64_t thread, const std::string &name);
  void printEvent(StringRef name, StringRef category, int64_t rank, int64_t thread, Ticks begin, Ticks end,
                  llvm::function_ref<void(Json &)> arguments = nullptr);
  void printClass(unsigned classNumber);

  llvm::raw_ostream &out;
  const StepTimeline &timeline;
  TimelineWindow window;
  bool isFirst = true;
};
} // namespace

void EventPrinter::printLabel(StringRef kind, int64_t rank, int64_t thread, StringRef key, llvm::json::Value value) {
  printObject([&](Json &json) {
    json.attribute("ph", "M");
    json.attribute("name", kind);
    json.attribute("pid", rank);
    json.attribute("tid", thread);
    json.attributeObject("args", [&] { json.attribute(key, value); });
  });
}

void EventPrinter::printThread(int64_t rank, int64_t thread, const std::string &name) {
  printLabel("thread_name", rank, thread, "name", llvm::json::fixUTF8(name));
  printLabel("thread_sort_index", rank, thread, "sort_index", thread);
}

void EventPrinter::printEvent(StringRef name, StringRef category, int64_t rank, int64_t thread, Ticks begin, Ticks end,
                              llvm::function_ref<void(Json &)> arguments) {
  if (end <= window.from || begin >= window.to)
    return;
  printObject([&](Json &json) {
    json.attribute("ph", "X");
    json.attribute("name", llvm::json::fixUTF8(name));
    json.attribute("cat", category);
    json.attribute("pid", rank);
    json.attribute("tid", thread);
    printTime(json, "ts", begin);
    printTime(json, "dur", end - begin);
    if (arguments)
      json.attributeObject("args", [&] { arguments(json); });
  });
}

void EventPrinter::printClass(unsigned classNumber) {
  const ClassTasks &tasks = timeline.getTasks(classNumber);
  int64_t rank = timeline.getRepresentative(classNumber);
  printLabel("process_name", rank, 0, "name",
             "rank " + std::to_string(rank) + " (stage " + std::to_string(tasks.getStage().stage) + ")");
  printLabel("process_sort_index", rank, 0, "sort_index", rank);
  printThread(rank, Units, "units");
  printThread(rank, Main, "compute");
  printThread(rank, Waits, "waits");
  /// The unit whose tasks on the main lane come.
  std::optional<unsigned> unit;
  Ticks unitBegin = 0, unitEnd = 0;
  auto closeUnit = [&] {
    if (unit)
      printEvent(tasks.getUnits()[*unit].getName(), getName(tasks.getUnits()[*unit].kind), rank, Units, unitBegin,
                 unitEnd);
  };
  std::set<TimedLane> lanes;
  auto addRun = [&](const TimedRun &run) {
    if (run.lane.isMain()) {
      if (unit != run.unit) {
        closeUnit();
        unit = run.unit;
        unitBegin = run.begin;
      }
      unitEnd = run.end;
    } else if (lanes.insert(run.lane).second) {
      printThread(rank, getThread(run.lane), getName(run.lane, timeline.getProgram(classNumber)));
    }
    printEvent(run.getName(), getCategory(run.lane), rank, getThread(run.lane), run.begin, run.end, [&](Json &json) {
      json.attribute("unit", llvm::json::fixUTF8(tasks.getUnits()[run.unit].getName()));
      if (run.lane.kind == TimedLane::Kind::Compute)
        json.attribute("account", getName(run.account));
      if (run.more.beside)
        printTime(json, "overlap", run.more.beside);
      if (run.more.launch)
        printTime(json, "launch", run.more.launch);
    });
  };
  auto addWait = [&](TimeAccount account, Ticks begin, Ticks end) {
    printEvent(getName(account), "wait", rank, Waits, begin, end);
  };
  timeline.visit(classNumber, addRun, addWait);
  closeUnit();
}

void EventPrinter::print(const std::string &job) {
  out << "{\"displayTimeUnit\":\"ns\",\"otherData\":";
  Json json(out);
  json.object([&] {
    json.attribute("job", llvm::json::fixUTF8(job));
    json.attribute("machine", timeline.getMachine());
    json.attribute("runtime", timeline.getRuntime());
    json.attribute("inside_tables", timeline.isInsideTables());
    printTime(json, "step_us", timeline.getStep());
  });
  out << ",\"traceEvents\":[";
  for (unsigned number = 0; number < timeline.getNumClasses(); ++number)
    printClass(number);
  out << "\n]}\n";
}

void stage::printEvents(llvm::raw_ostream &os, const StepTimeline &timeline, const std::string &job,
                        TimelineWindow window) {
  EventPrinter(os, timeline, window).print(job);
}
