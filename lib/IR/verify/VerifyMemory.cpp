//===- VerifyMemory.cpp - on the device or on the host (V12) --------------===//
//
// Problem: what is computed or communicated is on the device. A value that is kept on
// the host must be copied before an op can read it, and what an op makes is on the
// device until it is copied.
//
//   %k = offload(%h) : bf16[B, S] on host     device -> host
//   %g = fetch(%k) : bf16[B, S]               host -> device
//
// Only these two know the host, but a param or a buffer may be declared there, and what
// trains such a param runs there: its gradient accumulates on the host, and the host
// updates it. So does it with a param on the device, of gradients that have been copied, and makes the new value
// there. So what a repeat carries, and what is sent, is on the device.
//
//===----------------------------------------------------------------------===//
#include "VerifierContext.h"
#include "stage/IR/Diagnostics.h"

using namespace stage;

void stage::verifyMemory(VerifierContext &context, const Op &op) {
  auto check = [&](const llvm::Twine &what, const Value &value, MemorySpace expected) {
    if (value.type.space != expected)
      context.diags.report(op.loc, diag::IRWrongMemory) << what << VerifierContext::getName(op) << getName(expected)
                                                        << context.name(&value) << getName(value.type.space);
  };
  MemorySpace reads = op.kind == OpKind::Fetch || runsOnHost(op) ? MemorySpace::Host : MemorySpace::Device;
  // An update on the host has a copy of its param there.
  for (unsigned i = op.kind == OpKind::Update && op.getNumResults() && runsOnHost(op); i < op.getNumOperands(); ++i)
    check("operand " + llvm::Twine(i), *op.getOperand(i), reads);
  for (auto &body : op.bodies)
    for (auto &argument : body->getArguments())
      check("argument " + llvm::Twine(argument->getNumber()), *argument, MemorySpace::Device);
  MemorySpace makes = op.kind == OpKind::Offload || runsOnHost(op) ? MemorySpace::Host : MemorySpace::Device;
  if (!isState(op.kind))
    for (auto &result : op.getResults())
      check("result " + llvm::Twine(result->getNumber()), *result, makes);
}
