//===- EncodeTask.cpp - a task as a node of a trace -----------------------===//
#include "EncodeTask.h"
#include "stage/CodeGen/Emit.h"
#include "stage/IR/graph/Graph.h"

using namespace stage;

static ChakraNodeType getNodeType(TaskKind kind) {
  switch (kind) {
  case TaskKind::Compute:
    return ChakraNodeType::Comp;
  case TaskKind::Collective:
    return ChakraNodeType::CommColl;
  case TaskKind::Send:
    return ChakraNodeType::CommSend;
  case TaskKind::Receive:
    return ChakraNodeType::CommRecv;
  case TaskKind::Load:
    return ChakraNodeType::MemLoad;
  case TaskKind::Store:
    return ChakraNodeType::MemStore;
  }
  llvm_unreachable("no other kinds");
}

static ChakraCommType getCommType(OpKind kind) {
  return kind == OpKind::AllGather       ? ChakraCommType::AllGather
         : kind == OpKind::AllReduce     ? ChakraCommType::AllReduce
         : kind == OpKind::ReduceScatter ? ChakraCommType::ReduceScatter
                                         : ChakraCommType::AllToAll;
}

TraceMetadata stage::getMetadata(const TaskDurations *durations, int64_t rank) {
  TraceMetadata metadata = {"1.0", {}, {}};
  if (!durations)
    return metadata;
  const Runtime &runtime = durations->getRuntime(rank);
  metadata.texts = {{"machine", durations->getMachine(rank)}, {"runtime", runtime.describe()}};
  for (auto [name, tax] : {std::pair("tax_collective", &runtime.taxOfCollectives),
                           {"tax_send", &runtime.taxOfSends},
                           {"tax_copy", &runtime.taxOfCopies},
                           {"tax_communication", &runtime.taxOfCommunication}})
    if (tax->num)
      metadata.texts.emplace_back(name, tax->str());
  for (auto [name, time] : {std::pair("launch_picos", runtime.launch), {"step_host_picos", runtime.stepHost}})
    if (time)
      metadata.numbers.emplace_back(name, time);
  return metadata;
}

NodeFields stage::encode(const Task &task) {
  NodeFields node;
  node.type = getNodeType(task.kind);
  node.id = task.id;
  node.name = task.name;
  node.opType = task.opType;
  node.dataDeps = task.data;
  node.ctrlDeps = task.order;
  node.stream = task.stream;
  node.isCpuOp = task.runsOnHost;
  if (task.kind == TaskKind::Compute || task.isCopy()) {
    node.numOps = task.flops;
    node.otherOps = task.otherFlops;
    node.recomputedOps = task.recomputedFlops;
    node.tensorSize = task.isWait ? 1 : task.bytes;
    return node;
  }
  node.commSize = task.bytes;
  if (task.isMessage()) {
    node.peer = task.peer;
    node.tag = task.tag;
    return node;
  }
  node.commType = getCommType(task.op->kind);
  node.group = task.group;
  node.networkDims = task.networkDims;
  node.collectiveTag = task.tag.resolve({});
  return node;
}

std::vector<uint8_t> stage::encodeTrace(llvm::ArrayRef<Task> tasks, llvm::ArrayRef<TaskTimes> times) {
  TraceBuffer buffer;
  NodeEncoder encoder(buffer);
  encoder.appendMetadata(getMetadata(nullptr, 0));
  for (auto [task, ownTimes] : llvm::zip(tasks, times)) {
    NodeFields node = encode(task);
    node.times = ownTimes;
    encoder.append(node);
  }
  return buffer.getBytes().vec();
}
