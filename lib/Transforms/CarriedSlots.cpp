//===- CarriedSlots.cpp - what must move where a repeat is cut ------------===//
#include "CarriedSlots.h"

using namespace stage;

namespace {
using Constants = llvm::SmallVector<const Value *, 4>;

/// The slot of the same body's argument that is yielded to a slot as it is; nothing if anything else is.
std::optional<unsigned> getHandedOn(Block &body, unsigned slot) {
  const Value *given = body.getTerminator()->getOperand(slot);
  return given->isArgument() && given->getBlock() == &body ? std::optional<unsigned>(given->getNumber()) : std::nullopt;
}

/// Slots whose arguments something reads, be it in another phase, and not only hands on.
llvm::BitVector findReadArguments(Block &body) {
  llvm::BitVector read(body.getArguments().size());
  for (auto &argument : body.getArguments())
    if (llvm::any_of(argument->getUses(), [&](const std::pair<Op *, unsigned> &use) {
          return use.first != body.getTerminator();
        }))
      read.set(argument->getNumber());
  return read;
}

llvm::BitVector stepBack(Block &body, const llvm::BitVector &readAfter) {
  llvm::BitVector read = findReadArguments(body);
  for (unsigned slot : readAfter.set_bits())
    if (std::optional<unsigned> from = getHandedOn(body, slot))
      read.set(*from);
  return read;
}

const Value *getConstant(const Value *value) {
  return value->getOp() && value->getOp()->kind == OpKind::Constant ? value : nullptr;
}

Constants stepOn(Block &body, const Constants &before) {
  Constants after;
  for (unsigned slot = 0; slot < before.size(); ++slot) {
    std::optional<unsigned> from = getHandedOn(body, slot);
    after.push_back(from ? before[*from] : getConstant(body.getTerminator()->getOperand(slot)));
  }
  return after;
}
} // namespace

llvm::DenseMap<int64_t, CarriedSlots> stage::findCarriedSlots(Op &repeat, int64_t count,
                                                              const llvm::DenseSet<int64_t> &places) {
  llvm::DenseMap<int64_t, CarriedSlots> slots;
  auto getBody = [&](int64_t n) { return &repeat.getBody(repeat.reverse ? count - 1 - n : n); };
  llvm::BitVector read(repeat.getNumResults());
  for (auto &result : repeat.getResults())
    read[result->getNumber()] = !result->getUses().empty();
  const Block *last = nullptr;
  bool isSettled = false;
  for (int64_t n = count; n >= 0; --n) {
    if (places.contains(n))
      slots[n].isRead = read;
    if (n == 0)
      break;
    Block *body = getBody(n - 1);
    if (body == last && isSettled)
      continue;
    llvm::BitVector before = stepBack(*body, read);
    isSettled = before == read;
    last = body;
    read = std::move(before);
  }
  Constants constants;
  for (const Value *operand : repeat.getOperands())
    constants.push_back(getConstant(operand));
  last = nullptr;
  for (int64_t n = 0; n <= count; ++n) {
    if (places.contains(n))
      slots[n].constants = constants;
    if (n == count)
      break;
    Block *body = getBody(n);
    if (body == last && isSettled)
      continue;
    Constants after = stepOn(*body, constants);
    isSettled = after == constants;
    last = body;
    constants = std::move(after);
  }
  return slots;
}
