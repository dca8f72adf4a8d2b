//===- AnalyzeTest.cpp - facts that follow from formulas ------------------===//
//
// Each expectation is reasoned from the formula in the test, not from what analyze()
// said: a wrong `shardable` makes a wrong trace that looks right.
//
//===----------------------------------------------------------------------===//
#include "ParsedGraph.h"
#include "gtest/gtest.h"

using namespace stage;

namespace {
class AnalyzeTest : public ::testing::Test {
protected:
  /// Parses operators and takes the last one.
  const OpDef &parse(llvm::StringRef ops) {
    parsed.emplace(("graph Test { " + ops + " }").str());
    EXPECT_TRUE(parsed->graph) << parsed->messages.str();
    return *parsed->graph->defs.all().back();
  }

  /// Names of the indices that may be split, in order: "b s n".
  static std::string getShardable(const OpDef &def) {
    std::string names;
    for (unsigned i = 0; i < def.indices.size(); ++i)
      if (def.shardable[i])
        names += (names.empty() ? "" : " ") + def.indices[i].name;
    return names;
  }

  static std::string select(const OpDef &def, const llvm::SmallVector<bool, 4> &flags) {
    std::string names;
    for (unsigned i = 0; i < def.operands.size(); ++i)
      if (flags[i])
        names += (names.empty() ? "" : " ") + def.operands[i].name;
    return names;
  }
  static std::string getLinear(const OpDef &def) { return select(def, def.linearIn); }
  static std::string getNeeded(const OpDef &def) { return select(def, def.derivativeNeeds); }
  static std::string getDataDependent(const OpDef &def) { return select(def, def.dataDependent); }

  /// FLOPs as text, over the index names.
  std::string getFlopsText(const OpDef &def) {
    SizeContext &ctx = parsed->sizes;
    llvm::SmallVector<Size, 8> sizes;
    for (const IndexInfo &index : def.indices)
      sizes.push_back(ctx.symbol(index.name));
    return getFlops(ctx, def, sizes, ctx.symbol("area")).getTotal().str();
  }

  static ReduceKind getReduceKind(const OpDef &def, llvm::StringRef index) {
    return def.reduceKind[*def.findIndex(index)];
  }

  std::optional<ParsedGraph> parsed;
};
} // namespace

//===----------------------------------------------------------------------===//
// Products and sums
//===----------------------------------------------------------------------===//

TEST_F(AnalyzeTest, Linear) {
  const OpDef &def = parse("op linear(x: [b, s, m], w: [m, n]) -> (y: [b, s, n] = sum[m](x[b, s, m] * w[m, n]));");
  EXPECT_TRUE(def.isProduct);
  EXPECT_FALSE(def.isSum);
  EXPECT_FALSE(def.isElementwise);
  EXPECT_EQ(getLinear(def), "x w");
  EXPECT_EQ(getNeeded(def), "x w");
  EXPECT_EQ(getShardable(def), "b s m n");
  EXPECT_TRUE(def.reduced[*def.findIndex("m")]);
  EXPECT_EQ(def.flopClass, FlopClass::Contraction);
  EXPECT_EQ(getFlopsText(def), "2*b*m*n*s"); // a multiply-add counts two
}

TEST_F(AnalyzeTest, ContractionOfSeveralIndices) {
  const OpDef &def =
      parse("op out(o: [b, k, g, e], w: [k, g, e, d]) -> (y: [b, d] = sum[k, g, e](o[b, k, g, e] * w[k, g, e, d]));");
  EXPECT_TRUE(def.isProduct);
  EXPECT_EQ(getShardable(def), "b k g e d");
}

TEST_F(AnalyzeTest, ScaledSquareIsNoProductOfDifferentOperands) {
  const OpDef &scale = parse("op scale(x: [b]) -> (y: [b] = 3 * x[b] / size(b));");
  EXPECT_TRUE(scale.isProduct);
  EXPECT_TRUE(scale.isElementwise);
  EXPECT_EQ(getLinear(scale), "x");
  EXPECT_EQ(getNeeded(scale), "");
  const OpDef &square = parse("op square(x: [b]) -> (y: [b] = x[b] * x[b]);");
  EXPECT_FALSE(square.isProduct);
  EXPECT_EQ(getLinear(square), "");
  EXPECT_EQ(getNeeded(square), "x");
}

TEST_F(AnalyzeTest, Hadamard) {
  const OpDef &def = parse("op gate(x: [b, f], y: [b, f]) -> (z: [b, f] = x[b, f] * y[b, f]);");
  EXPECT_TRUE(def.isProduct);
  EXPECT_TRUE(def.isElementwise);
  EXPECT_EQ(def.flopClass, FlopClass::Other);
  EXPECT_EQ(getFlopsText(def), "b*f");
}

TEST_F(AnalyzeTest, SumOfOperands) {
  const OpDef &def =
      parse("op bias(x: [b, s, d], y: [b, s, d], z: [d]) -> (r: [b, s, d] = x[b, s, d] + y[b, s, d] + z[d]);");
  EXPECT_TRUE(def.isSum);
  EXPECT_TRUE(def.isElementwise);
  // Affine in each alone: with y present, f(2x) is not 2 f(x).
  EXPECT_EQ(getLinear(def), "");
  EXPECT_EQ(getNeeded(def), ""); // saves nothing (L3)
  EXPECT_EQ(getFlopsText(def), "2*b*d*s");
  EXPECT_FALSE(parse("op twice(x: [b]) -> (r: [b] = x[b] + x[b]);").isSum);
  EXPECT_FALSE(parse("op shift(x: [b]) -> (r: [b] = x[b] + 1);").isSum);
}

TEST_F(AnalyzeTest, MeanIsALinearReduction) {
  const OpDef &def = parse("op loss(x: [b, s]) -> (l: [] = mean[b, s](x[b, s]));");
  EXPECT_TRUE(def.isProduct);
  EXPECT_EQ(getLinear(def), "x");
  EXPECT_EQ(getNeeded(def), "");
  EXPECT_EQ(getShardable(def), "b s");
  EXPECT_EQ(getFlopsText(def), "b*s");
}

//===----------------------------------------------------------------------===//
// Nonlinear operators
//===----------------------------------------------------------------------===//

TEST_F(AnalyzeTest, LayerNormNeedsItsRowWhole) {
  const OpDef &def = parse(R"(
    op layer_norm(x: [b, s, m], g: [m], c: [m]) -> (y: [b, s, m] = (x[b, s, m] - mu) * rsqrt(var + 1e-05) * g[m] + c[m]) {
      let mu = mean[m](x[b, s, m]);
      let var = mean[m](x[b, s, m] * x[b, s, m]) - mu * mu;
      whole m;
    })");
  EXPECT_FALSE(def.isProduct);
  EXPECT_FALSE(def.isElementwise);
  EXPECT_EQ(getShardable(def), "b s");
  EXPECT_EQ(getLinear(def), "");
  EXPECT_EQ(getNeeded(def), "x g"); // the shift's value is not needed
}

TEST_F(AnalyzeTest, SoftmaxIsWholeWithoutSayingSo) {
  const OpDef &def = parse("op softmax(x: [b, t]) -> (y: [b, t] = exp(x[b, t] - max[t](x[b, t])) / sum[t](exp(x[b, t] "
                           "- max[t](x[b, t]))));");
  EXPECT_EQ(getShardable(def), "b");
  EXPECT_FALSE(def.isElementwise);
  EXPECT_EQ(getNeeded(def), "x");
}

TEST_F(AnalyzeTest, DropoutIsLinearAndSavesNoOperand) {
  const OpDef &def = parse("op dropout(x: [b, d]) -> (y: [b, d] = x[b, d] * random(0.9));");
  EXPECT_FALSE(def.isProduct); // its derivative draws the same numbers again, which no product does
  EXPECT_TRUE(def.isElementwise);
  EXPECT_EQ(getLinear(def), "x");
  EXPECT_EQ(getNeeded(def), "");
  EXPECT_EQ(getShardable(def), "b d");
}

TEST_F(AnalyzeTest, MaxReduction) {
  const OpDef &def = parse("op largest(x: [b, s]) -> (y: [b] = max[s](x[b, s]));");
  EXPECT_EQ(getShardable(def), "b s"); // pieces are maxed
  EXPECT_EQ(getReduceKind(def, "s"), ReduceKind::Max);
  EXPECT_EQ(getLinear(def), "");
  EXPECT_EQ(getNeeded(def), "x");
}

TEST_F(AnalyzeTest, OnlySumsPassThroughLinearOperations) {
  // The maximum of negated pieces is not the negated maximum of the pieces.
  EXPECT_EQ(getShardable(parse("op f(x: [b, s]) -> (y: [b] = -max[s](x[b, s]));")), "b");
  EXPECT_EQ(getShardable(parse("op f(x: [b, s], a: [b]) -> (y: [b] = max[s](x[b, s]) * a[b]);")), "b");
  EXPECT_EQ(getShardable(parse("op f(x: [b, s]) -> (y: [b] = max[s](x[b, s]) + max[s](x[b, s]));")), "b");
  EXPECT_EQ(getShardable(parse("op f(x: [b, s]) -> (y: [b] = -sum[s](x[b, s]));")), "b s");
  EXPECT_EQ(getShardable(parse("op f(x: [b, s], a: [b]) -> (y: [b] = sum[s](x[b, s]) * a[b]);")), "b s");
  EXPECT_EQ(getShardable(parse("op f(x: [b, s]) -> (y: [b] = sum[s](x[b, s]) - sum[s](abs(x[b, s])));")), "b s");
  // Neither does a sum of maxima, nor a maximum of sums, come in pieces of the inner index.
  EXPECT_EQ(getShardable(parse("op f(x: [b, s, t]) -> (y: [b] = sum[s](max[t](x[b, s, t])));")), "b s");
  EXPECT_EQ(getShardable(parse("op f(x: [b, s, t]) -> (y: [b] = max[s](sum[t](x[b, s, t])));")), "b s");
}

TEST_F(AnalyzeTest, ReductionsThatAreNotOutermost) {
  // What is added to a reduction would be added once per piece.
  EXPECT_EQ(getShardable(parse("op f(x: [b, s], a: [b]) -> (y: [b] = sum[s](x[b, s]) + a[b]);")), "b");
  // A product of partial sums is no partial sum.
  EXPECT_EQ(getShardable(parse("op f(x: [b, s], z: [b, t]) -> (y: [b] = sum[s](x[b, s]) * sum[t](z[b, t]));")), "b");
  EXPECT_EQ(getShardable(parse("op f(x: [b, s]) -> (y: [b] = log(sum[s](exp(x[b, s]))));")), "b");
  EXPECT_EQ(getShardable(parse("op f(x: [b, s]) -> (y: [b] = 1 / sum[s](x[b, s]));")), "b");
}

TEST_F(AnalyzeTest, CrossEntropyInPieces) {
  // Vocabulary-parallel: maximum, sum of exponentials and the picked logit each come in pieces of v.
  const OpDef &sum = parse("op sum_exp(x: [t, v], m: [t]) -> (y: [t] = sum[v](exp(x[t, v] - m[t])));");
  EXPECT_EQ(getShardable(sum), "t v");
  EXPECT_EQ(getReduceKind(sum, "v"), ReduceKind::Sum);
  EXPECT_EQ(getLinear(sum), "");
  EXPECT_EQ(getNeeded(sum), "x m");
  const OpDef &pick = parse("op pick(x: [t, v], label: [t]) -> (y: [t] = sum[v](where(v == label[t], x[t, v], 0)));");
  EXPECT_EQ(getShardable(pick), "t v");
  EXPECT_EQ(getLinear(pick), "x");
  EXPECT_EQ(getNeeded(pick), "label");
  EXPECT_EQ(getDataDependent(pick), "label");
}

//===----------------------------------------------------------------------===//
// Subscripts
//===----------------------------------------------------------------------===//

TEST_F(AnalyzeTest, LookupIsAOneHotContraction) {
  const OpDef &def = parse("op lookup(id: [b, s], table: [v, d]) -> (y: [b, s, d] = table[id[b, s], d]);");
  EXPECT_TRUE(def.isLookup);
  EXPECT_FALSE(def.isProduct);
  EXPECT_FALSE(def.isElementwise);
  EXPECT_EQ(getShardable(def), "b s v d"); // v: rows of other ranks count as zero
  EXPECT_EQ(getLinear(def), "table");
  EXPECT_EQ(getDataDependent(def), "id");
  EXPECT_EQ(getNeeded(def), "id");
  EXPECT_EQ(getFlopsText(def), "0");
}

TEST_F(AnalyzeTest, ProductOfGathersDoesNotComeInPieces) {
  const OpDef &def = parse("op f(id: [b], p: [v], q: [u]) -> (y: [b] = p[id[b]] * q[id[b]]);");
  EXPECT_EQ(getShardable(def), "b");
}

TEST_F(AnalyzeTest, AddendOfAGatherWouldBeAddedOncePerPiece) {
  EXPECT_EQ(getShardable(parse("op f(id: [b], p: [v]) -> (y: [b] = p[id[b]]);")), "b v");
  EXPECT_EQ(getShardable(parse("op f(id: [b], p: [v], c: [b]) -> (y: [b] = p[id[b]] + c[b]);")), "b");
  EXPECT_EQ(getShardable(parse("op f(id: [b], p: [v], c: [b]) -> (y: [b] = c[b] - p[id[b]]);")), "b");
}

TEST_F(AnalyzeTest, RopeShiftsAnIndex) {
  const OpDef &def =
      parse("op rope(x: [b, s, e]) -> (y: [b, s, e] = x[b, s, e] * cos(s) + x[b, s, size(e) / 2 - e] * sin(s));");
  EXPECT_EQ(getShardable(def), "b s");
  EXPECT_FALSE(def.isElementwise);
  EXPECT_FALSE(def.isProduct);
  EXPECT_EQ(getLinear(def), "x");
  EXPECT_EQ(getNeeded(def), "");
}

//===----------------------------------------------------------------------===//
// Fused and declared
//===----------------------------------------------------------------------===//

static const char attention[] = R"(
    op attention(q: [b, s, k, g, e], key: [b, t, k, e], val: [b, t, k, u])
        -> (o: [b, s, k, g, u] = sum[t](w * val[b, t, k, u]) / sum[t](w), extra lse: f32[b, s, k, g]) {
      let w = where(t <= s, exp(sum[e](q[b, s, k, g, e] * key[b, t, k, e]) * rsqrt(size(e))), 0);
      whole e, u;
      fold t;
      mask causal(s, t);
      class = attention;
      flops = 2*area*b*g*k*(e + u);
      backward flops = 4*area*b*g*k*(e + u);
      recomputing = 2*area*b*e*g*k;
      saves q, key, val, o;
    })";

TEST_F(AnalyzeTest, FusedAttention) {
  const OpDef &def = parse(attention);
  EXPECT_EQ(getShardable(def), "b s k g");
  EXPECT_EQ(def.flopClass, FlopClass::Attention);
  EXPECT_FALSE(def.isProduct);
  // The weights do not depend on val.
  EXPECT_EQ(getLinear(def), "val");
  EXPECT_EQ(getNeeded(def), "q key val");
  EXPECT_EQ(def.getNumVisibleResults(), 1u);
  EXPECT_EQ(getFlopsText(def), "2*area*b*e*g*k + 2*area*b*g*k*u");
}

TEST_F(AnalyzeTest, BackwardOfAFusedOperator) {
  const OpDef &def = parse((attention + llvm::Twine(R"(
    op attention.grad[b, s, k, g, e, t, u](q: [b, s, k, g, e], key: [b, t, k, e], val: [b, t, k, u], o: [b, s, k, g, u],
                      lse: [b, s, k, g], d_o: [b, s, k, g, u])
        -> (d_q: [b, s, k, g, e], d_key: [b, t, k, e], d_val: [b, t, k, u]) vjp attention(0) -> (0, 1, 2) {
      whole e, u;
      fold t;
    })"))
                               .str());
  ASSERT_TRUE(def.vjpOf);
  EXPECT_EQ(def.flopClass, FlopClass::Attention);
  EXPECT_EQ(getShardable(def), "b s k g");
  EXPECT_EQ(getFlopsText(def), "4*area*b*e*g*k + 4*area*b*g*k*u");
  llvm::SmallVector<Size, 8> sizes;
  for (const IndexInfo &index : def.indices)
    sizes.push_back(parsed->sizes.symbol(index.name));
  EXPECT_EQ(getRecomputeFlops(parsed->sizes, def, sizes, parsed->sizes.symbol("area")).str(), "2*area*b*e*g*k");
}

TEST_F(AnalyzeTest, BackwardOfDeclaredFlopsCountsTwiceUnlessLinear) {
  EXPECT_EQ(getFlopsText(parse("op gelu(x: [b]) -> (y: [b] = x[b] * erf(x[b])) { flops = 8*volume; }"
                               "op gelu.grad(x: [b], dy: [b]) -> (dx: [b]) vjp gelu(0) -> (0);")),
            "16*b");
  const OpDef &def = parse("op dropout(x: [b]) -> (y: [b] = x[b] * random(0.9)) { flops = 2*volume; }"
                           "op dropout.grad(dy: [b]) -> (dx: [b]) vjp dropout(0) -> (0);");
  EXPECT_EQ(getFlopsText(def), "2*b");
  EXPECT_TRUE(def.isElementwise);
}

TEST_F(AnalyzeTest, BackwardOfAFormulaCountsItsGradients) {
  // Both sides of the product, the slope of erf and the product with it, and the sum of the two.
  EXPECT_EQ(getFlopsText(parse("op gelu(x: [b]) -> (y: [b] = x[b] * erf(x[b]));"
                               "op gelu.grad(x: [b], dy: [b]) -> (dx: [b]) vjp gelu(0) -> (0);")),
            "5*b");
  EXPECT_EQ(getFlopsText(parse("op dropout(x: [b]) -> (y: [b] = x[b] * random(0.9));"
                               "op dropout.grad(dy: [b]) -> (dx: [b]) vjp dropout(0) -> (0);")),
            "b");
}

TEST_F(AnalyzeTest, ClassOfFlops) {
  // Declared FLOPs are of the class of the formula; the class that is said is that of all.
  EXPECT_EQ(parse("op f(x: [b], w: [b]) -> (y: [] = sum[b](x[b] * w[b]) + 1) { flops = 9*b; }").flopClass,
            FlopClass::Contraction);
  EXPECT_EQ(parse("op f(x: [b], w: [b]) -> (y: [] = sum[b](x[b] * w[b])) { class = other; }").flopClass,
            FlopClass::Other);
  EXPECT_EQ(parse("op norm(x: [b]) -> (y: [] = sum[b](x[b] * x[b])) { flops = 9*b; }").flopClass, FlopClass::Other);
  EXPECT_EQ(parse("op f(x: [b], t: [u]) -> (y: [b] = sum[u](x[b] * t[u])) { fold u; }").flopClass,
            FlopClass::Contraction);
}

TEST_F(AnalyzeTest, LetsStandInNoProduct) {
  // A gradient made of the factors would have no lets.
  EXPECT_FALSE(parse("op f(x: [b]) -> (y: [b] = x[b] * a) { let a = size(b) / 2; }").isProduct);
  EXPECT_FALSE(parse("op f(x: [b]) -> (y: [b] = x[b] * a) { let a = random(0.5); }").isProduct);
}

TEST_F(AnalyzeTest, OpaqueNeedsEverything) {
  const OpDef &def = parse("op sort(x: [b, n], y: [b]) -> (z: [b, n], r: [b]) { opaque; }");
  EXPECT_FALSE(def.isElementwise);
  EXPECT_EQ(getLinear(def), "");
  EXPECT_EQ(getNeeded(def), "x y");
  EXPECT_EQ(getShardable(def), "b"); // n is absent from the second result
  EXPECT_EQ(getFlopsText(def), "0");
}

TEST_F(AnalyzeTest, AnyNumberOfOperands) {
  // x0 * ... * x69: linear in each, and the derivative in one needs all others.
  std::string operands, product, names;
  for (unsigned i = 0; i < 70; ++i) {
    std::string name = "x" + std::to_string(i);
    operands += (i ? ", " : "") + name + ": [b]";
    product += (i ? " * " : "") + name + "[b]";
    names += (i ? " " : "") + name;
  }
  const OpDef &def = parse("op f(" + operands + ") -> (y: [b] = " + product + ");");
  EXPECT_EQ(getLinear(def), names);
  EXPECT_EQ(getNeeded(def), names);
}

TEST_F(AnalyzeTest, SeveralResults) {
  // n is reduced in one result and stands in the other: pieces of it would be partial in one only.
  EXPECT_EQ(getShardable(parse("op f(x: [b, n]) -> (y: [b, n] = x[b, n] * 2, z: [b] = sum[n](x[b, n]));")), "b");
  // One index, two kinds of partial results.
  EXPECT_EQ(getShardable(parse("op f(x: [b, n]) -> (y: [b] = max[n](x[b, n]), z: [b] = sum[n](x[b, n]));")), "b");
  // Linear in an operand means: every result is.
  EXPECT_EQ(getLinear(parse("op f(x: [b], y: [b]) -> (z: [b] = x[b] * 2, r: [b] = x[b] * y[b]);")), "x");
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

TEST_F(AnalyzeTest, EqualOperatorsAreOneAndNamesAreUnique) {
  parse("op f(x: [b]) -> (y: [b] = -x[b]); op f.1(x: [b]) -> (y: [b] = exp(x[b]));");
  OpDefTable &defs = parsed->graph->defs;
  OpDef same = *defs.find("f.1");
  same.name = "f";
  EXPECT_EQ(defs.add(same), defs.find("f.1"));
  OpDef other = *defs.find("f.1");
  other.name = "f";
  other.stopGradient = true;
  EXPECT_EQ(defs.add(other)->name, "f.2");
}
