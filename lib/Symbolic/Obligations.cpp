//===- Obligations.cpp - what sizes owe, and whether it is paid -----------===//
#include "stage/Symbolic/Diagnostics.h"
#include "stage/Symbolic/SizeMessages.h"
#include "llvm/Support/FormatVariadic.h"

using namespace stage;

void Obligations::add(Kind kind, Size left, Size right, SMLoc loc, const llvm::Twine &reason) {
  if (known.emplace(kind, left.getNode(), right.getNode(), loc.getPointer()).second)
    obligations.push_back({kind, left, right, loc, reason.str()});
}

void Obligations::noteDecision(Size margin, SMLoc loc, const llvm::Twine &condition) {
  if (knownMargins.insert(margin.getNode()).second)
    decisions.push_back({Kind::Positive, margin, Size(), loc, condition.str()});
}

/// Whether an obligation that is not Positive holds for these values.
static bool holds(Obligations::Kind kind, const Rational &left, const Rational &right) {
  switch (kind) {
  case Obligations::Kind::Divides: {
    std::optional<Rational> quotient = left.div(right);
    return quotient && quotient->isInteger();
  }
  case Obligations::Kind::Equal:
    return left == right;
  case Obligations::Kind::AtMost:
    return left.compare(right) <= 0;
  case Obligations::Kind::Positive:
    return left.num > 0;
  }
  llvm_unreachable("covered switch");
}

/// `D/tp = 512`, or the value alone where the size is a constant.
static std::string describe(Size size, const Rational &value) {
  return size.getConstant() ? value.str() : llvm::formatv("'{0}' = {1}", size.str(), value.str()).str();
}

/// `H = 32, tp = 3`: the symbols of both sizes that are not described by themselves.
static std::string describeSymbols(Size left, Size right, const SizeBinding &binding) {
  std::set<std::string> names;
  for (Size size : {left, right})
    if (size && size.getSymbol().empty())
      for (std::string &name : collectSymbols(size))
        names.insert(std::move(name));
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name + " = " + std::to_string(*binding.lookup(name));
  return text;
}

/// `dp.1*tp`: parts of an axis, whose names no program says.
static bool namesAtoms(Size size) {
  return size && llvm::any_of(collectSymbols(size), [](const std::string &name) {
           auto [base, number] = llvm::StringRef(name).rsplit('.');
           return !number.empty() && llvm::all_of(number, llvm::isDigit);
         });
}

static DiagnosticBuilder report(const Obligations::Obligation &owed, const Rational &left, const Rational &right,
                                const SizeBinding &binding, DiagnosticEngine &diags) {
  std::string first = describe(owed.left, left);
  if (owed.kind == Obligations::Kind::Positive)
    return diags.report(owed.loc, diag::SizeNotPositive) << first << owed.reason;
  std::string second = namesAtoms(owed.right) ? right.str() : describe(owed.right, right);
  if (owed.kind == Obligations::Kind::Divides) {
    DiagnosticBuilder error = diags.report(owed.loc, diag::SizeNotDivisible) << first << second << owed.reason;
    // A size that has a name can be written otherwise.
    if (!owed.left.getSymbol().empty())
      noteNearest(error, owed.left, owed.right, binding);
    return error;
  }
  if (owed.kind == Obligations::Kind::Equal)
    return diags.report(owed.loc, diag::SizesDiffer) << first << second << owed.reason;
  return diags.report(owed.loc, diag::SizeTooLarge) << first << second << owed.reason;
}

/// Whether an obligation is broken because a division is: with `D / H` no integer, D/H is no size either.
static bool followsFrom(const Obligations::Obligation &owed, llvm::ArrayRef<const Obligations::Obligation *> broken) {
  if (owed.kind != Obligations::Kind::Divides || !owed.right.getConstant())
    return false;
  std::vector<std::string> symbols = collectSymbols(owed.left);
  return llvm::any_of(broken, [&](const Obligations::Obligation *division) {
    std::vector<std::string> both = collectSymbols(division->left);
    llvm::append_range(both, collectSymbols(division->right));
    return llvm::all_of(both, [&](const std::string &symbol) { return llvm::is_contained(symbols, symbol); });
  });
}

/// A number that does not divide is the one to change, rather than what it divides, which may have been chosen for
/// other reasons; several divisors may all be right, and the number too small.
static void setOrigins(DiagnosticBuilder &message, const Obligations::Obligation &owed, const SizeBinding &binding) {
  bool isOfOne = collectSymbols(owed.right).size() == 1;
  for (Size size : {isOfOne ? owed.right : owed.left, isOfOne ? owed.left : owed.right})
    for (const std::string &name : collectSymbols(size))
      if (std::optional<int64_t> value = binding.lookup(name); value && *value != 1)
        setOrigin(message, findOrigin(size.getContext(), name));
}

bool Obligations::check(const SizeBinding &binding, DiagnosticEngine &diags) const {
  bool allHold = true;
  std::vector<const Obligation *> broken; ///< Divisions by something that has a name.
  for (const Obligation &owed : obligations) {
    SizeValue values[2];
    bool failed = false;
    for (int side = 0; side < 2 && !failed; ++side) {
      Size size = side ? owed.right : owed.left;
      if (!size)
        continue;
      values[side] = evaluate(size, binding);
      bool zeroDivisor = side && owed.kind == Kind::Divides && values[side] && values[side].value.num == 0;
      SizeError error = zeroDivisor ? SizeError::DivisionByZero : values[side].error;
      failed = error != SizeError::None;
      if (error == SizeError::UnboundSymbol)
        diags.report(owed.loc, diag::SizeUnbound) << size.str() << values[side].symbol << owed.reason;
      else if (error == SizeError::NoEntry)
        diags.report(owed.loc, diag::SizeWithoutEntry) << size.str() << values[side].symbol << owed.reason;
      else if (error == SizeError::DivisionByZero)
        diags.report(owed.loc, diag::SizeDividesByZero) << size.str() << owed.reason;
      else if (error == SizeError::TooDeep)
        diags.report(owed.loc, diag::SizeTooDeep) << owed.reason;
      else if (failed)
        diags.report(owed.loc, diag::SizeOverflows) << size.str() << owed.reason;
    }
    allHold &= !failed;
    if (failed || holds(owed.kind, values[0].value, values[1].value))
      continue;
    allHold = false;
    if (followsFrom(owed, broken))
      continue;
    DiagnosticBuilder message = report(owed, values[0].value, values[1].value, binding, diags);
    if (owed.kind == Kind::Divides && !owed.right.getConstant()) {
      setOrigins(message, owed, binding);
      broken.push_back(&owed);
    }
    std::string symbols = describeSymbols(owed.left, namesAtoms(owed.right) ? Size() : owed.right, binding);
    if (!symbols.empty())
      message.note(SMLoc(), diag::WhereValues) << symbols;
  }
  return allHold;
}
