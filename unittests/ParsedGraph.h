//===- ParsedGraph.h - graphs from text in tests ---------------*- C++ -*-===//
#ifndef STAGE_UNITTESTS_PARSEDGRAPH_H
#define STAGE_UNITTESTS_PARSEDGRAPH_H

#include "stage/IR/text/Text.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

namespace stage {

/// What graphs read from text stand on. Messages about them are in `messages`.
struct GraphSource {
  std::unique_ptr<Graph> parse(llvm::StringRef source) {
    unsigned buffer = sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(source, "test.sir"), SMLoc());
    return parseGraph(sizes, diags, buffer);
  }

  llvm::SourceMgr sources;
  std::string text;
  llvm::raw_string_ostream messages{text};
  DiagnosticEngine diags{sources, messages};
  SizeContext sizes;
};

/// One graph, which is null if the text has errors.
struct ParsedGraph : GraphSource {
  explicit ParsedGraph(llvm::StringRef source) : graph(parse(source)) {}
  std::string print() const {
    std::string text;
    llvm::raw_string_ostream out(text);
    stage::print(out, *graph);
    return out.str();
  }

  std::unique_ptr<Graph> graph;
};

/// For tests of one graph.
class GraphTest : public ::testing::Test, protected GraphSource {
protected:
  void read(llvm::StringRef source) {
    graph = parse(source);
    ASSERT_TRUE(graph) << messages.str();
  }

  std::unique_ptr<Graph> graph;
};

} // namespace stage

#endif // STAGE_UNITTESTS_PARSEDGRAPH_H
