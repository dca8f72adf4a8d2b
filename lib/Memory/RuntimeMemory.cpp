//===- RuntimeMemory.cpp - what software keeps, and does without ----------===//
#include "stage/Memory/RuntimeMemory.h"
#include "stage/IR/graph/Costs.h"
#include "stage/Machine/RuntimeRules.h"
#include "llvm/ADT/StringMap.h"
#include <map>

using namespace stage;
using RuleKind = KernelRule::Kind;

namespace stage {
class RuntimeMemoryFinder {
public:
  RuntimeMemoryFinder(const Program &program, const Runtime &runtime, DiagnosticEngine &diags)
      : graph(*program.graph), rules(runtime.kernels), index(rules), formulas(graph, diags) {}

  std::shared_ptr<const RuntimeMemory> find() {
    auto made = std::make_shared<RuntimeMemory>();
    memory = made.get();
    memory->graph = &graph;
    if (llvm::none_of(rules, keepsSomething))
      return made;
    for (const KernelRule &rule : rules)
      memory->names.push_back(rule.resident);
    for (unsigned number = 0; number < rules.size(); ++number)
      if (const KernelRule &rule = rules[number]; rule.opClass == KernelRule::OpClass::Send) {
        llvm::erase_if(memory->ofMessages,
                       [&](const auto &other) { return rules[other.rule].resident == rule.resident; });
        for (bool isBackward : {false, true})
          if (Size formula = isBackward ? rule.backwardBytes : rule.bytes)
            memory->ofMessages.push_back({number, isBackward, formula});
      }
    bool ok = true;
    graph.walk([&](Op &op) { ok = ok && applyRules(op) && applyResidents(op); });
    return ok ? made : nullptr;
  }

private:
  static bool keepsSomething(const KernelRule &rule) {
    return rule.kind == RuleKind::Resident || rule.keepBytes || !rule.overwritten.empty() ||
           !rule.backwardOverwritten.empty() || !rule.dropped.empty() || !rule.heldUntil.empty() || rule.holdBytes;
  }

  static std::optional<unsigned> findOperand(const OpDef &def, llvm::StringRef name) {
    for (unsigned i = 0; i < def.operands.size(); ++i)
      if (def.operands[i].name == name)
        return i;
    return std::nullopt;
  }

  /// Whether an op of forward has an operand of this name. False after a report.
  bool checkOperand(const Op &op, const KernelRule &rule, const std::string &name) {
    if (name.empty() || (op.def && findOperand(*op.def, name)))
      return true;
    formulas.reportNoName(op, rule, name);
    return false;
  }

  bool applyRules(const Op &op) {
    bool isBackward = isGradient(op);
    OpMemory found;
    bool saysSomething = false;
    for (unsigned number : index.findAll(op, RuleKind::Kernel)) {
      const KernelRule &rule = rules[number];
      if (!keepsSomething(rule))
        continue;
      saysSomething = true;
      const Op &named = getNamed(op);
      if (!checkOperand(named, rule, rule.overwritten) || !checkOperand(named, rule, rule.backwardOverwritten) ||
          !checkOperand(named, rule, rule.dropped))
        return false;
      const std::string &overwritten = isBackward ? rule.backwardOverwritten : rule.overwritten;
      if (op.def && !overwritten.empty())
        found.overwritten = findOperand(*op.def, overwritten);
      if (isBackward && op.def && !rule.dropped.empty())
        if (std::optional<unsigned> operand = findOperand(*op.def, rule.dropped))
          found.dropped.push_back(*operand);
      if (!isBackward && !formulas.take(op, rule, rule.keepBytes, found.keepBytes))
        return false;
      if (!isBackward && (!rule.heldUntil.empty() || rule.holdBytes)) {
        found.heldUntil = findEndOfCall(op, rule);
        found.holdsResults |= !rule.heldUntil.empty();
        memory->ends.insert(found.heldUntil);
        if (!formulas.take(op, rule, rule.holdBytes, found.holdBytes))
          return false;
      }
    }
    if (saysSomething)
      memory->ops[&op] = found;
    return true;
  }

  /// `layers.moe` of an op in `layers.moe.experts`. Empty if no instance has this name.
  static llvm::StringRef findInstance(llvm::StringRef scope, llvm::StringRef name) {
    for (llvm::StringRef rest = scope; !rest.empty(); rest = rest.rsplit('.').first) {
      if (rest.rsplit('.').second == name || rest == name)
        return rest;
      if (!rest.contains('.'))
        break;
    }
    return "";
  }

  /// The last op of the block in the instance.
  static const Op *findEndOfCall(const Op &op, const KernelRule &rule) {
    llvm::StringRef instance = rule.heldUntil.empty() ? "" : findInstance(op.scope, rule.heldUntil);
    if (instance.empty())
      instance = op.scope;
    const Op *last = &op;
    for (const auto &other : *op.getBlock()) {
      llvm::StringRef scope = other->scope;
      if (scope == instance || (scope.startswith(instance) && scope.drop_front(instance.size()).startswith(".")))
        last = other.get();
    }
    return last;
  }

  /// Where an all_gather makes the operand of a rule's name, it is made in the resident.
  void place(const Op &op, const KernelRule &rule) {
    std::optional<unsigned> operand = op.def && !rule.placed.empty() ? findOperand(*op.def, rule.placed) : std::nullopt;
    const Op *maker = operand ? op.getOperand(*operand)->getOp() : nullptr;
    if (maker && maker->kind == OpKind::AllGather)
      memory->ops[maker].isInResident = true;
  }

  bool applyResidents(const Op &op) {
    bool isBackward = isGradient(op);
    llvm::SmallVector<unsigned, 4> numbers = index.findAll(op, RuleKind::Resident);
    for (unsigned number : numbers) {
      const KernelRule &rule = rules[number];
      if (llvm::any_of(numbers,
                       [&](unsigned other) { return other > number && rules[other].resident == rule.resident; }))
        continue; // the last one counts
      place(op, rule);
      Size formula = isBackward ? rule.backwardBytes : rule.bytes, bytes;
      if (!formula || !formulas.take(op, rule, formula, bytes)) {
        if (formula)
          return false;
        continue;
      }
      bool speaksOfWeight = false;
      substitute(formula, [&](llvm::StringRef symbol) {
        speaksOfWeight |= symbol.endswith(".weight");
        return graph.sizes.one();
      });
      auto isFused = [&](const auto &result) { return getFusedAccumulation(graph, result.get()) != nullptr; };
      if (bytes.isConstant(0) || (isBackward && speaksOfWeight && llvm::none_of(op.getResults(), isFused)))
        continue;
      unsigned first = firstOfName.try_emplace(rule.resident, number).first->second;
      RuntimeMemory::ResidentOfOp resident{first, isBackward, "", bytes};
      if (std::optional<WeightMatrix> weight = rule.isPerShape ? formulas.findWeight(op) : std::nullopt) {
        SizeValue rows = evaluate(weight->rows, graph.binding), columns = evaluate(weight->columns, graph.binding);
        if (rows && columns)
          resident.shape = (llvm::Twine(int64_t(rows.value.num)) + "x" + llvm::Twine(int64_t(columns.value.num)) +
                            " of " + getName(weight->type))
                               .str();
      }
      memory->residents[&op].push_back(std::move(resident));
    }
    return true;
  }

  Graph &graph;
  llvm::ArrayRef<KernelRule> rules;
  const RuleIndex index;
  const RuleFormulas formulas;
  RuntimeMemory *memory = nullptr;
  llvm::StringMap<unsigned> firstOfName; ///< Rules of residents.
};
} // namespace stage

std::shared_ptr<const RuntimeMemory> RuntimeMemory::find(const Program &program, const Runtime &runtime,
                                                         DiagnosticEngine &diags) {
  return RuntimeMemoryFinder(program, runtime, diags).find();
}

/// Calls `add` with the bytes of each resident of a message that the stage sends to another one.
void RuntimeMemory::addMessages(const StageProgram &stage,
                                llvm::function_ref<void(const ResidentOfMessages &, Size)> add) const {
  for (const UnitTemplate &unit : stage.templates)
    for (const ProgramItem &item : unit.items) {
      if (item.kind != ProgramItem::Kind::Send || item.isLocal || item.channel || ofMessages.empty())
        continue;
      Size sent = graph->sizes.zero();
      for (const Value *value : item.values)
        sent = sent + getLocalBytes(graph->sizes, graph->mesh, value->type, value->sharding);
      for (const ResidentOfMessages &resident : ofMessages)
        if (resident.isBackward != isForward(unit.kind))
          add(resident, substitute(resident.formula, [&](llvm::StringRef) { return sent; }));
    }
}

std::vector<Resident> RuntimeMemory::listResidents(const StageProgram &stage) const {
  std::map<std::tuple<unsigned, bool, unsigned>, Resident> found;
  llvm::StringMap<unsigned> shapes;
  addMessages(stage, [&](const ResidentOfMessages &resident, Size bytes) {
    Resident &entry = found[{resident.rule, resident.isBackward, 0}];
    entry.name = names[resident.rule];
    entry.bytes = entry.bytes ? max(entry.bytes, bytes) : bytes;
  });
  if (residents.empty() && found.empty())
    return {};
  forEachOp(stage, [&](const Op &op) {
    auto known = residents.find(&op);
    for (const ResidentOfOp &resident : known == residents.end() ? llvm::ArrayRef<ResidentOfOp>() : known->second) {
      unsigned shape = shapes.try_emplace(resident.shape, shapes.size()).first->second;
      Resident &entry = found[{resident.rule, resident.isBackward, shape}];
      if (entry.name.empty())
        entry.name = names[resident.rule] + (resident.shape.empty() ? "" : " " + resident.shape);
      entry.bytes = entry.bytes ? max(entry.bytes, resident.bytes) : resident.bytes;
    }
  });
  std::vector<Resident> list;
  for (auto &entry : found)
    list.push_back(std::move(entry.second));
  return list;
}
