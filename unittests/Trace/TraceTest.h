//===- TraceTest.h - what tests of traces share ----------------*- C++ -*-===//
#ifndef STAGE_UNITTESTS_TRACE_TRACETEST_H
#define STAGE_UNITTESTS_TRACE_TRACETEST_H

#include "stage/CodeGen/NodeWriter.h"
#include "stage/CodeGen/OutputDirectory.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>
#include <string>

namespace stage {

/// A folder of its own and the messages it led to.
class TraceTest : public testing::Test {
protected:
  void SetUp() override { ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("stage-trace", root)); }
  void TearDown() override { llvm::sys::fs::remove_directories(root); }

  std::string path(const llvm::Twine &name) const { return (root + "/" + name).str(); }

  llvm::SmallString<128> root;
  std::string messages;
  llvm::raw_string_ostream out{messages};
  llvm::SourceMgr sources;
  DiagnosticEngine diags{sources, out};
};

} // namespace stage

#endif // STAGE_UNITTESTS_TRACE_TRACETEST_H
