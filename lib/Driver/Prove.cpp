//===- Prove.cpp - a job, compiled small and executed ---------------------===//
//
// Problem: a job is for thousands of ranks; a proof runs tens, on tiny tensors, and must
// still be about the same strategy.
//
// Algorithm: compile the job once to see its mesh and its step. Compile it again with
// every axis reduced to 2 (an odd one to 3) through the strategy's parameter of the same
// name, and with two microbatches per stage; give the layers two iterations per virtual
// stage; run the passes at the sizes of the job, so that they decide as they would; then
// bind every other dim to a tiny size and execute. What the user gives with `-D` stays.
//
// Limits: an axis whose size is no parameter of the job's strategy keeps its size.
//
//===----------------------------------------------------------------------===//
#include "Compilation.h"
#include "stage/IRGen/IRGen.h"
#include "stage/Interp/Prove.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;

namespace {
/// The `-D` options of a proof: the user's, then those that make the job small.
class SmallJob {
public:
  explicit SmallJob(const DriverOptions &options) : options(options) {
    for (const sema::Override &define : options.defines)
      given.push_back(llvm::StringRef(define.name).rsplit('.').second.empty()
                          ? define.name
                          : llvm::StringRef(define.name).rsplit('.').second.str());
  }

  /// Axes first, as the number of microbatches depends on them.
  void shrinkMesh(const Compilation &c) {
    const sema::BoundStrategy &strategy = c.job->strategy;
    if (!strategy.decl)
      return;
    for (const sema::BoundAxis &axis : strategy.mesh) {
      bool isParameter = llvm::any_of(strategy.decl->params,
                                      [&](const ast::Param &param) { return param.name.name == axis.name.name; });
      int64_t small = axis.size % 2 == 0 ? 2 : 3;
      if (!isParameter || axis.size <= small || isGiven(axis.name.name))
        continue;
      define("strategy." + axis.name.name.str(), small);
      notes.push_back(axis.name.name.str() + " " + std::to_string(axis.size) + " -> " + std::to_string(small));
    }
  }

  /// Enough for every unit of a schedule to repeat: two per stage.
  void shrinkBatch(const Compilation &c) {
    int64_t stages = 1;
    if (c.job->strategy.pipeline)
      if (const sema::BoundAxis *axis = c.job->strategy.findAxis(c.job->strategy.pipeline->axis))
        stages = axis->size;
    int64_t wanted = 2 * stages, now = c.job->microbatches;
    if (now <= wanted || isGiven("B") || c.job->globalBatch % now)
      return;
    define("step.B", c.job->globalBatch / now * wanted);
    notes.push_back("microbatches " + std::to_string(now) + " -> " + std::to_string(wanted));
  }

  /// Two iterations of every repeat per virtual stage.
  void shrinkLoops(Graph &graph) {
    int64_t stages = graph.pipeline.axis ? graph.mesh[*graph.pipeline.axis].size * graph.pipeline.chunks : 1;
    if (!graph.pipeline.split.empty())
      return;
    graph.walk([&](Op &op) {
      llvm::StringRef symbol = op.count ? op.count.getSymbol() : "";
      auto now = graph.binding.lookup(symbol);
      if (symbol.empty() || !now || *now <= 2 * stages || isGiven(symbol))
        return;
      graph.binding.bind(symbol, 2 * stages);
      notes.push_back(symbol.str() + " " + std::to_string(*now) + " -> " + std::to_string(2 * stages));
    });
  }

  const DriverOptions &get() const { return options; }
  /// "tp 8 -> 2, microbatches 8 -> 4".
  const std::vector<std::string> &getNotes() const { return notes; }
  /// Names that the user gave a value, without their owners.
  llvm::ArrayRef<std::string> getGiven() const { return given; }

private:
  bool isGiven(llvm::StringRef name) const { return llvm::is_contained(given, name); }
  void define(std::string name, int64_t value) { options.defines.push_back({std::move(name), std::to_string(value)}); }

  DriverOptions options;
  std::vector<std::string> given;
  std::vector<std::string> notes;
};
} // namespace

bool stage::runProof(const DriverOptions &options) {
  SmallJob small(options);
  {
    Compilation first;
    if (!runFrontEnd(first, small.get()))
      return false;
    small.shrinkMesh(first);
  }
  {
    Compilation second;
    if (!runFrontEnd(second, small.get()))
      return false;
    small.shrinkBatch(second);
  }
  Compilation c;
  c.diags.setShowRemarks(options.remarks);
  if (!runFrontEnd(c, small.get()))
    return false;
  small.shrinkLoops(*c.graph);
  std::unique_ptr<Graph> reference =
      generateGraph(*c.files, *c.job, c.sizes, c.binding, c.obligations, c.diags);
  if (!reference || !runMiddle(c, options))
    return false;
  if (!bindTinySizes(*c.graph, small.getGiven(), c.diags))
    return false;
  reference->binding = c.graph->binding;
  std::optional<Proof> proof = prove(*reference, *c.graph, c.program.get(), c.diags);
  if (!proof)
    return false;
  if (!small.getNotes().empty())
    llvm::outs() << "made small: " << llvm::join(small.getNotes(), ", ") << "\n";
  llvm::outs() << "sizes:";
  for (auto &[name, value] : c.graph->binding.sorted())
    if (!c.graph->mesh.find(name))
      llvm::outs() << " " << name << "=" << value;
  llvm::outs() << "\n";
  print(llvm::outs(), *c.graph, *proof);
  return true;
}
