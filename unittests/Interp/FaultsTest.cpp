//===- FaultsTest.cpp - broken programs, and what a proof says of them ----===//
//
// The text of a compiled program is broken at one place, as a broken pass would, past
// what the verifier would say; the proof must see it and point at the right value.
//
//===----------------------------------------------------------------------===//
#include "ParsedGraph.h"
#include "stage/Interp/Prove.h"
#include "stage/Transforms/Passes.h"
#include "stage/Transforms/pipeline/BuildProgram.h"

using namespace stage;
using namespace stage::interp;

namespace {
const char model[] = R"(
graph Mlp {
  dim B; dim S; dim D; dim F;
  mesh (pp = 2, dp = 2, tp = 2);
  bind B = 2, S = 4, D = 3, F = 6;
  microbatches 3;
  rule 0 shard B over dp;
  rule 0 shard F over tp;
  rule 1 at "layers[*].{x, y}" shard S over tp;
  pipeline layers over pp {
    schedule one_f_one_b;
    units "F0 F1 B0 F2 B1 B2";
    units "F0 B0 F1 B1 F2 B2";
  }
  op norm(x: [b, s, d], g: [d]) -> (result: [b, s, d] = x[b, s, d] * rsqrt(mean[d](x[b, s, d] * x[b, s, d])) * g[d]) {
    whole d;
    saves x, g;
  }
  op softmax(x: [b, s, f]) -> (result: [b, s, f] = w / sum[f](w)) {
    let w = exp(x[b, s, f]);
    whole f;
    saves result;
  }
  op linear(x: [b, s, m], w: [m, n]) -> (result: [b, s, n] = sum[m](x[b, s, m] * w[m, n]));
  op gelu(x: [b, s, f]) -> (result: [b, s, f] = x[b, s, f] * erf(x[b, s, f]));
  op add(x0: [b, s, d], x1: [b, s, d]) -> (result: [b, s, d] = x0[b, s, d] + x1[b, s, d]);
  op loss(x: [b, s, d]) -> (result: [] = mean[b, s, d](x[b, s, d] * x[b, s, d]));
  forward {
    %x0 = input : f32[B, S, D];
    %e = param : f32[D, D];
    %xe = linear(%x0, %e) : f32[B, S, D];
    %r = repeat layers [4] loop 0 (%x "layers.x" = %xe : f32[B, S, D]) : f32[B, S, D] do {
      %g "layers.g" = param : f32[D];
      %up "layers.up" = param : f32[D, F];
      %down "layers.down" = param : f32[F, D];
      %n "layers.n" = norm(%x, %g) : f32[B, S, D];
      %p "layers.p" = softmax(%n) : f32[B, S, D];
      %h "layers.h" = linear(%p, %up) : f32[B, S, F];
      %a "layers.a" = gelu(%h) : f32[B, S, F];
      %o "layers.o" = linear(%a, %down) : f32[B, S, D];
      %y "layers.y" = add(%x, %o) : f32[B, S, D];
      yield %y;
    }
    %l = loss(%r) : f32[];
    return %l;
  }
}
)";

class FaultsTest : public ::testing::Test, protected GraphSource {
protected:
  std::unique_ptr<Graph> parse(const std::string &source) {
    auto graph = GraphSource::parse(source);
    EXPECT_TRUE(graph) << messages.str() << source;
    return graph;
  }

  /// The model after all passes, as text.
  std::string compile() {
    auto graph = parse(model);
    PassManager manager(getAllPasses(), diags, {}, llvm::nulls());
    manager.addRemaining(*graph);
    EXPECT_TRUE(manager.run(*graph)) << messages.str();
    std::string source;
    llvm::raw_string_ostream os(source);
    print(os, *graph);
    return os.str();
  }

  /// Replaces the first `from`, which must be there, and proves. The first line of what is said; empty if proved.
  std::string proveBroken(const std::string &from, const std::string &to) {
    std::string source = compile();
    size_t place = source.find(from);
    EXPECT_NE(place, std::string::npos) << from << " is not in " << source;
    source.replace(place, from.size(), to);
    return proveText(source);
  }

  /// `breakIt` may change the graph before it is proved.
  std::string proveText(
      const std::string &source, llvm::function_ref<void(Graph &)> breakIt = [](Graph &) {}) {
    auto reference = parse(model), graph = parse(source);
    breakIt(*graph);
    auto program = buildProgram(*graph, diags);
    EXPECT_TRUE(program) << messages.str();
    bool isProved = prove(*reference, *graph, program.get(), diags).has_value();
    std::string said = messages.str();
    EXPECT_EQ(isProved, said.empty()) << said;
    return said;
  }
};

/// The model, whose softmax is kept on the host from forward to backward.
class HostTest : public FaultsTest {
protected:
  std::string compileOffloaded() {
    std::string source = compile();
    insert(source, "%h \"layers.h\"", "%k \"layers.k\" = offload(%p) : f32[B, S, D] on host {dp, tp, _};\n");
    insert(source, "%n.grad \"layers.n.grad\"", "%f \"layers.f\" = fetch(%k) : f32[B, S, D] {dp, tp, _};\n");
    replace(source, "softmax.grad(%p,", "softmax.grad(%f,");
    return source;
  }
  static void insert(std::string &source, const std::string &before, const std::string &line) {
    replace(source, before, line + before);
  }
  static void replace(std::string &source, const std::string &from, const std::string &to) {
    size_t place = source.find(from);
    ASSERT_NE(place, std::string::npos) << from << " is not in " << source;
    source.replace(place, from.size(), to);
  }
};

bool contains(const std::string &text, llvm::StringRef part) { return llvm::StringRef(text).contains(part); }
} // namespace

TEST_F(FaultsTest, TheProgramItselfIsProved) { EXPECT_EQ(proveBroken("graph Mlp", "graph Mlp"), ""); }

TEST_F(HostTest, WhatIsKeptOnTheHostIsProved) { EXPECT_EQ(proveText(compileOffloaded()), ""); }

TEST_F(HostTest, ReadWithoutFetch) {
  std::string source = compileOffloaded();
  replace(source, "softmax.grad(%f,", "softmax.grad(%k,");
  std::string said = proveText(source);
  EXPECT_TRUE(contains(said, "'layers.k (iteration 3, microbatch 0)' is on the host, but is read on the device"))
      << said;
}

TEST_F(HostTest, FetchedFromTheDevice) {
  std::string source = compileOffloaded();
  replace(source, "fetch(%k)", "fetch(%p)");
  std::string said = proveText(source);
  EXPECT_TRUE(contains(said, "'layers.p (iteration 3, microbatch 0)' is on the device, but is read on the host"))
      << said;
}

TEST_F(HostTest, FetchedBeforeItWasOffloaded) {
  std::string source = compileOffloaded();
  insert(source, "%h \"layers.h\"", "%early = fetch(%k) : f32[B, S, D] {dp, tp, _};\n");
  std::string said = proveText(source, [](Graph &graph) {
    Op *offload = nullptr, *fetch = nullptr;
    Graph::walk(graph.getForward(), [&](Op &op) {
      offload = op.kind == OpKind::Offload ? &op : offload;
      fetch = op.kind == OpKind::Fetch ? &op : fetch;
    });
    fetch->getBlock()->moveBefore(fetch, offload);
  });
  EXPECT_TRUE(contains(said, "'layers.k (iteration 0, microbatch 0)' was never computed or received")) << said;
}

/// Stage 0 runs all forwards first, stage 1 works off each at once. The message of B0 waits for stage 0 to get near its
/// B0, behind forwards whose messages wait for stage 1; the collectives in between wait for the messages (L13).
TEST_F(FaultsTest, SendsThatWaitForEachOther) {
  std::string source = compile();
  auto replace = [&](llvm::StringRef from, llvm::StringRef to) {
    size_t place = source.find(from.str());
    ASSERT_NE(place, std::string::npos) << from.str();
    source.replace(place, from.size(), to.str());
  };
  replace("microbatches 3", "microbatches 5");
  replace("F0 F1 B0 F2 B1 B2", "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4");
  replace("F0 B0 F1 B1 F2 B2", "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
  replace("constant 0.3333333333333333", "constant 0.2");
  std::string unbroken = model;
  unbroken.replace(unbroken.find("microbatches 3"), 14, "microbatches 5");
  auto reference = parse(unbroken), graph = parse(source);
  auto program = buildProgram(*graph, diags);
  ASSERT_TRUE(program) << messages.str();
  // The check of schedules refuses this order: the proof must see it by itself.
  llvm::stable_sort(program->stages[0].units, [](const Unit &a, const Unit &b) { return a.kind < b.kind; });
  EXPECT_FALSE(prove(*reference, *graph, program.get(), diags));
  EXPECT_TRUE(contains(messages.str(), "the program never finishes if sends wait for their recv: rank 0 waits "
                                       "in its unit 2, send "
                                       "to virtual stage 1 of 'r', microbatch 2 [proof-stuck]"))
      << messages.str();
}

TEST_F(FaultsTest, AStageThatForgetsItsStep) {
  auto reference = parse(model), graph = parse(compile());
  auto program = buildProgram(*graph, diags);
  ASSERT_TRUE(program) << messages.str();
  program->stages[1].units.pop_back();
  EXPECT_FALSE(prove(*reference, *graph, program.get(), diags));
  EXPECT_TRUE(contains(messages.str(), "after the step' (iteration 2, microbatch 0) must be computed, but is "
                                       "not on rank 4 [proof-missing]"))
      << messages.str();
}

struct Broken {
  const char *name, *from, *to, *said;
};
void PrintTo(const Broken &broken, std::ostream *os) { *os << broken.name; }
class BrokenTest : public FaultsTest, public ::testing::WithParamInterface<Broken> {};

TEST_P(BrokenTest, IsFoundWhereItIs) {
  std::string said = proveBroken(GetParam().from, GetParam().to);
  EXPECT_TRUE(contains(said, GetParam().said)) << said;
  if (contains(said, "is wrong on rank")) {
    EXPECT_TRUE(contains(said, "in the unsharded program [proof-differs]")) << said;
    EXPECT_TRUE(contains(said, "note: ")) << said;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BrokenTest,
    ::testing::Values(
        Broken{"ForwardChanged", "%y \"layers.y\" = add(%x, %o.1)", "%y \"layers.y\" = add(%x, %x)", "[proof-loss]"},
        Broken{"GatherOverTheWrongAxis", "all_gather(%p) over tp", "all_gather(%p) over dp",
               "'layers.p (iteration 0, microbatch 0)' has pieces on the members of the group that do not fit"},
        Broken{"MaximumForSum", "reduce_scatter(%o) over tp dim 1", "reduce_scatter(%o) over tp dim 1 reduce max",
               "'layers.o' (iteration 0, microbatch 0) is wrong on ranks 0, 1, 2, 3: element"},
        Broken{"LossReducedOverTooFew", "all_reduce(%l) over (dp, tp)", "all_reduce(%l) over dp",
               "'l' (microbatch 0) is wrong on ranks 4, 5, 6, 7: element [] is "},
        Broken{"SliceAtTheWrongPlace", "%xe.1 \"xe\" = slice(%xe) over tp dim 1",
               "%xe.1 \"xe\" = slice(%xe) over dp dim 1", "where its sharding says"},
        Broken{"GradientReducedOverTooFew", "all_reduce(%g.grad.1) over (dp, tp)", "all_reduce(%g.grad.1) over tp",
               "'layers.g.grad' (iteration"},
        Broken{"GradientUsedBeforeItIsReduced", "update(%up, %up.grad.2)", "update(%up, %up.grad.1)",
               "'layers.up.grad' (iteration"},
        Broken{"ContributionDropped", "%x.grad.1 \"layers.x.grad\" = add.1(%y.grad, %x.grad)",
               "%x.grad.1 \"layers.x.grad\" = add.1(%y.grad, %y.grad)", "the gradient of parameter"},
        Broken{"ContributionTwice", "accumulate(%down.grad, %down)",
               "accumulate(%down.grad, %down) : f32[F, D] {tp, _} partial(dp); %again = accumulate(%down.grad, %down)",
               "the gradient of parameter 'layers.down' (iteration 0) is wrong"},
        Broken{
            "SavedValueOfAnotherOp", "gelu.grad(%h, %a.grad)", "gelu.grad(%a, %a.grad)",
            "note: the first gradient that is wrong is 'layers.h.grad' (iteration 3, microbatch 0), made by gelu.grad"},
        Broken{"ScaleOfMicrobatches", "constant 0.3333333333333333", "constant 1",
               "the gradient of parameter 'e' is wrong"},
        Broken{"OpWorksOnOtherPieces", "%h \"layers.h\" = linear(%p.1, %up) [b over dp, n over tp]",
               "%h \"layers.h\" = linear(%p.1, %up) [b over dp, n over tp, m over pp]",
               "index 'm' cannot be split evenly"},
        Broken{"WholeIndexSplit", "softmax(%n) [b over dp, s over tp]", "softmax(%n) [b over dp]",
               "'layers.n (iteration 0, microbatch 0)' holds positions [0..1] along index 's', and the op works on "
               "[0..3]"}));
