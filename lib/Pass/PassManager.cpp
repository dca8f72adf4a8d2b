//===- PassManager.cpp - runs passes over a graph -------------------------===//
#include "stage/Pass/PassManager.h"
#include "stage/IR/text/Text.h"
#include "stage/IR/verify/Verifier.h"
#include "stage/Pass/Diagnostics.h"
#include "llvm/Support/Format.h"
#include <chrono>
#include <numeric>

using namespace stage;

PassManager::PassManager(llvm::ArrayRef<PassInfo> registry, DiagnosticEngine &diags, PassOptions options,
                         llvm::raw_ostream &out)
    : registry(registry), diags(diags), options(std::move(options)), out(out) {}

const PassInfo *PassManager::find(llvm::StringRef name, SMLoc loc) {
  auto found = llvm::find_if(registry, [&](const PassInfo &pass) { return pass.name == name; });
  if (found != registry.end())
    return found;
  const PassInfo *nearest = nullptr;
  unsigned distance = ~0u;
  for (const PassInfo &pass : registry)
    if (unsigned d = name.edit_distance(pass.name); d < distance) {
      distance = d;
      nearest = &pass;
    }
  if (nearest)
    diags.report(loc, diag::UnknownPass) << name << nearest->name;
  return nullptr;
}

bool PassManager::addPipeline(llvm::StringRef names) {
  llvm::SmallVector<llvm::StringRef, 8> list;
  names.split(list, ',', -1, /*KeepEmpty=*/false);
  bool good = true;
  for (llvm::StringRef name : list) {
    if (const PassInfo *pass = find(name.trim()))
      pipeline.push_back(pass);
    else
      good = false;
  }
  return good;
}

void PassManager::addRemaining(const Graph &graph) {
  auto lastRun =
      std::find_if(registry.rbegin(), registry.rend(), [&](const PassInfo &pass) { return graph.hasRun(pass.name); });
  for (const PassInfo &pass : llvm::make_range(lastRun.base(), registry.end()))
    pipeline.push_back(&pass);
}

bool PassManager::checkOptions() {
  bool good = true;
  for (const std::string &name : options.printAfter) {
    const PassInfo *pass = find(name);
    if (pass && !llvm::is_contained(pipeline, pass))
      diags.report(SMLoc(), diag::PassNotRun) << name;
    good &= pass && llvm::is_contained(pipeline, pass);
  }
  return good;
}

/// Passes stand in the registry in the only order in which they run, though some may be left out. Those that have run
/// on the graph come before the pipeline.
bool PassManager::checkOrder(const Graph &graph) {
  unsigned errorsBefore = diags.getNumErrors();
  std::vector<const PassInfo *> order;
  for (const std::string &name : graph.passes)
    if (const PassInfo *pass = find(name, graph.loc))
      order.push_back(pass);
  size_t numRun = order.size();
  order.insert(order.end(), pipeline.begin(), pipeline.end());
  for (size_t i = 0; i < order.size(); ++i) {
    const PassInfo *before = i ? order[i - 1] : nullptr, *pass = order[i];
    auto hasRun = [&](const PassInfo *other) { return is_contained(llvm::makeArrayRef(order).take_front(i), other); };
    SMLoc loc = i <= numRun ? graph.loc : SMLoc();
    if (hasRun(pass))
      diags.report(loc, diag::PassTwice) << pass->name;
    else if (before > pass && i == numRun)
      diags.report(loc, diag::PassTooLate) << pass->name << before->name;
    else if (before > pass)
      diags.report(loc, diag::PassOrder) << before->name << pass->name;
    // The head of a text names the passes whose work later ones use. It need not name all.
    const PassInfo *needed = i < numRun ? nullptr : pass;
    while (needed && !needed->needs.empty()) {
      needed = find(needed->needs);
      if (hasRun(needed))
        continue;
      diags.report(graph.loc, diag::PassNeeds) << pass->name << needed->name;
      return false;
    }
  }
  return diags.getNumErrors() == errorsBefore;
}

bool PassManager::run(Graph &graph) {
  bool good = checkOptions();
  if (!checkOrder(graph) || !good)
    return false;
  seconds.clear();
  for (const PassInfo *pass : pipeline)
    if (!(good = runPass(*pass, graph)))
      break;
  if (options.timePasses)
    printTimes();
  return good;
}

/// The first op that reads or makes a value on the host.
static const Op *findHostOp(Graph &graph) {
  const Op *found = nullptr;
  graph.walk([&](Op &op) {
    bool isHostOp = (isCopy(op.kind) && !isCacheCopy(op.kind)) ||
                    llvm::any_of(op.getResults(), [](auto &result) { return isOnHost(*result); });
    if (isHostOp && !found)
      found = &op;
  });
  return found;
}

bool PassManager::runPass(const PassInfo &pass, Graph &graph) {
  unsigned errorsBefore = diags.getNumErrors();
  if (const Op *op = pass.knowsHost ? nullptr : findHostOp(graph)) {
    diags.report(op->loc, diag::PassBeforeHost) << pass.name;
    return false;
  }
  auto start = std::chrono::steady_clock::now();
  pass.run(graph, diags);
  graph.passes.push_back(pass.name.str());
  seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  // A graph with errors is printed as well: that is when one wants to see it.
  if (options.printAfterAll || llvm::is_contained(options.printAfter, pass.name)) {
    out << "// after " << pass.name << '\n';
    print(out, graph);
  }
  if (diags.getNumErrors() != errorsBefore)
    return false;
  if (!options.verifyEach || verify(graph, diags))
    return true;
  diags.report(SMLoc(), diag::BrokenByPass) << pass.name;
  return false;
}

void PassManager::printTimes() {
  double total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  auto line = [&](double time, llvm::StringRef name) {
    out << llvm::format("%10.3f ms %6.1f %%  ", time * 1e3, total > 0 ? time / total * 100 : 0.0) << name << '\n';
  };
  for (size_t i = 0; i < seconds.size(); ++i)
    line(seconds[i], pipeline[i]->name);
  line(total, "all passes");
}

void stage::printPassList(llvm::raw_ostream &os, llvm::ArrayRef<PassInfo> registry) {
  size_t width = 0;
  for (const PassInfo &pass : registry)
    width = std::max(width, pass.name.size());
  for (const PassInfo &pass : registry) {
    os << pass.name;
    os.indent(width + 2 - pass.name.size()) << pass.doc << '\n';
  }
}
