//===- PrintTypes.cpp - text of types, shardings and small pieces ---------===//
#include "TextWriter.h"
#include "stage/IR/graph/Rule.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace stage;

bool stage::isIdentifier(llvm::StringRef text) {
  auto isStart = [](char c) { return llvm::isAlpha(c) || c == '_' || c == '@'; };
  return !text.empty() && isStart(text.front()) &&
         llvm::all_of(text, [&](char c) { return isStart(c) || llvm::isDigit(c) || c == '.'; });
}

bool stage::isOpKeyword(llvm::StringRef text) {
#define IR_OP(id, name)                                                                                                \
  if (text == name)                                                                                                    \
    return true;
#include "stage/IR/graph/Ops.def"
  return false;
}

void stage::printQuoted(llvm::raw_ostream &os, llvm::StringRef text) {
  os << '"';
  llvm::printEscapedString(text, os);
  os << '"';
}

void stage::printName(llvm::raw_ostream &os, llvm::StringRef name) {
  if (isIdentifier(name))
    os << name;
  else
    printQuoted(os, name);
}

void stage::printNumber(llvm::raw_ostream &os, double number) {
  for (int precision = 1;; ++precision) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    stream << llvm::format("%.*g", precision, number);
    double back;
    // 17 digits always suffice; infinities and NaN need none.
    if (precision == 17 || (!llvm::StringRef(stream.str()).getAsDouble(back) && back == number)) {
      os << text;
      return;
    }
  }
}

/// A graph that does not verify may have axes that its mesh has not.
llvm::SmallVector<std::string, 4> stage::listAxisNames(const Mesh &mesh, llvm::ArrayRef<PlacedAxis> axes) {
  llvm::SmallVector<std::string, 4> names;
  auto isUnknown = [&](const PlacedAxis &axis) { return axis >= mesh.getAxes().size(); };
  if (llvm::any_of(axes, isUnknown)) {
    for (const PlacedAxis &axis : axes)
      names.push_back(isUnknown(axis) ? "<axis " + std::to_string(axis.id) + ">" : mesh[axis].name);
    return names;
  }
  for (auto [name, axis] : mesh.nameAxes(axes))
    names.push_back(name.str() + (axis.isMirrored() ? " mirrored" : "") + (axis.isCyclic() ? " cyclic" : "") +
                    (axis.isListed() ? " by " + mesh.getBlockLengths(axis).str() : "") +
                    (axis.rotation ? " rotated " + std::to_string(axis.rotation) : ""));
  return names;
}

void stage::printAxes(llvm::raw_ostream &os, const Mesh &mesh, llvm::ArrayRef<PlacedAxis> axes) {
  auto names = listAxisNames(mesh, axes);
  os << (names.size() == 1 ? "" : "(");
  llvm::interleaveComma(names, os, [&](const std::string &name) { os << name; });
  os << (names.size() == 1 ? "" : ")");
}

void stage::printStages(llvm::raw_ostream &os, const Op &op) {
  if (!op.stages.empty())
    os << " stages ";
  llvm::interleaveComma(op.stages, os, [&](llvm::ArrayRef<unsigned> group) {
    os << '(';
    llvm::interleaveComma(group, os);
    os << ')';
  });
}

void stage::print(llvm::raw_ostream &os, const Graph &graph, const Extent &extent) {
  if (extent.dim) {
    os << extent.dim->name;
    if (extent.dim->size == extent.size)
      return;
    os << ':';
  }
  std::string text = extent.size ? extent.size.str() : "<none>";
  // A bare name means the dim of that name.
  if (graph.findDim(text))
    os << '(' << text << ')';
  else
    os << text;
}

void stage::print(llvm::raw_ostream &os, const Quantization &quantization) {
  os << " as " << getName(quantization.type);
  if (!quantization.blocks.empty()) {
    os << " by (";
    llvm::interleaveComma(quantization.blocks, os, [&](uint32_t block) { block ? os << block : os << '_'; });
    os << ')';
  }
  os << " with " << getName(quantization.scales);
}

void stage::print(llvm::raw_ostream &os, const Graph &graph, const TensorType &type) {
  os << getName(type.dtype) << '[';
  llvm::interleaveComma(type.shape, os, [&](const Extent &extent) { print(os, graph, extent); });
  os << ']';
  if (type.quantization)
    print(os, *type.quantization);
  if (type.space != MemorySpace::Device)
    os << " on " << getName(type.space);
}

void stage::print(llvm::raw_ostream &os, const Graph &graph, const Sharding &sharding) {
  if (!sharding.dims.empty()) {
    os << '{';
    llvm::interleaveComma(sharding.dims, os, [&](const AxisList &axes) {
      if (axes.empty())
        os << '_';
      else
        printAxes(os, graph.mesh, axes);
    });
    os << '}';
  }
  if (!sharding.flat.empty()) {
    os << " flat ";
    printAxes(os, graph.mesh, sharding.flat);
  }
  if (!sharding.partial)
    return;
  os << (sharding.dims.empty() ? "" : " ") << "partial(";
  if (sharding.reduce != ReduceKind::Sum)
    os << getName(sharding.reduce) << ", ";
  llvm::interleaveComma(listAxisNames(graph.mesh, toList(sharding.partial)), os,
                        [&](const std::string &name) { os << name; });
  os << ')';
}

llvm::StringRef stage::getName(RuleKind kind) {
  static constexpr llvm::StringLiteral names[] = {
#define RULE(id, text) text,
#include "stage/IR/graph/Rules.def"
  };
  return names[unsigned(kind)];
}

void stage::printPlace(llvm::raw_ostream &os, const Op &op) {
  llvm::StringRef usual = op.getNumResults() ? getScope(op.getResult()->path) : llvm::StringRef();
  if (op.scope != usual) {
    os << " in ";
    printQuoted(os, op.scope);
  }
  if (op.virtualStage)
    os << " stage " << *op.virtualStage;
}

Extent stage::inferExtent(const Op &op, unsigned index) {
  auto find = [&](llvm::ArrayRef<unsigned> indices, const TensorType &type) -> const Extent * {
    for (size_t i = 0; i < std::min(indices.size(), type.shape.size()); ++i)
      if (indices[i] == index)
        return &type.shape[i];
    return nullptr;
  };
  for (size_t i = 0; i < std::min<size_t>(op.def->operands.size(), op.getNumOperands()); ++i)
    if (const Extent *extent = find(op.def->operands[i].indices, op.getOperand(i)->type))
      return *extent;
  for (size_t i = 0; i < std::min<size_t>(op.def->results.size(), op.getNumResults()); ++i)
    if (const Extent *extent = find(op.def->results[i].indices, op.getResult(i)->type))
      return *extent;
  return Extent();
}
