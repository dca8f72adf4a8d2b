//===- ProgramTest.h - programs from graph text ----------------*- C++ -*-===//
#ifndef STAGE_UNITTESTS_CODEGEN_PROGRAMTEST_H
#define STAGE_UNITTESTS_CODEGEN_PROGRAMTEST_H

#include "ParsedGraph.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/pipeline/BuildProgram.h"

namespace stage {

/// Partitions a graph and builds its program.
class ProgramTest : public GraphTest {
protected:
  void build(const std::string &source) {
    ASSERT_NO_FATAL_FAILURE(read(source));
    partitionPipeline(*graph, diags);
    ASSERT_FALSE(diags.hasErrors()) << messages.str();
    program = buildProgram(*graph, diags);
    ASSERT_TRUE(program) << messages.str();
  }

  std::unique_ptr<Program> program;
};

} // namespace stage

#endif // STAGE_UNITTESTS_CODEGEN_PROGRAMTEST_H
