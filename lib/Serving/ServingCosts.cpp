//===- ServingCosts.cpp - what an iteration computes and reads ------------===//
#include "stage/Serving/ServingCosts.h"
#include "stage/Serving/Diagnostics.h"
#include "stage/Support/Files.h"
#include "stage/Support/Json.h"
#include "stage/Symbolic/Quantity.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::serving;
using llvm::StringRef;
using llvm::json::Value;

double IterationCost::evaluate(const Iteration &iteration) const {
  return perIteration + perToken * double(iteration.newTokens) + perCachedToken * double(iteration.cachedTokens) +
         perPair * double(iteration.attendedPairs) + perArea * (double(iteration.twiceArea) / 2) +
         perSequence * double(iteration.sequences.size()) + perLogit * double(iteration.logits);
}

/// More than any machine computes in an iteration; sums stay finite.
constexpr double maxCost = 1e30;

namespace {
class CostReader {
public:
  CostReader(StringRef text, DiagnosticEngine &diags) : text(text), diags(diags) {}

  bool read(ServingCosts &result) {
    std::string error;
    std::optional<Value> value = parseJson(text, error);
    const llvm::json::Object *object = value ? value->getAsObject() : nullptr;
    if (!object)
      return fail("", value ? "this is no object" : error);
    for (const auto &[name, costs] : *object)
      if (IterationCost *cost = name == "flops" ? &result.flops : name == "bytes" ? &result.bytes : nullptr; !cost)
        fail(name, "there is no '" + name.str() + "', but 'flops' and 'bytes'");
      else if (!costs.getAsObject())
        fail(name, "'" + name.str() + "' is no object");
      else
        readCost(*costs.getAsObject(), name == "flops" ? Dimension{.operations = 1} : Dimension::ofBytes(), *cost);
    return isGood;
  }

private:
  /// A number, or a text with a unit, `"15GFLOP"`.
  static std::optional<double> readAmount(const Value &value, Dimension dimension) {
    if (auto text = value.getAsString()) {
      std::optional<Quantity> amount = parseQuantity(*text, dimension);
      return amount ? std::optional(amount->value.toDouble()) : std::nullopt;
    }
    auto number = value.getAsNumber();
    return number ? std::optional<double>(*number) : std::nullopt;
  }

  void readCost(const llvm::json::Object &costs, Dimension dimension, IterationCost &result) {
    for (const auto &[name, value] : costs) {
      double *place = name == "iteration"      ? &result.perIteration
                      : name == "token"        ? &result.perToken
                      : name == "cached_token" ? &result.perCachedToken
                      : name == "pair"         ? &result.perPair
                      : name == "area"         ? &result.perArea
                      : name == "sequence"     ? &result.perSequence
                      : name == "logit"        ? &result.perLogit
                                               : nullptr;
      std::optional<double> number = readAmount(value, dimension);
      if (!place)
        fail(name, "there is no '" + name.str() +
                       "', but 'iteration', 'token', 'cached_token', 'pair', 'area', 'sequence' and 'logit'");
      else if (!number || !(*number >= 0 && *number <= maxCost))
        fail(name, "'" + name.str() + "' is no number from 0 to 1e30, and no text such as \"" + dimension.getExample() +
                       "\"");
      else
        *place = *number;
    }
  }

  bool fail(StringRef field, const std::string &reason) {
    size_t at = field.empty() ? StringRef::npos : text.find(("\"" + field + "\"").str());
    SMLoc place = SMLoc::getFromPointer(text.data() + (at == StringRef::npos ? 0 : at));
    diags.report(place, diag::BadCosts) << reason;
    return isGood = false;
  }

  StringRef text;
  DiagnosticEngine &diags;
  bool isGood = true;
};
} // namespace

bool stage::serving::readCosts(StringRef path, ServingCosts &result, DiagnosticEngine &diags) {
  auto buffer = readFile(path, diags);
  if (!buffer)
    return false;
  unsigned id = diags.getSources().AddNewSourceBuffer(std::move(buffer), SMLoc());
  return CostReader(diags.getSources().getMemoryBuffer(id)->getBuffer(), diags).read(result);
}
