//===- CostsTest.cpp - FLOPs, bytes and mask areas against closed forms ---===//
#include "stage/IR/graph/Costs.h"
#include "ParsedGraph.h"
#include "stage/IR/graph/ShardingRules.h"
#include <numeric>

using namespace stage;

namespace {
class CostsTest : public GraphTest {
protected:
  Size size(llvm::StringRef text) { return *sizes.parse(text); }
  /// The n-th op of this kind.
  const Op &find(OpKind kind, unsigned n = 0) {
    const Op *found = nullptr;
    graph->walk([&](Op &op) {
      if (op.kind == kind && !found && n-- == 0)
        found = &op;
    });
    EXPECT_TRUE(found);
    return *found;
  }
  /// Attention with S = T = 16 and cp = 4, its indices split as `indices` says.
  void parseAttention(const std::string &mask, const std::string &indices, const std::string &t = "S") {
    read("graph G { dim B; dim S; dim L; dim E; mesh (cp = 4, tp = 2); bind B = 1, S = 16, L = 8, E = 2; "
         "op attention(q: [b, s, e], k: [b, t, e]) -> (result: [b, s, e] = sum[t](q[b, s, e] * k[b, t, e])) {"
         "  fold t; mask " +
         (mask.empty() ? "causal(s, t)" : mask) +
         "; flops = 4*area*b*e; backward flops = 8*area*b*e; recomputing = 2*area*b*e; }"
         "op attention.grad(q: [b, s, e], k: [b, t, e], g: [b, s, e]) -> (dq: [b, s, e]) vjp attention(0) -> (0);"
         "forward { %q = input : bf16[B, S, E]; %k = input : bf16[B, " +
         t +
         ", E];"
         "  %o = attention(%q, %k) " +
         indices +
         " : bf16[B, S, E];"
         "  %d = attention.grad(%q, %k, %o) " +
         indices + " : bf16[B, S, E]; return %o; } }");
  }
  /// Sum of a size over all coordinates of cp.
  Rational sumOverCp(Size cost) {
    Rational sum;
    for (int64_t i = 0; i < 4; ++i) {
      SizeBinding binding = graph->binding;
      binding.bind("coord.cp", i);
      SizeValue value = evaluate(cost, binding);
      EXPECT_TRUE(value);
      sum = *sum.add(value.value);
    }
    return sum;
  }
};

TEST_F(CostsTest, WholeTriangle) {
  parseAttention("", "");
  EXPECT_EQ(getLocalMaskArea(*graph, find(OpKind::Compute)), size("S*S/2"));
  EXPECT_EQ(getLocalCost(*graph, find(OpKind::Compute)).flops.getTotal(), size("2*B*E*S*S"));
}

TEST_F(CostsTest, BackwardHasTheMaskOfItsForward) {
  parseAttention("", "");
  OpCost cost = getLocalCost(*graph, find(OpKind::Compute, 1));
  EXPECT_EQ(cost.flops.getTotal(), size("4*B*E*S*S"));
  EXPECT_EQ(cost.recomputeFlops, size("B*E*S*S"));
}

TEST_F(CostsTest, ContiguousRowsDependOnTheCoordinate) {
  parseAttention("", "[s over cp]");
  // Rows [i*n, (i+1)*n) against all columns before them, and a triangle.
  Size area = getLocalMaskArea(*graph, find(OpKind::Compute));
  EXPECT_EQ(area, size("(S/cp)*(coord.cp*(S/cp)) + (S/cp)*(S/cp)/2"));
  EXPECT_EQ(sumOverCp(area), Rational::integer(16 * 16 / 2));
}

TEST_F(CostsTest, OuterAxisComesFirst) {
  parseAttention("", "[s over (cp, tp)]");
  EXPECT_EQ(getLocalMaskArea(*graph, find(OpKind::Compute)),
            size("(S/(cp*tp))*((coord.cp*tp + coord.tp)*(S/(cp*tp))) + (S/(cp*tp))*(S/(cp*tp))/2"));
}

TEST_F(CostsTest, MirroredRowsAreBalanced) {
  parseAttention("", "[s over cp mirrored]");
  EXPECT_EQ(getLocalMaskArea(*graph, find(OpKind::Compute)), size("S*S/2/cp"));
}

TEST_F(CostsTest, MirroredBlocksThatGoRoundAreBalanced) {
  for (unsigned rotation = 0; rotation < 4; ++rotation) {
    std::string rotated = rotation ? " rotated " + std::to_string(rotation) : "";
    parseAttention("", "[s over cp mirrored, t over cp mirrored" + rotated + "]");
    EXPECT_EQ(getLocalMaskArea(*graph, find(OpKind::Compute)), size("S*S/2/cp/cp"));
    parseAttention("", "[s over (cp mirrored, tp mirrored), t over cp mirrored" + rotated + "]");
    EXPECT_EQ(getLocalMaskArea(*graph, find(OpKind::Compute)), size("S*S/2/cp/cp/tp"));
  }
}

TEST_F(CostsTest, LayoutIsThatOfTheIndex) {
  parseAttention("", "[b over cp mirrored, s over tp]");
  EXPECT_EQ(getLocalMaskArea(*graph, find(OpKind::Compute)), size("(S/tp)*(coord.tp*(S/tp)) + (S/tp)*(S/tp)/2"));
}

/// What the pair (s, t) adds to the area: 1 inside of the mask, half where its border cuts the square of the pair in
/// two triangles (law L2).
double weigh(llvm::StringRef mask, int64_t s, int64_t t) {
  auto below = [&](int64_t last) { return t < last ? 1.0 : t == last ? 0.5 : 0.0; }; // t <= last
  if (mask.startswith("full"))
    return 1;
  if (mask.startswith("causal(s, t, 8)"))
    return below(s + 8);
  if (mask.startswith("window"))
    return below(s) - below(s - 3);
  if (mask.startswith("blocks"))
    return s / 6 == t / 6 ? below(s) : 0;
  return below(s);
}

/// Every rank's area against an enumeration of its pairs.
TEST_F(CostsTest, AreasOfEveryLayoutAgainstEnumeration) {
  for (std::string mask : {"full(s, t)", "causal(s, t)", "causal(s, t, 8)", "window(s, t, 3)", "blocks(s, t, 6)"})
    for (const char *indices : {"",
                                "[s over cp]",
                                "[s over (cp, tp)]",
                                "[s over cp mirrored]",
                                "[s over (cp mirrored, tp)]",
                                "[s over (tp, cp mirrored)]",
                                "[s over (cp mirrored, tp mirrored)]",
                                "[t over cp]",
                                "[s over cp, t over tp]",
                                "[s over cp mirrored, t over tp]",
                                "[s over cp, t over tp mirrored]",
                                "[s over cp mirrored, t over tp mirrored]",
                                "[b over tp, s over cp mirrored]",
                                "[s over cp, t over cp rotated 2]",
                                "[s over cp mirrored, t over cp mirrored]",
                                "[s over cp mirrored, t over cp]",
                                "[s over cp mirrored, t over cp mirrored rotated 1]",
                                "[s over (cp mirrored, tp mirrored), t over cp mirrored rotated 3]",
                                "[s over cp mirrored, t over (cp mirrored rotated 2, tp mirrored)]",
                                "[s over (cp mirrored, tp), t over cp mirrored rotated 1]",
                                "[t over cp cyclic]",
                                "[b over tp, t over cp cyclic]"}) {
      if (mask[0] == 'b' && llvm::StringRef(indices).contains("cyclic"))
        continue; // several rows: refused
      SCOPED_TRACE(mask + " " + indices);
      bool isOffset = llvm::StringRef(mask).contains("t, 8");
      parseAttention(mask, indices, isOffset ? "S + L" : "S");
      const Op &op = find(OpKind::Compute);
      if (isOffset && graph->mesh.getGroupSize(toSet(op.indexAxes[*op.def->findIndex("t")])) == 8)
        continue; // 24 columns in 16 pieces
      Size area = getLocalMaskArea(*graph, op);
      double total = 0;
      for (int64_t cp = 0; cp < 4; ++cp)
        for (int64_t tp = 0; tp < 2; ++tp) {
          // Pieces as the language defines them, one axis after the other.
          auto positions = [&](llvm::StringRef name, int64_t size) {
            std::vector<int64_t> mine(size);
            std::iota(mine.begin(), mine.end(), 0);
            for (const PlacedAxis &axis : op.indexAxes[*op.def->findIndex(name)]) {
              int64_t n = graph->mesh[axis].size, c = ((axis.id == 0 ? cp : tp) + axis.rotation) % n;
              int64_t blocks = axis.isMirrored() ? 2 * n : n, length = mine.size() / blocks;
              std::vector<int64_t> next(mine.begin() + c * length, mine.begin() + (c + 1) * length);
              for (int64_t i = 0; axis.isCyclic() && i < length; ++i)
                next[i] = mine[i * n + c];
              if (axis.isMirrored())
                next.insert(next.end(), mine.begin() + (blocks - 1 - c) * length, mine.begin() + (blocks - c) * length);
              mine = next;
            }
            return mine;
          };
          double expected = 0;
          for (int64_t s : positions("s", 16))
            for (int64_t t : positions("t", isOffset ? 24 : 16))
              expected += weigh(mask, s, t);
          SizeBinding binding = graph->binding;
          binding.bind("coord.cp", cp);
          binding.bind("coord.tp", tp);
          SizeValue value = evaluate(area, binding);
          ASSERT_TRUE(value);
          EXPECT_EQ(double(value.value.num) / double(value.value.den), expected) << "coordinates " << cp << ", " << tp;
          total += expected;
        }
      if (getPairedAxes(op))
        continue; // one of the steps that together have all
      // All ranks together have all of it: of a copy per coordinate of an axis that splits neither rows nor columns.
      int64_t copies = 8;
      for (const char *name : {"s", "t"})
        copies /= graph->mesh.getGroupSize(toSet(op.indexAxes[*op.def->findIndex(name)]));
      double whole = isOffset         ? 16 * 8 + 128
                     : mask[0] == 'f' ? 256
                     : mask[0] == 'w' ? 16 * 3 - 4.5
                     : mask[0] == 'b' ? 18 + 18 + 8
                                      : 128;
      EXPECT_EQ(total, whole * double(copies));
    }
}

TEST_F(CostsTest, OneRowCountsTheKeysThatItSees) {
  read("graph G { dim S; dim T; bind S = 1, T = 100;"
       "op one(q: [s], k: [t]) -> (result: [s] = sum[t](q[s] * k[t])) { fold t; mask causal(s, t, T); flops = area; }"
       "forward { %q = input : bf16[S]; %k = input : bf16[T + 1]; %o = one(%q, %k) : bf16[S]; return %o; } }");
  EXPECT_EQ(evaluate(getLocalMaskArea(*graph, find(OpKind::Compute)), graph->binding).value, Rational::integer(101));
}

/// Chunks of a sequence add up to all of it.
TEST_F(CostsTest, ChunksAddUp) {
  Rational sum;
  for (const char *offset : {"0", "16", "32", "48"}) {
    parseAttention(std::string("causal(s, t, ") + offset + ")", "", std::string("S + ") + offset);
    Size area = getLocalMaskArea(*graph, find(OpKind::Compute));
    EXPECT_EQ(area, size(std::string("S*") + offset + " + S*S/2"));
    sum = *sum.add(evaluate(area, graph->binding).value);
  }
  EXPECT_EQ(sum, Rational::integer(64 * 64 / 2));
}

TEST_F(CostsTest, SplitColumnsAddUpToTheTriangle) {
  parseAttention("", "[t over cp]");
  EXPECT_EQ(sumOverCp(getLocalMaskArea(*graph, find(OpKind::Compute))), Rational::integer(128));
}

TEST_F(CostsTest, FewerColumnsThanRows) {
  // 16 rows and 8 columns: a triangle of side 8 and 8 full rows below it.
  parseAttention("", "[s over cp]", "L");
  EXPECT_EQ(sumOverCp(getLocalMaskArea(*graph, find(OpKind::Compute))), Rational::integer(8 * 8 / 2 + 8 * 8));
}

TEST_F(CostsTest, ContractionCountsTwoPerMultiplyAdd) {
  read("graph G { dim B; dim M; dim N; mesh (dp = 2, tp = 4);"
       "op linear(x: [b, m], w: [m, n]) -> (result: [b, n] = sum[m](x[b, m] * w[m, n]));"
       "forward { %x = input : bf16[B, M] {dp, _}; %w = param : bf16[M, N] {_, tp};"
       "  %y = linear(%x, %w) [b over dp, n over tp] : bf16[B, N] {dp, tp}; return %y; } }");
  OpCost cost = getLocalCost(*graph, find(OpKind::Compute));
  EXPECT_EQ(cost.flops.getTotal(), size("2*(B/dp)*M*(N/tp)"));
  EXPECT_EQ(cost.recomputeFlops, sizes.zero());
  EXPECT_EQ(cost.bytes, size("2*(B/dp)*M + 2*M*(N/tp) + 2*(B/dp)*(N/tp)"));
}

TEST_F(CostsTest, AnOperandUsedTwiceMovesOnce) {
  read("graph G { dim B; op mul(x: [b], y: [b]) -> (result: [b] = x[b] * y[b]);"
       "forward { %x = input : f32[B]; %y = mul(%x, %x) : f32[B]; return %y; } }");
  EXPECT_EQ(getLocalCost(*graph, find(OpKind::Compute)).bytes, size("8*B"));
}

TEST_F(CostsTest, LookupMovesTheRowsThatItReads) {
  read("graph G { dim B; dim V; dim D; op lookup(t: [b], w: [v, d]) -> (result: [b, d] = w[t[b], d]);"
       "forward { %t = input : i32[B]; %w = param : bf16[V, D]; %y = lookup(%t, %w) : bf16[B, D]; return %y; } }");
  OpCost cost = getLocalCost(*graph, find(OpKind::Compute));
  EXPECT_EQ(cost.flops.getTotal(), sizes.zero());
  EXPECT_EQ(cost.bytes, size("4*B + 2*B*D + 2*B*D"));
}

TEST_F(CostsTest, WhatTakesDimsApartMovesNothing) {
  read("graph G { dim K; dim E; op heads[b, k, e, (k e)](x: [b, (k e)]) -> (result: [b, k, e] = x[b, (k e)]);"
       "forward { %x = input : f32[4, K*E]; %y = heads(%x) : f32[4, K, E]; return %y; } }");
  const Op &op = find(OpKind::Compute);
  EXPECT_TRUE(isView(op));
  EXPECT_EQ(getLocalCost(*graph, op).bytes, sizes.zero());
}

TEST_F(CostsTest, DeclaredBytesWin) {
  read("graph G { dim B; op copy(x: [b]) -> (result: [b] = -x[b]) { bytes = 3*b; }"
       "forward { %x = input : f32[B]; %y = copy(%x) : f32[B]; return %y; } }");
  EXPECT_EQ(getLocalCost(*graph, find(OpKind::Compute)).bytes, size("3*B"));
}

/// A gradient GEMM of [N] and an accumulation into an f32 buffer, both over tp = 4; `contribution` is the GEMM's type.
static std::string makeAccumulation(const std::string &precision, const std::string &contribution,
                                    const std::string &between = "", const std::string &added = "%dw") {
  return "graph G { passes insert-communication; dim B; dim N; mesh (tp = 4); bind B = 2, N = 8; precision weight "
         "bf16, activation bf16, gradient "
         "f32, master f32" +
         precision +
         "; optimizer adamw { state master: f32; state m: f32; state v: f32; flops = 14*volume; }"
         "op dw(x: [b, n], dy: [b, n]) -> (result: " +
         contribution +
         "[n] = sum[b](x[b, n] * dy[b, n]));"
         "forward { %x = input : bf16[B, N] {_, tp}; %w = param : bf16[N] {tp}; return %w; }"
         "backward { %dw = dw(%x, %x) [n = N over tp] : " +
         contribution + "[N] {tp};" + between + "%a = accumulate(" + added +
         ", %w) : f32[N] {tp}; } step { update(%w, %a); } }";
}

TEST_F(CostsTest, TheMakerOfAContributionAddsIt) {
  read(makeAccumulation("", "f32"));
  const Op &maker = find(OpKind::Compute), &accumulate = find(OpKind::Accumulate);
  EXPECT_EQ(getFusedAccumulation(*graph, maker.getResult()), &accumulate);
  EXPECT_FALSE(isSeparateAccumulation(*graph, accumulate));
  // Reads x once (it is both operands); reads and writes the buffer.
  EXPECT_EQ(getLocalCost(*graph, maker).flops.getTotal(), size("2*B*N/tp"));
  EXPECT_EQ(getLocalCost(*graph, maker).bytes, size("2*B*N/tp + 2*4*N/tp"));
  EXPECT_EQ(getLocalCost(*graph, accumulate).flops.getTotal(), sizes.zero());
  EXPECT_EQ(getLocalCost(*graph, accumulate).bytes, sizes.zero());
}

TEST_F(CostsTest, SeparateAccumulationIsAnAddition) {
  read(makeAccumulation(", accumulate separate", "bf16"));
  const Op &maker = find(OpKind::Compute), &accumulate = find(OpKind::Accumulate);
  EXPECT_EQ(getFusedAccumulation(*graph, maker.getResult()), nullptr);
  EXPECT_TRUE(isSeparateAccumulation(*graph, accumulate));
  EXPECT_EQ(getLocalCost(*graph, maker).bytes, size("2*B*N/tp + 2*N/tp"));
  // One addition per element; reads the contribution, reads and writes the buffer.
  EXPECT_EQ(getLocalCost(*graph, accumulate).flops.getTotal(), size("N/tp"));
  EXPECT_EQ(getLocalCost(*graph, accumulate).bytes, size("(2 + 2*4)*N/tp"));
  // Though the contribution has the type of the buffer, as where all is f32.
  read(makeAccumulation(", accumulate separate", "f32"));
  EXPECT_TRUE(isSeparateAccumulation(*graph, find(OpKind::Accumulate)));
  EXPECT_EQ(getLocalCost(*graph, find(OpKind::Accumulate)).bytes, size("3*4*N/tp"));
}

TEST_F(CostsTest, WhatSomethingElseUsesOrAReshardMadeIsAddedByItself) {
  read(makeAccumulation("", "f32",
                        "%again = dw(%x, %x) [n = N over tp] : f32[N] {tp}; %b = accumulate(%dw, %w) : f32[N] {tp};"));
  EXPECT_TRUE(isSeparateAccumulation(*graph, find(OpKind::Accumulate)));
  EXPECT_EQ(getLocalCost(*graph, find(OpKind::Compute)).bytes, size("2*B*N/tp + 4*N/tp"));
  read(makeAccumulation(
      "", "f32", "%g = all_gather(%dw) over tp dim 0 : f32[N] {_}; %s = slice(%g) over tp dim 0 : f32[N] {tp};", "%s"));
  EXPECT_TRUE(isSeparateAccumulation(*graph, find(OpKind::Accumulate)));
  EXPECT_EQ(getLocalCost(*graph, find(OpKind::Accumulate)).bytes, size("3*4*N/tp"));
}

TEST_F(CostsTest, UpdateReadsTheParameterOnlyWithoutAMasterCopy) {
  read(makeAccumulation("", "f32"));
  // Reads the gradient, writes the parameter; reads and writes three states.
  OpCost update = getLocalCost(*graph, find(OpKind::Update));
  EXPECT_EQ(update.flops.getTotal(), size("14*N/tp"));
  EXPECT_EQ(update.bytes, size("(4 + 2 + 3*2*4)*N/tp"));
  // A parameter of f32 has no master copy: it is read and written, as are two states.
  read("graph G { dim N; bind N = 8; optimizer adamw { state master: f32; state m: f32; state v: f32; flops = "
       "14*volume; }"
       "forward { %w = param : f32[N]; return %w; } backward { %g = constant 1 : f32[N]; %a = accumulate(%g, %w) : "
       "f32[N]; }"
       "step { update(%w, %a); } }");
  EXPECT_EQ(getLocalCost(*graph, find(OpKind::Update)).bytes, size("(4 + 2*4 + 2*2*4)*N"));
}

TEST_F(CostsTest, MasterCopyOnlyWhereTheTypeDiffers) {
  read("graph G { optimizer adamw { state master: f32; state m: f32; flops = volume; } forward { return; } }");
  EXPECT_EQ(graph->optimizer.getStates(TensorType{DType::F32}).size(), 1u);
  EXPECT_EQ(graph->optimizer.getStates(TensorType{DType::BF16}).size(), 2u);
  TensorType quantized{DType::F32};
  quantized.quantization = std::make_shared<const Quantization>();
  EXPECT_EQ(graph->optimizer.getStates(quantized).size(), 2u);
}

TEST_F(CostsTest, CollectivesMoveWhatARankPutsIn) {
  read("graph G { passes insert-communication; dim B; dim D; mesh (tp = 4); forward { %x = input : bf16[B, D] {tp, _};"
       "  %a = all_gather(%x) over tp dim 0 : bf16[B, D] {_, _}; %s = slice(%a) over tp dim 1 : bf16[B, D] {_, tp};"
       "  return %s; } }");
  EXPECT_EQ(getLocalCost(*graph, find(OpKind::AllGather)).bytes, size("2*B*D/tp"));
  EXPECT_EQ(getLocalCost(*graph, find(OpKind::Slice)).bytes, sizes.zero());
}
} // namespace
