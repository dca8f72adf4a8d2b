//===- MemoryTest.cpp - peaks and flights against closed forms ------------===//
//
// The model is a chain of layers that each keep their input of 4*B bytes, between an
// embedding and a head that keep nothing else of size. Everything that is asserted can
// be counted by hand.
//
//===----------------------------------------------------------------------===//
#include "ParsedGraph.h"
#include "stage/Report/Report.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/pipeline/BuildProgram.h"

using namespace stage;

namespace {
class MemoryTest : public GraphTest {
protected:
  /// Partitions the graph and accounts its memory.
  const MemoryReport &account(const std::string &source) {
    read(source);
    partitionPipeline(*graph, diags);
    program = buildProgram(*graph, diags);
    EXPECT_TRUE(program) << messages.str();
    report = accountMemory(*program, diags);
    EXPECT_FALSE(diags.hasErrors()) << messages.str();
    return report;
  }

  std::unique_ptr<Program> program;
  MemoryReport report;
};

/// `F0 F1 B0 ...` of stage r: the order of Narayanan et al. 2021.
std::string oneForwardOneBackward(unsigned p, unsigned m, unsigned r) {
  std::string units;
  unsigned warmup = std::min(m, p - r);
  auto add = [&](char kind, unsigned i) { units += std::string(1, kind) + std::to_string(i) + " "; };
  for (unsigned i = 0; i < warmup; ++i)
    add('F', i);
  for (unsigned i = 0; i < m - warmup; ++i) {
    add('B', i);
    add('F', warmup + i);
  }
  for (unsigned i = m - warmup; i < m; ++i)
    add('B', i);
  return units;
}

/// Layers y = x * g that keep x (and g, a parameter): 8 of them, B = 256, hence 1024 bytes each. Gradients are f32.
std::string makeChain(unsigned p, unsigned m, const std::string &units) {
  std::string source = "graph Chain { dim B; mesh (pp = " + std::to_string(p) + "); bind B = 256; microbatches " +
                       std::to_string(m) + "; optimizer sgd { state m: f32; flops = volume; } ";
  if (!units.empty())
    source += "pipeline layers over pp { " + units + "} ";
  return source + "op scale(x: [b], g: [b]) -> (result: [b] = x[b] * g[b]);"
                  "op scale.dx(dy: [b], g: [b]) -> (result: [b] = dy[b] * g[b]);"
                  "op loss(x: [b]) -> (result: [] = sum[b](x[b]));"
                  "op loss.dx[b](dy: []) -> (result: [b] = dy[]);"
                  "forward {"
                  "  %x0 = input : f32[B] {_}; %w = param : f32[B] {_};"
                  "  %e = scale(%x0, %w) : f32[B] {_};"
                  "  %r = repeat layers [8] loop 0 (%x = %e : f32[B] {_}) : f32[B] {_} do {"
                  "    %g = param : f32[B] {_}; %y = scale(%x, %g) : f32[B] {_}; yield %y; }"
                  "  %l = loss(%r) : f32[]; return %l; }"
                  "backward {"
                  "  %one = constant 1 : f32[]; %dr = loss.dx(%one) [b = B] : f32[B] {_};"
                  "  %de = repeat layers [8] loop 0 reverse (%dy = %dr : f32[B] {_}) : f32[B] {_} do {"
                  "    %dg = scale.dx(%dy, %x) : f32[B] {_}; %ag = accumulate(%dg, %g) : f32[B] {_};"
                  "    %dx = scale.dx(%dy, %g) : f32[B] {_}; yield %dx; }"
                  "  %dw = scale.dx(%de, %x0) : f32[B] {_}; %aw = accumulate(%dw, %w) : f32[B] {_}; }"
                  "step { update(%w, %aw); repeat layers [8] loop 0 () do { update(%g, %ag); yield; } } }";
}

std::string makePipeline(unsigned p, unsigned m) {
  std::string units;
  for (unsigned r = 0; r < p; ++r)
    units += "units \"" + oneForwardOneBackward(p, m, r) + "\"; ";
  return makeChain(p, m, units);
}

TEST_F(MemoryTest, OneStage) {
  const MemoryReport &memory = account(makeChain(1, 1, ""));
  ASSERT_EQ(memory.stages.size(), 1u);
  const StageMemory &stage = memory.stages[0];
  // 9 parameters, their gradients and one state each.
  EXPECT_EQ(stage.peak[MemoryClass::Parameters], 9 * 1024);
  EXPECT_EQ(stage.peak[MemoryClass::Gradients], 9 * 1024);
  EXPECT_EQ(stage.peak[MemoryClass::Optimizer], 9 * 1024);
  // The input, and of each layer its input. The peak is at the last layer's result; the loss, which nothing reads, and
  // its seed take nothing. In the layers' backward, dg is no tensor, and dx is made when x is gone.
  EXPECT_EQ(stage.peak[MemoryClass::Activations], 9 * 1024);
  EXPECT_EQ(stage.peak[MemoryClass::Temporaries], 1024);
  EXPECT_EQ(stage.peak[MemoryClass::Buffers], 0);
  EXPECT_EQ(stage.describeMoment(), "F0: y, iteration 7");
  EXPECT_EQ(stage.savedPerMicrobatch, std::vector<ByteCount>({9 * 1024}));
}

TEST_F(MemoryTest, SavedBytesAreSymbolic) {
  const MemoryReport &memory = account(makeChain(1, 1, ""));
  ASSERT_EQ(memory.saved.size(), 1u); // the input is not counted, and nothing else is kept outside
  EXPECT_EQ(memory.saved[0].loop->name, "layers");
  EXPECT_EQ(memory.saved[0].bytes, *sizes.parse("4*B"));
  ASSERT_EQ(memory.saved[0].values.size(), 1u);
  EXPECT_EQ(memory.saved[0].values[0].value->path, "x");
}

TEST_F(MemoryTest, InFlightOfOneForwardOneBackward) {
  for (unsigned p = 1; p <= 8; p *= 2)
    for (unsigned m = 1; m <= 8; ++m) {
      const MemoryReport &memory = account(makePipeline(p, m));
      ASSERT_EQ(memory.stages.size(), p);
      for (unsigned r = 0; r < p; ++r)
        EXPECT_EQ(memory.stages[r].inFlight, std::min(m, p - r)) << "p " << p << ", m " << m << ", stage " << r;
    }
}

TEST_F(MemoryTest, ActivationsOfAPipelineStage) {
  // 4 stages of 2 layers, 8 microbatches: stage r holds 4 - r microbatches of 2 layer inputs; stage 0 their inputs too.
  const MemoryReport &memory = account(makePipeline(4, 8));
  for (unsigned r = 0; r < 4; ++r) {
    int64_t perMicrobatch = (r == 0 ? 3 : 2) * 1024;
    EXPECT_EQ(memory.stages[r].savedPerMicrobatch[0], perMicrobatch);
    EXPECT_EQ(memory.stages[r].peak[MemoryClass::Activations], (4 - r) * perMicrobatch);
    EXPECT_EQ(memory.stages[r].peak[MemoryClass::Parameters], (r == 0 ? 3 : 2) * 1024);
  }
}

TEST_F(MemoryTest, InputsAreLoadedOneUnitAhead) {
  // A rank without a pipeline holds in B0 what microbatch 0 kept and the input of microbatch 1, however many follow.
  for (unsigned m : {2, 4, 64}) {
    const MemoryReport &memory = account(makePipeline(1, m));
    EXPECT_EQ(memory.stages[0].peak[MemoryClass::Activations], (9 + 1) * 1024) << m;
  }
}

TEST_F(MemoryTest, ReceivesArePostedOneUnitAhead) {
  // Stage 1 of 2: each unit's gradient does not arrive, but the next forward's input does while backward runs.
  const MemoryReport &memory = account(makePipeline(2, 4));
  EXPECT_EQ(memory.stages[1].unit, "B0");
  EXPECT_EQ(memory.stages[1].peak[MemoryClass::Buffers], 1024);
}

TEST_F(MemoryTest, GPipeHoldsAllMicrobatches) {
  const MemoryReport &memory = account(makeChain(2, 3, "units \"F0 F1 F2 B0 B1 B2\"; units \"F0 F1 F2 B0 B1 B2\"; "));
  EXPECT_EQ(memory.stages[0].inFlight, 3);
  EXPECT_EQ(memory.stages[1].inFlight, 3);
}

TEST_F(MemoryTest, ReportOfAPipeline) {
  account(makePipeline(4, 8));
  Report report = makeReport(*program, this->report, diags);
  EXPECT_EQ(report.ranks, 4);
  EXPECT_EQ(report.parameters, 9 * 256);
  ASSERT_EQ(report.stages.size(), 4u);
  // One send of B elements forward and one back per microbatch and boundary, in rows of their own.
  for (unsigned r = 0; r < 4; ++r) {
    size_t ways = r == 0 || r == 3 ? 1 : 2;
    ASSERT_EQ(report.stages[r].traffic.size(), ways);
    for (const auto &row : report.stages[r].traffic) {
      EXPECT_TRUE(row.isSend);
      EXPECT_EQ(row.count, 8);
      EXPECT_EQ(row.bytes, 8 * 1024);
    }
  }
}
} // namespace
