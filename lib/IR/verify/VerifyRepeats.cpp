//===- VerifyRepeats.cpp - how often repeats run, and which case ----------===//
//
// V6: a count is a whole number, and the runs of equal iterations are that many.
//
//===----------------------------------------------------------------------===//
#include "VerifierContext.h"

using namespace stage;

void stage::verifyLoopCount(VerifierContext &context, const Op &op) {
  if (!op.count)
    return;
  SizeValue count = evaluateCount(op.count, context.graph.binding);
  if (count || count.error == SizeError::UnboundSymbol)
    return;
  bool hasValue = count.error == SizeError::Negative || count.error == SizeError::NotAnInteger;
  context.diags.report(op.loc, diag::IRBadCount)
      << op.name << op.count.str() << (hasValue ? count.value.str() : "no number");
}

bool stage::verifyCases(VerifierContext &context, const Op &op) {
  const IterationCases &cases = op.cases;
  llvm::SmallVector<bool, 4> runs(op.bodies.size(), op.bodies.size() == 1);
  std::string fault;
  for (const IterationCases::Run &run : cases.getRuns())
    if (run.number < runs.size())
      runs[run.number] = true;
    else
      fault = "there is no case " + std::to_string(run.number);
  for (unsigned number = 0; number < runs.size() && fault.empty(); ++number)
    if (!runs[number])
      fault = "no iteration is case " + std::to_string(number);
  SizeValue count =
      op.count ? evaluateCount(op.count, context.graph.binding) : SizeValue{SizeError::UnboundSymbol, "", {}};
  if (fault.empty() && !cases.getRuns().empty() && count && count.value.num != cases.getNumIterations())
    fault = "they are " + std::to_string(cases.getNumIterations()) + " iterations, but '" + op.count.str() + "' is " +
            count.value.str();
  if (!fault.empty())
    context.diags.report(op.loc, diag::IRBadCases) << op.name << fault;
  return fault.empty();
}
