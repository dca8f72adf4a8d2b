//===- ProgramTest.h - programs from graph text ----------------*- C++ -*-===//
#ifndef STAGE_UNITTESTS_CODEGEN_PROGRAMTEST_H
#define STAGE_UNITTESTS_CODEGEN_PROGRAMTEST_H

#include "stage/IR/Text.h"
#include "stage/Transforms/BuildProgram.h"
#include "stage/Transforms/Passes.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

namespace stage {

/// Partitions a graph and builds its program. `text` has the messages.
class ProgramTest : public ::testing::Test {
protected:
  void build(const std::string &source) {
    unsigned buffer = sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(source), llvm::SMLoc());
    graph = parseGraph(sizes, diags, buffer);
    ASSERT_TRUE(graph) << messages.str();
    partitionPipeline(*graph, diags);
    ASSERT_FALSE(diags.hasErrors()) << messages.str();
    program = buildProgram(*graph, diags);
    ASSERT_TRUE(program) << messages.str();
  }

  llvm::SourceMgr sources;
  std::string text;
  llvm::raw_string_ostream messages{text};
  DiagnosticEngine diags{sources, messages};
  SizeContext sizes;
  std::unique_ptr<Graph> graph;
  std::unique_ptr<Program> program;
};

} // namespace stage

#endif // STAGE_UNITTESTS_CODEGEN_PROGRAMTEST_H
