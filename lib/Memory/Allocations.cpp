//===- Allocations.cpp - each tensor of a step, in order ------------------===//
//
// Algorithm: each chain of units is simulated once per environment, every iteration of every repeat. A microbatch of it
// is an instance, which knows by which numbers its tensors are allocated. Units are gone through in the order of the
// stage; at each node the tensors that begin there are allocated, and behind it those are freed that end there. Nodes
// of a pair of units take turns (stage/Walk/PairOrder.h).
//
// Units that only repeat are left out: where the state behind a unit is that behind an earlier one, with microbatches
// counted on, and the units behind it do what the units between the two did, so is every state that follows. States are
// compared behind units of one kind.
//
//===----------------------------------------------------------------------===//
#include "stage/Memory/Allocations.h"
#include "stage/Memory/StaticMemory.h"
#include "stage/Walk/Arrivals.h"
#include "stage/Walk/PairOrder.h"
#include "stage/Walk/Receivers.h"
#include "llvm/ADT/Hashing.h"
#include <map>

using namespace stage;

std::string stage::describe(const AllocatedTensor &tensor) {
  std::string name = tensor.value ? describe(*tensor.value) : tensor.name.str();
  return tensor.iteration < 0 ? name : name + ", iteration " + std::to_string(tensor.iteration);
}

namespace {
class AllocationWalk {
public:
  AllocationWalk(const Program &program, const StageProgram &stage, const SizeBinding &coordinates,
                 const RuntimeMemory *memory, DiagnosticEngine &diags, AllocationListener &listener)
      : program(program), graph(*program.graph), stage(stage), coordinates(coordinates), memory(memory), diags(diags),
        listener(listener), lifetimes(graph), kinds(stage.listChains()) {}

  void run() {
    allocateStatic();
    const Arrivals arrivals(graph, stage);
    loadedAt.resize(stage.units.size());
    postedAt.resize(stage.units.size());
    for (size_t i = 0; i < stage.units.size(); ++i) {
      ++numUnits[getKey(i)];
      loadedAt[arrivals.getLoader(i).value_or(0)].push_back(i);
      postedAt[arrivals.getPost(i)].push_back(i);
    }
    receivers = findReceivers(program, stage);
    std::map<uint64_t, size_t> states; // behind which unit
    // Units that repeat are mostly those in the middle, and each round of them has the kind of one.
    size_t middle = getPairBegin(stage.units, stage.units.size() / 2);
    const Key compared = stage.units.empty() ? Key() : getKey(getPairEnd(stage.units, middle) - 1);
    for (size_t i = 0; i < stage.units.size(); ++i) {
      size_t begin = i, end = getPairEnd(stage.units, begin);
      for (i = begin; i < end; ++i) {
        for (size_t later : loadedAt[i])
          allocate(later, [](const UnitSimulator &, const UnitTensor &tensor) { return tensor.isInput; });
        for (size_t later : postedAt[i])
          allocate(later, [](const UnitSimulator &of, const UnitTensor &tensor) { return of.isReceived(tensor); });
      }
      runStep(begin, end);
      i = end - 1;
      std::optional<uint64_t> state = getKey(i) == compared ? hashState(i) : std::nullopt;
      if (!state)
        continue;
      auto [known, isNew] = states.try_emplace(*state, i);
      if (!isNew)
        i = leaveOut(known->second, i);
      if (!isNew)
        states.clear();
    }
  }

private:
  /// Of a chain and an environment.
  using Key = std::pair<unsigned, unsigned>;
  static constexpr unsigned none = ~0u;

  struct Chain {
    Chain(const UnitChain &units, LocalBytes of) : units(units), bytes(std::move(of)) {}
    UnitChain units;
    LocalBytes bytes;
    std::unique_ptr<UnitSimulator> simulator;
    std::vector<unsigned> byFirst, byLast; ///< Tensors of the device that are there at all.
  };
  /// A microbatch of a chain: by tensor, its number.
  using Instance = std::vector<unsigned>;

  /// Behind a unit: microbatches are counted from its own.
  std::optional<uint64_t> hashState(size_t position) {
    std::vector<unsigned> live;
    llvm::hash_code hash = 0;
    for (const auto &[name, instance] : instances) {
      if (llvm::all_of(instance, [](unsigned number) { return number == none; }))
        continue; // of the step, whose microbatch is always the same
      hash = llvm::hash_combine(hash, name.first, int(name.second) - int(stage.units[position].microbatch));
      for (unsigned which = 0; which < instance.size(); ++which)
        if (instance[which] != none) {
          hash = llvm::hash_combine(hash, which);
          live.push_back(instance[which]);
        }
    }
    std::optional<uint64_t> state = listener.hashState(live);
    return state ? std::optional<uint64_t>(llvm::hash_combine(hash, *state, getKey(position))) : std::nullopt;
  }

  /// Whether a unit does what another one does before it, for microbatches that are `shift` further on.
  bool isAgain(size_t before, size_t position, int shift) const {
    auto isAlike = [&](size_t a, size_t b) {
      return getKey(a) == getKey(b) && stage.units[a].overlapsNext == stage.units[b].overlapsNext &&
             int(stage.units[b].microbatch) - int(stage.units[a].microbatch) == shift;
    };
    size_t period = position - before;
    auto areAlike = [&](const std::vector<size_t> &a, const std::vector<size_t> &b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                        [&](size_t x, size_t y) { return x + period == y && isAlike(x, y); });
    };
    auto a = receivers.find(before), b = receivers.find(position);
    bool hands = a != receivers.end();
    return isAlike(before, position) && areAlike(loadedAt[before], loadedAt[position]) &&
           areAlike(postedAt[before], postedAt[position]) && hands == (b != receivers.end()) &&
           (!hands || (a->second + period == b->second && isAlike(a->second, b->second)));
  }

  /// States are equal behind two units. Returns the last unit of those behind the second that repeat whole periods.
  size_t leaveOut(size_t before, size_t position) {
    size_t period = position - before, end = position + 1;
    int shift = int(stage.units[position].microbatch) - int(stage.units[before].microbatch);
    while (end < stage.units.size() && isAgain(end - period, end, shift))
      ++end;
    size_t times = (end - position - 1) / period;
    if (!times)
      return position;
    for (size_t i = position + 1; i <= position + times * period; ++i)
      --numUnits[getKey(i)];
    decltype(instances) moved;
    for (auto &[name, instance] : instances)
      moved[{name.first, name.second + unsigned(int(times) * shift)}] = std::move(instance);
    instances = std::move(moved);
    return position + times * period;
  }

  Key getKey(size_t position) const {
    return {kinds.ofUnit[position], graph.pipeline.environments.getAlike(stage.units[position].environment)};
  }

  Chain &getChain(size_t position) {
    Key key = getKey(position);
    std::unique_ptr<Chain> &chain = chains[key];
    if (chain)
      return *chain;
    chain = std::make_unique<Chain>(kinds.all[key.first], LocalBytes(graph, diags, key.second, coordinates));
    chain->simulator = std::make_unique<UnitSimulator>(program, lifetimes.get(chain->units), chain->bytes,
                                                       /*folds=*/false, memory);
    const UnitSimulator &simulator = *chain->simulator;
    chain->simulator->run(chain->units);
    for (unsigned number = 0; number < simulator.getNumTensors(); ++number)
      if (const UnitTensor &tensor = simulator.getTensor(number);
          tensor.last >= 0 && tensor.size > 0 && tensor.maker->type.space == MemorySpace::Device)
        chain->byFirst.push_back(number);
    chain->byLast = chain->byFirst;
    llvm::stable_sort(chain->byFirst, [&](unsigned a, unsigned b) {
      return simulator.getTensor(a).first < simulator.getTensor(b).first;
    });
    llvm::stable_sort(chain->byLast, [&](unsigned a, unsigned b) {
      return simulator.getTensor(a).last < simulator.getTensor(b).last;
    });
    return *chain;
  }

  unsigned getPlace(size_t position, const Chain &chain) const {
    auto isOfKind = [&](const UnitTemplate *unit) { return unit->kind == stage.units[position].kind; };
    return llvm::find_if(chain.units, isOfKind) - chain.units.begin();
  }

  Instance &getInstance(size_t position, const Chain &chain) {
    Instance &instance = instances[{getKey(position), stage.units[position].microbatch}];
    if (instance.empty())
      instance.assign(chain.simulator->getNumTensors(), none);
    return instance;
  }

  unsigned takeNumber() {
    if (freed.empty())
      return numNumbers++;
    unsigned number = freed.back();
    freed.pop_back();
    return number;
  }

  void allocate(const Chain &chain, Instance &instance, unsigned which, MemoryClass kind) {
    const UnitTensor &tensor = chain.simulator->getTensor(which);
    instance[which] = takeNumber();
    listener.allocate(instance[which], {tensor.value, "", kind, tensor.size, tensor.iteration});
  }

  /// What is there before a unit begins.
  void allocate(size_t position, llvm::function_ref<bool(const UnitSimulator &, const UnitTensor &)> isWanted) {
    Chain &chain = getChain(position);
    Instance &instance = getInstance(position, chain);
    unsigned place = getPlace(position, chain);
    for (unsigned which : chain.byFirst)
      if (const UnitTensor &tensor = chain.simulator->getTensor(which);
          tensor.unit == place && isWanted(*chain.simulator, tensor))
        allocate(chain, instance, which,
                 chain.simulator->isReceived(tensor) ? MemoryClass::Buffers : MemoryClass(tensor.kind));
  }

  /// A unit while it runs.
  class RunningUnit {
  public:
    RunningUnit(AllocationWalk &walk, size_t position)
        : walk(walk), position(position), chain(walk.getChain(position)), simulator(*chain.simulator),
          instance(walk.getInstance(position, chain)), place(walk.getPlace(position, chain)),
          first(simulator.getFirstNode(place)), node(first), end(simulator.getFirstNode(place + 1)) {
      nextFirst = llvm::partition_point(chain.byFirst,
                                        [&](unsigned which) { return simulator.getTensor(which).first < first; });
      nextLast = llvm::partition_point(chain.byLast,
                                       [&](unsigned which) { return simulator.getTensor(which).last < int(first); });
      for (unsigned which : chain.byFirst)
        if (const UnitTensor &tensor = simulator.getTensor(which);
            tensor.unit == place && simulator.isReceived(tensor) && tensor.kind != MemoryClass::Buffers)
          walk.listener.reclassify(instance[which], tensor.kind);
    }

    /// The nodes before a position in the unit that have not run.
    void runUpTo(uint64_t until) {
      for (; node - first < until; ++node) {
        for (; nextFirst != chain.byFirst.end() && simulator.getTensor(*nextFirst).first == node; ++nextFirst)
          if (instance[*nextFirst] == none)
            walk.allocate(chain, instance, *nextFirst, simulator.getTensor(*nextFirst).kind);
        walk.listener.run({position, node - first, simulator.getOp(node), simulator.getIterationOf(node)});
        for (; nextLast != chain.byLast.end() && simulator.getTensor(*nextLast).last == int(node); ++nextLast) {
          walk.listener.free(instance[*nextLast]);
          walk.freed.push_back(std::exchange(instance[*nextLast], none));
        }
      }
      if (node == end && !std::exchange(hasEnded, true))
        walk.handOn(position);
    }
    void run() { runUpTo(end - first); }
    llvm::ArrayRef<ProgramItem> getItems() const { return chain.units[place]->items; }

  private:
    AllocationWalk &walk;
    size_t position;
    Chain &chain;
    const UnitSimulator &simulator;
    Instance &instance;
    unsigned place, first, node, end;
    std::vector<unsigned>::const_iterator nextFirst, nextLast;
    bool hasEnded = false;
  };

  /// A unit, or a pair of them.
  void runStep(size_t begin, size_t end) {
    if (end == begin + 1) {
      RunningUnit(*this, begin).run();
    } else {
      RunningUnit units[] = {{*this, begin}, {*this, begin + 1}};
      const PairOrder order(graph, units[0].getItems(), units[1].getItems());
      for (const PairOrder::Turn &turn : order.getTurns())
        units[turn.unit].runUpTo(turn.end);
      for (RunningUnit &unit : units)
        unit.run();
    }
    for (size_t position = begin; position < end; ++position) {
      Chain &chain = getChain(position);
      if (getPlace(position, chain) + 1 == chain.units.size())
        instances.erase({getKey(position), stage.units[position].microbatch});
    }
    for (size_t position = begin; position < end; ++position)
      if (--numUnits[getKey(position)] == 0)
        chains.erase(getKey(position)); // a server has a hundred thousand environments
  }

  void handOn(size_t position) {
    if (auto receiver = receivers.find(position); receiver != receivers.end())
      allocate(receiver->second, [](const UnitSimulator &, const UnitTensor &tensor) { return tensor.isHandedIn; });
  }

  void allocateStatic() {
    LocalBytes bytes(graph, diags, /*environment=*/0, coordinates);
    for (const StaticValue &value : listStatic(program, stage, bytes, memory))
      for (int64_t copy = 0; copy < value.copies && value.bytes && value.space == MemorySpace::Device; ++copy)
        listener.allocate(takeNumber(),
                          {value.value, value.name, value.kind, int64_t(value.bytes / value.copies), /*iteration=*/-1});
  }

  const Program &program;
  Graph &graph;
  const StageProgram &stage;
  const SizeBinding &coordinates;
  const RuntimeMemory *memory;
  DiagnosticEngine &diags;
  AllocationListener &listener;
  ChainLifetimes lifetimes;
  UnitChains kinds;
  std::vector<std::vector<size_t>> loadedAt, postedAt; ///< By unit: the units whose inputs and messages it brings.
  llvm::DenseMap<size_t, size_t> receivers;
  std::map<Key, unsigned> numUnits; ///< That are still to run.
  std::map<Key, std::unique_ptr<Chain>> chains;
  std::map<std::pair<Key, unsigned>, Instance> instances; ///< By microbatch.
  std::vector<unsigned> freed;                            ///< Numbers.
  unsigned numNumbers = 0;
};
} // namespace

void stage::walkAllocations(const Program &program, const StageProgram &stage, const SizeBinding &coordinates,
                            const RuntimeMemory *memory, DiagnosticEngine &diags, AllocationListener &listener) {
  AllocationWalk(program, stage, coordinates, memory, diags, listener).run();
}
