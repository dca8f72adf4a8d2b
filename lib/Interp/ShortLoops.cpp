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
// than that, and at least two; the pipelined one at least two per virtual stage, and the
// same number on each. Symbols of counts are bound to the smallest values that give all
// repeats their iterations and break nothing that the program requires.
//
// Limits: a count without a symbol stays, and so does that of a pipeline with `split`.
//
//===----------------------------------------------------------------------===//
#include "stage/Interp/Prove.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SCCIterator.h"
#include "llvm/Support/MathExtras.h"
#include <deque>
#include <set>

using namespace stage;

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

int64_t stage::countPassedThrough(const Op &loop) {
  std::deque<FlowNode> storage(1);
  llvm::DenseMap<const Value *, FlowNode *> nodes;
  FlowNode *entry = &storage.front();
  auto add = [&](const Value *value) { return nodes[value] = &storage.emplace_back(); };
  for (auto &argument : loop.body->getArguments()) {
    FlowNode *node = add(argument.get());
    node->isCarried = true;
    entry->next.push_back(node);
  }
  for (auto &op : *loop.body) {
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
        node->next.push_back(nodes.lookup(loop.body->getArgument(k)));
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

void stage::shortenLoops(Graph &graph, llvm::ArrayRef<std::string> fixed) {
  const PipelineInfo &pipeline = graph.pipeline;
  std::vector<Loop> loops;
  std::set<std::pair<int64_t, std::string>> symbols; // The smallest first: `L - DENSE` after `DENSE`.
  for (auto &op : graph.forward) {
    SizeValue now = op->body ? evaluateCount(op->count, graph.binding) : SizeValue{SizeError::NotAnInteger, "", {}};
    if (!now)
      continue;
    bool isPipelined = op->name == pipeline.loop;
    int64_t count = int64_t(now.value.num);
    int64_t parts = isPipelined ? graph.mesh[*pipeline.axis].size * pipeline.chunks : 1;
    int64_t each = std::max<int64_t>(2, llvm::divideCeil(countPassedThrough(*op) + 1, parts));
    bool isFree = !isPipelined || pipeline.split.empty();
    loops.push_back({op->count, isFree ? std::min(count, parts * each) : count, isFree ? parts : 1});
    for (const std::string &symbol : collectSymbols(op->count))
      if (auto value = graph.binding.lookup(symbol); value && !llvm::is_contained(fixed, symbol))
        symbols.emplace(*value, symbol);
  }
  for (auto &[now, symbol] : symbols)
    graph.binding.bind(symbol, findSmallest(graph, loops, symbol, now));
}
