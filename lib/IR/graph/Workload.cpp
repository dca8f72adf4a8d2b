//===- Workload.cpp - several graphs, each on a mesh of its own -----------===//
#include "stage/IR/graph/Workload.h"
#include <set>

using namespace stage;

Value *Workload::getOutput(const Transfer &transfer) const {
  return parts[transfer.from]->getForward().getTerminator()->getOperand(transfer.output);
}

std::string Workload::describe(const Transfer &transfer) const {
  return "'" + stage::describe(*getOutput(transfer)) + "' of " + parts[transfer.from]->name + " to '" +
         stage::describe(*getInput(transfer)) + "' of " + parts[transfer.to]->name;
}

std::vector<unsigned> stage::orderParts(const Workload &workload) {
  std::vector<unsigned> awaited(workload.parts.size(), 0), order;
  std::vector<std::vector<unsigned>> receivers(workload.parts.size());
  for (const Transfer &transfer : workload.transfers) {
    ++awaited[transfer.to];
    receivers[transfer.from].push_back(transfer.to);
  }
  std::set<unsigned> ready;
  for (unsigned part = 0; part < awaited.size(); ++part)
    if (!awaited[part])
      ready.insert(part);
  while (!ready.empty()) {
    unsigned part = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(part);
    for (unsigned receiver : receivers[part])
      if (!--awaited[receiver])
        ready.insert(receiver);
  }
  return order;
}
