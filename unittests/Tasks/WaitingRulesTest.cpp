//===- WaitingRulesTest.cpp - what tasks wait for, rule by rule -----------===//
//
// A test of each rule of stage/Tasks/ClassTasks.h, on a graph with little else in it. Tasks are listed by name, with
// those they wait for: `y <- x g | s` takes results of x and g, and runs behind s for another reason.
//
//===----------------------------------------------------------------------===//
#include "ProgramTest.h"
#include "stage/Tasks/ClassTasks.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

namespace {
class WaitingRulesTest : public ProgramTest {
protected:
  /// The tasks of the last unit of a stage, or of another one.
  std::vector<std::string> list(const std::string &source, unsigned stage = 0, unsigned fromTheEnd = 0) {
    build(source);
    std::vector<std::string> lines;
    if (!program)
      return lines;
    GroupTable groups(*program);
    TaskOptions options;
    RankClass rankClass;
    rankClass.stage = stage;
    ClassTasks tasks(*program, groups, options, rankClass, diags);
    std::vector<std::string> names;
    unsigned wanted = tasks.getUnits().size() - 1 - fromTheEnd;
    for (unsigned unit = 0; unit <= wanted; ++unit)
      tasks.makeUnit(unit, [&](const Task &task) {
        names.push_back(task.name.str());
        std::string line = task.name.str();
        auto add = [&](llvm::ArrayRef<uint64_t> ids) {
          for (uint64_t id : ids)
            line += ", " + names[id];
        };
        line += " <-";
        add(task.data);
        line += " |";
        add(task.order);
        if (unit == wanted)
          lines.push_back(line);
      });
    EXPECT_FALSE(diags.hasErrors()) << messages.str();
    return lines;
  }

  using Lines = std::vector<std::string>;
};

/// A graph of one stage that infers, with these statements, over two ranks of `a`.
std::string infer(const std::string &declarations, const std::string &body, unsigned microbatches = 1) {
  return "graph G {\n  passes insert-communication;\n  dim N;\n  mesh (a = 2);\n  bind N = 8;\n  microbatches " +
         std::to_string(microbatches) + ";\n  inference;\n" + declarations +
         "  op twice(x: [n]) -> (result: [n] = x[n] * 2);\n"
         "  op sum(x: [n]) -> (result: [] = sum[n](x[n]));\n"
         "  forward {\n" +
         body + "  }\n}\n";
}

TEST_F(WaitingRulesTest, W1Streams) {
  // Two products that have nothing in common are one behind the other; a collective is on another stream.
  EXPECT_EQ(list(infer("", "    %x = input : f32[N] {a};\n"
                           "    %p = sum(%x) [n over a] : f32[] partial(a) stage 0;\n"
                           "    %r = all_reduce(%p) over a : f32[] stage 0;\n"
                           "    %y = twice(%x) [n over a] : f32[N] {a} stage 0;\n"
                           "    %q = sum(%y) [n over a] : f32[] partial(a) stage 0;\n"
                           "    %s = all_reduce(%q) over a : f32[] stage 0;\n"
                           "    return %r, %s stage 0;\n")),
            (Lines{"p F0 <- |", "r all_reduce F0 <-, p F0 |", "y F0 <- |, p F0", "q F0 <-, y F0 |",
                   "s all_reduce F0 <-, q F0 |, r all_reduce F0"}));
}

TEST_F(WaitingRulesTest, W2Results) {
  // What is gathered is waited for by what reads it, and a value that is used twice is waited for once.
  EXPECT_EQ(list(infer("  op mul(x: [n], y: [n]) -> (result: [n] = x[n] * y[n]);\n",
                       "    %x = input : f32[N] {a};\n"
                       "    %g = all_gather(%x) over a dim 0 : f32[N] {_} stage 0;\n"
                       "    %y = mul(%g, %g) : f32[N] {_} stage 0;\n"
                       "    return %y stage 0;\n")),
            (Lines{"g all_gather F0 <- |", "y F0 <-, g all_gather F0 |"}));
}

/// Two stages of one layer each, which hand on what they make.
std::string pipeline(const std::string &more) {
  return "graph P {\n  dim N;\n  mesh (pp = 2);\n  bind N = 8;\n  microbatches 4;\n  inference;\n"
         "  pipeline layers over pp {\n    split 1, 1;\n" +
         more +
         "    units \"F0 F1 F2 F3\";\n    units \"F0 F1 F2 F3\";\n  }\n"
         "  op scale(x: [n], g: [n]) -> (result: [n] = x[n] * g[n]);\n"
         "  op twice(x: [n]) -> (result: [n] = x[n] * 2);\n"
         "  forward {\n"
         "    %x0 = input : f32[N] {_};\n"
         "    %r = repeat layers [2] loop 0 (%x = %x0 : f32[N] {_}) : f32[N] {_} do {\n"
         "      %g = param : f32[N] {_};\n"
         "      %u = twice(%g) : f32[N] {_};\n"
         "      %y = scale(%x, %u) : f32[N] {_};\n"
         "      yield %y;\n"
         "    }\n"
         "    return %r;\n"
         "  }\n}\n";
}

TEST_F(WaitingRulesTest, W3Messages) {
  // The first product of a unit needs no message, and waits for it; a send waits for the last product.
  Lines receiver = list(pipeline(""), 1);
  ASSERT_EQ(receiver.size(), 3u);
  EXPECT_EQ(receiver[1], "layers.1.u F3 <- |, layers.1.y F2, recv x F3");
  EXPECT_EQ(receiver[2], "layers.1.y F3 <-, recv x F3, layers.1.u F3 |");
  EXPECT_EQ(list(pipeline("")).back(), "send y F3 <-, layers.0.y F3 |, send y F2");
  // A blocking message is followed by a wait, which the next unit is behind, as is the receive that is posted then.
  Lines sender = list(pipeline("    send blocking;\n"));
  ASSERT_EQ(sender.size(), 4u);
  EXPECT_EQ(sender[0], "layers.0.u F3 <- |, wait y F2");
  EXPECT_EQ(sender[2], "send y F3 <-, layers.0.y F3 |, send y F2");
  EXPECT_EQ(sender[3], "wait y F3 <- |, layers.0.y F3");
  EXPECT_EQ(list(pipeline("    send blocking;\n"), 1).size(), 3u); // the last stage sends nothing
}

TEST_F(WaitingRulesTest, W3WaitsForWhatIsSent) {
  // What a collective makes is sent when that has ended, and so the wait begins, but never behind a send. The second
  // message of a unit leaves behind the first wait.
  std::string source = pipeline("    send blocking;\n");
  auto replace = [&](llvm::StringRef from, llvm::StringRef to) {
    size_t at = source.find(from.str());
    ASSERT_NE(at, std::string::npos);
    source.replace(at, from.size(), to.str());
  };
  replace("mesh (pp = 2)", "mesh (pp = 2, a = 2)");
  replace("dim N;", "passes insert-communication;\n  dim N;");
  replace("op twice(x", "op sum(x: [m], y: [n]) -> (result: [n] = sum[m](x[m] * y[n]));\n  op twice(x");
  replace("      %y = scale(%x, %u) : f32[N] {_};\n", "      %q = param : f32[N] {a};\n"
                                                      "      %p = sum(%q, %x) [m over a] : f32[N] {_} partial(a);\n"
                                                      "      %y = all_reduce(%p) over a : f32[N] {_};\n");
  Lines sender = list(source);
  ASSERT_FALSE(sender.empty());
  EXPECT_EQ(sender[sender.size() - 2], "send y F3 <-, layers.0.y all_reduce F3 |, layers.0.p F3");
  EXPECT_EQ(sender.back(), "wait y F3 <- |, layers.0.p F3, layers.0.y all_reduce F3");
}

TEST_F(WaitingRulesTest, W4Posts) {
  // The receive of F3 is posted while F2 runs: behind the last product of F1.
  EXPECT_EQ(list(pipeline(""), 1).front(), "recv x F3 <- |, layers.1.y F1");
  // In F1, which follows the first unit, it is posted from the beginning.
  EXPECT_EQ(list(pipeline(""), 1, 2).front(), "recv x F1 <- |");
}

TEST_F(WaitingRulesTest, W5Inputs) {
  // The input of the second unit is loaded beside the first product of the first one, which a collective is not behind.
  EXPECT_EQ(list(infer("",
                       "    %x = input : f32[N] {a};\n"
                       "    %g = all_gather(%x) over a dim 0 : f32[N] {_} stage 0;\n"
                       "    %y = twice(%g) : f32[N] {_} stage 0;\n"
                       "    %z = twice(%x) [n over a] : f32[N] {a} stage 0;\n"
                       "    return %y, %z stage 0;\n",
                       2)),
            (Lines{"g all_gather F1 <- |, g all_gather F0", "y F1 <-, g all_gather F1 |, z F0",
                   "z F1 <- |, g all_gather F0, y F1"}));
}

TEST_F(WaitingRulesTest, W6BroughtOnTime) {
  // A fetch without an edge is behind the product before it.
  EXPECT_EQ(list(infer("", "    %x = input : f32[N] {a};\n"
                           "    %t = buffer : f32[N] on host {a};\n"
                           "    %y = twice(%x) [n over a] : f32[N] {a} stage 0;\n"
                           "    %f = fetch(%t) : f32[N] {a} stage 0;\n"
                           "    %z = twice(%f) [n over a] : f32[N] {a} stage 0;\n"
                           "    return %y, %z stage 0;\n")),
            (Lines{"y F0 <- |", "f fetch F0 <- |, y F0", "z F0 <-, f fetch F0 |, y F0"}));
}

TEST_F(WaitingRulesTest, W7Edges) {
  // A fetch that runs behind a product of the unit before waits for that alone, and for the copy before it.
  EXPECT_EQ(list(infer("",
                       "    %x = input : f32[N] {a};\n"
                       "    %t = buffer : f32[N] on host {a};\n"
                       "    %y = twice(%x) [n over a] : f32[N] {a} stage 0;\n"
                       "    %f = fetch(%t) : f32[N] {a} stage 0 after %z [unit -1];\n"
                       "    %z = twice(%f) [n over a] : f32[N] {a} stage 0;\n"
                       "    return %y, %z stage 0;\n",
                       3)),
            (Lines{"y F2 <- |, z F1", "f fetch F2 <- |, f fetch F1, z F1", "z F2 <-, f fetch F2 |, y F2"}));
}

TEST_F(WaitingRulesTest, W8SumsAndPermutes) {
  // The send waits for what it sends and for the send before; what uses the result waits for the receive.
  EXPECT_EQ(list(infer("", "    %x = input : f32[N] {a};\n"
                           "    %y = twice(%x) [n over a] : f32[N] {a} stage 0;\n"
                           "    %p = permute(%y) over a by 1 : f32[N] {a rotated 1} stage 0;\n"
                           "    %q = permute(%p) over a by 1 : f32[N] {a} stage 0;\n"
                           "    %z = twice(%q) [n over a] : f32[N] {a} stage 0;\n"
                           "    return %z stage 0;\n")),
            (Lines{"y F0 <- |", "p permute F0 <- |", "p permute F0 <-, y F0 |", "q permute F0 <- |, p permute F0",
                   "q permute F0 <-, p permute F0 |, p permute F0", "z F0 <-, q permute F0 |, y F0"}));
}
} // namespace
