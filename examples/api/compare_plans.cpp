//===- compare_plans.cpp - one job under several strategies, from C++ -----===//
//
// Compiles a job of a program with tp = 1, 2, 4 and 3, and prints what each plan costs, or why it is refused.
//
//   compare_plans job.stg /usr/share/stagec/stdlib pretrain
//
//===----------------------------------------------------------------------===//
#include "stage/Compiler/Session.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;

int main(int argc, char **argv) {
  if (argc != 4) {
    llvm::errs() << "usage: compare_plans <job.stg> <folder of the standard library> <job>\n";
    return 2;
  }
  // The program is read once. What is wrong with it is printed.
  DiagnosticPrinter printer(llvm::errs());
  Session session({.input = argv[1], .stdlibDir = argv[2]}, &printer);
  if (!session.load())
    return 1;
  for (int64_t tp : {1, 2, 4, 3}) {
    Result result = session.compile(Plan(argv[3]).set("tp", tp));
    llvm::outs() << "tp = " << tp << ": ";
    if (const Report *report = result.getReport()) {
      // Of the rank that needs most, and of a step of all ranks together.
      auto peak = int64_t(report->getLargestStage().peak.getTotal()), flops = int64_t(report->flops.getModel());
      llvm::outs() << report->ranks << " ranks, " << peak << " bytes at the peak, " << flops << " FLOPs of the model\n";
    } else if (const Diagnostic *refusal = result.getRefusal()) {
      llvm::outs() << "refused [" << refusal->code << "] ";
      if (refusal->line) // a message about the plan itself has no place
        llvm::outs() << "at " << refusal->file << ":" << refusal->line << ":" << refusal->column << ": ";
      llvm::outs() << refusal->text << "\n";
    }
  }
}
