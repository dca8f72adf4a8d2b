//===- ParameterUnits.h - what is gathered at once -------------*- C++ -*-===//
//
// `partition parameters over dp by unit layers[*], head;`: a parameter is of the unit whose pattern means the longest
// beginning of its path, and that beginning is the unit's name: `layers.attn.wq` is of `layers`.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_PARAMETERUNITS_H
#define STAGE_IR_GRAPH_PARAMETERUNITS_H

#include "stage/IR/graph/Rule.h"
#include "llvm/ADT/StringMap.h"

namespace stage {

/// `keep = last`: of what forward gathers backward keeps so many units, the last ones: 0 or 1 (Rule::depth of a rule
/// for parameters).
inline bool keepsLastUnit(const Rule &rule) { return rule.kind == RuleKind::PartitionParameters && rule.depth != 0; }

class ParameterUnits {
public:
  /// The rule must outlive this.
  explicit ParameterUnits(const Rule &rule);
  /// The longest beginning of a path that a pattern means, and that pattern; nothing if none does.
  std::optional<std::pair<llvm::StringRef, const PathPattern *>> find(llvm::StringRef path) const;

private:
  const PathPattern *findPattern(llvm::StringRef path) const;

  /// Patterns that are paths themselves are looked up, as there may be thousands.
  llvm::StringMap<const PathPattern *> paths;
  std::vector<const PathPattern *> others;
};

} // namespace stage

#endif // STAGE_IR_GRAPH_PARAMETERUNITS_H
