//===- Bounds.cpp - what a plan takes at least ----------------------------===//
#include "Bounds.h"
#include "stage/AST/AST.h"
#include "stage/Compiler/MachineRates.h"
#include "stage/Sema/Program.h"
#include "llvm/ADT/StringSet.h"

using namespace stage;
using llvm::dyn_cast;

/// The axes that types of parameters name: `param w: [D, F@tp];`
static void collectNamedAxes(llvm::ArrayRef<ast::Stmt *> body, std::vector<std::string> &axes) {
  for (const ast::Stmt *stmt : body) {
    if (auto *repeat = dyn_cast<ast::RepeatStmt>(stmt)) {
      collectNamedAxes(repeat->body, axes);
    } else if (auto *choice = dyn_cast<ast::IfStmt>(stmt)) {
      collectNamedAxes(choice->thenBody, axes);
      collectNamedAxes(choice->elseBody, axes);
    } else if (auto *tensors = dyn_cast<ast::TensorDeclStmt>(stmt);
               tensors && tensors->declKind == ast::TensorDeclKind::Param) {
      for (const ast::ShapeDim &dim : tensors->type->dims)
        if (dim.hasAxes)
          for (const ast::Ident &axis : dim.axes.axes)
            axes.push_back(axis.name.str());
    }
  }
}

/// Bits that the step has of each parameter besides its value. 0: of some it has none.
static unsigned findStateBits(const Compilation &c) {
  const Graph &graph = *c.graph;
  std::set<const Op *> params, updated;
  std::optional<DType> gradient = parseDType(c.job->precision.gradient.name),
                       weight = parseDType(c.job->precision.weight.name);
  unsigned most = 0, least = 0;
  c.graph->walk([&](Op &op) {
    if (op.kind == OpKind::Param)
      params.insert(&op);
    if (op.kind != OpKind::Update || !op.getOperand(0)->getOp())
      return;
    updated.insert(op.getOperand(0)->getOp());
    unsigned bits = 0;
    for (auto &[name, type] : getStates(graph, op))
      bits += getBitSize(type);
    least = most ? std::min(least, bits) : bits;
    most = std::max(most, bits);
  });
  // Where nothing is accumulated a gradient may be as wide as its parameter.
  bool areAll = gradient && weight && params == updated;
  return areAll ? least + std::min(getBitSize(*gradient), getBitSize(*weight)) : 0;
}

/// How much faster than the machine's FLOP/s a kernel may be, by what machine and runtime say.
static double findMostSpeed(const sema::BoundJob &job) {
  double sustained = 1, ofRules = 1;
  for (const auto &[type, part] : job.machine->sustained)
    sustained = std::max(sustained, part.toDouble());
  Runtime runtime = makeRuntime(job.runtime);
  for (const KernelRule &rule : runtime.kernels)
    if (rule.speed)
      ofRules = std::max(ofRules, rule.speed->toDouble());
  return sustained * ofRules * std::max(1.0, runtime.kernelSpeed.toDouble()) *
         std::max(1.0, runtime.attentionKernel.toDouble());
}

ModelCosts stage::findModelCosts(const Compilation &c, const Report &report) {
  ModelCosts model;
  model.parameters = report.parameters;
  model.stateBits = findStateBits(c);
  model.modelFlops = double(report.flops.getModel());
  for (const ast::File *file : c.session.getFiles().getFiles())
    for (const ast::Decl *decl : file->decls)
      if (auto *module = dyn_cast<ast::ModuleDecl>(decl))
        collectNamedAxes(module->body, model.namedAxes);
  if (!c.job->machine)
    return model;
  constexpr double petaFlop = 1e15;
  for (const auto &[type, rate] : c.job->machine->flops) {
    std::optional<MachineRates> rates = makeRates(*c.job->machine, type, c.diags);
    llvm::StringRef missing;
    std::optional<Ticks> ticks = rates ? Machine(std::move(*rates)).ofCosts(petaFlop, 0, missing) : std::nullopt;
    if (!ticks)
      return model;
    double perFlop = double(*ticks) / petaFlop;
    model.ticksPerFlop = model.ticksPerFlop > 0 ? std::min(model.ticksPerFlop, perFlop) : perFlop;
  }
  model.ticksPerFlop /= findMostSpeed(*c.job);
  return model;
}

namespace {
/// The axes of the mesh along which state may be split.
struct SplitAxes {
  llvm::StringSet<> ofParameters, ofStates;
  bool isKnown = true; ///< False: some of the state may be in other types, or elsewhere.
};

class AxisCollector {
public:
  explicit AxisCollector(const sema::BoundJob &job) : job(job) {}

  SplitAxes collect(const ModelCosts &model) {
    for (const std::string &name : model.namedAxes)
      for (const sema::BoundAxis &axis : job.strategy.mesh)
        if (llvm::is_contained(expandName(name), axis.name.name))
          add(axis.name.name);
    for (const sema::BoundRule &rule : job.strategy.rules)
      visit(*rule.stmt, rule);
    return std::move(axes);
  }

private:
  llvm::SmallVector<llvm::StringRef, 4> expandName(llvm::StringRef name) const {
    ast::Ident ident{name, {}};
    return job.strategy.expand({ident, {}});
  }
  void add(llvm::StringRef axis) {
    axes.ofParameters.insert(axis);
    axes.ofStates.insert(axis);
  }
  void addAll(const ast::AxisListSyntax &list, const sema::BoundRule &rule) {
    for (llvm::StringRef axis : job.strategy.expand(list, rule.env))
      add(axis);
  }
  bool isBatch(llvm::StringRef name) const { return !job.batchDim.empty() && name == job.batchDim; }

  void visit(const ast::Stmt &stmt, const sema::BoundRule &rule) {
    if (auto *shard = dyn_cast<ast::ShardStmt>(&stmt)) {
      for (const ast::ShardStmt::Item &item : shard->items)
        if (!llvm::all_of(item.dims, [&](const ast::Ident &dim) { return isBatch(dim.name); }))
          addAll(item.axes, rule);
    } else if (auto *at = dyn_cast<ast::AtStmt>(&stmt)) {
      for (const ast::Stmt *inner : at->rules)
        visit(*inner, rule);
    } else if (auto *partition = dyn_cast<ast::PartitionStmt>(&stmt)) {
      for (llvm::StringRef axis : job.strategy.expand(partition->axes, rule.env)) {
        axes.ofStates.insert(axis);
        if (partition->what.name == "parameters")
          axes.ofParameters.insert(axis);
      }
    } else if (auto *pipeline = dyn_cast<ast::PipelineStmt>(&stmt)) {
      addAll(pipeline->axes, rule);
    } else if (auto *ring = dyn_cast<ast::RingStmt>(&stmt)) {
      addAll(ring->axes, rule);
    } else if (llvm::isa<ast::OffloadStmt, ast::QuantizeStmt, ast::OtherRuleStmt>(stmt)) {
      axes.isKnown = false;
    }
    // All other rules split nothing.
  }

  const sema::BoundJob &job;
  SplitAxes axes;
};
} // namespace

static int64_t countRanks(const sema::BoundJob &job, const llvm::StringSet<> &axes) {
  int64_t ranks = 1;
  for (const sema::BoundAxis &axis : job.strategy.mesh)
    if (axes.contains(axis.name.name))
      ranks *= axis.size;
  return ranks;
}

__int128 stage::findLeastMemory(const Compilation &c, const ModelCosts &model) {
  const sema::BoundJob &job = *c.job;
  SplitAxes axes = AxisCollector(job).collect(model);
  std::optional<DType> weight = parseDType(job.precision.weight.name);
  if (!axes.isKnown || !weight)
    return 0;
  constexpr unsigned byte = 8;
  // All gradients are there before the first update.
  __int128 ofWeights = model.parameters * getBitSize(*weight) / byte,
           ofStates = model.parameters * model.stateBits / byte;
  return ofWeights / countRanks(job, axes.ofParameters) + ofStates / countRanks(job, axes.ofStates);
}

double stage::findLeastTime(const Compilation &c, const ModelCosts &model) {
  const sema::BoundJob &job = *c.job;
  double ofRank = model.modelFlops * model.ticksPerFlop / double(std::max<int64_t>(job.strategy.getNumRanks(), 1));
  // The stages of a microbatch run one after the other.
  double stages = double(job.strategy.getNumStages()), microbatches = double(std::max<int64_t>(job.microbatches, 1));
  return ofRank * std::max(1.0, stages / microbatches);
}
