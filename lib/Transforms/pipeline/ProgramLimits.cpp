//===- ProgramLimits.cpp - what is too large to compile -------------------===//
#include "ProgramLimits.h"
#include "stage/Transforms/Diagnostics.h"
#include "llvm/ADT/DenseSet.h"

using namespace stage;

constexpr int64_t maxUnits = 4'000'000;
/// Memory is accounted op by op where layers differ: in about 2 s and 240 MB for so many.
constexpr int64_t maxOperations = 4'000'000;
/// The same for the nodes of all ranks that differ, which take longer: DeepSeek-V3's on 2,048 ranks, 64 of which have
/// experts that are not equally busy, are 4.5 million, and take about 5 s.
constexpr int64_t maxLowered = 6'000'000;

bool stage::checkNumUnits(const Graph &graph, unsigned numVirtualStages, unsigned numPhases, DiagnosticEngine &diags) {
  __int128 units = __int128(graph.microbatches) * numVirtualStages * numPhases;
  if (units <= maxUnits)
    return true;
  diags.report(graph.loc, diag::TooManyUnits) << graph.microbatches << int64_t(numVirtualStages) << maxUnits;
  return false;
}

namespace {
/// Operations of a stage's templates, and the repeat that has most of them.
struct StageSize {
  __int128 operations = 0, most = 0;
  const Op *largest = nullptr;

  void add(const std::vector<ProgramItem> &items) {
    for (const ProgramItem &item : items) {
      if (item.kind != ProgramItem::Kind::Loop) {
        operations += item.kind == ProgramItem::Kind::Op;
        continue;
      }
      __int128 inside = 0;
      forEachBody(item, [&](Block &body, int64_t iterations) {
        inside += __int128(iterations) * std::distance(body.begin(), body.end());
      });
      operations += inside;
      if (inside > most) {
        most = inside;
        largest = item.op;
      }
    }
  }
};

/// What the stages that were looked at run. Stages in between run the same ops, for other layers.
class SeenItems {
public:
  /// True if the stage runs an op or moves a value that no stage before it does.
  bool add(const StageProgram &stage) {
    bool isNew = false;
    for (const UnitTemplate &unit : stage.templates)
      for (const ProgramItem &item : unit.items) {
        if (item.op) // of several bodies the iterations say which run
          isNew |= seen.insert(item.op).second || item.op->bodies.size() > 1;
        for (const Value *value : item.values)
          isNew |= seen.insert(value).second;
      }
    return isNew;
  }

private:
  llvm::DenseSet<const void *> seen;
};
} // namespace

bool stage::checkNumOperations(const Program &program, DiagnosticEngine &diags) {
  const Graph &graph = *program.graph;
  __int128 all = 0, lowered = 0;
  StageSize widest;
  AxisSet varying = 0;
  SeenItems seen;
  for (const StageProgram &stage : program.stages) {
    StageSize size;
    for (const UnitTemplate &unit : stage.templates)
      size.add(unit.items);
    all += size.operations;
    // Stages are cut from the same repeats: the first with work to tell ranks apart by stands for all.
    if (!varying && seen.add(stage))
      varying = findVaryingAxes(program, stage);
    lowered += size.operations * graph.mesh.getGroupSize(varying);
    if (size.most > widest.most || !widest.largest)
      widest = size;
  }
  SMLoc loc = widest.largest ? widest.largest->loc : graph.loc;
  if (all > maxOperations) {
    diags.report(loc, diag::TooManyOperations) << Rational{all, 1}.str() << maxOperations;
    return false;
  }
  if (varying && lowered > maxLowered) {
    diags.report(graph.mesh[toList(varying).front()].loc, diag::TooManyClasses)
        << graph.mesh.getGroupSize(varying) << maxLowered;
    return false;
  }
  return true;
}
