//===- PrintJob.cpp - a bound job as text ---------------------------------===//
//
// For `--emit=job` and tests: what the job comes to once every name has a value.
//
//   job pretrain
//     model Llama(L = 32, D = 4096, E = D/H = 128)
//     step train, batch 512 = 16 microbatches of B = 32, S = 8192
//     ...
//
//===----------------------------------------------------------------------===//
#include "JobWords.h"
#include "stage/Sema/Job.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace stage;
using namespace stage::sema;

/// `D/H = 128`; a lone symbol is its value, and a constant itself.
static void printSize(llvm::raw_ostream &os, Size size, const SizeBinding &binding) {
  SizeValue value = evaluate(size, binding);
  bool isPlain = size.getConstant() || !size.getSymbol().empty();
  if (!isPlain || !value)
    os << size;
  if (value)
    os << (isPlain ? "" : " = ") << value.value.str();
}

static void printValue(llvm::raw_ostream &os, const CTValue &value, const SizeBinding &binding, SizeContext &sizes) {
  if (value.isSize())
    printSize(os, value.getSize(sizes), binding);
  else if (value.isReal())
    os << llvm::format("%.12g", value.getReal());
  else if (value.isBool())
    os << (value.getBool() ? "true" : "false");
  else if (value.isDecl())
    os << value.getDecl()->name.name;
  else if (value.getKind() == CTValue::Kind::Word || value.getKind() == CTValue::Kind::String)
    os << value.getText();
  else
    os << value.describeKind();
}

static void printArguments(llvm::raw_ostream &os, ArrayRef<NamedValue> arguments, const SizeBinding &binding,
                           SizeContext &sizes) {
  for (const NamedValue &argument : arguments) {
    os << "      " << argument.name.name << " = ";
    printValue(os, argument.value, binding, sizes);
    os << "\n";
  }
}

static void printStrategy(llvm::raw_ostream &os, const BoundStrategy &strategy) {
  os << "  strategy " << (strategy.decl ? strategy.decl->name.name : "none") << ", " << strategy.getNumRanks()
     << (strategy.getNumRanks() == 1 ? " rank\n" : " ranks\n");
  for (const BoundAxis &axis : strategy.mesh)
    os << "    axis " << axis.name.name << " = " << axis.size
       << (axis.networkDim ? " in dimension " + std::to_string(*axis.networkDim) : "") << "\n";
  for (const BoundAlias &alias : strategy.aliases)
    os << "    alias " << alias.name.name << " = (" << llvm::join(alias.axes, ", ") << ")\n";
  for (const BoundRule &rule : strategy.rules) {
    os << "    " << textOf(rule.stmt);
    if (rule.call->caller || rule.call->addition)
      os << "  in " << rule.call->str();
    os << "\n";
  }
  if (!strategy.pipeline)
    return;
  const BoundSchedule &schedule = strategy.pipeline->schedule;
  if (!schedule.decl) {
    os << "  pipeline over " << strategy.pipeline->axis << "\n";
    return;
  }
  os << "  schedule " << schedule.decl->name.name << " over " << strategy.pipeline->axis << "\n";
  for (size_t r = 0; r != schedule.units.size(); ++r) {
    os << "    stage " << r;
    if (schedule.chunks > 1) {
      os << " at";
      for (int64_t place : schedule.virtualStages[r])
        os << " " << place;
    }
    os << ":";
    StringRef separator = " ";
    for (const Unit &unit : schedule.units[r]) {
      os << separator << unit.str(schedule.chunks > 1);
      separator = getSeparator(unit);
    }
    os << "\n";
  }
}

ModelDifference stage::sema::compareModels(const BoundJob &first, const SizeBinding &ofFirst, const BoundJob &second,
                                           const SizeBinding &ofSecond, SizeContext &sizes) {
  auto getText = [&](const CTValue &value, const SizeBinding &binding) {
    std::string text;
    llvm::raw_string_ostream os(text);
    printValue(os, value, binding, sizes);
    return os.str();
  };
  for (auto [mine, theirs] :
       {std::pair(&first.modelArgs, &second.modelArgs), std::pair(&first.stepDims, &second.stepDims)})
    for (auto [left, right] : llvm::zip(*mine, *theirs)) {
      std::string here = getText(left.value, ofFirst), there = getText(right.value, ofSecond);
      if (here != there && left.name.name != sequenceDim && left.name.name != batchDim)
        return {left.name.name.str(), here, there};
    }
  return {};
}

void stage::sema::print(llvm::raw_ostream &os, const BoundJob &job, SizeContext &sizes, const SizeBinding &binding) {
  os << "job " << job.decl->name.name << "\n  model " << job.model->name.name << "\n";
  for (const NamedValue &argument : job.modelArgs) {
    os << "    " << argument.name.name << " = ";
    printValue(os, argument.value, binding, sizes);
    os << "\n";
  }
  os << (job.isTraining ? "  step train\n" : "  step infer\n");
  for (const NamedValue &dim : job.stepDims) {
    os << "    " << dim.name.name << " = ";
    printValue(os, dim.value, binding, sizes);
    os << "\n";
  }
  os << "    batch = " << job.globalBatch << ", microbatch = " << job.microbatch
     << ", microbatches = " << job.microbatches << "\n";
  if (const auto &inference = job.inference) {
    if (!inference->lengths.empty())
      os << "    " << inference->lengths.size() << " sequences of "
         << *std::min_element(inference->lengths.begin(), inference->lengths.end()) << " to "
         << *std::max_element(inference->lengths.begin(), inference->lengths.end()) << " positions, in chunks of "
         << inference->chunk << (inference->allLogits ? ", all logits\n" : "\n");
    else if (inference->length)
      os << "    prefill " << inference->length << " in chunks of " << inference->chunk
         << (inference->allLogits ? ", all logits\n" : "\n");
    if (inference->servesRequests)
      os << "    serve " << inference->served->units.size() << " iterations of requests\n";
    else if (inference->decodes())
      os << "    decode from " << inference->begin << " to " << inference->end << " by " << inference->tokens << "\n";
    if (inference->prefilled)
      os << "    prefilled by " << inference->prefilled->name.name << ", caches sent "
         << (inference->sendsAtEnd ? "at the end\n" : "by layer\n");
    if (inference->sampler) {
      os << "    sample " << inference->sampler->name.name << "\n";
      printArguments(os, inference->samplerArgs, binding, sizes);
    }
    if (inference->draft) {
      os << "    draft " << inference->draft->name.name << ", " << inference->listRounds().size() << " rounds\n";
      printArguments(os, inference->draftArgs, binding, sizes);
    }
  }
  const BoundPrecision &precision = job.precision;
  os << "  precision " << precision.decl->name.name << ": weight " << precision.weight.name << ", activation "
     << precision.activation.name << ", gradient " << precision.gradient.name << ", master " << precision.master.name
     << (precision.separateAccumulation ? ", accumulate separate" : "") << "\n";
  if (job.clip)
    os << "  clip " << llvm::format("%.9g", job.clip) << "\n";
  if (job.optimizer) {
    os << "  optimizer " << job.optimizer->decl->name.name << ": flops " << job.optimizer->flops;
    for (const OptimizerState &state : job.optimizer->states)
      os << ", " << state.name.name << " " << state.dtype;
    os << "\n";
  }
  if (job.machine)
    os << "  machine " << job.machine->describe() << "\n";
  if (job.runtime)
    os << "  runtime " << job.runtime->describe() << "\n";
  printStrategy(os, job.strategy);
}
