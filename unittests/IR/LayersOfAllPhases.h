//===- LayersOfAllPhases.h - a graph whose layers are changed --*- C++ -*-===//
//
// What the tests of changes to a repeat's iterations have in common.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_UNITTESTS_IR_LAYERSOFALLPHASES_H
#define STAGE_UNITTESTS_IR_LAYERSOFALLPHASES_H

#include "ParsedGraph.h"
#include "stage/IR/verify/Verifier.h"

namespace stage {

class LayersTest : public ::testing::Test, protected GraphSource {
protected:
  static std::string print(Graph &graph) {
    std::string text;
    llvm::raw_string_ostream out(text);
    stage::print(out, graph);
    return out.str();
  }

  static constexpr const char *head = R"(graph M {
  passes differentiate;
  dim B;
  bind B = 2;
  optimizer sgd { flops = volume; }
  op scale(x: [b], w: [b]) -> (result: [b] = x[b] * w[b]);
  op sum(x: [b]) -> (result: [] = sum[b](x[b]));
  op sum.dx[b](dy: []) -> (result: [b] = dy[]);
)";

  /// Forward, backward and step of so many layers; a param of each and one that all share.
  std::unique_ptr<Graph> parseLayers(unsigned count) {
    std::string layers = "[" + std::to_string(count) + "]";
    return parse(std::string(head) + R"(
  forward {
    %x = input : f32[B];
    %g = param : f32[B];
    %y = repeat layers )" +
                 layers + R"( loop 0 (%h "layers.h" = %x : f32[B]) : f32[B] do {
      %w "layers.w" = param : f32[B];
      %s "layers.s" = scale(%h, %w) : f32[B];
      %t "layers.t" = scale(%s, %g) : f32[B];
      yield %t;
    }
    %loss = sum(%y) : f32[];
    return %loss;
  }
  backward {
    %loss.grad = constant 1 : f32[] of %loss;
    %y.grad = sum.dx(%loss.grad) : f32[B] of %y from %loss;
    %x.grad = repeat layers )" +
                 layers + R"( loop 0 reverse (%t.grad "layers.t.grad" = %y.grad : f32[B] of %t) : f32[B] do {
      %s.grad "layers.s.grad" = scale(%t.grad, %g) : f32[B] of %s from %t;
      %g.grad = scale(%s, %t.grad) : f32[B] from %t in "layers";
      %g.grad.1 "g.grad" = accumulate(%g.grad, %g) : f32[B];
      %h.grad "layers.h.grad" = scale(%s.grad, %w) : f32[B] of %h from %s;
      %w.grad "layers.w.grad" = scale(%h, %s.grad) : f32[B] from %s;
      %w.grad.1 "layers.w.grad" = accumulate(%w.grad, %w) : f32[B];
      yield %h.grad;
    }
  }
  step {
    update(%g, %g.grad.1);
    repeat layers )" +
                 layers + R"( loop 0 () do {
      update(%w, %w.grad.1) in "layers";
      yield;
    }
  }
})");
  }
  static Op *findRepeat(Graph &graph) {
    for (auto &op : graph.getForward())
      if (op->kind == OpKind::Repeat)
        return op.get();
    return nullptr;
  }
};

} // namespace stage

#endif // STAGE_UNITTESTS_IR_LAYERSOFALLPHASES_H
