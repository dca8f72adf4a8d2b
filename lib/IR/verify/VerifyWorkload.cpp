//===- VerifyWorkload.cpp - several graphs, and what they send (V13) ------===//
#include "stage/IR/Diagnostics.h"
#include "stage/IR/graph/Workload.h"
#include "stage/IR/verify/Verifier.h"
#include "stage/Support/Limits.h"
#include "llvm/ADT/StringSet.h"

using namespace stage;

bool stage::verifyTransferSizes(const Workload &workload, DiagnosticEngine &diags) {
  bool isGood = true;
  for (const Transfer &transfer : workload.transfers) {
    const Value *output = workload.getOutput(transfer), *input = workload.getInput(transfer);
    for (unsigned d = 0; d < output->type.getNumDims() && d < input->type.getNumDims(); ++d) {
      Size left = output->type.shape[d].size, right = input->type.shape[d].size;
      SizeValue leaves = evaluateCount(left, workload.parts[transfer.from]->binding);
      SizeValue arrives = evaluateCount(right, workload.parts[transfer.to]->binding);
      if (!leaves || !arrives || leaves.value == arrives.value) // what has no value is refused where sizes are checked
        continue;
      diags.report(transfer.loc, diag::IRTransferSize) << workload.describe(transfer) << int64_t(d) << left.str()
                                                       << leaves.value.str() << right.str() << arrives.value.str();
      isGood = false;
    }
  }
  return isGood;
}

static bool verifyTransfer(const Workload &workload, const Transfer &transfer, DiagnosticEngine &diags) {
  const Value *output = workload.getOutput(transfer), *input = workload.getInput(transfer);
  const Graph &from = *workload.parts[transfer.from], &to = *workload.parts[transfer.to];
  auto fail = [&](const llvm::Twine &why) {
    diags.report(transfer.loc, diag::IRBadTransfer) << workload.describe(transfer) << why;
    return false;
  };
  if (transfer.from == transfer.to)
    return fail("both are of the same part");
  if (output->type.dtype != input->type.dtype)
    return fail("the first is " + getName(output->type.dtype) + ", the second " + getName(input->type.dtype));
  if (output->type.getNumDims() != input->type.getNumDims())
    return fail("the first has " + llvm::Twine(output->type.getNumDims()) + " dims, the second " +
                llvm::Twine(input->type.getNumDims()));
  if (const Op *maker = output->getOp();
      !maker || isState(maker->kind) || maker->kind == OpKind::Input || maker->kind == OpKind::Constant)
    return fail("the first is made by no op");
  if (isOnHost(*output) || isOnHost(*input))
    return fail("what is on the host is not sent");
  if (from.microbatches != to.microbatches)
    return fail("the parts have " + llvm::Twine(from.microbatches) + " and " + llvm::Twine(to.microbatches) +
                " microbatches per step");
  return true;
}

bool stage::verify(Workload &workload, DiagnosticEngine &diags) {
  unsigned errorsBefore = diags.getNumErrors();
  llvm::StringSet<> names;
  int64_t ranks = 0;
  for (auto &part : workload.parts) {
    verify(*part, diags);
    if (!names.insert(part->name).second)
      diags.report(part->loc, diag::IRRedefinition) << part->name;
    ranks += part->mesh.getNumRanks();
    if (ranks > maxRanks) {
      diags.report(part->loc, diag::IRTooManyRanksOfParts) << part->name << maxRanks;
      ranks = 0;
    }
  }
  for (const Transfer &transfer : workload.transfers)
    verifyTransfer(workload, transfer, diags);
  if (diags.getNumErrors() > errorsBefore)
    return false;
  verifyTransferSizes(workload, diags);
  std::vector<unsigned> order = orderParts(workload);
  for (const Transfer &transfer : workload.transfers)
    if (order.size() < workload.parts.size() && !llvm::is_contained(order, transfer.to) &&
        !llvm::is_contained(order, transfer.from)) {
      diags.report(transfer.loc, diag::IRBadTransfer)
          << workload.describe(transfer) << "both parts wait for each other, directly or through others";
      break;
    }
  return diags.getNumErrors() == errorsBefore;
}
