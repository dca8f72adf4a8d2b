//===- ConcatLowering.cpp - concatenation along an index ------------------===//
//
// Problem: put tensors one after the other.
//
//   let x[b, s, d] = concat[s](cls[d], p[b, s, d]);      cls: [D], p: [B, N, D]
//
//   op concat(cls: [d], p: [b, n, d]) -> [b, s, d] = where(s < size(1), cls[d], p[b, s - size(1), d])
//
// Algorithm: in every operand s counts its own positions, from 0; the result has all of
// them. An operand without s is one position. The choice among the operands is a tree,
// so that its depth is the logarithm of their number.
//
// Nothing is computed, all is copied: reads and writes are the cost. The gradient of an
// operand is its part of the result's, a sum where the operand lacks an index.
//
// Limits: a block of the concatenation is no concatenation of blocks, so s is whole.
//
//===----------------------------------------------------------------------===//
#include "IndexNames.h"
#include "OpLowering.h"
#include "stage/IRGen/Diagnostics.h"

using namespace stage;

const ast::CallExpr *OpLowering::asConcat(const ast::Expr *formula) {
  auto *call = llvm::dyn_cast<ast::CallExpr>(formula);
  auto *callee = call && call->hasIndices ? llvm::dyn_cast<ast::NameExpr>(call->callee) : nullptr;
  return callee && callee->name == "concat" ? call : nullptr;
}

/// Adds an operand, which has `length` positions along the concatenated index: a dim of its own that no other shares.
bool OpLowering::bindPart(const ast::IndexExpr &access, llvm::StringRef along, Size &length) {
  llvm::StringRef name = llvm::cast<ast::NameExpr>(access.base)->name;
  const sema::CTValue *known = env->find(name);
  if (!known || !known->isForeign()) {
    diags.report(access.loc(), diag::NotATensor).range(access.range) << name;
    return false;
  }
  TensorArgument argument{static_cast<Value *>(known->getForeign()), access.range};
  llvm::ArrayRef<Extent> shape = argument.value->type.shape;
  if (access.subscripts.size() != shape.size()) {
    diags.report(access.loc(), diag::WrongSubscriptCount).range(access.range)
        << name << int64_t(shape.size()) << int64_t(access.subscripts.size());
    return false;
  }
  if (!checkMixing(name, argument.value, access.range))
    return false;
  OperandInfo info{name.str(), {}};
  for (unsigned number = 1; operandByName.count(info.name); ++number)
    info.name = name.str() + std::to_string(number);
  length = graph.sizes.one();
  for (unsigned d = 0; d < shape.size(); ++d) {
    auto *index = llvm::cast<ast::NameExpr>(access.subscripts[d]); // Sema has refused others
    if (index->name == along) {
      info.indices.push_back(addUnnamedIndex(shape[d], access.range.Start));
      def.indices.back().whole = true;
      length = shape[d].size;
      continue;
    }
    std::optional<unsigned> bound = bindIndex(index, shape[d], argument, d);
    if (!bound)
      return false;
    info.indices.push_back(*bound);
  }
  operandByName[info.name] = def.operands.size();
  def.operands.push_back(std::move(info));
  operands.push_back(argument.value);
  return true;
}

/// The element of one of the operands from `first` up to `last`: operand i has the positions up to `ends[i]`, along its
/// index `own[i]`.
const Formula *OpLowering::choosePart(unsigned first, unsigned last, unsigned along, llvm::ArrayRef<Size> ends,
                                      llvm::ArrayRef<unsigned> own) {
  auto sizeOf = [&](Size size) {
    if (std::optional<Rational> constant = size.getConstant(); constant && constant->isInteger())
      return graph.defs.number(double(int64_t(constant->num)));
    Formula node{};
    node.kind = Formula::Kind::SizeOf;
    node.size = size;
    return graph.defs.create(node, {}, {});
  };
  if (first + 1 < last) {
    unsigned middle = (first + last) / 2;
    Formula node{};
    node.kind = Formula::Kind::Select;
    const Formula *isBefore = graph.defs.binary(Formula::Kind::Less, indexFormula(along), sizeOf(ends[middle - 1]));
    return graph.defs.create(
        node, {}, {isBefore, choosePart(first, middle, along, ends, own), choosePart(middle, last, along, ends, own)});
  }
  llvm::SmallVector<const Formula *, 4> subscripts;
  for (unsigned index : def.operands[first].indices) {
    const Formula *position = indexFormula(index);
    if (index == own[first]) {
      position = indexFormula(along);
      if (first > 0)
        position = graph.defs.binary(Formula::Kind::Sub, position, sizeOf(ends[first - 1]));
    }
    subscripts.push_back(position);
  }
  Formula node{};
  node.kind = Formula::Kind::Element;
  node.operand = first;
  return graph.defs.create(node, {}, subscripts);
}

/// The formula of a concatenation; the op's operands and indices are made with it.
const Formula *OpLowering::lowerConcat(const ast::CallExpr &call) {
  llvm::StringRef along = llvm::cast<ast::NameExpr>(call.indices.front())->name;
  std::optional<unsigned> declared; // `s: T`
  if (auto known = indexByName.find(along); known != indexByName.end())
    declared = known->second;
  llvm::SmallVector<Size, 4> ends;
  llvm::SmallVector<unsigned, 4> own; // per operand; ~0u: it is one position
  Size total = graph.sizes.zero();
  for (const ast::Argument &argument : call.args) {
    Size length;
    if (!bindPart(*llvm::cast<ast::IndexExpr>(argument.value), along, length))
      return nullptr;
    auto &indices = def.operands.back().indices;
    auto found = llvm::find_if(indices, [&](unsigned index) { return !isOwnIndex[index]; });
    own.push_back(found == indices.end() ? ~0u : *found);
    total = total + length;
    ends.push_back(total);
  }
  unsigned index = declared ? *declared : addIndex(along, {nullptr, total}, call.loc());
  if (extents[index].size != total)
    graph.obligations.add(Obligations::Kind::Equal, total, extents[index].size, call.loc(),
                          ("the parts of index '" + along + "' together").str());
  def.indices[index].whole = true;
  def.flops = graph.sizes.zero();
  // An operand that lacks an index of the result gets the sum of its gradients.
  llvm::SmallVector<unsigned, 4> others; // of the result
  for (unsigned i = 0; i < def.indices.size(); ++i)
    if (isOwnIndex[i] && i != index)
      others.push_back(i);
  Size additions = graph.sizes.zero();
  for (unsigned part = 0; part < def.operands.size(); ++part) {
    auto isSpread = [&](unsigned i) { return !llvm::is_contained(def.operands[part].indices, i); };
    if (llvm::none_of(others, isSpread))
      continue;
    Size volume = own[part] == ~0u ? graph.sizes.one() : getIndexSymbol(graph.sizes, own[part]);
    for (unsigned i : others)
      volume = volume * getIndexSymbol(graph.sizes, i);
    additions = additions + volume;
  }
  if (!additions.isConstant(0))
    def.backwardFlops = additions;
  return choosePart(0, def.operands.size(), index, ends, own);
}
