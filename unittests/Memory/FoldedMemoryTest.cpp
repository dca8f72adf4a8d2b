//===- FoldedMemoryTest.cpp - one iteration for many equal ones -----------===//
//
// That nothing is lost where a loop is folded is asserted against the simulation that runs every iteration.
//
//===----------------------------------------------------------------------===//
#include "ParsedGraph.h"
#include "stage/Memory/UnitSimulator.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/pipeline/BuildProgram.h"

using namespace stage;

namespace {
class FoldedMemoryTest : public GraphTest {
protected:
  using Copies = std::vector<std::tuple<const Value *, MemoryClass, int64_t, int64_t>>;
  static Copies list(const std::vector<LiveValue> &values) {
    Copies copies;
    for (const LiveValue &live : values)
      copies.emplace_back(live.value, live.kind, live.copies, int64_t(live.bytes));
    return copies;
  }

  static void compare(const UnitSimulator &full, const UnitPeak &a, const UnitSimulator &folded, const UnitPeak &b) {
    EXPECT_EQ(int64_t(a.total), int64_t(b.total));
    EXPECT_EQ(a.op, b.op);
    EXPECT_EQ(a.iteration, b.iteration);
    ASSERT_EQ(a.node.has_value(), b.node.has_value());
    if (a.node) {
      EXPECT_EQ(list(full.listLive(*a.node)), list(folded.listLive(*b.node)));
    }
  }

  /// Of a graph whose repeat has so many iterations that some are left out.
  void compare(const std::string &source) {
    read(source);
    partitionPipeline(*graph, diags);
    std::unique_ptr<Program> program = buildProgram(*graph, diags);
    ASSERT_TRUE(program) << messages.str();
    Lifetimes lifetimes(*graph);
    LocalBytes bytes(*graph, diags);
    for (const StageProgram &stage : program->stages) {
      UnitSimulator full(*program, lifetimes, bytes), folded(*program, lifetimes, bytes, /*folds=*/true);
      full.run(stage.listChains().all.front());
      folded.run(stage.listChains().all.front());
      EXPECT_LT(folded.getNumNodes(), full.getNumNodes());
      EXPECT_EQ(list(full.listKept(0)), list(folded.listKept(0)));
      for (unsigned unit : {0, 1}) {
        EXPECT_EQ(list(full.listReceived(unit)), list(folded.listReceived(unit)));
        EXPECT_EQ(list(full.listArrivingInputs(unit)), list(folded.listArrivingInputs(unit)));
        for (MemorySpace space : {MemorySpace::Device, MemorySpace::Host})
          compare(full, full.getPeak(unit, space), folded, folded.getPeak(unit, space));
      }
    }
  }

  static constexpr const char *ops = "op scale(x: [b], g: [b]) -> (result: [b] = x[b] * g[b]);"
                                     "op scale.dx(dy: [b], g: [b]) -> (result: [b] = dy[b] * g[b]);"
                                     "op loss(x: [b]) -> (result: [] = sum[b](x[b]));"
                                     "op loss.dx[b](dy: []) -> (result: [b] = dy[]);";
};

/// Layers that keep their input; before them stands something large that only forward needs, so that for few layers
/// the peak is not in them.
std::string makeChain(int layers, const std::string &ops, const std::string &pipeline = "") {
  std::string n = std::to_string(layers);
  return "graph Chain { dim B; dim W; mesh (pp = " + std::string(pipeline.empty() ? "1" : "2") +
         "); bind B = 256; bind W = 4096; " + pipeline + ops +
         "op wide[w](x: [b]) -> (result: [b, w] = x[b]);"
         "op narrow(x: [b, w]) -> (result: [b] = sum[w](x[b, w]));"
         "forward {"
         "  %x0 = input : f32[B] {_}; %w = param : f32[B] {_};"
         "  %e0 = wide(%x0) [w = W] : f32[B, W] {_, _}; %e = narrow(%e0) : f32[B] {_};"
         "  %r = repeat layers [" +
         n +
         "] loop 0 (%x = %e : f32[B] {_}) : f32[B] {_} do {"
         "    %g = param : f32[B] {_}; %y = scale(%x, %g) : f32[B] {_}; %z = scale(%y, %g) : f32[B] {_}; yield %z; }"
         "  %l = loss(%r) : f32[]; return %l; }"
         "backward {"
         "  %one = constant 1 : f32[]; %dr = loss.dx(%one) [b = B] : f32[B] {_};"
         "  %de = repeat layers [" +
         n +
         "] loop 0 reverse (%dz = %dr : f32[B] {_}) : f32[B] {_} do {"
         "    %dy = scale.dx(%dz, %g) : f32[B] {_};"
         "    %dg = scale.dx(%dz, %y) : f32[B] {_}; %ag = accumulate(%dg, %g) : f32[B] {_};"
         "    %dx = scale.dx(%dy, %g) : f32[B] {_};"
         "    %dh = scale.dx(%dy, %x) : f32[B] {_}; %ah = accumulate(%dh, %g) : f32[B] {_}; yield %dx; }"
         "  %dw = scale.dx(%de, %x0) : f32[B] {_}; %aw = accumulate(%dw, %w) : f32[B] {_}; }"
         "step { update(%w, %aw); repeat layers [" +
         n + "] loop 0 () do { update(%g, %ag); yield; } } }";
}

TEST_F(FoldedMemoryTest, ChainsOfLayers) {
  for (int layers : {6, 7, 20, 80, 3000, 5000}) // 4096 layers keep as much as what stands before them
    compare(makeChain(layers, ops));
}

/// What a layer keeps is on the host in between.
TEST_F(FoldedMemoryTest, CopiesToTheHost) {
  for (int layers : {7, 20, 5000}) {
    std::string source = makeChain(layers, ops);
    auto replace = [&](const std::string &from, const std::string &to) {
      size_t place = source.find(from);
      ASSERT_NE(place, std::string::npos);
      source.replace(place, from.size(), to);
    };
    replace("%z = scale(%y, %g)", "%k = offload(%y) : f32[B] on host {_}; %z = scale(%y, %g)");
    replace("%dg = scale.dx(%dz, %y)", "%f = fetch(%k) : f32[B] {_}; %dg = scale.dx(%dz, %f)");
    compare(source);
  }
}

/// Two layers as they were, and one that keeps less; the rounds end anywhere.
TEST_F(FoldedMemoryTest, CasesThatTakeTurns) {
  for (int layers : {24, 25, 26, 300, 3001}) {
    std::string source = makeChain(layers, ops), cases;
    for (int i = 0; i < layers; i += 3)
      cases += (cases.empty() ? "0 * " : ", 0 * ") + std::to_string(std::min(2, layers - i)) +
               (i + 2 < layers ? ", 1 * 1" : "");
    std::string count = "layers [" + std::to_string(layers) + "]";
    for (size_t place = 0; (place = source.find(count, place)) != std::string::npos; place += count.size())
      source.insert(place + count.size(), " cases (" + cases + ")");
    auto insert = [&](const std::string &behind, const std::string &text) {
      size_t place = source.find(behind);
      ASSERT_NE(place, std::string::npos);
      source.insert(place + behind.size(), text);
    };
    insert("yield %z; }", " or (%x2 : f32[B] {_}) {"
                          "    %g2 = param : f32[B] {_}; %z2 = scale(%x2, %g2) : f32[B] {_}; yield %z2; }");
    insert("yield %dx; }", " or (%dz2 : f32[B] {_}) {"
                           "    %dx2 = scale.dx(%dz2, %g2) : f32[B] {_}; %dg2 = scale.dx(%dz2, %x2) : f32[B] {_};"
                           "    %ag2 = accumulate(%dg2, %g2) : f32[B] {_}; yield %dx2; }");
    insert("yield; }", " or () { update(%g2, %ag2); yield; }");
    compare(source);
  }
}

TEST_F(FoldedMemoryTest, StagesOfAPipeline) {
  compare(makeChain(40, ops, "pipeline layers over pp { units \"F0 B0\"; units \"F0 B0\"; } "));
}

/// Two values that change places with each iteration, of which one only is used: which of them the last iteration
/// uses depends on how many there are.
TEST_F(FoldedMemoryTest, CarriedValuesThatChangePlaces) {
  for (int layers : {20, 21, 22, 23}) {
    std::string n = std::to_string(layers);
    compare("graph Swap { dim B; mesh (pp = 1); bind B = 256; " + std::string(ops) +
            "forward {"
            "  %x0 = input : f32[B] {_}; %w = param : f32[B] {_};"
            "  %e = scale(%x0, %w) : f32[B] {_}; %f = scale(%e, %w) : f32[B] {_};"
            "  %r, %s, %t = repeat layers [" +
            n +
            "] loop 0 (%x = %e : f32[B] {_}, %a = %e : f32[B] {_}, "
            "%b = %f : f32[B] {_}) : f32[B] {_}, f32[B] {_}, f32[B] {_} do {"
            "    %g = param : f32[B] {_}; %y = scale(%x, %a) : f32[B] {_}; yield %y, %b, %a; }"
            "  %l = loss(%r) : f32[]; return %l; }"
            "backward {"
            "  %one = constant 1 : f32[]; %dr = loss.dx(%one) [b = B] : f32[B] {_};"
            "  %de = repeat layers [" +
            n +
            "] loop 0 reverse (%dy = %dr : f32[B] {_}) : f32[B] {_} do {"
            "    %dg = scale.dx(%dy, %x) : f32[B] {_}; %ag = accumulate(%dg, %g) : f32[B] {_};"
            "    %dx = scale.dx(%dy, %g) : f32[B] {_}; yield %dx; }"
            "  %dw = scale.dx(%de, %x0) : f32[B] {_}; %aw = accumulate(%dw, %w) : f32[B] {_}; }"
            "step { update(%w, %aw); repeat layers [" +
            n + "] loop 0 () do { update(%g, %ag); yield; } } }");
  }
}
} // namespace
