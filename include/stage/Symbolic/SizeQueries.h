//===- SizeQueries.h - what was asked of a binding -------------*- C++ -*-===//
//
// Problem: is something that was made under one binding the same under another? Keeping
// a list of what it depends on by hand goes wrong as soon as somebody adds a question.
//
//   if L > 4 { ... }         asks for the value of L
//   param w: [2 * D, F];     asks whether 2*D has a value, not for which
//
// Algorithm: while a binding has queries, every symbol that is looked up is noted with
// its value, or that it has none; and so is every table. Who only wants to know whether a size has a value asks
// `checkValue`, which notes the outcome. Another binding agrees if it would have
// answered everything alike.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SYMBOLIC_SIZEQUERIES_H
#define STAGE_SYMBOLIC_SIZEQUERIES_H

#include "stage/Symbolic/Size.h"

namespace stage {

class SizeQueries {
public:
  void addLookup(llvm::StringRef symbol, std::optional<int64_t> value) { lookups.try_emplace(symbol, value); }
  void addTable(llvm::StringRef name, std::shared_ptr<const SizeTable> table) { tables.try_emplace(name, table); }
  void addCheck(Size size, const SizeCheck &outcome);
  bool agreesWith(const SizeBinding &binding) const;

private:
  llvm::StringMap<std::optional<int64_t>> lookups;
  llvm::StringMap<std::shared_ptr<const SizeTable>> tables;
  llvm::DenseMap<Size, SizeCheck> checks;
};

/// Notes what is asked of a binding, from now on and until it ends.
class RecordQueries {
public:
  RecordQueries(SizeBinding &binding, SizeQueries &queries) : binding(binding) { binding.queries = &queries; }
  RecordQueries(const RecordQueries &) = delete;
  ~RecordQueries() { binding.queries = nullptr; }

private:
  SizeBinding &binding;
};

} // namespace stage

#endif // STAGE_SYMBOLIC_SIZEQUERIES_H
