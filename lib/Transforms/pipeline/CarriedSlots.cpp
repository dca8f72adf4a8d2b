//===- CarriedSlots.cpp - what must move where repeats are cut ------------===//
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
    if (llvm::any_of(argument->getUses(),
                     [&](const std::pair<Op *, unsigned> &use) { return use.first != body.getTerminator(); }))
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

Block &getBody(const CarryingRepeat &repeat, int64_t n) {
  return repeat.op->getBody(repeat.op->reverse ? repeat.count - 1 - n : n);
}

/// Something reads a result, and does not only carry it on into a repeat that does not read it.
bool isResultRead(const Value &result, const llvm::DenseMap<const Op *, llvm::BitVector> &readOnEntry) {
  return llvm::any_of(result.getUses(), [&](const std::pair<Op *, unsigned> &use) {
    auto entered = readOnEntry.find(use.first);
    return entered == readOnEntry.end() || entered->second.test(use.second);
  });
}

/// From the last iteration to the first. Gives what is read before that.
llvm::BitVector findReadSlots(CarryingRepeat &repeat, const llvm::DenseMap<const Op *, llvm::BitVector> &readOnEntry) {
  llvm::BitVector read(repeat.op->getNumResults());
  for (auto &result : repeat.op->getResults())
    read[result->getNumber()] = isResultRead(*result, readOnEntry);
  const Block *last = nullptr;
  bool isSettled = false;
  for (int64_t n = repeat.count; n >= 0; --n) {
    if (repeat.places.contains(n))
      repeat.slots[n].isRead = read;
    if (n == 0)
      break;
    Block &body = getBody(repeat, n - 1);
    if (&body == last && isSettled)
      continue;
    llvm::BitVector before = stepBack(body, read);
    isSettled = before == read;
    last = &body;
    read = std::move(before);
  }
  return read;
}

/// From the first iteration to the last. Gives what the results are.
Constants findConstantSlots(CarryingRepeat &repeat, const llvm::DenseMap<const Op *, Constants> &results) {
  Constants constants;
  for (const Value *operand : repeat.op->getOperands()) {
    auto given = results.find(operand->getOp());
    constants.push_back(given == results.end() ? getConstant(operand) : given->second[operand->getNumber()]);
  }
  const Block *last = nullptr;
  bool isSettled = false;
  for (int64_t n = 0; n <= repeat.count; ++n) {
    if (repeat.places.contains(n))
      repeat.slots[n].constants = constants;
    if (n == repeat.count)
      break;
    Block &body = getBody(repeat, n);
    if (&body == last && isSettled)
      continue;
    Constants after = stepOn(body, constants);
    isSettled = after == constants;
    last = &body;
    constants = std::move(after);
  }
  return constants;
}
} // namespace

void stage::findCarriedSlots(llvm::MutableArrayRef<CarryingRepeat> repeats) {
  llvm::DenseMap<const Op *, llvm::BitVector> readOnEntry;
  for (CarryingRepeat &repeat : llvm::reverse(repeats))
    readOnEntry[repeat.op] = findReadSlots(repeat, readOnEntry);
  llvm::DenseMap<const Op *, Constants> results;
  for (CarryingRepeat &repeat : repeats)
    results[repeat.op] = findConstantSlots(repeat, results);
}
