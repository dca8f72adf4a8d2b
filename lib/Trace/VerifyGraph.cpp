//===- VerifyGraph.cpp - ids, dependencies, cycles ------------------------===//
#include "NodeTable.h"
#include "stage/Trace/Diagnostics.h"
#include <algorithm>

using namespace stage;

namespace {
class GraphVerifier {
public:
  GraphVerifier(NodeTable &table, uint32_t rank, FaultReporter &faults)
      : table(table), ranks(table.ranks[rank]), rank(rank), faults(faults) {}

  void verify() {
    checkIds();
    resolveDeps();
    checkAcyclic();
  }

private:
  void checkIds() {
    for (NodeIndex node = 1; node < ranks.nodes.size(); ++node)
      if (ranks.nodes[node].id == ranks.nodes[node - 1].id)
        faults.report(diag::NodeDuplicateId, table.describe(rank, node), ranks.nodes[node].id);
  }

  NodeIndex find(uint64_t id) const {
    // Ids are dense as a rule.
    uint64_t guess = id - ranks.nodes.front().id;
    if (guess < ranks.nodes.size() && ranks.nodes[guess].id == id)
      return NodeIndex(guess);
    auto found = std::lower_bound(ranks.nodes.begin(), ranks.nodes.end(), id,
                                  [](const NodeRecord &node, uint64_t id) { return node.id < id; });
    return found == ranks.nodes.end() || found->id != id ? noNode : NodeIndex(found - ranks.nodes.begin());
  }

  void resolveDeps() {
    uint64_t begin = 0;
    ranks.deps.reserve(ranks.depIds.size());
    for (NodeIndex node = 0; node < ranks.nodes.size(); ++node) {
      uint64_t end = ranks.depBegin[node + 1];
      for (uint64_t id : llvm::makeArrayRef(ranks.depIds).slice(begin, end - begin)) {
        if (id == ranks.nodes[node].id)
          faults.report(diag::NodeSelfDep, table.describe(rank, node));
        else if (NodeIndex dep = find(id); dep == noNode)
          faults.report(diag::NodeDanglingDep, table.describe(rank, node), id);
        else
          ranks.deps.push_back(dep);
      }
      begin = end;
      ranks.depBegin[node + 1] = ranks.deps.size();
    }
    ranks.depIds.clear();
    ranks.depIds.shrink_to_fit();
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
      text += std::to_string(ranks.nodes[node].id) + " after ";
    if (cycle.size() > maxShown)
      text += "... after ";
    text += std::to_string(ranks.nodes[cycle.front()].id);
    faults.report(diag::NodeCycle, table.describe(rank, cycle.front()), text);
  }

  NodeTable &table;
  RankTable &ranks;
  uint32_t rank;
  FaultReporter &faults;
};
} // namespace

void stage::verifyGraph(NodeTable &table, FaultReporter &faults) {
  for (uint32_t rank = 0; rank < table.ranks.size(); ++rank)
    if (!table.ranks[rank].nodes.empty())
      GraphVerifier(table, rank, faults).verify();
}
