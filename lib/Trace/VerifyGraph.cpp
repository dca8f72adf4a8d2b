//===- VerifyGraph.cpp - ids, dependencies, cycles ------------------------===//
#include "NodeTable.h"
#include "stage/Trace/Diagnostics.h"
#include <algorithm>

using namespace stage;
using namespace stage::trace;

namespace {
class GraphVerifier {
public:
  GraphVerifier(NodeTable &table, uint32_t slot, FaultReporter &faults)
      : table(table), ranks(table.ranks[slot]), slot(slot), faults(faults) {}

  auto describe(NodeIndex node) const {
    return [this, node] { return table.describe(slot, node); };
  }

  void verify() {
    checkIds();
    ranks.resolveDeps([&](NodeIndex node, uint64_t id) {
      if (id == ranks.getId(node))
        faults.report(diag::NodeSelfDep, describe(node));
      else
        faults.report(diag::NodeDanglingDep, describe(node), id);
    });
    checkAcyclic();
    ranks.findUsers();
  }

private:
  void checkIds() {
    for (NodeIndex node = 1; node < ranks.getNumNodes(); ++node)
      if (ranks.getId(node) == ranks.getId(node - 1))
        faults.report(diag::NodeDuplicateId, describe(node), ranks.getId(node));
  }

  /// Visits depth first, without recursion: a chain may be as long as the trace.
  void checkAcyclic() {
    enum State : uint8_t { Unseen, Open, Done };
    std::vector<State> states(ranks.nodes.size(), Unseen);
    struct Visit {
      NodeIndex node;
      uint32_t nextDep;
    };
    std::vector<Visit> stack;
    for (NodeIndex start = 0; start < ranks.nodes.size(); ++start) {
      if (states[start] != Unseen)
        continue;
      stack.push_back({start, 0});
      states[start] = Open;
      while (!stack.empty()) {
        Visit &top = stack.back();
        llvm::ArrayRef<NodeIndex> deps = ranks.getDeps(top.node);
        if (top.nextDep == deps.size()) {
          states[top.node] = Done;
          stack.pop_back();
          continue;
        }
        NodeIndex dep = deps[top.nextDep++];
        if (states[dep] == Open) {
          auto begin = std::find_if(stack.begin(), stack.end(), [&](const Visit &visit) { return visit.node == dep; });
          std::vector<NodeIndex> cycle;
          for (; begin != stack.end(); ++begin)
            cycle.push_back(begin->node);
          reportCycle(cycle);
          return; // others are often the same one
        }
        if (states[dep] == Unseen) {
          states[dep] = Open;
          stack.push_back({dep, 0});
        }
      }
    }
  }

  void reportCycle(llvm::ArrayRef<NodeIndex> cycle) {
    constexpr size_t maxShown = 8;
    std::string text;
    for (NodeIndex node : cycle.take_front(maxShown))
      text += std::to_string(ranks.getId(node)) + " after ";
    if (cycle.size() > maxShown)
      text += "... after ";
    text += std::to_string(ranks.getId(cycle.front()));
    faults.report(diag::NodeCycle, describe(cycle.front()), text);
  }

  NodeTable &table;
  RankTable &ranks;
  uint32_t slot;
  FaultReporter &faults;
};
} // namespace

void stage::trace::verifyGraph(NodeTable &table, FaultReporter &faults) {
  for (uint32_t slot = 0; slot < table.ranks.size(); ++slot)
    GraphVerifier(table, slot, faults).verify();
}
