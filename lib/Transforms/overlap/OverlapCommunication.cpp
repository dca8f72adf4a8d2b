//===- OverlapCommunication.cpp - communication on streams of its own (E8) -===//
//
// Problem: all that a rank sends and receives is in one chain, so that a reduction waits for the gather that stands
// before it though the two have nothing to do with each other. A strategy says what has a stream of its own:
//
//   rule 4 overlap communication over dp;
//
//   stream dp: communication;
//   %g = all_gather(%w) over dp stream dp
//   %r = all_reduce(%y) over tp               // does not wait for %g
//
// Algorithm: what has axes of a rule and no others goes to the stream of the first such rule; of a rule that is
// `apart` each set of axes has one. Messages between stages are communication over the axis of the pipeline. What adds
// reduced contributions to gradients goes to a stream for that.
//
// What passes tokens on between two exchanges goes to a stream as well (ExchangeRelays.cpp). Then the step goes in the
// order of forward where its gathers are beside that (OrderGathers.cpp).
//
// Why all finish: ops of a stream stand in the order of the program, which is the same on all members of a group. Of
// all that has not finished the first one, in that order, is next on its stream on every member (law L13).
//
// Limits: what stands on a stream already (reduce-gradients) stays there.
//
//===----------------------------------------------------------------------===//
#include "ExchangeRelays.h"
#include "OrderGathers.h"
#include "sharding/MergeCollectives.h"
#include "stage/IR/graph/Rule.h"
#include "stage/IR/text/Text.h"
#include "stage/Transforms/Diagnostics.h"
#include "stage/Transforms/Passes.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <map>

using namespace stage;

namespace {
class StreamAssigner {
public:
  StreamAssigner(Graph &graph, DiagnosticEngine &diags) : graph(graph), diags(diags) {}

  void run() {
    for (const Rule &rule : graph.rules)
      if (rule.kind == RuleKind::OverlapCommunication)
        rules.push_back(&rule);
    if (rules.empty())
      return;
    for (AxisId axis = 0; axis < graph.mesh.getAxes().size(); ++axis)
      if (graph.mesh[axis].size > 1)
        large |= AxisSet(1) << axis;
    std::optional<AxisId> stages = graph.pipeline.axis;
    if (stages && (large >> *stages & 1))
      assign(AxisSet(1) << *stages, /*hasMessages=*/true);
    AxisSet ahead = 0; // gathers that run ahead are of one stream, since one makes room for the next
    graph.walk([&](Op &op) { ahead |= op.isPrefetched ? toSet(op.axes) & large : 0; });
    graph.walk([&](Op &op) {
      AxisSet axes = op.isPrefetched ? ahead : toSet(op.axes) & large;
      if (!isCommunication(op.kind) || op.stream || !axes)
        return;
      op.stream = assign(axes, /*hasMessages=*/false);
      for (auto &result : op.getResults())
        if (op.stream)
          moveAdditions(*result);
    });
    for (const Rule *rule : rules)
      if (!used.contains(rule) && graph.training) // inference has no gradients
        diags.report(rule->loc, diag::NothingToOverlap) << llvm::join(listAxisNames(graph.mesh, rule->axes), ", ");
  }

private:
  /// The stream of what is among ranks along these axes; null if no rule says one.
  const Stream *assign(AxisSet axes, bool hasMessages) {
    auto [known, isNew] = ruleOf.try_emplace(axes, nullptr); // ops are many, sets of axes few
    if (isNew) {
      auto found = llvm::find_if(rules, [&](const Rule *rule) { return !(axes & ~toSet(rule->axes)); });
      known->second = found == rules.end() ? nullptr : *found;
    }
    if (!known->second)
      return nullptr;
    const Rule &rule = *known->second;
    used.insert(&rule);
    AxisSet key = rule.isApart ? axes : toSet(rule.axes) & large;
    const Stream *&stream = streams[{rule.isApart ? nullptr : &rule, key}];
    if (!stream)
      stream = addStream(graph, makeName(key), StreamKind::Communication, hasMessages);
    return stream;
  }

  /// What adds to a gradient what has been reduced has a stream of its own, too: else all that is computed would wait.
  void moveAdditions(const Value &reduced) {
    for (auto [user, operand] : reduced.getUses()) {
      if (user->kind != OpKind::Accumulate || user->stream)
        continue;
      if (!additions)
        additions = graph.findStream("additions");
      if (!additions || additions->kind != StreamKind::Computation)
        additions = addStream(graph, "additions", StreamKind::Computation);
      user->stream = additions;
    }
  }

  std::string makeName(AxisSet axes) const {
    std::string name;
    for (AxisId axis = 0; axis < graph.mesh.getAxes().size(); ++axis)
      if (axes >> axis & 1)
        name += (name.empty() ? "" : "_") + graph.mesh[axis].name;
    return name;
  }

  Graph &graph;
  DiagnosticEngine &diags;
  std::vector<const Rule *> rules;
  llvm::SmallPtrSet<const Rule *, 4> used;
  std::map<AxisSet, const Rule *> ruleOf;
  AxisSet large = 0; ///< Axes of more than one rank.
  std::map<std::pair<const Rule *, AxisSet>, const Stream *> streams;
  const Stream *additions = nullptr;
};
} // namespace

void stage::overlapCommunication(Graph &graph, DiagnosticEngine &diags) {
  StreamAssigner(graph, diags).run();
  moveRelays(graph);
  orderGathers(graph);
}
