//===- ParseHelper.h - graphs from text in tests ---------------*- C++ -*-===//
#ifndef STAGE_UNITTESTS_IR_PARSEHELPER_H
#define STAGE_UNITTESTS_IR_PARSEHELPER_H

#include "stage/IR/Text.h"
#include "llvm/Support/MemoryBuffer.h"

namespace stage {

/// A graph read from text, with all that it stands on. `messages` has the errors.
struct ParsedGraph {
  explicit ParsedGraph(llvm::StringRef text) {
    unsigned buffer = sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, "test.sir"), SMLoc());
    graph = parseGraph(sizes, diags, buffer);
    os.flush();
  }
  std::string print() const {
    std::string text;
    llvm::raw_string_ostream out(text);
    stage::print(out, *graph);
    return out.str();
  }

  SizeContext sizes;
  llvm::SourceMgr sources;
  std::string messages;
  llvm::raw_string_ostream os{messages};
  DiagnosticEngine diags{sources, os};
  std::unique_ptr<Graph> graph;
};

} // namespace stage

#endif // STAGE_UNITTESTS_IR_PARSEHELPER_H
