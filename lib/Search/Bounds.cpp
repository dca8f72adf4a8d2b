//===- Bounds.cpp - what a plan takes at least ----------------------------===//
#include "Bounds.h"
#include "stage/AST/AST.h"
#include "stage/Compiler/MachineRates.h"
#include "stage/Sema/Program.h"
#include "llvm/ADT/StringSet.h"
#include <map>
#include <set>

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

/// Whether the step updates all parameters, and the least bits that it has of the optimizer's states of one.
static void findStates(const Compilation &c, ModelCosts &model) {
  std::set<const Op *> params, updated;
  std::optional<unsigned> least;
  c.graph->walk([&](Op &op) {
    if (op.kind == OpKind::Param)
      params.insert(&op);
    if (op.kind != OpKind::Update || !op.getOperand(0)->getOp())
      return;
    updated.insert(op.getOperand(0)->getOp());
    unsigned bits = 0;
    for (auto &[name, type] : getStates(*c.graph, op))
      bits += getBitSize(type);
    least = std::min(least.value_or(bits), bits);
  });
  model.areTrained = params == updated;
  model.stateBits = least.value_or(0);
}

/// All names to which a dim answers in rules: as modules call it, and those of the dims that it is the product of.
static void collectNames(const Dim &dim, std::set<std::string> &names) {
  names.insert(dim.name);
  for (llvm::StringRef alias : dim.aliases) {
    names.insert(alias.str());
    names.insert(alias.rsplit('.').second.str());
  }
  for (const Dim *part : dim.parts)
    collectNames(*part, names);
}

static void findParameters(const Compilation &c, ModelCosts &model) {
  std::map<std::set<std::string>, __int128> elements;
  const Graph &graph = *c.graph;
  c.graph->walk([&](Op &op) {
    if (op.kind != OpKind::Param)
      return;
    std::set<std::string> names;
    Size count = graph.sizes.one();
    for (const Extent &extent : op.getResult()->type.shape) {
      count = count * extent.size;
      if (extent.dim)
        collectNames(*extent.dim, names);
    }
    SizeValue value = evaluateCount(count, graph.binding);
    int64_t copies = 1;
    if (const Op *loop = getLoop(op.getResult())) {
      SizeValue iterations = evaluateCount(loop->count, graph.binding);
      copies = iterations ? int64_t(iterations.value.num) : 0;
      if (op.getBlock()->getParent()->bodies.size() > 1) // some of the iterations have it
        copies = std::min<int64_t>(copies, 1);
    }
    elements[names] += value ? value.value.num * copies : 0;
  });
  for (auto &[names, count] : elements)
    model.parameters.push_back({{names.begin(), names.end()}, count});
}

/// Whether something of a model is of a type, or some kernel of the runtime computes in it.
static bool usesType(const Compilation &c, llvm::StringRef type) {
  std::optional<DType> parsed = parseDType(type);
  bool isSmall = parsed && getBitSize(*parsed) <= 8;
  if (!isSmall) // types between which software chooses, such as tf32
    return true;
  bool found = false;
  c.graph->walk([&](Op &op) {
    for (const auto &result : op.getResults())
      found |= result->type.dtype == *parsed;
  });
  if (c.job->runtime)
    for (const sema::BoundKernels &kernels : c.job->runtime->kernels)
      found |= kernels.type == type;
  return found;
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
  findParameters(c, model);
  findStates(c, model);
  model.modelFlops = double(report.flops.getModel());
  for (const ast::File *file : c.session.getFiles().getFiles())
    for (const ast::Decl *decl : file->decls)
      if (auto *module = dyn_cast<ast::ModuleDecl>(decl))
        collectNamedAxes(module->body, model.namedAxes);
  if (!c.job->machine)
    return model;
  constexpr double petaFlop = 1e15;
  for (const auto &[type, rate] : c.job->machine->flops) {
    if (!usesType(c, type))
      continue;
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
  llvm::StringSet<> ofAll, ofStates;         ///< Of all parameters; of their states besides.
  llvm::StringMap<llvm::StringSet<>> ofDims; ///< Of parameters with a dim of the name.
  bool isKnown = true;                       ///< False: some of the state may be in other types, or elsewhere.
};

class AxisCollector {
public:
  explicit AxisCollector(const sema::BoundJob &job) : job(job) {}

  SplitAxes collect(const ModelCosts &model) {
    for (const std::string &name : model.namedAxes)
      for (llvm::StringRef axis : job.strategy.expand({ast::Ident{name, {}}, {}}))
        axes.ofAll.insert(axis);
    for (const sema::BoundRule &rule : job.strategy.rules)
      visit(*rule.stmt, rule, /*namesDims=*/true);
    return std::move(axes);
  }

private:
  void addAll(const ast::AxisListSyntax &list, const sema::BoundRule &rule) {
    for (llvm::StringRef axis : job.strategy.expand(list, rule.env))
      axes.ofAll.insert(axis);
  }
  bool isBatch(llvm::StringRef name) const { return !job.batchDim.empty() && name == job.batchDim; }

  /// `namesDims`: names of dims are those of the model, not those of a pattern around.
  void visit(const ast::Stmt &stmt, const sema::BoundRule &rule, bool namesDims) {
    if (auto *shard = dyn_cast<ast::ShardStmt>(&stmt)) {
      for (const ast::ShardStmt::Item &item : shard->items)
        for (const ast::Ident &dim : item.dims) {
          if (namesDims && isBatch(dim.name))
            continue;
          if (!namesDims)
            addAll(item.axes, rule);
          else
            for (llvm::StringRef axis : job.strategy.expand(item.axes, rule.env))
              axes.ofDims[dim.name].insert(axis);
        }
    } else if (auto *at = dyn_cast<ast::AtStmt>(&stmt)) {
      for (const ast::Stmt *inner : at->rules)
        visit(*inner, rule, namesDims && !at->pattern.hasDims);
    } else if (auto *partition = dyn_cast<ast::PartitionStmt>(&stmt)) {
      for (llvm::StringRef axis : job.strategy.expand(partition->axes, rule.env)) {
        axes.ofStates.insert(axis);
        if (partition->what.name == "parameters")
          axes.ofAll.insert(axis);
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

__int128 stage::findLeastMemory(const Compilation &c, const ModelCosts &model) {
  const sema::BoundJob &job = *c.job;
  SplitAxes axes = AxisCollector(job).collect(model);
  std::optional<DType> weight = parseDType(job.precision.weight.name),
                       gradient = parseDType(job.precision.gradient.name);
  if (!axes.isKnown || !weight || !gradient)
    return 0;
  // All gradients are there before the first update. Where nothing is added up a gradient may be as wide as its
  // parameter.
  unsigned weightBits = getBitSize(*weight), gradientBits = getBitSize(*gradient);
  if (job.microbatches <= 1)
    gradientBits = std::min(gradientBits, weightBits);
  unsigned stateBits = model.areTrained ? gradientBits + model.stateBits : 0;
  constexpr unsigned byte = 8;
  __int128 bytes = 0;
  for (const ModelCosts::Parameters &parameters : model.parameters) {
    int64_t ofParameter = 1, ofState = 1;
    for (const sema::BoundAxis &axis : job.strategy.mesh) {
      llvm::StringRef name = axis.name.name;
      bool splits = axes.ofAll.contains(name) || llvm::any_of(parameters.dims, [&](const std::string &dim) {
                      auto known = axes.ofDims.find(dim);
                      return known != axes.ofDims.end() && known->second.contains(name);
                    });
      ofParameter *= splits ? axis.size : 1;
      ofState *= splits || axes.ofStates.contains(name) ? axis.size : 1;
    }
    bytes += parameters.elements * weightBits / byte / ofParameter + parameters.elements * stateBits / byte / ofState;
  }
  return bytes;
}

double stage::findLeastTime(const Compilation &c, const ModelCosts &model) {
  const sema::BoundJob &job = *c.job;
  auto quantizes = [](const sema::BoundRule &rule) { return llvm::isa<ast::QuantizeStmt>(rule.stmt); };
  if (llvm::any_of(job.strategy.rules, quantizes))
    return 0;
  double ofRank = model.modelFlops * model.ticksPerFlop / double(std::max<int64_t>(job.strategy.getNumRanks(), 1));
  // The stages of a microbatch run one after the other.
  double stages = double(job.strategy.getNumStages()), microbatches = double(std::max<int64_t>(job.microbatches, 1));
  return ofRank * std::max(1.0, stages / microbatches);
}
