//===- Pools.cpp - prefill and decode on ranks of their own ---------------===//
//
// Problem: a job says by `prefilled = other` that another job of the same model fills its
// caches, on ranks of its own, with a strategy and batches of its own.
//
// Algorithm: both are compiled as each would be alone, each with its mesh, classes and
// units; reports are those of each. Then they are linked (LinkPools.cpp).
//
// Limits: the values of a plan are of the job that decodes.
//
//===----------------------------------------------------------------------===//
#include "stage/Compiler/Compilation.h"
#include "stage/Compiler/Diagnostics.h"
#include "stage/Sema/InferenceWords.h"
#include "stage/Transforms/pipeline/LinkPools.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;

namespace {
/// Whether one job prefills what another one goes on with.
class PoolCheck {
public:
  PoolCheck(const Compilation &prefill, const Compilation &decode)
      : prefill(prefill), job(*prefill.job), decode(decode), inference(*decode.job->inference) {}

  bool run() {
    if (!job.inference)
      return refuse(diag::PrefilledByTraining);
    if (job.inference->prefilled)
      return refuse(diag::PrefilledByAnother);
    if ((job.inference->decodes() && !job.inference->isPacked()) || job.inference->servesRequests)
      return refuse(diag::PrefilledByDecode);
    if (job.inference->isPacked())
      return refuse(diag::PrefillNotSupported);
    if (job.model != decode.job->model)
      return refuse(diag::PrefilledOtherModel, job.model->name.name, decode.job->model->name.name);
    sema::ModelDifference differs = compareModels(job, prefill.binding, *decode.job, decode.binding, decode.sizes);
    if (!differs.name.empty())
      return refuseSize(differs);
    if (job.globalBatch != decode.job->globalBatch)
      return refuse(diag::PrefilledOtherSize, "B", llvm::Twine(job.globalBatch), llvm::Twine(decode.job->globalBatch));
    if (job.inference->length != inference.begin)
      return refuse(diag::PrefilledOtherLength, job.inference->length, inference.begin);
    if (job.microbatches % decode.job->microbatches)
      return refuse(diag::PrefilledOtherBatches, job.globalBatch / job.microbatches,
                    decode.job->globalBatch / decode.job->microbatches);
    return true;
  }

private:
  /// Shown at the size, where the job that decodes gives it to the model.
  bool refuseSize(const sema::ModelDifference &differs) {
    auto given = llvm::find_if(decode.job->modelArgs,
                               [&](const sema::NamedValue &value) { return value.name.name == differs.name; });
    bool isGiven = given != decode.job->modelArgs.end() && given->range.isValid();
    SMRange range = isGiven ? given->range : inference.prefilledRange;
    decode.diags.report(range.Start, diag::PrefilledOtherSize)
        .range(range)
        .with(job.decl->name.name, differs.name, differs.first, differs.second)
        .note(job.decl->name.loc(), diag::OtherJobHere)
        .with(job.decl->name.name);
    return false;
  }

  template <diag::Kind... Missing, typename... Arguments>
  bool refuse(diag::Message<Missing...> message, const Arguments &...arguments) {
    decode.diags.report(inference.prefilledRange.Start, message)
        .range(inference.prefilledRange)
        .with(job.decl->name.name, arguments...)
        .note(job.decl->name.loc(), diag::OtherJobHere)
        .with(job.decl->name.name);
    return false;
  }

  const Compilation &prefill;
  const sema::BoundJob &job;
  const Compilation &decode;
  const sema::BoundInference &inference;
};
} // namespace

Plan stage::getPlanOfPrefill(const Compilation &c, const Plan &plan) {
  Plan own = plan;
  own.job = c.job->inference->prefilled->name.name.str();
  own.values.clear();
  return own;
}

bool stage::runFrontEndOfPrefill(Compilation &prefill, const Compilation &c, const Plan &plan) {
  return runFrontEnd(prefill, plan) && PoolCheck(prefill, c).run();
}

std::unique_ptr<LinkedProgram> stage::linkPools(Compilation &prefill, Compilation &c) {
  PoolHandover handover;
  handover.prefill = std::move(prefill.program);
  handover.decode = std::move(c.program);
  const sema::BoundInference &filled = *prefill.job->inference;
  handover.batches = prefill.job->microbatches;
  handover.chunks = (filled.length + filled.chunk - 1) / filled.chunk;
  handover.batchesOfDecode = prefill.job->microbatches / c.job->microbatches;
  handover.isAtEnd = c.job->inference->sendsAtEnd;
  handover.loc = c.job->inference->prefilledRange.Start;
  return linkPools(std::move(handover), c.diags);
}

bool stage::refusePools(Compilation &c, llvm::StringRef what) {
  if (!c.job->inference || !c.job->inference->prefilled)
    return false;
  SMRange where = c.job->inference->prefilledRange;
  c.diags.report(where.Start, diag::PoolsNotSupported).range(where) << what;
  return true;
}
