//===- SurchargeTerms.cpp - what surcharges depend on ---------------------===//
#include "SurchargeTerms.h"
#include "Attributes.h"
#include "stage/Support/Decimal.h"
#include "llvm/ADT/StringSet.h"
#include <algorithm>
#include <cassert>

using namespace stage;
using namespace stage::trace;
using ChakraProtoMsg::AttributeProto;
using llvm::StringRef;

Ticks Tax::of(Ticks ticks) const {
  // Both factors are below 2^63.
  unsigned __int128 product = (unsigned __int128)ticks * uint64_t(numerator);
  unsigned __int128 rounded = (2 * product + uint64_t(denominator)) / (2 * (unsigned __int128)denominator);
  return rounded > uint64_t(maxTicks) ? maxTicks : Ticks(rounded);
}

std::string SurchargeTerms::describe() const {
  std::string text = machine.empty() ? "" : "machine: " + machine;
  if (!runtime.empty())
    text += (text.empty() ? "runtime: " : ", runtime: ") + runtime;
  return text;
}

/// `0.3`, `3/10`, `2`.
static std::optional<Tax> parseTax(StringRef text) {
  auto [first, second] = text.split('/');
  std::optional<Decimal> numerator = parseDecimal(first), denominator = Decimal{1, 0};
  if (first.size() < text.size()) {
    denominator = parseDecimal(second);
    if (!numerator || !denominator || numerator->places || denominator->places || !denominator->digits)
      return std::nullopt;
  }
  if (!numerator)
    return std::nullopt;
  Tax tax = {numerator->digits, denominator->digits};
  for (unsigned i = 0; i < numerator->places; ++i)
    tax.denominator *= 10;
  return tax;
}

SurchargeTerms stage::trace::readSurchargeTerms(const ChakraProtoMsg::GlobalMetadata &metadata, uint32_t rank,
                                                FaultReporter &faults) {
  SurchargeTerms terms;
  std::string place = "rank " + std::to_string(rank) + ", global metadata";
  llvm::StringSet<> seen;
  for (const AttributeProto &attribute : metadata.attr()) {
    StringRef name = attribute.name();
    std::optional<ValueCase> expected = getExpectedMetadataKind(name);
    if (!expected) {
      // A tax that nobody charges would make a wrong time.
      if (name.startswith("tax_"))
        faults.report(diag::UnknownTax, place, name);
      continue;
    }
    if (!seen.insert(name).second) {
      faults.report(diag::AttributeTwice, place, name);
      continue;
    }
    if (attribute.value_case() != *expected) {
      faults.report(diag::AttributeBadKind, place, name, getKindName(attribute.value_case()), getKindName(*expected));
      continue;
    }
    if (name == "machine") {
      terms.machine = attribute.string_val();
    } else if (name == "runtime") {
      terms.runtime = attribute.string_val();
    } else if (name == "launch_picos" || name == "step_host_picos") {
      if (attribute.int64_val() < 0 || attribute.int64_val() >= maxTicks)
        faults.report(diag::AttributeOutOfRange, place, name, attribute.int64_val(),
                      "at least 0 and below " + std::to_string(maxTicks));
      else
        (name == "launch_picos" ? terms.launch : terms.stepHost) = attribute.int64_val();
    } else {
      Tax &tax = name == "tax_collective" ? terms.collective
                 : name == "tax_send"     ? terms.send
                 : name == "tax_copy"     ? terms.copy
                                          : terms.communication;
      if (std::optional<Tax> read = parseTax(attribute.string_val()))
        tax = *read;
      else
        faults.report(diag::BadTax, place, name, attribute.string_val());
    }
  }
  return terms;
}
