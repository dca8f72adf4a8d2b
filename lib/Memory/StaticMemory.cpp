//===- StaticMemory.cpp - what a stage holds all the time -----------------===//
#include "stage/Memory/StaticMemory.h"
#include "stage/IR/graph/Costs.h"
#include "stage/Walk/StageOps.h"
#include <set>

using namespace stage;

namespace {
class StaticLister {
public:
  StaticLister(const Program &program, LocalBytes &bytes) : program(program), graph(*program.graph), bytes(bytes) {}

  std::vector<StaticValue> list(const StageProgram &stage, const RuntimeMemory *memory) {
    for (auto [param, copies] : collectState(graph, stage, OpKind::Param))
      add(param, param->type.space, MemoryClass::Parameters, copies, bytes.get(param));
    for (auto [buffer, copies] : collectState(graph, stage, OpKind::Buffer))
      add(buffer, buffer->type.space, MemoryClass::ModelBuffers, copies, bytes.get(buffer));
    for (auto [cache, copies] : collectState(graph, stage, OpKind::Cache)) {
      const Op &op = *cache->getOp();
      int64_t entries = op.entries ? bytes.evaluate(op.entries, op.loc, describe(*cache)) : 1;
      add(cache, cache->type.space, MemoryClass::Caches, copies * entries, bytes.get(cache));
    }
    for (const Resident &resident : memory ? memory->listResidents(stage) : std::vector<Resident>())
      values.push_back(
          {{nullptr, resident.name, MemoryClass::Residents, 1, bytes.evaluate(resident.bytes, SMLoc(), resident.name)},
           MemorySpace::Device});
    for (const UnitTemplate &unit : stage.templates)
      forEachOp(unit.items, [&](Op &op, int64_t times) {
        if (isAddition(op.kind))
          addGradient(op, times, unit.chunk);
        else if (op.kind == OpKind::Update)
          add(op.getOperand(0), runsOnHost(op) ? MemorySpace::Host : MemorySpace::Device, MemoryClass::Optimizer, times,
              getStateBytes(op));
      });
    return std::move(values);
  }

private:
  void add(const Value *value, MemorySpace space, MemoryClass kind, int64_t copies, int64_t each) {
    values.push_back({{value, "", kind, copies, ByteCount(copies) * each}, space});
  }

  /// Accumulations of one parameter and sharding share a buffer. A repeat's body stands for its iterations, so those
  /// of the chunks of a stage add up; a parameter outside of repeats has one buffer however many iterations and chunks
  /// use it.
  void addGradient(Op &op, int64_t times, unsigned chunk) {
    const Value *param = getTrainedParam(op), *buffer = program.buffers.getFirst(op.getResult())->getResult();
    bool inLoop = param && getLoop(param);
    if (!known.insert({buffer, inLoop ? chunk : 0}).second)
      return;
    const Value *name = param ? param : buffer;
    add(name, name->type.space, MemoryClass::Gradients, inLoop ? times : 1, bytes.get(buffer));
  }

  /// The states are sharded as the gradient that updates them.
  int64_t getStateBytes(const Op &update) {
    const Value *param = update.getOperand(0), *gradient = update.getOperand(1);
    Size elements = getLocalElements(graph.sizes, graph.mesh, gradient->type, gradient->sharding),
         sum = graph.sizes.zero();
    for (auto &[name, type] : getStates(graph, update))
      sum = sum + getByteCount(elements, type);
    return bytes.evaluate(sum, update.loc, describe(*param));
  }

  const Program &program;
  Graph &graph;
  LocalBytes &bytes;
  std::set<std::pair<const Value *, unsigned>> known; ///< Buffers of gradients, with their chunks.
  std::vector<StaticValue> values;
};
} // namespace

std::vector<StaticValue> stage::listStatic(const Program &program, const StageProgram &stage, LocalBytes &bytes,
                                           const RuntimeMemory *memory) {
  return StaticLister(program, bytes).list(stage, memory);
}
