//===- BindRuntime.cpp - a declared runtime, evaluated --------------------===//
//
// Problem: entries of a runtime are spread over what it extends, itself and the command line.
//
//   runtime eager { launch = 12us; tax.collective = 0.30; }
//   runtime fused extends eager { launch = 8us; }
//   -D runtime.tax.collective=0.2
//
//   launch = 8us, tax.collective = 0.2
//
// Algorithm: that of machines (NamedEntries.h). Each entry is evaluated in the file that says it; then its dimension
// and its range are checked.
//
// Limits: a time is rounded down to whole picoseconds.
//
//===----------------------------------------------------------------------===//
#include "Extends.h"
#include "RuntimeWords.h"

using namespace stage;
using namespace stage::sema;

/// False after a report.
static bool bindEntry(Evaluator &evaluator, const RuntimeEntry &entry, const NamedEntry &said, const Environment &env,
                      DiagnosticEngine &diags, BoundRuntime &runtime) {
  std::optional<Dimension> dimension = entry.time ? std::optional(Dimension::ofTime()) : std::nullopt;
  std::optional<EntryValue> value = evaluateEntry(evaluator, entry.name, said, dimension, env);
  if (!value)
    return false;
  std::optional<Rational> exact = value->exact;
  bool isFactor = entry.number && !entry.isTax;
  bool isGood = exact && exact->num >= (isFactor || entry.rows) && exact->compare(Rational::integer(entry.most)) <= 0;
  if (isGood && entry.rows) {
    isGood = exact->isInteger();
  } else if (isGood && entry.number) {
    isGood =
        exact->den <= (isFactor ? 10'000 : INT32_MAX - 1); // a tick times it, and times other factors, must stay exact
  } else if (isGood) {
    exact = exact->mul(Rational::integer(1'000'000'000'000));
    isGood = exact.has_value();
  }
  if (!isGood) {
    std::string most = std::to_string(entry.most);
    std::string wanted = isFactor ? "a number above 0 and at most " + most + ", of at most four decimals, such as 0.6"
                         : entry.rows  ? "a whole number of rows from 1 to " + most + ", such as 64"
                         : entry.isTax ? "a number from 0 to 1, of at most nine decimals, such as 0.3"
                                       : "a time from 0 to 1s, such as 8us";
    diags.report(said.value->loc(), diag::RuntimeValueRange).range(said.value->range)
        << entry.name << wanted << evaluator.format(value->value);
    return false;
  }
  if (entry.number)
    runtime.*entry.number = *exact;
  else if (entry.rows)
    runtime.*entry.rows = int64_t(exact->num);
  else
    runtime.*entry.time = int64_t(exact->floor().num);
  return true;
}

std::string BoundRuntime::describe() const { return describeChanges(name, changes); }

std::optional<BoundRuntime> stage::sema::bindRuntime(Evaluator &evaluator, const Program &program,
                                                     const ast::RuntimeDecl &decl, SMRange range,
                                                     EntryOverride override, const Environment &env) {
  NamedEntries entries;
  for (const ast::RuntimeDecl *link : getChain(program, decl))
    for (const ast::Stmt *stmt : link->body)
      if (auto *entry = llvm::dyn_cast<ast::EntryStmt>(stmt))
        entries[entry->name.name.str()] = {entry->value, &program.getFile(*link)};
  BoundRuntime runtime;
  runtime.name = decl.name.name.str();
  runtime.libraryNames = listLibraryNames(program, decl);
  runtime.range = range;
  runtime.changes = replaceEntries(entries, listRuntimeEntries(), override);
  bool ok = true;
  for (const ast::RuntimeDecl *link : getChain(program, decl))
    for (const ast::Stmt *stmt : link->body)
      if (auto *kernels = llvm::dyn_cast<ast::KernelStmt>(stmt))
        ok &= bindKernels(evaluator, *kernels, program.getFile(*link), runtime);
  for (const RuntimeEntry &entry : runtimeEntries)
    if (auto said = entries.find(entry.name.str()); said != entries.end())
      ok &= bindEntry(evaluator, entry, said->second, env, program.getDiags(), runtime);
  ok = ok && bindAllocator(evaluator, entries, env, decl.name.range, program.getDiags(), runtime);
  return ok ? std::optional(std::move(runtime)) : std::nullopt;
}

std::vector<std::string> stage::sema::listRuntimeEntries() {
  std::vector<std::string> names;
  for (const RuntimeEntry &entry : runtimeEntries)
    names.push_back(entry.name.str());
  for (const AllocatorEntry &entry : allocatorEntries)
    names.push_back(entry.name.str());
  return names;
}
