//===- FoldParts.cpp - an op that folds parts of an index, and their merge ----===//
//
// Problem: the keys of a decode step are on several ranks. None needs those of the others, if each folds what it has,
// and what they have found is merged ("split-K", flash decoding).
//
//   op attention(q, key, val) -> (result = sum[t](w * val) / sum[t](w), extra lse = log(sum[t](w))) { fold t; }
//
//   of part p, where w is 0 elsewhere:
//   op attention(q, key, val) -> (result: [p, b, s, u], extra lse: [p, b, s]) { fold t by p; }
//   op attention_merge.lse(lse: [p, b, s]) -> [b, s] = log(sum[p](exp(lse)))
//   op attention_merge(result: [p, b, s, u], lse: [p, b, s], lse.all: [b, s]) -> [b, s, u]
//     = sum[p](result * exp(lse)) / exp(lse.all)
//
// Algorithm: deriveFold tells what each sum over t has been so far, of what is carried. Of a part that is the sum over
// the part. In the formula of a result the sum that it alone tells becomes the sum over all parts, and others what is
// merged already tells. So the first of them, which needs all parts, is of what is carried and small, and the others
// are sums over parts, of which each rank may have its own.
//
// Limits: sums, not means; an op that says its FLOPs, and does not say them by `volume`, which an index more would
// multiply; each part must have a position to see.
//
//===----------------------------------------------------------------------===//
#include "stage/IR/algebra/Fold.h"
#include "stage/Symbolic/Size.h"

using namespace stage;
using Kind = Formula::Kind;

namespace {
class PartDeriver {
public:
  PartDeriver(const OpDef &def, unsigned index, OpDefTable &defs)
      : def(def), index(index), defs(defs), fold(deriveFold(def, index, defs)) {}

  FoldParts run() {
    parts.fault = fold.fault;
    if (parts.fault.empty() && (!def.flops || llvm::is_contained(collectSymbols(def.flops), "volume")))
      parts.fault = "it does not say how many FLOPs it costs, other than by 'volume'";
    if (parts.fault.empty() && llvm::any_of(def.indices, [](const IndexInfo &info) { return info.isCompound(); }))
      parts.fault = "it has several indices as one";
    for (auto &[sum, number] : fold.sumNumbers)
      if (parts.fault.empty() && sum->isMean)
        parts.fault = "it takes a mean over '" + def.indices[index].name + "'";
    if (!parts.fault.empty())
      return std::move(parts);
    makePart();
    for (unsigned number = 0; number < fold.carried.size(); ++number)
      makeMerge(fold.carried[number], number);
    for (unsigned result = 0; result < def.getNumVisibleResults(); ++result)
      if (!llvm::is_contained(fold.carried, result))
        makeMerge(result, fold.carried.size());
    for (const FoldParts::Merge &merge : parts.merges)
      if (!merge.def.results.front().formula)
        parts.fault = "its formulas are too long with all their lets written out";
    return std::move(parts);
  }

private:
  const Formula *makeNode(Kind kind, llvm::ArrayRef<const Formula *> children, unsigned ofIndex = 0,
                          Size size = Size()) {
    Formula node{};
    node.kind = kind;
    node.index = ofIndex;
    node.size = size;
    return defs.create(node, {}, children);
  }

  const Formula *rebuild(const Formula *f, llvm::function_ref<const Formula *(const Formula *)> visit) {
    llvm::SmallVector<const Formula *, 3> children;
    for (const Formula *child : f->children)
      children.push_back(visit(child));
    return defs.create(*f, f->indices, children);
  }

  //===--- one part -------------------------------------------------------===//

  void makePart() {
    OpDef &part = parts.part;
    part = def;
    p = part.indices.size();
    IndexInfo info;
    for (info.name = "p"; def.findIndex(info.name);)
      info.name += "p";
    part.indices.push_back(info);
    part.indices[index].by = p;
    const Formula *t = makeNode(Kind::Index, {}, index),
                  *count = makeNode(Kind::SizeOf, {}, 0, defs.getSizes().symbol(info.name));
    const Formula *rounds = defs.call(Formula::Function::Floor, {defs.binary(Kind::Div, t, count)});
    isOfPart = makeNode(
        Kind::Equal, {defs.binary(Kind::Sub, t, defs.binary(Kind::Mul, rounds, count)), makeNode(Kind::Index, {}, p)});
    for (auto &[name, let] : part.lets)
      let = restrict(let);
    for (ResultInfo &result : part.results) {
      result.indices.insert(result.indices.begin(), p);
      if (result.formula)
        result.formula = restrict(result.formula);
    }
    part.declaresSaves = true; // nothing goes backward
    part.savedOperands.clear();
    part.savedResults.clear();
    part.backwardFlops = part.backwardRecompute = Size();
  }

  /// A formula whose sums over the index are over those of one part.
  const Formula *restrict(const Formula *f) {
    if (fold.sumNumbers.count(f))
      return defs.create(*f, f->indices, {makeNode(Kind::Select, {isOfPart, f->children[0], defs.number(0)})});
    return rebuild(f, [&](const Formula *child) { return restrict(child); });
  }

  //===--- all parts ------------------------------------------------------===//

  unsigned getPartOperand(unsigned result) const { return def.operands.size() + result; }
  unsigned getMergedOperand(unsigned result) const { return def.operands.size() + def.results.size() + result; }

  /// What a sum has been so far, where what tells it is of each part, or merged.
  const Formula *tell(const Formula *before, bool ofParts) {
    if (before->kind == Kind::Element && before->operand >= def.operands.size()) {
      unsigned result = fold.carried[before->operand - def.operands.size()];
      llvm::SmallVector<unsigned, 4> dims;
      if (ofParts)
        dims.push_back(p);
      dims.append(def.results[result].indices);
      return defs.element(ofParts ? getPartOperand(result) : getMergedOperand(result), dims);
    }
    return rebuild(before, [&](const Formula *child) { return tell(child, ofParts); });
  }

  /// The formula of a result, all lets written out, which is the one that tells the sums that `solver` solves. Lets
  /// that use each other twice double it at every step; null if it gets too long.
  const Formula *merge(const Formula *f, unsigned solver) {
    if (++length > maxLength)
      return nullptr;
    if (auto sum = fold.sumNumbers.find(f); sum != fold.sumNumbers.end()) {
      const Fold::Sum &known = fold.sums[sum->second];
      bool isOwn = known.solvedBy == solver;
      const Formula *told = tell(known.before, isOwn);
      return isOwn ? defs.sum({p}, told) : told;
    }
    if (f->kind == Kind::Let)
      return merge(def.lets[f->operand].second, solver);
    llvm::SmallVector<const Formula *, 3> children;
    for (const Formula *child : f->children)
      if (children.push_back(merge(child, solver)); !children.back())
        return nullptr;
    return defs.create(*f, f->indices, children);
  }

  static void collect(const Formula *f, llvm::SmallVectorImpl<unsigned> &operands) {
    if (f->kind == Kind::Element && !llvm::is_contained(operands, f->operand))
      operands.push_back(f->operand);
    for (const Formula *child : f->children)
      collect(child, operands);
  }

  llvm::ArrayRef<unsigned> getDims(unsigned operand) const {
    if (operand < def.operands.size())
      return def.operands[operand].indices;
    operand -= def.operands.size();
    return operand < def.results.size() ? parts.part.results[operand].indices
                                        : def.results[operand - def.results.size()].indices;
  }

  std::string getOperandName(unsigned operand) const {
    if (operand < def.operands.size())
      return def.operands[operand].name;
    operand -= def.operands.size();
    return operand < def.results.size() ? def.results[operand].name
                                        : def.results[operand - def.results.size()].name + ".all";
  }

  void makeMerge(unsigned number, unsigned solver) {
    const ResultInfo &result = def.results[number];
    FoldParts::Merge made;
    made.result = number;
    length = 0;
    const Formula *formula = merge(result.formula, solver);
    if (!formula) {
      made.def.results.emplace_back();
      parts.merges.push_back(std::move(made));
      return;
    }
    // The part of the result first: its type is that of what is made.
    if (solver < fold.carried.size())
      made.operands.push_back(getPartOperand(number));
    collect(formula, made.operands);
    auto addIndex = [&](unsigned i) {
      if (!llvm::is_contained(made.indices, i))
        made.indices.push_back(i);
    };
    for (unsigned operand : made.operands)
      llvm::for_each(getDims(operand), addIndex);
    llvm::for_each(result.indices, addIndex);
    llvm::sort(made.indices,
               [&](unsigned a, unsigned b) { return std::pair(a != p, a) < std::pair(b != p, b); }); // parts first
    llvm::SmallVector<unsigned, 8> toIndices(parts.part.indices.size(), 0),
        toOperands(getMergedOperand(def.results.size()), 0);
    for (unsigned i : made.indices) {
      toIndices[i] = made.def.indices.size();
      made.def.indices.push_back({parts.part.indices[i].name});
    }
    auto translate = [&](llvm::ArrayRef<unsigned> dims) {
      llvm::SmallVector<unsigned, 4> translated;
      for (unsigned i : dims)
        translated.push_back(toIndices[i]);
      return translated;
    };
    for (unsigned operand : made.operands) {
      toOperands[operand] = made.def.operands.size();
      made.def.operands.push_back({getOperandName(operand), translate(getDims(operand))});
    }
    made.def.name = def.name + "_merge" + (result.extra ? "." + result.name : "");
    made.def.loc = def.loc;
    made.def.declaredClass = FlopClass::Other;
    ResultInfo all;
    all.name = result.name;
    all.indices = translate(result.indices);
    all.dtype = result.dtype;
    all.formula = defs.translate(formula, toIndices, toOperands);
    made.def.results.push_back(std::move(all));
    parts.merges.push_back(std::move(made));
  }

  const OpDef &def;
  unsigned index, p = 0;
  OpDefTable &defs;
  Fold fold;
  FoldParts parts;
  const Formula *isOfPart = nullptr;
  static constexpr unsigned maxLength = 2000; ///< Nodes.
  unsigned length = 0;
};
} // namespace

FoldParts stage::deriveFoldParts(const OpDef &def, unsigned index, OpDefTable &defs) {
  return PartDeriver(def, index, defs).run();
}
