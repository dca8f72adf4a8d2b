//===- RandomTracesTest.cpp - traces of random jobs against their report --===//
//
// The report and the traces are made from the same program in different ways. Of random
// jobs (RandomProgram) the traces are written, read again and added up here, without
// anything of Memory or CodeGen:
//
//   FLOPs   num_ops of all compute nodes of all ranks, by the class of their op_type; other_ops and recomputed_ops
//           are counted apart
//   time    two programs find the times of tasks: Time from the program, `stage-trace timeline` from the traces; where
//           the time goes is found from unit to unit and from task to task
//   memory  the lists `inputs` and `outputs` (--tracker), simulated rank by rank as
//           docs/internals/TraceDetails.md says that trackers do
//
// STAGE_RANDOM_SEED=417 runs that one job only.
//
//===----------------------------------------------------------------------===//
#include "RandomParts.h"
#include "RandomProgram.h"
#include "et_def.pb.h"
#include "stage/CodeGen/Emit.h"
#include "stage/Compiler/Session.h"
#include "stage/IR/graph/Costs.h"
#include "stage/Memory/Allocations.h"
#include "stage/Memory/CachingAllocator.h"
#include "stage/Memory/RuntimeMemory.h"
#include "stage/Memory/SimulatedAllocator.h"
#include "stage/Report/Report.h"
#include "stage/Time/StepTime.h"
#include "stage/Time/TimeReport.h"
#include "stage/Trace/Timeline.h"
#include "stage/Trace/TraceReader.h"
#include "stage/Trace/Verify.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>

using namespace stage;
using namespace stage::trace;

namespace {
struct Tensor {
  std::string name;
  int64_t bytes;
};

/// A node as a simulator sees it.
struct Node {
  int type;
  uint64_t id;
  std::vector<uint64_t> deps;
  std::string name, opType;
  int64_t numOps = 0, otherOps = 0, recomputedOps = 0;
  std::vector<Tensor> inputs, outputs;

  /// `F0`, `B2.1`, `step`: the unit is the last word of the name.
  std::string getUnit() const { return llvm::StringRef(name).rsplit(' ').second.str(); }
};

std::vector<Tensor> readList(const ChakraProtoMsg::AttributeProto &attribute) {
  std::vector<Tensor> list;
  const auto &values = attribute.string_list().values();
  for (int i = 0; i + 1 < values.size(); i += 2)
    list.push_back({values.Get(i), std::stoll(values.Get(i + 1))});
  return list;
}

class RandomTracesTest : public ::testing::Test {
protected:
  void SetUp() override { ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("random-traces", root)); }
  void TearDown() override { llvm::sys::fs::remove_directories(root); }

  std::string path(const llvm::Twine &name) const { return (root + "/" + name).str(); }

  /// Calls `check` with jobs until so many have been compiled.
  void forEachJob(unsigned wanted, llvm::function_ref<void()> check, unsigned timesMicrobatches = 1) {
    const char *only = std::getenv("STAGE_RANDOM_SEED");
    unsigned compiled = 0;
    for (uint64_t seed = only ? std::stoull(only) : 1; compiled < wanted && !HasFailure(); ++seed) {
      lines = makeRandomProgram(seed);
      for (std::string &line : lines)
        multiplyBatch(line, timesMicrobatches);
      if (compile(lines)) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ":\n" + llvm::join(lines, "\n"));
        ++compiled;
        check();
      }
      if (only)
        return;
      ASSERT_LT(seed, 20 * uint64_t(wanted)) << "most jobs are refused";
    }
  }

  /// Of `step = train(B = 8, ...`.
  static void multiplyBatch(std::string &line, unsigned times) {
    llvm::StringRef before, rest, digits;
    std::tie(before, rest) = llvm::StringRef(line).split("train(B = ");
    digits = rest.take_while(llvm::isDigit);
    unsigned batch;
    if (!digits.getAsInteger(10, batch))
      line = (before + "train(B = " + llvm::Twine(batch * times) + rest.drop_front(digits.size())).str();
  }

  std::vector<std::string> lines; ///< Of the job.

  /// Makes the report and, with the lists of trackers, the traces. False if the compiler refuses the job.
  bool compile(const std::vector<std::string> &lines) {
    std::error_code error;
    llvm::raw_fd_ostream file(path("job.stg"), error);
    for (const std::string &line : lines)
      file << line << '\n';
    file.close();
    said.clear();
    c.reset();
    session = std::make_unique<Session>(SessionOptions{.input = path("job.stg"), .stdlibDir = STAGE_STDLIB}, &printer);
    c = std::make_unique<Compilation>(*session);
    if (!runFrontEnd(*c, Plan()) || !runMiddle(*c))
      return false;
    Runtime runtime;
    if (keepsMore)
      runtime.kernels = makeKeepers();
    memory = RuntimeMemory::find(*c->program, runtime, c->diags);
    report = makeReport(*c->program, accountMemory(*c->program, c->diags, memory.get()), c->diags);
    write(/*tracker=*/true);
    return true;
  }

  /// A runtime that has residents, keeps bytes for gradients, and holds results until the end of modules.
  std::vector<KernelRule> makeKeepers() const {
    SizeContext &sizes = c->sizes;
    std::vector<KernelRule> rules(4);
    rules[0].kind = rules[1].kind = KernelRule::Kind::Resident;
    rules[0].opClass = rules[1].opClass = rules[2].opClass = KernelRule::OpClass::Contraction;
    rules[0].resident = "placeholder";
    rules[0].isPerShape = true;
    rules[0].backwardBytes = sizes.symbol("bytes.weight");
    rules[1].resident = "workspace";
    rules[1].bytes = sizes.constant(100);
    rules[1].backwardBytes = sizes.constant(50);
    rules[2].keepBytes = sizes.symbol("volume") * 3;
    rules[3].opClass = KernelRule::OpClass::Elementwise;
    rules[3].heldUntil = "mlp";
    rules[3].holdBytes = sizes.symbol("volume");
    return rules;
  }

  bool keepsMore = false; ///< A runtime does (makeKeepers).
  std::shared_ptr<const RuntimeMemory> memory;

  void write(bool tracker) {
    EmitOptions traces;
    traces.directory = path("traces");
    traces.force = true;
    traces.tracker = tracker;
    traces.memory = memory.get();
    EXPECT_TRUE(emitTraces(*c->program, traces, c->diags)) << messages.str();
    EXPECT_FALSE(c->diags.hasErrors()) << messages.str();
  }

  std::vector<Node> readTrace(int64_t rank) {
    std::vector<Node> nodes;
    auto reader = TraceReader::open(path("traces/workload." + llvm::Twine(rank) + ".et"), c->diags);
    ChakraProtoMsg::GlobalMetadata metadata;
    if (!reader || reader->readMetadata(metadata) != TraceReader::Status::Read) {
      ADD_FAILURE() << messages.str();
      return nodes;
    }
    ChakraProtoMsg::Node message;
    while (reader->readNode(message) == TraceReader::Status::Read) {
      Node &node = nodes.emplace_back();
      node.type = message.type();
      node.id = message.id();
      node.deps.assign(message.data_deps().begin(), message.data_deps().end());
      node.deps.insert(node.deps.end(), message.ctrl_deps().begin(), message.ctrl_deps().end());
      node.name = message.name();
      for (const ChakraProtoMsg::AttributeProto &attribute : message.attr()) {
        if (attribute.name() == "op_type")
          node.opType = attribute.string_val();
        else if (attribute.name() == "num_ops")
          node.numOps = attribute.int64_val();
        else if (attribute.name() == "other_ops")
          node.otherOps = attribute.int64_val();
        else if (attribute.name() == "recomputed_ops")
          node.recomputedOps = attribute.int64_val();
        else if (attribute.name() == "inputs")
          node.inputs = readList(attribute);
        else if (attribute.name() == "outputs")
          node.outputs = readList(attribute);
      }
    }
    EXPECT_FALSE(reader->hasFailed()) << messages.str();
    return nodes;
  }

  void checkPeaks();
  void checkAllocations();

  /// The step, and what each rank does in it, to the tick and to the byte: where all links are alike, and on one of
  /// several networks with levels, of which some end in the middle of groups.
  void checkTime() {
    MachineRates rates{989'000'000'000, 3'350'000'000, 450'000'000, 50'000'000, 1'000'000'000, 200'000'000};
    rates.latency = 5'000;
    checkTime(rates);
    checkTimeOfDurations(makeNetwork());
  }

  /// Fused kernels, kernels beside others, other bytes, and waits for the host.
  std::vector<KernelRule> makeKernels() const {
    SizeContext &sizes = c->sizes;
    Size volume = sizes.symbol("volume");
    std::vector<KernelRule> rules(4);
    rules[0].kind = KernelRule::Kind::Fusion;
    rules[0].opClass = KernelRule::OpClass::Elementwise;
    rules[1].opClass = KernelRule::OpClass::Contraction;
    rules[1].besideBytes = volume * 2;
    rules[1].backwardBesideBytes = volume;
    rules[2].opClass = KernelRule::OpClass::Optimizer;
    rules[2].bytes = volume * 60;
    rules[3].opClass = KernelRule::OpClass::Elementwise;
    rules[3].host = sizes.constant(700'000);
    rules[3].backwardHost = sizes.constant(900'000);
    return rules;
  }

  /// Two of three times it has taxes.
  Runtime makeRuntime() const {
    Runtime runtime;
    if (numMachines % 3) {
      runtime.name = "taxing";
      runtime.launch = numMachines % 2 ? 2'000 : 0;
      runtime.stepHost = numMachines % 5 ? 4'000 : 0;
      runtime.taxOfCollectives = {3, 10};
      runtime.taxOfSends = *Rational::make(numMachines % 5, 7);
      runtime.taxOfCopies = {1, 4};
      runtime.taxOfCommunication = *Rational::make(numMachines % 2, 3);
    }
    if (numMachines % 4 == 1)
      runtime.attentionKernel = {3, 5};
    if (numMachines % 2)
      runtime.kernels = makeKernels();
    return runtime;
  }

  /// Of a machine that prices what ops do: the timeline is given the prices alone, and finds by itself what tasks take
  /// beside each other.
  void checkTimeOfDurations(const MachineRates &rates) {
    Runtime runtime = makeRuntime();
    TimedPart part{c->program.get(), rates, runtime};
    std::unique_ptr<TaskDurations> durations = TaskDurations::find(part, TaskOptions(), c->diags);
    ASSERT_TRUE(durations) << messages.str();
    EmitOptions emit;
    emit.directory = path("timed");
    emit.force = true;
    emit.durations = durations.get();
    EXPECT_TRUE(emitTraces(*c->program, emit, c->diags)) << messages.str();
    EXPECT_TRUE(verifyTraces(path("timed"), VerifyOptions(), llvm::nulls(), c->diags)) << messages.str();
    std::string ofTraces, ofProgram;
    llvm::raw_string_ostream traces(ofTraces), program(ofProgram);
    EXPECT_TRUE(printTimeline(path("timed"), TimelineOptions(), traces, c->diags)) << messages.str();
    std::optional<StepActivity> step = findStepTime(part, TaskOptions(), c->diags);
    ASSERT_TRUE(step) << messages.str();
    print(program, *step, part.machine, describeParts(part));
    EXPECT_EQ(program.str(), traces.str());
  }

  void checkTime(const MachineRates &rates) {
    TimelineOptions options;
    options.machine = rates;
    std::string ofTraces, ofProgram;
    llvm::raw_string_ostream traces(ofTraces), program(ofProgram);
    EXPECT_TRUE(printTimeline(path("traces"), options, traces, c->diags)) << messages.str();
    std::optional<StepActivity> step =
        findStepTime(TimedPart{c->program.get(), rates, Runtime()}, TaskOptions(), c->diags);
    ASSERT_TRUE(step) << messages.str();
    print(program, *step, rates);
    EXPECT_EQ(program.str(), traces.str());
  }

  MachineRates makeNetwork() {
    MachineRates rates{989'000'000'000, 3'350'000'000, 450'000'000, 50'000'000, 1'000'000'000, 200'000'000};
    static constexpr int64_t nodes[] = {2, 3, 4, 8};
    int64_t node = nodes[numMachines++ % 4];
    rates.name = "nodes";
    rates.type = "bf16";
    rates.types[size_t(DType::BF16)].flops = rates.types[size_t(DType::F32)].flops = 989'000'000'000;
    rates.memoryEfficiency = {4, 5};
    rates.levels = {{"node", node, 450'000'000, {7, 10}, 3'000},
                    {"rail", 2 * node, 50'000'000, {1, 1}, 10'000},
                    {"spine", 1024 * node, 30'000'000, {1, 1}, 20'000}};
    // Every third machine says how many ranks of a node jobs fill.
    if (numMachines % 3 == 0) {
      int64_t numRanks = c->graph->mesh.getNumRanks();
      rates.levels[0].used = std::gcd(numRanks, numMachines % 2 ? node : node - 1);
      numPartly += rates.levels[0].used < std::min(node, numRanks);
    }
    return rates;
  }

  /// Unit by unit and task by task, time goes to the same accounts, and the same tasks are on the critical path.
  void checkReport() {
    MachineRates rates = makeNetwork();
    TimedPart part{c->program.get(), rates, makeRuntime()};
    std::optional<StepActivity> activity = findStepTime(part, TaskOptions(), c->diags);
    if (!activity) { // an area that differs from rank to rank, of an op whose FLOPs do not
      ++numUntimed;
      return;
    }
    Ticks step = activity->step;
    std::string ofUnits, ofTasks;
    llvm::raw_string_ostream unitsText(ofUnits), tasksText(ofTasks);
    print(unitsText, std::move(*activity), rates);
    activity = findStepTimeByTask(part, TaskOptions(), c->diags);
    ASSERT_TRUE(activity);
    print(tasksText, std::move(*activity), rates);
    EXPECT_EQ(unitsText.str(), tasksText.str());
    std::optional<TimeReport> units = findTimeReport({c->program.get()}, rates, part.runtime, c->diags);
    std::optional<TimeReport> tasks = findTimeReportByTask({c->program.get()}, rates, part.runtime, c->diags);
    ASSERT_TRUE(units && tasks) << messages.str();
    EXPECT_EQ(units->step, step);
    EXPECT_EQ(describe(*units), describe(*tasks));
    Ticks onPath = 0;
    for (const PathLink &link : units->path)
      onPath += link.ticks;
    EXPECT_EQ(onPath, step);
    for (const StageTime &stage : units->stages)
      EXPECT_EQ(std::accumulate(std::begin(stage.accounts), std::end(stage.accounts), Ticks(0)), step);
  }

  static std::string describe(const TimeReport &report) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << report.step << ' ' << report.insideTables << '\n';
    for (const StageTime &stage : report.stages) {
      os << stage.stage << ' ' << stage.rank << ':';
      for (Ticks account : stage.accounts)
        os << ' ' << account;
      for (const CommunicationTime &row : stage.communication)
        os << " [" << row.op << ' ' << row.count << ' ' << row.taken << ' ' << row.exposed << ']';
      os << '\n';
    }
    for (const PathLink &link : report.path)
      os << link.name << ' ' << link.stage << ' ' << link.count << ' ' << link.ticks << '\n';
    return os.str();
  }

  unsigned numMachines = 0, numUntimed = 0;
  unsigned numPartly = 0; ///< Machines of whose nodes the job fills less than it could, because they say so.
  llvm::SmallString<128> root;
  std::string said;
  llvm::raw_string_ostream messages{said};
  DiagnosticPrinter printer{messages};
  std::unique_ptr<Session> session;
  std::unique_ptr<Compilation> c;
  Report report;
};

//===----------------------------------------------------------------------===//
// FLOPs
//===----------------------------------------------------------------------===//

/// What the operators of one `op_type` have in common.
struct OpTypeFacts {
  FlopClass kind;
  bool isFree; ///< Some have no FLOPs (the gradient of a slice that adds nothing up): a `num_ops` of 1 means none.
  bool isRecomputed; ///< Some of its FLOPs are recomputation.
  bool isOneClass = true;
};

/// `contract.1.dw` is a `contract.dw`.
std::string dropVariant(llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef, 3> parts;
  name.split(parts, '.');
  llvm::erase_if(parts, [](llvm::StringRef part) { return llvm::all_of(part, llvm::isDigit); });
  return llvm::join(parts, ".");
}

static bool hasMask(const Op &op) { return op.def && op.def->mask; }

TEST_F(RandomTracesTest, FlopsOfEachClassAreThoseOfTheReport) {
  unsigned numRecomputed = 0, numSeparate = 0;
  forEachJob(300, [&] {
    // Nodes have an operator's name without the number of its variant; with it, where variants differ in class.
    llvm::StringMap<OpTypeFacts> types, variants;
    c->graph->walk([&](Op &op) {
      if (op.kind != OpKind::Compute && op.kind != OpKind::Update && op.kind != OpKind::Accumulate &&
          op.kind != OpKind::AddNorm)
        return;
      OpCost cost = getLocalCost(*c->graph, op);
      Size zero = c->sizes.zero();
      FlopClass kind = cost.flops.contraction != zero ? FlopClass::Contraction
                       : cost.flops.attention != zero ? FlopClass::Attention
                                                      : FlopClass::Other;
      // Of a mask some ranks may have no part, in a step of a ring, and then nothing of it to add up.
      bool mayBeFree = cost.getComputed() == zero || hasMask(op) || (op.origin && hasMask(*op.origin)) ||
                       getCoordinateAxes(c->graph->mesh, cost.getComputed());
      OpTypeFacts facts = {kind, mayBeFree, cost.recomputeFlops != zero};
      if (op.kind == OpKind::Accumulate && facts.isFree)
        return; // its maker adds it
      std::string name = op.def ? op.def->name : getName(op.kind).str();
      if (op.isRecomputed) { // of the class of what it makes again
        types[dropVariant(name)].isRecomputed = variants[name].isRecomputed = true;
        return;
      }
      variants[name] = facts;
      OpTypeFacts &known = types.try_emplace(dropVariant(name), facts).first->second;
      known.isOneClass &= known.kind == facts.kind;
      known.isRecomputed |= facts.isRecomputed;
      known.isFree |= facts.isFree;
    });
    std::map<FlopClass, __int128> sums, unclear; // what costs nothing has one operation, as what costs one has
    __int128 recomputed = 0;
    bool isRecomputed = false, isSeparate = false;
    for (int64_t rank = 0; rank < report.ranks; ++rank)
      for (const Node &node : readTrace(rank)) {
        if (node.type != ChakraProtoMsg::COMP_NODE || node.opType == "wait")
          continue;
        auto type = types.find(node.opType), variant = variants.find(node.opType);
        bool isType = type != types.end() && type->second.isOneClass;
        ASSERT_TRUE(isType || variant != variants.end()) << "the class of type " << node.opType << " is not known";
        const OpTypeFacts &facts = isType ? type->second : variant->second;
        EXPECT_TRUE(facts.isRecomputed || !node.recomputedOps) << node.opType;
        isRecomputed |= node.recomputedOps != 0;
        isSeparate |= node.opType == "accumulate";
        (facts.isFree && node.numOps == 1 ? unclear : sums)[facts.kind] +=
            node.numOps - node.otherOps - node.recomputedOps;
        sums[FlopClass::Other] += node.otherOps;
        recomputed += node.recomputedOps;
      }
    numRecomputed += isRecomputed;
    numSeparate += isSeparate;
    // The ranks compute the model's FLOPs, those that several of them compute alike, and those of the padding.
    const FlopReport &model = report.flops, &duplicated = report.duplicatedFlops, &padding = report.paddingFlops;
    auto show = [](__int128 number) { return Rational{number, 1}.str(); };
    auto check = [&](FlopClass kind, __int128 expected) {
      EXPECT_TRUE(sums[kind] <= expected && expected <= sums[kind] + unclear[kind])
          << "the nodes have " << show(sums[kind]) << ", and perhaps " << show(unclear[kind]) << " more; the report "
          << show(expected);
    };
    check(FlopClass::Contraction, model.contraction + duplicated.contraction + padding.contraction);
    check(FlopClass::Attention, model.attention + duplicated.attention + padding.attention);
    check(FlopClass::Other, model.other + duplicated.other + padding.other);
    EXPECT_EQ(show(recomputed), show(model.recompute + duplicated.recompute + padding.recompute));
  });
  EXPECT_GT(numRecomputed, 5u);
  EXPECT_GT(numSeparate, 30u);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Simulates the lists of a rank as docs/internals/TraceDetails.md says. Nodes run in the order of their ids; a recv
/// from another stage is posted when the last unit, or pair, before its own begins that has more than messages. Copies
/// take no time: a load begins when its unit has begun and all has run that it depends on but copies, and that these
/// do.
class Tracker {
public:
  explicit Tracker(std::vector<Node> given) {
    auto isMessage = [](const Node &node) {
      return node.type == ChakraProtoMsg::COMM_SEND_NODE || node.type == ChakraProtoMsg::COMM_RECV_NODE ||
             node.opType == "wait";
    };
    // Units whose nodes take turns are a pair, known by the number of the unit that begins it.
    std::map<std::string, size_t> lastOf;
    for (size_t at = 0; at < given.size(); ++at)
      lastOf[given[at].getUnit()] = at;
    std::vector<size_t> pairs; // of nodes
    size_t pair = 0, end = 0;
    for (size_t at = 0; at < given.size(); ++at) {
      if (at > end)
        ++pair;
      end = std::max(end, lastOf[given[at].getUnit()]);
      pairs.push_back(pair);
    }
    std::set<size_t> working;
    for (size_t at = 0; at < given.size(); ++at)
      if (!isMessage(given[at]))
        working.insert(pairs[at]);
    std::optional<size_t> current;
    std::vector<std::pair<size_t, bool>> times; // how many working units have begun; recvs come first
    size_t before = 0, begun = 0;
    for (size_t at = 0; at < given.size(); ++at) {
      const Node &node = given[at];
      if (pairs[at] != current) {
        current = pairs[at];
        before = begun;
        begun += working.count(pairs[at]);
      }
      bool isRecv = node.type == ChakraProtoMsg::COMM_RECV_NODE && node.opType != "permute";
      times.emplace_back(isRecv ? before : begun, !isRecv);
    }
    std::vector<size_t> order(given.size());
    std::iota(order.begin(), order.end(), 0);
    llvm::stable_sort(order, [&](size_t a, size_t b) { return times[a] < times[b]; });
    for (size_t at : order)
      nodes.push_back(std::move(given[at]));
    std::map<uint64_t, size_t> ready; // by id of a node: where it has run
    std::map<std::string, size_t> unitBegins;
    for (size_t at = 0; at < nodes.size(); ++at) {
      Node &node = nodes[at];
      bool isLoad = node.type == ChakraProtoMsg::MEM_LOAD_NODE,
           isCopy = isLoad || node.type == ChakraProtoMsg::MEM_STORE_NODE;
      if (node.type != ChakraProtoMsg::COMM_RECV_NODE)
        unitBegins.try_emplace(node.getUnit(), at);
      size_t begin = isLoad ? unitBegins[node.getUnit()] : isCopy ? 0 : at + 1;
      for (uint64_t dep : node.deps)
        begin = isCopy ? std::max(begin, ready[dep]) : begin;
      ready[node.id] = begin;
      std::vector<Tensor> &made = arrivals[isLoad ? begin : at];
      made.insert(made.end(), node.outputs.begin(), node.outputs.end());
    }
  }

  /// The most bytes held at once.
  int64_t getPeak() {
    std::map<std::string, size_t> lastRead;
    std::map<std::string, int64_t> sizes; // the first one seen counts
    std::map<std::string, bool> isWritten;
    int64_t held = 0;
    for (size_t at = 0; at < nodes.size(); ++at) {
      for (const Tensor &tensor : nodes[at].inputs) {
        if (sizes.try_emplace(tensor.name, tensor.bytes).second)
          held += tensor.bytes; // nobody wrote it: it counts from the beginning
        lastRead[tensor.name] = at;
      }
      for (const Tensor &tensor : nodes[at].outputs) {
        EXPECT_TRUE(sizes.try_emplace(tensor.name, tensor.bytes).second)
            << nodes[at].name << " writes " << tensor.name << ", which was written or read before";
        isWritten[tensor.name] = true;
      }
    }
    for (auto &[name, written] : isWritten)
      EXPECT_TRUE(lastRead.count(name)) << name << " is written and never read: a tracker keeps it for ever";
    int64_t peak = held;
    for (size_t at = 0; at < nodes.size(); ++at) {
      for (const Tensor &tensor : arrivals[at])
        held += tensor.bytes;
      if (held > peak) {
        peak = held;
        worst = at;
      }
      for (const Tensor &tensor : nodes[at].inputs)
        if (auto it = lastRead.find(tensor.name); it->second == at) {
          held -= sizes[tensor.name];
          it->second = nodes.size(); // listed twice, it is freed once
        }
    }
    EXPECT_EQ(held, 0) << "tensors are left at the end";
    return peak;
  }
  std::string getWorst() const { return nodes.empty() ? "" : nodes[worst].name; }

private:
  std::vector<Node> nodes;
  std::map<size_t, std::vector<Tensor>> arrivals; ///< What is made at a node, or begins to be loaded.
  size_t worst = 0;
};

/// The highest peak of a rank's lists is what the report says of its stage.
void RandomTracesTest::checkPeaks() {
  for (int64_t rank = 0; rank < report.ranks; ++rank) {
    // The pipeline's axis may be anywhere in the mesh.
    const Mesh &mesh = c->graph->mesh;
    size_t stage = c->graph->pipeline.axis ? mesh.getCoordinate(rank, *c->graph->pipeline.axis) : 0;
    ASSERT_LT(stage, report.memory.stages.size());
    const StageMemory &held = report.memory.stages[stage];
    Tracker tracker(readTrace(rank));
    int64_t peak = tracker.getPeak();
    EXPECT_EQ(peak, int64_t(held.peak.getTotal()))
        << "rank " << rank << ": the lists at " << tracker.getWorst() << ", the report at " << held.describeMoment();
  }
}

/// For tensors of a few bytes.
constexpr AllocatorRules tinyRules = {.round = 8,
                                      .small = 64,
                                      .smallSegment = 200,
                                      .large = 300,
                                      .largeSegment = 800,
                                      .segmentRound = 100,
                                      .unsplit = 40};

/// Sums up what is allocated, and hears of every unit.
class AllocationSum : public AllocationListener {
public:
  void allocate(unsigned number, const AllocatedTensor &tensor) override {
    EXPECT_TRUE(live.try_emplace(number, tensor).second) << describe(tensor);
    use[tensor.kind] += tensor.bytes;
    addresses[number] = allocator.allocate(tensor.bytes);
  }
  void free(unsigned number) override {
    auto tensor = live.find(number);
    ASSERT_NE(tensor, live.end());
    use[tensor->second.kind] -= tensor->second.bytes;
    live.erase(tensor);
    allocator.free(addresses[number]);
  }
  void reclassify(unsigned number, MemoryClass kind) override {
    AllocatedTensor &tensor = live.at(number);
    use[tensor.kind] -= tensor.bytes;
    use[tensor.kind = kind] += tensor.bytes;
  }
  void run(const NodePlace &) override {
    if (use.getTotal() > peak.getTotal())
      peak = use;
  }

  MemoryUse use, peak;
  CachingAllocator allocator{tinyRules};

private:
  std::map<unsigned, int64_t> addresses;
  std::map<unsigned, AllocatedTensor> live;
};

/// Tensor by tensor a stage comes to the peak of the report, class by class, and keeps what is static.
void RandomTracesTest::checkAllocations() {
  for (const StageMemory &held : report.memory.stages) {
    AllocationSum sum;
    walkAllocations(*c->program, c->program->stages[held.stage], held.coordinates, memory.get(), c->diags, sum);
    for (unsigned kind = 0; kind < numMemoryClasses; ++kind)
      EXPECT_EQ(int64_t(sum.peak.bytes[kind]), int64_t(held.peak.bytes[kind]))
          << getName(MemoryClass(kind)).str() << " on stage " << held.stage << " at " << held.describeMoment();
    for (MemoryClass kind : {MemoryClass::Activations, MemoryClass::Temporaries, MemoryClass::Buffers})
      EXPECT_EQ(int64_t(sum.use[kind]), 0) << getName(kind).str() << " is left on stage " << held.stage;
    AllocatorUse use = simulateAllocator(*c->program, held, memory.get(), tinyRules, 0, c->diags);
    EXPECT_EQ(int64_t(use.allocated), sum.allocator.getPeakAllocated());
    EXPECT_EQ(int64_t(use.reserved), sum.allocator.getPeakReserved());
    EXPECT_GE(use.allocated, held.peak.getTotal());
  }
}

TEST_F(RandomTracesTest, PeakAndTimeAreThoseOfTheTraces) {
  unsigned numSlow = 0, numBlocking = 0;
  forEachJob(500, [&] {
    for (const StageProgram &stage : c->program->stages)
      numBlocking +=
          llvm::any_of(stage.templates.front().items, [](const ProgramItem &item) { return item.isBlocking; });
    checkPeaks();
    checkAllocations();
    checkTime();
    // The same with a rank of the last axis that is half as fast again.
    const Mesh &mesh = c->graph->mesh;
    if (numSlow >= 200 || mesh.getAxes().empty())
      return;
    AxisId axis = mesh.getAxes().size() - 1;
    SlowRanks slow;
    slow.coordinates.emplace_back(axis, mesh[axis].size - 1);
    slow.factor = c->sizes.constant(Rational{3, 2});
    c->graph->slowRanks.push_back(slow);
    write(/*tracker=*/false);
    checkTime();
    ++numSlow;
  });
  EXPECT_GT(numSlow, 100u);
  EXPECT_GT(numBlocking, 30u) << "stages whose messages block";
  EXPECT_GT(numPartly, 20u) << "nodes that are filled in part";
}

} // namespace

/// With microbatches enough for most units to be of a kind that is known.
TEST_F(RandomTracesTest, PeakIsThatOfTheTracesWhereARuntimeKeepsMore) {
  keepsMore = true;
  unsigned numLarger = 0;
  forEachJob(500, [&] {
    checkPeaks();
    checkAllocations();
    for (const StageMemory &stage : accountMemory(*c->program, c->diags).stages)
      numLarger += stage.peak.getTotal() < report.memory.stages[stage.stage].peak.getTotal();
  });
  EXPECT_GT(numLarger, 400u);
}

TEST_F(RandomTracesTest, TimeGoesToTheSameAccounts) {
  unsigned numSlow = 0;
  forEachJob(
      500,
      [&] {
        checkReport();
        const Mesh &mesh = c->graph->mesh;
        if (numSlow >= 200 || mesh.getAxes().empty())
          return;
        AxisId axis = mesh.getAxes().size() - 1;
        SlowRanks slow;
        slow.coordinates.emplace_back(axis, mesh[axis].size - 1);
        slow.factor = c->sizes.constant(Rational{3, 2});
        c->graph->slowRanks.push_back(slow);
        checkReport();
        ++numSlow;
      },
      /*timesMicrobatches=*/8);
  EXPECT_GT(numSlow, 100u);
  EXPECT_LT(numUntimed, 50u);
}

TEST_F(RandomTracesTest, AreAsLargeAsMeasured) {
  unsigned numPairs = 0, numOthers = 0;
  forEachJob(
      500,
      [&] {
        auto havePairs = [](const StageProgram &stage) { return hasPairs(stage.units); };
        bool isPaired = llvm::any_of(c->program->stages, havePairs);
        if (!isPaired && ++numOthers > 50)
          return;
        numPairs += isPaired;
        EmitOptions options;
        options.directory = path("traces");
        options.force = true;
        options.tracker = (numPairs + numOthers) % 2;
        auto measured = measureTraces(*c->program, options, c->diags),
             written = emitTraces(*c->program, options, c->diags);
        ASSERT_TRUE(measured && written) << said;
        EXPECT_EQ(measured->bytes, written->bytes);
        EXPECT_EQ(measured->nodes, written->nodes);
      },
      /*timesMicrobatches=*/16);
  EXPECT_GT(numPairs, 10u);
}

TEST_F(RandomTracesTest, PartsSayWhatTheirRulesSay) {
  unsigned numApart = 0;
  auto readTraces = [&] {
    std::string bytes;
    for (int64_t rank = 0; rank < report.ranks; ++rank)
      if (auto file = llvm::MemoryBuffer::getFile(path("traces/workload." + llvm::Twine(rank) + ".et")))
        bytes += (*file)->getBuffer();
    return bytes;
  };
  forEachJob(200, [&] {
    std::string flat = readTraces();
    std::vector<std::string> apart = takeApart(lines, lines.size());
    numApart += apart != lines;
    ASSERT_TRUE(compile(apart)) << said << llvm::join(apart, "\n");
    EXPECT_TRUE(readTraces() == flat) << llvm::join(apart, "\n");
  });
  EXPECT_GT(numApart, 50u);
}
