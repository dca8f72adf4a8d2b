//===- MessagePieces.cpp - messages that ranks of a stage share -----------===//
#include "MessagePieces.h"
#include "stage/IR/text/Text.h"
#include "stage/Transforms/Diagnostics.h"

using namespace stage;

MessagePieces::MessagePieces(Graph &graph) : graph(graph) {
  for (const PlacedAxis &axis : toList(graph.pipeline.scatterGather))
    if (graph.mesh[axis].size > 1 && graph.pipeline.axis != axis.id)
      axes.push_back(axis);
}

/// Why a value goes whole; empty: it does not.
std::string MessagePieces::findObstacle(const Value &value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  int64_t ranks = graph.mesh.getGroupSize(toSet(axes));
  os << "'" << describe(value) << "' is ";
  if (AxisSet split = (value.sharding.getSharded() | value.sharding.partial) & toSet(axes)) {
    os << "not whole on each rank of ";
    printAxes(os, graph.mesh, toList(split));
    return os.str();
  }
  if (!value.sharding.flat.empty() || value.sharding.getListed() || value.type.quantization || isOnHost(value)) {
    os << "kept in a form that is not cut";
    return os.str();
  }
  Size elements = getLocalElements(graph.sizes, graph.mesh, value.type, value.sharding);
  for (unsigned number = 0; number < graph.pipeline.environments.size(); ++number) {
    SizeValue count = evaluateCount(elements, graph.getBinding(number));
    if (count && count.value.num % ranks == 0)
      continue;
    os << elements.str() << " elements, which " << ranks << " ranks do not divide evenly";
    return os.str();
  }
  return "";
}

bool MessagePieces::goesInPieces(const Value &value) {
  auto [it, isNew] = known.try_emplace(&value, false);
  if (!isNew)
    return it->second;
  std::string why = findObstacle(value);
  if (obstacle.empty())
    obstacle = why;
  numCut += why.empty();
  return it->second = why.empty();
}

Block &MessagePieces::getBlock(PhaseKind kind) {
  Block *&block = blocks[unsigned(kind)];
  if (!block)
    block = &graph.addMessageBlock(kind);
  return *block;
}

/// What a value is in pieces, or again as a whole, is about the same thing.
static void makeLike(Value &made, const Value &value, const AxisList &flat) {
  made.sharding = value.sharding;
  made.sharding.flat = flat;
  made.primal = value.primal ? value.primal : const_cast<Value *>(&value);
  made.loc = value.loc;
}

Op *MessagePieces::makeOp(OpKind what, Value *operand, const Value &like, const AxisList &flat, PhaseKind kind) {
  auto op = std::make_unique<Op>(what, like.loc);
  op->axes = axes;
  op->flat = true;
  op->addOperand(operand);
  makeLike(*op->addResult(like.type, like.path), like, flat);
  return getBlock(kind).append(std::move(op));
}

Value *MessagePieces::getPiece(Value *value, PhaseKind kind) {
  Value *&piece = getParts(value, kind).piece;
  if (!piece) {
    piece = getBlock(kind).addArgument(value->type, value->path);
    makeLike(*piece, *value, axes);
  }
  return piece;
}

Op *MessagePieces::getGather(Value *value, PhaseKind kind) {
  Value *piece = getPiece(value, kind);
  Op *&gather = getParts(value, kind).gather;
  if (!gather)
    gather = makeOp(OpKind::AllGather, piece, *value, {}, kind);
  return gather;
}

Op *MessagePieces::getSlice(Value *whole, const Value &sent, PhaseKind kind) {
  Op *&slice = getParts(whole, kind).slice;
  if (!slice)
    slice = makeOp(OpKind::Slice, whole, sent, axes, kind);
  return slice;
}

void MessagePieces::append(std::vector<ProgramItem> &items, ProgramItem message, PhaseKind kind,
                           llvm::ArrayRef<Value *> wholes, bool isPassedThrough) {
  bool isRecv = message.kind == ProgramItem::Kind::Recv;
  std::vector<ProgramItem> gathers;
  for (unsigned i = 0; i < message.values.size() && !message.isLocal; ++i) {
    Value *&value = message.values[i];
    if (!goesInPieces(*value))
      continue;
    // A stage that hands a value on and does not use it leaves it in pieces.
    bool isCarried = message.slots[i] < ProgramItem::skipping;
    message.slots[i] |= ProgramItem::skipping; // pieces are of the top level
    ProgramItem item;
    if (isCarried && isPassedThrough) {
      value = getPiece(value, kind);
    } else if (isRecv) {
      item.carrier = isCarried ? message.carrier : nullptr;
      item.values = {value};
      item.op = getGather(value, kind);
      value = getPiece(value, kind);
      gathers.push_back(std::move(item));
    } else {
      item.op = getSlice(wholes[i], *value, kind);
      value = item.op->getResult();
      items.push_back(std::move(item));
    }
  }
  items.push_back(std::move(message));
  for (ProgramItem &gather : gathers)
    items.push_back(std::move(gather));
}

void MessagePieces::warnOfNone(DiagnosticEngine &diags) const {
  if (!axes.empty() && !numCut && !obstacle.empty())
    diags.report(graph.pipeline.loc, diag::NothingToScatter) << obstacle;
}
