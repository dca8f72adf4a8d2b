//===- BindAllocator.cpp - the allocator of a runtime, evaluated ----------===//
//
// Problem: an allocator is seven sizes that must agree: one that cuts large tensors out of segments smaller than the
// tensors cannot exist, and one without rounding is no allocator.
//
//   allocator.large = 10MiB;  allocator.large_segment = 1MiB;
//
//   error: 'allocator.large_segment' must be whole bytes from 'allocator.large', 10 MiB, to 1 TiB, found 1MiB
//
// Algorithm: entries are evaluated in an order in which each one is behind the entry that bounds it from below.
//
//===----------------------------------------------------------------------===//
#include "RuntimeWords.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Support/Table.h"

using namespace stage;
using namespace stage::sema;

bool stage::sema::bindAllocator(Evaluator &evaluator, const NamedEntries &entries, const Environment &env,
                                SMRange range, DiagnosticEngine &diags, BoundRuntime &runtime) {
  auto isSaid = [&](const AllocatorEntry &entry) { return entries.count(entry.name.str()) != 0; };
  if (llvm::none_of(allocatorEntries, isSaid))
    return true;
  for (const AllocatorEntry &entry : allocatorEntries) {
    auto said = entries.find(entry.name.str());
    if (said == entries.end()) {
      diags.report(range.Start, diag::AllocatorEntryMissing).range(range)
          << runtime.name << llvm::find_if(allocatorEntries, isSaid)->name << entry.name;
      return false;
    }
    std::optional<EntryValue> value = evaluateEntry(evaluator, entry.name, said->second, Dimension::ofBytes(), env);
    if (!value)
      return false;
    int64_t least = entry.least ? runtime.allocator.*entry.least : 1;
    const std::optional<Rational> &bytes = value->exact;
    if (!bytes || !bytes->isInteger() || bytes->num < least || bytes->num > maxSegment) {
      std::string from = entry.least ? "'" + entry.leastName.str() + "', " + formatBytes(least) + "," : "1 byte";
      const ast::Expr &at = *said->second.value;
      diags.report(at.loc(), diag::RuntimeValueRange).range(at.range)
          << entry.name << "whole bytes from " + from + " to 1 TiB" << evaluator.format(value->value);
      return false;
    }
    runtime.allocator.*entry.bytes = int64_t(bytes->num);
  }
  return true;
}
