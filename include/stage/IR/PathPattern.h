//===- PathPattern.h - patterns over the paths of values -------*- C++ -*-===//
//
// The text after `at` in a strategy:
//
//   layers[*].{x, h}     values x and h of every iteration of `layers`
//   **.attention()       every result of an op `attention`, at any depth
//   param **             every parameter
//   embed                one value
//   **.attention.grad()  the gradients of ops `attention`; **.attention() is those, too
//   layers[*].x.grad     the gradient of a value
//
// A segment may use `*` for any characters; `**` stands for any number of segments.
// `[*]` after a segment says that it is a repeat and may be left out.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_PATHPATTERN_H
#define STAGE_IR_PATHPATTERN_H

#include "stage/IR/Graph.h"

namespace stage {

class PathPattern {
public:
  /// Nothing if the text is no pattern.
  static std::optional<PathPattern> parse(llvm::StringRef text);

  /// True for patterns that end in `()`.
  bool matchesOps() const { return ops; }
  /// True for patterns that end in `.grad` or `.grad()`: those speak of gradients only.
  bool namesGradient() const;
  /// The value at `path` (of a param if `isParam`).
  bool matches(llvm::StringRef path, bool isParam) const;
  /// An op `name` in `scope`.
  bool matchesOp(llvm::StringRef scope, llvm::StringRef name) const;
  /// How much it says: of two patterns that match one value the more specific wins. Literal segments count
  /// most, then segments with `*`, then `**`.
  unsigned getSpecificity() const;

private:
  bool matchSegments(llvm::ArrayRef<llvm::StringRef> path) const;
  /// Alternatives of each segment; `**` is the single alternative "**".
  llvm::SmallVector<llvm::SmallVector<std::string, 2>, 4> segments;
  bool ops = false;
  bool params = false;
};

} // namespace stage

#endif // STAGE_IR_PATHPATTERN_H
