//===- FoldedTasks.cpp - how long the tasks of equal rounds are -----------===//
#include "stage/Tasks/FoldedTasks.h"
#include "TaskWalk.h"
#include "stage/Support/Digits.h"

using namespace stage;

void RoundSamples::begin(Sample sample) {
  current = sample;
  numbers[sample].clear();
  shapes[sample].clear();
  if (sample == First)
    nodes.clear();
}

void RoundSamples::add(const Task &node, int64_t iteration) {
  size_t digits = node.name.empty() ? 0 : getDecimalSize(iteration);
  assert(!node.tag.isSlot() && node.name.size() >= digits);
  std::vector<int64_t> &of = numbers[current];
  of.insert(of.end(), {int64_t(node.id), int64_t(node.tag.resolve({})), iteration});
  std::vector<uint64_t> &shape = shapes[current];
  size_t numDeps = node.data.size() + node.order.size();
  shape.insert(shape.end(), {uint64_t(node.kind), node.name.size() - digits, numDeps});
  // Both lists are in order, and so are they as one, in which none of the one may pass one of the other.
  llvm::ArrayRef<uint64_t> data = node.data, control = node.order;
  while (!data.empty() || !control.empty()) {
    bool isData = control.empty() || (!data.empty() && data.front() < control.front());
    llvm::ArrayRef<uint64_t> &list = isData ? data : control;
    of.push_back(int64_t(list.front()));
    shape.push_back(isData);
    list = list.drop_front();
  }
  if (current == First)
    nodes.push_back({node, node.name.size() - digits, numDeps});
}

bool RoundSamples::areLinear(int64_t last) const {
  if (shapes[First] != shapes[Second] || shapes[First] != shapes[Last])
    return false;
  for (auto [first, second, end] : llvm::zip(numbers[First], numbers[Second], numbers[Last]))
    if (end - first != (second - first) * last)
      return false;
  return true;
}

/// The first round after `round` in which a number has more or fewer digits; those of a number are `base`'s.
static int64_t findNextWidth(int64_t first, int64_t slope, int64_t round, int64_t base) {
  int64_t value = first + slope * round;
  __int128 low = 1;
  while (low * base <= value)
    low *= base;
  if (slope > 0)
    return int64_t((low * base - first + slope - 1) / slope);
  bool isShortest = slope == 0 || low == 1; // 0 is as long as 1
  return isShortest ? std::numeric_limits<int64_t>::max() : int64_t((first - low) / -slope + 1);
}

void RoundSamples::count(int64_t from, int64_t to, llvm::function_ref<void(const Task &, uint64_t times)> visit) const {
  size_t place = 0, shapePlace = 0;
  std::string name;
  std::vector<uint64_t> data, control;
  for (const Node &node : nodes) {
    size_t numNumbers = NumFixed + node.numDeps;
    llvm::ArrayRef<int64_t> first = llvm::ArrayRef(numbers[First]).slice(place, numNumbers);
    llvm::ArrayRef<int64_t> second = llvm::ArrayRef(numbers[Second]).slice(place, numNumbers);
    llvm::ArrayRef<uint64_t> isData = llvm::ArrayRef(shapes[First]).slice(shapePlace + NumFixed, node.numDeps);
    place += numNumbers;
    shapePlace += NumFixed + node.numDeps;
    for (int64_t round = from, next; round < to; round = next) {
      next = to;
      auto getNumber = [&](size_t i) { return uint64_t(first[i] + (second[i] - first[i]) * round); };
      for (size_t i = 0; i < numNumbers; ++i)
        next = std::min(next, findNextWidth(first[i], second[i] - first[i], round, i == Iteration ? 10 : 128));
      data.clear();
      control.clear();
      for (size_t i = 0; i < node.numDeps; ++i)
        (isData[i] ? data : control).push_back(getNumber(NumFixed + i));
      Task fields = node.fields;
      fields.id = getNumber(Id);
      fields.tag = getNumber(Tag);
      // Of a name only the length counts.
      name.resize(fields.name.empty() ? 0 : node.nameLength + getDecimalSize(getNumber(Iteration)), '.');
      fields.name = name;
      fields.data = llvm::ArrayRef<uint64_t>(data);
      fields.order = llvm::ArrayRef<uint64_t>(control);
      visit(fields, uint64_t(next - round));
    }
  }
}

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

/// Lowers of equal rounds the first, the second and the last, in this order. Should they not be on a line, it goes back
/// to those between.
class ClassTasks::FoldedWalk : public TaskWalk {
public:
  /// `repeat` is told of rounds that are not lowered; null: `count` is given their tasks.
  FoldedWalk(ClassTasks &lowering, unsigned number, Sink sink, RoundSamples &samples, CountSink count,
             RepeatSink repeat)
      : TaskWalk(lowering, number, sink), samples(samples), count(count), repeat(repeat) {}

  /// The current iteration is of a round that is sampled.
  bool isSampled() const { return place == Place::First || place == Place::Second || place == Place::Last; }
  using TaskWalk::getIteration;

private:
  enum class Place : uint8_t { Outside, First, Second, Last, Between };

  int64_t getNextIteration(const ProgramItem &loop, int64_t iteration) override {
    int64_t step = loop.op->reverse ? -1 : 1, next = iteration + step;
    if (place == Place::Outside) {
      const FoldedLoop::Gap *gap = lowering.folds.find(&loop)->second.findGap(next);
      if (!gap || next != (step > 0 ? gap->begin : gap->end - 1))
        return next;
      length = step * gap->round * gap->period;
      numRounds = (gap->end - gap->begin) / (gap->round * gap->period);
      if (numRounds < 4)
        return next;
      first = next;
      return enterRound(Place::First, 0);
    }
    if ((next - first) % length != 0)
      return next;
    switch (int64_t round = (next - first) / length; place) {
    case Place::First:
      nodesPerRound = maker.getId() - roundBegin;
      for (auto [issued, before] : llvm::zip(lowering.numIssued, issuedPerRound))
        before = issued - before;
      return enterRound(Place::Second, round);
    case Place::Second:
      seek(numRounds - 1 - round);
      return enterRound(Place::Last, numRounds - 1);
    case Place::Last:
      if (!samples.areLinear(numRounds - 1)) {
        seek(2 - round);
        return enterRound(Place::Between, 2);
      }
      if (repeat)
        repeat({firstId, nodesPerRound, numRounds});
      else
        samples.count(2, numRounds - 1, count);
      break;
    case Place::Between:
      if (round < numRounds - 1)
        return enterRound(Place::Between, round);
      seek(1); // the last one was lowered before
      break;
    case Place::Outside:
      break;
    }
    place = Place::Outside;
    return first + numRounds * length;
  }

  int64_t enterRound(Place where, int64_t round) {
    place = where;
    if (place == Place::First) {
      roundBegin = firstId = maker.getId();
      issuedPerRound = lowering.numIssued;
    }
    if (isSampled())
      samples.begin(RoundSamples::Sample(unsigned(place) - unsigned(Place::First)));
    lowering.additions.startRound();
    return first + round * length;
  }

  /// What the last round left behind was left by one so many rounds later (or earlier).
  void seek(int64_t rounds) {
    int64_t nodes = rounds * int64_t(nodesPerRound);
    for (std::optional<uint64_t> &end : lowering.chains)
      if (end && *end < firstName && *end >= maker.getId() - nodesPerRound)
        *end += nodes;
    for (auto [issued, perRound] : llvm::zip(lowering.numIssued, issuedPerRound))
      issued += rounds * int64_t(perRound);
    lowering.additions.shiftRound(nodes);
    maker.seek(nodes);
  }

  RoundSamples &samples;
  CountSink count;
  RepeatSink repeat;
  Place place = Place::Outside;
  int64_t first = 0, length = 0,
          numRounds = 0; ///< Of the rounds: the first iteration; iterations of each, with a sign.
  uint64_t roundBegin = 0, firstId = 0, nodesPerRound = 0;
  std::vector<uint64_t> issuedPerRound;
};

/// Names and edges lead to earlier iterations: as many before as values are carried, or as an edge says.
void ClassTasks::foldLoops() {
  if (!folds.empty())
    return;
  llvm::DenseMap<unsigned, unsigned> reach; // by number of loop: what one unit makes others read
  auto forEachLoop = [&](llvm::function_ref<void(const Segment &)> visit) {
    for (const TaskLayout &layout : layouts)
      for (const Segment &segment : layout.getSegments())
        if (segment.item->kind == ProgramItem::Kind::Loop)
          visit(segment);
  };
  forEachLoop([&](const Segment &segment) {
    unsigned &most = reach[segment.item->op->loop];
    most = std::max(most, segment.item->op->getNumOperands());
    for (const std::vector<Op *> &ops : segment.ops)
      for (const Op *op : ops)
        for (const OrderEdge &edge : op->after)
          most = std::max(most, edge.iterations);
  });
  forEachLoop([&](const Segment &segment) {
    const ProgramItem &item = *segment.item;
    folds[&item] =
        FoldedLoop::makeOfReads(item.op->cases, item.begin, item.end, reach[item.op->loop], item.op->reverse);
  });
}

void ClassTasks::foldUnit(unsigned number, Sink sink, CountSink count, RepeatSink repeat) {
  foldLoops();
  RoundSamples samples;
  const FoldedWalk *walk = nullptr;
  auto lowered = [&](const Task &node) {
    if (walk->isSampled())
      samples.add(node, *walk->getIteration());
    sink(node);
  };
  FoldedWalk folded(*this, number, lowered, samples, count, repeat);
  walk = &folded;
  folded.run();
  endUnit(number);
}

void ClassTasks::countUnit(unsigned number, CountSink sink) {
  auto one = [&](const Task &node) { sink(node, 1); };
  if (observer || graph.prefetch || units[number].pair)
    return makeUnit(number, one);
  foldUnit(number, one, sink, nullptr);
}

ClassTasks::Left ClassTasks::makeRounds(unsigned number, Sink sink, RepeatSink repeat) {
  nameEnds(number);
  if (observer || graph.prefetch || units[number].pair)
    makeUnit(number, sink);
  else
    foldUnit(
        number, sink, [](const Task &, uint64_t) {}, repeat);
  if (units[number].pair)
    makeUnit(number + 1, sink);
  return left;
}
