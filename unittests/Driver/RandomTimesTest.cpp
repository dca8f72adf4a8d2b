//===- RandomTimesTest.cpp - times of random jobs on random machines ------===//
//
// Of random jobs (RandomProgram), on machines and with runtimes that are random, too: networks of one to four levels
// whose nodes may end inside of groups, rates from where nothing counts but compute to where nothing counts but
// messages, slow ranks, launches, taxes of all kinds, copies to the host:
//
//   two clocks  the time of the program, and what each rank does in it, is that of the traces' timeline, to the tick
//   networks    twice the rate and half the latency of all levels never make a step longer (TIME has no such anomaly)
//   devices     faster compute and memory lengthen it at most by the taxes' share of the time that is saved, or, where
//               launches take time, by all of it and the taxes' share
//   bound       no step is shorter than its lower bound (stage/Time/StepBound.h), which is not 0
//   classes     all ranks of a class have groups and neighbours of the same classes, in the same places on the network;
//               the timeline above takes durations from the traces, which have those of the class
//   traces      two machines and two runtimes, named by the job, change no byte of a trace but its durations (law L15)
//
// STAGE_RANDOM_JOBS=1500 runs so many jobs of each, STAGE_RANDOM_SEED=417 that one alone.
//
//===----------------------------------------------------------------------===//
#include "Random.h"
#include "RandomProgram.h"
#include "et_def.pb.h"
#include "stage/CodeGen/Emit.h"
#include "stage/Compiler/Session.h"
#include "stage/Tasks/Groups.h"
#include "stage/Time/RankClasses.h"
#include "stage/Time/StepBound.h"
#include "stage/Time/StepTime.h"
#include "stage/Time/TaskDurations.h"
#include "stage/Trace/Timeline.h"
#include "stage/Trace/TraceReader.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <cstdlib>

using namespace stage;
using namespace stage::trace;

namespace {
/// What ranks do, to the tick.
std::string describe(const StepActivity &activity) {
  std::map<uint32_t, RankActivity> byRank;
  for (const auto &[ranks, sums] : activity.ranks)
    for (uint32_t rank : ranks)
      byRank[rank] = sums;
  std::string text = std::to_string(activity.step) + " on " + std::to_string(activity.numRanks) + "\n";
  for (const auto &[rank, sums] : byRank) {
    text += std::to_string(rank) + ":";
    for (Ticks ticks : {sums.compute, sums.communication, sums.exposed, sums.copies, sums.copiesAlone, sums.idle})
      text += " " + std::to_string(ticks);
    text += "\n";
  }
  return text;
}

class RandomTimesTest : public ::testing::Test {
protected:
  void SetUp() override { ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("random-times", root)); }
  void TearDown() override { llvm::sys::fs::remove_directories(root); }

  std::string path(const llvm::Twine &name) const { return (root + "/" + name).str(); }

  /// Calls `check` with jobs until so many have been compiled.
  void forEachJob(unsigned few, llvm::function_ref<void(Random &)> check) {
    const char *only = std::getenv("STAGE_RANDOM_SEED"), *more = std::getenv("STAGE_RANDOM_JOBS");
    unsigned wanted = more ? unsigned(std::stoul(more)) : few, compiled = 0;
    for (uint64_t seed = only ? std::stoull(only) : 1; compiled < wanted && !HasFailure(); ++seed) {
      lines = makeRandomProgram(seed);
      if (compile(lines)) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ":\n" + llvm::join(lines, "\n"));
        ++compiled;
        Random random(seed);
        check(random);
      }
      if (only)
        return;
      ASSERT_LT(seed, 20 * uint64_t(wanted)) << "most jobs are refused";
    }
  }

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
    return runFrontEnd(*c, Plan()) && runMiddle(*c);
  }

  /// A rank of some axis, or of two, is slow in one of two jobs.
  void slowDown(Random &random) {
    const Mesh &mesh = c->graph->mesh;
    if (mesh.getAxes().empty() || random.chance(50))
      return;
    SlowRanks slow;
    AxisId axis = random.below(unsigned(mesh.getAxes().size()));
    slow.coordinates.emplace_back(axis, random.below(unsigned(mesh[axis].size)));
    slow.factor = c->sizes.constant(Rational{int64_t(9 + random.below(12)), 8});
    c->graph->slowRanks.push_back(slow);
  }

  static MachineRates makeMachine(Random &random) {
    auto pick = [&](std::initializer_list<int64_t> values) { return random.pick(std::vector<int64_t>(values)); };
    MachineRates rates;
    rates.name = "random";
    rates.type = "bf16";
    int64_t flops = pick({1'000'000'000, 100'000'000'000, 989'000'000'000'000});
    rates.flops = flops;
    for (DType type : {DType::F32, DType::BF16}) {
      rates.types[size_t(type)].flops = flops;
      rates.types[size_t(type)].contraction.share = Rational{pick({3, 7, 10}), 10};
    }
    rates.memory = pick({100'000'000, 3'350'000'000, 3'350'000'000'000});
    rates.memoryEfficiency = {4, 5};
    rates.kernelLeast = pick({0, 0, 4'000'000});
    rates.copy = pick({20'000'000, 1'000'000'000});
    rates.hostFlops = pick({10'000'000, 1'000'000'000});
    rates.hostMemory = pick({100'000'000, 1'000'000'000});
    int64_t ranks = 1, numLevels = 1 + random.below(4);
    for (int64_t level = 0; level < numLevels; ++level) {
      ranks *= level + 1 == numLevels ? 1024 : pick({1, 2, 2, 3, 4});
      MachineLevel &each = rates.levels.emplace_back();
      each.name = "level" + std::to_string(level);
      each.ranks = ranks;
      each.rate = pick({3'000'000, 50'000'000, 450'000'000, 450'000'000'000});
      each.efficiency = {7, 10};
      each.hop = pick({0, 3'000, 300'001, 3'000'000});
      each.base = pick({0, 0, 1'000'003});
    }
    return rates;
  }

  static Runtime makeRuntime(Random &random) {
    Runtime runtime;
    if (random.chance(25))
      return runtime;
    runtime.name = "random";
    auto tax = [&] { return random.chance(40) ? Rational() : *Rational::make(1 + random.below(20), 20); };
    runtime.launch = random.pick(std::vector<Ticks>{0, 2'000, 3'000'000});
    runtime.stepHost = random.pick(std::vector<Ticks>{0, 0, 7'000, 5'000'000});
    runtime.taxOfCollectives = tax();
    runtime.taxOfSends = tax();
    runtime.taxOfCopies = tax();
    if (random.chance(30))
      runtime.taxOfCommunication = tax();
    return runtime;
  }

  StepActivity findTime(const MachineRates &rates, const Runtime &runtime) {
    std::optional<StepActivity> step =
        findStepTime(TimedPart{c->program.get(), rates, runtime}, TaskOptions(), c->diags);
    EXPECT_TRUE(step) << said;
    if (!step)
      return StepActivity();
    Ticks least = StepBound(*c->program, rates, runtime, c->diags).find();
    EXPECT_LE(least, step->step) << said;
    EXPECT_GT(least, 0) << said;
    return *step;
  }

  std::unique_ptr<TaskDurations> findDurations(const MachineRates &rates, const Runtime &runtime) {
    std::unique_ptr<TaskDurations> durations =
        TaskDurations::find(TimedPart{c->program.get(), rates, runtime}, TaskOptions(), c->diags);
    EXPECT_TRUE(durations) << said;
    return durations;
  }

  void write(const TaskDurations *durations) {
    EmitOptions emit;
    emit.directory = path("traces");
    emit.force = true;
    emit.durations = durations;
    EXPECT_TRUE(emitTraces(*c->program, emit, c->diags)) << said;
    EXPECT_FALSE(c->diags.hasErrors()) << said;
  }

  /// All files of the traces; without what says how long nodes take, and on which level, if they say it.
  std::string readTraces(bool withoutTimes) {
    std::string bytes;
    for (int64_t rank = 0; rank < c->graph->mesh.getNumRanks(); ++rank) {
      std::string name = path("traces/workload." + llvm::Twine(rank) + ".et");
      if (withoutTimes)
        bytes += readWithoutTimes(name);
      else if (auto file = llvm::MemoryBuffer::getFile(name))
        bytes += (*file)->getBuffer();
    }
    if (auto file = llvm::MemoryBuffer::getFile(path("traces/comm_group.json")))
      bytes += (*file)->getBuffer();
    return bytes;
  }

  std::string readWithoutTimes(const std::string &name) {
    static const std::set<std::string> ofTimes = {
        "duration_picos",  "level",          "unit",     "machine",  "runtime",          "launch_picos",
        "step_host_picos", "tax_collective", "tax_send", "tax_copy", "tax_communication"};
    auto strip = [](auto &attributes) {
      for (int i = attributes.size(); i-- > 0;)
        if (ofTimes.count(attributes[i].name()))
          attributes.DeleteSubrange(i, 1);
    };
    std::string bytes;
    auto reader = TraceReader::open(name, c->diags);
    ChakraProtoMsg::GlobalMetadata metadata;
    EXPECT_TRUE(reader && reader->readMetadata(metadata) == TraceReader::Status::Read) << said;
    strip(*metadata.mutable_attr());
    bytes += metadata.SerializeAsString();
    ChakraProtoMsg::Node node;
    while (reader && reader->readNode(node) == TraceReader::Status::Read) {
      strip(*node.mutable_attr());
      node.clear_duration_micros();
      bytes += node.SerializeAsString();
    }
    return bytes;
  }

  llvm::SmallString<128> root;
  std::string said;
  llvm::raw_string_ostream messages{said};
  DiagnosticPrinter printer{messages};
  std::unique_ptr<Session> session;
  std::unique_ptr<Compilation> c;
  std::vector<std::string> lines;
};

TEST_F(RandomTimesTest, TwoClocksAgreeToTheTick) {
  unsigned numTaxed = 0, numSlow = 0, numWithCopies = 0, numExposed = 0, numIdle = 0;
  forEachJob(120, [&](Random &random) {
    slowDown(random);
    MachineRates rates = makeMachine(random);
    Runtime runtime = makeRuntime(random);
    std::unique_ptr<TaskDurations> durations = findDurations(rates, runtime);
    ASSERT_TRUE(durations);
    write(durations.get());
    std::optional<TimelineResult> traces = runTimeline(path("traces"), TimelineOptions(), c->diags);
    ASSERT_TRUE(traces) << said;
    StepActivity program = findTime(rates, runtime);
    EXPECT_EQ(describe(program), describe(traces->activity));
    numTaxed += describe(program) != describe(findTime(rates, Runtime()));
    numSlow += !c->graph->slowRanks.empty();
    const RankActivity &first = program.ranks.front().second;
    numWithCopies += first.copies > 0;
    numExposed += first.exposed > 0 && first.compute > 0;
    numIdle += first.idle > 0;
  });
  EXPECT_GT(numTaxed, 40u);
  EXPECT_GT(numSlow, 40u);
  EXPECT_GT(numWithCopies, 15u);
  EXPECT_GT(numExposed, 60u);
  EXPECT_GT(numIdle, 25u);
}

/// Says how a rank and its peer `steps` coordinates further along an axis lie, and of which class the peer is.
static std::pair<GroupPlace, unsigned> describeNeighbour(const RankClasses &classes, const Mesh &mesh,
                                                         const Machine &machine, int64_t rank, AxisId axis,
                                                         int64_t steps) {
  int64_t stride = mesh.getStride(axis), size = mesh[axis].size, own = mesh.getCoordinate(rank, axis);
  int64_t peer = rank + ((own + steps) % size - own) * stride;
  return {machine.findPlace({rank, peer}), classes.find(peer)};
}

TEST_F(RandomTimesTest, RanksOfAClassLieAlike) {
  unsigned numMerged = 0, numCut = 0;
  forEachJob(300, [&](Random &random) {
    slowDown(random);
    const Mesh &mesh = c->graph->mesh;
    Machine machine =
        random.chance(50) ? Machine(makeMachine(random)) : Machine(makeMachine(random)).usedBy(mesh.getNumRanks());
    RankClasses classes(*c->program, machine.getBlockSizes(), /*apart=*/false);
    GroupTable groups(*c->program);
    AxisSet neighbours = c->graph->pipeline.axis ? AxisSet(1) << *c->graph->pipeline.axis : 0;
    c->graph->walk([&](Op &op) {
      if (op.kind == OpKind::Permute)
        for (AxisId axis : op.axes)
          neighbours |= AxisSet(1) << axis;
    });
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
      int64_t first = classes.getRepresentative(classes.find(rank));
      for (unsigned kind = 0; kind < groups.getNumKinds(); ++kind)
        ASSERT_TRUE(machine.findPlace(classes.listMembers(groups.getKind(kind), rank)) ==
                    machine.findPlace(classes.listMembers(groups.getKind(kind), first)))
            << rank << " as " << first;
      for (AxisId axis : toList(neighbours))
        for (int64_t steps = 1; steps < mesh[axis].size; ++steps)
          ASSERT_TRUE(describeNeighbour(classes, mesh, machine, rank, axis, steps) ==
                      describeNeighbour(classes, mesh, machine, first, axis, steps))
              << rank << " as " << first;
      numMerged += rank != first;
    }
    numCut += !machine.getBlockSizes().empty() && classes.getNumClasses() > c->program->numStages;
  });
  EXPECT_GT(numMerged, 300u);
  EXPECT_GT(numCut, 30u);
}

/// 5 choices of a data rank come to 6 experts on its two tensor ranks: one of these gets 3, the other one 2. Of 6
/// choices both get 3, though sizes name coordinates in the same way. Times are those of the traces.
TEST_F(RandomTimesTest, RanksWithEquallyManySlotsAreAlike) {
  for (auto [length, numClasses] : {std::pair("5", 8u), std::pair("6", 1u)}) {
    std::vector<std::string> job = {
        "import std.moe (Mixtral);",
        "import std.configs (mixtral_8x7b);",
        "import std.parallel (megatron_moe);",
        "job j {",
        "  model = Mixtral(mixtral_8x7b, L = 2, D = 64, H = 4, KV = 2, E = 16, X = 6, K = 1, FE = 96, V = 128);",
        "  precision = bf16_mixed;",
        "  step = train(B = 8, S = " + std::string(length) + ", microbatch = 1, optimizer = adamw);",
        "  strategy = megatron_moe(pp = 1, dp = 4, tp = 2, ep = 2, etp = 1, sequence_parallel = false, zero = 1);",
        "}"};
    ASSERT_TRUE(compile(job)) << said;
    EXPECT_EQ(RankClasses(*c->program, {}, /*apart=*/false).getNumClasses(), numClasses);
    Random random(1);
    MachineRates rates = makeMachine(random);
    std::unique_ptr<TaskDurations> durations = findDurations(rates, Runtime());
    ASSERT_TRUE(durations);
    write(durations.get());
    std::optional<TimelineResult> traces = runTimeline(path("traces"), TimelineOptions(), c->diags);
    ASSERT_TRUE(traces) << said;
    EXPECT_EQ(describe(findTime(rates, Runtime())), describe(traces->activity));
    EmitOptions options;
    options.directory = path("traces");
    options.force = true;
    auto measured = measureTraces(*c->program, options, c->diags), written = emitTraces(*c->program, options, c->diags);
    ASSERT_TRUE(measured && written) << said;
    EXPECT_EQ(measured->bytes, written->bytes);
  }
}

TEST_F(RandomTimesTest, FasterNetworksAreNeverSlower) {
  unsigned numFaster = 0;
  forEachJob(120, [&](Random &random) {
    slowDown(random);
    MachineRates rates = makeMachine(random);
    Runtime runtime = makeRuntime(random);
    Ticks before = findTime(rates, runtime).step;
    for (MachineLevel &level : rates.levels) {
      level.efficiency = {1, 2}; // of twice the rate 5/7 are left
      level.hop /= 2;
      level.base /= 2;
    }
    Ticks slower = findTime(rates, runtime).step;
    for (MachineLevel &level : rates.levels)
      level.efficiency = {1, 1};
    Ticks after = findTime(rates, runtime).step;
    EXPECT_LE(after, before);
    EXPECT_LE(after, slower);
    numFaster += after < before;
  });
  EXPECT_GT(numFaster, 60u);
}

TEST_F(RandomTimesTest, FasterDevicesCostTheTaxOfWhatTheySaveAtMost) {
  unsigned numFaster = 0;
  forEachJob(120, [&](Random &random) {
    slowDown(random);
    MachineRates rates = makeMachine(random);
    Runtime runtime = makeRuntime(random);
    runtime.taxOfCommunication = Rational(); // each of many collectives would pay for one kernel
    MachineRates faster = rates;
    faster.memoryEfficiency = {1, 1};
    faster.kernelLeast /= 2;
    for (DType type : {DType::F32, DType::BF16})
      faster.types[size_t(type)].contraction.share = Rational{1, 1};
    std::unique_ptr<TaskDurations> slow = findDurations(rates, runtime), fast = findDurations(faster, runtime);
    ASSERT_TRUE(slow && fast);
    // Prices of communication and of copies are the same. A path may go over all classes of ranks.
    Ticks saved = 0, roundings = 0;
    for (unsigned number = 0; number < slow->getNumClasses(); ++number)
      for (size_t id = 0; id < slow->getTasks(number).size(); ++id) {
        Ticks less = slow->get(number, id).alone - fast->get(number, id).alone;
        EXPECT_GE(less, 0);
        saved += less;
        ++roundings;
      }
    // What the kernels of a unit save, its launches add to the last one, which may wait for a message in between.
    Rational share = *runtime.taxOfCollectives.add(*runtime.taxOfSends.add(runtime.taxOfCopies));
    if (runtime.launch)
      share = *share.add(Rational{1, 1});
    Ticks before = findTime(rates, runtime).step, after = findTime(faster, runtime).step;
    EXPECT_LE(double(after), double(before) + share.toDouble() * double(saved) + double(saved ? roundings : 0));
    numFaster += after < before;
  });
  EXPECT_GT(numFaster, 60u);
}

TEST_F(RandomTimesTest, MachineAndRuntimeChangeDurationsAlone) {
  unsigned numDifferent = 0;
  forEachJob(60, [&](Random &random) {
    std::vector<std::string> plain = lines;
    MachineRates rates = makeMachine(random), others = makeMachine(random);
    Runtime runtime = makeRuntime(random), other = makeRuntime(random);
    write(nullptr);
    std::string expected = readTraces(/*withoutTimes=*/false), stripped = readTraces(/*withoutTimes=*/true);
    std::unique_ptr<TaskDurations> first = findDurations(rates, runtime), second = findDurations(others, other);
    ASSERT_TRUE(first && second);
    write(first.get());
    std::string bytes = readTraces(/*withoutTimes=*/false);
    EXPECT_TRUE(readTraces(/*withoutTimes=*/true) == stripped);
    write(second.get());
    numDifferent += readTraces(/*withoutTimes=*/false) != bytes;
    EXPECT_TRUE(readTraces(/*withoutTimes=*/true) == stripped);
    // No pass may ask for the machine that the job names.
    for (const char *names : {"machine = h100; runtime = pytorch;", "machine = what_if; runtime = megatron_2;"}) {
      std::vector<std::string> named = plain;
      named.insert(named.begin(), {"import std.machines;", "import std.runtimes;"});
      auto job = llvm::find(named, "job j {");
      ASSERT_NE(job, named.end());
      named.insert(job + 1, std::string("  ") + names);
      ASSERT_TRUE(compile(named)) << said;
      write(nullptr);
      EXPECT_TRUE(readTraces(/*withoutTimes=*/false) == expected) << names;
    }
  });
  EXPECT_GT(numDifferent, 30u);
}
} // namespace
