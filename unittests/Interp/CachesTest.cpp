//===- CachesTest.cpp - what units leave in caches for later ones ---------===//
//
// Two layers of causal attention over six tokens: at once, without caches, and in units of 4, 1 and 1 of them, with
// caches of keys and values. The numbers of the six positions must be the same.
//
//===----------------------------------------------------------------------===//
#include "ParsedGraph.h"
#include "Reference.h"
#include "stage/Interp/Prove.h"

using namespace stage;
using namespace stage::interp;

namespace {
/// `{0}` head, `{1}` what becomes of keys and values, `{2}` the phases behind forward.
const char *const head = R"(
  dim B; dim S; dim T; dim M; dim D;
  inference;
  op project(x: [b, s, d], w: [d, e]) -> (result: [b, s, e] = sum[d](x[b, s, d] * w[d, e]));
  op attend(q: [b, s, d], k: [b, t, d], v: [b, t, e]) -> (result: [b, s, e] = sum[t](let_w * v[b, t, e])) {
    let let_w = where(t <= s + size(t) - size(s), exp(sum[d](q[b, s, d] * k[b, t, d])), 0);
  }
)";

std::string getLayers(llvm::StringRef sequence, llvm::StringRef suffix, bool isFirst, bool isCached) {
  std::string s = suffix.str(), type = "f32[B, " + sequence.str() + ", D]", all = isCached ? "f32[B, T, D]" : type;
  std::string text = "%x" + s + " = input : " + type + ";\n%y" + s + " = repeat layers [2] loop 0 (%h" + s +
                     " \"layers.h\" = %x" + s + " : " + type + ") : " + type + " do {\n";
  if (isFirst)
    text += "%wk \"layers.wk\" = param : f32[D, D]; %wv \"layers.wv\" = param : f32[D, D];\n";
  if (isFirst && isCached)
    text +=
        "%keys \"layers.keys\" = cache [g, 2] : f32[B, M, D]; %vals \"layers.vals\" = cache [g, 2] : f32[B, M, D];\n";
  text += "%k" + s + " = project(%h" + s + ", %wk) : " + type + "; %v" + s + " = project(%h" + s + ", %wv) : " + type +
          ";\n";
  std::string k = "%k" + s, v = "%v" + s;
  if (isCached) {
    text += "%ks" + s + " = append(%keys, " + k + ") dim 1 : " + all + "; %vs" + s + " = append(%vals, " + v +
            ") dim 1 : " + all + ";\n";
    k = "%ks" + s;
    v = "%vs" + s;
  }
  return text + "%o" + s + " = attend(%h" + s + ", " + k + ", " + v + ") : " + type + "; yield %o" + s +
         ";\n}\nreturn %y" + s + ";\n";
}

class CachesTest : public ::testing::Test, protected GraphSource {
protected:
  static constexpr int64_t numTokens = 6;

  /// What the layers make of all tokens, in parts of a unit each.
  std::vector<TensorRef> run(Graph &graph, llvm::ArrayRef<std::pair<int64_t, int64_t>> parts, const Tensor &tokens) {
    Sources sources(graph);
    std::vector<TensorRef> results;
    for (unsigned m = 0; m < parts.size(); ++m) {
      llvm::SmallVector<Positions, 4> dims = tokens.dims;
      dims[1].clear();
      for (int64_t s = parts[m].first; s < parts[m].second; ++s)
        dims[1].push_back(s);
      Tensor part = *extract(tokens, dims);
      part.dims[1] = allPositions(dims[1].size());
      Graph::walk(*getForward(graph, m), [&](Op &op) {
        if (op.kind == OpKind::Input)
          sources.set(op.getResult(), m, std::make_shared<Tensor>(part));
      });
    }
    Reference reference(graph, sources);
    EXPECT_TRUE(reference.run(diags)) << messages.str();
    for (unsigned m = 0; m < parts.size(); ++m)
      results.push_back(reference.getOutput(0, m));
    return results;
  }

  /// The largest difference between what is made at once and in units.
  double compare(llvm::StringRef units) {
    const std::string bind = "bind B = 2, D = 3, M = 8, g = 0, S = ";
    std::unique_ptr<Graph> whole =
        parse("graph Whole {" + std::string(head).insert(std::string(head).find("inference"), bind + "6, T = 6;") +
              "forward {\n" + getLayers("S", "", true, false) + "} }");
    std::unique_ptr<Graph> cached =
        parse("graph Cached {" +
              std::string(head).insert(std::string(head).find("inference"),
                                       "dim N;" + bind + "4, T = 4, N = 1; microbatches 3;") +
              "pipeline layers { units \"" + units.str() + "\"; }\nforward {\n" + getLayers("S", "", true, true) +
              "}\ndecode {\n" + getLayers("N", ".1", false, true) + "} }");
    EXPECT_TRUE(whole && cached) << messages.str();
    if (!whole || !cached)
      return NAN;
    Tensor tokens({allPositions(2), allPositions(numTokens), allPositions(3)});
    for (size_t i = 0; i < tokens.data.size(); ++i)
      tokens.data[i] = 0.1 * double(i * 7 % 11) - 0.4;
    TensorRef expected = run(*whole, {{0, 6}}, tokens).front();
    std::vector<TensorRef> found = run(*cached, {{0, 4}, {4, 5}, {5, 6}}, tokens);
    double most = 0;
    int64_t first = 0;
    for (const TensorRef &part : found) {
      forEachElement(part->dims, [&](int64_t linear, llvm::ArrayRef<int64_t> local) {
        int64_t at = (local[0] * numTokens + local[1] + first) * 3 + local[2];
        most = std::max(most, std::fabs(part->data[linear] - expected->data[at]));
      });
      first += part->dims[1].size();
    }
    EXPECT_EQ(first, numTokens);
    return most;
  }
};
} // namespace

TEST_F(CachesTest, UnitsComputeWhatOneForwardDoes) { EXPECT_LT(compare("F0 D1(T=5) D2(T=6)"), 1e-12); }

/// The last token goes on with the cache of another batch, which nobody has filled.
TEST_F(CachesTest, EntriesAreApart) { EXPECT_GT(compare("F0 D1(T=5) D2(T=6,g=1)"), 1e-3); }

/// One position is left out, so that the last token sees what was there before.
TEST_F(CachesTest, PositionsCount) { EXPECT_GT(compare("F0 D1(T=5) D2(T=7)"), 1e-3); }
