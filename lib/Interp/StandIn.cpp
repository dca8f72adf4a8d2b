//===- StandIn.cpp - a formula for an operator that has none --------------===//
//
// Problem: an opaque operator says what depends on what and no more. A proof has to
// notice when a pass splits an index that must be whole or forgets a dependency, so
// its stand-in must change whenever anything it may depend on changes.
//
//   opaque op scan(x: [b, s, d], a: [d]) -> [b, s, d] { whole s; }
//
//   scan[b, s, d] = (1 + sin(1.7*s)/4) * tanh( 0.5 * mean[s](x[b, s, d] * cos(s + 0.3)) + 0.5 * a[d] * ... )
//
// Along indices that result and operand share the operand is read at the result's
// position. All its other indices, and those of which an invocation needs all, are
// averaged over with weights that differ from position to position.
//
//===----------------------------------------------------------------------===//
#include "FormulaEvaluator.h"

using namespace stage;
using namespace stage::interp;

const Formula *stage::interp::makeStandIn(const OpDef &def, unsigned resultNumber, OpDefTable &defs) {
  const ResultInfo &result = def.results[resultNumber];
  llvm::SmallVector<unsigned, 4> shared = def.expand(result.indices);
  auto isWhole = [&](unsigned index) { return def.indices[index].whole || def.indices[index].fold; };
  auto position = [&](unsigned index) {
    Formula node{};
    node.kind = Formula::Kind::Index;
    node.index = index;
    return defs.create(node, {}, {});
  };
  using Kind = Formula::Kind;
  const Formula *total = defs.number(0.1 * (resultNumber + 1));
  for (unsigned o = 0; o < def.operands.size(); ++o) {
    const OperandInfo &operand = def.operands[o];
    llvm::SmallVector<unsigned, 4> reduced;
    const Formula *phase = defs.number(0.3 + 0.7 * o + 0.9 * resultNumber);
    for (unsigned index : def.expand(operand.indices))
      if (isWhole(index) || !llvm::is_contained(shared, index)) {
        reduced.push_back(index);
        phase = defs.binary(Kind::Add, phase,
                            defs.binary(Kind::Mul, defs.number(1 + 0.37 * reduced.size()), position(index)));
      }
    const Formula *term =
        defs.binary(Kind::Mul, defs.element(o, operand.indices), defs.call(Formula::Function::Cos, {phase}));
    if (!reduced.empty()) {
      Formula mean{};
      mean.kind = Kind::Reduce;
      mean.isMean = true;
      term = defs.create(mean, reduced, {term});
    }
    total = defs.binary(Kind::Add, total, term);
  }
  const Formula *value = defs.call(Formula::Function::Tanh, {total});
  // Along an index of which the result needs all, its elements differ.
  for (unsigned index : shared)
    if (isWhole(index)) {
      const Formula *wave =
          defs.call(Formula::Function::Sin, {defs.binary(Kind::Mul, defs.number(1.7), position(index))});
      value = defs.binary(Kind::Mul, value,
                          defs.binary(Kind::Add, defs.number(1), defs.binary(Kind::Mul, defs.number(0.25), wave)));
    }
  return value;
}
