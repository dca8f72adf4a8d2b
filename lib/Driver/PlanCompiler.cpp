//===- PlanCompiler.cpp - many plans of one program -----------------------===//
#include "PlanCompiler.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::driver;

std::string stage::driver::getFirstError(llvm::StringRef messages) {
  constexpr llvm::StringLiteral mark = "error: ";
  llvm::StringRef line = messages.substr(messages.find(mark)).split('\n').first;
  line.consume_front(mark);
  if (line.endswith("]"))
    line = line.take_front(line.rfind(" ["));
  return line.str();
}

void PlanCompiler::share(const SourceFiles &read) {
  for (unsigned id = 1; id <= read.sources.getNumBuffers(); ++id)
    input.sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(*read.sources.getMemoryBuffer(id)), SMLoc());
  input.files = std::make_unique<sema::Program>(*read.files, input.ast, input.diags);
}

void PlanCompiler::compile(const DriverOptions &options, Seer see) {
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  DiagnosticEngine diags(input.sources, stream);
  diags.setWarningsAreErrors(options.warningsAreErrors);
  Compilation c(input, sizes, models, diags);
  std::optional<Report> report;
  if (runFrontEnd(c, options) && !refusePools(c, "comparing plans") && runMiddle(c, options))
    report = makeReport(c);
  see(c, report ? &*report : nullptr, stream.str());
}
