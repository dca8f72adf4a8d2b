//===- ShortLoops.cpp - as few iterations as tell the truth ---------------===//
//
// Problem: a proof runs every iteration of every repeat on every rank, and 80 equal layers
// are not worth that. But what two iterations do need not be what three do:
//
//   repeat layers[L] { param w: [D]; let e = scale(d, w); a = b; b = c; c = d; d = e; }
//
// takes three iterations until the gradient of `a` reaches a `w`, and a compiler that loses
// it there is found out by no proof of fewer.
//
// Algorithm: what is carried from one iteration to the next forms a graph: an edge leads
// from a carried value to each that the next iteration computes from it. A value passes
// at most through as many as there are on the longest way through that graph, with all of
// each cycle (strongly connected component) on the way. A repeat keeps one iteration more
// than that, and at least two; a pipelined one at least two on each virtual stage that runs
// any, or all of those, and the same number on each where they have the same. Symbols of
// counts are bound to the smallest values that give all repeats their iterations and break
// nothing that the program requires. Then the pipeline is told how many each virtual stage
// runs, so that it still cuts where it did: within the same repeats, and between them.
//
// A repeat with cases keeps at least two iterations of each and each step from one case to
// another, in order, with each run of equal iterations cut to as many as above:
//
//   5 windowed, 1 global, 5 windowed, 1 global, ...     w w g w w g
//
// Its count is a number from then on.
//
// Where `split` says which case runs where, the iterations of each virtual stage are cut by themselves.
//
// Limits: a count without a symbol stays, but for cases.
//
//===----------------------------------------------------------------------===//
#include "stage/Interp/Prove.h"
#include "stage/Transforms/sharding/CheckSizes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SCCIterator.h"
#include "llvm/Support/MathExtras.h"
#include <deque>
#include <map>
#include <numeric>
#include <set>

using namespace stage;
using namespace stage::interp;

namespace {
/// A value of a repeat's body.
struct FlowNode {
  std::vector<FlowNode *> next;
  bool isCarried = false;
  int64_t passed = 0; ///< Carried values on the longest way from here.
};
} // namespace

namespace llvm {
template <> struct GraphTraits<FlowNode *> {
  using NodeRef = FlowNode *;
  using ChildIteratorType = std::vector<FlowNode *>::iterator;
  static NodeRef getEntryNode(FlowNode *node) { return node; }
  static ChildIteratorType child_begin(NodeRef node) { return node->next.begin(); }
  static ChildIteratorType child_end(NodeRef node) { return node->next.end(); }
};
} // namespace llvm

int64_t stage::interp::countPassedThrough(const Op &loop) {
  std::deque<FlowNode> storage(1);
  llvm::DenseMap<const Value *, FlowNode *> nodes;
  FlowNode *entry = &storage.front();
  auto add = [&](const Value *value) { return nodes[value] = &storage.emplace_back(); };
  const Block &first = *loop.bodies.front();
  for (auto &argument : first.getArguments()) {
    FlowNode *node = add(argument.get());
    node->isCarried = true;
    entry->next.push_back(node);
  }
  for (auto &body : loop.bodies) { // any of which may come next
    for (auto &argument : body->getArguments())
      nodes[argument.get()] = nodes.lookup(first.getArgument(argument->getNumber()));
    for (auto &op : *body) {
      // One node per op: each result may depend on each operand.
      FlowNode *made = &storage.emplace_back();
      for (const Value *operand : op->getOperands())
        if (FlowNode *node = nodes.lookup(operand))
          node->next.push_back(made);
      for (auto &result : op->getResults())
        nodes[result.get()] = made;
      if (op->kind != OpKind::Yield)
        continue;
      for (unsigned k = 0; k < op->getNumOperands(); ++k)
        if (FlowNode *node = nodes.lookup(op->getOperand(k)))
          node->next.push_back(nodes.lookup(first.getArgument(k)));
    }
  }
  int64_t longest = 0;
  // Components come after all that they lead to.
  for (auto it = llvm::scc_begin(entry); !it.isAtEnd(); ++it) {
    int64_t own = 0, after = 0;
    for (const FlowNode *node : *it) {
      own += node->isCarried;
      for (const FlowNode *next : node->next)
        after = std::max(after, next->passed);
    }
    for (FlowNode *node : *it)
      node->passed = own + after;
    longest = std::max(longest, own + after);
  }
  return longest;
}

namespace {
/// A repeat and how many iterations it must keep: at least `least`, a multiple of `parts`.
struct Loop {
  Size count;
  int64_t least, parts;

  bool isLongEnough(const SizeBinding &binding) const {
    SizeValue value = evaluateCount(count, binding);
    return value && value.value.num >= least && value.value.num % parts == 0;
  }
};
} // namespace

static bool mentions(Size size, const std::string &symbol) {
  return size && llvm::is_contained(collectSymbols(size), symbol);
}

/// The smallest value of a symbol that leaves all repeats long enough and what is required true.
static int64_t findSmallest(Graph &graph, llvm::ArrayRef<Loop> loops, const std::string &symbol, int64_t now) {
  std::vector<Loop> affected;
  for (const Loop &loop : loops)
    if (mentions(loop.count, symbol))
      affected.push_back(loop);
  std::vector<Obligations::Obligation> owed;
  for (const Obligations::Obligation &obligation : graph.obligations.all())
    if (mentions(obligation.left, symbol) || mentions(obligation.right, symbol))
      owed.push_back(obligation);
  SizeBinding binding = graph.binding;
  constexpr int64_t most = 4096;
  for (int64_t value = 1; value < std::min(now, most); ++value) {
    binding.bind(symbol, value);
    if (llvm::all_of(affected, [&](const Loop &loop) { return loop.isLongEnough(binding); }) &&
        llvm::all_of(owed, [&](const Obligations::Obligation &o) { return isMet(o, binding); }))
      return value;
  }
  return now;
}

IterationCases stage::interp::shortenCases(const IterationCases &cases, int64_t longestRun, int64_t least,
                                           int64_t parts) {
  using Run = IterationCases::Run;
  llvm::ArrayRef<Run> runs = cases.getRuns();
  auto getLength = [&](const Run &run) { return std::min(run.end - run.begin, longestRun); };
  // What the runs from the first one on must show: each step between cases, and two iterations of each case.
  std::map<unsigned, std::set<unsigned>> steps; // by the case that they leave
  std::map<unsigned, int64_t> missing;          // iterations of a case that are still to come
  for (const Run &run : runs)
    missing[run.number] += run.end - run.begin;
  for (auto &entry : missing)
    entry.second = std::min<int64_t>(2, entry.second);
  size_t numSteps = 0;
  for (size_t i = 1; i < runs.size(); ++i)
    numSteps += steps[runs[i - 1].number].insert(runs[i].number).second;
  std::set<std::pair<unsigned, unsigned>> seen;
  std::vector<const Run *> kept;
  auto isComplete = [&] {
    return seen.size() == numSteps && llvm::all_of(missing, [](auto &entry) { return entry.second <= 0; });
  };
  for (const Run &run : runs) {
    if (isComplete())
      break;
    if (!kept.empty())
      seen.emplace(kept.back()->number, run.number);
    missing[run.number] -= getLength(run);
    kept.push_back(&run);
  }
  // From there to the last case, by as few steps as there are: what ends the repeat stays.
  std::map<unsigned, unsigned> before; // on the shortest way from where the kept ones end
  std::deque<unsigned> pending = {kept.back()->number};
  for (; !pending.empty() && !before.count(runs.back().number); pending.pop_front())
    for (unsigned next : steps[pending.front()])
      if (next != kept.back()->number && before.emplace(next, pending.front()).second)
        pending.push_back(next);
  std::vector<unsigned> way;
  if (runs.back().number != kept.back()->number)
    for (unsigned at = runs.back().number; at != kept.back()->number; at = before[at])
      way.push_back(at);
  std::vector<std::pair<unsigned, int64_t>> lengths;
  int64_t sum = 0;
  for (const Run *run : kept)
    lengths.emplace_back(run->number, getLength(*run));
  for (unsigned number : llvm::reverse(way))
    lengths.emplace_back(number, getLength(*llvm::find_if(runs, [&](const Run &run) { return run.number == number; })));
  for (auto &[number, length] : lengths)
    sum += length;
  // The stages of a pipeline have equally many: runs that were cut give more.
  int64_t more = llvm::divideCeil(std::max(sum, least), parts) * parts - sum;
  for (size_t i = 0; i < kept.size() && more; ++i) {
    int64_t spare = std::min(more, kept[i]->end - kept[i]->begin - lengths[i].second);
    lengths[i].second += spare;
    more -= spare;
  }
  if (more)
    return cases;
  IterationCases result;
  for (auto &[number, length] : lengths)
    result.append(number, length);
  return result;
}

std::optional<PipelineChain> stage::interp::findChain(const Graph &graph) {
  const PipelineInfo &pipeline = graph.pipeline;
  std::vector<int64_t> counts;
  int64_t sum = 0;
  for (const Op *repeat : findPipelinedRepeats(graph))
    if (SizeValue count = repeat ? evaluateCount(repeat->count, graph.binding) : SizeValue())
      sum += counts.emplace_back(int64_t(count.value.num));
  std::vector<int64_t> split = pipeline.split.empty() ? splitEvenly(sum, countVirtualStages(graph)) : pipeline.split;
  if (counts.empty() || counts.size() != pipeline.repeats.size() || split.size() != countVirtualStages(graph) ||
      std::accumulate(split.begin(), split.end(), int64_t(0)) != sum)
    return std::nullopt;
  return PipelineChain(counts, split);
}

namespace {
/// What a pipeline cuts a repeat into.
struct Pieces {
  std::vector<unsigned> stages; ///< The virtual stages that run some of its iterations,
  std::vector<int64_t> lengths; ///< and how many of them each runs.
  std::vector<int64_t> cut;     ///< Of a repeat with cases, once its pieces are cut: how many each keeps.
};
} // namespace

static Pieces listPieces(const PipelineChain &chain, unsigned repeat, unsigned numVirtual) {
  Pieces pieces;
  for (unsigned v = 0; v < numVirtual; ++v)
    if (auto [begin, end] = chain.getRange(repeat, v); begin < end) {
      pieces.stages.push_back(v);
      pieces.lengths.push_back(end - begin);
    }
  return pieces;
}

/// Lengths of as many pieces of `each` iterations, or all they have. Where some are longer than the shortest of them
/// they stay longer: stages that run different numbers of layers still do.
static std::vector<int64_t> shortenPieces(llvm::ArrayRef<int64_t> lengths, int64_t each) {
  int64_t shortest = *std::min_element(lengths.begin(), lengths.end());
  std::vector<int64_t> result;
  for (int64_t length : lengths)
    result.push_back(std::min(length, length > shortest && shortest >= each ? each + 1 : each));
  return result;
}

/// The same of `count` iterations in all: what there is beyond those goes to the longest pieces first.
static std::vector<int64_t> spread(int64_t count, llvm::ArrayRef<int64_t> lengths, std::vector<int64_t> result) {
  int64_t rest = count - std::accumulate(result.begin(), result.end(), int64_t(0));
  if (rest < 0) { // fewer were asked for
    rest = count;
    for (size_t i = 0; i < result.size(); ++i)
      rest -= result[i] = std::min<int64_t>(lengths[i], count / int64_t(lengths.size()));
  }
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t(0));
  llvm::stable_sort(order, [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  for (bool hasRoom = true; rest > 0 && hasRoom;) {
    hasRoom = false;
    for (size_t i : order)
      if (rest > 0 && result[i] < lengths[i]) {
        ++result[i];
        --rest;
        hasRoom = true;
      }
  }
  result.back() += rest;
  return result;
}

/// "[3, 5]".
static std::string describeSplit(llvm::ArrayRef<int64_t> split) {
  std::string text;
  for (int64_t part : split)
    text += (text.empty() ? "[" : ", ") + std::to_string(part);
  return text + "]";
}

/// Iterations of a piece that let a value pass through so many of those that are carried.
static int64_t getEach(int64_t passed, int64_t parts) {
  return std::max<int64_t>(2, llvm::divideCeil(passed + 1, std::max<int64_t>(parts, 1)));
}

/// How many iterations a repeat must keep.
static Loop getShortest(const Op &repeat, int64_t count, const Pieces &pieces) {
  int64_t passed = countPassedThrough(repeat), parts = pieces.lengths.size(), least = 0;
  for (int64_t length : parts ? shortenPieces(pieces.lengths, getEach(passed, parts)) : std::vector<int64_t>())
    least += length;
  bool areEqual = llvm::all_of(pieces.lengths, [&](int64_t length) { return length == pieces.lengths.front(); });
  return {repeat.count, std::max(least, std::min(count, passed + 1)), areEqual && parts ? parts : 1};
}

/// Cuts the cases of each piece by themselves, so that the pipeline still cuts between the same ones. A piece that is
/// longer than the shortest one stays longer.
static IterationCases shortenPieces(const IterationCases &cases, Pieces &pieces, int64_t longestRun) {
  IterationCases result;
  int64_t shortest = *std::min_element(pieces.lengths.begin(), pieces.lengths.end()), begin = 0, least = 0;
  std::vector<IterationCases> parts;
  for (int64_t length : pieces.lengths) {
    IterationCases part;
    for (const IterationCases::Run &run : cases.getRuns())
      if (int64_t from = std::max(run.begin, begin), to = std::min(run.end, begin + length); from < to)
        part.append(run.number, to - from);
    begin += length;
    IterationCases cut = shortenCases(part, longestRun, 1, 1);
    if (length == shortest)
      least = std::max(least, cut.getNumIterations());
    parts.push_back(std::move(part));
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    IterationCases cut = shortenCases(parts[i], longestRun, pieces.lengths[i] > shortest ? least + 1 : 1, 1);
    pieces.cut.push_back(cut.getNumIterations());
    for (const IterationCases::Run &run : cut.getRuns())
      result.append(run.number, run.end - run.begin);
  }
  return result;
}

std::vector<std::string> stage::interp::shortenLoops(Graph &graph, llvm::ArrayRef<std::string> fixed) {
  PipelineInfo &pipeline = graph.pipeline;
  std::vector<std::string> notes;
  std::vector<Loop> loops;
  std::set<std::pair<int64_t, std::string>> symbols; // The smallest first: `L - DENSE` after `DENSE`.
  std::optional<PipelineChain> chain = findChain(graph);
  llvm::DenseMap<const Op *, Pieces> pipelined;
  std::vector<Op *> repeats = findPipelinedRepeats(graph);
  for (unsigned number = 0; chain && number < repeats.size(); ++number)
    pipelined[repeats[number]] = listPieces(*chain, number, countVirtualStages(graph));
  for (auto &op : graph.getForward()) {
    if (op->kind != OpKind::Repeat)
      continue;
    SizeValue now = evaluateCount(op->count, graph.binding);
    if (!now)
      continue;
    int64_t count = int64_t(now.value.num);
    auto pieces = pipelined.find(op.get());
    bool isPipelined = pieces != pipelined.end();
    Loop loop = getShortest(*op, count, isPipelined ? pieces->second : Pieces{{0}, {count}});
    if (op->cases.getRuns().empty()) {
      loops.push_back(loop);
      for (const std::string &symbol : collectSymbols(op->count))
        if (auto value = graph.binding.lookup(symbol); value && !llvm::is_contained(fixed, symbol))
          symbols.emplace(*value, symbol);
      continue;
    }
    bool isGiven = llvm::any_of(fixed, [&](const std::string &symbol) { return mentions(op->count, symbol); });
    if (isGiven)
      continue;
    int64_t longestRun = std::max<int64_t>(2, countPassedThrough(*op) + 1);
    bool isCutByList = isPipelined && !pipeline.split.empty() && !pieces->second.lengths.empty();
    op->cases = isCutByList ? shortenPieces(op->cases, pieces->second, longestRun)
                            : shortenCases(op->cases, longestRun, loop.least, loop.parts);
    int64_t shorter = op->cases.getNumIterations();
    op->count = graph.sizes.constant(shorter);
    if (shorter != count)
      notes.push_back(op->name + " " + std::to_string(count) + " -> " + std::to_string(shorter));
  }
  for (auto &[now, symbol] : symbols)
    graph.binding.bind(symbol, findSmallest(graph, loops, symbol, now));
  copyIterations(graph, graph); // those of decode are those of forward
  if (!chain)
    return notes;
  std::vector<int64_t> split(countVirtualStages(graph), 0);
  for (const Op *repeat : repeats) {
    const Pieces &pieces = pipelined[repeat];
    if (pieces.lengths.empty())
      continue;
    int64_t each = getEach(countPassedThrough(*repeat), pieces.lengths.size());
    std::vector<int64_t> lengths = !pieces.cut.empty() ? pieces.cut
                                                       : spread(getCheckedCount(graph, repeat->count), pieces.lengths,
                                                                shortenPieces(pieces.lengths, each));
    for (size_t i = 0; i < lengths.size(); ++i)
      split[pieces.stages[i]] += lengths[i];
  }
  if (!pipeline.split.empty() && split != pipeline.split)
    notes.push_back("split " + describeSplit(pipeline.split) + " -> " + describeSplit(split));
  pipeline.split = std::move(split);
  return notes;
}

void stage::interp::copyIterations(Graph &to, const Graph &from) {
  llvm::DenseMap<unsigned, const Op *> loops;
  for (auto &op : from.getForward())
    if (op->kind == OpKind::Repeat)
      loops[op->loop] = op.get();
  for (Block &phase : to.getPhases())
    for (auto &op : phase)
      if (const Op *loop = (isForward(phase.getPhase()) || movesCaches(phase.getPhase())) && op->kind == OpKind::Repeat
                               ? loops.lookup(op->loop)
                               : nullptr) {
        op->count = loop->count;
        op->cases = loop->cases;
      }
}
