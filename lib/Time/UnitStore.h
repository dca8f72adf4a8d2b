//===- UnitStore.h - compiled units of all classes of ranks ----*- C++ -*-===//
//
// Problem: the stages between the first and the last one run equal layers. The tasks of their units differ in nothing
// but in whom they send to, and need not be made, priced and charged for each stage and chunk.
//
//   stage 5   F0.2 = recv from 4, layers [37, 39), send to 6        made
//   stage 6   F0.2 = recv from 5, layers [39, 41), send to 7        the same unit; its ports are other channels
//
// Rule: templates are *alike* if they have the same items: the same ops, repeats with as many iterations (of repeats
// with cases the same ones), and messages of the same values; and if what they communicate with lies as they do on the
// network. What tasks of units of alike templates wait for follows from the relations of the unit (UnitCompiler.h), and
// from how far its iterations are from those of the units whose values it uses. So kinds of units are known by the
// number of alike templates, with these distances, and belong to no class.
//
//   ports     which channel, and which tags, messages of a template have: of each class its own
//
// Limits: a template is alike with no other one if its class is slow, or if it has permutes,
// collectives with other classes, or messages to other parts.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_TIME_UNITSTORE_H
#define STAGE_LIB_TIME_UNITSTORE_H

#include "CompiledUnit.h"
#include "Connections.h"
#include "StepWalk.h"
#include "UnitPattern.h"
#include "stage/Machine/Runtime.h"
#include "llvm/ADT/Hashing.h"
#include <map>
#include <unordered_map>

namespace stage {

/// The channel of a message of a template, and its tag in microbatch 0.
struct Port {
  unsigned channel;
  uint64_t tag;
};

/// A template of a class.
struct ClassTemplate {
  uint32_t alike = 0; ///< The same number: they are alike.
  /// Repeats of which it runs iterations, by their numbers, and the first one.
  llvm::SmallVector<std::pair<unsigned, int64_t>, 2> loops;
  std::vector<Port> ports;  ///< By message between stages, in their order.
  uint32_t secondPorts = 0; ///< Of a pair: where those of the second unit begin.
};

class UnitStore {
public:
  using Key = std::vector<uint32_t>;
  struct KeyHash {
    template <typename Key> size_t operator()(const Key &key) const {
      return llvm::hash_combine_range(key.begin(), key.end());
    }
  };
  /// Both must outlive this.
  UnitStore(Connections &connections, const Runtime &runtime) : connections(connections), runtime(runtime) {}

  /// Classes with one number have the same sizes, and are as fast.
  unsigned findSizes(unsigned classNumber, const RankClass &rankClass);
  /// `sizesOf`, `tasks`: of the class. `unit`: one of the template.
  ClassTemplate describe(unsigned classNumber, unsigned sizesOf, const ClassTasks &tasks, const PlacedUnit &unit);

  /// Of two units that run interleaved.
  ClassTemplate pairUp(const ClassTemplate &first, const ClassTemplate &second);

  /// The number of what tasks of an op, or of messages of a size, have in common; nothing if they have no price.
  std::optional<uint32_t> findFacts(const Task &task, unsigned environment, const GroupPlace &place, unsigned sizesOf,
                                    const std::optional<Rational> &slowness);
  const TaskFacts &getFacts(uint32_t number) const { return facts[number].facts; }
  Ticks getDuration(uint32_t number) const { return facts[number].duration; }
  uint32_t getNumFacts() const { return uint32_t(facts.size()); }
  std::pair<uint64_t, unsigned> getLaneKey(uint32_t number) const { return facts[number].lane; }
  /// Of a task, by its facts. Receives are on none.
  unsigned getLane(uint32_t number) const { return facts[number].laneNumber; }
  unsigned getNumLanes() const { return unsigned(laneNumbers.size()); }

  /// From now on prices are kept with what they were found from.
  void keepPrices() { keepsPrices = true; }
  /// Whether all prices that were kept are the same on another machine.
  bool hasSamePrices(const Machine &other) const;

  /// Everything priced so far lies inside the tables of the machine.
  bool isInsideTables() const { return insideTables; }
  /// Nobody says what some product reaches.
  bool isAssumed() const { return assumed; }

  std::unordered_map<Key, std::unique_ptr<CompiledUnit>, KeyHash> kinds;
  /// By the form of their relations.
  std::unordered_map<Key, std::vector<std::unique_ptr<UnitPattern>>, KeyHash> patterns;

  /// Whether some task of units of alike templates waits for what added to a gradient, if anything has. All do of which
  /// no unit has been made.
  bool asksForSums(uint32_t number) const {
    auto known = sums.find(number);
    return known == sums.end() || known->second;
  }
  void noteSums(uint32_t number, bool asks) { sums[number] |= asks; }

private:
  struct PricedFacts {
    TaskFacts facts;
    Ticks duration;
    std::pair<uint64_t, unsigned> lane;
    unsigned laneNumber;
  };
  /// A price, and what it was found from.
  struct KeptPrice {
    Task task; ///< Without names and edges.
    std::optional<Work> work;
    GroupPlace place;
    std::optional<Rational> slowness;
    Ticks duration;
  };
  /// What makes templates alike.
  using Signature = std::vector<uint64_t>;
  bool addItem(Signature &signature, unsigned classNumber, unsigned stage, const ProgramItem &item,
               const ClassTemplate &of);
  bool addCommunication(Signature &signature, unsigned classNumber, const Op &item, unsigned stage);
  void addPorts(ClassTemplate &result, Signature &signature, unsigned classNumber, const ClassTasks &tasks,
                const PlacedUnit &unit);
  uint64_t findPlace(const GroupPlace &place);
  void keepPrice(const Task &task, const GroupPlace &place, const std::optional<Rational> &slowness, Ticks duration);

  Connections &connections;
  const Runtime &runtime;
  std::vector<PricedFacts> facts;
  std::map<std::pair<uint64_t, unsigned>, unsigned> laneNumbers; ///< In the order of first use.
  /// By op, environment and kind of task, bytes, and place and sizes.
  std::map<std::tuple<const Op *, uint64_t, uint64_t, uint64_t>, uint32_t> factNumbers;
  std::unordered_map<Signature, uint32_t, KeyHash> alike;
  llvm::DenseMap<uint32_t, bool> sums;                           ///< By the number of alike templates.
  std::vector<GroupPlace> places;                                ///< Few.
  std::vector<decltype(RankClass::coordinates)> coordinates{{}}; ///< Of classes, each once.
  /// The collectives and permutes of an op and its bodies.
  llvm::DenseMap<const Op *, llvm::SmallVector<const Op *, 4>> communication;
  bool keepsPrices = false;
  std::vector<KeptPrice> prices;
  bool insideTables = true;
  bool assumed = false;
};

} // namespace stage

#endif // STAGE_LIB_TIME_UNITSTORE_H
