//===- TimelineEvents.cpp - times of nodes as trace events ----------------===//
//
// The JSON that chrome://tracing reads, and Perfetto: a process per rank, a thread per
// room of it, a complete event (`X`) per node, and a flow (`s`, `f`) per message.
//
//   {"ph":"X","name":"layers.0.h F0","cat":"compute","pid":0,"tid":1,"ts":3,"dur":1,"args":{"node":7, ...}}
//
// Times are microseconds; a unit is shown as one. A thread shows what runs one after the
// other, but receives take no room and may run beside each other: each goes to the first
// thread for receives that is free. The time in which a collective waits for other ranks
// is an event of its own, of category `wait`.
//
// Events are printed as the file of a rank is read, in its order: a line for each.
//
//===----------------------------------------------------------------------===//
#include "TimelineEvents.h"
#include "Attributes.h"
#include "stage/Machine/TimeText.h"
#include "stage/Trace/Diagnostics.h"
#include "stage/Trace/TraceReader.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/JSON.h"
#include <algorithm>
#include <queue>
#include <set>

using namespace stage;
using namespace stage::trace;
using llvm::StringRef;

const RankTimes *Timeline::find(uint32_t slot) const {
  auto found = llvm::partition_point(ranks, [&](const RankTimes &times) { return times.slot < slot; });
  return found != ranks.end() && found->slot == slot ? &*found : nullptr;
}

static StringRef getCategory(RoomKind room) {
  static constexpr const char *names[] = {"compute", "host compute", "communication", "copy", "other"};
  return names[unsigned(room)];
}

namespace {
class EventPrinter {
public:
  EventPrinter(const Timeline &timeline, llvm::raw_ostream &out, DiagnosticEngine &diags)
      : timeline(timeline), out(out), diags(diags) {}

  bool print() {
    out << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
    for (const RankTimes &times : timeline.ranks)
      if (!printRank(times))
        return false;
    printMessages();
    out << "\n]}\n";
    return true;
  }

private:
  using Json = llvm::json::OStream;

  bool printRank(const RankTimes &times);
  void printNode(const RankTimes &times, NodeIndex node, const ChakraProtoMsg::Node &message);
  void printMessages();
  void assignLanes(const RankTimes &times);
  unsigned getThread(const RankTimes &times, NodeIndex node) const;
  std::string getThreadName(unsigned thread) const;

  /// One object on a line of its own.
  void printEvent(llvm::function_ref<void(Json &)> attributes) {
    out << (isFirst ? "\n" : ",\n");
    isFirst = false;
    Json json(out);
    json.object([&] { attributes(json); });
  }
  static void printTime(Json &json, StringRef name, int64_t ticks) {
    json.attributeBegin(name);
    json.rawValue(toMicros(ticks));
    json.attributeEnd();
  }
  static void printPlace(Json &json, uint32_t rank, unsigned thread) {
    json.attribute("pid", int64_t(rank));
    json.attribute("tid", int64_t(thread));
  }
  void printLabel(StringRef kind, uint32_t rank, unsigned thread, StringRef key, llvm::json::Value value) {
    printEvent([&](Json &json) {
      json.attribute("ph", "M");
      json.attribute("name", kind);
      printPlace(json, rank, thread);
      json.attributeObject("args", [&] { json.attribute(key, value); });
    });
  }

  const Timeline &timeline;
  llvm::raw_ostream &out;
  DiagnosticEngine &diags;
  bool isFirst = true;
  /// Of the receives of a rank.
  llvm::DenseMap<std::pair<uint32_t, NodeIndex>, unsigned> lanes;
};
} // namespace

/// Each receive, in the order in which they begin, goes to the lane that has been free for longest.
void EventPrinter::assignLanes(const RankTimes &times) {
  std::vector<NodeIndex> recvs;
  const RankTable &rank = timeline.table.ranks[times.slot];
  for (const Communication &record : rank.communications)
    if (rank.nodes[record.node].type == ChakraNodeType::CommRecv)
      recvs.push_back(record.node);
  llvm::stable_sort(recvs, [&](NodeIndex a, NodeIndex b) { return times.begin[a] < times.begin[b]; });
  using Lane = std::pair<int64_t, unsigned>;
  std::priority_queue<Lane, std::vector<Lane>, std::greater<Lane>> free;
  unsigned numLanes = 0;
  for (NodeIndex node : recvs) {
    unsigned lane = numLanes;
    if (!free.empty() && free.top().first <= times.begin[node]) {
      lane = free.top().second;
      free.pop();
    } else {
      ++numLanes;
    }
    lanes[{times.slot, node}] = lane;
    free.push({times.end[node], lane});
  }
}

/// Threads are counted from 0: for nodes that stand for no work, the rooms of each stream, lanes of receives.
unsigned EventPrinter::getThread(const RankTimes &times, NodeIndex node) const {
  const RankTable &rank = timeline.table.ranks[times.slot];
  constexpr unsigned numStreams = 256; // more than there are
  if (rank.nodes[node].type == ChakraNodeType::CommRecv)
    return 1 + numStreams * numRoomKinds + lanes.lookup({times.slot, node});
  RoomKind room = getRoom(rank, node, timeline.timing);
  unsigned stream = timeline.timing.mergesStreams ? 0 : rank.getStream(node);
  return room == RoomKind::None ? 0 : 1 + stream * numRoomKinds + unsigned(room);
}

std::string EventPrinter::getThreadName(unsigned thread) const {
  if (thread == 0)
    return "other";
  constexpr unsigned firstLane = 1 + 256 * numRoomKinds;
  if (thread >= firstLane)
    return thread == firstLane ? "receives" : "receives " + std::to_string(thread - firstLane + 1);
  std::string name = getCategory(RoomKind((thread - 1) % numRoomKinds)).str();
  unsigned stream = (thread - 1) / numRoomKinds;
  return stream ? name + ", stream " + std::to_string(stream) : name;
}

bool EventPrinter::printRank(const RankTimes &times) {
  const RankTable &rank = timeline.table.ranks[times.slot];
  assignLanes(times);
  std::set<unsigned> threads;
  for (NodeIndex node = 0; node < rank.getNumNodes(); ++node)
    threads.insert(getThread(times, node));
  printLabel("process_name", rank.rank, 0, "name", "rank " + std::to_string(rank.rank));
  printLabel("process_sort_index", rank.rank, 0, "sort_index", int64_t(rank.rank));
  for (unsigned thread : threads) {
    printLabel("thread_name", rank.rank, thread, "name", getThreadName(thread));
    printLabel("thread_sort_index", rank.rank, thread, "sort_index", int64_t(thread));
  }

  std::unique_ptr<TraceReader> reader = TraceReader::open(rank.path, diags);
  ChakraProtoMsg::GlobalMetadata metadata;
  if (!reader || reader->readMetadata(metadata) != TraceReader::Status::Read)
    return false;
  std::vector<NodeIndex> nodes(rank.getFilePlaces().size()); // in the order of the file
  for (NodeIndex node = 0; node < nodes.size(); ++node)
    nodes[rank.getFilePlaces()[node]] = node;
  ChakraProtoMsg::Node message;
  for (NodeIndex place = 0; place < rank.getNumNodes(); ++place) {
    NodeIndex node = nodes.empty() ? place : nodes[place];
    TraceReader::Status status = reader->readNode(message);
    if (status == TraceReader::Status::Failed)
      return false;
    if (status == TraceReader::Status::End || message.id() != rank.getId(node)) {
      diags.report(SMLoc(), diag::TraceChanged) << rank.path;
      return false;
    }
    printNode(times, node, message);
  }
  return true;
}

void EventPrinter::printNode(const RankTimes &times, NodeIndex node, const ChakraProtoMsg::Node &message) {
  const RankTable &rank = timeline.table.ranks[times.slot];
  StringRef opType;
  if (const ChakraProtoMsg::AttributeProto *attribute = findAttribute(message, "op_type"))
    opType = attribute->string_val();
  StringRef typeName = getNodeTypeName(message.type());
  std::string name = llvm::json::fixUTF8(!message.name().empty() ? StringRef(message.name())
                                         : !opType.empty()       ? opType
                                                                 : typeName);
  bool isRecv = rank.nodes[node].type == ChakraNodeType::CommRecv;
  RoomKind room = isRecv ? RoomKind::Communication : getRoom(rank, node, timeline.timing);
  unsigned thread = getThread(times, node);
  auto wait = std::lower_bound(times.waits.begin(), times.waits.end(), std::pair(node, int64_t(0)));
  if (wait != times.waits.end() && wait->first == node)
    printEvent([&](Json &json) {
      json.attribute("ph", "X");
      json.attribute("name", "wait for " + name);
      json.attribute("cat", "wait");
      printPlace(json, rank.rank, thread);
      printTime(json, "ts", wait->second);
      printTime(json, "dur", times.begin[node] - wait->second);
    });
  printEvent([&](Json &json) {
    json.attribute("ph", "X");
    json.attribute("name", name);
    json.attribute("cat", getCategory(room));
    printPlace(json, rank.rank, thread);
    printTime(json, "ts", times.begin[node]);
    printTime(json, "dur", times.end[node] - times.begin[node]);
    json.attributeObject("args", [&] {
      json.attribute("node", int64_t(message.id()));
      json.attribute("type", typeName);
      if (!opType.empty())
        json.attribute("op_type", llvm::json::fixUTF8(opType));
      for (const auto &attribute : message.attr()) {
        StringRef key = attribute.name();
        std::optional<int64_t> number = getInteger(attribute);
        if (number && key == "comm_type")
          json.attribute(key, getCommTypeName(*number));
        else if (number && (key == "num_ops" || key == "tensor_size" || key.startswith("comm_")))
          json.attribute(key, *number);
        else if (key == "pg_name")
          json.attribute(key, llvm::json::fixUTF8(attribute.string_val()));
      }
    });
  });
}

/// From the send's event to the recv's.
void EventPrinter::printMessages() {
  int64_t number = 0;
  for (const MessageTimes &message : timeline.messages) {
    auto printEnd = [&](const RankTimes &times, NodeIndex node, bool isSend) {
      printEvent([&](Json &json) {
        json.attribute("ph", isSend ? "s" : "f");
        if (!isSend)
          json.attribute("bp", "e"); // belongs to the event around it, not to the next one
        json.attribute("name", "message");
        json.attribute("cat", "message");
        json.attribute("id", number);
        printPlace(json, timeline.table.ranks[times.slot].rank, getThread(times, node));
        printTime(json, "ts", times.begin[node]);
      });
    };
    printEnd(*timeline.find(message.sender), message.send, /*isSend=*/true);
    printEnd(*timeline.find(message.receiver), message.recv, /*isSend=*/false);
    ++number;
  }
}

bool stage::trace::printEvents(const Timeline &timeline, llvm::raw_ostream &out, DiagnosticEngine &diags) {
  return EventPrinter(timeline, out, diags).print();
}
