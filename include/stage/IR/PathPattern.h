//===- PathPattern.h - patterns over the paths of values -------*- C++ -*-===//
//
// The text after `at` in a strategy:
//
//   layers[*].{x, h}     values x and h of every iteration of `layers`
//   **.attention()       every result of an op `attention`, at any depth
//   **.{linear, rope}()  the same for several
//   param **             every parameter
//   result **.x          values that are neither parameters nor inputs
//   attn.rope.1          a value without a name, by what messages and reports call it: its op and, where one
//                        operator stands for several, which. `*` and `**` never mean it.
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
  bool matches(const Value &value) const;
  /// An op `name` in `scope`. `rope` and `rope.1` are one operator with operands of different shapes: a pattern may
  /// mean both or one.
  bool matchesOp(llvm::StringRef scope, llvm::StringRef name) const;
  /// How much it says: of two patterns that match one value or op the more specific wins. Literal segments
  /// count most, then segments with `*` (in one of the alternatives), then `**`.
  unsigned getSpecificity() const;
  /// How far a path (or an op's scope and name) is from what is meant: letters to change, and a little for each level
  /// left out. Nothing if it is more than half of the pattern's letters.
  std::optional<unsigned> getDistance(llvm::StringRef path) const;

private:
  bool matchSegments(llvm::ArrayRef<llvm::StringRef> path) const;
  /// Alternatives of each segment; `**` is the single alternative "**".
  llvm::SmallVector<llvm::SmallVector<std::string, 2>, 4> segments;
  bool ops = false;
  bool params = false, results = false; ///< What stands before the pattern.
};

} // namespace stage

#endif // STAGE_IR_PATHPATTERN_H
