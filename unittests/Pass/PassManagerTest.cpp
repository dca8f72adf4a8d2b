//===- PassManagerTest.cpp - passes of any registry -----------------------===//
//
// What test/Pass cannot show with the real passes: one that breaks the graph. And the names in Passes.def.
//
//===----------------------------------------------------------------------===//
#include "stage/Transforms/Passes.h"
#include "gtest/gtest.h"
#include <set>

using namespace stage;

static void nothing(Graph &, DiagnosticEngine &) {}

/// Leaves a yield where none may stand.
static void breaking(Graph &graph, DiagnosticEngine &) {
  graph.getForward().append(std::make_unique<Op>(OpKind::Yield, SMLoc()));
}

static void renaming(Graph &graph, DiagnosticEngine &) { graph.name += "x"; }

static const PassInfo passes[] = {{"nothing", nothing, ""}, {"breaking", breaking, ""}, {"renaming", renaming, ""}};

namespace {
struct PassManagerTest : ::testing::Test {
  bool run(llvm::StringRef pipeline, PassOptions options) {
    PassManager manager(passes, diags, options, dumpStream);
    return manager.addPipeline(pipeline) && manager.run(graph);
  }

  llvm::SourceMgr sources;
  std::string messages, dumps;
  llvm::raw_string_ostream messageStream{messages}, dumpStream{dumps};
  DiagnosticEngine diags{sources, messageStream};
  SizeContext sizes;
  Graph graph{sizes};
};
} // namespace

TEST_F(PassManagerTest, VerifyEachNamesThePassThatBrokeTheGraph) {
  PassOptions options;
  options.verifyEach = true;
  EXPECT_FALSE(run("nothing,breaking,renaming", options));
  EXPECT_NE(messageStream.str().find("pass 'breaking' left a graph that does not verify [broken-by-pass]"),
            std::string::npos)
      << messages;
  EXPECT_EQ(graph.name, ""); // what follows does not run
}

TEST_F(PassManagerTest, WithoutVerifyEachPassesAreTrusted) {
  EXPECT_TRUE(run("breaking,renaming", {}));
  EXPECT_EQ(graph.name, "x");
  EXPECT_EQ(messageStream.str(), "");
}

TEST_F(PassManagerTest, DumpsAndTimesAreForTheirStream) {
  PassOptions options;
  options.printAfter = {"renaming"};
  options.timePasses = true;
  EXPECT_TRUE(run("nothing,renaming", options));
  EXPECT_NE(dumpStream.str().find("// after renaming\ngraph x {\n  passes nothing, renaming;\n}\n"), std::string::npos)
      << dumps;
  EXPECT_EQ(dumps.find("// after nothing"), std::string::npos);
  EXPECT_NE(dumps.find("all passes\n"), std::string::npos);
}

TEST_F(PassManagerTest, WhatHasRunIsLeftOut) {
  graph.passes = {"breaking"};
  PassManager manager(passes, diags, {}, dumpStream);
  manager.addRemaining(graph);
  EXPECT_TRUE(manager.run(graph)) << messageStream.str();
  EXPECT_EQ(graph.passes, (std::vector<std::string>{"breaking", "renaming"}));
}

TEST(Passes, EachNeedsOneAboveIt) {
  std::set<llvm::StringRef> above{""};
  for (const PassInfo &pass : getAllPasses()) {
    EXPECT_TRUE(above.count(pass.needs)) << pass.name.str() << " needs " << pass.needs.str();
    EXPECT_TRUE(above.insert(pass.name).second) << pass.name.str();
  }
}
